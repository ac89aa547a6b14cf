"""A grid of fits: results of all cells, failures as values, progress after each."""

from __future__ import annotations

import sys
import warnings
from operator import add
from typing import Any

import pytest
from joblib import effective_n_jobs
from threadpoolctl import threadpool_info

from sufrep._grid import (
    MAX_REASON_LENGTH,
    Failure,
    attempt,
    run_grid,
    single_threaded_without_warnings,
)
from sufrep.errors import InvalidParameterError, MissingDependencyError

CELLS = [(i, 10 * i) for i in range(6)]


# Running


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_every_cell_is_run_once(n_jobs):
    found: list[int] = []
    run_grid(add, CELLS, found.append, n_jobs=n_jobs)
    assert sorted(found) == [0, 11, 22, 33, 44, 55]


def test_cells_are_made_when_they_are_needed():
    made: list[int] = []

    def cells() -> Any:
        for i in range(6):
            made.append(i)
            yield i, len(made)

    with pytest.raises(KeyboardInterrupt, match="enough"):
        run_grid(add, cells(), lambda _: (_ for _ in ()).throw(KeyboardInterrupt("enough")))
    assert len(made) < 6


def test_a_fit_has_one_thread_and_ignores_the_given_warnings():
    with single_threaded_without_warnings(UserWarning):
        assert {pool["num_threads"] for pool in threadpool_info()} <= {1}
        warnings.warn("ignored", UserWarning, stacklevel=1)
        with pytest.raises(RuntimeWarning, match="shown"):
            warnings.warn("shown", RuntimeWarning, stacklevel=1)


# Dask


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_a_number_of_jobs_that_joblib_cannot_use_raises(n_jobs):
    with pytest.raises(InvalidParameterError, match=r"n_jobs is .*\nHint: n_jobs must be None, a number"):
        run_grid(add, CELLS, print, n_jobs=n_jobs)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_dask_starts_as_many_processes_as_joblib_would(monkeypatch, n_jobs):
    distributed = pytest.importorskip("distributed", reason="the backend 'dask' needs distributed")
    requested: list[dict[str, Any]] = []

    def client(**options: Any) -> Any:
        requested.append(options)
        raise ValueError("enough")

    monkeypatch.setattr(distributed, "Client", client)
    with pytest.raises(ValueError, match="enough"):
        run_grid(add, CELLS, print, backend="dask", n_jobs=n_jobs)
    assert requested == [{"n_workers": effective_n_jobs(n_jobs), "threads_per_worker": 1}]


@pytest.mark.parametrize("failure", [OSError("Timed out"), ValueError("missing port number")])
def test_a_cluster_that_does_not_answer_raises(monkeypatch, failure):
    # A real address without a cluster takes 30 s to fail, and two such clients keep Python from ending.
    distributed = pytest.importorskip("distributed", reason="the backend 'dask' needs distributed")

    def client(**options: Any) -> Any:
        assert options == {"address": "tcp://nobody"}
        raise failure

    monkeypatch.setattr(distributed, "Client", client)
    expected = r"scheduler is 'tcp://nobody'\.\nHint: scheduler must be the address of a running Dask cluster"
    with pytest.raises(InvalidParameterError, match=expected):
        run_grid(add, CELLS, print, backend="dask", scheduler="tcp://nobody")


def test_dask_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    expected = r"The backend 'dask' needs the package 'distributed'.*\n.*sufrep\[dask\]"
    with pytest.raises(MissingDependencyError, match=expected):
        run_grid(add, CELLS, print, backend="dask")


# Failures


def fail(error: Exception) -> None:
    raise error


def test_an_exception_becomes_a_failure_with_a_short_reason_on_one_line():
    found = attempt(lambda: fail(ValueError("no luck\n  today " + "and again " * 90)))
    assert isinstance(found, Failure)
    assert found.reason.startswith("ValueError: no luck today and again")
    assert found.reason.endswith(("and …", "again …"))
    assert MAX_REASON_LENGTH - len("again ") < len(found.reason) <= MAX_REASON_LENGTH


def test_fatal_exceptions_are_raised():
    with pytest.raises(OSError, match="disk"):
        attempt(lambda: fail(OSError("disk")), fatal=(OSError,))


# Progress


def test_progress_is_reported_before_the_first_cell_and_after_each_result():
    seen: list[tuple[Any, ...]] = []
    run_grid(
        add,
        CELLS[:2],
        lambda result: seen.append((result,)),
        report=lambda *news: seen.append(news),
        n_cells=2,
        name=lambda result: f"sum {result}",
    )
    assert seen == [(0, 2, ""), (0,), (1, 2, "sum 0"), (11,), (2, 2, "sum 11")]
