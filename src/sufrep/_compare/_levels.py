"""What a report shows of the levels: their positions in a plane, their means, and their spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from sufrep._compare._run import make_steps
from sufrep._names import DROP
from sufrep.encoders._display import principal_plane

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats
    from sufrep._compare._data import ComparisonData
    from sufrep.representation import Representation


# The smallest numbers of rows of the groups of levels that a report lists.
_SIZES = (1, 2, 5, 10, 50, 200)


@dataclass(frozen=True, slots=True, eq=False)
class LevelPlane:
    """Positions of the levels in a plane.

    Attributes
    ----------
    points : ndarray, shape (n_levels, 2)
    titles : list of 2 str
        Titles of the axes.
    """

    points: Floats
    titles: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """How much the levels differ in each direction of their covariates.

    Attributes
    ----------
    shares : ndarray, shape (min(n_levels, p),)
        Shares of the variance between levels.
    noise : float
        The first share if levels are assigned to the same rows at random.
    """

    shares: Floats
    noise: float


def level_plane(data: ComparisonData, representation: Representation, means: Floats) -> LevelPlane | None:
    """Place the levels by their vectors; a single column is plotted against the means of the target."""
    values: Any = representation.values
    values = values.toarray() if hasattr(values, "toarray") else values
    order = representation.positions(data.levels.tolist())
    values, n_columns = values[order], values.shape[1]
    if not n_columns:
        return None
    if n_columns == 1:
        return LevelPlane(np.column_stack([values, means]), [representation.columns[0], "mean of the target"])
    points, titles = principal_plane(values, np.maximum(data.counts, 1).astype(float))
    return LevelPlane(points, titles)


def target_means(data: ComparisonData) -> tuple[Floats, str]:
    """Return the mean target of each level (n_levels,), or the share of one class, and its title."""
    y, title = data.y, f"mean of {data.target_name}"
    if data.task != "regression":
        classes, counts = np.unique(y, return_counts=True)
        shown = classes[-1] if data.task == "binary" else classes[np.argmax(counts)]
        y, title = y == shown, f"share of {data.target_name} = {shown}"
    means = group_means(data.codes, np.asarray(y, dtype=np.float64)[:, None], len(data.levels))
    return means[:, 0], title


def means_spectrum(data: ComparisonData, seed: int) -> Spectrum | None:
    """Return the spectrum of the covariate means, in units of the spread within levels."""
    columns = np.asarray(Pipeline(make_steps(data, DROP, seed)).fit_transform(data.X), dtype=np.float64)
    columns = columns[:, np.isfinite(columns).any(axis=0)]
    if not columns.shape[1]:
        return None
    columns = np.where(np.isfinite(columns), columns, np.nanmean(columns, axis=0))
    squared = _squared_singular_values(columns, data.codes)
    shuffled = np.random.default_rng(seed).permutation(data.codes)
    total = squared.sum()
    if total <= 0:
        return None
    return Spectrum(squared / total, float(_squared_singular_values(columns, shuffled)[0] / total))


@dataclass(frozen=True, slots=True)
class SizeGroup:
    """Levels with about as many rows: ``sizes`` in words, how many they are, and their rows together."""

    sizes: str
    n_levels: int
    n_rows: int


def size_groups(counts: Codes) -> list[SizeGroup]:
    """Group levels by their number of rows.

    Parameters
    ----------
    counts : ndarray of int, shape (n_levels,)

    Examples
    --------
    >>> size_groups(np.array([1, 1, 3, 700]))[:2]
    [SizeGroup(sizes='1', n_levels=2, n_rows=2), SizeGroup(sizes='2 to 4', n_levels=1, n_rows=3)]
    """
    found = []
    for first, following in zip(_SIZES, (*_SIZES[1:], None), strict=True):
        inside = counts[(counts >= first) & (True if following is None else counts < following)]
        last = None if following is None else following - 1
        sizes = f"{first} or more" if last is None else f"{first} to {last}" if last > first else f"{first}"
        found.append(SizeGroup(sizes, len(inside), int(inside.sum())))
    return found


def group_means(codes: Codes, columns: Floats, n_levels: int) -> Floats:
    """Return the means of columns (n, p) within levels; (n_levels, p)."""
    counts = np.maximum(np.bincount(codes, minlength=n_levels), 1)
    sums = [np.bincount(codes, column, minlength=n_levels) for column in columns.T]
    return np.column_stack(sums) / counts[:, None]


def _squared_singular_values(columns: Floats, codes: Codes) -> Floats:
    """Return those of the means of standardised columns, levels weighted by their number of rows."""
    n_levels = int(codes.max()) + 1
    centred = columns - columns.mean(axis=0)
    means = group_means(codes, centred, n_levels)
    spread: Floats = np.sqrt(np.mean((centred - means[codes]) ** 2, axis=0))
    overall: Floats = np.sqrt(np.mean(centred**2, axis=0))
    # A column that is constant within levels has no spread there; one that is constant adds nothing.
    unit: Floats = np.where(spread > 1e-9 * overall, spread, overall)
    known = np.broadcast_to(unit > 0, means.shape)
    scaled = np.divide(means, unit, out=np.zeros_like(means), where=known)
    share = np.sqrt(np.bincount(codes, minlength=n_levels) / len(codes))
    return np.asarray(np.linalg.svd(share[:, None] * scaled, compute_uv=False) ** 2)
