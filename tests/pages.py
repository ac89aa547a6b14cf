"""README and the pages of the documentation: their blocks of code, their links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOLDERS = ("tutorials", "how-to", "explanation", "results", "coming-from", "reference")
# `make pictures` writes these from the stores in results/.
GENERATED = {
    DOCS / "results" / name
    for name in (
        "paper/tables.md",
        "beyond/simulations.md",
        "beyond/forest.md",
        "beyond/benchmark.md",
        "effects/simulations.md",
    )
}
_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+)(?P<language>[^`\n]*)$")
# Comments of the page that say how the next block is treated.
_MARK = re.compile(r"^ *<!-- (?P<mark>not run|parsed, not run|output)(?:: (?P<reason>.+))? -->$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, text and first line, and what the comment above it says."""

    page: Path
    line: int
    language: str
    text: str
    mark: str | None
    reason: str | None


def written_pages() -> list[Path]:
    """README and every page of docs that a person wrote."""
    written = (path for folder in FOLDERS for path in sorted((DOCS / folder).rglob("*.md")))
    return [
        ROOT / "README.md",
        *sorted(DOCS.glob("*.md")),
        *(path for path in written if path not in GENERATED),
    ]


def page_name(page: Path) -> str:
    """The path of a page in the repository, for the names of tests."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = iter(enumerate(page.read_text("utf-8").splitlines(), start=1))
    mark = reason = None
    for number, line in lines:
        if found := _MARK.match(line):
            mark, reason = found["mark"], found["reason"]
        elif fence := _FENCE.match(line):
            end, indent = fence["ticks"], len(fence["indent"])
            inside = []
            for _, content in lines:
                if content.strip() == end:
                    break
                inside.append(content[indent:])
            text = "\n".join(inside) + "\n"
            yield Block(page, number, fence["language"].strip(), text, mark, reason)
            mark = reason = None
        elif line.strip():
            mark = reason = None


def prose(page: Path) -> str:
    """The text of a page without its fenced blocks and code spans."""
    return re.sub(r"`[^`\n]+`", "", _without_blocks(page))


def links(page: Path) -> list[str]:
    """The targets of the links and pictures of a page that are no addresses of the web."""
    found = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [target for target in found if not re.match(r"(https?|mailto):", target)]


def anchors(page: Path) -> set[str]:
    """What links to headings of a page may end in, as GitHub and MyST make it."""
    found = set()
    for heading in re.findall(r"^#{1,6} (.+)$", _without_blocks(page), flags=re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        found.add(words.replace(" ", "-"))
    return found


def _without_blocks(page: Path) -> str:
    return re.sub(
        r"^( *)(```+)[^\n]*\n.*?^\1\2 *$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )
