"""Verifying an Iceberg table: all that its snapshot and its indexes say is held against files.

Whether what manifests say of columns is true of all values: plans leave out files by it.

Data files of an Iceberg table, against the manifests and against what bundles keep of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray
from alcid.config import current_settings, using
from alcid.datafiles.parquet import ParquetScan, open_scan
from alcid.errors import (
    AlcidError,
    ConflictError,
    FileGoneError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.index.bundle import BundleSet, open_bundles
from alcid.storage.threads import in_order
from alcid.tables.engine import Task
from alcid.tables.iceberg.bounds import column_metrics
from alcid.tables.iceberg.bundles import BundleFinder, FoundBundles, bundles_against
from alcid.tables.iceberg.data_files import ConformedScan
from alcid.tables.iceberg.deletes.plan import PUFFIN
from alcid.tables.iceberg.field_ids import IdColumn, NameMapping, WantedField
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.schema import Field
from alcid.tables.maintenance.checks import Checked
from alcid.tables.maintenance.file_check import FileChecker, untrue_of
from alcid.tables.maintenance.findings import Findings, VerifyReport
from alcid.tables.maintenance.iceberg_checks import (
    GONE,
    Check,
    CheckedSnapshot,
    delete_files,
    statistics_files,
    vector_files,
    vectors_twice,
)
from alcid.tables.maintenance.iceberg_clean import find_leftovers
from alcid.tables.maintenance.parquet import check_share, choose_files, look_into
from alcid.tables.progress import Progress, track_progress

if TYPE_CHECKING:
    from alcid.tables.iceberg.open_table import OpenIcebergTable

__all__ = ["CheckWork", "DataFileWork", "MetricsChecker", "is_readable", "verify"]

_TOLD = ("min", "max", "nulls", "has_nan")


class MetricsChecker:
    """Compares the metrics of data files with their values; many threads may call it."""

    def __init__(
        self, data: pa.Table, fields: Iterable[Field], mapping: NameMapping | None
    ) -> None:
        """Take what is said of all files.

        Args:
            data: Their entries.
            fields: The columns of the table; those that are nested, or not read here, are left out.
            mapping: What names mean in files without ids.
        """
        flat = (one for one in fields if one.data_type is not None and not one.data_type.children)
        self._wanted = {one.name: WantedField.of(one) for one in flat}
        self._mapping = mapping
        self._metrics = {
            name: column_metrics(data, one, one.data_type) for name, one in self._wanted.items()
        }

    def open(self, scan: ParquetScan) -> ConformedScan:
        """A file with the columns of the table."""
        return ConformedScan(scan, self._wanted, self._mapping, {})

    def compare(self, file: int, path: str, scan: ConformedScan, found: Checked) -> None:
        """Read the columns of a file that something is said of, one at a time, and compare.

        Raises:
            FormatError: The file is damaged.
            UnsupportedError: Nothing says which of its columns is which.
        """
        present = scan.columns
        for name, field in self._wanted.items():
            stated = self._metrics[name][file]
            if field.id not in present or not _says_something(stated):
                continue
            try:
                problem = untrue_of(stated, scan.read(None, [name]).column(0), field.data_type)
            except (FormatError, UnsupportedError) as error:
                problem = str(error)
            if problem:
                found.findings.add(path, f"metrics of {name!r}", problem)


def _says_something(stated: pa.StructScalar) -> bool:
    return stated.is_valid and any(stated[name].is_valid for name in _TOLD)


def is_readable(data: pa.Table) -> BoolArray:
    """Which files are of a format that is looked into, and not encrypted."""
    is_parquet = pc.equal(pc.utf8_upper(data["file_format"]), "PARQUET")
    found: BoolArray = pc.and_(is_parquet, data["key_metadata"].is_null()).to_numpy()
    return found


@dataclass(frozen=True, slots=True, eq=False)
class DataFileWork:
    """The work on data files, for `Engine.map`: an item is a file."""

    places: Places
    bundles: Sequence[tuple[str, int]]
    """Paths and sizes of the statistics files with bundles, the oldest first."""
    fields: Sequence[Field]
    """The columns of the table."""
    mapping: NameMapping | None
    """What names mean in files without ids."""

    def __call__(self, task: Task[pa.Table]) -> Checked:
        """Look at the files of a task: their entries, and `_READ`, whether to read them."""
        total, files = Checked(), task.items
        # Bundles spell columns as their files do, whatever the rule for queries is.
        with using(replace(current_settings(), case_sensitive=True)):
            indexes = FileChecker(self._bundles(files), self.places.read_ranges)
            metrics = MetricsChecker(files, self.fields, self.mapping)
            check = partial(self._check, files, indexes, metrics)
            with closing(in_order(check, range(len(files)), task.threads)) as results:
                for found in results:
                    total.add(found)
                    task.report(1, found.rows)
        return total

    def _bundles(self, files: pa.Table) -> BundleSet:
        sources = [self.places.source(path, size) for path, size in self.bundles]
        opened = open_bundles(sources, read_many=self.places.read_ranges, on_damage=_ignore_damage)
        paths, sizes = files["file_path"], files["file_size_in_bytes"].to_numpy()
        return bundles_against(tuple(opened), paths, sizes, on_damage=_ignore_damage)

    def _check(
        self,
        files: pa.Table,
        indexes: FileChecker,
        metrics: MetricsChecker,
        file: int,
    ) -> Checked:
        """Look at a file; what is wrong with it is no error here."""
        path, size, rows = (
            files[name][file].as_py()
            for name in ("file_path", "file_size_in_bytes", "record_count")
        )
        found = Checked()
        source = self.places.source(path)
        try:
            if source.size != size:
                problem = f"found {source.size:,}, the manifest says {size:,}"
                found.findings.add(path, "bytes", problem)
            elif files[_READ][file].as_py():
                found.checked, found.rows = 1, rows
                scan = metrics.open(open_scan(source))
                if (held := sum(scan.group_rows)) != rows:
                    problem = f"found {held:,}, the manifest says {rows:,}"
                    found.findings.add(path, "rows", problem)
                metrics.compare(file, path, scan, found)
                indexes.compare(file, source, "", found)
                self._rename(scan.columns, found)
        except FileGoneError as error:
            if error.file != source.name:
                raise  # a bundle that was replaced just now
            found.findings.add(path, "", GONE)
        except (FormatError, LimitError, UnsupportedError) as error:
            found.findings.add(path, "", error)
        return found

    def _rename(self, columns: Mapping[int, IdColumn], found: Checked) -> None:
        """Let indexes of a file be called as the table does, which knows its columns by ids."""
        now = {one.id: one.name for one in self.fields}
        names = {one.name: now.get(number, one.name) for number, one in columns.items()}
        checks = list(found.indexes.values())
        found.indexes.clear()
        for check in checks:
            own, bracket, key = check.column.partition("[")
            column = f"{names.get(own, own)}{bracket}{key}"
            found.index(column, check.index_type).add(check)


def _ignore_damage(_error: AlcidError) -> None:
    """What is damaged is told once, when bundles are looked at."""


_TRIES = 3
_LOOKED_AT = (
    *("file_path", "file_size_in_bytes", "record_count"),
    *("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"),
)
_READ = "is_read"
_NOT_READ = "not looked into: neither Parquet nor Puffin, or encrypted"


def verify(
    table: OpenIcebergTable, sample: float = 1.0, *, progress: Progress | bool | None = None
) -> VerifyReport:
    """Read the files of the snapshot, and compare them with what the table says of them.

    Nothing is changed.

    | what             | is                                                                   |
    |------------------|----------------------------------------------------------------------|
    | data files       | there, of the size and rows that their manifests say                 |
    | metrics          | those of manifests are true of all values                            |
    | indexes          | built again, and compared, with statistics and places of pages       |
    | deletion vectors | readable, as manifests and footers say, of rows there are, one a file |
    | delete files     | readable, of as many rows as manifests say, of rows that there are   |
    | statistics files | of their size, as the metadata say; sketches count what they say     |

    Args:
        table: The table.
        sample: Which share of the data files to read; one at least. All are looked for.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: A share that is not above 0 and at most 1.
        ConflictError: The snapshot was expired meanwhile.
        StorageError: A file cannot be read, and that is not because it is gone.
    """
    check_share(sample)
    for attempt in range(_TRIES):
        try:
            return _Verifying(table).run(sample, progress)
        except FileGoneError:  # of a bundle: a build has just replaced it
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("the last try returns or raises")


class _Verifying:
    """One try."""

    def __init__(self, table: OpenIcebergTable) -> None:
        self._begin = time.monotonic()
        self._table, self._metadata = table, table.catalog.load()
        self._snapshot, entries = table.snapshot.snapshot, table.snapshot.entries
        self._data, self._deletes = entries.data, entries.deletes
        self._total, self._later = Checked(), list[str]()

    def run(self, sample: float, progress: Progress | bool | None) -> VerifyReport:
        found = self._find_bundles()
        paths = self._data["file_path"]
        sizes = self._data["file_size_in_bytes"].to_numpy()
        bundles = bundles_against(found.bundles, paths, sizes, on_damage=_ignore)
        self._look_at_data(found, sample, progress)
        self._look_at_others()
        self._require_snapshot()
        for info in self._table.indexes():
            self._total.index(info.column, info.index_type).missing = info.absent
        total = self._total
        return VerifyReport(
            files=len(paths),
            checked=total.checked,
            changed=0,
            unindexed=len(paths) - len(bundles.live()[0]),
            rows=total.rows,
            seconds=time.monotonic() - self._begin,
            indexes=tuple(total.indexes[place] for place in sorted(total.indexes)),
            problem_count=total.findings.count,
            problems=tuple(total.findings.first),
            gone=0,  # what bundles have of files that were rewritten since is as it should be
            gone_example="",
            leftovers=tuple(find_leftovers(self._table)),
            later=tuple(self._later),
            warnings=tuple(total.warnings.first),
        )

    def _find_bundles(self) -> FoundBundles:
        """The bundles of the snapshot; what is damaged in them as such is told."""
        finder = BundleFinder(self._table.places, strict=False)
        found = finder.find(self._metadata, self._snapshot, on_damage=self._take_damage)
        for bundle, file in zip(found.bundles, found.files, strict=True):
            look_into(bundle, file.path, self._total.findings)
        return found

    def _take_damage(self, error: AlcidError) -> None:
        if isinstance(error, UnsupportedError):
            self._later.append(str(error))
        elif not isinstance(error, FileGoneError):  # which is told of the statistics file
            self._total.findings.add("", "bundle", error)

    def _look_at_data(
        self, found: FoundBundles, sample: float, progress: Progress | bool | None
    ) -> None:
        data, readable = self._data, is_readable(self._data)
        for path in data["file_path"].filter(pa.array(~readable)).to_pylist():
            self._total.warnings.add(path, "", _NOT_READ)
        chosen = np.zeros(len(data), np.bool_)
        chosen[choose_files(data["file_path"].to_pylist(), sample, seed=0)] = True
        work = DataFileWork(
            self._table.places,
            [(one.path, one.size) for one in found.files],
            self._table.snapshot.schema.fields,
            NameMapping.of(self._metadata.properties),
        )
        read = chosen & readable
        files = data.select(_LOOKED_AT).append_column(_READ, pa.array(read))
        sizes = np.where(read, data["file_size_in_bytes"].to_numpy(), 0)
        if len(data):
            with track_progress(progress, "verifying", len(data)) as report:
                for part in self._table.engine.map(work, files, sizes, report):
                    self._total.add(part)

    def _look_at_others(self) -> None:
        """Look at delete files and statistics files."""
        is_vector = pc.equal(pc.utf8_upper(self._deletes["file_format"]), PUFFIN)
        vectors, others = (self._deletes.filter(one) for one in (is_vector, pc.invert(is_vector)))
        live = set(self._data["file_path"].to_pylist())
        for data_file, problem in vectors_twice(vectors):
            if data_file in live:  # no reader looks at others
                self._total.findings.add(data_file, "deletion vectors", problem)
        readable = pa.array(is_readable(others))
        for path in others.filter(pc.invert(readable))["file_path"].to_pylist():
            self._total.warnings.add(path, "", _NOT_READ)
        checks: list[Check] = [*vector_files(vectors), *delete_files(others.filter(readable))]
        self._total.add(self._done(checks))
        listed = self._done([*statistics_files(self._metadata)])
        if listed.findings.count:  # of a file that was replaced meanwhile, nothing is said
            now = {one.path for one in self._table.catalog.load().statistics.values()}
            left = [one for one in listed.findings.first if one.file in now]
            listed.findings = Findings(len(left), left)
        self._total.add(listed)

    def _done(self, checks: Sequence[Check]) -> Checked:
        paths, rows = (self._data[name].to_pylist() for name in ("file_path", "record_count"))
        schemas = self._metadata.schemas.values()
        snapshot = CheckedSnapshot(
            self._table.places,
            dict(zip(paths, rows, strict=True)),
            {field.id: field for schema in schemas for field in schema.fields},
        )
        total = Checked()
        if checks:
            sizes = np.array([check.size for check in checks], np.int64)
            for part in self._table.engine.map(CheckWork(snapshot), checks, sizes):
                total.add(part)
        return total

    def _require_snapshot(self) -> None:
        """See that what is wrong is not so because the files were allowed to go."""
        if self._snapshot is None or not self._total.findings.count:
            return
        if self._snapshot.id not in self._table.catalog.load().snapshots:
            name, number = self._table.name, self._snapshot.id
            raise ConflictError(f"{name}: snapshot {number} is expired: refresh the table")


@dataclass(frozen=True, slots=True, eq=False)
class CheckWork:
    """The work on all other files, for `Engine.map`: an item is a check."""

    snapshot: CheckedSnapshot

    def __call__(self, task: Task[Sequence[Check]]) -> Checked:
        """Do the checks of a task."""
        total = Checked()
        with closing(in_order(self._check, task.items, task.threads)) as results:
            for found in results:
                total.add(found)
        return total

    def _check(self, check: Check) -> Checked:
        return check.run(self.snapshot)


def _ignore(_error: AlcidError) -> None:
    """What is damaged is told once, when bundles are looked into."""
