"""Simulated houses: the same everywhere, like real ones, and with prices that the zip code explains."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from sufrep import DropColumns, MeansEncoder
from sufrep.datasets import DATASETS, load_houses
from sufrep.errors import InvalidParameterError


def test_the_table_is_the_same_on_every_machine():
    houses = load_houses()
    whole = np.ascontiguousarray(np.column_stack([houses.X, houses.y, houses.labels.astype(int)]))
    assert hashlib.sha256(whole.tobytes()).hexdigest()[:16] == "215ec305452201ac"
    assert not np.array_equal(load_houses(seed=1).y, houses.y)


def test_zip_codes_are_text_with_uneven_numbers_of_rows():
    houses = load_houses()
    codes, counts = np.unique(houses.labels, return_counts=True)
    assert (len(codes), counts.sum(), counts.max() > 100) == (300, 4_000, True)
    assert all((counts == size).sum() >= 10 for size in (1, 2, 3))
    assert codes[0] == "00101"


def test_columns_have_plausible_values():
    houses = load_houses()
    ranges = {
        "bedrooms": (1, 7),
        "bathrooms": (1, 6),
        "living_area": (300, 8_000),
        "lot_area": (300, 200_000),
        "floors": (1, 3),
        "year_built": (1880, 2024),
        "condition": (1, 5),
        "distance_to_center": (0.5, 100),
        "zipcode": None,
    }
    columns = houses.columns()
    assert list(columns) == list(ranges)
    for name, limits in ranges.items():
        assert limits is None or limits[0] <= columns[name].min() < columns[name].max() <= limits[1], name
    assert 50_000 < houses.y.min() < 450_000 < houses.y.max() < 3_000_000


def test_other_houses_of_a_zip_code_say_what_a_house_alone_does_not():
    houses = load_houses()
    X = np.column_stack([houses.labels.astype(object), houses.X])
    model = HistGradientBoostingRegressor(random_state=0)
    errors = []
    for step in (DropColumns(0), MeansEncoder(0)):
        predicted = cross_val_predict(make_pipeline(step, model), X, houses.y, cv=3)
        errors.append(np.mean((predicted - houses.y) ** 2))
    assert errors[1] < 0.85 * errors[0]


@pytest.mark.parametrize("seed", [-1, 1.5, None, True, 2**40])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidParameterError, match="seed must be a whole number, from 0"):
        load_houses(seed=seed)


def test_they_are_no_data_set_of_the_experiments():
    assert "houses" not in DATASETS
