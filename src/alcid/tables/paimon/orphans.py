"""Files of a Paimon table that no snapshot needs: what `verify` lists and `clean` removes.

    dt=1/bucket-0/data-<uuid>-0.parquet    of a commit that was killed, or that another was before
    dt=1/bucket-0/data-<uuid>-0.parquet-1.index   replaced by a newer index, and .replaced
    index/index-<uuid>-0   manifest/manifest-<uuid>-0   statistics/stats-<uuid>-0
    _alcid/statistics-....puffin           when there are newer ones

Only files with such names in such folders are ever removed; schemas, snapshots, tags, branches and
folders of others are not looked into. A commit that is under way has files that no snapshot names
yet, so that young files are kept.
"""

from __future__ import annotations

import re
import time
from datetime import timedelta

from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_folder import TableFolder
from alcid.paimon_metadata.table_options import TableOptions
from alcid.storage import Storage
from alcid.tables.bundle_folder import FOLDER, BundleFolder
from alcid.tables.cleaning import CleanReport, check_age, remove_old
from alcid.tables.leftovers import Leftover, ListedFile, is_draft, list_files, old_statistics
from alcid.tables.paimon.retained import UUID, needed_files

__all__ = ["clean", "find_orphans"]

_REASONS = {"manifest": "manifest", "index": "index file", "statistics": "statistics"}
"""What lies in the folders beside those of the data."""


def clean(
    storage: Storage,
    *,
    older_than: timedelta = timedelta(days=1),
    dry_run: bool = False,
) -> CleanReport:
    """Remove files that no snapshot, tag, changelog or branch needs.

    Where a storage does not tell when a file was written, as s3fs does not, the file is kept.

    Args:
        storage: The folder of the table.
        older_than: What is younger is kept: it may be of a commit that is under way. Give no less
            than the longest of your jobs takes, from its first file to its commit.
        dry_run: Change nothing, and say what would be done.

    Raises:
        OptionError: An age below 0.
        FormatError: What a snapshot needs cannot be told, as its metadata is damaged: nothing was
            removed.
    """
    check_age(older_than)
    begin = time.monotonic()
    schema = TableFolder(storage).latest_schema()
    options = TableOptions.parse(schema.options, has_primary_key=bool(schema.primary_keys))
    orphans = find_orphans(storage, list_files(storage), schema, options)
    removed, kept = remove_old(orphans, older_than=older_than, dry_run=dry_run)
    return CleanReport(dry_run, (), (), removed, kept, time.monotonic() - begin)


def find_orphans(
    storage: Storage, files: list[ListedFile], schema: TableSchema, options: TableOptions
) -> list[Leftover]:
    """The files that nothing needs, by path.

    Args:
        storage: The folder of the table.
        files: All of its files. They must be listed before this is called: of a commit that comes
            after the listing no file is among them.
        schema: Of the table.
        options: Of the table.

    Raises:
        FormatError: What a snapshot needs cannot be told.
    """
    needed = needed_files(storage, {file.path: file.size for file in files})
    bucket = _bucket_folder(schema, options)
    found = [
        Leftover(file.path, reason, file.size, file.changed, storage)
        for file in files
        if (reason := _reason(file.path, bucket)) and file.path not in needed
    ]
    begin = len(FOLDER) + 1
    own = [
        ListedFile(file.path, file.path[begin:], file.size, file.changed)
        for file in files
        if file.path.startswith(f"{FOLDER}/")
    ]
    found += old_statistics(BundleFolder(storage, FOLDER), own)
    return sorted(found, key=lambda one: one.path)


def _reason(path: str, bucket: re.Pattern[str]) -> str | None:
    """What a file is, if it is one that may be removed."""
    folder, _, name = path.rpartition("/")
    in_bucket = bucket.fullmatch(folder) is not None
    if is_draft(name) and (in_bucket or folder in (*_REASONS, FOLDER)):
        return "unfinished"
    if not UUID.search(name):
        return None
    if not in_bucket:
        return _REASONS.get(folder)
    if name.endswith((".index", ".replaced")):
        return "file index"
    return "index file" if name.startswith("index-") else "data file"


def _bucket_folder(schema: TableSchema, options: TableOptions) -> re.Pattern[str]:
    """What the folders of buckets are called."""
    directory = options.data_file_path_directory
    begin = re.escape(f"{directory}/") if directory else ""
    return re.compile(
        begin + "[^/]+=[^/]*/" * len(schema.partition_keys) + r"bucket-(\d+|postpone)"
    )
