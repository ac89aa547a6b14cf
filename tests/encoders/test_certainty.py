"""How sure vectors are: standard errors in tables, their coverage, and the levels known best and worst."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sufrep
from sufrep import (
    LatentStateEncoder,
    LowRankEncoder,
    MeansEncoder,
    RandomInterceptEncoder,
    SufficientEncoder,
    make_encoder,
)
from sufrep.encoders import METHODS
from sufrep.encoders._certainty import Certainty, find_certainty, relative_errors, vector_errors

WITHOUT_ERRORS = {
    *("one_hot", "deviation", "difference", "helmert", "repeated_effect", "simple_effect"),
    *("permutation", "multi_permutation", "fisher", "local_effect", "cells"),
}
FAST = {
    "means": {},
    "means, shrunken": {"shrinkage": "auto"},
    "means, one more row": {"leave_one_out": True},
    "means, target": {"use_target": True},
    "low_rank": {"n_components": 2},
    "sparse_low_rank, shrunken": {"n_components": 2, "shrinkage": "auto"},
    "mnl, closed form": {"solver": "lda"},
    "random_intercept": {},
    "mixed_model": {},
}


def encoder_of(name: str, **options: Any) -> Any:
    return make_encoder(name.partition(",")[0], "g", **FAST[name], **options)


def sample(n_levels: int = 12, n_rows: int = 160, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of levels of very different sizes, and a target."""
    rng = np.random.default_rng(seed)
    share = np.arange(1.0, n_levels + 1)
    g = np.append(np.arange(n_levels), rng.choice(n_levels, n_rows - n_levels, p=share / share.sum()))
    x = 0.7 * rng.normal(size=(n_levels, 3))[g] + rng.normal(size=(n_rows, 3))
    y = 0.5 * rng.normal(size=n_levels)[g] + x[:, 0] + rng.normal(size=n_rows)
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(g=[f"{level:02d}" for level in g]), y


def errors_of(encoder: Any, group: str = "g") -> np.ndarray:
    return vector_errors(encoder, group).standard_errors()


def test_the_error_of_a_mean_is_the_spread_within_levels_over_the_root_of_its_rows():
    X, _ = sample()
    table = MeansEncoder("g").fit(X).table(library="pandas", errors=True)
    within = X.groupby("g")[["a", "b", "c"]].transform(lambda column: column - column.mean())
    spread = np.sqrt((within**2).sum() / (len(X) - X["g"].nunique()))
    for name in ("a", "b", "c"):
        expected = spread[name] / np.sqrt(table["weight"])
        np.testing.assert_allclose(table[f"g_mean_{name}_error"], expected, rtol=1e-9)


@pytest.mark.parametrize("method", [method for method in METHODS if method != "sufficient"])
def test_every_encoder_has_a_column_of_errors_for_every_entry(method):
    X, y = sample()
    # Groups that say nothing have no effects, and no errors either.
    options = {"latent_state": {"n_states": 2}, "crossed_effects": {"min_z": -50.0}}.get(method, {})
    encoder = make_encoder(method, "g", **options).fit(X, y)
    table = encoder.table(library="polars", errors=True)
    columns = encoder.representations_["g"].columns
    assert table.columns == ["g", "weight", *columns, *(f"{column}_error" for column in columns)]
    errors = table.select(pl.col("^.*_error$"))
    assert errors.null_count().sum_horizontal().item() == (
        errors.height * errors.width if method in WITHOUT_ERRORS else 0
    )
    if method not in WITHOUT_ERRORS:
        assert (errors.to_numpy() > 0).all()
    assert encoder.table(library="polars").columns == table.columns[: 2 + len(columns)]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_errors_that_are_not_known_are_null_in_every_library(library):
    X = pd.DataFrame({"g": ["x", "y", "z"], "a": [1.0, 2.0, 4.0]})  # no level has two rows
    table = nw.from_native(MeansEncoder("g").fit(X).table(library=library, errors=True))
    assert table.columns == ["g", "weight", "g_mean_a", "g_mean_a_error"]
    assert table["g_mean_a_error"].is_null().all()
    assert table["g_mean_a_error"].dtype == nw.Float64


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_errors_are_the_same_from_every_library(frame):
    X, y = sample()
    found = errors_of(MeansEncoder("g", use_target=True).fit(frame(X), y))
    np.testing.assert_allclose(found, errors_of(MeansEncoder("g", use_target=True).fit(X, y)), rtol=1e-12)


def test_a_covariate_may_be_called_error():
    X = pd.DataFrame({"g": list("xxyy"), "a": [1.0, 2, 4, 5], "a_error": [1.0, 3, 2, 8]})
    table = MeansEncoder("g").fit(X).table(library="pandas", errors=True)
    assert table.columns.tolist() == [
        *("g", "weight", "g_mean_a", "g_mean_a_error", "g_mean_a_error_2", "g_mean_a_error_error"),
    ]


@given(st.sampled_from(sorted(FAST)), st.integers(2, 4), st.integers(0, 50))
def test_rows_that_occur_several_times_count_as_weights_do(name, times, seed):
    X, y = sample(5, 40, seed)
    repeated = encoder_of(name).fit(pd.concat([X] * times, ignore_index=True), np.tile(y, times))
    weighted = encoder_of(name).fit(X, y, sample_weight=np.full(len(X), float(times)))
    np.testing.assert_allclose(errors_of(repeated), errors_of(weighted), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", sorted(FAST))
def test_the_more_rows_a_level_has_the_smaller_its_errors(name):
    X, y = sample(12, 400)
    encoder = encoder_of(name).fit(X, y)
    order = np.argsort(encoder.representations_["g"].weight)
    errors = errors_of(encoder)[order]
    if name in {"mixed_model", "mnl, closed form"}:  # they depend on the covariates of the rows too
        few, many = errors[:4].mean(axis=0), errors[-4:].mean(axis=0)
        # Slopes that all levels share have one error.
        shared = np.ptp(errors, axis=0) < 1e-12
        assert (many < few)[~shared].all()
        assert not shared[0]
    else:
        assert (np.diff(errors, axis=0) <= 1e-9).all()


@given(st.integers(0, 100), st.integers(0, 4))
def test_rows_that_one_level_gains_at_its_mean_make_it_more_certain(seed, level):
    X, _ = sample(5, 40, seed)
    X = X.astype({"a": float})
    own = X[X["g"] == f"{level:02d}"]
    more = pd.concat([X, pd.DataFrame([own.mean(numeric_only=True)] * 3).assign(g=f"{level:02d}")])
    before, after = (errors_of(MeansEncoder("g").fit(rows)) for rows in (X, more))
    assert (after[level] < before[level]).all()


def test_a_level_without_any_value_of_a_covariate_has_the_error_of_an_unknown_level():
    X, _ = sample(40, 400)
    X.loc[X["g"] == "07", "b"] = np.nan
    errors = errors_of(MeansEncoder("g").fit(X))
    spread = X.groupby("g")["b"].mean().std()
    assert errors[7, 1] == pytest.approx(spread, rel=0.2)
    assert (errors[7, [0, 2]] < spread).all()


@pytest.mark.parametrize("name", sorted(FAST))
def test_nulls_leave_errors_finite(name):
    X, y = sample()
    X.loc[::3, "a"] = np.nan
    found = errors_of(encoder_of(name).fit(X, y))
    assert np.isfinite(found).all()


@pytest.mark.parametrize("name", sorted(FAST))
def test_levels_that_are_pooled_share_their_error(name):
    X, y = sample()
    encoder = encoder_of(name, min_frequency=10).fit(X, y)
    errors, rare = errors_of(encoder), encoder.representations_["g"].weight < 10
    assert 2 <= rare.sum() < len(rare)
    assert (errors[rare] == errors[rare][0]).all()
    named = X.assign(g=X["g"].where(~X["g"].isin(encoder.representations_["g"].levels[rare]), "~"))
    np.testing.assert_allclose(errors_of(encoder_of(name).fit(named, y))[-1], errors[rare][0], rtol=1e-9)


def test_groups_have_errors_of_their_own():
    X, _ = sample()
    X["h"] = np.where(np.arange(len(X)) % 3 == 0, "p", "q")
    both = MeansEncoder(["g", "h"]).fit(X)
    for group in ("g", "h"):
        alone = MeansEncoder(group, covariates=["a", "b", "c"]).fit(X)
        np.testing.assert_array_equal(errors_of(both, group), errors_of(alone, group))
    assert both.table("h", errors=True).shape == (2, 8)


@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_shares_of_classes_have_errors(shrinkage):
    X, _ = sample(60, 1200)
    y = np.array(["red", "green", "blue"])[np.arange(len(X)) % 3]
    encoder = MeansEncoder("g", use_target=True, shrinkage=shrinkage).fit(X, y)
    errors = errors_of(encoder)
    assert errors.shape == (60, 6)
    # At most about the error of a share in the level alone.
    at_most = 1.1 * np.sqrt(2 / 9 / encoder.representations_["g"].weight)
    assert (errors[:, 3:] <= at_most[:, None]).all()


def test_chunks_give_the_errors_of_all_rows():
    X, _ = sample()
    chunks = MeansEncoder("g", shrinkage="auto")
    for part in (X[:50], X[50:]):
        chunks.partial_fit(part)
    whole = MeansEncoder("g", shrinkage="auto").fit(X)
    np.testing.assert_allclose(errors_of(chunks), errors_of(whole), rtol=1e-8)


@pytest.mark.parametrize("name", [*sorted(FAST), "latent_state"])
def test_a_loaded_encoder_has_the_same_errors(name, tmp_path):
    X, y = sample()
    encoder = LatentStateEncoder("g", n_states=2) if name == "latent_state" else encoder_of(name)
    encoder.fit(X, y).save(tmp_path / "file.sufrep")
    loaded = sufrep.load(tmp_path / "file.sufrep")
    np.testing.assert_array_equal(errors_of(loaded), errors_of(encoder))


def test_without_moments_or_squares_errors_are_not_known():
    X, _ = sample()
    encoder = MeansEncoder("g").fit(X)
    del encoder.moments_
    assert np.isnan(errors_of(encoder)).all()
    huge = X.assign(a=X["a"] * 1e200)
    assert np.isnan(errors_of(MeansEncoder("g").fit(huge))).all()
    tiny = X.assign(a=X["a"] * 1e-200)
    assert np.isnan(errors_of(MeansEncoder("g").fit(tiny))).all()


def test_an_encoder_of_encoders_has_the_errors_of_its_components(choose):
    choose("means", "local_effect", "mixed_model")
    X, y = sample()
    encoder = SufficientEncoder("g").fit(X, y)
    parts = [errors_of(component) for component in encoder.encoders_.values()]
    np.testing.assert_array_equal(errors_of(encoder), np.hstack(parts))
    assert [bool(np.isnan(part).all()) for part in parts] == [False, True, False]
    covariances = vector_errors(encoder, "g").covariances(np.arange(3))
    diagonal = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    np.testing.assert_allclose(diagonal, errors_of(encoder)[:3], rtol=1e-12)


def test_a_column_that_is_dropped_has_no_errors(choose, tmp_path):
    choose()
    X, y = sample()
    encoder = SufficientEncoder("g").fit(X, y)
    assert encoder.table(library="pandas", errors=True).columns.tolist() == ["g", "weight"]
    encoder.plot()
    encoder.save(tmp_path / "file.sufrep")
    assert find_certainty(encoder, "g") == Certainty()


# Coverage


def example() -> Any:
    path = Path(__file__).parents[2] / "examples" / "coverage_of_errors.py"
    spec = importlib.util.spec_from_file_location("coverage_of_errors", path)
    module = importlib.util.module_from_spec(spec)
    # Its dataclass looks itself up.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, spec.name, module)
        spec.loader.exec_module(module)
    return module


EXAMPLE = example()


@pytest.mark.parametrize(
    "case",
    [
        *("means", "means, 30 % nulls", "means, `leave_one_out`", "shrunken means", "means, target"),
        *("low rank, target", "multinomial logit, closed form", "random intercept", "mixed model"),
        "hidden states",
    ],
)
def test_intervals_of_95_percent_cover_the_truth_about_as_often(case):
    found = [EXAMPLE.coverage(case, 200, seed)[0] for seed in (100, 101, 102)]
    assert 0.92 < np.mean(found) < 0.98


# The levels that are known best and worst


def test_relative_errors_are_relative_to_the_spread_of_each_column():
    X, _ = sample()
    encoder = MeansEncoder("g").fit(X)
    table, errors = encoder.representations_["g"], errors_of(encoder)
    errors[0, 1] = np.nan  # not known
    found = relative_errors(table, errors)
    for level in range(12):
        squares = []
        for j in range(3):
            mean = np.average(table.values[:, j], weights=table.weight)
            variance = np.average((table.values[:, j] - mean) ** 2, weights=table.weight)
            if not np.isnan(errors[level, j]):
                squares.append(errors[level, j] ** 2 / variance)
        assert found[level] == pytest.approx(np.sqrt(np.mean(squares)))


def test_the_smallest_levels_are_the_least_certain():
    X, _ = sample()
    encoder = MeansEncoder("g").fit(X)
    by_size = encoder.representations_["g"].levels[np.argsort(encoder.representations_["g"].weight)]
    found = find_certainty(encoder, "g")
    assert len(found.least) == len(found.most) == 3
    assert {level for level, _ in found.most} == set(by_size[-3:])
    errors = [error for _, error in (*found.least, *reversed(found.most))]
    assert errors == sorted(errors, reverse=True)


def test_of_few_levels_none_is_both_and_of_equal_ones_none_is_named():
    X, _ = sample(3, 30)
    found = find_certainty(MeansEncoder("g").fit(X), "g")
    assert (len(found.least), len(found.most)) == (1, 1)
    equal = pd.DataFrame({"g": list("xxyyzz"), "a": [1.0, 2, 4, 5, 7, 9]})
    assert find_certainty(MeansEncoder("g").fit(equal), "g") == Certainty()
    assert find_certainty(MeansEncoder("g").fit(equal[:2]), "g") == Certainty()
    assert find_certainty(make_encoder("one_hot", "g").fit(equal), "g") == Certainty()


def test_entries_that_do_not_vary_do_not_count():
    X, _ = sample()
    encoder = MeansEncoder("g").fit(X)
    constant = MeansEncoder("g").fit(X.assign(d=1.0))
    assert [level for level, _ in find_certainty(constant, "g").least] == [
        level for level, _ in find_certainty(encoder, "g").least
    ]


def test_low_rank_vectors_are_named_by_their_own_errors():
    X, _ = sample(30, 600)
    encoder = LowRankEncoder("g", n_components=1, shrinkage="auto").fit(X)
    relative = relative_errors(encoder.representations_["g"], errors_of(encoder))
    assert find_certainty(encoder, "g").least[0][1] == pytest.approx(relative.max())


def nested(n_rows: int = 600) -> tuple[pd.DataFrame, np.ndarray]:
    """Sixty shops in six cities, whose sizes and targets differ mostly by city."""
    rng = np.random.default_rng(0)
    shop = np.append(np.arange(60), rng.integers(0, 60, n_rows))
    mean = (3.0 * rng.normal(size=6))[np.arange(60) % 6] + 0.3 * rng.normal(size=60)
    rows = mean[shop, None] + rng.normal(size=(len(shop), 2))
    names = {"shop": [f"{one:02d}" for one in shop], "city": (shop % 6).astype(str)}
    return pd.DataFrame({**names, "size": rows[:, 0]}), rows[:, 1]


@pytest.mark.parametrize(
    "encoder",
    [
        MeansEncoder("shop", shrinkage="auto"),
        MeansEncoder("shop", covariates=[], use_target=True),
        LowRankEncoder("shop", n_components=1, shrinkage="auto"),
        RandomInterceptEncoder("shop"),
    ],
)
def test_levels_that_are_like_their_parents_are_more_certain_with_them(encoder):
    X, y = nested()
    alone = encoder.fit(X, y).table(errors=True)
    with_parent = encoder.set_params(parent={"shop": "city"}).fit(X, y)
    errors = with_parent.table(errors=True).iloc[:, -1]
    assert (errors < 0.9 * alone.iloc[:, -1]).all()
    assert with_parent.plot() is not None
    learnt = with_parent.learn_levels(X.assign(shop="new")[:1]).table(errors=True).iloc[:, -1]
    np.testing.assert_allclose(learnt[:60], errors, rtol=0.1)


def test_one_parent_of_all_levels_leaves_errors_as_they_are():
    X, _ = nested()
    encoder = MeansEncoder("shop", shrinkage="auto")
    alone = encoder.fit(X).table(errors=True).iloc[:, -1]
    together = encoder.set_params(parent={"shop": "city"}).fit(X.assign(city="same"))
    np.testing.assert_allclose(together.table(errors=True).iloc[:, -1], alone, rtol=1e-6)
