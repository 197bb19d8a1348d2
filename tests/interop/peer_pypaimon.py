"""The peer's side: pypaimon, in a separate environment and process.

Reads one request a line, as JSON, and answers each with one line: `{"answer": ...}`, or
`{"error": traceback}`. Columns come as Arrow files. It imports nothing of this
project.

    python peer_pypaimon.py warehouse
"""

from __future__ import annotations

import json
import shutil
import sys
import traceback
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.deletionvectors.bitmap_deletion_vector import BitmapDeletionVector
from pypaimon.deletionvectors.deletion_vector import DeletionVector
from pypaimon.index.deletion_vector_meta import DeletionVectorMeta
from pypaimon.index.dynamic_bucket import (
    HashBucketAssigner,
    compute_assigner,
    is_my_bucket,
    to_signed_int32,
)
from pypaimon.index.index_file_meta import IndexFileMeta
from pypaimon.manifest.index_manifest_entry import IndexManifestEntry
from pypaimon.manifest.index_manifest_file import IndexManifestFile
from pypaimon.schema.data_types import AtomicType, DataField
from pypaimon.table.file_store_table import FileStoreTable
from pypaimon.table.source.deletion_file import DeletionFile
from pypaimon.write.commit_message import CommitMessage
from pypaimon.write.row_key_extractor import RowKeyExtractor, _bucket_from_hash

# pypaimon's names for the functions of predicates that are not just lower case.
FUNCTIONS = {
    "IN": "is_in",
    "NOT_IN": "is_not_in",
    "STARTS_WITH": "startswith",
    "ENDS_WITH": "endswith",
}


def arrow_table(path: str) -> Any:
    with pa.memory_map(path) as source:
        return pa.ipc.open_file(source).read_all()


def predicate(builder: Any, question: dict[str, Any]) -> Any:
    """A predicate of `{"column", "function", "literals"}`, or of `and` or `or` of such."""
    for word in ("and", "or"):
        if word in question:
            parts = [predicate(builder, part) for part in question[word]]
            return getattr(builder, f"{word}_predicates")(parts)
    function = question["function"]
    call = getattr(builder, FUNCTIONS.get(function, function.lower()))
    literals = question["literals"]
    arguments = [literals] if function in ("IN", "NOT_IN") else literals
    return call(question["column"], *arguments)


class Warehouse:
    """Every public method is a request; its arguments are the members of the JSON object."""

    def __init__(self, folder: str) -> None:
        self.catalog: Any = CatalogFactory.create({"warehouse": folder})
        self.catalog.create_database("db", False)

    def _table(self, name: str) -> Any:
        """A table of this warehouse, or the one at a path."""
        if name.startswith("/"):
            return FileStoreTable.from_path(name)
        return self.catalog.get_table(f"db.{name}")

    def _commit(self, builder: Any, messages: list[Any]) -> None:
        commit = builder.new_commit()
        commit.commit(messages)
        commit.close()

    # -- tables --------------------------------------------------------------------------------

    def create(
        self,
        table: str,
        arrow: str,
        keys: list[str],
        partition_keys: list[str],
        options: dict[str, str],
    ) -> None:
        """Make a table of the columns of an Arrow file, whose rows are not written."""
        schema = Schema.from_pyarrow_schema(
            arrow_table(arrow).schema,
            partition_keys=partition_keys or None,
            primary_keys=keys or None,
            options=options,
        )
        self.catalog.create_table(f"db.{table}", schema, False)

    def write(self, table: str, arrow: str) -> None:
        builder = self._table(table).new_batch_write_builder()
        writer = builder.new_write()
        writer.write_arrow(arrow_table(arrow))
        self._commit(builder, writer.prepare_commit())
        writer.close()

    def read(
        self,
        table: str,
        arrow: str,
        where: dict[str, Any] | None,
        columns: list[str] | None,
        options: dict[str, str],
    ) -> None:
        """Write the matching rows to an Arrow file."""
        opened = self._table(table)
        builder = (opened.copy(options) if options else opened).new_read_builder()
        if where is not None:
            builder = builder.with_filter(predicate(builder.new_predicate_builder(), where))
        if columns is not None:
            builder = builder.with_projection(columns)
        rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        with pa.OSFile(arrow, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)

    def snapshots(self, table: str) -> list[list[Any]]:
        """The id and the kind of every snapshot."""
        snapshots = self._table(table).snapshot_manager().list_snapshots()
        return [[snapshot.id, snapshot.commit_kind] for snapshot in snapshots]

    def location(self, table: str) -> str:
        return str(self._table(table).table_path)

    def delete(self, table: str, row_ids: list[int]) -> None:
        builder = self._table(table).new_batch_write_builder()
        self._commit(builder, builder.new_update().delete_by_row_id(row_ids))

    def column(self, table: str, column: str) -> dict[int, list[Any]]:
        """The values of a column in the order of reading, for each bucket."""
        builder = self._table(table).new_read_builder()
        values: dict[int, list[Any]] = {}
        for split in builder.new_scan().plan().splits():
            rows = builder.new_read().to_arrow([split])
            values.setdefault(split.bucket, []).extend(rows.column(column).to_pylist())
        return values

    def _entries(self, table: Any) -> list[Any]:
        snapshot = table.snapshot_manager().get_latest_snapshot()
        if not snapshot.index_manifest:
            return []
        return list(IndexManifestFile(table).read(snapshot.index_manifest))

    def index_files(self, table: str) -> list[dict[str, Any]]:
        """The live index files, with the vectors that the manifest lists in them."""
        opened = self._table(table)
        factory = opened.path_factory()
        return [
            {
                "bucket": entry.bucket,
                "type": entry.index_file.index_type,
                "rows": entry.index_file.row_count,
                "path": factory.bucket_index_path(
                    tuple(entry.partition.values), entry.bucket, entry.index_file, opened.file_io
                ),
                "ranges": [
                    [name, meta.offset, meta.length, meta.cardinality]
                    for name, meta in (entry.index_file.dv_ranges or {}).items()
                ],
            }
            for entry in self._entries(opened)
        ]

    def replace_vectors(self, table: str, path: str, size: int, ranges: list[list[Any]]) -> None:
        """Commit a file of vectors that replaces the live one."""
        opened = self._table(table)
        (old,) = self._entries(opened)
        name = f"{old.index_file.file_name}-1"
        shutil.copy(path, opened.path_factory().new_bucket_index_path((), old.bucket, name)[0])
        metas = {
            data_file: DeletionVectorMeta(data_file, offset, length, cardinality)
            for data_file, offset, length, cardinality in ranges
        }
        meta = IndexFileMeta(old.index_file.index_type, name, size, len(metas), metas)
        add = IndexManifestEntry(0, old.partition, old.bucket, meta)
        remove = IndexManifestEntry(1, old.partition, old.bucket, old.index_file)
        message = CommitMessage((), old.bucket, [], index_adds=[add], index_deletes=[remove])
        self._commit(opened.new_batch_write_builder(), [message])

    # -- formats -------------------------------------------------------------------------------

    def read_vectors(self, path: str, ranges: list[list[Any]]) -> dict[str, list[int]]:
        """The positions of the vectors in an index file."""
        file_io = self.catalog.file_io
        return {
            name: list(DeletionVector.read(file_io, DeletionFile(path, *location)).bit_map())
            for name, *location in ranges
        }

    def vector_bytes(self, positions: list[int]) -> str:
        """A vector built position by position, as hex."""
        vector = BitmapDeletionVector()
        for position in positions:
            vector.delete(position)
        return bytes(vector.serialize()).hex()

    def hashes(self, arrow: str, types: list[str]) -> list[int]:
        """The hash of every row, as used for dynamic buckets."""
        table = arrow_table(arrow)
        fields = [
            DataField(number, name, AtomicType(data_type))
            for number, (name, data_type) in enumerate(zip(table.column_names, types, strict=True))
        ]
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return [to_signed_int32(RowKeyExtractor._binary_row_hash_code(row, fields)) for row in rows]

    def empty_row_hash(self) -> int:
        return int(to_signed_int32(RowKeyExtractor._binary_row_hash_code((), [])))

    def assigners(
        self, partition_hash: int, hashes: list[int], channels: int, assigners: int
    ) -> list[int]:
        return [compute_assigner(partition_hash, key, channels, assigners) for key in hashes]

    def fixed_buckets(self, hashes: list[int], buckets: int) -> list[int]:
        return [_bucket_from_hash(key & 0xFFFFFFFF, buckets) for key in hashes]

    def assign(self, hashes: list[int], target: int, limit: int) -> list[int]:
        """The buckets that an assigner gives to keys of a table without rows."""
        assigner = HashBucketAssigner(None, 1, 1, 0, target, limit, snapshot=None)
        return [assigner.assign((), self.empty_row_hash(), key) for key in hashes]

    def own_buckets(self, buckets: int, assigners: int, assigner: int) -> list[int]:
        return [bucket for bucket in range(buckets) if is_my_bucket(bucket, assigners, assigner)]


def main() -> None:
    """Serve until the input ends."""
    warehouse = Warehouse(sys.argv[1])
    print(json.dumps({"answer": "ready"}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"answer": getattr(warehouse, request.pop("request"))(**request)}
        except Exception:  # noqa: BLE001 - whatever it is, the test that asked shows it
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
