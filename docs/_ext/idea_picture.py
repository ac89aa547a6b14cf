"""The directive `idea-picture`: six zip codes as one-hot columns, and as the vectors of an encoder.

The numbers are computed when the site is built. Text takes the colour of the page, light or dark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from sufrep import MeansEncoder
from sufrep.datasets import load_houses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

# Three pairs of zip codes that are alike: next to each other, and far from the other pairs.
_ZIPCODES = ["00178", "00264", "00272", "00196", "00353", "00128"]
_COLUMNS = {
    "living_area": "living area",
    "lot_area": "lot",
    "year_built": "built",
    "distance_to_center": "miles to centre",
}
_TOP, _ROW, _LABEL, _WIDTH = 58, 26, 52, 372
_N_CELLS = 24
_LOW, _MIDDLE, _HIGH = np.array([141, 184, 240]), np.array([232, 234, 237]), np.array([240, 170, 110])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("idea-picture", IdeaPicture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class IdeaPicture(SphinxDirective):
    """Two pictures next to each other, or one below the other on a phone."""

    def run(self) -> list[nodes.Node]:
        """Return them as SVG in the page."""
        houses = pd.DataFrame(load_houses().columns())
        encoder = MeansEncoder("zipcode", covariates=list(_COLUMNS), shrinkage="auto").fit(houses)
        table = encoder.representations_["zipcode"]
        pictures = _one_hot(table.levels.tolist()), _vectors(table)
        return [nodes.raw("", f'<div class="idea">{"".join(pictures)}</div>', format="html")]


def _one_hot(levels: list[str]) -> str:
    step = (_WIDTH - _LABEL) / _N_CELLS
    marked = [round(levels.index(zipcode) / len(levels) * (_N_CELLS - 1)) for zipcode in _ZIPCODES]

    def cells() -> Iterator[str]:
        for row, own in enumerate(marked):
            for column in range(_N_CELLS):
                fill = "#2f78d6" if column == own else "#868c95"
                opacity = 1 if column == own else 0.22
                x = _LABEL + column * step
                yield _cell(x, row, step - 2, f'fill="{fill}" fill-opacity="{opacity}"')

    heading = f"One-hot: {len(levels)} columns"
    return _picture(heading, "which zip code it is, and nothing about it", cells())


def _vectors(table: Any) -> str:
    step = (_WIDTH - _LABEL) / len(_COLUMNS)
    values = table.lookup(_ZIPCODES)
    scaled = (values - table.values.mean(axis=0)) / table.values.std(axis=0)

    def cells() -> Iterator[str]:
        for column, name in enumerate(_COLUMNS.values()):
            x = _LABEL + column * step
            yield _text(x + step / 2 - 1, _TOP - 7, name, 'text-anchor="middle" font-size="10.5"')
            for row in range(len(_ZIPCODES)):
                colour = "rgb({}, {}, {})".format(*_colour(scaled[row, column]))
                yield _cell(x, row, step - 2, f'fill="{colour}"')
                number = (
                    f"{values[row, column]:.1f}" if name.startswith("miles") else f"{values[row, column]:.0f}"
                )
                place = 'text-anchor="middle" font-size="12" style="fill: #16191d"'
                yield _text(x + step / 2 - 1, _TOP + row * _ROW + 17, number, place)

    heading = f"A short vector: {len(_COLUMNS)} columns"
    return _picture(heading, "what its houses are like: similar places get similar numbers", cells())


def _picture(heading: str, text: str, cells: Iterator[str]) -> str:
    height = _TOP + len(_ZIPCODES) * _ROW + 4
    labels = [
        _text(0, _TOP + row * _ROW + 17, name, 'font-size="12.5"') for row, name in enumerate(_ZIPCODES)
    ]
    titles = [
        _text(0, 15, heading, 'font-size="15" font-weight="600"'),
        _text(0, 33, text, 'font-size="12" opacity="0.8"'),
    ]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{heading}: {text}">'
        + "".join([*titles, *labels, *cells])
        + "</svg>"
    )


def _cell(x: float, row: int, width: float, style: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{_TOP + row * _ROW}" width="{width:.1f}" height="{_ROW - 3}" rx="2" {style}/>'
    )


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y}" {style}>{text}</text>'


def _colour(value: float) -> tuple[int, ...]:
    """Blue below the mean, orange above it."""
    share = min(abs(value) / 1.8, 1)
    end = _HIGH if value > 0 else _LOW
    return tuple(int(part) for part in np.round(_MIDDLE + share * (end - _MIDDLE)))
