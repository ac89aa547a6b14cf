"""Settings and fixtures that all tests share."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from tests.engines import postgres_server, spark_session

from sufrep import SufficientEncoder
from sufrep.encoders._judging import CANDIDATES, DROP, Judgement

# Fixtures that every test may use.
__all__ = ["postgres_server", "spark_session"]

# How many examples hypothesis draws for a law: few by default, many on request, as in
# HYPOTHESIS_PROFILE=long make unit. No deadline, because a slow machine breaks no law.
settings.register_profile("quick", deadline=None, max_examples=15)
settings.register_profile("long", deadline=None, max_examples=250)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_finish() -> None:
    """Let the garbage collector ignore modules and tests, which stay to the end anyway."""
    gc.freeze()


@pytest.fixture
def r_fixtures() -> Path:
    """Numbers that R printed for one small input; see the README next to them."""
    return Path(__file__).parent / "fixtures" / "r"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the real data: SUFREP_DATA, or shared/data next to the repository."""
    folder = Path(os.environ.get("SUFREP_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"the real data are not at {folder}; set SUFREP_DATA to their folder")
    return folder


@pytest.fixture
def limited_file_size() -> Callable[[], AbstractContextManager[int]]:
    """A context in which files have a limited number of bytes.

    pytest may write its own output to a file between the test and the end of a fixture, so the limit must not
    outlast the test.
    """
    resource = pytest.importorskip("resource", reason="this system has no limits of file sizes")

    @contextmanager
    def limited() -> Iterator[int]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            yield 1000
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)

    return limited


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make SufficientEncoder choose given components without judging, for what holds for any choice."""

    def chosen(*components: str) -> None:
        def judged(_encoder: SufficientEncoder, rows: Any, _components: Any, _learner: Any) -> Judgement:
            n = len(rows.y)
            losses = {DROP: np.ones(n), "both": np.zeros(n)} if components else {DROP: np.ones(n)}
            shuffled = {("both", component): np.ones(n) for component in components}
            return Judgement(losses, shuffled, dict.fromkeys(losses, 0), None, [np.arange(n)])

        monkeypatch.setitem(CANDIDATES, "both", components)
        monkeypatch.setattr(SufficientEncoder, "_judge", judged)

    return chosen
