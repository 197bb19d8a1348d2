"""Verifying a Paimon table: all that its latest snapshot says is held against its files.

The manifests of the latest snapshot, each of them read: which are damaged.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from alcid.config import current_settings, using
from alcid.errors import (
    AlcidError,
    FileGoneError,
    FormatError,
    StorageError,
    UnsupportedError,
)
from alcid.storage import Storage
from alcid.storage.threads import in_order
from alcid.tables.engine import Engine, Task
from alcid.tables.maintenance.checks import Checked
from alcid.tables.maintenance.clean import Leftover, ListedFile, list_files
from alcid.tables.maintenance.findings import Findings, VerifyReport
from alcid.tables.maintenance.paimon_checks import (
    Check,
    CheckedTable,
    DataFileCheck,
    IndexFileCheck,
)
from alcid.tables.maintenance.paimon_clean import find_orphans
from alcid.tables.maintenance.paimon_keys import keyed_for_reading, look_at_keys
from alcid.tables.maintenance.parquet import check_share, choose_files
from alcid.tables.paimon.data_files import PlacedFile, place_files, table_paths
from alcid.tables.paimon.deletion_vectors import index_path, vectors_twice
from alcid.tables.paimon.keyed.bucket import buckets_of
from alcid.tables.paimon.merge_on_read import check_levels
from alcid.tables.paimon.metadata.manifest import (
    ADD,
    ManifestEntry,
    read_manifest,
    read_manifest_list,
)
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema, schema_path
from alcid.tables.paimon.metadata.snapshot import MAIN, Snapshot
from alcid.tables.paimon.metadata.table_folder import TableFolder
from alcid.tables.paimon.metadata.table_state import (
    MANIFEST_FOLDER,
    TableState,
    read_index_manifest,
)
from alcid.tables.progress import Progress, track_progress

__all__ = ["VerifyWork", "read_state", "verify"]

_TRIES = 5


def read_state(folder: TableFolder, findings: Findings) -> TableState | None:
    """The table at its latest snapshot; None if it cannot be told, as its metadata is damaged.

    Args:
        folder: The schemas and snapshots of a branch of it.
        findings: Collects what is wrong.
    """
    storage, snapshots = folder.storage, folder.snapshots
    for left in reversed(range(_TRIES)):
        try:
            snapshot = snapshots.latest()
        except FormatError as error:
            findings.add(error.file or "", "snapshot", error)
            return None
        state = TableState(storage, snapshot)
        try:
            _ = state.indexes
            _check_counts(state, state.read(state.manifests), findings)
        except (FormatError, StorageError):
            if left and snapshot and not storage.exists(snapshots.path(snapshot.id)):
                continue  # it has expired while it was read
            if snapshot is None or not _find_damage(storage, snapshot, findings):
                raise
            return None
        return state
    raise AssertionError("the last try returns or raises")


def _check_counts(
    state: TableState, manifests: Iterable[list[ManifestEntry]], findings: Findings
) -> None:
    """See that manifests are of as many entries as their lists say."""
    for meta, entries in zip(state.manifests, manifests, strict=True):
        added = sum(entry.kind == ADD for entry in entries)
        found, expected = (meta.added, meta.deleted), (added, len(entries) - added)
        if found != expected:
            problem = f"found {found[0]} added and {found[1]} deleted, expected {expected[0]} and "
            path = f"{MANIFEST_FOLDER}/{meta.name}"
            findings.add(path, "counts in its list", f"{problem}{expected[1]}")


def _find_damage(storage: Storage, snapshot: Snapshot, findings: Findings) -> bool:
    """Look at each file by itself, and tell which are damaged; whether there are any."""
    before = findings.count
    manifests: dict[str, int] = {}

    def read_list(data: bytes, *, file: str) -> None:
        found = read_manifest_list(data, file=file)
        manifests.update((meta.name, meta.size) for meta in found)

    for name, size in (
        (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
    ):
        _look(storage, name, size, read_list, findings)
    for name, size in manifests.items():
        _look(storage, name, size, read_manifest, findings)
    if snapshot.index_manifest is not None:
        _look(storage, snapshot.index_manifest, None, read_index_manifest, findings)
    return findings.count > before


class _Read(Protocol):
    def __call__(self, data: bytes, *, file: str) -> object: ...


def _look(storage: Storage, name: str, size: int | None, read: _Read, findings: Findings) -> None:
    path = f"{MANIFEST_FOLDER}/{name}"
    source = storage.source(path)
    try:
        if size is not None and source.size != size:
            findings.add(path, "size", f"found {source.size} bytes, expected {size}")
        else:
            read(source.read(0, source.size), file=path)
    except FileGoneError:
        findings.add(path, "", "is not there")
    except FormatError as error:
        findings.add(path, "", error)


def verify(
    storage: Storage,
    engine: Engine,
    *,
    sample: float = 1.0,
    seed: int = 0,
    progress: Progress | bool | None = False,
    branch: str = MAIN,
) -> VerifyReport:
    """Read the files of the latest snapshot, and compare them with what the table says of them.

    Nothing is changed. Data files are checked on all levels, also those that reads leave out.

    | what                    | is                                                           |
    |-------------------------|--------------------------------------------------------------|
    | manifests               | readable, and of as many entries as their lists say          |
    | data files              | there, of their size and rows, every column readable         |
    | statistics of manifests | true of all values                                           |
    | file indexes            | built again, and compared                                    |
    | deletion vectors        | readable, of live files, of rows that there are, one a file  |
    | keys                    | in order, apart within a level, live once (with vectors)     |
    | hash indexes            | of all keys of their bucket, and of no other's               |

    Args:
        storage: The folder of the table.
        engine: What reads the files.
        sample: Which share of the data files to read; one at least. All are looked for.
        seed: Another number takes other files.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.
        branch: Of the table.

    Raises:
        OptionError: A share that is not above 0 and at most 1.
        UnsupportedError: A table that is not read.
        StorageError: A file cannot be read, and that is not because it is gone.
    """
    check_share(sample)
    begin = time.monotonic()
    folder = TableFolder(storage, branch)
    schema = folder.latest_schema()
    options = TableOptions.parse(folder.options(schema), has_primary_key=bool(schema.primary_keys))
    listed = list_files(storage)  # before snapshots are read: a commit may come
    total = Checked()
    state = read_state(folder, total.findings)
    placed: list[PlacedFile] = []
    leftovers: list[Leftover] = []
    keys_live_twice = 0
    if state is not None:
        placed = place_files(state.entries, table_paths(schema, options))
        schemas = _read_schemas(folder, placed, total.findings)
        number = 0 if state.snapshot is None else state.snapshot.id
        table = CheckedTable(storage, number, schema, schemas, options, branch)
        _look_at_metadata(table, placed, state, total)
        checks = [
            *_chosen(table, placed, listed, sample, seed),
            *_index_checks(table, placed, state),
        ]
        _run(engine, table, checks, total, progress)
        if schema.primary_keys:
            keys_live_twice = _look_at_keys(engine, table, state, total.findings, sample, seed)
        leftovers = _leftovers(storage, listed, schema, options, total.findings)
    return VerifyReport(
        files=len(placed),
        checked=total.checked,
        changed=total.changed,
        unindexed=sum(not one.file.has_index for one in placed),
        rows=total.rows,
        seconds=time.monotonic() - begin,
        indexes=tuple(total.indexes[place] for place in sorted(total.indexes)),
        problem_count=total.findings.count,
        problems=tuple(total.findings.first),
        gone=0,
        gone_example="",
        leftovers=tuple(leftovers),
        keys_live_twice=keys_live_twice,
        warnings=tuple(total.warnings.first),
    )


@dataclass(frozen=True, slots=True, eq=False)
class VerifyWork:
    """The work of `verify`, for `Engine.map`: an item is a check."""

    table: CheckedTable

    def __call__(self, task: Task[Sequence[Check]]) -> Checked:
        """Do the checks of a task."""
        total = Checked()
        # Indexes spell columns as their files do, whatever the rule for queries is.
        with (
            using(replace(current_settings(), case_sensitive=True)),
            closing(in_order(self._check, task.items, task.threads)) as results,
        ):
            for found in results:
                total.add(found)
                task.report(found.checked, found.rows)
        return total

    def _check(self, check: Check) -> Checked:
        return check.run(self.table)


def _run(
    engine: Engine,
    table: CheckedTable,
    checks: Sequence[Check],
    total: Checked,
    progress: Progress | bool | None,
) -> None:
    if not checks:
        return
    files = sum(isinstance(one, DataFileCheck) for one in checks)
    sizes = np.array([one.size for one in checks], np.int64)
    with track_progress(progress, "verifying", files) as report:
        for part in engine.map(VerifyWork(table), checks, sizes, report):
            total.add(part)


def _read_schemas(
    folder: TableFolder, placed: Sequence[PlacedFile], findings: Findings
) -> dict[int, TableSchema]:
    schemas = {}
    for number in sorted({one.file.schema_id for one in placed}):
        try:
            schemas[number] = folder.schema(number)
        except (FormatError, UnsupportedError, FileGoneError) as error:
            findings.add(schema_path(number), "schema", error)
    return schemas


def _look_at_metadata(
    table: CheckedTable, placed: Sequence[PlacedFile], state: TableState, total: Checked
) -> None:
    """What can be told without a look at the files."""
    for data_file, problem in vectors_twice(state.indexes):
        total.findings.add(data_file, "deletion vectors", problem)
    if not table.schema.primary_keys:
        return
    try:
        for path, problem in check_levels(placed, table.schema):
            total.findings.add(path, "keys", problem)
    except AlcidError as error:
        total.findings.add("", "keys", error)
    if table.options.skips_level_0:
        for one in placed:
            if one.file.level and one.file.delete_rows != 0:
                problem = f"{one.file.delete_rows or 'unknown'} on level {one.file.level}"
                total.warnings.add(one.path, "rows that delete", problem)


def _chosen(
    table: CheckedTable,
    placed: Sequence[PlacedFile],
    listed: Sequence[ListedFile],
    sample: float,
    seed: int,
) -> list[DataFileCheck]:
    """The files to read: a share of them, and all of which the listing says that they are wrong."""
    known = [one for one in placed if one.file.schema_id in table.schemas]
    sizes = {one.path: one.size for one in listed}
    chosen = set(choose_files([one.path for one in known], sample, seed).tolist())
    for place, one in enumerate(known):
        beside = (f"{one.folder}{name}" in sizes for name in one.file.extra_files)
        if sizes.get(one.path) != one.file.size or not all(beside):
            chosen.add(place)
    return [DataFileCheck(known[place]) for place in sorted(chosen)]


def _index_checks(
    table: CheckedTable, placed: Sequence[PlacedFile], state: TableState
) -> Iterator[Check]:
    """All index files."""
    rows = {(one.entry.partition, one.entry.bucket, one.file.name): one.file.rows for one in placed}
    paths = table_paths(table.schema, table.options)
    beside_data = table.options.index_file_in_data_file_dir
    for entry in state.indexes:
        bucket = entry.partition, entry.bucket
        path = index_path(entry, paths.bucket(*bucket), beside_data=beside_data)
        named = (place.data_file for place in entry.ranges or ())
        live = {name: rows[*bucket, name] for name in named if (*bucket, name) in rows}
        yield IndexFileCheck(entry, path, live)


def _look_at_keys(
    engine: Engine,
    table: CheckedTable,
    state: TableState,
    findings: Findings,
    sample: float,
    seed: int,
) -> int:
    """See that keys of a share of the buckets are live once; how many rows are one too many."""
    buckets = buckets_of(state, table_paths(table.schema, table.options))
    known = list(buckets)
    places = choose_files([one.folder for one in known], sample, seed).tolist()
    found = look_at_keys(
        engine,
        keyed_for_reading(table.storage, table.schema, table.schemas, table.options),
        buckets,
        [known[place] for place in places],
        state.indexes,
    )
    for one in found:
        for path, what, problem in one.problems():
            findings.add(path, what, problem)
    return sum(one.rows for one in found)


def _leftovers(
    storage: Storage,
    listed: list[ListedFile],
    schema: TableSchema,
    options: TableOptions,
    findings: Findings,
) -> list[Leftover]:
    try:
        return find_orphans(storage, listed, schema, options)
    except FormatError as error:  # of an older snapshot, or a tag
        findings.add("", "older snapshots", error)
        return []
