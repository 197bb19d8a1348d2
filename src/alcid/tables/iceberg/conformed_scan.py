"""A data file of which nothing was known before it was opened, with the columns of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.formats.source import ReadMany, read_each
from alcid.parquet_file import Coalescing, ParquetScan, ReadReport
from alcid.parquet_file.decoding import rows_without_columns
from alcid.tables.conversions import convert
from alcid.tables.file_columns import FileColumn, file_columns
from alcid.tables.iceberg.file_schemas import IdColumn, NameMapping, columns_by_id
from alcid.tables.iceberg.wanted_fields import WantedField

__all__ = ["ConformedScan"]


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

    def column_sizes(self, columns: Sequence[str]) -> npt.NDArray[np.int64]:
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
