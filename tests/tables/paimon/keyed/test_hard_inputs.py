"""Upserts of difficult rows: many, few, the same, skewed, incomplete, wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import ColumnError, UnsupportedError
from alcid.formats.binary_row import hash_rows
from alcid.tables.paimon.keyed import commit
from alcid.tables.paimon.metadata.schema import Field, schema_path
from alcid.tables.parquet_writer import GROUP_ROWS
from alcid.types import DataType
from tests.tables.paimon.small_tables import create as create_table

VECTORS = {"deletion-vectors.enabled": "true"}
FIXED = VECTORS | {"bucket": "2"}
DYNAMIC = VECTORS | {"bucket": "-1", "dynamic-bucket.target-row-num": "1000"}
MERGED = {"bucket": "2"}
COLUMNS = {"id": "BIGINT", "name": "STRING"}
EACH_LAYOUT = pytest.mark.parametrize(
    "options", [FIXED, DYNAMIC, MERGED], ids=["fixed", "dynamic", "without-vectors"]
)


def create(
    path: Path,
    columns: Mapping[str, str] = COLUMNS,
    key: Sequence[str] = ("id",),
    options: Mapping[str, str] = FIXED,
    partition_by: Sequence[str] = (),
) -> PaimonTable:
    return create_table(
        path, columns, primary_keys=key, partition_keys=partition_by, options=options
    )


def rows_of(ids: Any, text: str = "n") -> pa.Table:
    numbers = pa.array(ids, pa.int64())
    names = pc.binary_join_element_wise(text, numbers.cast(pa.string()), "")
    return pa.table({"id": numbers, "name": names})


def rows(table: PaimonTable) -> list[tuple[Any, ...]]:
    """All rows, sorted; the same if the table is opened again."""
    table_rows = table.scan().to_arrow()
    again = alcid.paimon(table.location).scan().to_arrow()
    assert again.equals(table_rows)
    return sorted((tuple(row.values()) for row in table_rows.to_pylist()), key=repr)


def expected(*tables: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of tables, where a later row replaces an earlier one with its key."""
    newest = {row["id"]: tuple(row.values()) for table in tables for row in table.to_pylist()}
    return sorted(newest.values(), key=repr)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def is_sound(table: PaimonTable, sample: float = 1.0) -> bool:
    report = table.verify(sample, progress=False)
    assert report.ok, str(report)
    return True


# -- how many, and of what keys ----------------------------------------------------------------


@EACH_LAYOUT
def test_without_rows_there_is_no_snapshot(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, options=options)
    before = files(tmp_path)
    table.upsert(rows_of([]))
    assert table.snapshot_id is None
    assert files(tmp_path) == before
    table.upsert(rows_of([1]))
    last = table.snapshot_id
    table.upsert(rows_of([]))
    table.upsert(rows_of([]).to_batches()[0] if rows_of([]).to_batches() else rows_of([]))
    assert table.snapshot_id == last
    assert rows(table) == [(1, "n1")]


@EACH_LAYOUT
def test_all_keys_are_new_or_all_are_old(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, options=options)
    table.upsert(rows_of(range(5000)))
    table.upsert(rows_of(range(5000, 9000)))
    table.upsert(rows_of(range(9000), "old"))
    assert rows(table) == expected(rows_of(range(9000), "old"))
    assert is_sound(table)


@EACH_LAYOUT
def test_the_same_upsert_twice_leaves_the_same_rows(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = create(tmp_path, options=options)
    for _ in range(8):  # more often than there are levels
        table.upsert(rows_of(range(300)))
        assert rows(table) == expected(rows_of(range(300)))
    assert is_sound(table)


@EACH_LAYOUT
def test_most_rows_of_an_upsert_have_one_key(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, options=options)
    ids = np.where(np.arange(20_000) % 10 == 0, np.arange(20_000), 7)
    upserted = rows_of(ids, "first").set_column(1, "name", rows_of(range(20_000)).column("name"))
    table.upsert(upserted)
    assert rows(table) == expected(upserted)
    table.upsert(upserted.slice(0, 15_000))
    assert rows(table) == expected(upserted, upserted.slice(0, 15_000))
    assert is_sound(table)


@EACH_LAYOUT
def test_nearly_all_rows_are_of_one_partition(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(
        tmp_path, {"dt": "STRING", **COLUMNS}, ("dt", "id"), options, partition_by=["dt"]
    )
    upserted = rows_of(range(30_000))
    days = ["giant" if number % 1500 else f"day {number}" for number in range(30_000)]
    upserted = upserted.add_column(0, "dt", pa.array(days))
    table.upsert(upserted)
    assert rows(table) == expected(upserted)
    newer = upserted.take(pa.array(range(0, 30_000, 100))).set_column(
        2, "name", pa.array(["newer"] * 300)
    )
    table.upsert(newer)
    assert rows(table) == expected(upserted, newer)
    assert is_sound(table)


def test_an_upsert_over_a_thousand_partitions(tmp_path: Path) -> None:
    table = create(
        tmp_path, {"day": "INT", **COLUMNS}, ("day", "id"), DYNAMIC, partition_by=["day"]
    )
    days = pa.array(np.arange(2000) % 1000, pa.int32())
    upserted = rows_of(range(2000)).add_column(0, "day", days)
    table.upsert(upserted)
    assert table.count() == 2000
    newer = rows_of(range(2000), "newer").add_column(0, "day", days)[950:1050]
    table.upsert(newer)
    assert rows(table) == expected(upserted, newer)
    assert len({placed.entry.partition for placed in table.snapshot.placed}) == 1000
    assert is_sound(table, sample=0.02)


def test_files_of_several_row_groups_are_looked_up(tmp_path: Path) -> None:
    table = create(tmp_path, options=VECTORS | {"bucket": "1"})
    count = GROUP_ROWS + 1000
    table.upsert(rows_of(range(count)))
    some = [0, GROUP_ROWS - 1, GROUP_ROWS, count - 1, count]
    table.upsert(rows_of(some, "newer"))
    assert table.count() == count + 1
    newer = table.scan("name LIKE 'newer%'").to_arrow()
    assert sorted(newer.column("id").to_pylist()) == some
    assert table.count("name LIKE 'n%' AND NOT name LIKE 'newer%'") == count - 4
    assert is_sound(table)


@EACH_LAYOUT
@pytest.mark.parametrize("is_sorted", [True, False])
def test_keys_in_random_order(tmp_path: Path, options: dict[str, str], is_sorted: bool) -> None:
    source = np.random.default_rng(3)
    drawn = [source.integers(-(2**62), 2**62, 3000) >> shift for shift in (0, 52, 55)]
    table = create(tmp_path, options=options)
    tables = [
        rows_of(np.sort(ids) if is_sorted else ids, f"step {number} ")
        for number, ids in enumerate(drawn)
    ]
    for upserted in tables:
        table.upsert(upserted)
    assert rows(table) == expected(*tables)
    assert is_sound(table)


# -- the same key more than once ---------------------------------------------------------------


@EACH_LAYOUT
def test_of_rows_with_one_key_the_last_is_kept(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, options=options)
    table.upsert(pa.table({"id": [1, 2, 1, 2, 1], "name": ["a", "b", "c", "d", "e"]}))
    assert rows(table) == [(1, "e"), (2, "d")]
    table.upsert(pa.table({"id": [2, 3, 2], "name": ["f", "g", "h"]}))
    assert rows(table) == [(1, "e"), (2, "h"), (3, "g")]


@EACH_LAYOUT
def test_of_rows_with_one_key_the_greatest_sequence_field_is_kept(
    tmp_path: Path, options: dict[str, str]
) -> None:
    columns = COLUMNS | {"version": "BIGINT"}
    table = create(tmp_path, columns, options=options | {"sequence.field": "version"})

    def upsert(*changed_rows: tuple[int, str, int | None]) -> None:
        table.upsert(pa.table(dict(zip(columns, zip(*changed_rows, strict=True), strict=True))))

    upsert((1, "a", 5), (1, "b", 3), (2, "c", None), (2, "d", None))
    assert rows(table) == [(1, "a", 5), (2, "d", None)]
    upsert((1, "e", 4), (2, "f", -9))  # an older one is dropped, any number is above null
    assert rows(table) == [(1, "a", 5), (2, "f", -9)]
    upsert((1, "g", 5), (2, "h", None))  # among equal ones the later is kept
    assert rows(table) == [(1, "g", 5), (2, "f", -9)]
    assert is_sound(table)


@EACH_LAYOUT
def test_changes_of_one_key_count_in_their_order(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, options=options)
    table.upsert(rows_of([1, 2, 3, 4]))
    kinds = {1: ["-U", "+U"], 2: ["+U", "-D"], 3: ["-D", "+I", "-D"], 5: ["+I", "-D"], 6: ["-D"]}
    given_changes = [(number, kind) for number, each in kinds.items() for kind in each]
    ids, named = [number for number, _ in given_changes], [kind for _, kind in given_changes]
    changes = rows_of(ids, "new").append_column("op", pa.array(named))
    table.upsert(changes, row_kind="op")
    assert rows(table) == [(1, "new1"), (4, "n4")]
    assert is_sound(table)


@EACH_LAYOUT
def test_deletes_of_keys_that_are_not_there(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, options=options)
    gone = rows_of([1, 2]).append_column("op", pa.array(["-D", "-U"]))
    table.upsert(gone, row_kind="op")
    assert rows(table) == []
    table.upsert(rows_of([2, 3]))
    table.upsert(gone, row_kind="op")
    assert rows(table) == [(3, "n3")]
    assert is_sound(table)


def test_a_killed_upsert_is_finished_after_its_files_got_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"day": "INT", **COLUMNS}
    table = create(tmp_path, columns, ("day", "id"), FIXED, partition_by=["day"])

    def rows_on(day: int, text: str) -> pa.Table:
        return rows_of([1, 2], text).add_column(0, "day", pa.array([day] * 2, pa.int32()))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for day in (1, 2):
        table.upsert(rows_on(day, "old"))
    with monkeypatch.context() as patch:
        patch.setattr(commit, "commit_compact", killed)
        with pytest.raises(KeyboardInterrupt):
            table.upsert(rows_on(1, "new"))
    table.build_indexes({"file-index.bloom-filter.columns": "name"}, progress=False)
    table.upsert(rows_on(2, "new"))
    assert rows(table) == [(day, number, f"new{number}") for day in (1, 2) for number in (1, 2)]
    assert is_sound(table)


def colliding_pair() -> tuple[int, int]:
    """Two numbers whose keys have the same hash of 32 bits."""
    numbers = np.random.default_rng(5).integers(0, 2**62, 300_000)
    hashes = hash_rows([pa.array(numbers)], [DataType.parse("BIGINT")])
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    first, second = numbers[order][same[0] : same[0] + 2].tolist()
    return first, second


@EACH_LAYOUT
def test_two_keys_of_one_hash_are_two_keys(tmp_path: Path, options: dict[str, str]) -> None:
    first, second = colliding_pair()
    table = create(tmp_path, options=options | {"dynamic-bucket.target-row-num": "1"})
    table.upsert(rows_of([first, 5]))
    table.upsert(rows_of([second, 6]))
    table.upsert(rows_of([first], "newer"))
    four = [(5, "n5"), (6, "n6"), (first, f"newer{first}"), (second, f"n{second}")]
    assert rows(table) == sorted(four, key=repr)
    gone = rows_of([second]).append_column("op", pa.array(["-D"]))
    table.upsert(gone, row_kind="op")
    assert rows(table) == sorted(four[:3], key=repr)
    assert is_sound(table)


# -- types of keys -----------------------------------------------------------------------------

_LONG = "the same beginning, which is longer than what statistics keep: "
KEYS: dict[str, Sequence[Any]] = {
    "TINYINT": [-128, -1, 0, 1, 127],
    "SMALLINT": [-300, 0, 32_767],
    "INT": [-(2**31), -1, 0, 7, 2**31 - 1],
    "BIGINT": [-(2**63), -1, 0, 2**63 - 1],
    "BOOLEAN": [False, True],
    "STRING": ["", "a", "b", "ab", "é", "\U0001f427", "\uffff", f"{_LONG}1", f"{_LONG}2"],
    "VARCHAR(5)": ["a", "ab", "abcde"],
    "BYTES": [b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00"],
    "DECIMAL(9, 2)": [Decimal("-1.50"), Decimal("0.00"), Decimal("9999999.99")],
    "DECIMAL(30, 3)": [Decimal("-1e26"), Decimal("-0.001"), Decimal("0.000"), Decimal("1e26")],
    "DATE": [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    "TIMESTAMP(3)": [datetime(1969, 12, 31, 23, 59, 59, 999000), datetime(2026, 1, 1)],
    "TIMESTAMP(6)": [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1)],
    "FLOAT": [-math.inf, -0.5, 0.0, 1.5, math.inf],
    "DOUBLE": [-math.inf, -1.5, 0.0, 0.1, math.inf],
}


@EACH_LAYOUT
@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type(tmp_path: Path, kind: str, options: dict[str, str]) -> None:
    options = options | {"dynamic-bucket.target-row-num": "2"}
    table = create(tmp_path, {"k": kind, "v": "INT"}, ("k",), options)
    values = KEYS[kind]

    def upsert(some: Sequence[Any], number: int) -> None:
        keys = pa.array(some, DataType.parse(kind).to_arrow())
        table.upsert(pa.table({"k": keys, "v": pa.array([number] * len(some), pa.int32())}))

    upsert(values[::-1], 1)
    upsert(values[::2], 2)
    upsert(values[1:], 3)
    versions = {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert versions == {values[0]: 2} | dict.fromkeys(values[1:], 3)
    assert table.count() == len(values)
    assert is_sound(table)


@EACH_LAYOUT
def test_keys_of_several_columns(tmp_path: Path, options: dict[str, str]) -> None:
    columns = {"v": "INT", "text": "STRING", "number": "DECIMAL(30, 3)", "day": "DATE"}
    table = create(tmp_path, columns, ("day", "text", "number"), options)
    keys = [
        (text, Decimal(number), date(1970, 1, day))
        for text in ("", "a", "a\0")
        for number in (-5, 0, 10**20)
        for day in (1, 2)
    ]
    names = ["text", "number", "day"]
    kinds = [DataType.parse(columns[name]).to_arrow() for name in names]

    def upsert(some: Sequence[tuple[Any, ...]], version: int) -> None:
        parts = zip(names, zip(*some, strict=True), kinds, strict=True)
        key_columns = {name: pa.array(values, kind) for name, values, kind in parts}
        table.upsert(pa.table(key_columns | {"v": pa.array([version] * len(some), pa.int32())}))

    upsert(keys, 1)
    upsert(keys[::3], 2)
    versions = {
        (row["text"], row["number"], row["day"]): row["v"]
        for row in table.scan().to_arrow().to_pylist()
    }
    assert versions == dict.fromkeys(keys, 1) | dict.fromkeys(keys[::3], 2)
    assert table.count() == len(keys)
    assert is_sound(table)


# -- columns that are missing, other, or wrong -------------------------------------------------


@pytest.mark.parametrize("write_only", [False, True])
def test_a_null_in_the_key_is_refused_and_nothing_is_written(
    tmp_path: Path, write_only: bool
) -> None:
    table = create(tmp_path)
    table.upsert(rows_of([1]))
    before, last = files(tmp_path), table.snapshot_id
    with pytest.raises(UnsupportedError, match="column id: found null, expected NOT NULL"):
        table.upsert(rows_of([2, None, 3]), write_only=write_only)
    assert files(tmp_path) == before
    assert table.snapshot_id == last
    assert rows(table) == [(1, "n1")]


def test_a_null_partition_of_the_key_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path, {"dt": "STRING", **COLUMNS}, ("dt", "id"), FIXED, partition_by=["dt"])
    before = files(tmp_path)
    upserted = rows_of([1, 2]).add_column(0, "dt", pa.array(["x", None]))
    with pytest.raises(UnsupportedError, match="column dt: found null, expected NOT NULL"):
        table.upsert(upserted)
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("upserted", "problem"),
    [
        (pa.table({"name": ["a"]}), "column id: NOT NULL in the table, and not given"),
        (rows_of([1]).append_column("other", pa.array([1])), "other"),
        (pa.table({"id": [1], "ID": [2], "name": ["a"]}), "id"),
    ],
    ids=["no-key", "unknown", "twice"],
)
def test_columns_that_do_not_fit_are_refused(
    tmp_path: Path, upserted: pa.Table, problem: str
) -> None:
    table = create(tmp_path)
    before = files(tmp_path)
    with pytest.raises(ColumnError, match=problem):
        table.upsert(upserted)
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        (None, ColumnError, "op"),
        (pa.array(["+I", None]), UnsupportedError, "column op: found None, expected"),
        (pa.array(["+I", "delete"]), UnsupportedError, "column op: found 'delete', expected"),
        (pa.array([0, 3]), UnsupportedError, "column op: found int64, expected"),
    ],
    ids=["missing", "null", "other", "number"],
)
def test_unknown_row_kinds_are_refused(
    tmp_path: Path, change: Any, error: type[Exception], problem: str
) -> None:
    table = create(tmp_path)
    before = files(tmp_path)
    upserted = rows_of([1, 2])
    if change is not None:
        upserted = upserted.append_column("op", change)
    with pytest.raises(error, match=problem):
        table.upsert(upserted, row_kind="op")
    assert files(tmp_path) == before


@pytest.mark.parametrize("upserted", [{"id": [1]}, [(1, "a")], None], ids=["dict", "list", "none"])
def test_not_a_table_of_rows_is_refused(tmp_path: Path, upserted: Any) -> None:
    table = create(tmp_path)
    with pytest.raises(UnsupportedError, match="expected a Spark DataFrame or an Arrow table"):
        table.upsert(upserted)


def test_a_table_without_a_key_takes_no_upsert(tmp_path: Path) -> None:
    table = create(tmp_path, key=(), options={})
    with pytest.raises(UnsupportedError, match="primary key"):
        table.upsert(rows_of([1]))


@EACH_LAYOUT
def test_a_column_that_is_not_given_becomes_null(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, COLUMNS | {"more": "INT"}, options=options)
    table.upsert(rows_of([1, 2]).append_column("more", pa.array([10, 20], pa.int32())))
    table.upsert(pa.table({"more": pa.array([30, 40], pa.int32()), "id": [2, 3]}))
    assert rows(table) == [(1, "n1", 10), (2, None, 30), (3, None, 40)]
    assert is_sound(table)


def test_narrower_types_are_widened_and_find_the_same_keys(tmp_path: Path) -> None:
    columns = {"id": "BIGINT", "price": "DECIMAL(18, 2)", "share": "DOUBLE", "name": "STRING"}
    table = create(tmp_path, columns, ("id", "price"), FIXED)
    wide = pa.schema([(name, DataType.parse(kind).to_arrow()) for name, kind in columns.items()])
    narrow = pa.schema(
        [
            ("id", pa.int16()),
            ("price", pa.decimal128(9, 2)),
            ("share", pa.float32()),
            ("name", pa.dictionary(pa.int32(), pa.string())),
        ]
    )
    values = [[1, 2, 3], [Decimal("1.25")] * 3, [0.5, 1.5, 2.5], ["a", "b", "a"]]
    upserted = pa.table([pa.array(value) for value in values], list(columns))
    table.upsert(upserted.cast(wide))
    table.upsert(upserted.slice(1).cast(narrow))
    table.upsert(upserted.slice(2).cast(narrow).to_batches()[0])
    assert rows(table) == [tuple(row.values()) for row in upserted.to_pylist()]
    assert table.scan().to_arrow().schema.types == wide.types
    with pytest.raises(UnsupportedError, match="column id: double does not go into int64"):
        table.upsert(upserted.set_column(0, "id", pa.array([1.0, 2.0, 3.0])))
    assert is_sound(table)


def test_a_key_that_is_too_long_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path, {"k": "VARCHAR(3)", "v": "INT"}, ("k",))
    before = files(tmp_path)
    with pytest.raises(UnsupportedError, match="k"):
        table.upsert(pa.table({"k": ["abc", "abcd"], "v": pa.array([1, 2], pa.int32())}))
    assert files(tmp_path) == before


# -- after the schema has changed --------------------------------------------------------------


def put_schema(table: PaimonTable, **changes: Any) -> None:
    before = table.folder.latest_schema()
    after = replace(before, id=before.id + 1, **changes)
    table.storage.create(schema_path(after.id), after.to_json())


@EACH_LAYOUT
def test_rows_of_older_schemas_are_replaced_and_compacted(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = create(tmp_path, COLUMNS | {"gone": "INT"}, options=options)
    more = pa.array([1, 1, 1], pa.int32())
    table.upsert(rows_of([1, 2, 3]).append_column("gone", more))
    schema = table.folder.latest_schema()
    number, name, _ = schema.fields
    put_schema(
        table,
        fields=(
            Field(9, "added", DataType.parse("STRING")),
            replace(name, name="title"),
            replace(number, name="key"),
        ),
        primary_keys=("key",),
        highest_field_id=9,
    )
    upserted = pa.table({"key": [3, 4], "title": ["t3", "t4"], "added": ["x", "y"]})
    table.upsert(upserted)
    four = [(None, "n1", 1), (None, "n2", 2), ("x", "t3", 3), ("y", "t4", 4)]
    assert rows(table) == sorted(four, key=repr)
    table.delete("key = 2")
    table.compact()
    assert rows(table) == sorted([four[0], *four[2:]], key=repr)
    assert {placed.file.schema_id for placed in table.snapshot.placed} <= {0, 1}
    assert is_sound(table)


@EACH_LAYOUT
def test_a_sequence_field_that_older_files_lack_is_null_in_them(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = create(tmp_path, options=options)
    table.upsert(rows_of([1, 2]))
    schema = table.folder.latest_schema()
    put_schema(
        table,
        fields=(*schema.fields, Field(2, "version", DataType.parse("INT"))),
        options={**schema.options, "sequence.field": "version"},
        highest_field_id=2,
    )
    version = pa.array([None, -5], pa.int32())
    table.upsert(rows_of([1, 2], "newer").append_column("version", version))
    assert rows(table) == [(1, "newer1", None), (2, "newer2", -5)]
    table.upsert(rows_of([2], "old"))
    assert rows(table) == [(1, "newer1", None), (2, "newer2", -5)]
    assert is_sound(table)
