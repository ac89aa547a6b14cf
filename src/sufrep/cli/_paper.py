"""``sufrep paper``: the paper's experiments."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sufrep._names import DATASET_NAMES, MAX_SEED, SETUPS
from sufrep._paper.names import (
    BENCHMARK_DATASETS,
    DRAWN_METHODS,
    EFFECT_ARMS,
    EFFECT_METHODS,
    EFFECT_MODELS,
    PAPER_DATASETS,
    PAPER_METHODS,
    PAPER_MODELS,
    REFERENCES,
    SIMULATED_METHODS,
    TRIAL_METHODS,
)
from sufrep.cli._arguments import (
    Command,
    Commands,
    ForceOption,
    JobsOption,
    Output,
    Spelling,
    check_outputs,
    known_names,
    output_option,
    print_result,
    usage_error,
)
from sufrep.cli._progress import progress

if TYPE_CHECKING:
    from sufrep._paper.plan import Plan

app = typer.Typer(
    help="Run the experiments of the paper, draw its figures and print its tables.",
    no_args_is_help=True,
    cls=Commands,
)


class Backend(StrEnum):
    """Where trials run: in processes of this machine, or on a Dask cluster."""

    loky = "loky"
    dask = "dask"


class Style(StrEnum):
    """The format of tables."""

    text = "text"
    markdown = "markdown"
    latex = "latex"


DEFAULT_STORE = Path("paper_results")
# The parameters of plans, settings and data sets.
_SPELLING = Spelling(
    {
        "arms": "--arms",
        "data_dir": "--data-dir",
        "datasets": "--datasets",
        "levels_per_latent": "--levels",
        "methods": "--methods",
        "models": "--models",
        "n": "--n",
        "n_jobs": "--jobs",
        "n_latent": "--latent",
        "n_trees": "--trees",
        "scheduler": "--scheduler",
        "seed": "--first-seed",
        "setups": "--setups",
    }
)
StoreOption = Annotated[
    Path, typer.Option("--store", help="Folder of the results; created if it does not exist.")
]
SourceOption = Annotated[Path, typer.Option("--store", help="Folder of the results.")]
_MODELS_HELP = (
    "forest (honest, econml), sklearn_forest, xgboost, xgboost_tuned (depth and rounds chosen on a fifth of "
    "the rows); and models that handle the levels themselves, without a method: latent_state_regressor, "
    "xgboost_native, lightgbm_native, catboost_native, gpboost; several may follow."
)
ModelsOption = Annotated[
    list[str],
    typer.Option(
        "--models",
        callback=known_names(PAPER_MODELS),
        help=_MODELS_HELP,
    ),
]
BenchmarkModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--models",
        callback=known_names(PAPER_MODELS),
        help=f"{_MODELS_HELP} By default those of each data set: xgboost for encodings, and the boosters of "
        "all packages; on wages and insteval_sigrist xgboost_tuned, as in the published comparison.",
    ),
]
_METHODS_HELP = (
    "Names of encoders, including those of other packages (target_encoder, james_stein, catboost_encoder, "
    "glmm), and drop; simulations also have oracle and bayes; several may follow. By default those that the "
    "experiment compares."
)
MethodsOption = Annotated[
    list[str] | None,
    typer.Option("--methods", callback=known_names(TRIAL_METHODS), help=_METHODS_HELP),
]
SimulatedMethodsOption = Annotated[
    list[str] | None,
    typer.Option("--methods", callback=known_names(SIMULATED_METHODS), help=_METHODS_HELP),
]
DatasetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--datasets",
        callback=known_names(DATASET_NAMES),
        help="pakistan, ames, ames_full, king_county of the paper; orange_juice, county_murders, insteval, "
        "nycflights; nycflights_delayed, open_payments, midwest_survey (classes); wages, insteval_sigrist "
        "(published folds); several may follow. By default all of the experiment.",
    ),
]
DataDirOption = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the data; by default $SUFREP_DATA.")
]
SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="Number of seeds.")]
FirstSeedOption = Annotated[int, typer.Option("--first-seed", min=0, max=MAX_SEED, help="The first seed.")]
TreesOption = Annotated[int, typer.Option("--trees", min=4, help="Trees of a forest.")]
BackendOption = Annotated[Backend, typer.Option("--backend", help="Processes, or a Dask cluster.")]
SchedulerOption = Annotated[str | None, typer.Option("--scheduler", help="Address of the Dask cluster.")]
BugOption = Annotated[
    bool,
    typer.Option("--k-index-bug", help="Use the index of the chosen k as k, as the authors' script did."),
]


@app.command(cls=Command)
@_SPELLING.errors()
def simulations(
    setups: Annotated[
        list[str],
        typer.Option("--setups", callback=known_names(SETUPS), help="Setups; several may follow."),
    ] = [*SETUPS],
    latent: Annotated[
        list[int], typer.Option("--latent", min=1, help="Hidden states; several may follow.")
    ] = [2, 10],
    levels: Annotated[
        list[int], typer.Option("--levels", min=1, help="Levels of each hidden state; several may follow.")
    ] = [50, 100],
    models: ModelsOption = ["xgboost"],
    methods: SimulatedMethodsOption = None,
    seeds: SeedsOption = 20,
    first_seed: FirstSeedOption = 0,
    n: Annotated[int, typer.Option("--n", min=100, help="Rows of a sample.")] = 10_000,
    trees: TreesOption = 100,
    k_index_bug: BugOption = False,
    jobs: JobsOption = 2,
    backend: BackendOption = Backend.loky,
    scheduler: SchedulerOption = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Run the simulations of the paper's two figures.

    Run the command again to resume a run that was stopped, even by kill -9.

    Example: sufrep paper simulations --latent 10 --levels 50 100 --methods one_hot means --seeds 5
    """
    _check_scheduler(backend, scheduler)
    from sufrep._paper.plan import Settings, SimulationPlan

    plan = SimulationPlan(
        setups=tuple(setups),  # type: ignore[arg-type]  # checked by the plan
        n_latent=tuple(latent),
        levels_per_latent=tuple(levels),
        models=tuple(models),
        methods=tuple(methods or PAPER_METHODS + REFERENCES),
        seeds=range(first_seed, first_seed + seeds),
        k_index_bug=k_index_bug,
        settings=Settings(n=n, n_trees=trees),
    )
    _run(plan, store, jobs, backend, scheduler)


@app.command(cls=Command)
@_SPELLING.errors()
def empirical(
    data_dir: DataDirOption = None,
    datasets: DatasetsOption = None,
    models: ModelsOption = ["forest", "xgboost"],
    methods: MethodsOption = None,
    seeds: SeedsOption = 1,
    first_seed: FirstSeedOption = 0,
    trees: TreesOption = 100,
    k_index_bug: BugOption = False,
    jobs: JobsOption = 2,
    backend: BackendOption = Backend.loky,
    scheduler: SchedulerOption = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Cross-validate the methods on the data sets of the paper's two tables.

    Example: sufrep paper empirical --data-dir data --datasets ames king_county --models xgboost
    """
    _check_scheduler(backend, scheduler)
    from sufrep._paper.plan import EmpiricalPlan, Settings

    plan = EmpiricalPlan(
        datasets=tuple(datasets or PAPER_DATASETS),
        models=tuple(models),
        methods=tuple(methods or PAPER_METHODS),
        seeds=range(first_seed, first_seed + seeds),
        k_index_bug=k_index_bug,
        settings=Settings(data_dir=str(data_dir) if data_dir else None, n_trees=trees),
    )
    _run(plan, store, jobs, backend, scheduler)


@app.command(cls=Command)
@_SPELLING.errors()
def benchmark(
    data_dir: DataDirOption = None,
    datasets: DatasetsOption = None,
    models: BenchmarkModelsOption = None,
    methods: MethodsOption = None,
    seeds: SeedsOption = 1,
    first_seed: FirstSeedOption = 0,
    jobs: JobsOption = 2,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Cross-validate our encoder and its peers on thirteen data sets.

    Numbers are judged by the mean squared error, classes by the log loss. A trial that fails is recorded as
    failed, and the others continue. What is not made for classes, or for more than two, is not run on them,
    and glmm, which is slow on classes, only if it is named.

    Example: sufrep paper benchmark --data-dir data --datasets ames king_county --methods one_hot means glmm
    """
    from sufrep._paper.plan import BenchmarkPlan, Settings

    plan = BenchmarkPlan(
        datasets=tuple(datasets or BENCHMARK_DATASETS),
        models=tuple(models or ()),
        methods=tuple(methods or ()),
        seeds=range(first_seed, first_seed + seeds),
        settings=Settings(data_dir=str(data_dir) if data_dir else None, n_folds=5),
    )
    _run(plan, store, jobs, Backend.loky, None)


@app.command(cls=Command)
@_SPELLING.errors()
def causal(
    arms: Annotated[
        list[str],
        typer.Option(
            "--arms", callback=known_names(EFFECT_ARMS), help="Kinds of samples; several may follow."
        ),
    ] = [*EFFECT_ARMS],
    models: Annotated[
        list[str],
        typer.Option(
            "--models",
            callback=known_names(EFFECT_MODELS),
            help="linear (and logistic), penalised (the same with scikit-learn's default penalty of the "
            "logistic model) or boosting; several may follow.",
        ),
    ] = ["linear"],
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            callback=known_names(EFFECT_METHODS),
            help="How the group is controlled for; means_w is the default of AIPW, and true_psi knows the "
            "hidden states; several may follow. By default all.",
        ),
    ] = None,
    seeds: SeedsOption = 100,
    first_seed: FirstSeedOption = 0,
    n: Annotated[
        int | None, typer.Option("--n", min=100, help="Rows of a sample; by default those of the arm.")
    ] = None,
    jobs: JobsOption = 2,
    backend: BackendOption = Backend.loky,
    scheduler: SchedulerOption = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Estimate treatment effects where a group confounds, on simulated samples.

    Example: sufrep paper causal --arms main uneven --methods true_psi nothing means_w --seeds 20
    """
    _check_scheduler(backend, scheduler)
    from sufrep._paper.plan import EffectPlan

    plan = EffectPlan(
        arms=tuple(arms),
        models=tuple(models),
        methods=tuple(methods or EFFECT_METHODS),
        seeds=range(first_seed, first_seed + seeds),
        n=n,
    )
    _run(plan, store, jobs, backend, scheduler)


@app.command(cls=Command)
@_SPELLING.errors()
def figures(
    store: SourceOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option("--out", help="Folder for the figures.")] = Path("paper_figures"),
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            callback=known_names(tuple(dict.fromkeys((*DRAWN_METHODS, *EFFECT_METHODS)))),
            help="Methods to show; several may follow. By default the paper's and the references, and all of "
            "treatment effects.",
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Draw the figures of a store as PNG, SVG and interactive HTML: the paper's, and of treatment effects.

    Example: sufrep paper figures --store results/paper --out docs/results/paper
    """
    from sufrep._paper.figures import draw_effect_figures, draw_figures
    from sufrep._paper.store import Store

    # The models, which are part of the names, are known when the store is read.
    outputs = [
        Output("--out", path, path.suffix)
        for path in out.glob("figure_*")
        if path.suffix in (".png", ".svg", ".html")
    ]
    check_outputs(_inputs(store), outputs, force=force)
    simulated, effects = Store(store, "simulations"), Store(store, "causal")
    written: list[Path] = []
    if effects.records():
        written += draw_effect_figures(effects, out, methods)
    if simulated.records() or not written:
        written += draw_figures(simulated, out, methods)
    for path in written:
        print_result(str(path))


@app.command(cls=Command)
def tables(
    store: SourceOption = DEFAULT_STORE,
    style: Annotated[Style, typer.Option("--format", help="Format of the tables.")] = Style.text,
    out: Annotated[Path | None, output_option("--out", "A file; by default they are printed.")] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir", help="Folder of the data, with published results; by default $SUFREP_DATA."
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Print the paper's tables, and the numbers of its figures, from a store.

    Example: sufrep paper tables --store results/paper --format latex --out tables.tex
    """
    from sufrep._paper.store import write_text
    from sufrep._paper.tables import all_tables

    if out is not None and out.parent.is_dir():  # else it will be created
        check_outputs(_inputs(store), [Output("--out", out, "text table")], force=force)
    text = "\n".join(table.render(style.value) for table in all_tables(store, data_dir))
    if out is None:
        print_result(text.rstrip("\n"))
    else:
        write_text(out, text)
        print_result(str(out), [out])


@app.command(cls=Command)
def export(
    store: SourceOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option("--out", help="Folder for the CSV files.")] = Path("paper_csv"),
    force: ForceOption = False,
) -> None:
    """Write the results of a store as CSV files, from which figures and tables can be made as well.

    Example: sufrep paper export --store paper_results --out results/paper
    """
    from sufrep._paper.store import TRIALS, Store, export_all

    outputs = [Output("--out", Store(out, experiment).csv_path, ".csv") for experiment in TRIALS]
    if out.is_dir():  # else it will be created
        check_outputs(_inputs(store), outputs, force=force)
    for path in export_all(store, out):
        print_result(str(path))


def _inputs(folder: Path) -> list[Path]:
    """The files of a store that are read."""
    from sufrep._paper.store import TRIALS, Store

    return [Store(folder, experiment).source for experiment in TRIALS]


def _check_scheduler(backend: Backend, scheduler: str | None) -> None:
    if scheduler and backend is not Backend.dask:
        raise usage_error("it needs --backend dask.", "--scheduler")


def _run(plan: Plan, folder: Path, jobs: int, backend: Backend, scheduler: str | None) -> None:
    from sufrep._paper.run import run_trials, trial_name
    from sufrep._paper.store import Store

    store = Store(folder, plan.experiment)
    failures: list[str] = []

    def on_start(todo: int, done: int) -> None:
        if done:
            print_result(f"{done} of {done + todo} trials are already in {store.path}")

    def on_finished(record: dict[str, Any]) -> None:
        if record.get("failure"):
            failures.append(f"{trial_name(record)}, fold {record['fold']}, failed: {record['failure']}")

    with progress(f"paper {plan.experiment}") as report:
        n_run = run_trials(
            plan,
            store,
            n_jobs=jobs,
            backend=backend.value,
            scheduler=scheduler,
            command=_command(),
            report=report,
            on_start=on_start,
            on_finished=on_finished,
        )
    for failure in failures:
        print_result(failure)
    print_result(f"{n_run} trial(s) run; results in {store.path}")


def _command() -> str:
    """The command as it was typed, without the path of the program."""
    return shlex.join(["sufrep", *sys.argv[1:]])
