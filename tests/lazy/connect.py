"""Every encoder in Spark Connect; a program of its own, because a process has one kind of Spark only."""

from __future__ import annotations

import os
import sys
import warnings

from tests.lazy.cases import CONDITIONS, ENCODERS, check
from tests.lazy.engines import Engine, into_spark


def main() -> None:
    """Check a few encoders, each in another condition."""
    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.remote("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    engine = Engine("spark", into_spark(session))
    conditions = list(CONDITIONS)
    for number, encoder in enumerate(list(ENCODERS)[::4]):
        check(encoder, conditions[number % len(conditions)], engine)
        print(encoder, flush=True)
    session.stop()


if __name__ == "__main__":
    main()
