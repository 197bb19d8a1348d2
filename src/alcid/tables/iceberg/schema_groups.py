"""The columns of a table, and what they are called and typed in its data files, by field ids.

Files whose schema a bundle knows are one group for each schema. All others are in one group, in
which columns have the names and types of the table: see `alcid.tables.iceberg.id_files`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.bundle import BundleSet
from alcid.errors import FormatError, UnsupportedError
from alcid.iceberg_metadata.schema import Field, Schema
from alcid.plan import Column, TableColumns
from alcid.tables.conversions import FieldConversion, convert
from alcid.tables.file_columns import COLLATED, OLD_CALENDAR, FileColumn
from alcid.tables.iceberg.file_schemas import IdColumn, NameMapping, columns_by_id
from alcid.tables.iceberg.wanted_fields import WantedField
from alcid.tables.schema_bytes import schema_columns
from alcid.types import MAX_LENGTH, DataType

__all__ = ["SchemaGroups"]

Integers = npt.NDArray[np.int64]

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
    ) -> Integers:
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

    def columns(self, partitions: Mapping[str, DataType], group_of: Integers) -> TableColumns:
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
