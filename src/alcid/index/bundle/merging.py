"""Merge bundles: choose those that are worth rewriting, and copy what is fresh into one.

A merge is planned from directories and tables of files alone (`plan_merge`). The plan says where
every payload is, so that whoever writes the merged bundle, a task as a rule, opens none of the old
ones (`MergePlan.write`).

Payloads are copied block by block and are not decoded. Each keeps its rank: where several bundles
have the same index of a file, the newest one is used, and only that one is carried over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.errors import FormatError
from alcid.formats.puffin import Blob, BlobStream
from alcid.formats.source import Range, ReadMany, Source, Writable, read_each
from alcid.index.bundle.bundle_set import BundleSet, warn_left_out
from alcid.index.bundle.directory import BLOCK, DirectoryBuilder
from alcid.index.bundle.files import FileTable
from alcid.index.bundle.format import PayloadKind
from alcid.index.bundle.payloads import Extents, check_blocks, use_few_sources
from alcid.index.bundle.reader import Bundle
from alcid.index.bundle.writer import Assembly

_MOSTLY_DEAD = 0.5
_DEAD = 0.1
ROUND_BYTES = 32 << 20
"""Bytes of payloads in memory while bundles are merged; requests of a round run side by side."""
COPIED_TOGETHER = 8 << 20
"""Bytes of neighbouring payloads from which a storage is asked to copy them itself."""
LARGEST_MERGED = 512 << 20
"""Bytes of the largest bundle that is ever rewritten, unless it has to be."""


@dataclass(frozen=True, slots=True)
class MergeCandidate:
    """The figures of a bundle that say whether it is worth rewriting."""

    size: int
    """Bytes of the bundle."""
    files: int
    """Data files that it has entries of."""
    live: int
    """Those of them that are as they were when they were indexed."""
    required: bool = False
    """Rewrite it in any case: it is damaged in part, new, or about to be removed by others."""

    @property
    def dead(self) -> float:
        """The part of its entries that no reader uses."""
        return (self.files - self.live) / self.files if self.files else 0.0


def choose_bundles(
    candidates: Sequence[MergeCandidate],
    *,
    full: int,
    most: int,
    cheap: int | None = None,
    thorough: bool = False,
    largest: int = LARGEST_MERGED,
) -> list[int]:
    """The bundles to merge, as positions among the candidates; empty if none is worth it.

    A bundle of half of `full` bytes or more is rewritten only if most of its entries are dead, or
    if it has to be. Small ones are merged once there are many: the smallest first, and up to the
    largest that is no larger than all that are smaller together. So every byte that is rewritten
    ends in a bundle of at least twice the size, and is rewritten no more often than the logarithm
    of `full`, however many builds there are, or another one is dropped for it. No more than `most`
    small ones are left.

    Args:
        candidates: The bundles that are in use.
        full: Bytes that a bundle is filled up to.
        most: More small bundles than this, beyond what their bytes would fill, are many.
        cheap: Where a bundle is written in any case, small ones of up to so many bytes in all join
            it, and all of which most is dead.
        thorough: Merge all small bundles, and rewrite those too of which a tenth is dead: for a
            compaction that was asked for.
        largest: Bytes of a bundle above which it is left alone.

    >>> sizes = [17, *[1] * 16]
    >>> choose_bundles([MergeCandidate(size, 1, 1) for size in sizes], full=1000, most=16)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
    """
    least_dead = _DEAD if thorough else _MOSTLY_DEAD
    chosen = [
        number
        for number, bundle in enumerate(candidates)
        if bundle.required
        or (
            bundle.dead >= least_dead
            and (2 * bundle.size >= full or cheap is not None)
            and (bundle.size <= largest or not bundle.live)
        )
    ]
    small = [
        number
        for number, bundle in enumerate(candidates)
        if number not in chosen
        and 2 * bundle.size < full
        and bundle.size <= largest
        and (bundle.files or not thorough)
    ]
    if thorough:
        several = len(chosen) + len(small) > 1
        return sorted(chosen + [number for number in small if several or candidates[number].dead])
    small.sort(key=lambda number: candidates[number].size)
    sizes = [candidates[number].size for number in small]
    surplus = len(small) - sum(sizes) // full - most
    before = np.cumsum([0, *sizes])[:-1]
    joins = np.array(sizes) <= (cheap or 0) - before
    if chosen or surplus > 0:
        joins |= np.array(sizes) <= sum(candidates[number].size for number in chosen) + before
    count = int(np.flatnonzero(joins).max(initial=-1)) + 1
    if surplus > 0:  # where each is larger than all before it, the smallest are tiny
        count = max(count, surplus + 1)
    return sorted(chosen + small[:count])


@dataclass(frozen=True, eq=False)
class MergePlan:
    """What a merged bundle will hold, and where that is now; it pickles."""

    numbers: tuple[int, ...]
    """The bundles with payloads that are copied, by their places in the set."""
    extents: tuple[Extents, ...]
    """The payloads, by kind; their sources are places in `numbers`, their rows those of `files`."""
    files: FileTable
    blobs: tuple[tuple[Blob, bytes], ...]
    """What is no part of a bundle."""
    field_ids: Mapping[str, int]
    snapshot_id: int
    sequence_number: int
    replaces: tuple[str, ...]
    complete: bool

    @property
    def size(self) -> int:
        """The bytes of payloads to copy."""
        return sum(int(extents.stored.sum()) for extents in self.extents)

    def write(
        self,
        file: Writable,
        sources: Sequence[Source],
        *,
        read_many: ReadMany = read_each,
        report: Callable[[FormatError], None] = warn_left_out,
        unchecked: bool = False,
    ) -> None:
        """Write the merged bundle; of payloads, `ROUND_BYTES` are in memory at a time.

        Each block is checked before it is copied; a payload that is damaged is left out, so that
        the next build makes it anew.

        Args:
            file: Takes the bytes.
            sources: The bundles in `numbers`.
            read_many: How to read a round of ranges.
            report: Called with the error where a payload is damaged; by default a warning.
            unchecked: Let the storage of `file` copy what lies together, where it can. Blocks are
                then checked when they are used, as in any bundle.
        """
        assembly = Assembly(
            file,
            field_ids=self.field_ids,
            snapshot_id=self.snapshot_id,
            sequence_number=self.sequence_number,
            replaces=self.replaces,
            complete=self.complete,
        )
        for extents in self.extents:
            directory = DirectoryBuilder()
            with assembly.payloads(extents.kind, directory) as blob:
                copy = _Copy(extents, sources, blob, directory, read_many, report)
                copy.run(unchecked=unchecked)
        for blob_of_others, content in self.blobs:
            assembly.add_blob(blob_of_others, content)
        assembly.finish(self.files)


def plan_merge(
    bundles: BundleSet,
    *,
    chosen: Collection[Bundle] | None = None,
    field_ids: Mapping[str, int] | None = None,
    snapshot_id: int = -1,
    sequence_number: int = -1,
    kinds: Collection[PayloadKind] | None = None,
    replaces: Sequence[str] = (),
    complete: bool = False,
    blobs: Iterable[tuple[Blob, bytes]] | None = None,
    versions: Sequence[str] | None = None,
) -> MergePlan:
    """Plan one bundle that can stand for others; no payload is read.

    Its files are in the order of the listing.

    Args:
        bundles: All bundles that are in use, and which files are live.
        chosen: Those of them to merge, by default all: what one of the others has newer, of the
            same file and kind, is not carried over.
        field_ids: On Iceberg, the field id of each column.
        snapshot_id: On Iceberg, the snapshot whose files these are.
        sequence_number: The sequence number of that snapshot.
        kinds: Only payloads of these; by default of all.
        replaces: The names of bundles that are not to be used once this one is there.
        complete: On Iceberg, whether bundles of older snapshots are not to be looked for.
        blobs: What is to be in it that is no part of a bundle; by default what there is, of several
            of the same type, fields and property `column` the newest.
        versions: What the versions of the listed files are now, where they were moved since.
    """
    numbers = bundles.numbers(chosen)
    live, files = bundles.live(numbers)
    if versions is not None:
        moved = pa.array(versions, pa.string()).take(pa.array(live))
        files = replace(files, versions=moved)
    every = [
        bundles.coverage(kind).extents(live, numbers)
        for kind in (bundles.kinds if kinds is None else sorted(kinds))
    ]
    used, extents = use_few_sources([extents for extents in every if len(extents)])
    return MergePlan(
        tuple(used.tolist()),
        extents,
        files,
        tuple(_others(bundles, numbers) if blobs is None else blobs),
        dict(field_ids or {}),
        snapshot_id,
        sequence_number,
        tuple(replaces),
        complete,
    )


def merge(
    bundles: BundleSet,
    file: Writable,
    *,
    chosen: Collection[Bundle] | None = None,
    field_ids: Mapping[str, int] | None = None,
    snapshot_id: int = -1,
    sequence_number: int = -1,
    kinds: Collection[PayloadKind] | None = None,
    replaces: Sequence[str] = (),
    complete: bool = False,
    blobs: Iterable[tuple[Blob, bytes]] | None = None,
    versions: Sequence[str] | None = None,
    read_many: ReadMany = read_each,
) -> int:
    """Write one bundle that can stand for others, and return how many files it has.

    See `plan_merge` and `MergePlan.write` for the arguments.
    """
    plan = plan_merge(
        bundles,
        chosen=chosen,
        field_ids=field_ids,
        snapshot_id=snapshot_id,
        sequence_number=sequence_number,
        kinds=kinds,
        replaces=replaces,
        complete=complete,
        blobs=blobs,
        versions=versions,
    )
    sources = [bundles.bundles[number].source for number in plan.numbers]
    plan.write(file, sources, read_many=read_many, report=bundles.report)
    return len(plan.files)


class _Copy:
    """Copies the payloads of one kind."""

    def __init__(
        self,
        extents: Extents,
        sources: Sequence[Source],
        blob: BlobStream,
        directory: DirectoryBuilder,
        read_many: ReadMany,
        report: Callable[[FormatError], None],
    ) -> None:
        self._extents, self._sources, self._blob = extents, sources, blob
        self._directory, self._read_many, self._report = directory, read_many, report
        ends = extents.starts + extents.stored
        follows = (extents.sources[1:] == extents.sources[:-1]) & (extents.starts[1:] == ends[:-1])
        # Where payloads begin that do not follow the one before, and the end.
        self._runs = np.flatnonzero(np.concatenate([[True], ~follows, [True]]))

    def run(self, *, unchecked: bool) -> None:
        """Copy all of them, in order."""
        totals = np.concatenate([[0], np.cumsum(self._extents.stored)])
        begin = 0
        if unchecked:
            sizes = np.diff(totals[self._runs])
            for run in np.flatnonzero(sizes >= COPIED_TOGETHER).tolist():
                first, end = self._runs[run : run + 2].tolist()
                start, source = int(self._extents.starts[first]), self._extents.sources[first]
                self._check_and_copy(totals, begin, first)
                begin = first
                if self._blob.copy_from(self._sources[source], start, int(sizes[run])):
                    self._enter(slice(first, end))
                    begin = end
        self._check_and_copy(totals, begin, len(self._extents))

    def _check_and_copy(self, totals: Int64Array, begin: int, end: int) -> None:
        """Copy payloads in rounds of at most `ROUND_BYTES`, each of at least one payload."""
        while begin < end:
            last = int(np.searchsorted(totals, totals[begin] + ROUND_BYTES, side="right")) - 1
            if last <= begin:
                self._copy_large(begin)
                begin += 1
            else:
                self._copy_round(begin, min(last, end))
                begin = min(last, end)

    def _copy_round(self, begin: int, end: int) -> None:
        """Read some payloads, each run in one range, and write those that are not damaged."""
        inner = self._runs[(self._runs > begin) & (self._runs < end)].tolist()
        runs = list(pairwise([begin, *inner, end]))
        ranges = [self._range(first, last) for first, last in runs]
        for (first, last), data in zip(runs, self._read_many(ranges), strict=True):
            view, sound = memoryview(data), first
            base = int(self._extents.starts[first])
            for entry in range(first, last):
                payload = self._range(entry, entry + 1)
                start = payload.offset - base
                blocks = view[start : start + payload.length]
                try:
                    check_blocks(blocks, payload, self._extents.name(entry))
                except FormatError as error:
                    self._write(view, first, sound, entry)
                    sound = entry + 1
                    self._report(error)
            self._write(view, first, sound, last)

    def _write(self, view: memoryview, first: int, begin: int, end: int) -> None:
        """Write the payloads from `begin` to `end` of those that were read from `first` on."""
        if begin < end:
            base, sound = int(self._extents.starts[first]), self._range(begin, end)
            start = sound.offset - base
            self._blob.write(view[start : start + sound.length])
            self._enter(slice(begin, end))

    def _copy_large(self, entry: int) -> None:
        """Copy a payload that is too large for memory: it is checked first, then read again."""
        try:
            for _ in self._pieces(entry):
                pass
        except FormatError as error:
            self._report(error)
            return
        for blocks in self._pieces(entry):
            self._blob.write(blocks)
        self._enter(slice(entry, entry + 1))

    def _pieces(self, entry: int) -> Iterator[memoryview]:
        """The blocks of a payload, checked, in pieces."""
        source, begin, length = self._range(entry, entry + 1)
        step = ROUND_BYTES // 2 // BLOCK * BLOCK  # one is checked while the last is written
        for start in range(0, length, step):
            piece = Range(source, begin + start, min(step, length - start))
            (data,) = self._read_many([piece])
            yield check_blocks(data, piece, self._extents.name(entry))

    def _range(self, begin: int, end: int) -> Range:
        """Where payloads are that follow each other."""
        extents = self._extents
        start, last = int(extents.starts[begin]), end - 1
        length = int(extents.starts[last] + extents.stored[last]) - start
        return Range(self._sources[extents.sources[begin]], start, length)

    def _enter(self, entries: slice) -> None:
        extents = self._extents
        self._directory.extend(
            extents.rows[entries], extents.lengths[entries], extents.heads[entries]
        )


def _others(bundles: BundleSet, numbers: Int64Array) -> list[tuple[Blob, bytes]]:
    """The blobs of some bundles that are no part of them, where none newer is of the same sort."""
    newest: dict[tuple[object, ...], tuple[int, Blob, bytes]] = {}
    for number, bundle in enumerate(bundles.bundles):
        for blob in bundle.others:
            sort = (blob.type, blob.fields, blob.properties.get("column"))
            try:
                newest[sort] = number, blob, bundle.read_blob(blob)
            except FormatError as error:
                bundles.report(error)
    return [(blob, content) for number, blob, content in newest.values() if number in numbers]
