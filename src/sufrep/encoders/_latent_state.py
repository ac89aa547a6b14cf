"""Levels by the probabilities of their hidden states."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sufrep._frames import Lookup
from sufrep._splits import level_folds
from sufrep.encoders._cross_fitting import CrossFittingEncoder
from sufrep.encoders._layout import known_columns
from sufrep.encoders._target import Target, read_target
from sufrep.encoders._vectors import Rows, Suffix, Vectors, name_columns
from sufrep.errors import warn
from sufrep.solvers.experts import first_class_experts, first_linear_experts
from sufrep.solvers.mixture import fit_with_target, posteriors
from sufrep.solvers.regressions import fit_normal_scores as normal_scores
from sufrep.solvers.states import MixtureRows as Sample
from sufrep.solvers.states import best_of_starts, choose_n_states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Columns, Floats
    from sufrep._frames import Factorized, Table
    from sufrep.encoders._layout import Column, Group
    from sufrep.moments import GroupMoments
    from sufrep.solvers.mixture import Mixture

# The number of states is chosen on levels with about so many rows, with so many folds unless `cv` says.
_MOST_CHOICE_ROWS = 50_000
_DEFAULT_FOLDS = 3


class LatentStateEncoder(CrossFittingEncoder):
    """Represent each level by the probabilities ψ(g) = P(L | G = g) of its hidden states.

    Assumption (figure 1 of the paper): the level acts on target and covariates only through a hidden state
    L. By lemma 1, ψ(g) is then all that the level says about the target. The paper calls its direct
    estimate impossible without further assumptions; here they are: within a state the covariates, brought
    to normal scores one by one, are normal with the state's mean and one covariance for all states, and
    ψ(g) is drawn to the average level as by ``concentration`` made-up rows. The mixture is fitted by EM; it
    needs no target, so it cannot leak one.

    A row tells more about its state than its level does: P(L | X = x, G = g), the posterior, is the other
    output. Nulls in the covariates count as the median.

    With ``use_target`` the target joins the mixture: each state has an expert that predicts it (a regression
    whose slopes may bend in the middle of each covariate; class probabilities for classes), and states that
    tell targets apart are told apart better. The posterior that is given out still leaves the row's target
    out, and ``fit_transform`` cross-fits: what a row gets is learnt without its fold. The number of states is
    chosen without the target, and every fold starts from the mixture without it, so that states keep their
    meaning.

    Parameters
    ----------
    {common parameters}
    n_states : int or "auto", default="auto"
        Number of hidden states. "auto" takes the number that predicts the covariates of held-out rows
        best, given their levels; ties go to the larger one, because too few states lose much and too many
        little. (BIC does not work here: with the parameters of ψ counted it chooses 1.)
    max_states : int, default=30
        The largest number that "auto" tries.
    output : {"states", "posterior", "both"}, default="states"
        The columns: ψ of the row's level, the posterior of the row, or first the one and then the other.
        Learners that cannot work the posterior out for themselves, such as trees, do best with "both".
    transform_covariates : {"normal_scores", "standardize"}, default="normal_scores"
        Bring each covariate to normal scores by its ranks, or only to mean 0 and standard deviation 1.
    concentration : float, default=1.0
        Made-up rows of each level that are spread over the states like those of an average level.
    use_target : bool, default=False
        Let the target join the mixture.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes.
    cv : int, splitter or iterable of (train, test), default=3
        An integer is the number of folds, for ``n_states="auto"`` (where each level's rows are dealt over all
        of them) and for the cross-fitting of ``fit_transform``. Else it is about the latter only.
    n_starts : int, default=3
        Starts of EM; the one that is best after a few rounds is run to the end.
    max_iter : int, default=500
        Most rounds of EM.
    tol : float, default=1e-6
        EM ends when a round raises the criterion by less than this for each row.
    random_state : int, default=0
        Seed of the starts and folds.

    Attributes
    ----------
    {common attributes}
    mixtures_ : dict of str to Mixture
        The fitted mixture of each group: means and covariance of the states, shares of the levels.
    normal_scores_ : dict of str to NormalScores
        The maps of the covariates.
    references_ : dict of str to Mixture
        With ``use_target``: the mixtures without the target, to which folds are aligned.
    target_type_ : str
        With ``use_target``: the kind of the target that was found.
    n_states_ : dict of str to int
        Number of states of each group.
    held_out_ : dict of str to dict
        Mean log-density of held-out rows by the number of states, for those tried; empty if it was given.
    iterations_ : dict of str to int
        Rounds of EM; ``n_iter_`` is the largest.

    Examples
    --------
    >>> from sufrep import LatentStateEncoder, simulate
    >>> import pandas as pd
    >>> sample = simulate("latent_linear", n=2000, n_latent=3, levels_per_latent=10)
    >>> X = pd.DataFrame(sample.columns())
    >>> encoder = LatentStateEncoder("group").fit(X)
    >>> encoder.n_states_
    {'group': 3}

    The three columns are the true probabilities up to the order of the states:

    >>> import numpy as np
    >>> found = encoder.representations_["group"].values
    >>> bool(np.corrcoef(found.T, sample.state_probabilities.T)[:3, 3:].max(axis=1).min() > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CrossFittingEncoder._parameter_constraints,
        "n_states": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_states": [Interval(Integral, 1, None, closed="left")],
        "output": [StrOptions({"states", "posterior", "both"})],
        "transform_covariates": [StrOptions({"normal_scores", "standardize"})],
        "concentration": [Interval(Real, 0, None, closed="neither")],
        "use_target": ["boolean"],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    _target_is_covariate: ClassVar[bool] = False

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
        n_states: int | Literal["auto"] = "auto",
        max_states: int = 30,
        output: Literal["states", "posterior", "both"] = "states",
        transform_covariates: Literal["normal_scores", "standardize"] = "normal_scores",
        concentration: float = 1.0,
        use_target: bool = False,
        target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto",
        cv: Any = 3,
        n_starts: int = 3,
        max_iter: int = 500,
        tol: float = 1e-6,
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
        self.n_states = n_states
        self.max_states = max_states
        self.output = output
        self.transform_covariates = transform_covariates
        self.concentration = concentration
        self.use_target = use_target
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol

    @property
    def _moments_suffice(self) -> bool:
        return False

    @property
    def n_iter_(self) -> int:
        """Most iterations that any group took."""
        check_is_fitted(self)
        iterations: dict[str, int] = getattr(self, "iterations_", {})
        return max([1, *iterations.values()])

    def _cross_fitted(
        self,
        full: Floats,  # noqa: ARG002
        name: str,
        factor: Factorized,
        columns: Columns,
        target: Target,
        weights: Floats | None,
        folds: Sequence[tuple[Codes, Codes]],
    ) -> Floats:
        reference = self.references_[name]
        codes, _ = self._pooled_codes(name, factor)
        rows = self.normal_scores_[name].apply(columns)
        counts = (codes >= 0) if weights is None else (codes >= 0) & (weights > 0)
        # One row cannot be in a fold; without its target, there is the reference.
        shares = np.vstack([reference.shares, reference.prior])[codes]
        values = self._columns_of(reference, rows, shares)
        for train, test in folds:
            inside = np.asarray(train)[counts[train]]
            part = Sample(rows, codes, len(reference.shares), weights).take(inside)
            fitted = reference
            if len(inside):
                fitted = self._join(reference, part, _values(target)[inside]).aligned(reference)
            shares = np.vstack([fitted.shares, fitted.prior])[codes[test]]
            values[test] = self._columns_of(fitted, rows[test], shares)
        return values

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:
        assert rows is not None  # `_moments_suffice` is False
        counts = rows.codes >= 0
        if rows.weights is not None:
            counts &= rows.weights > 0
        columns = [np.asarray(column[counts], dtype=np.float64) for column in rows.columns]
        weights = None if rows.weights is None else rows.weights[counts]
        maps = normal_scores(columns, weights, ranks=self.transform_covariates == "normal_scores")
        sample = Sample(maps.apply(columns), rows.codes[counts], moments.n_levels, weights)
        n_states, held_out = self._choose(sample)
        mixture = best_of_starts(
            sample,
            n_states,
            n_starts=self.n_starts,
            seed=self.random_state,
            concentration=self.concentration,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        details: dict[str, Any] = {"normal_scores_": maps, "n_states_": n_states}
        if rows.target is not None:
            details["references_"] = mixture
            mixture = self._join(mixture, sample, _values(rows.target)[counts]).aligned(mixture)
        if not mixture.converged:
            warn(
                f"The mixture of hidden states did not converge in max_iter={self.max_iter} rounds.\n"
                "Hint: raise max_iter or tol.",
                ConvergenceWarning,
            )
        details |= {
            "mixtures_": mixture,
            "held_out_": {str(number): score for number, score in held_out.items()},
            "iterations_": len(mixture.objective),
        }
        suffixes = [Suffix(f"state{state + 1}") for state in range(n_states)]
        return Vectors(mixture.shares, suffixes, details, prior=mixture.prior)

    def _join(self, reference: Mixture, sample: Sample, y: Array) -> Mixture:
        """Fit the mixture with the target, from the one without."""
        if self.target_type_ == "continuous":
            experts: Any = first_linear_experts(
                sample.rows - reference.center, y, reference.n_states, sample.weights
            )
        else:
            # Only classes of these rows count: that there is another one may be known from a row left out.
            classes, y = np.unique(y, return_inverse=True)
            experts = first_class_experts(y, len(classes), reference.n_states, sample.weights)
        return fit_with_target(
            sample.rows,
            sample.codes,
            replace(reference, experts=experts),
            y,
            weights=sample.weights,
            concentration=self.concentration,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _target_of(self, y: Any) -> Target | None:
        if not self.use_target:
            return None
        target = read_target(y, self.target_type)
        self.target_type_: str = target.kind
        return target

    def _choose(self, sample: Sample) -> tuple[int, dict[int, float]]:
        """The number of states, and the scores of those tried."""
        if not isinstance(self.n_states, str):
            return self.n_states, {}
        sample = sample.take(_some_levels(sample, self.random_state)).canonical()
        n_folds = int(self.cv) if isinstance(self.cv, Integral) else _DEFAULT_FOLDS
        folds = level_folds(sample.codes, n_folds, self.random_state)
        splits = [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in range(n_folds)]
        if not all(len(test) for _, test in splits):
            return 1, {}  # no level has enough rows to be in every fold
        return choose_n_states(
            sample,
            splits,
            max_states=self.max_states,
            seed=self.random_state,
            concentration=self.concentration,
        )

    def _given_out(self, suffixes: list[Suffix]) -> list[Suffix]:
        posterior = [Suffix(suffix.text.replace("state", "posterior")) for suffix in suffixes]
        return {"states": suffixes, "posterior": posterior, "both": suffixes + posterior}[self.output]

    def _look_up(self, table: Table, factors: Sequence[Factorized]) -> list[Lookup]:
        """The shares of each row's level, its own posterior, or both."""
        shares = super()._look_up(table, factors)
        if self.output == "states" or not shares:
            return shares
        columns = known_columns(table, self.layout_, self.covariates_)
        names = name_columns(self.layout_, self.layout_.names, self.suffixes_, self.covariates_)
        found = []
        for lookup, (name, mixture) in zip(shares, self.mixtures_.items(), strict=True):
            rows = self.normal_scores_[name].apply(columns)
            found.append(Lookup(tuple(names[name]), self._columns_of(mixture, rows, lookup.taken())))
        return found

    def _columns_of(self, mixture: Mixture, rows: Floats, shares: Floats) -> Floats:
        """What is given out of rows whose levels have the given shares."""
        if self.output == "states":
            return shares
        posterior = posteriors(mixture, rows, shares)
        return posterior if self.output == "posterior" else np.hstack([shares, posterior])


def _values(target: Target) -> Array:
    """The target as numbers, or as codes of its classes; (n,)."""
    if target.kind == "continuous":
        return np.asarray(target.columns[0], dtype=np.float64)
    codes: Codes = np.argmax(np.column_stack(target.columns), axis=1)
    return codes


def _some_levels(sample: Sample, seed: int) -> Codes:
    """Rows of as many whole levels as make about `_MOST_CHOICE_ROWS` rows; parts of levels say less."""
    if len(sample.codes) <= _MOST_CHOICE_ROWS:
        return np.arange(len(sample.codes))
    counts = np.bincount(sample.codes, minlength=sample.n_levels)
    order = np.random.default_rng(seed).permutation(sample.n_levels)
    chosen = order[: max(1, np.searchsorted(np.cumsum(counts[order]), _MOST_CHOICE_ROWS))]
    keep = np.zeros(sample.n_levels, dtype=bool)
    keep[chosen] = True
    return np.flatnonzero(keep[sample.codes])
