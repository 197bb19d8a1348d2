"""What Paimon's Java does to an existing table: delete, compact, index, expire, tag."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.golden.paimon_calls import JavaCalls
from tests.golden.values import Json


class JavaUpkeep(JavaCalls):
    """The statements and procedures that write no rows."""

    def delete(self, table: Path, where: Json) -> None:
        """Delete rows of a table that has no primary key, by deletion vectors."""
        opened = self._open(table)
        store = self._store(opened)
        handler = self.call("FileStore", "newIndexFileHandler", store)
        snapshot = self.call("FileStore", "snapshotManager", store).latestSnapshot()
        maintainers = self.jvm.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer
        bucketed = (
            self.call("table.FileStoreTable", "bucketMode", opened).toString() == "HASH_FIXED"
        )
        messages = self.jvm.java.util.ArrayList()
        for (partition, bucket), vectors in self._found_positions(opened, where).items():
            if bucketed:
                owner = maintainers.forBucketedAppend(handler, snapshot, partition, bucket)
            else:
                owner = maintainers.forUnawareAppend(handler, snapshot, partition)
            for name, vector in vectors.items():
                owner.notifyNewDeletionVector(name, vector)
            messages.add(self._index_message(owner))
        self._commit(opened, messages)

    def _found_positions(self, opened: Any, where: Json) -> dict[tuple[Any, int], dict[str, Any]]:
        """For each partition and bucket, the data files with such rows, and their new vectors."""
        vectors = self.jvm.paimon.deletionvectors
        wide = self.call("FileStore", "options", self._store(opened)).deletionVectorBitmap64()
        kind = vectors.Bitmap64DeletionVector if wide else vectors.BitmapDeletionVector
        builder = self._read_builder(opened, where, None)
        files_by_bucket: dict[tuple[Any, int], dict[str, Any]] = {}
        for split in builder.newScan().plan().splits():
            of_bucket = files_by_bucket.setdefault((split.partition(), split.bucket()), {})
            reader = builder.newRead().executeFilter().createReader(split)
            while batch := self.call("reader.RecordReader", "readBatch", reader):
                batches = "reader.FileRecordIterator"
                while self.call(batches, "next", batch) is not None:
                    name = self.call(batches, "filePath", batch).getName()
                    if name not in of_bucket:
                        of_bucket[name] = kind()
                    position = self.call(batches, "returnedPosition", batch)
                    self.call("deletionvectors.DeletionVector", "delete", of_bucket[name], position)
                self.call(batches, "releaseBatch", batch)
            reader.close()
        return {bucket: files for bucket, files in files_by_bucket.items() if files}

    def _index_message(self, owner: Any) -> Any:
        added, removed = self.items([]), self.items([])
        for entry in owner.persist():
            (added if entry.kind().toString() == "ADD" else removed).add(entry.indexFile())
        io = self.jvm.paimon.io
        none = self.items([])
        return self.jvm.paimon.table.sink.CommitMessageImpl(
            owner.getPartition(),
            owner.getBucket(),
            None,
            io.DataIncrement(none, none, none, added, removed),
            io.CompactIncrement.emptyIncrement(),
        )

    def compact(self, table: Path) -> None:
        """Compact every bucket in full."""
        opened = self._open(table)
        if self.call("table.FileStoreTable", "bucketMode", opened).toString() == "BUCKET_UNAWARE":
            tasks = self.jvm.paimon.append.AppendCompactCoordinator(opened, False).run()
            writer = self.call("FileStore", "newWrite", self._store(opened), "golden")
            self._commit(opened, self.items(task.doCompact(opened, writer) for task in tasks))
            writer.close()
            return
        builder = self.call("table.Table", "newBatchWriteBuilder", opened)
        writer = self.call("table.sink.BatchWriteBuilder", "newWrite", builder)
        writer.withIOManager(self._io_manager())
        done = set()
        for entry in self._entries(opened):
            bucket_of_entry = (entry.partition(), entry.bucket())
            if bucket_of_entry not in done:
                done.add(bucket_of_entry)
                writer.compact(*bucket_of_entry, True)
        self._commit(opened, writer.prepareCommit())
        writer.close()

    def rewrite_file_index(self, table: Path) -> None:
        """Give every data file the indexes of the options, as the procedure does."""
        opened = self._open(table)
        process = self.jvm.paimon.index.FileIndexProcessor(opened).process
        io = self.jvm.paimon.io
        messages = self.jvm.java.util.ArrayList()
        for entry in self._entries(opened):
            bucket_of_entry = (entry.partition(), entry.bucket())
            changed = self.items([process(*bucket_of_entry, entry)])
            increment = io.CompactIncrement(self.items([entry.file()]), changed, self.items([]))
            none = io.DataIncrement.emptyIncrement()
            buckets = entry.totalBuckets()
            message = self.jvm.paimon.table.sink.CommitMessageImpl(
                *bucket_of_entry, buckets, none, increment
            )
            messages.add(message)
        self._commit(opened, messages)

    def expire(self, table: Path, keep: int = 1) -> int:
        """Expire all snapshots except for the newest; returns how many there were."""
        config = self.jvm.paimon.options.ExpireConfig.builder()
        config.snapshotRetainMin(keep).snapshotRetainMax(keep)
        expire = self.call("table.Table", "newExpireSnapshots", self._open(table))
        return int(expire.config(config.build()).expire())

    def expire_by_options(self, table: Path) -> int:
        """Expire snapshots as the options of the table say; how many there were."""
        opened = self._open(table)
        config = self.call("FileStore", "options", self._store(opened)).expireConfig()
        expire = self.call("table.Table", "newExpireSnapshots", opened)
        return int(expire.config(config).expire())

    def tag(self, table: Path, name: str, snapshot: int) -> None:
        """Give a name to a snapshot."""
        self.call("table.Table", "createTag", self._open(table), name, snapshot, None)

    def branch(self, table: Path, name: str, tag: str | None = None) -> None:
        """Make a branch: empty, or from a tag; `{"branch": name}` then opens it."""
        # Of two arguments, the second is a tag or a flag: methods are found by their arity.
        java_arguments = [name] if tag is None else [name, tag, False]
        self.call("table.Table", "createBranch", self._open(table), *java_arguments)

    def hash_indexes(self, table: Path) -> dict[tuple[str, int], list[int]]:
        """The hashes of the keys of every dynamic bucket, by the path of its partition."""
        store = self._store(self._open(table))
        handler = self.call("FileStore", "newIndexFileHandler", store)
        paths = self.call("FileStore", "pathFactory", store)
        hashes: dict[tuple[str, int], list[int]] = {}
        for entry in handler.scan("HASH"):
            bucket_of_entry = (entry.partition(), entry.bucket())
            name = (paths.getPartitionString(bucket_of_entry[0]), bucket_of_entry[1])
            assert name not in hashes, f"two hash indexes of {name}"
            hashes[name] = sorted(handler.hashIndex(*bucket_of_entry).readList(entry.indexFile()))
        return hashes
