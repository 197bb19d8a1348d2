"""Tables whose manifests are ORC files (`manifest.format=orc`): read, and never written to."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from alcid.errors import UnsupportedError
from tests.golden.paimon_tables_jvm import JavaPaimon

ORC = {"manifest.format": "orc"}


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(ids, pa.int32()), "name": [f"n{number}" for number in ids]},
        pa.schema([pa.field("id", pa.int32(), nullable=False), ("name", pa.string())]),
    )


def test_partitions_indexes_and_statistics(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    java = java_paimon
    options = ORC | {"file-index.bitmap.columns": "name"}
    table = java.create(
        tmp_path / "t", {"id": "INT", "name": "STRING"}, partition_keys=["name"], options=options
    )
    java.write(table, rows(1, 2, 3))
    java.write(table, rows(3, 4))
    assert next((table / "manifest").iterdir()).read_bytes()[:3] == b"ORC"
    opened = alcid.paimon(table)
    table_rows = opened.scan().to_arrow().sort_by("id")
    assert table_rows.column("id").to_pylist() == [1, 2, 3, 3, 4]
    assert table_rows.equals(java.read(table).sort_by("id").cast(table_rows.schema))
    plan = opened.scan("id >= 4").explain()
    assert opened.count("id >= 4") == 1
    assert "4 files out" in str(plan)
    assert alcid.paimon(table, snapshot_id=1).count() == 3
    assert opened.verify().ok


def test_deletion_vectors_and_levels(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    java = java_paimon
    options = ORC | {"deletion-vectors.enabled": "true", "bucket": "1"}
    table = java.create(
        tmp_path / "t",
        {"id": "INT NOT NULL", "name": "STRING"},
        primary_keys=["id"],
        options=options,
    )
    java.write(table, rows(*range(20)))
    java.write(table, rows(3, 7), "-D")
    java.compact(table)
    opened = alcid.paimon(table)
    expected = [number for number in range(20) if number not in (3, 7)]
    assert sorted(opened.scan().to_arrow().column("id").to_pylist()) == expected
    assert sorted(java.read(table).column("id").to_pylist()) == expected


def test_whatever_would_commit_is_refused_by_name(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    options = ORC | {"deletion-vectors.enabled": "true"}
    table = java_paimon.create(tmp_path / "t", {"id": "INT", "name": "STRING"}, options=options)
    java_paimon.write(table, rows(1, 2))
    files = sorted(path for path in table.rglob("*") if path.is_file())
    opened = alcid.paimon(table)
    refused = "manifest.format=orc: cannot .*: manifests are written in Avro only"
    with pytest.raises(UnsupportedError, match=refused):
        opened.append(rows(5))
    with pytest.raises(UnsupportedError, match=refused):
        opened.build_indexes({"file-index.bloom-filter.columns": "id"})
    with pytest.raises(UnsupportedError, match=refused):
        opened.delete("id = 1")
    with pytest.raises(UnsupportedError, match=refused):
        opened.compute_stats()
    with pytest.raises(UnsupportedError, match=refused):
        opened.repair()
    assert sorted(path for path in table.rglob("*") if path.is_file()) == files
    assert opened.clean().removed == ()
