"""Columns left out, as a step of a pipeline."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sufrep._sklearn import check_feature_names_in, fit_context, get_output_config
from sufrep.encoders._inputs import listed_positions, read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array
    from sufrep.encoders._inputs import Column


class DropColumns(TransformerMixin, BaseEstimator):
    """Leave columns out: the step that replaces an encoder where none predicts better than no column.

    The other columns pass through. ``sufrep.compare`` puts it into the pipeline if dropping is best; unlike
    scikit-learn's ``ColumnTransformer``, it can be saved.

    Parameters
    ----------
    columns : str, int, or list of these, default=()
        The columns that are left out.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Their names, where they have any.
    kept_ : ndarray of bool, shape (n_features_in_,)
        Whether each column passes through.

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import DropColumns
    >>> X = pd.DataFrame({"zip": ["01", "02"], "sqft": [1180.0, 2570.0]})
    >>> DropColumns("zip").fit_transform(X)
    array([[1180.], [2570.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"columns": [str, Integral, list, tuple]}

    def __init__(self, columns: Column | Sequence[Column] = ()) -> None:
        self.columns = columns

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> DropColumns:  # noqa: ARG002
        """Find the columns that stay.

        Parameters
        ----------
        X : frame or array, shape (n, n_features)
        y : ignored

        Returns
        -------
        DropColumns
        """
        names = read_table(self, X, reset=True).names
        self.kept_ = np.ones(len(names), dtype=bool)
        self.kept_[sorted(listed_positions(names, self.columns, "columns"))] = False
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns that stay.

        Parameters
        ----------
        X : frame or array, shape (n, n_features)

        Returns
        -------
        array, or the frame that ``set_output`` chose, shape (n, n_features_out)
        """
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        return table.encode(
            np.flatnonzero(self.kept_).tolist(), [], str(get_output_config("transform", self)["dense"])
        )

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the output columns."""
        check_is_fitted(self)
        names = [str(name) for name in check_feature_names_in(self, input_features)]
        return np.asarray(names, dtype=object)[self.kept_]
