"""The data of a trial: training and test rows, simulated or real, and the truth if it is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sufrep._paper.protocols import protocol_of
from sufrep._simulate import simulate
from sufrep._splits import level_folds
from sufrep.datasets import load_dataset
from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats, Mask
    from sufrep._paper.plan import EmpiricalTrial, Settings, SimulationTrial
    from sufrep._paper.protocols import TargetType
    from sufrep.datasets import Dataset

# A fifth of the rows of each level is tested, the 80/20 split of the paper.
_SIMULATION_FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """What is known of simulated rows: ψ(g) of each row, and E[Y|x, g]."""

    state_probabilities: Floats
    conditional_mean: Floats


@dataclass(frozen=True, slots=True, eq=False)
class TrialData:
    """Covariates, levels and target of all rows, and which rows are tested.

    Attributes
    ----------
    X : ndarray, shape (n, p)
        May contain NaN.
    codes : ndarray of int, shape (n,)
        Of the group, or the first of several.
    y : ndarray, shape (n,)
        Numbers, or classes 0, 1, …
    test : ndarray of bool, shape (n,)
    truth : Truth or None
    target_type : {"continuous", "binary", "multiclass"}
    other_codes : tuple of ndarray of int, each of shape (n,)
        Of further groups.
    """

    X: Floats
    codes: Codes
    y: Floats
    test: Mask
    truth: Truth | None = None
    target_type: TargetType = "continuous"
    other_codes: tuple[Codes, ...] = ()

    @property
    def has_classes(self) -> bool:
        """Whether the target is classes."""
        return self.target_type != "continuous"

    @property
    def all_codes(self) -> tuple[Codes, ...]:
        """The levels of all groups."""
        return (self.codes, *self.other_codes)

    @property
    def table(self) -> Floats:
        """Covariates and, in the last columns, codes of levels; (n, p + n_groups)."""
        return np.column_stack([self.X, *self.all_codes])

    @property
    def group(self) -> int | list[int | str | tuple[int | str, ...]]:
        """The position of the group in the table, or a list of those of several."""
        p = self.X.shape[1]
        return list(range(p, p + len(self.all_codes))) if self.other_codes else p

    def inner(self, n_folds: int, seed: int) -> list[TrialData]:
        """Return the training rows alone, split into folds."""
        rows = ~self.test
        X, codes, y = self.X[rows], self.codes[rows], self.y[rows]
        others = tuple(other[rows] for other in self.other_codes)
        folds = level_folds(codes, n_folds, seed)
        return [
            TrialData(X, codes, y, folds == fold, target_type=self.target_type, other_codes=others)
            for fold in range(n_folds)
        ]


def simulated_data(trial: SimulationTrial, settings: Settings) -> TrialData:
    """Simulate the rows of a trial; its seed sets rows and split."""
    drawn = simulate(
        trial.setup,
        n=settings.n,
        p=settings.p,
        n_latent=trial.n_latent,
        levels_per_latent=trial.levels_per_latent,
        own_probability=settings.own_probability,
        seed=trial.seed,
    )
    truth = Truth(drawn.state_probabilities[drawn.codes], drawn.conditional_mean)
    test = level_folds(drawn.codes, _SIMULATION_FOLDS, trial.seed) == 0
    if not test.any():
        wanted = f"large enough for some level to have {_SIMULATION_FOLDS} rows, one of which is tested"
        raise InvalidParameterError("n", settings.n, wanted)
    return TrialData(drawn.X, drawn.codes, drawn.y, test, truth)


def real_data(trial: EmpiricalTrial, settings: Settings) -> TrialData:
    """Return a data set with one of its folds, published or ours, as test rows."""
    data, codes, *others = _load(trial.dataset, settings.data_dir)
    n_folds = settings.folds_of(trial.dataset)
    folds = level_folds(codes, n_folds, trial.seed) if data.folds is None else data.folds
    test = folds == trial.fold
    if not test.any():
        wanted = (
            f"at most the number of rows of the largest level of {trial.dataset}, {np.bincount(codes).max()}"
        )
        raise InvalidParameterError("n_folds", n_folds, wanted)
    target_type = protocol_of(trial.dataset).target_type
    return TrialData(data.X, codes, data.y, test, target_type=target_type, other_codes=tuple(others))


@lru_cache(maxsize=4)
def _load(name: str, data_dir: str | None) -> tuple[Dataset, Codes, *tuple[Codes, ...]]:
    """Return a data set, and the level of each row as a code, for each of its groups."""
    # Cached, because a worker runs many trials on the same few files.
    data = load_dataset(name, data_dir)
    groups = [data.labels, *data.other_labels.values()]
    codes, *others = (np.unique(labels.astype(str), return_inverse=True)[1] for labels in groups)
    return data, codes, *others
