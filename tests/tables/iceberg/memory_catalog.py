"""An Iceberg table whose catalog is this process: real files, and commits with interruptions."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from alcid.errors import ConflictError
from alcid.tables.iceberg.catalog import OwnQuery, VectorCommit
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile, TableMetadata

__all__ = ["MemoryCatalog"]

FIELDS = (("id", 1, "long"), ("name", 2, "string"))

_ENTRIES = pa.schema(
    [
        ("sequence_number", pa.int64()),
        ("content", pa.int32()),
        ("file_path", pa.string()),
        ("file_format", pa.string()),
        ("spec_id", pa.int32()),
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("key_metadata", pa.binary()),
    ]
)


class MemoryCatalog:
    """A table without partitions; each change is a new version of its metadata."""

    name = "lake.db.t"

    def __init__(self, folder: Path, fields: Sequence[tuple[str, int, str]] = FIELDS) -> None:
        """A table without a snapshot, below a folder."""
        self.folder = folder
        (folder / "data").mkdir(parents=True)
        (folder / "metadata").mkdir()
        self.files: dict[int, list[dict[str, Any]]] = {}
        self.between: list[Callable[[], None]] = []
        """Actions of others before a commit of ours, each done once."""
        self.after: list[Callable[[], None]] = []
        """Actions of others after a commit of ours, each done once."""
        self.commits = 0
        self._version = 0
        self._loaded: list[tuple[TableMetadata, int]] = []
        self.metadata: dict[str, Any] = {
            "format-version": 2,
            "table-uuid": "5f1e0c7a-0000-0000-0000-000000000000",
            "location": str(folder),
            "schemas": [_schema(0, fields)],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "properties": {},
            "current-snapshot-id": -1,
            "snapshots": [],
            "refs": {},
            "statistics": [],
        }

    def set_fields(self, fields: Sequence[tuple[str, int, str]]) -> None:
        """Give the table another schema."""
        number = len(self.metadata["schemas"])
        self.metadata["schemas"].append(_schema(number, fields))
        self.metadata["current-schema-id"] = number
        self._version += 1

    def add(
        self,
        rows: Mapping[str, Mapping[str, Sequence[Any]]],
        *,
        drop: Sequence[str] = (),
        ids: Mapping[str, int] | None = None,
        file_format: str = "PARQUET",
    ) -> int:
        """Commit a snapshot with added files, by name, and without others."""
        numbers = {name: number for name, number, _ in FIELDS} if ids is None else ids
        parent = self.metadata["current-snapshot-id"]
        kept = [
            file for file in self.files.get(parent, []) if Path(file["file_path"]).name not in drop
        ]
        for name, columns in rows.items():
            path = self.folder / "data" / name
            pq.write_table(_table(columns, numbers), path)
            kept.append(
                {
                    "sequence_number": len(self.metadata["snapshots"]) + 1,
                    "content": 0,
                    "file_path": str(path),
                    "file_format": file_format,
                    "spec_id": 0,
                    "record_count": len(next(iter(columns.values()))),
                    "file_size_in_bytes": path.stat().st_size,
                }
            )
        number = 1000 + len(self.files)
        self.files[number] = kept
        self.metadata["snapshots"].append(
            {
                "snapshot-id": number,
                "sequence-number": len(self.metadata["snapshots"]) + 1,
                "timestamp-ms": 1_700_000_000_000 + number,
                "schema-id": self.metadata["current-schema-id"],
                "summary": {"operation": "append"},
            }
            | ({} if parent == -1 else {"parent-snapshot-id": parent})
        )
        self.metadata["current-snapshot-id"] = number
        self.metadata["refs"] = {"main": {"snapshot-id": number, "type": "branch"}}
        self._version += 1
        return number

    def expire(self, *snapshots: int) -> None:
        """Remove snapshots and their statistics files, as Iceberg does."""
        for key in ("snapshots", "statistics"):
            self.metadata[key] = [
                item for item in self.metadata[key] if item["snapshot-id"] not in snapshots
            ]
        listed = {file["statistics-path"] for file in self.metadata["statistics"]}
        for path in self.puffins():
            if str(path) not in listed:
                path.unlink()
        self._version += 1

    def put_statistics(self, snapshot_id: int, file: Mapping[str, Any]) -> None:
        """Replace the statistics file of a snapshot, as Iceberg's own action does."""
        kept = [
            listed for listed in self.metadata["statistics"] if listed["snapshot-id"] != snapshot_id
        ]
        self.metadata["statistics"] = [*kept, dict(file)]
        self._version += 1

    def listed(self) -> dict[int, str]:
        """The names of the statistics files, by snapshot."""
        files = self.metadata["statistics"]
        return {file["snapshot-id"]: Path(file["statistics-path"]).name for file in files}

    def puffins(self) -> list[Path]:
        """All existing statistics files, listed or not."""
        return sorted((self.folder / "metadata").glob("*.stats"))

    def staged(self) -> list[Path]:
        """The bundles that builds have staged."""
        return sorted((self.folder / "metadata" / "_alcid").glob("*"))

    # What `CatalogTable` requires.

    def load(self) -> TableMetadata:
        """The current metadata."""
        metadata = TableMetadata.from_json(json.dumps(self.metadata), name=self.name)
        self._loaded.append((metadata, self._version))
        return metadata

    def metrics(self, snapshot_id: int, field_ids: Collection[int]) -> pa.Table:
        """Not here: entries have all of them."""
        raise NotImplementedError(snapshot_id, field_ids)

    def entries(self, snapshot_id: int, *, metrics: bool = True) -> pa.Table:
        """The files of a snapshot."""
        assert metrics
        return pa.Table.from_pylist(self.files[snapshot_id], schema=_ENTRIES)

    def storage_options(self, location: str) -> Mapping[str, Any]:
        """None: the files are on a disk."""
        assert location
        return {}

    def working_folder(self) -> str:
        """The folder of the table."""
        return str(self.folder.parent)

    def data_location(self, name: str) -> str:
        """A path in the folder of the data."""
        return str(self.folder / "data" / name)

    def metadata_location(self, name: str) -> str:
        """A path in the folder of the metadata."""
        return str(self.folder / "metadata" / name)

    def set_statistics(self, base: TableMetadata, statistics: StatisticsFile) -> None:
        """List a statistics file."""
        self._swap(base)
        self.put_statistics(statistics.snapshot_id, statistics.to_json())
        self._others(self.after)

    def remove_statistics(self, base: TableMetadata, snapshot_id: int) -> None:
        """Remove a statistics file from the list."""
        self._swap(base)
        kept = [file for file in self.metadata["statistics"] if file["snapshot-id"] != snapshot_id]
        self.metadata["statistics"] = kept
        self._version += 1
        self._others(self.after)

    def set_property(self, base: TableMetadata, name: str, value: str | None) -> None:
        """Set a property, or remove it, without interruption, and without counting it."""
        if self._version_of(base) != self._version:
            raise ConflictError("the metadata are others")
        kept = {
            key: kept_value
            for key, kept_value in self.metadata["properties"].items()
            if key != name
        }
        self.metadata["properties"] = kept if value is None else {**kept, name: value}
        self._version += 1

    def _version_of(self, base: TableMetadata) -> int:
        return next(version for metadata, version in self._loaded if metadata is base)

    def _swap(self, base: TableMetadata) -> None:
        self._others(self.between)
        if self._version_of(base) != self._version:
            raise ConflictError("the metadata are others")
        self.commits += 1

    @staticmethod
    def _others(todo: list[Callable[[], None]]) -> None:
        if todo:
            todo.pop(0)()

    def commit_vectors(self, change: VectorCommit) -> int:
        """Not supported here."""
        raise NotImplementedError(change)

    def append(self, rows: Any) -> None:
        """Not supported here."""
        raise NotImplementedError(rows)

    def check_append(self, rows: Any) -> None:
        """Not supported here."""
        raise NotImplementedError(rows)

    def rows(self, query: OwnQuery) -> Any:
        """Not supported here."""
        raise NotImplementedError(query)


def _schema(number: int, fields: Sequence[tuple[str, int, str]]) -> dict[str, Any]:
    return {
        "schema-id": number,
        "type": "struct",
        "fields": [
            {"id": field, "name": name, "type": kind, "required": False}
            for name, field, kind in fields
        ],
    }


def _table(columns: Mapping[str, Sequence[Any]], numbers: Mapping[str, int]) -> pa.Table:
    """Rows whose columns have ids."""
    arrays = {name: pa.array(values) for name, values in columns.items()}
    fields = [
        pa.field(
            name,
            array.type,
            metadata={"PARQUET:field_id": str(numbers[name])} if name in numbers else None,
        )
        for name, array in arrays.items()
    ]
    return pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(fields))
