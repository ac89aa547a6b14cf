"""Values as JSON and arrays of numbers, without code.

`Packer.pack` and `Unpacker.unpack` are inverse. Values that JSON lacks are objects with one key that starts
with "$"; ``docs/reference/file-format.md`` lists them. Long sequences become arrays, one for each kind of
item, so that the JSON stays small however many levels there are. Which records there are, and what their
fields hold, is given: `sufrep.moments` and `sufrep.encoders._packing` list theirs.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from sufrep._archive import DTYPES, archive_of, damaged, first_line, read_archive
from sufrep._atomic import replace_file
from sufrep.errors import EncoderFileError, NotSavableError
from sufrep.representation import as_levels, is_null

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from sufrep._arrays import Array

Kind = TypeVar("Kind")

# Longer sequences are arrays; shorter ones can be read in the manifest.
_LONG = 32
# The exponents that IEEE 754 allows decimals; with larger ones a short text stands for gigabytes of digits.
_MOST_EXPONENT = 6144
# Levels of a group that may have the same hash; nearly always it is one, and two for −1 and −2.
_MOST_ALIKE = 100

_SCALARS: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "truth": (bool,),
}


def _seconds(value: timedelta) -> str:
    return f"{value.days} {value.seconds} {value.microseconds}"


def _timedelta(text: str) -> timedelta:
    days, seconds, microseconds = map(int, text.split(" "))
    return timedelta(days, seconds, microseconds)


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if value.is_nan() or abs(value.adjusted()) > _MOST_EXPONENT:
        raise ValueError("a decimal number out of range")
    return value


# Kinds of values that are written as text. A datetime is a date too, so it comes first.
_AS_TEXT: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "timedelta": (timedelta, _seconds, _timedelta),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "decimal": (Decimal, str, _decimal),
    "float": (float, str, float),  # those that JSON lacks
}


# What the fields of each kind of record hold, "?" if they may be None: numbers, levels and so on, with the
# names of their dimensions; one number, text or truth value; or a record. Equal names of dimensions are equal
# sizes within a record. Fields that are not listed are checked where they are used.
Records: TypeAlias = "Mapping[type, Mapping[str, str]]"


class Packer:
    """Turns values into JSON, and collects arrays and the kinds of records on the way.

    Parameters
    ----------
    records : mapping of type to mapping
        The kinds of records that may occur; see `Records`.
    """

    def __init__(self, records: Records) -> None:
        self.arrays: list[Array] = []
        self.records: set[str] = set()
        self._known = records

    def pack(self, value: Any, what: str) -> Any:
        """JSON for a value; ``what`` describes where it comes from, for the error message."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, str):
            return _checked_text(value, what)
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, list):
            return self._sequence("list", value, what)
        if isinstance(value, tuple):
            return self._sequence("tuple", value, what)
        if isinstance(value, dict) and all(map(_is_key, value)):
            return {"$dict": [[self.pack(key, what), self.pack(part, what)] for key, part in value.items()]}
        if isinstance(value, np.ndarray) and value.dtype.kind in "OU" and value.ndim == 1:
            return self._sequence("levels", value.tolist(), what)
        if isinstance(value, np.ndarray) and value.dtype.newbyteorder("<").str in DTYPES:
            return self._array(value)
        if sparse.issparse(value):
            matrix: Any = value
            parts = (matrix.data, matrix.indices, matrix.indptr)
            return {"$csr": [*map(self._array, parts), list(matrix.shape)]}
        if type(value) in self._known and is_dataclass(value):
            self.records.add(type(value).__name__)
            parts_of = {name: self.pack(getattr(value, name), what) for name in _fields(type(value))}
            return {"$record": [type(value).__name__, parts_of]}
        return self._other(value, what)

    def _other(self, value: Any, what: str) -> Any:
        kind, text = _as_text(value, what)
        return {f"${kind}": text}

    def _array(self, value: Any) -> dict[str, int]:
        self.arrays.append(np.asarray(value))
        return {"$array": len(self.arrays) - 1}

    def _sequence(self, container: str, items: Sequence[Any], what: str) -> Any:
        if len(items) <= _LONG:
            packed = [self.pack(item, what) for item in items]
            return packed if container == "list" else {f"${container}": packed}
        return {"$long": [container, self._parts(items, what)]}

    def _parts(self, items: Sequence[Any], what: str) -> list[Any]:
        """Items by kind: the kind, the positions (null for all), and the items of the kind."""
        by_kind: dict[str, list[int]] = {}
        for position, item in enumerate(items):
            by_kind.setdefault(self._kind(item), []).append(position)
        parts: list[Any] = []
        for kind, positions in by_kind.items():
            own = [items[position] for position in positions]
            # Nulls have no items, so their positions count them.
            whole = len(by_kind) == 1 and kind != "null"
            at = None if whole else self._array(np.array(positions, dtype=np.int64))
            parts.append([kind, at, self._items(kind, own, what)])
        return parts

    def _items(self, kind: str, items: Sequence[Any], what: str) -> Any:
        if kind == "null":
            return None
        if kind in _NUMBERS:
            return self._array(np.array(items, dtype=_NUMBERS[kind]))
        if kind == "str":
            return self._texts([_checked_text(item, what) for item in items])
        if kind in _AS_TEXT:
            return self._texts([_as_text(item, what)[1] for item in items])
        if kind.startswith("tuple"):
            return [self._parts(column, what) for column in zip(*items, strict=True)]
        if kind in _by_name(self._known):
            self.records.add(kind)
            names = _fields(_by_name(self._known)[kind])
            return {name: self._parts([getattr(item, name) for item in items], what) for name in names}
        return [self.pack(item, what) for item in items]

    def _texts(self, texts: Sequence[str]) -> list[Any]:
        """Texts one after another in UTF-8, and the length of each."""
        encoded = [text.encode() for text in texts]
        lengths = np.array(list(map(len, encoded)), dtype=np.int64)
        return [self._array(np.frombuffer(b"".join(encoded), dtype=np.uint8)), self._array(lengths)]

    def _kind(self, item: Any) -> str:
        """The kind of an item of a long sequence; "value" for those that are packed one by one."""
        if isinstance(item, np.generic):
            item = item.item()
        if item is None:
            return "null"
        kind = type(item)
        if kind is bool or kind is str:
            return str(kind.__name__)
        if kind is int:
            return "int" if -(2**63) <= item < 2**63 else "value"
        if kind is float:
            return "number"
        if kind is tuple and item:
            return f"tuple {len(item)}"
        if kind in self._known:
            return str(kind.__name__)
        return next((name for name, (cls, _, _) in _AS_TEXT.items() if isinstance(item, cls)), "value")


_NUMBERS = {"bool": np.bool_, "int": np.int64, "number": np.float64}


def _by_name(records: Records) -> dict[str, type]:
    return {cls.__name__: cls for cls in records}


def _is_key(value: Any) -> bool:
    if type(value) is tuple:  # crossed columns
        return all(type(part) is not tuple and _is_key(part) for part in value)
    return type(value) is str or (type(value) is int and -(2**63) <= value < 2**63)


def _checked_text(value: str, what: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise NotSavableError(what, value) from error
    return str(value)


def _as_text(value: Any, what: str) -> tuple[str, str]:
    """Kind and text of the less usual levels; pandas' nanoseconds have no place in Python's types."""
    if not getattr(value, "nanosecond", 0) and not getattr(value, "nanoseconds", 0):
        for kind, (cls, write, read) in _AS_TEXT.items():
            if isinstance(value, cls):
                text = write(value)
                try:
                    read(text)
                except ValueError as error:
                    raise NotSavableError(what, value) from error
                return kind, text
    raise NotSavableError(what, value)


def _fields(record: type) -> list[str]:
    return [entry.name for entry in fields(record) if entry.init]


class Unpacker:
    """Reverses `Packer`; raises all kinds of exceptions for what no packer wrote.

    Parameters
    ----------
    arrays : list of ndarray
    versions : mapping of str to int
        The kinds of records and estimators that the file says it has.
    records : mapping of type to mapping
        The kinds of records that may occur; see `Records`.
    restore : callable, optional
        From the JSON of an estimator to the estimator.
    """

    def __init__(
        self,
        arrays: Sequence[Array],
        versions: Mapping[str, int],
        records: Records,
        restore: Callable[[Any], Any] | None = None,
    ) -> None:
        self._arrays, self._versions, self._restore = dict(enumerate(arrays)), versions, restore
        self._known, self._names = records, _by_name(records)

    def unpack(self, value: Any) -> Any:
        """The value that was packed."""
        if isinstance(value, list):
            return [self.unpack(part) for part in value]
        if not isinstance(value, dict):
            return value
        ((key, content),) = value.items()
        match key:
            case "$array":
                return self._array(content)
            case "$tuple":
                return tuple(self.unpack(content))
            case "$levels":
                return as_levels(self.unpack(content))
            case "$long":
                container, parts = content
                return _CONTAINERS[container](self._items_of(parts))
            case "$dict":
                pairs = [(self.unpack(name), part) for name, part in content]
                found = {name: self.unpack(part) for name, part in pairs if _is_key(name)}
                if len(found) != len(content):
                    raise ValueError("a key occurs twice, or is none")
                return found
            case "$csr":
                return self._csr(*content)
            case "$record":
                name, parts = content
                return self._record(name, {part: self.unpack(inner) for part, inner in parts.items()})
            case "$encoder" if self._restore is not None:
                return self._restore(content)
        if key[1:] not in _AS_TEXT or key[0] != "$":
            raise ValueError(f"unknown kind of value {key[:40]!r}")
        return _AS_TEXT[key[1:]][2](content)

    def _array(self, number: Any) -> Array:
        # Each array is used once: a few bytes could else repeat a large one
        # (test_an_array_that_is_used_twice_is_refused).
        if type(number) is not int or number not in self._arrays:
            raise ValueError("an array is used that is not there, or used twice")
        return self._arrays.pop(number)

    def finish(self) -> None:
        """Raise if an array belongs to nothing."""
        if self._arrays:
            raise ValueError("an array belongs to nothing")

    def _csr(self, data: Any, indices: Any, indptr: Any, shape: Any) -> sparse.csr_array:
        n_rows, n_columns = shape
        parts = tuple(map(self.unpack, (data, indices, indptr)))
        if any(part.dtype.kind != "i" for part in parts[1:]):
            raise ValueError("a sparse table without positions")
        found = sparse.csr_array(parts, shape=(n_rows, n_columns))
        found.check_format(full_check=True)
        return found

    def _record(self, name: str, parts: dict[str, Any]) -> Any:
        self.check_known(name)
        cls = self._names[name]
        sizes: dict[str, int] = {}
        for part, expected in self._known[cls].items():
            kind, *dimensions = expected.split()
            if parts[part] is None and kind.endswith("?"):
                continue
            self._check_part(f"{name}.{part}", parts[part], kind.rstrip("?"), dimensions, sizes)
        return cls(**parts)

    def check_known(self, name: str) -> None:
        """Raise if a record is not among those that the file says it has."""
        if name not in self._versions:
            raise ValueError(f"a record of the kind {str(name)[:40]!r}, which its manifest does not list")

    def _items_of(self, parts: Any) -> list[Any]:
        if len(parts) == 1 and parts[0][1] is None:
            return self._items(parts[0][0], parts[0][2])
        places = [self.unpack(at) for _, at, _ in parts]
        everywhere = np.concatenate(places)
        if not np.array_equal(np.sort(everywhere), np.arange(len(everywhere))):
            raise ValueError("a sequence without all its items")
        merged: list[Any] = [None] * len(everywhere)
        for positions, (kind, _, items) in zip(places, parts, strict=True):
            found = [None] * len(positions) if kind == "null" else self._items(kind, items)
            for position, item in zip(positions.tolist(), found, strict=True):
                merged[position] = item
        return merged

    def _items(self, kind: str, items: Any) -> list[Any]:
        if kind in _NUMBERS:
            array = self.unpack(items)
            if array.ndim != 1 or array.dtype != _NUMBERS[kind]:
                raise ValueError("a sequence of numbers of another type")
            return list(array.tolist())
        if kind == "str":
            return self._texts(*items)
        if kind in _AS_TEXT:
            return list(map(_AS_TEXT[kind][2], self._texts(*items)))
        if kind.startswith("tuple"):
            return list(zip(*map(self._items_of, items), strict=True))
        if kind in self._names:
            columns = {name: self._items_of(column) for name, column in items.items()}
            names = list(columns)
            rows = zip(*columns.values(), strict=True)
            return [self._record(kind, dict(zip(names, row, strict=True))) for row in rows]
        if kind != "value":
            raise ValueError(f"unknown kind of items {str(kind)[:40]!r}")
        return [self.unpack(item) for item in items]

    def _texts(self, data: Any, lengths: Any) -> list[str]:
        data, lengths = self.unpack(data), self.unpack(lengths)
        if data.dtype != np.uint8 or lengths.dtype != np.int64 or data.ndim + lengths.ndim != 2:
            raise ValueError("texts of other types")
        if (lengths < 0).any() or (lengths > len(data)).any() or int(lengths.sum()) != len(data):
            raise ValueError("texts of other lengths")
        whole, ends = data.tobytes(), np.cumsum(lengths).tolist()
        return [whole[start:end].decode() for start, end in zip([0, *ends], ends, strict=False)]

    def _check_part(
        self, what: str, value: Any, kind: str, names: Sequence[str], sizes: dict[str, int]
    ) -> None:
        """Raise if a field of a record does not hold what it should, or has another size than its peers."""
        shape: tuple[int, ...] = ()
        if kind in _SCALARS:
            fits = type(value) in _SCALARS[kind]
        elif kind in self._names:
            fits = type(value) is self._names[kind]
        elif kind == "texts":
            shape = (len(value),)
            fits = isinstance(value, tuple) and all(isinstance(text, str) for text in value)
        else:
            shape = value.shape
            fits = value.dtype.kind in {"levels": "O", "integers": "i", "numbers": "biuf"}[kind]
        if not fits or len(shape) != len(names):
            raise ValueError(f"{what} is no {kind}")
        if any(sizes.setdefault(name, size) != size for name, size in zip(names, shape, strict=True)):
            raise ValueError(f"{what} is of another size")
        if kind == "levels":
            check_levels(what, value.tolist())


_CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {"list": list, "tuple": tuple, "levels": as_levels}


def check_levels(what: str, levels: list[Any]) -> None:
    """Raise if these cannot be the levels of one column."""
    # Numbers can be chosen so that all have the same hash, and a dictionary of them takes hours
    # (test_every_bomb_is_refused_within_two_seconds_and_200_mb).
    others = [level for level in levels if type(level) is not str and level is not None]
    if max(Counter(map(hash, others)).values(), default=0) > _MOST_ALIKE:
        raise ValueError(f"{what} holds too many levels with the same hash")
    if len(set(levels)) != len(levels) or any(map(is_null, others)):
        raise ValueError(f"{what} holds a level twice")


# Files of one record


def save_record(record: Any, path: str | os.PathLike[str], entry: str, records: Records) -> None:
    """Write a record, completely or not at all; ``entry`` is its name in the manifest."""
    packer = Packer(records)
    packed = packer.pack(record, f"A part of the {entry}")
    versions = dict.fromkeys(sorted(packer.records), 1)
    try:
        content = archive_of({"versions": versions, entry: packed}, packer.arrays)
    except (ValueError, RecursionError) as error:
        raise NotSavableError(f"Not all of the {entry} ({error})", record) from error
    replace_file(Path(path), content)


def load_record(path: str | os.PathLike[str], entry: str, kind: type[Kind], records: Records) -> Kind:
    """Read what `save_record` wrote; raise `EncoderFileError` for anything else.

    The record's method ``check`` raises if its parts do not fit together.
    """
    manifest, arrays = read_archive(path)
    if entry not in manifest:
        what = f"it holds an encoder, not {entry}" if "steps" in manifest else f"it holds no {entry}"
        raise EncoderFileError(path, f"{what}.", "load an encoder with sufrep.load(path).")
    try:
        found = _unpack_record(manifest, arrays, entry, records)
        if type(found) is not kind:
            raise ValueError(f"another record in the place of the {entry}")
        found.check()  # type: ignore[attr-defined]
    except EncoderFileError:
        raise
    except Exception as error:  # a crafted file can make constructors of records raise anything
        raise damaged(path, f"its contents do not fit together ({first_line(error)})") from error
    return found


def _unpack_record(manifest: Mapping[str, Any], arrays: list[Array], entry: str, records: Records) -> Any:
    versions = manifest["versions"]
    names = _by_name(records)
    for name, version in versions.items():
        if name not in names or type(version) is not int or version != 1:
            raise ValueError(f"a {name[:40]!r} of version {str(version)[:20]}; upgrade sufrep to read it")
    unpacker = Unpacker(arrays, versions, records)
    found = unpacker.unpack(manifest[entry])
    unpacker.finish()
    return found
