"""Which index takes which type."""

from __future__ import annotations

from typing import Final

from alcid.errors import UnsupportedError
from alcid.types.data_type import DataType

__all__ = ["INDEX_TYPES", "indexes_for", "require_index"]

INDEX_TYPES: Final = ("bloom-filter", "bitmap", "range-bitmap", "bsi")
"""The index types that Paimon has, by the names in its options and files."""

_TAKEN: Final[dict[str, tuple[str, ...]]] = {
    "BOOLEAN": ("bitmap", "range-bitmap"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), INDEX_TYPES),
    **dict.fromkeys(("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"), INDEX_TYPES),
    **dict.fromkeys(("FLOAT", "DOUBLE"), ("bloom-filter", "bitmap", "range-bitmap")),
    "DECIMAL": ("range-bitmap", "bsi"),
    **dict.fromkeys(("CHAR", "VARCHAR"), ("bloom-filter", "bitmap", "range-bitmap")),
    **dict.fromkeys(("BINARY", "VARBINARY"), ("bloom-filter",)),
}
# Of digits: range-bitmap keeps 8 bytes of a key and drops nothing. bsi takes any precision and
# refuses single values, when it is written.
_MOST_PRECISE: Final = {
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
        for index_type in _TAKEN.get(data_type.root, ())
        if data_type.precision <= _most_precise(index_type, data_type)
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
    if index_type in _TAKEN.get(data_type.root, ()):
        problem += f", only a precision up to {_most_precise(index_type, data_type)}"
    if others:
        raise UnsupportedError(f"{problem}; use {' or '.join(others)}")
    if data_type.root == "MAP":
        raise UnsupportedError(f"{problem}; name a key of the map instead: {column}[key]")
    raise UnsupportedError(f"{problem}; no index does")


def _most_precise(index_type: str, data_type: DataType) -> int:
    return _MOST_PRECISE.get((index_type, data_type.root), data_type.precision)
