"""What is predicted: numbers or classes, and which of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import column_or_1d

from sufrep.encoders._target import MOST_CLASSES, kind_of, read_target
from sufrep.encoders._to_numbers import as_date
from sufrep.errors import TargetError

if TYPE_CHECKING:
    from sufrep._arrays import Array

# The words of scikit-learn's users for the kinds of target that encoders know.
TASKS = {"regression": "continuous", "binary": "binary", "multiclass": "multiclass"}


def read_values(y: Any, task: str) -> tuple[Array, str]:
    """The target as an array (n,) of numbers or of classes as they were given, and its task."""
    if y is None:
        raise TargetError("The target y is None.", "give what is to be predicted, one value for each row.")
    found = read_target(y, "auto").kind
    values = _array(y)
    if task == "auto":
        task = next(name for name, kind in TASKS.items() if kind == found)
    if task == "regression":
        values = _numbers(values)
    _check_distinct(values, task)
    return values, task


def target_notes(values: Array, task: str) -> list[str]:
    """What the reader of the results should know of the target."""
    if task == "multiclass" and values.dtype.kind in "iuf" and kind_of(values) == "multiclass":
        n_classes = len(np.unique(values))
        return [
            f"The target has {n_classes} whole values and was taken for classes; task='regression' takes "
            "them for numbers."
        ]
    return []


def _array(y: Any) -> Array:
    values: Array = column_or_1d(np.asarray(y))
    if values.dtype.kind == "O":
        values = np.array(values.tolist())  # text has a type of its own, which sorts
    if values.dtype.kind == "O":
        values = values.astype(np.float64)  # numbers of Python's that numpy has no type for
    return values


def _numbers(values: Array) -> Array:
    try:
        return values.astype(np.float64)
    except ValueError as error:
        raise TargetError(
            f"task='regression' needs numbers, but the target holds {values.tolist()[0]!r}.",
            "task='auto' takes text for classes; if they should be numbers, look at how the file was read.",
        ) from error


def _check_distinct(values: Array, task: str) -> None:
    """Refuse a target with nothing to predict, or with classes that cannot be learnt."""
    distinct = np.unique(values)
    if len(distinct) < 2:
        raise TargetError(
            f"The target is {distinct.tolist()[0]!r} in every row.",
            "there is nothing to predict; look at the step that made it, or name another column.",
        )
    if task == "regression":
        return
    if task == "binary" and len(distinct) > 2:
        raise TargetError(
            f"task='binary', but the target has {len(distinct):,} classes.",
            "use task='multiclass', or task='regression' for numbers.",
        )
    if distinct.dtype.kind == "U" and all(as_date(text) is not None for text in distinct.tolist()):
        raise TargetError(
            f"The target holds dates such as {distinct.tolist()[0]!r}.",
            "convert them to numbers, say to days.",
        )
    if len(distinct) > MOST_CLASSES and 2 * len(distinct) > len(values):
        raise TargetError(
            f"The target has {len(distinct):,} classes in {len(values):,} rows, too many to learn; "
            f"the first is {distinct.tolist()[0]!r}.",
            "name a column of numbers or of few classes; numbers that were read as text should be converted.",
        )
