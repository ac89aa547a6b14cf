"""Tables written to files that appear complete or not at all."""

from __future__ import annotations

import gzip
import shutil
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sufrep._atomic import find_destination, replacing
from sufrep.errors import FileEndingError, NotWritableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    import polars as pl

SEPARATORS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow", ".ipc")
# The level of the program gzip; Python's is the slowest.
_GZIP_LEVEL = 6
WRITTEN = (*SEPARATORS, *PARQUET, *ARROW)


def written_ending(path: str | Path) -> str:
    """The ending that determines the format of a new table; a stream without one gets CSV."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending == ".gz":
        ending = "".join(path.suffixes[-2:]).lower()
    if ending in WRITTEN:
        return ending
    if find_destination(path).file is None:
        return ".csv"
    raise FileEndingError(path, WRITTEN, "choose one of these endings.")


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a frame to a file, in the format of its ending."""
    with TableWriter(path) as writer:
        writer.write(frame)


class TableWriter:
    """A file that is written in batches and appears under its name when it is complete.

    Until then everything is in a hidden folder next to it, ``.NAME.….part``, which is removed if an error
    ends the ``with`` block. An older file of the name stays until it is replaced; see :mod:`sufrep._atomic`.

    Parameters
    ----------
    path : str or Path
        Its ending is .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .pq, .feather, .arrow or .ipc.

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
        self._ending = written_ending(path)
        self._output = replacing(path)
        self._parts: list[Path] = []

    def __enter__(self) -> Self:
        self._whole = self._output.__enter__()
        return self

    def write(self, batch: pl.DataFrame) -> None:
        """Append rows; all batches have the same columns."""
        with self._explained():
            if self._ending in SEPARATORS:
                is_first = not self._whole.exists()
                with self._whole.open("ab") as file:
                    batch.write_csv(file, include_header=is_first, separator=SEPARATORS[self._ending])
            else:
                # Parquet files cannot be appended to; polars joins Arrow files at the speed of the disk.
                self._parts.append(self._whole.with_name(f"{len(self._parts)}.arrow"))
                batch.write_ipc(self._parts[-1])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._output.__exit__(kind, error, trace)
            return
        with ExitStack() as stack:
            stack.push(self._output)
            with self._explained():
                self._join()

    def _join(self) -> None:
        """Make one file of the batches."""
        import polars as pl

        if self._ending.endswith(".gz") and self._whole.exists():
            self._compress()
        if not self._parts:
            return
        rows = pl.scan_ipc(self._parts, glob=False)
        if self._ending in PARQUET:
            rows.sink_parquet(self._whole, engine="streaming")
        else:
            rows.sink_ipc(self._whole, engine="streaming")

    def _compress(self) -> None:
        """Replace the unfinished file by a compressed one; the same rows always give the same bytes."""
        compressed = self._whole.with_name("compressed")
        with (
            self._whole.open("rb") as source,
            compressed.open("wb") as file,
            gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as target,
        ):
            shutil.copyfileobj(source, target)
        compressed.replace(self._whole)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a type that the format cannot store, or a panic of polars, into an error of ours."""
        import polars as pl

        broken: Any = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
        try:
            yield
        except broken as error:
            what = f"{str(error).splitlines()[0]}."
            hint = "Parquet (.parquet) stores every type of column."
            raise NotWritableError(self.path, what, hint) from error
