"""``sufrep moments`` and ``sufrep merge``: files of moments, alone and added up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sufrep import GroupMoments, MeansEncoder
from sufrep.cli import _moments


def rows(seed: int, n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng([3, seed])
    return pl.DataFrame(
        {
            "zip": [["0101", "0102", "0103", None][code] for code in rng.integers(0, 4, n)],
            "sqft": rng.normal(2000, 300, n).round(1),
            "floors": rng.integers(1, 4, n),
            "view": rng.choice(["sea", "hill"], n),
            "price": rng.normal(5, 1, n).round(3),
        }
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(["old", "new", "newer"]):
        rows(seed).write_csv(f"{name}.csv")
    return tmp_path


def read(*names: str) -> pl.DataFrame:
    parts = [pl.read_csv(f"{name}.csv", schema_overrides={"zip": pl.String}) for name in names]
    return pl.concat(parts)


@pytest.mark.usefixtures("folder")
def test_a_file_holds_the_moments_of_the_table(sufrep):
    result = sufrep("moments old.csv --group zip --target price --out old.moments")
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "zip: 4 level(s) in 60 row(s)\n2 covariate(s): sqft, floors\ntarget: price, continuous\n"
        "moments: old.moments\n"
    )
    found = GroupMoments.load("old.moments")
    encoder = MeansEncoder("zip", use_target=True).fit(read("old"), "price")
    assert found.levels.tolist() == ["0101", "0102", "0103", None]
    np.testing.assert_allclose(found.mean, encoder.moments_["zip"].mean)
    assert (found.group, found.target.name) == (("zip",), "price")


@pytest.mark.usefixtures("folder")
def test_the_nightly_refresh(sufrep):
    for name in ("old", "new", "newer"):
        assert sufrep(f"moments {name}.csv --group zip --target price --out {name}.moments").code == 0
    assert sufrep("merge old.moments new.moments --out whole.moments").code == 0
    result = sufrep("merge whole.moments newer.moments --subtract old.moments --out next.moments")
    assert (result.code, result.err) == (0, "")
    found = MeansEncoder("zip", use_target=True).fit_moments(GroupMoments.load("next.moments"))
    expected = MeansEncoder("zip", use_target=True).fit(
        read("new", "newer").select("zip", "sqft", "floors", "price"), "price"
    )
    new = read("newer").select("zip", "sqft", "floors")
    np.testing.assert_allclose(found.transform(new), expected.transform(new), rtol=1e-9)


@pytest.mark.usefixtures("folder")
def test_batches_give_the_moments_of_all_rows(sufrep, monkeypatch):
    assert sufrep("moments old.csv --group zip --out whole.moments").code == 0
    monkeypatch.setattr(_moments, "BATCH", 7)
    result = sufrep(
        "moments old.csv --group zip --out batches.moments --target view --target-type multiclass"
    )
    assert result.code == 0
    assert "target: view, multiclass (hill, sea)" in result.out
    assert sufrep("moments old.csv --group zip --out batches.moments").code == 0
    whole, found = GroupMoments.load("whole.moments"), GroupMoments.load("batches.moments")
    assert found.covariates == ("sqft", "floors", "price")
    np.testing.assert_allclose(found.scatter, whole.scatter)
    np.testing.assert_allclose(found.mean, whole.mean)


@pytest.mark.usefixtures("folder")
def test_crossed_groups_and_chosen_covariates(sufrep):
    result = sufrep("moments old.csv --group zip+view --covariates sqft --missing prior --out it.moments")
    assert result.code == 0
    found = GroupMoments.load("it.moments")
    assert (found.group, found.covariates) == (("zip", "view"), ("sqft",))
    assert all(None not in level for level in found.levels)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("moments old.csv --group zip --out old.csv", 2, "is an input, which would be replaced"),
        ("moments old.csv --group zip --target zip --out it.moments", 2, "'zip' is also in --group"),
        ("moments old.csv --group zip --target-type binary --out it.moments", 2, "it needs --target"),
        ("moments old.csv --group zap --out it.moments", 1, "zap"),
        ("moments old.csv --group zip --missing error --out it.moments", 1, "--missing"),
        ("moments old.csv --group zip --out new.csv", 2, "exists and is not a file of moments of sufrep"),
        ("merge nothing.moments --out it.moments", 1, "No such file"),
        ("merge old.csv --out it.moments", 1, "it is not a file of sufrep"),
        ("merge --out it.moments", 2, "Missing argument"),
    ],
)
def test_errors_say_what_to_do(sufrep, command, code, message):
    result = sufrep(command)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert not Path("it.moments").exists()


@pytest.mark.usefixtures("folder")
def test_moments_that_do_not_fit_are_named(sufrep):
    assert sufrep("moments old.csv --group zip --out a.moments").code == 0
    assert sufrep("moments new.csv --group zip --drop floors --out b.moments").code == 0
    assert sufrep("moments new.csv --group view --out c.moments").code == 0
    assert sufrep("moments new.csv --group zip --out d.moments").code == 0
    GroupMoments.from_rows([101, 102], np.ones((2, 3)), covariates=["sqft", "floors", "price"]).save(
        "e.moments"
    )
    GroupMoments.from_rows([], np.ones((0, 3)), covariates=["sqft", "floors", "price"]).save("f.moments")
    cases = {
        "a.moments b.moments": "Cannot use 'b.moments': Moments of order 2 of covariates sqft, floors, price",
        "a.moments c.moments": "'c.moments': Moments of the levels of 'zip' cannot be combined with those of",
        "a.moments --subtract d.moments": "Cannot use 'd.moments': The moments to subtract contain rows",
        "a.moments e.moments": "'e.moments': Its levels are of type number (101, …); those of the others are "
        "of type str ('0101', …)",
        "a.moments f.moments": "it holds moments of no rows",
    }
    for command, message in cases.items():
        result = sufrep(f"merge {command} --out it.moments")
        assert result.code == 1
        assert message in result.err
        assert not Path("it.moments").exists()


@pytest.mark.usefixtures("folder")
def test_parts_with_other_kinds_of_target_say_which_option_to_use(sufrep):
    assert sufrep("moments old.csv --group zip --target floors --out a.moments").code == 0
    read("new").with_columns(floors=pl.col("price") + 0.5).write_csv("odd.csv")
    assert sufrep("moments odd.csv --group zip --target floors --out b.moments").code == 0
    result = sufrep("merge a.moments b.moments --out it.moments")
    assert result.code == 1
    assert "The target 'floors' is multiclass" in result.err
    assert "moments --target-type continuous" in result.err


@pytest.mark.usefixtures("folder")
def test_an_encoder_file_is_not_replaced_by_moments_nor_moments_by_an_encoder(sufrep):
    assert sufrep("encode old.csv --group zip --method means --target price --save zip.sufrep").code == 0
    assert sufrep("moments old.csv --group zip --out it.moments").code == 0
    result = sufrep("moments old.csv --group zip --out zip.sufrep")
    assert (result.code, "is not a file of moments of sufrep" in result.err) == (2, True)
    result = sufrep("encode old.csv --group zip --method means --target price --save it.moments")
    assert (result.code, "is not an encoder of sufrep" in result.err) == (2, True)
    assert sufrep("moments old.csv --group zip --out it.moments").code == 0
    result = sufrep("merge zip.sufrep --out it.moments")
    assert (result.code, "it holds an encoder, not moments" in result.err) == (1, True)
    result = sufrep("describe it.moments")
    assert (result.code, "it holds moments, not an encoder" in result.err) == (1, True)


def test_many_parts_are_added_in_pairs():
    parts = [GroupMoments.from_rows([str(n % 3)], [[float(n)]]) for n in range(13)]
    found = _moments.add_up(parts)
    assert found.count.tolist() == [5, 4, 4]
    assert found.mean.ravel().tolist() == [6.0, 5.5, 6.5]
