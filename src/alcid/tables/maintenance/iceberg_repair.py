"""Repair of an Iceberg table: what `verify` finds is mended, as far as nothing is lost by it.

Deletion vectors are one commit of delete files, through the catalog. Statistics files, with the
indexes in them, are commits of their own, as Iceberg has it. Then the table is verified again, and
what is still wrong is told: what nobody can mend is not touched.

Statistics files of an Iceberg table that are not what the metadata say, or what their data says.

A file is written without what is wrong in it: sketches that do not count what they say, and the
bundle if it is damaged as such. What is sound is carried over. One that cannot be read is listed no
more. The sketches of the current snapshot are then counted again, and indexes are built again of
those data files that lack them, or whose index is wrong.
"""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from alcid.errors import (
    ConflictError,
    DamagedIndexWarning,
    FileGoneError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.puffin import THETA_SKETCH, Blob, PuffinReader
from alcid.formats.puffin.writer import DISTINCT_VALUES
from alcid.index.bundle import Bundle
from alcid.index.bundle.format import OWN_TYPES
from alcid.index.bundle.writer import amend
from alcid.options import OptionValue
from alcid.storage.backend import Location
from alcid.tables.iceberg.bundles import build
from alcid.tables.iceberg.bundles.publish import BUNDLE_SUFFIX, publish
from alcid.tables.iceberg.bundles.statistics import compute_stats
from alcid.tables.iceberg.deletes.delete import commit_vectors
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile, TableMetadata
from alcid.tables.maintenance.clean import check_age
from alcid.tables.maintenance.findings import (
    ROLL_BACK,
    Finding,
    Findings,
    Mended,
    NotMended,
    RepairReport,
    VerifyReport,
)
from alcid.tables.maintenance.iceberg_clean import clean
from alcid.tables.maintenance.iceberg_repair_vectors import VectorRepair, plan_vectors
from alcid.tables.maintenance.iceberg_verify import verify
from alcid.tables.maintenance.parquet import BUILT_ANEW, is_of_bundle, look_into
from alcid.tables.progress import Progress

if TYPE_CHECKING:
    from alcid.tables.iceberg.open_table import OpenIcebergTable

__all__ = ["StatisticsRepair", "plan_statistics", "repair"]

_BY_MANIFEST = "the manifest says"
_UNREADABLE = (FileGoneError, FormatError, LimitError)


@dataclass(frozen=True, slots=True)
class StatisticsRepair:
    """What is to be done; nothing is written."""

    snapshots: Mapping[int, str] = field(default_factory=dict)
    """Those whose statistics file is wrong, with its path."""
    columns: tuple[str, ...] = ()
    """Those to be counted again."""
    data_files: frozenset[str] = frozenset()
    """Those whose indexes are wrong."""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    """The indexes that the table has."""
    has_lost_bundle: bool = False
    """Whether one of the files had a bundle that cannot be carried over."""
    mended: tuple[Mended, ...] = ()

    @property
    def builds(self) -> bool:
        """Whether indexes have to be built."""
        return bool(self.options and (self.data_files or self.has_lost_bundle))

    @property
    def commits(self) -> int:
        """How many commits it takes."""
        return len(self.snapshots) + self.builds + bool(self.columns)

    def apply(self, table: OpenIcebergTable) -> None:
        """Do it.

        Raises:
            ConflictError: A snapshot was expired meanwhile, or others commit again and again.
        """
        for snapshot, path in self.snapshots.items():
            publish(table.catalog, table.places, snapshot, _Sound(table.places, snapshot, path))
        if self.builds:
            build.build(table, self.options, rebuild=self.data_files, progress=False)
        if self.columns:
            compute_stats(table, self.columns)
        table.refresh()


def plan_statistics(table: OpenIcebergTable, findings: Sequence[Finding]) -> StatisticsRepair:
    """Find out what to do about what `verify` has found."""
    files, metadata = table.snapshot, table.catalog.load()
    live = set(files.file_paths.to_pylist())
    listed = {
        one.path: Location.parse(table.places.whole(one.path)).text
        for one in metadata.statistics.values()
    }
    options = build.options_of(table)
    mended: list[Mended] = []
    wrong: dict[str, list[Finding]] = {}
    data_files: set[str] = set()
    broken = {one.file for one in findings if one.file in live and _is_of_data(one)}
    for finding in findings:
        named = (path for path, text in listed.items() if text in finding.problem)
        path = finding.file or next(named, "")
        if path in listed:
            wrong.setdefault(path, []).append(finding)
        elif path in live and _is_of_bundle(finding) and path not in broken and options:
            data_files.add(path)
            mended.append(Mended.of(finding, BUILT_ANEW))
    columns: list[str] = []
    snapshots: dict[int, str] = {}
    has_lost_bundle = False
    for path, found in wrong.items():
        try:
            part = _sound_part(table.places, path)
        except UnsupportedError:  # a bundle of a later version, which is left alone
            continue
        own = {key: path for key, one in metadata.statistics.items() if one.path == path}
        lost = _fields_lost(table.places, metadata, path) if table.snapshot_id in own else ()
        again = [files.schema.by_id[one].name for one in lost if one in files.schema.by_id]
        is_built = bool(options) and path.endswith(BUNDLE_SUFFIX) and not part.has_bundle
        told = [
            "dropped" if part.data is None else "written anew, as far as it is sound",
            *(["indexes built again"] if is_built else []),
            *([f"{', '.join(again)} counted again"] if again else []),
        ]
        columns += again
        has_lost_bundle |= is_built
        snapshots |= own
        mended += [Mended.of(one, "; ".join(told)) for one in found]
    return StatisticsRepair(
        snapshots,
        tuple(dict.fromkeys(columns)),
        frozenset(data_files),
        options,
        has_lost_bundle,
        tuple(mended),
    )


def _is_of_bundle(finding: Finding) -> bool:
    """Whether a bundle is wrong about a data file, and not a manifest."""
    return is_of_bundle(finding) and _BY_MANIFEST not in finding.problem


def _is_of_data(finding: Finding) -> bool:
    """Whether a data file is not what its manifest says, so that no index is built of it."""
    return finding.what in ("", "bytes", "rows") and not _is_of_bundle(finding)


@dataclass(frozen=True, slots=True)
class _Sound:
    """What a snapshot is to list in place of a file that is wrong, for `publish`."""

    places: Places
    snapshot: int
    path: str

    def __call__(
        self, metadata: TableMetadata, _lost: Sequence[StatisticsFile]
    ) -> bytes | StatisticsFile | None:
        """What is sound of the file, or nothing; another file is left alone."""
        known = metadata.statistics.get(self.snapshot)
        if known is None or known.path != self.path:
            return known
        return _sound_part(self.places, self.path).data


@dataclass(frozen=True, slots=True)
class _Part:
    """What is sound of a file."""

    data: bytes | None = None
    """None if there is nothing."""
    has_bundle: bool = False


def _sound_part(places: Places, path: str) -> _Part:
    """The file without what is wrong in it.

    Raises:
        UnsupportedError: It has a bundle of a later version.
    """
    source, data = places.source(path), io.BytesIO()
    try:
        reader = PuffinReader(source)
        sketches = list(_sound_sketches(reader))
        others = [
            (blob, reader.read(blob))
            for blob in reader.blobs
            if blob.type != THETA_SKETCH and not blob.type.startswith(OWN_TYPES)
        ]
    except _UNREADABLE:
        return _Part()
    if _has_sound_bundle(places, path):
        amend(source, data, keep=lambda _: False, add=[*sketches, *others])
        return _Part(data.getvalue(), has_bundle=True)
    if not sketches and not others:
        return _Part()
    amend(None, data, keep=lambda _: False, add=[*sketches, *others])
    return _Part(data.getvalue())


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


def _has_sound_bundle(places: Places, path: str) -> bool:
    found = Findings()
    try:
        look_into(Bundle.open(places.source(path)), path, found)
    except _UNREADABLE:
        return False
    return not found.count


def _fields_lost(places: Places, metadata: TableMetadata, path: str) -> Iterator[int]:
    """The columns whose sketches are listed, or are in the file, and are not sound."""
    told = {
        tuple(blob.fields)
        for one in metadata.statistics.values()
        if one.path == path
        for blob in one.blobs
        if blob.type == THETA_SKETCH
    }
    sound: set[tuple[int, ...]] = set()
    try:
        reader = PuffinReader(places.source(path))
        told |= {blob.fields for blob in reader.blobs if blob.type == THETA_SKETCH}
        sound = {blob.fields for blob, _ in _sound_sketches(reader)}
    except _UNREADABLE:
        pass
    for fields in sorted(told - sound):
        yield from fields[:1]


_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done about what was found."""

    vectors: VectorRepair
    statistics: StatisticsRepair

    @property
    def mended(self) -> tuple[Mended, ...]:
        return (*self.vectors.mended, *self.statistics.mended)

    @property
    def commits(self) -> int:
        return bool(self.vectors.removed) + self.statistics.commits


@dataclass(slots=True)
class _Done:
    """What was done."""

    mended: list[Mended] = field(default_factory=list)
    left: Sequence[Finding] = ()
    """What is still wrong."""
    snapshot_id: int | None = None
    commits: int = 0
    refused: str = ""
    """Why vectors cannot be committed."""


def repair(
    table: OpenIcebergTable,
    older_than: timedelta = timedelta(days=1),
    *,
    dry_run: bool = False,
    progress: Progress | bool | None = False,
) -> RepairReport:
    """Mend what can be mended, and remove what no snapshot lists.

    Args:
        table: The table; it is refreshed.
        older_than: As for `clean`.
        dry_run: Only say what would be done.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: An age below 0.
        UnsupportedError: The table was opened as it was in the past.
        ConflictError: Others have changed the same files every time.
    """
    check_age(older_than)
    table.require_present("repair")
    begin = time.monotonic()
    with table.engine.settings(), _unwarned():
        if dry_run:
            found = _look(table, progress)
            plan = _plan(table, found)
            done = _Done(list(plan.mended), commits=plan.commits)
            told = {(one.file, one.what, one.problem) for one in plan.mended}
            done.left = [
                one for one in found.problems if (one.file, one.what, one.problem) not in told
            ]
        else:
            done = _persist(table, progress)
        cleaned = clean(table, older_than, dry_run=dry_run)
    return RepairReport(
        tuple(done.mended),
        tuple(NotMended.of(one, _advice(one, done.refused)) for one in done.left),
        cleaned.removed,
        cleaned.kept,
        done.snapshot_id,
        done.commits,
        time.monotonic() - begin,
        dry_run,
    )


@contextmanager
def _unwarned() -> Iterator[None]:
    """Say nothing of indexes that are damaged: the report does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedIndexWarning)
        yield


def _persist(table: OpenIcebergTable, progress: Progress | bool | None) -> _Done:
    """Mend until nothing is left that can be."""
    done, tries = _Done(), _TRIES
    found = _look(table, progress)
    while tries:
        plan, is_lost = _plan(table, found), False
        try:
            if plan.vectors.removed and not done.refused:
                _commit(table, plan.vectors, done)
            if plan.statistics.mended:
                plan.statistics.apply(table)
                done.mended += plan.statistics.mended
                done.commits += plan.statistics.commits
        except (ConflictError, FileGoneError):
            is_lost = True
            if tries == 1:
                raise
        if not plan.statistics.mended and (done.refused or not plan.vectors.mended):
            break
        before, found = found, _look(table, progress)
        tries -= is_lost or not found.is_better_than(before)
    done.left = found.problems
    return done


def _look(table: OpenIcebergTable, progress: Progress | bool | None) -> VerifyReport:
    table.refresh()
    return verify(table, progress=progress)


def _plan(table: OpenIcebergTable, found: VerifyReport) -> _Plan:
    findings = (*found.problems, *found.warnings)
    return _Plan(
        plan_vectors(table.snapshot, table.places, findings), plan_statistics(table, findings)
    )


def _commit(table: OpenIcebergTable, plan: VectorRepair, done: _Done) -> None:
    files = table.snapshot
    assert files.snapshot is not None  # which has the vectors
    try:
        made = commit_vectors(table, files, files.snapshot, plan.vectors, plan.removed)
    except UnsupportedError as error:
        done.refused = str(error)
        return
    done.snapshot_id, done.commits = made, done.commits + 1
    done.mended += plan.mended
    table.refresh()


def _advice(finding: Finding, refused: str) -> str:
    """What to do about something that is still wrong."""
    if finding.what.startswith("metrics of "):
        return "queries may miss rows: write the file anew, as with rewrite_data_files"
    if refused and finding.what.startswith("deletion vector"):
        return refused
    return ROLL_BACK
