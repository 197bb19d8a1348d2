"""Merging on read as deletion vectors: of the rows of one key only the newest is kept.

    key  number  kind              key  number  kind
     1     7      +I    loses        1    9      +U    seen
     2     8      +I    loses        2   10      -D    deletes key 2

All that loses, and all that deletes, becomes a deleted position of its file: then files are read
as if each stood for itself. Do not use it for merge engines other than `deduplicate`, where a row
is made of several.

What rows do: `+I` and `+U` put a row in place of that of their key, `-U` and `-D` delete it.

Files of a bucket that have to be merged with each other, as their key ranges overlap.

    level 0          [ 5 .. 9 ]
    level 5   [ 1 .. 6 ][ 8 .. 12 ]   [ 20 .. 30 ]
              '------ a section -----' '- another -'

No key of one section is in another, so that each is merged alone; and a section that is one sorted
file needs no merging at all.

Levels of a primary-key table: which files a read sees, and which have to be merged.

With deletion vectors, what was compacted (levels above 0) has each key once, older rows being
marked; a batch read leaves level 0 out until a compaction takes it in. Without them, or if asked
for, all levels are merged.
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

__all__ = [
    "DELETE_KIND",
    "KIND",
    "NUMBER",
    "KeyRows",
    "Kinds",
    "LevelMerges",
    "NotCompacted",
    "are_deletes",
    "cast_values",
    "check_levels",
    "convert_key",
    "convert_values",
    "is_effective",
    "is_raw",
    "key_name",
    "parse_kinds",
    "plan_sections",
    "read_key_rows",
    "require_column",
    "superseded_rows",
    "visible_entries",
]

Kinds: TypeAlias = Int8Array
"""As the files have them: 0 for +I, 1 for -U, 2 for +U, 3 for -D."""

_NAMES: Final = ("+I", "-U", "+U", "-D")
_BEFORE: Final = _NAMES.index("-U")
DELETE_KIND: Final = _NAMES.index("-D")


def parse_kinds(values: pa.Array | pa.ChunkedArray, *, column: str) -> Kinds:
    """The kinds that a column names.

    Raises:
        UnsupportedError: Something else stands in it.

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
    found = pc.index_in(text, pa.array(_NAMES, text.type))
    if found.null_count:
        row = pc.index(pc.is_null(found), True).as_py()
        raise UnsupportedError(
            f"column {column}: found {text[row].as_py()!r}, expected +I, -U, +U or -D"
        )
    kinds: Kinds = found.to_numpy().astype(np.int8)
    return kinds


def are_deletes(kinds: npt.NDArray[np.integer[Any]]) -> BoolArray:
    """Which of them delete.

    >>> are_deletes(np.array([0, 1, 2, 3], np.int8)).tolist()
    [False, True, False, True]
    """
    return np.asarray(kinds & 1 == 1)


def is_effective(kinds: Kinds, options: TableOptions) -> BoolArray:
    """Which of them the options of a table do not ignore."""
    if options.ignore_delete:
        return ~are_deletes(kinds)
    return kinds != _BEFORE if options.ignore_update_before else np.ones(len(kinds), bool)


_MOST_KIND = 3


@dataclass(frozen=True, slots=True, eq=False)
class KeyRows:
    """What merging needs of the rows of one file."""

    keys: Sequence[Column]
    """The columns of the trimmed primary key."""
    sequence_numbers: npt.NDArray[Any] | Column
    kinds: npt.NDArray[Any] | Column
    """0 for +I, 1 for -U, 2 for +U, 3 for -D."""
    level: int
    sequence: Sequence[Column] = ()
    """The columns of `sequence.field`."""
    deleted: DeletionVector | None = None
    """Rows that take no part, as if they were not in the file."""
    name: str | None = None
    """What errors call the file."""

    def __len__(self) -> int:
        return len(self.sequence_numbers)


def superseded_rows(
    files: Sequence[KeyRows], *, descending: bool = False, ignore_delete: bool = False
) -> list[DeletionVector]:
    """For each file the rows that are not rows of the table, those deleted before among them.

    Of a key, the row with the greatest sequence fields is newest, then the one with the greatest
    sequence number, then of the lowest level, then of the last file, then the last.

    Args:
        files: All files of a section, or of several sections of one bucket, in manifest order.
        descending: `sequence.field.sort-order`: lesser sequence fields are newer, null is oldest.
        ignore_delete: Rows that delete take no part, rather than delete older ones.

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
    hidden = np.ones(len(present), bool)
    hidden[newest] = deletes[newest]
    vectors = dict(zip(order, np.split(hidden, ends[:-1]), strict=True))
    return [
        DeletionVector(np.flatnonzero(vectors[number])) | (file.deleted or DeletionVector())
        for number, file in enumerate(files)
    ]


def _newest(files: Sequence[KeyRows], rows: IntArray, *, descending: bool) -> IntArray:
    """Of the given rows, counted through all files, the newest of each key."""
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
    """The place of the greatest row of each key, compared by one age after the other."""
    left = np.arange(len(keys))
    for age in ages:
        of_key, found = keys[left], age[left]
        greatest = np.full(int(keys.max(initial=0)) + 1, np.iinfo(age.dtype).min, age.dtype)
        np.maximum.at(greatest, of_key, found)
        left = left[found == greatest[of_key]]
    return left


def _deleted_before(file: KeyRows) -> BoolArray:
    if file.deleted is None:
        return np.zeros(len(file), bool)
    return file.deleted.contains(np.arange(len(file)))


def _deletes(file: KeyRows) -> BoolArray:
    """True for -U and -D."""
    kinds = _integers(file, file.kinds)
    wrong = np.flatnonzero((kinds < 0) | (kinds > _MOST_KIND))
    if len(wrong):
        row, found = int(wrong[0]), int(kinds[wrong[0]])
        raise FormatError(f"kind of row {row}", file=file.name, found=found, expected="0 to 3")
    return are_deletes(kinds)


def _integers(file: KeyRows, values: npt.NDArray[Any] | Column) -> Int64Array:
    """Sequence numbers or kinds, of which no row lacks one."""
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
"""Columns of every file: how new a row is, and what it does: 0 +I, 1 -U, 2 +U, 3 -D."""


def key_name(column: str) -> str:
    """What a column of the key is called in front of a file.

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
    """What merging needs of the rows of a file.

    Args:
        placed: The file.
        deleted: Rows that take no part.
        schema: Of the table.
        schemas: Those of its files, by their ids.
        options: Of the table.
        read: Reads columns of the file, as far as it has them.

    Raises:
        FormatError: The file lacks a column that every such file has.
        UnsupportedError: A value is not what the table has now.
    """
    own = schemas[placed.file.schema_id].by_id
    keys = [schema.field(name) for name in schema.key_columns]
    order = [schema.field(name) for name in options.sequence_field]
    spelled = [own[one.id].name for one in keys]
    ages = [own[one.id].name for one in order if one.id in own]
    # Thin files do not repeat the key.
    rows = read([NUMBER, KIND, *map(key_name, spelled), *ages, *spelled])
    inside = set(rows.column_names)
    front = [key_name(name) if key_name(name) in inside else name for name in spelled]
    return KeyRows(
        [
            convert_key(require_column(rows, name, placed), own[one.id], one, placed)
            for one, name in zip(keys, front, strict=True)
        ],
        require_column(rows, NUMBER, placed),
        require_column(rows, KIND, placed),
        placed.file.level,
        [
            convert_values(require_column(rows, own[one.id].name, placed), own[one.id], one, placed)
            if one.id in own
            else pa.nulls(rows.num_rows, column_type(one.data_type))
            for one in order
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
    """Values of a file in the type that the table has now."""
    conversion, where = convert(own, wanted), f"{placed.path}: column {wanted.name}"
    try:
        found = values if conversion is None else conversion(values)
    except UnsupportedError as error:
        raise UnsupportedError(f"{where}: {error}") from None
    return cast_values(found, arrow_type or column_type(wanted.data_type), where)


def convert_key(
    values: pa.ChunkedArray, own: Field, wanted: Field, placed: PlacedFile, arrow_type: Any = None
) -> pa.ChunkedArray:
    """The same of a key, which has to stay what it was: two keys must not become one.

    Raises:
        UnsupportedError: The type of the table has no such value.
    """
    found = convert_values(values, own, wanted, placed, arrow_type)
    if found.type != values.type:
        same = pc.equal(found.cast(values.type, safe=False), values).combine_chunks()
        if not pc.all(same, min_count=0).as_py():
            value = values[same.index(False).as_py()]
            raise UnsupportedError(
                f"{placed.path}: column {wanted.name}: found the key {value}, which is no "
                f"{wanted.data_type}, as in the table: it cannot be told from other keys"
            )
    return found


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
        buckets: For each file an integer that tells its partition and bucket.
        minimum_keys: The columns of the trimmed primary key: in each, the value of every file.
        maximum_keys: The same of the greatest key.

    Raises:
        FormatError: The least key of a file is above its greatest.
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
    least, greatest = ranks[:count], ranks[count:]
    wrong = np.flatnonzero(least > greatest)
    if len(wrong):
        raise _turned_round(int(wrong[0]), minimum_keys, maximum_keys)
    # Buckets get ranges of ranks of their own, one behind the other.
    begin, end = (bucket_of_file * (2 * count) + rank for rank in (least, greatest))
    order = np.argsort(begin, kind="stable")
    furthest = np.maximum.accumulate(end[order])
    new = np.zeros(count, np.int64)
    new[1:] = begin[order][1:] > furthest[:-1]
    section_of_file = np.empty(count, np.int64)
    section_of_file[order] = np.cumsum(new)
    files = np.argsort(section_of_file, kind="stable")
    return split_by(files, section_of_file[files])


def is_raw(section: IntArray, levels: IntArray, delete_rows: IntArray) -> bool:
    """Whether every row of a section is a row of the table.

    A file of level 0 is never sure to be: some writers count no deletes, or repeat a key.

    Args:
        section: The numbers of its files.
        levels: The level of every file of the table.
        delete_rows: How many rows of every file delete; negative if unknown.

    >>> levels, delete_rows = np.array([5, 0, 4]), np.array([0, 0, -1])
    >>> [is_raw(np.array([file]), levels, delete_rows) for file in range(3)]
    [True, False, False]
    """
    return len(section) == 1 and bool(levels[section[0]] > 0 and delete_rows[section[0]] == 0)


def _turned_round(
    file: int, minimum_keys: Sequence[Column], maximum_keys: Sequence[Column]
) -> FormatError:
    least, greatest = (
        f"({', '.join(value_text(column[file]) for column in columns)})"
        for columns in (minimum_keys, maximum_keys)
    )
    return FormatError(f"least key of data file {file}", found=least, expected=f"<= {greatest}")


def check_levels(files: Sequence[PlacedFile], schema: TableSchema) -> Iterator[tuple[str, str]]:
    """Files of the same level of a bucket whose keys overlap: path and problem.

    Of the levels above 0 each is sorted throughout, else no writer of Java opens the bucket.
    """
    chosen = [one for one in files if one.file.level > 0]
    if not chosen:
        return
    names: dict[tuple[bytes, int, int], int] = {}
    levels = [
        names.setdefault((one.entry.partition, one.entry.bucket, one.file.level), len(names))
        for one in chosen
    ]
    kinds = [schema.types[name] for name in schema.key_columns]
    least = unpack_rows([one.file.min_key for one in chosen], kinds, file="keys of a manifest")
    most = unpack_rows([one.file.max_key for one in chosen], kinds, file="keys of a manifest")
    for section in plan_sections(levels, least, most):
        first, *others = (chosen[number] for number in section.tolist())
        for other in others:
            yield other.path, f"overlaps {first.file.name} on level {other.file.level}"


@dataclass(frozen=True, slots=True)
class NotCompacted:
    """What a read leaves out, as no compaction has taken it in yet."""

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
    """The files that a read sees, and what it does not see."""
    if not options.skips_level_0 or merge_on_read:
        return list(entries), NotCompacted()
    left = [entry for entry in entries if not entry.file.level]
    return (
        [entry for entry in entries if entry.file.level],
        NotCompacted(len(left), sum(entry.file.rows for entry in left)),
    )


class LevelMerges:
    """The merging of the files of a primary-key table, section by section, when it is needed."""

    def __init__(
        self,
        files: Sequence[PlacedFile],
        schema: TableSchema,
        schemas: Mapping[int, TableSchema],
        options: TableOptions,
        read: Callable[[int, Sequence[str]], pa.Table],
        *,
        merge_on_read: bool,
    ) -> None:
        """Find the sections.

        Args:
            files: The files that the read sees.
            schema: Of the table.
            schemas: Of files, by their ids.
            options: Of the table.
            read: Reads columns of a file by its number, as far as it has them.
            merge_on_read: Level 0 is seen though there are deletion vectors.
        """
        self._files, self._schema, self._schemas = files, schema, schemas
        self._options, self._read = options, read
        self._sections = self._plan(compacted=options.skips_level_0 and not merge_on_read)
        self._section_of = {
            file: number for number, some in enumerate(self._sections) for file in some.tolist()
        }

    def _plan(self, *, compacted: bool) -> list[Int64Array]:
        """The sections that must be merged."""
        files = self._files
        levels = np.array([one.file.level for one in files], np.int64)
        known = (one.file.delete_rows for one in files)
        deletes = np.array([-1 if count is None else count for count in known], np.int64)
        names: dict[tuple[bytes, int], int] = {}
        buckets = np.array(
            [
                names.setdefault((one.entry.partition, one.entry.bucket), len(names))
                for one in files
            ],
            np.int64,
        )
        chosen = np.arange(len(files))
        if compacted:  # older rows are marked: only a bucket with rows that delete is merged
            chosen = np.flatnonzero(np.isin(buckets, buckets[deletes != 0]))
        if not len(chosen):
            return []
        if compacted and self._options.merge_engine != "deduplicate":
            name = files[int(chosen[0])].path
            raise UnsupportedError(
                f"{name}: has rows that delete, and merge-engine={self._options.merge_engine}, "
                "of which only compacted files without such rows are read"
            )
        sections = plan_sections(
            buckets[chosen],
            self._keys([files[file].file.min_key for file in chosen.tolist()]),
            self._keys([files[file].file.max_key for file in chosen.tolist()]),
        )
        every = (chosen[section] for section in sections)
        return [section for section in every if not is_raw(section, levels, deletes)]

    def _keys(self, packed: Sequence[bytes]) -> list[pa.Array]:
        types = [self._schema.types[name] for name in self._schema.key_columns]
        return unpack_rows(packed, types, file="keys of a manifest")

    def files(self) -> frozenset[int]:
        """The files that are merged with others."""
        return frozenset(self._section_of)

    def load(
        self,
        files: Int64Array,
        stored: Callable[[Sequence[int]], Mapping[int, DeletionVector]],
    ) -> dict[int, DeletionVector]:
        """The rows that are no rows of the table, of these files and those merged with them."""
        found: dict[int, DeletionVector] = {}
        for number in dict.fromkeys(self._section_of[file] for file in files.tolist()):
            section = self._sections[number].tolist()
            deleted = stored(section)
            rows = [self._key_rows(file, deleted.get(file)) for file in section]
            vectors = superseded_rows(
                rows,
                descending=self._options.sequence_descending,
                ignore_delete=self._options.ignore_delete,
            )
            found.update(zip(section, vectors, strict=True))
        return found

    def _key_rows(self, file: int, deleted: DeletionVector | None) -> KeyRows:
        return read_key_rows(
            self._files[file],
            deleted,
            schema=self._schema,
            schemas=self._schemas,
            options=self._options,
            read=lambda columns: self._read(file, columns),
        )
