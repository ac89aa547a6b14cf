"""Code that reads a table as a command did, for the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from sufrep._files import TableSource
    from sufrep.cli._encode import Roles

_READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".feather": "read_ipc",
    ".arrow": "read_ipc",
    ".ipc": "read_ipc",
}
_SEPARATORS = ("", ", separator=';'", r", separator='\t'", ", separator='|'")
_NULLS = ("", ", null_values=['NA']", ", null_values=['NA', 'N/A', 'n/a', 'null', 'NULL', 'None']")
# Tables of more rows are not read once more to see whether the code does what the command did.
_MOST_ROWS = 1_000_000


def loading_code(source: TableSource, roles: Roles, text: Sequence[str] = ()) -> str | None:
    """Lines that define X and y with polars; None for what polars alone does not read like that.

    Parameters
    ----------
    source : TableSource
    roles : Roles
    text : sequence of str
        Further columns that were read as text.
    """
    reader = _READERS.get(Path(source.where).suffix.lower())
    if reader is None or source.n_rows > _MOST_ROWS:
        return None
    rows = source.read()
    columns = list(dict.fromkeys((*roles.group, *text)))
    for table in _readings(reader, source.where, columns):
        code = "\n".join(["import polars as pl", "", f"table = {table}", *_parts(roles)])
        if _gives(code, rows, roles):
            return code
    return None


def _readings(reader: str, where: str, text: Sequence[str]) -> Iterator[str]:
    """Expressions that may read the table, the shorter ones first."""
    types = ", ".join(f"{name!r}: pl.String" for name in text)
    if reader != "read_csv":
        yield f"pl.{reader}({where!r}).cast({{{types}}})"
        whole = ", ".join(f"{name!r}: pl.Int64" for name in text)
        yield f"pl.{reader}({where!r}).cast({{{whole}}}).cast({{{types}}})"
        return
    given = f"{where!r}, schema_overrides={{{types}}}, infer_schema_length=None"
    for nulls in _NULLS:
        yield from (f"pl.read_csv({given}{separator}{nulls})" for separator in _SEPARATORS)


def _parts(roles: Roles) -> list[str]:
    if roles.covariates:
        first = f"X = table.select({[*roles.group, *roles.covariates]!r})"
    else:
        first = f"X = table.drop({[roles.target, *roles.drop]!r})"
    return [first, f"y = table[{roles.target!r}]"]


def _gives(code: str, rows: pl.DataFrame, roles: Roles) -> bool:
    """Whether the code, run as a reader of the report will run it, gives what the command had."""
    place: dict[str, Any] = {}
    try:
        exec(code, place)
    except Exception:  # whatever a reader meets in a file that is not for it
        return False
    X = rows.select(*roles.group, *roles.covariates) if roles.covariates else rows.drop(roles.target or ())
    y = rows[str(roles.target)]
    same = place["X"].schema == X.schema and place["y"].dtype == y.dtype
    return same and bool(place["X"].equals(X) and place["y"].equals(y))
