"""Which statistics of a Parquet footer are trusted: by writer, field, type and column order.

A column chunk may carry two pairs of bounds. `min` and `max` are deprecated: they compare values as
signed numbers, whatever the type. `min_value` and `max_value` follow the column order, and mean
nothing where the footer has none. Writers got both wrong, and later versions right; what this table
does not list is not trusted. A statistic that is not trusted is not known, so nothing is left out
by it.

| values                            | field                    | order | writers                   |
|-----------------------------------|--------------------------|-------|---------------------------|
| BOOLEAN, signed INT32 and INT64   | `min_value`, `max_value` | type  | all but those below       |
| BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY  | `min_value`, `max_value` | type  | all but those below       |
| unsigned INT32 and INT64          | `min_value`, `max_value` | type  | careful                   |
| DECIMAL in FIXED_LEN_BYTE_ARRAY   | `min_value`, `max_value` | type  | careful                   |
| DECIMAL in BYTE_ARRAY             | `min_value`, `max_value` | type  | careful with lengths      |
| FLOAT, DOUBLE                     | `min_value`, `max_value` | type  | careful, or count NaN     |
| FLOAT, DOUBLE                     | `min_value`, `max_value` | total | all that count NaN        |
| BOOLEAN, signed INT32 and INT64   | `min`, `max`             | any   | all but those below       |
| FLOAT, DOUBLE                     | `min`, `max`             | any   | careful, or count NaN     |
| all                               | `null_count`, `nan_count`| any   | all but those below       |

Dates, times, timestamps and decimals in an INT32 or INT64 are signed integers; text, JSON, BSON,
enums and UUIDs are byte arrays. INT96, INTERVAL, FLOAT16, VARIANT, GEOMETRY and whatever is not
known here have no order that could be trusted. Of byte arrays that Arrow wrote from a dictionary
before version 12, neither bounds nor counts are trusted.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from alcid.datafiles.parquet.footer import Chunk, Footer
from alcid.datafiles.parquet.schema import arrow_fields
from alcid.datafiles.parquet.thrift import Struct, StructReader, get
from alcid.errors import FormatError

_BOOLEAN, _INT32, _INT64, _INT96, _FLOAT, _DOUBLE, _BYTE_ARRAY, _FIXED = range(8)
_TYPE_ORDER, _TOTAL_ORDER = 1, 2


class Values(Enum):
    """How the values of a leaf column are compared, and where writers are known to fail."""

    SIGNED = auto()
    UNSIGNED = auto()
    BYTES = auto()
    FIXED_DECIMAL = auto()
    """Big-endian in a FIXED_LEN_BYTE_ARRAY."""
    BYTES_DECIMAL = auto()
    """Big-endian in a BYTE_ARRAY, of any length."""
    FLOAT = auto()
    UNORDERED = auto()
    """There is no order, or none that is known here."""


class _Field(Enum):
    BOUNDS = auto()
    """`min_value` and `max_value`."""
    DEPRECATED = auto()
    """`min` and `max`."""
    COUNTS = auto()
    """`null_count` and `nan_count`."""


_NUMBERS_OF = {_Field.BOUNDS: (6, 5), _Field.DEPRECATED: (2, 1)}
"""The numbers of the least and the greatest value in `Statistics`; the first pair is preferred."""
_ALL = frozenset({1, 2, 5, 6})


_Version = tuple[int, int, int, int]
_ANY: _Version = (0, 0, 0, 0)


def _release(major: int, minor: int = 0) -> _Version:
    return major, minor, 0, 1


_WITH_LENGTHS: Mapping[str, _Version] = {
    "parquet-mr": _release(1, 10),  # PARQUET-1025, PARQUET-1246
    "parquet-mr-trino": _ANY,  # uses the classes of parquet-mr 1.12 and newer
    "parquet-cpp-arrow": _release(4),  # PARQUET-1655; NaN since PARQUET-1766
}
_CAREFUL: Mapping[str, _Version] = {
    **_WITH_LENGTHS,  # of parquet-rs, decimals of different lengths: arrow-rs#10860, arrow-rs#11073
    "parquet-rs": _release(18),  # arrow-rs#1621, arrow-rs#2022
    "datafusion": _release(35),  # writes by parquet-rs, since 35 with column orders
    "duckdb": _release(1, 5),  # the first with column orders; writes no bounds beside a NaN
}
"""Writers, and since which version they get all orders right, and leave NaN out of bounds."""


class _Line(NamedTuple):
    """A line of the table."""

    values: Values
    field: _Field
    order: int | None
    """The column order; None: any, or none at all."""
    writers: Mapping[str, _Version] | None
    """None: all but those that are distrusted."""


_TRUSTED = (
    _Line(Values.SIGNED, _Field.BOUNDS, _TYPE_ORDER, None),
    _Line(Values.BYTES, _Field.BOUNDS, _TYPE_ORDER, None),
    _Line(Values.UNSIGNED, _Field.BOUNDS, _TYPE_ORDER, _CAREFUL),
    _Line(Values.FIXED_DECIMAL, _Field.BOUNDS, _TYPE_ORDER, _CAREFUL),
    _Line(Values.BYTES_DECIMAL, _Field.BOUNDS, _TYPE_ORDER, _WITH_LENGTHS),
    _Line(Values.FLOAT, _Field.BOUNDS, _TYPE_ORDER, _CAREFUL),
    _Line(Values.FLOAT, _Field.BOUNDS, _TOTAL_ORDER, {}),
    _Line(Values.SIGNED, _Field.DEPRECATED, None, None),
    _Line(Values.FLOAT, _Field.DEPRECATED, None, _CAREFUL),
)

_EVER: _Version = (1 << 62, 0, 0, 0)
_BOTH = frozenset({_Field.BOUNDS, _Field.DEPRECATED})
_DISTRUSTED: Mapping[str, tuple[_Version, frozenset[_Field]]] = {
    # Bounds of byte arrays (PARQUET-251) and of the wrong order (PARQUET-686); counts of nulls that
    # were not known became 0 when row groups were copied (PARQUET-1217).
    "parquet-mr": (_release(1, 10), frozenset({_Field.BOUNDS, _Field.COUNTS})),
    "parquet-cpp": (_release(1, 3), frozenset({_Field.BOUNDS})),
    "parquet-rs": (_release(18), frozenset(_Field)),
    # Counts nulls once for each page (polars#29321), and says no version.
    "polars": (_EVER, frozenset({_Field.COUNTS})),
    "arrow2": (_EVER, frozenset({_Field.COUNTS})),
    "parquet-go": (_EVER, frozenset({_Field.COUNTS})),
    # Bounds of timestamps are in another unit (parquet-dotnet#769) or time zone.
    "parquet.net": (_EVER, _BOTH),
    # Bounds of categories are in the order of the categories.
    "fastparquet-python": (_EVER, _BOTH),
}
"""Writers, before which version they are distrusted, and for what."""

_DICTIONARIES: Mapping[str, _Version] = {
    "parquet-cpp": _EVER,
    "parquet-cpp-arrow": _release(12),
}
"""Writers of Arrow's own dictionaries, and before which version they are distrusted for these.

Nulls were counted as 0 (ARROW-12513), and bounds were those of the first part that was written
(apache/arrow#15042, apache/arrow#34106). Only dictionaries of byte arrays were written as such.
"""

_LONGEST = 256  # bytes of `created_by` that are looked at
_APPLICATION = re.compile(r"\s*(.*?)(?:\s+-\s.*|\s+version\b.*|\s*\(.*)?", re.DOTALL)
_NUMBERS = re.compile(r"\bversion\s+v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(-|\.?rc|\.?dev)?")


@dataclass(frozen=True, slots=True)
class Writer:
    """The application that wrote a file, and its version.

    >>> Writer.parse(b"parquet-mr version 1.8.2 (build c6522788)")
    Writer(application='parquet-mr', version=(1, 8, 2, 1))
    """

    application: str
    """In lower case; empty if it is not said."""
    version: _Version | None
    """The last number is 0 before a release, 1 for the release itself; None: not known."""

    @classmethod
    def parse(cls, created_by: bytes) -> Writer:
        """What `created_by` in a footer says."""
        text = created_by[:_LONGEST].decode(errors="replace").lower()
        named, numbers = _APPLICATION.fullmatch(text), _NUMBERS.search(text)
        application = "" if named is None else named[1]
        if numbers is None:
            return cls(application, None)
        major, minor, patch = (int(number or 0) for number in numbers.groups()[:3])
        return cls(application, (major, minor, patch, 0 if numbers[4] else 1))

    def is_among(self, writers: Mapping[str, _Version]) -> bool:
        """Whether it is one of these, in that version or a newer one."""
        first = writers.get(self.application)
        return first is not None and self.version is not None and self.version >= first

    def is_distrusted(self, field: _Field) -> bool:
        """Whether it is known to get a field wrong, whatever the values are."""
        if self.application not in _DISTRUSTED:
            return False
        end, fields = _DISTRUSTED[self.application]
        return field in fields and (self.version is None or self.version < end)

    def has_doubtful_dictionaries(self) -> bool:
        """Whether nothing is trusted of byte arrays that were a dictionary of Arrow."""
        end = _DICTIONARIES.get(self.application)
        return end is not None and (self.version is None or self.version < end)

    def is_trusted(self, values: Values, field: _Field, order: int | None, nans: bool) -> bool:
        """Whether the table has a line for bounds; `nans`: beside them is a count of NaN."""
        return not self.is_distrusted(field) and any(
            line.writers is None or self.is_among(line.writers) or (values is Values.FLOAT and nans)
            for line in _TRUSTED
            if (line.values, line.field) == (values, field) and line.order in (None, order)
        )


@dataclass(frozen=True, slots=True)
class ChunkStatistics:
    """What is trusted of a column chunk; None is what is not known."""

    rows: int
    """Of its row group, which is as many values in a column that is not nested."""
    nulls: int | None = None
    nans: int | None = None
    minimum: Any = None
    """A number or bytes: of decimals the unscaled number, of dates and times the stored one."""
    maximum: Any = None
    minimum_exact: bool = True
    """False if the writer says that `minimum` is no value of the column."""
    maximum_exact: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether there is certainly no value that a bound could be of: all are null or NaN."""
        return (self.nulls or 0) + (self.nans or 0) == self.rows


class FooterStatistics:
    """The statistics of a file, by leaf column and row group.

    A footer that contradicts itself about the number of rows has none.
    """

    def __init__(self, footer: Footer, file: str) -> None:
        """Take a footer, of a file that errors call `file`."""
        self._footer, self._file = footer, file
        self._writer = Writer.parse(footer.created_by)

    def of_leaf(self, leaf: int) -> list[ChunkStatistics]:
        """What is trusted of a leaf column in each row group, the empty ones too.

        Raises:
            FormatError: There is no such leaf, or its description or statistics are damaged.
        """
        footer = self._footer
        contradicts = footer.stated_rows != sum(footer.group_rows)
        if not 0 <= leaf < len(self._leaves):
            raise FormatError("no such leaf column in the metadata", file=self._file, found=leaf)
        described = _Described.parse(self._leaves[leaf], self._file)
        filled = iter(footer.groups)
        statistics: list[ChunkStatistics] = []
        for rows in footer.group_rows:
            chunks = next(filled).chunks if rows else ()
            chunk = chunks[leaf] if leaf < len(chunks) else None
            if chunk is None or chunk.values != rows or contradicts:
                statistics.append(ChunkStatistics(rows))
            else:
                statistics.append(self._of_chunk(chunk, leaf, described))
        return statistics

    @cached_property
    def _leaves(self) -> list[bytes]:
        """The schema elements that have values: a group has no physical type, an empty one too."""
        elements = self._footer.elements[1:]
        return [
            each for each in elements if 1 in StructReader(each, name=self._file).struct({1: None})
        ]

    def _is_doubtful_dictionary(self, described: _Described) -> bool:
        """Whether a column may have been a dictionary, of a writer that failed with these."""
        if described.values not in _BYTE_ARRAYS or not self._writer.has_doubtful_dictionaries():
            return False
        kinds = [field.type for field in self._arrow_schema if field.name == described.name]
        return len(kinds) != 1 or pa.types.is_dictionary(kinds[0])

    @cached_property
    def _arrow_schema(self) -> list[pa.Field]:
        """The columns as Arrow had them when they were written; none if that is not said."""
        schema = self._footer.metadata.get(b"ARROW:schema")
        try:
            fields = () if schema is None else arrow_fields(schema)
        except FormatError:
            return []
        return [pa.ipc.read_schema(pa.py_buffer(field)).field(0) for field in fields]

    def _order(self, leaf: int) -> int | None:
        """The column order; None if the footer does not say one for each leaf column."""
        orders = self._footer.column_orders
        return orders[leaf] if len(orders) == len(self._leaves) else None

    def _of_chunk(self, chunk: Chunk, leaf: int, described: _Described) -> ChunkStatistics:
        rows, file, writer = chunk.values, self._file, self._writer
        if not chunk.statistics or self._is_doubtful_dictionary(described):
            return ChunkStatistics(rows)
        said = StructReader(chunk.statistics, name=file).struct()
        nulls, nans = _count(said, 3, rows), _count(said, 9, rows)
        if writer.is_distrusted(_Field.COUNTS):
            nulls = nans = None
        if (nulls or 0) + (nans or 0) > rows or (
            nulls == rows and not said.keys().isdisjoint(_ALL)
        ):
            return ChunkStatistics(rows)  # it contradicts itself
        order = self._order(leaf)
        for field, numbers in _NUMBERS_OF.items():
            pair = [said[number] for number in numbers if number in said]
            if pair and writer.is_trusted(described.values, field, order, nans is not None):
                minimum, maximum = map(described.value, pair) if len(pair) == 2 else (None, None)
                if minimum is None or maximum is None or minimum > maximum:
                    break
                exact = said.get(8) is not False, said.get(7) is not False
                return ChunkStatistics(rows, nulls, nans, minimum, maximum, *exact)
        return ChunkStatistics(rows, nulls, nans)


def _count(said: Struct, number: int, rows: int) -> int | None:
    """A count of values, if it is one that can be."""
    count = said.get(number)
    return count if type(count) is int and 0 <= count <= rows else None


@dataclass(frozen=True, slots=True)
class _Described:
    """A leaf column as the schema has it."""

    name: str
    physical_type: int
    length: int
    """Of a FIXED_LEN_BYTE_ARRAY."""
    values: Values

    @classmethod
    def parse(cls, element: bytes, file: str) -> _Described:
        said = StructReader(element, name=file).struct()
        physical_type = get(said, 1, int, file=file)
        length = get(said, 2, int, 0, file=file)
        name = get(said, 4, bytes, file=file).decode(errors="replace")
        return cls(name, physical_type, length, _values(said, physical_type, file))

    def value(self, stored: object) -> Any:
        """A bound, or None if there is none, it is NaN, or cannot be of this column."""
        if type(stored) is not bytes:
            return None
        size = _SIZES.get(self.physical_type)
        if size is not None and len(stored) != size:
            return None
        match self.values:
            case Values.FLOAT:
                number: float = struct.unpack("<f" if size == 4 else "<d", stored)[0]
                return None if math.isnan(number) else number
            case Values.SIGNED if self.physical_type == _BOOLEAN:
                return bool(stored[0])
            case Values.SIGNED | Values.UNSIGNED:
                return int.from_bytes(stored, "little", signed=self.values is Values.SIGNED)
            case Values.BYTES:
                return stored
            case Values.FIXED_DECIMAL if len(stored) != self.length:
                return None
            case Values.FIXED_DECIMAL | Values.BYTES_DECIMAL if stored:
                return int.from_bytes(stored, "big", signed=True)
        return None


_BYTE_ARRAYS = (Values.BYTES, Values.BYTES_DECIMAL)
_SIZES = {_BOOLEAN: 1, _INT32: 4, _INT64: 8, _FLOAT: 4, _DOUBLE: 8}
_PLAIN = {
    **dict.fromkeys((_BOOLEAN, _INT32, _INT64), Values.SIGNED),
    **dict.fromkeys((_FLOAT, _DOUBLE), Values.FLOAT),
    **dict.fromkeys((_BYTE_ARRAY, _FIXED), Values.BYTES),
}
_DECIMALS = {
    **dict.fromkeys((_INT32, _INT64), Values.SIGNED),
    _FIXED: Values.FIXED_DECIMAL,
    _BYTE_ARRAY: Values.BYTES_DECIMAL,
}
_INTEGERS = dict.fromkeys((_INT32, _INT64), Values.SIGNED)
_UNSIGNED = dict.fromkeys((_INT32, _INT64), Values.UNSIGNED)
_TEXTS = dict.fromkeys((_BYTE_ARRAY, _FIXED), Values.BYTES)

_CONVERTED: Mapping[int, Mapping[int, Values]] = {
    **dict.fromkeys((0, 4, 19, 20), _TEXTS),  # UTF8, ENUM, JSON, BSON
    5: _DECIMALS,
    **dict.fromkeys(range(6, 11), _INTEGERS),  # DATE, TIME_*, TIMESTAMP_*
    **dict.fromkeys(range(11, 15), _UNSIGNED),
    **dict.fromkeys(range(15, 19), _INTEGERS),
}
_LOGICAL: Mapping[int, Mapping[int, Values]] = {
    **dict.fromkeys((1, 4, 12, 13, 14), _TEXTS),  # STRING, ENUM, JSON, BSON, UUID
    5: _DECIMALS,
    **dict.fromkeys((6, 7, 8), _INTEGERS),  # DATE, TIME, TIMESTAMP
}
_LOGICAL_INTEGER = 10


def _values(said: Struct, physical_type: int, file: str) -> Values:
    """How values compare, by the logical type, the converted type it replaced, or neither."""
    orders: set[Values] = set()
    if 10 in said:
        logical = get(said, 10, dict, file=file)
        number, inside = next(iter(logical.items())) if len(logical) == 1 else (0, None)
        known = _LOGICAL.get(number, {})
        if number == _LOGICAL_INTEGER and isinstance(inside, dict):
            known = _INTEGERS if inside.get(2) is True else _UNSIGNED
        orders.add(known.get(physical_type, Values.UNORDERED))
    if 6 in said:
        converted = _CONVERTED.get(get(said, 6, int, file=file), {})
        orders.add(converted.get(physical_type, Values.UNORDERED))
    if not orders:
        return _PLAIN.get(physical_type, Values.UNORDERED)
    return orders.pop() if len(orders) == 1 else Values.UNORDERED  # they contradict each other
