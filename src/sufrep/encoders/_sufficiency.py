"""Whether the level still says something about the target, beside its representation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import stats
from sklearn.base import clone, is_regressor
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from sufrep._models import make_learner
from sufrep.encoders._contrasts import ContrastEncoder
from sufrep.encoders._reading import check_length, read_group, read_table
from sufrep.encoders._target import read_target, split_rows
from sufrep.errors import InvalidParameterError, UnknownGroupError
from sufrep.moments import GroupMoments
from sufrep.solvers.shrinkage import estimate_means_prior, shrink_means

if TYPE_CHECKING:
    from sufrep._arrays import Array, Codes, Floats
    from sufrep._frames import Factorized
    from sufrep.encoders._base import GroupEncoder

_INNER_FOLDS = 3
_FEW_ROWS = 20_000
# One-sided: a level that still helps in fewer than one of forty samples by chance alone.
_DOUBT = 0.025


@dataclass(frozen=True, slots=True)
class SufficiencyCheck:
    """What the level adds to its representation, out of fold.

    Attributes
    ----------
    beside : {"intercept", "one_hot"}
        In which way the level was added.
    loss : float
        Mean squared error with the representation alone (of class probabilities: the Brier score).
    loss_with_level : float
        The same with the level added.
    gain, standard_error : float
        Their difference, positive where the level still helps, and its standard error over the rows.
    p_value : float
        Of no gain, one-sided.
    share : float
        The gain as a share of ``loss``.
    sufficient : bool
        Whether no gain was found: ``p_value`` is at least 0.025. That is no proof, only no sign of a lack.
    """

    beside: str
    loss: float
    loss_with_level: float
    gain: float
    standard_error: float
    p_value: float
    share: float
    sufficient: bool

    def __str__(self) -> str:
        verdict = (
            "no sign that the level adds anything"
            if self.sufficient
            else "the level still adds something: the representation is not sufficient"
        )
        return (
            f"{verdict} (error {self.loss:.4g} → {self.loss_with_level:.4g} with the level, "
            f"{100 * self.share:.1f} % ± {100 * self.standard_error / max(self.loss, 1e-300):.1f}, "
            f"p = {self.p_value:.2g})"
        )


def sufficiency_check(
    encoder: GroupEncoder,
    X: Any,
    y: Any,
    *,
    estimator: Any = None,
    beside: Literal["intercept", "one_hot"] = "intercept",
    cv: Any = 5,
    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto",
    random_state: int = 0,
) -> SufficiencyCheck:
    """Ask, out of fold, whether the level adds anything to its representation.

    If the level acts on the target only through a hidden state, and the representation has kept all of it,
    then nothing that is known of the level beside it can help to predict. So a learner gets the covariates
    and the encoding, and then, in addition, the level itself; a gain on rows held out says that something
    is missing: the assumption fails, or the encoder lost part of it.

    Parameters
    ----------
    encoder : encoder with one group
        Not fitted, or fitted: it is cloned and fitted in every fold.
    X : frame or array-like, shape (n_samples, n_features)
        Numeric columns beside the group are what the learner sees.
    y : array-like, shape (n_samples,)
    estimator : regressor, classifier with ``predict_proba``, or None
        The learner; None is scikit-learn's histogram gradient boosting.
    beside : {"intercept", "one_hot"}, default="intercept"
        "intercept" adds the level's mean residual of the learner, shrunk as far as it is noise; it suits any
        number of levels. "one_hot" gives the learner an indicator of every level.
    cv : int, splitter or iterable of (train, test), default=5
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes, unless a regressor is
        given as ``estimator``.
    random_state : int, default=0
        Seed of folds and learner.

    Returns
    -------
    SufficiencyCheck

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import MeansEncoder, simulate, sufficiency_check
    >>> sample = simulate("global_linear", n=3000, n_latent=3, levels_per_latent=10)
    >>> X = pd.DataFrame(sample.columns())
    >>> sufficiency_check(MeansEncoder("group"), X, sample.y).sufficient
    True

    A level that acts in another way as well:

    >>> own = pd.Series(range(30)).sample(frac=1, random_state=0).to_numpy()[sample.codes] / 10
    >>> sufficiency_check(MeansEncoder("group"), X, sample.y + own).sufficient
    False
    """
    if beside not in ("intercept", "one_hot"):
        raise InvalidParameterError("beside", beside, "'intercept' or 'one_hot'")
    encoder = clone(encoder).set_params(remainder="drop").set_output(transform="default")
    table = read_table(encoder, X, reset=True)
    check_length(y, table.n_rows)
    layout = encoder._layout_of(table)
    if len(layout.groups) != 1:
        raise UnknownGroupError(None, layout.group_names(table.names))
    if target_type == "auto" and estimator is not None and is_regressor(estimator):
        target_type = "continuous"
    target = read_target(y, target_type)
    wanted = np.column_stack(target.columns).astype(np.float64)
    features = [
        np.asarray(table.numbers(position), dtype=np.float64)
        for position in range(len(table.names))
        if position not in layout.groups[0] and table.kind(position) == "numeric"
    ]
    factor = read_group(table, layout.groups[0], encoder.missing).with_missing_level()
    visible = np.column_stack([np.empty((table.n_rows, 0)), *features])
    task = _Task(visible, wanted, target.kind != "continuous", factor, estimator, random_state)
    alone, added = np.zeros(table.n_rows), np.zeros(table.n_rows)
    # With few rows, threads of a learner wait for each other longer than they work.
    with threadpool_limits(1 if table.n_rows < _FEW_ROWS else None):
        for train, test in split_rows(cv, table.n_rows, y, random_state):
            fresh = clone(encoder)
            inside = fresh.fit_transform(_safe_indexing(X, train), _safe_indexing(np.asarray(y), train))
            outside = fresh.transform(_safe_indexing(X, test))
            alone[test], added[test] = task.errors(train, test, inside, outside, beside)
    return _summary(beside, alone, added)


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """The learner and what it sees in every fold."""

    features: Floats
    wanted: Floats
    classes: bool
    factor: Factorized
    estimator: Any
    random_state: int

    def errors(
        self, train: Codes, test: Codes, inside: Any, outside: Any, beside: str
    ) -> tuple[Floats, Floats]:
        """Squared errors of the test rows, without the level and with it."""
        known = np.column_stack([self.features[train], _dense(inside)])
        new = np.column_stack([self.features[test], _dense(outside)])
        predicted = self._predict(known, train, new)
        if beside == "one_hot":
            codes = self.factor.codes[:, None].astype(np.float64)
            indicators = (
                ContrastEncoder(0, remainder="drop").set_output(transform="default").fit(codes[train])
            )
            known = np.column_stack([known, indicators.transform(codes[train])])
            new = np.column_stack([new, indicators.transform(codes[test])])
            with_level = self._predict(known, train, new)
        else:
            with_level = predicted + self._level_residuals(known, train)[self.factor.codes[test]]
        truth = self.wanted[test]
        return ((truth - predicted) ** 2).sum(axis=1), ((truth - with_level) ** 2).sum(axis=1)

    def _level_residuals(self, known: Floats, train: Codes) -> Floats:
        """Shrunken mean residuals of the levels, from predictions out of inner folds; (n_levels, q)."""
        residuals = np.zeros((len(self.factor.levels), self.wanted.shape[1]))
        if len(train) < 2:
            return residuals  # no other row to predict it from
        predicted = np.empty((len(train), self.wanted.shape[1]))
        # Shuffled: rows often come level by level, and a fold without a level cannot tell what is left of it.
        for inside, outside in split_rows(_INNER_FOLDS, len(train), train, self.random_state):
            predicted[outside] = self._predict(known[inside], np.asarray(train)[inside], known[outside])
        moments = GroupMoments.from_columns(
            self.factor.codes[train],
            list((self.wanted[train] - predicted).T),
            np.arange(len(self.factor.levels)).astype(object),
            covariates=[str(j) for j in range(self.wanted.shape[1])],
        )
        residuals[moments.levels.astype(np.intp)] = shrink_means(moments, estimate_means_prior(moments))
        return residuals

    def _predict(self, known: Floats, rows: Codes, new: Floats) -> Floats:
        """Predictions for new rows, or probabilities of the classes, by a learner of the given rows."""
        # scikit-learn's boosting cannot bin a column of nulls.
        told = ~np.isnan(known).all(axis=0)
        wanted = self.wanted[rows]
        labels: Array = np.argmax(wanted, axis=1) if self.classes else wanted[:, 0]
        learner = make_learner(
            self.estimator,
            classes=self.classes,
            n_columns=int(told.sum()),
            y=labels,
            random_state=self.random_state,
        )
        fitted = learner.fit(known[:, told], labels)
        if not self.classes:
            return np.asarray(fitted.predict(new[:, told]), dtype=np.float64).reshape(-1, 1)
        wide = np.zeros((len(new), self.wanted.shape[1]))
        wide[:, fitted.classes_.astype(np.intp)] = fitted.predict_proba(new[:, told])
        return wide


def _summary(beside: str, alone: Floats, added: Floats) -> SufficiencyCheck:
    gains = alone - added
    loss, gain = float(alone.mean()), float(gains.mean())
    error = float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else float("nan")
    p_value = float(stats.norm.sf(gain / error)) if error > 0 else 1.0
    share = gain / loss if loss > 0 else 0.0
    return SufficiencyCheck(
        beside, loss, float(added.mean()), gain, error, p_value, share, sufficient=p_value >= _DOUBT
    )


def _dense(values: Any) -> Floats:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)
