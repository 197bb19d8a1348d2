"""The files of a snapshot: from its manifests, which are read here.

The manifests of many files are read faster by the catalog's engine, which has many tasks for them;
what that cannot list is read here as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from alcid.errors import FileGoneError, StorageError, UnsupportedError
from alcid.iceberg_metadata.entries import Entries
from alcid.iceberg_metadata.manifests import ManifestFile, read_manifest_list, read_manifests
from alcid.iceberg_metadata.table_metadata import Snapshot, TableMetadata
from alcid.tables.iceberg.catalog import CatalogTable
from alcid.tables.iceberg.places import Places

__all__ = ["MOST_VALUES", "snapshot_entries"]

MOST_VALUES: Final = 50_000
"""Files times columns up to which manifests are read here; a Spark job takes as long as these."""
_FIELDS_PER_FILE: Final = 5  # besides what it says of each column
_AT_ONCE: Final = 64  # manifests in memory


def snapshot_entries(
    catalog: CatalogTable, places: Places, metadata: TableMetadata, snapshot: Snapshot
) -> Entries:
    """The live data and delete files of a snapshot.

    Args:
        catalog: Lists the files of snapshots with very many of them.
        places: What manifests are read from.
        metadata: Of the table.
        snapshot: One of its snapshots.

    Raises:
        FileGoneError: The snapshot is expired.
        FormatError: A manifest is damaged.
        UnsupportedError: Manifests are encrypted.
    """
    if snapshot.manifest_list is None and not snapshot.manifests:
        return Entries.of(catalog.entries(snapshot.id), name=catalog.name)
    manifests = _manifests(places, snapshot, catalog.name)
    files = [one.live_files for one in manifests]
    values = sum(filter(None, files)) * (len(metadata.schema.fields) + _FIELDS_PER_FILE)
    if None not in files and values > MOST_VALUES:
        try:
            return Entries.of(catalog.entries(snapshot.id), name=catalog.name)
        except FileGoneError:
            raise
        except (StorageError, UnsupportedError):  # partition fields that share a name, and others
            pass
    found = read_manifests(_contents(places, manifests), metadata.specs)
    return Entries.of(found, name=catalog.name)


def _manifests(places: Places, snapshot: Snapshot, name: str) -> list[ManifestFile]:
    """The manifests of a snapshot that have live files."""
    if snapshot.manifest_list is None:
        return [ManifestFile(path) for path in snapshot.manifests]
    if snapshot.key_id is not None:
        raise UnsupportedError(f"{name}: encrypted manifests, which are not read")
    [data] = places.read_files([snapshot.manifest_list])
    manifests = read_manifest_list(data, file=snapshot.manifest_list)
    for one in manifests:
        if one.is_encrypted:
            raise UnsupportedError(f"{name}: encrypted manifests, which are not read: {one.path}")
    return [one for one in manifests if one.live_files != 0]


def _contents(
    places: Places, manifests: Sequence[ManifestFile]
) -> Iterator[tuple[ManifestFile, bytes]]:
    for first in range(0, len(manifests), _AT_ONCE):
        some = manifests[first : first + _AT_ONCE]
        yield from zip(some, places.read_files([one.path for one in some]), strict=True)
