"""How candidates are judged: on which rows, by which columns and losses, and which one wins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.tree import DecisionTreeRegressor

from sufrep import MeansEncoder, MixedModelEncoder, SufficientEncoder
from sufrep.encoders._judging import (
    CANDIDATES,
    COMPONENTS,
    DROP,
    JudgedRows,
    Judgement,
    Learner,
    clustered_error,
    held_out_columns,
    inner_folds,
    judge,
    whole_levels,
)


def judged(
    n: int = 120, *, seed: int = 0, n_folds: int = 3, kind: str = "continuous", n_levels: int = 6
) -> tuple[JudgedRows, dict[str, Any]]:
    """Rows of which each level differs in its target, and the components for them."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_levels
    X = pd.DataFrame(rng.normal(size=(n, 2)) + codes[:, None], columns=["a", "b"])
    X["shop"] = [f"shop {code}" for code in codes]
    y = X["a"].to_numpy() + 2.0 * codes + rng.normal(size=n)
    if kind != "continuous":
        y = np.digitize(y, np.quantile(y, [0.5] if kind == "binary" else [0.3, 0.6]))
    encoder = SufficientEncoder("shop", target_type=kind, cv=n_folds)
    inputs = encoder._read(X, y, None)
    encoder.target_type_ = kind
    features = X[["a", "b"]].to_numpy()
    return JudgedRows(inputs, features, y, encoder._folds(inputs)), encoder._components(inputs)


def judgement(losses: dict[str, Any], clusters: Any = None, weights: Any = None) -> Judgement:
    """Losses of candidates, one number for all rows or one for each."""
    n = 60
    found = {name: np.broadcast_to(np.asarray(loss, dtype=float), n) for name, loss in losses.items()}
    groups = [np.arange(n) if clusters is None else clusters]
    return Judgement(found, {}, dict.fromkeys(found, 1), weights, groups)


# Rows.


def rows_by_hand(codes: list[int], max_rows: int, seed: int) -> list[int]:
    """Levels in a random order until the next one does not fit, but at least fifty; then rows of these."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(sorted(set(codes))).tolist()
    n_kept = n_rows = 0
    for level in order:
        n_rows += codes.count(level)
        if n_rows > max_rows:
            break
        n_kept += 1
    kept = order[: max(n_kept, 50)]
    rows = [row for row, level in enumerate(codes) if level in kept]
    return rows if len(rows) <= max_rows else sorted(rng.choice(rows, max_rows, replace=False).tolist())


@given(
    n_levels=st.integers(1, 120),
    n=st.integers(1, 400),
    max_rows=st.integers(2, 400),
    seed=st.integers(0, 5),
    nulls=st.booleans(),
)
def test_rows_are_those_of_whole_levels_as_far_as_they_fit(n_levels, n, max_rows, seed, nulls):
    codes = np.random.default_rng(n).integers(-1 if nulls else 0, n_levels, n)
    found = whole_levels(codes, max_rows, seed)
    if n <= max_rows:
        assert found.tolist() == list(range(n))
    else:
        assert found.tolist() == rows_by_hand(codes.tolist(), max_rows, seed)
    assert whole_levels(codes, max_rows, seed).tolist() == found.tolist()


def test_levels_may_fit_exactly():
    codes = np.arange(1000) % 100
    found = whole_levels(codes, 600, 0)
    assert len(found) == 600
    assert np.unique(codes[found], return_counts=True)[1].tolist() == [10] * 60


def test_levels_stay_whole_where_many_fit():
    codes = np.random.default_rng(0).integers(0, 300, 3000)
    found = whole_levels(codes, 1500, 0)
    kept = np.unique(codes[found])
    assert 50 < len(kept) < 300
    assert 1400 < len(found) <= 1500
    np.testing.assert_array_equal(found, np.flatnonzero(np.isin(codes, kept)))
    assert not np.array_equal(found, whole_levels(codes, 1500, 1))


@pytest.mark.parametrize("n_levels", [3, 60])
def test_rows_are_drawn_where_levels_are_few_and_huge(n_levels):
    codes = np.arange(6000) % n_levels
    found = whole_levels(codes, 500, 0)
    assert len(found) == len(set(found.tolist())) == 500
    assert (np.diff(found) > 0).all()
    assert len(np.unique(codes[found])) == min(n_levels, 50)


# Folds.


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_inside_a_fold_every_row_is_in_one_inner_fold_that_it_is_not_learnt_from(n_folds):
    rows, _ = judged(n_folds=n_folds)
    for number, (train, test) in enumerate(rows.folds):
        folds = inner_folds(rows, number)
        np.testing.assert_array_equal(
            np.sort(np.concatenate([outer for _, outer in folds])), np.arange(len(train))
        )
        for inner, outer in folds:
            assert len(inner)
            assert not set(inner) & set(outer)
            assert not set(train[inner]) & set(test)


# Columns.


@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
def test_held_out_targets_do_not_move_the_columns_that_are_judged(kind):
    rows, components = judged(kind=kind)
    rng = np.random.default_rng(1)
    for number, (_, test) in enumerate(rows.folds):
        y = rows.y.copy()
        y[test] = rng.permutation(y[test]) if kind != "continuous" else rng.normal(size=len(test)) * 100
        target = SufficientEncoder("shop", target_type=kind)._read_target(rows.inputs.table, y, reset=True)
        changed = replace(rows, y=y, inputs=replace(rows.inputs, target=target))
        before, after = (held_out_columns(part, number, components) for part in (rows, changed))
        assert before.keys() == after.keys() == components.keys()
        for name in before:
            np.testing.assert_array_equal(before[name].inside, after[name].inside)
            np.testing.assert_array_equal(before[name].outside, after[name].outside)


def test_columns_are_those_of_encoders_fitted_outside_the_fold():
    rows, components = judged()
    X = pd.DataFrame(rows.features, columns=["a", "b"])
    X["shop"] = rows.inputs.factors[0].levels[rows.inputs.factors[0].codes]
    for number, (train, test) in enumerate(rows.folds):
        found = held_out_columns(rows, number, components)
        for name in components:
            kind, own = COMPONENTS[name]
            folds = {"cv": inner_folds(rows, number)} if components[name]._needs.uses_target else {}
            encoder = kind("shop", remainder="drop", **folds, **own)
            known, new = encoder.fit_transform(X.iloc[train], rows.y[train]), encoder.transform(X.iloc[test])
            np.testing.assert_allclose(found[name].outside, new)
            if name in ("mixed_model", "local_effect"):  # their inner folds share variances and kernels
                assert np.corrcoef(found[name].inside[:, -1], known[:, -1])[0, 1] > 0.98
            else:
                np.testing.assert_allclose(found[name].inside, known)


@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
def test_columns_of_all_components_have_names_of_their_own(kind):
    X, y = pd.DataFrame({"a": np.arange(60.0) ** 2, "shop": list("abc") * 20}), np.arange(60) % 3
    y = {"continuous": y + 0.5, "binary": y > 1, "multiclass": y}[kind]
    names = [
        name
        for encoder, own in COMPONENTS.values()
        for name in encoder("shop", remainder="drop", **own).fit(X, y).get_feature_names_out()
    ]
    assert len(names) == len(set(names)) >= len(COMPONENTS)


# Losses.


def test_losses_are_those_of_learners_fitted_outside_the_fold():
    rows, components = judged()
    learner = DecisionTreeRegressor(max_depth=3, random_state=0)
    found = judge(rows, components, Learner(learner, "continuous", 0))
    order = np.concatenate([test for _, test in rows.folds])
    for name, parts in [(name, CANDIDATES[name]) for name in found.losses]:
        losses = np.empty(len(rows.y))
        for number, (train, test) in enumerate(rows.folds):
            columns = held_out_columns(rows, number, components)
            inside = np.hstack(
                [rows.features[train], *(columns[part].inside for part in parts if part in columns)]
            )
            outside = np.hstack(
                [rows.features[test], *(columns[part].outside for part in parts if part in columns)]
            )
            losses[test] = (learner.fit(inside, rows.y[train]).predict(outside) - rows.y[test]) ** 2
            if number == 0:  # folds may differ in their number of states
                assert found.n_columns[name] == inside.shape[1] - 2
        took_part = ~np.isnan(found.losses[name])
        assert took_part[: len(rows.folds[0][1])].all()
        np.testing.assert_allclose(found.losses[name][took_part], losses[order][: len(took_part)][took_part])


def test_candidates_that_are_clearly_behind_leave_the_race_and_it_ends_when_one_is_left():
    rows, components = judged(n=400, n_levels=40)
    found = judge(rows, components, Learner(Ridge(), "continuous", 0))
    judged_on = {name: found.n_judged(name) for name in found.losses}
    assert judged_on[DROP] < judged_on[found.chosen()]
    assert found.chosen() != DROP
    alone = judge(rows, {"target_mean": components["target_mean"]}, Learner(Ridge(), "continuous", 0))
    assert alone.n_judged("prediction") == alone.n_judged(DROP) == len(rows.folds[0][1])


@pytest.mark.parametrize("n_levels", [2, 6, 60])
def test_who_is_clearly_behind_depends_on_the_number_of_levels(n_levels):
    levels = np.arange(60) % n_levels
    by_level = np.random.default_rng(0).normal(size=n_levels)
    error = clustered_error(by_level[levels], levels)
    limit = {2: 31.82, 6: 3.365, 60: 2.391}[n_levels] * error
    for behind, leaves in ((0.99 * limit, False), (1.01 * limit, True)):
        noise = by_level[levels] - by_level[levels].mean()
        found = judgement({DROP: 5.0 + noise + behind, "both": 5.0}, levels)
        assert found.remaining() == (["both"] if leaves else [DROP, "both"])


def test_who_has_left_the_race_is_compared_where_it_took_part():
    half = np.append(np.full(30, 9.0), np.full(30, np.nan))
    found = judgement({DROP: half, "description": 1.5, "both": np.repeat([2.0, 0.5], 30)})
    assert found.gain("both")[0] == 7.0
    assert found.loss(DROP) == 9.0
    assert found.n_judged(DROP) == 30
    assert found.chosen() == "both"


def test_the_contribution_of_a_component_is_what_its_columns_are_worth_shuffled():
    rows, components = judged()
    found = judge(rows, {"means": components["means"]}, Learner(Ridge(), "continuous", 3))
    total = []
    for number, (train, test) in enumerate(rows.folds):
        found_columns = held_out_columns(rows, number, components)["means"]
        inside, outside = found_columns.inside, found_columns.outside
        model = Ridge().fit(np.hstack([rows.features[train], inside]), rows.y[train])
        order = np.random.default_rng([3, number]).permutation(len(test))
        predicted = model.predict(np.hstack([rows.features[test], outside[order]]))
        total.append((predicted - rows.y[test]) ** 2)
    expected = np.concatenate(total)[: found.n_judged("description")]
    np.testing.assert_allclose(found.shuffled["description", "means"], expected)
    more, _ = found.contribution("description", "means")
    assert more == pytest.approx(expected.mean() - found.loss("description"))
    assert more > 0


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_the_number_of_processes_changes_nothing(n_jobs):
    rows, components = judged()
    learner = Learner(DecisionTreeRegressor(max_depth=3, random_state=0), "continuous", 0)
    one, other = judge(rows, components, learner), judge(rows, components, learner, n_jobs=n_jobs)
    for before, after in ((one.losses, other.losses), (one.shuffled, other.shuffled)):
        assert before.keys() == after.keys()
        assert all(np.array_equal(before[key], after[key], equal_nan=True) for key in before)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_the_loss_of_a_class_is_its_log_loss_which_is_bounded_for_unseen_classes(kind):
    rows, _ = judged(kind=kind)
    judge = Learner(LogisticRegression(), kind, 0).fit(rows.features, rows.y, None)
    y = rows.y.copy()
    y[:4] = y.max() + 1
    expected = [
        -np.log(1e-7) if place < 4 else -np.log(judge.model.predict_proba(row[None])[0, label])
        for place, (row, label) in enumerate(zip(rows.features, y, strict=True))
    ]
    np.testing.assert_allclose(judge.losses(rows.features, y), expected, rtol=1e-10)


@pytest.mark.parametrize("estimator", [LogisticRegression(), RidgeClassifier()], ids=["log P", "errors"])
def test_classes_may_have_gaps(estimator):
    rows, _ = judged(kind="multiclass")
    gaps = rows.y * 5 + 2
    learner = Learner(estimator, "multiclass", 0)
    before, after = (learner.fit(rows.features, y, None).losses(rows.features, y) for y in (rows.y, gaps))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("y", "stops"),
    [
        (np.arange(100.0), True),
        (np.arange(9.0), False),
        (np.repeat([0, 1], 50), True),
        (np.append(np.zeros(99, dtype=int), 1), False),  # the class of one row cannot be on both sides
        (np.arange(60) % 9, False),  # six rows cannot hold nine classes
    ],
)
def test_the_default_learner_stops_early_where_rows_can_be_set_aside(y, stops):
    kind = "continuous" if y.dtype == float else "multiclass"
    judge = Learner(None, kind, 0).fit(np.random.default_rng(0).normal(size=(len(y), 2)), y, None)
    assert judge.model.early_stopping is stops
    assert judge.model.n_iter_ < 50 or not stops


def test_candidates_that_are_the_same_are_judged_once():
    rows, components = judged()
    predictions = {name: components[name] for name in ("target_mean", "mixed_model")}
    assert list(judge(rows, predictions, Learner(DummyRegressor(), "continuous", 0)).losses) == [
        DROP,
        "prediction",
    ]
    assert list(judge(rows, {}, Learner(DummyRegressor(), "continuous", 0)).losses) == [DROP]


# The winner.


def test_the_smallest_loss_wins():
    assert judgement({DROP: 5.0, "description": 3.0, "prediction": 2.0, "both": 2.5}).chosen() == "prediction"


def test_of_equal_losses_the_first_wins():
    assert judgement({DROP: 5.0, "description": 2.0, "both": 2.0}).chosen() == "description"


def test_nothing_is_chosen_where_nothing_differs():
    assert judgement({DROP: 1.0, "description": 1.0, "both": 1.0}).chosen() == DROP


@pytest.mark.parametrize("weighted", [False, True])
def test_an_encoding_must_gain_more_than_its_standard_error(weighted):
    gains = np.tile([0.0, 2.0, -1.0], 20)
    levels = np.repeat(np.arange(15), 4)
    weights = np.tile([1.0, 3.0, 2.0], 20) if weighted else np.ones(60)
    mean = (weights * gains).sum() / weights.sum()
    sums = [((gains - mean) * weights)[levels == level].sum() for level in np.unique(levels)]
    error = np.sqrt(np.square(sums).sum() * len(sums) / (len(sums) - 1)) / weights.sum()
    for shift, winner in ((1.01 * error - mean, "both"), (0.99 * error - mean, DROP)):
        found = judgement({DROP: 5.0, "both": 5.0 - gains - shift}, levels, weights if weighted else None)
        np.testing.assert_allclose(found.gain("both"), (mean + shift, error))
        assert found.chosen() == winner


def test_a_few_rows_that_nothing_predicts_do_not_decide():
    dropped, both = np.ones(60), np.full(60, 0.9)
    dropped[7], both[7] = 1000.0, 1100.0
    raw = judgement({DROP: dropped, "both": both})
    limited = replace(raw, limit=4.0 * raw.loss(DROP))
    assert raw.gain("both")[0] < 0
    assert (raw.chosen(), limited.chosen()) == (DROP, "both")
    assert limited.loss(DROP) == raw.loss(DROP)
    np.testing.assert_allclose(limited.gain("both")[0], 0.1 * 59 / 60)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_of_a_row_counts_as_at_most_four_times_the_mean_without_the_column(weighted):
    rows, components = judged()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(rows.y)) if weighted else None
    rows = replace(rows, inputs=replace(rows.inputs, weights=weights))
    found = judge(rows, components, Learner(Ridge(), "continuous", 0))
    known = ~np.isnan(found.losses[DROP])
    own = None if weights is None else found.weights[known]
    assert found.limit == pytest.approx(4 * np.average(found.losses[DROP][known], weights=own))


def test_the_error_of_independent_rows_is_the_usual_one():
    values = np.random.default_rng(0).normal(size=50)
    usual = values.std(ddof=1) / np.sqrt(50)
    np.testing.assert_allclose(clustered_error(values, np.arange(50)), usual)
    np.testing.assert_allclose(clustered_error(np.repeat(values, 4), np.repeat(np.arange(50), 4)), usual)
    assert clustered_error(values, np.zeros(50, dtype=int)) == np.inf


def test_rare_classes_count_in_full():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 100, 4000)
    y = (rng.random(4000) < np.where(codes < 10, 0.3, 0.001)).astype(int)
    X = pd.DataFrame({"shop": codes.astype(str), "a": rng.normal(size=4000)})
    encoder = SufficientEncoder("shop", families=("prediction",)).fit(X, y)
    assert encoder.chosen_
    assert encoder.report_["candidates"]["gain"][1] > 0.2 * encoder.report_["candidates"]["loss"][0]


def test_a_group_of_a_single_level_has_no_say():
    gains = np.random.default_rng(0).normal(1.0, 0.1, 60)
    levels, one = np.arange(60) % 20, np.zeros(60, dtype=int)
    found = Judgement(
        {DROP: 5 + gains, "both": np.full(60, 5.0)}, {}, {DROP: 0, "both": 1}, None, [one, levels]
    )
    assert found.gain("both")[1] == pytest.approx(clustered_error(gains, levels))
    assert found.remaining() == ["both"]
    alone = replace(found, clusters=[one])
    assert alone.gain("both")[1] == np.inf
    assert alone.chosen() == DROP


def test_the_default_learner_does_not_depend_on_the_units_of_the_target():
    rows, _ = judged()
    losses = [
        Learner(None, "continuous", 0)
        .fit(rows.features, unit * rows.y, None)
        .losses(rows.features, unit * rows.y)
        / unit**2
        for unit in (1.0, 2.0**-20)
    ]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def test_in_time_folds_are_judged_only_if_their_training_rows_have_rows_before():
    n = 60
    blocks = np.repeat(np.arange(4), 15)
    folds = [(np.flatnonzero(blocks < block), np.flatnonzero(blocks == block)) for block in (1, 2, 3)]
    rows, _ = judged(n=n)
    found = judge(replace(rows, folds=folds, in_time=True), {}, Learner(DummyRegressor(), "continuous", 0))
    assert found.n_judged(DROP) == 15  # of block 2; a single candidate ends the race
    np.testing.assert_allclose(found.losses[DROP], (rows.y[30:45] - rows.y[:30].mean()) ** 2)


def test_with_several_groups_the_largest_error_counts():
    values = np.repeat([1.0, 2.0, 3.0, 4.0], 15)
    groups = [np.arange(60), np.repeat(np.arange(4), 15)]
    found = Judgement({DROP: values, "both": 0 * values}, {}, {DROP: 0, "both": 1}, None, groups)
    assert found.gain("both")[1] == clustered_error(values, groups[1]) > clustered_error(values, groups[0])


def test_components_are_the_public_encoders():
    assert COMPONENTS["mixed_model"] == (MixedModelEncoder, {})
    assert COMPONENTS["means"] == (MeansEncoder, {"shrinkage": "auto"})
