"""The simulation's target and truth, against the paper's formulas written out and against what was drawn."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, stats

from sufrep import Simulation, _simulate, simulate
from sufrep._simulate import SETUPS

by_setup = pytest.mark.parametrize("setup", SETUPS)
law = settings(deadline=None, max_examples=50)
own_probabilities = st.sampled_from([0.0, 0.3, 0.9, 1.0])


@cache
def large(setup: str = "latent_linear") -> Simulation:
    # States overlap (few covariates) and levels mix them, so that there is a doubt to be right about.
    return simulate(setup, n=200_000, p=4, n_latent=3, levels_per_latent=4, own_probability=0.6, seed=5)


@cache
def many_states() -> Simulation:
    return simulate("piecewise_linear", n=1, p=8, n_latent=3000, levels_per_latent=1, seed=2)


def small(setup: str, **changes: Any) -> Simulation:
    return simulate(setup, **{"n": 40, "p": 4, "n_latent": 3, "levels_per_latent": 2, "seed": 6, **changes})


def by_level(sample: Simulation, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of the columns of `values` by level, and their standard errors."""
    rows = [values[sample.codes == code] for code in range(len(sample.levels))]
    means = np.array([r.mean(axis=0) for r in rows])
    return means, np.array([r.std(axis=0) / np.sqrt(len(r)) for r in rows])


def z(counts: np.ndarray, n: int, probability: np.ndarray | float) -> np.ndarray:
    """Distance of binomial counts from what they should be, in standard errors."""
    return np.abs(counts - n * probability) / np.sqrt(
        n * np.multiply(probability, np.subtract(1, probability))
    )


def naive_posterior(sample: Simulation, row: int, prior: np.ndarray) -> np.ndarray:
    sigma = linalg.toeplitz(0.5 ** np.arange(sample.X.shape[1]))
    densities = [stats.multivariate_normal(mean, sigma).pdf(sample.X[row]) for mean in sample.state_means]
    return densities * prior / np.sum(densities * prior)


def naive_outcomes(sample: Simulation, row: int) -> np.ndarray:
    """E[Y|x, l] of one row, by state."""
    x, truth = sample.X[row], sample.outcome
    slopes = np.where(x > np.median(sample.X, axis=0), truth.slopes_above, truth.slopes_below)
    return truth.intercepts + (slopes * x).sum(axis=1)


def outcome_of_the_paper(sample: Simulation) -> np.ndarray:
    """E[Y|x, l] of each row, by the sum that the paper displays for the piecewise setup."""
    truth, mean = sample.outcome, np.zeros(len(sample.X))
    for j, x in enumerate(sample.X.T):
        mean += (x > np.median(x)) * x * truth.slopes_above[sample.latent, j]
        mean += (x <= np.median(x)) * x * truth.slopes_below[sample.latent, j]
    return mean + truth.intercepts[sample.latent]


# The target


@by_setup
def test_noise_is_standard_normal_and_knows_nothing_of_the_rest(setup: str) -> None:
    sample = large(setup)
    noise = sample.y - outcome_of_the_paper(sample)
    assert stats.kstest(noise, "norm").pvalue > 1e-4
    assert abs((noise**2).mean() - 1) < 5 * np.sqrt(2 / len(noise))
    states = np.eye(3)[sample.latent]
    known = np.column_stack(
        [sample.X, sample.X**2, states, np.eye(12)[sample.codes], sample.X * states[:, :1]]
    )
    assert (np.abs(noise @ known) < 5 * np.sqrt((known**2).sum(axis=0))).all()
    assert abs(noise[1:] @ noise[:-1]) < 5 * np.sqrt(len(noise))


@by_setup
def test_expected_outcome_is_the_sum_the_paper_displays(setup: str) -> None:
    sample = small(setup, n=41)
    own_state = sample.outcome.mean(sample.X)[np.arange(41), sample.latent]
    np.testing.assert_allclose(own_state, outcome_of_the_paper(sample), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(sample.outcome.medians, np.median(sample.X, axis=0))


@pytest.mark.parametrize("side", ["slopes_above", "slopes_below"])
def test_slopes_are_uniform_on_three_values_and_of_norm_one(side: str) -> None:
    slopes = getattr(many_states().outcome, side)
    np.testing.assert_allclose((slopes**2).sum(axis=1), 1, rtol=1e-14)
    signs = np.sign(slopes)
    np.testing.assert_allclose(slopes, signs / np.sqrt((signs != 0).sum(axis=1, keepdims=True)), rtol=1e-14)
    for value in (-1, 0, 1):
        assert z((signs == value).sum(axis=0), 3000, 1 / 3).max() < 5


def test_a_row_of_slopes_that_is_all_zero_is_drawn_again() -> None:
    sample = simulate("latent_linear", n=1, p=1, n_latent=2000, levels_per_latent=1, seed=4)
    slopes = sample.outcome.slopes_above
    assert (np.abs(slopes) == 1).all()
    assert z((slopes == 1).sum(), 2000, 1 / 2) < 5


def test_intercepts_are_laplace_with_variance_one() -> None:
    intercepts = many_states().outcome.intercepts
    assert stats.kstest(intercepts, stats.laplace(scale=np.sqrt(1 / 2)).cdf).pvalue > 1e-4
    assert abs((intercepts**2).mean() - 1) < 5 * np.sqrt(5 / 3000)  # a Laplace's kurtosis is 6


def test_slopes_of_states_and_sides_are_unrelated_where_they_differ() -> None:
    truth = many_states().outcome
    for a, b in [(truth.slopes_above, truth.slopes_below), (truth.slopes_above[1:], truth.slopes_above[:-1])]:
        # Products of two independent rows of norm 1 have variance 1/p.
        assert abs((a * b).sum(axis=1).mean()) < 5 / np.sqrt(8 * len(a))


def test_setups_say_which_slopes_are_equal() -> None:
    one, by_state, by_side = (small(setup).outcome for setup in SETUPS)
    assert (one.slopes_above == one.slopes_above[0]).all()
    assert (one.slopes_above == one.slopes_below).all()
    assert (by_state.slopes_above == by_state.slopes_below).all()
    assert not (by_state.slopes_above == by_state.slopes_above[0]).all()
    assert not (by_side.slopes_above == by_side.slopes_below).all()


# State probabilities and means of the levels


def test_state_probabilities_are_the_shares_that_were_drawn() -> None:
    sample = large()
    shares, error = by_level(sample, np.eye(3)[sample.latent])
    assert (np.abs(shares - sample.state_probabilities) < 5 * error).all()


def test_state_probabilities_follow_from_the_paper_by_bayes_rule() -> None:
    sample = small("global_linear", n_latent=4, levels_per_latent=3, own_probability=0.7)
    block = sample.state_probabilities.argmax(axis=1)
    joint = np.where(block[:, None] == np.arange(4), 0.7 / 3, 0.3 / 9) / 4
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sample.state_probabilities, expected, rtol=1e-14)


def test_level_means_are_those_that_were_drawn() -> None:
    sample = large()
    means, error = by_level(sample, sample.X)
    assert (np.abs(means - sample.level_means) < 5 * error).all()


@given(st.integers(1, 6), st.integers(1, 4), own_probabilities, st.integers(0, 2**32))
@law
def test_state_probabilities_add_up_and_no_drawn_state_is_excluded(
    n_latent: int, levels: int, own: float, seed: int
) -> None:
    sizes = {"n_latent": n_latent, "levels_per_latent": levels, "own_probability": own, "seed": seed}
    sample = small("global_linear", **sizes)
    np.testing.assert_allclose(sample.state_probabilities.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(sample.state_probabilities.sum(axis=0), levels, rtol=1e-14)
    np.testing.assert_allclose(sample.level_means, sample.state_probabilities @ sample.state_means)
    assert (sample.state_probabilities[sample.codes, sample.latent] > 0).all()


# The conditional mean


@by_setup
@pytest.mark.parametrize("own_probability", [0.0, 0.6, 1.0])
def test_conditional_mean_is_lemma_1_written_out(setup: str, own_probability: float) -> None:
    sample = small(setup, n=100, own_probability=own_probability)
    for row, code in enumerate(sample.codes):
        posterior = naive_posterior(sample, row, sample.state_probabilities[code])
        expected = posterior @ naive_outcomes(sample, row)
        assert sample.conditional_mean[row] == pytest.approx(expected, rel=1e-10, abs=1e-10)


@by_setup
def test_conditional_mean_errs_nowhere_on_average(setup: str) -> None:
    sample = large(setup)
    residual = sample.y - sample.conditional_mean
    for values in (sample.conditional_mean, *sample.X.T):
        tenth = np.searchsorted(np.quantile(values, np.arange(0.1, 1, 0.1)), values)
        cell = 10 * sample.codes + tenth
        count = np.bincount(cell, minlength=120)
        mean = np.bincount(cell, residual, minlength=120) / count
        spread = np.sqrt(np.bincount(cell, residual**2, minlength=120) / count)
        assert (np.abs(mean) < 5 * spread / np.sqrt(count)).all()


@by_setup
def test_no_other_prediction_is_as_good_as_the_conditional_mean(setup: str) -> None:
    sample = large(setup)
    truth, level_prior = sample.conditional_mean, sample.state_probabilities[sample.codes]
    outcomes = sample.outcome.mean(sample.X)
    posterior = _simulate._posterior(sample.X, level_prior, sample.state_means)
    no_level = _simulate._posterior(sample.X, np.full_like(level_prior, 1 / 3), sample.state_means)
    wrong_own = np.where(level_prior > 0.5, 0.8, 0.1)
    others = {
        "shrunk": 0.9 * truth,
        "inflated": 1.1 * truth,
        "shifted": truth + 0.05,
        "tilted": truth + 0.05 * sample.X[:, 0],
        "the likeliest state": outcomes[np.arange(len(truth)), posterior.argmax(axis=1)],
        "no covariates for the state": (outcomes * level_prior).sum(axis=1),
        "no level": (outcomes * no_level).sum(axis=1),
        "too sure": (outcomes * posterior**2).sum(axis=1) / (posterior**2).sum(axis=1),
        "own probability of 0.8": (
            outcomes * _simulate._posterior(sample.X, wrong_own, sample.state_means)
        ).sum(1),
    }
    for name, other in others.items():
        loss = (sample.y - other) ** 2 - (sample.y - truth) ** 2
        assert loss.mean() > 4 * loss.std() / np.sqrt(len(loss)), name


@given(
    st.sampled_from(SETUPS), st.integers(1, 5), st.integers(1, 5), own_probabilities, st.integers(0, 2**32)
)
@law
def test_conditional_mean_lies_between_the_states(
    setup: str, p: int, n_latent: int, own: float, seed: int
) -> None:
    sample = small(setup, p=p, n_latent=n_latent, own_probability=own, seed=seed)
    outcomes = sample.outcome.mean(sample.X)
    assert (sample.conditional_mean >= outcomes.min(axis=1) - 1e-12).all()
    assert (sample.conditional_mean <= outcomes.max(axis=1) + 1e-12).all()


@by_setup
def test_one_state_or_levels_that_tell_it_leave_no_doubt(setup: str) -> None:
    for sample in (small(setup, n_latent=1), small(setup, own_probability=1)):
        own_state = sample.outcome.mean(sample.X)[np.arange(len(sample.X)), sample.latent]
        np.testing.assert_allclose(sample.conditional_mean, own_state, rtol=1e-12)


@by_setup
def test_levels_that_tell_nothing_do_not_move_the_conditional_mean(setup: str) -> None:
    sample = small(setup, own_probability=1 / 3)
    np.testing.assert_allclose(
        sample.level_means, np.tile(sample.state_means.mean(axis=0), (6, 1)), atol=1e-15
    )
    for row, mean in enumerate(sample.conditional_mean):
        expected = naive_posterior(sample, row, np.ones(3)) @ naive_outcomes(sample, row)
        assert mean == pytest.approx(expected, rel=1e-10, abs=1e-10)


@by_setup
def test_rows_evaluated_in_blocks_give_the_same_truth(setup: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small(setup)
    monkeypatch.setattr(_simulate, "_BLOCK", 7)
    parts = small(setup)
    np.testing.assert_allclose(parts.conditional_mean, whole.conditional_mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(parts.y, whole.y, rtol=1e-12, atol=1e-14)


def test_states_far_from_a_row_do_not_underflow() -> None:
    sample = small("latent_linear", n=5)
    posterior = _simulate._posterior(1e4 * sample.X, np.full((5, 3), 1 / 3), sample.state_means)
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)
