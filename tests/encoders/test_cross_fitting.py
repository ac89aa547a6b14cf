"""Encoders that learn from the target: the encoding of a training row does not depend on its own target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor

from sufrep import (
    CrossedEffectsEncoder,
    FisherEncoder,
    LatentStateEncoder,
    LocalEffectEncoder,
    LowRankEncoder,
    MeansEncoder,
    MixedModelEncoder,
    RandomInterceptEncoder,
    errors,
)

TARGET = {"use_target": True}
QUICK: dict[str, tuple[Any, dict[str, Any]]] = {
    "means": (MeansEncoder, TARGET),
    "left-out means": (MeansEncoder, {**TARGET, "leave_one_out": True}),
    "shrunken means": (MeansEncoder, {**TARGET, "shrinkage": "auto"}),
    "means of the target alone": (MeansEncoder, {**TARGET, "covariates": []}),
    "low rank": (LowRankEncoder, TARGET),
    "low rank, two vectors": (LowRankEncoder, {**TARGET, "n_components": 2, "standardize": False}),
    "shrunken low rank": (LowRankEncoder, {**TARGET, "shrinkage": "auto"}),
    "random intercept": (RandomInterceptEncoder, {}),
    "crossed effects": (CrossedEffectsEncoder, {"min_z": -50.0}),
    "mixed model": (MixedModelEncoder, {}),
    "local effect": (LocalEffectEncoder, {}),
    "local fit": (LocalEffectEncoder, {"output": "fit"}),
    "fisher": (FisherEncoder, {}),
}
SLOW = {"hidden states": (LatentStateEncoder, {**TARGET, "n_states": 2, "n_starts": 1, "tol": 1e-4})}
ENCODERS = QUICK | SLOW
CHUNKED = [name for name, (kind, _) in QUICK.items() if kind in (MeansEncoder, LowRankEncoder)]
every_encoder = pytest.mark.parametrize("name", ENCODERS)
# Reading folds, targets and frames is the same for all.
some_encoders = pytest.mark.parametrize(
    "name", ["means", "low rank", "mixed model", "fisher", "hidden states"]
)
every_kind = pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])


def make(name: str, group: Any = "g", **options: Any) -> Any:
    kind, parameters = ENCODERS[name]
    return kind(group, **{"remainder": "drop", **parameters, **options})


def rows(rng: np.random.Generator, n: int, n_levels: int = 6) -> pd.DataFrame:
    """Levels that differ, some rows without one, and covariates with a few nulls."""
    level = rng.integers(0, n_levels, n)
    frame = pd.DataFrame({"a": rng.normal(size=n) + level, "b": rng.normal(size=n) - 2.0 * level + 1})
    frame.loc[rng.random(n) < 0.1, "a"] = None
    names = np.array([f"level {code}" for code in range(n_levels)], dtype=object)
    return frame.assign(g=np.where(rng.random(n) < 0.1, None, names[level]))


def target(rng: np.random.Generator, X: pd.DataFrame, kind: str) -> np.ndarray:
    """A target that the level has a part in, or classes that two rows have at least."""
    if kind == "continuous":
        codes = pd.factorize(X["g"])[0]
        return rng.normal(size=len(X)) + 1.5 * rng.normal(size=codes.max() + 2)[codes]
    return rng.permutation(np.arange(len(X)) % {"binary": 2, "multiclass": 3}[kind])


def drawn(seed: int, n: int = 40, kind: str = "continuous") -> tuple[pd.DataFrame, np.ndarray, Any]:
    rng = np.random.default_rng(seed)
    X = rows(rng, n)
    return X, target(rng, X, kind), rng


def changed(y: np.ndarray, i: Any, kind: str) -> np.ndarray:
    """The target of row i made another; 3 is a class that no other row has."""
    other = {"continuous": 1e3, "binary": 1 - y[i], "multiclass": 3}[kind]
    found = y.copy()
    found[i] = other
    return found


def trained(encoder: Any, X: Any, y: Any, weights: Any = None) -> pd.DataFrame:
    return encoder.set_output(transform="pandas").fit_transform(X, y, sample_weight=weights)


def check_the_law(name: str, seed: int, kind: str, *, weighted: bool, **options: Any) -> None:
    n = 8 + seed % 32
    X, y, rng = drawn(seed, n, kind)
    i = int(rng.integers(n))
    X.loc[(i + 1) % n, "g"] = "level 0"  # at least one row has a level
    fold = rng.integers(0, 4, n)
    folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in np.unique(fold)]
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n) if weighted else None
    if weights is not None:
        weights[(i + 1) % n] = 1.0
    encoder = make(name, target_type=kind, cv=folds, **options)
    before, after = (trained(encoder, X, some, weights) for some in (y, changed(y, i, kind)))
    # A new class adds a column; the other columns stay.
    assert set(before) <= set(after)
    assert_same_up_to_states(name, after[list(before)].iloc[[i]], before.iloc[[i]])


def assert_same_up_to_states(name: str, after: pd.DataFrame, before: pd.DataFrame) -> None:
    """The same columns; two hidden states may have changed places, in all columns and rows."""
    found, swapped = after.to_numpy(), after.to_numpy()
    if name in SLOW:
        swapped = found.reshape(len(found), -1, 2)[:, :, ::-1].reshape(found.shape)
    same = np.abs(found - before) <= 1e-9, np.abs(swapped - before) <= 1e-9
    assert same[0].all(axis=None) or same[1].all(axis=None)


@pytest.mark.parametrize("name", QUICK)
@settings(max_examples=settings.default.max_examples // 2)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["continuous", "binary", "multiclass"]),
    weighted=st.booleans(),
    missing=st.sampled_from(["level", "prior"]),
    least=st.sampled_from([None, 4, 0.1]),
)
def test_a_row_does_not_see_its_own_target(name, seed, kind, weighted, missing, least):
    check_the_law(name, seed, kind, weighted=weighted, missing=missing, min_frequency=least)


@every_kind
@pytest.mark.parametrize("output", ["states", "both"])
def test_a_row_does_not_see_its_own_target_through_hidden_states(kind, output):
    check_the_law("hidden states", 1, kind, weighted=True, missing="prior", min_frequency=3, output=output)


@every_kind
@every_encoder
def test_other_folds_see_the_target_of_a_row(name, kind):
    X, y, _ = drawn(5, kind=kind)
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    encoder = make(name, target_type=kind, cv=folds)
    before = trained(encoder, X, y)
    moved = np.zeros(len(X), dtype=bool)
    for i in (3, 11, 20):
        after = trained(encoder, X, changed(y, i, kind))[list(before)]
        moved |= (np.abs(after - before) > 1e-6).any(axis=1).to_numpy()
        own = next(test for _, test in folds if i in test)
        assert_same_up_to_states(name, after.iloc[own], before.iloc[own])
    assert moved.sum() > 3


@every_encoder
def test_the_target_of_a_whole_fold_does_not_reach_it(name):
    X, y, _ = drawn(1)
    folds = list(KFold(3).split(X))
    encoder = make(name, cv=folds)
    before, after = (trained(encoder, X, some) for some in (y, changed(y, folds[1][1], "continuous")))
    assert_same_up_to_states(name, after.iloc[folds[1][1]], before.iloc[folds[1][1]])


@every_encoder
def test_what_new_rows_get_is_learnt_from_all_rows(name):
    X, y, _ = drawn(2, n=80)
    crossed, plain = make(name), make(name).fit(X, y)
    in_training = crossed.fit_transform(X, y)
    np.testing.assert_array_equal(crossed.transform(X), plain.transform(X))
    assert np.abs(in_training - plain.transform(X)).max() > 1e-3


@every_encoder
def test_a_row_alone_is_encoded_without_its_target(name):
    X = pd.DataFrame({"g": ["a"], "a": [1.0], "b": [2.0]})
    found = [make(name, target_type="continuous").fit_transform(X, [y]) for y in (3.0, -50.0)]
    np.testing.assert_array_equal(found[0], found[1])
    assert np.isfinite(found[0]).all()


@every_encoder
def test_a_level_that_is_in_one_fold_only_is_encoded_like_an_unseen_one(name):
    X, y, rng = drawn(3)
    X.loc[:1, "g"], X.loc[:1, "a"], X.loc[:1, "b"] = ["alone", None], 0.3, -0.7
    fold = np.append([0, 0], rng.integers(0, 3, 38))
    folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    found = trained(make(name, cv=folds, missing="prior"), X, y)
    if name in ("means", "left-out means"):
        found = found[["g_mean_target"]]  # the covariates of the level are known
    atol = 1e-2 if name in SLOW else 1e-12  # EM stops near the prior
    np.testing.assert_allclose(found.iloc[0], found.iloc[1], rtol=0, atol=atol)
    others = found.iloc[2:][fold[2:] == 0]
    assert (np.abs(others - found.iloc[1]) > 5e-2).any(axis=None)


@every_encoder
def test_folds_without_any_level_reveal_no_target(name):
    X = pd.DataFrame({"g": ["u", "u", "v", None], "a": [1.0, 2.0, 3.0, 5.0], "b": [3.0, 1.0, 0.0, 2.0]})
    encoder = make(name, cv=[([3], [0, 1, 2]), ([0, 1, 2], [3])], missing="prior", target_type="continuous")
    before, after = (trained(encoder, X, y) for y in ([1.5, 2.5, 3.5, 4.5], [60.0, 50.0, -40.0, 4.5]))
    np.testing.assert_allclose(after.iloc[:3], before.iloc[:3], rtol=0, atol=1e-9)
    assert np.isfinite(before).all(axis=None)


def known_before_any_target(name: str, encoder: Any, X: pd.DataFrame, weights: Any) -> np.ndarray:
    """The columns of training rows if no target has been seen, given the encoder fitted to all rows."""
    table = encoder.representations_["g"]
    if name == "fisher":
        return np.full((len(X), 1), (table.n_levels + 1) / 2)  # the mean rank
    if "low rank" in name:
        return np.zeros((len(X), len(table.columns)))
    if name in SLOW:
        return np.full((len(X), 4), 0.5)  # two states, and their posteriors
    if name == "shrunken means":
        return np.tile([*table.prior[:-1], 0.0], (len(X), 1))
    if name == "crossed effects":
        return np.zeros((len(X), 2))  # effect and total
    if name in ("random intercept", "mixed model", "local effect", "local fit", "means of the target alone"):
        return np.zeros((len(X), 1))
    blind = clone(encoder).set_params(use_target=False).set_output(transform="default")
    found = blind.fit_transform(X, sample_weight=weights)
    return np.column_stack([found, np.zeros(len(X))])


@pytest.mark.parametrize("rest", ["no row", "no training row", "weight zero", "no level"])
@every_encoder
def test_a_fold_without_a_row_to_learn_from_gets_what_is_known_before_any_target(name, rest):
    X, y, _ = drawn(7, n=1 if rest == "no row" else 12)
    X["g"], weights = [f"level {i % 4}" for i in range(len(X))], None
    test, others = np.arange(len(X))[:8], np.arange(len(X))[8:]
    folds: Any = [(others, test), (test, others)]
    if rest == "no training row":
        test = np.arange(12)
        folds = [(others[:0], test)]
    if rest == "weight zero":
        weights = np.repeat([1.0, 0.0], [8, 4])
    if rest == "no level":
        X.loc[others, "g"] = None
    output = {"output": "both"} if name in SLOW else {}
    encoder = make(name, cv=folds, missing="prior", target_type="continuous", **output)
    found = trained(encoder, X, y + 5.0, weights).to_numpy()
    expected = known_before_any_target(name, encoder, X, weights)
    np.testing.assert_allclose(found[test], expected[test], rtol=1e-12, atol=0)


@every_encoder
def test_an_unseen_level_and_a_null_get_the_prior(name):
    X, y, _ = drawn(4)
    encoder = make(name, missing="prior", unseen="prior").fit(X, y)
    new = pd.DataFrame({"a": 0.5, "b": 0.25, "g": ["never seen", None, "level 0", "level 1"]})
    found = encoder.transform(new)
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[2:] - found[0]).max() > 1e-3
    if name not in ("crossed effects", "mixed model", "local fit"):  # whose columns depend on covariates
        np.testing.assert_array_equal(found[0], encoder.representations_["g"].prior)
    with pytest.raises(errors.UnseenLevelError, match="1 unseen level"):
        make(name, unseen="error").fit(X, y).transform(new)


@pytest.mark.parametrize("name", [name for name in ENCODERS if name != "crossed effects"])
def test_groups_are_encoded_one_by_one(name):
    X, y, rng = drawn(6)
    X["h"] = rng.choice(["north", "south", "west"], 40)
    both = trained(make(name, ["g", "h"]), X, y)
    alone = pd.concat([trained(make(name, group), X, y) for group in ("g", "h")], axis=1)
    pd.testing.assert_frame_equal(both, alone)


# Folds are comparable


def hidden_states(seed: int, shift: float, kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Two states, which differ in the target and, by `shift`, in the covariates."""
    rng = np.random.default_rng(seed)
    level, n = np.arange(1600) % 40, 1600
    centre = shift * rng.normal(size=(2, 3))
    X = pd.DataFrame(rng.normal(10, 1, size=(n, 3)) + centre[level % 2], columns=list("abc"))
    y = 3.0 * (level % 2) + rng.normal(size=n)
    return X.assign(g=[f"level {code}" for code in level]), y if kind == "continuous" else y > 1.5


@pytest.mark.parametrize("kind", ["continuous", "binary"])
@pytest.mark.parametrize("shift", [0.0, 0.5])
@every_encoder
def test_what_folds_learn_means_the_same_as_what_all_rows_say(name, shift, kind):
    X, y = hidden_states(0, shift, kind)
    options = {"n_components": 2} if name == "low rank" else {}
    encoder = make(name, cv=5, **options)
    crossed, whole = encoder.fit_transform(X, y), encoder.transform(X)
    names, state = encoder.get_feature_names_out(), np.arange(len(X)) % 2
    silent = () if shift else ("mean_a", "mean_b", "mean_c")
    telling = [
        j
        for j, known in enumerate(whole.T)
        if not names[j].endswith(silent) and abs(np.corrcoef(known, state)[0, 1]) > 0.5
    ]
    assert telling
    for j in telling:
        assert np.corrcoef(crossed[:, j], whole[:, j])[0, 1] > 0.8


@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("name", [name for name in ENCODERS if ENCODERS[name][1].get("use_target")])
def test_the_target_does_not_make_a_learner_worse(name, shift):
    """By more than chance: two standard errors of the difference over five samples."""
    gains = []
    for seed in range(5):
        X, y = hidden_states(seed, shift, "continuous")
        train, test = X.iloc[:800], X.iloc[800:]
        errors = []
        for encoder in (make(name), make(name).set_params(use_target=False)):
            if encoder.covariates is not None:
                encoder.set_params(covariates=None)
            model = DecisionTreeRegressor(max_leaf_nodes=8, random_state=0)
            model.fit(encoder.set_params(remainder="drop").fit_transform(train, y[:800]), y[:800])
            errors.append(np.mean((model.predict(encoder.transform(test)) - y[800:]) ** 2))
        gains.append(errors[1] - errors[0])
    assert np.mean(gains) > -2 * np.std(gains, ddof=1) / np.sqrt(5)


# Folds and targets


@some_encoders
def test_folds_may_be_a_number_a_splitter_or_any_iterable(name):
    X, y, _ = drawn(7)
    folds = KFold(4, shuffle=True, random_state=9)
    ways = [4, folds, list(folds.split(X)), folds.split(X)]
    found = [make(name, cv=cv, random_state=9).fit_transform(X, y) for cv in ways]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    assert (make(name, cv=4, random_state=8).fit_transform(X, y) != found[0]).any()


@pytest.mark.parametrize(
    "folds",
    [
        [(range(20), range(20, 40))],
        [(range(40), range(20)), (range(20), range(20, 40))],
    ],
    ids=["rows in no fold", "rows that learn from themselves"],
)
@some_encoders
def test_folds_that_are_no_partition_are_refused(name, folds):
    X, y, _ = drawn(8)
    with pytest.raises(errors.SplitError, match="each of the 40 rows into exactly one test fold"):
        make(name, cv=folds).fit_transform(X, y)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (None, errors.TargetError, "y to be passed"),
        ([1.0, np.nan, 2.0, 3.5], errors.TargetError, "y contains NaN"),
        (["yes", None, "no", "no"], errors.TargetError, "y contains NaN or None"),
        ([1.0, 2.5, 3.0], errors.LengthMismatchError, r"X has 4 row\(s\), y has 3"),
    ],
)
@some_encoders
def test_a_target_for_every_row_is_needed(name, y, error, message):
    X = pd.DataFrame({"g": list("aabb"), "a": [1.0, 2.0, 3.0, 4.0], "b": [0.0, 1.0, 0.0, 2.0]})
    for method in ("fit", "fit_transform"):
        with pytest.raises(error, match=message):
            getattr(make(name), method)(X, y)


@some_encoders
def test_frames_keep_their_names_and_index(name):
    X, y, _ = drawn(9)
    plain = make(name, remainder="passthrough")
    expected = plain.fit_transform(X, y)
    names = plain.get_feature_names_out().tolist()
    assert names[:2] == ["a", "b"]
    index = [f"row {i}" for i in range(40)]
    for library, frame in (("pandas", X.set_axis(index)), ("polars", pl.from_pandas(X))):
        encoder = make(name, remainder="passthrough").set_output(transform=library)
        found = encoder.fit_transform(frame, y)
        assert list(found.columns) == names
        np.testing.assert_array_equal(found.to_numpy().astype(float), expected.astype(float))
        assert library == "polars" or found.index.tolist() == index


# Chunks


@pytest.mark.parametrize("name", CHUNKED)
@pytest.mark.parametrize("kind", ["continuous", "multiclass"])
def test_chunks_equal_the_whole(name, kind):
    X, y, rng = drawn(10, n=60, kind=kind)
    X["colour"] = np.where(np.arange(60) < 20, "red", rng.choice(np.array(["blue", "red", None]), 60))
    if kind == "multiclass":
        y = np.where(np.arange(60) < 25, y % 2, y)  # the third class comes later
    weights = rng.choice([0.5, 1.0, 2.0], 60)
    options = {"target_type": kind, "categorical_covariates": "share"}
    whole, parts = make(name, **options).fit(X, y, sample_weight=weights), make(name, **options)
    for part in (slice(0, 20), slice(20, 25), slice(25, None)):
        parts.partial_fit(X[part], y[part], sample_weight=weights[part])
    assert parts.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    np.testing.assert_allclose(parts.transform(X), whole.transform(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", CHUNKED)
def test_the_second_of_two_classes_may_come_later(name):
    X, y, _ = drawn(11, kind="binary")
    y = np.sort(y)
    parts = make(name).partial_fit(X[:10], y[:10]).partial_fit(X[10:], y[10:])
    whole = make(name).fit(X, y)
    assert parts.target_type_ == whole.target_type_ == "binary"
    assert parts.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    np.testing.assert_allclose(parts.transform(X), whole.transform(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("n_folds", [2, 3, 7])
def test_moments_outside_a_fold_are_those_of_its_training_rows(n_folds):
    """The other folds are added up; collecting the training rows gives the same."""
    rng = np.random.default_rng(0)
    frame, y = rows(rng, 60), rng.normal(size=60)
    folds = list(KFold(n_folds, shuffle=True, random_state=1).split(frame))
    found = make("shrunken means", cv=folds).fit_transform(frame, y)
    for train, test in folds:
        outside = make("shrunken means", unseen="prior").fit(frame.iloc[train], y[train])
        np.testing.assert_allclose(found[test], outside.transform(frame.iloc[test]), rtol=1e-9)


def test_folds_whose_training_rows_repeat_use_these_rows():
    rng = np.random.default_rng(0)
    frame, y = rows(rng, 60), rng.normal(size=60)
    halves = np.array_split(rng.permutation(60), 2)
    drawn = [rng.choice(other, 30) for other in halves[::-1]]
    folds = list(zip(drawn, halves, strict=True))
    found = make("shrunken means", cv=folds).fit_transform(frame, y)
    for train, test in folds:
        outside = make("shrunken means", unseen="prior").fit(frame.iloc[train], y[train])
        np.testing.assert_allclose(found[test], outside.transform(frame.iloc[test]), rtol=1e-9)


@pytest.mark.parametrize("name", ["fisher", "random intercept", "mixed model", "local effect"])
def test_a_column_is_named_by_its_class_even_if_there_is_only_one(name):
    """The next chunk may hold another class, and must not rename the column of the first."""
    X, _, _ = drawn(8, n=12)
    (one,), several = (
        [column.removeprefix("g_") for column in trained(make(name, target_type="multiclass"), X, y)]
        for y in (["b"] * 12, ["a", "b", "c"] * 4)
    )
    assert one.endswith("_b")
    assert one in several


@pytest.mark.parametrize("name", ["means of the target alone", "fisher", "mixed model"])
def test_rare_levels_are_those_of_all_rows_in_every_fold(name):
    """A level is pooled in training if it is pooled for new rows, however few of its rows a fold has."""
    rng = np.random.default_rng(0)
    level = np.repeat(np.arange(8), [2, 3, 4, 20, 20, 20, 20, 20])
    frame, y = pd.DataFrame({"g": [f"s{code}" for code in level]}), rng.normal(size=len(level)) + level
    folds = list(KFold(4, shuffle=True, random_state=0).split(frame))
    encoder = make(name, cv=folds, min_frequency=17).set_output(transform="pandas")
    found = encoder.fit_transform(frame, y).iloc[:, 0].to_numpy()
    for _, test in folds:
        by_level = {code: set(found[test][level[test] == code]) for code in set(level[test])}
        assert all(len(values) == 1 for values in by_level.values())
        rare = [values for code, values in by_level.items() if code < 3]
        assert len(set().union(*rare)) == min(1, len(rare))
        common = [values for code, values in by_level.items() if code >= 3]
        assert len(set().union(*common)) == len(common) == 5
