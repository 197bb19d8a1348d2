"""A table with a primary key and one bucket, whose files are put on levels by hand."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from alcid import PaimonTable
from alcid.errors import AlcidWarning
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon.data_files import PlacedFile, stored_schema, table_paths
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    BucketCompaction,
    KeyedTable,
    buckets_of,
    read_vectors,
    write_vectors,
)
from alcid.tables.paimon.keyed.commit import compact_change
from alcid.tables.paimon.keyed.key_files import SortedRun, write_sorted_run
from alcid.tables.paimon.keyed.upsert import keyed_table
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.statistics import EMPTY
from tests.tables.paimon.small_tables import commit, create

COLUMNS = {"id": "INT", "v": "STRING", "at": "INT"}
VECTORS = {"bucket": "1", "deletion-vectors.enabled": "true"}
KINDS = {"+I": 0, "-U": 1, "+U": 2, "-D": 3}


class BucketTable:
    """A table with columns `id` (the key), `v`, and `at`."""

    def __init__(self, folder: Path, options: Mapping[str, str] | None = None) -> None:
        self.table = create(
            folder / "table", COLUMNS, primary_keys=["id"], options={**VECTORS, **(options or {})}
        )

    @property
    def keyed(self) -> KeyedTable:
        """What work on its bucket needs."""
        self.table.refresh()
        return keyed_table(self.table, "compact")

    @property
    def bucket(self) -> Bucket:
        """The current bucket."""
        self.table.refresh()
        files = self.table.snapshot
        paths = table_paths(files.schema, files.options)
        return buckets_of(files.state, paths)[EMPTY, 0]

    def put(
        self,
        rows: Mapping[int, str | None],
        level: int = 0,
        *,
        number: int | None = None,
        at: Sequence[int | None] | None = None,
    ) -> PlacedFile:
        """Commit a file; a row without a value deletes its key.

        Args:
            rows: Values by key.
            level: Of the file.
            number: The sequence number of the first row; by default the next.
            at: The values of that column.
        """
        keyed, bucket = self.keyed, self.bucket
        ids = sorted(rows)
        first = bucket.next_sequence if number is None else number
        columns: dict[str, list[Any]] = {
            "id": ids,
            "v": [rows[key] for key in ids],
            "at": list(at or [None] * len(ids)),
        }
        stored = stored_schema(keyed.schema)
        run = SortedRun(
            pa.table(
                [pa.array(columns[field.name], field.type) for field in stored], schema=stored
            ),
            np.arange(first, first + len(ids)),
            np.array([KINDS["+I" if rows[key] is not None else "-D"] for key in ids], np.int8),
        )
        (written,) = write_sorted_run(keyed, bucket, [run], level=level, source=0)
        commit(self.table, Change(kind="APPEND", added=[written.entry]))
        return written.placed

    def upsert(self, rows: Mapping[int, str]) -> None:
        """Upsert rows as another writer that opened the table separately."""
        upserted = pa.table({"id": pa.array(rows, pa.int32()), "v": list(rows.values())})
        PaimonTable(self.table.storage).upsert(upserted)

    def mark(self, marks: Mapping[str, Sequence[int]]) -> None:
        """Commit deletion vectors, by the names of their files, which replace all existing ones."""
        bucket = self.bucket
        entry = write_vectors(
            self.keyed, bucket, {name: DeletionVector(rows) for name, rows in marks.items()}
        )
        assert entry is not None
        change = Change(kind="OVERWRITE", index_deleted=bucket.vectors, index_added=[entry])
        commit(self.table, change)

    def commit(self, compaction: BucketCompaction | None) -> None:
        """Commit a compaction."""
        assert compaction is not None
        commit(self.table, compact_change([compaction]))

    @property
    def marks(self) -> dict[str, list[int]]:
        """The marked rows of each file."""
        vectors = read_vectors(self.keyed, self.bucket)
        return {name: list(vector) for name, vector in vectors.items()}

    @property
    def levels(self) -> dict[str, int]:
        """The level of each file."""
        return {file.file.name: file.file.level for file in self.bucket.files}

    def rows(self, *, merge_on_read: bool = False) -> dict[int, str]:
        """The rows that are read; no key twice."""
        table = PaimonTable(self.table.storage, merge_on_read=merge_on_read)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*not yet compacted", AlcidWarning)
            listed = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
        assert len({row["id"] for row in listed}) == len(listed)
        return {row["id"]: row["v"] for row in sorted(listed, key=lambda row: row["id"])}
