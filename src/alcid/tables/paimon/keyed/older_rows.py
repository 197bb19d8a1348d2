"""The older rows of a bucket: which of them new rows supersede.

        older file     new rows      result
        1  fig         2  plum       row 1 of the file is superseded
        2  pear        4  lime       key 4 is new
        3  apple

Only keys are read, and only of files whose range of keys overlaps that of the new rows. As many of
them are in memory as `MemoryBounds.key_bytes` allows, however large a file is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, IntArray, plain
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.key_order import Column, join_columns, rank_rows
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.keyed.bucket import Bucket, KeyedTable, read_vectors
from alcid.tables.paimon.keyed.key_files import KeyPart, KeyReader, KeySpan, SortedRun
from alcid.tables.paimon.merge_on_read import KeyRows, are_deletes, superseded_rows
from alcid.tables.paimon.metadata.statistics import unpack_rows


@dataclass(frozen=True, slots=True, eq=False)
class VectorUpdate:
    """The deletion vectors of a bucket, and the live rows to delete besides; by file name."""

    existing: Mapping[str, DeletionVector]
    added: Mapping[str, DeletionVector] = field(default_factory=dict)

    @property
    def added_rows(self) -> int:
        """How many rows are deleted besides."""
        return sum(map(len, self.added.values()))

    def merged(self) -> dict[str, DeletionVector]:
        """The new deletion vectors."""
        none = DeletionVector()
        return {
            **self.existing,
            **{name: self.existing.get(name, none) | rows for name, rows in self.added.items()},
        }


_Pairs: TypeAlias = tuple[IntArray, IntArray]
"""Positions of an older file, and for each the new row of the same key."""

_NEWEST = np.iinfo(np.int64).max
_FEW = 4  # new rows are few if there are so many times as many older ones


@dataclass(frozen=True, slots=True, eq=False)
class KeyMatches:
    """Older rows with the keys of new ones."""

    superseded: list[DeletionVector]
    """For each older file the rows that are not live any more, without those deleted before."""
    is_outdated: BoolArray
    """The new rows that an older one beats by `sequence.field`."""
    is_existing: BoolArray
    """The new rows whose key has a live older row."""


def look_up(old: Iterable[KeyRows], new: KeyRows, *, descending: bool = False) -> KeyMatches:
    """Find the older rows that new rows supersede.

    Without `sequence.field` a new row supersedes all older ones of its key, as in Java, whatever
    their sequence numbers. With it, an older row may win.

    Args:
        old: Files in the order in which they were added, or parts of them. They are read one after
            the other, and only rows with the key of a new one stay in memory. Of a key that is live
            in several of them, at most one row stays.
        new: Rows with distinct keys. Those that delete supersede older rows as others do.
        descending: `sequence.field.sort-order`.

    Raises:
        FormatError: A row has no sequence number or kind.
        UnsupportedError: A key or sequence field is of a type that has no order, or of several.

    >>> old = KeyRows([pa.array([1, 2, 3])], np.array([6, 7, 8]), np.zeros(3, np.int8), level=5)
    >>> new = KeyRows([pa.array([2, 4])], np.array([9, 10]), np.zeros(2, np.int8), level=0)
    >>> matches = look_up([old], new)
    >>> matches.superseded, matches.is_outdated.tolist(), matches.is_existing.tolist()
    ([DeletionVector([1], bits=32)], [False, False], [True, False])
    """
    is_outdated, is_existing = np.zeros(len(new), bool), np.zeros(len(new), bool)
    positions_of_files, parts = list[IntArray](), list[KeyRows]()
    for file in old:
        positions, rows = _live_pairs(file, _match(file.keys, new.keys, len(file), len(new)))
        kinds = _values_at(file.kinds, positions)
        is_existing[rows[~are_deletes(kinds)]] = True
        positions_of_files.append(positions)
        if new.sequence:
            # The numbers of the new rows stand for their keys.
            parts.append(
                KeyRows(
                    [pa.array(rows)],
                    _values_at(file.sequence_numbers, positions),
                    kinds,
                    file.level,
                    [plain(column).take(pa.array(positions)) for column in file.sequence],
                    name=file.name,
                )
            )
    if not new.sequence:
        superseded = [DeletionVector(positions) for positions in positions_of_files]
        return KeyMatches(superseded, is_outdated, is_existing)
    keys = [np.empty(0, np.int64), *(plain(part.keys[0]).to_numpy() for part in parts)]
    matched = np.unique(np.concatenate(keys))
    parts.append(
        KeyRows(
            [pa.array(matched)],
            np.full(len(matched), _NEWEST),
            np.zeros(len(matched), np.int8),
            0,
            [plain(column).take(pa.array(matched)) for column in new.sequence],
        )
    )
    *of_files, outdated = superseded_rows(parts, descending=descending)
    is_outdated[matched[outdated.to_numpy()]] = True
    superseded = [
        DeletionVector(positions[vector.to_numpy()])
        for vector, positions in zip(of_files, positions_of_files, strict=True)
    ]
    return KeyMatches(superseded, is_outdated, is_existing)


def _live_pairs(file: KeyRows, pairs: _Pairs) -> _Pairs:
    """The pairs without older rows that are deleted."""
    if file.deleted is None:
        return pairs
    positions, rows = pairs
    is_live = ~file.deleted.contains(positions)
    return positions[is_live], rows[is_live]


def _values_at(values: npt.NDArray[Any] | Column, positions: IntArray) -> npt.NDArray[Any]:
    """Sequence numbers or kinds of some rows."""
    if isinstance(values, np.ndarray):
        return values[positions]
    taken: npt.NDArray[Any] = plain(values).take(pa.array(positions)).to_numpy()
    return taken


def _match(old: Sequence[Column], new: Sequence[Column], old_rows: int, new_rows: int) -> _Pairs:
    """The rows of a file that have the key of a new row, in order."""
    if len(old) == len(new) == 1:
        pairs = _binary_search(plain(old[0]), plain(new[0]))
        if pairs is not None:
            return pairs
    positions = np.arange(old_rows)
    if new_rows * _FEW < old_rows:
        positions = _narrow(old, new, positions)
        old = [plain(column).take(pa.array(positions)) for column in old]
    ranks = rank_rows(join_columns([old, new]), len(positions) + new_rows)
    older, newer = np.split(ranks, [len(positions)])
    row_of = np.full(int(ranks.max(initial=0)) + 1, -1, np.int64)
    row_of[newer] = np.arange(new_rows)
    rows = row_of[older]
    return positions[rows >= 0], rows[rows >= 0]


def _binary_search(old: pa.Array, new: pa.Array) -> _Pairs | None:
    """The same for one column of ascending integers, as files have them; else None."""
    older, newer = _as_integers(old), _as_integers(new)
    if older is None or newer is None or old.type != new.type or np.any(older[1:] <= older[:-1]):
        return None
    positions = np.searchsorted(older, newer)
    rows = np.flatnonzero(positions < len(older))
    rows = rows[older[positions[rows]] == newer[rows]]
    order = np.argsort(positions[rows], kind="stable")
    return positions[rows][order], rows[order]


def _as_integers(array: pa.Array) -> IntArray | None:
    if array.null_count:
        return None
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return array.to_numpy() if pa.types.is_integer(array.type) else None


def _narrow(old: Sequence[Column], new: Sequence[Column], positions: IntArray) -> IntArray:
    """The rows that have in each column a value of some new row: cheaper than to rank all."""
    is_candidate = np.ones(len(positions), bool)
    for older, newer in zip(map(plain, old), map(plain, new), strict=True):
        if older.type == newer.type and not pa.types.is_floating(newer.type):
            is_candidate &= pc.is_in(older, value_set=newer).to_numpy(zero_copy_only=False)
    return positions[is_candidate]


@dataclass(frozen=True, slots=True, eq=False)
class _Span:
    """A span of a file, and its first and last key as soon as they are known."""

    groups: KeySpan
    bounds: Sequence[Column] | None = None


class OlderRows:
    """The rows of a bucket above level 0, and which of them new rows supersede.

    Of each file as many keys are in memory as `key_bytes` allows for all levels together. A new run
    that comes in several chunks reads them once more at most: what was read for a chunk is kept for
    the next, and the bounds of every span of a file are known after the first chunk that needs it.
    """

    def __init__(self, keyed: KeyedTable, bucket: Bucket) -> None:
        self._keyed, self._bucket = keyed, bucket
        self._deleted = read_vectors(keyed, bucket)
        self._reader = KeyReader(keyed)
        levels = {file.file.level for file in bucket.sorted_files}
        self._most_bytes = keyed.memory.key_bytes // max(len(levels), 1)
        self._spans: dict[str, list[_Span]] = {}
        self._last: dict[int, tuple[str, KeyPart]] = {}  # by level: name of the file, and keys
        self._added: dict[str, DeletionVector] = {}
        self.update = VectorUpdate(self._deleted, self._added)
        """What is superseded by the chunks that were read."""

    def supersede(self, chunks: Iterable[SortedRun]) -> Iterator[SortedRun]:
        """The new rows that are newest of all, chunk by chunk as they are asked for."""
        for chunk in chunks:
            # A delete of a key that does not exist is dropped.
            matches, is_put = self._look_up(chunk), ~are_deletes(chunk.kinds)
            yield chunk.filter(~matches.is_outdated & (matches.is_existing | is_put))

    def _look_up(self, chunk: SortedRun) -> KeyMatches:
        """Find the older rows that a chunk supersedes, and note them."""
        origins = list[tuple[str, int]]()  # the file of each part, and the number of its first row

        def parts() -> Iterator[KeyRows]:
            for file in _overlapping(self._keyed, self._bucket, chunk):
                for part in self._parts(file, chunk):
                    origins.append((file.file.name, part.first))
                    yield part.rows

        descending = self._keyed.options.sequence_descending
        matches = look_up(parts(), self._reader.keys_of(chunk), descending=descending)
        for (name, first), rows in zip(origins, matches.superseded, strict=True):
            if rows:
                moved = DeletionVector(rows.to_numpy() + first) if first else rows
                before = self._added.get(name)
                self._added[name] = moved if before is None else before | moved
        return matches

    def _parts(self, file: PlacedFile, chunk: SortedRun) -> Iterator[KeyPart]:
        """The keys of a file that may be among those of a chunk."""
        name = file.file.name
        if name not in self._spans:
            groups = self._reader.spans(file, self._most_bytes)
            self._spans[name] = [_Span(own) for own in groups]
        spans = self._spans[name]
        bounds = [span.bounds for span in spans if span.bounds is not None]
        is_near = np.ones(len(spans), bool)
        if len(spans) > 1 and len(bounds) == len(spans):
            ends = join_columns(bounds)
            minimum, maximum = ([end[first::2] for end in ends] for first in (0, 1))
            is_near = _are_overlapping(self._keyed, chunk, minimum, maximum, len(spans))
        for number in np.flatnonzero(is_near).tolist():
            part = self._read(file, spans[number].groups)
            if len(spans) > 1 and spans[number].bounds is None:
                spans[number] = replace(spans[number], bounds=_bounds(part))
            yield part

    def _read(self, file: PlacedFile, span: KeySpan) -> KeyPart:
        """The keys of a span, which may still be in memory."""
        level, name = file.file.level, file.file.name
        last = self._last.pop(level, None)
        if last is None or (last[0], last[1].first) != (name, span.first):
            last = name, self._reader.read_span(file, self._deleted.get(name), span)
        self._last[level] = last
        return last[1]


def _bounds(part: KeyPart) -> list[pa.Array]:
    """The least and the greatest key of a part, whatever the order of its rows."""
    ranks = rank_rows(part.keys, len(part))
    ends = pa.array([int(ranks.argmin()), int(ranks.argmax())])
    return [plain(column).take(ends) for column in part.keys]


def _overlapping(keyed: KeyedTable, bucket: Bucket, run: SortedRun) -> list[PlacedFile]:
    """The files above level 0 whose key range overlaps that of a run."""
    files = bucket.sorted_files
    if not files or not len(run):
        return []
    types = [keyed.schema.types[name] for name in keyed.schema.key_columns]
    minimum = unpack_rows([file.file.min_key for file in files], types, file="keys of a manifest")
    maximum = unpack_rows([file.file.max_key for file in files], types, file="keys of a manifest")
    overlaps = _are_overlapping(keyed, run, minimum, maximum, len(files))
    return [files[number] for number in np.flatnonzero(overlaps).tolist()]


def _are_overlapping(
    keyed: KeyedTable,
    run: SortedRun,
    minimum: Sequence[Column],
    maximum: Sequence[Column],
    count: int,
) -> BoolArray:
    """Which ranges of keys overlap that of a run, which has rows."""
    ends = pa.array([0, len(run) - 1])
    bounds = [
        run.rows.column(name).take(ends).cast(minimum[number].type)
        for number, name in enumerate(keyed.schema.key_columns)
    ]
    ranks = rank_rows(join_columns([bounds, minimum, maximum]), 2 + 2 * count)
    first, last = ranks[0], ranks[1]
    overlaps: BoolArray = (ranks[2 + count :] >= first) & (ranks[2 : 2 + count] <= last)
    return overlaps
