"""Intervals and tests for differences over folds and seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats

# Why there is no test.
EQUAL_GAINS = "the gains are equal in all folds"
_FEW_SPLITS = ("no fold", "one fold", "two folds")
_MIN_SPLITS = len(_FEW_SPLITS)
# As a share of the scores.
_ROUNDING = 1e-9


def student_interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return Student's interval of a mean; NaN for a single value."""
    if len(values) < 2:
        return float("nan"), float("nan")
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * stats.sem(values)
    return float(values.mean() - half), float(values.mean() + half)


@dataclass(frozen=True, slots=True)
class Spread:
    """How much the difference of one split varies.

    Attributes
    ----------
    variance : float
    freedom : float
        Degrees of freedom of the variance.
    """

    variance: float
    freedom: float

    @classmethod
    def of(cls, differences: Floats) -> Spread:
        """Return the spread of differences over two or more splits."""
        return cls(float(differences.var(ddof=1)), len(differences) - 1)

    @classmethod
    def of_rows(cls, splits: Sequence[Floats]) -> Spread:
        """Return what differences of single rows say about the spread of their means in a split.

        Rows are many, so they say it far more precisely than the few splits do.

        Parameters
        ----------
        splits : sequence of ndarray
            The differences of the test rows of each split, two or more.
        """
        variance = float(np.mean([rows.var(ddof=1) / len(rows) for rows in splits]))
        return cls(variance, sum(len(rows) - 1 for rows in splits))


def rounding_error(*scores: Floats) -> float:
    """Return how far apart differences of scores may be through rounding alone.

    0.8 − 0.7 and 0.7 − 0.6 are not equal in floating point, and two solvers of one system agree to about ten
    digits.
    """
    return _ROUNDING * max((float(np.abs(values).max()) for values in scores if len(values)), default=0.0)


def why_no_test(differences: Floats, rounding: float = 0.0) -> str | None:
    """Return the reason if differences over splits allow no test of their mean, else None.

    A test compares the mean with the spread of the differences, so it needs a spread that can be trusted.
    One split has none. That of two splits has one degree of freedom: scores that are counts, such as an
    accuracy, often make it zero or nearly so by chance. Equal differences have none either; a p-value of 0
    would be a claim about rows that were never seen.

    Parameters
    ----------
    differences : ndarray, shape (n_splits,)
    rounding : float, default=0.0
        Differences are equal if they are no further apart than this; see `rounding_error`.

    Examples
    --------
    >>> why_no_test(np.array([0.1, 0.3]))
    'two folds'
    >>> why_no_test(np.array([0.1, 0.1, 0.1]))
    'the gains are equal in all folds'
    """
    if len(differences) < _MIN_SPLITS:
        return _FEW_SPLITS[len(differences)]
    return EQUAL_GAINS if np.ptp(differences) <= rounding else None


def paired_p_values(
    differences: Floats, effective_n_folds: float, rounding: float = 0.0, spread: Spread | None = None
) -> tuple[float, float]:
    """Return two-sided p-values of a mean difference over folds: of the plain and of the corrected t-test.

    The plain test treats splits as independent, which they are not, because they share training rows: it
    finds differences where there are none. The corrected one keeps its size (examples/size_and_power.py).

    Parameters
    ----------
    differences : ndarray, shape (n_splits,)
        One for each fold of each repetition.
    effective_n_folds : float
        K, such that test sets are 1/(K − 1) of the training sets.
    rounding : float, default=0.0
        See `why_no_test`.
    spread : Spread or None
        What is known about the spread; by default that of the differences.

    Returns
    -------
    plain, corrected : float
        With J splits the variance factor is 1/J, and 1/J + 1/(K − 1) (Nadeau and Bengio 2003; Bouckaert and
        Frank 2004). NaN where `why_no_test` has a reason.
    """
    if why_no_test(differences, rounding):
        return math.nan, math.nan
    n_splits, mean = len(differences), differences.mean()
    spread = spread or Spread.of(differences)
    factors = (1 / n_splits, _corrected_factor(n_splits, effective_n_folds))
    plain, corrected = (
        2 * float(stats.t.sf(abs(mean) / np.sqrt(factor * spread.variance), spread.freedom))
        for factor in factors
    )
    return plain, corrected


def corrected_error(differences: Floats, effective_n_folds: float, spread: Spread | None = None) -> float:
    """Return the standard error of a mean difference that belongs to the corrected test.

    Parameters
    ----------
    differences : ndarray, shape (n_splits,)
        Two or more.
    effective_n_folds : float
    spread : Spread or None
        See `paired_p_values`.
    """
    factor = _corrected_factor(len(differences), effective_n_folds)
    return float(np.sqrt(factor * (spread or Spread.of(differences)).variance))


def corrected_interval(
    differences: Floats,
    effective_n_folds: float,
    rounding: float = 0.0,
    level: float = 0.95,
    spread: Spread | None = None,
) -> tuple[float, float]:
    """Return the interval of a mean difference that belongs to the corrected test of `paired_p_values`.

    Parameters
    ----------
    differences : ndarray, shape (n_splits,)
    effective_n_folds : float
    rounding : float, default=0.0
        See `why_no_test`.
    level : float, default=0.95
    spread : Spread or None
        See `paired_p_values`.

    Returns
    -------
    low, high : float
        NaN where `why_no_test` has a reason.
    """
    if why_no_test(differences, rounding):
        return math.nan, math.nan
    spread = spread or Spread.of(differences)
    error = corrected_error(differences, effective_n_folds, spread)
    half = float(stats.t.ppf((1 + level) / 2, spread.freedom)) * error
    return float(differences.mean() - half), float(differences.mean() + half)


def p_value_text(p: float, n_digits: int = 3) -> str:
    """Format a p-value: as a bound rather than 0, and as an empty text if there is none.

    Examples
    --------
    >>> p_value_text(0.0312), p_value_text(1e-9), p_value_text(float("nan"))
    ('0.031', '< 0.001', '')
    """
    if math.isnan(p):
        return ""
    least = 10.0**-n_digits
    return f"{p:.{n_digits}f}" if p >= least else f"< {least:.{n_digits}f}"


def p_value_statement(p: float) -> str:
    """Say what a p-value is, within a sentence.

    Examples
    --------
    >>> p_value_statement(0.0312), p_value_statement(0.0)
    ('p = 0.031', 'p < 0.001')
    """
    text = p_value_text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


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


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Adjust p-values so that those below a rate control the false-discovery rate (Benjamini, Hochberg 1995).

    NaN stays NaN and does not count as a test.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, float("nan"), 0.03]))
    array([0.03, 0.04,  nan, 0.04])
    """
    adjusted = np.full(len(p_values), np.nan)
    order = np.argsort(p_values, kind="stable")[: np.count_nonzero(~np.isnan(p_values))]
    scaled = p_values[order] * len(order) / np.arange(1, len(order) + 1)
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return adjusted


def _corrected_factor(n_splits: int, effective_n_folds: float) -> float:
    return 1 / n_splits + 1 / (effective_n_folds - 1)
