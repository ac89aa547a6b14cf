"""When the assumption fails: four worlds, and the result of `sufficiency_check` in each.

    python examples/limits.py

prints the table of docs/results/promises.md: how much the level adds to its encoding, on held-out folds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sufrep import LatentStateEncoder, MeansEncoder, MixedModelEncoder, sufficiency_check

if TYPE_CHECKING:
    from collections.abc import Callable

    World = tuple[pd.DataFrame, np.ndarray]

N_ROWS, N_LEVELS, N_COVARIATES = 8_000, 400, 6


def drawn(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    """Return levels, and the state of each row, which is that of its level with probability 0.9."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, N_LEVELS, N_ROWS)
    own = rng.random(N_ROWS) < 0.9
    return rng, level, np.where(own, level % 2, rng.integers(0, 2, N_ROWS))


def framed(covariates: np.ndarray, level: np.ndarray) -> pd.DataFrame:
    """Return covariates and level as a frame."""
    frame = pd.DataFrame(covariates, columns=[f"x{j + 1}" for j in range(covariates.shape[1])])
    return frame.assign(level=[f"level {number}" for number in level])


def holds(seed: int) -> World:
    """The level acts through a hidden state, which affects covariates and target."""
    rng, level, state = drawn(seed)
    covariates = rng.normal(size=(N_ROWS, N_COVARIATES)) + 2 * state[:, None] * (np.arange(N_COVARIATES) < 2)
    return framed(covariates, level), 3 * state + covariates[:, 2] + rng.normal(size=N_ROWS)


def hidden_from_covariates(seed: int) -> World:
    """The state affects the target, but no mean of a covariate: the matrix A has no left inverse."""
    rng, level, state = drawn(seed)
    covariates = rng.normal(size=(N_ROWS, N_COVARIATES))
    return framed(covariates, level), 3 * state + covariates[:, 2] + rng.normal(size=N_ROWS)


def own_effects(seed: int) -> World:
    """Each level has its own effect, in addition to that of the state."""
    rng, level, state = drawn(seed)
    covariates = rng.normal(size=(N_ROWS, N_COVARIATES)) + 2 * state[:, None] * (np.arange(N_COVARIATES) < 2)
    own = rng.normal(size=N_LEVELS)[level]
    return framed(covariates, level), own + 3 * state + covariates[:, 2] + rng.normal(size=N_ROWS)


def own_slopes(seed: int) -> World:
    """Each level has its own slope; the mean of its target carries no information."""
    rng, level, _ = drawn(seed)
    covariates = rng.normal(size=(N_ROWS, N_COVARIATES))
    slope = 2 * rng.normal(size=N_LEVELS)[level]
    return framed(covariates, level), slope * covariates[:, 0] + rng.normal(size=N_ROWS)


WORLDS: dict[str, Callable[[int], World]] = {
    "the assumption holds": holds,
    "the state hides from the covariates": hidden_from_covariates,
    "levels have effects of their own": own_effects,
    "levels have slopes of their own": own_slopes,
}
ENCODERS = {
    "means": MeansEncoder("level"),
    "latent states": LatentStateEncoder("level", output="both"),
    "means with the target": MeansEncoder("level", shrinkage="auto", use_target=True),
    "mixed model": MixedModelEncoder("level"),
}


def main() -> None:
    """Check every encoder in every world."""
    print("| world | " + " | ".join(ENCODERS) + " |")
    print("|---|" + "---|" * len(ENCODERS))
    for name, world in WORLDS.items():
        X, y = world(0)
        cells = []
        for encoder in ENCODERS.values():
            found = sufficiency_check(encoder, X, y)
            mark = "" if found.sufficient else " **!**"
            cells.append(
                f"{found.loss:.2f}, level adds {100 * found.share:z.1f} ± "
                f"{100 * found.standard_error / found.loss:.1f} %{mark}"
            )
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
