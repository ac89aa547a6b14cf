"""Limits on the threads of BLAS and OpenMP.

Small products and small trees in several threads take up to a hundred times as long if another core is busy,
because the threads wait for each other. Looking for the libraries takes milliseconds, often more than what is
computed under the limit, so it is done again only after imports, which are what loads libraries.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def one_thread(*, blas_only: bool = False) -> AbstractContextManager[Any]:
    """Run what is inside with one thread."""
    libraries = _libraries(len(sys.modules), blas_only)
    limited: AbstractContextManager[Any] = libraries.limit(limits=1)
    return limited


def n_blas_threads() -> int:
    """The number of threads that BLAS uses now."""
    return int(max([1, *(library["num_threads"] for library in _libraries(len(sys.modules), True).info())]))


@lru_cache(maxsize=2)
def _libraries(_n_modules: int, blas_only: bool) -> Any:
    found = ThreadpoolController()
    return found.select(user_api="blas") if blas_only else found
