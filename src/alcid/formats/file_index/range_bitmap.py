"""Paimon's range-bitmap index: rows of any range of values, and the highest and lowest ones.

    i32 head length | u8 version 1 | i32 rows | i32 cardinality | min key | max key
      | i32 dictionary length
    dictionary (see `alcid.formats.file_index.dictionary`)
    slices (see `alcid.formats.file_index.bit_slices`)

The keys' ranks are their codes; slice `i` holds the rows whose code has bit `i`. Without a value
there are no min and max.

Answers equality, IN, ranges, null and top-n, with rows. Do not use it for columns that are only
ever asked for equality: a bitmap or a bloom filter reads far less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from pyroaring import BitMap

from alcid._arrays import UInt32Array
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.file_index.bit_slices import BitSlices, read_slices, write_slices
from alcid.formats.file_index.dictionary import KeyDictionary, encode, write_dictionary
from alcid.formats.file_index.distinct import check_size, rank
from alcid.formats.file_index.keys import (
    Key,
    KeyColumn,
    Keys,
    KeyType,
    is_below,
    key_array,
    order_float,
)
from alcid.formats.file_index.reader import IndexReader, Selection, no_row
from alcid.formats.source import Section

_VERSION = 1
_KEYS_AT = 13
_COMMON_HEAD = 64  # bytes, of which the head takes at most 33 with keys of one width
_DEFAULT_CHUNK = 16384
_WIDEST_UNCHUNKED = 2


def build(column: KeyColumn, *, chunk_size: int | None = None) -> bytes:
    """Build the index; without `chunk_size` it is 16 KiB, or 0 for keys of one or two bytes.

    Raises:
        LimitError: Its keys are too long together.
    """
    key_type = replace(column.key_type, nan_bits=column.first_nan)
    if chunk_size is None:
        chunk_size = 0 if 0 < key_type.width <= _WIDEST_UNCHUNKED else _DEFAULT_CHUNK
    check_size(column)
    ranked = rank(column)
    cardinality = len(ranked.keys)
    dictionary = write_dictionary(key_type, ranked.keys, chunk_size)
    head = Writer().u8(_VERSION).i32(column.row_count, cardinality)
    if cardinality:
        ends = encode(key_type, ranked.keys.take(np.array([0, cardinality - 1])))
        head.raw(ends.slice(0, 2))
    head.i32(len(dictionary))
    codes = column.spread(ranked.ranks.astype(np.uint32))
    slices = write_slices(codes, column.spread(np.ones(len(column.keys), bool)), cardinality)
    payload = Writer().i32(head.length).raw(head.to_bytes())
    return payload.raw(dictionary).raw(slices).to_bytes()


@dataclass(frozen=True, slots=True)
class RangeBitmapHead:
    """The head, as far as it can be read without the type of the column."""

    row_count: int
    cardinality: int
    dictionary_at: int
    dictionary_length: int

    @classmethod
    def read(cls, cursor: Cursor) -> RangeBitmapHead:
        """Read the head around minimum and maximum, and leave the cursor at those."""
        section = cursor.section
        head_length = cursor.count("head length", section.length - 4)
        cursor.version("range-bitmap", _VERSION)
        row_count = cursor.count("row count")
        cardinality = cursor.count("cardinality", row_count)
        cursor.position = max(head_length, _KEYS_AT)  # of the last number in the head
        length = cursor.count("dictionary length", section.length - cursor.position - 4)
        dictionary_at, cursor.position = cursor.position, _KEYS_AT
        return cls(row_count, cardinality, dictionary_at, length)

    @property
    def slices_at(self) -> int:
        """Where the slices begin."""
        return self.dictionary_at + self.dictionary_length


class RangeBitmapReader(IndexReader):
    """Reads the head, then only the dictionary chunks and slices that an answer needs."""

    def __init__(self, section: Section, key_type: KeyType) -> None:
        """Read the head of the payload `section` of a column with keys of `key_type`."""
        self._section, self._key_type = section, key_type
        cursor = Cursor(section, window=_COMMON_HEAD)
        self.head = head = RangeBitmapHead.read(cursor)
        self.row_count, self.cardinality = head.row_count, head.cardinality
        self.min: Key | None = None
        self.max: Key | None = None
        if self.cardinality:
            self.min, self.max = key_type.read(cursor), key_type.read(cursor)
            ordered = is_below(self.min, self.max) or self.min == self.max
            if not ordered or (self.min == self.max) != (self.cardinality == 1):
                raise section.error("minimum and maximum not in order", _KEYS_AT)
        if cursor.position != head.dictionary_at - 4:
            raise section.error(
                "bad head length", 0, found=head.dictionary_at - 4, expected=cursor.position
            )
        dictionary = section.section(head.dictionary_at, head.dictionary_length)
        self.dictionary = KeyDictionary(dictionary, key_type, self.cardinality)

    @cached_property
    def slices(self) -> BitSlices:
        """The slices of the codes."""
        section = self._section.section(self.head.slices_at)
        return read_slices(section, self.row_count, self.cardinality)

    @cached_property
    def _existing(self) -> BitMap:
        return self.slices.existing if self.cardinality else BitMap()

    @cached_property
    def _nulls(self) -> BitMap:
        return self._existing.flip(0, self.row_count)

    def is_null(self) -> Selection:
        """Rows without a value."""
        return Selection(self._nulls.copy())

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
        if self.min is None or self.max is None:
            return no_row()
        low, high = 0, self.cardinality
        # Minimum and maximum often spare the dictionary.
        if begin is not None and is_below(self.min, begin):
            low = high if is_below(self.max, begin) else self._rank(begin)[0]
        if end is not None and not is_below(self.max, end):
            high = self._rank(end)[0] if is_below(self.min, end) else 0
        if low >= high:
            return no_row()
        return Selection(self.slices.between(low, None if high == self.cardinality else high))

    def _rank(self, key: Key) -> tuple[int, bool]:
        """How many keys are below `key`, and whether it is there."""
        if self.dictionary.first != self.min:
            raise self._section.error("minimum that the dictionary contradicts", _KEYS_AT)
        return self.dictionary.rank(key)

    def _with(self, keys: Sequence[Key]) -> BitMap:
        """Rows with one of these keys."""
        low, high = self.min, self.max
        if low is None or high is None:
            return BitMap()
        inside = {key for key in keys if not is_below(key, low) and not is_below(high, key)}
        ranks = [self._rank(key) for key in sorted(inside)]
        codes = [code for code, is_there in ranks if is_there]
        return self.slices.one_of(codes) if codes else BitMap()

    def top_n(
        self,
        k: int,
        *,
        descending: bool,
        nulls: Literal["first", "last"],
        among: BitMap | None = None,
        ties: bool = True,
    ) -> Selection:
        """The `k` highest (else lowest) rows among those given.

        With `ties`, every row that equals the last one is kept, so that further sort keys can
        decide; without, exactly `k` rows: of equal values the highest positions, of nulls the
        lowest, as Paimon.
        """
        if k <= 0:
            return no_row()
        null_rows = self._nulls if among is None else self._nulls & among
        if nulls == "first":
            if len(null_rows) >= k:
                return Selection(null_rows.copy() if ties else null_rows[:k])
            return Selection(null_rows | self._best(k - len(null_rows), descending, among, ties))
        rows = self._best(k, descending, among, ties)
        if (missing := k - len(rows)) > 0:
            rows |= null_rows if ties else null_rows[:missing]
        return Selection(rows)

    def extremes(self, k: int, *, descending: bool) -> list[Key]:
        """The `k` highest (else lowest) keys, from the dictionary alone."""
        return self.dictionary.extremes(k, descending=descending) if self.cardinality else []

    def _best(self, k: int, descending: bool, among: BitMap | None, ties: bool) -> BitMap:
        if not self.cardinality:
            return BitMap()
        rows = self.slices.best(k, descending=descending, among=among, ties=ties)
        if ties and self._key_type.floating:
            # The two zeros are equal, though not to the index.
            zeros = self._with([order_float(-0.0, self._key_type.width), 0])
            if zeros & rows:
                rows |= zeros if among is None else zeros & among
        return rows

    def contents(self) -> tuple[UInt32Array, Keys]:
        """Every row that has a key, and the keys.

        Raises:
            FormatError: Parts of the index contradict each other.
        """
        keys = list(self.dictionary) if self.cardinality else []
        if keys and (keys[0] != self.min or keys[-1] != self.max):
            problem = "minimum or maximum that the dictionary contradicts"
            raise self._section.error(problem, _KEYS_AT)
        values = key_array(keys, self._key_type)
        if not keys:
            return np.zeros(0, np.uint32), values
        rows, codes = self.slices.codes()
        if len(codes) and int(codes.max()) >= self.cardinality:
            most = int(codes.max())
            raise self._section.error("code beyond the keys", 0, most, f"below {len(keys)}")
        return rows, values.take(codes.astype(np.int64))

    @property
    def chunk_size(self) -> int:
        """A chunk size by which the same keys come to the same chunks."""
        return self.dictionary.chunk_size if self.cardinality else 0

    def items(self) -> Iterable[tuple[Key, BitMap]]:
        """Every key with its rows, ascending."""
        for code, key in enumerate(self.dictionary):
            yield key, self.slices.equal(code)
