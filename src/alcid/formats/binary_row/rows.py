"""Paimon's binary rows: keys and partitions as bytes, and the hash that its buckets go by.

    null bits   8 bytes for up to 56 columns, then 8 more for every 64; little-endian
                  bits 0 to 7: the kind of the row, 0
                  bit 8 + i: column i is null
    slots       8 bytes a column
    variable    what does not fit into a slot, in the order of the columns; each piece is padded
                with zeros to a multiple of 8 bytes, its offset is counted from the start of the row

What is in a slot, for each type, is in `alcid.formats.binary_row.slots`. The hash of a row is
Murmur3 of all its bytes (`alcid.formats.hashing`).

The key of a row is its primary key without the partition columns, in the order of the primary key.

    BIGINT 1, STRING 'abcdefgh'
    00 00 00 00 00 00 00 00   no nulls
    01 00 00 00 00 00 00 00   1
    08 00 00 00 18 00 00 00   8 bytes at offset 24
    61 62 63 64 65 66 67 68   'abcdefgh'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types as arrow_types

from alcid._arrays import Int32Array, Int64Array, UInt64Array, plain
from alcid.errors import ColumnError, LimitError, UnsupportedError
from alcid.formats import hashing
from alcid.formats.binary_row.slots import INTEGERS, ByteTail, MisfitError, Slots, Tail, read_slots
from alcid.formats.hashing import State
from alcid.types import DataType

Columns: TypeAlias = (
    "Sequence[pa.Array | pa.ChunkedArray] | pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch"
)


def row_columns(
    columns: Columns, types: Sequence[DataType | str] | None
) -> tuple[int, list[RowColumn]]:
    """The number of rows, and the columns of the types given, or else of those that Arrow's mean.

    Raises:
        ColumnError: No columns, columns of different lengths, or not as many types.
        UnsupportedError: Not an Arrow column, or none that a key can have.
    """
    arrays, row_count = _arrays(columns)
    if types is None:
        types = [_type_of(number, array) for number, array in enumerate(arrays)]
    if len(types) != len(arrays):
        raise ColumnError(f"types: found {len(types)}, expected {len(arrays)}")
    parsed = [DataType.parse(kind) if isinstance(kind, str) else kind for kind in types]
    pairs = zip(arrays, parsed, strict=True)
    return row_count, [RowColumn(number, *pair) for number, pair in enumerate(pairs)]


def _arrays(columns: Columns) -> tuple[Sequence[Any], int]:
    if isinstance(columns, pa.Table | pa.RecordBatch):
        return columns.columns, columns.num_rows
    if isinstance(columns, pa.Array | pa.ChunkedArray):
        return [columns], len(columns)
    if not len(columns):
        raise ColumnError("no columns: give a table without any, which has a number of rows")
    for number, array in enumerate(columns):
        if not isinstance(array, pa.Array | pa.ChunkedArray):
            kind = type(array).__name__
            raise UnsupportedError(f"column {number}: found {kind}, expected an Arrow array")
        if len(array) != len(columns[0]):
            lengths = f"found {len(array)} rows, expected {len(columns[0])}"
            raise ColumnError(f"column {number}: {lengths}")
    return columns, len(columns[0])


def _type_of(number: int, array: pa.Array | pa.ChunkedArray) -> DataType:
    try:
        return DataType.from_arrow(array.type)
    except UnsupportedError as error:
        raise UnsupportedError(f"column {number}: {error}") from None


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of binary rows.

    Raises:
        UnsupportedError: No key has such a type, or it does not fit the array.

    >>> RowColumn(1, pa.array([[7]]), DataType.parse("ARRAY<BIGINT>"))
    Traceback (most recent call last):
    alcid.errors.UnsupportedError: column 1: a key cannot be of type ARRAY<BIGINT>
    """

    number: int
    array: pa.Array | pa.ChunkedArray
    data_type: DataType

    def __post_init__(self) -> None:
        if self.data_type.root not in _ARROW_TYPES:
            raise UnsupportedError(
                f"column {self.number}: a key cannot be of type {self.data_type}"
            )
        arrow_type = plain(self.array.slice(0, 0)).type
        if not (_fits(arrow_type, self.data_type) or arrow_types.is_null(arrow_type)):
            raise UnsupportedError(
                f"column {self.number}: Arrow's {arrow_type} cannot be read as {self.data_type}"
            )

    def slots(self, start: int, count: int) -> Slots:
        """The slots of `count` rows from `start` on."""
        array = plain(self.array.slice(start, count))
        if arrow_types.is_null(array.type):
            array = pa.nulls(len(array), self.data_type.to_arrow())
        try:
            return read_slots(array, self.data_type)
        except MisfitError as misfit:
            row = start + misfit.position
            raise UnsupportedError(
                f"column {self.number}: the value of row {row} does not fit {self.data_type}"
            ) from None


_BYTES: Final = (
    *(
        arrow_types.is_string,
        arrow_types.is_large_string,
        arrow_types.is_binary,
        arrow_types.is_large_binary,
    ),
    arrow_types.is_fixed_size_binary,
)
_ARROW_TYPES: Final[dict[str, tuple[Callable[[Any], bool], ...]]] = {
    "BOOLEAN": (arrow_types.is_boolean,),
    **dict.fromkeys(INTEGERS, (arrow_types.is_integer,)),
    "FLOAT": (arrow_types.is_float16, arrow_types.is_float32),
    "DOUBLE": (arrow_types.is_floating,),
    **dict.fromkeys(("CHAR", "VARCHAR", "BINARY", "VARBINARY"), _BYTES),
    "DATE": (arrow_types.is_date,),
    "TIME": (arrow_types.is_time,),
    "TIMESTAMP": (arrow_types.is_timestamp,),
    "TIMESTAMP_LTZ": (arrow_types.is_timestamp,),
    "DECIMAL": (arrow_types.is_decimal, arrow_types.is_integer),
}


def _fits(arrow_type: Any, data_type: DataType) -> bool:
    if not any(is_kind(arrow_type) for is_kind in _ARROW_TYPES[data_type.root]):
        return False
    return data_type.root != "DECIMAL" or getattr(arrow_type, "scale", 0) == data_type.scale


EMPTY_ROW_HASH = -1670924195
"""The hash of the row without columns: the partition of a table that has no partitions."""

_BLOCK = 1 << 14  # the words of so many rows stay in the cache
_LONGEST_ROW = (1 << 31) - 1
_ROW_KIND_BITS = 8


def hash_rows(columns: Columns, types: Sequence[DataType | str] | None = None) -> Int32Array:
    """The hash of every row, without making the rows.

    Args:
        columns: The columns of the key in its order, or the only one. If there may be none, give a
            table, which has a number of rows even so.
        types: Their types, also as Paimon's text; by default those that the Arrow types stand for.

    Raises:
        UnsupportedError: A type that a key cannot have; it is named with its column's number.
        ColumnError: Columns of different lengths, no columns, or not as many types.
        LimitError: A row beyond 2 GiB.

    >>> import pyarrow as pa
    >>> hash_rows([pa.array([1, 2**63 - 1]), pa.array(["a", None])]).tolist()
    [-948407462, -759175849]
    """
    hashes = [block.hashes() for block in _blocks(columns, types)]
    return np.concatenate([np.zeros(0, np.int32), *hashes])


def binary_rows(columns: Columns, types: Sequence[DataType | str] | None = None) -> BinaryRows:
    """Every row as bytes; arguments and errors are those of `hash_rows`.

    >>> import pyarrow as pa
    >>> rows = binary_rows([pa.array([-1], pa.int32())])
    >>> rows[0].hex(" ", 8)
    '0000000000000000 ffffffff00000000'
    """
    words, lengths = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for block in _blocks(columns, types):
        words.append(block.to_words())
        lengths.append(np.broadcast_to(block.length, block.count))
    return BinaryRows(np.concatenate(words), np.concatenate(lengths))


class BinaryRows:
    """Rows as bytes, one after the other.

    Do not make them to get their hashes: `hash_rows` needs neither the time nor the memory.
    """

    def __init__(self, words: UInt64Array, lengths: Int64Array) -> None:
        """Take the words of all rows, and the length of each row in bytes."""
        self._data = words.astype("<u8", copy=False).view(np.uint8)
        self._lengths = lengths
        self._ends = np.cumsum(lengths)

    def __len__(self) -> int:
        return len(self._lengths)

    def __repr__(self) -> str:
        return f"<BinaryRows: {len(self)}, bytes: {len(self._data)}>"

    def __getitem__(self, row: int) -> bytes:
        end = int(self._ends[row])
        return self._data[end - int(self._lengths[row]) : end].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return map(self.__getitem__, range(len(self)))

    def hashes(self) -> Int32Array:
        """The hash of every row.

        >>> import pyarrow as pa
        >>> binary_rows([pa.array(["hello world", "hello"])]).hashes().tolist()
        [161593394, 243722546]
        """
        hashes = np.empty(len(self), np.int32)
        for start in range(0, len(self), _BLOCK):
            part = slice(start, start + _BLOCK)
            lengths = self._lengths[part]
            state = hashing.start(len(lengths))
            _mix_tail(state, ByteTail(self._data, self._ends[part] - lengths, lengths))
            hashes[part] = hashing.finish(state, lengths)
        return hashes


def _blocks(columns: Columns, types: Sequence[DataType | str] | None) -> Iterator[_Block]:
    row_count, parts = row_columns(columns, types)
    for start in range(0, row_count, _BLOCK):
        count = min(_BLOCK, row_count - start)
        yield _Block(count, [part.slots(start, count) for part in parts])


class _Block:
    """Rows that are laid out together."""

    def __init__(self, count: int, columns: Sequence[Slots]) -> None:
        self.count, self.columns = count, columns
        self.null_words = (_ROW_KIND_BITS + len(columns) + 63) // 64
        self.offsets: list[Int64Array | int] = []
        """Where the variable part of each column begins in each row, or in all."""
        end: Int64Array | int = 8 * (self.null_words + len(columns))
        for column in columns:
            self.offsets.append(end)
            end = end + column.tail.reserved
        self.length = end
        """Of each row, or of all."""
        if np.max(end) > _LONGEST_ROW:
            raise LimitError(f"a row has at most {_LONGEST_ROW} bytes, found {np.max(end)}")

    def hashes(self) -> Int32Array:
        """The hash of every row."""
        state = self._after_null_bits()
        for slots in self._slots():
            hashing.mix(state, slots)
        for column in self.columns:
            _mix_tail(state, column.tail)
        return hashing.finish(state, self.length)

    def to_words(self) -> UInt64Array:
        """The rows themselves."""
        lengths = np.broadcast_to(self.length, self.count)
        begins = np.cumsum(lengths) - lengths >> 3
        rows = np.zeros(int(lengths.sum()) >> 3, np.uint64)
        for number, words in enumerate((*self._null_bits(), *self._slots())):
            rows[begins + number] = words
        for column, offset in zip(self.columns, self.offsets, strict=True):
            positions = begins + (np.asarray(offset) >> 3)
            for chosen, index, words in column.tail.words():
                rows[positions[chosen] + index] = words
            for row, index, data in column.tail.rest():
                rest = np.frombuffer(data, "<u8")
                rows[positions[row] + index :][: len(rest)] = rest
        return rows

    def _after_null_bits(self) -> State:
        if any(column.nulls is not None for column in self.columns):
            state = hashing.start(self.count)
            for bits in self._null_bits():
                hashing.mix(state, bits)
            return state
        state = hashing.start(1)  # the same in every row
        for _ in range(self.null_words):
            hashing.mix(state, np.zeros(1, np.uint64))
        return np.repeat(state, self.count)

    def _null_bits(self) -> UInt64Array:
        """The words before the slots."""
        words = np.zeros((self.null_words, self.count), np.uint64)
        for number, column in enumerate(self.columns):
            if column.nulls is not None:
                word, bit = divmod(_ROW_KIND_BITS + number, 64)
                words[word] |= column.nulls.astype(np.uint64) << np.uint64(bit)
        return words

    def _slots(self) -> Iterator[UInt64Array]:
        """The slots of each column, with the offsets of the variable part."""
        for column, offset in zip(self.columns, self.offsets, strict=True):
            reserved = column.tail.reserved
            if np.any(reserved):
                offsets = np.asarray(offset, np.uint64) << np.uint64(32)
                yield column.fixed | np.where(np.asarray(reserved) > 0, offsets, np.uint64(0))
            else:
                yield column.fixed


def _mix_tail(state: State, tail: Tail) -> None:
    for rows, _, words in tail.words():
        mixed = state[rows]
        hashing.mix(mixed, words)
        state[rows] = mixed
    for row, _, data in tail.rest():
        state[row] = hashing.mix_bytes(int(state[row]), data)
