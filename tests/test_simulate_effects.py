"""Simulated treatments have the truth that they say."""

from __future__ import annotations

import numpy as np
import pytest

from sufrep._simulate_effects import ARMS, simulate_effects
from sufrep.errors import InvalidParameterError


@pytest.mark.parametrize("arm", ARMS)
def test_a_sample_has_its_shapes_and_propensities_within_bounds(arm):
    sample = simulate_effects(arm, seed=1)
    n = 10_000 if arm == "slope" else 4_000
    n_levels = {"small 5": 800, "small 10": 400}.get(arm, 200)
    assert sample.X.shape == (n, 10)
    assert sample.state_probabilities.shape == (n_levels, 4)
    assert sample.group.max() < n_levels
    assert set(sample.treatment) == {0.0, 1.0}
    assert ((sample.propensity > 0.05) & (sample.propensity < 0.95)).all()
    np.testing.assert_allclose(sample.state_probabilities.sum(axis=1), 1)
    assert sample.treatment.mean() == pytest.approx(sample.propensity.mean(), abs=0.05)


@pytest.mark.parametrize("arm", ["main", "drawn levels", "uneven"])
def test_the_average_effect_is_one(arm):
    effects = [simulate_effects(arm, n=2_000, seed=seed).effect.mean() for seed in range(40)]
    assert np.mean(effects) == pytest.approx(1, abs=4 * np.std(effects) / np.sqrt(40))


def test_the_same_seed_draws_the_same_sample():
    first, second, other = (simulate_effects(n=100, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.outcome, second.outcome)
    assert (first.outcome != other.outcome).any()


@pytest.mark.parametrize("size", [5, 10, 20])
def test_small_groups_have_exactly_so_many_rows_of_one_state(size):
    sample = simulate_effects(f"small {size}", n=1_003, seed=2)
    assert set(np.bincount(sample.group)) == {size}
    assert len(sample.group) == 1_003 // size * size
    assert set(sample.state_probabilities.ravel()) == {0.0, 1.0}


def test_rows_fall_into_the_block_of_their_state_nine_times_of_ten():
    sample = simulate_effects(seed=3)
    np.testing.assert_allclose(sample.state_probabilities.max(axis=1), 0.9)
    assert np.bincount(sample.group, minlength=200).min() > 0


def test_covariates_say_nothing_about_the_group_where_it_is_silent():
    def spread(arm):
        sample = simulate_effects(arm, n=8_000, seed=5)
        blocks = sample.group // 50
        return np.array([sample.X[blocks == block].mean(axis=0) for block in range(4)]).std(axis=0).max()

    assert spread("silent") < 0.1 < spread("main")


def test_fewer_rows_are_treated_in_the_uneven_arm():
    assert simulate_effects("uneven", seed=6).propensity.mean() < 0.42 < 0.45
    assert simulate_effects("main", seed=6).propensity.mean() == pytest.approx(0.5, abs=0.05)


def test_groups_move_the_propensity_but_where_the_state_of_the_row_does():
    """Within a group, what the covariates leave of the propensity is constant, or depends on the state."""

    def left(arm):
        sample = simulate_effects(arm, seed=7)
        logit = np.log((sample.propensity - 0.05) / (0.95 - sample.propensity))
        indicators = np.eye(200)[sample.group]
        design = np.column_stack([sample.X, indicators])
        return np.abs(logit - design @ np.linalg.lstsq(design, logit, rcond=None)[0]).max()

    assert left("main") < 1e-8
    assert left("violation") > 0.1


def test_the_slope_arm_has_an_effect_of_one_and_groups_that_move_a_slope():
    sample = simulate_effects("slope", n=4_000, seed=8)
    assert set(sample.effect) == {1.0}
    logit = np.log((sample.propensity - 0.05) / (0.95 - sample.propensity))
    design = np.column_stack([sample.X, np.eye(200)[sample.group] * sample.X[:, :1]])
    residual = logit - design @ np.linalg.lstsq(design, logit, rcond=None)[0]
    assert np.abs(residual).max() < 1e-8


def test_an_unknown_arm_is_refused():
    with pytest.raises(InvalidParameterError, match="arm"):
        simulate_effects("loud")
