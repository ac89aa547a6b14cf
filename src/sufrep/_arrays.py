"""Names for the kinds of arrays that travel between the layers."""

from __future__ import annotations

from collections.abc import Sequence
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
