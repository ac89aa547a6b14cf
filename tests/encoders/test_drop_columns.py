"""Columns left out, as a step that fits where an encoder would."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from sufrep import DropColumns
from sufrep.errors import ColumnsMismatchError, UnknownColumnError

ROWS = pd.DataFrame(
    {"zip": ["01", "02", None], "sqft": [1.0, np.nan, 3.0], "state": list("aab"), "rooms": [1, 2, 3]}
)


@pytest.mark.parametrize(
    "library",
    [lambda X: X, pl.from_pandas, pa.Table.from_pandas, lambda X: X.to_numpy(object)],
    ids=["pandas", "polars", "pyarrow", "array"],
)
def test_the_other_columns_pass_through_as_numbers(library):
    step = DropColumns([0, 2]).fit(library(ROWS))
    np.testing.assert_array_equal(step.transform(library(ROWS)).astype(float), ROWS[["sqft", "rooms"]])
    assert step.kept_.tolist() == [False, True, False, True]


@pytest.mark.parametrize("columns", ["zip", ["zip"], ("zip",), 0, np.int64(0), [-4]])
def test_columns_are_named_or_counted(columns):
    step = DropColumns(columns).fit(ROWS)
    assert step.get_feature_names_out().tolist() == ["sqft", "state", "rooms"]


def test_frames_on_request():
    found = DropColumns(["zip", "state"]).set_output(transform="polars").fit_transform(ROWS)
    assert found.columns == ["sqft", "rooms"]


def test_nothing_may_be_left():
    assert DropColumns(["zip"]).fit_transform(ROWS[["zip"]]).shape == (3, 0)


def test_unknown_columns_and_other_tables_are_refused():
    with pytest.raises(UnknownColumnError, match=r"columns.*'zipcode'"):
        DropColumns("zipcode").fit(ROWS)
    with pytest.raises(ColumnsMismatchError, match="sqft"):
        DropColumns("zip").fit(ROWS).transform(ROWS.rename(columns={"sqft": "size"}))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        DropColumns("zip").transform(ROWS)
