"""Parse a page as a browser does, without one."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser

import pytest

Attributes = dict[str, str | None]


class Reader(HTMLParser):
    """The elements of a page with their attributes, and the text between consecutive tags."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, Attributes]] = []
        self.texts: list[str] = [""]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_endtag(self, *_: str) -> None:
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        self.texts[-1] += data

    def attributes(self, name: str) -> list[str]:
        return [found for _, attributes in self.elements if (found := attributes.get(name)) is not None]

    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]


@pytest.fixture(scope="session")
def read() -> Callable[[str], Reader]:
    def read_page(html: str) -> Reader:
        reader = Reader()
        reader.feed(html)
        reader.close()
        return reader

    return read_page
