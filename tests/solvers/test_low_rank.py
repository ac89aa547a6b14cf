"""Singular vectors of the level means, and the choice of how many are above the noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sufrep.solvers.low_rank import column_signs, left_singular_vectors, n_components_above_noise


def read_level_table(path):
    return np.genfromtxt(path, delimiter=",", skip_header=1)[:, 1:]


def equal_up_to_column_signs(ours, theirs, atol):
    signs = np.sign((ours * theirs).sum(axis=0))
    np.testing.assert_allclose(ours, theirs * signs, atol=atol)


def draw(rng, n_levels, n_covariates, rank=None):
    if rank is None:
        return rng.normal(size=(n_levels, n_covariates))
    return rng.normal(size=(n_levels, rank)) @ rng.normal(size=(rank, n_covariates))


shapes = st.tuples(st.integers(1, 12), st.integers(1, 12))
seeds = st.integers(0, 2**32 - 1)
law = settings()


class TestLeftSingularVectors:
    def test_vectors_agree_with_r_up_to_sign(self, r_fixtures):
        found = left_singular_vectors(read_level_table(r_fixtures / "means.csv"), 3)
        equal_up_to_column_signs(found.vectors, read_level_table(r_fixtures / "low_rank_3.csv"), atol=1e-6)

    def test_singular_values_agree_with_r(self, r_fixtures):
        found = left_singular_vectors(read_level_table(r_fixtures / "means.csv"), 3)
        theirs = np.genfromtxt(r_fixtures / "low_rank_singular_values.csv", skip_header=1)
        np.testing.assert_allclose(found.singular_values, theirs, rtol=1e-6)

    @law
    @given(shapes, seeds, st.integers(1, 12))
    def test_vectors_are_eigenvectors_of_the_gram_matrices(self, shape, seed, k):
        matrix = draw(np.random.default_rng(seed), *shape)
        found = left_singular_vectors(matrix, k)
        squared = np.pad(found.singular_values, (0, k))[:k] ** 2
        assert found.vectors.shape == (shape[0], k)
        assert found.right.shape == (shape[1], k)
        assert found.singular_values.shape == (min(shape),)
        np.testing.assert_allclose(matrix @ matrix.T @ found.vectors, found.vectors * squared, atol=1e-9)
        np.testing.assert_allclose(matrix.T @ matrix @ found.right, found.right * squared, atol=1e-9)

    @law
    @given(shapes, seeds)
    def test_all_triplets_reconstruct_the_matrix(self, shape, seed):
        matrix = draw(np.random.default_rng(seed), *shape)
        found = left_singular_vectors(matrix, min(shape))
        np.testing.assert_allclose(
            (found.vectors * found.singular_values) @ found.right.T, matrix, atol=1e-10
        )

    @law
    @given(seeds)
    def test_reordering_the_levels_reorders_the_rows_without_a_sign_flip(self, seed):
        rng = np.random.default_rng(seed)
        matrix, order = draw(rng, 15, 4), rng.permutation(15)
        found, shuffled = left_singular_vectors(matrix, 4), left_singular_vectors(matrix[order], 4)
        np.testing.assert_allclose(shuffled.vectors, found.vectors[order], atol=1e-7)

    @law
    @given(seeds)
    def test_duplicating_the_levels_does_not_flip_a_sign(self, seed):
        matrix = draw(np.random.default_rng(seed), 15, 4)
        found, doubled = (
            left_singular_vectors(matrix, 4),
            left_singular_vectors(np.vstack([matrix, matrix]), 4),
        )
        np.testing.assert_allclose(doubled.vectors[:15] * np.sqrt(2), found.vectors, atol=1e-7)

    @law
    @given(seeds)
    def test_rotating_the_covariates_changes_only_the_signs(self, seed):
        rng = np.random.default_rng(seed)
        matrix, rotation = draw(rng, 10, 5), np.linalg.qr(rng.normal(size=(5, 5)))[0]
        found, turned = left_singular_vectors(matrix, 3), left_singular_vectors(matrix @ rotation, 3)
        equal_up_to_column_signs(turned.vectors, found.vectors, atol=1e-6)

    @law
    @given(seeds)
    def test_rotating_the_levels_rotates_the_vectors(self, seed):
        rng = np.random.default_rng(seed)
        matrix, rotation = draw(rng, 6, 4), np.linalg.qr(rng.normal(size=(6, 6)))[0]
        found, turned = left_singular_vectors(matrix, 4), left_singular_vectors(rotation @ matrix, 4)
        np.testing.assert_allclose(turned.vectors, rotation @ found.vectors, atol=1e-6)

    @law
    @given(seeds, st.floats(1e-6, 1e6))
    def test_vectors_do_not_depend_on_the_unit(self, seed, unit):
        matrix = draw(np.random.default_rng(seed), 8, 5)
        expected = left_singular_vectors(matrix, 3).vectors
        np.testing.assert_allclose(left_singular_vectors(unit * matrix, 3).vectors, expected, atol=1e-7)

    @pytest.mark.parametrize(("n_levels", "n_covariates"), [(3, 6), (6, 3)])
    def test_columns_beyond_the_smaller_dimension_are_zero(self, n_levels, n_covariates):
        found = left_singular_vectors(draw(np.random.default_rng(0), n_levels, n_covariates), 5)
        np.testing.assert_array_equal(found.vectors[:, 3:], 0.0)
        np.testing.assert_array_equal(found.right[:, 3:], 0.0)
        np.testing.assert_allclose(np.linalg.norm(found.vectors[:, :3], axis=0), 1.0)

    @law
    @given(seeds, st.integers(1, 4))
    def test_columns_beyond_the_rank_are_zero(self, seed, rank):
        found = left_singular_vectors(draw(np.random.default_rng(seed), 9, 6, rank), 6)
        assert np.count_nonzero(found.vectors.any(axis=0)) == rank

    def test_a_zero_matrix_has_zero_vectors(self):
        found = left_singular_vectors(np.zeros((4, 3)), 2)
        np.testing.assert_array_equal(found.vectors, np.zeros((4, 2)))
        np.testing.assert_array_equal(found.singular_values, np.zeros(3))

    def test_the_matrix_is_not_centered(self):
        found = left_singular_vectors(np.full((4, 2), 3.0), 1)
        np.testing.assert_allclose(found.vectors, 0.5)


class TestColumnSigns:
    def test_the_largest_entry_becomes_positive(self):
        np.testing.assert_array_equal(column_signs(np.array([[1.0, -2.0], [-3.0, 1.0]])), [-1, -1])

    @pytest.mark.parametrize("rounding", [-1e-15, 0.0, 1e-15])
    def test_a_tie_for_the_largest_entry_goes_to_the_first(self, rounding):
        np.testing.assert_array_equal(column_signs(np.array([[0.1], [-0.5], [0.5 + rounding]])), [-1])

    def test_a_zero_column_has_the_sign_one(self):
        np.testing.assert_array_equal(column_signs(np.zeros((3, 1))), [1])


def level_moments(covariates, group):
    """Means, counts and pooled covariance by their definitions."""
    levels, codes, count = np.unique(group, return_inverse=True, return_counts=True)
    mean = np.column_stack([np.bincount(codes, column) for column in covariates.T]) / count[:, None]
    deviation = covariates - mean[codes]
    return mean, count, deviation.T @ deviation / (len(group) - len(levels))


def paper_design(seed, n_states, levels_per_state, n_rows=10_000, n_covariates=20):
    """Level moments from the paper's simulation, and the rank of the true level means."""
    rng = np.random.default_rng(seed)
    state_mean = np.zeros((n_states, n_covariates))
    for row in state_mean:
        row[rng.choice(n_covariates, 3, replace=False)] = rng.choice([-1, 1], 3)
    n_levels = n_states * levels_per_state
    block = rng.permutation(n_levels) % n_states
    group = rng.integers(n_levels, size=n_rows)
    stranger = (block[group] + rng.integers(1, n_states, size=n_rows)) % n_states
    state = np.where(rng.random(n_rows) < 0.9, block[group], stranger)
    toeplitz = 0.5 ** np.abs(np.subtract.outer(np.arange(n_covariates), np.arange(n_covariates)))
    noise = rng.normal(size=(n_rows, n_covariates)) @ np.linalg.cholesky(toeplitz).T
    mixing = np.full((n_states, n_states), 0.1 / (n_states - 1))
    np.fill_diagonal(mixing, 0.9)
    return level_moments(state_mean[state] + noise, group), np.linalg.matrix_rank(mixing @ state_mean)


def pure_noise(seed, n_levels, n_covariates, rows_per_level):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_levels), rows_per_level)
    return level_moments(rng.normal(size=(len(group), n_covariates)), group)


def n_chosen_beyond_rank(n_states, levels_per_state):
    designs = (paper_design(seed, n_states, levels_per_state) for seed in range(20))
    return np.array([n_components_above_noise(*moments) - rank for moments, rank in designs])


class TestComponentsAboveNoise:
    def test_two_states_are_found(self):
        beyond = n_chosen_beyond_rank(2, 50)
        assert (beyond == 0).mean() >= 0.85
        assert set(beyond) <= {0, 1}

    def test_ten_states_are_found_up_to_one(self):
        # With ten rows per level, the weakest of the ten states is close to the noise edge.
        beyond = n_chosen_beyond_rank(10, 100)
        assert (beyond == 0).mean() >= 0.75
        assert set(beyond) <= {-1, 0, 1}

    @pytest.mark.parametrize(("n_levels", "n_covariates"), [(40, 5), (10, 15), (2, 2)])
    def test_noise_around_zero_gives_one_component(self, n_levels, n_covariates):
        chosen = [n_components_above_noise(*pure_noise(s, n_levels, n_covariates, 20)) for s in range(50)]
        assert np.mean(np.array(chosen) == 1) >= 0.9

    def test_centered_noise_has_no_component_and_centered_states_one_less(self):
        rng = np.random.default_rng(0)
        weight, within = np.full(60, 20.0), np.eye(5)
        noise = rng.normal(size=(60, 5)) / np.sqrt(20)
        for states, expected in ((np.zeros((1, 5)), 0), (2 * np.eye(5)[:1], 0), (2 * np.eye(5)[:3], 2)):
            mean = states[np.arange(60) % len(states)] + noise
            found = n_components_above_noise(mean - mean.mean(axis=0), weight, within, centered=True)
            assert found == expected

    def test_noise_around_a_common_mean_gives_one_component(self):
        chosen = []
        for seed in range(50):
            mean, count, covariance = pure_noise(seed, 40, 5, 20)
            chosen.append(n_components_above_noise(mean + 3.0, count, covariance))
        assert np.mean(np.array(chosen) == 1) >= 0.9

    def test_noise_stays_below_the_edge_with_two_rows_per_level(self):
        # The common mean is one component far above the noise; a second would be noise.
        chosen = []
        for seed in range(50):
            mean, count, covariance = pure_noise(seed, 300, 15, 2)
            chosen.append(n_components_above_noise(mean + 3.0, count, covariance))
        assert np.mean(np.array(chosen) == 1) >= 0.85

    @given(seeds)
    def test_the_number_depends_on_neither_units_nor_rotations(self, seed):
        rng = np.random.default_rng(seed)
        mean, count, covariance = pure_noise(seed, 30, 4, 10)
        mean = mean + draw(rng, 30, 4, rank=2)
        units = np.linalg.qr(rng.normal(size=(4, 4)))[0] * rng.uniform(0.01, 100, size=4)
        turned = n_components_above_noise(mean @ units, count, units.T @ covariance @ units)
        assert turned == n_components_above_noise(mean, count, covariance)

    @given(seeds)
    def test_a_duplicated_covariate_adds_no_component(self, seed):
        mean, count, covariance = pure_noise(seed, 30, 4, 10)
        mean = mean + draw(np.random.default_rng(seed), 30, 4, rank=2)
        twice = [0, 1, 2, 3, 3]
        repeated = n_components_above_noise(mean[:, twice], count, covariance[np.ix_(twice, twice)])
        assert repeated == n_components_above_noise(mean, count, covariance)

    def test_levels_without_rows_are_ignored(self):
        mean, count, covariance = pure_noise(0, 30, 4, 10)
        with_empty = np.vstack([mean, np.full((5, 4), np.nan)])
        count_with_empty = np.concatenate([count, np.zeros(5)])
        expected = n_components_above_noise(mean, count, covariance)
        assert n_components_above_noise(with_empty, count_with_empty, covariance) == expected

    @pytest.mark.parametrize("rank", [1, 2, 3])
    def test_without_noise_the_number_is_the_rank_of_the_means(self, rank):
        mean = draw(np.random.default_rng(0), 8, 5, rank)
        assert n_components_above_noise(mean, np.full(8, 3.0), np.zeros((5, 5))) == rank

    def test_covariates_constant_within_levels_are_components(self):
        mean, count, covariance = pure_noise(0, 40, 3, 20)
        own = np.random.default_rng(0).normal(size=(40, 2))
        everything = np.block([[covariance, np.zeros((3, 2))], [np.zeros((2, 5))]])
        assert n_components_above_noise(np.hstack([mean, own]), count, everything) == 2

    @pytest.mark.parametrize("spread", [1e9 * np.finfo(float).eps, 1e-150])
    def test_rounding_of_a_constant_far_from_zero_is_not_a_component(self, spread):
        mean, count, covariance = pure_noise(0, 40, 3, 20)
        constant = np.full((40, 1), 1e9)
        everything = np.block([[covariance, np.zeros((3, 1))], [np.zeros((1, 3)), np.array([[spread**2]])]])
        assert n_components_above_noise(np.hstack([mean, constant]), count, everything) == 1

    def test_variation_explained_by_noise_free_covariates_is_not_counted_twice(self):
        mean, count, covariance = pure_noise(0, 40, 3, 20)
        own = np.random.default_rng(1).normal(size=(40, 1))
        everything = np.block([[covariance, np.zeros((3, 1))], [np.zeros((1, 4))]])
        assert n_components_above_noise(np.hstack([mean + 5 * own, own]), count, everything) == 1

    @given(shapes, seeds, st.integers(2, 5))
    @example(shape=(1, 1), seed=0, rows_per_level=2)
    def test_the_number_is_between_one_and_the_smaller_dimension(self, shape, seed, rows_per_level):
        mean, count, covariance = pure_noise(seed, *shape, rows_per_level)
        assert 1 <= n_components_above_noise(100 * mean, count, covariance) <= min(shape)

    def test_zero_means_without_noise_give_one_component(self):
        assert n_components_above_noise(np.zeros((3, 2)), np.ones(3), np.zeros((2, 2))) == 1
