"""Whole tables under Paimon's Java, with index files that we wrote.

Its classes of tables are not public, so that some methods are called through their interface. Data
files are Avro: the bundle needs Hadoop to write Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from alcid.formats.deletion_vector import WrittenVectors
from tests.golden.paimon_jvm import PaimonJvm


def call(jvm: PaimonJvm, interface: str, name: str, target: Any) -> Any:
    """Call a method without parameters through an interface of Paimon."""
    handle = jvm.method(f"org.apache.paimon.{interface}", name, 0).bindTo(target)
    return handle.invokeWithArguments(jvm.java.util.ArrayList())


def java_list(jvm: PaimonJvm, items: Iterable[Any]) -> Any:
    """A list that stays in Java."""
    made = jvm.java.util.ArrayList()
    for item in items:
        made.add(item)
    return made


def open_table(jvm: PaimonJvm, path: Path) -> Any:
    """An existing table."""
    files = jvm.paimon.fs.local.LocalFileIO()
    return jvm.paimon.table.FileStoreTableFactory.create(files, jvm.paimon.fs.Path(str(path)))


def create_table(
    jvm: PaimonJvm, path: Path, types: Mapping[str, str], options: Mapping[str, str]
) -> Any:
    """A new table; the columns that are NOT NULL are its primary key."""
    builder = jvm.paimon.schema.Schema.newBuilder().option("file.format", "avro")
    for column, data_type in types.items():
        nullable = jvm.data_type(data_type.removesuffix(" NOT NULL"))
        key = data_type.endswith(" NOT NULL")
        builder.column(column, nullable.notNull() if key else nullable)
    keys = [column for column, data_type in types.items() if data_type.endswith(" NOT NULL")]
    if keys:
        builder.primaryKey(java_list(jvm, keys))
    for option, value in options.items():
        builder.option(option, value)
    files = jvm.paimon.fs.local.LocalFileIO()
    jvm.paimon.schema.SchemaManager(files, jvm.paimon.fs.Path(str(path))).createTable(
        builder.build()
    )
    return open_table(jvm, path)


def commit(jvm: PaimonJvm, table: Any, messages: Any) -> None:
    """Commit what writers, or we, have prepared."""
    builder = call(jvm, "table.Table", "newBatchWriteBuilder", table)
    committer = call(jvm, "table.sink.BatchWriteBuilder", "newCommit", builder)
    committer.commit(messages)
    committer.close()


def write_ids(
    jvm: PaimonJvm, table: Any, ids: Iterable[int], buckets: Mapping[int, int] | None = None
) -> None:
    """Write rows of one INT column in one commit, into the given buckets, if any."""
    builder = call(jvm, "table.Table", "newBatchWriteBuilder", table)
    writer = call(jvm, "table.sink.BatchWriteBuilder", "newWrite", builder)
    for number in ids:
        row = jvm.paimon.data.GenericRow(1)
        row.setField(0, number)
        if buckets is None:
            writer.write(row)
        else:
            writer.write(row, buckets[number])
    commit(jvm, table, writer.prepareCommit())
    writer.close()


def read_ids(jvm: PaimonJvm, table: Any) -> list[int]:
    """The first column, INT, in the order of reading."""
    builder = call(jvm, "table.Table", "newReadBuilder", table)
    ids: list[int] = []
    for split in builder.newScan().plan().splits():
        rows = jvm.paimon.reader.RecordReaderIterator(builder.newRead().createReader(split))
        while rows.hasNext():
            ids.append(rows.next().getInt(0))
        rows.close()
    return ids


def file_meta(jvm: PaimonJvm, name: str, written: WrittenVectors) -> Any:
    """What the manifest says about a file of vectors that we wrote."""
    ranges = jvm.java.util.LinkedHashMap()
    for part in written.ranges:
        cardinality = jvm.java.lang.Long.valueOf(str(part.cardinality))
        arguments = (part.data_file, part.offset, part.length, cardinality)
        ranges.put(part.data_file, jvm.paimon.index.DeletionVectorMeta(*arguments))
    sizes = (len(written.data), len(written.ranges))
    return jvm.paimon.index.IndexFileMeta("DELETION_VECTORS", name, *sizes, ranges, None)


def commit_vectors(jvm: PaimonJvm, path: Path, written: WrittenVectors) -> None:
    """Put a file of vectors into the table at this path, which has none, and commit it."""
    name = "index-ours-0"
    (path / "index").mkdir(exist_ok=True)
    (path / "index" / name).write_bytes(written.data)
    metas = java_list(jvm, [file_meta(jvm, name, written)])
    message = jvm.paimon.table.sink.CommitMessageImpl(
        jvm.paimon.data.BinaryRow.EMPTY_ROW,
        0,
        None,
        jvm.paimon.io.DataIncrement.indexIncrement(metas),
        jvm.paimon.io.CompactIncrement.emptyIncrement(),
    )
    commit(jvm, open_table(jvm, path), java_list(jvm, [message]))
