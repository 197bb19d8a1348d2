"""Statistics that we write into manifests, compared with Java's for the same rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import alcid
from alcid import PaimonTable
from alcid.tables.paimon.metadata.statistics import unpack_rows
from tests.golden.container_cases import leaf
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.golden.values import timestamp
from tests.interop.exchange_rows import COLUMNS, rows_of
from tests.interop.java_definitions import create_by_java, read_schema
from tests.tables.paimon.every_type import every_type
from tests.tables.paimon.small_tables import create


def both_write(java: JavaPaimon, folder: Path, table: PaimonTable, rows: pa.Table) -> PaimonTable:
    """Append rows to our table, and let Java append them to an equal one."""
    create_by_java(java, folder, read_schema(Path(table.location)))
    table.append(rows)
    if "at6" in rows.column_names:  # which Java stores in milliseconds
        times = rows["at6"].cast(pa.time32("ms"))
        rows = rows.set_column(rows.schema.get_field_index("at6"), "at6", times)
    java.write(folder, rows)
    return alcid.paimon(folder)


def described(table: PaimonTable) -> tuple[list[Any], list[Any]]:
    """What the manifests and manifest lists say about files."""
    state = table.snapshot.state
    files = [
        (
            *(entry.partition, entry.bucket, entry.total_buckets, entry.file.level),
            *(entry.file.rows, entry.file.delete_rows),
            *(entry.file.min_sequence, entry.file.max_sequence),
            *(entry.file.min_key, entry.file.max_key, entry.file.key_stats, entry.file.value_stats),
            *(entry.file.stats_columns, entry.file.source, entry.file.write_columns),
        )
        for entry in state.entries
    ]
    lists = [
        (
            manifest.added,
            manifest.deleted,
            manifest.partition_stats,
            manifest.schema_id,
            manifest.spans,
        )
        for manifest in state.delta
    ]
    return sorted(files, key=repr), lists


@pytest.mark.parametrize("mode", ["truncate(16)", "full", "counts", "none"])
def test_statistics_are_those_of_java_to_the_byte(
    java_paimon: JavaPaimon, tmp_path: Path, mode: str
) -> None:
    options = {"metadata.stats-mode": mode}
    columns, rows = every_type()
    ours = create(tmp_path / "types", columns, options=options)
    theirs = both_write(java_paimon, tmp_path / "their types", ours, rows)
    assert described(ours) == described(theirs)
    options |= {"bucket": "2", "bucket-key": "id"}
    ours = create(tmp_path / "rows", COLUMNS, partition_keys=["dt"], options=options)
    numbers = np.arange(3000)
    theirs = both_write(java_paimon, tmp_path / "their rows", ours, without_nan(rows_of(numbers)))
    assert len(ours.snapshot.placed) == 6
    assert described(ours) == described(theirs)


def without_nan(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(pc.fill_null(pc.is_nan(rows["score"]), False)))


def test_statistics_differ_from_those_of_java_in_two_kinds_of_columns(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    """With a NaN, which is the greatest for Java; and finer than microseconds, without bounds."""
    ours = create(tmp_path / "t", {"x": "DOUBLE", "at": "TIMESTAMP(9)"}, options={})
    moments = pa.array([1, 5, -1], pa.timestamp("ns"))
    rows = pa.table({"x": [1.5, math.nan, 2.5], "at": moments})
    theirs = both_write(java_paimon, tmp_path / "theirs", ours, rows)
    bounds = []
    for table in (ours, theirs):
        (entry,) = table.snapshot.state.entries
        stats, types = entry.file.value_stats, list(table.snapshot.schema.types.values())
        packed = [stats.minimum, stats.maximum]
        floats, times = unpack_rows(packed, types)
        bounds.append((repr(floats.to_pylist()), times.cast(pa.int64()).to_pylist()))
        assert stats.null_counts == (0, 0)
    assert bounds == [("[None, None]", [-1, 5]), ("[1.5, nan]", [None, None])]
    # So a reader that uses ours finds as much.
    where = leaf("at", "EQUAL", timestamp(0, 5))
    assert java_paimon.read(tmp_path / "t", where)["at"].cast(pa.int64()).to_pylist() == [5]


def test_a_table_of_old_writers_keeps_statistics_of_all_columns(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    """Equal to Java's, to the byte, if asked for; and Java finds the rows of all files."""
    columns, rows = every_type()
    table = create(tmp_path / "t", columns, options={})
    if "at6" in rows.column_names:  # which Java stores in milliseconds
        times = rows["at6"].cast(pa.time32("ms"))
        rows = rows.set_column(rows.schema.get_field_index("at6"), "at6", times)
    java_paimon.write(tmp_path / "t", rows, options={"metadata.stats-dense-store": "false"})
    table.append(rows)
    theirs, ours = (entry.file for entry in table.snapshot.state.entries)
    assert (theirs.stats_columns, ours.stats_columns) == (None, None)
    assert ours.value_stats == theirs.value_stats
    name = next(name for name, kind in columns.items() if kind == "BIGINT")
    value = next(text for text in rows[name].to_pylist() if text is not None)
    values = java_paimon.read(tmp_path / "t", leaf(name, "EQUAL", value))[name].to_pylist()
    assert values == [value] * 2 * rows[name].to_pylist().count(value)
