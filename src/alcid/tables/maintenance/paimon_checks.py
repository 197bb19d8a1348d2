"""The checks of the files of a Paimon table, against all that the table says of them.

Data files are read in full: size, rows, columns, statistics, file indexes and, with a primary key,
the order of keys. Index files are read for their deletion vectors or hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.datafiles.orc import OrcScan
from alcid.errors import (
    ColumnError,
    FileGoneError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile, DeletionVectorRange
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.container import Container
from alcid.formats.file_index.keys import key_type
from alcid.formats.hash_index import HashIndex
from alcid.index.build import BuiltIndexes
from alcid.options import BsiOptions, IndexSpec
from alcid.storage import Storage
from alcid.tables.casts import column_type
from alcid.tables.key_order import join_columns, rank_rows
from alcid.tables.maintenance.bundle_check import untrue_of
from alcid.tables.maintenance.findings import MISSING, STATISTICS, Checked, FindingKind
from alcid.tables.maintenance.index_check import compare_payload, stored_options
from alcid.tables.paimon.data_files import (
    DataScan,
    PlacedFile,
    open_data,
    read_present,
)
from alcid.tables.paimon.files import bounds_of
from alcid.tables.paimon.indexes import index_sources
from alcid.tables.paimon.merge_on_read import (
    KIND,
    NUMBER,
    are_deletes,
    key_name,
)
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.snapshot import MAIN, snapshot_path
from alcid.tables.paimon.metadata.statistics import unpack_rows
from alcid.tables.paimon.metadata.table_state import DELETION_VECTORS, HASH, IndexEntry
from alcid.types import DataType


@dataclass(frozen=True, slots=True, eq=False)
class CheckedTable:
    """A table at the snapshot that is verified; it pickles."""

    storage: Storage
    snapshot_id: int
    schema: TableSchema
    schemas: Mapping[int, TableSchema]
    """Of its files, by their ids."""
    options: TableOptions
    branch: str = MAIN

    def schema_of(self, placed: PlacedFile) -> TableSchema:
        """The schema by which a file was written."""
        return self.schemas[placed.file.schema_id]

    def open(self, placed: PlacedFile) -> DataScan:
        """Read the footer of a file."""
        return open_data(self.storage, placed, self.options)

    def read(self, scan: DataScan, columns: Sequence[str]) -> pa.Table:
        """Columns of a file, as far as it has them."""
        return read_present(scan, columns, self.storage)

    @property
    def is_expired(self) -> bool:
        """Whether the snapshot has gone meanwhile, and so its files may."""
        return not self.storage.exists(snapshot_path(self.snapshot_id, self.branch))


@dataclass(frozen=True, slots=True)
class IndexFileCheck:
    """An index file of a bucket."""

    entry: IndexEntry
    path: str
    rows: Mapping[str, int]
    """Of those data files that it has vectors of and that are live, by their names."""

    @property
    def size(self) -> int:
        """All of it is read."""
        return self.entry.size

    def run(self, table: CheckedTable) -> Checked:
        """Read the file, and compare."""
        checked = Checked()
        if self.entry.external_path is not None:
            return checked
        if self.entry.index_type == DELETION_VECTORS and not self.entry.ranges:
            self._warn(checked)
        try:
            size = table.storage.stat(self.path).size
            if size != self.entry.size:
                problem = f"found {size} bytes, expected {self.entry.size}"
                checked.findings.add(FindingKind.SIZE, self.path, problem)
            elif self.entry.index_type == DELETION_VECTORS:
                self._check_vectors(table, checked)
            elif self.entry.index_type == HASH:
                self._check_hashes(table, checked)
        except FileGoneError:
            if not table.is_expired:
                checked.findings.add(FindingKind.INDEX_FILE, self.path, MISSING)
        except FormatError as error:
            checked.findings.add(FindingKind.INDEX_FILE, self.path, error)
        return checked

    def _warn(self, checked: Checked) -> None:
        """Warn of an entry without vectors."""
        if self.entry.ranges is None:
            problem = "without ranges: writers of Paimon's Java fail on the bucket"
        else:
            problem = (
                "of no file: when pypaimon commits, writers of Paimon's Java fail on the bucket"
            )
        checked.findings.warn(FindingKind.VECTOR_RANGES, self.path, problem)

    def _check_vectors(self, table: CheckedTable, checked: Checked) -> None:
        ranges = self.entry.ranges or ()
        if self.entry.rows != len(ranges):
            problem = f"found {self.entry.rows}, expected {len(ranges)}"
            checked.findings.add(FindingKind.INDEX_FILE_ROWS, self.path, problem)
        with DeletionVectorFile.open(table.storage.source(self.path, self.entry.size)) as file:
            try:
                vectors = file.read_all(ranges)
            except FormatError:
                vectors = self._read_each(file, ranges, checked)
        for name, vector in vectors.items():
            if name not in self.rows:
                # Compactions of Java leave some: no reader looks at it.
                problem = "it is no live data file"
                checked.findings.warn(FindingKind.VECTOR, self.path, problem, data_file=name)
            elif vector.last is not None and vector.last >= self.rows[name]:
                problem = f"found row {vector.last}, expected below {self.rows[name]}"
                checked.findings.add(FindingKind.VECTOR, self.path, problem, data_file=name)

    def _read_each(
        self, file: DeletionVectorFile, ranges: Iterable[DeletionVectorRange], checked: Checked
    ) -> dict[str, DeletionVector]:
        """Read each vector by itself; those that can be read."""
        vectors: dict[str, DeletionVector] = {}
        for vector_range in ranges:
            name = vector_range.data_file
            try:
                vectors[name] = file.read(vector_range)
            except FormatError as error:
                checked.findings.add(FindingKind.VECTOR, self.path, error, data_file=name)
        return vectors

    def _check_hashes(self, table: CheckedTable, checked: Checked) -> None:
        data = table.storage.source(self.path).read(0, self.entry.size)
        index = HashIndex.from_bytes(data, name=self.path)
        hashes = len(index) + index.duplicates
        if hashes != self.entry.rows:
            problem = f"found {self.entry.rows}, expected {hashes}"
            checked.findings.add(FindingKind.INDEX_FILE_ROWS, self.path, problem)


def check_keys(
    table: CheckedTable, placed: PlacedFile, scan: DataScan
) -> Iterator[tuple[FindingKind, str]]:
    """What is wrong with the keys of a file, and with what the manifest says of them."""
    file, own = placed.file, table.schema_of(placed)
    ids = [table.schema.field(name).id for name in table.schema.key_columns]
    names = [own.by_id[number].name for number in ids]
    kinds = [own.types[name] for name in names]
    rows = table.read(scan, [NUMBER, KIND, *map(key_name, names), *names])
    for name in (NUMBER, KIND):
        if name not in rows.column_names:
            yield FindingKind.KEYS, f"no column {name}"
            return
    if not rows.num_rows:
        return
    deletes = int(are_deletes(rows.column(KIND).to_numpy()).sum())
    if file.delete_rows is not None and file.delete_rows != deletes:
        yield FindingKind.DELETE_ROWS, f"found {file.delete_rows:,}, expected {deletes:,}"
    numbers = rows.column(NUMBER).to_numpy()
    minimum, maximum = int(numbers.min()), int(numbers.max())
    if not file.min_sequence <= minimum <= maximum <= file.max_sequence:
        stated = f"found {file.min_sequence} to {file.max_sequence}"
        yield FindingKind.SEQUENCE_NUMBERS, f"{stated}, expected {minimum} to {maximum}"
    inside = [key_name(name) if key_name(name) in rows.column_names else name for name in names]
    keys = [
        rows.column(name).cast(kind.to_arrow()) for name, kind in zip(inside, kinds, strict=True)
    ]
    bounds = unpack_rows([file.min_key, file.max_key], kinds, file=placed.path)
    ranks = rank_rows(join_columns([bounds, keys]), rows.num_rows + 2)
    yield from _check_order(ranks[2:], int(ranks[0]), int(ranks[1]), level=file.level)


def _check_order(
    ranks: Int64Array, minimum: int, maximum: int, *, level: int
) -> Iterator[tuple[FindingKind, str]]:
    # Some writers repeat a key on level 0; merging leaves one of them.
    steps = np.diff(ranks)
    wrong = np.flatnonzero(steps <= 0 if level else steps < 0)
    if len(wrong):
        yield FindingKind.KEYS, f"row {int(wrong[0]) + 1} is not above the row before it"
    beyond = np.flatnonzero((ranks < minimum) | (ranks > maximum))
    if len(beyond):
        yield FindingKind.KEYS, f"row {int(beyond[0])} is beyond the min or max key of the manifest"


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
        checked = Checked(files=1, checked=1, rows=file.rows)
        try:
            size = table.storage.stat(path).size
            if size != file.size:
                problem = f"found {size} bytes, expected {file.size}"
                checked.findings.add(FindingKind.SIZE, path, problem)
            else:
                _Comparison(table, self.placed, checked).run()
        except FileGoneError:
            if table.is_expired:
                return Checked(files=1, changed=1)
            checked.rows = 0
            checked.findings.add(FindingKind.DATA_FILE, path, MISSING)
        except (FormatError, LimitError, UnsupportedError) as error:
            checked.findings.add(FindingKind.DATA_FILE, path, error)
        return checked


class _Comparison:
    """A data file that is being compared."""

    def __init__(self, table: CheckedTable, placed: PlacedFile, checked: Checked) -> None:
        self._table, self._placed, self._checked = table, placed, checked
        self._file, self._path = placed.file, placed.path
        self._schema = table.schema_of(placed)
        now = table.schema.by_id
        self._labels = {
            field.name: now[field.id].name for field in self._schema.fields if field.id in now
        }

    def _label(self, column: str) -> str:
        """What the table calls a column, or a key of a map, by now, if it still has it."""
        own, bracket, key = column.partition("[")
        return f"{self._labels.get(own, own)}{bracket}{key}"

    def run(self) -> None:
        """Read all columns, one at a time."""
        scan = self._table.open(self._placed)
        rows = sum(scan.group_rows)
        if rows != self._file.rows:
            problem = f"found {self._file.rows:,}, expected {rows:,}"
            self._checked.findings.add(FindingKind.ROWS, self._path, problem)
            return
        statistics, indexes = self._statistics(), self._indexes()
        written = self._file.write_columns
        for name in self._schema.names:
            if written is not None and name not in written:
                continue
            try:
                values = self._values(scan, name)
            except (FormatError, UnsupportedError) as error:
                self._checked.findings.add(FindingKind.COLUMN, self._path, error, column=name)
                continue
            if values is None:
                continue
            if name in statistics:
                self._compare_statistics(name, statistics[name], values)
            self._compare_indexes(indexes.get(name, []), values)
        if self._table.schema.primary_keys:
            for kind, problem in check_keys(self._table, self._placed, scan):
                self._checked.findings.add(kind, self._path, problem)

    def _values(self, scan: DataScan, name: str) -> pa.ChunkedArray | None:
        """A column in the type that its schema has for it; nulls where the file does not have it.

        None if it is a column of a sound ORC file that is not read here, by its time zone or a null
        key of a map.
        """
        arrow_type = column_type(self._schema.types[name])
        try:
            rows = self._table.read(scan, [name])
        except UnsupportedError as error:
            if not isinstance(scan, OrcScan):
                raise
            problem = f"not checked: {error}"
            self._checked.findings.warn(FindingKind.COLUMN, self._path, problem, column=name)
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
        choices = (self._file.stats_columns, self._file.write_columns, self._schema.names)
        names = next(columns for columns in choices if columns is not None)
        if unknown := sorted(set(names) - set(self._schema.names)):
            self._warn_of_statistics(unknown[0], "of a column that its schema does not have")
            return {}
        types = [self._schema.types[name] for name in names]
        rows = np.array([self._file.rows])
        bounds = {
            name: bounds_of([self._file.value_stats], position, types, rows)[0]
            for position, name in enumerate(names)
        }
        for name in (name for name, stated in bounds.items() if not stated.is_valid):
            problem = "cannot be read, or contradict themselves: they are not used"
            self._warn_of_statistics(self._label(name), problem)
        return {name: stated for name, stated in bounds.items() if stated.is_valid}

    def _warn_of_statistics(self, column: str, problem: str) -> None:
        self._checked.findings.warn(FindingKind.STATISTICS, self._path, problem, column=column)

    def _compare_statistics(
        self, name: str, stored: pa.StructScalar, values: pa.ChunkedArray
    ) -> None:
        problem = untrue_of(stored, values, self._schema.types[name])
        self._checked.count(self._path, self._label(name), STATISTICS, problem)

    def _indexes(self) -> dict[str, list[_Index]]:
        """The indexes of the file, by the column that has to be read for them."""
        indexes: dict[str, list[_Index]] = {}
        try:
            for index in self._read_indexes():
                indexes.setdefault(index.spec.top_level, []).append(index)
        except FormatError as error:
            if not self._table.is_expired:
                self._checked.findings.add(FindingKind.CONTAINER, self._path, error)
        return indexes

    def _read_indexes(self) -> Iterator[_Index]:
        (source,) = index_sources(self._table.storage, [self._placed])
        if source is None:
            return
        if isinstance(source, FormatError):
            raise source
        container = Container.open(source)
        for entry in sorted(container.entries, key=lambda item: (item.column, item.index_type)):
            if entry.index_type not in BUILDERS:
                continue
            # Any options do until those of the payload are known.
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
        made = BuiltIndexes()
        made.build(values, [(index.spec, index.data_type) for index in indexes])
        for index in indexes:
            name = index.spec.column, index.spec.index_type
            compare_payload(
                self._checked,
                self._path,
                self._label(index.spec.column),
                index.spec,
                index.payload,
                made.built[name] or b"" if name in made.built else None,
                lambda index=index: (values, index.data_type),  # type: ignore[misc]
            )

    def _count(self, spec: IndexSpec, problem: str) -> None:
        self._checked.count(self._path, self._label(spec.column), spec.index_type, problem)
