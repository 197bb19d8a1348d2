"""Thrift's compact protocol, read only: as much of it as Parquet's metadata needs.

A struct is a run of fields, each a header and a value, and ends with the byte 0.

    header   u4 how far the field's number is above the last one | u4 kind
             if it is not above by 1 to 15: u4 0 | u4 kind, then the number as a zigzag varint
    kinds    1 true  2 false  3 byte  4, 5, 6 zigzag varint (i16, i32, i64)  7 double
             8 varint length, bytes  9 list, 10 set: u4 count (15: a varint follows) | u4 kind
             11 map: varint count, u4 kind | u4 kind  12 struct

Structs become dicts by field number, so that fields of later versions do no harm. Long lists of
structs are only split where most of their structs are never looked at: see `Lazy`.

Page locations and page headers are mostly varints, which `read_varints` decodes with NumPy. A field
header is a byte below 0x80, so it reads as a varint, too, and a struct of numbers is a run of
varints of a known length. A page location, for one:

    16 offset  15 size  16 first row  00
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np

from alcid._arrays import Int64Array, UInt8Array
from alcid.errors import FormatError

Struct = dict[int, Any]
"""A struct: its values by field number. A list is a list, bytes are bytes."""
Choice: TypeAlias = "Mapping[int, Choice | Lazy | None]"
"""The fields that are wanted, and those of the structs in them; None for all."""
AS_STORED: Choice = MappingProxyType({})
"""For a field that is wanted as the bytes it has, to be read later; compared by identity."""


class Lazy(NamedTuple):
    """For a field that is a list of structs, each to be parsed when it is looked at."""

    fields: Choice
    """Those that are wanted of each struct."""
    regular: re.Pattern[bytes]
    """Matches the bytes of an ordinary struct, to pass over it six times as fast as in Python."""


_T = TypeVar("_T")
_MOST_NESTED = 32  # Parquet's metadata nests 8 deep, a hostile file as deep as it is long
_TRUE, _FALSE, _I16, _I64, _BINARY, _LIST, _STRUCT = 1, 2, 4, 6, 8, 9, 12
_SKIPPED = (4, 5, 6, 8, 12)  # elements that `_skip` knows; a bool is another thing in a list


def get(values: Struct, number: int, kind: type[_T], default: _T | None = None, *, file: str) -> _T:
    """A field of a struct, of the kind that it must have.

    >>> get({1: 5}, 1, int, file="a"), get({1: 5}, 2, bytes, b"", file="a")
    (5, b'')

    Raises:
        FormatError: It is missing and has no default, or is of another kind.
    """
    value = values.get(number, default)
    if type(value) is not kind:
        raise FormatError(
            f"bad field {number} in the metadata",
            file=file,
            found="nothing" if value is None else type(value).__name__,
            expected=kind.__name__,
        )
    return value


class StructReader:
    """Reads structs from bytes that lie at `offset` of the file `name`.

    >>> StructReader(bytes.fromhex("15 c8 01 18 02 6f 6b 00")).struct()
    {1: 100, 2: b'ok'}
    """

    __slots__ = ("_data", "_name", "_offset", "position")

    def __init__(self, data: bytes, *, name: str = "<bytes>", offset: int = 0) -> None:
        """Begin at the first byte of `data`."""
        self._data, self._name, self._offset = data, name, offset
        self.position = 0

    def struct(self, wanted: Choice | None = None) -> Struct:
        """The struct at the position, which moves behind it.

        Args:
            wanted: Other fields than these are passed over, which takes half of the time; numbers
                of one byte may be there all the same.

        Raises:
            FormatError: It is no struct, or does not end within the bytes.
        """
        try:
            return self._struct(0, wanted)
        except IndexError:
            raise self._error("truncated metadata", len(self._data)) from None

    def spans(self, number: int) -> list[bytes]:
        """The bytes of each struct in the list that is field `number` of the struct here.

        They can be put into another list as they are. The position stays where it is.
        """
        return [self._data[begin:end] for begin, end in self.ranges(number)]

    def ranges(self, number: int) -> list[tuple[int, int]]:
        """Where each of these structs begins and ends; each begins where the one before ends."""
        begin = self.position
        ranges: list[tuple[int, int]] = []
        try:
            if self._seek(number):
                for _ in range(self._list_head()[0]):
                    start = self.position
                    self._struct(0)
                    ranges.append((start, self.position))
        except IndexError:
            raise self._error("truncated metadata", len(self._data)) from None
        self.position = begin
        return ranges

    def _seek(self, number: int) -> bool:
        """Move to the value of a field that is a list of structs; False if there is none."""
        current = 0
        while (head := self._data[self.position]) != 0:
            self.position += 1
            current = current + (head >> 4) if head >> 4 else self._zigzag()
            if current == number and head & 15 == 9 and self._data[self.position] & 15 == _STRUCT:
                return True
            self._value(head & 15, 0)
        return False

    def _struct(self, depth: int, wanted: Choice | None = None) -> Struct:
        data, position = self._data, self.position
        values: Struct = {}
        number = 0
        while (head := data[position]) != 0:
            position += 1
            kind = head & 15
            if head >> 4:
                number += head >> 4
            else:
                self.position = position
                number = self._zigzag()
                position = self.position
            # Most values are numbers of one byte: a call for each would take half of the time.
            if _I16 <= kind <= _I64 and (value := data[position]) < 0x80:
                position += 1
                values[number] = (value >> 1) ^ -(value & 1)
                continue
            self.position = position
            if wanted is None:
                values[number] = self._value(kind, depth)
            elif number in wanted:
                inside = wanted[number]
                if inside is AS_STORED:
                    self._skip(kind, depth)
                    values[number] = data[position : self.position]
                elif isinstance(inside, Lazy):
                    values[number] = self._split(kind, depth, inside)
                else:
                    values[number] = self._value(kind, depth, inside)
            else:
                self._skip(kind, depth)
            position = self.position
        self.position = position + 1
        return values

    def _split(self, kind: int, depth: int, lazy: Lazy) -> Any:
        """Find where the structs of a list begin, and pass over them."""
        if kind != _LIST or self._data[self.position] & 15 != _STRUCT:
            return self._value(kind, depth, lazy.fields)
        data, match = self._data, lazy.regular.match
        count, _ = self._list_head()
        position = self.position
        starts: list[int] = []
        irregular: list[int] = []
        for number in range(count):
            starts.append(position)
            matched = match(data, position)
            if matched is not None:
                position = matched.end()
            else:
                irregular.append(number)
                self.position = position
                self._skip(_STRUCT, depth + 1)
                position = self.position
        self.position = position
        return LazyStructs(self, lazy.fields, starts, irregular)

    def _skip(self, kind: int, depth: int) -> None:
        """Pass over a value; behind the end of the bytes, the next read shows it."""
        data = self._data
        if kind == _BINARY:
            length = self._varint()
            self.position += length
        elif _I16 <= kind <= _I64:
            position = self.position
            while data[position] >= 0x80:
                position += 1
            self.position = position + 1
        elif kind == _STRUCT and depth < _MOST_NESTED:
            position = self.position
            while (head := data[position]) != 0:
                position += 1
                inner = head & 15
                if not head >> 4:
                    self.position = position
                    self._zigzag()
                    position = self.position
                if inner == _BINARY and data[position] < 0x80:
                    position += 1 + data[position]
                elif _I16 <= inner <= _I64 and data[position] < 0x80:
                    position += 1
                elif inner > _FALSE:
                    self.position = position
                    self._skip(inner, depth + 1)
                    position = self.position
            self.position = position + 1
        elif kind == _LIST and data[self.position] & 15 in _SKIPPED and depth < _MOST_NESTED:
            count, element = self._list_head()
            for _ in range(count):
                self._skip(element, depth + 1)
        else:
            self._value(kind, depth)

    def _value(self, kind: int, depth: int, wanted: Choice | None = None) -> Any:
        if kind > _BINARY and depth >= _MOST_NESTED:
            raise self._error(
                "metadata nested too deep", self.position, None, f"up to {_MOST_NESTED}"
            )
        match kind:
            case 4 | 5 | 6:
                return self._zigzag()
            case 8:
                return self._bytes(self._varint())
            case 12:
                return self._struct(depth + 1, wanted)
            case 9 | 10:
                count, element = self._list_head()
                if element == _STRUCT and depth + 1 < _MOST_NESTED:
                    return [self._struct(depth + 2, wanted) for _ in range(count)]
                return [self._element(element, depth + 1) for _ in range(count)]
            case 1 | 2:
                return kind == _TRUE
            case 3:
                return self._bytes(1)[0]
            case 7:
                return struct.unpack("<d", self._bytes(8))[0]
            case 11:
                return self._map(depth + 1)
            case _:
                raise self._error("unknown kind of field", self.position - 1, kind, "1 to 12")

    def _list_head(self) -> tuple[int, int]:
        begin = self.position
        head = self._bytes(1)[0]
        count = self._varint() if head >> 4 == 15 else head >> 4
        self._check_count(count, begin)
        return count, head & 15

    def _map(self, depth: int) -> list[tuple[Any, Any]]:
        begin = self.position
        count = self._varint()
        self._check_count(count, begin)
        kinds = self._bytes(1)[0] if count else 0
        return [
            (self._element(kinds >> 4, depth), self._element(kinds & 15, depth))
            for _ in range(count)
        ]

    def _check_count(self, count: int, begin: int) -> None:
        left = len(self._data) - self.position
        if count > left:  # no element is shorter than a byte
            raise self._error("more elements than bytes", begin, count, f"up to {left}")

    def _element(self, kind: int, depth: int) -> Any:
        """As a field's value, but a bool is a byte of its own."""
        if kind in (_TRUE, _FALSE):
            return self._bytes(1)[0] == _TRUE
        return self._value(kind, depth)

    def _bytes(self, length: int) -> bytes:
        begin, left = self.position, len(self._data) - self.position
        if length > left:
            raise self._error("truncated metadata", begin, f"{left} bytes", length)
        self.position = begin + length
        return self._data[begin : self.position]

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        begin = position = self.position
        value = shift = 0
        while (byte := self._data[position]) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            position += 1
            if shift > 63:
                raise self._error("number of more than 64 bits", begin)
        value |= byte << shift
        if value >> 64:
            raise self._error("number of more than 64 bits", begin)
        self.position = position + 1
        return value

    def _error(
        self, problem: str, position: int, found: object = None, expected: object = None
    ) -> FormatError:
        return FormatError(
            problem,
            file=self._name,
            offset=self._offset + position,
            found=found,
            expected=expected,
        )


class LazyStructs(Sequence[Struct]):
    """A list of structs, each parsed on demand."""

    def __init__(
        self, reader: StructReader, fields: Choice, starts: list[int], irregular: list[int]
    ) -> None:
        """For `StructReader`."""
        self._data, self._name, self._offset = reader._data, reader._name, reader._offset
        self._fields, self._starts = fields, starts
        self.irregular: Sequence[int] = irregular
        """The positions of the structs that are not as `Lazy.regular` has them."""

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, number: int) -> Struct: ...
    @overload
    def __getitem__(self, number: slice) -> list[Struct]: ...
    def __getitem__(self, number: int | slice) -> Struct | list[Struct]:
        """The struct of this number.

        Raises:
            FormatError: It is damaged.
        """
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        reader = StructReader(self._data, name=self._name, offset=self._offset)
        reader.position = self._starts[number]
        return reader.struct(self._fields)


_MOST_BYTES = 9  # 63 bits, which an int64 holds; Parquet's offsets, sizes and rows are no larger


def read_varints(data: UInt8Array, starts: Int64Array, counts: Int64Array) -> Int64Array:
    """The `counts[i]` varints from `starts[i]` on, for each i, one after the other.

    A varint of more than 63 bits, or one that does not end within the data, becomes -1.

    >>> data = np.frombuffer(bytes.fromhex("05 ac02 00 7f"), np.uint8)
    >>> read_varints(data, np.array([0, 4]), np.array([2, 1])).tolist()
    [5, 300, 127]
    """
    ends = np.flatnonzero(data < 0x80)
    firsts = np.cumsum(counts) - counts
    order = np.repeat(np.searchsorted(ends, starts) - firsts, counts) + np.arange(counts.sum())
    whole = order < len(ends)
    order[~whole] = 0
    if not len(ends):
        return np.full(len(order), -1)
    stops = ends[order]
    begins = ends[order - 1] + 1
    begins[firsts[counts > 0]] = starts[counts > 0]
    lengths = stops - begins + 1
    values = np.zeros(len(order), np.int64)
    for number in range(min(int(lengths.max(initial=0)), _MOST_BYTES)):
        longer = lengths > number
        part = data[begins[longer] + number].astype(np.int64) & 0x7F
        values[longer] |= part << (7 * number)
    values[~whole | (lengths > _MOST_BYTES)] = -1
    return values


def unzigzag(values: Int64Array) -> Int64Array:
    """Signed numbers from the form in which small ones of either sign are short.

    >>> unzigzag(np.array([0, 1, 2, 3])).tolist()
    [0, -1, 1, -2]
    """
    return (values >> 1) ^ -(values & 1)


def varint(value: int) -> bytes:
    """The bytes of one number that is not negative.

    >>> varint(300).hex()
    'ac02'
    """
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
