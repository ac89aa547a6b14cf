"""Levels by what the covariates leave of their mean response."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sufrep.encoders._response_model import ResponseModelEncoder
from sufrep.encoders._vectors import Rows, Suffix, Vectors
from sufrep.moments import GroupMoments
from sufrep.solvers.regressions import fit_curve
from sufrep.solvers.regressions import fit_normal_scores as normal_scores
from sufrep.solvers.shrinkage import shrink_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Codes, Columns, Floats
    from sufrep._frames import Factorized
    from sufrep.encoders._target import Target


class RandomInterceptEncoder(ResponseModelEncoder):
    """Represent each level by its shrunken mean residual: what the covariates leave of its mean response.

    A regression predicts the target from the covariates, brought to normal scores, each with a slope that
    may bend in the middle; the residuals of a level's rows are averaged and drawn to 0 as far as their mean
    is noise. This is the random intercept of a mixed model. It assumes nothing about hidden states, so it
    serves where the covariates do not tell the levels apart. For classes, residuals are those of the class
    indicators (of two classes, the second).

    ``fit_transform`` cross-fits regression and means, so that nothing of a row's own response reaches it.

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
    target_type_ : str
        Kind of the target that was found.

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

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:
        assert rows is not None  # `_moments_suffice` is False
        values, center, classes = self._intercepts(moments.n_levels, rows)
        several = len(classes) > 1
        suffixes = [Suffix(f"intercept_{label}" if several else "intercept") for label in classes]
        return Vectors(values, suffixes, prior=center)

    def _intercepts(self, n_levels: int, rows: Rows) -> tuple[Floats, Floats, list[str | None]]:
        """Shrunken mean residuals of the levels and of none, (n_levels, n_given) and (n_given,); classes."""
        assert rows.target is not None
        first = -1 if self.target_type_ == "binary" else 0
        classes = [covariate.level for covariate in rows.target.covariates][first:]
        inside = rows.codes >= 0
        if rows.weights is not None:
            inside &= rows.weights > 0
        values, center = np.zeros((n_levels, len(classes))), np.zeros(len(classes))
        if not inside.any():
            return values, center, classes  # nobody is left to learn from
        weights = None if rows.weights is None else rows.weights[inside]
        columns = [np.asarray(column[inside], dtype=np.float64) for column in rows.columns]
        scores = normal_scores(columns, weights).apply(columns).reshape(int(inside.sum()), -1)
        residuals = [
            column - fit_curve(scores, column, weights).predict(scores)
            for column in self._given(rows.target)[:, inside]
        ]
        found = GroupMoments.from_columns(
            rows.codes[inside],
            residuals,
            np.arange(n_levels).astype(object),
            covariates=[str(label) for label in classes],
            weights=weights,
        )
        shrunken, center = shrink_each(found)
        values[:] = center
        values[found.levels.astype(np.intp)] = shrunken
        return values, center, classes

    def _cross_fitted(
        self,
        full: Floats,
        name: str,
        factor: Factorized,
        columns: Columns,
        target: Target,
        weights: Floats | None,
        folds: Sequence[tuple[Codes, Codes]],
    ) -> Floats:
        codes, n_levels = self._pooled_codes(name, factor)
        values = np.zeros_like(full)
        for train, test in folds:
            outside = np.full(len(codes), -1)
            outside[train] = codes[train]
            found, center, _ = self._intercepts(n_levels, Rows(outside, columns, weights, target))
            values[test] = np.vstack([found, center])[codes[test]]
        return values
