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

Whether `A` and `a` are one column says `alcid.options.case_sensitive`. Folders and files that Spark
hides, such as `_temporary`, are not told apart here: leave them out of the listing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid import options
from alcid.columns import Columns
from alcid.errors import ColumnError, FormatError, LiteralError, UnsupportedError
from alcid.options import match_column
from alcid.tables.partition_types import NULL, infer, read_value, require_readable, unescape
from alcid.types import DataType

__all__ = ["PartitionColumn", "Partitions"]

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

    >>> found = Partitions.of(
    ...     ["dt=20250801/country=AT/0.parquet", "dt=20250802/country=DE/0.parquet"]
    ... )
    >>> [
    ...     (column.name, str(column.data_type), column.values.to_pylist())
    ...     for column in found.columns
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
                known = ", ".join(names) or "none"
                raise ColumnError(f"partition_types: no partition column {name}, found {known}")
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
        given = match_column(name, types)
        data_type = infer(texts) if given is None else types[given]
        values = [None if text == NULL else read_value(text, data_type) for text in texts]
        for number, (text, value) in enumerate(zip(texts, values, strict=True)):
            if value is None and text != NULL:
                path = self._file_in(int(np.argmax(of_folder == number)))
                raise LiteralError(
                    f"{path}: partition column {name} of type {data_type} does not take {text!r}"
                )
        typed = pa.array(values, data_type.to_arrow())
        of_file = pa.array(of_folder[self._folder_of_file])
        return PartitionColumn(given or name, data_type, typed.take(of_file))

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
        folded = name if options.current_settings().case_sensitive else name.lower()
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
