"""Coefficients of many groups: sums by loops, textbook formulas, and the sense of the shrinking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sufrep.solvers.coefficients import GroupCoefficients, _center, group_grams, shrink_coefficients


def draw(
    spread: Any, *, n_groups: int = 40, n: int = 30, noise: Any = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Grams of groups whose coefficients are N((1, 2, …), diag spread), and the coefficients."""
    rng = np.random.default_rng(seed)
    q = len(spread)
    true = np.arange(1, q + 1) + np.sqrt(spread) * rng.normal(size=(n_groups, q))
    codes = np.repeat(np.arange(n_groups), n)
    Z = np.column_stack([np.ones(len(codes)), rng.normal(size=(len(codes), q - 1))])
    deviation = np.sqrt(np.broadcast_to(noise, n_groups))[codes]
    y = (Z * true[codes]).sum(axis=1) + deviation * rng.normal(size=len(codes))
    return group_grams(np.column_stack([Z, y]), codes, n_groups), true


def shrink(grams: np.ndarray, n_rounds: int = 50, **options: Any) -> GroupCoefficients:
    """Shrink from the overall mean and variance of y."""
    total = grams.sum(axis=0)
    mean = total[0, -1] / total[0, 0]
    variance = float(total[-1, -1] / total[0, 0] - mean**2)
    start = {"center": np.append(mean, np.zeros(len(total) - 2)), "noise": np.full(len(grams), variance)}
    defaults = {"variance": variance, "noise_weight": 1.0, "common_noise": True, "n_rounds": n_rounds}
    return shrink_coefficients(grams, **{**start, **defaults, **options})


def least_squares(grams: np.ndarray) -> np.ndarray:
    """The regression of each group by itself."""
    return np.array([np.linalg.solve(gram[:-1, :-1], gram[:-1, -1]) for gram in grams])


@settings(deadline=None, max_examples=40)
@given(data=st.data(), n=st.integers(0, 12), q=st.integers(1, 3), weighted=st.booleans())
def test_grams_are_those_of_a_loop_over_the_rows(data, n, q, weighted):
    columns = data.draw(hnp.arrays(float, (n, q), elements=st.floats(-100, 100)))
    codes = data.draw(hnp.arrays(int, n, elements=st.integers(0, 3)))
    weights = data.draw(hnp.arrays(float, n, elements=st.floats(0, 5))) if weighted else None
    expected = np.zeros((4, q, q))
    for i in range(n):
        expected[codes[i]] += (1.0 if weights is None else weights[i]) * np.outer(columns[i], columns[i])
    np.testing.assert_allclose(group_grams(columns, codes, 4, weights), expected, atol=1e-9)


def test_one_round_is_that_of_the_formulas():
    grams, _ = draw([1.0, 0.5], n_groups=6, n=8)
    found = shrink_coefficients(
        grams,
        center=np.zeros(2),
        noise=np.full(6, 2.0),
        variance=3.0,
        noise_weight=4.0,
        common_noise=False,
        n_rounds=1,
    )
    parts = [(gram[:2, :2], gram[:2, 2], gram[2, 2]) for gram in grams]
    certainty = [np.linalg.inv(2 * np.linalg.inv(G) + 3 * np.eye(2)) for G, _, _ in parts]
    own = least_squares(grams)
    right = sum(part @ b for part, b in zip(certainty, own, strict=True))
    center = np.linalg.solve(sum(certainty), right)
    np.testing.assert_allclose(found.center, center, rtol=1e-7)
    squares = []
    for k, (G, cross, square) in enumerate(parts):
        covariance = np.linalg.inv(G / 2 + np.eye(2) / 3)
        mean = covariance @ (cross / 2 + center / 3)
        np.testing.assert_allclose(found.means[k], mean, rtol=1e-7)
        squares.append((mean - center) ** 2 + np.diag(covariance))
        residual = square - 2 * mean @ cross + mean @ G @ mean + np.trace(G @ covariance)
        assert found.noise[k] == pytest.approx((residual + 4 * 3.0) / (G[0, 0] + 4), rel=1e-7)
    np.testing.assert_allclose(found.spread, np.mean(squares, axis=0), rtol=1e-7)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), q=st.integers(1, 4))
def test_the_centre_is_that_of_generalised_least_squares(seed, q):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(7, q + 5, q))
    gram = np.einsum("kni,knj->kij", rows, rows)
    own, spread = rng.normal(size=(7, q)), rng.uniform(0.1, 3, q)
    cross = np.einsum("kij,kj->ki", gram, own)
    # β̂_k ~ N(m, G_k⁻¹ + diag τ)
    certainty = [np.linalg.inv(np.linalg.inv(G) + np.diag(spread)) for G in gram]
    right = sum(part @ b for part, b in zip(certainty, own, strict=True))
    expected = np.linalg.solve(sum(certainty), right)
    covariance = np.linalg.inv(gram + np.diag(1 / spread))
    np.testing.assert_allclose(_center(gram, cross, covariance, np.zeros(q)), expected, rtol=1e-6, atol=1e-6)


def test_what_no_group_tells_of_the_centre_stays_as_it_was():
    gram = np.zeros((3, 2, 2))
    gram[:, 0, 0] = [1.0, 2.0, 3.0]
    cross = np.array([[2.0, 0.0], [4.0, 0.0], [6.0, 0.0]])
    covariance = np.linalg.inv(gram + np.eye(2))
    np.testing.assert_allclose(_center(gram, cross, covariance, np.array([0.0, 7.0])), [2.0, 7.0], rtol=1e-6)


def test_coefficients_in_which_groups_do_not_differ_are_shared():
    grams, _ = draw([4.0, 0.0], n_groups=60)
    few, many = shrink(grams, 3), shrink(grams, 200)
    assert many.spread[1] < few.spread[1]
    assert many.spread[1] < 0.02
    assert many.means[:, 1].std() < 0.25 * least_squares(grams)[:, 1].std()
    assert many.center[1] == pytest.approx(2.0, abs=0.05)
    assert many.spread[0] > 2.0


def test_coefficients_of_groups_that_differ_much_are_their_own():
    grams, true = draw([100.0, 400.0], n=50)
    found = shrink(grams)
    np.testing.assert_allclose(found.means, least_squares(grams), atol=0.02)
    np.testing.assert_allclose(found.means, true, atol=0.7)


def test_spread_and_noise_are_those_that_were_drawn():
    spread = np.array([4.0, 1.0, 0.25])
    grams, true = draw(spread, n_groups=400, n=20, noise=2.0)
    found = shrink(grams)
    np.testing.assert_allclose(found.spread, spread, rtol=0.25)
    np.testing.assert_allclose(found.noise, 2.0, rtol=0.05)
    np.testing.assert_allclose(found.center, true.mean(axis=0), atol=0.05)
    errors = [((some - true) ** 2).mean() for some in (found.means, least_squares(grams))]
    assert errors[0] < 0.9 * errors[1]


def test_groups_may_have_noises_of_their_own():
    noise = np.array([0.1, 9.0] * 10)
    grams, _ = draw([1.0, 1.0], n_groups=20, n=200, noise=noise)
    found = shrink(grams, common_noise=False, noise_weight=0.01)
    np.testing.assert_allclose(found.noise, noise, rtol=0.35)
    heavy = shrink(grams, common_noise=False, noise_weight=1e6, variance=5.0)
    np.testing.assert_allclose(heavy.noise, 5.0, rtol=0.01)
    common = shrink(grams)
    assert np.ptp(common.noise) == 0
    assert common.noise[0] == pytest.approx(noise.mean(), rel=0.1)


def test_fewer_rows_are_drawn_further():
    rng = np.random.default_rng(1)
    size = np.array([2, 200] * 15)
    codes = np.repeat(np.arange(30), size)
    y = 2 * rng.normal(size=30)[codes] + 3 * rng.normal(size=len(codes))
    grams = group_grams(np.column_stack([np.ones(len(codes)), y]), codes, 30)
    found = shrink(grams)
    kept = (found.means - found.center).ravel() / (least_squares(grams) - found.center).ravel()
    expected = found.spread / (found.spread + found.noise / size)
    np.testing.assert_allclose(kept, expected, rtol=0.05)
    assert kept[size == 2].max() < kept[size == 200].min()


def test_a_group_without_rows_gets_the_centre():
    grams, _ = draw([1.0, 1.0])
    grams[[3, 7]] = 0.0
    found = shrink(grams, common_noise=False)
    np.testing.assert_allclose(found.means[[3, 7]], np.tile(found.center, (2, 1)), rtol=1e-9)
    assert np.isfinite(found.means).all()
    assert np.abs(found.means[0] - found.center).max() > 0.1


def test_groups_without_any_rows_stay_where_they_began():
    first = np.array([5.0, -1.0])
    found = shrink_coefficients(
        np.zeros((3, 3, 3)),
        center=first,
        noise=np.ones(3),
        variance=1.0,
        noise_weight=1.0,
        common_noise=True,
        n_rounds=10,
    )
    np.testing.assert_allclose(found.means, np.tile(first, (3, 1)))
    np.testing.assert_allclose(found.noise, 1.0)


def test_a_column_that_came_twice_shares_its_coefficient():
    grams, _ = draw([1.0, 1.0], seed=2)
    twice = [0, 1, 1, 2]
    found, once = shrink(grams[:, twice][:, :, twice]), shrink(grams)
    assert np.isfinite(found.means).all()
    np.testing.assert_allclose(found.means[:, 1], found.means[:, 2], atol=1e-6)
    np.testing.assert_allclose(found.means[:, 1] + found.means[:, 2], once.means[:, 1], atol=0.15)


def test_groups_of_a_row_each_do_no_harm():
    grams, true = draw([4.0, 1.0], n_groups=300, n=1)
    found = shrink(grams)
    assert np.isfinite(found.means).all()
    assert ((found.means - true) ** 2).mean() < true.var(axis=0).mean()


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), unit=st.floats(0.01, 100), origin=st.floats(-10, 10))
def test_units_and_origin_carry_over(seed, unit, origin):
    grams, _ = draw([1.0, 0.3], n_groups=10, seed=seed)
    change = np.diag([1.0, 1.0, unit])
    change[0, 2] = origin  # y becomes unit·y + origin
    one, other = (shrink(some) for some in (grams, np.transpose(change) @ grams @ change))
    np.testing.assert_allclose(other.means, unit * one.means + [origin, 0.0], rtol=1e-5, atol=1e-5 * unit)
    np.testing.assert_allclose(other.spread, unit**2 * one.spread, rtol=1e-4)
    np.testing.assert_allclose(other.noise, unit**2 * one.noise, rtol=1e-4)
