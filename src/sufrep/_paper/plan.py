"""What to run: frozen plans that expand into trials of one seed each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sufrep._models import PAPER_TREES, PAPER_XGBOOST
from sufrep._names import DATASET_NAMES, SETUPS, Setup
from sufrep._paper.effects import LINEAR_METHODS, N_FOLDS, sample_size
from sufrep._paper.methods import (
    ALPHAS,
    CHOICE_FOLDS,
    CHOICE_TREES,
    COMPONENTS,
    chooses_components,
)
from sufrep._paper.models import TUNED_XGBOOST
from sufrep._paper.names import (
    BENCHMARK_DATASETS,
    EFFECT_ARMS,
    EFFECT_METHODS,
    EFFECT_MODELS,
    NATIVE,
    NATIVE_MODELS,
    PAPER_DATASETS,
    PAPER_METHODS,
    PAPER_MODELS,
    REFERENCES,
    SIMULATED_METHODS,
    TRIAL_METHODS,
)
from sufrep._paper.protocols import protocol_of
from sufrep.errors import InvalidParameterError, UnknownMethodError, check_name

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings shared by all trials of a store.

    Attributes
    ----------
    n, p, own_probability
        Size of simulated samples, and the probability that a level is from the block of its state.
    n_trees : int
        Number of trees of a forest.
    n_folds : int
        Number of folds of a real data set, if its levels have enough rows and it brings no folds.
    data_dir : str or None
        Folder of the real data; no result depends on it.
    """

    n: int = 10_000
    p: int = 20
    own_probability: float = 0.9
    n_trees: int = PAPER_TREES
    n_folds: int = 4
    data_dir: str | None = None

    def folds_of(self, dataset: str) -> int:
        """Return the number of folds of a data set: its own, or ours, limited by the size of its levels."""
        protocol = protocol_of(dataset)
        return protocol.own_folds or min(self.n_folds, protocol.max_folds or self.n_folds)

    def identity(self) -> dict[str, Any]:
        """Return everything but the trial that results depend on; all results in a store share it."""
        values = asdict(self)
        del values["data_dir"]
        return {
            **values,
            "xgboost": PAPER_XGBOOST,
            "xgboost_tuned": TUNED_XGBOOST,
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
    """One method with one model on one fold of a data set.

    The seed is that of the model, and shuffles rows before the split if the data set brings no folds.
    """

    dataset: str
    model: str
    method: str
    seed: int
    fold: int
    k_index_bug: bool = False


@dataclass(frozen=True, slots=True, order=True)
class EffectTrial:
    """One estimate of a treatment effect on one simulated sample of n rows."""

    arm: str
    n: int
    model: str
    method: str
    seed: int


PredictionTrial: TypeAlias = SimulationTrial | EmpiricalTrial
Trial: TypeAlias = PredictionTrial | EffectTrial
Experiment: TypeAlias = Literal["simulations", "empirical", "benchmark", "causal"]


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """The 12 cells of the paper's figures, or some of them.

    Attributes
    ----------
    setups, n_latent, levels_per_latent : sequences
        Their product gives the cells.
    models, methods : sequences of str
    seeds : sequence of int
        Each gives one sample of every cell.
    k_index_bug : bool
        Reproduce a bug in the authors' script, which used the index of the chosen k instead of k.
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
        _check_known("setups", self.setups, SETUPS)
        _check_known("models", self.models, PAPER_MODELS)
        _check_methods(self.methods, SIMULATED_METHODS)
        _check_positive("n_latent", self.n_latent)
        _check_positive("levels_per_latent", self.levels_per_latent)

    def trials(self) -> list[Trial]:
        """Return all trials, seed by seed, so that an interrupted run has equally many of each cell."""
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
        Without models, or without methods, those of each data set's protocol.
    seeds : sequence of int
        Repetitions of the cross-validation, each with its own folds unless the data set brings them.
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
        _check_known("datasets", self.datasets, DATASET_NAMES)
        _check_known("models", self.models, PAPER_MODELS)
        _check_methods(self.methods, TRIAL_METHODS)
        for dataset in self.datasets:
            kind = protocol_of(dataset).target_type
            if kind != "continuous" and not self._entries(dataset):
                wanted = f"a data set that one of the models and methods can predict; its target is {kind}"
                raise InvalidParameterError("datasets", dataset, wanted)

    def trials(self) -> list[Trial]:
        """Return all trials, repetition by repetition; entries that do not suit the target are left out."""
        return [
            EmpiricalTrial(dataset, model, method, seed, fold, bug)
            for seed, dataset in product(self.seeds, self.datasets)
            for model, methods in self._entries(dataset).items()
            for fold in range(self.settings.folds_of(dataset))
            for method, bug in methods
        ]

    def _entries(self, dataset: str) -> dict[str, list[tuple[str, bool]]]:
        """Return (method, k_index_bug) pairs by model, without what does not suit the target."""
        protocol = protocol_of(dataset)
        models, methods = self.models or protocol.models, self.methods or protocol.methods
        suitable = {
            model: [
                (method, bug)
                for method, bug in _variants(model, methods, self.k_index_bug)
                if protocol.suits(model, method)
            ]
            for model in models
        }
        return {model: methods for model, methods in suitable.items() if methods}


@dataclass(frozen=True, slots=True)
class BenchmarkPlan(EmpiricalPlan):
    """Our encoder and its peers, cross-validated; a trial that fails is recorded and the run continues.

    Attributes
    ----------
    datasets, models, methods, seeds, k_index_bug, settings
        As in `EmpiricalPlan`.
    """

    datasets: Sequence[str] = BENCHMARK_DATASETS
    models: Sequence[str] = ()
    methods: Sequence[str] = ()
    settings: Settings = field(default_factory=lambda: Settings(n_folds=5))

    experiment: Experiment = field(default="benchmark", init=False)

    def trials(self) -> list[Trial]:
        """Return all trials, data set by data set."""
        parts = [replace(self, datasets=(name,)) for name in self.datasets]
        return [trial for part in parts for trial in EmpiricalPlan.trials(part)]


@dataclass(frozen=True, slots=True)
class EffectSettings:
    """Settings shared by all treatment effects of a store."""

    n_folds: int = N_FOLDS

    def identity(self) -> dict[str, Any]:
        """Return everything but the trial that results depend on; all results in a store share it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class EffectPlan:
    """Treatment effects with a group as confounder, on simulated samples.

    Attributes
    ----------
    arms, models, methods : sequences of str
    seeds : sequence of int
        Each gives one sample of every arm.
    n : int or None
        Number of rows; by default that of the arm. Arms with groups of a given size have their own.
    settings : EffectSettings
    """

    arms: Sequence[str] = EFFECT_ARMS
    models: Sequence[str] = ("linear",)
    methods: Sequence[str] = EFFECT_METHODS
    seeds: Sequence[int] = range(100)
    n: int | None = None
    settings: EffectSettings = field(default_factory=EffectSettings)

    experiment: Experiment = field(default="causal", init=False)

    def __post_init__(self) -> None:
        _check_known("arms", self.arms, EFFECT_ARMS)
        _check_known("models", self.models, EFFECT_MODELS)
        _check_methods(self.methods, EFFECT_METHODS)
        if self.n is not None:
            _check_positive("n", (self.n,))

    def trials(self) -> list[Trial]:
        """Return all trials, seed by seed; methods without a choice of models have the linear one only."""
        return [
            EffectTrial(arm, sample_size(arm, self.n), model, method, seed)
            for seed, arm, model, method in product(self.seeds, self.arms, self.models, self.methods)
            if model == "linear" or method not in LINEAR_METHODS
        ]


Plan: TypeAlias = SimulationPlan | EmpiricalPlan | EffectPlan


def _variants(model: str, methods: Sequence[str], k_index_bug: bool) -> list[tuple[str, bool]]:
    """Return (method, k_index_bug) pairs: the bug affects methods that choose k; native models have one."""
    if model in NATIVE_MODELS:
        return [(NATIVE, False)]
    return [(method, k_index_bug and chooses_components(method)) for method in methods]


def _check_known(parameter: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        check_name(parameter, name, known)


def _check_positive(parameter: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        if number < 1:
            raise InvalidParameterError(parameter, number, "an integer of at least 1")


def _check_methods(methods: Sequence[str], known: Sequence[str]) -> None:
    for method in methods:
        if method not in known:
            raise UnknownMethodError(method, list(known))
