"""Data files whose columns go by their field ids.

A data file of which nothing was known before it was opened, with the columns of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.datafiles.parquet import Coalescing, ParquetScan, ReadReport
from alcid.datafiles.parquet.columns import FileColumn, file_columns
from alcid.datafiles.parquet.decoding import rows_without_columns
from alcid.errors import UnsupportedError, require
from alcid.formats.source import ReadMany, read_each
from alcid.index.bundle import Statistics
from alcid.scan import FileScan, TableColumns
from alcid.storage import Listing, Storage
from alcid.tables.casts import convert
from alcid.tables.iceberg.field_ids import IdColumn, NameMapping, WantedField, columns_by_id
from alcid.tables.open_files import OpenFiles, footer_statistics, take_values

__all__ = ["AS_TABLE", "ConformedScan", "IdFiles", "Wanted"]


class ConformedScan:
    """Row groups of a file in the names and types of the table; it is a `FileScan`.

    Columns are found by their field ids. One that the file does not have is, as Iceberg's readers
    have it, the partition value if that is the column itself, else its default, else null.
    """

    def __init__(
        self,
        scan: ParquetScan,
        fields: Mapping[str, WantedField],
        mapping: NameMapping | None,
        constants: Mapping[int, pa.Scalar],
    ) -> None:
        """Take a file whose footer was read.

        Args:
            scan: The file.
            fields: The columns of the table, by name.
            mapping: What names mean, if the file has no ids.
            constants: Partition values that are columns, by field id.
        """
        self.scan, self.source = scan, scan.source
        self._fields, self._mapping, self._constants = fields, mapping, constants

    @cached_property
    def columns(self) -> dict[int, IdColumn]:
        """The columns that the file has, by their ids."""
        name = self.source.name
        return columns_by_id(file_columns(self.scan.metadata, name), self._mapping, name)

    @property
    def group_rows(self) -> tuple[int, ...]:
        """The rows of each row group, the empty ones too."""
        return self.scan.group_rows

    def group_bytes(self, group: int) -> int:
        """The bytes of a row group when it is decompressed."""
        return self.scan.group_bytes(group)

    def column_sizes(self, columns: Sequence[str]) -> Int64Array:
        """Bytes of some columns of the table in each row group."""
        return self.scan.column_sizes([one.name for one in self._present(columns).values()])

    def described(self, columns: Sequence[str]) -> dict[str, FileColumn]:
        """Those columns of the table that are of its type in the file already.

        Of keys of maps, which may be among the names, nothing is known.
        """
        known = [name for name in columns if name in self._fields]
        return {
            name: one.column
            for name, one in self._present(known).items()
            if one.column.data_type == self._fields[name].data_type
        }

    def read(
        self,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        *,
        coalescing: Coalescing | None = None,
        read_ranges: ReadMany = read_each,
        report: ReadReport | None = None,
    ) -> pa.Table:
        """Columns of the table, of some row groups; the arguments are those of `ParquetScan.read`.

        Raises:
            FormatError: The file is damaged.
            UnsupportedError: A column cannot be made of what the file has.
        """
        names = list(self._fields) if columns is None else columns
        present = self._present(names)
        found = self.scan.read(
            row_groups,
            [one.name for one in present.values()],
            coalescing=coalescing,
            read_ranges=read_ranges,
            report=report,
        )
        if not names:
            return rows_without_columns(found.num_rows)
        inside = dict(zip(present, found.columns, strict=True))
        arrays = [
            self._convert(inside[name], present[name], self._fields[name])
            if name in inside
            else self._missing(self._fields[name], found.num_rows)
            for name in names
        ]
        return pa.Table.from_arrays(arrays, names=list(names))

    def _present(self, columns: Sequence[str]) -> dict[str, IdColumn]:
        """Those of some columns that are read of the file."""
        ids = {name: self._fields[name].id for name in columns}
        return {
            name: self.columns[number]
            for name, number in ids.items()
            if number not in self._constants and number in self.columns
        }

    def _missing(self, field: WantedField, count: int) -> pa.Array:
        if field.id not in self._constants:
            return field.missing(count)
        return pa.repeat(self._constants[field.id].cast(field.arrow_type), count)

    def _convert(
        self, values: pa.ChunkedArray, own: IdColumn, wanted: WantedField
    ) -> pa.ChunkedArray:
        try:
            conversion = convert(own, wanted)
            made = values if conversion is None else conversion(values)
            return made if made.type == wanted.arrow_type else made.cast(wanted.arrow_type)
        except (UnsupportedError, pa.ArrowException) as error:
            raise UnsupportedError(
                f"{self.source.name}: column {wanted.name}: {str(error).splitlines()[0]}"
            ) from None


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
        rows: Int64Array,
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

    def part(self, files: Int64Array) -> IdFiles:
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
