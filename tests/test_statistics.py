"""Intervals and tests against scipy and against formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from sufrep._statistics import (
    corrected_interval,
    holm,
    p_value_text,
    paired_p_values,
    rounding_error,
    student_interval,
    why_no_test,
)

law = settings()
# Far enough apart that a variance of zero is no rounding error.
numbers = st.integers(-1000, 1000).map(lambda value: value / 8)
samples = st.integers(2, 12).flatmap(lambda n: arrays(float, n, elements=numbers))
# Of differences that can be tested.
tested = samples.filter(lambda values: len(values) > 2 and values.std() > 0)


# Intervals


@law
@given(samples, st.floats(0.5, 0.999))
def test_the_interval_is_student_s(values, level):
    low, high = student_interval(values, level)
    spread = np.sqrt(((values - values.mean()) ** 2).sum() / (len(values) - 1) / len(values))
    half = stats.t.ppf(0.5 + level / 2, len(values) - 1) * spread
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-9, abs=1e-9)


def test_the_interval_agrees_with_scipy():
    values = np.random.default_rng(0).normal(size=20)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert student_interval(values) == pytest.approx((expected.low, expected.high), rel=1e-12)


@pytest.mark.parametrize("values", [np.array([]), np.array([3.0])])
def test_one_value_has_no_interval(values):
    assert np.isnan(student_interval(values)).all()


# Tests


@law
@given(tested)
def test_the_plain_test_is_the_paired_t_test(differences):
    expected = stats.ttest_rel(differences, np.zeros(len(differences))).pvalue
    assert paired_p_values(differences, 4)[0] == pytest.approx(expected, rel=1e-9, abs=1e-15)


@law
@given(tested)
def test_the_corrected_test_has_the_variance_of_nadeau_and_bengio(differences):
    """One repetition of K folds: variance factor 1/K + 1/(K − 1), K − 1 degrees of freedom."""
    K = len(differences)
    mean = sum(differences) / K
    variance = sum((d - mean) ** 2 for d in differences) / (K - 1)
    t = mean / math.sqrt((1 / K + 1 / (K - 1)) * variance)
    expected = stats.t.cdf(-abs(t), K - 1) + stats.t.sf(abs(t), K - 1)
    assert paired_p_values(differences, K)[1] == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_a_corrected_p_value_by_hand():
    """Differences 1, 2, 3 in 3 folds: t = 2 / √(1/3 + 1/2); with 2 degrees p = 1 − t / √(2 + t²)."""
    t = 2 / math.sqrt(5 / 6)
    assert paired_p_values(np.array([1.0, 2, 3]), 3)[1] == pytest.approx(1 - t / math.sqrt(2 + t**2))


@law
@given(tested, st.integers(2, 10))
def test_the_correction_never_makes_a_p_value_smaller_and_signs_do_not_matter(differences, n_folds):
    plain, corrected = paired_p_values(differences, n_folds)
    assert 0 <= plain <= corrected <= 1
    assert paired_p_values(-differences, n_folds) == (plain, corrected)


def test_repetitions_add_splits_but_the_overlap_stays():
    differences = np.array([1.0, 2.0, 3.0, 2.0] * 3)
    t = 2 / math.sqrt((1 / 12 + 1 / 3) * differences.var(ddof=1))
    assert paired_p_values(differences, 4)[1] == pytest.approx(2 * stats.t.sf(t, 11), rel=1e-12)


@pytest.mark.parametrize(
    ("differences", "reason"),
    [
        ([], "no fold"),
        ([2.0], "one fold"),
        ([2.0, 2.1], "two folds"),
        ([0.5] * 4, "the gains are equal in all folds"),
        ([0.0] * 4, "the gains are equal in all folds"),
    ],
)
def test_without_a_spread_that_can_be_trusted_there_is_no_test_and_no_interval(differences, reason):
    given = np.array(differences)
    assert why_no_test(given) == reason
    assert np.isnan([*paired_p_values(given, 4), *corrected_interval(given, 4)]).all()


def test_gains_that_only_rounding_keeps_apart_are_equal():
    baseline, ours = np.array([0.7, 0.6, 0.5, 0.9]), np.array([0.8, 0.7, 0.6, 1.0])
    gains = ours - baseline
    assert len(set(gains.tolist())) > 1
    rounding = rounding_error(baseline, ours)
    assert why_no_test(gains, rounding) == "the gains are equal in all folds"
    assert np.isnan(paired_p_values(gains, 4, rounding)).all()
    assert rounding_error(1000 * baseline) == pytest.approx(1000 * rounding_error(baseline))
    assert rounding_error(np.array([])) == 0


@pytest.mark.parametrize("n_folds", [2, 3, 5])
@pytest.mark.parametrize("counts", [True, False])
def test_five_tests_of_noise_find_something_in_at_most_7_percent(n_folds, counts):
    """Gains of five methods over one baseline, either normal or differences of shares of 30 rows."""
    rng = np.random.default_rng(14)
    size = (400, 6, n_folds)
    scores = rng.binomial(30, 0.5, size) / 30 if counts else rng.normal(size=size)
    found = 0
    for baseline, *ours in scores:
        p = [paired_p_values(of - baseline, n_folds, rounding_error(of, baseline))[1] for of in ours]
        found += any(value < 0.05 for value in holm(p))
    assert found <= 0.07 * len(scores)


def test_a_large_difference_is_found_with_five_folds():
    rng = np.random.default_rng(0)
    p = [paired_p_values(rng.normal(4, 1, 5), 5)[1] for _ in range(100)]
    assert np.mean(np.array(p) < 0.05) > 0.9


@pytest.mark.parametrize(("p", "text"), [(0.0, "< 0.001"), (0.001, "0.001"), (1.0, "1.000"), (math.nan, "")])
def test_a_p_value_is_never_shown_as_zero(p, text):
    assert p_value_text(p) == text


def test_a_p_value_can_have_more_digits():
    assert (p_value_text(1.234e-4, 5), p_value_text(1e-6, 5)) == ("0.00012", "< 0.00001")


@law
@given(tested, st.integers(2, 10), st.floats(0.5, 0.999))
def test_the_corrected_interval_holds_zero_where_the_corrected_test_does_not_reject(
    differences, n_folds, level
):
    low, high = corrected_interval(differences, n_folds, level=level)
    p = paired_p_values(differences, n_folds)[1]
    if not math.isclose(p, 1 - level, rel_tol=1e-6):
        assert (low <= 0 <= high) == (p > 1 - level)


# Several tests at once


@law
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_its_step_down_definition(p_values):
    """The smallest times n, the next times n − 1, …, never smaller than the one before, at most 1."""
    expected, least = {}, 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        expected[place] = least
    assert holm(p_values) == pytest.approx([expected[place] for place in range(len(p_values))])


def test_what_was_not_tested_needs_no_correction():
    assert holm([0.02, math.nan])[0] == 0.02
    assert math.isnan(holm([0.02, math.nan])[1])
    assert holm([]) == []
