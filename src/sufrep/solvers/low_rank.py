"""Left singular vectors of the level means, and how many of them stand above noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRACY_WIDOM_95 = 0.9793
"""The 95 % quantile of the Tracy-Widom law of order 1."""


@dataclass(frozen=True, slots=True, eq=False)
class LeftSingular:
    """The first k singular triples of a matrix with one row a level.

    Attributes
    ----------
    vectors : ndarray of shape (n_levels, k)
        Left singular vectors, zero where the singular value is.
    singular_values : ndarray of shape (min(n_levels, n_covariates),)
        All of them, in decreasing order.
    right : ndarray of shape (n_covariates, k)
        Right singular vectors, zero where the singular value is.
    """

    vectors: NDArray[np.float64]
    singular_values: NDArray[np.float64]
    right: NDArray[np.float64]


def left_singular_vectors(matrix: NDArray[np.float64], k: int) -> LeftSingular:
    """First k left singular vectors of a matrix as it is, neither centred nor scaled.

    They are the paper's low-rank representation: where the levels mix k latent states whose means are
    linearly independent, row g of the vectors is sufficient for level g (lemma on low-rank encodings).

    Parameters
    ----------
    matrix : ndarray of shape (n_levels, n_covariates)
        The mean of every covariate within every level.
    k : int
        Number of vectors. Those without a singular value above rounding are zero, since any other choice
        would be arbitrary.

    Returns
    -------
    LeftSingular
        With the signs that :func:`column_signs` gives the *right* vectors: these belong to the covariates,
        so that reordering the levels or adding similar ones flips nothing.
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


def column_signs(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Signs that make the entry of largest absolute value of each column positive.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns)
        Vectors, each known up to its sign.

    Returns
    -------
    ndarray of shape (n_columns,)
        1 or -1; 1 for a column of zeros.
    """
    size = np.abs(matrix)
    # Entries such as (0.5, -0.5) differ by rounding alone, and a bare argmax would let it choose the sign.
    # test_a_tie_for_the_largest_entry_goes_to_the_first guards this.
    largest = np.argmax(size >= (1 - 1e-8) * size.max(axis=0), axis=0)
    return np.where(matrix[largest, np.arange(matrix.shape[1])] < 0, -1.0, 1.0)


def n_components_above_noise(
    mean: NDArray[np.float64], weight: NDArray[np.float64], within_covariance: NDArray[np.float64]
) -> int:
    """Rank of the true level means, as far as the noise of their estimates lets it be seen.

    Divided by their standard errors, the means of levels that do not differ and lie at zero are standard
    normal noise. Singular values of that matrix are compared with the largest that noise would show in 95 %
    of samples, in turn: once k components are found, the next faces the noise of the n_levels - k rows
    and n_covariates - k columns that remain. As the means are not centred, k latent states count as k.

    Parameters
    ----------
    mean : ndarray of shape (n_levels, n_covariates)
        The mean of every covariate within every level.
    weight : ndarray of shape (n_levels,)
        Number of rows behind each mean (the effective number, where rows are weighted). Levels without any
        are left out.
    within_covariance : ndarray of shape (n_covariates, n_covariates)
        Pooled covariance of a single row within its level. It may be singular: directions without noise
        count one component for each dimension that the means span in them.

    Returns
    -------
    int
        At least 1 and at most the smaller of n_levels and n_covariates.
    """
    mean, weight = mean[weight > 0], weight[weight > 0]
    n_levels, n_covariates = len(mean), len(within_covariance)
    noisy, noise_free = _split_by_noise(mean, within_covariance)
    root = np.sqrt(weight)[:, np.newaxis]
    certain = _column_basis(noise_free * root / max(root.max(initial=0.0), 1e-300))
    rows = noisy * root
    # The limit of a noise that vanishes: what such directions explain is explained, the rest faces the noise.
    rows -= certain @ (certain.T @ rows)
    n_certain: int = certain.shape[1]
    n_noisy = _n_above_edge(rows, n_rows=n_levels - n_certain, dof=float(weight.sum()) - n_levels)
    return max(1, min(n_certain + n_noisy, n_levels, n_covariates))


def _n_above_edge(rows: NDArray[np.float64], n_rows: int, dof: float) -> int:
    """Count leading singular values above the noise that remains after each; n_rows dimensions are free."""
    n_columns = rows.shape[1]
    squared = np.linalg.svd(rows, compute_uv=False) ** 2
    found = 0
    while found < min(n_rows, n_columns) and squared[found] > _noise_edge(
        n_rows - found, n_columns - found, dof
    ):
        found += 1
    return found


def _noise_edge(n_rows: int, n_columns: int, dof: float) -> float:
    """Square of the singular value that whitened noise exceeds in 5 % of samples.

    Johnstone (2008, Annals of Statistics 36, 2638-2716), for the largest root of two Wishart matrices. With
    infinite degrees of freedom it is the edge of Marchenko and Pastur with the margin of Johnstone (2001).
    """
    # With levels of two or three rows the covariance that whitens is itself noisy, and the edge of 2001,
    # which takes it as known, lets noise through nearly always.
    # test_noise_stays_below_the_edge_with_two_rows_a_level guards this.
    dof = max(dof, n_columns + 1.0)
    total = dof + n_rows - 1
    narrow = 2 * np.arcsin(np.sqrt((min(n_rows, n_columns) - 0.5) / total))
    wide = 2 * np.arcsin(np.sqrt((max(n_rows, n_columns) - 0.5) / total))
    centre = 2 * np.log(np.tan((wide + narrow) / 2))
    spread = np.cbrt(16 / (total * np.sin(wide + narrow)) ** 2 / (np.sin(wide) * np.sin(narrow)))
    return float(dof * np.exp(centre + TRACY_WIDOM_95 * spread))


def _split_by_noise(
    mean: NDArray[np.float64], within_covariance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coordinates of the means in whitened directions, and in directions without noise, of size at most 1."""
    sd = np.sqrt(np.maximum(np.diagonal(within_covariance), 0.0))
    size = np.abs(mean).max(axis=0, initial=0.0)
    # Relative to the mean: a covariate that is constant within levels may keep a spread of rounding, and to
    # divide by that can overflow. test_a_constant_far_from_zero_is_one_component_whatever_its_rounding.
    constant = sd <= 1e-10 * size
    scaled = mean[:, ~constant] / sd[~constant]
    correlation = within_covariance[np.ix_(~constant, ~constant)] / np.outer(sd[~constant], sd[~constant])
    variance, direction = np.linalg.eigh(correlation)
    flat = variance <= 1e-10 * variance.max(initial=0.0)
    whitened = scaled @ (direction[:, ~flat] / np.sqrt(variance[~flat]))
    collinear = scaled @ direction[:, flat] / max(np.abs(scaled).max(initial=0.0), 1e-300)
    return whitened, np.hstack([mean[:, constant] / np.maximum(size[constant], 1e-300), collinear])


def _column_basis(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orthonormal basis, (n_rows, rank), of the columns of a matrix whose entries are 1 at most."""
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return left[:, values > 1e-8]


def _numerical_rank(singular_values: NDArray[np.float64], dimension: int) -> int:
    """Count singular values above rounding."""
    threshold = singular_values.max(initial=0.0) * dimension * np.finfo(np.float64).eps
    return int(np.count_nonzero(singular_values > threshold))


def _padded(columns: NDArray[np.float64], n_columns: int) -> NDArray[np.float64]:
    """Columns followed by zeros, (n_rows, n_columns)."""
    return np.pad(columns, ((0, 0), (0, n_columns - columns.shape[1])))
