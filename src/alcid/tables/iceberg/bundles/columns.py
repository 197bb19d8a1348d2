"""Indexes by the columns of the table: a file may call a column otherwise, so ids tell which it is.

Bundles name an index as its file spells the column, as those of a folder do. Options and reports
name it as the table does.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from alcid.datafiles.parquet.columns import FileColumn
from alcid.errors import ColumnError, FormatError, UnsupportedError
from alcid.index.build import ResolvedIndex
from alcid.index.bundle import BundleSet, PayloadKind
from alcid.index.bundle.columns import schema_columns
from alcid.index.bundle.format import INDEX
from alcid.options import (
    BsiOptions,
    ColumnNames,
    IndexSpec,
    OptionValue,
    parse_options,
)
from alcid.tables.build import files_by_schema
from alcid.tables.iceberg.field_ids import NameMapping, columns_by_id
from alcid.tables.iceberg.metadata.schema import Field, Schema
from alcid.types import INDEX_TYPES

__all__ = [
    "WANTED_PROPERTY",
    "Files",
    "IdResolver",
    "field_ids",
    "given_specs",
    "table_kinds",
    "wanted_kinds",
    "wanted_text",
]

Files = npt.NDArray[Any]

WANTED_PROPERTY = "alcid.indexes"
"""The table property that keeps which indexes were built, whatever becomes of the files:
`[{"field-id": 1, "type": "bloom-filter"}, {"field-id": 5, "key": "[eu]", "type": "bitmap"}]`."""


def given_specs(schema: Schema, options: Mapping[str, OptionValue]) -> list[IndexSpec]:
    """The indexes that options ask for, with their columns as the table spells them.

    Raises:
        OptionError: An option that cannot be, or none that asks for an index.
        ColumnError: The table has no such column.
    """
    found, names = [], ColumnNames(schema.names)
    for spec in parse_options(options):
        name = names.find(spec.top_level)
        found.append(replace(spec, column=name + spec.column[len(name) :]))
    return found


@dataclass(frozen=True, slots=True)
class IdResolver:
    """Finds columns of the table in a file by their ids; a `Resolve`, which pickles."""

    fields: Mapping[str, Field]
    """The columns of the table, by their names."""
    mapping: NameMapping | None
    """What names mean in files without ids."""

    def __call__(self, columns: Sequence[FileColumn]) -> Callable[[IndexSpec], ResolvedIndex]:
        """See `alcid.index.build.resolve_by_name`."""
        by_id, problem = {}, ""
        try:
            by_id = columns_by_id(columns, self.mapping, "file")
        except FormatError as error:
            problem = str(error)

        def resolve(spec: IndexSpec) -> ResolvedIndex:
            name = spec.top_level
            field = self.fields[name]
            if field.data_type is None:
                raise UnsupportedError(field.problem)
            if problem:
                raise UnsupportedError(f"column {name}: {problem}")
            found = by_id.get(field.id)
            if found is None:
                raise ColumnError(f"column {name}: not in the file")
            column = found.column
            if column.problem or column.data_type is None:
                raise UnsupportedError(f"column {name}: {column.problem}")
            spelled = replace(spec, column=column.name + spec.column[len(name) :])
            return column, *spelled.resolve({column.name: column.data_type})

        return resolve


def table_kinds(
    bundles: BundleSet, schema: Schema, mapping: NameMapping | None
) -> dict[PayloadKind, list[tuple[PayloadKind, Files]]]:
    """The indexes of a table, sorted: as it calls them, then as which files call them.

    Indexes of columns that the table does not have any more are left out.
    """
    found: dict[PayloadKind, list[tuple[PayloadKind, Files]]] = defaultdict(list)
    for files, ids in _spelled_ids(bundles, mapping):
        for kind in bundles.kinds:
            name = _top_level(kind)
            field = schema.by_id.get(ids.get(name, -1))
            if kind.type == INDEX and field is not None:
                column = field.name + kind.column[len(name) :]
                found[PayloadKind.index(column, kind.index_type)].append((kind, files))
    return dict(sorted(found.items()))


def wanted_kinds(properties: Mapping[str, str], schema: Schema) -> list[PayloadKind]:
    """The indexes that a table remembers, sorted, as it calls the columns now.

    Those of columns that it has no more are left out. What is not understood counts as nothing: it
    is only a wish, and the next build writes it anew.

    >>> found = {
    ...     "schema-id": 0,
    ...     "fields": [{"id": 1, "name": "a", "required": True, "type": "int"}],
    ... }
    >>> text = '[{"field-id": 1, "type": "bitmap"}, {"field-id": 2, "type": "bitmap"}]'
    >>> wanted_kinds({WANTED_PROPERTY: text}, Schema.from_json(found))
    [PayloadKind(type='alcid-index-v1', column='a', index_type='bitmap')]
    """
    found = set()
    for number, key, index_type in _wanted(properties):
        field = schema.by_id.get(number)
        if field is not None and index_type in INDEX_TYPES:
            found.add(PayloadKind.index(field.name + key, index_type))
    return sorted(found)


def wanted_text(
    properties: Mapping[str, str],
    schema: Schema,
    more: Iterable[PayloadKind] = (),
    dropped: Callable[[PayloadKind], bool] | None = None,
) -> str | None:
    """What the property is to say; None if it is to say nothing.

    Args:
        properties: Those of the table.
        schema: Its columns.
        more: Indexes that it is to remember besides, as the table calls the columns.
        dropped: Which it is to forget.
    """
    kept = set(_wanted(properties))
    for kind in more:
        name = _top_level(kind)
        kept.add((schema.by_name[name].id, kind.column[len(name) :], kind.index_type))
    found: list[dict[str, Any]] = []
    for number, key, index_type in sorted(kept):
        field = schema.by_id.get(number)
        kind = PayloadKind.index(key if field is None else field.name + key, index_type)
        if dropped is None or not dropped(kind):
            entry = {"field-id": number, "key": key, "type": index_type}
            found.append({name: value for name, value in entry.items() if value != ""})
    return json.dumps(found) if found else None


def _wanted(properties: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """The field id, key of a map and type of each index that is remembered."""
    try:
        for one in json.loads(properties.get(WANTED_PROPERTY, "[]")):
            yield int(one["field-id"]), str(one.get("key", "")), str(one["type"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return


def field_ids(bundles: BundleSet, mapping: NameMapping | None) -> dict[str, int]:
    """The field id of each column that bundles have something of, if it is the same everywhere."""
    meant: dict[str, set[int]] = defaultdict(set)
    for _, ids in _spelled_ids(bundles, mapping):
        for kind in bundles.kinds:
            name = _top_level(kind)
            if name in ids:
                meant[kind.column].add(ids[name])
    return {column: ids.pop() for column, ids in meant.items() if len(ids) == 1}


def _top_level(kind: PayloadKind) -> str:
    """The column of a file that something is of; for `m[key]` the map."""
    if kind.type != INDEX:
        return kind.column
    return IndexSpec(kind.column, kind.index_type, BsiOptions()).top_level


def _spelled_ids(
    bundles: BundleSet, mapping: NameMapping | None
) -> Iterator[tuple[Files, dict[str, int]]]:
    """Files of the same schema, and the id of each of their columns as they spell it."""
    for schema, files in files_by_schema(bundles):
        try:
            columns = schema_columns(schema, file="bundle")
            found = columns_by_id(columns, mapping, "bundle")
        except FormatError:  # nobody can use what it has
            continue
        yield np.asarray(files), {one.name: number for number, one in found.items()}
