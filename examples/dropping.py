"""How often `SufficientEncoder` drops a column, that says nothing and that says a little.

    python examples/dropping.py

prints the table of docs/limits.md. Samples have 300 to 490 rows, 4 covariates and 20 levels; levels move the
target by normal effects of the given size, rows by normal noise of size 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import Ridge

from sufrep import SufficientEncoder

EFFECTS = (0.0, 0.3, 0.5)
LEARNERS: dict[str, Any] = {"gradient boosting": None, "Ridge": Ridge()}
N_SEEDS = 20


def is_dropped(effect: float, learner: str, seed: int) -> bool:
    """Draw a sample, and let the encoder choose."""
    rng = np.random.default_rng(1000 + seed)
    n = 300 + 10 * seed
    X, level = rng.normal(size=(n, 4)), rng.integers(0, 20, n)
    y = X[:, 0] + effect * rng.normal(size=20)[level] + rng.normal(size=n)
    encoder = SufficientEncoder(4, target_type="continuous", estimator=LEARNERS[learner])
    return encoder.fit(np.column_stack([X, level]), y).chosen_ == ()


def main() -> None:
    """Print the table."""
    print("| judged by | " + " | ".join(f"effects of {effect}" for effect in EFFECTS) + " |")
    print("|---" * (1 + len(EFFECTS)) + "|")
    for learner in LEARNERS:
        cells = []
        for effect in EFFECTS:
            calls = (delayed(is_dropped)(effect, learner, seed) for seed in range(N_SEEDS))
            cells.append(f"{sum(Parallel(n_jobs=2)(calls))} of {N_SEEDS}")
        print(f"| {learner} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
