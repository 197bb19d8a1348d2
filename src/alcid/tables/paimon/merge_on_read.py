"""Merging on read: of the rows of one key only the newest is seen, the others count as deleted.

    key  number  kind                  key  number  kind
     1     7      +I    superseded      1    9      +U    live
     2     8      +I    superseded      2   10      -D    deletes key 2

Rows that are superseded, and rows that delete, become deleted positions of their file: then each
file is read on its own. This is only right for the merge engine `deduplicate`, where a row is never
made of several. `alcid.tables.paimon.merge_units` reads what is compared here.

Files of a bucket are merged section by section, where a section is files whose key ranges overlap:

    level 0          [ 5 .. 9 ]
    level 5   [ 1 .. 6 ][ 8 .. 12 ]   [ 20 .. 30 ]
              '----- section -------' '- section -'

A section of one sorted file needs no merging. With deletion vectors, compacted files (levels above
0) have each key once, and a batch read skips level 0 until it is compacted. Without them, or on
request, all levels are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from alcid._arrays import BoolArray, Int8Array, Int64Array, IntArray, plain, split_by, value_text
from alcid._text import count_text
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.casts import column_type, convert
from alcid.tables.key_order import Column, join_columns, rank_rows
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.metadata.manifest import ManifestEntry
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import Field, TableSchema
from alcid.tables.paimon.metadata.statistics import unpack_rows

Kinds: TypeAlias = Int8Array
"""Row kinds as files have them: 0 for +I, 1 for -U, 2 for +U, 3 for -D."""

_NAMES: Final = ("+I", "-U", "+U", "-D")
_BEFORE: Final = _NAMES.index("-U")
DELETE_KIND: Final = _NAMES.index("-D")


def parse_kinds(values: pa.Array | pa.ChunkedArray, *, column: str) -> Kinds:
    """Parse a column of row kinds.

    Raises:
        UnsupportedError: It has something else.

    >>> parse_kinds(pa.array(["+I", "-D"]), column="op").tolist()
    [0, 3]
    >>> parse_kinds(pa.array(["+I", "delete"]), column="op")
    Traceback (most recent call last):
    alcid.errors.UnsupportedError: column op: found 'delete', expected +I, -U, +U or -D
    """
    text = pa.chunked_array(values) if isinstance(values, pa.Array) else values
    if types.is_dictionary(text.type):
        text = text.cast(text.type.value_type)
    if not (types.is_string(text.type) or types.is_large_string(text.type)):
        raise UnsupportedError(f"column {column}: found {text.type}, expected +I, -U, +U or -D")
    codes = pc.index_in(text, pa.array(_NAMES, text.type))
    if codes.null_count:
        row = pc.index(pc.is_null(codes), True).as_py()
        raise UnsupportedError(
            f"column {column}: found {text[row].as_py()!r}, expected +I, -U, +U or -D"
        )
    kinds: Kinds = codes.to_numpy().astype(np.int8)
    return kinds


def are_deletes(kinds: npt.NDArray[np.integer[Any]]) -> BoolArray:
    """Which row kinds delete.

    >>> are_deletes(np.array([0, 1, 2, 3], np.int8)).tolist()
    [False, True, False, True]
    """
    return np.asarray(kinds & 1 == 1)


def is_effective(kinds: Kinds, options: TableOptions) -> BoolArray:
    """Which row kinds the options of a table do not ignore."""
    if options.ignore_delete:
        return ~are_deletes(kinds)
    return kinds != _BEFORE if options.ignore_update_before else np.ones(len(kinds), bool)


_MAX_KIND = 3


@dataclass(frozen=True, slots=True, eq=False)
class KeyRows:
    """The columns of a file that merging needs."""

    keys: Sequence[Column]
    """The columns of the trimmed primary key."""
    sequence_numbers: npt.NDArray[Any] | Column
    kinds: npt.NDArray[Any] | Column
    """0 for +I, 1 for -U, 2 for +U, 3 for -D."""
    level: int
    sequence: Sequence[Column] = ()
    """The columns of `sequence.field`."""
    deleted: DeletionVector | None = None
    """Rows that are ignored, as if they were not in the file."""
    name: str | None = None
    """The file, for errors."""

    def __len__(self) -> int:
        return len(self.sequence_numbers)


def superseded_rows(
    files: Sequence[KeyRows], *, descending: bool = False, ignore_delete: bool = False
) -> list[DeletionVector]:
    """For each file the rows that are not live, with those deleted before.

    The newest row of a key has the greatest sequence fields, then the greatest sequence number,
    then the lowest level, then it is in the last file, then it is the last.

    Args:
        files: All files of a section, or of several sections of one bucket, in manifest order.
        descending: `sequence.field.sort-order`: smaller sequence fields are newer, null is oldest.
        ignore_delete: Rows that delete are ignored, and do not delete older ones.

    Raises:
        FormatError: A row has no sequence number or kind, or the columns are not of one length.
        UnsupportedError: A key or sequence field is of a type that has no order, or of several.

    >>> old = KeyRows([pa.array([1, 2, 3])], np.array([6, 7, 8]), np.array([0, 0, 0]), level=5)
    >>> new = KeyRows([pa.array([1, 2])], np.array([9, 10]), np.array([2, 3]), level=0)
    >>> superseded_rows([old, new])
    [DeletionVector([0, 1], bits=32), DeletionVector([1], bits=32)]
    """
    # Older files first, so that among equal rows the last of all is newest.
    order = sorted(range(len(files)), key=lambda number: (-files[number].level, number))
    oldest_first = [files[number] for number in order]
    ends = np.cumsum([_checked_length(file) for file in oldest_first], dtype=np.int64)
    if not len(ends) or not ends[-1]:
        return [file.deleted or DeletionVector() for file in files]
    deletes = np.concatenate([_deletes(file) for file in oldest_first])
    present = ~np.concatenate([_deleted_before(file) for file in oldest_first])
    if ignore_delete:
        present &= ~deletes
    newest = _newest(oldest_first, np.flatnonzero(present), descending=descending)
    is_deleted = np.ones(len(present), bool)
    is_deleted[newest] = deletes[newest]
    vectors = dict(zip(order, np.split(is_deleted, ends[:-1]), strict=True))
    return [
        DeletionVector(np.flatnonzero(vectors[number])) | (file.deleted or DeletionVector())
        for number, file in enumerate(files)
    ]


def _newest(files: Sequence[KeyRows], rows: IntArray, *, descending: bool) -> IntArray:
    """The newest row of each key among some rows, which are numbered through all files."""
    keys = rank_rows(join_columns([file.keys for file in files]), sum(map(len, files)))[rows]
    numbers = np.concatenate([_integers(file, file.sequence_numbers) for file in files])[rows]
    repeated = np.bincount(keys)[keys] > 1
    alone, left = rows[~repeated], np.flatnonzero(repeated)
    sequence = [
        column.take(pa.array(rows[left])) for column in join_columns([f.sequence for f in files])
    ]
    ages = [rank_rows(sequence, len(left), descending=descending), numbers[left], rows[left]]
    return np.concatenate([alone, rows[left][_greatest(keys[left], ages)]])


def _greatest(keys: IntArray, ages: Sequence[IntArray]) -> IntArray:
    """The position of the greatest row of each key, compared by one age after the other."""
    left = np.arange(len(keys))
    for age in ages:
        of_key, ages_left = keys[left], age[left]
        greatest = np.full(int(keys.max(initial=0)) + 1, np.iinfo(age.dtype).min, age.dtype)
        np.maximum.at(greatest, of_key, ages_left)
        left = left[ages_left == greatest[of_key]]
    return left


def _deleted_before(file: KeyRows) -> BoolArray:
    if file.deleted is None:
        return np.zeros(len(file), bool)
    return file.deleted.contains(np.arange(len(file)))


def _deletes(file: KeyRows) -> BoolArray:
    """True for -U and -D."""
    kinds = _integers(file, file.kinds)
    wrong = np.flatnonzero((kinds < 0) | (kinds > _MAX_KIND))
    if len(wrong):
        row, kind = int(wrong[0]), int(kinds[wrong[0]])
        raise FormatError(f"kind of row {row}", file=file.name, found=kind, expected="0 to 3")
    return are_deletes(kinds)


def _integers(file: KeyRows, values: npt.NDArray[Any] | Column) -> Int64Array:
    """Sequence numbers or kinds, which every row must have."""
    if not isinstance(values, np.ndarray):
        array = plain(values)
        if array.null_count:
            raise FormatError("row without sequence number or kind", file=file.name)
        values = array.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "iu":
        raise UnsupportedError(f"sequence numbers and kinds: found {values.dtype}, expected int64")
    return values.astype(np.int64, copy=False)


def _checked_length(file: KeyRows) -> int:
    count = len(file)
    for column in (*file.keys, *file.sequence, file.kinds):
        if len(column) != count:
            raise FormatError(
                "columns of several lengths", file=file.name, found=len(column), expected=count
            )
    return count


NUMBER, KIND = "_SEQUENCE_NUMBER", "_VALUE_KIND"
"""System columns of every file: sequence number and row kind."""


def key_name(column: str) -> str:
    """The name of a key column in front of a file.

    >>> key_name("id")
    '_KEY_id'
    """
    return f"_KEY_{column}"


def read_key_rows(
    placed: PlacedFile,
    deleted: DeletionVector | None,
    *,
    schema: TableSchema,
    schemas: Mapping[int, TableSchema],
    options: TableOptions,
    read: Callable[[Sequence[str]], pa.Table],
) -> KeyRows:
    """Read the columns of a file that merging needs.

    Args:
        placed: The file.
        deleted: Rows to ignore.
        schema: The schema of the table.
        schemas: The schemas of its files, by id.
        options: Options of the table.
        read: Reads columns of the file, as far as it has them.

    Raises:
        FormatError: The file has no such column, though every file does.
        UnsupportedError: A value cannot be converted to the type that the table has now.
    """
    own = schemas[placed.file.schema_id].by_id
    keys = [schema.field(name) for name in schema.key_columns]
    order = [schema.field(name) for name in options.sequence_field]
    names = [own[key.id].name for key in keys]
    sequence = [own[field.id].name for field in order if field.id in own]
    # Thin files do not repeat the key.
    rows = read([NUMBER, KIND, *map(key_name, names), *sequence, *names])
    present = set(rows.column_names)
    key_columns = [key_name(name) if key_name(name) in present else name for name in names]
    return KeyRows(
        [
            convert_key(require_column(rows, name, placed), own[key.id], key, placed)
            for key, name in zip(keys, key_columns, strict=True)
        ],
        require_column(rows, NUMBER, placed),
        require_column(rows, KIND, placed),
        placed.file.level,
        [
            convert_values(
                require_column(rows, own[field.id].name, placed), own[field.id], field, placed
            )
            if field.id in own
            else pa.nulls(rows.num_rows, column_type(field.data_type))
            for field in order
        ],
        deleted,
        placed.path,
    )


def require_column(rows: pa.Table, name: str, placed: PlacedFile) -> pa.ChunkedArray:
    """A column that every file has."""
    if name not in rows.column_names:
        raise FormatError(f"no column {name}", file=placed.path)
    return rows.column(name)


def convert_values(
    values: pa.ChunkedArray, own: Field, wanted: Field, placed: PlacedFile, arrow_type: Any = None
) -> pa.ChunkedArray:
    """Convert values of a file to the type that the table has now."""
    conversion, where = convert(own, wanted), f"{placed.path}: column {wanted.name}"
    try:
        converted = values if conversion is None else conversion(values)
    except UnsupportedError as error:
        raise UnsupportedError(f"{where}: {error}") from None
    return cast_values(converted, arrow_type or column_type(wanted.data_type), where)


def convert_key(
    values: pa.ChunkedArray, own: Field, wanted: Field, placed: PlacedFile, arrow_type: Any = None
) -> pa.ChunkedArray:
    """Convert a key without changing it: two keys must not become one.

    Raises:
        UnsupportedError: The type of the table does not have the value.
    """
    converted = convert_values(values, own, wanted, placed, arrow_type)
    if converted.type != values.type:
        same = pc.equal(converted.cast(values.type, safe=False), values).combine_chunks()
        if not pc.all(same, min_count=0).as_py():
            value = values[same.index(False).as_py()]
            raise UnsupportedError(
                f"{placed.path}: column {wanted.name}: found the key {value}, which is no "
                f"{wanted.data_type}, as in the table: it cannot be told from other keys"
            )
    return converted


def cast_values(values: pa.ChunkedArray, arrow_type: Any, where: str) -> pa.ChunkedArray:
    """Values in an Arrow type; `where` names the column in errors.

    Raises:
        UnsupportedError: A value does not fit.
    """
    if values.type == arrow_type:
        return values
    try:
        return values.cast(arrow_type)
    except pa.ArrowException as error:
        problem = str(error).splitlines()[0]
        raise UnsupportedError(
            f"{where}: found {values.type}, expected {arrow_type} as in the table: {problem}"
        ) from None


def plan_sections(
    buckets: npt.ArrayLike, minimum_keys: Sequence[Column], maximum_keys: Sequence[Column]
) -> list[IntArray]:
    """The numbers of the files of each section, ascending; sections by bucket and key.

    Args:
        buckets: For each file an integer that identifies its partition and bucket.
        minimum_keys: The minimum keys of all files: the columns of the trimmed primary key.
        maximum_keys: The maximum keys.

    Raises:
        FormatError: The minimum key of a file is above its maximum.
        UnsupportedError: A key is of a type that has no order.

    >>> import pyarrow as pa
    >>> least, greatest = pa.array([20, 1, 5, 1]), pa.array([30, 6, 9, 9])
    >>> [files.tolist() for files in plan_sections([7, 7, 7, 8], [least], [greatest])]
    [[1, 2], [0], [3]]
    """
    bucket_of_file = np.unique(np.asarray(buckets), return_inverse=True)[1]
    count = len(bucket_of_file)
    if not count:
        return []
    ranks = rank_rows(join_columns([minimum_keys, maximum_keys]), 2 * count)
    minimum, maximum = ranks[:count], ranks[count:]
    wrong = np.flatnonzero(minimum > maximum)
    if len(wrong):
        raise _swapped_keys(int(wrong[0]), minimum_keys, maximum_keys)
    # Each bucket gets its own range of ranks.
    begin, end = (bucket_of_file * (2 * count) + rank for rank in (minimum, maximum))
    order = np.argsort(begin, kind="stable")
    furthest = np.maximum.accumulate(end[order])
    new = np.zeros(count, np.int64)
    new[1:] = begin[order][1:] > furthest[:-1]
    section_of_file = np.empty(count, np.int64)
    section_of_file[order] = np.cumsum(new)
    files = np.argsort(section_of_file, kind="stable")
    return split_by(files, section_of_file[files])


def is_raw(section: IntArray, levels: IntArray, delete_rows: IntArray) -> bool:
    """Whether every row of a section is live, so that nothing has to be merged.

    That is never sure of level 0: some writers count no deletes, or repeat a key.

    Args:
        section: The numbers of its files.
        levels: The level of every file of the table.
        delete_rows: How many rows of every file delete; negative: unknown.

    >>> levels, delete_rows = np.array([5, 0, 4]), np.array([0, 0, -1])
    >>> [is_raw(np.array([file]), levels, delete_rows) for file in range(3)]
    [True, False, False]
    """
    return len(section) == 1 and bool(levels[section[0]] > 0 and delete_rows[section[0]] == 0)


def _swapped_keys(
    file: int, minimum_keys: Sequence[Column], maximum_keys: Sequence[Column]
) -> FormatError:
    least, greatest = (
        f"({', '.join(value_text(column[file]) for column in columns)})"
        for columns in (minimum_keys, maximum_keys)
    )
    return FormatError(f"minimum key of data file {file}", found=least, expected=f"<= {greatest}")


def check_levels(files: Sequence[PlacedFile], schema: TableSchema) -> Iterator[tuple[str, str]]:
    """Files of the same level of a bucket whose keys overlap: path and problem.

    Each level above 0 must be one sorted run, or Paimon's Java does not open the bucket.
    """
    chosen = [file for file in files if file.file.level > 0]
    if not chosen:
        return
    numbers: dict[tuple[bytes, int, int], int] = {}
    levels = [
        numbers.setdefault((*file.entry.bucket_id, file.file.level), len(numbers))
        for file in chosen
    ]
    types = [schema.types[name] for name in schema.key_columns]
    minimum = unpack_rows([file.file.min_key for file in chosen], types, file="keys of a manifest")
    maximum = unpack_rows([file.file.max_key for file in chosen], types, file="keys of a manifest")
    for section in plan_sections(levels, minimum, maximum):
        first, *others = (chosen[number] for number in section.tolist())
        for other in others:
            yield other.path, f"overlaps {first.file.name} on level {other.file.level}"


@dataclass(frozen=True, slots=True)
class NotCompacted:
    """Files of level 0 that a read skips, as they are not compacted yet."""

    files: int = 0
    rows: int = 0

    def __str__(self) -> str:
        return (
            f"level 0 is not yet compacted ({count_text(self.files, 'file')}, "
            f"{count_text(self.rows, 'row')}), and left out as Paimon leaves it out: "
            "merge_on_read=True (--merge-on-read) reads it"
        )


def visible_entries(
    entries: Sequence[ManifestEntry], options: TableOptions, *, merge_on_read: bool
) -> tuple[list[ManifestEntry], NotCompacted]:
    """The files that a read sees, and those that it skips."""
    if not options.skips_level_0 or merge_on_read:
        return list(entries), NotCompacted()
    skipped = [entry for entry in entries if not entry.file.level]
    return (
        [entry for entry in entries if entry.file.level],
        NotCompacted(len(skipped), sum(entry.file.rows for entry in skipped)),
    )
