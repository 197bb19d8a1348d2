"""The deleted rows of data files: by deletion vectors, position deletes and equality deletes.

All of them become row positions of a data file, which are read only for the files in a scan plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.iceberg.catalog import RemovedDeletes
from alcid.tables.iceberg.deletes.files import EqualityDeletes, Positions, ReadFields
from alcid.tables.iceberg.deletes.plan import PUFFIN, DeletePlan, lost_fields, removed_deletes
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import EQUALITY_DELETES, Entries
from alcid.tables.iceberg.metadata.schema import Field
from alcid.tables.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["TableDeletes", "delete_problem"]


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


class TableDeletes(Mapping[int, DeletionVector]):
    """The deleted rows of data files that may have any, by the number of the file."""

    def __init__(
        self, entries: Entries, metadata: TableMetadata, file_io: FileIO, read: ReadFields
    ) -> None:
        """Plan which delete files apply, without reading any.

        Args:
            entries: The entries of the snapshot; the number of a data file is its row there.
            metadata: The table metadata.
            file_io: Opens delete files.
            read: Reads columns of a data file.

        Raises:
            FormatError: The entries contradict each other.
        """
        self._deletes, self._specs = entries.deletes, metadata.specs
        self._plan = plan = DeletePlan(entries, metadata.specs)
        self._candidates = frozenset(plan.files.tolist())
        remote = file_io.folder(metadata.location).remote
        self._positions = Positions(entries, plan, file_io, remote=remote)
        self._equality = EqualityDeletes(
            entries.deletes, plan, _all_fields(metadata), file_io, read, remote=remote
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
