"""Encoders that need moments only, on frames of every kind, against exact arithmetic and against laws.

Four kinds of cases:

- ``means``: a small frame; the means of every level are compared with rational numbers.
- ``many``: the same for up to 3,000 rows over many orders of magnitude, drawn by numpy.
- ``extreme``: a small frame and any other method; columns are finite or the error is ours, and every frame
  library gives the same.
- ``laws``: ordinary numbers; the order of the rows, the names of the levels, chunks, and weights in the place
  of repeated rows change nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse

from fuzz import frames
from fuzz.part import Case, Outcome, Part, signature
from sufrep import MeansEncoder, make_encoder
from sufrep.errors import SampleWeightError, SufrepError

# Digits that the means of a level keep, relative to the mean size of its own numbers.
_EXACT = 1e-12
# Examples that hypothesis draws from one seed.
_BATCH = 20
# Every method that needs moments only, with the parameters that change what is computed from them.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "means, shrunk": ("means", {"shrinkage": "auto"}),
    "means, left out": ("means", {"leave_one_out": True}),
    "means with the target": ("means", {"use_target": True, "cv": 2}),
    "means, pooled": ("means", {"min_frequency": 2}),
    "low_rank": ("low_rank", {}),
    "low_rank with the target": ("low_rank", {"use_target": True, "cv": 2}),
    "low_rank, raw units": ("low_rank", {"standardize": False, "n_components": 1}),
    "sparse_low_rank": ("sparse_low_rank", {}),
    "mnl by discriminant": ("mnl", {"solver": "lda"}),
    "one_hot": ("one_hot", {}),
    "one_hot, sparse": ("one_hot", {"sparse_output": True}),
    "deviation": ("deviation", {}),
    "helmert": ("helmert", {}),
    "multi_permutation": ("multi_permutation", {}),
    "fisher": ("fisher", {"cv": 2, "target_type": "continuous"}),
}
_TOLERANCE = {"sparse_low_rank": 1e-3}


class Numbers(Part):
    """Encoders against exact arithmetic and laws; hypothesis draws and minimises the cases."""

    name = "numbers"

    def check(self, case: Case) -> Outcome:
        """Run one case."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Overflow and the like must have been thought of.
                warnings.simplefilter("error", RuntimeWarning)
                return _CHECKS[case["kind"]](case)
        except SufrepError as error:
            if _is_expected(case, error):
                return Outcome("our error")
            return _finding(case, f"refused: {error}", error)
        except AssertionError as error:
            what = str(error).splitlines()
            return Outcome("wrong", "; ".join(what[:6]), signature("numbers", f"{_title(case)}: {what[0]}"))
        except Exception as error:
            return _finding(case, f"{type(error).__name__}: {error}", error)

    def draw(self, seed: int) -> Case:
        """The first case of a seed."""
        return next(self.run(seed, set()))[0]

    def run(self, seed: int, known: set[str]) -> Iterator[tuple[Case, Outcome]]:
        """Run the examples of a seed; the first that fails is minimised."""
        ran: list[tuple[Case, Outcome]] = []

        @hypothesis.seed(seed)
        @settings(
            max_examples=_BATCH,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
        )
        @given(cases())
        def law(case: Case) -> None:
            outcome = self.check(case)
            if outcome.finding and outcome.signature not in known:
                raise _FoundError(case, outcome)
            ran.append((case, outcome))

        try:
            law()
        except _FoundError as found:
            ran.append((found.case, found.outcome))
        except hypothesis.errors.Flaky as error:
            ran.append(({"kind": "flaky"}, Outcome("flaky", str(error)[:500], "numbers: flaky")))
        yield from ran


class _FoundError(AssertionError):
    def __init__(self, case: Case, outcome: Outcome) -> None:
        super().__init__(outcome.signature)
        self.case, self.outcome = case, outcome


def _title(case: Case) -> str:
    return f"{case['kind']} {case.get('method', '')}".strip()


def _finding(case: Case, what: str, error: BaseException) -> Outcome:
    return Outcome("wrong", what[:1000], signature("numbers", _title(case), error))


def _is_expected(case: Case, error: SufrepError) -> bool:
    """Plain means have to exist for all numbers; other methods may refuse what they cannot compute."""
    if case["kind"] == "extreme":
        return True
    weights = case.get("weights")
    return isinstance(error, SampleWeightError) and weights is not None and not any(weights)


# Cases


@st.composite
def cases(draw: Any) -> Case:
    """A case of any kind."""
    kind = draw(st.sampled_from(["means", "extreme", "laws", "many"]))
    if kind == "many":
        return {"kind": kind, "seed": draw(st.integers(0, 2**32 - 1)), "n": draw(st.integers(1, 3000))}
    if kind == "laws":
        return {
            "kind": kind,
            "method": draw(st.sampled_from(sorted(METHODS))),
            "seed": draw(st.integers(0, 2**32 - 1)),
            "n": draw(st.integers(2, 40)),
            "unit": draw(st.sampled_from([0, 0, 3, -3, 50, -50, 100, -100])),
        }
    n_rows = draw(st.integers(1, 12))
    case = {
        "kind": kind,
        "library": draw(st.sampled_from(frames.LIBRARIES)),
        "groups": [
            draw(frames.columns(n_rows, frames.GROUP_KINDS, few=True)) for _ in range(draw(st.integers(1, 3)))
        ],
        "covariates": [
            draw(frames.columns(n_rows, frames.COVARIATE_KINDS, few=False))
            for _ in range(draw(st.integers(1, 4)))
        ],
        "weights": draw(frames.weights(n_rows)),
    }
    if kind == "extreme":
        case["method"] = draw(st.sampled_from(sorted(METHODS)))
        case["other"] = draw(st.sampled_from(frames.LIBRARIES))
        floats = st.one_of(st.floats(-9, 9), st.sampled_from([1e300, -1e300, 1e-300, 1e160, 0.0]))
        case["target"] = draw(st.lists(floats, min_size=n_rows, max_size=n_rows))
    return case


# Exact arithmetic


def _check_means(case: Case) -> Outcome:
    """Levels, counts, weights and means of `MeansEncoder` against rational numbers."""
    groups = [frames.python_values(column) for column in case["groups"]]
    covariates = [frames.python_values(column) for column in case["covariates"]]
    frame = frames.build(case["library"], [*case["groups"], *case["covariates"]])
    _compare_means(frame, groups, covariates, case["weights"])
    return Outcome("same")


def _check_many(case: Case) -> Outcome:
    """The same for many rows, whose numbers span many orders of magnitude."""
    rng = np.random.default_rng(case["seed"])
    n = case["n"]
    group = rng.integers(0, rng.integers(1, 40), n)
    spread = 10.0 ** rng.uniform(-rng.choice([0, 3, 12]), rng.choice([0, 3, 12]), n)
    covariate = (rng.normal(size=n) * spread + rng.choice([0.0, 1.0, 1e9])) * 10.0 ** rng.choice(
        [0, -200, 200]
    )
    covariate[rng.random(n) < rng.choice([0.0, 0.2])] = math.nan
    weights = 10.0 ** rng.uniform(-12, 12, n) if rng.random() < 0.5 else None
    frame = pd.DataFrame({"g": group, "x": covariate})
    lists = [group.tolist()], [covariate.tolist()]
    _compare_means(frame, *lists, None if weights is None else weights.tolist())
    return Outcome("same")


def _compare_means(frame: Any, groups: list[list[Any]], covariates: list[list[Any]], weights: Any) -> None:
    positions = list(range(len(groups)))
    used = [len(groups) + j for j in range(len(covariates))]
    encoder = MeansEncoder(positions, covariates=used, remainder="drop")
    found = np.asarray(encoder.fit_transform(frame, sample_weight=weights), dtype=float)
    own = [1.0] * len(groups[0]) if weights is None else weights
    if not any(own):
        raise AssertionError("weights that are all zero were accepted")
    for g, levels in enumerate(groups):
        levels = [None if frames.is_null(level) else level for level in levels]
        table = list(encoder.representations_.values())[g]
        moments = list(encoder.moments_.values())[g]
        there = {level for level, weight in zip(levels, own, strict=True) if weight > 0}
        assert set(table.levels.tolist()) == there, "other levels than in the rows"
        place = {level: i for i, level in enumerate(moments.levels.tolist())}
        for level in there:
            rows = [i for i, one in enumerate(levels) if one == level and own[i] > 0]
            assert moments.count[place[level]] == len(rows), "another count"
            total = math.fsum(own[i] for i in rows)
            assert math.isclose(moments.weight[place[level]], total, rel_tol=_EXACT), "another weight"
        for j, values in enumerate(covariates):
            vector = found[:, g * len(covariates) + j]
            _compare_covariate(levels, values, own, vector, moments.observed[:, j], place)


def _compare_covariate(
    levels: list[Any],
    values: list[Any],
    weights: list[float],
    found: Any,
    observed: Any,
    place: dict[Any, int],
) -> None:
    """The means that rows get, of one group and one covariate."""
    known = [i for i, value in enumerate(values) if not frames.is_null(value) and weights[i] > 0]
    overall = _exact_mean(known, values, weights)
    # A subnormal number has fewer digits.
    smallest = Fraction(2) ** -1070
    expected = {}
    for level in place:
        rows = [i for i in known if levels[i] == level]
        expected[level] = _exact_mean(rows, values, weights) if rows else overall
        total = math.fsum(weights[i] for i in rows)
        assert math.isclose(observed[place[level]], total, rel_tol=_EXACT), "another observed weight"
    for i, level in enumerate(levels):
        # A level all of whose rows have no weight was not seen, and gets the prior.
        if level in expected:
            mean, size = expected[level]
            allowed = Fraction(_EXACT) * size + smallest
            assert math.isfinite(found[i]), f"a mean that is not finite\n{found[i]} for {float(mean)}"
            assert abs(Fraction(found[i]) - mean) <= allowed, f"another mean\n{found[i]} for {float(mean)}"


def _exact_mean(rows: list[int], values: list[Any], weights: list[float]) -> tuple[Fraction, Fraction]:
    """The mean, and the mean absolute value; (0, 0) without rows."""
    if not rows:
        return Fraction(0), Fraction(0)
    total = sum(Fraction(weights[i]) for i in rows)
    mean = sum(Fraction(weights[i]) * Fraction(values[i]) for i in rows) / total
    return mean, sum(Fraction(weights[i]) * abs(Fraction(values[i])) for i in rows) / total


# Other methods


def _check_extreme(case: Case) -> Outcome:
    """Columns are finite, and the same from another library."""
    first = _columns_of(case, case["library"])
    assert all(np.isfinite(part).all() for part in first), f"columns that are not finite\n{first}"
    second = _columns_of(case, case["other"])
    for one, other in zip(first, second, strict=True):
        assert one.shape == other.shape, f"other columns from another library\n{one.shape}, {other.shape}"
        size = np.abs(one).max(axis=0, initial=0.0)
        same = np.abs(one - other) <= 1e-9 * size
        assert same.all(), f"other numbers from another library\n{one.tolist()}\n{other.tolist()}"
    return Outcome("same")


def _columns_of(case: Case, library: str) -> list[Any]:
    """The new columns of training rows and of the same rows as new ones, if the encoder does not refuse."""
    n_groups = len(case["groups"])
    frame = frames.build(library, [*case["groups"], *case["covariates"]])
    name, parameters = METHODS[case["method"]]
    encoder = make_encoder(name, list(range(n_groups)), remainder="drop", **parameters)
    encoder.set_params(covariates=[n_groups + j for j in range(len(case["covariates"]))])
    trained = encoder.fit_transform(frame, case["target"], sample_weight=case["weights"])
    return [_dense(trained), _dense(encoder.transform(frame))]


def _dense(columns: Any) -> Any:
    return np.asarray(columns.toarray() if sparse.issparse(columns) else columns, dtype=float)


# Laws


def _check_laws(case: Case) -> Outcome:
    """What must not change the vectors of the levels."""
    rng = np.random.default_rng(case["seed"])
    frame, y = _sample(case, rng)
    n = len(frame)
    whole = _vectors(case, [(frame, y, None)])
    shuffled = rng.permutation(n)
    _assert_same(case, whole, _vectors(case, [(frame.iloc[shuffled], y[shuffled], None)]), "order of rows")
    cuts = [0, *sorted(rng.integers(1, n, 2).tolist()), n]
    chunks = [(frame[a:b], y[a:b], None) for a, b in pairwise(cuts) if b > a]
    _assert_same(case, whole, _vectors(case, chunks), "chunks")
    times = rng.integers(0, 3, n)
    times[0] = 2
    repeated = np.repeat(np.arange(n), times)
    weighted = _vectors(case, [(frame, y, times.astype(float))])
    _assert_same(case, weighted, _vectors(case, [(frame.iloc[repeated], y[repeated], None)]), "weights")
    if not case["method"].startswith(("one_hot", "deviation", "helmert", "multi_permutation")):
        names = {level: f"level {place}" for level, place in zip("abcdef", rng.permutation(6), strict=True)}
        renamed = _vectors(case, [(frame.assign(g=frame["g"].map(names)), y, None)])
        back = {names[level]: level for level in "abcdef"}
        renamed = {back.get(level): vector for level, vector in renamed.items()}
        _assert_same(case, whole, renamed, "names of levels")
    return Outcome("same")


def _sample(case: Case, rng: np.random.Generator) -> tuple[pd.DataFrame, Any]:
    """Levels that differ in their means, in continuous data, in which singular values do not tie."""
    n = case["n"]
    level = rng.integers(0, rng.integers(1, 7), n)
    numbers = rng.normal(size=(n, 3)) * [1.0, 5.0, 1.0] + np.column_stack(
        [level, -(level**2), 0 * level + 100]
    )
    numbers[rng.random((n, 3)) < rng.choice([0.0, 0.1])] = math.nan
    numbers[:, 0] *= 10.0 ** case["unit"]
    frame = pd.DataFrame({"g": np.array(list("abcdef"), dtype=object)[level]})
    return frame.assign(**{name: numbers[:, j] for j, name in enumerate("xyz")}), level + rng.normal(size=n)


def _vectors(case: Case, chunks: list[tuple[Any, Any, Any]]) -> dict[Any, Any]:
    name, parameters = METHODS[case["method"]]
    encoder = make_encoder(name, "g", **parameters)
    for rows, y, weights in chunks:
        encoder.partial_fit(rows, y, sample_weight=weights)
    table = encoder.representations_["g"]
    return dict(zip(table.levels.tolist(), _dense(table.values), strict=True))


def _assert_same(case: Case, one: dict[Any, Any], other: dict[Any, Any], law: str) -> None:
    assert set(one) == set(other), f"{law}: other levels"
    levels = list(one)
    left, right = (np.array([found[level] for level in levels]) for found in (one, other))
    assert left.shape == right.shape, f"{law}: other columns\n{left.shape}, {right.shape}"
    size = np.abs(left).max(axis=0, initial=0.0)
    same = np.abs(left - right) <= _TOLERANCE.get(case["method"], 1e-6) * size
    assert same.all(), f"{law}: other numbers\n{left.tolist()}\n{right.tolist()}"


_CHECKS = {"means": _check_means, "many": _check_many, "extreme": _check_extreme, "laws": _check_laws}
