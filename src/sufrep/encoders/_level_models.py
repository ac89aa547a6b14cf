"""Levels by models of the target: a random intercept, a regression, or a function of each level's own.

None of these assumes hidden states. They serve where the covariates do not distinguish the levels, or where
levels differ in how the target depends on the covariates. All cross-fit, so that a row's columns do not
depend on its own target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from sufrep._frames import Lookup
from sufrep._sklearn import Interval, StrOptions
from sufrep.encoders._base import (
    PARENT_CONSTRAINTS,
    SAMPLE_CONSTRAINTS,
    TARGET_CONSTRAINTS,
    GroupEncoder,
    Needs,
    Suffix,
    Vectors,
)
from sufrep.errors import MagnitudeError
from sufrep.moments import GroupMoments
from sufrep.solvers.local_effects import LocalEffects, fit_several_local_effects
from sufrep.solvers.mixed_model import (
    ArrangedLevels,
    MixedModel,
    Variances,
    arrange_levels,
    coefficient_errors,
    fit_arranged,
)
from sufrep.solvers.nesting import Nesting, shrink_nested, shrink_towards_parents
from sufrep.solvers.new_levels import LinearRule
from sufrep.solvers.regressions import fit_curve
from sufrep.solvers.shrinkage import shrink_each
from sufrep.solvers.standard_errors import separate_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats
    from sufrep.encoders._inputs import Column, GroupSample, Parents, Rows
    from sufrep.encoders._target import Target
    from sufrep.solvers.level_kernels import LevelKernel

_EFFECT, _FIT = "local_effect", "local_fit"


@dataclass(eq=False, repr=False, kw_only=True)
class RandomInterceptEncoder(GroupEncoder):
    """Replace each level by its own effect on the target: what the covariates leave of its mean.

    Use it where levels matter for reasons that no column shows, as the manager of a shop. Effects are
    shrunk towards zero, more so for levels of few rows.

    A regression predicts the target from the covariates, transformed to normal scores, each with a slope that
    may change at the median; the residuals of a level's rows are averaged and shrunk towards 0 by empirical
    Bayes. This is the random intercept of a mixed model. It assumes nothing about hidden states, so it serves
    where the covariates do not distinguish the levels. For classes, residuals are those of the class
    indicators (of two classes, the second).

    ``fit_transform`` cross-fits regression and means, so that a row's column does not depend on its own
    response.

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
    random_state : int, default=0
        Seed of the shuffling of ``cv=int``.

    Attributes
    ----------
    representations_ : dict of str to Representation
        The table of each group.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.
    standard_errors_ : dict of str to ndarray, shape (n_levels, n_columns)
        Standard errors of the vectors; rare levels that were pooled have one row, the last.
    target_type_ : str
        The kind of target that was found.
    parents_ : dict of str to tuple of Links
        With ``parent``: the parents of the levels of a group, the parents of these, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from sufrep import RandomInterceptEncoder
    >>> rng = np.random.default_rng(0)
    >>> shop, size = rng.integers(0, 3, 600), rng.normal(size=600)
    >>> y = np.array([-2.0, 0.0, 2.0])[shop] + size**2 + rng.normal(size=600)
    >>> encoder = RandomInterceptEncoder(group=0).fit(np.column_stack([shop, size]), y)
    >>> encoder.representations_["x0"].values.round(1).ravel()
    array([-2.1, -0.1,  1.9])
    """

    parent: Parents | None = None
    on_conflict: Literal["error", "majority"] = "error"
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
        **PARENT_CONSTRAINTS,
    }

    @property
    def _needs(self) -> Needs:
        return Needs(
            rows=True,
            covariates="optional",
            target="response",
            target_type=self.target_type,
            shrinks=True,
        )

    def _represent(self, sample: GroupSample) -> Vectors:
        rows, target = sample.rows, sample.rows.response()
        suffixes = [Suffix(f"intercept{label}") for label in target.suffixes]
        residuals = self._residuals(rows, target)
        found, nesting = _level_moments(rows, residuals), sample.nesting
        own = found.levels.astype(np.intp)
        inside = None if nesting is None else nesting.take(own)
        shrunken, center = shrink_each(found, partial(shrink_towards_parents, nesting=inside))
        values = np.tile(center, (rows.n_levels, 1))
        rule = intercept_rule(rows, residuals, center, inside)
        absent = np.setdiff1d(np.arange(rows.n_levels), own)
        if nesting is not None and rule is not None and len(absent):
            starts, known = rule.starts(nesting.paths(absent))
            values[absent[known]] = starts[known]
        values[own] = shrunken
        details = {
            "new_levels_": rule,
            "standard_errors_": separate_errors(found, own, rows.n_levels, inside),
        }
        return Vectors(values, suffixes, details, prior=center)

    def _residuals(self, rows: Rows, target: Target) -> list[Floats]:
        """What the covariates leave of each column of the target."""
        rows = replace(rows, shared=None)  # no other fold has the scores of this one
        scores = rows.scores(rows.normal_scores())
        return [
            np.asarray(column - fit_curve(scores, column, rows.weights).predict(scores))
            for column in target.output_columns()
        ]


@dataclass(eq=False, repr=False, kw_only=True)
class MixedModelEncoder(GroupEncoder):
    """Give each level a regression of its own, shrunk towards a common one: a linear mixed model.

    Use it where levels differ in how the target depends on the covariates, as shops in how sales depend
    on the price. A row gets one column, the prediction of its level's regression.

    y = b₀ + Σ_j b_j z_j + noise within level g, with coefficients b ~ N(m, diag τ) over the levels and z the
    covariates, transformed to normal scores. m, τ and the noise are estimated (empirical Bayes), so that
    coefficients in which levels do not differ are shared, and small levels borrow strength from all others.
    A row gets one column: the prediction of its level's regression at its own covariates. It assumes nothing
    about hidden states, and helps where levels differ in how the target depends on the covariates (prices and
    shops), which no mean by level can express. For classes, their indicators are predicted (of two, the
    second).

    τ and the noise are estimated by at most five rounds of Fisher scoring, with a weak prior that levels
    differ little. If there are more than 1,000 levels, all rounds but the last use a sample of so many. m and
    b then follow from the rows of all levels.
    ``fit_transform`` cross-fits, so that a row's column does not depend on its own response. Memory grows
    with the number of rows times the number of covariates.

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
        Seed of the shuffling of ``cv=int``, and of the sampling of levels.

    Attributes
    ----------
    representations_ : dict of str to Representation
        The table of each group.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.
    normal_scores_ : dict of str to NormalScores
        The transformations of the covariates.
    variances_ : dict of str to list of Variances
        The variances of the coefficients over the levels (``spread``) and of the noise (``noise``), for each
        class that is predicted.
    standard_errors_ : dict of str to ndarray, shape (n_levels, n_columns)
        Standard errors of the vectors; rare levels that were pooled have one row, the last.
    target_type_ : str
        The kind of target that was found.

    Examples
    --------
    >>> import numpy as np
    >>> from sufrep import MixedModelEncoder
    >>> rng = np.random.default_rng(0)
    >>> shop, price = rng.integers(0, 3, 600), rng.normal(size=600)
    >>> sold = np.array([-2.0, 0.0, 2.0])[shop] * price + rng.normal(size=600)
    >>> encoder = MixedModelEncoder(group=0).fit(np.column_stack([shop, price]), sold)
    >>> encoder.representations_["x0"].values.round(1)  # intercepts and slopes
    array([[ 0. , -1.9],
           [ 0. , -0. ],
           [ 0. ,  1.9]])
    >>> encoder.get_feature_names_out().tolist()
    ['x1', 'x0_fit']
    """

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
    }

    @property
    def _needs(self) -> Needs:
        return Needs(
            rows=True,
            covariates="optional",
            target="response",
            target_type=self.target_type,
            own_covariates=True,
        )

    def _represent(self, sample: GroupSample) -> Vectors:
        rows = sample.rows
        maps = rows.normal_scores()
        suffixes = [
            suffix
            for label in rows.response().suffixes
            for suffix in (
                Suffix(f"intercept{label}"),
                *(Suffix(f"slope{label}_", j) for j in range(len(rows.columns))),
            )
        ]
        outputs = [Suffix(f"fit{label}") for label in rows.response().suffixes]
        scores, targets = rows.scores(maps), rows.response().output_columns()
        arranged, models = self._fit_models(scores, rows)
        center = np.concatenate([model.center for model in models])
        residuals = [
            y - model.center[0] - scores @ model.center[1:] for y, model in zip(targets, models, strict=True)
        ]
        details = {
            "normal_scores_": maps,
            "variances_": [model.variances for model in models],
            "new_levels_": intercept_rule(rows, residuals, center),
            "standard_errors_": np.hstack(
                [coefficient_errors(arranged, model.variances) for model in models]
            ),
        }
        values = np.hstack([model.coefficients for model in models])
        return Vectors(values, suffixes, details, prior=center, outputs=outputs)

    def _represent_fold(self, sample: GroupSample, whole: Vectors) -> Vectors:
        """Fit the regressions of a fold on the normal scores of the whole."""
        if sample.is_empty:
            return super()._represent_fold(sample, whole)
        rows = sample.rows
        known = whole.details["variances_"] if sample.quick else None
        _, models = self._fit_models(rows.scores(whole.details["normal_scores_"]), rows, known)
        values = np.hstack([model.coefficients for model in models])
        center = np.concatenate([model.center for model in models])
        return Vectors(values, details=whole.details, prior=center)

    def _fit_models(
        self, scores: Floats, rows: Rows, variances: Sequence[Variances] | None = None
    ) -> tuple[ArrangedLevels, list[MixedModel]]:
        """The rows by level, and a model of each class that is predicted, with given variances if any."""
        arranged = arrange_levels(scores, rows.codes, rows.n_levels, rows.weights)
        return arranged, [
            fit_arranged(
                arranged,
                y,
                variances=None if variances is None else variances[number],
                seed=self.random_state,
            )
            for number, y in enumerate(rows.response().output_columns())
        ]

    def _encode_rows(self, vectors: Vectors, rows: Rows) -> Lookup:
        """Predict with the regression of each row's level."""
        scores = rows.scores(vectors.details["normal_scores_"])
        coefficients = vectors.at(rows.codes)
        by_target = coefficients.reshape(len(scores), -1, scores.shape[1] + 1)
        fit = by_target[:, :, 0] + np.einsum("nj,ntj->nt", scores, by_target[:, :, 1:])
        return Lookup(np.asarray(fit))


@dataclass(eq=False, repr=False, kw_only=True)
class LocalEffectEncoder(GroupEncoder):
    """Give each level a function of its own, learnt from nearby rows of the level.

    Use it where levels change along a covariate, as shops by season or aeroplanes from day to day: a row
    gets what those rows of its level say that are like it.

    y = f(z) + e_g(z) + noise within level g, with z the covariates, transformed to normal scores, f a curve
    that all levels share, and e_g a Gaussian process. Two rows of a level have effects with covariance

        k(z, z') = c₀ + Σ_m c_m exp(−½ Σ_j w_mj (z_j − z'_j)²),

    so that c₀ is the variance of a random intercept, and each further term is shared only by rows that are
    near each other in some of the covariates: flights of one aeroplane on one day, sales of one shop in
    one season. A row gets the effect of its level at its own covariates. It assumes nothing about hidden
    states. For classes, their indicators are predicted (of two, the second).

    The curve is fitted by a ridge regression, and its residuals are winsorized. The kernel is found from the
    products of the residuals of at most about 250,000 pairs of rows, from all levels if they are not too
    many: at most three components, each by a stepwise search over covariates and length scales. The effects
    then solve one system of equations for each level.

    ``fit_transform`` cross-fits, so that a row's columns do not depend on its own response; only the normal
    scores are those of all rows. The fitted encoder stores the rows that effects are computed from; time
    grows with the cube of ``max_level_rows`` for larger levels.

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
    output : {"effect", "fit", "both"}, default="effect"
        The effect, the expected target f(z) + e_g(z), or both.
    max_level_rows : int, default=300
        Maximum number of rows of a level that its effects are computed from, sampled at random.
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
        Seed of the shuffling of ``cv=int``, and of the sampling of rows and pairs.

    Attributes
    ----------
    representations_ : dict of str to Representation
        The table of each group.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.
    normal_scores_ : dict of str to NormalScores
        The transformations of the covariates.
    effects_ : dict of str to list of LocalEffects
        Curve, kernel and rows for each class that is predicted; ``effects_[group][0].kernel`` shows which
        covariates matter.
    target_type_ : str
        The kind of target that was found.

    Examples
    --------
    The shops have seasons of their own:

    >>> import numpy as np
    >>> from sufrep import LocalEffectEncoder
    >>> rng = np.random.default_rng(0)
    >>> shop, day = rng.integers(0, 30, 3000), rng.uniform(0, 365, 3000)
    >>> season = np.sin(2 * np.pi * (day / 365 + rng.uniform(size=30)[shop]))
    >>> X, sold = np.column_stack([shop, day]), season + rng.normal(size=3000)
    >>> encoder = LocalEffectEncoder(group=0)
    >>> effect = encoder.fit_transform(X, sold)[:, 1]
    >>> round(float(np.corrcoef(effect, season)[0, 1]), 1)
    0.9
    >>> encoder.effects_["x0"][0].kernel.weights
    array([[3.]])
    """

    output: Literal["effect", "fit", "both"] = "effect"
    max_level_rows: int = 300
    cv: Any = 5
    time: Column | None = None
    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto"
    random_state: int = 0
    sample_rows: int | None = None
    sample_by: Column | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **SAMPLE_CONSTRAINTS,
        **TARGET_CONSTRAINTS,
        "output": [StrOptions({"effect", "fit", "both"})],
        "max_level_rows": [Interval(Integral, 1, None, closed="left")],
    }

    @property
    def _needs(self) -> Needs:
        return Needs(
            rows=True,
            covariates="optional",
            target="response",
            target_type=self.target_type,
            own_covariates=True,
        )

    def _represent(self, sample: GroupSample) -> Vectors:
        rows = sample.rows
        maps = rows.normal_scores()
        found, means = self._fit_effects(rows.scores(maps), rows)
        labels = rows.response().suffixes
        kinds = {"effect": [_EFFECT], "fit": [_FIT], "both": [_EFFECT, _FIT]}[self.output]
        return Vectors(
            means,
            [Suffix(_EFFECT + label) for label in labels],
            {"normal_scores_": maps, "effects_": found},
            prior=np.zeros(len(found)),
            outputs=[Suffix(kind + label) for label in labels for kind in kinds],
        )

    def _represent_fold(self, sample: GroupSample, whole: Vectors) -> Vectors:
        """Fit the effects of a fold on the normal scores of the whole."""
        if sample.is_empty:
            nothing = [found.nothing() for found in whole.details["effects_"]]
            return replace(
                super()._represent_fold(sample, whole), details={**whole.details, "effects_": nothing}
            )
        rows = sample.rows
        kernels = [found.kernel for found in whole.details["effects_"]] if sample.quick else None
        effects, means = self._fit_effects(rows.scores(whole.details["normal_scores_"]), rows, kernels)
        return replace(whole, values=means, details={**whole.details, "effects_": effects})

    def _fit_effects(
        self, scores: Floats, rows: Rows, kernels: Sequence[LevelKernel] | None = None
    ) -> tuple[list[LocalEffects], Floats]:
        """The effects of each class that is predicted, and the mean effect of each level in columns."""
        found = fit_several_local_effects(
            scores,
            rows.codes,
            list(rows.response().output_columns()),
            rows.n_levels,
            rows.weights,
            max_level_rows=self.max_level_rows,
            seed=self.random_state,
            kernels=kernels,
        )
        return [effects for effects, _ in found], np.column_stack([means for _, means in found])

    def _encode_rows(self, vectors: Vectors, rows: Rows) -> Lookup:
        """The effects of each row's level at the row's covariates."""
        found: Sequence[LocalEffects] = vectors.details["effects_"]
        scores, columns = rows.scores(vectors.details["normal_scores_"]), []
        for effects in found:
            effect = effects.effects(scores, rows.codes)
            if self.output != "fit":
                columns.append(effect)
            if self.output != "effect":
                columns.append(effects.curve.predict(scores) + effect)
        return Lookup(np.column_stack(columns))


def _level_moments(rows: Rows, columns: Sequence[Floats]) -> GroupMoments:
    """Moments of some columns by level."""
    return GroupMoments.from_columns(
        rows.codes,
        columns,
        np.arange(rows.n_levels).astype(object),
        covariates=[str(number) for number in range(len(columns))],
        weights=rows.weights,
    )


def intercept_rule(
    rows: Rows, residuals: Sequence[Floats], center: Floats, nesting: Nesting | None = None
) -> LinearRule | None:
    """The coefficients of a new level: the common ones, but for the intercept.

    Its expectation given the level's means of the covariates comes from their joint prior with the mean
    residual, as for a mean of the target. Covariates whose squares are out of range say nothing.
    """
    p, step = len(rows.columns), len(center) // len(residuals)
    try:
        found = shrink_nested(_level_moments(rows, [*rows.columns, *residuals]), nesting)
    except MagnitudeError:
        return None
    outputs = np.arange(p, p + len(residuals))
    place = np.zeros((len(residuals), len(center)))
    place[np.arange(len(residuals)), np.arange(len(residuals)) * step] = 1.0
    offset = center - found.prior.center[outputs] @ place
    return LinearRule(found.prior.center, outputs, place, offset, prior=found.prior, tiers=found.tiers)
