"""Comments in the source that name the test which guards them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_test_that_the_source_names_exists():
    source = "\n".join(file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py"))
    tests = "\n".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py"))
    named = set(re.findall(r"\btest_[a-z0-9_]{12,}", source))
    defined = set(re.findall(r"def (test_[a-z0-9_]+)\(", tests))
    assert named
    assert named <= defined
