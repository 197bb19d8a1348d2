"""An Iceberg table of format 3 in a folder, to which deletion vectors are committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from alcid.errors import ConflictError
from alcid.tables.iceberg.catalog import VectorCommit
from alcid.tables.iceberg_table import IcebergTable
from tests.tables.iceberg.memory_catalog import MemoryCatalog

__all__ = ["VectorCatalog"]

_PLACE = {
    "referenced_data_file": pa.string(),
    "content_offset": pa.int64(),
    "content_size_in_bytes": pa.int64(),
}


class VectorCatalog(MemoryCatalog):
    """Commits of vectors are checked as Iceberg checks them."""

    def __init__(self, folder: Path) -> None:
        """A table without a snapshot, below a folder."""
        super().__init__(folder)
        self.metadata["format-version"] = 3
        self.meanwhile: list[Callable[[], object]] = []
        """Actions of others before a commit of vectors, each done once."""
        self.changes: list[VectorCommit] = []
        """The commits."""

    @property
    def current(self) -> list[dict[str, Any]]:
        """The entries of the current snapshot."""
        return self.files[self.metadata["current-snapshot-id"]]

    @property
    def vectors(self) -> list[dict[str, Any]]:
        """The entries of deletion vectors."""
        return [entry for entry in self.current if entry["content"] == 1]

    def puffin_files(self) -> list[Path]:
        """The files with vectors, committed or not."""
        return sorted((self.folder / "data").glob("*.puffin"))

    def open(self) -> IcebergTable:
        """The table as a new user opens it."""
        return IcebergTable(self)

    def entries(self, snapshot_id: int, *, metrics: bool = True) -> pa.Table:
        """The files of a snapshot, with the ranges of vectors."""
        table = super().entries(snapshot_id, metrics=metrics)
        for name, kind in _PLACE.items():
            values = [file.get(name) for file in self.files[snapshot_id]]
            table = table.append_column(name, pa.array(values, kind))
        return table

    def commit_vectors(self, change: VectorCommit) -> int:
        """Replace vectors; a file that is gone, or another vector for it, is a conflict."""
        while self.meanwhile:
            self.meanwhile.pop(0)()
        gone = {(file.path, file.offset) for file in change.removed}
        kept = [
            entry
            for entry in self.current
            if (entry["file_path"], entry.get("content_offset")) not in gone
        ]
        if len(self.current) - len(kept) != len(gone):
            raise ConflictError("a vector to be removed is not there")
        taken = {file.get("referenced_data_file") for file in kept}
        for vector in change.added:
            if vector.data_file in taken or all(
                file["file_path"] != vector.data_file for file in kept
            ):
                raise ConflictError(f"{vector.data_file}: is gone, or has another vector")
        number = self.add({})
        self.files[number] = kept
        self.files[number] += (
            {
                "sequence_number": self.metadata["snapshots"][-1]["sequence-number"],
                "content": 1,
                "file_path": file.path,
                "file_format": "PUFFIN",
                "spec_id": file.spec_id,
                "record_count": file.cardinality,
                "file_size_in_bytes": file.size,
                "referenced_data_file": file.data_file,
                "content_offset": file.offset,
                "content_size_in_bytes": file.length,
            }
            for file in change.added
        )
        self.changes.append(change)
        return number
