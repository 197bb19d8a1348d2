"""Repair of a Paimon table, as far as nothing is lost by it.

One commit, a snapshot of kind COMPACT, has all that is repaired: index files with vectors and
hashes, marks of superseded rows, file indexes. What cannot be repaired is not touched.

File indexes that are not what their data says are built anew, of these files only: by the options
that the bytes of each index show, or by those of the table where nothing of a container can be
read. An index that cannot be of its file is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain
from typing import Final

from alcid.errors import (
    ColumnError,
    ConflictError,
    FileGoneError,
    FormatError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.file_index.container import Container, Entry
from alcid.formats.file_index.keys import key_type
from alcid.options import IndexOptions, IndexSpec, default_options
from alcid.tables.maintenance import repair as repairing
from alcid.tables.maintenance.clean import CleanReport
from alcid.tables.maintenance.findings import Finding, FindingKind
from alcid.tables.maintenance.index_check import stored_options
from alcid.tables.maintenance.paimon_clean import clean
from alcid.tables.maintenance.paimon_keys import keyed_for_reading
from alcid.tables.maintenance.paimon_repair_vectors import (
    BucketRepair,
    VectorRepairer,
    is_unchanged,
    repair_keys,
)
from alcid.tables.maintenance.paimon_verify import verify
from alcid.tables.maintenance.repair import (
    REBUILT,
    ROLL_BACK,
    Fixer,
    Outcome,
    Repaired,
    RepairReport,
)
from alcid.tables.maintenance.verify import VerifyReport
from alcid.tables.paimon.data_files import PlacedFile, table_paths
from alcid.tables.paimon.deletion_vectors import duplicate_vectors
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.indexes import table_specs
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    Buckets,
    buckets_of,
)
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.manifest import BucketId
from alcid.tables.paimon.metadata.table_state import DELETION_VECTORS, IndexEntry, TableState
from alcid.tables.paimon.open_table import OpenPaimonTable
from alcid.tables.paimon.write.build import make_swaps
from alcid.tables.paimon.write.index_plan import (
    FileContainer,
    FilePlan,
    containers_of,
    indexable_files,
    plan_files,
    table_name,
)
from alcid.tables.paimon.write.index_swap import Swap, is_possible
from alcid.tables.progress import Progress
from alcid.tables.reports import SkippedCounter
from alcid.types import INDEX_TYPES, DataType

INDEX_KINDS: Final = frozenset({FindingKind.INDEX, FindingKind.CONTAINER})
"""The file indexes of a data file, which are built anew."""

KEY_KINDS: Final = frozenset({FindingKind.KEYS, FindingKind.KEY_HASHES})
"""Keys of a bucket, which are marked or put into its hash index."""

INDEX_FILE_KINDS: Final = frozenset(
    {
        FindingKind.SIZE,
        FindingKind.INDEX_FILE,
        FindingKind.INDEX_FILE_ROWS,
        FindingKind.VECTOR,
        FindingKind.VECTOR_RANGES,
        FindingKind.VECTORS_TWICE,
    }
)
"""Index files of a bucket, with vectors or hashes, which are written anew."""

_Index = tuple[str, str]
"""The column, as the table calls it, and the type of an index."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexRepair:
    """A data file with other indexes; nothing is committed."""

    swap: Swap
    repaired: tuple[Repaired, ...]


def repair_indexes(
    table: OpenPaimonTable, wrong: Mapping[str, Sequence[Finding]]
) -> list[IndexRepair]:
    """Build the indexes that are wrong; files whose data cannot be read are passed over.

    Args:
        table: The table.
        wrong: The findings of `INDEX_KINDS`, by the paths of data files.
    """
    files = table.snapshot
    placed = [file for file in indexable_files(files)[0] if file.path in wrong]
    plan = [
        _intent(files, file, container, wrong[file.path])
        for file, container in containers_of(table.storage, placed)
    ]
    threshold = files.options.file_index_in_manifest_threshold
    _, swaps = make_swaps(table, plan, threshold, progress=False)
    rebuilt = {file_plan.placed.path: _rebuilt(file_plan, files) for file_plan in plan}
    return [
        IndexRepair(
            swap,
            tuple(
                Repaired(finding, _done(finding, rebuilt[swap.placed.path]))
                for finding in wrong[swap.placed.path]
            ),
        )
        for swap in swaps
    ]


def _intent(
    files: PaimonFiles, placed: PlacedFile, container: FileContainer, findings: Sequence[Finding]
) -> FilePlan:
    """What to build for a file, and what to keep of the indexes that it has."""
    if not isinstance(container, Container):
        specs, _ = table_specs(files.schema)
        return FilePlan(placed, _built(files, placed, specs))
    own = files.schemas[placed.file.schema_id]
    all_wrong = any(finding.kind is FindingKind.CONTAINER for finding in findings)
    wrong = {(finding.column, finding.index_type) for finding in findings}
    specs, keep = [], []
    for entry in container.entries:
        column = table_name(entry.column, own, files.schema)
        is_wrong = all_wrong or (column or entry.column, entry.index_type) in wrong
        if entry.index_type not in INDEX_TYPES or not is_wrong:
            keep.append((entry.column, entry.index_type))
        elif column is not None:
            options = _options(container, entry, own.types)
            specs.append(IndexSpec(column, entry.index_type, options))
    return FilePlan(placed, _built(files, placed, specs), tuple(keep))


def _built(
    files: PaimonFiles, placed: PlacedFile, specs: Sequence[IndexSpec]
) -> tuple[tuple[IndexSpec, DataType], ...]:
    """Indexes as the file spells them, as far as it can have them."""
    made = plan_files(files, [(placed, None)], specs, SkippedCounter(), rebuild=True)
    return made[0].build if made else ()


def _options(container: Container, entry: Entry, types: Mapping[str, DataType]) -> IndexOptions:
    """The options of an index, as far as its bytes show them."""
    try:
        spec = IndexSpec(entry.column, entry.index_type, default_options(entry.index_type))
        _, data_type = spec.resolve(types)
        payload = b"" if entry.is_empty else container.section(entry).read(0, entry.length)
        return stored_options(entry.index_type, payload, key_type(data_type))
    except (ColumnError, FormatError, UnsupportedError):
        return default_options(entry.index_type)


def _rebuilt(file_plan: FilePlan, files: PaimonFiles) -> set[_Index]:
    """The indexes that are built, as the table calls their columns."""
    own = files.schemas[file_plan.placed.file.schema_id]
    return {
        (table_name(spec.column, own, files.schema) or spec.column, spec.index_type)
        for spec, _ in file_plan.build
    }


def _done(finding: Finding, rebuilt: Collection[_Index]) -> str:
    is_container = finding.kind is FindingKind.CONTAINER
    is_rebuilt = bool(rebuilt) if is_container else (finding.column, finding.index_type) in rebuilt
    return REBUILT if is_rebuilt else "dropped"


class _CommitFix:
    """One commit of all that can be repaired, for the table as it is now."""

    def __init__(self, table: OpenPaimonTable, findings: Sequence[Finding]) -> None:
        files = table.snapshot
        self._table, self._state, self._options = table, files.state, files.options
        self._has_key = bool(files.schema.primary_keys)
        self._keyed = keyed_for_reading(
            table.storage, files.schema, dict(files.schemas), files.options
        )
        self._paths = table_paths(files.schema, files.options)
        self._base = buckets_of(files.state, self._paths)
        self._index_files = _by_file(findings, INDEX_FILE_KINDS)
        self._keys = _by_file(findings, KEY_KINDS)
        self._wrong_indexes = _by_file(findings, INDEX_KINDS)
        self._written: list[str] = []
        self._buckets: list[BucketRepair] = []
        self._indexes: list[IndexRepair] = []
        self._used: list[BucketRepair] = []
        self._swapped: list[IndexRepair] = []

    def planned(self) -> Outcome:
        """Nothing: a dry run applies the fix to a table in memory."""
        return Outcome()

    def apply(self) -> Outcome:
        """Write what repairs the table, and commit it.

        Raises:
            ConflictError: The schema of the table was changed meanwhile.
            FileGoneError: Another has replaced a file, and it is gone.
        """
        try:
            self._buckets = self._repair_buckets()
            self._indexes = repair_indexes(self._table, self._wrong_indexes)
            self._written += [path for index in self._indexes for path in index.swap.written]
            if not self._buckets and not self._indexes:
                return Outcome()
            snapshot = self._table.committer().commit(self._plan, cached=self._state)
        except (ConflictError, FileGoneError):  # after another error the snapshot may be there
            self._remove(self._written)
            raise
        if snapshot is None:
            self._used, self._swapped = [], []
        self._remove_unused()
        repaired = [
            *(repair.repaired for repair in self._used),
            *(repair.repaired for repair in self._swapped),
        ]
        outcome = Outcome(list(chain.from_iterable(repaired)))
        if snapshot is not None:
            outcome.commits, outcome.snapshot_id = 1, snapshot.id
        if len(repaired) < len(self._buckets) + len(self._indexes):
            location = self._table.location
            outcome.conflict = ConflictError(
                f"{location}: others have changed the same files each time"
            )
        return outcome

    def _repair_buckets(self) -> list[BucketRepair]:
        repairs = self._repair_vectors()
        if self._has_key:
            for keys in self._repair_keys(repairs):
                vectors = repairs.get(keys.bucket_id)
                repairs[keys.bucket_id] = keys if vectors is None else vectors.then(keys)
        return list(repairs.values())

    def _repair_vectors(self) -> dict[BucketId, BucketRepair]:
        repairer = VectorRepairer(self._table.storage, self._options, has_key=self._has_key)
        by_bucket: dict[BucketId, list[IndexEntry]] = {}
        for entry in self._state.indexes:
            if entry.index_type == DELETION_VECTORS:
                by_bucket.setdefault((entry.partition, entry.bucket), []).append(entry)
        repairs = {}
        for bucket_id, entries in by_bucket.items():
            bucket = self._base[bucket_id]
            twice = [name for name, _ in duplicate_vectors(entries)]
            if twice or any(self._path(bucket, entry) in self._index_files for entry in entries):
                repair = repairer.repair(bucket, entries, self._index_files, twice)
                self._record_written(bucket, repair.added)
                if repair.repaired:
                    repairs[bucket_id] = repair
        return repairs

    def _repair_keys(self, vectors: Mapping[BucketId, BucketRepair]) -> list[BucketRepair]:
        """Repair the keys of buckets with findings, with the vectors that they are to have."""
        broken = {
            entry.name: bucket.id
            for bucket in self._base
            for entry in bucket.hashes
            if self._path(bucket, entry) in self._index_files
        }
        folders = {f"{path.rpartition('/')[0]}/" for path in self._keys}
        chosen = {bucket.id for bucket in self._base if bucket.folder in folders}
        chosen |= {*vectors, *broken.values()}
        if not chosen:
            return []
        try:
            self._options.require_writable("compact")
        except UnsupportedError:  # which is the advice of what stays wrong
            return []
        partitions: dict[bytes, dict[int, Bucket]] = {}
        for bucket in self._base:
            now = _with_vectors(bucket, vectors.get(bucket.id))
            partitions.setdefault(bucket.partition, {})[bucket.number] = now
        buckets = Buckets(self._paths, partitions)
        indexes = self._state.indexes
        repairs = repair_keys(
            self._table.engine, self._keyed, buckets, chosen, indexes, broken.keys()
        )
        for repair in repairs:
            self._record_written(self._base[repair.bucket_id], repair.added)
        return repairs

    def _plan(self, state: TableState) -> Change | None:
        """The change to a state: the repairs of what is still as it was."""
        now = buckets_of(state, self._paths)
        self._used = [repair for repair in self._buckets if self._is_possible(repair, state, now)]
        self._swapped = [index for index in self._indexes if is_possible(index.swap, state)]
        if not self._used and not self._swapped:
            return None
        return Change(
            kind="COMPACT",
            deleted=[index.swap.placed.entry for index in self._swapped],
            added=[index.swap.added for index in self._swapped],
            index_deleted=[entry for repair in self._used for entry in repair.deleted],
            index_added=[entry for repair in self._used for entry in repair.added],
        )

    def _is_possible(self, repair: BucketRepair, state: TableState, now: Buckets) -> bool:
        if self._has_key:
            return is_unchanged(self._keyed, repair.bucket_id, self._base, now)
        live = {file.file.name for file in now[repair.bucket_id].files}
        named = {
            vector_range.data_file for entry in repair.added for vector_range in entry.ranges or ()
        }
        return named <= live and all(entry in state.indexes for entry in repair.deleted)

    def _record_written(self, bucket: Bucket, added: Sequence[IndexEntry]) -> None:
        """Record new files; what stays of an index file keeps its name, and is none of them."""
        names = {entry.name for entry in self._state.indexes}
        self._written += [self._path(bucket, entry) for entry in added if entry.name not in names]

    def _remove_unused(self) -> None:
        """Remove what no snapshot names."""
        used = {
            self._path(self._base[repair.bucket_id], entry)
            for repair in self._used
            for entry in repair.added
        }
        used |= {path for index in self._swapped for path in index.swap.written}
        self._remove([path for path in self._written if path not in used])

    def _remove(self, paths: Sequence[str]) -> None:
        with suppress(StorageError):  # `clean` removes them later
            self._table.storage.delete(paths)

    def _path(self, bucket: Bucket, entry: IndexEntry) -> str:
        if entry.external_path is not None:  # outside of the table, where nothing is checked
            return entry.external_path
        return bucket.index_path(entry, beside_data=self._options.index_file_in_data_file_dir)


def _by_file(
    findings: Sequence[Finding], kinds: Collection[FindingKind]
) -> dict[str, list[Finding]]:
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.kind in kinds:
            by_file.setdefault(finding.file, []).append(finding)
    return by_file


def _with_vectors(bucket: Bucket, repair: BucketRepair | None) -> Bucket:
    """A bucket with the vectors that it is to have."""
    if repair is None:
        return bucket
    kept = (entry for entry in bucket.vectors if entry not in repair.deleted)
    return replace(bucket, vectors=(*kept, *repair.added))


def repair(
    table: OpenPaimonTable,
    older_than: timedelta = timedelta(days=1),
    *,
    progress: Progress | bool | None = False,
) -> RepairReport:
    """Repair what can be repaired, and remove what no snapshot needs.

    Args:
        table: The table; it is refreshed. For a dry run, one in memory.
        older_than: As for `clean`.
        progress: How to report it, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: An age below 0.
        UnsupportedError: The table was opened as it was in the past, or has an option that is not
            followed.
        ConflictError: Others have changed the same files every time.
    """
    return repairing.repair(_PaimonRepair(table), older_than, progress=progress)


class _PaimonRepair:
    """A Paimon table, for the repair loop."""

    def __init__(self, table: OpenPaimonTable) -> None:
        self._table = table
        self.engine = table.engine
        self.fixers = [Fixer(INDEX_FILE_KINDS | KEY_KINDS | INDEX_KINDS, self._plan)]

    def _plan(self, findings: Sequence[Finding]) -> _CommitFix:
        return _CommitFix(self._table, findings)

    def verify(self, progress: Progress | bool | None) -> VerifyReport:
        """Refresh the table, see that it may be changed, and verify it."""
        table = self._table
        table.refresh()
        table.committer()  # there is none of a table of the past
        table.snapshot.options.require_writable("build")
        return verify(table.storage, table.engine, progress=progress)

    def clean(self, older_than: timedelta, *, dry_run: bool) -> CleanReport:
        try:
            return clean(
                self._table.storage,
                older_than=older_than,
                dry_run=dry_run,
                engine=self._table.engine,
            )
        except FormatError:  # of an older snapshot, which is reported: what it needs is not known
            return CleanReport(
                dry_run=dry_run, merged=(), written=(), removed=(), kept=(), seconds=0
            )

    def advice(self, finding: Finding) -> str:
        files = self._table.snapshot
        if finding.kind in KEY_KINDS:
            try:
                files.options.require_writable("compact")
            except UnsupportedError as error:
                return str(error)
            return "compact the table"
        if finding.kind is FindingKind.STATISTICS:
            has_key = bool(files.schema.primary_keys)
            anew = "compact the table" if has_key else "delete its rows, and append them again"
            return f"queries may miss rows: {anew}"
        if finding.kind is FindingKind.OLDER_SNAPSHOTS:
            return "nothing was removed: restore the file, or let the snapshot expire"
        if finding.kind in INDEX_KINDS:
            return "its data cannot be read for another: restore the data file"
        return ROLL_BACK
