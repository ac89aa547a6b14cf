"""The built site, a server for it on this machine, and a browser."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import browser

# Fixtures that the tests of this folder use.
__all__ = ["browser"]


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder that `make docs` fills, or SUFREP_SITE."""
    built = Path(__file__).parents[2] / "docs" / "_build" / "html"
    folder = Path(os.environ.get("SUFREP_SITE") or built)
    if not (folder / "index.html").is_file():
        pytest.skip(f"the documentation site is not at {folder}; `make docs` builds it")
    return folder


@pytest.fixture(scope="package")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        """Say nothing: failures show in the browser."""
