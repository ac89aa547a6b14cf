"""The engines that other tests use."""

from __future__ import annotations

from typing import Any

from tests.engines import PostgresServer


def test_postgresql_answers(postgres_server: PostgresServer) -> None:
    with postgres_server.connect() as connection:
        assert connection.execute("SELECT 6 * 7").fetchone() == (42,)


def test_spark_answers(spark_session: Any) -> None:
    assert [tuple(row) for row in spark_session.sql("SELECT 6 * 7 AS answer").collect()] == [(42,)]
