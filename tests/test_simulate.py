"""The simulation against the paper's formulas: its rows, its parameters, its target and its truth.

Seeds are fixed, so no test depends on chance. Tolerances are those a random seed would need: 5 standard
errors, or a p-value of 1e-4. ``python tests/test_simulate.py`` rewrites the stored summaries, which is right
only if the draws are meant to change.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, stats

from sufrep import Simulation, _simulate, simulate
from sufrep._names import SETUPS
from sufrep.errors import InvalidParameterError

STORED = Path(__file__).parent / "fixtures" / "simulation_summaries.json"
TARGET = {"y", "conditional_mean", "outcome", "setup"}  # the fields in which setups differ
by_setup = pytest.mark.parametrize("setup", SETUPS)
law = settings()
own_probabilities = st.sampled_from([0.0, 0.3, 0.9, 1.0])


@cache
def large() -> Simulation:
    sizes = {"n": 200_000, "p": 6, "n_latent": 4, "levels_per_latent": 5}
    return simulate("latent_linear", **sizes, own_probability=0.7, seed=1)


@cache
def overlapping(setup: str = "latent_linear") -> Simulation:
    """States overlap (few covariates) and levels mix them, so that the state of a row is uncertain."""
    return simulate(setup, n=200_000, p=4, n_latent=3, levels_per_latent=4, own_probability=0.6, seed=5)


@cache
def many_states() -> Simulation:
    return simulate("piecewise_linear", n=1, p=8, n_latent=3000, levels_per_latent=1, seed=2)


def small(setup: str = "latent_linear", **changes: Any) -> Simulation:
    return simulate(setup, **{"n": 40, "p": 4, "n_latent": 3, "levels_per_latent": 2, "seed": 3, **changes})


def blocks(sample: Simulation) -> np.ndarray:
    return sample.state_probabilities.argmax(axis=1)


def arrays(sample: Simulation, *, without: set[str] = frozenset()) -> dict[str, np.ndarray]:
    """All arrays of a sample and of its outcome model."""
    holders = [sample] if "outcome" in without else [sample, sample.outcome]
    named = {f.name: getattr(holder, f.name) for holder in holders for f in fields(holder)}
    return {name: a for name, a in named.items() if isinstance(a, np.ndarray) and name not in without}


def fingerprint(sample: Simulation) -> str:
    return sha256(b"".join(a.tobytes() for a in arrays(sample).values())).hexdigest()


def z(counts: np.ndarray, n: int, probability: np.ndarray | float) -> np.ndarray:
    """Distance of binomial counts from their expectation, in standard errors."""
    return np.abs(counts - n * probability) / np.sqrt(
        n * np.multiply(probability, np.subtract(1, probability))
    )


def by_level(sample: Simulation, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of the columns of `values` by level, and their standard errors."""
    rows = [values[sample.codes == code] for code in range(len(sample.levels))]
    means = np.array([r.mean(axis=0) for r in rows])
    return means, np.array([r.std(axis=0) / np.sqrt(len(r)) for r in rows])


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
    """E[Y|x, l] of each row, by the sum in the paper for the piecewise setup."""
    truth, mean = sample.outcome, np.zeros(len(sample.X))
    for j, x in enumerate(sample.X.T):
        mean += (x > np.median(x)) * x * truth.slopes_above[sample.latent, j]
        mean += (x <= np.median(x)) * x * truth.slopes_below[sample.latent, j]
    return mean + truth.intercepts[sample.latent]


# The rows


def test_states_and_levels_are_drawn_with_the_probabilities_of_the_paper() -> None:
    sample = large()
    counts = np.zeros((4, 20))
    np.add.at(counts, (sample.latent, sample.codes), 1)
    own = blocks(sample) == np.arange(4)[:, None]
    given_state = np.where(own, 0.7 / 5, 0.3 / 15)
    assert z(counts.sum(axis=1), len(sample.X), 1 / 4).max() < 5
    assert z(counts[own].sum(), len(sample.X), 0.7) < 5
    assert z(counts, len(sample.X), given_state / 4).max() < 5
    assert stats.chisquare(counts.ravel(), (given_state / 4 * len(sample.X)).ravel()).pvalue > 1e-4


def test_covariates_are_normal_within_states_with_the_covariance_of_the_paper() -> None:
    sample = large()
    n, p = sample.X.shape
    sigma = linalg.toeplitz(0.5 ** np.arange(p))
    centered = sample.X - sample.state_means[sample.latent]
    for state in range(4):
        rows = centered[sample.latent == state]
        error = np.sqrt((1 + sigma**2) / len(rows))  # the variance of a product of two normals
        assert (np.abs(rows.T @ rows / len(rows) - sigma) < 5 * error).all()
    white = linalg.solve_triangular(linalg.cholesky(sigma, lower=True), centered.T, lower=True)
    assert all(stats.kstest(news, "norm").pvalue > 1e-4 for news in white)
    next_row = np.einsum("jn,kn->jk", white[:, :-1], white[:, 1:]) / np.sqrt(n)
    assert np.abs(next_row).max() < 5


def test_covariates_depend_on_the_level_through_the_state_only() -> None:
    sample = large()
    for state in range(4):
        codes, X = sample.codes[sample.latent == state], sample.X[sample.latent == state]
        count = np.bincount(codes, minlength=20)
        means = np.stack([np.bincount(codes, x, minlength=20) / count for x in X.T], axis=1)
        assert (np.abs(means - sample.state_means[state]) * np.sqrt(count)[:, None]).max() < 5


# The parameters


def test_levels_are_split_into_equal_blocks_at_random() -> None:
    splits = [blocks(small(n=1, n_latent=4, levels_per_latent=3, seed=seed)) for seed in range(400)]
    assert all((np.bincount(block) == 3).all() for block in splits)
    counts = np.array([np.eye(4)[block] for block in splits]).sum(axis=0)
    assert z(counts, 400, 1 / 4).max() < 5
    neighbours = sum((block[1:] == block[:-1]).sum() for block in splits)
    assert z(neighbours, 400 * 11, 2 / 11) < 5
    assert len({tuple(block) for block in splits}) > 390


def test_levels_are_sorted_and_rows_have_their_names() -> None:
    sample = small(levels_per_latent=37)
    assert sample.levels.tolist() == sorted(set(sample.levels)) == [f"g{k:03}" for k in range(111)]
    assert (sample.group == sample.levels[sample.codes]).all()


def test_each_state_shifts_three_covariates_up_or_down() -> None:
    means = many_states().state_means
    assert set(np.unique(means)) == {-1, 0, 1}
    assert ((means != 0).sum(axis=1) == 3).all()
    assert z((means != 0).sum(axis=0), 3000, 3 / 8).max() < 5
    assert z((means == 1).sum(axis=0), 3000, 3 / 16).max() < 5
    assert z((means == 1).sum(), 9000, 1 / 2) < 5
    patterns = np.unique(means, axis=0, return_counts=True)[1]  # 56 sets of positions times 8 of signs
    assert stats.chisquare(np.pad(patterns, (0, 56 * 8 - len(patterns)))).pvalue > 1e-4


# The target


@by_setup
def test_noise_is_standard_normal_and_independent_of_the_rest(setup: str) -> None:
    sample = overlapping(setup)
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
def test_the_expected_outcome_is_the_sum_in_the_paper(setup: str) -> None:
    sample = small(setup, n=41)
    own_state = sample.outcome.mean(sample.X)[np.arange(41), sample.latent]
    np.testing.assert_allclose(own_state, outcome_of_the_paper(sample), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(sample.outcome.medians, np.median(sample.X, axis=0))


@pytest.mark.parametrize("side", ["slopes_above", "slopes_below"])
def test_slopes_are_uniform_on_three_values_and_have_norm_one(side: str) -> None:
    slopes = getattr(many_states().outcome, side)
    np.testing.assert_allclose((slopes**2).sum(axis=1), 1, rtol=1e-14)
    signs = np.sign(slopes)
    np.testing.assert_allclose(slopes, signs / np.sqrt((signs != 0).sum(axis=1, keepdims=True)), rtol=1e-14)
    for value in (-1, 0, 1):
        assert z((signs == value).sum(axis=0), 3000, 1 / 3).max() < 5


def test_slopes_that_are_all_zero_are_drawn_again() -> None:
    sample = simulate("latent_linear", n=1, p=1, n_latent=2000, levels_per_latent=1, seed=4)
    slopes = sample.outcome.slopes_above
    assert (np.abs(slopes) == 1).all()
    assert z((slopes == 1).sum(), 2000, 1 / 2) < 5


def test_intercepts_are_laplace_with_variance_one() -> None:
    intercepts = many_states().outcome.intercepts
    assert stats.kstest(intercepts, stats.laplace(scale=np.sqrt(1 / 2)).cdf).pvalue > 1e-4
    assert abs((intercepts**2).mean() - 1) < 5 * np.sqrt(5 / 3000)  # a Laplace's kurtosis is 6


def test_slopes_of_different_states_and_sides_are_independent() -> None:
    truth = many_states().outcome
    for a, b in [(truth.slopes_above, truth.slopes_below), (truth.slopes_above[1:], truth.slopes_above[:-1])]:
        # Products of two independent rows of norm 1 have variance 1/p.
        assert abs((a * b).sum(axis=1).mean()) < 5 / np.sqrt(8 * len(a))


def test_the_setup_decides_which_slopes_are_equal() -> None:
    one, by_state, by_side = (small(setup).outcome for setup in SETUPS)
    assert (one.slopes_above == one.slopes_above[0]).all()
    assert (one.slopes_above == one.slopes_below).all()
    assert (by_state.slopes_above == by_state.slopes_below).all()
    assert not (by_state.slopes_above == by_state.slopes_above[0]).all()
    assert not (by_side.slopes_above == by_side.slopes_below).all()


# State probabilities and level means


def test_state_probabilities_agree_with_the_shares_in_the_sample() -> None:
    sample = overlapping()
    shares, error = by_level(sample, np.eye(3)[sample.latent])
    assert (np.abs(shares - sample.state_probabilities) < 5 * error).all()


def test_state_probabilities_follow_from_the_design_by_bayes_theorem() -> None:
    sample = small("global_linear", n_latent=4, levels_per_latent=3, own_probability=0.7)
    block = sample.state_probabilities.argmax(axis=1)
    joint = np.where(block[:, None] == np.arange(4), 0.7 / 3, 0.3 / 9) / 4
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sample.state_probabilities, expected, rtol=1e-14)


def test_level_means_agree_with_the_means_in_the_sample() -> None:
    sample = overlapping()
    means, error = by_level(sample, sample.X)
    assert (np.abs(means - sample.level_means) < 5 * error).all()


@given(st.integers(1, 6), st.integers(1, 4), own_probabilities, st.integers(0, 2**32))
@law
def test_state_probabilities_sum_to_one_and_are_positive_for_the_states_of_the_rows(
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
def test_the_conditional_mean_follows_lemma_1(setup: str, own_probability: float) -> None:
    sample = small(setup, n=100, own_probability=own_probability)
    for row, code in enumerate(sample.codes):
        posterior = naive_posterior(sample, row, sample.state_probabilities[code])
        expected = posterior @ naive_outcomes(sample, row)
        assert sample.conditional_mean[row] == pytest.approx(expected, rel=1e-10, abs=1e-10)


@by_setup
def test_the_conditional_mean_is_unbiased_everywhere(setup: str) -> None:
    sample = overlapping(setup)
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
    sample = overlapping(setup)
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
def test_the_conditional_mean_is_between_the_means_of_the_states(
    setup: str, p: int, n_latent: int, own: float, seed: int
) -> None:
    sample = small(setup, p=p, n_latent=n_latent, own_probability=own, seed=seed)
    outcomes = sample.outcome.mean(sample.X)
    assert (sample.conditional_mean >= outcomes.min(axis=1) - 1e-12).all()
    assert (sample.conditional_mean <= outcomes.max(axis=1) + 1e-12).all()


@by_setup
def test_the_conditional_mean_is_exact_if_the_level_determines_the_state(setup: str) -> None:
    for sample in (small(setup, n_latent=1), small(setup, own_probability=1)):
        own_state = sample.outcome.mean(sample.X)[np.arange(len(sample.X)), sample.latent]
        np.testing.assert_allclose(sample.conditional_mean, own_state, rtol=1e-12)


@by_setup
def test_uninformative_levels_do_not_affect_the_conditional_mean(setup: str) -> None:
    sample = small(setup, own_probability=1 / 3)
    np.testing.assert_allclose(
        sample.level_means, np.tile(sample.state_means.mean(axis=0), (6, 1)), atol=1e-15
    )
    for row, mean in enumerate(sample.conditional_mean):
        expected = naive_posterior(sample, row, np.ones(3)) @ naive_outcomes(sample, row)
        assert mean == pytest.approx(expected, rel=1e-10, abs=1e-10)


@by_setup
def test_the_block_size_does_not_change_the_truth(setup: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small(setup)
    monkeypatch.setattr(_simulate, "_BLOCK", 7)
    parts = small(setup)
    np.testing.assert_allclose(parts.conditional_mean, whole.conditional_mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(parts.y, whole.y, rtol=1e-12, atol=1e-14)


def test_states_far_from_a_row_do_not_underflow() -> None:
    sample = small("latent_linear", n=5)
    posterior = _simulate._posterior(1e4 * sample.X, np.full((5, 3), 1 / 3), sample.state_means)
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)


# The seed


def test_another_process_draws_the_same_bytes() -> None:
    script = (
        "from sufrep._names import SETUPS; from sufrep import simulate;"
        "drawn = [simulate(s, n=40, p=4, n_latent=3, levels_per_latent=2, seed=3) for s in SETUPS];"
        "print(*[(d.X.tobytes() + d.group.tobytes() + d.y.tobytes() + d.conditional_mean.tobytes()).hex()"
        " for d in drawn])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "17"}
    command = [sys.executable, "-W", "error", "-c", script]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    for found, setup in zip(result.stdout.split(), SETUPS, strict=True):
        mine = small(setup)
        parts = (mine.X, mine.group, mine.y, mine.conditional_mean)
        assert found == b"".join(part.tobytes() for part in parts).hex()


def test_different_seeds_give_different_samples() -> None:
    assert len({fingerprint(small(seed=seed)) for seed in range(50)}) == 50


@given(st.integers(0, 2**70), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))
@law
def test_setups_share_everything_except_the_target(seed: int, p: int, n_latent: int, levels: int) -> None:
    sizes = {"seed": seed, "p": p, "n_latent": n_latent, "levels_per_latent": levels}
    first, *others = (small(setup, **sizes) for setup in SETUPS)
    shared = arrays(first, without=TARGET)
    for other in others:
        for name, array in arrays(other, without=TARGET).items():
            np.testing.assert_array_equal(array, shared[name], err_msg=name)
        np.testing.assert_array_equal(other.outcome.intercepts, first.outcome.intercepts)
        noise, first_noise = (s.y - s.outcome.mean(s.X)[np.arange(40), s.latent] for s in (other, first))
        np.testing.assert_allclose(noise, first_noise, atol=1e-12)


@given(st.sampled_from(SETUPS), st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 60))
@law
def test_the_parameters_do_not_depend_on_the_number_of_rows(setup: str, seed: int, n: int, m: int) -> None:
    one, other = (arrays(small(setup, n=size, seed=seed)) for size in (n, m))
    for name in one.keys() - {"X", "group", "y", "latent", "codes", "conditional_mean", "medians"}:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_samples_agree_with_the_stored_summaries() -> None:
    for stored, found in zip(json.loads(STORED.read_text()), summaries(), strict=True):
        assert stored["exact"] == found["exact"]
        assert found["close"] == pytest.approx(stored["close"], rel=1e-9, abs=1e-12)


def summaries() -> list[dict[str, Any]]:
    """Numbers that change if the draws change; ``exact`` ones are integers and names."""
    found = []
    for setup in SETUPS:
        for sizes in (
            {"n": 1000, "seed": 0},
            {"n": 250, "p": 5, "n_latent": 3, "levels_per_latent": 4, "seed": 7},
        ):
            sample = simulate(setup, **sizes)
            exact = {
                "repr": repr(sample),
                "latent_counts": np.bincount(sample.latent).tolist(),
                "first_codes": sample.codes[:20].tolist(),
                "first_blocks": blocks(sample)[:20].tolist(),
                "shifts_of_state_0": sample.state_means[0].astype(int).tolist(),
                "last_group": str(sample.group[-1]),
            }
            numbers = {k: a for k, a in arrays(sample).items() if a.dtype == float}
            close = {f"mean of {name}": float(a.mean()) for name, a in numbers.items()}
            close |= {f"mean square of {name}": float((a**2).mean()) for name, a in numbers.items()}
            found.append({"exact": exact, "close": close})
    return found


# The edges


@by_setup
@pytest.mark.parametrize("own_probability", [0, 1])
@pytest.mark.parametrize("name", ["n", "p", "n_latent", "levels_per_latent"])
def test_every_size_may_be_one(setup: str, name: str, own_probability: float) -> None:
    sample = small(setup, own_probability=own_probability, **{name: 1})
    assert all(np.isfinite(a).all() for a in arrays(sample).values() if a.dtype == float)
    own = blocks(sample)[sample.codes] == sample.latent
    if own_probability == 1 or name == "n_latent":
        assert own.all()
    else:
        assert (sample.state_probabilities[sample.codes, sample.latent] > 0).all()
        assert (np.sort(sample.state_probabilities)[:, 0] == 0).all()


def test_a_state_shifts_at_most_all_covariates() -> None:
    assert [int(np.abs(small(p=p).state_means[0]).sum()) for p in (1, 2, 3, 4)] == [1, 2, 3, 3]


def test_numpy_numbers_are_accepted_as_parameters() -> None:
    mine = small(n_latent=20, levels_per_latent=20, own_probability=0.5)
    theirs = small(
        n_latent=np.int8(20), levels_per_latent=np.int8(20), own_probability=np.float32(0.5), n=np.int8(40)
    )
    assert fingerprint(mine) == fingerprint(theirs)


class Extreme(np.random.Generator):
    """A generator that returns only its smallest or largest uniform number."""

    def __init__(self, number: float) -> None:
        super().__init__(np.random.PCG64(0))
        self.number = number

    def random(self, shape: int | tuple[int, ...]) -> np.ndarray:
        return np.full(shape, self.number)


@given(st.sampled_from([0.0, 1 - 2**-53]), st.integers(1, 2**40))
@law
def test_extreme_uniform_numbers_stay_in_range(uniform: float, high: int) -> None:
    rng = Extreme(uniform)
    assert _simulate._integers(rng, high, 1)[0] == (0 if uniform == 0 else high - 1)
    assert np.isfinite(_simulate._normals(rng, 1)).all()


def test_columns_are_the_covariates_and_the_group() -> None:
    sample = small()
    columns = sample.columns()
    assert list(columns) == ["x1", "x2", "x3", "x4", "group"]
    np.testing.assert_array_equal(columns["x2"], sample.X[:, 1])
    np.testing.assert_array_equal(columns["group"], sample.group)


SIZES = ("n", "p", "n_latent", "levels_per_latent")
WRONG = [
    *((name, value, "an integer of at least 1") for name in SIZES for value in (0, 2.0, "5", None, True)),
    *(("own_probability", value, "a number from 0 to 1") for value in (-0.1, 1.1, np.nan, "0.9", None, True)),
    *(("seed", value, "an integer of at least 0") for value in (-1, 0.5, None, False, "1")),
    *(("setup", value, f"one of {', '.join(SETUPS)}") for value in ("linear", None, [], "Global_linear")),
]


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_invalid_parameters_are_reported_with_the_expectation(
    name: str, value: object, expected: str
) -> None:
    message = f"{name} is {value!r}.\nHint: {name} must be {expected}."
    with pytest.raises(InvalidParameterError, match=f"^{re.escape(message)}$"):
        simulate(**{"setup": "global_linear", "n": 5, name: value})


if __name__ == "__main__":
    STORED.write_text(json.dumps(summaries(), indent=1) + "\n")
