"""What the errors of the package are, and what they say."""

from __future__ import annotations

import builtins
import inspect
import pickle
import re
from typing import Any

import pytest

from sufrep import errors
from sufrep.errors import (
    GroupValueError,
    InfiniteValueError,
    MissingColumnsError,
    SufrepError,
    UnknownColumnError,
    UnknownGroupError,
    UnknownMethodError,
    UnseenLevelError,
)

CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, SufrepError) and kind is not SufrepError
]
# The others are given their message where they are raised.
SPEAKING = [kind for kind in CLASSES if "__init__" in vars(kind)]
# Values for the parameters of an error, by their annotation.
EXAMPLES: dict[str, Any] = {
    "str": "some text",
    "int": 3,
    "str | int": "zip",
    "object": 1j,
    "Sequence[str]": ["zip", "city"],
}


def example(kind: type[SufrepError]) -> SufrepError:
    parameters = inspect.signature(kind.__init__).parameters.values()
    return kind(*(EXAMPLES[parameter.annotation] for parameter in list(parameters)[1:]))


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_is_ours_and_a_built_in_one(kind):
    fitting = [base for base in kind.__mro__ if base.__module__ == "builtins" and base is not Exception]
    assert any(issubclass(base, Exception) for base in fitting), kind.__mro__
    assert all(hasattr(builtins, base.__name__) for base in fitting)
    assert kind.__doc__


@pytest.mark.parametrize("kind", SPEAKING)
def test_every_message_says_what_and_then_hints(kind):
    what, _, hint = str(example(kind)).partition("\nHint: ")
    assert what.strip()
    assert hint.strip()
    assert "Hint:" not in hint


@pytest.mark.parametrize("kind", SPEAKING)
def test_every_error_is_caught_as_ours_with_its_message(kind):
    error = example(kind)
    with pytest.raises(SufrepError, match=re.escape(str(error))):
        raise error


def test_the_public_base_is_an_exception_and_no_more():
    assert SufrepError.__bases__ == (Exception,)


@pytest.mark.parametrize(("column", "near"), [("zipcod", "'zipcode'"), ("pric", "'price'")])
def test_an_unknown_column_suggests_those_called_nearly_so(column, near):
    text = str(UnknownColumnError("group", column, ["zipcode", "price", "sqft"]))
    assert text.startswith(f"group names the column {column!r}")
    assert text.endswith(f"Hint: did you mean {near}?")


def test_an_unknown_column_unlike_any_other_lists_what_there_is():
    text = str(UnknownColumnError("group", "hospital", ["x0", "x1"]))
    assert text.endswith("Hint: the columns are 'x0', 'x1'.")


def test_a_long_list_of_columns_is_cut():
    text = str(UnknownColumnError("group", "hospital", [f"x{j}" for j in range(11)]))
    assert "'x9', …." in text
    assert "x10" not in text


def test_an_unknown_position_tells_the_range():
    assert "positions run from 0 to 1;" in str(UnknownColumnError("covariates", 5, ["zip", "price"]))


def test_missing_columns_are_listed_with_what_they_may_be_called_now():
    text = str(MissingColumnsError(["zipcode", "sqft"], ["zip_code", "price"]))
    assert "\n- zipcode\n- sqft\n" in text
    assert text.endswith("Hint: rename 'zip_code' for 'zipcode'.")


def test_missing_columns_unlike_any_other_suggest_no_name():
    assert "rename" not in str(MissingColumnsError(["zipcode"], ["price"]))


def test_an_unknown_method_suggests_the_nearest_and_lists_all():
    text = str(UnknownMethodError("mean", ["means", "low_rank"]))
    assert "did you mean 'means'?" in text
    assert text.endswith("The methods are means, low_rank.")


def test_an_unknown_method_unlike_any_other_lists_all():
    text = str(UnknownMethodError("hashing", ["means", "low_rank"]))
    assert "did you mean" not in text
    assert text.endswith("Hint: The methods are means, low_rank.")


def test_an_unknown_group_prints_without_the_quotes_of_a_key_error():
    error = UnknownGroupError("zip", [])
    assert isinstance(error, KeyError)
    assert str(error).startswith("No group called 'zip' was encoded; there are: (none).\nHint: ")


@pytest.mark.parametrize(("n_unseen", "shown"), [(2, "l0, l1."), (5, "l0, l1, l2, l3, l4."), (7, "l4, ….")])
def test_unseen_levels_are_counted_and_the_first_five_shown(n_unseen, shown):
    text = str(UnseenLevelError("zip", [f"l{j}" for j in range(n_unseen)], 9))
    assert f"{n_unseen} unseen level(s)" in text
    assert shown in text


def test_an_infinite_value_is_told_by_column_number_and_row():
    text = str(InfiniteValueError("price", 2, 17))
    assert "'price' contains infinity: 2 value(s), the first in row 17." in text


def test_a_value_that_is_no_level_is_told_by_its_type():
    assert "holds a list;" in str(GroupValueError("zip", [1]))


@pytest.mark.parametrize("kind", SPEAKING)
def test_errors_travel_between_processes(kind):
    """joblib's workers pickle what they raise."""
    error = example(kind)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
