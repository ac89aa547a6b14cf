"""``sufrep apply``: a table with the columns of a saved encoder."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

from sufrep.cli._arguments import (
    DropOption,
    ForceOption,
    LazyOption,
    PartitionOption,
    TablesArgument,
    TextOption,
    output_option,
    print_result,
    report_notes,
)
from sufrep.cli._lazy import apply_lazily
from sufrep.cli._outputs import (
    OUT_HELP,
    TableOutput,
    check_parts,
    find_inputs,
    table_output,
    with_new_columns,
)
from sufrep.cli._progress import phases, progress
from sufrep.cli._saved import BATCH, FITTED_SPELLING, BatchEncoder, EncoderArgument, SavedSteps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._files import TableSource


@FITTED_SPELLING.errors()
def apply(
    encoder: EncoderArgument,
    table: TablesArgument,
    out: Annotated[
        Path,
        output_option(
            "--out",
            OUT_HELP,
            show_default=False,
        ),
    ],
    partition_by: PartitionOption = [],
    drop: DropOption = [],
    text: TextOption = [],
    lazy: LazyOption = False,
    force: ForceOption = False,
) -> None:
    """Encode new rows with a saved encoder.

    The new table has all columns of the old one, followed by the new ones; where `compare --save` found that
    dropping the column is best, it lacks that column. New levels get the values that
    all their rows in the table suggest, where the encoder can estimate them; those of an average level with
    `encode --unseen prior`; and `encode --unseen error` forbids them. Numbers are read as when the encoder
    was fitted, with the same decimal sign. Rows are read in batches, so the table may be larger than memory;
    only the rows of new levels must fit in it. Of several files, a folder or a pattern, the order of the rows
    is not kept, and not even the rows of new levels are read into memory where a level's means describe it;
    the same holds for one file with `--lazy`.

    Example: sufrep apply zip.sufrep new.csv --out new.parquet
    """
    from sufrep._files import open_table

    output = TableOutput(out, check_parts(partition_by, drop, out), force)
    tables = find_inputs(table, [encoder], table_output(out, partition_by), force=force)
    saved = SavedSteps.read(encoder)
    batches, needed = BatchEncoder(saved), saved.columns()
    left_out = [name for name in drop if name not in needed]
    as_text = (*saved.text_columns(), *text)
    columns = [*needed, *partition_by]
    source = open_table(tables, text=as_text, drop=left_out, needed=columns, reading=saved.reading)
    report_notes(source)
    removed = [*dict.fromkeys((*drop, *saved.dropped()))]
    if lazy or len(tables) > 1:
        with phases("apply") as tell:
            n_new = apply_lazily(saved, batches, source, output, removed, tell)
    else:
        n_new = _apply_in_order(batches, needed, source, output, removed)
    print_result(f"{source.n_rows:,} row(s) in {out}; {n_new:,} of them with a new level", [out])


def _apply_in_order(
    encoder: BatchEncoder,
    needed: Sequence[str],
    source: TableSource,
    output: TableOutput,
    removed: Sequence[str],
) -> int:
    """Write a table in batches, in the order of its rows; return the number of rows with a new level."""
    from sufrep._files import batch_sink

    n_rows, passes = 0, 2 if encoder.learns else 1
    n_batches = passes * -(-source.n_rows // BATCH)
    sink = batch_sink(output.path, output.partition_by, replace=output.force)
    with progress("apply") as report, sink as write:
        report(0, n_batches, "")
        n_done = 0
        if encoder.learns:
            for n_done, batch in enumerate(source.batches(BATCH), 1):
                encoder.collect(batch.select(needed))
                report(n_done, n_batches, "looking for new levels")
            encoder.learn()
        for n_more, batch in enumerate(source.batches(BATCH), 1):
            rows = batch.drop(removed, strict=False)
            write(with_new_columns(rows, encoder.transform(batch.select(needed)), source.where))
            n_rows += rows.height
            report(n_done + n_more, n_batches, f"{n_rows:,} rows")
    encoder.warn()
    return encoder.n_unseen
