"""Clean of a Paimon table: files that no snapshot needs, which `verify` lists and `clean` removes.

    dt=1/bucket-0/data-<uuid>-0.parquet    of a commit that was killed, or that another was before
    dt=1/bucket-0/data-<uuid>-0.parquet-1.index   replaced by a newer index, and .replaced
    index/index-<uuid>-0   manifest/manifest-<uuid>-0   statistics/stats-<uuid>-0
    _alcid/statistics-....puffin           when there are newer ones

Only files with such names in such folders are ever removed. A commit that is under way has files
that no snapshot names yet, so that young files are kept. What is needed, `references` says.
"""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.errors import FileGoneError
from alcid.storage import Listing, Storage, retry
from alcid.tables.bundle_folder import FOLDER, BundleFolder
from alcid.tables.engine import Engine, Threads
from alcid.tables.maintenance.clean import (
    UNFINISHED,
    CleanReport,
    Leftover,
    check_age,
    listed_files,
    old_statistics,
    remove_old,
)
from alcid.tables.many_files import list_all
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.references import UUID, needed_names, read_roots
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.table_folder import TableFolder
from alcid.tables.paimon.metadata.table_state import MANIFEST_FOLDER

_ATTEMPTS: Final = 10

_REASONS = {"manifest": "manifest", "index": "index file", "statistics": "statistics"}
"""The files of the folders beside those of the data."""


def clean(
    storage: Storage,
    *,
    older_than: timedelta = timedelta(days=1),
    dry_run: bool = False,
    engine: Engine | None = None,
) -> CleanReport:
    """Remove files that no snapshot, tag, changelog or branch needs.

    Where a storage does not have the time of a file, as s3fs does not, the file is kept.

    Args:
        storage: The folder of the table.
        older_than: What is younger is kept: it may be of a commit that is under way. Give no less
            than the longest of your jobs takes, from its first file to its commit.
        dry_run: Change nothing, and say what would be done.
        engine: What lists and removes many files; by default this process.

    Raises:
        OptionError: An age below 0.
        FormatError: The metadata of a snapshot is damaged, so that it is not known what it needs:
            nothing was removed.
    """
    check_age(older_than)
    begin = time.monotonic()
    engine = engine or Threads()
    schema = TableFolder(storage).latest_schema()
    options = TableOptions.parse(schema.options, has_primary_key=bool(schema.primary_keys))
    orphans = find_orphans(storage, list_all(storage, engine), schema, options)
    removed, kept = remove_old(orphans, older_than=older_than, dry_run=dry_run, engine=engine)
    return CleanReport(dry_run, (), (), removed, kept, time.monotonic() - begin)


def find_orphans(
    storage: Storage, listing: Listing, schema: TableSchema, options: TableOptions
) -> list[Leftover]:
    """The files that nothing needs, by path.

    Args:
        storage: The folder of the table.
        listing: All of its files. They must be listed before this is called: of a commit that comes
            after the listing no file is among them.
        schema: Of the table.
        options: Of the table.

    Raises:
        FormatError: It is not known what a snapshot needs.
    """
    reasons = _reasons(listing.paths, _bucket_folder(schema, options))
    chosen = np.flatnonzero(pc.is_valid(reasons).to_numpy(zero_copy_only=False))
    removable = listing.part(chosen)
    names = pc.replace_substring_regex(removable.paths, "(?s)^.*/", "")
    in_manifests = pc.starts_with(listing.paths, f"{MANIFEST_FOLDER}/")
    manifests = listing.part(np.flatnonzero(in_manifests.to_numpy(zero_copy_only=False)))
    sizes = dict(zip(manifests.paths.to_pylist(), manifests.sizes.tolist(), strict=True))
    # What expires meanwhile takes with it what it named.
    needed = retry(
        lambda: needed_names(storage, read_roots(storage), names, sizes),
        on=FileGoneError,
        attempts=_ATTEMPTS,
    )
    own = pc.starts_with(listing.paths, f"{FOLDER}/").to_numpy(zero_copy_only=False)
    own_files = listed_files(listing.part(np.flatnonzero(own)), FOLDER)
    orphans = [
        *_orphans(storage, removable, reasons.take(pa.array(chosen)), np.flatnonzero(~needed)),
        *old_statistics(BundleFolder(storage, FOLDER), own_files),
    ]
    return sorted(orphans, key=lambda orphan: orphan.path)


def _orphans(
    storage: Storage, listing: Listing, reasons: Any, chosen: Int64Array
) -> list[Leftover]:
    files = listed_files(listing.part(chosen))
    return [
        Leftover(file.path, reason, file.size, file.changed, storage)
        for file, reason in zip(files, reasons.take(pa.array(chosen)).to_pylist(), strict=True)
    ]


def _reasons(paths: Any, bucket: str) -> Any:
    """What each file is, if it is one that may be removed; else null."""
    folder = pc.replace_substring_regex(paths, "/?[^/]*$", "")
    name = pc.replace_substring_regex(paths, "(?s)^.*/", "")
    in_bucket = pc.match_substring_regex(folder, f"^(?:{bucket})$")
    in_folder = pc.is_in(folder, value_set=pa.array([*_REASONS, FOLDER]))
    unfinished = pc.and_(
        pc.match_substring_regex(name, f"^{UNFINISHED.pattern}$"), pc.or_(in_bucket, in_folder)
    )
    is_index = pc.or_(pc.ends_with(name, ".index"), pc.ends_with(name, ".replaced"))
    of_bucket = pc.if_else(
        is_index,
        "file index",
        pc.if_else(pc.starts_with(name, "index-"), "index file", "data file"),
    )
    places = pc.index_in(folder, value_set=pa.array([*_REASONS]))
    of_folder = pa.array([*_REASONS.values()]).take(places)
    has_uuid = pc.match_substring_regex(name, UUID.pattern)
    named = pc.if_else(in_bucket, of_bucket, of_folder)
    return pc.if_else(
        unfinished, "unfinished", pc.if_else(has_uuid, named, pa.scalar(None, pa.string()))
    )


def _bucket_folder(schema: TableSchema, options: TableOptions) -> str:
    """What the folders of buckets are called, as a regular expression."""
    directory = options.data_file_path_directory
    begin = re.escape(f"{directory}/") if directory else ""
    return begin + "[^/]+=[^/]*/" * len(schema.partition_keys) + r"bucket-(\d+|postpone)"
