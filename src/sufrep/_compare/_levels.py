"""What the report shows of the levels: places in a plane, means of the target, spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from sufrep._compare._methods import CODINGS, DROP, make_steps
from sufrep.encoders import METHODS, PermutationEncoder
from sufrep.encoders._display import principal_plane

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats
    from sufrep._compare._problem import Problem
    from sufrep.representation import Representation

# Methods whose vectors place like levels near each other.
MAPPABLE = frozenset(
    name for name, (kind, _) in METHODS.items() if name not in CODINGS and kind is not PermutationEncoder
)


@dataclass(frozen=True, slots=True, eq=False)
class LevelPlane:
    """Places of the levels.

    Attributes
    ----------
    points : ndarray, shape (n_levels, 2)
    titles : list of 2 str
        Of the axes.
    """

    points: Floats
    titles: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """How much the levels differ in each direction of their covariates.

    Attributes
    ----------
    shares : ndarray, shape (min(n_levels, p),)
        Of the variance between levels.
    noise : float
        The first share that the same rows give when levels are dealt at random.
    """

    shares: Floats
    noise: float


def level_plane(problem: Problem, representation: Representation, means: Floats) -> LevelPlane | None:
    """The levels in the plane of their vectors; of one column, against their means of the target."""
    values: Any = representation.values
    values = values.toarray() if hasattr(values, "toarray") else values
    order = representation.positions(problem.levels.tolist())
    values, n_columns = values[order], values.shape[1]
    if not n_columns:
        return None
    if n_columns == 1:
        return LevelPlane(np.column_stack([values, means]), [representation.columns[0], "mean of the target"])
    points, titles = principal_plane(values, np.maximum(problem.counts, 1).astype(float))
    return LevelPlane(points, titles)


def target_means(problem: Problem) -> tuple[Floats, str]:
    """The mean target of each level, of classes the share of one of them; (n_levels,) and its name."""
    y, title = problem.y, f"mean of {problem.target_name}"
    if problem.task != "regression":
        classes, counts = np.unique(y, return_counts=True)
        shown = classes[-1] if problem.task == "binary" else classes[np.argmax(counts)]
        y, title = y == shown, f"share of {problem.target_name} = {shown}"
    return group_means(problem.codes, np.asarray(y, dtype=np.float64)[:, None], len(problem.levels))[
        :, 0
    ], title


def means_spectrum(problem: Problem, seed: int) -> Spectrum | None:
    """Spectrum of the means of the covariates, in units of their spread within levels."""
    columns = np.asarray(Pipeline(make_steps(problem, DROP, seed)).fit_transform(problem.X), dtype=np.float64)
    columns = columns[:, np.isfinite(columns).any(axis=0)]
    if not columns.shape[1]:
        return None
    columns = np.where(np.isfinite(columns), columns, np.nanmean(columns, axis=0))
    squared = _spectrum(columns, problem.codes)
    shuffled = np.random.default_rng(seed).permutation(problem.codes)
    total = squared.sum()
    if total <= 0:
        return None
    return Spectrum(squared / total, float(_spectrum(columns, shuffled)[0] / total))


def group_means(codes: Codes, columns: Floats, n_levels: int) -> Floats:
    """Means of columns (n, p) within levels; (n_levels, p)."""
    counts = np.maximum(np.bincount(codes, minlength=n_levels), 1)
    sums = [np.bincount(codes, column, minlength=n_levels) for column in columns.T]
    return np.column_stack(sums) / counts[:, None]


def _spectrum(columns: Floats, codes: Codes) -> Floats:
    n_levels = int(codes.max()) + 1
    centred = columns - columns.mean(axis=0)
    means = group_means(codes, centred, n_levels)
    spread: Floats = np.sqrt(np.mean((centred - means[codes]) ** 2, axis=0))
    overall: Floats = np.sqrt(np.mean(centred**2, axis=0))
    # What is constant within all levels has no spread there; what is constant at all says nothing.
    unit: Floats = np.where(spread > 1e-9 * overall, spread, overall)
    known = np.broadcast_to(unit > 0, means.shape)
    scaled = np.divide(means, unit, out=np.zeros_like(means), where=known)
    share = np.sqrt(np.bincount(codes, minlength=n_levels) / len(codes))
    return np.asarray(np.linalg.svd(share[:, None] * scaled, compute_uv=False) ** 2)
