"""Snapshots of a table, and the statistics files that hang on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from alcid.iceberg_metadata.metadata_json import MetadataJson

__all__ = ["BlobMetadata", "Snapshot", "StatisticsFile"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The table after one commit."""

    id: int
    parent_id: int | None
    sequence_number: int
    timestamp_ms: int
    schema_id: int | None
    operation: str
    """`append`, `replace`, `overwrite` or `delete`; empty if it is not said."""
    summary: Mapping[str, str] = field(default_factory=dict)
    """What the commit did, in numbers: `added-records` ..."""
    manifest_list: str | None = None
    """The file that lists its manifests."""
    manifests: tuple[str, ...] = ()
    """The manifests, of the oldest tables, which have no list of them."""
    key_id: str | None = None
    """The key of its manifest list, if that is encrypted."""

    @classmethod
    def from_json(cls, found: MetadataJson) -> Snapshot:
        """One of `snapshots`; those of the oldest tables have no sequence number, which is 0."""
        summary = found.texts("summary")
        return cls(
            found.integer("snapshot-id"),
            found.integer("parent-snapshot-id") if found.has("parent-snapshot-id") else None,
            found.integer("sequence-number", 0),
            found.integer("timestamp-ms"),
            found.integer("schema-id") if found.has("schema-id") else None,
            summary.get("operation", ""),
            summary,
            found.text("manifest-list") if found.has("manifest-list") else None,
            found.all_texts("manifests") if found.has("manifests") else (),
            found.text("key-id") if found.has("key-id") else None,
        )


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """A blob of a statistics file, as the metadata of the table list it."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, found: MetadataJson) -> BlobMetadata:
        """One of `blob-metadata`."""
        return cls(
            found.text("type"),
            found.integer("snapshot-id"),
            found.integer("sequence-number"),
            found.integers("fields"),
            found.texts("properties"),
        )

    def to_json(self) -> dict[str, Any]:
        """As the metadata have it."""
        return {
            "type": self.type,
            "snapshot-id": self.snapshot_id,
            "sequence-number": self.sequence_number,
            "fields": list(self.fields),
            "properties": dict(self.properties),
        }


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """A Puffin file that a snapshot lists.

    >>> StatisticsFile(7, "metadata/7.stats", 100, 50).to_json()
    {'snapshot-id': 7, 'statistics-path': 'metadata/7.stats', 'file-size-in-bytes': 100,
     'file-footer-size-in-bytes': 50, 'blob-metadata': []}
    """

    snapshot_id: int
    path: str
    size: int
    footer_size: int
    blobs: tuple[BlobMetadata, ...] = ()

    @classmethod
    def from_json(cls, found: MetadataJson) -> StatisticsFile:
        """One of `statistics`."""
        return cls(
            found.integer("snapshot-id"),
            found.text("statistics-path"),
            found.integer("file-size-in-bytes"),
            found.integer("file-footer-size-in-bytes"),
            tuple(map(BlobMetadata.from_json, found.children("blob-metadata"))),
        )

    def to_json(self) -> dict[str, Any]:
        """As the metadata have it."""
        return {
            "snapshot-id": self.snapshot_id,
            "statistics-path": self.path,
            "file-size-in-bytes": self.size,
            "file-footer-size-in-bytes": self.footer_size,
            "blob-metadata": [one.to_json() for one in self.blobs],
        }
