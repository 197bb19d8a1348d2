"""The columns of a data file by their field ids, whatever they are called there.

Iceberg's writers put the id of a column beside it, and change characters of names that Avro does
not know. Files that were imported have no ids; the table property `schema.name-mapping.default`
says then which name is which column, and without it a column's place is its id:

```
[
    {"field-id": 1, "names": ["id"]},
    {"field-id": 2, "names": ["a"], "fields": [{"field-id": 3, "names": ["b"]}]},
]
```

Columns of a Parquet file by their field ids: names may be others than those of the table.

Columns of the table, as a data file is asked for them.

The columns of a table, and what they are called and typed in its data files, by field ids.

Files whose schema a bundle knows are one group for each schema. All others are in one group, in
which columns have the names and types of the table: see `alcid.tables.iceberg.data_files`.
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

__all__ = [
    "IdColumn",
    "NameMapping",
    "SchemaGroups",
    "WantedField",
    "columns_by_id",
    "field_names",
    "read_columns",
]

_PROPERTY: Final = "schema.name-mapping.default"
_MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True)
class NameMapping:
    """Which column a name means, in files without ids."""

    ids: Mapping[str, int] = field(default_factory=dict)
    children: Mapping[str, NameMapping] = field(default_factory=dict)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> NameMapping | None:
        """That of a table, by its properties; None if there is none.

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
    def _parse(cls, found: Iterable[Mapping[str, Any]], depth: int) -> NameMapping:
        if depth > _MAX_DEPTH:
            raise ValueError("too deep")
        ids: dict[str, int] = {}
        children: dict[str, NameMapping] = {}
        for one in found:
            inner = cls._parse(one.get("fields", ()), depth + 1)
            for name in one["names"]:
                children[name] = inner
                if one.get("field-id") is not None:
                    ids[name] = int(one["field-id"])
        return cls(ids, children)

    def child(self, name: str) -> NameMapping:
        """That of the fields within one; none are known where it is not."""
        return self.children.get(name, NameMapping())


@dataclass(frozen=True, slots=True)
class IdColumn:
    """A column of a file whose id is known."""

    column: FileColumn
    id: int
    inner_ids: tuple[int, ...]
    """The ids of fields within its type, each before those within it; below 0 where unknown."""

    @property
    def name(self) -> str:
        """As the file spells it."""
        return self.column.name

    @property
    def data_type(self) -> DataType:
        """Its type.

        Raises:
            UnsupportedError: There is no such type here.
        """
        if self.column.data_type is None:
            raise UnsupportedError(f"column {self.name}: {self.column.problem}")
        return self.column.data_type


def columns_by_id(
    columns: Sequence[FileColumn], mapping: NameMapping | None, file: str
) -> dict[int, IdColumn]:
    """The columns of a file by their ids; those without one are nobody's.

    Args:
        columns: All columns of the file.
        mapping: What names mean, if the file has no ids. Where the table has none, the columns of
            such a file have their places as ids, from 1 on, and fields of structs none.
        file: What errors call it.

    Raises:
        FormatError: Two columns have the same id.
    """
    # As Iceberg does it: one id is enough for a file to be one with ids.
    has_ids = any(_has_ids(pa.field(one.name, one.arrow_type), one.field_id) for one in columns)
    names = None if has_ids else mapping
    found: dict[int, IdColumn] = {}
    for one in columns if has_ids or names is not None else _placed(columns):
        number = one.field_id if names is None else names.ids.get(one.name)
        if number is None:
            continue
        if number in found:
            raise FormatError(
                f"column {one.name}", file=file, found=f"field id {number} again", expected="others"
            )
        inner = None if names is None else names.child(one.name)
        ids = tuple(_inner_ids(one.arrow_type, inner, count(-1, -1)))
        found[number] = IdColumn(one, number, ids)
    return found


def _placed(columns: Sequence[FileColumn]) -> Iterator[FileColumn]:
    """The columns with their places as ids, but no fields of structs have any.

    Iceberg reads columns of structs whose fields it does not know as null. Maps of them keep their
    keys, which is not done here.
    """
    for place, one in enumerate(columns, 1):
        parts = set(_nested_types(one.arrow_type))
        if "struct" not in parts:
            yield replace(one, field_id=place)
        elif "map" in parts:
            problem = "a map of structs without field ids"
            yield replace(one, field_id=place, data_type=None, problem=problem)


def _nested_types(given: Any) -> Iterator[str]:
    given = stored_type(given)
    if types.is_map(given):
        yield "map"
        for one in (given.key_field, given.item_field):
            yield from _nested_types(one.type)
    elif types.is_nested(given):
        yield "struct" if types.is_struct(given) else "list"
        for one in _fields(given):
            yield from _nested_types(one.type)


def _has_ids(one: pa.Field, number: int | None) -> bool:
    return number is not None or any(
        _has_ids(inner, field_id(inner)) for inner in _fields(stored_type(one.type))
    )


def _fields(given: Any) -> list[pa.Field]:
    return [given.field(place) for place in range(given.num_fields)]


def _inner_ids(given: Any, names: NameMapping | None, unknown: Iterator[int]) -> Iterator[int]:
    """The ids of fields of structs, in the order of `IdColumn.inner_ids`."""
    given = stored_type(given)
    if types.is_struct(given):
        for one in _fields(given):
            number = field_id(one) if names is None else names.ids.get(one.name)
            yield next(unknown) if number is None else number
            inner = None if names is None else names.child(one.name)
            yield from _inner_ids(one.type, inner, unknown)
    elif types.is_map(given):
        for one, part in ((given.key_field, "key"), (given.item_field, "value")):
            inner = None if names is None else names.child(part)
            yield from _inner_ids(one.type, inner, unknown)
    elif types.is_nested(given):  # a list
        inner = None if names is None else names.child("element")
        yield from _inner_ids(given.value_type, inner, unknown)


def field_names(scan: ParquetScan) -> dict[int, str]:
    """The names of the top-level columns that have a field id."""
    with naming_damage(scan.source.name, "damaged footer"):
        schema = scan.metadata.schema.to_arrow_schema()
    return {number: one.name for one in schema if (number := field_id(one)) is not None}


def read_columns(
    scan: ParquetScan,
    wanted: Mapping[int, Any],
    read_ranges: ReadMany,
    row_groups: Sequence[int] | None = None,
) -> list[pa.ChunkedArray]:
    """Columns by field id, each of the type that is wanted.

    Args:
        scan: The file.
        wanted: The types, by field id.
        read_ranges: Reads it.
        row_groups: By default all.

    Raises:
        FormatError: The file has no such column, or it is of a type that does not become the other.
    """
    names = field_names(scan)
    for number, kind in wanted.items():
        if number not in names:
            raise FormatError(
                "delete file without a column",
                file=scan.source.name,
                found=f"field ids {', '.join(map(str, sorted(names))) or 'none'}",
                expected=f"{number} of type {kind}",
            )
    found = scan.read(row_groups, [names[number] for number in wanted], read_ranges=read_ranges)
    columns = []
    for (number, kind), values in zip(wanted.items(), found.columns, strict=True):
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
class WantedField:
    """A column of the table that is read here."""

    id: int
    name: str
    data_type: DataType
    inner_ids: tuple[int, ...] = ()
    default: Any = None
    """What files have for it that were written before it was added: a scalar, or None for null."""

    @classmethod
    def of(cls, field: Field) -> WantedField:
        """One of a schema.

        Raises:
            UnsupportedError: It is not read here.
            FormatError: Its default is no value of its type.
        """
        if field.data_type is None:
            raise UnsupportedError(field.problem)
        return cls(field.id, field.name, field.data_type, field.inner_ids, _default(field))

    @property
    def arrow_type(self) -> Any:
        """The type in which it is read."""
        return column_type(self.data_type)

    def missing(self, count: int) -> pa.Array:
        """Its values in rows of a file that does not have it."""
        if self.default is None:
            return pa.nulls(count, self.arrow_type)
        return pa.repeat(self.default, count)


def _default(field: Field) -> Any:
    """The initial default, which is in Iceberg's JSON for single values.

    >>> given = Field(1, "d", "date", DataType("DATE"), initial_default="2024-02-29")
    >>> _default(given)
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
_OF_SPARK = COLLATED, OLD_CALENDAR  # Iceberg's readers know neither


@dataclass(slots=True, eq=False)
class SchemaGroups:
    """Groups of files, as `TableColumns` takes them; the first is that of the table's own names."""

    schema: Schema
    fields: dict[str, WantedField] = field(default_factory=dict)
    """The columns that are read here, by name."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why others are not, by name."""
    files: list[tuple[FileColumn, ...]] = field(default_factory=list)
    """The columns of each schema."""
    ids: list[dict[str, int]] = field(default_factory=list)
    """The field ids of each schema, by the names that its files have."""
    _inside: list[list[Column]] = field(default_factory=list)
    _spelled: list[dict[str, str]] = field(default_factory=list)
    _conversions: list[dict[str, FieldConversion]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for one in self.schema.fields:
            try:
                self.fields[one.name] = WantedField.of(one)
            except UnsupportedError as error:
                self.problems[one.name] = str(error)
        columns = [self._column(one) for one in self.schema.fields]
        self._add((), columns, {one.name: one.name for one in columns}, {})
        self.ids.append({one.name: one.id for one in self.schema.fields})

    def group(
        self,
        bundles: BundleSet,
        mapping: NameMapping | None,
        constants: Mapping[int, pa.StructArray],
        on_damage: Callable[[FormatError], None],
    ) -> Int64Array:
        """Make the groups of files that bundles know, and say which one each file is in.

        Args:
            bundles: The bundles, held against the files.
            mapping: What names mean in files without ids.
            constants: Columns that are partition values of files, by field id; a file that does
                not have such a column itself cannot be in a group of its own names.
            on_damage: Is told of schemas that are damaged.
        """
        known = bundles.schemas
        codes = known.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        group_of = np.zeros(len(codes), np.int64)
        for code, first in zip(*np.unique(codes, return_index=True), strict=True):
            if code < 0:
                continue
            name = str(bundles.paths[int(first)])
            try:
                columns = schema_columns(known.dictionary[int(code)].as_py(), file=name)
                own = columns_by_id(columns, mapping, name)
            except FormatError as error:
                on_damage(error)
                continue
            if all(one.id in own or one.default is None for one in self.fields.values()):
                members = codes == code
                for number, values in constants.items():
                    if number not in own:
                        members &= ~values.is_valid().to_numpy(zero_copy_only=False)
                group_of[members] = self._enter(columns, own)
        return group_of

    def columns(self, partitions: Mapping[str, DataType], group_of: Int64Array) -> TableColumns:
        """The columns of the table, and of the groups."""
        columns = [self._column(one) for one in self.schema.fields]
        inside, spelled, conversions = self._inside, self._spelled, self._conversions
        return TableColumns(columns, partitions, inside, group_of, spelled, conversions)

    def _enter(self, columns: Sequence[FileColumn], own: Mapping[int, IdColumn]) -> int:
        present = [one for one in self.schema.fields if one.id in own]
        conversions = {}
        for one in present:
            wanted = self.fields.get(one.name)
            if wanted is not None and own[one.id].column.data_type is not None:
                found = convert(own[one.id], wanted)
                if found is not None:
                    conversions[one.name] = found
        unread = {own[one.id].name: self.problems.get(one.name, "") for one in present}
        inside = [
            Column(one.name, one.arrow_type, one.data_type, unread.get(one.name) or _problem(one))
            for one in columns
        ]
        self._add(tuple(columns), inside, {o.name: own[o.id].name for o in present}, conversions)
        self.ids.append({one.name: number for number, one in own.items()})
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

    def _column(self, one: Field) -> Column:
        wanted = self.fields.get(one.name)
        if wanted is not None:
            return Column(one.name, wanted.arrow_type, wanted.data_type)
        problem = self.problems[one.name]
        if one.type_text == "uuid":  # which is text for Spark
            return Column(one.name, pa.string(), _STRING, problem)
        return Column(one.name, pa.null(), None, problem)


def _problem(column: FileColumn) -> str:
    return "" if column.problem.startswith(_OF_SPARK) else column.problem
