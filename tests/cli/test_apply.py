"""``sufrep apply``: new rows through a saved encoder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from sufrep import ContrastEncoder, MeansEncoder, load
from sufrep._files import open_table
from sufrep.cli import _apply

TRAIN = "zipcode,sqft,rooms,price\n01234,100,3,300\n01234,120,4,330\n98178,80,2,250\n00007,200,6,900\n"
NEW = "rooms,zipcode,sqft,extra\n3,01234,90,a\n5,00007,210,b\n2,55555,70,c\n1,,60,d\n"


@pytest.fixture
def encoder(sufrep, tmp_path):
    """An encoder file, fitted on the training rows by the command."""
    (tmp_path / "train.csv").write_text(TRAIN)
    path = tmp_path / "zip.sufrep"
    result = sufrep(
        f"encode {tmp_path}/train.csv --group zipcode --target price --method means --save {path}"
    )
    assert result.code == 0, result.err
    return path


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(NEW)
    return path


def test_new_rows_get_what_the_python_encoder_gives(sufrep, encoder, new, tmp_path):
    result = sufrep(f"apply {encoder} {new} --out {tmp_path}/out.parquet")
    assert result.code == 0, result.err
    frame = open_table(new, text=["zipcode"]).read()
    train = open_table(tmp_path / "train.csv", text=["zipcode"]).read()
    python = MeansEncoder("zipcode").set_output(transform="polars").fit(train.drop("price"))
    expected = python.transform(frame.select("zipcode", "sqft", "rooms"))
    out = pl.read_parquet(tmp_path / "out.parquet")
    assert out.columns == ["rooms", "zipcode", "sqft", "extra", "zipcode_mean_sqft", "zipcode_mean_rooms"]
    assert out.select(expected.columns).equals(expected)
    assert out["zipcode"].to_list() == ["01234", "00007", "55555", None]
    assert out["zipcode_mean_sqft"].to_list() == [110.0, 200.0, 125.0, 125.0]
    assert result.out == f"4 row(s) in {tmp_path}/out.parquet; 2 of them with a level that was never seen\n"


@pytest.mark.parametrize("ending", ["csv", "tsv", "feather"])
def test_all_formats_hold_the_same(sufrep, encoder, new, tmp_path, ending):
    for out in ("out.parquet", f"out.{ending}"):
        assert sufrep(f"apply {encoder} {new} --out {tmp_path / out}").code == 0
    frames = [open_table(tmp_path / out, text=["zipcode"]).read() for out in ("out.parquet", f"out.{ending}")]
    assert frames[0].equals(frames[1])


def test_batches_change_nothing(sufrep, encoder, new, tmp_path, monkeypatch):
    sufrep(f"apply {encoder} {new} --out {tmp_path}/whole.parquet")
    monkeypatch.setattr(_apply, "_BATCH", 1)
    result = sufrep(f"apply {encoder} {new} --out {tmp_path}/parts.parquet")
    assert "apply: 4 of 4, about 0 s left  4 rows\n" in result.err
    assert "2 of them with a level that was never seen" in result.out
    frames = [pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("whole", "parts")]
    assert frames[0].equals(frames[1])


def test_memory_holds_a_batch_and_not_the_table(sufrep, encoder, tmp_path, monkeypatch):
    (tmp_path / "long.csv").write_text("zipcode,sqft,rooms\n" + "01234,100,3\n98178,80,2\n" * 20_000)
    monkeypatch.setattr(_apply, "_BATCH", 1000)
    heights = []
    original = _apply.Seen.transform

    def measured(self, X):
        heights.append(X.height)
        return original(self, X)

    monkeypatch.setattr(_apply.Seen, "transform", measured)
    assert sufrep(f"apply {encoder} {tmp_path}/long.csv --out {tmp_path}/out.csv").code == 0
    assert sum(heights) == 40_000
    assert max(heights) <= 1000


def test_columns_are_left_out_on_demand_also_those_that_the_encoder_needs(sufrep, encoder, new, tmp_path):
    assert sufrep(f"apply {encoder} {new} --drop extra sqft --out {tmp_path}/out.csv").code == 0
    header = (tmp_path / "out.csv").read_text().splitlines()[0]
    assert header == "rooms,zipcode,zipcode_mean_sqft,zipcode_mean_rooms"


def test_further_columns_are_text_on_demand(sufrep, encoder, tmp_path):
    (tmp_path / "new.csv").write_text("zipcode,sqft,rooms,phone\n01234,1,1,0049\n")
    assert sufrep(f"apply {encoder} {tmp_path}/new.csv --text phone --out {tmp_path}/out.csv").code == 0
    assert "01234,1,1,0049," in (tmp_path / "out.csv").read_text()


def test_rows_without_any_known_level_are_warned_of_once(sufrep, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(_apply, "_BATCH", 1)
    (tmp_path / "new.csv").write_text("zipcode,sqft,rooms\n1234,100,3\n7,80,2\n")
    result = sufrep(f"apply {encoder} {tmp_path}/new.csv --out {tmp_path}/out.csv")
    assert result.code == 0
    assert result.err.count("warning: not one row holds a level of 'zipcode' that the encoder knows") == 1
    assert "(00007, 01234, 98178, …)" in result.err
    assert "2 of them with a level that was never seen" in result.out


def test_a_batch_of_new_levels_among_others_is_no_reason_to_warn(sufrep, encoder, new, tmp_path, monkeypatch):
    monkeypatch.setattr(_apply, "_BATCH", 1)
    assert "warning" not in sufrep(f"apply {encoder} {new} --out {tmp_path}/out.csv").err


def test_unseen_levels_are_refused_where_the_encoder_says_so(sufrep, new, tmp_path):
    (tmp_path / "train.csv").write_text(TRAIN)
    options = "--group zipcode --method means --target price --unseen error"
    assert sufrep(f"encode {tmp_path}/train.csv {options} --save {tmp_path}/zip.sufrep").code == 0
    result = sufrep(f"apply {tmp_path}/zip.sufrep {new} --out {tmp_path}/out.csv")
    assert result.code == 1
    assert "unseen level(s)" in result.err
    assert not (tmp_path / "out.csv").exists()


def test_an_encoder_that_python_fitted_on_numbers_reads_numbers(sufrep, tmp_path):
    frame = pl.DataFrame({"zip": [7, 7, 8], "x": [1.0, 2.0, 3.0]})
    MeansEncoder("zip").fit(frame).save(tmp_path / "zip.sufrep")
    (tmp_path / "new.csv").write_text("zip,x\n7,0\n8,0\n9,0\n")
    result = sufrep(f"apply {tmp_path}/zip.sufrep {tmp_path}/new.csv --out {tmp_path}/out.csv")
    assert result.out.endswith("1 of them with a level that was never seen\n")
    assert open_table(tmp_path / "out.csv").read()["zip_mean_x"].to_list() == [1.5, 3.0, 2.0]


def test_crossed_groups_are_looked_up_together(sufrep, tmp_path):
    frame = pl.DataFrame({"shop": ["01", "01", "2"], "brand": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})
    MeansEncoder([("shop", "brand")]).fit(frame).save(tmp_path / "shops.sufrep")
    (tmp_path / "new.csv").write_text("shop,brand,x\n01,b,0\n2,b,0\n")
    result = sufrep(f"apply {tmp_path}/shops.sufrep {tmp_path}/new.csv --out {tmp_path}/out.csv")
    assert "1 of them with a level that was never seen" in result.out
    assert open_table(tmp_path / "out.csv").read()["shop:brand_mean_x"].to_list()[0] == 2.0


def test_nulls_that_are_no_level_are_not_counted_as_new(sufrep, new, tmp_path):
    (tmp_path / "train.csv").write_text(TRAIN)
    options = "--group zipcode --method means --target price --missing prior"
    sufrep(f"encode {tmp_path}/train.csv {options} --save {tmp_path}/zip.sufrep")
    result = sufrep(f"apply {tmp_path}/zip.sufrep {new} --out {tmp_path}/out.csv")
    assert "1 of them with a level that was never seen" in result.out


@pytest.mark.parametrize("damage", ["truncated", "flipped", "other"])
def test_a_damaged_encoder_is_refused_and_nothing_is_written(sufrep, encoder, new, tmp_path, damage):
    content = bytearray(encoder.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[len(content) // 3] ^= 0xFF
    else:
        content = bytearray(b"zipcode,mean\n1,2\n")
    encoder.write_bytes(content)
    result = sufrep(f"apply {encoder} {new} --out {tmp_path}/out.csv")
    assert result.code == 1
    assert f"Cannot read '{encoder}'" in result.err
    assert not (tmp_path / "out.csv").exists()


def test_a_missing_encoder_suggests_its_neighbour(sufrep, encoder, new, tmp_path):
    result = sufrep(f"apply {tmp_path}/zip.suf {new} --out {tmp_path}/out.csv")
    assert result.code == 1
    assert f"There is no encoder '{tmp_path}/zip.suf'.\nHint: did you mean '{encoder}'" in result.err


@pytest.mark.parametrize("name", ["", "nowhere/zip.sufrep"])
def test_a_place_that_is_no_encoder_is_told(sufrep, new, tmp_path, name):
    result = sufrep(f"apply '{tmp_path}/{name}' {new} --out {tmp_path}/out.csv")
    assert result.code == 1
    assert "Hint: name a file that --save wrote." in result.err


def test_encoders_that_files_cannot_serve_are_refused(sufrep, new, tmp_path):
    MeansEncoder(group=0).fit([["a", 1.0], ["b", 3.0]]).save(tmp_path / "array.sufrep")
    ContrastEncoder("g", sparse_output=True).fit(pl.DataFrame({"g": ["a", "b"]})).save(
        tmp_path / "sparse.sufrep"
    )
    for name, message in (("array", "whose columns have no names"), ("sparse", "its columns are sparse")):
        result = sufrep(f"apply {tmp_path}/{name}.sufrep {new} --out {tmp_path}/out.csv")
        assert result.code == 1
        assert message in result.err


def test_missing_columns_suggest_what_they_may_be_called_now(sufrep, encoder, tmp_path):
    (tmp_path / "new.csv").write_text("zipcode,sq_ft,rooms\n01234,100,3\n")
    result = sufrep(f"apply {encoder} {tmp_path}/new.csv --out {tmp_path}/out.csv")
    assert result.code == 1
    assert "has no column 'sqft'.\nHint: did you mean 'sq_ft' for 'sqft'?" in result.err


def test_a_table_that_has_the_new_columns_already_is_refused(sufrep, encoder, new, tmp_path):
    sufrep(f"apply {encoder} {new} --out {tmp_path}/out.csv")
    again = f"apply {encoder} {tmp_path}/out.csv --out {tmp_path}/twice.csv"
    result = sufrep(again)
    assert result.code == 1
    assert "already has columns that the encoder makes: 'zipcode_mean_sqft'" in result.err
    assert sufrep(f"{again} --drop zipcode_mean_sqft zipcode_mean_rooms").code == 0


def test_a_run_that_is_killed_leaves_no_half_written_table(encoder, tmp_path):
    rng = np.random.default_rng(0)
    n = 400_000
    long = pl.DataFrame(
        {"zipcode": rng.choice(["01234", "98178"], n), "sqft": rng.normal(size=n), "rooms": 1}
    )
    long.write_parquet(tmp_path / "long.parquet")
    out = tmp_path / "out.parquet"
    out.write_text("old")
    command = [sys.executable, "-c", "from sufrep.cli import _apply, main; _apply._BATCH = 200; main()"]
    process = subprocess.Popen(
        [*command, "apply", str(encoder), str(tmp_path / "long.parquet"), "--out", str(out)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".out.parquet.*.part/*")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=30) == -signal.SIGKILL
    finally:
        process.kill()
    assert out.read_text() == "old"


def test_the_encoder_file_is_not_changed_by_its_use(sufrep, encoder, new, tmp_path):
    before = encoder.read_bytes()
    sufrep(f"apply {encoder} {new} --out {tmp_path}/out.csv")
    assert encoder.read_bytes() == before
    assert load(encoder).get_params()["remainder"] == "passthrough"
