"""`t.append(rows)` on a Paimon table: data files, then one commit that adds them all.

Also the schema of a new table: what could never work is refused before the table exists.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from alcid._arrays import IntArray
from alcid.errors import (
    AlcidError,
    ColumnError,
    ConflictError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.binary_row import hash_rows
from alcid.formats.buckets import fixed_bucket
from alcid.options import ColumnNames, IndexSpec, OptionValue, fold_name
from alcid.storage import Storage
from alcid.tables.key_order import sort_rows
from alcid.tables.paimon.data_files import check_lengths, fit_stored, table_paths
from alcid.tables.paimon.indexes import table_specs, wanted_specs
from alcid.tables.paimon.metadata.commit import Change, Committer, discard
from alcid.tables.paimon.metadata.manifest import BucketId, ManifestEntry
from alcid.tables.paimon.metadata.options import (
    TableOptions,
    check_new_options,
    require_rows_writable,
)
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import EMPTY, pack_rows
from alcid.tables.paimon.metadata.table_state import TableState
from alcid.tables.paimon.new_files import (
    NewFiles,
    Span,
    WrittenData,
    count_skipped,
    encoding_of,
    writing_options,
)
from alcid.tables.parquet_writer import GROUP_ROWS, Encoding, FileWriter, equal_runs, roll_files
from alcid.tables.reports import AppendReport
from alcid.tables.rows import ArrowRows, RowSource
from alcid.tables.schema import TargetColumns
from alcid.types import DataType

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable


def append_arrow(
    table: OpenPaimonTable,
    rows: pa.Table | pa.RecordBatch,
    options: Mapping[str, OptionValue] | None = None,
) -> AppendReport:
    """Append Arrow rows in this process; see `append_rows`."""
    return append_rows(table, ArrowRows(rows), options)


def append_rows(
    table: OpenPaimonTable, rows: RowSource, options: Mapping[str, OptionValue] | None = None
) -> AppendReport:
    """Append rows to a table, in one snapshot of kind APPEND; without rows there is none.

    Args:
        table: The table; it is refreshed before and after.
        rows: The rows. Columns are matched by name, narrower types are widened, missing columns are
            null.
        options: The indexes to build, see `alcid.options`; by default those that the options of
            the table name. `{}` for none.

    Raises:
        ColumnError: A column that the table does not have, or one that is missing and NOT NULL.
        UnsupportedError: A table with a primary key, an option that cannot be followed, a type or
            a value that does not fit the table.
        ConflictError: The schema has changed, or the number of buckets.
        StorageError: A file could not be written or read. If the rows are, or may be, appended
            nevertheless, it says so.
    """
    begin = time.monotonic()
    with table.engine.settings():
        table.refresh()
        committer = table.committer()
        job = _plan(table, rows.schema, options)
        written: list[WrittenData] = []
        try:
            written.extend(rows.write(job))
        except BaseException:
            discard(job.storage, (path for file in written for path in file.paths))
            raise
        state = table.snapshot.state
        snapshot = _commit(committer, job, written, state) if written else None
        _refresh(table, snapshot)
    return AppendReport(
        len(written),
        sum(file.entry.file.rows for file in written),
        sum(file.entry.file.size for file in written),
        sum(file.index_bytes for file in written),
        0,
        time.monotonic() - begin,
        count_skipped(written),
        snapshot,
    )


def _plan(
    table: OpenPaimonTable, input_schema: pa.Schema, options: Mapping[str, OptionValue] | None
) -> DataJob:
    files = table.snapshot
    require_rows_writable(files.schema, files.options, "append")
    specs = wanted_specs(files.schema, options)
    columns = fit_stored(input_schema, files.schema)
    return DataJob(
        table.storage,
        files.schema,
        writing_options(files.options, files.state.entries, files.schemas),
        columns,
        specs,
        encoding_of(files.schema, files.options, "append"),
    )


def _commit(
    committer: Committer, job: DataJob, written: Sequence[WrittenData], state: TableState
) -> int | None:
    """Commit the files; the id of the snapshot."""
    entries = [file.entry for file in written]
    try:
        snapshot = committer.commit(
            lambda state: Change(
                kind="APPEND", added=continue_sequence(entries, state, job.options)
            ),
            cached=state,
        )
    except (ConflictError, UnsupportedError):  # after another error the snapshot may exist
        discard(job.storage, (path for file in written for path in file.paths))
        raise
    return None if snapshot is None else snapshot.id


def _refresh(table: OpenPaimonTable, snapshot: int | None) -> None:
    """Refresh the table; if that fails, say that the rows are appended nevertheless.

    Whoever took the error for one of the append would append them once more.
    """
    try:
        table.refresh()
    except AlcidError as error:
        if snapshot is None:
            raise
        problem = f"rows are appended, in snapshot {snapshot}, but cannot be read yet: {error}"
        raise StorageError(problem, file=table.location) from error


def continue_sequence(
    entries: Sequence[ManifestEntry], state: TableState, options: TableOptions
) -> Sequence[ManifestEntry]:
    """Entries with sequence numbers, which continue those of a bucket; without buckets they stay.

    Raises:
        ConflictError: A partition has another number of buckets.
    """
    if options.bucket < 0:
        return entries
    following: dict[BucketId, int] = {}
    touched = {entry.partition for entry in entries}
    for entry in state.entries:
        if entry.partition in touched and entry.total_buckets != options.bucket:
            raise ConflictError(
                f"bucket={options.bucket}: {entry.file.name} is one of {entry.total_buckets} "
                "buckets; rewrite its partition first"
            )
        bucket = entry.bucket_id
        following[bucket] = max(following.get(bucket, 0), entry.file.max_sequence + 1)
    numbered = []
    for entry in entries:
        first = following.get(entry.bucket_id, 0)
        end = following[entry.bucket_id] = first + entry.file.rows
        file = replace(entry.file, min_sequence=first, max_sequence=end - 1)
        numbered.append(entry.with_file(file))
    return numbered


@dataclass(frozen=True, slots=True)
class DataJob:
    """The work of every writing task; it can be pickled."""

    storage: Storage
    schema: TableSchema
    options: TableOptions
    columns: TargetColumns
    """All columns of the table; partition columns are in the files, too."""
    specs: tuple[IndexSpec, ...]
    encoding: Encoding

    @property
    def cluster_by(self) -> Sequence[str]:
        """The partition columns."""
        return self.schema.partition_keys

    @property
    def has_buckets(self) -> bool:
        """Whether the number of buckets is fixed."""
        return self.options.bucket > 0

    def write(self, batches: Iterable[pa.RecordBatch], _task: int = 0) -> Iterator[WrittenData]:
        """Write rows, which are best clustered by partition and bucket.

        Args:
            batches: The input columns, as `TargetColumns.rows` takes them; more are ignored.

        Raises:
            UnsupportedError: A value does not fit the table.
        """
        return _Writer(self).run(
            self.columns.rows(batch.columns) for batch in batches if batch.num_rows
        )

    def write_table(self, source: pa.Table) -> Iterator[WrittenData]:
        """Write all rows of a table, in any order; within a bucket they keep theirs."""
        columns = [column for column in self.columns.sources if column is not None]
        rows = self.columns.rows([source.column(column) for column in columns])
        return _Writer(self).run(self._clustered(rows))

    def _clustered(self, rows: pa.Table) -> Iterator[pa.Table]:
        keys = self._keys(rows)
        order = sort_rows(keys, len(rows))[0] if keys else None
        for start in range(0, len(rows), GROUP_ROWS):
            if order is None:
                yield rows.slice(start, GROUP_ROWS)
            else:
                yield rows.take(pa.array(order[start : start + GROUP_ROWS]))

    def _keys(self, rows: pa.Table) -> list[pa.ChunkedArray | pa.Array]:
        """The partition columns and the bucket of each row: what separates files."""
        keys = [rows.column(name) for name in self.schema.partition_keys]
        buckets = self.buckets(rows)
        return keys if buckets is None else [*keys, pa.array(buckets)]

    def buckets(self, rows: pa.Table) -> IntArray | None:
        """The bucket of each row; None in a table without buckets.

        Args:
            rows: Rows as `TargetColumns.rows` returns them.
        """
        options = self.options
        if options.bucket < 0:
            return None
        columns = [rows.column(name) for name in options.bucket_key]
        hashes = hash_rows(columns, [self.schema.types[name] for name in options.bucket_key])
        return fixed_bucket(hashes, options.bucket)


class _Writer:
    """Writes the files of one task."""

    def __init__(self, job: DataJob) -> None:
        self._job = job
        self._paths = table_paths(job.schema, job.options)
        self._files = NewFiles(job.storage, job.schema, job.options, job.specs)

    def run(self, tables: Iterable[pa.Table]) -> Iterator[WrittenData]:
        """Write rows in the columns of the files."""
        job = self._job
        for bucket, file in roll_files(
            (part for rows in tables for part in self._parts(rows)),
            lambda: FileWriter(job.columns.schema, None, job.encoding),
            target_bytes=job.options.target_file_size,
        ):
            data, rows = file.close()
            yield self._files.put(
                bucket,
                self._paths.bucket(*bucket),
                data,
                rows,
                Span(min_sequence=0, max_sequence=len(rows) - 1),
                total_buckets=job.options.bucket,
            )

    def _parts(self, rows: pa.Table) -> Iterator[tuple[BucketId, pa.Table]]:
        job = self._job
        check_lengths(rows, job.schema)
        keys = [pa.chunked_array(key).combine_chunks() for key in job._keys(rows)]
        count = len(job.schema.partition_keys)
        for start, stop in equal_runs(keys, len(rows)):
            values = [key.slice(start, 1) for key in keys[:count]]
            partition = pack_rows(values, job.schema.partition_types)[0] if values else EMPTY
            bucket = keys[count][start].as_py() if len(keys) > count else 0
            yield (partition, bucket), rows.slice(start, stop - start)


_OWN_NAMES = ("_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "_ROW_ID", "rowkind")
_KEY_PREFIX = "_KEY_"


def new_schema(
    columns: Sequence[tuple[str, DataType, bool]],
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    options: Mapping[str, str],
) -> TableSchema:
    """The first schema of a table.

    Args:
        columns: Names, types, and whether null is allowed.
        primary_key: The columns of the primary key.
        partition_by: The partition columns.
        options: Paimon's table options.

    Raises:
        OptionError: No such option, or an invalid value.
        ColumnError: A key or an index of a column that does not exist, or an invalid name.
        UnsupportedError: A type or an option that is not supported.
    """
    check_new_options(options)
    parsed = TableOptions.parse(options, has_primary_key=bool(primary_key))
    if parsed.file_format == "avro":
        raise UnsupportedError("file.format=avro: not written, expected parquet or orc")
    _check_names([name for name, _, _ in columns])
    for what, names in (("primary_key", primary_key), ("partition_by", partition_by)):
        if len(set(names)) < len(names):
            raise ColumnError(f"{what}: a column twice: {', '.join(names)}")
    schema = TableSchema.of(
        [(name, data_type) for name, data_type, _ in columns],
        primary_key,
        partition_by,
        options,
        not_null=[name for name, _, nullable in columns if not nullable],
        time_millis=int(time.time() * 1000),
    )
    if primary_key and not schema.key_columns:
        raise ColumnError("primary_key: all of it stands in the paths, which tell no rows apart")
    _check_buckets(schema, parsed)
    if primary_key:
        _check_fields(schema, parsed)
    table_paths(schema, parsed)  # raises if a column cannot be one of partitions
    specs, problems = table_specs(schema)
    for problem in problems:
        raise OptionError(problem)
    column_names = ColumnNames(schema.types)
    for spec in specs:
        spec.resolve(schema.types, column_names)
    return schema


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise ColumnError("a table without columns")
    for name in names:
        if not name or name in _OWN_NAMES or name.startswith(_KEY_PREFIX):
            raise ColumnError(f"column {name!r}: is a name that Paimon keeps for itself")
    folded = Counter(map(fold_name, names))
    same = [name for name in names if folded[fold_name(name)] > 1]
    if same:
        raise ColumnError(f"columns {', '.join(same)}: names that are the same")


def _check_fields(schema: TableSchema, options: TableOptions) -> None:
    """Check that the columns exist that options for upserts name."""
    if options.bucket < 0:
        options.dynamic_buckets()
    kinds = [] if options.rowkind_field is None else [options.rowkind_field]
    for key, names in (("sequence.field", options.sequence_field), ("rowkind.field", kinds)):
        for name in names:
            if name not in schema.names:
                raise ColumnError(f"{key}: no column {name}, found {', '.join(schema.names)}")


def _check_buckets(schema: TableSchema, options: TableOptions) -> None:
    keys = options.bucket_key
    if options.bucket > 0 and not keys and not schema.primary_keys:
        raise OptionError(f"bucket={options.bucket}: needs the option bucket-key, or a primary key")
    for name in keys:
        if name not in schema.names:
            raise ColumnError(f"bucket-key: no column {name}, found {', '.join(schema.names)}")
        if name in schema.partition_keys:
            raise OptionError(
                f"bucket-key={name}: stands in the paths, so that no bucket depends on it"
            )
        if schema.primary_keys and name not in schema.primary_keys:
            raise OptionError(
                f"bucket-key={name}: is not in the primary key ({', '.join(schema.primary_keys)}): "
                "rows of the same key would come into several buckets"
            )
    if schema.primary_keys and options.bucket > 0:
        for name in schema.partition_keys:
            if name not in schema.primary_keys:
                raise ColumnError(
                    f"primary_key: does not contain the partition column {name}, as it must where "
                    "the number of buckets is fixed"
                )
