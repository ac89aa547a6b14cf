"""Means: what the paper's R package prints, and what a loop over the rows gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sufrep import MeansEncoder, errors

NUMBERS = st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False, width=32))
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]), NUMBERS, NUMBERS, st.sampled_from([0.0, 0.5, 1.0, 2.0])
    ),
    min_size=1,
    max_size=25,
)


def naive_means(rows: list[tuple[Any, ...]]) -> dict[Any, list[float]]:
    """Weighted means by level; the overall mean where a level has no value, 0 where nobody has."""
    counted = [row for row in rows if row[-1] > 0]

    def mean(some: list[tuple[Any, ...]], j: int) -> float | None:
        seen = [(row[j], row[-1]) for row in some if row[j] is not None]
        return sum(value * weight for value, weight in seen) / sum(w for _, w in seen) if seen else None

    found: dict[Any, list[float]] = {}
    for level in {row[0] for row in counted}:
        own = [mean([row for row in counted if row[0] == level], j) for j in (1, 2)]
        overall = [mean(counted, j) or 0.0 for j in (1, 2)]
        found[level] = [rest if value is None else value for value, rest in zip(own, overall, strict=True)]
    return found


def test_means_are_those_of_the_r_package(r_fixtures):
    rows = pd.read_csv(r_fixtures / "input.csv")
    expected = pd.read_csv(r_fixtures / "means.csv", index_col="level")
    encoder = MeansEncoder("g", covariates=["x1", "x2", "x3", "x4", "x5"]).fit(rows)
    table = encoder.table(library="pandas").set_index("g")
    assert table.index.tolist() == expected.index.tolist()
    np.testing.assert_allclose(table.drop(columns="weight"), expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(table["weight"], rows["g"].value_counts().sort_index())


@settings(deadline=None, max_examples=60)
@given(rows=ROWS)
def test_means_are_those_of_a_loop_over_the_rows(rows):
    assume(any(row[-1] > 0 for row in rows))
    frame = pd.DataFrame(rows, columns=["g", "x", "z", "weight"]).astype({"x": float, "z": float})
    encoder = MeansEncoder("g", covariates=["x", "z"]).fit(frame, sample_weight=frame["weight"])
    table = encoder.representations_["g"]
    expected = naive_means(rows)
    assert set(table.levels) == set(expected)
    for level, vector in expected.items():
        np.testing.assert_allclose(table.lookup([level])[0], vector, rtol=1e-9, atol=1e-6)


def test_a_level_without_a_value_of_a_covariate_gets_its_overall_mean():
    rows = pd.DataFrame({"g": list("aab"), "x": [1.0, 3.0, None], "z": [0.0, 0.0, 6.0]})
    table = MeansEncoder("g").fit(rows).representations_["g"]
    np.testing.assert_array_equal(table.values, [[2.0, 0.0], [2.0, 6.0]])


def test_a_covariate_that_is_null_everywhere_becomes_zero():
    rows = pd.DataFrame({"g": list("aab"), "x": [1.0, 3.0, 5.0], "z": [np.nan] * 3})
    np.testing.assert_array_equal(MeansEncoder("g").fit(rows).representations_["g"].values[:, 1], [0.0, 0.0])


def test_means_far_from_zero_keep_their_digits():
    far = 1.7e9  # seconds since 1970
    rows = pd.DataFrame({"g": ["a", "a", "b", "b"], "time": far + np.array([0.25, 0.75, 1.25, 1.75])})
    table = MeansEncoder("g").fit(rows).representations_["g"]
    np.testing.assert_array_equal(table.values.ravel() - far, [0.5, 1.5])


def test_output_columns_are_named_after_group_and_covariate():
    rows = pd.DataFrame({"zip": ["a", "b"], "city": ["u", "v"], "sqft": [1, 2], "new": [True, False]})
    encoder = MeansEncoder(["zip", ("zip", "city")]).fit(rows)
    assert encoder.get_feature_names_out().tolist() == [
        *("sqft", "new", "zip_mean_sqft", "zip_mean_new", "zip:city_mean_sqft", "zip:city_mean_new"),
    ]
    assert MeansEncoder(0).fit([["a", 1.0]]).get_feature_names_out(["g", "x"]).tolist() == ["x", "g_mean_x"]


def test_booleans_and_integers_are_covariates():
    rows = pd.DataFrame(
        {"g": list("aab"), "flag": [True, False, True], "n": np.array([1, 2, 9], dtype="uint8")}
    )
    values = MeansEncoder("g").fit(rows).representations_["g"].values
    np.testing.assert_array_equal(values, [[0.5, 1.5], [1.0, 9.0]])


def test_text_columns_join_by_the_shares_of_their_levels():
    rows = pd.DataFrame({"g": list("aaab"), "colour": ["red", "blue", None, "red"]})
    encoder = MeansEncoder("g", categorical_covariates="share", remainder="drop").fit(rows)
    assert encoder.get_feature_names_out().tolist() == [
        *("g_mean_colour=blue", "g_mean_colour=red", "g_mean_colour is null"),
    ]
    np.testing.assert_allclose(encoder.representations_["g"].values, [[1 / 3] * 3, [0, 1, 0]], rtol=1e-15)


def test_text_columns_of_many_levels_stay_out_of_the_shares():
    rows = pd.DataFrame({"g": ["a", "b"] * 20, "x": 1.0, "name": [f"name {i}" for i in range(40)]})
    encoder = MeansEncoder("g", categorical_covariates="share").fit(rows)
    assert encoder.get_feature_names_out().tolist() == ["x", "name", "g_mean_x"]


def test_rare_levels_share_the_mean_of_their_rows_together():
    rows = pd.DataFrame({"g": list("aaabcc"), "x": [1.0, 2.0, 3.0, 10.0, 20.0, 60.0]})
    table = MeansEncoder("g", min_frequency=3).fit(rows).representations_["g"]
    np.testing.assert_allclose(table.lookup(["a", "b", "c"]).ravel(), [2.0, 30.0, 30.0])


def test_one_rare_level_stays_by_itself():
    rows = pd.DataFrame({"g": list("aaabbbc"), "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 60.0]})
    table = MeansEncoder("g", min_frequency=2).fit(rows).representations_["g"]
    assert table.lookup(["c"]) == 60.0


def test_a_missing_group_may_be_a_level_or_unknown():
    rows = pd.DataFrame({"g": ["a", "b", None], "x": [1.0, 3.0, 8.0]})
    assert MeansEncoder("g", remainder="drop").fit_transform(rows).ravel().tolist() == [1.0, 3.0, 8.0]
    encoder = MeansEncoder("g", missing="prior", remainder="drop")
    assert encoder.fit_transform(rows).ravel().tolist() == [1.0, 3.0, 2.0]
    with pytest.raises(errors.MissingLevelError, match="'g' holds 1 null"):
        MeansEncoder("g", missing="error").fit(rows)


def test_infinite_covariates_are_refused():
    rows = pd.DataFrame({"g": ["a", "b"], "x": [1.0, np.inf]})
    with pytest.raises(
        errors.InfiniteValueError, match=r"'x' contains infinity: 1 value\(s\), the first in row 1"
    ):
        MeansEncoder("g").fit(rows)


def test_without_covariates_there_is_nothing_to_average():
    with pytest.raises(errors.NoCovariateError, match=r"none of which is a numeric covariate beside.*'g'"):
        MeansEncoder("g").fit(pd.DataFrame({"g": ["a", "b"]}))


def test_a_text_column_is_no_covariate():
    rows = pd.DataFrame({"g": ["a", "b"], "x": ["1", "2"]})
    with pytest.raises(errors.NotNumericError, match="Column 'x' holds"):
        MeansEncoder("g", covariates=["x"]).fit(rows)
