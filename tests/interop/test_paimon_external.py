"""Data files outside the folder of their table (`data-file.external-paths`), written by Java."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from alcid.errors import FileGoneError, UnsupportedError
from tests.golden.paimon_tables_jvm import JavaPaimon


def external(*folders: Path) -> dict[str, str]:
    paths = ",".join(f"FILE://{folder}" for folder in folders)
    strategy = {"data-file.external-paths.strategy": "round-robin"}
    return strategy | {"data-file.external-paths": paths}


def rows(*ids: int) -> pa.Table:
    columns = {"id": pa.array(ids, pa.int32()), "name": [f"n{number}" for number in ids]}
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("name", pa.string())])
    return pa.table(columns, schema)


@pytest.fixture
def table(java_paimon: JavaPaimon, tmp_path: Path) -> Path:
    """Rows in two folders outside, and later ones inside; indexes next to the data."""
    java, indexes = java_paimon, {"file-index.bloom-filter.columns": "name"}
    in_files = {
        "file-index.in-manifest-threshold": "1 b",
        "file-index.bloom-filter.name.items": "3000",
    }
    options = external(tmp_path / "first", tmp_path / "second") | indexes | in_files
    path = java.create(tmp_path / "t", {"id": "INT", "name": "STRING"}, options=options)
    for start, folder in ((0, "first"), (1, "second"), (2, "second")):
        java.write(path, rows(*range(start, 9000, 3)), options=external(tmp_path / folder))
    return path


def test_files_in_several_folders(java_paimon: JavaPaimon, table: Path) -> None:
    inside = {"data-file.external-paths.strategy": "none"}
    java_paimon.write(table, rows(9001), options=inside)
    folders = [table, table.parent / "first", table.parent / "second"]
    assert all(list(folder.rglob("data-*.parquet")) for folder in folders)
    opened = alcid.paimon(table)
    table_rows = opened.scan().to_arrow().sort_by("id")
    assert table_rows.equals(java_paimon.read(table).sort_by("id").cast(table_rows.schema))
    assert table_rows.column("id").to_pylist() == [*range(9000), 9001]
    scan = opened.scan("name = 'n2300'")
    assert scan.to_arrow().to_pylist() == [{"id": 2300, "name": "n2300"}]
    assert [(use.index, use.outcome, use.files) for use in scan.explain().indexes] == [
        ("bloom-filter", "ruled out", 2),
        ("bloom-filter", "may contain it", 1),
    ]


def test_vectors_next_to_the_data(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    java = java_paimon
    for beside in ("true", "false"):
        vectors = {"deletion-vectors.enabled": "true", "index-file-in-data-file-dir": beside}
        table = java.create(
            tmp_path / beside,
            {"id": "INT NOT NULL", "name": "STRING"},
            primary_keys=["id"],
            options=external(tmp_path / f"outside-{beside}") | vectors | {"bucket": "1"},
        )
        java.write(table, rows(*range(20)))
        java.write(table, rows(3, 7), "-D")
        ids = alcid.paimon(table).scan().to_arrow().column("id").to_pylist()
        assert sorted(ids) == [number for number in range(20) if number not in (3, 7)]
        assert len(java.read(table)) == 18


def test_only_folders_that_the_table_names_are_read(table: Path) -> None:
    schema = table / "schema" / "schema-0"
    described = json.loads(schema.read_text())
    described["options"] |= external(table.parent / "first")
    schema.write_text(json.dumps(described))
    with pytest.raises(UnsupportedError, match=r"second/.*none of the folders of data-file.ext"):
        alcid.paimon(table)


def test_a_file_that_is_gone_is_named(table: Path) -> None:
    gone = next((table.parent / "first").rglob("data-*.parquet"))
    gone.unlink()
    with pytest.raises(FileGoneError, match=gone.name):
        alcid.paimon(table).scan().to_arrow()


def test_nothing_is_written_to_such_a_table(table: Path) -> None:
    files = sorted(path for path in table.parent.rglob("*") if path.is_file())
    opened = alcid.paimon(table)
    with pytest.raises(UnsupportedError, match="external-paths"):
        opened.append(rows(5))
    with pytest.raises(UnsupportedError, match="files outside of its folder"):
        opened.build_indexes({"file-index.bloom-filter.columns": "id"})
    with pytest.raises(UnsupportedError, match="files outside of its folder"):
        opened.compute_stats()
    with pytest.raises(UnsupportedError, match="files outside of its folder"):
        opened.repair()
    with pytest.raises(UnsupportedError, match="lies outside of its table"):
        opened.verify()
    assert opened.clean().removed == ()
    assert sorted(path for path in table.parent.rglob("*") if path.is_file()) == files
