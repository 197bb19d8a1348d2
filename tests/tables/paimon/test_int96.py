"""TIMESTAMP(7..9) as Java writes it: INT96, of which Arrow alone misreads some values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from alcid import PaimonTable, col
from alcid.errors import UnsupportedError
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.write.build import build
from tests.datafiles.parquet.kit import int96, int96_written, java_int96
from tests.tables.maintenance.forging import forge, state_of
from tests.tables.maintenance.repair_kit import repaired
from tests.tables.paimon.small_tables import VECTORS, commit, create, write_file

DAY = 86_400 * 10**9
NANOS = [-400 * DAY - 7, -1744877000, -1, -999, -DAY, 0, 1, 1_700_000_000_123_456_789, None]
COLUMNS = {
    "id": "BIGINT",
    "at": "TIMESTAMP(9)",
    "zoned": "TIMESTAMP(9) WITH LOCAL TIME ZONE",
    "coarse": "TIMESTAMP(7)",
}
TIMES = ("at", "zoned", "coarse")
INDEXES = {
    f"file-index.{index_type}.columns": ",".join(TIMES)
    for index_type in ("bitmap", "bloom-filter", "bsi")
}
EMBEDDED = {"file-index.in-manifest-threshold": "1 mb"}


def put(table: PaimonTable, raw: list[bytes | None], nanos: list[int | None]) -> None:
    """Commit a file with these INT96 in all columns; `known` is what the manifest says of them."""
    ids = pa.array(range(len(raw)), pa.int64())
    kinds = {name: table.snapshot.schema.types[name].to_arrow() for name in TIMES}
    rows = pa.table({"id": ids, **{name: pa.array(nanos, kind) for name, kind in kinds.items()}})
    values = pa.array(raw, pa.binary(12))
    data = int96_written(pa.table({"id": ids, **dict.fromkeys(TIMES, values)}))
    entry = write_file(table, rows, data=data)
    commit(table, Change(kind="APPEND", added=[entry]))


@pytest.fixture
def table(tmp_path: Path) -> PaimonTable:
    made = create(tmp_path / "t", COLUMNS, options={**VECTORS, **EMBEDDED})
    put(made, [None if nanos is None else java_int96(nanos) for nanos in NANOS], NANOS)
    return made


def answers(table: PaimonTable) -> list[list[int]]:
    """The rows for each value of each column, and those before 1970."""
    scans = [
        table.scan(col(name) == np.datetime64(nanos, "ns"), columns=["id"])
        for name in ("at", "coarse")
        for nanos in NANOS
        if nanos is not None
    ]
    scans += [table.scan(col(name) < np.datetime64(0, "ns"), columns=["id"]) for name in TIMES[:1]]
    scans += [table.scan(f"{name} IS NULL", columns=["id"]) for name in TIMES]
    return [sorted(scan.to_arrow()["id"].to_pylist()) for scan in scans]


ANSWERS = [
    *([row] for row in range(8)),
    *([row] for row in range(8)),
    [0, 1, 2, 3, 4],
    [8],
    [8],
    [8],
]


def test_values_before_1970_are_read_and_indexed(table: PaimonTable) -> None:
    for name in TIMES:
        times = table.scan(columns=[name]).to_arrow()[name]
        assert times.cast(pa.int64()).to_pylist() == NANOS
    assert answers(table) == ANSWERS
    build(table, INDEXES)
    assert answers(table) == ANSWERS
    report = table.verify()
    assert (report.ok, sum(index.sound for index in report.indexes)) == (
        True,
        13,
    )  # with the statistics of 4 columns


def test_indexes_of_the_year_2554_are_found_and_rebuilt(tmp_path: Path) -> None:
    """What was built when Arrow's microseconds were trusted: other values than the file's."""
    wrong = create(tmp_path / "wrong", COLUMNS, options={**VECTORS, **EMBEDDED})
    later = [None if nanos is None else nanos + 200 * 365 * DAY for nanos in NANOS]
    put(wrong, [None if nanos is None else java_int96(nanos) for nanos in later], later)
    build(wrong, INDEXES)
    (entry,) = state_of(tmp_path / "wrong").entries
    table = create(tmp_path / "t", COLUMNS, options={**VECTORS, **EMBEDDED})
    put(table, [None if nanos is None else java_int96(nanos) for nanos in NANOS], NANOS)
    forge(
        tmp_path / "t",
        lambda file: [file.with_file(replace(file.file, embedded_index=entry.file.embedded_index))],
    )
    table.refresh()
    assert table.count(col("at") == np.datetime64(NANOS[0], "ns")) == 0  # hidden
    report = table.verify()
    assert {(problem.what, problem.problem) for problem in report.problems} == {
        *(
            (f"bitmap of '{name}'", "8 rows missing, 8 rows too many, the first is row 0")
            for name in TIMES
        ),
        *(
            (f"bsi of '{name}'", "8 rows missing, 8 rows too many, the first is row 0")
            for name in TIMES
        ),
        *((f"bloom-filter of '{name}'", "6 rows missing, the first is row 0") for name in TIMES),
    }
    examples = {index.example.value for index in report.indexes if index.example is not None}
    assert examples == {"1968-11-26 23:59:59.999999993", "1968-11-26 23:59:59.999999993Z"}
    assert {repair.done for repair in repaired(table).repaired} == {"built anew"}
    assert answers(table) == ANSWERS


@pytest.mark.parametrize("day", [2_932_896, -719_162], ids=["9999-12-31", "0001-01-01"])
def test_values_that_nanoseconds_do_not_reach_are_refused(tmp_path: Path, day: int) -> None:
    table = create(tmp_path / "t", COLUMNS, options={**VECTORS, **EMBEDDED})
    put(table, [java_int96(5), int96(day, 0)], [0, (1 << 63) - 1])
    problem = (
        rf"t/bucket-0/data-.*parquet: column at: found INT96 of {np.datetime64(day, 'D')}, "
        r"expected the years 1677 to 2262, which timestamp\[ns\] reaches$"
    )
    assert table.scan("id >= 0", columns=["id"]).to_arrow()["id"].to_pylist() == [0, 1]
    later = "at > TIMESTAMP_NTZ'2100-01-01 00:00:00'"
    refused: list[Callable[[], object]] = [
        table.scan().to_arrow,
        lambda: table.count(later),
        lambda: table.delete(later),
        table.scan(columns=["at"], order_by="at", limit=1).to_arrow,
    ]
    for act in refused:
        with pytest.raises(UnsupportedError, match=problem):
            act()
    report = build(table, {"file-index.bitmap.columns": "at,id"})
    assert (report.indexed, report.failed) == (1, 0)
    assert [(index.column, index.index_type) for index in table.indexes()] == [("id", "bitmap")]
    (skipped,) = report.skipped
    assert (skipped.what, skipped.files) == ("bitmap of 'at'", 1)
    assert re.search(problem, skipped.reason)
