"""Rows that Paimon's Java writes: in one commit, or with a writer that stays open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.paimon_calls import JavaCalls

RowKind = Literal["+I", "+U", "-U", "-D"]


class JavaWriting(JavaCalls):
    """The ways to write rows. Where several kinds are given, there is one for each row."""

    def write(
        self,
        table: Path,
        rows: pa.Table,
        kind: RowKind | Sequence[RowKind] = "+I",
        *,
        overwrite: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows; they replace a partition (`{}`: all rows) if one is given.

        The options are those of this write: `{"write-only": "true"}` leaves files on level 0.
        """
        opened = self._open(table, options)
        builder = self.call("table.Table", "newBatchWriteBuilder", opened)
        if overwrite is not None:
            builder = builder.withOverwrite(self._map(overwrite))
        writer = self.call("table.sink.BatchWriteBuilder", "newWrite", builder)
        writer.withIOManager(self._io_manager())
        _Sink(self, opened, writer).write(rows, kind)
        committer = self.call("table.sink.BatchWriteBuilder", "newCommit", builder)
        committer.commit(writer.prepareCommit())
        committer.close()
        writer.close()

    def open_writer(self, table: Path, options: Mapping[str, str] | None = None) -> JavaWriter:
        """A writer as in a long-running job."""
        return JavaWriter(self, table, options)

    def read_file(self, rows: pa.Table, opened: Any) -> Any:
        """Rows as Paimon's reader of a Parquet file."""
        path = self._folder / "rows.parquet"
        pq.write_table(
            rows, path, store_decimal_as_integer=True, use_deprecated_int96_timestamps=True
        )
        row_type = self.call("table.Table", "rowType", opened)
        location = self.jvm.paimon.fs.Path(str(path))
        context = self.jvm.paimon.format.FormatReaderContext(
            self._files, location, path.stat().st_size
        )
        factory = self._parquet.createReaderFactory(row_type, row_type, self.items([]))
        return self.call("format.FormatReaderFactory", "createReader", factory, context)

    def new_assigner(self, opened: Any) -> Any:
        """Assigns dynamic buckets to keys, the only one of its table; None for other buckets."""
        if self.call("table.FileStoreTable", "bucketMode", opened).toString() != "HASH_DYNAMIC":
            return None
        store = self._store(opened)
        core = self.call("FileStore", "options", store)
        return self.jvm.paimon.index.HashBucketAssigner(
            self.call("FileStore", "snapshotManager", store),
            "golden",
            self.call("FileStore", "newIndexFileHandler", store),
            1,
            1,
            0,
            core.dynamicBucketTargetRowNum(),
            core.dynamicBucketMaxBuckets(),
        )


class JavaWriter:
    """A writer that stays open; it ends with the block.

    It knows a bucket, and the hashes of a partition's keys, as they were when it first wrote there.
    """

    def __init__(self, java: JavaWriting, table: Path, options: Mapping[str, str] | None) -> None:
        opened = java._open(table, options)
        builder = java.call("table.Table", "newStreamWriteBuilder", opened)
        self._writer = java.call("table.sink.StreamWriteBuilder", "newWrite", builder)
        self._writer.withIOManager(java._io_manager())
        self._committer = java.call("table.sink.StreamWriteBuilder", "newCommit", builder)
        self._sink = _Sink(java, opened, self._writer)
        self._commits = 0

    def __enter__(self) -> JavaWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._committer.close()
        self._writer.close()

    def write(self, rows: pa.Table, kind: RowKind | Sequence[RowKind] = "+I") -> None:
        """Take rows for a later commit."""
        self._sink.write(rows, kind)

    def commit(self) -> None:
        """Commit the rows since the last commit, and the compactions, if there were any."""
        self._commits += 1
        messages = self._writer.prepareCommit(True, self._commits)
        self._committer.commit(self._commits, messages)


class _Sink:
    """An open writer in Java, and the assigner of buckets to its rows."""

    def __init__(self, java: JavaWriting, opened: Any, writer: Any) -> None:
        self._java, self._opened, self._writer = java, opened, writer
        self._assigner = java.new_assigner(opened)

    def write(self, rows: pa.Table, kind: RowKind | Sequence[RowKind]) -> None:
        names = [kind] * len(rows) if isinstance(kind, str) else list(kind)
        assert len(names) == len(rows)
        kinds = self._java.jvm.paimon.types.RowKind
        kind_of_name = {name: kinds.fromShortString(name) for name in set(names)}
        row_kinds_of_rows = self._java.items(kind_of_name[name] for name in names)
        reader = self._java.read_file(rows, self._opened)
        (self._write_all if self._assigner is None else self._write_by_hash)(
            reader, row_kinds_of_rows
        )

    def _write_all(self, reader: Any, kinds: Any) -> None:
        """Write without a call from Python for each row."""
        jvm = self._java.jvm
        handles = jvm.java.lang.invoke.MethodHandles
        write = jvm.method("org.apache.paimon.table.sink.TableWrite", "write", 1)
        give = jvm.method("org.apache.paimon.data.InternalRow", "setRowKind", 1)
        following = jvm.method("java.util.Iterator", "next", 0).bindTo(kinds.iterator())
        kind = jvm.java.lang.Class.forName("org.apache.paimon.types.RowKind")
        following = following.asType(jvm.java.lang.invoke.MethodType.methodType(kind))
        give = handles.collectArguments(give, 1, following)
        both = jvm.interface("Consumer", handles.foldArguments(write.bindTo(self._writer), give))
        self._java.call("reader.RecordReader", "forEachRemaining", reader, both)

    def _write_by_hash(self, reader: Any, kinds: Any) -> None:
        """Write to dynamic buckets."""
        jvm = self._java.jvm
        extractor = jvm.paimon.table.sink.RowPartitionKeyExtractor(self._opened.schema())
        rows = jvm.paimon.reader.RecordReaderIterator(reader)
        for kind in kinds:
            row = rows.next()
            row.setRowKind(kind)
            key = extractor.trimmedPrimaryKey(row).hashCode()
            self._writer.write(row, self._assigner.assign(extractor.partition(row), key))
        rows.close()
