"""Min/max of files that no bundle and no manifest has bounds of, from their footers.

A build keeps such bounds with the indexes. So what they would skip is not to the credit of an
index, and advice has to know them beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.advise.sample import ColumnSample
from alcid.errors import UnsupportedError
from alcid.index.bundle import ColumnStatistics, Statistics
from alcid.index.bundle.statistics import statistics_array
from alcid.scan import Bounds, FileScan, TableFiles
from alcid.types import DataType


def own_bounds(files: TableFiles, column: str, data_type: DataType) -> Bounds | None:
    """What a table itself knows of a column; None if it knows no bound of any file."""
    bounds = files.bounds(column, data_type)
    return None if bounds is None or bounds.minima.null_count == len(bounds.minima) else bounds


class FileBounds:
    """The bounds of some files of a table; of the others nothing is known."""

    def __init__(self, files: TableFiles, looked: Int64Array) -> None:
        """Take the files whose footers may be read."""
        self._files, self.looked = files, looked
        self._scans: dict[int, FileScan] = {}
        self._bounds: dict[tuple[str, DataType, bool], Bounds | None] = {}
        self._from_footers: dict[tuple[str, DataType], list[ColumnStatistics | None]] = {}
        self._read: dict[str, dict[int, ColumnStatistics]] = {}

    def take(self, samples: Iterable[ColumnSample]) -> None:
        """Know what was read of files."""
        for sample in samples:
            if sample.statistics is not None:
                self._read.setdefault(sample.own_name, {})[sample.file] = sample.statistics
        self._bounds.clear()

    def of(self, column: str, data_type: DataType, *, is_read: bool) -> Bounds | None:
        """The bounds of a column, as files spell it, where it is of a type.

        With `is_read`, as they will be known when the column was read to index it: a footer does
        not say whether there is a NaN.
        """
        name = column, data_type, is_read
        if name not in self._bounds:
            self._bounds[name] = self._make(column, data_type, is_read)
        return self._bounds[name]

    def _make(self, column: str, data_type: DataType, is_read: bool) -> Bounds | None:
        entries = list(self._footers(column, data_type))
        if is_read:
            read = {
                file: statistics
                for file, statistics in self._read.get(column, {}).items()
                if statistics.data_type == data_type
            }
            has_nan = any(statistics.has_nan for statistics in read.values())
            entries = [
                read.get(file, None if statistics is None else replace(statistics, has_nan=has_nan))
                for file, statistics in enumerate(entries)
            ]
        if not any(entries):
            return None
        values = statistics_array(column, data_type, entries)
        return Bounds(Statistics(column, data_type, values), self._files.rows)

    def _footers(self, column: str, data_type: DataType) -> list[ColumnStatistics | None]:
        if (column, data_type) not in self._from_footers:
            statistics: list[ColumnStatistics | None] = [None] * len(self._files.sizes)
            table = self._files.columns
            for file in self.looked.tolist():
                own = table.schemas[int(table.schema_of[file])].get(column)
                if own is not None and own.data_type == data_type and not own.problem:
                    statistics[file] = self._footer(file, column, data_type)
            self._from_footers[column, data_type] = statistics
        return self._from_footers[column, data_type]

    def _footer(self, file: int, column: str, data_type: DataType) -> ColumnStatistics | None:
        if not self._scans:
            files = self.looked.tolist()
            self._scans = dict(zip(files, self._files.open(files), strict=True))
        scan = self._scans[file]
        bounds = self._files.group_bounds(file, scan, [column]).get(column)
        if bounds is None or bounds.statistics.data_type != data_type:
            return None
        joined = _joined(bounds.statistics.values, np.array(scan.group_rows, np.int64), data_type)
        try:
            statistics_array(column, data_type, [joined])
        except UnsupportedError:
            return None
        return joined


def _joined(values: pa.StructArray, rows: Int64Array, data_type: DataType) -> ColumnStatistics:
    """The statistics of a file from those of its row groups."""
    filled = pa.array(rows > 0)
    values, rows = values.filter(filled), rows[rows > 0]
    nulls = values.field("nulls")
    minima, maxima = values.field("min"), values.field("max")
    without = pc.fill_null(pc.equal(nulls, pa.array(rows)), False)
    count = None if nulls.null_count else int(pc.sum(nulls).as_py() or 0)
    is_bounded = pc.or_(without, pc.and_(pc.is_valid(minima), pc.is_valid(maxima)))
    if values.null_count or pa.types.is_null(minima.type) or not pc.all(is_bounded).as_py():
        return ColumnStatistics(data_type, nulls=count)
    exact = bool(pc.all(values.field("min_exact")).as_py())
    return ColumnStatistics(
        data_type,
        pc.min_max(minima)["min"] if minima.null_count < len(minima) else None,
        pc.min_max(maxima)["max"] if maxima.null_count < len(maxima) else None,
        count,
        None,
        exact,
        exact,
    )
