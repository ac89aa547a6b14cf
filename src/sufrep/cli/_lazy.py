"""Tables that are not read into memory: moments by queries, encoding by a join, written while they are read.

What a join cannot express (rows whose columns depend on their own covariates, steps before the encoder) is
computed in batches of rows instead.
"""

from __future__ import annotations

import warnings
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from sufrep.cli._arguments import usage_error
from sufrep.cli._outputs import refuse_clashing_names, with_new_columns
from sufrep.cli._saved import BATCH, BatchEncoder, SavedSteps, warn_of_new_levels
from sufrep.errors import (
    LazyLimitError,
    LazyWords,
    SufrepError,
    UninformativeGroupWarning,
    UnseenLevelsWarning,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from sufrep._files import TableSource
    from sufrep.cli._arguments import ColumnRoles
    from sufrep.cli._outputs import TableOutput
    from sufrep.encoders._base import GroupEncoder

# What errors of lazy frames call them here.
_WORDS = LazyWords(
    frame="the table is not read into memory",
    of_frame="of a table that is not read into memory",
    collect="name a single file without --lazy",
    new_rows="leave --out out, and encode new rows with `sufrep apply`",
    narrow="--method low_rank",
)


def check_lazy(encoder: GroupEncoder, method: str, roles: ColumnRoles, *, writes: bool) -> None:
    """Raise if an encoder cannot do what is asked for without the table in memory."""
    needs, parameters = encoder._needs, encoder.get_params(deep=False)
    if needs.rows and parameters.get("sample_rows") is None:
        other = " (or --param solver=lda, which needs none)" if "solver" in parameters else ""
        what = f"{method} learns from rows, and the table is not read into memory; name the size of a sample"
        raise usage_error(f"{what}, such as 100000{other}; see also --sample-by.", "--sample-rows")
    if roles.time is not None and not needs.rows:
        what = "rows that are not read into memory have no order; use --fold with a column of folds"
        raise usage_error(f"{what}, or name a single file.", "--time")
    if writes and needs.uses_target and needs.rows:
        what = f"{method} learns from the target of a sample, and must not encode the rows it learnt from"
        hint = "use --save alone and encode new rows with `sufrep apply`, or another --method with --fold"
        raise usage_error(f"{what}; {hint}.", "--out")
    if writes and needs.uses_target and roles.fold is None:
        what = f"{method} learns from the target, so that rows are encoded by what other folds say"
        hint = "name a column that holds the fold of each row, or use --save alone"
        raise usage_error(f"{what}; {hint}.", "--fold")


def fit_lazily(encoder: GroupEncoder, source: TableSource, roles: ColumnRoles, *, writes: bool) -> Any:
    """Fit an encoder; return the rows with the new columns, None if they are not written or need batches."""
    from sufrep.encoders._lazy import fit_and_append

    with _explained(source), warnings.catch_warnings():
        warnings.simplefilter("ignore", UninformativeGroupWarning)  # the summary says it
        if not writes or encoder._needs.own_covariates:
            rows = source.rows if roles.fold is None else source.rows.drop(roles.fold)
            encoder.fit(rows, roles.target)
            return None
        return fit_and_append(encoder, source.rows, roles.target, roles.fold)


def write_encoded(
    encoder: GroupEncoder,
    rows: pl.LazyFrame | None,
    source: TableSource,
    output: TableOutput,
    tell: Callable[[str], None],
    finish: Callable[[], None],
) -> None:
    """Write the rows of an encoder that was fitted to them; ``finish`` is called before they appear."""
    with ExitStack() as stack:
        if rows is not None:
            _sink(rows, source, output, tell, stack)
        else:
            saved = SavedSteps(output.path, [], encoder.set_output(transform="polars"))
            _write_batches(BatchEncoder(saved), saved.columns(), source, output, (), tell, stack)
            encoder.set_output(transform="default")
        finish()


class RowCounter:
    """Counts rows that are written, and reports them."""

    def __init__(self, n_rows: int, tell: Callable[[str], None]) -> None:
        self.n_done, self._n_rows, self._tell = 0, n_rows, tell

    def __call__(self, more: int) -> None:
        self.n_done += more
        self._tell(f"{self.n_done:,} of {self._n_rows:,} rows written")


def _sink(
    rows: pl.LazyFrame,
    source: TableSource,
    output: TableOutput,
    tell: Callable[[str], None],
    stack: ExitStack,
) -> None:
    from sufrep._files import table_sink

    tell("writing")
    counter = RowCounter(source.n_rows, tell)
    sink = table_sink(output.path, output.partition_by, replace=output.force, seen=counter)
    stack.enter_context(sink)(rows)


def _write_batches(
    encoder: BatchEncoder,
    needed: Sequence[str],
    source: TableSource,
    output: TableOutput,
    removed: Sequence[str],
    tell: Callable[[str], None],
    stack: ExitStack,
) -> None:
    """Encode rows in batches, in their order."""
    from sufrep._files import batch_sink

    counter = RowCounter(source.n_rows, tell)
    if encoder.learns:
        tell("looking for new levels")
        for batch in source.batches(BATCH):
            encoder.collect(batch.select(needed))
        encoder.learn()
    write = stack.enter_context(batch_sink(output.path, output.partition_by, replace=output.force))
    for batch in source.batches(BATCH):
        rows = batch.drop(removed, strict=False)
        write(with_new_columns(rows, encoder.transform(batch.select(needed)), source.where))
        counter(rows.height)


# Saved encoders


def apply_lazily(
    saved: SavedSteps,
    batches: BatchEncoder,
    source: TableSource,
    output: TableOutput,
    removed: Sequence[str],
    tell: Callable[[str], None],
) -> int:
    """Write a table with the columns of a saved encoder; return the number of rows with a new level."""
    with ExitStack() as stack:
        encoder = saved.encoder
        if encoder is None or not _is_join(saved):
            _write_batches(batches, saved.columns(), source, output, removed, tell, stack)
            batches.warn()
            return batches.n_unseen
        tell("looking for new levels")
        n_unseen, known = count_known(encoder, source, saved.columns())
        with _explained(source), warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenLevelsWarning)  # `warn_of_new_levels` looks at all rows
            rows = _joined(encoder, source, saved.columns(), removed)
        _sink(rows, source, output, tell, stack)
    warn_of_new_levels(encoder, known)
    return n_unseen


def _is_join(saved: SavedSteps) -> bool:
    """Whether the new columns of a row follow from its level alone."""
    encoder = saved.encoder
    if saved.first or encoder is None or encoder._needs.own_covariates:
        return False
    rules = vars(encoder).get("new_levels_", {}).values()
    return encoder.unseen != "estimate" or not any(rule is not None and rule.needs_rows for rule in rules)


def _joined(encoder: Any, source: TableSource, needed: Sequence[str], removed: Sequence[str]) -> pl.LazyFrame:
    from sufrep.encoders._describing import new_columns
    from sufrep.encoders._lazy import append_columns

    new = new_columns([encoder])
    refuse_clashing_names([name for name in source.names if name not in removed], new, source.where)
    encoder.set_output(transform="default")
    joined: pl.LazyFrame = append_columns(encoder, source.rows.select(needed), source.rows)
    # Not by the names alone: a column that was left out may have the name of a new one.
    return joined.drop([name for name in removed if name in source.names])


def count_known(encoder: Any, source: TableSource, needed: Sequence[str]) -> tuple[int, dict[str, int]]:
    """The number of rows with a new level, and for each group that of rows with a known one or none."""
    import polars as pl

    from sufrep.encoders._lazy import mark_known

    groups = dict(zip(encoder.representations_, encoder.layout_.groups, strict=True))
    names = {group: f"{group}\0known" for group in groups}
    with _explained(source):
        marks = mark_known(encoder, source.rows.select(needed), list(names.values()))
        known = {}
        for group, columns in groups.items():
            known[group] = pl.col(names[group]) == 1
            if encoder.missing != "level":
                keys = [encoder.layout_.names[column] for column in columns]
                # A null that is not a level gets the prior because it is null, not because it is new.
                known[group] |= pl.any_horizontal(pl.col(keys).is_null())
        wanted = [one.sum().alias(group) for group, one in known.items()]
        unseen = (~pl.all_horizontal(known.values())).sum().alias("\0unseen")
        found = marks.select(*wanted, unseen).collect(engine="streaming").row(0, named=True)
    return found.pop("\0unseen"), found


@contextmanager
def _explained(source: TableSource) -> Iterator[None]:
    """Let errors about lazy frames speak of tables, and report damaged files."""
    from sufrep._files import reading_errors

    try:
        with reading_errors(source.where):
            yield
    except LazyLimitError as error:
        raise SufrepError(error.worded(_WORDS)) from error
