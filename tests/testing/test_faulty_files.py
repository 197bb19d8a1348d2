"""Files that fail: exactly as planned, and no others."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

import pytest

from alcid.errors import NameTakenError, StorageError, UnsupportedError
from alcid.storage import Retry, Storage
from alcid.testing.faults import (
    Call,
    Fault,
    Faults,
    often,
    once,
    since,
)


@pytest.fixture
def faults() -> Faults:
    return Faults(stale_changes=2)


@pytest.fixture
def storage(faults: Faults, tmp_path: Path) -> Storage:
    made = Storage.open(tmp_path, retry=Retry(tries=2, wait=0)).through(faults.around)
    made.put("old", b"0123456789")
    return made


def listed(storage: Storage, under: str = "") -> list[str]:
    paths: list[str] = storage.list(under).paths.to_pylist()
    return paths


def number_of(error: StorageError) -> int | None:
    return error.__cause__.errno if isinstance(error.__cause__, OSError) else None


def test_calls_are_counted_from_the_plan_on(storage: Storage, faults: Faults) -> None:
    faults.plan(None)
    storage.put("a/b", b"b")
    listed(storage, "a")
    storage.delete(["a/b"])
    calls = [("put", "a/b"), ("entries", "a"), ("delete", "a/b")]
    assert faults.calls == [Call(number, *call) for number, call in enumerate(calls)]


@pytest.mark.parametrize(
    ("fault", "number"), [(Fault.TIMEOUT, errno.ETIMEDOUT), (Fault.REFUSED, errno.EIO)]
)
def test_an_error_comes_before_anything_is_done(
    storage: Storage, faults: Faults, fault: Fault, number: int
) -> None:
    faults.plan(since(0, fault))
    with pytest.raises(StorageError, match="could not be written") as raised:
        storage.put("new", b"new")
    assert number_of(raised.value) == number
    assert len(faults.calls) == (2 if fault is Fault.TIMEOUT else 1)
    faults.plan(None)
    assert listed(storage) == ["old"]


def test_an_error_that_passes_is_not_noticed(storage: Storage, faults: Faults) -> None:
    faults.plan(once(0, Fault.TIMEOUT))
    assert storage.source("old").read(2, 3) == b"234"
    assert [call.kind for call in faults.calls] == ["read", "read"]


def test_a_lost_answer_is_found_by_the_bytes(storage: Storage, faults: Faults) -> None:
    faults.plan(once(0, Fault.LOST_TIMEOUT))
    storage.put("new", b"new")
    assert [call.kind for call in faults.calls] == ["put", "put", "stat", "read"]
    faults.plan(once(0, Fault.LOST_REFUSED))
    with pytest.raises(StorageError, match="could not be written"):
        storage.put("newer", b"newer")
    assert listed(storage) == ["new", "newer", "old"]


def test_half_of_a_file_has_its_name(storage: Storage, faults: Faults, tmp_path: Path) -> None:
    faults.plan(once(0, Fault.HALF_TIMEOUT))
    with pytest.raises(NameTakenError):
        storage.put("new", b"abcdef")
    assert (tmp_path / "new").read_bytes() == b"abc"


def test_a_short_read_is_an_error_on_a_disk_and_repeated_over_a_network(
    storage: Storage, faults: Faults, tmp_path: Path
) -> None:
    faults.plan(once(0, Fault.SHORT))
    with pytest.raises(StorageError, match="short read: 2 bytes at offset 1, expected 4"):
        storage.source("old", 10).read(1, 4)
    distant = Faults(remote=True)
    remote = Storage.open(tmp_path, retry=Retry(tries=2, wait=0)).through(distant.around)
    distant.plan(once(0, Fault.SHORT))
    assert remote.source("old", 10).read(1, 4) == b"1234"


def test_a_stale_listing_does_not_know_the_last_changes(storage: Storage, faults: Faults) -> None:
    before = storage.stat("old")
    storage.put("first", b"1")
    storage.put("inner/new", b"2")
    storage.delete(["old"])
    faults.plan(since(0, Fault.STALE))
    listing = storage.list()
    assert listing.paths.to_pylist() == ["first", "old"]
    assert (listing.sizes[1], listing.versions[1].as_py()) == before
    assert listed(storage, "inner") == []
    faults.plan(None)
    assert listed(storage) == ["first", "inner/new"]


def test_the_same_calls_fail_for_a_seed() -> None:
    calls = [Call(number, "put", "a") for number in range(1000)]
    decide = often(0.1, [Fault.SHORT, Fault.REFUSED, Fault.LOST_TIMEOUT], seed=1)
    decisions = [decide(call) for call in calls]
    assert decisions == [decide(call) for call in calls]
    assert set(decisions) == {None, Fault.REFUSED, Fault.LOST_TIMEOUT}
    assert 70 <= sum(decision is not None for decision in decisions) <= 130


def test_a_storage_with_faults_stays_in_its_process(storage: Storage, faults: Faults) -> None:
    for opened in (storage, storage.dry_run(), storage.dry_run().through(faults.around)):
        with pytest.raises(UnsupportedError, match="as does all that is put around files"):
            pickle.dumps(opened)
