"""The classical encodings: contrasts as the paper and R print them, permutations, and Fisher's ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, StratifiedKFold

from sufrep import ContrastEncoder, FisherEncoder, PermutationEncoder, errors, make_encoder
from sufrep.encoders._classical import shared_ranks

# Contrasts.


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
def test_every_coding_with_an_intercept_separates_all_levels(coding, n_levels):
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


def test_sparse_output_with_text_columns_is_refused():
    rows = pd.DataFrame({"size": ["a", "b"], "note": ["long", "short"]})
    with pytest.raises(errors.SparseOutputError, match="not numeric: note"):
        ContrastEncoder("size", sparse_output=True).fit_transform(rows)
    found = ContrastEncoder("size", sparse_output=True, remainder="drop").fit_transform(rows)
    np.testing.assert_array_equal(found.toarray(), [[0.0], [1.0]])


@pytest.mark.filterwarnings("ignore::sufrep.errors.NoGroupWarning")
def test_sparse_output_without_a_group_is_sparse_too():
    rows = pd.DataFrame({"x": [1.0, 0.0], "z": [2.0, 3.0]})
    encoder = ContrastEncoder(sparse_output=True)
    for found in (encoder.fit_transform(rows), encoder.transform(rows)):
        assert sparse.issparse(found)
        np.testing.assert_array_equal(found.toarray(), rows)
    assert encoder.set_params(remainder="drop").fit_transform(rows).shape == (2, 0)


@pytest.mark.parametrize("coding", [coding for coding in CODINGS if coding != "one_hot"])
def test_other_codings_cannot_be_sparse(coding):
    with pytest.raises(errors.SparseCodingError, match=f"coding='{coding}' has few zeros"):
        ContrastEncoder(0, coding=coding, sparse_output=True).fit([["a"], ["b"]])


def test_sparse_output_cannot_be_a_frame():
    encoder = ContrastEncoder("size", sparse_output=True).set_output(transform="pandas")
    with pytest.raises(ValueError, match="transformer outputs a scipy sparse matrix"):
        encoder.fit_transform(pd.DataFrame({"size": ["a", "b"]}))


def test_an_unknown_coding_is_refused():
    with pytest.raises(ValueError, match="'coding' parameter of ContrastEncoder must be a str among"):
        ContrastEncoder(0, coding="dummy").fit([["a"]])


# Permutations.


def places(levels: list[int], **parameters: object) -> np.ndarray:
    encoder = PermutationEncoder(0, **parameters).fit(np.array(levels)[:, None])
    return encoder.representations_["x0"].values


@given(
    levels=st.lists(st.integers(0, 50), min_size=1),
    n_permutations=st.integers(1, 5),
    seed=st.integers(0, 2**31 - 1),
)
def test_every_column_is_an_order_of_the_levels(levels, n_permutations, seed):
    found = places(levels, n_permutations=n_permutations, random_state=seed)
    n_levels = len(set(levels))
    assert found.shape == (n_levels, n_permutations)
    np.testing.assert_array_equal(
        np.sort(found, axis=0), np.arange(1, n_levels + 1)[:, None].repeat(n_permutations, 1)
    )


def test_the_seed_decides():
    levels = list(range(30))
    np.testing.assert_array_equal(places(levels, random_state=3), places(levels, random_state=3))
    assert (places(levels, random_state=3) != places(levels, random_state=4)).any()


def test_several_orders_differ():
    found = places(list(range(30)), n_permutations=4)
    assert len(np.unique(found, axis=1).T) == 4


def test_the_first_of_several_orders_is_the_single_one():
    levels = list(range(10))
    np.testing.assert_array_equal(places(levels, n_permutations=3)[:, :1], places(levels))


def test_the_columns_are_named():
    rows = pd.DataFrame({"shop": list("ab")})
    assert make_encoder("permutation", "shop").fit(rows).get_feature_names_out().tolist() == [
        "shop_permutation"
    ]
    several = make_encoder("multi_permutation", "shop").fit(rows).get_feature_names_out().tolist()
    assert several == [f"shop_permutation{j}" for j in (1, 2, 3, 4)]


def test_global_random_state_is_not_touched():
    # The legacy interface is used on purpose: it is the state that users share.
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    places([1, 2, 3])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_seed_is_a_number():
    with pytest.raises(ValueError, match="'random_state' parameter of PermutationEncoder must be an int"):
        places([1], random_state=None)


# Fisher: ranks of the mean response, cross-fitted.


def ranks(levels: Any, y: Any, **parameters: Any) -> dict[Any, list[float]]:
    """The vector of each level."""
    rows = np.array(list(levels), dtype=object)[:, None]
    table = FisherEncoder(0, **parameters).fit(rows, y).representations_["x0"]
    return dict(zip(table.levels.tolist(), table.values.tolist(), strict=True))


def test_ranks_are_those_of_r(r_fixtures):
    rows = pd.read_csv(r_fixtures / "input.csv")
    expected = pd.read_csv(r_fixtures / "fisher_rank.csv", index_col="level")
    table = FisherEncoder("g").fit(rows, rows["y"]).representations_["g"]
    assert table.levels.tolist() == expected.index.tolist()
    np.testing.assert_array_equal(table.values, expected)


def test_levels_are_ranked_by_their_mean_response():
    assert ranks("aabbc", [1.0, 2.0, -5.0, 0.5, 1.25]) == {"a": [3], "b": [1], "c": [2]}


def test_levels_with_the_same_mean_share_their_rank():
    assert ranks("aabbc", [0.1, 0.5, 0.2, 0.4, 9.5]) == {"a": [1.5], "b": [1.5], "c": [3]}


def test_means_that_differ_by_rounding_only_are_the_same():
    assert ranks("aaabbb", [0.1, 0.2, 0.3, 0.3, 0.2, 0.1]) == {"a": [1.5], "b": [1.5]}
    far = 1e9
    assert ranks("aaabbb", [far + 0.1, far + 0.2, far + 0.7, far + 0.7, far + 0.2, far + 0.1]) == {
        "a": [1.5],
        "b": [1.5],
    }


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_shared_ranks_average_to_the_middle(values):
    found = shared_ranks(np.array(values))
    assert found.mean() == pytest.approx((len(values) + 1) / 2)


def test_weights_count_in_the_mean():
    rows = np.array([["a"], ["a"], ["b"]], dtype=object)
    encoder = FisherEncoder(0).fit(rows, [0.5, 9.5, 4.0], sample_weight=[9.0, 1.0, 1.0])
    assert encoder.representations_["x0"].values.ravel().tolist() == [1, 2]


def test_two_classes_give_the_rank_of_the_share_of_the_second():
    found = ranks("aaabbbc", ["no", "no", "yes", "yes", "yes", "no", "no"])
    assert found == {"a": [2], "b": [3], "c": [1]}


def test_two_classes_that_are_numbers_are_ordered_by_value():
    assert ranks("aabb", [9, 9, 10, 10]) == {"a": [1], "b": [2]}


def test_more_classes_give_a_rank_each():
    rows = pd.DataFrame({"shop": list("aabbc")})
    encoder = FisherEncoder("shop").fit(rows, ["x", "y", "y", "y", "z"])
    assert encoder.target_type_ == "multiclass"
    assert encoder.get_feature_names_out().tolist() == ["shop_fisher_x", "shop_fisher_y", "shop_fisher_z"]
    np.testing.assert_array_equal(
        encoder.representations_["shop"].values, [[3, 2, 1.5], [1.5, 3, 1.5], [1.5, 1, 3]]
    )


def test_whole_numbers_of_many_values_are_a_quantity():
    rows = np.array(["a", "b", "c"] * 10, dtype=object)[:, None]
    encoder = FisherEncoder(0).fit(rows, np.arange(30))
    assert encoder.target_type_ == "continuous"
    assert encoder.representations_["x0"].values.ravel().tolist() == [1, 2, 3]


def test_text_is_always_classes():
    rows = np.array([f"level {i % 6}" for i in range(60)], dtype=object)[:, None]
    y = [f"class {i % 30}" for i in range(60)]
    encoder = FisherEncoder(0).fit(rows, y)
    assert encoder.target_type_ == "multiclass"
    assert encoder.representations_["x0"].values.shape == (6, 30)
    chunks = FisherEncoder(0).partial_fit(rows[:10], y[:10]).partial_fit(rows[10:], y[10:])
    np.testing.assert_array_equal(chunks.transform(rows), encoder.transform(rows))


def test_the_kind_of_target_can_be_given():
    assert ranks("abc", [0, 1, 2], target_type="continuous") == {"a": [1], "b": [2], "c": [3]}
    assert len(ranks("abc", [0, 1, 2], target_type="multiclass")["a"]) == 3
    with pytest.raises(errors.TargetError, match="y has 3 classes, but the target was found to be binary"):
        ranks("abc", [0, 1, 2], target_type="binary")


def test_other_numeric_columns_are_not_used():
    rows = pd.DataFrame({"shop": list("abc"), "x": [np.inf, 0.0, np.nan]})
    encoder = FisherEncoder("shop", remainder="drop").fit(rows, [3.5, 2.5, 1.5])
    assert encoder.transform(rows).ravel().tolist() == [3, 2, 1]


@pytest.mark.parametrize("y", [None, [1.0, np.nan, 2.0]])
def test_a_target_is_needed(y):
    rows = np.array([["a"], ["b"], ["c"]], dtype=object)
    for method in ("fit", "fit_transform", "partial_fit"):
        with pytest.raises(errors.TargetError, match=r"y (to be passed|contains NaN)"):
            getattr(FisherEncoder(0), method)(rows, y)


@st.composite
def rows_and_folds(draw: Any) -> tuple[np.ndarray, list[Any]]:
    n = draw(st.integers(2, 25))
    levels = draw(st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=n, max_size=n))
    fold = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    folds = [
        (np.flatnonzero(np.array(fold) != f), np.flatnonzero(np.array(fold) == f)) for f in sorted(set(fold))
    ]
    return np.array(levels, dtype=object)[:, None], folds


@given(data=st.data(), sample=rows_and_folds(), kind=st.sampled_from(["continuous", "binary", "multiclass"]))
def test_a_row_does_not_see_its_own_response(data, sample, kind):
    rows, folds = sample
    n = len(rows)
    response = st.floats(-1e6, 1e6) if kind == "continuous" else st.integers(0, 1 if kind == "binary" else 2)
    y = data.draw(st.lists(response, min_size=n, max_size=n))
    i, other = data.draw(st.integers(0, n - 1)), data.draw(response)
    changed = [*y[:i], other, *y[i + 1 :]]
    options = {"target_type": kind, "cv": folds, "missing": data.draw(st.sampled_from(["level", "prior"]))}
    if options["missing"] == "prior" and all(level is None for level in rows[:, 0]):
        rows[0, 0] = "a"
    least = data.draw(st.sampled_from([None, 3]))
    weights = data.draw(st.sampled_from([None, np.arange(n) % 3 + 0.5]))
    before, after = (
        FisherEncoder(0, min_frequency=least, **options)
        .set_output(transform="pandas")
        .fit_transform(rows, target, sample_weight=weights)
        for target in (y, changed)
    )
    # A class that vanishes or appears takes its column with it; the other columns stay.
    common = [name for name in before if name in after]
    assert common or kind == "multiclass"
    np.testing.assert_allclose(before[common].iloc[i], after[common].iloc[i], rtol=0, atol=1e-9)


def test_fit_transform_learns_from_all_rows_for_new_ones():
    rng = np.random.default_rng(0)
    rows = rng.choice(np.array(["a", "b", "c"], dtype=object), (60, 1))
    y = rng.normal(size=60)
    crossed, plain = FisherEncoder(0), FisherEncoder(0).fit(rows, y)
    within = crossed.fit_transform(rows, y)
    np.testing.assert_array_equal(crossed.transform(rows), plain.transform(rows))
    assert (within != plain.transform(rows)).any()


def test_without_signal_cross_fitted_ranks_do_not_predict_the_target():
    rng = np.random.default_rng(0)
    rows = np.array([f"level {i % 200}" for i in range(1_000)], dtype=object)[:, None]
    y = rng.normal(size=1_000)
    leaky = np.corrcoef(FisherEncoder(0).fit(rows, y).transform(rows).ravel(), y)[0, 1]
    honest = np.corrcoef(FisherEncoder(0).fit_transform(rows, y).ravel(), y)[0, 1]
    assert leaky > 0.3
    assert honest < 0.1


def test_a_fold_that_misses_levels_stretches_its_ranks():
    # Without the second fold, only a and b of four levels are known: their ranks 1 and 2 become 1.5 and 3.5.
    rows = np.array([["a"], ["b"], ["c"], ["d"], ["a"], ["b"]], dtype=object)
    y = [1.0, 2.0, 8.5, 9.0, 1.0, 2.0]
    folds = [([0, 1], [2, 3, 4, 5]), ([2, 3, 4, 5], [0, 1])]
    found = FisherEncoder(0, cv=folds).fit_transform(rows, y).ravel()
    np.testing.assert_allclose(found, [1.0, 2.0, 2.5, 2.5, 1.5, 3.5])


@given(sample=rows_and_folds(), seed=st.integers(0, 2**32 - 1))
def test_cross_fitted_ranks_stay_on_the_scale_of_all_levels(sample, seed):
    rows, folds = sample
    encoder = FisherEncoder(0, cv=folds)
    found = encoder.fit_transform(rows, np.random.default_rng(seed).normal(size=len(rows)))
    assert ((found >= 0.5) & (found <= encoder.n_ranks_["x0"] + 0.5)).all()


@pytest.mark.parametrize("cv", [3, KFold(4), LeaveOneOut(), list(KFold(2).split(np.zeros(12)))])
def test_folds_may_be_a_number_a_splitter_or_a_list(cv):
    rows = np.array(list("aaabbbcccddd"), dtype=object)[:, None]
    found = FisherEncoder(0, cv=cv).fit_transform(rows, np.linspace(0.5, 2.0, 12))
    assert found.shape == (12, 1)


def test_folds_may_look_at_the_classes():
    rows = np.array(list("aaabbbcccddd"), dtype=object)[:, None]
    y = ["no", "yes", "no"] * 4
    found = FisherEncoder(0, cv=StratifiedKFold(2)).fit_transform(rows, y)
    assert found.shape == (12, 1)


def test_the_seed_decides_the_folds():
    rng = np.random.default_rng(0)
    rows, y = rng.choice(np.array(list("abcdefgh"), dtype=object), (80, 1)), rng.normal(size=80)
    one, same, other = (FisherEncoder(0, random_state=seed).fit_transform(rows, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_folds_that_are_no_partition_are_refused():
    rows = np.array([["a"], ["b"], ["c"], ["a"]], dtype=object)
    with pytest.raises(errors.SplitError, match="each of the 4 rows into exactly one test fold"):
        FisherEncoder(0, cv=ShuffleSplit(3, random_state=0)).fit_transform(rows, [1.0, 2.5, 3.0, 4.0])


def test_a_row_outside_of_all_training_levels_gets_the_prior_of_its_fold():
    rows = np.array([["a"], ["a"], ["b"], ["c"]], dtype=object)
    found = FisherEncoder(0, cv=LeaveOneOut()).fit_transform(rows, [1.0, 2.0, 3.5, 0.0]).ravel()
    # Without b: a has rank 2 and c rank 1 of two, stretched to 2.75 and 1.25; a weighs twice.
    assert found[2] == pytest.approx((2 * 2.75 + 1.25) / 3)


def test_a_null_that_is_no_level_gets_the_prior_of_its_fold():
    rows = np.array([["a"], ["b"], [None], ["a"]], dtype=object)
    folds = [([0, 1, 3], [2]), ([2], [0, 1, 3])]
    found = FisherEncoder(0, cv=folds, missing="prior").fit_transform(rows, [1.0, 2.5, 99.0, 1.0]).ravel()
    assert found[2] == pytest.approx((2 * 1 + 2) / 3)
    # The other fold learns from a row without a level, so from nothing: the middle of the ranks.
    np.testing.assert_array_equal(found[[0, 1, 3]], 1.5)


def test_one_row_is_enough():
    assert FisherEncoder(0).fit_transform([["a"]], [3.5]).tolist() == [[1.0]]
    assert FisherEncoder(0).fit_transform([["a"]], ["yes"]).tolist() == [[1.0]]


def test_classes_may_come_in_later_chunks():
    rows = np.array([["a"], ["b"], ["a"], ["b"], ["c"]], dtype=object)
    y = ["x", "y", "y", "z", "x"]
    encoder = FisherEncoder(0, target_type="multiclass")
    encoder.partial_fit(rows[:1], y[:1]).partial_fit(rows[1:3], y[1:3]).partial_fit(rows[3:], y[3:])
    whole = FisherEncoder(0, target_type="multiclass").fit(rows, y)
    assert encoder.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    np.testing.assert_array_equal(encoder.transform(rows), whole.transform(rows))


def test_a_third_class_in_a_later_chunk_of_a_binary_target_is_refused():
    encoder = FisherEncoder(0).partial_fit([["a"], ["b"]], ["x", "y"])
    with pytest.raises(errors.TargetError, match=r"y has 3 classes.*\nHint: pass target_type='multiclass'"):
        encoder.partial_fit([["a"], ["b"]], ["x", "z"])
    assert encoder.transform([["a"]]).tolist() == [[1.0]]


def test_a_quantity_stays_one_in_later_chunks_of_whole_numbers():
    encoder = FisherEncoder(0).partial_fit([["a"], ["b"]], [0.5, 1.5]).partial_fit([["a"], ["b"]], [9.0, 1.0])
    assert encoder.target_type_ == "continuous"
    assert encoder.transform([["a"], ["b"]]).ravel().tolist() == [2.0, 1.0]


def test_a_quantity_after_a_chunk_of_classes_is_refused():
    encoder = FisherEncoder(0).partial_fit([["a"], ["b"], ["c"]], [1.0, 2.0, 3.0])
    with pytest.raises(errors.TargetError, match=r"Hint: .*target_type='continuous'"):
        encoder.partial_fit([["a"], ["b"]], [1.25, 2.75])


def test_the_same_class_in_another_type_is_the_same_class():
    rows = np.array([["a"], ["b"], ["c"]], dtype=object)
    encoder = (
        FisherEncoder(0).partial_fit(rows, np.array([1, 2, 3])).partial_fit(rows, np.array([1.0, 2.0, 3.0]))
    )
    assert encoder.representations_["x0"].values.shape == (3, 3)


def test_folds_that_are_refused_leave_the_encoder_as_it_was():
    encoder = FisherEncoder(0).fit([["a"], ["b"]], [1.5, 0.5])
    expected = encoder.transform([["a"], ["b"]])
    encoder.set_params(cv=[([0], [1])])
    with pytest.raises(errors.SplitError, match="in none"):
        encoder.fit_transform([["a"], ["b"]], [0.5, 1.5])
    np.testing.assert_array_equal(encoder.transform([["a"], ["b"]]), expected)
