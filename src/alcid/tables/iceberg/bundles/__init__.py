"""The bundles of an Iceberg table: found from a snapshot back through its ancestors.

Each may list a statistics file, and those with a bundle are told by their names. A bundle that has
everything that older ones had says so, and the walk ends there. Data files never change, so what a
bundle says of one holds as long as a snapshot has it: entries go by its path in the manifest.

Whoever replaces or expires a statistics file only makes queries slower, until the next build.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from alcid.errors import (
    AlcidError,
    AlcidWarning,
    DamagedIndexWarning,
    FileGoneError,
    FormatError,
    LimitError,
    StorageError,
    UnsupportedError,
)
from alcid.index.bundle import Bundle, BundleSet
from alcid.tables.iceberg.bundles.publish import BUNDLE_SUFFIX
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, StatisticsFile, TableMetadata

__all__ = ["BundleFinder", "FoundBundles", "OnDamage", "bundles_against"]

OnDamage = Callable[[AlcidError], None]


@dataclass(frozen=True, slots=True, eq=False)
class FoundBundles:
    """The bundles that a snapshot is read with, the oldest first."""

    bundles: tuple[Bundle, ...] = ()
    files: tuple[StatisticsFile, ...] = ()
    """Where each of them is listed: by the snapshot nearest to the one that is read."""
    notes: tuple[str, ...] = ()
    """What was looked for in vain, for whoever asks why no index is used."""


class BundleFinder:
    """Finds bundles, and keeps those that it has opened: they never change."""

    def __init__(self, places: Places, *, strict: bool = False) -> None:
        """Nothing is read yet.

        Args:
            places: Where files are.
            strict: Raise where a bundle is damaged, in place of a warning.
        """
        self._places, self._strict = places, strict
        self._opened: dict[str, Bundle] = {}

    def find(
        self,
        metadata: TableMetadata,
        snapshot: Snapshot | None,
        *,
        on_damage: Callable[[StatisticsFile, AlcidError], None] | None = None,
    ) -> FoundBundles:
        """The bundles for a snapshot; those that cannot be read are passed over, with a warning.

        Args:
            metadata: Those of the table.
            snapshot: The snapshot that is read; None before the first commit.
            on_damage: Is called in place of the warning.
        """
        chain: list[tuple[Bundle, StatisticsFile]] = []
        notes: list[str] = []
        others: list[int] = []  # snapshots whose file is another tool's, and nearer than a bundle
        seen: set[str] = set()
        replaced: set[str] = set()  # the names of files that a nearer bundle was merged from
        for one in () if snapshot is None else metadata.ancestors(snapshot.id):
            file = metadata.statistics.get(one.id)
            if file is None or file.path in seen or file.path.rpartition("/")[2] in replaced:
                continue
            seen.add(file.path)
            if file.path.endswith(BUNDLE_SUFFIX):
                bundle = self._try_open(file, notes, on_damage)
                if bundle is not None:
                    chain.append((bundle, file))
                    replaced.update(bundle.replaces)
                    if bundle.complete:
                        break
            elif not chain:
                others.append(one.id)
        if others:
            notes.append(
                f"no indexes in the statistics file of snapshot {others[0]}, which another tool may"
                f" have replaced{': those of an ancestor are used' if chain else ''}:"
                " build_indexes makes what is missing"
            )
        self._opened = {file.path: bundle for bundle, file in chain}
        chain.reverse()
        return FoundBundles(
            tuple(bundle for bundle, _ in chain), tuple(file for _, file in chain), tuple(notes)
        )

    def open(self, file: StatisticsFile) -> Bundle:
        """Open the bundle of a statistics file.

        Raises:
            FileGoneError: It is not there.
            FormatError: It is damaged.
            UnsupportedError: It is of a later version.
        """
        source = self._places.source(file.path, file.size)
        if file.path in self._opened:
            storage, path = self._places.find(file.path)
            if storage.exists(path):
                return self._opened[file.path]
            raise FileGoneError("gone", file=source.name)
        return Bundle.open(source)

    def _try_open(
        self,
        file: StatisticsFile,
        notes: list[str],
        on_damage: Callable[[StatisticsFile, AlcidError], None] | None,
    ) -> Bundle | None:
        try:
            return self.open(file)
        except (FormatError, LimitError, StorageError, UnsupportedError) as error:
            is_gone = isinstance(error, FileGoneError)  # others may remove it at any time
            if self._strict and not is_gone:
                raise
            notes.append(
                f"indexes of snapshot {file.snapshot_id} are not used until they are built again:"
                f" {error}"
            )
            if on_damage is not None:
                on_damage(file, error)
            elif not is_gone:
                damaged = isinstance(error, FormatError)
                kind = DamagedIndexWarning if damaged else AlcidWarning
                warnings.warn(f"bundle left out: {error}", kind, stacklevel=3)
        return None


def bundles_against(
    bundles: tuple[Bundle, ...],
    paths: pa.Array,
    sizes: npt.NDArray[Any],
    *,
    strict: bool = False,
    on_damage: OnDamage | None = None,
) -> BundleSet:
    """Bundles against data files, by their paths in the manifests and their sizes."""
    versions = pa.repeat(pa.scalar("", pa.string()), len(paths))
    return BundleSet(bundles, paths, sizes, versions, strict=strict, on_damage=on_damage)
