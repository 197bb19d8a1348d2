"""Types of columns, from `--type`, and the columns that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from alcid.cli.column_definitions import near_type
from alcid.columns import Columns
from alcid.errors import ColumnError, OptionError, UnsupportedError
from alcid.formats.file_index.container import Entry
from alcid.options import match_column
from alcid.types import INDEX_TYPES, DataType, require_index

__all__ = ["IndexedColumns", "parse_types"]


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
            raise OptionError(f"--type {column}: {error}{near_type(error)}") from None
    return types


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The indexes of a file with the types of their columns, as far as they were given."""

    types: Mapping[Entry, DataType | None]
    """The type of the column of every index, or None."""
    unused: tuple[str, ...]
    """Columns without an index that a type was given for."""

    @classmethod
    def match(cls, entries: Iterable[Entry], types: Mapping[str, DataType]) -> IndexedColumns:
        """Find the types of the indexed columns.

        A type of a column without an index is let pass, so that the same types serve for many
        files.

        Raises:
            OptionError: The index does not take the type, so it cannot be that of the column.
        """
        given = Columns(types)
        found: dict[Entry, DataType | None] = {}
        used = set()
        for entry in entries:
            name = _given_for(entry.column, types)
            used.add(name)
            found[entry] = data_type = None if name is None else given.type_of(entry.column)
            if data_type is not None and entry.index_type in INDEX_TYPES:
                try:
                    require_index(entry.index_type, entry.column, data_type)
                except UnsupportedError as error:
                    raise OptionError(f"--type: {error}") from None
        return cls(found, tuple(name for name in types if name not in used))

    def find(self, column: str) -> tuple[Entry, ...]:
        """The indexes of the column that a name means, if any; its type must then be known.

        Raises:
            ColumnError: The name fits more than one column, or its type was not given.
        """
        name = match_column(column, dict.fromkeys(entry.column for entry in self.types))
        found = tuple(entry for entry in self.types if entry.column == name)
        if found and self.types[found[0]] is None:
            others = ", ".join(self.unused)
            hint = f"; one was given for {others}, without an index here" if others else ""
            raise ColumnError(f"column {name}: its type is needed, as in --type {name}=TYPE{hint}")
        return found


def _given_for(column: str, types: Mapping[str, DataType]) -> str | None:
    """The name that the type of a column was given for: its own, or that of its map."""
    name = match_column(column, types)
    return match_column(column.partition("[")[0], types) if name is None else name
