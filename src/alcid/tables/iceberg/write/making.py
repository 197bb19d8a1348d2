"""Make the bundle of a snapshot from staged bundles and those of its ancestors.

Bundles of ancestors may stay in their statistics files, where reads find them. They are merged into
the new bundle if that is cheap compared with what is new, and if it is necessary: many bundles to
open, many entries of removed files, or a snapshot that may soon expire with its file. A bundle
names those that it replaces, so that they are not opened, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.errors import (
    FileGoneError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.puffin import Blob, PuffinReader
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    MergeCandidate,
    PayloadKind,
    State,
    choose_bundles,
    plan_merge,
)
from alcid.index.bundle.format import INDEX, OWN_TYPES
from alcid.tables.bundle_folder import FULL_BYTES, BundleFolder
from alcid.tables.iceberg.bundles import BundleFinder, SnapshotBundles, match_bundles
from alcid.tables.iceberg.field_ids import NameMapping
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, StatisticsFile, TableMetadata
from alcid.tables.iceberg.write.columns import field_ids
from alcid.tables.iceberg.write.contents import Amended, Content, Merged

CHEAP_BYTES = 64 << 20
"""The bytes up to which bundles are always merged."""
_CHEAP_TIMES = 4
_MOST_BUNDLES = 8
_MAX_AGE = "history.expire.max-snapshot-age-ms"
_DEFAULT_MAX_AGE = 5 * 24 * 3600 * 1000

Blobs = list[tuple[Blob, bytes]]


@dataclass(frozen=True, slots=True)
class BundleMaker:
    """Makes the statistics file of a snapshot; `staged` and `without` are passed to `publish`."""

    file_io: FileIO
    snapshot: Snapshot
    paths: pa.StringArray
    """The paths in manifests of the data files that can be indexed."""
    sizes: Int64Array
    mapping: NameMapping | None
    finder: BundleFinder
    folder: BundleFolder
    """The folder in which builds stage bundles."""

    def match(self, bundles: Sequence[Bundle]) -> BundleSet:
        """Match bundles, oldest first, with the files of the snapshot."""
        return match_bundles(tuple(bundles), self.paths, self.sizes)

    def staged(
        self, metadata: TableMetadata, lost: Sequence[StatisticsFile], *, anew: bool = False
    ) -> Content | StatisticsFile | None:
        """The existing bundles with the staged ones.

        If those add nothing, the newest bundle is registered for this snapshot, too; if the
        snapshot has a file with sketches, the bundle is copied into it as far as that is cheap.

        Args:
            metadata: See `publish`.
            lost: See `publish`.
            anew: Whether staged bundles replace equal payloads of older ones.
        """
        existing = self.finder.find(metadata, self.snapshot)
        new = [*self._open(lost), *self.folder.load().current]
        current = metadata.statistics.get(self.snapshot.id)
        if anew or self._adds(existing.bundles, new):
            return self._merged(metadata, existing, new)
        newest = existing.files[-1] if existing.files else None
        if newest is None or (current is not None and current.path == newest.path):
            return current
        if current is None:
            return replace(newest, snapshot_id=self.snapshot.id, blobs=())
        if newest.size > CHEAP_BYTES:
            return current
        sketches = self._sketches(current)
        return Amended.of(self.file_io, (newest.path, newest.size), add=sketches)

    def without(
        self, metadata: TableMetadata, dropped: Collection[PayloadKind]
    ) -> Content | StatisticsFile | None:
        """The existing bundles without some indexes, which also replaces those of ancestors.

        Args:
            metadata: See `publish`.
            dropped: The indexes, by the names in files. With the last index, the bundle goes.
        """
        existing = self.finder.find(metadata, self.snapshot)
        current = metadata.statistics.get(self.snapshot.id)
        bundles = self.match(existing.bundles)
        remaining = [kind for kind in bundles.kinds if kind not in dropped]
        if len(remaining) == len(bundles.kinds):
            return current
        sketches = [] if current is None else self._sketches(current)
        if any(kind.type == INDEX for kind in remaining):
            return self._merge(bundles, sketches, kinds=remaining, complete=True)
        if self._listed_before(metadata):  # an empty bundle hides those of ancestors
            return self._merge(self.match(()), sketches, complete=True)
        if not sketches:
            return None
        return Amended.of(self.file_io, None, add=sketches)

    def _open(self, files: Sequence[StatisticsFile]) -> list[Bundle]:
        bundles = []
        for file in files:
            with suppress(FileGoneError, FormatError, LimitError, UnsupportedError):
                bundles.append(self.finder.open(file))
        return bundles

    def _adds(self, before: Sequence[Bundle], new: Sequence[Bundle]) -> bool:
        """Whether new bundles have payloads of files that existing ones do not."""
        if not new:
            return False
        existing, both = self.match(before), self.match([*before, *new])
        return len(both.live()[0]) > len(existing.live()[0]) or any(
            bool(
                np.any(
                    (both.coverage(kind).states == State.FRESH)
                    & (existing.coverage(kind).states != State.FRESH)
                )
            )
            for kind in both.kinds
        )

    def _merged(
        self, metadata: TableMetadata, existing: SnapshotBundles, new: Sequence[Bundle]
    ) -> Merged:
        """New bundles merged with some of the existing ones."""
        current = metadata.statistics.get(self.snapshot.id)
        older = self._to_merge(metadata, existing, sum(bundle.source.size for bundle in new))
        paths = [
            file.path
            for bundle, file in zip(existing.bundles, existing.files, strict=True)
            if bundle in older
        ]
        return self._merge(
            self.match([*existing.bundles, *new]),
            [] if current is None else self._sketches(current),
            chosen=[*older, *new],
            replaces=[path.rpartition("/")[2] for path in paths],
            complete=len(older) == len(existing.bundles),
        )

    def _to_merge(
        self, metadata: TableMetadata, existing: SnapshotBundles, new_bytes: int
    ) -> list[Bundle]:
        """The existing bundles to merge with the new ones; see `choose_bundles`.

        A bundle that no ancestor lists would be lost otherwise.
        """
        listed = self._listed_before(metadata)
        bundles = self.match(existing.bundles)
        fresh = dict(zip(bundles.bundles, bundles.fresh_entries().tolist(), strict=True))
        candidates = [
            MergeCandidate(
                bundle.source.size,
                bundle.file_count,
                fresh.get(bundle, 0),
                required=file.path not in listed or self._may_expire(metadata, file),
            )
            for bundle, file in zip(existing.bundles, existing.files, strict=True)
        ]
        cheap = max(CHEAP_BYTES, _CHEAP_TIMES * new_bytes)
        chosen = choose_bundles(candidates, full=FULL_BYTES, most=_MOST_BUNDLES - 1, cheap=cheap)
        return [existing.bundles[position] for position in chosen]

    def _may_expire(self, metadata: TableMetadata, file: StatisticsFile) -> bool:
        """Whether the snapshot of a bundle has reached half of its maximum age."""
        try:
            max_age = int(metadata.properties.get(_MAX_AGE, _DEFAULT_MAX_AGE))
        except ValueError:
            max_age = _DEFAULT_MAX_AGE
        age = self.snapshot.timestamp_ms - metadata.snapshots[file.snapshot_id].timestamp_ms
        return 2 * age > max_age

    def _listed_before(self, metadata: TableMetadata) -> set[str]:
        """The statistics files of ancestors."""
        return {
            metadata.statistics[ancestor.id].path
            for ancestor in metadata.ancestors(self.snapshot.id)
            if ancestor.id != self.snapshot.id and ancestor.id in metadata.statistics
        }

    def _sketches(self, file: StatisticsFile) -> Blobs:
        """The blobs in a file of the snapshot that describe it and are not part of a bundle."""
        try:
            reader = PuffinReader(self.file_io.source(file.path, file.size))
            return [
                (blob, reader.read(blob))
                for blob in reader.blobs
                if not blob.type.startswith(OWN_TYPES) and blob.snapshot_id == self.snapshot.id
            ]
        except (FileGoneError, FormatError, LimitError):  # unreadable for everybody
            return []

    def _merge(
        self,
        bundles: BundleSet,
        blobs: Blobs,
        *,
        chosen: Collection[Bundle] | None = None,
        replaces: Sequence[str] = (),
        kinds: Collection[PayloadKind] | None = None,
        complete: bool,
    ) -> Merged:
        plan = plan_merge(
            bundles,
            chosen=chosen,
            replaces=replaces,
            field_ids=field_ids(bundles, self.mapping),
            snapshot_id=self.snapshot.id,
            sequence_number=self.snapshot.sequence_number,
            kinds=kinds,
            complete=complete,
            blobs=blobs,
        )
        sources = (bundles.bundles[number].source for number in plan.numbers)
        return Merged(plan, tuple((source.name, source.size) for source in sources))
