"""Tables, cell by cell, and how they are rendered."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sufrep._paper.names import BENCHMARK_MODELS, PAPER_METHODS, REFERENCES
from sufrep._paper.plan import BenchmarkPlan
from sufrep._paper.store import Store
from sufrep._paper.summary import published_improvements
from sufrep._paper.tables import (
    TextTable,
    all_tables,
    benchmark_tables,
    compared_tables,
    effect_tables,
    empirical_tables,
    recovery_tables,
    simulation_tables,
)
from sufrep.errors import DataNotFoundError, StoreError

Record = dict[str, Any]


def effect(method: str, seed: int, estimate: float, **changes: Any) -> Record:
    record = {"arm": "main", "n": 4000, "model": "linear", "method": method, "seed": seed}
    interval = {"std_error": 0.1, "lower": estimate - 0.2, "upper": estimate + 0.2}
    return {**record, "estimate": estimate, **interval, "truth": 1.0, "dropped": 0.125, **changes}


def simulated(method: str, errors: list[float], **changes: Any) -> list[Record]:
    """Records of one method in one cell, a seed for each error."""
    cell = {"model": "xgboost", "setup": "latent_linear", "n_latent": 2, "levels_per_latent": 50}
    rest = {"method": method, "k_index_bug": False, **changes}
    return [{**cell, "seed": seed, "loss": loss, **rest} for seed, loss in enumerate(errors)]


def crossvalidated(method: str, errors: list[float], **changes: Any) -> list[Record]:
    rest = {"model": "xgboost", "dataset": "pakistan", "seed": 0, "k_index_bug": False, **changes}
    return [{**rest, "method": method, "fold": fold, "loss": loss} for fold, loss in enumerate(errors)]


def test_simulations_show_ours_the_interval_and_the_published_bar():
    records = [
        *simulated("one_hot", [2.0, 4.0]),
        *simulated("means", [1.8, 3.68]),  # 10 % and 8 %: 9 ± 12.7 with Student's 12.7 of one degree
        *simulated("permutation", [2.1, 4.2]),
        *simulated("oracle", [1.0, 2.0]),
    ]
    first, second = simulation_tables(records)
    assert first.render("text") == (
        "xgboost: percent improvement of the MSE over one-hot ± 95 % (published)\n"
        "setup          cell    means             oracle\n"
        "-------------  ------  ----------------  ----------\n"
        "latent_linear  2L-50G  9.0 ± 12.7 (5.7)  50.0 ± 0.0\n"
        "Seeds per cell: 2.\n"
        "Cells within 4 points of the published bar: means 1 of 1.\n"
    )
    assert second.render("text") == (
        "xgboost: percent improvement of the MSE over one-hot ± 95 %\n"
        "setup          cell    permutation\n"
        "-------------  ------  -----------\n"
        "latent_linear  2L-50G  -5.0 ± 0.0\n"
        "Seeds per cell: 2.\n"
    )


def test_one_seed_has_no_interval_and_a_cell_that_was_not_run_is_empty():
    records = [
        *simulated("one_hot", [2.0]),
        *simulated("means", [1.0]),
        *simulated("one_hot", [2.0, 2.0], n_latent=3),
        *simulated("oracle", [1.0, 1.0], n_latent=3),
    ]
    (table,) = simulation_tables(records)
    assert table.rows == (
        ("latent_linear", "2L-50G", "50.0 (5.7)", ""),
        ("latent_linear", "3L-50G", "", "50.0 ± 0.0"),
    )
    assert table.notes[0] == "Seeds per cell: 1 to 2."


def test_a_zero_has_no_sign():
    ours = simulated("one_hot", [2.0]) + simulated("deviation", [2.00001])
    assert simulation_tables(ours)[0].rows[0][-1] == "0.0"
    folds = crossvalidated("one_hot", [2.0] * 4) + crossvalidated("deviation", [2.000001] * 4)
    assert empirical_tables(folds)[0].rows[0][-1] == "0.000"


def test_the_paper_s_methods_come_first_then_references_then_all_others():
    methods = [*PAPER_METHODS[1:], *REFERENCES]
    records = [
        record
        for method in ("one_hot", *sorted(methods, reverse=True))
        for record in simulated(method, [1.0])
    ]
    first, second = simulation_tables(records)
    assert first.header[2:] == ("means", "low_rank", "sparse_low_rank", "mnl", "oracle", "bayes")
    assert set(second.header[2:]) == set(methods) - set(first.header)


def test_with_every_method_no_line_is_wider_than_a_page():
    methods = [*PAPER_METHODS, *REFERENCES]
    records = [record for method in methods for record in simulated(method, [1.0, 1.7, 0.3])]
    records += simulated("low_rank", [1, 2, 3], k_index_bug=True)
    records += simulated("sparse_low_rank", [1, 2, 3], k_index_bug=True)
    tables = simulation_tables(records)
    assert sum(len(table.header) - 2 for table in tables) == len(methods) - 1 + 2
    longest = max(len(line) for table in tables for line in table.render("text").splitlines())
    assert longest <= 140


def test_many_methods_are_split_evenly_over_tables():
    records = simulated("one_hot", [1.0])
    records += [record for i in range(16) for record in simulated(f"other_{i}", [1.0])]
    tables = simulation_tables(records)
    assert [len(table.header) - 2 for table in tables] == [5, 5, 6]
    assert [name for table in tables for name in table.header[2:]] == [f"other_{i}" for i in range(16)]


def test_the_authors_bug_has_its_own_column_with_the_same_published_bar():
    records = [
        *simulated("one_hot", [1.0]),
        *simulated("low_rank", [0.75]),
        *simulated("low_rank", [0.5], k_index_bug=True),
    ]
    first, second = simulation_tables(records)
    assert (first.header[2], first.rows[0][2]) == ("low_rank", "25.0 (1.8)")
    assert (second.header[2], second.rows[0][2]) == ("low_rank (k index)", "50.0 (1.8)")


@pytest.mark.parametrize(("model", "points", "near"), [("xgboost", 4, 2), ("forest", 8, 3)])
def test_agreement_counts_the_cells_whose_bar_is_within_the_tolerance(model, points, near):
    published = published_improvements()
    records = []
    for n_latent, levels, gap in [(2, 50, 0.03), (2, 100, 0.05), (10, 50, -0.039), (10, 100, 0.2)]:
        cell = {"model": model, "n_latent": n_latent, "levels_per_latent": levels}
        share = published[model, ("latent_linear", n_latent, levels), "means"] + gap
        records += simulated("one_hot", [1.0], **cell) + simulated("means", [1 - share], **cell)
    (table,) = simulation_tables(records)
    assert table.notes[-1] == f"Cells within {points} points of the published bar: means {near} of 4."


@pytest.mark.parametrize("changes", [{"model": "sklearn_forest"}, {"n_latent": 7}])
def test_there_is_no_agreement_with_what_was_not_published(changes):
    records = simulated("one_hot", [1.0], **changes) + simulated("means", [0.5], **changes)
    (table,) = simulation_tables(records)
    assert table.notes == ("Seeds per cell: 1.",)
    assert table.rows[0][-1] == "50.0"


def test_every_model_has_its_table():
    records = [
        record
        for model in ("forest", "xgboost")
        for method in ("one_hot", "means")
        for record in simulated(method, [1.0], model=model)
    ]
    titles = [table.title for table in simulation_tables(records)]
    assert [title.partition(":")[0] for title in titles] == ["forest", "xgboost"]


def test_recovery_is_the_share_of_the_improvement_of_the_oracle():
    records = [
        *simulated("one_hot", [2.0, 3.0]),
        *simulated("means", [1.5, 2.5]),
        *simulated("oracle", [1.0, 1.0]),
    ]
    (table,) = recovery_tables(records)
    # (2.5 − 2) / (2.5 − 1), and the delta method by hand with Student's 12.706 for one degree of freedom.
    rest = np.array([0.5 - 1 / 3 * 1.0, 0.5 - 1 / 3 * 2.0]) / 1.5
    half = 12.7062 * rest.std(ddof=1) / np.sqrt(2)
    assert table.header[2:] == ("means",)
    assert table.rows[0][2] == f"33 ± {100 * half:.0f}"


def test_without_an_oracle_there_is_no_recovery():
    assert recovery_tables(simulated("one_hot", [2.0]) + simulated("means", [1.0])) == []


def test_one_seed_recovers_without_an_interval():
    records = [*simulated("one_hot", [2.0]), *simulated("means", [1.5]), *simulated("oracle", [1.0])]
    records += simulated("one_hot", [3.0], setup="global_linear")  # a cell without the others
    assert recovery_tables(records)[0].rows[0][2] == "50"


def test_real_data_show_improvement_both_tests_and_the_published_row():
    one_hot, means = [2.0, 2.5, 3.0, 2.5], [1.9, 2.6, 2.5, 2.3]
    (table,) = empirical_tables(crossvalidated("one_hot", one_hot) + crossvalidated("means", means))
    plain = stats.ttest_rel(one_hot, means)
    # Nadeau and Bengio: the variance has 1/4 + 1/3 in place of 1/4.
    corrected = 2 * stats.t.sf(abs(plain.statistic) * math.sqrt((1 / 4) / (1 / 4 + 1 / 3)), 3)
    assert table.header == ("data set", "", "means")
    assert table.rows == (
        ("pakistan", "improvement", f"{100 * (1 - 9.3 / 10):.3f}"),
        ("pakistan", "p", f"{plain.pvalue:.5f}"),
        ("pakistan", "p, corrected", f"{corrected:.5f}"),
        ("pakistan", "published (p)", "2.904 (0.52714)"),
    )
    assert table.notes == (
        "4 test folds. p, corrected: accounts for overlapping training sets (Nadeau and Bengio).",
    )


def test_a_table_of_methods_that_were_not_published_has_no_published_row():
    (table,) = empirical_tables(crossvalidated("one_hot", [1, 2, 3]) + crossvalidated("drop", [2, 3, 5]))
    assert [row[1] for row in table.rows] == ["improvement", "p", "p, corrected"]


def test_one_fold_has_no_p_value():
    (table,) = empirical_tables(crossvalidated("one_hot", [2.0]) + crossvalidated("drop", [1.0]))
    assert table.rows == (("pakistan", "improvement", "50.000"),)


def test_a_data_set_that_lacks_a_method_has_empty_cells():
    records = [
        *crossvalidated("one_hot", [2.0, 4.0]),
        *crossvalidated("means", [1.0, 3.0]),
        *crossvalidated("one_hot", [2.0, 4.0], dataset="ames"),
        *crossvalidated("mnl", [1.0, 3.0], dataset="ames"),
    ]
    (table,) = empirical_tables(records)
    cells = {row[0]: row[2:] for row in table.rows if row[1] == "improvement"}
    assert cells == {"pakistan": ("33.333", ""), "ames": ("", "33.333")}


@pytest.mark.parametrize("style", ["text", "markdown", "latex"])
def test_every_value_is_in_every_format(style):
    records = simulated("one_hot", [2.0, 4.0]) + simulated("means", [1.8, 3.68])
    rendered = simulation_tables(records)[0].render(style)
    for part in ("9.0", "12.7", "(5.7)", "2L-50G", "means", "1 of 1"):
        assert part in rendered
    assert rendered.endswith("\n")


def stored(folder: Path, experiment: str, records: list[Record]) -> list[Record]:
    store = Store(folder, experiment)
    with store.writing({}) as writer:
        for record in records:
            writer.append(record)
    return store.records()


def test_all_tables_are_those_of_all_experiments(tmp_path):
    simulations = stored(tmp_path, "simulations", simulated("one_hot", [2.0]) + simulated("means", [1.0]))
    folds = crossvalidated("one_hot", [2.0, 4.0]) + crossvalidated("means", [1.0, 3.0])
    empirical = stored(tmp_path, "empirical", folds)
    benchmark = stored(tmp_path, "benchmark", [{**fold, "seconds": 1.0} for fold in folds])
    assert all_tables(tmp_path) == [
        *simulation_tables(simulations),
        *empirical_tables(empirical),
        *benchmark_tables(benchmark),
    ]
    assert len(all_tables(tmp_path)) == 1 + 1 + 2


@pytest.mark.parametrize("method", [None, "one_hot", "means"])
def test_a_store_without_anything_to_compare_raises(tmp_path, method):
    stored(tmp_path, "simulations", simulated(method, [1.0]) if method else [])
    text = rf"store '{re.escape(str(tmp_path))}' holds no results that can be compared with one_hot"
    with pytest.raises(StoreError, match=text + r".\nHint: run `sufrep paper simulations`, `empirical`"):
        all_tables(tmp_path)


# The benchmark


def folds(entry: str, errors: list[float | None], dataset: str = "ames", **changes: Any) -> list[Record]:
    """Records of an entry, a fold for each error; None is a failure. The fold f took f + 1 seconds."""
    native = entry in ("xgboost_native", "gpboost")
    names = {"model": entry, "method": "native"} if native else {"model": "xgboost", "method": entry}
    rest = {"dataset": dataset, "seed": 0, "k_index_bug": False, **names, **changes}
    return [
        {
            **rest,
            "fold": fold,
            "loss": loss,
            "failure": None if loss else "ValueError: no",
            "seconds": fold + 1.0,
        }
        for fold, loss in enumerate(errors)
    ]


RECORDS = [
    *folds("one_hot", [10.0, 12.0, 14.0, 12.0]),
    *folds("sufficient", [9.0, 11.0, 12.0, 10.0]),
    *folds("glmm", [8.0, 12.0, 12.0, 9.0]),
    *folds("xgboost_native", [10.0, 10.0, 13.0, 13.0]),
    *folds("sufficient", [3.0, 3.5], "king_county"),
    *folds("one_hot", [2.0, 2.0], "king_county"),
    *folds("xgboost_native", [4.0, None], "pakistan"),
    *folds("glmm", [3.0, 5.0], "pakistan"),
    *folds("one_hot", [4.0, 6.0], "pakistan"),
    *folds("sufficient", [2.0, 4.0], "pakistan"),
]


def test_without_one_hot_the_benchmark_has_no_tables():
    assert benchmark_tables(folds("sufficient", [1.0, 2.0])) == []


def test_the_tables_by_hand():
    errors, ours, seconds = benchmark_tables(RECORDS)
    assert errors.render("text") == (
        "Benchmark: MSE in percent of one_hot\n"
        "                pakistan     ames         king_county\n"
        "--------------  -----------  -----------  ------------\n"
        "sufficient      60.0 *       87.5 ± 4.0   162.5 ± 12.5\n"
        "one_hot         100.0 ± 0.0  100.0 ± 5.2  100.0 *\n"
        "glmm            80.0 ± 0.0   85.4 *\n"
        "xgboost_native  failed       95.8 ± 10.4\n"
        "Means over 2 or 4 folds; encodings are followed by xgboost.\n"
        "±: standard error of the paired difference to the best entry, which is marked with *.\n"
    )
    assert ours.render("text") == (
        "Benchmark: sufficient against the best other entry, difference of the loss in percent\n"
        "data set     loss  rank    best other  difference    verdict\n"
        "-----------  ----  ------  ----------  ------------  -------------------------\n"
        "pakistan     MSE   1 of 3  glmm        -25.0 ± 0.0   first\n"
        "ames         MSE   2 of 4  glmm        +2.4 ± 4.7    within one standard error\n"
        "king_county  MSE   2 of 2  one_hot     +62.5 ± 12.5  behind\n"
        "Of 3 data sets: first 1, within one standard error 1, behind 1.\n"
    )
    assert seconds.render("text") == (
        "Benchmark: median seconds per fold\n"
        "                pakistan  ames  king_county\n"
        "--------------  --------  ----  -----------\n"
        "sufficient      1.50      2.50  1.50\n"
        "one_hot         1.50      2.50  1.50\n"
        "glmm            1.50      2.50\n"
        "xgboost_native  failed    2.50\n"
    )


def test_our_own_failure_is_counted():
    records = folds("one_hot", [1.0, 2.0]) + folds("sufficient", [None, 1.0])
    ours = benchmark_tables(records)[1]
    assert ours.rows == (("ames", "MSE", "", "one_hot", "", "failed"),)
    assert ours.notes == ("Of 1 data sets: first 0, within one standard error 0, behind 0, failed 1.",)


def test_one_fold_has_no_standard_error_and_is_behind_when_it_is_worse():
    errors, ours, _ = benchmark_tables(folds("one_hot", [1.0]) + folds("sufficient", [2.0]))
    assert errors.rows == (("sufficient", "200.0"), ("one_hot", "100.0 *"))
    assert ours.rows == (("ames", "MSE", "2 of 2", "one_hot", "+100.0", "behind"),)


def test_without_our_encoder_it_has_no_table():
    titles = [table.title for table in benchmark_tables(folds("one_hot", [1.0]) + folds("drop", [2.0]))]
    assert titles == ["Benchmark: MSE in percent of one_hot", "Benchmark: median seconds per fold"]


def test_the_whole_benchmark_fits_on_a_page():
    plan = BenchmarkPlan(methods=("one_hot", "target_encoder", "james_stein", "catboost_encoder", "glmm"))
    records = [
        record
        for dataset in plan.datasets
        for name in (*plan.methods, *BENCHMARK_MODELS[1:])
        for record in folds(name, [8.0, 9.0, 10.0, 11.0, 12.5 + len(name)], dataset)
    ]
    tables = benchmark_tables(records) + compared_tables(records)
    assert [len(table.header) for table in tables] == [9, 4, 3, 3, 9, 4, 3, 3, 10, 10]
    for table in tables:
        assert max(len(line) for line in table.render("text").splitlines()) <= 140


def test_classes_have_tables_of_their_own_with_their_own_loss():
    records = [
        *folds("one_hot", [2.0, 2.0], "midwest_survey"),
        *folds("sufficient", [1.0, 1.5], "midwest_survey"),
        *folds("one_hot", [4.0, 4.0], "open_payments"),
        *folds("gpboost", [3.0, 4.0], "open_payments"),
    ]
    numbers, losses, ours, _, seconds = benchmark_tables(records + folds("one_hot", [1.0, 2.0]))
    assert (numbers.title, numbers.header) == ("Benchmark: MSE in percent of one_hot", ("", "ames"))
    assert losses.render("text") == (
        "Benchmark: log loss in percent of one_hot\n"
        "            midwest_survey  open_payments\n"
        "----------  --------------  -------------\n"
        "sufficient  62.5 *\n"
        "one_hot     100.0 ± 12.5    100.0 ± 12.5\n"
        "gpboost                     87.5 *\n"
        "Means over 2 folds; encodings are followed by xgboost.\n"
        "±: standard error of the paired difference to the best entry, which is marked with *.\n"
        "Run only if named, because it is slow on classes: glmm.\n"
        "Not run on more than two classes, for which they are not made: james_stein, catboost_encoder, glmm, "
        "gpboost.\n"
    )
    assert ours.rows == (("midwest_survey", "log loss", "1 of 2", "one_hot", "-37.5 ± 12.5", "first"),)
    assert seconds.title == "Benchmark: median seconds per fold, classes"
    assert len(benchmark_tables(records[4:])[0].notes) == 3
    assert len(numbers.notes) == 2


# Wages


def published(folder: Path) -> Path:
    (folder / "sigrist2023").mkdir()
    lines = ["data,method,fold,test_mse,seconds"]
    lines += [f"wages,gpboost,{fold},{0.2 + fold / 10},3" for fold in range(5)]
    lines += [f"inst_eval,linear,{fold},9.0,3" for fold in range(5)]
    (folder / "sigrist2023" / "published.csv").write_text("\n".join(lines) + "\n")
    return folder


OF_WAGES = [
    *folds("means", [0.1, 0.2, 0.4, 0.4, 0.5], "wages", model="xgboost_tuned"),
    *folds("drop", [0.5, None, 0.5], "wages", model="xgboost_tuned"),
    *folds("drop", [0.5] * 5, "wages"),
]


def test_wages_by_hand(tmp_path):
    (table,) = compared_tables(OF_WAGES + folds("one_hot", [1.0]), published(tmp_path))
    # −0.1, −0.1, 0, −0.1, −0.1 and so a mean of 0.08 below, with the error √(0.002 / 5).
    assert table.render("text") == (
        "wages: published and ours\n"
        "                by              fold 0  fold 1  fold 2  fold 3  fold 4  mean    to the best       "
        "seconds\n"
        "--------------  --------------  ------  ------  ------  ------  ------  ------  ----------------  "
        "-------\n"
        "means           ours            0.1000  0.2000  0.4000  0.4000  0.5000  0.3200  *                 "
        "3.0\n"
        "gpboost         Sigrist (2023)  0.2000  0.3000  0.4000  0.5000  0.6000  0.4000  +0.0800 ± 0.0200\n"
        "drop (xgboost)  ours            0.5000  0.5000  0.5000  0.5000  0.5000  0.5000  +0.1800 ± 0.0735  "
        "3.0\n"
        "drop            ours            0.5000          0.5000                                            "
        "2.0\n"
        "MSE on the published folds; our encodings are followed by xgboost_tuned.\n"
        "±: standard error of the paired difference. Seconds are the median per fold, and of our machine.\n"
    )


def test_ratings_have_a_table_of_their_own(tmp_path):
    ratings = folds("crossed_effects", [1.0, 2.0, 3.0, 4.0, 5.0], "insteval_sigrist", model="xgboost_tuned")
    wages, table = compared_tables(OF_WAGES + ratings, published(tmp_path))
    assert (wages.title, table.title) == ("wages: published and ours", "insteval_sigrist: published and ours")
    assert [row[:2] for row in table.rows] == [("crossed_effects", "ours"), ("linear", "Sigrist (2023)")]


def test_wages_are_in_no_other_table():
    records = folds("one_hot", [1.0] * 5, "wages", model="xgboost_tuned")
    assert benchmark_tables(records) == []
    assert compared_tables(folds("one_hot", [1.0] * 5)) == []


def test_without_the_published_results_the_table_is_ours_and_says_where_they_are(tmp_path, monkeypatch):
    monkeypatch.delenv("SUFREP_DATA", raising=False)
    (table,) = compared_tables(OF_WAGES)
    assert (table.title, len(table.rows)) == ("wages: ours", 3)
    assert table.notes[-1].endswith("name their folder with --data-dir.")
    with pytest.raises(DataNotFoundError, match=r"published\.csv"):
        compared_tables(OF_WAGES, tmp_path)
    monkeypatch.setenv("SUFREP_DATA", str(published(tmp_path)))
    assert compared_tables(OF_WAGES)[0].title == "wages: published and ours"


# Rendering


SMALL = TextTable("A title", ("setup", "one_two"), (("a", "1.0 ± 0.5"), ("longer", "2 %")), ("A note.",))


def test_text_is_aligned_in_columns():
    assert SMALL.render("text") == (
        "A title\nsetup   one_two\n------  ---------\na       1.0 ± 0.5\nlonger  2 %\nA note.\n"
    )


def test_markdown_is_a_table_between_empty_lines():
    assert SMALL.render("markdown") == (
        "**A title**\n\n| setup | one_two |\n| --- | --- |\n| a | 1.0 ± 0.5 |\n| longer | 2 % |\n\nA note.\n"
    )


def test_latex_is_a_whole_float_with_its_specials_escaped():
    assert SMALL.render("latex") == (
        "\\begin{table}\n"
        "\\centering\n"
        "\\begin{tabular}{ll}\n"
        "\\hline\n"
        "setup & one\\_two \\\\\n"
        "\\hline\n"
        "a & 1.0 $\\pm$ 0.5 \\\\\n"
        "longer & 2 \\% \\\\\n"
        "\\hline\n"
        "\\end{tabular}\n"
        "\\caption{A title. A note.}\n"
        "\\end{table}\n"
    )


@pytest.mark.parametrize(
    ("plain", "escaped"),
    [
        ("_", r"\_"),
        ("%", r"\%"),
        ("&", r"\&"),
        ("#", r"\#"),
        ("$", r"\$"),
        ("{}", r"\{\}"),
        ("±", r"$\pm$"),
        ("\\", r"\textbackslash{}"),
        ("~", r"\textasciitilde{}"),
        ("^", r"\textasciicircum{}"),
    ],
)
def test_every_special_of_latex_is_escaped_once(plain, escaped):
    assert f"x{escaped}y & b" in TextTable("", ("", ""), ((f"x{plain}y", "b"),)).render("latex")


# Treatment effects


def test_effects_have_a_table_for_each_cell_and_a_row_for_each_method():
    records = [
        effect("true_psi", 0, 0.9),
        effect("true_psi", 1, 1.1),
        effect("means_w", 0, 1.1),
        effect("means_w", 1, 1.3),
        effect("nothing", 0, 2.0, arm="uneven"),
    ]
    first, second = effect_tables(records)
    assert first.render("text") == (
        "linear, main: treatment effects, 4,000 rows\n"
        "method    bias            RMSE           RMSE / true ψ  coverage       s.e. / sd    length         "
        "dropped  seeds\n"
        "--------  --------------  -------------  -------------  -------------  -----------  -------------  "
        "-------  -----\n"
        "true_psi  +0.000 ± 0.100  0.100 ± 0.000  1.00 ± 0.00    1.000 ± 0.000  0.71 ± 0.50  0.400 ± 0.000  "
        "12.5%    2\n"
        "means_w   +0.200 ± 0.100  0.224 ± 0.089  2.24 ± 0.89    0.500 ± 0.500  0.71 ± 0.50  0.400 ± 0.000  "
        "12.5%    2\n"
        "±: Monte Carlo standard error. Where groups are dropped, the truth is that of the rows kept.\n"
    )
    assert second.rows == (("nothing", "+1.000", "1.000", "", "0.000", "", "0.400", "12.5%", "1"),)
    assert r"RMSE / true $\psi$" in first.render("latex")
