"""Other indexes for data files that stay: each goes, and comes again as the same with others.

What makes a file the same is, among others, its index. Readers take a file for deleted if it was
ever deleted *as it is*, so it must never come back as it once was, see
`metadata.manifest`. So an index file gets a name that was never used, and what would
be as it was before gets an index file as well, if need be one without an index.

Paimon counts on from the index file that there is: `x.parquet.index`, `x.parquet-1.index`. Without
one it would begin again, with a name that was used. So a file that had one always has one.

What was in the manifest, Paimon's `rewrite_file_index` would build again, byte for byte, and with
it the file as it was: all of its rows would be gone. It passes on the files beside a data file that
are no indexes. So where an index in the manifest is replaced, a new one of these comes beside the
file, `x.parquet-<random>.replaced`, by which the file is another for good.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from alcid.errors import ConflictError
from alcid.formats.file_index.container import write_container
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.manifest import ManifestEntry
from alcid.tables.paimon.metadata.snapshot import Snapshot
from alcid.tables.paimon.metadata.table_state import TableState
from alcid.tables.paimon.write.index_plan import Intent, Made, put_sidecar

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

__all__ = ["Swap", "commit_swaps", "first_numbers", "is_possible", "swap_of"]

_REPLACED = ".replaced"
_NOTE = (
    b"It tells its data file from what it was with another index. It is removed along with it.\n"
)


@dataclass(frozen=True, slots=True)
class Swap:
    """A data file as it was, and as it is to be."""

    placed: PlacedFile
    added: ManifestEntry
    written: tuple[str, ...]
    """The paths of the files that were written for it."""


def first_numbers(state: TableState, placed: Sequence[PlacedFile]) -> list[int]:
    """For each data file the least number of an index file that none had, as far as is known."""
    files = {(one.entry.partition, one.entry.bucket, one.file.name) for one in placed}
    numbers = dict.fromkeys(files, 0)
    for partition, bucket, _, name, extra_files, *_ in (*state.live, *state.deleted):
        place = partition, bucket, name
        if extra_files and place in numbers:
            used = (_number(name, extra) + 1 for extra in extra_files)
            numbers[place] = max(numbers[place], *used)
    return [numbers[one.entry.partition, one.entry.bucket, one.file.name] for one in placed]


def _number(data_file: str, extra_file: str) -> int:
    """The number in the name of an index file; -1 if it is none."""
    found = re.fullmatch(rf"{re.escape(data_file)}(?:-([0-9]{{1,9}}))?\.index", extra_file)
    return -1 if found is None else int(found[1] or 0)


def swap_of(
    storage: Storage, state: TableState, intent: Intent, first_number: int, made: Made
) -> Swap:
    """The change of a data file, which gets an index file where it must have one."""
    placed, sidecar = intent.placed, made.sidecar
    others = _beside(storage, placed)
    entry = _with_index(placed.entry, others, sidecar, made.embedded)
    if sidecar is None and (first_number or entry.identity in state.deleted):
        data = made.embedded or write_container({})
        sidecar = put_sidecar(storage, placed, first_number, data)
        entry = _with_index(placed.entry, others, sidecar, None)
    new = [name for name in entry.file.extra_files if name not in placed.file.extra_files]
    return Swap(placed, entry, tuple(placed.folder + name for name in new))


def _beside(storage: Storage, placed: PlacedFile) -> list[str]:
    """The files beside a data file that are no indexes, with a new one if need be."""
    file = placed.file
    others = [name for name in file.extra_files if name not in file.index_files]
    if file.embedded_index is None:
        return others
    name = f"{file.name}-{uuid.uuid4().hex[:8]}{_REPLACED}"
    storage.put(placed.folder + name, _NOTE)
    return [*(other for other in others if not other.endswith(_REPLACED)), name]


def _with_index(
    entry: ManifestEntry, others: Sequence[str], sidecar: str | None, embedded: bytes | None
) -> ManifestEntry:
    extra_files = (*others, *(() if sidecar is None else (sidecar,)))
    return entry.with_file(replace(entry.file, extra_files=extra_files, embedded_index=embedded))


def commit_swaps(
    table: OpenPaimonTable, swaps: Iterable[Swap]
) -> tuple[Snapshot | None, frozenset[str]]:
    """Commit what can be.

    Returns:
        The snapshot, if there is a new one; and the paths of data files that are gone, or that
        others have changed, since they were read.
    """
    every = list(swaps)
    lost: list[Swap] = []
    used: set[str] = set()

    def plan(state: TableState) -> Change | None:
        lost[:] = [one for one in every if not is_possible(one, state)]
        gone = {one.placed.path for one in lost}
        left = [one for one in every if one.placed.path not in gone]
        used.clear()
        used.update(name for entry in state.entries for name in entry.file.extra_files)
        if not left:
            return None
        return Change(
            kind="COMPACT",
            deleted=[one.placed.entry for one in left],
            added=[one.added for one in left],
        )

    snapshot = _commit(table, plan) if every else None
    # Two who write the same bytes at the same moment may share a file: it stays if one has won.
    needless = [path for one in lost for path in one.written if path.rpartition("/")[2] not in used]
    table.storage.delete(needless)
    return snapshot, frozenset(one.placed.path for one in lost)


def _commit(table: OpenPaimonTable, plan: Callable[[TableState], Change | None]) -> Snapshot | None:
    while True:
        schema = table.snapshot.schema.id
        try:
            return table.committer().commit(plan, cached=table.snapshot.state)
        except ConflictError:
            # A new schema does not matter here: files stay what they are.
            table.refresh()
            if table.snapshot.schema.id == schema:
                raise


def is_possible(swap: Swap, state: TableState) -> bool:
    """Whether a data file is in a state as it was read, and was never as it is to be."""
    return (
        swap.placed.entry.identity in state.live
        and swap.added.identity not in state.live
        and swap.added.identity not in state.deleted
    )
