"""Files of each version of the format, of an encoder and of moments, which every later version must load.

Version 1 is that of sufrep 0.1.0. Its files are never written again (`docs/reference/versioning.md`): a
change of the format gets a new version, code that reads the old one, and new files, which ``python
tests/encoders/files/test_format.py 2`` writes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline

from sufrep import GroupMoments, MeansEncoder, SufficientEncoder, ToNumbers, load, save
from sufrep._description import read_description
from sufrep._files import ColumnReading, TableReading
from sufrep.encoders._judging import CANDIDATES, DROP, Judgement

HERE = Path(__file__).parent
CHOSEN = ("target_mean", "mixed_model", "local_effect", "states")
# What the files of released versions are, by their SHA-256.
RELEASED = {
    "format_1.json": "635d6e52a44ba9700d0353e99f7c6234ae542947aca34cecc99e7a04baede648",
    "format_1.moments": "6739468055df4021ec3cdbe6aad50e36fd2b4ef462ff900ec6e7bd86badd465a",
    "format_1.sufrep": "b99c7f4883d72017ee6e6d8b03e1d76f85eb4cc1a2b9df6100fa7caa841840bd",
}
READING = TableReading(
    (ColumnReading("shop", "text"), ColumnReading("size", "number"), ColumnReading("sold", "time", "UTC")),
    decimal=",",
    thousands=".",
    nulls=("", "NA"),
    separator=";",
    encoding="cp1252",
)


def rows_of() -> pd.DataFrame:
    """Rows with more levels than are listed one by one, a null level, text and dates."""
    n = 240
    row = np.arange(n)
    shops = np.array([None, *(f"Käse {number}" for number in range(39))], dtype=object)
    return pd.DataFrame(
        {
            "shop": shops[row % 40],
            "size": np.sin(row) + row % 40 / 20,
            "view": np.array(["sea", "", None], dtype=object)[row % 3],
            "sold": [f"2024-{1 + number % 12:02}-{1 + number % 28:02}" for number in row],
        }
    )


def new_rows() -> pd.DataFrame:
    return rows_of().iloc[:50:7].assign(shop=["Käse 1", None, "new", "Käse 38", "Käse 5", "Käse 2", "", "NA"])


@pytest.mark.parametrize("name", RELEASED)
def test_files_of_released_versions_are_never_changed(name):
    assert hashlib.sha256((HERE / name).read_bytes()).hexdigest() == RELEASED[name]


@pytest.mark.parametrize("version", [1])
def test_files_of_every_version_load_and_encode_as_they_did(version):
    steps = load(HERE / f"format_{version}.sufrep")
    expected = json.loads((HERE / f"format_{version}.json").read_text())
    assert list(steps.named_steps) == ["numbers", "encoder"]
    assert (steps[-1].chosen_, steps[-1].estimator) == (CHOSEN, "Ridge")
    assert steps[0].reading_ == READING
    assert read_description(HERE / f"format_{version}.sufrep")["columns_needed"] == list(rows_of())
    assert steps.get_feature_names_out().tolist() == expected["names"]
    np.testing.assert_allclose(steps.transform(new_rows()), expected["values"], rtol=1e-9, atol=1e-12)


def moments_of() -> GroupMoments:
    """Moments with levels of several types, a target, and nulls."""
    rows = rows_of()[["shop", "size"]].assign(floor=np.arange(240) % 7)
    rows.loc[::11, "size"] = np.nan
    sold = np.where(np.arange(len(rows)) % 3, "yes", "no")
    encoder = MeansEncoder([("shop", "floor")], covariates=["size"], use_target=True).fit(rows, sold)
    return encoder.moments_["shop:floor"]


@pytest.mark.parametrize("version", [1])
def test_moments_of_every_version_load(version):
    found, expected = GroupMoments.load(HERE / f"format_{version}.moments"), moments_of()
    assert found.levels.tolist() == expected.levels.tolist()
    assert (found.covariates, found.group, found.target) == (
        expected.covariates,
        expected.group,
        expected.target,
    )
    for name in ("count", "weight", "observed", "mean", "squares", "complete_mean", "scatter"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-12)


def make(version: int) -> None:
    """Write the files of a new version, and what the encoder encodes rows as."""
    encoder_file, moments_file = HERE / f"format_{version}.sufrep", HERE / f"format_{version}.moments"
    if encoder_file.exists():
        sys.exit(f"{encoder_file.name} exists, and files of released versions never change")
    moments_of().save(moments_file)

    def judged(_encoder: SufficientEncoder, rows: Any, _components: Any, _learner: Any) -> Judgement:
        n = len(rows.y)
        losses, shuffled = (
            {DROP: np.ones(n), "both": np.zeros(n)},
            {("both", name): np.ones(n) for name in CHOSEN},
        )
        return Judgement(losses, shuffled, {DROP: 0, "both": 4}, None, [np.arange(n)])

    rows = rows_of()
    y = np.cos(np.arange(len(rows))) + rows["size"].to_numpy()
    encoder = SufficientEncoder("shop", estimator=Ridge())
    steps = Pipeline([("numbers", ToNumbers(keep="shop")), ("encoder", encoder)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CANDIDATES, "both", CHOSEN)
        patch.setattr(SufficientEncoder, "_judge", judged)
        steps.fit(rows, y)
    steps[0].reading_ = READING
    save(steps, encoder_file)
    found = {
        "names": steps.get_feature_names_out().tolist(),
        "values": steps.transform(new_rows()).round(12).tolist(),
    }
    (HERE / f"format_{version}.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    make(int(sys.argv[1]))
