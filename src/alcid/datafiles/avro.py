"""Avro data files of Paimon tables, whole: Avro has neither columns nor an index of its blocks.

| type                                | in the file                                               |
|-------------------------------------|-----------------------------------------------------------|
| TINYINT, SMALLINT, INT              | int                                                       |
| DECIMAL                             | bytes: the digits as a signed number, the highest first   |
| DATE, TIME                          | int: days, milliseconds                                   |
| TIMESTAMP(0..3), (4..6)             | `timestamp-millis`, `timestamp-micros`                    |
| the same WITH LOCAL TIME ZONE       | `local-timestamp-millis`, `local-timestamp-micros`        |
| MAP, MULTISET with keys of text     | map                                                       |
| other MAP, MULTISET                 | array of records `key`, `value`, of the logical type `map`|

The names of the logical types of timestamps are those that Paimon gives, not what Avro means by
them.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.datafiles.parquet import Coalescing, ReadReport
from alcid.datafiles.parquet.decoding import rows_without_columns
from alcid.errors import ColumnError, FormatError, UnsupportedError
from alcid.formats.avro import container_schema, plain_container
from alcid.formats.source import (
    Range,
    ReadMany,
    Source,
    read_each,
)
from alcid.storage.ranges import read_counted

_HEAD = 64 << 10
_EXPANSION = 8  # a guess: the file does not say how large its rows are
_EXACT: Final = Context(prec=100)
_PLAIN: Final[dict[str, Any]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[dict[tuple[str, str], Any]] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "timestamp-millis"): pa.timestamp("ms"),
    ("long", "timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "local-timestamp-micros"): pa.timestamp("us", "UTC"),
}


def open_avro_scans(
    sources: Sequence[Source],
    rows: Sequence[int],
    *,
    read_ranges: ReadMany = read_each,
    report: ReadReport | None = None,
) -> list[AvroScan]:
    """Read the beginnings of files, in one round; a second one where a schema is long.

    Args:
        sources: The files.
        rows: How many rows each has, as the manifest of the table says.
        read_ranges: Reads the ranges; `Storage.read_ranges` for files of a storage.
        report: Counts what is read.

    Raises:
        FormatError: A file is no Avro file.
        UnsupportedError: A column of a type that Paimon does not write.
    """
    report = ReadReport() if report is None else report
    heads = [Range(source, 0, min(_HEAD, source.size)) for source in sources]
    parts = read_counted(heads, report, read_ranges)
    return [
        AvroScan(source, count, data)
        for source, count, data in zip(sources, rows, parts, strict=True)
    ]


class AvroScan:
    """A file whose beginning was read; its only row group are all of its rows."""

    def __init__(self, source: Source, rows: int, head: bytes) -> None:
        """For `open_avro_scans`."""
        self.source, self.group_rows = source, (rows,)
        try:
            schema = container_schema(head, file=source.name)
        except FormatError:
            if len(head) == source.size:
                raise
            schema = container_schema(source.read(0, source.size), file=source.name)
        self._columns = _columns(schema, source.name)
        self.footer_crc = zlib.crc32(head)

    @property
    def names(self) -> list[str]:
        """The names of the top-level columns."""
        return list(self._columns)

    def group_bytes(self, _group: int) -> int:
        """About how many bytes all rows have when they are decoded."""
        return self.source.size * _EXPANSION

    def column_sizes(self, _columns: Sequence[str]) -> Int64Array:
        """The bytes of the file, of which none can be left out."""
        return np.array([self.source.size], np.int64)

    def read(
        self,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        *,
        coalescing: Coalescing | None = None,  # noqa: ARG002 - it is one range
        read_ranges: ReadMany = read_each,
        report: ReadReport | None = None,
    ) -> pa.Table:
        """Read all rows, as often as the only row group is requested.

        Raises:
            FormatError: The file is damaged, or has another number of rows.
            ColumnError: It has no such column.
        """
        report = ReadReport() if report is None else report
        groups = [0] if row_groups is None else list(row_groups)
        if any(groups):
            raise FormatError("no such row group", file=self.source.name, found=max(groups))
        names = list(self._columns) if columns is None else list(columns)
        for name in names:
            if name not in self._columns:
                raise ColumnError(f"{self.source.name}: no column {name}")
        report.row_groups += len(groups)
        if not names or not groups:
            rows = rows_without_columns(self.group_rows[0] * len(groups))
            return rows if not names else self._decode([], names)
        (data,) = read_counted([Range(self.source, 0, self.source.size)], report, read_ranges)
        table = self._decode(list(self._records(data, names)), names)
        return pa.concat_tables([table] * len(groups))

    def _decode(self, records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.Table:
        kinds = [self._columns[name] for name in names]
        values = ([record[name] for record in records] for name in names)
        arrays = [kind.array(column) for kind, column in zip(kinds, values, strict=True)]
        return pa.table(arrays, names=list(names))

    def _records(self, data: bytes, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """All records, with some of their fields."""
        file, expected = self.source.name, self.group_rows[0]
        schema, parts = plain_container(
            data, file=file, as_schema=_without_meaning, most_records=expected
        )
        wanted = schema | {"fields": [each for each in schema["fields"] if each["name"] in names]}
        count = 0
        for part in parts:
            try:
                for record in fastavro.reader(io.BytesIO(part), wanted):
                    count += 1
                    yield record  # type: ignore[misc]
            # Whatever a damaged schema or record leads to.
            except Exception as error:  # noqa: BLE001
                raise FormatError(f"damaged Avro file: {error!r}", file=file) from None
        if count != expected:
            raise FormatError("rows of an Avro file", file=file, found=count, expected=expected)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a field holds: the values that Python has of it, and what they are in Arrow."""

    stored: Any
    arrow_type: Any
    change: Callable[[Any], Any] | None = None
    """What makes such a value of one that is not null, if it has to be changed."""

    def array(self, values: list[Any]) -> pa.Array:
        if self.change is not None:
            values = [None if value is None else self.change(value) for value in values]
        return pa.array(values, self.stored).cast(self.arrow_type)


def _columns(schema: Any, file: str) -> dict[str, _Kind]:
    match schema:
        case {"type": "record", "fields": list(fields)}:
            try:
                return {str(field["name"]): _kind(field["type"]) for field in fields}
            except (KeyError, TypeError, ValueError) as error:
                raise UnsupportedError(f"{file}: an Avro file with {error}") from None
    raise UnsupportedError(f"{file}: an Avro file whose rows are no records")


def _kind(described: Any) -> _Kind:
    """The type of a field.

    Raises:
        ValueError: Paimon does not write it.
    """
    match described:
        case ["null", inner] | [inner, "null"]:
            return _kind(inner)
        case {"type": "bytes", "logicalType": "decimal"}:
            scale = int(described.get("scale", 0))
            decimal = pa.decimal128(int(described["precision"]), scale)
            return _Kind(decimal, decimal, _Digits(scale))
        case {"type": "record", "fields": list(fields)}:
            return _record({field["name"]: _kind(field["type"]) for field in fields})
        case {"type": "array", "logicalType": "map", "items": {"fields": [key, value]}}:
            return _map(_kind(key["type"]), _kind(value["type"]), _Pairs)
        case {"type": "array", "items": item}:
            inner_kind = _kind(item)
            change = None if inner_kind.change is None else _Each(inner_kind.change)
            return _Kind(pa.list_(inner_kind.stored), pa.list_(inner_kind.arrow_type), change)
        case {"type": "map", "values": value}:
            return _map(_kind("string"), _kind(value), _Items)
        case {"type": str(root), "logicalType": str(logical)}:
            return _Kind(_PLAIN[root], _LOGICAL[root, logical])
        case {"type": str(root)} | str(root) if root in _PLAIN:
            return _Kind(_PLAIN[root], _PLAIN[root])
    raise ValueError(f"the type {described!r:.80}")


def _record(fields: Mapping[str, _Kind]) -> _Kind:
    changes = {name: kind.change for name, kind in fields.items() if kind.change is not None}
    return _Kind(
        pa.struct([(name, kind.stored) for name, kind in fields.items()]),
        pa.struct([(name, kind.arrow_type) for name, kind in fields.items()]),
        _Fields(changes) if changes else None,
    )


def _map(key: _Kind, value: _Kind, pairs: Callable[[_Kind, _Kind], Callable[[Any], Any]]) -> _Kind:
    stored, made = pa.map_(key.stored, value.stored), pa.map_(key.arrow_type, value.arrow_type)
    return _Kind(stored, made, pairs(key, value))


def _changed(kind: _Kind, value: Any) -> Any:
    return value if value is None or kind.change is None else kind.change(value)


@dataclass(frozen=True, slots=True)
class _Digits:
    scale: int

    def __call__(self, value: bytes) -> Decimal:
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-self.scale, _EXACT)


@dataclass(frozen=True, slots=True)
class _Each:
    change: Callable[[Any], Any]

    def __call__(self, values: list[Any]) -> list[Any]:
        return [None if value is None else self.change(value) for value in values]


@dataclass(frozen=True, slots=True)
class _Fields:
    changes: Mapping[str, Callable[[Any], Any]]

    def __call__(self, record: dict[str, Any]) -> dict[str, Any]:
        made = {
            name: None if record[name] is None else change(record[name])
            for name, change in self.changes.items()
        }
        return record | made


@dataclass(frozen=True, slots=True)
class _Pairs:
    key: _Kind
    value: _Kind

    def __call__(self, pairs: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
        return [
            (_changed(self.key, pair["key"]), _changed(self.value, pair["value"])) for pair in pairs
        ]


@dataclass(frozen=True, slots=True)
class _Items:
    key: _Kind
    value: _Kind

    def __call__(self, items: dict[str, Any]) -> list[tuple[Any, Any]]:
        return [(key, _changed(self.value, value)) for key, value in items.items()]


def _without_meaning(described: Any) -> Any:
    """A schema without logical types: of bytes and numbers fastavro makes nothing else."""
    if isinstance(described, list):
        return [_without_meaning(inner) for inner in described]
    if isinstance(described, dict):
        return {
            name: _without_meaning(inner)
            for name, inner in described.items()
            if name != "logicalType"
        }
    return described
