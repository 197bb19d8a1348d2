"""`t.upsert(rows)`: rows take the place of those of their key, or delete them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from alcid.bundle import Kind
from alcid.errors import ColumnError, UnsupportedError
from alcid.formats.buckets import BucketOptions, Routing
from alcid.options import OptionValue, match_column
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_options import TableOptions
from alcid.tables.build_report import SkippedCounter
from alcid.tables.paimon.asked_indexes import wanted_specs
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.keyed.applying import Applied, Changing, apply_changes
from alcid.tables.paimon.keyed.bucket import buckets_of
from alcid.tables.paimon.keyed.changes import BucketChange, KeyedTable
from alcid.tables.paimon.keyed.committing import CommitAs
from alcid.tables.paimon.keyed.known_buckets import KnownBuckets
from alcid.tables.paimon.keyed.row_kinds import parse_kinds
from alcid.tables.paimon.keyed.upsert_job import UpsertJob
from alcid.tables.paimon.keyed.upsert_report import UpsertReport
from alcid.tables.paimon.stored_types import fit_stored
from alcid.tables.paimon.writable import (
    WriteOperation,
    encoding_of,
    require_rows_writable,
    writing_options,
)
from alcid.tables.target_columns import TargetColumns

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["UpsertPlan", "compacts", "keyed_table", "upsert", "upsert_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertPlan:
    """How rows are to be upserted."""

    row_kind: str | None = None
    """The column that says what a row does; by default that of the option `rowkind.field`."""
    write_only: bool = False
    """Leave the rows on level 0, for another job to compact."""
    options: Mapping[str, OptionValue] | None = None
    """The indexes to build; by default those of the table."""
    commit: CommitAs | None = None
    """In whose name; by default in a new one."""


_DEFAULT = UpsertPlan()


def upsert(table: PaimonTable, rows: Any, plan: UpsertPlan = _DEFAULT) -> UpsertReport:
    """Upsert an Arrow table or record batch in this process, or a DataFrame; see `upsert_rows`."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return _upsert_arrow(table, rows, plan)
    if not hasattr(rows, "sparkSession"):
        raise UnsupportedError(
            f"rows: found {type(rows).__name__}, expected a Spark DataFrame or an Arrow table"
        )
    return table.engine.upsert(table, rows, plan)


def _upsert_arrow(
    table: PaimonTable, rows: pa.Table | pa.RecordBatch, plan: UpsertPlan
) -> UpsertReport:
    given = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows

    def write(job: UpsertJob) -> Iterator[BucketChange]:
        if not given.num_rows:
            return
        places = [place for place in job.columns.sources if place is not None]
        values = job.columns.rows([given.column(place) for place in places])
        kinds = np.zeros(len(values), np.int8)
        if job.kind_column is not None:
            place, name = job.kind_column
            kinds = parse_kinds(given.column(place), column=name)
        yield from job.write(job.parts(values, kinds, job.route(values)), os.cpu_count() or 1)

    return upsert_rows(table, given.schema, plan, write)


def upsert_rows(
    table: PaimonTable,
    given: pa.Schema,
    plan: UpsertPlan,
    write: Callable[[UpsertJob], Iterable[BucketChange]],
    *,
    parallelism: int = 1,
) -> UpsertReport:
    """Upsert rows: each takes the place of that of its key, or deletes it.

    Args:
        table: The table; it is read anew, which nobody else may do meanwhile.
        given: The columns of the rows. They go by name, narrower types are widened, missing ones
            are null.
        plan: How.
        write: Writes the rows of all buckets, and tells of each. It is called again where another
            was faster; what it told is removed then, and if it raises.
        parallelism: How many workers there are to share the buckets among.

    Raises:
        ColumnError: A column that the table does not have, or one that is missing and NOT NULL.
        UnsupportedError: A table without a primary key, an option that cannot be followed, a type
            or a value that does not go into the table.
        ConflictError: Others were faster again and again.
    """
    begin = time.monotonic()

    def changing() -> Changing:
        job = _plan(table, given, plan, parallelism)
        return Changing(job.keyed, job.looks_up, lambda: write(job))

    with table.engine.settings():
        applied = apply_changes(table, changing, plan.commit)
    return _report(applied, time.monotonic() - begin)


def keyed_table(
    table: PaimonTable,
    operation: WriteOperation,
    options: Mapping[str, OptionValue] | None = None,
) -> KeyedTable:
    """What work on the buckets of a table needs to know of it.

    Raises:
        UnsupportedError: An option that the operation cannot follow.
    """
    files = table.snapshot
    require_rows_writable(files.schema, files.options, operation)
    return KeyedTable(
        table.storage,
        files.schema,
        {**files.schemas, files.schema.id: files.schema},
        writing_options(files.options, files.state.entries, files.schemas),
        wanted_specs(files.schema, options),
        encoding_of(files.schema, files.options, operation),
    )


def compacts(table: PaimonTable, plan: UpsertPlan) -> bool:
    """Whether an upsert lifts its rows by itself, so that batch reads see them."""
    options = table.snapshot.options
    return options.deletion_vectors and not options.write_only and not plan.write_only


def _plan(table: PaimonTable, given: pa.Schema, plan: UpsertPlan, parallelism: int) -> UpsertJob:
    files = table.snapshot
    keyed = keyed_table(table, "upsert", plan.options)
    buckets = buckets_of(files.state, table_paths(files.schema, files.options))
    kind_column, columns = _columns(given, plan, files.schema, files.options)
    if files.options.bucket < 0:
        routing = Routing.plan(BucketOptions.parse(files.options.given), parallelism)
    else:
        routing = Routing(parallelism, parallelism)
    return UpsertJob(
        keyed,
        columns,
        kind_column,
        buckets,
        KnownBuckets(keyed, buckets),
        routing,
        compacts(table, plan),
    )


def _columns(
    given: pa.Schema, plan: UpsertPlan, schema: TableSchema, options: TableOptions
) -> tuple[tuple[int, str] | None, TargetColumns]:
    """The column that says what rows do, and those of the table, by their places."""
    wanted = plan.row_kind or options.rowkind_field
    if wanted is None:
        return None, fit_stored(given, schema)
    name = match_column(wanted, given.names)
    if name is None:
        raise ColumnError(f"row kinds: no column {wanted} among {', '.join(given.names)}")
    place = given.names.index(name)
    if match_column(name, schema.names) is not None:
        return (place, name), fit_stored(given, schema)
    fitted = fit_stored(given.remove(place), schema)
    sources = (one if one is None or one < place else one + 1 for one in fitted.sources)
    return (place, name), replace(fitted, sources=tuple(sources))


def _report(applied: Applied, seconds: float) -> UpsertReport:
    skipped, changes = SkippedCounter(), applied.changes
    files = [one for change in changes for one in (*change.upserts, *change.deletes)]
    for one in files:
        for column, index_type, reason in one.skipped:
            skipped.add(Kind.index(column, index_type), reason, one.paths[0])
    return UpsertReport(
        rows=sum(one.entry.file.rows for change in changes for one in change.upserts),
        deletes=sum(one.entry.file.rows for change in changes for one in change.deletes),
        replaced=applied.replaced,
        files=len(files),
        buckets=len(changes),
        bytes_written=sum(one.entry.file.size for one in files),
        index_bytes=sum(one.index_bytes for one in files),
        snapshot_id=applied.snapshot_id,
        is_compacted=applied.is_compacted,
        seconds=seconds,
        skipped=skipped.found,
    )
