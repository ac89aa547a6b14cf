"""Settings and fixtures that all tests share."""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import sufrep

# scikit-learn's conformance suite checks array input only where scipy was imported with this set.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# How many examples hypothesis draws for a law: few by default, ten times as many on request, as in
# HYPOTHESIS_PROFILE=long make unit. No deadline, because a slow machine breaks no law.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("long", deadline=None, max_examples=250)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


# Tests that spend their time in other people's code, in whole fits or in programs that they start. Measuring
# coverage would nearly double that time, and the other tests reach almost all of the same lines.
_NOT_MEASURED = {
    "": ("browser", "fuzz", "golden"),
    "causal": ("aipw",),
    "cli": ("compare", "main"),
    "compare": ("comparison", "snippet"),
    "encoders": (
        *("composition", "conformance", "cross_fitting", "every_frame_library", "latent_regressor"),
        *("latent_state", "registry", "sufficiency", "sufficient"),
    ),
    "paper": ("effects", "figures", "methods", "models", "run"),
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Measure the coverage of the other tests only."""
    if not config.pluginmanager.hasplugin("_cov"):
        return
    # A module that a test imports while nothing is measured would count as never run.
    for module in pkgutil.walk_packages(sufrep.__path__, "sufrep."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    here = Path(__file__).parent
    folders = [here / name for name in _NOT_MEASURED[""]]
    files = {here / folder / f"test_{name}.py" for folder in _NOT_MEASURED for name in _NOT_MEASURED[folder]}
    for item in items:
        if item.path in files or any(item.path.is_relative_to(folder) for folder in folders):
            item.add_marker(pytest.mark.no_cover)


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
def limited_file_size() -> Iterator[int]:
    """The most bytes that a file may have."""
    resource = pytest.importorskip("resource", reason="this system has no limits of file sizes")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield 1000
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)
