"""Whether what else a bundle keeps of a file is true: rows, columns, statistics, page places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from alcid.bundle import FileEntry
from alcid.bundle.files import FileTable
from alcid.bundle.statistics import ColumnStatistics, statistics_array
from alcid.errors import FormatError
from alcid.tables.page_bytes import join_columns, unpack_column
from alcid.tables.schema_bytes import schema_columns
from alcid.types import DataType

__all__ = [
    "StoredStatistics",
    "compare_entry",
    "compare_pages",
    "compare_statistics",
    "untrue",
    "untrue_of",
]

StoredStatistics = Mapping[tuple[str, DataType], pa.StructScalar]
"""What is kept of a file, by column and type."""


def compare_entry(
    rows: int, footer_crc: int | None, schema: bytes | None, entry: FileEntry
) -> Iterator[tuple[str, str]]:
    """What a bundle says of a file that is not so: what it is of, and the problem.

    Args:
        rows: Its rows, as the bundle says.
        footer_crc: The checksum of its footer; None if it is not known.
        schema: Its columns; None if they are not known.
        entry: The same, of the file as it is.
    """
    if footer_crc is not None and footer_crc != entry.footer_crc:
        yield "footer", "another than when it was indexed, with the same size and version"
    if rows != entry.rows:
        yield "rows", f"found {rows:,}, expected {entry.rows:,}"
    if schema is not None and schema != entry.schema:
        try:
            found = _described(schema, entry.path)
        except FormatError as error:
            yield "schema", str(error)
        else:
            expected = _described(entry.schema or b"", entry.path)
            wrong = sorted(name for name, _ in found.items() ^ expected.items())
            if wrong:
                yield "schema", f"column {wrong[0]!r} is not as in the file"


def _described(schema: bytes, file: str) -> dict[str, Any]:
    """The columns without the words of a problem, which may be those of an earlier version."""
    columns = schema_columns(schema, file=file)
    return {one.name: replace(one, problem="any" if one.problem else "") for one in columns}


def compare_statistics(
    stored: StoredStatistics,
    entry: FileEntry,
    read: Callable[[str], ColumnStatistics | None],
) -> Iterator[tuple[str, str]]:
    """For each column of which there are statistics: its name, and a problem or an empty text.

    What a footer says and what the values say may both be kept, and both are true. So where they
    are not the same as those of the entry, the values decide.

    Args:
        stored: What is kept of the file.
        entry: The file as it is.
        read: Gives the statistics of all values of a column.
    """
    known = {
        (found.column, found.data_type): found.values[0]
        for found in FileTable.of([entry]).statistics
    }
    for (column, data_type), values in stored.items():
        if (column, data_type) not in known:
            yield column, f"statistics of {data_type}, which is not its type"
        elif values.equals(known[column, data_type]):
            yield column, ""
        else:
            exact = read(column)
            if exact is None:
                yield column, "statistics of a column that has none"
            else:
                array = statistics_array(column, data_type, [exact])
                yield column, untrue(_comparable_fields(values), _comparable_fields(array[0]))


def untrue(stored: Mapping[str, Any], exact: Mapping[str, Any]) -> str:
    """What of statistics is not true, or an empty text; what is not known is never untrue.

    A bound that is not exact is true if no value lies beyond it. Of text it may be cut: then the
    other is cut at the same length, or not at all.
    """
    for name in ("nulls", "has_nan"):
        if stored[name] is not None and stored[name] != exact[name]:
            return f"{name}: found {stored[name]}, expected {exact[name]}"
    for name in ("min", "max"):
        found, expected = stored[name], exact[name]
        if found is None:
            continue
        if stored[f"{name}_exact"]:
            true = found == expected and exact[f"{name}_exact"]
        elif expected is None:  # there is no value, or one above all text that is kept
            true = exact[f"{name}_exact"]
        else:
            true = found <= expected if name == "min" else found >= expected
        if not true:
            return f"{name}: found {found!r}, expected {expected!r}"
    return ""


def untrue_of(stored: pa.StructScalar, values: pa.ChunkedArray, data_type: DataType) -> str:
    """What of statistics is not true of all values of a column, or an empty text; see `untrue`."""
    exact = ColumnStatistics.of(values, data_type)
    expected = {
        "min": _comparable(exact.minimum),
        "max": _comparable(exact.maximum),
        "min_exact": True,
        "max_exact": True,
        "nulls": exact.nulls,
        "has_nan": exact.has_nan,
    }
    return untrue({field: _comparable(stored[field]) for field in expected}, expected)


def _comparable_fields(statistics: pa.StructScalar) -> dict[str, Any]:
    return {name: _comparable(statistics[name]) for name in statistics}


def _comparable(value: Any) -> Any:
    """A bound as what compares alike; moments as numbers, since Python has no nanoseconds."""
    if not isinstance(value, pa.Scalar):
        return value
    return value.value if pa.types.is_temporal(value.type) and value.is_valid else value.as_py()


def compare_pages(column: str, stored: bytes, expected: bytes, *, file: str) -> str:
    """Why the places of pages are wrong, or an empty text.

    Equal places may be packed to other bytes by another version of a compressor.

    Raises:
        FormatError: What is stored is damaged.
    """
    if stored == expected:
        return ""
    starts, found = unpack_column(column, stored, file=file)
    join_columns({column: (starts, found)}, file=file)
    other_starts, other = unpack_column(column, expected, file=file)
    if not np.array_equal(starts, other_starts):
        return "other row groups"
    if replace(found.field, arrow=b"") != replace(other.field, arrow=b""):
        return "another schema of the column"
    if _arrow(found.field.arrow) != _arrow(other.field.arrow):
        return "another Arrow type"
    same = bool(found.whole) == bool(other.whole) and all(
        np.array_equal(one.groups, two.groups) and np.array_equal(one.pieces, two.pieces)
        for one, two in zip(found.leaves, other.leaves, strict=True)
    )
    return "" if same else "other places of pages"


def _arrow(schema: bytes) -> pa.Schema | None:
    return pa.ipc.read_schema(pa.py_buffer(schema)) if schema else None
