"""The paper's data: each rule of their preparation on a tiny file, then the real files where they are."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from http.client import IncompleteRead
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils import Bunch

from sufrep.datasets import (
    DATASETS,
    _loaders,
    _sources,
    load_ames,
    load_dataset,
    load_king_county,
    load_pakistan,
)
from sufrep.errors import (
    DataContentError,
    DataNotFoundError,
    DownloadError,
    InvalidParameterError,
    MissingPandasError,
    SufrepError,
)

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
# What each file's tiny twin holds.
TINY = {
    "ames": ("ames_kaggle.csv", [AMES, *AMES_ROWS]),
    "ames_full": ("ames_full.csv", [FULL, *FULL_ROWS]),
}


def write(folder: Path, file: str, lines: Iterable[str], encoding: str = "utf-8") -> Path:
    (folder / file).write_text("\n".join(lines) + "\n", encoding=encoding)
    return folder


def write_rows(folder: Path, file: str, names: Sequence[str], rows: Iterable[dict[str, str]]) -> Path:
    """Rows that are 1 everywhere but where they say otherwise."""
    with (folder / file).open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, names, restval="1")
        writer.writeheader()
        writer.writerows(rows)
    return folder


def king_county(folder: Path, *rows: dict[str, str], names: Sequence[str] = KING) -> Path:
    return write_rows(folder, "king_county.csv", names, rows or ({},))


def pakistan(folder: Path, *rows: dict[str, str]) -> Path:
    return write_rows(folder, "pakistan.csv", PAKISTAN, rows)


def openml(monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Put a frame in the place of OpenML; the arguments of each call are collected."""
    calls: list[dict[str, Any]] = []

    def fetch(**arguments: Any) -> Bunch:
        calls.append(arguments)
        return Bunch(frame=frame)

    monkeypatch.setattr(_sources, "fetch_openml", fetch)
    return calls


# --- the table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_make_a_frame_of_covariates_and_group_without_the_target(tmp_path, name, frame):
    data = load_dataset(name, write(tmp_path, *TINY[name]))
    table = frame(data.columns())
    assert list(table.columns) == [*data.covariates, data.group]
    assert table.shape == (len(data.y), len(data.covariates) + 1)
    assert list(table[data.group]) == data.labels.tolist()
    assert data.target not in table.columns


def test_a_data_set_prints_its_sizes(tmp_path):
    data = load_ames(write(tmp_path, *TINY["ames"]))
    assert repr(data) == "Dataset('ames', n=3, p=3, group='Neighborhood' (2 levels), target='SalePrice')"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_files_are_read_in_any_of_three_encodings(tmp_path, encoding):
    lines = [AMES, AMES_ROWS[0].replace("CollgCr", "Crèvecœur".replace("œ", "oe"))]
    data = load_ames(write(tmp_path, "ames_kaggle.csv", lines, encoding=encoding))
    assert data.labels.tolist() == ["Crèvecoeur"]


def test_blank_lines_and_blanks_around_fields_do_not_count(tmp_path):
    lines = [AMES.replace(",", " , "), "", AMES_ROWS[0].replace(",", " , "), ""]
    spaced = load_ames(write(tmp_path, "ames_kaggle.csv", lines))
    plain = load_ames(write(tmp_path, "ames_kaggle.csv", [AMES, AMES_ROWS[0]]))
    assert spaced.labels.tolist() == plain.labels.tolist()
    np.testing.assert_array_equal(spaced.X, plain.X)


def test_quoted_fields_may_hold_commas(tmp_path):
    data = load_ames(
        write(tmp_path, "ames_kaggle.csv", [AMES, AMES_ROWS[0].replace("CollgCr", '"College, C."')])
    )
    assert data.labels.tolist() == ["College, C."]


# --- the preparation ---------------------------------------------------------------------------------------


def test_ames_codes_text_from_one_and_sets_what_is_missing_to_zero(tmp_path):
    data = load_ames(write(tmp_path, *TINY["ames"]))
    assert data.covariates == ("MSSubClass", "LotFrontage", "Alley")
    np.testing.assert_array_equal(data.X, [[60, 65, 0], [20, 0, 2], [60, 68, 1]])
    np.testing.assert_array_equal(data.y, [208500, 181500, 223500])
    assert data.labels.tolist() == ["CollgCr", "Veenker", "CollgCr"]


def test_a_column_with_one_text_among_numbers_is_text(tmp_path):
    rows = ["1,60,1_000,,CollgCr,,,,1", "2,20,9,,CollgCr,,,,1", "3,20,10,,CollgCr,,,,1"]
    data = load_ames(write(tmp_path, "ames_kaggle.csv", [AMES, *rows]))
    np.testing.assert_array_equal(data.columns()["LotFrontage"], [2, 3, 1])  # "10" < "1_000" < "9"


def test_a_column_without_any_value_is_zero(tmp_path):
    data = load_ames(write(tmp_path, "ames_kaggle.csv", [AMES, "1,60,,,CollgCr,,,,1"]))
    np.testing.assert_array_equal(data.X, [[60, 0, 0]])


def test_the_kaggle_part_is_without_blueste_and_codes_do_not_know_its_levels(tmp_path):
    extra = "4,30,70,Dirt,Blueste,1990,TA,NA,124000"
    with_it = load_ames(write(tmp_path, "ames_kaggle.csv", [AMES, extra, *AMES_ROWS]))
    without = load_ames(write(tmp_path, *TINY["ames"]))
    assert with_it.labels.tolist() == without.labels.tolist()
    np.testing.assert_array_equal(with_it.X, without.X)


def test_the_full_ames_keeps_blueste_and_takes_the_logarithm(tmp_path):
    data = load_ames(write(tmp_path, *TINY["ames_full"]), part="full")
    assert (data.name, data.target, data.covariates) == ("ames_full", "log SalePrice", ("Alley",))
    assert data.labels.tolist() == ["Blueste", "Greens"]
    np.testing.assert_array_equal(data.y, np.log([215000, 105000]))


def test_king_county_drops_id_and_date_and_keeps_zip_codes_as_text(tmp_path):
    row = {"id": "x", "date": "20141013T000000", "price": "221900", "zipcode": "09817", "floors": "1.5"}
    data = load_king_county(king_county(tmp_path, row, {"lat": "47.5"}))
    assert data.covariates == tuple(name for name in KING if name not in ("id", "date", "price", "zipcode"))
    assert data.labels.tolist() == ["09817", "1"]
    np.testing.assert_array_equal(data.columns()["floors"], [1.5, 1])
    np.testing.assert_array_equal(data.columns()["lat"], [1, 47.5])
    np.testing.assert_array_equal(data.y, [221900, 1])


def test_covariates_stand_in_the_order_of_the_file(tmp_path):
    data = load_king_county(king_county(tmp_path, names=KING[::-1]))
    assert data.covariates == _loaders._KING_COUNTY_COVARIATES[::-1]


def test_pakistan_leaves_out_tor_ghar_and_rows_with_a_null_that_matters(tmp_path):
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


# --- errors ------------------------------------------------------------------------------------------------


def test_without_a_folder_the_error_says_how_to_name_one(monkeypatch):
    monkeypatch.delenv("SUFREP_DATA", raising=False)
    with pytest.raises(
        DataNotFoundError, match=r"'king_county.csv'(?s:.*)SUFREP_DATA is not set.\nHint: use data_dir"
    ):
        load_king_county()


def test_an_empty_variable_names_no_folder(monkeypatch):
    monkeypatch.setenv("SUFREP_DATA", "")
    with pytest.raises(FileNotFoundError, match=r"Hint: .* can be had from the public repository"):
        load_pakistan()


def test_the_variable_names_the_folder_and_the_argument_comes_first(monkeypatch, tmp_path):
    monkeypatch.setenv("SUFREP_DATA", str(write(tmp_path, *TINY["ames"])))
    assert len(load_ames().y) == 3
    with pytest.raises(DataNotFoundError, match="data_dir names"):
        load_ames(tmp_path / "elsewhere")


def test_a_folder_may_be_named_from_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, *TINY["ames"])
    assert len(load_ames("~").y) == 3


def test_a_folder_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SUFREP_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(
        DataNotFoundError, match=r"SUFREP_DATA names '.*nowhere', which is not a folder.\nHint: "
    ):
        load_king_county()


@pytest.mark.parametrize(
    ("others", "shown"), [([], "none"), (["b.csv", "a.parquet", "c.md"], "a.parquet, b.csv")]
)
def test_a_file_that_is_not_there_is_told_with_those_that_are(tmp_path, others, shown):
    for file in others:
        (tmp_path / file).touch()
    with pytest.raises(
        DataNotFoundError, match=rf"does not hold 'ames_full.csv'; its data files: {shown}.\nHint: .*R"
    ):
        load_ames(tmp_path, part="full")


def test_a_long_list_of_files_is_cut(tmp_path):
    for j in range(11):
        (tmp_path / f"{j:02}.csv").touch()
    with pytest.raises(DataNotFoundError, match=r"09.csv, …\.\nHint: "):
        load_pakistan(tmp_path)


@pytest.mark.parametrize("name", ["zip_code", "Zip code", "ZIPCODE", "zipcodes"])
def test_a_missing_column_is_told_with_what_it_may_be_called(tmp_path, name):
    names = [name if old == "zipcode" else old for old in KING]
    with pytest.raises(
        DataContentError, match=rf"the column\(s\) 'zipcode'.\nHint: rename '{name}' for 'zipcode'. The"
    ):
        load_king_county(king_county(tmp_path, names=names))


def test_a_column_that_is_needed_itself_is_no_suggestion(tmp_path):
    names = [name for name in KING if name != "sqft_lot15"]
    with pytest.raises(
        DataContentError, match=r"'sqft_lot15'.\nHint: the columns are 'id', .*, …\. The file is from"
    ):
        load_king_county(king_county(tmp_path, names=names))


@pytest.mark.parametrize("name", ["Id", "PoolQC", "GarageQual", "GarageYrBlt", "Neighborhood", "SalePrice"])
def test_a_column_to_be_dropped_must_be_there(tmp_path, name):
    """Under another name it would pass for a covariate."""
    lines = [AMES.replace(name, f"{name}_"), *AMES_ROWS]
    with pytest.raises(DataContentError, match=f"rename '{name}_' for '{name}'"):
        load_ames(write(tmp_path, "ames_kaggle.csv", lines))


@pytest.mark.parametrize("value", ["cheap", "inf", "nan", "1_000", "1,5"])
def test_a_value_that_is_no_number_is_told_by_column_and_line(tmp_path, value):
    with pytest.raises(
        DataContentError, match=rf"holds '{value}' in column 'lat', line 3; expected a number.\nHint: "
    ):
        load_king_county(king_county(tmp_path, {}, {"lat": value}))


@pytest.mark.parametrize("value", ["", "NA"])
@pytest.mark.parametrize(
    ("column", "expected"), [("price", "a number"), ("lat", "a number"), ("zipcode", "a level")]
)
def test_king_county_has_no_missing_values(tmp_path, value, column, expected):
    with pytest.raises(
        ValueError, match=rf"holds nothing in column '{column}', line 2; expected {expected}\."
    ):
        load_king_county(king_county(tmp_path, {column: value}))


def test_a_decimal_comma_is_no_thousands_separator(tmp_path):
    with pytest.raises(DataContentError, match="holds '54,77%' in column 'Toilet', line 4;"):
        load_pakistan(pakistan(tmp_path, {}, {"City": "Tor Ghar"}, {"Toilet": "54,77%"}))


def test_a_sale_without_price_is_an_error_not_a_zero(tmp_path):
    with pytest.raises(DataContentError, match="holds nothing in column 'SalePrice', line 2;"):
        load_ames(write(tmp_path, "ames_kaggle.csv", [AMES, "1,60,65,,CollgCr,,,,NA"]))


def test_a_price_without_logarithm_is_told(tmp_path):
    with pytest.raises(DataContentError, match=r"holds 0 in column 'SalePrice'; expected prices above 0"):
        load_ames(write(tmp_path, "ames_full.csv", [FULL, FULL_ROWS[0], "3,1,,Greens,,,,0"]), part="full")


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ([], r"has 0 line\(s\); expected a header and rows"),
        ([AMES], r"has 1 line\(s\); expected a header and rows"),
        ([AMES, "1,60"], r"has 2 field\(s\) in line 2; its header has 9"),
        ([AMES, *AMES_ROWS, AMES_ROWS[0] + ","], r"has 10 field\(s\) in line 5; its header has 9"),
        (
            ["," + AMES, "1," + AMES_ROWS[0]],
            r"has no name for its column 1",
        ),
        (["Id," + AMES, "1," + AMES_ROWS[0]], "has two columns called 'Id'"),
        ([AMES, '"' + "x" * 200_000], "is no CSV file: field larger than field limit"),
        ([AMES, "1,60,65,NA,Blueste,2003,TA,NA,1"], r"has 1 row\(s\), none of which can be used"),
    ],
)
def test_a_file_that_is_no_table_is_told(tmp_path, lines, what):
    with pytest.raises(DataContentError, match=rf"'.*ames_kaggle.csv' {what}(?s:.*)Hint: "):
        load_ames(write(tmp_path, "ames_kaggle.csv", lines))


def test_unknown_names_parts_and_places_are_told_with_those_there_are(tmp_path):
    with pytest.raises(InvalidParameterError, match="name is one of pakistan, ames, ames_full, king_county"):
        load_dataset("boston", tmp_path)
    with pytest.raises(InvalidParameterError, match=r"part is 'kagle'.\nHint: part is 'kaggle' or 'full'"):
        load_ames(tmp_path, part="kagle")
    with pytest.raises(
        InvalidParameterError, match=r"source is 'web'.\nHint: source is 'folder' or 'openml'"
    ):
        load_king_county(tmp_path, source="web")


# --- OpenML ------------------------------------------------------------------------------------------------


def test_ames_of_openml_equals_the_file(monkeypatch, tmp_path):
    write(tmp_path, "ames_kaggle.csv", [AMES, "4,30,70,Dirt,Blueste,1990,TA,NA,124000", *AMES_ROWS])
    frame = pd.read_csv(tmp_path / "ames_kaggle.csv").astype({"Alley": "category"})
    calls = openml(monkeypatch, frame)
    fetched, read = load_ames(source="openml"), load_ames(tmp_path)
    assert calls == [{"data_id": 42165, "target_column": None, "as_frame": True}]
    assert fetched.covariates == read.covariates
    assert fetched.labels.tolist() == read.labels.tolist()
    np.testing.assert_array_equal(fetched.X, read.X)
    np.testing.assert_array_equal(fetched.y, read.y)


def test_openml_may_leave_out_what_numbers_the_rows(monkeypatch, tmp_path):
    write(tmp_path, *TINY["ames"])
    openml(monkeypatch, pd.read_csv(tmp_path / "ames_kaggle.csv").drop(columns="Id"))
    np.testing.assert_array_equal(load_ames(source="openml").X, load_ames(tmp_path).X)


@pytest.mark.parametrize("kind", ["int64", "float64", "str", "category", "object"])
def test_zip_codes_of_openml_are_text_as_in_the_file(monkeypatch, kind):
    frame = pd.DataFrame(1.5, index=range(2), columns=[*KING, "added"])
    frame["zipcode"] = pd.Series(["98178", "98125"] if kind == "str" else [98178, 98125]).astype(kind)
    calls = openml(monkeypatch, frame)
    data = load_king_county(source="openml")
    assert calls[0]["data_id"] == 42092
    assert data.labels.tolist() == ["98178", "98125"]
    assert set(data.covariates) == set(_loaders._KING_COUNTY_COVARIATES)
    assert (data.X == 1.5).all()


def test_errors_about_openml_name_it(monkeypatch):
    openml(monkeypatch, pd.DataFrame({"price": [1.0]}))
    with pytest.raises(DataContentError, match="OpenML's data set 42092 does not have the column"):
        load_king_county(source="openml")


@pytest.mark.parametrize(
    "failure",
    [URLError("no route"), TimeoutError("too long"), IncompleteRead(b""), ValueError("md5 checksum")],
)
def test_a_failing_connection_hints_at_the_folder(monkeypatch, failure):
    def fetch(**_: Any) -> Bunch:
        raise failure

    monkeypatch.setattr(_sources, "fetch_openml", fetch)
    text = (
        rf"Data set 42092 .*{type(failure).__name__}(?s:.*)Hint: .*'king_county.csv' in a folder .* data_dir"
    )
    with pytest.raises(DownloadError, match=text) as caught:
        load_king_county(source="openml")
    assert isinstance(caught.value, ConnectionError)
    assert caught.value.__cause__ is failure


def test_without_pandas_openml_is_refused_before_it_is_asked(monkeypatch):
    calls = openml(monkeypatch, pd.DataFrame())
    monkeypatch.setattr(_sources, "find_spec", lambda _: None)
    with pytest.raises(
        MissingPandasError, match=r"needs the package 'pandas'(?s:.*)Hint: pip install pandas"
    ) as caught:
        load_ames(source="openml")
    assert isinstance(caught.value, SufrepError)
    assert isinstance(caught.value, ImportError)
    assert calls == []


def test_openml_does_not_have_the_full_ames():
    with pytest.raises(
        InvalidParameterError, match=r"source is 'folder' for 'ames_full.csv', which OpenML does not"
    ):
        load_ames(part="full", source="openml")


def test_a_folder_and_openml_exclude_each_other(tmp_path):
    with pytest.raises(InvalidParameterError, match="leave it out with 'openml'"):
        load_ames(tmp_path, source="openml")


# --- the real files ----------------------------------------------------------------------------------------


def by_hand(folder: Path, file: str) -> list[dict[str, str]]:
    with (folder / file).open(encoding="utf-8-sig", newline="") as source:
        return list(csv.DictReader(source))


@pytest.mark.parametrize(
    ("name", "shape", "n_levels", "group", "target"),
    [
        ("pakistan", (504, 19), 126, "City", "Education score"),
        ("ames", (1458, 75), 24, "Neighborhood", "SalePrice"),
        ("ames_full", (2930, 75), 28, "Neighborhood", "log SalePrice"),
        ("king_county", (21613, 17), 70, "zipcode", "price"),
    ],
)
def test_the_real_files_have_the_sizes_of_the_paper(data_dir, name, shape, n_levels, group, target):
    data = load_dataset(name, data_dir)
    assert (data.name, data.group, data.target) == (name, group, target)
    assert data.X.shape == shape
    assert data.y.shape == data.labels.shape == shape[:1]
    assert data.n_levels == n_levels
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert np.ptp(data.y) > 0


def test_every_data_set_of_the_paper_is_tested_on_its_real_file():
    assert list(DATASETS)[:4] == ["pakistan", "ames", "ames_full", "king_county"]


def test_king_county_holds_the_values_of_its_file(data_dir):
    rows, data = by_hand(data_dir, "king_county.csv"), load_king_county(data_dir)
    assert data.labels.tolist() == [row["zipcode"] for row in rows]
    assert data.y.tolist() == [float(row["price"]) for row in rows]
    for name in ("bathrooms", "lat", "long", "sqft_lot15"):
        assert data.columns()[name].tolist() == [float(row[name]) for row in rows]


def test_pakistan_holds_the_values_of_its_file(data_dir):
    rows, data = by_hand(data_dir, "pakistan.csv"), load_pakistan(data_dir)
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
    assert data.columns()["% Boys Enrolled"].tolist() == [
        float(row["% Boys Enrolled"][:-1]) for row in complete
    ]
    assert data.columns()["Population"].tolist() == [float(row["Population"]) for row in complete]


@pytest.mark.parametrize(
    ("name", "file", "frontage", "fireplace"),
    [
        ("ames", "ames_kaggle.csv", "LotFrontage", "FireplaceQu"),
        ("ames_full", "ames_full.csv", "Lot_Frontage", "Fireplace_Qu"),
    ],
)
def test_ames_holds_the_values_of_its_file(data_dir, name, file, frontage, fireplace):
    rows, data = by_hand(data_dir, file), load_dataset(name, data_dir)
    prices = [float(row["SalePrice"]) for row in rows]
    assert data.labels.tolist() == [row["Neighborhood"] for row in rows]
    np.testing.assert_allclose(data.y, prices if name == "ames" else [math.log(price) for price in prices])
    widths = [0.0 if row[frontage] in ("", "NA") else float(row[frontage]) for row in rows]
    assert data.columns()[frontage].tolist() == widths
    code = {"": 0, "NA": 0, "Ex": 1, "Fa": 2, "Gd": 3, "Po": 4, "TA": 5}
    assert data.columns()[fireplace].tolist() == [code[row[fireplace]] for row in rows]


def test_the_class_of_the_dwelling_is_a_number(data_dir):
    assert set(load_ames(data_dir).columns()["MSSubClass"]) >= {20.0, 60.0, 190.0}
    assert set(load_ames(data_dir, part="full").columns()["MS_SubClass"]) >= {20.0, 60.0, 190.0}


@pytest.mark.parametrize(
    ("load", "file"), [(load_ames, "ames_kaggle.csv"), (load_king_county, "king_county.csv")]
)
def test_the_first_rows_of_the_real_files_come_from_openml_alike(monkeypatch, tmp_path, data_dir, load, file):
    write(tmp_path, file, (data_dir / file).read_text(encoding="utf-8").splitlines()[:200])
    openml(monkeypatch, pd.read_csv(tmp_path / file, keep_default_na=False, na_values=["NA"]))
    fetched, read = load(source="openml"), load(tmp_path)
    assert len(read.y) == 199
    assert fetched.labels.tolist() == read.labels.tolist()
    assert fetched.covariates == read.covariates
    np.testing.assert_array_equal(fetched.X, read.X)
    np.testing.assert_array_equal(fetched.y, read.y)
