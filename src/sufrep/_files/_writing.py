"""Tables written to files that appear complete or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sufrep.errors import FileEndingError, NotWritableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    import polars as pl

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_ARROW = (".feather", ".arrow", ".ipc")
WRITTEN = (*_SEPARATORS, *_PARQUET, *_ARROW)


def check_writable(path: str | Path) -> None:
    """Raise if a table cannot be written to ``path``, so that a long computation need not be lost."""
    path = Path(path)
    if path.suffix.lower() not in WRITTEN:
        raise FileEndingError(path, WRITTEN, "choose one of these endings.")
    check_path(path)


def check_path(path: str | Path) -> None:
    """Raise if no file can be written to ``path``."""
    path = Path(path)
    if path.is_dir():
        raise NotWritableError(path, "it is a folder.", "name a file in it.")
    if not path.parent.is_dir():
        what = f"there is no folder {str(path.parent)!r}."
        raise NotWritableError(path, what, "create it first, or check the spelling.")
    probe = _hidden(path)
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        what = f"{error.strerror or error}."
        raise NotWritableError(path, what, "choose a folder in which you may write files.") from error


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a frame to a file, in the format of its ending."""
    with TableWriter(path) as writer:
        writer.write(frame)


class TableWriter:
    """A file that is written in batches and appears under its name when it is complete.

    Until then everything is in a hidden folder next to it, ``.NAME.….part``, which is removed if an error
    ends the ``with`` block. An older file of the name stays until it is replaced.

    Parameters
    ----------
    path : str or Path
        Its ending is .csv, .tsv, .parquet, .pq, .feather, .arrow or .ipc.

    Examples
    --------
    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TableWriter(f"{folder}/numbers.csv") as writer:
    ...         writer.write(pl.DataFrame({"a": [1, 2]}))
    ...         writer.write(pl.DataFrame({"a": [3]}))
    ...     pl.read_csv(f"{folder}/numbers.csv")["a"].to_list()
    [1, 2, 3]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._ending = self.path.suffix.lower()
        self._folder = _hidden(self.path)
        self._parts: list[Path] = []

    def __enter__(self) -> Self:
        check_writable(self.path)
        self._folder.mkdir()
        return self

    def write(self, batch: pl.DataFrame) -> None:
        """Append rows; all batches have the same columns."""
        with self._explained():
            if self._ending in _SEPARATORS:
                self._append_text(batch)
            else:
                # Parquet files cannot be appended to; polars joins Arrow files at the speed of the disk.
                self._parts.append(self._folder / f"{len(self._parts)}.arrow")
                batch.write_ipc(self._parts[-1])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                with self._explained():
                    self._finish()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _append_text(self, batch: pl.DataFrame) -> None:
        first = not self._parts
        if first:
            self._parts.append(self._folder / "rows")
        with self._parts[0].open("ab") as file:
            batch.write_csv(file, include_header=first, separator=_SEPARATORS[self._ending])

    def _finish(self) -> None:
        import polars as pl

        if not self._parts:
            return
        whole = self._parts[0]
        if self._ending not in _SEPARATORS:
            rows, whole = pl.scan_ipc(self._parts, glob=False), self._folder / "whole"
            if self._ending in _PARQUET:
                rows.sink_parquet(whole, engine="streaming")
            else:
                rows.sink_ipc(whole, engine="streaming")
        with whole.open("rb+") as file:
            os.fsync(file.fileno())
        whole.replace(self.path)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a full disk, or a type that the format cannot store, into an error of ours."""
        import polars as pl

        try:
            yield
        except pl.exceptions.PolarsError as error:
            what = f"{str(error).splitlines()[0]}."
            raise NotWritableError(
                self.path, what, "Parquet (.parquet) stores every type of column."
            ) from error
        except OSError as error:
            raise NotWritableError(self.path, f"{error.strerror or error}.", "check the disk.") from error


def _hidden(path: Path) -> Path:
    """A name next to the path that nobody else uses."""
    return path.parent / f".{path.name}.{secrets.token_hex(4)}.part"
