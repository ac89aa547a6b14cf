"""Files that are not there, or that do not hold what they should."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from sufrep.errors._base import SufrepError

if TYPE_CHECKING:
    from collections.abc import Sequence


class EncoderFileError(SufrepError, ValueError):
    """A file does not hold an encoder that can be read."""

    def __init__(self, path: object, what: str, hint: str) -> None:
        super().__init__(f"Cannot read {str(path)!r}: {what}\nHint: {hint}")


class NotSavableError(SufrepError, TypeError):
    """An encoder holds something that has no place in a file without code."""

    def __init__(self, what: str, value: object) -> None:
        super().__init__(
            f"{what} is {value!r} (a {type(value).__name__}), which cannot be saved without pickle.\n"
            "Hint: use plain values (numbers, text, lists), or pickle the encoder if you trust its readers."
        )


class StoreError(SufrepError, OSError):
    """Results of experiments cannot be stored, or a store cannot be read."""

    def __init__(self, path: object, what: str, hint: str) -> None:
        super().__init__(f"The store {str(path)!r} {what}.\nHint: {hint}")


class DataNotFoundError(SufrepError, FileNotFoundError):
    """The folder or the file of a data set is not there, or no folder is named."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\nHint: {hint}")


class DataContentError(SufrepError, ValueError):
    """The table of a data set does not hold what its preparation expects."""

    def __init__(self, where: str, what: str, hint: str) -> None:
        super().__init__(f"{where} {what}\nHint: {hint}")


class DownloadError(SufrepError, ConnectionError):
    """A data set cannot be fetched from OpenML."""

    def __init__(self, data_id: int, reason: object, file: str) -> None:
        super().__init__(
            f"Data set {data_id} could not be fetched from OpenML: {reason}.\n"
            f"Hint: look at the connection, or save {file!r} in a folder and name it with data_dir."
        )


class TableNotFoundError(SufrepError, FileNotFoundError):
    """A file of rows, or a table of a data base, is not there."""

    def __init__(self, what: str, near: Sequence[str], hint: str) -> None:
        meant = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
        super().__init__(f"{what}\nHint: {' '.join(filter(None, (meant, hint)))}")


class TableContentError(SufrepError, ValueError):
    """A file or a data base does not hold a table that can be read."""

    def __init__(self, where: str, what: str, hint: str) -> None:
        super().__init__(f"{where!r} {what}\nHint: {hint}")


class TableColumnError(SufrepError, ValueError):
    """Columns are named that a table does not have."""

    def __init__(self, where: str, missing: Sequence[str], names: Sequence[str]) -> None:
        near = {name: get_close_matches(name, names, n=1) for name in missing}
        found = [f"{other[0]!r} for {name!r}" for name, other in near.items() if other]
        listed = ", ".join(map(repr, names[:10])) + ", …" * (len(names) > 10)
        hint = f"did you mean {', '.join(found)}?" if found else f"the columns are {listed}."
        super().__init__(f"{where!r} has no column {', '.join(map(repr, missing))}.\nHint: {hint}")


class FileEndingError(SufrepError, ValueError):
    """The name of a file does not say what is in it, or says something that cannot be had."""

    def __init__(self, path: object, known: Sequence[str], hint: str) -> None:
        super().__init__(
            f"The ending of {str(path)!r} is none of {', '.join(known)}, by which the format is known.\n"
            f"Hint: {hint}"
        )


class NotWritableError(SufrepError, OSError):
    """A file cannot be written where it shall be."""

    def __init__(self, path: object, what: str, hint: str) -> None:
        super().__init__(f"Cannot write {str(path)!r}: {what}\nHint: {hint}")
