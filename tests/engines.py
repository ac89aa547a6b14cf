"""Engines for tests: a PostgreSQL server and a Spark session, started once for all tests that need them.

``tests/conftest.py`` makes the fixtures known everywhere. Tests that use one are skipped, with the name of
what is missing, where the engine is not installed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Where Debian keeps the programs of the server, which are not on the path of users.
_POSTGRES_FOLDERS = "/usr/lib/postgresql"


@dataclass(frozen=True)
class PostgresServer:
    """A server that listens on a Unix socket only, with an empty database.

    Attributes
    ----------
    folder : Path
        The folder of the socket.
    user : str
    database : str
    """

    folder: Path
    user: str
    database: str = "postgres"

    @property
    def conninfo(self) -> str:
        """What psycopg connects to."""
        return f"host={self.folder} user={self.user} dbname={self.database}"

    @property
    def url(self) -> str:
        """The same as an address, for ibis and SQLAlchemy."""
        return f"postgresql://{self.user}@/{self.database}?host={self.folder}"

    def connect(self) -> Any:
        """A connection in which every statement is committed at once."""
        import psycopg

        return psycopg.connect(self.conninfo, autocommit=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server in a temporary folder, which ends with the tests."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = {name: _postgres_program(name) for name in ("initdb", "pg_ctl")}
    with _private_folder() as (folder, user):
        data, as_user = folder / "data", _as_user(user)
        # Test data need not survive a crash, so nothing is flushed to the disk.
        settings = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        _run(*as_user, programs["initdb"], "-D", data, "-A", "trust", "-U", user, "-E", "UTF8", "--no-sync")
        control = (*as_user, programs["pg_ctl"], "-D", data, "-w", "-t", "60")
        _run(*control, "-l", folder / "log", "-o", settings, "start")
        try:
            yield PostgresServer(folder, user)
        finally:
            _run(*control, "-m", "immediate", "stop")


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """A local Spark session (classic, two threads), which ends with the tests."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    from pyspark.sql import SparkSession

    # Workers must have the packages of this environment; a server of Spark Connect must not take the place of
    # the session, nor an address of the network that of this machine.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ.pop("SPARK_REMOTE", None)
    with tempfile.TemporaryDirectory(prefix="sufrep-spark-") as folder:
        builder = SparkSession.builder.master("local[2]").appName("sufrep tests")
        settings = {
            "spark.api.mode": "classic",
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.local.dir": f"{folder}/local",
            "spark.log.level": "ERROR",
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


def _postgres_program(name: str) -> str:
    """The path of a program of PostgreSQL; skips the test if there is none."""
    versions = sorted(Path(_POSTGRES_FOLDERS).glob("*/bin"), key=lambda folder: folder.parent.name)
    searched = os.pathsep.join([*map(str, reversed(versions)), os.environ.get("PATH", "")])
    found = shutil.which(name, path=searched)
    if found is None:
        pytest.skip(f"PostgreSQL is not installed: no program {name!r}")
    return found


@contextmanager
def _private_folder() -> Iterator[tuple[Path, str]]:
    """A folder, and the user who owns it and runs the server, which refuses to run as root.

    The path is short, because that of a socket has at most 107 bytes.
    """
    user = pwd.getpwuid(os.getuid())
    if os.getuid() == 0:
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres'")
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as folder:
        os.chown(folder, user.pw_uid, user.pw_gid)
        yield Path(folder), user.pw_name


def _as_user(user: str) -> tuple[str, ...]:
    return ("runuser", "-u", user, "--") if os.getuid() == 0 and user != "root" else ()


def _run(*command: str | Path) -> None:
    # The server keeps the streams that it inherits, so waiting for their end would take forever.
    log = subprocess.DEVNULL
    subprocess.run(
        [str(part) for part in command], check=True, stdin=log, stdout=log, stderr=log, cwd="/", timeout=120
    )
