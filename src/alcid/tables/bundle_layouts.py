"""Where the pages of data files are, as bundles know it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from alcid.bundle import BundleSet, Kind, prefetch
from alcid.errors import AlcidError, FormatError, UnsupportedError
from alcid.formats.source import ReadMany
from alcid.tables.open_files import PlacedColumn
from alcid.tables.page_bytes import unpack_column

__all__ = ["known_layouts"]


def known_layouts(
    bundles: BundleSet,
    wanted: Sequence[tuple[int, str]],
    read_ranges: ReadMany,
    on_damage: Callable[[AlcidError], None],
) -> dict[tuple[int, str], PlacedColumn]:
    """The layouts that bundles have of columns of files, read in one round.

    Args:
        bundles: The bundles.
        wanted: Files and columns, as the files spell them.
        read_ranges: How to read a round of ranges.
        on_damage: Is told what is damaged, and so left out.
    """
    payloads = {
        (file, name): payload
        for file, name in wanted
        if (payload := bundles.coverage(Kind.pages(name)).payload(file)) is not None
    }
    prefetch(((payload, [(0, payload.size)]) for payload in payloads.values()), read_ranges)
    found = {}
    for (file, name), payload in payloads.items():
        try:
            data = payload.read(0, payload.size)
            found[file, name] = unpack_column(name, data, file=bundles.paths[file].as_py())
        except (FormatError, UnsupportedError) as error:
            on_damage(error)
    return found
