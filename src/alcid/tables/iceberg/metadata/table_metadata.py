"""`metadata.json`: everything about a table but its files.

Formats 1, 2 and 3. Of format 1 the oldest have one `schema` and one `partition-spec` in place of
lists, no refs, and -1 as the snapshot of an empty table.

Snapshots of a table, and the statistics files that hang on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from alcid.errors import FormatError, OptionError, UnsupportedError
from alcid.tables.iceberg.metadata.schema import MetadataJson, PartitionSpec, Schema

__all__ = ["BlobMetadata", "Snapshot", "StatisticsFile", "TableMetadata"]


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


_NEWEST_FORMAT: Final = 3
_NONE: Final = -1
_FEW: Final = 10  # names in a message
_MAIN: Final = "main"
_STATISTICS: Final = re.compile(r'([^/"\\]+\.stats)"')


@dataclass(frozen=True, slots=True, weakref_slot=True)
class TableMetadata:
    """The metadata of a table at one moment; two are equal if they say the same."""

    format_version: int
    uuid: str
    location: str
    schemas: Mapping[int, Schema]
    current_schema_id: int
    specs: Mapping[int, PartitionSpec]
    default_spec_id: int
    snapshots: Mapping[int, Snapshot]
    current_snapshot_id: int | None
    """None: nothing was ever committed."""
    refs: Mapping[str, int]
    """The snapshots of branches and tags."""
    branches: frozenset[str]
    """Which of them are branches: they have the current schema, tags that of their snapshot."""
    statistics: Mapping[int, StatisticsFile]
    """By the snapshot that lists it."""
    properties: Mapping[str, str]
    snapshot_log: Sequence[tuple[int, int]]
    """When which snapshot became the current one: milliseconds and its id, oldest first."""
    named_statistics: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """The names of all `.stats` files that some field names, known or not."""

    @classmethod
    def from_json(cls, text: str | bytes, *, name: str = "<table>") -> TableMetadata:
        """Read the whole JSON of a table of this name.

        Raises:
            FormatError: It is damaged.
            UnsupportedError: A format that is not known.
        """
        file = f"metadata of {name}"
        found = MetadataJson.parse(text, file)
        version = found.integer("format-version")
        if not 1 <= version <= _NEWEST_FORMAT:
            raise UnsupportedError(
                f"{name}: Iceberg format version {version}, which is not read: expected 1 to"
                f" {_NEWEST_FORMAT}"
            )
        snapshots = map(Snapshot.from_json, found.children("snapshots", optional=True))
        statistics = map(StatisticsFile.from_json, found.children("statistics", optional=True))
        current: int | None = found.integer("current-snapshot-id", _NONE)
        current = None if current == _NONE else current
        refs, branches = _refs(found, current)
        metadata = cls(
            version,
            found.text("table-uuid", ""),
            found.text("location"),
            *_schemas(found),
            *_specs(found),
            {one.id: one for one in snapshots},
            current,
            refs,
            branches,
            {one.snapshot_id: one for one in statistics},
            found.texts("properties"),
            tuple(
                (one.integer("timestamp-ms"), one.integer("snapshot-id"))
                for one in found.children("snapshot-log", optional=True)
            ),
            frozenset(_STATISTICS.findall(text if isinstance(text, str) else text.decode())),
        )
        metadata._check(file)
        return metadata

    def _check(self, file: str) -> None:
        for what, number, known in (
            ("current-schema-id", self.current_schema_id, self.schemas),
            ("default-spec-id", self.default_spec_id, self.specs),
            ("current-snapshot-id", self.current_snapshot_id, self.snapshots),
            *((f"snapshot of {ref}", number, self.snapshots) for ref, number in self.refs.items()),
        ):
            if number is not None and number not in known:
                raise FormatError(what, file=file, found=number, expected=_listed(known))

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schemas[self.current_schema_id]

    def schema_of(self, snapshot: Snapshot | None, ref: str | None = None) -> Schema:
        """The schema that a snapshot is read with.

        It is the current one for branches; any other snapshot that is asked for has the one that
        it was written with.

        Args:
            snapshot: As `find` gave it.
            ref: The branch or tag by which it was found, if so.
        """
        if snapshot is None or snapshot.schema_id is None or ref in self.branches:
            return self.schema
        return self.schemas.get(snapshot.schema_id, self.schema)

    def ancestors(self, snapshot_id: int) -> Iterator[Snapshot]:
        """The snapshot, then its parents, until one that is expired."""
        seen = set()
        following: int | None = snapshot_id
        while following is not None and following in self.snapshots and following not in seen:
            seen.add(following)  # parents of damaged metadata may go in a circle
            yield self.snapshots[following]
            following = self.snapshots[following].parent_id

    def find(
        self,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of_ms: int | None = None,
    ) -> Snapshot | None:
        """A snapshot by its id, by a branch or tag, or by time; the current one if none is given.

        Returns:
            None if nothing was ever committed.

        Raises:
            OptionError: There is no such snapshot, or more than one of them is given.
        """
        if sum(one is not None for one in (snapshot_id, ref, as_of_ms)) > 1:
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
        """The snapshot that was the current one at a time."""
        before = [number for when, number in self.snapshot_log if when <= millis]
        if not before:
            kept = [f", the first that is kept is of {_moment(at)}" for at, _ in self.snapshot_log]
            raise OptionError(f"no snapshot at {_moment(millis)} or before{''.join(kept[:1])}")
        return before[-1]


def _moment(millis: int) -> str:
    return str(np.datetime64(millis, "ms")) + "Z"


def _schemas(found: MetadataJson) -> tuple[dict[int, Schema], int]:
    """All schemas, and the number of the current one."""
    if not found.has("schemas"):
        only = Schema.from_json(found.child("schema").values, file=found.file)
        return {only.id: only}, only.id
    given = [Schema.from_json(one.values, file=found.file) for one in found.children("schemas")]
    return {one.id: one for one in given}, found.integer("current-schema-id")


def _specs(found: MetadataJson) -> tuple[dict[int, PartitionSpec], int]:
    """All partition specs, and the number of the one that new files have."""
    if not found.has("partition-specs"):
        fields = {"fields": [one.values for one in found.children("partition-spec")]}
        only = PartitionSpec.from_json(fields, file=found.file)
        return {only.id: only}, only.id
    given = [
        PartitionSpec.from_json(one.values, file=found.file)
        for one in found.children("partition-specs")
    ]
    return {one.id: one for one in given}, found.integer("default-spec-id")


def _refs(found: MetadataJson, current: int | None) -> tuple[dict[str, int], frozenset[str]]:
    """The snapshots of branches and tags, and which are branches."""
    if not found.has("refs"):
        return ({} if current is None else {_MAIN: current}), frozenset({_MAIN})
    given = found.child("refs")
    each = {name: given.child(name) for name in given.values}
    branches = frozenset(name for name, one in each.items() if one.text("type") == "branch")
    return {name: one.integer("snapshot-id") for name, one in each.items()}, branches


def _listed(known: Mapping[int, object] | Mapping[str, object]) -> str:
    """What there is, if it is not too much for a message."""
    names = [str(one) for one in known]
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return (", ".join(names[:_FEW]) or "none") + more
