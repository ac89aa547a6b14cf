"""Encoders as files without code.

A file is a zip archive with two kinds of members:

``manifest.json``
    ``format`` ("sufrep encoder"), ``version`` of the format,
    ``encoder`` (a class of the registry), ``parameters``, ``fitted`` (the attributes that end in "_"),
    ``output`` (what ``set_output`` said) and ``checksums`` (SHA-256 of each array).
``0.npy``, ``1.npy``, …
    Arrays of numbers in numpy's format.

Values that JSON lacks are objects with one key that starts with "$": ``{"$array": 0}`` is member
``0.npy``, ``{"$float": "nan"}`` a number, ``{"$tuple": […]}``, ``{"$datetime": "…"}`` and so on. An encoder
inside an encoder is ``{"$encoder": {…}}`` with its ``encoder``, ``parameters``, ``fitted`` and ``output``.
Nothing in a file is executed when it is read.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import math
import zipfile
from dataclasses import fields, is_dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sufrep._atomic import replace_file
from sufrep.encoders._inputs import Covariate, Layout, OutputColumn
from sufrep.errors import EncoderFileError, NotSavableError
from sufrep.moments import GroupMoments
from sufrep.representation import Representation, as_levels
from sufrep.solvers.experts import ClassExperts, LinearExperts
from sufrep.solvers.local_effects import LevelKernel, LocalEffects
from sufrep.solvers.mixture import Mixture
from sufrep.solvers.regressions import Curve, NormalScores

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

FORMAT = "sufrep encoder"
VERSION = 1
_RECORDS = {
    cls.__name__: cls
    for cls in (
        *(Covariate, Layout, OutputColumn, GroupMoments, Representation),
        *(Mixture, NormalScores, LinearExperts, ClassExperts),
        *(Curve, LevelKernel, LocalEffects),
    )
}
_ISO = {cls.__name__: cls for cls in (datetime.datetime, datetime.date, datetime.time)}


def save_encoder(encoder: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted encoder to ``path``, completely or not at all."""
    arrays: list[bytes] = []
    manifest = {"format": FORMAT, "version": VERSION, **_pack_encoder(encoder, arrays)}
    manifest["checksums"] = [hashlib.sha256(data).hexdigest() for data in arrays]
    members = {"manifest.json": json.dumps(manifest, allow_nan=False).encode()}
    members |= {f"{number}.npy": data for number, data in enumerate(arrays)}
    replace_file(Path(path), _archive(members))


def load_encoder(path: str | os.PathLike[str], classes: Mapping[str, type]) -> Any:
    """Read an encoder whose class is among ``classes``."""
    manifest, arrays = _read(path)
    name = str(manifest.get("encoder"))
    if name not in classes:
        what = f"it holds a {name!r}, which this version does not know."
        raise EncoderFileError(path, what, "install the sufrep that wrote it.")
    try:
        return _unpack_encoder(manifest, arrays, classes)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _damaged(path, f"its contents do not fit together ({error})") from error


def _pack_encoder(encoder: Any, arrays: list[bytes]) -> dict[str, Any]:
    """The parameters and fitted attributes of an encoder as JSON."""
    # Sorted: the order in which attributes were set depends on earlier fits.
    fitted = {
        key: value for key, value in sorted(vars(encoder).items()) if key.endswith("_") and key[0] != "_"
    }
    return {
        "encoder": type(encoder).__name__,
        "parameters": {
            key: _pack(value, arrays, f"The parameter {key!r}")
            for key, value in encoder.get_params(deep=False).items()
        },
        "fitted": {key: _pack(value, arrays, f"The attribute {key!r}") for key, value in fitted.items()},
        "output": vars(encoder).get("_sklearn_output_config", {}),
    }


def _unpack_encoder(packed: Mapping[str, Any], arrays: list[Any], classes: Mapping[str, type]) -> Any:
    """Reverse `_pack_encoder`."""
    parameters, fitted = (
        {key: _unpack(value, arrays, classes) for key, value in packed[part].items()}
        for part in ("parameters", "fitted")
    )
    encoder: Any = classes[packed["encoder"]](**parameters)
    if not all(key.endswith("_") and key[0] != "_" for key in fitted):
        raise ValueError("attributes that no fit sets")
    encoder.__dict__.update(fitted)
    encoder.set_output(transform=packed["output"].get("transform"))
    check_is_fitted(encoder)
    return encoder


def _archive(members: Mapping[str, bytes]) -> bytes:
    """A zip archive; equal members make equal archives."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            # A fixed date makes equal encoders equal files.
            archive.writestr(zipfile.ZipInfo(member, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Any]]:
    """Open the archive and check all that can be checked before any object is built."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # zipfile and zlib raise many kinds for a damaged file
        raise _damaged(path, f"it is not an encoder file, or it is truncated ({error})") from error
    try:
        manifest = json.loads(members["manifest.json"])
        kind, version = manifest["format"], manifest["version"]
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, "it has no readable manifest") from error
    if kind != FORMAT:
        raise EncoderFileError(path, f"its format is {kind!r}.", "load files that encoder.save wrote.")
    if version != VERSION:
        raise EncoderFileError(
            path,
            f"it is of format version {version}; this sufrep reads version {VERSION}.",
            "upgrade sufrep, or save the encoder again with this version.",
        )
    checksums = manifest.get("checksums")
    if not isinstance(checksums, list):
        raise _damaged(path, "its manifest holds no checksums")
    return manifest, [_read_array(path, members, number, value) for number, value in enumerate(checksums)]


def _read_array(path: object, members: Mapping[str, bytes], number: int, checksum: object) -> Any:
    data = members.get(f"{number}.npy", b"")
    if hashlib.sha256(data).hexdigest() != checksum:
        raise _damaged(path, f"array {number} does not match its checksum")
    try:
        return np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise _damaged(path, f"array {number} holds no numbers ({error})") from error


def _damaged(path: object, what: str) -> EncoderFileError:
    return EncoderFileError(path, f"{what}.", "save the encoder again, or restore the file from a copy.")


def _pack(value: Any, arrays: list[bytes], what: str) -> Any:
    """Turn a value into JSON, arrays of numbers into members of the archive."""

    def pack(part: Any) -> Any:
        return _pack(part, arrays, what)

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, list):
        return [pack(part) for part in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"$dict": {key: pack(part) for key, part in value.items()}}
    if isinstance(value, tuple):
        return {"$tuple": [pack(part) for part in value]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return {"$objects": [pack(part) for part in value.tolist()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        buffer = io.BytesIO()
        np.save(buffer, value, allow_pickle=False)
        arrays.append(buffer.getvalue())
        return {"$array": len(arrays) - 1}
    if sparse.issparse(value):
        return {"$csr": [pack(getattr(value, part)) for part in ("data", "indices", "indptr", "shape")]}
    if type(value).__name__ in _RECORDS and is_dataclass(value):
        parts = {field.name: pack(getattr(value, field.name)) for field in fields(value) if field.init}
        return {"$record": [type(value).__name__, parts]}
    if hasattr(value, "representations_"):
        return {"$encoder": _pack_encoder(value, arrays)}
    return _pack_level(value, what)


def _pack_level(value: Any, what: str) -> Any:
    """Pack the less usual types of levels; pandas' nanoseconds have no place in Python's types."""
    if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
        raise NotSavableError(what, value)
    for name in ("datetime", "date", "time"):  # a datetime is a date too
        if isinstance(value, _ISO[name]):
            return {f"${name}": value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {"$seconds": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    raise NotSavableError(what, value)


def _unpack(value: Any, arrays: list[Any], classes: Mapping[str, type]) -> Any:
    """Reverse `_pack`."""

    def unpack(part: Any) -> Any:
        return _unpack(part, arrays, classes)

    if isinstance(value, list):
        return [unpack(part) for part in value]
    if not isinstance(value, dict):
        return value
    ((key, content),) = value.items()
    if key == "$array":
        return arrays[content]
    if key == "$dict":
        return {name: unpack(part) for name, part in content.items()}
    if key == "$record":
        name, parts = content
        return _RECORDS[name](**{field: unpack(part) for field, part in parts.items()})
    if key == "$csr":
        data, indices, indptr, shape = unpack(content)
        return sparse.csr_array((data, indices, indptr), shape=shape)
    if key == "$encoder":
        return _unpack_encoder(content, arrays, classes)
    if key == "$tuple":
        return tuple(unpack(content))
    if key == "$objects":
        return as_levels(unpack(content))
    return _unpack_level(key, content)


def _unpack_level(key: str, content: Any) -> Any:
    if key[1:] in _ISO:
        return _ISO[key[1:]].fromisoformat(content)
    if key == "$seconds":
        return datetime.timedelta(*content)
    if key == "$float":
        return float(content)
    if key == "$bytes":
        return bytes.fromhex(content)
    if key == "$decimal":
        return Decimal(content)
    raise ValueError(f"unknown kind of value {key}")
