"""Many bundles to one: what is fresh is carried over, without being decoded, the rest dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa

from alcid.bundle.assembly import Assembly
from alcid.bundle.bundle_set import BundleSet
from alcid.bundle.checked import check_blocks
from alcid.bundle.coverage import Coverage
from alcid.bundle.directory import Integers, Payloads
from alcid.bundle.kinds import Kind
from alcid.bundle.series import Series
from alcid.errors import FormatError
from alcid.formats.puffin import Blob
from alcid.formats.source import ReadMany, read_each

__all__ = ["merge"]

_TOGETHER = 64 << 20  # bytes of payloads that are read in one round


def merge(
    bundles: BundleSet,
    file: BinaryIO,
    *,
    field_ids: Mapping[str, int] | None = None,
    snapshot_id: int = -1,
    sequence_number: int = -1,
    kinds: Collection[Kind] | None = None,
    replaces: Sequence[str] = (),
    complete: bool = False,
    blobs: Iterable[tuple[Blob, bytes]] | None = None,
    versions: Sequence[str] | None = None,
    read_many: ReadMany = read_each,
) -> int:
    """Write one bundle that is worth as much as those of a set, and return how many files it has.

    Its files are in the order of the listing. Each block is checked before it is copied; a payload
    that is damaged is left out with a warning, so that the next build makes it anew.
    The payloads of one kind are in memory at a time.

    Args:
        bundles: What there is, and which files are live.
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
    live, files = bundles.live()
    for kind in bundles.kinds if kinds is None else sorted(kinds):
        payloads = _copy(bundles.coverage(kind), live, bundles, read_many)
        if len(payloads):
            assembly.add_payloads(kind, payloads)
    for blob, content in _others(bundles) if blobs is None else blobs:
        assembly.add_blob(blob, content)
    if versions is not None:
        moved = pa.array(versions, pa.string()).take(pa.array(live))
        files = replace(files, versions=moved)
    assembly.finish(files)
    return len(files)


def _copy(coverage: Coverage, live: Integers, bundles: BundleSet, read_many: ReadMany) -> Payloads:
    """The payloads of the files at the places `live` of the listing; their rows are 0, 1, 2 ..."""
    payloads = Payloads()
    for chosen in _together(coverage, live):
        ranges = [series.stored(entry) for _, series, entry in chosen]
        for (row, series, entry), place, data in zip(
            chosen, ranges, read_many(ranges), strict=True
        ):
            try:
                blocks = check_blocks(data, place, series.name(entry))
            except FormatError as error:
                bundles.report(error)
            else:
                directory = series.directory
                head = directory.heads[entry].tobytes()
                payloads.copy(row, int(directory.lengths[entry]), head, blocks)
    return payloads


def _together(coverage: Coverage, live: Integers) -> Iterator[list[tuple[int, Series, int]]]:
    """Row, series and entry of the payloads there are, as many as are read in one round."""
    chosen: list[tuple[int, Series, int]] = []
    size = 0
    for row, file in enumerate(live.tolist()):
        found = coverage.find(file)
        if found is not None:
            chosen.append((row, *found))
            size += int(found[0].directory.lengths[found[1]])
        if size >= _TOGETHER:
            yield chosen
            chosen, size = [], 0
    if chosen:
        yield chosen


def _others(bundles: BundleSet) -> list[tuple[Blob, bytes]]:
    """The blobs that are no part of a bundle, the newest of each sort."""
    newest: dict[tuple[object, ...], tuple[Blob, bytes]] = {}
    for bundle in bundles.bundles:
        for blob in bundle.others:
            sort = (blob.type, blob.fields, blob.properties.get("column"))
            try:
                newest[sort] = blob, bundle.read_blob(blob)
            except FormatError as error:
                bundles.report(error)
    return list(newest.values())
