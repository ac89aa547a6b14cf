"""Levels inside others: zip codes in areas in states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold

import sufrep
from sufrep import (
    LatentStateEncoder,
    LowRankEncoder,
    MeansEncoder,
    RandomInterceptEncoder,
    SparseLowRankEncoder,
)
from sufrep._frames import Factor
from sufrep.encoders._nesting import link, nesting_of
from sufrep.errors import (
    ChangedParametersError,
    EncoderFileError,
    ParentError,
    TwoParentsError,
    UnknownColumnError,
)
from sufrep.representation import as_levels
from sufrep.solvers.nesting import shrink_nested

PARENT = {"zip": ["area", "state"]}
ENCODERS: dict[str, Any] = {
    "shrunken means": MeansEncoder("zip", shrinkage="auto"),
    "shrunken means with target": MeansEncoder("zip", shrinkage="auto", use_target=True),
    "target": MeansEncoder("zip", use_target=True),
    "left-out means": MeansEncoder("zip", shrinkage="auto", leave_one_out=True),
    "low rank": LowRankEncoder("zip", shrinkage="auto", n_components=2),
    "low rank with target": LowRankEncoder("zip", shrinkage="auto", use_target=True, n_components=2),
    "random intercept": RandomInterceptEncoder("zip"),
    "hidden states": LatentStateEncoder("zip", n_states=3),
    "hidden states with target": LatentStateEncoder("zip", n_states=2, use_target=True, tol=1e-2),
}
WITH_TARGET = [
    *("shrunken means with target", "target", "low rank with target", "random intercept"),
    "hidden states with target",
]


def drawn(seed: int = 0, n: int = 260, n_levels: int = 48) -> tuple[pd.DataFrame, np.ndarray]:
    """Zip codes that differ by area, areas that differ by state; few rows each, a parent that is a number."""
    rng = np.random.default_rng(seed)
    code = np.append(np.arange(n_levels), rng.integers(0, n_levels, n - n_levels))
    area, state = code // 4, code // 16
    mean = rng.normal(size=(n_levels, 2)) / 2 + 2 * rng.normal(size=(n_levels, 2))[np.arange(n_levels) // 4]
    mean += 2 * rng.normal(size=(n_levels, 2))[np.arange(n_levels) // 16]
    X = pd.DataFrame(mean[code] + rng.normal(size=(n, 2)), columns=["size", "age"])
    X["age"] = 100 + 10 * X["age"]
    X["zip"] = [f"z{number:02}" for number in code]
    X["area"] = 900 + area
    X["state"] = [f"s{number}" for number in state]
    return X, mean[code].sum(axis=1) + rng.normal(size=n)


def nested(name: str, **parameters: Any) -> Any:
    return clone(ENCODERS[name]).set_params(**{"parent": PARENT, "remainder": "drop", **parameters})


def test_the_vectors_are_the_nested_means_of_the_moments():
    X, _ = drawn()
    encoder = nested("shrunken means").fit(X)
    moments = encoder.moments_["zip"]
    assert moments.covariates == ("size", "age")  # the area is a code, not a number
    parents = [np.arange(48) // 4, np.arange(12) // 4]
    tree = nesting_of(encoder.parents_["zip"], moments.levels, np.arange(48), "error")
    for found, expected in zip(tree.parents, parents, strict=True):
        assert found.tolist() == expected.tolist()
    assert tree.names[0].tolist() == list(range(900, 912))
    found = shrink_nested(moments, tree)
    np.testing.assert_array_equal(encoder.representations_["zip"].values, found.values)
    without = nested("shrunken means", parent=None, covariates=["size", "age"]).fit(X)
    assert np.abs(found.values - without.representations_["zip"].values).max() > 0.1


@pytest.mark.parametrize("name", ENCODERS)
@given(seed=st.integers(0, 1000))
@settings(max_examples=2)
def test_a_parent_of_all_levels_is_no_parent(name, seed):
    X, y = drawn(seed, n=150, n_levels=20)
    X["state"] = "all"
    found, plain = (
        nested(name, parent=parent, covariates=["size", "age"]) for parent in ({"zip": "state"}, None)
    )
    rows = np.ones(len(X), dtype=bool)
    if name == "low rank with target":
        # A level without rows outside a fold starts from its parent there, else from its covariates.
        folds = list(KFold(5, shuffle=True, random_state=0).split(X))
        found, plain = (encoder.set_params(cv=folds) for encoder in (found, plain))
        for train, test in folds:
            rows[test] = np.isin(X["zip"].to_numpy()[test], X["zip"].to_numpy()[train])
    np.testing.assert_allclose(
        found.fit_transform(X, y)[rows], plain.fit_transform(X, y)[rows], rtol=1e-7, atol=1e-7
    )
    np.testing.assert_allclose(found.transform(X), plain.transform(X), rtol=1e-9, atol=1e-9)
    new = X[:9].assign(zip="new")
    np.testing.assert_allclose(found.transform(new), plain.transform(new), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ENCODERS)
@given(seed=st.integers(0, 1000))
@settings(max_examples=2)
def test_neither_names_of_parents_nor_the_order_of_rows_matter(name, seed):
    X, y = drawn(seed)
    rng = np.random.default_rng(seed)
    folds = [
        (np.flatnonzero(np.arange(260) % 3 != k), np.flatnonzero(np.arange(260) % 3 == k)) for k in range(3)
    ]
    cv = {"cv": folds} if hasattr(ENCODERS[name], "cv") else {}
    expected = nested(name, **cv).fit_transform(X, y)
    renamed = X.assign(
        area=rng.permutation(12)[X["area"] - 900], state=X["state"].map({"s0": "q"}).fillna("r") + X["state"]
    )
    np.testing.assert_allclose(nested(name, **cv).fit_transform(renamed, y), expected, rtol=1e-6, atol=1e-8)
    order = rng.permutation(260)
    place = np.argsort(order)
    moved = [(place[train], place[test]) for train, test in folds]
    again = nested(name, **({"cv": moved} if cv else {})).fit_transform(X.iloc[order], y[order])
    np.testing.assert_allclose(again[place], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", WITH_TARGET)
@given(seed=st.integers(0, 1000), row=st.integers(0, 259))
@settings(max_examples=2)
def test_a_row_does_not_see_its_own_target_through_its_parent(name, seed, row):
    X, y = drawn(seed)
    # Levels of a single row are absent from the training rows of their fold, and start from their parent.
    X.loc[row, "zip"] = "single"
    changed = y.copy()
    changed[row] += 1000.0
    encoder = nested(name)
    before, after = encoder.fit_transform(X, y)[row], encoder.fit_transform(X, changed)[row]
    if name.startswith("hidden states"):  # all targets together decide on the order of the states
        before, after = np.sort(before), np.sort(after)
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", WITH_TARGET)
def test_a_level_that_the_other_folds_lack_starts_from_its_parent(name):
    X, y = drawn()
    X.loc[0, ["zip", "area", "state"]] = ["single", 911, "s2"]
    found = nested(name).fit_transform(X, y)
    plain = nested(name, parent=None, covariates=["size", "age"]).fit_transform(X, y)
    inside = y[X["area"] == 911].mean()
    if name != "random intercept":
        assert abs(found[0, -1] - inside) < abs(plain[0, -1] - inside)
    assert found[0, -1] != plain[0, -1]


@pytest.mark.parametrize("name", ENCODERS)
def test_a_new_level_starts_from_its_nearest_known_ancestor(name):
    X, y = drawn()
    encoder = nested(name).fit(X, y)
    rule = encoder.new_levels_["zip"]
    one = X[X["zip"] == "z05"][:1].assign(zip="new")
    mean = one.assign(size=X["size"].mean(), age=X["age"].mean())
    by_prior = clone(encoder).set_params(unseen="prior").fit(X, y)
    unknown = one.assign(area=-1, state="nowhere")
    np.testing.assert_allclose(by_prior.transform(unknown)[0], by_prior.representations_["zip"].prior)
    for paths, known in (
        (one, 0),
        (one.assign(area=-1), 1),
        (one.assign(area=[None]), 1),
        (one.assign(area=pd.Series([np.nan], index=one.index)), 1),
    ):
        start = by_prior.transform(paths)[0]
        expected, found = rule.starts((as_levels([901 if known == 0 else -1]), as_levels(["s0"])))
        assert found.all()
        np.testing.assert_allclose(start, expected[0])
    # The estimate is between the start and what the row says; it is not that without an ancestor.
    assert not np.allclose(encoder.transform(mean), encoder.transform(mean.assign(area=-1, state="nowhere")))


@pytest.mark.parametrize("name", ENCODERS)
def test_a_new_level_depends_on_its_own_rows_and_parents_only(name):
    X, y = drawn()
    encoder = nested(name).fit(X, y)
    new, _ = drawn(1, n=60)
    new["zip"] = new["zip"].where(new["zip"] > "z20", "n" + new["zip"])
    together = encoder.transform(new)
    for level in ("nz03", "nz11", "z30"):
        rows = (new["zip"] == level).to_numpy()
        np.testing.assert_allclose(encoder.transform(new[rows]), together[rows], rtol=1e-9, atol=1e-9)


def test_a_known_level_under_another_name_gets_its_vector():
    X, _ = drawn()
    encoder = nested("shrunken means").fit(X)
    rows = X[X["zip"] == "z07"]
    # What the area is like was learnt from these rows too, so that they say the same as under their name.
    np.testing.assert_allclose(encoder.transform(rows.assign(zip="new")), encoder.transform(rows))


@pytest.mark.parametrize("name", ENCODERS)
def test_saved_and_loaded_and_learnt_levels_agree(name, tmp_path):
    X, y = drawn()
    encoder = nested(name, unseen="prior").fit(X, y)
    new, _ = drawn(2, n=60)
    new["zip"] = new["zip"].where(new["zip"] > "z30", "n" + new["zip"])
    encoder.save(tmp_path / "zip.sufrep")
    loaded = sufrep.load(tmp_path / "zip.sufrep")
    assert loaded.parent == PARENT
    for unseen in ("prior", "estimate"):
        encoder.set_params(unseen=unseen)
        loaded.set_params(unseen=unseen)
        np.testing.assert_array_equal(loaded.transform(new), encoder.transform(new))
    if hasattr(encoder, "moments_"):
        learnt = loaded.learn_levels(new)
        np.testing.assert_allclose(learnt.transform(new), encoder.transform(new))
        assert learnt.parents_["zip"][0].chosen("error")["nz03"] == 900
        with pytest.raises(TwoParentsError, match="'900' of 'area' has 2 parents in 'state'"):
            loaded.learn_levels(new.assign(state="elsewhere"))


def test_damaged_parents_are_refused(tmp_path):
    X, y = drawn()
    path = tmp_path / "zip.sufrep"

    def refused(change: Any, match: str) -> None:
        encoder = nested("shrunken means").fit(X, y)
        change(encoder)
        encoder.save(path)
        with pytest.raises(EncoderFileError, match=match):
            sufrep.load(path)

    def links(encoder: Any, **fields: Any) -> None:
        first, second = encoder.parents_["zip"]
        changed = {name: getattr(first, name) for name in type(first).__slots__} | fields
        encoder.parents_ = {"zip": (type(first)(**changed), second)}

    first = nested("shrunken means").fit(X, y).parents_["zip"][0]
    refused(lambda encoder: links(encoder, parent=first.parent + 40), "a parent or a child that is not there")
    refused(lambda encoder: links(encoder, child=first.child * 0, parent=first.parent * 0), "no rows have")
    refused(lambda encoder: links(encoder, weight=-first.weight), "no rows have")
    refused(lambda encoder: links(encoder, weight=first.weight[1:]), "of another size")
    refused(lambda encoder: encoder.parents_.pop("zip"), "parents of other groups")
    refused(lambda encoder: encoder.parents_.update(zip=("area", "state")), "no parents")

    other = SparseLowRankEncoder("zip", n_components=1).fit(X)
    other.layout_ = replace(other.layout_, parents=((3,),))
    other.parents_ = {"zip": (first,)}
    other.save(path)
    with pytest.raises(EncoderFileError, match="an encoder that knows none"):
        sufrep.load(path)

    def tiers(encoder: Any, value: Any) -> None:
        rule = encoder.new_levels_["zip"]
        changed = {name: getattr(rule, name) for name in type(rule).__slots__} | {"tiers": value}
        encoder.new_levels_ = {"zip": type(rule)(**changed)}

    refused(lambda encoder: tiers(encoder, ()), "tiers of other parents")
    refused(lambda encoder: tiers(encoder, (1, 2)), "no tiers")
    other = nested("shrunken means", covariates=["size"]).fit(X, y).new_levels_["zip"].tiers
    refused(lambda encoder: tiers(encoder, other), "other covariates")
    states = nested("hidden states", n_states=2).fit(X).new_levels_["zip"].tiers
    refused(lambda encoder: tiers(encoder, states), "no tiers")
    encoder = nested("hidden states").fit(X)
    tiers(encoder, states)
    encoder.save(path)
    with pytest.raises(EncoderFileError, match="tiers of other states"):
        sufrep.load(path)


@pytest.mark.parametrize("name", ENCODERS)
def test_every_frame_library_gives_the_same(name):
    X, y = drawn()
    X.loc[X.index[::7], "state"] = None
    expected = nested(name).fit_transform(X, y)
    frames = [
        pl.from_pandas(X),
        pa.Table.from_pandas(X, preserve_index=False),
        X.astype({"state": "category"}),
    ]
    for frame in frames:
        np.testing.assert_allclose(nested(name).fit_transform(frame, y), expected, rtol=1e-9, atol=1e-9)
    array = X.to_numpy(dtype=object)
    by_position = nested(name, group=2, parent={2: [3, 4]}, covariates=[0, 1])
    np.testing.assert_allclose(by_position.fit_transform(array, y), expected, rtol=1e-9, atol=1e-9)


def test_parent_columns_pass_through_and_are_neither_groups_nor_covariates():
    X, _ = drawn()
    encoder = MeansEncoder(shrinkage="auto", parent=PARENT).set_output(transform="pandas")
    out = encoder.fit_transform(X)
    assert out.columns.tolist() == ["size", "age", "area", "state", "zip_mean_size", "zip_mean_age"]
    assert encoder.layout_.groups == ((2,),)
    named = clone(encoder).set_params(covariates=["size", "area"]).fit(X)
    assert named.moments_["zip"].covariates == ("size", "area")
    both = clone(encoder).set_params(group=["zip", "area"]).fit(X)
    assert list(both.parents_) == ["zip"]
    np.testing.assert_array_equal(both.representations_["zip"].values, encoder.representations_["zip"].values)


def test_several_groups_have_their_own_parents_and_crossed_groups_too(tmp_path):
    X, y = drawn()
    X["shop"] = np.where(np.arange(len(X)) % 2, "a", "b")
    X["chain"] = "c" + X["shop"]
    parent = {"zip": "area", ("shop", "area"): ["area", "state"]}
    encoder = MeansEncoder(
        ["zip", ("shop", "area"), "chain"],
        shrinkage="auto",
        use_target=True,
        parent=parent,
        covariates=["size"],
    )
    encoder.fit(X, y)
    assert {group: len(links) for group, links in encoder.parents_.items()} == {"zip": 1, "shop:area": 2}
    alone = MeansEncoder(
        "zip", shrinkage="auto", use_target=True, parent={"zip": "area"}, covariates=["size"]
    )
    alone.fit(X, y)
    np.testing.assert_array_equal(
        encoder.representations_["zip"].values, alone.representations_["zip"].values
    )
    encoder.save(tmp_path / "file")
    loaded = sufrep.load(tmp_path / "file")
    assert loaded.parent == parent
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))


def test_weights_count_rows():
    X, y = drawn()
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    X.loc[weights == 0, "area"] = -5  # rows of no weight are no conflict
    twice = np.repeat(np.arange(len(X)), weights)
    for name in ("shrunken means with target", "random intercept"):
        weighted = nested(name).fit(X, y, sample_weight=weights)
        repeated = nested(name).fit(X.iloc[twice], y[twice])
        np.testing.assert_allclose(
            weighted.representations_["zip"].values, repeated.representations_["zip"].values, atol=1e-7
        )
    # A level all of whose rows have no weight is not an error in training.
    assert np.isfinite(
        nested("target").fit_transform(X, y, sample_weight=(X["zip"] != "z00").astype(float) * weights)
    ).all()


def test_classes_are_shrunk_towards_parents():
    X, y = drawn()
    for kind, target in (("binary", y > 0), ("multiclass", np.digitize(y, [-2, 2]).astype(str))):
        for name in WITH_TARGET:
            out = nested(name).fit_transform(X, target)
            plain = nested(name, parent=None, covariates=["size", "age"]).fit_transform(X, target)
            assert out.shape == plain.shape, kind
            assert np.isfinite(out).all()
            assert not np.allclose(out, plain)


@pytest.mark.parametrize("name", ["shrunken means", "shrunken means with target", "low rank with target"])
def test_chunks_give_what_a_fit_gives(name):
    X, y = drawn()
    whole = nested(name).fit(X, y)
    parts = nested(name)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), 3):
        parts.partial_fit(X.iloc[rows], y[rows])
    np.testing.assert_allclose(
        parts.representations_["zip"].values, whole.representations_["zip"].values, rtol=1e-6, atol=1e-8
    )
    for old, new in zip(whole.parents_["zip"], parts.parents_["zip"], strict=True):
        for field in ("children", "parents", "child", "parent", "weight"):
            assert getattr(old, field).tolist() == getattr(new, field).tolist()
    with pytest.raises(TwoParentsError, match="'z00' of 'zip' has 2 parents in 'area': '900'"):
        parts.partial_fit(X[:1].assign(area=903), y[:1])
    with pytest.raises(ChangedParametersError, match="have changed since the first chunk"):
        parts.set_params(parent=None).partial_fit(X, y)


def test_a_fit_without_parents_forgets_those_of_an_earlier_one():
    X, _ = drawn()
    encoder = nested("shrunken means").fit(X)
    assert hasattr(encoder, "parents_")
    encoder.set_params(parent=None).fit(X)
    assert not hasattr(encoder, "parents_")


def test_nulls_in_parents_covariates_and_groups_are_no_conflict():
    X, y = drawn()
    X.loc[X.index[1::3], "area"] = np.nan
    X.loc[X["zip"] == "z47", "area"] = np.nan
    X.loc[X.index[2::9], "zip"] = None
    X.loc[X.index[3::8], "age"] = np.nan
    for name in ENCODERS:
        encoder = nested(name)
        assert np.isfinite(encoder.fit_transform(X, y)).all()
        assert np.isfinite(encoder.transform(X.assign(zip="n" + X["state"], area=None))).all()
        children = encoder.parents_["zip"][0].children.tolist()
        assert "z46" in children
        assert "z47" not in children
        assert None not in children


def test_pooled_levels_have_no_parent_together():
    X, y = drawn()
    encoder = nested("shrunken means", min_frequency=5).fit(X, y)
    rare = X["zip"].map(X["zip"].value_counts()) < 5
    pooled = np.unique(encoder.transform(X[rare]), axis=0)
    assert len(pooled) == 1
    assert np.isfinite(nested("target", min_frequency=5).fit_transform(X, y)).all()


def test_a_level_with_two_parents_is_an_error_that_names_it_or_belongs_to_the_majority():
    X, y = drawn()
    moved = X.copy()
    first = X.index[X["zip"] == "z05"][0]
    moved.loc[first, ["area", "state"]] = [911, "s2"]
    n = int((X["zip"] == "z05").sum())
    message = (
        rf"The level 'z05' of 'zip' has 2 parents in 'area': '901' \({n - 1} row\(s\)\) and '911' \(1 row"
    )
    with pytest.raises(TwoParentsError, match=message) as error:
        nested("shrunken means").fit(moved)
    assert "Hint: on_conflict='majority'" in str(error.value)
    assert "group=[('area', 'zip')]" in str(error.value)
    found = nested("shrunken means", on_conflict="majority").fit(moved)
    np.testing.assert_allclose(
        found.representations_["zip"].values, nested("shrunken means").fit(X).representations_["zip"].values
    )
    with pytest.raises(TwoParentsError, match="'901' of 'area' has 2 parents in 'state': 's0'"):
        nested("random intercept").fit(X.assign(state=X["state"].where(X.index != first, "s2")), y)
    encoder = nested("shrunken means").fit(X)
    new = X[:2].assign(zip="new", area=[900, 901])
    with pytest.raises(TwoParentsError, match="'new' of 'zip' has 2 parents"):
        encoder.transform(new)
    # Of equal numbers of rows, the first parent wins in any order.
    encoder.set_params(on_conflict="majority", unseen="prior")
    np.testing.assert_array_equal(encoder.transform(new), encoder.transform(new[::-1]))


def test_parents_that_cannot_be_are_refused():
    X, y = drawn()

    def fit(parent: Any, **parameters: Any) -> None:
        MeansEncoder("zip", **{"shrinkage": "auto", "parent": parent, **parameters}).fit(X, y)

    with pytest.raises(ParentError, match=r"(?s)shrinks nothing.*Hint: set shrinkage='auto'"):
        fit(PARENT, shrinkage=None)
    fit(PARENT, shrinkage=None, use_target=True)
    with pytest.raises(ParentError, match=r"(?s)the key 'area', which is not a group.*groups are 'zip'"):
        fit({"area": "state"})
    with pytest.raises(UnknownColumnError, match=r"(?s)parent names the column 'county'"):
        fit({"zip": "county"})
    with pytest.raises(ParentError, match="no column contains itself"):
        fit({"zip": "zip"})
    with pytest.raises(ParentError, match="no column contains itself"):
        fit({"zip": ["area", "area"]})
    with pytest.raises(ParentError, match="names no column that contains 'zip'"):
        fit({"zip": []})
    with pytest.raises(ParentError, match="the group 2 twice"):
        fit({"zip": "area", 2: "state"})
    with pytest.raises(ValueError, match="'parent' parameter"):
        fit("area")
    with pytest.raises(ValueError, match="'on_conflict' parameter"):
        fit(PARENT, on_conflict="first")


def test_an_empty_dictionary_is_no_parent():
    X, y = drawn()
    found, plain = (MeansEncoder("zip", parent=parent).fit_transform(X, y) for parent in ({}, None))
    np.testing.assert_array_equal(found, plain)


def test_links_of_no_rows_are_empty():
    nothing = Factor(np.array([-1, -1]), as_levels([]))
    links = link(Factor(np.array([0, 1]), as_levels(["a", None])), nothing, ("zip", "area"))
    assert links.chosen("error") == {}
    assert (links + links).chosen("error") == {}
