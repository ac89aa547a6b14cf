"""Simulated house sales: a table like many, for examples and the demonstration, that needs no file.

As in the paper, the zip code acts on the price only through a hidden state, here the type of neighbourhood
that a house is in, and this type also shapes the other columns. All draws are computed from uniform numbers
of PCG64, and all columns are rounded, so that the table is the same with every version of numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from sufrep._names import MAX_SEED
from sufrep.datasets._dataset import Dataset
from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats

_N_ROWS = 4_000
_N_ZIPCODES = 300
# No zip code of the United States begins like these, so that nobody takes the table for a real one.
_FIRST_ZIPCODE = 101
# Share of the houses of a zip code that are in a neighbourhood of its own type.
_OWN_SHARE = 0.9
# Spread of the logarithms of the expected numbers of houses, and of the prices around what is expected.
_SIZE_SPREAD, _PRICE_SPREAD = 1.1, 0.12


@dataclass(frozen=True, slots=True)
class _Neighbourhood:
    """What houses of one type have in common.

    Medians; what a square foot of house and of land costs; and by how much, as a logarithm, a house that was
    built a year later is dearer.
    """

    living_area: float
    lot_area: float
    year_built: float
    condition: float
    distance_to_center: float
    floors: float
    house_price: float
    land_price: float
    year_effect: float


_TYPES = (
    _Neighbourhood(1_300, 2_500, 1925, 3.2, 2.5, 1.8, 340, 12, -0.003),  # old centre
    _Neighbourhood(1_400, 3_200, 1938, 2.9, 4.5, 1.6, 230, 5, 0.004),  # old industry
    _Neighbourhood(1_800, 7_500, 1968, 3.4, 9.0, 1.3, 190, 7, 0.002),  # suburb
    _Neighbourhood(2_100, 5_500, 1996, 3.6, 12.0, 1.8, 175, 4, 0.006),  # new estate
    _Neighbourhood(2_300, 12_000, 1975, 3.7, 11.0, 1.6, 165, 9, 0.0),  # lake and hills
    _Neighbourhood(1_700, 20_000, 1965, 3.1, 20.0, 1.2, 150, 4, 0.001),  # countryside
)


def load_houses(seed: int = 0) -> Dataset:
    """Simulated house sales: 4,000 rows, 300 zip codes with 1 to about 100 rows each, 8 covariates.

    The data are made up. Each zip code has a type of neighbourhood, which nobody observes: it decides what a
    square foot costs, and what houses look like. So the other houses of a zip code say more about a price
    than the house alone does. The prices of the types were chosen, after looking at results, so that
    covariates help about as much as mean prices do: which encoding is best here says nothing about real data.

    Parameters
    ----------
    seed : int, default=0

    Returns
    -------
    Dataset
        Group ``zipcode``, target ``price`` in dollars; areas in square feet, ``distance_to_center`` in miles.

    Examples
    --------
    >>> from sufrep.datasets import load_houses
    >>> houses = load_houses()
    >>> houses
    Dataset('houses', n=4000, p=8, group='zipcode' (300 levels), target='price')
    >>> list(houses.columns())[:4]
    ['bedrooms', 'bathrooms', 'living_area', 'lot_area']
    """
    if not isinstance(seed, Integral) or isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
        raise InvalidParameterError("seed", seed, f"a whole number, from 0 to {MAX_SEED}")
    rng = np.random.Generator(np.random.PCG64(int(seed)))
    codes, types = _draw_places(rng)
    X, price = _draw_houses(rng, types)
    names = np.array([f"{_FIRST_ZIPCODE + code:05d}" for code in range(_N_ZIPCODES)])
    return Dataset(
        "houses", "zipcode", "price", tuple(X), np.column_stack([*X.values()]), names[codes], price
    )


def _draw_places(rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Zip code and type of neighbourhood of each house."""
    sizes = np.exp(_SIZE_SPREAD * _normal(rng, _N_ZIPCODES))
    drawn = np.searchsorted(np.cumsum(sizes / sizes.sum()), rng.random(_N_ROWS - _N_ZIPCODES))
    # One house each, so that every zip code is there.
    codes = np.concatenate([np.arange(_N_ZIPCODES), np.minimum(drawn, _N_ZIPCODES - 1)])
    codes = codes[np.argsort(rng.random(_N_ROWS))]
    own = (rng.random(_N_ZIPCODES) * len(_TYPES)).astype(np.intp)
    elsewhere = (rng.random(_N_ROWS) * len(_TYPES)).astype(np.intp)
    return codes, np.where(rng.random(_N_ROWS) < _OWN_SHARE, own[codes], elsewhere)


def _draw_houses(rng: np.random.Generator, types: Codes) -> tuple[dict[str, Floats], Floats]:
    """Covariates and prices, given the types of neighbourhoods."""

    def typical(name: str) -> Floats:
        return np.array([getattr(kind, name) for kind in _TYPES], dtype=np.float64)[types]

    def spread(scale: float) -> Floats:
        return scale * _normal(rng, len(types))

    living = np.round(typical("living_area") * np.exp(spread(0.33)), -1)
    bedrooms = np.clip(np.round(living / 550 + spread(0.7)), 1, 7)
    bathrooms = np.clip(np.round(2 * (living / 900 + spread(0.45))) / 2, 1, 6)
    lot = np.round(typical("lot_area") * np.exp(spread(0.5)), -2)
    floors = np.clip(np.round(2 * (typical("floors") + spread(0.4))) / 2, 1, 3)
    year = np.clip(np.round(typical("year_built") + spread(14.0)), 1880, 2024)
    condition = np.clip(np.round(typical("condition") + spread(0.8)), 1, 5)
    distance = np.round(typical("distance_to_center") * np.exp(spread(0.3)), 1)
    price = typical("house_price") * living + typical("land_price") * lot + 9_000.0 * bathrooms
    price *= np.exp(0.05 * (condition - 3) + typical("year_effect") * (year - 1960) - 0.005 * distance)
    columns = {
        "bedrooms": bedrooms,
        "bathrooms": bathrooms,
        "living_area": living,
        "lot_area": lot,
        "floors": floors,
        "year_built": year,
        "condition": condition,
        "distance_to_center": distance,
    }
    return columns, np.round(price * np.exp(spread(_PRICE_SPREAD)), -2)


def _normal(rng: np.random.Generator, n: int) -> Floats:
    # random() may be 0, whose quantile is infinite.
    return np.asarray(ndtri(np.maximum(rng.random(n), 2.0**-53)))
