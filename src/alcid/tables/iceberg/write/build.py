"""Build, list and drop the indexes of an Iceberg table, and append rows with them.

    metadata/_alcid/20250801T093000.123456Z-5f1e0c7ab2d4.puffin     staged, while a build runs
    metadata/8270633197658268308-0b3f6c1d-....-alcid.stats          listed by the snapshot

Tasks stage bundles, so that the next build can use the work of an interrupted one. In the end the
staged bundles become one statistics file of the snapshot, without a new snapshot. An append writes
files by Iceberg's own writer, then builds their indexes.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import ConflictError, UnsupportedError
from alcid.index.bundle import PayloadKind, State
from alcid.options import OptionValue
from alcid.storage import Listing, retry
from alcid.tables.build import (
    BuildPlan,
    BuildWork,
    Built,
    FilePlan,
    Listed,
    files_to_index,
    is_among,
    plan_build,
    preview_build,
    require_choice,
)
from alcid.tables.bundle_folder import FOLDER, BundleFolder, written_at
from alcid.tables.iceberg.bundles import BundleFinder
from alcid.tables.iceberg.catalog import CatalogTable
from alcid.tables.iceberg.field_ids import NameMapping
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.iceberg.metadata.schema import Schema
from alcid.tables.iceberg.metadata.table_metadata import Snapshot
from alcid.tables.iceberg.open_table import OpenIcebergTable
from alcid.tables.iceberg.write.columns import (
    INDEXES_PROPERTY,
    Files,
    IdResolver,
    indexes_property,
    recorded_indexes,
    specs_from_options,
    table_kinds,
)
from alcid.tables.iceberg.write.making import BundleMaker
from alcid.tables.iceberg.write.publish import publish
from alcid.tables.progress import Progress, track_progress
from alcid.tables.reports import AppendReport, BuildReport, IndexInfo, SkippedCounter

_ATTEMPTS = 20
_STAGED_FOR = timedelta(days=1)  # the age at which bundles of other builds are removed


def staging_folder(catalog: CatalogTable, file_io: FileIO) -> BundleFolder:
    """The folder in which builds of a table stage bundles."""
    folder = catalog.metadata_location(FOLDER)
    return BundleFolder(*file_io.find(folder))


def build(
    table: OpenIcebergTable,
    options: Mapping[str, OptionValue],
    *,
    rebuild: bool | Collection[str] = False,
    dry_run: bool = False,
    progress: Progress | bool | None = None,
) -> BuildReport:
    """Build the indexes that data files are missing, and keep the others.

    Args:
        table: The table; it is refreshed.
        options: The indexes, see `alcid.options.parse_options`; columns are those of the table.
        rebuild: Rebuild all indexes, or those of some data files, by their paths in the manifests.
        dry_run: Only report what would be built; that a file cannot be indexed may show only later.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: An option is invalid.
        ColumnError: The table has no such column.
        UnsupportedError: It was opened at a snapshot, ref or timestamp.
        ConflictError: The snapshot expired meanwhile.
        StorageError: A file cannot be read or written. Staged bundles are kept.
    """
    begin, skipped = time.monotonic(), SkippedCounter()
    files = _present(table)
    with table.engine.settings():
        specs = specs_from_options(files.schema, options)
        if files.snapshot is None:
            seconds = time.monotonic() - begin
            return BuildReport(0, 0, 0, 0, 0, 0, 0, seconds, dry_run=dry_run)
        maker = _maker(table, files, files.snapshot, skipped)
        storage, paths = table.file_io.below(files.metadata.location, maker.paths)
        versions = pa.repeat(pa.scalar("", pa.string()), len(paths))
        listing = Listing(paths, maker.sizes, versions)
        resolve = IdResolver(files.schema.by_name, maker.mapping)
        if rebuild is True:
            plans = (FilePlan(file, tuple(specs), is_described=False) for file in range(len(paths)))
            plan = BuildPlan(tuple(plans), 0)
        else:
            snapshot_bundles = maker.finder.find(files.metadata, files.snapshot)
            bundles = maker.match([*snapshot_bundles.bundles, *maker.folder.load().current])
            plan = plan_build(bundles, listing, specs, skipped, resolve)
            if rebuild:
                plan = plan.with_files(maker.paths.to_pylist(), rebuild, specs)
        other_files = len(files.entries.data) - len(paths)
        if dry_run:
            rows = _parquet_files(files)["record_count"].to_numpy()
            listed_files = Listed(maker.paths.to_pylist(), rows, maker.sizes, lambda _file: None)
            return preview_build(plan, listed_files, skipped, others=other_files, resolve=resolve)
        built = Built(skipped=skipped)
        if plan.files:
            work = BuildWork(storage, maker.folder, resolve)
            to_index = files_to_index(plan, listing, maker.paths)
            with track_progress(progress, "indexing", len(to_index)) as report:
                for part in table.engine.map(work, to_index, plan.sizes(listing), report):
                    built.add(part)
        before = files.metadata.statistics
        make = partial(maker.staged, anew=bool(rebuild and built.bundles))
        listed = publish(table.catalog, table.file_io, files.snapshot.id, make, table.engine)
        wanted = [PayloadKind.index(spec.column, spec.index_type) for spec in specs]
        _record(table.catalog, files.schema, wanted)
    _remove_staged(maker.folder, built.bundles)
    table.refresh()
    is_new = listed is not None and all(one.path != listed.path for one in before.values())
    return BuildReport(
        len(files.entries.data),
        built.indexed,
        plan.fresh + built.unchanged,
        built.failed + other_files,
        built.rows,
        listed.size if is_new and listed is not None else 0,
        int(is_new),
        time.monotonic() - begin,
        skipped.reasons,
        files.snapshot.id if is_new else None,
    )


def indexes(table: OpenIcebergTable) -> list[IndexInfo]:
    """The indexes of the table by column, with its current name, and type.

    This includes indexes whose files have all been rewritten since, which the next build recreates.
    Indexes of dropped columns are left out.
    """
    files = table.snapshot
    properties = files.metadata.properties
    mapping = NameMapping.of(properties)
    infos = []
    has_present_files = len(files.entries.data) and not table.is_past
    recorded = set(recorded_indexes(properties, files.schema) if has_present_files else ())
    kinds: dict[PayloadKind, list[tuple[PayloadKind, Files]]] = {kind: [] for kind in recorded}
    kinds |= table_kinds(files.bundles, files.schema, mapping)
    for kind, parts in sorted(kinds.items()):
        counts, size, rows = np.zeros(len(State), np.int64), 0, 0
        for file_kind, members in parts:
            coverage = files.bundles.coverage(file_kind)
            counts += np.bincount(coverage.states[members], minlength=len(State))
            size += int(coverage.lengths[members].sum())
            rows += int(files.rows[members][coverage.states[members] == State.FRESH].sum())
        fresh, damaged = int(counts[State.FRESH]), int(counts[State.DAMAGED])
        absent = len(files.entries.data) - fresh - damaged
        if fresh or damaged or kind in recorded:
            info = IndexInfo(kind.column, kind.index_type, fresh, 0, absent, damaged, size, rows)
            infos.append(info)
    return infos


def options_of(table: OpenIcebergTable) -> dict[str, OptionValue]:
    """Options that request the indexes that the table has, or had; empty if none."""
    columns: dict[str, list[str]] = defaultdict(list)
    for info in indexes(table):
        columns[f"file-index.{info.index_type}.columns"].append(info.column)
    return {key: ",".join(names) for key, names in columns.items()}


def drop(
    table: OpenIcebergTable,
    columns: Collection[str] | None = None,
    types: Collection[str] | None = None,
    *,
    dry_run: bool = False,
) -> int:
    """Drop indexes; with the last one, also everything else in bundles.

    Older snapshots keep their statistics files.

    Args:
        table: The table; it is refreshed.
        columns: Only indexes of these columns and of keys of these maps; by default all, including
            those of dropped columns.
        types: Only indexes of these types; by default all.
        dry_run: Only count.

    Returns:
        The number of files with a fresh index among them.

    Raises:
        OptionError: An unknown type of index.
        UnsupportedError: The table was opened at a snapshot, ref or timestamp.
        ConflictError: The snapshot expired meanwhile.
    """
    require_choice(columns, types)
    files = _present(table)
    if files.snapshot is None:
        return 0
    with table.engine.settings():
        maker = _maker(table, files, files.snapshot, SkippedCounter())
        snapshot_bundles = maker.finder.find(files.metadata, files.snapshot)
        bundles = maker.match(snapshot_bundles.bundles)
        has_index = np.zeros(len(maker.paths), bool)
        dropped = set()
        if columns is None:
            dropped = {kind for kind in bundles.kinds if is_among(kind, None, types)}
        for kind, parts in table_kinds(bundles, files.schema, maker.mapping).items():
            if is_among(kind, columns, types):
                for file_kind, members in parts:
                    dropped.add(file_kind)
                    has_index[members] |= bundles.coverage(file_kind).states[members] == State.FRESH
    if not dry_run:
        _record(table.catalog, files.schema, dropped=lambda kind: is_among(kind, columns, types))
    if dropped and not dry_run:
        maker.folder.remove(maker.folder.load().names)
        publish(
            table.catalog,
            table.file_io,
            files.snapshot.id,
            lambda metadata, _lost: maker.without(metadata, dropped),
            table.engine,
        )
        table.refresh()
    return int(has_index.sum())


def _record(
    catalog: CatalogTable,
    schema: Schema,
    more: Collection[PayloadKind] = (),
    dropped: Callable[[PayloadKind], bool] | None = None,
) -> None:
    """Record in the table property which indexes the table has.

    Raises:
        ConflictError: Other commits came first in every attempt.
    """

    def attempt() -> None:
        metadata = catalog.load()
        text = indexes_property(metadata.properties, schema, more, dropped)
        if text != metadata.properties.get(INDEXES_PROPERTY):
            catalog.set_property(metadata, INDEXES_PROPERTY, text)

    retry(attempt, on=ConflictError, attempts=_ATTEMPTS)


def _present(table: OpenIcebergTable) -> IcebergFiles:
    table.require_present("indexes are built or dropped")
    table.refresh()
    return table.snapshot


def _maker(
    table: OpenIcebergTable, files: IcebergFiles, snapshot: Snapshot, skipped: SkippedCounter
) -> BundleMaker:
    """A bundle maker for the Parquet files; other files are added to `skipped`."""
    data = files.entries.data
    formats = pc.utf8_upper(data["file_format"])
    for name in pc.unique(formats).to_pylist():
        if name != "PARQUET":
            others = data["file_path"].filter(pc.equal(formats, name))
            skipped.add(None, f"no indexes of {name} files", others[0].as_py(), len(others))
    chosen = _parquet_files(files)
    return BundleMaker(
        table.file_io,
        snapshot,
        chosen["file_path"].combine_chunks(),
        chosen["file_size_in_bytes"].to_numpy(),
        NameMapping.of(files.metadata.properties),
        BundleFinder(table.file_io),
        staging_folder(table.catalog, table.file_io),
    )


def _parquet_files(files: IcebergFiles) -> pa.Table:
    """The entries of the data files that can be indexed."""
    data = files.entries.data
    return data.filter(pc.equal(pc.utf8_upper(data["file_format"]), "PARQUET"))


def _remove_staged(folder: BundleFolder, own: Collection[str]) -> None:
    """Remove the staged bundles of this build, and old ones of others."""
    old = datetime.now(UTC) - _STAGED_FOR
    names = [
        name
        for name in folder.load(on_damage=lambda _: None).names
        if name in own or (written_at(name) or old) < old
    ]
    folder.remove(names)


_ADDED = "added-data-files", "added-records", "added-files-size"


def append(
    table: OpenIcebergTable,
    rows: Any,
    options: Mapping[str, OptionValue] | None = None,
    *,
    dry_run: bool = False,
) -> AppendReport:
    """Append the rows of a DataFrame; see `IcebergTable.append`.

    Raises:
        UnsupportedError: The table is read-only at a snapshot, or rows is not a DataFrame.
    """
    begin = time.monotonic()
    table.require_present("append")
    if not hasattr(rows, "sparkSession"):
        raise UnsupportedError(f"rows: found {type(rows).__name__}, expected a Spark DataFrame")
    if dry_run:
        table.catalog.check_append(rows)
        count = rows.count()
        return AppendReport(None, count, None, None, 0, time.monotonic() - begin, dry_run=True)
    before = table.snapshot_id
    table.catalog.append(rows)
    table.refresh()
    files, count, size = _added(table, before)
    built = BuildReport(0, 0, 0, 0, 0, 0, 0, 0.0)
    index_options = options_of(table) if options is None else options
    if files and index_options:
        built = build(table, index_options, progress=False)
    return AppendReport(
        files,
        count,
        size,
        built.bytes_written,
        built.bundles or 0,
        time.monotonic() - begin,
        built.skipped,
        table.snapshot_id if files else None,
    )


def _added(table: OpenIcebergTable, before: int | None) -> tuple[int, int, int]:
    """The files, rows and bytes that snapshots have added since one."""
    total: Counter[str] = Counter()
    if table.snapshot_id is not None:
        ancestors = table.metadata.ancestors(table.snapshot_id)
        for snapshot in takewhile(lambda ancestor: ancestor.id != before, ancestors):
            if snapshot.operation == "append":
                total.update({key: int(snapshot.summary.get(key, 0)) for key in _ADDED})
    files, count, size = (total[key] for key in _ADDED)
    return files, count, size
