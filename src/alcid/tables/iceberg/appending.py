"""Append rows: Iceberg's own writer makes the files, and a build indexes them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from alcid.errors import UnsupportedError
from alcid.options import OptionValue
from alcid.tables.append_report import AppendReport
from alcid.tables.build_report import BuildReport
from alcid.tables.iceberg.building import options_of

if TYPE_CHECKING:
    from alcid.tables.iceberg.table import IcebergTable

__all__ = ["append"]

_ADDED = "added-data-files", "added-records", "added-files-size"


def append(
    table: IcebergTable,
    rows: Any,
    options: Mapping[str, OptionValue] | None = None,
    *,
    dry_run: bool = False,
) -> AppendReport:
    """Append the rows of a DataFrame; see `IcebergTable.append`.

    Raises:
        UnsupportedError: The table was opened as it was in the past, or rows are no DataFrame.
    """
    begin = time.monotonic()
    table.require_present("append")
    if not hasattr(rows, "sparkSession"):
        raise UnsupportedError(f"rows: found {type(rows).__name__}, expected a Spark DataFrame")
    if dry_run:
        table.catalog.check_append(rows)
        count = rows.count()
        return AppendReport(None, count, None, None, 0, time.monotonic() - begin, dry_run=True)
    before = table.snapshot_id
    table.catalog.append(rows)
    table.refresh()
    files, count, size = _added(table, before)
    built = BuildReport(0, 0, 0, 0, 0, 0, 0, 0.0)
    wanted = options_of(table) if options is None else options
    if files and wanted:
        built = table.build_indexes(wanted, progress=False)
    return AppendReport(
        files,
        count,
        size,
        built.bytes_written,
        built.bundles or 0,
        time.monotonic() - begin,
        built.skipped,
        table.snapshot_id if files else None,
    )


def _added(table: IcebergTable, before: int | None) -> tuple[int, int, int]:
    """The files, rows and bytes of the snapshots since one."""
    total: Counter[str] = Counter()
    if table.snapshot_id is not None:
        every = table.metadata.ancestors(table.snapshot_id)
        for snapshot in takewhile(lambda one: one.id != before, every):
            if snapshot.operation == "append":
                total.update({key: int(snapshot.summary.get(key, 0)) for key in _ADDED})
    files, count, size = (total[key] for key in _ADDED)
    return files, count, size
