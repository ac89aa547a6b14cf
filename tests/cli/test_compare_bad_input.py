"""Tables and options that ``sufrep compare`` cannot use, or that look as if it could not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sufrep._report import _render

LINEAR = "--models linear --methods drop --jobs 1"
FAST = "--models linear --jobs 1 --methods means drop --folds 2"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "houses.csv"
    x = np.arange(60.0)
    columns = {"id": range(60), "zipcode": ["01234", "00007", "98178"] * 20, "sqft": x, "price": x**2 / 7}
    pl.DataFrame(columns).write_csv(path)
    return path


@pytest.fixture(autouse=True)
def _no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the bundle of scripts takes seconds."""
    monkeypatch.setattr(_render, "drawing_bundle", lambda: "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--target zipcode --group zipcode", "'zipcode' is named by --group too"),
        ("--target price --group zipcode --methods mean", "did you mean 'means'?"),
        ("--target price --group zipcode --models forst", "did you mean 'forest'?"),
        ("--target price --group zipcode --scoring rocauc", "did you mean 'roc_auc'"),
        ("--target price --group zipcode --folds 1", "greater than or equal to 2"),
        ("--target price --group zipcode --task classes", "'classes' is not one of"),
        ("--target price", "Missing option '--group'"),
        ("--group zipcode", "Missing option '--target'"),
    ],
)
def test_wrong_usage_is_told_before_the_table_is_read(sufrep, tmp_path, options, message):
    result = sufrep(f"compare {tmp_path}/not-there.csv {options}")
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"", "--target y --group g", "is empty: 0 bytes"),
        (b"g,x,y\n", "--target y --group g", "has columns but no rows"),
        (b"g,x,y\na,1,2\nb,2,3\n", "--target yy --group g", "did you mean 'y' for 'yy'?"),
        (b"gg,x,y\na,1,2\nb,2,3\n", "--target y --group g", "did you mean 'gg' for 'g'?"),
        (b"g,x,y\na,1,3\nb,2,3\n", "--target y --group g", "The target is 3 in every row."),
        (b"g,x,y\na,1,3\nb,2,\n", "--target y --group g", "NaN or infinity in 1 row(s)"),
        (b"g,x,y\na,1,u\nb,2,\na,2,v\n", "--target y --group g", "contains NaN or None"),
        (b"g,x,y\na,1,\nb,2,\n", "--target y --group g", "contains NaN or None"),
        (b"g,x,y\na,1,3\na,2,4\n", "--target y --group g", "'g' has the one level a in every row"),
        (b"g,x,y\n,1,3\n,2,4\n", "--target y --group g", "'g' has the one level missing in every row"),
        (b"g,x,y\na,1,3\n", "--target y --group g", "'g' has the one level a"),
        (b"g,x,y\na,1,2020-01-01\nb,2,2020-01-02\n", "--target y --group g", "The target holds dates"),
        (
            b"g,x,y\na,1,2\nb,2,3\n",
            "--target y --group g --folds 3",
            "a number of folds from 2 to the number of rows, 2",
        ),
        (
            b"g,x,y\na,1,2\nb,2,3.5\n",
            "--target y --group g --task binary --new-levels --folds 3",
            "levels, 2",
        ),
        (b"g,x,y\na,1,u\nb,2,v\n", "--target y --group g --task regression", "the target holds 'u'"),
    ],
)
def test_tables_that_cannot_be_compared_on_have_code_1_and_a_hint(
    sufrep, tmp_path, content, options, message
):
    (tmp_path / "rows.csv").write_bytes(content)
    result = sufrep(f"compare {tmp_path}/rows.csv {options} --html {tmp_path}/report.html {LINEAR}")
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert "\nHint: " in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "report.html").exists()


def test_a_file_that_is_missing_or_damaged_is_told(sufrep, table, tmp_path):
    result = sufrep(f"compare {tmp_path}/house.csv --target price --group zipcode")
    assert result.code == 1
    assert f"Hint: did you mean '{table}'" in result.err
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 this is no Parquet")
    result = sufrep(f"compare {tmp_path}/broken.parquet --target price --group zipcode")
    assert result.code == 1
    assert "cannot be read; it may be damaged" in result.err


@pytest.mark.parametrize("option", ["--html", "--save"])
def test_a_place_that_cannot_be_written_is_told_before_the_long_work(sufrep, tmp_path, option):
    result = sufrep(f"compare {tmp_path}/not-there.csv --target y --group g {option} {tmp_path}/no/where")
    assert result.code == 1
    assert "there is no folder" in result.err


def test_if_nothing_works_the_reasons_are_told_and_the_code_is_1(sufrep, table, tmp_path):
    report = tmp_path / "report.html"
    result = sufrep(
        f"compare {table} --target price --group zipcode {FAST} --scoring accuracy --html {report}"
    )
    assert result.code == 1
    assert "means with linear failed: ValueError: continuous is not supported" in result.out
    assert "Every method failed on these data." in result.out
    assert "Every method failed on these data." in report.read_text("utf-8")


def test_a_level_in_every_row_is_a_warning(sufrep, table):
    result = sufrep(f"compare {table} --target price --group id --covariates sqft {FAST}")
    assert result.code == 0
    assert (
        "sufrep: warning: 'id' has a different level in every row and looks like an identifier" in result.err
    )


def test_odd_tables_are_compared_on(sufrep, tmp_path):
    """Latin-1, commas as decimals, dates, emoji, huge numbers, a column of nothing and two hundred more."""
    rng = np.random.default_rng(0)
    names = ["ort", "preis", "datum", "bild", "nummer", "nichts", *(f"spalte{j}" for j in range(200))]
    lines = [";".join(names)]
    for i in range(60):
        odd = [("Köln", "Aachen", "Düren")[i % 3], f"{rng.normal():.3f}".replace(".", ",")]
        odd += [f"2014-{1 + i % 12:02d}-13", "ab"[i % 2], str(10**17 + i % 7), ""]
        lines.append(";".join([*odd, *(str(i * j % 11) for j in range(200))]))
    path = tmp_path / "häuser.csv"
    path.write_bytes("\n".join(lines).encode("latin-1"))
    result = sufrep(f"compare {path} --target preis --group ort {FAST} --html {tmp_path}/report.html")
    assert result.code == 0, result.err
    assert "read as Windows-1252 (Latin-1), because it is not UTF-8" in result.err
    assert "commas taken as decimal signs in 'preis'" in result.err
    assert "nichts" in result.out
    assert "Köln" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    "levels", [["😀", "👩‍👩‍👧", "🏔"], [str(10**30 + j) for j in range(3)], ["a", "", "NA"]]
)
def test_odd_levels_are_levels(sufrep, tmp_path, levels):
    path = tmp_path / "odd.csv"
    rows = pl.DataFrame({"g": levels * 10, "x": np.arange(30.0), "y": np.arange(30.0) ** 2 / 7})
    rows.write_csv(path)
    result = sufrep(f"compare {path} --target y --group g {LINEAR} --json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["n_levels"] == 3
