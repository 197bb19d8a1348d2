"""Few bundles in place of many: what is fresh is copied, and the old ones are removed later.

A bundle that was merged says which others it replaces, so that these count no more from the moment
it appears. They are removed by a later build, when queries that still read them are over.
"""

from __future__ import annotations

import io
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import numpy as np

from alcid.bundle import Bundle, Kind, merge
from alcid.errors import FormatError
from alcid.formats.arrays import split_by
from alcid.storage import Listing
from alcid.tables import building
from alcid.tables.bundle_folder import BundleFolder, FolderBundles
from alcid.tables.data_files import take_files

__all__ = ["GRACE", "is_sound", "is_worth_merging", "merge_folder", "remove_old"]

GRACE = timedelta(minutes=10)
"""How long a bundle that was replaced is kept for those who are reading it."""
MOST_BUNDLES = 16
"""More than so many beyond those that are full are merged."""


def is_worth_merging(found: FolderBundles) -> bool:
    """Whether there are many small bundles, or one that is damaged in part."""
    current = found.current
    full = sum(bundle.source.size for bundle in current) // building.BATCH_BYTES
    return len(current) - full > MOST_BUNDLES or not all(map(is_sound, current))


def merge_folder(
    folder: BundleFolder,
    found: FolderBundles,
    listing: Listing,
    kinds: Collection[Kind] | None = None,
) -> list[str]:
    """Write what is fresh anew, in as many bundles as it fills; the last replaces all the old.

    Args:
        folder: Where the bundles are.
        found: What is there.
        listing: The files of the table.
        kinds: Only these; by default all.

    Returns:
        The names of the new bundles.
    """
    bundles = found.against(listing)
    chosen = bundles.kinds if kinds is None else kinds
    sizes = np.zeros(len(listing), np.int64)
    for kind in chosen:
        sizes += bundles.coverage(kind).lengths
    live, _ = bundles.live()
    numbers = (np.cumsum(sizes[live]) - sizes[live]) // building.BATCH_BYTES
    parts = split_by(live, numbers)
    names = []
    for number, part in enumerate(parts, 1):
        data = io.BytesIO()
        merge(
            found.against(take_files(listing, part)),
            data,
            kinds=kinds,
            replaces=found.readable if number == len(parts) else (),
            read_many=folder.storage.read_ranges,
        )
        names.append(folder.put(data.getvalue()))
    return names


def remove_old(folder: BundleFolder, found: FolderBundles) -> None:
    """Remove bundles that are damaged, and those that were replaced some time ago.

    Bundles appear whole, so that one which cannot be read is of no use to anybody.
    """
    damaged = [name for name in found.unreadable() if folder.is_damaged(name)]
    folder.remove([*sorted(found.replaced(datetime.now(UTC) - GRACE)), *damaged])


def is_sound(bundle: Bundle) -> bool:
    """Whether its files and directories can be read."""
    try:
        _ = bundle.files
        for kind in bundle.kinds:
            bundle.series(kind)
    except FormatError:
        return False
    return True
