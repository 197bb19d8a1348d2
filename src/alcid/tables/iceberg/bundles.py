"""The index bundles of an Iceberg snapshot, in its statistics file and those of its ancestors.

The suffix of a statistics file says whether it contains a bundle. The search ends at a bundle that
is marked as complete, since it contains everything that older ones have. Data files never change,
so the entries of a bundle, which are keyed by path, stay valid.

If another tool replaces or expires a statistics file, queries only get slower until the next build.
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
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, StatisticsFile, TableMetadata

BUNDLE_SUFFIX = "-alcid.stats"
"""The suffix of statistics files with a bundle."""


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotBundles:
    """The bundles of a snapshot, oldest first."""

    bundles: tuple[Bundle, ...] = ()
    files: tuple[StatisticsFile, ...] = ()
    """The statistics file of each bundle, as listed by the nearest snapshot."""
    notes: tuple[str, ...] = ()
    """Problems that explain why indexes are not used."""


class BundleFinder:
    """Finds bundles, and caches the open ones, which never change."""

    def __init__(self, file_io: FileIO, *, strict: bool = False) -> None:
        """Start with an empty cache.

        Args:
            file_io: Opens files.
            strict: Raise an error for a damaged bundle, instead of a warning.
        """
        self._file_io, self._strict = file_io, strict
        self._opened: dict[str, Bundle] = {}

    def find(
        self,
        metadata: TableMetadata,
        snapshot: Snapshot | None,
        *,
        on_damage: Callable[[StatisticsFile, AlcidError], None] | None = None,
    ) -> SnapshotBundles:
        """Find the bundles of a snapshot; unreadable ones are left out with a warning.

        Args:
            metadata: The table metadata.
            snapshot: The snapshot; None before the first commit.
            on_damage: Is called instead of the warning.
        """
        chain: list[tuple[Bundle, StatisticsFile]] = []
        notes: list[str] = []
        foreign: list[int] = []  # snapshots with a file of another tool before any bundle
        seen: set[str] = set()
        replaced: set[str] = set()  # the names of files that a nearer bundle replaces
        for ancestor in () if snapshot is None else metadata.ancestors(snapshot.id):
            file = metadata.statistics.get(ancestor.id)
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
                foreign.append(ancestor.id)
        if foreign:
            notes.append(
                f"no indexes in the statistics file of snapshot {foreign[0]}, which another tool"
                f" may have replaced{': those of an ancestor are used' if chain else ''}:"
                " build_indexes creates missing ones"
            )
        self._opened = {file.path: bundle for bundle, file in chain}
        chain.reverse()
        return SnapshotBundles(
            tuple(bundle for bundle, _ in chain), tuple(file for _, file in chain), tuple(notes)
        )

    def open(self, file: StatisticsFile) -> Bundle:
        """Open the bundle of a statistics file.

        Raises:
            FileGoneError: The file is missing.
            FormatError: The bundle is damaged.
            UnsupportedError: The bundle has a later version.
        """
        source = self._file_io.source(file.path, file.size)
        if file.path in self._opened:
            storage, path = self._file_io.find(file.path)
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
            is_gone = isinstance(error, FileGoneError)  # another process may remove it at any time
            if self._strict and not is_gone:
                raise
            notes.append(
                f"indexes of snapshot {file.snapshot_id} are not used until they are rebuilt:"
                f" {error}"
            )
            if on_damage is not None:
                on_damage(file, error)
            elif not is_gone:
                damaged = isinstance(error, FormatError)
                kind = DamagedIndexWarning if damaged else AlcidWarning
                warnings.warn(f"bundle left out: {error}", kind, stacklevel=3)
        return None


def match_bundles(
    bundles: tuple[Bundle, ...],
    paths: pa.Array,
    sizes: npt.NDArray[Any],
    *,
    strict: bool = False,
    on_damage: Callable[[AlcidError], None] | None = None,
) -> BundleSet:
    """Match bundles with data files, by path and size in the manifests."""
    versions = pa.repeat(pa.scalar("", pa.string()), len(paths))
    return BundleSet(bundles, paths, sizes, versions, strict=strict, on_damage=on_damage)
