"""Tables with a key that we and Paimon's Java write, compact and expire in turns."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import alcid
from tests.golden.container_cases import leaf
from tests.interop.keyed_tables import (
    ALL_READERS,
    VECTORS,
    KeyedTable,
    Peers,
    Row,
    levels,
    peers,
)
from tests.tables.paimon.known_rows import as_text
from tests.tables.paimon.machine_runs import IS_SOAK

__all__ = ["peers"]

COLUMNS = {"dt": "STRING", "id": "INT", "v": "STRING", "n": "BIGINT"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "25"}
INDEXED = {
    "file-index.bitmap.columns": "v",
    "file-index.bloom-filter.columns": "n",
    "file-index.in-manifest-threshold": "1 b",
}
OWN_PLACES = {
    "data-file.path-directory": "data",
    "data-file.prefix": "part-",
    "index-file-in-data-file-dir": "true",
    "metadata.stats-mode": "none",
}
KINDS: dict[str, tuple[Mapping[str, str], list[str]]] = {
    "fixed": (VECTORS | {"bucket": "2"}, []),
    "fixed, partitioned": (VECTORS | {"bucket": "2"}, ["dt"]),
    "dynamic": (VECTORS | DYNAMIC, []),
    "dynamic, partitioned": (VECTORS | DYNAMIC, ["dt"]),
    "64 bits": (VECTORS | {"bucket": "1", "deletion-vectors.bitmap64": "true"}, []),
    "thin": (VECTORS | {"bucket": "2", "data-file.thin-mode": "true"}, ["dt"]),
    "own places": (VECTORS | DYNAMIC | OWN_PLACES, ["dt"]),
    "indexed": (VECTORS | {"bucket": "2"} | INDEXED, []),
    "merged by readers": ({"bucket": "2"}, ["dt"]),
    "dynamic, merged by readers": (DYNAMIC, []),
}
WHOLE = ("dynamic, partitioned", "indexed", "merged by readers")
HALF = 11
"""How many steps the other kinds of tables take; in `make soak` they take all of them, too."""
STEPS = [
    "java puts",
    "we put",
    "we remove",
    "newest removes",
    "we put",
    "java compacts",
    "we put",
    "we delete",
    "newest puts",
    "we compact",
    "java expires",
    "java puts",
    "we put",
    "we index",
    "newest compacts",
    "we remove",
    "newest expires",
    "java puts",
    "we compact",
    "we put",
]


class Turns:
    """Random rows, and who writes them."""

    def __init__(self, table: KeyedTable, seed: str) -> None:
        self.table, self._source, self._step = table, random.Random(seed), 0

    def _rows(self, count: int) -> list[Row]:
        self._step += 1
        drawn: dict[Any, Row] = {}
        for _ in range(count):
            number = self._source.randrange(120)
            day = "x" if number % 3 else "y"
            drawn[number] = (day, number, f"step {self._step}", number * self._step)
        return list(drawn.values())

    def ask(self) -> None:
        """Java and we find the rows of a step, through the existing indexes."""
        value = f"step {self._source.randint(1, self._step)}"
        matching = [row for row in self.table.rows.values() if row[2] == value]
        expected = as_text(self.table.arrow(matching))
        for java in (self.table.peers.java, self.table.peers.newest):
            assert as_text(java.read(self.table.path, leaf("v", "EQUAL", value))) == expected
        scan = alcid.paimon(self.table.path).scan(f"v = '{value}'")
        assert as_text(scan.to_arrow()) == expected

    def take(self, step: str) -> None:
        who, what = step.split()
        table = self.table
        match what.removesuffix("s"):
            case "put":
                table.put(who, *self._rows(40))
            case "remove":
                table.remove(who, *self._rows(15))
            case "delete":
                gone = {key: row for key, row in table.rows.items() if row[3] < 100}
                assert table.table.delete("n < 100").rows == len(gone)
                table.rows = {key: row for key, row in table.rows.items() if key not in gone}
            case "compact":
                table.compact(who)
            case "expire":
                assert table.peers.named(who).expire(table.path) > 0
            case "index":
                table.table.build_indexes(INDEXED, progress=False)


@pytest.mark.parametrize("kind", KINDS)
def test_all_see_the_same_rows_after_every_step(peers: Peers, tmp_path: Path, kind: str) -> None:
    options, partitions = KINDS[kind]
    readers = ALL_READERS - {"pypaimon"} if kind == "64 bits" else ALL_READERS
    table = KeyedTable(
        tmp_path / "t",
        peers,
        COLUMNS,
        [*partitions, "id"],
        options,
        partitions,
        readers=readers,
    )
    turns = Turns(table, kind)
    steps = STEPS if IS_SOAK or kind in WHOLE else STEPS[:HALF]
    for number, step in enumerate(steps):
        turns.take(step)
        if number % 4 == 3:
            table.check()
        else:
            table.check_rows(who="java" if number % 2 else "newest")
        if kind == "indexed":
            turns.ask()
        assert number < 3 or len(table.rows) > 20
    if "deletion-vectors.enabled" in options:
        assert 0 not in levels(table.path)


@pytest.mark.parametrize("bucket", ["2", "-1"], ids=["fixed", "dynamic"])
def test_partitions_of_other_types(peers: Peers, tmp_path: Path, bucket: str) -> None:
    columns = {"day": "DATE", "big": "DECIMAL(30, 3)", "id": "INT", "v": "STRING"}
    options = VECTORS | {"bucket": bucket, "partition.legacy-name": "false"}
    table = KeyedTable(
        tmp_path / "t", peers, columns, ["day", "big", "id"], options, ["day", "big"]
    )
    partitions = [
        (date(1969, 12, 31), Decimal("-0.001")),
        (date(2026, 1, 2), Decimal("123456789012345678901234567.890")),
    ]

    def rows(first: int, stop: int, value: str) -> list[Row]:
        return [
            (*partition, number, value) for partition in partitions for number in range(first, stop)
        ]

    table.put("we", *rows(0, 10, "a"))
    table.put("java", *rows(5, 12, "b"))
    table.check()
    table.put("we", *rows(8, 15, "c"))
    table.remove("newest", *rows(3, 4, "x"))
    table.check()
    table.compact("newest")
    table.remove("we", *rows(11, 13, "x"))
    table.put("newest", *rows(0, 2, "d"))
    table.check()


# -- dynamic buckets ---------------------------------------------------------------------------


def _dynamic(path: Path, peers: Peers, target: int) -> KeyedTable:
    options = VECTORS | {"bucket": "-1", "dynamic-bucket.target-row-num": str(target)}
    return KeyedTable(path, peers, {"id": "INT", "v": "STRING"}, ["id"], options)


@pytest.mark.parametrize("java", ["java", "newest"])
def test_java_leaves_keys_in_the_buckets_that_we_gave_them(
    peers: Peers, tmp_path: Path, java: str
) -> None:
    table = _dynamic(tmp_path / "t", peers, target=10)
    table.put("we", *((number, "a") for number in range(45)))
    buckets = table.check_buckets()
    assert sorted(set(buckets.values())) == [0, 1, 2, 3, 4]
    table.put(java, *((number, "b") for number in range(30, 60)))
    table.check()
    after = table.check_buckets()
    assert {key: after[key] for key in buckets} == buckets
    assert sorted(set(after.values())) == [0, 1, 2, 3, 4, 5]
    table.compact(java)
    table.check()
    assert table.check_buckets() == after


@pytest.mark.parametrize("java", ["java", "newest"])
def test_we_leave_keys_in_the_buckets_that_java_gave_them(
    peers: Peers, tmp_path: Path, java: str
) -> None:
    table = _dynamic(tmp_path / "t", peers, target=10)
    table.put(java, *((number, "a") for number in range(45)))
    buckets = table.check_buckets()
    table.put("we", *((number, "b") for number in range(30, 60)))
    table.remove("we", (2, None), (33, None))
    table.check()
    after = table.check_buckets()
    assert {key: after[key] for key in buckets if key in after} == {
        key: bucket for key, bucket in buckets.items() if key not in {(2,), (33,)}
    }
    # A deleted key comes back to its bucket.
    table.put("we", (2, "c"), (33, "c"))
    table.check()
    assert buckets[2,] == table.check_buckets()[2,]
    assert buckets[33,] == table.check_buckets()[33,]
