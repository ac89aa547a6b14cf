"""The lemmas of the paper: each representation gives μ(x, g) = E[Y | X = x, G = g] back.

Everything is known here: states l, levels g, P(l, g), P(x | l) and E[Y | x, l]. As in the paper, levels
are the columns of Ω (n_covariates, n_levels) and of Ψ (n_states, n_levels), and A is
(n_covariates, n_states).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import multivariate_normal

from sufrep import LowRankEncoder, MeansEncoder, MNLEncoder, SparseLowRankEncoder
from sufrep.solvers.low_rank import left_singular_vectors
from sufrep.solvers.sparse_pca import sparse_pca

Floats = NDArray[np.float64]
EXACT = {"rtol": 1e-10, "atol": 1e-10}


@dataclass(frozen=True)
class Population:
    """A design of the paper's kind, known to the last digit.

    ``density`` is P(x | l) at each of the points x (n_points, n_states); ``response`` is E[Y | x, l]
    likewise; ``joint`` is P(l, g) (n_states, n_levels); ``state_means`` is A.
    """

    points: Floats
    density: Floats
    response: Floats
    joint: Floats
    state_means: Floats

    @cached_property
    def psi(self) -> Floats:
        """Ψ: P(l | g)."""
        return self.joint / self.joint.sum(axis=0)

    @cached_property
    def omega(self) -> Floats:
        """Ω = AΨ: E[X | g]."""
        return self.state_means @ self.psi

    @cached_property
    def left_inverse(self) -> Floats:
        """A†, for which A†A = I."""
        inverse = np.linalg.pinv(self.state_means)
        np.testing.assert_allclose(inverse @ self.state_means, np.eye(self.joint.shape[0]), atol=1e-10)
        return inverse

    def conditional_mean(self, psi: Floats) -> Floats:
        """μ(x, g) by the formula of lemma 1, given P(l | g) in any form; (n_points, n_levels)."""
        return (self.response * self.density) @ psi / (self.density @ psi)


def paper_design(seed: int, k: int = 4, levels_per_state: int = 5, p: int = 8) -> Population:
    """Normal covariates, Σ_ij = ½^|i−j|, levels mostly of their own state; evaluated at random points."""
    rng = np.random.default_rng(seed)
    means = np.zeros((p, k))
    for state in range(k):
        means[rng.choice(p, 3, replace=False), state] = rng.choice([-1.0, 1.0], 3)
    means += 0.01 * rng.normal(size=means.shape)  # so that no two states coincide
    own = np.repeat(np.eye(k), levels_per_state, axis=1).astype(bool)
    levels = np.where(own, 0.9 / levels_per_state, 0.1 / (levels_per_state * (k - 1)))
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    points = rng.normal(size=(50, p))
    density = np.column_stack([multivariate_normal.pdf(points, mean, covariance) for mean in means.T])
    response = rng.laplace(size=k) + np.sin(points @ rng.normal(size=(p, k)))
    return Population(points, density, response, levels * rng.dirichlet(np.full(k, 5.0))[:, None], means)


def finite_design(seed: int, k: int = 3, n_levels: int = 9, p: int = 4, n_points: int = 40) -> Population:
    """X takes finitely many values, so that everything can be summed up; any P(l, g)."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_points, p)) + 1.0
    density = rng.dirichlet(np.full(n_points, 0.3), size=k).T
    joint = rng.dirichlet(np.full(k * n_levels, 0.5)).reshape(k, n_levels)
    return Population(points, density, rng.normal(size=(n_points, k)), joint, points.T @ density)


@dataclass(frozen=True)
class LogitPopulation(Population):
    """P(x | l) ∝ h(x)·exp(η_l·x) and each level of one state only: then P(g | x) is a logit in x."""

    state: NDArray[np.intp]
    slopes: Floats  # η_l of each level's state; (n_levels, p)
    intercepts: Floats  # (n_levels,)


def logit_design(seed: int, k: int = 3, levels_per_state: int = 3, p: int = 4) -> LogitPopulation:
    """Levels of one state differ in how frequent they are."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(60, p)) + 0.5
    tilt = 0.7 * rng.normal(size=(k, p))
    weight = rng.dirichlet(np.ones(60))[:, None] * np.exp(points @ tilt.T)
    normaliser = weight.sum(axis=0)
    state = np.repeat(np.arange(k), levels_per_state)
    frequency = rng.dirichlet(np.full(len(state), 4.0))
    joint = np.where(state == np.arange(k)[:, None], frequency, 0.0)
    return LogitPopulation(
        points=points,
        density=weight / normaliser,
        response=rng.normal(size=(60, k)),
        joint=joint,
        state_means=points.T @ (weight / normaliser),
        state=state,
        slopes=tilt[state],
        intercepts=np.log(frequency) - np.log(normaliser[state]),
    )


def as_rows(population: Population) -> tuple[pd.DataFrame, Floats]:
    """A row for every x and g, and P(x, g) as its weight: a sample that is the population."""
    n_points, n_levels = len(population.points), population.joint.shape[1]
    rows = pd.DataFrame(np.repeat(population.points, n_levels, axis=0)).rename(columns=lambda j: f"x{j}")
    rows["g"] = np.tile([f"level {g:02}" for g in range(n_levels)], n_points)
    return rows, (population.density @ population.joint).ravel()


SEEDS = pytest.mark.parametrize("seed", range(5))
DESIGNS = pytest.mark.parametrize("design", [paper_design, finite_design, logit_design])


@SEEDS
@pytest.mark.parametrize("design", [finite_design, logit_design])
def test_lemma_1_state_probabilities_give_the_conditional_mean(seed, design):
    population = design(seed)
    # P(x, l, g) = P(x | l)·P(l, g), summed up without any lemma.
    everything = np.einsum("xl,lg->xlg", population.density, population.joint)
    expected = (population.response[:, :, None] * everything).sum(axis=1) / everything.sum(axis=1)
    np.testing.assert_allclose(population.conditional_mean(population.psi), expected, **EXACT)


@SEEDS
@DESIGNS
def test_lemma_2_level_means_give_the_conditional_mean(seed, design):
    population = design(seed)
    by_means = population.conditional_mean(population.left_inverse @ population.omega)
    np.testing.assert_allclose(by_means, population.conditional_mean(population.psi), **EXACT)


@SEEDS
@DESIGNS
def test_lemma_3_left_singular_vectors_give_the_conditional_mean(seed, design):
    population = design(seed)
    k = population.joint.shape[0]
    svd = left_singular_vectors(population.omega.T, k)
    # ψ(g) = A† V D u(g), for all levels at once.
    psi = population.left_inverse @ svd.right @ np.diag(svd.singular_values[:k]) @ svd.vectors.T
    np.testing.assert_allclose(psi, population.psi, **EXACT)
    np.testing.assert_allclose(
        population.conditional_mean(psi), population.conditional_mean(population.psi), **EXACT
    )


@SEEDS
def test_lemma_3_needs_as_many_vectors_as_there_are_states(seed):
    population = paper_design(seed)
    k = population.joint.shape[0]
    svd = left_singular_vectors(population.omega.T, k - 1)
    psi = population.left_inverse @ svd.right @ np.diag(svd.singular_values[: k - 1]) @ svd.vectors.T
    assert np.abs(psi - population.psi).max() > 1e-3


@SEEDS
def test_lemma_3_sparse_components_give_the_level_means_back(seed):
    population = paper_design(seed)
    means, k = population.omega.T, population.joint.shape[0]
    result = sparse_pca(means.T @ means / len(means), k, alpha=0.02)
    scores = means @ result.loadings
    assert (result.loadings == 0).any()
    assert np.linalg.matrix_rank(scores, tol=1e-6) == k
    back = np.linalg.lstsq(scores, means, rcond=None)[0]
    np.testing.assert_allclose(scores @ back, means, atol=1e-8)


@SEEDS
def test_the_logit_of_lemma_4_holds_in_its_design(seed):
    population = logit_design(seed)
    by_bayes = population.density @ population.joint
    by_bayes = by_bayes / by_bayes.sum(axis=1, keepdims=True)
    by_logit = softmax(population.points @ population.slopes.T + population.intercepts, axis=1)
    np.testing.assert_allclose(by_logit, by_bayes, **EXACT)


@SEEDS
def test_lemma_4_logit_coefficients_give_the_conditional_mean(seed):
    population = logit_design(seed)
    # Λ(g | x) from θ alone, E_X by enumeration: f(θ_g) = E[XΛ] / E[Λ].
    choice = softmax(population.points @ population.slopes.T + population.intercepts, axis=1)
    marginal = population.density @ population.joint.sum(axis=1)
    means = (population.points.T * marginal) @ choice / (marginal @ choice)
    np.testing.assert_allclose(means, population.omega, **EXACT)
    psi = population.left_inverse @ means
    np.testing.assert_allclose(
        population.conditional_mean(psi), population.conditional_mean(population.psi), **EXACT
    )
    # Each level is of one state, so its conditional mean is its state's.
    np.testing.assert_allclose(
        population.conditional_mean(psi), population.response[:, population.state], **EXACT
    )


@SEEDS
@pytest.mark.parametrize("design", [finite_design, logit_design])
def test_encoders_that_see_the_population_find_its_means_and_vectors(seed, design):
    population = design(seed)
    rows, weights = as_rows(population)
    means = MeansEncoder("g").fit(rows, sample_weight=weights).representations_["g"]
    np.testing.assert_allclose(means.values, population.omega.T, **EXACT)
    np.testing.assert_allclose(means.prior, population.state_means @ population.joint.sum(axis=1), **EXACT)
    k = population.joint.shape[0]
    low_rank = LowRankEncoder("g", n_components=k, standardize=False).fit(rows, sample_weight=weights)
    expected = left_singular_vectors(population.omega.T, k).vectors
    np.testing.assert_allclose(low_rank.representations_["g"].values, expected, rtol=0, atol=1e-8)


@SEEDS
@pytest.mark.parametrize("standardize", [True, False])
def test_standardised_or_not_the_vectors_span_the_same_states(seed, standardize):
    population = finite_design(seed)
    rows, weights = as_rows(population)
    k = population.joint.shape[0]
    encoder = LowRankEncoder("g", n_components=k, standardize=standardize)
    found = encoder.fit(rows, sample_weight=1000 * weights).representations_["g"].values
    back = np.linalg.lstsq(found, population.psi.T, rcond=None)[0]
    np.testing.assert_allclose(found @ back, population.psi.T, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_logit_encoder_that_sees_the_population_finds_its_coefficients(seed):
    population = logit_design(seed)
    rows, weights = as_rows(population)
    encoder = MNLEncoder("g", penalty=1e-6, standardize=False).fit(rows, sample_weight=10_000 * weights)
    found = encoder.representations_["g"].values
    expected = np.column_stack([population.intercepts, population.slopes])
    # Adding the same vector to all levels changes no probability.
    np.testing.assert_allclose(found - found.mean(axis=0), expected - expected.mean(axis=0), atol=1e-3)


@pytest.fixture(scope="module")
def large_sample() -> tuple[Population, pd.DataFrame]:
    """The paper's design, its levels known and 100,000 rows drawn from it."""
    population = paper_design(0)
    rng = np.random.default_rng(1)
    k, n_levels = population.joint.shape
    cell = rng.choice(k * n_levels, size=100_000, p=population.joint.ravel())
    state, level = np.divmod(cell, n_levels)
    p = len(population.state_means)
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    covariates = population.state_means.T[state] + rng.multivariate_normal(np.zeros(p), covariance, len(cell))
    rows = pd.DataFrame(covariates).rename(columns=lambda j: f"x{j}")
    return population, rows.assign(g=[f"level {g:02}" for g in level])


def test_estimated_means_approach_those_of_the_population(large_sample):
    population, rows = large_sample
    table = MeansEncoder("g").fit(rows).representations_["g"]
    # Five standard errors; the variance within a level is at most 1 + 1 (state means lie in [−1, 1]).
    error = 5 * np.sqrt(2 / table.weight)[:, None]
    assert (np.abs(table.values - population.omega.T) < error).all()
    psi = population.left_inverse @ table.values.T
    assert np.abs(psi - population.psi).max() < 0.15


def test_estimated_vectors_approach_the_states_and_auto_counts_them(large_sample):
    population, rows = large_sample
    found = LowRankEncoder("g").fit(rows).representations_["g"].values
    assert found.shape[1] == population.joint.shape[0]
    left = np.linalg.qr(found)[0]
    truth = left_singular_vectors(population.omega.T, found.shape[1]).vectors
    angles = np.linalg.svd(left.T @ truth, compute_uv=False)
    assert angles.min() > 0.98


@pytest.mark.parametrize(
    "encoder",
    [
        SparseLowRankEncoder("g", n_components=4, alpha=0.02),
        MNLEncoder("g", solver="lda"),
        MNLEncoder("g", penalty=0.1),
    ],
    ids=["sparse", "discriminant", "logit"],
)
def test_estimated_vectors_of_every_kind_predict_the_states(encoder, large_sample):
    population, rows = large_sample
    values = encoder.fit(rows[:8_000]).representations_["g"].values
    design = np.column_stack([np.ones(len(values)), values])
    residual = population.psi.T - design @ np.linalg.lstsq(design, population.psi.T, rcond=None)[0]
    assert (residual**2).sum() < 0.15 * ((population.psi.T - population.psi.mean(axis=1)) ** 2).sum()
