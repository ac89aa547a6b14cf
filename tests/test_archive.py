"""Encoder files of strangers: whatever is in them, loading ends in an encoder that works or in our error."""

from __future__ import annotations

import hashlib
import json
import random
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline, make_pipeline

import sufrep
from sufrep import (
    DropColumns,
    LatentStateEncoder,
    LocalEffectEncoder,
    MeansEncoder,
    MixedModelEncoder,
    SufficientEncoder,
    ToNumbers,
    _archive,
)
from sufrep._archive import DEEPEST, _Index, archive_of, json_of, read_archive
from sufrep._description import read_description
from sufrep.cli._describe import _lines
from sufrep.encoders import _persistence
from sufrep.errors import EncoderFileError, NotSavableError, SufrepError

N_LEVELS = 40  # more than a manifest lists one by one


def rows_of(n_levels: int = N_LEVELS) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    group = [f"shop {number % n_levels}" for number in range(4 * n_levels)]
    return pd.DataFrame({"g": group, "x": rng.normal(size=len(group)), "z": rng.normal(size=len(group))})


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> bytes:
    """A file with long and short sequences, arrays of one and two dimensions, and numbers."""
    path = tmp_path_factory.mktemp("original") / "encoder.sufrep"
    MeansEncoder("g", min_frequency=0.001).fit(rows_of()).save(path)
    return path.read_bytes()


@pytest.fixture
def file(tmp_path: Path, original: bytes) -> Path:
    path = tmp_path / "encoder.sufrep"
    path.write_bytes(original)
    return path


Members = dict[str, bytes]


def members_of(path: Path) -> Members:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def as_archive(members: Members) -> bytes:
    index = _Index()
    parts = [index.add(name, zlib.crc32(data), len(data)) + data for name, data in members.items()]
    return b"".join([*parts, index.directory()])


def with_manifest(path: Path, change: Callable[[Any], Any]) -> bytes:
    """The file after ``change`` of its manifest, in place or to bytes, with all checksums right."""
    members = members_of(path)
    manifest = json.loads(members["manifest.json"])
    changed = change(manifest)
    members["manifest.json"] = changed if isinstance(changed, bytes) else json_of(manifest)
    return as_archive(members)


def with_array(path: Path, number: int, array: np.ndarray) -> bytes:
    """The file with another array, described as it is."""
    manifest, arrays = read_archive(path)
    arrays[number] = array
    return archive_of(
        {key: value for key, value in manifest.items() if key not in ("format", "version")}, arrays
    )


def assert_refused(path: Path, content: bytes, match: str = "Hint: ") -> None:
    assert content != path.read_bytes()
    path.write_bytes(content)
    with pytest.raises(EncoderFileError, match=match):
        sufrep.load(path)


def test_the_original_is_read(file):
    rows = rows_of()
    expected = MeansEncoder("g", min_frequency=0.001).fit(rows).transform(rows)
    np.testing.assert_array_equal(sufrep.load(file).transform(rows), expected)
    file.write_bytes(with_manifest(file, lambda _: None))
    np.testing.assert_array_equal(sufrep.load(file).transform(rows), expected)


# The archive


def test_other_programs_read_the_archive(file):
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}


def zipped(members: Members, change: Callable[[zipfile.ZipInfo], None], comment: bytes = b"") -> bytes:
    """The archive that Python's zipfile makes."""
    from io import BytesIO

    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0
            info.create_system = 0
            change(info)
            archive.writestr(info, data)
        archive.comment = comment
    return buffer.getvalue()


def set_attribute(name: str, value: Any) -> Callable[[zipfile.ZipInfo], None]:
    return lambda info: setattr(info, name, value)


ARCHIVES: dict[str, Callable[[Members], bytes]] = {
    "compressed": lambda members: zipped(members, set_attribute("compress_type", zipfile.ZIP_DEFLATED)),
    "bzip2": lambda members: zipped(members, set_attribute("compress_type", zipfile.ZIP_BZIP2)),
    "a symbolic link": lambda members: zipped(members, set_attribute("external_attr", 0o120777 << 16)),
    "another date": lambda members: zipped(members, set_attribute("date_time", (2024, 1, 1, 0, 0, 0))),
    "an extra field": lambda members: zipped(members, set_attribute("extra", b"\x01\x00\x00\x00")),
    "a comment": lambda members: zipped(members, lambda _: None, b"comment"),
    "bytes after the end": lambda members: as_archive(members) + b"\0",
    "bytes before the start": lambda members: b"\0" + as_archive(members),
    "two archives": lambda members: as_archive(members) * 2,
    "an archive inside": lambda members: as_archive({"manifest.json": as_archive(members)}),
    "an absolute name": lambda members: as_archive(
        {("/" * (name == "0.bin")) + name: data for name, data in members.items()}
    ),
    "a name outside": lambda members: as_archive(
        {("../" * (name == "0.bin")) + name: data for name, data in members.items()}
    ),
    "one more member": lambda members: as_archive({**members, "more.bin": b""}),
    "no member": lambda _: as_archive({}),
    "another order": lambda members: as_archive(dict(reversed(members.items()))),
    "a member twice": lambda members: as_archive({**members, "0.bin ": members["0.bin"]}).replace(
        b"0.bin ", b"0.bin\0"
    ),
    "encrypted": lambda members: as_archive(members).replace(
        b"PK\x03\x04\x14\x00\x00\x00", b"PK\x03\x04\x14\x00\x01\x00"
    ),
    "sizes in a descriptor": lambda members: as_archive(members).replace(
        b"PK\x03\x04\x14\x00\x00\x00", b"PK\x03\x04\x14\x00\x08\x00"
    ),
    "members that overlap": lambda members: (
        as_archive(members)[: -(22 + 4)] + bytes(4) + as_archive(members)[-22:]
    ),
}


@pytest.mark.parametrize("archive", ARCHIVES.values(), ids=ARCHIVES)
def test_an_archive_that_sufrep_does_not_write_is_refused(archive, file):
    assert_refused(
        file, archive(members_of(file)), "it is not a file of sufrep, or it is truncated or damaged"
    )


def test_a_folder_and_a_device_are_not_read(tmp_path):
    with pytest.raises(IsADirectoryError, match="directory"):
        sufrep.load(tmp_path)
    with pytest.raises(EncoderFileError, match="it is not a regular file"):
        sufrep.load("/dev/zero")


# The arrays


@pytest.mark.parametrize(
    "shape",
    [[-1], [2**70], [0, 2**62], [1.0], [True], ["4"], None, 3, [[4]], [1] * 70, [4, -1, -1]],
    ids=repr,
)
def test_an_array_of_an_impossible_shape_is_refused(shape, file):
    changed = with_manifest(file, lambda manifest: manifest["arrays"][0].update(shape=shape))
    assert_refused(file, changed, "array 0 (has no shape|is not as large)|do not fit|NoneType|int")


@pytest.mark.parametrize(
    "dtype", ["|O", "|V8", "<U2", "<M8[s]", "<c16", "<f16", ">f8", "O", "f8, f8", 8, None, []]
)
def test_an_array_of_an_unknown_type_is_refused(dtype, file):
    changed = with_manifest(file, lambda manifest: manifest["arrays"][0].update(dtype=dtype))
    assert_refused(file, changed, "array 0 holds no numbers")


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.zeros((N_LEVELS, 2, 1)), np.zeros((0, 2**20)), np.array(1.0)], ids=np.shape
)
def test_an_array_of_another_size_than_the_levels_is_refused(array, file):
    n_arrays = len(read_archive(file)[1])
    assert n_arrays > 5
    for number in range(n_arrays):
        file_of = file.with_name(f"{number}.sufrep")
        file_of.write_bytes(file.read_bytes())
        assert_refused(file_of, with_array(file_of, number, array))


def test_an_array_that_is_used_twice_is_refused(file):
    def change(manifest: Any) -> None:
        text = json_of(manifest["steps"])
        manifest["steps"] = json.loads(text.replace(b'{"$array":1}', b'{"$array":0}'))

    assert_refused(file, with_manifest(file, change), "is not there, or used twice")


@pytest.mark.parametrize(
    "shape", [[4, 10**15], [10**15, 4], [4], [4, -1], [4, 3.0], [4, 2], [3, 4]], ids=repr
)
def test_a_sparse_table_of_another_size_is_refused(shape, tmp_path):
    path = tmp_path / "sparse.sufrep"
    sufrep.make_encoder("one_hot", "g", sparse_output=True).fit(rows_of(4)).save(path)

    def change(manifest: Any) -> None:
        text = json_of(manifest["steps"])
        assert b",[4,3]]}" in text
        manifest["steps"] = json.loads(text.replace(b",[4,3]]}", b",%s]}" % json_of(shape)))

    assert_refused(path, with_manifest(path, change), "its contents do not fit together")


def test_an_array_that_belongs_to_nothing_is_refused(file):
    manifest, arrays = read_archive(file)
    described = {key: manifest[key] for key in ("versions", "steps", "reading")}
    assert_refused(file, archive_of(described, [*arrays, np.zeros(3)]), "an array belongs to nothing")


# The manifest


MANIFESTS: dict[str, Callable[[bytes], bytes]] = {
    "NaN": lambda text: text.replace(b"0.001", b"NaN"),
    "Infinity": lambda text: text.replace(b"0.001", b"Infinity"),
    "a number out of range": lambda text: text.replace(b"0.001", b"1e999999"),
    "an endless integer": lambda text: text.replace(b"0.001", b"9" * 100_000),
    "another spelling of a number": lambda text: text.replace(b"0.001", b"1e-3"),
    "a key twice": lambda text: text.replace(b'"min_frequency":', b'"min_frequency":null,"min_frequency":'),
    "half a character": lambda text: text.replace(b'"x"', b'"\\ud800"'),
    "an escaped character": lambda text: text.replace(b'"x"', b'"\\u0078"'),
    "bytes that are no text": lambda text: text.replace(b'"x"', b'"\xff"'),
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "a mark of the byte order": lambda text: b"\xef\xbb\xbf" + text,
    "blanks": lambda text: text.replace(b":", b": "),
    "more than one value": lambda text: text + text,
    "nested deeply": lambda text: text.replace(
        b'"reading":null', b'"reading":' + b"[" * DEEPEST + b"]" * DEEPEST
    ),
    "nested very deeply": lambda text: text.replace(
        b'"reading":null', b'"reading":' + b"[" * 90_000 + b"]" * 90_000
    ),
    "nothing": lambda _: b"",
    "no object": lambda _: b"[]",
    "an empty object": lambda _: b"{}",
}


@pytest.mark.parametrize("write", MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_that_sufrep_does_not_write_is_refused(write, file):
    assert_refused(file, with_manifest(file, lambda manifest: write(json_of(manifest))))


VALUES: dict[str, Any] = {
    "a decimal of a million digits": {"$decimal": "1e1000000"},
    "a decimal beyond decimals": {"$decimal": "1e9999999999999999999"},
    "a decimal that raises": {"$decimal": "sNaN"},
    "a decimal that is null": {"$decimal": "NaN"},
    "a date out of range": {"$date": "10000-01-01"},
    "a time that does not exist": {"$datetime": "2024-02-30T25:00:00"},
    "a duration out of range": {"$timedelta": "99999999999999 0 0"},
    "a duration of other parts": {"$timedelta": "1"},
    "a number that is null": {"$float": "nan"},
    "bytes that are no bytes": {"$bytes": "xy"},
    "a list": [1],
    "a level of an unknown kind": {"$pickle": "gASVAAAAAAAAAAAu"},
    "a level that equals another": 1.0,
    "an encoder": {"$encoder": {"class": "MeansEncoder", "parameters": {}, "fitted": {}, "output": None}},
}


@pytest.mark.parametrize("level", VALUES.values(), ids=VALUES)
def test_a_level_that_cannot_be_is_refused(level, tmp_path):
    path = tmp_path / "few.sufrep"
    MeansEncoder(0).fit(np.array([[1, 2.0], [2, 3.0], [3, 1.0]])).save(path)

    def change(manifest: Any) -> None:
        text = json_of(manifest["steps"])
        levels = b'{"$levels":[1.0,2.0,3.0]}'
        assert levels in text
        manifest["steps"] = json.loads(text.replace(levels, json_of({"$levels": [1.0, level, 3.0]})))

    assert_refused(path, with_manifest(path, change), "its contents do not fit together")


PARAMETERS: dict[str, Any] = {
    "min_frequency": ["often", -1, [], {"$dict": []}],
    "group": [3.5, {"$record": ["Covariate", {"position": 0}]}],
    "remainder": ["os.system", None],
    "cv": ["sklearn.model_selection.KFold", -1],
    "random_state": ["now", -1, 1.5],
    "__class__": ["os.system"],
    "transform": [1],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, some in PARAMETERS.items() for value in some]
)
def test_a_parameter_that_the_encoder_does_not_take_is_refused(name, value, file):
    changed = with_manifest(file, lambda manifest: manifest["steps"][0]["parameters"].update({name: value}))
    assert_refused(file, changed, "its contents do not fit together")


def test_what_no_reader_accepts_is_not_written(tmp_path):
    rows = rows_of(3)
    encoder = MeansEncoder("g").fit(rows)
    for attribute in ([10**5000], ["\ud800"], {"deep": json.loads("[" * 200 + "]" * 200)}):
        encoder.details_ = attribute
        with pytest.raises(NotSavableError, match="cannot be saved"):
            encoder.save(tmp_path / "encoder.sufrep")
    assert list(tmp_path.iterdir()) == []


def test_more_encoders_than_any_encoder_has_are_refused(file, monkeypatch):
    encoder = sufrep.load(file)
    encoder.parts_ = [sufrep.load(file)] * 2
    encoder.save(file)
    assert len(sufrep.load(file).parts_) == 2
    monkeypatch.setattr(_persistence, "_MOST_ESTIMATORS", 2)
    with pytest.raises(EncoderFileError, match="more than 2 encoders"):
        sufrep.load(file)
    with pytest.raises(NotSavableError, match="more than 2 encoders"):
        encoder.save(file)


def test_names_that_fill_the_memory_are_refused(file, monkeypatch):
    encoder = sufrep.load(file)
    monkeypatch.setattr(_persistence, "_MOST_LETTERS", 3)  # it has 2 columns of "g" and another name
    with pytest.raises(EncoderFileError, match="the names of its columns are too long"):
        sufrep.load(file)
    with pytest.raises(NotSavableError, match="the names of its columns are too long"):
        encoder.save(file)


def test_names_of_indicators_that_fill_the_memory_are_refused(file, monkeypatch):
    numbers = ToNumbers().fit(rows_of(3))
    sufrep.save(numbers, file)
    monkeypatch.setattr(_persistence, "_MOST_LETTERS", 2)  # "g" is repeated for each of its 3 levels
    with pytest.raises(EncoderFileError, match="the names of its columns are too long"):
        sufrep.load(file)
    with pytest.raises(NotSavableError, match="the names of its columns are too long"):
        sufrep.save(numbers, file)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("pooled_positions_", np.full(N_LEVELS, 10**12)),
        ("pooled_positions_", np.full(N_LEVELS, -1)),
        ("pooled_positions_", np.zeros(N_LEVELS)),
        ("pooled_positions_", np.zeros(3, dtype=int)),
        ("moments_", np.zeros(3)),
    ],
)
def test_what_was_learnt_about_other_levels_is_refused(attribute, value, file):
    encoder = sufrep.load(file)
    getattr(encoder, attribute)["g"] = value
    encoder.save(file)
    with pytest.raises(EncoderFileError, match="its contents do not fit together"):
        sufrep.load(file)


def test_truth_values_that_are_neither_are_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(archive_of({}, [np.array([2, 0], dtype=np.uint8).view(bool)]))
    with pytest.raises(EncoderFileError, match="array 0 holds no truth values"):
        read_archive(path)


def test_an_error_does_not_repeat_control_characters_of_the_file(file):
    def change(manifest: Any) -> None:
        manifest["steps"][0]["fitted"]["n_features_in_"] = {"$\x1b[31m": 1}
        manifest["versions"]["\x1b[31m"] = 1

    file.write_bytes(with_manifest(file, change))
    with pytest.raises(EncoderFileError, match="Hint: ") as caught:
        sufrep.load(file)
    assert str(caught.value).replace("\n", "").isprintable()


# Bombs: files that need far more time or memory than they have bytes

LOADER = """
import json, resource, sys, time, sufrep
from sufrep.errors import EncoderFileError

sufrep.load(sys.argv[1])  # imports what is needed
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 200 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = {}
for path in sys.argv[2:]:
    start = time.process_time()
    try:
        sufrep.load(path)
        outcome = "loaded"
    except EncoderFileError as error:
        # A MemoryError would say that the limit of this process stopped it, not ours.
        outcome = "MemoryError" if isinstance(error.__cause__, MemoryError) else "refused"
    except BaseException as error:
        outcome = type(error).__name__
    found[path] = (outcome, time.process_time() - start)
print(json.dumps(found))
"""


def deflated_zeros(megabytes: int) -> bytes:
    """Raw deflate data of as many megabytes of zeros, without compressing them all."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = compressor.compress(bytes(1 << 20)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return block * megabytes + compressor.flush()


def deflated_archive(name: str, megabytes: int) -> bytes:
    data, size = deflated_zeros(megabytes), (megabytes << 20) & 0xFFFFFFFF
    shared = (20, 0, 8, 0, 0x21, 0, len(data), size, len(name), 0)
    header = struct.pack("<4s5H3I2H", b"PK\x03\x04", *shared) + name.encode() + data
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, *shared, 0, 0, 0, 0, 0) + name.encode()
    return header + entry + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(entry), len(header), 0)


def repeated(text: bytes, times: int) -> bytes:
    return b"[" + b",".join([text] * times) + b"]"


def in_reading(part: bytes) -> Callable[[Any], bytes]:
    return lambda manifest: json_of(manifest).replace(b'"reading":null', b'"reading":' + part)


def with_levels(levels: bytes) -> Callable[[Any], bytes]:
    parts = b"".join(b',"%s":null' % name for name in (b"values", b"columns", b"weight", b"prior"))
    return in_reading(b'{"$record":["Representation",{"levels":{"$levels":' + levels + b"}" + parts + b"}]}")


def bombs(path: Path) -> dict[str, bytes]:
    original = path.read_bytes()
    large = {
        "dtype": "|b1",
        "shape": [4_000_000],
        "order": "C",
        "sha256": hashlib.sha256(bytes(4_000_000)).hexdigest(),
    }

    def with_large_array(reading: bytes) -> bytes:
        members = members_of(path)
        manifest = json.loads(members["manifest.json"])
        number = len(manifest["arrays"])
        manifest["arrays"].append(large)
        text = json_of(manifest).replace(b'"reading":null', b'"reading":' + reading)
        text = text.replace(b'"N"', b"%d" % number)
        return as_archive({**members, "manifest.json": text, f"{number}.bin": bytes(4_000_000)})

    return {
        "a manifest of 3 GB": deflated_archive("manifest.json", 3072),
        "an array of 3 GB": original.replace(b"PK\x05\x06", deflated_archive("0.bin", 3072) + b"PK\x05\x06"),
        "many members": as_archive({f"{number}.bin": b"" for number in range(60_000)}),
        "a member that declares 4 GB": original[:18] + b"\xfe\xff\xff\xff" * 2 + original[26:],
        "an array that declares 1 TB": with_manifest(
            path, lambda manifest: manifest["arrays"][0].update(shape=[2**37])
        ),
        "a manifest of empty lists": with_manifest(path, in_reading(repeated(b"[]", 2_000_000))),
        "a manifest of objects": with_manifest(path, in_reading(repeated(b'{"$float":"nan"}', 80_000))),
        "a manifest of nested lists": with_manifest(path, in_reading(b"[" * 120_000 + b"]" * 120_000)),
        "a manifest of digits": with_manifest(path, in_reading(b"9" * 10_000_000)),
        "an array that is repeated": with_large_array(
            b'{"$tuple":' + repeated(b'{"$long":["list",[["bool",null,{"$array":"N"}]]]}', 25_000) + b"}"
        ),
        "texts without a letter": with_large_array(
            b'{"$long":["levels",[["str",null,[{"$array":"N"},{"$array":"N"}]]]]}'
        ),
        # All of them have the hash 0.
        "integers of the same hash": with_manifest(
            path, with_levels(json_of([number * (2**61 - 1) for number in range(100_000)]))
        ),
        "decimals of the same hash": with_manifest(
            path,
            with_levels(json_of([{"$decimal": str(number * (2**61 - 1))} for number in range(80_000)])),
        ),
        "decimals of many digits": with_manifest(
            path, in_reading(repeated(b'{"$decimal":"1e1000000"}', 50_000))
        ),
    }


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured by Linux")
def test_every_bomb_is_refused_within_two_seconds_and_200_mb(file, tmp_path):
    paths = {}
    for number, (name, content) in enumerate(bombs(file).items()):
        paths[name] = tmp_path / f"{number}.bomb"
        paths[name].write_bytes(content)
    command = [sys.executable, "-c", LOADER, str(file), *map(str, paths.values())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    outcomes = {name: found[str(path)] for name, path in paths.items()}
    assert {name: outcome for name, (outcome, _) in outcomes.items() if outcome != "refused"} == {}
    assert {name: seconds for name, (_, seconds) in outcomes.items() if seconds > 2} == {}


def test_a_large_encoder_is_read(tmp_path):
    # 10,000 levels of several types and as many columns: nothing of them is listed in the manifest.
    levels = [None, *range(4_000), *(f"level {number}" for number in range(6_000))]
    rows = pd.DataFrame({"g": pd.Series(levels, dtype=object), "x": np.arange(float(len(levels)))})
    encoder = sufrep.make_encoder("one_hot", "g", sparse_output=True).fit(rows)
    encoder.save(tmp_path / "large.sufrep")
    loaded = sufrep.load(tmp_path / "large.sufrep")
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert (loaded.transform(rows[::99]) != encoder.transform(rows[::99])).nnz == 0
    assert len(members_of(tmp_path / "large.sufrep")["manifest.json"]) < 20_000


# Mutations

POOL: list[Any] = [
    *(None, True, False, 0, -1, 3, 2**63, 10**30, 0.5, -1e308, "", "x", "g", "\0", [], {}, [[]], [0, 0]),
    *(
        {"$array": 0},
        {"$array": -1},
        {"$float": "nan"},
        {"$float": "-inf"},
        {"$decimal": "1e9"},
        {"$tuple": []},
    ),
    *({"$dict": []}, {"$dict": [[0, 1], [0, 2]]}, {"$levels": []}, {"$long": ["list", []]}, {"$csr": []}),
    *({"$bytes": "00"}, {"$record": ["Covariate", {"position": 5}]}, {"$encoder": {}}, {"a": 1, "b": 2}),
]


def with_another_number(path: Path, draw: random.Random) -> bytes:
    """The file with one number of one array changed, and its checksum right."""
    manifest, arrays = read_archive(path)
    array = draw.choice([array for array in arrays if array.size])
    value = draw.choice([0, 1, -1, 7, 10**12, -(10**12), np.nan, np.inf, -1e308])
    with np.errstate(all="ignore"):
        array.flat[draw.randrange(array.size)] = np.array(value).astype(array.dtype)
    return archive_of({key: manifest[key] for key in ("versions", "steps", "reading")}, arrays)


def mutate(manifest: Any, draw: random.Random) -> None:
    """Replace, remove or repeat one value somewhere in the manifest."""
    places: list[tuple[Any, Any]] = []
    stack = [manifest]
    while stack:
        node = stack.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        places += [(node, key) for key in keys if node is not manifest or key != "arrays"]
        stack += [node[key] for key in keys if isinstance(node[key], (dict, list))]
    node, key = draw.choice(places)
    what = draw.random()
    if what < 0.15:
        del node[key]
    elif what < 0.3:
        other, place = draw.choice(places)
        node[key] = json.loads(json.dumps(other[place]))
    elif what < 0.4 and isinstance(node, list):
        node.append(node[key])
    else:
        node[key] = draw.choice(POOL)


@pytest.mark.parametrize(
    "encoder",
    [
        MeansEncoder("g", min_frequency=5),
        LatentStateEncoder("g", n_states=2, output="both"),
        LocalEffectEncoder("g"),
        MixedModelEncoder("g"),
        sufrep.make_encoder("one_hot", "g", sparse_output=True),
        SufficientEncoder("g"),
        make_pipeline(ToNumbers(keep="g"), MeansEncoder("g")),
        make_pipeline(ToNumbers(keep="g"), DropColumns("g")),
    ],
    ids=lambda encoder: type(encoder).__name__,
)
def test_a_changed_manifest_is_refused_or_gives_an_encoder_that_works(encoder, tmp_path, choose):
    choose("target_mean", "mixed_model")
    # A change may be what another encoder would have written, so that the values may differ; but whatever is
    # loaded encodes rows, and can be described, saved and loaded.
    rows = rows_of()
    if isinstance(encoder, Pipeline):
        rows = rows.assign(view=["sea", "hill", None, ""] * N_LEVELS, sold="2024-02-29")
    path = tmp_path / "encoder.sufrep"
    sufrep.save(encoder.fit(rows, np.random.default_rng(1).normal(size=len(rows))), path)
    original, draw, n_refused = path.read_bytes(), random.Random(0), 0
    for _ in range(80):
        path.write_bytes(original)
        if draw.random() < 0.3:
            path.write_bytes(with_another_number(path, draw))
        else:
            path.write_bytes(with_manifest(path, lambda manifest: mutate(manifest, draw)))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                loaded = sufrep.load(path)
            except EncoderFileError:
                n_refused += 1
                continue
            try:
                new = loaded.transform(rows)
                assert new.shape == (len(rows), len(loaded.get_feature_names_out()))
            except SufrepError:
                pass
            assert all(isinstance(line, str) for line in _lines(read_description(path)))
            sufrep.save(loaded, path)
            sufrep.load(path)
    assert n_refused > 25


# The manifest alone


def test_the_manifest_is_read_without_the_arrays(file, monkeypatch):
    expected = read_archive(file)[0]
    monkeypatch.setattr(_archive._Reader, "array", None)
    assert _archive.read_manifest(file) == expected


@pytest.mark.parametrize("cut", [1, 100, 1000])
def test_a_file_whose_end_is_missing_is_not_described(cut, file, original):
    file.write_bytes(original[:-cut])
    with pytest.raises(EncoderFileError, match="another length than its arrays need"):
        read_description(file)


def test_a_file_with_something_after_its_end_is_not_described(file, original):
    file.write_bytes(original + b"x")
    with pytest.raises(EncoderFileError, match="another length than its arrays need"):
        read_description(file)


@pytest.mark.parametrize("shape", [[10**30], [2] * 1000, [-1], "12"])
def test_an_impossible_shape_is_not_described(shape, file):
    file.write_bytes(with_manifest(file, lambda manifest: manifest["arrays"][0].update(shape=shape)))
    with pytest.raises(EncoderFileError, match=r"has no shape|not as large as it is described"):
        read_description(file)
