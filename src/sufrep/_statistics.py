"""Intervals and tests for differences over folds and seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats


def student_interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return Student's interval of a mean; NaN for a single value."""
    if len(values) < 2:
        return float("nan"), float("nan")
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * stats.sem(values)
    return float(values.mean() - half), float(values.mean() + half)


def paired_p_values(differences: Floats, effective_n_folds: float) -> tuple[float, float]:
    """Return two-sided p-values of a mean difference over folds: of the plain and of the corrected t-test.

    Parameters
    ----------
    differences : ndarray, shape (n_splits,)
        One for each fold of each repetition.
    effective_n_folds : float
        K, such that test sets are 1/(K − 1) of the training sets.

    Returns
    -------
    plain, corrected : float
        With J splits the variance factor is 1/J, and 1/J + 1/(K − 1) (Nadeau and Bengio 2003; Bouckaert and
        Frank 2004); J − 1 degrees of freedom. NaN for one split; 1 if all differences are zero.
    """
    n_splits = len(differences)
    if n_splits < 2:
        return float("nan"), float("nan")
    mean, variance = differences.mean(), differences.var(ddof=1)
    if variance == 0:
        p = 1.0 if mean == 0 else 0.0
        return p, p
    factors = (1 / n_splits, _corrected_factor(n_splits, effective_n_folds))
    plain, corrected = (
        2 * float(stats.t.sf(abs(mean) / np.sqrt(factor * variance), n_splits - 1)) for factor in factors
    )
    return plain, corrected


def corrected_interval(
    differences: Floats, effective_n_folds: float, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of a mean difference that belongs to the corrected test of `paired_p_values`.

    Parameters
    ----------
    differences : ndarray, shape (n_splits,)
    effective_n_folds : float
    level : float, default=0.95

    Returns
    -------
    low, high : float
        NaN for one split.
    """
    n_splits = len(differences)
    if n_splits < 2:
        return float("nan"), float("nan")
    error = np.sqrt(_corrected_factor(n_splits, effective_n_folds) * differences.var(ddof=1))
    half = stats.t.ppf((1 + level) / 2, n_splits - 1) * error
    return float(differences.mean() - half), float(differences.mean() + half)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple tests (Holm 1979).

    NaN stays NaN and does not count as a test.

    Examples
    --------
    >>> holm([0.01, 0.04, float("nan"), 0.03])
    [0.03, 0.06, nan, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(len(values), np.nan)
    order = np.argsort(values, kind="stable")[: int((~np.isnan(values)).sum())]
    factors = len(order) - np.arange(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * values[order]), 1.0)
    return [float(value) for value in adjusted]


def _corrected_factor(n_splits: int, effective_n_folds: float) -> float:
    return 1 / n_splits + 1 / (effective_n_folds - 1)
