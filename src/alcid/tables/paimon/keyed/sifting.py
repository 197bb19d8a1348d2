"""Rows of a bucket are held against each other: of each key one is live.

Level comes first: a row on a lower level is newer, whatever its sequence number. Java's compactions
look older rows up by their place only, and never compare numbers; and a writer that opened the
bucket before others wrote to it gives out numbers which they have used.

Two cases are by number, as they are in Java: tables with a `sequence.field`, where an older row may
win; and tables that merge on read, where a compaction must not change what readers see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from alcid.formats.arrays import plain
from alcid.formats.deletion_vector import DeletionVector
from alcid.paimon_metadata.row_bytes import unpack_rows
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_options import TableOptions
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.key_order import rank_rows
from alcid.tables.paimon.keyed.bucket import Bucket
from alcid.tables.paimon.keyed.changes import KeyedTable
from alcid.tables.paimon.keyed.key_reading import KeyReader
from alcid.tables.paimon.keyed.row_kinds import are_deletes
from alcid.tables.paimon.keyed.runs import Choice
from alcid.tables.paimon.merging import KeyRows, losers
from alcid.tables.paimon.sections import plan_sections

__all__ = ["Seen", "key_sections", "sift"]

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
