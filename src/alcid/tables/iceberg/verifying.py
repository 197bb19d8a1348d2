"""Verifying an Iceberg table: all that its snapshot and its indexes say is held against files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import AlcidError, ConflictError, FileGoneError, UnsupportedError
from alcid.tables.checked import Checked
from alcid.tables.engine import Share, Tell
from alcid.tables.iceberg.bundles import BundleFinder, FoundBundles, bundles_against
from alcid.tables.iceberg.checked_snapshot import Check, CheckedSnapshot
from alcid.tables.iceberg.cleaning import find_leftovers
from alcid.tables.iceberg.data_check import DataFileWork, is_readable
from alcid.tables.iceberg.delete_check import delete_files
from alcid.tables.iceberg.delete_plan import PUFFIN
from alcid.tables.iceberg.file_schemas import NameMapping
from alcid.tables.iceberg.statistics_check import statistics_files
from alcid.tables.iceberg.vector_check import vector_files, vectors_twice
from alcid.tables.in_order import in_order
from alcid.tables.progress import Progress, telling
from alcid.tables.verify_report import Findings, VerifyReport
from alcid.tables.verifying import check_share, choose_files, look_into

if TYPE_CHECKING:
    from alcid.tables.iceberg.table import IcebergTable

__all__ = ["CheckWork", "verify"]

_TRIES = 3
_LOOKED_AT = (
    *("file_path", "file_size_in_bytes", "record_count"),
    *("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"),
)
_NOT_READ = "not looked into: neither Parquet nor Puffin, or encrypted"


def verify(
    table: IcebergTable, sample: float = 1.0, *, progress: Progress | bool | None = None
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
        progress: How to tell how far it is, see `alcid.tables.progress.telling`.

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

    def __init__(self, table: IcebergTable) -> None:
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
            data.select(_LOOKED_AT),
            chosen & readable,
            self._table.snapshot.schema.fields,
            NameMapping.of(self._metadata.properties),
        )
        sizes = np.where(work.read, data["file_size_in_bytes"].to_numpy(), 0)
        if len(data):
            with telling(progress, "verifying", len(data)) as tell:
                for part in self._table.engine.map(work, sizes, tell):
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
            with telling(False, "verifying", 0) as tell:
                for part in self._table.engine.map(CheckWork(snapshot, checks), sizes, tell):
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
    checks: Sequence[Check]

    def __call__(self, share: Share, tell: Tell) -> Checked:
        """Do the checks of a share."""
        total = Checked()
        with closing(in_order(self._check, share.items.tolist(), share.threads)) as results:
            for found in results:
                total.add(found)
                tell(0, 0)
        return total

    def _check(self, item: int) -> Checked:
        return self.checks[item].run(self.snapshot)


def _ignore(_error: AlcidError) -> None:
    """What is damaged is told once, when bundles are looked into."""
