"""Encoders from moments: the same as from rows, or an error that says what the moments lack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sufrep import GroupMoments, LowRankEncoder, MeansEncoder, load, make_encoder
from sufrep.encoders import METHODS
from sufrep.errors import EncoderFileError, MomentsMismatchError

PARAMETERS: dict[str, dict[str, Any]] = {
    "means": {},
    "means with the target": {"use_target": True},
    "means, rare levels pooled": {"min_frequency": 8, "shrinkage": "auto"},
    "means, leave one out": {"leave_one_out": True},
    "low_rank": {"n_components": 2},
    "low_rank with the target": {"n_components": 2, "use_target": True},
    "sparse_low_rank": {"n_components": 2},
    "mnl": {"solver": "lda"},
    "fisher": {},
    "one_hot": {},
    "helmert": {},
    "multi_permutation": {},
}
every_encoder = pytest.mark.parametrize("case", PARAMETERS)


def make(case: str, group: Any = "zip", **more: Any) -> Any:
    method = case.split(",")[0].removesuffix(" with the target")
    return make_encoder(method, group, **PARAMETERS[case], **more)


def rows_of(seed: int = 0, n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"zip": rng.choice([*"abcdefgh", None], n), "x": rng.normal(size=n), "z": rng.normal(size=n)}
    )
    frame.loc[rng.random(n) < 0.1, "x"] = np.nan
    return frame


def target_of(rows: pd.DataFrame) -> np.ndarray:
    return np.cos(np.arange(len(rows))) + rows["z"].to_numpy()


@every_encoder
def test_the_vectors_are_those_of_the_rows(case: str) -> None:
    rows = rows_of()
    y = target_of(rows)
    fitted = make(case).fit(rows, y)
    from_moments = make(case).fit_moments(fitted.moments_["zip"])
    # Codings do not use the covariates, and so do not know them.
    n = len(from_moments.outputs_)
    names = from_moments.get_feature_names_out().tolist()
    assert names[-n:] == fitted.get_feature_names_out().tolist()[-n:]
    new = rows.assign(zip=[*rows["zip"][:-3], "new", "new", "newer"])
    found = from_moments.transform(new[from_moments.feature_names_in_.tolist()])
    np.testing.assert_allclose(found[:, -n:], fitted.transform(new)[:, -n:], rtol=1e-12, atol=1e-12)


@every_encoder
def test_a_fitted_encoder_is_refreshed_and_keeps_its_columns(case: str, tmp_path: Path) -> None:
    old, kept, new = (rows_of(seed) for seed in range(3))
    y = [target_of(part) for part in (old, kept, new)]
    # A column in the middle that the moments know nothing about.
    old, kept, new = (part.assign(view="sea")[["z", "view", "zip", "x"]] for part in (old, kept, new))
    encoder = make(case).fit(pd.concat([old, kept]), np.concatenate(y[:2]))
    parts = [make(case).fit(part, target).moments_["zip"] for part, target in ((old, y[0]), (new, y[2]))]
    encoder.fit_moments(encoder.moments_["zip"] - parts[0] + parts[1])
    expected = make(case).fit(pd.concat([kept, new]), np.concatenate(y[1:]))
    assert encoder.feature_names_in_.tolist() == ["z", "view", "zip", "x"]
    for found in (encoder, _saved(encoder, tmp_path)):
        result, wanted = found.transform(new), expected.transform(new)
        assert (result[:, 1] == "sea").all()
        numbers = [j for j in range(result.shape[1]) if j != 1]
        np.testing.assert_allclose(
            np.abs(result[:, numbers].astype(float)), np.abs(wanted[:, numbers].astype(float)), atol=1e-6
        )


def _saved(encoder: Any, folder: Path) -> Any:
    encoder.save(folder / "it.sufrep")
    return load(folder / "it.sufrep")


def test_moments_with_the_target_also_serve_an_encoder_without_it() -> None:
    rows = rows_of()
    moments = MeansEncoder("zip", use_target=True).fit(rows, target_of(rows)).moments_["zip"]
    found = MeansEncoder("zip", shrinkage="auto").fit_moments(moments)
    expected = MeansEncoder("zip", shrinkage="auto").fit(rows)
    np.testing.assert_allclose(found.transform(rows), expected.transform(rows), rtol=1e-12)


def test_the_target_keeps_its_name_and_its_role_in_a_file(tmp_path: Path) -> None:
    rows = rows_of().assign(price=lambda frame: target_of(frame))
    encoder = MeansEncoder("zip", use_target=True).fit(rows, "price")
    encoder.moments_["zip"].save(tmp_path / "it.moments")
    moments = GroupMoments.load(tmp_path / "it.moments")
    assert (moments.target.name, moments.target.kind, moments.group) == ("price", "continuous", ("zip",))
    found = MeansEncoder("zip", use_target=True).fit_moments(moments)
    # The target is not a column that transform needs, but it may be there.
    np.testing.assert_allclose(found.transform(rows), encoder.transform(rows), rtol=1e-12)
    np.testing.assert_allclose(
        found.transform(rows.drop(columns="price")), encoder.transform(rows), rtol=1e-12
    )


def test_classes_that_a_part_lacks_are_added() -> None:
    rows = rows_of()
    y = np.array(["no", "yes", "perhaps"])[np.arange(len(rows)) % 3]
    kinds = [y != "perhaps", y == "perhaps"]
    parts = [
        MeansEncoder("zip", use_target=True, target_type="multiclass")
        .fit(rows[kind], y[kind])
        .moments_["zip"]
        for kind in kinds
    ]
    found = MeansEncoder("zip", use_target=True).fit_moments(parts[0] + parts[1])
    expected = MeansEncoder("zip", use_target=True).fit(rows, y)
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    np.testing.assert_allclose(found.transform(rows), expected.transform(rows), rtol=1e-9)


def test_three_classes_of_a_binary_target_are_refused() -> None:
    rows = rows_of()
    parts = [
        MeansEncoder("zip", use_target=True)
        .fit(rows, np.array(classes)[np.arange(len(rows)) % 2])
        .moments_["zip"]
        for classes in (["no", "yes"], ["no", "perhaps"])
    ]
    with pytest.raises(
        MomentsMismatchError, match=r"(?s)3 classes: no, perhaps, yes.*target_type='multiclass'"
    ):
        parts[0] + parts[1]


def test_targets_of_other_kinds_do_not_add_up() -> None:
    rows = rows_of()
    parts = [
        MeansEncoder("zip", use_target=True).fit(rows, y).moments_["zip"]
        for y in (target_of(rows), np.arange(len(rows)) % 2)
    ]
    with pytest.raises(MomentsMismatchError, match=r"(?s)continuous.*binary.*say what it is"):
        parts[0] + replace(parts[1], covariates=parts[1].covariates)


def test_several_and_crossed_groups() -> None:
    rows = rows_of().assign(shop=np.arange(200) % 7)
    fitted = MeansEncoder(["shop", ("zip", "shop")], covariates=["x", "z"]).fit(rows)
    found = MeansEncoder().fit_moments(fitted.moments_)
    assert list(found.representations_) == ["shop", "zip:shop"]
    assert found.feature_names_in_.tolist() == ["shop", "zip", "x", "z"]
    expected = fitted.transform(rows)[:, -4:]
    np.testing.assert_allclose(
        found.transform(rows[["shop", "zip", "x", "z"]])[:, -4:].astype(float), expected.astype(float)
    )


def test_moments_without_names_take_those_of_the_encoder() -> None:
    moments = GroupMoments.from_rows(["a", "b", "a"], [[1.0], [2.0], [5.0]], covariates=["size"])
    encoder = MeansEncoder("shop").fit_moments(moments).set_output(transform="polars")
    new = pl.DataFrame({"shop": ["b", "a"], "size": [0.0, 0.0]})
    assert encoder.transform(new)["shop_mean_size"].to_list() == [2.0, 3.0]
    with pytest.raises(MomentsMismatchError, match=r"(?s)do not know their group.*name the column"):
        MeansEncoder().fit_moments(moments)


def test_a_dict_names_the_groups_in_any_order() -> None:
    rows = rows_of().assign(shop=np.arange(200) % 7)
    fitted = MeansEncoder(["shop", "zip"], covariates=["x", "z"]).fit(rows)
    without_names = {name: replace(fitted.moments_[name], group=()) for name in ("zip", "shop")}
    for encoder in (
        MeansEncoder(["shop", "zip"]),
        MeansEncoder(["shop", "zip"], covariates=["x", "z"]).fit(rows),
    ):
        found = encoder.fit_moments(without_names)
        assert list(found.representations_) == ["shop", "zip"]
        for name, table in found.representations_.items():
            np.testing.assert_allclose(table.values, fitted.representations_[name].values)
    assert list(MeansEncoder().fit_moments(without_names).representations_) == ["zip", "shop"]


def test_more_rows_can_follow() -> None:
    rows, more = rows_of(0), rows_of(1)
    moments = MeansEncoder("zip").fit(rows).moments_["zip"]
    found = MeansEncoder("zip").fit_moments(moments).partial_fit(more)
    expected = MeansEncoder("zip").fit(pd.concat([rows, more]))
    np.testing.assert_allclose(found.transform(rows), expected.transform(rows), rtol=1e-9)


MOMENTS = GroupMoments.from_rows(["a", None], [[1.0], [2.0]], covariates=["size"], order=1)


@pytest.mark.parametrize(
    ("encoder", "moments", "message"),
    [
        (MeansEncoder("zip", use_target=True), MOMENTS, "uses the target, which is not among"),
        (MeansEncoder("zip", shrinkage="auto"), MOMENTS, "needs second moments"),
        (MeansEncoder("zip"), MOMENTS.select([]), "these moments have none"),
        (
            MeansEncoder("zip"),
            replace(MOMENTS, group=("shop",)),
            "the groups shop; this MeansEncoder has zip",
        ),
        (MeansEncoder(["zip", "shop"]), MOMENTS, "the groups .unknown.; this MeansEncoder has zip, shop"),
        (MeansEncoder("zip", covariates=["rooms"]), MOMENTS, "covariates size; this MeansEncoder has rooms"),
        (MeansEncoder("zip", missing="prior"), MOMENTS, "have null as a level, and missing='prior'"),
        (
            MeansEncoder("zip", shrinkage="auto", parent={"zip": "state"}),
            MOMENTS,
            "do not say what their levels",
        ),
        (MeansEncoder("zip"), {}, "fit_moments got nothing"),
        (MeansEncoder("zip"), [[1.0]], "fit_moments got list"),
    ],
)
def test_moments_that_do_not_fit_are_refused(encoder: Any, moments: Any, message: str) -> None:
    with pytest.raises(MomentsMismatchError, match=f"(?s){message}.*Hint: "):
        encoder.fit_moments(moments)
    assert not hasattr(encoder, "representations_")


def test_a_fitted_encoder_refuses_moments_of_other_columns() -> None:
    encoder = MeansEncoder("zip").fit(rows_of())
    before = encoder.moments_
    with pytest.raises(MomentsMismatchError, match="covariates size; this MeansEncoder has x, z"):
        encoder.fit_moments(MOMENTS)
    with pytest.raises(MomentsMismatchError, match="the groups shop; this MeansEncoder has zip"):
        encoder.fit_moments(replace(before["zip"], group=("shop",)))
    assert encoder.moments_ is before


@pytest.mark.parametrize(
    "method", ["mnl", "latent_state", "random_intercept", "crossed_effects", "mixed_model"]
)
def test_encoders_that_need_rows_have_no_such_fit(method: str) -> None:
    assert method in METHODS
    assert not hasattr(make_encoder(method, "zip"), "fit_moments")


def test_refreshed_moments_take_another_method() -> None:
    rows = rows_of()
    moments = MeansEncoder("zip").fit(rows).moments_["zip"]
    found = LowRankEncoder("zip", n_components=2).fit_moments(moments).transform(rows)
    expected = LowRankEncoder("zip", n_components=2).fit(rows).transform(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_files_of_encoders_and_of_moments_are_told_apart(tmp_path: Path) -> None:
    encoder = MeansEncoder("zip").fit(rows_of())
    encoder.save(tmp_path / "encoder")
    encoder.moments_["zip"].save(tmp_path / "moments")
    with pytest.raises(EncoderFileError, match=r"(?s)it holds moments, not an encoder.*GroupMoments.load"):
        load(tmp_path / "moments")
    with pytest.raises(EncoderFileError, match=r"(?s)it holds an encoder, not moments.*sufrep.load"):
        GroupMoments.load(tmp_path / "encoder")
