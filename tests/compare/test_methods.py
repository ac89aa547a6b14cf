"""What may be done with the column: names of methods, and the steps that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import TargetEncoder

from sufrep import ToNumbers
from sufrep._compare import check_methods
from sufrep._compare._methods import CODINGS, KNOWN_METHODS, make_steps, n_cells
from sufrep._compare._problem import read_problem
from sufrep.encoders import METHODS
from sufrep.errors import InvalidParameterError


def test_all_methods_are_the_registry_a_peer_and_nothing():
    assert check_methods(None) == [*METHODS, "target_encoder", "drop"]


@pytest.mark.parametrize(
    ("given", "methods"),
    [
        ("means", ["one_hot", "means"]),
        (["means", "one_hot", "means"], ["one_hot", "means"]),
        (("drop",), ["one_hot", "drop"]),
    ],
)
def test_one_hot_columns_are_always_among_them(given, methods):
    assert check_methods(given) == methods


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("mean", r"methods is 'mean'.*\n.*one of one_hot, .*drop \(did you mean 'means'\?\)"),
        (["zzz"], r"target_encoder, drop\.$"),
        ([3], "methods is 3"),
        ([], "None for all, or a list of names"),
    ],
)
def test_an_unknown_method_is_told(given, message):
    with pytest.raises(InvalidParameterError, match=message):
        check_methods(given)


@pytest.mark.parametrize("kind", ["frame", "array", "numbered"])
@pytest.mark.parametrize("method", ["means", "drop", "target_encoder", "one_hot", "random_intercept"])
def test_steps_encode_the_group_wherever_it_stands(mixed, method, kind):
    X, y = mixed
    expected = Pipeline(make_steps(read_problem(X, y, "town", "auto"), method, 0)).fit_transform(X, y)
    given = {"frame": X, "array": X.to_numpy(object), "numbered": X.set_axis(range(5), axis=1)}[kind]
    steps = Pipeline(make_steps(read_problem(given, y, 2, "auto"), method, 0))
    found = np.asarray(steps.fit_transform(given, y), dtype=float)
    np.testing.assert_allclose(found, np.asarray(expected, dtype=float))
    assert [name for name, _ in steps.steps] == ["columns", "encoder"]


def test_a_table_of_numbers_needs_no_step_before_the_encoder(rows):
    assert [name for name, _ in make_steps(read_problem(*rows(), "town", "auto"), "means", 0)] == ["encoder"]


def test_steps_know_the_target_and_the_seed(rows):
    X, y = rows()
    problem = read_problem(X, y > 0, "town", "auto")
    ((_, encoder),) = make_steps(problem, "sufficient", 7)
    assert (encoder.random_state, encoder.target_type) == (7, "binary")
    ((_, peer),) = make_steps(problem, "target_encoder", 7)
    inner = peer.transformers[0][1]
    assert isinstance(inner, TargetEncoder)
    assert (inner.cv.random_state, type(inner.cv).__name__) == (7, "StratifiedKFold")


def test_every_known_method_gives_steps(mixed):
    problem = read_problem(*mixed, "town", "auto")
    for method in KNOWN_METHODS:
        (_, first), (_, second) = make_steps(problem, method, 0)
        assert isinstance(first, ToNumbers)
        assert hasattr(second, "fit_transform")


def test_only_codings_make_a_column_for_each_level(rows):
    problem = read_problem(*rows(), "town", "auto")
    assert {method: n_cells(problem, method) for method in KNOWN_METHODS} == {
        method: 120.0 * 6 if method in CODINGS else 0.0 for method in KNOWN_METHODS
    }
