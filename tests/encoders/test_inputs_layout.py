"""Which columns are groups, which are covariates and which pass through."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep import MeansEncoder, make_encoder
from sufrep._frames import ArrayTable, FrameTable
from sufrep.encoders import METHODS, NoGroupWarning
from sufrep.encoders._inputs import (
    MOST_SHARES,
    Covariate,
    Layout,
    merge_covariates,
    read_covariates,
    resolve_layout,
)
from sufrep.errors import (
    ClashingNamesError,
    EmptyGroupError,
    GroupAsCovariateError,
    NotNumericError,
    TooManySharesError,
    UnknownColumnError,
)

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)

SHOPS = {
    "store": ["n", "s", "n", "s", "n", None],
    "brand": ["x", "x", "y", "y", "x", "y"],
    "sold": [1, 2, 3, 4, 5, 6],
    "price": [0.5, 1.5, None, 3.5, 4.5, 5.5],
    "day": pd.date_range("2020-01-01", periods=6),
    "open": [True, False, True, True, False, True],
}
FRAMES = {
    "pandas": pd.DataFrame(SHOPS),
    "polars": pl.from_pandas(pd.DataFrame(SHOPS)),
    "pyarrow": pa.Table.from_pandas(pd.DataFrame(SHOPS)),
}
every_library = pytest.mark.parametrize("library", FRAMES)


def layout(table=None, **changes):
    """The roles of the columns of SHOPS, or of another table."""
    chosen = {"group": "store", "covariates": None, "share_text": False, "keep": True, **changes}
    return resolve_layout(table or FrameTable.from_native(FRAMES["pandas"]), **chosen)


@every_library
def test_the_other_numbers_are_covariates_and_all_but_the_group_is_kept(library):
    found = layout(FrameTable.from_native(FRAMES[library]))
    assert found == Layout(tuple(SHOPS), ((0,),), (2, 3, 5), (), (1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    ("group", "columns"),
    [
        ("store", [(0,)]),
        (0, [(0,)]),
        (-6, [(0,)]),
        (np.int64(1), [(1,)]),
        (["store"], [(0,)]),
        (["brand", 0], [(1,), (0,)]),
        (["store", 0, -6], [(0,)]),
        (("store", "brand"), [(0, 1)]),
        ([("store", "brand")], [(0, 1)]),
        ([("store", 1), "brand", (1, "store")], [(0, 1), (1,), (1, 0)]),
        (("store", "brand", "sold"), [(0, 1, 2)]),
        (("store",), [(0,)]),
        (None, [(0,), (1,)]),
    ],
    ids=repr,
)
def test_groups_may_be_named_in_many_ways(group, columns):
    assert layout(group=group).groups == tuple(columns)


@every_library
def test_without_a_name_every_text_column_is_a_group(library):
    assert layout(FrameTable.from_native(FRAMES[library]), group=None).groups == ((0,), (1,))


CATEGORIES = {
    "pandas": pd.DataFrame({"store": pd.Categorical(["n", "s"]), "sold": [1, 2]}),
    "polars": pl.DataFrame({"store": pl.Series(["n", "s"], dtype=pl.Enum(["n", "s"])), "sold": [1, 2]}),
    "pyarrow": pa.table({"store": pa.array(["n", "s"]).dictionary_encode(), "sold": [1, 2]}),
}


@every_library
def test_without_a_name_categories_are_groups_too(library):
    assert layout(FrameTable.from_native(CATEGORIES[library]), group=None).groups == ((0,),)


def test_without_a_name_text_columns_of_an_array_are_groups():
    objects = np.array([["n", 1.0, None], ["s", 2.0, 3]], dtype=object)
    assert layout(ArrayTable(objects, ("x0", "x1", "x2")), group=None).groups == ((0,),)


@every_library
def test_a_frame_without_text_warns_that_nothing_is_encoded(library):
    frame = {
        "pandas": FRAMES["pandas"][["sold", "price"]],
        "polars": FRAMES["polars"].select("sold", "price"),
        "pyarrow": FRAMES["pyarrow"].select(["sold", "price"]),
    }[library]
    with pytest.warns(NoGroupWarning, match="X has none: nothing is encoded"):
        result = MeansEncoder().fit_transform(frame)
    np.testing.assert_array_equal(result, np.column_stack([SHOPS["sold"], FRAMES["pandas"]["price"]]))


def test_an_array_of_numbers_without_a_group_does_not_warn():
    numbers = np.arange(6.0).reshape(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(MeansEncoder().fit_transform(numbers), numbers)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("stor", "group names the column 'stor', which X does not have.\nHint: did you mean 'store'"),
        ("zipcode", "Hint: the columns are 'store', 'brand', 'sold', 'price', 'day', 'open'"),
        (["store2", "store"], "group names the column 'store2'.*\nHint: the columns are"),
        (["store", "brnd"], "group names the column 'brnd'.*\nHint: did you mean 'brand'"),
        (("store", "brnd"), "group names the column 'brnd'"),
        (6, "group names the column 6, which X does not have.\nHint: positions run from 0 to 5"),
        (-7, "group names the column -7.*\nHint: positions run from 0 to 5"),
        (np.int64(6), "which X does not have.\nHint: positions run from 0 to 5"),
        ([1.5], "group names the column 1.5"),
        ([["store", "brand"]], r"group names the column \['store', 'brand'\]"),
    ],
    ids=repr,
)
def test_an_unknown_group_is_refused_with_a_hint(group, message):
    with pytest.raises(UnknownColumnError, match=message):
        MeansEncoder(group).fit(FRAMES["pandas"])


@pytest.mark.parametrize("group", [(), [], [()], ["store", ()]], ids=repr)
def test_a_group_of_no_columns_is_refused(group):
    with pytest.raises(EmptyGroupError, match=r"names no column.*\nHint: name at least one"):
        MeansEncoder(group).fit(FRAMES["pandas"])


@pytest.mark.parametrize(
    ("covariates", "columns"),
    [
        (["price"], [3]),
        (["price", "sold"], [3, 2]),
        (("sold",), [2]),
        ([2, -3], [2, 3]),
        (np.array(["price"]), [3]),
        (np.array([3]), [3]),
        (["open"], [5]),
    ],
    ids=repr,
)
def test_covariates_may_be_chosen_by_name_and_position(covariates, columns):
    assert layout(covariates=covariates).covariates == tuple(columns)


def test_chosen_covariates_come_in_the_order_given():
    encoder = MeansEncoder("store", covariates=["price", "sold"], remainder="drop").fit(FRAMES["pandas"])
    assert encoder.get_feature_names_out().tolist() == ["store_mean_price", "store_mean_sold"]


def test_a_group_may_be_a_covariate_of_another():
    frame = FRAMES["pandas"][["store", "sold"]]
    encoder = MeansEncoder(["store", "sold"], covariates=["sold"], remainder="drop").fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["store_mean_sold", "sold_mean_sold"]


@pytest.mark.parametrize("method", METHODS)
def test_a_group_is_no_covariate_of_its_own(method):
    frame, y = FRAMES["pandas"][["sold", "price"]], np.arange(float(len(FRAMES["pandas"])))
    with pytest.raises(GroupAsCovariateError, match=r"names 'sold', which is part of every group \(sold\)"):
        make_encoder(method, "sold", covariates=["price", "sold"]).fit(frame, y)


@pytest.mark.parametrize(
    ("group", "named", "groups"),
    [
        (("store", "sold"), "sold", "store:sold"),
        (["sold", ("store", "sold")], "sold", "sold, store:sold"),
        ("brand", "brand", "brand"),
    ],
)
def test_no_part_of_all_groups_is_a_covariate(group, named, groups):
    message = rf"covariates names '{named}', which is part of every group \({groups}\)"
    with pytest.raises(GroupAsCovariateError, match=message):
        layout(group=group, covariates=["price", named], share_text=True)


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        (["price2", "price"], "covariates names the column 'price2'.*\nHint: the columns are"),
        (["pric"], "covariates names the column 'pric', which X does not have.\nHint: did you mean 'price'"),
        ([9], "covariates names the column 9, which X does not have.\nHint: positions run from 0 to 5"),
    ],
)
def test_an_unknown_covariate_is_refused_with_a_hint(covariates, message):
    with pytest.raises(UnknownColumnError, match=message):
        MeansEncoder("store", covariates=covariates).fit(FRAMES["pandas"])


@every_library
@pytest.mark.parametrize("name", ["brand", "day", "store"])
def test_a_covariate_that_is_not_numeric_is_refused_by_its_type(library, name):
    table = FrameTable.from_native(FRAMES[library])
    dtype = table.dtype(list(SHOPS).index(name))
    with pytest.raises(NotNumericError, match=f"Column '{name}' holds") as caught:
        layout(table, covariates=["sold", name])
    assert f"holds {dtype}, but it is to be a covariate, and covariates are numeric" in str(caught.value)


def test_a_text_column_of_an_array_is_no_covariate():
    with pytest.raises(NotNumericError, match="Column 'x1' holds object, but it is to be a covariate"):
        MeansEncoder(0, covariates=[1]).fit(np.array([["n", "1"], ["s", "2"]], dtype=object))


def test_a_covariate_given_twice_counts_once():
    twice = MeansEncoder("store", covariates=["sold", 2]).fit(FRAMES["pandas"])
    assert twice.representations_["store"].columns == ("store_mean_sold",)


def test_text_columns_that_are_named_join_as_shares_and_others_do_not():
    encoder = MeansEncoder("store", covariates=["sold", "brand"], categorical_covariates="share")
    columns = encoder.fit(FRAMES["pandas"]).representations_["store"].columns
    assert columns[0] == "store_mean_sold"
    assert all(name.startswith("store_mean_brand") for name in columns[1:])
    encoder = MeansEncoder("store", covariates=["sold"], categorical_covariates="share")
    assert encoder.fit(FRAMES["pandas"]).representations_["store"].columns == ("store_mean_sold",)


@every_library
def test_dropping_the_remainder_leaves_the_encoding(library):
    kept = MeansEncoder("store").fit_transform(FRAMES[library])
    alone = MeansEncoder("store", remainder="drop").fit_transform(FRAMES[library])
    np.testing.assert_array_equal(alone, kept[:, -3:].astype(float))
    assert layout(FrameTable.from_native(FRAMES[library]), keep=False).kept == ()


@every_library
def test_several_groups_are_encoded_as_each_alone(library):
    drop = {"remainder": "drop", "covariates": ["sold", "price"]}
    both = MeansEncoder(["brand", "store"], **drop).fit_transform(FRAMES[library])
    each = [MeansEncoder(name, **drop).fit_transform(FRAMES[library]) for name in ("brand", "store")]
    np.testing.assert_allclose(both, np.hstack(each))


def pair_column(store, brand):
    """A column of the pairs made by hand; text that sorts as the pairs do."""
    return [f"{s or '~'}|{b or '~'}" for s, b in zip(store, brand, strict=True)]


@pytest.mark.parametrize("method", ["one_hot", "permutation", "fisher", "means", "low_rank"])
@few
@given(rows=st.lists(st.tuples(*[st.none() | st.sampled_from("abc")] * 2), min_size=2, max_size=15))
def test_a_crossed_group_is_the_group_of_the_pairs(method, rows):
    store, brand = zip(*rows, strict=True)
    x, y = np.arange(len(rows)) * 0.5, np.arange(len(rows)) % 3 * 0.25
    frame = pl.DataFrame(
        {"store": store, "brand": brand, "x": x}, schema_overrides={"store": str, "brand": str}
    )
    crossed = make_encoder(method, ("store", "brand"), remainder="drop").fit_transform(frame, y)
    by_hand = pl.DataFrame({"pair": pair_column(store, brand), "x": x})
    np.testing.assert_allclose(
        crossed, make_encoder(method, "pair", remainder="drop").fit_transform(by_hand, y), atol=1e-12
    )


@every_library
def test_crossed_levels_are_tuples_with_none_for_null(library):
    representations = MeansEncoder(("store", "brand")).fit(FRAMES[library]).representations_
    assert list(representations) == ["store:brand"]
    levels = [("n", "x"), ("n", "y"), ("s", "x"), ("s", "y"), (None, "y")]
    assert representations["store:brand"].levels.tolist() == levels


def test_crossed_columns_are_named_after_all_of_their_columns():
    encoder = MeansEncoder(("store", "brand"), covariates=["sold"]).fit(FRAMES["pandas"])
    names = ["sold", "price", "day", "open", "store:brand_mean_sold"]
    assert encoder.get_feature_names_out().tolist() == names


@every_library
def test_a_column_may_be_a_group_and_part_of_a_crossed_one(library):
    encoder = MeansEncoder(["brand", ("store", "brand")], remainder="drop", covariates=["sold"])
    encoder.fit(FRAMES[library])
    assert encoder.get_feature_names_out().tolist() == ["brand_mean_sold", "store:brand_mean_sold"]


def test_a_group_called_like_a_crossed_one_is_refused():
    frame = FRAMES["pandas"].assign(**{"store:brand": list("uvwuvw")})
    with pytest.raises(ClashingNamesError, match="store:brand"):
        MeansEncoder(["store:brand", ("store", "brand")]).fit(frame)


def with_indicators(frame, text):
    """The indicators of a text column made by hand in its place, that of null last."""
    levels = pd.get_dummies(frame[text], prefix=text, prefix_sep="=", dtype=float)
    return frame.drop(columns=text).join(levels).assign(**{f"{text} is null": frame[text].isna()})


@every_library
def test_shares_are_the_means_of_indicators_made_by_hand(library):
    frame = FRAMES["pandas"][["brand", "store", "sold"]]
    native = {"pandas": frame, "polars": pl.from_pandas(frame), "pyarrow": pa.Table.from_pandas(frame)}
    encoder = MeansEncoder("brand", categorical_covariates="share", remainder="drop")
    by_hand = MeansEncoder("brand", remainder="drop")
    expected = by_hand.fit_transform(with_indicators(frame, "store"))
    np.testing.assert_allclose(encoder.fit_transform(native[library]), expected)
    names = [f"brand_mean_{name}" for name in ("sold", "store=n", "store=s", "store is null")]
    assert encoder.get_feature_names_out().tolist() == names == by_hand.get_feature_names_out().tolist()


def test_shares_are_ignored_unless_asked_for():
    encoder = MeansEncoder("brand", remainder="drop").fit(FRAMES["pandas"][["brand", "store", "sold"]])
    assert encoder.get_feature_names_out().tolist() == ["brand_mean_sold"]


def test_columns_that_join_as_shares_pass_through_all_the_same():
    encoder = MeansEncoder("brand", categorical_covariates="share").fit(FRAMES["pandas"][["brand", "store"]])
    assert encoder.get_feature_names_out().tolist()[0] == "store"


@pytest.mark.parametrize("null", [[], [None]], ids=["without null", "with null"])
@pytest.mark.parametrize("more", [0, 1])
def test_a_text_column_of_more_than_thirty_levels_does_not_join(more, null):
    levels = [f"level {j:02d}" for j in range(MOST_SHARES + more)] + null
    frame = pl.DataFrame({"shop": ["a"] * len(levels), "item": levels, "sold": range(len(levels))})
    encoder = MeansEncoder("shop", categorical_covariates="share", remainder="drop").fit(frame)
    assert len(encoder.get_feature_names_out()) == (1 if more else 1 + len(levels))


def test_shares_that_grow_beyond_thirty_levels_chunk_by_chunk_are_refused():
    chunk = pl.DataFrame({"shop": ["a"] * 20, "item": [f"first {j}" for j in range(20)]})
    more = chunk.with_columns(item=pl.col("item").str.replace("first", "second"))
    encoder = MeansEncoder("shop", categorical_covariates="share").partial_fit(chunk)
    with pytest.raises(TooManySharesError, match="now has 40 levels; at most 30 can join"):
        encoder.partial_fit(more)


def test_a_level_called_missing_and_null_have_shares_of_their_own():
    frame = pl.DataFrame({"shop": ["a", "a", "b", "b"], "kind": ["missing", None, "missing", "missing"]})
    encoder = MeansEncoder("shop", categorical_covariates="share", remainder="drop")
    assert sorted(map(tuple, encoder.fit_transform(frame).tolist())) == [(0.5, 0.5)] * 2 + [(1.0, 0.0)] * 2


def test_chunks_add_up_where_there_is_a_level_called_missing_and_null():
    frame = pl.DataFrame(
        {"shop": list("aabbccab"), "kind": ["missing", None, "u", "missing", None, "u", None, "missing"]}
    )
    encoder = make_encoder(
        "low_rank", "shop", categorical_covariates="share", n_components=2, standardize=False
    )
    whole = encoder.fit(frame).representations_["shop"].values
    encoder.fit(frame[:3])
    chunked = encoder.partial_fit(frame[3:]).representations_["shop"].values
    np.testing.assert_allclose(chunked, whole)


def table_of(**columns):
    return FrameTable.from_native(pl.DataFrame(columns))


def test_covariates_are_columns_and_then_indicators_in_the_order_of_their_names():
    table = table_of(shop=["a", "a"], kind=["v", None], size=[1.0, 2.0], tint=["w", "u"])
    roles = layout(table, group="shop", share_text=True)
    found, columns = read_covariates(table, roles)
    names = [covariate.name(table.names) for covariate in found]
    assert names == ["size", "kind=v", "kind is null", "tint=u", "tint=w"]
    assert [column.tolist() for column in columns] == [[1, 2], [1, 0], [0, 1], [0, 1], [1, 0]]


def test_covariates_of_two_chunks_unite():
    old = [Covariate(2), Covariate(1, "u"), Covariate(1, "w")]
    new = [Covariate(2), Covariate(1, "v"), Covariate(1, "w"), Covariate(3, "a")]
    united = [Covariate(2), Covariate(1, "u"), Covariate(1, "v"), Covariate(1, "w"), Covariate(3, "a")]
    assert merge_covariates(old, new, ["shop", "kind", "size"]) == united


def test_a_covariate_without_a_column_is_the_target():
    assert Covariate(None).name(["a"]) == "target"
    assert Covariate(None, "yes").name(["a"]) == "target=yes"


@every_library
def test_categories_that_do_not_occur_are_no_levels(library):
    values, categories = ["b", "a", "b"], ["z", "b", "y", "a"]
    frame = {
        "pandas": pd.DataFrame({"g": pd.Categorical(values, categories), "x": [1.0, 2, 3]}),
        "polars": pl.DataFrame({"g": pl.Series(values, dtype=pl.Enum(categories)), "x": [1.0, 2, 3]}),
        "pyarrow": pa.table(
            {
                "g": pa.DictionaryArray.from_arrays(pa.array([1, 3, 1]), pa.array(categories)),
                "x": [1.0, 2, 3],
            }
        ),
    }[library]
    encoder = make_encoder("one_hot", "g", remainder="drop").fit(frame)
    assert encoder.representations_["g"].levels.tolist() == ["a", "b"]
    assert encoder.get_feature_names_out().tolist() == ["g_b"]
