"""Write the rows of the large benchmarks as Parquet files, in chunks of a million rows.

Each chunk has a random generator of its own, spawned from one seed, so that a smaller data set is the
beginning of a larger one. A process needs memory for one chunk at a time.

    python -m benchmarks.make_large --rows 100_000_000 --out FOLDER
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LEVELS, COVARIATES = 50_000, 10
CHUNK, ROW_GROUP, FILE = 1_000_000, 250_000, 10_000_000


def chunks(
    rows: int, levels: int = LEVELS, covariates: int = COVARIATES, seed: int = 0
) -> Iterator[pa.Table]:
    """Yield tables of text levels ("zip") and covariates ("x0", …), whose means differ by level.

    Parameters
    ----------
    rows : int
        In all; each table has a million, the last one what is left.
    levels : int
        All have the same probability.
    covariates : int
    seed : int
    """
    names = pa.array([f"z{level:07d}" for level in range(levels)])
    first, *seeds = np.random.SeedSequence(seed).spawn(1 + -(-rows // CHUNK))
    means = np.random.default_rng(first).normal(size=(covariates, levels))
    for number, own in enumerate(seeds):
        rng = np.random.default_rng(own)
        size = min(CHUNK, rows - number * CHUNK)
        codes = rng.integers(0, levels, size, dtype=np.int32)
        columns = {f"x{j}": mean[codes] + rng.normal(size=size) for j, mean in enumerate(means)}
        yield pa.table({"zip": pa.DictionaryArray.from_arrays(codes, names), **columns})


def write(folder: Path, rows: int, levels: int = LEVELS, covariates: int = COVARIATES) -> list[Path]:
    """Write ``part-000.parquet`` and so on, ten million rows each; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    writer: pq.ParquetWriter | None = None
    for number, table in enumerate(chunks(rows, levels, covariates)):
        if number * CHUNK % FILE == 0:
            if writer is not None:
                writer.close()
            paths.append(folder / f"part-{len(paths):03d}.parquet")
            # Without Arrow's own schema, every engine reads the levels as text, not as categories.
            writer = pq.ParquetWriter(paths[-1], table.schema, use_dictionary=["zip"], store_schema=False)
        assert writer is not None
        writer.write_table(table, row_group_size=ROW_GROUP)
    if writer is not None:
        writer.close()
    return paths


def main() -> None:
    """Write the files and report their size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--levels", type=int, default=LEVELS)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    options = parser.parse_args()
    paths = write(options.out, options.rows, options.levels)
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(paths)} file(s), {size / 1e9:.2f} GB in {options.out}")


if __name__ == "__main__":
    main()
