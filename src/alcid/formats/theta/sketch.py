"""Theta sketches: how many distinct values a column holds, from a few thousand hashes.

A hash is a number of 63 bits. A sketch keeps every distinct hash that it met below a bound, theta,
and lowers theta when they become many: the fraction of the hashes that are kept is then known, and
the count of all follows. Sketches of parts of a table can be united, as those of whole tables can:
which hashes are the lowest does not depend on their order, so they keep what one sketch of the
whole would keep.

Iceberg builds one sketch for each task by the Alpha rule, unites them one by one, and stores the
result in Puffin, as type apache-datasketches-theta-v1. The bytes here are the same, provided that
the tasks and the order of their rows are.

What is hashed is Iceberg's serialisation of single values:

    boolean                  1 byte, 00 or 01
    int, date                4 bytes, little-endian; a date is the days since 1970
    long, time, timestamp    8 bytes, little-endian; time is microseconds, and timestamp,
                             or nanoseconds, if Arrow has it in those
    float, double            4 or 8 bytes, little-endian: their bits
    decimal                  the unscaled number, big-endian, in as few bytes as hold it
    string                   UTF-8
    uuid, fixed, binary      as they are

An integer of less than 32 bits is an int. An unsigned one is of the next wider type, a 64-bit one
decimal(20, 0). Nulls, and strings and binaries of no bytes, are left out: sketches do not count
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from alcid._arrays import DAY_IN_MILLIS, UInt64Array, least_bytes, plain
from alcid.errors import UnsupportedError, require
from alcid.formats.hashing import ByteValues, murmur
from alcid.formats.source import BytesSource, Section
from alcid.formats.theta.compact import (
    MAX_THETA,
    CompactTheta,
    decode,
    encode,
)
from alcid.types import DataType

if TYPE_CHECKING:
    pass

NOMINAL_ENTRIES = 4096
"""How many hashes a sketch aims to keep, in Iceberg."""

_FIRST_UNION_BLOCK, _UNION_BLOCK = 1 << 14, 1 << 16


def lowest_hashes(
    parts: Iterable[UInt64Array], nominal_entries: int = NOMINAL_ENTRIES
) -> CompactTheta:
    """The k lowest distinct hashes of all parts; theta is the next one, if there is any.

    >>> parts = np.array([9, 5, 9], np.uint64), np.array([7, 5, 8, 0], np.uint64)
    >>> kept = lowest_hashes(parts, nominal_entries=2)
    >>> kept.hashes.tolist(), kept.theta
    ([5, 7], 8)
    """
    lowest = CompactTheta(MAX_THETA, np.empty(0, np.uint64))
    size = _FIRST_UNION_BLOCK  # small at first, while theta is high: few of the others are below it
    for hashes in parts:
        start = 0
        while start < len(hashes):
            block = hashes[start : start + size]
            below = block[block < np.uint64(lowest.theta)]
            if len(below):
                lowest = unite(lowest, CompactTheta(lowest.theta, below), nominal_entries)
            start, size = start + size, _UNION_BLOCK
    return lowest


def unite(
    first: CompactTheta, second: CompactTheta, nominal_entries: int = NOMINAL_ENTRIES
) -> CompactTheta:
    """All hashes below the lower theta, in whatever order; if there are more than k, the k lowest.

    Theta is then the lowest hash that is left out.
    """
    theta = min(first.theta, second.theta)
    hashes = np.sort(np.concatenate((first.hashes, second.hashes)))
    hashes = hashes[: np.searchsorted(hashes, np.uint64(theta))]
    hashes = hashes[np.diff(hashes, prepend=np.uint64(0)) > 0]
    if len(hashes) > nominal_entries:
        theta, hashes = int(hashes[nominal_entries]), hashes[:nominal_entries]
    return CompactTheta(theta, hashes)


_PIECE = 1 << 20  # rows that are brought to bytes at once, so that a large column needs little
_SERIALIZED: Final[dict[str, Any]] = {
    "BOOLEAN": pa.uint8(),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), pa.int32()),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.int32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
}


def single_values(array: pa.Array | pa.ChunkedArray) -> Iterator[ByteValues]:
    """The serialised values of a column, in the order of its rows, in pieces.

    Within a piece, a value of a dictionary may stand once only, where it occurs first.

    Raises:
        UnsupportedError: A type that is not one of Iceberg's primitive types, or a value that its
            type in Iceberg cannot hold.

    >>> from decimal import Decimal
    >>> (values,) = single_values(pa.array([Decimal("14.20"), None, Decimal("-1.28")]))
    >>> [
    ...     values.data[start : start + length].tobytes().hex()
    ...     for start, length in zip(values.starts, values.lengths)
    ... ]
    ['058c', '80']
    """
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        raise UnsupportedError(f"expected an Arrow array, found {type(array).__name__}")
    if pa.types.is_null(array.type):
        return
    data_type = DataType.from_arrow(array.type)
    if data_type.children:
        raise UnsupportedError(f"distinct values of {data_type} cannot be counted")
    if (
        isinstance(array, pa.ChunkedArray)
        and 0 < len(array) < _PIECE * (array.num_chunks - 1)
        and not pa.types.is_dictionary(array.type)  # each chunk may have its own
    ):
        array = array.combine_chunks()  # small ones cost more to go through than to copy
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        for start in range(0, len(chunk), _PIECE):
            piece = chunk.slice(start, _PIECE)
            if pa.types.is_dictionary(piece.type):
                piece = piece.unique()
            piece = plain(piece).drop_null()
            if len(piece):
                yield _serialize(piece, data_type)


def _serialize(array: pa.Array, data_type: DataType) -> ByteValues:
    """The values of an array without nulls, of the type `data_type`."""
    match data_type.root:
        case "VARCHAR" | "VARBINARY":
            values = ByteValues.of(array.cast(pa.large_binary()))
            lengths = np.asarray(values.lengths)
            counted = lengths > 0
            if counted.all():
                return values
            return ByteValues(values.data, np.asarray(values.starts)[counted], lengths[counted])
        case "BINARY":
            return _fixed(array)
        case "DECIMAL":
            decimals = pa.decimal128(data_type.precision, data_type.scale)
            return decimal_values(_cast(array, decimals))
        case "TIMESTAMP" | "TIMESTAMP_LTZ" if array.type.unit == "ns":
            return _fixed(array)
        case "DATE" if pa.types.is_date64(array.type):
            array = pa.array(array.view(pa.int64()).to_numpy() // DAY_IN_MILLIS)
    # A time of day is never negative, so cutting its nanoseconds off rounds it down.
    return _fixed(_cast(array, _SERIALIZED[data_type.root], safe=data_type.root != "TIME"))


def _cast(array: pa.Array, arrow_type: pa.DataType, *, safe: bool = True) -> pa.Array:
    try:
        return array.cast(arrow_type, safe=safe)
    except pa.ArrowInvalid as error:
        raise UnsupportedError(f"a value does not fit its type in Iceberg: {error}") from None


def _fixed(array: pa.Array) -> ByteValues:
    """The values of an array of fixed width, where they lie."""
    width = array.type.bit_width // 8
    start, end = array.offset * width, (array.offset + len(array)) * width
    data = np.frombuffer(array.buffers()[1], np.uint8)[start:end]
    return ByteValues(data, range(0, len(data), width), width)


def decimal_values(array: pa.Array) -> ByteValues:
    """Decimals of 128 bits, none of them null, as single values.

    They are the unscaled numbers, big-endian, without the bytes that only repeat the sign.
    """
    words = np.frombuffer(array.buffers()[1], np.uint64)
    words = words[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)
    lengths = least_bytes(words[:, 0], words[:, 1])
    data = words[:, ::-1].astype(">u8").view(np.uint8).reshape(-1)
    return ByteValues(data, np.arange(16, 16 * len(words) + 16, 16) - lengths, lengths)


_FIRST_BLOCK, _BLOCK = 1 << 12, 1 << 16
_MAX_AS_FLOAT = 2.0**63


class ThetaSketch:
    """A count of distinct values, estimated within about 1.6 % (standard error).

    Up to 4096 values the count is exact, but for two values of one hash. Nulls are not counted,
    nor are empty strings and binaries. Do not use it where values are deleted: nothing can be taken
    out of a sketch.

    >>> cities = ThetaSketch().update(pa.array(["Graz", "Linz", None, "Graz", ""]))
    >>> cities
    <ThetaSketch: 2 distinct values, 2 hashes>
    >>> more = cities.union(ThetaSketch().update(pa.array(["Graz", "Wien"])))
    >>> more.ndv
    3
    >>> ThetaSketch.from_bytes(more.to_bytes()) == more
    True
    """

    __slots__ = ("_alpha", "_kept")
    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(self) -> None:
        """Start empty, to be updated by the Alpha rule."""
        self._alpha: AlphaRule | None = AlphaRule()
        self._kept: CompactTheta | None = None  # of the Alpha rule, when it is asked for

    def update(self, array: pa.Array | pa.ChunkedArray) -> ThetaSketch:
        """Count the values of a column in, in place, and return the sketch.

        A sketch that came from `union` or `from_bytes` has no Alpha rule to go on with: `array`
        gets a sketch of its own, which is united with this one. To have Iceberg's bytes, update
        one new sketch with all rows of a task, in as many calls as they come in, and then unite.

        Args:
            array: Of any of Iceberg's primitive types, in any of Arrow's encodings. Only its type
                decides what is hashed: 1 as int and 1 as long are two values.

        Raises:
            UnsupportedError: A nested type, or one that Iceberg does not have. Or a value that its
                type in Iceberg cannot hold; rows before it may be counted by then.
        """
        if self._alpha is None:
            self._kept = unite(self._compact, ThetaSketch().update(array)._compact)
            return self
        self._kept = None
        for values in single_values(array):
            self._alpha.add(murmur(values) >> np.uint64(1))
        return self

    @classmethod
    def of(cls, array: pa.Array | pa.ChunkedArray) -> ThetaSketch:
        """The sketch of a column by its lowest hashes, whatever their order.

        It takes a third of the time of `update`. United with others of its sort it becomes what
        Iceberg stores of a table that several tasks have read, each of many values; if there was
        one task, Iceberg's has another theta.

        >>> ThetaSketch.of(pa.array(["Graz", "Linz", None, "Graz", ""]))
        <ThetaSketch: 2 distinct values, 2 hashes>

        Raises:
            UnsupportedError: As `update`.
        """
        return _sketch(
            lowest_hashes(murmur(values) >> np.uint64(1) for values in single_values(array))
        )

    def union(self, other: ThetaSketch) -> ThetaSketch:
        """A new sketch of the values of both.

        Iceberg stores `ThetaSketch().union(task)` for one task, and for several
        `ThetaSketch().union(first).union(second)` and so on.
        """
        return _sketch(unite(self._compact, require(other, ThetaSketch, "union")._compact))

    def __or__(self, other: ThetaSketch) -> ThetaSketch:
        """The same as `union`."""
        return self.union(other)

    @property
    def estimate(self) -> float:
        """How many distinct values there are, about."""
        return len(self) * (_MAX_AS_FLOAT / self._compact.theta)

    @property
    def ndv(self) -> int:
        """The estimate, cut to an integer as Iceberg does for the property `ndv` of a blob."""
        return int(self.estimate)

    @property
    def theta(self) -> float:
        """The share of all hashes that would be kept: above 0, and 1.0 while none was left out."""
        return self._compact.theta / _MAX_AS_FLOAT

    @property
    def hashes(self) -> UInt64Array:
        """The hashes that are kept, ascending."""
        return self._compact.hashes.copy()

    def to_bytes(self) -> bytes:
        """The compact form that Iceberg stores (`alcid.formats.theta.compact`).

        >>> ThetaSketch().to_bytes().hex()
        '01030300001e0000'
        """
        return encode(self._compact)

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, *, name: str = "<bytes>"
    ) -> ThetaSketch:
        """Read a compact sketch, of version 3 or 4, by whatever writer.

        Raises:
            FormatError: Bytes that are not a compact sketch; it calls them `name`.
        """
        return _sketch(decode(Section(BytesSource(data, name))))

    @property
    def _compact(self) -> CompactTheta:
        if self._kept is None:
            self._kept = (self._alpha or AlphaRule()).kept()
        return self._kept

    def __len__(self) -> int:
        """How many hashes are kept."""
        return len(self._compact.hashes)

    def __eq__(self, other: object) -> bool:
        """Whether both keep the same hashes below the same theta."""
        if not isinstance(other, ThetaSketch):
            return NotImplemented
        mine, others = self._compact, other._compact
        return mine.theta == others.theta and np.array_equal(mine.hashes, others.hashes)

    def __repr__(self) -> str:
        about = "about " if self._compact.theta < MAX_THETA else ""
        return f"<ThetaSketch: {about}{self.ndv} distinct values, {len(self)} hashes>"

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as bytes; a sketch that follows the Alpha rule goes on with it."""
        return _restore, (self.to_bytes(), self._alpha is not None)


def _sketch(compact: CompactTheta) -> ThetaSketch:
    """A sketch without the Alpha rule."""
    sketch = ThetaSketch()
    sketch._alpha, sketch._kept = None, compact
    return sketch


def _restore(data: bytes, follows_alpha: bool) -> ThetaSketch:
    sketch = ThetaSketch.from_bytes(data)
    if follows_alpha:
        sketch._alpha = AlphaRule(sketch._compact)
    return sketch


class AlphaRule:
    """Which hashes a sketch keeps of those that arrive one after the other.

    A hash below theta that is new is accepted. As soon as more than k were, each one accepted
    lowers theta by the factor k / (k + 1). So theta depends on the order of the hashes, and what
    is kept depends on theta only: all hashes below it.
    """

    def __init__(
        self, start: CompactTheta | None = None, nominal_entries: int = NOMINAL_ENTRIES
    ) -> None:
        """Start empty, or go on from what such a rule kept."""
        self._theta = start.theta if start else MAX_THETA
        self._accepted: set[int] = set(start.hashes.tolist()) if start else set()
        self._nominal = nominal_entries
        self._factor = nominal_entries / (nominal_entries + 1)

    def add(self, hashes: UInt64Array) -> None:
        """Take hashes in the order in which they arrive."""
        start, size = 0, _FIRST_BLOCK  # small at first, while theta is high and falls
        while start < len(hashes):
            block = hashes[start : start + size]
            below = block[block < np.uint64(self._theta)]
            if len(below):  # Arrow's `unique` keeps the order of first occurrences
                self._accept(pa.array(below).unique().to_numpy().tolist())
            start, size = start + size, min(2 * size, _BLOCK)

    def _accept(self, hashes: list[int]) -> None:
        theta, accepted, nominal = self._theta, self._accepted, self._nominal
        estimating = theta < MAX_THETA
        for value in hashes:
            if 0 < value < theta and value not in accepted:
                accepted.add(value)
                if estimating or len(accepted) > nominal:
                    estimating = True
                    theta = int(theta * self._factor)
        self._theta = theta
        if len(accepted) > 4 * nominal:  # most of them are above theta by now
            self._accepted = {value for value in accepted if value < theta}

    def kept(self) -> CompactTheta:
        """The hashes below theta."""
        accepted = np.fromiter(self._accepted, np.uint64, len(self._accepted))
        return CompactTheta(self._theta, np.sort(accepted[accepted < np.uint64(self._theta)]))
