"""Text and dates as numbers, next to columns that are left as they are."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sufrep import MeansEncoder, ToNumbers, errors

COLUMNS: dict[str, list[Any]] = {
    "zip": ["01234", "98178", "01234"],
    "sqft": [1180.0, None, 770.0],
    "view": ["sea", None, "<b>🏔</b>"],
    "sold": [date(2014, 10, 13), None, date(2015, 2, 25)],
    "waterfront": [True, False, True],
}
NAMES = ["zip", "sqft", "waterfront", "view_<b>🏔</b>", "view_sea", "view_null"]
NAMES += ["sold_days", "sold_month", "sold_weekday"]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@parametrize_with_checks([ToNumbers()])
def test_it_is_a_transformer_as_scikit_learn_wants_it(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it, one check of array input is skipped
    check(estimator)


@pytest.mark.parametrize("library", FRAMES)
def test_a_frame_of_any_library_gives_the_same_numbers(library):
    X = FRAMES[library](COLUMNS)
    found = ToNumbers(keep="zip").fit_transform(X)
    assert isinstance(found, pd.DataFrame if library == "pandas" else pl.DataFrame)
    assert list(found.columns) == NAMES
    values = pd.DataFrame({name: found[name].to_list() for name in found.columns})
    assert values["zip"].tolist() == COLUMNS["zip"]
    np.testing.assert_array_equal(values["sqft"], [1180, np.nan, 770])
    np.testing.assert_array_equal(values[NAMES[3:6]].to_numpy(float), [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    expected = [[16356, 10, 0], [np.nan] * 3, [16491, 2, 2]]
    np.testing.assert_array_equal(values[NAMES[6:]].to_numpy(float), expected)


def test_an_array_of_numbers_passes_through():
    X = np.arange(6.0).reshape(3, 2)
    transformer = ToNumbers(keep=0).fit(X)
    np.testing.assert_array_equal(transformer.transform(X), X)
    assert transformer.get_feature_names_out().tolist() == ["x0", "x1"]
    assert transformer.kinds_ == ["kept", "numeric"]


@pytest.mark.parametrize(
    "texts",
    [
        ["2014-10-13", "2015-02-25"],
        ["20141013T000000", "20150225T000000"],
        ["2014-10-13 00:00", "2015-W09-3"],
    ],
)
def test_dates_may_be_text(texts):
    found = ToNumbers().fit_transform(pd.DataFrame({"sold": texts}))
    np.testing.assert_array_equal(found, [[16356, 10, 0], [16491, 2, 2]])


def test_hours_are_parts_of_days():
    times = [datetime(1970, 1, 2, 6), datetime(1970, 1, 1, 12)]
    found = ToNumbers().fit_transform(pl.DataFrame({"t": times}))
    assert found["t_days"].to_list() == [1.25, 0.5]


BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")


@pytest.mark.parametrize("zone", [UTC, BERLIN, NEW_YORK])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "text"])
def test_a_time_with_a_zone_is_a_point_in_time(library, zone):
    times = [datetime(2024, 2, 29, 23, 30, tzinfo=UTC), datetime(2024, 7, 1, 1, 0, tzinfo=UTC)]
    local = [time.astimezone(zone) for time in times]
    makers = {
        "pandas": lambda: pd.DataFrame({"t": pd.DatetimeIndex(local)}),
        "polars": lambda: pl.DataFrame({"t": pl.Series(times).dt.convert_time_zone(str(zone))}),
        "pyarrow": lambda: pa.table({"t": pa.array(local, pa.timestamp("us", str(zone)))}),
        "text": lambda: pd.DataFrame({"t": [time.isoformat() for time in local]}),
    }
    found = ToNumbers().set_output(transform="pandas").fit_transform(makers[library]())
    expected = [[time.timestamp() / 86_400, time.month, time.weekday()] for time in local]
    np.testing.assert_allclose(found.to_numpy().astype(float), expected, rtol=1e-15)


def test_times_with_and_without_a_zone_are_not_mixed():
    mixed = pd.DataFrame({"t": ["2024-02-29T23:30:00+01:00", "2024-02-29T23:30:00"]})
    with pytest.raises(errors.TimeZoneError, match="'t' holds times with a time zone and others without"):
        ToNumbers().fit(mixed)
    fitted = ToNumbers().fit(mixed[:1])
    with pytest.raises(errors.TimeZoneError, match="without a time zone, but fit saw times with a time zone"):
        fitted.transform(mixed[1:])


def test_digits_alone_are_no_date():
    # 20141013 may be one, 98178 is none, and a column of zip codes must not change with its length.
    transformer = ToNumbers().fit(pd.DataFrame({"code": ["20141013", "20150225"]}))
    assert transformer.kinds_ == ["text"]


def test_text_of_many_levels_wants_an_encoder_of_its_own():
    X = pd.DataFrame({"street": [f"street {j}" for j in range(31)], "size": 1.0})
    transformer = ToNumbers().fit(X)
    assert transformer.dropped_ == ["street"]
    assert transformer.get_feature_names_out().tolist() == ["size"]
    assert ToNumbers(max_levels=31).fit(X).dropped_ == []


def test_what_is_neither_number_text_nor_date_is_dropped():
    X = pl.DataFrame({"empty": pl.Series([None, None], dtype=pl.String), "size": [1, 2]})
    assert ToNumbers().fit(X).dropped_ == ["empty"]


def test_values_that_cannot_be_levels_are_dropped():
    X = pl.DataFrame({"tags": [["a"], ["b", "c"]], "size": [1, 2]})
    assert ToNumbers().fit(X).dropped_ == ["tags"]


def test_columns_that_pandas_names_by_numbers_get_names():
    X = pd.DataFrame({0: ["sea", "hill"], 1: [1.0, 2.0], 2: ["01", "02"]})
    found = ToNumbers(keep=2).fit_transform(X)
    assert list(found.columns) == ["x1", "x2", "x0_hill", "x0_sea"]
    assert found["x2"].tolist() == ["01", "02"]


def test_a_level_never_seen_is_none_of_the_known_ones():
    transformer = ToNumbers().fit(pd.DataFrame({"view": ["sea", "hill"]}))
    np.testing.assert_array_equal(transformer.transform(pd.DataFrame({"view": ["moon", None]})), 0)


def test_a_number_that_became_text_is_refused():
    transformer = ToNumbers().fit(pd.DataFrame({"size": [1.0, 2.0]}))
    with pytest.raises(errors.NotNumericError, match="'size' holds"):
        transformer.transform(pd.DataFrame({"size": ["big", "small"]}))
    nulls = transformer.transform(pl.DataFrame({"size": pl.Series([None, None], dtype=pl.String)}))
    assert nulls.shape == (2, 1)


def test_a_date_that_became_text_is_refused():
    transformer = ToNumbers().fit(pd.DataFrame({"sold": ["2014-10-13"]}))
    with pytest.raises(errors.NotNumericError, match="'sold' holds text that is no date"):
        transformer.transform(pd.DataFrame({"sold": ["next week"]}))


def test_names_that_clash_are_refused():
    X = pd.DataFrame({"view": ["sea", "hill"], "view_sea": [1.0, 2.0]})
    with pytest.raises(errors.ClashingNamesError, match="view_sea"):
        ToNumbers().fit(X)


def test_an_unknown_column_is_named_with_its_neighbours():
    with pytest.raises(errors.UnknownColumnError, match=r"keep names the column 'zap'.*\n.*'zip'"):
        ToNumbers(keep=["zap"]).fit(pd.DataFrame(COLUMNS))


def test_it_works_before_an_encoder_and_can_be_pickled():
    X, y = pd.DataFrame(COLUMNS), [1.0, 2.0, 3.0]
    model = make_pipeline(ToNumbers(keep=["zip"]), MeansEncoder("zip"), HistGradientBoostingRegressor())
    model = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert "zip_mean_sold_days" in model[:-1].get_feature_names_out()


def test_set_output_is_respected():
    transformer = ToNumbers(keep="zip").set_output(transform="polars")
    assert isinstance(transformer.fit_transform(pd.DataFrame(COLUMNS)), pl.DataFrame)
