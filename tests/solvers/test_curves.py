"""Curves: a ridge regression on a basis that is written out here."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from sufrep.solvers.curves import bent, fit_curve


def test_the_basis_bends_where_it_is_told_to():
    found = bent(np.array([[-2.0, 0.5], [1.5, 3.0]]), (-1.0, 1.0))
    expected = [[1, -2, 0.5, 0, 1.5, 0, 0], [1, 1.5, 3, 2.5, 4, 0.5, 2]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [40, 70_000])
def test_a_curve_is_a_ridge_regression(n, weighted):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(n, 2))
    y = 50 + scores[:, 0] + np.maximum(scores[:, 1], 0) + rng.normal(size=n)
    weights = rng.choice([1.0, 2.0], n) if weighted else None
    curve = fit_curve(scores, y, weights, bends=(-1.0, 0.0, 1.0))
    ridge = Ridge(1.0).fit(bent(scores, (-1.0, 0.0, 1.0))[:, 1:], y, sample_weight=weights)
    expected = ridge.predict(bent(scores, (-1.0, 0.0, 1.0))[:, 1:])
    np.testing.assert_allclose(curve.predict(scores), expected, rtol=1e-8)


def test_without_covariates_a_curve_is_the_mean():
    curve = fit_curve(np.empty((4, 0)), np.array([1.0, 2.0, 3.0, 6.0]))
    np.testing.assert_allclose(curve.predict(np.empty((2, 0))), 3.0)
