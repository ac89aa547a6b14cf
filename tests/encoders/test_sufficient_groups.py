"""`SufficientEncoder` of several groups: its components, what each group says, and which ones are kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import sufrep
from sufrep import SufficientEncoder
from sufrep.encoders import UninformativeGroupWarning
from sufrep.encoders._judging import COMPONENTS, Learner, held_out_columns, judge

OF_SEVERAL = ("means", "states", "shares", "indicators", "effects", "cells", "mixed_model", "local_effect")
GROUPS = ["student", "lecturer"]


def ratings(n: int = 400, *, noise: bool = False, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Ratings by student and lecturer, who have means of their own, and perhaps a column of noise."""
    rng = np.random.default_rng(seed)
    student, lecturer = rng.integers(0, 12, n), rng.integers(0, 8, n)
    X = pd.DataFrame({"age": rng.normal(size=n) + lecturer, "size": rng.normal(size=n)})
    X["student"], X["lecturer"] = [
        [f"{name} {code}" for code in codes] for name, codes in (("s", student), ("l", lecturer))
    ]
    if noise:
        X["room"] = [f"room {code}" for code in rng.integers(0, 10, n)]
    return X, 1.5 * rng.normal(size=12)[student] + 1.5 * rng.normal(size=8)[lecturer] + rng.normal(size=n)


def quick(group: Any = None, **options: Any) -> SufficientEncoder:
    return SufficientEncoder(GROUPS if group is None else group, **{"estimator": Ridge(), "cv": 3, **options})


# Components.


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([*GROUPS, "age"], OF_SEVERAL),
        (GROUPS, ("shares", "indicators", "effects", "cells")),
        (["student", "age"], ("means", "states", "target_mean", "mixed_model", "local_effect")),
    ],
)
def test_components_are_those_that_the_groups_and_covariates_allow(columns, expected):
    X, y = ratings()
    encoder = quick([name for name in columns if name in GROUPS])
    inputs = encoder._read(X[columns], y, None)
    encoder.target_type_ = "continuous"
    assert tuple(encoder._components(inputs)) == expected


def test_only_groups_with_few_levels_have_indicators():
    X, y = ratings()
    X["student"] = [f"{name} {row % 40}" for row, name in enumerate(X["student"])]
    encoder = quick(families=("description",))
    inputs = encoder._read(X, y, None)
    encoder.target_type_ = "continuous"
    assert encoder._components(inputs)["indicators"].group == ["lecturer"]


@pytest.mark.parametrize("component", OF_SEVERAL)
def test_a_row_does_not_see_its_own_target(component: str, choose: Callable[..., None]):
    choose(component)
    X, y = ratings(120)
    changed = y.copy()
    changed[7] += 100.0
    # The combinations that become cells are chosen on all rows; these targets change nothing about that.
    before, after = (quick(cv=5).fit_transform(X, target) for target in (y, changed))
    assert before.shape == after.shape
    np.testing.assert_allclose(after[7].astype(float), before[7].astype(float), atol=1e-9)
    if component in ("effects", "cells", "mixed_model", "local_effect"):
        assert np.abs(after.astype(float) - before.astype(float)).max() > 0.01  # but other rows do


# What each group says.


def test_the_contribution_of_a_group_is_what_its_levels_are_worth_permuted():
    X, y = ratings(240)
    encoder = quick(families=("prediction",))
    inputs = encoder._read(X, y, None)
    encoder.target_type_ = "continuous"
    rows, components = encoder._judged_rows(inputs), encoder._components(inputs)
    components = {"effects": components["effects"]}
    found = judge(rows, components, Learner(Ridge(), "continuous", 3))
    for group, name in enumerate(GROUPS):
        losses = []
        for number, (train, test) in enumerate(rows.folds):
            inside = held_out_columns(rows, number, components, seed=3)["effects"].inside
            order = np.random.default_rng([3, number]).permutation(len(test))
            new = X.iloc[test].reset_index(drop=True)
            new[name] = new[name].to_numpy()[order]
            effects = COMPONENTS["effects"][0](GROUPS, remainder="drop").fit(X.iloc[train], y[train])
            model = Ridge().fit(np.hstack([rows.features[train], inside]), y[train])
            predicted = model.predict(np.hstack([rows.features[test], effects.transform(new)]))
            losses.append((predicted - y[test]) ** 2)
        np.testing.assert_allclose(found.permuted["prediction", group], np.concatenate(losses))
        more, _ = found.group_contribution("prediction", group)
        assert more == pytest.approx(np.concatenate(losses).mean() - found.loss("prediction"))


def test_a_group_that_says_nothing_is_dropped_and_named():
    dropped = []
    for seed in range(6):
        X, y = ratings(noise=True, seed=seed)
        encoder = SufficientEncoder(
            [*GROUPS, "room"], estimator=DecisionTreeRegressor(max_depth=6, random_state=0)
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = encoder.set_output(transform="pandas").fit_transform(X, y)
        report = pd.DataFrame(encoder.report_["groups"]).set_index("group")
        assert report.loc[GROUPS, "chosen"].all()
        assert (report.loc[GROUPS, "contribution"] > report.loc["room", "contribution"]).all()
        dropped.append(not report.loc["room", "chosen"])
        if dropped[-1]:
            (warning,) = [one for one in caught if one.category is UninformativeGroupWarning]
            assert str(warning.message).startswith("No column is made of 'room'. The columns are encoded by ")
            assert "Without 'room' the loss is not clearly larger." in encoder.report_["summary"]
            assert not [name for name in found.columns if "room" in name]
            assert encoder.representations_["room"].values.shape == (10, 0)
    assert sum(dropped) >= 4  # chance may gain one standard error


def test_what_is_left_is_encoded_as_if_it_were_alone():
    X, y = ratings(noise=True)
    encoder = quick([*GROUPS, "room"], families=("prediction",))
    with pytest.warns(UninformativeGroupWarning, match="No column is made of 'room'"):
        encoder.fit(X, y)
    assert encoder.report_["groups"]["chosen"] == [True, True, False]
    components = encoder.encoders_
    for name, component in components.items():
        own = {"target_type": "continuous", **COMPONENTS[name][1]}
        alone = COMPONENTS[name][0](GROUPS, covariates=["age", "size"], remainder="drop", **own)
        np.testing.assert_allclose(component.transform(X), alone.fit(X, y).transform(X), atol=1e-8)


@pytest.mark.filterwarnings("ignore::sufrep.encoders.UninformativeGroupWarning")
def test_it_is_saved_described_and_loaded_with_the_groups_that_it_dropped(tmp_path):
    X, y = ratings(noise=True)
    encoder = quick([*GROUPS, "room"], estimator=None).fit(X, y)
    path = tmp_path / "ratings.sufrep"
    encoder.save(path)
    loaded = sufrep.load(path)
    assert loaded.report_ == encoder.report_
    new = ratings(50, noise=True, seed=1)[0].assign(lecturer="new")
    np.testing.assert_array_equal(loaded.transform(new), encoder.transform(new))
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


@pytest.mark.filterwarnings("ignore::sufrep.encoders.UninformativeGroupWarning")
def test_the_order_of_the_levels_names_and_the_frame_change_nothing():
    X, y = ratings()
    renamed = X.assign(student=[name[::-1] for name in X["student"]])
    expected = quick().fit(X, y)
    for other in (pl.DataFrame(X.to_dict("list")), renamed):
        found = quick().fit(other, y)
        assert found.chosen_ == expected.chosen_
        np.testing.assert_allclose(
            found.report_["groups"]["contribution"], expected.report_["groups"]["contribution"], rtol=1e-6
        )


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.filterwarnings("ignore::sufrep.encoders.UninformativeGroupWarning")
def test_classes_have_several_groups_too(kind):
    X, y = ratings(noise=True)
    labels = np.digitize(y, [0.0] if kind == "binary" else [-1.0, 1.0])
    encoder = SufficientEncoder([*GROUPS, "room"], cv=3).fit(X, labels)
    report = encoder.report_
    assert min(report["candidates"]["loss"]) < 0.9 * report["candidates"]["loss"][0]
    assert report["groups"]["chosen"][:2] == [True, True]
