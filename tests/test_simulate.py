"""States, levels and covariates against the paper's formulas; target and truth: test_simulate_truth.py.

Seeds are fixed, so nothing here is left to chance; tolerances are what chance would need: 5 standard errors,
or a p-value of 1e-4. ``python tests/test_simulate.py`` writes the stored summaries anew, which is right only
where the draws are meant to change.
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
from sufrep._simulate import SETUPS
from sufrep.errors import InvalidParameterError, SufrepError

STORED = Path(__file__).parent / "fixtures" / "simulation_summaries.json"
TARGET = {"y", "conditional_mean", "outcome", "setup"}  # the fields in which setups differ
by_setup = pytest.mark.parametrize("setup", SETUPS)
law = settings(deadline=None, max_examples=50)


@cache
def large(setup: str = "latent_linear") -> Simulation:
    return simulate(setup, n=200_000, p=6, n_latent=4, levels_per_latent=5, own_probability=0.7, seed=1)


@cache
def many_states() -> Simulation:
    return simulate("latent_linear", n=1, p=8, n_latent=3000, levels_per_latent=1, seed=2)


def small(setup: str = "latent_linear", **changes: Any) -> Simulation:
    return simulate(setup, **{"n": 40, "p": 4, "n_latent": 3, "levels_per_latent": 2, "seed": 3, **changes})


def blocks(sample: Simulation) -> np.ndarray:
    return sample.state_probabilities.argmax(axis=1)


def arrays(sample: Simulation, *, without: set[str] = frozenset()) -> dict[str, np.ndarray]:
    """All arrays of a sample, those of its outcome too."""
    holders = [sample] if "outcome" in without else [sample, sample.outcome]
    named = {f.name: getattr(holder, f.name) for holder in holders for f in fields(holder)}
    return {name: a for name, a in named.items() if isinstance(a, np.ndarray) and name not in without}


def fingerprint(sample: Simulation) -> str:
    return sha256(b"".join(a.tobytes() for a in arrays(sample).values())).hexdigest()


def z(counts: np.ndarray, n: int, probability: np.ndarray | float) -> np.ndarray:
    """Distance of binomial counts from what they should be, in standard errors."""
    return np.abs(counts - n * probability) / np.sqrt(
        n * np.multiply(probability, np.subtract(1, probability))
    )


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
    centred = sample.X - sample.state_means[sample.latent]
    for state in range(4):
        rows = centred[sample.latent == state]
        error = np.sqrt((1 + sigma**2) / len(rows))  # the variance of a product of two normals
        assert (np.abs(rows.T @ rows / len(rows) - sigma) < 5 * error).all()
    white = linalg.solve_triangular(linalg.cholesky(sigma, lower=True), centred.T, lower=True)
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


# What the rows are drawn from


def test_levels_are_dealt_into_equal_blocks_at_random() -> None:
    dealt = [blocks(small(n=1, n_latent=4, levels_per_latent=3, seed=seed)) for seed in range(400)]
    assert all((np.bincount(block) == 3).all() for block in dealt)
    counts = np.array([np.eye(4)[block] for block in dealt]).sum(axis=0)
    assert z(counts, 400, 1 / 4).max() < 5
    neighbours = sum((block[1:] == block[:-1]).sum() for block in dealt)
    assert z(neighbours, 400 * 11, 2 / 11) < 5
    assert len({tuple(block) for block in dealt}) > 390


def test_levels_sort_as_they_are_numbered_and_rows_carry_their_names() -> None:
    sample = small(levels_per_latent=37)
    assert sample.levels.tolist() == sorted(set(sample.levels)) == [f"g{k:03}" for k in range(111)]
    assert (sample.group == sample.levels[sample.codes]).all()


def test_each_state_shifts_three_covariates_of_its_own_up_or_down() -> None:
    means = many_states().state_means
    assert set(np.unique(means)) == {-1, 0, 1}
    assert ((means != 0).sum(axis=1) == 3).all()
    assert z((means != 0).sum(axis=0), 3000, 3 / 8).max() < 5
    assert z((means == 1).sum(axis=0), 3000, 3 / 16).max() < 5
    assert z((means == 1).sum(), 9000, 1 / 2) < 5
    patterns = np.unique(means, axis=0, return_counts=True)[1]  # 56 sets of places, 8 of signs
    assert stats.chisquare(np.pad(patterns, (0, 56 * 8 - len(patterns)))).pvalue > 1e-4


# The seed


def test_another_process_draws_the_same_bytes() -> None:
    script = (
        "import runpy, sys; test = runpy.run_path(sys.argv[1]);"
        "print(*[test['fingerprint'](test['small'](s)) for s in test['SETUPS']])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "17"}
    command = [sys.executable, "-W", "error", "-c", script, __file__]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.split() == [fingerprint(small(setup)) for setup in SETUPS]


def test_other_seeds_draw_other_samples() -> None:
    assert len({fingerprint(small(seed=seed)) for seed in range(50)}) == 50


@given(st.integers(0, 2**70), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))
@law
def test_setups_share_all_but_the_target(seed: int, p: int, n_latent: int, levels: int) -> None:
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
def test_what_rows_are_drawn_from_does_not_depend_on_their_number(
    setup: str, seed: int, n: int, m: int
) -> None:
    one, other = (arrays(small(setup, n=size, seed=seed)) for size in (n, m))
    for name in one.keys() - {"X", "group", "y", "latent", "codes", "conditional_mean", "medians"}:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_stored_summaries() -> None:
    for stored, found in zip(json.loads(STORED.read_text()), summaries(), strict=True):
        assert stored["exact"] == found["exact"]
        assert found["close"] == pytest.approx(stored["close"], rel=1e-9, abs=1e-12)


def summaries() -> list[dict[str, Any]]:
    """Numbers that a change of the draws would change; ``exact`` ones are integers and names."""
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


def test_a_state_has_no_more_shifts_than_covariates() -> None:
    assert [int(np.abs(small(p=p).state_means[0]).sum()) for p in (1, 2, 3, 4)] == [1, 2, 3, 3]


def test_numbers_of_numpy_are_as_good_as_those_of_python() -> None:
    mine = small(n_latent=20, levels_per_latent=20, own_probability=0.5)
    theirs = small(
        n_latent=np.int8(20), levels_per_latent=np.int8(20), own_probability=np.float32(0.5), n=np.int8(40)
    )
    assert fingerprint(mine) == fingerprint(theirs)


class Extreme(np.random.Generator):
    """A generator of nothing but its smallest or its largest uniform number."""

    def __init__(self, number: float) -> None:
        super().__init__(np.random.PCG64(0))
        self.number = number

    def random(self, shape: int | tuple[int, ...]) -> np.ndarray:
        return np.full(shape, self.number)


@given(st.sampled_from([0.0, 1 - 2**-53]), st.integers(1, 2**40))
@law
def test_the_rarest_uniform_numbers_stay_in_range(uniform: float, high: int) -> None:
    rng = Extreme(uniform)
    assert _simulate._integers(rng, high, 1)[0] == (0 if uniform == 0 else high - 1)
    assert np.isfinite(_simulate._normals(rng, 1)).all()


def test_columns_go_into_a_frame() -> None:
    sample = small()
    columns = sample.columns()
    assert list(columns) == ["x1", "x2", "x3", "x4", "group"]
    np.testing.assert_array_equal(columns["x2"], sample.X[:, 1])
    np.testing.assert_array_equal(columns["group"], sample.group)


SIZES = ("n", "p", "n_latent", "levels_per_latent")
WRONG = [
    *((name, value, "an integer of at least 1") for name in SIZES for value in (0, -3, 2.0, "5", None, True)),
    *(("own_probability", value, "a number from 0 to 1") for value in (-0.1, 1.1, np.nan, "0.9", None, True)),
    *(("seed", value, "an integer of at least 0") for value in (-1, 0.5, None, False, "1")),
    *(("setup", value, f"one of {', '.join(SETUPS)}") for value in ("linear", None, [], "Global_linear")),
]


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_wrong_parameters_are_named_with_what_is_expected(name: str, value: object, expected: str) -> None:
    message = f"{name} is {value!r}.\nHint: {name} is {expected}."
    with pytest.raises(InvalidParameterError, match=f"^{re.escape(message)}$") as caught:
        simulate(**{"setup": "global_linear", "n": 5, name: value})
    assert isinstance(caught.value, SufrepError)
    assert isinstance(caught.value, ValueError)


if __name__ == "__main__":
    STORED.write_text(json.dumps(summaries(), indent=1) + "\n")
