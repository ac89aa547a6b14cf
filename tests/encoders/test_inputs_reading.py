"""What users pass is checked once, with an error of its own for each mistake."""

from __future__ import annotations

import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

from sufrep import MeansEncoder, Representation, ToNumbers, load, make_encoder
from sufrep._frames import FrameTable
from sufrep.encoders import METHODS, UnseenLevelsWarning
from sufrep.encoders._inputs import check_length, check_weights, find_levels, read_factor
from sufrep.errors import (
    ClashingNamesError,
    ColumnNameError,
    ColumnsMismatchError,
    GroupValueError,
    InfiniteValueError,
    LazyFrameError,
    LengthMismatchError,
    MissingLevelError,
    NoCovariateError,
    NoLevelError,
    NoRowsError,
    OtherTableError,
    SampleWeightError,
    TargetError,
    UnknownColumnError,
    UnnamedColumnsError,
    UnseenLevelError,
)

HOUSES = {"zipcode": ["b", "a", None, "b"], "sqft": [1.0, 2.0, 3.0, None], "floors": [1, 2, 2, 3]}
FRAMES = {"pandas": pd.DataFrame(HOUSES), "polars": pl.DataFrame(HOUSES), "pyarrow": pa.table(HOUSES)}
PRICE = np.array([1.5, 0.5, 1.0, 2.5])
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
every_library = pytest.mark.parametrize("library", FRAMES)
# Reading is the same for all; fisher and one_hot have paths of their own.
some_methods = pytest.mark.parametrize("method", ["one_hot", "fisher", "means"])


def make(library, **changes):
    """The houses with some columns changed; a column of None is left out."""
    columns = {name: values for name, values in {**HOUSES, **changes}.items() if values is not None}
    return MAKERS[library](columns)


# Levels that are null.


@pytest.mark.parametrize(
    ("missing", "codes", "levels"),
    [("level", [1, 0, 2, 1], ["a", "b", None]), ("prior", [1, 0, -1, 1], ["a", "b"])],
)
@every_library
def test_null_is_a_level_or_none_as_missing_says(library, missing, codes, levels):
    factor = read_factor(FrameTable.from_native(FRAMES[library]), [0], missing)
    assert (factor.codes.tolist(), factor.levels.tolist()) == (codes, levels)


@every_library
def test_null_as_a_level_gets_the_vector_of_its_own_rows(library):
    result = MeansEncoder("zipcode", remainder="drop").fit_transform(FRAMES[library])
    np.testing.assert_allclose(result, [[1, 2], [2, 2], [3, 2], [1, 2]])


@every_library
def test_null_as_no_level_gets_the_prior_and_does_not_count_for_it(library):
    encoder = MeansEncoder("zipcode", remainder="drop", missing="prior").fit(FRAMES[library])
    prior = encoder.representations_["zipcode"].prior
    np.testing.assert_allclose(prior, [(2 * 1 + 2) / 3, (2 * 2 + 2) / 3])
    np.testing.assert_allclose(encoder.transform(FRAMES[library])[2], prior)


@every_library
@some_methods
def test_null_may_be_forbidden_in_fit_and_in_transform(library, method):
    encoder = make_encoder(method, "zipcode", missing="error")
    message = "Column 'zipcode' holds 1 null.* and missing='error' forbids them"
    with pytest.raises(MissingLevelError, match=message):
        encoder.fit(FRAMES[library], PRICE)
    encoder.fit(make(library, zipcode=["b", "a", "a", "b"]), PRICE)
    with pytest.raises(MissingLevelError, match=message):
        encoder.transform(FRAMES[library])


NOTHING = {
    "pandas": pd.DataFrame({**HOUSES, "zipcode": pd.Series([None] * 4, dtype=object)}),
    "pandas str": pd.DataFrame({**HOUSES, "zipcode": pd.Series([None] * 4, dtype="str")}),
    "pandas float": pd.DataFrame({**HOUSES, "zipcode": [np.nan] * 4}),
    "polars": pl.DataFrame({**HOUSES, "zipcode": [None] * 4}),
    "pyarrow": pa.table({**HOUSES, "zipcode": pa.nulls(4)}),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_a_group_of_nulls_is_one_level_or_none_or_an_error(kind):
    frame = NOTHING[kind]
    whole = MeansEncoder("zipcode", remainder="drop").fit_transform(frame)
    np.testing.assert_allclose(whole, [[2.0, 2.0]] * 4)
    with pytest.raises(NoLevelError, match="Column 'zipcode' has no level in any row"):
        MeansEncoder("zipcode", missing="prior").fit(frame)
    with pytest.raises(MissingLevelError, match=re.escape("holds 4 null(s)")):
        MeansEncoder("zipcode", missing="error").fit(frame)


CROSSED = {"store": ["n", None, "n", None], "brand": ["x", "x", None, None], "sold": [1.0, 2.0, 3.0, 4.0]}


@every_library
def test_nulls_of_a_crossed_group_are_parts_of_levels(library):
    result = MeansEncoder(("store", "brand"), remainder="drop").fit_transform(MAKERS[library](CROSSED))
    assert result.ravel().tolist() == [1, 2, 3, 4]


@every_library
def test_one_null_part_makes_a_crossed_group_null_under_missing_prior(library):
    encoder = MeansEncoder(("store", "brand"), remainder="drop", missing="prior")
    assert encoder.fit_transform(MAKERS[library](CROSSED)).ravel().tolist() == [1, 1, 1, 1]
    assert encoder.representations_["store:brand"].levels.tolist() == [("n", "x")]


@every_library
def test_a_null_part_of_a_crossed_group_may_be_forbidden(library):
    frame = MAKERS[library]({**CROSSED, "brand": ["x", "x", "y", None]})
    with pytest.raises(MissingLevelError, match=re.escape("Column 'store' holds 2 null(s)")):
        MeansEncoder(("store", "brand"), missing="error").fit(frame)


@every_library
def test_a_crossed_group_without_a_whole_combination_has_no_level(library):
    frame = MAKERS[library]({**CROSSED, "store": ["n", None, "n", None], "brand": [None, "x", None, "x"]})
    with pytest.raises(NoLevelError, match="Column 'store:brand' has no level"):
        MeansEncoder(("store", "brand"), missing="prior").fit(frame)


def test_nulls_first_met_in_transform_get_the_prior():
    encoder = MeansEncoder("zipcode", remainder="drop").fit(make("polars", zipcode=["b", "a", "a", "b"]))
    result = encoder.transform(FRAMES["polars"])
    np.testing.assert_allclose(result[2], encoder.representations_["zipcode"].prior)


# Levels that fit did not see.


# The output of these depends on the covariates of the row (test_level_models.py, test_crossed_effects.py) or
# on a search (test_sufficient.py).
_ELSEWHERE = ("crossed_effects", "mixed_model", "local_effect", "sufficient")


@every_library
@pytest.mark.parametrize("method", [name for name in METHODS if name not in _ELSEWHERE])
def test_an_unseen_level_gets_the_prior(library, method):
    encoder = make_encoder(method, "zipcode", remainder="drop", unseen="prior").fit(FRAMES[library], PRICE)
    result = encoder.transform(make(library, zipcode=["new", "a", "newer", "b"]))
    prior = encoder.representations_["zipcode"].prior
    np.testing.assert_allclose(result[[0, 2]], [prior, prior])
    np.testing.assert_allclose(result[[1, 3]], encoder.representations_["zipcode"].lookup(["a", "b"]))


@every_library
@some_methods
def test_an_unseen_level_may_be_forbidden(library, method):
    encoder = make_encoder(method, "zipcode", unseen="error").fit(FRAMES[library], PRICE)
    message = "Column 'zipcode' holds 2 unseen level.*: new, newer. The encoder knows 3.*\n.*unseen='prior'"
    with pytest.raises(UnseenLevelError, match=message):
        encoder.transform(make(library, zipcode=["new", "a", "newer", "b"]))


def test_only_the_first_unseen_levels_are_listed():
    encoder = MeansEncoder("zipcode", unseen="error").fit(FRAMES["polars"])
    rows = pl.DataFrame({"zipcode": [f"new{j}" for j in range(9)], "sqft": [1.0] * 9, "floors": [1] * 9})
    with pytest.raises(UnseenLevelError, match=r"9 unseen level\(s\): new0, new1, new2, new3, new4, …\."):
        encoder.transform(rows)


def test_a_missing_part_of_an_unseen_combination_is_called_so():
    frame = pl.DataFrame({"store": ["n", "s"], "brand": ["x", "x"], "sold": [1.0, 2.0]})
    encoder = MeansEncoder(("store", "brand"), unseen="error").fit(frame)
    with pytest.raises(UnseenLevelError, match=r"Column 'store:brand' holds 1 unseen level.*: n:missing"):
        encoder.transform(pl.DataFrame({"store": ["n"], "brand": [None], "sold": [1.0]}))


def zipcodes(library, values):
    return MAKERS[library]({"zipcode": values, "sqft": [1.0, 2.0]})


@every_library
@pytest.mark.parametrize(
    ("fitted", "used", "types"),
    [
        (["98178", "98125"], [98178, 98125], r"of type int \(98(178|125), …\), those of fit of type str"),
        ([98178, 98125], ["98178", "98125"], r"of type str \('98(178|125)', …\), those of fit of type int"),
    ],
)
def test_rows_that_are_all_unseen_warn_about_their_types(library, fitted, used, types):
    encoder = MeansEncoder("zipcode", remainder="drop", unseen="prior").fit(zipcodes(library, fitted))
    with pytest.warns(UnseenLevelsWarning, match=types):
        result = encoder.transform(zipcodes(library, used))
    np.testing.assert_allclose(result, [[1.5], [1.5]])


@every_library
def test_one_unseen_row_of_another_type_warns(library):
    encoder = MeansEncoder("zipcode").fit(zipcodes(library, ["98178", "98125"]))
    with pytest.warns(UnseenLevelsWarning, match="No row of column 'zipcode' holds a level that fit saw"):
        encoder.transform(zipcodes(library, [98178, 98125])[:1])


@every_library
@pytest.mark.parametrize("fitted", [["98178", "98125"], ["98178", None]], ids=["without null", "with null"])
def test_one_unseen_row_of_the_same_type_does_not_warn(library, fitted):
    encoder = MeansEncoder("zipcode").fit(zipcodes(library, fitted))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.transform(zipcodes(library, ["98001", "98178"])[:1])


def test_one_row_of_null_does_not_warn():
    encoder = MeansEncoder("zipcode").fit(zipcodes("polars", ["98178", "98125"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.transform(zipcodes("polars", [None, "98178"])[:1])


def test_some_unseen_rows_do_not_warn():
    encoder = MeansEncoder("zipcode").fit(zipcodes("polars", ["98178", "98125"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.transform(zipcodes("polars", ["98178", "98001"]))


def test_rows_are_looked_up_by_their_level():
    table = Representation.from_values(["a", "b"], [[0.0], [4.0]], ["size"], weight=[3.0, 1.0])
    factor = read_factor(FrameTable.from_native(FRAMES["polars"]), [0], "prior")
    assert find_levels(table, factor, "zipcode", "prior").tolist() == [0, 1]


# Weights and targets.


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1, -1, -2], r"sample_weight is negative in 2 row\(s\)"),
        ([1, np.nan, 1, np.inf], r"sample_weight contains NaN or infinity in 2 row\(s\)"),
        ([1, None, 1, 1], r"sample_weight contains NaN or infinity in 1 row\(s\)"),
        ([0, 0, 0, 0], "sample_weight is zero in every row"),
        (0.0, "sample_weight is zero in every row"),
        ([[1], [1], [1], [1]], "sample_weight has 2 dimensions; it must be 1D array or scalar"),
    ],
    ids=str,
)
@some_methods
def test_weights_that_are_no_frequencies_are_refused(method, weights, message):
    with pytest.raises(SampleWeightError, match=message):
        make_encoder(method, "zipcode").fit(FRAMES["polars"], PRICE, sample_weight=weights)


@some_methods
def test_weights_of_another_length_are_refused(method):
    with pytest.raises(LengthMismatchError, match=r"X has 4 row\(s\), sample_weight has 3"):
        make_encoder(method, "zipcode").fit(FRAMES["polars"], PRICE, sample_weight=[1, 1, 1])


@some_methods
@pytest.mark.parametrize("y", [PRICE[:3], list(PRICE[:3]), pl.Series(PRICE[:3]), pd.Series(PRICE[:3])])
def test_a_target_of_another_length_is_refused_even_where_it_is_not_used(method, y):
    with pytest.raises(LengthMismatchError, match=r"X has 4 row\(s\), y has 3"):
        make_encoder(method, "zipcode").fit_transform(FRAMES["polars"], y)


def test_a_target_that_is_one_number_is_refused():
    with pytest.raises(ValueError, match="y"):
        MeansEncoder("zipcode").fit(FRAMES["polars"], 3.0)


@pytest.mark.parametrize(
    "weights",
    [[1, 2, 0, 3], (1, 2, 0, 3), np.array([1, 2, 0, 3]), pl.Series([1, 2, 0, 3]), pd.Series([1, 2, 0, 3])],
    ids=lambda weights: type(weights).__module__,
)
def test_weights_may_come_as_any_sequence(weights):
    found = check_weights(weights, 4)
    assert found.dtype == np.float64
    assert found.tolist() == [1, 2, 0, 3]


def test_one_weight_is_that_of_every_row_and_none_is_none():
    assert check_weights(2, 3).tolist() == [2, 2, 2]
    assert check_weights(None, 3) is None


def test_a_target_need_not_be_given():
    check_length(None, 3)
    check_length([1, 2, 3], 3)
    check_length(pl.Series([1, 2, 3]), 3)


# Tables.


@every_library
@some_methods
def test_a_frame_without_rows_is_refused(library, method):
    with pytest.raises(NoRowsError, match=r"0 sample\(s\) \(shape=\(0, 3\)\).*\nHint: .* a filter may have"):
        make_encoder(method, "zipcode").fit(FRAMES[library][:0], PRICE[:0])
    fitted = make_encoder(method, "zipcode").fit(FRAMES[library], PRICE)
    with pytest.raises(NoRowsError, match=r"0 sample\(s\)"):
        fitted.transform(FRAMES[library][:0])


@some_methods
def test_an_array_without_rows_is_refused(method):
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 2\)\)"):
        make_encoder(method, 0).fit(np.empty((0, 2)), PRICE[:0])


@every_library
@pytest.mark.parametrize("method", ["means", "low_rank", "sparse_low_rank", "mnl"])
def test_a_group_without_a_numeric_covariate_is_refused(library, method):
    with pytest.raises(
        NoCovariateError,
        match=r"X with 1 feature\(s\), none of which.*'zipcode'.*\nHint: pass the whole frame",
    ):
        make_encoder(method, "zipcode").fit(make(library, sqft=None, floors=None))
    text = make(library, sqft=["u", "v", "u", "v"], floors=None)
    with pytest.raises(
        NoCovariateError, match=r"X with 2 feature\(s\), none of which is a numeric.*\nHint: add.*ToNumbers"
    ):
        make_encoder(method, "zipcode").fit(text)


@pytest.mark.parametrize("method", ["means", "low_rank", "sparse_low_rank", "mnl"])
def test_an_array_of_one_column_has_no_covariate(method):
    with pytest.raises(NoCovariateError, match=r"X with 1 feature\(s\)"):
        make_encoder(method, 0).fit(np.array([["a"], ["b"]], dtype=object))


@every_library
@pytest.mark.parametrize("method", ["one_hot", "helmert", "permutation", "fisher"])
def test_methods_that_look_at_no_covariate_need_none(library, method):
    result = make_encoder(method, "zipcode").fit_transform(make(library, sqft=None, floors=None), PRICE)
    assert len(result) == 4


@every_library
@pytest.mark.parametrize("method", ["means", "low_rank", "sparse_low_rank", "mnl"])
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinite_covariates_are_refused_by_name_and_row(library, method, infinity):
    frame = make(library, sqft=[1.0, None, infinity, infinity])
    message = r"Covariate 'sqft' contains infinity: 2 value\(s\), the first in row 2.*\nHint: replace them"
    with pytest.raises(InfiniteValueError, match=message):
        make_encoder(method, "zipcode").fit(frame)


def as_array(column: list[object]) -> np.ndarray:
    return np.array([list("abab"), column], dtype=object).T


def as_pandas(column: list[object]) -> pd.DataFrame:
    return pd.DataFrame({0: list("abab"), 1: pd.Series(column, dtype=object)})


@pytest.mark.parametrize("container", [as_array, as_pandas])
def test_a_signalling_nan_is_null(container):
    found = MeansEncoder(0).fit_transform(container([1, 2, 3, Decimal("sNaN")]))
    expected = MeansEncoder(0).fit_transform(container([1, 2, 3, None]))
    np.testing.assert_array_equal(np.asarray(found, float), np.asarray(expected, float))


@pytest.mark.parametrize("container", [as_array, as_pandas])
@pytest.mark.parametrize("huge", [10**400, -(10**400)], ids=["positive", "negative"])
def test_integers_too_large_for_a_float_count_as_infinite(container, huge):
    expected = "contains infinity: 1 .* the first in row 3. Numbers that are too large for a float count"
    with pytest.raises(InfiniteValueError, match=expected):
        MeansEncoder(0).fit(container([1, 2, 3, huge]))


@pytest.mark.parametrize("odd", [10**400, Decimal("sNaN")], ids=["huge", "signalling"])
def test_a_target_with_such_a_number_is_refused(odd):
    with pytest.raises(TargetError, match=r"\nHint: "):
        make_encoder("random_intercept", 0).fit(
            as_array([1, 2, 3, 4]), np.array([1, 2, 3, odd], dtype=object)
        )


def test_infinities_of_both_signs_are_refused():
    with pytest.raises(InfiniteValueError, match=r"Covariate 'sqft' contains infinity: 2 value\(s\)"):
        MeansEncoder("zipcode").fit(make("polars", sqft=[np.inf, -np.inf, 1.0, 2.0]))


@pytest.mark.parametrize("method", ["means", "low_rank", "sparse_low_rank", "mnl"])
@pytest.mark.parametrize(
    "sqft", [[np.inf] * 4, [np.inf, 1.0, 2.0, np.inf]], ids=["everywhere", "in one level"]
)
def test_a_column_of_infinities_is_refused(method, sqft):
    with pytest.raises(InfiniteValueError, match="Covariate 'sqft' contains infinity"):
        make_encoder(method, "zipcode").fit(make("polars", sqft=sqft))


def test_an_infinite_number_that_is_no_covariate_passes_through():
    frame = make("polars", sqft=[1.0, 2.0, np.inf, 4.0])
    result = MeansEncoder("zipcode", covariates=["floors"]).fit_transform(frame)
    assert result[2, 0] == np.inf


@every_library
@some_methods
def test_transform_without_a_column_is_refused_with_a_near_name(library, method):
    encoder = make_encoder(method, "zipcode").fit(FRAMES[library], PRICE)
    renamed = make(library, sqft=None, sqfeet=HOUSES["sqft"])
    message = "unseen at fit time:\n- sqfeet\n.*yet now missing:\n- sqft\nHint: rename 'sqfeet' to 'sqft'"
    with pytest.raises(ColumnsMismatchError, match=message):
        encoder.transform(renamed)
    with pytest.raises(
        ColumnsMismatchError, match="- zipcode\nHint: pass the columns that fit had, in that order"
    ):
        encoder.transform(make(library, zipcode=None))


@every_library
def test_names_of_columns_do_not_depend_on_scikit_learn(library, monkeypatch):
    """Its older versions know no names of polars' and pyarrow's columns."""
    monkeypatch.setattr("sklearn.utils.validation._get_feature_names", lambda _: None)
    encoder = MeansEncoder("zipcode").fit(FRAMES[library])
    assert encoder.feature_names_in_.tolist() == list(HOUSES)
    assert encoder.n_features_in_ == len(HOUSES)
    with pytest.raises(ColumnsMismatchError, match="must be in the same order"):
        encoder.transform(MAKERS[library](dict(reversed(HOUSES.items()))))


@every_library
def test_transform_of_columns_in_another_order_or_number_is_refused(library):
    encoder = MeansEncoder("zipcode").fit(FRAMES[library])
    backwards = MAKERS[library](dict(reversed(HOUSES.items())))
    with pytest.raises(ValueError, match="must be in the same order"):
        encoder.transform(backwards)
    with pytest.raises(ValueError, match="unseen at fit time:\n- more"):
        encoder.transform(make(library, more=[1, 2, 3, 4]))


def test_an_array_of_another_width_is_refused():
    encoder = MeansEncoder(0).fit(np.arange(6.0).reshape(3, 2))
    with pytest.raises(ValueError, match="X has 3 features, but MeansEncoder is expecting 2"):
        encoder.transform(np.arange(6.0).reshape(2, 3))


def test_a_frame_after_an_array_and_an_array_after_a_frame_warn_about_names():
    rows = np.array(list(zip(*HOUSES.values(), strict=True)), dtype=object)
    expected = MeansEncoder("zipcode").fit_transform(FRAMES["polars"])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        result = MeansEncoder("zipcode").fit(FRAMES["polars"]).transform(rows)
    np.testing.assert_allclose(result, expected)
    with pytest.warns(UserWarning, match="X has feature names, but MeansEncoder was fitted without"):
        result = MeansEncoder(0).fit(rows).transform(FRAMES["polars"])
    np.testing.assert_allclose(result, expected)


def test_levels_of_a_shared_column_that_have_one_name_are_refused():
    X = pd.DataFrame({"g": list("aabb"), "size": [1, "1", "large", "large"]})
    message = r"two columns called 'size=1'\.\nHint: the column 'size' holds numbers and text"
    with pytest.raises(ClashingNamesError, match=message):
        MeansEncoder("g", categorical_covariates="share").fit(X)


def test_columns_that_share_a_name_are_refused():
    twice = pd.DataFrame([["a", 1.0, 2.0]], columns=["zipcode", "sqft", "sqft"])
    with pytest.raises(ColumnNameError, match="'sqft' 2 times"):
        MeansEncoder("zipcode").fit(twice)


def test_a_lazy_frame_is_refused_with_a_hint_where_rows_are_needed():
    with pytest.raises(LazyFrameError, match=r"X is a polars LazyFrame.*\nHint: collect it first"):
        ToNumbers().fit(FRAMES["polars"].lazy())


def test_a_sparse_matrix_is_refused():
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        MeansEncoder(0).fit(sparse.csr_array(np.eye(3)))


def duckdb_relation():
    duckdb = pytest.importorskip("duckdb")
    return duckdb.connect().sql("SELECT * FROM (VALUES ('a', 1.0), ('b', 2.0)) AS houses(zipcode, sqft)")


COLUMN = r"a single column; expected a frame .*\nHint: pass the whole frame, and name the group in it"
OTHER_TABLES = {
    "dict": (
        lambda: HOUSES,
        r"X is a dict, columns by name; .*\nHint: make it a frame, as in pandas.DataFrame",
    ),
    "pandas Series": (lambda: FRAMES["pandas"]["sqft"], f"X is a pandas Series, {COLUMN}"),
    "polars Series": (lambda: FRAMES["polars"]["sqft"], f"X is a polars Series, {COLUMN}"),
    "pyarrow column": (lambda: FRAMES["pyarrow"]["sqft"], f"X is a pyarrow ChunkedArray, {COLUMN}"),
    "DuckDB's .arrow()": (
        lambda: duckdb_relation().arrow(),
        r"RecordBatchReader, a stream of Arrow data; .*\nHint: read it into a table.*: pyarrow.table\(X\)",
    ),
    "record batch": (lambda: FRAMES["pyarrow"].to_batches()[0], r"RecordBatch, a stream .*\n.*pyarrow.table"),
}


@pytest.mark.parametrize("kind", OTHER_TABLES)
def test_columns_in_another_form_than_a_frame_are_refused_with_what_to_do(kind):
    make_other, message = OTHER_TABLES[kind]
    with pytest.raises(OtherTableError, match=message):
        MeansEncoder("zipcode").fit(make_other())


def test_what_the_hints_propose_works():
    batches = duckdb_relation().arrow()
    assert MeansEncoder("zipcode").fit(pa.table(batches)).representations_["zipcode"].n_levels == 2
    assert MeansEncoder("zipcode").fit(duckdb_relation().pl()).representations_["zipcode"].n_levels == 2
    assert MeansEncoder("zipcode").fit(pl.DataFrame(HOUSES)).representations_["zipcode"].n_levels == 3


def test_a_duckdb_relation_holds_no_rows_yet():
    with pytest.raises(LazyFrameError, match=r"DuckDBPyRelation, which holds no rows.*\nHint: call .pl\(\)"):
        ToNumbers().fit(duckdb_relation())


@pytest.mark.parametrize("X", [np.arange(3.0), None, 3.0], ids=str)
def test_what_is_no_table_is_refused(X):
    with pytest.raises(ValueError, match=r"Expected (2D array|a 2-dimensional container)"):
        MeansEncoder(0).fit(X)


NESTED = {
    "pandas dicts": lambda: make("pandas", zipcode=[{"a": 1}, {}, {}, {}]),
    "pandas lists": lambda: make("pandas", zipcode=[[1], [2], [1], [2]]),
    "pandas arrays": lambda: make("pandas", zipcode=[np.arange(2)] * 4),
    "polars lists": lambda: make("polars", zipcode=[[1], [2], [1], [2]]),
    "polars structs": lambda: make("polars", zipcode=[{"a": 1}] * 4),
    "pyarrow lists": lambda: make("pyarrow", zipcode=[[1], [2], [1], [2]]),
    "numpy dicts": lambda: np.array([[{"a": 1}, 1.0], [{}, 2.0]], dtype=object),
    "numpy lists": lambda: pd.DataFrame({"x0": [[1], [2]], "x1": [1.0, 2.0]}).to_numpy(),
}


@pytest.mark.parametrize("kind", NESTED)
def test_values_that_cannot_be_levels_are_refused_by_column(kind):
    with pytest.raises(
        GroupValueError, match=r"Column '(zipcode|x0)' holds .*\nHint: convert the column to text"
    ):
        MeansEncoder(0).fit(NESTED[kind]())


def test_a_list_of_rows_keeps_numbers_next_to_text():
    result = MeansEncoder(0).fit_transform([["a", 1.0], ["b", 2.0], ["a", 3.0]])
    assert result.tolist() == [[1, 2], [2, 2], [3, 2]]


def test_levels_that_are_simply_new_do_not_warn():
    encoder = MeansEncoder("g").fit(pd.DataFrame({"g": ["a", "b"], "x": [1.0, 2.0]}))
    found = encoder.transform(pd.DataFrame({"g": ["c", "d"], "x": [1.0, 2.0]}))
    np.testing.assert_array_equal(found[:, 1], [1.0, 2.0])


@pytest.mark.parametrize("spelling", ["98178.0", " 98178", "098178"])
def test_levels_that_are_spelt_differently_warn(spelling):
    encoder = MeansEncoder("g").fit(pd.DataFrame({"g": ["98178", "98125"], "x": [1.0, 2.0]}))
    with pytest.warns(UnseenLevelsWarning, match="read the column in the same way"):
        encoder.transform(pd.DataFrame({"g": [spelling, "1"], "x": [1.0, 2.0]}))


def test_weights_that_cannot_be_added_up_and_squared_are_refused():
    weights = [1e307, 1.0, 2.0, 1e307]
    with pytest.raises(SampleWeightError, match=r"as large as 1e\+307"):
        MeansEncoder("zipcode", shrinkage="auto").fit(make("polars"), sample_weight=weights)


# The target as the name of a column.


@every_library
def test_the_target_may_be_the_name_of_a_column(library):
    whole, without = make(library, price=PRICE.tolist()), FRAMES[library]
    named = MeansEncoder("zipcode", use_target=True).fit(whole, "price")
    given = MeansEncoder("zipcode", use_target=True).fit(without, PRICE)
    assert named.feature_names_in_.tolist() == ["zipcode", "sqft", "floors"]
    assert named.get_feature_names_out().tolist() == given.get_feature_names_out().tolist()
    np.testing.assert_array_equal(named.transform(whole), given.transform(without))
    np.testing.assert_array_equal(named.transform(without), given.transform(without))
    np.testing.assert_array_equal(named.fit_transform(whole, "price"), given.fit_transform(without, PRICE))


@every_library
def test_a_named_target_is_no_covariate_of_an_encoder_that_does_not_use_it(library):
    encoder = MeansEncoder("zipcode").fit(make(library, price=PRICE.tolist()), "price")
    assert encoder.get_feature_names_out().tolist() == [
        "sqft",
        "floors",
        "zipcode_mean_sqft",
        "zipcode_mean_floors",
    ]


@every_library
def test_an_unknown_target_gets_near_names_as_a_hint(library):
    with pytest.raises(UnknownColumnError, match=r"y names the column 'prize'.*\nHint: did you mean 'price'"):
        MeansEncoder("zipcode").fit(make(library, price=PRICE.tolist()), "prize")


@pytest.mark.parametrize("X", [FRAMES["pandas"].to_numpy(), FRAMES["pandas"].set_axis(range(3), axis=1)])
def test_columns_without_names_cannot_hold_a_named_target(X):
    with pytest.raises(UnnamedColumnsError, match=r"y is the text 'price'.*\nHint: pass a frame"):
        MeansEncoder(0).fit(X, "price")


def test_a_fit_with_values_forgets_the_name_of_an_earlier_target():
    whole = make("polars", price=PRICE.tolist())
    encoder = MeansEncoder("zipcode").fit(whole, "price").fit(FRAMES["polars"], PRICE)
    with pytest.raises(ColumnsMismatchError, match="unseen at fit time"):
        encoder.transform(whole)


@every_library
def test_chunks_and_new_levels_name_their_target_too(library):
    whole = make(library, price=PRICE.tolist())
    by_chunks = MeansEncoder("zipcode", use_target=True, target_type="continuous")
    by_chunks.partial_fit(whole, "price").partial_fit(whole, "price")
    assert by_chunks.moments_["zipcode"].weight.sum() == 8
    later = make(library, zipcode=["new"] * 4, price=PRICE.tolist())
    learnt = by_chunks.learn_levels(later, "price")
    given = by_chunks.learn_levels(make(library, zipcode=["new"] * 4), PRICE)
    np.testing.assert_array_equal(learnt.transform(later), given.transform(later))
    assert by_chunks.drift(whole).share_changed == 0


def test_in_a_pipeline_the_second_step_no_longer_finds_a_named_target():
    steps = make_pipeline(ToNumbers(keep="zipcode"), MeansEncoder("zipcode"))
    with pytest.raises(
        UnknownColumnError, match="In a Pipeline, every step gets the same y: pass the values"
    ):
        steps.fit(make("pandas", price=PRICE.tolist()), "price")


def test_a_saved_encoder_ignores_the_column_of_its_target(tmp_path):
    whole = make("polars", price=PRICE.tolist())
    encoder = MeansEncoder("zipcode").fit(whole, "price")
    encoder.save(tmp_path / "zip.sufrep")
    loaded = load(tmp_path / "zip.sufrep")
    np.testing.assert_array_equal(loaded.transform(whole), encoder.transform(FRAMES["polars"]))
    assert isinstance(loaded.table(), pl.DataFrame)
