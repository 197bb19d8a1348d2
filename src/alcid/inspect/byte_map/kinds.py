"""Identify the kind of an index file by its first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import PurePath
from typing import Final

from alcid.errors import FormatError
from alcid.formats.deletion_vector.vector import AROUND, LEAST_BODY, MAGICS
from alcid.formats.file_index import container
from alcid.formats.hash_index import HashIndex
from alcid.formats.puffin import footer
from alcid.formats.source import FileSource, Source


class Kind(StrEnum):
    """The kinds that can be inspected."""

    FILE_INDEX = "Paimon file index"
    DELETION_VECTOR_FILE = "Paimon deletion vector file"
    DELTA_VECTOR_FILE = "Delta deletion vector file"
    """The same format as Paimon's; only the file name differs."""
    HASH_INDEX = "Paimon hash index"
    PUFFIN = "Puffin file"
    DELETION_VECTOR = "deletion vector"
    THETA_SKETCH = "theta sketch"


_NEIGHBOURS: Final = {
    b"PAR1": "a Parquet file",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"ARROW1": "an Arrow file",
    b"\x1f\x8b": "a gzip file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PK\x03\x04": "a zip file",
}
"""Other kinds of files in tables, which error messages name."""
_DELTAS: Final = re.compile(r"deletion_vector_.*\.bin")
_SHOWN, _HEADER_BYTES = 8, 16
_HASH_BYTES = 4
_MAX_TEXT_BYTES = 1 << 16
_OTHER_SUFFIXES: Final = (".index", ".puffin", ".stats")
_MAX_HASH_BYTES = 1 << 28  # 64 million keys of one bucket


def identify(source: Source) -> Kind:
    """The kind of a file.

    A hash index has no magic number: see `_may_be_hashes`.

    Raises:
        FormatError: The file is of another kind, which the message names.

    >>> from alcid.formats.source import BytesSource
    >>> identify(BytesSource(b"PAR1....", "a.parquet"))
    Traceback (most recent call last):
    alcid.errors.FormatError: a.parquet: not an index file at offset 0: found a Parquet file,
    expected a Paimon file index, a Paimon deletion vector file, ...
    """
    start = source.read(0, min(source.size, _HEADER_BYTES))
    if start.startswith(container.MAGIC.to_bytes(8, "big")):
        return Kind.FILE_INDEX
    if start.startswith(footer.MAGIC):
        return Kind.PUFFIN
    if start[4:8] in MAGICS:
        return Kind.DELETION_VECTOR
    if start == b"\x01" or start[5:9] in MAGICS or _begins_with_vector(start, source.size):
        is_deltas = _DELTAS.fullmatch(PurePath(source.name).name)
        return Kind.DELTA_VECTOR_FILE if is_deltas else Kind.DELETION_VECTOR_FILE
    if len(start) >= 8 and start[0] in (1, 2, 3) and start[1] in (3, 4) and start[2] == 3:
        return Kind.THETA_SKETCH
    neighbour = next((name for magic, name in _NEIGHBOURS.items() if start.startswith(magic)), None)
    if neighbour is None and _may_be_hashes(source):
        return Kind.HASH_INDEX
    raise FormatError(
        "not an index file",
        file=source.name,
        offset=0,
        found=neighbour or _shown(start),
        expected=" or ".join(", ".join(f"a {kind}" for kind in Kind).rsplit(", ", 1)),
    )


def _shown(start: bytes) -> str:
    if not start:
        return "no bytes"
    return f"text, {start.decode()!r}" if _is_text(start) else f"bytes {start[:_SHOWN].hex()}"


def _is_text(data: bytes) -> bool:
    return data.isascii() and all(byte >= 32 or byte in b"\t\n\r" for byte in data)


def _begins_with_vector(start: bytes, size: int) -> bool:
    """Whether a vector with a damaged magic may follow the version: its length fits."""
    length = int.from_bytes(start[1:5], "big")
    return start[:1] == b"\x01" and LEAST_BODY <= length <= size - 1 - AROUND


def _may_be_hashes(source: Source) -> bool:
    """Whether a file of no other kind may be a hash index, which has only 4 bytes for each hash.

    It must not be text. Paimon's have names like `index-...` without a suffix; under another name
    no hash may occur twice, as 4-byte words of most other files do.
    """
    name = PurePath(source.name)
    if not source.size or source.size % _HASH_BYTES or source.size > _MAX_HASH_BYTES:
        return False
    if name.suffix in _OTHER_SUFFIXES:
        return False
    if _is_text(source.read(0, min(source.size, _MAX_TEXT_BYTES))):
        return False
    is_paimons = name.name.startswith("index-") and not name.suffix
    return is_paimons or not HashIndex.from_bytes(source.read(0, source.size)).duplicates


@contextmanager
def opened(path: str) -> Iterator[tuple[FileSource, Kind]]:
    """Open a file for range reads, and identify its kind."""
    with FileSource(path) as source:
        yield source, identify(source)
