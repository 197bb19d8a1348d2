"""Indexes by the columns of the table, matched by field id.

Bundles name an index by the name of the column in the data file, as in Parquet folders. Options and
reports use the name in the table.
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

Files = npt.NDArray[Any]

INDEXES_PROPERTY = "alcid.indexes"
"""The table property that records which indexes the table has, even if all files are replaced:
`[{"field-id": 1, "type": "bloom-filter"}, {"field-id": 5, "key": "[eu]", "type": "bitmap"}]`."""


def specs_from_options(schema: Schema, options: Mapping[str, OptionValue]) -> list[IndexSpec]:
    """The indexes that options request, with the names of columns in the table.

    Raises:
        OptionError: An option is invalid, or none requests an index.
        ColumnError: The table has no such column.
    """
    specs, names = [], ColumnNames(schema.names)
    for spec in parse_options(options):
        name = names.find(spec.top_level)
        specs.append(replace(spec, column=name + spec.column[len(name) :]))
    return specs


@dataclass(frozen=True, slots=True)
class IdResolver:
    """Finds columns of the table in a file by field id; a `Resolve` that pickles."""

    fields: Mapping[str, Field]
    """The columns of the table by name."""
    mapping: NameMapping | None
    """The ids by name, for files without ids."""

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
            id_column = by_id.get(field.id)
            if id_column is None:
                raise ColumnError(f"column {name}: not in the file")
            column = id_column.column
            if column.problem or column.data_type is None:
                raise UnsupportedError(f"column {name}: {column.problem}")
            file_spec = replace(spec, column=column.name + spec.column[len(name) :])
            return column, *file_spec.resolve({column.name: column.data_type})

        return resolve


def table_kinds(
    bundles: BundleSet, schema: Schema, mapping: NameMapping | None
) -> dict[PayloadKind, list[tuple[PayloadKind, Files]]]:
    """The indexes of a table, sorted: each with its names in data files, and those files.

    Indexes of dropped columns are left out.
    """
    kinds: dict[PayloadKind, list[tuple[PayloadKind, Files]]] = defaultdict(list)
    for files, ids in _ids_by_schema(bundles, mapping):
        for kind in bundles.kinds:
            name = _top_level(kind)
            field = schema.by_id.get(ids.get(name, -1))
            if kind.type == INDEX and field is not None:
                column = field.name + kind.column[len(name) :]
                kinds[PayloadKind.index(column, kind.index_type)].append((kind, files))
    return dict(sorted(kinds.items()))


def recorded_indexes(properties: Mapping[str, str], schema: Schema) -> list[PayloadKind]:
    """The indexes recorded in the table property, sorted, with current names of columns.

    Indexes of dropped columns are left out. An invalid property is ignored, since the next build
    replaces it.

    >>> schema = {
    ...     "schema-id": 0,
    ...     "fields": [{"id": 1, "name": "a", "required": True, "type": "int"}],
    ... }
    >>> text = '[{"field-id": 1, "type": "bitmap"}, {"field-id": 2, "type": "bitmap"}]'
    >>> recorded_indexes({INDEXES_PROPERTY: text}, Schema.from_json(schema))
    [PayloadKind(type='alcid-index-v1', column='a', index_type='bitmap')]
    """
    kinds = set()
    for field_id, key, index_type in _recorded(properties):
        field = schema.by_id.get(field_id)
        if field is not None and index_type in INDEX_TYPES:
            kinds.add(PayloadKind.index(field.name + key, index_type))
    return sorted(kinds)


def indexes_property(
    properties: Mapping[str, str],
    schema: Schema,
    more: Iterable[PayloadKind] = (),
    dropped: Callable[[PayloadKind], bool] | None = None,
) -> str | None:
    """The new value of the table property; None to remove it.

    Args:
        properties: The table properties.
        schema: The current schema.
        more: Indexes to add, with the names of columns in the table.
        dropped: Which indexes to remove.
    """
    recorded = set(_recorded(properties))
    for kind in more:
        name = _top_level(kind)
        recorded.add((schema.by_name[name].id, kind.column[len(name) :], kind.index_type))
    entries: list[dict[str, Any]] = []
    for field_id, key, index_type in sorted(recorded):
        field = schema.by_id.get(field_id)
        kind = PayloadKind.index(key if field is None else field.name + key, index_type)
        if dropped is None or not dropped(kind):
            entry = {"field-id": field_id, "key": key, "type": index_type}
            entries.append({name: value for name, value in entry.items() if value != ""})
    return json.dumps(entries) if entries else None


def _recorded(properties: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """The field id, map key and type of each recorded index."""
    try:
        for entry in json.loads(properties.get(INDEXES_PROPERTY, "[]")):
            yield int(entry["field-id"]), str(entry.get("key", "")), str(entry["type"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return


def field_ids(bundles: BundleSet, mapping: NameMapping | None) -> dict[str, int]:
    """The field id of each column in bundles, if it is the same in all files."""
    ids_by_column: dict[str, set[int]] = defaultdict(set)
    for _, ids in _ids_by_schema(bundles, mapping):
        for kind in bundles.kinds:
            name = _top_level(kind)
            if name in ids:
                ids_by_column[kind.column].add(ids[name])
    return {column: ids.pop() for column, ids in ids_by_column.items() if len(ids) == 1}


def _top_level(kind: PayloadKind) -> str:
    """The top-level column of a payload: for `m[key]` the map."""
    if kind.type != INDEX:
        return kind.column
    # For the name alone: any options do.
    return IndexSpec(kind.column, kind.index_type, BsiOptions()).top_level


def _ids_by_schema(
    bundles: BundleSet, mapping: NameMapping | None
) -> Iterator[tuple[Files, dict[str, int]]]:
    """Files of the same schema, and the field ids of their columns by name."""
    for schema, files in files_by_schema(bundles):
        try:
            columns = schema_columns(schema, file="bundle")
            by_id = columns_by_id(columns, mapping, "bundle")
        except FormatError:  # its payloads cannot be used
            continue
        yield np.asarray(files), {column.name: number for number, column in by_id.items()}
