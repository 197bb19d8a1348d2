"""`t.append(rows)` on a Paimon table: data files, then one commit that names them all.

The schema of a new Paimon table: what could never work is refused before there is a table.
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

__all__ = ["DataJob", "append_arrow", "append_rows", "continue_sequence", "new_schema"]


def append_arrow(
    table: OpenPaimonTable,
    rows: pa.Table | pa.RecordBatch,
    options: Mapping[str, OptionValue] | None = None,
) -> AppendReport:
    """Append rows that are in memory, without Spark; see `append_rows`."""
    return append_rows(table, ArrowRows(rows), options)


def append_rows(
    table: OpenPaimonTable, rows: RowSource, options: Mapping[str, OptionValue] | None = None
) -> AppendReport:
    """Append rows to a table, in one snapshot of kind APPEND; without rows there is none.

    Args:
        table: The table; it is read anew before and after.
        rows: Their columns go by name, narrower types are widened, missing ones are null.
        options: The indexes to build, see `alcid.options`; by default those that the options of
            the table name. `{}` for none.

    Raises:
        ColumnError: A column that the table does not have, or one that is missing and NOT NULL.
        UnsupportedError: A table with a primary key, an option that cannot be followed, a type or
            a value that does not go into the table.
        ConflictError: The schema has changed, or the number of buckets.
        StorageError: A file could not be written or read. If the rows are appended nevertheless, or
            may be, it says so.
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
        _see(table, snapshot)
    return AppendReport(
        len(written),
        sum(one.entry.file.rows for one in written),
        sum(one.entry.file.size for one in written),
        sum(one.index_bytes for one in written),
        0,
        time.monotonic() - begin,
        count_skipped(written),
        snapshot,
    )


def _plan(
    table: OpenPaimonTable, given: pa.Schema, options: Mapping[str, OptionValue] | None
) -> DataJob:
    files = table.snapshot
    require_rows_writable(files.schema, files.options, "append")
    specs = wanted_specs(files.schema, options)
    columns = fit_stored(given, files.schema)
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
    """Let the files count; the number of the snapshot."""
    entries = [one.entry for one in written]
    try:
        snapshot = committer.commit(
            lambda state: Change(
                kind="APPEND", added=continue_sequence(entries, state, job.options)
            ),
            cached=state,
        )
    except (ConflictError, UnsupportedError):  # after another error the snapshot may be there
        discard(job.storage, (path for file in written for path in file.paths))
        raise
    return None if snapshot is None else snapshot.id


def _see(table: OpenPaimonTable, snapshot: int | None) -> None:
    """Read the table with the rows; if it cannot be read, say that they are there nevertheless.

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
    """Files with their sequence numbers: in a bucket they go on, without buckets begin anew.

    Raises:
        ConflictError: A partition has another number of buckets.
    """
    if options.bucket < 0:
        return entries
    following: dict[tuple[bytes, int], int] = {}
    touched = {entry.partition for entry in entries}
    for entry in state.entries:
        if entry.partition in touched and entry.total_buckets != options.bucket:
            raise ConflictError(
                f"bucket={options.bucket}: {entry.file.name} is one of {entry.total_buckets} "
                "buckets; rewrite its partition first"
            )
        place = entry.partition, entry.bucket
        following[place] = max(following.get(place, 0), entry.file.max_sequence + 1)
    numbered = []
    for entry in entries:
        place = entry.partition, entry.bucket
        first = following.get(place, 0)
        following[place] = first + entry.file.rows
        file = replace(entry.file, min_sequence=first, max_sequence=following[place] - 1)
        numbered.append(entry.with_file(file))
    return numbered


@dataclass(frozen=True, slots=True)
class DataJob:
    """What every worker does with its rows; it pickles."""

    storage: Storage
    schema: TableSchema
    options: TableOptions
    columns: TargetColumns
    """All columns of the table: those of its partitions stand in the files too."""
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
        """Write rows; those of a partition and bucket are best given one after the other.

        Args:
            batches: The given columns, as `TargetColumns.rows` takes them; others behind them are
                passed over.

        Raises:
            UnsupportedError: A value does not fit the table.
        """
        return _Writer(self).run(
            self.columns.rows(batch.columns) for batch in batches if batch.num_rows
        )

    def write_table(self, given: pa.Table) -> Iterator[WrittenData]:
        """Write all rows of a table, whatever their order; those of a bucket stay in theirs."""
        sources = [place for place in self.columns.sources if place is not None]
        rows = self.columns.rows([given.column(place) for place in sources])
        return _Writer(self).run(self._arranged(rows))

    def _arranged(self, rows: pa.Table) -> Iterator[pa.Table]:
        keys = self._keys(rows)
        order = sort_rows(keys, len(rows))[0] if keys else None
        for start in range(0, len(rows), GROUP_ROWS):
            if order is None:
                yield rows.slice(start, GROUP_ROWS)
            else:
                yield rows.take(pa.array(order[start : start + GROUP_ROWS]))

    def _keys(self, rows: pa.Table) -> list[pa.ChunkedArray | pa.Array]:
        """What tells rows of different files apart: their partition and bucket."""
        keys = [rows.column(name) for name in self.schema.partition_keys]
        buckets = self.buckets(rows)
        return keys if buckets is None else [*keys, pa.array(buckets)]

    def buckets(self, rows: pa.Table) -> IntArray | None:
        """The bucket of each row; None in a table without buckets.

        Args:
            rows: As `TargetColumns.rows` gives them.
        """
        options = self.options
        if options.bucket < 0:
            return None
        columns = [rows.column(name) for name in options.bucket_key]
        hashes = hash_rows(columns, [self.schema.types[name] for name in options.bucket_key])
        return fixed_bucket(hashes, options.bucket)


class _Writer:
    """One worker, at one try."""

    def __init__(self, job: DataJob) -> None:
        self._job = job
        self._paths = table_paths(job.schema, job.options)
        self._files = NewFiles(job.storage, job.schema, job.options, job.specs)

    def run(self, tables: Iterable[pa.Table]) -> Iterator[WrittenData]:
        """Write rows that are as files hold them."""
        job = self._job
        for place, file in roll_files(
            (part for rows in tables for part in self._parts(rows)),
            lambda: FileWriter(job.columns.schema, None, job.encoding),
            target_bytes=job.options.target_file_size,
        ):
            data, rows = file.close()
            yield self._files.put(
                place,
                self._paths.bucket(*place),
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
        primary_key: The columns that tell rows apart.
        partition_by: The columns whose values stand in the paths.
        options: Paimon's table options.

    Raises:
        OptionError: No such option, or a value that it cannot have.
        ColumnError: A key or an index of what is no column, or a name that cannot be.
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
    made = TableSchema.of(
        [(name, data_type) for name, data_type, _ in columns],
        primary_key,
        partition_by,
        options,
        not_null=[name for name, _, nullable in columns if not nullable],
        time_millis=int(time.time() * 1000),
    )
    if primary_key and not made.key_columns:
        raise ColumnError("primary_key: all of it stands in the paths, which tell no rows apart")
    _check_buckets(made, parsed)
    if primary_key:
        _check_fields(made, parsed)
    table_paths(made, parsed)  # raises if a column cannot stand in paths
    specs, problems = table_specs(made)
    for problem in problems:
        raise OptionError(problem)
    column_names = ColumnNames(made.types)
    for spec in specs:
        spec.resolve(made.types, column_names)
    return made


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
    """See that upserts find the columns that options name."""
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
