"""Compare every encoder on one data set simulated as in the paper, and draw the result.

Run by ``make demo``. The table is printed and the pictures are written to ``demo_output``.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import altair as alt
import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from xgboost import XGBRegressor

from sufrep import make_encoder, simulate
from sufrep.encoders import METHODS

OUTPUT = Path(__file__).parents[1] / "demo_output"


def evaluate(method: str, X: pd.DataFrame, y: np.ndarray) -> tuple[float, float, int, Pipeline]:
    """Fit one encoder with boosted trees; test error, seconds, columns added, and the pipeline."""
    parameters = {"n_components": 10} if method in ("low_rank", "sparse_low_rank") else {}
    if method == "sufficient":
        parameters = {"max_rows": 3_000}  # to choose on fewer rows takes seconds, not a minute
    encoder = make_encoder(method, "group", **parameters)
    # One thread: two that wait for each other on a busy machine can take five times as long.
    model = XGBRegressor(n_estimators=60, max_depth=5, learning_rate=0.15, n_jobs=1, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    start = perf_counter()
    pipeline = make_pipeline(encoder, model).fit(X_train, y_train)
    error = mean_squared_error(y_test, pipeline.predict(X_test))
    n_columns = len(encoder.get_feature_names_out()) - (X.shape[1] - 1)
    return error, perf_counter() - start, n_columns, pipeline


def main() -> None:
    """Run all methods, print the table, write the pictures."""
    console = Console()
    sample = simulate("latent_linear", n_latent=10, levels_per_latent=50, seed=1)
    X, y = pd.DataFrame(sample.columns()), sample.y
    console.print(
        f"[bold]sufrep demo[/bold]: {len(X):,} rows, {X.shape[1] - 1} covariates, "
        f"{X['group'].nunique()} levels that act through 10 hidden states (the paper's latent linear setup)"
    )
    results = {}
    columns = (TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(METHODS))
        for method in METHODS:
            progress.update(task, description=method)
            results[method] = evaluate(method, X, y)
            progress.advance(task)
    one_hot = results["one_hot"][0]
    columns = ("method", "columns added", "test MSE", "better than one-hot", "seconds")
    table = Table(*columns, title="xgboost, 20 % test rows")
    for column in table.columns[1:]:
        column.justify = "right"
    for method, (error, seconds, n_columns, _) in sorted(results.items(), key=lambda item: item[1][0]):
        better = f"{1 - error / one_hot:+.1%}"
        table.add_row(method, str(n_columns), f"{error:.3f}", better, f"{seconds:.1f}")
    console.print(table)
    improvement = {method: 1 - result[0] / one_hot for method, result in results.items()}
    write_pictures(improvement, results["means"][3])
    console.print(f"Pictures: {OUTPUT / 'improvement.png'} and {OUTPUT / 'levels.png'}")


def write_pictures(improvement: dict[str, float], pipeline: Pipeline) -> None:
    """Draw the improvement of each method, and the levels in the plane of their means."""
    OUTPUT.mkdir(exist_ok=True)
    rows = [{"method": method, "improvement": value} for method, value in improvement.items()]
    bars = (
        alt.Chart(alt.Data(values=rows), title="Test error below that of one-hot columns (one data set)")
        .mark_bar()
        .encode(
            x=alt.X("improvement:Q", axis=alt.Axis(format="%", tickCount=5), title="improvement"),
            y=alt.Y("method:N", sort="-x", title=None),
            color=alt.condition("datum.improvement > 0", alt.value("#2a78b5"), alt.value("#b5532a")),
        )
    )
    bars.properties(width=520).save(OUTPUT / "improvement.png", scale_factor=2)
    pipeline[0].plot("group").save(OUTPUT / "levels.png", scale_factor=2)


if __name__ == "__main__":
    main()
