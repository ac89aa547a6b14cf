"""The container of saved encoders: a zip archive in which the members determine every byte.

Files come from strangers, so a reader must not trust a size that a file declares. Nothing is compressed: what
a file makes us read is never larger than the file. And for given members there is one archive: sizes, order,
flags and the directory at the end are compared with those that `archive_of` writes. That refuses, without a
rule for each, members that overlap, occur twice, are encrypted or compressed, lie outside, or follow the end.
The manifest is JSON in the one form that `json_of` writes, which likewise refuses repeated keys, NaN, numbers
out of range and text that is not UTF-8. ``docs/reference/file-format.md`` describes the members.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep.errors import EncoderFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from io import BufferedReader

    from sufrep._arrays import Array

FORMAT = "sufrep"
VERSION = 1
MANIFEST = "manifest.json"
# Kinds of numbers that arrays may hold, in the byte order of nearly all machines.
DTYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
# Limits of the manifest. Long sequences are arrays, so that even large encoders stay far below them. Python
# needs up to 200 bytes for a value of 3 bytes (test_every_bomb_is_refused_within_two_seconds_and_200_mb).
MOST_BYTES = 1 << 24
MOST_VALUES = 250_000
DEEPEST = 100
# The largest number that a zip archive stores without an extension.
MOST_FILE_BYTES = (1 << 32) - 2

_LOCAL = struct.Struct("<4s5H3I2H")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
# 1980-01-01, the first date of the format: equal encoders make equal files.
_DATE = 0x21


# Writing


def archive_of(manifest: Mapping[str, Any], arrays: Sequence[Array]) -> bytes:
    """The file that holds a manifest and arrays.

    Raises `ValueError` for a manifest beyond the limits or an archive beyond 4 GiB, which no reader accepts.
    """
    described = [_described(array) for array in arrays]
    whole = {"format": FORMAT, "version": VERSION, **manifest, "arrays": described}
    _check_depth(whole)
    text = json_of(whole)
    _check_size(text)
    index = _Index()
    parts = []
    for name, data in [(MANIFEST, text), *((_name(j), _bytes(array)) for j, array in enumerate(arrays))]:
        parts += [index.add(name, zlib.crc32(data), len(data)), data]
    if index.end > MOST_FILE_BYTES:
        raise ValueError("it needs more than 4 GiB")
    return b"".join([*parts, index.directory()])


def json_of(value: Any) -> bytes:
    """The one form of a value as JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _described(array: Array) -> dict[str, Any]:
    return {
        "dtype": array.dtype.newbyteorder("<").str,
        "shape": list(array.shape),
        # Products of matrices are rounded differently in the other order.
        "order": _order(array),
        "sha256": hashlib.sha256(_bytes(array)).hexdigest(),
    }


def _order(array: Array) -> str:
    return "C" if array.flags.c_contiguous or not array.flags.f_contiguous else "F"


def _bytes(array: Array) -> bytes:
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes(_order(array))  # type: ignore[arg-type]


def _name(number: int) -> str:
    return f"{number}.bin"


@dataclass(slots=True)
class _Index:
    """The members so far, and the headers that a zip archive of them has."""

    end: int = 0
    entries: list[bytes] = field(default_factory=list)

    def add(self, name: str, crc: int, size: int) -> bytes:
        """Append a member; return its header."""
        shared = (20, 0, 0, 0, _DATE, crc, size, size, len(name), 0)
        place = (0, 0, 0, 0, min(self.end, MOST_FILE_BYTES))
        self.entries.append(_ENTRY.pack(b"PK\x01\x02", 20, *shared, *place) + name.encode())
        header = _LOCAL.pack(b"PK\x03\x04", *shared) + name.encode()
        self.end += len(header) + size
        return header

    def directory(self) -> bytes:
        """The end of the archive."""
        entries, n = b"".join(self.entries), len(self.entries)
        return entries + _END.pack(b"PK\x05\x06", 0, 0, n, n, len(entries), self.end, 0)


# Reading


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Array]]:
    """Read the manifest and the arrays of a file; raise `EncoderFileError` for anything else."""
    with _opened(path) as reader:
        manifest, described = _read_manifest(path, reader)
        arrays = [reader.array(number, entry) for number, entry in enumerate(described)]
        reader.finish()
    return manifest, arrays


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the manifest alone; the file must be as long as its arrays need, but these are not read."""
    with _opened(path) as reader:
        manifest, described = _read_manifest(path, reader)
        reader.check_length(described)
    return manifest


def _read_manifest(path: object, reader: _Reader) -> tuple[dict[str, Any], list[Any]]:
    """The manifest, and the descriptions of the arrays that follow it."""
    manifest = _parse(reader.read(MANIFEST, MOST_BYTES))
    _check_version(path, manifest)
    described = manifest.pop("arrays")
    if not isinstance(described, list):
        raise ValueError("its manifest describes no arrays")
    return manifest, described


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[_Reader]:
    """The members of a file; whatever is wrong with them is an `EncoderFileError`."""
    with open(path, "rb") as file, _explained(path):
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a regular file")
        yield _Reader(file, about.st_size)


def damaged(path: object, what: str) -> EncoderFileError:
    """The error for a file with damaged contents."""
    return EncoderFileError(path, f"{what}.", "save it again, or restore the file from a copy.")


@contextmanager
def _explained(path: object) -> Iterator[None]:
    try:
        yield
    except EncoderFileError:
        raise
    except Exception as error:  # json, struct and numpy raise many kinds for a crafted file
        what = f"it is not a file of sufrep, or it is truncated or damaged ({first_line(error)})"
        raise damaged(path, what) from error


def first_line(error: Exception) -> str:
    """What went wrong, in a few printable words even if the file decides on the text."""
    line = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in line)


def _parse(text: bytes) -> dict[str, Any]:
    _check_size(text)
    manifest = json.loads(text)
    _check_depth(manifest)
    if not isinstance(manifest, dict) or json_of(manifest) != text:
        raise ValueError("its manifest is not as sufrep writes it")
    return manifest


def _check_depth(value: Any) -> None:
    layer, depth = [value], 0
    while layer:
        depth += 1
        if depth > DEEPEST:
            raise ValueError("its manifest is nested too deeply")
        nested = [node for node in layer if isinstance(node, (list, dict))]
        layer = [part for node in nested for part in (node.values() if isinstance(node, dict) else node)]


def _check_size(text: bytes) -> None:
    if len(text) > MOST_BYTES or sum(map(text.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ValueError("its manifest is too large")


def _check_version(path: object, manifest: Mapping[str, Any]) -> None:
    kind, version = manifest.get("format"), manifest.get("version")
    if kind != FORMAT:
        shown = str(kind)[:40]
        raise EncoderFileError(path, f"its format is {shown!r}.", "load files that encoder.save wrote.")
    if version != VERSION or isinstance(version, bool):
        raise EncoderFileError(
            path,
            f"it is of format version {str(version)[:20]}; this sufrep reads version {VERSION}.",
            "upgrade sufrep, or save the encoder again with this version.",
        )


class _Reader:
    """Reads members in their order, each only after its size was compared with that of the file."""

    def __init__(self, file: BufferedReader, size: int) -> None:
        self._file, self._size, self._index = file, size, _Index()

    def read(self, name: str, most: int) -> bytes:
        """The contents of the next member."""
        data = self._file.read(self._open(name, most))
        self._close(name, data)
        return data

    def array(self, number: int, described: Any) -> Array:
        """The next array, which is as large as it is described, or refused."""
        dtype, shape, order, digest = (described[key] for key in ("dtype", "shape", "order", "sha256"))
        size = self._size_of(number, dtype, shape)
        if order not in ("C", "F") or self._open(_name(number), size) != size:
            raise ValueError(f"array {number} is not as large as it is described")
        data = bytearray(size)
        self._file.readinto(data)
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"array {number} does not match its checksum")
        self._close(_name(number), data)
        # numpy takes it for granted that truth values are 0 or 1.
        if dtype == "|b1" and max(data, default=0) > 1:
            raise ValueError(f"array {number} holds no truth values")
        return np.ndarray(shape, dtype, data, order=order)

    def check_length(self, described: Sequence[Any]) -> None:
        """Raise if the file has another length than these arrays need."""
        for number, entry in enumerate(described):
            self._index.add(_name(number), 0, self._size_of(number, entry["dtype"], entry["shape"]))
        if self._index.end + len(self._index.directory()) != self._size:
            raise ValueError("it has another length than its arrays need")

    def _size_of(self, number: int, dtype: Any, shape: Any) -> int:
        """The number of bytes of an array, which are in the file."""
        if dtype not in DTYPES:
            raise ValueError(f"array {number} holds no numbers")
        if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"array {number} has no shape")
        # Python's integers do not overflow, unlike numpy's.
        size = math.prod(shape) * np.dtype(dtype).itemsize if len(shape) <= 4 else self._size + 1
        if max(shape, default=0) > self._size or size > self._size:
            raise ValueError(f"array {number} is not as large as it is described")
        return size

    def finish(self) -> None:
        """Compare what follows the members with what has to."""
        expected = self._index.directory()
        if self._file.read(len(expected) + 1) != expected:
            raise ValueError("its directory does not fit its members")

    def _open(self, name: str, most: int) -> int:
        """The size of the next member, which must be called ``name``."""
        self._header = self._file.read(_LOCAL.size + len(name))
        if len(self._header) < _LOCAL.size:
            raise ValueError("it ends too early")
        *_, size, _, _ = _LOCAL.unpack(self._header[: _LOCAL.size])
        if not self._header.endswith(name.encode()):
            raise ValueError(f"it has no member {name!r}")
        if size > most or size > self._size - self._file.tell():
            raise ValueError(f"its member {name!r} has an impossible size")
        return int(size)

    def _close(self, name: str, data: bytes | bytearray) -> None:
        if self._index.add(name, zlib.crc32(data), len(data)) != self._header:
            raise ValueError(f"its member {name!r} is damaged")
