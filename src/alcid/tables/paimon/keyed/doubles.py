"""Keys that are live twice in a bucket: an older row should be marked, and is not.

    level 4   key 7    live
    level 5   key 7    live too, as the vector that marked it is gone

It comes from two writers at once. One has opened the bucket, the other upserts and marks, the first
commits what it holds: a vector file without the marks of the other. Readers then see both rows.

A lower level is newer, so that the row on the higher one is the one too many. In a table with a
`sequence.field` it is the one with the lesser value.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon.keyed.bucket import Bucket
from alcid.tables.paimon.keyed.bucket_vectors import read_vectors
from alcid.tables.paimon.keyed.changes import KeyedTable
from alcid.tables.paimon.keyed.key_reading import KeyReader
from alcid.tables.paimon.keyed.sifting import key_sections
from alcid.tables.paimon.merging import losers

__all__ = ["is_read_unmerged", "live_twice"]


def is_read_unmerged(keyed: KeyedTable, bucket: Bucket) -> bool:
    """Whether readers take each row above level 0 that is not marked for a row of the table.

    Otherwise they merge the bucket, and a key comes out once whatever is marked.
    """
    above = bucket.sorted_files
    # Where a row deletes, or may, reads merge the bucket.
    return keyed.options.skips_level_0 and all(one.file.delete_rows == 0 for one in above)


def live_twice(keyed: KeyedTable, bucket: Bucket) -> dict[str, DeletionVector]:
    """The rows above level 0 that are live beside a newer one of their key, by file name.

    Only keys are read, of those files that overlap others.

    Raises:
        FormatError: A file is damaged.
        FileGoneError: Another has replaced a file.
    """
    if not is_read_unmerged(keyed, bucket):
        return {}
    files = bucket.sorted_files
    sections = [one for one in key_sections(files, keyed.schema) if len(one) > 1] if files else []
    if not sections:
        return {}
    marked, reader = read_vectors(keyed, bucket), KeyReader(keyed)
    found: dict[str, DeletionVector] = {}
    for section in sections:
        rows = [reader.keys(one, marked.get(one.file.name)) for one in section]
        # Without numbers the level decides: writers that do not know of each other share numbers.
        levels = [replace(one, sequence_numbers=np.zeros(len(one), np.int64)) for one in rows]
        dead = losers(levels, descending=keyed.options.sequence_descending)
        for placed, one, lost in zip(section, rows, dead, strict=True):
            before = one.deleted or DeletionVector()
            if len(lost) > len(before):
                positions = lost.to_numpy()
                found[placed.file.name] = DeletionVector(positions[~before.contains(positions)])
    return found
