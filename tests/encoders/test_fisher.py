"""Fisher: ranks of the mean response that no row's own response has touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, StratifiedKFold

from sufrep import FisherEncoder, errors
from sufrep.encoders._fisher import shared_ranks


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


def test_text_is_classes_however_many():
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
    with pytest.raises(errors.TargetError, match="y has 3 classes, but the target was taken to be binary"):
        ranks("abc", [0, 1, 2], target_type="binary")


def test_other_numeric_columns_play_no_part():
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
    # Where the change lets a class vanish or appear, its column does, and the others stay.
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


def test_a_third_class_in_a_later_chunk_of_a_binary_target_is_told():
    encoder = FisherEncoder(0).partial_fit([["a"], ["b"]], ["x", "y"])
    with pytest.raises(errors.TargetError, match=r"y has 3 classes.*\nHint: pass target_type='multiclass'"):
        encoder.partial_fit([["a"], ["b"]], ["x", "z"])
    assert encoder.transform([["a"]]).tolist() == [[1.0]]


def test_a_quantity_stays_one_in_later_chunks_of_whole_numbers():
    encoder = FisherEncoder(0).partial_fit([["a"], ["b"]], [0.5, 1.5]).partial_fit([["a"], ["b"]], [9.0, 1.0])
    assert encoder.target_type_ == "continuous"
    assert encoder.transform([["a"], ["b"]]).ravel().tolist() == [2.0, 1.0]


def test_classes_that_turn_out_to_be_a_quantity_are_told():
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
