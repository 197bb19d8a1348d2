"""The ways to read the rows of a scan, and which one it is.

| way     | who reads                            | for                                           |
|---------|--------------------------------------|-----------------------------------------------|
| driver  | this process, then `createDataFrame` | few bytes: a job costs more than to read them |
| tasks   | Arrow in Spark's Python workers      | rows of some pages, in many files             |
| Spark   | Spark's own Parquet reader           | most pages of the files that are left         |
| Iceberg | Iceberg's own scan, of its tables    | most of the table: it has no filter           |

All of them give the same columns, types and rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from pyarrow import types

from alcid.errors import UnsupportedError, require
from alcid.options import match_column
from alcid.plan import Draft, TableFiles
from alcid.tables.file_columns import COLLATED, OLD_CALENDAR
from alcid.tables.iceberg.files import IcebergFiles

__all__ = ["MOST_TOP", "Way", "choose_way", "only_for_spark"]

MOST_TOP = 100_000
"""Rows of an answer with a limit, up to which the driver finds them."""
_DRIVER_ROWS = 1 << 16  # each takes Spark some microseconds to take over from the driver
_DENSE = 0.5
"""From this share of the bytes on, Spark's own reader is faster."""
# All else has a meaning in a pattern of Hadoop's, or in its URIs.
_PLAIN_PATH = re.compile(r"[\w/.=+@,%~ -]*")


@dataclass(frozen=True, slots=True)
class Way:
    """How rows are read, and why."""

    name: Literal["driver", "tasks", "Spark", "Iceberg"]
    why: str

    def __str__(self) -> str:
        by = {
            "driver": "in the driver",
            "tasks": "by Arrow in tasks of Spark",
            "Spark": "by Spark's own Parquet reader",
            "Iceberg": "by Iceberg's own scan",
        }
        return f"rows are read {by[self.name]}: {self.why}"


def choose_way(draft: Draft, *, has_s3a: bool) -> Way:
    """Choose by what is left to be read.

    Args:
        draft: What is to be read.
        has_s3a: Whether Spark's own reader can read from S3.

    Raises:
        UnsupportedError: There is a column that only Spark's own reader reads as Spark does, and it
            cannot be taken; or one that is collated.
    """
    special = only_for_spark(draft)
    if special:
        obstacle = _obstacle(draft, has_s3a)
        if obstacle:
            raise UnsupportedError(
                f"{special}, for which Spark's own Parquet reader is needed, but {obstacle}"
            )
        return Way("Spark", special)
    read = int(draft.sizes.sum())
    if draft.is_small and draft.expected_rows <= _DRIVER_ROWS:
        return Way("driver", f"about {_megabytes(read)} at most to read")
    whole = int(draft.whole_sizes.sum())
    if read < _DENSE * whole:
        return Way("tasks", f"about {_megabytes(read)} of {_megabytes(whole)} at most to read")
    of_iceberg = isinstance(draft.table, IcebergFiles)
    obstacle = _iceberg_obstacle(draft) if of_iceberg else _obstacle(draft, has_s3a)
    if obstacle:
        return Way("tasks", obstacle)
    return Way("Iceberg" if of_iceberg else "Spark", f"most of {_megabytes(whole)} is read")


def only_for_spark(draft: Draft) -> str:
    """Why Arrow would give other values than Spark; empty if it gives the same.

    Raises:
        UnsupportedError: A collated column: as plain text it would be compared otherwise.
    """
    files = draft.candidates.files
    for name in dict.fromkeys([*draft.columns, *draft.where_columns]):
        if name in draft.table.columns.partitions:
            continue
        for group in draft.table.columns.groups(name):
            if not group.files[files].any():
                continue
            if group.problem.startswith(COLLATED):
                raise UnsupportedError(
                    f"column {name}: {group.problem}, which is not supported: leave it out, or "
                    "read the files with spark.read.parquet"
                )
            if group.problem.startswith(OLD_CALENDAR):
                return f"column {name}: {group.problem}"
    return ""


def _obstacle(draft: Draft, has_s3a: bool) -> str:
    """Why Spark's own reader cannot be taken; empty if it can."""
    table, files = draft.table, draft.candidates.files
    scheme, _, path = table.location.rpartition("://")
    if not all(map(table.has_pages, files.tolist())):
        return "some files are not Parquet"
    if any(table.deletions.get(file) for file in files.tolist()):
        return "some rows are deleted"
    if scheme == "s3" and not has_s3a:
        return "Spark cannot read s3a:// (the jar hadoop-aws is not there)"
    if scheme not in ("", "s3") or (scheme and table.has_options):
        return "Spark may not know the file system, or its keys"
    columns = list(dict.fromkeys([*draft.columns, *draft.where_columns]))
    for name in columns:
        problem = _column_problem(table, files, name)
        if problem:
            return f"column {name}: {problem}"
    if not all(map(_PLAIN_PATH.fullmatch, [path, *table.paths.take(pa.array(files)).to_pylist()])):
        return "a path has characters that Spark takes for a pattern"
    return ""


def _iceberg_obstacle(draft: Draft) -> str:
    """Why Iceberg's own scan, of all files, is not taken; empty if it is."""
    table = require(draft.table, IcebergFiles, "table")
    if table.own_rows is None or table.version is None:
        return "the schema is another than that of the snapshot"
    chosen, every = int(table.sizes[draft.candidates.files].sum()), int(table.sizes.sum())
    if chosen < _DENSE * every:
        return f"files of {_megabytes(chosen)} of {_megabytes(every)} are left"
    return ""


def _column_problem(table: TableFiles, files: np.ndarray, name: str) -> str:
    """Why Spark's own reader does not give the same values for a column."""
    if name in table.columns.partitions and not table.holds_partitions:
        return ""
    wanted = table.columns.columns[name].arrow_type
    if not _is_plain(wanted):
        return f"Spark reads {wanted} otherwise"
    if types.is_struct(wanted) and _has_floats(wanted):
        return "Spark may pass over NaN within a struct"
    for place, group in enumerate(table.columns.groups(name)):
        if not group.files[files].any():
            continue
        schema = table.columns.schemas[place]
        if table.columns.conversion(place, name) is not None:
            return "another type in some files than in the table"
        # Spark goes by names, and the files of some tables do not.
        called = match_column(name, schema)
        if group.name != called:
            return f"some files call {name} otherwise, or something else {name}"
        if group.name is not None and schema[group.name].arrow_type != wanted:
            return f"{schema[group.name].arrow_type} in some files, {wanted} in the table"
    return ""


def _is_plain(given: pa.DataType) -> bool:
    """Whether Spark's own reader gives the same values."""
    simple = (
        types.is_boolean,
        types.is_signed_integer,
        types.is_float32,
        types.is_float64,
        types.is_string,
        types.is_large_string,
        types.is_binary,
        types.is_large_binary,
        types.is_date32,
        types.is_decimal128,
    )
    if any(is_kind(given) for is_kind in simple):
        return True
    if types.is_timestamp(given):
        return given.unit in ("ms", "us")
    if types.is_list(given):
        return _is_plain(given.value_type)
    if types.is_map(given):
        return _is_plain(given.key_type) and _is_plain(given.item_type)
    return types.is_struct(given) and all(_is_plain(field.type) for field in given)


def _has_floats(given: pa.DataType) -> bool:
    """Whether there are floats that Spark filters by what footers say, which not all do of NaN."""
    if types.is_struct(given):
        return any(_has_floats(field.type) for field in given)
    return bool(types.is_floating(given))


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
