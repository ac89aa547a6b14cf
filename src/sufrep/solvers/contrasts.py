"""The classical codings of the paper's appendix, for any number of levels.

Each function returns the coding matrix whose row g is the vector of level g. The tables of the paper, for
five levels, fix the formulae; R's functions of the same name sometimes differ (``contr.helmert`` does).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def one_hot(n_levels: int) -> NDArray[np.float64]:
    """Indicate every level but the first, which is the reference.

    Parameters
    ----------
    n_levels : int
        At least 1.

    Returns
    -------
    ndarray of shape (n_levels, n_levels - 1)

    Examples
    --------
    >>> one_hot(3)
    array([[0., 0.],
           [1., 0.],
           [0., 1.]])
    """
    return np.eye(n_levels)[:, 1:]


def deviation(n_levels: int) -> NDArray[np.float64]:
    """Compare every level but the last with the mean over the levels.

    Parameters
    ----------
    n_levels : int
        At least 1.

    Returns
    -------
    ndarray of shape (n_levels, n_levels - 1)
        The identity over a row of -1.
    """
    coding = np.eye(n_levels)[:, :-1]
    coding[-1] = -1.0
    return coding


def difference(n_levels: int) -> NDArray[np.float64]:
    """Compare every level with the mean of the levels before it.

    Parameters
    ----------
    n_levels : int
        At least 1.

    Returns
    -------
    ndarray of shape (n_levels, n_levels - 1)
        Column j, counted from 1, is -1/(j+1) in the first j rows and j/(j+1) in the next.
    """
    before = np.arange(1, n_levels)
    coding = np.triu(np.broadcast_to(-1.0 / (before + 1.0), (n_levels, n_levels - 1)))
    coding[before, before - 1] = before / (before + 1.0)
    return coding


def helmert(n_levels: int) -> NDArray[np.float64]:
    """Compare every level with the mean of the levels after it.

    Parameters
    ----------
    n_levels : int
        At least 1.

    Returns
    -------
    ndarray of shape (n_levels, n_levels - 1)
        Column j, followed by m levels, is m/(m+1) in row j and -1/(m+1) below it.
    """
    # Read from the last level to the first, "after" is "before".
    return difference(n_levels)[::-1, ::-1]


def repeated_effect(n_levels: int) -> NDArray[np.float64]:
    """Compare every level with the next.

    Parameters
    ----------
    n_levels : int
        At least 1.

    Returns
    -------
    ndarray of shape (n_levels, n_levels - 1)
        Column j, counted from 1, is 1 - j/n_levels in the first j rows and -j/n_levels below them.
    """
    not_after = np.triu(np.ones((n_levels, n_levels - 1)))
    return not_after - np.arange(1, n_levels) / n_levels


def simple_effect(n_levels: int) -> NDArray[np.float64]:
    """Compare every level but the last with the last, in columns that sum to zero.

    Parameters
    ----------
    n_levels : int
        At least 1.

    Returns
    -------
    ndarray of shape (n_levels, n_levels - 1)
        The indicators of all levels but the last, minus 1/n_levels.
    """
    return np.eye(n_levels)[:, :-1] - 1.0 / n_levels


CODINGS: dict[str, Callable[[int], NDArray[np.float64]]] = {
    "one_hot": one_hot,
    "deviation": deviation,
    "difference": difference,
    "helmert": helmert,
    "repeated_effect": repeated_effect,
    "simple_effect": simple_effect,
}
