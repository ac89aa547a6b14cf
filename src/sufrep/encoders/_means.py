"""Levels by the means of their covariates (algorithm 1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from sufrep._frames import Lookup, taken
from sufrep._sklearn import StrOptions
from sufrep.encoders._base import (
    PARENT_CONSTRAINTS,
    TARGET_CONSTRAINTS,
    GroupEncoder,
    Needs,
    Suffix,
    Vectors,
)
from sufrep.encoders._target import output_positions
from sufrep.solvers.nesting import shrink_nested, shrink_towards_parents
from sufrep.solvers.new_levels import LinearRule
from sufrep.solvers.shrinkage import add_one_row, posterior_means, shrink_with_target

if TYPE_CHECKING:
    from sufrep._arrays import Floats
    from sufrep.encoders._inputs import Column, GroupSample, Parents, Rows


@dataclass(eq=False, repr=False, kw_only=True)
class MeansEncoder(GroupEncoder):
    """Replace each level by the averages of the other columns over its rows, and optionally of the target.

    Try it first: it is fast, takes data in chunks and needs no target, so that it also describes levels
    for which none is known. Use ``shrinkage="auto"`` if there are levels of few rows.

    Without a target it cannot leak one. With ``use_target`` the target is one more covariate, which helps
    where the covariates alone are not informative enough; in training, the means are then learnt without
    the row's fold. Nulls in the covariates are skipped; a level that has no value of a covariate gets its
    overall mean.

    Assumption (lemma 2 of the paper): the level acts on the target only through a hidden state L, and
    the matrix A of the means E[X | L = l] has a left inverse. Then ω(g) = E[X | G = g] = A·P(L | G = g)
    keeps all that the level says about the target. ``use_target`` adds a row to A.

    Parameters
    ----------
    group : str, int, tuple, list of these, or None, default=None
        The categorical column: its name or position; several in a list; a tuple of columns is one
        group of their combinations, as in ``group=[("store", "brand")]``. None selects every text or
        categorical column.
    covariates : list of str or int, default=None
        The columns that describe the levels; by default every numeric column that is not a group.
    categorical_covariates : {"ignore", "share"}, default="ignore"
        With "share", text columns with at most 30 levels that are not a group (of those in ``covariates``, if
        that is given) join the covariates, by one indicator for each of their levels.
    remainder : {"passthrough", "drop"}, default="passthrough"
        Whether the other columns come before the encoding in the output, or are dropped.
    unseen : {"estimate", "prior", "error"}, default="estimate"
        What a level that ``fit`` did not see gets: the vector that its own rows in the given table say, with
        all that levels share as it was learnt (codings, ranks, cells and local effects use the prior
        instead); an average vector (usually the weighted mean of the level vectors); or an error.
    missing : {"level", "prior", "error"}, default="level"
        How a null in the group column is treated: as a level of its own, as an unseen level, or as an error.
    min_frequency : int or float, default=None
        Levels with fewer rows (or a smaller share of the rows) are pooled into one before encoding, if there
        are at least two of them.
    shrinkage : {"auto"} or None, default=None
        "auto" replaces the sample means by their posterior means under the normal model
        x̄_g ~ N(ω_g, W/n_g), ω_g ~ N(m, T), whose m, T and W are estimated from the moments (multivariate
        empirical Bayes): small levels, and directions in which levels hardly differ, are shrunk
        towards the overall mean. With ``unseen="prior"`` an unseen level gets m; by default its own
        shrunken mean.
    leave_one_out : bool, default=False
        Give each row of ``fit_transform`` the mean of its level without the row itself. Where levels are
        small, their means contain the row in training but not for new rows, and trees learn that
        difference. Without ``shrinkage``, all means are then shrunk towards the overall mean as if each level
        had one more row there, so that a level with a single row has a mean too.
    use_target : bool, default=False
        Add the mean of the target, or the share of each class (of two, the second). It is shrunk
        towards the overall mean by empirical Bayes: alone, or with ``shrinkage="auto"`` jointly with the
        covariates. ``fit_transform`` then cross-fits all columns that depend on the target. With
        ``covariates=[]`` only the target is averaged.
    parent : dict, default=None
        Which columns contain a group: ``parent={"zip5": "zip3"}``, or several from the nearest to the
        farthest, ``{"zip5": ["zip3", "state"]}``. Keys are as in ``group``. Levels are then shrunk towards
        their parent, parents towards theirs, and the last ones towards the overall mean, each by as much as
        the data say; a tier that does not differ by more than noise is skipped. A level that ``fit`` did not
        see starts from its nearest known ancestor, with ``unseen="prior"`` it gets the vector of that one. A
        parent column passes through like any other and, unless ``covariates`` names it, is not a covariate.
        Where it is null a row says nothing; a level without any parent has one of its own.
    on_conflict : {"error", "majority"}, default="error"
        Whether a level with several parents is an error, or belongs to the parent of most of its rows.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes.
    cv : int, splitter, iterable of (train, test) or "ordered", default=5
        Folds of ``fit_transform`` with ``use_target``; every row must be in one test fold.
        With "ordered", columns that depend on the target are learnt from earlier rows only: rows are cut by
        ``time`` into at most 10 blocks of about the same size, ties together, and a block is encoded with
        what all blocks before it say; the first one gets what is known before any target. scikit-learn's
        `TimeSeriesSplit` does the same by the position of the rows.
    time : str or int, default=None
        The column of X that says when each row happened, for ``cv="ordered"``: numbers, dates, or ISO text.
        With a `TimeSeriesSplit`, rows are checked to be in the order of this column. It passes through like
        any other column and, if it is numeric, is a covariate unless ``covariates`` leaves it out.
    random_state : int, default=0
        Seed of the shuffling of ``cv=int``.

    Attributes
    ----------
    representations_ : dict of str to Representation
        The table of each group.
    moments_ : dict of str to GroupMoments
        The moments of the covariates in the levels of each group.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.
    target_type_ : str
        With ``use_target``: the kind of target that was found.
    n_targets_ : int
        With ``use_target``: columns that the target has, one for each class.
    parents_ : dict of str to tuple of Links
        With ``parent``: the parents of the levels of a group, the parents of these, and so on.

    Examples
    --------
    >>> import polars as pl
    >>> from sufrep import MeansEncoder
    >>> houses = pl.DataFrame(
    ...     {"zipcode": ["98178", "98178", "98125"], "sqft": [1000.0, 1400.0, 2600.0], "floors": [1, 2, 2]}
    ... )
    >>> encoder = MeansEncoder("zipcode").set_output(transform="polars")
    >>> encoder.fit_transform(houses)
    shape: (3, 4)
    ┌────────┬────────┬───────────────────┬─────────────────────┐
    │ sqft   ┆ floors ┆ zipcode_mean_sqft ┆ zipcode_mean_floors │
    │ ---    ┆ ---    ┆ ---               ┆ ---                 │
    │ f64    ┆ i64    ┆ f64               ┆ f64                 │
    ╞════════╪════════╪═══════════════════╪═════════════════════╡
    │ 1000.0 ┆ 1      ┆ 1200.0            ┆ 1.5                 │
    │ 1400.0 ┆ 2      ┆ 1200.0            ┆ 1.5                 │
    │ 2600.0 ┆ 2      ┆ 2600.0            ┆ 2.0                 │
    └────────┴────────┴───────────────────┴─────────────────────┘
    """

    shrinkage: Literal["auto"] | None = None
    leave_one_out: bool = False
    use_target: bool = False
    parent: Parents | None = None
    on_conflict: Literal["error", "majority"] = "error"
    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto"
    cv: Any = 5
    time: Column | None = None
    random_state: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **TARGET_CONSTRAINTS,
        **PARENT_CONSTRAINTS,
        "shrinkage": [StrOptions({"auto"}), None],
        "leave_one_out": ["boolean"],
        "use_target": ["boolean"],
    }

    @property
    def _needs(self) -> Needs:
        # The list of covariates may be empty: then only the target is averaged.
        may_be_empty = self.use_target and self.covariates is not None
        return Needs(
            order=2 if self.shrinkage or self.use_target else 1,
            covariates="optional" if may_be_empty else "required",
            target="covariate" if self.use_target else "unused",
            target_type=self.target_type,
            shrinks=bool(self.shrinkage or self.use_target),
        )

    def _represent(self, sample: GroupSample) -> Vectors:
        moments = sample.moments
        n_covariates = len(moments.covariates) - (self.n_targets_ if self.use_target else 0)
        outputs = list(range(n_covariates))
        if self.use_target:
            outputs += [n_covariates + j for j in output_positions(self.target_type_, self.n_targets_)]
        suffixes = [Suffix("mean_", j) for j in outputs]
        values, center = moments.filled_mean(), None
        if self.shrinkage or self.use_target:
            shrink = partial(shrink_towards_parents, nesting=sample.nesting)
            jointly = bool(self.shrinkage)
            values, center = shrink_with_target(moments, n_covariates, jointly=jointly, shrink=shrink)
        if self.leave_one_out and not self.shrinkage:
            own = moments.select(range(n_covariates))
            center = own.overall_mean() if center is None else center
            values[:, :n_covariates] = add_one_row(own.mean, own.observed, center[:n_covariates])
        return Vectors(
            values[:, outputs],
            suffixes,
            {"new_levels_": self._rule(sample, outputs)},
            prior=None if center is None else center[outputs],
            first_cross_fitted=0 if self.shrinkage else n_covariates,
        )

    def _rule(self, sample: GroupSample, outputs: list[int]) -> LinearRule:
        """How the vector of a new level follows from its means."""
        found = None
        if self.shrinkage or self.use_target:
            found = shrink_nested(sample.moments, sample.nesting)
        return LinearRule(
            sample.moments.overall_mean(),
            np.array(outputs, dtype=np.intp),
            one_more_row=self.leave_one_out,
            shrink=bool(self.shrinkage),
            prior=None if found is None else found.prior,
            tiers=() if found is None else found.tiers,
        )

    def _represent_fold(self, sample: GroupSample, whole: Vectors) -> Vectors:
        """Without any row: the prior of the covariates, and 0 for the target."""
        if not sample.is_empty:
            return self._represent(sample)
        vector = whole.with_prior()[-1].copy()
        n_covariates = len(vector) - len(output_positions(self.target_type_, self.n_targets_))
        vector[n_covariates:] = 0.0
        return whole.with_one_vector(vector, first_cross_fitted=0 if self.shrinkage else n_covariates)

    def _encode_rows(self, vectors: Vectors, rows: Rows) -> Lookup:
        """With ``leave_one_out``, training rows get the means of the covariates without the row itself."""
        lookup = super()._encode_rows(vectors, rows)
        if not (rows.training and self.leave_one_out and len(rows.columns)):
            return lookup
        values = np.array(taken(lookup))
        values[:, : len(rows.columns)] = self._leave_one_out(vectors, rows)
        return Lookup(values)

    def _leave_one_out(self, vectors: Vectors, rows: Rows) -> Floats:
        """Means of the covariates without the row itself; (n, n_covariates)."""
        p = len(rows.columns)
        moments = vectors.known_moments().select(range(p))
        values = np.tile(vectors.with_prior()[-1, :p], (len(rows.codes), 1))
        inside = np.flatnonzero(rows.codes >= 0)  # the others have no level, and nothing to leave out
        rows = rows.take(inside)
        own = np.ones(len(inside)) if rows.weights is None else rows.weights
        mean, rest = moments.without_each(rows.codes, rows.columns, rows.weights)
        if self.shrinkage:
            # At least that of the values: a difference may be lost in rounding.
            weight = np.maximum(moments.weight[rows.codes] - own, rest.max(axis=1))
            found = shrink_nested(moments, vectors.nesting)
            values[inside] = posterior_means(found.own, mean, rest, weight, found.centers[rows.codes])
        else:
            values[inside] = add_one_row(mean, rest, moments.overall_mean())
        return values
