"""The deleted rows of data files: by vectors, by files of positions, by equality deletes.

All are one thing for a plan: positions of a file that are not rows of the table. They are read for
those files that a plan has left.
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
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.entries import EQUALITY_DELETES, Entries
from alcid.tables.iceberg.metadata.schema import Field
from alcid.tables.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["TableDeletes", "delete_problem"]


_FORMATS = ("PARQUET", PUFFIN)


def delete_problem(deletes: pa.Table, metadata: TableMetadata) -> str:
    """Why delete files are not read here; empty if they are.

    Args:
        deletes: Their entries.
        metadata: Of the table.
    """
    for name in pc.unique(pc.utf8_upper(deletes["file_format"])).to_pylist():
        if name not in _FORMATS:
            return f"delete files in {name}"
    if deletes["key_metadata"].null_count < len(deletes):
        return "encrypted delete files"
    equality = deletes.filter(pc.equal(deletes["content"], EQUALITY_DELETES))
    for number in pc.unique(equality["spec_id"]).to_pylist():
        for name in lost_fields(deletes, metadata.specs, number):
            return f"equality deletes of partitions by {name}, whose column was dropped"
    fields = _known_fields(metadata)
    for number in pc.unique(pc.list_flatten(equality["equality_ids"])).to_pylist():
        if number not in fields:
            return f"equality deletes by field {number}, which is no column"
        found = fields[number].data_type
        if found is None or found.children:
            return f"equality deletes by {fields[number].type_text}"
    return ""


def _known_fields(metadata: TableMetadata) -> dict[int, Field]:
    """The columns that the table has, or had, by their ids."""
    schemas = [*metadata.schemas.values(), metadata.schema]
    return {field.id: field for schema in schemas for field in schema.fields}


class TableDeletes(Mapping[int, DeletionVector]):
    """The deleted rows of those data files that may have any, by the number of the file."""

    def __init__(
        self, entries: Entries, metadata: TableMetadata, places: Places, read: ReadFields
    ) -> None:
        """Read nothing yet.

        Args:
            entries: Of the snapshot; the number of a data file is its row there.
            metadata: Of the table.
            places: What delete files are read from.
            read: Reads columns of a data file.

        Raises:
            FormatError: The entries contradict each other.
        """
        self._deletes, self._specs = entries.deletes, metadata.specs
        self._plan = plan = DeletePlan(entries, metadata.specs)
        self._may = frozenset(plan.files.tolist())
        remote = places.folder(metadata.location).remote
        self._positions = Positions(entries, plan, places, remote=remote)
        self._equality = EqualityDeletes(
            entries.deletes, plan, _known_fields(metadata), places, read, remote=remote
        )
        self._loaded: dict[int, DeletionVector] = {}
        self._loading = Lock()

    def load(self, files: Int64Array) -> None:
        """Read what some files need, in few rounds.

        Raises:
            FormatError: A delete file is damaged, or a data file has two vectors: a deleted row
                must not come back.
        """
        with self._loading:
            missing = [
                file for file in files.tolist() if file in self._may and file not in self._loaded
            ]
            self._positions.load(missing)
            for file, rows in zip(missing, self._equality.find(missing), strict=True):
                self._loaded[file] = self._positions[file] | rows

    def positions(self, file: int) -> DeletionVector:
        """The rows that a vector, or positions, delete: a new vector must have them too."""
        with self._loading:
            self._positions.load([file])
            return self._positions[file]

    def removable(self, file: int) -> list[RemovedDeletes]:
        """The delete files that a new vector of a data file replaces."""
        vector = self._plan.vector(file)
        rows = [*self._plan.own_positions(file), *([] if vector is None else [vector])]
        return [removed_deletes(self._deletes, row, self._specs) for row in rows]

    def __getitem__(self, file: int) -> DeletionVector:
        if file not in self._may:
            raise KeyError(file)
        if file not in self._loaded:
            self.load(np.array([file]))
        return self._loaded[file]

    def __iter__(self) -> Iterator[int]:
        return iter(self._plan.files.tolist())

    def __len__(self) -> int:
        return len(self._may)
