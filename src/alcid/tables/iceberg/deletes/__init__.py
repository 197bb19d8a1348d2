"""The deleted rows of data files: by deletion vectors, position deletes and equality deletes.

All of them become row positions of a data file, which are read only for the files in a scan plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.formats.deletion_vector import DeletionVector
from alcid.scan.deletes import DecidedRows
from alcid.tables.iceberg.catalog import RemovedDeletes
from alcid.tables.iceberg.data_files import IdFiles
from alcid.tables.iceberg.deletes.files import EqualityDeletes, Positions, ReadFields
from alcid.tables.iceberg.deletes.plan import PUFFIN, DeletePlan, lost_fields, removed_deletes
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import EQUALITY_DELETES, Entries
from alcid.tables.iceberg.metadata.schema import Field, PartitionSpec
from alcid.tables.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["DeleteColumns", "IcebergDeletes", "TableDeletes", "delete_problem"]


_FORMATS = ("PARQUET", PUFFIN)


def delete_problem(deletes: pa.Table, metadata: TableMetadata) -> str:
    """Why delete files are not supported; empty if they are.

    Args:
        deletes: The entries of delete files.
        metadata: The table metadata.
    """
    for name in pc.unique(pc.utf8_upper(deletes["file_format"])).to_pylist():
        if name not in _FORMATS:
            return f"delete files in {name}"
    if deletes["key_metadata"].null_count < len(deletes):
        return "encrypted delete files"
    equality = deletes.filter(pc.equal(deletes["content"], EQUALITY_DELETES))
    for number in pc.unique(equality["spec_id"]).to_pylist():
        for name in lost_fields(deletes, metadata.specs, number):
            return f"equality deletes in partitions by {name}, whose column was dropped"
    fields = _all_fields(metadata)
    for number in pc.unique(pc.list_flatten(equality["equality_ids"])).to_pylist():
        if number not in fields:
            return f"equality deletes by field {number}, which is not a column"
        data_type = fields[number].data_type
        if data_type is None or data_type.children:
            return f"equality deletes by {fields[number].type_text}"
    return ""


def _all_fields(metadata: TableMetadata) -> dict[int, Field]:
    """The columns of all schemas by id; the current schema wins."""
    schemas = [*metadata.schemas.values(), metadata.schema]
    return {field.id: field for schema in schemas for field in schema.fields}


@dataclass(frozen=True, slots=True, eq=False)
class DeleteColumns:
    """What delete files refer to: partition specs, and columns by field id."""

    location: str
    """The location of the table."""
    specs: Mapping[int, PartitionSpec]
    fields: Mapping[int, Field]
    """The columns of all schemas; the current schema wins."""

    @classmethod
    def of(cls, metadata: TableMetadata) -> DeleteColumns:
        """Those of a table."""
        return cls(metadata.location, metadata.specs, _all_fields(metadata))


@dataclass(frozen=True, eq=False)
class IcebergDeletes:
    """Deleted rows that are not looked for yet: the delete files of data files; it pickles."""

    entries: Entries
    numbers: Int64Array
    """The numbers in the table of the data files among the entries."""
    columns: DeleteColumns
    file_io: FileIO
    data: IdFiles
    """The data files."""
    units: Sequence[Int64Array]
    """The data files of each unit."""
    sizes: Int64Array
    """The bytes of delete files, and of the columns that are compared with equality deletes."""

    def take(self, units: Int64Array) -> IcebergDeletes:
        """Some of the units, with the entries of their data files and of what may apply to them."""
        chosen = [self.units[unit] for unit in units.tolist()]
        files = np.unique(np.concatenate([np.zeros(0, np.int64), *chosen]))
        rows = np.searchsorted(self.numbers, files)
        return IcebergDeletes(
            self._part(rows),
            files,
            self.columns,
            self.file_io,
            self.data.part(rows),
            chosen,
            self.sizes[units],
        )

    def resolve(self, unit: int) -> dict[int, DecidedRows]:
        """Read the delete files of a unit, and compare rows with equality deletes.

        Raises:
            FormatError: A delete file is damaged, or a data file has two vectors.
        """
        rows = np.searchsorted(self.numbers, self.units[unit])
        part = self.data.part(rows)
        deletes = TableDeletes(self._part(rows), self.columns, self.file_io, part.read_fields)
        deletes.load(np.arange(len(rows)))
        return {
            file: DecidedRows(deletes[row] if row in deletes else DeletionVector())
            for row, file in enumerate(self.units[unit].tolist())
        }

    def _part(self, rows: Int64Array) -> Entries:
        return Entries(
            self.entries.data.take(pa.array(rows)),
            self.entries.deletes.take(pa.array(self._plan.applicable(rows))),
        )

    @cached_property
    def _plan(self) -> DeletePlan:
        return DeletePlan(self.entries, self.columns.specs)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_plan"}


class TableDeletes(Mapping[int, DeletionVector]):
    """The deleted rows of data files that may have any, by the number of the file."""

    def __init__(
        self, entries: Entries, columns: DeleteColumns, file_io: FileIO, read: ReadFields
    ) -> None:
        """Plan which delete files apply, without reading any.

        Args:
            entries: The entries of the snapshot; the number of a data file is its row there.
            columns: The columns that delete files may name.
            file_io: Opens delete files.
            read: Reads columns of a data file.

        Raises:
            FormatError: The entries contradict each other.
        """
        self._entries, self._columns, self._file_io = entries, columns, file_io
        self._deletes, self._specs = entries.deletes, columns.specs
        self._plan = plan = DeletePlan(entries, columns.specs)
        self._candidates = frozenset(plan.files.tolist())
        remote = file_io.folder(columns.location).remote
        self._positions = Positions(entries, plan, file_io, remote=remote)
        self._equality = EqualityDeletes(
            entries.deletes, plan, columns.fields, file_io, read, remote=remote
        )
        self._loaded: dict[int, DeletionVector] = {}
        self._loading = Lock()

    def load(self, files: Int64Array) -> None:
        """Read the delete files of some data files, in few rounds.

        Raises:
            FormatError: A delete file is damaged, or a data file has two vectors: a deleted row
                must not come back.
        """
        with self._loading:
            missing = [
                file
                for file in files.tolist()
                if file in self._candidates and file not in self._loaded
            ]
            self._positions.load(missing)
            for file, rows in zip(missing, self._equality.find(missing), strict=True):
                self._loaded[file] = self._positions[file] | rows

    def pending(self, files: Int64Array, data: IdFiles) -> IcebergDeletes | None:
        """The deleted rows of some data files that are not loaded; None: all of them are.

        Args:
            files: The data files.
            data: All data files, which tasks open.
        """
        missing = [
            file for file in files.tolist() if file in self._candidates and file not in self._loaded
        ]
        if not missing:
            return None
        units, sizes = self._plan.units(np.array(missing, np.int64))
        numbers = np.arange(len(self._entries.data))
        return IcebergDeletes(
            self._entries, numbers, self._columns, self._file_io, data, units, sizes
        )

    def positions(self, file: int) -> DeletionVector:
        """The rows deleted by a vector or by position deletes, which a new vector must include."""
        with self._loading:
            self._positions.load([file])
            return self._positions[file]

    def removable(self, file: int) -> list[RemovedDeletes]:
        """The delete files that a new vector of a data file replaces."""
        vector = self._plan.vector(file)
        rows = [*self._plan.own_positions(file), *([] if vector is None else [vector])]
        return [removed_deletes(self._deletes, row, self._specs) for row in rows]

    def __getitem__(self, file: int) -> DeletionVector:
        if file not in self._candidates:
            raise KeyError(file)
        if file not in self._loaded:
            self.load(np.array([file]))
        return self._loaded[file]

    def __iter__(self) -> Iterator[int]:
        return iter(self._plan.files.tolist())

    def __len__(self) -> int:
        return len(self._candidates)
