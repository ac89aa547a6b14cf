"""Regression coefficients of many groups that are drawn together as strongly as they are alike."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sufrep._arrays import Codes, Floats

# Relative change of all spreads below which rounds end.
_SETTLED = 1e-2
# Spreads are at least so small a part of the largest one.
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class GroupCoefficients:
    """β_k ~ N(m, diag τ), y ~ N(zᵀβ_k, σ_k²), estimated by empirical Bayes.

    Attributes
    ----------
    means : ndarray, shape (n_groups, q)
        Posterior means of β_k.
    center : ndarray, shape (q,)
        m; what a group without rows gets.
    spread : ndarray, shape (q,)
        τ.
    noise : ndarray, shape (n_groups,)
        σ_k².
    """

    means: Floats
    center: Floats
    spread: Floats
    noise: Floats


def group_grams(columns: Floats, codes: Codes, n_groups: int, weights: Floats | None = None) -> Floats:
    """Sums of squares and products of the columns within every group; (n_groups, q, q).

    Parameters
    ----------
    columns : ndarray, shape (n, q)
    codes : ndarray of int, shape (n,)
        The group of each row.
    n_groups : int
    weights : ndarray, shape (n,), optional
        Frequencies.
    """
    grams = np.zeros((n_groups, columns.shape[1], columns.shape[1]))
    for group, rows in rows_by_level(codes):
        own = columns[rows]
        grams[group] = (own if weights is None else own * weights[rows, None]).T @ own
    return grams


def rows_by_level(codes: Codes) -> Iterator[tuple[int, Codes]]:
    """The rows of each level that has some, in the order of the levels; no code is negative."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for start, end in pairwise([*starts, len(codes)]):
        yield int(codes[order[start]]), order[start:end]


def shrink_coefficients(
    grams: Floats,
    *,
    center: Floats,
    noise: Floats,
    variance: float,
    noise_weight: float,
    common_noise: bool,
    n_rounds: int,
) -> GroupCoefficients:
    """Estimate m and τ with the coefficients that they shrink, from sums alone.

    m is found by generalised least squares, and τ by EM, which takes the expected square of β_k − m: where
    groups do not differ in a coefficient, its τ falls to nothing and they share it.

    Parameters
    ----------
    grams : ndarray, shape (n_groups, q + 1, q + 1)
        Sums of squares and products of z, whose first entry is 1, and, last, y.
    center : ndarray, shape (q,)
        First guess of m.
    noise : ndarray, shape (n_groups,)
        First guess of σ_k².
    variance : float
        Of y, roughly; the first guess of all τ.
    noise_weight : float
        Rows of that variance that the noise of each group is drawn by.
    common_noise : bool
        One σ² for all groups.
    n_rounds : int
        Most rounds.
    """
    gram, cross, square = grams[:, :-1, :-1], grams[:, :-1, -1], grams[:, -1, -1]
    spread = np.full(len(center), variance)
    means = np.tile(center, (len(grams), 1))
    for _ in range(n_rounds):
        precision, right = gram / noise[:, None, None], cross / noise[:, None]
        covariance: Floats = np.linalg.inv(precision + np.diag(1 / spread)).astype(np.float64)
        center = _center(precision, right, covariance, center)
        means = np.einsum("kij,kj->ki", covariance, right + center / spread)
        before = spread
        spread = ((means - center) ** 2 + np.diagonal(covariance, axis1=1, axis2=2)).mean(axis=0)
        spread = np.maximum(spread, _LEAST_SPREAD * spread.max())
        residual = square - 2 * (means * cross).sum(axis=1)
        residual += np.einsum("kij,kij->k", gram, means[:, :, None] * means[:, None, :] + covariance)
        residual, size = np.maximum(residual, 0.0), gram[:, 0, 0]
        if common_noise:
            residual, size = np.full(len(grams), residual.sum()), np.full(len(grams), size.sum())
        noise = (residual + noise_weight * variance) / (size + noise_weight)
        if (np.abs(spread - before) < _SETTLED * before).all():
            break
    return GroupCoefficients(means, center, spread, noise)


def _center(gram: Floats, cross: Floats, covariance: Floats, otherwise: Floats) -> Floats:
    """The centre m of β_k ~ N(m, diag τ) by generalised least squares; (q,).

    Group k has the precision (G⁻¹ + diag τ)⁻¹ = G − G S G with S = (G + diag 1/τ)⁻¹, so that G needs no
    inverse. What no group says anything about stays as it was.

    Parameters
    ----------
    gram, cross : ndarray, shapes (n_groups, q, q) and (n_groups, q)
        G and Zᵀy, in units of the noise.
    covariance : ndarray, shape (n_groups, q, q)
        S.
    otherwise : ndarray, shape (q,)
        m before.
    """
    explained = gram @ covariance
    precision = (gram - explained @ gram).sum(axis=0)
    right = (cross - np.einsum("kij,kj->ki", explained, cross)).sum(axis=0)
    ridge = np.diag(1e-9 * np.diag(precision) + 1e-12 * max(float(np.trace(precision)), 1e-300))
    return np.asarray(np.linalg.solve(precision + ridge, right + ridge @ otherwise))
