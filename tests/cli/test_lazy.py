"""Tables that are not read into memory: several files, folders, patterns, and one file with ``--lazy``."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sufrep import LatentStateEncoder, MeansEncoder, load
from sufrep._files import _sinks
from sufrep.cli import _lazy, _saved

LEVELS = ("01234", "01235", "98178", "98001", "00007", "12345")
MEANS = "--group zip --method means --target price"


def sales(n: int = 240, seed: int = 0, levels: tuple[str, ...] = LEVELS) -> pl.DataFrame:
    """Sales in a few zip codes, some of which begin with zeros; some sizes are unknown."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, len(levels), n)
    size = rng.normal(100 + 20 * code, 10)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "zip": [levels[j] for j in code],
            "size": [None if i % 17 == 0 else value for i, value in enumerate(size.tolist())],
            "rooms": rng.integers(1, 6, n),
            "price": 3 * size + 50 * (code % 2) + rng.normal(size=n),
            "fold": rng.integers(0, 3, n),
            "year": rng.integers(2022, 2025, n),
        }
    )


def write_parts(frame: pl.DataFrame, folder: Path, ending: str = "parquet", n_parts: int = 3) -> Path:
    """Write rows to files of a new folder."""
    folder.mkdir()
    for number in range(n_parts):
        part = frame[number::n_parts]
        path = folder / f"part-{number}.{ending}"
        part.write_parquet(path) if ending == "parquet" else part.write_csv(path)
    return folder


@pytest.fixture
def data(tmp_path):
    """A folder of three Parquet files."""
    return write_parts(sales(), tmp_path / "data")


@pytest.fixture
def whole(tmp_path):
    """The same rows in one file."""
    path = tmp_path / "whole.parquet"
    sales().write_parquet(path)
    return path


def same_rows(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Compare tables whose rows are in different orders."""
    assert_frame_equal(found.sort("id"), expected.sort("id"), abs_tol=1e-9, rel_tol=1e-9)


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("table", ["data", "'data/*.parquet'", "data/part-{0,1,2}", "--reversed"])
@pytest.mark.parametrize(
    "options",
    [
        f"{MEANS} --drop fold",
        f"{MEANS} --param shrinkage=auto --param use_target=true --fold fold",
        "--group zip --method low_rank --target price --missing prior",
        "--group zip+year rooms --method means --no-target --covariates size price",
        "--group zip --method mnl --param solver=lda --covariates rooms price",
        "--group zip --method one_hot",
    ],
)
def test_parts_give_the_table_of_the_whole(sufrep, whole, tmp_path, monkeypatch, table, options):
    monkeypatch.chdir(tmp_path)
    parts = [f"data/part-{number}.parquet" for number in range(3)]
    given = {"data/part-{0,1,2}": " ".join(parts), "--reversed": " ".join(parts[::-1])}.get(table, table)
    result = sufrep(f"encode {given} {options} --out parts.parquet --save parts.sufrep")
    assert result.code == 0, result.err
    expected = sufrep(f"encode {whole} {options} --out expected.parquet --save expected.sufrep")
    assert expected.code == 0, expected.err
    same_rows(pl.read_parquet("parts.parquet"), pl.read_parquet("expected.parquet"))
    assert result.out.replace("parts", "expected") == expected.out
    encoders = [load(name) for name in ("parts.sufrep", "expected.sufrep")]
    assert encoders[0].reading_ == encoders[1].reading_
    for one, other in zip(*(encoder.representations_.values() for encoder in encoders), strict=True):
        np.testing.assert_allclose(one.values, other.values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "feather"])
def test_all_kinds_of_files_are_written(sufrep, data, tmp_path, ending):
    assert sufrep(f"encode {data} {MEANS} --out {tmp_path}/expected.parquet").code == 0
    assert sufrep(f"encode {data} {MEANS} --out {tmp_path}/out.{ending}").code == 0
    expected = pl.read_parquet(tmp_path / "expected.parquet")
    path = tmp_path / f"out.{ending}"
    if ending == "feather":
        found = pl.read_ipc(path)
    else:
        text = gzip.decompress(path.read_bytes()) if ending.endswith("gz") else path.read_bytes()
        separator = "\t" if ending == "tsv" else ","
        found = pl.read_csv(text, separator=separator, schema_overrides={"zip": pl.String})
    same_rows(found, expected)


def test_parts_of_csv_are_read_as_one_file(sufrep, tmp_path):
    write_parts(sales(), tmp_path / "data", "csv")
    sales().write_csv(tmp_path / "whole.csv")
    for table in ("data", "whole.csv"):
        command = f"encode {tmp_path}/{table} {MEANS} --out {tmp_path}/{table}.parquet"
        assert sufrep(f"{command} --save {tmp_path}/{table}.sufrep").code == 0
    found, expected = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("data", "whole.csv"))
    assert "01234" in found["zip"]
    same_rows(found, expected)
    readings = [load(tmp_path / f"{name}.sufrep").reading_ for name in ("data", "whole.csv")]
    assert readings[0] == readings[1]


def test_a_partitioned_table_has_a_folder_for_each_value_and_reads_back(sufrep, data, tmp_path):
    command = f"encode {data} {MEANS} --out"
    assert sufrep(f"{command} {tmp_path}/out.parquet").code == 0
    expected = pl.read_parquet(tmp_path / "out.parquet")
    for _ in range(2):  # a partitioned table is replaced by another
        result = sufrep(f"{command} {tmp_path}/parts --partition-by year zip --save {tmp_path}/zip.sufrep")
        assert result.code == 0, result.err
        assert (tmp_path / "parts/year=2023/zip=01234").is_dir()
        same_rows(pl.read_parquet(tmp_path / "parts/**/*.parquet", hive_partitioning=False), expected)
    again = sufrep(
        f"apply {tmp_path}/zip.sufrep {tmp_path}/parts --drop zip_mean_id zip_mean_size "
        f"zip_mean_rooms zip_mean_fold zip_mean_year --out {tmp_path}/again.parquet"
    )
    assert again.code == 0, again.err
    same_rows(pl.read_parquet(tmp_path / "again.parquet"), expected)


def test_a_folder_with_other_files_is_never_replaced(sufrep, data, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("Dear Anna")
    for force in ("", "--force"):
        result = sufrep(f"encode {data} {MEANS} --out {tmp_path}/mine --partition-by year {force}")
        assert result.code == 1
        assert "the folder holds other files than a partitioned table" in result.err
    assert (tmp_path / "mine/letter.txt").read_text() == "Dear Anna"


def test_duckdb_tables_are_written_and_read(sufrep, data, tmp_path):
    command = f"encode {data} {MEANS} --out"
    assert sufrep(f"{command} {tmp_path}/out.parquet").code == 0
    expected = pl.read_parquet(tmp_path / "out.parquet")
    first = f"duckdb:{tmp_path}/results.db#first"
    assert sufrep(f"{command} {first}").code == 0
    # A second table of the same database, read from the first; one file keeps its order.
    second = f"{first.partition('#')[0]}#second"
    drop = "--drop " + " ".join(expected.columns[7:])
    result = sufrep(f"encode {first} {MEANS} {drop} --out {second}")
    assert result.code == 0, result.err
    with duckdb.connect(str(tmp_path / "results.db"), read_only=True) as connection:
        tables = [connection.table(name).pl() for name in ("first", "second")]
    same_rows(tables[0], expected)
    assert tables[0]["id"].to_list() == tables[1]["id"].to_list()
    refused = sufrep(f"{command} {first}")
    assert (refused.code, "exists; name another table, or replace it with --force" in refused.err) == (
        2,
        True,
    )
    assert sufrep(f"{command} {first} --force").code == 0
    assert everything_in(tmp_path) >= {"results.db"}
    assert not list(tmp_path.glob(".results.db*"))


@pytest.mark.parametrize(
    ("out", "code", "message"),
    [
        ("duckdb:{}/new.db", 1, "it does not name a table of a DuckDB database"),
        ("sqlite:{}/new.db#t", 1, "it does not name a table of a DuckDB database"),
        ("duckdb:{}/whole.parquet#t", 1, "check that it is a DuckDB database which nobody uses"),
        ("duckdb:{}/none/new.db#t", 1, "there is no folder"),
    ],
)
def test_databases_that_cannot_be_written_are_reported_first(
    sufrep, data, whole, tmp_path, out, code, message
):
    before = whole.read_bytes()
    result = sufrep(f"encode {data} {MEANS} --out {out.format(tmp_path)}")
    assert (result.code, message in result.err) == (code, True), result.err
    assert whole.read_bytes() == before
    assert not (tmp_path / "new.db").exists()


def test_one_file_is_lazy_on_request_only(sufrep, whole, tmp_path):
    for name, option in (("eager", ""), ("lazy", "--lazy")):
        assert sufrep(f"encode {whole} {MEANS} {option} --out {tmp_path}/{name}.parquet").code == 0
    eager, lazy = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("eager", "lazy"))
    assert eager["id"].to_list() == list(range(240))
    same_rows(lazy, eager)


def test_one_file_needs_no_sample(sufrep, whole, tmp_path):
    options = "--group zip --method mnl --covariates size rooms --sample-rows 50"
    result = sufrep(f"encode {whole} {options} --out {tmp_path}/out.parquet")
    assert result.code == 0, result.err
    assert (
        "note: a single file is read into memory; --sample-rows is for several files, or --lazy" in result.err
    )


def test_a_folder_of_one_file_is_one_file(sufrep, tmp_path):
    write_parts(sales(), tmp_path / "data", n_parts=1)
    options = f"{MEANS} --param use_target=true"  # which needs --fold if there are several
    assert sufrep(f"encode {tmp_path}/data {options} --out {tmp_path}/out.parquet").code == 0
    assert pl.read_parquet(tmp_path / "out.parquet")["id"].to_list() == list(range(240))


def test_folds_of_a_column_hold_for_one_file_too(sufrep, whole, tmp_path):
    options = f"{MEANS} --param use_target=true --fold fold --drop year"
    assert sufrep(f"encode {whole} {options} --out {tmp_path}/out.parquet").code == 0
    frame = sales().drop("year")
    encoder = MeansEncoder("zip", use_target=True).set_output(transform="polars")
    expected = encoder.fit_transform(frame, "price", fold="fold")
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert_frame_equal(found.select(expected.columns), expected)
    assert found.columns[:6] == frame.columns


@pytest.mark.parametrize("output", ["states", "both"])
def test_a_sample_of_rows_is_enough_for_hidden_states(sufrep, data, tmp_path, output):
    options = f"--method latent_state --covariates size price --param output={output} --param n_states=2"
    command = f"encode {data} --group zip {options} --sample-rows 150 --sample-by id --out"
    result = sufrep(f"{command} {tmp_path}/out.parquet --save {tmp_path}/zip.sufrep")
    assert result.code == 0, result.err
    encoder = LatentStateEncoder(
        "zip", covariates=["size", "price"], n_states=2, output=output, sample_rows=150, sample_by="id"
    )
    encoder.fit(pl.scan_parquet(data / "*.parquet"))
    expected = encoder.set_output(transform="polars").transform(sales())
    found = pl.read_parquet(tmp_path / "out.parquet").sort("id")
    assert_frame_equal(found.select(expected.columns), expected, abs_tol=1e-9)
    assert load(tmp_path / "zip.sufrep").sample_rows == 150


def test_encoders_with_the_target_of_a_sample_are_saved_for_new_rows(sufrep, data, whole, tmp_path):
    options = "--group zip --method random_intercept --target price --drop fold year --sample-rows 200"
    assert sufrep(f"encode {data} {options} --save {tmp_path}/zip.sufrep").code == 0
    applied = sufrep(f"apply {tmp_path}/zip.sufrep {data} --out {tmp_path}/out.parquet")
    assert applied.code == 0, applied.err
    assert sufrep(f"apply {tmp_path}/zip.sufrep {whole} --out {tmp_path}/expected.parquet").code == 0
    same_rows(pl.read_parquet(tmp_path / "out.parquet"), pl.read_parquet(tmp_path / "expected.parquet"))


def test_folds_are_no_covariate_of_an_encoder_that_is_saved_alone(sufrep, data, tmp_path):
    options = f"{MEANS} --param use_target=true --fold fold"
    assert sufrep(f"encode {data} {options} --save {tmp_path}/zip.sufrep").code == 0
    assert "fold" not in load(tmp_path / "zip.sufrep").feature_names_in_


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("options", "option", "message"),
    [
        ("--method sufficient --target price --out o.csv", "--sample-rows", "sufficient learns from rows"),
        (
            "--method mnl --target price --out o.csv",
            "--sample-rows",
            "(or --param solver=lda, which needs none)",
        ),
        (
            "--method means --no-target --sample-rows 9 --out o.csv",
            "--sample-rows",
            "means learns from all rows",
        ),
        ("--method mnl --no-target --sample-by id --out o.csv", "--sample-by", "it needs --sample-rows"),
        (
            "--method random_intercept --target price --sample-rows 90 --out o.csv",
            "--out",
            "must not encode the rows it learnt from; use --save alone",
        ),
        ("--method target_mean --target price --out o.csv", "--fold", "name a column that holds the fold"),
        ("--method target_mean --target price --time year --out o.csv", "--time", "use --fold with a column"),
        (
            "--method target_mean --target price --time year --fold fold --out o",
            "--fold",
            "combined with --time",
        ),
        ("--method means --target price --fold price --out o.csv", "--fold", "is also the target"),
        ("--method means --target price --fold zip --out o.csv", "--fold", "is also in --group"),
        ("--method means --target price --fold fold --out o.csv", "--fold", "does not use the target"),
        ("--method means --no-target --partition-by year --save o", "--partition-by", "no table is written"),
        (
            "--method means --no-target --drop year --partition-by year --out o",
            "--partition-by",
            "also in --drop",
        ),
        ("--method means --no-target --param sample_rows=5 --out o.csv", "--param", "set by --sample-rows"),
        (
            "--method means --no-target --out data/o.parquet",
            "--out",
            "is in the folder 'data', which is read",
        ),
        ("--method means --no-target --out o.json", "--out", "The ending of 'o.json'"),
    ],
)
def test_wrong_usage_names_the_option(sufrep, tmp_path, monkeypatch, options, option, message):
    monkeypatch.chdir(tmp_path)
    result = sufrep(f"encode data --group zip {options}")
    assert result.code == 2, result.err
    assert f"Invalid value for {option}: " in result.err
    assert message in result.err
    assert everything_in(tmp_path) == {"data", *(f"data/part-{number}.parquet" for number in range(3))}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[200:1200] = bytes(1000)
    path.write_bytes(content)


FAILURES = {
    "cut short": (
        lambda data: _cut(data / "part-1.parquet"),
        "part-1.parquet' cannot be read; it may be damaged",
    ),
    "damaged": (lambda data: _damage(data / "part-1.parquet"), "Hint: "),
    "another type": (
        lambda data: (
            sales().with_columns(pl.col("size").cast(pl.String)).write_parquet(data / "part-1.parquet")
        ),
        "part-1.parquet' holds String in column 'size', where",
    ),
    "another column": (
        lambda data: sales().with_columns(new=1).write_parquet(data / "part-1.parquet"),
        "part-1.parquet' has another column, 'new', unlike",
    ),
    "a missing column": (
        lambda data: sales().drop("rooms").write_parquet(data / "part-1.parquet"),
        "part-1.parquet' has no column 'rooms', unlike",
    ),
    "an empty file": (lambda data: (data / "part-1.parquet").write_bytes(b""), "is empty: 0 bytes"),
    "another kind": (lambda data: sales().write_csv(data / "part-3.csv"), "is of another kind than"),
    "no table": (lambda data: (data / "notes.md").write_text("hello"), "The ending of"),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("out", ["out.parquet", "out.csv", "out --partition-by year", "duckdb:{}/out.db#t"])
def test_a_failure_leaves_nothing(sufrep, data, tmp_path, failure, out):
    damage, message = FAILURES[failure]
    damage(data)
    before = everything_in(tmp_path)
    place = out.format(tmp_path) if "{}" in out else f"{tmp_path}/{out}"
    result = sufrep(f"encode {data} {MEANS} --out {place} --save {tmp_path}/zip.sufrep")
    assert result.code == 1, result.err
    assert message in result.err
    assert "Unexpected error" not in result.err
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize("out", ["out.parquet", "out --partition-by year", "duckdb:{}/out.db#t"])
@pytest.mark.parametrize("error", [pl.exceptions.ComputeError("a node died"), OSError("a disk died")])
def test_an_engine_that_fails_while_it_writes_leaves_nothing(sufrep, data, tmp_path, monkeypatch, out, error):
    def fail(_: int) -> None:
        raise error

    monkeypatch.setattr(_lazy, "RowCounter", lambda *_: fail)
    before = everything_in(tmp_path)
    place = out.format(tmp_path) if "{}" in out else f"{tmp_path}/{out}"
    result = sufrep(f"encode {data} {MEANS} --out {place} --save {tmp_path}/zip.sufrep")
    assert result.code == 1
    assert "sufrep: polars failed while writing " in result.err
    assert "died" in result.err
    assert everything_in(tmp_path) == before


def test_a_table_without_its_encoder_is_not_left_either(sufrep, data, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(MeansEncoder, "save", fail)
    for out in ("out.parquet", "parts --partition-by year", "duckdb"):
        place = f"duckdb:{tmp_path}/out.db#t" if out == "duckdb" else f"{tmp_path}/{out}"
        result = sufrep(f"encode {data} {MEANS} --out {place} --save {tmp_path}/zip.sufrep")
        assert (result.code, "No space left on device" in result.err) == (1, True)
    assert everything_in(tmp_path) == {"data", *(f"data/part-{number}.parquet" for number in range(3))}


def test_a_failure_leaves_older_output_as_it_was(sufrep, data, tmp_path):
    places = ["out.parquet", "parts --partition-by year", "out.db#t"]
    commands = [
        f"encode {data} {MEANS} --out {'duckdb:' if 'db' in place else ''}{tmp_path}/{place} --force"
        for place in places
    ]
    for command in commands:
        assert sufrep(command).code == 0
    content = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    _damage(data / "part-1.parquet")
    content[data / "part-1.parquet"] = (data / "part-1.parquet").read_bytes()
    for command in commands:
        assert sufrep(command).code == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == content


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("'{}/none/*.parquet'", "No file matches"),
        ("{}/empty", "is a folder without files"),
        ("{0}/data/part-0.parquet {0}/data/part-9.parquet", "There is no file"),
        ("{0}/data {0}/data/part-0.parquet", "is read twice"),
        ("{0}/data duckdb:{0}/a.db#t", "is one of 4 tables; only files can be read as one table"),
    ],
)
def test_tables_that_are_not_there_are_reported(sufrep, tmp_path, table, message):
    (tmp_path / "empty").mkdir()
    result = sufrep(f"encode {table.format(tmp_path)} {MEANS} --out {tmp_path}/out.parquet")
    assert (result.code, message in result.err) == (1, True), result.err
    assert not (tmp_path / "out.parquet").exists()


def test_a_note_says_where_text_is_no_covariate_and_a_covariate_the_target(sufrep, tmp_path):
    frame = sales().with_columns(euros=0.9 * pl.col("price"), note=pl.lit("a note"))
    write_parts(frame, tmp_path / "data")
    result = sufrep(f"encode {tmp_path}/data {MEANS} --out {tmp_path}/out.parquet")
    assert "the covariate 'euros' is nearly the target 'price'" in result.err
    assert "columns that are not numeric do not describe the levels: 'note'" in result.err


def test_a_target_with_the_name_of_a_new_column_is_refused(sufrep, tmp_path):
    write_parts(sales().rename({"price": "zip_mean_size"}), tmp_path / "data")
    options = "--group zip --method means --target zip_mean_size --covariates size"
    result = sufrep(f"encode {tmp_path}/data {options} --out {tmp_path}/out.csv --save {tmp_path}/z.sufrep")
    assert (result.code, "already has columns that the encoder would add" in result.err) == (1, True)
    assert everything_in(tmp_path) == {"data", *(f"data/part-{number}.parquet" for number in range(3))}


def test_a_table_that_has_the_new_columns_is_refused(sufrep, data, tmp_path):
    assert sufrep(f"encode {data} {MEANS} --out {tmp_path}/out --partition-by year").code == 0
    again = sufrep(f"encode {tmp_path}/out {MEANS} --out {tmp_path}/again.parquet")
    assert (again.code, "The output would have two columns called" in again.err) == (1, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--method means --param leave_one_out=true",
            "--param leave_one_out=True gives every training row a mean of its own, and the table is not "
            "read into memory.\nHint: leave it out and set --param shrinkage=auto, or name a single file",
        ),
        (
            "--method one_hot",
            "The encoding has 5 new columns; of a table that is not read into memory it has at most 3.\n"
            "Hint: choose an encoder with fewer columns, such as --method low_rank, or name a single file",
        ),
    ],
)
def test_errors_speak_of_tables_instead_of_frames(sufrep, data, tmp_path, monkeypatch, options, message):
    monkeypatch.setattr("sufrep._frames._lazy.MOST_NEW_COLUMNS", 3)
    result = sufrep(f"encode {data} --group zip {options} --no-target --drop id --out {tmp_path}/out.csv")
    assert (result.code, message in result.err) == (1, True), result.err
    assert not (tmp_path / "out.csv").exists()


# Saved encoders


@pytest.fixture
def encoder(sufrep, data, tmp_path):
    """A saved encoder of the sales."""
    options = f"{MEANS} --drop id fold year --param shrinkage=auto"
    assert sufrep(f"encode {data} {options} --save {tmp_path}/zip.sufrep").code == 0
    return tmp_path / "zip.sufrep"


NEW = sales(90, seed=1, levels=(*LEVELS, "55555", "66666"))


@pytest.mark.parametrize("method", ["means", "low_rank", "latent_state", "random_intercept", "mixed_model"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_parts_of_new_rows_are_encoded_as_their_whole(sufrep, whole, tmp_path, method, ending, monkeypatch):
    monkeypatch.setattr(_lazy, "BATCH", 40)
    options = f"--group zip --method {method} --target price --drop id fold year"
    assert sufrep(f"encode {whole} {options} --save {tmp_path}/zip.sufrep").code == 0
    write_parts(NEW, tmp_path / "new", ending)
    NEW.write_csv(tmp_path / "new.csv")
    found = sufrep(f"apply {tmp_path}/zip.sufrep {tmp_path}/new --out {tmp_path}/found.parquet")
    expected = sufrep(f"apply {tmp_path}/zip.sufrep {tmp_path}/new.csv --out {tmp_path}/expected.parquet")
    assert found.code == expected.code == 0, found.err
    assert found.out.partition(";")[2] == expected.out.partition(";")[2]
    same_rows(pl.read_parquet(tmp_path / "found.parquet"), pl.read_parquet(tmp_path / "expected.parquet"))


def test_new_levels_and_nulls_are_counted_once_for_all_groups(sufrep, tmp_path):
    frame = NEW.with_columns(street=pl.Series([None, "a", "b"] * 30))
    write_parts(frame, tmp_path / "new")
    frame.write_parquet(tmp_path / "new.parquet")
    sales().with_columns(street=pl.lit("a")).write_parquet(tmp_path / "old.parquet")
    for missing in ("prior", "level"):
        options = f"--group zip street+rooms --covariates size --method means --missing {missing}"
        saved = f"{tmp_path}/{missing}.sufrep"
        assert sufrep(f"encode {tmp_path}/old.parquet {options} --save {saved}").code == 0
        results = [
            sufrep(f"apply {saved} {tmp_path}/{table} --drop id --out {tmp_path}/out.csv --force")
            for table in ("new", "new.parquet")
        ]
        assert results[0].out == results[1].out
        assert "90 row(s) in" in results[0].out


def test_levels_of_another_type_give_the_warning_of_one_file(sufrep, tmp_path):
    frame = pl.DataFrame({"g": [1, 2, 1, 2], "x": [1.0, 2.0, 3.0, 4.0]})
    MeansEncoder("g").fit(frame.with_columns(pl.col("g").cast(pl.String) + "!")).save(tmp_path / "g.sufrep")
    write_parts(frame, tmp_path / "new", n_parts=2)
    result = sufrep(f"apply {tmp_path}/g.sufrep {tmp_path}/new --out {tmp_path}/out.csv")
    assert result.code == 0, result.err
    assert result.err.count("warning: no row has a level of 'g' that the encoder knows") == 1
    MeansEncoder("g").fit(frame).save(tmp_path / "numbers.sufrep")
    write_parts(frame.with_columns(pl.col("g").cast(pl.String)), tmp_path / "text", n_parts=2)
    result = sufrep(f"apply {tmp_path}/numbers.sufrep {tmp_path}/text --out {tmp_path}/out.csv")
    assert "warning: no row has a level of 'g' that the encoder knows" in result.err


def test_parts_are_read_as_the_encoder_was_fitted(sufrep, tmp_path):
    (tmp_path / "fitted").mkdir()
    for part in "ab":
        (tmp_path / f"fitted/{part}.csv").write_text("g;x\na;1,5\nb;2,5\na;1.000,5\n")
    saved = f"{tmp_path}/g.sufrep"
    assert sufrep(f"encode {tmp_path}/fitted --group g --method means --no-target --save {saved}").code == 0
    assert load(saved).reading_.decimal == ","
    (tmp_path / "new").mkdir()
    (tmp_path / "new/a.csv").write_text("g;x\na;1.708\n")
    (tmp_path / "new/b.csv").write_text("g;x\nb;2\n")
    assert sufrep(f"apply {saved} {tmp_path}/new --out {tmp_path}/out.csv").code == 0
    assert pl.read_csv(tmp_path / "out.csv")["x"].sort().to_list() == [2.0, 1708.0]
    (tmp_path / "new/b.csv").write_text("g;x\nb;2.5\n")
    refused = sufrep(f"apply {saved} {tmp_path}/new --out {tmp_path}/out.csv")
    assert (refused.code, "holds '2.5' in row 2, which is 2.5 with a decimal point" in refused.err) == (
        1,
        True,
    )


def test_partitions_and_databases_are_written_by_apply_for_one_file_too(sufrep, encoder, whole, tmp_path):
    assert sufrep(f"apply {encoder} {whole} --out {tmp_path}/out.parquet").code == 0
    expected = pl.read_parquet(tmp_path / "out.parquet")
    database = f"duckdb:{tmp_path}/out.db#t"
    for lazy in ("", "--lazy"):
        parts = sufrep(f"apply {encoder} {whole} --out {tmp_path}/parts --partition-by year {lazy}")
        assert parts.code == 0, parts.err
        same_rows(pl.read_parquet(tmp_path / "parts/**/*.parquet", hive_partitioning=False), expected)
        assert sufrep(f"apply {encoder} {whole} --out {database} {lazy} --force").code == 0
        with duckdb.connect(str(tmp_path / "out.db"), read_only=True) as connection:
            found = connection.table("t").pl()
        same_rows(found, expected)
        assert lazy or found["id"].to_list() == expected["id"].to_list()


def test_new_levels_are_refused_if_the_encoder_was_set_to_do_so(sufrep, data, tmp_path):
    command = f"encode {data} {MEANS} --drop id fold year --unseen error --save {tmp_path}/zip.sufrep"
    assert sufrep(command).code == 0
    write_parts(NEW, tmp_path / "new")
    result = sufrep(f"apply {tmp_path}/zip.sufrep {tmp_path}/new --out {tmp_path}/out.parquet")
    assert (result.code, "unseen level(s)" in result.err) == (1, True)
    assert not (tmp_path / "out.parquet").exists()


def test_the_rows_of_joined_tables_never_pass_through_batches(sufrep, encoder, data, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(_saved.BatchEncoder, "transform", fail)
    assert sufrep(f"apply {encoder} {data} --out {tmp_path}/out.parquet").code == 0


def test_polars_counts_rows_as_it_writes_them(tmp_path):
    counts: list[int] = []
    with _sinks.table_sink(tmp_path / "out.parquet", seen=counts.append) as write:
        write(sales().lazy())
    assert sum(counts) == 240
