"""Running a grid of fits: in parallel, with failures captured and progress reported."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from textwrap import shorten
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from threadpoolctl import threadpool_limits

from sufrep.errors import InvalidParameterError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Report: TypeAlias = Callable[[int, int, str], None]

Result = TypeVar("Result")
Backend: TypeAlias = Literal["loky", "dask"]

# Longer reasons are cut off after a word, and end with "…".
MAX_REASON_LENGTH = 300
# Seconds between two lines of progress.
_PERIOD = 2.0


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
    """
    check_n_jobs(n_jobs)
    with _workers(n_jobs, backend, scheduler):
        calls = (delayed(function)(*cell) for cell in cells)
        for result in Parallel(return_as="generator_unordered", batch_size=1)(calls):
            on_result(result)


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
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ignored)
        yield


def make_report(progress: bool | Report, name: str) -> Report | None:
    """Return what is called with (number done, total, name of the last cell).

    Parameters
    ----------
    progress : bool or callable
        True prints lines to standard error, False reports nothing, a callable is returned as it is.
    name : str
        Starts each line.
    """
    if callable(progress):
        return progress
    return _Lines(name) if progress else None


class _Lines:
    """Prints a line every few seconds, and one at the end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start = self._last = monotonic()

    def __call__(self, done: int, total: int, cell: str) -> None:
        now = monotonic()
        if now - self._last < _PERIOD and done < total:
            return
        self._last = now
        line = f"[{self._name}] {done} of {total} ({now - self._start:.0f} s)  {cell}"
        print(line.rstrip(), file=sys.stderr)


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
