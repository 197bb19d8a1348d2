"""Upserts that were killed between their two snapshots: which there are, and where they lie.

    "properties": {"alcid.level-0.<commit user>#<commit identifier>": "APPEND"}

The first snapshot of an upsert says so, the second takes it back. Whoever compacts next finishes
what is still told, so that batch readers see the whole of an upsert at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from alcid.errors import FileGoneError
from alcid.paimon_metadata.manifest import ManifestEntry
from alcid.paimon_metadata.snapshot import Snapshot, SnapshotFolder
from alcid.paimon_metadata.table_state import TableState
from alcid.tables.paimon.keyed.bucket import Place

__all__ = ["Upsert", "mark_of", "places_of", "told", "walk_back"]

Upsert: TypeAlias = tuple[str, int]
"""The user and the identifier of its commits."""

_PREFIX = "alcid.level-0."


def mark_of(upsert: Upsert) -> str:
    """The property that tells of an upsert.

    >>> mark_of(("nightly", 7))
    'alcid.level-0.nightly#7'
    """
    user, identifier = upsert
    return f"{_PREFIX}{user}#{identifier}"


def told(state: TableState) -> list[Upsert]:
    """The upserts that were not finished."""
    known = (state.snapshot and state.snapshot.properties) or {}
    parts = (key.removeprefix(_PREFIX).rpartition("#") for key in known if key.startswith(_PREFIX))
    return [
        (user, int(number)) for user, _, number in parts if number.isascii() and number.isdecimal()
    ]


def places_of(snapshots: SnapshotFolder, state: TableState, upsert: Upsert) -> set[Place]:
    """The buckets where files of an upsert lie on level 0, or may lie if its snapshot expired."""
    low = [entry for entry in state.entries if not entry.file.level]
    for snapshot in walk_back(snapshots, state.snapshot) if low else ():
        if (snapshot.commit_user, snapshot.commit_identifier) == upsert:
            if snapshot.commit_kind != "APPEND":
                return set()
            at = state.at(snapshot)
            # By name, as they may have other indexes by now.
            added = {_name(entry) for part in at.read(at.delta) for entry in part}
            low = [entry for entry in low if _name(entry) in added]
            break
    return {(entry.partition, entry.bucket) for entry in low}


def _name(entry: ManifestEntry) -> tuple[bytes, int, str]:
    return entry.partition, entry.bucket, entry.file.name


def walk_back(snapshots: SnapshotFolder, start: Snapshot | None) -> Iterator[Snapshot]:
    """A snapshot, then those before it that have not expired, the newest first."""
    if start is None:
        return
    yield start
    for number in reversed(snapshots.numbers()):
        if number < start.id:
            try:
                yield snapshots.get(number)
            except FileGoneError:  # expired since they were listed, and so are all before it
                return
