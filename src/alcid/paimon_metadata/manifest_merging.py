"""Few manifests in place of many, so that a table of a thousand commits is still read in a moment.

A file that came and went within those that are merged is left out of both. One that went, but came
in a manifest that is not merged, stays deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, groupby

import pyarrow as pa

from alcid.paimon_metadata.manifest import ADD, Identity, ManifestEntry
from alcid.paimon_metadata.manifest_list import ManifestMeta
from alcid.paimon_metadata.row_bytes import unpack_rows
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.statistics import FULL, RowStats, collect
from alcid.paimon_metadata.table_options import TableOptions
from alcid.paimon_metadata.table_state import TableState

__all__ = ["describe", "merge_entries", "merge_manifests"]


def merge_manifests(
    state: TableState,
    options: TableOptions,
    write: Callable[[Sequence[ManifestEntry]], list[ManifestMeta]],
) -> list[ManifestMeta]:
    """The manifests of a state, or fewer ones that say the same.

    Small ones that stand next to each other become one when there are many. All are written anew,
    with live files only, when a large table has as much that went as what is live.

    Args:
        state: The table.
        options: Of the table: what is small, and what is many.
        write: Writes entries as a manifest, or as several where one would be too large.
    """
    metas, target = state.manifests, options.manifest_target_file_size
    went, came = sum(meta.deleted for meta in metas), sum(meta.added for meta in metas)
    if 2 * went >= came and sum(meta.size for meta in metas) >= target:
        return _rewritten(metas, state, target, write)
    # What was cut to the size is not merged again, though it may be a bit smaller.
    is_small = [2 * meta.size < target for meta in metas]
    if sum(is_small) < max(options.manifest_merge_min_count, 2):
        return list(metas)
    merged: list[ManifestMeta] = []
    for small, group in groupby(range(len(metas)), is_small.__getitem__):
        some = [metas[place] for place in group]
        merged += _rewritten(some, state, target, write) if small and len(some) > 1 else some
    return merged


def _rewritten(
    metas: Sequence[ManifestMeta],
    state: TableState,
    target: int,
    write: Callable[[Sequence[ManifestEntry]], list[ManifestMeta]],
) -> list[ManifestMeta]:
    """What manifests say, without files that came and went within them, cut to a size."""
    entries = merge_entries(chain.from_iterable(state.read(metas)))
    count = sum(meta.added + meta.deleted for meta in metas)
    step = max(target * count // max(sum(meta.size for meta in metas), 1), 1)
    return [
        meta
        for start in range(0, len(entries), step)
        for meta in write(entries[start : start + step])
    ]


def merge_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Entries that say the same: what went and did not come here, then what came and stays.

    As for readers, the order plays no role: what went is gone, even if it seems to come again.
    """
    added: dict[Identity, ManifestEntry] = {}
    deleted: dict[Identity, ManifestEntry] = {}
    for entry in entries:
        (added if entry.kind == ADD else deleted)[entry.identity] = entry
    went = [entry for identity, entry in deleted.items() if identity not in added]
    return went + [entry for identity, entry in added.items() if identity not in deleted]


def describe(
    entries: Sequence[ManifestEntry], schema: TableSchema, name: str, size: int
) -> ManifestMeta:
    """What a list says of a manifest of these entries."""
    buckets, levels = [one.bucket for one in entries], [one.file.level for one in entries]
    added = sum(one.kind == ADD for one in entries)
    return ManifestMeta(
        name,
        size,
        added,
        len(entries) - added,
        _partition_stats([one.partition for one in entries], schema, name),
        schema.id,
        (min(buckets), max(buckets), min(levels), max(levels), None, None),
    )


def _partition_stats(partitions: Sequence[bytes], schema: TableSchema, file: str) -> RowStats:
    types, counts = schema.partition_types, Counter(partitions)
    columns = unpack_rows(list(counts), types, file=file)
    rows = pa.table(dict(zip(schema.partition_keys, columns, strict=True)))
    found = collect(rows, types, [FULL] * len(types))
    nulls = tuple(
        sum(
            count
            for count, value in zip(counts.values(), column, strict=True)
            if not value.is_valid
        )
        for column in columns
    )
    return RowStats(found.minimum, found.maximum, nulls)
