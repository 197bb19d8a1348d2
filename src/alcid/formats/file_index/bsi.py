"""Paimon's bsi index (bit-sliced, deprecated there): rows of any range of numbers.

    u8 version 1 | i32 rows | u8 has values >= 0 [| part] | u8 has values < 0 [| part]
    part, of absolute values:
      u8 version 1 | i64 min | i64 max | existence bitmap | i32 slices | slices

Bitmaps state no length, so the payload is read whole. The minimum is always written as 0.

Answers equality, IN, ranges and null, with rows. Prefer range-bitmap, which also takes text and
floats, answers top-n and reads only the slices it needs; it is larger for many distinct numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from pyroaring import BitMap

from alcid._arrays import IntArray, UInt32Array
from alcid.errors import UnsupportedError
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.file_index.bit_slices import BitSlices, serialize_presence, serialize_slices
from alcid.formats.file_index.keys import Key, KeyColumn, KeyType
from alcid.formats.file_index.reader import IndexReader, Selection
from alcid.formats.roaring import parse
from alcid.formats.source import Section

_VERSION = 1
_LEAST = -(1 << 63)


def build(column: KeyColumn) -> bytes:
    """Build the index. It cannot hold -2^63, whose absolute value does not fit."""
    keys: IntArray = column.keys.astype(np.int64)
    if len(keys) and keys.min() == _LEAST:
        row = int(column.key_rows[int(keys.argmin())])
        raise UnsupportedError(
            f"a bsi index cannot hold {_LEAST}, found in row {row}: use range-bitmap"
        )
    writer = Writer().u8(_VERSION).i32(column.row_count)
    for chosen in (keys >= 0, keys < 0):
        writer.u8(bool(chosen.any()))
        if chosen.any():
            _write_part(writer, column, chosen, np.abs(keys))
    return writer.to_bytes()


def _write_part(writer: Writer, column: KeyColumn, chosen: IntArray, absolute: IntArray) -> None:
    values = np.where(chosen, absolute, 0)
    largest = int(values.max())
    width = next(width for width in (1, 2, 4, 8) if largest.bit_length() <= 8 * width)
    slices = serialize_slices(column.spread(values.astype(f"u{width}")), largest.bit_length())
    writer.u8(_VERSION).i64(0, largest).raw(serialize_presence(column.spread(chosen)))
    writer.i32(len(slices)).raw(b"".join(slices))


class BsiPart:
    """The values of one sign, by their absolutes."""

    def __init__(self, cursor: Cursor, data: memoryview, row_count: int) -> None:
        """Read the part under the cursor, which is left behind it; `data` is the payload."""
        section = cursor.section
        self.start = at = cursor.position
        self.extents: list[tuple[int, int]] = []
        """Offset and length of the bitmaps: that of existence first, then the slices."""
        cursor.version("bsi part", _VERSION)
        self.min, self.max = cursor.i64(), cursor.i64()
        if not 0 <= self.min <= self.max:
            raise section.error("minimum and maximum not in order", at, found=(self.min, self.max))

        def bitmap() -> BitMap:
            start = cursor.position
            rows, length = parse(section, start, data[start:], row_count)
            cursor.skip(length)
            self.extents.append((start, length))
            return rows

        self.existing = bitmap()
        span = (self.max - self.min).bit_length()
        count = cursor.count("slice count", span)
        if count != span:
            raise section.error("bad slice count", cursor.position - 4, found=count, expected=span)
        loaded = [bitmap() for _ in range(count)]
        self.slices = BitSlices(count, lambda: self.existing, loaded.__getitem__)

    def between(self, begin: int | None, end: int | None) -> BitMap:
        """Rows with `begin <= absolute < end`."""
        low = 0 if begin is None else max(begin - self.min, 0)
        high = None if end is None or end > self.max else end - self.min
        return self.slices.between(low, high)

    def one_of(self, absolutes: Sequence[int]) -> BitMap:
        """Rows with one of these ascending absolutes."""
        return self.slices.one_of([absolute - self.min for absolute in absolutes])


class BsiReader(IndexReader):
    """Reads the payload whole when it is first asked."""

    def __init__(self, section: Section, key_type: KeyType) -> None:  # noqa: ARG002
        """Read the head of the payload `section`; keys are integers, whatever the type."""
        self._section = section
        cursor = Cursor(section, window=5)
        cursor.version("bsi", _VERSION)
        self.row_count = cursor.count("row count")

    @cached_property
    def parts(self) -> tuple[BsiPart | None, BsiPart | None]:
        """The values that are not negative, and those that are, if there are any."""
        section = self._section
        payload = section.read(0, section.length)
        cursor, data = Cursor.over(section, payload, 5), memoryview(payload)
        positive = BsiPart(cursor, data, self.row_count) if cursor.flag("positive part") else None
        negative = BsiPart(cursor, data, self.row_count) if cursor.flag("negative part") else None
        if cursor.position != section.length:
            raise section.error(
                "bytes behind the index",
                cursor.position,
                found=section.length - cursor.position,
                expected=0,
            )
        if positive and negative and not positive.existing.isdisjoint(negative.existing):
            raise section.error("rows that are both positive and negative", 5)
        return positive, negative

    @property
    def min(self) -> int | None:
        """A lower bound of the values; None without values."""
        positive, negative = self.parts
        return -negative.max if negative else positive.min if positive else None

    @property
    def max(self) -> int | None:
        """An upper bound of the values; None without values."""
        positive, negative = self.parts
        return positive.max if positive else -negative.min if negative else None

    @property
    def slice_counts(self) -> tuple[int, int]:
        """Slices of the positive and of the negative part."""
        positive, negative = self.parts
        return (positive.slices.count if positive else 0, negative.slices.count if negative else 0)

    @cached_property
    def _existing(self) -> BitMap:
        return BitMap().union(*(part.existing for part in self.parts if part))

    def contents(self) -> tuple[UInt32Array, IntArray]:
        """Every row that has a value, and the values.

        Raises:
            FormatError: A value is not within the bounds of its part.
        """
        parts = [(np.zeros(0, np.uint32), np.zeros(0, np.int64))]
        for part, sign in zip(self.parts, (1, -1), strict=True):
            if part is not None:
                rows, codes = part.slices.codes()
                if len(codes) and int(codes.max()) > part.max - part.min:
                    most = int(codes.max()) + part.min
                    raise self._section.error("value above the greatest", 5, most, part.max)
                parts.append((rows, sign * (codes.astype(np.int64) + part.min)))
        rows, values = map(np.concatenate, zip(*parts, strict=True))
        return rows, values

    def is_null(self) -> Selection:
        """Rows without a value."""
        return Selection(self._existing.flip(0, self.row_count))

    def is_not_null(self) -> Selection:
        """Rows with a value."""
        return Selection(self._existing.copy())

    def is_in(self, keys: Sequence[Key]) -> Selection:
        """Rows with one of these keys."""
        return Selection(self._with(keys))

    def is_not_in(self, keys: Sequence[Key]) -> Selection:
        """Rows with a key that is none of these."""
        return Selection(self._existing - self._with(keys))

    def between(self, begin: Key | None, end: Key | None) -> Selection:
        """Rows with `begin <= key < end`."""
        low = None if begin is None else int(begin)
        high = None if end is None else int(end)
        positive, negative = self.parts
        rows = BitMap()
        if positive:
            rows |= positive.between(low, high)
        if negative:  # begin <= -absolute < end
            least = 1 if high is None else max(1, 1 - high)
            rows |= negative.between(least, None if low is None else 1 - low)
        return Selection(rows)

    def _with(self, keys: Sequence[Key]) -> BitMap:
        positive, negative = self.parts
        numbers = sorted({int(key) for key in keys})
        rows = BitMap()
        if positive:
            rows |= positive.one_of([number for number in numbers if number >= 0])
        if negative:
            rows |= negative.one_of([-number for number in reversed(numbers) if number < 0])
        return rows
