"""Deletes in a table without vectors: which files are replaced, and by what."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid._arrays import Int64Array
from alcid.errors import ConflictError, UnsupportedError
from alcid.tables.base import find_rows
from alcid.tables.engine import Task, Threads, take_items
from alcid.tables.paimon.delete import delete
from alcid.tables.paimon.metadata.commit import Change, Committer
from alcid.tables.progress import ReportProgress, no_progress
from alcid.tables.reports import DeleteReport
from tests.tables.paimon.small_tables import (
    append,
    commit,
    create,
    ids,
    partition_of,
    rows_of,
    set_options,
    write_file,
)

FIND_ROWS = "alcid.tables.paimon.delete.find_rows"


def names(table: PaimonTable) -> set[str]:
    table.refresh()
    return {entry.file.name for entry in table.snapshot.state.entries}


def data_files(table: PaimonTable) -> set[str]:
    return {path.rpartition("/")[2] for path in table.storage.list().paths.to_pylist()} & {
        *(path.name for path in Path(table.location).rglob("data-*"))
    }


def test_files_that_have_such_rows_are_replaced_in_one_commit(tmp_path: Path) -> None:
    table = create(tmp_path, options={})
    first, second, third = (append(table, range(start, start + 10)) for start in (0, 10, 20))
    assert table.delete("id IN (3, 5, 20)") == DeleteReport(3, 2, 4)
    assert ids(table) == [number for number in range(30) if number not in (3, 5, 20)]
    snapshot = table.snapshot.state.snapshot
    assert snapshot is not None
    assert (snapshot.commit_kind, snapshot.delta_record_count) == ("OVERWRITE", -3)
    assert snapshot.total_record_count == 27
    assert second.file.name in names(table)
    assert not {first.file.name, third.file.name} & names(table)
    rows = table.scan("id < 10").to_arrow().column("id").to_pylist()
    assert rows == [0, 1, 2, 4, 6, 7, 8, 9]  # in order
    assert alcid.paimon(tmp_path, snapshot_id=3).count() == 30
    assert table.verify().ok


def test_a_file_without_other_rows_gets_none_in_its_place(tmp_path: Path) -> None:
    table = create(tmp_path, options={})
    append(table, range(10))
    kept = append(table, range(10, 20))
    files = data_files(table)
    assert table.delete("id < 10") == DeleteReport(10, 1, 3)
    assert names(table) == {kept.file.name}
    assert data_files(table) == files
    assert table.delete("true") == DeleteReport(10, 1, 4)
    assert names(table) == set()
    assert table.delete("id = 1") == DeleteReport(0, 0, None)
    assert table.snapshot_id == 4
    assert table.verify().ok


def test_partitions_buckets_indexes_and_numbers(tmp_path: Path) -> None:
    options = {"bucket": "2", "bucket-key": "id", "file-index.bloom-filter.columns": "name"}
    columns = {"id": "BIGINT", "name": "STRING", "day": "STRING"}
    table = create(tmp_path, columns, partition_keys=["day"], options=options)
    days = pa.array(["a" if number % 3 else None for number in range(100)], pa.string())
    table.append(rows_of(range(100)).append_column("day", days))
    before = {entry.identity: entry for entry in table.snapshot.state.entries}
    assert table.delete("id = 7").rows == 1
    entries = table.snapshot.state.entries
    (added,) = [entry for entry in entries if entry.identity not in before]
    (gone,) = [entry for key, entry in before.items() if key not in table.snapshot.state.live]
    assert (added.partition, added.bucket) == (gone.partition, gone.bucket)
    assert added.partition == partition_of(table, "a")
    assert added.file.has_index
    assert added.file.min_sequence == gone.file.max_sequence + 1
    assert added.file.max_sequence == added.file.min_sequence + added.file.rows - 1
    assert ids(table) == [number for number in range(100) if number != 7]
    assert table.verify().ok


def test_rows_of_an_older_schema_are_written_as_the_table_has_them(tmp_path: Path) -> None:
    table = create(tmp_path, {"id": "INT", "name": "STRING"}, options={})
    table.append(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", "b", "c"]}))
    schema = table.folder.latest_schema()
    wide = replace(schema.fields[0], data_type=alcid.types.DataType("BIGINT"))
    title = replace(schema.fields[1], name="title")
    after = replace(schema, id=1, fields=(wide, title))
    table.storage.create("schema/schema-1", after.to_json())
    table.refresh()
    assert table.delete("title = 'b'") == DeleteReport(1, 1, 2)
    assert table.scan().to_arrow().to_pydict() == {"id": [1, 3], "title": ["a", "c"]}
    assert {entry.file.schema_id for entry in table.snapshot.state.entries} == {1}
    assert table.verify().ok


def test_rows_that_others_append_meanwhile_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, options={})
    append(table, range(10))
    other = PaimonTable(table.storage)

    def racing(*arguments: Any, **how: Any) -> Any:
        rows = find_rows(*arguments, **how)
        monkeypatch.setattr(FIND_ROWS, find_rows)
        append(other, range(10, 20))
        return rows

    monkeypatch.setattr(FIND_ROWS, racing)
    assert table.delete("id IN (0, 15)").rows == 1
    assert ids(table) == [*range(1, 20)]


def test_a_file_that_another_replaces_meanwhile_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, options={})
    append(table, range(10))
    other = PaimonTable(table.storage)

    def racing(*arguments: Any, **how: Any) -> Any:
        rows = find_rows(*arguments, **how)
        monkeypatch.setattr(FIND_ROWS, find_rows)
        assert other.delete("id = 1").rows == 1
        return rows

    monkeypatch.setattr(FIND_ROWS, racing)
    assert table.delete("id IN (1, 2)") == DeleteReport(1, 1, 3)
    assert ids(table) == [0, *range(3, 10)]
    live = names(table)
    assert (
        len(data_files(table)) == 3
    )  # of the three snapshots; files of the failed try were removed
    assert live <= data_files(table)


def test_what_was_written_is_removed_if_it_cannot_be_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, options={})
    append(table, range(10))
    files = data_files(table)

    def refuse(*_given: Any, **_how: Any) -> None:
        raise ConflictError("no")

    monkeypatch.setattr(Committer, "commit", refuse)
    with pytest.raises(ConflictError):
        delete(table, "id = 1")
    assert data_files(table) == files


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    table = create(tmp_path, options={})
    append(table, range(10))
    files = sorted(tmp_path.rglob("*"))
    assert table.delete("id < 3", dry_run=True) == DeleteReport(3, 1, 2, dry_run=True)
    assert sorted(tmp_path.rglob("*")) == files


class Elsewhere(Threads):
    """Tasks of one item each, which are pickled."""

    def map(
        self,
        function: Callable[[Task[Any]], Any],
        items: Any,
        sizes: Int64Array,
        report: ReportProgress = no_progress,
    ) -> list[Any]:
        sent = [
            pickle.dumps((function, take_items(items, np.array([position]))))
            for position in range(len(sizes))
        ]
        return [again(Task(some, 1, report)) for again, some in map(pickle.loads, sent)]


def test_tasks_elsewhere_write_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path, options={})
    for start in range(0, 50, 10):
        append(table, range(start, start + 10))
    table = PaimonTable(table.storage, engine=Elsewhere())
    monkeypatch.setattr("alcid.scan.execution._SMALL", -1)
    assert table.delete("id IN (3, 14, 49)") == DeleteReport(3, 3, 6)
    assert ids(table) == [number for number in range(50) if number not in (3, 14, 49)]


def test_a_file_with_a_vector_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path)
    append(table, range(10))
    table.delete("id = 1")
    set_options(table, deletion_vectors__enabled="false")
    with pytest.raises(UnsupportedError, match=r"has a deletion vector, though deletion-vectors"):
        table.delete("id = 2")
    append(table, range(20, 30))
    assert table.delete("id = 21").rows == 1


def test_rows_that_another_format_would_hold_are_refused_by_name(tmp_path: Path) -> None:
    table = create(tmp_path, options={"file.format": "avro"})
    entry = write_file(table, rows_of(range(3)))
    commit(table, Change(kind="APPEND", added=[entry]))
    with pytest.raises(UnsupportedError, match=r"file\.format=avro: cannot delete rows"):
        table.delete("id = 1")
