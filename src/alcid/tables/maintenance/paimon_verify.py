"""Verify of a Paimon table: its files are compared with all that its latest snapshot says of them.

The manifests are read first. Where one of them is damaged, each is read by itself to report which,
and nothing else is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

from alcid.errors import (
    AlcidError,
    ConflictError,
    FileGoneError,
    FormatError,
    StorageError,
    UnsupportedError,
)
from alcid.storage import Listing, Storage, retry
from alcid.tables.engine import Engine
from alcid.tables.maintenance.clean import Leftover
from alcid.tables.maintenance.findings import MISSING, FindingKind, Findings
from alcid.tables.maintenance.paimon_checks import CheckedTable, DataFileCheck, IndexFileCheck
from alcid.tables.maintenance.paimon_clean import find_orphans
from alcid.tables.maintenance.paimon_keys import check_bucket_keys, keyed_for_reading
from alcid.tables.maintenance.verify import (
    Check,
    Sample,
    Total,
    VerifyReport,
    run,
    run_each,
)
from alcid.tables.many_files import list_all
from alcid.tables.paimon.data_files import PlacedFile, place_files, table_paths
from alcid.tables.paimon.deletion_vectors import duplicate_vectors, index_path
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
from alcid.tables.progress import Progress

_ATTEMPTS = 5  # a snapshot may expire while it is read


def read_state(folder: TableFolder, findings: Findings) -> TableState | None:
    """The table at its latest snapshot; None if its metadata is damaged.

    Args:
        folder: The schemas and snapshots of a branch of it.
        findings: Where problems are recorded.
    """
    attempt = partial(_read_latest, folder, findings)
    return retry(attempt, on=ConflictError, attempts=_ATTEMPTS)


def _read_latest(folder: TableFolder, findings: Findings) -> TableState | None:
    storage, snapshots = folder.storage, folder.snapshots
    try:
        snapshot = snapshots.latest()
    except FormatError as error:
        findings.add(FindingKind.SNAPSHOT, error.file or "", error)
        return None
    state = TableState(storage, snapshot)
    try:
        _ = state.indexes
        _check_counts(state, state.read(state.manifests), findings)
    except (FormatError, StorageError):
        if snapshot and not storage.exists(path := snapshots.path(snapshot.id)):
            raise ConflictError(f"{path}: expired while it was read") from None
        if snapshot is None or not _find_damage(storage, snapshot, findings):
            raise
        return None
    return state


def _check_counts(
    state: TableState, manifests: Iterable[list[ManifestEntry]], findings: Findings
) -> None:
    """Check that manifests have as many entries as their lists say."""
    for meta, entries in zip(state.manifests, manifests, strict=True):
        added = sum(entry.kind == ADD for entry in entries)
        deleted = len(entries) - added
        if (meta.added, meta.deleted) != (added, deleted):
            problem = f"found {meta.added} added and {meta.deleted} deleted"
            path = f"{MANIFEST_FOLDER}/{meta.name}"
            expected = f"expected {added} and {deleted}"
            findings.add(FindingKind.MANIFEST_COUNTS, path, f"{problem}, {expected}")


def _find_damage(storage: Storage, snapshot: Snapshot, findings: Findings) -> bool:
    """Read each file by itself, and report which are damaged; whether there are any."""
    before = findings.count
    manifests: dict[str, int] = {}

    def read_list(data: bytes, *, file: str) -> None:
        metas = read_manifest_list(data, file=file)
        manifests.update((meta.name, meta.size) for meta in metas)

    for name, size in (
        (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
    ):
        _check_file(storage, name, size, read_list, findings)
    for name, size in manifests.items():
        _check_file(storage, name, size, read_manifest, findings)
    if snapshot.index_manifest is not None:
        _check_file(storage, snapshot.index_manifest, None, read_index_manifest, findings)
    return findings.count > before


class _Read(Protocol):
    def __call__(self, data: bytes, *, file: str) -> object: ...


def _check_file(
    storage: Storage, name: str, size: int | None, read: _Read, findings: Findings
) -> None:
    path = f"{MANIFEST_FOLDER}/{name}"
    source = storage.source(path)
    try:
        if size is not None and source.size != size:
            problem = f"found {source.size} bytes, expected {size}"
            findings.add(FindingKind.SIZE, path, problem)
        else:
            read(source.read(0, source.size), file=path)
    except FileGoneError:
        findings.add(FindingKind.MANIFEST, path, MISSING)
    except FormatError as error:
        findings.add(FindingKind.MANIFEST, path, error)


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
        sample: The fraction of data files to read, see `Sample`; all are looked for.
        seed: Another number takes other files.
        progress: How to report it, see `alcid.tables.progress.track_progress`.
        branch: Of the table.

    Raises:
        OptionError: A fraction that is not above 0 and at most 1.
        UnsupportedError: A table that is not read.
        StorageError: A file cannot be read, and that is not because it is gone.
    """
    return run(partial(_check, storage, engine, Sample(sample, seed), progress, branch))


def _check(
    storage: Storage,
    engine: Engine,
    sample: Sample,
    progress: Progress | bool | None,
    branch: str,
    total: Total,
) -> None:
    folder = TableFolder(storage, branch)
    schema = folder.latest_schema()
    options = TableOptions.parse(folder.options(schema), has_primary_key=bool(schema.primary_keys))
    listed = list_all(storage, engine)  # before snapshots are read: a commit may come
    state = read_state(folder, total.findings)
    if state is None:
        return
    placed = place_files(state.entries, table_paths(schema, options))
    schemas = _read_schemas(folder, placed, total.findings)
    snapshot_id = 0 if state.snapshot is None else state.snapshot.id
    table = CheckedTable(storage, snapshot_id, schema, schemas, options, branch)
    _check_metadata(table, placed, state, total.findings)
    chosen = _choose(table, placed, listed, sample)
    checks: list[Check[CheckedTable]] = [*chosen, *_index_checks(table, placed, state)]
    total.add(run_each(engine, table, checks, files=len(chosen), progress=progress))
    if schema.primary_keys:
        total.keys_live_twice = _check_keys(engine, table, state, total.findings, sample)
    total.table_files = len(placed)
    total.unindexed = sum(not file.file.has_index for file in placed)
    total.leftovers = _leftovers(storage, listed, schema, options, total.findings)


def _read_schemas(
    folder: TableFolder, placed: Sequence[PlacedFile], findings: Findings
) -> dict[int, TableSchema]:
    schemas = {}
    for number in sorted({file.file.schema_id for file in placed}):
        try:
            schemas[number] = folder.schema(number)
        except (FormatError, UnsupportedError, FileGoneError) as error:
            findings.add(FindingKind.SCHEMA, schema_path(number), error)
    return schemas


def _check_metadata(
    table: CheckedTable, placed: Sequence[PlacedFile], state: TableState, findings: Findings
) -> None:
    """Find what is wrong in the metadata alone."""
    for data_file, problem in duplicate_vectors(state.indexes):
        findings.add(FindingKind.VECTORS_TWICE, data_file, problem)
    if not table.schema.primary_keys:
        return
    try:
        for path, problem in check_levels(placed, table.schema):
            findings.add(FindingKind.KEYS, path, problem)
    except AlcidError as error:
        findings.add(FindingKind.KEYS, "", error)
    if table.options.skips_level_0:
        for file in placed:
            if file.file.level and file.file.delete_rows != 0:
                problem = f"{file.file.delete_rows or 'unknown'} on level {file.file.level}"
                findings.warn(FindingKind.DELETE_ROWS, file.path, problem)


def _choose(
    table: CheckedTable,
    placed: Sequence[PlacedFile],
    listed: Listing,
    sample: Sample,
) -> list[DataFileCheck]:
    """The files to read: a sample of them, and all whose size is not that of the listing."""
    readable = [file for file in placed if file.file.schema_id in table.schemas]
    sizes = dict(zip(listed.paths.to_pylist(), listed.sizes.tolist(), strict=True))
    chosen = set(sample.choose([data_file.path for data_file in readable]).tolist())
    for number, data_file in enumerate(readable):
        beside = (f"{data_file.folder}{name}" in sizes for name in data_file.file.extra_files)
        if sizes.get(data_file.path) != data_file.file.size or not all(beside):
            chosen.add(number)
    return [DataFileCheck(readable[number]) for number in sorted(chosen)]


def _index_checks(
    table: CheckedTable, placed: Sequence[PlacedFile], state: TableState
) -> Iterator[IndexFileCheck]:
    """The checks of all index files."""
    rows = {
        (file.entry.partition, file.entry.bucket, file.file.name): file.file.rows for file in placed
    }
    paths = table_paths(table.schema, table.options)
    beside_data = table.options.index_file_in_data_file_dir
    for entry in state.indexes:
        bucket = entry.partition, entry.bucket
        path = index_path(entry, paths.bucket(*bucket), beside_data=beside_data)
        named = (vector_range.data_file for vector_range in entry.ranges or ())
        live = {name: rows[*bucket, name] for name in named if (*bucket, name) in rows}
        yield IndexFileCheck(entry, path, live)


def _check_keys(
    engine: Engine, table: CheckedTable, state: TableState, findings: Findings, sample: Sample
) -> int:
    """Check that keys of a sample of the buckets are live once; how many rows are superfluous."""
    buckets = buckets_of(state, table_paths(table.schema, table.options))
    every = list(buckets)
    wrong = check_bucket_keys(
        engine,
        keyed_for_reading(table.storage, table.schema, table.schemas, table.options),
        buckets,
        [every[number] for number in sample.choose([bucket.folder for bucket in every])],
        state.indexes,
    )
    for bucket in wrong:
        for finding in bucket.findings():
            findings.append(finding)
    return sum(bucket.rows for bucket in wrong)


def _leftovers(
    storage: Storage,
    listed: Listing,
    schema: TableSchema,
    options: TableOptions,
    findings: Findings,
) -> list[Leftover]:
    try:
        return find_orphans(storage, listed, schema, options)
    except FormatError as error:  # of an older snapshot, or a tag
        findings.add(FindingKind.OLDER_SNAPSHOTS, "", error)
        return []
