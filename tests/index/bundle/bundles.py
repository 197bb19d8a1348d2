"""Bundles for the tests, random ones among them, and their content as plain Python."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from alcid.formats.source import BytesSource
from alcid.index.bundle import (
    Bundle,
    BundleWriter,
    ColumnStatistics,
    FileEntry,
    PayloadKind,
)
from alcid.types import DataType

BIGINT, DOUBLE, STRING = map(DataType.parse, ("BIGINT", "DOUBLE", "STRING"))
KINDS = (
    PayloadKind.index("id", "bloom-filter"),
    PayloadKind.index("id", "bitmap"),
    PayloadKind.index("naïve: name", "range-bitmap"),
    PayloadKind.pages("id"),
    PayloadKind.container(),
)


@dataclass(frozen=True)
class File:
    """A data file and its payloads."""

    entry: FileEntry
    payloads: Mapping[PayloadKind, bytes]


def write(files: Sequence[File], **options: Any) -> bytes:
    data = io.BytesIO()
    with BundleWriter(data, **options) as writer:
        for file in files:
            row = writer.add_file(file.entry)
            for kind, payload in file.payloads.items():
                writer.add(row, kind, payload)
    return data.getvalue()


def content(bundle: Bundle) -> list[dict[str, object]]:
    """Everything in a bundle, file by file, without what is missing."""
    files = bundle.files
    listed = []
    for row, core in enumerate(files.table.select(range(6)).to_pylist()):
        statistics = {
            (column.column, str(column.data_type)): repr(column.values[row])
            for column in files.statistics
            if column.values[row].is_valid
        }
        payloads = {kind: bundle.read(kind, row) for kind in bundle.kinds}
        present = {kind: payload for kind, payload in payloads.items() if payload is not None}
        listed.append({**core, "statistics": statistics, "payloads": present})
    return listed


def reopened(files: Sequence[File]) -> Bundle:
    return Bundle.open(BytesSource(write(files), "x.bundle"))


def some_files(count: int = 3) -> list[File]:
    """A few files with small payloads of every kind, the same in every run."""
    return [
        File(
            FileEntry(
                f"dt={number}/part-{number}.parquet",
                1000 + number,
                f"v{number}",
                10 * number,
                footer_crc=None if number % 2 else number,
                statistics={
                    "id": ColumnStatistics(BIGINT, number, number + 5, 0),
                    "score": ColumnStatistics(DOUBLE, 0.0, 1.5, None, number % 2 == 0),
                },
                schema=(None, b"one schema", b"another")[number % 3],
            ),
            {kind: bytes([number]) * (7 * factor) for factor, kind in enumerate(KINDS)},
        )
        for number in range(count)
    ]


numbers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False)
decimals = st.integers(-(10**9), 10**9).map(lambda unscaled: Decimal(unscaled).scaleb(-2))
dates = st.dates(date(1, 1, 1), date(9999, 12, 31))
texts = st.text(max_size=100)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": numbers,
    "DOUBLE": floats,
    "STRING": texts,
    "BYTES": st.binary(max_size=100),
    "DECIMAL(11, 2)": decimals,
    "DATE": dates,
    "BOOLEAN": st.booleans(),
}


LEAST_ROWS = 10


def _statistics(name: str) -> st.SearchStrategy[ColumnStatistics]:
    bounds = st.none() | st.tuples(VALUES[name], VALUES[name])
    nulls, has_nan = st.none() | st.integers(0, LEAST_ROWS), st.none() | st.booleans()
    return st.builds(partial(_known, DataType.parse(name)), bounds, nulls, has_nan)


def _known(
    data_type: DataType, bounds: tuple[Any, Any] | None, nulls: int | None, has_nan: bool | None
) -> ColumnStatistics:
    low, high = (None, None) if bounds is None else sorted(bounds, key=_spark_order)
    return ColumnStatistics(data_type, low, high, nulls, has_nan)


def _spark_order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


_BYTES = bytes(position * position // 7 & 255 for position in range(5300))


def _payload(size: int, seed: int) -> bytes:
    return _BYTES[seed : seed + size]


def data_files(paths: st.SearchStrategy[str] = texts) -> st.SearchStrategy[list[File]]:
    """Files with random statistics and payloads; sizes and versions are few, so some agree."""
    statistics = st.one_of(*map(_statistics, sorted(VALUES)))
    entries = st.builds(
        FileEntry,
        paths,
        st.integers(1, 2),
        st.sampled_from(["", "v2"]),
        st.integers(LEAST_ROWS, 2**40),
        st.none() | st.integers(0, 2**32 - 1),
        st.dictionaries(st.sampled_from(["a", "b", "size"]), statistics, max_size=2),
        st.sampled_from([None, b"", b"one schema", b"another"]),
    )
    sizes = st.integers(0, 8) | st.integers(1015, 1030) | st.integers(0, 5000)
    payloads = st.builds(_payload, sizes, st.integers(0, 255))
    kinds = st.dictionaries(st.sampled_from(KINDS), payloads, max_size=3)
    files = st.builds(File, entries, kinds)
    return st.lists(files, max_size=5, unique_by=lambda file: file.entry.path)


def expected(files: Sequence[File]) -> list[dict[str, object]]:
    """What `content` must return for these files, derived from their description alone."""
    listed = []
    for file in files:
        entry = file.entry
        core = {
            "path": entry.path,
            "size": entry.size,
            "version": entry.version,
            "footer_crc": entry.footer_crc,
            "rows": entry.rows,
            "schema": entry.schema,
        }
        statistics = {
            (column, str(known_column.data_type)): repr(stored_statistics(known_column))
            for column, known_column in entry.statistics.items()
        }
        listed.append({**core, "statistics": statistics, "payloads": dict(file.payloads)})
    return listed


def stored_statistics(statistics: ColumnStatistics) -> pa.StructScalar:
    """The statistics of a column as they must be stored, derived without the code under test."""
    low, high, low_exact, high_exact = statistics.minimum, statistics.maximum, True, True
    arrow: Any = statistics.data_type.to_arrow()
    has_nan: bool | None = False
    match statistics.data_type.root:
        case "DOUBLE":
            low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
            has_nan = statistics.has_nan
        case "VARCHAR" | "VARBINARY":
            arrow = pa.binary()
            low, high = (v.encode() if isinstance(v, str) else v for v in (low, high))
            if low is not None and len(low) > 64:
                low, low_exact = low[:64], False
            if high is not None and len(high) > 64:
                digits = int.from_bytes(high[:64], "big") + 1
                high_exact = False
                over = digits == 1 << 512
                high = None if over else digits.to_bytes(64, "big").rstrip(b"\0")
    fields = {"min": arrow, "max": arrow, "min_exact": pa.bool_(), "max_exact": pa.bool_()}
    values = {"min": low, "max": high, "min_exact": low_exact, "max_exact": high_exact}
    kind = pa.struct([*fields.items(), ("nulls", pa.int64()), ("has_nan", pa.bool_())])
    return pa.scalar({**values, "nulls": statistics.nulls, "has_nan": has_nan}, kind)
