"""Which levels moved: the means of new rows against those of old rows, level by level, from moments alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy import special

from sufrep._accumulate import ratio
from sufrep._arrays import blocks
from sufrep._statistics import benjamini_hochberg
from sufrep.representation import level_positions
from sufrep.solvers.shrinkage import within_freedom

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sufrep._arrays import Array, Codes, Columns, Floats, Levels, Mask
    from sufrep.moments import GroupMoments

# A spread within levels, relative to the values, and a difference of values that never vary, below which they
# are rounding.
_ROUNDING = 1e-12
_SAME = 1e-9
# Eigenvalues of a correlation matrix up to the first are zero: along them, rows of a level differ by less
# than a hundred-thousandth of a standard deviation, so that means that differ by the second have moved.
_NO_SPREAD = 1e-10
_MOVED = 1e-3
# Degrees of freedom per covariate that a covariance matrix needs. An F test exists from one on, but has
# hardly any power there.
_LEAST_FREEDOM = 2
# Standardised differences are limited to numbers whose squares leave room for weights and eigenvalues.
_LARGEST = 1e100
_ROWS = 1 << 15  # rows that are read at a time
_BLOCK = 256  # levels with nulls that are solved at a time, so that their matrices stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class LevelDrift:
    """What became of every level, and the test of those with old and new rows.

    Attributes
    ----------
    levels : ndarray of object, shape (n_levels,)
        The levels of the old rows, then those that are new.
    rows_then, rows_now : ndarray, shape (n_levels,)
        Total weight of the old and of the new rows.
    statistic : ndarray, shape (n_levels,)
        Hotelling's T², NaN where there is no test. It is infinite where a covariate that does not vary within
        levels has changed.
    df1, df2 : ndarray, shape (n_levels,)
        Degrees of freedom of F = T² (ν − r + 1)/(ν r): r, and the smaller of ν − r + 1 and those of the
        level's own spread.
    p_value : ndarray, shape (n_levels,)
    q_value : ndarray, shape (n_levels,)
        The p-values adjusted by Benjamini and Hochberg over the levels that are tested.
    covariate : ndarray of int, shape (n_levels,)
        Position of the covariate that moved most compared with its error, −1 where there is no test.
    difference : ndarray, shape (n_levels,)
        By how many standard deviations within levels it moved.
    """

    levels: Levels
    rows_then: Floats
    rows_now: Floats
    statistic: Floats
    df1: Floats
    df2: Floats
    p_value: Floats
    q_value: Floats
    covariate: Codes
    difference: Floats


def level_drift(
    then: GroupMoments, now: GroupMoments, squares_along: Callable[[Floats], Floats] | None = None
) -> LevelDrift:
    """Compare the levels of new rows with those of old rows.

    For a level with n old and m new rows whose means differ by d, Hotelling's statistic is
    T² = dᵀ [W (1/n + 1/m)]⁻¹ d. W is the covariance within levels, pooled over the old and the new rows of
    all levels, with ν degrees of freedom. If covariates are normal with the same covariance in all levels,
    and the level has not moved, then T² (ν − r + 1)/(ν r) has the distribution F(r, ν − r + 1), with r the
    rank of W. Means of many rows are nearly normal whatever the covariates are; those of a few rows are not.

    Real levels do not have the same covariance, and T² then reports those that vary most. So the variance of
    the level's own new rows along a = W⁻¹d is compared with aᵀWa. Their ratio ρ, with m − 1 degrees of
    freedom, divides T²: whatever the covariance Σ of the level is, (dᵀW⁻¹d)²/(dᵀW⁻¹ΣW⁻¹d) ≤ dᵀΣ⁻¹d
    (Cauchy and Schwarz), so that the test is not too liberal. As in Smyth's moderated t-test (2004), ρ is
    shrunk towards its mean over the levels, which counts ν₀ degrees of freedom: the fewer, the more the
    levels differ. The second degrees of freedom of F are then ν₀ + m − 1, if that is less. A ρ below 1
    counts as 1, so that T² only ever becomes smaller.

    With nulls, each mean counts with its own number of rows, and covariates that a level lacks are left out.
    How many rows two covariates share is known within bounds only, and the statistic is shrunk by as much as
    that may matter. If too few rows are complete for a covariance matrix, covariates are tested one by one:
    the statistic is the largest t², and its p-value is multiplied by the number of covariates (Bonferroni).

    A combination of covariates that never varies within a level has no spread to compare a difference with.
    Where ν deviations have not been seen, another one has a probability of about 1/(ν + 2) (the rule of
    succession), and all rows of one side deviate with that to the power of min(n, m).

    Parameters
    ----------
    then, now : GroupMoments
        Of the same covariates. Second moments of either are used if there are any; without any, nothing is
        tested.
    squares_along : callable, optional
        A function from directions, one for each level of ``now`` (n_levels, p), to the sums of squares of
        the new rows of each level along them, as `sums_of_squares` computes; (n_levels,). Without it, all
        levels are taken to have the same covariance.
    """
    places = level_positions(then.levels)
    place = np.fromiter((places.get(level, -1) for level in now.levels.tolist()), dtype=np.intp)
    known, n_then = place >= 0, then.n_levels
    levels = np.concatenate([then.levels, now.levels[~known]])
    rows_then, rows_now = np.zeros((2, len(levels)))
    rows_then[:n_then] = then.weight
    rows_now[np.where(known, place, n_then - 1 + np.cumsum(~known))] = now.weight
    old, new = _Side.of(then, place[known]), _Side.of(now, np.flatnonzero(known))

    def own_squares(directions: Floats) -> Floats:
        whole = np.zeros((now.n_levels, directions.shape[1]))
        whole[known] = directions
        return squares_along(whole)[known] if squares_along else np.zeros(0)

    tests = _compare(old, new, _spread(then, now), own_squares if squares_along else None)

    def for_all_levels(table: Any, fill: float) -> Any:
        whole = np.full(len(levels), fill, dtype=table.dtype)
        whole[place[known]] = table
        return whole

    p_value = for_all_levels(tests.p_value, np.nan)
    return LevelDrift(
        levels,
        rows_then,
        rows_now,
        for_all_levels(tests.statistic, np.nan),
        for_all_levels(tests.df1, np.nan),
        for_all_levels(tests.df2, np.nan),
        p_value,
        benjamini_hochberg(p_value),
        for_all_levels(tests.covariate, -1),
        for_all_levels(tests.difference, np.nan),
    )


def sums_of_squares(
    codes: Codes, columns: Columns, weights: Floats | None, mean: Floats, directions: Floats
) -> Floats:
    """Sum of squares, by level, of the deviations of rows from their level's mean along a direction.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Position of each row's level, −1 for rows to leave out.
    columns : sequence of ndarray, each of shape (n,)
        The covariates; a null does not deviate.
    weights : ndarray, shape (n,), or None
    mean, directions : ndarray, shape (n_levels, p)

    Returns
    -------
    ndarray, shape (n_levels,)
    """
    # A last level, without a direction, is that of the rows to leave out.
    centers = np.append(np.nan_to_num(mean), np.zeros((1, mean.shape[1])), axis=0).T.copy()
    along = np.append(directions, np.zeros((1, mean.shape[1])), axis=0).T.copy()
    total = np.zeros(len(mean) + 1)
    # Rows that do not count may hold anything.
    with np.errstate(over="ignore", invalid="ignore"):
        # An origin that all levels share keeps the digits of columns far from zero.
        origin = np.median(centers, axis=1)
        shift = (along * (centers - origin[:, None])).sum(axis=0)
        for part in blocks(len(codes), _ROWS):
            own = np.where(codes[part] < 0, len(mean), codes[part])
            values = [column[part] for column in columns]
            # One look-up for each covariate; to subtract centers instead of an origin takes two.
            deviation = -shift.take(own)
            for column, start, direction in zip(values, origin, along, strict=True):
                step = np.subtract(column, start, dtype=np.float64)
                step *= direction.take(own)
                deviation += step
            null = np.flatnonzero(np.isnan(deviation))
            if len(null):
                deviation[null] = _without_nulls(
                    [column[null] for column in values], own[null], centers, along
                )
            squares = deviation**2
            if weights is not None:
                squares = np.where(weights[part] > 0, weights[part] * squares, 0.0)
            total += np.bincount(own, squares, len(total))
    return total[:-1]


def _without_nulls(values: Sequence[Array], own: Codes, centers: Floats, along: Floats) -> Floats:
    """Deviations of rows that have nulls, which do not deviate; (n,)."""
    total = np.zeros(len(own))
    for column, center, direction in zip(values, centers, along, strict=True):
        step = np.subtract(column, center.take(own), dtype=np.float64)
        step *= direction.take(own)
        np.copyto(step, 0.0, where=np.isnan(step))
        total += step
    return total


class _Side(NamedTuple):
    """Old or new rows of the levels that are compared: weights (k,), means and weights behind them (k, p)."""

    weight: Floats
    complete: Floats  # weight of the rows without any null, 0 if not known; (k,)
    observed: Floats
    mean: Floats

    @classmethod
    def of(cls, moments: GroupMoments, rows: Codes) -> Self:
        """Take some levels."""
        complete = moments.complete_weight
        return cls(
            moments.weight[rows],
            np.zeros(len(rows)) if complete is None else complete[rows],
            moments.observed[rows],
            moments.mean[rows],
        )

    def take(self, rows: Codes) -> Self:
        """Take some of the levels."""
        return type(self)(*(table[rows] for table in self))

    def select(self, chosen: Codes) -> Self:
        """Take some of the covariates."""
        return self._replace(observed=self.observed[:, chosen], mean=self.mean[:, chosen])

    def is_whole(self) -> Mask:
        """Which levels have no null; (k,)."""
        return np.asarray((self.observed >= (1 - _ROUNDING) * self.weight[:, None]).all(axis=1))

    def shared_by_pair(self) -> tuple[Floats, Floats]:
        """n_jk/(n_j n_k), where n_jk rows have both covariates, and by how much that may be wrong.

        Taken is the n_jk that independent nulls would give, but no less than the rows without any null: this
        is exact if one covariate has nulls, or all have them in the same rows. (k, p, p) each.
        """
        row, column = self.observed[:, :, None], self.observed[:, None, :]
        least = np.maximum(self.complete[:, None, None], row + column - self.weight[:, None, None])
        most = np.minimum(row, column)
        product = row * column
        taken = np.minimum(np.maximum(product / self.weight[:, None, None], least), most)
        error = np.maximum(most - taken, taken - least)
        return ratio(taken, product), ratio(error, product)


class _Spread(NamedTuple):
    """The spread within levels, pooled over both sides."""

    deviation: Floats  # standard deviations, from all values; (p,)
    freedom: Floats  # their degrees of freedom; (p,)
    joint_deviation: Floats  # standard deviations and correlations of the rows without any null; (p,)
    correlation: Floats  # (p, p)
    joint_freedom: float  # their degrees of freedom


def _spread(then: GroupMoments, now: GroupMoments) -> _Spread | None:
    """Pool the second moments of both sides, or take those of one; None without any."""
    sides = [side for side in (then, now) if side.order == 2]
    if not sides or not then.covariates:
        return None
    second = [side.require_order_two() for side in sides]
    squares = np.sum([part.squares for part in second], axis=0)
    freedom = np.sum([np.maximum(side.observed - 1, 0.0).sum(axis=0) for side in sides], axis=0)
    scatter = np.sum([part.scatter for part in second], axis=0)
    root = np.sqrt(np.maximum(np.diag(scatter), 0.0))
    divisor = np.where(root > 0, root, np.inf)
    correlation = scatter / divisor[:, None] / divisor
    np.fill_diagonal(correlation, 1.0)
    joint_freedom = sum(within_freedom(side) for side in sides)
    return _Spread(
        np.sqrt(ratio(squares, freedom)),
        freedom,
        root / np.sqrt(max(joint_freedom, 1.0)),
        correlation,
        joint_freedom,
    )


class _Tests(NamedTuple):
    """The tests of levels that both sides have, (k,) each; see `LevelDrift`."""

    statistic: Floats
    df1: Floats
    df2: Floats
    p_value: Floats
    covariate: Codes
    difference: Floats


class _Statistics(NamedTuple):
    """Statistics whose distribution is r ν/(ν − r + 1) F(r, ν − r + 1) if all levels have one covariance.

    (k,) each; directions (k, p).
    """

    statistic: Floats
    rank: Floats
    freedom: Floats
    n_tests: Floats  # of which this is the largest
    direction: Floats  # in which it moved: W⁻¹d, scaled so that rows of all levels have a variance of 1
    chance: Floats  # p-value of what never varied and has changed, 1 if nothing has


class _Differences(NamedTuple):
    """Differences of the means, (k, p) each; 0 where there is none."""

    raw: Floats
    standardised: Floats  # in standard deviations within levels, of covariates that vary
    weight: Floats  # nm/(n + m): the variance of a difference is that of a row divided by this
    there: Mask  # whether both sides have a mean, and the covariate a spread that is known
    varies: Mask  # whether a covariate varies within levels; (p,)
    is_broken: Mask  # whether a covariate that does not vary has changed


def _compare(
    old: _Side, new: _Side, spread: _Spread | None, own_squares: Callable[[Floats], Floats] | None
) -> _Tests:
    """Test every level of two sides that have the same levels, in the same order."""
    if spread is None or not len(old.weight):
        nothing = np.full(len(old.weight), np.nan)
        return _Tests(nothing, nothing, nothing, nothing, np.full(len(nothing), -1), nothing)
    found = _differences(old, new, spread)
    varies = found.varies
    # Rows without a null must be enough for a covariance matrix of all covariates.
    if (
        spread.joint_freedom >= _LEAST_FREEDOM * np.count_nonzero(varies)
        and (spread.joint_deviation[varies] > _NO_SPREAD * spread.deviation[varies]).all()
    ):
        statistics = _hotelling(old, new, found, spread)
    else:
        statistics = _one_by_one(found, spread)
    own = _own_spread(statistics, new, own_squares)
    statistic, rank = statistics.statistic / own.ratio, statistics.rank
    df2 = np.minimum(statistics.freedom - rank + 1, own.freedom)
    scaled = statistic * (statistics.freedom - rank + 1) / (statistics.freedom * np.maximum(rank, 1.0))
    p_value = np.where(rank > 0, special.fdtrc(np.maximum(rank, 1.0), df2, scaled), 1.0)
    p_value = np.minimum(p_value * statistics.n_tests, 1.0)
    broken = found.is_broken
    chance = _chance(np.minimum(old.observed, new.observed), spread.freedom)
    chance = np.minimum(statistics.chance, np.where(broken, chance, 1.0).min(axis=1))
    most = np.where(broken, np.inf, found.standardised**2 * found.weight).argmax(axis=1)
    shown = np.where(broken, np.copysign(np.inf, found.raw), found.standardised)
    tested = found.there.any(axis=1)

    def where_tested(values: Floats) -> Floats:
        return np.where(tested, values, np.nan)

    return _Tests(
        where_tested(np.where(chance < 1, np.inf, statistic)),
        where_tested(rank),
        where_tested(df2),
        where_tested(np.minimum(p_value, chance)),
        np.where(tested, most, -1),
        where_tested(shown[np.arange(len(most)), most]),
    )


class _OwnSpread(NamedTuple):
    """The variance of each level's own rows as a ratio to that of all, and its degrees of freedom; (k,)."""

    ratio: Floats
    freedom: Floats


def _own_spread(
    statistics: _Statistics, new: _Side, own_squares: Callable[[Floats], Floats] | None
) -> _OwnSpread:
    """Shrink the ratios of all levels towards their mean, by as much as they do not differ more than noise.

    They are at least 1.

    If true ratios are τ ν₀/χ²(ν₀), their squared coefficient of variation is 2/(ν₀ − 4), which the method of
    moments finds: a sample ratio with f degrees of freedom adds 2/f (1 + 2/(ν₀ − 4)) to it.
    """
    one, unlimited = np.ones(len(new.weight)), np.full(len(new.weight), np.inf)
    if own_squares is None:
        return _OwnSpread(one, unlimited)
    # With nulls, a mean of n of m rows moves by m/n as much with each of them.
    factor = ratio(np.broadcast_to(new.weight[:, None], new.observed.shape), new.observed)
    squares = own_squares(statistics.direction * factor)
    freedom = np.where(statistics.direction.any(axis=1), np.maximum(new.weight - 1, 0.0), 0.0)
    # Rows that are part of the common covariance cannot exceed this; numbers without squares are no part of
    # it.
    own = np.minimum(ratio(squares, freedom), statistics.freedom)
    if not freedom.any():
        return _OwnSpread(one, unlimited)
    # A spread below that of all levels is not trusted: where shares or skewed covariates are low by chance,
    # so is their spread, and where a few old rows have all of it, that of the new ones is nearly 0
    # (test_indicators_that_are_rare_by_chance_have_not_moved).
    center = max(float(freedom @ own / freedom.sum()), 1.0)
    n_levels = np.count_nonzero(freedom)
    excess = float(freedom @ (own / center - 1) ** 2) - 2 * n_levels
    variation = excess / float(freedom.sum() + 2 * n_levels)
    if variation <= 0:
        return _OwnSpread(np.full(len(own), center), unlimited)
    prior = 4 + 2 / variation
    moderated = (prior * center + freedom * own) / (prior + freedom)
    return _OwnSpread(np.maximum(moderated, 1.0), prior + freedom)


def _differences(old: _Side, new: _Side, spread: _Spread) -> _Differences:
    there = (old.observed > 0) & (new.observed > 0) & (spread.freedom > 0)
    before, after = np.where(there, old.mean, 0.0), np.where(there, new.mean, 0.0)
    size = np.maximum(np.abs(before), np.abs(after))
    # The usual size: one huge level must not make the spread of all others look like rounding
    # (test_huge_new_numbers_have_moved).
    usual = np.array(
        [np.median(own[known]) if known.any() else 0.0 for own, known in zip(size.T, there.T, strict=True)]
    )
    varies = spread.deviation > _ROUNDING * usual
    with np.errstate(over="ignore"):
        raw = after - before
    return _Differences(
        raw,
        np.where(varies, _limited_ratio(raw, np.where(varies, spread.deviation, 1.0)), 0.0),
        ratio(old.observed * new.observed, old.observed + new.observed),
        there,
        varies,
        ~varies & (np.abs(raw) > _SAME * size),
    )


def _limited_ratio(differences: Floats, deviation: Floats) -> Floats:
    """Standardised differences, which have squares also where a difference is infinite."""
    with np.errstate(over="ignore"):
        return np.clip(differences / deviation, -_LARGEST, _LARGEST)


def _chance(rows: Floats, freedom: Floats | float) -> Floats:
    """Probability that all of these rows deviate where ``freedom`` others did not."""
    return np.asarray(np.exp(-rows * np.log(freedom + 2.0)))


def _one_by_one(found: _Differences, spread: _Spread) -> _Statistics:
    """The largest squared t statistic of a single covariate."""
    there = found.there & found.varies
    squares = found.standardised**2 * found.weight
    freedom = np.maximum(spread.freedom, 1e-300)
    least = np.where(there, special.fdtrc(1.0, freedom, squares), 2.0).argmin(axis=1)
    levels = np.arange(len(least))
    direction = np.zeros_like(squares)
    direction[levels, least] = there[levels, least] / np.where(found.varies, spread.deviation, 1.0)[least]
    return _Statistics(
        squares[levels, least],
        np.ones(len(least)),
        freedom[least],
        np.count_nonzero(there, axis=1).astype(np.float64),
        direction,
        np.ones(len(least)),
    )


def _hotelling(old: _Side, new: _Side, found: _Differences, spread: _Spread) -> _Statistics:
    """T² of all covariates that vary within levels."""
    chosen = np.flatnonzero(found.varies & (spread.freedom > 0))
    old, new = old.select(chosen), new.select(chosen)
    # In the units of the matrix: others would make small eigenvalues meaningless
    # (test_nulls_do_not_break_an_equation_that_holds).
    standardised = _limited_ratio(found.raw[:, chosen], spread.joint_deviation[chosen])
    root = np.sqrt(found.weight[:, chosen])
    errors, correlation = standardised * root, spread.correlation[np.ix_(chosen, chosen)]
    whole = old.is_whole() & new.is_whole()
    values, axes = np.linalg.eigh(correlation)
    real = values > _NO_SPREAD
    solved = (errors @ axes[:, real] / values[real]) @ axes[:, real].T
    rank = np.full(len(errors), float(np.count_nonzero(real)))
    partial = np.flatnonzero(~whole)
    for part in blocks(len(partial), _BLOCK):
        rows = partial[part]
        solved[rows], rank[rows] = _with_nulls(
            old.take(rows), new.take(rows), errors[rows], correlation, regular=bool(real.all())
        )
    along = solved * root
    variance = np.einsum("kj,jl,kl->k", along, correlation, along, optimize=True)
    direction = np.zeros_like(found.raw)
    direction[:, chosen] = ratio(along, np.sqrt(np.maximum(variance, 0.0))[:, None])
    direction[:, chosen] /= spread.joint_deviation[chosen]
    # Means of different rows need not obey an equation that holds in every row, so nulls leave this out.
    off = np.abs(standardised @ axes[:, ~real]).max(axis=1, initial=0.0)
    chance = _chance(np.minimum(old.weight, new.weight), spread.joint_freedom)
    return _Statistics(
        (errors * solved).sum(axis=1),
        rank,
        np.full(len(rank), max(spread.joint_freedom, 1.0)),
        np.ones(len(rank)),
        direction,
        np.where(whole & (off > _MOVED), chance, 1.0),
    )


def _with_nulls(
    old: _Side, new: _Side, errors: Floats, correlation: Floats, *, regular: bool
) -> tuple[Floats, Floats]:
    """C⁻¹z (k, p), and the rank of C (k,), of levels with covariates known in different numbers of rows."""
    matrix, doubt = _error_correlation(old, new, correlation)
    missing = np.diagonal(matrix, axis1=1, axis2=2) == 0
    if regular:
        # No eigenvalue of the true matrix is below those of the correlations (Schur), and the bound lifts
        # this one above the true one, so it can be solved, which takes a tenth of the time.
        lifted = matrix + (doubt[:, None, None] + missing[:, :, None]) * np.eye(len(correlation))
        solved = np.linalg.solve(lifted, errors[:, :, None])[:, :, 0]
        return solved, np.count_nonzero(~missing, axis=1).astype(np.float64)
    values, axes = np.linalg.eigh(matrix)
    values += doubt[:, None]
    real = values > _NO_SPREAD
    along = np.einsum("kp,kpr->kr", errors, axes) * real / np.where(real, values, 1.0)
    solved = np.einsum("kr,kpr->kp", along, axes)
    # Covariates that are missing have eigenvalues of 0, which the bound may lift above the threshold.
    lifted_zeros = np.where(doubt > _NO_SPREAD, np.count_nonzero(missing, axis=1), 0)
    return solved, (np.count_nonzero(real, axis=1) - lifted_zeros).astype(np.float64)


def _error_correlation(old: _Side, new: _Side, correlation: Floats) -> tuple[Floats, Floats]:
    """Correlations of the errors of differences (k, p, p), and by how much they may be wrong (k,).

    Two means have the covariance W_jk n_jk/(n_j n_k), where n_jk rows have both covariates. Eigenvalues of
    the true matrix are at most as much larger as the second array says. Covariates that are missing have
    rows of zeros.
    """
    there = (old.observed > 0) & (new.observed > 0)
    shares, errors = (sum(tables) for tables in zip(old.shared_by_pair(), new.shared_by_pair(), strict=True))
    one = there.astype(np.float64)
    variance = np.where(there, ratio(one, old.observed) + ratio(one, new.observed), np.inf)
    scale = correlation / np.sqrt(variance[:, :, None]) / np.sqrt(variance[:, None, :])
    doubt = np.abs(scale) * errors
    diagonal = np.arange(len(correlation))
    doubt[:, diagonal, diagonal] = 0.0
    return scale * shares, doubt.sum(axis=2).max(axis=1, initial=0.0)
