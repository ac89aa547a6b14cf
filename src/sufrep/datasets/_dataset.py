"""The record that every loader returns, and how it is made of prepared columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
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
    further : tuple of str
        Names of further group columns.
    further_labels : ndarray of str, shape (n, n_further)
        Their levels.

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
    further: tuple[str, ...] = ()
    further_labels: Array = field(default_factory=lambda: np.empty((0, 0), dtype=np.str_))

    def __repr__(self) -> str:
        n, p = self.X.shape
        return (
            f"Dataset({self.name!r}, n={n}, p={p}, group={self.group!r} ({self.n_levels} levels), "
            f"{f'{len(self.further)} further groups, ' if self.further else ''}target={self.target!r})"
        )

    @property
    def n_levels(self) -> int:
        """Number of levels of the group column."""
        return len(np.unique(self.labels))

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of all group columns."""
        return (self.group, *self.further)

    def columns(self) -> dict[str, Array]:
        """The covariates and then the group columns, from which any library makes a frame."""
        further = zip(self.further, self.further_labels.T, strict=True) if self.further else ()
        return {**dict(zip(self.covariates, self.X.T, strict=True)), self.group: self.labels, **dict(further)}


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
    further: tuple[str, ...] = (),
) -> Dataset:
    """Return the data set of a table whose covariates and target are prepared."""
    X = np.empty((len(y), len(covariates)), order="F")
    for j, column in enumerate(covariates.values()):
        X[:, j] = column
    if not further:
        return Dataset(name, group, target, tuple(covariates), X, table.labels(group), y, classes, folds)
    labels = table.labels(group, missing="")
    others = np.column_stack([table.labels(column, missing="") for column in further])
    return Dataset(name, group, target, tuple(covariates), X, labels, y, classes, folds, further, others)
