"""The columns of a Parquet file, each described so that it can be put into a file of its own.

A field has the bytes that were written, so that Arrow sees the same types, and so that two
files agree about a column when the bytes do.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from alcid.datafiles.parquet.thrift import Struct, StructReader, get
from alcid.errors import FormatError

_REPEATED = 2
_PHYSICAL_TYPES = 8
_MOST_NESTED = 100  # as Arrow allows


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that has values of its own."""

    path: tuple[bytes, ...]
    physical_type: int


@dataclass(frozen=True, slots=True)
class Field:
    """A top-level column, flat or with others inside."""

    name: str
    elements: tuple[bytes, ...]
    """Its schema elements, itself first, then those inside."""
    leaves: tuple[Leaf, ...]
    nested: bool
    """True if a row may have none, or many, or several values."""
    arrow: bytes = b""
    """The Arrow type that it was written from: a serialised schema of this field alone."""
    created_by: bytes = b""
    """The writer: readers know the mistakes of some."""


def split_fields(elements: Sequence[bytes], file: str) -> tuple[Field, ...]:
    """The top-level columns in a list of schema elements, of which the first is the root.

    Raises:
        FormatError: The elements do not make a tree.
    """
    if not elements:
        raise FormatError("no schema in the metadata", file=file)
    parsed = [StructReader(element, name=file).struct() for element in elements]
    fields: list[Field] = []
    position = 1
    for _ in range(_children(parsed[0], file)):
        field, position = _field(elements, parsed, position, file)
        fields.append(field)
    if position != len(parsed):
        raise FormatError(
            "schema elements left over", file=file, found=len(parsed), expected=position
        )
    return tuple(fields)


def restore_field(
    elements: Sequence[bytes], arrow: bytes = b"", created_by: bytes = b"", *, file: str
) -> Field:
    """A field from the bytes that describe it, which is all of it that must be kept.

    >>> restore_field([bytes.fromhex("15 04 25 02 18 01 61 00")], file="a").name
    'a'

    Raises:
        FormatError: The elements do not make one column.
    """
    parsed = [StructReader(element, name=file).struct() for element in elements]
    field, end = _field(elements, parsed, 0, file)
    if end != len(parsed):
        raise FormatError("schema elements left over", file=file, found=len(parsed), expected=end)
    return replace(field, arrow=arrow, created_by=created_by)


def _field(
    elements: Sequence[bytes], parsed: list[Struct], begin: int, file: str
) -> tuple[Field, int]:
    leaves: list[Leaf] = []
    names: list[bytes] = []  # of the groups that are open, and how many are to come in each
    left: list[int] = []
    position = begin
    repeated = False
    while True:
        if position >= len(parsed):
            raise FormatError("schema elements are missing", file=file, found=len(parsed))
        element = parsed[position]
        position += 1
        name = get(element, 4, bytes, file=file)
        repeated |= get(element, 3, int, 0, file=file) == _REPEATED
        children = _children(element, file)
        if children:
            if len(names) == _MOST_NESTED:
                raise FormatError("schema nested too deep", file=file)
            names.append(name)
            left.append(children)
            continue
        physical_type = get(element, 1, int, file=file)
        if not 0 <= physical_type < _PHYSICAL_TYPES:
            raise FormatError("unknown physical type", file=file, found=physical_type)
        leaves.append(Leaf((*names, name), physical_type))
        while left and left[-1] == 1:
            names.pop()
            left.pop()
        if not left:
            break
        left[-1] -= 1
    nested = repeated or position > begin + 1
    return Field(
        _text(get(parsed[begin], 4, bytes, file=file), file),
        tuple(elements[begin:position]),
        tuple(leaves),
        nested,
    ), position


def _children(element: Struct, file: str) -> int:
    count = get(element, 5, int, 0, file=file)
    if count < 0:
        raise FormatError("bad schema element", file=file, found=f"{count} children")
    return count


def _text(name: bytes, file: str) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise FormatError("column name is not UTF-8", file=file, found=name) from None


@lru_cache(maxsize=16)
def arrow_fields(schema: bytes) -> tuple[bytes, ...]:
    """The value of ARROW:schema, as one serialised schema for each field.

    >>> schema = pa.schema({"a": pa.int8(), "b": pa.string()}).serialize().to_pybytes()
    >>> [
    ...     pa.ipc.read_schema(pa.py_buffer(one)).names
    ...     for one in arrow_fields(base64.b64encode(schema))
    ... ]
    [['a'], ['b']]

    Raises:
        FormatError: It is no schema.
    """
    try:
        fields = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema, validate=True)))
    except (binascii.Error, pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"damaged ARROW:schema in the metadata: {error}") from None
    return tuple(pa.schema([field]).serialize().to_pybytes() for field in fields)
