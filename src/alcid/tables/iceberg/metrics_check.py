"""Whether what manifests say of columns is true of all values: plans leave out files by it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from alcid.errors import FormatError, UnsupportedError
from alcid.iceberg_metadata.schema import Field
from alcid.parquet_file import ParquetScan
from alcid.tables.checked import Checked
from alcid.tables.entry_check import untrue_of
from alcid.tables.iceberg.conformed_scan import ConformedScan
from alcid.tables.iceberg.file_schemas import NameMapping
from alcid.tables.iceberg.metrics import column_metrics
from alcid.tables.iceberg.wanted_fields import WantedField

__all__ = ["MetricsChecker"]

_TOLD = ("min", "max", "nulls", "has_nan")


class MetricsChecker:
    """Compares the metrics of data files with their values; many threads may call it."""

    def __init__(
        self, data: pa.Table, fields: Iterable[Field], mapping: NameMapping | None
    ) -> None:
        """Take what is said of all files.

        Args:
            data: Their entries.
            fields: The columns of the table; those that are nested, or not read here, are left out.
            mapping: What names mean in files without ids.
        """
        flat = (one for one in fields if one.data_type is not None and not one.data_type.children)
        self._wanted = {one.name: WantedField.of(one) for one in flat}
        self._mapping = mapping
        self._metrics = {
            name: column_metrics(data, one, one.data_type) for name, one in self._wanted.items()
        }

    def open(self, scan: ParquetScan) -> ConformedScan:
        """A file with the columns of the table."""
        return ConformedScan(scan, self._wanted, self._mapping, {})

    def compare(self, file: int, path: str, scan: ConformedScan, found: Checked) -> None:
        """Read the columns of a file that something is said of, one at a time, and compare.

        Raises:
            FormatError: The file is damaged.
            UnsupportedError: Nothing says which of its columns is which.
        """
        present = scan.columns
        for name, field in self._wanted.items():
            stated = self._metrics[name][file]
            if field.id not in present or not _says_something(stated):
                continue
            try:
                problem = untrue_of(stated, scan.read(None, [name]).column(0), field.data_type)
            except (FormatError, UnsupportedError) as error:
                problem = str(error)
            if problem:
                found.findings.add(path, f"metrics of {name!r}", problem)


def _says_something(stated: pa.StructScalar) -> bool:
    return stated.is_valid and any(stated[name].is_valid for name in _TOLD)
