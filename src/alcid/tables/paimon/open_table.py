"""A Paimon table that is open: its snapshot, its storage, and who commits to it.

`alcid.PaimonTable` adds what users do with a table. The steps behind that (append, delete, upsert,
compaction, builds) take the table as it is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Self

from alcid.errors import OptionError, UnsupportedError, require
from alcid.storage import Storage
from alcid.tables.base import Table
from alcid.tables.engine import Engine, Threads
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.merge_on_read import NotCompacted
from alcid.tables.paimon.metadata.commit import Committer
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.snapshot import MAIN
from alcid.tables.paimon.metadata.table_folder import TableFolder
from alcid.tables.paimon.metadata.table_state import TableState


class OpenPaimonTable(Table[PaimonFiles]):
    """A Paimon table at its latest snapshot, or at one of the past."""

    def __init__(
        self,
        storage: Storage,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        branch: str = MAIN,
        merge_on_read: bool = False,
        strict: bool = False,
        engine: Engine | None = None,
    ) -> None:
        """Read the manifests; `alcid.paimon` is the usual way to one."""
        super().__init__(storage, strict=strict, engine=engine)
        if snapshot_id is not None and tag is not None:
            raise OptionError("snapshot_id and tag: found both, expected one of them")
        if snapshot_id is not None:
            require(snapshot_id, int, "snapshot_id")
        self.folder = TableFolder(storage, branch)
        self._snapshot_id, self._tag, self._merge_on_read = snapshot_id, tag, merge_on_read
        self._last = TableState(storage, None)  # whose manifests are not read again
        self.refresh()

    @property
    def options(self) -> Mapping[str, str]:
        """The options of the table."""
        return self.snapshot.schema.options

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None before the first commit."""
        snapshot = self.snapshot.state.snapshot
        return None if snapshot is None else snapshot.id

    def committer(self) -> Committer:
        """A committer for the table as it was read.

        Raises:
            UnsupportedError: It was opened at a past snapshot or at a branch, or it has files
                outside of its folder.
        """
        if self.folder.branch != MAIN:
            raise UnsupportedError(
                f"{self.location}: opened at the branch {self.folder.branch}, which nothing is "
                "written to; write with Paimon's Java"
            )
        if self._snapshot_id is not None or self._tag is not None:
            raise UnsupportedError(
                f"{self.location}: opened at a snapshot of the past, which nothing is written to"
            )
        if self.snapshot.reaches_outside:
            raise UnsupportedError(
                f"{self.location}: has files outside of its folder (data-file.external-paths), and "
                "nothing is written to such a table; write with Paimon's Java"
            )
        return Committer(self.storage, self.snapshot.schema, self.snapshot.options)

    def apart(self) -> Self:
        """A copy of the table, for work that refreshes it without affecting other threads."""
        return copy(self)

    def dry_run(self) -> Self:
        """A copy of the table to try changes on.

        They are made in the memory of this process: the files of the table stay as they are.
        """
        return type(self)(
            self.storage.dry_run(),
            snapshot_id=self._snapshot_id,
            tag=self._tag,
            branch=self.folder.branch,
            merge_on_read=self._merge_on_read,
            strict=self._strict,
            engine=Threads(like=self.engine),
        )

    def with_level_zero(self) -> Self:
        """The table with level 0, which is not compacted yet; itself, if there is no such file."""
        if self.snapshot.not_compacted == NotCompacted():
            return self
        return type(self)(
            self.storage,
            branch=self.folder.branch,
            merge_on_read=True,
            strict=self._strict,
            engine=self.engine,
        )

    def _open(self, before: PaimonFiles | None = None) -> PaimonFiles:
        state = self._state() if before is None else before.state
        self._last = state
        latest = self.folder.latest_schema()
        options = TableOptions.parse(
            self.folder.options(latest), has_primary_key=bool(latest.primary_keys)
        )
        if self._merge_on_read and options.merge_engine != "deduplicate":
            raise UnsupportedError(
                f"merge_on_read: merge-engine={options.merge_engine}, expected deduplicate"
            )
        schema_ids = {entry.file.schema_id for entry in state.entries}
        return PaimonFiles(
            self.storage,
            state,
            self._schema(state, latest),
            {schema_id: self.folder.schema(schema_id) for schema_id in schema_ids},
            options,
            merge_on_read=self._merge_on_read or options.merge_on_read,
            strict=self._strict,
            distrusted=self._distrusted,
        )

    def _state(self) -> TableState:
        snapshots = self.folder.snapshots
        if self._tag is not None:
            return self._last.at(snapshots.tag(self._tag))
        if self._snapshot_id is not None:
            return self._last.at(snapshots.get(self._snapshot_id))
        return self._last.at(snapshots.latest())

    def _schema(self, state: TableState, latest: TableSchema) -> TableSchema:
        """The latest schema, or that of the past snapshot that was opened."""
        if state.snapshot is not None and (self._tag is not None or self._snapshot_id is not None):
            return self.folder.schema(state.snapshot.schema_id)
        return latest
