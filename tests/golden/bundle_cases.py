"""The golden bundles: what they are made of, and what a reader must return."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa

from alcid import FileIndex, ThetaSketch
from alcid.formats.puffin import THETA_SKETCH, Blob
from alcid.formats.source import BytesSource
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    BundleWriter,
    ColumnStatistics,
    FileEntry,
    PayloadKind,
    merge,
    open_bundles,
)
from alcid.types import DataType
from tests.golden.values import Json

# The bytes that pyarrow writes for a schema may change with its version, so any will do.
SCHEMA = b"a schema message"
INDEX_TYPES = ("bloom-filter", "bitmap", "range-bitmap", "bsi")


def cases() -> dict[str, bytes]:
    """Every golden bundle by its name."""
    return {
        "empty": empty(),
        "indexes": indexes(),
        "iceberg": indexes(field_ids={"id": 1, "name": 2}, snapshot_id=77, sequence_number=5),
        "statistics": statistics(),
        "payloads": payloads(),
        "sketch-beside": sketch_beside(),
        "merged": merged(),
    }


def empty() -> bytes:
    data = io.BytesIO()
    with BundleWriter(data):
        pass
    return data.getvalue()


def table_of(number: int) -> pa.Table:
    rows = range(100 * number, 100 * number + 50 + number)
    return pa.table(
        {
            "id": pa.array([None if row % 7 == 3 else row // 2 for row in rows], pa.int64()),
            "name": pa.array([f"name {row % 13}" for row in rows]),
        }
    )


def indexes(**options: Json) -> bytes:
    """Three files with every index that Paimon has; the second lacks those of `name`."""
    data = io.BytesIO()
    with BundleWriter(data, **options) as writer:
        for number in range(3):
            table = table_of(number)
            column_statistics = {
                name: ColumnStatistics.of(table.column(name)) for name in table.column_names
            }
            path = f"dt=2025-08-0{number}/part-{number}.parquet"
            row = writer.add_file(
                FileEntry(
                    path,
                    4000 + number,
                    f'"etag-{number}"',
                    len(table),
                    99 + number,
                    column_statistics,
                    SCHEMA if number else None,
                )
            )
            chosen = {f"file-index.{name}.columns": "id" for name in INDEX_TYPES}
            if number != 1:
                chosen["file-index.bitmap.columns"] = "id,name"
            container = FileIndex.build(table, chosen).container
            for entry in container.entries:
                payload = container.section(entry).read(0, entry.length)
                writer.add(row, PayloadKind.index(entry.column, entry.index_type), payload)
    return data.getvalue()


def statistics() -> bytes:
    """Statistics of every type; a column that changed its type; truncated text; unknown values."""
    moment = datetime(2025, 8, 1, 12, 30, 15, 123456)
    bounds: dict[str, tuple[object, object]] = {
        "BOOLEAN": (False, True),
        "TINYINT": (-128, 127),
        "SMALLINT": (-32768, 32767),
        "INT": (-(2**31), 2**31 - 1),
        "BIGINT": (-(2**63), 2**63 - 1),
        "FLOAT": (-1.5, float("inf")),
        "DOUBLE": (0.0, -0.0),
        "DECIMAL(38, 2)": (Decimal("-999999999999999999999.99"), Decimal("0.01")),
        "CHAR(3)": ("a  ", "b  "),
        "STRING": ("é" * 40, "\U0010ffff" * 40),
        "BYTES": (b"", b"\xff" * 70),
        "DATE": (date(1, 1, 1), date(9999, 12, 31)),
        "TIME(3)": (time(0), time(23, 59, 59, 999000)),
        "TIMESTAMP(6)": (datetime(1, 1, 1), moment),
        "TIMESTAMP(9)": (pa.scalar(-1, pa.timestamp("ns")), pa.scalar(1, pa.timestamp("ns"))),
        "TIMESTAMP(6) WITH LOCAL TIME ZONE": (moment.replace(tzinfo=UTC), None),
        "ARRAY<INT>": (None, None),
    }
    first = {
        f"column of {name}": ColumnStatistics(DataType.parse(name), low, high, 1, False)
        for name, (low, high) in bounds.items()
    }
    second = {
        name: ColumnStatistics(old.data_type, nulls=9 if number % 2 else None)
        for number, (name, old) in enumerate(first.items())
    }
    second["column of INT"] = ColumnStatistics(DataType("BIGINT"), 5, 2**40, 0)
    data = io.BytesIO()
    with BundleWriter(data) as writer:
        writer.add_file(FileEntry("typed.parquet", 1, "1", 9, 0, first))
        writer.add_file(FileEntry("naïve #1?.parquet", 2**40, "", 9, None, second))
        writer.add_file(FileEntry("no statistics.parquet", 0, "3", 0, 2**32 - 1))
    return data.getvalue()


def payloads() -> bytes:
    """Payloads of all kinds and of lengths around a block."""
    kinds = [
        PayloadKind.pages("id"),
        PayloadKind.pages("a/b=c.d"),
        PayloadKind.container(),
        PayloadKind.index("m[k]", "bitmap"),
    ]
    lengths = [1, 3, 4, 5, 1019, 1020, 1021, 2041]
    data = io.BytesIO()
    with BundleWriter(data) as writer:
        for number, length in enumerate(lengths):
            row = writer.add_file(FileEntry(f"{number}", 1, "1", 1))
            for position, kind in enumerate(kinds):
                if number % 4 != position:
                    content = bytes((number + position + i * i) & 255 for i in range(length))
                    writer.add(row, kind, None if kind.column == "m[k]" else content)
    return data.getvalue()


def sketch_beside() -> bytes:
    sketch = ThetaSketch().update(pa.array(range(1000), pa.int64()))
    blob = Blob(THETA_SKETCH, (1,), 3, 4, 0, 0, "zstd", {"ndv": str(sketch.ndv)})
    data = io.BytesIO()
    with BundleWriter(data) as writer:
        writer.add_file(FileEntry("a.parquet", 1, "1", 1000))
        writer.add_blob(blob, sketch.to_bytes())
    return data.getvalue()


def merged() -> bytes:
    """Two bundles merged into one that replaces them; the second file of the first is stale."""
    bundles = open_bundles(map(BytesSource, (indexes(), sketch_beside())))
    paths = [f"dt=2025-08-0{number}/part-{number}.parquet" for number in range(3)]
    sizes, versions = [4000, 1, 4002, 1], ['"etag-0"', '"etag-1"', '"etag-2"', "1"]
    data = io.BytesIO()
    merge(
        BundleSet(bundles, [*paths, "a.parquet"], sizes, versions),
        data,
        kinds=[PayloadKind.index("id", "bitmap"), PayloadKind.index("id", "bsi")],
        replaces=["one.puffin", "two.puffin"],
    )
    return data.getvalue()


def described(bundle: Bundle) -> Json:
    """Everything in a bundle, as JSON."""
    files = bundle.files
    core = files.table.select(range(5)).to_pylist()
    for row, schema in zip(core, files.schemas.to_pylist(), strict=True):
        row["schema"] = None if schema is None else schema.hex()
    groups = [
        {
            "column": column.column,
            "type": str(column.data_type),
            "values": [_plain(value) for value in column.values],
        }
        for column in files.statistics
    ]
    stored = []
    for kind in bundle.kinds:
        every = [bundle.read(kind, row) for row in range(bundle.file_count)]
        digests = [None if p is None else [len(p), hashlib.sha256(p).hexdigest()] for p in every]
        stored.append({"kind": [kind.type, kind.column, kind.index_type], "payloads": digests})
    others = [
        [blob.type, list(blob.fields), hashlib.sha256(bundle.read_blob(blob)).hexdigest()]
        for blob in bundle.others
    ]
    return {
        "files": core,
        "statistics": groups,
        "payloads": stored,
        "others": others,
        "replaces": list(bundle.replaces),
    }


def _plain(value: pa.Scalar) -> Json:
    if not value.is_valid:
        return None
    if isinstance(value, Mapping):  # a struct
        return {name: _plain(child) for name, child in value.items()}
    if hasattr(value, "value"):  # dates, times and moments: days, or units since 1970
        return value.value
    plain = value.as_py()
    match plain:
        case bytes():
            return plain.hex()
        case float():
            return plain.hex()
        case Decimal():
            return str(plain)
        case _:
            return plain
