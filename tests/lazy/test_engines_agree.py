"""Every engine gives what memory gives."""

from __future__ import annotations

import pytest
from tests.lazy.cases import CONDITIONS, ENCODERS, check, check_later
from tests.lazy.engines import engine

__all__ = ["engine"]

OTHERS = ["dask", "ibis", "postgres", "spark"]


def pairwise(engines: list[str]) -> list[tuple[str, str, str]]:
    """Every engine with every encoder, every engine with every condition."""
    conditions = list(CONDITIONS)
    return [
        (name, encoder, conditions[(number + 3 * shift) % len(conditions)])
        for shift, name in enumerate(engines)
        for number, encoder in enumerate(ENCODERS)
    ]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("engine", ["polars", "duckdb"], indirect=True)
def test_every_encoder_gives_in_every_condition_what_memory_gives(engine, encoder, condition):
    check(encoder, condition, engine)


@pytest.mark.parametrize(("engine", "encoder", "condition"), pairwise(OTHERS), indirect=["engine"])
def test_other_engines_give_what_memory_gives(engine, encoder, condition):
    check(encoder, condition, engine)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("encoder", ["pooled means", "nested target", "classes", "discriminant", "ranks"])
@pytest.mark.parametrize("engine", ["polars", "duckdb"], indirect=True)
def test_levels_drift_and_are_learnt_as_in_memory(engine, encoder, condition):
    check_later(encoder, condition, engine)


@pytest.mark.parametrize("engine", OTHERS, indirect=True)
def test_levels_drift_and_are_learnt_in_other_engines(engine):
    check_later("means", "nulls", engine)
