"""What kind of file it is, by its first bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from alcid.errors import FormatError
from alcid.formats.container import MAGIC
from alcid.formats.source import FileSource, Source

__all__ = ["FILE_INDEX", "KINDS", "identify", "opened"]

FILE_INDEX: Final = "Paimon file index"

KINDS: Final = {MAGIC.to_bytes(8, "big"): FILE_INDEX}
"""The kinds that can be inspected, by their first bytes."""

_NEIGHBOURS: Final = {
    b"PAR1": "a Parquet file",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"PFA1": "a Puffin file",
    b"ARROW1": "an Arrow file",
}
"""What lies beside index files, and is named when it is given in place of one."""
_SHOWN = 8


def identify(source: Source) -> str:
    """The kind of a file.

    Raises:
        FormatError: It is none of those known; the message says what it is instead.

    >>> from alcid.formats.source import BytesSource
    >>> identify(BytesSource(b"PAR1....", "a.parquet"))
    Traceback (most recent call last):
    alcid.errors.FormatError: a.parquet: not an index file at offset 0: found a Parquet file,
    expected a Paimon file index (00054e4ed01a35ae)
    """
    start = source.read(0, min(source.size, _SHOWN))
    for magic, kind in KINDS.items():
        if start.startswith(magic):
            return kind
    found = f"bytes {start.hex()}" if start else "no bytes"
    for magic, neighbour in _NEIGHBOURS.items():
        if start.startswith(magic):
            found = neighbour
    raise FormatError(
        "not an index file",
        file=source.name,
        offset=0,
        found=found,
        expected=" or ".join(f"a {kind} ({magic.hex()})" for magic, kind in KINDS.items()),
    )


@contextmanager
def opened(path: str) -> Iterator[tuple[FileSource, str]]:
    """The file at `path`, open for reading by range, and its kind."""
    with FileSource(path) as source:
        yield source, identify(source)
