"""The loaders by name: the three data sets of the paper and four larger ones, each with its preparation."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import narwhals as nw
import numpy as np

from sufrep.datasets._classes import load_midwest_survey, load_open_payments
from sufrep.datasets._dataset import Dataset, assemble
from sufrep.datasets._sigrist import load_insteval_sigrist, load_wages
from sufrep.datasets._sources import FIGURE, DataFile, Folder, Source, open_raw_table
from sufrep.datasets._text_tables import load_movielens, load_videogame_sales
from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

Part: TypeAlias = Literal["kaggle", "full"]
Delay: TypeAlias = Literal["arr_delay", "delayed15"]

_AUTHORS = "the public repository of the paper's authors (github.com/grf-labs/sufrep)"
_PAKISTAN = DataFile("pakistan.csv", _AUTHORS, "City")
_KING_COUNTY = DataFile(
    "king_county.csv", f"{_AUTHORS}, or from OpenML (source='openml')", "zipcode", openml=42092
)
_AMES: dict[Part, DataFile] = {
    "kaggle": DataFile(
        "ames_kaggle.csv", f"{_AUTHORS}, or from OpenML (source='openml')", "Neighborhood", openml=42165
    ),
    "full": DataFile(
        "ames_full.csv", "the R package AmesHousing (ames_raw, _ for blanks in names)", "Neighborhood"
    ),
}
_ORANGE_JUICE = DataFile(
    "orange_juice.parquet", "the R package bayesm (orangeJuice, with yx and storedemo joined)", "store_brand"
)
_COUNTY_MURDERS = DataFile("countymurders.csv", "the R package wooldridge (countymurders)", "countyid")
_INSTEVAL = DataFile("insteval.csv", "the R package lme4 (InstEval)", "d")
_NYCFLIGHTS = DataFile(
    "nycflights.parquet", "the R package nycflights13 (flights, with weather and planes joined)", "tailnum"
)

_PAKISTAN_COVARIATES = (
    "% Boys Enrolled",
    "% Complete Primary Schools",
    "Bomb Blasts Occurred",
    "Boundary wall",
    "Building condition satisfactory",
    "Complete Primary Schools",
    "Drinking water",
    "Drone attacks in Pakistan",
    "Electricity",
    "Global Terrorism Index - Pakistan",
    "No Facility",
    "Number of secondary schools",
    "Pakistan Economic Growth",
    "Population",
    "Primary Schools with single classroom",
    "Primary Schools with single teacher",
    "School infrastructure score",
    "Toilet",
    "Total number of schools",
)
# Listed, because OpenML may add columns of its own.
_KING_COUNTY_COVARIATES = (
    "bedrooms",
    "bathrooms",
    "sqft_living",
    "sqft_lot",
    "floors",
    "waterfront",
    "view",
    "condition",
    "grade",
    "sqft_above",
    "sqft_basement",
    "yr_built",
    "yr_renovated",
    "lat",
    "long",
    "sqft_living15",
    "sqft_lot15",
)
# Columns that the authors left out, and row numbers; the two parts spell names differently.
_AMES_DROPPED: dict[Part, tuple[str, ...]] = {
    "kaggle": ("PoolQC", "GarageQual", "GarageYrBlt"),
    "full": ("Pool_QC", "Garage_Qual", "Garage_Yr_Blt"),
}
_AMES_NUMBERING: dict[Part, tuple[str, ...]] = {"kaggle": ("Id",), "full": ("Order", "PID")}
_ORANGE_JUICE_DROPPED = ("profit", "store", "brand")
_COUNTY_MURDERS_DROPPED = ("arrests", "arrestrate", "murders", "execrate", "popul", "countyfips")
_INSTEVAL_COVARIATES = ("studage", "lectage", "service", "dept")
_NYCFLIGHTS_DROPPED = ("dest", "carrier_flight")
_NYCFLIGHTS_TEXT = ("carrier", "origin", "manufacturer", "plane_model")


def load_pakistan(data_dir: Folder = None) -> Dataset:
    """Education in the cities of Pakistan: 504 rows, 126 cities, 19 covariates; the target is a score.

    The city Tor Ghar and rows with a missing value in a used column are left out; percent signs and thousands
    separators are removed. The paper counts 127 cities, Tor Ghar among them, and 20 covariates.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``pakistan.csv``; by default the value of the environment variable ``SUFREP_DATA``. The
        file is in the public repository of the paper's authors.

    Returns
    -------
    Dataset
        Group ``City``, target ``Education score``.
    """
    table = open_raw_table(_PAKISTAN, data_dir)
    used = ("Education score", "City", *_PAKISTAN_COVARIATES)
    table.require(used)
    table = table.filter(*(~nw.col(name).is_null() for name in used), nw.col("City") != "Tor Ghar")
    covariates = {
        name: table.numbers(name, pattern=FIGURE) for name in table.names if name in _PAKISTAN_COVARIATES
    }
    y = table.numbers("Education score", pattern=FIGURE)
    return assemble("pakistan", table, "City", "Education score", covariates, y)


def load_king_county(data_dir: Folder = None, *, source: Source = "folder") -> Dataset:
    """House sales in King County: 21,613 rows, 70 zip codes, 17 covariates; the target is the price.

    Every column is used except id and date. Zip codes are text; latitude and longitude are covariates.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``king_county.csv``; by default the value of the environment variable ``SUFREP_DATA``. The
        file is in the public repository of the paper's authors.
    source : {"folder", "openml"}, default "folder"
        "openml" downloads data set 42092, ``house_sales``, which needs pandas and an internet connection.

    Returns
    -------
    Dataset
        Group ``zipcode``, target ``price``.
    """
    table = open_raw_table(_KING_COUNTY, data_dir, source)
    table.require(("price", "zipcode", *_KING_COUNTY_COVARIATES))
    covariates = {name: table.numbers(name) for name in table.names if name in _KING_COUNTY_COVARIATES}
    return assemble("king_county", table, "zipcode", "price", covariates, table.numbers("price"))


def load_ames(data_dir: Folder = None, *, part: Part = "kaggle", source: Source = "folder") -> Dataset:
    r"""House sales in Ames, Iowa: the part that the authors used, or the full data that the paper names.

    Text columns other than the neighbourhood become codes 1, 2, … in sorted order of their levels (by code
    point), and missing values, in numeric columns too, become 0. A column whose values are all numbers is
    numeric, including the class of the dwelling (20, 30, …). The quality of the pool, the quality and the
    year of the garage, and the row numbers are left out.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``ames_kaggle.csv`` (in the public repository of the paper's authors) or ``ames_full.csv``
        (from the R package AmesHousing); by default the value of the environment variable ``SUFREP_DATA``.
    part : {"kaggle", "full"}, default "kaggle"
        "kaggle" is what the authors used: 1,458 sales, 24 neighbourhoods, without the two sales in Blueste.
        "full" has 2,930 sales, including those of "kaggle", in 28 neighbourhoods; its target is the logarithm
        of the price. Both have 75 covariates.
    source : {"folder", "openml"}, default "folder"
        "openml" downloads data set 42165, ``house_prices``, which is the Kaggle part. This needs pandas and
        an internet connection.

    Returns
    -------
    Dataset
        Group ``Neighborhood``, target ``SalePrice`` or ``log SalePrice``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sufrep.datasets import load_ames
    >>> lines = [
    ...     "Id,LotFrontage,Alley,Neighborhood,GarageYrBlt,GarageQual,PoolQC,SalePrice",
    ...     "1,65,NA,CollgCr,2003,TA,NA,208500",
    ...     "2,NA,Pave,Veenker,1976,TA,NA,181500",
    ...     "3,68,Grvl,CollgCr,2001,TA,NA,223500",
    ... ]
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "ames_kaggle.csv").write_text("\n".join(lines))
    ...     data = load_ames(folder)
    >>> data
    Dataset('ames', n=3, p=2, group='Neighborhood' (2 levels), target='SalePrice')
    >>> data.columns()["LotFrontage"], data.columns()["Alley"]
    (array([65.,  0., 68.]), array([0., 2., 1.]))
    """
    if part not in _AMES:
        raise InvalidParameterError("part", part, "'kaggle' or 'full'")
    table = open_raw_table(_AMES[part], data_dir, source)
    dropped, numbering = _AMES_DROPPED[part], _AMES_NUMBERING[part]
    # A column to be dropped would become a covariate under another name, so it must be there
    # (test_a_column_to_be_dropped_must_be_there). scikit-learn may remove OpenML's row numbers itself.
    table.require(("Neighborhood", "SalePrice", *dropped, *(numbering if source == "folder" else ())))
    if part == "kaggle":
        table = table.filter(nw.col("Neighborhood").is_null() | (nw.col("Neighborhood") != "Blueste"))
    others = {"Neighborhood", "SalePrice", *dropped, *numbering}
    covariates = {
        name: table.numbers(name, missing=0.0) if table.is_numeric(name) else table.codes(name, missing=0.0)
        for name in table.names
        if name not in others
    }
    price = table.numbers("SalePrice")
    if part == "kaggle":
        return assemble("ames", table, "Neighborhood", "SalePrice", covariates, price)
    if price.min() <= 0:
        table.fail(f"holds {price.min():g} in column 'SalePrice'; expected prices above 0.")
    return assemble("ames_full", table, "Neighborhood", "log SalePrice", covariates, np.log(price))


def load_orange_juice(data_dir: Folder = None) -> Dataset:
    """Weekly sales of orange juice: 106,139 rows, 913 pairs of store and brand, 26 covariates.

    The profit is left out, because it is computed from the target, and so are the store and the brand, which
    are functions of the group. Every other column is a covariate.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``orange_juice.parquet``; by default the value of the environment variable
        ``SUFREP_DATA``. The file is ``orangeJuice`` of the R package bayesm: ``yx`` without its constant,
        joined with ``storedemo`` by store, plus ``own_price`` (the price of the row's own brand) and
        ``store_brand`` ("2_1": store 2, brand 1).

    Returns
    -------
    Dataset
        Group ``store_brand``, target ``logmove``, the logarithm of the units sold.
    """
    table = open_raw_table(_ORANGE_JUICE, data_dir)
    others = ("store_brand", "logmove", *_ORANGE_JUICE_DROPPED)
    table.require(others)
    covariates = {name: table.numbers(name) for name in table.names if name not in others}
    return assemble("orange_juice", table, "store_brand", "logmove", covariates, table.numbers("logmove"))


def load_county_murders(data_dir: Folder = None) -> Dataset:
    """Murders in counties of the United States: 37,349 rows, 2,197 counties from 1980 on, 12 covariates.

    Arrests, murders, executions per head, the population (its logarithm stays) and the number of the county
    within its state are left out; the number of the state is a covariate. Three rows have missing incomes,
    which are NaN.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``countymurders.csv``; by default the value of the environment variable ``SUFREP_DATA``.
        The file is ``countymurders`` of the R package wooldridge.

    Returns
    -------
    Dataset
        Group ``countyid``, target ``log1p murdrate``, log(1 + murders per 10,000 people).
    """
    table = open_raw_table(_COUNTY_MURDERS, data_dir)
    others = ("countyid", "murdrate", *_COUNTY_MURDERS_DROPPED)
    table.require(others)
    covariates = {name: table.numbers(name, missing=math.nan) for name in table.names if name not in others}
    rate = table.numbers("murdrate")
    if rate.min() < 0:
        table.fail(f"holds {rate.min():g} in column 'murdrate'; expected rates of at least 0.")
    return assemble("county_murders", table, "countyid", "log1p murdrate", covariates, np.log1p(rate))


def load_insteval(data_dir: Folder = None) -> Dataset:
    r"""Ratings of lectures at ETH Zurich: 73,421 rows, 1,128 lecturers, 4 covariates.

    The students, a second group column ``s``, are left out.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``insteval.csv``; by default the value of the environment variable ``SUFREP_DATA``. The
        file is ``InstEval`` of the R package lme4.

    Returns
    -------
    Dataset
        Group ``d``, target ``y``, a rating from 1 to 5.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sufrep.datasets import load_insteval
    >>> lines = ["s,d,studage,lectage,service,dept,y", "1,1002,2,2,0,2,5", "1,1050,2,1,1,6,2"]
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "insteval.csv").write_text("\n".join(lines))
    ...     data = load_insteval(folder)
    >>> data
    Dataset('insteval', n=2, p=4, group='d' (2 levels), target='y')
    >>> data.labels, data.y
    (array(['1002', '1050'], dtype='<U4'), array([5., 2.]))
    """
    table = open_raw_table(_INSTEVAL, data_dir)
    table.require(("d", "y", *_INSTEVAL_COVARIATES))
    covariates = {name: table.numbers(name) for name in table.names if name in _INSTEVAL_COVARIATES}
    return assemble("insteval", table, "d", "y", covariates, table.numbers("y"))


def load_nycflights(data_dir: Folder = None, *, target: Delay = "arr_delay") -> Dataset:
    """Flights from New York in 2013: 327,346 rows, 4,037 aeroplanes, 20 covariates; the target is the delay.

    Carrier, origin, manufacturer and model become codes 1, 2, … in sorted order of their levels (by code
    point). Missing values are NaN, also among the codes; the covariates of the weather and of the aeroplane
    have some. The delay itself, whether it exceeds 15 minutes, and the two other group columns, destination
    and flight number, are left out.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``nycflights.parquet``; by default the value of the environment variable ``SUFREP_DATA``.
        The file is ``flights`` of the R package nycflights13, restricted to flights that arrived, joined with
        ``weather`` and ``planes``, without the actual times.
    target : {"arr_delay", "delayed15"}, default "arr_delay"
        The delay, or whether it exceeds 15 minutes, which are two classes.

    Returns
    -------
    Dataset
        Group ``tailnum``, target ``slog arr_delay``, sign(v)·log(1 + abs(v)) of v minutes, or ``delayed15``.
    """
    if target not in get_args(Delay):
        raise InvalidParameterError("target", target, "'arr_delay' or 'delayed15'")
    table = open_raw_table(_NYCFLIGHTS, data_dir)
    others = ("tailnum", *get_args(Delay), *_NYCFLIGHTS_DROPPED)
    table.require((*others, *_NYCFLIGHTS_TEXT))
    covariates = {
        name: table.codes(name, missing=math.nan)
        if name in _NYCFLIGHTS_TEXT
        else table.numbers(name, missing=math.nan)
        for name in table.names
        if name not in others
    }
    if target == "delayed15":
        classes, y = table.classes(target)
        return assemble("nycflights_delayed", table, "tailnum", target, covariates, y, classes=classes)
    delay = table.numbers("arr_delay")
    slog = np.sign(delay) * np.log1p(np.abs(delay))
    return assemble("nycflights", table, "tailnum", "slog arr_delay", covariates, slog)


DATASETS: dict[str, Callable[..., Dataset]] = {
    "pakistan": load_pakistan,
    "ames": load_ames,
    "ames_full": partial(load_ames, part="full"),
    "king_county": load_king_county,
    "orange_juice": load_orange_juice,
    "county_murders": load_county_murders,
    "insteval": load_insteval,
    "nycflights": load_nycflights,
    "nycflights_delayed": partial(load_nycflights, target="delayed15"),
    "open_payments": load_open_payments,
    "midwest_survey": load_midwest_survey,
    "wages": load_wages,
    "insteval_sigrist": load_insteval_sigrist,
    "videogame_sales": load_videogame_sales,
    "movielens": load_movielens,
    "open_payments_text": partial(load_open_payments, groups="all"),
    "midwest_survey_text": partial(load_midwest_survey, groups="all"),
}


def load_dataset(name: str, data_dir: Folder = None) -> Dataset:
    """Load one of :data:`DATASETS` by its name.

    Parameters
    ----------
    name : str
        "pakistan", "ames", "ames_full" or "king_county" of the paper; "orange_juice", "county_murders",
        "insteval" or "nycflights" of the further benchmarks; "nycflights_delayed", "open_payments" or
        "midwest_survey", whose targets are classes; "wages" or "insteval_sigrist", which were
        published with their folds; "videogame_sales", "movielens", "open_payments_text" or
        "midwest_survey_text", with several groups.
    data_dir : path, optional
        Folder with its file; by default the value of the environment variable ``SUFREP_DATA``.

    Returns
    -------
    Dataset
    """
    if name not in DATASETS:
        raise InvalidParameterError("name", name, f"one of {', '.join(DATASETS)}")
    return DATASETS[name](data_dir)
