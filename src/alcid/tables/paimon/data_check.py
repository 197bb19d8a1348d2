"""One data file of a Paimon table, read in full, against all that the table says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from alcid.bundle import ColumnStatistics
from alcid.errors import (
    ColumnError,
    FileGoneError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.container import Container
from alcid.formats.file_index.keys import key_type
from alcid.options import BsiOptions, IndexSpec
from alcid.tables.checked import Checked
from alcid.tables.entry_check import untrue
from alcid.tables.paimon.checked_table import CheckedTable, DataScan
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.file_bounds import bounds_of
from alcid.tables.paimon.files import column_type
from alcid.tables.paimon.indexes import index_sources
from alcid.tables.paimon.key_check import check_keys
from alcid.tables.payloads import Payloads
from alcid.tables.stored_options import stored_options
from alcid.tables.verify_report import STATISTICS
from alcid.types import DataType

__all__ = ["DataFileCheck"]


@dataclass(frozen=True, slots=True)
class _Index:
    """An index of a file."""

    spec: IndexSpec
    data_type: DataType
    payload: bytes


@dataclass(frozen=True, slots=True)
class DataFileCheck:
    """A data file: whether it is as its manifest says, and its indexes as its rows."""

    placed: PlacedFile

    @property
    def size(self) -> int:
        """All of it is read."""
        return self.placed.file.size

    def run(self, table: CheckedTable) -> Checked:
        """Read the file, and compare."""
        file, path = self.placed.file, self.placed.path
        found = Checked(checked=1, rows=file.rows)
        try:
            size = table.storage.stat(path).size
            if size != file.size:
                found.findings.add(path, "size", f"found {size} bytes, expected {file.size}")
            else:
                self._compare(table, found)
        except FileGoneError:
            return table.gone(path)
        except (FormatError, LimitError, UnsupportedError) as error:
            found.findings.add(path, "", error)
        return found

    def _compare(self, table: CheckedTable, found: Checked) -> None:
        file, path = self.placed.file, self.placed.path
        scan = table.open(self.placed)
        rows = sum(scan.group_rows)
        if rows != file.rows:
            found.findings.add(path, "rows", f"found {file.rows:,}, expected {rows:,}")
            return
        statistics, indexes = self._statistics(table, found), self._indexes(table, found)
        for name in self._columns(table):
            try:
                values = self._values(table, scan, name)
            except (FormatError, UnsupportedError) as error:
                found.findings.add(path, f"column {name!r}", error)
                continue
            if name in statistics:
                self._compare_statistics(table, name, statistics[name], values, found)
            self._compare_indexes(table, indexes.get(name, []), values, found)
        if table.schema.primary_keys:
            for what, problem in check_keys(table, self.placed, scan):
                found.findings.add(path, what, problem)

    def _columns(self, table: CheckedTable) -> list[str]:
        """The columns that were written, as the file spells them."""
        written = self.placed.file.write_columns
        names = table.schema_of(self.placed).names
        return [name for name in names if written is None or name in written]

    def _values(self, table: CheckedTable, scan: DataScan, name: str) -> pa.ChunkedArray:
        """A column in the type that its schema has for it; nulls where the file lacks it."""
        arrow_type = column_type(table.schema_of(self.placed).types[name])
        rows = table.read(scan, [name])
        if not rows.num_columns:
            return pa.chunked_array([pa.nulls(self.placed.file.rows, arrow_type)])
        values = rows.column(0)
        try:
            return values if values.type == arrow_type else values.cast(arrow_type)
        except pa.ArrowException as error:
            problem = str(error).splitlines()[0]
            raise UnsupportedError(
                f"found {values.type}, expected {arrow_type}: {problem}"
            ) from None

    def _statistics(self, table: CheckedTable, found: Checked) -> dict[str, pa.StructScalar]:
        """What the manifest says of columns."""
        file = self.placed.file
        own = table.schema_of(self.placed)
        names = next(filter(None, (file.stats_columns, file.write_columns)), own.names)
        if file.stats_columns == ():
            names = ()
        if not set(names) <= set(own.names):
            found.warnings.add(self.placed.path, STATISTICS, "of columns that its schema lacks")
            return {}
        types = [own.types[name] for name in names]
        rows = np.array([file.rows])
        known = {
            name: bounds_of([file.value_stats], place, types, rows)[0]
            for place, name in enumerate(names)
        }
        for name in (name for name, one in known.items() if not one.is_valid):
            what = f"{STATISTICS} of {table.label(self.placed, name)!r}"
            problem = "cannot be read, or contradict themselves: they are not used"
            found.warnings.add(self.placed.path, what, problem)
        return {name: one for name, one in known.items() if one.is_valid}

    def _compare_statistics(
        self,
        table: CheckedTable,
        name: str,
        stored: pa.StructScalar,
        values: pa.ChunkedArray,
        found: Checked,
    ) -> None:
        exact = ColumnStatistics.of(values, table.schema_of(self.placed).types[name])
        expected = {
            "min": _comparable(exact.minimum),
            "max": _comparable(exact.maximum),
            "min_exact": True,
            "max_exact": True,
            "nulls": exact.nulls,
            "has_nan": exact.has_nan,
        }
        told = {field: _comparable(stored[field]) for field in expected}
        label = table.label(self.placed, name)
        found.count(self.placed.path, label, STATISTICS, untrue(told, expected))

    def _indexes(self, table: CheckedTable, found: Checked) -> Mapping[str, list[_Index]]:
        """The indexes of the file, by the column that has to be read for them."""
        indexes: dict[str, list[_Index]] = {}
        try:
            for index in self._read_indexes(table, found):
                indexes.setdefault(index.spec.top_level, []).append(index)
        except FormatError as error:
            if not table.is_expired:
                found.findings.add(self.placed.path, "index", error)
        return indexes

    def _read_indexes(self, table: CheckedTable, found: Checked) -> Iterator[_Index]:
        (source,) = index_sources(table.storage, [self.placed])
        if source is None:
            return
        if isinstance(source, FormatError):
            raise source
        container = Container.open(source)
        types = table.schema_of(self.placed).types
        for entry in sorted(container.entries, key=lambda one: (one.column, one.index_type)):
            if entry.index_type not in BUILDERS:
                continue
            spec = IndexSpec(entry.column, entry.index_type, BsiOptions())
            try:
                _, data_type = spec.resolve(types)
            except (ColumnError, UnsupportedError) as error:
                self._count(table, spec, f"cannot be of this file: {error}", found)
                continue
            payload = b"" if entry.is_empty else container.section(entry).read(0, entry.length)
            options = stored_options(entry.index_type, payload, key_type(data_type))
            yield _Index(replace(spec, options=options), data_type, payload)

    def _compare_indexes(
        self,
        table: CheckedTable,
        indexes: list[_Index],
        values: pa.ChunkedArray,
        found: Checked,
    ) -> None:
        made = Payloads()
        made.build(values, [(one.spec, one.data_type) for one in indexes])
        for one in indexes:
            name = one.spec.column, one.spec.index_type
            if name in made.skipped:
                self._count(table, one.spec, f"cannot be of this file: {made.skipped[name]}", found)
                continue
            found.compare(
                self.placed.path,
                table.label(self.placed, one.spec.column),
                one.spec,
                one.payload,
                made.built[name] or b"",
                lambda one=one: (values, one.data_type),  # type: ignore[misc]
            )

    def _count(self, table: CheckedTable, spec: IndexSpec, problem: str, found: Checked) -> None:
        label = table.label(self.placed, spec.column)
        found.count(self.placed.path, label, spec.index_type, problem)


def _comparable(value: Any) -> Any:
    """A bound as what compares alike; moments as numbers, since Python has no nanoseconds."""
    if not isinstance(value, pa.Scalar):
        return value
    return value.value if pa.types.is_temporal(value.type) and value.is_valid else value.as_py()
