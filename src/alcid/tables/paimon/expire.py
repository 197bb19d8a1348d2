"""Expiry: old snapshots of a Paimon table end, and with them the files that only they named.

    snapshot/snapshot-41       the oldest first; then `EARLIEST` is written anew
    dt=1/bucket-0/data-<uuid>-0.parquet, ....index   deleted by a commit until the first that stays
    dt=1/bucket-0/changelog-<uuid>-0.parquet         added to the changelog of one that expires
    index/..., manifest/..., statistics/...          named by one that expires

Which snapshots expire follows the rules of Paimon's Java. Files to be removed are found in what the
snapshots that expire name, not by listing; each is then looked up in all that stays: snapshots,
tags, changelogs, and the snapshots and tags of branches. Nothing is removed before all of that was
read.

Snapshots go first, so that there never is one whose files are gone. If it is killed after that, its
files stay until `clean`. (Java removes snapshots last, and goes on from there in its next expiry.)
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array
from alcid.errors import (
    AlcidWarning,
    FileGoneError,
    FormatError,
    StorageError,
    UnsupportedError,
)
from alcid.storage import Storage, retry
from alcid.tables.many_files import remove_files
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.deletion_vectors import index_path
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.references import (
    TAG_FOLDERS,
    MetadataReader,
    NamedFiles,
    Root,
    list_sizes,
    manifest_path,
    needed_names,
    read_roots,
)
from alcid.tables.paimon.metadata.retention import Retention
from alcid.tables.paimon.metadata.schema import parse_json
from alcid.tables.paimon.metadata.snapshot import Snapshot, snapshot_path
from alcid.tables.paimon.metadata.table_folder import Paths
from alcid.tables.paimon.metadata.table_state import MANIFEST_FOLDER
from alcid.tables.paimon.open_table import OpenPaimonTable
from alcid.tables.reports import Consumer, ExpireReport

_ATTEMPTS = 10
_STATISTICS_FOLDER = "statistics"
_CONSUMER = re.compile(r"consumer/consumer-[^/]+")
DATA, INDEX, MANIFEST, STATISTICS = range(4)
_FILES = pa.schema(
    [("path", pa.string()), ("name", pa.string()), ("kind", pa.int8()), ("bytes", pa.int64())]
)


@dataclass(slots=True, eq=False)
class _Expiry:
    """Snapshots that expire, and the files that only they may name."""

    roots: list[Root]
    expiring: list[Snapshot]
    """The oldest first."""
    first: Snapshot | None
    """The first that stays."""
    latest: int | None
    consumers: tuple[Consumer, ...]
    files: pa.Table = field(default_factory=_FILES.empty_table)

    def kept(self) -> list[Root]:
        """What stays, and keeps files."""
        gone = {snapshot_path(snapshot.id) for snapshot in self.expiring}
        return [root for root in self.roots if root.path not in gone]

    def report(self, seconds: float, *, dry_run: bool) -> ExpireReport:
        kinds = self.files.column("kind").to_numpy()
        counts = np.bincount(kinds, minlength=4).tolist()
        size = pc.sum(self.files.column("bytes")).as_py() or 0
        return ExpireReport(
            snapshots=len(self.expiring),
            earliest=None if self.first is None else self.first.id,
            latest=self.latest,
            data_files=counts[DATA],
            index_files=counts[INDEX],
            manifests=counts[MANIFEST],
            statistics=counts[STATISTICS],
            bytes=size,
            consumers=self.consumers,
            seconds=seconds,
            dry_run=dry_run,
        )


def expire_snapshots(
    table: OpenPaimonTable,
    older_than: timedelta | None = None,
    retain_last: int | None = None,
    *,
    dry_run: bool = False,
) -> ExpireReport:
    """Let old snapshots expire; see `PaimonTable.expire_snapshots`.

    Raises:
        OptionError: An invalid argument, or option of the table.
        UnsupportedError: The table was opened at a branch or a past snapshot, has files outside of
            its folder, or keeps changelogs longer than snapshots.
        FormatError: Metadata that name files are damaged: nothing was removed.
    """
    begin = time.monotonic()
    table.committer()  # refuses tables that nothing is written to
    schema = table.folder.latest_schema()  # others may have changed options since it was opened
    options = TableOptions.parse(schema.options, has_primary_key=bool(schema.primary_keys))
    retention = Retention.of(options, older_than, retain_last)
    plan = partial(_plan, table.storage, options, table_paths(schema, options), retention)
    # What another expires meanwhile takes its manifests with it.
    try:
        expiry = retry(plan, on=FileGoneError, attempts=_ATTEMPTS)
    except FileGoneError as error:
        problem = "a snapshot names it, and it is not there"
        raise FormatError(problem, file=error.file) from None
    if expiry.expiring and not dry_run:
        _apply(table, expiry)
    return expiry.report(time.monotonic() - begin, dry_run=dry_run)


def _plan(storage: Storage, options: TableOptions, paths: Paths, retention: Retention) -> _Expiry:
    roots = read_roots(storage)
    snapshots = {root.snapshot.id: root.snapshot for root in roots if root.is_snapshot}
    if not snapshots:
        return _Expiry(roots, [], None, None, ())
    consumers = _consumers(storage) if retention.heeds_consumers else []
    times = {number: snapshot.time_millis for number, snapshot in snapshots.items()}
    now = time.time_ns() // 1_000_000
    first = retention.first_kept(times, [one.next_snapshot for one in consumers], now)
    unheeded = retention.first_kept(times, [], now)
    keeping = tuple(one for one in consumers if one.next_snapshot < unheeded)
    expiring = [snapshots[number] for number in sorted(snapshots) if number < first]
    expiry = _Expiry(roots, expiring, snapshots[first], max(snapshots), keeping)
    if expiring:
        files = _Finder(storage, options, paths).find(expiry)
        needed = needed_names(storage, expiry.kept(), files.column("name"))
        expiry.files = files.filter(pa.array(~needed))
    return expiry


def _consumers(storage: Storage) -> list[Consumer]:
    """The streaming readers of the main branch.

    Raises:
        FormatError: A file is damaged.
    """
    consumers = []
    for path in storage.list("consumer").paths.to_pylist():
        if _CONSUMER.fullmatch(path) is None:
            continue
        source = storage.source(path)
        try:
            document = parse_json(source.read(0, source.size), source.name)
        except FileGoneError:  # reset since
            continue
        number = document.get("nextSnapshot")
        if not isinstance(number, int):
            raise FormatError(
                "consumer: nextSnapshot", file=source.name, found=repr(number)[:80], expected="int"
            )
        consumers.append(Consumer(path.removeprefix("consumer/consumer-"), number))
    return sorted(consumers, key=lambda consumer: (consumer.next_snapshot, consumer.name))


class _Finder:
    """Finds the files that snapshots name which are to expire."""

    def __init__(self, storage: Storage, options: TableOptions, paths: Paths) -> None:
        self._storage, self._options, self._paths = storage, options, paths
        self._reader = MetadataReader(storage)
        self._parts: list[pa.Table] = []

    def find(self, expiry: _Expiry) -> pa.Table:
        """The files, each once; others may name them, too."""
        assert expiry.first is not None
        # What the first one deleted was removed when the one before it expired.
        self._add_deleted([*expiry.expiring[1:], expiry.first])
        self._add_changes(expiry.expiring)
        self._add_metadata(expiry.expiring)
        self._add_indexes(expiry.expiring)
        files = pa.concat_tables(self._parts)
        grouped = files.group_by(["path", "name", "kind"]).aggregate([("bytes", "max")])
        return grouped.rename_columns(["path", "name", "kind", "bytes"]).cast(_FILES)

    def _add_deleted(self, snapshots: Sequence[Snapshot]) -> None:
        """Add the data files that these have deleted, with the files beside them.

        A data file that its snapshot adds again, on another level or with another index, stays;
        and so does the index that it had, as in Java: `clean` removes it.
        """
        lists = {
            snapshot.delta_manifest_list: snapshot.delta_manifest_list_size
            for snapshot in snapshots
        }
        present = self._present(lists, required=snapshots[-1].delta_manifest_list)
        parts: list[pa.Table] = []
        added: list[pa.Table] = []
        for number, files, file in self._entries(present):
            parts.append(self._chosen(files, ~files.is_added, file, number))
            added.append(self._chosen(files, files.is_added, file, number))
        if parts:
            names = pa.concat_tables(added).select(["data_file", "list"])
            deleted = pa.concat_tables(parts)
            deleted = deleted.join(names, ["data_file", "list"], join_type="left anti")
            self._parts.append(deleted.select(_FILES.names).cast(_FILES))

    def _add_changes(self, snapshots: Sequence[Snapshot]) -> None:
        """Add the files of their changelogs."""
        names = (snapshot.changelog_manifest_list for snapshot in snapshots)
        lists = self._present(dict.fromkeys(name for name in names if name is not None))
        for number, files, file in self._entries(lists):
            chosen = self._chosen(files, files.is_added, file, number)
            self._parts.append(chosen.select(_FILES.names))

    def _entries(self, lists: Mapping[str, int | None]) -> Iterator[tuple[int, NamedFiles, str]]:
        """The entries of each manifest of some lists, with the number of its list, and its path."""
        sizes: dict[str, int | None] = {}
        numbers: dict[str, int] = {}
        for number, metas in enumerate(self._reader.read_lists(lists).values()):
            sizes.update((meta.name, meta.size) for meta in metas)
            numbers.update((meta.name, number) for meta in metas)
        for manifests in self._reader.read_entries(self._present(sizes)):
            for name, files in manifests:
                yield numbers[name], files, manifest_path(name)

    def _chosen(self, files: NamedFiles, chosen: BoolArray, file: str, number: int) -> pa.Table:
        """The files of some entries of a manifest, with their data file and the manifest's list."""
        if (files.external & chosen).any():
            raise UnsupportedError(
                f"{file}: names data files outside of the table, which are not removed here; "
                "expire snapshots with Paimon's Java"
            )
        is_chosen = chosen[files.entries]
        owners = files.entries[is_chosen]
        names = files.names.filter(pa.array(is_chosen))
        partitions = files.partitions.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        places = partitions[owners] << 32 | files.buckets[owners].astype(np.int64) & 0xFFFFFFFF
        distinct, positions = np.unique(places, return_inverse=True)
        self._paths.learn(files.partitions.dictionary.to_pylist())
        folders = [
            self._paths.bucket(files.partitions.dictionary[place >> 32].as_py(), bucket)
            for place, bucket in zip(
                distinct.tolist(), distinct.astype(np.int32).tolist(), strict=True
            )
        ]
        folder = pa.array(folders, pa.string()).take(pa.array(positions))
        # Of an entry the data file is named first; of the others sizes are not known.
        is_data = np.diff(owners, prepend=-1) != 0
        data_files = names.filter(pa.array(is_data))
        columns = [
            pc.binary_join_element_wise(folder, names, ""),
            names,
            pa.array(np.full(len(names), DATA, np.int8)),
            pa.array(np.where(is_data, files.sizes[owners], 0)),
            data_files.take(pa.array(np.cumsum(is_data) - 1)),
            pa.array(np.full(len(names), number, np.int64)),
        ]
        return pa.table(columns, [*_FILES.names, "data_file", "list"])

    def _add_metadata(self, snapshots: Sequence[Snapshot]) -> None:
        """Add their manifests, the lists of these, and their statistics."""
        lists: dict[str, int | None] = {}
        for snapshot in snapshots:
            lists.update(list_sizes(snapshot))
        present = self._present(lists)
        manifests: dict[str, int] = {name: self._reader.size(name) for name in present}
        for metas in self._reader.read_lists(present).values():
            for meta in metas:
                manifests[meta.name] = meta.size
                manifests.update(dict.fromkeys(meta.extra_files, 0))
        indexes = {snapshot.index_manifest: None for snapshot in snapshots}
        manifests.update(
            (name, self._reader.size(name))
            for name in indexes
            if name is not None and self._reader.exists(name)
        )
        self._add_folder(MANIFEST_FOLDER, manifests, MANIFEST)
        statistics = [snapshot.statistics for snapshot in snapshots]
        names = {name: 0 for name in statistics if name is not None}
        self._add_folder(_STATISTICS_FOLDER, names, STATISTICS)

    def _add_indexes(self, snapshots: Sequence[Snapshot]) -> None:
        """Add the index files of their buckets; many snapshots name the same ones."""
        names = {snapshot.index_manifest: None for snapshot in snapshots}
        present = self._present({name: None for name in names if name is not None})
        beside_data = self._options.index_file_in_data_file_dir
        indexes: dict[str, tuple[str, int]] = {}
        for _, entries in self._reader.read_indexes(present):
            for entry in entries:
                if entry.name not in indexes:
                    folder = self._paths.bucket(*entry.bucket_id) if beside_data else ""
                    path = index_path(entry, folder, beside_data=beside_data)
                    indexes[entry.name] = path, entry.size
        paths = [path for path, _ in indexes.values()]
        sizes = np.array([size for _, size in indexes.values()], np.int64)
        self._add(pa.array(paths, pa.string()), pa.array(indexes, pa.string()), INDEX, sizes)

    def _add_folder(self, folder: str, sizes: Mapping[str, int], kind: int) -> None:
        paths = pa.array([f"{folder}/{name}" for name in sizes], pa.string())
        names = pa.array(sizes, pa.string())
        self._add(paths, names, kind, np.array(list(sizes.values()), np.int64))

    def _add(self, paths: Any, names: Any, kind: int, sizes: Int64Array) -> None:
        kinds = pa.array(np.full(len(paths), kind, np.int8))
        self._parts.append(pa.table([paths, names, kinds, pa.array(sizes)], schema=_FILES))

    def _present(
        self, sizes: Mapping[str, int | None], required: str | None = None
    ) -> dict[str, int | None]:
        """The files of the manifest folder that are there.

        Others are those of an expiry that was killed: Java removes manifests before snapshots.
        """
        present = {
            name: size
            for name, size in sizes.items()
            if name == required or self._reader.exists(name)
        }
        if gone := sorted(sizes.keys() - present.keys()):
            warnings.warn(
                f"{self._storage.location}: {len(gone)} manifests of snapshots that expire are "
                f"gone, as {gone[0]}: clean removes what only they named",
                AlcidWarning,
                stacklevel=2,
            )
        return present


def _apply(table: OpenPaimonTable, expiry: _Expiry) -> None:
    """Remove the snapshots, then what was found."""
    storage = table.storage
    # One after the other: a writer that was asleep since an expired snapshot takes the number of
    # the next one only if that has expired, too, and sees by the one before that it was late.
    for snapshot in expiry.expiring:
        storage.delete([snapshot_path(snapshot.id)])
    assert expiry.first is not None
    with suppress(StorageError):  # a hint is only a hint
        table.folder.snapshots.hint_earliest(expiry.first.id)
    # A tag or branch that was made of an expired snapshot while it was still there keeps its files.
    known = {root.path: root.snapshot for root in expiry.roots}
    new = [
        root for root in read_roots(storage, TAG_FOLDERS) if known.get(root.path) != root.snapshot
    ]
    files = expiry.files
    if new:
        files = files.filter(pa.array(~needed_names(storage, new, files.column("name"))))
        expiry.files = files
    remove_files(storage, files.column("path"), table.engine)
