"""Hidden states: true ones are found, the outputs are those of lemma 1, and no row sees its own target."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

import sufrep
from sufrep import LatentStateEncoder, errors, simulate
from sufrep.encoders import _latent_state

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)


def drawn(n: int = 600, **parameters: Any) -> tuple[pd.DataFrame, Any]:
    defaults: dict[str, Any] = {"p": 5, "n_latent": 3, "levels_per_latent": 5, "seed": 1}
    sample = simulate("latent_linear", n=n, **{**defaults, **parameters})
    return pd.DataFrame(sample.columns()), sample


def agreement(found: np.ndarray, true: np.ndarray) -> float:
    """The least correlation of a state found with the true state that it is nearest to."""
    k = found.shape[1]
    return float(np.corrcoef(found.T, true.T)[:k, k:].max(axis=1).min())


def columns_of(encoder: LatentStateEncoder, X: pd.DataFrame, kind: str) -> np.ndarray:
    names = encoder.get_feature_names_out().tolist()
    return encoder.transform(X)[:, [j for j, name in enumerate(names) if kind in name]].astype(float)


@pytest.fixture(scope="module")
def fitted() -> tuple[LatentStateEncoder, pd.DataFrame, Any]:
    X, sample = drawn()
    return LatentStateEncoder("group", n_states=3, output="both").fit(X), X, sample


@pytest.mark.parametrize("setup", ["global_linear", "latent_linear", "piecewise_linear"])
def test_the_true_states_are_found(setup):
    sample = simulate(setup, n=3000, p=10, n_latent=3, levels_per_latent=10, seed=3)
    encoder = LatentStateEncoder("group", n_states=3).fit(pd.DataFrame(sample.columns()))
    assert agreement(encoder.representations_["group"].values, sample.state_probabilities) > 0.96


def test_states_of_skewed_covariates_are_found_by_their_ranks():
    X, sample = drawn(3000, p=10, levels_per_latent=10)
    skewed = X.assign(**{name: np.exp(2 * X[name]) for name in X.columns if name != "group"})
    by_ranks, by_moments = (
        LatentStateEncoder("group", n_states=3, transform_covariates=how, tol=1e-8, max_iter=500).fit(skewed)
        for how in ("normal_scores", "standardize")
    )
    assert agreement(by_ranks.representations_["group"].values, sample.state_probabilities) > 0.96
    assert agreement(by_moments.representations_["group"].values, sample.state_probabilities) < 0.96


@pytest.mark.parametrize("use_target", [False, True])
def test_the_true_number_of_states_is_chosen(use_target):
    X, sample = drawn(2000, p=10, n_latent=4, levels_per_latent=10)
    encoder = LatentStateEncoder("group", use_target=use_target).fit(X, sample.y)
    assert encoder.n_states_ == {"group": 4}
    scores = encoder.held_out_["group"]
    assert max(scores, key=scores.__getitem__) == "4" if use_target else not scores
    assert encoder.get_feature_names_out().tolist()[-4:] == [f"group_state{j}" for j in (1, 2, 3, 4)]


def test_no_more_states_are_tried_than_are_allowed():
    X, sample = drawn(1000, n_latent=5, levels_per_latent=6)
    assert LatentStateEncoder("group").fit(X).n_states_["group"] > 3
    for most, use_target in ((1, False), (1, True), (3, False), (3, True)):
        encoder = LatentStateEncoder("group", max_states=most, use_target=use_target).fit(X, sample.y)
        assert encoder.n_states_ == {"group": most}
        assert max(map(int, encoder.held_out_["group"]), default=1) <= most
    assert LatentStateEncoder("group", n_states=5, max_states=3).fit(X).n_states_ == {"group": 5}


def same_rows_in_other_words(X: pd.DataFrame) -> list[tuple[pd.DataFrame, np.ndarray, np.ndarray | None]]:
    """Every row twice: by its weight, under other names of levels, in another order, and as two rows.

    With each of them, the position of every row in the original.
    """
    n = len(X)
    order, twice, heavy = np.random.default_rng(0).permutation(n), np.arange(2 * n) // 2, np.full(n, 2.0)
    renamed = X.assign(group=[name[::-1] for name in X["group"]])
    return [
        (X, np.arange(n), heavy),
        (renamed, np.arange(n), heavy),
        (X.iloc[order], order, heavy),
        (X.iloc[twice], twice, None),
    ]


def test_the_levels_that_the_number_of_states_is_chosen_on_do_not_depend_on_names_or_weights(monkeypatch):
    """If there are many rows, only some levels take part in the choice with the target."""
    monkeypatch.setattr(_latent_state, "_MOST_CHOICE_ROWS", 150)
    X, sample = drawn(400, n_latent=2, levels_per_latent=5)
    encoder = LatentStateEncoder("group", max_states=2, use_target=True)
    found = [
        encoder.fit(rows, sample.y[place], sample_weight=weights).held_out_["group"]
        for rows, place, weights in same_rows_in_other_words(X)
    ]
    assert set(found[0]) == {"1", "2"}
    for scores in found[1:]:
        assert scores == pytest.approx(found[0], rel=1e-9)


@pytest.mark.parametrize("levels_per_latent", [5, 200])
def test_the_rows_that_states_are_fitted_to_do_not_depend_on_names_order_or_weights(levels_per_latent):
    X, _ = drawn(1200, n_latent=2, levels_per_latent=levels_per_latent)
    encoder = LatentStateEncoder("group", n_states=2, max_rows=300, output="both", remainder="drop")
    found = []
    for rows, place, weights in same_rows_in_other_words(X):
        encoded = np.empty((len(X), 4))
        encoded[place] = encoder.fit(rows, sample_weight=weights).transform(rows)
        found.append(encoded)
    for encoded in found[1:]:
        np.testing.assert_allclose(encoded, found[0], atol=1e-6)


@pytest.mark.parametrize("levels_per_latent", [2, 40])
def test_states_fitted_to_some_of_the_rows_are_nearly_those_of_all(levels_per_latent):
    """Of four levels, part of the rows of each are used; of eighty, all rows of some levels."""
    X, sample = drawn(8000, p=10, n_latent=2, levels_per_latent=levels_per_latent)
    some, whole = (LatentStateEncoder("group", n_states=2, max_rows=m).fit(X) for m in (2000, 8000))
    for encoder in (some, whole):
        assert agreement(encoder.representations_["group"].values, sample.state_probabilities) > 0.97
    assert np.abs(columns_of(some, X, "state") - columns_of(whole, X, "state")).max() < 0.15
    assert not np.array_equal(some.mixtures_["group"].means, whole.mixtures_["group"].means)


def test_with_many_rows_the_rows_of_a_level_say_its_states_under_another_name():
    X, _ = drawn(1200)
    encoder = LatentStateEncoder("group", n_states=3, max_rows=300).fit(X)
    rows = X[X["group"] == X["group"][0]]
    known, again = (columns_of(encoder, part, "state")[0] for part in (rows, rows.assign(group="new")))
    np.testing.assert_allclose(again, known, atol=1e-9)


def test_one_state_is_chosen_where_levels_do_not_differ():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1000, 3)), columns=list("abc")).assign(group=rng.integers(0, 20, 1000))
    assert LatentStateEncoder("group").fit(X).n_states_["group"] == 1


def test_levels_of_one_row_each_have_one_state():
    X, _ = drawn(100)
    encoder = LatentStateEncoder("group").fit(X.assign(group=[f"level {i}" for i in range(100)]))
    assert encoder.n_states_ == {"group": 1}
    assert encoder.held_out_ == {"group": {}}


def test_names_and_shapes_of_the_outputs(fitted):
    _, X, _ = fitted
    states, posterior = ([f"group_{kind}{j}" for j in (1, 2, 3)] for kind in ("state", "posterior"))
    for output, names in (("states", states), ("posterior", posterior), ("both", states + posterior)):
        encoder = LatentStateEncoder("group", n_states=3, output=output, remainder="drop")
        found = encoder.set_output(transform="pandas").fit_transform(X)
        assert found.columns.tolist() == names == encoder.get_feature_names_out().tolist()
        pd.testing.assert_frame_equal(found, encoder.transform(X))
        assert (found >= 0).all(axis=None)
        np.testing.assert_allclose(found.sum(axis=1), len(names) / 3)


def test_the_shares_are_those_of_the_table(fitted):
    encoder, X, _ = fitted
    table = encoder.table(library="pandas").set_index("group")
    assert table.columns.tolist() == ["weight", "group_state1", "group_state2", "group_state3"]
    expected = table.loc[X["group"]].drop(columns="weight")
    np.testing.assert_array_equal(columns_of(encoder, X, "state"), expected)


def test_the_posterior_is_that_of_lemma_1(fitted):
    encoder, X, _ = fitted
    mixture, maps = encoder.mixtures_["group"], encoder.normal_scores_["group"]
    rows = X.iloc[:40]
    scores = maps.apply([rows[f"x{j}"].to_numpy() for j in range(1, 6)])
    shares = columns_of(encoder, rows, "state")
    for i in range(len(rows)):
        joint = [
            shares[i, state]
            * multivariate_normal(mixture.center + mixture.means[state], mixture.covariance).pdf(scores[i])
            for state in range(3)
        ]
        np.testing.assert_allclose(
            columns_of(encoder, rows, "posterior")[i], joint / np.sum(joint), rtol=1e-7, atol=1e-12
        )


def test_the_posterior_predicts_the_state_of_a_row_better_than_its_level_does(fitted):
    encoder, X, sample = fitted
    right = []
    for kind in ("state", "posterior"):
        guess = columns_of(encoder, X, kind).argmax(axis=1)
        right.append(sum(np.bincount(sample.latent[guess == state]).max() for state in range(3)) / len(X))
    assert right[1] > right[0] > 0.85


def test_an_unseen_level_has_the_prior_of_the_mixture(fitted):
    encoder, X, _ = fitted
    encoder = copy(encoder).set_params(unseen="prior")
    mixture, maps = encoder.mixtures_["group"], encoder.normal_scores_["group"]
    new = X.iloc[:5].assign(group="never seen")
    np.testing.assert_allclose(mixture.prior.sum(), 1.0)
    np.testing.assert_array_equal(columns_of(encoder, new, "state"), np.tile(mixture.prior, (5, 1)))
    scores = maps.apply([new[f"x{j}"].to_numpy() for j in range(1, 6)])
    expected = mixture.posterior(scores, np.tile(mixture.prior, (5, 1)))
    np.testing.assert_allclose(columns_of(encoder, new, "posterior"), expected)
    with pytest.raises(errors.UnseenLevelError, match="1 unseen level"):
        LatentStateEncoder("group", n_states=2, output="both", unseen="error").fit(X).transform(new)


def test_the_prior_is_the_geometric_mean_of_the_shares(fitted):
    # The stationary point of the criterion; EM stops near it.
    mixture = fitted[0].mixtures_["group"]
    mean = np.exp(np.log(mixture.shares).mean(axis=0))
    np.testing.assert_allclose(mixture.prior, mean / mean.sum(), rtol=1e-6)


def test_the_commonest_state_comes_first(fitted):
    prior = fitted[0].mixtures_["group"].prior
    assert (np.diff(prior) <= 0).all()


def test_a_high_concentration_shrinks_levels_towards_each_other(fitted):
    _, X, _ = fitted
    spread = [
        LatentStateEncoder("group", n_states=3, concentration=strength)
        .fit(X)
        .representations_["group"]
        .values
        for strength in (0.1, 100.0)
    ]
    assert spread[1].std(axis=0).max() < 0.8 * spread[0].std(axis=0).max()


def test_too_few_rounds_are_warned_of():
    X, _ = drawn(200)
    with pytest.warns(
        ConvergenceWarning, match=r"did not converge in max_iter=1 rounds.\nHint: raise max_iter"
    ):
        encoder = LatentStateEncoder("group", n_states=3, max_iter=1).fit(X)
    assert encoder.n_iter_ == 1


AWKWARD = {
    "constant": lambda X: X.assign(x2=7.0),
    "duplicated": lambda X: X.assign(x2=X["x1"]),
    "collinear": lambda X: X.assign(x2=X["x1"] + X["x3"]),
    "null everywhere": lambda X: X.assign(x2=np.nan),
    "null here and there": lambda X: X.mask(np.random.default_rng(0).random(X.shape) < 0.3),
    "of two values": lambda X: X.assign(x2=X["x2"] > 0),
    "far from zero": lambda X: X.assign(x2=X["x2"] + 1.7e9),
    "with an outlier": lambda X: X.assign(x2=X["x2"].where(X.index > 0, 1e12)),
    "the level's own": lambda X: X.assign(x2=pd.factorize(X["group"])[0]),
}


@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize("n_states", ["auto", 3])
def test_awkward_covariates_do_no_harm(kind, n_states):
    X, sample = drawn(150 if n_states == "auto" else 400)
    encoder = LatentStateEncoder("group", n_states=n_states, max_states=2, output="both", remainder="drop")
    found = encoder.fit_transform(AWKWARD[kind](X))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 2.0)
    if kind in ("constant", "duplicated", "far from zero") and n_states == 3:
        table = encoder.representations_["group"]
        true = sample.state_probabilities[np.searchsorted(sample.levels, table.levels.astype(str))]
        assert agreement(table.values, true) > 0.8


def test_covariates_of_nulls_give_every_level_the_same_states():
    X = pd.DataFrame({"group": list("aabb"), "x": [np.nan] * 4})
    found = LatentStateEncoder("group", n_states=2, remainder="drop").fit(X).transform(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found, np.tile(found[0], (4, 1)))


def test_levels_whose_rows_are_all_the_same():
    X = pd.DataFrame({"group": list("aabbcc"), "x": [1.0, 1, 5, 5, 9, 9], "z": [0.0, 0, 3, 3, 1, 1]})
    encoder = LatentStateEncoder("group", n_states=2).fit(X)
    assert np.isfinite(encoder.representations_["group"].values).all()


@pytest.mark.parametrize(("n", "p"), [(30, 28), (20, 40)])
def test_there_may_be_as_many_covariates_as_rows(n, p):
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.arange(n) % 4, rng.normal(size=(n, p))])
    found = LatentStateEncoder(0, n_states=2, output="both", remainder="drop").fit_transform(rows)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 2.0)


@pytest.mark.parametrize(("n", "n_levels"), [(1, 1), (2, 1), (3, 3), (20, 2)])
def test_there_may_be_more_states_than_levels_and_rows(n, n_levels):
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.arange(n) % n_levels, rng.normal(size=(n, 3))])
    found = LatentStateEncoder(0, n_states=5, remainder="drop").fit_transform(rows)
    assert found.shape == (n, 5)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_rare_levels_share_their_states():
    X, _ = drawn(300)
    X.loc[[0, 1], "group"] = ["rare 1", "rare 2"]
    encoder = LatentStateEncoder("group", n_states=3, min_frequency=5, output="both").fit(X)
    shares = columns_of(encoder, X, "state")
    np.testing.assert_array_equal(shares[0], shares[1])
    assert len(encoder.mixtures_["group"].shares) == X["group"].nunique() - 1


def test_several_groups_and_crossed_ones_have_mixtures_of_their_own():
    X, _ = drawn(300)
    X["town"] = np.where(X["x1"] > 0, "u", "v")
    encoder = LatentStateEncoder(["group", ("group", "town")], n_states=2, output="both", remainder="drop")
    found = encoder.set_output(transform="pandas").fit_transform(X)
    assert list(encoder.mixtures_) == ["group", "group:town"]
    assert found.columns.tolist() == [
        f"{group}_{kind}{j}" for group in encoder.mixtures_ for kind in ("state", "posterior") for j in (1, 2)
    ]
    alone = LatentStateEncoder("group", n_states=2, output="both", covariates=list(encoder.layout_.names[:5]))
    np.testing.assert_allclose(found.iloc[:, :4], columns_of(alone.fit(X), X, "group_"))


def test_categories_join_by_indicators_and_new_ones_do_no_harm():
    X, _ = drawn(300)
    X["colour"] = np.where(X["x1"] > 0, "red", "blue")
    encoder = LatentStateEncoder("group", n_states=2, output="both", categorical_covariates="share").fit(X)
    new = X.assign(colour="green")
    found = columns_of(encoder, new, "posterior")
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("use_target", [False, True])
@pytest.mark.parametrize("kind", ["continuous", "multiclass"])
def test_an_encoder_comes_back_from_its_file(tmp_path, use_target, kind):
    X, sample = drawn(100)
    y = sample.y if kind == "continuous" else np.digitize(sample.y, [-1, 1])
    encoder = LatentStateEncoder("group", output="both", use_target=use_target, max_states=2).fit(X, y)
    encoder.save(tmp_path / "file")
    loaded = sufrep.load(tmp_path / "file")
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))
    assert loaded.n_iter_ == encoder.n_iter_
    assert loaded.held_out_ == encoder.held_out_
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


def test_levels_are_drawn_by_their_states(fitted):
    encoder, X, _ = fitted
    assert len(encoder.plot().to_dict()["data"]["values"]) == X["group"].nunique()


# With the target.


def test_the_target_helps_to_separate_states():
    X, sample = drawn(1500, p=3, n_latent=2, levels_per_latent=20, own_probability=0.8, seed=5)
    labels = np.array(["low", "high"])[sample.latent]  # the state itself, as classes
    true = sample.state_probabilities[np.searchsorted(sample.levels, np.unique(X["group"]))]
    without, with_target = (
        agreement(
            LatentStateEncoder("group", n_states=2, use_target=use_target)
            .fit(X, labels)
            .representations_["group"]
            .values,
            true,
        )
        for use_target in (False, True)
    )
    assert with_target > without
    assert with_target > 0.9


@few
@given(
    seed=st.integers(0, 1000),
    kind=st.sampled_from(["continuous", "binary", "multiclass"]),
    missing=st.sampled_from(["level", "prior"]),
    least=st.sampled_from([None, 4]),
    weighted=st.booleans(),
)
def test_a_row_does_not_see_its_own_target_but_for_the_order_of_the_states(
    seed, kind, missing, least, weighted
):
    rng = np.random.default_rng(seed)
    n = 30
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    X["group"] = rng.choice(np.array(["u", "v", "w", "x", None], dtype=object), n)
    y = rng.normal(size=n) if kind == "continuous" else rng.integers(0, 2 if kind == "binary" else 3, n)
    i = int(rng.integers(n))
    changed = y.copy()
    changed[i] = {"continuous": 1e3, "binary": 1 - y[i], "multiclass": 3}[kind]  # 3 is a class of its own
    encoder = LatentStateEncoder(
        "group",
        n_states=2,
        output="both",
        use_target=True,
        target_type=kind,
        missing=missing,
        min_frequency=least,
        cv=list(KFold(3, shuffle=True, random_state=seed).split(X)),
        n_starts=1,
        tol=1e-4,
    )
    weights = rng.choice([0.5, 1.0, 2.0], n) if weighted else None
    before, after = (encoder.fit_transform(X, target, sample_weight=weights) for target in (y, changed))
    before, after = (found[i, 3:].astype(float).reshape(2, 2) for found in (before, after))
    assert any(np.allclose(after[:, order], before, rtol=0, atol=1e-9) for order in ([0, 1], [1, 0]))


@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
def test_new_rows_need_no_target_and_their_levels_have_learnt_from_the_training_target(kind):
    X, sample = drawn(200)
    edges = {"binary": [0.0], "multiclass": [-1.0, 1.0]}
    y = np.digitize(sample.y, edges[kind]) if kind in edges else sample.y
    encoder = LatentStateEncoder("group", n_states=3, use_target=True).fit(X, y)
    assert encoder.target_type_ == kind
    free = LatentStateEncoder("group", n_states=3).fit(X)
    assert np.abs(encoder.transform(X)[:, -3:] - free.transform(X)[:, -3:]).max() > 1e-3


def hidden_from_the_covariates(seed: int, n_states: int = 2) -> tuple[pd.DataFrame, np.ndarray]:
    """States that differ in the target, by 2 from one to the next, and in nothing else."""
    rng = np.random.default_rng(seed)
    level = np.arange(900) % 45
    X = pd.DataFrame(rng.normal(10, 1, size=(900, 3)), columns=list("abc"))
    return X.assign(group=[f"level {code}" for code in level]), 2.0 * (level % n_states) + rng.normal(
        size=900
    )


@pytest.mark.parametrize("seed", range(4))
def test_states_that_hide_from_the_covariates_keep_their_order(seed):
    X, y = hidden_from_the_covariates(seed)
    encoder = LatentStateEncoder("group", n_states=2, use_target=True, output="both", remainder="drop")
    crossed, full = encoder.fit_transform(X, y), encoder.transform(X)
    for j in range(4):
        assert np.corrcoef(crossed[:, j], full[:, j])[0, 1] > 0.8


@pytest.mark.parametrize("kind", ["continuous", "classes"])
def test_the_number_of_states_is_chosen_with_the_target(kind):
    X, y = hidden_from_the_covariates(0, n_states=3)
    y = np.digitize(y, [1.0, 3.0]) if kind == "classes" else y
    encoder = LatentStateEncoder("group", use_target=True, max_states=5).fit(X, y)
    assert encoder.n_states_ == {"group": 3}
    assert LatentStateEncoder("group", max_states=5).fit(X).n_states_ == {"group": 1}


@pytest.mark.parametrize("kind", ["continuous", "classes"])
def test_the_states_of_folds_keep_their_order(kind):
    X, sample = drawn(1200)
    y = sample.y if kind == "continuous" else np.digitize(sample.y, [0.0])
    encoder = LatentStateEncoder("group", n_states=3, use_target=True, output="both", remainder="drop")
    crossed = encoder.fit_transform(X, y)
    full = encoder.transform(X)
    for j in range(6):
        assert np.corrcoef(crossed[:, j], full[:, j])[0, 1] > 0.9
    np.testing.assert_allclose(crossed.sum(axis=1), 2.0)


def test_weights_count_rows_with_the_target_too():
    X, sample = drawn(150)
    times = np.random.default_rng(0).integers(0, 3, 150)
    place = np.repeat(np.arange(150), times)
    encoder = LatentStateEncoder("group", n_states=2, use_target=True, output="both")
    weighted = encoder.fit(X, sample.y, sample_weight=times).transform(X)
    repeated = encoder.fit(X.iloc[place], sample.y[place]).transform(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-5)


def test_a_target_far_from_zero_keeps_its_digits():
    X, sample = drawn(300)
    encoder = LatentStateEncoder("group", n_states=3, use_target=True, remainder="drop")
    near, far = (encoder.fit_transform(X, sample.y + origin) for origin in (0.0, 1.7e9))
    np.testing.assert_allclose(far, near, atol=1e-4)


def test_a_single_row_is_encoded_without_its_target():
    X = pd.DataFrame({"group": ["a"], "x": [1.0]})
    encoder = LatentStateEncoder("group", n_states=2, use_target=True, target_type="continuous")
    np.testing.assert_allclose(encoder.fit_transform(X, [3.0])[:, 1:].sum(), 1.0)


@pytest.mark.parametrize("y", [None, [1.0, np.nan, 2.0, 3.0]])
def test_a_target_is_needed_if_it_is_used(y):
    X = pd.DataFrame({"group": list("aabb"), "x": [1.0, 2.0, 3.0, 4.0]})
    for method in ("fit", "fit_transform"):
        with pytest.raises(errors.TargetError, match=r"y (to be passed|contains NaN)"):
            getattr(LatentStateEncoder("group", use_target=True), method)(X, y)


def test_folds_must_cover_every_row_once():
    X, sample = drawn(50)
    with pytest.raises(errors.SplitError, match="50"):
        LatentStateEncoder(
            "group", n_states=2, use_target=True, cv=[(range(25), range(25, 50))]
        ).fit_transform(X, sample.y)
