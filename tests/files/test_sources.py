"""Tables of all formats, opened in one way."""

from __future__ import annotations

import gzip
import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep._files import open_table, write_table
from sufrep.errors import (
    FileEndingError,
    InvalidParameterError,
    MissingDependencyError,
    TableColumnError,
    TableContentError,
    TableNotFoundError,
)

ENDINGS = ["csv", "tsv", "parquet", "pq", "feather", "arrow", "ipc"]
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)


def rows_of(n: int) -> st.SearchStrategy[pl.DataFrame]:
    def column(values: st.SearchStrategy[object]) -> st.SearchStrategy[list[object]]:
        return st.lists(st.none() | values, min_size=n, max_size=n)

    return st.builds(
        lambda text, whole, number, truth: pl.DataFrame(
            {"text": text, "whole": whole, "number": number, "truth": truth},
            schema={"text": pl.String, "whole": pl.Int64, "number": pl.Float64, "truth": pl.Boolean},
        ),
        column(texts),
        column(st.integers(-(2**63), 2**63 - 1)),
        column(st.floats()),
        column(st.booleans()),
    )


frames = st.integers(1, 12).flatmap(rows_of)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize("ending", ENDINGS)
@given(frame=frames)
@settings(max_examples=25, deadline=None)
def test_what_is_written_is_read(folder, ending, frame):
    path = folder / f"table.{ending}"
    write_table(frame, path)
    source = open_table(path, text=["text"])
    # In a text file, a column without any value has no type.
    assert source.read().cast(frame.schema).equals(frame)
    assert (source.n_rows, source.names) == (frame.height, tuple(frame.columns))


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
@given(frame=frames, size=st.integers(1, 13))
@settings(max_examples=15, deadline=None)
def test_batches_together_are_the_table_and_none_is_too_large(folder, ending, frame, size):
    path = folder / f"batches.{ending}"
    write_table(frame, path)
    source = open_table(path, text=["text"])
    batches = list(source.batches(size))
    assert pl.concat(batches).equals(source.read())
    assert all(1 <= batch.height <= size for batch in batches)


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_a_sample_is_drawn_without_replacement_in_the_order_of_the_table(folder, ending):
    path = folder / f"sample.{ending}"
    write_table(pl.DataFrame({"i": range(1000)}), path)
    source = open_table(path)
    sample = source.read(100, seed=3)["i"].to_list()
    assert len(set(sample)) == 100
    assert sample == sorted(sample)
    assert sample == source.read(100, seed=3)["i"].to_list()
    assert sample != source.read(100, seed=4)["i"].to_list()


def test_every_row_is_drawn_as_often_as_any_other(written):
    source = open_table(written("i\n" + "\n".join(map(str, range(10)))))
    drawn = [i for seed in range(300) for i in source.read(3, seed)["i"]]
    assert all(60 <= drawn.count(i) <= 120 for i in range(10))  # 90 expected, standard deviation 8


def test_a_sample_larger_than_the_table_is_the_table(written):
    source = open_table(written("i\n1\n2\n"))
    assert source.read(2)["i"].to_list() == source.read(9)["i"].to_list() == [1, 2]


def test_a_sample_of_nothing_is_refused(written):
    with pytest.raises(InvalidParameterError, match="n_rows is 0"):
        open_table(written("i\n1\n")).read(0)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_stored_numbers_become_text_where_text_is_asked_for(folder, ending):
    path = folder / f"typed.{ending}"
    write_table(pl.DataFrame({"zip": [98178, None], "area": [206.0, 206.5], "x": [1, 2]}), path)
    frame = open_table(path, text=["zip", "area"]).read()
    assert frame.rows() == [("98178", "206", 1), (None, "206.5", 2)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_that_are_left_out_are_as_if_they_were_not_there(folder, ending):
    path = folder / f"less.{ending}"
    write_table(pl.DataFrame({"id": ["01", "02"], "x": [1, 2]}), path)
    source = open_table(path, drop=["id"])
    assert source.names == ("x",)
    assert source.notes == ()
    assert source.read().columns == ["x"]


def test_a_column_of_lists_is_no_text(folder):
    path = folder / "nested.parquet"
    write_table(pl.DataFrame({"a": [[1, 2]], "b": [1]}), path)
    assert open_table(path, drop=["a"]).read().columns == ["b"]
    with pytest.raises(TableContentError, match=r"holds List\(Int64\) in column 'a'"):
        open_table(path, text=["a"])


def test_a_name_may_hold_brackets(folder):
    (folder / "[1]").mkdir()
    for ending in ("csv", "parquet", "feather"):
        path = folder / "[1]" / f"table[*].{ending}"
        write_table(pl.DataFrame({"a": [1]}), path)
        assert open_table(path).read().rows() == [(1,)]


def test_endings_may_be_in_capitals_and_compressed(written):
    assert open_table(written("a,b\n1,2\n", "TABLE.CSV")).n_rows == 1
    assert open_table(written(gzip.compress(b"a,b\n1,2\n"), "table.csv.gz")).read().rows() == [(1, 2)]


def test_a_path_may_be_text(written):
    assert open_table(str(written("a\n1\n"))).where.endswith("table.csv")


@pytest.mark.parametrize("option", ["text", "drop"])
def test_a_column_that_is_not_there_suggests_one_that_is(written, option):
    with pytest.raises(TableColumnError, match=r"has no column 'zipcod'.\nHint: did you mean 'zipcode'"):
        open_table(written("zipcode,x\n1,2\n"), **{option: ["zipcod"]})


def test_required_columns_unlike_any_other_list_what_there_is(written):
    with pytest.raises(TableColumnError, match=r"no column 'hospital'.\nHint: the columns are 'a', 'b'."):
        open_table(written("a,b\n1,2\n")).require(["a", "hospital"])


def test_a_missing_file_suggests_its_neighbour(written):
    written("a\n1\n", "houses.csv")
    with pytest.raises(
        TableNotFoundError, match=r"no file .*house.csv'.\nHint: did you mean .*houses.csv'\?$"
    ):
        open_table(written("x", "other.bin").parent / "house.csv")


def test_a_missing_file_unlike_its_neighbours_tells_the_folder(tmp_path):
    with pytest.raises(TableNotFoundError, match="Hint: look at how it is spelt; this is the folder"):
        open_table(tmp_path / "houses.csv")


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(TableNotFoundError, match=r"There is no folder .*nowhere"):
        open_table(tmp_path / "nowhere" / "houses.csv")


def test_a_folder_is_no_table(tmp_path):
    with pytest.raises(TableContentError, match=r"is a folder.\nHint: name a file in it"):
        open_table(tmp_path)


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather", "csv.gz"])
def test_an_empty_file_is_refused(written, ending):
    with pytest.raises(TableContentError, match="is empty: 0 bytes"):
        open_table(written(b"", f"table.{ending}"))


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_a_file_without_rows_is_refused(folder, ending):
    path = folder / f"norows.{ending}"
    write_table(pl.DataFrame({"a": []}, schema={"a": pl.Int64}), path)
    with pytest.raises(TableContentError, match="has columns but no rows"):
        open_table(path)


@pytest.mark.parametrize(("name", "hint"), [("a.xlsx", "save it as"), ("a.sqlite", "sqlite:.*#sales")])
def test_an_unknown_ending_is_refused_with_a_way_out(written, name, hint):
    with pytest.raises(FileEndingError, match=f"none of .csv, .*\nHint: .*{hint}"):
        open_table(written("x", name))


@pytest.fixture(scope="module", params=["parquet", "feather"])
def sound(request, folder):
    """The bytes of a file, and its ending."""
    path = folder / f"sound.{request.param}"
    write_table(pl.DataFrame({"zip": [f"{i % 97:05d}" for i in range(500)], "x": range(500)}), path)
    return path.read_bytes(), request.param


@pytest.mark.parametrize("share", [0.001, 0.5, 0.999])
def test_truncated_files_are_refused(written, sound, share):
    content, ending = sound
    path = written(content[: int(len(content) * share) + 1], f"cut.{ending}")
    with pytest.raises(TableContentError, match=r"cannot be read; it may be damaged"):
        open_table(path)


def test_damaged_files_are_refused_or_read_but_never_crash(written, sound):
    content, ending = sound
    path = written(content, f"flipped.{ending}")
    code = (
        "import sys, pathlib\n"
        "from sufrep._files import open_table\n"
        "from sufrep.errors import TableContentError\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "content = path.read_bytes()\n"
        "for place in range(max(0, len(content) - 600), len(content), 10):\n"
        "    damaged = bytearray(content)\n"
        "    damaged[place] ^= 0x55\n"
        "    path.write_bytes(damaged)\n"
        "    try:\n"
        "        open_table(path).read()\n"
        "    except TableContentError as error:\n"
        "        print(str(error).splitlines()[0])\n"
    )
    # In a process of its own, because polars ends it where a flipped byte makes it ask for 2**61 bytes.
    shown = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    messages = shown.stdout.splitlines()
    assert len(messages) > 10
    assert all("cannot be read; it may be damaged" in message for message in messages)


def test_a_panic_of_polars_is_an_error_of_ours(written, sound, monkeypatch):
    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("index out of bounds")

    source = open_table(written(sound[0], f"sound.{sound[1]}"))
    monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    with pytest.raises(TableContentError, match=r"cannot be read; .* \(index out of bounds\)"):
        source.read()


def test_damage_that_shows_late_is_an_error_of_ours_too(written):
    path = written("a,b\n" + "1,2\n" * 1000)
    source = open_table(path)
    path.write_text("a,b\n" + "1,2\n" * 500 + "1,2,3\n" * 500)
    with pytest.raises(TableContentError, match="cannot be read"):
        list(source.batches(100))


def test_a_broken_archive_is_refused(written):
    path = written(gzip.compress(b"a,b\n1,2\n" * 1000)[:40], "cut.csv.gz")
    with pytest.raises(TableContentError, match="cannot be read; it may be damaged"):
        open_table(path)


def test_without_polars_the_extra_is_named(monkeypatch, written):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingDependencyError, match=r"needs the package 'polars'.*\n.*sufrep\[cli\]"):
        open_table(written("a\n1\n"))
