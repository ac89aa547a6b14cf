"""Saved files as commands use them: their steps, the columns that these need, and rows encoded in batches."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sufrep.cli._arguments import Spelling, message
from sufrep.errors import EncoderFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from sufrep._arrays import Mask
    from sufrep._files import TableReading
    from sufrep.encoders._base import GroupEncoder

# Rows in memory at a time.
BATCH = 50_000
# What was set when the encoder was fitted.
FITTED_SPELLING = Spelling({"unseen": "encode --unseen", "missing": "encode --missing"})

EncoderArgument = Annotated[
    Path, typer.Argument(metavar="ENCODER", help="A file written with --save.", show_default=False)
]


def read_saved(read: Callable[[Path], Any], path: Path) -> Any:
    """Read a saved file; if there is none, suggest one with a similar name."""
    try:
        return read(path)
    except OSError as error:
        hint = "name a file written with --save."
        if isinstance(error, FileNotFoundError) and path.parent.is_dir():
            near = get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=2)
            hint = (
                f"did you mean {' or '.join(repr(str(path.parent / name)) for name in near)}?"
                if near
                else hint
            )
        raise EncoderFileError(path, f"{error.strerror or error}.", hint) from error


@dataclass(frozen=True, slots=True, eq=False)
class SavedSteps:
    """The fitted steps of a file.

    Attributes
    ----------
    path : Path
    first : list of ToNumbers and DropColumns
        What comes before the encoder; they return polars.
    encoder : GroupEncoder or None
        None if the file leaves the column out.
    """

    path: Path
    first: list[Any]
    encoder: GroupEncoder | None

    @classmethod
    def read(cls, path: Path) -> SavedSteps:
        """Read a file, of which only the last step may be an encoder."""
        from sufrep import load

        loaded = read_saved(load, path)
        steps = [step.set_output(transform="polars") for _, step in getattr(loaded, "steps", [("", loaded)])]
        encoders = [step for step in steps if hasattr(step, "representations_")]
        if encoders and encoders != steps[-1:]:
            what = f"it holds {len(encoders)} encoders, or steps after one."
            raise EncoderFileError(path, what, "use it in Python, with sufrep.load.")
        return cls(path, [step for step in steps if step not in encoders], encoders[0] if encoders else None)

    @property
    def steps(self) -> list[Any]:
        """All steps in their order."""
        return self.first if self.encoder is None else [*self.first, self.encoder]

    @property
    def reading(self) -> TableReading | None:
        """How the table was read that the steps were fitted to."""
        return getattr(self.steps[0], "reading_", None)

    def columns(self) -> list[str]:
        """The columns that the steps were fitted to; raise if they have no names."""
        names = getattr(self.steps[0], "feature_names_in_", None)
        if names is None:
            what = "it was fitted on an array, whose columns have no names."
            raise EncoderFileError(self.path, what, "fit it on a frame, or use it in Python.")
        return [str(name) for name in names]

    def text_columns(self) -> list[str]:
        """The columns whose levels are text; steps fitted in Python may have numbers as levels."""
        found = []
        for step in self.first:
            for position, levels in vars(step).get("levels_", {}).items():
                if _all_text(levels.tolist()):
                    found.append(self.columns()[position])
        return found if self.encoder is None else [*found, *_text_groups(self.encoder)]

    def dropped(self) -> list[str]:
        """The columns that a step leaves out of the table."""
        from sufrep.encoders import DropColumns

        left_out = (step for step in self.first if isinstance(step, DropColumns))
        return [str(name) for step in left_out for name in step.feature_names_in_[~step.kept_]]

    def before_encoder(self, X: pl.DataFrame) -> pl.DataFrame:
        """The rows as the encoder takes them."""
        for step in self.first:
            X = step.transform(X)
        return X


def _text_groups(encoder: GroupEncoder) -> list[str]:
    """The group columns whose levels are text."""
    found = []
    for columns, table in zip(encoder.layout_.groups, encoder.representations_.values(), strict=True):
        for position, column in enumerate(columns):
            levels = [level[position] if len(columns) > 1 else level for level in table.levels.tolist()]
            if _all_text(levels):
                found.append(encoder.layout_.names[column])
    for steps in getattr(encoder, "parents_", {}).values():
        found += [step.above for step in steps if all(isinstance(parent, str) for parent in step.parents)]
    return found


def _all_text(levels: list[Any]) -> bool:
    return all(isinstance(level, str) for level in levels if level is not None)


class BatchEncoder:
    """Encodes rows in batches, and counts those with levels that the encoder has not seen.

    A batch holds some rows of a level only, and where it ends must not change a vector. So new levels are
    learnt from the rows of all batches before any is encoded.
    """

    def __init__(self, saved: SavedSteps) -> None:
        from sufrep.encoders._describing import new_columns

        if vars(saved.steps[-1]).get("sparse_output"):
            what = "its columns are sparse, which table files cannot store."
            raise EncoderFileError(saved.path, what, "fit it with sparse_output=False.")
        self._saved, self._new = saved, new_columns(saved.steps)
        self._encoder = self._learnt = encoder = saved.encoder
        parts = () if encoder is None else (encoder, *vars(encoder).get("encoders_", {}).values())
        self.learns = getattr(encoder, "unseen", None) == "estimate" and any(
            rule is not None for part in parts for rule in vars(part).get("new_levels_", {}).values()
        )
        self._rows: list[pl.DataFrame] = []
        self.n_unseen = 0
        self._known = dict.fromkeys(getattr(encoder, "representations_", {}), 0)

    def collect(self, X: pl.DataFrame) -> None:
        """Keep the rows of a batch whose levels are new."""
        import numpy as np

        X = self._saved.before_encoder(X)
        new = np.any([*self._unseen(X).values()], axis=0)
        if new.any():
            self._rows.append(X.filter(new))

    def learn(self) -> None:
        """Learn the levels of the rows that were kept."""
        import polars as pl

        if self._rows and self._encoder is not None:
            self._learnt = self._encoder.learn_levels(pl.concat(self._rows, how="vertical_relaxed"))
        self._rows = []

    def transform(self, X: pl.DataFrame) -> pl.DataFrame:
        """The new columns of a batch."""
        import numpy as np

        from sufrep.errors import UnseenLevelsWarning

        X = self._saved.before_encoder(X)
        masks = self._unseen(X)
        if self._learnt is not None:
            with warnings.catch_warnings():
                # A single batch may hold only new levels; `warn` looks at all of them together.
                warnings.simplefilter("ignore", UnseenLevelsWarning)
                X = self._learnt.transform(X)
        for name, mask in masks.items():
            self._known[name] += int((~mask).sum())
        self.n_unseen += int(np.any([*masks.values()], axis=0).sum()) if masks else 0
        return X.select(self._new)

    def _unseen(self, X: pl.DataFrame) -> dict[str, Mask]:
        """For each group, the rows whose level is new."""
        import numpy as np

        from sufrep.encoders._inputs import read_factor, read_table

        encoder: Any = self._encoder
        if encoder is None:
            return {}
        table = read_table(encoder, X, reset=False)
        found = {}
        for columns, (name, known) in zip(
            encoder.layout_.groups, encoder.representations_.items(), strict=True
        ):
            factor = read_factor(table, columns, encoder.missing)
            # A null that is not a level gets the prior because it is null, not because it is new.
            is_new = np.append(known.positions(factor.levels.tolist()) < 0, False)
            found[name] = is_new[factor.codes]
        return found

    def warn(self) -> None:
        """Print a warning for each group whose levels are all new."""
        if self._encoder is not None:
            warn_of_new_levels(self._encoder, self._known)


def warn_of_new_levels(encoder: GroupEncoder, known: Mapping[str, int]) -> None:
    """Print a warning for each group whose levels are all new, given the number of rows with others."""
    for name, n_known in known.items():
        if not n_known:
            levels = [str(level) for level in encoder.representations_[name].levels[:3]]
            message(
                f"warning: no row has a level of {name!r} that the encoder knows "
                f"({', '.join(levels)}, …); all levels are new.\n"
                "Hint: check that the levels are spelled in the same way in both tables."
            )
