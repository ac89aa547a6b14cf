"""Rows in time: what depends on the target comes from earlier rows, in every encoder that cross-fits."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import TimeSeriesSplit

from sufrep import (
    CrossedEffectsEncoder,
    FisherEncoder,
    LatentStateEncoder,
    LocalEffectEncoder,
    LowRankEncoder,
    MeansEncoder,
    MixedModelEncoder,
    RandomInterceptEncoder,
    SufficientEncoder,
    errors,
    load,
    simulate,
)
from sufrep._splits import time_blocks
from sufrep.encoders._judging import COMPONENTS, JudgedRows, held_out_columns, judge

TARGET = {"use_target": True}
QUICK: dict[str, tuple[Any, dict[str, Any]]] = {
    "means": (MeansEncoder, TARGET),
    "left-out means": (MeansEncoder, {**TARGET, "leave_one_out": True}),
    "shrunken means": (MeansEncoder, {**TARGET, "shrinkage": "auto"}),
    "means of the target alone": (MeansEncoder, {**TARGET, "covariates": []}),
    "low rank": (LowRankEncoder, TARGET),
    "shrunken low rank": (LowRankEncoder, {**TARGET, "shrinkage": "auto"}),
    "random intercept": (RandomInterceptEncoder, {}),
    "crossed effects": (CrossedEffectsEncoder, {"min_z": -50.0}),
    "mixed model": (MixedModelEncoder, {}),
    "local effect": (LocalEffectEncoder, {"output": "both"}),
    "fisher": (FisherEncoder, {}),
}
STATES = {"hidden states": (LatentStateEncoder, {**TARGET, "n_states": 2, "n_starts": 1, "tol": 1e-2})}
ENCODERS = QUICK | STATES
every_encoder = pytest.mark.parametrize("name", ENCODERS)
KINDS = ["continuous", "binary", "multiclass"]


def make(name: str, group: Any = "shop", **options: Any) -> Any:
    """An encoder whose folds follow the column `day`, which does not describe the levels."""
    kind, parameters = ENCODERS[name]
    given = {"cv": "ordered", "time": "day", "remainder": "drop", "covariates": ["a", "b"]}
    return kind(group, **{**given, **parameters, **options})


def sales(seed: int = 0, n: int = 40, kind: str = "continuous") -> tuple[pd.DataFrame, np.ndarray, Any]:
    """Sales of five shops on seven days, in no order; some rows have no shop, and some no covariate."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 5, n)
    X = pd.DataFrame({"a": rng.normal(size=n) + code, "b": rng.normal(size=n)})
    X.loc[rng.random(n) < 0.1, "a"] = None
    names = np.array([f"shop {number}" for number in range(5)], dtype=object)
    X["shop"] = np.where(rng.random(n) < 0.1, None, names[code])
    X["day"] = rng.integers(0, 7, n)
    X.loc[:1, "day"] = [0, 6]
    y = 1.5 * rng.normal(size=5)[code] + rng.normal(size=n)
    if kind != "continuous":
        y = rng.permutation(np.arange(n) % {"binary": 2, "multiclass": 3}[kind])
    return X, y, rng


def trained(encoder: Any, X: Any, y: Any, weights: Any = None) -> pd.DataFrame:
    return encoder.set_output(transform="pandas").fit_transform(X, y, sample_weight=weights)


# The law


@every_encoder
@settings(max_examples=4)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    weighted=st.booleans(),
    missing=st.sampled_from(["level", "prior"]),
    least=st.sampled_from([None, 4]),
)
def test_a_later_target_changes_nothing(name, seed, kind, weighted, missing, least):
    X, y, rng = sales(seed, 30, kind)
    weights = rng.choice([0.0, 0.5, 2.0], 30) if weighted else None
    if weights is not None:
        weights[:2] = 1.0  # two days at least
    i = int(rng.integers(30))
    changed = y.copy()
    changed[i] = {"continuous": -1e3, "binary": 1 - y[i], "multiclass": 3}[kind]
    encoder = make(name, target_type=kind, missing=missing, min_frequency=least)
    before, after = (trained(encoder, X, some, weights) for some in (y, changed))
    early = X["day"] <= X["day"][i]
    # A class that only a later row has adds a column of its own; ranks may then be rounded differently.
    same = after.columns.equals(before.columns) or name != "fisher"
    found, expected = after.loc[early, list(before)], before.loc[early]
    np.testing.assert_allclose(found, expected, rtol=0, atol=0 if same else 1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "split", [{"cv": "ordered", "time": "day"}, {"cv": TimeSeriesSplit(4), "time": None}]
)
def test_a_later_target_changes_neither_number_nor_order_of_hidden_states(kind, split):
    X, y, _ = sales(3, n=200, kind=kind)
    X = X.sort_values("day", ignore_index=True)
    encoder = make("hidden states", target_type=kind, output="both", n_states="auto", **split)
    before = trained(encoder, X, y)
    assert len(before.columns) > 2
    n_early = 120
    early = np.arange(200) < n_early if split["time"] is None else X["day"] < X["day"][n_early]
    for later in ([150], np.arange(n_early, 200)):
        changed = y.copy()
        new = {"continuous": -50 * y, "binary": 1 - y, "multiclass": (y + 1) % 3}[kind]
        changed[later] = new[later]
        after = trained(encoder, X, changed)
        assert list(after.columns) == list(before.columns)
        np.testing.assert_array_equal(after[early], before[early])


def test_hidden_states_of_blocks_in_time_keep_the_order_of_those_of_new_rows():
    sample = simulate("latent_linear", n=3000, p=5, n_latent=3, levels_per_latent=10, seed=1)
    X = pd.DataFrame(sample.columns()).assign(day=np.arange(3000) // 300)
    encoder = make("hidden states", group="group", covariates=None, n_states=3, output="both", tol=1e-4)
    encoder.set_params(covariates=[f"x{j}" for j in range(1, 6)])
    crossed, full = trained(encoder, X, sample.y).to_numpy(), encoder.transform(X).to_numpy()
    for j in range(6):
        assert np.corrcoef(crossed[600:, j], full[600:, j])[0, 1] > 0.9


@every_encoder
def test_an_earlier_target_is_seen(name):
    X, y, _ = sales(1)
    changed = y.copy()
    changed[X["day"] == X["day"].min()] = 30.0
    before, after = (trained(make(name), X, some) for some in (y, changed))
    blocks = time_blocks(X["day"].to_numpy())
    assert (np.abs(after - before)[blocks > 0] > 1e-3).any(axis=None)


@every_encoder
def test_the_first_block_gets_what_is_known_before_any_target(name):
    X, y, _ = sales(2)
    first = time_blocks(X["day"].to_numpy()) == 0
    before, after = (trained(make(name, target_type="continuous"), X, some)[first] for some in (y, 100 - y))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)
    assert before.iloc[:, -1].nunique() == 1


# Against loops


def by_hand(name: str, X: pd.DataFrame, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Block by block: fit to all earlier rows, and encode the block as new rows."""
    blocks = time_blocks(X["day"].to_numpy())
    plain = make(name, cv=5, time=None, unseen="prior")
    found = np.full((len(X), len(trained(make(name), X, y).columns)), np.nan)
    for block in range(1, blocks.max() + 1):
        earlier, now = blocks < block, blocks == block
        plain.fit(X[earlier], y[earlier], sample_weight=weights[earlier])
        found[now] = plain.transform(X[now])
    return found


@pytest.mark.parametrize("name", ["shrunken means", "means of the target alone", "random intercept"])
def test_a_block_is_encoded_with_what_all_earlier_rows_say(name):
    X, y, rng = sales(4, n=80)
    weights = rng.choice([0.5, 1.0, 2.0], 80)
    expected = by_hand(name, X, y, weights)
    known = ~np.isnan(expected).any(axis=1)
    assert 60 < known.sum() < 80
    found = trained(make(name), X, y, weights).to_numpy()
    np.testing.assert_allclose(found[known], expected[known], rtol=1e-7, atol=1e-9)


@every_encoder
def test_blocks_are_folds_of_which_each_learns_from_those_before_it(name):
    X, y, _ = sales(5)
    blocks = time_blocks(X["day"].to_numpy())
    folds = [(np.flatnonzero(blocks < b), np.flatnonzero(blocks == b)) for b in range(blocks.max() + 1)]
    found, listed = (trained(make(name, **how), X, y) for how in ({}, {"cv": folds, "time": None}))
    np.testing.assert_array_equal(found, listed)


@pytest.mark.parametrize("name", ["means", "shrunken low rank", "mixed model", "local effect", "fisher"])
def test_the_order_of_the_rows_does_not_matter(name):
    X, y, _ = sales(6)
    order = np.argsort(X["day"].to_numpy(), kind="stable")
    whole, ordered = trained(make(name), X, y), trained(make(name), X.iloc[order], y[order])
    # Sums in another order are rounded differently.
    np.testing.assert_allclose(ordered, whole.iloc[order], rtol=1e-6, atol=1e-9)


def test_several_groups_are_encoded_one_by_one():
    X, y, rng = sales(7)
    X["town"] = rng.choice(["x", "y"], len(X))
    both = trained(make("fisher", ["shop", ("shop", "town")]), X, y)
    for group in ("shop", [("shop", "town")]):
        alone = trained(make("fisher", group), X, y)
        pd.testing.assert_frame_equal(both[alone.columns], alone)


# TimeSeriesSplit


@every_encoder
def test_a_time_series_split_goes_by_the_position_of_the_rows(name):
    X, y, _ = sales(8)
    encoder = make(name, cv=TimeSeriesSplit(4), time=None, target_type="continuous")
    before = trained(encoder, X, y)
    changed = y.copy()
    changed[25:] -= 40.0
    after = trained(encoder, X, changed)
    if name not in STATES:  # whose states may change places
        np.testing.assert_array_equal(after[:25], before[:25])
    folds = list(TimeSeriesSplit(4).split(X))
    first = np.arange(folds[0][1][0])
    listed = trained(make(name, cv=[([], first), *folds], time=None, target_type="continuous"), X, y)
    np.testing.assert_array_equal(before, listed)


def test_a_gap_and_a_window_of_a_time_series_split_are_kept():
    X, y, _ = sales(9)
    splitter = TimeSeriesSplit(3, gap=2, max_train_size=12)
    found = trained(make("shrunken means", cv=splitter, time=None), X, y)
    plain = make("shrunken means", cv=5, time=None, unseen="prior")
    for train, test in splitter.split(X):
        known = plain.fit(X.iloc[train], y[train]).transform(X.iloc[test])
        np.testing.assert_allclose(found.iloc[test], known, rtol=1e-7, atol=1e-9)


def test_rows_in_the_order_of_time_may_be_split_by_position():
    X, y, _ = sales(10)
    X = X.sort_values("day", ignore_index=True)
    found, plain = (make("fisher", cv=TimeSeriesSplit(3), time=time) for time in ("day", None))
    np.testing.assert_array_equal(trained(found, X, y), trained(plain, X, y))


# Times of every kind

START = datetime(2023, 12, 20, 23)


def dated(library: str, days: list[int]) -> Any:
    dates = [(START + timedelta(days=day)).date() for day in days]
    return {
        "pandas": lambda: pd.to_datetime(pd.Series(dates)),
        "pandas objects": lambda: pd.Series(dates, dtype=object),
        "pandas with a zone": lambda: pd.to_datetime(pd.Series(dates)).dt.tz_localize("Europe/Berlin"),
        "ISO text": lambda: [str(when) for when in dates],
        "polars": lambda: pl.Series(dates),
        "polars times": lambda: pl.Series([START + timedelta(days=day) for day in days]),
        "pyarrow": lambda: pa.array(dates, pa.date32()),
    }[library]()


@pytest.mark.parametrize(
    "library",
    [
        *("pandas", "pandas objects", "pandas with a zone", "ISO text"),
        *("polars", "polars times", "pyarrow"),
    ],
)
def test_dates_of_every_library_order_the_rows(library):
    X, y, _ = sales(11)
    X["shop"] = X["shop"].fillna("none")
    frame = {"polars": pl.DataFrame, "pyarrow": pa.table}.get(library.split()[0], pd.DataFrame)
    columns = {name: X[name].tolist() for name in ("shop", "a", "b")}
    dates = frame({**columns, "day": dated(library, X["day"].tolist())})
    found = make("means of the target alone", remainder="passthrough").fit_transform(dates, y)
    expected = make("means of the target alone").fit_transform(X, y)
    np.testing.assert_array_equal(found[:, -1].astype(float), expected[:, -1])
    assert found.shape == (len(X), 4)  # the date passes through


def test_an_array_has_times_by_position():
    X, y, _ = sales(12)
    array = np.column_stack([pd.factorize(X["shop"])[0], X[["a", "b", "day"]]])
    found = RandomInterceptEncoder(0, covariates=[1, 2], cv="ordered", time=-1).fit_transform(array, y)
    expected = make("random intercept").fit_transform(X, y)
    np.testing.assert_allclose(found[:, -1], expected[:, -1], rtol=1e-9, atol=1e-12)


def test_an_array_has_dates_as_text():
    X, y = [["u", "2024-02-01"], ["u", "2024-01-31"], ["u", "2024-02-01"]], [1.5, 7.0, 2.5]
    found = MeansEncoder(0, covariates=[], use_target=True, cv="ordered", time=1, remainder="drop")
    np.testing.assert_array_equal(found.fit_transform(X, y), [[7.0], [0.0], [7.0]])


def test_the_hour_that_a_clock_shows_twice_is_in_order():
    utc = pl.Series([datetime(2023, 10, 29, 0, 50), datetime(2023, 10, 29, 1, 5)]).dt.replace_time_zone("UTC")
    local = utc.dt.convert_time_zone("Europe/Berlin")  # 2:50, and a quarter of an hour later 2:05
    X = pl.DataFrame({"shop": ["u", "u"], "day": local})
    found = make("means of the target alone").fit_transform(X, [1.5, 7.0])
    np.testing.assert_array_equal(found, [[0.0], [1.5]])


def test_a_number_that_is_a_time_describes_the_levels_unless_covariates_leave_it_out():
    X, y, _ = sales(13)
    names = [make("means", covariates=given).fit(X, y).get_feature_names_out() for given in (None, ["a"])]
    assert "shop_mean_day" in names[0]
    assert "shop_mean_day" not in names[1]


# Parameters and files


def test_time_is_a_parameter_like_others(tmp_path):
    X, y, _ = sales(14)
    encoder = make("mixed model", remainder="passthrough").fit(X, y)
    encoder.save(tmp_path / "encoder.sufrep")
    loaded = load(tmp_path / "encoder.sufrep")
    assert (loaded.cv, loaded.time) == ("ordered", "day")
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))
    np.testing.assert_array_equal(clone(loaded).fit_transform(X, y), clone(encoder).fit_transform(X, y))


def test_chunks_may_be_of_one_day_each():
    X, y, _ = sales(15)
    parts = make("shrunken means")
    for day in sorted(set(X["day"])):
        now = X["day"] == day
        parts.partial_fit(X[now], y[now])
    np.testing.assert_allclose(parts.transform(X), make("shrunken means").fit(X, y).transform(X), rtol=1e-6)


def test_without_the_target_there_is_nothing_to_order():
    X, _, _ = sales(16)
    found, plain = make("means", use_target=False), make("means", use_target=False, cv=5, time=None)
    np.testing.assert_array_equal(found.fit_transform(X), plain.fit_transform(X))


def test_a_row_alone_is_encoded_without_its_target():
    X, _, _ = sales(17, n=2)
    found = [make("fisher", target_type="continuous").fit_transform(X[:1], [y]) for y in (1.5, 70.5)]
    np.testing.assert_array_equal(found[0], found[1])


# Mistakes


@pytest.mark.parametrize(
    ("days", "message"),
    [
        ([2.0, None, 5.0, None], r"'day' holds 2 null\(s\), the first in row 1.*\nHint: drop these rows"),
        ([7, 7, 7, 7], "'day' holds the same time in every row; expected at least two.*\nHint: name the"),
        (["May", "June", "May", "July"], "'day' holds 'July'; expected numbers, dates.*\nHint: convert the"),
        ([[1], [2], [3], [4]], "'day' holds .*; expected numbers, dates.*\nHint: convert"),
        ([date(2024, 1, 1), None, date(2024, 1, 2), None], r"'day' holds 2 null\(s\), the first in row 1"),
        (["2024-01-01", "2024-01-02", None, "2024-01-02"], r"'day' holds 1 null\(s\), the first in row 2"),
        ([None] * 4, r"'day' holds 4 null\(s\), the first in row 0"),
    ],
    ids=["null", "constant", "text", "lists", "no date", "no text", "nothing"],
)
def test_times_that_do_not_order_the_rows_are_refused(days, message):
    X = pl.DataFrame({"shop": list("uvuv"), "day": days})
    for call in ("fit", "fit_transform"):
        with pytest.raises(errors.TimeColumnError, match=rf"(?s){message}"):
            getattr(FisherEncoder("shop", cv="ordered", time="day"), call)(X, [1.5, 2.0, 3.0, 4.0])


def test_times_of_rows_without_weight_do_not_count():
    X, y = pd.DataFrame({"shop": list("uvu"), "day": [1, 1, 2]}), [1.5, 2.0, 3.0]
    with pytest.raises(errors.TimeColumnError, match="the same time in every row"):
        FisherEncoder("shop", cv="ordered", time="day").fit(X, y, sample_weight=[1.0, 1.0, 0.0])


def test_times_with_and_without_zones_are_refused():
    X = pd.DataFrame({"shop": list("uv"), "day": ["2024-01-01T10:00", "2024-01-01T10:00+02:00"]})
    with pytest.raises(errors.TimeZoneError, match="with a time zone and others without"):
        FisherEncoder("shop", cv="ordered", time="day").fit(X, [1.5, 2.0])


def test_rows_out_of_order_are_refused_by_a_split_that_goes_by_position():
    X, y = pd.DataFrame({"shop": list("uvuv"), "day": [1, 3, 2, 4]}), [1.5, 2.0, 3.0, 4.0]
    message = r"not in the order of the time column 'day': row 2 is earlier than row 1.*\nHint: sort the rows"
    with pytest.raises(errors.TimeColumnError, match=rf"(?s){message}.*cv='ordered'"):
        FisherEncoder("shop", cv=TimeSeriesSplit(2), time="day").fit(X, y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"time": None}, errors.InvalidParameterError, "time is None.\nHint: time must be the column of X"),
        ({"cv": 5}, errors.InvalidParameterError, "cv is 5.\nHint: cv must be 'ordered', or a TimeSeriesSpl"),
        ({"cv": None}, errors.InvalidParameterError, "cv is None.\nHint: cv must be 'ordered'"),
        (
            {"time": "dya"},
            errors.UnknownColumnError,
            "time names the column 'dya'.*\nHint: did you mean 'day'",
        ),
        (
            {"time": "shop"},
            errors.TimeColumnError,
            "'shop' is the time and part of the group.*\nHint: name an",
        ),
        ({"cv": "sorted"}, ValueError, "The 'cv' parameter of FisherEncoder must be"),
        ({"time": 1.5}, ValueError, "The 'time' parameter of FisherEncoder must be"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(options, error, message):
    X, y, _ = sales(18)
    with pytest.raises(error, match=rf"(?s){message}"):
        make("fisher", **options).fit(X, y)


def test_other_splits_still_need_every_row_in_a_test_fold():
    X, y, _ = sales(19)
    with pytest.raises(errors.SplitError, match=r"20 row.* are in none"):
        make("fisher", cv=[(range(20), range(20, 40))], time=None).fit_transform(X, y)


# SufficientEncoder


@pytest.mark.parametrize("split", [{"cv": "ordered", "time": "day"}, {"cv": TimeSeriesSplit(4)}], ids=str)
@pytest.mark.parametrize("components", [("mixed_model", "means"), ("target_mean", "local_effect")])
def test_given_the_choice_a_later_target_changes_nothing(components, split, choose):
    choose(*components)
    X, y, _ = sales(20)
    encoder = SufficientEncoder("shop", covariates=["a", "b"], **split)
    before = encoder.fit_transform(X, y)
    changed = y.copy()
    changed[30] = 50.0
    after = encoder.fit_transform(X, changed)
    early = np.arange(40) <= 30 if "time" not in split else (X["day"] <= X["day"][30]).to_numpy()
    np.testing.assert_array_equal(after[early], before[early])
    assert (after != before).any()


def test_candidates_are_judged_on_later_rows(monkeypatch):
    X, y, _ = sales(21, n=120)
    X = X.fillna({"a": 0.0})  # which a ridge regression needs
    seen: list[JudgedRows] = []

    def watch(rows: JudgedRows, *arguments: Any, **options: Any) -> Any:
        seen.append(rows)
        return judge(rows, *arguments, **options)

    monkeypatch.setattr("sufrep.encoders._sufficient.judge", watch)
    encoder = SufficientEncoder("shop", covariates=["a", "b"], estimator=Ridge(), cv="ordered", time="day")
    encoder.fit(X, y)
    (rows,), day, learnt = seen, X["day"].to_numpy(), 0
    for number, (train, test) in enumerate(rows.folds):
        assert day[train].max() < day[test].min()
        # What is learnt for the training rows of a fold follows time too.
        kind, own = COMPONENTS["target_mean"]
        component = kind("shop", **own, cv="ordered", time="day", remainder="drop")
        known = held_out_columns(rows, number, {"it": component})["it"].inside
        columns = np.zeros((len(train), 1))
        for inner, outer in rows.folds[:number]:
            fitted = kind("shop", **own, remainder="drop").fit(X.iloc[inner], y[inner])
            columns[np.isin(train, outer)] = fitted.set_params(unseen="prior").transform(X.iloc[outer])
            learnt += len(outer)
        np.testing.assert_allclose(known, columns)
    assert learnt > 120
    losses = [
        (Ridge().fit(rows.features[train], y[train]).predict(rows.features[test]) - y[test]) ** 2
        for train, test in rows.folds[1:]
    ]
    report = encoder.report_["candidates"]
    expected = np.concatenate(losses)[: report["n_rows"][0]]
    assert report["loss"][0] == pytest.approx(expected.mean())


def test_a_level_that_matters_is_found_in_time():
    X, y, _ = sales(22, n=150)
    X = X.fillna({"a": 0.0})
    y = y + 4.0 * (X["shop"] == "shop 1").to_numpy()
    options = {"covariates": ["a", "b"], "estimator": Ridge(), "families": ("prediction",)}
    encoder = SufficientEncoder("shop", **options, cv="ordered", time="day").fit(X, y)
    assert encoder.chosen_ == ("target_mean", "mixed_model", "local_effect")


def test_chosen_components_follow_time_and_are_saved(tmp_path, choose):
    choose("target_mean", "means")
    X, y, _ = sales(24)
    encoder = SufficientEncoder("shop", cv="ordered", time="day").fit(X, y)
    assert [(part.cv, part.time) for part in encoder.encoders_.values()] == [("ordered", "day"), (5, None)]
    encoder.save(tmp_path / "encoder.sufrep")
    loaded = load(tmp_path / "encoder.sufrep")
    assert (loaded.cv, loaded.time) == ("ordered", "day")
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))


def test_one_day_alone_tests_nothing_so_the_column_is_dropped():
    X, y, _ = sales(23)
    weights = np.where(X["day"] < 6, 1.0, 0.0)
    encoder = SufficientEncoder("shop", estimator=Ridge(), max_rows=2, cv="ordered")
    encoder.set_params(time="day").fit(X.assign(day=X["day"] // 6), y)
    assert encoder.chosen_ == ()
    with pytest.raises(errors.TimeColumnError, match="the same time"):
        encoder.fit(X.assign(day=X["day"] // 6), y, sample_weight=weights)
