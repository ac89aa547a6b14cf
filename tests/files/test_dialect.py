"""How a text file is written is found out, not asked."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._files._dialect import SEPARATORS, _guess_separator, read_dialect
from sufrep.errors import TableContentError

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
def test_signs_inside_of_fields_do_not_count(text, separator):
    assert _guess_separator(text) == separator


def test_a_file_called_tsv_has_tabs_even_if_commas_look_better(written):
    assert read_dialect(written("a\tb,c,d\n1\t2,3,4\n", "table.tsv")).names == ("a", "b,c,d")


def test_plain_utf8_is_read_where_it_is(written):
    path = written("a,b\n1,ü\n")
    file = read_dialect(path)
    assert (file.path, file.scratch, file.notes) == (path, None, ())


def test_the_mark_of_utf8_is_no_part_of_the_first_name(written):
    assert read_dialect(written(b"\xef\xbb\xbfzip,x\n1,2\n")).names == ("zip", "x")


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("cp1252", "read as Windows-1252 (Latin-1), because it is not UTF-8"),
        ("utf-16", "read as UTF-16"),
    ],
)
def test_other_characters_are_copied_as_utf8(written, encoding, note):
    file = read_dialect(written("ort,x\nKöln – “Süd”,1\n".encode(encoding)))
    assert file.notes == (note,)
    assert file.path.read_text(encoding="utf-8").endswith("ort,x\nKöln – “Süd”,1\n")


def test_bytes_that_windows_does_not_know_are_latin_1(written):
    file = read_dialect(written("ort,x\nKöln,1\n".encode("latin-1") + b"\x81,2\n"))
    assert file.notes == ("read as Latin-1, because it is not UTF-8",)
    assert file.path.read_text(encoding="utf-8") == "ort,x\nKöln,1\n\x81,2\n"


def test_latin_1_is_recognised_far_behind_the_start(written):
    content = b"ort,x\n" + b"Berlin,1\n" * 200_000 + "Köln,2\n".encode("latin-1")
    assert read_dialect(written(content)).notes


def test_a_compressed_file_is_unpacked(written):
    file = read_dialect(written(gzip.compress(b"a,b\n1,2\n"), "table.csv.gz"))
    assert file.path.read_bytes() == b"a,b\n1,2\n"


def test_line_ends_of_old_machines_are_known(written):
    assert read_dialect(written(b"a,b\r1,2\r3,4\r")).line_end == "\r"
    assert read_dialect(written(b"a,b\r\n1,2\r\n")).line_end == "\n"


def test_names_lose_the_blanks_around_them_and_keep_those_inside(written):
    assert read_dialect(written('a, b c ,"d\ne"\n1,2,3\n')).names == ("a", "b c", "d\ne")


def test_a_column_without_a_name_gets_one_and_a_note(written):
    file = read_dialect(written(",x\n0,5\n1,6\n"))
    assert file.names == ("column_1", "x")
    assert file.notes == ("column 1 has no name and is called 'column_1'",)


def test_names_that_come_twice_are_refused(written):
    with pytest.raises(TableContentError, match=r"more than one column called 'a', 'b'.\nHint: rename"):
        read_dialect(written("a,b, a,b,c\n1,2,3,4,5\n"))


@pytest.mark.parametrize("content", ["\n\n", " , \n1,2\n"])
def test_a_file_without_a_header_is_refused(written, content):
    with pytest.raises(TableContentError, match="has no header in its first line"):
        read_dialect(written(content))


def test_a_file_that_is_no_text_is_refused(written):
    with pytest.raises(TableContentError, match="has the name of a text file but holds something else"):
        read_dialect(written(b"PK\x03\x04\x00\x00"))


def test_records_know_their_lines(written):
    file = read_dialect(written('a,b\n"1\n2",3\n4,5\n'))
    assert list(file.records()) == [(1, ["a", "b"]), (3, ["1\n2", "3"]), (4, ["4", "5"])]
