"""What may be done with the column: every encoder of the registry, a peer's, or nothing."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sklearn.compose import ColumnTransformer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import TargetEncoder

from sufrep.encoders import METHODS, ContrastEncoder, ToNumbers, make_encoder
from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._compare._problem import Problem

DROP, TARGET_ENCODER, ONE_HOT = "drop", "target_encoder", "one_hot"
KNOWN_METHODS = (*METHODS, TARGET_ENCODER, DROP)
# Codings with a column for each level but one.
CODINGS = tuple(name for name, (kind, _) in METHODS.items() if kind is ContrastEncoder)
# Tables of more cells than this (of 8 bytes) are not made.
MOST_CELLS = 1e8
_INNER_FOLDS = 5


def check_methods(methods: str | Sequence[str] | None) -> list[str]:
    """The methods to compare, one-hot columns always among them, because all are held against these."""
    if methods is None:
        return list(KNOWN_METHODS)
    listed = [methods] if isinstance(methods, str) else list(methods)
    for method in listed:
        if method not in KNOWN_METHODS:
            near = get_close_matches(str(method), KNOWN_METHODS, n=1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise InvalidParameterError("methods", method, f"one of {', '.join(KNOWN_METHODS)}{meant}")
    if not listed:
        raise InvalidParameterError("methods", methods, "None for all, or a list of names")
    return list(dict.fromkeys([ONE_HOT, *listed]))


def make_steps(problem: Problem, method: str, seed: int) -> list[tuple[str, Any]]:
    """The steps of a pipeline that come before the model, not yet fitted."""
    if problem.plain:
        return [("encoder", make_first_step(problem, method, seed))]
    encoder = make_first_step(problem.behind_numbers(), method, seed)
    return [("columns", ToNumbers(keep=problem.columns)), ("encoder", encoder)]


def n_cells(problem: Problem, method: str) -> float:
    """Cells of the largest table that a method makes."""
    width = len(problem.levels) if method in CODINGS else 0
    return float(len(problem.y)) * width


def make_first_step(problem: Problem, method: str, seed: int) -> Any:
    """The encoder alone, for a table with groups where the problem says."""
    if method == DROP:
        return _beside(("encoder", "drop", problem.columns))
    if method == TARGET_ENCODER:
        kind = KFold if problem.task == "regression" else StratifiedKFold
        inner = kind(_INNER_FOLDS, shuffle=True, random_state=seed)
        encoder = TargetEncoder(target_type=problem.target_type, cv=inner)
        return _beside(("encoder", encoder, problem.columns))
    wanted = {"random_state": seed, "target_type": problem.target_type}
    known = METHODS[method][0]._parameter_constraints
    return make_encoder(method, problem.group, **{key: wanted[key] for key in wanted if key in known})


def _beside(step: tuple[str, Any, Any]) -> ColumnTransformer:
    return ColumnTransformer([step], remainder="passthrough", verbose_feature_names_out=False)
