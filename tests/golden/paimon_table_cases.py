"""The tables of `make_paimon_tables`: what is done to each, and the questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.golden.arrow_values import arrow_array
from tests.golden.container_cases import leaf
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.golden.paimon_type_values import ALL_TYPES, NESTED, all_values
from tests.golden.values import Json, f32, f64


@dataclass(frozen=True)
class Case:
    """A table: how it is made, and the predicates for its latest rows."""

    make: Callable[[JavaPaimon, Path], None]
    questions: list[Json] = field(default_factory=list)


KINDS = ["auk", "puffin", None, "murre", "razorbill"]
BIRDS = {"ring": "INT", "kind": "STRING", "weight": "BIGINT", "wing": "DOUBLE"}
INDEXES = {
    "file-index.bitmap.columns": "kind",
    "file-index.bloom-filter.columns": "ring",
    "file-index.bloom-filter.ring.items": "30",
    "file-index.bsi.columns": "weight",
    "file-index.range-bitmap.columns": "weight,wing",
}
VECTORS = {"deletion-vectors.enabled": "true"}
WRITE_ONLY = {"write-only": "true"}
QUESTIONS = [
    leaf("ring", "EQUAL", 17),
    leaf("ring", "EQUAL", 1000),
    leaf("ring", "IN", 3, 30, 31, 99),
    leaf("kind", "EQUAL", "murre"),
    leaf("kind", "NOT_EQUAL", "murre"),
    leaf("kind", "IS_NULL"),
    leaf("weight", "LESS_THAN", -8),
    leaf("weight", "BETWEEN", 3, 9),
    leaf("wing", "GREATER_THAN", f64(9.5)),
    {"and": [leaf("kind", "EQUAL", "auk"), leaf("weight", "GREATER_THAN", 5)]},
    {"or": [leaf("ring", "EQUAL", 4), leaf("kind", "EQUAL", "razorbill")]},
]


def rows_of(columns: dict[str, str], rows: Sequence[Sequence[Json]]) -> pa.Table:
    """Rows in their JSON form as an Arrow table."""
    arrays = [
        arrow_array(kind.removesuffix(" NOT NULL"), [row[number] for row in rows])
        for number, kind in enumerate(columns.values())
    ]
    return pa.table(arrays, names=list(columns))


def bird(ring: int, season: int = 0) -> list[Json]:
    """A row of `BIRDS`; in another season a ring has another kind and weight."""
    kind = KINDS[(ring * 3 + season) % 5]
    weight = None if ring % 8 == 5 else (ring + season) * ring % 41 - 15
    return [ring, kind, weight, f64(ring / 4 + season)]


def birds(start: int, end: int, season: int = 0) -> pa.Table:
    """Birds with these rings."""
    return rows_of(BIRDS, [bird(ring, season) for ring in range(start, end)])


def append(java: JavaPaimon, table: Path) -> None:
    """Indexes inside the manifests."""
    java.create(table, BIRDS, options=INDEXES | {"file-index.in-manifest-threshold": "1 mb"})
    java.write(table, birds(0, 20))
    java.write(table, birds(20, 45))


def sidecars(java: JavaPaimon, table: Path) -> None:
    """Index files next to data files, in partitions with unusual names; then other indexes."""
    columns = {"dt": "STRING", **BIRDS}
    options = INDEXES | {"file-index.in-manifest-threshold": "1 b"}
    java.create(table, columns, partition_keys=["dt"], options=options)
    for start, end in ((0, 20), (20, 45)):
        days = ["2026-01-01", "a/b=c d", None]
        rows = [[days[ring % 3], *bird(ring)] for ring in range(start, end)]
        java.write(table, rows_of(columns, rows))
    java.alter(table, "setOption", "file-index.bitmap.columns", "kind,ring")
    java.alter(table, "removeOption", "file-index.bsi.columns")
    java.rewrite_file_index(table)


def vectors(bits: int, buckets: int = -1) -> Callable[[JavaPaimon, Path], None]:
    """Deletion vectors of an append table, in one file per partition or one per bucket."""
    options = INDEXES | VECTORS | {"deletion-vectors.bitmap64": str(bits == 64).lower()}
    options["file-index.in-manifest-threshold"] = "1 mb"
    if buckets > 0:
        options |= {"bucket": str(buckets), "bucket-key": "ring"}

    def make(java: JavaPaimon, table: Path) -> None:
        java.create(table, BIRDS, options=options)
        java.write(table, birds(0, 20), options=WRITE_ONLY)
        java.write(table, birds(20, 45), options=WRITE_ONLY)
        java.delete(table, leaf("kind", "EQUAL", "puffin"))
        java.delete(table, leaf("ring", "BETWEEN", 18, 23))
        java.write(table, birds(45, 50), options=WRITE_ONLY)

    return make


def key_vectors(java: JavaPaimon, table: Path) -> None:
    """Upserts, each compacted into a level of its own with vectors, except for the last."""
    columns = {**BIRDS, "ring": "INT NOT NULL"}
    options = INDEXES | VECTORS | {"bucket": "2", "file-index.in-manifest-threshold": "1 mb"}
    java.create(table, columns, primary_keys=["ring"], options=options)
    java.write(table, birds(0, 30))
    java.write(table, birds(10, 20, season=1))
    java.write(table, birds(12, 15), "-D")
    java.compact(table)
    java.write(table, birds(25, 40, season=2))
    java.write(table, birds(0, 3, season=3), options=WRITE_ONLY)


def key_merge(java: JavaPaimon, table: Path) -> None:
    """Files on level 0 that are merged when they are read, above a compacted one."""
    columns = {"dt": "STRING NOT NULL", **BIRDS, "ring": "INT NOT NULL"}
    options = INDEXES | {"bucket": "1", "file-index.in-manifest-threshold": "1 mb"}
    keys = ["ring", "dt"]
    java.create(table, columns, partition_keys=["dt"], primary_keys=keys, options=options)

    def write(start: int, end: int, season: int, kind: Any = "+I") -> None:
        rows = [[f"day-{ring % 2}", *bird(ring, season)] for ring in range(start, end)]
        java.write(table, rows_of(columns, rows), kind, options=WRITE_ONLY)

    write(0, 30, season=0)
    java.compact(table)
    write(10, 20, season=1)
    write(12, 15, season=0, kind="-D")
    write(13, 14, season=2)
    write(28, 40, season=2)


def key_sequence(java: JavaPaimon, table: Path) -> None:
    """The row with the greatest weight is kept, whenever it was written."""
    columns = {**BIRDS, "ring": "INT NOT NULL"}
    options = {"bucket": "1", "sequence.field": "weight", **WRITE_ONLY}
    java.create(table, columns, primary_keys=["ring"], options=options)
    java.write(table, birds(0, 12, season=2))
    java.write(table, birds(4, 16))
    java.write(table, birds(2, 6, season=1))


def key_dynamic(java: JavaPaimon, table: Path) -> None:
    """Buckets with a hash index, each of ten keys."""
    columns = {**BIRDS, "ring": "INT NOT NULL"}
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "10", **WRITE_ONLY}
    java.create(table, columns, primary_keys=["ring"], options=options)
    java.write(table, birds(0, 25))
    java.write(table, birds(20, 34, season=1))
    java.write(table, birds(5, 7), "-D")


def evolution(java: JavaPaimon, table: Path) -> None:
    """Files with five schemas, and indexes on columns that were renamed or changed their type."""
    first = {"id": "INT", "size": "FLOAT", "note": "STRING", "old": "INT"}
    options = {
        "file-index.bitmap.columns": "note",
        "file-index.bsi.columns": "id",
        "file-index.range-bitmap.columns": "size",
        "file-index.in-manifest-threshold": "1 mb",
    }
    java.create(table, first, options=options)
    java.write(table, rows_of(first, [[n, f32(n / 2), KINDS[n % 5], n * n] for n in range(8)]))
    java.alter(table, "addColumn", "added", "STRING")
    second = {**first, "added": "STRING"}
    rows = [[n, f32(n / 2), KINDS[n % 5], n * n, f"new {n}"] for n in range(8, 14)]
    java.write(table, rows_of(second, rows))
    java.alter(table, "updateColumnType", "id", "BIGINT")
    java.alter(table, "updateColumnType", "size", "DOUBLE")
    third = {"id": "BIGINT", "size": "DOUBLE", "note": "STRING", "old": "INT", "added": "STRING"}
    rows = [[2**40 + n, f64(n / 3), KINDS[n % 5], n * n, None] for n in range(14, 18)]
    java.write(table, rows_of(third, rows))
    java.alter(table, "removeOption", "file-index.bitmap.columns")  # renaming would not rename it
    java.alter(table, "renameColumn", "note", "text")
    java.alter(table, "dropColumn", "old")
    java.alter(table, "addColumn", "old", "STRING")  # the old name, for another column
    last = {"id": "BIGINT", "size": "DOUBLE", "text": "STRING", "added": "STRING", "old": "STRING"}
    rows = [[n, f64(n / 3), KINDS[n % 5], "last", f"old {n}"] for n in range(18, 22)]
    java.write(table, rows_of(last, rows))


def file_format(name: str) -> Callable[[JavaPaimon, Path], None]:
    """Data files of another format, with indexes and vectors."""

    def make(java: JavaPaimon, table: Path) -> None:
        options = INDEXES | VECTORS | {"file.format": name}
        java.create(table, BIRDS, options=options)
        java.write(table, birds(0, 20))
        java.write(table, birds(20, 45))
        java.delete(table, leaf("kind", "EQUAL", "puffin"))

    return make


def index_in_data_folder(java: JavaPaimon, table: Path) -> None:
    """Files of deletion vectors inside the folders of buckets."""
    columns = {"dt": "STRING", **BIRDS}
    options = VECTORS | {"index-file-in-data-file-dir": "true"}
    java.create(table, columns, partition_keys=["dt"], options=options)
    rows = [[f"day-{ring % 2}", *bird(ring)] for ring in range(20)]
    java.write(table, rows_of(columns, rows))
    java.delete(table, leaf("ring", "IN", 2, 5, 11))


def history(java: JavaPaimon, table: Path) -> None:
    """Tags, a compaction, an overwritten partition, and expired snapshots."""
    columns = {"day": "INT", **BIRDS}
    options = {"compaction.min.file-num": "2"}
    java.create(table, columns, partition_keys=["day"], options=options)
    for day in range(3):
        rows = [[day, *bird(ring)] for ring in range(day * 10, day * 10 + 10)]
        java.write(table, rows_of(columns, rows))
    java.tag(table, "second", 2)
    rows = [[1, *bird(ring, season=1)] for ring in range(40, 44)]
    java.write(table, rows_of(columns, rows), overwrite={"day": "1"})
    java.write(table, rows_of(columns, [[2, *bird(ring)] for ring in range(30, 36)]))
    java.compact(table)
    java.expire(table, keep=3)


def types(java: JavaPaimon, table: Path) -> None:
    """Every type, two files: the first with all rows, the second with nulls only."""
    columns = ALL_TYPES | {name: kind for name, (kind, _, _) in NESTED.items()}
    java.create(table, columns, options={"metadata.stats-mode": "full"})
    arrays = [arrow_array(kind, all_values(kind)) for kind in ALL_TYPES.values()]
    arrays += [pa.array(values, kind) for _, kind, values in NESTED.values()]
    rows = pa.table(arrays, names=list(columns))
    java.write(table, rows)
    java.write(table, rows.slice(2, 1))


CASES = {
    "append": Case(append, QUESTIONS),
    "sidecars": Case(sidecars, [*QUESTIONS, leaf("dt", "EQUAL", "a/b=c d"), leaf("dt", "IS_NULL")]),
    "vectors_32": Case(vectors(32), QUESTIONS),
    "vectors_64": Case(vectors(64), QUESTIONS),
    "vectors_bucketed": Case(vectors(32, buckets=2), QUESTIONS),
    "key_vectors": Case(key_vectors, QUESTIONS),
    "key_merge": Case(key_merge, [*QUESTIONS, leaf("dt", "EQUAL", "day-1")]),
    "key_sequence": Case(key_sequence, QUESTIONS),
    "key_dynamic": Case(key_dynamic, QUESTIONS),
    "evolution": Case(
        evolution,
        [
            leaf("id", "EQUAL", 3),
            leaf("id", "GREATER_THAN", 2**40),
            leaf("size", "LESS_THAN", f64(2.0)),
            leaf("text", "EQUAL", "murre"),
            leaf("added", "EQUAL", "new 9"),
            leaf("added", "IS_NULL"),
            leaf("old", "EQUAL", "old 19"),
            leaf("old", "IS_NULL"),
        ],
    ),
    "orc": Case(file_format("orc"), QUESTIONS),
    "avro": Case(file_format("avro"), QUESTIONS),
    "index_in_data_folder": Case(index_in_data_folder, QUESTIONS),
    "types": Case(
        types,
        [
            leaf(name, function, *literals)
            for name, kind in ALL_TYPES.items()
            for function, literals in (("EQUAL", all_values(kind)[1:2]), ("IS_NULL", []))
        ],
    ),
    "history": Case(history, [*QUESTIONS, leaf("day", "GREATER_THAN", 0)]),
}
