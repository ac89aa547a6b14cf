"""The paper's three data sets, each with its preparation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from sufrep.datasets._dataset import Dataset, assembled
from sufrep.datasets._sources import Folder, Place, Source, open_table
from sufrep.datasets._table import number
from sufrep.errors import DataContentError, InvalidParameterError

if TYPE_CHECKING:
    from sufrep._arrays import Floats
    from sufrep.datasets._table import Table

Part: TypeAlias = Literal["kaggle", "full"]

_AUTHORS = "the public repository of the paper's authors (github.com/grf-labs/sufrep)"
_PAKISTAN = Source("pakistan.csv", _AUTHORS)
_KING_COUNTY = Source("king_county.csv", f"{_AUTHORS}, or from OpenML (source='openml')", openml=42092)
_AMES: dict[Part, Source] = {
    "kaggle": Source("ames_kaggle.csv", f"{_AUTHORS}, or from OpenML (source='openml')", openml=42165),
    "full": Source("ames_full.csv", "the R package AmesHousing (ames_raw, with _ for blanks in names)"),
}

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
# Columns that the authors left out, and those that number the rows: the parts spell names differently.
_AMES_DROPPED: dict[Part, tuple[str, ...]] = {
    "kaggle": ("PoolQC", "GarageQual", "GarageYrBlt"),
    "full": ("Pool_QC", "Garage_Qual", "Garage_Yr_Blt"),
}
_AMES_NUMBERING: dict[Part, tuple[str, ...]] = {"kaggle": ("Id",), "full": ("Order", "PID")}


def load_pakistan(data_dir: Folder = None) -> Dataset:
    """Education in the cities of Pakistan: 504 rows, 126 cities, 19 covariates; the target is a score.

    The level Tor Ghar and rows with a null in a column that is used are left out; percent signs and thousands
    separators are removed. The paper counts 127 cities, Tor Ghar among them, and 20 covariates.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``pakistan.csv``; by default the one that the environment variable ``SUFREP_DATA``
        names. The file is in the public repository of the paper's authors.

    Returns
    -------
    Dataset
        Group ``City``, target ``Education score``.
    """
    table = open_table(_PAKISTAN, data_dir, "folder")
    used = ("Education score", "City", *_PAKISTAN_COVARIATES)
    table.require(used)
    table = table.keep(lambda row: row["City"] != "Tor Ghar" and all(row[name] is not None for name in used))
    names = [name for name in table.names if name in _PAKISTAN_COVARIATES]
    covariates = {name: table.numbers(name, parse=_figure) for name in names}
    y = table.numbers("Education score", parse=_figure)
    return assembled("pakistan", table, "City", "Education score", covariates, y)


def load_king_county(data_dir: Folder = None, *, source: Place = "folder") -> Dataset:
    """House sales in King County: 21,613 rows, 70 zip codes, 17 covariates; the target is the price.

    Everything but id and date is used. The zip code is text; latitude and longitude are covariates.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``king_county.csv``; by default the one that the environment variable
        ``SUFREP_DATA`` names. The file is in the public repository of the paper's authors.
    source : {"folder", "openml"}, default "folder"
        "openml" fetches data set 42092, ``house_sales``, which needs pandas and a connection.

    Returns
    -------
    Dataset
        Group ``zipcode``, target ``price``.
    """
    table = open_table(_KING_COUNTY, data_dir, source)
    table.require(("price", "zipcode", *_KING_COUNTY_COVARIATES))
    names = [name for name in table.names if name in _KING_COUNTY_COVARIATES]
    covariates = {name: table.numbers(name) for name in names}
    return assembled("king_county", table, "zipcode", "price", covariates, table.numbers("price"))


def load_ames(data_dir: Folder = None, *, part: Part = "kaggle", source: Place = "folder") -> Dataset:
    r"""House sales in Ames, Iowa: the part that the authors ran, or the full data that the paper names.

    Text columns other than the neighbourhood become codes 1, 2, … in sorted order of their levels (by code
    point), and what is missing, numbers included, becomes 0. A column all of whose values are numbers is
    numeric, the class of the dwelling (20, 30, …) included. The quality of the pool, the quality and the year
    of the garage, and the numbers of the rows are left out.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``ames_kaggle.csv`` (in the public repository of the paper's authors) or
        ``ames_full.csv`` (from the R package AmesHousing); by default the one that the environment variable
        ``SUFREP_DATA`` names.
    part : {"kaggle", "full"}, default "kaggle"
        "kaggle" is what the authors ran: 1,458 sales, 24 neighbourhoods, without the two sales of Blueste.
        "full" has 2,930 sales, those of "kaggle" among them, in 28 neighbourhoods; its target is the
        logarithm of the price. Both have 75 covariates.
    source : {"folder", "openml"}, default "folder"
        "openml" fetches data set 42165, ``house_prices``, which is the Kaggle part. This needs pandas and a
        connection.

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
    table = open_table(_AMES[part], data_dir, source)
    dropped, numbering = _AMES_DROPPED[part], _AMES_NUMBERING[part]
    # A column to be dropped would pass for a covariate under another name, so it must be there
    # (test_a_column_to_be_dropped_must_be_there). scikit-learn may leave out OpenML's row numbers itself.
    table.require(("Neighborhood", "SalePrice", *dropped, *(numbering if source == "folder" else ())))
    if part == "kaggle":
        table = table.keep(lambda row: row["Neighborhood"] != "Blueste")
    others = {"Neighborhood", "SalePrice", *dropped, *numbering}
    covariates = {name: _coded(table, name) for name in table.names if name not in others}
    price = table.numbers("SalePrice")
    if part == "kaggle":
        return assembled("ames", table, "Neighborhood", "SalePrice", covariates, price)
    if price.min() <= 0:
        what = f"holds {price.min():g} in column 'SalePrice'; expected prices above 0, for their logarithm."
        raise DataContentError(table.where, what, f"get the file anew from {table.origin}.")
    return assembled("ames_full", table, "Neighborhood", "log SalePrice", covariates, np.log(price))


def _coded(table: Table, name: str) -> Floats:
    return table.numbers(name, missing=0.0) if table.is_numeric(name) else table.codes(name)


def _figure(text: str) -> float | None:
    """A number with percent sign and thousands separators: "5,379.0", "54.77%"."""
    return number(re.sub(r",(?=\d{3}(\D|$))", "", text).removesuffix("%"))
