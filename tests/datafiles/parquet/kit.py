"""Tables with every type that Arrow writes to Parquet, and rows read in the simplest way."""

from __future__ import annotations

import decimal
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.formats.source import BytesSource
from alcid.testing import CountingSource

ROWS = 1000

PAGED = {"write_page_index": True, "write_batch_size": 10, "data_page_size": 1}
"""Pages of 10 rows, with any version of pyarrow."""


def _floats(bits: int) -> pa.Array:
    kind = {16: np.float16, 32: np.float32, 64: np.float64}[bits]
    patterns = np.arange(ROWS, dtype=f"u{bits // 8}")
    patterns[::7] = np.array(np.nan, kind).view(f"u{bits // 8}") + 1  # a NaN with a payload
    patterns[::11] = 1 << (bits - 1)  # -0.0
    return pa.array(patterns.view(kind))


def _ticks(data_type: pa.DataType, step: int = 1, start: int = 0) -> pa.Array:
    width = pa.int32() if data_type.bit_width == 32 else pa.int64()
    return pa.array(np.arange(ROWS) * step + start).cast(width).view(data_type)


def _numbers(data_type: pa.DataType, least: int, most: int) -> pa.Array:
    return pa.array([least + (most - least) * row // (ROWS - 1) for row in range(ROWS)], data_type)


_WORDS = [f"słowo {row % 40}" * (row % 5) for row in range(ROWS)]
_DECIMALS = [decimal.Decimal(row - 500).scaleb(-2) for row in range(ROWS)]

COLUMNS: dict[str, pa.Array] = {
    "bool": pa.array([row % 3 == 0 for row in range(ROWS)]),
    **{
        str(kind): _numbers(kind, -(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1)
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    },
    **{
        str(kind): _numbers(kind, 0, (1 << kind.bit_width) - 1)
        for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    },
    "float16": _floats(16),
    "float32": _floats(32),
    "float64": _floats(64),
    "string": pa.array(_WORDS),
    "large_string": pa.array(_WORDS, pa.large_string()),
    "binary": pa.array([word.encode() for word in _WORDS]),
    "large_binary": pa.array([word.encode() for word in _WORDS], pa.large_binary()),
    "fixed_binary": pa.array([row.to_bytes(5, "big") for row in range(ROWS)], pa.binary(5)),
    "decimal": pa.array(_DECIMALS, pa.decimal128(9, 2)),
    "wide_decimal": pa.array(_DECIMALS, pa.decimal128(38, 2)),
    "decimal256": pa.array(_DECIMALS, pa.decimal256(60, 2)),
    "date32": _ticks(pa.date32(), 700, -300_000),
    "date64": _ticks(pa.date64(), 86_400_000),
    "time_s": _ticks(pa.time32("s")),
    "time_ms": _ticks(pa.time32("ms"), 86_000),
    "time_us": _ticks(pa.time64("us"), 86_000_000),
    "time_ns": _ticks(pa.time64("ns"), 86_000_000_000),
    "timestamp_s": _ticks(pa.timestamp("s"), 10**6),
    "timestamp_ms": _ticks(pa.timestamp("ms"), 10**9),
    "timestamp_us": _ticks(pa.timestamp("us"), 10**12),
    "timestamp_ns": _ticks(pa.timestamp("ns"), 10**15 + 1),
    "timestamp_zone": _ticks(pa.timestamp("us", "Europe/Warsaw"), 10**12),
    "duration": _ticks(pa.duration("us"), 12345),
    "dictionary": pa.array(_WORDS).dictionary_encode(),
    "number_dictionary": pa.array(np.arange(ROWS) % 9).dictionary_encode(),
    "null": pa.nulls(ROWS),
    "one": pa.array(["the same"] * ROWS),
}
"""Flat columns, without nulls."""

NESTED: dict[str, pa.Array] = {
    "list": pa.array([list(range(row % 4)) if row % 9 else None for row in range(ROWS)]),
    "struct": pa.array([{"a": row, "b": [str(row)] * (row % 3)} for row in range(ROWS)]),
    "map": pa.array(
        [[(str(key), key) for key in range(row % 3)] for row in range(ROWS)],
        pa.map_(pa.string(), pa.int64()),
    ),
}

NULLS: dict[str, np.ndarray[Any, np.dtype[np.bool_]]] = {
    "without nulls": np.zeros(ROWS, np.bool_),
    "nulls at page borders": np.arange(ROWS) % 10 % 9 == 0,
    "one row in 97": np.arange(ROWS) % 97 != 0,
    "only nulls": np.ones(ROWS, np.bool_),
}


def with_nulls(array: pa.Array, nulls: str) -> pa.Array:
    """The column with some rows made null."""
    rows = np.where(NULLS[nulls], -1, np.arange(ROWS))
    return array.take(pa.array(rows, mask=rows < 0))


def table_of(nulls: str = "without nulls", *, nested: bool = False) -> pa.Table:
    """All columns."""
    columns = COLUMNS | NESTED if nested else COLUMNS
    return pa.table({name: with_nulls(array, nulls) for name, array in columns.items()})


def written(table: pa.Table, **options: Any) -> bytes:
    """The bytes of a Parquet file."""
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def int96(day: int, nanos: int) -> bytes:
    """A value of INT96: a day counted from 1970-01-01, and nanoseconds of the day."""
    return nanos.to_bytes(8, "little", signed=True) + (day + 2_440_588).to_bytes(4, "little")


def java_int96(nanos: int) -> bytes:
    """A timestamp as Paimon's Java writes it: before 1970 the nanoseconds are negative."""
    days, rest = divmod(abs(nanos), 86_400 * 10**9)
    return int96(days, rest) if nanos >= 0 else int96(-days, -rest)


def int96_written(table: pa.Table, **options: Any) -> bytes:
    """The bytes of a Parquet file in which all binary(12) of a table, also nested, are INT96."""
    data = written(table, write_statistics=False, store_schema=False, **options)
    length = int.from_bytes(data[-8:-4], "little")
    pages, footer = data[: -8 - length], data[-8 - length : -8]
    for header in (b"\x15", b"\x25"):  # the repetition follows the length, or its id follows
        kind = b"\x15\x0e\x15\x18" + header
        footer = footer.replace(kind, b"\x15\x06" + bytes((header[0] + 0x10,)))
    footer = footer.replace(b"\x15\x0e\x19", b"\x15\x06\x19")  # the type of a column chunk
    return pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def encrypted(
    table: pa.Table, *, write_page_index: bool = False, int96: bool = False, **keys: Any
) -> bytes:
    """The bytes of a Parquet file with a plain footer; `keys` say which columns are encrypted."""
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Client(encryption.KmsClient):  # type: ignore[misc, name-defined]
        def wrap_key(self, key_bytes: bytes, _master_key: str) -> bytes:
            return key_bytes.hex().encode()

        def unwrap_key(self, wrapped_key: bytes, _master_key: str) -> bytes:
            return bytes.fromhex(wrapped_key.decode())

    factory = encryption.CryptoFactory(lambda _: Client())
    properties = factory.file_encryption_properties(
        encryption.KmsConnectionConfig(),
        encryption.EncryptionConfiguration(footer_key="foot", plaintext_footer=True, **keys),
    )
    file = io.BytesIO()
    with pq.ParquetWriter(
        file,
        table.schema,
        encryption_properties=properties,
        write_page_index=write_page_index,
        use_deprecated_int96_timestamps=int96,
    ) as writer:
        writer.write_table(table)
    return file.getvalue()


def counted(data: bytes, name: str = "a.parquet") -> CountingSource:
    return CountingSource(BytesSource(data, name))


def plain_read(
    data: bytes, positions: Sequence[int] | None = None, columns: list[str] | None = None
) -> pa.Table:
    """Rows as Arrow reads them."""
    table = pq.ParquetFile(io.BytesIO(data), coerce_int96_timestamp_unit="us").read(columns)
    if positions is not None:
        table = table.take(pa.array(positions, pa.int64()))
    return table.replace_schema_metadata()


def assert_same(table: pa.Table, expected: pa.Table, *, valid: bool = True) -> None:
    """Check equal types, names, nulls and values, floats bit by bit; `valid` also validates."""
    table.validate(full=valid)
    assert table.schema.equals(expected.schema, check_metadata=True)
    assert table.num_rows == expected.num_rows
    for name, column, other in zip(
        table.column_names, table.columns, expected.columns, strict=True
    ):
        assert _bits(column).equals(_bits(other)), name


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):  # has the values of the pages that were read
        return column.cast(column.type.value_type)
    if pa.types.is_struct(column.type) and column.num_chunks and column.type.num_fields:
        members = [_bits(member).combine_chunks() for member in column.flatten()]
        names = [f"{number}" for number in range(len(members))]
        mask = column.is_null().combine_chunks()
        return pa.chunked_array([pa.StructArray.from_arrays(members, names, mask=mask)])
    if not pa.types.is_floating(column.type):
        return column
    width = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[column.type.bit_width]
    return pa.chunked_array([chunk.view(width) for chunk in column.chunks], width)
