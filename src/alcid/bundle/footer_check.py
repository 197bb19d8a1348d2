"""The checksum that a Puffin footer does not have.

The last blob of a bundle is `alcid-bundle-v1`, of no bytes. Its property `crc32` is the CRC-32 of
the footer as `write_footer` composes it while these eight digits are zeros. So whatever the footer
says of columns, index types and places is right, or the bundle is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from alcid.bundle.kinds import BUNDLE
from alcid.errors import ChecksumError, FormatError
from alcid.formats.puffin import Blob
from alcid.formats.puffin.footer import write_footer

__all__ = ["CRC_PROPERTY", "check_footer", "closing_properties", "number"]

CRC_PROPERTY = "crc32"
_ZEROS = "00000000"


def closing_properties(
    blobs: Sequence[Blob], last: Blob, properties: Mapping[str, str]
) -> dict[str, str]:
    """The properties of `last`, the blob that closes a bundle, with the CRC of the footer."""
    return last.properties | {CRC_PROPERTY: _crc((*blobs, last), properties)}


def check_footer(
    blobs: Sequence[Blob], properties: Mapping[str, str], *, file: str, offset: int
) -> Blob:
    """The blob that closes a bundle, whose footer at `offset` must be what its CRC says.

    Raises:
        FormatError: It is damaged, or the file is no bundle.
    """
    if not blobs or blobs[-1].type != BUNDLE:
        found = repr(blobs[-1].type) if blobs else "no blob"
        raise FormatError("no bundle", file=file, offset=offset, found=found, expected=BUNDLE)
    stated = blobs[-1].properties.get(CRC_PROPERTY)
    if (found := _crc(blobs, properties)) != stated:
        raise ChecksumError(
            "damaged footer", file=file, offset=offset, found=found, expected=stated
        )
    return blobs[-1]


def number(blob: Blob, name: str, *, file: str) -> int:
    """A property that must be a number."""
    text = blob.properties.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        problem = f"bad property {name!r} of a blob"
        raise FormatError(problem, file=file, offset=blob.offset, found=repr(text))
    return int(text)


def _crc(blobs: Sequence[Blob], properties: Mapping[str, str]) -> str:
    last = replace(blobs[-1], properties=blobs[-1].properties | {CRC_PROPERTY: _ZEROS})
    return f"{zlib.crc32(write_footer((*blobs[:-1], last), properties)):08x}"
