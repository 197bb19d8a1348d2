"""Repair of an Iceberg table, as far as nothing is lost by it.

Deletion vectors are one commit of delete files, through the catalog. Statistics files, with the
indexes in them, are commits of their own, as Iceberg has it. What cannot be repaired is left alone.

A statistics file is written without what is wrong in it: sketches that do not count what they say,
and the bundle if it is damaged as such. What is sound is carried over. One that cannot be read is
listed no more. The sketches of the current snapshot are then counted again, and indexes are built
again of those data files that do not have them, or whose index is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

from alcid.errors import (
    FileGoneError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.puffin import THETA_SKETCH, Blob, PuffinReader
from alcid.formats.puffin.writer import DISTINCT_VALUES
from alcid.index.bundle import Bundle
from alcid.index.bundle.format import OWN_TYPES
from alcid.options import OptionValue
from alcid.tables.iceberg.bundles import BUNDLE_SUFFIX
from alcid.tables.iceberg.delete import commit_vectors
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile, TableMetadata
from alcid.tables.iceberg.open_table import OpenIcebergTable
from alcid.tables.iceberg.write import build
from alcid.tables.iceberg.write.contents import Amended, Content
from alcid.tables.iceberg.write.distinct_values import compute_stats
from alcid.tables.iceberg.write.publish import publish
from alcid.tables.maintenance import repair as repairing
from alcid.tables.maintenance.bundle_check import check_bundle
from alcid.tables.maintenance.clean import CleanReport
from alcid.tables.maintenance.findings import Finding, FindingKind, Findings
from alcid.tables.maintenance.iceberg_clean import clean
from alcid.tables.maintenance.iceberg_repair_vectors import (
    VECTOR_KINDS,
    VectorRepair,
    plan_vectors,
)
from alcid.tables.maintenance.iceberg_verify import verify
from alcid.tables.maintenance.parquet import BUNDLE_ENTRY_KINDS, BUNDLE_KINDS
from alcid.tables.maintenance.repair import (
    REBUILT,
    ROLL_BACK,
    Fixer,
    Outcome,
    Repaired,
    RepairReport,
)
from alcid.tables.maintenance.verify import VerifyReport
from alcid.tables.progress import Progress

_DATA_KINDS: Final = frozenset({FindingKind.DATA_FILE, FindingKind.SIZE, FindingKind.ROWS})
"""A data file is not what its manifest says, so that no index is built of it."""

STATISTICS_KINDS: Final = frozenset(
    {
        FindingKind.STATISTICS_FILE,
        FindingKind.STATISTICS_FOOTER,
        FindingKind.STATISTICS_BLOB,
        FindingKind.SKETCH,
        *BUNDLE_KINDS,
        *BUNDLE_ENTRY_KINDS,
        *_DATA_KINDS,
    }
)
"""The findings of statistics files, and of the indexes in them."""

_UNREADABLE = (FileGoneError, FormatError, LimitError)


@dataclass(frozen=True, slots=True)
class StatisticsRepair:
    """Statistics files and indexes to be written anew; nothing is written."""

    table: OpenIcebergTable
    snapshots: Mapping[int, str] = field(default_factory=dict)
    """The snapshots whose statistics file is wrong, with its path."""
    columns: tuple[str, ...] = ()
    """The columns whose distinct values are to be counted again."""
    data_files: frozenset[str] = frozenset()
    """The data files whose indexes are wrong."""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    """The indexes that the table has."""
    has_lost_bundle: bool = False
    """Whether one of the files had a bundle that cannot be carried over."""
    repaired: tuple[Repaired, ...] = ()

    @property
    def builds(self) -> bool:
        """Whether indexes have to be built."""
        return bool(self.options and (self.data_files or self.has_lost_bundle))

    @property
    def commits(self) -> int:
        """How many commits it takes."""
        return len(self.snapshots) + self.builds + bool(self.columns)

    def planned(self) -> Outcome:
        """What would be done."""
        return Outcome([*self.repaired], self.commits)

    def apply(self) -> Outcome:
        """Publish the files.

        Raises:
            ConflictError: A snapshot was expired meanwhile, or others commit again and again.
        """
        if not self.repaired:
            return Outcome()
        table = self.table
        for snapshot, path in self.snapshots.items():
            publish(
                table.catalog,
                table.file_io,
                snapshot,
                _SoundPart(table.file_io, snapshot, path),
                table.engine,
            )
        if self.builds:
            build.build(table, self.options, rebuild=self.data_files, progress=False)
        if self.columns:
            compute_stats(table, self.columns)
        table.refresh()
        return self.planned()


def plan_statistics(table: OpenIcebergTable, findings: Sequence[Finding]) -> StatisticsRepair:
    """Plan what to do about findings of `STATISTICS_KINDS`."""
    files, metadata = table.snapshot, table.catalog.load()
    listed = {file.path for file in metadata.statistics.values()}
    options = build.options_of(table)
    repaired: list[Repaired] = []
    wrong: dict[str, list[Finding]] = {}
    data_files: set[str] = set()
    damaged = {finding.file for finding in findings if finding.kind in _DATA_KINDS}
    sound = set(files.file_paths.to_pylist()) - damaged
    for finding in findings:
        path = finding.file
        if path in listed:
            wrong.setdefault(path, []).append(finding)
        elif finding.kind in BUNDLE_ENTRY_KINDS and path in sound and options:
            data_files.add(path)
            repaired.append(Repaired(finding, REBUILT))
    columns: list[str] = []
    snapshots: dict[int, str] = {}
    has_lost_bundle = False
    for path, of_file in wrong.items():
        try:
            part = _sound_part(table.file_io, path)
        except UnsupportedError:  # a bundle of a later version, which is left alone
            continue
        own = {key: path for key, file in metadata.statistics.items() if file.path == path}
        lost = _fields_lost(table.file_io, metadata, path) if table.snapshot_id in own else ()
        recounted = [
            files.schema.by_id[number].name for number in lost if number in files.schema.by_id
        ]
        is_built = bool(options) and path.endswith(BUNDLE_SUFFIX) and not part.has_bundle
        steps = [
            "dropped" if part.content is None else "written anew, as far as it is sound",
            *(["indexes built again"] if is_built else []),
            *([f"{', '.join(recounted)} counted again"] if recounted else []),
        ]
        columns += recounted
        has_lost_bundle |= is_built
        snapshots |= own
        repaired += [Repaired(finding, "; ".join(steps)) for finding in of_file]
    return StatisticsRepair(
        table,
        snapshots,
        tuple(dict.fromkeys(columns)),
        frozenset(data_files),
        options,
        has_lost_bundle,
        tuple(repaired),
    )


@dataclass(frozen=True, slots=True)
class _SoundPart:
    """What a snapshot is to list in place of a file that is wrong, for `publish`."""

    file_io: FileIO
    snapshot: int
    path: str

    def __call__(
        self, metadata: TableMetadata, _lost: Sequence[StatisticsFile]
    ) -> Content | StatisticsFile | None:
        """What is sound of the file, or nothing; another file is left alone."""
        listed = metadata.statistics.get(self.snapshot)
        if listed is None or listed.path != self.path:
            return listed
        return _sound_part(self.file_io, self.path).content


@dataclass(frozen=True, slots=True)
class _Part:
    """What is sound of a file."""

    content: Content | None = None
    """None if there is nothing."""
    has_bundle: bool = False


def _sound_part(file_io: FileIO, path: str) -> _Part:
    """The file without what is wrong in it.

    Raises:
        UnsupportedError: It has a bundle of a later version.
    """
    try:
        reader = PuffinReader(file_io.source(path))
        sketches = list(_sound_sketches(reader))
        others = [
            (blob, reader.read(blob))
            for blob in reader.blobs
            if blob.type != THETA_SKETCH and not blob.type.startswith(OWN_TYPES)
        ]
    except _UNREADABLE:
        return _Part()
    if _has_sound_bundle(file_io, path):
        content = Amended.of(file_io, (path, None), add=[*sketches, *others])
        return _Part(content, has_bundle=True)
    if not sketches and not others:
        return _Part()
    return _Part(Amended.of(file_io, None, add=[*sketches, *others]))


def _sound_sketches(reader: PuffinReader) -> Iterator[tuple[Blob, bytes]]:
    for blob in reader.blobs:
        if blob.type != THETA_SKETCH:
            continue
        try:
            count, content = str(reader.read_theta_sketch(blob).ndv), reader.read(blob)
        except (*_UNREADABLE, UnsupportedError):
            continue
        if blob.properties.get(DISTINCT_VALUES) in (None, count):
            yield blob, content


def _has_sound_bundle(file_io: FileIO, path: str) -> bool:
    findings = Findings()
    try:
        check_bundle(Bundle.open(file_io.source(path)), path, findings)
    except _UNREADABLE:
        return False
    return not findings.count


def _fields_lost(file_io: FileIO, metadata: TableMetadata, path: str) -> Iterator[int]:
    """The columns whose sketches are listed, or are in the file, and are not sound."""
    listed = {
        tuple(blob.fields)
        for file in metadata.statistics.values()
        if file.path == path
        for blob in file.blobs
        if blob.type == THETA_SKETCH
    }
    sound: set[tuple[int, ...]] = set()
    try:
        reader = PuffinReader(file_io.source(path))
        listed |= {blob.fields for blob in reader.blobs if blob.type == THETA_SKETCH}
        sound = {blob.fields for blob, _ in _sound_sketches(reader)}
    except _UNREADABLE:
        pass
    for fields in sorted(listed - sound):
        yield from fields[:1]


def repair(
    table: OpenIcebergTable,
    older_than: timedelta = timedelta(days=1),
    *,
    dry_run: bool = False,
    progress: Progress | bool | None = False,
) -> RepairReport:
    """Repair what can be repaired, and remove what no snapshot lists.

    Args:
        table: The table; it is refreshed.
        older_than: As for `clean`.
        dry_run: Only say what would be done.
        progress: How to report it, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: An age below 0.
        UnsupportedError: The table was opened as it was in the past.
        ConflictError: Others have changed the same files every time.
    """
    table.require_present("repair")
    return repairing.repair(_IcebergRepair(table), older_than, dry_run=dry_run, progress=progress)


class _IcebergRepair:
    """An Iceberg table, for the repair loop."""

    def __init__(self, table: OpenIcebergTable) -> None:
        self.table = table
        self.engine = table.engine
        self.refused = ""
        """Why vectors cannot be committed."""
        self.fixers = [
            Fixer(VECTOR_KINDS, self._plan_vectors),
            Fixer(STATISTICS_KINDS, partial(plan_statistics, table)),
        ]

    def _plan_vectors(self, findings: Sequence[Finding]) -> _VectorFix:
        return _VectorFix(self, plan_vectors(self.table.snapshot, self.table.file_io, findings))

    def verify(self, progress: Progress | bool | None) -> VerifyReport:
        self.table.refresh()
        return verify(self.table, progress=progress)

    def clean(self, older_than: timedelta, *, dry_run: bool) -> CleanReport:
        return clean(self.table, older_than, dry_run=dry_run)

    def advice(self, finding: Finding) -> str:
        if finding.kind is FindingKind.METRICS:
            return "queries may miss rows: write the file anew, as with rewrite_data_files"
        if self.refused and finding.kind in VECTOR_KINDS - {FindingKind.SIZE}:
            return self.refused
        return ROLL_BACK


@dataclass(frozen=True, slots=True)
class _VectorFix:
    """A commit of deletion vectors."""

    repair: _IcebergRepair
    plan: VectorRepair

    def planned(self) -> Outcome:
        return Outcome([*self.plan.repaired], int(bool(self.plan.removed)))

    def apply(self) -> Outcome:
        if not self.plan.removed or self.repair.refused:
            return Outcome()
        table = self.repair.table
        files = table.snapshot
        assert files.snapshot is not None  # which has the vectors
        try:
            snapshot_id = commit_vectors(
                table, files, files.snapshot, self.plan.vectors, self.plan.removed
            )
        except UnsupportedError as error:
            self.repair.refused = str(error)
            return Outcome()
        table.refresh()
        return Outcome([*self.plan.repaired], 1, snapshot_id)
