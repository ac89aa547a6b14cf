"""Vectors as SQL: real databases return to the last bit what `transform` does."""

from __future__ import annotations

import datetime as dt
import sqlite3
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.serving.engines import Engine, source_name

from sufrep import ContrastEncoder, MeansEncoder, Representation, make_encoder
from sufrep._sql import DIALECTS, RUN, _exact_number
from sufrep.errors import InvalidParameterError, MissingDependencyError, NotExportableError

sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed")

AWKWARD = [
    "it's",
    '"quoted"',
    "back\\slash",
    "\\",
    "\\'",
    "two\nlines",
    "tab\tand\r\n",
    "😀 emoji",
    "Käse",
    "",
    " ",
    "; DROP TABLE x; --",
    "%s ? :name {{x}} $1",
    "`tick`",
    "a" * 300,
    "\\n",
    "N'x'",
]
LEVELS: dict[str, list[Any]] = {
    "text": AWKWARD,
    "int": [0, -7, 98178, 2**31 - 1],
    "bool": [True, False],
    "float": [0.1, -2.5, 1e22, 0.0, 1 / 3],
    "date": [dt.date(1970, 1, 1), dt.date(2024, 2, 29)],
    "datetime": [dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 23, 59, 59, 123456)],
    "decimal": [Decimal(0), Decimal(12345)],
}
NEW = {
    "text": "new",
    "int": 5,
    "bool": True,
    "float": 7.25,
    "date": dt.date(2020, 1, 1),
    "datetime": dt.datetime(2020, 1, 1, 1),
    "decimal": Decimal(99),
}


def rows_of(kind: str, *, with_null: bool) -> list[list[Any]]:
    rng = np.random.default_rng(0)
    levels = LEVELS[kind] + [None] * with_null
    return [[number, levels[number % len(levels)], rng.normal(), rng.normal()] for number in range(60)]


def encoded(found: list[tuple[Any, ...]], n_new: int) -> np.ndarray:
    """The new columns, in the order of the first one."""
    return np.array([row[-n_new:] for row in sorted(found)], dtype=np.float64)


@pytest.mark.parametrize("with_null", [True, False], ids=["null is a level", "null is not"])
@pytest.mark.parametrize("kind", LEVELS)
def test_engines_return_the_same_bits(kind: str, with_null: bool, dialect: str, engine: Engine) -> None:
    names = ["id", "the key", "x", "y"]
    train = pl.DataFrame(rows_of(kind, with_null=with_null), schema=names, orient="row")
    encoder = MeansEncoder("the key", covariates=["x", "y"], unseen="prior", shrinkage="auto").fit(train)
    rows = [*train.rows(), (60, None, 0.0, 0.0), (61, NEW[kind], 0.0, 0.0)]
    sql = encoder.to_sql(dialect, source=source_name(dialect), batch=7)
    found = engine(dict(zip(names, ["int", kind, "float", "float"], strict=True)), rows, sql)
    new = pl.DataFrame(rows, schema=train.schema, orient="row")
    expected = encoder.transform(new)[:, -2:].astype(np.float64)
    np.testing.assert_array_equal(encoded(found, 2), expected)


def test_crossed_and_several_groups(dialect: str, engine: Engine) -> None:
    rng = np.random.default_rng(1)
    shops, brands = ["a'", "b\\", None], [1, 2, None]
    rows = [[n, shops[n % 3], brands[(n // 3) % 3], rng.normal()] for n in range(45)]
    names = ["id", "shop", "brand", "x"]
    train = pl.DataFrame(rows, schema=names, orient="row")
    encoder = MeansEncoder(["shop", ("shop", "brand")], covariates=["x"], unseen="prior").fit(train)
    sql = encoder.to_sql(dialect, source=source_name(dialect), table="vectors")
    assert len(sql.create) == 2
    more = [*rows, [45, "a'", 99, 0.0], [46, "new", None, 0.0]]
    found = engine(dict(zip(names, ["int", "text", "int", "float"], strict=True)), more, sql)
    expected = encoder.transform(pl.DataFrame(more, schema=train.schema, orient="row"))
    np.testing.assert_array_equal(encoded(found, 2), expected[:, -2:].astype(np.float64))


# One method is enough for engines that take long.
EXPORTED = [("postgres", "low_rank"), ("spark", "low_rank")] + [
    (dialect, method)
    for dialect in ("duckdb", "sqlite")
    for method in ("low_rank", "one_hot", "helmert", "fisher", "latent_state", "random_intercept", "mnl")
]


@pytest.mark.parametrize(("dialect", "method"), EXPORTED)
def test_every_encoder_of_levels_can_be_exported(dialect: str, method: str, engine: Engine) -> None:
    parameters = {"latent_state": {"n_states": 2, "output": "states"}, "mnl": {"solver": "lda"}}.get(
        method, {}
    )
    rows = rows_of("text", with_null=True)
    names = ["id", "key", "x", "y"]
    train = pl.DataFrame(rows, schema=names, orient="row")
    X = train.drop("id")
    encoder = make_encoder(method, "key", unseen="prior", min_frequency=4, **parameters)
    encoder.fit(X, np.arange(60) % 7 + 0.5)
    sql = encoder.to_sql(dialect, source=source_name(dialect))
    found = engine(dict(zip(names, ["int", "text", "float", "float"], strict=True)), rows, sql)
    n = len(encoder.outputs_)
    np.testing.assert_array_equal(encoded(found, n), encoder.transform(X)[:, -n:].astype(np.float64))


def test_nan_keys_are_null(dialect: str, engine: Engine) -> None:
    table = Representation.from_values(
        [1.5, None], [[1.0], [2.0]], ["v"], weight=[1, 1], prior=np.array([9.0]), group=["k"]
    )
    rows = [[0, 1.5], [1, float("nan")], [2, None], [3, 4.0]]
    sql = table.to_sql(dialect, source=source_name(dialect))
    found = engine({"id": "int", "k": "float"}, rows, sql)
    assert encoded([(row[0], row[-1]) for row in found], 1).ravel().tolist() == [1.0, 2.0, 2.0, 9.0]


def test_awkward_names_of_columns(dialect: str, engine: Engine) -> None:
    names = ["id", "a `b`" if dialect == "spark" else 'a "b"', "v 'w'"]
    table = Representation.from_values(["p"], [[1.25]], [names[2]], weight=[1], group=[names[1]])
    sql = table.to_sql(dialect, source=source_name(dialect), table="weights")
    key = names[1].replace('"', '""').replace("`", "``")
    found = engine({"id": "int", key: "text"}, [[0, "p"]], sql)
    assert found[0][-1] == 1.25


def test_numbers_of_every_size(dialect: str, engine: Engine) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [
            rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, 200),
            rng.normal(size=700),
            [5e-324, 1.7976931348623157e308, 2.0**53 + 2, 1e22, 1e23, 0.0, -0.0, 1 / 3],
        ]
    )
    levels = list(range(len(values)))
    table = Representation.from_values(
        levels, values[:, None], ["v"], weight=np.ones(len(values)), prior=values[:1], group=["k"]
    )
    found = engine(
        {"k": "int"}, [[level] for level in [*levels, -1]], table.to_sql(dialect, source=source_name(dialect))
    )
    np.testing.assert_array_equal(encoded(found, 1)[:, 0], [values[0], *values])


def test_sqlite_returns_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    values = np.append(
        rng.normal(size=30_000), rng.normal(size=3_000) * 10.0 ** rng.integers(-307, 307, 3_000)
    )
    connection = sqlite3.connect(":memory:")
    for start in range(0, len(values), 100):
        some = values[start : start + 100]
        written = " UNION ALL ".join(f"SELECT {_exact_number(value)}" for value in some.tolist())
        assert [row[0] for row in connection.execute(written)] == some.tolist()
    connection.close()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", LEVELS)
def test_every_dialect_parses_back(kind: str, dialect: str) -> None:
    levels = [*LEVELS[kind], None]
    table = Representation.from_values(
        levels, np.arange(len(levels))[:, None] / 3, ["v"], weight=np.ones(len(levels)), group=["k"]
    )
    sql = table.to_sql(dialect, source="some_schema.rows", batch=1)
    for statement in (*sql.setup, sql.select):
        assert len(sqlglot.parse(statement, dialect=dialect)) == 1
    if kind == "text":
        for level, statement in zip(levels[:-1], sql.insert, strict=False):
            parsed = sqlglot.parse_one(statement, dialect=dialect)
            row = parsed.find(sqlglot.exp.Tuple)
            assert row.expressions[0].name == level
    select = sqlglot.parse_one(sql.select, dialect=dialect)
    assert [join.side for join in select.args["joins"]] == ["LEFT"]


def test_the_docs_name_the_dialects_that_are_run() -> None:
    described = Representation.to_sql.__doc__ or ""
    assert all(f'"{name}"' in described for name in DIALECTS)
    assert set(RUN) == {"duckdb", "sqlite", "postgres", "spark"}


def test_columns_that_differ_by_case_only_are_refused() -> None:
    encoder = make_encoder("one_hot", "k").fit(pd.DataFrame({"k": ["a", "A", "0"]}))
    with pytest.raises(NotExportableError, match=r"'k_A' and 'k_a' have the same name"):
        encoder.to_sql("duckdb", source="rows")


def test_a_script_holds_everything() -> None:
    table = Representation.from_values(["a"], [[1.0]], ["v"], weight=[1], group=["zip code"])
    sql = table.to_sql("duckdb", source="houses")
    assert str(sql).count(";\n") == 3
    assert "sufrep_zip_code" in sql.create[0]


REFUSED: dict[str, list[Any]] = {
    "several types": ["a", 1],
    "has no counterpart": [2**70],
    "Decimal that has no": [Decimal("1.5")],
    "float that has no": [float("inf")],
    "str that has no": ["a\0b"],
    "bytes that has no": [b"a"],
    "datetime that has no": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
}


@pytest.mark.parametrize("message", REFUSED)
def test_levels_without_a_counterpart_are_refused(message: str) -> None:
    levels = REFUSED[message]
    table = Representation.from_values(
        levels, np.ones((len(levels), 1)), ["v"], weight=np.ones(len(levels)), group=["k"]
    )
    with pytest.raises(NotExportableError, match=f"(?s){message}.*Hint: "):
        table.to_sql("duckdb", source="rows")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_refused(value: float) -> None:
    table = Representation.from_values(["a"], [[value]], ["v"], weight=[1], prior=np.zeros(1))
    with pytest.raises(NotExportableError, match="'level' hold NaN or infinity"):
        table.to_sql("duckdb", source="rows")


@pytest.mark.parametrize(
    ("method", "parameters"),
    [("mixed_model", {}), ("local_effect", {}), ("latent_state", {"n_states": 2, "output": "posterior"})],
)
def test_encoders_that_look_at_the_row_are_refused(method: str, parameters: dict[str, Any]) -> None:
    rows = pd.DataFrame({"key": list("abcdef") * 10, "x": np.sin(np.arange(60))})
    encoder = make_encoder(method, "key", **parameters).fit(rows, np.cos(np.arange(60)))
    with pytest.raises(NotExportableError, match=r"(?s)depend on the covariates of the row.*MeansEncoder"):
        encoder.to_sql("duckdb", source="rows")


@pytest.mark.parametrize(
    ("options", "parameter"),
    [({"dialect": "oracle"}, "dialect"), ({"batch": 0}, "batch"), ({"batch": True}, "batch")],
)
def test_unknown_dialects_and_batches_are_refused(options: dict[str, Any], parameter: str) -> None:
    encoder = ContrastEncoder(0).fit([["a"], ["b"]])
    with pytest.raises(InvalidParameterError, match=f"{parameter} is"):
        encoder.to_sql(**{"dialect": "duckdb", "source": "rows", **options})


def test_without_sqlglot_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = ContrastEncoder(0).fit([["a"], ["b"]])
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(MissingDependencyError, match=r"sufrep\[sql\]"):
        encoder.to_sql("duckdb", source="rows")
