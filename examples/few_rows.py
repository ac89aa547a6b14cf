"""How well `SufficientEncoder` chooses with few rows, where chance plays a large part.

    python examples/few_rows.py

prints the table of docs/limits.md: squared errors of gradient boosting on 4,000 new rows, in percent of
dropping the column (means over five seeds and their standard errors), with what the encoder chooses and with
single encoders. Six worlds: three of the paper, with 3 hidden states, 30 levels and 5 covariates, and three
with 20 rows per level and 6 covariates, in which levels have their own intercepts, their own slopes, or no
effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingRegressor

from sufrep import SufficientEncoder, make_encoder, simulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORLDS = ("latent_linear", "global_linear", "piecewise_linear", "intercepts", "slopes", "nothing")
SIZES = (400, 1200)
SEEDS = range(100, 105)
SINGLE = ("one_hot", "target", "means", "low_rank", "latent_state", "mixed_model", "local_effect")
NEW_ROWS = 4_000


def draw(world: str, n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows with the level in the last column, and the target."""
    if world in ("latent_linear", "global_linear", "piecewise_linear"):
        sample = simulate(world, n=n + NEW_ROWS, p=5, n_latent=3, levels_per_latent=10, seed=seed)
        return np.column_stack([sample.X, np.unique(sample.group, return_inverse=True)[1]]), sample.y
    rng = np.random.default_rng(seed)
    n_levels = n // 20
    level = rng.integers(0, n_levels, n + NEW_ROWS)
    X = rng.normal(size=(len(level), 6)) + 0.7 * rng.normal(size=(n_levels, 6))[level]
    y = 2 * np.sin(X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + X[:, 3] + rng.normal(size=len(X))
    if world == "intercepts":
        y += rng.normal(size=n_levels)[level]
    if world == "slopes":
        y += 0.6 * (rng.normal(size=(n_levels, 6))[level] * X).sum(axis=1)
    return np.column_stack([X, level]), y


def errors(world: str, n: int, seed: int) -> dict[str, float]:
    """Return errors on new rows, in percent of dropping the column."""
    X, y = draw(world, n, seed)
    group = X.shape[1] - 1
    encoders: dict[str, Any] = {
        "drop": SufficientEncoder(group, target_type="continuous", families=()),
        "sufficient": SufficientEncoder(group, target_type="continuous"),
        **{method: encoder_of(method, group) for method in SINGLE},
    }
    found = {}
    for method, encoder in encoders.items():
        known = encoder.fit_transform(X[:n], y[:n])
        learner = HistGradientBoostingRegressor(random_state=0).fit(known, y[:n])
        found[method] = np.mean((learner.predict(encoder.transform(X[n:])) - y[n:]) ** 2)
    return {method: float(100 * error / found["drop"]) for method, error in found.items()}


def encoder_of(method: str, group: int) -> Any:
    """Return a single encoder; "target" is the cross-fitted mean of the target."""
    if method == "target":
        return make_encoder("means", group, covariates=[], use_target=True, target_type="continuous")
    return make_encoder(method, group)


def main() -> None:
    """Print the table."""
    print(f"| rows | world | {' | '.join(['sufficient', *SINGLE])} |")
    print("|---" * (3 + len(SINGLE)) + "|")
    for n in SIZES:
        for world in WORLDS:
            found = Parallel(n_jobs=2)(delayed(errors)(world, n, seed) for seed in SEEDS)
            cells = []
            for method in ("sufficient", *SINGLE):
                values = [item[method] for item in found]
                cells.append(f"{np.mean(values):.1f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.1f}")
            print(f"| {n:,} | {world} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
