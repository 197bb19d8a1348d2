"""Publish the statistics file of a snapshot: write it, then register it by compare-and-swap.

    metadata/8270633197658268308-0b3f6c1d-....-alcid.stats     with a bundle of indexes
    metadata/8270633197658268308-0b3f6c1d-....stats            without

A snapshot has one statistics file, and the last commit wins. So the contents of the current file
are taken over before a commit, and checked again after it. Only the sketches of the same snapshot
are registered as blobs: Spark plans with them, and other readers know no other types.
"""

from __future__ import annotations

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
from alcid.storage import retry
from alcid.tables.engine import Engine
from alcid.tables.iceberg.bundles import BUNDLE_SUFFIX
from alcid.tables.iceberg.catalog import CatalogTable
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.table_metadata import BlobMetadata, StatisticsFile, TableMetadata
from alcid.tables.iceberg.write.contents import Content, write_content

Make: TypeAlias = Callable[
    [TableMetadata, Sequence[StatisticsFile]], Content | StatisticsFile | None
]
"""Makes the statistics file of a snapshot: the content of a new file, an existing file, or None.

It gets the current metadata, and files with bundles that another tool has just replaced. It must
return the current file if nothing is to change."""

_ATTEMPTS = 20
_FIRST_WAIT, _LONGEST_WAIT = 0.01, 1.0


def publish(
    catalog: CatalogTable, file_io: FileIO, snapshot_id: int, make: Make, engine: Engine
) -> StatisticsFile | None:
    """Register a statistics file for a snapshot, whatever others commit meanwhile.

    Files of ours that the snapshot had before, and that no snapshot has any more, are removed.

    Args:
        catalog: The table.
        file_io: Opens files.
        snapshot_id: The snapshot.
        make: Makes the file. It is called again if another file appears before or after the commit.
        engine: What writes it, by a task if it is large.

    Returns:
        The statistics file that the snapshot has now.

    Raises:
        ConflictError: The snapshot has expired, or other commits came first in every attempt.
        StorageError: A file could not be written, or the outcome of the commit is unknown.
    """
    publication = _Publication(catalog, file_io, snapshot_id, make, engine)
    try:
        return retry(
            publication.attempt,
            on=(_OvertakenError, FileGoneError),
            attempts=_ATTEMPTS,
            wait=_FIRST_WAIT,
            longest_wait=_LONGEST_WAIT,
        )
    except ConflictError as error:  # after any other error, it may be registered
        publication.discard()
        if not isinstance(error, _OvertakenError):
            raise
        raise ConflictError(
            f"{catalog.name}: statistics of snapshot {snapshot_id} not registered:"
            f" others committed {_ATTEMPTS} times meanwhile"
        ) from None


class _OvertakenError(ConflictError):
    """Another commit came first; the next attempt may succeed."""


class _Publication:
    """A statistics file that is being published."""

    def __init__(
        self,
        catalog: CatalogTable,
        file_io: FileIO,
        snapshot_id: int,
        make: Make,
        engine: Engine,
    ) -> None:
        self._catalog, self._file_io, self._snapshot_id = catalog, file_io, snapshot_id
        self._make, self._engine = make, engine
        self._seen: list[StatisticsFile] = []  # all files that the snapshot has had
        self._made: StatisticsFile | None = None
        self._made_for: StatisticsFile | None = None  # the current file when it was made
        self._written: StatisticsFile | None = None  # the file that no snapshot has yet

    def attempt(self) -> StatisticsFile | None:
        """Make the file, commit it, and see that it was not replaced since.

        Raises:
            _OvertakenError: Another commit came first.
            FileGoneError: Another commit has replaced a file that `make` reads.
            ConflictError: The snapshot has expired.
        """
        metadata = self._catalog.load()
        current = self._current(metadata)
        if self._written is None or current != self._made_for:
            self.discard()
            self._made_for = current
            made = self._make(metadata, _lost(self._seen, current))
            if made is not None and not isinstance(made, StatisticsFile):
                made = self._written = self._write(made, current)
            self._made = made
        if _path(self._made) != _path(current):
            self._commit(metadata)
            metadata = self._catalog.load()
            current = self._current(metadata)
            if _path(self._made) != _path(current):
                raise _OvertakenError(f"{self._catalog.name}: statistics file replaced")
        _remove_unlisted(self._file_io, metadata, self._seen)
        return current

    def discard(self) -> None:
        """Remove the file if no snapshot has it."""
        if self._written is not None:
            with suppress(StorageError):
                self._file_io.delete([self._written.path])
        self._written = None

    def _current(self, metadata: TableMetadata) -> StatisticsFile | None:
        """The statistics file that the snapshot has now."""
        if self._snapshot_id not in metadata.snapshots:
            raise ConflictError(
                f"{self._catalog.name}: snapshot {self._snapshot_id} was expired meanwhile"
            )
        current = metadata.statistics.get(self._snapshot_id)
        if current is not None and current not in self._seen:
            self._seen.append(current)
        return current

    def _commit(self, base: TableMetadata) -> None:
        try:
            if self._made is None:
                self._catalog.remove_statistics(base, self._snapshot_id)
            else:
                self._catalog.set_statistics(base, self._made)
        except ConflictError as error:
            raise _OvertakenError(str(error)) from error
        self._written = None
        self._seen += [] if self._made is None else [self._made]

    def _write(self, content: Content, current: StatisticsFile | None) -> StatisticsFile:
        """Write a Puffin file beside the metadata."""
        prefix = self._catalog.metadata_location(f"{self._snapshot_id}-")
        written = write_content(content, self._file_io, prefix, self._engine)
        # Blob types that another tool has registered stay registered.
        types = {THETA_SKETCH, *(blob.type for blob in (current.blobs if current else ()))}
        blobs = tuple(
            BlobMetadata(
                blob.type, blob.snapshot_id, blob.sequence_number, blob.fields, blob.properties
            )
            for blob in written.blobs
            if blob.type in types and blob.snapshot_id == self._snapshot_id
        )
        size, footer_size = written.size, written.footer_size
        return StatisticsFile(self._snapshot_id, written.path, size, footer_size, blobs)


def is_ours(reader: PuffinReader) -> bool:
    """Whether Alcid wrote a Puffin file."""
    return reader.properties.get("created-by", "").startswith("Alcid")


def _lost(
    seen: Sequence[StatisticsFile], current: StatisticsFile | None
) -> Sequence[StatisticsFile]:
    """Replaced files with bundles, if the current file has none: its writer did not know them."""
    if current is not None and current.path.endswith(BUNDLE_SUFFIX):
        return ()
    return tuple(file for file in seen if file.path.endswith(BUNDLE_SUFFIX))


def _path(file: StatisticsFile | None) -> str | None:
    return None if file is None else file.path


def _remove_unlisted(
    file_io: FileIO, metadata: TableMetadata, seen: Sequence[StatisticsFile]
) -> None:
    """Remove files of ours that a snapshot had before and none has any more.

    A reader that finds one gone opens the table again.
    """
    listed = {file.path for file in metadata.statistics.values()}
    for file in seen:
        if file.path not in listed:
            with suppress(StorageError, FormatError):  # it only takes space
                source = file_io.source(file.path, file.size)
                if is_ours(PuffinReader(source, footer_size=file.footer_size)):
                    file_io.delete([file.path])
