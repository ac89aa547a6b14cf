"""Simulated treatments whose confounder is a group, with their truth.

A hidden state L acts on covariates, group, treatment and outcome. The group is all that is seen of it, next
to the covariates: h(g), a function of the group's state probabilities ψ(g), moves the propensity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import expit

from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats

Arm: TypeAlias = Literal[
    "main",
    "silent",
    "small 5",
    "small 10",
    "small 20",
    "drawn levels",
    "uneven",
    "slope",
    "violation",
    "experiment",
]
ARMS: tuple[Arm, ...] = get_args(Arm)
_N_STATES = 4
_N_LEVELS = 200
_N_COVARIATES = 10
_N_SHIFTED = 3
_CORRELATION = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class EffectSample:
    """Rows with a treatment, and the truth about them.

    Attributes
    ----------
    X : ndarray, shape (n, 10)
    group : ndarray of int, shape (n,)
    treatment, outcome : ndarray, shape (n,)
    propensity : ndarray, shape (n,)
        True probability of treatment.
    effect : ndarray, shape (n,)
        Effect of the treatment on each row given its state, whose expectation is 1.
    state_probabilities : ndarray, shape (n_levels, 4)
        ψ(g).
    """

    X: Floats
    group: Codes
    treatment: Floats
    outcome: Floats
    propensity: Floats
    effect: Floats
    state_probabilities: Floats


def simulate_effects(arm: Arm = "main", *, n: int | None = None, seed: int = 0) -> EffectSample:
    """Draw a sample.

    Parameters
    ----------
    arm : str, default="main"
        "main"; "silent", where covariates do not depend on the state; "small 5", "small 10" and "small 20",
        groups of one state with so many rows; "drawn levels", groups with state probabilities from a
        Dirichlet distribution; "uneven", fewer treated rows; "slope", where the group changes how the
        treatment depends on a covariate; "violation", where the state of the row itself moves the treatment,
        which no group can control for; "experiment", where the propensity depends on the group alone.
    n : int, optional
        Number of rows; by default 4,000, or 10,000 for "slope". There are 200 levels; small groups have
        their number of rows, and as many levels as that takes.
    seed : int, default=0
    """
    if arm not in ARMS:
        raise InvalidParameterError("arm", arm, f"one of {', '.join(ARMS)}")
    rng = np.random.default_rng(seed)
    state, group, psi = _draw_groups(arm, rows_of(arm, n), rng)
    shift = 0.0 if arm in ("silent", "slope") else 1.0
    means = np.zeros((_N_STATES, _N_COVARIATES))
    for row in means:
        row[rng.choice(_N_COVARIATES, _N_SHIFTED, replace=False)] = rng.choice([-1.0, 1.0], _N_SHIFTED)
    distance = np.abs(np.subtract.outer(np.arange(_N_COVARIATES), np.arange(_N_COVARIATES)))
    noise = rng.multivariate_normal(np.zeros(_N_COVARIATES), _CORRELATION**distance, len(state))
    X = noise + shift * means[state]
    s = _standardised(rng.laplace(size=_N_STATES))
    slopes = np.array([_direction(rng) for _ in range(_N_STATES)])
    gamma = _direction(rng)
    level = psi @ s
    if arm == "drawn levels":
        level = level - level.mean()
    h = (level / level.std())[group]
    if arm == "violation":
        h = s[state]
    moved = h * X[:, 0] if arm == "slope" else h
    offset = -1.0 if arm == "uneven" else 0.0
    own_part = 0.0 if arm == "experiment" else 0.5 * X @ gamma
    propensity = 0.05 + 0.9 * expit(offset + moved + own_part)
    treatment = (rng.random(len(state)) < propensity).astype(np.float64)
    own = s[state] * X[:, 0] if arm == "slope" else s[state]
    effect = np.ones(len(state))
    if arm != "slope":
        effect = 1 + 0.5 * (X[:, 0] - shift * means[:, 0].mean()) + 0.5 * s[state]
    outcome = 1.5 * own + (X * slopes[state]).sum(axis=1) + treatment * effect + rng.normal(size=len(state))
    return EffectSample(X, group, treatment, outcome, propensity, effect, psi)


def rows_of(arm: Arm, n: int | None = None) -> int:
    """The number of rows of a sample; one of groups of a given size consists of whole groups."""
    rows = n or (10_000 if arm == "slope" else 4_000)
    return rows - rows % _rows_of_a_level(arm) if arm.startswith("small") else rows


def _rows_of_a_level(arm: Arm) -> int:
    return int(arm.split()[1])


def _draw_groups(arm: Arm, n: int, rng: np.random.Generator) -> tuple[Codes, Codes, Floats]:
    """The state and the group of each row, and the state probabilities of each group."""
    if arm.startswith("small"):
        n_levels = n // _rows_of_a_level(arm)
        block = np.arange(n_levels) * _N_STATES // n_levels
        group = np.repeat(np.arange(n_levels), _rows_of_a_level(arm))
        return block[group], group, np.eye(_N_STATES)[block]
    block = np.arange(_N_LEVELS) * _N_STATES // _N_LEVELS
    if arm == "drawn levels":
        psi = rng.dirichlet(np.full(_N_STATES, 0.5), _N_LEVELS)
        group = rng.integers(0, _N_LEVELS, n)
        state = (rng.random((n, 1)) > np.cumsum(psi[group], axis=1)).sum(axis=1)
        return np.minimum(state, _N_STATES - 1), group, psi
    own = 0.9
    state = rng.integers(0, _N_STATES, n)
    other = (state + rng.integers(1, _N_STATES, n)) % _N_STATES
    blocks = np.where(rng.random(n) < own, state, other)
    per_block = _N_LEVELS // _N_STATES
    group = blocks * per_block + rng.integers(0, per_block, n)
    # All blocks are as likely, so P(state | block) is P(block | state).
    psi = np.full((_N_LEVELS, _N_STATES), (1 - own) / (_N_STATES - 1))
    psi[np.arange(_N_LEVELS), block] = own
    return state, group, psi


def _standardised(values: Floats) -> Floats:
    centred = values - values.mean()
    return np.asarray(centred / centred.std())


def _direction(rng: np.random.Generator) -> Floats:
    """Entries from −1, 0 and 1, not all 0, of norm 1."""
    while True:
        drawn = rng.integers(-1, 2, _N_COVARIATES).astype(np.float64)
        if drawn.any():
            return np.asarray(drawn / np.linalg.norm(drawn))
