"""Where tables are: the names that users give, and the files that they stand for."""

from __future__ import annotations

import os
from difflib import get_close_matches
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from sufrep.errors import FileEndingError, TableContentError, TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".feather", ".arrow", ".ipc")
DATABASES = ("duckdb", "sqlite")
_SIDECARS = {"duckdb": (".wal", ".tmp"), "sqlite": ("-wal", "-shm", "-journal")}
_NAME = "check its name, and that you may read it."


def find_tables(given: Sequence[str]) -> list[str]:
    """The tables that names stand for: files, all files below folders, and all that match patterns.

    A name without a meaning is returned as it is: opening it raises an error that explains it. Files of a
    folder or a pattern are sorted by name. In folders, names that begin with a dot or an underscore are left
    out: other programs keep there what is not part of the table.

    Parameters
    ----------
    given : sequence of str
    """
    found = [name for one in given for name in _expand(one)]
    seen: dict[str, str] = {}
    for name in found:
        if len(found) > 1 and database_parts(name)[0]:
            what = f"is one of {len(found)} tables; only files can be read as one table."
            raise TableContentError(name, what, "name it alone.")
        path = os.path.realpath(name)
        if path in seen:
            raise TableContentError(name, "is read twice.", "name each file once.")
        seen[path] = name
    return found


def _expand(name: str) -> Iterator[str]:
    if database_parts(name)[0]:
        yield name
    elif os.path.isdir(name):
        yield from _files_below(name)
    elif has_pattern(name) and not os.path.exists(name):
        matches = sorted(glob(name, recursive=True))
        if not matches:
            what = f"No file matches {name!r}."
            raise TableNotFoundError(what, [], f"check the spelling; the folder is {os.getcwd()!r}.")
        for match in matches:
            yield from _files_below(match) if os.path.isdir(match) else [match]
    else:
        yield name


def _files_below(folder: str) -> list[str]:
    """All files of a folder and its folders."""

    def refuse(error: OSError) -> None:
        what = f"cannot be read: {error.strerror}."
        raise TableContentError(error.filename, what, "check that you may read the folder.") from error

    found = []
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [os.path.join(place, name) for name in names if not name.startswith((".", "_"))]
    if not found:
        raise TableContentError(folder, "is a folder without files.", "check the step that writes them.")
    return sorted(found)


def table_kind_of(path: Path) -> str:
    """Return "text", "parquet" or "ipc", by the ending of a file."""
    ending = table_ending(path)
    return "text" if ending in TEXT_ENDINGS else "parquet" if ending in PARQUET_ENDINGS else "ipc"


def table_files(source: str) -> list[Path]:
    """The file of a table, and the files in which a database keeps its latest changes; none need exist."""
    kind, name, _ = database_parts(source)
    return [Path(name + ending) for ending in ("", *_SIDECARS.get(kind, ()))]


def has_pattern(path: str) -> bool:
    """Whether the characters of a path can be a pattern for several files."""
    return any(character in path for character in "*?[")


def database_parts(where: str) -> tuple[str, str, str]:
    """The kind of a database, its file and its table; the first and the last are empty for other files."""
    kind, colon, rest = where.partition(":")
    if not colon or kind not in DATABASES:
        return "", where, ""
    file, _, table = rest.partition("#")
    return kind, file, table


def table_ending(path: Path) -> str:
    """The ending that tells the format, in lower case."""
    name = path.name.lower()
    known = (*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
    for ending in known:
        if name.endswith(ending):
            return ending
    hint = "rename the file, or save it as one of these."
    if name.endswith((".db", ".sqlite", ".sqlite3", ".duckdb")):
        kind = "duckdb" if name.endswith(".duckdb") else "sqlite"
        hint = f"name a database together with its table, as in {kind}:{path}#sales."
    raise FileEndingError(path, known, hint)


def existing_file(path: Path) -> Path:
    """The path; raise if there is no such file."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # a name that is too long, a circle of links, a null character
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise TableNotFoundError(f"The file {str(path)!r} cannot be opened: {reason}.", [], _NAME) from error
    if path.is_dir():
        raise TableContentError(str(path), "is a folder.", "name a file in it.")
    if not path.exists():
        folder = path.parent
        if not folder.is_dir():
            raise TableNotFoundError(f"There is no folder {str(folder)!r}.", [], "check the spelling.")
        names = [entry.name for entry in folder.iterdir() if entry.is_file()]
        near = [str(folder / name) for name in get_close_matches(path.name, names, n=2)]
        hint = "" if near else f"check the spelling; the folder is {str(folder.resolve())!r}."
        raise TableNotFoundError(f"There is no file {str(path)!r}.", near, hint)
    return path
