"""What is encoded in every engine: encoders, and data that engines treat differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from sufrep import (
    ContrastEncoder,
    FisherEncoder,
    LowRankEncoder,
    MeansEncoder,
    MNLEncoder,
    PermutationEncoder,
    SparseLowRankEncoder,
)

COVARIATES = ["a", "b", "c"]
NESTED = {"parent": {"g": "part"}, "on_conflict": "majority"}
ENCODERS = {
    "means": MeansEncoder("g", covariates=COVARIATES),
    "pooled means": MeansEncoder("g", covariates=COVARIATES, min_frequency=45),
    "shrunken means": MeansEncoder("g", covariates=COVARIATES, shrinkage="auto"),
    "nested means": MeansEncoder("g", covariates=COVARIATES, shrinkage="auto", **NESTED),
    "nested target": MeansEncoder("g", covariates=COVARIATES, use_target=True, **NESTED),
    "means and target": MeansEncoder("g", covariates=COVARIATES, use_target=True),
    "classes": MeansEncoder("g", covariates=COVARIATES, use_target=True, target_type="multiclass"),
    "low rank": LowRankEncoder("g", covariates=COVARIATES, n_components=2),
    "low rank and target": LowRankEncoder("g", covariates=COVARIATES, n_components=2, use_target=True),
    "sparse low rank": SparseLowRankEncoder("g", covariates=COVARIATES, n_components=2),
    "discriminant": MNLEncoder("g", covariates=COVARIATES, solver="lda"),
    "ranks": FisherEncoder("g"),
    "indicators": ContrastEncoder("g"),
    "permutation": PermutationEncoder("g"),
}


@dataclass(frozen=True)
class Rows:
    """Training rows, new rows, and the parameters that go with them."""

    train: pl.DataFrame
    new: pl.DataFrame
    group: Any = "g"
    weight: str | None = None


def plain(seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    n = 600
    level = rng.integers(0, 12, n)
    frame = pl.DataFrame(
        {
            "id": np.arange(n),
            "g": [f"z{value}" for value in level],
            "h": rng.integers(0, 3, n),
            "part": [f"part {value % 4}" for value in level],
            "a": rng.normal(size=n) + level,
            "b": rng.integers(0, 7, n) + level % 3,
            "c": rng.random(n) < 0.1 * (level % 5),
            "y": (rng.normal(size=n) + level % 4).round().clip(0, 3).astype(int),
            "w": rng.integers(0, 3, n).astype(float) / 4,
            "fold": rng.integers(0, 4, n),
        }
    )
    return Rows(frame, frame.drop("fold").reverse())


def with_nulls() -> Rows:
    rows = plain(1)

    def punched(frame: pl.DataFrame) -> pl.DataFrame:
        every = pl.col("id")
        return frame.with_columns(
            pl.when(every % 11 == 0).then(None).otherwise("g").alias("g"),
            pl.when(every % 7 == 0).then(None).otherwise("a").alias("a"),
            pl.when(every % 13 == 0).then(None).otherwise("c").alias("c"),
        )

    return Rows(punched(rows.train), punched(rows.new))


def with_nan() -> Rows:
    """NaN in a covariate and, next to −0.0, in a key."""
    rows = plain(2)

    def punched(frame: pl.DataFrame) -> pl.DataFrame:
        number = pl.col("g").str.strip_prefix("z").cast(float)
        key = pl.when(pl.col("id") % 2 == 0).then(-number).otherwise(number)  # 0.0 and −0.0
        return frame.with_columns(
            pl.when(number == 3).then(float("nan")).when(number == 0).then(key).otherwise(number).alias("g"),
            pl.when(pl.col("id") % 9 == 0).then(float("nan")).otherwise("a").alias("a"),
        )

    return Rows(punched(rows.train), punched(rows.new))


def with_unseen() -> Rows:
    rows = plain(3)
    other = pl.lit("new ") + (pl.col("id") % 3).cast(pl.String)
    new = rows.new.with_columns(pl.when(pl.col("id") % 5 == 0).then(other).otherwise("g").alias("g"))
    return Rows(rows.train, new)


def crossed() -> Rows:
    rows = plain(4)
    holes = pl.when(pl.col("id") % 17 == 0).then(None).otherwise("h").alias("h")
    return Rows(rows.train.with_columns(holes), rows.new.with_columns(holes), group=("g", "h"))


def weighted() -> Rows:
    rows = plain(5)
    return Rows(rows.train, rows.new, weight="w")


def far_apart() -> Rows:
    """One level holds huge numbers, and another varies by little far from zero."""
    rows = plain(6)

    def moved(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(
            pl.col("a")
            + pl.when(pl.col("g") == "z1").then(1e12).when(pl.col("g") == "z2").then(1e6).otherwise(0)
        )

    return Rows(moved(rows.train), moved(rows.new))


CONDITIONS = {
    "plain": plain,
    "nulls": with_nulls,
    "nan": with_nan,
    "unseen": with_unseen,
    "crossed": crossed,
    "weights": weighted,
    "far apart": far_apart,
}


def made(encoder: str, rows: Rows) -> Any:
    """A fresh encoder for the rows."""
    made = clone(ENCODERS[encoder]).set_params(group=rows.group)
    if getattr(made, "parent", None):
        made.set_params(parent={rows.group: "part"})
    return made


def check(encoder: str, condition: str, engine: Any) -> None:
    """Fit, transform and fit_transform in an engine agree with the same in memory."""
    rows = CONDITIONS[condition]()
    train, new = engine.put(rows.train), engine.put(rows.new)
    without_fold = engine.put(rows.train.drop("fold"))
    eager = made(encoder, rows).set_output(transform="polars")
    lazy = made(encoder, rows)
    uses_target = eager._needs.uses_target
    y = "y" if uses_target else None
    drop = [] if uses_target else ["y"]
    eager.fit(rows.train.drop("fold", *drop), y, sample_weight=rows.weight)
    if not uses_target:
        without_fold = engine.put(rows.train.drop("fold", "y"))
        new = engine.put(rows.new.drop("y"))
    lazy.fit(without_fold, y, sample_weight=rows.weight)
    same_moments(lazy, eager)
    same_rows(engine.collect(lazy.transform(new)), eager.transform(rows.new.drop(*drop)))
    if uses_target:
        eager, lazy = made(encoder, rows).set_output(transform="polars"), made(encoder, rows)
        given = {"y": "y", "sample_weight": rows.weight, "fold": "fold"}
        same_rows(
            engine.collect(lazy.fit_transform(train, **given)), eager.fit_transform(rows.train, **given)
        )


def same_moments(lazy: Any, eager: Any) -> None:
    assert list(lazy.moments_) == list(eager.moments_)
    for group, found in lazy.moments_.items():
        expected = eager.moments_[group].of_order(found.order)
        assert found.levels.tolist() == expected.levels.tolist()
        assert found.count.tolist() == expected.count.tolist()
        assert found.covariates == expected.covariates
        spread = 1.0
        close(found.weight, expected.weight)
        close(found.observed, expected.observed)
        if found.order == 2:
            second, wanted = found.require_order_two(), expected.require_order_two()
            spread = np.sqrt(wanted.squares / expected.observed.sum(axis=0))
            scale = np.sqrt(np.outer(wanted.squares, wanted.squares))
            close(second.scatter, wanted.scatter, scale)
            close(second.squares, wanted.squares)
            close(second.complete_weight, wanted.complete_weight)
            close(second.complete_mean, wanted.complete_mean, spread)
        close(found.mean, expected.mean, spread)


def close(found: Any, expected: Any, scale: Any = 0.0) -> None:
    """Equal to 1e-9, relative to the value or to a scale, whichever is larger."""
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    allowed = 1e-9 * np.maximum(np.abs(expected), scale)
    assert (np.abs(np.nan_to_num(found) - np.nan_to_num(expected)) <= np.nan_to_num(allowed)).all()


def same_rows(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    """The same rows in any order, numbers to 1e-9 of their size or of the spread of their column."""
    assert found.columns == expected.columns
    assert len(found) == len(expected)
    found, expected = found.sort("id"), expected.sort("id")
    for name in expected.columns:
        if expected[name].dtype.is_numeric():
            wanted = expected[name].cast(pl.Float64).to_numpy()
            close(found[name].cast(pl.Float64).to_numpy(), wanted, np.nanstd(wanted))
        else:
            assert found[name].to_list() == expected[name].to_list()


def check_later(encoder: str, condition: str, engine: Any) -> None:
    """What happens to levels after the fit agrees with memory: ``drift`` and ``learn_levels``."""
    rows = CONDITIONS[condition]()
    fitted = made(encoder, rows)
    uses_target = fitted._needs.uses_target
    drop = ["fold"] if uses_target else ["fold", "y"]
    train = rows.train.drop(drop).filter(pl.col("part") != "part 3")
    # Some levels move much. The others move too, because a difference of 0 has no direction.
    new = rows.train.drop(drop).with_columns(
        pl.col("a") + (pl.col("id") % 5) / 7,
        pl.col("b") + pl.col("id") % 3 + 3 * (pl.col("part") == "part 1"),
        pl.col("c") & (pl.col("id") % 8 != 0),
    )
    fitted.fit(train, "y" if uses_target else None, sample_weight=rows.weight)
    there = engine.put(new)
    given = {"sample_weight": rows.weight}
    if condition != "far apart":  # means of 1e12 are rounded to 1e-4, and drift compares them
        same_drift(fitted.drift(there, **given), fitted.drift(new, **given))
    if getattr(fitted, "new_levels_", None) is None or rows.weight is not None:
        return
    y = "y" if uses_target else None
    lazy, eager = fitted.learn_levels(there, y), fitted.learn_levels(new, y)
    same_moments(lazy, eager)
    for name, found in lazy.representations_.items():
        expected = eager.representations_[name]
        assert found.levels.tolist() == expected.levels.tolist()
        assert found.n_levels > fitted.representations_[name].n_levels
        close(np.asarray(found.values), np.asarray(expected.values), np.nanstd(expected.values, axis=0))
    if getattr(fitted, "parent", None):
        for name, links in lazy.parents_.items():
            for one, other in zip(links, eager.parents_[name], strict=True):
                assert one.chosen("majority") == other.chosen("majority")
    same_rows(engine.collect(lazy.transform(there)), eager.set_output(transform="polars").transform(new))


def same_drift(lazy: Any, eager: Any) -> None:
    assert (lazy.n_moved, lazy.n_new, lazy.n_vanished) == (eager.n_moved, eager.n_new, eager.n_vanished)
    assert eager.n_new
    numbers = ("rows_then", "rows_now", "statistic", "df1", "df2", "p_value", "q_value", "difference")
    for name, found in lazy.groups.items():
        expected = eager.groups[name]
        assert found.n_rows == expected.n_rows
        order = level_order(found.levels), level_order(expected.levels)
        assert found.levels[order[0]].tolist() == expected.levels[order[1]].tolist()
        for number in numbers:
            one, other = (np.asarray(getattr(side, number)) for side in (found, expected))
            # Differences and statistics are in units of the spread; that of a level that did not move is 0.
            close(one[order[0]], other[order[1]], 1.0)


def level_order(levels: Any) -> Any:
    """Positions of the levels in the order of their texts."""
    return sorted(range(len(levels)), key=lambda place: str(levels[place]))
