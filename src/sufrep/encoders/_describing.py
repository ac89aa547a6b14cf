"""The description of fitted steps that their file holds (see `sufrep._description`)."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._description import MOST_ITEMS, shortened
from sufrep._names import DROP, ENCODERS
from sufrep.encoders._certainty import Certainty, find_certainty
from sufrep.encoders._drop_columns import DropColumns
from sufrep.encoders._inputs import READING
from sufrep.encoders._packing import saved_parameters
from sufrep.encoders._to_numbers import ToNumbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep.representation import Representation

# Levels of a group that are described.
_LEVELS = 5


def describe_steps(steps: Sequence[Any]) -> dict[str, Any]:
    """The description of fitted steps, in types that JSON has."""
    last = steps[-1]
    needed, made = input_names(steps[0]), new_columns(steps)
    described = {
        "steps": [type(step).__name__ for step in steps],
        "encoder": type(last).__name__,
        "method": DROP if isinstance(last, DropColumns) else method_of(last),
        "groups": _groups(last),
        **_counted("covariates", _covariates(last)),
        **_counted("columns_needed", needed),
        **_counted("columns_made", made),
        "as_numbers": [name for step in steps for name in _as_numbers(step)],
        "dropped": [name for step in steps for name in _dropped(step)],
        "parameters": _changed_parameters(last),
    }
    if hasattr(steps[0], READING):
        reading = getattr(steps[0], READING)
        described["reading"] = {
            "decimal": reading.decimal,
            "thousands": reading.thousands,
            "separator": reading.separator,
            "encoding": reading.encoding,
            "kinds": reading.kinds(),
        }
    if hasattr(last, "target_type_"):
        described["target_type"] = last.target_type_
    if hasattr(last, "report_"):
        described["chosen"] = list(last.chosen_)
        described["report"] = {
            "summary": last.report_["summary"],
            **{
                part: {key: list(map(_plain, values)) for key, values in last.report_[part].items()}
                for part in ("candidates", "components", "groups")
            },
        }
    found: dict[str, Any] = shortened(described)
    return found


def input_names(step: Any) -> list[str]:
    """Names of the columns that a fitted step takes, made up where they have none."""
    return [str(name) for name in getattr(step, "feature_names_in_", ())] or [
        f"x{position}" for position in range(step.n_features_in_)
    ]


def new_columns(steps: Sequence[Any]) -> list[str]:
    """Names of the columns that fitted steps return and that are not columns of their table."""
    passing = set(input_names(steps[0]))
    for step in steps:
        names = step.get_feature_names_out().tolist()
        passing &= set(names[: _n_passing(step)])
    return [name for name in steps[-1].get_feature_names_out().tolist() if name not in passing]


def _n_passing(step: Any) -> int:
    """Number of columns that pass through a step; they come before those that it makes."""
    if isinstance(step, ToNumbers):
        return len(step._passing())
    return int(step.kept_.sum()) if isinstance(step, DropColumns) else len(step.layout_.kept)


def _counted(name: str, names: list[str]) -> dict[str, Any]:
    return {name: names, f"n_{name}": len(names)}


def _covariates(step: Any) -> list[str]:
    """Names of the covariates of an encoder; the target may be one more, and has no position."""
    return [
        covariate.name(step.layout_.names)
        for covariate in getattr(step, "covariates_", ())
        if covariate.position is not None
    ]


def _as_numbers(step: Any) -> list[str]:
    if not isinstance(step, ToNumbers):
        return []
    kinds = zip(input_names(step), step.kinds_, strict=True)
    return [name for name, kind in kinds if kind not in ("kept", "numeric", "dropped")]


def _dropped(step: Any) -> list[str]:
    if isinstance(step, DropColumns):
        return [name for name, kept in zip(input_names(step), step.kept_, strict=True) if not kept]
    return list(step.dropped_) if isinstance(step, ToNumbers) else []


def _groups(step: Any) -> list[dict[str, Any]]:
    tables = getattr(step, "representations_", {})
    return [
        _group(name, table, _certainty_of(step, name)) for name, table in list(tables.items())[:MOST_ITEMS]
    ]


def _certainty_of(encoder: Any, group: str) -> Certainty:
    """The levels with the least and the most certain vectors; none of an encoder that somebody changed."""
    try:
        with np.errstate(all="ignore"):
            return find_certainty(encoder, group)
    # What was loaded from a file of others may hold anything, and still has to be saved
    # (test_what_was_learnt_about_other_levels_is_refused).
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return Certainty()


def _group(name: str, table: Representation, certainty: Certainty) -> dict[str, Any]:
    values: Any = table.values[:_LEVELS, :MOST_ITEMS]
    values = values.toarray() if hasattr(values, "toarray") else values
    return {
        "name": name,
        "n_levels": table.n_levels,
        "n_rows": _plain(float(table.weight.sum())),
        **_counted("columns", list(table.columns)),
        "first_levels": [
            {
                "level": _plain(level),
                "rows": _plain(float(weight)),
                "values": [_plain(float(v)) for v in vector],
            }
            for level, weight, vector in zip(table.levels, table.weight, values, strict=False)
        ],
        "least_certain": _with_rows(table, certainty.least),
        "most_certain": _with_rows(table, certainty.most),
    }


def _with_rows(table: Representation, pairs: Sequence[tuple[Any, float]]) -> list[dict[str, Any]]:
    """Levels and their relative errors, with their numbers of rows."""
    rows = table.weight[table.positions([level for level, _ in pairs])]
    return [
        {"level": _plain(level), "rows": _plain(float(weight)), "relative_error": _plain(float(error))}
        for (level, error), weight in zip(pairs, rows, strict=True)
    ]


def method_of(encoder: Any) -> str | None:
    """Return the most specific method for which `make_encoder` makes an encoder like this, if any."""
    home = type(encoder).__module__, type(encoder).__name__
    fitting = {
        method: len(fixed)
        for method, (module, name, fixed) in ENCODERS.items()
        if home == (f"sufrep.encoders.{module}", name)
        and all(_is_same(getattr(encoder, key), value) for key, value in fixed.items())
    }
    return max(fitting, key=fitting.__getitem__, default=None)


def _is_same(given: Any, value: Any) -> bool:
    """Whether a parameter has a value; a list may be given as another sequence."""
    is_list = isinstance(value, list) and isinstance(given, (list, tuple, np.ndarray))
    return list(given) == value if is_list else bool(given == value)


def _plain(value: Any) -> Any:
    """A value as a type that JSON has."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return None if not math.isfinite(value) else int(value) if value.is_integer() else value
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _changed_parameters(step: Any) -> dict[str, Any]:
    defaults = {
        name: parameter.default for name, parameter in inspect.signature(type(step)).parameters.items()
    }
    given = {name: _jsonable(value) for name, value in saved_parameters(step).items()}
    return {name: given[name] for name in defaults if given[name] != _jsonable(defaults[name])}


def _jsonable(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    return list(map(_jsonable, value)) if isinstance(value, (list, tuple)) else _plain(value)
