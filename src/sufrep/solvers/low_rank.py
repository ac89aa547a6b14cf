"""Left singular vectors of the level means, and how many of them are above the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sufrep._arrays import Floats

TRACY_WIDOM_95 = 0.9793
"""The 95 % quantile of the Tracy-Widom distribution of order 1."""


@dataclass(frozen=True, slots=True, eq=False)
class LeftSingular:
    """The first k singular triplets of a matrix with one row per level.

    Attributes
    ----------
    vectors : ndarray of shape (n_levels, k)
        Left singular vectors, zero where the singular value is zero.
    singular_values : ndarray of shape (min(n_levels, n_covariates),)
        All of them, in decreasing order.
    right : ndarray of shape (n_covariates, k)
        Right singular vectors, zero where the singular value is zero.
    """

    vectors: Floats
    singular_values: Floats
    right: Floats


def left_singular_vectors(matrix: Floats, k: int) -> LeftSingular:
    """First k left singular vectors of a matrix, which is neither centered nor scaled.

    They are the paper's low-rank representation: if the levels are mixtures of k latent states whose means
    are linearly independent, row g of the vectors is sufficient for level g (lemma on low-rank encodings).

    Parameters
    ----------
    matrix : ndarray of shape (n_levels, n_covariates)
        The mean of each covariate within each level.
    k : int
        Number of vectors. Vectors beyond the numerical rank are arbitrary, so they are set to zero.

    Returns
    -------
    LeftSingular
        The signs are those that :func:`column_signs` gives the *right* vectors. These belong to the
        covariates, so reordering the levels or adding similar ones does not flip a sign.
    """
    left, values, right_t = np.linalg.svd(matrix, full_matrices=False)
    n_kept = min(k, _numerical_rank(values, max(matrix.shape)))
    right = right_t[:n_kept].T
    signs = column_signs(right)
    return LeftSingular(
        vectors=_padded(left[:, :n_kept] * signs, k),
        singular_values=values,
        right=_padded(right * signs, k),
    )


def column_signs(matrix: Floats) -> Floats:
    """Signs that make the entry with the largest absolute value in each column positive.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns)
        Vectors that are determined up to their sign.

    Returns
    -------
    ndarray of shape (n_columns,)
        1 or -1; 1 for a column of zeros.
    """
    size = np.abs(matrix)
    # Absolute values such as those of (0.5, -0.5) may differ by rounding, which a plain argmax would let
    # decide (test_a_tie_for_the_largest_entry_goes_to_the_first).
    largest = np.argmax(size >= (1 - 1e-8) * size.max(axis=0), axis=0)
    return np.where(matrix[largest, np.arange(matrix.shape[1])] < 0, -1.0, 1.0)


def n_components_above_noise(
    mean: Floats, weight: Floats, within_covariance: Floats, *, centered: bool = False
) -> int:
    """Number of components of the level means that are significantly above their noise.

    If all true level means were zero, the sample means divided by their standard errors would be standard
    normal noise. The singular values of this matrix are tested in turn against the 95 % quantile of the
    largest singular value of noise: once k components are found, the next is compared with the noise of an
    (n_levels - k, n_covariates - k) matrix. The means are not centered, so k latent states give k components.

    Parameters
    ----------
    mean : ndarray of shape (n_levels, n_covariates)
        The mean of each covariate within each level.
    weight : ndarray of shape (n_levels,)
        Number of rows behind each mean (the effective number if rows are weighted). Levels without rows are
        ignored.
    within_covariance : ndarray of shape (n_covariates, n_covariates)
        Pooled covariance of the rows within levels. It may be singular: in directions without noise, every
        dimension that the means span is a component.
    centered : bool, default=False
        Whether the weighted average of the means was subtracted from them, which leaves noise of one
        dimension less, and perhaps nothing else: the result may then be 0.

    Returns
    -------
    int
        At least 1, unless ``centered``, and at most the smaller of n_levels and n_covariates.
    """
    mean, weight = mean[weight > 0], weight[weight > 0]
    n_levels, n_covariates = len(mean), len(within_covariance)
    noisy, noise_free = _split_by_noise(mean, within_covariance)
    root = np.sqrt(weight)[:, np.newaxis]
    certain = _column_basis(noise_free * root / max(root.max(initial=0.0), 1e-300))
    rows = noisy * root
    # Components without noise are removed before the others are tested, the limit of a vanishing noise.
    rows -= certain @ (certain.T @ rows)
    n_certain: int = certain.shape[1]
    n_rows = n_levels - n_certain - centered
    n_noisy = _n_above_edge(rows, n_rows=n_rows, dof=float(weight.sum()) - n_levels)
    return max(0 if centered else 1, min(n_certain + n_noisy, n_levels, n_covariates))


def _n_above_edge(rows: Floats, n_rows: int, dof: float) -> int:
    """Count the leading singular values above the noise edge; `n_rows` is the number of free dimensions."""
    n_columns = rows.shape[1]
    squared = np.linalg.svd(rows, compute_uv=False) ** 2
    found = 0
    while found < min(n_rows, n_columns) and squared[found] > noise_edge(
        n_rows - found, n_columns - found, dof
    ):
        found += 1
    return found


def noise_edge(n_rows: int, n_columns: int, dof: float) -> float:
    """Square of the singular value that the largest one of whitened noise exceeds in 5 % of samples.

    Johnstone (2008, Annals of Statistics 36, 2638-2716), for the largest root of two Wishart matrices. With
    infinite degrees of freedom it is the Marchenko-Pastur edge with the margin of Johnstone (2001).
    """
    # With two or three rows per level the whitening covariance is itself noisy. The edge of 2001 treats it as
    # known and nearly always lets noise through (test_noise_stays_below_the_edge_with_two_rows_per_level).
    dof = max(dof, n_columns + 1.0)
    total = dof + n_rows - 1
    narrow = 2 * np.arcsin(np.sqrt((min(n_rows, n_columns) - 0.5) / total))
    wide = 2 * np.arcsin(np.sqrt((max(n_rows, n_columns) - 0.5) / total))
    center = 2 * np.log(np.tan((wide + narrow) / 2))
    spread = np.cbrt(16 / (total * np.sin(wide + narrow)) ** 2 / (np.sin(wide) * np.sin(narrow)))
    return float(dof * np.exp(center + TRACY_WIDOM_95 * spread))


def _split_by_noise(mean: Floats, within_covariance: Floats) -> tuple[Floats, Floats]:
    """Coordinates of the means in whitened directions, and, scaled to at most 1, in noise-free ones."""
    sd = np.sqrt(np.maximum(np.diagonal(within_covariance), 0.0))
    size = np.abs(mean).max(axis=0, initial=0.0)
    # Relative to the mean: a covariate that is constant within levels may have a tiny standard deviation from
    # rounding, and dividing by it can overflow
    # (test_rounding_of_a_constant_far_from_zero_is_not_a_component).
    constant = sd <= 1e-10 * size
    scaled = mean[:, ~constant] / sd[~constant]
    correlation = within_covariance[np.ix_(~constant, ~constant)] / np.outer(sd[~constant], sd[~constant])
    variance, direction = np.linalg.eigh(correlation)
    flat = variance <= 1e-10 * variance.max(initial=0.0)
    whitened = scaled @ (direction[:, ~flat] / np.sqrt(variance[~flat]))
    collinear = scaled @ direction[:, flat] / max(np.abs(scaled).max(initial=0.0), 1e-300)
    return whitened, np.hstack([mean[:, constant] / np.maximum(size[constant], 1e-300), collinear])


def _column_basis(matrix: Floats) -> Floats:
    """Orthonormal basis, (n_rows, rank), of the columns of a matrix whose entries are at most 1."""
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return left[:, values > 1e-8]


def _numerical_rank(singular_values: Floats, dimension: int) -> int:
    """Count the singular values above rounding error."""
    threshold = singular_values.max(initial=0.0) * dimension * np.finfo(np.float64).eps
    return int(np.count_nonzero(singular_values > threshold))


def _padded(columns: Floats, n_columns: int) -> Floats:
    """The columns, followed by columns of zeros, (n_rows, n_columns)."""
    return np.pad(columns, ((0, 0), (0, n_columns - columns.shape[1])))
