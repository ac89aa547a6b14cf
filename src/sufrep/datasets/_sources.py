"""Where tables come from: a folder that the user names, or OpenML."""

from __future__ import annotations

import os
from dataclasses import dataclass
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sklearn.datasets import fetch_openml

from sufrep.datasets._parquet import ParquetTable, read_parquet
from sufrep.datasets._table import Table, as_text, read_csv
from sufrep.errors import DataNotFoundError, DownloadError, InvalidParameterError, MissingPandasError

if TYPE_CHECKING:
    from collections.abc import Iterable

Folder: TypeAlias = str | os.PathLike[str] | None
Place: TypeAlias = Literal["folder", "openml"]

# The environment variable that names the folder when no argument does.
VARIABLE = "SUFREP_DATA"


@dataclass(frozen=True, slots=True)
class Source:
    """The file of a data set, where it can be had in words, and its number on OpenML if it is there."""

    file: str
    origin: str
    openml: int | None = None


def open_table(source: Source, data_dir: Folder, place: Place) -> Table:
    """The table of a data set, as text, from where the user wants it."""
    if place == "folder":
        return read_csv(_path(source, data_dir), source.origin)
    if place != "openml":
        raise InvalidParameterError("source", place, "'folder' or 'openml'")
    if source.openml is None:
        raise InvalidParameterError(
            "source", place, f"'folder' for {source.file!r}, which OpenML does not have"
        )
    if data_dir is not None:
        raise InvalidParameterError("data_dir", data_dir, "for source='folder'; leave it out with 'openml'")
    return _fetched(source, source.openml)


def open_parquet(source: Source, data_dir: Folder) -> ParquetTable:
    """The table of a data set that is a Parquet file, from the user's folder."""
    return read_parquet(_path(source, data_dir), source.origin)


def _path(source: Source, data_dir: Folder) -> Path:
    get = f"{source.file!r} can be had from {source.origin}"
    named = os.environ.get(VARIABLE) if data_dir is None else data_dir
    if not named:
        raise DataNotFoundError(
            f"No folder is named in which {source.file!r} could be: data_dir is {data_dir!r} and the "
            f"environment variable {VARIABLE} is not set.",
            f"use data_dir='path/to/folder', or set {VARIABLE}. {get}.",
        )
    folder = Path(named).expanduser()
    via = f"{VARIABLE} names" if data_dir is None else "data_dir names"
    if not folder.is_dir():
        hint = f"make the folder and put {source.file!r} into it. {get}."
        raise DataNotFoundError(f"{via} {str(folder)!r}, which is not a folder.", hint)
    path = folder / source.file
    if not path.is_file():
        tables = sorted(entry.name for entry in folder.iterdir() if entry.suffix in (".csv", ".parquet"))
        shown = ", ".join(tables[:10]) + ", …" * (len(tables) > 10) or "none"
        what = f"{via} {str(folder)!r}, which does not hold {source.file!r}; its data files: {shown}."
        raise DataNotFoundError(what, f"{get}; save it there under this name.")
    return path


def _fetched(source: Source, data_id: int) -> Table:
    if find_spec("pandas") is None:
        raise MissingPandasError("source='openml'")
    try:
        # No target column: OpenML's idea of the target plays no part, and the columns keep their order.
        frame: Any = fetch_openml(data_id=data_id, target_column=None, as_frame=True).frame
    except (OSError, HTTPException, ValueError) as error:  # scikit-learn's OpenMLError is a ValueError
        raise DownloadError(data_id, f"{type(error).__name__}: {error}", source.file) from error
    values = {str(name): _texts(frame[name].tolist(), frame[name].isna()) for name in frame.columns}
    where = f"OpenML's data set {data_id}"
    return Table(where, f"{where}, or {source.origin}", values, list(range(1, len(frame) + 1)))


def _texts(column: Iterable[Any], null: Iterable[bool]) -> list[str | None]:
    return [None if is_null else as_text(value) for value, is_null in zip(column, null, strict=True)]
