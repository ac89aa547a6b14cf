"""Subgroups of rows by the values of a column, large enough for an effect of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep.causal._plots import frame_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from sufrep._arrays import Codes, Mask
    from sufrep.causal import AIPW

# Numbers with more values are cut into thirds; of text, the most frequent levels are shown.
_MOST_LEVELS = 6
_THIRDS = (1 / 3, 2 / 3)


@dataclass(frozen=True, slots=True)
class Subgroups:
    """The effects in the subgroups of one column.

    Attributes
    ----------
    column : str
    rows : tuple of dict
        With the keys ``subgroup``, ``estimate``, ``std_error``, ``lower``, ``upper``, ``p_value`` and
        ``n_rows``.
    """

    column: str
    rows: tuple[dict[str, Any], ...]


def subgroup_effects(model: AIPW, values: pl.Series) -> Subgroups | None:
    """The effect in each subgroup of a column; None if it has fewer than two that can be compared.

    Parameters
    ----------
    model : AIPW
        Fitted.
    values : polars.Series, length n_samples
        A value for each row of the table.
    """
    codes, labels = _pooled(model, *subgroup_codes(values))
    if len(labels) < 2:
        return None
    rows = []
    for row in frame_rows(model.gate(codes)):
        label = labels[int(row.pop("level"))]
        rows.append({"subgroup": label, **row})
    return Subgroups(values.name, tuple(rows))


def subgroup_codes(values: pl.Series) -> tuple[Codes, list[str]]:
    """The number of the subgroup of each row, and the names of the subgroups."""
    name, known = values.name, values.drop_nulls()
    if values.dtype.is_float():
        known = known.drop_nans()
    if values.dtype.is_numeric() and known.n_unique() > _MOST_LEVELS:
        return _thirds(values.cast(float).fill_null(float("nan")).to_numpy(), name)
    counts = known.value_counts(sort=True)
    levels = counts[name].to_list()
    shown = sorted(levels[:_MOST_LEVELS])
    places = {level: place for place, level in enumerate(shown)}
    is_known = values.is_not_null().to_list()
    other, null = len(shown), len(shown) + 1
    codes = np.array(
        [
            places.get(value, other) if is_there and value == value else null
            for value, is_there in zip(values.to_list(), is_known, strict=True)
        ],
        dtype=np.intp,
    )
    labels = [*(f"{name} = {_text(level)}" for level in shown), f"other {name}", f"{name} is null"]
    return codes, labels


def _thirds(numbers: Any, name: str) -> tuple[Codes, list[str]]:
    """Three subgroups of about the same size, fewer if many rows have the same value."""
    null = np.isnan(numbers)
    edges = np.unique(np.quantile(numbers[~null], _THIRDS, method="inverted_cdf"))
    edges = edges[edges < numbers[~null].max()]
    codes = np.searchsorted(edges, numbers, side="left")
    codes[null] = len(edges) + 1
    texts = [f"{edge:.4g}" for edge in edges]
    labels = [f"{name} up to {texts[0]}"] if texts else [name]
    labels += [f"{name} over {low}, up to {high}" for low, high in zip(texts, texts[1:], strict=False)]
    labels += [f"{name} over {texts[-1]}"] if texts else []
    return codes, [*labels, f"{name} is null"]


def _pooled(model: AIPW, codes: Codes, labels: Sequence[str]) -> tuple[Codes, list[str]]:
    """Subgroups that can have an effect of their own; the others are joined, with the smallest if need be.

    The codes of all rows of the table are returned, numbered by the subgroups that are left.
    """
    kept = codes[model.rows_]
    counts = np.bincount(kept, minlength=len(labels))
    present = [code for code in range(len(labels)) if counts[code]]
    good = [code for code in present if _is_enough(model, kept == code)]
    rest = [code for code in present if code not in good]
    if rest and good and not _is_enough(model, np.isin(kept, rest)):
        smallest = min(good, key=lambda code: counts[code])
        good.remove(smallest)
        rest.append(smallest)
    # Rows of dropped groups have no effect, and the number that they get is never used.
    found = np.full(len(codes), -1, dtype=np.intp)
    for place, joined in enumerate([*([code] for code in good), rest]):
        found[np.isin(codes, joined)] = place
    others = [labels[rest[0]] if len(rest) == 1 else "all others"] if rest else []
    return found, [*(labels[code] for code in good), *others]


def _is_enough(model: AIPW, inside: Mask) -> bool:
    """Whether rows have both arms and two clusters, which an effect and its error need."""
    data = model.data_
    arms = np.unique(data.treatment[inside])
    clusters = np.flatnonzero(inside) if data.clusters is None else np.unique(data.clusters[inside])
    return len(arms) == 2 and len(clusters) > 1


def _text(level: Any) -> str:
    if isinstance(level, bool):
        return str(level).lower()
    return f"{level:g}" if isinstance(level, float) else str(level)
