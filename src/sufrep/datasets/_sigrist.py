"""Wages of young women and ratings of lectures: data, folds and results of a published comparison of methods.

Sigrist (2023), "A Comparison of Machine Learning Methods for Data with High-Cardinality Categorical
Variables".
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np

from sufrep.datasets._dataset import assemble
from sufrep.datasets._sources import DataFile, Folder, find_file, open_raw_table
from sufrep.errors import DataContentError

if TYPE_CHECKING:
    from pathlib import Path

    from sufrep._arrays import Codes
    from sufrep.datasets._dataset import Dataset

# Number of published folds.
PUBLISHED_FOLDS = 5
_ORIGIN = "the public repository of Sigrist (2023)"
_WAGES = DataFile("sigrist2023/wages.csv.gz", _ORIGIN, "idcode")
_WAGES_FOLDS = DataFile("sigrist2023/wages.json.gz", _ORIGIN, "idcode")
_RATINGS = DataFile("insteval.csv", "the R package lme4 (InstEval)", "d")
_RATINGS_FOLDS = DataFile("sigrist2023/inst_eval.json.gz", _ORIGIN, "d")
_RATINGS_COVARIATES = ("studage", "lectage", "service")
_PUBLISHED = DataFile("sigrist2023/published.csv", _ORIGIN, "method")


def load_wages(data_dir: Folder = None) -> Dataset:
    """Wages in the National Longitudinal Survey: 28,013 rows, 4,696 young women, 52 covariates.

    Every column but the time ``t`` is used. The folds are those of the publication; a woman's rows are in
    several of them.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``sigrist2023/wages.csv.gz`` and the folds, ``sigrist2023/wages.json.gz``: a list of the
        training rows of each fold, counted from 1. By default the value of the environment variable
        ``SUFREP_DATA``.

    Returns
    -------
    Dataset
        Group ``idcode``, target ``ln_wage``, the logarithm of the wage; with `folds`.
    """
    table = open_raw_table(_WAGES, data_dir)
    others = ("idcode", "ln_wage", "t")
    table.require(others)
    covariates = {name: table.numbers(name) for name in table.names if name not in others}
    y = table.numbers("ln_wage")
    folds = _read_folds(find_file(_WAGES_FOLDS, data_dir), len(y))
    return assemble("wages", table, "idcode", "ln_wage", covariates, y, folds=folds)


def load_insteval_sigrist(data_dir: Folder = None) -> Dataset:
    """Ratings of lectures at ETH Zurich with three groups: 1,128 lecturers, 2,972 students, 14 departments.

    These are the 73,421 rows of :func:`load_insteval`, with the published folds.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``insteval.csv`` (``InstEval`` of the R package lme4) and the folds,
        ``sigrist2023/inst_eval.json.gz``: a list of the training rows of each fold, counted from 1. By
        default the value of the environment variable ``SUFREP_DATA``.

    Returns
    -------
    Dataset
        Group ``d``, further groups ``s`` and ``dept``, target ``y``, a rating from 1 to 5; with `folds`.
    """
    table = open_raw_table(_RATINGS, data_dir)
    table.require(("d", "s", "dept", "y", *_RATINGS_COVARIATES))
    covariates = {name: table.numbers(name) for name in _RATINGS_COVARIATES}
    y = table.numbers("y")
    folds = _read_folds(find_file(_RATINGS_FOLDS, data_dir), len(y))
    others = ("s", "dept")
    return assemble("insteval_sigrist", table, "d", "y", covariates, y, folds=folds, other_groups=others)


def load_published_wages(data_dir: Folder = None) -> dict[str, list[float]]:
    """Return the published mean squared errors on the folds of :func:`load_wages`, by method.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``sigrist2023/published.csv``; by default the value of the environment variable
        ``SUFREP_DATA``.

    Returns
    -------
    dict of str to list of float, length 5
        In the order of the file: linear (a linear mixed model), boost_cat (LightGBM with categories),
        boost_cont (with the codes as numbers), catboost, and gpboost (boosting with random effects).
    """
    return _load_published("wages", data_dir)


def load_published_insteval(data_dir: Folder = None) -> dict[str, list[float]]:
    """Return the published mean squared errors on the folds of :func:`load_insteval_sigrist`, by method.

    Parameters and result are those of :func:`load_published_wages`.
    """
    return _load_published("inst_eval", data_dir)


def _load_published(data: str, data_dir: Folder) -> dict[str, list[float]]:
    """The rows of the published file about one data set."""
    table = open_raw_table(_PUBLISHED, data_dir)
    table.require(("data", "method", "fold", "test_mse"))
    table = table.filter(nw.col("data") == data)
    rows = zip(table.labels("method"), table.numbers("fold"), table.numbers("test_mse"), strict=True)
    found: dict[str, dict[int, float]] = {}
    for method, fold, error in rows:
        found.setdefault(str(method), {})[int(fold)] = float(error)
    for method, errors in found.items():
        if sorted(errors) != list(range(PUBLISHED_FOLDS)):
            table.fail(
                f"holds the folds {sorted(errors)} of {method!r}; expected 0 to {PUBLISHED_FOLDS - 1}."
            )
    return {method: [errors[fold] for fold in range(PUBLISHED_FOLDS)] for method, errors in found.items()}


def _read_folds(path: Path, n_rows: int) -> Codes:
    """The fold in which each row is tested; raise unless every row is tested in exactly one of five."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            trained = [np.asarray(rows, dtype=np.intp) for rows in json.load(file)]
    except (OSError, EOFError, UnicodeError, ValueError, TypeError) as error:
        raise _wrong_folds(path, f"cannot be read: {error}.") from error
    if any(rows.ndim != 1 or rows.min(initial=1) < 1 or rows.max(initial=1) > n_rows for rows in trained):
        raise _wrong_folds(path, f"holds something else than lists of rows from 1 to {n_rows}.")
    tested = np.ones((len(trained), n_rows), dtype=bool)
    for fold, rows in enumerate(trained):
        tested[fold, rows - 1] = False
    if len(trained) != PUBLISHED_FOLDS or (tested.sum(axis=0) != 1).any():
        what = (
            f"holds {len(trained)} fold(s); expected {PUBLISHED_FOLDS} which test each of {n_rows} rows once."
        )
        raise _wrong_folds(path, what)
    return np.asarray(tested.argmax(axis=0))


def _wrong_folds(path: Path, what: str) -> DataContentError:
    return DataContentError(repr(str(path)), what, f"download it again from {_ORIGIN}.")
