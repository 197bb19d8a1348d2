"""Make the golden files of Paimon's table indexes, from the released jar.

    python -m tests.golden.make_table_index_java

Needs Java, Maven, py4j and the network. Takes about a minute; writes the same files every time.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.golden.binary_row_cases import Rows, cases
from tests.golden.java_deletion_vectors import write_deletion_vectors
from tests.golden.paimon_jvm import VERSION, PaimonJvm, paimon_jvm
from tests.golden.values import Json, save

GOLDEN = Path(__file__).resolve().parent
WRITER: dict[str, Json] = {"writer": "paimon-java", "version": VERSION}
FOLDER = GOLDEN / "table-index" / f"paimon-java-{VERSION}"
VECTORS = GOLDEN / "deletion-vectors" / f"paimon-java-{VERSION}"


class Keys:
    """The partition and the trimmed primary key of rows, as a writer of a table takes them."""

    def __init__(self, jvm: PaimonJvm, types: Sequence[str]) -> None:
        self.jvm = jvm
        self.types = types
        self.partition = self._extractor(keys="partition").partition
        self.primary_key = self._extractor(keys="primary").trimmedPrimaryKey

    def _extractor(self, keys: str) -> Any:
        """The extractor of a table whose columns all belong to that key, which has no nulls."""
        fields, names = self.jvm.java.util.ArrayList(), self.jvm.java.util.ArrayList()
        for number, kind in enumerate(self.types):
            data_type = self.jvm.data_type(kind)
            data_type = data_type.notNull() if keys == "primary" else data_type
            fields.add(self.jvm.paimon.types.DataField(number, f"c{number}", data_type))
            names.add(f"c{number}")
        none, options = self.jvm.java.util.ArrayList(), self.jvm.java.util.HashMap()
        columns = (names, none) if keys == "partition" else (none, names)
        schema = self.jvm.paimon.schema.TableSchema(
            0, fields, len(self.types), *columns, options, None
        )
        return self.jvm.paimon.table.sink.RowPartitionKeyExtractor(schema)

    def binary_rows(self, rows: Sequence[Sequence[Json]]) -> Iterator[Any]:
        """The `BinaryRow` of each row, valid until the next one."""
        columns = [
            self.jvm.values(kind, [row[position] for row in rows])
            for position, kind in enumerate(self.types)
        ]
        row_of = self.jvm.method("org.apache.paimon.data.GenericRow", "of", 1)
        for number, row in enumerate(rows):
            items = self.jvm.java.util.ArrayList()
            for column in columns:
                items.addAll(column.subList(number, number + 1))
            java_row = row_of.invokeWithArguments(items)
            result = self.partition(java_row)
            if row and None not in row:
                key = self.primary_key(java_row)
                assert bytes(key.toBytes()) == bytes(result.toBytes())
            yield result


def write_rows(jvm: PaimonJvm, case: Rows) -> None:
    """Bytes and hash of every row."""
    rows = []
    digest = hashlib.sha256()
    made = Keys(jvm, case.types).binary_rows(case.rows)
    for values, row in zip(case.rows, made, strict=True):
        data = bytes(row.toBytes())
        digest.update(data)
        written: dict[str, Json] = {} if case.brief else {"bytes": data.hex()}
        rows.append({"values": values, **written, "hash": row.hashCode()})
    facts: dict[str, Json] = {"kind": "binary_rows", **WRITER, "types": case.types}
    save(FOLDER, f"rows_{case.name}", facts | {"sha256": digest.hexdigest(), "rows": rows})


def write_formula(jvm: PaimonJvm) -> None:
    """Which assigner is responsible for a key, and for a bucket."""
    chance = random.Random(1)
    lowest, highest = -(2**31), 2**31 - 1
    arguments = [
        (lowest, lowest, 5, 3),
        (lowest, highest, 7, 7),
        (highest, lowest, 1, 1),
        (0, 0, 1, 1),
    ]
    arguments += [(-1, 1, 2**31 - 1, 2**31 - 1)]
    while len(arguments) < 500:
        channels = chance.choice((1, 2, 3, 5, 8, 13, 100, 32_767))
        assigners = chance.randint(1, channels)
        partition, key = (
            chance.choice((lowest, chance.randint(lowest, highest))) for _ in range(2)
        )
        arguments.append((partition, key, channels, assigners))
    formula = jvm.paimon.index.BucketAssigner
    rows = [
        [*row, formula.computeHashKey(*row), formula.computeAssigner(*row)] for row in arguments
    ]
    owners = [
        [bucket, assigners, assigner, formula.isMyBucket(bucket, assigners, assigner)]
        for bucket in (0, 1, 2, 5, 6, 32_766)
        for assigners in (1, 2, 3, 5)
        for assigner in range(6)
    ]
    facts: dict[str, Json] = {"kind": "assigner", **WRITER}
    facts["columns"] = ["partition_hash", "key_hash", "channels", "assigners"]
    facts["columns"] += ["hash_key", "assigner"]
    facts["rows"] = rows
    facts["bucket_columns"] = ["bucket", "assigners", "assigner", "mine"]
    facts["buckets"] = owners
    save(FOLDER, "assigner", facts)


def write_assignments(jvm: PaimonJvm, table: Any) -> None:
    """Buckets of hashes in the order of arrival, as both assigners give them from nothing."""
    chance = random.Random(2)
    empty = jvm.paimon.data.BinaryRow.EMPTY_ROW
    rows = []
    for assigners, me, target in ((1, 0, 5), (3, 1, 4), (2, 0, 1), (4, 3, 1000)):
        limit = -1  # beyond a limit the choice is random
        hashes = [chance.randint(-(2**31), 2**31 - 1) for _ in range(60)]
        hashes += [chance.choice(hashes) for _ in range(30)] + hashes[:10]
        # An assigner is asked for its own hashes only; the partition is that of no columns.
        own = [
            number
            for number in hashes
            if jvm.paimon.index.BucketAssigner.computeAssigner(
                empty.hashCode(), number, assigners, assigners
            )
            == me
        ]
        simple = jvm.paimon.index.SimpleHashBucketAssigner(assigners, me, target, limit)
        known_hashes = jvm.paimon.index.HashBucketAssigner(
            table.snapshotManager(),
            "golden",
            table.store().newIndexFileHandler(),
            assigners,
            assigners,
            me,
            target,
            limit,
        )
        for kind, assigner in (("simple", simple), ("incremental", known_hashes)):
            buckets = [assigner.assign(empty, number) for number in own]
            setting = {"assigners": assigners, "assigner": me, "target_row_num": target}
            rows.append({"algorithm": kind, **setting, "hashes": own, "buckets": buckets})
    save(FOLDER, "assignments", {"kind": "assignments", **WRITER, "rows": rows})


def write_hash_files(jvm: PaimonJvm, table: Any) -> None:
    """Hash files: of an array as it is, and of keys by the set that a bucket's writer keeps."""
    handler = table.store().newIndexFileHandler()
    empty = jvm.paimon.data.BinaryRow.EMPTY_ROW
    file = handler.hashIndex(empty, 0)
    lists = {
        "empty": [],
        "one": [0],
        "edges": [2**31 - 1, -(2**31), 0, -1, 1, 65_536, -65_536],
        "repeated": [7, -7, 7, 7, 3],  # a reader must accept what no writer leaves
    }
    for name, hashes in lists.items():
        array = jvm.gateway.new_array(jvm.gateway.jvm.int, len(hashes))
        for index, number in enumerate(hashes):
            array[index] = number
        _save_hash_file(name, file, file.write(array), {})
    factory = jvm.paimon.index.DynamicBucketIndexMaintainer.Factory(handler)
    previous = None
    for name, first, end in (("keys", 0, 1500), ("keys_grown", 1200, 1700)):
        maintainer = factory.create(empty, 0, previous)
        for key in Keys(jvm, ["BIGINT"]).binary_rows([[number] for number in range(first, end)]):
            maintainer.notifyNewRecord(jvm.paimon.KeyValue().replaceKey(key))
        previous = maintainer.prepareCommit().get(0)
        _save_hash_file(name, file, previous, {"keys": {"type": "BIGINT", "range": [0, end]}})


def _save_hash_file(name: str, file: Any, meta: Any, extra: dict[str, Json]) -> None:
    data = Path(file.path(meta).toString()).read_bytes()
    hashes = list(file.readList(meta))  # as Paimon reads them back
    facts: dict[str, Json] = {"kind": "hash_index", **WRITER, "index_type": meta.indexType()}
    facts |= {"row_count": meta.rowCount(), **extra, "stored": hashes}
    save(FOLDER, f"hash_{name}", facts, data)


def make_table(jvm: PaimonJvm, folder: Path, name: str, options: dict[str, str]) -> Any:
    """A table of one key column, whose index files are written under the folder."""
    builder = jvm.paimon.schema.Schema.newBuilder()
    builder.column("id", jvm.data_type("BIGINT").notNull())
    keys = jvm.java.util.ArrayList()
    keys.add("id")
    builder.primaryKey(keys)
    for key, value in options.items():
        builder.option(key, value)
    files = jvm.paimon.fs.local.LocalFileIO()
    path = jvm.paimon.fs.Path(str(folder / name))
    jvm.paimon.schema.SchemaManager(files, path).createTable(builder.build())
    return jvm.paimon.table.FileStoreTableFactory.create(files, path)


def main() -> None:
    """Make both folders again."""
    for folder in (FOLDER, VECTORS):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    with paimon_jvm() as jvm, tempfile.TemporaryDirectory() as temporary:
        for case in cases():
            write_rows(jvm, case)
        write_formula(jvm)
        table = make_table(jvm, Path(temporary), "hashes", {"bucket": "-1"})
        write_assignments(jvm, table)
        write_hash_files(jvm, table)
        write_deletion_vectors(jvm, VECTORS, partial(make_table, jvm, Path(temporary)))
    for folder in (FOLDER, VECTORS):
        files = sorted(folder.iterdir())
        size = sum(file.stat().st_size for file in files)
        print(f"{len(files)} files, {size} bytes in {folder.relative_to(GOLDEN)}")


if __name__ == "__main__":
    main()
