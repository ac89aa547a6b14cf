"""A table of level vectors as SQL: a table, its rows, and a query that joins it to the rows of another table.

`sqlglot` writes the names, the texts and the types of each dialect. Numbers are written with all their
digits, so that a database returns the same doubles.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sufrep.errors import InvalidParameterError, NotExportableError, import_package

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sufrep._arrays import Floats

# Dialects that tests run, and those that they only parse.
RUN = ("duckdb", "sqlite", "postgres", "spark")
DIALECTS = (*RUN, "bigquery", "snowflake", "databricks", "mysql", "tsql")
# In these, NaN equals NaN, so a comparison distinguishes it from numbers.
_WITH_NAN = ("duckdb", "postgres", "spark", "databricks", "snowflake")
# Where texts of equal letters but other cases or accents are equal unless a collation says otherwise.
_COLLATIONS = {"mysql": "utf8mb4_bin", "tsql": "Latin1_General_100_BIN2"}
# Characters of a statement: SQLite takes a million bytes.
_MOST_LETTERS = 200_000
# What stands for null in a column of keys, next to a column that says that it is null.
_FILL: dict[str, Any] = {
    "text": "",
    "bigint": 0,
    "boolean": False,
    "double": 0.0,
    "date": date(1970, 1, 1),
    "timestampntz": datetime(1970, 1, 1),
}


@dataclass(frozen=True, slots=True)
class SqlStatements:
    """SQL that stores vectors in a database, and joins them to the rows of a table.

    Attributes
    ----------
    dialect : str
    create : tuple of str
        CREATE TABLE for each group.
    insert : tuple of str
        INSERT with the levels, some rows at a time.
    select : str
        All columns of the source table, followed by the encoded ones.
    """

    dialect: str
    create: tuple[str, ...]
    insert: tuple[str, ...]
    select: str

    @property
    def setup(self) -> tuple[str, ...]:
        """What is run once: the tables, then their rows."""
        return (*self.create, *self.insert)

    def __str__(self) -> str:
        return ";\n".join((*self.setup, self.select)) + ";\n"


class VectorTable(NamedTuple):
    """The vectors of one group, as they go into a database.

    Attributes
    ----------
    name : str
        Name of the new table.
    keys : tuple of str
        The columns of the source table that the levels are from, several if they are crossed.
    levels : list
    values : ndarray, shape (n_levels, n_columns)
    columns : tuple of str
    prior : ndarray, shape (n_columns,)
    """

    name: str
    keys: tuple[str, ...]
    levels: list[Any]
    values: Floats
    columns: tuple[str, ...]
    prior: Floats


def write_sql(
    tables: Sequence[VectorTable], dialect: str, source: str, order: Sequence[str], batch: int
) -> SqlStatements:
    """SQL for the vectors of some groups; ``order`` is that of the encoded columns."""
    if dialect not in DIALECTS:
        raise InvalidParameterError("dialect", dialect, f"one of {', '.join(DIALECTS)}")
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise InvalidParameterError("batch", batch, "a number of rows, at least 1")
    writer = _Writer(import_package("sqlglot", "SQL", "sql"), dialect)
    groups = [_Group.of(table) for table in tables]
    return SqlStatements(
        dialect,
        tuple(writer.create(group) for group in groups),
        tuple(statement for group in groups for statement in writer.insert(group, batch)),
        writer.select(groups, source, order),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """A checked table: keys of one type each, and finite vectors.

    Attributes
    ----------
    table : VectorTable
    kinds : list of str
        The type of each key.
    parts : list of list
        The value of each key, by level; None for null.
    nulls : list of str
        The column that says whether each key is null.
    """

    table: VectorTable
    kinds: list[str]
    parts: list[list[Any]]
    nulls: list[str]

    @classmethod
    def of(cls, table: VectorTable) -> _Group:
        if not np.isfinite(table.values).all() or not np.isfinite(table.prior).all():
            raise NotExportableError(
                f"The vectors of {':'.join(table.keys)!r} hold NaN or infinity, which SQL literals lack.",
                "encode in Python, with transform.",
            )
        crossed = len(table.keys) > 1
        columns = list(zip(*table.levels, strict=True)) if crossed and table.levels else [table.levels]
        kinds, parts = [], []
        for name, column in zip(table.keys, columns, strict=False):
            kinds.append(_kind_of(name, column))
            parts.append([_plain(value, kinds[-1]) for value in column])
        taken = [*table.keys, *table.columns]
        nulls = [free_name(f"{name}_is_null", taken) for name in table.keys]
        _refuse_equal_names([*taken, *nulls])
        return cls(table, kinds, parts, nulls)


def _refuse_equal_names(names: Sequence[str]) -> None:
    """Refuse names that differ by case only, which most databases take for the same."""
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.casefold(), name)
        if other is not name:
            raise NotExportableError(
                f"The columns {other!r} and {name!r} have the same name in a database, which ignores case.",
                "rename the columns, or the levels that they are named after.",
            )


def table_name(keys: Sequence[str]) -> str:
    """A name for the table of a group.

    >>> table_name(["zip code", "brand"])
    'sufrep_zip_code_brand'
    """
    return re.sub(r"\W+", "_", "_".join(["sufrep", *keys]), flags=re.ASCII)


def free_name(name: str, taken: Sequence[str]) -> str:
    """A name that is not taken: the given one, or with underscores."""
    while name in taken:
        name += "_"
    return name


def _kind_of(name: str, values: Sequence[Any]) -> str:
    """The type of a column of keys, which all must have."""
    kinds = {_kind_of_value(name, value) for value in values if value is not None}
    if kinds == {"bigint", "double"} and all(abs(value) <= 2**53 for value in values if value is not None):
        return "double"
    if len(kinds) > 1:
        raise NotExportableError(
            f"The levels of {name!r} are of several types ({', '.join(sorted(kinds))}), and a column of a "
            "database has one.",
            "convert the column to one type before fit, for instance to text.",
        )
    return kinds.pop() if kinds else "text"


def _kind_of_value(name: str, value: Any) -> str:
    kind = None
    if isinstance(value, str) and "\0" not in value:
        kind = "text"
    elif isinstance(value, bool):
        kind = "boolean"
    elif isinstance(value, (int, Decimal)):
        whole = value == value.to_integral_value() if isinstance(value, Decimal) else True
        kind = "bigint" if whole and -(2**63) <= value < 2**63 else None
    elif isinstance(value, float):
        kind = "double" if math.isfinite(value) else None
    elif isinstance(value, datetime):
        exact = value.utcoffset() is None and not getattr(value, "nanosecond", 0)
        kind = "timestampntz" if exact else None
    elif isinstance(value, date):
        kind = "date"
    if kind is None:
        raise NotExportableError(
            f"The level {value!r} of {name!r} is a {type(value).__name__} that has no counterpart in SQL.",
            "levels may be text without the character NUL, integers of 64 bits, booleans, finite numbers, "
            "dates, and times without a zone, to the microsecond.",
        )
    return kind


def _plain(value: Any, kind: str) -> Any:
    if value is None:
        return _FILL[kind]
    return int(value) if kind == "bigint" else float(value) if kind == "double" else value


class _Writer:
    """Writes statements in one dialect."""

    def __init__(self, sqlglot: Any, dialect: str) -> None:
        self._exp, self._dialect = sqlglot.exp, dialect
        self._parse: Callable[..., Any] = sqlglot.parse_one
        self._generator = sqlglot.Dialect.get_or_raise(dialect).generator()

    def create(self, group: _Group) -> str:
        """CREATE TABLE: the keys, whether they are null, and the vector."""
        columns = [
            *((key, self._type(kind)) for key, kind in zip(group.table.keys, group.kinds, strict=True)),
            *((null, self._type("int")) for null in group.nulls),
            *((name, self._type("double")) for name in group.table.columns),
        ]
        listed = ", ".join(f"{self._name(name)} {kind} NOT NULL" for name, kind in columns)
        return f"CREATE TABLE {self._table(group.table.name)} ({listed})"

    def insert(self, group: _Group, batch: int) -> Iterator[str]:
        """INSERT of the levels, ``batch`` rows at a time."""
        names = [*group.table.keys, *group.nulls, *group.table.columns]
        start = f"INSERT INTO {self._table(group.table.name)} ({', '.join(map(self._name, names))}) VALUES\n"
        rows: list[str] = []
        length = 0
        for row in self._rows(group):
            if rows and (len(rows) == batch or length + len(row) > _MOST_LETTERS):
                yield start + ",\n".join(rows)
                rows, length = [], 0
            rows.append(row)
            length += len(row)
        if rows:
            yield start + ",\n".join(rows)

    def _rows(self, group: _Group) -> Iterator[str]:
        crossed = len(group.table.keys) > 1
        values = group.table.values.tolist()
        for number, level in enumerate(group.table.levels):
            given = level if crossed else (level,)
            keys = [
                self._literal(part[number], kind) for part, kind in zip(group.parts, group.kinds, strict=True)
            ]
            nulls = [str(int(part is None)) for part in given]
            yield f"({', '.join([*keys, *nulls, *map(self._number, values[number])])})"

    def select(self, groups: Sequence[_Group], source: str, order: Sequence[str]) -> str:
        """The query that encodes the rows of the source table."""
        exp = self._exp
        found: dict[str, Any] = {}
        alias = _aliases(len(groups))
        query = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier("s")))
        query = query.from_(exp.alias_(exp.to_table(source, dialect=self._dialect), "s", table=True))
        for name, group in zip(alias, groups, strict=True):
            table = exp.alias_(exp.to_table(group.table.name, dialect=self._dialect), name, table=True)
            query = query.join(table, on=exp.and_(*self._conditions(group, name)), join_type="left")
            for column, prior in zip(group.table.columns, group.table.prior.tolist(), strict=True):
                vector = self._column(column, name)
                number = self._parse(self._number(prior), dialect=self._dialect)
                found[column] = exp.Coalesce(this=vector, expressions=[number])
        for column in order:
            query = query.select(exp.alias_(found[column], column, quoted=True))
        # sqlglot would also indent the second line of a name (a level of one-hot coding may have two).
        pretty = not any("\n" in name for group in groups for name in (*group.table.keys, *order))
        return str(query.sql(dialect=self._dialect, pretty=pretty))

    def _conditions(self, group: _Group, name: str) -> Iterator[Any]:
        """Equality of each key, and of whether it is null: a join on these can be hashed."""
        exp = self._exp
        for key, null, kind in zip(group.table.keys, group.nulls, group.kinds, strict=True):
            fill = self._parse(self._literal(_FILL[kind], kind), dialect=self._dialect)
            filled = exp.Coalesce(this=self._source(key, kind), expressions=[fill])
            if kind == "text" and self._dialect in _COLLATIONS:
                filled = exp.Collate(this=filled, expression=exp.var(_COLLATIONS[self._dialect]))
            yield exp.EQ(this=self._column(key, name), expression=filled)
            is_null = exp.Is(this=self._source(key, kind), expression=exp.Null())
            case = exp.Case().when(is_null, exp.Literal.number(1)).else_(exp.Literal.number(0))
            yield exp.EQ(this=self._column(null, name), expression=case)

    def _source(self, key: str, kind: str) -> Any:
        """A column of the source table, where NaN is null as it is in frames."""
        column = self._column(key, "s")
        if kind == "double" and self._dialect in _WITH_NAN:
            nan = self._exp.cast(self._exp.Literal.string("NaN"), "double")
            return self._exp.Nullif(this=column, expression=nan)
        return column

    def _column(self, name: str, table: str) -> Any:
        return self._exp.column(self._exp.to_identifier(name, quoted=True), table=table)

    def _name(self, name: str) -> str:
        return str(self._exp.to_identifier(name, quoted=True).sql(dialect=self._dialect))

    def _table(self, name: str) -> str:
        return str(self._exp.to_table(name, dialect=self._dialect).sql(dialect=self._dialect))

    def _type(self, kind: str) -> str:
        if self._dialect == "sqlite" and kind in ("date", "timestampntz"):
            kind = "text"  # SQLite has no type for dates, and text of the ISO format by convention
        if self._dialect == "mysql" and kind == "timestampntz":
            return "DATETIME(6)"
        if self._dialect == "tsql" and kind in ("text", "double"):
            return {"text": "NVARCHAR(MAX)", "double": "FLOAT(53)"}[kind]
        return str(self._exp.DataType.build(kind).sql(dialect=self._dialect))

    def _literal(self, value: Any, kind: str) -> str:
        """A key as SQL."""
        if kind == "bigint":
            return str(value)
        if kind == "double":
            return self._number(value)
        if kind == "boolean":
            number = self._dialect in ("sqlite", "tsql")
            return str(int(value)) if number else str(bool(value)).upper()
        text = value if kind == "text" else value.isoformat(*([" "] if kind != "date" else []))
        written = str(self._generator.generate(self._exp.Literal.string(text)))
        if kind == "text" or self._dialect == "sqlite":
            return f"N{written}" if self._dialect == "tsql" else written
        return f"CAST({written} AS {self._type(kind)})"

    def _number(self, value: float) -> str:
        """A double, whose digits bring back the same bits; a negative zero becomes zero."""
        if self._dialect == "sqlite":
            return _exact_number(value)
        written = repr(value + 0.0)
        return written if "e" in written else f"{written}e0"


def _aliases(number: int) -> list[str]:
    return ["v"] if number == 1 else [f"v{place}" for place in range(1, number + 1)]


def _exact_number(value: float) -> str:
    """A double as a quotient or product of whole numbers, all of which SQLite reads exactly.

    Some versions of SQLite round one in ten thousand decimal fractions to the wrong neighbour
    (test_sqlite_returns_the_same_bits).

    >>> _exact_number(0.75), _exact_number(-3.0)
    ('(3.0 / 4.0)', '-3.0')
    """
    whole, below = value.as_integer_ratio()
    sign, whole = "-" if whole < 0 else "", abs(whole)
    factors = ""
    # An odd number of at most 53 bits, times a power of two.
    power = (whole & -whole).bit_length() - 1 if whole else 0
    if whole >= 2**53:
        whole, factors = whole >> power, _powers("*", power)
    if below > 1:
        factors = _powers("/", below.bit_length() - 1)
    return f"({sign}{whole}.0{factors})" if factors else f"{sign}{whole}.0"


def _powers(operator: str, power: int) -> str:
    """Products with, or quotients by, powers of two that are whole numbers of few digits."""
    written = ""
    while power:
        step = min(power, 30)
        written += f" {operator} {2**step}.0"
        power -= step
    return written
