"""Paimon's `file-index.*` table options, which say what to build, and the matching of column names.

Options are named as in Paimon's documents, so that they can be copied from a table or a page:

| key                                             | value                                         |
|-------------------------------------------------|-----------------------------------------------|
| `file-index.<type>.columns`                     | comma list of columns, or `map[key]`          |
| `file-index.bloom-filter.<column>.items`        | distinct values expected in a file            |
| `file-index.bloom-filter.<column>.fpp`          | false positives, between 0 and 1              |
| `file-index.bitmap.<column>.version`            | 1 or 2                                        |
| `file-index.bitmap.<column>.index-block-size`   | memory size, as `16kb`                        |
| `file-index.range-bitmap.<column>.chunk-size`   | memory size; 0 puts each key into its own     |
| `file-index.read.enabled`                       | true or false; not used here                  |
| `file-index.in-manifest-threshold`              | memory size; not used here                    |

Paimon ignores a `file-index.*` key that it does not know, such as `file-index.bitmap.version`, and
the options of a column with a dot in its name. Here the first is an error and the second works.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from alcid.config import current_settings
from alcid.errors import ColumnError, OptionError, UnsupportedError
from alcid.types import INDEX_TYPES, DataType, require_index

__all__ = [
    "BitmapOptions",
    "BloomFilterOptions",
    "BsiOptions",
    "ColumnNames",
    "IndexOptions",
    "IndexSpec",
    "RangeBitmapOptions",
    "default_options",
    "did_you_mean",
    "find_column",
    "fold_name",
    "match_column",
    "memory_size",
    "parse_options",
]

OptionValue: TypeAlias = str | int | float


@dataclass(frozen=True, slots=True)
class BloomFilterOptions:
    """Options of bloom-filter. Larger `items` and smaller `fpp` make larger filters."""

    items: int | None = None
    """Distinct values expected in a file; None where not given (Paimon takes 1000000)."""
    fpp: float | None = None
    """False positive probability; None where not given (Paimon takes 0.1)."""


@dataclass(frozen=True, slots=True)
class BitmapOptions:
    """Options of bitmap."""

    version: int = 2
    """1 reads its dictionary whole, 2 a sorted block of it. Take 1 only for readers without 2."""
    index_block_size: int = 16 * 1024
    """Bytes of a dictionary block of version 2; a value that needs more has one to itself."""


@dataclass(frozen=True, slots=True)
class RangeBitmapOptions:
    """Options of range-bitmap."""

    chunk_size: int | None = None
    """Bytes of keys in a dictionary chunk; None is Paimon's default, which depends on the type."""


@dataclass(frozen=True, slots=True)
class BsiOptions:
    """Options of bsi: there are none."""


IndexOptions: TypeAlias = BloomFilterOptions | BitmapOptions | RangeBitmapOptions | BsiOptions


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """One index to build.

    >>> spec = IndexSpec("tags[color]", "bitmap", BitmapOptions())
    >>> spec.top_level, spec.map_key
    ('tags', 'color')
    """

    column: str
    """The column, as it stands in the head of the index file: `m[key]` for a key of a map."""
    index_type: str
    """One of `alcid.types.INDEX_TYPES`."""
    options: IndexOptions

    @property
    def top_level(self) -> str:
        """The column of the table: for `m[key]` the map."""
        return _split(self.column)[0]

    @property
    def map_key(self) -> str | None:
        """The key of `m[key]`, or None for a whole column."""
        return _split(self.column)[1]

    def resolve(
        self, columns: Mapping[str, DataType], names: ColumnNames | None = None
    ) -> tuple[IndexSpec, DataType]:
        """Find the column in a table: the same index with the table's spelling, and its value type.

        Args:
            columns: The top-level columns of the table.
            names: Their names, where many indexes are resolved against the same table.

        Raises:
            ColumnError: No such column, or more than one.
            UnsupportedError: The index does not take it.

        >>> spec = IndexSpec("Tags[color]", "bitmap", BitmapOptions())
        >>> resolved, data_type = spec.resolve({"tags": DataType.parse("MAP<STRING, INT>")})
        >>> print(resolved.column, data_type)
        tags[color] INT
        """
        name = find_column(self.top_level, columns if names is None else names)
        data_type = columns[name]
        if self.map_key is not None:
            if data_type.root != "MAP" or data_type.children[0].root not in ("CHAR", "VARCHAR"):
                raise UnsupportedError(
                    f"column {self.column}: found {name} {data_type}, expected a map of strings"
                )
            name, data_type = f"{name}[{self.map_key}]", data_type.children[1]
        require_index(self.index_type, name, data_type)
        return replace(self, column=name), data_type


def _split(column: str) -> tuple[str, str | None]:
    """`m[key]` -> m, key: by the first bracket, as keys may hold brackets too."""
    if "[" not in column or not column.endswith("]"):
        return column, None
    top_level, _, key = column[:-1].partition("[")
    return top_level, key


def fold_name(column: str) -> str:
    """The form that all spellings of a column share; keys of a map always differ in case."""
    return _fold(column, current_settings().case_sensitive)


def _fold(column: str, is_case_sensitive: bool) -> str:
    if is_case_sensitive:
        return column
    if "[" not in column:
        return column.lower()
    top_level = _split(column)[0]
    return top_level.lower() + column[len(top_level) :]


def find_column(name: str, columns: Iterable[str]) -> str:
    """The top-level column that a name means; see `ColumnNames.find`.

    >>> find_column("ID", ["id", "name"])
    'id'
    """
    return ColumnNames.of(columns).find(name)


def match_column(name: str, columns: Iterable[str]) -> str | None:
    """The column that a name means, `m[key]` included, or None; see `ColumnNames.match`.

    >>> match_column("Tags[color]", ["id", "tags[color]"])
    'tags[color]'
    """
    return ColumnNames.of(columns).match(name)


class ColumnNames(Collection[str]):
    """The names of columns, folded once, to match any number of other names against them.

    Whether case counts is decided at each match, as `alcid.config` says then.

    >>> ColumnNames(["id", "Name"]).match("NAME")
    'Name'
    """

    def __init__(self, columns: Iterable[str]) -> None:
        """Take the names of the columns."""
        self._columns = tuple(columns)
        self._folded: dict[bool, dict[str, list[str]]] = {}

    @classmethod
    def of(cls, columns: Iterable[str]) -> ColumnNames:
        """The names themselves if they are `ColumnNames`, else these of any names."""
        return columns if isinstance(columns, cls) else cls(columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def match(self, name: str) -> str | None:
        """The column that a name means, `m[key]` included, or None if there is none.

        Raises:
            ColumnError: It matches more than one.
        """
        matching = self._matching(name)
        if len(matching) > 1:
            raise ColumnError(f"column {name}: fits more than one column: {', '.join(matching)}")
        return matching[0] if matching else None

    def find(self, name: str) -> str:
        """The top-level column that a name means.

        Raises:
            ColumnError: No such column, or more than one.
            UnsupportedError: A field within a column.
        """
        column = self.match(name)
        if column is not None:
            return column
        if self._matching(name.partition(".")[0]):
            raise UnsupportedError(f"column {name}: no index takes a field within a column")
        raise ColumnError(f"column {name}: not in the table{did_you_mean(name, self, most=3)}")

    def _matching(self, name: str) -> Sequence[str]:
        rule = current_settings().case_sensitive
        folded = self._folded.get(rule)
        if folded is None:
            folded = {}
            for column in self._columns:
                folded.setdefault(_fold(column, rule), []).append(column)
            self._folded[rule] = folded
        return folded.get(_fold(name, rule), ())


def did_you_mean(word: str, names: Iterable[str], form: str = "{}", *, most: int = 1) -> str:
    """A hint for the end of an error about an unknown name; empty if no name is like it.

    >>> did_you_mean("scroe", ["id", "score", "store"], most=3)
    '; did you mean score or store?'
    """
    spelling = {name.lower(): name for name in names}
    close = get_close_matches(word.lower(), spelling, most, 0.6)
    close = close or get_close_matches(word.lower(), spelling, 1, 0.5)
    shown = " or ".join(form.format(spelling[name]) for name in close)
    return f"; did you mean {shown}?" if close else ""


_UNITS: Final = {
    unit: 1024**power
    for power, names in enumerate(
        ("b bytes", "k kb kibibytes", "m mb mebibytes", "g gb gibibytes", "t tb tebibytes")
    )
    for unit in names.split()
}
_MAX_INT: Final = 2**31 - 1
_MAX_LONG: Final = 2**63 - 1


def memory_size(text: str | int) -> int:
    """Bytes of a memory size, as Paimon reads it: whole numbers, units of 1024 in any case.

    >>> memory_size("16kb"), memory_size(" 1 MebiBytes "), memory_size(500)
    (16384, 1048576, 500)
    """
    size: int = _convert("memory size", text, _size(0, _MAX_LONG))
    return size


# A converter raises ValueError with what it expected; `_convert` says where.
Converter: TypeAlias = Callable[[Any], Any]


def _convert(key: str, value: object, converter: Converter) -> Any:
    try:
        return converter(value)
    except ValueError as error:
        raise OptionError(f"{key}: found {value!r}, expected {error}") from None


def _size(least: int, most: int) -> Converter:
    def convert(value: object) -> int:
        match = re.fullmatch(r"\s*([0-9]{1,19})\s*([a-z]*)\s*", str(value).lower())
        unit = _UNITS.get(match[2] or "b") if match else None
        size = int(match[1]) * unit if match and unit else -1
        if not least <= size <= most:
            raise ValueError(
                f"a whole number of bytes from {least} to {most}, as 500, 16kb or 1 mb"
            )
        return size

    return convert


def _whole(least: int, most: int) -> Converter:
    def convert(value: object) -> int:
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        match = re.fullmatch(r"\s*([0-9]{1,10})\s*", str(number))
        if not match or not least <= int(match[1]) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(match[1])

    return convert


def _probability(value: object) -> float:
    text = str(value).lower()
    match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?\s*", text)
    if not match or not 0 < float(text) < 1:
        raise ValueError("a number above 0 and below 1")
    return float(text)


def _flag(value: object) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ValueError("true or false")
    return text == "true"


_PREFIX: Final = "file-index."
_TABLE_OPTIONS: Final[dict[str, Converter]] = {
    "read.enabled": _flag,
    "in-manifest-threshold": _size(0, _MAX_LONG),
}
_OPTION_CLASSES: Final[dict[str, type[IndexOptions]]] = {
    "bloom-filter": BloomFilterOptions,
    "bitmap": BitmapOptions,
    "range-bitmap": RangeBitmapOptions,
    "bsi": BsiOptions,
}
_OPTIONS: Final[dict[str, dict[str, Converter]]] = {
    "bloom-filter": {"items": _whole(1, _MAX_INT), "fpp": _probability},
    "bitmap": {"version": _whole(1, 2), "index-block-size": _size(1, _MAX_INT)},
    "range-bitmap": {"chunk-size": _size(0, _MAX_INT)},
    "bsi": {},
}


def default_options(index_type: str) -> IndexOptions:
    """The options of an index of which none are given.

    >>> default_options("bitmap")
    BitmapOptions(version=2, index_block_size=16384)
    """
    return _OPTION_CLASSES[index_type]()


def parse_options(options: Mapping[str, OptionValue]) -> tuple[IndexSpec, ...]:
    """What to build, from table options; keys that do not start with `file-index.` are ignored.

    Options for `m` apply to every declared `m[key]`; one for `m[key]` itself wins.

    Returns:
        The indexes, sorted by column and type.

    Raises:
        OptionError: A `file-index.` key that is unknown or misplaced, a bad value, no columns.

    >>> parse_options({"file-index.bitmap.columns": "a", "file-index.bitmap.a.version": 1})
    (IndexSpec(column='a', index_type='bitmap',
      options=BitmapOptions(version=1, index_block_size=16384)),)
    >>> parse_options({"file-index.bitmap.columns": "a", "file-index.bitmap.version": "1"})
    Traceback (most recent call last):
    alcid.errors.OptionError: file-index.bitmap.version: use file-index.bitmap.<column>.version
    """
    if not isinstance(options, Mapping):
        raise OptionError(f"options: found {type(options).__name__}, expected a mapping")
    declared: dict[tuple[str, str], str] = {}
    values_of: dict[tuple[str, str], dict[str, Any]] = {}
    keys: dict[tuple[str, str], str] = {}
    for key, value in options.items():
        name = key.removeprefix(_PREFIX)
        if name == key:
            continue
        if name in _TABLE_OPTIONS:
            _convert(key, value, _TABLE_OPTIONS[name])
            continue
        index_type, column, option = _parse_key(key, name)
        if option == "columns":
            declared |= _columns(key, index_type, value)
            continue
        index = index_type, fold_name(column)
        attribute = option.replace("-", "_")
        if attribute in values_of.setdefault(index, {}):
            raise OptionError(f"{key}: given twice, in another case")
        values_of[index][attribute] = _convert(key, value, _OPTIONS[index_type][option])
        keys[index] = key
    specs = []
    for (index_type, folded), column in declared.items():
        whole_map = values_of.get((index_type, _split(folded)[0]), {})
        values = whole_map | values_of.get((index_type, folded), {})
        specs.append(IndexSpec(column, index_type, _OPTION_CLASSES[index_type](**values)))
    taken = {
        (spec.index_type, fold_name(name))
        for spec in specs
        for name in (spec.column, spec.top_level)
    }
    for (index_type, column), key in keys.items():
        if (index_type, column) not in taken:
            raise OptionError(f"{key}: the column is not in file-index.{index_type}.columns")
    if not specs:
        types = ", ".join(INDEX_TYPES)
        raise OptionError(f"no index: name columns in file-index.<type>.columns, <type> of {types}")
    return tuple(sorted(specs, key=lambda spec: (spec.column, spec.index_type)))


def _parse_key(key: str, name: str) -> tuple[str, str, str]:
    """Index type, column (empty for `columns`) and option; the name of a column may hold dots."""
    index_type, _, rest = name.partition(".")
    if index_type not in INDEX_TYPES:
        hint = (
            did_you_mean(index_type, INDEX_TYPES, f"{_PREFIX}{{}}.{rest or 'columns'}")
            or did_you_mean(name, _TABLE_OPTIONS, f"{_PREFIX}{{}}")
            or f", expected file-index.<type>.columns, <type> of {', '.join(INDEX_TYPES)}"
        )
        raise OptionError(f"{key}: no such option{hint}")
    if rest == "columns":
        return index_type, "", rest
    column, _, option = rest.rpartition(".")
    here = f"{_PREFIX}{index_type}"
    if not column and option in _OPTIONS[index_type]:
        raise OptionError(f"{key}: use {here}.<column>.{option}")
    if not column:
        forms = (f"{here}.columns", *(f"{here}.<column>.{name}" for name in _OPTIONS[index_type]))
        raise OptionError(f"{key}: no such option, expected {' or '.join(forms)}")
    if option not in _OPTIONS[index_type]:
        owners = [other for other in INDEX_TYPES if option in _OPTIONS[other]]
        if owners:
            raise OptionError(f"{key}: {option} is an option of {owners[0]}, not of {index_type}")
        expected = " or ".join(_OPTIONS[index_type]) or "none"
        raise OptionError(f"{key}: {index_type} has no option {option!r}, expected {expected}")
    return index_type, column, option


def _columns(key: str, index_type: str, value: object) -> dict[tuple[str, str], str]:
    """The declared columns, by index type and folded name."""
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else [""]
    if not all(_split(name)[0] for name in names):
        raise OptionError(f"{key}: found {value!r}, expected names of columns with commas between")
    declared: dict[tuple[str, str], str] = {}
    for name in names:
        map_key = _split(name)[1]
        if map_key is not None and map_key[:1] in ("'", '"'):
            raise OptionError(f"{key}: found {name}, write the key of a map without quotes")
        index = index_type, fold_name(name)
        if index in declared:
            raise OptionError(f"{key}: found {value!r}, which names {declared[index]} twice")
        declared[index] = name
    return declared
