"""Files of encoders that hold encoders: all of it comes back, and damage inside is found."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import sufrep
from sufrep import LocalEffectEncoder, MixedModelEncoder, RandomInterceptEncoder, SufficientEncoder, errors
from sufrep.encoders._candidates import PIECES

CANDIDATES = [(), *((name,) for name in PIECES), ("mixed_model", "intercept"), ("target", "states")]


def drawn(kind: str = "continuous") -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    X["shop"] = np.array(["ann", "bob", None, "dan"], dtype=object)[np.arange(60) % 4]
    y = np.arange(60) % 4 + rng.normal(size=60)
    return X, {"continuous": y, "binary": y > 1, "multiclass": np.digitize(y, [0.0, 2.0]).astype(str)}[kind]


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "encoder.sufrep"


@pytest.fixture
def saved(file: Path, choose: Callable[..., None]) -> Path:
    choose("target", "mixed_model")
    SufficientEncoder("shop").fit(*drawn()).save(file)
    return file


def change_piece(path: Path, change: Any) -> None:
    """Write the file again after ``change`` of the manifest of the piece "target", a dict."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    change(manifest["fitted"]["encoders_"]["$dict"]["target"])
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def assert_same(loaded: Any, encoder: Any, X: pd.DataFrame) -> None:
    assert type(loaded) is type(encoder)
    assert loaded.get_params() == encoder.get_params()
    assert [key for key in vars(loaded) if key.endswith("_")] == [
        key for key in vars(encoder) if key.endswith("_")
    ]
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))
    for name, table in encoder.representations_.items():
        found = loaded.representations_[name]
        assert (found.levels.tolist(), found.columns) == (table.levels.tolist(), table.columns)
        for part in ("values", "weight", "prior"):
            np.testing.assert_array_equal(getattr(found, part), getattr(table, part))


@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
@pytest.mark.parametrize("pieces", CANDIDATES, ids=lambda pieces: " + ".join(pieces) or "drop")
def test_whatever_was_chosen_comes_back(pieces, kind, file, choose):
    choose(*pieces)
    X, y = drawn(kind)
    encoder = SufficientEncoder("shop", min_frequency=2).fit(X, y)
    encoder.save(file)
    loaded = sufrep.load(file)
    assert_same(loaded, encoder, X)
    assert loaded.chosen_ == encoder.chosen_ == pieces
    assert loaded.report_ == encoder.report_
    assert loaded.target_type_ == kind
    assert list(loaded.encoders_) == list(pieces)
    for name, piece in encoder.encoders_.items():
        assert_same(loaded.encoders_[name], piece, X)


def test_what_was_tried_comes_back(file):
    X, y = drawn()
    X, y = pd.concat([X] * 3, ignore_index=True), np.tile(3 * y, 3)
    encoder = SufficientEncoder("shop", max_candidates=2).set_output(transform="pandas").fit(X, y)
    encoder.save(file)
    loaded = sufrep.load(file)
    assert loaded.report_ == encoder.report_
    assert loaded.report_["chosen"] == [False, True]
    new = X[:3].assign(shop=["ann", None, "never seen"])
    pd.testing.assert_frame_equal(loaded.transform(new), encoder.transform(new))


def test_levels_never_seen_are_refused_after_loading_too(file, choose):
    choose("intercept")
    X, y = drawn()
    SufficientEncoder("shop", unseen="error").fit(X, y).save(file)
    with pytest.raises(errors.UnseenLevelError, match="never seen"):
        sufrep.load(file).transform(X.assign(shop="never seen"))


def test_several_groups_come_back(file, choose):
    choose("mixed_model", "states")
    X, y = drawn()
    X["town"] = np.where(X["a"] > 0, "u", "v")
    encoder = SufficientEncoder(["shop", ("shop", "town")]).fit(X, y)
    encoder.save(file)
    assert_same(sufrep.load(file), encoder, X)


@pytest.mark.parametrize("encoder", [RandomInterceptEncoder, MixedModelEncoder, LocalEffectEncoder])
@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
@pytest.mark.parametrize("missing", ["level", "prior"])
def test_encoders_of_residuals_and_regressions_come_back(encoder, kind, missing, file):
    X, y = drawn(kind)
    fitted = encoder("shop", missing=missing, min_frequency=3).fit(X, y)
    fitted.save(file)
    assert_same(sufrep.load(file), fitted, X)


def test_equal_encoders_are_equal_files(tmp_path, choose):
    choose("joint_means", "states")
    for name in ("one", "other"):
        SufficientEncoder("shop").fit(*drawn()).save(tmp_path / name)
    sufrep.load(tmp_path / "one").save(tmp_path / "again")
    one, other, again = ((tmp_path / name).read_bytes() for name in ("one", "other", "again"))
    assert one == other == again
    X, y = drawn()
    SufficientEncoder("shop").fit(X, y + 1e-9).save(tmp_path / "unequal")
    assert (tmp_path / "unequal").read_bytes() != one


def test_a_learner_is_not_saved(file):
    encoder = SufficientEncoder("shop", estimator=Ridge(), max_candidates=1).fit(drawn()[0], drawn()[1])
    with pytest.raises(
        errors.NotSavableError, match=r"The parameter 'estimator' is Ridge.*\nHint: use plain"
    ):
        encoder.save(file)
    assert list(file.parent.iterdir()) == []
    encoder.set_params(estimator=None).save(file)
    assert sufrep.load(file).estimator is None


# Damage.


@pytest.mark.parametrize("name", ["WonderEncoder", "LatentStateRegressor", "Ridge", None, ["MeansEncoder"]])
def test_a_piece_of_an_unknown_class_is_refused(name, saved):
    change_piece(saved, lambda piece: piece["$encoder"].update(encoder=name))
    with pytest.raises(errors.EncoderFileError, match=r"do not fit together.*\nHint: save the encoder again"):
        sufrep.load(saved)


@pytest.mark.parametrize("key", ["encoder", "parameters", "fitted", "output"])
def test_a_piece_that_lacks_a_part_is_refused(key, saved):
    change_piece(saved, lambda piece: piece["$encoder"].pop(key))
    with pytest.raises(errors.EncoderFileError, match=f"do not fit together.*{key}"):
        sufrep.load(saved)


@pytest.mark.parametrize(
    "change",
    {
        "not fitted": lambda piece: piece["$encoder"]["fitted"].pop("representations_"),
        "a method": lambda piece: piece["$encoder"]["fitted"].update(transform=1),
        "a private attribute": lambda piece: piece["$encoder"]["fitted"].update(_details_=1),
        "an unknown parameter": lambda piece: piece["$encoder"]["parameters"].update(alpha=1),
        "no object": lambda piece: piece.update({"$encoder": 3}),
        "two kinds": lambda piece: piece.update({"$float": "1"}),
        "an unknown kind": lambda piece: piece.update({"$estimator": piece.pop("$encoder")}),
        "an array that is not there": lambda piece: piece["$encoder"]["fitted"].update(n_={"$array": 999}),
    }.items(),
    ids=lambda change: change[0],
)
def test_a_piece_that_makes_no_sense_is_refused(change, saved):
    change_piece(saved, change[1])
    with pytest.raises(errors.EncoderFileError, match=r"do not fit together.*\nHint: save the encoder again"):
        sufrep.load(saved)


def test_a_piece_that_is_left_alone_is_read(saved):
    change_piece(saved, lambda _: None)
    assert list(sufrep.load(saved).encoders_) == ["target", "mixed_model"]
