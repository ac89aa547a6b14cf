"""What all encoders share: reading X, collecting moments, looking levels up."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from itertools import chain
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from sufrep._frames import sparse_rows
from sufrep.encoders._common_docs import COMMON_ATTRIBUTES, COMMON_PARAMETERS
from sufrep.encoders._display import describe_html, draw_levels, tabulate
from sufrep.encoders._layout import merge_covariates, read_covariates, resolve_layout
from sufrep.encoders._persistence import save_encoder
from sufrep.encoders._reading import (
    all_or_nothing,
    check_length,
    check_weights,
    look_up,
    read_group,
    read_table,
)
from sufrep.encoders._vectors import Rows, Suffix, Vectors, name_columns, pool_rare, refuse_clashes
from sufrep.errors import NoCovariateError, NoLevelError, UnknownGroupError
from sufrep.moments import GroupMoments
from sufrep.representation import Representation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from sufrep._arrays import Array, Columns, Floats, Levels
    from sufrep._frames import Factorized, Lookup, Table
    from sufrep.encoders._layout import Column, Covariate, Group, Layout
    from sufrep.encoders._target import Target


def _needs_no_rows(encoder: GroupEncoder) -> bool:
    return encoder._moments_suffice


class GroupEncoder(TransformerMixin, BaseEstimator):
    """Base of the encoders: a function from group moments to a representation table.

    A subclass says how in `_represent`, and which moments it needs in `_order`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "group": [str, Integral, tuple, list, None],
        "covariates": [list, tuple, np.ndarray, None],
        "categorical_covariates": [StrOptions({"ignore", "share"})],
        "remainder": [StrOptions({"passthrough", "drop"})],
        "unseen": [StrOptions({"prior", "error"})],
        "missing": [StrOptions({"level", "prior", "error"})],
        "min_frequency": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            None,
        ],
    }
    _needs_covariates: ClassVar[bool] = True

    def __init__(
        self,
        group: Group | list[Group] | None = None,
        *,
        covariates: Sequence[Column] | None = None,
        categorical_covariates: Literal["ignore", "share"] = "ignore",
        remainder: Literal["passthrough", "drop"] = "passthrough",
        unseen: Literal["prior", "error"] = "prior",
        missing: Literal["level", "prior", "error"] = "level",
        min_frequency: int | float | None = None,
    ) -> None:
        self.group = group
        self.covariates = covariates
        self.categorical_covariates = categorical_covariates
        self.remainder = remainder
        self.unseen = unseen
        self.missing = missing
        self.min_frequency = min_frequency

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            text = cls.__doc__.replace("{common parameters}", COMMON_PARAMETERS)
            cls.__doc__ = text.replace("{common attributes}", COMMON_ATTRIBUTES)

    @abstractmethod
    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:
        """Make a vector of every level."""

    @property
    def _order(self) -> Literal[1, 2]:
        """Order of the moments that `_represent` needs."""
        return 1

    @property
    def _moments_suffice(self) -> bool:
        """Whether `_represent` does without rows, so that ``partial_fit`` is possible."""
        return True

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a vector for every level of every group column.

        Parameters
        ----------
        X : frame (pandas, polars, pyarrow) or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,), optional
            The target; only the encoders that say so use it.
        sample_weight : array-like, shape (n_samples,), optional
            Frequencies: a weight of 2 is a row that came twice, one of 0 a row that is absent.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            self._update(X, y, sample_weight, reset=True)
        return self

    @available_if(_needs_no_rows)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more chunk of rows; any chunks give what ``fit`` gives on all of them.

        The parameters are those of ``fit``. The first chunk decides which columns are groups and
        covariates.
        """
        with all_or_nothing(self):
            self._update(X, y, sample_weight, reset=not hasattr(self, "moments_"))
        return self

    def transform(self, X: Any) -> Any:
        """Replace the group columns by the vectors of their levels.

        Parameters
        ----------
        X : frame or array-like, shape (n_samples, n_features)
            The columns that ``fit`` saw.

        Returns
        -------
        ndarray, shape (n_samples, n_features_out), or what ``set_output`` says
            The columns that pass through, then the vectors. Order of the rows and index are kept.
        """
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        factors = [read_group(table, columns, self.missing) for columns in self.layout_.groups]
        return self._append(table, self._look_up(table, factors))

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and transform the same rows; parameters as in ``fit``, result as in ``transform``."""
        with all_or_nothing(self):
            table, lookups = self._training_lookups(X, y, sample_weight)
        return self._append(table, lookups)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the input columns, where ``fit`` saw an array without names.

        Returns
        -------
        ndarray of str objects, shape (n_features_out,)
        """
        check_is_fitted(self)
        names = [str(name) for name in _check_feature_names_in(self, input_features)]
        kept = [names[position] for position in self.layout_.kept]
        new = name_columns(self.layout_, names, self.suffixes_, self.covariates_)
        return np.asarray([*kept, *chain.from_iterable(new.values())], dtype=object)

    def table(
        self, group: str | None = None, *, library: Literal["pandas", "polars", "pyarrow"] | None = None
    ) -> Any:
        """Return the representation of a group as a frame: level, weight, vector.

        Parameters
        ----------
        group : str, optional
            Name of the group; may be left out if there is only one.
        library : {"pandas", "polars", "pyarrow"}, optional
            Kind of the frame; by default pandas if installed, else polars, else pyarrow.
        """
        name, representation = self._one_group(group)
        columns = self.layout_.groups[list(self.representations_).index(name)]
        return tabulate(representation, [self.layout_.names[column] for column in columns], library)

    def plot(self, group: str | None = None) -> Any:
        """Draw the levels of a group in the plane, labelled; an Altair chart.

        Vectors of more than two entries are shown by their first two principal components.
        """
        return draw_levels(*self._one_group(group))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the encoder to a file that holds no code; `sufrep.load` reads it back.

        The file is complete or not there at all: it is written under another name and then renamed.
        """
        check_is_fitted(self)
        save_encoder(self, path)

    def _training_lookups(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, list[Lookup]]:
        """Learn from X, and find what its own rows get."""
        table, factors = self._update(X, y, sample_weight, reset=True)
        return table, self._look_up(table, factors)

    def _update(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Table, list[Factorized]]:
        """Collect the moments of X, add them to earlier ones unless ``reset``, and represent them."""
        table = read_table(self, X, reset=reset)
        check_length(y, table.n_rows)
        weights = check_weights(sample_weight, table.n_rows, allow_zero=not reset)
        layout = self._layout_of(table) if reset else self.layout_
        factors = [read_group(table, columns, self.missing) for columns in layout.groups]
        found, columns = self._describe(table, layout, y, reset=reset)
        target = self._target_of(y)
        covariates = found if reset else merge_covariates(self.covariates_, found, layout.names)
        names, new = ([item.name(layout.names) for item in items] for items in (covariates, found))
        moments: dict[str, GroupMoments] = {}
        learnt: dict[str, Vectors] = {}
        for name, factor in zip(layout.group_names(layout.names), factors, strict=True):
            part = self._collect(factor, new, columns, weights)
            if not reset:
                part = self.moments_[name].expand(names) + part.expand(names)
            if not part.n_levels:
                raise NoLevelError(name)
            rows = None if self._moments_suffice else Rows(factor.codes, columns, weights, target)
            moments[name], learnt[name] = part, self._represent_group(part, rows, factor.levels)
        self._remember(layout, covariates, moments, learnt)
        return table, factors

    def _target_of(self, y: Any) -> Target | None:  # noqa: ARG002
        """What `_represent` shall know of the target, for encoders that need rows."""
        return None

    def _given_out(self, suffixes: list[Suffix]) -> list[Suffix]:
        """Columns that ``transform`` gives, from those of the levels' vectors; as a rule the same."""
        return suffixes

    def _layout_of(self, table: Table) -> Layout:
        return resolve_layout(
            table,
            group=self.group,
            covariates=self.covariates,
            share_text=self.categorical_covariates == "share",
            keep=self.remainder == "passthrough",
        )

    def _describe(
        self,
        table: Table,
        layout: Layout,
        y: Any,  # noqa: ARG002
        *,
        reset: bool,  # noqa: ARG002
    ) -> tuple[list[Covariate], Columns]:
        """Return what describes the levels: the covariates and their columns."""
        if not (self._needs_covariates and layout.groups):
            return [], []
        found, columns = read_covariates(table, layout)
        if not found:
            raise NoCovariateError(len(table.names), layout.group_names(table.names))
        return found, columns

    def _collect(
        self, factor: Factorized, names: Sequence[str], columns: Columns, weights: Floats | None
    ) -> GroupMoments:
        """Return the moments of the rows of one group."""
        return GroupMoments.from_columns(
            factor.codes, columns, factor.levels, covariates=names, weights=weights, order=self._order
        )

    def _remember(
        self,
        layout: Layout,
        covariates: list[Covariate],
        moments: dict[str, GroupMoments],
        learnt: dict[str, Vectors],
    ) -> None:
        """Set the fitted attributes."""
        suffixes = {name: vectors.suffixes for name, vectors in learnt.items()}
        new = name_columns(layout, layout.names, suffixes, covariates)
        given = {name: self._given_out(vectors.suffixes) for name, vectors in learnt.items()}
        refuse_clashes(
            [layout.names[position] for position in layout.kept],
            name_columns(layout, layout.names, given, covariates),
        )
        self.layout_, self.covariates_, self.suffixes_ = layout, covariates, given
        self.representations_ = {
            name: Representation.from_values(
                moments[name].levels,
                vectors.values,
                new[name],
                weight=moments[name].weight,
                prior=vectors.prior,
            )
            for name, vectors in learnt.items()
        }
        if self._moments_suffice:
            self.moments_ = moments
        else:
            self.__dict__.pop("moments_", None)  # of an earlier fit with another solver
        for attribute in vars(self).get("_details", ()):
            self.__dict__.pop(attribute, None)  # of an earlier fit, perhaps of other groups
        self._details = [*dict.fromkeys(chain.from_iterable(found.details for found in learnt.values()))]
        for attribute in self._details:
            details = {name: vectors.details[attribute] for name, vectors in learnt.items()}
            setattr(self, attribute, details)

    def _represent_group(self, moments: GroupMoments, rows: Rows | None, levels: Levels) -> Vectors:
        """Represent one group, its rare levels pooled; ``levels`` are those that rows count in."""
        kept, place = pool_rare(moments, self.min_frequency)
        if rows is not None:
            known = dict(zip(moments.levels.tolist(), place.tolist(), strict=True))
            codes = np.fromiter((*(known.get(level, -1) for level in levels), -1), dtype=np.intp)
            rows = replace(rows, codes=codes[rows.codes])
        vectors = self._represent(kept, rows)
        return replace(vectors, values=vectors.values[place])

    def _look_up(self, table: Table, factors: Sequence[Factorized]) -> list[Lookup]:  # noqa: ARG002
        """Find the new columns of every row."""
        return [
            look_up(representation, factor, representation.columns, name, self.unseen)
            for (name, representation), factor in zip(self.representations_.items(), factors, strict=True)
        ]

    def _append(self, table: Table, lookups: Sequence[Lookup]) -> Any:
        """Put the kept columns and the new ones together."""
        if any(sparse.issparse(lookup.values) for lookup in lookups):
            return sparse_rows(table, self.layout_.kept, lookups)
        return table.append(self.layout_.kept, lookups, _get_output_config("transform", self)["dense"])

    def _one_group(self, group: str | None) -> tuple[str, Representation]:
        check_is_fitted(self)
        known = list(self.representations_)
        name = known[0] if group is None and len(known) == 1 else group
        if name not in self.representations_:
            raise UnknownGroupError(name, known)
        return name, self.representations_[name]

    def _html_repr(self) -> str:
        return describe_html(super()._html_repr(), getattr(self, "representations_", {}))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "representations_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = self.group is not None
        return tags
