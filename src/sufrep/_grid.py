"""Running a grid of fits: in parallel, with failures captured and progress reported."""

from __future__ import annotations

import signal
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from numbers import Integral
from textwrap import shorten
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from sufrep._threads import one_thread
from sufrep.errors import InvalidParameterError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sufrep._progress import Report

Result = TypeVar("Result")
Backend: TypeAlias = Literal["loky", "dask"]

# Longer reasons are cut off after a word, and end with "…".
MAX_REASON_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Failure:
    """Takes the place of a result where a fit raised an exception."""

    reason: str


def attempt(call: Callable[[], Result], *, fatal: tuple[type[Exception], ...] = ()) -> Result | Failure:
    """Return the result of a call, or a `Failure` if it raises.

    Parameters
    ----------
    call : callable
        Takes no arguments.
    fatal : tuple of exception types
        These are raised all the same: the user can do something about them, such as install a package.

    Examples
    --------
    >>> attempt(lambda: [1.0][0])
    1.0
    >>> attempt(lambda: [1.0][1])
    Failure(reason='IndexError: list index out of range')
    """
    try:
        return call()
    except fatal:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return Failure(shorten(reason, MAX_REASON_LENGTH, placeholder=" …"))


def run_grid(
    function: Callable[..., Result],
    cells: Iterable[tuple[Any, ...]],
    on_result: Callable[[Result], None],
    *,
    n_jobs: int | None = None,
    backend: Backend = "loky",
    scheduler: str | None = None,
    report: Report | None = None,
    n_cells: int = 0,
    name: Callable[[Result], str] = str,
    stop: Callable[[], bool] | None = None,
) -> None:
    """Call a function once for every cell of a grid.

    Parameters
    ----------
    function : callable
        Runs in a worker, so it must be picklable.
    cells : iterable of tuples
        The arguments of each call. They are made only shortly before they are needed.
    on_result : callable
        Called in this process with each result, in the order in which the calls finish.
    n_jobs : int or None
        Number of parallel calls; −1 is one for each core.
    backend : {"loky", "dask"}, default="loky"
        Processes on this machine, or the workers of a Dask cluster.
    scheduler : str or None
        Address of the Dask cluster; None starts one on this machine.
    report : callable or None
        Called before the first cell, and after `on_result`, with the number of results, the number of cells,
        and the name of the last result.
    n_cells : int
        Number of cells, for the report.
    name : callable
        Takes a result, and returns its name for the report.
    stop : callable or None
        Returns whether no other call should be started; calls that run then are waited for. Ctrl-C is then
        for this process alone to handle, and does not reach the workers.
    """
    check_n_jobs(n_jobs)
    if report:
        report(0, n_cells, "")
    with _workers(n_jobs, backend, scheduler):
        calls = (delayed(function)(*cell) for cell in cells)
        if stop is None:
            results = Parallel(return_as="generator_unordered", batch_size=1)(calls)
        else:
            # What is dispatched is started: a call that waits in a queue could not be stopped.
            started = takewhile(lambda _: not stop(), calls)
            parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
            with _without_interrupts():
                results = parallel(started)
        for n_results, result in enumerate(results, 1):
            on_result(result)
            if report:
                report(n_results, n_cells, name(result))


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, which they inherit; this one ignores it for as long only."""
    if current_thread() is not main_thread():  # others cannot handle signals
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def check_n_jobs(n_jobs: int | None) -> None:
    """Raise unless `n_jobs` is None or a whole number other than 0."""
    if n_jobs is None or (isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool) and n_jobs != 0):
        return
    expected = "None, a number of parallel jobs, or -1 for one job per core"
    raise InvalidParameterError("n_jobs", n_jobs, expected)


@contextmanager
def single_threaded_without_warnings(ignored: type[Warning]) -> Iterator[None]:
    """Limit numerical libraries to one thread, and ignore one category of warnings.

    Cells run in parallel, and threads that compete for cores make trees much slower. Hundreds of fits must
    not repeat the same warning.
    """
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ignored)
        yield


@contextmanager
def _workers(n_jobs: int | None, backend: Backend, scheduler: str | None) -> Iterator[None]:
    """Set up the workers that joblib sends its calls to."""
    if backend == "loky":
        with parallel_config(backend="loky", n_jobs=n_jobs, inner_max_num_threads=1):
            yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependencyError("distributed", "The backend 'dask'", "dask") from error
    # joblib's meaning of -1; Dask would start no worker.
    local = {"n_workers": effective_n_jobs(n_jobs), "threads_per_worker": 1}
    options = {"address": scheduler} if scheduler else local
    try:
        client = Client(**options)
    except (OSError, ValueError) as error:
        if not scheduler:
            raise
        expected = "the address of a running Dask cluster, as in tcp://127.0.0.1:8786"
        raise InvalidParameterError("scheduler", scheduler, expected) from error
    with client, parallel_config(backend="dask"):
        yield
