"""``sufrep apply``: new rows through an encoder that was saved."""

from __future__ import annotations

import warnings
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sufrep.cli._encode import DropOption, TableArgument, TextOption, with_new_columns
from sufrep.cli._messages import tell, tell_notes
from sufrep.cli._progress import progress

if TYPE_CHECKING:
    import polars as pl

    from sufrep._arrays import Mask
    from sufrep.encoders._base import GroupEncoder

# Rows that are held in memory at a time.
_BATCH = 50_000

EncoderArgument = Annotated[
    Path, typer.Argument(metavar="ENCODER", help="A file that --save wrote.", show_default=False)
]


def apply(
    encoder: EncoderArgument,
    table: TableArgument,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            help="File of the new table: .csv, .tsv, .parquet, .feather or .arrow.",
            show_default=False,
        ),
    ],
    drop: DropOption = [],
    text: TextOption = [],
) -> None:
    """Add the columns of a saved encoder to new rows.

    The new table has all columns of the old one in their order, and then the new ones. Levels that the
    encoder never saw get what its `unseen` says, as a rule the values of an average level. Rows are read in
    batches, so that the table may be larger than the memory.

    Example: sufrep apply zip.sufrep new.csv --out new.parquet
    """
    from sufrep._files import TableWriter, check_writable, open_table

    fitted = load_encoder(encoder)
    needed = needed_columns(encoder, fitted)
    check_writable(out)
    left_out = [name for name in drop if name not in needed]
    source = open_table(table, text=(*text_groups(fitted), *text), drop=left_out)
    source.require(needed)
    n_rows, seen = 0, Seen(fitted)
    with progress("apply") as bar, TableWriter(out) as writer:
        bar.start(-(-source.n_rows // _BATCH))
        for batch in source.batches(_BATCH):
            rows = batch.drop(drop, strict=False)
            writer.write(with_new_columns(rows, seen.transform(batch.select(needed)), source.where))
            n_rows += rows.height
            bar.advance(f"{n_rows:,} rows")
    tell_notes(source)
    seen.tell()
    typer.echo(f"{n_rows:,} row(s) in {out}; {seen.n_unseen:,} of them with a level that was never seen")


def load_encoder(path: Path) -> GroupEncoder:
    """Read an encoder; where there is none, say what may be meant."""
    from sufrep import load
    from sufrep.errors import EncoderFileError, TableNotFoundError

    if not path.exists() and path.parent.is_dir():
        near = get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=2)
        shown = [str(path.parent / name) for name in near]
        hint = "" if near else "save one with `sufrep encode … --save`."
        raise TableNotFoundError(f"There is no encoder {str(path)!r}.", shown, hint)
    try:
        return load(path)
    except OSError as error:
        what = f"{error.strerror or error}."
        raise EncoderFileError(path, what, "name a file that --save wrote.") from error


def needed_columns(path: Path, encoder: GroupEncoder) -> list[str]:
    """The columns that the encoder reads, if it can serve tables in files at all."""
    from sufrep.errors import EncoderFileError

    if not hasattr(encoder, "feature_names_in_"):
        what = "it was fitted on an array, whose columns have no names."
        raise EncoderFileError(path, what, "fit it on a frame, or use it in Python.")
    if vars(encoder).get("sparse_output"):
        what = "its columns are sparse, which files of tables cannot hold."
        raise EncoderFileError(path, what, "fit it with sparse_output=False.")
    return [str(name) for name in encoder.feature_names_in_]


def text_groups(encoder: GroupEncoder) -> list[str]:
    """The columns of levels that are text; an encoder that was fitted in Python may know numbers."""
    found = []
    for columns, table in zip(encoder.layout_.groups, encoder.representations_.values(), strict=True):
        for place, column in enumerate(columns):
            levels = [level[place] if len(columns) > 1 else level for level in table.levels.tolist()]
            if all(isinstance(level, str) for level in levels if level is not None):
                found.append(encoder.layout_.names[column])
    return found


class Seen:
    """Transform rows, and count those whose levels the encoder does not know."""

    def __init__(self, encoder: GroupEncoder) -> None:
        self._encoder = encoder.set_output(transform="polars")
        self.n_rows = self.n_unseen = 0
        self._known = dict.fromkeys(encoder.representations_, 0)

    def transform(self, X: pl.DataFrame) -> pl.DataFrame:
        """The new columns of some rows."""
        import numpy as np

        from sufrep.errors import UnseenLevelsWarning

        with warnings.catch_warnings():
            # A batch may well hold new levels only; what counts is told at the end.
            warnings.simplefilter("ignore", UnseenLevelsWarning)
            encoded = self._encoder.transform(X)
        masks = self._unseen(X)
        for name, mask in masks.items():
            self._known[name] += int((~mask).sum())
        self.n_rows += X.height
        self.n_unseen += int(np.any([*masks.values()], axis=0).sum()) if masks else 0
        new: pl.DataFrame = encoded[:, len(self._encoder.layout_.kept) :]
        return new

    def _unseen(self, X: pl.DataFrame) -> dict[str, Mask]:
        """Of each group, the rows whose level is not known."""
        import numpy as np

        from sufrep.encoders._reading import read_group, read_table

        encoder: Any = self._encoder
        table = read_table(encoder, X, reset=False)
        found = {}
        for columns, (name, known) in zip(
            encoder.layout_.groups, encoder.representations_.items(), strict=True
        ):
            factor = read_group(table, columns, encoder.missing)
            # A null that is no level gets the prior because it is null, not because it is new.
            is_new = np.append(known.positions(factor.levels.tolist()) < 0, False)
            found[name] = is_new[factor.codes]
        return found

    def tell(self) -> None:
        """Warn of groups without any row that the encoder knows."""
        for name, n_known in self._known.items():
            if not n_known:
                levels = [str(level) for level in self._encoder.representations_[name].levels[:3]]
                tell(
                    f"warning: not one row holds a level of {name!r} that the encoder knows "
                    f"({', '.join(levels)}, …); all get the values of an average level.\n"
                    "Hint: see whether the levels are spelt in the same way in both tables."
                )
