"""Temporary copies do not stay behind, and generated code is broken into lines."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

from sufrep._files._scan import TemporaryCopy, call_code, dict_code


def test_the_file_exists_as_long_as_there_is_a_reference():
    copy = TemporaryCopy(".csv")
    path = copy.path
    assert path.exists()
    del copy
    gc.collect()
    assert not path.exists()


def test_the_exit_of_the_interpreter_removes_it_too():
    code = "from sufrep._files._scan import TemporaryCopy; kept = TemporaryCopy('.csv'); print(kept.path)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not Path(shown.stdout.strip()).exists()


def test_long_calls_and_dictionaries_are_broken_into_lines():
    items = [f"'column_{j}': pl.Float64" for j in range(20)]
    code = call_code("pl.read_csv", ["'houses.csv'", f"schema_overrides={dict_code(items)}"])
    assert max(map(len, code.splitlines())) <= 88
    assert all(item in code for item in items)
