"""The columns of a file or of rows: their types, and how the names of a predicate find them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from alcid.errors import ColumnError, UnsupportedError
from alcid.expressions.row_tests import RowType
from alcid.expressions.row_values import RowColumn
from alcid.formats.file_index.keys import map_key_column
from alcid.options import ColumnNames
from alcid.types import TIME_TYPES, DataType

ColumnTypes: TypeAlias = "Mapping[str, str | DataType | pa.DataType] | pa.Schema"


class Columns(Mapping[str, DataType]):
    """Types by name. A schema names every column of the file, a mapping those that matter.

    The types of a schema are converted when they are needed: a column of a type that no index
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
        column = self.names.match(name)
        if column is not None:
            return self[column]
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
_FAMILIES = (
    ("TINYINT", "SMALLINT", "INT", "BIGINT"),
    ("FLOAT", "DOUBLE"),
    ("TIMESTAMP", "TIMESTAMP_LTZ"),
    _BYTES,
)
_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class RowField:
    """A column that a predicate names, or a key of a map column, as the rows hold it."""

    def __init__(
        self,
        name: str,
        top_level: str,
        map_key: str | None,
        arrow_type: Any,
        declared: DataType | None,
    ) -> None:
        """Take where the values are, their Arrow type, and the type that was declared, if any."""
        self.name, self.top_level, self.map_key = name, top_level, map_key
        self.arrow_type, self._declared = arrow_type, declared

    @property
    def is_null(self) -> bool:
        """Whether Arrow's type is null, which may stand for any type."""
        return bool(pa.types.is_null(self.arrow_type))

    @cached_property
    def data_type(self) -> DataType:
        """Arrow's type, with what only the declared type says, as CHAR(n).

        Raises:
            UnsupportedError: The values cannot be compared, or are not of the declared type.
        """
        declared = self._declared
        if declared is not None and self.is_null:
            return declared
        try:
            own = DataType.from_arrow(self.arrow_type)
        except UnsupportedError as error:
            raise UnsupportedError(f"column {self.name}: {error}") from None
        if declared is None:
            return own
        if _family(own) != _family(declared):
            raise UnsupportedError(
                f"column {self.name}: found {self.arrow_type}, expected {declared}"
            )
        if declared.root in _BYTES:
            return declared
        if declared.root in TIME_TYPES:
            return DataType(declared.root, precision=max(declared.precision, own.precision))
        return own

    @cached_property
    def row_type(self) -> RowType:
        """The type, and the unit of times and timestamps.

        Raises:
            UnsupportedError: As for `data_type`.
        """
        stored = _stored_type(self.arrow_type)
        return RowType(self.data_type, _NANOS[stored.unit] if hasattr(stored, "unit") else 1)


class RowSchema:
    """The columns of rows, each looked up once by the name that a predicate uses."""

    def __init__(self, schema: pa.Schema, types: ColumnTypes | None = None) -> None:
        """Take an Arrow schema, and the types of columns that Arrow's do not describe fully."""
        self._schema, self._names = schema, ColumnNames(schema.names)
        self._declared = Columns({} if types is None else types)
        self._fields: dict[str, RowField] = {}

    def field(self, name: str) -> RowField:
        """The column that a name means.

        Raises:
            ColumnError: No such column, or more than one.
            UnsupportedError: A field within a column, or a key of a column that is not a map with
                string keys.
        """
        field = self._fields.get(name)
        if field is None:
            field = self._fields[name] = self._find(name)
        return field

    def type_of(self, name: str) -> DataType | None:
        """The type of a column; None if it is not there, or cannot be compared."""
        with suppress(ColumnError, UnsupportedError):
            field = self.field(name)
            return None if field.is_null else field.data_type
        return None

    def _find(self, name: str) -> RowField:
        names = self._names
        top_level, map_key = names.match(name), None
        if top_level is None:
            whole, bracket, key = name.partition("[")
            if bracket and name.endswith("]"):
                top_level, map_key = names.find(whole), key[:-1]
            elif names.match(name.partition(".")[0]) is not None:
                raise UnsupportedError(f"column {name}: a field within a column is not looked into")
            else:
                top_level = names.find(name)
        arrow_type = self._schema.field(self._schema.names.index(top_level)).type
        if map_key is not None:
            if not pa.types.is_map(arrow_type):
                raise UnsupportedError(f"column {name}: found {arrow_type}, expected a map")
            arrow_type = arrow_type.item_type
        return RowField(name, top_level, map_key, arrow_type, self._declared_type(name))

    def _declared_type(self, name: str) -> DataType | None:
        if not len(self._declared):
            return None
        is_declared = any(map(self._declared.names.match, (name, name.partition("[")[0])))
        return self._declared.type_of(name) if is_declared else None


class RowTable:
    """Rows of a schema; each column that is needed is read once."""

    def __init__(self, table: pa.Table | pa.RecordBatch, schema: RowSchema) -> None:
        """Take rows, which have at least the columns of the schema that are needed."""
        self.row_count = table.num_rows
        self._table, self._schema = table, schema
        self._columns: dict[tuple[str, bool], RowColumn] = {}

    def array(self, name: str) -> pa.ChunkedArray:
        """The values of a column, by the name that a predicate uses."""
        field = self._schema.field(name)
        column = self._table.column(field.top_level)
        if field.map_key is not None:
            return map_key_column(column, field.map_key)
        return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])

    def column(self, name: str, *, trimmed: bool = False) -> RowColumn:
        """A column to be compared; `trimmed`: of text, without the spaces at the end."""
        column = self._columns.get((name, trimmed))
        if column is None:
            column = self._columns[name, trimmed] = RowColumn(self.array(name), trimmed=trimmed)
        return column


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
