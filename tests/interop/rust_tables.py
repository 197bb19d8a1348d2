"""Whole tables under pypaimon-rust."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pypaimon_rust.datafusion import PaimonCatalog, SQLContext


class RustWarehouse:
    """Tables in a folder, made and queried by SQL, written through Arrow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.context: Any = SQLContext()
        self.context.register_catalog("rust", {"warehouse": str(folder)})
        self.context.sql("CREATE SCHEMA rust.db")
        self.catalog: Any = PaimonCatalog({"warehouse": str(folder)})

    def create(
        self,
        columns: str,
        options: Mapping[str, str],
        name: str = "t",
        partition_keys: Sequence[str] = (),
    ) -> Path:
        """Make a table without rows; returns its path."""
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        by = f" PARTITIONED BY ({', '.join(partition_keys)})" if partition_keys else ""
        self.context.sql(f"CREATE TABLE rust.db.{name} ({columns}){by} WITH ({properties})")
        return self.folder / "db.db" / name

    def link(self, table: Path, name: str = "t") -> None:
        """Register a table that is somewhere else."""
        (self.folder / "db.db" / name).symlink_to(table, target_is_directory=True)

    def _table(self, name: str) -> Any:
        return self.catalog.get_table(("db", name))

    def write(self, rows: pa.RecordBatch, name: str = "t") -> None:
        """Write rows in one commit."""
        builder = self._table(name).new_batch_write_builder()
        writer = builder.new_write()
        writer.write_arrow(rows)
        builder.new_commit().commit(writer.prepare_commit())

    def delete(self, row_ids: Iterable[int], name: str = "t") -> None:
        """Delete rows of a table with row tracking and data evolution."""
        builder = self._table(name).new_batch_write_builder()
        builder.new_commit().commit(builder.new_update().delete_by_row_id(list(row_ids)))

    def read(self, where: str = "true", columns: str = "*", name: str = "t") -> pa.Table:
        """The rows that meet an SQL condition."""
        batches = self.context.sql(f"SELECT {columns} FROM rust.db.{name} WHERE {where}")
        return pa.Table.from_batches(batches)

    def ids(self) -> list[int]:
        """The sorted column `id` of the table `t`."""
        return sorted(self.read(columns="id").column(0).to_pylist())

    def snapshots(self, name: str = "t") -> list[tuple[int, str]]:
        """The id and the kind of every snapshot."""
        snapshots = self._table(name).list_snapshots()
        return sorted((snapshot.id(), snapshot.commit_kind()) for snapshot in snapshots)
