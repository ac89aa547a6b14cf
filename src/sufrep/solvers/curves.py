"""A regression of the target on covariates that bends, with the same bends for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sufrep._arrays import Floats

# Rows that draw every coefficient but the first to 0.
_PENALTY = 1.0
_BLOCK = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """E[Y|x] = y₀ + b(x)ᵀβ, b as in `bent`.

    Attributes
    ----------
    origin : float
        y₀, the mean of the target.
    bends : tuple of float
        Where slopes may change.
    coefficients : ndarray, shape ((1 + n_bends) p + 1,)
        β.
    """

    origin: float
    bends: tuple[float, ...]
    coefficients: Floats

    def predict(self, scores: Floats) -> Floats:
        """Expected target of rows; (n,)."""
        found = np.empty(len(scores))
        for part in _blocks(len(scores)):
            found[part] = bent(scores[part], self.bends) @ self.coefficients
        return found + self.origin


def bent(scores: Floats, bends: tuple[float, ...] = (0.0,)) -> Floats:
    """1, x and the part of x above each bend, where slopes may change; (n, (1 + n_bends) p + 1)."""
    return np.column_stack(
        [np.ones(len(scores)), scores, *(np.maximum(scores - bend, 0.0) for bend in bends)]
    )


def fit_curve(
    scores: Floats, y: Floats, weights: Floats | None = None, *, bends: tuple[float, ...] = (0.0,)
) -> Curve:
    """Ridge regression, by sums over blocks of rows.

    Parameters
    ----------
    scores : ndarray, shape (n, p)
        Covariates on the scale of normal scores.
    y : ndarray, shape (n,)
    weights : ndarray, shape (n,), optional
        Frequencies.
    bends : tuple of float, default=(0.0,)
        Where slopes may change.
    """
    origin = float(np.average(y, weights=weights))
    n_basis = (1 + len(bends)) * scores.shape[1] + 1
    gram, right = np.zeros((n_basis, n_basis)), np.zeros(n_basis)
    for part in _blocks(len(y)):
        basis = bent(scores[part], bends)
        weighted = basis if weights is None else basis * weights[part, None]
        gram += weighted.T @ basis
        right += weighted.T @ (y[part] - origin)
    ridge = np.full(n_basis, _PENALTY)
    ridge[0] = 1e-9
    return Curve(origin, bends, np.linalg.solve(gram + np.diag(ridge), right))


def _blocks(n: int) -> Iterator[slice]:
    yield from (slice(start, start + _BLOCK) for start in range(0, n, _BLOCK))
