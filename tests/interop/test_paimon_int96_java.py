"""TIMESTAMP(7..9) as Paimon's Java writes it: equal rows before and after we build indexes."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid import col
from alcid.errors import UnsupportedError
from alcid.tables.paimon.write.build import build
from tests.golden.container_cases import leaf
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.golden.values import timestamp

DAY = 86_400 * 10**9
NANOS = [-400 * DAY - 700, -1744877000, -100, -DAY, 0, 300, 1_700_000_000_123_456_700, None]
COLUMNS = {
    "id": "INT",
    "at": "TIMESTAMP(9)",
    "zoned": "TIMESTAMP(9) WITH LOCAL TIME ZONE",
    "coarse": "TIMESTAMP(7)",
}
TIMES = ("at", "zoned", "coarse")
KINDS = ("bitmap", "bloom-filter", "bsi")


def answers(java: JavaPaimon, path: Path) -> list[list[int]]:
    """The rows for each value of each column, and those before 1970."""
    asked = [
        leaf(name, "EQUAL", timestamp(*divmod(nanos, 10**6)))
        for name in TIMES
        for nanos in NANOS
        if nanos is not None
    ]
    asked += [leaf(name, "LESS_THAN", timestamp(0)) for name in TIMES]
    return [sorted(java.read(path, where)["id"].to_pylist()) for where in asked]


def test_java_gives_the_same_rows_before_and_after_a_build(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    java_paimon.create(path, COLUMNS, options={"file.format": "parquet"})
    ids = pa.array(range(len(NANOS)), pa.int32())
    kinds = [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.timestamp("ns")]
    times = [pa.array(NANOS, kind) for kind in kinds]
    java_paimon.write(path, pa.table([ids, *times], names=list(COLUMNS)))
    (file,) = path.glob("bucket-0/*.parquet")
    arrow = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()["at"]
    assert arrow[1].as_py() == datetime(2554, 7, 21, 23, 34, 31, 964674)  # Java's are negative
    before = answers(java_paimon, path)
    assert before == [*([row] for row in (*range(7), *range(7), *range(7))), *[[0, 1, 2, 3]] * 3]
    table = alcid.paimon(path)
    for name in TIMES:
        assert table.scan().to_arrow()[name].cast(pa.int64()).to_pylist() == NANOS
    report = build(table, {f"file-index.{kind}.columns": ",".join(TIMES) for kind in KINDS})
    assert (report.indexed, report.skipped) == (1, ())
    assert answers(java_paimon, path) == before
    for row, nanos in enumerate(NANOS[:-1]):
        assert nanos is not None
        where = col("at") == np.datetime64(nanos, "ns")
        assert table.scan(where).to_arrow()["id"].to_pylist() == [row]
    assert table.verify().ok


def test_what_nanoseconds_do_not_reach_is_refused(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    path = tmp_path / "t"
    java_paimon.create(
        path, {"id": "INT", "at": "TIMESTAMP(9)"}, options={"file.format": "parquet"}
    )
    times = pa.array([datetime(9999, 12, 31), datetime(2020, 1, 1)], pa.timestamp("us"))
    java_paimon.write(path, pa.table({"id": pa.array([0, 1], pa.int32()), "at": times}))
    table = alcid.paimon(path)
    for where in (None, "at > '2100-01-01'"):
        with pytest.raises(UnsupportedError, match="column at: found INT96 of 9999-12-31"):
            table.scan(where).to_arrow()
    assert table.scan("id < 1", columns=["id"]).to_arrow()["id"].to_pylist() == [0]
