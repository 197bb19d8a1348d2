"""Merge bundles: choose those that are worth rewriting, and copy what is fresh into one.

Payloads are copied block by block and are not decoded. Each keeps its rank: where several bundles
have the same index of a file, the newest one is used, and only that one is carried over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.errors import FormatError
from alcid.formats.puffin import Blob
from alcid.formats.source import ReadMany, read_each
from alcid.index.bundle.bundle_set import BundleSet
from alcid.index.bundle.directory import Payloads
from alcid.index.bundle.format import PayloadKind
from alcid.index.bundle.payloads import Coverage, Series, check_blocks
from alcid.index.bundle.reader import Bundle
from alcid.index.bundle.writer import Assembly

_MOSTLY_DEAD = 0.5
_DEAD = 0.1
_ROUND = 64 << 20  # bytes of payloads that are read in one round


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

    >>> sizes = [17, *[1] * 16]
    >>> choose_bundles([MergeCandidate(size, 1, 1) for size in sizes], full=1000, most=16)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
    """
    least_dead = _DEAD if thorough else _MOSTLY_DEAD
    chosen = [
        number
        for number, bundle in enumerate(candidates)
        if bundle.required
        or (bundle.dead >= least_dead and (2 * bundle.size >= full or cheap is not None))
    ]
    small = [
        number
        for number, bundle in enumerate(candidates)
        if number not in chosen and 2 * bundle.size < full and (bundle.files or not thorough)
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


def merge(
    bundles: BundleSet,
    file: BinaryIO,
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

    Its files are in the order of the listing. Each block is checked before it is copied; a payload
    that is damaged is left out with a warning, so that the next build makes it anew.
    The payloads of one kind are in memory at a time.

    Args:
        bundles: All bundles that are in use, and which files are live.
        chosen: Those of them to merge, by default all: what one of the others has newer, of the
            same file and kind, is not carried over.
        file: Takes the bytes; see `BundleWriter`, for the other arguments too.
        field_ids: On Iceberg, the field id of each column.
        snapshot_id: On Iceberg, the snapshot whose files these are.
        sequence_number: The sequence number of that snapshot.
        kinds: Only payloads of these; by default of all.
        replaces: The names of bundles that are not to be used once this one is there.
        complete: On Iceberg, whether bundles of older snapshots are not to be looked for.
        blobs: What is to be in it that is no part of a bundle; by default what there is, of several
            of the same type, fields and property `column` the newest.
        versions: What the versions of the listed files are now, where they were moved since.
        read_many: How to read a round of ranges.
    """
    assembly = Assembly(
        file,
        field_ids=field_ids,
        snapshot_id=snapshot_id,
        sequence_number=sequence_number,
        replaces=replaces,
        complete=complete,
    )
    numbers = bundles.numbers(chosen)
    live, files = bundles.live(numbers)
    for kind in bundles.kinds if kinds is None else sorted(kinds):
        payloads = _copy(bundles.coverage(kind), live, numbers, bundles, read_many)
        if len(payloads):
            assembly.add_payloads(kind, payloads)
    for blob, content in _others(bundles, numbers) if blobs is None else blobs:
        assembly.add_blob(blob, content)
    if versions is not None:
        moved = pa.array(versions, pa.string()).take(pa.array(live))
        files = replace(files, versions=moved)
    assembly.finish(files)
    return len(files)


def _copy(
    coverage: Coverage,
    live: Int64Array,
    numbers: Int64Array,
    bundles: BundleSet,
    read_many: ReadMany,
) -> Payloads:
    """The payloads that some bundles have of live files, whose rows become 0, 1, 2 ..."""
    payloads = Payloads()
    rows = np.flatnonzero(np.isin(coverage.bundles[live], numbers))
    for entries in _rounds(coverage, live, rows):
        ranges = [series.stored(entry) for _, series, entry in entries]
        for (row, series, entry), stored, data in zip(
            entries, ranges, read_many(ranges), strict=True
        ):
            try:
                blocks = check_blocks(data, stored, series.name(entry))
            except FormatError as error:
                bundles.report(error)
            else:
                directory = series.directory
                head = directory.heads[entry].tobytes()
                payloads.copy(row, int(directory.lengths[entry]), head, blocks)
    return payloads


def _rounds(
    coverage: Coverage, live: Int64Array, rows: Int64Array
) -> Iterator[list[tuple[int, Series, int]]]:
    """Row, series and entry of payloads, as many as are read in one round."""
    entries: list[tuple[int, Series, int]] = []
    size = 0
    for row, file in zip(rows.tolist(), live[rows].tolist(), strict=True):
        payload = coverage.find(file)
        if payload is not None:
            entries.append((row, *payload))
            size += int(payload[0].directory.lengths[payload[1]])
        if size >= _ROUND:
            yield entries
            entries, size = [], 0
    if entries:
        yield entries


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
