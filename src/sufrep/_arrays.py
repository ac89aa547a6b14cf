"""Names for the kinds of arrays that travel between the layers, and how long ones are split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.integer[Any]]
Levels: TypeAlias = NDArray[np.object_]
# One array for each covariate, all of one length; an (n_covariates, n_rows) array is that too.
Columns: TypeAlias = Sequence[Array] | Array


def blocks(end: int, size: int, begin: int = 0) -> Iterator[slice]:
    """Yield slices of at most ``size`` rows that cover the rows from ``begin`` to ``end``.

    >>> list(blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(start, min(start + size, end)) for start in range(begin, end, size))
