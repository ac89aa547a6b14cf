"""Samples of lazy frames."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lazy.engines import engine

from sufrep import LatentStateEncoder, MNLEncoder
from sufrep._frames._sampling import level_rates
from sufrep.encoders._lazy import sample_rows
from sufrep.errors import EmptySampleError, RowsNeededError

__all__ = ["engine"]


def table(n: int = 4_000, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    level = np.minimum(rng.geometric(0.2, n), 12)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "g": [None if value == 2 else f"é{value}" for value in level],
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "b": rng.random(n) < 0.5,
            "d": pl.Series(rng.integers(0, 9_000, n)).cast(pl.Date),
        }
    ).with_columns(pl.when(pl.col("id") % 19 == 0).then(None).otherwise("x").alias("x"))


def sampled(native: object, **parameters: object) -> pl.DataFrame:
    encoder = LatentStateEncoder("g", sample_rows=800, **parameters)
    frame = sample_rows(encoder, native, None, None)
    return frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)


@pytest.mark.parametrize("by", [None, "id"])
@pytest.mark.parametrize("engine", ["duckdb", "ibis", "dask", "spark"], indirect=True)
def test_every_engine_and_every_order_of_the_rows_gives_the_same_sample(engine, by):
    frame = table()
    expected = sampled(frame.lazy(), sample_by=by)
    found = sampled(engine.put(frame.reverse()), sample_by=by)
    assert 700 < len(expected) < 900
    assert found["id"].to_list() == expected["id"].to_list()
    assert found["g"].to_list() == expected["g"].to_list()


def test_files_in_reversed_order_give_the_same_sample(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    frame = table()
    for number in range(4):
        frame[number * 1_000 : (number + 1) * 1_000].write_parquet(tmp_path / f"{number}.parquet")
    files = sorted(map(str, tmp_path.iterdir()))
    expected = sampled(pl.scan_parquet(files[::-1]))
    found = sampled(duckdb.connect().read_parquet(files))
    assert found["id"].to_list() == expected["id"].to_list()


def test_small_levels_are_kept_and_large_ones_give_as_many_rows():
    frame = table(20_000)
    counts = dict(frame.group_by("g").len().iter_rows())
    found = dict(sampled(frame.lazy()).group_by("g").len().iter_rows())
    assert found.keys() == counts.keys()
    large = [found[level] for level in counts if counts[level] > 200]
    assert all(found[level] == counts[level] for level in counts if counts[level] < 50)
    assert max(large) < 1.6 * min(large)


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=30), st.integers(1, 5_000))
def test_rates_keep_the_number_of_rows_asked_for(counts, n_rows):
    count = np.array(counts)
    rates = level_rates(count, n_rows)
    assert (rates > 0).all()
    assert (rates <= 1).all()
    np.testing.assert_allclose((rates * count).sum(), min(n_rows, count.sum()))
    kept = rates * count
    assert (np.abs(kept[rates < 1] - kept.max()) < 1e-9 * kept.max()).all()


def test_an_encoder_that_needs_rows_learns_from_the_sample():
    frame = table().drop("d", "b")
    encoder = LatentStateEncoder("g", n_states=2, sample_rows=800, sample_by="id", covariates=["x"])
    expected = LatentStateEncoder("g", n_states=2, covariates=["x"]).fit(
        sampled(frame.lazy(), sample_by="id")
    )
    found = encoder.fit(frame.lazy())
    np.testing.assert_array_equal(found.representations_["g"].values, expected.representations_["g"].values)
    output = found.set_params(unseen="prior").transform(frame.lazy()).collect()
    assert output.columns == ["id", "x", "g_state1", "g_state2"]


@pytest.mark.parametrize(
    ("encoder", "hint"), [(LatentStateEncoder("g"), "sample_rows="), (MNLEncoder("g"), "solver='lda'")]
)
def test_without_a_number_of_rows_a_lazy_frame_is_refused(encoder, hint):
    with pytest.raises(RowsNeededError, match=rf"needs rows, and X is a lazy frame.\nHint: .*{hint}"):
        encoder.fit(table().lazy())


def test_rows_that_are_alike_ask_for_a_column():
    frame = pl.DataFrame({"g": ["a", "b"] * 500, "x": [1.0, 2.0] * 500}).lazy()
    with pytest.raises(EmptySampleError, match=r"no row of . of the 2 levels of 'g'.*\nHint: .* sample_by"):
        MNLEncoder("g", sample_rows=4).fit(frame)
