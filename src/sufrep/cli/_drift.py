"""``sufrep drift``: new rows compared with those that a saved encoder was fitted to."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Annotated

import typer

from sufrep.cli._arguments import (
    ForceOption,
    Output,
    Printer,
    TableArgument,
    TextOption,
    check_outputs,
    message,
    print_json,
    report_notes,
    report_warnings,
    usage_error,
)
from sufrep.cli._compare import HtmlOption, JsonOption, check_renderer
from sufrep.cli._progress import progress, waiting
from sufrep.cli._saved import BATCH, FITTED_SPELLING, EncoderArgument, SavedSteps
from sufrep.errors import EncoderFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sufrep._arrays import Floats
    from sufrep._files import TableSource
    from sufrep.encoders import Drift, GroupEncoder
    from sufrep.encoders._drift import GroupDrift, NewMoments, NewRows
    from sufrep.moments import GroupMoments

# Levels that are printed.
_LEVELS = 10


def _share(share: float | None) -> float | None:
    if share is not None and not 0 <= share <= 1:  # NaN too
        raise typer.BadParameter(f"{share:g} is not a share between 0 and 1.")
    return share


def _rate(rate: float) -> float:
    if not 0 < rate < 1:
        raise typer.BadParameter(f"{rate:g} is not between 0 and 1.")
    return rate


@FITTED_SPELLING.errors()
def drift(
    encoder: EncoderArgument,
    table: TableArgument,
    html: HtmlOption = None,
    fail_over: Annotated[
        float | None,
        typer.Option(
            "--fail-over",
            callback=_share,
            help="End with exit code 3 if more than this share of the rows is in levels that are new or have "
            "moved.",
        ),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            callback=_rate,
            help="False-discovery rate: the share of the levels called moved that may not have moved.",
        ),
    ] = 0.05,
    text: TextOption = [],
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Compare new rows with those that an encoder was fitted to.

    Reports which levels are new, have vanished, or have moved: their covariates have other means than before
    (Hotelling's test for each level, with the false-discovery rate controlled). The table needs the columns
    that the encoder was fitted to; a target is not used. Rows are read in batches, so the table may be larger
    than memory. With several groups, the share that counts is that of the group with the largest.

    Example: sufrep drift zip.sufrep new.csv --html drift.html --fail-over 0.05
    """
    from sufrep._atomic import is_standard_output
    from sufrep._files import open_table, table_files

    check_outputs([encoder, *table_files(table)], [Output("--html", html, "report")], force=force)
    if as_json and html is not None and is_standard_output(html):
        raise usage_error("the standard output is also the file of another option.", "--json")
    check_renderer(html)
    saved = SavedSteps.read(encoder)
    if saved.encoder is None:
        what = "it leaves the column out, and knows nothing about its levels."
        raise EncoderFileError(encoder, what, "save an encoder, as `sufrep encode --method means` does.")
    as_text = (*saved.text_columns(), *text)
    source = open_table(table, text=as_text, needed=saved.columns(), reading=saved.reading)
    report_notes(source)
    with report_warnings(FITTED_SPELLING):
        found = _compare(saved, saved.encoder, source, rate)
    if as_json:
        print_json(found.to_dict(), indent=1)
    else:
        _print(found, Printer([html]))
    if html is not None:
        with waiting("drawing the report"):
            found.to_html(html)
        message(f"report: {html}")
    if fail_over is not None and found.share_changed > fail_over:
        from sufrep.cli import EXIT_EXCEEDED

        share = f"{100 * found.share_changed:.3g} %"
        message(f"{share} of the rows are in new or moved levels, more than --fail-over {fail_over:g}.")
        raise typer.Exit(EXIT_EXCEEDED)


def _compare(saved: SavedSteps, encoder: GroupEncoder, source: TableSource, rate: float) -> Drift:
    """Read the table once for the moments, which add up, and once for the spread of each group's levels."""
    from sufrep.encoders._drift import NewRows, make_drift, stored_moments

    n_batches = -(-source.n_rows // BATCH)
    n_steps = (1 + len(stored_moments(encoder))) * n_batches
    with progress("drift") as report:
        report(0, n_steps, "")
        n_done = 0

        def batches() -> Iterator[NewRows]:
            nonlocal n_done
            for batch in source.batches(BATCH):
                yield NewRows.read(encoder, saved.before_encoder(batch.select(saved.columns())))
                n_done += 1
                report(min(n_done, n_steps), n_steps, "")

        def squares_along(group: str, moments: GroupMoments, directions: Floats) -> Floats:
            parts = (rows.squares_along(group, moments, directions) for rows in batches())
            return reduce(add, parts)

        found: dict[str, NewMoments] = {}
        for rows in batches():
            for name, part in rows.moments().items():
                found[name] = found[name].add(part) if name in found else part
        drift = make_drift(encoder, found, squares_along, rate)
        report(n_steps, n_steps, "")
    return drift


def _print(drift: Drift, printer: Printer) -> None:
    for group in drift.groups.values():
        rows = _rows(group)
        if rows:
            titles = (group.name, "status", "moved most", "rows then", "rows now", "by (sd)", "p, adjusted")
            printer.table(titles, rows, n_left=3)
            printer.line()
    for group in drift.groups.values():
        printer.line(group.summary, style="bold")


def _rows(group: GroupDrift) -> list[tuple[str, ...]]:
    """The first levels that are not as they were."""
    from sufrep._statistics import p_value_text
    from sufrep.encoders._drift import MOVED, NEW, VANISHED, plain_count
    from sufrep.encoders._drift_page import difference_text
    from sufrep.representation import level_label

    return [
        (
            level_label(group.levels[i]),
            group.status[i],
            group.covariate[i] or "",
            f"{plain_count(group.rows_then[i]):,}",
            f"{plain_count(group.rows_now[i]):,}",
            difference_text(float(group.difference[i])),
            p_value_text(float(group.q_value[i])),
        )
        for i in group.having(MOVED, NEW, VANISHED).nonzero()[0][:_LEVELS].tolist()
    ]
