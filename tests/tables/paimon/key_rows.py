"""Random rows of a primary-key table, and Paimon's order of values in plain Python."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon.merge_on_read import KeyRows

Rank = tuple[Any, ...]

_OTHER_NAN = struct.unpack(">d", bytes.fromhex("fff0000000000001"))[0]
_FLOATS = [math.nan, _OTHER_NAN, math.inf, -math.inf, -1.5, -0.0, 0.0, 1.5]
_TEXTS = [
    "",
    "\0",
    "a",
    "a\0",
    "a\0b",
    "b",
    "é",
    "\ud7ff",
    "\uffff",
    "😀",
    "long-text-",
    "long-text-x",
]
_MOMENTS = [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime(2026, 1, 2)]

# Few values of each type, so that keys occur repeatedly.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [False, True]),
    "tinyint": (pa.int8(), [-128, -1, 0, 1, 127]),
    "int": (pa.int32(), [-2, -1, 0, 1, 2]),
    "bigint": (pa.int64(), [-(1 << 63), -1, 0, 1, (1 << 63) - 1]),
    "float": (pa.float32(), _FLOATS),
    "double": (pa.float64(), _FLOATS),
    "decimal": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("1234567.89")]),
    "wide decimal": (
        pa.decimal128(38, 0),
        [Decimal(number) for number in (-(10**37), -(1 << 64), -1, 0, 1, 1 << 63, 1 << 64, 10**37)],
    ),
    "date": (pa.date32(), [date(1969, 12, 31), date(1970, 1, 1), date(2026, 1, 2)]),
    "time": (pa.time32("ms"), [time(0), time(23, 59, 59)]),
    "timestamp": (pa.timestamp("us"), _MOMENTS),
    "string": (pa.string(), _TEXTS),
    "large string": (pa.large_string(), _TEXTS),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), _TEXTS),
    "binary": (pa.binary(), [b"", b"\0", b"\x7f", b"\x80", b"\xff", b"a" * 200, b"a" * 199 + b"b"]),
    "fixed binary": (pa.binary(2), [b"\0\0", b"\x7f\0", b"\x80\0", b"\xff\xff"]),
}


@dataclass(frozen=True)
class File:
    """The rows of a file as Python values."""

    keys: list[Rank]
    sequence: list[Rank]
    numbers: list[int]
    kinds: list[int]
    level: int
    deleted: DeletionVector | None
    key_types: list[pa.DataType]
    sequence_types: list[pa.DataType]

    def key_rows(self) -> KeyRows:
        """The same as Arrow columns."""
        return KeyRows(
            columns(self.keys, self.key_types),
            np.array(self.numbers, np.int64),
            np.array(self.kinds, np.int8),
            self.level,
            columns(self.sequence, self.sequence_types),
            self.deleted,
        )


def columns(rows: list[Rank], types: list[pa.DataType]) -> list[pa.ChunkedArray]:
    """Rows as columns of two chunks."""
    middle = len(rows) // 2
    return [
        pa.chunked_array(
            [_array([row[number] for row in part], kind) for part in (rows[:middle], rows[middle:])]
        )
        for number, kind in enumerate(types)
    ]


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def rank(row: Rank, *, descending: bool = False) -> Rank:
    """A key that Python compares as Paimon compares the row."""
    ranks = (None if value is None else _rank(value) for value in row)
    if descending:
        return tuple((0,) if value is None else (1, _Turned(value)) for value in ranks)
    return tuple((0,) if value is None else (1, value) for value in ranks)


def _rank(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (1,) if math.isnan(value) else (0, value, math.copysign(1, value))
    return value


@dataclass(frozen=True)
class _Turned:
    """A value with the reverse order."""

    value: Any

    def __lt__(self, other: _Turned) -> bool:
        return bool(other.value < self.value)

    def __gt__(self, other: _Turned) -> bool:
        return bool(other.value > self.value)


@st.composite
def tables(draw: st.DrawFn) -> list[File]:
    """A few files that share keys and sequence numbers, in any order of levels."""
    names = st.sampled_from(sorted(VALUES))
    key_kinds = [VALUES[name] for name in draw(st.lists(names, min_size=1, max_size=3))]
    sequence_kinds = [VALUES[name] for name in draw(st.lists(names, max_size=2))]
    key = st.tuples(*(st.sampled_from(values) for _, values in key_kinds))
    sequence = st.tuples(*(st.sampled_from([None, *values]) for _, values in sequence_kinds))
    row = st.tuples(key, sequence, st.integers(-2, 2), st.integers(0, 3))
    files = []
    for _ in range(draw(st.integers(1, 4))):
        rows = draw(st.lists(row, max_size=8))
        deleted = draw(st.none() | st.sets(st.integers(0, 9)).map(DeletionVector))
        keys, sequences, numbers, kinds = ([row[part] for row in rows] for part in range(4))
        level = draw(st.integers(0, 2))
        types = [kind for kind, _ in key_kinds], [kind for kind, _ in sequence_kinds]
        files.append(File(keys, sequences, numbers, kinds, level, deleted, *types))
    return files
