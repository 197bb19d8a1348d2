"""The blobs of a bundle, in their order.

    payloads of a kind | payloads of the next | ... | directories | files | footer

What a reader needs first stands together at the end, so that few reads give all of it, and one read
all of a small bundle.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from alcid.bundle.directory import Payloads
from alcid.bundle.files import FileTable
from alcid.bundle.footer_check import CRC_PROPERTY, closing_properties
from alcid.bundle.kinds import (
    BUNDLE,
    COMPLETE_PROPERTY,
    DIRECTORY,
    FILES,
    OWN_TYPES,
    REPLACES_PROPERTY,
    VERSION,
    VERSION_PROPERTY,
    Kind,
)
from alcid.errors import OptionError
from alcid.formats import puffin
from alcid.formats.puffin import Blob, PuffinWriter
from alcid.formats.puffin.writer import created_by

__all__ = ["Assembly", "add_other"]


class Assembly:
    """Composes the blobs of a bundle: payloads first, the files when it is finished."""

    def __init__(
        self,
        file: BinaryIO,
        *,
        field_ids: Mapping[str, int] | None = None,
        snapshot_id: int = -1,
        sequence_number: int = -1,
        replaces: Sequence[str] = (),
        complete: bool = False,
    ) -> None:
        """Begin a bundle; see `BundleWriter`, and `merge` for `replaces` and `complete`."""
        self._properties = {"created-by": created_by(), VERSION_PROPERTY: VERSION}
        if replaces:
            self._properties[REPLACES_PROPERTY] = ",".join(replaces)
        if complete:
            self._properties[COMPLETE_PROPERTY] = "true"
        self._writer = puffin.create(file, properties=self._properties)
        self._field_ids = field_ids or {}
        self._snapshot_id, self._sequence_number = snapshot_id, sequence_number
        self._directories = bytearray()

    def add_payloads(self, kind: Kind, payloads: Payloads) -> None:
        """Write all payloads of a kind."""
        directory = payloads.directory()
        entries = {"entries": str(len(directory)), "directory": str(len(self._directories))}
        self._directories += directory.to_bytes()
        field = self._field_ids.get(kind.column) if kind.column else None
        self._add(kind.type, payloads.stored, kind.properties | entries, field=field)

    def add_blob(self, blob: Blob, content: bytes) -> None:
        """Write a blob that is no part of the bundle, such as a theta sketch."""
        add_other(self._writer, blob, content)

    def finish(self, files: FileTable) -> None:
        """Write what stands at the end; every payload must belong to one of `files`."""
        content = files.to_bytes()
        self._add(DIRECTORY, self._directories, {})
        crc = {CRC_PROPERTY: f"{zlib.crc32(content):08x}"}
        last = self._add(FILES, content, crc, codec="zstd")
        closing = Blob(
            BUNDLE,
            (),
            self._snapshot_id,
            self._sequence_number,
            offset=last.offset + last.length,
            length=0,
            properties={"files": str(len(files))},
        )
        properties = closing_properties(self._writer.blobs, closing, self._properties)
        self._add(BUNDLE, b"", properties)
        self._writer.finish()

    def _add(
        self,
        blob_type: str,
        content: bytes | bytearray,
        properties: Mapping[str, str],
        *,
        field: int | None = None,
        codec: str | None = None,
    ) -> Blob:
        return self._writer.add(
            blob_type,
            content,
            fields=[] if field is None else [field],
            snapshot_id=self._snapshot_id,
            sequence_number=self._sequence_number,
            properties=properties,
            codec=codec,
        )


def add_other(writer: PuffinWriter, blob: Blob, content: bytes) -> None:
    """Write a blob that is no part of a bundle, as it says; its place does not count.

    Raises:
        OptionError: It is of a type of the bundle's own.
    """
    if blob.type.startswith(OWN_TYPES):
        raise OptionError(f"a blob of type {blob.type!r} is written by the bundle itself")
    writer.add(
        blob.type,
        content,
        fields=blob.fields,
        snapshot_id=blob.snapshot_id,
        sequence_number=blob.sequence_number,
        properties=blob.properties,
        codec=blob.codec,
    )
