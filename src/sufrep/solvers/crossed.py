"""Effects of several factors at once: a linear mixed model with crossed and nested random effects.

y = m + Σ_j u_j[level of factor j] + e with u_j ~ N(0, τ_j) over the levels of factor j and e ~ N(0, σ²/w).
Nothing is stored but the sparse matrix of levels: the equations are solved by conjugate gradients, and the
traces that variances need are estimated with a random vector. Small systems are solved exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg, sparse

from sufrep._arrays import blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Codes, Floats, Mask

# Smallest and largest variance of a factor, relative to that of the target.
_SMALLEST, _LARGEST = 1e-9, 4.0
# Smallest effective number of levels, relative to the number of levels, if it is estimated.
_LEAST_FREEDOM = 1e-2
# Rounds before factors that explain nothing leave.
_PATIENCE = 2
# Right-hand sides that are solved at a time, and the tolerance, where only errors depend on them.
_ERROR_BLOCK, _ERROR_TOLERANCE = 8, 1e-2
# Factors with at most so many levels have exact errors: those of few levels are confounded the most.
_EXACT_ERRORS = 32
# Levels of about the same size whose errors are estimated together.
_ALIKE = 64


@dataclass(frozen=True, slots=True)
class CrossedSettings:
    """How far a fit goes.

    Attributes
    ----------
    rounds : int
        Maximum number of updates of the variances.
    settle : float
        They have settled if none changes by more than this share.
    tolerance, final_tolerance : float
        Of conjugate gradients: relative residual between updates, and after the last one.
    most_iterations : int
        Of conjugate gradients, each time.
    n_probes : int
        Number of random vectors that traces are estimated with.
    most_exact : int
        Up to so many levels in all factors together, equations and traces are solved exactly.
    least_share : float
        Factors that explain a smaller share of the variance leave.
    most_power : float
        The update of a variance is extrapolated by at most this power.
    least_noise : float
        Smallest σ², relative to the variance of the target. Where there are as many levels as rows, nothing
        would be left but rounding errors (test_a_weight_counts_how_often_a_row_came).
    """

    rounds: int = 8
    settle: float = 0.1
    tolerance: float = 0.03
    final_tolerance: float = 1e-3
    most_iterations: int = 100
    n_probes: int = 1
    most_exact: int = 256
    least_share: float = 1e-4
    most_power: float = 2.0
    least_noise: float = 1e-4


QUICK = CrossedSettings()


@dataclass(frozen=True, slots=True, eq=False)
class CrossedDesign:
    """Which level of each factor a row has.

    Attributes
    ----------
    matrix : csr_array, shape (n, n_columns)
        An indicator for each level, times the root of the row's weight.
    transposed : csr_array, shape (n_columns, n)
    starts : ndarray of int, shape (n_factors + 1,)
        The first column of each factor.
    size : ndarray, shape (n_columns,)
        Sum of the weights of each level.
    weights : ndarray, shape (n,)
    """

    matrix: sparse.csr_array
    transposed: sparse.csr_array
    starts: Codes
    size: Floats
    weights: Floats

    @classmethod
    def of(
        cls, codes: Sequence[Codes], n_levels: Sequence[int], weights: Floats | None = None
    ) -> CrossedDesign:
        """Arrange rows.

        Parameters
        ----------
        codes : sequence of ndarray of int, each of shape (n,)
            The level of each row; −1 for none.
        n_levels : sequence of int
        weights : ndarray, shape (n,), optional
            Precisions times frequencies.
        """
        n, n_factors = len(codes[0]), len(codes)
        starts = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
        w = np.ones(n) if weights is None else weights
        root = np.sqrt(w)
        place, value = np.empty((n, n_factors), dtype=np.int32), np.empty((n, n_factors))
        for j, code in enumerate(codes):
            place[:, j] = np.maximum(code, 0) + starts[j]
            value[:, j] = np.where(code < 0, 0.0, root)
        ends = np.arange(0, n * n_factors + 1, n_factors)
        shape = (n, int(starts[-1]))
        matrix = sparse.csr_array((value.ravel(), place.ravel(), ends), shape=shape)
        transposed = sparse.csr_array(matrix.T)
        return cls(matrix, transposed, starts, np.asarray(transposed @ root), np.asarray(w, dtype=np.float64))

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.starts) - 1

    def part(self, factor: int) -> slice:
        """The columns of a factor."""
        return slice(int(self.starts[factor]), int(self.starts[factor + 1]))

    def select(self, factors: Sequence[int]) -> tuple[CrossedDesign, Mask]:
        """Return the design of some factors, and which columns these are."""
        chosen = np.zeros(len(self.size), dtype=bool)
        for factor in factors:
            chosen[self.part(factor)] = True
        n_levels = [int(self.starts[factor + 1] - self.starts[factor]) for factor in factors]
        starts = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
        transposed = sparse.csr_array(self.transposed[np.flatnonzero(chosen)])
        matrix = sparse.csr_array(transposed.T)
        return CrossedDesign(matrix, transposed, starts, self.size[chosen], self.weights), chosen

    def times(self, vectors: Floats) -> Floats:
        """Z'WZ v, the overall mean of Zv taken out; (n_columns, n_vectors)."""
        mean = (self.size @ vectors) / self.weights.sum()
        return np.asarray(self.transposed @ (self.matrix @ vectors) - self.size[:, None] * mean)

    def dense(self) -> Floats:
        """The matrix of `times`; (n_columns, n_columns)."""
        products = (self.transposed @ self.matrix).toarray()
        return np.asarray(products - np.outer(self.size, self.size / self.weights.sum()))

    def diagonal(self) -> Floats:
        """Its diagonal; (n_columns,)."""
        return np.asarray(self.size * (1 - self.size / self.weights.sum()))

    def sums(self, column: Floats) -> Floats:
        """Weighted sums by level of a column (n,); (n_columns,)."""
        return np.asarray(self.transposed @ (np.sqrt(self.weights) * column))

    def fitted(self, effects: Floats) -> Floats:
        """The sum of the effects of each row's levels; (n,)."""
        root = np.sqrt(self.weights)
        return np.asarray(np.divide(self.matrix @ effects, root, out=np.zeros_like(root), where=root > 0))


@dataclass(frozen=True, slots=True, eq=False)
class CrossedFit:
    """A fitted model.

    Attributes
    ----------
    effects : tuple of ndarray, each of shape (n_levels,)
        Best linear unbiased predictions û of each factor; 0 for levels without rows.
    intercept : float
    variances : ndarray, shape (n_factors,)
        τ; 0 for factors that left.
    noise : float
        σ².
    residuals : ndarray, shape (n,)
        e, without the intercept.
    n_rounds, n_iterations : int
        Updates of the variances, and steps of conjugate gradients.
    """

    effects: tuple[Floats, ...]
    intercept: float
    variances: Floats
    noise: float
    residuals: Floats
    n_rounds: int = 0
    n_iterations: int = 0


def fit_crossed(
    design: CrossedDesign,
    y: Floats,
    *,
    n_rows: float | None = None,
    start: tuple[Floats, float] | None = None,
    settings: CrossedSettings = QUICK,
    seed: int = 0,
) -> CrossedFit:
    """Estimate variances by restricted maximum likelihood, and predict the effects.

    Each round solves (Z'WZ + Λ)u = Z'Wy and counts the effective number of levels of each factor, γ_j = q_j −
    λ_j tr(block j of the inverse). Then σ² = e'We/(n − 1 − Σγ), and τ_j moves towards u_j'u_j/γ_j.

    Parameters
    ----------
    design : CrossedDesign
    y : ndarray, shape (n,)
    n_rows : float, optional
        Sum of the frequencies, if weights are precisions too; by default the sum of the weights.
    start : (ndarray of shape (n_factors,), float), optional
        Variances to start from: τ and σ².
    settings : CrossedSettings, optional
        With ``rounds=0`` the variances stay as they are given.
    seed : int, optional
        Of the random vectors.
    """
    weight = design.weights
    total = float(weight.sum())
    count = total if n_rows is None else n_rows
    center = float(weight @ y) / total
    target = y - center
    spread = float(weight @ target**2) / total
    n_factors = design.n_factors
    if not spread > 0:
        return _nothing(design, center, target)
    state = _State(
        np.full(n_factors, spread / (2 * n_factors)), spread / 2, spread, design.sums(target), settings
    )
    if start is not None:
        state.variances, state.noise = np.maximum(start[0], 1e-4 * spread), start[1]
        if not settings.rounds:
            state.variances = np.maximum(start[0], _SMALLEST * spread)
    rng = np.random.default_rng(seed)
    stay, small, effects = list(range(n_factors)), design, np.zeros(len(design.size))
    variances = np.zeros(n_factors)
    equations = _Equations(small, settings, rng)
    n_rounds = 0
    for number in range(settings.rounds):
        u, trace = equations.solve_with_traces(state.penalty(small), state.sums)
        residuals = target - small.fitted(u)
        residuals = residuals - float(weight @ residuals) / total
        settled = state.update(small, u, trace, float(weight @ residuals**2), count, exact=equations.exact)
        n_rounds += 1
        shares = [
            float(small.size[small.part(j)] @ u[small.part(j)] ** 2) / total / spread
            for j in range(small.n_factors)
        ]
        found = [j for j, share in enumerate(shares) if share > settings.least_share or number < _PATIENCE]
        if len(found) < len(stay):
            stay = [stay[j] for j in found]
            if not stay:
                break
            small, chosen = small.select(found)
            state.variances, state.sums = state.variances[found], state.sums[chosen]
            equations = equations.select(small, chosen)
        if settled:
            break
    if stay:
        u = equations.solve(state.penalty(small), state.sums)
        variances[stay] = state.variances
        for j, factor in enumerate(stay):
            effects[design.part(factor)] = u[small.part(j)]
    residuals = target - design.fitted(effects)
    mean = float(weight @ residuals) / total
    return CrossedFit(
        tuple(effects[design.part(j)] for j in range(n_factors)),
        center + mean,
        variances,
        state.noise,
        residuals - mean,
        n_rounds,
        equations.n_iterations,
    )


def effect_errors(
    design: CrossedDesign, fit: CrossedFit, *, n_probes: int = 16, most_exact: int = 256, seed: int = 0
) -> tuple[Floats, ...]:
    """Standard errors of the effects, given the variances: roots of σ² times the diagonal of the inverse.

    Of larger systems, only factors with few levels have exact errors. The diagonal of the others is estimated
    from random vectors, within what it can be: above 1/(n_g + λ), and below 1/λ.

    Returns
    -------
    tuple of ndarray, each of shape (n_levels,)
    """
    stay = [j for j in range(design.n_factors) if fit.variances[j] > 0]
    found = [np.zeros(int(design.starts[j + 1] - design.starts[j])) for j in range(design.n_factors)]
    if not stay or not fit.noise > 0:
        return tuple(found)
    small, _ = design.select(stay)
    penalty = np.concatenate([np.full(len(found[j]), fit.noise / fit.variances[j]) for j in stay])
    if len(small.size) <= most_exact:
        diagonal = np.diagonal(np.linalg.inv(small.dense() + np.diag(penalty)))
    else:
        diagonal = _estimated_diagonal(small, penalty, n_probes, seed)
    for number, factor in enumerate(stay):
        found[factor] = np.sqrt(fit.noise * diagonal[small.part(number)])
    return tuple(found)


def _estimated_diagonal(design: CrossedDesign, penalty: Floats, n_probes: int, seed: int) -> Floats:
    """The diagonal of the inverse: exact for factors of few levels, else from random vectors.

    One level's estimate is noisy. What the other factors add to 1/(n_g + λ) is about proportional to the
    square of n_g/(n_g + λ), so one proportion is estimated for levels of about the same size.
    """
    rng, n = np.random.default_rng(seed), len(penalty)
    settings = replace(QUICK, tolerance=_ERROR_TOLERANCE)
    total, least = np.zeros(n), 1 / (design.diagonal() + penalty)
    for part in blocks(n_probes, _ERROR_BLOCK):
        probes = rng.choice([-1.0, 1.0], (n, part.stop - part.start))
        total += (probes * _conjugate_gradients(design, penalty, probes, None, settings)[0]).sum(axis=1)
    more, part_of_own, diagonal = total / n_probes - least, (1 - penalty * least) ** 2, np.empty(n)
    for factor in range(design.n_factors):
        columns = design.part(factor)
        n_levels = columns.stop - columns.start
        if n_levels <= _EXACT_ERRORS:
            for part in blocks(columns.stop, _ERROR_BLOCK, columns.start):
                own = np.arange(part.start, part.stop)
                units = np.zeros((n, len(own)))
                units[own, np.arange(len(own))] = 1.0
                solved = _conjugate_gradients(design, penalty, units, None, settings)[0]
                diagonal[own] = solved[own, np.arange(len(own))]
            continue
        order = columns.start + np.argsort(design.size[columns], kind="stable")
        for alike in np.array_split(order, -(-n_levels // _ALIKE)):
            own_parts = part_of_own[alike]
            proportion = max(float(more[alike].sum()), 0.0) / max(float(own_parts.sum()), 1e-300)
            diagonal[alike] = least[alike] + proportion * own_parts
    return np.minimum(diagonal, 1 / penalty)


@dataclass(slots=True, eq=False)
class _State:
    """What changes from round to round: τ and σ²; of the factors that stay."""

    variances: Floats
    noise: float
    spread: float
    sums: Floats
    settings: CrossedSettings

    def penalty(self, design: CrossedDesign) -> Floats:
        """λ of each column, σ²/τ."""
        ratio = self.noise / np.maximum(self.variances, _SMALLEST * self.spread)
        return np.repeat(ratio, np.diff(design.starts))

    def update(
        self, design: CrossedDesign, u: Floats, trace: Floats, squares: float, count: float, *, exact: bool
    ) -> bool:
        """Move the variances, given the effects; whether they have settled."""
        before, total = self.variances.copy(), 0.0
        for j in range(design.n_factors):
            columns = design.part(j)
            n_levels = float((design.size[columns] > 0).sum())
            ratio = self.noise / max(before[j], _SMALLEST * self.spread)
            least = max((1e-10 if exact else _LEAST_FREEDOM) * n_levels, 1e-10)
            freedom = min(max(n_levels - ratio * float(trace[columns].sum()), least), max(n_levels, least))
            total += freedom
            wanted = max(float(u[columns] @ u[columns]) / freedom, 1e-12 * self.spread)
            power = min(max(n_levels, least) / freedom, self.settings.most_power)
            moved = before[j] * (wanted / before[j]) ** power
            self.variances[j] = min(max(moved, _SMALLEST * self.spread), _LARGEST * self.spread)
        least = self.settings.least_noise * self.spread
        self.noise = max(squares / max(count - 1 - total, 0.05 * count), least)
        change = np.abs(self.variances - before)
        return bool((change < self.settings.settle * np.maximum(before, 1e-3 * self.spread)).all())


class _Equations:
    """Solves (Z'WZ + Λ)u = b again and again, from where it stopped the last time."""

    def __init__(self, design: CrossedDesign, settings: CrossedSettings, rng: np.random.Generator) -> None:
        self._design, self._settings = design, settings
        self.exact = len(design.size) <= settings.most_exact
        self.n_iterations = 0
        self._present = design.size > 0
        self._solved: Floats | None = None
        if self.exact:
            self._dense = design.dense()
        else:
            shape = (len(design.size), settings.n_probes)
            self._probes = rng.choice([-1.0, 1.0], shape) * self._present[:, None]

    def select(self, design: CrossedDesign, chosen: Mask) -> _Equations:
        """The same for some of the factors."""
        found = _Equations(design, replace(self._settings, n_probes=0), np.random.default_rng(0))
        found._settings, found.n_iterations = self._settings, self.n_iterations
        if not self.exact and not found.exact:
            found._probes = self._probes[chosen]
            found._solved = None if self._solved is None else self._solved[chosen]
        return found

    def solve_with_traces(self, penalty: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """u, and the diagonal of the inverse, or an estimate of which only sums mean something."""
        if self.exact:
            inverse = linalg.inv(self._dense + np.diag(penalty), check_finite=False)
            return inverse @ sums, np.where(self._present, np.diagonal(inverse), 0.0)
        right = np.column_stack([sums, self._probes])
        self._solved, n = _conjugate_gradients(self._design, penalty, right, self._solved, self._settings)
        self.n_iterations += n
        return self._solved[:, 0], np.asarray((self._probes * self._solved[:, 1:]).mean(axis=1))

    def solve(self, penalty: Floats, sums: Floats) -> Floats:
        """u, to the final tolerance."""
        if self.exact:
            return np.asarray(linalg.solve(self._dense + np.diag(penalty), sums, assume_a="pos"))
        settings = replace(self._settings, tolerance=self._settings.final_tolerance)
        first = None if self._solved is None else self._solved[:, :1]
        solved, n = _conjugate_gradients(self._design, penalty, sums[:, None], first, settings)
        self.n_iterations += n
        return np.asarray(solved[:, 0])


def _conjugate_gradients(
    design: CrossedDesign, penalty: Floats, right: Floats, first: Floats | None, settings: CrossedSettings
) -> tuple[Floats, int]:
    """Solve (Z'WZ + Λ)X = B for all columns at once, preconditioned by the diagonal; and count the steps."""
    inverse = (1 / (design.diagonal() + penalty))[:, None]
    size = (right * inverse * right).sum(axis=0)
    limit = settings.tolerance**2 * size
    found = np.zeros_like(right) if first is None else first.copy()
    rest = right.copy() if first is None else right - design.times(found) - penalty[:, None] * found
    scaled = inverse * rest
    direction = scaled.copy()
    norm = (rest * scaled).sum(axis=0)
    step = 0
    while (norm > limit).any() and step < settings.most_iterations:
        image = design.times(direction) + penalty[:, None] * direction
        energy = (direction * image).sum(axis=0)
        length = np.divide(norm, energy, out=np.zeros_like(norm), where=energy > 0)
        found += length * direction
        rest -= length * image
        scaled = inverse * rest
        following = (rest * scaled).sum(axis=0)
        direction *= np.divide(following, norm, out=np.zeros_like(norm), where=norm > 0)
        direction += scaled
        norm, step = following, step + 1
    return found, step


def _nothing(design: CrossedDesign, center: float, residuals: Floats) -> CrossedFit:
    """The fit to a constant."""
    effects = tuple(np.zeros(int(n)) for n in np.diff(design.starts))
    return CrossedFit(effects, center, np.zeros(design.n_factors), 0.0, residuals)
