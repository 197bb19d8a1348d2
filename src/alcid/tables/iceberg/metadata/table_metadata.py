"""`metadata.json`: schemas, partition specs, snapshots and their statistics files.

Supports format versions 1, 2 and 3. The oldest tables of version 1 have one `schema` and one
`partition-spec` instead of lists, no refs, and -1 as the current snapshot of an empty table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from alcid.errors import FormatError, OptionError, UnsupportedError
from alcid.tables.iceberg.metadata.schema import MetadataJson, PartitionSpec, Schema


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The table after a commit."""

    id: int
    parent_id: int | None
    sequence_number: int
    timestamp_ms: int
    schema_id: int | None
    operation: str
    """`append`, `replace`, `overwrite` or `delete`; empty if it is missing."""
    summary: Mapping[str, str] = field(default_factory=dict)
    """Counts of what the commit changed: `added-records` ..."""
    manifest_list: str | None = None
    """The file that lists its manifests."""
    manifests: tuple[str, ...] = ()
    """The manifests, in the oldest tables, which have no manifest list."""
    key_id: str | None = None
    """The key of its manifest list, if that is encrypted."""

    @classmethod
    def from_json(cls, json_snapshot: MetadataJson) -> Snapshot:
        """Parse one of `snapshots`; the sequence number defaults to 0, as version 1 has none."""
        summary = json_snapshot.texts("summary")
        return cls(
            json_snapshot.integer("snapshot-id"),
            json_snapshot.integer("parent-snapshot-id")
            if json_snapshot.has("parent-snapshot-id")
            else None,
            json_snapshot.integer("sequence-number", 0),
            json_snapshot.integer("timestamp-ms"),
            json_snapshot.integer("schema-id") if json_snapshot.has("schema-id") else None,
            summary.get("operation", ""),
            summary,
            json_snapshot.text("manifest-list") if json_snapshot.has("manifest-list") else None,
            json_snapshot.all_texts("manifests") if json_snapshot.has("manifests") else (),
            json_snapshot.text("key-id") if json_snapshot.has("key-id") else None,
        )


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """A blob of a statistics file, as listed in the table metadata."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, json_blob: MetadataJson) -> BlobMetadata:
        """Parse one of `blob-metadata`."""
        return cls(
            json_blob.text("type"),
            json_blob.integer("snapshot-id"),
            json_blob.integer("sequence-number"),
            json_blob.integers("fields"),
            json_blob.texts("properties"),
        )

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "type": self.type,
            "snapshot-id": self.snapshot_id,
            "sequence-number": self.sequence_number,
            "fields": list(self.fields),
            "properties": dict(self.properties),
        }


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """A statistics file of a snapshot, in Puffin format.

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
    def from_json(cls, json_file: MetadataJson) -> StatisticsFile:
        """Parse one of `statistics`."""
        return cls(
            json_file.integer("snapshot-id"),
            json_file.text("statistics-path"),
            json_file.integer("file-size-in-bytes"),
            json_file.integer("file-footer-size-in-bytes"),
            tuple(map(BlobMetadata.from_json, json_file.children("blob-metadata"))),
        )

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "snapshot-id": self.snapshot_id,
            "statistics-path": self.path,
            "file-size-in-bytes": self.size,
            "file-footer-size-in-bytes": self.footer_size,
            "blob-metadata": [blob.to_json() for blob in self.blobs],
        }


_NEWEST_FORMAT: Final = 3
_NONE: Final = -1
_FEW: Final = 10  # names in a message
_MAIN: Final = "main"
_STATISTICS: Final = re.compile(r'([^/"\\]+\.stats)"')


@dataclass(frozen=True, slots=True, weakref_slot=True)
class TableMetadata:
    """A version of the metadata of a table."""

    format_version: int
    uuid: str
    location: str
    schemas: Mapping[int, Schema]
    current_schema_id: int
    specs: Mapping[int, PartitionSpec]
    default_spec_id: int
    snapshots: Mapping[int, Snapshot]
    current_snapshot_id: int | None
    """None before the first commit."""
    refs: Mapping[str, int]
    """The snapshots of branches and tags."""
    branches: frozenset[str]
    """The refs that are branches: they use the current schema, tags that of their snapshot."""
    statistics: Mapping[int, StatisticsFile]
    """By snapshot id."""
    properties: Mapping[str, str]
    snapshot_log: Sequence[tuple[int, int]]
    """Timestamps in milliseconds at which snapshots became current, and their ids, oldest first."""
    named_statistics: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """The names of `.stats` files in any field, including unknown ones."""

    @classmethod
    def from_json(cls, text: str | bytes, *, name: str = "<table>") -> TableMetadata:
        """Parse the metadata of the table with this name.

        Raises:
            FormatError: It is damaged.
            UnsupportedError: The format version is not supported.
        """
        file = f"metadata of {name}"
        document = MetadataJson.parse(text, file)
        version = document.integer("format-version")
        if not 1 <= version <= _NEWEST_FORMAT:
            raise UnsupportedError(
                f"{name}: Iceberg format version {version} is not supported: expected 1 to"
                f" {_NEWEST_FORMAT}"
            )
        snapshots = map(Snapshot.from_json, document.children("snapshots", optional=True))
        statistics = map(StatisticsFile.from_json, document.children("statistics", optional=True))
        current: int | None = document.integer("current-snapshot-id", _NONE)
        current = None if current == _NONE else current
        refs, branches = _refs(document, current)
        metadata = cls(
            version,
            document.text("table-uuid", ""),
            document.text("location"),
            *_schemas(document),
            *_specs(document),
            {snapshot.id: snapshot for snapshot in snapshots},
            current,
            refs,
            branches,
            {file.snapshot_id: file for file in statistics},
            document.texts("properties"),
            tuple(
                (entry.integer("timestamp-ms"), entry.integer("snapshot-id"))
                for entry in document.children("snapshot-log", optional=True)
            ),
            frozenset(_STATISTICS.findall(text if isinstance(text, str) else text.decode())),
        )
        metadata._check(file)
        return metadata

    def _check(self, file: str) -> None:
        for what, number, existing in (
            ("current-schema-id", self.current_schema_id, self.schemas),
            ("default-spec-id", self.default_spec_id, self.specs),
            ("current-snapshot-id", self.current_snapshot_id, self.snapshots),
            *((f"snapshot of {ref}", number, self.snapshots) for ref, number in self.refs.items()),
        ):
            if number is not None and number not in existing:
                raise FormatError(what, file=file, found=number, expected=_listed(existing))

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schemas[self.current_schema_id]

    def schema_of(self, snapshot: Snapshot | None, ref: str | None = None) -> Schema:
        """The schema that a snapshot is read with.

        Branches are read with the current schema, other snapshots with the one that they were
        written with.

        Args:
            snapshot: The result of `find`.
            ref: The branch or tag in that call.
        """
        if snapshot is None or snapshot.schema_id is None or ref in self.branches:
            return self.schema
        return self.schemas.get(snapshot.schema_id, self.schema)

    def ancestors(self, snapshot_id: int) -> Iterator[Snapshot]:
        """The snapshot and its ancestors, up to the first that is expired."""
        seen = set()
        current: int | None = snapshot_id
        while current is not None and current in self.snapshots and current not in seen:
            seen.add(current)  # in damaged metadata, parents may form a cycle
            yield self.snapshots[current]
            current = self.snapshots[current].parent_id

    def find(
        self,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of_ms: int | None = None,
    ) -> Snapshot | None:
        """Find a snapshot by id, branch or tag, or timestamp; by default the current one.

        Returns:
            None before the first commit.

        Raises:
            OptionError: There is no such snapshot, or more than one argument is given.
        """
        if sum(argument is not None for argument in (snapshot_id, ref, as_of_ms)) > 1:
            raise OptionError("give one of snapshot_id, ref and as_of")
        if ref is not None:
            if ref == _MAIN and self.current_snapshot_id is None:
                return None
            if ref not in self.refs:
                raise OptionError(f"no branch or tag {ref!r}, found {_listed(self.refs)}")
            snapshot_id = self.refs[ref]
        elif as_of_ms is not None:
            snapshot_id = self._current_at(as_of_ms)
        elif snapshot_id is None:
            snapshot_id = self.current_snapshot_id
        if snapshot_id is None:
            return None
        if snapshot_id not in self.snapshots:
            raise OptionError(f"no snapshot {snapshot_id}, found {_listed(self.snapshots)}")
        return self.snapshots[snapshot_id]

    def _current_at(self, millis: int) -> int:
        """The snapshot that was current at a time."""
        before = [number for when, number in self.snapshot_log if when <= millis]
        if not before:
            first = [f", the first is of {_timestamp(at)}" for at, _ in self.snapshot_log[:1]]
            raise OptionError(f"no snapshot at {_timestamp(millis)} or before{''.join(first)}")
        return before[-1]


def _timestamp(millis: int) -> str:
    return str(np.datetime64(millis, "ms")) + "Z"


def _schemas(document: MetadataJson) -> tuple[dict[int, Schema], int]:
    """All schemas, and the id of the current one."""
    if not document.has("schemas"):
        only = Schema.from_json(document.child("schema").values, file=document.file)
        return {only.id: only}, only.id
    schemas = [
        Schema.from_json(schema.values, file=document.file)
        for schema in document.children("schemas")
    ]
    return {schema.id: schema for schema in schemas}, document.integer("current-schema-id")


def _specs(document: MetadataJson) -> tuple[dict[int, PartitionSpec], int]:
    """All partition specs, and the id of the default one."""
    if not document.has("partition-specs"):
        fields = {"fields": [field.values for field in document.children("partition-spec")]}
        only = PartitionSpec.from_json(fields, file=document.file)
        return {only.id: only}, only.id
    specs = [
        PartitionSpec.from_json(spec.values, file=document.file)
        for spec in document.children("partition-specs")
    ]
    return {spec.id: spec for spec in specs}, document.integer("default-spec-id")


def _refs(document: MetadataJson, current: int | None) -> tuple[dict[str, int], frozenset[str]]:
    """The snapshots of branches and tags, and the names of the branches."""
    if not document.has("refs"):
        return ({} if current is None else {_MAIN: current}), frozenset({_MAIN})
    json_refs = document.child("refs")
    refs = {name: json_refs.child(name) for name in json_refs.values}
    branches = frozenset(name for name, ref in refs.items() if ref.text("type") == "branch")
    return {name: ref.integer("snapshot-id") for name, ref in refs.items()}, branches


def _listed(existing: Mapping[int, object] | Mapping[str, object]) -> str:
    """The first keys, for a message."""
    names = [str(name) for name in existing]
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return (", ".join(names[:_FEW]) or "none") + more
