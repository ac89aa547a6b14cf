"""All groups jointly: crossed random effects of levels and of their crossings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from sufrep._frames import LazyTable, Lookup
from sufrep._sklearn import Interval
from sufrep.encoders._base import (
    SAMPLE_CONSTRAINTS,
    TARGET_CONSTRAINTS,
    GroupEncoder,
    Needs,
    Suffix,
    Vectors,
    named_factors,
    pooled_codes,
    pooled_positions,
)
from sufrep.encoders._inputs import OutputColumn, Rows, find_levels
from sufrep.encoders._lazy import lazy_lookups
from sufrep.encoders._level_models import intercept_rule
from sufrep.encoders._new_levels import add_new_levels
from sufrep.errors import NoLevelError
from sufrep.solvers.crossings import (
    CellEffects,
    CrossedRows,
    Crossing,
    JointEffects,
    cut_into_bins,
    find_cuts,
    learn_effects,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Codes, Floats
    from sufrep.encoders._inputs import Column, Inputs
    from sufrep.encoders._target import Target
    from sufrep.moments import GroupMoments


@dataclass(eq=False, repr=False, kw_only=True)
class CrossedEffectsEncoder(GroupEncoder):
    """Represent the levels of several groups by their effects on the target, each net of all others.

    A linear mixed model with crossed and nested random effects: what a smooth function of the covariates
    leaves of the target is the sum of an effect of each group's level, of effects of cells, and noise. Cells
    are the levels of one group crossed with a binned covariate (a random slope that need not be linear) or
    with the levels of another group. A lecturer who teaches strict students is then not strict. It assumes
    nothing about hidden states.

    A row gets the effect of its level for each group, and the total: the sum of all its effects, those of its
    cells included.

    1. The groups and the strongest covariates, binned, are fitted jointly. What the groups leave is predicted
       from the covariates by boosted trees (of fewer than 2,000 rows, by a curve).
    2. The groups are fitted to what is left. Those that say nothing, by the products of residuals of rows
       of the same level, leave.
    3. All crossings are screened: do residuals of the same cell agree more than those of the same level in
       different cells? The strongest are kept. If several of a group with covariates are, so are the cells of
       all these covariates together, as long as they have three rows on average.
    4. Groups and crossings are fitted jointly. Variances are estimated by restricted maximum likelihood.

    For classes, effects are on the scale of log-odds (of two classes, of the second). ``fit_transform``
    cross-fits all four steps, so that a row's columns do not depend on its own target.

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
    sample_rows : int, default=None
        If X is a lazy frame: about how many of its rows to learn from. Large levels give as many rows each,
        and small ones all of theirs.
    sample_by : str or int, default=None
        The column whose values decide which rows these are, by a hash: an identifier. By default all columns
        decide, and rows with the same values are in the sample together.
    crossings : int, default=12
        Maximum number of crossings that are kept; 0 means that the effects of the groups are all.
    min_z : float, default=3.0
        Groups and crossings whose z statistic is smaller have no effect.
    cv : int, splitter, iterable of (train, test) or "ordered", default=5
        Folds of ``fit_transform``; every row must be in one test fold. An integer makes shuffled folds.
        With "ordered", columns that depend on the target are learnt from earlier rows only: rows are cut by
        ``time`` into at most 10 blocks of about the same size, ties together, and a block is encoded with
        what all blocks before it say; the first one gets what is known before any target. scikit-learn's
        `TimeSeriesSplit` does the same by the position of the rows.
    time : str or int, default=None
        The column of X that says when each row happened, for ``cv="ordered"``: numbers, dates, or ISO text.
        With a `TimeSeriesSplit`, rows are checked to be in the order of this column. It passes through like
        any other column and, if it is numeric, is a covariate unless ``covariates`` leaves it out.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes.
    random_state : int, default=0
        Seed of the shuffling of ``cv=int``, of the trees, and of the random vectors that variances are
        estimated with if there are more than 256 levels and cells.

    Attributes
    ----------
    representations_ : dict of str to Representation
        The table of each group.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.
    variance_components_ : dict of str to list
        For ``pd.DataFrame``, a row for each group, each crossing that was kept, and the residual: the
        ``component``, its ``n_levels`` (of the residual, the rows), its ``z`` (of the residual, None),
        ``variance`` and ``std_dev``.
        Of more than two classes, the ``class``. For classes, variances are those of log-odds, and the
        residual is relative to the variance of a binomial, 1 if the model holds.
    crossings_ : dict of str to list
        For ``pd.DataFrame``, a row for each crossing that was screened, the strongest first: ``crossing``,
        ``n_cells``, ``z``, and ``kept``. Of more than two classes, the ``class``.
    cuts_ : list of ndarray
        Where each covariate is cut into bins; nulls are a bin of their own.
    cells_ : list of tuple of CellEffects
        For each class that is predicted, the effects of the cells of the crossings that were kept.
    cell_numbers_ : dict of str to ndarray, shape (n_levels, 1)
        The number of each level in the keys of these cells; NaN for levels that have none.
    standard_errors_ : dict of str to ndarray, shape (n_levels, n_columns)
        Standard errors of the effects, given the variances; NaN for groups that say nothing. Rare levels that
        were pooled have one row, the last.
    target_type_ : str
        The kind of target that was found.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sufrep import CrossedEffectsEncoder
    >>> rng = np.random.default_rng(0)
    >>> student, lecturer = rng.integers(0, 50, 2000), rng.integers(0, 10, 2000)
    >>> X = pd.DataFrame({"student": student.astype(str), "lecturer": lecturer.astype(str)})
    >>> y = rng.normal(size=50)[student] + rng.normal(size=10)[lecturer] + rng.normal(size=2000)
    >>> encoder = CrossedEffectsEncoder(["student", "lecturer"], remainder="drop").fit(X, y)
    >>> encoder.get_feature_names_out().tolist()
    ['student_effect', 'lecturer_effect', 'student:lecturer_total']
    >>> pd.DataFrame(encoder.variance_components_)[["component", "n_levels", "std_dev"]].round(1)
      component  n_levels  std_dev
    0   student        50      1.0
    1  lecturer        10      0.9
    2  residual      2000      1.0
    """

    crossings: int = 12
    min_z: float = 3.0
    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto"
    cv: Any = 5
    time: Column | None = None
    random_state: int = 0
    sample_rows: int | None = None
    sample_by: Column | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **SAMPLE_CONSTRAINTS,
        **TARGET_CONSTRAINTS,
        "crossings": [Interval(Integral, 0, None, closed="left")],
        "min_z": [Interval(Real, None, None, closed="neither")],
    }

    @property
    def _needs(self) -> Needs:
        return Needs(
            rows=True,
            covariates="optional",
            target="response",
            target_type=self.target_type,
            own_covariates=True,
            joint=True,
        )

    def _learn(self, inputs: Inputs) -> None:
        """Learn the effects of all groups from all rows."""
        covariates, moments = self._collect(inputs)
        self._keep_kind_of_target(inputs, covariates)
        for group, found in moments.items():
            if not found.n_levels:
                raise NoLevelError(group)
        target = _response(inputs)
        places = {
            group: pooled_positions(found.weight, self.min_frequency) for group, found in moments.items()
        }
        codes = [
            pooled_codes(factor, moments[group], places[group]) for group, factor in named_factors(inputs)
        ]
        counted = _counted(inputs)
        self.cuts_: list[Floats] = [
            find_cuts(column[counted], None if inputs.weights is None else inputs.weights[counted])
            for column in _numbers(inputs)
        ]
        learnt: dict[str, Vectors] = {}
        self.cells_: list[tuple[CellEffects, ...]] = []
        if moments:
            n_levels = [int(place.max()) + 1 for place in places.values()]
            rows = self._rows(inputs, codes, n_levels).take(counted)
            found_effects = self._effects(rows, target.take(counted), with_errors=True)
            self.cells_ = [effects.cells for effects in found_effects]
            names = [covariate.name(inputs.layout.names) for covariate in covariates]
            self._describe(moments, names, found_effects, target, rows.n_rows)
            for number, (group, place) in enumerate(places.items()):
                vectors = _group_vectors(number, rows, found_effects, target)
                learnt[group] = replace(vectors, values=vectors.values[place])
        self._store(inputs.layout, covariates, moments, learnt)
        self.pooled_positions_ = places
        if moments:
            everything = tuple(dict.fromkeys(sum(inputs.layout.groups, ())))
            self.outputs_ += [OutputColumn(everything, f"total{label}") for label in target.suffixes]
            self._refuse_clashing_names()

    def _lookups(self, inputs: Inputs, *, training: bool) -> list[Any]:
        """The effects and totals of rows; those of training rows as the rows outside their fold say."""
        if isinstance(inputs.table, LazyTable):
            return lazy_lookups(self, inputs, training=training)
        if not self.representations_:
            return []
        learnt = [self._looked_up(inputs, number, training=training) for number in range(len(inputs.factors))]
        codes = [found for _, found in learnt]
        if training:
            n_levels = [vectors.n_levels for vectors, _ in learnt]
            values = self._cross_fitted(inputs, self._rows(inputs, codes, n_levels))
        else:
            numbers = [_cell_numbers(vectors, found) for vectors, found in learnt]
            rows = self._rows(inputs, numbers, [0] * len(numbers))
            values = _columns([vectors.at(found) for vectors, found in learnt], self.cells_, rows)
        names = tuple(column.name(self.layout_.names) for column in self.outputs_)
        return [Lookup(values, names=names)]

    def _looked_up(self, inputs: Inputs, number: int, *, training: bool) -> tuple[Vectors, Codes]:
        """What is known of a group, and the position of each row's level in it, −1 for none."""
        group, factor = named_factors(inputs)[number]
        whole, place = self._pooled_vectors(group)
        # Levels whose training rows all have weight zero are unseen, but that is not an error.
        unseen = "prior" if training else self.unseen
        positions = find_levels(self.representations_[group], factor, group, unseen)
        places = np.where(positions < 0, -1, place[positions])
        if not training and (places < 0).any():
            whole, places = add_new_levels(self, inputs, number, whole, places)
        return whole, np.append(places, -1)[factor.codes]

    def _rows(self, inputs: Inputs, codes: Sequence[Codes], n_levels: Sequence[int]) -> CrossedRows:
        """The rows as effects are learnt from them and looked up."""
        bins = [cut_into_bins(*pair) for pair in zip(_numbers(inputs), self.cuts_, strict=True)]
        n_bins = [len(cuts) + 2 for cuts in self.cuts_]
        return CrossedRows(codes, n_levels, _numbers(inputs), bins, n_bins, inputs.weights)

    def _effects(self, rows: CrossedRows, target: Target, *, with_errors: bool = False) -> list[JointEffects]:
        """The effects on each class that is predicted."""
        if not len(rows.groups[0]):
            return [JointEffects.nothing(rows) for _ in target.outputs]
        return [
            learn_effects(
                rows,
                column,
                is_class=target.kind != "continuous",
                least_z=self.min_z,
                most_crossings=self.crossings,
                with_errors=with_errors,
                seed=self.random_state,
            )
            for column in target.output_columns()
        ]

    def _cross_fitted(self, inputs: Inputs, rows: CrossedRows) -> Floats:
        """The columns of training rows, learnt outside each row's fold; (n, n_columns)."""
        target, n = _response(inputs), inputs.table.n_rows
        counts = np.zeros(n, dtype=bool)
        counts[_counted(inputs)] = True
        values = np.empty((n, len(self.outputs_)))
        # A single row has no fold; nothing is left to learn from.
        for train, test in self._split(inputs) or [(np.empty(0, dtype=np.intp), np.arange(n))]:
            known = np.asarray(train)[counts[train]]
            found = self._effects(rows.take(known), target.take(known))
            own = rows.take(np.asarray(test))
            effects = [
                np.column_stack([np.append(part.effects[number], 0.0)[codes] for part in found])
                for number, codes in enumerate(own.groups)
            ]
            values[test] = _columns(effects, [part.cells for part in found], own)
        return values

    def _describe(
        self,
        moments: dict[str, GroupMoments],
        covariates: Sequence[str],
        found: Sequence[JointEffects],
        target: Target,
        n_rows: float,
    ) -> None:
        """Set the attributes about variances and crossings."""
        groups = list(moments)
        components: dict[str, list[Any]] = {"class": [], "component": [], "n_levels": []}
        components |= {"z": [], "variance": [], "std_dev": []}
        screened: dict[str, list[Any]] = {"class": [], "crossing": [], "n_cells": [], "z": [], "kept": []}
        for label, effects in zip(target.classes, found, strict=True):
            lines: list[tuple[Any, ...]] = [
                (group, moments[group].n_levels, float(z), float(variance))
                for group, z, variance in zip(groups, effects.group_z, effects.variances, strict=True)
            ]
            for item in effects.screened:
                name = _crossing_name(item.crossing, groups, covariates)
                _append(screened, (label, name, item.n_cells, float(item.z), item.kept))
                if item.kept:
                    lines.append((name, item.n_cells, float(item.z), float(item.variance)))
            lines.append(("residual", round(n_rows), None, float(effects.noise)))
            for line in lines:
                _append(components, (label, *line, math.sqrt(line[-1])))
        if target.kind != "multiclass":
            del components["class"], screened["class"]
        self.variance_components_, self.crossings_ = components, screened


def _crossing_name(crossing: Crossing, groups: Sequence[str], covariates: Sequence[str]) -> str:
    """The names of what is crossed, joined by a colon, as in formulas of lme4."""
    names = [covariates[position] for position in crossing.covariates]
    return ":".join([*(groups[position] for position in crossing.groups), *names])


def _append(table: dict[str, list[Any]], row: tuple[Any, ...]) -> None:
    for column, value in zip(table.values(), row, strict=True):
        column.append(value)


def _response(inputs: Inputs) -> Target:
    if inputs.target is None:
        raise TypeError("the encoder does not declare that it needs the target")
    return inputs.target


def _counted(inputs: Inputs) -> Codes:
    """Positions of the rows with a positive weight."""
    if inputs.weights is None:
        return np.arange(inputs.table.n_rows)
    return np.flatnonzero(inputs.weights > 0)


def _numbers(inputs: Inputs) -> list[Floats]:
    return [np.asarray(column, dtype=np.float64) for column in inputs.columns]


def _cell_numbers(vectors: Vectors, codes: Codes) -> Codes:
    """The number of each row's level in the keys of cells, −1 for levels that have none."""
    known = vectors.details["cell_numbers_"][:, 0]
    found = np.full(len(codes), -1)
    rows = np.flatnonzero((codes >= 0) & (codes < len(known)))
    found[rows] = np.nan_to_num(known[codes[rows]], nan=-1.0)
    return found


def _columns(effects: Sequence[Floats], cells: Sequence[Sequence[CellEffects]], rows: CrossedRows) -> Floats:
    """The effects of the groups, (n, n_outputs) each, and the totals next to each other."""
    total = np.sum(effects, axis=0)
    for output, own in enumerate(cells):
        for part in own:
            total[:, output] += part.lookup(rows.groups, rows.bins)
    return np.hstack([*effects, total])


def _group_vectors(number: int, rows: CrossedRows, found: Sequence[JointEffects], target: Target) -> Vectors:
    """The effects of one group, and what goes with them."""
    codes, n_levels = rows.groups[number], rows.n_levels[number]
    values = np.column_stack([effects.effects[number] for effects in found])
    prior = np.zeros(values.shape[1])
    # A new level starts from what is left of the target once all other effects are known.
    left = [
        effects.residuals + own[codes] if own.any() else np.zeros(len(codes))
        for effects, own in ((effects, np.append(effects.effects[number], 0.0)) for effects in found)
    ]
    known = np.flatnonzero(codes >= 0)
    weights = None if rows.weights is None else rows.weights[known]
    own_rows = Rows(codes[known], n_levels, [column[known] for column in rows.columns], weights)
    details = {
        "new_levels_": intercept_rule(own_rows, [part[known] for part in left], prior),
        "standard_errors_": np.column_stack([effects.errors[number] for effects in found]),
        "cell_numbers_": np.arange(n_levels, dtype=np.float64)[:, None],
    }
    suffixes = [Suffix(f"effect{label}") for label in target.suffixes]
    return Vectors(values, suffixes, details, prior=prior)
