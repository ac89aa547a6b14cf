"""What a saved file says about its steps, in a part of its manifest that is read without the rest.

`sufrep describe` prints it without loading the packages that the steps need. It is for readers only: what is
loaded does not depend on it. It does not grow with the number of levels or columns: long lists and texts are
cut, and their lengths stand next to them. `sufrep.encoders._describing` writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sufrep._archive import damaged, read_manifest
from sufrep.errors import EncoderFileError

if TYPE_CHECKING:
    import os

ENTRY = "description"
# Items of a list and characters of a text.
MOST_ITEMS = 50
MOST_LETTERS = 500
_LARGEST = 1.7e308

_LEVEL = {"level": "value", "rows": "number"}
_CHOICES = {"loss": ["number"], "standard_error": ["number"]}
# What each part holds, "?" if it may be missing: a kind of value, a list, an object, or an object with any
# keys ("*").
_FORM: dict[str, Any] = {
    "steps": ["text"],
    "encoder": "text",
    "method": "value",
    "groups": [
        {
            "name": "text",
            "n_levels": "count",
            "n_rows": "number",
            "n_columns": "count",
            "columns": ["text"],
            "first_levels": [{**_LEVEL, "values": ["number"]}],
            "least_certain": [{**_LEVEL, "relative_error": "number"}],
            "most_certain": [{**_LEVEL, "relative_error": "number"}],
        }
    ],
    "covariates": ["text"],
    "n_covariates": "count",
    "columns_needed": ["text"],
    "n_columns_needed": "count",
    "columns_made": ["text"],
    "n_columns_made": "count",
    "as_numbers": ["text"],
    "dropped": ["text"],
    "parameters": {"*": "any"},
    "reading?": {
        "decimal": "sign",
        "thousands": "value",
        "separator": "value",
        "encoding": "value",
        "kinds": {"*": "text"},
    },
    "target_type?": "text",
    "chosen?": ["text"],
    "report?": {
        "summary": "text",
        "candidates": {
            **_CHOICES,
            "candidate": ["text"],
            "gain": ["number"],
            "relative_gain": ["number"],
            "relative_error": ["number"],
            "n_rows": ["count"],
            "n_columns": ["count"],
            "chosen": ["truth"],
        },
        "components": {**_CHOICES, "component": ["text"], "contribution": ["number"]},
        "groups": {**_CHOICES, "group": ["text"], "contribution": ["number"], "chosen": ["truth"]},
    },
}


def read_description(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a file says about its steps; raise `EncoderFileError` for anything else."""
    manifest = read_manifest(path)
    if "moments" in manifest:
        what = "it holds moments, not an encoder."
        raise EncoderFileError(path, what, "`sufrep merge` and GroupMoments.load read it.")
    found = manifest.get(ENTRY)
    try:
        check_description(found)
    except ValueError as error:
        raise damaged(path, f"its contents do not fit together ({error})") from error
    described: dict[str, Any] = found  # type: ignore[assignment]
    return described


def shortened(value: Any) -> Any:
    """A value whose lists and texts are not longer than a description may hold."""
    if isinstance(value, str) and len(value) > MOST_LETTERS:
        return value[:MOST_LETTERS] + "…"
    if isinstance(value, list):
        return [shortened(part) for part in value[:MOST_ITEMS]]
    if isinstance(value, dict):
        return {shortened(key): shortened(part) for key, part in list(value.items())[:MOST_ITEMS]}
    return value


def check_description(described: Any) -> None:
    """Raise `ValueError` unless `sufrep describe` can print it."""
    if not _fits(described, _FORM):
        raise ValueError("no description of the steps")
    for group in described["groups"]:
        if any(len(first["values"]) != len(group["columns"]) for first in group["first_levels"]):
            raise ValueError("levels that are described by other columns")
    for part in ("candidates", "components", "groups") if "report" in described else ():
        if len({len(column) for column in described["report"][part].values()}) != 1:
            raise ValueError("an unknown report")


def _fits(value: Any, form: Any) -> bool:
    if isinstance(form, list):
        return isinstance(value, list) and all(_fits(part, form[0]) for part in value)
    if isinstance(form, str):
        return _fits_kind(value, form)
    if not isinstance(value, dict):
        return False
    if "*" in form:
        return all(_fits(part, form["*"]) for part in value.values())
    forms = {name.rstrip("?"): (part, name.endswith("?")) for name, part in form.items()}
    return value.keys() <= forms.keys() and all(
        _fits(value[name], part) if name in value else optional for name, (part, optional) in forms.items()
    )


def _fits_kind(value: Any, kind: str) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "truth":
            return isinstance(value, bool)
        case "count":
            return type(value) is int and value >= 0
        case "number":  # null where JSON has none
            return value is None or (type(value) in (int, float) and abs(value) <= _LARGEST)
        case "sign":
            return value in (None, ".", ",")
        case "value":
            return value is None or isinstance(value, (bool, int, float, str))
    return True
