"""Tables as text, Markdown and LaTeX: the exact output of a small one, and every special of LaTeX."""

from __future__ import annotations

import pytest

from sufrep._paper.rendering import Table

SMALL = Table("A title", ("setup", "one_two"), (("a", "1.0 ± 0.5"), ("longer", "2 %")), ("A note.",))


def test_text_stands_in_columns():
    assert SMALL.render("text") == (
        "A title\nsetup   one_two\n------  ---------\na       1.0 ± 0.5\nlonger  2 %\nA note.\n"
    )


def test_markdown_is_a_table_between_empty_lines():
    assert SMALL.render("markdown") == (
        "**A title**\n\n| setup | one_two |\n| --- | --- |\n| a | 1.0 ± 0.5 |\n| longer | 2 % |\n\nA note.\n"
    )


def test_latex_is_a_whole_float_with_its_specials_escaped():
    assert SMALL.render("latex") == (
        "\\begin{table}\n"
        "\\centering\n"
        "\\begin{tabular}{ll}\n"
        "\\hline\n"
        "setup & one\\_two \\\\\n"
        "\\hline\n"
        "a & 1.0 $\\pm$ 0.5 \\\\\n"
        "longer & 2 \\% \\\\\n"
        "\\hline\n"
        "\\end{tabular}\n"
        "\\caption{A title. A note.}\n"
        "\\end{table}\n"
    )


@pytest.mark.parametrize(
    ("plain", "escaped"),
    [
        ("_", r"\_"),
        ("%", r"\%"),
        ("&", r"\&"),
        ("#", r"\#"),
        ("$", r"\$"),
        ("{}", r"\{\}"),
        ("±", r"$\pm$"),
        ("\\", r"\textbackslash{}"),
        ("~", r"\textasciitilde{}"),
        ("^", r"\textasciicircum{}"),
    ],
)
def test_every_special_of_latex_is_escaped_once(plain, escaped):
    assert f"x{escaped}y & b" in Table("", ("", ""), ((f"x{plain}y", "b"),)).render("latex")
