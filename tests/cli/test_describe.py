"""``sufrep describe``: the contents of an encoder file."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from sufrep import ContrastEncoder, DropColumns, MeansEncoder, SufficientEncoder, ToNumbers, save
from sufrep.encoders import make_encoder

FRAME = pl.DataFrame(
    {"zip": ["01", "01", "02", None], "sqft": [1.0, 2.0, 6.0, 8.0], "rooms": [1.0, 1.0, 2.0, 2.0]}
)


def test_an_encoder_is_described_in_text(sufrep, tmp_path):
    MeansEncoder("zip", unseen="error").fit(FRAME).save(tmp_path / "zip.sufrep")
    result = sufrep(f"describe {tmp_path}/zip.sufrep")
    assert result.code == 0
    assert result.out == (
        "MeansEncoder (method means)\n"
        "  group         zip: 3 level(s), 4 row(s)\n"
        "  covariates    sqft, rooms\n"
        "  new columns   zip_mean_sqft, zip_mean_rooms\n"
        "  parameters    group='zip', unseen='error'\n"
        "\n"
        "zip: 3 of 3 level(s)\n"
        "  zip     rows  zip_mean_sqft  zip_mean_rooms\n"
        "  01      2     1.5            1\n"
        "  02      1     6              2\n"
        "  (null)  1     8              2\n"
        "\n"
        "zip: how certain the vectors are (standard error / standard deviation over the rows)\n"
        "  zip     rows  relative error\n"
        "  (null)  1     0.18            least certain\n"
        "  01      2     0.12            most certain\n"
    )


def test_the_same_as_json(sufrep, tmp_path):
    MeansEncoder("zip", covariates=["sqft"]).fit(FRAME).save(tmp_path / "zip.sufrep")
    described = json.loads(sufrep(f"describe {tmp_path}/zip.sufrep --json").out)
    assert described["encoder"] == "MeansEncoder"
    assert described["covariates"] == ["sqft"]
    assert described["columns_needed"] == ["zip", "sqft", "rooms"]
    assert described["columns_made"] == ["zip_mean_sqft"]
    assert described["parameters"] == {"group": "zip", "covariates": ["sqft"]}
    group = described["groups"][0]
    assert group["first_levels"][2] == {"level": None, "rows": 1, "values": [8]}
    (least,), (most,) = group["least_certain"], group["most_certain"]
    assert least == {
        "level": None,
        "rows": 1,
        "relative_error": pytest.approx(0.5**0.5 / 8.0625**0.5, rel=1e-5),
    }
    assert most == {"level": "01", "rows": 2, "relative_error": pytest.approx(0.5 / 8.0625**0.5, rel=1e-5)}


@pytest.mark.parametrize("method", ["one_hot", "permutation"])
def test_vectors_without_errors_are_not_said_to_be_certain(sufrep, tmp_path, method):
    make_encoder(method, "zip").fit(FRAME).save(tmp_path / "zip.sufrep")
    assert "certain" not in sufrep(f"describe {tmp_path}/zip.sufrep").out
    described = json.loads(sufrep(f"describe {tmp_path}/zip.sufrep --json").out)
    assert described["groups"][0]["least_certain"] == described["groups"][0]["most_certain"] == []


def test_every_group_has_its_most_certain_levels(sufrep, tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "g": rng.choice(list("aabbbbbcdddddddddd"), 200),
            "h": [1] * 150 + [2] * 50,
            "x": rng.normal(size=200),
        }
    )
    MeansEncoder(["g", "h"]).fit(frame).save(tmp_path / "g.sufrep")
    groups = json.loads(sufrep(f"describe {tmp_path}/g.sufrep --json").out)["groups"]
    named = [[entry["level"] for entry in group["most_certain"]] for group in groups]
    assert named == [["d", "b"], [1]]


def test_all_steps_are_described(sufrep, tmp_path):
    rows = FRAME.with_columns(view=pl.Series(["sea", None, "sea", "hill"]), note=pl.Series([[1]] * 4))
    steps = make_pipeline(ToNumbers(keep="zip"), MeansEncoder("zip", covariates=["sqft", "view_sea"]))
    save(steps.fit(rows), tmp_path / "zip.sufrep")
    out = sufrep(f"describe {tmp_path}/zip.sufrep").out
    assert out.startswith(
        "ToNumbers, then MeansEncoder (method means)\n"
        "  group         zip: 3 level(s), 4 row(s)\n"
        "  as numbers    view\n"
        "  left out      note\n"
        "  covariates    sqft, view_sea\n"
        "  new columns   view_hill, view_sea, view_null, zip_mean_sqft, zip_mean_view_sea\n"
        "  parameters    group='zip', covariates=['sqft', 'view_sea']\n"
    )
    described = json.loads(sufrep(f"describe {tmp_path}/zip.sufrep --json").out)
    assert described["steps"] == ["ToNumbers", "MeansEncoder"]
    assert described["columns_needed"] == ["zip", "sqft", "rooms", "view", "note"]


def test_a_column_that_is_left_out_is_described(sufrep, tmp_path):
    save(DropColumns("zip").fit(FRAME), tmp_path / "zip.sufrep")
    assert sufrep(f"describe {tmp_path}/zip.sufrep").out == (
        "DropColumns (method drop)\n"
        "  left out      zip\n"
        "  covariates    none\n"
        "  new columns   none\n"
        "  parameters    columns='zip'\n"
    )


def test_the_choice_of_a_sufficient_encoder_is_described(sufrep, tmp_path):
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 5, 200)
    X = pl.DataFrame({"zip": levels.astype(str), "x": rng.normal(size=200)})
    encoder = SufficientEncoder("zip", families=["prediction"]).fit(X, 10.0 * levels + rng.normal(size=200))
    encoder.save(tmp_path / "zip.sufrep")
    result = sufrep(f"describe {tmp_path}/zip.sufrep")
    assert "\n  target        continuous\n" in result.out
    assert f"\n{encoder.report_['summary']}\n" in result.out
    assert "\n  *  prediction " in result.out
    assert "\n  target_mean " in result.out
    described = json.loads(sufrep(f"describe {tmp_path}/zip.sufrep --json").out)
    assert described["chosen"] == ["target_mean", "mixed_model", "local_effect"]
    assert described["report"]["candidates"]["candidate"] == ["drop", "prediction"]
    assert described["report"]["components"]["component"] == described["chosen"]
    assert described["report"]["summary"] == encoder.report_["summary"]


@pytest.mark.parametrize("method", ["helmert", "multi_permutation", "one_hot"])
def test_the_method_is_named(sufrep, tmp_path, method):
    make_encoder(method, "zip").fit(FRAME).save(tmp_path / "zip.sufrep")
    assert f"(method {method})" in sufrep(f"describe {tmp_path}/zip.sufrep").out


def test_the_target_is_not_a_covariate(sufrep, tmp_path):
    make_encoder("fisher", "zip").fit(FRAME, [1.5, 2.0, 3.0, 4.5]).save(tmp_path / "zip.sufrep")
    out = sufrep(f"describe {tmp_path}/zip.sufrep").out
    assert "\n  covariates    none\n" in out
    assert "\n  target        continuous\n" in out


def test_long_lists_of_levels_and_columns_are_cut(sufrep, tmp_path):
    frame = pl.DataFrame({"g": [f"level {i:02d}" for i in range(30)]})
    ContrastEncoder("g").fit(frame).save(tmp_path / "g.sufrep")
    out = sufrep(f"describe {tmp_path}/g.sufrep").out
    assert "\ng: 5 of 30 level(s), 6 of 29 columns\n" in out
    assert " and 19 more\n" in out
    assert "\n  covariates    none\n" in out
    assert "level 05" not in out.splitlines()[-1]


def test_sparse_encoders_and_those_of_arrays_can_be_described(sufrep, tmp_path):
    ContrastEncoder("g", sparse_output=True).fit(pl.DataFrame({"g": ["a", "b"]})).save(tmp_path / "s.sufrep")
    assert "sparse_output=True" in sufrep(f"describe {tmp_path}/s.sufrep").out
    MeansEncoder(group=0).fit([["a", 1.0], ["b", 3.0]]).save(tmp_path / "a.sufrep")
    assert "new columns   x0_mean_x1" in sufrep(f"describe {tmp_path}/a.sufrep").out


def test_levels_that_json_does_not_have_are_text(sufrep, tmp_path):
    frame = pl.DataFrame({"day": [date(2020, 1, 31), date(2020, 2, 1)], "x": [1.0, 2.5]})
    MeansEncoder("day").fit(frame).save(tmp_path / "day.sufrep")
    described = json.loads(sufrep(f"describe {tmp_path}/day.sufrep --json").out)
    assert [entry["level"] for entry in described["groups"][0]["first_levels"]] == [
        "2020-01-31",
        "2020-02-01",
    ]


def test_a_damaged_file_is_refused(sufrep, tmp_path):
    (tmp_path / "zip.sufrep").write_text("no encoder")
    result = sufrep(f"describe {tmp_path}/zip.sufrep")
    assert result.code == 1
    assert "it is not a file of sufrep, or it is truncated" in result.err


def test_the_decimal_sign_is_described(sufrep, tmp_path):
    (tmp_path / "old.csv").write_text("g;x\na;1,5\nb;2.876\n")
    sufrep(f"encode {tmp_path}/old.csv --group g --method means --no-target --save {tmp_path}/g.sufrep")
    assert "\n  numbers       with decimal commas\n" in sufrep(f"describe {tmp_path}/g.sufrep").out
    described = json.loads(sufrep(f"describe {tmp_path}/g.sufrep --json").out)
    assert described["reading"] == {
        "decimal": ",",
        "thousands": ".",
        "separator": ";",
        "encoding": "utf-8",
        "kinds": {"g": "text", "x": "number"},
    }


def test_parameters_that_are_arrays_are_described(sufrep, tmp_path):
    frame = pl.DataFrame({"g": ["a", "b"], "x": [1.0, 2.0], "z": [3.0, 4.0]})
    MeansEncoder("g", covariates=np.array(["x", "z"])).fit(frame).save(tmp_path / "g.sufrep")
    result = sufrep(f"describe {tmp_path}/g.sufrep")
    assert "parameters    group='g', covariates=['x', 'z']" in result.out


def test_columns_are_aligned_whatever_the_levels_are(sufrep, tmp_path):
    X = pl.DataFrame({"g": ["a", "e\nf", "\x1b", "🏠"], "x": [1.5, 2.5, 3.5, 4.5]})
    MeansEncoder("g").fit(X).save(tmp_path / "g.sufrep")
    *_, header, _, _, _, _ = lines = sufrep(f"describe {tmp_path}/g.sufrep").out.splitlines()
    assert header == "  g     rows  g_mean_x"
    assert sorted(lines[-4:]) == [
        r"  \x1b  1     3.5",
        r"  a     1     1.5",
        r"  e\nf  1     2.5",
        r"  🏠    1     4.5",
    ]
