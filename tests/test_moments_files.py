"""Files of moments: what is saved comes back, and anything else is refused."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep import GroupMoments
from sufrep._archive import archive_of, read_archive
from sufrep._description import read_description
from sufrep.errors import EncoderFileError, NotSavableError, NotWritableError
from sufrep.moments import MomentsTarget

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
LEVELS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | TEXTS
    | st.binary(max_size=3)
    | st.dates()
    | st.datetimes(timezones=st.sampled_from([None, dt.UTC]))
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False, allow_infinity=False, places=2)
)


def moments_of(levels: list[Any], order: Any = 2, **description: Any) -> GroupMoments:
    rng = np.random.default_rng(len(levels))
    group = [*levels, *levels[::2]]
    rows = rng.normal(size=(len(group), 2))
    rows[rng.random(rows.shape) < 0.2] = np.nan
    names = ["x", "y"]
    found = GroupMoments.from_rows(group, rows, order=order, covariates=names)
    return replace(found, **description)


def assert_equal(found: GroupMoments, expected: GroupMoments) -> None:
    with_types = [[(type(level), level) for level in part.levels.tolist()] for part in (found, expected)]
    assert with_types[0] == with_types[1]
    for field in fields(GroupMoments):
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(theirs, np.ndarray):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        else:
            assert ours == theirs


@settings(max_examples=60)
@given(st.lists(LEVELS | st.tuples(LEVELS, LEVELS), unique=True, max_size=40), st.sampled_from([1, 2]))
def test_levels_of_every_type_come_back(tmp_path_factory: pytest.TempPathFactory, levels, order) -> None:
    path = tmp_path_factory.mktemp("moments") / "it"
    moments = moments_of(levels, order)
    moments.save(path)
    assert_equal(GroupMoments.load(path), moments)


@pytest.mark.parametrize(
    "levels",
    [
        ["a", None],
        [1, 2.5, True, Decimal("0.10")],
        [dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12)],
        [("a", 1), ("a", None)],
        [f"level {number}" for number in range(100)],
    ],
)
def test_the_description_comes_back_too(levels: list[Any], tmp_path: Path) -> None:
    target = MomentsTarget("sold", "binary", ("y",))
    moments = moments_of(levels, group=("shop", "brand"), target=target)
    moments.save(tmp_path / "it")
    assert_equal(GroupMoments.load(tmp_path / "it"), moments)


def test_equal_moments_make_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        moments_of(list("xyz")).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "it"
    moments_of(list("xyz")).save(path)
    content = path.read_bytes()
    for length in range(0, len(content), 13):
        path.write_bytes(content[:length])
        with pytest.raises(EncoderFileError, match=r"truncated or damaged|do not fit"):
            GroupMoments.load(path)


def test_a_flipped_byte_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "it"
    moments_of(list("xyz")).save(path)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        changed = bytearray(content)
        changed[place] ^= 0x20
        path.write_bytes(changed)
        with pytest.raises(EncoderFileError, match="Cannot read"):
            GroupMoments.load(path)


def test_an_error_leaves_the_old_file_as_it_was(tmp_path: Path, limited_file_size: Any) -> None:
    path = tmp_path / "it"
    moments_of(["a"]).save(path)
    before = path.read_bytes()
    with limited_file_size(), pytest.raises(NotWritableError, match="Cannot write"):
        moments_of([f"level {number}" for number in range(200)]).save(path)
    with pytest.raises(NotSavableError, match="cannot be saved without pickle"):
        moments_of([complex(1, 2)]).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def _changed(moments: GroupMoments, **tables: Any) -> GroupMoments:
    return replace(moments, **tables)


GOOD = moments_of(["a", "b", "c"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (_changed(GOOD, weight=-GOOD.weight), "levels without rows"),
        (_changed(GOOD, count=0 * GOOD.count), "levels without rows"),
        (_changed(GOOD, observed=GOOD.observed - 9), "weights out of range"),
        (_changed(GOOD, mean=GOOD.mean * np.inf), "means of no rows"),
        (_changed(GOOD, scatter=None), "only some of the second moments"),
        (_changed(GOOD, scatter=GOOD.scatter * np.nan), "second moments out of range"),
        (_changed(GOOD, squares=-1 - GOOD.squares), "second moments out of range"),
        (_changed(GOOD, mean=GOOD.mean.astype(np.float32)), "another type"),
        (_changed(GOOD, levels=GOOD.levels[::-1].copy()), "levels in another order"),
        (_changed(GOOD, levels=np.array(["a", "a", "b"], dtype=object)), "a level twice"),
        (_changed(GOOD, covariates=("x", "x")), "a covariate twice"),
        (_changed(GOOD, covariates=("x",)), "another size"),
        (_changed(GOOD, weight=GOOD.weight[:2]), "another size"),
        (_changed(GOOD, target=MomentsTarget("y", "binary", ("0", "1", "2"))), "a target without its"),
        (_changed(GOOD, target=MomentsTarget("y", "odd")), "unknown kind of target"),
        (_changed(GOOD, target=MomentsTarget("y", "continuous", ("a",))), "other classes"),
    ],
)
def test_moments_that_no_rows_have_are_refused(wrong: GroupMoments, message: str, tmp_path: Path) -> None:
    wrong.save(tmp_path / "it")
    with pytest.raises(EncoderFileError, match=message):
        GroupMoments.load(tmp_path / "it")


def test_other_records_and_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "it"
    GOOD.save(path)
    manifest, arrays = read_archive(path)
    others = [
        {"versions": {"GroupMoments": 2}, "moments": manifest["moments"]},
        {"versions": {**manifest["versions"], "Layout": 1}, "moments": manifest["moments"]},
        {
            "versions": {"MomentsTarget": 1},
            "moments": {
                "$record": ["MomentsTarget", {"name": "a", "kind": "binary", "classes": {"$tuple": []}}]
            },
        },
        {"versions": {}, "moments": {"$encoder": {}}},
        {"versions": {}, "moments": None},
        {"moments": manifest["moments"]},
    ]
    for other in others:
        path.write_bytes(archive_of(other, arrays if other["moments"] == manifest["moments"] else []))
        with pytest.raises(EncoderFileError, match="do not fit together"):
            GroupMoments.load(path)


def test_files_of_other_programs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_text(json.dumps({"format": "sufrep"}))
    with pytest.raises(EncoderFileError, match="Cannot read"):
        GroupMoments.load(path)
    path.write_bytes(archive_of({"versions": {}, "other": 1}, []))
    with pytest.raises(EncoderFileError, match="it holds no moments"):
        GroupMoments.load(path)
    with pytest.raises(FileNotFoundError, match="No such file"):
        GroupMoments.load(tmp_path / "nowhere")


def test_describing_a_file_of_moments_says_what_it_is(tmp_path: Path) -> None:
    GOOD.save(tmp_path / "it")
    with pytest.raises(EncoderFileError, match=r"(?s)it holds moments, not an encoder.*sufrep merge"):
        read_description(tmp_path / "it")
