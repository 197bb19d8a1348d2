"""Clean of an Iceberg table: what work on indexes, statistics and deletes has left behind.

    metadata/5160393-4a7f...e1.stats   of us, and no snapshot lists it: another's commit came first
    metadata/_alcid/20250801T093000.123456Z-5f1e0c7ab2d4.puffin   of a build that was killed
    metadata/.5f1e0c7ab2d45f1e0c7ab2d45f1e0c7a.tmp   a file that was being written
    data/.5f1e0c7ab2d45f1e0c7ab2d45f1e0c7a.tmp   the same, of a delete

Nothing else is ever removed. Data files, manifests and files of others that no snapshot needs are
for Iceberg's own `remove_orphan_files`, which passes over the last three of these.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import numpy as np
import pyarrow.compute as pc

from alcid.errors import FileGoneError, FormatError, LimitError
from alcid.formats.puffin import PuffinReader
from alcid.storage import Storage, StorageSource
from alcid.storage.backend import Location
from alcid.tables.bundle_folder import FOLDER, written_at
from alcid.tables.iceberg.metadata.table_metadata import TableMetadata
from alcid.tables.iceberg.open_table import OpenIcebergTable
from alcid.tables.iceberg.write.publish import is_ours
from alcid.tables.maintenance.clean import (
    UNFINISHED,
    CleanReport,
    Leftover,
    ListedFile,
    check_age,
    is_unfinished,
    list_files,
    listed_files,
    remove_old,
)
from alcid.tables.many_files import list_all

_SUFFIX = ".stats"


def clean(
    table: OpenIcebergTable, older_than: timedelta = timedelta(days=1), *, dry_run: bool = False
) -> CleanReport:
    """Remove what has been of no use for some time; a build may be about to register the rest.

    Args:
        table: The table.
        older_than: What is younger is kept.
        dry_run: Change nothing, and say what would be done.

    Raises:
        OptionError: An age below 0.
    """
    check_age(older_than)
    begin = time.monotonic()
    removed, kept = remove_old(
        find_leftovers(table), older_than=older_than, dry_run=dry_run, engine=table.engine
    )
    return CleanReport(dry_run, (), (), removed, kept, time.monotonic() - begin)


def find_leftovers(table: OpenIcebergTable) -> list[Leftover]:
    """The files that are of no use any more, by path."""
    storage = table.file_io.folder(table.catalog.metadata_location("any").rpartition("/")[0])
    files = list_files(storage)
    metadata = table.catalog.load()  # after the listing: all that was registered until then counts
    paths = (table.file_io.absolute(one.path) for one in metadata.statistics.values())
    listed = {Location.parse(path).text for path in paths}
    leftovers = [*_statistics(storage, files, metadata, listed), *_staged(storage, files)]
    leftovers += _unfinished(storage, files)
    data = table.file_io.folder(table.catalog.data_location("any").rpartition("/")[0])
    if not data.remote:  # only a disk has unfinished files
        others = f"{storage.location}/"
        listing = list_all(data, table.engine)
        drafts = pc.match_substring_regex(listing.paths, f"(^|/){UNFINISHED.pattern}$")
        unfinished = listing.part(np.flatnonzero(drafts.to_numpy(zero_copy_only=False)))
        below = [
            one
            for one in listed_files(unfinished)
            if not f"{data.location}/{one.path}".startswith(others)
        ]
        leftovers += _unfinished(data, below)
    return sorted(leftovers, key=lambda leftover: leftover.path)


def _unfinished(storage: Storage, files: list[ListedFile]) -> Iterator[Leftover]:
    """Files that were being written."""
    for file in files:
        if is_unfinished(file.name.rpartition("/")[2]):
            yield Leftover(file.path, "unfinished", file.size, file.changed, storage)


def _statistics(
    storage: Storage, files: list[ListedFile], metadata: TableMetadata, listed: set[str]
) -> Iterator[Leftover]:
    """Statistics files that we wrote, and that the metadata do not name anywhere."""
    for file in files:
        if file.name.endswith(_SUFFIX) and "/" not in file.name:
            source = storage.source(file.path, file.size)
            is_named = source.name in listed or file.name in metadata.named_statistics
            if not is_named and _we_wrote(source):
                yield Leftover(file.path, "statistics", file.size, file.changed, storage)


def _we_wrote(source: StorageSource) -> bool:
    """Whether a Puffin file says that we wrote it; one that is damaged says nothing."""
    try:
        return is_ours(PuffinReader(source))
    except (FileGoneError, FormatError, LimitError):
        return False


def _staged(storage: Storage, files: list[ListedFile]) -> Iterator[Leftover]:
    """Bundles of builds; a build goes on with those of one before, so the latest one counts."""
    bundles = [
        (file, written)
        for file in files
        if file.name.startswith(f"{FOLDER}/")
        and (written := written_at(file.name.removeprefix(f"{FOLDER}/"))) is not None
    ]
    latest = max((written for _, written in bundles), default=None)
    for file, _ in bundles:
        yield Leftover(file.path, "unfinished", file.size, latest, storage)
