"""The data files of a table with a primary key: one sorted run of rows, each key once.

    _KEY_id  _SEQUENCE_NUMBER  _VALUE_KIND  id  name ...
       1            7               0        1  "fig"
       2            9               0        2  "pear"

The columns of the key stand twice, in front and among those of the table, unless
`data-file.thin-mode` leaves them out in front. Java's writers open a bucket only if the files of
each level above 0 have keys that rise from file to file, so this is checked before anything is
written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import FormatError
from alcid.formats.arrays import plain
from alcid.paimon_metadata.row_bytes import pack_rows
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.statistics import FULL, collect
from alcid.tables.paimon.key_order import Column, join_columns, rank_rows
from alcid.tables.paimon.keyed.bucket import Bucket
from alcid.tables.paimon.keyed.changes import KeyedTable
from alcid.tables.paimon.keyed.row_kinds import are_deletes
from alcid.tables.paimon.new_files import NewFiles, Span, WrittenData
from alcid.tables.paimon.stored_types import stored_schema
from alcid.tables.rolling import roll_files
from alcid.tables.take_rows import take_rows
from alcid.tables.writing import GROUP_ROWS, FileWriter

__all__ = ["KIND", "NUMBER", "KeyRun", "join_runs", "key_file_schema", "key_name", "write_runs"]

NUMBER, KIND = "_SEQUENCE_NUMBER", "_VALUE_KIND"
"""Columns of every file: how new a row is, and what it does: 0 +I, 1 -U, 2 +U, 3 -D."""

_KEY_ID_OFFSET = (1 << 30) - 1
_NUMBER_ID = (1 << 31) - 2
_KIND_ID = (1 << 31) - 3


def key_name(column: str) -> str:
    """What a column of the key is called in front of a file.

    >>> key_name("id")
    '_KEY_id'
    """
    return f"_KEY_{column}"


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
