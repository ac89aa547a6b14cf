"""Several files that are one table."""

from __future__ import annotations

import polars as pl
import pytest

from sufrep._files import open_table
from sufrep.errors import ReadingMismatchError, TableContentError


@pytest.fixture
def parts(tmp_path):
    """``parts("g,x\\na,1\\n", …)`` writes text to files and returns their names."""

    def write(*texts: str | bytes, ending: str = "csv") -> list[str]:
        for number, text in enumerate(texts):
            content = text.encode() if isinstance(text, str) else text
            (tmp_path / f"{number}.{ending}").write_bytes(content)
        return [str(tmp_path / f"{number}.{ending}") for number in range(len(texts))]

    return write


def test_types_are_those_of_all_files_together(parts):
    source = open_table(parts("g,x,y\na,1,\nb,2,\n", "g,x,y\nc,1.5,3\n", "g,x,y\nd,NA,\n"))
    assert source.n_rows == 4
    assert source.read().equals(
        pl.DataFrame({"g": list("abcd"), "x": [1.0, 2.0, 1.5, None], "y": [None, None, 3, None]})
    )


def test_containers_may_differ(parts):
    source = open_table(
        parts("g,x\nKöln,1\n", "x;g\n2;Bonn\n", "g\tx\nJülich\t3\n".encode("latin-1"), "g,x\n\nUlm,4\n")
    )
    assert source.read().sort("x").rows() == [("Köln", 1), ("Bonn", 2), ("Jülich", 3), ("Ulm", 4)]
    assert source.n_rows == 4
    assert any("(in 1 file(s), such as " in note for note in source.notes)
    assert any("empty line(s) left out" in note for note in source.notes)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("g,x\na,1\n", "g,x\nb,two\n"), "1.csv' holds text in column 'x', where '.*0.csv' holds numbers"),
        (("g,x\na,one\n", "g,x\nb,2\n"), "1.csv' holds numbers in column 'x', where '.*0.csv' holds text"),
        (("g,x\na,true\n", "g,x\nb,2\n"), "holds numbers in column 'x', where '.*0.csv' holds booleans"),
        (("g;x\na;1,5\n", "g;x\nb;2.5\n"), "with decimal points in column 'x', where .* with decimal commas"),
        (("g,x\na,1\n", "g,y\nb,2\n"), "1.csv' has no column 'x', unlike '.*0.csv'"),
        (("g,x\na,1\n", "g,x,y\nb,2,3\n"), "1.csv' has another column, 'y', unlike '.*0.csv'"),
        (("g,x\na,1\n", "g,x\nb,2,3\n"), r"1.csv' has 3 field\(s\) in line 2; its header has 2"),
        (("g,x\na,1\n", ""), "1.csv' is empty: 0 bytes"),
    ],
)
def test_text_files_that_differ_are_refused(parts, texts, message):
    with pytest.raises(TableContentError, match=message):
        open_table(parts(*texts))


def test_a_column_is_text_in_all_files_on_request(parts):
    names = parts("g,x\na,01\n", "g,x\nb,two\n")
    assert open_table(names, text=["x"]).read()["x"].to_list() == ["01", "two"]
    assert open_table(names, drop=["x"]).read()["g"].to_list() == ["a", "b"]


def test_numbers_of_many_digits_in_one_file_are_text_in_all(parts):
    source = open_table(parts("g,x\na,1\n", "g,x\nb,123456789012345678901234567890\n"))
    assert source.read()["x"].to_list() == ["1", "123456789012345678901234567890"]


def test_another_reading_holds_for_all_files(parts):
    reading = open_table(parts("g;x\na;1,5\n")).reading
    names = parts("g;x\na;1.708\n", "g;x\nb;2,5\n")
    assert open_table(names, reading=reading).read()["x"].to_list() == [1708.0, 2.5]
    with pytest.raises(
        ReadingMismatchError, match=r"Column 'x' of '.*0.csv and 1 more' holds '2.5' in row 2"
    ):
        open_table(parts("g;x\na;1.708\n", "g;x\nb;2.5\n"), reading=reading)


def test_typed_files_match_by_name(tmp_path):
    pl.DataFrame({"g": ["a"], "x": [1]}).write_parquet(tmp_path / "0.parquet")
    pl.DataFrame({"x": [2], "g": ["b"]}).write_parquet(tmp_path / "1.parquet")
    names = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    assert open_table(names).read().rows() == [("a", 1), ("b", 2)]
    for name in names:
        pl.read_parquet(name).write_ipc(name.replace("parquet", "arrow"))
    arrow = [name.replace("parquet", "arrow") for name in names]
    assert sorted(open_table(arrow).read().select("g", "x").rows()) == [("a", 1), ("b", 2)]
    with pytest.raises(TableContentError, match=r"0.arrow' is of another kind than .*1.parquet"):
        open_table([names[1], arrow[0]])


def test_names_of_folders_are_columns_where_files_lack_them(tmp_path):
    for year, code in ((2023, "01"), (2024, "a%20b"), (2024, "__HIVE_DEFAULT_PARTITION__")):
        place = tmp_path / f"year={year}/code={code}"
        place.mkdir(parents=True)
        pl.DataFrame({"x": [year]}).write_parquet(place / "0.parquet")
    names = [str(path) for path in sorted(tmp_path.rglob("*.parquet"))]
    rows = open_table(names, text=["code"]).read()
    assert set(rows.select("x", "year", "code").rows()) == {
        (2023, 2023, "01"),
        (2024, 2024, "a b"),
        (2024, 2024, None),
    }
    # Values that are no whole numbers stay text.
    assert open_table(names).read()["code"].dtype == pl.String


def test_a_table_without_any_rows_is_refused(parts):
    with pytest.raises(TableContentError, match="1 more' has columns but no rows"):
        open_table(parts("g,x\n", "g,x\n"))
    assert open_table(parts("g,x\n", "g,x\na,1\n")).n_rows == 1
