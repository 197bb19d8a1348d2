"""Replace the indexes of data files that stay: each file is deleted, and added with other indexes.

A file is identified by its index, among other things. Readers take a file for deleted if it was
ever deleted *as it is*, so it must never come back as it once was (see `metadata.manifest`). So an
index file gets a name that was never used, and a file that would be as it was before gets an index
file as well, if need be an empty one.

Paimon numbers on from the existing index file: `x.parquet.index`, `x.parquet-1.index`. Without one
it would start again, with a name that was used. So a file that had one always has one.

An embedded index Paimon's `rewrite_file_index` would build again, byte for byte, and with it the
file as it was: all of its rows would be gone. But it passes on extra files that are no indexes. So
where an embedded index is replaced, the file gets a new one of these,
`x.parquet-<random>.replaced`, which makes it different for good.
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
from alcid.tables.paimon.write.index_plan import BuiltContainer, FilePlan, put_sidecar

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

_REPLACED = ".replaced"
_NOTE = (
    b"It tells its data file from what it was with another index. It is removed along with it.\n"
)


@dataclass(frozen=True, slots=True)
class Swap:
    """A data file as it was, and its new manifest entry."""

    placed: PlacedFile
    added: ManifestEntry
    written: tuple[str, ...]
    """The paths of the new files."""


def first_numbers(state: TableState, placed: Sequence[PlacedFile]) -> list[int]:
    """For each data file the smallest unused number of an index file, as far as is known."""
    numbers = {(*file.entry.bucket_id, file.file.name): 0 for file in placed}
    for partition, bucket, _, name, extra_files, *_ in (*state.live, *state.deleted):
        data_file = partition, bucket, name
        if extra_files and data_file in numbers:
            used = (_number(name, extra) + 1 for extra in extra_files)
            numbers[data_file] = max(numbers[data_file], *used)
    return [numbers[*file.entry.bucket_id, file.file.name] for file in placed]


def _number(data_file: str, extra_file: str) -> int:
    """The number in the name of an index file; -1 if it is none."""
    match = re.fullmatch(rf"{re.escape(data_file)}(?:-([0-9]{{1,9}}))?\.index", extra_file)
    return -1 if match is None else int(match[1] or 0)


def make_swap(
    storage: Storage,
    state: TableState,
    file_plan: FilePlan,
    first_number: int,
    made: BuiltContainer,
) -> Swap:
    """The swap of a data file, which gets an index file where it must have one."""
    placed, sidecar = file_plan.placed, made.sidecar
    others = _beside(storage, placed)
    entry = _with_index(placed.entry, others, sidecar, made.embedded)
    if sidecar is None and (first_number or entry.identity in state.deleted):
        data = made.embedded or write_container({})
        sidecar = put_sidecar(storage, placed, first_number, data)
        entry = _with_index(placed.entry, others, sidecar, None)
    new = [name for name in entry.file.extra_files if name not in placed.file.extra_files]
    return Swap(placed, entry, tuple(placed.folder + name for name in new))


def _beside(storage: Storage, placed: PlacedFile) -> list[str]:
    """The extra files that are no indexes, with a new one if need be."""
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
    """Commit all swaps that are still possible.

    Returns:
        The snapshot, if there is a new one; and the paths of data files that others have removed or
        changed since they were read.
    """
    swaps = list(swaps)
    lost: list[Swap] = []
    used: set[str] = set()

    def plan(state: TableState) -> Change | None:
        lost[:] = [swap for swap in swaps if not is_possible(swap, state)]
        gone = {swap.placed.path for swap in lost}
        left = [swap for swap in swaps if swap.placed.path not in gone]
        used.clear()
        used.update(name for entry in state.entries for name in entry.file.extra_files)
        if not left:
            return None
        return Change(
            kind="COMPACT",
            deleted=[swap.placed.entry for swap in left],
            added=[swap.added for swap in left],
        )

    snapshot = _commit(table, plan) if swaps else None
    # Two builds that write the same bytes at once may share a file: it stays if one has won.
    unused = [path for swap in lost for path in swap.written if path.rpartition("/")[2] not in used]
    table.storage.delete(unused)
    return snapshot, frozenset(swap.placed.path for swap in lost)


def _commit(table: OpenPaimonTable, plan: Callable[[TableState], Change | None]) -> Snapshot | None:
    while True:
        schema = table.snapshot.schema.id
        try:
            return table.committer().commit(plan, cached=table.snapshot.state)
        except ConflictError:
            # A new schema does not matter: files stay as they are.
            table.refresh()
            if table.snapshot.schema.id == schema:
                raise


def is_possible(swap: Swap, state: TableState) -> bool:
    """Whether a state has a data file as it was read, and never had it as it shall be."""
    return (
        swap.placed.entry.identity in state.live
        and swap.added.identity not in state.live
        and swap.added.identity not in state.deleted
    )
