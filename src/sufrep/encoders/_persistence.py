"""Fitted steps as files without code.

A file holds fitted steps (an encoder, often with a `ToNumbers` before it), what the reader found out about
the table that they were fitted on, and a description for people. `sufrep._archive` is the container and its
limits, `sufrep._packing` turns values into JSON and arrays, `_describing` writes the description, and here is
what the values have to be. ``docs/reference/file-format.md`` describes the format.

Files are untrusted input: whatever is in one, `load_steps` returns steps that work, or raises an
`EncoderFileError`.
"""

from __future__ import annotations

import copy
import itertools
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sufrep._archive import archive_of, damaged, first_line, read_archive
from sufrep._atomic import replace_file
from sufrep._description import ENTRY, check_description
from sufrep._files import TableReading
from sufrep._packing import Unpacker, check_levels
from sufrep.encoders._describing import describe_steps, input_names
from sufrep.encoders._inputs import READING, Covariate, Layout, OutputColumn
from sufrep.encoders._nesting import Links
from sufrep.encoders._packing import RECORDS, EncoderPacker
from sufrep.encoders._to_numbers import KINDS, ToNumbers
from sufrep.errors import EncoderFileError, NotSavableError, UnseenLevelError
from sufrep.moments import GroupMoments
from sufrep.representation import Representation
from sufrep.solvers.nesting import StatesTier, Tier
from sufrep.solvers.new_levels import DiscriminantRule, LinearRule, StatesRule

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

# Versions of the kinds of records and steps that are not at their first. Whoever changes the fields of one
# adds it here, and to `_unpack_steps` what turns the old fields into the new.
_VERSIONS: dict[str, int] = {}
# Encoders in a file, and characters in the names of the columns that one makes. Both can be far more than a
# file has bytes worth of work (test_every_bomb_is_refused_within_two_seconds_and_200_mb).
_MOST_ESTIMATORS = 200
_MOST_LETTERS = 1 << 26
_OUTPUTS = (None, "default", "pandas", "polars")
# Dates as text, for a trial.
_DATES = {"date": "2024-02-29", "date with zone": "2024-02-29T00:00:00+00:00"}


def save_steps(steps: Sequence[tuple[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write fitted steps and their names, completely or not at all.

    Each step takes what the one before returns.
    """
    fitted = [step for _, step in steps]
    for step in fitted:
        check_is_fitted(step)
    packer = EncoderPacker()
    packed: dict[str, Any] = {
        "steps": [
            {"name": name, **packer.pack_estimator(step, leave_out=(READING,))} for name, step in steps
        ],
        "reading": packer.pack(getattr(fitted[0], READING, None), "How the table was read"),
    }
    versions = {name: _VERSIONS.get(name, 1) for name in sorted(packer.records)}
    try:
        _check_number(packer.n_estimators)
        for step in fitted:
            _check_letters(step)
        packed[ENTRY] = describe_steps(fitted)
        content = archive_of({"versions": versions, **packed}, packer.arrays)
    except (ValueError, RecursionError) as error:
        raise NotSavableError(f"Not all that the encoder knows ({error})", fitted[-1]) from error
    replace_file(Path(path), content)


def load_steps(path: str | os.PathLike[str], classes: Mapping[str, type]) -> list[tuple[str, Any]]:
    """Read the steps of a file and their names; their classes must be among ``classes``."""
    manifest, arrays = read_archive(path)
    if "moments" in manifest:
        raise EncoderFileError(
            path,
            "it holds moments, not an encoder.",
            "GroupMoments.load(path) reads it, and fit_moments of an encoder learns from it.",
        )
    versions = manifest.get("versions")
    if not isinstance(versions, dict) or not isinstance(manifest.get("steps"), list):
        raise damaged(path, "its manifest holds no steps")
    _check_versions(path, versions, classes)
    try:
        return _unpack_steps(manifest, arrays, versions, classes)
    # A crafted file can make constructors of records raise anything.
    except Exception as error:
        raise damaged(path, f"its contents do not fit together ({first_line(error)})") from error


def _check_versions(path: object, versions: Mapping[str, Any], classes: Mapping[str, type]) -> None:
    known = {cls.__name__ for cls in RECORDS} | set(classes)
    for name, version in versions.items():
        if name not in known:
            what = f"it holds a {name[:40]!r}, which this version does not know."
            raise EncoderFileError(path, what, "install the sufrep that wrote it.")
        newest = _VERSIONS.get(name, 1)
        if type(version) is not int or not 1 <= version <= newest:
            what = f"it holds a {name} of version {str(version)[:20]}; this sufrep reads up to {newest}."
            raise EncoderFileError(path, what, "upgrade sufrep, or save the encoder again with this version.")


def _unpack_steps(
    manifest: Mapping[str, Any], arrays: list[Any], versions: Mapping[str, int], classes: Mapping[str, type]
) -> list[tuple[str, Any]]:
    count = itertools.count(1)

    def restore(packed: Mapping[str, Any]) -> Any:
        _check_number(next(count))
        return _restore(packed, unpacker, classes)

    unpacker = Unpacker(arrays, versions, RECORDS, restore)
    steps = [(packed["name"], restore(packed)) for packed in manifest["steps"]]
    reading = unpacker.unpack(manifest["reading"])
    unpacker.finish()
    _check_order(steps)
    check_description(manifest[ENTRY])
    if reading is not None:
        if not isinstance(reading, TableReading):
            raise ValueError("another record in the place of the reading")
        reading.check()
        setattr(steps[0][1], READING, reading)
    return steps


def _check_order(steps: Sequence[tuple[str, Any]]) -> None:
    """Raise unless the steps make a pipeline: with names, and each for the columns of the one before."""
    names = [name for name, _ in steps]
    if not steps or not _all_are(str, names) or len(set(names)) < len(names) or any("__" in n for n in names):
        raise ValueError("no steps, or steps without names")
    for (_, step), (_, following) in itertools.pairwise(steps):
        made = step.get_feature_names_out().tolist()
        known = getattr(following, "feature_names_in_", None)
        if following.n_features_in_ != len(made) or (known is not None and list(known) != made):
            raise ValueError("a step for other columns than the one before returns")


def _check_number(n_estimators: int) -> None:
    if n_estimators > _MOST_ESTIMATORS:
        raise ValueError(f"more than {_MOST_ESTIMATORS} encoders")


def _restore(packed: Mapping[str, Any], unpacker: Unpacker, classes: Mapping[str, type]) -> Any:
    """Reverse `EncoderPacker.pack_estimator`, and check that the estimator works."""
    unpacker.check_known(packed["class"])
    cls = classes[packed["class"]]
    parameters, fitted = (
        {key: unpacker.unpack(value) for key, value in packed[part].items()}
        for part in ("parameters", "fitted")
    )
    estimator: Any = cls(**parameters)
    estimator._validate_params()
    if not all(key.endswith("_") and key[0] != "_" and not hasattr(cls, key) for key in fitted):
        raise ValueError("attributes that no fit sets")
    estimator.__dict__.update(fitted)
    if not all(type(fitted.get(key, "")) is str for key in ("frame_library_", "target_name_")):
        raise ValueError("another value in the place of a name")
    check_is_fitted(estimator)
    if hasattr(estimator, "representations_"):
        _check_encoder(estimator)
    else:
        _check_columns(estimator)
    output = packed["output"]
    if output not in _OUTPUTS:
        raise ValueError("an unknown container in place of the output")
    estimator.set_output(transform=output)
    return estimator


# Whether the parts fit together


def _check_columns(step: Any) -> None:
    """Raise if a fitted step without a table of levels could not transform rows."""
    marks = step.kinds_ if isinstance(step, ToNumbers) else step.kept_.tolist()
    named = getattr(step, "feature_names_in_", np.empty(0)).tolist()
    if step.n_features_in_ != len(marks) or len(named) not in (0, len(marks)) or not _all_are(str, named):
        raise ValueError("other columns than those that the step was fitted to")
    row = np.zeros((1, len(marks)), dtype=object)
    if isinstance(step, ToNumbers):
        row[0] = _typical_row(step)
    elif not _all_are(bool, marks):
        raise ValueError("no columns that are kept")
    _check_letters(step)
    names = step.get_feature_names_out().tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if len(set(names)) < len(names) or copy.copy(step).transform(row).shape != (1, len(names)):
            raise ValueError("other columns than those that it names")


def _typical_row(step: ToNumbers) -> list[Any]:
    """A value of the kind of each column, after a check that the kinds fit what was learnt of them."""
    kinds, levels = step.kinds_, step.levels_
    if not set(kinds) <= set(KINDS) or list(levels) != [j for j, kind in enumerate(kinds) if kind == "text"]:
        raise ValueError("an unknown kind of column")
    columns = zip(input_names(step), kinds, strict=True)
    if step.dropped_ != [name for name, kind in columns if kind == "dropped"]:
        raise ValueError("other columns than those that are dropped")
    for found in levels.values():
        check_levels("A column of text", found.tolist())
    return [levels[j][0] if kind == "text" else _DATES.get(kind, 0) for j, kind in enumerate(kinds)]


def _check_encoder(encoder: Any) -> None:
    """Raise if a fitted encoder could not encode rows."""
    layout, tables = encoder.layout_, encoder.representations_
    if not isinstance(layout, Layout) or not _all_are(Representation, tables.values()):
        raise ValueError("no tables of levels")
    n_columns = len(layout.names)
    positions = [*layout.covariates, *layout.shares, *layout.kept]
    positions += [*sum(layout.groups, ()), *sum(layout.parents, ())]
    covariates, outputs = encoder.covariates_, encoder.outputs_
    if not (_all_are(Covariate, covariates) and _all_are(OutputColumn, outputs)):
        raise ValueError("no columns")
    covariates = [*covariates, *(output.covariate for output in outputs if output.covariate is not None)]
    positions += [place for output in outputs for place in output.columns]
    positions += [covariate.position for covariate in covariates if covariate.position is not None]
    if not all(type(place) is int and 0 <= place < n_columns for place in positions):
        raise ValueError("a column that is not there")
    names = getattr(encoder, "feature_names_in_", None)
    if encoder.n_features_in_ != n_columns or not (names is None or tuple(names) == layout.names):
        raise ValueError("other columns than the layout has")
    groups = layout.group_names(layout.names)
    if list(tables) != groups:
        raise ValueError("tables of other groups")
    for name, place in getattr(encoder, "pooled_positions_", {}).items():
        n_levels = tables[name].n_levels
        if (
            place.dtype.kind != "i"
            or place.shape != (n_levels,)
            or not ((place >= 0) & (place < n_levels)).all()
        ):
            raise ValueError("levels pooled into one that is not there")
    for name, moments in getattr(encoder, "moments_", {}).items():
        if type(moments) is not GroupMoments or moments.n_levels != tables[name].n_levels:
            raise ValueError("moments of other levels")
        _check_moments(moments, len(encoder.covariates_))
        if moments.target is not None:
            moments.target.check()
    for name, errors in getattr(encoder, "standard_errors_", {}).items():
        n_distinct = int(encoder.pooled_positions_[name].max()) + 1
        if errors.dtype != np.float64 or errors.shape != (n_distinct, tables[name].values.shape[1]):
            raise ValueError("errors of other vectors")
    _check_parents(encoder)
    for rule in getattr(encoder, "new_levels_", {}).values():
        if rule is None:
            continue
        if type(rule) not in (LinearRule, DiscriminantRule, StatesRule):
            raise ValueError("no rule for new levels")
        if not rule.fits(len(encoder.covariates_)):
            raise ValueError("a rule for new levels with other covariates")
    _check_letters(encoder)
    _check_report(encoder)
    _encode_two_rows(encoder, layout)


def _check_moments(moments: GroupMoments, n_covariates: int) -> None:
    """Raise if new rows could not be compared with these moments."""
    levels, covariates = (moments.n_levels,), (n_covariates,)
    shapes = {"weight": levels, "observed": levels + covariates, "mean": levels + covariates}
    if moments.order == 2:
        shapes |= {"squares": covariates, "scatter": covariates * 2, "complete_weight": levels}
        shapes["complete_mean"] = levels + covariates
    tables = {name: getattr(moments, name) for name in shapes}
    if len(moments.covariates) != n_covariates or not all(
        isinstance(table, np.ndarray) and table.dtype.kind == "f" and table.shape == shapes[name]
        for name, table in tables.items()
    ):
        raise ValueError("moments of other covariates")


def _check_parents(encoder: Any) -> None:
    """Raise if levels are in parents that could not be looked up."""
    layout, links = encoder.layout_, getattr(encoder, "parents_", {})
    given = dict(zip(encoder.representations_, layout.parents, strict=True)) if layout.parents else {}
    if {group: len(steps) for group, steps in links.items()} != {
        group: len(columns) for group, columns in given.items() if columns
    }:
        raise ValueError("parents of other groups")
    if links and "on_conflict" not in vars(encoder):
        raise ValueError("parents for an encoder that knows none")
    for steps in links.values():
        if not isinstance(steps, tuple) or not _all_are(Links, steps):
            raise ValueError("no parents")
        for step in steps:
            step.check()
    for group, rule in getattr(encoder, "new_levels_", {}).items():
        tiers, kind = getattr(rule, "tiers", ()), StatesTier if type(rule) is StatesRule else Tier
        if not isinstance(tiers, tuple) or not _all_are(kind, tiers):
            raise ValueError("no tiers")
        n_columns = encoder.representations_[group].values.shape[1]
        if kind is StatesTier and any(tier.shares.shape[1] != n_columns for tier in tiers):
            raise ValueError("tiers of other states")
        if rule is not None and len(tiers) != len(links.get(group, ())):
            raise ValueError("tiers of other parents")


def _check_letters(step: Any) -> None:
    """Raise if the names of the new columns would fill the memory: each may repeat a long name."""
    if sum(map(len, _repeated_names(step))) > _MOST_LETTERS:
        raise ValueError("the names of its columns are too long")


def _repeated_names(step: Any) -> Iterator[str]:
    """The names of columns, as often as the new columns repeat them."""
    names = input_names(step)
    if isinstance(step, ToNumbers):
        for position, levels in step.levels_.items():
            yield from itertools.repeat(names[position], len(levels))
    for output in vars(step).get("outputs_", ()):
        yield from (names[position] for position in output.columns)
        if output.covariate is not None and output.covariate.position is not None:
            yield names[output.covariate.position]


# The lists of a report, and what they hold.
_REPORTS: dict[str, dict[str, type]] = {
    "candidates": {
        "candidate": str,
        "loss": float,
        "gain": float,
        "standard_error": float,
        "relative_gain": float,
        "relative_error": float,
        "n_rows": int,
        "n_columns": int,
        "chosen": bool,
    },
    "components": {"component": str, "loss": float, "contribution": float, "standard_error": float},
    "groups": {"group": str, "loss": float, "contribution": float, "standard_error": float, "chosen": bool},
}


def _check_report(encoder: Any) -> None:
    """Raise if what the encoder says about its fit is not what `sufrep describe` expects."""
    if getattr(encoder, "target_type_", "binary") not in ("continuous", "binary", "multiclass"):
        raise ValueError("an unknown kind of target")
    if not hasattr(encoder, "report_"):
        return
    report, chosen = encoder.report_, encoder.chosen_
    if type(report["summary"]) is not str or report.keys() != {"summary", *_REPORTS}:
        raise ValueError("an unknown report")
    for name, kinds in _REPORTS.items():
        lists = report[name]
        n_rows = len(lists[next(iter(kinds))])
        if lists.keys() != kinds.keys() or not all(
            len(lists[key]) == n_rows and _all_are(kind, lists[key]) for key, kind in kinds.items()
        ):
            raise ValueError("an unknown report")
    if not isinstance(chosen, tuple) or not _all_are(str, chosen):
        raise ValueError("an unknown choice")


def _all_are(kind: type, values: Any) -> bool:
    return all(type(value) is kind for value in values)


def _encode_two_rows(encoder: Any, layout: Layout) -> None:
    """Encode a row with the first level of each group, and one with a level that was never seen.

    What is not checked by name, such as what was learnt in addition to the table, is used here for the first
    time; so a file that is read is one whose encoder works.
    """
    rows = np.zeros((2, len(layout.names)), dtype=object)
    for group, table in zip(layout.groups, encoder.representations_.values(), strict=True):
        level = table.levels[0] if len(group) > 1 else (table.levels[0],)
        for place, value in zip(group, level, strict=True):
            rows[0, place] = value
            rows[1, place] = f"{value}\0"
    trial = copy.copy(encoder)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            encoded = trial.transform(rows)
        except UnseenLevelError:
            rows = rows[:1]
            encoded = trial.transform(rows)
        if encoded.shape != (len(rows), len(trial.get_feature_names_out())):
            raise ValueError("other columns than those that it names")
