"""Subgroups of rows by the values of a column, large enough for an effect of their own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep.causal._plots import frame_rows
from sufrep.representation import is_null

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from sufrep._arrays import Codes, Mask
    from sufrep.causal import AIPW

# Numbers with more values are cut into thirds; of text, the most frequent levels are shown.
_MOST_LEVELS = 6
_THIRDS = (1 / 3, 2 / 3)
# The effect of a smaller share of the rows is mostly noise, and would stretch the axis for all others.
_LEAST_SHARE = 0.05
# Whole numbers are written out up to this size.
_LARGE = 1e9


@dataclass(frozen=True, slots=True)
class Subgroups:
    """The effects in the subgroups of one column.

    Attributes
    ----------
    column : str
    rows : tuple of dict
        With the keys ``subgroup``, ``estimate``, ``std_error``, ``lower``, ``upper``, ``p_value`` and
        ``n_rows``.
    n_left_out : int
        Rows of subgroups that are too small for an effect of their own, even together.
    """

    column: str
    rows: tuple[dict[str, Any], ...]
    n_left_out: int = 0


def subgroup_effects(model: AIPW, values: pl.Series) -> Subgroups | None:
    """The effect in each subgroup of a column; None if it has fewer than two that can be compared.

    Parameters
    ----------
    model : AIPW
        Fitted.
    values : polars.Series, length n_samples
        A value for each row of the table.
    """
    codes, labels = subgroup_codes(values)
    found = _large_enough(model, values.name, codes[model.rows_], labels)
    if len(found) < 2:
        return None
    rows: list[dict[str, Any]] = []
    for label, members in found.items():
        # With the other subgroups together, so that every effect exists.
        inside, *_ = (row for row in frame_rows(model.gate(np.isin(codes, members))) if row.pop("level"))
        rows.append({"subgroup": label, **inside})
    left_out = len(model.rows_) - sum(row["n_rows"] for row in rows)
    return Subgroups(values.name, tuple(rows), left_out)


def subgroup_codes(values: pl.Series) -> tuple[Codes, list[str | None]]:
    """The number of the subgroup of each row, and the names of the subgroups; None for levels not shown."""
    name, known = values.name, values.drop_nulls()
    if values.dtype.is_float():
        known = known.drop_nans()
    if values.dtype.is_numeric() and known.n_unique() > _MOST_LEVELS:
        return _thirds(values.cast(float).fill_null(float("nan")).to_numpy(), name)
    # Of levels with equally many rows, the first that occur are shown.
    shown = sorted(level for level, _ in Counter(known.to_list()).most_common(_MOST_LEVELS))
    places = {level: place for place, level in enumerate(shown)}
    other, null = len(shown), len(shown) + 1
    codes = np.array(
        [null if is_null(value) else places.get(value, other) for value in values.to_list()], dtype=np.intp
    )
    return codes, [*(f"{name} = {_text(level)}" for level in shown), None, f"{name} is null"]


def _thirds(numbers: Any, name: str) -> tuple[Codes, list[str | None]]:
    """Three subgroups of about the same size, fewer if many rows have the same value."""
    null = np.isnan(numbers)
    edges = np.unique(np.quantile(numbers[~null], _THIRDS, method="inverted_cdf"))
    edges = edges[edges < numbers[~null].max()]
    codes = np.searchsorted(edges, numbers, side="left")
    codes[null] = len(edges) + 1
    texts = [_text(edge) for edge in edges.tolist()]
    if len(set(texts)) < len(texts):  # they differ in later digits
        texts = list(map(repr, edges.tolist()))
    labels = [f"{name} up to {texts[0]}"] if texts else [name]
    labels += [f"{name} over {low}, up to {high}" for low, high in pairwise(texts)]
    labels += [f"{name} over {texts[-1]}"] if texts else []
    return codes, [*labels, f"{name} is null"]


def _large_enough(model: AIPW, name: str, codes: Codes, labels: Sequence[str | None]) -> dict[str, list[int]]:
    """The codes of each subgroup that can have an effect of its own; the others are joined, if that helps."""
    found: dict[str, list[int]] = {}
    rest = []
    for code in np.unique(codes).tolist():
        label = labels[code]
        if label is not None and _is_enough(model, codes == code):
            found[label] = [code]
        else:
            rest.append(code)
    if rest and _is_enough(model, np.isin(codes, rest)):
        found[f"other {name}"] = rest
    return found


def _is_enough(model: AIPW, inside: Mask) -> bool:
    """Whether rows are enough for an effect and its error: both arms, two clusters, and not too few."""
    data = model.data_
    arms = np.unique(data.treatment[inside])
    clusters = np.flatnonzero(inside) if data.clusters is None else np.unique(data.clusters[inside])
    return len(arms) == 2 and len(clusters) > 1 and bool(inside.mean() >= _LEAST_SHARE)


def _text(level: Any) -> str:
    """A level as it stands in a file; numbers that are not whole have six digits."""
    if isinstance(level, bool):
        return str(level).lower()
    if isinstance(level, float):
        return f"{level:.0f}" if level.is_integer() and abs(level) < _LARGE else f"{level:g}"
    return str(level)
