"""The paper's simulation design, with its truth.

All draws are made from uniform numbers of PCG64: numpy may change the streams of its other distributions
between versions. States, levels and covariates need no matrix product, whose last digits depend on BLAS.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import log_softmax, ndtri

from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sufrep._arrays import Array, Codes, Floats

Setup: TypeAlias = Literal["global_linear", "latent_linear", "piecewise_linear"]
SETUPS: tuple[Setup, ...] = get_args(Setup)

# Entries of a state's mean that are not zero, and the correlation of neighbouring covariates (the paper's).
_N_SHIFTED = 3
_CORRELATION = 0.5
# Rows that are evaluated at a time, so that no (n, n_latent) array is ever whole.
_BLOCK = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How the target depends on covariates and state: E[Y|x, l] = α_l + Σ_j x_j·β_lj, β_lj one of two.

    Attributes
    ----------
    intercepts : ndarray, shape (n_latent,)
        α, Laplace with variance 1.
    slopes_above, slopes_below : ndarray, shape (n_latent, p)
        β⁺ and β⁻, rows of norm 1: the slope of a covariate above its median, and at or below it. They differ
        in the piecewise setup only; in the global setup their rows are all the same.
    medians : ndarray, shape (p,)
        Medians of the drawn covariates.
    """

    intercepts: Floats
    slopes_above: Floats
    slopes_below: Floats
    medians: Floats

    def mean(self, X: Floats) -> Floats:
        """E[Y|X=x, L=l] of every row and state, shape (n, n_latent)."""
        above = np.where(self.medians < X, X, 0.0)
        return self.intercepts + above @ self.slopes_above.T + (X - above) @ self.slopes_below.T


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """A sample of the paper's design, with what only its maker can know.

    Attributes
    ----------
    X : ndarray, shape (n, p)
        Covariates, N(μ_l, Σ) given the state, Σ_kj = 0.5^|k − j|.
    group : ndarray of str, shape (n,)
        The level of each row.
    y : ndarray, shape (n,)
        Target, with noise of variance 1.
    latent : ndarray of int, shape (n,)
        The hidden state L of each row.
    codes : ndarray of int, shape (n,)
        Position of each row's level in `levels`.
    levels : ndarray of str, shape (n_levels,)
        All levels, drawn or not, in sorted order.
    state_probabilities : ndarray, shape (n_levels, n_latent)
        ψ_l(g) = P(L=l|G=g), the sufficient representation of lemma 1.
    state_means : ndarray, shape (n_latent, p)
        μ_l = E[X|L=l].
    level_means : ndarray, shape (n_levels, p)
        E[X|G=g] = Σ_l ψ_l(g) μ_l, what the means encoder estimates.
    conditional_mean : ndarray, shape (n,)
        μ(x, g) = E[Y|X=x, G=g] of each row by lemma 1: no prediction from (x, g) has a smaller error.
    outcome : Outcome
        Intercepts and slopes.
    setup, own_probability, seed
        As given to :func:`simulate`.
    """

    X: Floats
    group: Array
    y: Floats
    latent: Codes
    codes: Codes
    levels: Array
    state_probabilities: Floats
    state_means: Floats
    level_means: Floats
    conditional_mean: Floats
    outcome: Outcome
    setup: Setup
    own_probability: float
    seed: int

    def __repr__(self) -> str:
        (n, p), (n_levels, n_latent) = self.X.shape, self.state_probabilities.shape
        return (
            f"Simulation({self.setup!r}, n={n}, p={p}, n_latent={n_latent}, n_levels={n_levels}, "
            f"own_probability={self.own_probability:g}, seed={self.seed})"
        )

    def columns(self) -> dict[str, Array]:
        """The covariates ``x1``, ``x2``, … and ``group``, for any frame (``pl.DataFrame(columns)``)."""
        return {**{f"x{j + 1}": column for j, column in enumerate(self.X.T)}, "group": self.group}


def simulate(
    setup: Setup,
    n: int = 10_000,
    p: int = 20,
    n_latent: int = 10,
    levels_per_latent: int = 100,
    own_probability: float = 0.9,
    seed: int = 0,
) -> Simulation:
    """Draw a sample of the paper's simulation design.

    A hidden state L is drawn uniformly. The levels are dealt at random into as many blocks of equal size as
    there are states; a row falls into its state's block with probability `own_probability`, else anywhere in
    the others. Covariates are normal around the state's mean, which is zero but for three entries of ±1 (all
    where p is less). The target is linear in the covariates, with intercept and slopes as the setup says,
    plus standard normal noise.

    Parameters
    ----------
    setup : {"global_linear", "latent_linear", "piecewise_linear"}
        Each state has an intercept of its own. Slopes are the same for all states, differ by state, or
        differ by state and, for each covariate, above and below its median.
    n, p : int, default 10,000 and 20
        Rows and covariates.
    n_latent, levels_per_latent : int, default 10 and 100
        Hidden states, and levels in each state's block (the paper's "10L-100G" has 1,000 levels).
    own_probability : float, default 0.9
        Probability of a level of the state's own block.
    seed : int, default 0
        The same seed gives the same bytes (between machines, `y` to the last digits). The rows of a longer
        sample are others than those of a shorter one, but blocks of levels, means, intercepts and slopes are
        the same; and setups share everything but the target.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> from sufrep import simulate
    >>> sample = simulate("latent_linear", n=1000, n_latent=2, levels_per_latent=5)
    >>> sample
    Simulation('latent_linear', n=1000, p=20, n_latent=2, n_levels=10, own_probability=0.9, seed=0)
    >>> sample.X.shape, sample.group.shape, sample.state_probabilities.shape
    ((1000, 20), (1000,), (10, 2))

    Nobody who sees covariates and level only can do better than the noise and the doubt about the state:

    >>> bayes = ((sample.y - sample.conditional_mean) ** 2).mean()
    >>> bool(1 < bayes < ((sample.y - sample.y.mean()) ** 2).mean())
    True
    """
    _check(setup, n, p, n_latent, levels_per_latent, own_probability, seed)
    design, rows, noise = map(_uniforms, np.random.SeedSequence(seed).spawn(3))
    # numpy's small integers would overflow, and its small floats lose digits.
    n_levels, own_probability = int(n_latent) * int(levels_per_latent), float(own_probability)
    block_of_level = np.argsort(design.random(n_levels), kind="stable") // levels_per_latent
    levels_of_block = np.argsort(block_of_level, kind="stable").reshape(n_latent, levels_per_latent)
    state_means = _state_means(design, n_latent, p)

    latent = _integers(rows, n_latent, n)
    away = np.zeros(n, dtype=np.int64)
    if n_latent > 1:
        away = np.where(rows.random(n) < own_probability, 0, 1 + _integers(rows, n_latent - 1, n))
    codes = levels_of_block[(latent + away) % n_latent, _integers(rows, levels_per_latent, n)]
    X = state_means[latent]
    X += _autoregressive(rows, n, p)

    outcome = _outcome(design, setup, n_latent, np.median(X, axis=0))
    psi = _state_probabilities(block_of_level, n_latent, own_probability)
    mean, conditional_mean = np.empty(n), np.empty(n)
    for block in _blocks(n):
        by_state = outcome.mean(X[block])
        mean[block] = np.take_along_axis(by_state, latent[block, None], axis=1)[:, 0]
        posterior = _posterior(X[block], psi[codes[block]], state_means)
        conditional_mean[block] = (by_state * posterior).sum(axis=1)
    levels = np.array([f"g{level:0{len(str(n_levels - 1))}}" for level in range(n_levels)])
    return Simulation(
        X=X,
        group=levels[codes],
        y=mean + _normals(noise, n),
        latent=latent,
        codes=codes,
        levels=levels,
        state_probabilities=psi,
        state_means=state_means,
        level_means=psi @ state_means,
        conditional_mean=conditional_mean,
        outcome=outcome,
        setup=setup,
        own_probability=own_probability,
        seed=seed,
    )


def _uniforms(seed: np.random.SeedSequence) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def _integers(rng: np.random.Generator, high: int, shape: int | tuple[int, ...]) -> Codes:
    return (rng.random(shape) * high).astype(np.int64)


def _open_uniforms(rng: np.random.Generator, n: int) -> Floats:
    # random() can be 0, where quantiles are infinite; the next smallest is 2**-53.
    return np.maximum(rng.random(n), 2.0**-54)


def _normals(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(ndtri(_open_uniforms(rng, n)))


def _state_means(rng: np.random.Generator, n_latent: int, p: int) -> Floats:
    """Zero but for three entries of ±1 at random places, other places for each state."""
    places = np.argsort(rng.random((n_latent, p)), axis=1, kind="stable")[:, :_N_SHIFTED]
    means = np.zeros((n_latent, p))
    np.put_along_axis(means, places, np.where(rng.random(places.shape) < 0.5, -1.0, 1.0), axis=1)
    return means


def _autoregressive(rng: np.random.Generator, n: int, p: int) -> Floats:
    """Rows of N(0, Σ) with Σ_kj = 0.5^|k − j|: each covariate is half its neighbour plus news."""
    rows = np.empty((n, p), order="F")
    rows[:, 0] = _normals(rng, n)
    for j in range(1, p):
        rows[:, j] = _CORRELATION * rows[:, j - 1] + np.sqrt(1 - _CORRELATION**2) * _normals(rng, n)
    return rows


def _outcome(rng: np.random.Generator, setup: Setup, n_latent: int, medians: Floats) -> Outcome:
    """Intercepts and slopes. All setups draw all of them, so that a seed means the same in each."""
    u = _open_uniforms(rng, n_latent) - 0.5
    intercepts = -np.sign(u) * np.log1p(-2 * np.abs(u)) / np.sqrt(2)  # variance 1: scale 1/√2
    above, below = (_slopes(rng, n_latent, len(medians)) for _ in range(2))
    if setup == "global_linear":
        above = np.tile(above[0], (n_latent, 1))
    return Outcome(intercepts, above, below if setup == "piecewise_linear" else above, medians)


def _slopes(rng: np.random.Generator, n_latent: int, p: int) -> Floats:
    """Entries drawn from {−1, 0, 1}, rows of norm 1; a row of zeros has none and is drawn again."""
    slopes = _integers(rng, 3, (n_latent, p)) - 1.0
    while (empty := ~slopes.any(axis=1)).any():
        slopes[empty] = _integers(rng, 3, (int(empty.sum()), p)) - 1.0
    return np.asarray(slopes / np.sqrt((slopes**2).sum(axis=1, keepdims=True)))


def _state_probabilities(block_of_level: Codes, n_latent: int, own_probability: float) -> Floats:
    """ψ by Bayes' rule: states are equally likely and blocks equally large."""
    if n_latent == 1:
        return np.ones((len(block_of_level), 1))
    psi = np.full((len(block_of_level), n_latent), (1 - own_probability) / (n_latent - 1))
    np.put_along_axis(psi, block_of_level[:, None], own_probability, axis=1)
    return psi


def _posterior(X: Floats, psi: Floats, state_means: Floats) -> Floats:
    """P(L=l|X=x, G=g) ∝ P(X=x|L=l) ψ_l(g), shape (n, n_latent)."""
    news, centres = _whitened(X), _whitened(state_means)
    with np.errstate(divide="ignore"):  # log 0: the level excludes the state
        prior = np.log(psi)
    log_posterior = log_softmax(news @ centres.T - (centres**2).sum(axis=1) / 2 + prior, axis=1)
    return np.asarray(np.exp(log_posterior))


def _whitened(X: Floats) -> Floats:
    """Undo the autoregression: the news of each covariate, with identity covariance."""
    news = X.copy()
    news[:, 1:] = (X[:, 1:] - _CORRELATION * X[:, :-1]) / np.sqrt(1 - _CORRELATION**2)
    return news


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, n, _BLOCK))


def _check(
    setup: str, n: int, p: int, n_latent: int, levels_per_latent: int, own_probability: float, seed: int
) -> None:
    if setup not in SETUPS:
        raise InvalidParameterError("setup", setup, f"one of {', '.join(SETUPS)}")
    sizes = {"n": n, "p": p, "n_latent": n_latent, "levels_per_latent": levels_per_latent}
    for name, size in sizes.items():
        if not _is(Integral, size) or size < 1:
            raise InvalidParameterError(name, size, "an integer of at least 1")
    if not _is(Real, own_probability) or not 0 <= own_probability <= 1:
        raise InvalidParameterError("own_probability", own_probability, "a number from 0 to 1")
    if not _is(Integral, seed) or seed < 0:
        raise InvalidParameterError("seed", seed, "an integer of at least 0")


def _is(kind: type, value: object) -> bool:
    # True is an int to Python, but n=True is a mistake.
    return isinstance(value, kind) and not isinstance(value, bool)
