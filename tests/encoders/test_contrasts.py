"""The classical codings: the tables printed in the paper, and R's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sufrep import ContrastEncoder, errors

CODINGS = ["one_hot", "deviation", "difference", "helmert", "repeated_effect", "simple_effect"]

# The appendix of the paper, digit by digit.
PAPER = {
    "one_hot": """
        0 0 0 0
        1 0 0 0
        0 1 0 0
        0 0 1 0
        0 0 0 1""",
    "deviation": """
        1 0 0 0
        0 1 0 0
        0 0 1 0
        0 0 0 1
        -1 -1 -1 -1""",
    "difference": """
        -0.5 -0.333 -0.25 -0.2
        0.5 -0.333 -0.25 -0.2
        0.0 0.667 -0.25 -0.2
        0.0 0.000 0.75 -0.2
        0.0 0.000 0.00 0.8""",
    "helmert": """
        0.80 0.00 0.00 0.00
        -0.20 0.75 0.00 0.00
        -0.20 -0.25 0.67 0.00
        -0.20 -0.25 -0.33 0.50
        -0.20 -0.25 -0.33 -0.50""",
    "repeated_effect": """
        0.8 0.6 0.4 0.2
        -0.2 0.6 0.4 0.2
        -0.2 -0.4 0.4 0.2
        -0.2 -0.4 -0.6 0.2
        -0.2 -0.4 -0.6 -0.8""",
}


def printed(text: str) -> list[tuple[float, int]]:
    """Each number with the digits it was printed to."""
    return [(float(word), len(word.partition(".")[2])) for word in text.split()]


def levels_table(levels: str, **parameters: object) -> np.ndarray:
    encoder = ContrastEncoder("size", **parameters).fit(pd.DataFrame({"size": list(levels)}))
    return encoder.representations_["size"].values


@pytest.mark.parametrize("coding", PAPER)
def test_five_levels_are_coded_as_the_paper_prints_them(coding):
    found = levels_table("abcde", coding=coding)
    assert found.shape == (5, 4)
    for value, (expected, digits) in zip(found.ravel(), printed(PAPER[coding]), strict=True):
        assert round(value, digits) == expected


@pytest.mark.parametrize("coding", ["deviation", "difference", "repeated_effect", "simple_effect"])
def test_the_levels_of_the_fixture_are_coded_as_r_codes_them(coding, r_fixtures):
    rows = pd.read_csv(r_fixtures / "input.csv")[["g"]]
    expected = pd.read_csv(r_fixtures / f"{coding}.csv", index_col="level")
    table = ContrastEncoder("g", coding=coding).fit(rows).representations_["g"]
    assert table.levels.tolist() == expected.index.tolist()
    np.testing.assert_allclose(table.values, expected, rtol=0, atol=1e-12)


def test_one_hot_differs_from_r_in_its_reference_only(r_fixtures):
    rows = pd.read_csv(r_fixtures / "input.csv")[["g"]]
    expected = pd.read_csv(r_fixtures / "one_hot.csv", index_col="level").to_numpy()
    table = ContrastEncoder("g").fit(rows).representations_["g"]
    last = 1.0 - expected.sum(axis=1)
    np.testing.assert_array_equal(table.values, np.column_stack([expected, last])[:, 1:])


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("n_levels", [2, 3, 7, 20])
def test_every_coding_with_an_intercept_tells_all_levels_apart(coding, n_levels):
    found = levels_table("abcdefghijklmnopqrst"[:n_levels], coding=coding)
    assert np.linalg.matrix_rank(np.column_stack([np.ones(n_levels), found])) == n_levels


@pytest.mark.parametrize("coding", ["deviation", "difference", "helmert", "repeated_effect", "simple_effect"])
def test_columns_of_the_contrasts_sum_to_zero(coding):
    np.testing.assert_allclose(levels_table("abcdefg", coding=coding).sum(axis=0), 0.0, atol=1e-14)


@pytest.mark.parametrize("coding", CODINGS)
def test_one_level_needs_no_column(coding):
    rows = pd.DataFrame({"size": ["a", "a"], "x": [1.0, 2.0]})
    np.testing.assert_array_equal(ContrastEncoder("size", coding=coding).fit_transform(rows), [[1.0], [2.0]])


@pytest.mark.parametrize("coding", CODINGS)
def test_numbers_alone_can_be_coded(coding):
    found = ContrastEncoder(0, coding=coding).fit_transform(np.array([[10.0], [9.0], [10.0], [np.nan]]))
    # Sorted as numbers, the missing one last.
    expected = levels_table("abc", coding=coding)[[1, 0, 1, 2]]
    np.testing.assert_allclose(found, expected)


def test_one_hot_columns_are_named_after_their_levels():
    rows = pd.DataFrame({"size": ["s", "m", None], "fit": [True, False, True]})
    encoder = ContrastEncoder(["size", "fit"]).fit(rows)
    assert encoder.get_feature_names_out().tolist() == ["size_s", "size_missing", "fit_True"]


def test_other_codings_number_their_columns():
    encoder = ContrastEncoder("size", coding="helmert").fit(pd.DataFrame({"size": list("abc")}))
    assert encoder.get_feature_names_out().tolist() == ["size_helmert1", "size_helmert2"]


def test_rare_levels_share_a_column():
    rows = pd.DataFrame({"size": ["a"] * 3 + ["b"] * 3 + ["c", "d"]})
    encoder = ContrastEncoder("size", min_frequency=2).fit(rows)
    assert encoder.get_feature_names_out().tolist() == ["size_b", "size_infrequent"]
    np.testing.assert_array_equal(encoder.transform(rows)[-2:], [[0, 1], [0, 1]])


def test_levels_that_print_alike_have_names_of_their_own():
    rows = pd.DataFrame({"size": ["a", "missing", None]})
    encoder = ContrastEncoder("size").fit(rows)
    assert encoder.get_feature_names_out().tolist() == ["size_missing", "size_missing_2"]
    np.testing.assert_array_equal(encoder.transform(rows), [[0, 0], [1, 0], [0, 1]])


@pytest.mark.parametrize("missing", ["level", "prior"])
def test_sparse_output_holds_the_same_numbers(missing):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"size": rng.choice(list("abcdef"), 50), "x": rng.normal(size=50)})
    rows.loc[::9, "size"] = None
    new = pd.DataFrame({"size": ["b", "never seen", None], "x": [1.0, 0.0, 2.0]})
    thick = ContrastEncoder("size", missing=missing).fit(rows)
    thin = ContrastEncoder("size", missing=missing, sparse_output=True).fit(rows)
    for frame in (rows, new):
        found = thin.transform(frame)
        assert sparse.issparse(found)
        assert found.format == "csr"
        np.testing.assert_allclose(found.toarray(), thick.transform(frame), rtol=1e-15)
    assert sparse.issparse(thin.fit_transform(rows))
    np.testing.assert_array_equal(thin.fit_transform(rows).toarray(), thick.fit_transform(rows))


def test_sparse_output_of_many_levels_stays_small():
    codes = np.arange(20_000)[:, None]
    found = ContrastEncoder(0, sparse_output=True).fit_transform(codes)
    assert found.shape == (20_000, 19_999)
    assert found.nnz == 19_999


def test_sparse_output_has_no_place_for_text():
    rows = pd.DataFrame({"size": ["a", "b"], "note": ["long", "short"]})
    with pytest.raises(errors.SparseOutputError, match="not numeric: note"):
        ContrastEncoder("size", sparse_output=True).fit_transform(rows)
    found = ContrastEncoder("size", sparse_output=True, remainder="drop").fit_transform(rows)
    np.testing.assert_array_equal(found.toarray(), [[0.0], [1.0]])


@pytest.mark.parametrize("coding", [coding for coding in CODINGS if coding != "one_hot"])
def test_other_codings_cannot_be_sparse(coding):
    with pytest.raises(errors.SparseCodingError, match=f"coding='{coding}' has few zeros"):
        ContrastEncoder(0, coding=coding, sparse_output=True).fit([["a"], ["b"]])


def test_a_frame_of_sparse_columns_is_not_offered():
    encoder = ContrastEncoder("size", sparse_output=True).set_output(transform="pandas")
    with pytest.raises(ValueError, match="transformer outputs a scipy sparse matrix"):
        encoder.fit_transform(pd.DataFrame({"size": ["a", "b"]}))


def test_an_unknown_coding_is_refused():
    with pytest.raises(ValueError, match="'coding' parameter of ContrastEncoder must be a str among"):
        ContrastEncoder(0, coding="dummy").fit([["a"]])
