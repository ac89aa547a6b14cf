"""From what the user passes to tables, codes and look-ups, with every check on the way."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from sufrep._frames import ArrayTable, Factorized, FrameTable, Lookup, Table, cross, is_frame, refuse_lazy
from sufrep._levels import level_label
from sufrep.errors import (
    LengthMismatchError,
    MissingColumnsError,
    MissingLevelError,
    NoRowsError,
    SampleWeightError,
    UnseenLevelError,
    UnseenLevelsWarning,
    warn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sufrep._arrays import Floats
    from sufrep.representation import Representation


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was where learning fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def read_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """Check X as scikit-learn does, remember or compare its columns, and wrap it."""
    if is_frame(X):
        table = FrameTable.from_native(X)
        known = [] if reset else getattr(estimator, "feature_names_in_", [])
        missing = [name for name in known if name not in table.names]
        if missing:
            raise MissingColumnsError(missing, table.names)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if not table.n_rows:
            raise NoRowsError(len(table.names))
        return table
    refuse_lazy(X)
    if isinstance(X, list) and np.asarray(X).dtype.kind in "US":
        # numpy would make text of the numbers beside text.
        X = np.asarray(X, dtype=object)
    array = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(array.shape[1])])
    return ArrayTable(array, tuple(names))


def read_group(table: Table, columns: Sequence[int], missing: str) -> Factorized:
    """Return levels and codes of a group; the missing value is treated as ``missing`` says."""
    parts = [table.factorize(column) for column in columns]
    nulls = [int((part.codes < 0).sum()) for part in parts]
    if missing == "error" and any(nulls):
        worst = int(np.argmax(nulls))
        raise MissingLevelError(table.names[columns[worst]], nulls[worst])
    if len(parts) > 1:
        return cross(parts, keep_null=missing == "level")
    return parts[0].with_missing_level() if missing == "level" else parts[0]


def look_up(
    representation: Representation, factor: Factorized, columns: tuple[str, ...], name: str, unseen: str
) -> Lookup:
    """Find the vector of every row, the prior for levels and nulls that have none."""
    positions = representation.positions(factor.levels.tolist())
    new = factor.levels[positions < 0].tolist()
    if new and unseen == "error":
        raise UnseenLevelError(name, [level_label(level) for level in new], representation.n_levels)
    if len(new) == len(factor.levels) and new:
        _warn_of_unseen(name, new, representation.levels.tolist())
    # The row behind the levels is the prior's; codes of −1 find the −1 appended here.
    positions = np.append(positions, -1)
    positions[positions < 0] = representation.n_levels
    return Lookup(columns, representation.with_prior(), positions[factor.codes])


def check_weights(sample_weight: Any, n_rows: int, *, allow_zero: bool = False) -> Floats | None:
    """Return the weights as an array (n,), None if there are none; not all may be zero unless allowed."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SampleWeightError(f"holds something that is no number ({error})") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise SampleWeightError(f"has {weights.ndim} dimensions; it must be 1D array or scalar")
    if len(weights) != n_rows:
        raise LengthMismatchError(n_rows, "sample_weight", len(weights))
    if not np.isfinite(weights).all():
        raise SampleWeightError(f"contains NaN or infinity in {int((~np.isfinite(weights)).sum())} row(s)")
    if (weights < 0).any():
        raise SampleWeightError(f"is negative in {int((weights < 0).sum())} row(s)")
    if not (weights.any() or allow_zero):
        raise SampleWeightError("is zero in every row")
    return weights


def check_length(y: Any, n_rows: int) -> None:
    """Refuse a target of another length, which is a mistake even where it is not used."""
    length = n_rows if y is None else len(y) if hasattr(y, "__len__") else np.asarray(y).size
    if length != n_rows:
        raise LengthMismatchError(n_rows, "y", length)


def _warn_of_unseen(name: str, new: list[Any], known: list[Any]) -> None:
    """Warn where levels seem unseen because they are read or spelt in another way."""
    new, known = ([level for level in levels if level is not None] for levels in (new, known))
    if not (new and known):
        return
    types = [{type(level).__name__ for level in levels} for levels in (new, known)]
    spelt = [{_spelling(level) for level in levels} for levels in (new, known)]
    if types[0] & types[1] and not spelt[0] & spelt[1]:
        return  # rows of levels that are simply new, as in folds that are cut by group
    here, there = (", ".join(sorted(found)) for found in types)
    warn(
        f"No row of column {name!r} holds a level that fit saw: all get the prior. The levels here are of "
        f"type {here} ({level_label(new[0])!r}, …), those of fit of type {there} "
        f"({level_label(known[0])!r}, …).\nHint: read the column in the same way on both sides.",
        UnseenLevelsWarning,
    )


def _spelling(level: Any) -> str:
    """What is left of a level without case, spaces, leading zeros and a decimal point with zeros."""
    return level_label(level).strip().casefold().removesuffix(".0").lstrip("0")
