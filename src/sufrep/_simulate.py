"""The paper's simulation design, with the true parameters of every sample.

All draws are computed from uniform numbers of PCG64, because numpy may change the streams of its other
distributions between versions. States, levels and covariates need no matrix product, whose last digits depend
on BLAS.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax, ndtri

from sufrep._arrays import blocks
from sufrep._names import SETUPS
from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from sufrep._arrays import Array, Codes, Floats
    from sufrep._names import Setup

# As in the paper: nonzero entries of a state's mean, and the correlation of neighbouring covariates.
_N_SHIFTED = 3
_CORRELATION = 0.5
# Rows evaluated at a time, so that no (n, n_latent) array is held in memory.
_BLOCK = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeModel:
    """Mean of the target given covariates and state: E[Y|x, l] = α_l + Σ_j x_j·β_lj.

    Attributes
    ----------
    intercepts : ndarray, shape (n_latent,)
        α, from a Laplace distribution with variance 1.
    slopes_above, slopes_below : ndarray, shape (n_latent, p)
        β above the median of a covariate, and at or below it; rows have norm 1. The two differ in the
        piecewise setup only. In the global setup all rows are the same.
    medians : ndarray, shape (p,)
        Medians of the covariates in the sample.
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
    """A sample of the paper's design, with its hidden states and true parameters.

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
        All levels, whether they have rows or not, in sorted order.
    state_probabilities : ndarray, shape (n_levels, n_latent)
        ψ_l(g) = P(L=l|G=g), the sufficient representation of lemma 1.
    state_means : ndarray, shape (n_latent, p)
        μ_l = E[X|L=l].
    level_means : ndarray, shape (n_levels, p)
        E[X|G=g] = Σ_l ψ_l(g) μ_l, which the means encoder estimates.
    conditional_mean : ndarray, shape (n,)
        μ(x, g) = E[Y|X=x, G=g] of each row by lemma 1: no prediction from (x, g) has a smaller error.
    outcome : OutcomeModel
        Intercepts and slopes.
    setup, own_probability, seed
        Arguments of :func:`simulate`.
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
    outcome: OutcomeModel
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
        """The covariates ``x1``, ``x2``, … and ``group``, as any frame library takes them."""
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

    The hidden state L of a row is uniform. The levels are split at random into blocks of equal size, one for
    each state. The level of a row comes from the block of its state with probability `own_probability`, and
    from any other block otherwise. Covariates are normal around the mean of the state, which is zero except
    for three entries of ±1 (or p, if p is smaller). The target is linear in the covariates plus standard
    normal noise, with intercepts and slopes that depend on the setup.

    Parameters
    ----------
    setup : {"global_linear", "latent_linear", "piecewise_linear"}
        Intercepts differ by state. Slopes are the same for all states, differ by state, or differ by state
        and, for each covariate, above and below its median.
    n, p : int, default 10,000 and 20
        Numbers of rows and covariates.
    n_latent, levels_per_latent : int, default 10 and 100
        Number of hidden states, and of levels per state (the paper's "10L-100G" has 1,000 levels).
    own_probability : float, default 0.9
        Probability that the level of a row is in the block of its state.
    seed : int, default 0
        The same seed gives the same bytes (between machines, `y` up to the last digits). With the same seed,
        samples of different sizes have different rows but the same blocks of levels, means, intercepts and
        slopes, and the setups share everything except the target.

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

    The error of the best prediction from covariates and level: the noise, plus uncertainty about the state.

    >>> bayes = ((sample.y - sample.conditional_mean) ** 2).mean()
    >>> bool(1 < bayes < ((sample.y - sample.y.mean()) ** 2).mean())
    True
    """
    _check(setup, n, p, n_latent, levels_per_latent, own_probability, seed)
    design, rows, noise = map(_uniforms, np.random.SeedSequence(seed).spawn(3))
    # Small integer types of numpy could overflow, and small float types lose digits.
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
    for block in blocks(n, _BLOCK):
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
    # random() can be 0, where quantiles are infinite; its smallest positive value is 2**-53.
    return np.maximum(rng.random(n), 2.0**-54)


def _normals(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(ndtri(_open_uniforms(rng, n)))


def _state_means(rng: np.random.Generator, n_latent: int, p: int) -> Floats:
    """Zero except for three entries of ±1 at random positions, which differ by state."""
    places = np.argsort(rng.random((n_latent, p)), axis=1, kind="stable")[:, :_N_SHIFTED]
    means = np.zeros((n_latent, p))
    np.put_along_axis(means, places, np.where(rng.random(places.shape) < 0.5, -1.0, 1.0), axis=1)
    return means


def _autoregressive(rng: np.random.Generator, n: int, p: int) -> Floats:
    """Rows of N(0, Σ) with Σ_kj = 0.5^|k − j|: each covariate is half the previous one plus an innovation."""
    rows = np.empty((n, p), order="F")
    rows[:, 0] = _normals(rng, n)
    for j in range(1, p):
        rows[:, j] = _CORRELATION * rows[:, j - 1] + np.sqrt(1 - _CORRELATION**2) * _normals(rng, n)
    return rows


def _outcome(rng: np.random.Generator, setup: Setup, n_latent: int, medians: Floats) -> OutcomeModel:
    """Intercepts and slopes. Every setup draws all of them, so that setups share the rest of the sample."""
    u = _open_uniforms(rng, n_latent) - 0.5
    intercepts = -np.sign(u) * np.log1p(-2 * np.abs(u)) / np.sqrt(2)  # variance 1: scale 1/√2
    above, below = (_slopes(rng, n_latent, len(medians)) for _ in range(2))
    if setup == "global_linear":
        above = np.tile(above[0], (n_latent, 1))
    return OutcomeModel(intercepts, above, below if setup == "piecewise_linear" else above, medians)


def _slopes(rng: np.random.Generator, n_latent: int, p: int) -> Floats:
    """Entries from {−1, 0, 1}, scaled to rows of norm 1; a row of zeros is drawn again."""
    slopes = _integers(rng, 3, (n_latent, p)) - 1.0
    while (empty := ~slopes.any(axis=1)).any():
        slopes[empty] = _integers(rng, 3, (int(empty.sum()), p)) - 1.0
    return np.asarray(slopes / np.sqrt((slopes**2).sum(axis=1, keepdims=True)))


def _state_probabilities(block_of_level: Codes, n_latent: int, own_probability: float) -> Floats:
    """ψ by Bayes' theorem, for equally likely states and blocks of equal size."""
    if n_latent == 1:
        return np.ones((len(block_of_level), 1))
    psi = np.full((len(block_of_level), n_latent), (1 - own_probability) / (n_latent - 1))
    np.put_along_axis(psi, block_of_level[:, None], own_probability, axis=1)
    return psi


def _posterior(X: Floats, psi: Floats, state_means: Floats) -> Floats:
    """P(L=l|X=x, G=g) ∝ P(X=x|L=l) ψ_l(g), shape (n, n_latent)."""
    white, centers = _whitened(X), _whitened(state_means)
    with np.errstate(divide="ignore"):  # log 0: the state is impossible in the level
        prior = np.log(psi)
    log_posterior = log_softmax(white @ centers.T - (centers**2).sum(axis=1) / 2 + prior, axis=1)
    return np.asarray(np.exp(log_posterior))


def _whitened(X: Floats) -> Floats:
    """Innovations of the autoregression, which have identity covariance."""
    white = X.copy()
    white[:, 1:] = (X[:, 1:] - _CORRELATION * X[:, :-1]) / np.sqrt(1 - _CORRELATION**2)
    return white


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
    # True is an instance of int, but n=True is a mistake.
    return isinstance(value, kind) and not isinstance(value, bool)
