"""Each loader's preparation on a tiny file, and then on the real files where they are available."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from sufrep.datasets import (
    DATASETS,
    Dataset,
    _loaders,
    load_ames,
    load_county_murders,
    load_dataset,
    load_insteval,
    load_insteval_sigrist,
    load_king_county,
    load_midwest_survey,
    load_movielens,
    load_nycflights,
    load_open_payments,
    load_orange_juice,
    load_pakistan,
    load_published_insteval,
    load_published_wages,
    load_videogame_sales,
    load_wages,
)
from sufrep.datasets._classes import _COMPANY, _OWN_NAME, _PAYMENT_COVARIATES
from sufrep.errors import DataContentError, DataNotFoundError, InvalidParameterError

AMES = "Id,MSSubClass,LotFrontage,Alley,Neighborhood,GarageYrBlt,GarageQual,PoolQC,SalePrice"
AMES_ROWS = [
    "1,60,65,NA,CollgCr,2003,TA,NA,208500",
    "2,20,,Pave,Veenker,1976,TA,Ex,181500",
    "3,60,68,Grvl,CollgCr,2001,NA,NA,223500",
]
FULL = "Order,PID,Alley,Neighborhood,Garage_Yr_Blt,Garage_Qual,Pool_QC,SalePrice"
FULL_ROWS = ["1,0526301100,,Blueste,1960.0,TA,,215000", "2,0526350040,Pave,Greens,1961.0,TA,,105000"]
KING = ["id", "date", "price", *_loaders._KING_COUNTY_COVARIATES[:13], "zipcode"]
KING += _loaders._KING_COUNTY_COVARIATES[13:]
PAKISTAN = ["Year", "City", *_loaders._PAKISTAN_COVARIATES, "Education score"]
JUICE: dict[str, Any] = {
    "store": [2, 2, 5],
    "brand": [1, 3, 1],
    "week": [40, 46, 47],
    "logmove": [9.5, 8.25, 7.0],
    "price1": [0.06, 0.05, 0.04],
    "profit": [37.0, 30.1, 30.0],
    "feat": [0.0, 1.0, 0.5],
    "store_brand": ["2_1", "2_3", "5_1"],
}
FLIGHTS: dict[str, Any] = {
    "arr_delay": [math.e**2 - 1, 0.0, 1 - math.e],
    "delayed15": [0, 1, 0],
    "tailnum": ["N14228", "N24211", "N14228"],
    "dest": ["IAH", "MIA", "IAH"],
    "carrier_flight": ["UA1545", "AA1141", "UA1"],
    "carrier": ["UA", "AA", "UA"],
    "origin": ["b", "B", "a"],
    "manufacturer": ["BOEING", None, "AIRBUS"],
    "plane_model": [None, "747", "737"],
    "month": [1, 2, 12],
    "temp": [39.02, None, 50.0],
    "seats": [149, None, 178],
}
MURDERS = (
    "arrests,countyid,density,popul,rpcpersinc,year,murders,murdrate,arrestrate,statefips,countyfips,"
    "execs,lpopul,execrate"
)
MURDERS_ROWS = [
    "2,1001,54.05,32216,8780.8,1980,2,0,0.6,1,1,0,10.4,0",
    ",56045,53.66,31984,NA,1981,1,1.718281828459045,,56,45,1,10.3,0.1",
]
INSTEVAL = "s,d,studage,lectage,service,dept,y"
INSTEVAL_ROWS = ["1,1002,2,3,0,4,5", "9,0050,6,1,1,15,2"]
PAYMENTS = ",".join([_COMPANY, *_PAYMENT_COVARIATES, "status"])
PAYMENTS_ROWS = [
    '"AbbVie, Inc.",No,,Elagolix,Surgery,disallowed',
    "3M,Yes,Tape,,,allowed",
    "3M,No,Bed,Ant,A,allowed",
]
SURVEY = f"RespondentID,{_OWN_NAME},Iowa,Age,In_what_ZIP_code_is_your_home_located,Census_Region"
SURVEY_ROWS = [
    "3126807211.0,Southern,No,18-29,74070,West",
    "1.0,Mid,Yes,> 60,44106,East",
    "2.0,Mid,,18-29,1,North",
]
GAMES = "Rank,Name,Platform,Year,Genre,Publisher,NA_Sales,Global_Sales"
GAMES_ROWS = ["1,Wii Sports,Wii,2006,Sports,Nintendo,41.49,82.74", "2,2600,NES,,Puzzle,,1,1"]
FILMS = "userId,movieId,rating,timestamp,title,genres"
FILMS_ROWS = [
    "1,07,4.0,964982703,Toy Story (1995),Comedy|Fantasy",
    '12,1,0.5,964981247,"Notes, from (1996) a Film",Drama',
    "1,3,5,964981247,Death Note: Desu nôto (2006–2007),Drama",
]
WAGES = "grade,age,ln_wage,idcode,race_2,t"
WAGES_ROWS = [f"12,{18 + i},{i / 4},{i // 2},0,{i - 8}" for i in range(10)]
# Row i is tested in fold i mod 5; rows are counted from 1.
WAGES_FOLDS = [[i + 1 for i in range(10) if i % 5 != fold] for fold in range(5)]


def write(folder: Path, file: str, lines: Iterable[str]) -> Path:
    (folder / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_rows(folder: Path, file: str, names: Sequence[str], rows: Iterable[dict[str, str]]) -> Path:
    """Rows of ones, except for the values that are given."""
    with (folder / file).open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, names, restval="1")
        writer.writeheader()
        writer.writerows(rows)
    return folder


def king_county(folder: Path, *rows: dict[str, str], names: Sequence[str] = KING) -> Path:
    return write_rows(folder, "king_county.csv", names, rows or ({},))


def pakistan(folder: Path, *rows: dict[str, str]) -> Path:
    return write_rows(folder, "pakistan.csv", PAKISTAN, rows or ({},))


def ames(folder: Path, header: str = AMES, rows: Iterable[str] = AMES_ROWS) -> Path:
    return write(folder, "ames_kaggle.csv", [header, *rows])


def ames_full(folder: Path, rows: Iterable[str] = FULL_ROWS) -> Path:
    return write(folder, "ames_full.csv", [FULL, *rows])


def parquet(folder: Path, file: str, columns: dict[str, Any], **changed: Any) -> Path:
    """Write columns, some of them changed, or left out where the change is None."""
    kept = {name: values for name, values in {**columns, **changed}.items() if values is not None}
    pl.DataFrame(kept).write_parquet(folder / file)
    return folder


def juice(folder: Path, **changed: Any) -> Path:
    return parquet(folder, "orange_juice.parquet", JUICE, **changed)


def flights(folder: Path, **changed: Any) -> Path:
    return parquet(folder, "nycflights.parquet", FLIGHTS, **changed)


def murders(folder: Path, *rows: str, header: str = MURDERS) -> Path:
    return write(folder, "countymurders.csv", [header, *(rows or MURDERS_ROWS)])


def insteval(folder: Path, *rows: str, header: str = INSTEVAL) -> Path:
    return write(folder, "insteval.csv", [header, *(rows or INSTEVAL_ROWS)])


def compressed(folder: Path, file: str, text: str) -> Path:
    (folder / file).parent.mkdir(exist_ok=True)
    with gzip.open(folder / file, "wt", encoding="utf-8") as target:
        target.write(text)
    return folder


def payments(folder: Path, *rows: str, header: str = PAYMENTS) -> Path:
    lines = [header, *(rows or PAYMENTS_ROWS)]
    return compressed(folder, "text_tables/open_payments_unique.csv.gz", "\n".join(lines) + "\n")


def survey(folder: Path, *rows: str, header: str = SURVEY) -> Path:
    lines = [header, *(rows or SURVEY_ROWS)]
    return compressed(folder, "text_tables/midwest_survey.csv.gz", "\n".join(lines) + "\n")


def games(folder: Path, *rows: str, header: str = GAMES) -> Path:
    lines = [header, *(rows or GAMES_ROWS)]
    return compressed(folder, "text_tables/videogame_sales.csv.gz", "\n".join(lines) + "\n")


def films(folder: Path, *rows: str, header: str = FILMS) -> Path:
    lines = [header, *(rows or FILMS_ROWS)]
    return compressed(folder, "text_tables/movielens.csv.gz", "\n".join(lines) + "\n")


def wages(folder: Path, *, header: str = WAGES, folds: Any = WAGES_FOLDS) -> Path:
    compressed(folder, "sigrist2023/wages.csv.gz", "\n".join([header, *WAGES_ROWS]) + "\n")
    return compressed(folder, "sigrist2023/wages.json.gz", json.dumps(folds))


def ratings(folder: Path, *, header: str = INSTEVAL) -> Path:
    rows = [f"{i},{1000 + i // 2},2,3,0,{4 + i % 2},{1 + i % 5}" for i in range(10)]
    compressed(folder, "sigrist2023/inst_eval.json.gz", json.dumps(WAGES_FOLDS))
    return insteval(folder, *rows, header=header)


def renamed(header: str, name: str) -> str:
    return ",".join("other" if column == name else column for column in header.split(","))


# What writes the tiny file of each data set.
WRITE: dict[str, Callable[[Path], Path]] = {
    "pakistan": pakistan,
    "ames": ames,
    "ames_full": ames_full,
    "king_county": king_county,
    "orange_juice": juice,
    "county_murders": murders,
    "insteval": insteval,
    "nycflights": flights,
    "nycflights_delayed": flights,
    "open_payments": payments,
    "midwest_survey": survey,
    "wages": wages,
    "insteval_sigrist": ratings,
    "videogame_sales": games,
    "movielens": films,
    "open_payments_text": payments,
    "midwest_survey_text": survey,
}


# The registry


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_is_loaded_by_its_name(tmp_path, name):
    data = load_dataset(name, WRITE[name](tmp_path))
    assert data.name == name
    for frame in (pd.DataFrame(data.columns()), pl.DataFrame(data.columns())):
        assert list(frame.columns) == [*data.covariates, *data.groups]
        assert list(frame[data.group]) == data.labels.tolist()
        assert data.target not in frame.columns


@pytest.mark.parametrize("name", DATASETS)
def test_a_missing_file_is_reported_with_its_origin(tmp_path, name):
    with pytest.raises(
        DataNotFoundError, match=r"does not contain '[\w/]+(\.\w+)+'.*\nHint: .* is available from the"
    ):
        load_dataset(name, tmp_path)


def test_unknown_names_and_parts_are_reported_with_the_known_ones(tmp_path):
    with pytest.raises(
        InvalidParameterError, match="name must be one of pakistan, ames, ames_full, king_county"
    ):
        load_dataset("boston", tmp_path)
    with pytest.raises(
        InvalidParameterError, match=r"part is 'kagle'.\nHint: part must be 'kaggle' or 'full'"
    ):
        load_ames(tmp_path, part="kagle")


# Ames


def test_ames_codes_text_from_one_and_replaces_missing_values_by_zero(tmp_path):
    data = load_ames(ames(tmp_path))
    assert data.covariates == ("MSSubClass", "LotFrontage", "Alley")
    np.testing.assert_array_equal(data.X, [[60, 65, 0], [20, 0, 2], [60, 68, 1]])
    np.testing.assert_array_equal(data.y, [208500, 181500, 223500])
    assert data.labels.tolist() == ["CollgCr", "Veenker", "CollgCr"]
    assert repr(data) == "Dataset('ames', n=3, p=3, group='Neighborhood' (2 levels), target='SalePrice')"


def test_a_column_with_one_text_among_numbers_is_text(tmp_path):
    rows = ["1,60,1_000,,CollgCr,,,,1", "2,20,9,,CollgCr,,,,1", "3,20,10,,CollgCr,,,,1"]
    data = load_ames(ames(tmp_path, rows=rows))
    np.testing.assert_array_equal(data.columns()["LotFrontage"], [2, 3, 1])  # "10" < "1_000" < "9"


def test_a_column_without_any_value_is_zero(tmp_path):
    data = load_ames(ames(tmp_path, rows=["1,60,,,CollgCr,,,,1"]))
    np.testing.assert_array_equal(data.X, [[60, 0, 0]])


def test_the_kaggle_part_has_no_blueste_and_its_codes_no_level_of_it(tmp_path):
    extra = "4,30,70,Dirt,Blueste,1990,TA,NA,124000"
    with_it = load_ames(ames(tmp_path, rows=[extra, *AMES_ROWS]))
    without = load_ames(ames(tmp_path))
    assert with_it.labels.tolist() == without.labels.tolist()
    np.testing.assert_array_equal(with_it.X, without.X)
    with pytest.raises(DataContentError, match=r"has 1 row\(s\), none of which can be used"):
        load_ames(ames(tmp_path, rows=[extra]))


def test_the_full_ames_keeps_blueste_and_takes_the_logarithm(tmp_path):
    data = load_ames(ames_full(tmp_path), part="full")
    assert (data.name, data.target, data.covariates) == ("ames_full", "log SalePrice", ("Alley",))
    assert data.labels.tolist() == ["Blueste", "Greens"]
    np.testing.assert_array_equal(data.y, np.log([215000, 105000]))


@pytest.mark.parametrize("name", ["Id", "PoolQC", "GarageQual", "GarageYrBlt", "Neighborhood", "SalePrice"])
def test_a_column_to_be_dropped_must_be_there(tmp_path, name):
    """Under another name it would become a covariate."""
    with pytest.raises(DataContentError, match=f"rename '{name}_' to '{name}'"):
        load_ames(ames(tmp_path, AMES.replace(name, f"{name}_")))


def test_a_sale_without_price_is_an_error_and_not_a_zero(tmp_path):
    with pytest.raises(DataContentError, match="holds nothing in column 'SalePrice', row 1;"):
        load_ames(ames(tmp_path, rows=["1,60,65,,CollgCr,,,,NA"]))


def test_a_price_without_logarithm_is_refused(tmp_path):
    with pytest.raises(DataContentError, match=r"holds 0 in column 'SalePrice'; expected prices above 0"):
        load_ames(ames_full(tmp_path, [FULL_ROWS[0], "3,1,,Greens,,,,0"]), part="full")


@pytest.mark.parametrize("dropped", [[], ["Id"]])
def test_ames_of_openml_equals_the_file(monkeypatch, tmp_path, dropped):
    """OpenML may leave out the row numbers."""
    ames(tmp_path, rows=["4,30,70,Dirt,Blueste,1990,TA,NA,124000", *AMES_ROWS])
    frame = pd.read_csv(tmp_path / "ames_kaggle.csv").astype({"Alley": "category"}).drop(columns=dropped)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: Bunch(frame=frame))
    assert_equal(load_ames(source="openml"), load_ames(tmp_path))


# King County


def test_king_county_drops_id_and_date_and_keeps_zip_codes_as_text(tmp_path):
    row = {"id": "x", "date": "20141013T000000", "price": "221900", "zipcode": "09817", "floors": "1.5"}
    data = load_king_county(king_county(tmp_path, row, {"lat": "47.5"}))
    assert data.covariates == tuple(name for name in KING if name not in ("id", "date", "price", "zipcode"))
    assert data.labels.tolist() == ["09817", "1"]
    np.testing.assert_array_equal(data.columns()["floors"], [1.5, 1])
    np.testing.assert_array_equal(data.columns()["lat"], [1, 47.5])
    np.testing.assert_array_equal(data.y, [221900, 1])


def test_covariates_are_in_the_order_of_the_file(tmp_path):
    data = load_king_county(king_county(tmp_path, names=KING[::-1]))
    assert data.covariates == _loaders._KING_COUNTY_COVARIATES[::-1]


@pytest.mark.parametrize(
    ("column", "expected"), [("price", "a number"), ("lat", "a number"), ("zipcode", "a level")]
)
def test_king_county_has_no_missing_values(tmp_path, column, expected):
    with pytest.raises(
        DataContentError, match=rf"holds nothing in column '{column}', row 1; expected {expected}\."
    ):
        load_king_county(king_county(tmp_path, {column: "NA"}))


# Pakistan


def test_pakistan_leaves_out_tor_ghar_and_rows_with_a_missing_value_in_a_used_column(tmp_path):
    rows = [
        {"City": "Bagh"},
        {"City": "Tor Ghar"},
        {"City": "Swat", "Toilet": ""},
        {"City": "Dir", "Year": ""},
    ]
    data = load_pakistan(pakistan(tmp_path, *rows, {"City": ""}, {"City": "Hub", "Education score": "NA"}))
    assert data.labels.tolist() == ["Bagh", "Dir"]
    assert data.X.shape == (2, 19)


def test_pakistan_strips_percent_signs_and_thousands_separators(tmp_path):
    row = {"City": "Bagh", "% Boys Enrolled": "54.77%", "Population": "1,351,415", "Toilet": "5,379.0"}
    columns = load_pakistan(pakistan(tmp_path, row)).columns()
    assert [columns[name][0] for name in list(row)[1:]] == [54.77, 1351415, 5379]


def test_a_decimal_comma_is_not_a_thousands_separator(tmp_path):
    with pytest.raises(DataContentError, match="holds '54,77%' in column 'Toilet', row 2;"):
        load_pakistan(pakistan(tmp_path, {}, {"Toilet": "54,77%"}))


# Orange juice


def test_orange_juice_leaves_out_the_profit_and_the_parts_of_the_group(tmp_path):
    data = load_orange_juice(juice(tmp_path))
    assert (data.group, data.target) == ("store_brand", "logmove")
    assert data.covariates == ("week", "price1", "feat")
    np.testing.assert_array_equal(data.X, [[40, 0.06, 0], [46, 0.05, 1], [47, 0.04, 0.5]])
    np.testing.assert_array_equal(data.y, [9.5, 8.25, 7])
    assert data.labels.tolist() == ["2_1", "2_3", "5_1"]


@pytest.mark.parametrize("name", ["store", "brand", "profit", "logmove", "store_brand"])
def test_orange_juice_needs_each_column_that_it_names(tmp_path, name):
    juice(tmp_path, **{name: None, f"{name}_": JUICE[name]})
    with pytest.raises(DataContentError, match=f"'{name}'.\nHint: rename '{name}_' to '{name}'. The file"):
        load_orange_juice(tmp_path)


def test_orange_juice_has_no_missing_values(tmp_path):
    with pytest.raises(
        DataContentError, match=r"orange_juice.parquet' holds nothing in column 'feat', row 2"
    ):
        load_orange_juice(juice(tmp_path, feat=[0.5, None, None]))


# County murders


def test_county_murders_takes_the_logarithm_and_keeps_missing_covariates(tmp_path):
    data = load_county_murders(murders(tmp_path))
    assert (data.group, data.target) == ("countyid", "log1p murdrate")
    assert data.covariates == ("density", "rpcpersinc", "year", "statefips", "execs", "lpopul")
    np.testing.assert_array_equal(
        data.X, [[54.05, 8780.8, 1980, 1, 0, 10.4], [53.66, math.nan, 1981, 56, 1, 10.3]]
    )
    np.testing.assert_allclose(data.y, [0, 1], rtol=1e-15)  # log(1 + (e - 1)) = 1
    assert data.labels.tolist() == ["1001", "56045"]


@pytest.mark.parametrize(
    "name",
    ["arrests", "arrestrate", "murders", "execrate", "popul", "countyfips", "countyid", "murdrate"],
)
def test_county_murders_needs_each_column_that_it_names(tmp_path, name):
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load_county_murders(murders(tmp_path, header=renamed(MURDERS, name)))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("1980", "then", "'then' in column 'year', row 1; expected a number"),
        ("1001", "", "nothing in column 'countyid', row 1; expected a level"),
        (",2,0,", ",2,NA,", "nothing in column 'murdrate', row 1; expected a number"),
        (",2,0,", ",2,-0.5,", "-0.5 in column 'murdrate'; expected rates of at least 0"),
    ],
)
def test_unusable_values_of_county_murders_are_reported(tmp_path, old, new, what):
    with pytest.raises(DataContentError, match=rf"countymurders.csv' holds {what}.\nHint: "):
        load_county_murders(murders(tmp_path, MURDERS_ROWS[0].replace(old, new, 1), MURDERS_ROWS[1]))


# InstEval


@pytest.mark.parametrize(
    "names", [INSTEVAL, "s,d,dept,studage,lectage,service,y", INSTEVAL.replace("s", "row", 1)]
)
def test_insteval_leaves_out_the_students(tmp_path, names):
    data = load_insteval(insteval(tmp_path, header=names))
    assert (data.group, data.target) == ("d", "y")
    assert data.covariates == tuple(names.split(",")[2:6])
    np.testing.assert_array_equal(data.X, [[2, 3, 0, 4], [6, 1, 1, 15]])
    np.testing.assert_array_equal(data.y, [5, 2])
    assert data.labels.tolist() == ["1002", "0050"]


@pytest.mark.parametrize("name", INSTEVAL.split(",")[1:])
def test_insteval_needs_each_column_that_it_uses(tmp_path, name):
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load_insteval(insteval(tmp_path, header=renamed(INSTEVAL, name)))


@pytest.mark.parametrize(
    ("row", "column"), [("1,,2,3,0,4,5", "d"), ("1,1002,,3,0,4,5", "studage"), ("1,1002,2,3,0,4,NA", "y")]
)
def test_insteval_has_no_missing_values(tmp_path, row, column):
    with pytest.raises(DataContentError, match=rf"insteval.csv' holds nothing in column '{column}', row 1;"):
        load_insteval(insteval(tmp_path, row))


# Flights


def test_nycflights_codes_text_from_one_and_keeps_missing_covariates(tmp_path):
    data = load_nycflights(flights(tmp_path))
    assert (data.group, data.target) == ("tailnum", "slog arr_delay")
    assert data.covariates == tuple(FLIGHTS)[5:]
    nan = math.nan
    # Capitals come first: "B", "a" and "b" are 1, 2 and 3.
    expected = [[2, 3, 2, nan, 1, 39.02, 149], [1, 1, nan, 2, 2, nan, nan], [2, 2, 1, 1, 12, 50, 178]]
    np.testing.assert_array_equal(data.X, expected)
    np.testing.assert_allclose(data.y, [2, 0, -1], rtol=1e-15)
    assert data.labels.tolist() == ["N14228", "N24211", "N14228"]


@pytest.mark.parametrize("name", list(FLIGHTS)[:9])
def test_nycflights_needs_each_column_that_it_names(tmp_path, name):
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load_nycflights(flights(tmp_path, **{name: None}))


@pytest.mark.parametrize(
    ("column", "values", "what"),
    [
        ("arr_delay", [1.0, None, 2.0], "nothing in column 'arr_delay', row 2; expected a number"),
        ("tailnum", ["N1", None, "N2"], "nothing in column 'tailnum', row 2; expected a level"),
        ("temp", [None, math.inf, 3.0], "inf in column 'temp', row 2; expected a number"),
    ],
)
def test_only_covariates_of_nycflights_may_be_missing(tmp_path, column, values, what):
    with pytest.raises(DataContentError, match=rf"nycflights.parquet' holds {what}.\nHint: "):
        load_nycflights(flights(tmp_path, **{column: values}))


def test_whether_a_flight_is_late_has_the_covariates_of_its_delay(tmp_path):
    data = load_nycflights(flights(tmp_path), target="delayed15")
    assert (data.name, data.target, data.classes) == ("nycflights_delayed", "delayed15", ("0", "1"))
    np.testing.assert_array_equal(data.y, [0, 1, 0])
    delay = load_nycflights(tmp_path)
    assert (data.group, data.covariates, delay.classes) == (delay.group, delay.covariates, ())
    np.testing.assert_array_equal(data.X, delay.X)


def test_flights_have_no_other_target(tmp_path):
    with pytest.raises(InvalidParameterError, match="target must be 'arr_delay' or 'delayed15'"):
        load_nycflights(flights(tmp_path), target="delayed")


def test_a_single_class_cannot_be_learnt(tmp_path):
    with pytest.raises(DataContentError, match="holds only '1' in column 'delayed15'; expected at least two"):
        load_nycflights(flights(tmp_path, delayed15=[1, 1, 1]), target="delayed15")


# Text


def test_open_payments_codes_text_from_one_and_replaces_missing_values_by_zero(tmp_path):
    data = load_open_payments(payments(tmp_path))
    assert (data.group, data.target, data.covariates) == (_COMPANY, "status", _PAYMENT_COVARIATES)
    # Bed, Tape; Ant, Elagolix; A, Surgery.
    np.testing.assert_array_equal(data.X, [[1, 0, 2, 2], [2, 2, 0, 0], [1, 1, 1, 1]])
    assert data.labels.tolist() == ["AbbVie, Inc.", "3M", "3M"]
    assert data.classes == ("allowed", "disallowed")
    np.testing.assert_array_equal(data.y, [1, 0, 0])
    assert data.folds is None


@pytest.mark.parametrize("name", PAYMENTS.split(","))
def test_open_payments_needs_each_column_that_it_names(tmp_path, name):
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load_open_payments(payments(tmp_path, header=renamed(PAYMENTS, name)))


@pytest.mark.parametrize(("row", "column"), [(",No,,a,b,allowed", _COMPANY), ("3M,No,,a,b,", "status")])
def test_open_payments_have_a_company_and_a_status(tmp_path, row, column):
    with pytest.raises(
        DataContentError, match=rf"csv.gz' holds nothing in column '{column}', row 1; expected"
    ):
        load_open_payments(payments(tmp_path, row, *PAYMENTS_ROWS))


def test_the_survey_leaves_out_what_implies_the_region(tmp_path):
    data = load_midwest_survey(survey(tmp_path))
    assert (data.group, data.target, data.covariates) == (_OWN_NAME, "Census_Region", ("Iowa", "Age"))
    np.testing.assert_array_equal(data.X, [[1, 1], [2, 2], [0, 1]])
    assert data.labels.tolist() == ["Southern", "Mid", "Mid"]
    assert data.classes == ("East", "North", "West")
    np.testing.assert_array_equal(data.y, [2, 0, 1])


@pytest.mark.parametrize(
    "name", ["RespondentID", "In_what_ZIP_code_is_your_home_located", _OWN_NAME, "Census_Region"]
)
def test_the_survey_needs_each_column_that_it_names(tmp_path, name):
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load_midwest_survey(survey(tmp_path, header=renamed(SURVEY, name)))


# Several groups


def test_games_have_four_groups_and_a_year(tmp_path):
    data = load_videogame_sales(games(tmp_path))
    assert (data.groups, data.covariates) == (("Publisher", "Name", "Platform", "Genre"), ("Year",))
    assert data.labels.tolist() == ["Nintendo", ""]
    assert [labels.tolist() for labels in data.other_labels.values()] == [
        ["Wii Sports", "2600"],
        ["Wii", "NES"],
        ["Sports", "Puzzle"],
    ]
    np.testing.assert_array_equal(data.X, [[2006], [math.nan]])
    np.testing.assert_allclose(data.y, [math.log(82.74), 0])
    assert repr(data).endswith("group='Publisher' (2 levels), 3 further groups, target='log Global_Sales')")


def test_games_that_nobody_bought_are_refused(tmp_path):
    with pytest.raises(DataContentError, match="holds 0 in column 'Global_Sales'; expected sales above 0"):
        load_videogame_sales(games(tmp_path, "1,a,b,2000,c,d,1,0"))


def test_films_have_three_groups_and_the_year_of_their_title(tmp_path):
    data = load_movielens(films(tmp_path))
    assert (data.groups, data.covariates) == (("movieId", "userId", "genres"), ("year",))
    assert data.labels.tolist() == ["07", "1", "3"]
    assert data.other_labels["userId"].tolist() == ["1", "12", "1"]
    assert data.other_labels["genres"].tolist() == ["Comedy|Fantasy", "Drama", "Drama"]
    np.testing.assert_array_equal(data.X, [[1995], [math.nan], [2006]])
    assert data.y.tolist() == [4.0, 0.5, 5.0]


@pytest.mark.parametrize(
    ("load", "write_file", "header"),
    [(load_videogame_sales, games, GAMES), (load_movielens, films, FILMS)],
)
def test_tables_of_several_groups_need_their_columns(tmp_path, load, write_file, header):
    name = header.split(",")[1]
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load(write_file(tmp_path, header=renamed(header, name)))


def test_all_text_columns_may_be_groups(tmp_path):
    data = load_open_payments(payments(tmp_path), groups="all")
    assert (data.name, data.group) == ("open_payments_text", _COMPANY)
    assert set(data.other_labels) == set(_PAYMENT_COVARIATES)
    assert data.X.shape == (3, 0)
    codes, texts = load_open_payments(payments(tmp_path)).columns(), data.columns()
    for name in data.other_labels:
        levels = ["", *sorted(set(texts[name].tolist()) - {""})]
        assert [levels.index(text) for text in texts[name].tolist()] == codes[name].tolist()
    with pytest.raises(InvalidParameterError, match="groups must be 'one' or 'all'"):
        load_midwest_survey(survey(tmp_path), groups="some")


# Wages


def test_wages_come_with_their_folds(tmp_path):
    data = load_wages(wages(tmp_path))
    assert (data.group, data.target, data.covariates) == ("idcode", "ln_wage", ("grade", "age", "race_2"))
    np.testing.assert_array_equal(data.X, [[12, 18 + i, 0] for i in range(10)])
    np.testing.assert_array_equal(data.y, np.arange(10) / 4)
    assert data.labels.tolist() == [str(i // 2) for i in range(10)]
    np.testing.assert_array_equal(data.folds, np.arange(10) % 5)
    assert data.classes == ()


@pytest.mark.parametrize("name", ["idcode", "ln_wage", "t"])
def test_wages_need_each_column_that_they_name(tmp_path, name):
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load_wages(wages(tmp_path, header=renamed(WAGES, name)))


@pytest.mark.parametrize(
    ("folds", "what"),
    [
        (WAGES_FOLDS[:4], r"holds 4 fold\(s\); expected 5 which test each of 10 rows once"),
        ([*WAGES_FOLDS[:4], WAGES_FOLDS[0]], r"holds 5 fold\(s\); expected 5 which test each of 10 rows"),
        ([*WAGES_FOLDS[:4], [0, *WAGES_FOLDS[4]]], "holds something else than lists of rows from 1 to 10"),
        ([*WAGES_FOLDS[:4], [11, *WAGES_FOLDS[4]]], "holds something else than lists of rows from 1 to 10"),
        ([*WAGES_FOLDS[:4], 7], "holds something else than lists of rows from 1 to 10"),
        ([["a"]], "cannot be read: "),
        (5, "cannot be read: "),
    ],
)
def test_other_folds_than_the_published_ones_are_refused(tmp_path, folds, what):
    expected = rf"wages.json.gz' {what}.*\.\nHint: download it again"
    with pytest.raises(DataContentError, match=expected):
        load_wages(wages(tmp_path, folds=folds))


def test_folds_that_are_no_gzip_file_are_refused(tmp_path):
    wages(tmp_path)
    (tmp_path / "sigrist2023" / "wages.json.gz").write_text(json.dumps(WAGES_FOLDS))
    with pytest.raises(DataContentError, match=r"wages.json.gz' cannot be read: Not a gzipped file"):
        load_wages(tmp_path)


def test_wages_without_folds_are_reported(tmp_path):
    (wages(tmp_path) / "sigrist2023" / "wages.json.gz").unlink()
    expected = r"does not contain 'sigrist2023/wages.json.gz'; its data files: wages.csv.gz\."
    with pytest.raises(DataNotFoundError, match=expected):
        load_wages(tmp_path)


def published(folder: Path, *rows: str) -> Path:
    (folder / "sigrist2023").mkdir()
    return write(folder, "sigrist2023/published.csv", ["data,method,fold,test_mse,seconds", *rows])


def test_ratings_come_with_all_groups_and_their_folds(tmp_path):
    data = load_insteval_sigrist(ratings(tmp_path))
    assert (data.group, data.target, data.covariates) == ("d", "y", ("studage", "lectage", "service"))
    assert data.labels.tolist() == [str(1000 + i // 2) for i in range(10)]
    assert {name: labels.tolist() for name, labels in data.other_labels.items()} == {
        "s": [str(i) for i in range(10)],
        "dept": ["4", "5"] * 5,
    }
    np.testing.assert_array_equal(data.folds, np.arange(10) % 5)


@pytest.mark.parametrize("name", ["s", "d", "dept", "service", "y"])
def test_ratings_need_each_column_that_they_use(tmp_path, name):
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load_insteval_sigrist(ratings(tmp_path, header=renamed(INSTEVAL, name)))


def test_published_results_are_in_the_order_of_the_folds(tmp_path):
    rows = [f"wages,{name},{fold},0.{fold + 1},2" for name in ("linear", "boost") for fold in range(5)]
    published(tmp_path, *rows[::-1], "inst_eval,linear,0,9,2")
    assert load_published_wages(tmp_path) == {
        "boost": [0.1, 0.2, 0.3, 0.4, 0.5],
        "linear": [0.1, 0.2, 0.3, 0.4, 0.5],
    }


def test_published_results_on_ratings_are_those_of_their_rows(tmp_path):
    rows = [f"inst_eval,boost,{fold},0.{fold + 1},2" for fold in range(5)]
    published(tmp_path, "wages,linear,0,9,2", *rows)
    assert load_published_insteval(tmp_path) == {"boost": [0.1, 0.2, 0.3, 0.4, 0.5]}


def test_published_results_of_all_folds_are_needed(tmp_path):
    published(tmp_path, "wages,linear,0,0.1,2", "wages,linear,2,0.1,2")
    with pytest.raises(DataContentError, match=r"holds the folds \[0, 2\] of 'linear'; expected 0 to 4"):
        load_published_wages(tmp_path)


# The real files


REAL = {
    "pakistan": ((504, 19), 126, "City", "Education score", 0),
    "ames": ((1458, 75), 24, "Neighborhood", "SalePrice", 0),
    "ames_full": ((2930, 75), 28, "Neighborhood", "log SalePrice", 0),
    "king_county": ((21613, 17), 70, "zipcode", "price", 0),
    "orange_juice": ((106_139, 26), 913, "store_brand", "logmove", 0),
    "county_murders": ((37_349, 12), 2_197, "countyid", "log1p murdrate", 3),
    "insteval": ((73_421, 4), 1_128, "d", "y", 0),
    "nycflights": ((327_346, 20), 4_037, "tailnum", "slog arr_delay", 89_572),
    "nycflights_delayed": ((327_346, 20), 4_037, "tailnum", "delayed15", 89_572),
    "open_payments": ((71_657, 4), 1_466, _COMPANY, "status", 0),
    "midwest_survey": ((2_494, 25), 934, _OWN_NAME, "Census_Region", 0),
    "wages": ((28_013, 52), 4_696, "idcode", "ln_wage", 0),
    "insteval_sigrist": ((73_421, 3), 1_128, "d", "y", 0),
    "videogame_sales": ((16_572, 1), 579, "Publisher", "log Global_Sales", 0),
    "movielens": ((100_836, 1), 9_724, "movieId", "rating", 17),
    "open_payments_text": ((71_657, 0), 1_466, _COMPANY, "status", 0),
    "midwest_survey_text": ((2_494, 0), 934, _OWN_NAME, "Census_Region", 0),
}


@cache
def loaded(name: str, folder: Path) -> Dataset:
    return load_dataset(name, folder)


def by_hand(folder: Path, file: str) -> list[dict[str, str]]:
    opened = gzip.open if file.endswith(".gz") else open
    with opened(folder / file, "rt", encoding="utf-8-sig", newline="") as source:
        return list(csv.DictReader(source))


def assert_equal(one: Dataset, other: Dataset) -> None:
    assert one.covariates == other.covariates
    assert one.labels.tolist() == other.labels.tolist()
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.y, other.y)


@pytest.mark.parametrize("name", DATASETS)
def test_the_real_files_have_the_documented_sizes(data_dir, name):
    shape, n_levels, group, target, n_incomplete = REAL[name]
    data = loaded(name, data_dir)
    assert (data.name, data.group, data.target) == (name, group, target)
    assert data.X.shape == shape
    assert data.y.shape == data.labels.shape == shape[:1]
    assert data.n_levels == n_levels
    assert np.isnan(data.X).any(axis=1).sum() == n_incomplete
    assert np.isfinite(data.y).all()


def test_real_king_county_has_the_values_of_its_file(data_dir):
    rows, data = by_hand(data_dir, "king_county.csv"), loaded("king_county", data_dir)
    assert data.labels.tolist() == [row["zipcode"] for row in rows]
    assert data.y.tolist() == [float(row["price"]) for row in rows]
    for name in ("bathrooms", "lat", "long", "sqft_lot15"):
        assert data.columns()[name].tolist() == [float(row[name]) for row in rows]


def test_real_pakistan_has_the_values_of_its_file(data_dir):
    rows, data = by_hand(data_dir, "pakistan.csv"), loaded("pakistan", data_dir)
    complete = [
        row
        for row in rows
        if row["City"] != "Tor Ghar"
        and row["Population"]
        and row["Complete Primary Schools"]
        and row["% Boys Enrolled"]
    ]  # the other columns are missing together with these
    assert data.labels.tolist() == [row["City"] for row in complete]
    assert data.y.tolist() == [float(row["Education score"]) for row in complete]
    shares = [float(row["% Boys Enrolled"][:-1]) for row in complete]
    assert data.columns()["% Boys Enrolled"].tolist() == shares
    assert data.columns()["Population"].tolist() == [float(row["Population"]) for row in complete]


@pytest.mark.parametrize(
    ("name", "file", "frontage", "fireplace", "dwelling"),
    [
        ("ames", "ames_kaggle.csv", "LotFrontage", "FireplaceQu", "MSSubClass"),
        ("ames_full", "ames_full.csv", "Lot_Frontage", "Fireplace_Qu", "MS_SubClass"),
    ],
)
def test_real_ames_has_the_values_of_its_file(data_dir, name, file, frontage, fireplace, dwelling):
    rows, data = by_hand(data_dir, file), loaded(name, data_dir)
    prices = [float(row["SalePrice"]) for row in rows]
    assert data.labels.tolist() == [row["Neighborhood"] for row in rows]
    np.testing.assert_allclose(data.y, prices if name == "ames" else [math.log(price) for price in prices])
    widths = [0.0 if row[frontage] in ("", "NA") else float(row[frontage]) for row in rows]
    assert data.columns()[frontage].tolist() == widths
    code = {"": 0, "NA": 0, "Ex": 1, "Fa": 2, "Gd": 3, "Po": 4, "TA": 5}
    assert data.columns()[fireplace].tolist() == [code[row[fireplace]] for row in rows]
    assert set(data.columns()[dwelling]) >= {20.0, 60.0, 190.0}


@pytest.mark.parametrize(
    ("name", "file", "label", "target"),
    [("county_murders", "countymurders.csv", "countyid", "murdrate"), ("insteval", "insteval.csv", "d", "y")],
)
def test_further_real_csv_files_are_read_to_the_letter(data_dir, name, file, label, target):
    rows, data = by_hand(data_dir, file), loaded(name, data_dir)
    values = np.array([float(row[target]) for row in rows])
    assert data.labels.tolist() == [row[label] for row in rows]
    np.testing.assert_allclose(data.y, values if target == "y" else np.log(1 + values), atol=1e-12)
    for covariate in data.covariates:
        expected = [float(row[covariate]) if row[covariate] else math.nan for row in rows]
        np.testing.assert_array_equal(data.columns()[covariate], expected)


@pytest.mark.parametrize(
    ("name", "file", "label", "target", "covariate"),
    [
        ("open_payments", "open_payments_unique", _COMPANY, "status", "Physician_Specialty"),
        ("midwest_survey", "midwest_survey", _OWN_NAME, "Census_Region", "Household_Income"),
    ],
)
def test_real_tables_of_text_have_the_values_of_their_files(data_dir, name, file, label, target, covariate):
    rows, data = by_hand(data_dir, f"text_tables/{file}.csv.gz"), loaded(name, data_dir)
    assert data.labels.tolist() == [row[label] for row in rows]
    assert [data.classes[int(code)] for code in data.y] == [row[target] for row in rows]
    texts = ["", *sorted({row[covariate] for row in rows} - {""})]
    assert [texts[int(code)] for code in data.columns()[covariate]] == [row[covariate] for row in rows]


def test_real_wages_have_the_values_and_folds_of_their_files(data_dir):
    rows, data = by_hand(data_dir, "sigrist2023/wages.csv.gz"), loaded("wages", data_dir)
    assert data.labels.tolist() == [row["idcode"] for row in rows]
    assert data.y.tolist() == [float(row["ln_wage"]) for row in rows]
    for name in data.covariates:
        assert data.columns()[name].tolist() == [float(row[name]) for row in rows]
    with gzip.open(data_dir / "sigrist2023" / "wages.json.gz", "rt") as file:
        for fold, training in enumerate(json.load(file)):
            assert (np.flatnonzero(data.folds != fold) + 1).tolist() == sorted(training)


def test_real_ratings_have_the_groups_and_folds_of_their_files(data_dir):
    rows, data = by_hand(data_dir, "insteval.csv"), loaded("insteval_sigrist", data_dir)
    for name in ("d", "s", "dept"):
        assert data.columns()[name].tolist() == [row[name] for row in rows]
    with gzip.open(data_dir / "sigrist2023" / "inst_eval.json.gz", "rt") as file:
        for fold, training in enumerate(json.load(file)):
            assert (np.flatnonzero(data.folds != fold) + 1).tolist() == sorted(training)
    assert np.mean(load_published_insteval(data_dir)["boost_cat"]) == pytest.approx(1.4423, abs=1e-4)


def test_real_published_results_have_five_methods(data_dir):
    found = load_published_wages(data_dir)
    assert list(found) == ["linear", "boost_cat", "boost_cont", "catboost", "gpboost"]
    rows = [row for row in by_hand(data_dir, "sigrist2023/published.csv") if row["data"] == "wages"]
    assert [error for errors in found.values() for error in errors] == [
        float(row["test_mse"]) for row in rows
    ]


def test_real_orange_juice_has_the_values_of_its_file(data_dir):
    data, frame = loaded("orange_juice", data_dir), pl.read_parquet(data_dir / "orange_juice.parquet")
    assert data.covariates == tuple(
        name for name in frame.columns if name not in ("store", "brand", "profit", "logmove", "store_brand")
    )
    np.testing.assert_array_equal(data.X, frame.select(data.covariates).cast(pl.Float64).to_numpy())
    assert data.y.tolist() == frame["logmove"].to_list()
    assert data.labels.tolist() == frame["store_brand"].to_list()


def test_real_nycflights_has_the_values_of_its_file(data_dir):
    data, frame = loaded("nycflights", data_dir), pl.read_parquet(data_dir / "nycflights.parquet")
    assert data.labels.tolist() == frame["tailnum"].to_list()
    delays = frame["arr_delay"].to_numpy()
    np.testing.assert_allclose(data.y, np.copysign(np.log(1 + np.abs(delays)), delays), rtol=1e-12)
    for name in ("temp", "pressure", "seats", "month"):
        expected = frame[name].cast(pl.Float64).fill_null(math.nan).to_numpy()
        np.testing.assert_array_equal(data.columns()[name], expected)
    for name in ("carrier", "plane_model"):
        levels = sorted(set(frame[name].to_list()) - {None})
        decoded = [None if math.isnan(code) else levels[int(code) - 1] for code in data.columns()[name]]
        assert decoded == frame[name].to_list()


@pytest.mark.parametrize(
    ("load", "file"), [(load_ames, "ames_kaggle.csv"), (load_king_county, "king_county.csv")]
)
def test_the_first_rows_of_the_real_files_equal_those_of_openml(monkeypatch, tmp_path, data_dir, load, file):
    write(tmp_path, file, (data_dir / file).read_text(encoding="utf-8").splitlines()[:200])
    frame = pd.read_csv(tmp_path / file, keep_default_na=False, na_values=["NA"])
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: Bunch(frame=frame))
    assert len(load(tmp_path).y) == 199
    assert_equal(load(source="openml"), load(tmp_path))
