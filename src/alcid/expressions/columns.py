"""The columns of a data file: which there are, as far as it is known, and of what types.

The columns of a table of rows, found by the names of a predicate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from alcid.errors import ColumnError, UnsupportedError
from alcid.expressions.row_tests import RowType
from alcid.expressions.row_values import RowColumn
from alcid.formats.file_index.keys import map_key_column
from alcid.options import ColumnNames
from alcid.types import DataType

__all__ = ["ColumnTypes", "Columns", "RowTable", "TableColumn"]

ColumnTypes: TypeAlias = "Mapping[str, str | DataType | pa.DataType] | pa.Schema"


class Columns(Mapping[str, DataType]):
    """Types by name. A schema names every column of the file, a mapping those that matter.

    The types of a schema are looked at when they are asked for: a column of a type that no index
    takes does no harm.

    >>> columns = Columns({"id": "BIGINT", "tags": "MAP<STRING, INT>"})
    >>> print(columns.type_of("ID"), columns.type_of("tags[color]"))
    BIGINT INT
    """

    def __init__(self, types: ColumnTypes) -> None:
        """Take an Arrow schema, or types by name: Paimon's text, `DataType` or Arrow's."""
        self._known: dict[str, Any]
        if isinstance(types, pa.Schema):
            self.complete = True
            self._known = {field.name: field.type for field in types}
            self.names = ColumnNames(types.names)
        elif isinstance(types, Mapping):
            self.complete = False
            self._known = {name: _parse(name, given) for name, given in types.items()}
            self.names = ColumnNames(self._known)
        else:
            raise UnsupportedError(
                f"types of columns: found {type(types).__name__}, expected a mapping or a schema"
            )

    def __getitem__(self, name: str) -> DataType:
        given = self._known[name]
        if not isinstance(given, DataType):
            given = self._known[name] = _from_arrow(name, given)
        return given

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)  # with those that a schema repeats

    def __len__(self) -> int:
        return len(self.names)

    def type_of(self, name: str) -> DataType:
        """The type of an indexed column; that of `m[key]` is in the MAP `m`, if not given itself.

        Raises:
            ColumnError: It is not known.
        """
        found = self.names.match(name)
        if found is not None:
            return self[found]
        whole = self.names.match(name.partition("[")[0]) if name.endswith("]") else None
        if whole is not None and self[whole].root == "MAP":
            return self[whole].children[1]
        given = ", ".join(self) or "no column"
        raise ColumnError(
            f"column {name}: its type is needed to read its index, found types of {given}"
        )

    def require(self, name: str) -> None:
        """Make sure that a predicate's column, or the one it is a part of, can exist.

        Raises:
            ColumnError: A schema was given, and it has no such column.
        """
        whole = name.partition("[")[0]
        outer = whole.partition(".")[0]
        if self.complete and not any(map(self.names.match, (name, whole, outer))):
            self.names.find(whole)


def _parse(name: str, given: object) -> DataType:
    if isinstance(given, DataType):
        return given
    if not isinstance(given, str):
        return _from_arrow(name, given)
    try:
        return DataType.parse(given)
    except UnsupportedError as error:
        raise UnsupportedError(f"column {name}: {error}") from None


def _from_arrow(name: str, given: object) -> DataType:
    if not isinstance(given, pa.DataType):
        raise UnsupportedError(
            f"column {name}: found the type {given!r}, expected Paimon's text or an Arrow type"
        )
    try:
        return DataType.from_arrow(given)
    except UnsupportedError as error:
        raise UnsupportedError(f"column {name}: {error}") from None


_BYTES = ("CHAR", "VARCHAR", "BINARY", "VARBINARY", "BLOB")
_MOMENTS = ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
_FAMILIES = (
    ("TINYINT", "SMALLINT", "INT", "BIGINT"),
    ("FLOAT", "DOUBLE"),
    ("TIMESTAMP", "TIMESTAMP_LTZ"),
    _BYTES,
)
_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class TableColumn:
    """A column, or a key of a map: its values, and its type, which IS NULL does not ask for."""

    def __init__(self, name: str, array: pa.ChunkedArray, given: DataType | None) -> None:
        """Take a column and the type that was given for it, if any."""
        self.name = name
        self.plain = RowColumn(array)
        self.array = array
        self._given = given

    @cached_property
    def trimmed(self) -> RowColumn:
        """The same, of text without the spaces at its end."""
        return RowColumn(self.array, trimmed=True)

    @property
    def is_null(self) -> bool:
        """Whether Arrow's type is null, of which any type may be meant."""
        return bool(pa.types.is_null(self.array.type))

    @cached_property
    def row_type(self) -> RowType:
        """The type of the values."""
        stored = _stored_type(self.array.type)
        nanos = _NANOS[stored.unit] if hasattr(stored, "unit") else 1
        return RowType(self._data_type(), nanos, self.plain.longest)

    def _data_type(self) -> DataType:
        """What Arrow says, and of the given type what Arrow has no word for, as CHAR(n)."""
        arrow_type, given = self.array.type, self._given
        if given is not None and self.is_null:
            return given
        try:
            own = DataType.from_arrow(arrow_type)
        except UnsupportedError as error:
            raise UnsupportedError(f"column {self.name}: {error}") from None
        if given is None:
            return own
        if _family(own) != _family(given):
            raise UnsupportedError(f"column {self.name}: found {arrow_type}, expected {given}")
        if given.root in _BYTES:
            return given
        if given.root in _MOMENTS:
            return DataType(given.root, precision=max(given.precision, own.precision))
        return own


class RowTable:
    """The columns of a table, each read once."""

    def __init__(self, table: pa.Table | pa.RecordBatch, types: ColumnTypes | None) -> None:
        """Take a table, and types for columns that Arrow does not tell enough of."""
        if not isinstance(table, pa.Table | pa.RecordBatch):
            raise UnsupportedError(f"rows: found {type(table).__name__}, expected a pyarrow Table")
        self.row_count = table.num_rows
        self._table = table
        self._names = ColumnNames(table.schema.names)
        self._given = Columns({} if types is None else types)
        self._found: dict[str, TableColumn] = {}

    def column(self, name: str) -> TableColumn:
        """The column that a name means.

        Raises:
            ColumnError: No such column, or more than one.
            UnsupportedError: A field within a column, or a key of what is no map of strings.
        """
        if name not in self._found:
            self._found[name] = TableColumn(name, self._array(name), self._given_type(name))
        return self._found[name]

    def _array(self, name: str) -> pa.ChunkedArray:
        names = self._names
        found, (whole, bracket, key) = names.match(name), name.partition("[")
        if found is None and bracket and name.endswith("]"):
            maps = self._top_level(names.find(whole))
            if not pa.types.is_map(maps.type):
                raise UnsupportedError(f"column {name}: found {maps.type}, expected a map")
            return map_key_column(maps, key[:-1])
        if found is None and names.match(name.partition(".")[0]) is not None:
            raise UnsupportedError(f"column {name}: a field within a column is not looked into")
        return self._top_level(names.find(name))

    def _top_level(self, name: str) -> pa.ChunkedArray:
        column = self._table.column(self._table.schema.names.index(name))
        return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])

    def _given_type(self, name: str) -> DataType | None:
        known = map(self._given.names.match, (name, name.partition("[")[0]))
        return self._given.type_of(name) if any(known) else None


def _stored_type(arrow_type: pa.DataType) -> pa.DataType:
    """Without dictionary, run-end or extension wrapping."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _stored_type(arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return _stored_type(arrow_type.value_type)
    return arrow_type


def _family(data_type: DataType) -> tuple[str, ...]:
    """The types between which Arrow's word and the table's may differ."""
    return next((f for f in _FAMILIES if data_type.root in f), (data_type.root,))
