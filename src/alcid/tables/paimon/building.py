"""The file indexes of a Paimon table: build them, look at them, drop them.

They are kept as Paimon keeps them, in manifests or in files beside the data, and its readers use
them. Each build, and each drop, is one snapshot of the kind COMPACT: rows stay as they are.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from alcid.bundle import Kind
from alcid.errors import AlcidWarning, FormatError, OptionError
from alcid.formats.file_index.container import Container
from alcid.options import IndexSpec, OptionValue, memory_size
from alcid.paimon_metadata.snapshot import Snapshot
from alcid.plan.threads import run_in_threads
from alcid.tables.build_report import BuildReport, IndexInfo, SkippedCounter
from alcid.tables.folder_indexes import is_among, require_choice
from alcid.tables.paimon.asked_indexes import given_specs, table_specs
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.index_plan import (
    Intent,
    intents,
    place_every,
    read_containers,
    table_name,
)
from alcid.tables.paimon.index_preview import lost_indexes, preview
from alcid.tables.paimon.index_swap import Swap, commit_swaps, first_numbers, swap_of
from alcid.tables.paimon.index_work import IndexWork, Made
from alcid.tables.progress import Progress, telling

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["build", "drop", "indexes", "make_swaps"]

_THRESHOLD = "file-index.in-manifest-threshold"
_LOST = "changed or removed by another while it was indexed"


def build(
    table: PaimonTable,
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
            skipped.add(Kind.index(*index), reason, path)
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
        skipped.found,
        None if snapshot is None else snapshot.id,
        lost_indexes(files, placed, containers, [plan[made.item] for made in changed]),
    )


def indexes(table: PaimonTable) -> list[IndexInfo]:
    """What indexes there are, by column, as the table spells it now, and type.

    Columns that the table has no more are left out.
    """
    files = table.snapshot
    placed, _ = place_every(files)
    found = read_containers(table.storage, placed)
    sizes: dict[Kind, list[tuple[int, int]]] = {}
    for one, container in zip(placed, found, strict=True):
        if isinstance(container, Container):
            own = files.schemas[one.file.schema_id]
            for entry in container.entries:
                column = table_name(entry.column, own, files.schema)
                if column is not None:
                    kind = Kind.index(column, entry.index_type)
                    sizes.setdefault(kind, []).append((entry.length, one.file.rows))
    has = sum(container is None or isinstance(container, Container) for container in found)
    damaged = len(found) - has
    if damaged:  # what is in them is not known, but what should be
        for spec in table_specs(files.schema)[0]:
            sizes.setdefault(Kind.index(spec.column, spec.index_type), [])
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
    table: PaimonTable,
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
                    Kind.index(table_name(column, own, files.schema) or "", index_type),
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


def _writable(table: PaimonTable) -> PaimonFiles:
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
    table: PaimonTable,
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
    table: PaimonTable,
    plan: Sequence[Intent],
    threshold: int,
    progress: Progress | bool | None,
) -> tuple[list[Made], list[Swap]]:
    """Make containers: what was made, and the changes of data files, which nobody has committed."""
    state = table.snapshot.state
    numbers = first_numbers(state, [intent.placed for intent in plan])
    work = IndexWork(table.storage, plan, numbers, threshold, table.snapshot.options)
    sizes = np.array([intent.placed.file.size for intent in plan], np.int64)
    with telling(progress, "indexing", len(plan)) as tell:
        done = [made for part in table.engine.map(work, sizes, tell) for made in part]
    swaps = run_in_threads(
        lambda made: swap_of(table.storage, state, plan[made.item], numbers[made.item], made),
        [made for made in done if not made.failed and not made.is_same],
        waiting=table.storage.remote,
    )
    return done, swaps
