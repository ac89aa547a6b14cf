"""Values as JSON and arrays: what is packed comes back, of every type and in every container."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._archive import archive_of, json_of, read_archive
from sufrep._packing import _LONG, Unpacker
from sufrep.encoders._inputs import Covariate, OutputColumn
from sufrep.encoders._packing import RECORDS, EncoderPacker
from sufrep.errors import NotSavableError
from sufrep.representation import as_levels

ZONES = st.sampled_from([None, dt.UTC, dt.timezone(dt.timedelta(hours=-3, minutes=-30))])
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "bool": st.booleans(),
    "int": st.integers(),
    "float": st.floats(allow_nan=False),
    "str": TEXTS,
    "bytes": st.binary(max_size=3),
    "datetime": st.datetimes(timezones=ZONES),
    "date": st.dates(),
    "time": st.times(),
    "timedelta": st.timedeltas(),
    "decimal": st.decimals(allow_nan=False),
    "tuple": st.tuples(TEXTS, st.none() | st.integers()),
    "record": st.builds(Covariate, st.none() | st.integers(0, 5), st.none() | TEXTS, st.booleans()),
    "record in a record": st.builds(
        OutputColumn, st.integers(0, 3), TEXTS, st.none() | st.builds(Covariate, st.just(1))
    ),
    "list": st.lists(st.integers(0, 3), max_size=2),
}
ITEMS = st.one_of(*SCALARS.values())
MANY = {"min_size": _LONG + 1, "max_size": _LONG + 9}


def round_trip(value: Any) -> Any:
    packer = EncoderPacker()
    packed = packer.pack(value, "A value")
    json_of(packed)  # or it could not be written
    names = dict.fromkeys((cls.__name__ for cls in RECORDS), 1)
    unpacker = Unpacker(packer.arrays, names, RECORDS)
    found = unpacker.unpack(packed)
    unpacker.finish()
    return found


def with_types(value: Any) -> Any:
    """The value with all types, because 1 == True == 1.0; texts of floats, because -0.0 == 0.0."""
    if isinstance(value, (list, tuple)):
        return type(value), [with_types(part) for part in value]
    if isinstance(value, dict):
        return [(with_types(key), with_types(part)) for key, part in value.items()]
    return type(value), str(value) if isinstance(value, float) else value


@given(st.lists(ITEMS, max_size=4) | st.lists(ITEMS, **MANY))
def test_lists_come_back(values):
    assert with_types(round_trip(values)) == with_types(values)


@pytest.mark.parametrize("kind", SCALARS)
@given(data=st.data())
def test_long_lists_of_one_type_come_back(kind, data):
    values = data.draw(st.lists(SCALARS[kind], **MANY))
    assert with_types(round_trip(values)) == with_types(values)


@given(st.lists(ITEMS, max_size=2 * _LONG).map(tuple))
def test_tuples_come_back(values):
    assert with_types(round_trip(values)) == with_types(values)


@given(st.dictionaries(TEXTS | st.integers(-(2**63), 2**63 - 1), ITEMS, max_size=4))
def test_dictionaries_come_back(values):
    assert with_types(round_trip(values)) == with_types(values)


@given(st.lists(ITEMS, max_size=2 * _LONG))
def test_levels_come_back(values):
    found = round_trip(as_levels(values))
    assert found.dtype == object
    assert with_types(found.tolist()) == with_types(values)


def test_long_lists_are_not_in_the_json():
    for values in (
        list(range(1000)),
        ["level"] * 1000,
        [None] * 1000,
        [("a", 1)] * 1000,
        [Covariate(1)] * 1000,
    ):
        assert len(json_of(EncoderPacker().pack(values, "A value"))) < 300


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "u8", "f2", "f4", "f8", ">f8", ">i4"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 2), (2, 0)], ids=str)
def test_arrays_come_back_in_their_order(shape, dtype, order, tmp_path):
    size = int(np.prod(shape))
    array = np.asarray(np.arange(size).reshape(shape), dtype=dtype, order=order)
    (tmp_path / "file").write_bytes(archive_of({}, [array]))
    _, (found,) = read_archive(tmp_path / "file")
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.flags.c_contiguous == array.flags.c_contiguous
    assert found.flags.writeable


@pytest.mark.parametrize(
    "value",
    [
        print,
        frozenset(),
        1j,
        np.array([1j]),
        np.zeros(2, "M8[s]"),
        Decimal("sNaN"),
        Decimal("1e9999"),
        "\ud800",
        {1.5: 2},
        {2**63: 1},
    ],
    ids=repr,
)
def test_values_of_other_types_are_refused(value):
    for packed in (value, [value], [value] * (_LONG + 1)):
        with pytest.raises(NotSavableError, match=r"(?s)A value is .* cannot be saved without pickle"):
            EncoderPacker().pack(packed, "A value")
