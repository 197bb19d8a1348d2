"""Tables of a catalog as they are at one moment, to be read again without Spark."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from alcid.spark.iceberg import SparkCatalogTable
from alcid.tables.iceberg.catalog import OwnQuery, VectorCommit
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile, TableMetadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SavedTable"]


@dataclass(frozen=True)
class SavedTable:
    """A table that answers from memory and cannot change; its files stay where they are."""

    name: str
    text: str
    """The JSON of its metadata."""
    files: dict[int, pa.Table]
    """Its entries, by snapshot."""

    @classmethod
    def save(cls, catalog: SparkCatalogTable) -> SavedTable:
        """Save the metadata of a table and the entries of all its snapshots."""
        metadata = catalog.load()
        files = {snapshot: catalog.entries(snapshot) for snapshot in metadata.snapshots}
        metadata_json = json.loads(catalog._java.metadata()[1])
        for snapshot in metadata_json.get("snapshots", ()):
            del snapshot["manifest-list"]  # so that `entries` is asked, which tests change
        return cls(catalog.name, json.dumps(metadata_json), files)

    def load(self) -> TableMetadata:
        return TableMetadata.from_json(self.text, name=self.name)

    def entries(self, snapshot_id: int, *, metrics: bool = True) -> pa.Table:
        assert metrics
        return self.files[snapshot_id]

    def metrics(self, snapshot_id: int, field_ids: Collection[int]) -> NoReturn:
        _fixed(snapshot_id, field_ids)

    def storage_options(self, location: str) -> dict[str, str]:
        assert location
        return {}

    def working_folder(self) -> str:
        raise AssertionError("the files of a saved table have whole paths")

    def data_location(self, name: str) -> str:
        return f"{self.load().location}/data/{name}"

    def metadata_location(self, name: str) -> str:
        return f"{self.load().location}/metadata/{name}"

    def set_statistics(self, base: TableMetadata, statistics: StatisticsFile) -> None:
        _fixed(base, statistics)

    def remove_statistics(self, base: TableMetadata, snapshot_id: int) -> None:
        _fixed(base, snapshot_id)

    def set_property(self, base: TableMetadata, name: str, value: str | None) -> None:
        _fixed(base, name, value)

    def commit_vectors(self, change: VectorCommit) -> int:
        _fixed(change)

    def append(self, rows: DataFrame) -> None:
        _fixed(rows)

    def check_append(self, rows: DataFrame) -> None:
        _fixed(rows)

    def rows(self, query: OwnQuery) -> DataFrame:
        _fixed(query)


def _fixed(*arguments: object) -> NoReturn:
    raise AssertionError(f"a saved table is only read, not changed: {arguments}")
