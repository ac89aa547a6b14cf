"""How often the test of `compare` finds a difference where there is none, and where there is one.

    python examples/size_and_power.py

prints rates and appends them to results/size_and_power/rates.csv; docs/results/promises.md quotes them.
Tables have 25 levels and 4 covariates. The target is standard normal noise plus an effect of each level,
which is normal with the given standard deviation; classes are its sign. Five methods are compared with
one-hot columns, with the model "linear". Gains of all folds are kept in a file, so that a run that was
stopped goes on.

An effect of 0 is pure noise. Methods are still not equal then: one-hot columns fit the noise of every level,
so their errors and log losses are truly higher, and a test that finds this is right. The size of the
test is therefore measured on "centred" gains, which are gains minus their expectation, the mean over all
tables. "As it is" are the gains themselves; on noise, that is a size for the accuracy only.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import warnings
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from sufrep._compare._data import make_splits, read_data
from sufrep._compare._run import encode_split, make_method, make_scoring, read_split
from sufrep._models import make_models
from sufrep._statistics import Spread, holm, paired_p_values, rounding_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Setting = tuple[int, float, int, tuple[str, ...]]

BASELINE, METHODS = "one_hot", ("drop", "means", "low_rank", "target_encoder", "fisher")
N_LEVELS, N_COVARIATES = 25, 4
ERROR, LOG_LOSS, ACCURACY = "typical error", "log loss", "accuracy"
LOSSES = (ERROR, LOG_LOSS, ACCURACY)
# Rows, standard deviation of the effects, folds, losses.
NOISE: tuple[Setting, ...] = tuple((300, 0.0, cv, LOSSES) for cv in (2, 3, 5, 10))
EFFECTS: tuple[Setting, ...] = tuple(
    (n, effect, 5, (ERROR,)) for n, effect in ((300, 0.3), (300, 0.6), (300, 1.0), (1200, 0.3))
)
SIGNIFICANCE = 0.05
RATES = Path("results/size_and_power/rates.csv")
SETTING, SHARES = ("rows", "effect", "folds", "loss"), ("tested", "any", "winner")
FIELDS = (*SETTING, "test", "gains", "first_seed", "tables", *SHARES)


# Gains


def draw(n: int, effect: float, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows with the level in the last column, and the target."""
    rng = np.random.default_rng([14, seed])
    level = rng.integers(0, N_LEVELS, n)
    X = rng.normal(size=(n, N_COVARIATES))
    effects = effect * rng.normal(size=N_LEVELS)
    return np.column_stack([X, level]), effects[level] + rng.normal(size=n)


def scores(
    X: NDArray[Any], y: NDArray[Any], task: str, cv: int, losses: Sequence[str]
) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None]]:
    """Yield for each loss that of all methods in all folds (n_methods, n_folds), the baseline first.

    Next to it, if the rows tell: the variance of the difference to the baseline in one fold, (n_methods,).
    """
    data = read_data(X, y, N_COVARIATES, task)
    (model,) = make_models("linear", classes=task != "regression", seed=0)[0].values()
    measures = [make_scoring("accuracy" if loss == ACCURACY else None, task) for loss in losses]
    splits = make_splits(data, cv=cv, n_repeats=1, folds="spread", seed=0)[0]
    found = np.empty((len(losses), 1 + len(METHODS), cv))
    rows_of: dict[tuple[int, int], list[NDArray[Any]]] = defaultdict(list)
    for split in splits:
        rows = read_split(data, split)
        for j, method in enumerate((BASELINE, *METHODS)):
            encoded = encode_split(make_method(data.after_to_numbers(), method, 0), rows)
            fitted = clone(model).fit(encoded.train, encoded.y_train)
            for i, measure in enumerate(measures):
                value = measure.measure(fitted, encoded.test, encoded.y_test)
                found[i, j, split.fold] = value if measure.is_loss else -value
                if measure.contributions is not None:
                    rows_of[i, j].append(measure.contributions(fitted, encoded.test, encoded.y_test))
    for i, of_loss in enumerate(found):
        pairs = [zip(rows_of[i, 0], rows_of[i, j], strict=True) for j in range(1, 1 + len(METHODS))]
        spreads = [Spread.of_rows([one - other for one, other in pair]).variance for pair in pairs]
        yield of_loss, np.array(spreads) if rows_of[i, 0] else None


def gains(setting: Setting, seed: int) -> list[dict[str, Any]]:
    """Return one record for each loss: the gains of all methods in all folds, and their rounding error."""
    n, effect, cv, losses = setting
    X, y = draw(n, effect, seed)
    numeric = [loss for loss in losses if loss == ERROR]
    classes = [loss for loss in losses if loss != ERROR]
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task, names, target in (("regression", numeric, y), ("binary", classes, y > 0)):
            of_losses = scores(X, target, task, cv, names) if names else ()
            for loss, (of_loss, variances) in zip(names, of_losses, strict=True):
                record = {"rows": n, "effect": effect, "folds": cv, "loss": loss, "seed": seed}
                record["gains"] = (of_loss[0] - of_loss[1:]).tolist()
                record["variances"] = None if variances is None else variances.tolist()
                found.append({**record, "rounding": rounding_error(of_loss.ravel())})
    return found


# Rates


def p_values(test: str, differences: NDArray[Any], record: dict[str, Any]) -> NDArray[Any]:
    """Return the adjusted p-values of all methods; NaN where there is no test.

    "compare" is what `compare` does: the spread is that of the rows where these tell, else that of the folds.
    """
    n_folds = record["folds"]
    spreads: list[Spread | None] = [None] * len(differences)
    if test == "compare" and record["variances"] is not None:
        spreads = [Spread(variance, record["rows"] - n_folds) for variance in record["variances"]]
    place = 0 if test == "plain, by folds" else 1
    found = [
        paired_p_values(row, n_folds, record["rounding"], spread)[place]
        for row, spread in zip(differences, spreads, strict=True)
    ]
    return np.array(holm(found))


def rates(records: Sequence[dict[str, Any]], test: str, *, centred: bool) -> tuple[float, float, float]:
    """Return the shares of comparisons that are tested, of tables with any finding, and with a winner.

    A winner is what the verdict calls unlikely to be chance: the best method, if it is not the baseline and
    its adjusted p-value is small.
    """
    expected = np.mean([np.mean(record["gains"], axis=1) for record in records], axis=0)
    tested, found, won = [], [], []
    for record in records:
        differences = np.array(record["gains"]) - (expected[:, None] if centred else 0)
        p = p_values(test, differences, record)
        best = differences.mean(axis=1).argmax()
        tested.append(np.mean(~np.isnan(p)))
        found.append(bool((p < SIGNIFICANCE).any()))
        won.append(bool(differences[best].mean() > 0 and p[best] < SIGNIFICANCE))
    return float(np.mean(tested)), float(np.mean(found)), float(np.mean(won))


def summary(records: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rates of each setting, loss and test."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[tuple(record[name] for name in SETTING)].append(record)
    for key, group in sorted(groups.items()):
        for test in ("plain, by folds", "corrected, by folds", "compare"):
            for kind in ("centred", "as it is") if key[1] == 0 else ("as it is",):
                found = rates(group, test, centred=kind == "centred")
                first = min(record["seed"] for record in group)
                yield dict(zip(FIELDS, (*key, test, kind, first, len(group), *found), strict=True))


def cell(share: float, n: int) -> str:
    """Format a share with its binomial standard error."""
    return f"{share:.3f} ± {math.sqrt(share * (1 - share) / n):.3f}"


def main() -> None:
    """Run what is missing, print the table, and append it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=500, help="noise tables; a fifth of it with effects")
    parser.add_argument("--first-seed", type=int, default=60_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kept", type=Path, default=Path("gains.jsonl"), help="file of all gains")
    given = parser.parse_args()
    kept = [json.loads(line) for line in given.kept.read_text().splitlines()] if given.kept.exists() else []
    done = {(record["rows"], record["effect"], record["folds"], record["seed"]) for record in kept}
    seeds = range(given.first_seed, given.first_seed + given.tables)
    todo = [
        (setting, seed)
        for position, seed in enumerate(seeds)
        for setting in (*NOISE, *(EFFECTS if position < given.tables // 5 else ()))
        if (*setting[:3], seed) not in done
    ]
    with given.kept.open("a") as file:
        calls = (delayed(gains)(*call) for call in todo)
        for found in Parallel(n_jobs=given.jobs, return_as="generator_unordered")(calls):
            kept += found
            file.write("".join(json.dumps(record) + "\n" for record in found))
            file.flush()
    rows = list(summary([record for record in kept if record["seed"] in seeds]))
    print("| rows | effect | folds | loss | test | gains | tables | tested | any p < 0.05 | a winner |")
    print("|---" * 10 + "|")
    for row in rows:
        shown = [row[name] for name in (*SETTING, "test", "gains", "tables")]
        shares = [f"{row['tested']:.0%}", *(cell(row[name], row["tables"]) for name in ("any", "winner"))]
        print("| " + " | ".join(map(str, (*shown, *shares))) + " |")
    is_new = not RATES.exists()
    RATES.parent.mkdir(parents=True, exist_ok=True)
    with RATES.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        writer.writerows({**row, **{name: f"{row[name]:.4f}" for name in SHARES}} for row in rows)


if __name__ == "__main__":
    main()
