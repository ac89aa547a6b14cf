"""Sparse PCA: the criterion, its stationary points and the laws they obey."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from sufrep.solvers.sparse_pca import largest_penalty, sparse_pca


def level_means(seed, n_levels=30, n_covariates=6):
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.3, 3.0, size=n_covariates)
    return rng.normal(size=(n_levels, n_covariates)) * spread + rng.normal(size=n_covariates)


def gram_of(means):
    return means.T @ means / len(means)


def absolute_penalties(gram, alpha, ridge):
    return alpha * largest_penalty(gram), ridge * np.trace(gram) / len(gram)


def criterion_row_by_row(means, rotation, loadings, penalty, ridge):
    """Equation 3.12 of Zou, Hastie and Tibshirani, over the number of levels."""
    misfit = sum(np.sum((row - rotation @ (loadings.T @ row)) ** 2) for row in means) / len(means)
    return misfit + ridge * np.sum(loadings**2) + penalty * np.sum(np.abs(loadings))


def nearest_rotation(matrix):
    left, _, right_t = np.linalg.svd(matrix, full_matrices=False)
    return left @ right_t


def coordinate_descent(gram, n_components, penalty, ridge, n_rounds):
    """Textbook algorithm: update one loading at a time until convergence, then the rotation."""
    rotation = np.linalg.eigh(gram)[1][:, ::-1][:, :n_components]
    loadings = rotation.copy()
    for _ in range(n_rounds):
        for _ in range(30):
            for i in range(len(gram)):
                for j in range(n_components):
                    rest = gram[i] @ (rotation[:, j] - loadings[:, j]) + gram[i, i] * loadings[i, j]
                    shrunk = max(abs(rest) - penalty / 2, 0.0)
                    loadings[i, j] = np.sign(rest) * shrunk / (gram[i, i] + ridge)
        rotation = nearest_rotation(gram @ loadings)
    return rotation, loadings


penalties = pytest.mark.parametrize(
    ("alpha", "ridge"), [(0.0, 0.0), (0.01, 0.0), (0.01, 1e-3), (0.1, 0.1), (0.4, 1e-3)]
)


class TestTheCriterion:
    @penalties
    @pytest.mark.parametrize("n_components", [1, 3, 6])
    def test_the_criterion_is_that_of_the_paper(self, alpha, ridge, n_components):
        means = level_means(0)
        gram = gram_of(means)
        found = sparse_pca(gram, n_components, alpha=alpha, ridge=ridge)
        absolute = absolute_penalties(gram, alpha, ridge)
        expected = criterion_row_by_row(means, found.rotation, found.loadings, *absolute)
        assert found.objective[-1] == pytest.approx(expected, rel=1e-9)

    @penalties
    @pytest.mark.parametrize("seed", range(3))
    def test_the_criterion_never_rises(self, alpha, ridge, seed):
        found = sparse_pca(gram_of(level_means(seed)), 4, alpha=alpha, ridge=ridge)
        assert found.converged
        assert len(found.objective) == found.n_iter + 1
        assert np.diff(found.objective).max() <= 1e-12 * found.objective[0]

    @pytest.mark.parametrize("alpha", [0.02, 0.1])
    def test_the_solution_agrees_with_coordinate_descent(self, alpha):
        gram = gram_of(level_means(2, n_covariates=4))
        penalty, ridge = absolute_penalties(gram, alpha, 1e-2)
        rotation, loadings = coordinate_descent(gram, 2, penalty, ridge, n_rounds=100)
        found = sparse_pca(gram, 2, alpha=alpha, ridge=1e-2, tol=1e-10)
        signs = np.sign((found.loadings * loadings).sum(axis=0))
        np.testing.assert_allclose(found.loadings, loadings * signs, atol=1e-6)
        np.testing.assert_allclose(found.rotation, rotation * signs, atol=1e-6)

    def test_it_stops_after_max_iter(self):
        found = sparse_pca(gram_of(level_means(0)), 4, alpha=0.01, max_iter=3)
        assert not found.converged
        assert found.n_iter == 3


def largest_violation(gram, found, alpha, ridge):
    """Largest violation of the subgradient conditions for the loadings, over the largest penalty."""
    penalty, ridge = absolute_penalties(gram, alpha, ridge)
    loadings, zero = found.loadings, found.loadings == 0
    slope = 2 * (gram @ (loadings - found.rotation) + ridge * loadings)
    at_zero = (np.abs(slope) - penalty)[zero].max(initial=0.0)
    elsewhere = np.abs(slope + penalty * np.sign(loadings))[~zero].max(initial=0.0)
    return max(at_zero, elsewhere) / largest_penalty(gram)


class TestStationarity:
    @penalties
    @pytest.mark.parametrize("seed", range(3))
    def test_loadings_meet_the_subgradient_conditions(self, alpha, ridge, seed):
        gram = gram_of(level_means(seed))
        found = sparse_pca(gram, 4, alpha=alpha, ridge=ridge, tol=1e-10)
        assert largest_violation(gram, found, alpha, ridge) <= 1e-8

    @pytest.mark.parametrize("tol", [1e-3, 1e-5])
    @pytest.mark.parametrize("seed", range(4))
    def test_the_tolerance_bounds_the_violation(self, tol, seed):
        gram = gram_of(level_means(seed))
        found = sparse_pca(gram, 4, alpha=0.03, ridge=1e-3, tol=tol)
        assert largest_violation(gram, found, 0.03, 1e-3) <= 2 * tol

    @penalties
    @pytest.mark.parametrize("seed", range(3))
    def test_the_rotation_is_optimal_for_the_loadings(self, alpha, ridge, seed):
        gram = gram_of(level_means(seed))
        found = sparse_pca(gram, 4, alpha=alpha, ridge=ridge, tol=1e-10)
        fitted = gram @ found.loadings
        best = np.linalg.svd(fitted, compute_uv=False)
        np.testing.assert_allclose(found.rotation.T @ found.rotation, np.eye(4), atol=1e-12)
        assert np.sum(found.rotation * fitted) == pytest.approx(best.sum(), rel=1e-9)
        if best[-1] > 1e-3 * best[0]:
            np.testing.assert_allclose(found.rotation, nearest_rotation(fitted), atol=1e-6)


class TestPenalties:
    @pytest.mark.parametrize("ridge", [0.0, 1e-9])
    @pytest.mark.parametrize("n_components", [1, 3, 6])
    def test_without_l1_penalty_the_components_span_those_of_pca(self, ridge, n_components):
        gram = gram_of(level_means(1))
        found = sparse_pca(gram, n_components, alpha=0.0, ridge=ridge)
        principal = np.linalg.eigh(gram)[1][:, -n_components:]
        assert subspace_angles(found.loadings, principal).max() < 1e-6

    @given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 10), st.sampled_from([0.0, 1e-3]))
    def test_alpha_of_one_sets_every_loading_to_zero(self, seed, n_covariates, n_levels, ridge):
        gram = gram_of(level_means(seed, n_levels, n_covariates))
        found = sparse_pca(gram, n_covariates, alpha=1.0, ridge=ridge)
        assert found.converged
        np.testing.assert_array_equal(found.loadings, 0.0)

    def test_below_the_largest_penalty_some_rotation_has_a_loading(self):
        gram = gram_of(level_means(0))
        row = np.argmax(np.linalg.norm(gram, axis=1))
        rotation = gram[row] / np.linalg.norm(gram[row])
        assert 2 * abs(gram[row] @ rotation) > 0.999 * largest_penalty(gram)

    def test_a_larger_penalty_gives_no_fewer_zeros(self):
        gram = gram_of(level_means(3, n_levels=200, n_covariates=10))
        alphas = [0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0]
        n_zeros = [np.count_nonzero(sparse_pca(gram, 4, alpha=a).loadings == 0) for a in alphas]
        assert n_zeros == sorted(n_zeros)
        assert n_zeros[0] == 0
        assert 0 < n_zeros[3] < n_zeros[-1] == 40

    def test_the_ridge_shrinks_the_loadings(self):
        gram = gram_of(level_means(0))
        weak = sparse_pca(gram, 3, alpha=0.05, ridge=1e-3).loadings
        strong = sparse_pca(gram, 3, alpha=0.05, ridge=1.0).loadings
        assert np.linalg.norm(strong) < np.linalg.norm(weak)


problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n_levels": st.integers(2, 40),
        "n_covariates": st.integers(2, 8),
        "alpha": st.sampled_from([0.01, 0.05, 0.2, 0.6]),
        "ridge": st.sampled_from([0.0, 1e-3, 0.1]),
    }
)
# Without the anchor of the rotation, these loadings would depend on the order of the covariates.
mostly_zero = {"seed": 4, "n_levels": 34, "n_covariates": 6, "alpha": 0.6, "ridge": 1e-3}


class TestLaws:
    @given(problems, st.integers(-40, 40))
    def test_loadings_do_not_depend_on_the_unit(self, problem, exponent):
        gram, fit = self.prepare(problem)
        found, scaled = fit(gram), fit(gram * 4.0**exponent)
        # Multiplication by powers of two is exact, so the results are equal.
        np.testing.assert_array_equal(scaled.loadings, found.loadings)
        np.testing.assert_array_equal(scaled.objective, found.objective * 4.0**exponent)

    @given(problems, st.randoms(use_true_random=False))
    @example(mostly_zero, None)
    def test_permuting_the_covariates_permutes_the_loadings(self, problem, random):
        gram, fit = self.prepare(problem)
        order = np.arange(len(gram))[::-1].copy()
        if random is not None:
            random.shuffle(order)
        permuted = fit(gram[np.ix_(order, order)])
        np.testing.assert_allclose(permuted.loadings, fit(gram).loadings[order], atol=1e-6)

    @given(problems)
    def test_the_largest_loading_of_each_component_is_positive(self, problem):
        gram, fit = self.prepare(problem)
        found = fit(gram)
        deciding = np.where(found.loadings.any(axis=0), found.loadings, found.rotation)
        np.testing.assert_allclose(deciding.max(axis=0), np.abs(deciding).max(axis=0), rtol=1e-7)

    @staticmethod
    def prepare(problem):
        gram = gram_of(level_means(problem["seed"], problem["n_levels"], problem["n_covariates"]))
        n_components = 1 + problem["seed"] % len(gram)
        kwargs = {"alpha": problem["alpha"], "ridge": problem["ridge"], "tol": 1e-10, "max_iter": 20_000}
        return gram, lambda gram: sparse_pca(gram, n_components, **kwargs)


class TestDegenerateInputs:
    @pytest.mark.parametrize("ridge", [0.0, 1e-3])
    @pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
    def test_zero_means_have_zero_loadings_and_an_orthonormal_rotation(self, alpha, ridge):
        found = sparse_pca(np.zeros((4, 4)), 2, alpha=alpha, ridge=ridge)
        assert found.converged
        np.testing.assert_array_equal(found.loadings, 0.0)
        np.testing.assert_allclose(found.rotation.T @ found.rotation, np.eye(2), atol=1e-12)
        np.testing.assert_array_equal(found.objective, 0.0)

    @pytest.mark.parametrize("ridge", [0.0, 1e-3])
    @pytest.mark.parametrize("alpha", [0.0, 0.05])
    def test_a_zero_covariate_has_zero_loadings(self, alpha, ridge):
        means = level_means(0)
        means[:, 2] = 0.0
        found = sparse_pca(gram_of(means), 4, alpha=alpha, ridge=ridge)
        assert found.converged
        np.testing.assert_array_equal(found.loadings[2], 0.0)

    @pytest.mark.parametrize("alpha", [0.0, 0.05])
    def test_a_duplicated_covariate_converges_without_ridge(self, alpha):
        means = level_means(0)[:, [0, 1, 1, 2]]
        gram = gram_of(means)
        found = sparse_pca(gram, 4, alpha=alpha, ridge=0.0)
        assert found.converged
        expected = criterion_row_by_row(
            means, found.rotation, found.loadings, *absolute_penalties(gram, alpha, 0.0)
        )
        assert found.objective[-1] == pytest.approx(expected, rel=1e-9, abs=1e-12)

    def test_components_beyond_the_rank_have_zero_loadings_without_l1_penalty(self):
        found = sparse_pca(gram_of(level_means(0, n_levels=2)), 4, alpha=0.0, ridge=0.0)
        np.testing.assert_allclose(found.loadings[:, 2:], 0.0, atol=1e-12)
        assert np.linalg.matrix_rank(found.loadings) == 2

    @pytest.mark.parametrize("alpha", [0.0, 0.1, 0.7])
    def test_equal_eigenvalues_converge(self, alpha):
        found = sparse_pca(np.eye(5), 3, alpha=alpha, ridge=0.0)
        # Each component is a covariate: minimise 1 - 2b + b² + 2·alpha·|b| to find its loading.
        np.testing.assert_allclose(np.sort(found.loadings, axis=0)[-1], 1 - alpha, atol=1e-6)
        assert np.count_nonzero(np.abs(found.loadings) > 1e-9) == 3

    def test_a_single_covariate_has_the_closed_form_solution(self):
        found = sparse_pca(np.array([[2.0]]), 1, alpha=0.3, ridge=0.5)
        np.testing.assert_allclose(found.loadings, [[0.7 / 1.5]], atol=1e-6)
        np.testing.assert_allclose(found.rotation, [[1.0]])

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_extreme_units_neither_underflow_nor_overflow(self, scale):
        gram = gram_of(level_means(0))
        expected = sparse_pca(gram, 3, alpha=0.05).loadings
        np.testing.assert_allclose(sparse_pca(scale * gram, 3, alpha=0.05).loadings, expected, atol=1e-5)
