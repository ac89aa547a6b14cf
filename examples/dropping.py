"""How often `SufficientEncoder` drops a column with little or no effect, and what keeping it costs.

    python examples/dropping.py

prints the table of docs/limits.md. Samples have 300 to 490 rows, 4 covariates and 20 levels; the effects of
levels on the target are normal with the given standard deviation, and so is the noise, with 1. Errors are on
4,000 new rows, in percent of the error without the column, with their standard error over samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

from sufrep import SufficientEncoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

EFFECTS = (0.0, 0.3, 0.5)
LEARNERS: dict[str, Any] = {"gradient boosting": None, "Ridge": Ridge()}
N_SEEDS, N_LEVELS = 20, 20


def draw(rng: np.random.Generator, n: int, effects: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows with the level in the last column, and the target."""
    X, level = rng.normal(size=(n, 4)), rng.integers(0, N_LEVELS, n)
    return np.column_stack([X, level]), X[:, 0] + effects[level] + rng.normal(size=n)


def chosen(effect: float, learner: str, seed: int) -> tuple[bool, float]:
    """Return whether the column is dropped, and the error on new rows in percent of that of dropping it."""
    rng = np.random.default_rng(1000 + seed)
    effects = effect * rng.normal(size=N_LEVELS)
    X, y = draw(rng, 300 + 10 * seed, effects)
    new_X, new_y = draw(rng, 4_000, effects)
    # With a single candidate, the column is dropped.
    free, dropping = (
        SufficientEncoder(4, target_type="continuous", estimator=LEARNERS[learner], max_candidates=most)
        for most in (None, 1)
    )

    def error(encoder: SufficientEncoder) -> float:
        model = clone(LEARNERS[learner] or HistGradientBoostingRegressor(random_state=0))
        model.fit(encoder.fit_transform(X, y), y)
        return float(np.mean((model.predict(encoder.transform(new_X)) - new_y) ** 2))

    ratio = error(free) / error(dropping)
    return free.chosen_ == (), 100 * ratio


def main() -> None:
    """Print the table."""
    print("| judged by | " + " | ".join(f"effects of {effect}" for effect in EFFECTS) + " |")
    print("|---" * (1 + len(EFFECTS)) + "|")
    for learner in LEARNERS:
        cells = []
        for effect in EFFECTS:
            calls = (delayed(chosen)(effect, learner, seed) for seed in range(N_SEEDS))
            found = np.array(Parallel(n_jobs=2)(calls), dtype=float)
            error = f"{found[:, 1].mean():.1f} ± {found[:, 1].std(ddof=1) / np.sqrt(N_SEEDS):.1f} %"
            cells.append(f"{found[:, 0].sum():.0f} of {N_SEEDS}, error {error}")
        print(f"| {learner} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
