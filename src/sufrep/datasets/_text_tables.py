"""Loaders of tables with several group columns, whose targets are numbers."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from sufrep.datasets._dataset import assemble
from sufrep.datasets._sources import DataFile, Folder, open_raw_table

if TYPE_CHECKING:
    from sufrep._arrays import Array, Floats
    from sufrep.datasets._dataset import Dataset

_VIDEOGAMES = DataFile(
    "text_tables/videogame_sales.csv.gz", "the example data of skrub (videogame_sales)", "Publisher"
)
_MOVIELENS = DataFile(
    "text_tables/movielens.csv.gz",
    "the site of GroupLens (ml-latest-small: ratings.csv and movies.csv joined by movieId)",
    "movieId",
)
_GAME_GROUPS = ("Name", "Platform", "Genre")
_MOVIE_GROUPS = ("userId", "genres")
# "Toy Story (1995)", "Death Note (2006–2007)"
_YEAR = re.compile(r"\((\d{4})\D?[^()]*\)\s*$")


def load_videogame_sales(data_dir: Folder = None) -> Dataset:
    """Sales of video games: 16,572 rows, 578 publishers; further groups are game, platform and genre.

    The only covariate is the year. The rank and the sales by region are left out, because they give the
    target away.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``text_tables/videogame_sales.csv.gz``; by default the value of the environment variable
        ``SUFREP_DATA``. The file is ``videogame_sales`` of skrub's example data.

    Returns
    -------
    Dataset
        Groups ``Publisher``, ``Name``, ``Platform`` and ``Genre``; target ``log Global_Sales``.
    """
    table = open_raw_table(_VIDEOGAMES, data_dir)
    table.require(("Publisher", "Year", "Global_Sales", *_GAME_GROUPS))
    sales = table.numbers("Global_Sales")
    if sales.min() <= 0:
        table.fail(f"holds {sales.min():g} in column 'Global_Sales'; expected sales above 0.")
    return assemble(
        "videogame_sales",
        table,
        "Publisher",
        "log Global_Sales",
        {"Year": table.numbers("Year", missing=math.nan)},
        np.log(sales),
        other_groups=_GAME_GROUPS,
    )


def load_movielens(data_dir: Folder = None) -> Dataset:
    """Ratings of films: 100,836 rows, 9,724 films; further groups are the viewer and the list of genres.

    The only covariate is the year in the title, NaN where there is none. The time of the rating is left out.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``text_tables/movielens.csv.gz``; by default the value of the environment variable
        ``SUFREP_DATA``. The file is ``ml-latest-small`` of GroupLens, whose terms apply: ``ratings.csv``,
        joined with ``movies.csv``.

    Returns
    -------
    Dataset
        Groups ``movieId``, ``userId`` and ``genres``; target ``rating``, from 0.5 to 5.
    """
    table = open_raw_table(_MOVIELENS, data_dir)
    table.require(("movieId", "rating", "title", *_MOVIE_GROUPS))
    covariates = {"year": _years(table.labels("title"))}
    rating = table.numbers("rating")
    return assemble("movielens", table, "movieId", "rating", covariates, rating, other_groups=_MOVIE_GROUPS)


def _years(titles: Array) -> Floats:
    """The year at the end of each title, NaN where there is none; (n,)."""
    distinct, place = np.unique(titles, return_inverse=True)
    found = [_YEAR.search(title) for title in distinct.tolist()]
    return np.array([math.nan if year is None else float(year[1]) for year in found])[place]
