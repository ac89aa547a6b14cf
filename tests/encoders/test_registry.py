"""The list of methods, and the laws that all of them obey."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

from sufrep import errors, make_encoder
from sufrep._names import TARGET_METHODS
from sufrep.encoders import METHODS, ContrastEncoder, GroupEncoder, PermutationEncoder

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)

# Where a solver stops at a tolerance of its own, so do we. Regressions through as many rows as they have
# coefficients leave no noise, and what is left to estimate it from is rounding.
TOLERANCE = {"mnl": 1e-5, "sparse_low_rank": 1e-3, "latent_state": 1e-4, "mixed_model": 1e-3}

# These need the rows.
NOT_CHUNKABLE = (
    *("mnl", "latent_state", "random_intercept", "crossed_effects", "mixed_model", "local_effect"),
    *("shares", "cells", "sufficient"),
)

# In training, a row gets the mean of its level without the row itself.
LEAVES_ITSELF_OUT = ("shares",)

# On samples as small as ours one state would be chosen, for which every law is trivial. The search is tested
# in test_sufficient.py.
SMALL: dict[str, dict[str, Any]] = {
    "latent_state": {"n_states": 2, "n_starts": 1},
    "sufficient": {
        "estimator": DecisionTreeRegressor(max_depth=2, random_state=0),
        "families": ("prediction",),
        "cv": 2,
    },
}

# The contrast codings share all code but their matrix, and so do one and several permutations.
ALIKE = ("deviation", "difference", "repeated_effect", "simple_effect", "permutation")
DISTINCT = [method for method in METHODS if method not in ALIKE]

# Rows of a level up to which local effects are found from all pairs of them.
PAIRED_ROWS = 50

# What is chosen depends on the folds that rows fall into.
WITHOUT_CHOICE = [method for method in DISTINCT if method != "sufficient"]

# Every method that learns from moments alone, and the kinds of it that differ in what they add up.
CHUNKABLE: dict[str, tuple[str, dict[str, Any]]] = {
    **{method: (method, {}) for method in DISTINCT if method not in NOT_CHUNKABLE},
    "mnl by discriminant": ("mnl", {"solver": "lda"}),
    "mnl by discriminant, raw units": ("mnl", {"solver": "lda", "standardize": False}),
    "low_rank without second moments": ("low_rank", {"standardize": False, "n_components": 1}),
    "fisher of two classes": ("fisher", {"target_type": "binary"}),
    "fisher of three classes": ("fisher", {"target_type": "multiclass"}),
    "one_hot, sparse": ("one_hot", {"sparse_output": True, "remainder": "drop"}),
}


@dataclass(frozen=True)
class Sample:
    """Rows with a target, weights or None, and the places where they are cut into chunks."""

    frame: pd.DataFrame
    y: Any
    weights: Any
    cuts: list[int]

    def take(self, rows: Any) -> Sample:
        weights = None if self.weights is None else self.weights[rows]
        return Sample(self.frame.iloc[rows], self.y[rows], weights, [])

    def chunks(self) -> list[Sample]:
        edges = sorted({0, *self.cuts, len(self.frame)})
        return [self.take(np.arange(*pair)) for pair in pairwise(edges)]


@st.composite
def samples(draw: Any, *, max_rows: int = 40, nulls: bool = True, weighted: bool = True) -> Sample:
    """Levels that differ in their means, in continuous data: singular values do not tie."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_levels = draw(st.integers(1, max_rows)), draw(st.integers(1, 6))
    level = rng.integers(0, n_levels, n)
    frame = pd.DataFrame(
        {
            "shop": np.array(["ann", "bob", "cid", "dan", "eve", "fay"], dtype=object)[level],
            "town": rng.choice(np.array(["x", "y"], dtype=object), n),
            "a": rng.normal(size=n) + level,
            "b": 5.0 * rng.normal(size=n) - level**2,
            "c": rng.normal(size=n) + 100.0,
        }
    )
    if nulls and draw(st.booleans()):
        for column in ("shop", "a", "b"):
            frame.loc[rng.random(n) < 0.2, column] = None
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], n) if weighted and draw(st.booleans()) else None
    cuts = draw(st.lists(st.integers(0, n), max_size=3))
    return Sample(frame, level + rng.normal(size=n), weights, cuts)


def target_of(sample: Sample, parameters: dict[str, Any]) -> Any:
    """The target as the encoder is to take it; classes are cut out of the quantity."""
    edges = {"binary": [2.0], "multiclass": [1.0, 3.0]}.get(parameters.get("target_type", ""))
    return sample.y if edges is None else np.digitize(sample.y, edges)


def fitted(method: str, sample: Sample, group: Any = "shop", **parameters: Any) -> GroupEncoder:
    encoder = make_encoder(method, group, **{**SMALL.get(method, {}), **parameters})
    return encoder.fit(sample.frame, target_of(sample, parameters), sample_weight=sample.weights)


def vectors(encoder: GroupEncoder) -> dict[str, dict[Any, np.ndarray]]:
    """The vector of each level of each group."""
    found = {}
    for name, table in encoder.representations_.items():
        values = table.values.toarray() if sparse.issparse(table.values) else table.values
        found[name] = dict(zip(table.levels.tolist(), values, strict=True))
    return found


def assert_same(left: GroupEncoder, right: GroupEncoder, tolerance: float = 1e-7) -> None:
    assert left.get_feature_names_out().tolist() == right.get_feature_names_out().tolist()
    assert list(left.representations_) == list(right.representations_)
    one, other = vectors(left), vectors(right)
    for name in one:
        assert list(one[name]) == list(other[name])
        for level in one[name]:
            np.testing.assert_allclose(one[name][level], other[name][level], rtol=tolerance, atol=tolerance)
        tables = left.representations_[name], right.representations_[name]
        np.testing.assert_allclose(tables[0].weight, tables[1].weight, rtol=1e-12)
        np.testing.assert_allclose(tables[0].prior, tables[1].prior, rtol=tolerance, atol=tolerance)


def assume_each_chunk_has_rows_that_count(sample: Sample, *, missing: str = "level") -> None:
    for chunk in sample.chunks():
        counts = np.ones(len(chunk.frame), dtype=bool) if chunk.weights is None else chunk.weights > 0
        assume(counts.any())
        assume(missing == "level" or (chunk.frame["shop"].notna().to_numpy() & counts).any())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_makes_an_encoder_of_its_class_with_its_parameters(method):
    encoder = make_encoder(method, "shop", min_frequency=3)
    cls, fixed = METHODS[method]
    assert type(encoder) is cls
    assert encoder.get_params() | {"group": "shop", "min_frequency": 3, **fixed} == encoder.get_params()


def test_parameters_of_the_caller_win_over_those_of_the_method():
    assert make_encoder("multi_permutation", 0, n_permutations=7).n_permutations == 7


def test_the_list_of_methods_is_complete():
    assert list(METHODS) == [
        *("one_hot", "deviation", "difference", "helmert", "repeated_effect", "simple_effect"),
        *("permutation", "multi_permutation", "fisher", "random_intercept", "crossed_effects"),
        *("mixed_model", "local_effect", "target_mean", "means", "low_rank", "sparse_low_rank", "mnl"),
        *("latent_state", "shares", "cells", "sufficient"),
    ]


def test_an_unknown_method_gets_the_nearest_as_a_hint():
    with pytest.raises(
        errors.UnknownMethodError, match=r"No encoder is called 'mean'.*\n.*did you mean 'means'"
    ):
        make_encoder("mean")


def test_an_unknown_method_without_a_near_match_gets_the_whole_list():
    with pytest.raises(errors.UnknownMethodError, match=r"Hint: The methods are one_hot, .*, sufficient\."):
        make_encoder("zzz")


def test_a_parameter_that_the_method_lacks_is_refused():
    with pytest.raises(TypeError, match="alpha"):
        make_encoder("means", "shop", alpha=0.1)


@pytest.mark.parametrize("method", DISTINCT)
def test_every_method_encodes_the_same_in_every_library(method):
    rng = np.random.default_rng(0)
    columns = {"shop": ["a", "b", None, "c"] * 5, "x": rng.normal(size=20), "z": rng.normal(size=20)}
    y = rng.normal(size=20)
    encoder = make_encoder(method, 0, **SMALL.get(method, {}))
    expected = encoder.fit(pl.DataFrame(columns), y).transform(pl.DataFrame(columns))
    for frame in (pd.DataFrame(columns), pa.table(columns), pd.DataFrame(columns).convert_dtypes()):
        found = clone(encoder).fit(frame, y).transform(frame)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    array = np.column_stack([np.array(column, dtype=object) for column in columns.values()])
    found = clone(encoder).fit(array, y).transform(array)
    np.testing.assert_allclose(found.astype(float), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_the_name_of_the_target(method, library):
    rng = np.random.default_rng(0)
    columns = {"shop": ["a", "b", None, "c"] * 5, "sales": rng.normal(size=20), "x": rng.normal(size=20)}
    whole, without = library(columns), library({name: columns[name] for name in ("shop", "x")})
    named, given = (make_encoder(method, "shop", **SMALL.get(method, {})) for _ in range(2))
    np.testing.assert_array_equal(
        named.fit_transform(whole, "sales"), given.fit_transform(without, columns["sales"])
    )
    assert named.feature_names_in_.tolist() == ["shop", "x"]
    assert "sales" not in named.get_feature_names_out()
    for new in (whole, without):
        np.testing.assert_array_equal(named.transform(new), given.transform(without))


# The output of these depends on the covariates of the row too; see test_level_models.py.
@pytest.mark.parametrize(
    "method",
    [method for method in DISTINCT if method not in ("crossed_effects", "mixed_model", "local_effect")],
)
def test_an_unseen_level_gets_the_prior(method):
    frame = pd.DataFrame({"shop": list("aaabbc"), "x": [1.0, 2, 4, 8, 9, 5], "z": [3.0, 1, 2, 5, 6, 4]})
    encoder = make_encoder(method, "shop", remainder="drop", unseen="prior", **SMALL.get(method, {}))
    encoder.fit(frame, [1.0, 2.5, 4, 8, 16, 32])
    new = pd.DataFrame({"shop": ["a", "never seen"], "x": [0.0, 0.0], "z": [0.0, 0.0]})
    table = encoder.representations_["shop"]
    np.testing.assert_array_equal(encoder.transform(new)[1], table.prior)
    np.testing.assert_array_equal(encoder.transform(new)[0], table.values[0])


# Hidden states and shrunken effects estimate a prior of their own; see test_latent_state.py and
# test_level_models.py.
OWN_PRIOR = ("latent_state", "shares", *(method for method in TARGET_METHODS if method != "fisher"))


@pytest.mark.parametrize("method", [method for method in DISTINCT if method not in OWN_PRIOR])
@few
@given(sample=samples(), least=st.sampled_from([None, 4, 0.2]))
def test_the_prior_is_the_weighted_mean_of_the_level_vectors(method, sample, least):
    assume_each_chunk_has_rows_that_count(sample)
    encoder = fitted(method, sample, min_frequency=least)
    table = encoder.representations_["shop"]
    expected = np.average(table.values, axis=0, weights=table.weight)
    np.testing.assert_allclose(table.prior, expected, rtol=1e-12, atol=1e-12)
    weights = np.ones(len(sample.frame)) if sample.weights is None else sample.weights
    # ... which is the mean of the rows that fit has seen.
    rows = encoder.set_params(remainder="drop").fit(sample.frame, sample.y, weights).transform(sample.frame)
    np.testing.assert_allclose(table.prior, np.average(rows, axis=0, weights=weights), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", WITHOUT_CHOICE)
@few
@given(sample=samples(), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_does_not_matter(method, sample, seed):
    assume_each_chunk_has_rows_that_count(sample)
    shuffled = sample.take(np.random.default_rng(seed).permutation(len(sample.frame)))
    assert_same(fitted(method, sample), fitted(method, shuffled), TOLERANCE.get(method, 1e-7))


@pytest.mark.parametrize("method", WITHOUT_CHOICE)
@few
@given(sample=samples(weighted=False), seed=st.integers(0, 2**32 - 1))
def test_a_weight_counts_how_often_a_row_came(method, sample, seed):
    times = np.random.default_rng(seed).integers(0, 4, len(sample.frame))
    assume(times.any())
    # Of larger levels, pairs of rows are sampled, and a row that came twice may be sampled twice.
    assume(method != "local_effect" or times.sum() <= PAIRED_ROWS)
    weighted = Sample(sample.frame, sample.y, times.astype(float), [])
    repeated = sample.take(np.repeat(np.arange(len(sample.frame)), times))
    assert_same(fitted(method, weighted), fitted(method, repeated), TOLERANCE.get(method, 1e-7))


@pytest.mark.parametrize("method", DISTINCT)
@few
@given(sample=samples(), order=st.permutations(range(6)))
def test_the_names_of_the_levels_do_not_matter(method, sample, order):
    assume_each_chunk_has_rows_that_count(sample)
    keeps_order = issubclass(METHODS[method][0], (ContrastEncoder, PermutationEncoder))
    places = sorted(order) if keeps_order else order
    old = ["ann", "bob", "cid", "dan", "eve", "fay"]
    new = {name: f"level {place}" for name, place in zip(old, places, strict=True)}
    renamed = sample.frame.assign(shop=[new.get(level) for level in sample.frame["shop"].astype(object)])
    before = vectors(fitted(method, sample))["shop"]
    after = vectors(fitted(method, Sample(renamed, sample.y, sample.weights, [])))["shop"]
    assert {new.get(level) for level in before} == set(after)
    for level, vector in before.items():
        close = TOLERANCE.get(method, 1e-7)
        np.testing.assert_allclose(after[new.get(level)], vector, rtol=close, atol=close)


@pytest.mark.parametrize(
    "method", [method for method in DISTINCT if method not in (*TARGET_METHODS, *LEAVES_ITSELF_OUT)]
)
@few
@given(sample=samples())
def test_without_a_target_fit_transform_is_fit_and_transform(method, sample):
    assume_each_chunk_has_rows_that_count(sample, missing="prior")
    # Levels whose rows all have weight zero are ignored in training, and new to ``transform``.
    options = {"missing": "prior", "unseen": "prior", "remainder": "drop", **SMALL.get(method, {})}
    encoder = make_encoder(method, "shop", **options)
    at_once = encoder.fit_transform(sample.frame, sample_weight=sample.weights)
    np.testing.assert_array_equal(at_once, encoder.transform(sample.frame))


@pytest.mark.parametrize("method", DISTINCT)
def test_fitting_twice_gives_the_same_bits(method):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd")).assign(shop=list("uvwxyz") * 10)
    encoder = make_encoder(method, "shop", **SMALL.get(method, {})).fit(frame, frame["a"])
    first = encoder.transform(frame)
    np.testing.assert_array_equal(encoder.fit(frame, frame["a"]).transform(frame), first)
    np.testing.assert_array_equal(clone(encoder).fit(frame, frame["a"]).transform(frame), first)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_that_does_without_rows_learns_in_chunks(method):
    assert hasattr(make_encoder(method), "partial_fit") == (method not in NOT_CHUNKABLE)


@pytest.mark.parametrize("kind", CHUNKABLE)
@few
@given(
    sample=samples(),
    missing=st.sampled_from(["level", "prior"]),
    least=st.sampled_from([None, 3, 0.2]),
)
def test_any_chunks_give_what_fit_gives_on_all_rows(kind, sample, missing, least):
    method, parameters = CHUNKABLE[kind]
    assume_each_chunk_has_rows_that_count(sample, missing=missing)
    common = {"missing": missing, "min_frequency": least, **parameters}
    encoder = make_encoder(method, "shop", **common)
    for chunk in sample.chunks():
        target = target_of(chunk, parameters)
        encoder.partial_fit(chunk.frame, target, sample_weight=chunk.weights)
    assert_same(encoder, fitted(method, sample, **common), TOLERANCE.get(method, 1e-7))


@pytest.mark.parametrize("kind", CHUNKABLE)
@few
@given(sample=samples())
def test_chunks_add_up_for_several_and_for_crossed_groups(kind, sample):
    method, parameters = CHUNKABLE[kind]
    assume_each_chunk_has_rows_that_count(sample)
    group = ["shop", "town", ("shop", "town")]
    encoder = make_encoder(method, group, **parameters)
    for chunk in sample.chunks():
        encoder.partial_fit(chunk.frame, target_of(chunk, parameters), sample_weight=chunk.weights)
    assert_same(encoder, fitted(method, sample, group, **parameters), TOLERANCE.get(method, 1e-7))


@pytest.mark.parametrize("kind", ["means", "low_rank", "sparse_low_rank", "mnl by discriminant"])
@few
@given(sample=samples())
def test_chunks_add_up_where_a_category_first_occurs_in_a_later_one(kind, sample):
    method, parameters = CHUNKABLE[kind]
    assume_each_chunk_has_rows_that_count(sample)
    n = len(sample.frame)
    # Later rows have more colours; null is one of them.
    colours = np.array(["red", "blue", None, "amber", "cyan"], dtype=object)
    later = sample.frame.assign(colour=colours[np.minimum(np.arange(n) // 4, np.arange(n) % 5)])
    sample = Sample(later, sample.y, sample.weights, [*sample.cuts, n // 3])
    assume_each_chunk_has_rows_that_count(sample)
    common = {"categorical_covariates": "share", **parameters}
    encoder = make_encoder(method, "shop", **common)
    for chunk in sample.chunks():
        encoder.partial_fit(chunk.frame, sample_weight=chunk.weights)
    assert_same(encoder, fitted(method, sample, **common), TOLERANCE.get(method, 1e-7))


def test_chunks_may_come_from_different_libraries():
    rows = pl.DataFrame({"shop": list("aabbcc"), "x": [1.0, 2.0, 8.0, 9.0, 4.0, 5.0]})
    encoder = make_encoder("means", "shop").partial_fit(rows[:2])
    encoder.partial_fit(rows[2:3].to_pandas()).partial_fit(rows[3:].to_arrow())
    assert_same(encoder, make_encoder("means", "shop").fit(rows))


def test_a_later_chunk_whose_rows_all_have_no_level_adds_nothing():
    rows = pd.DataFrame({"shop": ["a", "b", None, None], "x": [1.0, 2.0, 3.0, 4.0]})
    encoder = make_encoder("means", "shop", missing="prior").partial_fit(rows[:2]).partial_fit(rows[2:])
    assert_same(encoder, make_encoder("means", "shop", missing="prior").fit(rows))


def test_a_later_chunk_whose_weights_are_all_zero_adds_nothing():
    rows = pd.DataFrame({"shop": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})
    encoder = make_encoder("means", "shop").partial_fit(rows[:2], sample_weight=[1.0, 1.0])
    encoder.partial_fit(rows[2:], sample_weight=[0.0])
    assert_same(encoder, make_encoder("means", "shop").fit(rows, sample_weight=[1.0, 1.0, 0.0]))


@pytest.mark.parametrize("kind", CHUNKABLE)
def test_a_chunk_that_fails_leaves_the_encoder_as_it_was(kind):
    method, parameters = CHUNKABLE[kind]
    rows = pd.DataFrame({"shop": list("abab"), "x": [1.0, 2.0, 8.0, 9.0]})
    y = [0, 1, 1, 1] if parameters.get("target_type") else [0.5, 1.0, 2.0, 4.0]
    encoder = make_encoder(method, "shop", **parameters).partial_fit(rows, y)
    before = encoder.transform(rows)
    with pytest.raises(errors.LengthMismatchError, match="X has 4 row"):
        encoder.partial_fit(rows.assign(shop="new"), y[:3])
    with pytest.raises(errors.ColumnsMismatchError, match="- x"):
        encoder.partial_fit(rows[["shop"]], y)
    after = encoder.transform(rows)
    np.testing.assert_array_equal(sparse.csr_array(after).toarray(), sparse.csr_array(before).toarray())


def test_fit_starts_anew_after_chunks():
    rows = pd.DataFrame({"shop": list("abab"), "x": [1.0, 2.0, 8.0, 9.0]})
    encoder = make_encoder("means", "shop").partial_fit(rows).fit(rows[:2])
    assert_same(encoder, make_encoder("means", "shop").fit(rows[:2]))


@pytest.mark.parametrize("method", DISTINCT)
def test_a_group_whose_levels_have_no_weight_is_refused(method):
    rows = pd.DataFrame({"shop": ["a", None], "x": [1.0, 2.0]})
    encoder = make_encoder(method, "shop", missing="prior")
    with pytest.raises(errors.NoLevelError, match="'shop' has no level"):
        encoder.fit(rows, [1.0, 2.0], sample_weight=[0.0, 1.0])


@pytest.mark.parametrize("method", DISTINCT)
def test_a_row_of_weight_zero_may_hold_anything(method):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"shop": rng.choice(list("abc"), 40), "x": rng.normal(size=40), "z": rng.normal(size=40)}
    )
    weights, y = np.ones(40), rng.normal(size=40) + 3 * (rows["shop"] == "a").to_numpy()
    weights[3] = 0.0
    encoder = make_encoder(method, "shop", **SMALL.get(method, {}))
    expected = clone(encoder).fit(rows.drop(index=3), np.delete(y, 3))
    rows.loc[3, "x"] = np.inf
    found = encoder.fit(rows, y, sample_weight=weights)
    np.testing.assert_allclose(
        found.representations_["shop"].values, expected.representations_["shop"].values, atol=1e-6
    )


@pytest.mark.parametrize(
    "method", ["low_rank", "sparse_low_rank", "mnl", "latent_state", "mixed_model", "local_effect"]
)
def test_a_fit_without_groups_leaves_no_details_of_an_earlier_one(method):
    rows = pd.DataFrame({"shop": list("aabb"), "x": [1.0, 2.0, 3.0, 5.0], "z": [0.0, 1.0, 0.5, 2.0]})
    y = [1.0, 2.5, 2.0, 4.0]
    encoder = make_encoder(method, "shop").fit(rows, y)
    details = {"singular_values_", "loadings_", "iterations_", "mixtures_", "normal_scores_", "n_states_"}
    assert details & vars(encoder).keys()
    encoder.set_params(group=None).fit(rows[["x", "z"]].to_numpy(), y)
    assert not details & vars(encoder).keys()


# Extreme numbers

# With these parameters, a power of two as the unit of a column leaves every vector as it is, up to that unit.
EXTREME: dict[str, tuple[str, dict[str, Any]]] = {
    **{method: (method, {}) for method in DISTINCT},
    "means, shrunk": ("means", {"shrinkage": "auto"}),
    "means, left out": ("means", {"leave_one_out": True}),
    "means with the target": ("means", {"use_target": True}),
    "low_rank with the target": ("low_rank", {"use_target": True}),
    "low_rank, raw units": ("low_rank", {"standardize": False, "n_components": 1}),
    "sparse_low_rank, raw units": ("sparse_low_rank", {"standardize": False, "n_components": 1}),
    "mnl by discriminant": ("mnl", {"solver": "lda"}),
    "latent_state, no ranks": ("latent_state", {"transform_covariates": "standardize"}),
    "latent_state with the target": ("latent_state", {"use_target": True, "cv": 2}),
}
# From subnormal numbers to the largest doubles.
POWERS = (-1040, -996, -515, 90, 515, 664, 996, 1021)


def columns_of(frame: pd.DataFrame, y: Any, name: str) -> Any:
    method, parameters = EXTREME[name]
    encoder = make_encoder(method, "shop", remainder="drop", **{**SMALL.get(method, {}), **parameters})
    return np.asarray(encoder.fit_transform(frame, y), dtype=float)


def assert_the_same_up_to_units(found: Any, expected: Any, tolerance: float) -> None:
    assert np.isfinite(found).all()
    for ours, theirs in zip(found.T, expected.T, strict=True):
        unit = np.abs(theirs).max() / np.abs(ours).max() if ours.any() else 1.0
        assert np.isfinite(unit)
        np.testing.assert_allclose(np.abs(ours * unit), np.abs(theirs), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("unit_of", ["covariate", "target"])
@pytest.mark.parametrize("name", EXTREME)
def test_extreme_numbers_are_encoded_like_others_or_refused(name, unit_of):
    rng = np.random.default_rng(0)
    level = rng.integers(0, 5, 40)
    frame = pd.DataFrame({"shop": np.array(list("abcde"), dtype=object)[level]})
    frame["a"], frame["b"] = rng.uniform(-2, 2, 40) + level, rng.normal(size=40) - level**2
    y = rng.uniform(-2, 2, 40) + level
    expected, compared = columns_of(frame, y, name), 0
    for power in POWERS:
        other = frame.assign(a=np.ldexp(frame["a"], power)) if unit_of == "covariate" else frame
        try:
            found = columns_of(other, np.ldexp(y, power) if unit_of == "target" else y, name)
        except errors.MagnitudeError:
            continue
        compared += 1
        # Raw units decide which covariate dominates, and a subnormal number has few digits.
        if "raw units" in name or power < -1022:
            assert np.isfinite(found).all()
        elif "sufficient" not in name:
            assert_the_same_up_to_units(found, expected, TOLERANCE.get(EXTREME[name][0], 1e-6))
    assert compared


@pytest.mark.parametrize("method", ["permutation", "latent_state", "mixed_model"])
def test_a_seed_that_no_generator_takes_is_refused(method):
    X = np.column_stack([np.arange(6.0), np.arange(6) % 2])
    encoder = make_encoder(method, 1, random_state=2**31)
    with pytest.raises(ValueError, match="random_state"):
        encoder.fit(X, np.arange(6.0))
