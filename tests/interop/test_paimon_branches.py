"""Branches that Paimon's Java made: each has its own schemas, snapshots and tags."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from alcid.errors import FileGoneError, UnsupportedError
from tests.golden.paimon_tables_jvm import JavaPaimon

COLUMNS = {"id": "INT", "name": "STRING"}


def rows(*ids: int, extra: bool = False) -> pa.Table:
    columns = {"id": pa.array(ids, pa.int32()), "name": [f"n{number}" for number in ids]}
    return pa.table(columns | ({"more": pa.array(ids, pa.int64())} if extra else {}))


def ids(table: alcid.PaimonTable, where: str | None = None) -> list[int]:
    numbers = table.scan(where).to_arrow().column("id").to_pylist()
    return sorted(numbers)


@pytest.fixture(scope="module")
def table(java_paimon: JavaPaimon, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Main with the rows 1 to 4; `old` since the tag `first`, with 1, 2 and 9; `empty` without."""
    java = java_paimon
    path = java.create(tmp_path_factory.mktemp("branches") / "t", COLUMNS)
    java.write(path, rows(1, 2))
    java.tag(path, "first", 1)
    java.write(path, rows(3, 4))
    java.branch(path, "old", "first")
    java.branch(path, "empty")
    java.write(path, rows(9), options={"branch": "old"})
    java.tag(path, "old", 2)
    return path


def test_a_branch_has_its_own_snapshots_and_tags(java_paimon: JavaPaimon, table: Path) -> None:
    assert ids(alcid.paimon(table)) == [1, 2, 3, 4]
    old = alcid.paimon(table, branch="old")
    assert ids(old) == [1, 2, 9]
    assert sorted(java_paimon.read(table, options={"branch": "old"})["id"].to_pylist()) == [1, 2, 9]
    assert ids(old, "id > 2") == [9]
    assert ids(alcid.paimon(table, branch="old", tag="first")) == [1, 2]
    assert ids(alcid.paimon(table, branch="old", snapshot_id=1)) == [1, 2]
    assert alcid.paimon(table, branch="empty").count() == 0
    assert ids(alcid.paimon(table, branch="main")) == [1, 2, 3, 4]
    assert old.verify().ok
    assert old.verify().rows == 3


def test_a_ref_is_a_tag_or_a_branch(table: Path) -> None:
    assert alcid.table(table, ref="empty").count() == 0
    assert alcid.table(table, ref="first").count() == 2
    assert alcid.table(table, ref="old").count() == 4  # of the two with this name, the tag
    with pytest.raises(FileGoneError, match="no tag none"):
        alcid.table(table, ref="none")


def test_a_branch_has_its_own_schema(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    java = java_paimon
    path = java.create(tmp_path / "t", COLUMNS)
    java.write(path, rows(1))
    java.tag(path, "first", 1)
    java.branch(path, "wide", "first")
    java.alter(path, "renameColumn", "name", "title", branch="wide")
    java.alter(path, "addColumn", "more", "BIGINT", branch="wide")
    expected = [{"id": 1, "title": "n1", "more": None}]
    wide = alcid.paimon(path, branch="wide")
    assert wide.scan().to_arrow().to_pylist() == expected
    assert java.read(path, options={"branch": "wide"}).to_pylist() == expected
    assert alcid.paimon(path).scan().to_arrow().to_pylist() == [{"id": 1, "name": "n1"}]
    assert wide.scan("more IS NULL AND title = 'n1'").count() == 1


def test_nothing_is_written_to_a_branch(table: Path) -> None:
    files = sorted(path for path in table.rglob("*") if path.is_file())
    old = alcid.paimon(table, branch="old")
    refused = "opened at the branch old, which nothing is written to"
    with pytest.raises(UnsupportedError, match=refused):
        old.append(rows(5))
    with pytest.raises(UnsupportedError, match=refused):
        old.build_indexes({"file-index.bitmap.columns": "id"})
    with pytest.raises(UnsupportedError, match=refused):
        old.compute_stats()
    with pytest.raises(UnsupportedError, match=refused):
        old.repair()
    assert old.clean().removed == ()
    assert sorted(path for path in table.rglob("*") if path.is_file()) == files


def test_a_name_that_is_no_branch(table: Path) -> None:
    with pytest.raises(FileGoneError, match="no branch new: there are main, empty, old"):
        alcid.paimon(table, branch="new")
    with pytest.raises(UnsupportedError, match="expected a name"):
        alcid.paimon(table, branch="../x")
