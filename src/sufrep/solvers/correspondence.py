"""Correspondence analysis of a group against other categories: shares over many levels, in few numbers.

The mean of a category within a level of the group is the level's shares over the category, as many numbers
as the category has levels. Under the assumption of the lemmas P(H | G = g) = Σ_l P(H | L = l)·P(L = l | G =
g), so the rank of the matrix of shares is at most the number of hidden states, and a few of its singular
vectors keep what the shares say. `score_categories` gives every level of the other categories so many
scores; the mean of the scores of a level's rows is the level's description.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats

# Matrices with at most this many entries are decomposed densely, which is exact and then as fast.
_MOST_DENSE = 1_000_000
# Relative precision of the squared singular values of larger ones.
_TOLERANCE = 1e-6
# Singular values are correlations: those below this are zero, up to rounding.
_ZERO = 1e-7
# Singular values as close as this are equal, up to rounding.
_EQUAL = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Category:
    """A category as codes.

    Attributes
    ----------
    codes : ndarray of int, shape (n,)
        The level of each row; −1 for rows without one.
    n_levels : int
    """

    codes: Codes
    n_levels: int

    def look_up(self, scores: Floats) -> Floats:
        """The scores of each row's level, 0 for rows without one; (n, k)."""
        return np.vstack([scores, np.zeros(scores.shape[1])])[self.codes]


@dataclass(frozen=True, slots=True, eq=False)
class CategoryScores:
    """Scores of the levels of several categories, which describe the levels of a group.

    Attributes
    ----------
    scores : list of ndarray, each of shape (n_levels of the category, k)
        The scores of a row are the sum of those of its levels. They have mean 0 in each category, and over
        the rows a standard deviation of 1; 0 for a level without rows.
    singular_values : ndarray, shape (k,)
        In decreasing order.
    """

    scores: list[Floats]
    singular_values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class BinScores:
    """Scores of the bins of a number.

    Attributes
    ----------
    edges : ndarray, shape (n_edges,)
        As `bin_edges` returns them.
    scores : ndarray, shape (n_edges + 2, k)
        Those of the bins, of which null is the last one.
    """

    edges: Floats
    scores: Floats


def score_categories(
    group: Category, others: Sequence[Category], weights: Floats | None = None, *, n_scores: int
) -> CategoryScores:
    """Score the levels of other categories by regularised correspondence analysis.

    With N the number of rows of each level of the group (r in total) and level of the other categories (c in
    total), out of T, the scores are the leading right singular vectors of (N − rcᵀ/T)/√((r + r̄)(c + c̄)),
    each entry divided by √(c + c̄). Adding the means r̄ and c̄ keeps rare levels, whose shares are noise, from
    dominating, as they do in plain correspondence analysis.

    Parameters
    ----------
    group : Category
        Rows without a level do not count.
    others : sequence of Category
    weights : ndarray, shape (n,), optional
    n_scores : int
        Largest number k of scores; there are fewer if the rank of the matrix is smaller.
    """
    counts = _co_occurrences(group, others, weights)
    rows, columns = (np.asarray(counts.sum(axis=axis), dtype=np.float64).ravel() for axis in (1, 0))
    vectors, values = _right_vectors(_ScaledCounts.of(counts, rows, columns), n_scores)
    scale = np.sqrt(columns + _mean_of_positive(columns))
    scores = vectors / np.where(scale > 0, scale, 1.0)[:, None]
    ends = np.cumsum([other.n_levels for other in others])[:-1]
    split = zip(np.split(scores, ends), np.split(columns, ends), strict=True)
    parts = [_centered(part, own) for part, own in split]
    spread = _spread(group, others, parts, weights)
    # A score without any spread is constant within every category, so its singular value is rounding.
    kept = spread > _ZERO * np.abs(scores).max(axis=0, initial=0.0)
    parts = [part[:, kept] / spread[kept] for part in parts]
    return CategoryScores(parts, values[kept])


def bin_edges(values: Array, weights: Floats | None = None, *, n_bins: int = 8) -> Floats:
    """Edges that make categories of a number: its own values if they are few, else quantiles; (n_edges,).

    A value belongs to the bin given by the number of edges that are not above it. Nulls and rows of weight 0
    do not count.
    """
    numbers = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(numbers)
    if weights is not None:
        known &= weights > 0
    distinct, codes = np.unique(numbers[known], return_inverse=True)
    if len(distinct) <= n_bins:
        return distinct[1:]
    weight = np.bincount(codes, None if weights is None else weights[known])
    # Without a division, so that rounding does not decide which side a value is on.
    below, steps = n_bins * np.cumsum(weight), np.arange(1, n_bins) * weight.sum()
    last = np.searchsorted(below, steps)
    return np.unique(distinct[np.minimum(last + 1, len(distinct) - 1)])


def bin_codes(values: Array, edges: Floats) -> Category:
    """The bins of a number, null as the last of them."""
    numbers = np.asarray(values, dtype=np.float64)
    codes = np.searchsorted(edges, numbers, side="right")
    return Category(np.where(np.isnan(numbers), len(edges) + 1, codes), len(edges) + 2)


def _co_occurrences(group: Category, others: Sequence[Category], weights: Floats | None) -> sparse.csr_array:
    """Weight of the rows of each pair of levels, the other categories next to each other."""
    blocks = []
    for other in others:
        both = np.flatnonzero((group.codes >= 0) & (other.codes >= 0))
        weight = np.ones(len(both)) if weights is None else weights[both]
        place = group.codes[both], other.codes[both]
        blocks.append(sparse.coo_array((weight, place), shape=(group.n_levels, other.n_levels)))
    return sparse.csr_array(sparse.hstack(blocks))


@dataclass(frozen=True, slots=True, eq=False)
class _ScaledCounts:
    """The matrix D(N − rcᵀ/T)E as a sparse part DNE minus an outer product."""

    counts: sparse.csr_array
    left: Floats
    right: Floats

    @classmethod
    def of(cls, counts: sparse.csr_array, rows: Floats, columns: Floats) -> _ScaledCounts:
        total = rows.sum()
        left, right = (
            1 / np.sqrt(np.where(sums > 0, sums + _mean_of_positive(sums), 1.0)) for sums in (rows, columns)
        )
        scaled = sparse.csr_array(sparse.diags_array(left) @ counts @ sparse.diags_array(right))
        root = np.sqrt(total) if total > 0 else 1.0
        return cls(scaled, left * rows / root, right * columns / root)

    def dense(self) -> Floats:
        return np.asarray(self.counts.toarray() - np.outer(self.left, self.right))

    def operator(self) -> LinearOperator:
        transposed = sparse.csr_array(self.counts.T)
        return LinearOperator(
            self.counts.shape,
            matvec=lambda x: self.counts @ x.ravel() - self.left * (self.right @ x.ravel()),
            rmatvec=lambda x: transposed @ x.ravel() - self.right * (self.left @ x.ravel()),
            matmat=lambda x: self.counts @ x - np.outer(self.left, self.right @ x),
            rmatmat=lambda x: transposed @ x - np.outer(self.right, self.left @ x),
            dtype=np.float64,
        )


def _right_vectors(matrix: _ScaledCounts, k: int) -> tuple[Floats, Floats]:
    """The leading right singular vectors whose singular values are not zero, and these values."""
    n_rows, n_columns = matrix.counts.shape
    if n_rows * n_columns <= _MOST_DENSE or k >= min(n_rows, n_columns):
        _, values, right = np.linalg.svd(matrix.dense(), full_matrices=False)
    else:
        # Any start will do, but it must be the same one each time, and no singular vector itself.
        first = np.random.default_rng(0).normal(size=min(n_rows, n_columns))
        _, values, right = svds(matrix.operator(), k=k, v0=first, tol=_TOLERANCE)
        order = np.argsort(-values)
        values, right = values[order], right[order]
    found = int(np.count_nonzero(values > _ZERO))
    vectors = np.array(right[:found].T)
    start = 0
    for end in range(1, found + 1):
        if end == found or values[end - 1] - values[end] > _EQUAL * values[0]:
            vectors[:, start:end] = _canonical_basis(vectors[:, start:end])
            start = end
    return vectors[:, :k], values[: min(k, found)]


def _canonical_basis(vectors: Floats) -> Floats:
    """The basis of a space that depends on the space only, (n, t), given any other one.

    Singular vectors of equal singular values are determined up to a rotation, and each one up to its sign. In
    small tables of counts equal values are common. The first vector of this basis is the one that points
    farthest in the direction of any coordinate; the next ones the same in what is left.
    """
    basis = np.zeros((vectors.shape[1], 0))
    for _ in range(vectors.shape[1]):
        rest = vectors - (vectors @ basis) @ basis.T
        length = np.sqrt((rest**2).sum(axis=1))
        # Of equal lengths, up to rounding, the first counts.
        first = int(np.argmax(length >= (1 - _EQUAL) * length.max()))
        basis = np.column_stack([basis, rest[first] / length[first]])
    return np.asarray(vectors @ basis)


def _centered(scores: Floats, weight: Floats) -> Floats:
    """Scores of the levels of a category with mean 0, and 0 where there is no row."""
    total = weight.sum()
    if not total > 0:
        return np.zeros_like(scores)
    return np.where(weight[:, None] > 0, scores - weight @ scores / total, 0.0)


def _spread(
    group: Category, others: Sequence[Category], scores: Sequence[Floats], weights: Floats | None
) -> Floats:
    """Standard deviation of the scores of the rows that count; (k,)."""
    rows = sum_of_scores(others, scores)[group.codes >= 0]
    own = np.ones(len(rows)) if weights is None else weights[group.codes >= 0]
    center = own @ rows / own.sum()
    return np.asarray(np.sqrt(own @ (rows - center) ** 2 / own.sum()))


def sum_of_scores(categories: Sequence[Category], scores: Sequence[Floats]) -> Floats:
    """The scores of each row, given those of the levels; (n, k)."""
    rows = np.zeros((len(categories[0].codes), scores[0].shape[1]))
    for one, table in zip(categories, scores, strict=True):
        rows += one.look_up(table)
    return rows


def _mean_of_positive(sums: Floats) -> float:
    return float(sums[sums > 0].mean()) if (sums > 0).any() else 0.0
