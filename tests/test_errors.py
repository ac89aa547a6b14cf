"""Errors: their bases and messages. Warnings: the line that they point at."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from sufrep import MeansEncoder, errors
from sufrep.errors import (
    ColumnsMismatchError,
    GroupValueError,
    InfiniteValueError,
    LazyLimitError,
    LazyOutputError,
    LazyWords,
    NoGroupWarning,
    SufrepError,
    TableColumnError,
    UnknownColumnError,
    UnknownGroupError,
    UnknownMethodError,
    UnseenLevelError,
    UnseenLevelsWarning,
)

CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, SufrepError) and kind not in (SufrepError, LazyLimitError)  # bases of errors
]
# The others get their message where they are raised.
WITH_MESSAGE = [kind for kind in CLASSES if "__init__" in vars(kind)]
# Values for the parameters of an error, by their annotation.
EXAMPLES: dict[str, Any] = {"str": "some text", "int": 3, "object": 1j, "Sequence[str]": ["zip", "city"]}
EXAMPLES |= {"Sequence[object]": ["zip", 3], "int | None": 3}


def example(kind: type[SufrepError]) -> SufrepError:
    parameters = inspect.signature(kind.__init__).parameters.values()
    return kind(*(EXAMPLES[parameter.annotation] for parameter in list(parameters)[1:]))


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_is_also_a_built_in_error(kind):
    built_in = [base for base in kind.__mro__ if base.__module__ == "builtins"]
    assert set(built_in) - {Exception, BaseException, object}


@pytest.mark.parametrize("kind", WITH_MESSAGE)
def test_every_message_ends_with_one_hint(kind):
    found, _, hint = str(example(kind)).partition("\nHint: ")
    assert found.strip()
    assert hint.strip()
    assert "Hint:" not in hint


@pytest.mark.parametrize("kind", WITH_MESSAGE)
def test_errors_can_be_sent_between_processes(kind):
    """joblib's workers pickle the errors that they raise."""
    error = example(kind)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)


@pytest.mark.parametrize(("column", "near"), [("zipcod", "'zipcode'"), ("pric", "'price'")])
def test_an_unknown_column_suggests_similar_names(column, near):
    text = str(UnknownColumnError("group", column, ["zipcode", "price", "sqft"]))
    assert text.startswith(f"group names the column {column!r}")
    assert text.endswith(f"Hint: did you mean {near}?")


def test_an_unknown_column_without_similar_names_lists_the_columns():
    text = str(UnknownColumnError("group", "hospital", ["x0", "x1"]))
    assert text.endswith("Hint: the columns are 'x0', 'x1'.")


def test_a_long_list_of_columns_is_cut():
    text = str(UnknownColumnError("group", "hospital", [f"x{j}" for j in range(11)]))
    assert "'x9' and 1 more." in text
    assert "x10" not in text


def test_an_unknown_position_gives_the_valid_range():
    assert "positions run from 0 to 1;" in str(UnknownColumnError("covariates", 5, ["zip", "price"]))


def test_a_list_in_the_place_of_a_column_suggests_a_tuple():
    text = str(UnknownColumnError("group", ["store", "brand"], ["store", "brand"]))
    assert text.endswith("Hint: write columns to be crossed as a tuple, as in [('store', 'brand')].")


def test_missing_columns_are_listed_with_similar_names():
    text = str(ColumnsMismatchError(["zipcode", "sqft"], ["zip_code", "price"]))
    assert "\n- sqft\n- zipcode\n" in text
    assert text.endswith("Hint: rename 'zip_code' to 'zipcode'.")
    assert "rename" not in str(ColumnsMismatchError(["zipcode"], ["price"]))


def test_a_missing_column_of_a_file_suggests_similar_names():
    text = str(TableColumnError("houses.csv", ["zipcod"], ["zipcode", "price"]))
    assert text == "'houses.csv' has no column 'zipcod'.\nHint: did you mean 'zipcode' for 'zipcod'?"


def test_an_unknown_method_suggests_the_most_similar_and_lists_all():
    text = str(UnknownMethodError("mean", ["means", "low_rank"]))
    assert "did you mean 'means'?" in text
    assert text.endswith("The methods are means, low_rank.")
    assert "did you mean" not in str(UnknownMethodError("hashing", ["means", "low_rank"]))


def test_an_unknown_group_prints_without_the_quotes_of_a_key_error():
    error = UnknownGroupError("zip", [])
    assert isinstance(error, KeyError)
    assert str(error).startswith("No group called 'zip' was encoded; there are: (none).\nHint: ")


@pytest.mark.parametrize(("n_unseen", "shown"), [(2, "l0, l1."), (5, "l0, l1, l2, l3, l4."), (7, "l4, ….")])
def test_unseen_levels_are_counted_and_the_first_five_shown(n_unseen, shown):
    text = str(UnseenLevelError("zip", [f"l{j}" for j in range(n_unseen)], 9))
    assert f"{n_unseen} unseen level(s)" in text
    assert shown in text


def test_an_infinite_value_is_reported_with_its_column_and_row():
    text = str(InfiniteValueError("price", 2, 17))
    assert "'price' contains infinity: 2 value(s), the first in row 17." in text


def test_a_value_that_cannot_be_a_level_is_reported_with_its_type():
    assert "holds a list;" in str(GroupValueError("zip", [1]))


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "in a pipeline"])
def test_a_warning_points_at_the_line_of_the_user(method, wrapped):
    encoder = make_pipeline(MeansEncoder()) if wrapped else MeansEncoder()
    with pytest.warns(NoGroupWarning, match="X has none") as caught:
        getattr(encoder, method)(pd.DataFrame({"a": [1.0, 2.0]}))
    assert caught[0].filename == __file__


def test_a_warning_of_transform_points_at_the_line_of_the_user():
    encoder = MeansEncoder("a").fit(pd.DataFrame({"a": ["1", "2"], "x": np.arange(2.0)}))
    with pytest.warns(UnseenLevelsWarning, match="of type int") as caught:
        encoder.transform(pd.DataFrame({"a": [1, 2], "x": np.arange(2.0)}))
    assert caught[0].filename == __file__


def test_limits_of_lazy_frames_can_be_said_in_other_words():
    error = pickle.loads(pickle.dumps(LazyOutputError.of_columns(1_100, 1_000)))
    assert (
        str(error)
        == error.worded(LazyWords())
        == (
            "The encoding has 1,100 new columns; on a lazy frame it has at most 1,000.\n"
            "Hint: choose an encoder with fewer columns, such as LowRankEncoder, or collect the frame first."
        )
    )
    other = LazyWords(of_frame="of a folder", collect="name a file", narrow="--method low_rank")
    assert error.worded(other) == (
        "The encoding has 1,100 new columns; of a folder it has at most 1,000.\n"
        "Hint: choose an encoder with fewer columns, such as --method low_rank, or name a file first."
    )
