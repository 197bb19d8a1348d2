"""Which indexes are asked for: by the options of a Paimon table, or by those that a user gives."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace

from alcid.errors import AlcidWarning, ColumnError, UnsupportedError
from alcid.options import IndexSpec, OptionValue, find_column, parse_options
from alcid.paimon_metadata.option_checks import file_index_options
from alcid.paimon_metadata.schema import TableSchema

__all__ = ["given_specs", "table_specs", "wanted_specs"]


def table_specs(schema: TableSchema) -> tuple[list[IndexSpec], list[str]]:
    """The indexes that the options of a table ask for, and what is wrong with its options.

    Paimon passes over options that it does not know, so that they are to be told to the user, and
    are no reason to build nothing.

    >>> from alcid.types import DataType
    >>> options = {"file-index.bitmap.columns": "ID,no", "file-index.bitmap.version": "1"}
    >>> specs, problems = table_specs(TableSchema.of([("id", DataType("INT"))], [], [], options))
    >>> [(spec.column, spec.index_type) for spec in specs]
    [('id', 'bitmap')]
    >>> problems
    ['file-index.bitmap.version: use file-index.bitmap.<column>.version',
     'column no: not in the table']
    """
    usable, problems = file_index_options(schema.options)
    found = []
    for spec in parse_options(usable) if usable else ():
        try:
            found.append(_spelled(spec, schema))
        except (ColumnError, UnsupportedError) as error:
            problems.append(str(error))
    return found, list(dict.fromkeys(problems))


def given_specs(schema: TableSchema, options: Mapping[str, OptionValue]) -> list[IndexSpec]:
    """The indexes that given options ask for.

    Raises:
        OptionError: An option that cannot be, or none that asks for an index.
        ColumnError: The table has no such column.
    """
    return [_spelled(spec, schema) for spec in parse_options(options)]


def _spelled(spec: IndexSpec, schema: TableSchema) -> IndexSpec:
    """An index as the table spells its column."""
    name = find_column(spec.top_level, schema.names)
    return replace(spec, column=name + spec.column[len(name) :])


def wanted_specs(
    schema: TableSchema, options: Mapping[str, OptionValue] | None
) -> tuple[IndexSpec, ...]:
    """The indexes of new files: those of the given options, or by default of the table's."""
    if options is not None:
        return tuple(given_specs(schema, options)) if options else ()
    specs, problems = table_specs(schema)
    for problem in problems:
        warnings.warn(f"no index: {problem}", AlcidWarning, stacklevel=2)
    return tuple(specs)
