"""All columns except the groups as numbers, so that any learner can use them."""

from __future__ import annotations

from importlib.util import find_spec
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sufrep._frames import FrameTable, Lookup, with_missing_level
from sufrep._sklearn import Interval, check_feature_names_in, fit_context, get_output_config
from sufrep.encoders._inputs import listed_positions, read_table, read_table_and_target, refuse_clashes
from sufrep.encoders._times import DATES, as_date, date_kind, since_1970
from sufrep.errors import GroupValueError, NotNumericError, TimeZoneError
from sufrep.representation import level_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array
    from sufrep._frames import Table
    from sufrep.encoders._inputs import Column

# What a column can be.
KINDS = ("kept", "numeric", "text", *DATES, "dropped")
_DATE_PARTS = ("days", "month", "weekday")
_IN_WORDS = {"date": "times without a time zone", "date with zone": "times with a time zone"}
_SECONDS_A_DAY = 86_400


class ToNumbers(TransformerMixin, BaseEstimator):
    """Turn text and dates into numbers, and leave the columns to be encoded as they are.

    Numeric columns pass through. A text column of few levels becomes an indicator for each, null included;
    one with more levels is dropped, because it needs an encoder of its own. A date, also one written as ISO
    text, becomes days since 1970, month and weekday (of a time with a zone: days in UTC, month and weekday of
    the calendar in its own zone). Put it before an encoder if a table has such columns, as
    ``sufrep.compare`` does.

    Parameters
    ----------
    keep : str, int, or list of these, default=()
        Columns that are left unchanged: the groups that an encoder will replace.
    max_levels : int, default=30
        Text columns with more levels are dropped.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Their names, where they have any.
    kinds_ : list of str
        The kind of each column: "kept", "numeric", "text", "date", "date with zone" or "dropped".
    levels_ : dict of int to ndarray of object
        The levels of the text columns, by position.
    dropped_ : list of str
        Names of the columns that are dropped.

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import ToNumbers
    >>> X = pd.DataFrame({"zip": ["01", "02"], "sold": ["2014-10-13", "2015-02-25"], "view": ["sea", None]})
    >>> ToNumbers(keep="zip").fit_transform(X)
      zip  sold_days  sold_month  sold_weekday  view_sea  view_null
    0  01    16356.0        10.0           0.0       1.0        0.0
    1  02    16491.0         2.0           2.0       0.0        1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "keep": [str, Integral, list, tuple],
        "max_levels": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, keep: Column | Sequence[Column] = (), *, max_levels: int = 30) -> None:
        self.keep = keep
        self.max_levels = max_levels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> ToNumbers:
        """Find out what each column is.

        Parameters
        ----------
        X : frame or array, shape (n, n_features)
        y : ignored, or str
            The name of the target's column in the frame X, which is left out.

        Returns
        -------
        ToNumbers
        """
        table, _ = read_table_and_target(self, X, y if isinstance(y, str) else None)
        kept = listed_positions(table.names, self.keep, "keep")
        kinds, levels = [], {}
        for position in range(len(table.names)):
            kind, found = ("kept", None) if position in kept else self._kind_of(table, position)
            kinds.append(kind)
            if found is not None:
                levels[position] = found
        self.kinds_, self.levels_ = kinds, levels
        self.dropped_ = [table.names[j] for j, kind in enumerate(kinds) if kind == "dropped"]
        names = self.get_feature_names_out()
        refuse_clashes(names.tolist())
        return self

    def transform(self, X: Any) -> Any:
        """Return the unchanged and the numeric columns, then those computed from text and dates.

        Parameters
        ----------
        X : frame or array, shape (n, n_features)

        Returns
        -------
        frame of the kind of X, or array, shape (n, n_features_out)
        """
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        for position, kind in enumerate(self.kinds_):
            if kind == "numeric" and table.kind(position) != "numeric":
                table.numbers(position)  # raises, unless all is null
        lookups = [
            self._columns_of(table, position)
            for position, kind in enumerate(self.kinds_)
            if kind in ("text", *DATES)
        ]
        found = table.encode(self._passing(), lookups, self._container(table))
        if hasattr(found, "iloc") and not hasattr(self, "feature_names_in_"):
            # pandas may name columns by numbers, which scikit-learn refuses next to our names.
            found = found.set_axis(self.get_feature_names_out(), axis=1)
        return found

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the output columns."""
        check_is_fitted(self)
        names = [str(name) for name in check_feature_names_in(self, input_features)]
        new = [
            f"{names[position]}_{part}"
            for position, kind in enumerate(self.kinds_)
            for part in self._parts(position, kind)
        ]
        return np.asarray([*(names[position] for position in self._passing()), *new], dtype=object)

    def _kind_of(self, table: Table, position: int) -> tuple[str, Any]:
        """The kind of a column, and the levels of a text column."""
        if table.kind(position) == "numeric":
            return "numeric", None
        try:
            factor = table.factorize(position)
        except GroupValueError:  # lists, for instance
            return "dropped", None
        if kind := date_kind(table.names[position], factor.levels.tolist()):
            return kind, None
        few = len(factor.levels) <= self.max_levels
        if table.kind(position) != "text" or not few or not len(factor.levels):
            return "dropped", None
        return "text", with_missing_level(factor).levels

    def _passing(self) -> list[int]:
        return [position for position, kind in enumerate(self.kinds_) if kind in ("kept", "numeric")]

    def _parts(self, position: int, kind: str) -> Sequence[str]:
        if kind in DATES:
            return _DATE_PARTS
        levels = self.levels_[position].tolist() if kind == "text" else []
        return ["null" if level is None else level_label(level) for level in levels]

    def _columns_of(self, table: Table, position: int) -> Lookup:
        """The numbers that a date or a text column becomes."""
        kind = self.kinds_[position]
        factor = table.factorize(position)
        name = table.names[position]
        parts = tuple(f"{name}_{part}" for part in self._parts(position, kind))
        levels = factor.levels.tolist()
        if kind in DATES:
            found = date_kind(name, levels) if levels else kind
            if not found:
                raise NotNumericError(name, "text that is no date")
            if found != kind:
                raise TimeZoneError(name, f"{_IN_WORDS[found]}, but fit saw {_IN_WORDS[kind]}")
            return Lookup(np.array([*map(_date_numbers, levels), [np.nan] * 3]), factor.codes, parts)
        known = {level: place for place, level in enumerate(self.levels_[position].tolist())}
        values = np.zeros((len(levels) + 1, len(known)))
        for row, level in enumerate([*levels, None]):
            if level in known:
                values[row, known[level]] = 1.0
        return Lookup(values, factor.codes, parts)

    def _container(self, table: Table) -> str:
        """The library of the result: that of X, unless ``set_output`` chose another one."""
        wanted = str(get_output_config("transform", self)["dense"])
        if wanted != "default" or not isinstance(table, FrameTable):
            return wanted
        # pyarrow's tables have no place in scikit-learn; whichever library is there takes them.
        return "polars" if table.library != "pandas" and find_spec("polars") else "pandas"


def _date_numbers(value: Any) -> list[float]:
    """Days since 1970, month and weekday.

    A time with a zone is a point in time: its days are counted in UTC. Month and weekday are those of the
    calendar in its own zone.
    """
    found = as_date(value)
    if found is None:
        raise TypeError(f"{value!r} is no date")
    days: float = since_1970(found).total_seconds() / _SECONDS_A_DAY
    return [days, float(found.month), float(found.weekday())]
