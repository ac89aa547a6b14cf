"""Golden outputs: every number that an encoder gives on seeded samples, compared with a committed file.

A change of a number shows in the diff of ``golden.json``. If it is intended, remake the file and commit it
with the change that caused it::

    OMP_NUM_THREADS=1 .venv/bin/python tests/golden/test_golden.py

Only the public interface is used, so that the file outlives any change of the internals.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sufrep import LatentStateRegressor, ToNumbers, make_encoder, sufficiency_check
from sufrep.encoders import METHODS

FILE = Path(__file__).with_name("golden.json")
TOLERANCE = 1e-9

# An output is stored as the mean of each column, its mean weighted by the position of the row, and these
# rows. The last of the new rows has an unseen level.
SHOWN = [0, 3, 5, -1]

COVARIATES = ["size", "price", "age", "rain"]


@dataclass(frozen=True)
class Sample:
    """Training rows, new rows, and what else is passed to ``fit``."""

    train: pd.DataFrame
    new: pd.DataFrame
    y: np.ndarray
    weights: np.ndarray | None = None
    group: Any = "shop"

    def head(self, n: int) -> Sample:
        weights = None if self.weights is None else self.weights[:n]
        return replace(self, train=self.train[:n], y=self.y[:n], weights=weights)


def plain(seed: int = 0, n: int = 120, n_levels: int = 9) -> Sample:
    """Levels act on covariates of different scales and on a continuous target."""
    rng = np.random.default_rng(seed)
    shift = rng.normal(size=(n_levels + 2, 4))  # two more for levels that fit does not see
    level = np.concatenate([np.arange(n_levels), rng.integers(0, n_levels, n)])

    def rows(code: np.ndarray) -> pd.DataFrame:
        noise = rng.normal(size=(len(code), 4))
        return pd.DataFrame(
            {
                "shop": [f"s{value}" for value in code],
                "size": shift[code, 0] + noise[:, 0],
                "price": 50_000 + 8_000 * (shift[code, 1] + noise[:, 1]),
                "age": 0.1 * (shift[code, 2] + shift[code, 0] + noise[:, 2]),
                "rain": np.round(20 + 5 * (shift[code, 3] + noise[:, 3])),
            }
        )

    train = rows(level)
    new = rows(np.arange(n_levels + 2))
    new["shop"] = new["shop"].where(new.index < n_levels, "unseen")
    slope = 0.5 + 0.5 * shift[level, 1]
    y = 2 * shift[level, 0] + slope * train["size"] + 0.3 * train["rain"] + rng.normal(size=len(level))
    return Sample(train, new, y.to_numpy())


def nulls() -> Sample:
    """Nulls in the group and in the covariates."""
    sample = plain(1)
    rng = np.random.default_rng(11)
    for frame in (sample.train, sample.new):
        for column in ("shop", "size", "rain"):
            frame.loc[rng.random(len(frame)) < 0.12, column] = None
    sample.new.loc[3, "shop"] = None
    return sample


def weights() -> Sample:
    """Frequencies, some of them zero."""
    sample = plain(2)
    weight = np.random.default_rng(12).choice([0.0, 1.0, 2.0, 5.0], len(sample.y))
    return Sample(sample.train, sample.new, sample.y, weight)


def several_groups() -> Sample:
    """Two group columns and their combinations."""
    sample = plain(3, n=140, n_levels=6)
    rng = np.random.default_rng(13)
    for frame in (sample.train, sample.new):
        frame.insert(1, "town", rng.choice(["east", "west"], len(frame)))
    return Sample(sample.train, sample.new, sample.y, group=["shop", "town", ("shop", "town")])


def two_classes() -> Sample:
    sample = plain(4)
    return Sample(sample.train, sample.new, (sample.y > np.median(sample.y)).astype(int))


def three_classes() -> Sample:
    """Classes written as text."""
    sample = plain(5, n=140)
    code = np.digitize(sample.y, np.quantile(sample.y, [0.4, 0.7]))
    return Sample(sample.train, sample.new, np.array(["low", "middle", "top"], dtype=object)[code])


SAMPLES = {
    "plain": plain,
    "nulls": nulls,
    "weights": weights,
    "several groups": several_groups,
    "two classes": two_classes,
    "three classes": three_classes,
}

# What else differs within an encoder: a name, the method, its parameters, the sample.
VARIANTS: list[tuple[str, str, dict[str, Any], str]] = [
    *(
        (f"{method} {label}", method, parameters, sample)
        for method, label, parameters, samples in [
            ("means", "shrunk", {"shrinkage": "auto"}, ("plain", "weights", "nulls")),
            ("means", "leave one out", {"leave_one_out": True}, ("plain", "weights", "nulls")),
            ("means", "with target", {"use_target": True}, ("plain", "nulls", "three classes")),
            (
                "means",
                "with target, shrunk",
                {"use_target": True, "shrinkage": "auto"},
                ("plain", "weights", "two classes"),
            ),
            ("low_rank", "with target", {"use_target": True, "n_components": 2}, ("plain", "three classes")),
            ("low_rank", "shrunk", {"shrinkage": "auto"}, ("plain", "several groups")),
            ("low_rank", "in raw units", {"standardize": False, "n_components": 2}, ("plain",)),
            ("sparse_low_rank", "shrunk", {"shrinkage": "auto"}, ("plain", "nulls")),
            ("mnl", "by discriminant", {"solver": "lda"}, ("plain", "weights", "nulls")),
            ("latent_state", "both", {"output": "both", "n_states": 3}, ("plain", "nulls")),
            (
                "latent_state",
                "with target",
                {"output": "both", "n_states": 2, "use_target": True},
                ("plain", "weights", "two classes"),
            ),
            ("local_effect", "both", {"output": "both"}, ("plain", "weights", "two classes")),
            ("one_hot", "sparse", {"sparse_output": True}, ("plain", "several groups")),
            *(
                (method, "pooled", {"min_frequency": 11}, ("plain", "nulls"))
                for method in ("means", "one_hot", "mixed_model", "local_effect")
            ),
            ("means", "dropping the rest", {"remainder": "drop"}, ("plain",)),
            ("means", "missing as prior", {"missing": "prior"}, ("nulls",)),
            ("means", "of two covariates", {"covariates": ["age", "price"]}, ("plain",)),
            ("sufficient", "of predictions only", {"cv": 3, "families": ("prediction",)}, ("plain",)),
            ("fisher", "of another seed", {"cv": 3, "random_state": 7}, ("two classes",)),
        ]
        for sample in samples
    ),
]

CHUNKABLE = [
    ("means", {}),
    ("low_rank", {}),
    ("sparse_low_rank", {}),
    ("fisher", {}),
    ("permutation", {}),
    ("mnl", {"solver": "lda"}),
]


def tree(sample: Sample) -> Any:
    """A judge for ``sufficient`` that takes little time."""
    quantity = sample.y.dtype == float
    cls = DecisionTreeRegressor if quantity else DecisionTreeClassifier
    return cls(max_depth=4, random_state=0)


def encoder_of(method: str, sample: Sample, parameters: dict[str, Any]) -> Any:
    if method == "sufficient":
        parameters = {"estimator": tree(sample), "cv": 3, **parameters}
    return make_encoder(method, sample.group, **parameters).set_output(transform="default")


def columns_of(encoder: Any, output: Any) -> dict[str, Any]:
    dense = output.toarray() if sparse.issparse(output) else np.asarray(output)
    return dict(zip(encoder.get_feature_names_out(), dense.T, strict=True))


def summarise(columns: dict[str, Any]) -> dict[str, list[Any]]:
    """Two means of each column and, of those that were encoded, a few rows."""
    found = {}
    for name, values in columns.items():
        if values.dtype == object and any(isinstance(value, str) for value in values):
            found[name] = [str(values[row]) for row in SHOWN]
            continue
        numbers = values.astype(float)
        place = np.arange(1, len(numbers) + 1) / len(numbers)
        means = [float(np.nanmean(numbers)), float(np.nanmean(place * numbers))]
        found[name] = means if name in COVARIATES else [*means, *numbers[SHOWN].tolist()]
    return found


def encode(method: str, sample_name: str, parameters: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The outputs of one encoder on one sample."""
    sample = SAMPLES[sample_name]()
    if method == "sufficient":
        sample = sample.head(70)
    encoder = encoder_of(method, sample, parameters)
    train = encoder.fit_transform(sample.train, sample.y, sample_weight=sample.weights)
    outputs = {"fit_transform": summarise(columns_of(encoder, train))}
    outputs["transform"] = summarise(columns_of(encoder, encoder.transform(sample.new)))
    if method == "sufficient":
        report = encoder.report_["candidates"]
        outputs["report"] = dict(
            zip(
                report["candidate"],
                map(list, zip(report["loss"], report["chosen"], strict=True)),
                strict=True,
            )
        )
    return outputs


def in_chunks(method: str, parameters: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """``partial_fit`` in three chunks, with weights."""
    sample = weights()
    encoder = encoder_of(method, sample, parameters)
    for rows in (slice(0, 25), slice(25, 80), slice(80, None)):
        encoder.partial_fit(sample.train[rows], sample.y[rows], sample_weight=sample.weights[rows])
    return {"transform": summarise(columns_of(encoder, encoder.transform(sample.new)))}


def shared_categories() -> dict[str, dict[str, Any]]:
    """A text column as a covariate."""
    sample = nulls()
    rng = np.random.default_rng(14)
    for frame in (sample.train, sample.new):
        frame["colour"] = rng.choice(np.array(["red", "blue", None], dtype=object), len(frame))
    encoder = make_encoder("means", "shop", categorical_covariates="share")
    train = encoder.fit_transform(sample.train, sample.y)
    return {
        "fit_transform": summarise(columns_of(encoder, train)),
        "transform": summarise(columns_of(encoder, encoder.transform(sample.new))),
    }


def predictions(sample_name: str, **parameters: Any) -> dict[str, dict[str, Any]]:
    """Predictions of the mixture of experts."""
    sample = SAMPLES[sample_name]()
    model = LatentStateRegressor(sample.group, n_states=2, **parameters)
    model.fit(sample.train, sample.y, sample_weight=sample.weights)
    return {
        "predict": summarise({"train": model.predict(sample.train), "new rows": model.predict(sample.new)})
    }


def checked(level_as: str) -> dict[str, dict[str, Any]]:
    """The check of sufficiency of the levels' means."""
    sample = plain(6)
    check = sufficiency_check(
        make_encoder("means", "shop"), sample.train, sample.y, estimator=tree(sample), level_as=level_as, cv=3
    )
    numbers = {name: getattr(check, name) for name in check.__dataclass_fields__}
    return {"check": {name: [value] for name, value in numbers.items() if isinstance(value, (int, float))}}


def to_numbers() -> dict[str, dict[str, Any]]:
    """Text and dates as numbers."""
    frame = plain(7).train.assign(
        day=pd.date_range("2020-02-25", periods=129).astype(str), colour=["red", "blue", None] * 43
    )
    found = ToNumbers(keep="shop").fit_transform(frame)
    return {"fit_transform": summarise({name: found[name].to_numpy() for name in found.columns})}


def cases() -> Iterator[tuple[str, Callable[[], dict[str, dict[str, Any]]]]]:
    """The name of each case, and what computes its outputs."""
    for method in METHODS:
        for sample in SAMPLES:
            yield f"{method} | {sample}", lambda m=method, s=sample: encode(m, s, {})
    for name, method, parameters, sample in VARIANTS:
        yield f"{name} | {sample}", lambda m=method, s=sample, p=parameters: encode(m, s, p)
    for method, parameters in CHUNKABLE:
        yield f"{method} in chunks | weights", lambda m=method, p=parameters: in_chunks(m, p)
    yield "means shared categories | nulls", shared_categories
    for sample in ("plain", "nulls", "weights", "several groups"):
        yield f"latent_regressor | {sample}", lambda s=sample: predictions(s)
    yield (
        "latent_regressor of trees | plain",
        lambda: predictions("plain", expert=DecisionTreeRegressor(max_depth=2, random_state=0)),
    )
    for level_as in ("intercept", "one_hot"):
        yield f"sufficiency_check, level as {level_as} | plain", lambda way=level_as: checked(way)
    yield "to_numbers | plain", to_numbers


CASES = dict(cases())


def compute(name: str) -> dict[str, dict[str, Any]]:
    # Small samples make some solvers stop early; only the numbers are of interest here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name]()


def shorten(value: Any) -> Any:
    """Twelve significant digits, whole numbers without a point, NaN as null."""
    if not isinstance(value, (int, float)):
        return value
    if math.isnan(value):
        return None
    short = float(f"{value:.12g}")
    return int(short) if short.is_integer() else short


def rows_of_file(results: dict[str, dict[str, dict[str, Any]]]) -> str:
    """JSON with a column a line, so that a diff shows which columns changed."""
    lines = []
    for name, outputs in results.items():
        for output, columns in outputs.items():
            inside = [
                f"  {json.dumps(column)}: {json.dumps([shorten(v) for v in values], separators=(',', ':'))}"
                for column, values in columns.items()
            ]
            lines.append(f"{json.dumps(f'{name} | {output}')}: {{\n" + ",\n".join(inside) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


@cache
def golden() -> dict[str, dict[str, list[Any]]]:
    stored: dict[str, dict[str, list[Any]]] = json.loads(FILE.read_text())
    return stored


def differ(found: list[Any], expected: list[Any]) -> bool:
    if any(isinstance(value, str) for value in expected):
        return found != expected
    left, right = (np.array(values, dtype=float) for values in (found, expected))
    same = len(left) == len(right) and np.allclose(left, right, TOLERANCE, TOLERANCE, equal_nan=True)
    return not same


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_those_of_the_golden_file(name):
    problems = []
    for output, columns in compute(name).items():
        expected = golden()[f"{name} | {output}"]
        if list(columns) != list(expected):
            problems.append(f"{output}: columns are {list(columns)}, expected {list(expected)}")
            continue
        problems += [
            f"{output}, column {column!r}: {values} instead of {expected[column]}"
            for column, values in columns.items()
            if differ(values, expected[column])
        ]
    assert not problems, f"{name}\n" + "\n".join(problems)


def test_the_golden_file_holds_no_case_that_is_gone():
    known = {key.rsplit(" | ", 1)[0] for key in golden()}
    assert known == set(CASES)


if __name__ == "__main__":
    FILE.write_text(rows_of_file({name: compute(name) for name in CASES}))
