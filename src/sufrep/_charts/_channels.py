"""What the charts of a page share: formats of numbers, lines of the hover box, colours of series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

# Three digits of a share: 12.3%, 0.45%; a typographic minus is the renderer's default.
SHARE = ".3~p"
NUMBER = ",.4~r"
COUNT = ",d"
# On an axis the neighbours help, so digits that say nothing are left out.
SHARE_TICKS = ".2~%"
NUMBER_TICKS = ",.4~g"

# Visible on white and on near-black alike; text takes its colour from the theme of the page.
NEUTRAL = "#8a9099"


def tooltips(
    alt: Any, rows: Sequence[Mapping[str, Any]], hover: Mapping[str, str], shares: Collection[str] = ()
) -> list[Any]:
    """One line for each field of `hover` (field to title); those in `shares` in percent."""
    return [_tooltip(alt, rows, field, title, field in shares) for field, title in hover.items()]


def _tooltip(alt: Any, rows: Sequence[Mapping[str, Any]], field: str, title: str, share: bool) -> Any:
    found = [row[field] for row in rows if row.get(field) is not None]
    if not found or not all(isinstance(value, int | float) for value in found):
        return alt.Tooltip(f"{field}:N", title=title)
    whole = all(isinstance(value, int) for value in found)
    return alt.Tooltip(f"{field}:Q", title=title, format=SHARE if share else COUNT if whole else NUMBER)


def ticks(percent: bool) -> str:
    """The format of an axis."""
    return SHARE_TICKS if percent else NUMBER_TICKS


def series_colour(
    alt: Any, field: str, order: Sequence[str], title: str | None = None, **options: Any
) -> Any:
    """Colour by a field in this order; a legend above the chart unless one colour is all there is.

    Options are those of the legend.
    """
    legend = alt.Legend(
        orient="top", title=title, titleOrient="left", symbolType="circle", symbolOpacity=1, **options
    )
    return alt.Color(
        f"{field}:N",
        sort=list(order),
        scale=alt.Scale(domain=list(order)),
        legend=legend if len(order) > 1 else None,
    )
