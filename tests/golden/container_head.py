"""The head of a file-index container, parsed apart from the library that the files test."""

from __future__ import annotations

import struct

from tests.golden.values import Json


def parse_head(data: bytes) -> Json:
    """All fields of the head; entries in the order in which they are stored."""
    magic, version, head_length, columns = struct.unpack_from(">qiii", data)
    at = 20
    entries = []
    for _ in range(columns):
        column, at = _utf(data, at)
        (indexes,) = struct.unpack_from(">i", data, at)
        at += 4
        for _ in range(indexes):
            index_type, at = _utf(data, at)
            start, length = struct.unpack_from(">ii", data, at)
            at += 8
            entries.append(
                {"column": column, "index_type": index_type, "start": start, "length": length}
            )
    (redundant,) = struct.unpack_from(">i", data, at)
    return {
        "magic": magic,
        "version": version,
        "head_length": head_length,
        "entries": entries,
        "redundant_length": redundant,
    }


def _utf(data: bytes, at: int) -> tuple[str, int]:
    """Java's modified UTF-8: NUL in two bytes, an astral character as two surrogates.

    >>> _utf(bytes.fromhex("0008c080eda0bdedb0a7"), 0)
    ('\\x00🐧', 10)
    """
    (length,) = struct.unpack_from(">H", data, at)
    end = at + 2 + length
    units = data[at + 2 : end].replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return units.encode("utf-16", "surrogatepass").decode("utf-16"), end
