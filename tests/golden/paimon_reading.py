"""Rows that Paimon's Java reads: of a snapshot, of a bucket, or of later changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.paimon_calls import JavaCalls
from tests.golden.values import Json


class JavaReading(JavaCalls):
    """The ways to read rows."""

    def read(
        self,
        table: Path,
        where: Json = None,
        columns: Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
        *,
        exact: bool = True,
        merged: bool = False,
    ) -> pa.Table:
        """The rows, in the order of reading; or those that statistics and indexes leave.

        The options are those of this read: `{"scan.snapshot-id": "2"}`, `{"scan.tag-name": "old"}`.
        `merged` also shows what no compaction has taken in yet, as seen by a job that begins
        to follow the table.
        """
        # Paimon does not apply filters on columns that are not read.
        projected = columns if where is None else None
        builder = self._read_builder(self._open(table, options), where, projected)
        scan = builder.newStreamScan() if merged else builder.newScan()
        rows, _ = self._rows(builder, scan.plan().splits(), exact=exact)
        return rows.select(columns) if columns is not None else rows

    def system_table(self, table: Path, name: str) -> pa.Table:
        """The rows of a system table: `statistics`, `files`, `snapshots`."""
        loader = self.jvm.paimon.table.system.SystemTableLoader
        builder = self._read_builder(loader.load(name, self._open(table)), None, None)
        return self._rows(builder, builder.newScan().plan().splits())[0]

    def stream(self, table: Path, after: int = 0) -> dict[int, list[tuple[Any, ...]]]:
        """The rows of later snapshots, sorted, as a job that follows the table sees them.

        A row begins with its kind, `("-D", 1, "auk")`. Snapshots without rows are left out.
        """
        opened = self._open(
            table, {"scan.mode": "from-snapshot", "scan.snapshot-id": str(after + 1)}
        )
        builder = self._read_builder(opened, None, None)
        manager = self.call("FileStore", "snapshotManager", self._store(opened))
        latest = manager.latestSnapshotId() or 0
        scan = builder.newStreamScan()
        changes = {}
        while (scan.checkpoint() or after + 1) <= latest:
            splits = scan.plan().splits()
            if splits:
                (snapshot,) = {split.snapshotId() for split in splits}
                rows, kinds = self._rows(builder, splits)
                pairs = zip(kinds, rows.to_pylist(), strict=True)
                changes[snapshot] = sorted(((kind, *row.values()) for kind, row in pairs), key=repr)
        return changes

    def key_buckets(self, table: Path, keys: Sequence[str]) -> list[tuple[tuple[Any, ...], int]]:
        """The buckets of all rows that `merged` shows, with the columns of their key, sorted."""
        builder = self._read_builder(self._open(table), None, keys)
        splits: dict[int, list[Any]] = {}
        for split in builder.newStreamScan().plan().splits():
            splits.setdefault(split.bucket(), []).append(split)
        pairs = []
        for bucket, those in splits.items():
            rows, _ = self._rows(builder, those)
            pairs += [(tuple(row.values()), bucket) for row in rows.to_pylist()]
        return sorted(pairs, key=repr)

    def planned_files(self, table: Path, where: Json = None) -> list[str]:
        """The names of the data files that it would open, sorted."""
        splits = self._read_builder(self._open(table), where, None).newScan().plan().splits()
        return sorted(file.fileName() for split in splits for file in split.dataFiles())

    def _rows(
        self, builder: Any, splits: Iterable[Any], *, exact: bool = True
    ) -> tuple[pa.Table, list[str]]:
        """The rows of splits, and the kind of each."""
        read = builder.newRead().withIOManager(self._io_manager())
        if exact:
            read = read.executeFilter()
        path = self._folder / "found.parquet"
        out = self._files.newOutputStream(self.jvm.paimon.fs.Path(str(path)), True)
        factory = self._parquet.createWriterFactory(builder.readType())
        writer = self.call("format.FormatWriterFactory", "create", factory, out, "none")
        kinds = self.jvm.java.util.ArrayList()
        consumer = self._consumer(writer, kinds)
        for split in splits:
            reader = read.createReader(split)
            self.call("reader.RecordReader", "forEachRemaining", reader, consumer)
        writer.close()
        out.close()
        table = pq.read_table(path)
        for number, field in enumerate(builder.readType().getFields()):
            zoned = "WITH LOCAL TIME ZONE" in field.type().toString()
            if zoned and table.schema.types[number] == pa.timestamp("ns"):  # INT96 has no zone
                column = table.column(number).cast(pa.timestamp("ns", "UTC"))
                table = table.set_column(number, field.name(), column)
        return table, self.jvm.java.lang.String.join("\n", kinds).split()

    def _consumer(self, writer: Any, kinds: Any) -> Any:
        """Receives rows in Java: the kind goes to a list, and the row to a file."""
        handles = self.jvm.java.lang.invoke.MethodHandles
        write = self.jvm.method("org.apache.paimon.format.FormatWriter", "addElement", 1)
        kind = self.jvm.method("org.apache.paimon.data.InternalRow", "getRowKind", 0)
        text = self.jvm.method("org.apache.paimon.types.RowKind", "shortString", 0)
        keep = self.jvm.method("java.util.ArrayList", "add", 1).bindTo(kinds)
        keep = keep.asType(keep.type().changeParameterType(0, text.type().returnType()))
        keep = handles.collectArguments(keep, 0, handles.filterReturnValue(kind, text))
        nothing = self.jvm.java.lang.Void.TYPE
        keep = keep.asType(keep.type().changeReturnType(nothing))
        return self.jvm.interface("Consumer", handles.foldArguments(write.bindTo(writer), keep))
