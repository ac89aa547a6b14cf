"""Four further data sets, larger than the paper's, each with its preparation."""

from __future__ import annotations

import math

import numpy as np

from sufrep.datasets._dataset import Dataset, assembled
from sufrep.datasets._sources import Folder, Source, open_parquet, open_table
from sufrep.errors import DataContentError

_ORANGE_JUICE = Source(
    "orange_juice.parquet", "the R package bayesm (orangeJuice, with yx and storedemo joined)"
)
_COUNTY_MURDERS = Source("countymurders.csv", "the R package wooldridge (countymurders)")
_INSTEVAL = Source("insteval.csv", "the R package lme4 (InstEval)")
_NYCFLIGHTS = Source(
    "nycflights.parquet", "the R package nycflights13 (flights, with weather and planes joined)"
)

_ORANGE_JUICE_DROPPED = ("profit", "store", "brand")
_COUNTY_MURDERS_DROPPED = ("arrests", "arrestrate", "murders", "execrate", "popul", "countyfips")
_INSTEVAL_COVARIATES = ("studage", "lectage", "service", "dept")
_NYCFLIGHTS_DROPPED = ("delayed15", "dest", "carrier_flight")
_NYCFLIGHTS_TEXT = ("carrier", "origin", "manufacturer", "plane_model")


def load_orange_juice(data_dir: Folder = None) -> Dataset:
    """Weekly sales of orange juice: 106,139 rows, 913 pairs of store and brand, 26 covariates.

    The profit is left out, because it contains the outcome, and so are the store and the brand, which are
    functions of the group. Every other column is a covariate.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``orange_juice.parquet``; by default the one that the environment variable
        ``SUFREP_DATA`` names. The file is ``orangeJuice`` of the R package bayesm: ``yx`` without its
        constant, with ``storedemo`` joined by store, ``own_price`` (the price of the row's own brand) and
        ``store_brand`` ("2_1": store 2, brand 1). Polars or pyarrow reads it.

    Returns
    -------
    Dataset
        Group ``store_brand``, target ``logmove``, the logarithm of the units sold.
    """
    table = open_parquet(_ORANGE_JUICE, data_dir)
    # What is left out must be there, as in load_ames (test_a_column_to_be_left_out_must_be_there).
    others = ("store_brand", "logmove", *_ORANGE_JUICE_DROPPED)
    table.require(others)
    covariates = {name: table.numbers(name) for name in table.names if name not in others}
    return assembled("orange_juice", table, "store_brand", "logmove", covariates, table.numbers("logmove"))


def load_county_murders(data_dir: Folder = None) -> Dataset:
    """Murders in counties of the United States: 37,349 rows, 2,197 counties from 1980 on, 12 covariates.

    Arrests, murders, executions per head, the population (its logarithm stays) and the number of the county
    within its state are left out; the number of the state is a covariate. Three rows lack figures of income:
    these are NaN.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``countymurders.csv``; by default the one that the environment variable
        ``SUFREP_DATA`` names. The file is ``countymurders`` of the R package wooldridge.

    Returns
    -------
    Dataset
        Group ``countyid``, target ``log1p murdrate``, log(1 + murders per 10,000 people).
    """
    table = open_table(_COUNTY_MURDERS, data_dir, "folder")
    others = ("countyid", "murdrate", *_COUNTY_MURDERS_DROPPED)
    table.require(others)
    covariates = {name: table.numbers(name, missing=math.nan) for name in table.names if name not in others}
    rate = table.numbers("murdrate")
    if rate.min() < 0:
        what = f"holds {rate.min():g} in column 'murdrate'; expected rates of 0 or more."
        raise DataContentError(table.where, what, f"get the file anew from {table.origin}.")
    return assembled("county_murders", table, "countyid", "log1p murdrate", covariates, np.log1p(rate))


def load_insteval(data_dir: Folder = None) -> Dataset:
    r"""Ratings of lectures at ETH Zurich: 73,421 rows, 1,128 lecturers, 4 covariates.

    The students, a second group column ``s``, are left out.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``insteval.csv``; by default the one that the environment variable ``SUFREP_DATA``
        names. The file is ``InstEval`` of the R package lme4.

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
    table = open_table(_INSTEVAL, data_dir, "folder")
    table.require(("d", "y", *_INSTEVAL_COVARIATES))
    covariates = {name: table.numbers(name) for name in table.names if name in _INSTEVAL_COVARIATES}
    return assembled("insteval", table, "d", "y", covariates, table.numbers("y"))


def load_nycflights(data_dir: Folder = None) -> Dataset:
    """Flights from New York in 2013: 327,346 rows, 4,037 aeroplanes, 20 covariates; the target is the delay.

    Carrier, origin, manufacturer and model become codes 1, 2, … in sorted order of their levels (by code
    point). What is missing is NaN, codes included; the covariates of the weather and of the aeroplane have
    such rows. The delay itself, whether it is above 15 minutes, and the two other group columns, destination
    and flight number, are left out.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``nycflights.parquet``; by default the one that the environment variable
        ``SUFREP_DATA`` names. The file is ``flights`` of the R package nycflights13, those that arrived,
        with ``weather`` and ``planes`` joined and the actual times removed. Polars or pyarrow reads it.

    Returns
    -------
    Dataset
        Group ``tailnum``, target ``slog arr_delay``, sign(v)·log(1 + abs(v)) of v minutes.
    """
    table = open_parquet(_NYCFLIGHTS, data_dir)
    others = ("tailnum", "arr_delay", *_NYCFLIGHTS_DROPPED)
    table.require((*others, *_NYCFLIGHTS_TEXT))
    covariates = {
        name: table.codes(name) if name in _NYCFLIGHTS_TEXT else table.numbers(name, missing=math.nan)
        for name in table.names
        if name not in others
    }
    delay = table.numbers("arr_delay")
    slog = np.sign(delay) * np.log1p(np.abs(delay))
    return assembled("nycflights", table, "tailnum", "slog arr_delay", covariates, slog)
