"""The columns that are indexed, the same in every run.

Each also exists as plain integers of the same order and equality, so that every answer of an index
can be checked with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array

__all__ = ["NAMES", "Column", "make_column"]


_SEED = 20_250_801
_TEXT_LENGTH = 12
_HEX_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of one name and length."""

    name: str
    data_type: str
    array: pa.Array
    order: Int64Array
    """For each row an integer that compares with the others as the values do."""

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.order)

    def literal(self, order: int) -> int | str:
        """The value that `order` stands for."""
        return f"{order:0{_TEXT_LENGTH}x}" if self.data_type == "STRING" else order


def make_column(name: str, rows: int) -> Column:
    """The column of this name; a longer one does not begin with the rows of a shorter one."""
    order = _ORDERS[name](np.random.default_rng([_SEED, *name.encode()]), rows)
    if name.startswith("string"):
        return Column(name, "STRING", _hexadecimal(order), order)
    return Column(name, "BIGINT", pa.array(order), order)


def _few(rng: np.random.Generator, rows: int) -> Int64Array:
    return rng.integers(0, 50, rows)


def _ten_thousand(rng: np.random.Generator, rows: int) -> Int64Array:
    return rng.integers(0, 10_000, rows)


def _permutation(rng: np.random.Generator, rows: int) -> Int64Array:
    return rng.permutation(rows)


def _full_range(rng: np.random.Generator, rows: int) -> Int64Array:
    # bsi cannot hold the lowest number of all.
    return rng.integers(-(2**63) + 1, 2**63 - 1, rows, endpoint=True)


def _few_texts(rng: np.random.Generator, rows: int) -> Int64Array:
    return rng.choice(rng.integers(0, 16**_TEXT_LENGTH, 10_000), rows)


def _unique_texts(rng: np.random.Generator, rows: int) -> Int64Array:
    drawn = np.unique(rng.integers(0, 16**_TEXT_LENGTH, rows + rows // 100 + 10))
    return rng.permutation(drawn)[:rows]


_ORDERS: dict[str, Callable[[np.random.Generator, int], Int64Array]] = {
    "int64, 50 values": _few,
    "int64, 10k values": _ten_thousand,
    "int64, unique, 0..n-1": _permutation,
    "int64, unique, 64 bit": _full_range,
    "string, 10k values": _few_texts,
    "string, unique": _unique_texts,
}
NAMES = tuple(_ORDERS)


def _hexadecimal(order: Int64Array) -> pa.Array:
    """Twelve hexadecimal digits of each number: they sort as the numbers do."""
    digits = np.empty((len(order), _TEXT_LENGTH), np.uint8)
    for place in range(_TEXT_LENGTH):
        digits[:, place] = _HEX_DIGITS[order >> 4 * (_TEXT_LENGTH - 1 - place) & 15]
    offsets = np.arange(len(order) + 1, dtype=np.int32) * _TEXT_LENGTH
    buffers: list[Any] = [None, pa.py_buffer(offsets), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.string(), len(order), buffers)
