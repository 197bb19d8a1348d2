"""Scans that are left to Iceberg's own, as something of the table is not read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from alcid.plan import Explanation, Scan
from alcid.predicate import Predicate
from alcid.tables.iceberg.catalog import OwnQuery
from alcid.tables.iceberg.files import IcebergFiles
from alcid.types.data_type import quote

if TYPE_CHECKING:
    from alcid.tables.iceberg.table import IcebergTable

__all__ = ["HandedScan", "hand_over"]


def hand_over(table: IcebergTable, scan: Scan) -> Scan:
    """The scan, or the same by Iceberg's own Spark scan where it cannot be read here."""
    reason = _reason(table.snapshot, scan.needed())
    return HandedScan(scan, table, reason) if reason else scan


def _reason(files: IcebergFiles, columns: Sequence[str]) -> str:
    """Why columns are not read here; empty if they are."""
    return files.handed_reason or next(filter(None, map(files.problem, columns)), "")


class HandedScan(Scan):
    """Rows of a table that Spark reads by Iceberg's own scan."""

    def __init__(self, scan: Scan, table: IcebergTable, reason: str) -> None:
        """Take a scan of a table, and why it is not read here."""
        files = table.snapshot
        super().__init__(scan.query, files, lambda: files, table.engine, strict=False)
        self.reason = reason
        self._given, self._table = scan, files
        self._catalog, self._snapshot = table.catalog, _snapshot_id(files)

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
        """How many rows there are; here, if that only takes what is read here."""
        if not _reason(self._table, self._given.needed(rows=False)):
            return self._given.count()
        return int(self._catalog.rows(self._own_query([])).count())

    def explain(self) -> Explanation:
        """That nothing is planned here, and why."""
        note = f"rows are read by Iceberg's own scan: {self.reason}"
        order = ", ".join(map(str, self.keys))
        return Explanation(str(self._where), (), (), order, self.query.limit, (note,))

    def _own_query(self, columns: list[str]) -> OwnQuery:
        where = self.query.where
        return OwnQuery(
            self._snapshot,
            str(where) if isinstance(where, Predicate) else where,
            columns,
            [str(replace(key, column=quote(key.column))) for key in self.keys],
            None if self.query.limit is None else int(self.query.limit),
        )


def _snapshot_id(files: IcebergFiles) -> int | None:
    """The snapshot to name; None where its own schema is an older one than the table is read in."""
    found = files.snapshot
    return found.id if found is not None and found.schema_id == files.schema.id else None
