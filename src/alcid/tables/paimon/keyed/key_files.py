"""The data files of a table with a primary key: each one sorted run, with every key once.

    _KEY_id  _SEQUENCE_NUMBER  _VALUE_KIND  id  name ...
       1            7               0        1  "fig"
       2            9               0        2  "pear"

The key columns are stored twice, in front and among those of the table, unless
`data-file.thin-mode` omits them in front. Paimon's Java opens a bucket only if on each level above
0 keys ascend from file to file, so `write_sorted_run` checks this before it writes anything.

`KeyReader` reads files of older schemas, too: columns are matched by field id, and values are
converted to the types that the table has now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int8Array, Int64Array, plain
from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.casts import column_type
from alcid.tables.key_order import Column, join_columns, rank_rows
from alcid.tables.paimon.data_files import (
    DataScan,
    PlacedFile,
    open_data,
    read_present,
    stored_schema,
)
from alcid.tables.paimon.keyed.bucket import Bucket, KeyedTable
from alcid.tables.paimon.merge_on_read import (
    KIND,
    NUMBER,
    KeyRows,
    are_deletes,
    cast_values,
    convert_key,
    convert_values,
    key_name,
    read_key_rows,
    require_column,
)
from alcid.tables.paimon.metadata.commit import discard
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import FULL, collect, pack_rows
from alcid.tables.paimon.new_files import NewFiles, Span, WrittenData
from alcid.tables.parquet_writer import GROUP_ROWS, FileWriter, roll_files

_STEP_BYTES = 1 << 28  # of rows that are taken at a time
_ROW_BYTES = 17  # of a row besides its key: sequence number, kind, and the rank of the key


def take_rows(rows: pa.Table, positions: Int64Array) -> pa.Table:
    """The rows of some positions, in their order, of a table larger than one Arrow array may be.

    `Table.take` concatenates all chunks of a column first, and fails where they have more than
    2 GiB of text, however few rows are taken. Here it is done in steps, and the result has a chunk
    for each.

    >>> rows = pa.concat_tables([pa.table({"a": [10, 11]}), pa.table({"a": [12]})])
    >>> take_rows(rows, np.array([2, 0, 2])).column("a").to_pylist()
    [12, 10, 12]
    """
    batches = rows.to_batches()
    if len(batches) <= 1:
        return rows.take(pa.array(positions))
    step = max(_STEP_BYTES * len(rows) // max(rows.nbytes, 1), 1)
    steps = [
        _take_step(batches, positions[start : start + step])
        for start in range(0, len(positions), step)
    ]
    return pa.concat_tables([rows.slice(0, 0), *steps])


def _take_step(batches: list[pa.RecordBatch], positions: Int64Array) -> pa.Table:
    """Take the rows batch after batch, then restore their order."""
    ends = np.cumsum([batch.num_rows for batch in batches])
    order = np.argsort(positions, kind="stable")
    parts = np.split(order, np.searchsorted(positions[order], ends[:-1]))
    taken = [
        batch.take(pa.array(positions[part] - (end - batch.num_rows)))
        for batch, end, part in zip(batches, ends, parts, strict=True)
        if len(part)
    ]
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return pa.Table.from_batches(taken).combine_chunks().take(pa.array(inverse))


_KEY_ID_OFFSET = (1 << 30) - 1
_NUMBER_ID = (1 << 31) - 2
_KIND_ID = (1 << 31) - 3


@dataclass(frozen=True, slots=True, eq=False)
class SortedRun:
    """Rows of a bucket in the order of their keys, each key once; or a part of such a run."""

    rows: pa.Table
    """All columns of the table, in the types of `stored_schema`."""
    numbers: Int64Array
    """The sequence numbers."""
    kinds: Int8Array
    """0 for +I, 1 for -U, 2 for +U, 3 for -D."""

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Int64Array) -> SortedRun:
        """The rows of some positions, in their order."""
        return SortedRun(take_rows(self.rows, rows), self.numbers[rows], self.kinds[rows])

    def filter(self, mask: BoolArray) -> SortedRun:
        """The rows where a mask is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))


def concat_runs(parts: Iterable[SortedRun]) -> SortedRun:
    """The concatenation of parts, at least one."""
    parts = list(parts)
    return SortedRun(
        pa.concat_tables([part.rows for part in parts]),
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.kinds for part in parts]),
    )


def key_file_schema(schema: TableSchema, *, thin: bool) -> pa.Schema:
    """The columns of a data file.

    Args:
        schema: The schema of the table.
        thin: Omit the key columns in front.

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
                _required(key_name(key.name), stored.field(key.name).type, key.id + _KEY_ID_OFFSET)
                for key in keys
            ),
            _required(NUMBER, pa.int64(), _NUMBER_ID),
            _required(KIND, pa.int8(), _KIND_ID),
            *stored,
        ]
    )


def write_sorted_run(
    keyed: KeyedTable, bucket: Bucket, chunks: Iterable[SortedRun], *, level: int, source: int
) -> list[WrittenData]:
    """Write one sorted run as files of about `target-file-size`, whose keys do not overlap.

    Args:
        keyed: The table.
        bucket: The bucket of the files.
        chunks: The run in consecutive parts; without rows no file is written.
        level: The level of the files.
        source: The file source: 0 for new rows, 1 for those of a compaction.

    Raises:
        FormatError: A key is not above the one before it; what was written is removed.
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
                files.put(bucket.id, bucket.folder, data, values, span, total_buckets=total)
            )
    except BaseException:
        discard(keyed.storage, (path for file in written for path in file.paths))
        raise
    return written


def _parts(
    keyed: KeyedTable, bucket: Bucket, chunks: Iterable[SortedRun], schema: pa.Schema
) -> Iterator[pa.Table]:
    """The rows in the columns of the files, at most a row group at a time."""
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
    first_key = plain(keys[0])
    # Less for Arrow is less for Paimon. NaN and -0.0 are never less, and left to the ranks.
    if pc.all(pc.less(first_key[:-1], first_key[1:]), skip_nulls=False).as_py():
        return
    wrong = np.flatnonzero(np.diff(rank_rows(keys, count)) <= 0)
    if len(wrong):
        raise FormatError(f"row {int(wrong[0]) + 1}: key is not above that before it", file=folder)


def _span(schema: TableSchema, rows: pa.Table, *, level: int, source: int) -> Span:
    """The keys, sequence numbers and deletes of a file, for its manifest entry."""
    names = schema.key_columns
    types = [schema.types[name] for name in names]
    keys = rows.select(names)
    ends = [
        pa.chunked_array([*key.slice(0, 1).chunks, *key.slice(len(key) - 1).chunks])
        for key in keys.columns
    ]
    min_key, max_key = pack_rows(ends, types)
    numbers, kinds = rows.column(NUMBER).to_numpy(), rows.column(KIND).to_numpy()
    return Span(
        min_sequence=int(numbers.min()),
        max_sequence=int(numbers.max()),
        min_key=min_key,
        max_key=max_key,
        key_stats=collect(keys, types, [FULL] * len(types)),
        level=level,
        delete_rows=int(np.count_nonzero(are_deletes(kinds))),
        source=source,
    )


def _required(name: str, kind: Any, number: int) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(number)})


@dataclass(frozen=True, slots=True)
class KeySpan:
    """Consecutive row groups of a file, whose keys are read at a time."""

    first: int
    """The number of the first row."""
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KeyPart:
    """Keys of consecutive rows of a file: a part of a stream of `key_ranges`."""

    rows: KeyRows
    first: int

    @property
    def keys(self) -> Sequence[Column]:
        """The key columns."""
        return self.rows.keys

    @property
    def name(self) -> str | None:
        """The path of the file."""
        return self.rows.name

    def __len__(self) -> int:
        return len(self.rows)

    def slice(self, start: int, stop: int) -> KeyPart:
        """Some of the rows, which are not copied."""
        rows, count = self.rows, stop - start
        deleted = rows.deleted
        if deleted is not None:
            deleted = DeletionVector(np.flatnonzero(deleted.contains(np.arange(start, stop))))
        part = replace(
            rows,
            keys=[column.slice(start, count) for column in rows.keys],
            sequence_numbers=rows.sequence_numbers[start:stop],
            kinds=rows.kinds[start:stop],
            sequence=[column.slice(start, count) for column in rows.sequence],
            deleted=deleted,
        )
        return KeyPart(part, self.first + start)


class KeyReader:
    """Reads files of a table, the footer of each once."""

    def __init__(self, keyed: KeyedTable) -> None:
        """Take the table."""
        self._keyed, self._stored = keyed, stored_schema(keyed.schema)
        self._scans: dict[str, DataScan] = {}

    def keys(self, placed: PlacedFile, deleted: DeletionVector | None = None) -> KeyRows:
        """Keys, sequence numbers and kinds of a file; the merge ignores rows that are `deleted`."""
        return self._key_rows(placed, deleted, None)

    def spans(self, placed: PlacedFile, most_bytes: int) -> list[KeySpan]:
        """The row groups of a file in spans, whose keys take about so much memory, or one group."""
        file = placed.file
        width = max(len(file.min_key), len(file.max_key)) + _ROW_BYTES
        most, spans, rows, first = most_bytes // width, list[KeySpan](), 0, 0
        for group, count in enumerate(self._open(placed).group_rows):
            if spans and rows + count <= most:
                spans[-1] = KeySpan(spans[-1].first, (*spans[-1].groups, group))
                rows += count
            else:
                spans.append(KeySpan(first, (group,)))
                rows = count
            first += count
        return spans

    def read_span(
        self, placed: PlacedFile, deleted: DeletionVector | None, span: KeySpan
    ) -> KeyPart:
        """The keys of a span; `deleted` are rows of the file."""
        group_rows = self._open(placed).group_rows
        if len(span.groups) == len(group_rows):
            return KeyPart(self.keys(placed, deleted), 0)
        count = sum(group_rows[group] for group in span.groups)
        if deleted is not None:
            rows = np.arange(span.first, span.first + count)
            deleted = DeletionVector(np.flatnonzero(deleted.contains(rows)))
        return KeyPart(self._key_rows(placed, deleted, span.groups), span.first)

    def key_parts(
        self, placed: PlacedFile, deleted: DeletionVector | None, most_bytes: int
    ) -> Iterator[tuple[KeyPart, bool]]:
        """The keys of a file in parts of about so many bytes, and whether each is the last one."""
        spans = self.spans(placed, most_bytes)
        for span in spans:
            yield self.read_span(placed, deleted, span), span is spans[-1]

    def _key_rows(
        self, placed: PlacedFile, deleted: DeletionVector | None, groups: Sequence[int] | None
    ) -> KeyRows:
        keyed, scan = self._keyed, self._open(placed)
        return read_key_rows(
            placed,
            deleted,
            schema=keyed.schema,
            schemas=keyed.schemas,
            options=keyed.options,
            read=lambda columns: self._read(scan, groups, columns),
        )

    def keys_of(self, run: SortedRun, *, level: int = 0) -> KeyRows:
        """The same of rows that are not in a file yet, in the same types."""
        schema, options = self._keyed.schema, self._keyed.options
        keys, order = (
            [
                cast_values(
                    run.rows.column(name), column_type(schema.types[name]), f"column {name}"
                )
                for name in names
            ]
            for names in (schema.key_columns, options.sequence_field)
        )
        return KeyRows(keys, run.numbers, run.kinds, level, order)

    def runs(self, placed: PlacedFile) -> Iterator[SortedRun]:
        """All rows of a file in the columns of the table, a row group at a time."""
        for group, rows in enumerate(self._open(placed).group_rows):
            if rows:
                yield self._group(placed, group)

    def take(self, placed: PlacedFile, positions: Int64Array) -> SortedRun:
        """The rows of ascending positions; row groups without one are not read.

        Raises:
            FormatError: The file does not have so many rows.
        """
        if len(positions) and not 0 <= positions[0] <= positions[-1] < placed.file.rows:
            raise FormatError(
                "rows",
                file=placed.path,
                found=f"{positions[0]} to {positions[-1]}",
                expected=f"0 to {placed.file.rows - 1}",
            )
        parts = [SortedRun(self._stored.empty_table(), np.empty(0, np.int64), np.empty(0, np.int8))]
        first = 0
        for group, rows in enumerate(self._open(placed).group_rows):
            start, stop = np.searchsorted(positions, [first, first + rows])
            if start < stop:
                parts.append(self._group(placed, group).take(positions[start:stop] - first))
            first += rows
        return concat_runs(parts)

    def _open(self, placed: PlacedFile) -> DataScan:
        if placed.path not in self._scans:
            scan = open_data(self._keyed.storage, placed, self._keyed.options)
            rows, expected = sum(scan.group_rows), placed.file.rows
            if rows != expected:
                raise FormatError("rows", file=placed.path, found=rows, expected=expected)
            self._scans[placed.path] = scan
        return self._scans[placed.path]

    def _read(
        self, scan: DataScan, groups: Sequence[int] | None, columns: Sequence[str]
    ) -> pa.Table:
        """Columns of the file, as far as it has them."""
        return read_present(scan, columns, self._keyed.storage, groups)

    def _group(self, placed: PlacedFile, group: int) -> SortedRun:
        scan, own = self._open(placed), self._keyed.schemas[placed.file.schema_id].by_id
        fields = self._keyed.schema.fields
        names = [own[field.id].name for field in fields if field.id in own]
        rows = self._read(scan, [group], [NUMBER, KIND, *names])
        keys = self._keyed.schema.key_columns
        columns = [
            (convert_key if field.name in keys else convert_values)(
                require_column(rows, own[field.id].name, placed),
                own[field.id],
                field,
                placed,
                stored.type,
            )
            if field.id in own
            else pa.nulls(rows.num_rows, stored.type)
            for field, stored in zip(fields, self._stored, strict=True)
        ]
        return SortedRun(
            pa.Table.from_arrays(columns, schema=self._stored),
            _integers(rows, NUMBER, pa.int64(), placed),
            _integers(rows, KIND, pa.int8(), placed),
        )


def _integers(rows: pa.Table, name: str, arrow_type: Any, placed: PlacedFile) -> npt.NDArray[Any]:
    """Sequence numbers or kinds, which every row must have."""
    values = cast_values(
        require_column(rows, name, placed), arrow_type, f"{placed.path}: column {name}"
    )
    if values.null_count:
        raise FormatError(f"row without {name}", file=placed.path)
    integers: npt.NDArray[Any] = values.to_numpy()
    return integers
