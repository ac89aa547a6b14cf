"""The walk of a fit: which files it enters, and how often it reads the table."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sufrep
from sufrep import LatentStateRegressor, MeansEncoder, make_encoder
from sufrep._frames import FrameTable
from sufrep.encoders import METHODS, GroupEncoder, SufficientEncoder

HOME = str(Path(sufrep.__file__).parent)


def files_entered(call: Callable[[], Any]) -> set[str]:
    """Files of ours in which a function runs during a call."""
    found = set()

    def profiler(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            found.add(frame.f_code.co_filename.removeprefix(HOME).lstrip("/"))

    sys.setprofile(profiler)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_fitting_means_enters_seven_files(library):
    frame = library({"zip": ["a", "b", "a"], "size": [1.0, 2.0, 3.0], "floors": [1, 1, 2]})
    encoder = MeansEncoder("zip")
    encoder.fit_transform(frame)  # the second time, nothing is left to import
    assert files_entered(lambda: encoder.fit_transform(frame)) == {
        "encoders/_base.py",
        "encoders/_inputs.py",
        "encoders/_means.py",
        "_frames/_eager.py",
        "moments.py",
        "_accumulate.py",
        "representation.py",
    }


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often tables are wrapped, columns factorised and numeric columns read."""
    counts: Counter[str] = Counter()

    def count(name: str) -> None:
        original = inspect.getattr_static(FrameTable, name)
        function = original.__func__ if isinstance(original, classmethod) else original

        def counted(self: Any, *arguments: Any) -> Any:
            counts[name] += 1
            return function(self, *arguments)

        wrapped = classmethod(counted) if isinstance(original, classmethod) else counted
        monkeypatch.setattr(FrameTable, name, wrapped)

    for name in ("from_native", "_factorize", "numbers"):
        count(name)
    return counts


VARIANTS = {
    **{method: (method, {}) for method in METHODS if method != "sufficient"},
    "means with target": ("means", {"use_target": True}),
    "means without the row itself": ("means", {"leave_one_out": True}),
    "low rank with target": ("low_rank", {"use_target": True}),
    "states with target": ("latent_state", {"use_target": True, "n_states": 2, "output": "both"}),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("call", ["fit", "fit_transform"])
def test_a_fit_reads_its_table_once(variant, call, reads):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"shop": rng.choice(list("abcd"), 60), "x": rng.normal(size=60)})
    method, parameters = VARIANTS[variant]
    encoder = make_encoder(method, "shop", remainder="drop", **parameters)
    getattr(encoder, call)(frame, rng.normal(size=60))
    assert reads["from_native"] == 1
    assert reads["_factorize"] == 1
    assert reads["numbers"] <= 1


def test_groups_that_share_columns_and_text_that_joins_as_shares_are_factorized_once(reads):
    frame = pl.DataFrame(
        {"shop": list("aabb"), "town": list("xyxy"), "kind": list("uvuu"), "x": [1.0, 2, 3, 4]}
    )
    group = ["shop", "town", ("shop", "town")]
    MeansEncoder(group, categorical_covariates="share").fit_transform(frame)
    assert reads["_factorize"] == 3


def test_the_regressor_reads_its_table_once(reads):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"shop": rng.choice(list("abcd"), 60), "x": rng.normal(size=60)})
    LatentStateRegressor("shop", n_states=2).fit(frame, rng.normal(size=60))
    assert reads == {"from_native": 1, "_factorize": 1, "numbers": 1}


def test_the_chosen_components_of_the_sufficient_encoder_do_not_read_again(choose, reads):
    choose("means", "mixed_model", "local_effect", "states")
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"shop": rng.choice(list("abcd"), 60), "x": rng.normal(size=60)})
    SufficientEncoder("shop").fit_transform(frame, rng.normal(size=60))
    assert reads["from_native"] == 1
    assert reads["_factorize"] == 1


def test_an_encoder_is_one_formula_and_six_hooks():
    kinds = {encoder for encoder, _ in METHODS.values()}
    overridden = {name for encoder in kinds for name in vars(encoder) if name in vars(GroupEncoder)}
    hooks = {name for name in overridden if callable_or_property(name) and name.startswith("_")}
    in_folds, made_of_others = {"_represent_fold"}, {"_learn", "_lookups"}
    assert hooks == {"_represent", "_needs", "_encode_rows"} | in_folds | made_of_others


def callable_or_property(name: str) -> bool:
    member = inspect.getattr_static(GroupEncoder, name)
    return not name.startswith("__") and (inspect.isfunction(member) or isinstance(member, property))


def test_encoders_inherit_directly_from_one_base():
    for encoder, _ in METHODS.values():
        assert encoder.__bases__ == (GroupEncoder,)
