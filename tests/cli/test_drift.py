"""``sufrep drift``: what is printed and written, and the exit codes 0, 1, 2 and 3."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sufrep import MeansEncoder, load
from sufrep.cli import _drift


def rows(seed: int, zips: list[str], shift: float = 0.0) -> pl.DataFrame:
    rng = np.random.default_rng([9, seed])
    place = np.repeat(zips, 30)
    size = rng.normal(2000, 300, len(place)) + 300 * shift * (place == "0102")
    return pl.DataFrame({"zip": place, "sqft": size.round(1), "price": rng.normal(size=len(place)).round(3)})


@pytest.fixture
def folder(sufrep, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows(0, ["0101", "0102", "0103"]).write_csv("old.csv")
    rows(1, ["0101", "0102", "0104"], shift=3.0).write_csv("new.csv")
    rows(2, ["0101", "0102", "0103"]).write_csv("same.csv")
    command = "encode old.csv --group zip --method means --target price --save zip.sufrep"
    assert sufrep(command).code == 0
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_what_changed_is_printed(sufrep):
    result = sufrep("drift zip.sufrep new.csv")
    assert (result.code, result.err) == (0, "")
    lines = [line.split() for line in result.out.splitlines() if line]
    assert lines[1][:5] == ["0102", "moved", "sqft", "30", "30"]
    assert lines[2] == ["0104", "new", "0", "30"]
    assert lines[3] == ["0103", "vanished", "30", "0"]
    assert result.out.splitlines()[-1] == (
        "zip: 1 of 2 tested levels has moved (33.3 % of the rows), 1 is new (33.3 %), 1 has vanished."
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("limit", "code"), [("0.5", 3), ("0.67", 0), ("0", 3), ("1", 0)])
def test_more_changed_rows_than_allowed_are_exit_code_3(sufrep, limit, code):
    result = sufrep(f"drift zip.sufrep new.csv --fail-over {limit}")
    assert result.code == code
    message = f"sufrep: 66.7 % of the rows are in new or moved levels, more than --fail-over {limit}.\n"
    assert result.err == (message if code else "")
    assert "zip: 1 of 2 tested levels has moved" in result.out


@pytest.mark.usefixtures("folder")
def test_nothing_changed_is_success(sufrep):
    result = sufrep("drift zip.sufrep same.csv --fail-over 0")
    assert (result.code, result.out) == (
        0,
        "zip: 0 of 3 tested levels have moved (0.0 % of the rows), 0 are new (0.0 %), 0 have vanished.\n",
    )


def test_the_report_is_written_also_with_exit_code_3(sufrep, folder):
    result = sufrep("drift zip.sufrep new.csv --html drift.html --fail-over 0.05")
    assert result.code == 3
    assert "report: drift.html" in result.err
    assert "1 of 2 tested levels has moved" in (folder / "drift.html").read_text()


@pytest.mark.usefixtures("folder")
def test_json_has_the_same_numbers_as_python(sufrep):
    result = sufrep("drift zip.sufrep new.csv --json --rate 0.01")
    new = pl.read_csv("new.csv", schema_overrides={"zip": pl.String})
    drift = load("zip.sufrep").drift(new.select("zip", "sqft"), rate=0.01)
    assert json.loads(result.out) == drift.to_dict()


@pytest.mark.usefixtures("folder")
def test_batches_give_what_the_whole_table_gives(sufrep, monkeypatch):
    whole = json.loads(sufrep("drift zip.sufrep new.csv --json").out)
    monkeypatch.setattr(_drift, "BATCH", 7)
    parts = json.loads(sufrep("drift zip.sufrep new.csv --json").out)
    (one,), (other,) = whole.pop("groups"), parts.pop("groups")
    assert whole == parts
    assert [level["status"] for level in one["levels"]] == [level["status"] for level in other["levels"]]
    for level, same in zip(one["levels"], other["levels"], strict=True):
        assert level["statistic"] == (same["statistic"] and pytest.approx(same["statistic"]))


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("drift zip.sufrep nowhere.csv", "There is no file 'nowhere.csv'"),
        ("drift nowhere.sufrep new.csv", "nowhere.sufrep"),
        ("drift array.sufrep new.csv", "it was fitted on an array, whose columns have no names"),
        ("drift zip.sufrep other.csv", "sqft"),
        ("drift zip.sufrep words.csv", "sqft"),
    ],
)
def test_what_cannot_be_compared_is_exit_code_1(sufrep, folder, command, text):
    MeansEncoder(0).fit(np.arange(10.0).reshape(5, 2)).save("array.sufrep")
    pl.read_csv("new.csv").drop("sqft").write_csv("other.csv")
    pl.read_csv("new.csv").with_columns(pl.lit("large").alias("sqft")).write_csv("words.csv")
    result = sufrep(command)
    assert (result.code, result.out) == (1, "")
    assert text in result.err
    assert "Hint: " in result.err
    assert "bug" not in result.err
    assert folder.is_dir()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--fail-over 1.5", "1.5 is not a share between 0 and 1"),
        ("--fail-over nan", "nan is not a share"),
        ("--fail-over -1", "-1 is not a share"),
        ("--rate 0", "0 is not between 0 and 1"),
        ("--json --html -", "the standard output is also the file of another option"),
        ("--html new.csv", "is an input, which would be replaced"),
        ("--html zip.sufrep", "is an input, which would be replaced"),
        ("--html old.csv", "exists and is not a"),
    ],
)
def test_wrong_usage_is_exit_code_2(sufrep, options, text):
    result = sufrep(f"drift zip.sufrep new.csv {options}")
    assert (result.code, result.out) == (2, "")
    assert text in result.err


@pytest.mark.usefixtures("folder")
def test_levels_that_are_spelt_differently_give_a_warning(sufrep):
    frame = rows(1, ["0101", "0102"]).with_columns(pl.col("zip").str.strip_chars_start("0"))
    frame.write_csv("short.csv")
    result = sufrep("drift zip.sufrep short.csv")
    assert "warning: No row of column 'zip' holds a level that fit saw" in result.err
