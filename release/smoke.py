"""Does an installed sufrep work? One test for the core, and one of what each extra is for.

``python release/smoke.py core`` runs in an environment that has the wheel and nothing else; ``python
release/smoke.py duckdb`` in one that has ``sufrep[duckdb]``. `release/make_dist.py` makes these environments.
Nothing here reads the repository, so the script also checks an installation from elsewhere.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import sufrep
from sufrep import LatentStateEncoder, MeansEncoder, SufficientEncoder, load, make_encoder, simulate
from sufrep.datasets import load_houses
from sufrep.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

# Two zip codes with two sales each, and what their means are.
SALES = {"zip": ["01", "02", "02", "01"], "size": [1.0, 3.0, 5.0, 2.0]}
MEANS = {"01": 1.5, "02": 4.0}
MEAN_OF_SIZE = {1.0: 1.5, 2.0: 1.5, 3.0: 4.0, 5.0: 4.0}
# What a core installation must not bring.
OPTIONAL = (
    "altair",
    "dask",
    "duckdb",
    "econml",
    "ibis",
    "pandas",
    "polars",
    "pyarrow",
    "sqlglot",
    "typer",
    "xgboost",
)


def core(folder: Path) -> None:
    """Fit, transform, save and load with numpy arrays; say which extra is missing."""
    present = [name for name in OPTIONAL if importlib.util.find_spec(name)]
    assert not present, f"the core dependencies bring {present}"
    drawn = simulate("latent_linear", n=2_000, p=5, n_latent=2, levels_per_latent=10, seed=0)
    table = _with_codes(drawn.group, drawn.X)
    encoder = MeansEncoder(0)
    encoded = encoder.fit_transform(table)
    rows = drawn.group == drawn.group[0]
    np.testing.assert_allclose(encoded[0, -5:], drawn.X[rows].mean(axis=0), rtol=1e-12)
    encoder.save(folder / "means.sufrep")
    np.testing.assert_array_equal(load(folder / "means.sufrep").transform(table), encoded)

    states = LatentStateEncoder(0, n_states=2, random_state=0).fit(table)
    (shares,) = states.representations_.values()
    np.testing.assert_allclose(np.asarray(shares.values).sum(axis=1), 1.0, rtol=1e-9)
    for method in ("one_hot", "low_rank", "mnl", "target_mean", "random_intercept"):
        values = make_encoder(method, 0).fit_transform(table, drawn.y)
        values = values.toarray() if hasattr(values, "toarray") else values
        assert values.shape[0] == 2_000, method
        assert np.isfinite(np.asarray(values, dtype=float)).all(), method
    chosen = SufficientEncoder(0, random_state=0).fit(table, drawn.y)
    assert chosen.report_["summary"]
    _missing_extras_are_named(encoder)


def _missing_extras_are_named(encoder: MeansEncoder) -> None:
    calls = {"report": encoder.plot, "sql": lambda: encoder.to_sql("duckdb", source="sales")}
    for extra, call in calls.items():
        found = ""
        try:
            call()
        except MissingDependencyError as error:
            found = str(error)
        assert f"sufrep[{extra}]" in found, f"nothing says that {extra} is missing: {found}"
    shown = _command("--help", code=1)
    assert "sufrep[cli]" in shown.stderr, shown.stderr


def _with_codes(group: np.ndarray, covariates: np.ndarray) -> np.ndarray:
    """One array of numbers: codes of the levels, and the covariates."""
    return np.column_stack([np.unique(group, return_inverse=True)[1], covariates])


def report(folder: Path) -> None:
    """Compare encodings, write the page and a picture."""
    houses = load_houses()
    columns = houses.columns()
    names = list(columns)
    table = np.column_stack([np.asarray(columns[name], dtype=object)[:1_000] for name in names])
    numeric = [names.index("zipcode"), *(j for j, name in enumerate(names) if _is_numeric(columns[name]))]
    found = sufrep.compare(
        table[:, numeric], houses.y[:1_000], group=0, methods=["drop", "means"], cv=3, progress=False
    )
    found.to_html(folder / "report.html")
    page = (folder / "report.html").read_text()
    assert "<html" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    found.save_chart(folder / "ranking.png")
    assert (folder / "ranking.png").read_bytes().startswith(b"\x89PNG")


def _is_numeric(column: object) -> bool:
    return np.asarray(column).dtype.kind in "fi"


def cli(folder: Path) -> None:
    """Encode a CSV file, apply the saved encoder to new rows, describe it."""
    import polars as pl

    pl.DataFrame(SALES).write_csv(folder / "sales.csv")
    saved = str(folder / "zip.sufrep")
    arguments = (
        "--group",
        "zip",
        "--method",
        "means",
        "--no-target",
        "--save",
        saved,
        "--out",
        str(folder / "out.csv"),
    )
    _command("encode", str(folder / "sales.csv"), *arguments)
    encoded = pl.read_csv(folder / "out.csv", schema_overrides={"zip": pl.String})
    assert dict(zip(encoded["zip"], encoded["zip_mean_size"], strict=True)) == MEANS
    _command("apply", saved, str(folder / "sales.csv"), "--out", str(folder / "again.csv"))
    assert (folder / "again.csv").read_text() == (folder / "out.csv").read_text()
    described = json.loads(_command("describe", saved, "--json").stdout)
    assert described["columns_needed"] == ["zip", "size"]


def boost(_folder: Path) -> None:
    """Compare with xgboost as the model."""
    drawn = simulate("latent_linear", n=600, p=3, n_latent=2, levels_per_latent=5, seed=0)
    table = _with_codes(drawn.group, drawn.X)
    found = sufrep.compare(
        table, drawn.y, group=0, methods=["drop", "means"], models=["xgboost"], cv=3, progress=False
    )
    assert found.best.model == "xgboost"


def sql(folder: Path) -> None:
    """The encoder as SQL, run by the database that Python brings."""
    import sqlite3

    encoder = MeansEncoder(0).fit(np.array([[1.0, 1.0], [2.0, 3.0], [2.0, 5.0], [1.0, 2.0]]))
    statements = encoder.to_sql("sqlite", source="sales", table="vectors")
    connection = sqlite3.connect(folder / "sales.db")
    connection.execute("CREATE TABLE sales (x0 DOUBLE, x1 DOUBLE)")
    connection.execute("INSERT INTO sales VALUES (1, 7), (2, 8)")
    for statement in (*statements.create, *statements.insert):
        connection.execute(statement)
    rows = connection.execute(statements.select).fetchall()
    assert sorted(row[-1] for row in rows) == [1.5, 4.0]


def duckdb(_folder: Path) -> None:
    """Encode a relation without taking its rows out of the database."""
    import duckdb

    rows = ", ".join(f"('{level}', {size}::DOUBLE)" for level, size in zip(*SALES.values(), strict=True))
    relation = duckdb.sql(f"SELECT * FROM (VALUES {rows}) sales(zip, size)")
    encoded = MeansEncoder("zip").fit(relation).transform(relation)
    assert dict(encoded.select("size", "zip_mean_size").fetchall()) == MEAN_OF_SIZE


def dask(_folder: Path) -> None:
    """Encode a frame of two partitions."""
    import dask.dataframe as dd
    import pandas as pd

    frame = dd.from_pandas(pd.DataFrame(SALES), npartitions=2)
    encoded = MeansEncoder("zip").fit(frame).transform(frame).compute()
    assert dict(zip(encoded["size"], encoded["zip_mean_size"], strict=True)) == MEAN_OF_SIZE


def ibis(_folder: Path) -> None:
    """Encode a table of Ibis, if a backend is installed (the extra leaves the choice to you)."""
    import ibis
    import pyarrow as pa

    if importlib.util.find_spec("duckdb") is None:
        assert ibis.memtable(pa.table(SALES)).columns
        return
    table = ibis.duckdb.connect().create_table("sales", pa.table(SALES))
    encoded = MeansEncoder("zip").fit(table).transform(table).to_pyarrow().to_pydict()
    assert dict(zip(encoded["size"], encoded["zip_mean_size"], strict=True)) == MEAN_OF_SIZE


def spark(_folder: Path) -> None:
    """Encode a frame of a local Spark session (needs Java)."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        frame = session.createDataFrame(list(zip(*SALES.values(), strict=True)), list(SALES))
        rows = MeansEncoder("zip").fit(frame).transform(frame).select("size", "zip_mean_size").collect()
        assert {row[0]: row[1] for row in rows} == MEAN_OF_SIZE
    finally:
        session.stop()


def engines(folder: Path) -> None:
    """All engines in one environment."""
    for test in (duckdb, dask, ibis, spark, sql):
        test(folder)


def paper(folder: Path) -> None:
    """One small simulation of the paper, with its forest, and its table."""
    store = str(folder / "store")
    size = ("--n", "300", "--trees", "8")
    cells = (
        "--setups",
        "latent_linear",
        "--latent",
        "2",
        "--levels",
        "5",
        "--models",
        "forest",
        "--seeds",
        "1",
    )
    _command("paper", "simulations", *cells, *size, "--methods", "one_hot", "means", "--store", store)
    assert "means" in _command("paper", "tables", "--store", store).stdout


def peers(_folder: Path) -> None:
    """The libraries that the benchmark compares with can be imported together."""
    for name in ("catboost", "category_encoders", "doubleml", "gpboost", "lightgbm"):
        __import__(name)


TESTS: dict[str, Callable[[Path], None]] = {
    test.__name__: test
    for test in (core, report, cli, boost, sql, duckdb, dask, ibis, spark, engines, paper, peers)
}


def _command(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("sufrep")), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, f"sufrep {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done


def main() -> None:
    """Run the test that is named, in a temporary folder."""
    if sys.argv[1:2] == [] or sys.argv[1] not in TESTS:
        sys.exit(f"usage: smoke.py {{{','.join(TESTS)}}}")
    with tempfile.TemporaryDirectory() as folder:
        TESTS[sys.argv[1]](Path(folder))
    print(f"{sys.argv[1]}: sufrep {sufrep.__version__} works, from {Path(sufrep.__file__).parent}")


if __name__ == "__main__":
    main()
