"""Means: those that R prints and those of a loop over the rows; shrunk, left out, and with the target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.model_selection import KFold
from sklearn.preprocessing import TargetEncoder

from sufrep import GroupMoments, MeansEncoder, errors
from sufrep.solvers.shrinkage import estimate_means_prior, shrink_means

NUMBERS = st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False, width=32))


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]), NUMBERS, NUMBERS, st.sampled_from([0.0, 0.5, 1.0, 2.0])
    ),
    min_size=1,
    max_size=25,
)


def naive_means(rows: list[tuple[Any, ...]]) -> dict[Any, list[float]]:
    """Weighted means by level; the overall mean where a level has no value, 0 where no level has one."""
    counted = [row for row in rows if row[-1] > 0]

    def mean(some: list[tuple[Any, ...]], j: int) -> float | None:
        seen = [(row[j], row[-1]) for row in some if row[j] is not None]
        return sum(value * weight for value, weight in seen) / sum(w for _, w in seen) if seen else None

    found: dict[Any, list[float]] = {}
    for level in {row[0] for row in counted}:
        own = [mean([row for row in counted if row[0] == level], j) for j in (1, 2)]
        overall = [mean(counted, j) or 0.0 for j in (1, 2)]
        found[level] = [rest if value is None else value for value, rest in zip(own, overall, strict=True)]
    return found


def test_means_are_those_of_the_r_package(r_fixtures):
    rows = pd.read_csv(r_fixtures / "input.csv")
    expected = pd.read_csv(r_fixtures / "means.csv", index_col="level")
    encoder = MeansEncoder("g", covariates=["x1", "x2", "x3", "x4", "x5"]).fit(rows)
    table = encoder.table(library="pandas").set_index("g")
    assert table.index.tolist() == expected.index.tolist()
    np.testing.assert_allclose(table.drop(columns="weight"), expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(table["weight"], rows["g"].value_counts().sort_index())


@given(rows=ROWS)
def test_means_are_those_of_a_loop_over_the_rows(rows):
    assume(any(row[-1] > 0 for row in rows))
    frame = pd.DataFrame(rows, columns=["g", "x", "z", "weight"]).astype({"x": float, "z": float})
    encoder = MeansEncoder("g", covariates=["x", "z"]).fit(frame, sample_weight=frame["weight"])
    table = encoder.representations_["g"]
    expected = naive_means(rows)
    assert set(table.levels) == set(expected)
    for level, vector in expected.items():
        np.testing.assert_allclose(table.lookup([level])[0], vector, rtol=1e-9, atol=1e-6)


def test_a_level_without_a_value_of_a_covariate_gets_its_overall_mean():
    rows = pd.DataFrame({"g": list("aab"), "x": [1.0, 3.0, None], "z": [0.0, 0.0, 6.0]})
    table = MeansEncoder("g").fit(rows).representations_["g"]
    np.testing.assert_array_equal(table.values, [[2.0, 0.0], [2.0, 6.0]])


def test_a_covariate_that_is_null_everywhere_becomes_zero():
    rows = pd.DataFrame({"g": list("aab"), "x": [1.0, 3.0, 5.0], "z": [np.nan] * 3})
    np.testing.assert_array_equal(MeansEncoder("g").fit(rows).representations_["g"].values[:, 1], [0.0, 0.0])


def test_means_far_from_zero_keep_their_digits():
    far = 1.7e9  # seconds since 1970
    rows = pd.DataFrame({"g": ["a", "a", "b", "b"], "time": far + np.array([0.25, 0.75, 1.25, 1.75])})
    table = MeansEncoder("g").fit(rows).representations_["g"]
    np.testing.assert_array_equal(table.values.ravel() - far, [0.5, 1.5])


def test_output_columns_are_named_after_group_and_covariate():
    rows = pd.DataFrame({"zip": ["a", "b"], "city": ["u", "v"], "sqft": [1, 2], "new": [True, False]})
    encoder = MeansEncoder(["zip", ("zip", "city")]).fit(rows)
    assert encoder.get_feature_names_out().tolist() == [
        *("sqft", "new", "zip_mean_sqft", "zip_mean_new", "zip:city_mean_sqft", "zip:city_mean_new"),
    ]
    assert MeansEncoder(0).fit([["a", 1.0]]).get_feature_names_out(["g", "x"]).tolist() == ["x", "g_mean_x"]


def test_booleans_and_integers_are_covariates():
    rows = pd.DataFrame(
        {"g": list("aab"), "flag": [True, False, True], "n": np.array([1, 2, 9], dtype="uint8")}
    )
    values = MeansEncoder("g").fit(rows).representations_["g"].values
    np.testing.assert_array_equal(values, [[0.5, 1.5], [1.0, 9.0]])


def test_text_columns_join_by_the_shares_of_their_levels():
    rows = pd.DataFrame({"g": list("aaab"), "colour": ["red", "blue", None, "red"]})
    encoder = MeansEncoder("g", categorical_covariates="share", remainder="drop").fit(rows)
    assert encoder.get_feature_names_out().tolist() == [
        *("g_mean_colour=blue", "g_mean_colour=red", "g_mean_colour is null"),
    ]
    np.testing.assert_allclose(encoder.representations_["g"].values, [[1 / 3] * 3, [0, 1, 0]], rtol=1e-15)


def test_text_columns_of_many_levels_stay_out_of_the_shares():
    rows = pd.DataFrame({"g": ["a", "b"] * 20, "x": 1.0, "name": [f"name {i}" for i in range(40)]})
    encoder = MeansEncoder("g", categorical_covariates="share").fit(rows)
    assert encoder.get_feature_names_out().tolist() == ["x", "name", "g_mean_x"]


def test_rare_levels_share_the_mean_of_their_rows_together():
    rows = pd.DataFrame({"g": list("aaabcc"), "x": [1.0, 2.0, 3.0, 10.0, 20.0, 60.0]})
    table = MeansEncoder("g", min_frequency=3).fit(rows).representations_["g"]
    np.testing.assert_allclose(table.lookup(["a", "b", "c"]).ravel(), [2.0, 30.0, 30.0])


def test_one_rare_level_stays_by_itself():
    rows = pd.DataFrame({"g": list("aaabbbc"), "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 60.0]})
    table = MeansEncoder("g", min_frequency=2).fit(rows).representations_["g"]
    assert table.lookup(["c"]) == 60.0


def test_a_missing_group_may_be_a_level_or_unknown():
    rows = pd.DataFrame({"g": ["a", "b", None], "x": [1.0, 3.0, 8.0]})
    assert MeansEncoder("g", remainder="drop").fit_transform(rows).ravel().tolist() == [1.0, 3.0, 8.0]
    encoder = MeansEncoder("g", missing="prior", remainder="drop")
    assert encoder.fit_transform(rows).ravel().tolist() == [1.0, 3.0, 2.0]
    with pytest.raises(errors.MissingLevelError, match="'g' holds 1 null"):
        MeansEncoder("g", missing="error").fit(rows)


def test_infinite_covariates_are_refused():
    rows = pd.DataFrame({"g": ["a", "b"], "x": [1.0, np.inf]})
    with pytest.raises(
        errors.InfiniteValueError, match=r"'x' contains infinity: 1 value\(s\), the first in row 1"
    ):
        MeansEncoder("g").fit(rows)


def test_without_covariates_there_is_nothing_to_average():
    with pytest.raises(errors.NoCovariateError, match=r"is a numeric covariate other than.*'g'"):
        MeansEncoder("g").fit(pd.DataFrame({"g": ["a", "b"]}))


def test_a_text_column_is_no_covariate():
    rows = pd.DataFrame({"g": ["a", "b"], "x": ["1", "2"]})
    with pytest.raises(errors.NotNumericError, match="Column 'x' holds"):
        MeansEncoder("g", covariates=["x"]).fit(rows)


def naive_left_out(frame: pd.DataFrame, level_of: list[Any], weights: Any) -> np.ndarray:
    """For each row: the mean of the other rows of its level and of one more row at the overall mean."""
    x, own = frame[["x", "z"]].to_numpy(), np.asarray(weights, dtype=float)
    known = np.array([level is not None for level in level_of]) & (own > 0)
    found = np.empty_like(x)
    for j in range(2):
        seen = known & ~np.isnan(x[:, j])
        center = np.average(x[seen, j], weights=own[seen]) if seen.any() else 0.0
        for i in range(len(x)):
            others = [k for k in np.flatnonzero(seen) if k != i and level_of[k] == level_of[i]]
            total = sum(own[k] * x[k, j] for k in others) + center
            found[i, j] = total / (sum(own[k] for k in others) + 1) if level_of[i] is not None else center
    return found


def holey(seed: int, n: int = 40) -> tuple[pd.DataFrame, np.ndarray]:
    """Levels of many sizes, one of them of a single row, with nulls everywhere and weights."""
    rng = np.random.default_rng(seed)
    level = rng.choice(["a", "b", "c", "d", "e", None], n, p=[0.4, 0.2, 0.15, 0.1, 0.05, 0.1])
    level[0] = "alone"
    shift = np.array([len(str(name)) + (ord(str(name)[0]) % 5) for name in level])
    frame = pd.DataFrame({"g": level, "x": rng.normal(size=n) + shift, "z": 3 * rng.normal(size=n) - shift})
    frame.loc[rng.random(n) < 0.15, "x"] = None
    frame.loc[rng.random(n) < 0.15, "z"] = None
    return frame, rng.choice([0.5, 1.0, 2.0, 3.0], n)


@pytest.mark.parametrize("least", [None, 4])
@pytest.mark.parametrize("missing", ["level", "prior"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_gets_the_mean_of_its_level_without_itself(seed, weighted, missing, least):
    frame, weights = holey(seed)
    weights = weights if weighted else np.ones(len(frame))
    encoder = MeansEncoder("g", leave_one_out=True, missing=missing, min_frequency=least, remainder="drop")
    found = encoder.fit_transform(frame, sample_weight=weights if weighted else None)
    level_of = [None if level is None or level != level else level for level in frame["g"].tolist()]
    if missing == "level":
        level_of = ["null" if level is None else level for level in level_of]
    if least is not None:
        size = {level: weights[[own == level for own in level_of]].sum() for level in level_of}
        level_of = ["rare" if level and size[level] < least else level for level in level_of]
    np.testing.assert_allclose(found, naive_left_out(frame, level_of, weights), rtol=1e-9)


def test_a_row_does_not_move_its_own_mean_but_by_the_overall_one():
    frame, _ = holey(0)
    row = frame.index[(frame["g"] == "a") & frame["x"].notna()][0]
    changed = frame.assign(x=frame["x"].where(frame.index != row, 1000.0))
    encoder = MeansEncoder("g", leave_one_out=True, remainder="drop")
    before, after = encoder.fit_transform(frame), encoder.fit_transform(changed)
    centers = [part["x"].mean() for part in (frame, changed)]
    n_others = ((frame["g"] == "a") & frame["x"].notna()).sum() - 1
    np.testing.assert_allclose(after[row, 0] - before[row, 0], (centers[1] - centers[0]) / (n_others + 1))


def test_new_rows_get_the_mean_of_all_rows_of_their_level_and_of_one_more():
    frame = pd.DataFrame({"g": list("aab"), "x": [1.0, 3.0, 8.0]})
    encoder = MeansEncoder("g", leave_one_out=True, remainder="drop").fit(frame)
    new = pd.DataFrame({"g": ["a", "b", "never seen"], "x": [0.0, 0.0, 1.0]})
    np.testing.assert_allclose(encoder.transform(new).ravel(), [8 / 3, 6.0, 2.5])
    np.testing.assert_allclose(encoder.fit_transform(frame).ravel(), [3.5, 2.5, 4.0])


def test_a_row_of_weight_zero_leaves_nothing_out():
    frame = pd.DataFrame({"g": list("aab"), "x": [1.0, 3.0, np.inf]})
    encoder = MeansEncoder("g", leave_one_out=True, remainder="drop")
    frame.loc[2, "g"] = "a"
    found = encoder.fit_transform(frame, sample_weight=[1.0, 1.0, 0.0])
    np.testing.assert_allclose(found.ravel(), [2.5, 1.5, 2.0])


def test_a_heavy_row_without_a_level_takes_nothing_from_the_others():
    frame = pd.DataFrame({"g": ["a", "a", None], "x": [1.0, 3.0, 5.0]})
    for shrinkage in (None, "auto"):
        encoder = MeansEncoder(
            "g", leave_one_out=True, missing="prior", remainder="drop", shrinkage=shrinkage
        )
        found = encoder.fit_transform(frame, sample_weight=[1.0, 1.0, 3.0])
        assert np.isfinite(found).all()
        assert found[2] == pytest.approx(2.0)


def test_shrunken_means_are_those_of_the_solver():
    frame, weights = holey(1, n=200)
    encoder = MeansEncoder("g", shrinkage="auto").fit(frame, sample_weight=weights)
    moments = encoder.moments_["g"]
    prior = estimate_means_prior(moments)
    table = encoder.representations_["g"]
    np.testing.assert_array_equal(table.values, shrink_means(moments, prior))
    np.testing.assert_array_equal(table.prior, prior.center)


def test_an_unseen_level_gets_the_overall_mean_of_the_rows():
    frame, _ = holey(2)
    new = pd.DataFrame({"g": ["a", "never seen"], "x": [0.0, 0.0], "z": [0.0, 0.0]})
    for parameters in ({"shrinkage": "auto"}, {"leave_one_out": True}):
        encoder = MeansEncoder("g", remainder="drop", unseen="prior", **parameters).fit(frame)
        np.testing.assert_allclose(encoder.transform(new)[1], frame[["x", "z"]].mean())


def test_small_levels_are_shrunk_further_than_large_ones():
    rng = np.random.default_rng(0)
    sizes = np.array([2] * 30 + [200] * 30)
    level = np.repeat(np.arange(60), sizes)
    true = rng.normal(size=60)
    frame = pd.DataFrame({"g": level, "x": true[level] + 2 * rng.normal(size=len(level))})
    raw, shrunk = (
        MeansEncoder("g", shrinkage=how).fit(frame).representations_["g"].values.ravel()
        for how in (None, "auto")
    )
    moved = np.abs(shrunk - raw) / np.abs(raw - frame["x"].mean())
    assert moved[:30].min() > moved[30:].max()
    assert ((shrunk - true) ** 2).mean() < 0.6 * ((raw - true) ** 2).mean()


@pytest.mark.parametrize("seed", range(3))
def test_shrinkage_without_the_row_itself_is_that_of_a_loop(seed):
    frame, weights = holey(seed, n=60)
    encoder = MeansEncoder("g", shrinkage="auto", leave_one_out=True, remainder="drop")
    found = encoder.fit_transform(frame, sample_weight=weights)
    moments = encoder.moments_["g"]
    prior = estimate_means_prior(moments)
    x = frame[["x", "z"]].to_numpy()
    level = np.array([str(name) for name in frame["g"]])
    for i in range(len(frame)):
        others = (level == level[i]) & (np.arange(len(frame)) != i)
        seen = others[:, None] & ~np.isnan(x)
        observed = (weights[:, None] * seen).sum(axis=0)
        if not observed.any():
            np.testing.assert_allclose(found[i], prior.center)
            continue
        here = observed > 0
        mean = (weights[:, None] * np.where(seen, x, 0)).sum(axis=0)[here] / observed[here]
        # E[ω | x̄] by the formula of the conditional normal, with W_jk / max(n_j, n_k) for the noise.
        noise = prior.within[np.ix_(here, here)] / np.maximum.outer(observed[here], observed[here])
        gain = prior.between[:, here] @ np.linalg.inv(prior.between[np.ix_(here, here)] + noise)
        expected = prior.center + prior.scale * (gain @ ((mean - prior.center[here]) / prior.scale[here]))
        np.testing.assert_allclose(found[i], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("parameters", [{"shrinkage": "auto"}, {"leave_one_out": True}])
def test_chunks_equal_the_whole_for_shrunken_and_for_left_out_means(parameters):
    frame, weights = holey(0)
    whole = MeansEncoder("g", **parameters).fit(frame, sample_weight=weights)
    parts = MeansEncoder("g", **parameters)
    for rows in (slice(0, 7), slice(7, 21), slice(21, None)):
        parts.partial_fit(frame[rows], sample_weight=weights[rows])
    np.testing.assert_allclose(
        parts.representations_["g"].values, whole.representations_["g"].values, rtol=1e-9
    )


@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_levels_of_one_row_each_get_the_overall_mean_in_training(shrinkage, n_rows):
    frame = pd.DataFrame({"g": list("ab")[:n_rows], "x": [1.0, 5.0][:n_rows]})
    encoder = MeansEncoder("g", leave_one_out=True, shrinkage=shrinkage, remainder="drop")
    np.testing.assert_allclose(encoder.fit_transform(frame).ravel(), frame["x"].mean())


# With the target.


def shops(seed: int, n: int = 60, n_levels: int = 6) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows, a target in which the shops differ, and weights."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, n_levels, n)
    X = pd.DataFrame({"x": rng.normal(size=n) + code, "z": rng.normal(size=n)})
    y = 2 * rng.normal(size=n_levels)[code] + rng.normal(size=n) + 10
    return X.assign(shop=[f"shop {c}" for c in code]), y, rng.choice([0.5, 1.0, 2.0, 3.0], n)


def naive_shrunken(level: list[Any], y: Any, weights: Any) -> tuple[dict[Any, float], float]:
    """m + τ/(τ + w/n)(ȳ − m) by loops, with τ and w by the method of moments; also m."""
    total = sum(weights)
    m = sum(w * v for v, w in zip(y, weights, strict=True)) / total
    size = {own: sum(w for g, w in zip(level, weights, strict=True) if g == own) for own in set(level)}
    mean = {
        own: sum(w * v for g, v, w in zip(level, y, weights, strict=True) if g == own) / size[own]
        for own in size
    }
    squares = sum(w * (v - mean[g]) ** 2 for g, v, w in zip(level, y, weights, strict=True))
    noise = squares / sum(max(n - 1, 0) for n in size.values())
    spread = sum(n * (mean[own] - m) ** 2 for own, n in size.items())
    between = (spread - (len(size) - 1) * noise) / (total - sum(n**2 for n in size.values()) / total)
    signal = max(between, 0.0)
    return {own: m + signal / (signal + noise / n) * (mean[own] - m) for own, n in size.items()}, m


@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
def test_the_mean_of_the_target_is_that_of_a_loop_over_the_rows(seed, weighted):
    X, y, weights = shops(seed)
    own = weights if weighted else np.ones(len(y))
    encoder = MeansEncoder("shop", use_target=True, covariates=[])
    encoder.fit(X, y, sample_weight=weights if weighted else None)
    expected, center = naive_shrunken(X["shop"].tolist(), y, own)
    table = encoder.representations_["shop"]
    np.testing.assert_allclose(table.values.ravel(), [expected[level] for level in table.levels], rtol=1e-6)
    np.testing.assert_allclose(table.prior, [center], rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_gets_the_mean_of_the_target_outside_its_fold(seed, weighted):
    X, y, weights = shops(seed)
    X.loc[X.index[:3], "shop"] = None
    level = [None if name is None or name != name else name for name in X["shop"].tolist()]
    own = weights if weighted else np.ones(len(y))
    folds = list(KFold(3, shuffle=True, random_state=seed).split(X))
    encoder = MeansEncoder(
        "shop", use_target=True, covariates=[], remainder="drop", missing="prior", cv=folds
    )
    found = encoder.fit_transform(X, y, sample_weight=weights if weighted else None).ravel()
    for train, test in folds:
        outside = [i for i in train if level[i] is not None]
        expected, center = naive_shrunken([level[i] for i in outside], y[outside], own[outside])
        for i in test:
            assert found[i] == pytest.approx(expected.get(level[i], center), rel=1e-6)


def test_levels_of_equal_size_are_shrunk_as_by_james_and_stein():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(8, 5)) + rng.normal(size=(8, 1))
    X = np.repeat([f"level {g}" for g in range(8)], 5).astype(object)[:, None]
    table = MeansEncoder(0, use_target=True, covariates=[]).fit(X, y.ravel()).representations_["x0"]
    between = 5 * y.mean(axis=1).var(ddof=1)
    within = y.var(axis=1, ddof=1).mean()
    assert between > within
    expected = y.mean() + (1 - within / between) * (y.mean(axis=1) - y.mean())
    np.testing.assert_allclose(table.values.ravel(), expected, rtol=1e-7)


def test_levels_that_differ_less_than_noise_would_share_the_overall_mean():
    X = np.array(list("aabb"), dtype=object)[:, None]
    encoder = MeansEncoder(0, use_target=True, covariates=[]).fit(X, [0.5, 9.5, 0.0, 10.5])
    np.testing.assert_allclose(encoder.representations_["x0"].values.ravel(), [5.125, 5.125])


def test_a_level_of_one_row_is_shrunk_further_than_one_of_many():
    rng = np.random.default_rng(1)
    size = np.array([1, 100] * 10)
    code = np.repeat(np.arange(20), size)
    y = 3 * rng.normal(size=20)[code] + 2 * rng.normal(size=len(code))
    frame = pd.DataFrame({"g": [f"{c:02}" for c in code], "y": y})
    raw = frame.groupby("g")["y"].mean().to_numpy()
    found = MeansEncoder("g", use_target=True, covariates=[]).fit(frame[["g"]], y).representations_["g"]
    kept = (found.values.ravel() - y.mean()) / (raw - y.mean())
    assert kept[size == 1].max() < 0.95 < kept[size == 100].min() < kept.max() < 1


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_the_covariates_own_means_do_not_change_by_the_target(leave_one_out):
    X, y, weights = shops(4)
    options = {"leave_one_out": leave_one_out, "remainder": "drop"}
    without = MeansEncoder("shop", **options)
    with_target = MeansEncoder("shop", use_target=True, **options)
    crossed = with_target.fit_transform(X, y, sample_weight=weights)
    np.testing.assert_allclose(crossed[:, :2], without.fit_transform(X, sample_weight=weights), rtol=1e-12)
    np.testing.assert_allclose(with_target.transform(X)[:, :2], without.transform(X), rtol=1e-12)
    alone = MeansEncoder("shop", use_target=True, covariates=[], **options)
    np.testing.assert_allclose(crossed[:, 2:], alone.fit_transform(X, y, sample_weight=weights), rtol=1e-12)


@pytest.mark.parametrize("kind", ["continuous", "multiclass"])
def test_with_shrinkage_covariates_and_target_are_shrunk_together(kind):
    X, y, weights = shops(5)
    wanted = y[:, None]
    if kind == "multiclass":
        y = np.digitize(y, [9, 11])
        wanted = (y[:, None] == [0, 1, 2]).astype(float)
    joint = np.column_stack([X[["x", "z"]], wanted])
    folds = list(KFold(4).split(X))
    encoder = MeansEncoder("shop", use_target=True, shrinkage="auto", remainder="drop", cv=folds)
    found = encoder.fit_transform(X, y, sample_weight=weights)
    for rows, places, values in [
        *((train, test, found[test]) for train, test in folds),
        (np.arange(60), np.arange(60), encoder.transform(X)),
    ]:
        moments = GroupMoments.from_rows(X["shop"][rows].tolist(), joint[rows], weights=weights[rows])
        shrunk = shrink_means(moments, estimate_means_prior(moments))
        position = {level: row for row, level in enumerate(moments.levels)}
        expected = shrunk[[position[level] for level in X["shop"][places]]]
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-9)


def test_columns_are_named_after_the_target_and_its_classes():
    X, y, _ = shops(6)
    names = {
        "shop_mean_target": y,
        "shop_mean_target=yes": np.where(y > 10, "yes", "no"),
        "shop_mean_target=1": (y > 10).astype(int),
        "shop_mean_target=low shop_mean_target=mid shop_mean_target=top": np.array(["low", "mid", "top"])[
            np.digitize(y, [9, 11])
        ],
    }
    for expected, target in names.items():
        encoder = MeansEncoder("shop", use_target=True, remainder="drop").fit(X, target)
        found = encoder.get_feature_names_out().tolist()
        assert found[:2] == ["shop_mean_x", "shop_mean_z"]
        assert " ".join(found[2:]) == expected
        assert encoder.n_targets_ == (1 if target is y else len(set(target)))


def test_shares_of_classes_add_up_and_two_classes_have_one_column():
    X, y, _ = shops(7, n=200)
    options: dict[str, Any] = {"use_target": True, "covariates": [], "remainder": "drop"}
    for shrinkage in (None, "auto"):
        options["shrinkage"] = shrinkage
        three = MeansEncoder("shop", **options).fit(X, np.digitize(y, [9, 11])).transform(X)
        assert three.shape == (200, 3)
        if shrinkage:  # shrunk together, they stay shares
            np.testing.assert_allclose(three.sum(axis=1), 1.0, atol=1e-6)
        two = MeansEncoder("shop", **options).fit(X, y > 10).transform(X)
        both = MeansEncoder("shop", target_type="continuous", **options).fit(X, (y > 10) * 1.0).transform(X)
        assert two.shape == (200, 1)
        np.testing.assert_allclose(two, both, rtol=1e-6)


def test_levels_are_ranked_as_by_the_target_encoder_of_scikit_learn():
    X, y, _ = shops(8, n=6000, n_levels=60)
    X, y = X.sort_values("shop", ignore_index=True), y[np.argsort(X["shop"], kind="stable")]
    peer = TargetEncoder(smooth="auto", target_type="continuous").fit(X[["shop"]], y)
    encoder = MeansEncoder("shop", use_target=True, covariates=[], remainder="drop").fit(X, y)
    ours, theirs = encoder.transform(X).ravel(), peer.transform(X[["shop"]]).ravel()
    assert spearmanr(ours, theirs).statistic > 0.999
    np.testing.assert_allclose(ours, theirs, atol=0.05)


def test_units_and_origin_of_the_target_carry_over():
    X, y, weights = shops(9)
    encoder = MeansEncoder("shop", use_target=True, remainder="drop")
    one, other = (encoder.fit_transform(X, some, sample_weight=weights) for some in (y, 100 * y - 7))
    np.testing.assert_allclose(other[:, 2], 100 * one[:, 2] - 7, rtol=1e-8)
    np.testing.assert_array_equal(other[:, :2], one[:, :2])


@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_a_weight_of_two_is_a_row_that_came_twice(shrinkage):
    X, y, _ = shops(10)
    times = np.random.default_rng(10).integers(0, 3, len(y))
    place = np.repeat(np.arange(len(y)), times)
    encoder = MeansEncoder("shop", use_target=True, shrinkage=shrinkage, remainder="drop")
    weighted = encoder.fit(X, y, sample_weight=times).transform(X)
    repeated = encoder.fit(X.iloc[place], y[place]).transform(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-8)


@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_a_constant_target_is_the_same_for_all(shrinkage):
    X, y, _ = shops(11)
    encoder = MeansEncoder(
        "shop", use_target=True, shrinkage=shrinkage, target_type="continuous", remainder="drop"
    )
    np.testing.assert_allclose(encoder.fit_transform(X, np.full(len(y), 4.5))[:, 2], 4.5, rtol=1e-9)


def test_with_hardly_any_signal_the_mean_of_the_target_hardly_predicts_it_in_training():
    rng = np.random.default_rng(12)
    X = np.array([f"level {i % 200}" for i in range(1000)], dtype=object)[:, None]
    y = rng.normal(size=1000) + 0.2 * rng.normal(size=200)[np.arange(1000) % 200]
    encoder = MeansEncoder(0, use_target=True, covariates=[])
    honest = np.corrcoef(encoder.fit_transform(X, y).ravel().astype(float), y)[0, 1]
    leaky = np.corrcoef(encoder.transform(X).ravel().astype(float), y)[0, 1]
    assert leaky > 0.4
    assert honest < 0.15


def test_having_no_covariates_must_be_explicit():
    X, y, _ = shops(13)
    with pytest.raises(errors.NoCovariateError, match="none of which is a numeric covariate"):
        MeansEncoder("shop", use_target=True).fit(X[["shop"]], y)
    found = MeansEncoder("shop", use_target=True, covariates=[]).fit(X[["shop"]], y)
    assert found.get_feature_names_out().tolist() == ["shop_mean_target"]


def test_a_covariate_called_target_is_refused():
    X, y, _ = shops(14)
    with pytest.raises(errors.ClashingNamesError, match="'shop_mean_target'"):
        MeansEncoder("shop", use_target=True).fit(X.rename(columns={"x": "target"}), y)
