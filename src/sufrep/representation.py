"""Levels, and the table that gives each of them a short vector.

A level is a distinct value of a group column as a plain Python object: a ``str``, a number, a date, a tuple
of these (crossed columns) or ``None`` (the missing value). Levels have one canonical order, which does not
depend on the frame library or on the order of the rows, so neither does anything that is computed from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from sufrep._accumulate import weighted_mean
from sufrep._parquet import write_parquet
from sufrep._sql import VectorTable, table_name, write_sql
from sufrep.errors import OneLevelGivenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from os import PathLike

    from sufrep._arrays import Codes, Floats, Levels
    from sufrep._sql import SqlStatements


# Types whose values compare with each other; others go by their printed form.
_ORDERED = (str, bytes, date, time, timedelta, Fraction)


@dataclass(frozen=True, slots=True, eq=False)
class Representation:
    """A vector for every level of one group column, and one for unseen levels.

    Parameters
    ----------
    levels : ndarray of object, shape (n_levels,)
        The levels; ``None`` stands for the missing value where that is a level of its own.
    values : ndarray or csr_array, shape (n_levels, n_columns)
        The vector of each level, one per row.
    columns : tuple of str
        Names of the columns of ``values``.
    weight : ndarray, shape (n_levels,)
        Number of rows (or their total weight) of each level when the table was made.
    prior : ndarray, shape (n_columns,)
        The vector of an unseen level: usually the weighted mean of the level vectors.
    group : tuple of str
        Names of the columns that the levels are from, several if they are crossed; empty if not known.

    Examples
    --------
    >>> table = Representation.from_values(["a", "b"], [[0.0], [4.0]], ["size"], weight=[3.0, 1.0])
    >>> table.lookup(["b", "a", "unseen"])
    array([[4.],
           [0.],
           [1.]])
    >>> table["b"]
    array([4.])
    """

    levels: Levels
    values: Floats | sparse.csr_array
    columns: tuple[str, ...]
    weight: Floats
    prior: Floats
    group: tuple[str, ...] = ()
    _position: dict[Any, int] = field(init=False, repr=False)
    _memo: dict[str, tuple[tuple[Any, ...], Any]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_position", {})
        object.__setattr__(self, "_memo", {})

    def __reduce__(self) -> Any:
        # What follows from the fields is made again, not stored.
        return type(self), (self.levels, self.values, self.columns, self.weight, self.prior, self.group)

    @classmethod
    def from_values(
        cls,
        levels: Any,
        values: Any,
        columns: Iterable[str],
        *,
        weight: Any,
        prior: Any = None,
        group: Iterable[str] = (),
    ) -> Self:
        """Build the table; its prior is the weighted mean of the level vectors if none is given."""
        vectors: Any = values if sparse.issparse(values) else np.asarray(values, dtype=np.float64)
        weights = np.asarray(weight, dtype=np.float64)
        if prior is None:
            is_sparse = sparse.issparse(vectors)
            prior = weights @ vectors / weights.sum() if is_sparse else weighted_mean(vectors, weights)
        return cls(as_levels(levels), vectors, tuple(columns), weights, prior, tuple(group))

    def _known(self) -> dict[Any, int]:
        """Position of each level, made at the first look-up: of a million levels it takes a second."""
        if not self._position:
            self._position.update(level_positions(self.levels))
        return self._position

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.levels)

    def __getitem__(self, level: Any) -> Floats:
        """Vector of one level, the prior for one that is not in the table, as in `lookup`; (n_columns,).

        It takes about a microsecond, however many levels there are (with sparse values, longer). The array
        is read-only, because it is a part of the table. ``level in representation`` says whether the level
        has a vector of its own.
        """
        position = self._place(level)
        if position < 0:
            vector = self.prior[:]
        elif isinstance(self.values, np.ndarray):
            vector = self.values[position]
        else:
            vector = dense_values(self.values.tocsr()[[position]])[0]
        vector.flags.writeable = False
        return vector

    def __contains__(self, level: Any) -> bool:
        return self._place(level) >= 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.levels.tolist())

    def _place(self, level: Any) -> int:
        """Row of a level in ``values``, −1 for one that is not in the table."""
        find = self._known().get
        place = find(level, -1)
        return find(None, -1) if place < 0 and is_null(level) else place

    def positions(self, levels: Iterable[Any]) -> Codes:
        """Row of each level in ``values``, −1 for a level that is not in the table.

        Parameters
        ----------
        levels : iterable of hashable, length n

        Returns
        -------
        ndarray of int, shape (n,)

        Raises
        ------
        OneLevelGivenError
            If a single level is given: a text would be taken for an iterable of characters.
        """
        if self._is_one_level(levels):
            raise OneLevelGivenError(levels)
        find = self._known().get
        null = find(None, -1)
        found = ((find(level, -1), level) for level in levels)
        return np.fromiter(
            (null if place < 0 and is_null(level) else place for place, level in found), dtype=np.intp
        )

    def lookup(self, levels: Iterable[Any]) -> Any:
        """Vector of each of the given levels, the prior for those not in the table.

        Parameters
        ----------
        levels : iterable of hashable, length n

        Returns
        -------
        ndarray or csr_array, shape (n, n_columns)
        """
        return take_vectors(self.values, self.prior, self.positions(levels))

    def _is_one_level(self, given: Any) -> bool:
        if isinstance(given, tuple):  # crossed levels are tuples, and so may a list of levels be
            try:
                return given in self._known()
            except TypeError:
                return False
        return isinstance(given, (str, bytes)) or not hasattr(given, "__iter__")

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the table to a Parquet file, completely or not at all.

        A level has a row with its value (crossed levels a column for each part, named after the columns of
        the group), ``row`` = "level", its weight and its vector. The last row has ``row`` = "prior", no
        level, the total weight and the vector of unseen levels; a level that is null has ``row`` = "level",
        too. Columns called "row" or "weight" of the group or of the vectors add an underscore to these names.

        Raises
        ------
        NotExportableError
            If the levels are of several types.
        """
        write_parquet(
            path,
            self._keys(),
            self.levels.tolist(),
            self.weight,
            dense_values(self.values),
            self.columns,
            self.prior,
        )

    def to_sql(
        self, dialect: str, *, source: str, table: str | None = None, batch: int = 500
    ) -> SqlStatements:
        """Write SQL that stores the vectors in a database and joins them to the rows of a table.

        The query returns all columns of the source table and the vector of each row's level, to the last bit
        what `lookup` returns. It knows the levels of this table and the prior: null has its own vector if it
        is a level, and all other levels get the prior. ``unseen="estimate"`` of encoders needs rows, and is
        not part of it.

        Parameters
        ----------
        dialect : str
            "duckdb", "sqlite", "postgres" and "spark" are tested on real databases; "bigquery", "snowflake",
            "databricks", "mysql" and "tsql" are written and parsed only.
        source : str
            Name of the table with the rows, perhaps with its schema. It has the columns of the group.
        table : str, optional
            Name of the table to create; by default ``sufrep_`` and the name of the group.
        batch : int, default=500
            Rows of one INSERT.

        Returns
        -------
        SqlStatements
            ``create``, ``insert`` and ``select``; printed, they are a script.

        Raises
        ------
        NotExportableError
            For levels of several types or without a counterpart in SQL, and vectors with NaN or infinity.
        """
        return write_sql([self.vector_table(table)], dialect, source, self.columns, batch)

    def vector_table(self, name: str | None = None) -> VectorTable:
        """The vectors as they go into a database, in a table of the given name."""
        keys = self._keys()
        values = dense_values(self.values)
        name = table_name(keys) if name is None else name
        return VectorTable(name, keys, self.levels.tolist(), values, self.columns, self.prior)

    def _keys(self) -> tuple[str, ...]:
        """Names of the columns of the levels."""
        if self.group:
            return self.group
        first = self.levels[0] if self.n_levels else None
        n_parts = len(first) if isinstance(first, tuple) else 1
        return ("level",) if n_parts == 1 else tuple(f"level_{number}" for number in range(1, n_parts + 1))

    def with_prior(self) -> Any:
        """Stack the prior below the vectors, where index −1 finds it; (n_levels + 1, n_columns)."""
        return stack_prior(self.values, self.prior)

    def remember(self, name: str, compute: Callable[[], Any], *given: Any) -> Any:
        """What ``compute`` returned when it was first called for the same objects ``given``.

        For what costs as much as there are levels, and rows that come one by one need every time.
        """
        known = self._memo.get(name)
        if known is None or any(old is not new for old, new in zip(known[0], given, strict=True)):
            known = self._memo[name] = given, compute()
        return known[1]


class PooledLevel:
    """The level that rare levels are pooled into: equal to no level of the data, whatever they are called."""

    def __str__(self) -> str:
        return "infrequent"


def level_positions(levels: Levels) -> dict[Any, int]:
    """Position of each level, (n_levels,), by level."""
    return dict(zip(levels.tolist(), range(len(levels)), strict=True))


def dense_values(values: Any) -> Floats:
    """Return vectors (n_levels, n_columns), dense or sparse, as a dense array."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)


def stack_prior(values: Any, prior: Floats) -> Any:
    """Append the prior to vectors (n_levels, n_columns), dense or sparse; (n_levels + 1, n_columns)."""
    if sparse.issparse(values):
        blocks: list[Any] = [values, sparse.csr_array(prior[None])]
        return sparse.vstack(blocks).tocsr()
    return np.vstack([values, prior])


def take_vectors(values: Any, prior: Floats, positions: Codes) -> Any:
    """Vectors (n_levels, n_columns), dense or sparse, at some positions, the prior at −1; (n, n_columns).

    The cost depends on the number of positions, not on that of levels.
    """
    unknown = positions < 0
    if sparse.issparse(values):
        matrix: Any = values
        few = stack_prior(matrix.tocsr()[np.maximum(positions, 0)], prior)
        return few[np.where(unknown, len(positions), np.arange(len(positions)))]
    if not len(values):
        return np.tile(prior, (len(positions), 1))
    found = values[positions].astype(np.result_type(values, prior), copy=False)
    found[unknown] = prior
    return found


def sort_levels(values: Iterable[Any]) -> Levels:
    """Sort distinct levels: by value within a type, types one after another, ``None`` last.

    Parameters
    ----------
    values : iterable of hashable
        Distinct levels.

    Returns
    -------
    ndarray of object, shape (n_levels,)

    Examples
    --------
    >>> sort_levels(["b", None, "a", 10, 9]).tolist()
    [9, 10, 'a', 'b', None]
    """
    found = list(values)
    return as_levels(found)[level_order(found)]


def level_order(values: Sequence[Any]) -> Codes:
    """Positions of distinct levels in the order of `sort_levels`; runs that are sorted already cost little.

    >>> level_order(["a", "c", "b"]).tolist()
    [0, 2, 1]
    """
    try:
        ordered = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:
        ordered = sorted(range(len(values)), key=lambda position: _sort_key(values[position]))
    return np.array(ordered, dtype=np.intp)


def as_levels(values: Sequence[Any]) -> Levels:
    """Make a one-dimensional object array, also of tuples, which numpy would unpack."""
    levels = np.empty(len(values), dtype=object)
    levels[:] = values
    return levels


def is_null(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA (all that is not equal to itself)."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except (TypeError, ArithmeticError):  # the truth of pandas' NA, or a signalling NaN, is not defined
        return True
    except ValueError:  # that of an array neither, and an array is a value
        return False


def level_label(level: Any) -> str:
    """Name a level for a column header or a chart.

    >>> level_label(("store 1", None))
    'store 1:missing'
    """
    if level is None:
        return "missing"
    if isinstance(level, tuple):
        return ":".join(level_label(part) for part in level)
    return str(level)


def distinct_labels(levels: Iterable[Any]) -> list[str]:
    """Name levels so that no two share a name, such as null and a level called "missing".

    >>> distinct_labels(["missing", "other", None])
    ['missing', 'other', 'missing_2']
    """
    taken: set[str] = set()
    labels = []
    for level in levels:
        label = first = level_label(level)
        number = 1
        while label in taken:
            number += 1
            label = f"{first}_{number}"
        taken.add(label)
        labels.append(label)
    return labels


def _sort_key(level: Any) -> tuple[Any, ...]:
    """Sort key for any two levels; numbers compare with numbers of every type."""
    if level is None:
        return (3, "", "")
    if isinstance(level, tuple):
        return (2, "", tuple(_sort_key(part) for part in level))
    if isinstance(level, (bool, int, float, Decimal)):
        return (0, "", level)
    # Times with a time zone do not compare with times without.
    aware = isinstance(level, (datetime, time)) and level.utcoffset() is not None
    kind = type(level).__name__ + aware * " with time zone"
    return (1, kind, level if isinstance(level, _ORDERED) else str(level))
