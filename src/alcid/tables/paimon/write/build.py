"""The file indexes of a Paimon table: build them, look at them, drop them.

They are kept as Paimon keeps them, in manifests or in files beside the data, and its readers use
them. Each build, and each drop, is one snapshot of the kind COMPACT: rows stay as they are.

What a build of a Paimon table does: which files lack which index, and which lose one.

Paimon's own indexes of tables with a primary key, which its writers make as they compact.

    pk-btree.index.columns   pk-bitmap.index.columns   ...   the columns that are to have one
    index/index-<uuid>-0     values of all files of a level in a bucket, named by the index manifest

An entry names the data files that it is of, with their rows:

    int 1 | int level | int files | for each file: its name as Java's writeUTF | long rows

Java uses it only while these are the files of the level. Here they are neither read nor written.
"""

from __future__ import annotations

import re
import struct
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    Found,
    IndexItem,
    IndexWork,
    Intent,
    Made,
    intents,
    place_every,
    read_containers,
    table_name,
)
from alcid.tables.paimon.write.index_swap import (
    Swap,
    commit_swaps,
    first_numbers,
    swap_of,
)
from alcid.tables.progress import Progress, track_progress
from alcid.tables.reports import BuildReport, IndexFiles, IndexInfo, SkippedCounter

if TYPE_CHECKING:
    from alcid.tables.paimon.files import PaimonFiles
    from alcid.tables.paimon.open_table import OpenPaimonTable

__all__ = ["build", "drop", "indexes", "key_indexes", "lost_indexes", "make_swaps", "preview"]


def preview(
    files: PaimonFiles,
    placed: Sequence[PlacedFile],
    containers: Sequence[Found],
    plan: Sequence[Intent],
    skipped: SkippedCounter,
) -> BuildReport:
    """The report of a build that is not done.

    Args:
        files: The table.
        placed: Its data files that can be indexed.
        containers: What they have.
        plan: What there is to do.
        skipped: What cannot be built, as far as that is known.
    """
    missing = _counted(files, ((intent.placed, _built(intent)) for intent in plan))
    others = len(files.state.entries) - len(placed)
    return BuildReport(
        len(files.state.entries),
        len(plan),
        len(placed) - len(plan),
        others,
        sum(intent.placed.file.rows for intent in plan),
        0,
        None,
        0.0,
        skipped.reasons,
        dry_run=True,
        data_bytes=sum(intent.placed.file.size for intent in plan if intent.build),
        missing=missing,
        dropped=lost_indexes(files, placed, containers, plan),
    )


def lost_indexes(
    files: PaimonFiles,
    placed: Sequence[PlacedFile],
    containers: Sequence[Found],
    plan: Iterable[Intent],
) -> tuple[IndexFiles, ...]:
    """What files have and do not keep, by index.

    Args:
        files: The table.
        placed: Its data files that can be indexed.
        containers: What they have.
        plan: What is done.
    """
    has = {one.path: _names(found) for one, found in zip(placed, containers, strict=True)}
    return _counted(
        files,
        (
            (intent.placed, set(has[intent.placed.path]) - set(_built(intent)) - set(intent.keep))
            for intent in plan
        ),
    )


def _counted(
    files: PaimonFiles, found: Iterable[tuple[PlacedFile, Iterable[IndexName]]]
) -> tuple[IndexFiles, ...]:
    counter = IndexFilesCounter()
    for one, names in found:
        own = files.schemas[one.file.schema_id]
        for column, index_type in names:
            kind = PayloadKind.index(table_name(column, own, files.schema) or column, index_type)
            counter.add(kind, one.file.rows, one.file.size)
    return counter.found


def _built(intent: Intent) -> list[IndexName]:
    return [(spec.column, spec.index_type) for spec, _ in intent.build]


def _names(found: Found) -> list[IndexName]:
    if not isinstance(found, Container):
        return []
    return [(entry.column, entry.index_type) for entry in found.entries]


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
    """Build the indexes that data files lack, those of level 0 too.

    What is not asked for is dropped, as by Paimon's `rewrite_file_index`.

    Args:
        table: The table.
        options: Which; by default the options of the table itself say it.
        rebuild: Build also what is there.
        dry_run: Only say what files lack, and what would be dropped.
        progress: As for a folder.

    Raises:
        OptionError: An option that cannot be, or none that asks for an index.
        ColumnError: The table has no such column.
        UnsupportedError: An option of the table does not go with it.
    """
    begin, skipped = time.monotonic(), SkippedCounter()
    files = _writable(table)
    with table.engine.settings():
        specs = _table_specs(files) if options is None else given_specs(files.schema, options)
        threshold = (options or {}).get(_THRESHOLD, files.options.file_index_in_manifest_threshold)
        placed, others = place_every(files)
        for name, reason in others:
            skipped.add(None, reason, name)
        containers = read_containers(table.storage, placed)
        plan = intents(files, placed, specs, containers, skipped, rebuild=rebuild)
        if dry_run:
            return preview(files, placed, containers, plan, skipped)
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
        lost_indexes(files, placed, containers, [plan[made.item] for made in changed]),
    )


def indexes(table: OpenPaimonTable) -> list[IndexInfo]:
    """What indexes there are, by column, as the table spells it now, and type.

    Columns that the table has no more are left out.
    """
    files = table.snapshot
    placed, _ = place_every(files)
    found = read_containers(table.storage, placed)
    sizes: dict[PayloadKind, list[tuple[int, int]]] = {}
    for one, container in zip(placed, found, strict=True):
        if isinstance(container, Container):
            own = files.schemas[one.file.schema_id]
            for entry in container.entries:
                column = table_name(entry.column, own, files.schema)
                if column is not None:
                    kind = PayloadKind.index(column, entry.index_type)
                    sizes.setdefault(kind, []).append((entry.length, one.file.rows))
    has = sum(container is None or isinstance(container, Container) for container in found)
    damaged = len(found) - has
    if damaged:  # what is in them is not known, but what should be
        for spec in table_specs(files.schema)[0]:
            sizes.setdefault(PayloadKind.index(spec.column, spec.index_type), [])
    return [
        IndexInfo(
            kind.column,
            kind.index_type,
            fresh=len(every),
            stale=0,
            absent=has - len(every),
            damaged=damaged,
            bytes=sum(size for size, _ in every),
            rows=sum(rows for _, rows in every),
        )
        for kind, every in sorted(sizes.items())
    ]


def drop(
    table: OpenPaimonTable,
    columns: Collection[str] | None = None,
    types: Collection[str] | None = None,
    *,
    dry_run: bool = False,
) -> int:
    """Remove indexes; of containers that cannot be read only all of them.

    Args:
        table: The table.
        columns: Those of these columns, and of keys of these maps; by default of all.
        types: Those of these types; by default all.
        dry_run: Only count.

    Returns:
        How many files have fewer of them now.

    Raises:
        OptionError: A type of index that there is not.
    """
    require_choice(columns, types)
    files = _writable(table)
    every = columns is None and types is None
    plan = []
    with table.engine.settings():
        placed, _ = place_every(files)
        for one, container in zip(placed, read_containers(table.storage, placed), strict=True):
            own = files.schemas[one.file.schema_id]
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
                plan.append(Intent(one, keep=keep))
        if dry_run:
            return len(plan)
        done, _, lost = _swap(table, plan, files.options.file_index_in_manifest_threshold, False)
    return sum(not made.failed and plan[made.item].placed.path not in lost for made in done)


def _writable(table: OpenPaimonTable) -> PaimonFiles:
    """The table as it is now, if it may be changed."""
    table.refresh()
    table.committer()  # there is none of a table of the past
    files = table.snapshot
    files.options.require_writable("build")
    return files


def _table_specs(files: PaimonFiles) -> Sequence[IndexSpec]:
    """What the options of the table ask for, with a warning for each that is not in order."""
    found, problems = table_specs(files.schema)
    for problem in problems:
        warnings.warn(f"{files.location}: {problem}", AlcidWarning, stacklevel=3)
    if not found:
        raise OptionError(
            f"{files.location}: its options ask for no index: give some, as "
            "{'file-index.bloom-filter.columns': 'id'}"
        )
    return found


def _swap(
    table: OpenPaimonTable,
    plan: Sequence[Intent],
    threshold: int,
    progress: Progress | bool | None,
) -> tuple[list[Made], Snapshot | None, frozenset[str]]:
    """Make containers, and commit them: what was made, the snapshot, the files that were lost."""
    if not plan:
        return [], None, frozenset()
    done, swaps = make_swaps(table, plan, threshold, progress)
    snapshot, lost = commit_swaps(table, swaps)
    table.refresh()
    return done, snapshot, lost


def make_swaps(
    table: OpenPaimonTable,
    plan: Sequence[Intent],
    threshold: int,
    progress: Progress | bool | None,
) -> tuple[list[Made], list[Swap]]:
    """Make containers: what was made, and the changes of data files, which nobody has committed."""
    state = table.snapshot.state
    numbers = first_numbers(state, [intent.placed for intent in plan])
    work = IndexWork(table.storage, threshold, table.snapshot.options)
    items = [
        IndexItem(number, intent, first_number)
        for number, (intent, first_number) in enumerate(zip(plan, numbers, strict=True))
    ]
    sizes = np.array([intent.placed.file.size for intent in plan], np.int64)
    with track_progress(progress, "indexing", len(plan)) as report:
        parts = table.engine.map(work, items, sizes, report)
    done = [made for part in parts for made in part]
    swaps = run_in_threads(
        lambda made: swap_of(table.storage, state, plan[made.item], numbers[made.item], made),
        [made for made in done if not made.failed and not made.is_same],
        waiting=table.storage.remote,
    )
    return done, swaps


_OPTION: Final = re.compile(r"pk-(.+)\.index\.columns")
_VERSION: Final = 1
_HEAD, _NAME, _ROWS = struct.Struct(">iii"), struct.Struct(">H"), struct.Struct(">q")


class _Source(NamedTuple):
    """The data files that an index is of."""

    level: int
    files: tuple[tuple[str, int], ...]
    """Name and rows of each."""


def key_indexes(files: PaimonFiles) -> list[IndexInfo]:
    """The indexes that the options of a table ask for, and those that there are."""
    levels = _levels(files.state.entries)
    names = {one.id: one.name for one in files.schema.fields}
    found: dict[tuple[str, str], list[IndexEntry]] = {
        asked: [] for asked in _asked(files.options.raw, files.schema.names)
    }
    for entry in files.state.indexes:
        number = (entry.global_index or {}).get("_INDEX_FIELD_ID")
        if number in names and (entry.global_index or {}).get("_SOURCE_META") is not None:
            found.setdefault((names[number], f"pk-{entry.index_type}"), []).append(entry)
    every = len(files.state.entries)
    return [_info(*kind, entries, levels, every) for kind, entries in sorted(found.items())]


def _asked(options: Mapping[str, str], columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    for key, value in options.items():
        if found := _OPTION.fullmatch(key):
            names = (name.strip() for name in value.split(","))
            yield from ((name, f"pk-{found[1]}") for name in names if name in columns)


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
    """What an entry says of its data files; None if that cannot be read."""
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
