"""One data file of a Paimon table, read in full, against all that the table says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

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
from alcid.orc_file import OrcScan
from alcid.tables.checked import Checked
from alcid.tables.conversions import column_type
from alcid.tables.entry_check import untrue_of
from alcid.tables.paimon.checked_table import CheckedTable
from alcid.tables.paimon.data_files import DataScan, PlacedFile
from alcid.tables.paimon.file_bounds import bounds_of
from alcid.tables.paimon.index_beginnings import index_sources
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
                _Reading(table, self.placed, found).compare()
        except FileGoneError:
            return table.gone(path)
        except (FormatError, LimitError, UnsupportedError) as error:
            found.findings.add(path, "", error)
        return found


class _Reading:
    """A data file that is being compared."""

    def __init__(self, table: CheckedTable, placed: PlacedFile, found: Checked) -> None:
        self._table, self._placed, self._found = table, placed, found
        self._file, self._path = placed.file, placed.path
        self._schema = table.schema_of(placed)
        now = table.schema.by_id
        self._labels = {one.name: now[one.id].name for one in self._schema.fields if one.id in now}

    def _label(self, column: str) -> str:
        """What the table calls a column, or a key of a map, by now, if it still has it."""
        own, bracket, key = column.partition("[")
        return f"{self._labels.get(own, own)}{bracket}{key}"

    def compare(self) -> None:
        """Read all columns, one at a time."""
        scan = self._table.open(self._placed)
        rows = sum(scan.group_rows)
        if rows != self._file.rows:
            problem = f"found {self._file.rows:,}, expected {rows:,}"
            self._found.findings.add(self._path, "rows", problem)
            return
        statistics, indexes = self._statistics(), self._indexes()
        written = self._file.write_columns
        for name in self._schema.names:
            if written is not None and name not in written:
                continue
            try:
                values = self._values(scan, name)
            except (FormatError, UnsupportedError) as error:
                self._found.findings.add(self._path, f"column {name!r}", error)
                continue
            if values is None:
                continue
            if name in statistics:
                self._compare_statistics(name, statistics[name], values)
            self._compare_indexes(indexes.get(name, []), values)
        if self._table.schema.primary_keys:
            for what, problem in check_keys(self._table, self._placed, scan):
                self._found.findings.add(self._path, what, problem)

    def _values(self, scan: DataScan, name: str) -> pa.ChunkedArray | None:
        """A column in the type that its schema has for it; nulls where the file lacks it.

        None if it is a column of a sound ORC file that is not read here, by its time zone or a null
        key of a map.
        """
        arrow_type = column_type(self._schema.types[name])
        try:
            rows = self._table.read(scan, [name])
        except UnsupportedError as error:
            if not isinstance(scan, OrcScan):
                raise
            self._found.warnings.add(self._path, f"column {name!r}", f"not checked: {error}")
            return None
        if not rows.num_columns:
            return pa.chunked_array([pa.nulls(self._file.rows, arrow_type)])
        values = rows.column(0)
        try:
            return values if values.type == arrow_type else values.cast(arrow_type)
        except pa.ArrowException as error:
            problem = str(error).splitlines()[0]
            raise UnsupportedError(
                f"found {values.type}, expected {arrow_type}: {problem}"
            ) from None

    def _statistics(self) -> dict[str, pa.StructScalar]:
        """What the manifest says of columns, as far as it can be used."""
        given = (self._file.stats_columns, self._file.write_columns, self._schema.names)
        names = next(one for one in given if one is not None)
        if not set(names) <= set(self._schema.names):
            self._found.warnings.add(self._path, STATISTICS, "of columns that its schema lacks")
            return {}
        types = [self._schema.types[name] for name in names]
        rows = np.array([self._file.rows])
        known = {
            name: bounds_of([self._file.value_stats], place, types, rows)[0]
            for place, name in enumerate(names)
        }
        for name in (name for name, one in known.items() if not one.is_valid):
            problem = "cannot be read, or contradict themselves: they are not used"
            what = f"{STATISTICS} of {self._label(name)!r}"
            self._found.warnings.add(self._path, what, problem)
        return {name: one for name, one in known.items() if one.is_valid}

    def _compare_statistics(
        self, name: str, stored: pa.StructScalar, values: pa.ChunkedArray
    ) -> None:
        problem = untrue_of(stored, values, self._schema.types[name])
        self._found.count(self._path, self._label(name), STATISTICS, problem)

    def _indexes(self) -> dict[str, list[_Index]]:
        """The indexes of the file, by the column that has to be read for them."""
        indexes: dict[str, list[_Index]] = {}
        try:
            for index in self._read_indexes():
                indexes.setdefault(index.spec.top_level, []).append(index)
        except FormatError as error:
            if not self._table.is_expired:
                self._found.findings.add(self._path, "index", error)
        return indexes

    def _read_indexes(self) -> Iterator[_Index]:
        (source,) = index_sources(self._table.storage, [self._placed])
        if source is None:
            return
        if isinstance(source, FormatError):
            raise source
        container = Container.open(source)
        for entry in sorted(container.entries, key=lambda one: (one.column, one.index_type)):
            if entry.index_type not in BUILDERS:
                continue
            spec = IndexSpec(entry.column, entry.index_type, BsiOptions())
            try:
                _, data_type = spec.resolve(self._schema.types)
            except (ColumnError, UnsupportedError) as error:
                self._count(spec, f"cannot be of this file: {error}")
                continue
            payload = b"" if entry.is_empty else container.section(entry).read(0, entry.length)
            options = stored_options(entry.index_type, payload, key_type(data_type))
            yield _Index(replace(spec, options=options), data_type, payload)

    def _compare_indexes(self, indexes: Sequence[_Index], values: pa.ChunkedArray) -> None:
        made = Payloads()
        made.build(values, [(one.spec, one.data_type) for one in indexes])
        for one in indexes:
            name = one.spec.column, one.spec.index_type
            self._found.compare(
                self._path,
                self._label(one.spec.column),
                one.spec,
                one.payload,
                made.built[name] or b"" if name in made.built else None,
                lambda one=one: (values, one.data_type),  # type: ignore[misc]
            )

    def _count(self, spec: IndexSpec, problem: str) -> None:
        self._found.count(self._path, self._label(spec.column), spec.index_type, problem)
