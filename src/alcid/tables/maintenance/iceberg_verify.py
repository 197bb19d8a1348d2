"""Verify of an Iceberg table: its files are compared with its snapshot and its indexes.

Data files are compared with their manifests (size, rows, and metrics, by which plans leave out
files) and with what bundles have of them; then come delete files and statistics files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array
from alcid.datafiles.parquet import ParquetScan, open_scan
from alcid.errors import (
    AlcidError,
    ConflictError,
    FileGoneError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.index.bundle import BundleSet
from alcid.tables.iceberg.bounds import column_metrics
from alcid.tables.iceberg.bundles import BundleFinder, SnapshotBundles, match_bundles
from alcid.tables.iceberg.data_files import ConformedScan
from alcid.tables.iceberg.deletes.plan import PUFFIN
from alcid.tables.iceberg.field_ids import IdColumn, NameMapping, ProjectedField
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.schema import Field
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile
from alcid.tables.iceberg.open_table import OpenIcebergTable
from alcid.tables.maintenance.bundle_check import (
    FileChecker,
    StoredFiles,
    check_bundle,
    untrue_of,
)
from alcid.tables.maintenance.findings import MISSING, Checked, FindingKind, Findings
from alcid.tables.maintenance.iceberg_checks import (
    CheckedSnapshot,
    delete_files,
    statistics_files,
    vector_files,
    vectors_twice,
)
from alcid.tables.maintenance.iceberg_clean import find_leftovers
from alcid.tables.maintenance.verify import (
    Check,
    Sample,
    Total,
    VerifyReport,
    run,
    run_checks,
    run_each,
)
from alcid.tables.progress import Progress

_METRICS = ("min", "max", "nulls", "has_nan")
_COLUMNS = (
    *("file_path", "file_size_in_bytes", "record_count"),
    *("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"),
)
_READ = "is_read"
_NOT_READ = "not checked: neither Parquet nor Puffin, or encrypted"


class MetricsChecker:
    """Compares the metrics of data files with their values; many threads may call it."""

    def __init__(
        self, data: pa.Table, fields: Iterable[Field], mapping: NameMapping | None
    ) -> None:
        """Take the metrics of all files.

        Args:
            data: Their entries.
            fields: The columns of the table; those that are nested, or not read here, are left out.
            mapping: What names mean in files without ids.
        """
        flat = (
            field
            for field in fields
            if field.data_type is not None and not field.data_type.children
        )
        self._wanted = {field.name: ProjectedField.of(field) for field in flat}
        self._mapping = mapping
        self._metrics = {
            name: column_metrics(data, field, field.data_type)
            for name, field in self._wanted.items()
        }

    def open(self, scan: ParquetScan) -> ConformedScan:
        """A file with the columns of the table."""
        return ConformedScan(scan, self._wanted, self._mapping, {})

    def compare(self, file: int, path: str, scan: ConformedScan, checked: Checked) -> None:
        """Read the columns of a file that have metrics, one at a time, and compare.

        Raises:
            FormatError: The file is damaged.
            UnsupportedError: Nothing says which of its columns is which.
        """
        present = scan.columns
        for name, field in self._wanted.items():
            stated = self._metrics[name][file]
            if field.id not in present or not _has_metrics(stated):
                continue
            try:
                problem = untrue_of(stated, scan.read(None, [name]).column(0), field.data_type)
            except (FormatError, UnsupportedError) as error:
                problem = str(error)
            if problem:
                checked.findings.add(FindingKind.METRICS, path, problem, column=name)


def _has_metrics(stated: pa.StructScalar) -> bool:
    return stated.is_valid and any(stated[name].is_valid for name in _METRICS)


def is_readable(data: pa.Table) -> BoolArray:
    """Which files are of a format that is read, and not encrypted."""
    is_parquet = pc.equal(pc.utf8_upper(data["file_format"]), "PARQUET")
    readable: BoolArray = pc.and_(is_parquet, data["key_metadata"].is_null()).to_numpy()
    return readable


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotFiles:
    """Data files, as manifests and bundles know them; it is `Splittable`."""

    entries: pa.Table
    """Their entries in manifests, and `_READ`, whether to read them."""
    stored: StoredFiles

    def part(self, positions: Int64Array) -> SnapshotFiles:
        """Some of the files."""
        return SnapshotFiles(self.entries.take(pa.array(positions)), self.stored.part(positions))

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, slots=True, eq=False)
class DataFileChecks:
    """The checks of data files."""

    file_io: FileIO
    fields: Sequence[Field]
    """The columns of the table."""
    mapping: NameMapping | None
    """What names mean in files without ids."""

    def open(self, files: SnapshotFiles) -> Callable[[int], Checked]:
        """A function that checks one of these files."""
        indexes = FileChecker(files.stored, self.file_io.source, self.file_io.read_ranges)
        metrics = MetricsChecker(files.entries, self.fields, self.mapping)
        return partial(self._check, files.entries, indexes, metrics)

    def _check(
        self,
        files: pa.Table,
        indexes: FileChecker,
        metrics: MetricsChecker,
        file: int,
    ) -> Checked:
        path, size, rows = (
            files[name][file].as_py()
            for name in ("file_path", "file_size_in_bytes", "record_count")
        )
        checked = Checked(files=1)
        source = self.file_io.source(path)
        try:
            if source.size != size:
                problem = f"found {source.size:,}, the manifest says {size:,}"
                checked.findings.add(FindingKind.SIZE, path, problem)
            elif files[_READ][file].as_py():
                checked.checked, checked.rows = 1, rows
                scan = metrics.open(open_scan(source))
                if (stored := sum(scan.group_rows)) != rows:
                    problem = f"found {stored:,}, the manifest says {rows:,}"
                    checked.findings.add(FindingKind.ROWS, path, problem)
                metrics.compare(file, path, scan, checked)
                indexes.compare(file, source, "", checked)
                checked.rename(self._names(scan.columns))
        except FileGoneError as error:
            if error.file != source.name:
                raise  # a bundle that was replaced just now
            checked.findings.add(FindingKind.DATA_FILE, path, MISSING)
        except (FormatError, LimitError, UnsupportedError) as error:
            checked.findings.add(FindingKind.DATA_FILE, path, error)
        return checked

    def _names(self, columns: Mapping[int, IdColumn]) -> dict[str, str]:
        """What the table calls the columns of a file, by their ids."""
        names = {field.id: field.name for field in self.fields}
        return {column.name: names.get(number, column.name) for number, column in columns.items()}


def verify(
    table: OpenIcebergTable, sample: float = 1.0, *, progress: Progress | bool | None = None
) -> VerifyReport:
    """Read the files of the snapshot, and compare them with what the table says of them.

    Nothing is changed.

    | what             | is                                                                   |
    |------------------|----------------------------------------------------------------------|
    | data files       | there, of the size and rows that their manifests say                 |
    | metrics          | those of manifests are true of all values                            |
    | indexes          | built again, and compared, with statistics and page offsets          |
    | deletion vectors | readable, as manifests and footers say, of rows there are, one a file |
    | delete files     | readable, of as many rows as manifests say, of rows that there are   |
    | statistics files | of their size, as the metadata say; sketches count what they say     |

    Args:
        table: The table.
        sample: The fraction of data files to read, see `Sample`; all are looked for.
        progress: How to report it, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: A fraction that is not above 0 and at most 1.
        ConflictError: The snapshot was expired meanwhile.
        StorageError: A file cannot be read, and that is not because it is gone.
    """
    chosen = Sample(sample)
    return run(lambda total: _Verification(table, total).run(chosen, progress))


class _Verification:
    """One try to verify a table."""

    def __init__(self, table: OpenIcebergTable, total: Total) -> None:
        self._table, self._metadata = table, table.catalog.load()
        self._snapshot, entries = table.snapshot.snapshot, table.snapshot.entries
        self._data, self._deletes = entries.data, entries.deletes
        self._total = total

    def run(self, sample: Sample, progress: Progress | bool | None) -> None:
        total, paths = self._total, self._data["file_path"]
        sizes = self._data["file_size_in_bytes"].to_numpy()
        of_snapshot = self._find_bundles()
        bundles = match_bundles(of_snapshot.bundles, paths, sizes, on_damage=_ignore)
        self._check_data_files(bundles, sample, progress)
        self._check_delete_files()
        self._check_statistics_files()
        self._require_snapshot()
        for info in self._table.indexes():
            total.index(info.column, info.index_type).missing = info.absent
        total.table_files = len(paths)
        total.unindexed = len(paths) - len(bundles.live()[0])
        total.leftovers = find_leftovers(self._table)

    def _find_bundles(self) -> SnapshotBundles:
        """The bundles of the snapshot; what is damaged in them as such is a finding."""
        finder = BundleFinder(self._table.file_io, strict=False)
        of_snapshot = finder.find(self._metadata, self._snapshot, on_damage=self._record_damage)
        for bundle, file in zip(of_snapshot.bundles, of_snapshot.files, strict=True):
            check_bundle(bundle, file.path, self._total.findings)
        return of_snapshot

    def _record_damage(self, file: StatisticsFile, error: AlcidError) -> None:
        if isinstance(error, UnsupportedError):
            self._total.later.append(str(error))
        elif not isinstance(error, FileGoneError):  # which is a finding of the statistics file
            self._total.findings.add(FindingKind.BUNDLE, file.path, error)

    def _check_data_files(
        self, bundles: BundleSet, sample: Sample, progress: Progress | bool | None
    ) -> None:
        data, readable = self._data, is_readable(self._data)
        self._warn_unread(data.filter(pa.array(~readable)))
        chosen = np.zeros(len(data), np.bool_)
        chosen[sample.choose(data["file_path"].to_pylist())] = True
        checks = DataFileChecks(
            self._table.file_io,
            self._table.snapshot.schema.fields,
            NameMapping.of(self._metadata.properties),
        )
        read = chosen & readable
        fields = [field.id for field in self._table.snapshot.schema.fields]
        with_metrics = self._table.snapshot.entries.with_metrics(fields)
        entries = with_metrics.select(_COLUMNS).append_column(_READ, pa.array(read))
        names = [bundle.source.name for bundle in bundles.bundles]
        files = SnapshotFiles(entries, StoredFiles.of(bundles, names, np.arange(len(data))))
        sizes = np.where(read, data["file_size_in_bytes"].to_numpy(), 0)
        engine = self._table.engine
        checked = run_checks(engine, checks, files, sizes, files=len(data), progress=progress)
        self._total.add(checked)

    def _check_delete_files(self) -> None:
        is_vector = pc.equal(pc.utf8_upper(self._deletes["file_format"]), PUFFIN)
        vectors, others = (self._deletes.filter(mask) for mask in (is_vector, pc.invert(is_vector)))
        live = set(self._data["file_path"].to_pylist())
        for data_file, problem in vectors_twice(vectors):
            if data_file in live:  # no reader looks at others
                self._total.findings.add(FindingKind.VECTORS_TWICE, data_file, problem)
        readable = pa.array(is_readable(others))
        self._warn_unread(others.filter(pc.invert(readable)))
        checks: list[Check[CheckedSnapshot]] = [*vector_files(vectors)]
        self._total.add(self._run([*checks, *delete_files(others.filter(readable))]))

    def _check_statistics_files(self) -> None:
        checked = self._run([*statistics_files(self._metadata)])
        if checked.findings.count:  # nothing is reported of a file that was replaced meanwhile
            now = {file.path for file in self._table.catalog.load().statistics.values()}
            left = [finding for finding in checked.findings.problems if finding.file in now]
            checked.findings = Findings(len(left), left)
        self._total.add(checked)

    def _warn_unread(self, files: pa.Table) -> None:
        for path in files["file_path"].to_pylist():
            self._total.findings.warn(FindingKind.NOT_CHECKED, path, _NOT_READ)

    def _run(self, checks: Sequence[Check[CheckedSnapshot]]) -> Checked:
        paths, rows = (self._data[name].to_pylist() for name in ("file_path", "record_count"))
        schemas = self._metadata.schemas.values()
        snapshot = CheckedSnapshot(
            self._table.file_io,
            dict(zip(paths, rows, strict=True)),
            {field.id: field for schema in schemas for field in schema.fields},
        )
        return run_each(self._table.engine, snapshot, checks)

    def _require_snapshot(self) -> None:
        """Raise where files are missing because the snapshot was expired."""
        if self._snapshot is None or not self._total.findings.count:
            return
        if self._snapshot.id not in self._table.catalog.load().snapshots:
            name, number = self._table.name, self._snapshot.id
            raise ConflictError(f"{name}: snapshot {number} is expired: refresh the table")


def _ignore(_error: AlcidError) -> None:
    """Pass over damage, which is reported once, when bundles are opened."""
