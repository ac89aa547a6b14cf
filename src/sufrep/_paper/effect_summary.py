"""From estimates of treatment effects to bias, error and coverage, each with its Monte Carlo error."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sufrep._paper.names import EFFECT_ARMS, EFFECT_METHODS, EFFECT_MODELS, EFFECT_REFERENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats
    from sufrep._paper.store import Record

# Model, arm, number of rows.
EffectCell: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Measured:
    """A value and its Monte Carlo standard error; NaN where there are too few seeds."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class EffectSummary:
    """One method in one cell. Errors are estimates minus the truth of the same sample.

    Attributes
    ----------
    model, arm, method : str
    n, n_seeds : int
        Rows of a sample, and number of samples.
    bias : Measured
        Mean error.
    rmse : Measured
        Root mean square error.
    relative : Measured or None
        RMSE over that of the true state probabilities, on the seeds that both have; None without any.
    coverage : Measured
        Share of the 95 % intervals that contain the truth.
    calibration : Measured
        Mean standard error over the standard deviation of the errors.
    length : Measured
        Mean length of the intervals.
    dropped : Measured
        Mean share of rows that were dropped.
    """

    model: str
    arm: str
    n: int
    method: str
    n_seeds: int
    bias: Measured
    rmse: Measured
    relative: Measured | None
    coverage: Measured
    calibration: Measured
    length: Measured
    dropped: Measured


def effect_summaries(records: Sequence[Record]) -> list[EffectSummary]:
    """Return every method in every cell; models, arms and methods in the order of their names' lists."""
    cells: dict[EffectCell, dict[str, dict[int, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        cells[record["model"], record["arm"], record["n"]][record["method"]][record["seed"]] = record
    return [
        _summary(cell, method, cells[cell][method], cells[cell].get(EFFECT_REFERENCE, {}))
        for cell in sorted(cells, key=_rank)
        for method in EFFECT_METHODS
        if method in cells[cell]
    ]


def _rank(cell: EffectCell) -> tuple[int, int, int]:
    model, arm, n = cell
    return EFFECT_MODELS.index(model), EFFECT_ARMS.index(arm), n


def _summary(
    cell: EffectCell, method: str, ours: dict[int, Record], reference: dict[int, Record]
) -> EffectSummary:
    model, arm, n = cell
    found = list(ours.values())
    errors = _errors(found)
    std_errors = np.array([record["std_error"] for record in found])
    covered = np.array([record["lower"] <= record["truth"] <= record["upper"] for record in found], float)
    common = sorted(ours.keys() & reference.keys())
    relative = None
    if common:
        theirs = _errors([reference[seed] for seed in common])
        relative = _relative(_errors([ours[seed] for seed in common]), theirs)
    return EffectSummary(
        model,
        arm,
        n,
        method,
        len(found),
        _mean(errors),
        _root_mean_square(errors),
        relative,
        _mean(covered),
        _calibration(std_errors, errors),
        _mean(np.array([record["upper"] - record["lower"] for record in found])),
        _mean(np.array([record["dropped"] for record in found])),
    )


def _errors(records: Sequence[Record]) -> Floats:
    return np.array([record["estimate"] - record["truth"] for record in records])


def _mean(values: Floats) -> Measured:
    return Measured(float(values.mean()), _sd(values) / math.sqrt(len(values)))


def _root_mean_square(errors: Floats) -> Measured:
    square = _mean(errors**2)
    root = math.sqrt(square.value)
    return Measured(root, _over(square.error, 2 * root))


def _relative(ours: Floats, theirs: Floats) -> Measured:
    """The ratio of two root mean squares over the same seeds, with the error of the delta method."""
    above, below = float((ours**2).mean()), float((theirs**2).mean())
    ratio = _over(above, below)
    rest = _mean((ours**2 - ratio * theirs**2) / below) if below else Measured(math.nan, math.nan)
    root = math.sqrt(ratio)
    return Measured(root, _over(rest.error, 2 * root))


def _calibration(std_errors: Floats, errors: Floats) -> Measured:
    """Mean standard error over the standard deviation, whose relative error is that of normal errors."""
    ratio = _over(float(std_errors.mean()), _sd(errors))
    return Measured(ratio, _over(ratio, math.sqrt(2 * (len(errors) - 1))))


def _sd(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def _over(above: float, below: float) -> float:
    return above / below if below else math.nan
