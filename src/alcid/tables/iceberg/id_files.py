"""Data files whose columns go by their field ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.bundle import Statistics
from alcid.errors import require
from alcid.parquet_file import ParquetScan
from alcid.plan import FileScan, TableColumns
from alcid.storage import Listing, Storage
from alcid.tables.file_columns import FileColumn
from alcid.tables.iceberg.conformed_scan import ConformedScan
from alcid.tables.iceberg.file_schemas import NameMapping
from alcid.tables.iceberg.wanted_fields import WantedField
from alcid.tables.open_files import OpenFiles, footer_statistics, take_values

__all__ = ["AS_TABLE", "IdFiles", "Wanted"]

Integers = npt.NDArray[np.int64]

AS_TABLE = 0
"""The schema of files that are asked in the table's names: theirs are seen when they are opened."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What files are asked for whose columns are only seen when they are opened."""

    fields: Mapping[str, WantedField] = field(default_factory=dict)
    """The columns of the table that are read here, by name."""
    mapping: NameMapping | None = None
    """What names mean in files without ids."""


class IdFiles(OpenFiles):
    """Files of which some are of a known schema, and others are not; it pickles.

    Those of schema `AS_TABLE` give the columns of the table, so that nothing of them has to be
    known for a plan. They have no pages here, as those are found by the names in the file.
    """

    def __init__(
        self,
        storage: Storage,
        listing: Listing,
        rows: Integers,
        columns: TableColumns,
        schemas: Sequence[tuple[FileColumn, ...]],
        partitions: pa.Table,
        footer_crcs: pa.Array,
        wanted: Wanted,
        constants: pa.Table,
    ) -> None:
        """Take what is known of files.

        Args:
            storage: Where they are.
            listing: The files.
            rows: How many rows each has.
            columns: Of the table, and of the files.
            schemas: Those of files, as `columns` numbers them; that of `AS_TABLE` is empty.
            partitions: Partition values that are columns in all files, a row for each file.
            footer_crcs: The checksums of their footers when they were indexed; null if not known.
            wanted: The columns of the table.
            constants: Partition values that are columns in some files: for each field id a struct
                of one `value`, which is null where a file has none.
        """
        super().__init__(storage, listing, rows, columns, schemas, partitions, footer_crcs)
        self._wanted, self._constants = wanted, constants

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what it was made of."""
        made_of = *self._made_of(), self._wanted, self._constants
        return IdFiles, made_of, {"strict": self.strict}

    def part(self, files: Integers) -> IdFiles:
        """Some of the files, to be read elsewhere."""
        constants = take_values(self._constants, pa.array(files))
        part = IdFiles(*self._made_of(files), self._wanted, constants)
        part.strict, part._distrusted = self.strict, self._distrusted
        return part

    def has_pages(self, file: int) -> bool:
        """Whether its columns are known by the names that it has for them."""
        return int(self.columns.schema_of[file]) != AS_TABLE

    def open(self, files: Sequence[int]) -> Sequence[FileScan]:
        """The footers of files, in one round."""
        scans = zip(files, self._open(files), strict=True)
        return [scan if self.has_pages(file) else self._conform(file, scan) for file, scan in scans]

    def conformed(self, file: int, wanted: Mapping[str, WantedField]) -> ConformedScan:
        """A file with other columns than those of the table, as older schemas have them."""
        (scan,) = self._open([file])
        return self._conform(file, scan, wanted)

    def group_statistics(
        self, file: int, scan: FileScan, columns: Sequence[str]
    ) -> Mapping[str, Statistics]:
        """What the footer says of row groups."""
        if isinstance(scan, ConformedScan):
            return footer_statistics(scan.scan, scan.described(columns))
        return super().group_statistics(file, scan, columns)

    def _format(self, _file: int) -> str:
        return "parquet"

    def _conform(
        self, file: int, scan: object, fields: Mapping[str, WantedField] | None = None
    ) -> ConformedScan:
        parquet = require(scan, ParquetScan, str(self.paths[file]))
        constants = {
            int(name): value["value"]
            for name in self._constants.column_names
            if (value := self._constants[name][file]).is_valid
        }
        fields = self._wanted.fields if fields is None else fields
        return ConformedScan(parquet, fields, self._wanted.mapping, constants)
