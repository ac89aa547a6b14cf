"""Whether the level still adds information about the target to its representation."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import stats
from sklearn.base import clone, is_regressor

from sufrep._frames import with_missing_level
from sufrep._sklearn import take_rows
from sufrep._statistics import p_value_statement
from sufrep._threads import one_thread
from sufrep.encoders._classical import ContrastEncoder
from sufrep.encoders._inputs import read_factor, read_table_and_target
from sufrep.encoders._target import read_target, split_rows
from sufrep.errors import InvalidParameterError, NoCovariateWarning, UnknownGroupError
from sufrep.moments import GroupMoments
from sufrep.representation import dense_values
from sufrep.solvers.shrinkage import estimate_means_prior, shrink_means

if TYPE_CHECKING:
    from sufrep._arrays import Array, Codes, Floats
    from sufrep._frames import Factor
    from sufrep.encoders._base import GroupEncoder

_INNER_FOLDS = 3
_FEW_ROWS = 20_000
# One-sided: chance alone exceeds it in fewer than one of forty samples.
_DOUBT = 0.025


@dataclass(frozen=True, slots=True)
class SufficiencyCheck:
    """How much the level adds to its representation, on held-out rows.

    Attributes
    ----------
    level_as : {"intercept", "one_hot"}
        How the level was added.
    loss : float
        Mean squared error with the representation alone (of class probabilities: the Brier score).
    loss_with_level : float
        The same with the level added.
    gain, standard_error : float
        Their difference, positive where the level still helps, and its standard error over the rows.
    p_value : float
        One-sided p-value of the hypothesis of no gain.
    share : float
        The gain as a share of ``loss``.
    sufficient : bool
        Whether no gain was found: ``p_value`` is at least 0.025. This is not a proof of sufficiency.
    """

    level_as: str
    loss: float
    loss_with_level: float
    gain: float
    standard_error: float
    p_value: float
    share: float
    sufficient: bool

    def __str__(self) -> str:
        verdict = (
            "no evidence that the level adds anything"
            if self.sufficient
            else "the level still adds something: the representation is not sufficient"
        )
        return (
            f"{verdict} (error {self.loss:.4g} → {self.loss_with_level:.4g} with the level, "
            f"{100 * self.share:.1f} % ± {100 * self.standard_error / max(self.loss, 1e-300):.1f}, "
            f"{p_value_statement(self.p_value)})"
        )


def sufficiency_check(
    encoder: GroupEncoder,
    X: Any,
    y: Any,
    *,
    estimator: Any = None,
    level_as: Literal["intercept", "one_hot"] = "intercept",
    cv: Any = 5,
    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto",
    random_state: int = 0,
) -> SufficiencyCheck:
    """Check on held-out rows whether the level adds anything to its representation.

    If the level acts on the target only through a hidden state, and the representation has kept all of it,
    then nothing else about the level can help to predict. So a learner gets the covariates and the encoding,
    and then the level itself as well; a gain on held-out rows shows that something is missing: the assumption
    fails, or the encoder lost part of the information.

    Parameters
    ----------
    encoder : encoder with one group
        Not fitted, or fitted: it is cloned and fitted in every fold.
    X : frame or array-like, shape (n_samples, n_features)
        The learner sees the numeric columns other than the group.
    y : array-like, shape (n_samples,), or str
        The target, or the name of its column in the frame X.
    estimator : regressor, classifier with ``predict_proba``, or None
        The learner; None is scikit-learn's histogram gradient boosting.
    level_as : {"intercept", "one_hot"}, default="intercept"
        How the level is added. "intercept" adds the level's mean residual, shrunk by empirical Bayes; it
        suits any number of levels. "one_hot" gives the learner an indicator of every level.
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
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from sufrep import MeansEncoder, simulate, sufficiency_check
    >>> sample = simulate("global_linear", n=3000, n_latent=3, levels_per_latent=10)
    >>> X = pd.DataFrame(sample.columns())
    >>> tree = DecisionTreeRegressor(max_depth=6, random_state=0)
    >>> sufficiency_check(MeansEncoder("group"), X, sample.y, estimator=tree).sufficient
    True

    A level that acts in another way as well:

    >>> own = pd.Series(range(30)).sample(frac=1, random_state=0).to_numpy()[sample.codes] / 10
    >>> sufficiency_check(MeansEncoder("group"), X, sample.y + own, estimator=tree).sufficient
    False
    """
    if level_as not in ("intercept", "one_hot"):
        raise InvalidParameterError("level_as", level_as, "'intercept' or 'one_hot'")
    encoder = clone(encoder).set_params(remainder="drop").set_output(transform="default")
    table, values = read_table_and_target(encoder, X, y)
    layout = encoder._layout_of(table)
    if len(layout.groups) != 1:
        raise UnknownGroupError(None, layout.group_names(table.names))
    if target_type == "auto" and estimator is not None and is_regressor(estimator):
        target_type = "continuous"
    target = read_target(values, target_type)
    wanted = np.column_stack(target.columns).astype(np.float64)
    features = [
        np.asarray(table.numbers(position), dtype=np.float64)
        for position in range(len(table.names))
        if position not in layout.groups[0] and table.kind(position) == "numeric"
    ]
    factor = with_missing_level(read_factor(table, layout.groups[0], encoder.missing))
    visible = np.column_stack([np.empty((table.n_rows, 0)), *features])
    task = _Task(visible, wanted, target.kind != "continuous", factor, estimator, random_state)
    alone, added = np.zeros(table.n_rows), np.zeros(table.n_rows)
    encoder._warn_of_columns(table, layout)
    # With few rows, threads of a learner cost more than they save.
    with one_thread() if table.n_rows < _FEW_ROWS else nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NoCovariateWarning)  # once is enough
        for train, test in split_rows(cv, table.n_rows, values, random_state):
            fresh = clone(encoder)
            own = y if isinstance(y, str) else take_rows(np.asarray(y), train)
            inside = fresh.fit_transform(take_rows(X, train), own)
            outside = fresh.transform(take_rows(X, test))
            alone[test], added[test] = task.errors(train, test, inside, outside, level_as)
    return _summary(level_as, alone, added)


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """The learner and what it sees in every fold."""

    features: Floats
    wanted: Floats
    classes: bool
    factor: Factor
    estimator: Any
    random_state: int

    def errors(
        self, train: Codes, test: Codes, inside: Any, outside: Any, level_as: str
    ) -> tuple[Floats, Floats]:
        """Squared errors of the test rows, without the level and with it."""
        known = np.column_stack([self.features[train], dense_values(inside)])
        new = np.column_stack([self.features[test], dense_values(outside)])
        predicted = self._predict(known, train, new)
        if level_as == "one_hot":
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
        # Shuffled: rows are often sorted by level, and a fold without a level has no residuals of it.
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
        from sufrep._models import make_learner

        # scikit-learn's boosting cannot bin a column of nulls.
        usable = ~np.isnan(known).all(axis=0)
        wanted = self.wanted[rows]
        labels: Array = np.argmax(wanted, axis=1) if self.classes else wanted[:, 0]
        learner = make_learner(
            self.estimator,
            classes=self.classes,
            n_columns=int(usable.sum()),
            y=labels,
            random_state=self.random_state,
        )
        fitted = learner.fit(known[:, usable], labels)
        if not self.classes:
            return np.asarray(fitted.predict(new[:, usable]), dtype=np.float64).reshape(-1, 1)
        wide = np.zeros((len(new), self.wanted.shape[1]))
        wide[:, fitted.classes_.astype(np.intp)] = fitted.predict_proba(new[:, usable])
        return wide


def _summary(level_as: str, alone: Floats, added: Floats) -> SufficiencyCheck:
    gains = alone - added
    loss, gain = float(alone.mean()), float(gains.mean())
    error = float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else float("nan")
    p_value = float(stats.norm.sf(gain / error)) if error > 0 else 1.0
    share = gain / loss if loss > 0 else 0.0
    return SufficiencyCheck(
        level_as, loss, float(added.mean()), gain, error, p_value, share, sufficient=p_value >= _DOUBT
    )
