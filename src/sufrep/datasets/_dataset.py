"""The record that every loader returns, and how it is made of prepared columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats
    from sufrep.datasets._sources import RawTable


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Covariates, one group column with many levels or several, and a target.

    Every row has a level and a target. Missing covariates are NaN; most data sets have none.

    Attributes
    ----------
    name : str
        Its name in :data:`sufrep.datasets.DATASETS`.
    group : str
        Name of the column with many levels.
    target : str
        Name of the target.
    covariates : tuple of str, length p
        Names of the covariates, in the order of the file.
    X : ndarray, shape (n, p)
        Covariates; NaN for missing values.
    labels : ndarray of str, shape (n,)
        The level of each row. With further groups, missing values are the level "".
    y : ndarray, shape (n,)
        Target; of classes, their positions in `classes`.
    classes : tuple of str
        Names of the classes, sorted; empty if the target is a number.
    folds : ndarray of int, shape (n,), or None
        The fold in which each row is tested, 0, 1, …, if the data set was published with its folds.
    other_labels : dict of str to ndarray of str, each of shape (n,)
        Further columns with many levels, and the level of each row in them.

    Examples
    --------
    >>> import numpy as np
    >>> from sufrep.datasets import Dataset
    >>> zips = np.array(["98178", "98125"])
    >>> data = Dataset("two", "zipcode", "price", ("floors",), np.ones((2, 1)), zips, np.zeros(2))
    >>> data
    Dataset('two', n=2, p=1, group='zipcode' (2 levels), target='price')
    >>> data.columns()
    {'floors': array([1., 1.]), 'zipcode': array(['98178', '98125'], dtype='<U5')}
    """

    name: str
    group: str
    target: str
    covariates: tuple[str, ...]
    X: Floats
    labels: Array
    y: Floats
    classes: tuple[str, ...] = ()
    folds: Codes | None = None
    other_labels: dict[str, Array] = field(default_factory=dict)

    def __repr__(self) -> str:
        n, p = self.X.shape
        more = f"{len(self.other_labels)} further groups, " if self.other_labels else ""
        return (
            f"Dataset({self.name!r}, n={n}, p={p}, group={self.group!r} ({self.n_levels} levels), "
            f"{more}target={self.target!r})"
        )

    @property
    def n_levels(self) -> int:
        """Number of levels of the group column."""
        return len(np.unique(self.labels))

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of all group columns."""
        return (self.group, *self.other_labels)

    def columns(self) -> dict[str, Array]:
        """The covariates and then the group columns, from which any library makes a frame."""
        covariates = dict(zip(self.covariates, self.X.T, strict=True))
        return {**covariates, self.group: self.labels, **self.other_labels}


def assemble(
    name: str,
    table: RawTable,
    group: str,
    target: str,
    covariates: dict[str, Floats],
    y: Floats,
    *,
    classes: tuple[str, ...] = (),
    folds: Codes | None = None,
    other_groups: Sequence[str] = (),
) -> Dataset:
    """Return the data set of a table whose covariates and target are prepared."""
    X = np.empty((len(y), len(covariates)), order="F")
    for j, column in enumerate(covariates.values()):
        X[:, j] = column
    # With further groups, a missing value is a level of its own, "".
    missing = "" if other_groups else None
    labels = table.labels(group, missing=missing)
    others = {other: table.labels(other, missing=missing) for other in other_groups}
    return Dataset(name, group, target, tuple(covariates), X, labels, y, classes, folds, others)
