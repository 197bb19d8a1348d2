"""Scans that are delegated to Iceberg's own Spark scan, as a part of the table is unsupported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from alcid.expressions import (
    Comparison,
    In,
    Like,
    Predicate,
    Unknown,
)
from alcid.scan import Explanation, FileOutcomes, Scan
from alcid.tables.iceberg.catalog import OwnQuery
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.iceberg.open_table import OpenIcebergTable
from alcid.types import DataType
from alcid.types.data_type import quote


def delegate_if_needed(table: OpenIcebergTable, scan: Scan) -> Scan:
    """The scan, or one by Iceberg's own Spark scan if files or columns are unsupported."""
    files = scan._files  # those of the manifests that it needs, or all
    assert isinstance(files, IcebergFiles)
    reason = _reason(files, scan.needed())
    return DelegatedScan(scan, table, reason) if reason else scan


def _reason(files: IcebergFiles, columns: Sequence[str]) -> str:
    """Why columns are not supported; empty if they are."""
    return files.delegated_reason or next(filter(None, map(files.problem, columns)), "")


class DelegatedScan(Scan):
    """A scan that Spark runs by Iceberg's own scan."""

    def __init__(self, scan: Scan, table: OpenIcebergTable, reason: str) -> None:
        """Delegate a scan of a table for a reason."""
        files = table.snapshot
        super().__init__(scan.query, files, lambda: files, table.engine, strict=False)
        self.reason = reason
        self._scan, self._table = scan, files
        self._catalog, self._version = table.catalog, _version(table)

    def to_arrow(self) -> pa.Table:
        """The rows.

        Raises:
            UnsupportedError: There is no session.
        """
        return self.to_spark().toArrow()

    def to_spark(self) -> Any:
        """The rows as a DataFrame of Spark.

        Raises:
            UnsupportedError: There is no session.
        """
        return self._catalog.rows(self._own_query(self.schema.names))

    def count(self) -> int:
        """The number of rows, counted here if the files and columns for it are supported."""
        if not _reason(self._table, self._scan.needed(rows=False)):
            return self._scan.count()
        return int(self._catalog.rows(self._own_query([])).count())

    def explain(self) -> Explanation:
        """A plan without stages that says why the scan is delegated."""
        note = f"rows are read by Iceberg's own scan: {self.reason}"
        order = ", ".join(map(str, self.keys))
        outcomes = FileOutcomes.all_read(self._table, "by Iceberg's own scan")
        return Explanation(str(self._where), (), (), order, self.query.limit, (note,), outcomes)

    def _own_query(self, columns: list[str]) -> OwnQuery:
        where = self.query.where
        return OwnQuery(
            self._version,
            str(where) if isinstance(where, Predicate) else where,
            columns,
            [str(replace(key, column=quote(key.column))) for key in self.keys],
            None if self.query.limit is None else int(self.query.limit),
            is_filtered_above=not self._is_understood(),
        )

    def _is_understood(self) -> bool:
        """Whether Iceberg evaluates the predicate like Spark, without failing.

        In Iceberg 1.12.0, `LIKE 'x%'` on a truncated partition with a null is a
        NullPointerException, and uuids are compared as two signed halves.
        """
        types = self._table.columns.columns
        others = {name for name, field in types.items() if _is_float(field.data_type)}
        others |= {field.name for field in self._table.schema.fields if field.type_text == "uuid"}
        for node in self._where.walk():
            match node:
                case Unknown() | In(negated=True) | Like() | Comparison(operator="<>"):
                    return False
        return others.isdisjoint(self._table.columns.find(name) for name in self._where.columns())


def _is_float(data_type: DataType | None) -> bool:
    return data_type is not None and data_type.root in ("FLOAT", "DOUBLE")


def _version(table: OpenIcebergTable) -> int | str | None:
    """The snapshot id; its branch, or None for the current one, if the schema has changed since.

    A snapshot id is read with the schema that it was written with.
    """
    snapshot, schema = table.snapshot.snapshot, table.snapshot.schema
    if snapshot is None or snapshot.schema_id != schema.id:
        return table.ref
    return snapshot.id
