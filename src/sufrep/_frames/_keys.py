"""Group columns of lazy tables: how their values become levels, and levels become values again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np

from sufrep.errors import KeyTypeError
from sufrep.representation import is_null

if TYPE_CHECKING:
    from collections.abc import Iterable

KeyKind = Literal["text", "integer", "float", "boolean", "date", "datetime"]

# Integers that may not fit into 64 bits travel as text.
_WIDE = (nw.UInt64, nw.Int128, nw.UInt128)
_MOST_DIGITS = 18
# What stands for null in a join, where a second key marks it; any value of the type would do.
_FILL: dict[KeyKind, Any] = {
    "text": "",
    "integer": 0,
    "float": 0.0,
    "boolean": False,
    "date": date(1970, 1, 1),
    "datetime": datetime(1970, 1, 1),
}


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """A column whose values are levels.

    Equal values are equal in every engine: NaN is null, −0.0 is 0.0, categories are text, and decimals
    without decimal places are integers. Values are never compared with levels of another kind, which some
    engines would convert.

    Parameters
    ----------
    name : str
    kind : {"text", "integer", "float", "boolean", "date", "datetime"}
    expression : narwhals expression
        The values; text if the integers may not fit into 64 bits.
    zone : str or None
        Time zone of a datetime.
    is_wide : bool
        Whether integers travel as text.
    """

    name: str
    kind: KeyKind
    expression: nw.Expr
    zone: str | None = None
    is_wide: bool = False

    @classmethod
    def of(cls, name: str, dtype: nw.dtypes.DType, *, widen: bool = True) -> Key:
        """Return the key of a column of a given type, or raise an error for a type that is no key.

        Integers are compared as 64 bits, unless ``widen`` is False: Dask converts no nulls among them.
        """
        column = nw.col(name)
        if dtype == nw.String:
            return cls(name, "text", column)
        if dtype in (nw.Categorical, nw.Enum):
            return cls(name, "text", column.cast(nw.String))
        if dtype == nw.Boolean:
            return cls(name, "boolean", column)
        if dtype.is_float():
            # Adding zero turns −0.0 into 0.0.
            return cls(name, "float", not_nan(column.cast(nw.Float64)) + 0.0)
        if dtype.is_integer() or (isinstance(dtype, nw.Decimal) and dtype.scale == 0):
            wide = dtype.precision > _MOST_DIGITS if isinstance(dtype, nw.Decimal) else dtype in _WIDE
            if wide:
                return cls(name, "integer", column.cast(nw.String), is_wide=True)
            return cls(name, "integer", column.cast(nw.Int64) if widen and dtype != nw.Int64 else column)
        if dtype == nw.Date:
            return cls(name, "date", column)
        if isinstance(dtype, nw.Datetime):
            zone = dtype.time_zone
            in_us = column if dtype.time_unit == "us" else column.cast(nw.Datetime("us", zone))
            return cls(name, "datetime", in_us, zone)
        raise KeyTypeError(name, str(dtype))

    @property
    def type(self) -> KeyKind:
        """Kind of the values as they travel."""
        return "text" if self.is_wide else self.kind

    @property
    def fill(self) -> Any:
        """What stands for null in a join."""
        found = _FILL[self.type]
        return found.replace(tzinfo=UTC) if self.zone is not None else found

    def levels(self, values: Iterable[Any]) -> list[Any]:
        """The levels that values of `expression` stand for."""
        found = [None if is_null(value) else value for value in values]
        return [None if value is None else int(value) for value in found] if self.is_wide else found

    def value(self, level: Any) -> Any:
        """The value that a level has in this column; None if it cannot occur in it."""
        found = self._value(level)
        return str(found) if self.is_wide and found is not None else found

    def _value(self, level: Any) -> Any:
        if self.kind == "text":
            return level if isinstance(level, str) else None
        if self.kind == "date":
            return level if isinstance(level, date) and not isinstance(level, datetime) else None
        if self.kind == "datetime":
            same = isinstance(level, datetime) and (level.tzinfo is None) == (self.zone is None)
            return level if same else None
        # As in Python, 1, 1.0 and True are one level.
        if not isinstance(level, (bool, int, float, Decimal, np.number)):
            return None
        if self.kind == "float":
            return float(level)
        if level != int(level):
            return None
        if self.kind == "boolean":
            return bool(level) if level in (0, 1) else None
        return int(level) if self.is_wide or -(2**63) <= level < 2**63 else None


def not_nan(column: nw.Expr) -> nw.Expr:
    """The values of a column of floats, null for NaN."""
    return nw.when(~column.is_nan()).then(column)


def zero_or_one(column: nw.Expr) -> nw.Expr:
    """A column of booleans as doubles, null for null.

    Not every engine converts booleans, or nulls among them, and to PostgreSQL 1.0 is a decimal, not a double.
    """
    number = nw.when(column).then(nw.lit(1)).otherwise(nw.lit(0)).cast(nw.Float64)
    return nw.when(~column.is_null()).then(number)
