"""Rows of a bucket are held against each other: of each key one is live.

Level comes first: a row on a lower level is newer, whatever its sequence number. Java's compactions
look older rows up by their place only, and never compare numbers; and a writer that opened the
bucket before others wrote to it gives out numbers which they have used.

Two cases are by number, as they are in Java: tables with a `sequence.field`, where an older row may
win; and tables that merge on read, where a compaction must not change what readers see.

The live rows of files whose keys overlap, in the order of their keys.

The keys of all files are held, and say in which order the rows come. The rows themselves are read
as they are needed, a row group of each file at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array, plain
from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.key_order import join_columns, rank_rows
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.keyed.bucket import Bucket, KeyedTable
from alcid.tables.paimon.keyed.key_files import Choice, KeyRun, join_runs
from alcid.tables.paimon.keyed.key_reading import KeyReader
from alcid.tables.paimon.merge_on_read import KeyRows, are_deletes, losers, plan_sections
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import unpack_rows

__all__ = ["Seen", "key_sections", "merge_rows", "sift"]

_NONE = DeletionVector()


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a file."""

    dead: DeletionVector
    """Its rows that are not live, those marked before among them."""
    is_sorted_run: bool
    """Whether it can be on a level above 0 as it is: each key once, and no row that deletes."""


def sift(
    keyed: KeyedTable,
    reader: KeyReader,
    bucket: Bucket,
    choice: Choice,
    marked: Mapping[str, DeletionVector],
) -> dict[str, Seen]:
    """Hold the rows of the files that a compaction takes against all others.

    Args:
        keyed: The table.
        reader: Reads its files.
        bucket: As it is.
        choice: What the compaction takes.
        marked: The deletion vectors of files, by their names.

    Returns:
        Of each file that is taken, or that may have a key of one that is, by its name.
    """
    taken = {one.file.name for one in choice.files}
    found: dict[str, Seen] = {}
    for section in key_sections(bucket.files, keyed.schema):
        names = [one.file.name for one in section]
        if taken.isdisjoint(names):
            continue
        if len(section) == 1 and _is_settled(section[0], choice.level):
            found[names[0]] = Seen(marked.get(names[0], _NONE), is_sorted_run=True)
            continue
        rows = [reader.keys(one, marked.get(one.file.name)) for one in section]
        dead = _losers(rows, keyed.options)
        found.update(
            (name, Seen(positions, _is_sorted_run(one)))
            for name, positions, one in zip(names, dead, rows, strict=True)
        )
    return found


def key_sections(files: Sequence[PlacedFile], schema: TableSchema) -> list[list[PlacedFile]]:
    """Files of a bucket that share keys, or may; in the order of their keys."""
    types = [schema.types[name] for name in schema.key_columns]
    least, most = (
        unpack_rows(packed, types, file="keys of a manifest")
        for packed in ([one.file.min_key for one in files], [one.file.max_key for one in files])
    )
    sections = plan_sections(np.zeros(len(files), np.int64), least, most)
    return [[files[number] for number in section.tolist()] for section in sections]


def _is_settled(placed: PlacedFile, level: int) -> bool:
    """Whether a file is where it would be brought, so that its rows need not be looked at."""
    return placed.file.level == level and placed.file.delete_rows == 0


def _losers(files: Sequence[KeyRows], options: TableOptions) -> list[DeletionVector]:
    if not options.sequence_field and options.skips_level_0:
        files = [
            replace(one, sequence=[pa.array(np.full(len(one), -one.level, np.int32))])
            for one in files
        ]
        return losers(files, ignore_delete=options.ignore_delete)
    return losers(
        files, descending=options.sequence_descending, ignore_delete=options.ignore_delete
    )


def _is_sorted_run(rows: KeyRows) -> bool:
    # What the manifest says of rows that delete is not asked: some writers count none.
    if are_deletes(plain(rows.kinds).to_numpy()).any():
        return False
    return bool(np.all(np.diff(rank_rows(rows.keys, len(rows))) > 0))


_CHUNK_ROWS = 1 << 18


def merge_rows(
    reader: KeyReader,
    files: Sequence[PlacedFile],
    dead: Mapping[str, DeletionVector],
    *,
    chunk_rows: int = _CHUNK_ROWS,
) -> Iterator[KeyRun]:
    """Rows in the order of their keys, some at a time.

    Args:
        reader: Reads the files.
        files: Files of a bucket.
        dead: The rows that are left out, by the name of the file. Of those that are not, no two
            have the same key.
        chunk_rows: How many rows are given at a time.

    Raises:
        FormatError: The keys of a file are not in order.
    """
    ends = np.cumsum([one.file.rows for one in files])
    order = _order(reader, files, dead, ends)
    feeds = [_Feed(reader.runs(one)) for one in files]
    for start in range(0, len(order), chunk_rows):
        chunk = order[start : start + chunk_rows]
        by_file = np.argsort(chunk, kind="stable")
        parts = np.split(chunk[by_file], np.searchsorted(chunk[by_file], ends[:-1]))
        run = join_runs(
            feeds[number].take(part - (ends[number] - one.file.rows))
            for number, (one, part) in enumerate(zip(files, parts, strict=True))
            if len(part)
        )
        places = np.empty(len(by_file), np.int64)
        places[by_file] = np.arange(len(by_file))
        yield run if len(files) == 1 else run.take(places)


def _order(
    reader: KeyReader,
    files: Sequence[PlacedFile],
    dead: Mapping[str, DeletionVector],
    ends: Int64Array,
) -> Int64Array:
    """The live rows by key, counted through all files."""
    keys = [reader.keys(one).keys for one in files]
    ranks = rank_rows(join_columns(keys), int(ends[-1]))
    live = np.ones(len(ranks), bool)
    for one, own, kept in zip(
        files, np.split(ranks, ends[:-1]), np.split(live, ends[:-1]), strict=True
    ):
        wrong = np.flatnonzero(np.diff(own) < 0)
        if len(wrong):
            row = int(wrong[0]) + 1
            raise FormatError(f"key of row {row} is below the one before", file=one.path)
        if one.file.name in dead:
            kept[dead[one.file.name].to_numpy()] = False
    order = np.flatnonzero(live)
    return order[np.argsort(ranks[order], kind="stable")]


class _Feed:
    """The rows of a file, which are asked for from the first to the last."""

    def __init__(self, runs: Iterator[KeyRun]) -> None:
        self._runs, self._end = runs, 0
        self._held: list[tuple[int, KeyRun]] = []

    def take(self, rows: Int64Array) -> KeyRun:
        """Some rows by their places, ascending, all behind those that were taken before."""
        first, last = int(rows[0]), int(rows[-1])
        while self._end <= last:
            self._hold(first)
            run = next(self._runs)
            self._held.append((self._end, run))
            self._end += len(run)
        self._hold(first)
        parts = []
        for begin, run in self._held:
            inside = rows[(rows >= begin) & (rows < begin + len(run))] - begin
            if len(inside):
                parts.append(run.take(inside))
        return join_runs(parts)

    def _hold(self, first: int) -> None:
        """Forget what lies before a row."""
        self._held = [(begin, run) for begin, run in self._held if begin + len(run) > first]
