"""Levels by regressions of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sufrep._frames import Lookup
from sufrep.encoders._layout import known_columns
from sufrep.encoders._response_model import PredictingEncoder
from sufrep.encoders._vectors import Rows, Suffix, Vectors, name_columns
from sufrep.solvers.regressions import fit_normal_scores as normal_scores
from sufrep.solvers.regressions import group_grams, shrink_coefficients

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sufrep._arrays import Codes, Columns, Floats
    from sufrep._frames import Factorized, Table
    from sufrep.moments import GroupMoments

_ROUNDS = 20
# A spread that is this small beside the size of the values is rounding, not spread.
_ROUNDING = 1e-12


class MixedModelEncoder(PredictingEncoder):
    """Represent each level by a regression of its own, drawn to that of all: a linear mixed model.

    y = b₀ + Σ_j b_j z_j + noise within level g, with coefficients b ~ N(m, diag τ) over the levels and z the
    covariates, brought to normal scores. m, τ and the noise are estimated (empirical Bayes), so that
    coefficients in which levels do not differ are shared, and small levels borrow from all. What a row gets
    is one column: the prediction of its level's regression at its own covariates. It assumes nothing about
    hidden states, and helps where levels differ in how the target depends on the covariates (prices and
    shops), which no mean by level can tell. For classes, their indicators are predicted (of two, the second).

    ``fit_transform`` cross-fits, so that nothing of a row's own response reaches it. Memory grows with the
    number of levels times the square of the number of covariates.

    Parameters
    ----------
    {common parameters}
    cv : int, splitter or iterable of (train, test), default=5
        Folds of ``fit_transform``; every row must be in one test fold. An integer makes shuffled folds.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes.
    random_state : int, default=0
        Seed of the shuffling of ``cv=int``.

    Attributes
    ----------
    {common attributes}
    normal_scores_ : dict of str to NormalScores
        The maps of the covariates.
    target_type_ : str
        Kind of the target that was found.

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

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:
        assert rows is not None  # `_moments_suffice` is False
        assert rows.target is not None
        counts = rows.codes >= 0
        if rows.weights is not None:
            counts &= rows.weights > 0
        columns = [np.asarray(column[counts], dtype=np.float64) for column in rows.columns]
        weights = None if rows.weights is None else rows.weights[counts]
        maps = normal_scores(columns, weights, ranks=True)
        codes, target = rows.codes[counts], self._given(rows.target)[:, counts]
        scores = _with_one(maps.apply(columns), len(codes))
        values, center = _regressions(scores, codes, target, moments.n_levels, weights)
        suffixes = [
            suffix
            for label in self._labels(rows.target)
            for suffix in (
                Suffix(f"intercept{label}"),
                *(Suffix(f"slope{label}_", j) for j in range(len(columns))),
            )
        ]
        return Vectors(values, suffixes, {"normal_scores_": maps, "n_slopes_": len(columns)}, prior=center)

    def _given_out(self, suffixes: list[Suffix]) -> list[Suffix]:
        return [
            Suffix(suffix.text.replace("intercept", "fit", 1))
            for suffix in suffixes
            if suffix.covariate is None
        ]

    def _look_up(self, table: Table, factors: Sequence[Factorized]) -> list[Lookup]:
        """The prediction of the regression of each row's level."""
        found = super()._look_up(table, factors)
        columns = known_columns(table, self.layout_, self.covariates_)
        names = name_columns(self.layout_, self.layout_.names, self.suffixes_, self.covariates_)
        return [
            Lookup(tuple(names[name]), _fitted(self._scores(name, columns, table.n_rows), lookup.taken()))
            for lookup, name in zip(found, self.representations_, strict=True)
        ]

    def _scores(self, name: str, columns: Columns, n_rows: int) -> Floats:
        return _with_one(self.normal_scores_[name].apply(columns), n_rows)

    def _outside(
        self, scores: Floats, codes: Codes, wanted: Floats, n_levels: int, weights: Floats | None
    ) -> Callable[[Floats, Codes], Floats]:
        found, center = _regressions(scores, codes, wanted, n_levels, weights)
        known = np.vstack([found, center])
        return lambda new, levels: _fitted(new, known[levels])


def _with_one(scores: Floats, n_rows: int) -> Floats:
    """Scores behind a column of ones; (n, p + 1)."""
    return np.column_stack([np.ones(n_rows), scores.reshape(n_rows, -1)])


def _regressions(
    scores: Floats, codes: Codes, target: Floats, n_levels: int, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Coefficients of the levels, those of one target after those of the other, and their centres."""
    values, centers = [], []
    for y in target:
        mean = float(np.average(y, weights=weights))
        # From the mean: sums of squares far from zero lose every digit
        # (test_a_target_far_from_zero_keeps_its_digits).
        apart = y - mean
        # A target without spread still needs a variance, one that sums of rows may be divided by
        # (test_a_class_that_no_other_fold_has_is_predicted_nowhere).
        variance = max(float(np.average(apart**2, weights=weights)), (_ROUNDING * mean) ** 2, 1e-200)
        found = shrink_coefficients(
            group_grams(np.column_stack([scores, apart]), codes, n_levels, weights),
            center=np.zeros(scores.shape[1]),
            noise=np.full(n_levels, variance),
            variance=variance,
            noise_weight=1.0,
            common_noise=True,
            n_rounds=_ROUNDS,
        )
        origin = np.append(mean, np.zeros(scores.shape[1] - 1))
        values.append(found.means + origin)
        centers.append(found.center + origin)
    return np.hstack(values), np.concatenate(centers)


def _fitted(scores: Floats, coefficients: Floats) -> Floats:
    """Predictions of rows with the coefficients of their levels; (n, n_given)."""
    by_target = coefficients.reshape(len(scores), -1, scores.shape[1])
    return np.asarray(np.einsum("nj,ntj->nt", scores, by_target))
