"""Whole tables in the hands of a released Paimon: its Java writes, deletes, compacts and reads.

Paimon's connectors hand rows to these classes, and commit what they return; there is no engine
here, so that a JVM with the bundle is enough. PySpark lends its Hadoop, without which Paimon has no
Parquet. Rows cross as Parquet files, which Paimon's own format reads and writes.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.jvm import fetch_jar, java_gateway, spark_jars
from tests.golden.paimon_jvm import BUNDLE, PaimonJvm
from tests.golden.paimon_upkeep import JavaUpkeep
from tests.golden.values import Json

# The newest release has no bundle; its connector for Flink holds the same classes.
NEWEST_VERSION = "2.0.0"
NEWEST = f"org.apache.paimon:paimon-flink-2.0:{NEWEST_VERSION}"

RowKind = Literal["+I", "+U", "-U", "-D"]


@contextmanager
def java_paimon(artifact: str = BUNDLE) -> Iterator[JavaPaimon]:
    """Start a JVM for tables; it ends with the block."""
    with (
        tempfile.TemporaryDirectory() as folder,
        java_gateway(fetch_jar(artifact), spark_jars()) as gateway,
    ):
        yield JavaPaimon(PaimonJvm(gateway), Path(folder))


class JavaPaimon(JavaUpkeep):
    """Tables, each named by its folder. What changes a table is one commit, as one statement is.

    A column's type is SQL text, or the object that Paimon's schema file has for a nested type:
    `{"type": "ARRAY", "element": "INT"}`. A predicate is `{"column", "function", "literals"}`, or
    `{"and": [...]}` or `{"or": [...]}` of such, with literals in their JSON form.
    """

    def __init__(self, jvm: PaimonJvm, folder: Path) -> None:
        super().__init__(jvm, folder)
        self._parquet = jvm.paimon.format.FileFormat.fromIdentifier(
            "parquet", jvm.paimon.options.Options()
        )

    # -- schemas -------------------------------------------------------------------------------

    def create(
        self,
        table: Path,
        columns: Mapping[str, Json],
        *,
        partition_keys: Sequence[str] = (),
        primary_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> Path:
        """Make a table without rows."""
        fields = [
            {"id": number, "name": name, "type": kind}
            for number, (name, kind) in enumerate(columns.items())
        ]
        keys = {"partitionKeys": list(partition_keys), "primaryKeys": list(primary_keys)}
        text = json.dumps({"fields": fields, **keys, "options": options or {}, "comment": None})
        kind = self.jvm.java.lang.Class.forName("org.apache.paimon.schema.Schema")
        schema = self.jvm.paimon.utils.JsonSerdeUtil.fromJson(text, kind)
        self._schemas(table).createTable(schema)
        return table

    def _schemas(self, table: Path) -> Any:
        return self.jvm.paimon.schema.SchemaManager(
            self._files, self.jvm.paimon.fs.Path(str(table))
        )

    def alter(self, table: Path, change: str, *arguments: str) -> None:
        """Make one `SchemaChange`: `renameColumn`, `addColumn`, `updateColumnType`, ...

        The second argument of the last two is an SQL type.
        """
        given: list[Any] = list(arguments)
        if change in ("addColumn", "updateColumnType"):
            given[1] = self.jvm.data_type(given[1])
        made = getattr(self.jvm.paimon.schema.SchemaChange, change)(*given)
        self._schemas(table).commitChanges(self.items([made]))

    def alter_within(self, table: Path, change: str, path: Sequence[str], *arguments: str) -> None:
        """Make a `SchemaChange` of a field within a column."""
        gateway = self.jvm.gateway
        names = gateway.new_array(gateway.jvm.java.lang.String, len(path))
        for number, name in enumerate(path):
            names[number] = name
        given: list[Any] = list(arguments)
        if change == "addColumn":
            given = [self.jvm.data_type(given[0]), None, None]
        made = getattr(self.jvm.paimon.schema.SchemaChange, change)(names, *given)
        self._schemas(table).commitChanges(self.items([made]))

    # -- writing -------------------------------------------------------------------------------

    def write(
        self,
        table: Path,
        rows: pa.Table,
        kind: RowKind = "+I",
        *,
        overwrite: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows of one kind, in place of a partition (`{}`: of all rows) where one is given.

        The options are those of this write: `{"write-only": "true"}` leaves files on level 0.
        """
        opened = self._open(table, options)
        builder = self.call("table.Table", "newBatchWriteBuilder", opened)
        if overwrite is not None:
            builder = builder.withOverwrite(self._map(overwrite))
        writer = self.call("table.sink.BatchWriteBuilder", "newWrite", builder)
        writer.withIOManager(self._io_manager())
        self._write_rows(opened, writer, self._read_file(rows, opened), kind)
        committer = self.call("table.sink.BatchWriteBuilder", "newCommit", builder)
        committer.commit(writer.prepareCommit())
        committer.close()
        writer.close()

    def _read_file(self, rows: pa.Table, opened: Any) -> Any:
        """Rows as Paimon's reader of a Parquet file."""
        path = self._folder / "rows.parquet"
        pq.write_table(
            rows, path, store_decimal_as_integer=True, use_deprecated_int96_timestamps=True
        )
        row_type = self.call("table.Table", "rowType", opened)
        location = self.jvm.paimon.fs.Path(str(path))
        place = self.jvm.paimon.format.FormatReaderContext(
            self._files, location, path.stat().st_size
        )
        factory = self._parquet.createReaderFactory(row_type, row_type, self.items([]))
        return self.call("format.FormatReaderFactory", "createReader", factory, place)

    def _write_rows(self, opened: Any, writer: Any, reader: Any, kind: RowKind) -> None:
        jvm = self.jvm
        row_kind = jvm.paimon.types.RowKind.fromShortString(kind)
        if self.call("table.FileStoreTable", "bucketMode", opened).toString() == "HASH_DYNAMIC":
            self._write_by_hash(opened, writer, reader, row_kind)
            return
        handles = jvm.java.lang.invoke.MethodHandles
        write = jvm.method("org.apache.paimon.table.sink.TableWrite", "write", 1).bindTo(writer)
        give = jvm.method("org.apache.paimon.data.InternalRow", "setRowKind", 1)
        give = handles.insertArguments(give, 1, self.items([row_kind]).toArray())
        both = jvm.interface("Consumer", handles.foldArguments(write, give))
        self.call("reader.RecordReader", "forEachRemaining", reader, both)

    def _write_by_hash(self, opened: Any, writer: Any, reader: Any, row_kind: Any) -> None:
        """Write to dynamic buckets, with one assigner."""
        store = self._store(opened)
        core = self.call("FileStore", "options", store)
        extractor = self.jvm.paimon.table.sink.RowPartitionKeyExtractor(opened.schema())
        assigner = self.jvm.paimon.index.HashBucketAssigner(
            self.call("FileStore", "snapshotManager", store),
            "golden",
            self.call("FileStore", "newIndexFileHandler", store),
            1,
            1,
            0,
            core.dynamicBucketTargetRowNum(),
            core.dynamicBucketMaxBuckets(),
        )
        rows = self.jvm.paimon.reader.RecordReaderIterator(reader)
        while rows.hasNext():
            row = rows.next()
            row.setRowKind(row_kind)
            key = extractor.trimmedPrimaryKey(row).hashCode()
            writer.write(row, assigner.assign(extractor.partition(row), key))
        rows.close()

    # -- reading -------------------------------------------------------------------------------

    def read(
        self,
        table: Path,
        where: Json = None,
        columns: Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
        *,
        exact: bool = True,
    ) -> pa.Table:
        """The rows, in the order of reading; or those that statistics and indexes leave.

        The options are those of this read: `{"scan.snapshot-id": "2"}`, `{"scan.tag-name": "old"}`.
        """
        # Paimon does not execute a filter of columns that are not read.
        projected = columns if where is None else None
        builder = self._read_builder(self._open(table, options), where, projected)
        read = builder.newRead().withIOManager(self._io_manager())
        if exact:
            read = read.executeFilter()
        path = self._folder / "found.parquet"
        out = self._files.newOutputStream(self.jvm.paimon.fs.Path(str(path)), True)
        factory = self._parquet.createWriterFactory(builder.readType())
        writer = self.call("format.FormatWriterFactory", "create", factory, out, "none")
        handle = self.jvm.method("org.apache.paimon.format.FormatWriter", "addElement", 1)
        consumer = self.jvm.interface("Consumer", handle.bindTo(writer))
        for split in builder.newScan().plan().splits():
            reader = read.createReader(split)
            self.call("reader.RecordReader", "forEachRemaining", reader, consumer)
        writer.close()
        out.close()
        found = pq.read_table(path)
        for number, field in enumerate(builder.readType().getFields()):
            zoned = "WITH LOCAL TIME ZONE" in field.type().toString()
            if zoned and found.schema.types[number] == pa.timestamp("ns"):  # INT96 has no zone
                column = found.column(number).cast(pa.timestamp("ns", "UTC"))
                found = found.set_column(number, field.name(), column)
        return found.select(columns) if columns is not None else found

    def planned_files(self, table: Path, where: Json = None) -> list[str]:
        """The names of the data files that it would open, sorted."""
        splits = self._read_builder(self._open(table), where, None).newScan().plan().splits()
        return sorted(file.fileName() for split in splits for file in split.dataFiles())
