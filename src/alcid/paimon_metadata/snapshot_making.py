"""The moment of a commit: a snapshot gets its number, or another was faster."""

from __future__ import annotations

from contextlib import suppress

from alcid.errors import AlcidError, FileGoneError, NameTakenError, StorageError
from alcid.paimon_metadata.change import Change, is_in
from alcid.paimon_metadata.snapshot import Snapshot, SnapshotFolder, snapshot_path
from alcid.paimon_metadata.table_state import TableState
from alcid.storage import Storage

__all__ = ["SnapshotMaker"]


class SnapshotMaker:
    """Makes the files of snapshots, and sees whether they stay."""

    def __init__(self, storage: Storage) -> None:
        """Take the folder of a table."""
        self._storage, self._snapshots = storage, SnapshotFolder(storage)

    def make(self, snapshot: Snapshot, change: Change, before: Snapshot | None) -> bool:
        """Write the file of a snapshot; False if its number, or the one before, is another's."""
        if before is not None and not self._is_there(before):
            return False
        try:
            self._storage.create(snapshot_path(snapshot.id), snapshot.to_json())
        except NameTakenError:
            return False
        except StorageError as error:
            if not self._is_made(snapshot, error):
                raise
        if self._is_stale(snapshot, change, before):
            self._storage.delete([snapshot_path(snapshot.id)])
            return False
        return True

    def _is_made(self, snapshot: Snapshot, error: StorageError) -> bool:
        """Whether a snapshot is there, though it could not be written: an answer may get lost.

        Raises:
            StorageError: That cannot be known.
        """
        try:
            return self._is_there(snapshot)
        except AlcidError:
            problem = f"whether this commit was made is not known: {error.problem}"
            raise StorageError(problem, file=error.file, tries=error.tries) from error

    def _is_there(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot is still the one of its number; see `is_final`."""
        try:
            return _is_same(self._snapshots.get(snapshot.id), snapshot)
        except FileGoneError:
            return False

    def _is_stale(self, made: Snapshot, change: Change, before: Snapshot | None) -> bool:
        """Whether a new snapshot took the number of one that has expired, far behind the latest.

        That happens to who was asleep between plan and commit. Nobody would ever read what was
        committed there.
        """
        try:
            # The oldest expire first: what stands behind one that is there has not expired.
            if before is not None and self._storage.exists(snapshot_path(before.id)):
                return False
            latest = self._snapshots.latest()
            if latest is None or latest.id <= made.id or not self._is_there(made):
                return False
            if not self._storage.exists(snapshot_path(made.id + 1)):
                return True
            return not is_in(change, TableState(self._storage, self._snapshots.get(made.id + 1)))
        except StorageError:  # it is made, as far as can be known
            return False

    def is_final(self, made: Snapshot, change: Change) -> bool:
        """Whether a snapshot stays; and say that it is the latest.

        On a disk, Paimon's Java looks whether a name is free, and then renames its own file: what
        came between is replaced. Nobody can prevent that, but most times it can be seen.
        """
        with suppress(StorageError):  # a hint is only a hint
            self._snapshots.hint(made)
        try:
            if _is_same(self._snapshots.get(made.id), made):
                return True
            return is_in(change, TableState(self._storage, self._snapshots.latest()))
        except StorageError:  # expired by now, as others went on from it; or not to be known
            return True


def _is_same(found: Snapshot, expected: Snapshot) -> bool:
    """Whether two snapshots are of one commit: the names of its manifests are its own."""
    return found.base_manifest_list == expected.base_manifest_list
