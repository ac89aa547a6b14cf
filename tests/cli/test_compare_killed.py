"""A comparison that is killed leaves no half of a report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

STOPPED = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
moment, marker = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
def stop(*_):
    marker.touch()
    time.sleep(60)
import sufrep
from sufrep._report import _render
_render.drawing_bundle = lambda: ""
if moment == "learning":
    sufrep.MeansEncoder.fit_transform = stop
else:
    os.fsync = stop
from sufrep.cli import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("moment", ["learning", "writing"])
def test_a_killed_run_leaves_the_old_report_as_it_was_and_no_new_one(tmp_path, moment, number):
    x = np.arange(60.0)
    pl.DataFrame({"zipcode": list("abc") * 20, "sqft": x, "price": x**2}).write_csv(tmp_path / "houses.csv")
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "report.html").write_text("old")
    marker = tmp_path / "reached"
    options = "--target price --group zipcode --models linear --jobs 1 --methods means --folds 2"
    options += f" --html {folder}/report.html"
    command = f"compare {tmp_path}/houses.csv {options}".split()
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, moment, str(marker), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + 60
        while not marker.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert marker.exists(), process.communicate()
        process.send_signal(number)
        _, messages = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (folder / "report.html").read_text() == "old"
    assert [path.name for path in folder.glob("*.html")] == ["report.html"]
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert messages.endswith("sufrep: stopped\n")
        assert "Traceback" not in messages
        assert [path.name for path in folder.iterdir()] == ["report.html"]
