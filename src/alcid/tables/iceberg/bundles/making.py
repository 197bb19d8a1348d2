"""The bundle of a snapshot: what a build has staged, and what older bundles have.

Older bundles that ancestors list may stay where they are, as reads find them there. They are taken
over if that is cheap against what is new, and if it has to be: many to be opened, many entries of
files that are gone, or a snapshot that may soon be expired, and its file with it. A bundle names
those that it takes over, so that they are not opened besides.
"""

from __future__ import annotations

import io
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
    merge,
)
from alcid.index.bundle.format import INDEX, OWN_TYPES
from alcid.index.bundle.writer import amend
from alcid.tables.bundle_folder import FULL_BYTES, BundleFolder
from alcid.tables.iceberg.bundles import BundleFinder, FoundBundles, bundles_against
from alcid.tables.iceberg.bundles.columns import field_ids
from alcid.tables.iceberg.field_ids import NameMapping
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, StatisticsFile, TableMetadata

__all__ = ["BundleMaker"]

CHEAP_BYTES = 64 << 20
"""What is always taken over."""
_CHEAP_TIMES = 4
_MOST_BUNDLES = 8
_MAX_AGE = "history.expire.max-snapshot-age-ms"
_DEFAULT_MAX_AGE = 5 * 24 * 3600 * 1000

Blobs = list[tuple[Blob, bytes]]


@dataclass(frozen=True, slots=True)
class BundleMaker:
    """Makes what a snapshot is to list; its methods are given to `publish`."""

    places: Places
    snapshot: Snapshot
    paths: pa.StringArray
    """The data files that can have indexes, as manifests name them."""
    sizes: Int64Array
    mapping: NameMapping | None
    finder: BundleFinder
    folder: BundleFolder
    """Where builds stage bundles."""

    def against(self, bundles: Sequence[Bundle]) -> BundleSet:
        """Bundles, the oldest first, against the files of the snapshot."""
        return bundles_against(tuple(bundles), self.paths, self.sizes)

    def staged(
        self, metadata: TableMetadata, lost: Sequence[StatisticsFile], *, anew: bool = False
    ) -> bytes | StatisticsFile | None:
        """What there is, and what was staged.

        If that adds nothing, the newest bundle is listed for the snapshot too; one that has a file
        of sketches of its own gets a copy, if that is cheap.

        Args:
            metadata: See `publish`.
            lost: See `publish`.
            anew: Whether what was staged counts though older bundles have the same.
        """
        found = self.finder.find(metadata, self.snapshot)
        new = [*self._open(lost), *self.folder.load().current]
        known = metadata.statistics.get(self.snapshot.id)
        if anew or self._adds(found.bundles, new):
            return self._merged(metadata, found, new)
        newest = found.files[-1] if found.files else None
        if newest is None or (known is not None and known.path == newest.path):
            return known
        if known is None:
            return replace(newest, snapshot_id=self.snapshot.id, blobs=())
        if newest.size > CHEAP_BYTES:
            return known
        data = io.BytesIO()
        source = self.places.source(newest.path, newest.size)
        amend(source, data, keep=lambda _: False, add=self._sketches(known))
        return data.getvalue()

    def without(
        self, metadata: TableMetadata, dropped: Collection[PayloadKind]
    ) -> bytes | StatisticsFile | None:
        """What there is but for some indexes; ancestors' bundles do not count any more.

        Args:
            metadata: See `publish`.
            dropped: The indexes, as files spell them. If no other is left, nothing is.
        """
        found = self.finder.find(metadata, self.snapshot)
        known = metadata.statistics.get(self.snapshot.id)
        bundles = self.against(found.bundles)
        left = [kind for kind in bundles.kinds if kind not in dropped]
        if len(left) == len(bundles.kinds):
            return known
        sketches = [] if known is None else self._sketches(known)
        if any(kind.type == INDEX for kind in left):
            return self._merge(bundles, sketches, kinds=left, complete=True)
        if self._listed_before(metadata):  # an empty one hides those
            return self._merge(self.against(()), sketches, complete=True)
        if not sketches:
            return None
        data = io.BytesIO()
        amend(None, data, keep=lambda _: False, add=sketches)
        return data.getvalue()

    def _open(self, files: Sequence[StatisticsFile]) -> list[Bundle]:
        found = []
        for file in files:
            with suppress(FileGoneError, FormatError, LimitError, UnsupportedError):
                found.append(self.finder.open(file))
        return found

    def _adds(self, before: Sequence[Bundle], new: Sequence[Bundle]) -> bool:
        """Whether new bundles have anything of the files that others have not."""
        if not new:
            return False
        known, both = self.against(before), self.against([*before, *new])
        return len(both.live()[0]) > len(known.live()[0]) or any(
            bool(
                np.any(
                    (both.coverage(kind).states == State.FRESH)
                    & (known.coverage(kind).states != State.FRESH)
                )
            )
            for kind in both.kinds
        )

    def _merged(self, metadata: TableMetadata, found: FoundBundles, new: Sequence[Bundle]) -> bytes:
        """New bundles as one, with those of older ones that are taken over."""
        known = metadata.statistics.get(self.snapshot.id)
        older = self._taken_over(metadata, found, sum(bundle.source.size for bundle in new))
        paths = [
            file.path
            for bundle, file in zip(found.bundles, found.files, strict=True)
            if bundle in older
        ]
        return self._merge(
            self.against([*found.bundles, *new]),
            [] if known is None else self._sketches(known),
            chosen=[*older, *new],
            replaces=[path.rpartition("/")[2] for path in paths],
            complete=len(older) == len(found.bundles),
        )

    def _taken_over(
        self, metadata: TableMetadata, found: FoundBundles, new_bytes: int
    ) -> list[Bundle]:
        """The older bundles that are merged with the new ones; see `choose_bundles`.

        One that no ancestor lists is lost if it is not taken over.
        """
        listed = self._listed_before(metadata)
        bundles = self.against(found.bundles)
        fresh = dict(zip(bundles.bundles, bundles.fresh_entries().tolist(), strict=True))
        candidates = [
            MergeCandidate(
                bundle.source.size,
                bundle.file_count,
                fresh.get(bundle, 0),
                required=file.path not in listed or self._may_expire(metadata, file),
            )
            for bundle, file in zip(found.bundles, found.files, strict=True)
        ]
        cheap = max(CHEAP_BYTES, _CHEAP_TIMES * new_bytes)
        chosen = choose_bundles(candidates, full=FULL_BYTES, most=_MOST_BUNDLES - 1, cheap=cheap)
        return [found.bundles[place] for place in chosen]

    def _may_expire(self, metadata: TableMetadata, file: StatisticsFile) -> bool:
        """Whether the snapshot that lists a bundle has seen more than half of its life."""
        try:
            most = int(metadata.properties.get(_MAX_AGE, _DEFAULT_MAX_AGE))
        except ValueError:
            most = _DEFAULT_MAX_AGE
        age = self.snapshot.timestamp_ms - metadata.snapshots[file.snapshot_id].timestamp_ms
        return 2 * age > most

    def _listed_before(self, metadata: TableMetadata) -> set[str]:
        """The statistics files that ancestors list."""
        return {
            metadata.statistics[one.id].path
            for one in metadata.ancestors(self.snapshot.id)
            if one.id != self.snapshot.id and one.id in metadata.statistics
        }

    def _sketches(self, file: StatisticsFile) -> Blobs:
        """The blobs of the snapshot's own file that describe it, and are no part of a bundle."""
        try:
            reader = PuffinReader(self.places.source(file.path, file.size))
            return [
                (blob, reader.read(blob))
                for blob in reader.blobs
                if not blob.type.startswith(OWN_TYPES) and blob.snapshot_id == self.snapshot.id
            ]
        except (FileGoneError, FormatError, LimitError):  # nobody can read it
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
    ) -> bytes:
        data = io.BytesIO()
        merge(
            bundles,
            data,
            chosen=chosen,
            replaces=replaces,
            field_ids=field_ids(bundles, self.mapping),
            snapshot_id=self.snapshot.id,
            sequence_number=self.snapshot.sequence_number,
            kinds=kinds,
            complete=complete,
            blobs=blobs,
            read_many=self.places.read_ranges,
        )
        return data.getvalue()
