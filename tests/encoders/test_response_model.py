"""What holds for all encoders that model the target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sufrep
from sufrep import LocalEffectEncoder, MixedModelEncoder, RandomInterceptEncoder

each = pytest.mark.parametrize(
    "kind_of_encoder", [RandomInterceptEncoder, MixedModelEncoder, LocalEffectEncoder]
)


def shops(seed: int, n: int = 60, n_levels: int = 6) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows with a few nulls, a target whose level and slopes differ by shop, and weights."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, n_levels, n)
    X = pd.DataFrame({"x": rng.normal(size=n), "z": rng.exponential(size=n).round(1)})
    own = rng.normal(size=(n_levels, 2))[code]
    y = 2 * own[:, 0] + (1 + own[:, 1]) * X["x"] - X["z"] + rng.normal(size=n)
    X.loc[rng.random(n) < 0.1, "x"] = None
    return X.assign(shop=[f"shop {c}" for c in code]), y.to_numpy(), rng.choice([1.0, 2.0, 3.0], n)


@each
def test_only_the_order_of_a_covariate_matters(kind_of_encoder):
    X, y, weights = shops(10)
    encoder = kind_of_encoder("shop", remainder="drop")
    one, other = (
        encoder.fit_transform(frame, y, sample_weight=weights)
        for frame in (X, X.assign(x=np.exp(3 * X["x"]), z=X["z"] ** 3 - 100))
    )
    np.testing.assert_allclose(other, one, rtol=1e-12)


@each
@pytest.mark.parametrize("kind", ["continuous", "multiclass"])
def test_an_encoder_comes_back_from_its_file(tmp_path, kind, kind_of_encoder):
    X, y, _ = shops(11)
    y = y if kind == "continuous" else np.digitize(y, [-2, 1])
    encoder = kind_of_encoder("shop", cv=3).fit(X, y)
    encoder.save(tmp_path / "file")
    loaded = sufrep.load(tmp_path / "file")
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))
    assert loaded.get_params() == encoder.get_params()
    assert loaded.target_type_ == kind
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
