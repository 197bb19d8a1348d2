"""Repair of a Paimon table: what `verify` finds is mended, as far as nothing is lost by it.

One commit, a snapshot of kind COMPACT, has all of it: index files with vectors and hashes, keys,
file indexes. Then the table is verified again, and what is still wrong is told: what nobody can
mend is not touched. What another changes at the same time is looked at again.

File indexes that are not what their data says, built anew: those of these files, and no other.

An index is built again by the options that its bytes show, one that cannot be of its file is
dropped. Where nothing of a container can be read, the options of the table say what it is to have.

One look at what is wrong with a Paimon table, and one commit that mends it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Final

from alcid.errors import (
    ColumnError,
    ConflictError,
    FileGoneError,
    FormatError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.file_index.container import Container, Entry
from alcid.formats.file_index.keys import key_type
from alcid.options import IndexOptions, IndexSpec, default_options
from alcid.tables.maintenance.clean import CleanReport, check_age
from alcid.tables.maintenance.file_check import stored_options
from alcid.tables.maintenance.findings import (
    ROLL_BACK,
    Finding,
    Mended,
    NotMended,
    RepairReport,
    VerifyReport,
)
from alcid.tables.maintenance.paimon_clean import clean
from alcid.tables.maintenance.paimon_keys import keyed_for_reading
from alcid.tables.maintenance.paimon_repair_vectors import (
    KeyRepair,
    VectorMender,
    VectorRepair,
    is_unchanged,
    mend_keys,
)
from alcid.tables.maintenance.paimon_verify import verify
from alcid.tables.paimon.data_files import PlacedFile, table_paths
from alcid.tables.paimon.deletion_vectors import vectors_twice
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.indexes import table_specs
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    Buckets,
    buckets_of,
)
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.manifest import BucketId
from alcid.tables.paimon.metadata.snapshot import Snapshot
from alcid.tables.paimon.metadata.table_state import DELETION_VECTORS, IndexEntry, TableState
from alcid.tables.paimon.write.build import make_swaps
from alcid.tables.paimon.write.index_plan import (
    Found,
    Intent,
    intents,
    place_every,
    read_containers,
    table_name,
)
from alcid.tables.paimon.write.index_swap import Swap, is_possible
from alcid.tables.progress import Progress
from alcid.tables.reports import SkippedCounter
from alcid.types import INDEX_TYPES, DataType

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

__all__ = ["IndexRepair", "RepairRound", "RoundDone", "is_of_index", "mend_indexes", "repair"]

_CONTAINER = "index"
"""What `verify` calls a container that cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexRepair:
    """A data file with other indexes; nothing is committed."""

    swap: Swap
    mended: tuple[Mended, ...]


def is_of_index(finding: Finding) -> bool:
    """Whether something is wrong with a file index."""
    kind, of, _ = finding.what.partition(" of ")
    return finding.what == _CONTAINER or (bool(of) and kind in INDEX_TYPES)


def mend_indexes(
    table: OpenPaimonTable, wrong: Mapping[str, Sequence[Finding]]
) -> list[IndexRepair]:
    """Build the indexes that are wrong; files whose data cannot be read are passed over.

    Args:
        table: The table.
        wrong: What was found, by the paths of data files.
    """
    files = table.snapshot
    placed = [one for one in place_every(files)[0] if one.path in wrong]
    plan = [
        _intent(files, one, container, {finding.what for finding in wrong[one.path]})
        for one, container in zip(placed, read_containers(table.storage, placed), strict=True)
    ]
    threshold = files.options.file_index_in_manifest_threshold
    _, swaps = make_swaps(table, plan, threshold, progress=False)
    intents_of = {one.placed.path: one for one in plan}
    return [
        IndexRepair(
            swap,
            tuple(
                Mended.of(finding, _done(intents_of[swap.placed.path], finding.what, files))
                for finding in wrong[swap.placed.path]
            ),
        )
        for swap in swaps
    ]


def _intent(files: PaimonFiles, placed: PlacedFile, found: Found, wrong: Collection[str]) -> Intent:
    """What to build for a file, and what to keep of what it has."""
    if not isinstance(found, Container):
        specs, _ = table_specs(files.schema)
        return Intent(placed, _built(files, placed, specs))
    own = files.schemas[placed.file.schema_id]
    specs, keep = [], []
    for entry in found.entries:
        column = table_name(entry.column, own, files.schema)
        is_known = entry.index_type in INDEX_TYPES
        label = f"{entry.index_type} of {column or entry.column!r}"
        if not is_known or (label not in wrong and _CONTAINER not in wrong):
            keep.append((entry.column, entry.index_type))
        elif column is not None:
            options = _options(found, entry, own.types)
            specs.append(IndexSpec(column, entry.index_type, options))
    return Intent(placed, _built(files, placed, specs), tuple(keep))


def _built(
    files: PaimonFiles, placed: PlacedFile, specs: Sequence[IndexSpec]
) -> tuple[tuple[IndexSpec, DataType], ...]:
    """Indexes as the file spells them, as far as it can have them."""
    made = intents(files, [placed], specs, [None], SkippedCounter(), rebuild=True)
    return made[0].build if made else ()


def _options(container: Container, entry: Entry, types: Mapping[str, DataType]) -> IndexOptions:
    """The options of an index, as far as its bytes show them."""
    try:
        spec = IndexSpec(entry.column, entry.index_type, default_options(entry.index_type))
        _, data_type = spec.resolve(types)
        payload = b"" if entry.is_empty else container.section(entry).read(0, entry.length)
        return stored_options(entry.index_type, payload, key_type(data_type))
    except (ColumnError, FormatError, UnsupportedError):
        return default_options(entry.index_type)


def _done(intent: Intent, what: str, files: PaimonFiles) -> str:
    own = files.schemas[intent.placed.file.schema_id]
    built = {
        f"{spec.index_type} of {table_name(spec.column, own, files.schema)!r}"
        for spec, _ in intent.build
    }
    return "built anew" if what in built or (what == _CONTAINER and built) else "dropped"


@dataclass(frozen=True, slots=True)
class RoundDone:
    """What came of it."""

    mended: tuple[Mended, ...]
    snapshot: Snapshot | None
    has_lost: bool
    """Whether another has changed meanwhile what was to be mended."""


@dataclass(frozen=True, slots=True, eq=False)
class _BucketRepair:
    """Other index files for a bucket."""

    place: BucketId
    deleted: tuple[IndexEntry, ...]
    added: tuple[IndexEntry, ...]
    mended: tuple[Mended, ...]


class RepairRound:
    """One try, for the table as it is known."""

    def __init__(self, table: OpenPaimonTable, found: VerifyReport) -> None:
        """Take what is wrong; nothing is done yet."""
        files = table.snapshot
        self._table, self._state, self._options = table, files.state, files.options
        self._has_key = bool(files.schema.primary_keys)
        self._keyed = keyed_for_reading(
            table.storage, files.schema, dict(files.schemas), files.options
        )
        self._paths = table_paths(files.schema, files.options)
        self._base = buckets_of(files.state, self._paths)
        self._wrong: dict[str, list[Finding]] = {}
        for finding in (*found.problems, *found.warnings):
            self._wrong.setdefault(finding.file, []).append(finding)
        self._written: list[str] = []
        self._buckets: list[_BucketRepair] = []
        self._indexes: list[IndexRepair] = []
        self._used: list[_BucketRepair] = []
        self._swapped: list[IndexRepair] = []

    def run(self) -> RoundDone:
        """Write what mends the table, and commit it.

        Raises:
            ConflictError: The schema of the table was changed meanwhile.
            FileGoneError: Another has replaced a file, and it is gone.
        """
        try:
            self._buckets = self._mend_buckets()
            self._indexes = self._mend_indexes()
            if not self._buckets and not self._indexes:
                return RoundDone((), None, has_lost=False)
            made = self._table.committer().commit(self._plan, cached=self._state)
        except (ConflictError, FileGoneError):  # after another error the snapshot may be there
            self._remove(self._written)
            raise
        if made is None:
            self._used, self._swapped = [], []
        self._remove_unused()
        done = [*(one.mended for one in self._used), *(one.mended for one in self._swapped)]
        has_lost = len(done) < len(self._buckets) + len(self._indexes)
        return RoundDone(tuple(chain.from_iterable(done)), made, has_lost)

    def _mend_buckets(self) -> list[_BucketRepair]:
        vectors = self._mend_vectors()
        keys = {one.place: one for one in self._mend_keys(vectors)} if self._has_key else {}
        return [
            _composed(place, vectors.get(place, VectorRepair()), keys.get(place))
            for place in dict.fromkeys((*vectors, *keys))
        ]

    def _mend_vectors(self) -> dict[BucketId, VectorRepair]:
        mender = VectorMender(self._table.storage, self._options, has_key=self._has_key)
        held: dict[BucketId, list[IndexEntry]] = {}
        for entry in self._state.indexes:
            if entry.index_type == DELETION_VECTORS:
                held.setdefault((entry.partition, entry.bucket), []).append(entry)
        found = {}
        for place, entries in held.items():
            bucket = self._base[place]
            twice = [name for name, _ in vectors_twice(entries)]
            if twice or any(self._path(bucket, one) in self._wrong for one in entries):
                made = mender.mend(bucket, entries, self._wrong, twice)
                self._note(bucket, made.added)
                if made.mended:
                    found[place] = made
        return found

    def _mend_keys(self, vectors: Mapping[BucketId, VectorRepair]) -> list[KeyRepair]:
        """Mend the keys of buckets that something was found of, as their vectors are to be."""
        broken = {
            entry.name: bucket.id
            for bucket in self._base
            for entry in bucket.hashes
            if self._path(bucket, entry) in self._wrong
        }
        folders = {
            f"{path.rpartition('/')[0]}/"
            for path, found in self._wrong.items()
            if any(one.what in ("keys", "hashes of keys") for one in found)
        }
        chosen = {one.id for one in self._base if one.folder in folders}
        chosen |= {*vectors, *broken.values()}
        if not chosen:
            return []
        try:
            self._options.require_writable("compact")
        except UnsupportedError:  # which is told of what stays wrong
            return []
        partitions: dict[bytes, dict[int, Bucket]] = {}
        for bucket in self._base:
            now = _with_vectors(bucket, vectors.get(bucket.id, VectorRepair()))
            partitions.setdefault(bucket.partition, {})[bucket.number] = now
        buckets = Buckets(self._paths, partitions)
        indexes = self._state.indexes
        made = mend_keys(self._table.engine, self._keyed, buckets, chosen, indexes, broken.keys())
        for one in made:
            self._note(self._base[one.place], one.added)
        return made

    def _mend_indexes(self) -> list[IndexRepair]:
        wrong = {
            path: [one for one in found if is_of_index(one)] for path, found in self._wrong.items()
        }
        made = mend_indexes(self._table, {path: found for path, found in wrong.items() if found})
        self._written += [path for one in made for path in one.swap.written]
        return made

    def _plan(self, state: TableState) -> Change | None:
        """What goes with a state: what was made for what is as it was."""
        now = buckets_of(state, self._paths)
        self._used = [one for one in self._buckets if self._holds(one, state, now)]
        self._swapped = [one for one in self._indexes if is_possible(one.swap, state)]
        if not self._used and not self._swapped:
            return None
        return Change(
            kind="COMPACT",
            deleted=[one.swap.placed.entry for one in self._swapped],
            added=[one.swap.added for one in self._swapped],
            index_deleted=[entry for one in self._used for entry in one.deleted],
            index_added=[entry for one in self._used for entry in one.added],
        )

    def _holds(self, repair: _BucketRepair, state: TableState, now: Buckets) -> bool:
        if self._has_key:
            return is_unchanged(self._keyed, repair.place, self._base, now)
        live = {one.file.name for one in now[repair.place].files}
        named = {place.data_file for one in repair.added for place in one.ranges or ()}
        return named <= live and all(one in state.indexes for one in repair.deleted)

    def _note(self, bucket: Bucket, added: Sequence[IndexEntry]) -> None:
        """Take note of new files; what stays of an index file has the name of that."""
        known = {one.name for one in self._state.indexes}
        self._written += [self._path(bucket, one) for one in added if one.name not in known]

    def _remove_unused(self) -> None:
        """Remove what no snapshot names."""
        used = {
            self._path(self._base[one.place], entry) for one in self._used for entry in one.added
        }
        used |= {path for one in self._swapped for path in one.swap.written}
        self._remove([path for path in self._written if path not in used])

    def _remove(self, paths: Sequence[str]) -> None:
        with suppress(StorageError):  # `clean` removes them later
            self._table.storage.delete(paths)

    def _path(self, bucket: Bucket, entry: IndexEntry) -> str:
        if entry.external_path is not None:  # outside of the table, where nothing is looked at
            return entry.external_path
        return bucket.index_path(entry, beside_data=self._options.index_file_in_data_file_dir)


def _with_vectors(bucket: Bucket, repair: VectorRepair) -> Bucket:
    """A bucket as it is to be."""
    kept = (one for one in bucket.vectors if one not in repair.deleted)
    return replace(bucket, vectors=(*kept, *repair.added))


def _composed(place: BucketId, vectors: VectorRepair, keys: KeyRepair | None) -> _BucketRepair:
    """What is left of both, as the second was made for what the first makes."""
    if keys is None:
        return _BucketRepair(place, vectors.deleted, vectors.added, vectors.mended)
    return _BucketRepair(
        place,
        (*vectors.deleted, *(one for one in keys.deleted if one not in vectors.added)),
        (*(one for one in vectors.added if one not in keys.deleted), *keys.added),
        (*vectors.mended, *keys.mended),
    )


_TRIES: Final = 10


def repair(
    table: OpenPaimonTable,
    older_than: timedelta = timedelta(days=1),
    *,
    progress: Progress | bool | None = False,
) -> RepairReport:
    """Mend what can be mended, and remove what no snapshot needs.

    Args:
        table: The table; it is refreshed.
        older_than: As for `clean`.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: An age below 0.
        UnsupportedError: The table was opened as it was in the past, or has an option that is not
            followed.
        ConflictError: Others have changed the same files every time.
    """
    check_age(older_than)
    begin = time.monotonic()
    mended: list[Mended] = []
    snapshots: list[int] = []
    with table.engine.settings():
        found, tries = _look(table, progress), _TRIES
        while tries:
            try:
                done = RepairRound(table, found).run()
            except (ConflictError, FileGoneError):
                if tries == 1:
                    raise
                done = RoundDone((), None, has_lost=True)
            mended += done.mended
            snapshots += [] if done.snapshot is None else [done.snapshot.id]
            if done.snapshot is None and not done.has_lost:
                break
            before, found = found, _look(table, progress)
            tries -= done.has_lost or not found.is_better_than(before)
            if not tries and done.has_lost:
                raise ConflictError(
                    f"{table.location}: others have changed the same files each time"
                )
        cleaned = _clean(table, older_than)
    return RepairReport(
        tuple(mended),
        tuple(NotMended.of(one, _advice(one, table)) for one in found.problems),
        cleaned.removed,
        cleaned.kept,
        snapshots[-1] if snapshots else None,
        len(snapshots),
        time.monotonic() - begin,
    )


def _look(table: OpenPaimonTable, progress: Progress | bool | None) -> VerifyReport:
    """The table as it is now, if it may be changed; and what is wrong with it."""
    table.refresh()
    table.committer()  # there is none of a table of the past
    table.snapshot.options.require_writable("build")
    return verify(table.storage, table.engine, progress=progress)


def _clean(table: OpenPaimonTable, older_than: timedelta) -> CleanReport:
    try:
        return clean(table.storage, older_than=older_than)
    except FormatError:  # of an older snapshot, which is told: what it needs is not known
        return CleanReport(dry_run=False, merged=(), written=(), removed=(), kept=(), seconds=0)


def _advice(finding: Finding, table: OpenPaimonTable) -> str:
    """What to do about something that is still wrong."""
    has_key = bool(table.snapshot.schema.primary_keys)
    if finding.what in ("keys", "hashes of keys"):
        try:
            table.snapshot.options.require_writable("compact")
        except UnsupportedError as error:
            return str(error)
        return "compact the table"
    if finding.what.startswith("statistics of "):
        anew = "compact the table" if has_key else "delete its rows, and append them again"
        return f"queries may miss rows: {anew}"
    if finding.what == "older snapshots":
        return "nothing was removed: restore the file, or let the snapshot expire"
    if is_of_index(finding):
        return "its data cannot be read for another: restore the data file"
    return ROLL_BACK
