"""Levels by the probabilities of their hidden states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sufrep._frames import Lookup, taken
from sufrep._sklearn import Interval, StrOptions
from sufrep._splits import level_folds
from sufrep._threads import one_thread
from sufrep.encoders._base import (
    PARENT_CONSTRAINTS,
    SAMPLE_CONSTRAINTS,
    TARGET_CONSTRAINTS,
    GroupEncoder,
    Needs,
    Suffix,
    Vectors,
    most_iterations,
)
from sufrep.encoders._times import follows_time
from sufrep.errors import warn
from sufrep.solvers.mixture import posteriors
from sufrep.solvers.new_levels import StatesRule
from sufrep.solvers.states import MixtureRows, choose_n_states, count_states, fit_states, nest_states

if TYPE_CHECKING:
    from sufrep._arrays import Codes
    from sufrep.encoders._inputs import Column, GroupSample, Parents, Rows
    from sufrep.solvers.mixture import Mixture
    from sufrep.solvers.regressions import NormalScores

# With the target, the number of states is chosen on levels with about this many rows in all, and with this
# many folds unless `cv` is an integer.
_MOST_CHOICE_ROWS = 50_000
_DEFAULT_FOLDS = 3


@dataclass(eq=False, repr=False, kw_only=True)
class LatentStateEncoder(GroupEncoder):
    """Replace each level by the probabilities of its hidden states, which it finds in the covariates.

    Use it if levels are mixtures of a few kinds that no column names, such as types of neighbourhoods.
    The probabilities are ψ(g) = P(L | G = g), and need no target.

    Assumption (figure 1 of the paper): the level acts on target and covariates only through a hidden state
    L. By lemma 1, ψ(g) is then all that the level says about the target. The paper calls its direct
    estimation impossible without further assumptions. These are: within a state the covariates, each
    transformed to normal scores, are normal with the state's mean and one covariance for all states, and
    ψ(g) has a Dirichlet prior at the average level that weighs as much as ``concentration`` rows. The mixture
    is fitted by EM; it needs no target, so it cannot leak one.

    A row says more about its state than its level does: P(L | X = x, G = g), the posterior, is the other
    output. Nulls in the covariates are replaced by the median.

    With ``use_target`` the target joins the mixture: each state has an expert that predicts it (a regression
    whose slopes may change at the median of each covariate; class probabilities for classes), which helps to
    separate states with different targets. The posterior in the output still leaves out the row's target,
    and ``fit_transform`` cross-fits: what a row gets is learnt without its fold. The number of states is
    chosen once, with the target in the likelihood, and the states of each fold are put in the order in which
    their shares agree best, over all levels, with those of the mixture of all rows. That number and that
    order are all that a row's own target can change. With ``cv="ordered"`` or a `TimeSeriesSplit`, number and
    order are those of a mixture of the covariates alone, and no later target changes anything.

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
    n_states : int or "auto", default="auto"
        Number of hidden states. "auto" counts the dimensions of the level means that are above their noise,
        as `LowRankEncoder` does, and adds 1: the means of levels that mix k states span k − 1 dimensions, and
        none where levels do not differ. With ``use_target``, where states may differ in the target only, it
        chooses (unless ``cv`` follows time) the number that predicts covariates and target of held-out rows
        best, given their levels; ties go to the larger one, because too few states lose much and too many
        little. (BIC does not work here: it chooses 1 if the parameters of ψ are counted.)
    max_states : int, default=30
        The largest number that "auto" chooses.
    output : {"states", "posterior", "both"}, default="states"
        The columns: ψ of the row's level, the posterior of the row, or both in this order. Learners that
        cannot compute the posterior for themselves, such as trees, do best with "both".
    transform_covariates : {"normal_scores", "standardize"}, default="normal_scores"
        Transform each covariate to normal scores by its ranks, or only to mean 0 and standard deviation 1.
    concentration : float, default=1.0
        Number of pseudo-observations of each level, distributed over the states like an average level, or
        like its parent.
    parent : dict, default=None
        Which columns contain a group: ``parent={"zip5": "zip3"}``, or several from the nearest to the
        farthest, ``{"zip5": ["zip3", "state"]}``. Keys are as in ``group``. The prior of a level is then not
        the average level but its parent, as the rows of all its levels describe it, shrunk towards its own
        parent as far as its levels differ by chance, and so on. A level that ``fit`` did not see
        starts from its nearest known ancestor, with ``unseen="prior"`` it gets the vector of that one. A
        parent column passes through like any other and, unless ``covariates`` names it, is not a covariate.
        Where it is null a row says nothing; a level without any parent has the prior of the next tier.
    on_conflict : {"error", "majority"}, default="error"
        Whether a level with several parents is an error, or belongs to the parent of most of its rows.
    use_target : bool, default=False
        Let the target join the mixture.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes.
    cv : int, splitter, iterable of (train, test) or "ordered", default=3
        An integer is the number of folds, for ``n_states="auto"`` (which splits each level's rows evenly over
        them) and for the cross-fitting of ``fit_transform``. Anything else applies only to the latter.
        With "ordered", columns that depend on the target are learnt from earlier rows only: rows are cut by
        ``time`` into at most 10 blocks of about the same size, ties together, and a block is encoded with
        what all blocks before it say; the first one gets what is known before any target. scikit-learn's
        `TimeSeriesSplit` does the same by the position of the rows.
    time : str or int, default=None
        The column of X that says when each row happened, for ``cv="ordered"``: numbers, dates, or ISO text.
        With a `TimeSeriesSplit`, rows are checked to be in the order of this column. It passes through like
        any other column and, if it is numeric, is a covariate unless ``covariates`` leaves it out.
    n_starts : int, default=1
        Number of starts of EM, each from the best of four runs of k-means; the best one after a few rounds is
        run to convergence.
    max_iter : int, default=100
        Maximum number of rounds of EM.
    tol : float, default=1e-4
        EM stops when a round improves the criterion by less than this per row.
    max_rows : int, default=20000
        If there are more rows, the states are fitted to so many, of levels drawn at random, and all levels
        get the probabilities that their own rows say, given the states. With ``use_target``, all rows are
        used.
    random_state : int, default=0
        Seed of starts and folds.

    Attributes
    ----------
    representations_ : dict of str to Representation
        The table of each group.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.
    parents_ : dict of str to tuple of Links
        With ``parent``: the parents of the levels of a group, the parents of these, and so on.
    mixtures_ : dict of str to Mixture
        The fitted mixture of each group: means and covariance of the states, shares of the levels.
    normal_scores_ : dict of str to NormalScores
        The transformations of the covariates.
    target_type_ : str
        With ``use_target``: the kind of target that was found.
    n_states_ : dict of str to int
        Number of states of each group.
    held_out_ : dict of str to dict
        With ``use_target``: mean log-density of held-out rows for each number of states that was tried;
        empty if it was given.
    reference_shares_ : dict of str to ndarray of shape (n_levels, n_states)
        With ``use_target`` and ``cv`` in time: the shares by the covariates alone, which order the states.
    iterations_ : dict of str to int
        Number of rounds of EM; ``n_iter_`` is the largest.

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

    n_states: int | Literal["auto"] = "auto"
    max_states: int = 30
    output: Literal["states", "posterior", "both"] = "states"
    transform_covariates: Literal["normal_scores", "standardize"] = "normal_scores"
    concentration: float = 1.0
    parent: Parents | None = None
    on_conflict: Literal["error", "majority"] = "error"
    use_target: bool = False
    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto"
    cv: Any = 3
    time: Column | None = None
    n_starts: int = 1
    max_iter: int = 100
    tol: float = 1e-4
    max_rows: int = 20_000
    random_state: int = 0
    sample_rows: int | None = None
    sample_by: Column | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **SAMPLE_CONSTRAINTS,
        **TARGET_CONSTRAINTS,
        **PARENT_CONSTRAINTS,
        "n_states": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_states": [Interval(Integral, 1, None, closed="left")],
        "output": [StrOptions({"states", "posterior", "both"})],
        "transform_covariates": [StrOptions({"normal_scores", "standardize"})],
        "concentration": [Interval(Real, 0, None, closed="neither")],
        "use_target": ["boolean"],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_rows": [Interval(Integral, 1, None, closed="left")],
    }

    n_iter_ = property(most_iterations)

    @property
    def _needs(self) -> Needs:
        return Needs(
            rows=True,
            target="response" if self.use_target else "unused",
            target_type=self.target_type,
            own_covariates=self.output != "states",
            shrinks=True,
        )

    @property
    def _is_in_time(self) -> bool:
        """Whether no target may say anything about earlier rows."""
        return self.use_target and follows_time(self.cv)

    def _represent(self, sample: GroupSample) -> Vectors:
        rows = sample.rows
        maps = rows.normal_scores(ranks=self.transform_covariates == "normal_scores")
        scores = self._mixture_rows(maps, rows)
        n_states, held_out = self._choose(scores)
        mixture = self._fit_mixture(scores, n_states)
        details: dict[str, Any] = {"normal_scores_": maps, "n_states_": n_states}
        if self._is_in_time:
            details["reference_shares_"] = self._fit_mixture(scores.without_target(), n_states).shares
            mixture = mixture.aligned(details["reference_shares_"])
        mixture, tiers = nest_states(mixture, scores, sample.nesting, self.concentration)
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
            "new_levels_": StatesRule(float(self.concentration), tiers),
        }
        states = [Suffix(f"state{state + 1}") for state in range(n_states)]
        posterior = [Suffix(f"posterior{state + 1}") for state in range(n_states)]
        outputs = {"states": states, "posterior": posterior, "both": states + posterior}[self.output]
        return Vectors(mixture.shares, states, details, prior=mixture.prior, outputs=outputs)

    def _represent_fold(self, sample: GroupSample, whole: Vectors) -> Vectors:
        """Put the states in the order of those of all rows; without any row, all states are as likely."""
        mixture = whole.details["mixtures_"]
        reference = whole.details.get("reference_shares_", mixture.shares)
        if sample.is_empty:
            equal = np.full(mixture.n_states, 1 / mixture.n_states)
            shares = np.tile(equal, (len(mixture.shares), 1))
            found = replace(mixture, means=np.zeros_like(mixture.means), shares=shares, prior=equal)
        else:
            scores = self._mixture_rows(whole.details["normal_scores_"], sample.rows)
            found = self._fit_mixture(scores, mixture.n_states).aligned(reference)
            found, _ = nest_states(found, scores, sample.nesting, self.concentration)
        return Vectors(found.shares, details={**whole.details, "mixtures_": found}, prior=found.prior)

    def _encode_rows(self, vectors: Vectors, rows: Rows) -> Lookup:
        """The shares of each row's level, the posterior of the row, or both."""
        lookup = super()._encode_rows(vectors, rows)
        if self.output == "states":
            return lookup
        shares = np.asarray(taken(lookup))
        scores = rows.scores(vectors.details["normal_scores_"])
        with one_thread(blas_only=True):
            posterior = posteriors(vectors.details["mixtures_"], scores, shares)
        return Lookup(posterior if self.output == "posterior" else np.hstack([shares, posterior]))

    def _mixture_rows(self, maps: NormalScores, rows: Rows) -> MixtureRows:
        """The rows as the mixture is fitted to them."""
        scores, target, n_classes = rows.scores(maps), None, 0
        if self.use_target:
            target = rows.response().values()
            if self.target_type_ != "continuous":
                # Only classes of these rows: that there is another one may be known only from a row left out.
                classes, target = np.unique(target, return_inverse=True)
                n_classes = len(classes)
        return MixtureRows(scores, rows.codes, rows.n_levels, rows.weights, target, n_classes)

    def _fit_mixture(self, rows: MixtureRows, n_states: int) -> Mixture:
        return fit_states(
            rows,
            n_states,
            max_rows=self.max_rows if rows.target is None else len(rows.codes),
            n_starts=self.n_starts,
            seed=self.random_state,
            concentration=self.concentration,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _choose(self, rows: MixtureRows) -> tuple[int, dict[int, float]]:
        """The number of states, and the scores of those that were tried."""
        if not isinstance(self.n_states, str):
            return self.n_states, {}
        if not self.use_target or self._is_in_time:
            return count_states(rows.without_target(), self.max_states), {}
        rows = rows.canonical()
        if len(rows.codes) > _MOST_CHOICE_ROWS:
            rows = rows.take(_rows_of_some_levels(rows, self.random_state)).canonical()
        n_folds = int(self.cv) if isinstance(self.cv, Integral) else _DEFAULT_FOLDS
        folds = level_folds(rows.codes, n_folds, self.random_state)
        splits = [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in range(n_folds)]
        if not all(len(test) for _, test in splits):
            return 1, {}  # no level has enough rows to be in every fold
        return choose_n_states(
            rows,
            splits,
            max_states=self.max_states,
            seed=self.random_state,
            concentration=self.concentration,
        )


def _rows_of_some_levels(rows: MixtureRows, seed: int) -> Codes:
    """Rows of as many whole levels as add up to about `_MOST_CHOICE_ROWS`; parts of levels say less."""
    counts = np.bincount(rows.codes, minlength=rows.n_levels)
    order = np.random.default_rng(seed).permutation(rows.n_levels)
    chosen = order[: max(1, np.searchsorted(np.cumsum(counts[order]), _MOST_CHOICE_ROWS))]
    keep = np.zeros(rows.n_levels, dtype=bool)
    keep[chosen] = True
    return np.flatnonzero(keep[rows.codes])
