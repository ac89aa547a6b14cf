"""Optional packages are asked for when they are needed; charts are written completely or not at all."""

from __future__ import annotations

from typing import IO, Any

import pytest

from sufrep import errors
from sufrep._charts import _altair, load_altair, save_chart, write_chart


class FakeChart:
    """Writes half of a file before it writes the rest, and fails in between for one of the formats."""

    def __init__(self, fails_at: str = "") -> None:
        self._fails_at = fails_at

    def save(self, file: IO[Any], **options: Any) -> None:
        text = f"whole {options['format']}"
        file.write(text.encode() if options["format"] == "png" else text)
        if options["format"] == self._fails_at:
            raise OSError(28, "No space left on device")


def test_a_chart_is_written_in_three_formats_under_one_name(tmp_path):
    written = write_chart(FakeChart(), tmp_path / "figure_1.5")
    assert [path.name for path in written] == ["figure_1.5.png", "figure_1.5.svg", "figure_1.5.html"]
    assert [path.read_text() for path in written] == ["whole png", "whole svg", "whole html"]
    assert sorted(tmp_path.iterdir()) == sorted(written)


def test_a_file_is_written_completely_or_not_at_all(tmp_path):
    (tmp_path / "figure.svg").write_text("old")
    with pytest.raises(OSError, match="No space left"):
        write_chart(FakeChart(fails_at="svg"), tmp_path / "figure")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"figure.png": "whole png", "figure.svg": "old"}


def test_the_ending_decides_the_format_of_a_chart(tmp_path):
    assert save_chart(FakeChart(), tmp_path / "ranking.svg").read_text() == "whole svg"
    with pytest.raises(errors.FileEndingError, match=r"none of \.png, \.svg, \.html"):
        save_chart(FakeChart(), tmp_path / "ranking.pdf")


def test_without_altair_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(_altair, "find_spec", lambda _: None)
    with pytest.raises(
        errors.MissingDependencyError,
        match=r"Drawing needs the package 'altair'.*\nHint: pip install .sufrep\[report\]",
    ):
        load_altair()


def test_without_the_renderer_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(_altair, "find_spec", lambda _: None)
    with pytest.raises(
        errors.MissingDependencyError,
        match=r"Writing a chart needs the package 'vl-convert-python'.*\nHint: .* .sufrep\[report\]",
    ):
        write_chart(FakeChart(), tmp_path / "figure")
    assert not list(tmp_path.iterdir())
