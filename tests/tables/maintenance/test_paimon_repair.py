"""Repair of whole Paimon tables: in one commit, next to others; leftovers; the report."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alcid
from alcid import DeletionVector, OptionError, PaimonTable
from alcid.inspect import to_html
from alcid.tables.maintenance import findings
from alcid.tables.maintenance.paimon_repair_vectors import BucketRepair, VectorRepairer
from alcid.tables.maintenance.repair import ROLL_BACK
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.table_state import IndexEntry
from tests.tables.maintenance.forging import (
    flip,
    forge,
    one_file,
    put_vectors,
    state_of,
    vector_entries,
)
from tests.tables.maintenance.kit import Workers
from tests.tables.maintenance.repair_kit import (
    INDEXES,
    KINDS,
    change_entries,
    damage,
    data_files,
    flipped,
    ids,
    made,
    ranges_of,
    repair_lines,
    repaired,
    rows_of,
    without,
)
from tests.tables.paimon.small_tables import VECTORS, commit, create


def test_all_that_is_wrong_is_repaired_in_one_commit(tmp_path: Path) -> None:
    table = made(tmp_path, "key", INDEXES)
    table.upsert(rows_of([30, 31]))
    first, _ = data_files(tmp_path)[:2]
    put_vectors(tmp_path, {first: DeletionVector([3]), "gone": DeletionVector([0])})
    forge(
        tmp_path,
        lambda entry: [flipped(entry, 0) if entry.file.name == first else entry],
    )
    table = PaimonTable(table.storage, engine=Workers(3))
    report = repaired(table)
    assert sorted(repair.done for repair in report.repaired) == [
        "built anew",
        "dropped",
        "merged to one, of 2 rows",
    ]
    assert table.folder.snapshots.get(table.snapshot_id or 0).commit_kind == "COMPACT"
    assert ids(table) == [*without(1, 3, 11), 30, 31]


def test_keys_that_show_only_when_vectors_are_repaired_are_repaired_with_them(
    tmp_path: Path,
) -> None:
    """As long as a bucket has two vectors of a file, nobody can say which keys are live."""
    table = create(tmp_path, primary_keys=["id"], options={**VECTORS, "bucket": "1"})
    for text in ("a", "b", "c"):
        rows = rows_of(range(10))
        table.upsert(rows.set_column(1, "name", pa.array([text] * 10)))
    oldest = min(state_of(tmp_path).entries, key=lambda entry: entry.file.max_sequence).file.name
    (entry,) = vector_entries(tmp_path)
    # The marks of the middle file are lost, and the oldest has two vectors.
    kept = tuple(range_ for range_ in entry.ranges or () if range_.data_file == oldest)
    forge(tmp_path, indexes=lambda _: [replace(entry, ranges=kept, rows=1)])
    put_vectors(tmp_path, {oldest: DeletionVector([0])})
    table = alcid.paimon(tmp_path)
    assert table.verify().keys_live_twice == 0  # it cannot be determined
    report = repaired(table)
    assert [(repair.what, repair.done, repair.count) for repair in report.repaired] == [
        ("deletion vectors", "merged to one, of 10 rows", 1),
        ("keys", "marked as deleted", 10),
    ]
    assert set(table.scan().to_arrow()["name"].to_pylist()) == {"c"}
    assert ids(table) == list(range(10))


def test_what_another_deletes_meanwhile_stays_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path)
    change_entries(tmp_path, lambda entry: replace(entry, rows=9))
    table, other = alcid.paimon(tmp_path), alcid.paimon(tmp_path)
    looks: list[int] = []

    def repair(*arguments: Any) -> BucketRepair:
        repairs = original(*arguments)
        looks.append(len(repairs.repaired))
        if len(looks) == 1:
            assert other.delete("id IN (2, 12)").rows == 2
        return repairs

    original = VectorRepairer.repair
    monkeypatch.setattr(VectorRepairer, "repair", repair)
    report = table.repair()
    assert (looks, report.repaired, report.commits, report.ok) == ([1], (), 0, True)
    assert ids(table) == without(1, 2, 11, 12)  # the delete has rewritten everything
    names = {index.name for index in state_of(tmp_path).indexes}
    assert {path.name for path in (tmp_path / "index").iterdir()} > names
    assert all(not leftover.path.startswith("index/") for leftover in table.verify().leftovers)


def test_a_repair_that_comes_too_late_leaves_a_damaged_vector_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index file that stays is not a file of the repair, to be removed with the others."""
    made(tmp_path)
    first, second = data_files(tmp_path)
    change_entries(tmp_path, partial(_lie, data_file=second))
    index, before = damage(tmp_path, first)
    table = alcid.paimon(tmp_path)
    looks: list[int] = []

    def repair(*arguments: Any) -> BucketRepair:
        repairs = original(*arguments)
        looks.append(len(repairs.repaired))
        if len(looks) == 1:  # another writer compacts both files away
            entries = state_of(tmp_path).entries
            change = Change(kind="OVERWRITE", deleted=entries, index_deleted=repairs.deleted)
            commit(alcid.paimon(tmp_path), change)
        return repairs

    original = VectorRepairer.repair
    monkeypatch.setattr(VectorRepairer, "repair", repair)
    report = table.repair()
    assert (looks, report.repaired, report.ok) == ([1], (), True)
    assert index.read_bytes() != before  # it is kept for the snapshots of the past
    assert len(list((tmp_path / "index").iterdir())) == 1


def test_rows_that_another_appends_meanwhile_are_no_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path)
    first, _ = data_files(tmp_path)
    put_vectors(tmp_path, {first: DeletionVector([3])})
    table, other = alcid.paimon(tmp_path), alcid.paimon(tmp_path)

    def repair(*arguments: Any) -> BucketRepair:
        other.append(rows_of([30]))
        return original(*arguments)

    original = VectorRepairer.repair
    monkeypatch.setattr(VectorRepairer, "repair", repair)
    report = table.repair()
    assert (report.commits, report.ok) == (1, True)
    assert ids(table) == [*without(1, 3, 11), 30]


def test_more_problems_than_a_report_keeps_are_repaired_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, options=INDEXES)
    forge(tmp_path, lambda entry: [flipped(entry, 0)])
    table.refresh()
    monkeypatch.setattr(findings, "_MAX_FINDINGS", 1)
    report = repaired(table, commits=2)
    assert sorted(repair.file.rpartition("/")[2] for repair in report.repaired) == sorted(
        data_files(tmp_path)
    )


DAMAGES = st.lists(
    st.one_of(
        st.tuples(st.just("twice"), st.integers(0, 1), st.sets(st.integers(0, 9), min_size=1)),
        st.tuples(
            st.sampled_from(["gone", "count", "cardinality", "empty", "index"]),
            st.integers(0, 1),
            st.just(set[int]()),
        ),
    ),
    max_size=5,
)


@given(st.sampled_from(sorted(KINDS)), DAMAGES)
@settings(max_examples=10)
def test_any_damages_together_leave_the_rows_that_no_vector_deletes(
    kind: str, damages: list[tuple[str, int, set[int]]]
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder)
        table = made(path, kind, INDEXES)
        names, gone = data_files(path), {1, 11}
        for number, (what, file, rows) in enumerate(damages):
            if what == "twice":
                put_vectors(path, {names[file]: DeletionVector(rows)}, number)
                gone |= {file * 10 + row for row in rows}
            elif what == "gone":
                put_vectors(path, {f"data-{number}": DeletionVector([5])}, number)
            elif what == "empty":
                put_vectors(path, {}, number, ranges=None if file else ())
            elif what == "count":
                change_entries(path, lambda entry: replace(entry, rows=entry.rows + 1))
            elif what == "cardinality":
                change_entries(path, partial(_lie, data_file=names[file]))
            else:
                forge(path, partial(_without_magic, data_file=names[file]))
        table.refresh()
        report = table.repair(dry_run=True)
        assert (report.ok, report.commits) == (True, bool(damages)), str(report)
        assert repair_lines(table.repair()) == repair_lines(report)
        assert ids(table) == without(*gone)
        verified = table.verify()
        assert (verified.problems, verified.warnings) == ((), ())
        assert table.repair().repaired == ()


def _lie(entry: IndexEntry, data_file: str) -> IndexEntry:
    ranges = (
        replace(vector_range, cardinality=99)
        if vector_range.data_file == data_file
        else vector_range
        for vector_range in ranges_of(entry)
    )
    return replace(entry, ranges=tuple(ranges))


def _without_magic(entry: Any, data_file: str) -> list[Any]:
    if entry.file.name != data_file:
        return [entry]
    data = b"\xff" + entry.file.embedded_index[1:]
    return [entry.with_file(replace(entry.file, embedded_index=data))]


def test_what_no_snapshot_needs_is_removed_when_it_is_old_enough(tmp_path: Path) -> None:
    table = made(tmp_path)
    orphan = tmp_path / "index" / "index-00000000-0000-0000-0000-000000000000-0"
    orphan.write_bytes(b"\1")
    report = table.repair()
    assert ([file.path for file in report.kept], report.removed) == ([f"index/{orphan.name}"], ())
    assert "; 1 too young; " in str(report)
    trial = table.repair(timedelta(0), dry_run=True)
    assert [file.path for file in trial.removed] == [f"index/{orphan.name}"]
    assert orphan.exists()
    os.utime(orphan, (0, 0))
    report = table.repair()
    assert ([file.path for file in report.removed], report.kept) == ([f"index/{orphan.name}"], ())
    assert not orphan.exists()
    with pytest.raises(OptionError, match="older_than: found -1 day"):
        table.repair(timedelta(days=-1))


def test_leftovers_stay_if_an_older_snapshot_cannot_be_read(tmp_path: Path) -> None:
    table = made(tmp_path)
    orphan = tmp_path / "index" / "index-00000000-0000-0000-0000-000000000000-0"
    orphan.write_bytes(b"\1")
    manifest = table.folder.snapshots.get(1).delta_manifest_list
    flip(one_file(tmp_path, f"manifest/{manifest}"), -1)
    report = table.repair(timedelta(0))
    assert [(repair.what, repair.advice) for repair in report.not_repaired] == [
        ("older snapshots", "nothing was removed: restore the file, or let the snapshot expire")
    ]
    assert orphan.exists()


def test_a_report_is_plain_data_and_a_page(tmp_path: Path) -> None:
    table = made(tmp_path)
    put_vectors(tmp_path, {"gone": DeletionVector([1])})
    damage(tmp_path, data_files(tmp_path)[0])
    report = table.repair()
    plain = report.to_dict()
    assert (plain["ok"], plain["commits"], plain["snapshot_id"]) == (False, 1, table.snapshot_id)
    assert [repair["done"] for repair in plain["mended"]] == ["dropped"]
    assert [finding["advice"] for finding in plain["not_mended"]] == [ROLL_BACK]
    first = f"repaired 1 problem in 1 commit: snapshot {table.snapshot_id}"
    first += "; removed 0 leftovers (0 B)"
    assert str(report).startswith(f"{first}; 3 too young; 1 NOT repaired; ")
    shown = to_html(report)
    assert "<td>dropped</td>" in shown
    assert f"<td>{ROLL_BACK}</td>" in shown
