"""Running: methods, scoring, and every method with every model in every split."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import (
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import TargetEncoder

from sufrep import FisherEncoder, MeansEncoder, ToNumbers, compare
from sufrep._compare import _run as module
from sufrep._compare._data import LEVEL_KINDS, make_splits, read_data
from sufrep._compare._run import (
    CODINGS,
    COMPARED_METHODS,
    check_methods,
    check_scorer,
    choose_methods,
    encode_split,
    make_method,
    make_scoring,
    make_steps,
    n_cells,
    read_split,
    take_rows,
)
from sufrep._frames import FrameTable
from sufrep.encoders import METHODS
from sufrep.errors import InvalidParameterError

# Running


class Sensitive(Ridge):
    """Refuses tables of one width, as a learner of the user's may."""

    def __init__(self, width: int = 0) -> None:
        super().__init__()
        self.width = width

    def fit(self, X: Any, y: Any) -> Any:
        if np.shape(X)[1] == self.width:
            raise ValueError(f"{self.width} columns\nare not   enough")
        return super().fit(X, y)


class Nowhere(Ridge):
    """Predicts what is no number."""

    def predict(self, X: Any) -> Any:
        return np.full(len(X), np.nan)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "array"])
def test_rows_of_any_table_can_be_taken(rows, kind):
    X, _ = rows()
    table = {
        "pandas": X,
        "polars": pl.from_pandas(X),
        "pyarrow": pa.Table.from_pandas(X),
        "array": X.to_numpy(),
    }
    taken = take_rows(table[kind], np.array([5, 2]))
    assert type(taken) is type(table[kind])
    assert np.asarray(taken)[:, 1].tolist() == X["size"][[5, 2]].tolist()


def test_scores_are_sorted_by_model_method_and_split(rows):
    found = compare(
        *rows(),
        group="town",
        methods=["means", "drop"],
        models={"one": Ridge(), "two": Ridge()},
        n_repeats=2,
        cv=2,
    )
    order = [(item.model, item.method, item.repeat, item.fold) for item in found.fold_scores]
    methods = ("drop", "means")  # the fast one first
    assert order == [
        (model, method, repeat, fold)
        for model in ("one", "two")
        for method in methods
        for repeat in range(2)
        for fold in range(2)
    ]
    assert all(item.fit_seconds > 0 and item.predict_seconds > 0 for item in found.fold_scores)


@pytest.mark.parametrize("table", ["rows", "mixed"])
def test_the_columns_that_a_method_adds_are_counted(request, table):
    X, y = request.getfixturevalue(table)() if table == "rows" else request.getfixturevalue(table)
    methods = ["means", "drop", "target_encoder", "one_hot"]
    found = compare(X, y, group="town", methods=methods, models="linear")
    added = {item.method: item.n_columns for item in found.summaries}
    n_covariates = 2 if table == "rows" else 2 + 2 + 3
    assert added == {"one_hot": 5, "means": n_covariates, "drop": 0, "target_encoder": 1}


def test_encoders_are_fitted_to_the_training_rows_of_each_split(rows, monkeypatch):
    X, y = rows()
    seen = []
    original = FisherEncoder._learn

    def watched(self, inputs):
        seen.append((inputs.table.frame.to_native().index.tolist(), inputs.target.raw.tolist()))
        return original(self, inputs)

    monkeypatch.setattr(FisherEncoder, "_learn", watched)
    found = compare(X, y, group="town", methods="fisher", models="linear", n_jobs=1)
    assert seen == [(split.train.tolist(), y[split.train].tolist()) for split in found.plan.splits]


def test_the_rows_of_a_split_are_read_once_for_all_methods(rows, monkeypatch):
    X, y = rows()
    reads = []
    original = FrameTable._factorize
    monkeypatch.setattr(FrameTable, "_factorize", lambda *given: reads.append(1) or original(*given))
    counts = []
    for methods in (["means"], ["means", "fisher", "mixed_model", "low_rank", "mnl", "permutation"]):
        compare(X, y, group="town", methods=methods, models="linear", cv=2, n_jobs=1)
        counts.append(len(reads))
        reads.clear()
    assert counts[0] == counts[1]


@pytest.mark.parametrize("method", ["means", "one_hot", "fisher", "target_encoder", "drop", "mixed_model"])
@pytest.mark.parametrize("kind", ["frame", "array"])
def test_an_encoded_split_is_what_the_pipeline_gives(mixed, method, kind):
    X, y = mixed
    X, group = (X, "town") if kind == "frame" else (X.to_numpy(object), 2)
    data = read_data(X, y, group, "auto")
    (split, *_), _ = make_splits(data, cv=2, n_repeats=1, folds="spread", seed=0)
    encoded = encode_split(make_method(data.after_to_numbers(), method, 0), read_split(data, split))
    pipeline = Pipeline(make_steps(data, method, 0))
    train = pipeline.fit_transform(take_rows(data.X, split.train), data.y[split.train])
    np.testing.assert_array_equal(np.asarray(encoded.train), np.asarray(train))
    test = pipeline.transform(take_rows(data.X, split.test))
    np.testing.assert_array_equal(np.asarray(encoded.test), np.asarray(test))


def test_text_and_dates_become_numbers_once_per_split_for_all_methods_and_models(mixed, monkeypatch):
    fitted = []
    original = ToNumbers.fit

    def watched(self, X, y=None):
        fitted.append(len(X))
        return original(self, X, y)

    monkeypatch.setattr(ToNumbers, "fit", watched)
    models = {"one": Ridge(), "two": Ridge()}
    compare(*mixed, group="town", methods=["means", "drop"], models=models, cv=2, n_jobs=1)
    assert fitted == [120, 60, 60, 120]  # once to read the data, and once to look for suspicious columns


def test_a_split_that_cannot_be_read_fails_for_every_method(mixed, monkeypatch):
    def broken(*_: Any) -> None:
        raise ValueError("no date")

    monkeypatch.setattr(module, "take_rows", broken)
    found = compare(*mixed, group="town", methods="means", models=Ridge(), cv=2, n_jobs=1)
    assert {(item.method, item.failure) for item in found.fold_scores} == {
        ("means", "ValueError: no date"),
        ("drop", "ValueError: no date"),
    }


def test_a_method_that_fails_does_not_stop_the_others(rows, monkeypatch):
    def broken(*_: Any) -> None:
        raise RuntimeError("no luck\n  today " + "at all " * 90)

    monkeypatch.setattr(MeansEncoder, "_learn", broken)
    found = compare(*rows(), group="town", methods=["means", "one_hot"], models=["linear", Ridge()])
    last = found.summaries[-2:]
    assert {(item.method, item.model) for item in last} == {("means", "linear"), ("means", "Ridge")}
    assert last[0].failure is not None
    assert last[0].failure.startswith("RuntimeError: no luck today at all at")
    assert last[0].failure.endswith(" …")
    assert 290 < len(last[0].failure) <= 300
    assert found.best.method == "one_hot"
    assert "means" not in found.plot().to_json()


def test_a_model_that_fails_with_one_method_does_not_stop_the_other_model(rows):
    models = {"sensitive": Sensitive(width=2), "ridge": Ridge()}
    found = compare(*rows(), group="town", methods=["means", "drop"], models=models)
    failed = [(item.method, item.model, item.failure) for item in found.summaries if item.failed]
    assert failed == [("drop", "sensitive", "ValueError: 2 columns are not enough")]


def test_a_score_of_nan_is_a_failure(rows):
    found = compare(*rows(), group="town", methods="drop", models=Nowhere())
    assert {item.failure for item in found.fold_scores} == {"ValueError: the typical error (RMSE) is nan"}


def test_one_hot_columns_that_would_not_fit_fail_and_dropping_is_the_baseline(rows, monkeypatch):
    monkeypatch.setattr(module, "MAX_CELLS", 100.0)
    found = compare(*rows(), group="town", methods=["means", "one_hot"], models="linear", n_jobs=1)
    assert found.baseline == "drop"
    assert found.summaries[-1].method == "one_hot"
    assert found.summaries[-1].failure == (
        "MemoryError: a column for each of 6 levels would need 0.0 GB; use fewer rows, or pool rare levels"
    )
    assert " without it, " in found.verdict[0]
    assert found.summaries[0].improvement > 0


def test_what_fails_in_some_splits_has_no_score(rows):
    X, y = rows()
    splits = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]

    def picky(model: Any, X: Any, y: Any) -> float:
        if X.shape[1] == 2 and y[0] == first:
            raise ValueError("not these rows")
        return float(model.score(X, y))

    first = y[0]
    methods = ["drop", "means"]
    found = compare(X, y, group="town", methods=methods, models=Ridge(), cv=splits, scoring=picky, n_jobs=1)
    last = found.summaries[-1]
    assert (last.method, last.failure) == ("drop", "in 1 of 2 splits: ValueError: not these rows")
    assert np.isnan(last.score)


def test_warnings_of_fits_are_not_shown(rows, recwarn):
    compare(*rows(), group="town", methods="latent_state", models="linear", folds="grouped", cv=3, n_jobs=1)
    assert len(recwarn) == 0


def test_progress_counts_cells_and_names_the_last(rows):
    reported: list[tuple[int, int, str]] = []
    compare(
        *rows(),
        group="town",
        methods=["means"],
        models="linear",
        cv=2,
        progress=lambda *news: reported.append(news),
    )
    assert [(done, total) for done, total, _ in reported] == [(i, 4) for i in range(5)]
    assert reported[0][2] == ""
    assert [what for *_, what in reported[1:]] == ["drop", "drop", "means", "means"]


def test_rows_of_common_rare_and_new_levels_are_scored_apart():
    rng = np.random.default_rng(0)
    town = np.array(["a"] * 60 + ["b"] * 40 + ["c"] * 8 + ["d"])
    X = pl.DataFrame({"town": town, "size": rng.normal(size=109)})
    y = rng.normal(size=109) + (town == "b")
    found = compare(X, y, group="town", methods="means", models="linear", n_jobs=1)
    # By hand: every row is predicted once, and belongs to the kind of its level in its fold.
    for method in ("drop", "means"):
        sums, n_rows = dict.fromkeys(LEVEL_KINDS, 0.0), dict.fromkeys(LEVEL_KINDS, 0)
        for split in found.plan.splits:
            pipeline = found.pipeline(method, "linear").fit(X[split.train], y[split.train])
            error = (pipeline.predict(X[split.test]) - y[split.test]) ** 2
            n_train = np.array([(town[split.train] == level).sum() for level in town[split.test]])
            kinds = {"common": n_train >= 10, "rare": (n_train > 0) & (n_train < 10), "new": n_train == 0}
            for kind, chosen in kinds.items():
                if chosen.any():
                    sums[kind] += error[chosen].sum()
                    n_rows[kind] += int(chosen.sum())
        summary = next(item for item in found.summaries if item.method == method)
        assert n_rows == {"common": 100, "rare": 8, "new": 1}
        for kind in LEVEL_KINDS:
            assert getattr(summary, f"n_{kind}") == n_rows[kind]
            assert getattr(summary, kind) == pytest.approx(np.sqrt(sums[kind] / n_rows[kind]))
    # 8 rows and 1 row are too few to say anything about such levels.
    assert not any("levels (" in text for text in found.verdict)


def test_classes_have_a_second_score_that_readers_know(rows):
    X, y = rows()
    for target, name in ((y > 1, "AUC"), (np.digitize(y, [0.0, 2.0]).astype(str), "accuracy")):
        found = compare(X, target, group="town", methods=["means", "one_hot"], models="linear")
        assert found.plan.scoring.also[0] == name
        assert all(0.5 < item.also <= 1 for item in found.summaries)
        assert f"; {name} 0." in found.verdict[0] or found.best.method == "drop"


# Methods


def test_all_methods_are_the_registry_the_target_encoder_and_drop():
    assert check_methods("all") == [*METHODS, "target_encoder", "drop"]
    assert set(choose_methods("all", 1000)) == set(COMPARED_METHODS)


@pytest.mark.parametrize(
    ("given", "methods"),
    [
        ("means", ["drop", "means"]),
        (["means", "one_hot", "means"], ["drop", "means", "one_hot"]),
        (["sufficient", "drop"], ["drop", "sufficient"]),
        (["quick", "mixed_model"], ["drop", "target_mean", "means", "low_rank", "mixed_model"]),
        (["quick", "one_hot"], ["drop", "target_mean", "means", "low_rank", "one_hot"]),
    ],
)
def test_dropping_the_column_is_always_compared_and_the_fast_come_first(given, methods):
    assert choose_methods(given, 1000) == methods


def test_one_hot_columns_are_usual_where_levels_are_few():
    usual = ["drop", "target_mean", "means", "low_rank", "mixed_model", "latent_state", "sufficient"]
    assert choose_methods("usual", 101) == usual
    assert choose_methods("usual", 100) == [*usual[:5], "one_hot", *usual[5:]]
    assert choose_methods("quick", 101) == usual[:4]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "mean",
            r"methods is 'mean'.*\n.*one of one_hot, .*drop, usual, quick, all \(did you mean 'means'\?\)",
        ),
        (["zzz"], r"quick, all\.$"),
        ([3], "methods is 3"),
        ([], "'usual', 'quick', 'all', or a list of names"),
    ],
)
def test_an_unknown_method_raises(given, message):
    with pytest.raises(InvalidParameterError, match=message):
        check_methods(given)


@pytest.mark.parametrize("kind", ["frame", "array", "numbered"])
@pytest.mark.parametrize("method", ["means", "drop", "target_encoder", "one_hot", "random_intercept"])
def test_steps_encode_the_group_at_any_position(mixed, method, kind):
    X, y = mixed
    expected = Pipeline(make_steps(read_data(X, y, "town", "auto"), method, 0)).fit_transform(X, y)
    given = {"frame": X, "array": X.to_numpy(object), "numbered": X.set_axis(range(5), axis=1)}[kind]
    steps = Pipeline(make_steps(read_data(given, y, 2, "auto"), method, 0))
    found = np.asarray(steps.fit_transform(given, y), dtype=float)
    np.testing.assert_allclose(found, np.asarray(expected, dtype=float))
    assert [name for name, _ in steps.steps] == ["columns", "encoder"]


def test_a_table_of_numbers_needs_no_step_before_the_encoder(rows):
    assert [name for name, _ in make_steps(read_data(*rows(), "town", "auto"), "means", 0)] == ["encoder"]


def test_steps_get_the_target_type_and_the_seed(rows):
    X, y = rows()
    data = read_data(X, y > 0, "town", "auto")
    ((_, encoder),) = make_steps(data, "sufficient", 7)
    assert (encoder.random_state, encoder.target_type) == (7, "binary")
    ((_, peer),) = make_steps(data, "target_encoder", 7)
    inner = peer.transformers[0][1]
    assert isinstance(inner, TargetEncoder)
    assert (inner.cv.random_state, type(inner.cv).__name__) == (7, "StratifiedKFold")


def test_every_known_method_gives_steps(mixed):
    data = read_data(*mixed, "town", "auto")
    for method in COMPARED_METHODS:
        (_, first), (_, second) = make_steps(data, method, 0)
        assert isinstance(first, ToNumbers)
        assert hasattr(second, "fit_transform")


def test_only_codings_make_a_column_for_each_level(rows):
    data = read_data(*rows(), "town", "auto")
    assert {method: n_cells(data, method) for method in COMPARED_METHODS} == {
        method: 120.0 * 6 if method in CODINGS else 0.0 for method in COMPARED_METHODS
    }


# Scoring


X = np.zeros((6, 1))
y = np.array([1.0, 2, 3, 4, 5, 9])
classes = np.array(["a", "b", "b", "c", "b", "a"])
regressor = DummyRegressor().fit(X, y)
classifier = DummyClassifier().fit(X, classes)
shares = st.floats(-0.9, 0.9)


def test_the_default_is_the_root_mean_squared_error_or_the_log_loss():
    scoring = make_scoring(None, "regression")
    assert (scoring.name, scoring.is_loss, scoring.also) == ("typical error (RMSE)", True, None)
    expected = root_mean_squared_error(y, regressor.predict(X))
    assert scoring.measure(regressor, X, y) == pytest.approx(expected)
    for task in ("binary", "multiclass"):
        scoring = make_scoring(None, task)
        assert (scoring.name, scoring.is_loss) == ("log loss", True)
        expected = log_loss(classes, classifier.predict_proba(X))
        assert scoring.measure(classifier, X, classes) == pytest.approx(expected)


def test_a_negative_loss_of_scikit_learn_s_is_a_loss_and_can_be_sent_to_workers():
    scoring = make_scoring("neg_mean_absolute_error", "regression")
    assert (scoring.name, scoring.is_loss) == ("mean absolute error", True)
    measure = pickle.loads(pickle.dumps(scoring.measure))
    assert measure(regressor, X, y) == pytest.approx(mean_absolute_error(y, regressor.predict(X)))


@pytest.mark.parametrize(
    ("name", "shown", "measured"),
    [
        ("rmse", "typical error (RMSE)", lambda: mean_squared_error(y, regressor.predict(X)) ** 0.5),
        ("mse", "mean squared error", lambda: mean_squared_error(y, regressor.predict(X))),
        ("mae", "mean absolute error", lambda: mean_absolute_error(y, regressor.predict(X))),
    ],
)
def test_measures_have_everyday_names(name, shown, measured):
    scoring = make_scoring(name, "regression")
    assert (scoring.name, scoring.is_loss) == (shown, True)
    assert scoring.measure(regressor, X, y) == pytest.approx(measured())
    check_scorer(name, y, "regression")


@pytest.mark.parametrize(
    ("name", "shown"), [("auc", "roc auc"), ("accuracy", "accuracy"), ("log_loss", "log loss")]
)
def test_measures_of_classes_have_everyday_names(name, shown):
    assert make_scoring(name, "binary").name == shown
    check_scorer(name, np.array([0, 1, 1]), "binary")


def test_other_names_are_scores():
    scoring = make_scoring("r2", "regression")
    assert (scoring.name, scoring.is_loss) == ("r2", False)
    assert scoring.measure(regressor, X, y) == pytest.approx(r2_score(y, regressor.predict(X)))
    assert make_scoring("balanced_accuracy", "binary").name == "balanced accuracy"


def test_a_callable_is_a_score_by_its_name():
    def closeness(model, X, y):
        return -float(np.abs(model.predict(X) - y).max())

    scoring = make_scoring(closeness, "regression")
    assert (scoring.name, scoring.is_loss, scoring.measure(regressor, X, y)) == ("closeness", False, -5.0)
    assert make_scoring(pickle.loads, "regression").name == "loads"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rocauc", r"\(did you mean 'roc_auc' or"),
        ("rmes", "did you mean 'rmse'"),
        ("zzzzzz", r"scorer \(rmse, "),
    ],
)
def test_an_unknown_scorer_raises_with_the_known_ones(name, message):
    with pytest.raises(InvalidParameterError, match=message):
        make_scoring(name, "regression")


@pytest.mark.parametrize(
    ("name", "task", "target"),
    [
        ("roc_auc", "regression", [0.5, 1.5, 3.0]),
        ("accuracy", "regression", [0.5, 1.5, 3.0]),
        ("neg_mean_squared_log_error", "regression", [-2.0, -3.0, -4.0]),
        ("r2", "binary", ["yes", "no", "yes"]),
        ("roc_auc", "multiclass", ["a", "b", "c"]),
    ],
)
def test_a_scorer_that_does_not_suit_the_target_is_refused_before_anything_is_fitted(name, task, target):
    with pytest.raises(InvalidParameterError, match=f"a scorer for the target, whose task is {task}"):
        check_scorer(name, np.array(target), task)


@pytest.mark.parametrize(
    ("name", "task", "target"),
    [
        ("neg_median_absolute_error", "regression", [0.5, 1.5, 3.0]),
        ("positive_likelihood_ratio", "binary", [0, 1, 1]),  # not defined for constant predictions
        ("roc_auc", "binary", ["yes", "no", "yes"]),
        ("roc_auc_ovr", "multiclass", ["a", "b", "c"]),
        ("balanced_accuracy", "multiclass", ["a", "b", "c"]),
    ],
)
def test_a_scorer_that_suits_the_target_is_accepted(name, task, target):
    check_scorer(name, np.array(target), task)


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=5), st.booleans())
def test_gains_are_positive_for_better_scores(pairs, is_loss):
    scoring = make_scoring(None if is_loss else "r2", "regression")
    theirs, ours = np.array(pairs).T
    gains = scoring.gains(theirs, ours)
    for gain, one, other in zip(gains, ours, theirs, strict=True):
        assert (gain > 0) == (one < other if is_loss else one > other)
    assert scoring.unit(theirs) == (theirs.mean() if is_loss else 1.0)


@given(shares)
def test_improvements_of_losses_are_percentages_and_those_of_scores_differences(share):
    loss, score = make_scoring(None, "regression"), make_scoring("r2", "regression")
    # There is no negative zero.
    assert loss.improvement_text(share) == f"{100 * share:+.1f}\u00a0%".replace("-0.0\u00a0", "+0.0\u00a0")
    assert score.improvement_text(share) == f"{share:+.4f}".replace("-0.0000", "+0.0000")
    assert loss.improvement_text(abs(share), sign=False)[0] != "+"


@pytest.mark.parametrize(
    ("name", "task"), [("rmse", "regression"), ("log_loss", "binary"), ("neg_log_loss", "multiclass")]
)
def test_the_default_measure_may_be_named(name, task):
    assert make_scoring(name, task).contributions is not None
    assert make_scoring(name, task).contributions is make_scoring(None, task).contributions


def test_a_measure_without_a_name_is_called_a_score():
    assert make_scoring(lambda *_: 0.0, "regression").name == "score"
