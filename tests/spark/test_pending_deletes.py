"""Tables whose deleted rows tasks find: nothing of that is read in the driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import alcid
from alcid.scan import execution
from alcid.spark.engine import SparkEngine
from alcid.tables.paimon import files, merge_units
from alcid.tables.paimon_table import PaimonTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, FILES = 600, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that readers merge: each of four upserts replaces half of the rows before it."""
    path = tmp_path_factory.mktemp("merged") / "t"
    columns = pa.schema(
        [pa.field("id", pa.int64(), False), ("name", pa.string()), ("price", pa.float64())]
    )
    table = alcid.create_table(
        path, columns, primary_key=["id"], options={"bucket": "2", "write-only": "true"}
    )
    for number in range(FILES):
        ids = range(number * ROWS // 2, number * ROWS // 2 + ROWS)
        names = [f"n{number} {one % 7}" for one in ids]
        table.upsert(pa.table({"id": ids, "name": names, "price": [one / 2 for one in ids]}))
    gone = range(0, 2000, 10)
    deletes = pa.table({"id": gone, "kind": ["-D"] * len(gone)})
    table.upsert(deletes, row_kind="kind")
    return path


@pytest.fixture
def expected(folder: Path) -> list[dict[str, Any]]:
    """The rows by a dictionary, the newest of each key."""
    rows = {
        one: {"id": one, "name": f"n{number} {one % 7}", "price": one / 2}
        for number in range(FILES)
        for one in range(number * ROWS // 2, number * ROWS // 2 + ROWS)
    }
    live = [row for one, row in sorted(rows.items()) if one % 10]
    assert sorted(alcid.paimon(folder).scan().to_arrow().to_pylist(), key=_id) == live
    return live


@pytest.fixture(params=[1 << 30, 2_000], ids=["whole sections", "sections in parts"])
def table(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[PaimonTable]:
    """The table in a session that looks for no deleted row itself."""
    plan = merge_units.plan_units
    monkeypatch.setattr(
        files, "plan_units", lambda *a, **named: plan(*a, **named, unit_bytes=request.param)
    )
    monkeypatch.setattr(SparkEngine, "delete_bytes", 0)
    opened = alcid.paimon(folder, spark)
    opened_bytes = opened.snapshot.traffic.bytes_read
    yield opened
    assert not opened.snapshot.deletions._loaded
    assert opened.snapshot.traffic.bytes_read - opened_bytes <= 40_000  # rows of answers


def _id(row: dict[str, Any]) -> int:
    return int(row["id"])


def test_rows_and_counts(table: PaimonTable, expected: list[dict[str, Any]]) -> None:
    assert sorted(table.read().toArrow().to_pylist(), key=_id) == expected
    assert table.count() == len(expected)
    some = [row for row in expected if row["name"].endswith(" 3") and row["id"] > 500]
    where = "name LIKE '% 3' AND id > 500"
    assert sorted(table.read(where).toArrow().to_pylist(), key=_id) == some
    assert table.count(where) == len(some)
    assert sorted(table.scan("id IN (7, 8, 10, 1403)").to_arrow()["id"].to_pylist()) == [7, 8, 1403]


def test_limits_and_orders(table: PaimonTable, expected: list[dict[str, Any]]) -> None:
    top = table.scan(order_by="price DESC", limit=5).to_arrow().to_pylist()
    assert top == sorted(expected, key=_id, reverse=True)[:5]
    few = table.scan("price < 50", limit=4).to_arrow().to_pylist()
    assert len(few) == 4
    assert all(row in expected and row["price"] < 50 for row in few)
    assert table.read(limit=3).count() == 3


def test_sql_and_statistics(table: PaimonTable, expected: list[dict[str, Any]]) -> None:
    query = "SELECT count(*) AS n, max(price) AS most FROM t WHERE id % 2 = 1"
    (row,) = alcid.sql(query, t=table).collect()
    odd = [row for row in expected if row["id"] % 2]
    assert (row["n"], row["most"]) == (len(odd), max(row["price"] for row in odd))
    statistics = table.compute_stats(["name", "id"], progress=False).to_pylist()
    assert {row["column"]: (row["ndv"], row["rows"]) for row in statistics} == {
        "name": (len({row["name"] for row in expected}), len(expected)),
        "id": (len(expected), len(expected)),
    }


def test_explain_says_who_finds_deleted_rows(table: PaimonTable) -> None:
    text = str(table.explain("id = 7"))
    assert "deleted rows of" in text
    assert "are found where rows are read" in text
    assert "by Arrow in tasks of Spark" in text


def test_a_limit_is_left_to_tasks_where_the_driver_would_read_too_much(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"id": range(20_000), "text": [f"{one:040}" for one in range(20_000)]})
    for number in range(20):
        (tmp_path / "t").mkdir(exist_ok=True)
        pa.parquet.write_table(
            rows.slice(number * 1000, 1000),
            tmp_path / "t" / f"{number}.parquet",
            compression="none",
        )
    one_file = (tmp_path / "t" / "0.parquet").stat().st_size
    monkeypatch.setattr(execution, "_SMALL", 3 * one_file)
    table = alcid.parquet(tmp_path / "t", spark)
    before = table.snapshot.traffic.bytes_read
    where = "text LIKE '%19_99'"
    assert sorted(table.read(where, limit=50).toArrow()["id"].to_pylist()) == [
        number for number in range(20_000) if f"{number:05}"[0:2] == "19" and number % 100 == 99
    ]
    # Three files' bytes, and those of the round that goes beyond them.
    assert table.snapshot.traffic.bytes_read - before <= 8 * one_file
    assert table.scan(where, limit=2).to_arrow().num_rows == 2
    highest = table.scan(order_by="text DESC", limit=3).to_arrow()["id"].to_pylist()
    assert highest == [19_999, 19_998, 19_997]
