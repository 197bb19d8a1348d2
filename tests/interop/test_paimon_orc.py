"""ORC files that Java wrote: values that Arrow reads differently."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import alcid
from alcid.datafiles.orc.timestamps import find_writer_zone
from alcid.errors import UnsupportedError
from tests.golden.paimon_tables_jvm import JavaPaimon

SECOND = 10**9
LTZ = "TIMESTAMP(9) WITH LOCAL TIME ZONE"
BOTH = {"id": "INT", "t": "TIMESTAMP(9)", "l": LTZ}
ORC = {"file.format": "orc"}
NOT_LEGACY = ORC | {"orc.timestamp-ltz.legacy.type": "false"}
# Old dates, the seconds around 1970 in several zones and in UTC, clock changes, distant years.
SECONDS = [
    *(-3_000_000_000, -2_208_988_801, -2_208_988_800, -2_177_481_943, -2_019_705_670),
    *(-28_802, -28_800, -19_802, -18_002, -5, -2, -1, 0, 1, 17_998, 18_002, 19_798, 28_798, 28_799),
    *(1_420_070_399, 1_420_070_400, 1_710_054_000, 1_711_848_600, 1_730_597_400, 1_743_301_800),
    *(3_000_000_000, 8_000_000_000, 8_010_000_000),
]
FRACTIONS = [0, 1, 999_999, 1_000_000, 500_000_000, 999_999_999]
MOMENTS = [second * SECOND + fraction for second in SECONDS for fraction in FRACTIONS]


def rows(columns: dict[str, Any]) -> pa.Table:
    """All moments in all columns, in numbers that are written unchanged."""
    values = {
        "id": pa.array(range(len(MOMENTS)), pa.int32()),
        "t": pa.array(MOMENTS, pa.timestamp("ns")),
        "l": pa.array(MOMENTS, pa.timestamp("ns", "UTC")),
    }
    return pa.table({name: values[name] for name in columns})


@contextmanager
def java_in(java: JavaPaimon, zone: str) -> Iterator[None]:
    """Java, in whatever time zone its process runs."""
    zones = java.jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(zone))
    try:
        yield
    finally:
        zones.setDefault(before)


def test_char_is_read_without_its_padding(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    columns = {"id": "INT", "c": "CHAR(4)", "v": "VARCHAR(4)"}
    table = java_paimon.create(tmp_path / "t", columns, options=ORC)
    texts = ["ab", "abcd", "", None, "a b"]
    java_paimon.write(
        table, pa.table({"id": pa.array(range(5), pa.int32()), "c": texts, "v": texts})
    )
    rows_read = alcid.paimon(table).scan().to_arrow().sort_by("id")
    assert rows_read.column("c").to_pylist() == texts
    assert rows_read.equals(java_paimon.read(table).sort_by("id").cast(rows_read.schema))
    assert alcid.paimon(table).count("c = 'ab'") == 1


@pytest.mark.parametrize("options", [ORC, NOT_LEGACY], ids=["legacy", "instants"])
@pytest.mark.parametrize(
    "zone", ["Asia/Shanghai", "Asia/Kolkata", "America/New_York", "Europe/Warsaw", "UTC"]
)
def test_timestamps_are_those_that_java_reads_where_it_wrote_them(
    java_paimon: JavaPaimon, tmp_path: Path, zone: str, options: dict[str, str]
) -> None:
    table = java_paimon.create(tmp_path / "t", BOTH, options=options)
    table_rows = rows(BOTH)
    with java_in(java_paimon, zone):
        java_paimon.write(table, table_rows)
        expected = java_paimon.read(table).sort_by("id")
    # All except the second before 1970 and the skipped hours, which are lost when written.
    assert (
        np.count_nonzero(expected["t"].to_numpy() == table_rows["t"].to_numpy())
        >= len(table_rows) - 9
    )
    read = alcid.paimon(table).scan().to_arrow().sort_by("id")
    for name in ("t", "l"):
        assert read[name].cast(pa.int64()).equals(expected[name].cast(pa.int64())), name
    assert alcid.paimon(table).verify().ok


def test_indexes_of_timestamps_hide_no_rows(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    """Java's indexes, as we build none, on values that Java does not lose when it writes."""
    columns = {"id": "INT", "t": "TIMESTAMP(6)", "l": LTZ.replace("9", "3")}
    kinds = ("bitmap", "bloom-filter", "bsi")
    indexes = {f"file-index.{kind}.columns": "t,l" for kind in kinds}
    table = java_paimon.create(tmp_path / "t", columns, options=ORC | indexes)
    is_kept = [moment // SECOND != 28_799 and moment % 1_000_000 == 0 for moment in MOMENTS]
    written = rows(columns).filter(pa.array(is_kept))
    with java_in(java_paimon, "Asia/Shanghai"):
        java_paimon.write(table, written)
    ours = alcid.paimon(table)
    plain = ours.scan().to_arrow()
    assert plain.equals(written.cast(plain.schema))
    assert {(index.column, index.index_type) for index in ours.indexes()} == {
        (name, kind) for name in ("t", "l") for kind in kinds
    }
    assert ours.verify().ok
    for name in ("t", "l"):
        values = plain[name].unique()
        for value in values.take(list(range(0, len(values), 5))):
            expected = plain.filter(pc.equal(plain[name], value))["id"].to_pylist()
            question = alcid.col(name) == value.as_py()
            assert sorted(ours.scan(question).to_arrow()["id"].to_pylist()) == expected, value


def test_a_file_that_does_not_name_its_zone_is_refused(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    """Java names the zone for TIMESTAMP only; its own readers in other zones read other values."""
    columns = {"id": "INT", "l": LTZ}
    table = java_paimon.create(tmp_path / "t", columns, options=ORC)
    with java_in(java_paimon, "Asia/Shanghai"):
        java_paimon.write(table, rows(columns))
    with pytest.raises(UnsupportedError, match="column l: TIMESTAMP_LTZ in the time zone of"):
        alcid.paimon(table).scan().to_arrow()
    assert alcid.paimon(table).scan(columns=["id"]).to_arrow().num_rows == len(MOMENTS)
    report = alcid.paimon(table).verify()
    assert report.ok
    assert [warning.what for warning in report.warnings] == ["column 'l'"]
    other = java_paimon.create(tmp_path / "u", columns, options=NOT_LEGACY)
    with java_in(java_paimon, "Asia/Shanghai"):
        java_paimon.write(other, rows(columns))
        expected = java_paimon.read(other).sort_by("id")
    assert alcid.paimon(other).scan().to_arrow().sort_by("id").equals(expected)


def test_zones_have_the_offsets_that_java_gives_them(java_paimon: JavaPaimon) -> None:
    zones = java_paimon.jvm.java.util.TimeZone
    seconds = np.array([-3_000_000_000, -2_100_000_000, -600_000_000, 0, 1_720_000_000])
    compared = 0
    for name in sorted(zones.getAvailableIDs()):
        java = zones.getTimeZone(name)
        try:
            zone = find_writer_zone(name, "a.orc")
        except UnsupportedError:  # PST, SystemV/EST5 and others are names that only Java knows
            assert "/" not in name or name.startswith("SystemV/"), name
            continue
        for second in seconds:
            try:
                offsets = zone.offsets(np.array([second]), "a.orc").tolist()
            except UnsupportedError:
                continue
            assert offsets == [java.getOffset(int(second) * 1000) // 1000], (name, second)
            compared += 1
    assert compared > 2000


def test_a_null_key_of_a_map_is_refused(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    columns = {"id": "INT", "m": {"type": "MAP", "key": "STRING", "value": "INT"}}
    table = java_paimon.create(tmp_path / "t", columns, options=ORC)
    jvm = java_paimon.jvm
    builder = java_paimon.call("table.Table", "newBatchWriteBuilder", java_paimon._open(table))
    writer = java_paimon.call("table.sink.BatchWriteBuilder", "newWrite", builder)
    for number in range(3):
        entries = jvm.java.util.HashMap()
        entries.put(jvm.paimon.data.BinaryString.fromString("a"), number)
        if number == 1:
            entries.put(None, 7)
        row = jvm.paimon.data.GenericRow(2)
        row.setField(0, number)
        row.setField(1, jvm.paimon.data.GenericMap(entries))
        writer.write(row)
    committer = java_paimon.call("table.sink.BatchWriteBuilder", "newCommit", builder)
    committer.commit(writer.prepareCommit())
    committer.close()
    writer.close()
    ours = alcid.paimon(table)
    with pytest.raises(UnsupportedError, match=r"\.orc: column m: a map with a null key"):
        ours.scan().to_arrow()
    assert ours.scan("id > 0", columns=["id"]).to_arrow()["id"].to_pylist() == [1, 2]
    report = ours.verify()
    assert report.ok
    (warning,) = report.warnings
    assert warning.what == "column 'm'"
    assert "not checked: " in warning.problem
    assert "column m: a map with a null key" in warning.problem


KEYED = {"bucket": "2", "deletion-vectors.enabled": "true"}


def birds(first: int, last: int, name: str) -> pa.Table:
    """Rows of moments before and after 1970, an hour apart."""
    hours = [number * 3600 - 180_000 for number in range(last - first)]
    return pa.table(
        {
            "id": pa.array(range(first, last), pa.int32()),
            "name": [f"{name} {number}" for number in range(last - first)],
            "t": pa.array([hour * 1_000_000 + 7 for hour in hours], pa.timestamp("us")),
            "l": pa.array([hour * 1000 + 500 for hour in hours], pa.timestamp("ms", "UTC")),
        }
    )


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "keys"])
def test_tables_of_orc_files_are_written_as_parquet_when_they_ask_for_it(
    java_paimon: JavaPaimon, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    columns = {"id": "INT NOT NULL", "name": "STRING", "t": "TIMESTAMP(6)", "l": LTZ}
    columns["l"] = columns["l"].replace("9", "3")
    options = ORC | (KEYED if keys else {"deletion-vectors.enabled": "true"})
    table = java_paimon.create(tmp_path / "t", columns, primary_keys=keys, options=options)
    model = {row["id"]: row for row in birds(0, 100, "java").to_pylist()}
    more = birds(50, 110, "ours") if keys else birds(100, 110, "ours")
    with java_in(java_paimon, "Asia/Shanghai"):
        java_paimon.write(table, birds(0, 100, "java"))
        ours = alcid.paimon(table)
        write = ours.upsert if keys else ours.append
        with pytest.raises(UnsupportedError, match=r"file\.format=orc: .*only parquet is written"):
            write(more)
        java_paimon.alter(table, "setOption", "file.format", "parquet")
        ours = alcid.paimon(table)
        (ours.upsert if keys else ours.append)(more)
        model |= {row["id"]: row for row in more.to_pylist()}
        ours.delete("id IN (4, 60, 105)")
        model = {number: row for number, row in model.items() if number not in (4, 60, 105)}
        if keys:
            ours.compact()
        expected = [model[number] for number in sorted(model)]
        assert java_paimon.read(table).sort_by("id").to_pylist() == expected
    assert ours.scan().to_arrow().sort_by("id").to_pylist() == expected
    assert {path.suffix for path in table.rglob("data-*")} == {".orc", ".parquet"}
    assert ours.verify().ok
