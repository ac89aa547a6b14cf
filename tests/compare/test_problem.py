"""The user's table: any library, any way to name the group, and what the reader should know of it."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sufrep._compare._problem import read_problem
from sufrep.errors import (
    ColumnNameError,
    EmptyGroupError,
    IdColumnWarning,
    InvalidParameterError,
    LazyFrameError,
    LengthMismatchError,
    NoRowsError,
    OneLevelError,
    TargetError,
    UnknownColumnError,
)

FRAMES = {
    "pandas": lambda X: X,
    "polars": pl.from_pandas,
    "pyarrow": lambda X: pa.Table.from_pandas(X, preserve_index=False),
    "array": lambda X: X.to_numpy(object),
    "lists": lambda X: X.to_numpy(object).tolist(),
}


def read(X: Any, y: Any, group: Any = "town", task: str = "auto") -> Any:
    return read_problem(X, y, group, task)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_table_of_any_library_is_the_same_problem(rows, kind):
    X, y = rows()
    problem = read(FRAMES[kind](X), y, group=0)
    assert problem.levels.tolist() == list("abcdef")
    assert problem.level_names() == list("abcdef")
    np.testing.assert_array_equal(problem.codes, X["town"].map("abcdef".index))
    np.testing.assert_array_equal(problem.counts, np.bincount(problem.codes))
    assert problem.group_name == ("x0" if kind in ("array", "lists") else "town")
    assert (problem.task, problem.target_type, problem.target_name) == ("regression", "continuous", "price")


def test_levels_may_be_numbers_of_an_array():
    problem = read(np.array([[7, 0.5], [8, 1.5], [7, 2.5]]), [1.0, 2.5, 3.0], group=0)
    assert problem.levels.tolist() == [7.0, 8.0]


@pytest.mark.parametrize(
    ("group", "name", "columns"),
    [
        ("town", "town", ["town"]),
        (2, "town", ["town"]),
        (-3, "town", ["town"]),
        (["town"], "town", ["town"]),
        (["view", "town"], "town", ["view", "town"]),
        (("view", "town"), "view:town", ["view", "town"]),
        (["town", ("town", "view")], "town:view", ["view", "town"]),
    ],
)
def test_a_group_goes_by_name_by_position_crossed_or_with_others(mixed, group, name, columns):
    X, y = mixed
    problem = read(X, y, group)
    assert (problem.group_name, problem.columns) == (name, columns)
    assert problem.behind_numbers() is problem


@pytest.mark.parametrize("group", [2, ("view", "town"), [("view", "town"), "town"]])
def test_groups_without_names_are_found_where_they_stand_behind_the_numbers(mixed, group):
    X, y = mixed
    positions = {"view": 0, "town": 2}

    def numbered(part: Any) -> Any:
        if isinstance(part, (list, tuple)):
            return type(part)(numbered(inner) for inner in part)
        return positions.get(part, part)

    problem = read(X.to_numpy(object), y, numbered(group))
    # The date becomes numbers at the end; the view does so too, unless it is part of a group.
    moved = {0: 0, 2: 1} if group != 2 else {2: 0}
    assert problem.moved == moved
    assert problem.behind_numbers().columns == list(moved.values())
    assert problem.columns == list(moved)


def test_the_one_text_column_is_the_group_if_none_is_named(rows):
    X, y = rows()
    assert read(X, y, None).group == "town"


def test_without_a_name_there_must_be_exactly_one_text_column(mixed):
    X, y = mixed
    with pytest.raises(InvalidParameterError, match=r"is None.\n.*text columns of X are 'view', 'sold'"):
        read(X, y, None)
    with pytest.raises(InvalidParameterError, match="X has no text"):
        read(X[["size", "age"]], y, None)


@pytest.mark.parametrize(
    ("group", "error", "message"),
    [
        ("twon", UnknownColumnError, "'twon', which X does not have.\nHint: did you mean 'town'"),
        (("town", "sise"), UnknownColumnError, "did you mean 'size'"),
        (7, UnknownColumnError, "positions run from 0 to 2"),
        ([["town", "age"]], UnknownColumnError, "as a tuple"),
        ([], EmptyGroupError, "names no column"),
    ],
)
def test_groups_that_are_not_there_are_told_with_a_hint(rows, group, error, message):
    with pytest.raises(error, match=message):
        read(*rows(), group)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X: X.assign(town="a"), OneLevelError, "'town' has the one level a in every row"),
        (lambda X: X.assign(town=None), OneLevelError, "'town' has the one level missing in every row"),
        (lambda X: X[:1], LengthMismatchError, "X has 1 row.*y has 120"),
        (lambda X: pl.from_pandas(X).lazy(), LazyFrameError, "holds no rows yet"),
        (lambda X: X.set_axis(["town", "x", "x"], axis=1), ColumnNameError, "'x' 2 times"),
        (lambda X: X.assign(price=2.0), None, ""),
    ],
)
def test_tables_that_cannot_be_compared_on_are_told(rows, change, error, message):
    X, y = rows()
    if error is None:
        assert read(change(X), y).target_name == "price"
        return
    with pytest.raises(error, match=message):
        read(change(X), y)


def test_a_table_without_rows_is_told(rows):
    X, y = rows()
    with pytest.raises(NoRowsError, match="0 sample"):
        read(X[:0], y[:0])


@pytest.mark.parametrize("y", [np.arange(60) / 7, np.array(["a", "b", "c"] * 20)])
def test_the_target_must_not_stand_in_the_table(y):
    X = pd.DataFrame({"town": list("abcdef") * 10, "price": y})
    with pytest.raises(TargetError, match=r"column 'price', from which.*\nHint: leave it out, as in X\.drop"):
        read(X, X["price"])


def test_an_unknown_task_is_told(rows):
    with pytest.raises(InvalidParameterError, match=r"task is 'classes'.*\n.*'auto' or one of regression"):
        read(*rows(), task="classes")


def test_a_level_in_every_row_looks_like_an_identifier(rows):
    X, y = rows()
    with pytest.warns(IdColumnWarning, match=r"'town' has a level of its own in every row.*\nHint: name"):
        problem = read(X.assign(town=range(len(X))), y)
    assert "looks like an identifier" in problem.notes[0]


def test_a_level_that_says_the_target_is_noted(rows):
    X, _ = rows()
    codes = X["town"].map("abcdef".index)
    problem = read(X, codes / 7)
    assert problem.notes == (
        "Each level of 'town' has a value of the target of its own, so that who knows the level knows the "
        "target; folds='grouped' tests levels that are new.",
    )
    assert read(X, codes // 2 / 7).notes == ()


def test_columns_that_are_left_out_are_named(rows):
    X, y = rows()
    X = pl.from_pandas(X).with_columns(
        pl.Series("note", [f"note {i}" for i in range(len(y))]),
        pl.Series("tags", [[1, 2]] * len(y)),
        **{f"text {j}": pl.lit(None, dtype=pl.String) for j in range(9)},
    )
    problem = read(X, y)
    listed = "note, tags, text 0, text 1, text 2, text 3, text 4, text 5 and 3 more."
    assert listed in problem.notes[0]
    assert not problem.plain


def test_dates_nulls_and_two_hundred_columns_are_no_trouble(rows):
    X, y = rows()
    numbers = pd.DataFrame({f"c{j}": np.full(len(X), float(j)) for j in range(200)})
    wide = pd.concat([X.assign(sold=date(2020, 1, 1), nothing=np.nan), numbers], axis=1)
    wide["town"] = wide["town"].where(wide["town"] != "a", None)
    problem = read(wide, y)
    assert problem.level_names() == [*"bcdef", "missing"]
    assert not problem.plain
    assert read(wide.drop(columns="sold"), y).plain


def test_columns_may_be_named_by_numbers_in_pandas(mixed):
    X, y = mixed
    problem = read(X.set_axis(range(5), axis=1), y, 2)
    assert (problem.group, problem.moved, problem.group_name) == (2, {2: 0}, "x2")
