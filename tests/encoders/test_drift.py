"""``encoder.drift``: what became of the levels, for every frame, encoder and kind of group."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sufrep
from sufrep import (
    ContrastEncoder,
    Drift,
    LatentStateEncoder,
    MeansEncoder,
    PermutationEncoder,
    SufficientEncoder,
    load,
    make_encoder,
)
from sufrep.errors import (
    ColumnsMismatchError,
    InvalidParameterError,
    LengthMismatchError,
    MissingLevelError,
    NoMomentsError,
    NoRowsError,
    SampleWeightError,
    UnknownGroupError,
    UnseenLevelsWarning,
)

NUMBERS = ["rows_then", "rows_now", "statistic", "df1", "df2", "p_value", "q_value", "difference"]


def houses(seed: int, zips: str, n: int = 40, shift: float = 0.0) -> pl.DataFrame:
    """``n`` houses in each zip code; those in "b" are shifted by a number of standard deviations."""
    rng = np.random.default_rng([7, seed])
    place = np.repeat(list(zips), n)
    return pl.DataFrame(
        {
            "zip": place,
            "sqft": rng.normal(2000, 300, len(place)),
            "built": rng.normal(1970, 20, len(place)) + 20 * shift * (place == "b"),
        }
    )


OLD, NEW = houses(0, "abcd"), houses(1, "bcde", n=20, shift=2.0)
STATUS = {"b": "moved", "e": "new", "a": "vanished", "c": "stable", "d": "stable"}


def statuses(drift: Drift, group: str | None = None) -> dict[Any, str]:
    table = drift.table(group, library="polars")
    return dict(zip(table[table.columns[0]].to_list(), table["status"].to_list(), strict=True))


def test_levels_are_new_vanished_moved_or_stable():
    drift = MeansEncoder("zip").fit(OLD).drift(NEW)
    assert statuses(drift) == STATUS
    assert (drift.n_moved, drift.n_new, drift.n_vanished) == (1, 1, 1)
    assert (drift.share_unseen, drift.share_moved, drift.share_changed) == (0.25, 0.25, 0.5)
    first = drift.table(library="polars").row(0, named=True)
    assert (first["zip"], first["covariate"], first["rows_then"], first["rows_now"]) == ("b", "built", 40, 20)
    assert first["difference"] == pytest.approx(2, abs=0.5)
    assert (first["df1"], first["df2"]) == (2, 160 + 80 - 8 - 2 + 1)
    assert repr(drift) == (
        "<Drift of 80 rows>\n"
        "zip: 1 of 3 tested levels has moved (25.0 % of the rows), 1 is new (25.0 %), 1 has vanished."
    )


def test_the_result_is_public_and_frozen():
    drift = MeansEncoder("zip").fit(OLD).drift(NEW)
    assert isinstance(drift, sufrep.Drift)
    with pytest.raises(AttributeError, match="rate"):
        drift.rate = 0.5


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "numpy"])
def test_every_kind_of_table_gives_the_same(kind):
    convert = {
        "pandas": pl.DataFrame.to_pandas,
        "polars": pl.DataFrame.clone,
        "pyarrow": pl.DataFrame.to_arrow,
        "numpy": lambda frame: frame.with_columns(pl.col("zip").map_elements(ord, pl.Int64)).to_numpy(),
    }[kind]
    drift = MeansEncoder(0 if kind == "numpy" else "zip").fit(convert(OLD)).drift(convert(NEW))
    expected = MeansEncoder("zip").fit(OLD).drift(NEW)
    library = None if kind == "numpy" else kind
    found = pl.DataFrame(
        drift.table(library=library).to_pandas() if kind == "pyarrow" else drift.table(library=library)
    )
    np.testing.assert_allclose(
        found[NUMBERS].to_numpy(), expected.table(library="polars")[NUMBERS].to_numpy()
    )


@pytest.mark.parametrize("method", sorted(sufrep.encoders.METHODS))
def test_every_encoder_has_drift_and_the_target_plays_no_part(method, choose):
    choose("means", "target_mean")
    y = np.random.default_rng(0).normal(size=len(OLD))
    encoder = make_encoder(method, "zip").fit(OLD, y)
    drift = encoder.drift(NEW)
    has_covariates = bool([item for item in encoder.covariates_ if item.position is not None])
    known = STATUS if has_covariates else STATUS | dict.fromkeys("bcd", "untested")
    assert statuses(drift) == known
    assert drift.share_unseen == 0.25
    if has_covariates:
        expected = MeansEncoder("zip").fit(OLD).drift(NEW).table(library="polars")
        np.testing.assert_allclose(
            drift.table(library="polars")[NUMBERS].to_numpy(), expected[NUMBERS].to_numpy()
        )


def test_a_column_that_was_dropped_is_compared_too(choose):
    choose()
    encoder = SufficientEncoder("zip").fit(OLD, np.arange(len(OLD)) / 7)
    assert encoder.chosen_ == ()
    assert statuses(encoder.drift(NEW)) == STATUS


def test_without_covariates_only_levels_are_compared():
    drift = ContrastEncoder("zip").fit(OLD).drift(NEW)
    assert drift.share_moved == 0
    assert drift.share_changed == 0.25
    assert repr(drift).endswith(
        "zip: 1 is new (25.0 % of the rows), 1 has vanished; no level could be tested."
    )
    assert drift.plot().to_dict()["layer"][1]["encoding"]["x"]["title"] == "rows then"


def test_a_saved_encoder_finds_the_same(tmp_path):
    encoder = MeansEncoder("zip", use_target=True).fit(OLD, np.arange(len(OLD)))
    encoder.save(tmp_path / "zip.sufrep")
    one, other = encoder.drift(NEW), load(tmp_path / "zip.sufrep").drift(NEW)
    assert one.table(library="polars").equals(other.table(library="polars"), null_equal=True)


def test_an_encoder_saved_without_moments_says_so():
    encoder = LatentStateEncoder("zip", n_states=2).fit(OLD)
    del encoder.moments_
    with pytest.raises(
        NoMomentsError, match=r"LatentStateEncoder was saved by a version.*\nHint: fit it again"
    ):
        encoder.drift(NEW)


def test_moments_of_order_one_take_the_spread_of_the_new_rows():
    encoder = MeansEncoder("zip").fit(OLD)
    encoder.moments_ = {name: moments.of_order(1) for name, moments in encoder.moments_.items()}
    assert statuses(encoder.drift(NEW)) == STATUS
    assert encoder.drift(NEW).groups["zip"].df2[0] == 80 - 4 - 2 + 1


def test_numbers_without_squares_are_reported_without_a_test_or_as_moved():
    huge = NEW.with_columns(pl.when(pl.col("zip") == "c").then(1e200).otherwise(pl.col("sqft")).alias("sqft"))
    assert statuses(MeansEncoder("zip").fit(OLD).drift(huge))["c"] == "moved"
    both = MeansEncoder("zip").fit(huge).drift(huge)
    assert set(statuses(both).values()) == {"untested"}


def test_weights_count_like_repeated_rows():
    weights = np.arange(len(NEW)) % 3
    encoder = MeansEncoder("zip").fit(OLD)
    one = encoder.drift(NEW, sample_weight=weights)
    other = encoder.drift(NEW[np.repeat(np.arange(len(NEW)), weights)])
    np.testing.assert_allclose(
        one.table(library="polars")[NUMBERS].to_numpy(), other.table(library="polars")[NUMBERS].to_numpy()
    )
    assert one.share_changed == other.share_changed


def test_several_groups_have_their_own_tables_and_the_largest_shares():
    old, new = (
        frame.with_columns(pl.Series("kind", np.resize(["x", "y", "y"], len(frame)))) for frame in (OLD, NEW)
    )
    drift = MeansEncoder(["zip", "kind", ("kind", "zip")]).fit(old).drift(new)
    assert list(drift.groups) == ["zip", "kind", "kind:zip"]
    assert statuses(drift, "zip") == STATUS
    assert set(statuses(drift, "kind")) == {"x", "y"}
    crossed = drift.table("kind:zip", library="polars")
    assert crossed.columns[:3] == ["kind", "zip", "status"]
    assert sorted(crossed.filter(status="new").select("kind", "zip").rows()) == [("x", "e"), ("y", "e")]
    assert drift.share_unseen == 0.25
    assert drift.n_new == 3
    with pytest.raises(UnknownGroupError, match="One group is needed, but there are 3: zip, kind, kind:zip"):
        drift.table()
    with pytest.raises(UnknownGroupError, match="No group called 'zap' was encoded"):
        drift.plot("zap")


def test_rare_levels_are_compared_one_by_one():
    encoder = MeansEncoder("zip", min_frequency=50).fit(OLD)
    assert statuses(encoder.drift(NEW)) == STATUS


def with_nulls(frame: pl.DataFrame, level: str) -> pl.DataFrame:
    return frame.with_columns(
        pl.when(pl.col("zip") == level).then(None).otherwise(pl.col("zip")).alias("zip")
    )


def test_a_null_is_a_level_or_none_as_in_transform():
    old, new = with_nulls(OLD, "c"), with_nulls(NEW, "c")
    assert statuses(MeansEncoder("zip").fit(old).drift(new))[None] == "stable"
    assert statuses(MeansEncoder("zip").fit(OLD).drift(new))[None] == "new"
    drift = MeansEncoder("zip", missing="prior").fit(old).drift(new)
    assert None not in statuses(drift)
    assert drift.share_unseen == 0.25  # of all rows
    with pytest.raises(MissingLevelError, match="zip"):
        MeansEncoder("zip", missing="error").fit(OLD).drift(new)


def test_nothing_but_nulls_leaves_all_levels_without_rows():
    new = NEW.with_columns(pl.lit(None, dtype=pl.String).alias("zip"))
    drift = MeansEncoder("zip", missing="prior").fit(OLD).drift(new)
    assert set(statuses(drift).values()) == {"vanished"}
    assert drift.share_changed == 0


def test_text_covariates_are_compared_by_the_shares_that_fit_saw():
    kinds = ["x", "y", "z"]
    old = OLD.with_columns(pl.Series("kind", np.resize(kinds, len(OLD))))
    new = NEW.with_columns(pl.Series("kind", ["x" if place == "c" else "new" for place in NEW["zip"]]))
    encoder = MeansEncoder("zip", categorical_covariates="share").fit(old)
    drift = encoder.drift(new)
    assert drift.groups["zip"].covariates == ("sqft", "built", "kind=x", "kind=y", "kind=z")
    assert statuses(drift)["c"] == "moved"


def test_chunks_that_were_fitted_one_by_one_are_compared_together():
    encoder = MeansEncoder("zip").partial_fit(OLD[:50]).partial_fit(OLD[50:])
    one, other = encoder.drift(NEW), MeansEncoder("zip").fit(OLD).drift(NEW)
    np.testing.assert_allclose(
        one.table(library="polars")[NUMBERS].to_numpy(), other.table(library="polars")[NUMBERS].to_numpy()
    )


def test_unseen_levels_are_no_error():
    encoder = MeansEncoder("zip", unseen="error").fit(OLD)
    assert encoder.drift(NEW).n_new == 1


def test_one_row_and_rows_of_new_levels_only():
    encoder = MeansEncoder("zip").fit(OLD)
    assert statuses(encoder.drift(NEW[:1]))["b"] in ("moved", "stable")
    drift = encoder.drift(NEW.filter(zip="e"))
    assert (drift.share_unseen, drift.n_moved, drift.n_vanished) == (1.0, 0, 4)


def test_levels_of_another_type_give_a_warning():
    frame = pd.DataFrame({"zip": ["98178", "98125"] * 5, "sqft": np.arange(10.0)})
    encoder = MeansEncoder("zip").fit(frame)
    with pytest.warns(UnseenLevelsWarning, match="No row of column 'zip' holds a level that fit saw"):
        encoder.drift(frame.assign(zip=frame["zip"].astype(int)))


def test_what_drift_cannot_read_is_an_error():
    encoder = MeansEncoder("zip").fit(OLD)
    with pytest.raises(ColumnsMismatchError, match="built"):
        encoder.drift(NEW.drop("built"))
    with pytest.raises(NoRowsError, match="0 sample"):
        encoder.drift(NEW[:0])
    with pytest.raises(SampleWeightError, match="is zero in every row"):
        encoder.drift(NEW, sample_weight=np.zeros(len(NEW)))
    with pytest.raises(LengthMismatchError, match="sample_weight"):
        encoder.drift(NEW, sample_weight=[1.0])
    with pytest.raises(sufrep.errors.SufrepError, match="built"):
        encoder.drift(NEW.with_columns(pl.lit("old").alias("built")))


@pytest.mark.parametrize("rate", [0, 1, -0.1, float("nan"), "0.05"])
def test_a_rate_is_a_number_between_0_and_1(rate):
    with pytest.raises(InvalidParameterError, match=re.escape(f"rate is {rate!r}")):
        MeansEncoder("zip").fit(OLD).drift(NEW, rate=rate)


def test_an_encoder_that_is_not_fitted_has_nothing_to_compare_with():
    with pytest.raises(ValueError, match="not fitted"):
        MeansEncoder("zip").drift(NEW)


def test_drift_changes_nothing_in_the_encoder():
    encoder = MeansEncoder("zip").fit(OLD)
    before = dict(vars(encoder))
    encoder.drift(NEW)
    assert vars(encoder) == before


def test_columns_with_the_names_of_the_table_keep_theirs():
    old, new = (frame.rename({"zip": "status"}) for frame in (OLD, NEW))
    table = MeansEncoder("status").fit(old).drift(new).table(library="polars")
    assert table.columns[:2] == ["status", "status_of_level"]


def test_plain_values_are_json():
    drift = MeansEncoder("zip").fit(OLD).drift(NEW)
    text = json.dumps(drift.to_dict(), allow_nan=False)
    (group,) = json.loads(text)["groups"]
    assert group["n_levels"] == {"moved": 1, "new": 1, "vanished": 1, "stable": 2, "untested": 0}
    assert group["levels"][0]["level"] == "b"
    assert group["levels"][1]["p_value"] is None


def test_the_html_of_a_notebook_is_escaped():
    old, new = (frame.with_columns(pl.lit("<i>").alias("zip")) for frame in (OLD, NEW))
    text = MeansEncoder("zip").fit(old).drift(new)._repr_html_()
    assert "&lt;i&gt;" in text
    assert "<i>" not in text


def test_without_groups_there_is_nothing_to_compare():
    drift = PermutationEncoder().fit(OLD.drop("zip").to_numpy()).drift(NEW.drop("zip").to_numpy())
    assert drift.groups == {}
    assert drift.share_changed == 0
    assert repr(drift) == "<Drift of 0 rows>"


# The page


def test_the_page_has_the_verdict_every_level_and_both_charts(tmp_path):
    drift = MeansEncoder("zip").fit(OLD).drift(NEW)
    text = drift.to_html(tmp_path / "drift.html").read_text()
    for part in (
        "1 of 3 tested levels has moved (25.0\u00a0% of the rows), 1 is new (25.0\u00a0%), 1 has vanished.",
        "zip: levels that moved",
        "zip: rows then and now",
        "zip: new levels",
        "zip: vanished",
        "4 then, 4 now",
        "the means of levels as about normal",
    ):
        assert part in text
    assert text.count("vegaEmbed") > 0
    assert re.search(r"<th[^>]*>b</th>", text)


def test_the_page_of_a_coding_has_sizes_only(tmp_path):
    text = ContrastEncoder("zip").fit(OLD).drift(NEW).to_html(tmp_path / "drift.html").read_text()
    assert "levels that moved" not in text
    assert "zip: rows then and now" in text
    assert "as about normal" not in text


def test_the_page_shows_what_has_no_number(tmp_path):
    old, new = (frame.with_columns(pl.lit(float(year)).alias("year")) for year, frame in ((1, OLD), (2, NEW)))
    new = new.with_columns(
        *(
            pl.when(pl.col("zip") == "d").then(None).otherwise(pl.col(name)).alias(name)
            for name in new.columns[1:]
        )
    )
    drift = MeansEncoder("zip").fit(old).drift(new)
    assert statuses(drift) == STATUS | {"c": "moved", "d": "untested"}
    text = drift.to_html(tmp_path / "drift.html").read_text()
    assert "+∞" in text
    assert "1 known level(s) could not be tested" in text
