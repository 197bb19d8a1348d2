"""Column types in Paimon's terms: families of them, as Arrow's types, which indexes take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from alcid.errors import UnsupportedError

MAX_LENGTH = 2**31 - 1
"""The length of STRING, which is VARCHAR(2147483647), and of BYTES."""

INTEGER_TYPES: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
FLOAT_TYPES: Final = ("FLOAT", "DOUBLE")
CHARACTER_TYPES: Final = ("CHAR", "VARCHAR")
BYTE_STRING_TYPES: Final = (*CHARACTER_TYPES, "BINARY", "VARBINARY")
"""Types whose values compare byte by byte. Bounds of these may be cut, and are then not exact."""
TIME_TYPES: Final = ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
"""Types with fractions of a second, of which each has a precision."""
DATETIME_TYPES: Final = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
"""Types of points in time, which Spark converts into each other."""

_NO_PARAMETERS = (
    *("BOOLEAN", *INTEGER_TYPES, *FLOAT_TYPES),
    *("DATE", "ARRAY", "MAP", "ROW", "MULTISET", "VARIANT", "BLOB"),
)
# What each parameter may be, both ends included; a parameter that is not named here is 0.
_LIMITS: dict[str, dict[str, tuple[int, int]]] = {
    **{root: {} for root in _NO_PARAMETERS},
    "DECIMAL": {"precision": (1, 38), "scale": (0, 38)},
    **{root: {"precision": (0, 9)} for root in TIME_TYPES},
    **{root: {"length": (1, MAX_LENGTH)} for root in BYTE_STRING_TYPES},
    "VECTOR": {"length": (1, MAX_LENGTH)},
}
_CHILDREN = {"ARRAY": 1, "MULTISET": 1, "VECTOR": 1, "MAP": 2}
_VECTOR_ELEMENTS = ("BOOLEAN", *INTEGER_TYPES, *FLOAT_TYPES)

ROOTS = tuple(_LIMITS)
"""Every value that `DataType.root` takes."""


@dataclass(frozen=True, slots=True, repr=False)
class DataType:
    """A type in Paimon's terms, without nullability: an index takes nulls in any column.

    Fields that mean nothing for `root` are 0 or empty, so that equal types are equal objects.

    >>> DataType("DECIMAL", precision=10, scale=2) == DataType.parse("dec(10,2) not null")
    True
    >>> print(DataType.parse("TIMESTAMP_LTZ(3)"))
    TIMESTAMP(3) WITH LOCAL TIME ZONE
    >>> print(DataType.from_spark("timestamp"))
    TIMESTAMP(6) WITH LOCAL TIME ZONE
    """

    root: str
    """One of `ROOTS`. STRING is VARCHAR and BYTES is VARBINARY, each of length 2147483647."""
    precision: int = 0
    """Digits of DECIMAL (1 to 38); digits after the second of TIME and TIMESTAMP* (0 to 9)."""
    scale: int = 0
    """Digits of DECIMAL after the point."""
    length: int = 0
    """Of CHAR, VARCHAR, BINARY, VARBINARY; the number of elements of VECTOR."""
    children: tuple[DataType, ...] = ()
    """ARRAY, MULTISET, VECTOR: the element. MAP: key and value. ROW: its fields."""
    names: tuple[str, ...] = ()
    """The names of the fields of a ROW."""

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem is not None:
            raise UnsupportedError(f"{self}: {problem}")

    @classmethod
    def parse(cls, text: str) -> DataType:
        """Read Paimon's text, in any case; a trailing NULL or NOT NULL is dropped.

        Raises:
            UnsupportedError: What does not parse, with the position.

        >>> print(DataType.parse("map<string, integer>"))
        MAP<STRING, INT>
        >>> DataType.parse("CHAR(3")
        Traceback (most recent call last):
        alcid.errors.UnsupportedError: type 'CHAR(3' at position 6: found the end, expected ')'
        """
        from alcid.types.text import parse_paimon

        return parse_paimon(text)

    @classmethod
    def from_spark(cls, text: str) -> DataType:
        """Read Spark's text: `simpleString()` of a type, or what stands in DDL.

        >>> print(DataType.from_spark("struct<a:int,b:array<string>>"))
        ROW<`a` INT, `b` ARRAY<STRING>>
        """
        from alcid.types.text import parse_spark

        return parse_spark(text)

    def to_spark(self) -> str:
        """The Spark type that holds the values of this one, as Spark writes it.

        Spark has one binary type and timestamps of microseconds, so BINARY(3) is `binary` and
        TIMESTAMP(9) is `timestamp_ntz`.

        >>> DataType("SMALLINT").to_spark(), DataType("TIMESTAMP", precision=3).to_spark()
        ('smallint', 'timestamp_ntz')
        """
        from alcid.types.text import to_spark

        return to_spark(self)

    @classmethod
    def from_arrow(cls, arrow_type: Any) -> DataType:
        """The type of an Arrow column: encodings and offset widths do not matter.

        >>> import pyarrow as pa
        >>> print(DataType.from_arrow(pa.dictionary(pa.int32(), pa.large_string())))
        STRING
        >>> print(DataType.from_arrow(pa.uint64()))
        DECIMAL(20, 0)
        """
        return from_arrow(arrow_type)

    def to_arrow(self) -> Any:
        """The canonical Arrow type.

        >>> DataType("TIMESTAMP_LTZ", precision=6).to_arrow()
        TimestampType(timestamp[us, tz=UTC])
        """
        return to_arrow(self)

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.children))
        match self.root:
            case "DECIMAL":
                return f"DECIMAL({self.precision}, {self.scale})"
            case "TIME" | "TIMESTAMP":
                return f"{self.root}({self.precision})"
            case "TIMESTAMP_LTZ":
                return f"TIMESTAMP({self.precision}) WITH LOCAL TIME ZONE"
            case "VARCHAR" if self.length == MAX_LENGTH:
                return "STRING"
            case "VARBINARY" if self.length == MAX_LENGTH:
                return "BYTES"
            case "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY":
                return f"{self.root}({self.length})"
            case "ARRAY" | "MULTISET" | "MAP":
                return f"{self.root}<{inner}>"
            case "VECTOR":
                return f"VECTOR<{inner}, {self.length}>"
            case "ROW":
                fields = zip(self.names, self.children, strict=False)
                return f"ROW<{', '.join(f'{quote(name)} {child}' for name, child in fields)}>"
            case _:
                return self.root

    def __repr__(self) -> str:
        return f"DataType.parse({str(self)!r})"


def quote(name: str) -> str:
    """A field name in backticks, doubled within, as Paimon and Spark both read it."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _problem(data_type: DataType) -> str | None:
    """Why there is no such type, if so."""
    root = data_type.root
    if root not in _LIMITS:
        return "no such type"
    for parameter in ("precision", "scale", "length"):
        least, most = _LIMITS[root].get(parameter, (0, 0))
        if not least <= getattr(data_type, parameter) <= most:
            return f"{parameter} must be {least}" + (f" to {most}" if most > least else "")
    if data_type.scale > data_type.precision:
        return f"scale must be at most the precision, {data_type.precision}"
    fields = len(data_type.names)
    if root != "ROW" and fields:
        return "only ROW has names"
    if len(data_type.children) != _CHILDREN.get(root, fields):
        return (
            f"must have {_CHILDREN.get(root, fields)} inner types, found {len(data_type.children)}"
        )
    if root == "VECTOR" and data_type.children[0].root not in _VECTOR_ELEMENTS:
        return f"elements must be one of {', '.join(_VECTOR_ELEMENTS)}"
    return None


# Unsigned integers go to the next wider type, as Spark reads them from Parquet.
_FROM_ARROW: Final[dict[Any, DataType]] = {
    pa.bool_(): DataType("BOOLEAN"),
    pa.int8(): DataType("TINYINT"),
    pa.int16(): DataType("SMALLINT"),
    pa.int32(): DataType("INT"),
    pa.int64(): DataType("BIGINT"),
    pa.uint8(): DataType("SMALLINT"),
    pa.uint16(): DataType("INT"),
    pa.uint32(): DataType("BIGINT"),
    pa.uint64(): DataType("DECIMAL", precision=20),
    pa.float16(): DataType("FLOAT"),
    pa.float32(): DataType("FLOAT"),
    pa.float64(): DataType("DOUBLE"),
    pa.date32(): DataType("DATE"),
    pa.date64(): DataType("DATE"),
    **dict.fromkeys(
        (pa.string(), pa.large_string(), pa.string_view()), DataType("VARCHAR", length=MAX_LENGTH)
    ),
    **dict.fromkeys(
        (pa.binary(), pa.large_binary(), pa.binary_view()), DataType("VARBINARY", length=MAX_LENGTH)
    ),
}
_TO_ARROW: Final[dict[str, Any]] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "VARBINARY": pa.binary(),
    "BLOB": pa.large_binary(),
    "DATE": pa.date32(),
    "VARIANT": pa.struct(
        [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]
    ),
}
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def from_arrow(arrow_type: Any) -> DataType:
    """The type of an Arrow column.

    Raises:
        UnsupportedError: null, durations, intervals, unions; decimals that Paimon does not have.
    """
    known = _FROM_ARROW.get(arrow_type)
    if known is not None:
        return known
    if isinstance(arrow_type, pa.BaseExtensionType):
        return from_arrow(arrow_type.storage_type)
    if types.is_dictionary(arrow_type) or types.is_run_end_encoded(arrow_type):
        return from_arrow(arrow_type.value_type)
    if types.is_fixed_size_binary(arrow_type):
        return DataType("BINARY", length=arrow_type.byte_width)
    if types.is_decimal(arrow_type):
        return DataType("DECIMAL", precision=arrow_type.precision, scale=arrow_type.scale)
    if types.is_time(arrow_type):
        return DataType("TIME", precision=_DIGITS[arrow_type.unit])
    if types.is_timestamp(arrow_type):
        root = "TIMESTAMP" if arrow_type.tz is None else "TIMESTAMP_LTZ"
        return DataType(root, precision=_DIGITS[arrow_type.unit])
    if types.is_map(arrow_type):
        key, value = from_arrow(arrow_type.key_type), from_arrow(arrow_type.item_type)
        return DataType("MAP", children=(key, value))
    if types.is_struct(arrow_type):
        return DataType(
            "ROW",
            names=tuple(field.name for field in arrow_type),
            children=tuple(from_arrow(field.type) for field in arrow_type),
        )
    if types.is_nested(arrow_type) and not types.is_union(arrow_type):  # every kind of list
        return DataType("ARRAY", children=(from_arrow(arrow_type.value_type),))
    raise UnsupportedError(f"Arrow type {arrow_type} has no counterpart among Paimon's types")


def to_arrow(data_type: DataType) -> Any:
    """The canonical Arrow type of `data_type`."""
    children = [to_arrow(child) for child in data_type.children]
    match data_type.root:
        case "DECIMAL":
            return pa.decimal128(data_type.precision, data_type.scale)
        case "BINARY":
            return pa.binary(data_type.length)
        case "TIME":  # never seconds: Paimon keeps milliseconds of the day, whatever the precision
            unit = _unit(data_type.precision)
            return pa.time64(unit) if unit in ("us", "ns") else pa.time32("ms")
        case "TIMESTAMP":
            return pa.timestamp(_unit(data_type.precision))
        case "TIMESTAMP_LTZ":
            return pa.timestamp(_unit(data_type.precision), tz="UTC")
        case "ARRAY":
            return pa.list_(children[0])
        case "VECTOR":
            return pa.list_(children[0], data_type.length)
        case "MAP":
            return pa.map_(*children)
        case "MULTISET":  # the element and how often it occurs
            return pa.map_(children[0], pa.int32())
        case "ROW":
            return pa.struct(list(zip(data_type.names, children, strict=True)))
        case root:
            return _TO_ARROW[root]


def _unit(precision: int) -> str:
    """The coarsest unit that holds `precision` digits after the second."""
    return next(unit for unit, digits in _DIGITS.items() if precision <= digits)


INDEX_TYPES: Final = ("bloom-filter", "bitmap", "range-bitmap", "bsi")
"""The index types that Paimon has, by the names in its options and files.

What else has an entry for each is listed in ARCHITECTURE.md, under "A new index type".
"""

_INDEXES_BY_ROOT: Final[dict[str, tuple[str, ...]]] = {
    "BOOLEAN": ("bitmap", "range-bitmap"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), INDEX_TYPES),
    **dict.fromkeys(("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"), INDEX_TYPES),
    **dict.fromkeys(("FLOAT", "DOUBLE"), ("bloom-filter", "bitmap", "range-bitmap")),
    "DECIMAL": ("range-bitmap", "bsi"),
    **dict.fromkeys(("CHAR", "VARCHAR"), ("bloom-filter", "bitmap", "range-bitmap")),
    **dict.fromkeys(("BINARY", "VARBINARY"), ("bloom-filter",)),
}
# A range-bitmap keeps all digits of a value, in keys of 8 bytes. bsi is not here: it takes any
# precision, and its build fails at a value that does not fit.
_MAX_PRECISION: Final = {
    ("range-bitmap", "DECIMAL"): 18,
    ("range-bitmap", "TIMESTAMP"): 6,
    ("range-bitmap", "TIMESTAMP_LTZ"): 6,
}


def indexes_for(data_type: DataType) -> tuple[str, ...]:
    """The index types that take a column of this type, in the order of `INDEX_TYPES`.

    >>> indexes_for(DataType("BOOLEAN"))
    ('bitmap', 'range-bitmap')
    >>> indexes_for(DataType("DECIMAL", precision=19))
    ('bsi',)
    """
    return tuple(
        index_type
        for index_type in _INDEXES_BY_ROOT.get(data_type.root, ())
        if data_type.precision <= _max_precision(index_type, data_type)
    )


def require_index(index_type: str, column: str, data_type: DataType) -> None:
    """Make sure that an index takes a column.

    Raises:
        UnsupportedError: It does not; the message says why, and which other index type does.

    >>> require_index("bloom-filter", "price", DataType.parse("DECIMAL(10, 2)"))
    Traceback (most recent call last):
    alcid.errors.UnsupportedError: column price: bloom-filter does not take DECIMAL(10, 2); ...
    """
    if index_type not in INDEX_TYPES:
        known = ", ".join(INDEX_TYPES)
        raise UnsupportedError(
            f"column {column}: found index type {index_type!r}, expected {known}"
        )
    others = indexes_for(data_type)
    if index_type in others:
        return
    problem = f"column {column}: {index_type} does not take {data_type}"
    if index_type in _INDEXES_BY_ROOT.get(data_type.root, ()):
        problem += f", only a precision up to {_max_precision(index_type, data_type)}"
    if others:
        raise UnsupportedError(f"{problem}; use {' or '.join(others)}")
    if data_type.root == "MAP":
        raise UnsupportedError(f"{problem}; name a key of the map instead: {column}[key]")
    raise UnsupportedError(f"{problem}; no index does")


def _max_precision(index_type: str, data_type: DataType) -> int:
    return _MAX_PRECISION.get((index_type, data_type.root), data_type.precision)
