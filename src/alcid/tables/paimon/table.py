"""A Paimon table: what a user holds."""

from __future__ import annotations

from collections.abc import Mapping

from alcid.errors import OptionError, UnsupportedError
from alcid.paimon_metadata.commit import Committer
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_folder import TableFolder
from alcid.paimon_metadata.table_options import TableOptions
from alcid.paimon_metadata.table_state import TableState
from alcid.storage import Storage
from alcid.tables.engine import Engine
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.table import Table

__all__ = ["PaimonTable"]


class PaimonTable(Table[PaimonFiles]):
    """A Paimon table at its latest snapshot, or at one of the past; `alcid.paimon` opens one."""

    def __init__(
        self,
        storage: Storage,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        merge_on_read: bool = False,
        strict: bool = False,
        engine: Engine | None = None,
    ) -> None:
        """Read the manifests; `alcid.paimon` is the usual way to one."""
        super().__init__(storage, strict=strict, engine=engine)
        if snapshot_id is not None and tag is not None:
            raise OptionError("snapshot_id and tag: found both, expected one of them")
        self.folder = TableFolder(storage)
        self._snapshot_id, self._tag, self._merge_on_read = snapshot_id, tag, merge_on_read
        self.refresh()

    @property
    def options(self) -> Mapping[str, str]:
        """The options of the table."""
        return self.snapshot.schema.options

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None before the first commit."""
        found = self.snapshot.state.snapshot
        return None if found is None else found.id

    def committer(self) -> Committer:
        """What makes snapshots of the table as it is known here."""
        return Committer(self.storage, self.snapshot.schema, self.snapshot.options)

    def _open(self, before: PaimonFiles | None = None) -> PaimonFiles:
        state = self._state() if before is None else before.state
        latest = self.folder.latest_schema()
        options = TableOptions.parse(latest.options, has_primary_key=bool(latest.primary_keys))
        if self._merge_on_read and options.merge_engine != "deduplicate":
            raise UnsupportedError(
                f"merge_on_read: merge-engine={options.merge_engine}, expected deduplicate"
            )
        numbers = {entry.file.schema_id for entry in state.entries}
        return PaimonFiles(
            self.storage,
            state,
            self._schema(state, latest),
            {number: self.folder.schema(number) for number in numbers},
            options,
            merge_on_read=self._merge_on_read or options.merge_on_read,
            strict=self._strict,
        )

    def _state(self) -> TableState:
        snapshots = self.folder.snapshots
        if self._tag is not None:
            return TableState(self.storage, snapshots.tag(self._tag))
        if self._snapshot_id is not None:
            return TableState(self.storage, snapshots.get(self._snapshot_id))
        return TableState(self.storage, snapshots.latest())

    def _schema(self, state: TableState, latest: TableSchema) -> TableSchema:
        """The latest schema; that of a snapshot of the past, where one is asked for."""
        if state.snapshot is not None and (self._tag is not None or self._snapshot_id is not None):
            return self.folder.schema(state.snapshot.schema_id)
        return latest
