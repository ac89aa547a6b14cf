"""Files with changed bytes: saved encoders and tables of every format.

Reading one gives an error of ours, or, for saved encoders, whose every byte is checked, the same columns as
before. Tables have no checksums of their own, so that a changed digit is a changed number; but never an
error of somebody else, and never the end of the process. Where polars, DuckDB or SQLite abort the process,
that is counted apart: no caller can prevent it.
"""

from __future__ import annotations

import base64
import gzip
import sqlite3
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.pipeline import make_pipeline

from fuzz.part import Case, Outcome, Part, signature
from fuzz.worker import Worker
from sufrep import MeansEncoder, ToNumbers, load, make_encoder, save
from sufrep._files import open_table
from sufrep.errors import SufrepError

ENCODERS: dict[str, dict[str, Any]] = {
    "means": {},
    "low_rank": {},
    "one_hot": {"sparse_output": True, "remainder": "drop"},
    "mnl": {"solver": "lda"},
    "latent_state": {"n_states": 2, "n_starts": 1},
    "fisher": {},
    "mixed_model": {},
    "multi_permutation": {},
}
TABLES = (
    "table.csv",
    "table.tsv",
    "table.csv.gz",
    "table.parquet",
    "table.feather",
    "table.sqlite",
    "table.duckdb",
)
# Small changes more often than large ones: files that are damaged badly fail early.
_KINDS = (*("flip", "byte") * 3, "cut", "insert", "zero", "repeat", "remove", "swap")


class Damage(Part):
    """Files with changed bytes, read in a process of their own."""

    name = "damage"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_originals(folder)
        self._worker = Worker("damage", folder)

    def draw(self, seed: int) -> Case:
        """One to four changes of one file."""
        rng = np.random.default_rng(seed)
        names = [*(f"{method}.sufrep" for method in ENCODERS), *TABLES]
        name = str(rng.choice(names))
        content = original = (self.folder / name).read_bytes()
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            content = _changed(content, rng)
        if content == original:
            content = content[:-1]
        return {"file": name, "content": packed(content)}

    def check(self, case: Case) -> Outcome:
        """Read the file in the worker."""
        outcome = self._worker.check(case)
        if isinstance(outcome, Outcome):
            return outcome
        # A process that was ended from inside a library; ours holds no code that could.
        if case["file"].endswith(".sufrep") or outcome == "timeout":
            return Outcome(
                outcome, f"{case['file']}: {outcome}", signature("damage", f"{case['file']} {outcome}")
            )
        return Outcome(f"abort of {_library(case['file'])}")

    def close(self) -> None:
        """End the worker."""
        self._worker.close()


def packed(content: bytes) -> str:
    """Bytes as text, for a case."""
    return base64.b85encode(zlib.compress(content)).decode()


def _changed(content: bytes, rng: np.random.Generator) -> bytes:
    """One change at a random place."""
    n = len(content)
    if not n:
        return b"\0"
    # Two thirds of the changes are near the ends, where headers and directories are.
    ends = int(min(n, 200) * rng.random())
    place = int(rng.choice([int(n * rng.random()), ends, n - 1 - ends]))
    length = int(min(n - place, 2 ** rng.integers(0, 10)))
    kind = str(rng.choice(_KINDS))
    before, part, after = content[:place], content[place : place + length], content[place + length :]
    if kind == "flip":
        return before + bytes([content[place] ^ (1 << int(rng.integers(8)))]) + content[place + 1 :]
    if kind == "byte":
        return (
            before + bytes([int(rng.choice([0, 10, 13, 34, 44, 127, 128, 254, 255]))]) + content[place + 1 :]
        )
    if kind == "cut":
        return before
    if kind == "insert":
        return before + rng.bytes(length) + part + after
    if kind == "zero":
        return before + bytes(length) + after
    if kind == "repeat":
        return before + part + part + after
    if kind == "swap":
        return before + part[::-1] + after
    return before + after


def _library(name: str) -> str:
    return {".sqlite": "SQLite", ".duckdb": "DuckDB"}.get(Path(name).suffix, "polars")


# Originals


def make_table() -> pl.DataFrame:
    """Sixty rows with text, numbers, nulls and dates."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 6, 60)
    names = ["north", "south, east", 'a "quoted" place', "Köln", "😀", "01234"]
    return pl.DataFrame(
        {
            "place": [None if j % 17 == 3 else names[k] for j, k in enumerate(level)],
            "size": [None if j % 13 == 5 else float(v) for j, v in enumerate(rng.normal(size=60) + level)],
            "rooms": rng.integers(1, 9, 60).tolist(),
            "garden": rng.integers(0, 2, 60).astype(bool).tolist(),
            "day": [f"2024-{1 + j % 12:02d}-{1 + j % 28:02d}" for j in range(60)],
            "price": (100 * level + rng.normal(size=60)).round(2).tolist(),
        }
    )


def write_originals(folder: Path) -> None:
    """Write the table in every format, and encoders that were fitted on it."""
    table = make_table()
    table.write_csv(folder / "table.csv")
    table.write_csv(folder / "table.tsv", separator="\t")
    (folder / "table.csv.gz").write_bytes(gzip.compress((folder / "table.csv").read_bytes(), mtime=0))
    table.write_parquet(folder / "table.parquet")
    table.write_ipc(folder / "table.feather")
    with sqlite3.connect(folder / "table.sqlite") as database:
        marks = ", ".join("?" * table.width)
        database.execute(f"create table sales ({', '.join(table.columns)})")
        database.executemany(f"insert into sales values ({marks})", table.rows())
    database.close()
    _write_duckdb(folder)
    for method, parameters in ENCODERS.items():
        save(fit_encoder(method, parameters, table), folder / f"{method}.sufrep")


def _write_duckdb(folder: Path) -> None:
    import duckdb

    with duckdb.connect(folder / "table.duckdb") as database:
        database.execute(f"create table sales as from read_csv('{folder / 'table.csv'}')")


def fit_encoder(method: str, parameters: dict[str, Any], table: pl.DataFrame) -> Any:
    """An encoder of the table's places, after its dates became numbers."""
    encoder = make_encoder(method, "place", covariates=["size", "rooms", "day_days"], **parameters)
    return make_pipeline(ToNumbers(keep="place"), encoder).fit(table.drop("price"), table["price"])


# In the worker


def checker(folder: Path) -> Callable[[Case], Outcome]:
    """What the worker does with a case."""
    table = make_table().drop("price")
    expected = {f"{method}.sufrep": _encoded(folder / f"{method}.sufrep", table) for method in ENCODERS}

    def check(case: Case) -> Outcome:
        name = case["file"]
        path = folder / f"damaged {name}"
        path.write_bytes(zlib.decompress(base64.b85decode(case["content"])))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not name.endswith(".sufrep"):
                    return Outcome(_read_table(path))
                same = _encoded(path, table) == expected[name]
                what = f"{name} was changed and gives other columns"
                return Outcome("same") if same else Outcome("other", what, signature("damage", what))
        except SufrepError:
            return Outcome("our error")
        except MemoryError:
            return Outcome("out of memory")
        except BaseException as error:
            what = f"{name}: {type(error).__name__}: {str(error)[:300]}"
            return Outcome("foreign error", what, signature("damage", name, error))
        finally:
            path.unlink(missing_ok=True)

    return check


def _encoded(path: Path, table: pl.DataFrame) -> bytes:
    columns = load(path).transform(table)
    dense = columns.toarray() if hasattr(columns, "toarray") else columns
    # Columns that pass through may be objects.
    return np.asarray(dense, dtype=object).astype(str).tobytes()


def _read_table(path: Path) -> str:
    """Read all, then in batches, then learn from it as a user would."""
    kind = {".sqlite": "sqlite:", ".duckdb": "duckdb:"}.get(path.suffix, "")
    source = open_table(f"{kind}{path}")
    rows = source.read()
    n_rows = sum(batch.height for batch in source.batches(7))
    if n_rows != rows.height:
        raise AssertionError(f"{rows.height} rows at once, but {n_rows} in batches")
    text = [name for name, dtype in rows.schema.items() if dtype == pl.String]
    numeric = [name for name, dtype in rows.schema.items() if dtype.is_numeric()]
    if text and numeric:
        MeansEncoder(text[0], covariates=numeric).fit(rows)
    return "a table"
