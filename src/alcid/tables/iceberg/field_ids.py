"""Columns of data files by field id, whatever their names are there.

Iceberg's writers store the id with each column, and replace characters of names that Avro does not
allow. Imported files have no ids. For those, the table property `schema.name-mapping.default` maps
names to ids, and without it the position of a column is its id:

```
[
    {"field-id": 1, "names": ["id"]},
    {"field-id": 2, "names": ["a"], "fields": [{"field-id": 3, "names": ["b"]}]},
]
```

`SchemaGroups` groups data files by their schema as far as bundles have recorded it. All other files
are in one group whose columns have the names and types of the table: see
`alcid.tables.iceberg.data_files`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from itertools import count
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from alcid._arrays import Int64Array
from alcid.datafiles.parquet import ParquetScan
from alcid.datafiles.parquet.columns import (
    COLLATED,
    OLD_CALENDAR,
    FileColumn,
    field_id,
    stored_type,
)
from alcid.datafiles.parquet.decoding import naming_damage
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import ReadMany
from alcid.index.bundle import BundleSet
from alcid.index.bundle.columns import schema_columns
from alcid.scan import Column, TableColumns
from alcid.tables.casts import FieldConversion, column_type, convert
from alcid.tables.iceberg.metadata.schema import Field, Schema
from alcid.types import MAX_LENGTH, DataType

_PROPERTY: Final = "schema.name-mapping.default"
_MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True)
class NameMapping:
    """The ids of columns by name, for files without ids."""

    ids: Mapping[str, int] = field(default_factory=dict)
    children: Mapping[str, NameMapping] = field(default_factory=dict)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> NameMapping | None:
        """The mapping in the properties of a table; None if there is none.

        Raises:
            FormatError: It is damaged.

        >>> NameMapping.of({_PROPERTY: '[{"field-id": 1, "names": ["id", "ID"]}]'}).ids
        {'id': 1, 'ID': 1}
        """
        text = properties.get(_PROPERTY)
        if text is None:
            return None
        try:
            return cls._parse(json.loads(text), 0)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise FormatError("damaged", file=f"property {_PROPERTY}", found=text[:40]) from None

    @classmethod
    def _parse(cls, entries: Iterable[Mapping[str, Any]], depth: int) -> NameMapping:
        if depth > _MAX_DEPTH:
            raise ValueError("too deep")
        ids: dict[str, int] = {}
        children: dict[str, NameMapping] = {}
        for entry in entries:
            inner = cls._parse(entry.get("fields", ()), depth + 1)
            for name in entry["names"]:
                children[name] = inner
                if entry.get("field-id") is not None:
                    ids[name] = int(entry["field-id"])
        return cls(ids, children)

    def child(self, name: str) -> NameMapping:
        """The mapping of the fields within a column; empty if there is none."""
        return self.children.get(name, NameMapping())


@dataclass(frozen=True, slots=True)
class IdColumn:
    """A column of a file with its field id."""

    column: FileColumn
    id: int
    inner_ids: tuple[int, ...]
    """The ids of nested fields in depth-first order; below 0 where unknown."""

    @property
    def name(self) -> str:
        """The name in the file."""
        return self.column.name

    @property
    def data_type(self) -> DataType:
        """Its type.

        Raises:
            UnsupportedError: The type is not supported.
        """
        if self.column.data_type is None:
            raise UnsupportedError(f"column {self.name}: {self.column.problem}")
        return self.column.data_type


def columns_by_id(
    columns: Sequence[FileColumn], mapping: NameMapping | None, file: str
) -> dict[int, IdColumn]:
    """The columns of a file by id, without those that have none.

    Args:
        columns: All columns of the file.
        mapping: The ids by name, for a file without ids. If it is None, too, the positions of
            columns are their ids, from 1 on, and fields of structs have none.
        file: The name of the file in errors.

    Raises:
        FormatError: Two columns have the same id.
    """
    # As in Iceberg, a single id is enough for a file to count as one with ids.
    has_ids = any(
        _has_ids(pa.field(column.name, column.arrow_type), column.field_id) for column in columns
    )
    names = None if has_ids else mapping
    by_id: dict[int, IdColumn] = {}
    for column in columns if has_ids or names is not None else _numbered_by_position(columns):
        number = column.field_id if names is None else names.ids.get(column.name)
        if number is None:
            continue
        if number in by_id:
            raise FormatError(
                f"column {column.name}",
                file=file,
                found=f"field id {number} again",
                expected="others",
            )
        inner = None if names is None else names.child(column.name)
        ids = tuple(_inner_ids(column.arrow_type, inner, count(-1, -1)))
        by_id[number] = IdColumn(column, number, ids)
    return by_id


def _numbered_by_position(columns: Sequence[FileColumn]) -> Iterator[FileColumn]:
    """The columns with their positions as ids; columns of structs are left out.

    Iceberg reads structs whose fields have no ids as null. It keeps the keys of maps of such
    structs, which is not supported here.
    """
    for position, column in enumerate(columns, 1):
        parts = set(_nested_types(column.arrow_type))
        if "struct" not in parts:
            yield replace(column, field_id=position)
        elif "map" in parts:
            problem = "a map of structs without field ids"
            yield replace(column, field_id=position, data_type=None, problem=problem)


def _nested_types(arrow_type: Any) -> Iterator[str]:
    arrow_type = stored_type(arrow_type)
    if types.is_map(arrow_type):
        yield "map"
        for child in (arrow_type.key_field, arrow_type.item_field):
            yield from _nested_types(child.type)
    elif types.is_nested(arrow_type):
        yield "struct" if types.is_struct(arrow_type) else "list"
        for child in _fields(arrow_type):
            yield from _nested_types(child.type)


def _has_ids(column: pa.Field, number: int | None) -> bool:
    return number is not None or any(
        _has_ids(inner, field_id(inner)) for inner in _fields(stored_type(column.type))
    )


def _fields(arrow_type: Any) -> list[pa.Field]:
    return [arrow_type.field(position) for position in range(arrow_type.num_fields)]


def _inner_ids(arrow_type: Any, names: NameMapping | None, unknown: Iterator[int]) -> Iterator[int]:
    """The ids of fields of structs, in the order of `IdColumn.inner_ids`."""
    arrow_type = stored_type(arrow_type)
    if types.is_struct(arrow_type):
        for child in _fields(arrow_type):
            number = field_id(child) if names is None else names.ids.get(child.name)
            yield next(unknown) if number is None else number
            inner = None if names is None else names.child(child.name)
            yield from _inner_ids(child.type, inner, unknown)
    elif types.is_map(arrow_type):
        for child, part in ((arrow_type.key_field, "key"), (arrow_type.item_field, "value")):
            inner = None if names is None else names.child(part)
            yield from _inner_ids(child.type, inner, unknown)
    elif types.is_nested(arrow_type):  # a list
        inner = None if names is None else names.child("element")
        yield from _inner_ids(arrow_type.value_type, inner, unknown)


def field_names(scan: ParquetScan) -> dict[int, str]:
    """The names of the top-level columns that have a field id."""
    with naming_damage(scan.source.name, "damaged footer"):
        schema = scan.metadata.schema.to_arrow_schema()
    return {number: column.name for column in schema if (number := field_id(column)) is not None}


def read_columns(
    scan: ParquetScan,
    arrow_types: Mapping[int, Any],
    read_ranges: ReadMany,
    row_groups: Sequence[int] | None = None,
) -> list[pa.ChunkedArray]:
    """Read columns by field id, cast to types.

    Args:
        scan: The file.
        arrow_types: The types by field id.
        read_ranges: Reads byte ranges.
        row_groups: The row groups; by default all.

    Raises:
        FormatError: A column is missing, or cannot be cast.
    """
    names = field_names(scan)
    for number, kind in arrow_types.items():
        if number not in names:
            raise FormatError(
                "delete file without a column",
                file=scan.source.name,
                found=f"field ids {', '.join(map(str, sorted(names))) or 'none'}",
                expected=f"{number} of type {kind}",
            )
    rows = scan.read(row_groups, [names[number] for number in arrow_types], read_ranges=read_ranges)
    columns = []
    for (number, kind), values in zip(arrow_types.items(), rows.columns, strict=True):
        try:
            columns.append(values if values.type == kind else values.cast(kind))
        except pa.ArrowException:
            raise FormatError(
                f"column with field id {number}",
                file=scan.source.name,
                found=values.type,
                expected=kind,
            ) from None
    return columns


@dataclass(frozen=True, slots=True)
class ProjectedField:
    """A column to read: its id, name and type in the table."""

    id: int
    name: str
    data_type: DataType
    inner_ids: tuple[int, ...] = ()
    default: Any = None
    """The value in files that were written before it was added: a scalar, or None for null."""

    @classmethod
    def of(cls, field: Field) -> ProjectedField:
        """The projection of a field of a schema.

        Raises:
            UnsupportedError: Its type is not supported.
            FormatError: Its default is not a value of its type.
        """
        if field.data_type is None:
            raise UnsupportedError(field.problem)
        return cls(field.id, field.name, field.data_type, field.inner_ids, _default(field))

    @property
    def arrow_type(self) -> Any:
        """The Arrow type of its values."""
        return column_type(self.data_type)

    def missing(self, count: int) -> pa.Array:
        """Its values in a file without the column."""
        if self.default is None:
            return pa.nulls(count, self.arrow_type)
        return pa.repeat(self.default, count)


def _default(field: Field) -> Any:
    """Parse the initial default, in Iceberg's JSON single-value serialization.

    >>> column = Field(1, "d", "date", DataType("DATE"), initial_default="2024-02-29")
    >>> _default(column)
    <pyarrow.Date32Scalar: datetime.date(2024, 2, 29)>
    """
    value, data_type = field.initial_default, field.data_type
    if value is None or data_type is None:
        return None
    if data_type.children:
        raise UnsupportedError(f"column {field.name}: a default of {data_type} is not read")
    try:
        match data_type.root:
            case "DECIMAL":
                value = Decimal(value)
            case "DATE":
                value = date.fromisoformat(value)
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                value = datetime.fromisoformat(value)
            case "VARBINARY" | "BINARY":
                value = bytes.fromhex(value)
        return pa.scalar(value, column_type(data_type))
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
        raise FormatError(
            f"column {field.name}: initial-default",
            file="the table's schema",
            found=value,
            expected=str(data_type),
        ) from None


_STRING = DataType("VARCHAR", length=MAX_LENGTH)
_SPARK_PROBLEMS = COLLATED, OLD_CALENDAR  # ignored, as Iceberg's readers do


@dataclass(slots=True, eq=False)
class SchemaGroups:
    """Groups of files for `TableColumns`; the first has the names and types of the table."""

    schema: Schema
    fields: dict[str, ProjectedField] = field(default_factory=dict)
    """The supported columns, by name."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why other columns are not supported, by name."""
    files: list[tuple[FileColumn, ...]] = field(default_factory=list)
    """The columns of each group."""
    ids: list[dict[str, int]] = field(default_factory=list)
    """The field ids of each group, by the names in its files."""
    _inside: list[list[Column]] = field(default_factory=list)
    _spelled: list[dict[str, str]] = field(default_factory=list)
    _conversions: list[dict[str, FieldConversion]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for column in self.schema.fields:
            try:
                self.fields[column.name] = ProjectedField.of(column)
            except UnsupportedError as error:
                self.problems[column.name] = str(error)
        columns = [self._column(column) for column in self.schema.fields]
        self._add((), columns, {column.name: column.name for column in columns}, {})
        self.ids.append({column.name: column.id for column in self.schema.fields})

    def group(
        self,
        bundles: BundleSet,
        mapping: NameMapping | None,
        constants: Mapping[int, pa.StructArray],
        on_damage: Callable[[FormatError], None],
    ) -> Int64Array:
        """Add a group for each schema in bundles, and return the group of each file.

        Args:
            bundles: The bundles, matched with the files.
            mapping: The ids by name, for files without ids.
            constants: Columns that are partition values of files, by field id; a file without such
                a column stays in the group of the table.
            on_damage: Is called with the errors of damaged schemas.
        """
        schemas = bundles.schemas
        codes = schemas.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        group_of = np.zeros(len(codes), np.int64)
        for code, first in zip(*np.unique(codes, return_index=True), strict=True):
            if code < 0:
                continue
            name = str(bundles.paths[int(first)])
            try:
                columns = schema_columns(schemas.dictionary[int(code)].as_py(), file=name)
                by_id = columns_by_id(columns, mapping, name)
            except FormatError as error:
                on_damage(error)
                continue
            if all(column.id in by_id or column.default is None for column in self.fields.values()):
                members = codes == code
                for number, values in constants.items():
                    if number not in by_id:
                        members &= ~values.is_valid().to_numpy(zero_copy_only=False)
                group_of[members] = self._enter(columns, by_id)
        return group_of

    def columns(self, partitions: Mapping[str, DataType], group_of: Int64Array) -> TableColumns:
        """The columns of the table, and of the groups."""
        columns = [self._column(column) for column in self.schema.fields]
        inside, spelled, conversions = self._inside, self._spelled, self._conversions
        return TableColumns(columns, partitions, inside, group_of, spelled, conversions)

    def _enter(self, columns: Sequence[FileColumn], by_id: Mapping[int, IdColumn]) -> int:
        present = [column for column in self.schema.fields if column.id in by_id]
        conversions = {}
        for column in present:
            projected = self.fields.get(column.name)
            if projected is not None and by_id[column.id].column.data_type is not None:
                conversion = convert(by_id[column.id], projected)
                if conversion is not None:
                    conversions[column.name] = conversion
        unread = {by_id[column.id].name: self.problems.get(column.name, "") for column in present}
        inside = [
            Column(
                column.name,
                column.arrow_type,
                column.data_type,
                unread.get(column.name) or _problem(column),
            )
            for column in columns
        ]
        self._add(tuple(columns), inside, {o.name: by_id[o.id].name for o in present}, conversions)
        self.ids.append({column.name: number for number, column in by_id.items()})
        return len(self.files) - 1

    def _add(
        self,
        columns: tuple[FileColumn, ...],
        inside: list[Column],
        spelled: dict[str, str],
        conversions: dict[str, FieldConversion],
    ) -> None:
        self.files.append(columns)
        self._inside.append(inside)
        self._spelled.append(spelled)
        self._conversions.append(conversions)

    def _column(self, field: Field) -> Column:
        projected = self.fields.get(field.name)
        if projected is not None:
            return Column(field.name, projected.arrow_type, projected.data_type)
        problem = self.problems[field.name]
        if field.type_text == "uuid":  # a string in Spark
            return Column(field.name, pa.string(), _STRING, problem)
        return Column(field.name, pa.null(), None, problem)


def _problem(column: FileColumn) -> str:
    return "" if column.problem.startswith(_SPARK_PROBLEMS) else column.problem
