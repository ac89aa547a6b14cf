"""What all encoders share: from inputs to moments, to vectors, to columns.

The walk of ``fit_transform``: `GroupEncoder._read` turns X into `Inputs`. `GroupEncoder._learn` collects the
moments of each group, calls the encoder's one formula, `_represent`, and stores the tables.
`GroupEncoder._lookups` finds the new columns of each row, cross-fitted if they depend on the target.
`Table.encode` puts the columns together.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sufrep._frames import Factor, LazyTable, Lookup, is_lazy
from sufrep._names import MAX_SEED
from sufrep._sklearn import Interval, StrOptions, check_feature_names_in, fit_context, get_output_config
from sufrep.encoders._certainty import vector_errors
from sufrep.encoders._cross_fitting import cross_fit
from sufrep.encoders._display import describe_html, draw_levels, encoder_sql, tabulate
from sufrep.encoders._from_moments import learn_from_moments
from sufrep.encoders._inputs import (
    Covariate,
    GroupSample,
    Inputs,
    Layout,
    OutputColumn,
    Rows,
    SharedScores,
    all_or_nothing,
    check_weights,
    collect_moments,
    find_levels,
    merge_covariates,
    read_covariates,
    read_factor,
    read_known_columns,
    read_parents,
    read_table,
    read_table_and_target,
    read_training_table,
    refuse_clashes,
    resolve_layout,
    with_roles,
)
from sufrep.encoders._lazy import (
    lazy_lookups,
    read_lazy_target,
    read_lazy_weights,
    refuse_row_columns,
    sample_rows,
)
from sufrep.encoders._nesting import nesting_of, read_links
from sufrep.encoders._new_levels import add_new_levels, learn_levels
from sufrep.encoders._target import (
    check_classes,
    check_still_classes,
    folds_of,
    read_target,
    warn_of_integers,
)
from sufrep.encoders._times import ORDERED, read_order, training_folds
from sufrep.encoders._warnings import warn_of_groups_alone, warn_of_text
from sufrep.errors import (
    ChangedParametersError,
    NoCovariateError,
    NoLevelError,
    NoRuleError,
    ParentError,
    TargetError,
    UnknownGroupError,
)
from sufrep.representation import PooledLevel, Representation, level_positions, stack_prior, take_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from sufrep._arrays import Array, Codes, Floats, Levels
    from sufrep._frames import Table
    from sufrep._sql import SqlStatements
    from sufrep.encoders._drift import Drift
    from sufrep.encoders._inputs import Column, Group
    from sufrep.encoders._nesting import Links
    from sufrep.encoders._target import Target
    from sufrep.moments import GroupMoments
    from sufrep.solvers.nesting import Nesting


@dataclass(frozen=True, slots=True)
class Needs:
    """What an encoder has to know, given its parameters.

    Parameters
    ----------
    order : {1, 2}
        Order of the moments. Second moments are kept wherever they exist; with 1, the encoder does without
        them for numbers whose squares are out of range.
    rows : bool
        Whether it needs the rows in addition to the moments; there is no ``partial_fit`` then.
    covariates : {"required", "optional", "unused"}
    target : {"unused", "covariate", "response"}
        Whether the target is one more covariate of the moments, or is handed over with the rows.
    target_type : {"auto", "continuous", "binary", "multiclass"}
        How to read it.
    own_covariates : bool
        Whether the columns of a row depend on its own covariates, not only on its level.
    shrinks : bool
        Whether means are shrunk, so that levels can be shrunk towards their parents.
    joint : bool
        Whether several groups are learnt together, so that each is next to something else.
    """

    order: Literal[1, 2] = 1
    rows: bool = False
    covariates: Literal["required", "optional", "unused"] = "required"
    target: Literal["unused", "covariate", "response"] = "unused"
    target_type: str = "auto"
    own_covariates: bool = False
    shrinks: bool = False
    joint: bool = False

    @property
    def uses_target(self) -> bool:
        """Whether the encoder uses the target."""
        return self.target != "unused"


@dataclass(frozen=True, slots=True)
class Suffix:
    """End of an output column's name: a text, and the position of the covariate it refers to, if any."""

    text: str
    covariate: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """What an encoder makes of a group.

    Parameters
    ----------
    values : ndarray or csr_array, shape (n_levels, n_columns)
    suffixes : list of Suffix
        Names of the columns of ``values``.
    details : dict
        What else was learnt, by the name of the fitted attribute (a dict by group) that holds it.
    prior : ndarray, shape (n_columns,), or None
        The vector of an unseen level; None for the weighted mean of the level vectors.
    moments : GroupMoments or None
        The moments they were learnt from, rare levels pooled; set by the base, where moments are enough.
    outputs : list of Suffix or None
        Names of the columns that a row gets; None if these are the columns of ``values``.
    first_cross_fitted : int
        Position of the first output column that depends on the target; those before it need no cross-fitting.
    nesting : Nesting or None
        What the levels are part of, rare levels pooled; set by the base, for training rows.
    added : ndarray, shape (n_new_levels, n_columns), or None
        The vectors of levels that ``fit`` did not see, whose positions follow those of ``values``.
    """

    values: Any
    suffixes: list[Suffix] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    prior: Floats | None = None
    moments: GroupMoments | None = None
    outputs: list[Suffix] | None = None
    first_cross_fitted: int = 0
    nesting: Nesting | None = None
    added: Floats | None = None

    @property
    def n_levels(self) -> int:
        """Number of levels, those included that ``fit`` did not see."""
        return int(self.values.shape[0]) + (0 if self.added is None else len(self.added))

    def with_prior(self) -> Any:
        """Stack the prior below the vectors, where position −1 finds it; (n_levels + 1, n_columns)."""
        values = self.values if self.added is None else np.vstack([self.values, self.added])
        return stack_prior(values, self._known_prior())

    def at(self, codes: Codes) -> Any:
        """Vectors at some positions, the prior at −1, at no cost for the other levels; (n, n_columns)."""
        if self.added is None:
            return take_vectors(self.values, self._known_prior(), codes)
        n_known = self.values.shape[0]
        found = take_vectors(self.values, self._known_prior(), np.where(codes < n_known, codes, -1))
        new = np.flatnonzero(codes >= n_known)
        found[new] = self.added[codes[new] - n_known]
        return found

    def _known_prior(self) -> Floats:
        if self.prior is None:
            raise TypeError("the prior of these vectors has not been computed yet")
        return self.prior

    def with_one_vector(self, vector: Floats, *, first_cross_fitted: int = 0) -> Vectors:
        """Return the same with one vector, (n_columns,), for all levels, unseen ones too."""
        values = np.tile(vector, (self.values.shape[0], 1))
        return replace(self, values=values, prior=vector, first_cross_fitted=first_cross_fitted)

    def known_moments(self) -> GroupMoments:
        """Return the moments; only for encoders that need no rows."""
        if self.moments is None:
            raise TypeError("an encoder that needs rows keeps no moments")
        return self.moments


# Parameters of the encoders that use the target.
TARGET_CONSTRAINTS: dict[str, list[Any]] = {
    "target_type": [StrOptions({"auto", "continuous", "binary", "multiclass"})],
    "cv": ["cv_object", StrOptions({ORDERED})],
    "time": [str, Integral, None],
    "random_state": [Interval(Integral, 0, MAX_SEED, closed="both")],
}
# Parameters of the encoders that need rows.
SAMPLE_CONSTRAINTS: dict[str, list[Any]] = {
    "sample_rows": [Interval(Integral, 2, None, closed="left"), None],
    "sample_by": [str, Integral, None],
}
# Parameters of the encoders that shrink levels towards their parents.
PARENT_CONSTRAINTS: dict[str, list[Any]] = {
    "parent": [Mapping, None],
    "on_conflict": [StrOptions({"error", "majority"})],
}


def _needs_no_rows(encoder: GroupEncoder) -> bool:
    return not encoder._needs.rows


@dataclass(eq=False, repr=False)
class GroupEncoder(TransformerMixin, BaseEstimator):
    """Base of the encoders: a function from group moments to a representation table.

    A subclass implements `_represent`. Where the defaults do not fit, it overrides `_needs` (what it has to
    know), `_represent_fold` (what it learns from the rows outside one fold) and `_encode_rows` (what a row
    gets, if that is more than the vector of its level). One that is made of others, or learns all groups
    jointly, overrides `_learn` and `_lookups` instead.
    """

    group: Group | list[Group] | None = None
    _: KW_ONLY
    covariates: Sequence[Column] | None = None
    categorical_covariates: Literal["ignore", "share"] = "ignore"
    remainder: Literal["passthrough", "drop"] = "passthrough"
    unseen: Literal["estimate", "prior", "error"] = "estimate"
    missing: Literal["level", "prior", "error"] = "level"
    min_frequency: int | float | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "group": [str, Integral, tuple, list, None],
        "covariates": [list, tuple, np.ndarray, None],
        "categorical_covariates": [StrOptions({"ignore", "share"})],
        "remainder": [StrOptions({"passthrough", "drop"})],
        "unseen": [StrOptions({"estimate", "prior", "error"})],
        "missing": [StrOptions({"level", "prior", "error"})],
        "min_frequency": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            None,
        ],
    }

    @abstractmethod
    def _represent(self, sample: GroupSample) -> Vectors:
        """Return a vector for every level."""

    @property
    def _needs(self) -> Needs:
        """What the encoder has to know, given its parameters."""
        return Needs()

    def _represent_fold(self, sample: GroupSample, whole: Vectors) -> Vectors:
        """Return the vectors that rows outside one fold give, comparable with those of the whole.

        Called only by encoders that use the target. If the sample is empty, every level gets the same vector,
        here 0. It must not depend on the target: that of the whole is the target of the fold itself.
        """
        if sample.is_empty:
            return whole.with_one_vector(np.zeros(whole.values.shape[1]))
        return self._represent(sample)

    def _encode_rows(self, vectors: Vectors, rows: Rows) -> Lookup:
        """Return the new columns of rows; here the vector of their level, or the prior."""
        if len(rows.codes) < vectors.n_levels:  # one row must not cost as much as all levels
            return Lookup(vectors.at(rows.codes))
        return Lookup(vectors.with_prior(), np.where(rows.codes < 0, vectors.n_levels, rows.codes))

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a vector for every level of every group column.

        Parameters
        ----------
        X : frame (pandas, polars, pyarrow), lazy frame, or array-like, shape (n_samples, n_features)
            A lazy frame (polars, DuckDB, Spark, Dask, Ibis) stays where it is: its moments are group-bys that
            its engine executes.
        y : array-like, shape (n_samples,), or str, optional
            The target, or the name of its column in the frame X, which is then no covariate and does not pass
            through; ``transform`` ignores it where it is there. Encoders that do not use the target ignore
            its values. If X is lazy, it must be a name.
        sample_weight : array-like, shape (n_samples,), or str, optional
            Frequencies: a row with weight 2 counts as two rows, a row with weight 0 is ignored. Like the
            target they may be a column of X, and must be one if X is lazy.

        Returns
        -------
        self

        Warns
        -----
        NoCovariateWarning
            If the encoder could use covariates, ``covariates`` is None and X holds the groups alone, as
            inside a ColumnTransformer that hands over one column.
        TextColumnWarning
            If text that is no group, covariate or parent passes through: most learners of scikit-learn take
            numbers only. Categories of pandas and polars count as text where the output is an array; in a
            frame (``set_output``) they stay categories, which some learners accept.
        """
        with all_or_nothing(self):
            inputs = self._read(X, y, sample_weight)
            self._learn(inputs)
            self._warn_of_columns(inputs.table, inputs.layout)
        return self

    @available_if(_needs_no_rows)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more chunk of rows; any chunks give what ``fit`` gives on all of them.

        The parameters are those of ``fit``. The first chunk decides which columns are groups and
        covariates, and must have a row with a level and a positive weight. Parameters must not change between
        chunks.
        """
        first = not hasattr(self, "moments_")
        if not first:
            self._check_same_needs()
        with all_or_nothing(self):
            inputs = self._read(X, y, sample_weight, reset=first, is_chunk=True)
            if first:
                self._learn(inputs)
                self._warn_of_columns(inputs.table, inputs.layout)
            else:
                earlier = getattr(self, "parents_", {})
                self._represent_groups(inputs, *self._add_to_earlier(*self._collect(inputs)), earlier)
        return self

    @available_if(_needs_no_rows)
    @fit_context(prefer_skip_nested_validation=True)
    def fit_moments(self, moments: GroupMoments | Mapping[str, GroupMoments]) -> Self:
        """Learn from moments instead of rows: the vectors are those of ``fit`` on the rows they are from.

        Moments of parts of the rows are added up first (``whole - old + new`` refreshes an encoder every
        night). An encoder that was fitted before keeps its columns, of which these must be moments. Otherwise
        its columns are the group and the covariates that the moments name, and ``transform`` takes frames of
        these columns.

        Parameters
        ----------
        moments : GroupMoments, or dict of str to GroupMoments
            The moments of the group; of several groups, a dict in their order, such as ``moments_``.

        Returns
        -------
        self

        Raises
        ------
        MomentsMismatchError
            If the moments are of other columns, or lack what the encoder needs: second moments, the target.
        """
        with all_or_nothing(self):
            learn_from_moments(self, moments)
        return self

    def transform(self, X: Any) -> Any:
        """Replace the group columns by the vectors of their levels.

        Parameters
        ----------
        X : frame, lazy frame or array-like, shape (n_samples, n_features)
            The columns that ``fit`` saw.

        Returns
        -------
        ndarray, shape (n_samples, n_features_out), or the container chosen by ``set_output``
            The columns that pass through, then the vectors. The order of the rows and the index are kept. Of
            a lazy frame, a lazy frame of the same kind, which does not keep the order of the rows.
        """
        check_is_fitted(self)
        inputs = self._read_new(X)
        return self._encode(inputs, self._lookups(inputs, training=False))

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, fold: str | None = None
    ) -> Any:
        """Fit and transform the same rows; parameters as in ``fit``, result as in ``transform``.

        Parameters
        ----------
        X : frame, lazy frame or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,), or str, optional
        sample_weight : array-like, shape (n_samples,), or str, optional
        fold : str, optional
            A column of X that holds the fold of each row, for columns that depend on the target: they are
            learnt from the rows of the other folds. It replaces ``cv``, and is necessary if X is lazy. Like
            the target it is no covariate, and need not exist in ``transform``.

        Returns
        -------
        ndarray, shape (n_samples, n_features_out), or the container chosen by ``set_output``
        """
        if is_lazy(X):
            refuse_row_columns(self, training=True)
        with all_or_nothing(self):
            inputs = self._read(X, y, sample_weight, fold=fold)
            self._learn(inputs)
            self._warn_of_columns(inputs.table, inputs.layout)
            lookups = self._lookups(inputs, training=True)
        return self._encode(inputs, lookups)

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
        names = [str(name) for name in check_feature_names_in(self, input_features)]
        kept = [names[position] for position in self.layout_.kept]
        new = [column.name(names) for column in self.outputs_]
        return np.asarray([*kept, *new], dtype=object)

    def learn_levels(self, X: Any, y: Any = None) -> Self:
        """Return an encoder that knows the new levels of these rows too, without another fit.

        A level that ``fit`` did not see is estimated as ``unseen="estimate"`` does it, and keeps that vector.
        All other levels, and everything that levels share, stay as they are. Encoders that cannot estimate
        new levels (codings, permutations, ranks, local effects) refuse. The rows are part of ``moments_``
        from now on: do not give them to ``partial_fit`` again.

        Parameters
        ----------
        X : frame, lazy frame or array-like, shape (n_samples, n_features)
            The columns that ``fit`` saw. A lazy frame stays where it is; encoders that need rows refuse it.
        y : array-like, shape (n_samples,), or str, optional
            The target, or the name of its column (if X is lazy, the name), without nulls, if the encoder
            averages it (``use_target`` of means and low rank). Encoders that do not use the target ignore it.

        Returns
        -------
        encoder
            A copy; this encoder does not change.
        """
        inputs = self._read_levels(X, y)
        for group in self.representations_:
            if getattr(self, "new_levels_", {}).get(group) is None:
                raise NoRuleError(type(self).__name__)
        return learn_levels(self, inputs)

    def _read_levels(self, X: Any, y: Any) -> Inputs:
        """Read rows whose new levels are to be learnt."""
        check_is_fitted(self)
        table, y = read_table_and_target(self, X, y, reset=False, allow_lazy=True)
        inputs = self._read_new_rows(table)
        if y is not None and self._needs.target == "response":
            raise TargetError(
                f"{type(self).__name__} cannot learn a level from its target without another fit.",
                "leave y out, or call fit with all rows.",
            )
        if y is not None and self._needs.target == "covariate":
            inputs = replace(inputs, target=self._read_target(table, y, reset=False))
        return inputs

    def table(
        self,
        group: str | None = None,
        *,
        library: Literal["pandas", "polars", "pyarrow"] | None = None,
        errors: bool = False,
    ) -> Any:
        """Return the representation of a group as a frame: level, weight, vector.

        Parameters
        ----------
        group : str, optional
            Name of the group; may be left out if there is only one.
        library : {"pandas", "polars", "pyarrow"}, optional
            Kind of the frame; by default that of the table that was fitted. After a fit to an array, pandas
            if installed, else polars, else pyarrow.
        errors : bool, default=False
            Add the standard error of every entry, in columns that end in ``_error``: the sampling error from
            the pooled covariance within levels or, for shrunken vectors, the posterior standard deviation.
            They are null where there is none: for codings, permutations, ranks, local effects and cells, and
            where no level has two rows.
        """
        name, representation = self._one_group(group)
        columns = self.layout_.groups[list(self.representations_).index(name)]
        found = vector_errors(self, name).standard_errors() if errors else None
        names = [self.layout_.names[column] for column in columns]
        fitted = vars(self).get("frame_library_")
        return tabulate(representation, names, library, found, preferred=fitted)

    def to_sql(
        self, dialect: str, *, source: str, table: str | None = None, batch: int = 500
    ) -> SqlStatements:
        """Write SQL that encodes the rows of a table in a database.

        It stores the vectors of the levels that the encoder knows in one table for each group, and joins
        them to the rows; see `Representation.to_sql`, whose parameters these are. The encoded columns are to
        the last bit those of ``transform`` with ``unseen="prior"``. New levels are not estimated from their
        rows (``unseen="estimate"``) and do not start from their parents; they are no error either.

        Parameters
        ----------
        dialect : str
        source : str
        table : str, optional
            With several groups, the name of each follows it.
        batch : int, default=500

        Raises
        ------
        NotExportableError
            If the columns of a row depend on its own covariates, not only on its level.
        """
        return encoder_sql(self, dialect, source, table, batch)

    def plot(self, group: str | None = None) -> Any:
        """Draw the levels of a group in the plane, labelled; an Altair chart.

        Vectors with more than two entries are shown by their first two principal components, those with one
        entry in its order. Around the levels that are labelled, the largest ones, ellipses (or lines) show
        95 % regions of their vectors, if the encoder has errors (see ``table``).
        """
        name, representation = self._one_group(group)
        return draw_levels(name, representation, vector_errors(self, name))

    def drift(self, X: Any, *, sample_weight: Any = None, rate: float = 0.05) -> Drift:
        """Compare new rows with those that the encoder was fitted to, level by level.

        Levels are new, have vanished, or have both old and new rows; the means of the covariates of the
        latter are compared by Hotelling's test, which needs no more than the moments of the old rows. The
        target plays no part.

        Parameters
        ----------
        X : frame, lazy frame or array-like, shape (n_samples, n_features)
            The columns that ``fit`` saw. A lazy frame stays where it is.
        sample_weight : array-like, shape (n_samples,), or str, optional
            Frequencies, or the name of their column, as in ``fit``.
        rate : float, default=0.05
            False-discovery rate: of the levels that are reported to have moved, at most this share has not,
            on average. It is controlled in each group (Benjamini and Hochberg), if rows are independent, the
            means of levels about normal, and the spread of a level is what it was.

        Returns
        -------
        Drift
        """
        # Fitting and encoding do not need it (python -m benchmarks --only imports); the same in `save`.
        from sufrep.encoders._drift import NewRows, check_rate, make_drift, stored_moments

        check_is_fitted(self)
        check_rate(rate)
        stored_moments(self)
        rows = NewRows.read(self, X, sample_weight)
        return make_drift(self, rows.moments(), rows.squares_along, rate)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the encoder to a file that holds no code; `sufrep.load` reads it back.

        The file is written completely or not at all: it is written under another name and then renamed.
        `sufrep.save` does the same for a pipeline of steps.
        """
        from sufrep.encoders._persistence import save_steps

        save_steps([("encoder", self)], path)

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        fold: str | None = None,
        reset: bool = True,
        is_chunk: bool = False,
    ) -> Inputs:
        """Read and check training rows: the first ones, or (``reset=False``) one more chunk."""
        if is_lazy(X) and self._needs.rows:
            X = sample_rows(self, X, y, sample_weight)
        found = read_training_table(self, X, y, sample_weight, fold, reset=reset, allow_lazy=True)
        inputs = self._read_training(found.table, found.target, found.weights, reset=reset, is_chunk=is_chunk)
        if fold is None:
            return inputs
        if isinstance(found.table, LazyTable):
            return replace(inputs, fold=found.fold)
        return replace(inputs, folds=folds_of(found.fold, fold))

    def _read_training(
        self, table: Table, y: Any, sample_weight: Any, *, reset: bool = True, is_chunk: bool = False
    ) -> Inputs:
        """Read training rows, given the table without the target, and the target."""
        layout = self._layout_of(table) if reset else self.layout_
        inputs = self._read_rows(table, layout, y, sample_weight, reset=reset)
        # Chunks are not cross-fitted, and all rows of one may well have the same time.
        if is_chunk or isinstance(table, LazyTable):
            return inputs
        return replace(inputs, times=self._read_times(inputs))

    def _read_rows(
        self, table: Table, layout: Layout, y: Any, sample_weight: Any, *, reset: bool = True
    ) -> Inputs:
        """Read training rows, given the roles of their columns."""
        weights: Any
        if isinstance(table, LazyTable):
            weights = read_lazy_weights(table, sample_weight)
        else:
            weights = check_weights(sample_weight, table.n_rows, allow_zero=not reset)
        factors = tuple(read_factor(table, group, self.missing) for group in layout.groups)
        needs = self._needs
        covariates: tuple[Covariate, ...] = ()
        columns: tuple[Array, ...] = ()
        if needs.covariates != "unused":
            covariates, columns = read_covariates(table, layout)
        target = self._read_target(table, y, reset=reset) if needs.uses_target else None
        parents = read_parents(table, layout)
        scores = SharedScores(columns)
        return Inputs(
            table, layout, factors, covariates, columns, weights, target, parents=parents, scores=scores
        )

    def _read_times(self, inputs: Inputs) -> Array | None:
        """When each row happened, for encoders that use the target and so have these parameters."""
        if inputs.target is None:
            return None
        given = vars(self)
        return read_order(
            inputs.table, inputs.layout, cv=given["cv"], time=given["time"], weights=inputs.weights
        )

    def _read_target(self, table: Table, y: Any, *, reset: bool) -> Target:
        """Read the target; the first chunk decides what kind it is."""
        asked = self._needs.target_type
        if isinstance(table, LazyTable):
            return read_lazy_target(table, y, asked if reset else self.target_type_)
        if reset:
            target = read_target(y, asked)
            if asked == "auto":
                warn_of_integers(target)
            return target
        if asked == "auto" and self.target_type_ != "continuous":
            check_still_classes(y, [item for item in self.covariates_ if item.position is None])
        return read_target(y, self.target_type_)

    def _read_new(self, X: Any) -> Inputs:
        """Read and check rows to encode."""
        return self._read_new_rows(read_table(self, X, reset=False, allow_lazy=True))

    def _read_new_rows(self, table: Table) -> Inputs:
        """Read rows to encode, whose columns are those that ``fit`` saw."""
        factors = tuple(read_factor(table, group, self.missing) for group in self.layout_.groups)
        columns: tuple[Array, ...] = ()
        if self._needs.own_covariates:
            columns = read_known_columns(table, self.layout_, self.covariates_)
        parents = read_parents(table, self.layout_)
        return Inputs(table, self.layout_, factors, tuple(self.covariates_), columns, parents=parents)

    def _layout_of(self, table: Table) -> Layout:
        parent = vars(self).get("parent")
        if parent and not self._needs.shrinks:
            raise ParentError(
                f"parent={parent!r} says what levels are shrunk towards, but {type(self).__name__} shrinks "
                "nothing here.",
                "set shrinkage='auto'; use_target=True alone shrinks the mean of the target.",
            )
        return resolve_layout(
            table,
            group=self.group,
            covariates=self.covariates,
            share_text=self.categorical_covariates == "share",
            keep=self.remainder == "passthrough",
            parent=parent,
        )

    def _warn_of_columns(self, table: Table, layout: Layout) -> None:
        """Warn if the groups are alone, or if text passes through.

        Only what users fit themselves warns: no component, fold or method of a comparison. A lazy frame goes
        to another table, not to a learner.
        """
        if isinstance(table, LazyTable):
            return
        kind, groups = type(self).__name__, layout.group_names(layout.names)
        alone = groups and not layout.others and not (self._needs.joint and len(groups) > 1)
        if alone and self.covariates is None and self._needs.covariates == "optional":
            warn_of_groups_alone(kind, len(layout.names), groups)
        in_frame = get_output_config("transform", self)["dense"] != "default"
        with_role = {*layout.shares, *sum(layout.parents, ())}
        text = [
            layout.names[position]
            for position in layout.kept
            if position not in with_role
            and table.kind(position) == "text"
            and not (in_frame and table.is_categorical(position))
        ]
        if text:
            columns = dict.fromkeys(layout.names[position] for group in layout.groups for position in group)
            warn_of_text(kind, text, list(columns))

    def _learn(self, inputs: Inputs) -> None:
        """Set the fitted attributes from what was read."""
        self._represent_groups(inputs, *self._collect(inputs))

    def _collect(self, inputs: Inputs) -> tuple[list[Covariate], dict[str, GroupMoments]]:
        """Return the covariates that describe the levels, and the moments of every group."""
        layout = inputs.layout
        if self._needs.covariates == "required" and layout.groups and not inputs.covariates:
            others = [layout.names[position] for position in layout.others]
            raise NoCovariateError(len(layout.names), layout.group_names(layout.names), others)
        covariates, columns = moment_columns(inputs, self._needs)
        names = [covariate.name(layout.names) for covariate in covariates]
        order = self._needs.order
        moments = {
            group: collect_moments(
                inputs.table, factor, columns, names=names, weights=inputs.weights, order=order
            )
            for group, factor in named_factors(inputs)
        }
        return covariates, moments

    def _check_same_needs(self) -> None:
        """Refuse one more chunk if earlier ones were collected for other parameters."""
        had_target = any(covariate.position is None for covariate in self.covariates_)
        least = min((moments.order for moments in self.moments_.values()), default=2)
        had_parents = bool(self.layout_.parents)
        changed = had_target != self._needs.uses_target or had_parents != bool(vars(self).get("parent"))
        if changed or least < self._needs.order:
            raise ChangedParametersError(type(self).__name__)

    def _add_to_earlier(
        self, covariates: list[Covariate], moments: dict[str, GroupMoments]
    ) -> tuple[list[Covariate], dict[str, GroupMoments]]:
        """Add the moments of one more chunk to those of earlier ones."""
        united = merge_covariates(self.covariates_, covariates, self.layout_.names)
        names = [covariate.name(self.layout_.names) for covariate in united]
        sums = {}
        for group, more in moments.items():
            earlier = replace(self.moments_[group], target=None)  # its classes may have become more
            parts = [earlier.expand(names), more.expand(names)]
            order = min(part.order for part in parts)
            sums[group] = parts[0].of_order(order) + parts[1].of_order(order)
        return united, sums

    def _represent_groups(
        self,
        inputs: Inputs,
        covariates: list[Covariate],
        moments: dict[str, GroupMoments],
        earlier: Mapping[str, tuple[Links, ...]] = MappingProxyType({}),
    ) -> None:
        """Make a table of every group, and store what was learnt; ``earlier`` are links of other chunks."""
        self._link_parents(inputs, earlier)
        self._keep_kind_of_target(inputs, covariates)
        learnt: dict[str, Vectors] = {}
        positions: dict[str, Codes] = {}
        for group, factor in named_factors(inputs):
            found = moments[group]
            if not found.n_levels:
                raise NoLevelError(group)
            place = pooled_positions(found.weight, self.min_frequency)
            rows = _counted_rows(inputs, factor, found, place) if self._needs.rows else None
            nesting = self._nesting(group, found.levels, place)
            vectors = self._represent(GroupSample(pool_moments(found, place), rows, nesting))
            learnt[group], positions[group] = replace(vectors, values=vectors.values[place]), place
        self._store(inputs.layout, covariates, moments, learnt)
        self.pooled_positions_ = positions

    def _keep_kind_of_target(self, inputs: Inputs, covariates: list[Covariate]) -> None:
        """Store what kind of target was found, and how many columns it has."""
        if inputs.target is None:
            for attribute in ("target_type_", "n_targets_"):
                self.__dict__.pop(attribute, None)  # of an earlier fit with the target
            return
        known = {covariate for covariate in covariates if covariate.position is None}
        self.target_type_: str = inputs.target.kind
        self.n_targets_: int = len(known.union(inputs.target.covariates))
        check_classes(self.target_type_, self.n_targets_)

    def _link_parents(self, inputs: Inputs, earlier: Mapping[str, tuple[Links, ...]]) -> None:
        """Find the parents of the levels, for encoders that have parameters about them."""
        self.__dict__.pop("parents_", None)  # of an earlier fit
        if not inputs.layout.parents:
            return
        self.parents_: dict[str, tuple[Links, ...]] = {}
        for number, (group, _) in enumerate(named_factors(inputs)):
            links = read_links(inputs, number)
            if group in earlier:
                links = tuple(old + new for old, new in zip(earlier[group], links, strict=True))
            if links:
                self.parents_[group] = links

    def _nesting(self, group: str, levels: Levels, place: Codes) -> Nesting | None:
        """What the levels of a group are part of, if it has a parent; ``place`` pools the rare ones."""
        links = getattr(self, "parents_", {}).get(group)
        return None if links is None else nesting_of(links, levels, place, vars(self)["on_conflict"])

    def _store(
        self,
        layout: Layout,
        covariates: list[Covariate],
        moments: dict[str, GroupMoments],
        learnt: dict[str, Vectors],
    ) -> None:
        """Set the fitted attributes."""
        self.layout_, self.covariates_, self.outputs_ = layout, covariates, []
        self.representations_ = {}
        for number, (group, found) in enumerate(learnt.items()):
            own = layout.groups[number]
            columns = _output_columns(own, found.suffixes, covariates)
            outputs = columns if found.outputs is None else _output_columns(own, found.outputs, covariates)
            self.outputs_ += outputs
            self.representations_[group] = Representation.from_values(
                moments[group].levels,
                found.values,
                [column.name(layout.names) for column in columns],
                weight=moments[group].weight,
                prior=found.prior,
                group=[layout.names[position] for position in layout.groups[number]],
            )
        self._refuse_clashing_names()
        self.moments_ = with_roles(moments, layout, covariates, self)
        for attribute in vars(self).get("details_", ()):
            self.__dict__.pop(attribute, None)  # of an earlier fit, perhaps of other groups
        self.details_ = list(dict.fromkeys(name for found in learnt.values() for name in found.details))
        for attribute in self.details_:
            setattr(self, attribute, {group: found.details[attribute] for group, found in learnt.items()})

    def _outputs_of(self, number: int) -> list[OutputColumn]:
        """The output columns of a group."""
        return [column for column in self.outputs_ if column.columns == self.layout_.groups[number]]

    def _refuse_clashing_names(self) -> None:
        """Raise an error if two columns of the output would have the same name."""
        names = self.layout_.names
        refuse_clashes(
            [
                *(names[position] for position in self.layout_.kept),
                *(column.name(names) for column in self.outputs_),
            ]
        )

    def _lookups(self, inputs: Inputs, *, training: bool) -> list[Any]:
        """Return the new columns of every row; ``training`` if the encoder was fitted to these very rows."""
        if isinstance(inputs.table, LazyTable):
            return lazy_lookups(self, inputs, training=training)
        lookups, folds = [], None
        if training and self._needs.uses_target:
            folds = self._split(inputs)
        columns = moment_columns(inputs, self._needs)[1]
        for number, (group, factor) in enumerate(named_factors(inputs)):
            whole, place = self._pooled_vectors(group)
            # Levels whose training rows all have weight zero are unseen, but that is not an error.
            unseen = "prior" if training else self.unseen
            positions = find_levels(self.representations_[group], factor, group, unseen)
            places = np.where(positions < 0, -1, place[positions])
            if training:
                whole = replace(
                    whole, nesting=self._nesting(group, self.representations_[group].levels, place)
                )
            elif (places < 0).any():
                whole, places = add_new_levels(self, inputs, number, whole, places)
            codes = np.append(places, -1)[factor.codes]
            shared = inputs.scores if training else None
            rows = Rows(
                codes, whole.n_levels, inputs.columns, inputs.weights, inputs.target, training, shared=shared
            )
            if folds is None:
                lookup = self._encode_rows(whole, rows)
            else:
                lookup = cross_fit(self, inputs, columns, rows, whole, folds)
            names = tuple(column.name(self.layout_.names) for column in self._outputs_of(number))
            lookups.append(replace(lookup, names=names))
        return lookups

    def _split(self, inputs: Inputs) -> list[tuple[Codes, Codes]]:
        """The folds of cross-fitting, for encoders that use the target and so have these parameters."""
        if inputs.folds is not None:
            return list(inputs.folds)
        given = vars(self)
        if inputs.target is None:
            raise TypeError("the encoder does not declare that it needs the target")
        n_rows, seed = inputs.table.n_rows, given["random_state"]
        return training_folds(given["cv"], n_rows, inputs.target.raw, seed, inputs.times)

    def _pooled_vectors(self, group: str) -> tuple[Vectors, Codes]:
        """What was learnt about a group, rare levels pooled, and the position of each level in it."""
        representation, place = self.representations_[group], self.pooled_positions_[group]
        details = {name: getattr(self, name)[group] for name in self.details_}
        values, moments = representation.values, getattr(self, "moments_", {}).get(group)
        if place[-1] != len(place) - 1:  # else every level has its own position

            def pooled() -> tuple[Any, GroupMoments | None]:
                first = np.unique(place, return_index=True)[1]
                return values[first], None if moments is None else pool_moments(moments, place)

            # Rows that come one by one would pool all levels each time
            # (test_one_row_does_not_look_at_all_levels).
            values, moments = representation.remember("pooled", pooled, place, moments)
        return Vectors(values, details=details, prior=representation.prior, moments=moments), place

    def _encode(self, inputs: Inputs, lookups: Sequence[Lookup]) -> Any:
        """Put the kept columns and the new ones together."""
        return inputs.table.encode(self.layout_.kept, lookups, get_output_config("transform", self)["dense"])

    def _one_group(self, group: str | None) -> tuple[str, Representation]:
        check_is_fitted(self)
        known = list(self.representations_)
        name = known[0] if group is None and len(known) == 1 else group
        if name not in self.representations_:
            raise UnknownGroupError(name, known)
        return name, self.representations_[name]

    def _html_repr(self) -> str:
        return describe_html(estimator_html_repr(self), getattr(self, "representations_", {}))

    # Before scikit-learn 1.7, nothing called `_html_repr`.
    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/html": self._html_repr()} if "text/html" in bundle else bundle

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "representations_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = self.group is not None
        tags.target_tags.required = self._needs.uses_target
        return tags


def moment_columns(inputs: Inputs, needs: Needs) -> tuple[list[Covariate], list[Array]]:
    """Return what moments are made of: the covariates and, if it is one of them, the target at the end."""
    covariates, columns = list(inputs.covariates), list(inputs.columns)
    if needs.target == "covariate" and inputs.target is not None:
        covariates += inputs.target.covariates
        columns += inputs.target.columns
    return covariates, columns


def pooled_positions(weight: Floats, min_frequency: float | None) -> Codes:
    """Position of each level after those below ``min_frequency`` were pooled into the last; (n_levels,)."""
    everywhere = np.arange(len(weight))
    if min_frequency is None:
        return everywhere
    least = min_frequency if isinstance(min_frequency, Integral) else min_frequency * weight.sum()
    rare = weight < least
    if rare.sum() < 2:
        return everywhere
    return np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)


def pool_moments(moments: GroupMoments, place: Codes) -> GroupMoments:
    """Pool the levels that share the last of the places, where several do."""
    rare = place == place.max()
    return moments.pool(rare, PooledLevel()) if rare.sum() > 1 else moments


def _counted_rows(inputs: Inputs, factor: Factor, moments: GroupMoments, place: Codes) -> Rows:
    """The rows of a group with a level and a positive weight; ``place`` is the position of each level."""
    codes = pooled_codes(factor, moments, place)
    n_levels = int(place.max()) + 1
    rows = Rows(codes, n_levels, inputs.columns, inputs.weights, inputs.target, shared=inputs.scores)
    return rows.take(rows.counted())


def pooled_codes(factor: Factor, moments: GroupMoments, place: Codes) -> Codes:
    """The position of the level of each row, −1 for rows without one; ``place`` is that of each level."""
    known = level_positions(moments.levels)
    found = np.fromiter((known.get(level, -1) for level in factor.levels), dtype=np.intp)
    codes: Codes = np.append(np.where(found < 0, -1, place[found]), -1)[factor.codes]
    return codes


def most_iterations(encoder: Any) -> int:
    """Largest number of iterations that any group took."""
    check_is_fitted(encoder)
    iterations: dict[str, int] = getattr(encoder, "iterations_", {})
    return max([1, *iterations.values()])


def named_factors(inputs: Inputs) -> list[tuple[str, Factor]]:
    """The groups by name."""
    return list(zip(inputs.layout.group_names(inputs.layout.names), inputs.factors, strict=True))


def _output_columns(
    group: tuple[int, ...], suffixes: Sequence[Suffix], covariates: Sequence[Covariate]
) -> list[OutputColumn]:
    return [
        OutputColumn(group, suffix.text, None if suffix.covariate is None else covariates[suffix.covariate])
        for suffix in suffixes
    ]
