"""Hashes of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.formats.binary_row import binary_rows, hash_rows
from benchmarks import table_data
from benchmarks.table_peers import PyPaimon
from benchmarks.table_run import TIME, Case, Group, Side, here, scaled

__all__ = ["key_cases"]

_MANY = Group("Hashes of keys", "rows")
_FEW = Group("Hashes of few keys", "rows", TIME)
_SEED = 42
_CHECKED = 1000


@dataclass(frozen=True, slots=True)
class _Key:
    """The columns of a primary key, and how many rows of them are hashed."""

    name: str
    rows: int
    columns: Callable[[int], list[pa.Array]]

    def table(self, rows: int) -> pa.Table:
        return pa.table({f"k{place}": part for place, part in enumerate(self.columns(rows))})


_INT64 = _Key("int64", 5_000_000, lambda rows: [table_data.longs(rows)])
_INT64_STRING = _Key(
    "int64, string of 8 to 40",
    2_000_000,
    lambda rows: [table_data.longs(rows), table_data.texts(rows, 8, 40)],
)
_KEYS = (
    _INT64,
    _INT64_STRING,
    _Key("string of 8 to 40", 2_000_000, lambda rows: [table_data.texts(rows, 8, 40)]),
    _Key("string of 900 to 1100", 50_000, lambda rows: [table_data.texts(rows, 900, 1100)]),
    _Key(
        "decimal(38, 10), timestamp(6)",
        2_000_000,
        lambda rows: [table_data.decimals(rows, 38, 10), table_data.times(rows)],
    ),
)


def key_cases(scale: float, peer: PyPaimon | None) -> Iterator[Case]:
    """Many keys, of which the peer gets fewer, and few."""
    peer_rows = scaled(20_000, scale)
    for key in _KEYS:
        sides = partial(_sides, key, scaled(key.rows, scale), peer_rows, peer)
        yield Case(_MANY, "hash_rows", key.name, sides)
    for rows in (1, 100):
        for key in (_INT64, _INT64_STRING):
            sides = partial(_sides, key, rows, rows, peer)
            yield Case(_FEW, f"hash_rows of {rows}", key.name, sides)


def _sides(key: _Key, rows: int, peer_rows: int, peer: PyPaimon | None) -> Iterator[Side]:
    keys = key.table(rows)
    yield here(rows, lambda: hash_rows(keys), partial(_right, keys))
    if peer is not None:
        few = keys.slice(0, peer_rows)
        yield peer.hashing(few, hash_rows(few))


def _right(keys: pa.Table, found: npt.NDArray[np.int32]) -> bool:
    """Whether the first and the last hashes are what other code makes of the rows as bytes."""
    count = min(len(keys), _CHECKED)
    return len(found) == len(keys) and all(
        found[start : start + count].tolist()
        == [mmh3.hash(row, _SEED) for row in binary_rows(keys.slice(start, count))]
        for start in (0, len(keys) - count)
    )
