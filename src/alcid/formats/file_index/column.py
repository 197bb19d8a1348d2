"""From an Arrow column to the keys that an index keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import LimitError, UnsupportedError
from alcid.formats.arrays import DAY_IN_MILLIS, TICKS_PER_SECOND, IntArray, plain
from alcid.formats.file_index.keys import Key, KeyType, key_type, order_floats
from alcid.types import DataType

__all__ = ["MOST_ROWS", "KeyColumn", "Keys", "key_array", "map_key_column", "read_column"]

MOST_ROWS = (1 << 31) - 1
Keys: TypeAlias = Any  # a NumPy array of integers, or an Arrow large_binary array


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """The keys of a column, without the nulls, and the rows they stand in."""

    row_count: int
    key_type: KeyType
    keys: Keys
    rows: npt.NDArray[np.uint32] | None
    """The row of each key, or None if every row has one."""
    first_nan: int | None = None
    """The bits of the first NaN, which the range-bitmap keeps as they are."""

    @property
    def key_rows(self) -> npt.NDArray[np.uint32]:
        """The row of each key."""
        return np.arange(self.row_count, dtype=np.uint32) if self.rows is None else self.rows

    @property
    def null_rows(self) -> npt.NDArray[np.uint32]:
        """The rows without a key."""
        if self.rows is None:
            return np.zeros(0, np.uint32)
        absent = np.ones(self.row_count, bool)
        absent[self.rows] = False
        return np.flatnonzero(absent).astype(np.uint32)

    def spread(self, values: IntArray) -> IntArray:
        """`values`, one for each key, by row; 0 where there is no key."""
        if self.rows is None:
            return values
        spread = np.zeros(self.row_count, values.dtype)
        spread[self.rows] = values
        return spread


def key_array(keys: Sequence[Key], kind: KeyType) -> Keys:
    """Keys one by one as those of a column."""
    return pa.array(keys, pa.large_binary()) if kind.is_bytes else np.array(keys, kind.dtype)


def map_key_column(array: pa.Array | pa.ChunkedArray, key: str) -> pa.ChunkedArray:
    """The values that a MAP column holds for `key`: null where the map or the key is absent."""
    maps = pa.chunked_array(array)
    maps = maps.cast(
        pa.map_(pa.string(), maps.type.item_type)
    )  # of all kinds of text, one is enough
    return pc.map_lookup(maps, pa.scalar(key), "first")


def read_column(array: pa.Array | pa.ChunkedArray, data_type: DataType) -> KeyColumn:
    """Bring an Arrow column of the Paimon type `data_type` to keys."""
    row_count = len(array)
    if row_count > MOST_ROWS:
        raise LimitError(f"a file index holds at most {MOST_ROWS} rows, found {row_count}")
    array = plain(array)
    rows = None
    if array.null_count:
        valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(valid).astype(np.uint32)
        array = array.drop_null()
    kind = key_type(data_type)
    if kind.is_bytes:
        return KeyColumn(row_count, kind, array.cast(pa.large_binary()), rows)
    if kind.floating:
        values = array.cast(pa.float32() if kind.width == 4 else pa.float64()).to_numpy()
        nan = np.flatnonzero(np.isnan(values))[:1]
        first_nan = int(values[nan].view(kind.dtype)[0]) if len(nan) else None
        return KeyColumn(row_count, kind, order_floats(values), rows, first_nan)
    return KeyColumn(row_count, kind, _integers(array, data_type, kind, rows), rows)


def _integers(
    array: pa.Array, data_type: DataType, kind: KeyType, rows: npt.NDArray[np.uint32] | None
) -> IntArray:
    """Integer keys of an array without nulls, whose values stand in `rows`."""
    arrow_type = array.type
    match data_type.root:
        case "BOOLEAN":
            return array.cast(pa.int8()).to_numpy()  # type: ignore[no-any-return]
        case "DECIMAL":
            return _unscaled(array, data_type, rows)
        case "DATE" if pa.types.is_date64(arrow_type):
            return _narrow(array, array.view(pa.int64()).to_numpy() // DAY_IN_MILLIS, kind, rows)
        case "DATE":
            return array.view(pa.int32()).to_numpy()  # type: ignore[no-any-return]
        case "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _narrow(array, _ticks(array, kind, rows), kind, rows)
        case _:
            return array.cast(pa.from_numpy_dtype(kind.dtype)).to_numpy()  # type: ignore[no-any-return]


def _narrow(
    array: pa.Array, keys: IntArray, kind: KeyType, rows: npt.NDArray[np.uint32] | None
) -> IntArray:
    """Keys of the width that is stored; a date or a time may be beyond it."""
    beyond = np.flatnonzero((keys > kind.maximum) | (keys < kind.minimum))
    if len(beyond):
        raise _does_not_fit(array.view(pa.int64()), int(beyond[0]), rows)
    return keys.astype(kind.dtype, copy=False)


def _does_not_fit(
    array: pa.Array, position: int, rows: npt.NDArray[np.uint32] | None
) -> UnsupportedError:
    row = position if rows is None else int(rows[position])
    return UnsupportedError(f"{array[position]} in row {row} does not fit a key")


def _ticks(array: pa.Array, kind: KeyType, rows: npt.NDArray[np.uint32] | None) -> IntArray:
    """Milliseconds or microseconds, rounded down; the units of Arrow are finer or coarser."""
    width = array.type.bit_width
    ticks: IntArray = array.view(pa.int32() if width == 32 else pa.int64()).to_numpy()
    ticks = ticks.astype(np.int64, copy=False)
    have, want = TICKS_PER_SECOND[array.type.unit], TICKS_PER_SECOND["ms" if kind.millis else "us"]
    if have >= want:
        return ticks if have == want else ticks // (have // want)
    factor = want // have
    limit = np.iinfo(np.int64).max // factor
    beyond = np.flatnonzero((ticks > limit) | (ticks < -limit))
    if len(beyond):
        raise _does_not_fit(array.view(pa.int64()), int(beyond[0]), rows)
    return ticks * factor


def _unscaled(
    array: pa.Array, data_type: DataType, rows: npt.NDArray[np.uint32] | None
) -> IntArray:
    """The unscaled numbers of a DECIMAL column, which must fit 64 bits."""
    if not pa.types.is_decimal(array.type):  # unsigned 64-bit integers
        array = array.cast(pa.decimal128(20, 0))
    try:
        wide = array.cast(
            pa.decimal256(max(array.type.precision, data_type.precision), array.type.scale)
        )
    except pa.ArrowInvalid as error:  # more digits than the array's own type has
        raise UnsupportedError(f"{data_type}: {error}") from None
    words = np.frombuffer(wide.buffers()[1], np.int64)[
        4 * wide.offset : 4 * (wide.offset + len(wide))
    ]
    lowest, higher = words[0::4], words.reshape(-1, 4)[:, 1:]
    misfit = np.flatnonzero((higher != (lowest >> 63)[:, None]).any(axis=1))
    if len(misfit):
        raise _does_not_fit(array, int(misfit[0]), rows)
    return lowest.copy()
