"""What shall be run: frozen plans that expand into trials of one seed each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sufrep._paper.methods import (
    ALPHAS,
    CHOICE_FOLDS,
    CHOICE_TREES,
    COMPONENTS,
    KNOWN_METHODS,
    choose_components,
)
from sufrep._paper.models import MODELS, N_TREES, NATIVE, NATIVE_MODELS, XGBOOST
from sufrep._simulate import SETUPS, Setup
from sufrep.datasets import DATASETS
from sufrep.errors import InvalidParameterError, UnknownMethodError

if TYPE_CHECKING:
    from collections.abc import Sequence

# The methods of the paper's figures and of its appendix, and two rows of reference.
PAPER_METHODS = (
    "one_hot",
    "deviation",
    "difference",
    "helmert",
    "repeated_effect",
    "permutation",
    "multi_permutation",
    "fisher",
    "means",
    "low_rank",
    "sparse_low_rank",
    "mnl",
)
REFERENCES = ("oracle", "bayes")
PAPER_DATASETS = ("pakistan", "ames", "ames_full", "king_county")
# Every level of Pakistan has four rows; with more folds no row could be tested.
MOST_FOLDS = {"pakistan": 4}

# The comparison with peers: our encoder, what everybody knows, and what others have published. Small first.
BENCHMARK_DATASETS = (
    "pakistan",
    "ames",
    "king_county",
    "ames_full",
    "orange_juice",
    "county_murders",
    "insteval",
    "nycflights",
)
BENCHMARK_METHODS = (
    "sufficient",
    "one_hot",
    "target_encoder",
    "james_stein",
    "catboost_encoder",
    "glmm",
    "drop",
)
BENCHMARK_MODELS = ("xgboost", "xgboost_native", "lightgbm_native", "catboost_native", "gpboost")


@dataclass(frozen=True, slots=True)
class Settings:
    """What all trials of a store have in common.

    Attributes
    ----------
    n, p, own_probability
        Size of simulated samples, and the probability of a level of the state's own block.
    n_trees : int
        Trees of a forest.
    n_folds : int
        Folds of a real data set, where its levels have as many rows.
    data_dir : str or None
        Where real data lie; no result depends on it.
    """

    n: int = 10_000
    p: int = 20
    own_probability: float = 0.9
    n_trees: int = N_TREES
    n_folds: int = 4
    data_dir: str | None = None

    def folds_of(self, dataset: str) -> int:
        """Folds of one data set: as many as its levels allow."""
        return min(self.n_folds, MOST_FOLDS.get(dataset, self.n_folds))

    def identity(self) -> dict[str, Any]:
        """All that results depend on beside the trial; a store holds results of one identity only."""
        values = asdict(self)
        del values["data_dir"]
        return {
            **values,
            "xgboost": XGBOOST,
            "choice": {
                "n_components": list(COMPONENTS),
                "alpha": list(ALPHAS),
                "n_folds": CHOICE_FOLDS,
                "fewer_trees": CHOICE_TREES,
            },
        }


@dataclass(frozen=True, slots=True, order=True)
class SimulationTrial:
    """One method with one model on one simulated sample."""

    setup: Setup
    n_latent: int
    levels_per_latent: int
    model: str
    method: str
    seed: int
    k_index_bug: bool = False


@dataclass(frozen=True, slots=True, order=True)
class EmpiricalTrial:
    """One method with one model on one fold of a data set; the seed shuffles the rows before dealing."""

    dataset: str
    model: str
    method: str
    seed: int
    fold: int
    k_index_bug: bool = False


Trial: TypeAlias = SimulationTrial | EmpiricalTrial
Experiment: TypeAlias = Literal["simulations", "empirical", "benchmark"]


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """The 12 cells of the paper's figures, or some of them.

    Attributes
    ----------
    setups, n_latent, levels_per_latent : sequences
        Their product is the cells.
    models, methods : sequences of str
    seeds : sequence of int
        One sample of every cell for each.
    k_index_bug : bool
        Reproduce the slip of the authors' script, which took the index of the chosen k for k itself.
    settings : Settings
    """

    setups: Sequence[Setup] = SETUPS
    n_latent: Sequence[int] = (2, 10)
    levels_per_latent: Sequence[int] = (50, 100)
    models: Sequence[str] = ("xgboost",)
    methods: Sequence[str] = PAPER_METHODS + REFERENCES
    seeds: Sequence[int] = range(20)
    k_index_bug: bool = False
    settings: Settings = field(default_factory=Settings)

    experiment: Experiment = field(default="simulations", init=False)

    def __post_init__(self) -> None:
        _check_names("setups", self.setups, SETUPS)
        _check_names("models", self.models, tuple(MODELS))
        _check_methods(self.methods, (*KNOWN_METHODS, *REFERENCES))

    def trials(self) -> list[Trial]:
        """All trials, seed by seed, so that a run that is stopped has as many of each cell."""
        cells = product(self.seeds, self.setups, self.n_latent, self.levels_per_latent, self.models)
        return [
            SimulationTrial(setup, n_latent, levels, model, method, seed, bug)
            for seed, setup, n_latent, levels, model in cells
            for method, bug in _variants(model, self.methods, self.k_index_bug)
        ]


@dataclass(frozen=True, slots=True)
class EmpiricalPlan:
    """The data sets of the paper's tables, cross-validated.

    Attributes
    ----------
    datasets, models, methods : sequences of str
    seeds : sequence of int
        Repetitions of the cross-validation, each with folds of its own.
    k_index_bug : bool
        As in `SimulationPlan`.
    settings : Settings
    """

    datasets: Sequence[str] = PAPER_DATASETS
    models: Sequence[str] = ("forest", "xgboost")
    methods: Sequence[str] = PAPER_METHODS
    seeds: Sequence[int] = range(1)
    k_index_bug: bool = False
    settings: Settings = field(default_factory=Settings)

    experiment: Experiment = field(default="empirical", init=False)

    def __post_init__(self) -> None:
        _check_names("datasets", self.datasets, tuple(DATASETS))
        _check_names("models", self.models, tuple(MODELS))
        _check_methods(self.methods, KNOWN_METHODS)

    def trials(self) -> list[Trial]:
        """All trials, repetition by repetition."""
        return [
            EmpiricalTrial(dataset, model, method, seed, fold, bug)
            for seed, dataset, model in product(self.seeds, self.datasets, self.models)
            for fold in range(self.settings.folds_of(dataset))
            for method, bug in _variants(model, self.methods, self.k_index_bug)
        ]


@dataclass(frozen=True, slots=True)
class BenchmarkPlan(EmpiricalPlan):
    """Our encoder and its peers, cross-validated; a trial that fails is recorded and ends nothing.

    Attributes
    ----------
    datasets, models, methods, seeds, k_index_bug, settings
        As in `EmpiricalPlan`.
    """

    datasets: Sequence[str] = BENCHMARK_DATASETS
    models: Sequence[str] = BENCHMARK_MODELS
    methods: Sequence[str] = BENCHMARK_METHODS
    settings: Settings = field(default_factory=lambda: Settings(n_folds=5))

    experiment: Experiment = field(default="benchmark", init=False)

    def trials(self) -> list[Trial]:
        """All trials, data set by data set."""
        parts = [replace(self, datasets=(name,)) for name in self.datasets]
        return [trial for part in parts for trial in EmpiricalPlan.trials(part)]


Plan: TypeAlias = SimulationPlan | EmpiricalPlan


def _variants(model: str, methods: Sequence[str], k_index_bug: bool) -> list[tuple[str, bool]]:
    """The slip concerns methods that choose k; a model that reads the group by itself takes no method."""
    if model in NATIVE_MODELS:
        return [(NATIVE, False)]
    return [(method, k_index_bug and choose_components(method)) for method in methods]


def _check_names(parameter: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise InvalidParameterError(parameter, name, f"among {', '.join(known)}")


def _check_methods(methods: Sequence[str], known: Sequence[str]) -> None:
    for method in methods:
        if method not in known:
            raise UnknownMethodError(method, list(known))
