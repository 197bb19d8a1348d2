"""The file indexes of a Paimon table: build them, list them, drop them.

They are stored as Paimon stores them, embedded in manifests or in files beside the data, and its
readers use them. Each build, and each drop, is one snapshot of kind COMPACT: no row changes.

`key_indexes` lists Paimon's own indexes of tables with a primary key, which its writers build as
they compact:

    pk-btree.index.columns   pk-bitmap.index.columns   ...   the columns that shall have one
    index/index-<uuid>-0     values of all files of a level in a bucket, in the index manifest

An entry has the data files that it covers, with their rows:

    int 1 | int level | int files | for each file: its name as Java's writeUTF | long rows

Java uses it only while these are the files of the level. Here they are neither read nor written.
"""

from __future__ import annotations

import re
import struct
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from alcid.errors import AlcidWarning, FormatError, OptionError
from alcid.formats.file_index.container import Container
from alcid.index.build import IndexName
from alcid.index.bundle import PayloadKind
from alcid.options import IndexSpec, OptionValue, memory_size
from alcid.storage.threads import run_in_threads
from alcid.tables.build import IndexFilesCounter, is_among, require_choice
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.indexes import given_specs, table_specs
from alcid.tables.paimon.metadata.manifest import ManifestEntry
from alcid.tables.paimon.metadata.snapshot import Snapshot
from alcid.tables.paimon.metadata.table_state import IndexEntry
from alcid.tables.paimon.write.index_plan import (
    BuiltContainer,
    FilePlan,
    IndexItem,
    IndexWork,
    containers_of,
    indexable_files,
    plan_files,
    table_name,
)
from alcid.tables.paimon.write.index_swap import (
    Swap,
    commit_swaps,
    first_numbers,
    make_swap,
)
from alcid.tables.progress import Progress, track_progress
from alcid.tables.reports import BuildReport, IndexFiles, IndexInfo, SkippedCounter

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable


def preview(
    files: PaimonFiles,
    placed: Sequence[PlacedFile],
    plan: Sequence[FilePlan],
    skipped: SkippedCounter,
) -> BuildReport:
    """The report of a dry run.

    Args:
        files: The table.
        placed: Its data files that can be indexed.
        plan: The plan of the build.
        skipped: What cannot be built, as far as that is known.
    """
    missing = _count_files(files, ((file_plan.placed, _built(file_plan)) for file_plan in plan))
    others = len(files.state.entries) - len(placed)
    return BuildReport(
        len(files.state.entries),
        len(plan),
        len(placed) - len(plan),
        others,
        sum(file_plan.placed.file.rows for file_plan in plan),
        0,
        None,
        0.0,
        skipped.reasons,
        dry_run=True,
        data_bytes=sum(file_plan.placed.file.size for file_plan in plan if file_plan.build),
        missing=missing,
        dropped=lost_indexes(files, plan),
    )


def lost_indexes(files: PaimonFiles, plan: Iterable[FilePlan]) -> tuple[IndexFiles, ...]:
    """The indexes that a build drops, with the number of files."""
    return _count_files(files, ((file_plan.placed, file_plan.lost) for file_plan in plan))


def _count_files(
    files: PaimonFiles, indexes_of: Iterable[tuple[PlacedFile, Iterable[IndexName]]]
) -> tuple[IndexFiles, ...]:
    counter, kind_of = IndexFilesCounter(), _kinds_by_schema(files)
    for file, names in indexes_of:
        for name in names:
            kind = kind_of(file.file.schema_id, *name) or PayloadKind.index(*name)
            counter.add(kind, file.file.rows, file.file.size)
    return counter.counts


def _built(file_plan: FilePlan) -> list[IndexName]:
    return [(spec.column, spec.index_type) for spec, _ in file_plan.build]


_THRESHOLD = "file-index.in-manifest-threshold"
_LOST = "changed or removed by another while it was indexed"


def build(
    table: OpenPaimonTable,
    options: Mapping[str, OptionValue] | None = None,
    *,
    rebuild: bool = False,
    dry_run: bool = False,
    progress: Progress | bool | None = None,
) -> BuildReport:
    """Build the missing indexes of data files, level 0 included.

    Other indexes are dropped, as by Paimon's `rewrite_file_index`.

    Args:
        table: The table.
        options: The indexes, see `alcid.options`; by default those of the table's own options.
        rebuild: Also build what exists.
        dry_run: Only report what is missing, and what would be dropped.
        progress: As for a folder.

    Raises:
        OptionError: An invalid option, or none that declares an index.
        ColumnError: The table has no such column.
        UnsupportedError: The table has an option that a build cannot follow.
    """
    begin, skipped = time.monotonic(), SkippedCounter()
    files = _writable(table)
    with table.engine.settings():
        specs = _table_specs(files) if options is None else given_specs(files.schema, options)
        threshold = (options or {}).get(_THRESHOLD, files.options.file_index_in_manifest_threshold)
        placed, others = indexable_files(files)
        for name, reason in others:
            skipped.add(None, reason, name)
        containers = containers_of(table.storage, placed)
        plan = plan_files(files, containers, specs, skipped, rebuild=rebuild)
        if dry_run:
            return preview(files, placed, plan, skipped)
        done, snapshot, lost = _swap(table, plan, memory_size(str(threshold)), progress)
    for made in done:
        path = plan[made.item].placed.path
        for index, reason in made.skipped.items():
            skipped.add(PayloadKind.index(*index), reason, path)
        if made.failed or path in lost:
            skipped.add(None, made.failed or _LOST, path)
    failed = {plan[made.item].placed.path for made in done if made.failed} | lost
    changed = [
        made for made in done if not made.is_same and plan[made.item].placed.path not in failed
    ]
    return BuildReport(
        len(files.state.entries),
        len(changed),
        len(placed) - len(changed) - len(failed),
        len(failed) + len(others),
        sum(plan[made.item].placed.file.rows for made in changed),
        sum(made.size for made in changed),
        None,
        time.monotonic() - begin,
        skipped.reasons,
        None if snapshot is None else snapshot.id,
        lost_indexes(files, (plan[made.item] for made in changed)),
    )


def indexes(table: OpenPaimonTable) -> list[IndexInfo]:
    """The existing indexes by column and type; those of dropped columns are left out."""
    files = table.snapshot
    placed, _ = indexable_files(files)
    totals: dict[PayloadKind, list[int]] = {}  # files, bytes and rows
    damaged = 0
    kind_of = _kinds_by_schema(files)
    for file, container in containers_of(table.storage, placed):
        damaged += isinstance(container, FormatError)
        for entry in container.entries if isinstance(container, Container) else ():
            kind = kind_of(file.file.schema_id, entry.column, entry.index_type)
            if kind is not None:
                total = totals.setdefault(kind, [0, 0, 0])
                for number, count in enumerate((1, entry.length, file.file.rows)):
                    total[number] += count
    readable = len(placed) - damaged
    if damaged:  # what they contain is unknown, but not what they should
        for spec in table_specs(files.schema)[0]:
            totals.setdefault(PayloadKind.index(spec.column, spec.index_type), [0, 0, 0])
    return [
        IndexInfo(
            kind.column,
            kind.index_type,
            fresh=fresh,
            stale=0,
            absent=readable - fresh,
            damaged=damaged,
            bytes=size,
            rows=rows,
        )
        for kind, (fresh, size, rows) in sorted(totals.items())
    ]


def _kinds_by_schema(files: PaimonFiles) -> Callable[[int, str, str], PayloadKind | None]:
    """By schema, column and type: an index by the name that the table has for its column."""

    @lru_cache(None)
    def kind_of(schema_id: int, column: str, index_type: str) -> PayloadKind | None:
        name = table_name(column, files.schemas[schema_id], files.schema)
        return None if name is None else PayloadKind.index(name, index_type)

    return kind_of


def drop(
    table: OpenPaimonTable,
    columns: Collection[str] | None = None,
    types: Collection[str] | None = None,
    *,
    dry_run: bool = False,
) -> int:
    """Drop indexes; damaged containers only as a whole.

    Args:
        table: The table.
        columns: Those of these columns, and of keys of these maps; by default of all.
        types: Those of these types; by default all.
        dry_run: Only count.

    Returns:
        The number of files that had some of them.

    Raises:
        OptionError: An unknown index type.
    """
    require_choice(columns, types)
    files = _writable(table)
    every = columns is None and types is None
    plan = []
    with table.engine.settings():
        placed, _ = indexable_files(files)
        for file, container in containers_of(table.storage, placed):
            own = files.schemas[file.file.schema_id]
            entries = container.entries if isinstance(container, Container) else ()
            names = [(entry.column, entry.index_type) for entry in entries]
            keep = tuple(
                (column, index_type)
                for column, index_type in names
                if not every
                and not is_among(
                    PayloadKind.index(table_name(column, own, files.schema) or "", index_type),
                    columns,
                    types,
                )
            )
            if len(keep) < len(names) or (every and isinstance(container, FormatError)):
                plan.append(FilePlan(file, keep=keep))
        if dry_run:
            return len(plan)
        done, _, lost = _swap(table, plan, files.options.file_index_in_manifest_threshold, False)
    return sum(not made.failed and plan[made.item].placed.path not in lost for made in done)


def _writable(table: OpenPaimonTable) -> PaimonFiles:
    """The current table, if it may be changed."""
    table.refresh()
    table.committer()  # raises where nothing can be written
    files = table.snapshot
    files.options.require_writable("build")
    return files


def _table_specs(files: PaimonFiles) -> Sequence[IndexSpec]:
    """The indexes that the options of the table declare, with a warning for each problem."""
    specs, problems = table_specs(files.schema)
    for problem in problems:
        warnings.warn(f"{files.location}: {problem}", AlcidWarning, stacklevel=3)
    if not specs:
        raise OptionError(
            f"{files.location}: its options ask for no index: give some, as "
            "{'file-index.bloom-filter.columns': 'id'}"
        )
    return specs


def _swap(
    table: OpenPaimonTable,
    plan: Sequence[FilePlan],
    threshold: int,
    progress: Progress | bool | None,
) -> tuple[list[BuiltContainer], Snapshot | None, frozenset[str]]:
    """Build containers and commit them: the containers, the snapshot, the files that were lost."""
    if not plan:
        return [], None, frozenset()
    done, swaps = make_swaps(table, plan, threshold, progress)
    snapshot, lost = commit_swaps(table, swaps)
    table.refresh()
    return done, snapshot, lost


def make_swaps(
    table: OpenPaimonTable,
    plan: Sequence[FilePlan],
    threshold: int,
    progress: Progress | bool | None,
) -> tuple[list[BuiltContainer], list[Swap]]:
    """Build containers: the containers, and the swaps of data files, which are to be committed."""
    state = table.snapshot.state
    numbers = first_numbers(state, [file_plan.placed for file_plan in plan])
    work = IndexWork(table.storage, threshold, table.snapshot.options)
    items = [
        IndexItem(number, file_plan, first_number)
        for number, (file_plan, first_number) in enumerate(zip(plan, numbers, strict=True))
    ]
    sizes = np.array([file_plan.placed.file.size for file_plan in plan], np.int64)
    with track_progress(progress, "indexing", len(plan)) as report:
        parts = table.engine.map(work, items, sizes, report)
    done = [made for part in parts for made in part]
    swaps = run_in_threads(
        lambda made: make_swap(table.storage, state, plan[made.item], numbers[made.item], made),
        [made for made in done if not made.failed and not made.is_same],
        waiting=table.storage.remote,
    )
    return done, swaps


_OPTION: Final = re.compile(r"pk-(.+)\.index\.columns")
_VERSION: Final = 1
_HEAD, _NAME, _ROWS = struct.Struct(">iii"), struct.Struct(">H"), struct.Struct(">q")


class _Source(NamedTuple):
    """The data files that an index covers."""

    level: int
    files: tuple[tuple[str, int], ...]
    """Name and rows of each."""


def key_indexes(files: PaimonFiles) -> list[IndexInfo]:
    """The indexes that the options of a table declare, and those that exist."""
    levels = _levels(files.state.entries)
    names = {one.id: one.name for one in files.schema.fields}
    indexes: dict[tuple[str, str], list[IndexEntry]] = {
        declared: [] for declared in _declared(files.options.raw, files.schema.names)
    }
    for entry in files.state.indexes:
        number = (entry.global_index or {}).get("_INDEX_FIELD_ID")
        if number in names and (entry.global_index or {}).get("_SOURCE_META") is not None:
            indexes.setdefault((names[number], f"pk-{entry.index_type}"), []).append(entry)
    every = len(files.state.entries)
    return [_info(*kind, entries, levels, every) for kind, entries in sorted(indexes.items())]


def _declared(options: Mapping[str, str], columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    for key, value in options.items():
        if match := _OPTION.fullmatch(key):
            names = (name.strip() for name in value.split(","))
            yield from ((name, f"pk-{match[1]}") for name in names if name in columns)


def _levels(entries: Iterable[ManifestEntry]) -> dict[tuple[bytes, int, int], dict[str, int]]:
    """The files of each level of a bucket, with their rows."""
    levels: dict[tuple[bytes, int, int], dict[str, int]] = {}
    for one in entries:
        place = one.partition, one.bucket, one.file.level
        levels.setdefault(place, {})[one.file.name] = one.file.rows
    return levels


def _info(
    column: str,
    index_type: str,
    entries: Iterable[IndexEntry],
    levels: Mapping[tuple[bytes, int, int], Mapping[str, int]],
    every: int,
) -> IndexInfo:
    fresh = stale = damaged = size = rows = 0
    for entry in entries:
        source = _source((entry.global_index or {})["_SOURCE_META"])
        if source is None:
            damaged += 1
            continue
        live = levels.get((entry.partition, entry.bucket, source.level), {})
        if dict(source.files) == live:
            fresh, size, rows = fresh + len(live), size + entry.size, rows + sum(live.values())
        else:
            stale += sum(name in live for name, _ in source.files)
    absent = max(every - fresh - stale, 0)
    return IndexInfo(column, index_type, fresh, stale, absent, damaged, size, rows)


def _source(data: bytes) -> _Source | None:
    """The data files of an entry; None if they cannot be parsed."""
    try:
        version, level, count = _HEAD.unpack_from(data)
        if version != _VERSION or not 0 <= count <= len(data):
            return None
        files, at = [], _HEAD.size
        for _ in range(count):
            (length,) = _NAME.unpack_from(data, at)
            at += _NAME.size
            name = data[at : at + length].decode()
            (rows,) = _ROWS.unpack_from(data, at + length)
            files.append((name, rows))
            at += length + _ROWS.size
    except (struct.error, UnicodeDecodeError):
        return None
    return _Source(level, tuple(files)) if at == len(data) else None
