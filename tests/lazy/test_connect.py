"""Spark Connect."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lazy.cases import ENCODERS


def test_spark_connect_gives_what_memory_gives():
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    pytest.importorskip("grpc", reason="grpcio, which Spark Connect needs, is not installed")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.lazy.connect"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.split("\n")[:-1] == list(ENCODERS)[::4]
