"""Types of columns, from `--type`, and the columns that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from alcid.columns import Columns
from alcid.errors import ColumnError, OptionError, UnsupportedError
from alcid.formats.container import Entry
from alcid.options import match_column
from alcid.types import INDEX_TYPES, DataType, require_index

__all__ = ["entry_types", "find_indexes", "parse_types"]


def parse_types(texts: Iterable[str]) -> dict[str, DataType]:
    """The types by column; a column may have `=` in its name, a type has none.

    >>> parse_types(["score=double", "m[a=b]=INT"])
    {'score': DataType.parse('DOUBLE'), 'm[a=b]': DataType.parse('INT')}
    """
    types: dict[str, DataType] = {}
    for text in texts:
        column, separator, type_text = text.rpartition("=")
        if not separator:
            raise OptionError(f"--type: found {text!r}, expected COLUMN=TYPE, as score=DOUBLE")
        if column in types:
            raise OptionError(f"--type: column {column} is given twice")
        try:
            types[column] = DataType.parse(type_text)
        except UnsupportedError as error:
            raise OptionError(f"--type {column}: {error}") from None
    return types


def entry_types(
    entries: Iterable[Entry], types: Mapping[str, DataType]
) -> dict[Entry, DataType | None]:
    """The type of the column of every index, or None where it was not given.

    A type of a column without an index is let pass, so that the same types serve for many files.

    Raises:
        OptionError: The index does not take the type, so it cannot be that of the column.
    """
    found: dict[Entry, DataType | None] = {}
    for entry in entries:
        found[entry] = data_type = _type_of(entry.column, types)
        if data_type is not None and entry.index_type in INDEX_TYPES:
            try:
                require_index(entry.index_type, entry.column, data_type)
            except UnsupportedError as error:
                raise OptionError(f"--type: {error}") from None
    return found


def _type_of(column: str, types: Mapping[str, DataType]) -> DataType | None:
    if (
        match_column(column, types) is None
        and match_column(column.partition("[")[0], types) is None
    ):
        return None
    return Columns(types).type_of(column)


def find_indexes(column: str, entries: Mapping[Entry, DataType | None]) -> tuple[Entry, ...]:
    """The indexes of the column that a name means, if any; its type must then be known.

    Raises:
        ColumnError: The name fits more than one column, or its type was not given.
    """
    name = match_column(column, dict.fromkeys(entry.column for entry in entries))
    found = tuple(entry for entry in entries if entry.column == name)
    if found and entries[found[0]] is None:
        raise ColumnError(f"column {name}: its type is needed, as in --type {name}=TYPE")
    return found
