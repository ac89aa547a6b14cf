"""Text files: how they are written, and the types of their columns, are found out from the file itself."""

from __future__ import annotations

import gzip
from contextlib import suppress
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._files import _text, open_table
from sufrep._files._text import SEPARATORS, _guess_separator, read_dialect
from sufrep.errors import TableContentError

# Rows


def test_leading_zeros_stay_in_columns_that_are_text(written):
    path = written("zip,x\n01234,1\n00001,2\n")
    assert open_table(path, text=["zip"]).read()["zip"].to_list() == ["01234", "00001"]
    assert open_table(path).read()["zip"].to_list() == [1234, 1]


def test_quoted_fields_may_hold_separators_quotes_and_line_ends(written):
    frame = open_table(written('a;b\n"x;y\nz";"he said ""hi"""\n')).read()
    assert frame.rows() == [("x;y\nz", 'he said "hi"')]


def test_an_empty_text_in_quotes_is_not_null(written):
    assert open_table(written('a,b\n"",1\n,2\nx,3\n')).read()["a"].to_list() == ["", None, "x"]


def test_latin_1_is_read_with_a_note(written):
    source = open_table(written("ort;x\nMünchen;1\nKöln;2\n".encode("latin-1")), text=["ort"])
    assert source.read()["ort"].to_list() == ["München", "Köln"]
    assert source.notes == ("read as Windows-1252 (Latin-1), because it is not UTF-8",)


def test_decimal_commas_are_read_with_a_note(written):
    source = open_table(written("plz;preis\n01234;1,5\n01235;2.000,25\n"), text=["plz"])
    assert source.read().rows() == [("01234", 1.5), ("01235", 2000.25)]
    assert source.notes == ("commas read as decimal signs in 'preis'",)


def test_emoji_are_levels_like_others(written):
    assert open_table(written("g,x\n😀,1\n👩‍👩‍👧,2\n")).read()["g"].to_list() == ["😀", "👩‍👩‍👧"]


def test_carriage_returns_end_lines(written):
    assert open_table(written(b"a,b\r1,2\r3,4\r")).read().rows() == [(1, 2), (3, 4)]


def test_blank_lines_are_left_out_with_a_note(written):
    source = open_table(written("a,b\n1,2\n\n3,\n\n"))
    assert source.read().rows() == [(1, 2), (3, None)]
    assert source.n_rows == 2
    assert source.notes == ("2 empty line(s) left out",)


def test_rows_of_nulls_are_rows(written):
    source = open_table(written("a,b\n1,2\n,\n3,4\n"))
    assert source.read().rows() == [(1, 2), (None, None), (3, 4)]
    assert source.notes == ()


def test_blank_lines_of_a_single_column_are_nulls(written):
    assert open_table(written("a\n1\n\n3\n")).read()["a"].to_list() == [1, None, 3]


@pytest.mark.parametrize(("row", "n_fields"), [("3", 1), ("3,4,5", 3)])
def test_a_row_of_another_length_is_reported_with_its_line(written, row, n_fields):
    with pytest.raises(TableContentError, match=rf"has {n_fields} field\(s\) in line 3; its header has 2"):
        open_table(written(f"a,b\n1,2\n{row}\n4,5\n"))


@pytest.mark.parametrize("content", ['a,b\n"x,2\n3,4\n', 'a,b\n1,2\n"3"x,4\n', 'a,b\n1,"2\n3,4\n'])
def test_quotes_that_are_not_closed_are_refused(written, content):
    with pytest.raises(TableContentError, match="Hint: look for"):
        open_table(written(content))


def test_a_field_without_end_is_refused(written):
    content = 'a,b\n1,2\n"' + "x,3\n" * 50_000
    with pytest.raises(TableContentError, match=r"has 1 field\(s\) in the record of lines 3 to 50002; its"):
        open_table(written(content))


def test_a_field_that_is_too_long_for_memory_is_refused(written, monkeypatch):
    monkeypatch.setattr(_text, "_LIMIT", 1000)
    with pytest.raises(TableContentError, match="cannot be read after line 2: field larger than field limit"):
        open_table(written('a,b\n1,2\n"' + "x" * 2000))


@pytest.mark.parametrize("n_rows", [1, 60_000])
def test_a_header_without_end_is_refused(written, n_rows):
    with pytest.raises(TableContentError, match=r"has no end of its header in .*\nHint: look for a quote"):
        open_table(written('a,"b\n' + "1,2\n" * n_rows))


def test_a_long_field_is_read(written):
    long = "y" * 200_000
    path = written(f"a,b\n1,{long}\n2,z\n\n3,\n")
    assert open_table(path).read()["b"].to_list() == [long, "z", None]


def test_a_header_of_more_than_the_first_bytes_is_read(written):
    names = [f"{j}" + "x" * 150_000 for j in range(3)]
    assert open_table(written(",".join(names) + "\n1,2,3\n")).read().rows() == [(1, 2, 3)]


@pytest.mark.parametrize("odd", ["\f", "\v", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_line_ends_end_the_header(written, odd):
    source = open_table(written(f"a{odd}b,c\n1,2\n"))
    assert source.names == (f"a{odd}b", "c")
    assert source.read().rows() == [(1, 2)]


@given(st.data())
def test_a_damaged_archive_is_an_error_of_ours(tmp_path_factory, data):
    whole = gzip.compress(b"g,x\n" + b"".join(b"a%d,%d\n" % (j % 7, j) for j in range(50)), mtime=0)
    damaged = bytearray(whole)
    damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(1, len(whole)))]
    path = tmp_path_factory.getbasetemp() / "damaged.csv.gz"
    path.write_bytes(damaged)
    with suppress(TableContentError):
        assert open_table(path).read().columns == ["g", "x"]


@pytest.mark.parametrize("name", ["DATA.CSV.GZ", "Data.Tsv.Gz"])
def test_endings_in_capitals_are_understood(written, name):
    separator = "\t" if "tsv" in name.lower() else ","
    source = open_table(written(gzip.compress(f"g{separator}x\nä{separator}1\n".encode("latin-1")), name))
    scope: dict[str, Any] = {}
    exec(source.code, scope)
    assert scope["table"].rows() == source.read().rows() == [("ä", 1)]


def test_a_header_without_rows_is_refused(written):
    with pytest.raises(TableContentError, match="has columns but no rows"):
        open_table(written("a,b\n"))


def test_batches_have_the_types_of_the_whole(written):
    path = written("a,b\n" + "1,1\n" * 3000 + "2.5,x\n")
    schemas = {tuple(batch.schema.items()) for batch in open_table(path).batches(100)}
    assert schemas == {(("a", pl.Float64), ("b", pl.String))}


# The dialect


words = st.text("abcxyz09 _-", min_size=1, max_size=5)


@given(st.lists(st.lists(words, min_size=3, max_size=3), min_size=2, max_size=6), st.sampled_from(SEPARATORS))
def test_the_separator_is_the_one_that_makes_all_records_alike(records, separator):
    assert _guess_separator("\n".join(separator.join(record) for record in records)) == separator


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a;b\n1,5;2,5\n", ";"),
        ("a,b\n1;5,2\n", ","),
        ("name|x\nA, B and C|1\nD, E|2\n", "|"),
        ("a\tb, c\n1\t2, 3\n", "\t"),
        ('"a;b",c\n"1;2",3\n', ","),
        ("alone\n1\n2\n", ","),
    ],
)
def test_separators_inside_of_fields_do_not_count(text, separator):
    assert _guess_separator(text) == separator


def test_a_file_called_tsv_has_tabs_even_if_commas_look_better(written):
    assert read_dialect(written("a\tb,c,d\n1\t2,3,4\n", "table.tsv")).names == ("a", "b,c,d")


def test_plain_utf8_is_read_where_it_is(written):
    path = written("a,b\n1,ü\n")
    file = read_dialect(path)
    assert (file.path, file.copy, file.notes) == (path, None, ())


def test_the_byte_order_mark_is_not_part_of_the_first_name(written):
    assert read_dialect(written(b"\xef\xbb\xbfzip,x\n1,2\n")).names == ("zip", "x")


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("cp1252", "read as Windows-1252 (Latin-1), because it is not UTF-8"),
        ("utf-16", "read as UTF-16"),
    ],
)
def test_files_in_other_encodings_are_copied_as_utf8(written, encoding, note):
    file = read_dialect(written("ort,x\nKöln – “Süd”,1\n".encode(encoding)))
    assert file.notes == (note,)
    assert file.path.read_text(encoding="utf-8").endswith("ort,x\nKöln – “Süd”,1\n")


def test_bytes_without_a_meaning_in_windows_1252_are_latin_1(written):
    file = read_dialect(written("ort,x\nKöln,1\n".encode("latin-1") + b"\x81,2\n"))
    assert file.notes == ("read as Latin-1, because it is not UTF-8",)
    assert file.path.read_text(encoding="utf-8") == "ort,x\nKöln,1\n\x81,2\n"


def test_latin_1_is_recognised_far_from_the_start(written):
    content = b"ort,x\n" + b"Berlin,1\n" * 200_000 + "Köln,2\n".encode("latin-1")
    assert read_dialect(written(content)).notes


def test_a_compressed_file_is_unpacked(written):
    file = read_dialect(written(gzip.compress(b"a,b\n1,2\n"), "table.csv.gz"))
    assert file.path.read_bytes() == b"a,b\n1,2\n"


def test_line_ends_are_recognised(written):
    assert read_dialect(written(b"a,b\r1,2\r3,4\r")).line_end == "\r"
    assert read_dialect(written(b"a,b\r\n1,2\r\n")).line_end == "\n"


def test_names_lose_surrounding_blanks_and_keep_those_inside(written):
    assert read_dialect(written('a, b c ,"d\ne"\n1,2,3\n')).names == ("a", "b c", "d\ne")


def test_a_column_without_a_name_gets_one_and_a_note(written):
    file = read_dialect(written(",x\n0,5\n1,6\n"))
    assert file.names == ("column_1", "x")
    assert file.notes == ("column 1 has no name and is called 'column_1'",)


def test_duplicate_names_are_refused(written):
    with pytest.raises(TableContentError, match=r"more than one column called 'a', 'b'.\nHint: rename"):
        read_dialect(written("a,b, a,b,c\n1,2,3,4,5\n"))


@pytest.mark.parametrize("content", ["\n\n", " , \n1,2\n"])
def test_a_file_without_a_header_is_refused(written, content):
    with pytest.raises(TableContentError, match="has no header in its first line"):
        read_dialect(written(content))


def test_a_file_that_is_not_text_is_refused(written):
    with pytest.raises(TableContentError, match="has the ending of a text file but holds something else"):
        read_dialect(written(b"PK\x03\x04\x00\x00"))


def test_records_know_their_lines(written):
    file = read_dialect(written('a,b\n"1\n2",3\n4,5\n'))
    assert list(file.records()) == [(1, ["a", "b"]), (3, ["1\n2", "3"]), (4, ["4", "5"])]
