"""The columns of a data file: which there are, as far as it is known, and of what types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from alcid.errors import ColumnError, UnsupportedError
from alcid.options import find_column, match_column
from alcid.types import DataType

__all__ = ["ColumnTypes", "Columns"]

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
            self._names = types.names
        elif isinstance(types, Mapping):
            self.complete = False
            self._known = {name: _parse(name, given) for name, given in types.items()}
            self._names = list(self._known)
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
        return iter(self._names)  # with those that a schema repeats

    def __len__(self) -> int:
        return len(self._names)

    def type_of(self, name: str) -> DataType:
        """The type of an indexed column; that of `m[key]` is in the MAP `m`, if not given itself.

        Raises:
            ColumnError: It is not known.
        """
        found = match_column(name, self)
        if found is not None:
            return self[found]
        whole = match_column(name.partition("[")[0], self) if name.endswith("]") else None
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
        if self.complete and not any(match_column(part, self) for part in (name, whole, outer)):
            find_column(whole, self)


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
