"""Temporary copies do not stay behind."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

from sufrep._files._scratch import Scratch


def test_the_file_is_there_as_long_as_somebody_holds_it():
    scratch = Scratch(".csv")
    path = scratch.path
    assert path.exists()
    del scratch
    gc.collect()
    assert not path.exists()


def test_the_end_of_the_program_removes_it_too():
    code = "from sufrep._files._scratch import Scratch; kept = Scratch('.csv'); print(kept.path)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not Path(shown.stdout.strip()).exists()
