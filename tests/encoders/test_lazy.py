"""Encoders on lazy frames: what they remember and refuse, and what an engine that fails leaves behind."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.lazy.cases import close, plain, same_moments, same_rows
from tests.lazy.engines import engine, put_into_duckdb

from sufrep import (
    ContrastEncoder,
    FisherEncoder,
    LatentStateEncoder,
    LowRankEncoder,
    MeansEncoder,
    MixedModelEncoder,
    MNLEncoder,
    load,
)
from sufrep.errors import (
    ColumnsMismatchError,
    EngineError,
    FoldColumnError,
    ForbiddenUploadError,
    InfiniteValueError,
    IntegerClassesWarning,
    LazyFrameError,
    LazyOutputError,
    LazyTrainingError,
    MagnitudeError,
    MissingLevelError,
    OldNarwhalsError,
    RowsNeededError,
    SampleWeightError,
    TargetError,
    UnknownColumnError,
    UnseenLevelError,
)

__all__ = ["engine"]

BOTH = pytest.mark.parametrize("engine", ["polars", "duckdb"], indirect=True)
ROWS = plain().train
NEW = ROWS.drop("fold")


def means(**parameters: Any) -> MeansEncoder:
    return MeansEncoder("g", covariates=["a", "b"], **parameters)


# What is remembered


@BOTH
def test_target_and_weight_need_not_exist_in_new_rows(engine):
    encoder = means(use_target=True).fit(engine.put(NEW), "y", sample_weight="w")
    assert encoder.feature_names_in_.tolist() == ["id", "g", "h", "part", "a", "b", "c"]
    assert encoder.n_features_in_ == 7
    with_them, without = (
        engine.collect(encoder.transform(engine.put(frame))) for frame in (NEW, NEW.drop("y", "w"))
    )
    same_rows(with_them, without)
    assert "y" not in with_them.columns
    with pytest.raises(ColumnsMismatchError, match="Feature names seen at fit time, yet now missing:\n- h"):
        encoder.transform(engine.put(NEW.drop("h")))


def test_a_column_of_weights_or_folds_works_in_memory_too():
    by_name = means(use_target=True).fit_transform(ROWS, "y", "w", fold="fold")
    folds = [
        (np.flatnonzero(ROWS["fold"] != fold), np.flatnonzero(ROWS["fold"] == fold)) for fold in range(4)
    ]
    by_hand = means(use_target=True, cv=folds).fit_transform(
        ROWS.drop("y", "w", "fold"), ROWS["y"].to_numpy(), ROWS["w"].to_numpy()
    )
    np.testing.assert_array_equal(by_name, by_hand)


@BOTH
def test_chunks_of_lazy_frames_give_what_all_rows_give(engine):
    whole = means(shrinkage="auto").fit(engine.put(ROWS))
    parts = means(shrinkage="auto")
    for frame in (ROWS[:200], ROWS[200:]):
        parts.partial_fit(engine.put(frame))
    same_moments(parts, whole)


@BOTH
def test_a_lazily_fitted_encoder_is_saved_and_serves_rows_in_memory(engine, tmp_path):
    means().fit(engine.put(ROWS)).save(tmp_path / "encoder.sufrep")
    loaded = load(tmp_path / "encoder.sufrep").set_output(transform="polars")
    same_rows(loaded.transform(ROWS), means().set_output(transform="polars").fit(ROWS).transform(ROWS))
    assert set(loaded.table("g").columns) >= {"g", "g_mean_a"}


@BOTH
def test_the_own_target_of_a_row_does_not_move_its_training_columns(engine):
    def columns(frame: pl.DataFrame) -> pl.DataFrame:
        encoder = means(use_target=True, shrinkage="auto", target_type="continuous")
        return engine.collect(encoder.fit_transform(engine.put(frame), "y", fold="fold")).sort("id")

    fold = ROWS["fold"] == 2
    before = columns(ROWS)
    after = columns(ROWS.with_columns(y=pl.when(fold).then(pl.col("y") + 100).otherwise("y")))
    for name in ("g_mean_a", "g_mean_b", "g_mean_target"):
        own, others = (
            (before.filter(rows)[name] - after.filter(rows)[name]).abs().max() for rows in (fold, ~fold)
        )
        assert own < 1e-12  # engines add up in any order
        assert others > 1e-6


@pytest.mark.parametrize(
    ("engine", "n_covariates"),
    [("polars", 55), ("duckdb", 55), ("dask", 55), ("ibis", 55), ("spark", 35)],
    indirect=["engine"],
)
@pytest.mark.parametrize("has_nulls", [False, True])
def test_many_covariates_are_multiplied_in_batches(engine, n_covariates, has_nulls):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "g": rng.integers(0, 5, 300),
            "w": rng.integers(0, 3, 300) / 2,
            **{f"x{j}": rng.normal(size=300) + 1e4 * j for j in range(n_covariates)},
        }
    )
    if has_nulls:
        frame = frame.with_columns(x1=pl.when(pl.col("x0") > 0).then("x1"))
    encoder, expected = (LowRankEncoder("g", n_components=2, standardize=True) for _ in range(2))
    same_moments(encoder.fit(engine.put(frame), sample_weight="w"), expected.fit(frame, sample_weight="w"))
    assert encoder.moments_["g"].order == 2


def test_moments_far_from_zero_need_a_correction():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"g": rng.integers(0, 3, 5_000), "x": 1e9 + rng.normal(size=5_000) * 1e-3})
    lazy, eager = (MeansEncoder("g", shrinkage="auto").fit(rows) for rows in (put_into_duckdb(frame), frame))
    found, expected = lazy.moments_["g"], eager.moments_["g"]
    close(found.scatter, expected.scatter, 1e3 * expected.scatter)  # the values have few digits left
    assert abs(found.squares[0] / expected.squares[0] - 1) < 1e-6


@BOTH
def test_whole_numbers_that_are_treated_as_classes_are_reported(engine):
    with pytest.warns(IntegerClassesWarning, match="The target has 4 distinct whole numbers"):
        lazy = means(use_target=True).fit(engine.put(NEW), "y")
    assert lazy.target_type_ == "multiclass"
    numbers = engine.put(NEW.with_columns(y=pl.col("id").cast(pl.Float64)))
    assert means(use_target=True).fit(numbers, "y").target_type_ == "continuous"
    answer = pl.when(pl.col("y") > 1).then(pl.lit("yes")).otherwise(pl.lit("no"))
    text = engine.put(NEW.with_columns(y=answer))
    assert means(use_target=True).fit(text, "y").target_type_ == "binary"


# What is refused


@BOTH
@pytest.mark.parametrize(("y", "weight"), [(ROWS["y"].to_numpy(), None), ("y", ROWS["w"].to_numpy())])
def test_arrays_next_to_a_lazy_frame_are_refused(engine, y, weight):
    with pytest.raises(LazyFrameError, match=r"is of type ndarray.\nHint: give the name of its column"):
        means(use_target=True).fit(engine.put(NEW), y, sample_weight=weight)


@BOTH
def test_infinity_is_refused_with_its_column(engine):
    frame = ROWS.with_columns(a=pl.when(pl.col("id") == 17).then(float("inf")).otherwise("a"))
    with pytest.raises(InfiniteValueError, match=r"Covariate 'a' contains infinity: 1 value\(s\)\. "):
        means().fit(engine.put(frame))


@BOTH
def test_sums_that_are_out_of_range_are_refused(engine):
    with pytest.raises(MagnitudeError, match="'a' holds numbers whose sum is out of range"):
        means().fit(engine.put(ROWS.with_columns(a=pl.lit(1e308))))


@BOTH
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (pl.lit(-1.0), "is negative, as low as -1"),
        (pl.lit(float("nan")), r"contains NaN, null or infinity in 600 row\(s\)"),
        (pl.lit(None, dtype=pl.Float64), r"contains NaN, null or infinity in 600 row\(s\)"),
        (pl.lit(0.0), "is zero in every row"),
        (pl.lit("heavy"), "is the column 'w', which holds text values"),
    ],
)
def test_weights_that_are_no_frequencies_are_refused(engine, weight, message):
    with pytest.raises(SampleWeightError, match=message):
        means().fit(engine.put(ROWS.with_columns(w=weight)), sample_weight="w")


@BOTH
@pytest.mark.parametrize(
    ("target", "target_type", "message"),
    [
        (pl.lit(None, dtype=pl.Float64), "continuous", "null, NaN or infinity in 600"),
        (pl.lit(float("nan")), "auto", "null, NaN or infinity"),
        (pl.lit("a"), "continuous", "y holds text values"),
        (pl.col("y"), "binary", "y has 4 classes"),
        (pl.lit(0).cast(pl.Date), "auto", "y holds date values"),
    ],
)
def test_targets_that_are_none_are_refused(engine, target, target_type, message):
    with pytest.raises(TargetError, match=message):
        means(use_target=True, target_type=target_type).fit(engine.put(ROWS.with_columns(y=target)), "y")


@BOTH
def test_an_encoder_that_uses_the_target_needs_its_name(engine):
    with pytest.raises(TargetError, match=r"Hint: name its column"):
        FisherEncoder("g").fit(engine.put(NEW))
    with pytest.raises(UnknownColumnError, match="price"):
        FisherEncoder("g").fit(engine.put(NEW), "price")


@BOTH
def test_unseen_and_missing_levels_are_errors_on_request(engine):
    encoder = means(unseen="error").fit(engine.put(ROWS))
    other = ROWS.with_columns(g=pl.when(pl.col("id") < 3).then(pl.lit("elsewhere")).otherwise("g"))
    with pytest.raises(
        UnseenLevelError, match=r"'g' holds 1 unseen level\(s\): elsewhere. The encoder knows 12"
    ):
        encoder.transform(engine.put(other))
    same_rows(
        engine.collect(encoder.transform(engine.put(ROWS))),
        engine.collect(encoder.set_params(unseen="prior").transform(engine.put(ROWS))),
    )
    holes = ROWS.with_columns(g=pl.when(pl.col("id") < 3).then(None).otherwise("g"))
    with pytest.raises(MissingLevelError, match=r"'g' holds 3 null\(s\)"):
        means(missing="error").fit(engine.put(holes))
    with pytest.raises(MissingLevelError, match=r"'g' holds 3 null\(s\)"):
        means(missing="error").fit(engine.put(ROWS)).transform(engine.put(holes))


@BOTH
def test_a_missing_level_can_be_an_average_one(engine):
    holes = ROWS.with_columns(g=pl.when(pl.col("id") % 4 == 0).then(None).otherwise("g"))
    eager = means(missing="prior", use_target=True).set_output(transform="polars")
    lazy = means(missing="prior", use_target=True)
    found = engine.collect(lazy.fit_transform(engine.put(holes), "y", fold="fold"))
    same_rows(found, eager.fit_transform(holes, "y", fold="fold"))
    same_rows(
        engine.collect(lazy.transform(engine.put(holes.drop("fold")))), eager.transform(holes.drop("fold"))
    )


@BOTH
def test_a_new_level_gets_the_vector_of_its_parent(engine):
    rows = NEW.with_columns(pl.col("a") + 50 * pl.col("part").str.slice(-1).cast(pl.Int64))
    other = rows.with_columns(g=pl.when(pl.col("part") == "part 2").then(pl.lit("new")).otherwise("g"))
    nested = {"shrinkage": "auto", "parent": {"g": "part"}, "unseen": "prior"}
    eager = means(**nested).set_output(transform="polars").fit(rows)
    lazy = means(**nested).fit(engine.put(rows))
    found = engine.collect(lazy.transform(engine.put(other)))
    same_rows(found, eager.transform(other))
    assert found.filter(pl.col("part") == "part 2")["g_mean_a"].n_unique() == 1
    prior = lazy.representations_["g"].prior[0]
    assert abs(found.filter(pl.col("part") == "part 2")["g_mean_a"][0] - prior) > 0.1


@BOTH
def test_what_no_lazy_frame_can_be_is_refused(engine):
    with pytest.raises(LazyOutputError, match="sparse_output=True asks for a sparse matrix"):
        ContrastEncoder("g", sparse_output=True).fit(engine.put(ROWS)).transform(engine.put(ROWS))
    many = pl.DataFrame({"g": np.arange(1_100), "x": np.arange(1_100.0)})
    with pytest.raises(LazyOutputError, match="has 1,099 new columns; on a lazy frame it has at most 1,000"):
        ContrastEncoder("g").fit(engine.put(many)).transform(engine.put(many))
    with pytest.raises(LazyOutputError, match="set_output asks for pandas"):
        means().fit(engine.put(ROWS)).set_output(transform="pandas").transform(engine.put(ROWS))


@BOTH
def test_columns_that_each_row_needs_for_itself_are_refused(engine):
    with pytest.raises(LazyTrainingError, match=r"leave_one_out=True .*\nHint: .*shrinkage='auto'"):
        means(leave_one_out=True).fit_transform(engine.put(ROWS))
    with pytest.raises(LazyTrainingError, match=r"needs folds.*\nHint: .*fold='fold'"):
        means(use_target=True).fit_transform(engine.put(NEW), "y")
    mixed = MixedModelEncoder("g", covariates=["a"], sample_rows=300, target_type="continuous")
    with pytest.raises(RowsNeededError, match="depend on the covariates of each row"):
        mixed.fit(engine.put(NEW), "y").transform(engine.put(NEW))
    states = LatentStateEncoder("g", covariates=["a", "b"], n_states=2, sample_rows=300).fit(engine.put(NEW))
    with pytest.raises(RowsNeededError, match=r"new levels from their rows.*\nHint: set unseen='prior'"):
        states.transform(engine.put(NEW))
    exact = MNLEncoder("g", covariates=["a"], sample_rows=300)
    with pytest.raises(LazyTrainingError, match="learnt from a sample"):
        exact.fit_transform(engine.put(NEW))


@BOTH
@pytest.mark.parametrize(("fold", "message"), [(pl.lit(1), "the same fold"), (pl.lit(None), "nulls")])
def test_folds_that_are_none_are_refused(engine, fold, message):
    frame = ROWS.with_columns(fold=fold.cast(pl.Int64))
    for rows in (engine.put(frame), frame):
        with pytest.raises(FoldColumnError, match=f"holds {message}"):
            means(use_target=True).fit_transform(rows, "y", fold="fold")


def test_a_connection_that_reads_no_python_objects_is_refused():
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows AS SELECT 'a' AS g, 1.0 AS x")
    connection.execute("SET python_enable_replacements = false")
    encoder = MeansEncoder("g").fit(connection.table("rows"))
    with pytest.raises(ForbiddenUploadError, match="python_enable_replacements = true"):
        encoder.transform(connection.table("rows"))


def test_an_old_narwhals_is_refused(monkeypatch):
    monkeypatch.setattr("narwhals.__version__", "2.20.0")
    with pytest.raises(OldNarwhalsError, match=r"Lazy frames need narwhals 2.28 or newer, this is 2.20.0"):
        means().fit(ROWS.lazy())


# What an engine that fails leaves behind


def test_a_file_that_is_cut_short_leaves_the_encoder_as_it_was(tmp_path):
    file = tmp_path / "rows.parquet"
    ROWS.write_parquet(file)
    lazy = pl.scan_parquet(file)
    encoder = means().fit(lazy)
    before = dict(vars(encoder))
    file.write_bytes(file.read_bytes()[:2_000])
    with pytest.raises(EngineError, match=r"polars failed while .*\nHint: nothing was changed"):
        encoder.fit(lazy)
    assert vars(encoder) == before


def test_files_whose_types_differ_leave_the_encoder_as_it_was(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    ROWS.write_parquet(tmp_path / "a.parquet")
    ROWS.with_columns(a=pl.lit("text")).write_parquet(tmp_path / "b.parquet")
    encoder = means()
    with pytest.raises(EngineError, match="DuckDB failed while collecting the moments"):
        encoder.fit(duckdb.connect().read_parquet(str(tmp_path / "*.parquet")))
    assert not hasattr(encoder, "representations_")
    with pytest.raises(EngineError, match="polars failed while"):
        encoder.fit(pl.scan_parquet(tmp_path / "*.parquet"))


def test_a_connection_that_is_closed_is_reported():
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    connection = duckdb.connect()
    relation = connection.sql("SELECT 'a' AS g, 1.0 AS x")
    connection.close()
    with pytest.raises(EngineError, match="DuckDB failed while"):
        MeansEncoder("g").fit(relation)


@pytest.mark.parametrize("fold", [None, "fold"])
@BOTH
def test_rows_that_learn_from_earlier_rows_need_an_order(engine, fold):
    rows = engine.put(plain().train)
    encoder = MeansEncoder("g", covariates=["a"], use_target=True, cv="ordered", time="id")
    with pytest.raises(LazyTrainingError, match=r"lets rows learn from earlier rows only, and X is"):
        encoder.fit_transform(rows, "y", fold=fold)


@BOTH
def test_new_states_cannot_be_estimated_by_queries(engine):
    rows = plain().train.select("g", "a", "b")
    encoder = LatentStateEncoder("g", n_states=2, sample_rows=300).fit(engine.put(rows))
    with pytest.raises(RowsNeededError, match=r"estimates new levels from their rows.*\n.*unseen='prior'"):
        encoder.transform(engine.put(rows))
    with pytest.raises(RowsNeededError, match="the rows of the new levels are enough"):
        encoder.learn_levels(engine.put(rows))


@pytest.mark.parametrize("weight", [-1.0, float("nan"), 0.0])
@BOTH
def test_drift_checks_weights(engine, weight):
    rows = plain().train.select("g", "a", w=pl.lit(1.0))
    encoder = MeansEncoder("g").fit(engine.put(rows), sample_weight="w")
    with pytest.raises(SampleWeightError, match=r"negative|NaN|zero in every row"):
        encoder.drift(engine.put(rows.with_columns(w=pl.lit(weight))), sample_weight="w")
    with pytest.raises(LazyFrameError, match=r"give the name of its column"):
        encoder.drift(engine.put(rows), sample_weight=np.ones(len(rows)))


def test_lazy_frames_load_no_learner(tmp_path):
    code = (
        "import sys; import polars as pl; from sufrep import MeansEncoder, load; "
        "rows = pl.LazyFrame({'g': ['a', 'a', 'b'], 'x': [1.0, 2.0, 4.0]}); "
        f"MeansEncoder('g', shrinkage='auto').fit(rows).save({str(tmp_path / 'g.sufrep')!r}); "
        f"print(len(load({str(tmp_path / 'g.sufrep')!r}).transform(rows).collect())); "
        "heavy = ['cluster', 'ensemble', 'linear_model', 'metrics', 'model_selection', 'preprocessing']; "
        "print([name for name in heavy if f'sklearn.{name}' in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split("\n") == ["3", "[]", ""]
