"""Errors of vectors agree with slow references."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sufrep.moments import GroupMoments
from sufrep.solvers import standard_errors as module
from sufrep.solvers.experts import ClassExperts, LinearExperts
from sufrep.solvers.mixture import Mixture
from sufrep.solvers.new_levels import LinearRule, NewLevels, discriminant_rule
from sufrep.solvers.shrinkage import PriorErrors, estimate_means_prior, overall_scale, prior_errors
from sufrep.solvers.standard_errors import (
    SharesErrors,
    discriminant_errors,
    means_errors,
    separate_errors,
    shares_errors,
    standard_errors,
)


def moments_of(*, nulls: float = 0.0, p: int = 3, n_levels: int = 12, seed: int = 0) -> GroupMoments:
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_levels), rng.integers(1, 9, n_levels))
    rows = rng.normal(size=(n_levels, p))[group] + rng.normal(size=(len(group), p)) @ rng.normal(size=(p, p))
    rows[rng.random(rows.shape) < nulls] = np.nan
    return GroupMoments.from_rows(group.tolist(), 10.0 + 5.0 * rows)


def rule_of(moments: GroupMoments, **options: Any) -> LinearRule:
    p = len(moments.covariates)
    return LinearRule(moments.overall_mean(), options.pop("outputs", np.arange(p)), **options)


def everywhere(moments: GroupMoments) -> np.ndarray:
    return np.arange(moments.n_levels)


def in_units(covariance: np.ndarray, moments: GroupMoments) -> np.ndarray:
    scale = overall_scale(moments)
    return covariance / np.outer(scale, scale)


@pytest.mark.parametrize("nulls", [0.0, 0.4])
def test_the_posterior_covariance_is_that_of_each_level_alone(nulls):
    moments = moments_of(nulls=nulls)
    prior = estimate_means_prior(moments)
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3))
    errors = PriorErrors(root @ root.T, np.zeros(3))
    found = prior.posterior_covariance(moments.observed, moments.weight, errors)
    for level, count in enumerate(moments.observed):
        there = np.flatnonzero(count > 0)
        between = prior.between
        gain = np.zeros((3, 3))
        if len(there):
            noise = np.array([[prior.within[j, k] / max(count[j], count[k]) for k in there] for j in there])
            inverse = np.linalg.inv(between[np.ix_(there, there)] + noise)
            gain[:, there] = between[:, there] @ inverse
        left = np.eye(3) - gain
        expected = left @ between + left @ errors.center @ left.T
        np.testing.assert_allclose(found[level], expected, rtol=1e-5, atol=1e-7)


def test_the_errors_of_the_prior_are_those_of_repeated_samples():
    rng, (n, n_levels) = np.random.default_rng(0), (6, 40)
    group = np.repeat(np.arange(n_levels), n)
    root, samples = np.linalg.cholesky([[0.5, 0.2], [0.2, 0.4]]), []
    for _ in range(300):
        means = rng.normal(size=(n_levels, 2)) @ root.T
        samples.append(
            GroupMoments.from_rows(group.tolist(), means[group] + rng.normal(size=(len(group), 2)))
        )
    priors = [estimate_means_prior(moments) for moments in samples]
    errors = [prior_errors(*pair) for pair in zip(samples, priors, strict=True)]
    centers = np.array([prior.center for prior in priors])
    expected = [error.center * np.outer(p.scale, p.scale) for error, p in zip(errors, priors, strict=True)]
    np.testing.assert_allclose(np.cov(centers.T), np.mean(expected, axis=0), rtol=0.2, atol=2e-3)
    # How far posterior means move from those of the true prior, Prasad and Rao's term, twice.
    truth = replace(priors[0], scale=np.ones(2), center=np.zeros(2), within=np.eye(2))
    signal, axes = np.linalg.eigh(root @ root.T)
    truth = replace(truth, signal=signal, forward=axes, back=axes.T)
    noise, moved, added = np.eye(2) / n, [], []
    for moments, prior, error in zip(samples, priors, errors, strict=True):
        between = prior.between * np.outer(prior.scale, prior.scale)
        gains = [np.linalg.solve(t + noise, t) for t in (between, truth.between)]
        moved.append(((moments.mean @ (gains[0] - gains[1])) ** 2).mean(axis=0))
        covariance = prior.covariance_from_signal(moments.observed[:1], error)[0]
        added.append(np.diag(covariance) * prior.scale**2)
    np.testing.assert_allclose(np.mean(added, axis=0), 2 * np.mean(moved, axis=0), rtol=0.3)


def test_errors_fall_with_the_number_of_rows_where_levels_do_not_differ():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(30), np.arange(1, 31))
    moments = GroupMoments.from_rows(group.tolist(), rng.normal(size=(len(group), 2)))
    assert estimate_means_prior(moments).signal.min() == 0
    errors = standard_errors(means_errors(rule_of(moments, shrink=True), moments, 0), 30, 2)
    assert (np.diff(errors, axis=0) <= 1e-12).all()
    assert (errors < 0.4).all()


@pytest.mark.parametrize("one_more_row", [False, True])
@pytest.mark.parametrize("nulls", [0.0, 0.4])
def test_sample_means_have_the_error_of_their_rows_and_missing_ones_that_of_levels(one_more_row, nulls):
    moments = moments_of(nulls=nulls)
    prior = estimate_means_prior(moments)
    found = means_errors(rule_of(moments, one_more_row=one_more_row), moments, 0)
    apart = prior.between + prior_errors(moments, prior).center
    for level, count in enumerate(moments.observed):
        expected = np.empty((3, 3))
        for j in range(3):
            for k in range(3):
                keep = count[[j, k]] / (count[[j, k]] + 1) if one_more_row else (count[[j, k]] > 0) * 1.0
                noise = prior.within[j, k] / max(count[j], count[k], 1)
                expected[j, k] = keep.prod() * noise + (1 - keep).prod() * apart[j, k]
        covariance = in_units(found.covariances(np.array([level]))[0], moments)
        np.testing.assert_allclose(covariance, expected, rtol=1e-9, atol=1e-12)


def test_a_target_that_is_shrunk_alone_has_its_posterior_variance():
    moments = moments_of()
    found = means_errors(rule_of(moments), moments, 1).covariances(everywhere(moments))
    own = moments.select([2])
    alone = estimate_means_prior(own)
    expected = alone.posterior_covariance(own.observed, own.weight, prior_errors(own, alone))[:, 0, 0]
    # The error of m̂ is that of the joint prior, whose T differs a little.
    np.testing.assert_allclose(found[:, 2, 2], expected * alone.scale**2, rtol=5e-3)
    plain = means_errors(rule_of(moments), moments, 0).covariances(everywhere(moments))
    np.testing.assert_allclose(found[:, :2, :2], plain[:, :2, :2], rtol=1e-12)


def test_separate_errors_are_those_of_priors_of_their_own_and_of_the_prior_without_rows():
    moments = moments_of(n_levels=6)
    places = np.array([0, 1, 2, 4, 5, 6])
    found = separate_errors(moments, places, 7)
    for j in range(3):
        own = moments.select([j])
        prior = estimate_means_prior(own)
        errors = prior_errors(own, prior)
        expected = prior.posterior_covariance(own.observed, own.weight, errors)[:, 0, 0]
        np.testing.assert_allclose(found[places, j], np.sqrt(expected) * prior.scale, rtol=1e-12)
        without = (prior.signal[0] + errors.signal[0]) * prior.back[0, 0] ** 2 + errors.center[0, 0]
        np.testing.assert_allclose(found[3, j], np.sqrt(without) * prior.scale[0], rtol=1e-9)


@pytest.mark.parametrize("shrink", [False, True])
def test_linear_functions_have_the_errors_of_their_means(shrink):
    moments, matrix = moments_of(nulls=0.2), np.array([[1.0, 2.0], [0.5, -1.0]])
    means = means_errors(rule_of(moments, shrink=shrink), moments, 0).covariances(everywhere(moments))
    rule = rule_of(moments, shrink=shrink, outputs=np.array([2, 0]), matrix=matrix)
    found = means_errors(rule, moments, 0).covariances(everywhere(moments))
    for level in range(moments.n_levels):
        part = means[level][np.ix_([2, 0], [2, 0])]
        np.testing.assert_allclose(found[level], matrix.T @ part @ matrix, rtol=1e-9, atol=1e-12)


def test_what_varies_in_no_level_has_no_error():
    rows = np.array([[1.0, 5.0], [1.0, 6.0], [2.0, 4.0], [2.0, 7.0]])
    moments = GroupMoments.from_rows(["a", "a", "b", "b"], rows)
    found = means_errors(rule_of(moments), moments, 0).covariances(everywhere(moments))
    np.testing.assert_allclose(found, np.array([np.diag([0.0, 2.5 / 2])] * 2), atol=1e-12)


def test_a_covariate_without_two_values_in_a_level_has_no_known_error():
    rows = np.array([[1.0, 5.0, np.nan], [1.0, 6.0, 3.0], [2.0, 4.0, np.nan], [2.0, 7.0, 4.0]])
    moments = GroupMoments.from_rows(["a", "a", "b", "b"], rows)
    matrix = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = means_errors(rule_of(moments), moments, 0).covariances(everywhere(moments))
    assert np.isfinite(found[:, :2, :2]).all()
    assert np.isnan(found[:, 2, :]).all()
    projected = means_errors(rule_of(moments, matrix=matrix), moments, 0).covariances(everywhere(moments))
    assert np.isfinite(projected[:, 0, 0]).all()
    assert np.isnan(projected[:, 1, :]).all()


def test_errors_do_not_depend_on_how_many_levels_are_computed_at_a_time(monkeypatch):
    moments = moments_of(nulls=0.3)
    errors = means_errors(rule_of(moments, shrink=True), moments, 0)
    expected = standard_errors(errors, moments.n_levels, 3)
    monkeypatch.setattr(module, "_MOST_NUMBERS", 20)
    np.testing.assert_array_equal(standard_errors(errors, moments.n_levels, 3), expected)


def test_coefficients_of_a_logit_have_the_errors_of_the_delta_method():
    moments = moments_of(n_levels=8)
    rule = discriminant_rule(moments, np.ones((8, 4)), penalty=1.0, scale=overall_scale(moments))
    rule = replace(rule, factor=np.array([1.0, 2.0, 0.5, 1.0]), shift=np.zeros(4))
    means = means_errors(rule_of(moments), moments, 0).covariances(everywhere(moments))
    plain = []
    for level in range(8):

        def vector(mean: np.ndarray, level: int = level) -> np.ndarray:
            own = replace(moments, mean=np.where(np.arange(8)[:, None] == level, mean, moments.mean))
            return rule.vectors(NewLevels(lambda: own, 8, np.empty(0), [], {}))[level]

        step = 1e-4 * np.eye(3)
        change = np.array(
            [(vector(moments.mean[level] + e) - vector(moments.mean[level] - e)) / 2e-4 for e in step]
        )
        n = moments.weight[level]
        expected = change.T @ means[level] @ change
        expected[0, 0] += 1 / n - 1 / moments.total_weight + (3 / 2 + 9 / 4) / n**2
        plain.append(expected)
    found = discriminant_errors(rule, moments).covariances(everywhere(moments))
    centered = 0.75 * np.array(plain) + np.mean(plain, axis=0) / 8
    np.testing.assert_allclose(found, centered, rtol=1e-5, atol=1e-8)


def mixture_of(distance: float, n_states: int = 3, experts: Any = None) -> Mixture:
    shares = np.array([[0.5, 0.3, 0.2], [0.05, 0.05, 0.9], [0.98, 0.01, 0.01]])[:, :n_states]
    shares = shares / shares.sum(axis=1, keepdims=True)
    means, equal = distance * np.eye(n_states, 3), np.full(n_states, 1 / n_states)
    return Mixture(np.zeros(3), means, np.eye(3), shares, equal, experts, np.empty(0), converged=True)


def test_shares_of_states_that_rows_show_have_the_errors_of_a_dirichlet_posterior():
    weight = np.array([5.0, 20.0, 100.0])
    mixture = mixture_of(50.0)
    found = standard_errors(shares_errors(mixture, weight, 1.0), 3, 3)
    rng = np.random.default_rng(0)
    for level, n in enumerate(weight):
        draws = rng.dirichlet((n + 1) * mixture.shares[level] + 1, 200_000)
        expected = np.sqrt(((draws - mixture.shares[level]) ** 2).mean(axis=0))
        np.testing.assert_allclose(found[level], expected, rtol=0.01)


def test_shares_of_states_that_rows_do_not_show_are_known_from_the_prior_only():
    weight = np.array([5.0, 20.0, 100.0])
    hidden = standard_errors(shares_errors(mixture_of(0.0), weight, 1.0), 3, 3)
    half = standard_errors(shares_errors(mixture_of(2.0), weight, 1.0), 3, 3)
    shown = standard_errors(shares_errors(mixture_of(50.0), weight, 1.0), 3, 3)
    assert (hidden > half).all()
    assert (half > shown).all()


def test_errors_of_shares_add_up_to_zero(monkeypatch):
    errors = shares_errors(mixture_of(2.0), np.array([1.0, 7.0, 50.0]), 1.0)
    found = errors.covariances(np.arange(3))
    np.testing.assert_allclose(found.sum(axis=2), 0.0, atol=1e-12)
    monkeypatch.setattr(module, "_MOST_NUMBERS", 10)
    np.testing.assert_allclose(errors.covariances(np.arange(3)), found, rtol=1e-12)


def test_the_share_of_a_single_state_has_no_error():
    errors = SharesErrors(np.ones((4, 1)), np.arange(4.0), 1.0, np.ones((10, 1)))
    np.testing.assert_allclose(errors.covariances(np.arange(4)), 0.0, atol=1e-15)


def test_a_target_that_shows_the_states_makes_their_shares_more_certain():
    weight = np.array([5.0, 20.0, 100.0])
    zero, ones = np.zeros(7), np.ones(3)
    linear = LinearExperts(np.array([[-20.0], [0.0], [20.0]]) * np.eye(1, 7), ones, zero, 1.0, zero + 1.0)
    classes = ClassExperts(0.98 * np.eye(3) + 0.01, ones / 3)
    alone = standard_errors(shares_errors(mixture_of(1.0), weight, 1.0), 3, 3)
    shown = standard_errors(shares_errors(mixture_of(50.0), weight, 1.0), 3, 3)
    with_numbers = standard_errors(shares_errors(mixture_of(1.0, experts=linear), weight, 1.0), 3, 3)
    np.testing.assert_allclose(with_numbers, shown, rtol=1e-3)
    with_classes = standard_errors(shares_errors(mixture_of(1.0, experts=classes), weight, 1.0), 3, 3)
    assert (with_classes < alone).all()
    assert (with_classes > shown).all()
