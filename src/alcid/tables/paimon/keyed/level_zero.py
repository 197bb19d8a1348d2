"""A bucket is settled: level 0 becomes empty, and of the rows of a key one is live.

    1. `runs` says which files are taken, and the level that they go to.
    2. `sifting` finds the rows that newer ones replace. Those of files that are not taken are
       marked in deletion vectors.
    3. A taken file whose keys no other has only changes its level. Others are merged: their live
       rows are written anew, in the order of the keys.

Not one file of level 0 may stay behind that is older than a file which is lifted: by the rule that
level 0 is newest, its rows would win again.

Many buckets settled by workers.

Upserts that were killed between their two snapshots: which there are, and where they lie.

    "properties": {"alcid.level-0.<commit user>#<commit identifier>": "APPEND"}

The first snapshot of an upsert says so, the second takes it back. Whoever compacts next finishes
what is still told, so that batch readers see the whole of an upsert at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

import numpy as np

from alcid.errors import ConflictError, FileGoneError, FormatError, StorageError
from alcid.formats.deletion_vector import DeletionVector
from alcid.storage import Storage
from alcid.storage.threads import in_order
from alcid.tables.engine import (
    Engine,
    Progress,
    Share,
    Tell,
    Threads,
    telling,
)
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    KeyedTable,
    Place,
    Settlement,
    index_file_path,
    read_vectors,
    write_vectors,
)
from alcid.tables.paimon.keyed.key_files import Choice, KeyRun, choose_all, choose_runs, write_runs
from alcid.tables.paimon.keyed.key_reading import KeyReader
from alcid.tables.paimon.keyed.live_rows import Seen, key_sections, merge_rows, sift
from alcid.tables.paimon.merge_on_read import check_levels
from alcid.tables.paimon.metadata.manifest import ManifestEntry
from alcid.tables.paimon.metadata.snapshot import Snapshot, SnapshotFolder
from alcid.tables.paimon.metadata.table_state import IndexEntry, TableState
from alcid.tables.paimon.write.new_files import WrittenData

__all__ = [
    "SettleWork",
    "Upsert",
    "mark_of",
    "places_of",
    "remove_written",
    "settle",
    "settle_buckets",
    "told",
    "walk_back",
]

_COMPACTED = 1  # the source of files that a compaction makes
_LARGE = 0.7  # of the target size: such a file is not written again to be put together with others

_NONE = DeletionVector()

_Section: TypeAlias = Sequence[PlacedFile]


def settle(keyed: KeyedTable, bucket: Bucket, *, full: bool = False) -> Settlement | None:
    """Work out, and write, what a compaction makes of a bucket; nothing is committed.

    Args:
        keyed: The table.
        bucket: As it is.
        full: Bring everything to the top level, without what is deleted. Otherwise level 0 is
            lifted; not in a table without deletion vectors, whose readers merge all levels.

    Returns:
        None if there is nothing to do.

    Raises:
        FormatError: A file is damaged.
        FileGoneError: Another has replaced a file.
        ConflictError: A file is of a schema that came later.
    """
    if not full and not keyed.options.deletion_vectors:
        return None
    choose = choose_all if full else choose_runs
    choice = choose(bucket, keyed.options.num_levels)
    if choice is None:
        return None
    for one in bucket.files:
        if one.file.schema_id not in keyed.schemas:
            raise ConflictError(f"{one.path}: of a schema that came later")
    return _Settling(keyed, bucket, choice, full=full).run()


class _Settling:
    """The work on one bucket."""

    def __init__(self, keyed: KeyedTable, bucket: Bucket, choice: Choice, *, full: bool) -> None:
        self._keyed, self._bucket, self._choice, self._full = keyed, bucket, choice, full
        self._marked = read_vectors(keyed, bucket)
        self._reader = KeyReader(keyed)
        self._seen = sift(keyed, self._reader, bucket, choice, self._marked)

    def run(self) -> Settlement | None:
        """Write what is to be written, and tell what becomes of the bucket."""
        whole, merged = self._sorted_out()
        written: list[WrittenData] = []
        try:
            for group in merged:
                chunks = chain.from_iterable(map(self._rows, group))
                level = self._choice.level
                written += write_runs(
                    self._keyed, self._bucket, chunks, level=level, source=_COMPACTED
                )
            return self._settlement(whole, written)
        except BaseException:
            with suppress(StorageError):  # `clean` removes them later
                self._keyed.storage.delete(path for one in written for path in one.paths)
            raise

    def _sorted_out(self) -> tuple[list[PlacedFile], list[list[_Section]]]:
        """The taken files that stay as they are, but for their level; and those to be merged."""
        living = [one for one in self._choice.files if len(self._dead(one)) < one.file.rows]
        whole: list[PlacedFile] = []
        merged: list[list[_Section]] = []
        for group in self._groups(key_sections(living, self._keyed.schema)):
            files = [one for section in group for one in section]
            is_apart = len(files) == len(group) and all(map(self._is_whole, files))
            if is_apart and (len(files) == 1 or all(map(self._is_there, files))):
                whole.extend(files)
            else:
                merged.append(group)
        return whole, merged

    def _groups(self, sections: Iterable[_Section]) -> Iterator[list[_Section]]:
        """Sections that follow each other, to be written as one; a large file is left alone."""
        group: list[_Section] = []
        large = _LARGE * self._keyed.options.target_file_size
        for section in sections:
            if len(section) == 1 and self._is_whole(section[0]) and section[0].file.size >= large:
                if group:
                    yield group
                yield [section]
                group = []
            else:
                group.append(section)
        if group:
            yield group

    def _dead(self, placed: PlacedFile) -> DeletionVector:
        return self._seen[placed.file.name].dead

    def _is_there(self, placed: PlacedFile) -> bool:
        return placed.file.level == self._choice.level

    def _is_whole(self, placed: PlacedFile) -> bool:
        """Whether a taken file may stay as it is, if no other has its keys."""
        seen: Seen = self._seen[placed.file.name]
        if self._is_there(placed) and placed.file.delete_rows != 0:
            return False  # it can only come to say so as another file
        return seen.is_sorted_run and not (self._full and seen.dead)

    def _rows(self, section: _Section) -> Iterator[KeyRun]:
        dead = {one.file.name: self._dead(one) for one in section}
        return merge_rows(self._reader, section, dead)

    def _settlement(
        self, whole: Sequence[PlacedFile], written: Sequence[WrittenData]
    ) -> Settlement | None:
        bucket, level = self._bucket, self._choice.level
        taken = {one.file.name for one in self._choice.files}
        there = {one.file.name for one in whole if self._is_there(one)}
        lifted = [_on_level(one, level) for one in whole if not self._is_there(one)]
        removed = [one for one in self._choice.files if one.file.name not in there]
        added = [*lifted, *(one.placed for one in written)]
        left = [one for one in bucket.files if one.file.name not in taken - there]
        self._check([*left, *added])
        vectors = self._vectors([*left, *lifted])
        before = bucket.vectors[0] if len(bucket.vectors) == 1 else None
        if not removed and not added and vectors == before:
            return None
        paths = [path for one in written for path in one.paths]
        if vectors is not None and vectors != before:
            paths.append(index_file_path(self._keyed, bucket, vectors))
        return Settlement(
            bucket, tuple(removed), tuple(added), vectors, tuple(paths), self._count_marked()
        )

    def _check(self, files: Sequence[PlacedFile]) -> None:
        """See that no two files of the level share keys: no writer of Java would open it again."""
        of_level = [one for one in files if self._is_there(one)]
        for path, problem in check_levels(of_level, self._keyed.schema):
            raise FormatError(problem, file=path)

    def _vectors(self, files: Iterable[PlacedFile]) -> IndexEntry | None:
        """The index file of the vectors of these files; the one that is there, if it has them."""
        names = [one.file.name for one in files]
        vectors = {
            name: self._seen[name].dead if name in self._seen else self._marked.get(name, _NONE)
            for name in names
        }
        vectors = {name: dead for name, dead in vectors.items() if dead}
        if len(self._bucket.vectors) == 1:
            (before,) = self._bucket.vectors
            told = {one.data_file for one in before.ranges or ()}
            if vectors and vectors == self._marked and told == vectors.keys():
                return before
        return write_vectors(self._keyed, self._bucket, vectors)

    def _count_marked(self) -> int:
        """How many rows that readers saw are not live any more."""
        return sum(
            len(self._dead(one)) - len(self._marked.get(one.file.name, _NONE))
            for one in self._bucket.sorted_files
            if one.file.name in self._seen
        )


def _on_level(placed: PlacedFile, level: int) -> PlacedFile:
    """The same file on another level; none of its rows delete, whatever was told before."""
    entry = placed.entry.on_level(level)
    return replace(placed, entry=entry.with_file(replace(entry.file, delete_rows=0)))


_SMALL = 16 << 20  # bytes that one process has compacted before a job of Spark begins


@dataclass(frozen=True, slots=True, eq=False)
class SettleWork:
    """The work on buckets, for `Engine.map`: an item is a bucket."""

    keyed: KeyedTable
    buckets: Sequence[Bucket]
    full: bool

    def __call__(self, share: Share, tell: Tell) -> list[Settlement | None]:
        """Settle the buckets of a share; if one cannot be, what was written for others goes."""
        made: list[Settlement | None] = []

        def work(bucket: Bucket) -> Settlement | None:
            one = settle(self.keyed, bucket, full=self.full)
            made.append(one)  # at once: it may be behind one that cannot be settled
            return one

        found = []
        buckets = [self.buckets[item] for item in share.items.tolist()]
        try:
            with closing(in_order(work, buckets, share.threads)) as results:
                for bucket, one in zip(buckets, results, strict=True):
                    found.append(one)
                    tell(len(bucket.files), sum(placed.file.rows for placed in bucket.files))
        except BaseException:
            remove_written(self.keyed.storage, made)
            raise
        return found


def settle_buckets(
    engine: Engine,
    keyed: KeyedTable,
    buckets: Sequence[Bucket],
    *,
    full: bool,
    progress: Progress | bool | None = False,
) -> list[Settlement | None]:
    """Settle buckets; for each what is to be committed, None if there is nothing to do.

    Args:
        engine: Does the work, unless it is little.
        keyed: The table.
        buckets: As they are.
        full: Bring everything to the top level, not only what lies on level 0.
        progress: How to tell how far it is, see `alcid.tables.engine.telling`.

    Raises:
        FormatError: A file is damaged.
        FileGoneError: Another has replaced a file.
    """
    if not buckets:
        return []
    sizes = np.array([sum(one.file.size for one in bucket.files) for bucket in buckets], np.int64)
    worker = Threads() if sizes.sum() <= _SMALL else engine
    with telling(progress, "compacting", sum(len(bucket.files) for bucket in buckets)) as tell:
        made = worker.map(SettleWork(keyed, buckets, full), sizes, tell)
    return [one for part in made for one in part]


def remove_written(storage: Storage, settlements: Iterable[Settlement | None]) -> None:
    """Take back what was written for settlements that will not be committed."""
    paths = [path for one in settlements if one is not None for path in one.written]
    with suppress(StorageError):  # `clean` removes them later
        storage.delete(paths)


Upsert: TypeAlias = tuple[str, int]
"""The user and the identifier of its commits."""

_PREFIX = "alcid.level-0."


def mark_of(upsert: Upsert) -> str:
    """The property that tells of an upsert.

    >>> mark_of(("nightly", 7))
    'alcid.level-0.nightly#7'
    """
    user, identifier = upsert
    return f"{_PREFIX}{user}#{identifier}"


def told(state: TableState) -> list[Upsert]:
    """The upserts that were not finished."""
    known = (state.snapshot and state.snapshot.properties) or {}
    parts = (key.removeprefix(_PREFIX).rpartition("#") for key in known if key.startswith(_PREFIX))
    return [
        (user, int(number)) for user, _, number in parts if number.isascii() and number.isdecimal()
    ]


def places_of(snapshots: SnapshotFolder, state: TableState, upsert: Upsert) -> set[Place]:
    """The buckets where files of an upsert lie on level 0, or may lie if its snapshot expired."""
    low = [entry for entry in state.entries if not entry.file.level]
    for snapshot in walk_back(snapshots, state.snapshot) if low else ():
        if (snapshot.commit_user, snapshot.commit_identifier) == upsert:
            if snapshot.commit_kind != "APPEND":
                return set()
            at = state.at(snapshot)
            # By name, as they may have other indexes by now.
            added = {_name(entry) for part in at.read(at.delta) for entry in part}
            low = [entry for entry in low if _name(entry) in added]
            break
    return {(entry.partition, entry.bucket) for entry in low}


def _name(entry: ManifestEntry) -> tuple[bytes, int, str]:
    return entry.partition, entry.bucket, entry.file.name


def walk_back(snapshots: SnapshotFolder, start: Snapshot | None) -> Iterator[Snapshot]:
    """A snapshot, then those before it that have not expired, the newest first."""
    if start is None:
        return
    yield start
    for number in reversed(snapshots.numbers()):
        if number < start.id:
            try:
                yield snapshots.get(number)
            except FileGoneError:  # expired since they were listed, and so are all before it
                return
