"""Levels by functions of their own."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sufrep._frames import Lookup
from sufrep.encoders._layout import known_columns
from sufrep.encoders._response_model import PredictingEncoder
from sufrep.encoders._vectors import Rows, Suffix, Vectors, name_columns
from sufrep.solvers.local_effects import LocalEffects, fit_local_effects
from sufrep.solvers.regressions import fit_normal_scores as normal_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sufrep._arrays import Codes, Columns, Floats
    from sufrep._frames import Factorized, Table
    from sufrep.encoders._layout import Column, Group
    from sufrep.moments import GroupMoments
    from sufrep.solvers.regressions import NormalScores

_EFFECT, _FIT = "local_effect", "local_fit"


class LocalEffectEncoder(PredictingEncoder):
    """Represent each level by a function of its own: what the rows of the level that are near tell.

    y = f(z) + e_g(z) + noise within level g, with z the covariates, brought to normal scores, f a curve that
    all levels share, and e_g a Gaussian process. Two rows of a level have effects with covariance

        k(z, z') = c₀ + Σ_m c_m exp(−½ Σ_j w_mj (z_j − z'_j)²),

    so that c₀ is the variance of a random intercept, and each further part is shared by rows only which are
    near each other in some of the covariates: flights of one aeroplane on one day, sales of one shop in
    one season. Which covariates these are is learnt from the products of the residuals of pairs of rows. A
    row gets the effect of its level at its own covariates. It assumes nothing about hidden states. For
    classes, their indicators are predicted (of two, the second).

    ``fit_transform`` cross-fits, so that nothing of a row's own response reaches it. The fitted encoder holds
    the rows that effects are made of; time grows with the cube of ``max_level_rows`` for larger levels.

    Parameters
    ----------
    {common parameters}
    output : {"effect", "fit", "both"}, default="effect"
        The effect, the expected target f(z) + e_g(z), or both.
    max_level_rows : int, default=1000
        Rows of a level that its effects are made of; of larger levels, so many are drawn at random.
    cv : int, splitter or iterable of (train, test), default=5
        Folds of ``fit_transform``; every row must be in one test fold. An integer makes shuffled folds.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes.
    random_state : int, default=0
        Seed of the shuffling of ``cv=int``, and of the draws of rows and pairs.

    Attributes
    ----------
    {common attributes}
    normal_scores_ : dict of str to NormalScores
        The maps of the covariates.
    effects_ : dict of str to list of LocalEffects
        Curve, kernels and rows, of each class that is predicted; ``effects_[group][0].likeness`` says which
        covariates make rows of a level alike.
    target_type_ : str
        Kind of the target that was found.

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
    >>> encoder.effects_["x0"][0].likeness.weights
    array([[3.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PredictingEncoder._parameter_constraints,
        "output": [StrOptions({"effect", "fit", "both"})],
        "max_level_rows": [Interval(Integral, 1, None, closed="left")],
    }

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
        output: Literal["effect", "fit", "both"] = "effect",
        max_level_rows: int = 1000,
        cv: Any = 5,
        target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto",
        random_state: int = 0,
    ) -> None:
        super().__init__(
            group,
            covariates=covariates,
            categorical_covariates=categorical_covariates,
            remainder=remainder,
            unseen=unseen,
            missing=missing,
            min_frequency=min_frequency,
            cv=cv,
            target_type=target_type,
            random_state=random_state,
        )
        self.output = output
        self.max_level_rows = max_level_rows

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:
        assert rows is not None  # `_moments_suffice` is False
        assert rows.target is not None
        counts = rows.codes >= 0
        if rows.weights is not None:
            counts &= rows.weights > 0
        columns = [np.asarray(column[counts], dtype=np.float64) for column in rows.columns]
        weights = None if rows.weights is None else rows.weights[counts]
        maps = normal_scores(columns, weights)
        codes = rows.codes[counts]
        scores = maps.apply(columns).reshape(len(codes), len(columns))
        found = [
            self._fitted(scores, codes, y[counts], moments.n_levels, weights)
            for y in self._given(rows.target)
        ]
        return Vectors(
            np.column_stack([means for _, means in found]),
            [Suffix(_EFFECT + label) for label in self._labels(rows.target)],
            {"normal_scores_": maps, "effects_": [effects for effects, _ in found]},
            prior=np.zeros(len(found)),
        )

    def _fitted(
        self, scores: Floats, codes: Codes, y: Floats, n_levels: int, weights: Floats | None
    ) -> tuple[LocalEffects, Floats]:
        return fit_local_effects(
            scores,
            codes,
            y,
            n_levels,
            weights,
            max_level_rows=self.max_level_rows,
            seed=self.random_state,
        )

    def _given_out(self, suffixes: list[Suffix]) -> list[Suffix]:
        return [
            Suffix(suffix.text.replace(_EFFECT, kind, 1))
            for suffix in suffixes
            for kind in {"effect": [_EFFECT], "fit": [_FIT], "both": [_EFFECT, _FIT]}[self.output]
        ]

    def _predicted(self, found: Sequence[LocalEffects], scores: Floats, codes: Codes) -> Floats:
        """What rows get, for each target in turn; (n, n_columns)."""
        columns = []
        for effects in found:
            effect = effects.effects(scores, codes)
            if self.output != "fit":
                columns.append(effect)
            if self.output != "effect":
                columns.append(effects.curve.predict(scores) + effect)
        return np.column_stack(columns)

    def _look_up(self, table: Table, factors: Sequence[Factorized]) -> list[Lookup]:
        """The effects of each row's level at the row's covariates."""
        super()._look_up(table, factors)  # it refuses levels never seen, if it shall
        columns = known_columns(table, self.layout_, self.covariates_)
        names = name_columns(self.layout_, self.layout_.names, self.suffixes_, self.covariates_)
        found = []
        for name, factor in zip(self.representations_, factors, strict=True):
            codes, _ = self._pooled_codes(name, factor)
            scores = self._scores(name, columns, table.n_rows)
            found.append(Lookup(tuple(names[name]), self._predicted(self.effects_[name], scores, codes)))
        return found

    def _scores(self, name: str, columns: Columns, n_rows: int) -> Floats:
        maps: NormalScores = self.normal_scores_[name]
        return maps.apply(list(columns)).reshape(n_rows, -1)

    def _outside(
        self, scores: Floats, codes: Codes, wanted: Floats, n_levels: int, weights: Floats | None
    ) -> Callable[[Floats, Codes], Floats]:
        found = [self._fitted(scores, codes, y, n_levels, weights)[0] for y in wanted]
        return lambda new, levels: self._predicted(found, new, levels)
