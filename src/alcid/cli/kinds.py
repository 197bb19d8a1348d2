"""What kind of file it is, by its first bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import PurePath
from typing import Final

from alcid.errors import FormatError
from alcid.formats.deletion_vector.encoding import MAGICS
from alcid.formats.file_index import container
from alcid.formats.hash_index import HashIndex
from alcid.formats.puffin import footer
from alcid.formats.source import FileSource, Source

__all__ = ["Kind", "identify", "opened"]


class Kind(StrEnum):
    """The kinds that can be inspected."""

    FILE_INDEX = "Paimon file index"
    DELETION_VECTOR_FILE = "Paimon deletion vector file"
    HASH_INDEX = "Paimon hash index"
    PUFFIN = "Puffin file"
    DELETION_VECTOR = "deletion vector"
    THETA_SKETCH = "theta sketch"


_NEIGHBOURS: Final = {
    b"PAR1": "a Parquet file",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"ARROW1": "an Arrow file",
}
"""What lies beside index files, and is named when it is given in place of one."""
_SHOWN, _TOLD_BY = 8, 16
_HASH_BYTES = 4
_OTHER_SUFFIXES: Final = (".index", ".puffin", ".stats")
_LARGEST_LOOKED_AT = 1 << 28  # 64 million keys of one bucket


def identify(source: Source) -> Kind:
    """The kind of a file.

    A hash index has no mark of its own: see `_may_be_hashes`.

    Raises:
        FormatError: It is none of those known; the message says what it is instead.

    >>> from alcid.formats.source import BytesSource
    >>> identify(BytesSource(b"PAR1....", "a.parquet"))
    Traceback (most recent call last):
    alcid.errors.FormatError: a.parquet: not an index file at offset 0: found a Parquet file,
    expected a Paimon file index, a Paimon deletion vector file, ...
    """
    start = source.read(0, min(source.size, _TOLD_BY))
    if start.startswith(container.MAGIC.to_bytes(8, "big")):
        return Kind.FILE_INDEX
    if start.startswith(footer.MAGIC):
        return Kind.PUFFIN
    if start[4:8] in MAGICS:
        return Kind.DELETION_VECTOR
    if start == b"\x01" or (start[:1] == b"\x01" and start[5:9] in MAGICS):
        return Kind.DELETION_VECTOR_FILE
    if len(start) >= 8 and start[0] in (1, 2, 3) and start[1] in (3, 4) and start[2] == 3:
        return Kind.THETA_SKETCH
    found = f"bytes {start[:_SHOWN].hex()}" if start else "no bytes"
    for magic, neighbour in _NEIGHBOURS.items():
        if start.startswith(magic):
            found = neighbour
            break
    else:
        if _may_be_hashes(source):
            return Kind.HASH_INDEX
    raise FormatError(
        "not an index file",
        file=source.name,
        offset=0,
        found=found,
        expected=" or ".join(", ".join(f"a {kind}" for kind in Kind).rsplit(", ", 1)),
    )


def _may_be_hashes(source: Source) -> bool:
    """Whether a file that is nothing else can be a hash index: 4 bytes a hash, and no more.

    Paimon's have a name without an ending. Under another name, no hash may occur twice, which
    words of most other files do, and it must not be text.
    """
    if not source.size or source.size % _HASH_BYTES:
        return False
    suffix = PurePath(source.name).suffix
    if suffix in _OTHER_SUFFIXES or source.size > _LARGEST_LOOKED_AT:
        return False
    data = source.read(0, source.size)
    return not suffix or not (data.isascii() or HashIndex.from_bytes(data).duplicates)


@contextmanager
def opened(path: str) -> Iterator[tuple[FileSource, Kind]]:
    """The file at `path`, open for reading by range, and its kind."""
    with FileSource(path) as source:
        yield source, identify(source)
