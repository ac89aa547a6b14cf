"""Levels that moved: Hotelling's test from moments, next to a naive one from rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sufrep.moments import GroupMoments
from sufrep.representation import as_levels
from sufrep.solvers.drift import level_drift, sums_of_squares

Rows = tuple[np.ndarray, np.ndarray]
TABLES = ("statistic", "df1", "df2", "p_value", "q_value", "difference")


def draw(seed: int, n: int = 120, n_levels: int = 6, p: int = 3, shift: float = 0.0) -> Rows:
    """Levels and correlated covariates; level 0 is shifted."""
    rng = np.random.default_rng([5, seed])
    level = rng.integers(0, n_levels, n)
    x = rng.normal(size=(n, p)) @ (np.eye(p) + 0.5) + level[:, None]
    x[:, 0] += shift * (level == 0)
    return level, x


def moments(rows: Rows, **options: Any) -> GroupMoments:
    return GroupMoments.from_rows(rows[0].tolist(), rows[1], **options)


def drift(then: Rows, now: Rows, **options: Any) -> Any:
    return level_drift(moments(then, **options), moments(now, **options))


def naive(then: Rows, now: Rows, level: int) -> tuple[float, float]:
    """T² and its p-value, row by row."""
    p = then[1].shape[1]
    scatter, freedom = np.zeros((p, p)), 0
    for labels, x in (then, now):
        for other in set(labels.tolist()):
            own = x[labels == other]
            scatter += (own - own.mean(axis=0)).T @ (own - own.mean(axis=0))
            freedom += len(own) - 1
    old, new = (x[labels == level] for labels, x in (then, now))
    d = new.mean(axis=0) - old.mean(axis=0)
    covariance = scatter / freedom * (1 / len(old) + 1 / len(new))
    statistic = d @ np.linalg.inv(covariance) @ d
    return statistic, stats.f.sf(statistic * (freedom - p + 1) / (freedom * p), p, freedom - p + 1)


@pytest.mark.parametrize("p", [1, 4])
def test_statistic_and_p_value_are_those_of_the_rows(p):
    then, now = draw(0, p=p), draw(1, n=50, p=p, shift=1.0)
    found = drift(then, now)
    expected = [naive(then, now, level) for level in found.levels.tolist()]
    np.testing.assert_allclose(found.statistic, [statistic for statistic, _ in expected], rtol=1e-9)
    np.testing.assert_allclose(found.p_value, [p_value for _, p_value in expected], rtol=1e-7)
    assert (found.df1 == p).all()
    np.testing.assert_allclose(found.q_value, stats.false_discovery_control(found.p_value), rtol=1e-14)


def test_the_covariate_that_moved_most_is_named_with_its_difference():
    then, now = draw(0), draw(1, shift=3.0)
    found = drift(then, now)
    first = np.flatnonzero(found.levels == 0)[0]
    assert found.covariate[first] == 0
    variance = sum(side.squares for side in (moments(then), moments(now))) / (240 - 12)
    raw = now[1][now[0] == 0].mean(axis=0) - then[1][then[0] == 0].mean(axis=0)
    assert found.difference[first] == pytest.approx(raw[0] / np.sqrt(variance[0]))


@given(st.integers(0, 1000), st.permutations(range(20)))
def test_the_order_of_the_rows_does_not_matter(seed, order):
    then, now = draw(seed, 40, 4), draw(seed + 1, 20, 5)
    shuffled = (now[0][list(order)], now[1][list(order)])
    one, other = drift(then, now), drift(then, shuffled)
    np.testing.assert_array_equal(one.levels, other.levels)
    for name in TABLES:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-9)


@given(st.integers(0, 1000))
def test_new_and_vanished_levels_are_differences_of_sets(seed):
    then, now = draw(seed, 12, 9), draw(seed + 1, 12, 9)
    found = drift(then, now)
    old, new = set(then[0].tolist()), set(now[0].tolist())
    assert set(found.levels[found.rows_then == 0].tolist()) == new - old
    assert set(found.levels[found.rows_now == 0].tolist()) == old - new
    assert found.rows_then.sum() == found.rows_now.sum() == 12
    both = np.isin(found.levels.astype(int), [*old & new])
    np.testing.assert_array_equal(~np.isnan(found.p_value), both)


@given(st.integers(0, 1000))
def test_the_same_rows_have_not_moved(seed):
    rows = draw(seed, 60, 5)
    found = drift(rows, rows)
    assert (found.statistic == 0).all()
    assert (found.p_value == 1).all()


def test_other_rows_change_the_spread_only():
    then, now = draw(0), draw(1, shift=1.0)
    changed = (now[0], np.where((now[0] == 3)[:, None], now[1] + 7.0, now[1]))
    one, other = drift(then, now), drift(then, changed)
    rest = one.levels != 3
    for name in TABLES[:4]:
        np.testing.assert_allclose(getattr(one, name)[rest], getattr(other, name)[rest], rtol=1e-9)
    assert other.statistic[~rest] > one.statistic[~rest]


def test_weights_count_like_repeated_rows():
    then, now = draw(0), draw(1, n=60)
    now[1][::7, 1] = np.nan
    weights = np.random.default_rng(0).integers(0, 4, 60)
    repeated = (now[0].repeat(weights), now[1].repeat(weights, axis=0))
    one = level_drift(moments(then), moments(now, weights=weights))
    other = drift(then, repeated)
    for name in TABLES:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8)


# Nulls


def test_a_covariate_with_nulls_counts_with_its_own_rows():
    then, now = draw(0, p=1), draw(1, n=50, p=1)
    now[1][::3] = np.nan
    known = ~np.isnan(now[1][:, 0])
    one, other = drift(then, now), drift(then, (now[0][known], now[1][known]))
    for name in TABLES:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)


def test_a_level_without_a_covariate_is_tested_on_the_others():
    then, now = draw(0), draw(1)
    now[1][now[0] == 2, 1] = np.nan
    found = drift(then, now)
    lacking = found.levels == 2
    assert found.df1.tolist() == [2.0 if level == 2 else 3.0 for level in found.levels]
    # As if the covariate did not exist, apart from the spread, which the other levels know better.
    fewer = drift((then[0], then[1][:, [0, 2]]), (now[0], now[1][:, [0, 2]]))
    assert found.statistic[lacking] == pytest.approx(fewer.statistic[lacking], rel=0.1)


def test_a_level_without_any_common_covariate_is_not_tested():
    then, now = draw(0, p=2), draw(1, p=2)
    then[1][then[0] == 2, 0] = np.nan
    now[1][now[0] == 2, 1] = np.nan
    found = drift(then, now)
    np.testing.assert_array_equal(np.isnan(found.p_value), found.levels == 2)
    assert found.covariate[found.levels == 2] == -1


def test_one_null_hardly_changes_the_statistic():
    then, now = draw(0, n=400), draw(1, n=400, shift=0.5)
    whole = drift(then, now)
    now[1][0, 0] = np.nan
    np.testing.assert_allclose(drift(then, now).statistic, whole.statistic, rtol=0.1)


def test_collinear_covariates_with_nulls_are_tested_with_their_rank():
    then, now = draw(0), draw(1, shift=1.0)
    then, now = ((labels, np.c_[x, x[:, 0] + x[:, 1]]) for labels, x in (then, now))
    now[1][now[0] == 2, 2] = np.nan
    found = drift(then, now)
    assert found.df1.tolist() == [2.0 if level == 2 else 3.0 for level in found.levels]
    # Where one of the terms has a null, the mean of the sum is a number of its own.
    now[1][np.flatnonzero(now[0] == 3)[0], 0] = np.nan
    assert drift(then, now).df1[3] == 4
    np.testing.assert_allclose(drift(then, now).statistic, found.statistic, rtol=0.5)


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_nulls_do_not_break_an_equation_that_holds(noise):
    """Exactly, or up to noise; nulls in the rows of one level change the spreads that are compared with."""
    then, now = draw(0), draw(1)
    rng = np.random.default_rng(0)
    then, now = (
        (labels, np.c_[x, x[:, 0] + x[:, 1] + noise * rng.normal(size=len(x))]) for labels, x in (then, now)
    )
    now[1][now[0] == 2, 2] = np.nan
    assert (drift(then, now).p_value > 0.01).all()


def test_nulls_raise_no_more_false_alarms():
    """Mean rejection rate at 5 % without any drift; means of covariates share unknown numbers of rows."""
    rates = []
    for seed in range(40):
        sides = [draw(2 * seed + side, n=400, n_levels=40, p=4) for side in (0, 1)]
        for side, (_, x) in enumerate(sides):
            x[np.random.default_rng([seed, side]).random(x.shape) < 0.2] = np.nan
        rates.append(np.mean(drift(*sides).p_value < 0.05))
    assert 0.005 < np.mean(rates) < 0.06


def test_without_complete_rows_covariates_are_tested_one_by_one():
    then, now = draw(0, p=2), draw(1, p=2, shift=6.0)
    for _, x in (then, now):
        x[::2, 0] = np.nan
        x[1::2, 1] = np.nan
    found = drift(then, now)
    single = [drift((then[0], then[1][:, [j]]), (now[0], now[1][:, [j]])) for j in range(2)]
    each = np.array([one.p_value for one in single])
    np.testing.assert_allclose(found.p_value, np.minimum(2 * each.min(axis=0), 1.0), rtol=1e-9)
    assert (found.df1 == 1).all()
    assert found.q_value[found.levels == 0] < 0.01


def test_a_covariate_that_is_always_null_changes_nothing():
    then, now = draw(0), draw(1, shift=1.0)
    expected = drift(then, now)
    for side in ("then", "now"):
        wide = {
            name: (rows[0], np.c_[rows[1], rows[1][:, 0]]) for name, rows in (("then", then), ("now", now))
        }
        wide[side][1][:, 3] = np.nan
        found = drift(wide["then"], wide["now"])
        # The covariance comes from the side with complete rows.
        np.testing.assert_allclose(found.statistic, expected.statistic, rtol=0.3)
        assert (found.df1 == 3).all()


# Covariates without a spread


def test_constant_and_collinear_covariates_do_not_count():
    then, now = draw(0), draw(1, shift=1.0)
    expected = drift(then, now)
    more = [
        (labels, np.c_[x, np.full(len(x), 7.0), x[:, 0] - 2 * x[:, 1], labels]) for labels, x in (then, now)
    ]
    found = drift(*more)
    assert (found.df1 == 3).all()
    for name in TABLES[:5]:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6)


def test_a_covariate_that_never_varies_within_a_level_moves_by_any_change():
    then, now = draw(0), draw(1)
    then, now = ((labels, np.c_[x, 10.0 * labels]) for labels, x in (then, now))
    now[1][now[0] == 4, 3] += 0.5
    found = drift(then, now)
    changed = found.levels == 4
    assert found.statistic[changed] == np.inf
    assert found.difference[changed] == np.inf
    assert found.covariate[changed] == 3
    assert found.q_value[changed] < 1e-6
    assert np.isfinite(found.statistic[~changed]).all()


def test_one_odd_row_is_not_proof_that_a_covariate_that_never_varied_has_moved():
    labels = np.repeat(np.arange(50), 4)
    x = np.zeros((200, 1))
    found = drift((labels, x), (np.array([0, 1]), np.array([[0.0], [1.0]])))
    assert found.p_value[1] == pytest.approx(1 / 152)  # 150 rows did not deviate from others of their level
    assert found.statistic[1] == np.inf
    assert found.p_value[0] == 1


def test_an_equation_that_no_longer_holds_is_a_move():
    then, now = draw(0), draw(1)
    then, now = ((labels, np.c_[x, x[:, 0] + x[:, 1]]) for labels, x in (then, now))
    now[1][now[0] == 4, 3] += 0.5
    found = drift(then, now)
    changed = found.levels == 4
    assert found.q_value[changed] < 1e-3
    assert np.isfinite(found.statistic[~changed]).all()


def test_everything_moved_by_a_constant_is_found_in_levels_of_one_row():
    labels = np.arange(30)
    year = np.full((60, 1), 2023.0)
    found = drift((labels.repeat(2), year), (labels, year[:30] + 1))
    assert (found.q_value < 0.05).all()


# The spread of a level's own rows


def with_own_spread(then: Rows, now: Rows, weights: Any = None) -> Any:
    new = moments(now, weights=weights)
    codes = np.searchsorted(new.levels.astype(int), now[0])
    return level_drift(
        moments(then),
        new,
        lambda directions: sums_of_squares(codes, now[1].T, weights, new.mean, directions),
    )


def test_sums_of_squares_are_those_of_the_rows_along_their_directions():
    rng = np.random.default_rng(0)
    codes, x, weights = (
        rng.integers(-1, 3, 50),
        rng.normal(size=(50, 2)),
        rng.integers(0, 3, 50).astype(float),
    )
    x[4, 1] = np.nan
    weights[6], x[6] = 0, np.inf
    mean, directions = rng.normal(size=(2, 3, 2))
    expected = np.zeros(3)
    for code, row, weight in zip(codes, x, weights, strict=True):
        if code >= 0 and weight:
            expected[code] += weight * (np.nan_to_num(row - mean[code]) @ directions[code]) ** 2
    np.testing.assert_allclose(sums_of_squares(codes, x.T, weights, mean, directions), expected)


def test_the_statistic_is_divided_by_the_moderated_ratio_of_the_spreads():
    then, now = draw(0, n=600), draw(1, n=600, shift=1.0)
    now[1][now[0] == 0] += 3 * (now[1][now[0] == 0] - now[1][now[0] == 0].mean(axis=0))
    plain, found = drift(then, now), with_own_spread(then, now)
    scatter = moments(then).scatter + moments(now).scatter
    common = scatter / (1200 - 12)
    ratios, freedom = [], []
    for level in range(6):
        old, new = (x[labels == level] for labels, x in (then, now))
        a = np.linalg.solve(common, new.mean(axis=0) - old.mean(axis=0))
        ratios.append(np.var(new @ a, ddof=1) / (a @ common @ a))
        freedom.append(len(new) - 1)
    ratios, freedom = np.array(ratios), np.array(freedom)
    center = max(np.average(ratios, weights=freedom), 1.0)
    variation = (freedom @ (ratios / center - 1) ** 2 - 12) / (freedom.sum() + 12)
    prior = 4 + 2 / variation
    moderated = np.maximum((prior * center + freedom * ratios) / (prior + freedom), 1.0)
    assert 1 < moderated.max() > moderated.min()
    np.testing.assert_allclose(found.statistic, plain.statistic / moderated, rtol=1e-8)
    np.testing.assert_allclose(found.df2, prior + freedom, rtol=1e-8)
    scaled = found.statistic * (1188 - 3 + 1) / (1188 * 3)
    np.testing.assert_allclose(found.p_value, stats.f.sf(scaled, 3, prior + freedom), rtol=1e-6)


def test_levels_that_vary_more_than_others_have_not_moved():
    """Rejection rates at 5 % without any drift; one level in four varies three times as much."""
    rates = []
    for seed in range(20):
        sides = [draw(2 * seed + side, n=800, n_levels=40) for side in (0, 1)]
        for labels, x in sides:
            x[labels % 4 == 0] = labels[labels % 4 == 0, None] + 3 * (
                x[labels % 4 == 0] - labels[labels % 4 == 0, None]
            )
        rates.append([np.mean(test(*sides).p_value < 0.05) for test in (drift, with_own_spread)])
    plain, own = np.mean(rates, axis=0)
    assert plain > 0.1
    assert own < 0.06


def test_indicators_that_are_rare_by_chance_have_not_moved():
    """A level with no 1 among its new rows has no spread either."""
    n_found = 0
    for seed in range(15):
        rng = np.random.default_rng([3, seed])
        sides = [(rng.integers(0, 60, 60 * n), (rng.random((60 * n, 3)) < 0.1) * 1.0) for n in (100, 30)]
        n_found += np.count_nonzero(with_own_spread(*sides).q_value < 0.05)
    assert n_found <= 1


def test_levels_of_the_same_spread_lose_hardly_any_power():
    then, now = draw(0, n=2000), draw(1, n=2000, shift=1.0)
    np.testing.assert_allclose(with_own_spread(then, now).statistic, drift(then, now).statistic, rtol=0.2)


def test_rows_with_weights_and_nulls_have_the_spread_of_repeated_rows():
    then, now = draw(0), draw(1, n=60)
    now[1][::7, 1] = np.nan
    weights = np.random.default_rng(0).integers(0, 4, 60).astype(float)
    repeated = (now[0].repeat(weights.astype(int)), now[1].repeat(weights.astype(int), axis=0))
    one, other = with_own_spread(then, now, weights), with_own_spread(then, repeated)
    for name in TABLES:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8)


def test_levels_of_one_row_take_the_spread_of_all():
    then, now = draw(0), (np.arange(6), draw(1)[1][:6])
    one, other = with_own_spread(then, now), drift(then, now)
    np.testing.assert_allclose(one.statistic, other.statistic)
    np.testing.assert_allclose(one.p_value, other.p_value)


# Other samples


def test_levels_of_one_row_are_tested_too():
    then, now = draw(0), (np.array([0]), np.full((1, 3), 40.0))
    found = drift(then, now)
    assert found.p_value[0] < 1e-10
    assert np.isnan(found.p_value[1:]).all()
    assert found.q_value[0] == found.p_value[0]


def test_only_new_levels_and_no_levels():
    then, now = draw(0), draw(1)
    found = drift(then, (now[0] + 100, now[1]))
    assert np.isnan(found.p_value).all()
    none = level_drift(moments(then), moments((now[0][:0], now[1][:0])))
    assert (none.rows_now == 0).all()
    assert np.isnan(none.q_value).all()


def test_without_covariates_nothing_is_tested():
    then, now = draw(0), draw(1)
    found = drift((then[0], then[1][:, :0]), (now[0], now[1][:, :0]))
    assert np.isnan(found.p_value).all()
    assert (found.rows_now > 0).all()


def test_with_first_moments_only_the_spread_is_that_of_the_other_side():
    then, now = draw(0), draw(1, n=500)
    found = level_drift(moments(then, order=1), moments(now))
    np.testing.assert_allclose(found.statistic, drift(then, now).statistic, rtol=0.3)
    assert (found.df2 == 500 - 6 - 3 + 1).all()
    nothing = level_drift(moments(then, order=1), moments(now, order=1))
    assert np.isnan(nothing.p_value).all()


def test_more_covariates_than_rows_are_tested_one_by_one():
    then, now = draw(0, n=20, p=12), draw(1, n=12, p=12, shift=60.0)
    found = drift(then, now)
    assert (found.df1[~np.isnan(found.df1)] == 1).all()
    assert found.q_value[found.levels == 0] < 0.01


@pytest.mark.parametrize("size", [1e-120, 1e130])
def test_units_do_not_matter(size):
    then, now = draw(0), draw(1, shift=1.0)
    expected, found = drift(then, now), drift((then[0], size * then[1]), (now[0], size * now[1]))
    for name in TABLES:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6)


@pytest.mark.parametrize("huge", [1e200, np.finfo(float).max, -np.finfo(float).max])
def test_huge_new_numbers_have_moved(huge):
    then, now = draw(0), draw(1)
    now[1][now[0] == 0] = huge
    found = level_drift(moments(then), moments(now, order=1))
    assert found.p_value[0] == 0
    np.testing.assert_allclose(found.df2, 120 - 6 - 3 + 1)
    assert (found.p_value[1:] > 1e-4).all()


def test_levels_far_from_zero_keep_their_digits():
    then, now = draw(0), draw(1, shift=1.0)
    for test in (drift, with_own_spread):
        found = test((then[0], then[1] + 1e9), (now[0], now[1] + 1e9))
        np.testing.assert_allclose(found.statistic, test(then, now).statistic, rtol=1e-4)


def test_null_and_crossed_levels_are_levels_like_others():
    levels = as_levels([("a", None), ("a", "b"), None])
    codes = np.arange(30) % 3
    x = np.random.default_rng(0).normal(size=(1, 30))
    sides = [GroupMoments.from_columns(codes, x + shift, levels, covariates=["x"]) for shift in (0, 9)]
    found = level_drift(*sides)
    assert found.levels.tolist() == levels.tolist()
    assert (found.q_value < 0.01).all()
