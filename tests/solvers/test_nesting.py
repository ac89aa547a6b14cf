"""Means of nested levels against the joint normal distribution, written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep.moments import GroupMoments
from sufrep.representation import as_levels
from sufrep.solvers.nesting import (
    Nesting,
    nearest_known,
    nested_errors,
    shrink_nested,
    shrink_towards_parents,
)
from sufrep.solvers.shrinkage import PriorErrors, estimate_means_prior, shrink_means


def drawn(
    seed: int = 0, *, spread: tuple[float, ...] = (0.5, 1.0, 1.5), nulls: float = 0.0
) -> tuple[GroupMoments, Nesting]:
    """Forty-eight levels in twelve parents in four grandparents, a few rows each."""
    rng = np.random.default_rng(seed)
    parents = rng.permutation(np.arange(48) % 12), rng.permutation(np.arange(12) % 4)
    path = [np.arange(48), parents[0], parents[1][parents[0]]]
    mean = sum(
        scale * rng.normal(size=(48, 3))[unit] for scale, unit in zip(spread, path, strict=True)
    ) + np.array([5.0, 0.0, -100.0])
    level = np.append(np.arange(48), rng.integers(0, 48, 150))
    rows = mean[level] + rng.normal(size=(len(level), 3)) @ rng.normal(size=(3, 3))
    rows[rng.random(rows.shape) < nulls] = np.nan
    names = as_levels([f"p{u}" for u in range(12)]), as_levels([f"s{u}" for u in range(4)])
    return GroupMoments.from_rows(level.tolist(), rows), Nesting(parents, names)


def naive_between(moments: GroupMoments, nesting: Nesting, within: np.ndarray, scale: np.ndarray) -> list:
    """T_0, T_1, … by loops over parents and units, before negative eigenvalues are dropped."""
    total = moments.weight.sum()
    mean = (moments.mean - moments.weight @ moments.mean / total) / scale
    members = [[g] for g in range(moments.n_levels)]
    below: list[list[list[int]]] = []
    found: list[np.ndarray] = []
    n_parents = [*map(len, nesting.names), 1]
    for parent, number in zip(
        [*nesting.parents, np.zeros(len(nesting.names[-1]), int)], n_parents, strict=True
    ):
        weights = [moments.weight[own].sum() for own in members]
        means = [moments.weight[own] @ mean[own] / moments.weight[own].sum() for own in members]
        spread, noise, size = np.zeros((3, 3)), np.zeros((3, 3)), 0.0
        for one in range(number):
            units = np.flatnonzero(parent == one)
            whole = sum(weights[u] for u in units)
            center = sum(weights[u] * means[u] for u in units) / whole
            for u in units:
                spread += weights[u] * np.outer(means[u] - center, means[u] - center)
                variance = within / weights[u]
                for tier, between in zip(below, found, strict=True):
                    inside = [v for v in tier if set(v) <= set(members[u])]
                    squares = sum((moments.weight[v].sum() / weights[u]) ** 2 for v in inside)
                    variance = variance + squares * between
                noise += weights[u] * (1 - weights[u] / whole) * variance
            size += whole - sum(weights[u] ** 2 for u in units) / whole
        found.append((spread - noise) / size)
        below.append(members)
        members = [[g for u in np.flatnonzero(parent == one) for g in members[u]] for one in range(number)]
    return found


def naive_means(moments: GroupMoments, nesting: Nesting, between: list, within: np.ndarray) -> np.ndarray:
    """E[μ | all sample means] from the joint normal distribution of all means."""
    n, p = moments.mean.shape
    path = [np.arange(n)]
    for parent in nesting.parents:
        path.append(parent[path[-1]])
    prior = sum(np.kron(unit[:, None] == unit, T) for unit, T in zip(path, between, strict=True))
    noise = np.kron(np.diag(1 / moments.weight), within)
    center = moments.weight @ moments.mean / moments.weight.sum()
    deviation = (moments.mean - center).ravel()
    return center + (prior @ np.linalg.solve(prior + noise, deviation)).reshape(n, p)


@pytest.mark.parametrize("seed", range(3))
def test_means_are_those_of_the_joint_normal_distribution(seed):
    moments, nesting = drawn(seed)
    found = shrink_nested(moments, nesting)
    units = np.outer(found.own.scale, found.own.scale)
    total = [found.own.between, found.tiers[1].prior.between, found.prior.between]
    between = [total[0], total[1] - total[0], total[2] - total[1]]
    assert np.abs(between[1:]).max() > 0.1
    values = naive_means(moments, nesting, [T * units for T in between], found.own.within * units)
    np.testing.assert_allclose(found.values, values, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_errors_are_those_of_the_joint_normal_distribution(seed):
    moments, nesting = drawn(seed)
    found = shrink_nested(moments, nesting)
    total = [found.own.between, found.tiers[1].prior.between, found.prior.between]
    between = [total[0], total[1] - total[0], total[2] - total[1]]
    n, p = moments.mean.shape
    path = [np.arange(n), nesting.parents[0], nesting.parents[1][nesting.parents[0]]]
    prior = sum(np.kron(unit[:, None] == unit, T) for unit, T in zip(path, between, strict=True))
    left = np.eye(n * p) - prior @ np.linalg.inv(
        prior + np.kron(np.diag(1 / moments.weight), found.own.within)
    )
    # The overall mean is a weighted mean of all rows.
    average = np.kron(moments.weight / moments.weight.sum(), np.eye(p))
    noise = found.own.within / moments.weight.sum()
    passed = left @ np.kron(np.ones((n, 1)), np.eye(p))
    expected = left @ prior + passed @ (average @ prior @ average.T + noise) @ passed.T
    own, errors = nested_errors(moments, nesting)
    errors = PriorErrors(errors.center[nesting.parents[0]], np.zeros(p))
    covariances = own.posterior_covariance(moments.observed, moments.weight, errors)
    for level in range(n):
        place = slice(level * p, (level + 1) * p)
        np.testing.assert_allclose(covariances[level], expected[place, place], atol=1e-6)


def test_variances_are_those_of_loops():
    # Where nothing is negative, nothing is dropped, and all tiers are comparable.
    for seed in range(20):
        moments, nesting = drawn(seed, spread=(2.0, 3.0, 6.0))
        found = shrink_nested(moments, nesting)
        expected = naive_between(moments, nesting, found.own.within, found.own.scale)
        if all(np.linalg.eigvalsh(T)[0] > 0 for T in expected) and np.abs(found.prior.between).max() > 0.5:
            total = [found.own.between, found.tiers[1].prior.between, found.prior.between]
            np.testing.assert_allclose(total, np.cumsum(expected, axis=0), atol=1e-6)
            return
    raise AssertionError("no sample without negative eigenvalues")


@given(seed=st.integers(0, 10_000), nulls=st.sampled_from([0.0, 0.3]))
@settings(max_examples=settings.default.max_examples // 4)
def test_one_parent_of_all_levels_is_no_parent(seed, nulls):
    moments, _ = drawn(seed, nulls=nulls)
    plain = shrink_means(moments, estimate_means_prior(moments))
    n, scale = moments.n_levels, np.abs(plain).max(axis=0)  # a small mean of a large column has its rounding
    for parents, names in ((np.zeros(n, int), ["all"]), (np.arange(n), [None] * n)):
        found = shrink_nested(moments, Nesting((parents,), (as_levels(names),)))
        np.testing.assert_allclose(found.values / scale, plain / scale, atol=1e-9)
        np.testing.assert_allclose(found.prior.between, estimate_means_prior(moments).between, atol=1e-9)
    np.testing.assert_array_equal(shrink_towards_parents(moments, None)[0], plain)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=settings.default.max_examples // 4)
def test_the_order_of_the_parents_changes_nothing(seed):
    moments, nesting = drawn(seed, nulls=0.1)
    order = np.random.default_rng(seed).permutation(12)
    other = Nesting(
        (np.argsort(order)[nesting.parents[0]], nesting.parents[1][order]),
        (nesting.names[0][order], nesting.names[1]),
    )
    found, again = shrink_nested(moments, nesting), shrink_nested(moments, other)
    np.testing.assert_allclose(found.values, again.values, atol=1e-8)
    np.testing.assert_allclose(found.tiers[0].means[order], again.tiers[0].means, atol=1e-8)


def test_a_parent_that_says_nothing_changes_nothing():
    unchanged = 0
    for seed in range(20):
        moments, nesting = drawn(seed, spread=(1.0, 0.0, 0.0))
        plain = shrink_means(moments, estimate_means_prior(moments))
        unchanged += np.allclose(shrink_nested(moments, nesting).values, plain)
    assert unchanged >= 16  # each of two tiers is tested at 5 %


def test_levels_with_few_rows_gain_from_parents():
    for seed in range(5):
        moments, nesting = drawn(seed, spread=(0.3, 2.0, 2.0), nulls=0.1)
        rng = np.random.default_rng(seed)
        path = [np.arange(48), rng.permutation(np.arange(48) % 12), rng.permutation(np.arange(12) % 4)]
        path[2] = path[2][path[1]]
        truth = sum(
            scale * rng.normal(size=(48, 3))[unit] for scale, unit in zip((0.3, 2.0, 2.0), path, strict=True)
        ) + np.array([5.0, 0.0, -100.0])
        nested, plain = (shrink_nested(moments, tree).values for tree in (nesting, None))
        assert ((nested - truth) ** 2).mean() < 0.8 * ((plain - truth) ** 2).mean()


def test_covariates_that_a_whole_parent_lacks_are_finite():
    moments, nesting = drawn(1)
    mean, observed = moments.mean.copy(), moments.observed.copy()
    inside = nesting.parents[0] == 3
    mean[inside, 1], observed[inside, 1] = np.nan, 0.0
    mean[:, 2], observed[:, 2] = np.nan, 0.0
    with_nulls = type(moments)(
        moments.levels,
        moments.covariates,
        moments.count,
        moments.weight,
        observed,
        mean,
        moments.squares,
        moments.complete_weight,
        moments.complete_mean,
        moments.scatter,
    )
    found = shrink_nested(with_nulls, nesting)
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.tiers[0].means).all()


def test_some_levels_keep_their_ancestors():
    _, nesting = drawn()
    chosen = np.array([5, 40, 7])
    part = nesting.take(chosen)
    for whole, own in zip(nesting.paths(chosen), part.paths(np.arange(3)), strict=True):
        assert whole.tolist() == own.tolist()
    assert len(part.names[0]) == len(set(part.names[0].tolist())) <= 3


def test_the_nearest_known_ancestor_is_found():
    moments, nesting = drawn()
    tiers = shrink_nested(moments, nesting).tiers
    paths = as_levels(["p3", "new", None, None]), as_levels(["s0", "s2", "s1", "new"])
    tier, place = nearest_known(paths, tiers, 4)
    assert tier.tolist() == [0, 1, 1, -1]
    assert place.tolist() == [3, 2, 1, -1]


@pytest.mark.parametrize("seed", range(3))
def test_enormous_weights_have_finite_means(seed):
    rng = np.random.default_rng(seed)
    level = np.append(np.arange(12), rng.integers(0, 12, 20))
    rows = np.outer((level % 4) * 10.0 + rng.normal(size=32), [1.0, 2.0])  # collinear
    moments = GroupMoments.from_rows(level.tolist(), rows, weights=rng.random(32) * 1e40)
    nesting = Nesting((np.arange(12) % 4,), (as_levels(list("abcd")),))
    found = shrink_nested(moments, nesting)
    assert np.isfinite(found.values).all()
    np.testing.assert_allclose(found.values, moments.mean, rtol=1e-3, atol=1e-3)
