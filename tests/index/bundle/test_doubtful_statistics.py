"""Wrong statistics of other writers lose no row: in footers, and in bundles built from them."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.datafiles.parquet.columns import FileColumn
from alcid.formats.source import BytesSource
from alcid.index.bundle import (
    BundleWriter,
    ColumnStatistics,
    FileEntry,
    open_bundles,
)
from alcid.index.bundle.bundle_set import BundleSet
from alcid.index.bundle.columns import schema_bytes
from alcid.index.bundle.format import VERSION
from alcid.types import DataType
from tests.datafiles.parquet.footers import BINARY, I64, LIST, STRUCT, Node, chunks, edit_footer
from tests.datafiles.parquet.kit import written

MR, MR_OLD = "parquet-mr version 1.13.1 (build 1)", "parquet-mr version 1.8.2 (build c6522788)"
TYPE, TOTAL = 1, 2


def by_writer(
    table: pa.Table,
    created_by: str,
    edit: Callable[[Node], None],
    order: int | None = TYPE,
) -> bytes:
    """A file whose writer and statistics differ from Arrow's."""

    def change(footer: Node) -> None:
        footer.set(6, BINARY, created_by.encode())
        footer.drop(7)
        if order is not None:
            orders = [Node({order: (STRUCT, Node())}) for _ in range(table.num_columns)]
            footer.set(7, LIST, (STRUCT, orders))
        for chunk in chunks(footer):
            chunk[12].drop(1, 2, 7, 8)
            edit(chunk[12])

    return edit_footer(written(table), change)


def bounds(low: bytes, high: bytes, *, deprecated: bool = False) -> Callable[[Node], None]:
    def edit(said: Node) -> None:
        said.drop(5, 6)
        said.set(2 if deprecated else 6, BINARY, low)
        said.set(1 if deprecated else 5, BINARY, high)

    return edit


def nulls(count: int) -> Callable[[Node], None]:
    def edit(said: Node) -> None:
        said.drop(5, 6)
        said.set(3, I64, count)

    return edit


def decimal(text: str) -> bytes:
    return int(Decimal(text) * 100).to_bytes(11, "big", signed=True)


def double(value: float) -> bytes:
    return struct.pack("<d", value)


DECIMALS = pa.table({"c": pa.array([Decimal(n) for n in range(1, 25)], pa.decimal128(25, 2))})
FLOATS = pa.table({"c": [1.0, 2.0, math.nan, 100.0]})
TEXTS = pa.table({"c": ["a", "z", "é"]})
UNSIGNED = pa.table({"c": pa.array([3, 2**63 + 5], pa.uint64())})
HALF_NULL = pa.table({"c": [7, None]})

NOON, MORNING = datetime(2021, 1, 1, 12), (1_609_473_600_000).to_bytes(8, "little")

WRONG: dict[str, tuple[bytes, str, list[object]]] = {
    "decimals compared as signed bytes": (
        by_writer(DECIMALS, MR_OLD, bounds(decimal("2"), decimal("24"), deprecated=True), None),
        "c = 1.00",
        [Decimal("1.00")],
    ),
    "decimals of parquet-cpp": (
        by_writer(DECIMALS, "parquet-cpp version 1.5.1", bounds(decimal("2"), decimal("9"))),
        "c = 24.00",
        [Decimal("24.00")],
    ),
    "a NaN hid the greatest of its page": (
        by_writer(FLOATS, MR_OLD, bounds(double(1), double(2), deprecated=True), None),
        "c = 100.0",
        [100.0],
    ),
    "text compared as signed bytes": (
        by_writer(TEXTS, MR_OLD, bounds("é".encode(), b"z", deprecated=True), None),
        "c < 'é'",
        ["a", "z"],
    ),
    "text without a column order": (
        by_writer(TEXTS, "other", bounds("é".encode(), b"z"), None),
        "c = 'é'",
        ["é"],
    ),
    "unsigned compared as signed": (
        by_writer(
            UNSIGNED,
            "Polars",
            bounds((3).to_bytes(8, "little"), (9).to_bytes(8, "little")),
        ),
        "c > 9",
        [2**63 + 5],
    ),
    "nulls counted once for each page": (
        by_writer(HALF_NULL, "Polars", nulls(2)),
        "c IS NOT NULL",
        [7],
    ),
    "nulls of a dictionary": (
        by_writer(
            pa.table({"c": pa.array(["x", None]).dictionary_encode()}),
            "parquet-cpp-arrow version 4.0.1",
            nulls(0),
        ),
        "c IS NULL",
        [None],
    ),
    "timestamps in the time zone of the writer": (
        by_writer(
            pa.table({"c": pa.array([NOON], pa.timestamp("ms"))}),
            "Parquet.Net version 4.25.0 (build 687fbb46)",
            bounds(MORNING, MORNING, deprecated=True),
            None,
        ),
        "c = TIMESTAMP_NTZ '2021-01-01 12:00:00'",
        [NOON],
    ),
    "nulls that were not known": (by_writer(HALF_NULL, MR_OLD, nulls(0)), "c IS NULL", [None]),
}


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("case", WRONG)
def test_no_row_is_lost_by_statistics_of_such_a_writer(
    tmp_path: Path, case: str, indexed: bool
) -> None:
    data, where, expected = WRONG[case]
    (tmp_path / "a.parquet").write_bytes(data)
    rows = pq.read_table(io.BytesIO(data)).append_column("id", pa.array([0] * _rows(data)))
    pq.write_table(rows.drop_columns("c"), tmp_path / "b.parquet")
    table = alcid.parquet(tmp_path)
    if indexed:
        table.build_indexes({"file-index.bitmap.columns": "id"})  # the other file has `c`
        table = alcid.parquet(tmp_path)
    values = table.scan(where, columns=["c"]).to_arrow()["c"].to_pylist()
    absent = [None] * _rows(data) if where == "c IS NULL" else []
    assert values == [*expected, *absent]


def _rows(data: bytes) -> int:
    return int(pq.read_metadata(io.BytesIO(data)).num_rows)


def test_a_footer_that_counts_nan_rules_out_what_is_greater(tmp_path: Path) -> None:
    """In Spark's order NaN is above all numbers: without a count there may be one."""
    for name, count in (("without.parquet", None), ("none.parquet", 0)):

        def edit(said: Node, count: int | None = count) -> None:
            bounds(double(1), double(2))(said)
            if count is not None:
                said.set(9, I64, count)

        (tmp_path / name).write_bytes(by_writer(pa.table({"c": [1.0, 2.0]}), "other", edit, TOTAL))
    table = alcid.parquet(tmp_path)
    assert table.count("c > 2") == 0
    groups = next(
        stage for stage in table.scan("c > 2").explain().stages if stage.name == "row groups"
    )
    assert (groups.before.row_groups, groups.after.row_groups) == (2, 1)


@pytest.mark.parametrize("indexed", [False, True])
def test_zeros_and_nan_in_total_order(tmp_path: Path, indexed: bool) -> None:
    def edit(low: float, high: float, nans: int) -> Callable[[Node], None]:
        def change(said: Node) -> None:
            bounds(double(low), double(high))(said)
            said.set(9, I64, nans)

        return change

    columns = {
        "negative": ([-2.0, -0.0], edit(-2.0, -0.0, 0)),
        "positive": ([0.0, 2.0], edit(0.0, 2.0, 0)),
        "nan": ([math.nan, math.nan], edit(math.nan, math.nan, 2)),
        "mixed": ([-1.0, math.nan], edit(-1.0, -1.0, 1)),
    }
    for name, (values, change) in columns.items():
        data = written(pa.table({"c": values, "name": [name] * 2}))
        ordered = edit_footer(data, partial(_total_order, change))
        (tmp_path / f"{name}.parquet").write_bytes(ordered)
    opened = alcid.parquet(tmp_path)
    if indexed:
        opened.build_indexes({"file-index.bitmap.columns": "name"})
        opened = alcid.parquet(tmp_path)

    def names(where: str) -> list[str]:
        result: list[str] = opened.scan(where).to_arrow()["name"].to_pylist()
        return result

    assert names("c = 0") == ["negative", "positive"]
    assert names("c < 0") == ["mixed", "negative"]
    assert names("c > 1") == ["mixed", "nan", "nan", "positive"]
    assert names("c = CAST('NaN' AS DOUBLE)") == ["mixed", "nan", "nan"]
    assert names("c IS NULL") == []


def _total_order(change: Callable[[Node], None], footer: Node) -> None:
    orders = [Node({order: (STRUCT, Node())}) for order in (TOTAL, TYPE)]
    footer.set(7, LIST, (STRUCT, orders))
    change(chunks(footer)[0][12])


# Bundles of version 1.0


def entry(name: str, arrow_type: pa.DataType, statistics: ColumnStatistics) -> FileEntry:
    column = FileColumn("c", 0, arrow_type, statistics.data_type)
    return FileEntry(name, 900, "1", 10, 7, {"c": statistics}, schema_bytes([column]))


def kept(statistics: ColumnStatistics, arrow_type: pa.DataType, version: str) -> dict[str, object]:
    """The statistics that a set takes from a bundle of some version."""
    file = io.BytesIO()
    with BundleWriter(file) as writer:
        writer.add_file(entry("a.parquet", arrow_type, statistics))
    (bundle,) = open_bundles([BytesSource(file.getvalue())])
    bundle.version = version
    bundles = BundleSet([bundle], ["a.parquet"], [900], ["1"])
    (column,) = bundles.statistics("c")
    values: dict[str, object] = column.values[0].as_py()
    assert bundles.live()[1].statistics[0].values.equals(column.values)  # as a merge writes them
    return {name: values[name] for name in ("min", "max", "nulls", "has_nan")}


def of(type_name: str, low: object, high: object, **more: object) -> ColumnStatistics:
    return ColumnStatistics(DataType.parse(type_name), low, high, 1, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statistics", "arrow_type", "holds"),
    [
        pytest.param(of("BIGINT", 3, 9), pa.int64(), False, id="integer"),
        pytest.param(of("BOOLEAN", False, True), pa.bool_(), False, id="boolean"),
        pytest.param(
            of("DECIMAL(9, 2)", Decimal(1), Decimal(2)), pa.decimal128(9, 2), False, id="decimal"
        ),
        pytest.param(of("DOUBLE", 1.0, 2.0), pa.float64(), False, id="double of a footer"),
        pytest.param(
            of("DOUBLE", 1.0, 2.0, has_nan=False), pa.float64(), True, id="double of values"
        ),
        pytest.param(
            of("STRING", b"a", b"b", minimum_exact=False, maximum_exact=False),
            pa.string(),
            False,
            id="text of a footer",
        ),
        pytest.param(of("STRING", b"a", b"b"), pa.string(), True, id="text of values"),
    ],
)
def test_of_a_bundle_of_version_1_0_only_statistics_of_values_are_used(
    statistics: ColumnStatistics, arrow_type: pa.DataType, holds: bool
) -> None:
    now = kept(statistics, arrow_type, VERSION)
    assert (now["min"], now["max"], now["nulls"]) == (statistics.minimum, statistics.maximum, 1)
    before = kept(statistics, arrow_type, "1.0")
    assert before == (now if holds else now | {"min": None, "max": None, "nulls": None})
