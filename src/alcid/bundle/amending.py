"""A Puffin file with other blobs beside those that it has; if it is a bundle, it stays one.

Iceberg keeps one statistics file for each snapshot. So what one writer puts into it is carried over
by the next, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import BinaryIO

from alcid.bundle.assembly import add_other
from alcid.bundle.footer_check import check_footer, closing_properties
from alcid.bundle.kinds import OWN_TYPES, VERSION_PROPERTY, check_version
from alcid.formats.puffin import Blob, PuffinReader, PuffinWriter, create
from alcid.formats.puffin.writer import created_by
from alcid.formats.source import Source

__all__ = ["amend"]


def amend(
    source: Source | None,
    file: BinaryIO,
    *,
    keep: Callable[[Blob], bool],
    add: Iterable[tuple[Blob, bytes]],
) -> None:
    """Write what another Puffin file has, and more.

    Args:
        source: The other one; None if there is none.
        file: Takes the bytes.
        keep: Which of its blobs to copy, of those that are no part of a bundle.
        add: Blobs with their content, to be compressed as they say; their places do not count.

    Raises:
        FormatError: The other one is damaged.
        UnsupportedError: It is a bundle of a later major version.
    """
    reader = None if source is None else PuffinReader(source)
    properties = ({} if reader is None else reader.properties) | {"created-by": created_by()}
    blobs = () if reader is None else reader.blobs
    closing = None
    if reader is not None and source is not None and VERSION_PROPERTY in reader.properties:
        check_version(reader.properties[VERSION_PROPERTY], reader.name)
        end = source.size - reader.footer_size
        closing = check_footer(blobs, reader.properties, file=reader.name, offset=end)
        blobs = blobs[:-1]
    with create(file, properties=properties) as writer:
        for blob, content in add:
            add_other(writer, blob, content)
        for blob in blobs:  # the files and directories of a bundle stay at the end
            if blob.type.startswith(OWN_TYPES) or keep(blob):
                assert reader is not None
                writer.add_stored(blob, reader.read_stored(blob))
        if closing is not None:
            last = replace(closing, offset=_end(writer), length=0)
            told = closing_properties(writer.blobs, last, properties)
            writer.add_stored(replace(last, properties=told), b"")


def _end(writer: PuffinWriter) -> int:
    """Where the next blob begins: a bundle has blobs before its last one."""
    last = writer.blobs[-1]
    return last.offset + last.length
