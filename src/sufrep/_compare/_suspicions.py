"""What should make a reader suspicious: columns that give the target away, and functions of the group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sufrep._compare._run import make_steps
from sufrep._names import DROP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sufrep._arrays import Codes, Floats
    from sufrep._compare._data import ComparisonData
    from sufrep._compare._results import Summary
    from sufrep._compare._run import Scoring

# A loss below this share of that of a constant prediction is too good to be true.
_NEAR_PERFECT = 0.1
# The error of a sum as a share of the spread of the target; rounded parts of a sum leave less than this.
_EXACT = 0.01
# Sums of more columns are not looked for.
_MOST_ADDED = 30
_MOST_ROWS = 20_000
_MOST_NAMED = 8
_LARGEST = float(np.finfo(np.float32).max)


def suspicions(data: ComparisonData, summaries: Sequence[Summary], scoring: Scoring) -> Iterator[str]:
    """Yield notes on columns that a reader should look at before believing the results."""
    names, columns = _features(data)
    if not len(names):
        return
    named = list(zip(names, columns.T, strict=True))
    of_group = [name for name, column in named if _is_function(column, data.codes)]
    if of_group:
        yield (
            f"The same in all rows of a level of {data.group_name!r}: {_listed(of_group)}. Models can tell "
            "levels apart by them, also if the group is left out."
        )
    rows = np.random.default_rng(0).permutation(len(data.y))[:_MOST_ROWS]
    adding = []
    if data.task == "regression":
        adding = _adding_up([(name, column[rows]) for name, column in named], data.y[rows])
    if adding:
        yield (
            f"{data.target_name!r} is nearly a weighted sum of other columns: {_listed(adding)}. Are they "
            "known before the target is?"
        )
    if not _is_near_perfect(data, summaries, scoring):
        return
    giving = [name for name, column in named if _loss_of_one(column[rows], data, rows) < _NEAR_PERFECT]
    if giving:
        yield (
            f"Nearly perfect predictions are suspicious. Columns that nearly give {data.target_name!r} away "
            f"by themselves: {_listed(giving)}. Are they known before the target is?"
        )
    elif not adding:
        yield "Nearly perfect predictions are suspicious: check that every column is known before the target."


def _features(data: ComparisonData) -> tuple[list[str], Floats]:
    """Return names and values of the columns that are not groups."""
    steps = Pipeline(make_steps(data, DROP, 0))
    columns = np.asarray(steps.fit_transform(data.X), dtype=np.float64)
    return [str(name) for name in steps.get_feature_names_out()], columns


def _is_function(column: Floats, codes: Codes) -> bool:
    """Whether a column that varies is constant within levels, some of which have several rows."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    if len(starts) == len(codes):
        return False
    filled = np.where(np.isnan(column), np.inf, column)[order]
    low, high = np.minimum.reduceat(filled, starts), np.maximum.reduceat(filled, starts)
    return bool((low == high).all() and low.min() < low.max())


def _is_near_perfect(data: ComparisonData, summaries: Sequence[Summary], scoring: Scoring) -> bool:
    score = summaries[0].score
    if not scoring.is_loss or not math.isfinite(score):
        return False
    if scoring.in_units and data.task == "regression":
        return score < _NEAR_PERFECT * float(np.std(data.y))
    if scoring.name == "log loss":
        shares = np.unique(data.y, return_counts=True)[1] / len(data.y)
        return score < _NEAR_PERFECT * float(-(shares * np.log(shares)).sum())
    return False


def _loss_of_one(column: Floats, data: ComparisonData, rows: Codes) -> float:
    """Return the error of a tree on one column in the second half of the rows, as a share of a constant's."""
    half = len(rows) // 2
    y, classes = data.y[rows], data.task != "regression"
    tree = (DecisionTreeClassifier if classes else DecisionTreeRegressor)(random_state=0)
    column = np.where(np.abs(column) < _LARGEST, column, np.nan)  # trees refuse infinity
    predicted = tree.fit(column[:half, None], y[:half]).predict(column[half:, None])
    if classes:
        _, counts = np.unique(y[half:], return_counts=True)
        usual = 1 - counts.max() / counts.sum()
        return float(np.mean(predicted != y[half:]) / usual) if usual else math.inf
    spread = float(np.std(y[half:]))
    return float(np.sqrt(np.mean((predicted - y[half:]) ** 2)) / spread) if spread else math.inf


def _adding_up(named: Sequence[tuple[str, Floats]], y: Floats) -> list[str]:
    """Return the names of two or more columns of which the target is nearly a weighted sum, if there are any.

    Columns are added as long as a linear fit to the first half of the rows leaves an error in the second
    half, the one first that explains most of the rest (orthogonal matching pursuit); then those are removed
    that the sum does not need. Regional sales that add up to the total sales are found, which no column
    reveals by itself.

    Parameters
    ----------
    named : sequence of (str, ndarray of shape (n,))
    y : ndarray, shape (n,)
    """
    half = len(y) // 2
    # What is missing in a sum counts as nothing.
    columns = np.nan_to_num(np.column_stack([column for _, column in named]), posinf=0.0, neginf=0.0)
    centre, spread = columns[:half].mean(axis=0), columns[:half].std(axis=0)
    usable = np.flatnonzero((spread > 0) & np.isfinite(spread))
    target, unit = y - y[:half].mean(), float(np.std(y[half:]))
    if half <= 3 * _MOST_ADDED or not unit or len(usable) < 2:
        return []
    columns = (columns[:, usable] - centre[usable]) / spread[usable]

    def rest(chosen: list[int]) -> Floats:
        weights = np.linalg.lstsq(columns[:half, chosen], target[:half], rcond=None)[0]
        return np.asarray(target - columns[:, chosen] @ weights)

    def is_exact(chosen: list[int]) -> bool:
        return bool(np.sqrt(np.mean(rest(chosen)[half:] ** 2)) < _EXACT * unit)

    chosen: list[int] = []
    while not (chosen and is_exact(chosen)):
        if len(chosen) == min(_MOST_ADDED, len(usable)):
            return []
        explained = np.abs(columns[:half].T @ (rest(chosen) if chosen else target)[:half])
        explained[chosen] = -1.0
        chosen.append(int(np.argmax(explained)))
    for column in list(chosen):
        others = [other for other in chosen if other != column]
        if others and is_exact(others):
            chosen = others
    return [named[usable[j]][0] for j in sorted(chosen)] if len(chosen) > 1 else []


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(map(repr, names[:_MOST_NAMED])) + more
