"""What tests of charts share: rendering, and looking at what is drawn."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def png_size() -> Callable[[Any], tuple[int, int]]:
    """Render, and read width and height from the header of the picture."""

    def measure(chart: Any) -> tuple[int, int]:
        picture = io.BytesIO()
        chart.save(picture, format="png")
        assert picture.getvalue().startswith(b"\x89PNG\r\n\x1a\n")
        return struct.unpack(">II", picture.getvalue()[16:24])

    return measure
