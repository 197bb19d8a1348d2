"""Data files whose columns are matched by field id.

Files with a known schema are planned by the names and types in them. Others are opened as a
`ConformedScan`, which gives the columns of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.datafiles.parquet import Coalescing, ParquetScan, ReadReport
from alcid.datafiles.parquet.columns import FileColumn, file_columns
from alcid.datafiles.parquet.decoding import int96_as, rows_without_columns
from alcid.errors import UnsupportedError, require
from alcid.formats.source import ReadMany, read_each
from alcid.scan import Bounds, FileScan, TableColumns
from alcid.storage import Listing, Storage
from alcid.tables.casts import convert
from alcid.tables.iceberg.field_ids import IdColumn, NameMapping, ProjectedField, columns_by_id
from alcid.tables.iceberg.metadata.schema import Field
from alcid.tables.open_files import OpenFiles, footer_bounds, take_values


class ConformedScan:
    """A `FileScan` that reads a file in the names and types of the table.

    Columns are matched by field id. As in Iceberg's readers, a missing column has its identity
    partition value, else its default, else null.
    """

    def __init__(
        self,
        scan: ParquetScan,
        fields: Mapping[str, ProjectedField],
        mapping: NameMapping | None,
        constants: Mapping[int, pa.Scalar],
    ) -> None:
        """Conform a file whose footer was read.

        Args:
            scan: The file.
            fields: The columns of the table, by name.
            mapping: The ids by name, for a file without ids.
            constants: Identity partition values by field id.
        """
        self.scan, self.source = scan, scan.source
        self._fields, self._mapping, self._constants = fields, mapping, constants

    @cached_property
    def columns(self) -> dict[int, IdColumn]:
        """The columns in the file by id."""
        name = self.source.name
        return columns_by_id(file_columns(self.scan.metadata, name), self._mapping, name)

    @property
    def group_rows(self) -> tuple[int, ...]:
        """The row count of each row group, including empty ones."""
        return self.scan.group_rows

    def group_bytes(self, group: int) -> int:
        """The uncompressed bytes of a row group."""
        return self.scan.group_bytes(group)

    def column_sizes(self, columns: Sequence[str]) -> Int64Array:
        """Bytes of some columns of the table in each row group."""
        return self.scan.column_sizes([column.name for column in self._present(columns).values()])

    def described(self, columns: Collection[str]) -> dict[str, FileColumn]:
        """The columns that have the type of the table in the file.

        Keys of maps, which may be among the names, are left out.
        """
        top_level = [name for name in columns if name in self._fields]
        return {
            name: column.column
            for name, column in self._present(top_level).items()
            if column.column.data_type == self._fields[name].data_type
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
        """Read columns of the table; the arguments are those of `ParquetScan.read`.

        Raises:
            FormatError: The file is damaged.
            UnsupportedError: A column cannot be converted from its type in the file.
        """
        names = list(self._fields) if columns is None else columns
        present = self._present(names)
        rows = self.scan.read(
            row_groups,
            [column.name for column in present.values()],
            coalescing=coalescing,
            read_ranges=read_ranges,
            report=report,
        )
        if not names:
            return rows_without_columns(rows.num_rows)
        columns_read = dict(zip(present, rows.columns, strict=True))
        arrays = [
            self._convert(columns_read[name], present[name], self._fields[name])
            if name in columns_read
            else self._missing(self._fields[name], rows.num_rows)
            for name in names
        ]
        return pa.Table.from_arrays(arrays, names=list(names))

    def _present(self, columns: Sequence[str]) -> dict[str, IdColumn]:
        """The columns that are read from the file."""
        ids = {name: self._fields[name].id for name in columns}
        return {
            name: self.columns[number]
            for name, number in ids.items()
            if number not in self._constants and number in self.columns
        }

    def _missing(self, field: ProjectedField, count: int) -> pa.Array:
        if field.id not in self._constants:
            return field.missing(count)
        return pa.repeat(self._constants[field.id].cast(field.arrow_type), count)

    def _convert(
        self, values: pa.ChunkedArray, column: IdColumn, field: ProjectedField
    ) -> pa.ChunkedArray:
        try:
            conversion = convert(column, field)
            converted = values if conversion is None else conversion(values)
            return (
                converted
                if converted.type == field.arrow_type
                else converted.cast(field.arrow_type)
            )
        except (UnsupportedError, pa.ArrowException) as error:
            raise UnsupportedError(
                f"{self.source.name}: column {field.name}: {str(error).splitlines()[0]}"
            ) from None


AS_TABLE = 0
"""The schema number of files that are read as `ConformedScan`."""


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns of the table, for files whose schema is unknown until they are opened."""

    fields: Mapping[str, ProjectedField] = field(default_factory=dict)
    """The supported columns of the table, by name."""
    mapping: NameMapping | None = None
    """The ids by name, for files without ids."""


class IdFiles(OpenFiles):
    """Files with a known schema, and others with schema `AS_TABLE`; it pickles.

    Those others give the columns of the table, so planning needs nothing of their schema. They are
    not read by pages, which need the names in the file.
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
        projection: Projection,
        constants: pa.Table,
    ) -> None:
        """Collect all that is known about files.

        Args:
            storage: The storage of the files.
            listing: The files.
            rows: The row count of each file.
            columns: The columns of the table and of the files.
            schemas: The schemas of files, as numbered in `columns`; that of `AS_TABLE` is empty.
            partitions: Columns that are partition values in all files, with a row for each file.
            footer_crcs: The checksums of their footers when they were indexed; null if unknown.
            projection: The columns of the table.
            constants: Identity partition values of some files: for each field id a struct of
                `value`, which is null where a file has none.
        """
        super().__init__(storage, listing, rows, columns, schemas, partitions, footer_crcs)
        self._projection, self._constants = projection, constants

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arguments of the constructor."""
        made_of = *self._made_of(), self._projection, self._constants
        return IdFiles, made_of, {"strict": self.strict}

    def part(self, files: Int64Array) -> IdFiles:
        """Some of the files, for another task."""
        constants = take_values(self._constants, pa.array(files))
        part = IdFiles(*self._made_of(files), self._projection, constants)
        part.strict, part._distrusted = self.strict, self._distrusted
        return part

    def has_pages(self, file: int) -> bool:
        """Whether the schema of a file is known."""
        return int(self.columns.schema_of[file]) != AS_TABLE

    def open(self, files: Sequence[int]) -> Sequence[FileScan]:
        """Open files in one round."""
        scans = zip(files, self._open(files), strict=True)
        return [scan if self.has_pages(file) else self._conform(file, scan) for file, scan in scans]

    def conformed(self, file: int, wanted: Mapping[str, ProjectedField]) -> ConformedScan:
        """A file with columns of an older schema."""
        (scan,) = self._open([file])
        return self._conform(file, scan, wanted)

    def read_fields(self, file: int, fields: Sequence[Field]) -> pa.Table:
        """All rows of some columns of a file; the table may have dropped them."""
        projected = {str(field.id): ProjectedField.of(field) for field in fields}
        scan = self.conformed(file, projected)
        with int96_as(self.int96_unit):
            rows = scan.read(None, list(projected), read_ranges=self.read_ranges)
        return rows.rename_columns([field.name for field in fields])

    def group_bounds(
        self, file: int, scan: FileScan, columns: Collection[str]
    ) -> Mapping[str, Bounds]:
        """The bounds of row groups in the footer."""
        if isinstance(scan, ConformedScan):
            return footer_bounds(scan.scan, scan.described(columns))
        return super().group_bounds(file, scan, columns)

    def _format(self, _file: int) -> str:
        return "parquet"

    def _conform(
        self, file: int, scan: object, fields: Mapping[str, ProjectedField] | None = None
    ) -> ConformedScan:
        parquet = require(scan, ParquetScan, str(self.paths[file]))
        constants = {
            int(name): value["value"]
            for name in self._constants.column_names
            if (value := self._constants[name][file]).is_valid
        }
        fields = self._projection.fields if fields is None else fields
        return ConformedScan(parquet, fields, self._projection.mapping, constants)
