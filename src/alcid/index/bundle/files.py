"""The table of a bundle's files: a row for each data file, with the statistics of its columns.

It is an Arrow IPC stream. First come `path`, `size`, `version`, `footer_crc`, `rows` and `schema`;
then, for each column and each type that it has in some file, a struct of statistics, null for files
where the column has another type. Field metadata `column` and `type` name them.

A stream with compressed buffers is refused: each states its own size, which Arrow believes, so that
few bytes could become gigabytes. Whether there are any stands in the head of a batch, a FlatBuffers
table:

    message    u8 kind of the head (field 1) | head (field 2): 2 a dictionary, 3 a batch
    dictionary batch (field 1)
    batch      compression (field 3), absent if there is none
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.errors import FormatError, UnsupportedError
from alcid.index.bundle.statistics import ColumnStatistics, statistics_array, statistics_type
from alcid.types import DataType

_DICTIONARY: Final = 2
_BATCH: Final = 3
_COMPRESSION: Final = 3


def read_stream(data: bytes) -> pa.Table:
    """The table of a stream, checked in full, each column in one chunk.

    Raises:
        pa.ArrowException: It is damaged, or has compressed buffers.
        OSError: It is cut off.
        UnicodeDecodeError: A name is no UTF-8, which Arrow does not look at.

    >>> sink = pa.BufferOutputStream()
    >>> with pa.ipc.new_stream(sink, pa.schema([("a", pa.int8())])) as writer:
    ...     writer.write_table(pa.table({"a": pa.array([7], pa.int8())}))
    >>> read_stream(sink.getvalue().to_pybytes()).to_pydict()
    {'a': [7]}
    """
    messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(data))
    for message in messages:
        if _is_compressed(message.metadata.to_pybytes()):
            raise pa.ArrowInvalid("compressed buffers")
    table = pa.ipc.open_stream(pa.BufferReader(data)).read_all()
    table.validate(full=True)  # before anything else: chunks are joined without a look at them
    return table.combine_chunks()


def _is_compressed(message: bytes) -> bool:
    """Whether a message is a batch with compressed buffers; Arrow has checked its offsets."""
    table = _u32(message, 0)
    kind, head = _field(message, table, 1), _field(message, table, 2)
    if not kind or not head or message[kind] not in (_DICTIONARY, _BATCH):
        return False
    batch = head + _u32(message, head)
    if message[kind] == _DICTIONARY:
        inner = _field(message, batch, 1)
        if not inner:
            return False
        batch = inner + _u32(message, inner)
    return bool(_field(message, batch, _COMPRESSION))


def _field(message: bytes, table: int, number: int) -> int:
    """Where a field of a table is; 0 if it is absent."""
    fields = table - int(struct.unpack_from("<i", message, table)[0])
    size, position = _u16(message, fields), 4 + 2 * number
    offset = _u16(message, fields + position) if position < size else 0
    return table + offset if offset else 0


def _u16(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<H", data, at)[0])


def _u32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])


CORE = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("version", pa.string(), nullable=False),
        pa.field("footer_crc", pa.uint32()),
        pa.field("rows", pa.int64(), nullable=False),
    ]
)
"""The first columns of the table, but for `schema`, which the first bundles did not have."""
_SCHEMA = pa.field("schema", pa.dictionary(pa.int32(), pa.binary()))

_FLOATS, _TEXTS = ("FLOAT", "DOUBLE"), ("CHAR", "VARCHAR", "BINARY", "VARBINARY")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A data file, as it was when its indexes were built."""

    path: str
    """Relative to the table's root; on Iceberg its location."""
    size: int
    version: str
    """What the listing says of its content: ETag, or time of change; only compared for equality."""
    rows: int
    footer_crc: int | None = None
    """CRC-32 of its Parquet footer."""
    statistics: Mapping[str, ColumnStatistics] = field(default_factory=dict, hash=False)
    """By column. A partition column is one whose min and max are the same."""
    schema: bytes | None = None
    """The names and types of its columns, see `alcid.index.bundle.columns`; None: not known."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """The statistics of a column, in all files where it has one type."""

    column: str
    data_type: DataType
    values: pa.StructArray
    """For each file `min`, `max`, `min_exact`, `max_exact`, `nulls`, `has_nan`; or null."""

    @property
    def field(self) -> pa.Field:
        """Its field in the table; the name is for people, the metadata for readers."""
        return pa.field(
            f"{self.column}: {self.data_type}",
            self.values.type,
            metadata={"column": self.column, "type": str(self.data_type)},
        )

    def of_values(self) -> Statistics:
        """Only what is certain to be of the values of a column, and not copied from a footer.

        The difference shows by what no footer said before bundles of version 1.1: whether there is
        a NaN, and that a text is not cut. The bounds of other files are dropped.
        """
        values, root = self.values, self.data_type.root
        fields = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
        certain = pa.repeat(False, len(values))
        if root in _FLOATS:
            certain = pc.is_valid(fields["has_nan"])
        elif root in _TEXTS:
            both = (
                pc.and_(pc.is_valid(fields[bound]), fields[f"{bound}_exact"])
                for bound in ("min", "max")
            )
            certain = pc.and_(*both).fill_null(False)
        for name in ("min", "max", "nulls"):
            fields[name] = pc.if_else(certain, fields[name], pa.scalar(None, fields[name].type))
        trusted = pa.StructArray.from_arrays(
            list(fields.values()), fields=list(values.type), mask=values.is_null()
        )
        return Statistics(self.column, self.data_type, trusted)


@dataclass(frozen=True, eq=False)
class FileTable:
    """The table, in columns."""

    paths: pa.StringArray
    sizes: Int64Array
    versions: pa.StringArray
    footer_crcs: pa.UInt32Array
    """Null where it is not known."""
    rows: Int64Array
    schemas: pa.DictionaryArray
    """Null where it is not known; equal ones are kept once."""
    statistics: tuple[Statistics, ...] = ()

    def __len__(self) -> int:
        return len(self.paths)

    @classmethod
    def of(cls, entries: Sequence[FileEntry]) -> FileTable:
        """The table of these files, in this order.

        Raises:
            UnsupportedError: A path twice, a negative number, or statistics that cannot be.
        """
        groups: dict[tuple[str, DataType], list[ColumnStatistics | None]] = {}
        for row, entry in enumerate(entries):
            for column, statistics_of in entry.statistics.items():
                if statistics_of.nulls is not None and not 0 <= statistics_of.nulls <= entry.rows:
                    problem = f"{statistics_of.nulls} nulls in {entry.rows} rows"
                    raise UnsupportedError(f"{entry.path}: column {column!r}: {problem}")
                group = column, statistics_of.data_type
                if group not in groups:
                    groups[group] = [None] * len(entries)
                groups[group][row] = statistics_of
        statistics = (
            Statistics(column, data_type, statistics_array(column, data_type, group))
            for (column, data_type), group in groups.items()
        )
        table = cls(
            pa.array([entry.path for entry in entries], pa.string()),
            np.array([entry.size for entry in entries], np.int64),
            pa.array([entry.version for entry in entries], pa.string()),
            pa.array([entry.footer_crc for entry in entries], pa.uint32()),
            np.array([entry.rows for entry in entries], np.int64),
            _encoded([entry.schema for entry in entries]),
            tuple(sorted(statistics, key=lambda problem: (problem.column, str(problem.data_type)))),
        )
        if table.problem:
            raise UnsupportedError(f"files of a bundle: {table.problem}")
        return table

    @property
    def problem(self) -> str:
        """Why this cannot be a table of files, or an empty text."""
        if (self.sizes < 0).any() or (self.rows < 0).any():
            return "a negative size or number of rows"
        return "a path twice" if len(self.paths.unique()) != len(self) else ""

    @cached_property
    def table(self) -> pa.Table:
        """All of it as one Arrow table."""
        core = [self.paths, pa.array(self.sizes), self.versions, self.footer_crcs]
        core += (pa.array(self.rows), self.schemas)
        fields = [*CORE, _SCHEMA, *(group.field for group in self.statistics)]
        columns = [*core, *(group.values for group in self.statistics)]
        return pa.table(columns, schema=pa.schema(fields))

    def to_bytes(self) -> bytes:
        """The Arrow IPC stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str = "<bytes>", offset: int = 0) -> FileTable:
        """Read and check a stream, called `name` in errors.

        Columns and statistics that this version does not know are left out.
        """

        def error(problem: str, found: object = None, expected: object = None) -> FormatError:
            problem = f"table of files: {problem}"
            return FormatError(problem, file=name, offset=offset, found=found, expected=expected)

        try:
            table = read_stream(data)
            schema = table.schema
            named = _described(schema)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
            raise error(f"not an Arrow stream ({_line(problem)})") from None
        if (core := named[: len(CORE)]) != (wanted := _described(CORE)):
            raise error("other columns", _line(", ".join(core)), ", ".join(wanted))
        columns = [_one(column) for column in table.columns]
        position = len(CORE)
        schemas = pa.nulls(len(table), pa.binary()).dictionary_encode()
        if position < len(schema) and schema.field(position).name == _SCHEMA.name:
            if (kind := schema.field(position).type) != _SCHEMA.type:
                raise error("bad column 'schema'", _line(kind), _SCHEMA.type)
            schemas = columns[position]
        if any(column.null_count for column in (*columns[:3], columns[4])):
            raise error("a file without path, size, version or rows")
        statistics = []
        for position in range(len(CORE), len(schema)):
            group = _statistics(schema.field(position), columns[position])
            if group is not None:
                if group.values.type != statistics_type(group.data_type):
                    found_type = _line(group.values.type)
                    raise error(f"statistics of {group.column!r}", found_type)
                statistics.append(group)
        paths, sizes, versions, crcs, rows = columns[: len(CORE)]
        table = cls(
            paths, sizes.to_numpy(), versions, crcs, rows.to_numpy(), schemas, tuple(statistics)
        )
        if table.problem:
            raise error(table.problem)
        return table

    def take(self, rows: Int64Array, statistics: Sequence[Statistics]) -> FileTable:
        """Some of the files, with `statistics` of them that were taken elsewhere."""
        positions = pa.array(rows)
        return FileTable(
            self.paths.take(positions),
            self.sizes[rows],
            self.versions.take(positions),
            self.footer_crcs.take(positions),
            self.rows[rows],
            _without_unused(self.schemas.take(positions)),
            tuple(statistics),
        )


def _described(schema: pa.Schema) -> list[str]:
    return [f"{column.name} {column.type}" for column in schema]


def _one(column: pa.ChunkedArray) -> pa.Array:
    """The single chunk of a column; a table without rows has none."""
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)


def _line(text: object) -> str:
    """The first line of what Arrow says, or of names that a file gives."""
    return str(text).partition("\n")[0]


def _encoded(schemas: Sequence[bytes | None]) -> pa.DictionaryArray:
    """Each schema once, and for each file which; one for each file could exceed all memory."""
    codes: dict[bytes, int] = {}
    indices = [
        None if schema is None else codes.setdefault(schema, len(codes)) for schema in schemas
    ]
    dictionary = pa.array(list(codes), pa.binary())
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), dictionary)


def _without_unused(schemas: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same, without those that no file has; in the order in which they first occur."""
    used = schemas.indices.unique().drop_null()
    indices = pc.index_in(schemas.indices, value_set=used)
    return pa.DictionaryArray.from_arrays(indices, schemas.dictionary.take(used))


def _statistics(named: pa.Field, values: pa.Array) -> Statistics | None:
    """The statistics that a column of the table is, if it is one."""
    metadata = named.metadata or {}
    if b"column" not in metadata or b"type" not in metadata:
        return None
    try:
        data_type = DataType.parse(metadata[b"type"].decode())
        column = metadata[b"column"].decode()
    except (UnsupportedError, UnicodeDecodeError):  # a type of a later version, or damage
        return None
    return Statistics(column, data_type, values)
