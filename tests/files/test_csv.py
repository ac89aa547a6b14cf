"""Text files as rows."""

from __future__ import annotations

import polars as pl
import pytest

from sufrep._files import open_table
from sufrep.errors import TableContentError


def test_leading_zeros_stay_in_columns_that_are_text(written):
    path = written("zip,x\n01234,1\n00001,2\n")
    assert open_table(path, text=["zip"]).read()["zip"].to_list() == ["01234", "00001"]
    assert open_table(path).read()["zip"].to_list() == [1234, 1]


def test_quotes_and_line_ends_inside_of_fields(written):
    frame = open_table(written('a;b\n"x;y\nz";"he said ""hi"""\n')).read()
    assert frame.rows() == [("x;y\nz", 'he said "hi"')]


def test_an_empty_text_in_quotes_is_no_null(written):
    assert open_table(written('a,b\n"",1\n,2\nx,3\n')).read()["a"].to_list() == ["", None, "x"]


def test_text_in_latin_1_is_read_with_a_note(written):
    source = open_table(written("ort;x\nMünchen;1\nKöln;2\n".encode("latin-1")), text=["ort"])
    assert source.read()["ort"].to_list() == ["München", "Köln"]
    assert source.notes == ("read as Windows-1252 (Latin-1), because it is not UTF-8",)


def test_decimal_commas_are_read_with_a_note(written):
    source = open_table(written("plz;preis\n01234;1,5\n01235;2.000,25\n"), text=["plz"])
    assert source.read().rows() == [("01234", 1.5), ("01235", 2000.25)]
    assert source.notes == ("commas taken as decimal signs in 'preis'",)


def test_emoji_are_levels_like_others(written):
    assert open_table(written("g,x\n😀,1\n👩‍👩‍👧,2\n")).read()["g"].to_list() == ["😀", "👩‍👩‍👧"]


def test_old_line_ends(written):
    assert open_table(written(b"a,b\r1,2\r3,4\r")).read().rows() == [(1, 2), (3, 4)]


def test_blank_lines_are_left_out_and_told(written):
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
def test_a_row_of_another_length_is_told_by_its_line(written, row, n_fields):
    with pytest.raises(TableContentError, match=rf"has {n_fields} field\(s\) in line 3; its header has 2"):
        open_table(written(f"a,b\n1,2\n{row}\n4,5\n"))


@pytest.mark.parametrize("content", ['a,b\n"x,2\n3,4\n', 'a,b\n1,2\n"3"x,4\n', 'a,b\n1,"2\n3,4\n'])
def test_quotes_that_are_not_closed_are_refused(written, content):
    with pytest.raises(TableContentError, match="Hint: look for"):
        open_table(written(content))


def test_a_field_that_never_ends_is_refused(written):
    with pytest.raises(TableContentError, match="cannot be read after line 2: field larger than field limit"):
        open_table(written('a,b\n1,2\n"' + "x" * 200_000))


def test_a_header_alone_is_no_table(written):
    with pytest.raises(TableContentError, match="has columns but no rows"):
        open_table(written("a,b\n"))


def test_batches_have_the_types_of_the_whole(written):
    path = written("a,b\n" + "1,1\n" * 3000 + "2.5,x\n")
    schemas = {tuple(batch.schema.items()) for batch in open_table(path).batches(100)}
    assert schemas == {(("a", pl.Float64), ("b", pl.String))}
