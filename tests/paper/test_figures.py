"""Figures: the bars are the improvements, the marks the published ones, and files are whole or not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sufrep._paper import figures
from sufrep._paper.effect_summary import effect_summaries
from sufrep._paper.figures import draw_effect_figures, draw_figures, effect_figure, figure
from sufrep._paper.store import Store
from sufrep._paper.summary import published_improvements, simulated_improvements
from sufrep.errors import NotWritableError, StoreError

Record = dict[str, Any]
FACTORS = {"one_hot": 1.0, "means": 0.8, "low_rank": 0.9, "permutation": 1.1, "deviation": 1.0, "bayes": 0.5}


def made(methods: list[str], n_seeds: int = 2, **changes: Any) -> list[Record]:
    """Records of two setups and two cells; errors differ by method and a little by seed."""
    return [
        {
            "model": "xgboost",
            "setup": setup,
            "n_latent": n_latent,
            "levels_per_latent": 50,
            "method": method,
            "seed": seed,
            "k_index_bug": False,
            "loss": FACTORS[method] + 0.01 * seed * len(method),
            **changes,
        }
        for setup in ("latent_linear", "global_linear")
        for n_latent in (10, 2)
        for method in methods
        for seed in range(n_seeds)
    ]


def filled(folder: Path, records: list[Record]) -> Store:
    store = Store(folder / "store", "simulations")
    with store.writing({}) as writer:
        for record in records:
            writer.append(record)
    return store


def spec_of(records: list[Record]) -> dict[str, Any]:
    return figure(simulated_improvements(records)).to_dict()


def values_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return spec["data"]["values"]


@pytest.fixture
def drawn(monkeypatch) -> dict[str, Any]:
    """The charts that would be written, by the name of the file; rendering takes seconds."""
    charts: dict[str, Any] = {}

    def keep(chart: Any, path: Path) -> list[Path]:
        charts[path.name] = chart.to_dict()
        return [path]

    monkeypatch.setattr(figures, "write_chart", keep)
    return charts


def bars_of(spec: dict[str, Any]) -> list[str]:
    return spec["spec"]["layer"][0]["encoding"]["color"]["scale"]["domain"]


def test_the_data_of_the_chart_are_the_improvements_and_the_published_bars():
    records = made(["one_hot", "means", "permutation"])
    published = published_improvements()
    rows = values_of(spec_of(records))
    found = simulated_improvements(records)
    assert len(rows) == len(found) == 8
    for row, item in zip(rows, found, strict=True):
        setup, n_latent, levels = item.cell
        assert row == {
            "panel": setup.replace("_", " "),
            "category": f"{n_latent}L-{levels}G",
            "series": item.method,
            "value": item.mean,
            "low": item.low,
            "high": item.high,
            "reference": published.get(("xgboost", item.cell, item.method)),
            "seeds": 2,
        }
    assert {row["series"] for row in rows if row["reference"] is not None} == {"means"}
    assert all(row["value"] < 0 for row in rows if row["series"] == "permutation")


def test_panels_and_cells_have_the_order_of_the_paper_whatever_that_of_the_records():
    spec = spec_of(made(["one_hot", "means"]))
    assert spec["facet"]["column"]["sort"] == ["global linear", "latent linear", "piecewise linear"]
    assert spec["spec"]["layer"][0]["encoding"]["x"]["sort"] == ["2L-50G", "10L-50G"]


def test_one_seed_has_no_interval():
    spec = spec_of(made(["one_hot", "means"], n_seeds=1))
    assert all(row["low"] is None and row["high"] is None for row in values_of(spec))
    assert spec["title"]["subtitle"] == "One seed. 10L-50G: 10 states of 50 levels."


def test_the_subtitle_counts_the_seeds_and_explains_the_names_of_cells():
    few = [record for record in made(["one_hot", "means"], n_seeds=5) if record["n_latent"] == 2]
    many = [record for record in made(["one_hot", "means"], n_seeds=9) if record["n_latent"] == 10]
    cell = "lines are 95 % intervals. 2L-50G: 2 states of 50 levels."
    assert spec_of(few)["title"]["subtitle"] == f"Means over 5 seeds, {cell}"
    assert spec_of(few + many)["title"]["subtitle"] == f"Means over 5 to 9 seeds, {cell}"


def test_methods_keep_their_colour_in_every_figure_and_no_two_share_one():
    alone = spec_of(made(["one_hot", "means"]))["spec"]["layer"][0]["encoding"]["color"]["scale"]
    together = spec_of(made(list(FACTORS)))["spec"]["layer"][0]["encoding"]["color"]["scale"]
    colours = dict(zip(together["domain"], together["range"], strict=True))
    assert alone["range"] == [colours["means"]]
    assert len(set(colours.values())) == len(colours) == 5


def test_by_default_the_bars_are_those_of_the_paper_and_the_references(tmp_path, drawn):
    draw_figures(filled(tmp_path, made(list(FACTORS))), tmp_path / "out")
    assert bars_of(drawn["figure_xgboost"]) == ["low_rank", "means", "bayes"]


def test_a_store_without_any_of_these_shows_all_it_has(tmp_path, drawn):
    draw_figures(filled(tmp_path, made(["one_hot", "permutation", "deviation"])), tmp_path / "out")
    assert set(bars_of(drawn["figure_xgboost"])) == {"permutation", "deviation"}


def test_the_bug_of_the_authors_is_next_to_its_method(tmp_path, drawn):
    records = made(["one_hot", "low_rank"]) + made(["low_rank"], k_index_bug=True)
    draw_figures(filled(tmp_path, records), tmp_path / "out")
    assert bars_of(drawn["figure_xgboost"]) == ["low_rank (k index)", "low_rank"]


def test_the_methods_asked_for_are_the_bars_in_this_order(tmp_path, drawn):
    draw_figures(filled(tmp_path, made(list(FACTORS))), tmp_path / "out", ["permutation", "means"])
    assert bars_of(drawn["figure_xgboost"]) == ["permutation", "means"]
    assert {row["series"] for row in values_of(drawn["figure_xgboost"])} == {"permutation", "means"}


def test_every_model_that_has_these_methods_gets_a_figure(tmp_path, drawn):
    records = made(["one_hot", "means"]) + made(["one_hot", "bayes"], model="forest")
    store = filled(tmp_path, records)
    draw_figures(store, tmp_path / "out")
    assert set(drawn) == {"figure_xgboost", "figure_forest"}
    drawn.clear()
    draw_figures(store, tmp_path / "out", ["means"])
    assert set(drawn) == {"figure_xgboost"}


@pytest.mark.parametrize("method", ["mens", "one_hot", "mnl"])
def test_a_method_that_the_store_does_not_have_is_an_error_that_lists_what_it_has(tmp_path, method):
    store = filled(tmp_path, made(["one_hot", "means", "permutation"]))
    with pytest.raises(
        StoreError,
        match=rf"has no improvement of '{method}' over one_hot.\nHint: the methods are means, p",
    ):
        draw_figures(store, tmp_path / "out", ["means", method])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("methods", [[], ["one_hot"], ["means"]])
def test_a_store_without_anything_to_compare_raises(tmp_path, methods):
    store = filled(tmp_path, made(methods))
    with pytest.raises(StoreError, match=r"holds no cell with both one_hot and another method.\nHint: run"):
        draw_figures(store, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_png_svg_and_html_are_complete_and_need_no_network(tmp_path):
    store = filled(tmp_path, made(["one_hot", "means", "permutation", "bayes"]))
    folder = tmp_path / "new" / "out"
    png, svg, html = draw_figures(store, folder, ["means", "permutation"])
    assert sorted(folder.iterdir()) == sorted([png, svg, html])
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert png.read_bytes().rstrip().endswith(b"IEND\xaeB`\x82")
    texts = [element.text for element in ElementTree.parse(svg).iter() if element.text]
    assert {"latent linear", "2L-50G", "means", "permutation", "published", "−10%"} <= set(texts)
    page = html.read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
    assert not re.search(r"<(script|link)\b[^>]*\b(src|href)\s*=", page)


def test_a_folder_that_cannot_be_made_raises(tmp_path):
    store = filled(tmp_path, made(["one_hot", "means"]))
    (tmp_path / "file").touch()
    with pytest.raises(NotWritableError, match=r"Cannot write .*file/out': Not a directory.\nHint: name"):
        draw_figures(store, tmp_path / "file" / "out")


def test_a_full_disk_raises_and_keeps_the_old_figures(tmp_path, monkeypatch):
    class Full:
        def save(self, file: Any, **_: Any) -> None:
            file.write(b"half")
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(figures, "figure", lambda _: Full())
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "figure_xgboost.png").write_bytes(b"old")
    with pytest.raises(NotWritableError, match=r"out': No space left on device"):
        draw_figures(filled(tmp_path, made(["one_hot", "means"])), folder)
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("figure_xgboost.png", b"old")]


# Treatment effects


def effects(model: str = "linear", n_seeds: int = 2, **changes: Any) -> list[Record]:
    return [
        {
            "arm": arm,
            "n": 4000,
            "model": model,
            "method": method,
            "seed": seed,
            "estimate": 1 + 0.1 * seed,
            "std_error": 0.1,
            "lower": 0.9,
            "upper": 1.05,
            "truth": 1.0,
            "dropped": 0.0,
            **changes,
        }
        for arm in ("uneven", "main")
        for method in ("means_w", "true_psi")
        for seed in range(n_seeds)
    ]


def panels_of(records: list[Record]) -> list[Any]:
    return effect_figure(effect_summaries(records)).to_dict()["vconcat"]


def test_effects_show_bias_and_coverage_with_a_panel_for_each_arm():
    bias, coverage = panels_of(effects())
    assert [row["value"] for row in values_of(bias)] == pytest.approx([0.05] * 4)
    assert [row["low"] for row in values_of(bias)] == pytest.approx([0.05 - 1.96 * 0.05] * 4)
    assert {row["measure"] for row in values_of(coverage)} == {"coverage"}
    assert bias["facet"]["column"]["sort"] == ["main", "uneven"]


def test_one_sample_has_no_interval():
    bias, _ = panels_of(effects(n_seeds=1))
    assert [row["low"] for row in values_of(bias)] == [None] * 4


def test_sizes_of_the_same_arm_have_their_own_panels():
    bias, _ = panels_of([*effects(), *effects(arm="main", n=10_000)])
    assert bias["facet"]["column"]["sort"] == ["main, n 4,000", "main, n 10,000", "uneven"]


def test_effects_of_every_model_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "write_chart", lambda _, path: [path])
    store = Store(tmp_path / "store", "causal")
    with pytest.raises(
        StoreError, match=r"holds no effect of these methods\.\nHint: run `sufrep paper causal`"
    ):
        draw_effect_figures(store, tmp_path)
    with store.writing({}) as writer:
        for record in [*effects(), *effects("boosting")]:
            writer.append(record)
    names = [path.name for path in draw_effect_figures(store, tmp_path / "new")]
    assert names == ["figure_effects_linear", "figure_effects_boosting"]
    with pytest.raises(StoreError, match="holds no effect of these methods"):
        draw_effect_figures(store, tmp_path, ["nothing"])
