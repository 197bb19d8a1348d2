"""Binary rows decoded into Arrow columns: partitions, keys and statistics are stored as such rows.

The layout is that of `alcid.formats.binary_row.rows`. Every length and offset is checked against
the row that it stands in. The first byte, the kind of the row, is not looked at, nor are bytes that
a slot does not use; short text is also read from the variable part. Rows are decoded column by
column: the null bits, slots and variable parts of all rows become one Arrow array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import (
    DAY_IN_MILLIS,
    TICKS_PER_SECOND,
    BoolArray,
    Int64Array,
    IntArray,
    UInt8Array,
    UInt64Array,
    byte_offsets,
    plain,
)
from alcid.errors import ColumnError, FormatError, LimitError, UnsupportedError
from alcid.formats.binary_row.slots import INTEGERS, LONGEST_INLINE, words_at
from alcid.types import DataType

Stored: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[bytes | None]"
"""Rows as Arrow's binary or large_binary, or as bytes; null where there is no row."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows that lie anywhere in `data`."""

    data: UInt8Array
    starts: Int64Array
    lengths: Int64Array
    present: BoolArray
    """False where there is no row."""

    @classmethod
    def of(cls, rows: Stored) -> StoredRows:
        """The rows of an Arrow array, or of a sequence.

        >>> StoredRows.of([b"one", None, b"three"]).lengths.tolist()
        [3, 0, 5]
        """
        arrow = isinstance(rows, pa.Array | pa.ChunkedArray)
        array = plain(rows).cast(pa.large_binary()) if arrow else pa.array(rows, pa.large_binary())
        offsets = byte_offsets(array)
        buffer = array.buffers()[2]
        data = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
        present = pc.is_valid(array).to_numpy(zero_copy_only=False)
        return cls(data, offsets[:-1], np.diff(offsets), present)

    def __len__(self) -> int:
        return len(self.starts)

    def without_head(self, size: int, refused: BoolArray) -> StoredRows:
        """What follows the first `size` bytes of each row; rows that are refused are gone.

        Rows that are shorter must be among the refused.
        """
        present = self.present & ~refused
        starts = np.where(present, self.starts + size, 0)
        lengths = np.where(present, self.lengths - size, 0)
        return replace(self, starts=starts, lengths=lengths, present=present)


READABLE: Final = frozenset(
    (
        *("BOOLEAN", *INTEGERS, "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIME"),
        *("TIMESTAMP", "TIMESTAMP_LTZ", "CHAR", "VARCHAR", "BINARY", "VARBINARY"),
    )
)
"""The types that are read; others have a slot too, but no order."""

_ROW_KIND_BITS: Final = 8
_LONGEST_SHORT_DECIMAL: Final = 18
_LONGEST_NUMBER: Final = 16
_NANOS_PER_MILLI: Final = 1_000_000
_MOST_BYTES: Final = (1 << 31) - 1
_SHOWN: Final = 32  # bytes of a value that is no text
_LOWER_HALF: Final = np.uint64((1 << 32) - 1)


class ColumnReader:
    """A column that is read from rows, once.

    Every step goes over all rows, whether they are sound or not: nothing is read beyond the data,
    and what was read from a row that turns out to be damaged is not used.
    """

    def __init__(
        self, rows: StoredRows, column: int, types: Sequence[DataType], file: str | None
    ) -> None:
        """Take the rows, and the file to name in errors; None: damaged rows are only noted."""
        self._rows, self._column, self._type, self._file = rows, column, types[column], file
        null_bytes = (_ROW_KIND_BITS + len(types) + 63) // 64 * 8
        fixed = null_bytes + 8 * len(types)
        self._offset = null_bytes + 8 * column
        self.damaged: BoolArray = np.zeros(len(rows), bool)
        self._held = rows.present.copy()
        """Which rows have a value."""
        self._refuse(rows.lengths < fixed, "a row too short", rows.lengths, f"at least {fixed}")
        byte, bit = divmod(_ROW_KIND_BITS + column, 8)
        self._held &= ~(words_at(rows.data, rows.starts + byte) >> np.uint64(bit) & 1).astype(bool)
        self._slots = words_at(rows.data, rows.starts + self._offset)

    def _refuse(self, bad: BoolArray, problem: str, found: Any, expected: object) -> None:
        """Raise an error for the first value that is bad, or do without the values that are."""
        bad = bad & self._held
        if not bad.any():
            return
        if self._file is not None:
            row = int(bad.argmax())
            raise FormatError(
                f"row {row}, column {self._column}, {self._type}: {problem}",
                file=self._file,
                offset=self._offset,
                found=str(found[row]),
                expected=expected,
            )
        self.damaged |= bad
        self._held &= ~bad

    def read(self) -> pa.Array:
        """The values; null where there is none, or where the row is damaged."""
        slots, kind = self._slots, self._type.to_arrow()
        match self._type.root:
            case "BOOLEAN":
                values = slots.astype(np.uint8).astype(bool)
                return self._array(kind, np.packbits(values, bitorder="little"))
            case "FLOAT":
                return self._array(kind, slots.astype(np.uint32))
            case "DOUBLE":
                return self._array(kind, slots)
            case "DATE":
                return self._array(kind, slots.astype(np.int32))
            case "TIME":
                return self._array(kind, self._times(kind))
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                return self._array(kind, self._timestamps(TICKS_PER_SECOND[kind.unit]))
            case "DECIMAL":
                return self._decimals(kind)
            case "CHAR" | "VARCHAR":
                return self._text(*self._places())
            case "BINARY":
                return self._fixed_bytes(*self._places())
            case "VARBINARY":
                return self._bytes(*self._places())
            case root:
                return self._array(kind, slots.astype(INTEGERS[root]))

    def _array(self, kind: Any, *buffers: npt.NDArray[Any]) -> pa.Array:
        """An array of these buffers that has the values which are held."""
        valid = None
        if not self._held.all():
            valid = pa.py_buffer(np.packbits(self._held, bitorder="little"))
        return pa.Array.from_buffers(kind, len(self._held), [valid, *map(pa.py_buffer, buffers)])

    def _times(self, kind: Any) -> IntArray:
        millis = self._slots.astype(np.int32)
        beyond = (millis < 0) | (millis >= DAY_IN_MILLIS)
        self._refuse(beyond, "a time of no day", millis, f"0 to {DAY_IN_MILLIS - 1}")
        ticks = millis * np.int64(TICKS_PER_SECOND[kind.unit] // 1_000)
        return ticks.astype(f"i{kind.bit_width // 8}")

    def _timestamps(self, per_second: int) -> IntArray:
        if self._type.precision > 3:
            nanos, offsets = self._halves()
            expected = f"0 to {_NANOS_PER_MILLI - 1}"
            self._refuse(nanos >= _NANOS_PER_MILLI, "nanoseconds", nanos, expected)
            self._refuse_beyond(offsets, 8)
            millis = words_at(self._rows.data, self._rows.starts + offsets).view(np.int64)
            factor = per_second // 1_000
            ticks = millis * factor + nanos // (_NANOS_PER_MILLI // factor)  # the product may wrap
            self._refuse(ticks // factor != millis, "milliseconds", millis, "64 bits of ticks")
            return ticks
        millis = self._slots.view(np.int64)
        if per_second == 1_000:
            return millis
        self._refuse(millis % 1_000 != 0, "milliseconds", millis, "whole seconds")
        return millis // 1_000

    def _halves(self) -> tuple[Int64Array, Int64Array]:
        """Of each slot, the lower half, which is a length or the like, and the upper, an offset."""
        low, high = self._slots & _LOWER_HALF, self._slots >> np.uint64(32)
        return low.astype(np.int64), high.astype(np.int64)

    def _refuse_beyond(self, offsets: Int64Array, sizes: Int64Array | int) -> None:
        """Refuse variable parts that do not lie within their row."""
        ends, lengths = offsets + sizes, self._rows.lengths
        bad = ends > lengths
        if bad.any():  # else nothing is to be said
            expected = int(lengths[(bad & self._held).argmax()])
            self._refuse(bad, "the end of its bytes", ends, f"at most {expected}")

    def _decimals(self, kind: Any) -> pa.Array:
        lower = self._slots
        upper = (lower.view(np.int64) >> 63).view(np.uint64)
        if self._type.precision > _LONGEST_SHORT_DECIMAL:
            lower, upper = self._long_unscaled()
        numbers = np.stack((lower, upper), axis=1)
        values = self._array(kind, numbers)
        digits = (9,) * self._type.precision
        least, most = (
            pa.scalar(Decimal((sign, digits, -self._type.scale)), kind) for sign in (1, 0)
        )
        beyond = pc.or_(pc.less(values, least), pc.greater(values, most)).fill_null(False)
        bad = beyond.to_numpy(zero_copy_only=False)
        if bad.any():
            self._refuse(bad, "a number", values, f"at most {self._type.precision} digits")
            return self._array(kind, numbers)
        return values

    def _long_unscaled(self) -> tuple[UInt64Array, UInt64Array]:
        """Big-endian numbers of 1 to 16 bytes: their lower and upper 64 bits, with the sign."""
        sizes, offsets = self._halves()
        bad = (sizes < 1) | (sizes > _LONGEST_NUMBER)
        self._refuse(bad, "bytes of a number", sizes, f"1 to {_LONGEST_NUMBER}")
        self._refuse_beyond(offsets, sizes)
        positions = self._rows.starts + offsets
        upper, lower = (words_at(self._rows.data, positions + at).byteswap() for at in (0, 8))
        # The first byte stands highest of 16: shift out those that follow the last one. NumPy
        # shifts by 64 and more to zero, or to the sign.
        shift = 8 * (_LONGEST_NUMBER - np.clip(sizes, 1, _LONGEST_NUMBER))
        signed, by = upper.view(np.int64), shift.astype(np.uint64)
        in_one = shift >= 64
        mixed = lower >> by | upper << (np.uint64(64) - by)
        low = np.where(in_one, (signed >> (shift - 64) % 64).view(np.uint64), mixed)
        return low, (signed >> shift).view(np.uint64)

    def _places(self) -> tuple[Int64Array, Int64Array]:
        """Where the bytes of each value start in the data, and how many there are."""
        sizes, offsets = self._halves()
        inline = self._slots >> np.uint64(63) != 0
        short = (self._slots >> np.uint64(56) & np.uint64(0x7F)).astype(np.int64)
        sizes, offsets = np.where(inline, short, sizes), np.where(inline, self._offset, offsets)
        bad = inline & (sizes > LONGEST_INLINE)
        self._refuse(bad, "bytes in a slot", sizes, f"at most {LONGEST_INLINE}")
        self._refuse_beyond(offsets, sizes)
        return self._rows.starts + offsets, sizes

    def _bytes(self, starts: Int64Array, sizes: Int64Array) -> pa.Array:
        sizes = np.where(self._held, sizes, 0)
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        self._limit(int(offsets[-1]))
        content = _gather(self._rows.data, starts, sizes)
        return self._array(pa.binary(), offsets.astype(np.int32), content)

    def _text(self, starts: Int64Array, sizes: Int64Array) -> pa.Array:
        values = self._bytes(starts, sizes)
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid:  # says not which; Python does
            listed = values.to_pylist()
            bad = np.array([not _is_text(value) for value in listed])
            self._refuse(bad, "text", [value and value[:_SHOWN] for value in listed], "UTF-8")
            return self._bytes(starts, sizes).cast(pa.string())

    def _fixed_bytes(self, starts: Int64Array, sizes: Int64Array) -> pa.Array:
        width = self._type.length
        self._refuse(sizes != width, "bytes", sizes, width)
        self._limit(len(sizes) * width)
        content = np.zeros((len(sizes), width), np.uint8)
        held = self._held
        content[held] = _gather(self._rows.data, starts[held], sizes[held]).reshape(-1, width)
        return self._array(self._type.to_arrow(), content)

    def _limit(self, size: int) -> None:
        if size > _MOST_BYTES:
            problem = f"column {self._column}, {self._type}: found {size} bytes"
            raise LimitError(f"{problem}, an array has at most {_MOST_BYTES}")


def _gather(data: UInt8Array, starts: Int64Array, sizes: Int64Array) -> UInt8Array:
    """Byte strings that lie anywhere, one after the other."""
    begins = np.cumsum(sizes) - sizes
    positions = np.repeat(starts - begins, sizes)
    positions += np.arange(len(positions))
    gathered: UInt8Array = data[positions]
    return gathered


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def read_rows(
    rows: Stored | StoredRows, types: Sequence[DataType], *, file: str = "<rows>"
) -> list[pa.Array]:
    """Every column, of the Arrow type that its type stands for.

    A column of a type that has no order (ARRAY, MAP, ROW ...) is passed over: nulls of Arrow's type
    null take its place.

    Args:
        rows: The rows; where there is none, each column is null.
        types: The types of all columns.
        file: Where the rows come from, for errors.

    Raises:
        FormatError: A row too short, a length or offset beyond it, or a value beyond its type.
        LimitError: A column beyond the 2 GiB that an array of its Arrow type holds.

    >>> row = bytes.fromhex("0000000000000000 0700000000000000 6669670000000083")
    >>> types = [DataType("INT"), DataType.parse("STRING")]
    >>> [column.to_pylist() for column in read_rows([row], types)]
    [[7], ['fig']]
    """
    stored = _stored(rows)
    return [
        ColumnReader(stored, number, types, file).read()
        if data_type.root in READABLE
        else pa.nulls(len(stored))
        for number, data_type in enumerate(types)
    ]


def read_column(
    rows: Stored | StoredRows, column: int, types: Sequence[DataType], *, file: str = "<rows>"
) -> pa.Array:
    """One column of rows; arguments and errors are those of `read_rows`.

    Raises:
        UnsupportedError: The column is of a type that has no order.

    >>> row = bytes.fromhex("0001000000000000 0000000000000000")
    >>> read_column([row, None], 0, [DataType("BIGINT")]).to_pylist()
    [None, None]
    """
    _check(column, types)
    return ColumnReader(_stored(rows), column, types, file).read()


class Salvaged(NamedTuple):
    """A column of rows of which some may be damaged."""

    values: pa.Array
    damaged: BoolArray
    """Where something is wrong; the value is null there."""


def salvage_column(rows: Stored | StoredRows, column: int, types: Sequence[DataType]) -> Salvaged:
    """One column of rows, as far as it can be read: for what is a hint, and no answer.

    Raises:
        UnsupportedError: The column is of a type that has no order.
        LimitError: A column beyond the 2 GiB that an array of its Arrow type holds.

    >>> row = bytes.fromhex("0000000000000000 0700000000000000")
    >>> values, damaged = salvage_column([row, row[:9]], 0, [DataType("INT")])
    >>> values.to_pylist(), damaged.tolist()
    ([7, None], [False, True])
    """
    _check(column, types)
    reader = ColumnReader(_stored(rows), column, types, None)
    return Salvaged(reader.read(), reader.damaged)


def _stored(rows: Stored | StoredRows) -> StoredRows:
    return rows if isinstance(rows, StoredRows) else StoredRows.of(rows)


def _check(column: int, types: Sequence[DataType]) -> None:
    if not 0 <= column < len(types):
        raise ColumnError(f"column {column}: the rows have {len(types)}")
    if types[column].root not in READABLE:
        raise UnsupportedError(f"column {column}: {types[column]} has no order and is not read")
