"""The findings of the sweeps, each with the fault that showed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from alcid import PaimonTable
from alcid.errors import (
    FileGoneError,
    FormatError,
    NameTakenError,
    StorageError,
)
from alcid.testing.faults import (
    Call,
    Decide,
    Fault,
    Faults,
    since,
)
from tests.faults.operations import AT_ONCE, table_rows
from tests.faults.subjects import SUBJECTS, Subject


@pytest.fixture
def appended(tmp_path: Path) -> Subject:
    return SUBJECTS["paimon"](tmp_path)


@pytest.fixture
def keyed(tmp_path: Path) -> Subject:
    return SUBJECTS["paimon-fixed"](tmp_path)


def at_snapshot(number: int, fault: Fault) -> Decide:
    """When a snapshot is written."""
    path = f"snapshot/snapshot-{number}"
    return lambda call: fault if (call.kind, call.path) == ("put", path) else None


def from_snapshot(number: int, fault: Fault | None, later: Fault, faults: Faults) -> Decide:
    """When a snapshot is written, and all calls after that."""
    path = f"snapshot/snapshot-{number}"

    def decide(call: Call) -> Fault | None:
        writes = [call for call in faults.calls if (call.kind, call.path) == ("put", path)]
        if not writes:
            return None
        return fault if call == writes[0] else later

    return decide


def rows_now(subject: Subject) -> object:
    subject.faults.plan(None)
    return table_rows(subject.open())


def test_a_snapshot_is_made_though_its_answer_is_lost_for_good(appended: Subject) -> None:
    append = appended.operations["append"]
    appended.faults.plan(at_snapshot(4, Fault.LOST_REFUSED))
    assert append.run(appended.open()).snapshot_id == 4
    assert rows_now(appended) == append.after


def test_a_commit_that_nobody_knows_of_says_so(appended: Subject) -> None:
    append = appended.operations["append"]
    faults = appended.faults
    faults.plan(from_snapshot(4, Fault.LOST_REFUSED, Fault.REFUSED, faults))
    problem = "snapshot-4: whether this commit was made is not known: could not be written: OSError"
    with pytest.raises(StorageError, match=problem):
        append.run(appended.open())
    assert rows_now(appended) == append.after


def test_rows_that_are_appended_and_cannot_be_read_yet(appended: Subject) -> None:
    append = appended.operations["append"]
    appended.faults.plan(from_snapshot(4, None, Fault.REFUSED, appended.faults))
    problem = r"rows are appended, in snapshot 4, but cannot be read yet: .*Input/output error"
    with pytest.raises(StorageError, match=problem):
        append.run(appended.open())
    assert rows_now(appended) == append.after


@pytest.mark.filterwarnings("ignore:.*not yet compacted:alcid.errors.AlcidWarning")
def test_a_delete_that_is_cut_off_is_finished_by_the_same_delete(keyed: Subject) -> None:
    """Its rows are then deleted on level 0, and are not found a second time."""
    delete = keyed.operations["delete"]
    keyed.faults.plan(at_snapshot(5, Fault.REFUSED))
    with pytest.raises(StorageError, match="snapshot-5: could not be written"):
        delete.run(keyed.open())
    assert rows_now(keyed) == keyed.before
    report = delete.run(keyed.open())
    assert (report.rows, report.snapshot_id) == (0, 5)
    assert rows_now(keyed) == delete.after


def test_files_that_are_always_cut_in_half_end_a_build(appended: Subject) -> None:
    table = appended.open()
    appended.faults.plan(since(0, Fault.HALF_TIMEOUT))
    with pytest.raises(NameTakenError, match=r"parquet-20\.index: exists already"):
        table.build_indexes({"file-index.bitmap.columns": "name"}, progress=False)
    assert rows_now(appended) == appended.before


def test_files_of_a_snapshot_that_is_not_listed_yet_are_kept(appended: Subject) -> None:
    table = appended.open()
    table.append(table.scan("id = 7").to_arrow())
    appended.faults.plan(lambda call: Fault.STALE if call.path == "snapshot" else None)
    table.clean(AT_ONCE)
    assert rows_now(appended) == tuple(sorted((*appended.before, (7, "n2"))))


def test_a_snapshot_that_is_listed_for_ever_though_it_is_gone(tmp_path: Path) -> None:
    subject = SUBJECTS["paimon"](tmp_path)
    storage = subject.storage()
    storage.delete([*(f"snapshot/snapshot-{number}" for number in (1, 2, 3)), "snapshot/LATEST"])
    subject.faults.plan(since(0, Fault.STALE))
    with pytest.raises(FileGoneError, match="no snapshot 3"):
        PaimonTable(storage)


def test_half_a_snapshot_is_reported(appended: Subject, tmp_path: Path) -> None:
    """No known file system leaves one; removing it restores the table."""
    append = appended.operations["append"]
    appended.faults.plan(at_snapshot(4, Fault.HALF_REFUSED))
    with pytest.raises(StorageError, match="whether this commit was made is not known"):
        append.run(appended.open())
    appended.faults.plan(None)
    with pytest.raises(FormatError, match="snapshot-4: no JSON"):
        appended.open()
    (tmp_path / "table/snapshot/snapshot-4").unlink()
    assert rows_now(appended) == appended.before
    append.run(appended.open())
    assert rows_now(appended) == append.after
