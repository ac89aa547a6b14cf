"""What all charts share: loading Altair, number formats, tooltips, colours, and writing to files."""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any

from sufrep._atomic import replace_file
from sufrep.errors import FileEndingError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

# Formats of D3. Three significant digits of a share: 12.3%, 0.45%.
SHARE = ".3~p"
NUMBER = ",.4~r"
COUNT = ",d"
# Tick labels are read together, so they need fewer digits.
SHARE_TICKS = ".2~%"
NUMBER_TICKS = ",.4~g"

# Formats of files with charts, and the options of Altair for each.
_ENDINGS: dict[str, dict[str, Any]] = {".png": {"scale_factor": 2}, ".svg": {}, ".html": {"inline": True}}

# Lines that are not part of a series; visible on white and on near-black. Text takes the theme's colour.
NEUTRAL = "#8a9099"


def load_altair() -> Any:
    """Import Altair, which is optional.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    if find_spec("altair") is None:
        raise MissingDependencyError("altair", "Drawing", "report")
    import altair

    return altair


def require_renderer(purpose: str) -> None:
    """Check that vl-convert, which turns charts into pictures and scripts, is installed.

    Raises
    ------
    MissingDependencyError
        If it is not; the message starts with `purpose`.
    """
    if find_spec("vl_convert") is None:
        raise MissingDependencyError("vl-convert-python", purpose, "report")


def write_chart(chart: Any, path: Path) -> list[Path]:
    """Write a chart as PNG, SVG and interactive HTML that works offline, as `save_chart` does.

    Parameters
    ----------
    chart : altair chart
    path : pathlib.Path
        Without a suffix.

    Returns
    -------
    list of pathlib.Path
    """
    return [save_chart(chart, path.with_name(path.name + ending)) for ending in _ENDINGS]


def save_chart(chart: Any, path: Path) -> Path:
    """Write a chart in the format of its ending; HTML is interactive, and works offline.

    A file that cannot be written completely is not changed.

    Parameters
    ----------
    chart : altair chart
        Of a fixed size.
    path : pathlib.Path
        Ends in .png, .svg or .html.

    Raises
    ------
    FileEndingError
        If it does not.
    """
    if path.suffix not in _ENDINGS:
        raise FileEndingError(path, list(_ENDINGS), "choose one of these endings.")
    require_renderer("Writing a chart")
    file: BytesIO | StringIO = BytesIO() if path.suffix == ".png" else StringIO()
    chart.save(file, format=path.suffix[1:], **_ENDINGS[path.suffix])
    content = file.getvalue()
    replace_file(path, content.encode() if isinstance(content, str) else content)
    return path


def tooltips(
    alt: Any, rows: Sequence[Mapping[str, Any]], hover: Mapping[str, str], shares: Collection[str] = ()
) -> list[Any]:
    """One line for each field of `hover` (field to title); fields in `shares` are shown in percent."""
    return [_tooltip(alt, rows, field, title, field in shares) for field, title in hover.items()]


def _tooltip(alt: Any, rows: Sequence[Mapping[str, Any]], field: str, title: str, share: bool) -> Any:
    values = [row[field] for row in rows if row.get(field) is not None]
    if not values or not all(isinstance(value, int | float) for value in values):
        return alt.Tooltip(f"{field}:N", title=title)
    whole = all(isinstance(value, int) for value in values)
    return alt.Tooltip(f"{field}:Q", title=title, format=SHARE if share else COUNT if whole else NUMBER)


def tick_format(percent: bool) -> str:
    """Format of an axis of shares or of other numbers."""
    return SHARE_TICKS if percent else NUMBER_TICKS


def series_colour(
    alt: Any, field: str, order: Sequence[str], title: str | None = None, **legend_options: Any
) -> Any:
    """Colour by `field`, with a legend above the chart if there is more than one series.

    The colours themselves come from the theme of the page.
    """
    legend = alt.Legend(
        orient="top", title=title, titleOrient="left", symbolType="circle", symbolOpacity=1, **legend_options
    )
    return alt.Color(
        f"{field}:N",
        sort=list(order),
        scale=alt.Scale(domain=list(order)),
        legend=legend if len(order) > 1 else None,
    )


def reference_rule(chart: Any) -> Any:
    """A dashed line, for zero or for noise."""
    return chart.mark_rule(color=NEUTRAL, strokeWidth=1.5, strokeDash=[4, 3])
