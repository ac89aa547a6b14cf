"""Crossed effects: known effects are found net of each other, and no row sees its own target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from sufrep import CrossedEffectsEncoder, errors, load

GROUPS = ["student", "lecturer"]
# The effects of 120 students and 30 lecturers.
STRICT, GOOD = np.linspace(1.5, -1.5, 120), 0.7 * np.sin(7.0 * np.arange(30))


def ratings(seed: int = 0, n: int = 2400, kind: str = "continuous") -> tuple[pd.DataFrame, Any, np.ndarray]:
    """Ratings by students, who are stricter the larger their number and choose lecturers accordingly.

    Returns also the sum of the true effects.
    """
    rng = np.random.default_rng(seed)
    student = rng.integers(0, 120, n)
    lecturer = np.clip(student // 4 + rng.integers(-15, 16, n), 0, 29)
    age, size = rng.integers(1, 7, n).astype(float), rng.normal(size=n)
    slope = 0.6 * rng.normal(size=(30, 7))
    effects = STRICT[student] + GOOD[lecturer] + slope[lecturer, age.astype(int)]
    y: Any = effects + 0.5 * size**2 + rng.normal(size=n)
    X = pd.DataFrame({"age": age, "size": size})
    X.loc[rng.random(n) < 0.05, "size"] = None
    X["student"] = [f"s{code:03d}" for code in student]
    X["lecturer"] = [f"l{code:02d}" for code in lecturer]
    if kind == "binary":
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-effects)), "yes", "no")
    if kind == "multiclass":
        y = np.digitize(y, [-1.0, 1.0])
    return X, y, effects


def make(group: Any = None, **options: Any) -> CrossedEffectsEncoder:
    return CrossedEffectsEncoder(GROUPS if group is None else group, remainder="drop", **options)


# What is found


def test_effects_are_net_of_the_other_group():
    X, y, _ = ratings()
    encoder = make().fit(X, y)
    students, lecturers = (encoder.representations_[group].values[:, 0] for group in GROUPS)
    means = pd.Series(y).groupby(X["lecturer"]).mean().to_numpy()
    assert np.corrcoef(students, STRICT)[0, 1] > 0.9
    assert np.corrcoef(lecturers, GOOD)[0, 1] > 0.75 > np.corrcoef(means, GOOD)[0, 1]


def test_the_total_adds_the_crossings_and_is_worth_what_it_says():
    X, y, effects = ratings(n=6000)
    train, test = X.iloc[:4000], X.iloc[4000:]
    encoder = make()
    seen, new = encoder.fit_transform(train, y[:4000]), encoder.transform(test)
    assert encoder.get_feature_names_out().tolist() == [
        "student_effect",
        "lecturer_effect",
        "student:lecturer_total",
    ]
    names = [
        name
        for name, kept in zip(*(encoder.crossings_[k] for k in ("crossing", "kept")), strict=True)
        if kept
    ]
    assert "lecturer:age" in names
    for found, target, true in ((seen, y[:4000], effects[:4000]), (new, y[4000:], effects[4000:])):
        assert np.polyfit(found[:, 2], target, 1)[0] == pytest.approx(1.0, abs=0.08)
        assert np.corrcoef(found[:, 2], true)[0, 1] > np.corrcoef(found[:, :2].sum(axis=1), true)[0, 1] + 0.02


def test_without_crossings_the_total_is_the_sum_of_the_effects():
    X, y, _ = ratings()
    encoder = make(crossings=0).fit(X, y)
    found = encoder.transform(X)
    np.testing.assert_allclose(found[:, 2], found[:, 0] + found[:, 1])
    assert encoder.crossings_["crossing"] == []
    assert encoder.variance_components_["component"] == ["student", "lecturer", "residual"]


def test_a_group_that_says_nothing_gets_zeros_and_no_errors():
    X, y, _ = ratings()
    X["noise"] = np.random.default_rng(1).integers(0, 50, len(X)).astype(str)
    encoder = make([*GROUPS, "noise"]).fit(X, y)
    table = encoder.table("noise", errors=True)
    assert (table["noise_effect"] == 0).all()
    assert table["noise_effect_error"].isna().all()
    components = pd.DataFrame(encoder.variance_components_).set_index("component")
    assert components.loc["noise", "variance"] == 0
    assert components.loc["noise", "z"] < 3 < components.loc["student", "z"]


def test_the_table_has_the_effect_and_its_error():
    X, y, _ = ratings()
    encoder = make().fit(X, y)
    table = encoder.table("lecturer", errors=True)
    assert list(table.columns) == ["lecturer", "weight", "lecturer_effect", "lecturer_effect_error"]
    np.testing.assert_allclose(table["lecturer_effect"], encoder.representations_["lecturer"].values[:, 0])
    spread = pd.DataFrame(encoder.variance_components_).set_index("component").loc["lecturer", "std_dev"]
    assert table["lecturer_effect_error"].between(0.05, spread).all()


def test_variance_components_are_those_of_the_sample():
    X, y, _ = ratings(n=8000)
    found = pd.DataFrame(make().fit(X, y).variance_components_).set_index("component")
    assert found.loc["residual", "std_dev"] == pytest.approx(1.0, abs=0.1)
    assert found.loc["student", "n_levels"] == 120
    assert found.loc["residual", "n_levels"] == 8000
    np.testing.assert_allclose(found["std_dev"] ** 2, found["variance"])


# No row sees its own target


@pytest.mark.parametrize("n", [400, 2600], ids=["curve", "trees"])
@pytest.mark.parametrize("cv", ["folds", "ordered"])
def test_adding_100_to_a_target_moves_its_own_training_columns_by_exactly_0(n, cv):
    X, y, _ = ratings(n=n)
    options: dict[str, Any] = {"cv": KFold(3, shuffle=True, random_state=0)}
    if cv == "ordered":
        X["day"] = np.arange(n) // 20
        options = {"cv": "ordered", "time": "day", "covariates": ["age", "size"]}
    before = make(**options).fit_transform(X, y)
    for row in (0, n // 2):
        moved = y.copy()
        moved[row] += 100
        after = make(**options).fit_transform(X, moved)
        np.testing.assert_array_equal(after[row], before[row])
        assert (after != before).any()


@pytest.mark.parametrize(("kind", "n_columns"), [("binary", 3), ("multiclass", 9)])
def test_classes_have_columns_of_log_odds_that_do_not_depend_on_the_own_class(kind, n_columns):
    X, y, effects = ratings(kind=kind)
    encoder = make(cv=KFold(3))
    found = encoder.fit_transform(X, y)
    assert found.shape == (len(X), n_columns)
    other = y.copy()
    other[7] = y[y != y[7]][0]
    np.testing.assert_array_equal(encoder.fit_transform(X, other)[7], found[7])
    assert abs(np.corrcoef(found[:, -1], effects)[0, 1]) > 0.6
    assert ("class" in encoder.variance_components_) == (kind == "multiclass")


# Levels that fit did not see


def test_a_new_level_starts_from_what_its_covariates_say():
    rng = np.random.default_rng(2)
    level = np.repeat(np.arange(200), 20)
    quality = rng.normal(size=200)
    X = pd.DataFrame({"hint": quality[level] + 0.5 * rng.normal(size=4000)})
    X["shop"], X["day"] = level.astype(str), rng.integers(0, 10, 4000).astype(str)
    y = quality[level] + rng.normal(size=4000)
    known, new = level < 150, level >= 150
    encoder = make(["shop", "day"]).fit(X[known], y[known])
    found = encoder.transform(X[new])
    true, per_level = quality[150:], found[::20, 0]
    np.testing.assert_array_equal(np.repeat(per_level, 20), found[:, 0])
    # Within levels the covariate is noise, so that the function of the rows leaves something to the level.
    assert np.corrcoef(per_level, true)[0, 1] > 0.8
    learnt = encoder.learn_levels(X[new])
    np.testing.assert_allclose(learnt.transform(X), encoder.transform(X))
    np.testing.assert_array_equal(
        encoder.set_params(unseen="prior").transform(X[new])[:, 0], np.zeros(new.sum())
    )


def test_levels_that_were_learnt_later_leave_the_cells_of_others_alone():
    X, y, _ = ratings()
    encoder = make().fit(X, y)
    assert any(encoder.cells_)
    new = X.iloc[:50].assign(lecturer="a lecturer that sorts first", student="s000b")
    learnt = encoder.learn_levels(new)
    np.testing.assert_array_equal(learnt.transform(X), encoder.transform(X))
    np.testing.assert_allclose(learnt.transform(new), encoder.transform(new))


def test_a_null_may_be_a_level_or_unknown():
    X, y, _ = ratings()
    X.loc[::7, "lecturer"] = None
    level = make().fit(X, y)
    prior = make(missing="prior").fit(X, y)
    assert level.representations_["lecturer"].levels[-1] is None
    assert (prior.transform(X)[::7, 1] == 0).all()
    assert (level.transform(X)[::7, 1] != 0).all()


# The rest


@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
def test_it_comes_back_from_a_file(tmp_path, kind):
    X, y, _ = ratings(kind=kind)
    encoder = make(min_frequency=10).fit(X, y)
    assert any(encoder.cells_)
    encoder.save(tmp_path / "ratings.sufrep")
    loaded = load(tmp_path / "ratings.sufrep")
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))
    assert loaded.variance_components_ == encoder.variance_components_
    assert loaded.crossings_ == encoder.crossings_


def test_a_group_without_a_level_is_refused():
    X, y, _ = ratings(n=50)
    with pytest.raises(errors.NoLevelError, match="'lecturer' has no level"):
        make(missing="prior").fit(X.assign(lecturer=None), y)


def test_names_of_totals_that_clash_are_refused():
    X, y, _ = ratings(n=50)
    X["student:lecturer_total"] = 1.0
    with pytest.raises(errors.ClashingNamesError, match="two columns called 'student:lecturer_total'"):
        CrossedEffectsEncoder(GROUPS).fit(X, y)


@pytest.mark.parametrize(("parameter", "value"), [("crossings", -1), ("min_z", "high")])
def test_parameters_out_of_range_are_refused(parameter, value):
    X, y, _ = ratings(n=50)
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter"):
        make(**{parameter: value}).fit(X, y)
