"""Statistics files of snapshots: written, then listed in the metadata by compare-and-swap.

    metadata/8270633197658268308-0b3f6c1d-....-alcid.stats     with a bundle of indexes
    metadata/8270633197658268308-0b3f6c1d-....stats            without

A snapshot lists one file, and whoever commits last wins. So what is there is taken over before a
commit, and looked at again after it. Only sketches of that very snapshot are listed blob by blob:
Spark plans by them, and other readers know no other types.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from alcid.errors import (
    ConflictError,
    FileGoneError,
    FormatError,
    StorageError,
)
from alcid.formats.puffin import PuffinReader
from alcid.formats.puffin.writer import THETA_SKETCH
from alcid.formats.source import BytesSource
from alcid.index.bundle.format import VERSION_PROPERTY
from alcid.tables.iceberg.catalog import CatalogTable
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.table_metadata import BlobMetadata, StatisticsFile, TableMetadata

__all__ = ["BUNDLE_SUFFIX", "Make", "is_ours", "publish"]

BUNDLE_SUFFIX = "-alcid.stats"
"""How the names of statistics files end that hold a bundle."""

Make: TypeAlias = Callable[[TableMetadata, Sequence[StatisticsFile]], bytes | StatisticsFile | None]
"""What the snapshot is to list, given the metadata as they are, and files with bundles that it has
listed until another tool replaced them, just now: a new Puffin file, one that there is, or none. It
must return the file that is listed if that will do."""

_TRIES = 20
_PAUSE = 1.0


def publish(
    catalog: CatalogTable, places: Places, snapshot_id: int, make: Make
) -> StatisticsFile | None:
    """Let a snapshot list a statistics file, whatever others commit meanwhile.

    Files of ours that it listed before, and that no snapshot lists any more, are removed.

    Args:
        catalog: The table.
        places: Where its files are.
        snapshot_id: The snapshot.
        make: What it is to list. It is asked again if another's file is there before the commit, or
            after it.

    Returns:
        What it lists now.

    Raises:
        ConflictError: The snapshot was expired; or others commit again and again.
        StorageError: A file could not be written, or whether the commit was made is not known.
    """
    before: list[StatisticsFile] = []  # all that it has listed
    made: StatisticsFile | None = None
    made_for: StatisticsFile | None = None  # what was listed when it was made
    written: StatisticsFile | None = None  # that which is listed nowhere so far
    metadata = catalog.load()
    for attempt in range(_TRIES):
        if snapshot_id not in metadata.snapshots:
            _discard(places, written)
            raise ConflictError(f"{catalog.name}: snapshot {snapshot_id} was expired meanwhile")
        known = metadata.statistics.get(snapshot_id)
        if known is not None and known not in before:
            before.append(known)
        if written is None or known != made_for:
            _discard(places, written)
            written, made_for = None, known
            try:
                given = make(metadata, _lost(before, known))
            except FileGoneError:  # another has replaced it since
                if attempt == _TRIES - 1:
                    raise
                metadata = catalog.load()
                continue
            if isinstance(given, bytes):
                given = written = _write(catalog, places, snapshot_id, given, known)
            made = given
        if _path(made) != _path(known):
            try:
                if made is None:
                    catalog.remove_statistics(metadata, snapshot_id)
                else:
                    catalog.set_statistics(metadata, made)
            except ConflictError:
                time.sleep(random.uniform(0, min(_PAUSE, 0.01 * 2**attempt)))
                metadata = catalog.load()
                continue
            written = None
            before += [] if made is None else [made]
            metadata = catalog.load()
            known = metadata.statistics.get(snapshot_id)
        if _path(made) == _path(known):
            _remove_unlisted(places, metadata, before)
            return known
    _discard(places, written)
    raise ConflictError(
        f"{catalog.name}: statistics of snapshot {snapshot_id} not registered:"
        f" others committed {_TRIES} times meanwhile"
    )


def is_ours(reader: PuffinReader) -> bool:
    """Whether Alcid wrote a Puffin file."""
    return reader.properties.get("created-by", "").startswith("Alcid")


def _lost(
    before: Sequence[StatisticsFile], known: StatisticsFile | None
) -> Sequence[StatisticsFile]:
    """Files with bundles, if what is listed now has none: whoever wrote it knew nothing of them."""
    if known is not None and known.path.endswith(BUNDLE_SUFFIX):
        return ()
    return tuple(one for one in before if one.path.endswith(BUNDLE_SUFFIX))


def _path(file: StatisticsFile | None) -> str | None:
    return None if file is None else file.path


def _write(
    catalog: CatalogTable,
    places: Places,
    snapshot_id: int,
    data: bytes,
    known: StatisticsFile | None,
) -> StatisticsFile:
    """Write a Puffin file beside the metadata, and describe it as these do."""
    reader = PuffinReader(BytesSource(data, "statistics"))
    suffix = BUNDLE_SUFFIX if VERSION_PROPERTY in reader.properties else ".stats"
    path = catalog.metadata_location(f"{snapshot_id}-{uuid.uuid4()}{suffix}")
    places.put(path, data)
    # What another tool has listed before stays listed.
    types = {THETA_SKETCH, *(blob.type for blob in (known.blobs if known else ()))}
    blobs = tuple(
        BlobMetadata(
            blob.type, blob.snapshot_id, blob.sequence_number, blob.fields, blob.properties
        )
        for blob in reader.blobs
        if blob.type in types and blob.snapshot_id == snapshot_id
    )
    return StatisticsFile(snapshot_id, path, len(data), reader.footer_size, blobs)


def _discard(places: Places, written: StatisticsFile | None) -> None:
    if written is not None:
        with suppress(StorageError):
            places.delete([written.path])


def _remove_unlisted(
    places: Places, metadata: TableMetadata, before: Sequence[StatisticsFile]
) -> None:
    """Remove files that were listed before, if they are ours and nothing lists them any more.

    Whoever is reading one finds it gone, and opens the table again.
    """
    listed = {one.path for one in metadata.statistics.values()}
    for file in before:
        if file.path not in listed:
            with suppress(StorageError, FormatError):  # it is nothing but space
                source = places.source(file.path, file.size)
                if is_ours(PuffinReader(source, footer_size=file.footer_size)):
                    places.delete([file.path])
