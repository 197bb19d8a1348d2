"""The type of a column, in Paimon's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcid.errors import UnsupportedError

__all__ = ["MAX_LENGTH", "ROOTS", "DataType"]

MAX_LENGTH = 2**31 - 1
"""The length of STRING, which is VARCHAR(2147483647), and of BYTES."""

_NO_PARAMETERS = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    *("DATE", "ARRAY", "MAP", "ROW", "MULTISET", "VARIANT", "BLOB"),
)
# What each parameter may be, both ends included; a parameter that is not named here is 0.
_LIMITS: dict[str, dict[str, tuple[int, int]]] = {
    **{root: {} for root in _NO_PARAMETERS},
    "DECIMAL": {"precision": (1, 38), "scale": (0, 38)},
    **{root: {"precision": (0, 9)} for root in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ")},
    **{root: {"length": (1, MAX_LENGTH)} for root in ("CHAR", "VARCHAR", "BINARY", "VARBINARY")},
    "VECTOR": {"length": (1, MAX_LENGTH)},
}
_CHILDREN = {"ARRAY": 1, "MULTISET": 1, "VECTOR": 1, "MAP": 2}
_VECTOR_ELEMENTS = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")

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
        from alcid.types.spark import parse_spark

        return parse_spark(text)

    def to_spark(self) -> str:
        """The Spark type that holds the values of this one, as Spark writes it.

        Spark has one binary type and timestamps of microseconds, so BINARY(3) is `binary` and
        TIMESTAMP(9) is `timestamp_ntz`.

        >>> DataType("SMALLINT").to_spark(), DataType("TIMESTAMP", precision=3).to_spark()
        ('smallint', 'timestamp_ntz')
        """
        from alcid.types.spark import to_spark

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
        from alcid.types.arrow import from_arrow

        return from_arrow(arrow_type)

    def to_arrow(self) -> Any:
        """The canonical Arrow type.

        >>> DataType("TIMESTAMP_LTZ", precision=6).to_arrow()
        TimestampType(timestamp[us, tz=UTC])
        """
        from alcid.types.arrow import to_arrow

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
