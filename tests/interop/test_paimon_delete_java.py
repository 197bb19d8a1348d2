"""Rows that we delete are gone for every other reader, and both sides continue from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from alcid import PaimonTable
from alcid.storage import Storage
from alcid.tables.paimon.delete import delete
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.peers import PyPaimon
from tests.interop.rust_tables import RustWarehouse

LAYOUTS = {
    "unaware": {},
    "rolled": {"deletion-vector.index-file.target-size": "64 b"},
    "bucketed": {"bucket": "3", "bucket-key": "id"},
    "beside the data": {"index-file-in-data-file-dir": "true"},
}
WRITE_ONLY = {"write-only": "true"}


def make(java: JavaPaimon, path: Path, options: dict[str, str]) -> PaimonTable:
    """Three commits of 100 rows, in two partitions, one of them null."""
    columns = {"id": "INT", "dt": "STRING", "name": "STRING"}
    table_options = {"deletion-vectors.enabled": "true"} | options
    java.create(path, columns, partition_keys=["dt"], options=table_options)
    for start in (0, 100, 200):
        append(java, path, start)
    return PaimonTable(Storage.open(path))


def append(java: JavaPaimon, path: Path, start: int) -> None:
    numbers = range(start, start + 100)
    rows = pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "dt": pa.array(["a/b" if number % 2 else None for number in numbers], pa.string()),
            "name": [f"n{number % 7}" for number in numbers],
        }
    )
    java.write(path, rows, options=WRITE_ONLY)


def ids(rows: pa.Table) -> list[int]:
    numbers: list[int] = rows.column("id").to_pylist()
    return sorted(numbers)


def below(number: int) -> Any:
    return {"column": "id", "function": "LESS_THAN", "literals": [number]}


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_we_and_java_delete_in_turns(
    java_paimon: JavaPaimon, tmp_path: Path, layout: str, bits: int
) -> None:
    kind = {"deletion-vectors.bitmap64": "true"} if bits == 64 else {}
    path = tmp_path / "table"
    table = make(java_paimon, path, LAYOUTS[layout] | kind)
    left = set(range(300))

    def check() -> None:
        assert ids(java_paimon.read(path)) == sorted(left)
        table.refresh()
        assert ids(table.scan().to_arrow()) == sorted(left)

    def delete_ours(where: str, gone: set[int]) -> None:
        nonlocal left
        assert delete(table, where).rows == len(left & gone)
        left -= gone
        check()

    delete_ours("id < 150 AND name = 'n3'", {number for number in range(150) if number % 7 == 3})
    java_paimon.delete(path, below(20))
    left -= set(range(20))
    check()
    delete_ours("id < 30 OR id = 299", {*range(30), 299})
    java_paimon.delete(path, below(40))
    left -= set(range(40))
    append(java_paimon, path, 300)
    left |= set(range(300, 400))
    check()
    java_paimon.compact(path)
    check()
    assert java_paimon.expire(path) > 0
    check()
    delete_ours("dt IS NULL", set(range(0, 400, 2)))
    java_paimon.compact(path)
    java_paimon.expire(path)
    check()
    delete_ours("true", set(range(400)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_java_finds_rows_by_predicate_among_those_that_we_left(
    java_paimon: JavaPaimon, tmp_path: Path, layout: str
) -> None:
    table = make(java_paimon, tmp_path / "table", LAYOUTS[layout])
    delete(table, "id < 10 OR name = 'n1'")
    expected = [number for number in range(10, 50) if number % 7 != 1]
    assert ids(java_paimon.read(tmp_path / "table", below(50))) == expected


def test_the_past_stays_as_it_was(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = make(java_paimon, path, {})
    java_paimon.tag(path, "before", 3)
    assert delete(table, "id < 100").snapshot_id == 4
    assert delete(table, "id < 200").snapshot_id == 5
    for number, first in ((3, 0), (4, 100), (5, 200)):
        options = {"scan.snapshot-id": str(number)}
        assert ids(java_paimon.read(path, options=options)) == list(range(first, 300))
    java_paimon.expire(path)
    rows = java_paimon.read(path, options={"scan.tag-name": "before"})
    assert ids(rows) == list(range(300))
    assert ids(java_paimon.read(path)) == list(range(200, 300))


def test_java_follows_when_vectors_become_wider(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = make(java_paimon, path, {})
    delete(table, "id < 50")
    java_paimon.alter(path, "setOption", "deletion-vectors.bitmap64", "true")
    assert delete(table, "id < 60").rows == 10
    assert ids(java_paimon.read(path)) == list(range(60, 300))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pypaimon_does_not_see_what_we_delete(
    java_paimon: JavaPaimon, pypaimon: PyPaimon, tmp_path: Path, layout: str
) -> None:
    """Of the two kinds of vectors it reads only that of 32 bits."""
    table = make(java_paimon, tmp_path / "table", LAYOUTS[layout])
    delete(table, "id < 150 AND name = 'n3'")
    delete(table, "id < 20")
    expected = [number for number in range(20, 300) if number >= 150 or number % 7 != 3]
    assert ids(pypaimon.read(tmp_path / "table")) == expected


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rust_does_not_see_what_we_delete(
    java_paimon: JavaPaimon, tmp_path: Path, layout: str, bits: int
) -> None:
    kind = {"deletion-vectors.bitmap64": "true"} if bits == 64 else {}
    table = make(java_paimon, tmp_path / "table", LAYOUTS[layout] | kind)
    delete(table, "id < 150 AND name = 'n3'")
    delete(table, "id < 20")
    warehouse = RustWarehouse(tmp_path / "warehouse")
    warehouse.link(tmp_path / "table")
    assert warehouse.ids() == [
        number for number in range(20, 300) if number >= 150 or number % 7 != 3
    ]


@pytest.mark.parametrize("layout", ["unaware", "bucketed"])
def test_copies_without_vectors(java_paimon: JavaPaimon, tmp_path: Path, layout: str) -> None:
    java, path = java_paimon, tmp_path / "t"
    options = {"deletion-vectors.enabled": "false", "file-index.bloom-filter.columns": "id"}
    table = make(java, path, LAYOUTS[layout] | options)
    gone = {*range(90, 110), 250}
    assert delete(table, "id BETWEEN 90 AND 109 OR id = 250").rows == len(gone)
    assert not table.snapshot.state.indexes
    expected = [number for number in range(300) if number not in gone]
    assert ids(java.read(path)) == expected == ids(table.scan().to_arrow())
    assert ids(java.read(path, below(120))) == [number for number in expected if number < 120]
    assert java.read(path, options={"scan.snapshot-id": "3"}).num_rows == 300
    append(java, path, 300)
    java.compact(path)
    table.refresh()
    assert delete(table, "dt IS NULL AND id < 20").rows == 10
    expected = [number for number in expected if number >= 20 or number % 2] + [*range(300, 400)]
    assert ids(java.read(path)) == expected == ids(table.scan().to_arrow())
    java.expire(path)
    assert ids(java.read(path)) == expected
    table.refresh()
    assert ids(table.scan().to_arrow()) == expected
    assert table.verify().ok
