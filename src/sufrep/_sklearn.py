"""Every private name of scikit-learn that we use, and what it stands in for.

scikit-learn offers no public way to do these things. Should a release move one of the names, this is the only
file to change.
"""

from __future__ import annotations

from typing import Any

# Decorates ``fit``: checks the parameters against `_parameter_constraints` before anything is read.
from sklearn.base import _fit_context as fit_context

# Takes rows of everything that scikit-learn accepts: arrays, frames, sparse matrices, lists.
from sklearn.utils import _safe_indexing

# The vocabulary of `_parameter_constraints`, and the error that they raise.
from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, StrOptions

# What ``set_output`` asked for.
from sklearn.utils._set_output import _get_output_config as get_output_config

# The names of the input columns, for ``get_feature_names_out``.
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "check_feature_names_in",
    "fit_context",
    "get_output_config",
    "take_rows",
]


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of a table of any kind; scikit-learn does not know pyarrow's."""
    return X.take(rows) if hasattr(X, "combine_chunks") else _safe_indexing(X, rows)


# Three more are set, overridden or read by name, where a class of ours has to: ``_parameter_constraints`` of
# every estimator declares and lists its parameters, ``BaseEstimator._html_repr`` and, in older versions,
# ``_repr_html_inner`` (in `sufrep.encoders._base`) add the tables to the HTML of an estimator, and the
# attribute ``_sklearn_output_config`` (in `sufrep.encoders._persistence`) holds what ``set_output`` asked
# for.
