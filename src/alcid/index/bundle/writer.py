"""Write bundles, and add blobs to Puffin files that may be bundles.

    payloads of a kind | payloads of the next | ... | directories | files | footer

What a reader needs first stands together at the end, so that few reads give all of it, and one read
all of a small bundle.

Iceberg keeps one statistics file for each snapshot. So what one writer puts into it, the next one
carries over byte for byte (`amend`).
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO

from alcid.errors import OptionError, UnsupportedError
from alcid.formats import puffin
from alcid.formats.puffin import (
    Blob,
    PuffinReader,
    PuffinWriter,
    create,
)
from alcid.formats.puffin.writer import created_by
from alcid.formats.source import Source
from alcid.index.bundle.directory import Payloads
from alcid.index.bundle.files import FileEntry, FileTable
from alcid.index.bundle.format import (
    BUNDLE,
    COMPLETE_PROPERTY,
    CRC_PROPERTY,
    DIRECTORY,
    FILES,
    OWN_TYPES,
    REPLACES_PROPERTY,
    VERSION,
    VERSION_PROPERTY,
    PayloadKind,
    check_footer,
    check_version,
    closing_properties,
)


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

    def add_payloads(self, kind: PayloadKind, payloads: Payloads) -> None:
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
    """Write a blob that is no part of a bundle, as it says; its offset does not count.

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


class BundleWriter:
    """A bundle that is being written; it is complete when its `with` block ends.

    The payloads are buffered until then. A build of very many files publishes a bundle whenever
    `payload_bytes` has grown large, and begins another.

    >>> import io
    >>> file = io.BytesIO()
    >>> with BundleWriter(file) as writer:
    ...     row = writer.add_file(FileEntry("a.parquet", size=900, version="1", rows=3))
    ...     writer.add(row, PayloadKind.index("id", "bloom-filter"), bytes.fromhex("00000001 ff"))
    """

    def __init__(
        self,
        file: BinaryIO,
        *,
        field_ids: Mapping[str, int] | None = None,
        snapshot_id: int = -1,
        sequence_number: int = -1,
        replaces: Sequence[str] = (),
    ) -> None:
        """Begin a bundle.

        Args:
            file: Takes the bytes, from its present position; the caller closes and publishes it.
            field_ids: On Iceberg, the field id of each column.
            snapshot_id: On Iceberg, the snapshot whose files these are.
            sequence_number: The sequence number of that snapshot.
            replaces: The names of bundles that are not to be used once this one is there.
        """
        self._assembly = Assembly(
            file,
            field_ids=field_ids,
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            replaces=replaces,
        )
        self._files: list[FileEntry] = []
        self._payloads: dict[PayloadKind, Payloads] = defaultdict(Payloads)
        self.payload_bytes = 0
        """The bytes of all payloads so far."""

    def add_file(self, entry: FileEntry) -> int:
        """Add a data file, and return its row, which its payloads are added with."""
        self._files.append(entry)
        return len(self._files) - 1

    def add(self, row: int, kind: PayloadKind, payload: bytes | memoryview | None) -> None:
        """Add a payload; those of one kind in the order of their files.

        Args:
            row: What `add_file` returned.
            kind: What the payload is.
            payload: Its bytes; None for an index of which nothing is written, as Paimon writes
                nothing for a map key in a file without rows.
        """
        if not 0 <= row < len(self._files):
            raise UnsupportedError(f"file {row}: expected one of {len(self._files)} added before")
        content = b"" if payload is None else payload
        self._payloads[kind].add(row, content)
        self.payload_bytes += len(content)

    def add_blob(self, blob: Blob, content: bytes) -> None:
        """Write a blob that readers of bundles skip; offset and length of `blob` do not matter."""
        self._assembly.add_blob(blob, content)

    def finish(self) -> None:
        """Write the bundle."""
        files = FileTable.of(self._files)
        for kind in sorted(self._payloads):
            self._assembly.add_payloads(kind, self._payloads.pop(kind))
        self._assembly.finish(files)

    def __enter__(self) -> BundleWriter:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        """Write the bundle, unless there was an exception."""
        if kind is None:
            self.finish()


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
        add: Blobs with their content, to be compressed as they say; their offsets do not count.

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
            last_properties = closing_properties(writer.blobs, last, properties)
            writer.add_stored(replace(last, properties=last_properties), b"")


def _end(writer: PuffinWriter) -> int:
    """Where the next blob begins: a bundle has blobs before its last one."""
    last = writer.blobs[-1]
    return last.offset + last.length
