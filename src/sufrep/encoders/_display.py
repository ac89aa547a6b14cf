"""A representation as a frame, as a picture, as HTML."""

from __future__ import annotations

from html import escape
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sufrep import _charts
from sufrep._frames import frame_from_columns
from sufrep._sql import table_name, write_sql
from sufrep.errors import NotExportableError
from sufrep.representation import dense_values, level_label

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sufrep._arrays import Floats
    from sufrep._sql import SqlStatements
    from sufrep.encoders._certainty import VectorErrors
    from sufrep.representation import Representation

# Levels and columns of a representation in the HTML of its encoder.
_SHOWN = 5


def encoder_sql(encoder: Any, dialect: str, source: str, table: str | None, batch: int) -> SqlStatements:
    """SQL that encodes the rows of a table as a fitted encoder does."""
    check_is_fitted(encoder)
    parts = vars(encoder).get("encoders_", {"": encoder}).values()
    names = encoder.get_feature_names_out().tolist()[len(encoder.layout_.kept) :]
    known = [column for found in encoder.representations_.values() for column in found.columns]
    if any(part._needs.own_covariates for part in parts) or sorted(names) != sorted(known):
        raise NotExportableError(
            f"The columns of {type(encoder).__name__} depend on the covariates of the row, not only on its "
            "level, and so are no table of levels.",
            "encode in Python, with transform, or use an encoder of levels only, such as MeansEncoder.",
        )
    tables = []
    for group, found in encoder.representations_.items():
        several = len(encoder.representations_) > 1
        name = table if table is None or not several else f"{table}_{table_name([group])[7:]}"
        tables.append(found.vector_table(name))
    return write_sql(tables, dialect, source, names, batch)


def tabulate(
    representation: Representation,
    group_columns: Sequence[str],
    library: str | None,
    errors: Floats | None = None,
    *,
    preferred: str | None = None,
) -> Any:
    """Return a frame with the levels (one column for each that is crossed), weights, vectors and errors."""
    columns = level_columns(representation.levels.tolist(), group_columns)
    columns["weight" if "weight" not in columns else "weight_of_level"] = representation.weight
    values = dense_values(representation.values)
    columns |= {name: values[:, j] for j, name in enumerate(representation.columns)}
    names = []
    for name, column in zip(representation.columns, [] if errors is None else errors.T, strict=False):
        names.append(_free_name(f"{name}_error", columns))
        columns[names[-1]] = column
    return frame_from_columns(columns, library, nan_is_null=names, preferred=preferred)


def level_columns(levels: Sequence[Any], group_columns: Sequence[str]) -> dict[str, Any]:
    """Columns of a frame that name levels: one, or one for each column that is crossed."""
    if len(group_columns) == 1:
        return {group_columns[0]: _one_type(levels)}
    return {name: _one_type([level[j] for level in levels]) for j, name in enumerate(group_columns)}


def draw_levels(group: str, representation: Representation, errors: VectorErrors) -> Any:
    """Draw the levels in the plane of their first two entries or principal components, with their errors.

    Levels with a single entry are drawn one above the other, in its order: on one line, labels and intervals
    would cover each other.
    """
    values, weight = dense_values(representation.values), representation.weight
    axes, titles = np.eye(values.shape[1], 2), list(representation.columns[:2])
    points = values @ axes
    if values.shape[1] == 1:
        points[:, 1], titles = values[:, 0].argsort(kind="stable").argsort() + 1.0, [*titles, "rank"]
    if values.shape[1] > 2:
        axes, titles = principal_axes(values, weight)
        points = (values - weight @ values / weight.sum()) @ axes
    covariances = None
    if errors.known:
        found = errors.covariances(_charts.labelled_levels(weight))
        covariances = axes.T @ found @ axes
    return _charts.labelled_points(
        labels=[level_label(level) for level in representation.levels],
        points=points,
        sizes=weight,
        titles=(titles + [""] * 2)[:2],
        title=f"{group}: {representation.n_levels} levels",
        covariances=covariances,
    )


def principal_plane(values: Floats, weight: Floats) -> tuple[Floats, list[str]]:
    """Project standardised vectors (n_levels, k) on the plane in which they differ most; (n_levels, 2)."""
    axes, titles = principal_axes(values, weight)
    return (values - weight @ values / weight.sum()) @ axes, titles


def principal_axes(values: Floats, weight: Floats) -> tuple[Floats, list[str]]:
    """Axes (k, 2) of the plane in which standardised vectors (n_levels, k) differ most, and their titles."""
    share = weight / weight.sum()
    centered = values - share @ values
    spread = np.sqrt(share @ centered**2)
    # Columns that do not vary have a spread of rounding errors, which must not be scaled up.
    varies = spread > 1e-12 * np.abs(values).max(axis=0, initial=0.0)
    scaled = np.divide(centered, spread, out=np.zeros_like(centered), where=varies)
    # With rows of zeros, one level has two axes too.
    rows = np.vstack([np.sqrt(share)[:, None] * scaled, np.zeros((2, values.shape[1]))])
    _, singular, right = np.linalg.svd(rows, full_matrices=False)
    # The largest entry of each axis is positive, so that the picture does not flip between machines.
    right *= np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])[:, None]
    total = max(float((singular**2).sum()), np.finfo(float).tiny)
    titles = [f"component {j + 1} ({singular[j] ** 2 / total:.0%} of the variance)" for j in range(2)]
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
    return scale[:, None] * right[:2].T, titles


def _free_name(name: str, taken: Collection[str]) -> str:
    """The name, with a number if a column has it already: a covariate may be called "size_error"."""
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def describe_html(estimator: str, representations: Mapping[str, Representation]) -> str:
    """Add the size and the first levels of each representation to the HTML of an estimator."""
    return estimator + "".join(_group_html(name, table) for name, table in representations.items())


def _group_html(name: str, table: Representation) -> str:
    shown = min(_SHOWN, table.n_levels)
    head = "".join(f"<th>{escape(column)}</th>" for column in ("level", "weight", *table.columns[:_SHOWN]))
    values = dense_values(table.values[:shown])
    rows = "".join(
        f"<tr><th>{escape(level_label(table.levels[i]))}</th><td>{table.weight[i]:g}</td>"
        + "".join(f"<td>{value:.4g}</td>" for value in values[i][:_SHOWN])
        + "</tr>"
        for i in range(shown)
    )
    size = f"{escape(name)}: {table.n_levels:,} levels x {len(table.columns)} columns"
    return (
        f"<details><summary>{size}</summary><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></details>"
    )


def _one_type(levels: Sequence[Any]) -> list[Any]:
    """A frame column has one type: levels of several types, or too large, become text; null stays null."""
    known = [level for level in levels if level is not None]
    types = {type(level) for level in known}
    if types == {int, float}:
        return [None if level is None else float(level) for level in levels]
    if len(types) <= 1 and not any(isinstance(level, int) and abs(level) >= 2**63 for level in known):
        return list(levels)
    return [None if level is None else level_label(level) for level in levels]
