"""Threads: limits on those of BLAS and OpenMP, and our own.

Small products and small trees in several threads take up to a hundred times as long if another core is busy,
because the threads wait for each other. Looking for the libraries takes milliseconds, often more than what is
computed under the limit, so it is done again only after imports, which are what loads libraries.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

Item = TypeVar("Item")


def one_thread(*, blas_only: bool = False) -> AbstractContextManager[Any]:
    """Run what is inside with one thread."""
    libraries = _libraries(len(sys.modules), blas_only)
    limited: AbstractContextManager[Any] = libraries.limit(limits=1)
    return limited


def n_blas_threads() -> int:
    """The number of threads that BLAS uses now."""
    return int(max([1, *(library["num_threads"] for library in _libraries(len(sys.modules), True).info())]))


def in_threads(function: Callable[[Item], None], items: Sequence[Item]) -> None:
    """Call a function with each item, in as many threads as there are processors.

    It pays where most of the time goes into array operations of a tenth of a millisecond or more, or into
    memory that is touched for the first time.
    """
    if len(items) < 2:  # to start a thread takes longer
        for item in items:
            function(item)
        return
    with ThreadPoolExecutor(min(cpu_count(), len(items))) as pool:
        list(pool.map(function, items))


@lru_cache(maxsize=2)
def _libraries(_n_modules: int, blas_only: bool) -> Any:
    found = ThreadpoolController()
    return found.select(user_api="blas") if blas_only else found
