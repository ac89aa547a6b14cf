"""A representation as a frame, as a picture and as HTML."""

from __future__ import annotations

import datetime as dt
import io
from html.parser import HTMLParser
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge

from sufrep import ContrastEncoder, MeansEncoder, errors, make_encoder
from sufrep._charts import _altair
from sufrep.encoders import METHODS
from sufrep.encoders._certainty import vector_errors
from sufrep.encoders._display import principal_axes, principal_plane

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


def shops(levels: list[Any], n_covariates: int = 2, n_rows: int = 24) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        rng.normal(size=(n_rows, n_covariates)), columns=[f"x{j}" for j in range(n_covariates)]
    )
    group = np.empty(n_rows, dtype=object)
    group[:] = [levels[i % len(levels)] for i in range(n_rows)]
    return rows.assign(shop=pd.Series(group, dtype=object))


def png(chart: Any) -> bytes:
    picture = io.BytesIO()
    chart.save(picture, format="png")
    return picture.getvalue()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_table_has_level_weight_and_vector(library):
    rows = pd.DataFrame({"shop": list("aab"), "x": [1.0, 2.0, 5.0]})
    table = MeansEncoder("shop").fit(rows).table(library=library)
    assert isinstance(table, LIBRARIES[library])
    assert nw.from_native(table).to_dict(as_series=False) == {
        "shop": ["a", "b"],
        "weight": [2.0, 1.0],
        "shop_mean_x": [1.5, 5.0],
    }


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_table_is_by_default_of_the_library_that_was_fitted(library):
    rows = {"shop": ["a", "a", "b", "b"], "x": [1.0, 2.0, 5.0, 6.0]}
    make = pa.table if library == "pyarrow" else LIBRARIES[library]
    encoder = MeansEncoder("shop").fit(make(rows))
    assert isinstance(encoder.table(), LIBRARIES[library])
    assert isinstance(encoder.drift(make(rows)).table(), LIBRARIES[library])


def test_a_table_of_a_fit_to_an_array_is_a_pandas_frame_by_default():
    encoder = MeansEncoder("shop").fit(pl.DataFrame({"shop": ["a"], "x": [1.0]}))
    assert isinstance(encoder.set_params(group=0).fit([["a", 1.0]]).table(), pd.DataFrame)


@pytest.mark.parametrize("library", LIBRARIES)
def test_crossed_groups_have_a_column_each(library):
    rows = pd.DataFrame({"shop": ["a", "a", None], "year": [1, 2, 1], "x": [1.0, 2.0, 5.0]})
    encoder = MeansEncoder(["shop", ("shop", "year")]).fit(rows)
    table = nw.from_native(encoder.table("shop:year", library=library))
    assert table.columns == ["shop", "year", "weight", "shop:year_mean_x"]
    assert table["year"].to_list() == [1, 2, 1]
    assert table["shop"].is_null().to_list() == [False, False, True]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("levels", "shown"),
    [
        ([1, 2.5, "a", None], ["1", "2.5", "a", None]),
        ([dt.date(2024, 1, 1), "x"], ["2024-01-01", "x"]),
        ([1, 2.5], [1, 2.5]),
        ([True, False], [False, True]),
        ([dt.date(2024, 1, 2), dt.date(2024, 1, 1)], [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
        ([b"b", b"a"], [b"a", b"b"]),
        (["b", None], ["b", None]),
        ([7, None], [7, None]),
    ],
    ids=repr,
)
def test_levels_of_several_types_become_text_in_a_table(library, levels, shown):
    table = MeansEncoder("shop").fit(shops(levels)).table(library=library)
    found = nw.from_native(table)["shop"]
    values = [None if null else value for value, null in zip(found.to_list(), found.is_null(), strict=True)]
    assert values == shown


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_hold_integers_of_any_size(library):
    table = MeansEncoder("shop").fit(shops([2**70, 2**71])).table(library=library)
    found = nw.from_native(table)["shop"].to_list()
    assert [int(value) for value in found] == [2**70, 2**71]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_group_called_weight_keeps_its_levels(library):
    rows = shops(["light", "heavy"]).rename(columns={"shop": "weight"})
    table = nw.from_native(MeansEncoder("weight").fit(rows).table(library=library))
    assert any(table[column].to_list() == ["heavy", "light"] for column in table.columns)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_table_and_a_picture(method):
    rows = shops(["a", "b", "c", None], n_covariates=3)
    # test_sufficient.py has the tables of other choices.
    quick = {"families": ("prediction",), "estimator": Ridge(), "cv": 2} if method == "sufficient" else {}
    encoder = make_encoder(method, "shop", **quick).fit(rows, np.arange(24.0))
    assert encoder.table().shape == (4, 2 + len(encoder.representations_["shop"].columns))
    assert len(encoder.plot().to_dict()["data"]["values"]) == 4


def test_a_sparse_representation_has_a_table_and_a_picture():
    encoder = ContrastEncoder("shop", sparse_output=True).fit(shops(list("abcd")))
    np.testing.assert_array_equal(encoder.table().iloc[:, 2:], np.eye(4)[:, 1:])
    assert png(encoder.plot()).startswith(b"\x89PNG")


def test_one_of_several_groups_must_be_named():
    encoder = ContrastEncoder(["shop", "town"]).fit(shops(["a", "b"]).assign(town="t"))
    for ask in (encoder.table, encoder.plot):
        with pytest.raises(errors.UnknownGroupError, match=r"there are 2: shop, town"):
            ask()
        with pytest.raises(errors.UnknownGroupError, match="No group called 'street'"):
            ask("street")
    assert encoder.table("town").shape == (1, 2)


def test_without_groups_there_is_no_table():
    with pytest.raises(errors.UnknownGroupError, match=r"there are 0: \(none\)"):
        MeansEncoder().fit(np.ones((3, 2))).table()


@pytest.mark.parametrize(("n_levels", "n_covariates"), [(1, 1), (1, 3), (2, 2), (2, 6), (5, 3)])
def test_levels_are_drawn_however_many_and_however_long(n_levels, n_covariates):
    rows = shops([f"shop {i}" for i in range(n_levels)], n_covariates)
    chart = MeansEncoder("shop").fit(rows).plot()
    assert png(chart).startswith(b"\x89PNG")
    assert chart.to_dict()["title"]["text"] == f"shop: {n_levels} levels"


def test_one_level_of_a_contrast_has_no_vector_and_still_a_picture():
    assert png(ContrastEncoder("shop").fit(shops(["a"])).plot()).startswith(b"\x89PNG")


def test_levels_that_look_like_html_are_drawn():
    chart = MeansEncoder("shop").fit(shops(["<script>alert(1)</script>", "&amp;"])).plot()
    assert png(chart).startswith(b"\x89PNG")
    labels = {row["label"] for row in chart.to_dict()["data"]["values"]}
    assert labels == {"<script>alert(1)</script>", "&amp;"}


def test_short_vectors_are_drawn_as_they_are():
    rows = pd.DataFrame({"shop": list("ab"), "x": [1.0, 2.0], "z": [5.0, 3.0]})
    chart = MeansEncoder("shop").fit(rows).plot().to_dict()
    assert [(row["label"], row["x"], row["y"]) for row in chart["data"]["values"]] == [
        ("a", 1.0, 5.0),
        ("b", 2.0, 3.0),
    ]
    assert chart["layer"][0]["encoding"]["x"]["title"] == "shop_mean_x"
    assert chart["layer"][0]["encoding"]["y"]["title"] == "shop_mean_z"


def test_levels_with_one_entry_are_drawn_in_its_order():
    rows = pd.DataFrame({"shop": list("aabbcc"), "x": [5.0, 6.0, 1.0, 2.0, 8.0, 9.0]})
    chart = MeansEncoder("shop").fit(rows).plot().to_dict()
    places = {row["label"]: (row["x"], row["y"]) for row in chart["data"]["values"]}
    assert places == {"a": (5.5, 2.0), "b": (1.5, 1.0), "c": (8.5, 3.0)}
    assert chart["layer"][1]["encoding"]["y"]["title"] == "rank"


@pytest.mark.parametrize("n_covariates", [2, 5])
def test_ellipses_are_the_errors_in_the_plane_that_is_shown(n_covariates):
    rows = shops([f"shop {i}" for i in range(6)], n_covariates, n_rows=90)
    encoder = MeansEncoder("shop").fit(rows)
    chart = encoder.plot().to_dict()
    outlines = chart["layer"][0]["data"]["values"]
    edge = np.array([[row["x"], row["y"]] for row in outlines if row["label"] == "shop 3"])[:-1]
    table = encoder.representations_["shop"]
    axes = np.eye(2) if n_covariates == 2 else principal_axes(table.values, table.weight)[0]
    covariance = axes.T @ vector_errors(encoder, "shop").covariances(np.array([3]))[0] @ axes
    spread = edge - edge.mean(axis=0)
    # Points on an ellipse, evenly spaced in the angle, have half its squared radius as their variance.
    np.testing.assert_allclose(spread.T @ spread / len(edge), 5.9915 / 2 * covariance, rtol=1e-3)


def test_encoders_without_errors_are_drawn_without_ellipses():
    chart = make_encoder("helmert", "shop").fit(shops(list("abcd"))).plot().to_dict()
    assert len(chart["layer"]) == 2
    assert chart["title"] == "shop: 4 levels"


def test_long_vectors_are_drawn_by_their_principal_components():
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(40, 1))
    values = direction @ np.array([[1.0, 100.0, -0.01]]) + 1e-6 * rng.normal(size=(40, 3))
    plane, titles = principal_plane(values, np.ones(40))
    assert abs(np.corrcoef(plane[:, 0], direction[:, 0])[0, 1]) > 0.99
    assert titles[0] == "component 1 (100% of the variance)"


@pytest.mark.parametrize("n_levels", [1, 2, 30])
def test_the_principal_plane_is_centred_and_finite(n_levels):
    values = np.random.default_rng(1).normal(size=(n_levels, 4))
    values[:, 2] = 7.0  # does not vary
    weight = np.arange(1.0, n_levels + 1)
    plane, titles = principal_plane(values, weight)
    assert plane.shape == (n_levels, 2)
    assert len(titles) == 2
    np.testing.assert_allclose(weight @ plane, 0.0, atol=1e-9)


def test_without_altair_a_plot_says_what_to_install(monkeypatch):
    encoder = MeansEncoder("shop").fit(shops(["a", "b"]))
    monkeypatch.setattr(_altair, "find_spec", lambda _: None)
    with pytest.raises(errors.MissingDependencyError, match="'altair', which is not installed"):
        encoder.plot()


class _Reader(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_shows_sizes_and_the_first_levels():
    encoder = MeansEncoder("shop").fit(shops([f"shop {i}" for i in range(8)], n_covariates=7))
    page = encoder._repr_html_().rpartition("<details>")[2]
    assert "shop: 8 levels x 7 columns" in page
    assert "shop 4" in page
    assert "shop 5" not in page
    assert "shop_mean_x4" in page
    assert "shop_mean_x5" not in page


def test_html_of_many_levels_has_readable_numbers():
    encoder = ContrastEncoder(0, sparse_output=True).fit(np.arange(12_345)[:, None])
    assert "x0: 12,345 levels x 12344 columns" in encoder._repr_html_()


def test_html_escapes_levels_columns_and_groups():
    nasty = "<script>alert('x')</script>"
    rows = pd.DataFrame({nasty: [nasty, "b&b"], "x": [1.0, 2.0], "z<b>": [1.0, 2.0]})
    page = MeansEncoder(nasty).fit(rows)._repr_html_()
    reader = _Reader()
    reader.feed(page)
    plain = _Reader()
    plain.feed(MeansEncoder("shop").fit(shops(["a"]))._repr_html_())
    assert reader.tags.count("script") == plain.tags.count("script")
    assert nasty in reader.texts
    assert "b&b" in reader.texts
    assert "z<b>" not in page


def test_html_of_an_encoder_that_is_not_fitted_has_no_levels():
    page = MeansEncoder("shop")._repr_html_()
    assert "MeansEncoder" in page
    assert "levels x" not in page


def test_html_is_what_notebooks_show():
    bundle = MeansEncoder("shop").fit(shops(["a"]))._repr_mimebundle_()
    assert "1 levels x 2 columns" in bundle["text/html"]
