"""The live rows of a bucket: one for each key, in the order of the keys.

Level comes first: a row on a lower level is newer, whatever its sequence number. Java's compactions
look older rows up by file and position, and never compare sequence numbers; and a writer that
opened the bucket before others wrote to it assigns sequence numbers that they have used.

In two cases sequence numbers decide, as they do in Java: in tables with a `sequence.field`, where
an older row may win; and in tables that merge on read, where a compaction must not change what
readers see.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array, plain
from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.key_order import join_columns, rank_rows
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.key_ranges import key_ranges
from alcid.tables.paimon.keyed.bucket import KeyedTable
from alcid.tables.paimon.keyed.key_files import KeyPart, KeyReader, SortedRun, concat_runs
from alcid.tables.paimon.keyed.memory import DEFAULT_MEMORY, MemoryBounds
from alcid.tables.paimon.merge_on_read import (
    KeyRows,
    are_deletes,
    plan_sections,
    superseded_rows,
)
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import unpack_rows

_NO_ROWS = DeletionVector()
_CHUNK_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class ResolvedFile:
    """A file whose rows were compared with those of all other files of its bucket."""

    deleted: DeletionVector
    """Its rows that are not live, with those that were deleted before."""
    is_sorted_run: bool
    """Whether it can be on a level above 0 as it is: each key once, and no row that deletes."""


def resolve_live_rows(
    keyed: KeyedTable,
    reader: KeyReader,
    files: Sequence[PlacedFile],
    deleted: Mapping[str, DeletionVector],
    *,
    compacted: Collection[PlacedFile],
    level: int,
) -> dict[str, ResolvedFile]:
    """Compare the rows of files to be compacted with those of all files of their bucket.

    Args:
        keyed: The table.
        reader: Reads its files.
        files: All files of the bucket.
        deleted: Their deletion vectors, by file name.
        compacted: The files to be compacted.
        level: The output level of the compaction.

    Returns:
        By name, all compacted files and those that may share keys with one of them.
    """
    chosen = {file.file.name for file in compacted}
    resolved: dict[str, ResolvedFile] = {}
    for section in key_sections(files, keyed.schema):
        names = [file.file.name for file in section]
        if chosen.isdisjoint(names):
            continue
        if len(section) == 1 and _is_compacted(section[0], level):
            resolved[names[0]] = ResolvedFile(deleted.get(names[0], _NO_ROWS), is_sorted_run=True)
            continue
        files_of_section = _resolve_section(keyed, reader, section, deleted)
        resolved.update(zip(names, files_of_section, strict=True))
    return resolved


def _resolve_section(
    keyed: KeyedTable,
    reader: KeyReader,
    files: Sequence[PlacedFile],
    deleted: Mapping[str, DeletionVector],
) -> list[ResolvedFile]:
    """Compare the rows of files with each other, as many keys at a time as fit into memory."""
    vectors = [deleted.get(file.file.name, _NO_ROWS) for file in files]
    is_run = [True] * len(files)
    for parts in _key_ranges(reader, files, deleted, keyed.memory):
        numbers = [number for number, of_file in enumerate(parts) for _ in of_file]
        flat = [part for of_file in parts for part in of_file]
        superseded = _superseded_rows([part.rows for part in flat], keyed.options)
        for number, part, vector in zip(numbers, flat, superseded, strict=True):
            is_run[number] &= _has_no_deletes(part.rows)
            moved = vector if not part.first else DeletionVector(vector.to_numpy() + part.first)
            vectors[number] |= moved
        for number, of_file in enumerate(parts):
            is_run[number] &= _is_rising(of_file)
    return [ResolvedFile(*resolved) for resolved in zip(vectors, is_run, strict=True)]


def _key_ranges(
    reader: KeyReader,
    files: Sequence[PlacedFile],
    deleted: Mapping[str, DeletionVector],
    memory: MemoryBounds,
) -> Iterator[list[list[KeyPart]]]:
    """The keys of files, range by range: in one range, and in any order, where they all fit."""
    share = memory.key_bytes // max(len(files), 1)
    return key_ranges(
        [reader.key_parts(file, deleted.get(file.file.name), share) for file in files]
    )


def key_sections(files: Sequence[PlacedFile], schema: TableSchema) -> list[list[PlacedFile]]:
    """Files of a bucket whose key ranges overlap, section by section in the order of the keys."""
    types = [schema.types[name] for name in schema.key_columns]
    minimum, maximum = (
        unpack_rows(packed, types, file="keys of a manifest")
        for packed in ([file.file.min_key for file in files], [file.file.max_key for file in files])
    )
    sections = plan_sections(np.zeros(len(files), np.int64), minimum, maximum)
    return [[files[number] for number in section.tolist()] for section in sections]


def _is_compacted(file: PlacedFile, level: int) -> bool:
    """Whether a file is on the output level, so that its rows need not be read."""
    return file.file.level == level and file.file.delete_rows == 0


def _superseded_rows(files: Sequence[KeyRows], options: TableOptions) -> list[DeletionVector]:
    descending = options.sequence_descending
    if not options.sequence_field and options.skips_level_0:
        descending = False
        files = [
            replace(rows, sequence=[pa.array(np.full(len(rows), -rows.level, np.int32))])
            for rows in files
        ]
    return superseded_rows(files, descending=descending, ignore_delete=options.ignore_delete)


def _has_no_deletes(rows: KeyRows) -> bool:
    # Read from the rows: some writers count no deletes in the manifest.
    return not are_deletes(plain(rows.kinds).to_numpy()).any()


def _is_rising(parts: Sequence[KeyPart]) -> bool:
    """Whether each key of a file is above the one before."""
    ranks = rank_rows(join_columns([part.keys for part in parts]), sum(map(len, parts)))
    return bool(np.all(np.diff(ranks) > 0))


def merge_rows(
    reader: KeyReader,
    files: Sequence[PlacedFile],
    deleted: Mapping[str, DeletionVector],
    *,
    memory: MemoryBounds = DEFAULT_MEMORY,
    chunk_rows: int = _CHUNK_ROWS,
) -> Iterator[SortedRun]:
    """The live rows of files in the order of their keys, a chunk at a time.

    Keys determine the order, those of one range at a time. The rows themselves are read when they
    are needed, a row group of each file at a time.

    Args:
        reader: Reads the files.
        files: Files of a bucket.
        deleted: The rows to leave out, by file name. No two of the others have the same key.
        memory: How many keys are in memory.
        chunk_rows: Rows of a chunk.

    Raises:
        FormatError: The keys of a file are not in order.
    """
    ends = np.cumsum([file.file.rows for file in files])
    feeds = [_RowFeed(reader.runs(file)) for file in files]
    for chunk in _chunks(_key_order(reader, files, deleted, ends, memory), chunk_rows):
        by_file = np.argsort(chunk, kind="stable")
        parts = np.split(chunk[by_file], np.searchsorted(chunk[by_file], ends[:-1]))
        run = concat_runs(
            feeds[number].take(part - (ends[number] - file.file.rows))
            for number, (file, part) in enumerate(zip(files, parts, strict=True))
            if len(part)
        )
        positions = np.empty(len(by_file), np.int64)
        positions[by_file] = np.arange(len(by_file))
        yield run if len(files) == 1 else run.take(positions)


def _chunks(rows: Iterable[Int64Array], size: int) -> Iterator[Int64Array]:
    """The same numbers in arrays of one size, but for the last."""
    rest = np.empty(0, np.int64)
    for part in rows:
        rest = np.concatenate([rest, part])
        whole = len(rest) - len(rest) % size
        yield from (rest[start : start + size] for start in range(0, whole, size))
        rest = rest[whole:]
    if len(rest):
        yield rest


def _key_order(
    reader: KeyReader,
    files: Sequence[PlacedFile],
    deleted: Mapping[str, DeletionVector],
    ends: Int64Array,
    memory: MemoryBounds,
) -> Iterator[Int64Array]:
    """The live rows by key, numbered through all files, those of a range of keys at a time."""
    starts = ends - [file.file.rows for file in files]
    for parts in _key_ranges(reader, files, deleted, memory):
        flat = [
            (int(start) + part.first, part)
            for start, of_file in zip(starts, parts, strict=True)
            for part in of_file
        ]
        lengths = [len(part) for _, part in flat]
        ranks = rank_rows(join_columns([part.keys for _, part in flat]), sum(lengths))
        cuts = np.cumsum(lengths)[:-1]
        rows, live = list[Int64Array](), list[Int64Array]()
        for (first, part), own in zip(flat, np.split(ranks, cuts), strict=True):
            wrong = np.flatnonzero(np.diff(own) < 0)
            if len(wrong):
                row = part.first + int(wrong[0]) + 1
                raise FormatError(f"key of row {row} is below the one before", file=part.name)
            is_live = np.ones(len(own), bool)
            if part.rows.deleted is not None:
                is_live[part.rows.deleted.to_numpy()] = False
            positions = np.flatnonzero(is_live)
            rows.append(first + positions)
            live.append(own[positions])
        yield np.concatenate(rows)[np.argsort(np.concatenate(live), kind="stable")]


class _RowFeed:
    """The rows of a file, which are taken from the first to the last."""

    def __init__(self, runs: Iterator[SortedRun]) -> None:
        self._runs, self._end = runs, 0
        self._buffered: list[tuple[int, SortedRun]] = []

    def take(self, rows: Int64Array) -> SortedRun:
        """The rows of ascending positions, all behind those that were taken before."""
        first, last = int(rows[0]), int(rows[-1])
        while self._end <= last:
            self._forget_before(first)
            run = next(self._runs)
            self._buffered.append((self._end, run))
            self._end += len(run)
        self._forget_before(first)
        parts = []
        for begin, run in self._buffered:
            inside = rows[(rows >= begin) & (rows < begin + len(run))] - begin
            if len(inside):
                parts.append(run.take(inside))
        return concat_runs(parts)

    def _forget_before(self, row: int) -> None:
        self._buffered = [(begin, run) for begin, run in self._buffered if begin + len(run) > row]
