"""Python code that builds and fits a pipeline, ready to copy."""

from __future__ import annotations

import inspect
import math
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from sklearn.pipeline import Pipeline

from sufrep._models import LabelledClassifier
from sufrep.encoders import METHODS
from sufrep.encoders._describing import method_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOADED = "# X and y are the table and the target of the comparison"
_INDENT = "    "


def pipeline_code(pipeline: Pipeline, loading: str | None = None) -> str:
    """Return code that builds a pipeline like the given one and fits it.

    Parameters
    ----------
    pipeline : Pipeline
        Unfitted.
    loading : str or None
        Code that defines X and y.
    """
    steps = [step for _, step in pipeline.steps]
    labelled = isinstance(steps[-1], LabelledClassifier)
    if labelled:
        steps[-1] = steps[-1].estimator
    imports = {("sklearn.pipeline", "make_pipeline"), *(pair for step in steps for pair in imports_of(step))}
    if labelled:
        imports.add(("sklearn.preprocessing", "LabelEncoder"))
    code = (loading or _LOADED).splitlines()
    plain = [line for line in code if line.startswith("import ")]
    lines = [*plain, *import_lines(imports), "", *(line for line in code if line and line not in plain)]
    if labelled:
        lines.append("y = LabelEncoder().fit_transform(y)  # xgboost expects the classes 0, 1, …")
    lines += [
        "model = make_pipeline(",
        *(f"{_INDENT}{_code(step)}," for step in steps),
        ")",
        "model.fit(X, y)",
    ]
    return "\n".join(lines)


def import_lines(imports: set[tuple[str, str]]) -> list[str]:
    """Return the import statements of (module, name) pairs."""
    names: dict[str, list[str]] = {}
    for module, name in sorted(imports):
        names.setdefault(module, []).append(name)
    return [f"from {module} import {', '.join(found)}" for module, found in names.items()]


def imports_of(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the (module, name) pairs that the code of an object imports."""
    if isinstance(value, Pipeline):
        yield "sklearn.pipeline", "make_pipeline"
        for _, step in value.steps:
            yield from imports_of(step)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from imports_of(part)
    elif type(value).__module__ != "builtins":
        method = method_of(value)
        yield ("sufrep", "make_encoder") if method else (_public_module(value), type(value).__name__)
        for parameter in changed_parameters(value).values():
            yield from imports_of(parameter)


def _code(value: Any) -> str:
    """Return an expression that makes an object."""
    if isinstance(value, Pipeline):
        return f"make_pipeline({', '.join(_code(step) for _, step in value.steps)})"
    if isinstance(value, list):
        return f"[{', '.join(map(_code, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_code, value))}{',' * (len(value) == 1)})"
    if type(value).__module__ == "builtins":
        return repr(value)
    changed = changed_parameters(value)
    method = method_of(value)
    if method:
        fixed = METHODS[method][1]
        first = [repr(method), _code(changed.pop("group", None))]
        changed = {key: part for key, part in changed.items() if key not in fixed}
        return f"make_encoder({', '.join([*first, *arguments_of(changed)])})"
    return f"{type(value).__name__}({', '.join(arguments_of(changed))})"


def arguments_of(parameters: dict[str, Any]) -> list[str]:
    """Return keyword arguments as code."""
    return [f"{key}={_code(part)}" for key, part in parameters.items()]


def changed_parameters(value: Any) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    if not hasattr(value, "get_params"):  # splitters keep their arguments as attributes
        names = inspect.signature(type(value)).parameters
        return {name: getattr(value, name) for name in names if getattr(value, name, None) is not None}
    try:
        defaults = type(value)().get_params(deep=False)
    except TypeError:  # a parameter without default
        defaults = {name: item.default for name, item in inspect.signature(type(value)).parameters.items()}
    found = value.get_params(deep=False).items()
    return {key: part for key, part in found if _differs(part, defaults.get(key))}


def _differs(value: Any, default: Any) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return not (isinstance(default, float) and math.isnan(default))
    return type(value) is not type(default) or bool(value != default)


def _public_module(value: Any) -> str:
    """Return the module that a class is usually imported from."""
    parts = type(value).__module__.split(".")
    if parts[0] in ("sufrep", "xgboost"):
        return parts[0]
    return ".".join(takewhile(lambda part: not part.startswith("_"), parts))
