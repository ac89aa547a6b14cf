"""Where the raw tables come from (a folder of the user, or OpenML), and how their columns are read.

Polars reads the files, or pandas where polars is not installed, and finds the types of CSV columns. Only the
group column of a CSV file is always text, so that "01234" stays "01234". CSV files may be compressed with
gzip.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from difflib import get_close_matches
from http.client import HTTPException
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import narwhals as nw
import numpy as np

from sufrep.errors import (
    DataContentError,
    DataNotFoundError,
    DownloadError,
    InvalidParameterError,
    MissingDependencyError,
    MissingPandasError,
    listed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sufrep._arrays import Array, Floats

Folder: TypeAlias = str | os.PathLike[str] | None
Source: TypeAlias = Literal["folder", "openml"]

# The environment variable that names the folder when no argument does.
VARIABLE = "SUFREP_DATA"
# Spellings of a missing value in CSV files. The Kaggle part of Ames also writes "NA" for 'has none'.
_MISSING = ["", "NA"]
# Text that is a number: 5379.0; and text with percent signs and thousands separators: 5,379.0 and 54.77%.
NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"
FIGURE = r"^[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d*)?%?$"


@dataclass(frozen=True, slots=True)
class DataFile:
    """The file of a data set.

    Attributes
    ----------
    name : str
        Its path inside the folder of the data.
    origin : str
        Description of where to get it.
    group : str
        The group column.
    openml : int or None
        Number of the data set on OpenML, if it is there.
    """

    name: str
    origin: str
    group: str
    openml: int | None = None


def open_raw_table(file: DataFile, data_dir: Folder, source: Source = "folder") -> RawTable:
    """The raw table of a data set, from the user's folder or from OpenML."""
    if source == "folder":
        return _read(find_file(file, data_dir), file)
    if source != "openml":
        raise InvalidParameterError("source", source, "'folder' or 'openml'")
    if file.openml is None:
        raise InvalidParameterError(
            "source", source, f"'folder' for {file.name!r}, which OpenML does not have"
        )
    if data_dir is not None:
        raise InvalidParameterError("data_dir", data_dir, "None with source='openml'")
    return _fetch(file, file.openml)


@dataclass(frozen=True, slots=True, eq=False)
class RawTable:
    """The columns of a file or of an OpenML data set, not yet prepared.

    Null and NaN are missing values.

    Attributes
    ----------
    where : str
        Name of the table in error messages.
    origin : str
        Description of where to get the data.
    frame : narwhals.DataFrame, n rows
        The columns, in the order of the file.
    """

    where: str
    origin: str
    frame: nw.DataFrame[Any]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self.frame.columns

    def require(self, names: Collection[str]) -> None:
        """Raise if one of the columns is missing."""
        missing = [name for name in names if name not in self.names]
        if missing:
            spare = [name for name in self.names if name not in names]
            hint = _renaming(missing, spare) or f"the columns are {listed(self.names)}."
            what = f"does not have the column(s) {', '.join(map(repr, missing))}."
            self.fail(what, f"{hint} The file is from {self.origin}.")

    def filter(self, *conditions: nw.Expr) -> RawTable:
        """The rows that meet all conditions; raise if there are none."""
        kept = self.frame.filter(*conditions)
        if not len(kept):
            what = f"has {len(self.frame)} row(s), none of which can be used."
            self.fail(what, f"get it from {self.origin}.")
        return replace(self, frame=kept)

    def labels(self, name: str, *, missing: str | None = None) -> Array:
        """A column as text, shape (n,), and `missing` for nulls, which are an error otherwise."""
        unknown = self._is_missing(name).to_numpy()
        if missing is None and unknown.any():
            self._fail_at(name, int(unknown.argmax()), "nothing", "a level")
        labels = np.full(len(self.frame), missing, dtype=object)
        labels[~unknown] = self._texts(name).to_list()
        return labels.astype(np.str_)

    def codes(self, name: str, *, missing: float) -> Floats:
        """A column of text as 1, 2, … in sorted order of its levels, and `missing` for nulls, shape (n,)."""
        texts = self._texts(name).to_list()
        code = {level: float(i) for i, level in enumerate(sorted(set(texts)), start=1)}
        codes = np.full(len(self.frame), missing)
        codes[~self._is_missing(name).to_numpy()] = [code[text] for text in texts]
        return codes

    def classes(self, name: str) -> tuple[tuple[str, ...], Floats]:
        """A column of classes: their names, sorted, and the position of each row's class, shape (n,)."""
        found, positions = np.unique(self.labels(name), return_inverse=True)
        if len(found) < 2:
            self.fail(f"holds only {str(found[0])!r} in column {name!r}; expected at least two classes.")
        return tuple(found.tolist()), positions.astype(float)

    def is_numeric(self, name: str) -> bool:
        """Whether all values of the column that are not missing are numbers."""
        return self._is_typed(name) or bool(self._texts(name).str.contains(NUMBER).all())

    def numbers(self, name: str, *, missing: float | None = None, pattern: str = NUMBER) -> Floats:
        """A column of finite numbers, shape (n,).

        Parameters
        ----------
        name : str
        missing : float, optional
            Replaces missing values, which are an error otherwise.
        pattern : str, optional
            Regular expression that text must match to be a number: `NUMBER` or `FIGURE`.
        """
        known = ~self._is_missing(name)
        column = self.frame[name].filter(known) if self._is_typed(name) else self._figures(name, pattern)
        values = np.full(len(self.frame), math.nan)
        values[known.to_numpy()] = column.cast(nw.Float64).to_numpy()
        wrong = np.isinf(values) if missing is not None else ~np.isfinite(values)
        if wrong.any():
            i = int(wrong.argmax())
            self._fail_at(name, i, "nothing" if np.isnan(values[i]) else repr(values[i].item()), "a number")
        return values if missing is None else np.where(np.isnan(values), missing, values)

    def _figures(self, name: str, pattern: str) -> nw.Series[Any]:
        """The values of a text column that are not missing, without percent signs and commas."""
        texts = self._texts(name)
        wrong = ~texts.str.contains(pattern).to_numpy()
        if wrong.any():
            i = int(wrong.argmax())
            row = np.flatnonzero(~self._is_missing(name).to_numpy())[i]
            self._fail_at(name, int(row), repr(texts[i]), "a number")
        return texts.str.replace_all("[,%]", "")

    def _texts(self, name: str) -> nw.Series[Any]:
        """The values that are not missing, as text; 1001 and 1001.0 are "1001"."""
        column = self.frame[name].filter(~self._is_missing(name))
        if column.dtype.is_nested():
            self.fail(f"holds values of type {column.dtype} in column {name!r}; expected text.")
        # A zip code that arrives as 98178.0 is the level "98178", as in the file
        # (test_zip_codes_of_openml_are_text_as_in_the_file).
        if column.dtype.is_float() and (column == column.round()).all():
            column = column.cast(nw.Int64)
        return column.cast(nw.String)

    def _is_missing(self, name: str) -> nw.Series[Any]:
        column = self.frame[name]
        return column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()

    def fail(self, what: str, hint: str = "") -> NoReturn:
        """Raise; by default the hint is to download the file again."""
        raise DataContentError(self.where, what, hint or f"download the file again from {self.origin}.")

    def _is_typed(self, name: str) -> bool:
        dtype = self.frame[name].dtype
        return dtype.is_numeric() or dtype == nw.Boolean

    def _fail_at(self, name: str, i: int, found: str, expected: str) -> NoReturn:
        self.fail(
            f"holds {found} in column {name!r}, row {i + 1}; expected {expected}.",
            f"correct or remove the row, or download the file again from {self.origin}.",
        )


def find_file(file: DataFile, data_dir: Folder) -> Path:
    """The path of a file in the user's folder; raise if it is not there."""
    get = f"{file.name!r} is available from {file.origin}"
    named = os.environ.get(VARIABLE) if data_dir is None else data_dir
    if not named:
        raise DataNotFoundError(
            f"No folder is set for {file.name!r}: data_dir is {data_dir!r} and the environment variable "
            f"{VARIABLE} is not set.",
            f"use data_dir='path/to/folder', or set {VARIABLE}. {get}.",
        )
    folder = Path(named).expanduser()
    via = f"{VARIABLE} is" if data_dir is None else "data_dir is"
    if not folder.is_dir():
        hint = f"create the folder and put {file.name!r} into it. {get}."
        raise DataNotFoundError(f"{via} {str(folder)!r}, which is not a folder.", hint)
    path = folder / file.name
    if not path.is_file():
        # Only where the file should be: a folder of data may hold other folders.
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        tables = sorted(entry.name for entry in beside if _kind(entry) in (".csv", ".parquet"))
        shown = listed(tables, quote=False) or "none"
        what = f"{via} {str(folder)!r}, which does not contain {file.name!r}; its data files: {shown}."
        raise DataNotFoundError(what, f"{get}; save it there under this name.")
    return path


def _read(path: Path, file: DataFile) -> RawTable:
    """Read a file with polars, or with pandas where polars is not installed."""
    library = next(filter(find_spec, ("polars", "pandas")), None)
    if library is None:
        raise MissingDependencyError("polars", f"Reading {path.name!r}", "cli")
    try:
        frame = _READERS[library, _kind(path)](import_module(library), path, file.group)
    except ImportError as error:  # pandas reads Parquet files through a further package
        raise MissingDependencyError("polars", f"Reading {path.name!r}", "cli") from error
    except Exception as error:  # the errors of polars and pandas have no other base in common
        what = f"cannot be read by {library}: {str(error).rstrip('.')}."
        raise DataContentError(repr(str(path)), what, f"download it again from {file.origin}.") from error
    table = RawTable(repr(str(path)), file.origin, nw.from_native(frame, eager_only=True))
    _check(table)
    return table


def _kind(path: Path) -> str:
    """The suffix of a file without that of its compression, which polars and pandas find out themselves."""
    return Path(path.name.removesuffix(".gz")).suffix


# Brackets in the name of a folder are not a pattern (test_a_folder_may_have_brackets).
_READERS: dict[tuple[str, str], Callable[[Any, Path, str], Any]] = {
    ("polars", ".csv"): lambda pl, path, group: pl.read_csv(
        path,
        schema_overrides={group: pl.String},
        infer_schema_length=None,
        null_values=_MISSING,
        glob=False,
    ),
    ("polars", ".parquet"): lambda pl, path, _: pl.read_parquet(path, glob=False),
    ("pandas", ".csv"): lambda pd, path, group: pd.read_csv(
        path,
        dtype={group: str},
        keep_default_na=False,
        na_values=_MISSING,
        encoding="utf-8-sig",
        index_col=False,
        low_memory=False,
    ),
    ("pandas", ".parquet"): lambda pd, path, _: pd.read_parquet(path),
}


def _check(table: RawTable) -> None:
    """Raise if there are no rows, or a column without a name, which would become a covariate."""
    if not len(table.frame):
        table.fail("has no rows.")
    for j, name in enumerate(table.names, start=1):
        if not name.strip() or name.startswith("Unnamed: "):
            hint = "R writes row numbers without a name; use row.names = FALSE, or name the column."
            table.fail(f"has no name for its column {j}.", hint)


def _fetch(file: DataFile, data_id: int) -> RawTable:
    if find_spec("pandas") is None:
        raise MissingPandasError("source='openml'")
    from sklearn.datasets import fetch_openml

    try:
        # No target column: OpenML's choice of the target is not ours, and the columns keep their order.
        frame = fetch_openml(data_id=data_id, target_column=None, as_frame=True).frame
    except (OSError, HTTPException, ValueError) as error:  # scikit-learn's OpenMLError is a ValueError
        raise DownloadError(data_id, f"{type(error).__name__}: {error}", file.name) from error
    where = f"OpenML's data set {data_id}"
    return RawTable(where, f"{where}, or {file.origin}", nw.from_native(frame, eager_only=True))


def _renaming(missing: list[str], spare: list[str]) -> str:
    # 'Pool_QC', 'Pool QC' and 'poolqc' are close to 'PoolQC'.
    plain = {_plain(name): name for name in spare}
    found = {name: get_close_matches(_plain(name), plain, n=1, cutoff=0.8) for name in missing}
    renamed = [f"{plain[near[0]]!r} to {name!r}" for name, near in found.items() if near]
    return f"rename {', '.join(renamed)}." if renamed else ""


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
