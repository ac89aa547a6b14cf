"""A learner that predicts for levels without any target as well as for levels that it was trained on."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d

from sufrep._frames import Factor
from sufrep._names import MAX_SEED
from sufrep._sklearn import HasMethods, Interval, fit_context, take_rows
from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._inputs import all_or_nothing, copy_input_names, read_table_and_target
from sufrep.errors import InvalidParameterError, TargetError
from sufrep.representation import as_levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats, Mask
    from sufrep.encoders._inputs import Inputs

# Rows of the largest part of a level that stands in for a new level; one with more is encoded almost as well
# as a known one.
_MOST_ROWS = 64


def _predicts_probabilities(self: ColdStartEstimator) -> bool:
    return hasattr(getattr(self, "estimator_", self.estimator), "predict_proba")


@dataclass(eq=False, repr=False)
class ColdStartEstimator(MetaEstimatorMixin, BaseEstimator):
    """Join an encoder and a learner, and train the learner also for levels without a target.

    Use it if new levels will appear after training, such as zip codes without a sale. Known levels are
    predicted as by a pipeline of the two.

    A learner that is trained on encoded rows trusts the vectors of the levels, which it has seen together
    with their targets. For a level that training did not see (a *cold start*), the vector comes from a few
    rows, and a learner that trusts it as much may do worse than one without the column. Here, rows of such
    levels get predictions of their own:

    1. Every level is split at random into parts of 1 to 64 rows. Each part is encoded as if it were a new
       level, and a second copy of the learner is trained on that.
    2. A third copy is trained without the group columns.
    3. The prediction for a level with n rows is a mixture of both. The weight of the second copy, between 0
       and 1, is a + b/n, with a and b chosen by least squares on levels that were held out whole.

    Rows of known levels are predicted by the first copy alone, exactly as by a pipeline of encoder and
    learner. The cost is that of about 1 + 2 ``n_folds`` fits of the learner.

    Parameters
    ----------
    encoder : GroupEncoder
        With ``remainder="passthrough"`` and an ``unseen`` other than "error".
    estimator : estimator
        A regressor, or a classifier with ``predict_proba``.
    n_folds : int, default=3
        Number of folds that the levels are split into.
    random_state : int, default=0
        Seed of the parts and of the folds.

    Attributes
    ----------
    encoder_ : GroupEncoder
    estimator_ : estimator
        For rows of known levels.
    new_level_estimator_ : estimator
        For rows of new levels, with the encoding.
    plain_estimator_ : estimator
        Trained without the group columns.
    blend_ : ndarray, shape (2,)
        The weight of ``new_level_estimator_`` in a level with n rows is ``blend_[0] + blend_[1] / n``, at
        least 0 and at most 1.
    without_level_ : list of bool
        Whether training had rows without a level, for each group; if not, such rows are new.
    classes_ : ndarray, shape (n_classes,)
        Of a classifier.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import Ridge
    >>> from sufrep import ColdStartEstimator, MeansEncoder, simulate
    >>> sample = simulate("global_linear", n=4000, n_latent=4, levels_per_latent=20, seed=0)
    >>> X = pd.DataFrame(sample.columns())
    >>> new = X["group"].isin(X["group"].unique()[::5])  # a fifth of the levels
    >>> model = ColdStartEstimator(MeansEncoder("group", shrinkage="auto"), Ridge())
    >>> model = model.fit(X[~new], sample.y[~new])
    >>> error = ((model.predict(X[new]) - sample.y[new]) ** 2).mean()
    >>> dropped = Ridge().fit(X[~new].drop(columns="group"), sample.y[~new])
    >>> bool(error < ((dropped.predict(X[new].drop(columns="group")) - sample.y[new]) ** 2).mean())
    True
    """

    encoder: Any
    estimator: Any
    _: KW_ONLY
    n_folds: int = 3
    random_state: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "encoder": [GroupEncoder],
        "estimator": [HasMethods(["fit", "predict"])],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": [Interval(Integral, 0, MAX_SEED, closed="both")],
    }

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the encoder, the three copies of the learner, and the weight of the mixture.

        Parameters
        ----------
        X : frame (pandas, polars, pyarrow) or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,), or str
            The target, or the name of its column in the frame X, which is then no covariate.
        sample_weight : array-like, shape (n_samples,), optional
            Frequencies, also given to the learner.

        Returns
        -------
        self
        """
        self._check_parameters()
        with all_or_nothing(self):
            self._learn(X, y, sample_weight)
        return self

    def _check_parameters(self) -> None:
        for name, refused, expected in (
            ("remainder", "drop", "'passthrough'"),
            ("unseen", "error", "'estimate'"),
        ):
            if getattr(self.encoder, name) == refused:
                raise InvalidParameterError(f"{name} of the encoder", refused, expected)
        if is_classifier(self.estimator) and not hasattr(self.estimator, "predict_proba"):
            raise InvalidParameterError("estimator", self.estimator, "a classifier with predict_proba")

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        if y is None:
            raise TargetError(
                "This estimator requires y to be passed, but the target y is None.",
                "call fit(X, y) with a target.",
            )
        self.encoder_ = clone(self.encoder)
        table, y = read_table_and_target(self.encoder_, X, y)
        inputs = self.encoder_._read_training(table, y, sample_weight)
        copy_input_names(self.encoder_, self)
        self.encoder_._learn(inputs)
        self.encoder_._warn_of_columns(inputs.table, inputs.layout)
        encoded = self.encoder_._encode(inputs, self.encoder_._lookups(inputs, training=True))
        y, weights = column_or_1d(y, warn=True), inputs.weights
        self.estimator_ = self._fitted(encoded, y, weights)
        if is_classifier(self.estimator_):
            self.classes_ = self.estimator_.classes_
        self.without_level_ = [bool((factor.codes < 0).any()) for factor in inputs.factors]
        rng = np.random.default_rng(self.random_state)
        parts, sizes = _split_levels(inputs, rng)
        examples = self.encoder_._encode(parts, self.encoder_._lookups(parts, training=False))
        plain = self._without_groups(inputs)
        self.new_level_estimator_ = self._fitted(examples, y, weights)
        self.plain_estimator_ = self._fitted(plain, y, weights)
        self.blend_ = self._choose_blend(inputs, examples, plain, y, sizes, rng)

    def _fitted(self, X: Any, y: Array, weights: Floats | None) -> Any:
        options = {} if weights is None else {"sample_weight": weights}
        return clone(self.estimator).fit(X, y, **options)

    def _without_groups(self, inputs: Inputs) -> Any:
        """The columns that pass through the encoder, or a constant if there are none."""
        if not self.encoder_.layout_.kept:
            return np.zeros((inputs.table.n_rows, 1))
        return self.encoder_._encode(inputs, [])

    def _choose_blend(
        self, inputs: Inputs, examples: Any, plain: Any, y: Array, sizes: Floats, rng: np.random.Generator
    ) -> Floats:
        """The weights a and b that predict levels best that were held out whole; (2,)."""
        folds = _level_folds(inputs, self.n_folds, rng)
        if folds.max(initial=0) < 1:
            return np.zeros(2)  # there is one level, or none: nothing tells how others differ
        weights = np.ones(len(y)) if inputs.weights is None else inputs.weights
        square, cross, size = np.zeros((2, 2)), np.zeros(2), 0.0
        for fold in range(folds.max() + 1):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            if is_classifier(self.estimator_) and len(np.unique(y[train][weights[train] > 0])) < 2:
                continue  # all other levels have the same class
            own = None if inputs.weights is None else weights[train]
            with_vector, without = (
                self._outputs(
                    self._fitted(take_rows(columns, train), y[train], own), take_rows(columns, test)
                )
                for columns in (examples, plain)
            )
            residual = self._as_columns(y[test]) - without
            by_size = np.column_stack([np.ones(len(test)), 1 / sizes[test]])
            regressors = np.einsum("nc,nk->nck", with_vector - without, by_size)
            square += np.einsum("n,nck,ncl->kl", weights[test], regressors, regressors)
            cross += np.einsum("n,nck,nc->k", weights[test], regressors, residual)
            size += float(np.einsum("n,nc->", weights[test], without**2))
        if np.trace(square) <= 1e-20 * size:
            return np.zeros(2)  # with and without the column, predictions differ by rounding errors
        return np.asarray(np.linalg.lstsq(square, cross, rcond=1e-9)[0])

    def _as_columns(self, y: Array) -> Floats:
        """The target as numbers: one column, or an indicator of each class."""
        if is_classifier(self.estimator_):
            return np.asarray(y[:, None] == self.classes_, dtype=np.float64)
        return np.asarray(y, dtype=np.float64)[:, None]

    def _outputs(self, estimator: Any, X: Any) -> Floats:
        """Predictions as numbers: of the target, or of the probability of each class; (n, n_outputs)."""
        if not is_classifier(estimator):
            return np.asarray(estimator.predict(X), dtype=np.float64).reshape(X.shape[0], -1)
        found = np.zeros((X.shape[0], len(self.classes_)))
        # A fold may lack a class.
        found[:, np.searchsorted(self.classes_, estimator.classes_)] = estimator.predict_proba(X)
        return found

    def predict(self, X: Any) -> Array:
        """Predict the target of each row; (n_samples,).

        The prediction for rows of a new level depends on all its rows in X, and on no other row.
        """
        inputs, encoded, new, sizes = self._encode_new(X)
        found = np.asarray(self.estimator_.predict(encoded))
        if new.any():
            mixed = self._mixture(inputs, encoded, new, sizes)
            values = self.classes_[mixed.argmax(axis=1)] if is_classifier(self.estimator_) else mixed
            found = found.copy()
            found[new] = values.reshape(-1)
        return found

    @available_if(_predicts_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class; (n_samples, n_classes)."""
        inputs, encoded, new, sizes = self._encode_new(X)
        found = np.array(self.estimator_.predict_proba(encoded), dtype=np.float64)
        if new.any():
            found[new] = self._mixture(inputs, encoded, new, sizes)
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of a regressor, or the accuracy of a classifier; ``y`` as in ``fit``."""
        from sklearn.metrics import accuracy_score, r2_score

        check_is_fitted(self)
        _, y = read_table_and_target(self.encoder_, X, y, reset=False)
        metric = accuracy_score if is_classifier(self.estimator) else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def _encode_new(self, X: Any) -> tuple[Inputs, Any, Mask, Floats]:
        """Rows as they were read and encoded, which of them have a new level, and the rows of that level."""
        check_is_fitted(self)
        inputs = self.encoder_._read_new(X)
        encoded = self.encoder_._encode(inputs, self.encoder_._lookups(inputs, training=False))
        return inputs, encoded, *_new_rows(self.encoder_, inputs, self.without_level_)

    def _mixture(self, inputs: Inputs, encoded: Any, new: Mask, sizes: Floats) -> Floats:
        """Predictions for the rows of new levels; (n_new, n_outputs)."""
        rows = np.flatnonzero(new)
        plain = self._outputs(self.plain_estimator_, take_rows(self._without_groups(inputs), rows))
        with_vector = self._outputs(self.new_level_estimator_, take_rows(encoded, rows))
        weight = np.clip(self.blend_[0] + self.blend_[1] / sizes[rows], 0.0, 1.0)
        return np.asarray(plain + weight[:, None] * (with_vector - plain))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "blend_")

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        tags.target_tags.required = True
        tags.input_tags = get_tags(self.encoder).input_tags
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


class _Part:
    """The level of rows that are encoded as if their level were new; no other level is equal to it."""


def _split_levels(inputs: Inputs, rng: np.random.Generator) -> tuple[Inputs, Floats]:
    """The rows with new levels made of parts of the known ones, and how many rows each row's part has.

    With several groups, the level of each row is new in one of them, chosen at random. Rows without a level,
    null or not, stay as they are, because they have nothing in common.
    """
    n_rows, sizes = inputs.table.n_rows, np.ones(inputs.table.n_rows)
    chosen = rng.integers(0, max(len(inputs.factors), 1), n_rows)
    if inputs.weights is not None:
        chosen[inputs.weights <= 0] = -1
    factors = []
    for number, factor in enumerate(inputs.factors):
        named = np.append([level is not None for level in factor.levels], False)[factor.codes]
        rows = np.flatnonzero((chosen == number) & named)
        parts = _random_parts(factor.codes[rows], rng)
        count = np.bincount(parts)
        sizes[rows] = count[parts]
        codes = factor.codes.copy()
        codes[rows] = len(factor.levels) + parts
        levels = as_levels([*factor.levels, *(_Part() for _ in count)])
        factors.append(Factor(codes, levels))
    return replace(inputs, factors=tuple(factors), weights=None, target=None), sizes


def _random_parts(codes: Codes, rng: np.random.Generator) -> Codes:
    """Number of the part of each row: levels are split at random into parts of 1 to 64 rows; (n,).

    The logarithm of the number of rows is uniform, so that parts of 1, 2, 4, … rows are equally frequent.
    """
    n = len(codes)
    order = rng.permutation(n)
    order = order[np.argsort(codes[order], kind="stable")]
    starts = np.diff(codes[order], prepend=-1) != 0
    ends = np.cumsum(np.rint(_MOST_ROWS ** rng.random(n)).astype(np.intp))
    starts[ends[ends < n]] = True
    parts = np.empty(n, dtype=np.intp)
    parts[order] = np.cumsum(starts) - 1
    return parts


def _level_folds(inputs: Inputs, n_folds: int, rng: np.random.Generator) -> Codes:
    """The fold of each row: levels of the group that has most of them stay together; (n,)."""
    if not inputs.factors:
        return np.zeros(inputs.table.n_rows, dtype=np.intp)
    factor = max(inputs.factors, key=lambda one: len(one.levels))
    # Rows without a level count as one more.
    present = np.unique(factor.codes)
    fold = np.zeros(len(factor.levels) + 1, dtype=np.intp)
    fold[present] = rng.permutation(len(present)) % n_folds
    return fold[factor.codes]


def _new_rows(encoder: GroupEncoder, inputs: Inputs, without_level: Sequence[bool]) -> tuple[Mask, Floats]:
    """Which rows have a level that the encoder does not know, and how many rows that level has.

    Of several new levels of a row, the one with the fewest rows counts. A null that is new is alone, because
    rows without a level have nothing in common. ``without_level`` says for each group whether training had
    rows without a level, which are known then.
    """
    new, sizes = np.zeros(inputs.table.n_rows, dtype=bool), np.full(inputs.table.n_rows, np.inf)
    for group, factor, null_known in zip(
        encoder.representations_, inputs.factors, without_level, strict=True
    ):
        known = np.append(encoder.representations_[group].positions(factor.levels.tolist()) >= 0, null_known)
        count = np.append(np.bincount(factor.codes[factor.codes >= 0], minlength=len(factor.levels)), 1)
        count[[code for code, level in enumerate(factor.levels) if level is None]] = 1
        own = ~known[factor.codes]
        sizes[own] = np.minimum(sizes[own], count[factor.codes[own]])
        new |= own
    return new, sizes
