"""Cleaning: few bundles in place of many, and what is of no use any more is removed.

Builds do the same, but only when bundles have become many. What is removed must have been of no use
for some time, as queries and appends may be running: each kind of leftover says since when.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from alcid.bundle import Bundle, BundleSet
from alcid.errors import AlcidError, FileGoneError, OptionError, require
from alcid.pictures.shown import Shown
from alcid.pictures.units import count_text
from alcid.storage import Listing, Storage
from alcid.tables import building, compaction
from alcid.tables.build_report import size_text
from alcid.tables.bundle_folder import BundleFolder, FolderBundles, bundle_name
from alcid.tables.compaction import is_sound, merge_folder
from alcid.tables.data_files import list_data_files
from alcid.tables.leftovers import Leftover, find_leftovers

__all__ = ["CleanReport", "check_age", "clean", "remove_old"]

_DEAD = 0.1  # the share of entries of which nothing is used, from which on a bundle is rewritten


@dataclass(frozen=True, slots=True)
class CleanReport(Shown):
    """What `clean` did, or would do."""

    dry_run: bool
    """Nothing was changed."""
    merged: tuple[str, ...]
    """The bundles that were merged; they are removed later."""
    written: tuple[str, ...]
    """The bundles that they were merged to; not known of a dry run."""
    removed: tuple[Leftover, ...]
    kept: tuple[Leftover, ...]
    """What is of no use, but too young to be removed."""
    seconds: float

    @property
    def bytes_removed(self) -> int:
        """The bytes of what was removed."""
        return sum(leftover.bytes for leftover in self.removed)

    def __str__(self) -> str:
        """What was done, in one line, and what was removed, by reason."""
        to = "" if self.dry_run or not self.merged else f" to {len(self.written):,}"
        first = "would have " if self.dry_run else ""
        if self.merged:
            first += f"merged {count_text(len(self.merged), 'bundle')}{to} and "
        first += f"removed {count_text(len(self.removed), 'leftover')}"
        first += f" ({size_text(self.bytes_removed)})"
        first += "" if self.dry_run else f" in {self.seconds:.1f} s"
        first += f"; {len(self.kept):,} too young" if self.kept else ""
        reasons: dict[str, int] = {}
        for leftover in self.removed:
            reasons[leftover.reason] = reasons.get(leftover.reason, 0) + 1
        return "\n".join([first, *(f"{reason}: {n:,}" for reason, n in sorted(reasons.items()))])

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "dry_run": self.dry_run,
            "merged": list(self.merged),
            "written": list(self.written),
            "removed": [leftover.to_dict() for leftover in self.removed],
            "kept": [leftover.to_dict() for leftover in self.kept],
            "bytes_removed": self.bytes_removed,
            "seconds": self.seconds,
        }


def clean(
    storage: Storage,
    folder: BundleFolder,
    *,
    older_than: timedelta = timedelta(days=1),
    dry_run: bool = False,
) -> CleanReport:
    """Merge bundles where that makes them fewer or smaller, and remove what is of no use.

    What bundles have of data files that are gone or changed is dropped when they are merged. Data
    files are never removed, nor are files of other names than Alcid gives.

    Args:
        storage: The data of the table.
        folder: Where its bundles are.
        older_than: What is younger is kept: it may be of an append that is running. What was
            replaced goes after ten minutes, as after a build.
        dry_run: Change nothing, and say what would be done.

    Raises:
        OptionError: An age below 0.
    """
    check_age(older_than)
    begin = time.monotonic()
    found = folder.load(on_damage=_ignore)
    listing = list_data_files(storage)  # after the bundles: they know no file that came later
    chosen = _worth_merging(found, listing)
    merged: tuple[str, ...] = chosen.names
    written: list[str] = []
    if merged and not dry_run:
        try:
            written = merge_folder(folder, chosen, listing)
        except FileGoneError:  # a build is tidying up, and has merged them itself
            merged = ()
        found = folder.load(on_damage=_ignore)
    removed, kept = remove_old(
        find_leftovers(storage, folder, found), older_than=older_than, dry_run=dry_run
    )
    return CleanReport(dry_run, merged, tuple(written), removed, kept, time.monotonic() - begin)


def check_age(older_than: timedelta) -> None:
    """See that an age is one.

    Raises:
        OptionError: It is below 0.
    """
    require(older_than, timedelta, "older_than")
    if older_than < timedelta(0):
        raise OptionError(f"older_than: found {older_than}, expected 0 or more")


def remove_old(
    leftovers: Iterable[Leftover], *, older_than: timedelta, dry_run: bool
) -> tuple[tuple[Leftover, ...], tuple[Leftover, ...]]:
    """Remove what has been of no use for so long; what was removed, and what is too young."""
    old: list[Leftover] = []
    young: list[Leftover] = []
    for leftover in leftovers:
        (old if _is_old(leftover, older_than) else young).append(leftover)
    if not dry_run:
        _remove(old)
    return tuple(old), tuple(young)


def _ignore(_error: AlcidError) -> None:
    """What is damaged is a leftover, or is left out by merging with a warning."""


def _is_old(leftover: Leftover, older_than: timedelta) -> bool:
    """Whether it can be removed; never if it cannot be told since when it is of no use."""
    age = min(older_than, compaction.GRACE) if leftover.is_replaced else older_than
    return leftover.since is not None and leftover.since <= datetime.now(UTC) - age


def _remove(leftovers: Iterable[Leftover]) -> None:
    """Remove them by path: bundles that are replaced are older than those that say so."""
    for leftover in leftovers:
        with suppress(FileGoneError):
            leftover.remove()


def _worth_merging(found: FolderBundles, listing: Listing) -> FolderBundles:
    """The bundles to write anew: small ones, if they are several, and those with much that is dead.

    Full ones are left alone, as a table may have very many of them; and so are those without files,
    which only say that others are replaced.
    """
    small, large = [], []
    for bundle in found.current:
        dead = _dead_share(bundle, listing)
        if bundle.file_count and bundle.source.size < building.BATCH_BYTES // 2:
            small.append((bundle, dead))
        elif dead >= _DEAD:
            large.append(bundle)
    together = len(small) + len(large) > 1
    chosen = large + [bundle for bundle, dead in small if together or dead]
    names = sorted(map(bundle_name, chosen))
    return FolderBundles(tuple(names), tuple(sorted(chosen, key=bundle_name)))


def _dead_share(bundle: Bundle, listing: Listing) -> float:
    """The share of entries of files that are gone or changed; 1 if it is damaged in part."""
    if not is_sound(bundle):
        return 1.0
    rows = BundleSet([bundle], listing.paths, listing.sizes, listing.versions).rows
    dead = bundle.file_count - (len(rows) - rows.null_count)
    return float(dead / bundle.file_count) if bundle.file_count else 0.0
