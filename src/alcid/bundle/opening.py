"""Opening many bundles in two rounds of reads, however many there are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

from alcid.bundle.kept import KeptSource
from alcid.bundle.reader import Bundle, opening_places
from alcid.errors import (
    AlcidError,
    AlcidWarning,
    DamagedIndexWarning,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.source import Range, ReadMany, Source, read_each

__all__ = ["open_bundles"]

Place = tuple[int, int]


def open_bundles(
    sources: Iterable[Source],
    *,
    strict: bool = False,
    read_many: ReadMany = read_each,
    on_damage: Callable[[AlcidError], None] | None = None,
) -> list[Bundle]:
    """Open bundles; those that are damaged or of a later version are left out, with a warning.

    The first round reads the end of each; the second files and directories, of those that are not
    so small that the first had brought them.

    Args:
        sources: The bundles of a table, the oldest first; they must stay open.
        strict: Raise in place of the warning.
        read_many: How to read a round of ranges.
        on_damage: Is called in place of the warning.
    """
    every = [KeptSource(source) for source in sources]
    _fill([(kept, place) for kept in every for place in opening_places(kept)], read_many)
    bundles = []
    for kept in every:
        try:
            bundles.append(Bundle(kept))
        except (FormatError, LimitError, UnsupportedError) as error:
            if strict:
                raise
            if on_damage is not None:
                on_damage(error)
                continue
            of_later_version = isinstance(error, UnsupportedError)
            kind = AlcidWarning if of_later_version else DamagedIndexWarning
            warnings.warn(f"bundle left out: {error}", kind, stacklevel=2)
    places = [(bundle.kept, bundle.metadata_place) for bundle in bundles]
    _fill([(kept, place) for kept, place in places if place and not kept.has(*place)], read_many)
    return bundles


def _fill(places: list[tuple[KeptSource, Place]], read_many: ReadMany) -> None:
    """Read places of many sources in one round, and keep them."""
    ranges = [Range(kept.whole, *place) for kept, place in places]
    parts = read_many(ranges) if ranges else ()
    for (kept, (offset, length)), data in zip(places, parts, strict=True):
        if len(data) == length:  # else it is read again, and the source says what is wrong
            kept.hold(offset, data)
