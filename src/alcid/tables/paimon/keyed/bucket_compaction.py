"""The compaction of one bucket: level 0 becomes empty, and each key has one live row.

    1. `pick_runs` or `pick_all` chooses the files to compact, and the output level.
    2. `resolve_live_rows` finds the rows that newer ones supersede. In files that are not
       compacted these are deleted by deletion vectors.
    3. A compacted file whose keys no other file has only changes its level. Others are merged:
       their live rows are rewritten, in the order of their keys.

No file of level 0 may stay behind that is older than one which leaves it: by the rule that level 0
is newest, its rows would win again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

import numpy as np

from alcid.errors import ConflictError, FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.storage import Storage
from alcid.storage.threads import in_order
from alcid.tables.engine import Engine, Task, Threads
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    BucketCompaction,
    KeyedTable,
    index_file_path,
    read_vectors,
    write_vectors,
)
from alcid.tables.paimon.keyed.key_files import KeyReader, SortedRun, write_sorted_run
from alcid.tables.paimon.keyed.live_rows import (
    key_sections,
    merge_rows,
    resolve_live_rows,
)
from alcid.tables.paimon.merge_on_read import check_levels
from alcid.tables.paimon.metadata.commit import discard
from alcid.tables.paimon.metadata.table_state import IndexEntry
from alcid.tables.paimon.new_files import WrittenData
from alcid.tables.progress import Progress, track_progress

_MIN_LEVELS = 2  # level 0, and one for compacted files
_COMPACTED = 1  # the file source of files that a compaction writes
_LARGE = 0.7  # of the target size: such a file is not rewritten to be merged with neighbours
_SMALL = 16 << 20  # bytes that this process compacts without a job of the engine
_NO_ROWS = DeletionVector()

_Section: TypeAlias = Sequence[PlacedFile]


@dataclass(frozen=True, slots=True)
class CompactUnit:
    """The files that a compaction rewrites or moves."""

    files: tuple[PlacedFile, ...]
    """All files of the lowest levels up to some level, level 0 among them."""
    output_level: int
    """Their new level, below all sorted runs that are not compacted."""


def count_levels(bucket: Bucket, num_levels: int) -> int:
    """The levels of a bucket: `num-levels` of its table, or more if its files are on more.

    >>> count_levels(Bucket(b"", 0, "bucket-0/"), 6)
    6
    """
    highest = max((file.file.level for file in bucket.files), default=0)
    return max(num_levels, highest + 1, _MIN_LEVELS)


def pick_runs(bucket: Bucket, num_levels: int) -> CompactUnit | None:
    """The sorted runs to compact so that level 0 becomes empty; None if it is empty.

        level 0   a  b                  always picked, all of it
        level 1   ccc                   picked, as there is no level between it and 0
        level 2   dddd                  picked, so that level 1 is free for the next compaction
        level 3   eeeeeeeeee            picked if it is not larger than everything before it
        level 5   ffffffffffffffffff

    Level 0 moves to the level below all sorted runs, as long as that is free. Otherwise runs are
    merged, the newest first, each with runs of about its own size, so that no row is rewritten too
    often.

    Args:
        bucket: The bucket.
        num_levels: `num-levels` of its table.
    """
    picked = list(bucket.level_zero)
    if not picked:
        return None
    is_merging = False
    for level, run in _sorted_runs(bucket):
        # The level below it must be free; where runs are merged, one more for the next time.
        if not is_merging and level > 1:
            return CompactUnit(tuple(picked), level - 1)
        if is_merging and level > _MIN_LEVELS and _size(run) > _size(picked):
            return CompactUnit(tuple(picked), level - 1)
        picked.extend(run)
        is_merging = True
    return CompactUnit(tuple(picked), count_levels(bucket, num_levels) - 1)


def pick_all(bucket: Bucket, num_levels: int) -> CompactUnit | None:
    """All files, for the top level; None if all are there, and no row of them is deleted."""
    top = count_levels(bucket, num_levels) - 1
    is_compacted = all(
        file.file.level == top and file.file.delete_rows == 0 for file in bucket.files
    )
    if is_compacted and not any(entry.ranges for entry in bucket.vectors):
        return None
    return CompactUnit(bucket.files, top)


def _sorted_runs(bucket: Bucket) -> list[tuple[int, list[PlacedFile]]]:
    """The levels above 0 that are not empty, the newest first."""
    runs: dict[int, list[PlacedFile]] = {}
    for file in bucket.sorted_files:
        runs.setdefault(file.file.level, []).append(file)
    return sorted(runs.items())


def _size(files: Iterable[PlacedFile]) -> int:
    return sum(file.file.size for file in files)


def compact_bucket(
    keyed: KeyedTable, bucket: Bucket, *, full: bool = False
) -> BucketCompaction | None:
    """Compact a bucket: write the new files, and commit nothing.

    Args:
        keyed: The table.
        bucket: The bucket.
        full: Move everything to the top level, without deleted rows. Otherwise level 0 is emptied;
            not in a table without deletion vectors, whose readers merge all levels.

    Returns:
        What to commit; None if there is nothing to do.

    Raises:
        FormatError: A file is damaged.
        FileGoneError: Another writer has replaced a file.
        ConflictError: A file has a newer schema.
    """
    if not full and not keyed.options.deletion_vectors:
        return None
    pick = pick_all if full else pick_runs
    unit = pick(bucket, keyed.options.num_levels)
    if unit is None:
        return None
    for file in bucket.files:
        if file.file.schema_id not in keyed.schemas:
            raise ConflictError(f"{file.path}: of a schema that came later")
    return _Compactor(keyed, bucket, unit, full=full).run()


class _Compactor:
    """The compaction of one bucket."""

    def __init__(self, keyed: KeyedTable, bucket: Bucket, unit: CompactUnit, *, full: bool) -> None:
        self._keyed, self._bucket, self._unit, self._full = keyed, bucket, unit, full
        self._deleted = read_vectors(keyed, bucket)
        self._reader = KeyReader(keyed)
        self._resolved = resolve_live_rows(
            keyed,
            self._reader,
            bucket.files,
            self._deleted,
            compacted=unit.files,
            level=unit.output_level,
        )

    def run(self) -> BucketCompaction | None:
        """Write the new files, and return what to commit."""
        kept, groups = self._partition_files()
        written: list[WrittenData] = []
        try:
            for group in groups:
                written += write_sorted_run(
                    self._keyed,
                    self._bucket,
                    chain.from_iterable(map(self._live_rows, group)),
                    level=self._unit.output_level,
                    source=_COMPACTED,
                )
            return self._result(kept, written)
        except BaseException:
            discard(self._keyed.storage, (path for file in written for path in file.paths))
            raise

    def _partition_files(self) -> tuple[list[PlacedFile], list[list[_Section]]]:
        """The files that are kept, though on another level; and groups of sections to merge."""
        live = [file for file in self._unit.files if len(self._deleted_rows(file)) < file.file.rows]
        kept: list[PlacedFile] = []
        merged: list[list[_Section]] = []
        for group in self._groups(key_sections(live, self._keyed.schema)):
            files = [file for section in group for file in section]
            is_disjoint = len(files) == len(group) and all(map(self._can_stay, files))
            if is_disjoint and (len(files) == 1 or all(map(self._is_on_level, files))):
                kept.extend(files)
            else:
                merged.append(group)
        return kept, merged

    def _groups(self, sections: Iterable[_Section]) -> Iterator[list[_Section]]:
        """Neighbouring sections, each group to be written as one run; large files stay alone."""
        group: list[_Section] = []
        large = _LARGE * self._keyed.options.target_file_size
        for section in sections:
            if len(section) == 1 and self._can_stay(section[0]) and section[0].file.size >= large:
                if group:
                    yield group
                yield [section]
                group = []
            else:
                group.append(section)
        if group:
            yield group

    def _deleted_rows(self, file: PlacedFile) -> DeletionVector:
        return self._resolved[file.file.name].deleted

    def _is_on_level(self, file: PlacedFile) -> bool:
        return file.file.level == self._unit.output_level

    def _can_stay(self, file: PlacedFile) -> bool:
        """Whether a compacted file may stay as it is, if no other file has its keys."""
        resolved = self._resolved[file.file.name]
        if self._is_on_level(file) and file.file.delete_rows != 0:
            return False  # the entry of the same file on the same level cannot be changed
        return resolved.is_sorted_run and not (self._full and resolved.deleted)

    def _live_rows(self, section: _Section) -> Iterator[SortedRun]:
        deleted = {file.file.name: self._deleted_rows(file) for file in section}
        return merge_rows(self._reader, section, deleted, memory=self._keyed.memory)

    def _result(
        self, kept: Sequence[PlacedFile], written: Sequence[WrittenData]
    ) -> BucketCompaction | None:
        bucket, level = self._bucket, self._unit.output_level
        compacted = {file.file.name for file in self._unit.files}
        unchanged = {file.file.name for file in kept if self._is_on_level(file)}
        moved = [_on_level(file, level) for file in kept if not self._is_on_level(file)]
        removed = [file for file in self._unit.files if file.file.name not in unchanged]
        added = [*moved, *(file.placed for file in written)]
        left = [file for file in bucket.files if file.file.name not in compacted - unchanged]
        self._check_level([*left, *added])
        vectors = self._vectors([*left, *moved])
        before = bucket.vectors[0] if len(bucket.vectors) == 1 else None
        if not removed and not added and vectors == before:
            return None
        paths = [path for file in written for path in file.paths]
        if vectors is not None and vectors != before:
            paths.append(index_file_path(self._keyed, bucket, vectors))
        return BucketCompaction(
            bucket, tuple(removed), tuple(added), vectors, tuple(paths), self._count_superseded()
        )

    def _check_level(self, files: Sequence[PlacedFile]) -> None:
        """Check that no two files of the level share keys: Paimon's Java would not open them."""
        of_level = [file for file in files if self._is_on_level(file)]
        for path, problem in check_levels(of_level, self._keyed.schema):
            raise FormatError(problem, file=path)

    def _vectors(self, files: Iterable[PlacedFile]) -> IndexEntry | None:
        """The index file of the deletion vectors of files; the existing one if it has the same."""
        vectors: dict[str, DeletionVector] = {}
        for name in (file.file.name for file in files):
            resolved = self._resolved.get(name)
            deleted = self._deleted.get(name, _NO_ROWS) if resolved is None else resolved.deleted
            if deleted:
                vectors[name] = deleted
        if len(self._bucket.vectors) == 1:
            (before,) = self._bucket.vectors
            covered = {vector.data_file for vector in before.ranges or ()}
            if vectors and vectors == self._deleted and covered == vectors.keys():
                return before
        return write_vectors(self._keyed, self._bucket, vectors)

    def _count_superseded(self) -> int:
        """How many rows that readers saw are not live any more."""
        return sum(
            len(self._deleted_rows(file)) - len(self._deleted.get(file.file.name, _NO_ROWS))
            for file in self._bucket.sorted_files
            if file.file.name in self._resolved
        )


def _on_level(placed: PlacedFile, level: int) -> PlacedFile:
    """The same file on another level, where its manifest entry says that no row deletes."""
    entry = placed.entry.on_level(level)
    return replace(placed, entry=entry.with_file(replace(entry.file, delete_rows=0)))


@dataclass(frozen=True, slots=True, eq=False)
class CompactWork:
    """Compacts buckets, for `Engine.map`."""

    keyed: KeyedTable
    full: bool

    def __call__(self, task: Task[Sequence[Bucket]]) -> list[BucketCompaction | None]:
        """Compact the buckets of a task; if one fails, everything written for others is removed."""
        written: list[BucketCompaction | None] = []

        def work(bucket: Bucket) -> BucketCompaction | None:
            compaction = compact_bucket(self.keyed, bucket, full=self.full)
            written.append(compaction)  # at once: results come in order, behind one that may fail
            return compaction

        compactions = []
        try:
            with closing(in_order(work, task.items, task.threads)) as results:
                for bucket, compaction in zip(task.items, results, strict=True):
                    compactions.append(compaction)
                    task.report(len(bucket.files), sum(file.file.rows for file in bucket.files))
        except BaseException:
            discard_compactions(self.keyed.storage, written)
            raise
        return compactions


def compact_buckets(
    engine: Engine,
    keyed: KeyedTable,
    buckets: Sequence[Bucket],
    *,
    full: bool,
    progress: Progress | bool | None = False,
) -> list[BucketCompaction | None]:
    """Compact buckets: what to commit for each, or None if there is nothing to do.

    Args:
        engine: Runs the work, unless it is small.
        keyed: The table.
        buckets: The buckets.
        full: Move everything to the top level, not only level 0.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Raises:
        FormatError: A file is damaged.
        FileGoneError: Another writer has replaced a file.
    """
    if not buckets:
        return []
    sizes = np.array([_size(bucket.files) for bucket in buckets], np.int64)
    worker = Threads() if sizes.sum() <= _SMALL else engine
    files = sum(len(bucket.files) for bucket in buckets)
    with track_progress(progress, "compacting", files) as report:
        parts = worker.map(CompactWork(keyed, full), buckets, sizes, report)
    return [compaction for part in parts for compaction in part]


def discard_compactions(storage: Storage, compactions: Iterable[BucketCompaction | None]) -> None:
    """Remove what was written for compactions that will not be committed."""
    discard(
        storage,
        [path for compaction in compactions if compaction for path in compaction.written],
    )
