"""The check of sufficiency: an alarm where the level adds to its representation, and else none."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import erfc, sqrt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold

from sufrep import (
    ContrastEncoder,
    FisherEncoder,
    GroupMoments,
    MeansEncoder,
    SufficientEncoder,
    errors,
    simulate,
    sufficiency_check,
)
from sufrep.encoders import GroupEncoder
from sufrep.encoders._base import Suffix, Vectors
from sufrep.encoders._inputs import GroupSample
from sufrep.solvers.shrinkage import estimate_means_prior, shrink_means

LEVEL_AS = pytest.mark.parametrize("level_as", ["intercept", "one_hot"])


def drawn(seed: int = 0, n: int = 800) -> tuple[pd.DataFrame, Any, np.ndarray]:
    """Levels that act through two hidden states; and an effect that each level could have in addition."""
    sample = simulate("global_linear", n=n, p=5, n_latent=2, levels_per_latent=5, seed=seed)
    own = np.random.default_rng(seed).normal(size=10)[sample.codes]
    return pd.DataFrame(sample.columns()), sample, own


def small(effect: float = 1.0) -> tuple[pd.DataFrame, np.ndarray]:
    """Four shops with effects of their own."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"]).assign(shop=rng.choice(list("uvwx"), 120))
    own = X["shop"].map({"u": -3.0, "v": -1.0, "w": 1.0, "x": 3.0}).to_numpy()
    return X, effect * own + rng.normal(size=120)


def check(encoder: Any, X: Any, y: Any, **parameters: Any) -> Any:
    return sufficiency_check(encoder, X, y, **{"estimator": Ridge(), **parameters})


# The verdict.


@LEVEL_AS
def test_there_is_no_alarm_where_the_representation_suffices(level_as):
    found = [
        check(MeansEncoder("group"), X, sample.y, level_as=level_as).sufficient
        for X, sample, _ in (drawn(seed) for seed in range(10))
    ]
    assert sum(found) >= 8


@LEVEL_AS
@pytest.mark.parametrize("seed", range(3))
def test_there_is_an_alarm_where_the_level_acts_in_another_way_too(level_as, seed):
    X, sample, own = drawn(seed)
    found = check(MeansEncoder("group"), X, sample.y + own, level_as=level_as)
    assert not found.sufficient
    assert found.p_value < 1e-3
    assert found.share > 0.05


def oracle(sample: Any) -> GroupEncoder:
    """An encoder that knows the probabilities of the hidden states."""

    class Oracle(MeansEncoder):
        def _represent(self, sample_: GroupSample) -> Vectors:
            place = np.searchsorted(sample.levels, sample_.moments.levels.astype(str))
            return Vectors(sample.state_probabilities[place], [Suffix("state1"), Suffix("state2")])

    return Oracle("group")


@LEVEL_AS
def test_the_true_states_pass_and_dropping_the_column_does_not(level_as):
    X, sample, _ = drawn(n=1500)
    assert check(oracle(sample), X, sample.y, level_as=level_as).sufficient
    nothing = SufficientEncoder("group", families=(), estimator=Ridge())
    assert not check(nothing, X, sample.y, level_as=level_as).sufficient


@pytest.mark.parametrize("order", ["as drawn", "by level"])
def test_rows_may_come_level_by_level(order):
    X, sample, own = drawn()
    rows = np.argsort(sample.codes, kind="stable") if order == "by level" else np.arange(len(X))
    found = check(MeansEncoder("group"), X.iloc[rows], (sample.y + own)[rows])
    assert found.share > 0.05


@LEVEL_AS
@pytest.mark.parametrize("kind", ["two numbers", "three texts"])
def test_classes_are_checked_by_their_probabilities(level_as, kind):
    X, y = small()
    three = np.array(["low", "high", "top"])[np.digitize(y, [-2.0, 2.0])]
    labels = three if kind == "three texts" else (y > 0).astype(int)
    found = check(MeansEncoder("shop"), X, labels, estimator=LogisticRegression(), level_as=level_as)
    assert not found.sufficient
    enough = check(FisherEncoder("shop"), X, labels, estimator=LogisticRegression(), level_as=level_as)
    assert enough.loss < found.loss


def test_boosting_is_the_default():
    X, y = small()
    nothing = SufficientEncoder("shop", families=())
    assert not sufficiency_check(nothing, X, y, cv=2).sufficient
    assert not sufficiency_check(nothing, X, y > 0, cv=2).sufficient


# The numbers.


def shrunken_residuals(rows: np.ndarray, shops: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Mean residuals of a ridge regression out of three folds, by shop."""
    residuals = np.empty(len(y))
    for train, test in KFold(3, shuffle=True, random_state=0).split(rows):
        residuals[test] = y[test] - Ridge().fit(rows[train], y[train]).predict(rows[test])
    levels, codes = np.unique(shops, return_inverse=True)
    moments = GroupMoments.from_columns(codes, [residuals], levels.astype(object), covariates=["residual"])
    return dict(zip(levels, shrink_means(moments, estimate_means_prior(moments))[:, 0], strict=True))


@LEVEL_AS
@pytest.mark.parametrize("effect", [0.1, 0.3])
def test_the_numbers_are_those_of_a_computation_by_hand(level_as, effect):
    X, y = small(effect)
    shops, alone, added = X["shop"].to_numpy(dtype=str), np.empty(120), np.empty(120)
    for train, test in KFold(5, shuffle=True, random_state=0).split(y):
        means = X.iloc[train].groupby("shop")[["a", "b"]].mean()
        rows = np.hstack([X[["a", "b"]], means.loc[shops]])
        predicted = Ridge().fit(rows[train], y[train]).predict(rows[test])
        alone[test] = (y[test] - predicted) ** 2
        if level_as == "one_hot":
            wide = np.hstack([rows, shops[:, None] == ["v", "w", "x"]])
            with_level = Ridge().fit(wide[train], y[train]).predict(wide[test])
        else:
            known = shrunken_residuals(rows[train], shops[train], y[train])
            with_level = predicted + [known[shop] for shop in shops[test]]
        added[test] = (y[test] - with_level) ** 2
    gains = alone - added
    error = np.sqrt(((gains - gains.mean()) ** 2).sum() / 119 / 120)
    expected = {
        "loss": alone.mean(),
        "loss_with_level": added.mean(),
        "gain": gains.mean(),
        "standard_error": error,
        "p_value": erfc(gains.mean() / error / sqrt(2)) / 2,
        "share": gains.mean() / alone.mean(),
    }
    found = asdict(check(MeansEncoder("shop"), X, y, level_as=level_as))
    assert (found.pop("level_as"), found.pop("sufficient")) == (level_as, expected["p_value"] >= 0.025)
    assert 1e-6 < found["p_value"] < 0.9
    assert found == pytest.approx(expected, rel=1e-8)


def test_the_error_of_classes_is_the_brier_score():
    X, y = small()
    labels = np.where(y > 0, "high", "low")
    loss = np.empty(120)
    for train, test in KFold(5, shuffle=True, random_state=0).split(y):
        rows = np.hstack([X[["a", "b"]], X["shop"].to_numpy(dtype=str)[:, None] == ["v", "w", "x"]])
        fitted = LogisticRegression().fit(rows[train], labels[train])
        loss[test] = ((fitted.predict_proba(rows[test]) - (labels[test, None] == fitted.classes_)) ** 2).sum(
            1
        )
    found = check(ContrastEncoder("shop"), X, labels, estimator=LogisticRegression())
    assert found.loss == pytest.approx(loss.mean(), rel=1e-6)


def test_a_regressor_asks_for_a_quantity():
    X, y = small()
    whole = np.round(y)
    loss = check(MeansEncoder("shop"), X, whole).loss
    assert loss == check(MeansEncoder("shop"), X, whole, target_type="continuous").loss
    assert loss > 2  # no Brier score


def test_the_verdict_is_printed():
    X, y = small()
    found = check(MeansEncoder("shop"), X, y)
    assert str(found).startswith(
        "the level still adds something: the representation is not sufficient (error "
    )
    assert f"{found.loss:.4g} → {found.loss_with_level:.4g} with the level" in str(found)
    assert f"{100 * found.share:.1f} %" in str(found)
    assert str(replace(found, p_value=0.0)).endswith(", p < 0.001)")
    silent = check(ContrastEncoder("shop"), X, X["a"] + 0 * y, target_type="continuous")
    assert str(silent).startswith("no evidence that the level adds anything (error ")


# What goes in.


def test_the_target_may_be_the_name_of_a_column():
    sample = simulate("global_linear", n=200, n_latent=2, levels_per_latent=3)
    X = pd.DataFrame(sample.columns())
    given = sufficiency_check(MeansEncoder("group"), X, sample.y, estimator=Ridge())
    assert (
        sufficiency_check(MeansEncoder("group"), X.assign(sales=sample.y), "sales", estimator=Ridge())
        == given
    )


def test_the_encoder_is_left_as_it_was():
    X, y = small()
    fresh = MeansEncoder("shop").set_output(transform="pandas")
    before = dict(vars(fresh))
    check(fresh, X, y)
    assert vars(fresh) == before
    with pytest.raises(NotFittedError, match="not fitted yet"):
        fresh.transform(X)
    fitted = MeansEncoder("shop").fit(X[:50])
    learnt = dict(vars(fitted))
    assert check(fitted, X, y) == check(fresh, X, y)
    assert vars(fitted) == learnt


@LEVEL_AS
def test_every_library_gives_the_same(level_as):
    X, y = small()
    X["shop"] = X["shop"].astype(object).where(X.index % 10 > 0, None)
    expected = check(MeansEncoder("shop"), X, y, level_as=level_as)
    for frame in (pl.from_pandas(X), pa.Table.from_pandas(X)):
        assert asdict(check(MeansEncoder("shop"), frame, y, level_as=level_as)) == pytest.approx(
            asdict(expected)
        )
    array = X.to_numpy(dtype=object)
    for rows, target in ((array, pl.Series(y)), (array.tolist(), y.tolist())):
        found = check(MeansEncoder(2), rows, target, level_as=level_as)
        assert asdict(found) == pytest.approx(asdict(expected))


@LEVEL_AS
def test_columns_of_nulls_and_text_are_not_used_by_the_learner(level_as):
    X, y = small()
    expected = check(MeansEncoder("shop", covariates=["a", "b"]), X, y, level_as=level_as)
    more = X.assign(note="text", empty=np.nan)
    assert check(MeansEncoder("shop", covariates=["a", "b"]), more, y, level_as=level_as) == expected


@LEVEL_AS
@pytest.mark.parametrize("estimator", [LogisticRegression(), None], ids=["given", "default"])
def test_a_class_that_a_fold_lacks_does_no_harm(level_as, estimator):
    X, _ = small()
    y = np.where(np.arange(120) == 7, "once", np.where(X["a"] > 0, "yes", "no"))
    for target in (y, y == "once", np.zeros(120)):
        found = check(MeansEncoder("shop"), X, target, estimator=estimator, level_as=level_as, cv=2)
        assert np.isfinite([found.loss, found.loss_with_level, found.p_value]).all()


@pytest.mark.parametrize("n", [1, 2, 4])
def test_few_rows_give_no_alarm(n):
    X, y = small()
    assert check(MeansEncoder("shop"), X[:n], y[:n]).sufficient


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            {"level_as": "mean"},
            errors.InvalidParameterError,
            "level_as is 'mean'.*\n.*'intercept' or 'one_hot'",
        ),
        ({"y": np.zeros(3)}, errors.LengthMismatchError, "X has 120 row"),
        ({"y": None}, errors.TargetError, "the target y is None"),
        ({"encoder": MeansEncoder(["shop", "a"])}, errors.UnknownGroupError, "there are 2: shop, a"),
        ({"encoder": MeansEncoder("store")}, errors.UnknownColumnError, "store"),
        ({"cv": [(range(60), range(60, 120))]}, errors.SplitError, "120"),
    ],
    ids=["level_as", "length", "no target", "two groups", "unknown group", "folds"],
)
def test_mistakes_are_named(change, error, text):
    X, y = small()
    arguments = {"encoder": MeansEncoder("shop"), "X": X, "y": y, **change}
    with pytest.raises(error, match=text):
        sufficiency_check(**arguments)
