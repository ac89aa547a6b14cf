"""Files: what is saved comes back as it was, also an encoder of encoders; what is damaged is refused."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

import sufrep
from sufrep import (
    ContrastEncoder,
    DropColumns,
    FisherEncoder,
    LocalEffectEncoder,
    LowRankEncoder,
    MeansEncoder,
    MixedModelEncoder,
    MNLEncoder,
    RandomInterceptEncoder,
    SparseLowRankEncoder,
    SufficientEncoder,
    ToNumbers,
)
from sufrep._archive import _Index, json_of
from sufrep._description import read_description
from sufrep.encoders import METHODS, GroupEncoder
from sufrep.errors import (
    EncoderFileError,
    ForeignStepError,
    InvalidParameterError,
    NotSavableError,
    UnseenLevelError,
)

# A search whose learner can be saved; what else may be chosen follows below.
QUICK = {
    "sufficient": {"families": ()},
    "latent_state": {"n_states": 2},
}

LEVELS: dict[str, list[Any]] = {
    "str": ["north", "", "a:b", '"quoted"\n', "$array"],
    "int": [-3, 0, 7, 98178],
    "float": [-0.5, 0.1 + 0.2, 1e300, float("inf")],
    "bool": [True, False],
    "null": ["a", None],
    "date": [dt.date(2024, 2, 29), dt.date(1, 1, 1)],
    "datetime": [dt.datetime(2024, 2, 29, 23, 59, 59, 999_999), dt.datetime(1999, 1, 1)],
    "datetime with zone": [
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))),
    ],
    "time": [dt.time(12, 30), dt.time(0, 0, 1)],
    "timedelta": [dt.timedelta(days=-1, microseconds=1), dt.timedelta(weeks=3)],
    "bytes": [b"", b"\x00\xff", b"abc"],
    "decimal": [Decimal("0.10"), Decimal("-1E+30")],
    "huge int": [2**200, -(2**200), 2**53 + 1],
    "emoji": ["🦆", "naïve 🇨🇭", "\u202eright to left", "\x00"],
    "mixed": ["1", 1, 2.5, None, dt.date(2024, 1, 1), b"1"],
}


def make_encoder(method: str, group: Any = None, **parameters: Any) -> GroupEncoder:
    return sufrep.make_encoder(method, group, **{**QUICK.get(method, {}), **parameters})


def rows_of(levels: list[Any], n_repeats: int = 4) -> pd.DataFrame:
    """Rows with each level several times next to two covariates."""
    group = np.empty(len(levels) * n_repeats, dtype=object)
    group[:] = levels * n_repeats
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "g": pd.Series(group, dtype=object),
            "x": rng.normal(size=len(group)),
            "z": rng.normal(size=len(group)),
        }
    )


def target_of(rows: pd.DataFrame) -> np.ndarray:
    return np.random.default_rng(1).normal(size=len(rows))


def same(one: Any, other: Any) -> bool:
    """Equal to the bit and in type, all the way down."""
    if isinstance(one, tuple | list):
        pairs = zip(one, other, strict=False)
        return type(one) is type(other) and len(one) == len(other) and all(same(a, b) for a, b in pairs)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if is_dataclass(one):
        own = [field.name for field in fields(one) if field.init]
        return type(one) is type(other) and all(same(getattr(one, n), getattr(other, n)) for n in own)
    if isinstance(one, GroupEncoder):
        parts = [(encoder.get_params(), fitted_attributes(encoder)) for encoder in (one, other)]
        return type(one) is type(other) and same(*parts)
    if sparse.issparse(one):
        return sparse.issparse(other) and one.format == other.format and same(one.toarray(), other.toarray())
    if isinstance(one, np.ndarray):
        if one.dtype == object:
            return other.dtype == object and same(one.tolist(), other.tolist())
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return one == other and isinstance(other, type(one)) and hash(one) == hash(other)


def fitted_attributes(encoder: GroupEncoder) -> dict[str, Any]:
    return {key: value for key, value in vars(encoder).items() if key.endswith("_")}


def assert_same_attributes(one: GroupEncoder, other: GroupEncoder) -> None:
    found, expected = fitted_attributes(one), fitted_attributes(other)
    assert set(found) == set(expected)
    assert [key for key in found if not same(found[key], expected[key])] == []


def assert_round_trip(encoder: GroupEncoder, rows: Any, path: Path) -> GroupEncoder:
    encoder.save(path)
    loaded = sufrep.load(path)
    assert type(loaded) is type(encoder)
    assert same(loaded.get_params(), encoder.get_params())
    assert_same_attributes(loaded, encoder)
    one, other = encoder.transform(rows), loaded.transform(rows)
    np.testing.assert_array_equal(sparse.csr_array(one).toarray(), sparse.csr_array(other).toarray())
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    return loaded


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of files need not reach the disk before a test goes on."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "encoder.sufrep"


@pytest.fixture
def saved(file: Path) -> Path:
    """A small encoder with arrays, text and a null level."""
    rows = rows_of(["a", "b", None])
    LowRankEncoder("g", n_components=2).fit(rows).save(file)
    return file


def rewrite(path: Path, change: Any) -> None:
    """Write the archive again after ``change`` of its members, a dict of str to bytes."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    write_members(path, members)


def write_members(path: Path, members: dict[str, bytes]) -> None:
    index = _Index()
    parts = [index.add(name, zlib.crc32(data), len(data)) + data for name, data in members.items()]
    path.write_bytes(b"".join([*parts, index.directory()]))


def change_manifest(path: Path, change: Any) -> None:
    """Write the archive again after ``change`` of its manifest, a dict."""

    def change_members(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        change(manifest)
        members["manifest.json"] = json_of(manifest)

    rewrite(path, change_members)


def set_entry(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change that sets an entry, or takes it away if the value is None."""

    def change(part: dict[str, Any]) -> None:
        part[name] = value
        if value is None:
            del part[name]

    return change


@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
def test_every_type_of_level_comes_back(levels, file):
    rows = rows_of(levels)
    assert_round_trip(make_encoder("means", "g").fit(rows), rows, file)
    # One-hot columns are named after their levels, which must not print alike, as "1" and 1 do.
    if levels is not LEVELS["mixed"]:
        assert_round_trip(make_encoder("one_hot", "g").fit(rows), rows, file)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_with_several_and_crossed_groups_comes_back(method, file):
    rows = rows_of(["a", 1, None, dt.date(2024, 1, 1)]).assign(h=[1, 2] * 8)
    encoder = make_encoder(method, ["g", ("g", "h")], covariates=["x", "z"]).fit(rows, target_of(rows))
    assert_round_trip(encoder, rows, file)


@pytest.mark.parametrize(
    "encoder",
    [
        MeansEncoder(0, covariates=[1], remainder="drop", unseen="error", missing="prior", min_frequency=2),
        MeansEncoder(0, min_frequency=0.25),
        ContrastEncoder(0, sparse_output=True),
        FisherEncoder(0, target_type="multiclass"),
        FisherEncoder(0, cv=[(np.arange(5), np.arange(5, 12)), (np.arange(5, 12), np.arange(5))]),
        MNLEncoder(0, solver="lda", penalty=0.5),
        SparseLowRankEncoder(0, alpha=0.2, n_components=1, standardize=False),
    ],
    ids=repr,
)
def test_parameters_come_back(encoder, file):
    rows = rows_of(["a", "b", "c"])
    y = np.arange(12) % 3 if getattr(encoder, "target_type", "") == "multiclass" else target_of(rows)
    loaded = assert_round_trip(encoder.fit(rows, y), rows, file)
    assert same(clone(loaded).get_params(), encoder.get_params())


def test_arrays_without_names_come_back(file):
    rows = np.array([["a", 1.0], ["b", 2.0]], dtype=object)
    loaded = assert_round_trip(MeansEncoder(0).fit(rows), rows, file)
    assert not hasattr(loaded, "feature_names_in_")
    assert loaded.get_feature_names_out(["g", "x"]).tolist() == ["x", "g_mean_x"]


def test_shares_of_text_columns_come_back(file):
    rows = rows_of(["a", "b"]).assign(colour=["red", "blue", None, "red"] * 2)
    encoder = LowRankEncoder("g", categorical_covariates="share", remainder="drop").fit(rows)
    assert_round_trip(encoder, rows, file)


def test_an_encoder_without_groups_comes_back(file):
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert_round_trip(MeansEncoder().fit(rows), rows, file)


@pytest.mark.parametrize(
    "method", [method for method in METHODS if hasattr(make_encoder(method), "partial_fit")]
)
def test_a_loaded_encoder_goes_on_learning(method, file):
    rows = rows_of(["a", "b", None, "c"])
    y = target_of(rows)
    encoder = make_encoder(method, "g").fit(rows[:6], y[:6])
    encoder.save(file)
    loaded = sufrep.load(file).partial_fit(rows[6:], y[6:])
    expected = encoder.partial_fit(rows[6:], y[6:])
    assert_same_attributes(loaded, expected)
    np.testing.assert_array_equal(loaded.transform(rows), expected.transform(rows))


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Zurich"])
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_timestamps_of_pandas_are_found_again(zone, unit, file):
    days = pd.to_datetime(["2024-03-31 01:30:00", "1969-12-31 00:00:00", "2024-10-27 00:00:00"] * 2).as_unit(
        unit
    )
    rows = pd.DataFrame({"g": days.tz_localize(zone), "x": np.arange(6.0)})
    encoder = MeansEncoder("g").fit(rows)
    encoder.save(file)
    np.testing.assert_array_equal(sufrep.load(file).transform(rows), encoder.transform(rows))


def test_timedeltas_of_pandas_are_found_again(file):
    rows = pd.DataFrame({"g": pd.to_timedelta([1, 2, 1, 2], unit="h"), "x": np.arange(4.0)})
    encoder = MeansEncoder("g").fit(rows)
    encoder.save(file)
    np.testing.assert_array_equal(sufrep.load(file).transform(rows), encoder.transform(rows))


@pytest.mark.parametrize(
    "group",
    [pd.to_datetime([1, 2, 1, 2], unit="ns"), pd.to_timedelta([1, 2, 1, 2], unit="ns")],
    ids=["time", "span"],
)
def test_nanoseconds_come_back_or_are_refused(group, file):
    rows = pd.DataFrame({"g": group, "x": np.arange(4.0)})
    encoder = MeansEncoder("g").fit(rows)
    try:
        encoder.save(file)
    except NotSavableError:
        assert not file.exists()
    else:
        np.testing.assert_array_equal(sufrep.load(file).transform(rows), encoder.transform(rows))


def test_dates_of_polars_are_found_again(file):
    days = pl.Series([dt.date(2024, 1, 1), dt.date(2024, 1, 2)] * 2)
    rows = pl.DataFrame({"g": days, "h": days.cast(pl.Datetime("us", "UTC")), "x": np.arange(4.0)})
    encoder = MeansEncoder(["g", "h"]).fit(rows)
    encoder.save(file)
    np.testing.assert_array_equal(sufrep.load(file).transform(rows), encoder.transform(rows))


def test_text_that_utf8_lacks_comes_back_or_is_refused(file):
    rows = np.array([["\ud800", 1.0], ["b", 2.0]], dtype=object)
    encoder = MeansEncoder(0).fit(rows)
    try:
        encoder.save(file)
    except NotSavableError:
        assert not file.exists()
    else:
        np.testing.assert_array_equal(sufrep.load(file).transform(rows), encoder.transform(rows))


def test_an_encoder_that_is_not_fitted_is_not_saved(file):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        MeansEncoder("g").save(file)
    assert not file.exists()


def test_objects_among_the_parameters_are_refused(file):
    encoder = FisherEncoder("g", cv=KFold(3)).fit(rows_of(["a", "b"]), np.linspace(0.5, 1, 8))
    with pytest.raises(
        NotSavableError, match=r"The parameter 'cv' is KFold.*cannot be saved.*\nHint: use plain"
    ):
        encoder.save(file)
    assert list(file.parent.iterdir()) == []


def test_levels_of_unknown_types_are_refused(file):
    encoder = MeansEncoder("g").fit(rows_of([frozenset("a"), frozenset("b")]))
    with pytest.raises(NotSavableError, match=r"is frozenset.*cannot be saved without pickle"):
        encoder.save(file)
    assert list(file.parent.iterdir()) == []


def test_paths_may_be_text(tmp_path):
    rows = rows_of(["a"])
    MeansEncoder("g").fit(rows).save(str(tmp_path / "a"))
    assert sufrep.load(str(tmp_path / "a")).transform(rows).shape == (4, 4)


def test_files_hold_no_code(saved):
    with zipfile.ZipFile(saved) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        names = [f"{number}.bin" for number in range(len(manifest["arrays"]))]
        assert archive.namelist() == ["manifest.json", *names]
        for name, described in zip(names, manifest["arrays"], strict=True):
            assert np.dtype(described["dtype"]).kind in "biuf"
            assert np.frombuffer(archive.read(name), described["dtype"]).size == np.prod(described["shape"])


def test_equal_encoders_are_equal_files(tmp_path):
    rows = rows_of(["a", "b", None])
    one, other = SparseLowRankEncoder("g").fit(rows), SparseLowRankEncoder("g").fit(rows)
    one.save(tmp_path / "one")
    other.fit(rows).save(tmp_path / "other")
    sufrep.load(tmp_path / "one").save(tmp_path / "again")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "again").read_bytes()


def test_equal_encoders_are_equal_files_in_every_process(tmp_path):
    # Sets of names iterate in an order that differs between processes.
    script = (
        "import sys, numpy as np, sufrep\n"
        "rows = np.column_stack([np.arange(40) % 4, np.random.default_rng(0).normal(size=(40, 3))])\n"
        "sufrep.SparseLowRankEncoder(0, n_components=2).fit(rows).save(sys.argv[1])\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / seed)], env={**os.environ, "PYTHONHASHSEED": seed}
        )
        for seed in ("0", "5")
    ]
    assert [process.wait() for process in processes] == [0, 0]
    assert (tmp_path / "0").read_bytes() == (tmp_path / "5").read_bytes()


def test_a_file_is_replaced(file):
    MeansEncoder("g").fit(rows_of(["a"])).save(file)
    MeansEncoder("g").fit(rows_of(["b"])).save(file)
    assert sufrep.load(file).representations_["g"].levels.tolist() == ["b"]


@pytest.mark.parametrize(
    "failure", [OSError("disk full"), KeyboardInterrupt("stop")], ids=["full", "interrupted"]
)
@pytest.mark.parametrize("step", ["write", "sync", "rename"])
def test_a_crash_leaves_the_old_file_and_nothing_else(step, failure, saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise failure

    target = {
        "write": (Path, "chmod"),
        "sync": (os, "fsync"),
        "rename": (Path, "replace"),
    }
    monkeypatch.setattr(*target[step], fail)
    with pytest.raises(type(failure), match=str(failure)):
        MeansEncoder("g").fit(rows_of(["new"])).save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_new_file_has_the_usual_permissions(file, tmp_path):
    MeansEncoder("g").fit(rows_of(["a"])).save(file)
    usual = tmp_path / "usual"
    usual.write_text("")
    assert file.stat().st_mode == usual.stat().st_mode


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sufrep.load(tmp_path / "nowhere")


def test_a_file_cut_off_anywhere_is_refused(saved):
    whole = saved.read_bytes()
    assert len(whole) > 1000
    for length in [*range(0, len(whole), 7), *range(len(whole) - 50, len(whole))]:
        saved.write_bytes(whole[:length])
        with pytest.raises(EncoderFileError, match="Hint: "):
            sufrep.load(saved)


def test_a_file_with_any_byte_changed_is_refused(saved):
    whole = saved.read_bytes()
    # All bytes of the headers at both ends, and a few in between.
    positions = sorted({*range(60), *range(60, len(whole), 23), *range(len(whole) - 200, len(whole))})
    for position in positions:
        for flip in (0x01, 0xFF):
            damaged = bytearray(whole)
            damaged[position] ^= flip
            saved.write_bytes(damaged)
            with pytest.raises(EncoderFileError, match="Hint: "):
                sufrep.load(saved)


@pytest.mark.parametrize(
    "contents", [b"", b"level,mean\na,1\n", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), bytes(5000)]
)
def test_files_of_other_kinds_are_refused(contents, file):
    file.write_bytes(contents)
    with pytest.raises(EncoderFileError, match=r"Cannot read .*encoder\.sufrep.*\nHint: "):
        sufrep.load(file)


@pytest.mark.parametrize(
    "manifest", [None, "[]", "{}", "not json", '{"format": "zip", "version": 1}', "\x00\xff"]
)
def test_archives_of_other_programs_are_refused(manifest, file):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")
        if manifest is not None:
            archive.writestr("manifest.json", manifest)
    with pytest.raises(EncoderFileError, match=r"it is not a file of sufrep.*\nHint: "):
        sufrep.load(file)


def test_files_of_a_newer_format_are_refused(saved):
    change_manifest(saved, set_entry("version", 2))
    with pytest.raises(
        EncoderFileError, match=r"format version 2; this sufrep reads version 1.*\nHint: upgrade"
    ):
        sufrep.load(saved)


def test_files_of_a_newer_record_are_refused(saved):
    change_manifest(saved, lambda manifest: manifest["versions"].update(Representation=2))
    with pytest.raises(
        EncoderFileError, match=r"holds a Representation of version 2; this sufrep reads up to 1.*\nHint: up"
    ):
        sufrep.load(saved)


def test_records_that_the_manifest_does_not_list_are_refused(saved):
    change_manifest(saved, lambda manifest: manifest["versions"].pop("Representation"))
    with pytest.raises(EncoderFileError, match="'Representation', which its manifest does not list"):
        sufrep.load(saved)


def test_files_of_unknown_encoders_are_refused(saved):
    change_manifest(saved, lambda manifest: manifest["versions"].update(WonderEncoder=1))
    with pytest.raises(EncoderFileError, match=r"holds a 'WonderEncoder'.*\nHint: install"):
        sufrep.load(saved)


MIXED = rows_of(["a", "b", None]).assign(
    colour=["red", "blue", None] * 4, sold=[f"2024-0{1 + row % 3}-13" for row in range(12)]
)


@pytest.mark.parametrize("last", [MeansEncoder("g"), DropColumns("g"), MixedModelEncoder("g")], ids=repr)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas, lambda rows: rows.to_numpy(object)])
def test_a_pipeline_comes_back_with_all_its_steps(last, library, file):
    rows = library(MIXED)
    named = not isinstance(rows, np.ndarray)
    numbers = ToNumbers(keep="g" if named else 0)
    # In an array, the kept column comes first.
    last = clone(last).set_params(
        **{"columns" if isinstance(last, DropColumns) else "group": "g" if named else 0}
    )
    steps = Pipeline([("numbers", numbers), ("last", last)]).fit(rows, target_of(MIXED))
    sufrep.save(steps, file)
    loaded = sufrep.load(file)
    assert isinstance(loaded, Pipeline)
    assert list(loaded.named_steps) == ["numbers", "last"]
    np.testing.assert_array_equal(np.asarray(loaded.transform(rows)), np.asarray(steps.transform(rows)))
    assert loaded.get_feature_names_out().tolist() == steps.get_feature_names_out().tolist()
    sufrep.save(loaded, file.with_name("again"))
    assert file.with_name("again").read_bytes() == file.read_bytes()


def test_a_pipeline_of_one_step_comes_back_as_that_step(file):
    sufrep.save(Pipeline([("only", MeansEncoder("g"))]).fit(rows_of(["a", "b"])), file)
    assert isinstance(sufrep.load(file), MeansEncoder)


def test_steps_that_are_not_fitted_are_not_saved(file):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        sufrep.save(Pipeline([("numbers", ToNumbers()), ("means", MeansEncoder("g"))]), file)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Ridge(), r"'last' is Ridge\(\), which is no encoder of sufrep.*\nHint: save the steps before it"),
        (StandardScaler(), r"'last' is StandardScaler\(\).*\nHint: save the steps of sufrep alone"),
        (TargetEncoder(), r"\nHint: MeansEncoder\(group, covariates=\[\], use_target=True\) is sufrep's"),
        (ColumnTransformer([("e", TargetEncoder(), ["g"])]), r"\nHint: MeansEncoder\(group, covariates=\[\]"),
    ],
    ids=repr,
)
def test_steps_of_other_libraries_are_refused_with_what_to_do(step, text, file):
    steps = Pipeline([("means", MeansEncoder("g").fit(rows_of(["a", "b"]))), ("last", step)])
    with pytest.raises(ForeignStepError, match=text):
        sufrep.save(steps, file)
    assert list(file.parent.iterdir()) == []


@pytest.fixture
def mixed_file(file: Path) -> Path:
    """`ToNumbers`, then means."""
    sufrep.save(Pipeline([("numbers", ToNumbers(keep="g")), ("means", MeansEncoder("g"))]).fit(MIXED), file)
    return file


@pytest.mark.parametrize(
    "change",
    {
        "no name": lambda steps: steps[0].pop("name"),
        "a number as name": lambda steps: steps[0].update(name=3),
        "the same name": lambda steps: steps[0].update(name="means"),
        "a name for parameters": lambda steps: steps[0].update(name="a__b"),
        "another order": lambda steps: steps.reverse(),
        "one step twice": lambda steps: steps.insert(0, steps[0]),
        "columns of others": lambda steps: steps.pop(1) and steps.append(steps[0]),
        "an unknown kind": lambda steps: steps[0]["fitted"]["kinds_"].__setitem__(1, "colour"),
        "a kind without levels": lambda steps: steps[0]["fitted"]["kinds_"].__setitem__(1, "text"),
        "fewer kinds": lambda steps: steps[0]["fitted"]["kinds_"].pop(),
        "no levels": lambda steps: steps[0]["fitted"].update(levels_={"$dict": [[3, {"$levels": []}]]}),
        "a level twice": lambda steps: steps[0]["fitted"].update(
            levels_={"$dict": [[3, {"$levels": ["red", "red", None]}]]}
        ),
        "levels of another column": lambda steps: steps[0]["fitted"].update(
            levels_={"$dict": [[2, {"$levels": ["red", "blue", None]}]]}
        ),
        "other levels": lambda steps: steps[0]["fitted"].update(levels_={"$dict": [[3, {"$levels": ["x"]}]]}),
        "other dropped columns": lambda steps: steps[0]["fitted"].update(dropped_=["x"]),
        "a trillion columns": lambda steps: steps[0]["fitted"].update(n_features_in_=10**12),
    }.items(),
    ids=lambda change: change[0],
)
def test_steps_that_do_not_fit_together_are_refused(change, mixed_file):
    change_manifest(mixed_file, lambda manifest: change[1](manifest["steps"]))
    with pytest.raises(EncoderFileError, match=r"do not fit together.*\nHint: save it again"):
        sufrep.load(mixed_file)


@pytest.mark.parametrize(
    "changed",
    [
        {"n_features_in_": 10**12},
        {"feature_names_in_": {"$levels": ["a", "b", 3]}},
        {"feature_names_in_": {"$levels": ["a"]}},
    ],
    ids=repr,
)
def test_a_step_for_columns_that_it_was_not_fitted_to_is_refused(changed, file):
    sufrep.save(DropColumns(0).fit(np.ones((2, 3))), file)
    change_manifest(file, lambda manifest: manifest["steps"][0]["fitted"].update(changed))
    with pytest.raises(EncoderFileError, match="other columns than those that the step was fitted to"):
        sufrep.load(file)


def test_encoders_of_the_users_own_are_not_run(file):
    class OwnEncoder(MeansEncoder):
        pass

    OwnEncoder("g").fit(rows_of(["a"])).save(file)
    with pytest.raises(EncoderFileError, match="holds a 'OwnEncoder'"):
        sufrep.load(file)


NONSENSE = pytest.mark.parametrize("value", [None, [], 3, "text", ["text"], {"a": 1}], ids=repr)


@pytest.mark.parametrize("entry", ["steps", "versions", "arrays", "format"])
@NONSENSE
def test_manifests_that_make_no_sense_are_refused(entry, value, saved):
    change_manifest(saved, set_entry(entry, value))
    with pytest.raises(EncoderFileError, match="Hint: "):
        sufrep.load(saved)


@pytest.mark.parametrize("entry", ["class", "parameters", "fitted", "output"])
@NONSENSE
def test_steps_that_make_no_sense_are_refused(entry, value, saved):
    change_manifest(saved, lambda manifest: set_entry(entry, value)(manifest["steps"][0]))
    with pytest.raises(EncoderFileError, match="Hint: "):
        sufrep.load(saved)


@pytest.mark.parametrize("name", ["frame_library_", "target_name_"])
@pytest.mark.parametrize("value", [[], 3, ["text"]], ids=repr)
def test_names_that_are_no_text_are_refused(name, value, saved):
    change_manifest(saved, lambda manifest: set_entry(name, value)(manifest["steps"][0]["fitted"]))
    with pytest.raises(EncoderFileError, match="another value in the place of a name"):
        sufrep.load(saved)


# The description


@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
def test_every_type_of_level_is_described(levels, file):
    rows = rows_of(levels).iloc[1:]  # one level has a row less
    MeansEncoder("g").fit(rows).save(file)
    (group,) = read_description(file)["groups"]
    assert (group["n_levels"], len(group["least_certain"])) == (len(levels), len(levels) // 2)


def test_a_description_does_not_grow_with_levels_columns_and_parameters(file):
    names = [f"{number} {'x' * 2000}" for number in range(400)]
    encoder = ContrastEncoder("g", covariates=names).fit(
        pd.DataFrame({"g": names, **dict.fromkeys(names, 1.0)})
    )
    encoder.save(file)
    described = read_description(file)
    assert len(json.dumps(described)) < 400_000
    assert (described["n_columns_made"], len(described["columns_made"])) == (399, 50)
    assert (described["n_columns_needed"], described["groups"][0]["n_columns"]) == (401, 399)
    assert len(described["groups"][0]["first_levels"][0]["values"]) == 50


@pytest.mark.parametrize(
    "change",
    {
        "none": lambda described: described.clear(),
        "a part is missing": lambda described: described.pop("groups"),
        "one part too many": lambda described: described.update(more=1),
        "no text": lambda described: described.update(encoder=1),
        "no list": lambda described: described.update(columns_made="x"),
        "no count": lambda described: described.update(n_columns_made=-1),
        "no number": lambda described: described["groups"][0].update(n_rows="many"),
        "an integer beyond all numbers": lambda described: described["groups"][0].update(n_rows=10**400),
        "other columns": lambda described: described["groups"][0]["columns"].pop(),
        "an unknown sign": lambda described: described.update(
            reading={"decimal": "x", "thousands": None, "separator": None, "encoding": None, "kinds": {}}
        ),
    }.items(),
    ids=lambda change: change[0],
)
def test_a_description_that_makes_no_sense_is_refused(change, file):
    MeansEncoder("g").fit(rows_of(["a", "b"])).save(file)
    change_manifest(file, lambda manifest: change[1](manifest["description"]))
    for read in (read_description, sufrep.load):
        with pytest.raises(EncoderFileError, match=r"its contents do not fit together.*\nHint: save"):
            read(file)


def test_a_report_with_lists_of_other_lengths_is_refused(file, choose):
    choose("target_mean")
    SufficientEncoder("shop").fit(*shops()).save(file)
    change_manifest(file, lambda manifest: manifest["description"]["report"]["candidates"]["loss"].pop())
    with pytest.raises(EncoderFileError, match="an unknown report"):
        read_description(file)


@pytest.mark.parametrize("errors", [np.zeros((2, 1)), np.zeros((3, 2)), np.zeros((3, 1), dtype=int)])
def test_standard_errors_of_other_vectors_are_refused(errors, file):
    rows = rows_of(["a", "b", "c"])
    encoder = make_encoder("random_intercept", "g").fit(rows, target_of(rows))
    encoder.standard_errors_["g"] = errors
    encoder.save(file)
    with pytest.raises(EncoderFileError, match="errors of other vectors"):
        sufrep.load(file)


def test_an_array_that_is_not_what_was_saved_is_refused(saved):
    def change(members: dict[str, bytes]) -> None:
        members["0.bin"] = bytes(len(members["0.bin"]))

    rewrite(saved, change)
    with pytest.raises(EncoderFileError, match="array 0 does not match its checksum"):
        sufrep.load(saved)


def test_an_array_that_is_not_there_is_refused(saved):
    rewrite(saved, lambda members: members.pop("0.bin"))
    with pytest.raises(EncoderFileError, match=r"it has no member '0\.bin'"):
        sufrep.load(saved)


# Encoders that hold encoders, and those of residuals and regressions.

OF_ONE_GROUP = ("means", "states", "target_mean", "mixed_model", "local_effect")
CANDIDATES = [
    *(
        (components, "continuous")
        for components in [(), *((name,) for name in OF_ONE_GROUP), ("mixed_model", "local_effect")]
    ),
    *((("target_mean", "states"), kind) for kind in ("continuous", "binary", "multiclass")),
    *((("mixed_model", "means"), kind) for kind in ("binary", "multiclass")),
]


def shops(kind: str = "continuous") -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    X["shop"] = np.array(["ann", "bob", None, "dan"], dtype=object)[np.arange(60) % 4]
    y = np.arange(60) % 4 + rng.normal(size=60)
    return X, {"continuous": y, "binary": y > 1, "multiclass": np.digitize(y, [0.0, 2.0]).astype(str)}[kind]


@pytest.fixture
def nested(file: Path, choose: Callable[..., None]) -> Path:
    """An encoder of two others."""
    choose("target_mean", "mixed_model")
    SufficientEncoder("shop").fit(*shops()).save(file)
    return file


def change_component(path: Path, change: Any) -> None:
    """Write the file again after ``change`` of the manifest of the component "target_mean", a dict."""

    def change_first(manifest: dict[str, Any]) -> None:
        (name, component), *_ = manifest["steps"][0]["fitted"]["encoders_"]["$dict"]
        assert name == "target_mean"
        change(component)

    change_manifest(path, change_first)


@pytest.mark.parametrize(
    ("chosen", "kind"),
    CANDIDATES,
    ids=lambda part: part if isinstance(part, str) else " + ".join(part) or "drop",
)
def test_whatever_was_chosen_comes_back(chosen, kind, file, choose):
    choose(*chosen)
    X, y = shops(kind)
    encoder = SufficientEncoder("shop", min_frequency=2).fit(X, y)
    loaded = assert_round_trip(encoder, X, file)
    assert loaded.chosen_ == encoder.chosen_ == chosen
    assert loaded.target_type_ == kind
    for name, component in encoder.encoders_.items():
        np.testing.assert_array_equal(loaded.encoders_[name].transform(X), component.transform(X))


def test_what_was_tried_comes_back(file):
    X, y = shops()
    X, y = pd.concat([X] * 3, ignore_index=True), np.tile(3 * y, 3)
    encoder = (
        SufficientEncoder("shop", families=("prediction",), cv=2).set_output(transform="pandas").fit(X, y)
    )
    encoder.save(file)
    loaded = sufrep.load(file)
    assert loaded.report_ == encoder.report_
    assert loaded.report_["candidates"]["chosen"] == [False, True]
    new = X[:3].assign(shop=["ann", None, "never seen"])
    pd.testing.assert_frame_equal(loaded.transform(new), encoder.transform(new))


def test_levels_never_seen_are_refused_after_loading_too(file, choose):
    choose("mixed_model")
    X, y = shops()
    SufficientEncoder("shop", unseen="error").fit(X, y).save(file)
    with pytest.raises(UnseenLevelError, match="never seen"):
        sufrep.load(file).transform(X.assign(shop="never seen"))


def test_several_groups_of_an_encoder_of_encoders_come_back(file, choose):
    choose("mixed_model", "states")
    X, y = shops()
    X["town"] = np.where(X["a"] > 0, "u", "v")
    assert_round_trip(SufficientEncoder(["shop", ("shop", "town")]).fit(X, y), X, file)


@pytest.mark.parametrize("encoder", [RandomInterceptEncoder, MixedModelEncoder, LocalEffectEncoder])
@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
def test_encoders_of_residuals_and_regressions_come_back(encoder, kind, file):
    X, y = shops(kind)
    missing = "level" if kind == "binary" else "prior"
    assert_round_trip(encoder("shop", missing=missing, min_frequency=3).fit(X, y), X, file)


def test_equal_encoders_of_encoders_are_equal_files(tmp_path, choose):
    choose("target_mean", "states")
    for name in ("one", "other"):
        SufficientEncoder("shop").fit(*shops()).save(tmp_path / name)
    sufrep.load(tmp_path / "one").save(tmp_path / "again")
    one, other, again = ((tmp_path / name).read_bytes() for name in ("one", "other", "again"))
    assert one == other == again
    X, y = shops()
    SufficientEncoder("shop").fit(X, y + 1e-9).save(tmp_path / "unequal")
    assert (tmp_path / "unequal").read_bytes() != one


@pytest.mark.parametrize(
    ("learner", "name"),
    [(Ridge(alpha=2), "Ridge"), (make_pipeline(StandardScaler(), Ridge()), "StandardScaler + Ridge")],
)
def test_of_a_judge_the_name_is_saved_and_the_encoder_is_not_fitted_again_without_one(
    learner, name, file, choose
):
    choose("target_mean", "means")
    X, y = shops()
    encoder = SufficientEncoder("shop", estimator=learner).fit(X, y)
    encoder.save(file)
    loaded = sufrep.load(file)
    assert loaded.estimator == name
    assert read_description(file)["parameters"] == {"group": "shop", "estimator": name}
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))
    assert_same_attributes(loaded, encoder)
    for again in (loaded, clone(loaded)):
        text = rf"estimator is '{re.escape(name)}'.*\nHint: .*only the name.*set_params\(estimator=…\)"
        with pytest.raises(InvalidParameterError, match=text):
            again.fit(X, y)
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))  # the failed fit changed nothing
    assert loaded.learn_levels(X.assign(shop="new")).representations_["shop"].n_levels > 0
    refitted = loaded.set_params(estimator=learner).fit(X, y)
    np.testing.assert_array_equal(refitted.transform(X), encoder.transform(X))


# Damage.


@pytest.mark.parametrize("name", ["WonderEncoder", "LatentStateRegressor", "Ridge", None, ["MeansEncoder"]])
def test_a_component_of_an_unknown_class_is_refused(name, nested):
    change_component(nested, lambda component: component["$encoder"].update({"class": name}))
    with pytest.raises(EncoderFileError, match=r"do not fit together.*\nHint: save it again"):
        sufrep.load(nested)


@pytest.mark.parametrize("key", ["class", "parameters", "fitted", "output"])
def test_a_component_that_lacks_a_part_is_refused(key, nested):
    change_component(nested, lambda component: component["$encoder"].pop(key))
    with pytest.raises(EncoderFileError, match=f"do not fit together.*{key}"):
        sufrep.load(nested)


@pytest.mark.parametrize(
    "change",
    {
        "not fitted": lambda component: component["$encoder"]["fitted"].pop("representations_"),
        "a method": lambda component: component["$encoder"]["fitted"].update(transform=1),
        "a private attribute": lambda component: component["$encoder"]["fitted"].update(_details_=1),
        "an unknown parameter": lambda component: component["$encoder"]["parameters"].update(alpha=1),
        "no object": lambda component: component.update({"$encoder": 3}),
        "two kinds": lambda component: component.update({"$float": "1"}),
        "an unknown kind": lambda component: component.update({"$estimator": component.pop("$encoder")}),
        "an array that is not there": lambda component: component["$encoder"]["fitted"].update(
            n_={"$array": 999}
        ),
    }.items(),
    ids=lambda change: change[0],
)
def test_a_component_that_makes_no_sense_is_refused(change, nested):
    change_component(nested, change[1])
    with pytest.raises(EncoderFileError, match=r"do not fit together.*\nHint: save it again"):
        sufrep.load(nested)


def test_a_component_that_is_left_alone_is_read(nested):
    change_component(nested, lambda _: None)
    assert list(sufrep.load(nested).encoders_) == ["target_mean", "mixed_model"]
