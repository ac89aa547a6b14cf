"""One thread inside, as many as before outside."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sufrep._threads import in_threads, n_blas_threads, one_thread


def blas_threads() -> set[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_there_is_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(2):
        for blas_only in (False, True):
            with one_thread(blas_only=blas_only):
                assert blas_threads() == {1}
                assert n_blas_threads() == 1
            assert blas_threads() == {2}
            assert n_blas_threads() == 2


def test_libraries_that_are_loaded_later_are_limited_too():
    # scipy brings a BLAS of its own.
    program = """
import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from sufrep._threads import one_thread
with one_thread():
    before = len(threadpool_info())
import scipy.linalg
with threadpool_limits(2), one_thread():
    libraries = threadpool_info()
print(len(libraries) > before, {library["num_threads"] for library in libraries})
"""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout == "True {1}\n"


@pytest.mark.parametrize("n_items", [0, 1, 7])
def test_a_function_is_called_once_with_each_item(n_items):
    called = []
    in_threads(called.append, range(n_items))
    assert sorted(called) == list(range(n_items))


def test_an_error_in_a_thread_is_raised():
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        in_threads(lambda item: 1 / item, [1, 0, 2])
