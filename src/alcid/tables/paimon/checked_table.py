"""What the checks of a Paimon table share: its schemas, and how its files are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.snapshot import MAIN, snapshot_path
from alcid.paimon_metadata.table_options import TableOptions
from alcid.storage import Storage
from alcid.tables.checked import Checked
from alcid.tables.paimon.data_files import DataScan, PlacedFile, open_data, read_present

__all__ = ["Check", "CheckedTable"]


@dataclass(frozen=True, slots=True, eq=False)
class CheckedTable:
    """A table at the snapshot that is verified; it pickles."""

    storage: Storage
    snapshot_id: int
    schema: TableSchema
    schemas: Mapping[int, TableSchema]
    """Of its files, by their ids."""
    options: TableOptions
    branch: str = MAIN

    def schema_of(self, placed: PlacedFile) -> TableSchema:
        """The schema by which a file was written."""
        return self.schemas[placed.file.schema_id]

    def open(self, placed: PlacedFile) -> DataScan:
        """Read the footer of a file."""
        return open_data(self.storage, placed, self.options)

    def read(self, scan: DataScan, columns: Sequence[str]) -> pa.Table:
        """Columns of a file, as far as it has them."""
        return read_present(scan, columns, self.storage)

    @property
    def is_expired(self) -> bool:
        """Whether the snapshot has gone meanwhile, and so its files may."""
        return not self.storage.exists(snapshot_path(self.snapshot_id, self.branch))

    def gone(self, path: str, what: str = "") -> Checked:
        """What to say of a file that is not there."""
        if self.is_expired:
            return Checked(changed=1)
        found = Checked(checked=1)
        found.findings.add(path, what, "is not there")
        return found


class Check(Protocol):
    """Something to be checked by one worker; it pickles."""

    @property
    def size(self) -> int:
        """About how many bytes it reads."""

    def run(self, table: CheckedTable) -> Checked:
        """Check it."""
