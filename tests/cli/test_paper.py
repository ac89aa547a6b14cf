"""``sufrep paper`` as a user types it: experiments, tables, figures, export, and wrong usage."""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from sufrep._paper.models import ENCODING_BUILDERS
from sufrep._paper.plan import BenchmarkPlan, EffectPlan, EmpiricalPlan
from sufrep._paper.store import Store
from sufrep._paper.tables import all_tables
from sufrep.cli import make_app
from sufrep.datasets import load_king_county
from sufrep.datasets._loaders import _KING_COUNTY_COVARIATES as COVARIATES

SMALL = "--setups latent_linear --n 300 --levels 5 --seeds 2 --jobs 1"
COMMANDS = ["simulations", "empirical", "benchmark", "causal", "figures", "tables", "export"]


@pytest.fixture(scope="module")
def store(sufrep, tmp_path_factory) -> Path:
    """A small store of simulations, made by the command."""
    folder = tmp_path_factory.mktemp("run") / "store"
    result = sufrep(f"paper simulations --latent 2 10 --methods one_hot means {SMALL} --store {folder}")
    assert (result.code, result.out) == (0, f"8 trial(s) run; results in {folder}/simulations.jsonl\n")
    return folder


def results(folder: Path) -> list[dict[str, Any]]:
    """All records, without the time that they took."""
    records = Store(folder, "simulations").records()
    return [{name: value for name, value in record.items() if name != "seconds"} for record in records]


def test_all_values_of_an_option_are_run(store):
    found = {(record["n_latent"], record["method"], record["seed"]) for record in results(store)}
    assert found == {(k, method, seed) for k in (2, 10) for method in ("one_hot", "means") for seed in (0, 1)}


def test_the_store_records_the_command(store):
    (run,) = Store(store, "simulations").runs()
    assert run["command"].startswith("sufrep paper simulations --latent 2 10 --methods one_hot means")


def test_the_same_command_again_runs_nothing(sufrep, store):
    result = sufrep(f"paper simulations --latent 2 10 --methods one_hot means {SMALL} --store {store}")
    assert result.code == 0
    assert result.out == (
        f"8 of 8 trials are already in {store}/simulations.jsonl\n"
        f"0 trial(s) run; results in {store}/simulations.jsonl\n"
    )


def test_repeated_values_are_run_once(sufrep, tmp_path):
    options = "--setups latent_linear --latent 2 2 --levels 5 --n 300 --methods drop drop --seeds 1 --jobs 1"
    assert sufrep(f"paper simulations {options} --store {tmp_path}").out.startswith("1 trial(s) run")
    assert len(results(tmp_path)) == 1


def test_seeds_start_at_the_first_and_paths_are_printed_unchanged(sufrep, tmp_path):
    folder = tmp_path / ("[red]" + "long" * 30)
    options = "--setups latent_linear --latent 2 --levels 5 --n 300 --methods drop --jobs 1"
    result = sufrep(f"paper simulations {options} --first-seed 7 --seeds 2 --store {folder}")
    assert result.out == f"2 trial(s) run; results in {folder}/simulations.jsonl\n"
    assert [record["seed"] for record in results(folder)] == [7, 8]


def test_a_forest_may_have_any_number_of_trees_from_4_on(sufrep, tmp_path):
    options = "--setups latent_linear --latent 2 --levels 5 --n 300 --methods one_hot --seeds 1 --jobs 1"
    result = sufrep(f"paper simulations {options} --models forest --trees 5 --store {tmp_path}")
    assert result.code == 0


def test_the_index_bug_is_a_variant_of_the_methods_that_choose_k(sufrep, tmp_path):
    options = (
        "--setups latent_linear --latent 2 --levels 5 --n 300 --seeds 1 --jobs 1 --models sklearn_forest"
    )
    methods = "--methods one_hot low_rank --trees 4 --k-index-bug"
    assert sufrep(f"paper simulations {options} {methods} --store {tmp_path}").code == 0
    assert {record["method"]: record["k_index_bug"] for record in results(tmp_path)} == {
        "one_hot": False,
        "low_rank": True,
    }
    assert "low_rank (k index)" in sufrep(f"paper tables --store {tmp_path}").out


# Tables, figures, export


@pytest.mark.parametrize("style", ["text", "markdown", "latex"])
def test_tables_are_printed_in_every_format(sufrep, store, style):
    result = sufrep(f"paper tables --store {store} --format {style}")
    tables = all_tables(store)
    assert (result.code, result.err) == (0, "")
    assert result.out == "\n".join(table.render(style) for table in tables)


def test_tables_are_written_to_a_new_folder(sufrep, store, tmp_path):
    file = tmp_path / "new" / "tables.tex"
    result = sufrep(f"paper tables --store {store} --format latex --out {file}")
    assert (result.code, result.out) == (0, f"{file}\n")
    assert file.read_text() == sufrep(f"paper tables --store {store} --format latex").out


def test_an_exported_store_gives_the_same_tables(sufrep, store, tmp_path):
    result = sufrep(f"paper export --store {store} --out {tmp_path}")
    assert (result.code, result.out) == (0, f"{tmp_path}/simulations.csv\n")
    again = sufrep(f"paper tables --store {tmp_path}").out
    assert again == sufrep(f"paper tables --store {store}").out


def test_figures_are_named_one_a_line(sufrep, store, tmp_path, monkeypatch):
    asked = []

    def draw(*given: Any) -> list[Path]:
        asked.append(given[1:])
        return [tmp_path / "a.png", tmp_path / "a.svg"]

    monkeypatch.setattr("sufrep._paper.figures.draw_figures", draw)
    result = sufrep(f"paper figures --store {store} --out {tmp_path} --methods one_hot means")
    assert (result.code, result.out) == (0, f"{tmp_path}/a.png\n{tmp_path}/a.svg\n")
    assert asked == [(tmp_path, ["one_hot", "means"])]


# Real data


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A folder with 200 made-up houses."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    lines = [",".join(["id", "date", "price", *COVARIATES, "zipcode"])]
    for i in range(200):
        numbers = [f"{value:.3f}" for value in rng.normal(size=len(COVARIATES))]
        lines.append(",".join([str(i), "20140101", f"{rng.uniform(1, 9):.2f}", *numbers, str(98000 + i % 8)]))
    (folder / "king_county.csv").write_text("\n".join(lines) + "\n")
    assert load_king_county(folder).X.shape == (200, 17)
    return folder


def test_real_data_are_cross_validated(sufrep, monkeypatch, data, tmp_path):
    monkeypatch.setenv("SUFREP_DATA", str(data))
    options = "--datasets king_county --models xgboost --methods one_hot means --jobs 1"
    result = sufrep(f"paper empirical {options} --store {tmp_path}")
    assert (result.code, result.out) == (0, f"8 trial(s) run; results in {tmp_path}/empirical.jsonl\n")
    lines = sufrep(f"paper tables --store {tmp_path}").out.splitlines()
    assert lines[0] == "xgboost: percent improvement of the MSE over one-hot, real data"
    assert lines[-2].split() == ["king_county", "published", "(p)", "0.773", "(0.67990)"]
    assert lines[-1].startswith("4 test folds.")
    assert sufrep(f"paper export --store {tmp_path} --out {tmp_path}").out == f"{tmp_path}/empirical.csv\n"


def test_a_benchmark_compares_peers_and_can_be_run_again(sufrep, data, tmp_path):
    pytest.importorskip("lightgbm", reason="the peers are in the extra 'peers'")
    names = "--models xgboost lightgbm_native --methods one_hot target_encoder"
    command = f"paper benchmark --data-dir {data} --datasets king_county {names} --jobs 1 --store {tmp_path}"
    result = sufrep(command)
    assert (result.code, result.out) == (0, f"15 trial(s) run; results in {tmp_path}/benchmark.jsonl\n")
    assert sufrep(command).out.endswith(f"0 trial(s) run; results in {tmp_path}/benchmark.jsonl\n")
    lines = sufrep(f"paper tables --store {tmp_path}").out.splitlines()
    assert lines[0] == "Benchmark: MSE in percent of one_hot"
    assert [line.split()[0] for line in lines[3:6]] == ["one_hot", "target_encoder", "lightgbm_native"]
    assert lines[6].startswith("Means over 5 folds;")
    assert sufrep(f"paper export --store {tmp_path} --out {tmp_path}").out == f"{tmp_path}/benchmark.csv\n"


def test_a_benchmark_of_wages_shows_published_results_next_to_ours(sufrep, tmp_path):
    folder, rng = tmp_path / "sigrist2023", np.random.default_rng(0)
    folder.mkdir()
    lines = ["age,ln_wage,idcode,t", *(f"{rng.normal()},{rng.normal()},{i % 6},0" for i in range(60))]
    published = [f"wages,gpboost,{fold},0.{fold + 1},1" for fold in range(5)]
    (folder / "published.csv").write_text("\n".join(["data,method,fold,test_mse,seconds", *published]))
    folds = [[i + 1 for i in range(60) if i % 5 != fold] for fold in range(5)]
    for name, text in [("wages.csv.gz", "\n".join(lines)), ("wages.json.gz", json.dumps(folds))]:
        (folder / name).write_bytes(gzip.compress(text.encode()))
    store = tmp_path / "store"
    names = "--datasets wages --methods means drop --jobs 1"
    result = sufrep(f"paper benchmark --data-dir {tmp_path} {names} --store {store}")
    assert (result.code, result.out) == (0, f"10 trial(s) run; results in {store}/benchmark.jsonl\n")
    lines = sufrep(f"paper tables --store {store} --data-dir {tmp_path}").out.splitlines()
    assert lines[0] == "wages: published and ours"
    assert sorted(line.split()[0] for line in lines[3:6]) == ["drop", "gpboost", "means"]
    assert "0.1000  0.2000  0.3000  0.4000  0.5000  0.3000" in "\n".join(lines)


def test_a_benchmark_starts_at_the_first_seed_and_reports_failures(sufrep, data, tmp_path, monkeypatch):
    def fails(seed: int, _target_type: str) -> Any:
        raise RuntimeError(f"no [luck] with seed {seed}")

    monkeypatch.setitem(ENCODING_BUILDERS, "glmm", fails)
    names = "--datasets king_county --models xgboost --methods glmm --seeds 1 --first-seed 6 --jobs 1"
    result = sufrep(f"paper benchmark --data-dir {data} {names} --store {tmp_path}")
    failed = [
        f"king_county xgboost glmm, fold {fold}, failed: RuntimeError: no [luck] with seed 6"
        for fold in range(5)
    ]
    assert result.code == 0
    assert result.out.splitlines() == [*failed, f"5 trial(s) run; results in {tmp_path}/benchmark.jsonl"]


@pytest.mark.parametrize(
    ("command", "plan"),
    [("empirical", EmpiricalPlan), ("benchmark", BenchmarkPlan), ("causal", EffectPlan)],
    ids=lambda one: str(one),
)
def test_without_names_a_command_runs_the_whole_plan(monkeypatch, sufrep, command, plan):
    asked = []
    monkeypatch.setattr(
        "sufrep._paper.run.run_trials", lambda asked_for, *_, **__: asked.append(asked_for) or 0
    )
    assert sufrep(f"paper {command}").code == 0
    assert asked[0].trials() == plan().trials()
    assert asked[0].settings == plan().settings


def test_effects_are_run_resumed_exported_and_drawn(sufrep, tmp_path, monkeypatch):
    monkeypatch.setattr("sufrep._paper.figures.write_chart", lambda _, path: [path])
    options = "--arms small_5 --n 1000 --methods true_psi means_w --first-seed 7 --jobs 1"
    folder, csv = tmp_path / "store", tmp_path / "csv"
    assert sufrep(f"paper causal {options} --seeds 1 --store {folder}").code == 0
    again = sufrep(f"paper causal {options} --seeds 2 --store {folder}")
    assert again.out == (
        f"2 of 4 trials are already in {folder}/causal.jsonl\n"
        f"2 trial(s) run; results in {folder}/causal.jsonl\n"
    )
    assert sufrep(f"paper export --store {folder} --out {csv}").out == f"{csv}/causal.csv\n"
    tables = sufrep(f"paper tables --store {folder}")
    assert tables.out.startswith("linear, small_5: treatment effects, 1,000 rows\n")
    assert sufrep(f"paper tables --store {csv}").out == tables.out
    drawn = sufrep(f"paper figures --store {csv} --out {tmp_path} --methods means_w")
    assert drawn.out == f"{tmp_path}/figure_effects_linear\n"


# Errors


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("causal --arms mian", 2, "'--arms': 'mian' is unknown; did you mean main"),
        (
            "simulations --methods one_hot mens",
            2,
            "'--methods': 'mens' is unknown; did you mean means",
        ),
        (
            "simulations --models boosting",
            2,
            "'--models': 'boosting' is unknown",
        ),
        (
            "simulations --setups flat",
            2,
            "'--setups': 'flat' is unknown; the names are global_lin",
        ),
        ("simulations --latent 0", 2, "Invalid value for '--latent'"),
        ("simulations --levels 0", 2, "Invalid value for '--levels'"),
        (
            "simulations --latent 10 --n 100 --jobs 1",
            2,
            "Invalid value for --n: 100 is not large enough for some level",
        ),
        (
            "simulations --backend dask --scheduler no://x",
            2,
            "Invalid value for --scheduler: 'no://x' is not the address of a running Dask cluster",
        ),
        ("simulations --scheduler tcp://x:1", 2, "it needs --backend dask"),
        ("simulations --backend ray", 2, "'ray' is not one of 'loky', 'dask'"),
        ("simulations --jobs 0", 2, "it cannot be 0"),
        ("simulations --seeds -1", 2, "Invalid value for '--seeds'"),
        ("simulations --seeds 0", 2, "Invalid value for '--seeds'"),
        ("simulations --first-seed -1", 2, "Invalid value for '--first-seed'"),
        ("simulations --n 10", 2, "Invalid value for '--n'"),
        ("simulations --trees 3", 2, "Invalid value for '--trees'"),
        ("simulations --latent 2 two", 2, "Invalid value for '--latent'"),
        ("simulations --seeds 2 3", 2, "unexpected extra argument"),
        ("simulations --seed 3", 2, "No such option: --seed"),
        (
            "empirical --datasets boston",
            2,
            "'--datasets': 'boston' is unknown; the names are pakistan,",
        ),
        ("empirical --methods oracle", 2, "Invalid value for '--methods': 'oracle' is unknown"),
        (
            "empirical --data-dir /no/where --jobs 1",
            1,
            "sufrep: --data-dir is '/no/where', which is not a folder.\nHint",
        ),
        (
            "empirical --jobs 1",
            1,
            "environment variable SUFREP_DATA is not set.\nHint: use --data-dir path/to/folder, or set",
        ),
        ("benchmark --datasets boston", 2, "'--datasets': 'boston' is unknown"),
        ("benchmark --models gboost", 2, "'gboost' is unknown; did you mean"),
        ("benchmark --methods jamesstein", 2, "'jamesstein' is unknown; did you mean james_stein?"),
        ("figures --methods mens", 2, "'--methods': 'mens' is unknown; did you mean means"),
        ("benchmark --backend dask", 2, "No such option: --backend"),
        ("tables", 1, "holds no results that can be compared with one_hot.\nHint: run `sufrep paper"),
        ("tables --format word", 2, "'word' is not one of 'text', 'markdown', 'latex'"),
        ("figures", 1, "holds no cell with both one_hot and another method.\nHint: run `sufrep paper"),
        ("export", 1, "holds no results.\nHint: run `sufrep paper"),
    ],
)
def test_errors_have_a_code_and_a_message(sufrep, monkeypatch, tmp_path, command, code, message):
    monkeypatch.delenv("SUFREP_DATA", raising=False)
    result = sufrep(f"paper {command} --store {tmp_path / 'store'}")
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert "Traceback" not in result.err


def test_figures_of_methods_that_were_not_run_list_the_others(sufrep, store, tmp_path):
    result = sufrep(f"paper figures --store {store} --methods mnl --out {tmp_path}")
    assert result.code == 1
    assert "has no improvement of 'mnl' over one_hot.\nHint: the methods are means.\n" in result.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["tables", "figures", "export"])
def test_a_folder_that_cannot_be_written_is_a_clear_error(sufrep, store, tmp_path, command):
    (tmp_path / "file").touch()
    result = sufrep(f"paper {command} --store {store} --out {tmp_path / 'file' / 'out'}")
    assert result.code == 1
    assert f"Cannot write '{tmp_path / 'file' / 'out'}" in result.err
    assert "\nHint: " in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["simulations.jsonl", "link"])
def test_tables_never_replace_the_store(sufrep, store, tmp_path, name):
    (tmp_path / "link").symlink_to(store / "simulations.jsonl")
    path = store / name if name != "link" else tmp_path / name
    before = path.read_bytes()
    result = sufrep(f"paper tables --store {store} --out {path} --force")
    assert (result.code, result.out) == (2, "")
    assert "is an input, which would be replaced" in result.err
    assert path.read_bytes() == before


def test_an_export_never_replaces_the_export_that_it_reads(sufrep, store, tmp_path):
    assert sufrep(f"paper export --store {store} --out {tmp_path}").code == 0
    before = (tmp_path / "simulations.csv").read_bytes()
    result = sufrep(f"paper export --store {tmp_path} --out {tmp_path}/.")
    assert result.code == 2
    assert "is an input, which would be replaced" in result.err
    assert (tmp_path / "simulations.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "out", "name"),
    [
        ("tables", "notes", "notes"),
        ("export", ".", "simulations.csv"),
        ("figures", ".", "figure_xgboost.png"),
        ("figures", ".", "figure_xgboost.html"),
    ],
)
def test_files_of_another_kind_need_force(sufrep, store, tmp_path, command, out, name):
    (tmp_path / name).write_text("Dear diary, today\nI wrote a test.\n")
    result = sufrep(f"paper {command} --store {store} --out {tmp_path / out}")
    assert (result.code, result.out) == (2, "")
    assert f"{name}' exists and is not a" in result.err
    if command != "figures":  # which takes long
        assert sufrep(f"paper {command} --store {store} --out {tmp_path / out} --force").code == 0
        assert sufrep(f"paper {command} --store {store} --out {tmp_path / out}").code == 0


def test_other_settings_do_not_mix_with_those_of_the_store(sufrep, store):
    before = (store / "simulations.jsonl").read_bytes()
    result = sufrep(f"paper simulations --n 400 --store {store}")
    assert result.code == 1
    assert "holds results with different settings (n).\nHint: name another folder with --store" in result.err
    assert (store / "simulations.jsonl").read_bytes() == before


def test_a_damaged_store_is_a_clear_error(sufrep, tmp_path):
    (tmp_path / "simulations.jsonl").write_text("no json\nno json\n")
    result = sufrep(f"paper tables --store {tmp_path}")
    assert result.code == 1
    assert "is damaged: line 1 of 2 is not a JSON object.\nHint: delete that line" in result.err


# Help


def example(sufrep: Callable[[str], Any], command: str) -> str:
    (line,) = [line for line in sufrep(f"paper {command} --help").out.splitlines() if "Example: " in line]
    return line.partition("Example: ")[2].strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example_that_can_be_typed(sufrep, command):
    program, group, name, *arguments = shlex.split(example(sufrep, command))
    assert (program, group, name) == ("sufrep", "paper", command)
    paper: Any = typer.main.get_command(make_app())
    parsed = paper.commands["paper"].commands[name].make_context(name, arguments)
    assert parsed.params["store"]


def test_the_tests_know_every_command():
    root: Any = typer.main.get_command(make_app())
    assert list(root.commands["paper"].commands) == COMMANDS
