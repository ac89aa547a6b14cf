"""The rules of the choice: on which rows, among which candidates, by which losses, and which one wins."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge

from sufrep import LatentStateEncoder, MeansEncoder
from sufrep.encoders._sufficient_search import (
    _MOST_INDICATORS,
    _UNION,
    CHANCE_ROWS,
    COMPONENTS,
    ChoiceData,
    ComponentSearch,
    Tried,
    whole_levels,
)

ALIKE = [
    {"means", "shrunken_means"},
    {"means", "joint_means"},
    {"shrunken_means", "joint_means"},
    {"target", "joint_means"},
    {"local_effect", "local_fit"},
]


def searching(
    n: int = 60,
    *,
    n_covariates: int = 2,
    n_levels: tuple[int, ...] = (5,),
    kind: str = "continuous",
    estimator: Any = None,
    weights: Any = None,
    folds: Any = None,
) -> ComponentSearch:
    """A search on rows whose levels come in turn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_covariates))
    codes = np.column_stack([np.arange(n) % number for number in n_levels])
    y = rng.normal(size=n) if kind == "continuous" else rng.integers(0, 2 if kind == "binary" else 3, n)
    half = np.arange(n // 2), np.arange(n // 2, n)
    problem = ChoiceData(X, np.hstack([X, codes]), n_covariates, y, kind, weights)
    return ComponentSearch(problem, folds or [half, half[::-1]], estimator or Ridge(), {}, 0)


def tried(losses: dict[str, Any], n: int = 60) -> list[Tried]:
    """What was tried, with the given losses (one number for all rows, or one for each)."""
    return [
        Tried(() if name == "drop" else tuple(name.split(" + ")), np.broadcast_to(loss, n), 1)
        for name, loss in losses.items()
    ]


# Rows.


def rows_by_hand(codes: list[int], max_rows: int, seed: int) -> list[int]:
    """Levels in a random order until the next one does not fit, but at least fifty; then rows of these."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(sorted(set(codes))).tolist()
    n_kept = n_rows = 0
    for level in order:
        n_rows += codes.count(level)
        if n_rows > max_rows:
            break
        n_kept += 1
    kept = order[: max(n_kept, 50)]
    rows = [row for row, level in enumerate(codes) if level in kept]
    return rows if len(rows) <= max_rows else sorted(rng.choice(rows, max_rows, replace=False).tolist())


@given(
    n_levels=st.integers(1, 120),
    n=st.integers(1, 400),
    max_rows=st.integers(2, 400),
    seed=st.integers(0, 5),
    nulls=st.booleans(),
)
def test_rows_are_those_of_whole_levels_as_far_as_they_fit(n_levels, n, max_rows, seed, nulls):
    codes = np.random.default_rng(n).integers(-1 if nulls else 0, n_levels, n)
    found = whole_levels(codes, max_rows, seed)
    if n <= max_rows:
        assert found.tolist() == list(range(n))
    else:
        assert found.tolist() == rows_by_hand(codes.tolist(), max_rows, seed)
    assert whole_levels(codes, max_rows, seed).tolist() == found.tolist()


def test_levels_may_fit_exactly():
    codes = np.arange(1000) % 100
    found = whole_levels(codes, 600, 0)
    assert len(found) == 600
    assert np.unique(codes[found], return_counts=True)[1].tolist() == [10] * 60


def test_levels_stay_whole_where_many_fit():
    codes = np.random.default_rng(0).integers(0, 300, 3000)
    found = whole_levels(codes, 1500, 0)
    kept = np.unique(codes[found])
    assert 50 < len(kept) < 300
    assert 1400 < len(found) <= 1500
    np.testing.assert_array_equal(found, np.flatnonzero(np.isin(codes, kept)))
    assert not np.array_equal(found, whole_levels(codes, 1500, 1))


@pytest.mark.parametrize("n_levels", [3, 60])
def test_rows_are_drawn_where_levels_are_few_and_huge(n_levels):
    codes = np.arange(6000) % n_levels
    found = whole_levels(codes, 500, 0)
    assert len(found) == len(set(found.tolist())) == 500
    assert (np.diff(found) > 0).all()
    assert len(np.unique(codes[found])) == min(n_levels, 50)


# Candidates.


def test_single_components_come_before_pairs_of_the_four_best_and_triples_of_the_best_pair():
    search, seen = searching(), tried({"drop": 1.0})
    losses = dict(zip(COMPONENTS, [9.0, 2.0, 11.0, 10.0, 8.0, 1.0, 3.0, 7.0, 6.0, 4.0, 5.0], strict=True))
    best = sorted(losses, key=losses.__getitem__)[:4]
    pairs = [f"{one} + {other}" for one, other in combinations(best, 2)]
    losses |= {pair: 0.5 if pair == f"{best[0]} + {best[2]}" else 0.6 for pair in pairs}
    found = []
    for candidate in search.candidates(seen):
        found.append(" + ".join(candidate))
        if 1 <= len(candidate) <= 2:
            seen += tried({found[-1]: losses[found[-1]]})
    triples = [f"{best[0]} + {best[2]} + {other}" for other in (best[1], best[3])]
    assert found == ["", *COMPONENTS, " + ".join(_UNION), *pairs, *triples]


@given(losses=st.permutations([float(j) for j in range(len(COMPONENTS))]))
def test_no_candidate_combines_redundant_components(losses):
    known = dict(zip(COMPONENTS, losses, strict=True))
    pairs = [pair for pair in searching().candidates(tried(known)) if len(pair) == 2]
    best = sorted(known, key=known.__getitem__)[:4]
    expected = [pair for pair in combinations(best, 2) if set(pair) not in ALIKE]
    assert pairs == expected


@pytest.mark.parametrize(
    ("n_levels", "affordable"),
    [((_MOST_INDICATORS,), True), ((_MOST_INDICATORS + 1,), False), ((150, 50), True), ((150, 51), False)],
)
def test_indicators_are_for_few_levels(n_levels, affordable):
    pieces = searching(n=400, n_levels=n_levels).components()
    assert pieces == [name for name in COMPONENTS if affordable or name != "one_hot"]


def test_without_covariates_only_components_of_target_and_level_are_tried():
    pieces = searching(n_covariates=0).components()
    assert pieces == ["target", "mixed_model", "local_effect", "local_fit", "intercept", "one_hot"]


def test_all_candidates_are_tried_and_each_is_reported():
    reported: list[Any] = []
    search = searching(n_covariates=0)
    found = search.run(None, lambda item, most: reported.append((item, most)))
    assert [item for item, _ in reported] == found
    assert {most for _, most in reported} == {1 + 6 + 6 + 2}
    assert len(found) == len({item.candidate for item in found}) == 15


@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
def test_columns_of_any_candidate_have_names_of_their_own(kind):
    search = searching(kind=kind)
    rows, y = search.data.rows, search.data.y
    names = {
        name: search.encoder(name, covariates=[0, 1]).set_params(group=2).fit(rows, y).get_feature_names_out()
        for name in COMPONENTS
    }
    assert all(len(found) == len(set(found)) > 0 for found in names.values())
    for one, other in combinations(COMPONENTS, 2):
        assert not set(names[one]) & set(names[other]) or {one, other} in ALIKE


# Losses.


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_the_loss_of_a_class_is_its_log_loss_which_is_bounded_for_unseen_classes(kind):
    search = searching(kind=kind, estimator=LogisticRegression())
    train, test = search.folds[0]
    X, y = search.data.features, search.data.y
    unseen = int(y.max()) + 1
    y[test[:4]] = unseen
    search.folds = [(train, test)]
    fitted = LogisticRegression().fit(X[train], y[train])
    expected = [
        -np.log(1e-7) if label == unseen else -np.log(fitted.predict_proba(row[None])[0, int(label)])
        for row, label in zip(X[test], y[test], strict=True)
    ]
    np.testing.assert_allclose(search.try_out(()).losses[test], expected, rtol=1e-10)


def test_a_row_held_out_twice_has_the_mean_of_its_losses():
    both = searching()
    first, second = (searching(folds=[(train, test)]).try_out(()) for train, test in both.folds)
    np.testing.assert_allclose(both.try_out(()).losses, first.losses + second.losses)
    twice = searching(folds=[*both.folds, *both.folds]).try_out(())
    np.testing.assert_allclose(twice.losses, both.try_out(()).losses)


def test_columns_are_made_once_for_each_fold(monkeypatch):
    calls = []
    fit_transform = MeansEncoder.fit_transform
    monkeypatch.setattr(
        MeansEncoder, "fit_transform", lambda self, *rows: calls.append(self) or fit_transform(self, *rows)
    )
    search = searching()
    single, pair = search.try_out(("target",)), search.try_out(("target", "mixed_model"))
    assert (single.n_columns, pair.n_columns) == (1, 2)
    assert len(calls) == len(search.folds)


def test_states_are_counted_once_without_the_target():
    rng = np.random.default_rng(0)
    codes = np.arange(300) % 10
    X = rng.normal(size=(300, 2)) + 4 * (codes % 2)[:, None]
    rows, half = np.column_stack([X, codes]), (np.arange(150), np.arange(150, 300))
    for y in (rng.normal(size=300), codes % 2 + rng.normal(size=300)):
        search = ComponentSearch(
            ChoiceData(X, rows, 2, y, "continuous", None), [half, half[::-1]], Ridge(), {}, 0
        )
        assert search.encoder("states").n_states == "auto"
        search.try_out(("states",))
        found = search.encoder("states").n_states
        assert found == LatentStateEncoder(2, max_states=10).fit(rows).n_states_["x2"] == 2


# The winner.


def test_the_smallest_loss_wins():
    found = searching().best(tried({"drop": 5.0, "target": 3.0, "means": 2.0, "target + states": 2.5}))
    assert found.candidate == ("means",)


def test_of_equal_losses_the_single_component_wins():
    found = searching().best(tried({"drop": 5.0, "target + states": 2.0, "means": 2.0}))
    assert found.candidate == ("means",)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_encoding_must_gain_more_than_its_standard_error(weighted):
    gains = np.tile([0.0, 2.0, -1.0], 20)
    weights = np.tile([1.0, 3.0, 2.0], 20) if weighted else np.ones(60)
    mean = (weights * gains).sum() / weights.sum()
    error = np.sqrt((weights * (gains - mean) ** 2).sum() / weights.sum() / weights.sum())
    search = searching(weights=weights if weighted else None)
    np.testing.assert_allclose(search.gain(gains, np.zeros(60)), (mean, error))
    for shift, winner in ((1.01 * error - mean, ("target",)), (0.99 * error - mean, ())):
        found = search.best(tried({"drop": 5.0, "target": 5.0 - gains - shift}))
        assert found.candidate == winner


def test_the_gain_of_a_choice_is_that_on_rows_which_did_not_make_it():
    # Each of three encodings is far better on one fold and worse on the two others: the smallest loss gains,
    # but a choice on two folds never finds what helps on the third.
    search = searching(folds=[(np.delete(np.arange(60), part), part) for part in np.split(np.arange(60), 3)])
    losses = {name: np.full(60, 6.0) for name in ("target", "means", "states")}
    for place, (name, _) in enumerate([*losses.items()]):
        losses[name][search.folds[place][1]] = 2.0
    assert search.gain(np.full(60, 5.0), losses["means"])[0] > 0
    assert search.best(tried({"drop": 5.0, **losses})).candidate == ()
    assert search.best(tried({"drop": 7.0, **losses})).candidate == ("target",)


@pytest.mark.parametrize("n_rows", [1, 2, 30])
def test_a_single_fold_chooses_by_halves(n_rows):
    rows = np.arange(60)
    search = searching(folds=[(rows[n_rows:], rows[:n_rows])])
    better = np.where(rows < n_rows, 1.0, 0.0)
    found = search.best(tried({"drop": 3 * better, "target": better}))
    assert found.candidate == (() if n_rows == 1 else ("target",))


def test_fewer_components_are_chosen_within_a_standard_error_of_the_smallest_loss():
    search, noise = searching(), np.tile([1.0, -1.0], 30)
    known = {
        "drop": np.full(60, 9.0),
        "target": 2 + noise,
        "means": 3 + noise,
        "target + means": 1.95 + 0 * noise,
    }
    # The pair gains 0.05 on the target's mean, where the standard error is above 0.1.
    assert search.best(tried(known)).candidate == ("target",)
    assert search.best(tried(known | {"target + means": 1.5 + noise})).candidate == ("target", "means")
    assert search.best(tried(known | {"means": 1.99 + noise})).candidate == ("means",)


@pytest.mark.parametrize(
    ("safe", "chosen"),
    [
        (6.0, _UNION),  # within two standard errors of the smallest
        (6.1, ("target",)),  # not
        (4.8, _UNION),  # the smallest itself
    ],
)
def test_the_default_combination_is_preferred_for_few_rows_unless_it_is_clearly_worse(safe, chosen):
    apart = np.tile([4.0, -4.0], 30)
    known = {"drop": 9 + apart, "target": 5 + 0 * apart, " + ".join(_UNION): safe + apart}
    assert searching().best(tried(known)).candidate == chosen


@pytest.mark.parametrize(("safe", "chosen"), [(6.6, _UNION), (6.8, ("target",))])
def test_the_default_combination_is_not_preferred_where_it_is_clearly_worse_than_dropping(safe, chosen):
    # The standard error of its difference to dropping is 9 / √60, about 1.16.
    apart = np.tile([9.0, -9.0], 30)
    known = {"drop": 5.5 + 0 * apart, "target": 5 + 0 * apart, " + ".join(_UNION): safe + apart}
    assert searching().best(tried(known)).candidate == chosen


def test_where_rows_are_many_no_candidate_is_preferred():
    search = searching(n=CHANCE_ROWS)
    losses = {name: float(place) for place, name in enumerate(COMPONENTS)}
    assert _UNION not in [*search.candidates(tried(losses, CHANCE_ROWS))]
    known = {"drop": 9.0, "target": 5.0, " + ".join(_UNION): 5.0}
    assert search.best(tried(known, CHANCE_ROWS)).candidate == ("target",)


def test_nothing_is_chosen_where_nothing_differs():
    assert searching().best(tried({"drop": 1.0, "target": 1.0, "means": 1.0})).candidate == ()
