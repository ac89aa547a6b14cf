"""Bias, errors and coverage of treatment effects, compared with the definitions written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sufrep._paper.effect_summary import Measured, effect_summaries

Record = dict[str, Any]


def made(method: str, seeds: range, arm: str = "main", model: str = "linear", n: int = 4000) -> list[Record]:
    """Records whose errors differ by method and seed."""
    records = []
    for seed in seeds:
        rng = np.random.default_rng([seed, len(method)])
        estimate, std_error = 1 + 0.1 * rng.normal(), 0.08 + 0.01 * rng.random()
        records.append(
            {
                "arm": arm,
                "n": n,
                "model": model,
                "method": method,
                "seed": seed,
                "estimate": estimate,
                "std_error": std_error,
                "lower": estimate - std_error,
                "upper": estimate + std_error,
                "truth": 1 + 0.05 * seed % 0.1,
                "dropped": 0.01 * seed,
            }
        )
    return records


def test_every_number_is_its_definition():
    ours, reference = made("means_w", range(12)), made("true_psi", range(4, 20))
    _, found = effect_summaries([*ours, *reference])
    errors = np.array([record["estimate"] - record["truth"] for record in ours])
    theirs = np.array([record["estimate"] - record["truth"] for record in reference])
    inside = [abs(error) <= record["std_error"] for error, record in zip(errors, ours, strict=True)]
    share = np.mean(inside)
    assert 0 < share < 1
    assert (found.model, found.arm, found.n, found.method) == ("linear", "main", 4000, "means_w")
    assert found.n_seeds == 12
    assert found.bias.value == pytest.approx(errors.mean())
    assert found.bias.error == pytest.approx(np.std(errors, ddof=1) / math.sqrt(12))
    assert found.rmse.value == pytest.approx(math.sqrt(np.mean(errors**2)))
    assert found.coverage.value == pytest.approx(share)
    assert found.coverage.error == pytest.approx(math.sqrt(share * (1 - share) / 11))
    mean_error = np.mean([record["std_error"] for record in ours])
    assert found.calibration.value == pytest.approx(mean_error / np.std(errors, ddof=1))
    assert found.length.value == pytest.approx(2 * mean_error)
    assert found.dropped.value == pytest.approx(0.01 * np.mean(range(12)))
    # Only the seeds 4 to 11 have both.
    ratio = np.mean(errors[4:] ** 2) / np.mean(theirs[:8] ** 2)
    assert found.relative is not None
    assert found.relative.value == pytest.approx(math.sqrt(ratio))


def test_monte_carlo_errors_are_those_of_many_repetitions():
    rng = np.random.default_rng(0)
    template = made("means_w", range(1))[0]
    values, stated = [], []
    for _ in range(300):
        records = [
            {**template, "method": method, "seed": seed, "truth": 0.0, "estimate": estimate}
            for seed, (one, other) in enumerate(rng.normal(size=(60, 2)))
            for method, estimate in (("true_psi", one), ("means_w", one + other))
        ]
        found = effect_summaries(records)[1]
        measured = (found.bias, found.rmse, found.relative, found.calibration)
        values.append([each.value for each in measured])
        stated.append([each.error for each in measured])
    spread = np.std(values, axis=0)
    np.testing.assert_allclose(np.mean(stated, axis=0), spread, rtol=0.2)


def test_the_reference_is_as_good_as_itself():
    (found,) = effect_summaries(made("true_psi", range(5)))
    assert found.relative == Measured(1.0, 0.0)


def test_without_the_reference_there_is_no_ratio_and_one_seed_has_no_error():
    (found,) = effect_summaries(made("means_w", range(1)))
    assert found.relative is None
    assert math.isnan(found.bias.error)
    assert math.isnan(found.calibration.value)


def test_cells_are_models_arms_and_sizes_in_the_order_of_the_names():
    records = [
        *made("means_w", range(2), model="boosting"),
        *made("means_w", range(2), arm="slope"),
        *made("true_psi", range(2), n=9000),
        *made("means_w", range(2), n=4000),
        *made("true_psi", range(2), n=4000),
    ]
    found = [(item.model, item.arm, item.n, item.method) for item in effect_summaries(records)]
    assert found == [
        ("linear", "main", 4000, "true_psi"),
        ("linear", "main", 4000, "means_w"),
        ("linear", "main", 9000, "true_psi"),
        ("linear", "slope", 4000, "means_w"),
        ("boosting", "main", 4000, "means_w"),
    ]


def test_nothing_gives_nothing():
    assert effect_summaries([]) == []
