"""Columns and types from the command line: `--type COLUMN=TYPE`, and `--schema` of a new table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from alcid.errors import ColumnError, OptionError, UnsupportedError
from alcid.expressions.columns import Columns
from alcid.formats.file_index.container import Entry
from alcid.options import did_you_mean, match_column
from alcid.types import INDEX_TYPES, ROOTS, DataType, require_index

_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s,()<>`]+))\s+")
_NOT_NULL = re.compile(r"\s+NOT\s+NULL\s*$", re.IGNORECASE)
_UNKNOWN = re.compile(r"found '(\w+)', expected the name of a type$")
_OPENING, _CLOSING = "(<", ")>"


def parse_columns(text: str) -> list[tuple[str, DataType, bool]]:
    """Parse `id BIGINT NOT NULL, name STRING` to names, types and whether null is allowed.

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
    """Split at commas outside of brackets and backticks."""
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
    match = _NAME.match(part)
    if match is None:
        raise OptionError(f"--schema: found {part.strip() or text!r}, expected NAME TYPE")
    name = match[2] if match[1] is None else match[1].replace("``", "`")
    type_text = part[match.end() :]
    try:
        return name, _type(type_text), _NOT_NULL.search(type_text) is None
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
    """A hint to append to an error: the type with the most similar name."""
    unknown = _UNKNOWN.search(str(error))
    return did_you_mean(unknown[1], [*ROOTS, "STRING", "BYTES"]) if unknown else ""


def parse_types(texts: Iterable[str]) -> dict[str, DataType]:
    """The types by column; the name of a column may contain `=`, a type does not.

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
    """The indexes of a file with the types of their columns, as far as `--type` gave them."""

    types: Mapping[Entry, DataType | None]
    """The type of the column of every index, or None."""
    unused: tuple[str, ...]
    """Columns with a type but without an index."""

    @classmethod
    def match(cls, entries: Iterable[Entry], types: Mapping[str, DataType]) -> IndexedColumns:
        """Find the types of the indexed columns.

        Types of columns without an index are ignored, so that the same options serve many files.

        Raises:
            OptionError: The index does not take the type, so it cannot be that of the column.
        """
        columns = Columns(types)
        entry_types: dict[Entry, DataType | None] = {}
        used = set()
        for entry in entries:
            name = _typed_name(entry.column, types)
            used.add(name)
            entry_types[entry] = data_type = None if name is None else columns.type_of(entry.column)
            if data_type is not None and entry.index_type in INDEX_TYPES:
                try:
                    require_index(entry.index_type, entry.column, data_type)
                except UnsupportedError as error:
                    raise OptionError(f"--type: {error}") from None
        return cls(entry_types, tuple(name for name in types if name not in used))

    def find(self, column: str) -> tuple[Entry, ...]:
        """The indexes of a column, if there are any; its type is then required.

        Raises:
            ColumnError: The name matches more than one column, or its type is missing.
        """
        name = match_column(column, dict.fromkeys(entry.column for entry in self.types))
        entries = tuple(entry for entry in self.types if entry.column == name)
        if entries and self.types[entries[0]] is None:
            others = ", ".join(self.unused)
            hint = f"; one was given for {others}, without an index here" if others else ""
            raise ColumnError(f"column {name}: its type is needed, as in --type {name}=TYPE{hint}")
        return entries


def _typed_name(column: str, types: Mapping[str, DataType]) -> str | None:
    """The name that `--type` uses for a column: its own, or that of its map."""
    name = match_column(column, types)
    return match_column(column.partition("[")[0], types) if name is None else name
