"""The data files of a table with a primary key: one sorted run of rows, each key once.

    _KEY_id  _SEQUENCE_NUMBER  _VALUE_KIND  id  name ...
       1            7               0        1  "fig"
       2            9               0        2  "pear"

The columns of the key stand twice, in front and among those of the table, unless
`data-file.thin-mode` leaves them out in front. Java's writers open a bucket only if the files of
each level above 0 have keys that rise from file to file, so this is checked before anything is
written.

Rows by their places, of tables that are larger than one Arrow array may be.

Which sorted runs of a bucket a compaction takes, and the level that it puts them on.

    level 0   a  b                  always taken, all of it
    level 1   ccc                   taken, as there is no level between it and 0
    level 2   dddd                  taken, so that level 1 is free for the next
    level 3   eeeeeeeeee            taken if it is not larger than all that is taken before it
    level 5   ffffffffffffffffff

Level 0 goes to the level below all runs, as long as there is one. Then runs are merged, the newest
first: each is merged with what is as large as it is, so that a row is not written again too often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array, plain
from alcid.errors import FormatError
from alcid.tables.key_order import Column, join_columns, rank_rows
from alcid.tables.paimon.data_files import PlacedFile, stored_schema
from alcid.tables.paimon.keyed.bucket import Bucket, KeyedTable
from alcid.tables.paimon.merge_on_read import KIND, NUMBER, are_deletes, key_name  # MOVED
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import FULL, collect, pack_rows
from alcid.tables.paimon.write.new_files import NewFiles, Span, WrittenData
from alcid.tables.parquet_writer import GROUP_ROWS, FileWriter, roll_files

__all__ = [
    "Choice",
    "KeyRun",
    "choose_all",
    "choose_runs",
    "count_levels",
    "join_runs",
    "key_file_schema",
    "take_rows",
    "write_runs",
]

_STEP_BYTES = 1 << 28  # of rows that are put together at a time


def take_rows(rows: pa.Table, places: Int64Array) -> pa.Table:
    """The rows of these places, in this order.

    `Table.take` makes one array of all chunks of a column first, and fails where that has more than
    2 GiB of text, however few rows are asked for. Here it is done in steps, and what comes out has
    a chunk for each.

    >>> rows = pa.concat_tables([pa.table({"a": [10, 11]}), pa.table({"a": [12]})])
    >>> take_rows(rows, np.array([2, 0, 2])).column("a").to_pylist()
    [12, 10, 12]
    """
    batches = rows.to_batches()
    if len(batches) <= 1:
        return rows.take(pa.array(places))
    step = max(_STEP_BYTES * len(rows) // max(rows.nbytes, 1), 1)
    steps = [
        _gather(batches, places[start : start + step]) for start in range(0, len(places), step)
    ]
    return pa.concat_tables([rows.slice(0, 0), *steps])


def _gather(batches: list[pa.RecordBatch], places: Int64Array) -> pa.Table:
    """Take them from batch after batch, then bring them into their order."""
    ends = np.cumsum([batch.num_rows for batch in batches])
    order = np.argsort(places, kind="stable")
    parts = np.split(order, np.searchsorted(places[order], ends[:-1]))
    taken = [
        batch.take(pa.array(places[part] - (end - batch.num_rows)))
        for batch, end, part in zip(batches, ends, parts, strict=True)
        if len(part)
    ]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return pa.Table.from_batches(taken).combine_chunks().take(pa.array(back))


_KEY_ID_OFFSET = (1 << 30) - 1
_NUMBER_ID = (1 << 31) - 2
_KIND_ID = (1 << 31) - 3


@dataclass(frozen=True, slots=True, eq=False)
class KeyRun:
    """Rows of a bucket in the order of their keys, each key once; or a part of such a run."""

    rows: pa.Table
    """All columns of the table, in the types of `stored_schema`."""
    numbers: npt.NDArray[np.int64]
    """Their sequence numbers."""
    kinds: npt.NDArray[np.int8]
    """0 for +I, 1 for -U, 2 for +U, 3 for -D."""

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: npt.NDArray[np.int64]) -> KeyRun:
        """The rows of these places, in this order."""
        return KeyRun(take_rows(self.rows, rows), self.numbers[rows], self.kinds[rows])

    def filter(self, mask: npt.NDArray[np.bool_]) -> KeyRun:
        """The rows where a mask is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))


def join_runs(parts: Iterable[KeyRun]) -> KeyRun:
    """Parts one after the other; at least one."""
    every = list(parts)
    return KeyRun(
        pa.concat_tables([one.rows for one in every]),
        np.concatenate([one.numbers for one in every]),
        np.concatenate([one.kinds for one in every]),
    )


def key_file_schema(schema: TableSchema, *, thin: bool) -> pa.Schema:
    """The columns of a data file.

    Args:
        schema: Of the table.
        thin: Leave out the columns of the key in front.

    >>> from alcid.types import DataType
    >>> key = TableSchema.of([("id", DataType("INT")), ("a", DataType("INT"))], ["id"], [], {})
    >>> key_file_schema(key, thin=False).names
    ['_KEY_id', '_SEQUENCE_NUMBER', '_VALUE_KIND', 'id', 'a']
    """
    stored = stored_schema(schema)
    keys = [] if thin else [schema.field(name) for name in schema.key_columns]
    return pa.schema(
        [
            *(
                _required(key_name(one.name), stored.field(one.name).type, one.id + _KEY_ID_OFFSET)
                for one in keys
            ),
            _required(NUMBER, pa.int64(), _NUMBER_ID),
            _required(KIND, pa.int8(), _KIND_ID),
            *stored,
        ]
    )


def write_runs(
    keyed: KeyedTable, bucket: Bucket, chunks: Iterable[KeyRun], *, level: int, source: int
) -> list[WrittenData]:
    """Write one sorted run as files of about `target-file-size`, whose keys do not overlap.

    Args:
        keyed: The table.
        bucket: Where the files belong.
        chunks: The run in parts, one after the other; without a row there is no file.
        level: The level that the files are to be on.
        source: 0 for rows that are new, 1 for those that a compaction has merged.

    Raises:
        FormatError: A key is not above the one before it; what was written is taken back.
        UnsupportedError: A value does not fit the table.
    """
    options = keyed.options
    schema = key_file_schema(keyed.schema, thin=options.data_file_thin_mode)
    files = NewFiles(keyed.storage, keyed.schema, options, keyed.specs)
    total = bucket.files[0].entry.total_buckets if bucket.files else options.bucket
    written: list[WrittenData] = []
    try:
        for _, file in roll_files(
            ((None, part) for part in _parts(keyed, bucket, chunks, schema)),
            lambda: FileWriter(schema, None, keyed.encoding),
            target_bytes=options.target_file_size,
        ):
            data, rows = file.close()
            values = rows.select(keyed.schema.names)
            span = _span(keyed.schema, rows, level=level, source=source)
            written.append(
                files.put(bucket.place, bucket.folder, data, values, span, total_buckets=total)
            )
    except BaseException:
        files.remove(written)
        raise
    return written


def _parts(
    keyed: KeyedTable, bucket: Bucket, chunks: Iterable[KeyRun], schema: pa.Schema
) -> Iterator[pa.Table]:
    """The rows as the files hold them, not more than a row group at a time."""
    names = list(keyed.schema.key_columns)
    thin = keyed.options.data_file_thin_mode
    last: list[pa.ChunkedArray] = []
    for chunk in chunks:
        if not len(chunk):
            continue
        keys = chunk.rows.select(names).columns
        if last:
            first = [key.slice(0, 1) for key in keys]
            _check_rising(join_columns([last, first]), 2, bucket.folder)
        _check_rising(keys, len(chunk), bucket.folder)
        last = [key.slice(len(chunk) - 1) for key in keys]
        numbers, kinds = pa.array(chunk.numbers, pa.int64()), pa.array(chunk.kinds, pa.int8())
        columns = [*([] if thin else keys), numbers, kinds, *chunk.rows.columns]
        rows = pa.Table.from_arrays(columns, schema=schema)
        for start in range(0, len(rows), GROUP_ROWS):
            yield rows.slice(start, GROUP_ROWS)


def _check_rising(keys: Sequence[Column], count: int, folder: str) -> None:
    first = plain(keys[0])
    # What is less for Arrow is less for Paimon; NaN and -0.0 are not, and left to ranks.
    if pc.all(pc.less(first[:-1], first[1:]), skip_nulls=False).as_py():
        return
    wrong = np.flatnonzero(np.diff(rank_rows(keys, count)) <= 0)
    if len(wrong):
        raise FormatError(f"row {int(wrong[0]) + 1}: key is not above that before it", file=folder)


def _span(schema: TableSchema, rows: pa.Table, *, level: int, source: int) -> Span:
    """What the manifest says of the rows of a file."""
    names = schema.key_columns
    types = [schema.types[name] for name in names]
    keys = rows.select(names)
    ends = [
        pa.chunked_array([*key.slice(0, 1).chunks, *key.slice(len(key) - 1).chunks])
        for key in keys.columns
    ]
    least, most = pack_rows(ends, types)
    numbers, kinds = rows.column(NUMBER).to_numpy(), rows.column(KIND).to_numpy()
    return Span(
        min_sequence=int(numbers.min()),
        max_sequence=int(numbers.max()),
        min_key=least,
        max_key=most,
        key_stats=collect(keys, types, [FULL] * len(types)),
        level=level,
        delete_rows=int(np.count_nonzero(are_deletes(kinds))),
        source=source,
    )


def _required(name: str, kind: Any, number: int) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(number)})


_LEAST_LEVELS = 2  # level 0, and one for what was compacted


@dataclass(frozen=True, slots=True)
class Choice:
    """What a compaction takes."""

    files: tuple[PlacedFile, ...]
    """Every file of some of the lowest levels, all of level 0 among them."""
    level: int
    """Where they go: below all runs that are not taken."""


def count_levels(bucket: Bucket, num_levels: int) -> int:
    """The levels of a bucket: as many as its table has, or more if its files are on more.

    >>> count_levels(Bucket(b"", 0, "bucket-0/"), 6)
    6
    """
    highest = max((one.file.level for one in bucket.files), default=0)
    return max(num_levels, highest + 1, _LEAST_LEVELS)


def choose_runs(bucket: Bucket, num_levels: int) -> Choice | None:
    """What to take so that level 0 becomes empty; None if it is.

    Args:
        bucket: As it is.
        num_levels: Of its table.
    """
    taken = list(bucket.level_zero)
    if not taken:
        return None
    is_merging = False
    for level, run in _runs(bucket):
        # The level below it must be free; where runs are merged, one more for the next time.
        if not is_merging and level > 1:
            return Choice(tuple(taken), level - 1)
        if is_merging and level > _LEAST_LEVELS and _size(run) > _size(taken):
            return Choice(tuple(taken), level - 1)
        taken.extend(run)
        is_merging = True
    return Choice(tuple(taken), count_levels(bucket, num_levels) - 1)


def choose_all(bucket: Bucket, num_levels: int) -> Choice | None:
    """Everything, for the top level; None if it is there, and nothing of it is deleted."""
    top = count_levels(bucket, num_levels) - 1
    is_done = all(one.file.level == top and one.file.delete_rows == 0 for one in bucket.files)
    if is_done and not any(entry.ranges for entry in bucket.vectors):
        return None
    return Choice(bucket.files, top)


def _runs(bucket: Bucket) -> list[tuple[int, list[PlacedFile]]]:
    """The levels above 0 that are not empty, the newest first."""
    found: dict[int, list[PlacedFile]] = {}
    for one in bucket.sorted_files:
        found.setdefault(one.file.level, []).append(one)
    return sorted(found.items())


def _size(files: Iterable[PlacedFile]) -> int:
    return sum(one.file.size for one in files)
