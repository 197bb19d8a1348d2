"""The columns of a table, and what they are in each of its files.

Files of a table were written over years: a column may be missing in some, or narrower, or spelled
otherwise. Files with the same schema are one group, so that planning treats each group once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from alcid._arrays import BoolArray, Float64Array, Int64Array
from alcid.config import current_settings
from alcid.errors import ColumnError, UnsupportedError
from alcid.options import ColumnNames
from alcid.types import DataType

Conversion: TypeAlias = Callable[[pa.ChunkedArray], pa.ChunkedArray]
"""Makes values of a table out of those of a file, or raises UnsupportedError; it pickles."""

_BYTES = ("VARCHAR", "VARBINARY")
_WIDENED = (("TINYINT", "SMALLINT", "INT", "BIGINT"), ("FLOAT", "DOUBLE"))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or of a file."""

    name: str
    arrow_type: Any
    data_type: DataType | None = None
    """None if Alcid has no such type: it can be read, and compared with null only."""
    problem: str = ""
    """Why its indexes and statistics must not be used; empty if they may."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnGroup:
    """A column, or a key of a map, in those files where it is spelled and typed alike."""

    files: BoolArray
    """Which files of the table."""
    name: str | None
    """As the files spell it, and their indexes; None where they do not have it."""
    data_type: DataType | None
    problem: str
    """Why neither index nor statistics can be used; empty if they can."""


class TableColumns:
    """The columns of a table with several files, and of each file."""

    def __init__(
        self,
        columns: Sequence[Column],
        partitions: Mapping[str, DataType],
        schemas: Sequence[Sequence[Column]],
        schema_of: Int64Array,
        spelled: Sequence[Mapping[str, str]] | None = None,
        conversions: Sequence[Mapping[str, Conversion]] | None = None,
    ) -> None:
        """Take the columns of the table, those in the paths, and those of the files.

        Args:
            columns: Of the table, with the partition columns, in its order.
            partitions: The types of the columns that stand in the paths.
            schemas: The different schemas of files.
            schema_of: Which of these each file has.
            spelled: How the files of each schema spell the columns of the table that they have;
                by default, columns are the same if their names are.
            conversions: For each schema, how values of those columns of the table are made that are
                not the same in its files; by default all are cast.
        """
        self.columns = {column.name: column for column in columns}
        self.partitions = partitions
        self.schemas = tuple({column.name: column for column in schema} for schema in schemas)
        self.schema_of = schema_of
        self._groups: dict[str, list[ColumnGroup]] = {}
        self._own_names_of: dict[tuple[int, bool], dict[str, str | None]] = {}
        self._found: dict[tuple[str, bool], str] = {}
        self._names = ColumnNames(self.columns)
        self._given, self._conversions = spelled, conversions
        self._spelled: tuple[Callable[[str], str | None], ...] = (
            tuple(ColumnNames(schema).match for schema in self.schemas)
            if spelled is None
            else tuple(names.get for names in spelled)
        )

    def part(self, files: Int64Array) -> TableColumns:
        """The same columns, of some of the files."""
        schemas = [list(schema.values()) for schema in self.schemas]
        columns = list(self.columns.values())
        schema_of = self.schema_of[files]
        return TableColumns(
            columns, self.partitions, schemas, schema_of, self._given, self._conversions
        )

    def fraction(self, count: int) -> Float64Array:
        """Roughly how much of each file so many columns are."""
        totals = np.array([max(len(schema), 1) for schema in self.schemas], np.float64)
        return np.minimum(count / totals, 1.0)[self.schema_of]

    def find(self, name: str) -> str:
        """The column of the table that a name in a query means; of `m[key]` the map `m`.

        Raises:
            ColumnError: There is none, or more than one.
        """
        key = name, current_settings().case_sensitive
        column = self._found.get(key)
        if column is None:
            is_key = name.endswith("]") and self._names.match(name) is None
            column = self.find_whole(name.partition("[")[0] if is_key else name)
            self._found[key] = column
        return column

    def find_whole(self, name: str) -> str:
        """The column of the table that a name means, which cannot be a key of a map.

        Raises:
            ColumnError: There is none, or more than one.
            UnsupportedError: It names a field within a column.
        """
        column = self._names.match(name)
        if column is None and self._names.match(name.partition(".")[0]) is not None:
            raise UnsupportedError(f"column {name}: a field within a column cannot be chosen")
        return self._names.find(name) if column is None else column

    def has(self, name: str) -> bool:
        """Whether there is such a column, or such a map."""
        return any(map(self._names.match, (name, name.partition("[")[0])))

    def type_of(self, name: str) -> DataType | None:
        """The type of a column, or of the values of a map, as the table has it."""
        return _value_type(name, self.columns[self.find(name)], self._is_key(name))

    def file_name(self, file: int, column: str) -> str | None:
        """How a file spells a column of the table; None if it does not have it."""
        return self._own_names(file, (column,))[column]

    def file_names(self, file: int, columns: Sequence[str]) -> list[str]:
        """Those of some columns of the table that a file has and no path, as it spells them."""
        own_names, inside = self._own_names(file, columns), []
        for column in columns:
            own_name = own_names[column]
            if own_name is not None and column not in self.partitions:
                inside.append(own_name)
        return inside

    def _own_names(self, file: int, columns: Sequence[str]) -> dict[str, str | None]:
        """How a file spells some columns of the table; found once for each schema and case rule."""
        schema = int(self.schema_of[file])
        rule = current_settings().case_sensitive
        own_names = self._own_names_of.setdefault((schema, rule), {})
        for column in columns:
            if column not in own_names:
                own_names[column] = self._spelled[schema](column)
        return own_names

    def conversion(self, schema: int, column: str) -> Conversion | None:
        """How a column of the table is made of files of a schema; None: it is cast, if need be."""
        return None if self._conversions is None else self._conversions[schema].get(column)

    def groups(self, name: str) -> list[ColumnGroup]:
        """The column that a name means, in all files."""
        if name not in self._groups:
            self._groups[name] = [self._group(name, number) for number in range(len(self.schemas))]
        return self._groups[name]

    def _is_key(self, name: str) -> bool:
        """Whether a name means a key of a map."""
        return self._names.match(name) is None

    def _group(self, name: str, number: int) -> ColumnGroup:
        files, schema = self.schema_of == number, self.schemas[number]
        top_level = self.find(name)
        own = self._spelled[number](top_level)
        if own is None:
            return ColumnGroup(files, None, None, "")
        is_key = self._is_key(name)
        spelled = f"{own}[{name.partition('[')[2]}" if is_key else own
        data_type, problem = _value_type(name, schema[own], is_key), schema[own].problem
        expected = self.type_of(name)
        if not problem and (data_type is None or expected is None):
            problem = "a type that is not compared"
        elif not problem and not _is_alike(data_type, expected):
            problem = f"{data_type} in the file, {expected} in the table"
        return ColumnGroup(files, spelled, data_type, problem)


def _value_type(name: str, column: Column, is_key: bool) -> DataType | None:
    """The type of a column; of a key of a map, that of its values."""
    data_type = column.data_type
    if data_type is None or not is_key:
        return data_type
    if data_type.root != "MAP":
        raise ColumnError(f"column {name}: found {data_type}, expected a map")
    return data_type.children[1]


def _is_alike(own: DataType | None, wanted: DataType | None) -> bool:
    """Whether a literal means the same among values of a file as among those of the table.

    It does where they are widened. What is narrowed becomes another value: 0.1 as FLOAT is more.
    """
    if own is None or wanted is None:
        return False
    if own.root == wanted.root and own.root in _BYTES:
        return own.length <= wanted.length
    if own.root == wanted.root == "DECIMAL":
        return own.scale == wanted.scale and own.precision <= wanted.precision
    return own == wanted or any(
        own.root in some and wanted.root in some[some.index(own.root) :] for some in _WIDENED
    )
