"""Other indexes for data files that stay: each goes, and comes again as the same with others.

What makes a file the same is, among others, its index. Readers take a file for deleted if it was
ever deleted *as it is*, so it must never come back as it once was, see
`alcid.paimon_metadata.manifest`: an index file gets a name that was never used, and what would be
in the manifest as it was before gets an index file as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count, groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from alcid.bundle import Kind
from alcid.errors import (
    ColumnError,
    FileGoneError,
    FormatError,
    LimitError,
    NameTakenError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.file_index.container import Container, write_container
from alcid.options import IndexSpec
from alcid.orc_file import OrcScan, open_orc_scans
from alcid.paimon_metadata.commit import Change
from alcid.paimon_metadata.manifest import ManifestEntry
from alcid.paimon_metadata.snapshot import Snapshot
from alcid.paimon_metadata.table_state import TableState
from alcid.parquet_file import ParquetScan, open_scans
from alcid.storage import Storage
from alcid.tables.engine import Share, Tell
from alcid.tables.in_order import in_order
from alcid.tables.index_payloads import build_payloads
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.index_plan import Found, IndexName, Intent, read_containers
from alcid.types import DataType

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["Made", "Swap", "SwapWork", "commit_swaps", "first_numbers", "swap_of"]


@dataclass(frozen=True, slots=True)
class Made:
    """What a worker made of an intent."""

    item: int
    """The place of the intent."""
    failed: str = ""
    """Why nothing can be done."""
    is_same: bool = False
    """Whether the container is the one that was there."""
    embedded: bytes | None = None
    """A container for the manifest; None if there is a file, or no index."""
    sidecar: str | None = None
    """The name of a file that has the container."""
    size: int = 0
    """Bytes of the container."""
    skipped: Mapping[Kind, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Swap:
    """A data file as it was, and as it is to be."""

    placed: PlacedFile
    added: ManifestEntry
    sidecar: str | None
    """The path of the new index file."""


@dataclass(frozen=True, slots=True, eq=False)
class SwapWork:
    """The work on the containers of data files, for `Engine.map`: an item is an intent."""

    storage: Storage
    intents: Sequence[Intent]
    first_numbers: Sequence[int]
    """What new index files are numbered from, for each intent."""
    threshold: int
    """A container of more bytes gets a file."""

    def __call__(self, share: Share, tell: Tell) -> list[Made]:
        """Make the containers of a share, and write those that are files."""
        found = []
        items = share.items.tolist()
        with closing(in_order(self._make, items, share.threads)) as results:
            for one in results:
                found.append(one)
                tell(1, self.intents[one.item].placed.file.rows)
        return found

    def _make(self, item: int) -> Made:
        intent = self.intents[item]
        try:
            payloads, skipped = _build(self.storage, intent)
            (before,) = read_containers(self.storage, [intent.placed])
            payloads |= _copies(before, intent)
            data = write_container(payloads) if payloads else b""
            if _is_same(before, data):
                return Made(item, is_same=True, skipped=skipped)
            if not data:
                return Made(item, skipped=skipped)
            if len(data) <= self.threshold:
                return Made(item, embedded=data, size=len(data), skipped=skipped)
            name = put_sidecar(self.storage, intent.placed, self.first_numbers[item], data)
            return Made(item, sidecar=name, size=len(data), skipped=skipped)
        except FileGoneError as error:  # compacted and expired meanwhile
            return Made(item, failed=str(error))
        except StorageError:
            raise  # not the file's fault, so that others would fail too
        except (FormatError, LimitError, UnsupportedError) as error:
            return Made(item, failed=str(error))


def _build(
    storage: Storage, intent: Intent
) -> tuple[dict[IndexName, bytes | None], dict[Kind, str]]:
    """Read the columns, one at a time, and build their indexes."""
    payloads: dict[IndexName, bytes | None] = {}
    skipped: dict[Kind, str] = {}
    if not intent.build:
        return payloads, skipped
    placed = intent.placed
    source = storage.source(placed.path, placed.file.size)
    scan: ParquetScan | OrcScan
    (scan,) = (open_orc_scans if placed.format == "orc" else open_scans)(
        [source], read_ranges=storage.read_ranges
    )
    rows = sum(scan.group_rows)
    if rows != placed.file.rows:
        raise FormatError("rows", file=source.name, found=rows, expected=placed.file.rows)
    wanted = sorted(intent.build, key=lambda one: (one[0].top_level, *_name(one[0])))
    for column, group in groupby(wanted, key=lambda one: one[0].top_level):
        some = list(group)
        try:
            values = scan.read(None, [column], read_ranges=storage.read_ranges).column(0)
        except ColumnError as error:
            skipped |= {Kind.index(*_name(spec)): str(error) for spec, _ in some}
            continue
        built, refused = build_payloads(_times(values, some[0][1]), some)
        payloads |= {(kind.column, kind.index_type): data for kind, data in built.items()}
        skipped |= refused
    return payloads, skipped


def _name(spec: IndexSpec) -> IndexName:
    return spec.column, spec.index_type


def _times(values: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    """The values; times of day of ORC files, which are numbers there, as times."""
    is_number = data_type.root == "TIME" and pa.types.is_integer(values.type)
    return values.cast(pa.time32("ms")) if is_number else values


def _copies(before: Found, intent: Intent) -> dict[IndexName, bytes | None]:
    """The payloads that stay.

    Raises:
        FormatError: They are not there any more.
    """
    if not intent.keep:
        return {}
    if isinstance(before, FormatError):
        raise before
    entries = {} if before is None else {(e.column, e.index_type): e for e in before.entries}
    found: dict[IndexName, bytes | None] = {}
    for name in intent.keep:
        if before is None or name not in entries:
            raise FormatError(f"no {name[1]} of {name[0]!r}", file=intent.placed.path)
        section = None if entries[name].is_empty else before.section(entries[name])
        found[name] = None if section is None else section.read(0, section.length)
    return found


def _is_same(before: Found, data: bytes) -> bool:
    """Whether a file has this container already; empty for none."""
    if not isinstance(before, Container):
        return before is None and not data
    if not data:
        return not before.entries
    size = before.source.size
    return size == len(data) and before.source.read(0, size) == data


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


def put_sidecar(storage: Storage, placed: PlacedFile, first: int, data: bytes) -> str:
    """Write an index file; its name, which is not taken: `x.parquet.index`, `x.parquet-1.index`."""
    for number in count(first):
        name = f"{placed.file.name}-{number}.index" if number else f"{placed.file.name}.index"
        try:
            storage.put(placed.folder + name, data)
        except NameTakenError:
            continue
        return name
    raise AssertionError("numbers do not end")


def swap_of(
    storage: Storage, state: TableState, intent: Intent, first_number: int, made: Made
) -> Swap:
    """The change of a data file; where it would be as it once was, it gets an index file."""
    placed, sidecar = intent.placed, made.sidecar
    entry = _with_index(placed.entry, sidecar, made.embedded)
    if entry.identity in state.deleted:
        data = made.embedded or write_container({})
        sidecar = put_sidecar(storage, placed, first_number, data)
        entry = _with_index(placed.entry, sidecar, None)
    return Swap(placed, entry, None if sidecar is None else placed.folder + sidecar)


def _with_index(entry: ManifestEntry, sidecar: str | None, embedded: bytes | None) -> ManifestEntry:
    file = entry.file
    others = [name for name in file.extra_files if name not in file.index_files]
    extra_files = (*others, *(() if sidecar is None else (sidecar,)))
    return entry.with_file(replace(file, extra_files=extra_files, embedded_index=embedded))


def commit_swaps(
    table: PaimonTable, swaps: Iterable[Swap]
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
        lost[:] = [one for one in every if not _is_possible(one, state)]
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

    snapshot = table.committer().commit(plan) if every else None
    # Who lost against another may have written the very file that the other has committed.
    needless = [
        one.sidecar
        for one in lost
        if one.sidecar is not None and one.sidecar.rpartition("/")[2] not in used
    ]
    table.storage.delete(needless)
    return snapshot, frozenset(one.placed.path for one in lost)


def _is_possible(swap: Swap, state: TableState) -> bool:
    return (
        swap.placed.entry.identity in state.live
        and swap.added.identity not in state.live
        and swap.added.identity not in state.deleted
    )
