"""Statistics files of an Iceberg table that are not what the metadata say, or what their data says.

A file is written without what is wrong in it: sketches that do not count what they say, and the
bundle if it is damaged as such. What is sound is carried over. One that cannot be read is listed no
more. The sketches of the current snapshot are then counted again, and indexes are built again of
those data files that lack them, or whose index is wrong.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from alcid.bundle import Bundle
from alcid.bundle.amending import amend
from alcid.bundle.kinds import OWN_TYPES
from alcid.errors import FileGoneError, FormatError, LimitError, UnsupportedError
from alcid.formats.puffin import THETA_SKETCH, Blob, PuffinReader
from alcid.formats.puffin.writer import DISTINCT_VALUES
from alcid.iceberg_metadata.table_metadata import StatisticsFile, TableMetadata
from alcid.options import OptionValue
from alcid.storage.location import Location
from alcid.tables.iceberg import building
from alcid.tables.iceberg.places import Places
from alcid.tables.iceberg.publishing import BUNDLE_SUFFIX, publish
from alcid.tables.iceberg.statistics import compute_stats
from alcid.tables.repair_report import Mended
from alcid.tables.repairing import BUILT_ANEW, is_of_bundle
from alcid.tables.verify_report import Finding, Findings
from alcid.tables.verifying import look_into

if TYPE_CHECKING:
    from alcid.tables.iceberg.table import IcebergTable

__all__ = ["StatisticsRepair", "plan_statistics"]

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

    def apply(self, table: IcebergTable) -> None:
        """Do it.

        Raises:
            ConflictError: A snapshot was expired meanwhile, or others commit again and again.
        """
        for snapshot, path in self.snapshots.items():
            publish(table.catalog, table.places, snapshot, _Sound(table.places, snapshot, path))
        if self.builds:
            building.build(table, self.options, rebuild=self.data_files, progress=False)
        if self.columns:
            compute_stats(table, self.columns)
        table.refresh()


def plan_statistics(table: IcebergTable, findings: Sequence[Finding]) -> StatisticsRepair:
    """Find out what to do about what `verify` has found."""
    files, metadata = table.snapshot, table.catalog.load()
    live = set(files.file_paths.to_pylist())
    listed = {
        one.path: Location.parse(table.places.whole(one.path)).text
        for one in metadata.statistics.values()
    }
    options = building.options_of(table)
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
