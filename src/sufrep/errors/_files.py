"""Files that are not there, or that do not hold what they should."""

from __future__ import annotations

from sufrep.errors._base import SufrepError


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
