"""Files of deletion vectors that were left behind, grew without end, or were read for nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import ConflictError
from tests.bad.history.asking import ids
from tests.tables.iceberg.vector_catalog import VectorCatalog
from tests.tables.paimon.small_tables import append, create, rows_of

KEYED = {"bucket": "1", "deletion-vectors.enabled": "true"}


def keyed(folder: Path) -> PaimonTable:
    """A table with a primary key and one bucket."""
    return create(folder, primary_keys=["id"], options=KEYED)


def twelve_files(folder: Path) -> PaimonTable:
    """Twelve files of ten rows; one has lost two rows, each other file one."""
    table = create(folder)
    for part in range(12):
        append(table, range(10 * part, 10 * part + 10))
    gone = [5, *(10 * part + 3 for part in range(12))]
    assert table.delete(f"id IN ({', '.join(map(str, gone))})").rows == 13
    return table


def index_files(table: PaimonTable) -> set[str]:
    """Everything in the folder of vectors."""
    return {path.name for path in Path(table.location, "index").iterdir()}


def vector_files(table: PaimonTable) -> set[str]:
    """The vector files that the current snapshot needs."""
    return {entry.name for entry in table.snapshot.state.indexes}


def marked(table: PaimonTable) -> dict[str, int]:
    """How many rows of each data file the index manifest marks as deleted."""
    return {
        vector_range.data_file: vector_range.cardinality or 0
        for entry in table.snapshot.state.indexes
        for vector_range in entry.ranges or ()
    }


def names_of(table: PaimonTable) -> set[str]:
    """The data files of the table."""
    return {entry.file.name for entry in table.snapshot.state.entries}


def test_iceberg_17307_no_puffin_file_is_left_of_a_commit_that_failed(tmp_path: Path) -> None:
    """The merged vectors of a delete were left behind when its commit was refused."""
    catalog = VectorCatalog(tmp_path / "table")
    catalog.add({"0.parquet": rows_of(range(10)).to_pydict()})
    catalog.open().delete("id = 1")
    (before,) = catalog.puffin_files()

    def refuse() -> None:
        catalog.meanwhile.append(refuse)
        raise ConflictError("others were faster")

    catalog.meanwhile.append(refuse)
    with pytest.raises(ConflictError, match="others were faster"):
        catalog.open().delete("id = 2")
    assert catalog.puffin_files() == [before]
    catalog.meanwhile.clear()
    assert catalog.open().delete("id = 2").rows == 1
    assert len(catalog.puffin_files()) == 2  # an older snapshot needs the first
    assert ids(catalog.open().scan()) == [0, *range(3, 10)]


def test_paimon_8783_a_full_compaction_leaves_no_vectors(tmp_path: Path) -> None:
    """Entries for files that a compaction had rewritten stayed in the index manifest."""
    table = keyed(tmp_path)
    table.upsert(rows_of(range(20)))
    table.compact()
    table.delete("id < 5")  # marks rows of the file on the top level
    assert list(marked(table).values()) == [5]
    assert marked(table).keys() <= names_of(table)
    table.compact()
    assert (marked(table), table.count()) == ({}, 15)
    table.upsert(rows_of(range(10, 15)))
    assert list(marked(table).values()) == [5]
    assert marked(table).keys() <= names_of(table)
    table.compact()
    assert (marked(table), table.count()) == ({}, 15)
    assert ids(table.scan(order_by="id")) == list(range(5, 20))


def test_paimon_5788_the_folder_of_vectors_does_not_grow(tmp_path: Path) -> None:
    """Each commit left a file, until the file system took no more."""
    table = keyed(tmp_path)
    for step in range(8):
        table.upsert(rows_of(range(step, step + 5)))
    (needed,) = vector_files(table)
    numbers = range(1, (table.snapshot_id or 0) + 1)
    every = set[str]().union(
        *(vector_files(alcid.paimon(tmp_path, snapshot_id=number)) for number in numbers)
    )
    assert index_files(table) == every
    assert len(every) == 6
    for number in numbers[:-1]:  # the snapshots expire
        (tmp_path / "snapshot" / f"snapshot-{number}").unlink()
    gone = {file.path for file in table.clean(timedelta(0)).removed if file.reason == "index file"}
    assert gone == {f"index/{name}" for name in every - {needed}}
    assert index_files(table) == {needed}
    assert ids(alcid.paimon(tmp_path).scan(order_by="id")) == list(range(12))


def test_delta_1670_vectors_of_many_files_are_packed(tmp_path: Path) -> None:
    """Each vector was a small file."""
    table = twelve_files(tmp_path)
    (entry,) = table.snapshot.state.indexes
    assert index_files(table) == {entry.name}
    assert sorted(marked(table).values()) == [1] * 11 + [2]
    assert entry.size == (tmp_path / "index" / entry.name).stat().st_size == 1 + 11 * 30 + 32


def test_delta_1732_deleted_rows_are_purged(tmp_path: Path) -> None:
    """Deleted rows stayed in the data files forever."""
    table = keyed(tmp_path)
    table.upsert(rows_of(range(20)))
    table.delete("id IN (0, 7, 19)")
    table.compact()
    assert sum(entry.file.rows for entry in table.snapshot.state.entries) == 17
    assert (table.count(), marked(table)) == (17, {})
    assert table.verify().ok


def test_gluten_12399_vectors_are_read_together_and_only_those_that_are_needed(
    tmp_path: Path,
) -> None:
    """Each vector was read separately, also those of files that the query did not need."""
    twelve_files(tmp_path)

    def spent(where: str) -> tuple[int, int]:
        scan = alcid.paimon(tmp_path).scan(where)
        scan.to_arrow()
        (stage,) = (stage for stage in scan.explain().stages if stage.name == "deletion vectors")
        return stage.requests, stage.bytes_read

    (requests, size), whole = spent("id = 57"), (1 + 11 * 30 + 32)
    assert size == 1 + 30  # the version, and one vector
    assert spent("id >= 0") == (requests, whole)
    assert spent("id = 500") == (0, 0)
