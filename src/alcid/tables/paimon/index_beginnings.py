"""The first bytes of file indexes: of each data file a container, in the manifest or beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from alcid.bundle.kept import KeptSource
from alcid.errors import FormatError
from alcid.formats.source import BytesSource, Source
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile

__all__ = ["Beginning", "index_sources", "read_beginnings"]

_NOTHING: Mapping[str, int] = {}
_HEAD = 16 << 10  # bytes of a container beside its file that are read with its head


class Beginning(NamedTuple):
    """The first bytes of a container."""

    size: int
    data: bytes
    path: str
    """Of the file that it is, or of the data file in whose manifest it is."""
    is_beside: bool

    @property
    def is_whole(self) -> bool:
        """Whether that is all of it."""
        return len(self.data) == self.size

    def source(self, storage: Storage) -> Source:
        """The container, of which these bytes are not read again."""
        if not self.is_beside:
            return BytesSource(self.data, f"{self.path} in its manifest")
        source = KeptSource(storage.source(self.path, self.size))
        source.hold(0, self.data)
        return source


def read_beginnings(
    storage: Storage, files: Sequence[PlacedFile], sizes: Mapping[str, int] = _NOTHING
) -> list[Beginning | FormatError | None]:
    """The first bytes of the containers of files, in one round of reads; None: there is none."""
    found: list[Beginning | FormatError | None] = [None] * len(files)
    beside: list[int] = []
    paths: list[str] = []
    for place, one in enumerate(files):
        file = one.entry.file
        embedded, names = file.embedded_index, file.index_files
        if embedded is not None:
            found[place] = Beginning(len(embedded), embedded, one.path, is_beside=False)
        elif len(names) > 1:
            found[place] = FormatError(
                "index files", file=one.path, found=len(names), expected="one"
            )
        elif names:
            beside.append(place)
            paths.append(one.folder + names[0])
    starts = storage.read_starts(paths, _HEAD, sizes)
    for place, path, start in zip(beside, paths, starts, strict=True):
        if start is None:
            found[place] = FormatError("its index file is not there", file=path)
        else:
            found[place] = Beginning(start.size, start.data, path, is_beside=True)
    return found


def index_sources(
    storage: Storage, files: Sequence[PlacedFile]
) -> list[Source | FormatError | None]:
    """The containers of files; None where there is none.

    Of a file beside the data nothing is read but its first bytes, all of them in one round.

    Args:
        storage: The folder of the table.
        files: The data files.
    """
    return [
        one.source(storage) if isinstance(one, Beginning) else one
        for one in read_beginnings(storage, files)
    ]
