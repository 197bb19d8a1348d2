"""Hive-style partitions: columns that stand in the paths of files, `dt=20250801/country=AT/`.

A folder `name=value` gives a column to all files below it; the first `=` parts the two, and `%2F`
stands for a character that a path cannot hold. `partition_types` says what type a column has.

What Spark 4.1.4 does with folders, seen with `spark.read.parquet`, and what is done here:

| paths                            | Spark                               | here                    |
|----------------------------------|-------------------------------------|-------------------------|
| `a=1/f`, `b=1/f`                 | error                               | error                   |
| `a=1/f`, `a=2/b=3/f`             | error                               | error                   |
| `a=1/b=2/f`, `b=2/a=1/f`         | error                               | error                   |
| `x/a=1/f`, `y/a=2/f`             | error                               | error                   |
| `a=1/a=2/f`                      | error                               | error                   |
| `a=/f`, `=1/f`                   | internal error                      | error                   |
| `x/f`, `a=1/f`                   | error                               | error                   |
| `f`, `a=1/f`                     | the rows of the first are left out  | error                   |
| `a=1/x/b=2/f`                    | no column `a`                       | error                   |
| `x/a=1/f`                        | a column `a`                        | a column `a`            |
| `a=1/x/f`, `a=2/f`               | a column `a`                        | a column `a`            |
| `A=1/f`, `a=2/f`                 | `A` or `a`, as files are listed     | as the first file has it|
| `x/f`, `y/f`                     | no files found: error               | no partitions           |
| `a=1.parquet`                    | no partitions                       | no partitions           |

Whether `A` and `a` are one column says `alcid.config.case_sensitive`. Folders and files that Spark
hides, such as `_temporary`, are not told apart here: leave them out of the listing.

The type of a partition column is inferred from the text in the paths as Spark 4.1.4 does it,
compared value by value with `spark.read.parquet`. A value is
the first of these that takes it; `%3A` in a path stands for a colon:

| inferred        | text                                                                         |
|-----------------|------------------------------------------------------------------------------|
| INT, BIGINT     | sign and digits of any script: 7, +7, 007                                    |
| DECIMAL(p, 0)   | the same beyond BIGINT, and 1. or 1e3, of up to 38 digits                    |
| DOUBLE          | what Java reads: 1.5, 1e-3, 1d, 0x1p3, NaN, Infinity, spaces around          |
| TIMESTAMP_LTZ(6)| yyyy-MM-dd HH:mm:ss and at most one digit of a fraction                      |
| DATE            | yyyy-MM-dd                                                                   |
| TIME(6)         | HH:mm:ss and at most six digits of a fraction                                |
| STRING          | all else: 2025-8-1, 10:00, nan, true, null, 1_000                            |

Values of one column come to one type: integers and decimals to the widest, INT and DOUBLE to
DOUBLE, DATE and TIMESTAMP_LTZ to TIMESTAMP_LTZ, any other two to STRING, also BIGINT and DOUBLE.
`__HIVE_DEFAULT_PARTITION__` is null and goes with any type. A column of nulls only is STRING here;
Spark says `void`, a type that tables do not have.

Spark infers TIME(6) even while `spark.sql.timeType.enabled` is off, as it is unless set.

Only text, times and timestamps are unescaped before they are read: `%37` is the text 7.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid.config import current_settings
from alcid.errors import ColumnError, FormatError, LiteralError, OptionError, UnsupportedError
from alcid.expressions.casts_from_text import (
    Zone,
    find_zone,
    instant_of,
    to_date,
    to_double,
    to_time,
    to_timestamp,
)
from alcid.expressions.columns import Columns
from alcid.options import match_column
from alcid.types import MAX_LENGTH, TIME_TYPES, DataType

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder of rows without a value, as it stands in the path."""

_INT, _BIGINT, _DOUBLE = DataType("INT"), DataType("BIGINT"), DataType("DOUBLE")
_DATE, _TIME = DataType("DATE"), DataType("TIME", precision=6)
_TIMESTAMP = DataType("TIMESTAMP_LTZ", precision=6)
_STRING = DataType("VARCHAR", length=MAX_LENGTH)
_BYTES = DataType("VARBINARY", length=MAX_LENGTH)
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_MOST_DIGITS = 38
# The digits that Spark gives to integers beside a decimal.
_DIGITS = {"INT": 10, "BIGINT": 20}

_BLANK = "".join(map(chr, range(0x21)))
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_UNSAFE = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
# All that is no text begins so, which spares most texts the rest; times may be escaped.
_BEGIN = re.compile(r"[\0-\x20]*[+-]?[\d.NI%]")
_WHOLE = re.compile(r"([+-]?)(\d+)")
_EXACT = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?)(\d+))?")
_YEAR_TO_DAY = r"(?:[0-9]{4}|\+[0-9]{5,}|-(?!0+-)[0-9]{4,})-[0-9]{2}-[0-9]{2}"
_STRICT_DATE = re.compile(_YEAR_TO_DAY)
_STRICT_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
_STRICT_TIMESTAMP = re.compile(rf"{_YEAR_TO_DAY} {_STRICT_CLOCK}(?:\.[0-9])?")
_STRICT_TIME = re.compile(rf"{_STRICT_CLOCK}(?:\.[0-9]{{1,6}})?")


def unescape(text: str) -> str:
    """What Spark wrote as `%` and two hexadecimal digits, of one character below 256 each.

    UTF-8 is not decoded, and a `%` that no two digits follow stands for itself.

    >>> unescape("10%3A00"), unescape("100%"), unescape("%C3%A4")
    ('10:00', '100%', 'Ã¤')
    """
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "%" in text else text


def escape(text: str) -> str:
    """A name or a value as Spark writes it into a path.

    >>> escape("10:00"), escape("a b/100%"), escape("{ä}")
    ('10%3A00', 'a b%2F100%25', '%7Bä}')
    """
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def infer(values: Iterable[str]) -> DataType:
    """The type that holds the values of a column, as they stand in the paths.

    >>> print(infer(["007", "1.5"]), infer(["2025-08-01", NULL]), infer(["1", "2025-08-01"]))
    DOUBLE DATE STRING
    """
    types = {_infer_one(value) for value in values if value != NULL}
    return reduce(_wider, types) if types else _STRING


def _infer_one(raw: str) -> DataType:
    if not _BEGIN.match(raw):
        return _STRING
    number = _whole(raw)
    if number is not None and -(1 << 63) <= number < 1 << 63:
        return _INT if -(1 << 31) <= number < 1 << 31 else _BIGINT
    exact = _exact(raw)
    if exact is not None and exact[2] <= 0:
        precision = max(len(exact[1]), 1) - exact[2]
        if precision <= _MOST_DIGITS:
            return DataType("DECIMAL", precision=precision)
    if _double(raw) is not None:
        return _DOUBLE
    text = unescape(raw)
    if _STRICT_TIMESTAMP.fullmatch(text) and to_timestamp(text) is not None:
        return _TIMESTAMP
    if _STRICT_DATE.fullmatch(raw) and to_date(raw) is not None:
        return _DATE
    if _STRICT_TIME.fullmatch(text) and to_time(text) is not None:
        return _TIME
    return _STRING


def _wider(left: DataType, right: DataType) -> DataType:
    roots = {left.root, right.root}
    if len(roots) == 1 and "DECIMAL" not in roots:
        return left
    if roots == {"INT", "BIGINT"}:
        return _BIGINT
    if roots <= {"INT", "BIGINT", "DECIMAL"}:
        digits = (_DIGITS.get(each.root, each.precision) for each in (left, right))
        return DataType("DECIMAL", precision=max(digits))
    if roots == {"INT", "DOUBLE"}:
        return _DOUBLE
    return _TIMESTAMP if roots == {"DATE", "TIMESTAMP_LTZ"} else _STRING


def require_readable(data_type: DataType) -> None:
    """Make sure that text in a path can be read as a type.

    Raises:
        UnsupportedError: It cannot.

    >>> require_readable(DataType("CHAR", length=3))
    Traceback (most recent call last):
    alcid.errors.UnsupportedError: a partition column cannot be CHAR(3): take STRING
    """
    plain = *_BITS, *TIME_TYPES, "BOOLEAN", "FLOAT", "DOUBLE", "DECIMAL", "DATE"
    if data_type.root not in plain and data_type not in (_STRING, _BYTES):
        text = data_type.root in ("CHAR", "VARCHAR")
        hint = ": take STRING" if text else ": take BYTES" if data_type.root == "BINARY" else ""
        raise UnsupportedError(f"a partition column cannot be {data_type}{hint}")


def read_value(raw: str, data_type: DataType) -> object:
    """The value of text in a path, for `pa.array`; None where the text is none of that type.

    Text is read as Spark reads it for a schema that is given, but what does not fit is refused:
    Spark makes -128 of 128 for a TINYINT and 0.01 of 1 for a DECIMAL(4, 2). A fraction of a second
    is cut to the digits of the type. A timestamp without a zone is in `alcid.config.timezone`.

    >>> read_value("007", DataType("INT")), read_value("2025-8-1", DataType("DATE"))
    (7, 20301)
    """
    match data_type.root:
        case "VARCHAR":
            return unescape(raw)
        case "VARBINARY":
            return raw.encode()
        case "BOOLEAN":
            return {"true": True, "false": False}.get(raw.lower())
        case "FLOAT" | "DOUBLE":
            return _double(raw)
        case "DECIMAL":
            return _decimal(raw, data_type)
        case "DATE":
            return to_date(raw)
        case "TIME":
            nanos = to_time(unescape(raw), data_type.precision)
            return None if nanos is None else nanos // _nanos_per_unit(data_type)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _timestamp(unescape(raw), data_type)
    number, limit = _whole(raw), 1 << _BITS[data_type.root] - 1
    return number if number is not None and -limit <= number < limit else None


def _ascii(digits: str) -> str:
    """Digits of any script as ASCII, without zeros in front."""
    if not digits.isascii():
        digits = "".join(str(unicodedata.decimal(digit)) for digit in digits)
    return digits.lstrip("0")


def _is_java(word: str) -> bool:
    """Whether Java, which looks at UTF-16, sees the same digits as Python does."""
    return word.isascii() or max(word) <= "\uffff"


def _whole(raw: str) -> int | None:
    """A whole number of less than 20 digits, of any script."""
    match = _WHOLE.fullmatch(raw)
    if match is None or not _is_java(raw):
        return None
    digits = _ascii(match[2])
    return int(f"{match[1]}{digits or 0}") if len(digits) < 20 else None


def _exact(raw: str) -> tuple[str, str, int] | None:
    """Sign, digits without zeros in front, and how many of them are a fraction; below 0: zeros."""
    match = _EXACT.fullmatch(raw)
    if match is None or not (match[2] or match[3]) or not _is_java(raw):
        return None
    fraction, exponent = match[3] or "", _ascii(match[5] or "")
    if len(exponent) > 9:
        return None
    scale = len(fraction) - int(f"{match[4] or ''}{exponent or 0}")
    return match[1], _ascii(match[2] + fraction), scale


def _decimal(raw: str, data_type: DataType) -> Decimal | None:
    exact = _exact(raw)
    if exact is None:
        return None
    sign, digits, scale = exact
    kept = digits.rstrip("0")
    zeros = data_type.scale - scale + len(digits) - len(kept)
    if not kept:
        zeros = 0
    if zeros < 0 or len(kept) + zeros > data_type.precision:
        return None
    whole = tuple(map(int, kept + "0" * zeros))
    return Decimal((int(sign == "-" and bool(kept)), whole, -data_type.scale))


def _double(raw: str) -> float | None:
    """Java's reading, which knows NaN and Infinity in this spelling only."""
    word = raw.strip(_BLANK)
    letters = word.lstrip("+-")
    return None if letters.isalpha() and letters not in ("NaN", "Infinity") else to_double(raw)


def _timestamp(text: str, data_type: DataType) -> int | None:
    clock = to_timestamp(text, data_type.precision)
    if clock is None:
        return None
    default = current_settings().timezone
    zone = _zone(clock.zone or default)
    if zone is None and clock.zone is None:
        raise OptionError(f"alcid.config.timezone: found {default!r}, expected a zone")
    if zone is None:
        return None
    local = data_type.root == "TIMESTAMP_LTZ"  # of a TIMESTAMP, the zone in the text is dropped
    nanos = instant_of(clock.nanos, zone) if local else clock.nanos
    count = nanos // _nanos_per_unit(data_type)
    return count if -(1 << 63) <= count < 1 << 63 else None


@lru_cache(maxsize=16)
def _zone(name: str) -> Zone | None:
    return find_zone(name)


@lru_cache(maxsize=64)
def _nanos_per_unit(data_type: DataType) -> int:
    return {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[data_type.to_arrow().unit]


_FILE_NAME = r"/?[^/]*\z"


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column of the paths."""

    name: str
    """As `partition_types` spells it, or else the first path."""
    data_type: DataType
    values: pa.Array
    """One value for each file, of the Arrow type of `data_type`."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partition columns of files, in the order of the folders.

    A column that files hold as well has the values of the path, as in Spark.

    >>> partitions = Partitions.of(
    ...     ["dt=20250801/country=AT/0.parquet", "dt=20250802/country=DE/0.parquet"]
    ... )
    >>> [
    ...     (column.name, str(column.data_type), column.values.to_pylist())
    ...     for column in partitions.columns
    ... ]
    [('dt', 'INT', [20250801, 20250802]), ('country', 'STRING', ['AT', 'DE'])]
    """

    columns: tuple[PartitionColumn, ...]
    file_count: int

    @classmethod
    def of(
        cls,
        paths: Sequence[str] | pa.Array | pa.ChunkedArray,
        partition_types: Mapping[str, str | DataType] | None = None,
    ) -> Partitions:
        """Read the paths of all files of a table, relative to its folder.

        Args:
            paths: One path for each file, with `/` between folders.
            partition_types: Types of columns that are not to be inferred, by name. STRING for every
                column is what Spark does with `partitionColumnTypeInference.enabled` off.

        Raises:
            FormatError: Paths that do not have the same partition columns in the same order.
            LiteralError: A value that is none of the type of its column.
            ColumnError: A type for what is no partition column.
            UnsupportedError: A type that text is not read as, or paths that are not text.

        >>> Partitions.of(["a=1/f.parquet", "a=x/f.parquet"], {"a": "INT"})
        Traceback (most recent call last):
        alcid.errors.LiteralError: a=x/f.parquet: partition column a of type INT does not take 'x'
        """
        texts = _as_text(paths)
        types = Columns({} if partition_types is None else partition_types)
        for name, data_type in types.items():
            _require_readable(name, data_type)
        if not len(texts):  # nothing to infer from
            empty = (
                PartitionColumn(name, data_type, pa.array([], data_type.to_arrow()))
                for name, data_type in types.items()
            )
            return cls(tuple(empty), 0)
        folders = _Folders(texts)
        names = folders.names
        for name in types:
            if match_column(name, names) is None:
                existing = ", ".join(names) or "none"
                raise ColumnError(f"partition_types: no partition column {name}, found {existing}")
        columns = (folders.column(level, name, types) for level, name in enumerate(names))
        return cls(tuple(columns), len(texts))

    @property
    def types(self) -> dict[str, DataType]:
        """The type of each column."""
        return {column.name: column.data_type for column in self.columns}

    def to_table(self) -> pa.Table:
        """One row for each file, to ask a predicate; without columns, Arrow's table has no rows.

        >>> Partitions.of(["a=1/f", "a=__HIVE_DEFAULT_PARTITION__/f"]).to_table().to_pylist()
        [{'a': 1}, {'a': None}]
        """
        return pa.table({column.name: column.values for column in self.columns})


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the partition folders of a path are."""

    above: tuple[str, ...] = ()
    """The folders above the first of them."""
    names: tuple[str, ...] = ()
    """Their columns, as names are compared."""

    def __str__(self) -> str:
        columns = f"partition columns {', '.join(self.names)}" if self.names else "no partition"
        return f"{columns} below {'/'.join(self.above)}" if self.above else columns


class _Folders:
    """The distinct folders of files, and the distinct words between their slashes.

    There are fewer of them than files: the files themselves are only looked up in arrays.
    """

    def __init__(self, paths: pa.Array) -> None:
        self._paths = paths
        folders = pc.replace_substring_regex(paths, _FILE_NAME, "").dictionary_encode()
        self._folder_of_file = folders.indices.to_numpy()
        self._split = pc.split_pattern(folders.dictionary, "/")
        words = self._split.flatten().dictionary_encode()
        self._words = words.dictionary.to_pylist()
        self._codes = words.indices.to_numpy()
        self._begins = self._split.offsets.to_numpy()[:-1]
        layout = self._layout()
        self._first = self._begins + len(layout.above)
        spelled = self._codes[self._first[0] :][: len(layout.names)]
        self.names = [_pair(self._words[code])[0] for code in spelled]

    def column(self, level: int, name: str, types: Columns) -> PartitionColumn:
        """The values of one column, of a given or an inferred type."""
        codes, of_folder = np.unique(self._codes[self._first + level], return_inverse=True)
        texts = [self._words[code].partition("=")[2] for code in codes]
        typed_name = match_column(name, types)
        data_type = infer(texts) if typed_name is None else types[typed_name]
        values = [None if text == NULL else read_value(text, data_type) for text in texts]
        for number, (text, value) in enumerate(zip(texts, values, strict=True)):
            if value is None and text != NULL:
                path = self._file_in(int(np.argmax(of_folder == number)))
                raise LiteralError(
                    f"{path}: partition column {name} of type {data_type} does not take {text!r}"
                )
        typed = pa.array(values, data_type.to_arrow())
        of_file = pa.array(of_folder[self._folder_of_file])
        return PartitionColumn(typed_name or name, data_type, typed.take(of_file))

    def _layout(self) -> _Layout:
        """The layout that all folders have; the first folder is that of the first file."""
        markers = [self._marker(code) for code in range(len(self._words))]
        marked = pa.array(markers, pa.large_string()).take(pa.array(self._codes))
        lists = pa.ListArray.from_arrays(self._split.offsets, marked)
        shapes = pc.binary_join(lists, pa.scalar("/", pa.large_string())).dictionary_encode()
        folders = np.unique(shapes.indices.to_numpy(), return_index=True)[1].tolist()
        first = None
        for folder, shape in zip(folders, shapes.dictionary.to_pylist(), strict=True):
            layout = self._layout_of(shape.split("/"), folder)
            first = first or layout
            if layout != first:
                raise FormatError(
                    "partition folders differ",
                    file=self._file_in(folder),
                    found=layout,
                    expected=f"{first} as in {self._file_in(0)}",
                )
        return first or _Layout()

    def _marker(self, code: int) -> str:
        """A word for which all folders of a column are the same, and that holds no slash."""
        word = self._words[code]
        if "=" not in word:
            return str(word)
        name, value = _pair(word)
        if not name or not value:
            folder = int(np.searchsorted(self._begins, np.argmax(self._codes == code), "right")) - 1
            raise FormatError(
                "partition folder", file=self._file_in(folder), found=word, expected="name=value"
            )
        folded = name if current_settings().case_sensitive else name.lower()
        return "=" + folded.replace("%", "%25").replace("/", "%2F")

    def _layout_of(self, markers: list[str], folder: int) -> _Layout:
        levels = [level for level, marker in enumerate(markers) if marker.startswith("=")]
        if not levels:
            return _Layout()
        names = tuple(unescape(markers[level][1:]) for level in levels)
        if levels[-1] - levels[0] >= len(levels):
            between = next(word for word in markers[levels[0] :] if not word.startswith("="))
            raise FormatError(
                "folder between partition folders", file=self._file_in(folder), found=repr(between)
            )
        if len(set(names)) < len(names):
            raise FormatError(
                "partition column given twice",
                file=self._file_in(folder),
                found=", ".join(names),
                expected="different names",
            )
        return _Layout(tuple(markers[: levels[0]]), names)

    def _file_in(self, folder: int) -> str:
        """The first file of a folder, for the message of an error."""
        return str(self._paths[int(np.argmax(self._folder_of_file == folder))].as_py())


def _pair(word: str) -> tuple[str, str]:
    """The name of the column, and the value as it stands in the path."""
    name, _, value = word.partition("=")
    return unescape(name), value


def _as_text(paths: Sequence[str] | pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(paths, pa.ChunkedArray):
        paths = paths.combine_chunks()
    try:
        texts = paths if isinstance(paths, pa.Array) else pa.array(paths, pa.large_string())
        texts = texts.cast(pa.large_string())
    except (TypeError, ValueError, pa.ArrowException) as error:  # a lone surrogate among them
        raise UnsupportedError(f"paths: {error}") from None
    if texts.null_count:
        raise UnsupportedError("paths: found a null, expected text")
    return texts


def _require_readable(name: str, data_type: DataType) -> None:
    try:
        require_readable(data_type)
    except UnsupportedError as error:
        raise UnsupportedError(f"partition_types: column {name}: {error}") from None
