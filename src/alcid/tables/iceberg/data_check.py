"""Data files of an Iceberg table, against the manifests and against what bundles keep of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid import options
from alcid.bundle import BundleSet, open_bundles
from alcid.errors import AlcidError, FileGoneError, FormatError, LimitError, UnsupportedError
from alcid.iceberg_metadata.schema import Field
from alcid.parquet_file import open_scan
from alcid.tables.checked import Checked
from alcid.tables.engine import Share, Tell
from alcid.tables.file_check import FileChecker
from alcid.tables.iceberg.bundles import bundles_against
from alcid.tables.iceberg.checked_snapshot import GONE
from alcid.tables.iceberg.file_schemas import IdColumn, NameMapping
from alcid.tables.iceberg.metrics_check import MetricsChecker
from alcid.tables.iceberg.places import Places
from alcid.tables.in_order import in_order

__all__ = ["DataFileWork", "is_readable"]


def is_readable(data: pa.Table) -> npt.NDArray[np.bool_]:
    """Which files are of a format that is looked into, and not encrypted."""
    is_parquet = pc.equal(pc.utf8_upper(data["file_format"]), "PARQUET")
    found: npt.NDArray[np.bool_] = pc.and_(is_parquet, data["key_metadata"].is_null()).to_numpy()
    return found


@dataclass(frozen=True, slots=True, eq=False)
class DataFileWork:
    """The work on data files, for `Engine.map`: an item is a file."""

    places: Places
    bundles: Sequence[tuple[str, int]]
    """Paths and sizes of the statistics files with bundles, the oldest first."""
    data: pa.Table
    """The entries of the files."""
    read: npt.NDArray[np.bool_]
    """Which ones to read; the others are only looked for."""
    fields: Sequence[Field]
    """The columns of the table."""
    mapping: NameMapping | None
    """What names mean in files without ids."""

    def __call__(self, share: Share, tell: Tell) -> Checked:
        """Look at the files of a share."""
        total, files = Checked(), self.data.take(pa.array(share.items))
        # Bundles spell columns as their files do, whatever the rule for queries is.
        with options.using(replace(options.current_settings(), case_sensitive=True)):
            indexes = FileChecker(self._bundles(files), self.places.read_ranges)
            metrics = MetricsChecker(files, self.fields, self.mapping)
            check = partial(self._check, files, self.read[share.items], indexes, metrics)
            with closing(in_order(check, range(len(files)), share.threads)) as results:
                for found in results:
                    total.add(found)
                    tell(1, found.rows)
        return total

    def _bundles(self, files: pa.Table) -> BundleSet:
        sources = [self.places.source(path, size) for path, size in self.bundles]
        opened = open_bundles(sources, read_many=self.places.read_ranges, on_damage=_ignore)
        paths, sizes = files["file_path"], files["file_size_in_bytes"].to_numpy()
        return bundles_against(tuple(opened), paths, sizes, on_damage=_ignore)

    def _check(
        self,
        files: pa.Table,
        read: npt.NDArray[np.bool_],
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
            elif read[file]:
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


def _ignore(_error: AlcidError) -> None:
    """What is damaged is told once, when bundles are looked at."""
