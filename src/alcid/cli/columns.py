"""Types of columns, from `--type`, and the columns that they belong to.

Columns of a new table as text: `id BIGINT NOT NULL, name STRING`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from alcid.errors import ColumnError, OptionError, UnsupportedError
from alcid.expressions.columns import Columns
from alcid.formats.file_index.container import Entry
from alcid.options import did_you_mean, match_column
from alcid.types import INDEX_TYPES, ROOTS, DataType, require_index

__all__ = ["IndexedColumns", "near_type", "parse_columns", "parse_types"]

_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s,()<>`]+))\s+")
_NOT_NULL = re.compile(r"\s+NOT\s+NULL\s*$", re.IGNORECASE)
_UNKNOWN = re.compile(r"found '(\w+)', expected the name of a type$")
_OPENING, _CLOSING = "(<", ")>"


def parse_columns(text: str) -> list[tuple[str, DataType, bool]]:
    """Names, types and whether null is allowed.

    Types are those of Paimon, and of Spark where Paimon has none of the name.

    Raises:
        OptionError: The text is not understood.

    >>> parse_columns("id BIGINT NOT NULL, price DECIMAL(9, 2), m MAP<STRING, INT>")[:1]
    [('id', DataType.parse('BIGINT'), False)]
    >>> parse_columns("`order id` LONG")
    [('order id', DataType.parse('BIGINT'), True)]
    """
    return [_column(part, text) for part in _parts(text)]


def _parts(text: str) -> list[str]:
    """What stands between commas, but not within brackets or backticks."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == "`"
        depth += 0 if quoted else (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _column(part: str, text: str) -> tuple[str, DataType, bool]:
    found = _NAME.match(part)
    if found is None:
        raise OptionError(f"--schema: found {part.strip() or text!r}, expected NAME TYPE")
    name = found[2] if found[1] is None else found[1].replace("``", "`")
    kind = part[found.end() :]
    try:
        return name, _type(kind), _NOT_NULL.search(kind) is None
    except UnsupportedError as error:
        raise OptionError(f"--schema: column {name}: {error}{near_type(error)}") from None


def _type(text: str) -> DataType:
    try:
        return DataType.parse(text)
    except UnsupportedError as problem:
        try:
            return DataType.from_spark(text)
        except UnsupportedError:
            raise problem from None


def near_type(error: UnsupportedError) -> str:
    """A hint for the end of an error: the type whose name is nearly the one that was found."""
    unknown = _UNKNOWN.search(str(error))
    return did_you_mean(unknown[1], [*ROOTS, "STRING", "BYTES"]) if unknown else ""


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
