"""A sample of the rows of a lazy table, the same in every engine, however the rows are stored.

Each level has a rate, and a row is kept if a hash of its values, as a number between 0 and 1, is below the
rate of its level. There is no state and no order. Engines have hash functions of their own, which differ, so
the hash is computed here, in batches of rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from sufrep._frames._aggregate import join_small
from sufrep._frames._batches import map_batches
from sufrep._frames._eager import factorize_series
from sufrep.errors import EmptySampleError
from sufrep.representation import level_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sufrep._arrays import Array, Codes, Floats, Levels
    from sufrep._frames._lazy import LazyFactor, LazyTable

_STEP = "sampling rows"
_RATE, _HASH = "__sufrep rate", "__sufrep hash"
# What stands for null among the bits of doubles; no double has them in this form.
_NULL = np.uint64(0x7FF8_0000_DEAD_BEEF)


def sample_table(
    table: LazyTable,
    groups: Sequence[LazyFactor],
    n_rows: int,
    by: Sequence[str],
    parameter: str = "sample_by",
) -> Any:
    """Return about ``n_rows`` rows as a frame in memory, ordered by their hashes.

    Parameters
    ----------
    table : LazyTable
    groups : sequence of LazyFactor
        In each of them, large levels are sampled at rates that leave as many rows of each, and small ones are
        kept. With several groups a row has the largest of its rates.
    n_rows : int
    by : sequence of str
        The columns that are hashed.
    """
    frame, columns = table.frame, table.frame.collect_schema().names()
    counts = [table.moments(group, (), names=(), weights=None, order=1) for group in groups]
    rates = []
    for number, (group, found) in enumerate(zip(groups, counts, strict=True)):
        keys = {f"__sufrep {number} key {j}": key for j, key in enumerate(group.keys)}
        frame = frame.with_columns(*(key.expression.alias(name) for name, key in keys.items()))
        levels = found.levels.tolist()
        parts = [levels] if len(keys) == 1 else [list(part) for part in zip(*levels, strict=True)]
        rates.append(f"__sufrep {number} rate")
        small = {rates[-1]: level_rates(found.count, n_rows)}
        frame = join_small(frame, keys, parts, small, _STEP, how="left", prefix=f"__sufrep {number}")
    # A row without a level is not part of the sample.
    known = [nw.col(name).fill_null(0.0) for name in rates]
    highest = (known[0] if len(known) == 1 else nw.max_horizontal(*known)).alias(_RATE)
    kept = map_batches(frame.select(*columns, highest), RowFilter(tuple(sorted(by))), _STEP)
    sample = nw.concat(kept).sort(_HASH).drop(_HASH) if kept else None
    for group, found in zip(groups, counts, strict=True):
        _refuse_empty_levels(sample, group, found.levels, n_rows, parameter)
    return None if sample is None else sample.to_native()


def level_rates(count: Codes, n_rows: int) -> Floats:
    """Rates min(1, c/n_g) that keep about so many rows, given the rows n_g of each level; (n_levels,)."""
    if count.sum() <= n_rows:
        return np.ones(len(count))
    ordered = np.sort(count)
    # With c between two counts, the smaller levels are kept and each of the others gives c rows.
    kept = np.concatenate([[0], np.cumsum(ordered)[:-1]])
    most = (n_rows - kept) / np.arange(len(count), 0, -1)
    cap = most[np.argmax(most <= ordered)]
    return np.asarray(np.minimum(1.0, cap / count))


def _refuse_empty_levels(
    sample: nw.DataFrame[Any] | None, group: LazyFactor, levels: Levels, n_rows: int, parameter: str
) -> None:
    """Raise an error if the sample has no row of some level."""
    found: set[Any] = set()
    if sample is not None:
        keys = sample.select(*(key.expression.alias(f"k{j}") for j, key in enumerate(group.keys)))
        parts = [key.levels(keys[f"k{j}"].to_list()) for j, key in enumerate(group.keys)]
        found = set(parts[0] if len(parts) == 1 else zip(*parts, strict=True))
    empty = [level for level in levels.tolist() if level not in found]
    if empty:
        name = ":".join(key.name for key in group.keys)
        raise EmptySampleError(name, [level_label(level) for level in empty], len(levels), n_rows, parameter)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Keeps the rows of batches whose hash is below their rate, and adds the hash."""

    by: tuple[str, ...]

    def __call__(self, batches: Iterable[nw.DataFrame[Any]]) -> Iterator[nw.DataFrame[Any]]:
        """Yield the rows of each batch that are kept."""
        for batch in batches:
            hashes = hash_rows(batch, self.by)
            keep = hashes < batch[_RATE].to_numpy()
            new = nw.new_series(_HASH, hashes[keep], nw.Float64(), backend=batch.implementation)
            kept = batch.drop(_RATE).filter(keep.tolist())
            if batch.implementation.is_pandas():
                kept = nw.from_native(kept.to_native().reset_index(drop=True), eager_only=True)
            yield kept.with_columns(new)

    def output_types(self, schema: nw.Schema) -> dict[str, nw.dtypes.DType]:
        """The columns of the frame, and the hash."""
        own = {name: dtype for name, dtype in schema.items() if name != _RATE}
        return {**own, _HASH: nw.Float64()}


def hash_rows(batch: nw.DataFrame[Any], by: Sequence[str]) -> Floats:
    """A number between 0 and 1 for each row, which depends on the values of some columns only; (n,)."""
    found = np.zeros(len(batch), dtype=np.uint64)
    for name in by:
        found = _mixed(found + _bits(batch[name]))
    return np.asarray((found >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _bits(series: nw.Series[Any]) -> Array:
    """64 bits for each value; equal values of different types of numbers have the same."""
    if series.dtype in (nw.Date, nw.Datetime):
        series = series.dt.timestamp("us")
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        numbers = series.cast(nw.Float64)
        null = numbers.is_null().to_numpy()
        values = np.where(null, 0.0, numbers.fill_null(0.0).to_numpy().astype(np.float64)) + 0.0
        return np.where(null | np.isnan(values), _NULL, values.view(np.uint64))
    factor = factorize_series(series)
    digests = [
        hashlib.blake2b(level_label(level).encode(), digest_size=8).digest() for level in factor.levels
    ]
    table = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return np.append(table, _NULL)[factor.codes]


def _mixed(bits: Array) -> Array:
    """The finalizer of splitmix64: every bit of the result depends on every bit given."""
    bits = bits + np.uint64(0x9E37_79B9_7F4A_7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
