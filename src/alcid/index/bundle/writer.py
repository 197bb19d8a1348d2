"""Write bundles, and add blobs to Puffin files that may be bundles.

    payloads of a kind | payloads of the next | ... | directories | files | footer

What a reader needs first stands together at the end, so that few reads give all of it, and one read
all of a small bundle.

Iceberg keeps one statistics file for each snapshot. So what one writer puts into it, the next one
carries over byte for byte (`amend`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from alcid.errors import OptionError, UnsupportedError
from alcid.formats import puffin
from alcid.formats.puffin import (
    Blob,
    BlobStream,
    PuffinReader,
    PuffinWriter,
    create,
)
from alcid.formats.puffin.writer import created_by
from alcid.formats.source import Source, Writable
from alcid.index.bundle.directory import DirectoryBuilder
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
from alcid.index.bundle.spool import Spool


class Assembly:
    """Composes the blobs of a bundle: payloads first, the files when it is finished."""

    def __init__(
        self,
        file: Writable,
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

    @contextmanager
    def payloads(self, kind: PayloadKind, directory: DirectoryBuilder) -> Iterator[BlobStream]:
        """Write all payloads of a kind in a `with` block; a kind without any leaves no blob.

        Args:
            kind: The kind.
            directory: Must say, in the end, where the payloads are that were written.
        """
        field = self._field_ids.get(kind.column) if kind.column else None
        with self._writer.stream(
            kind.type,
            fields=[] if field is None else [field],
            snapshot_id=self._snapshot_id,
            sequence_number=self._sequence_number,
            properties=kind.properties,
        ) as blob:
            yield blob
            if not len(directory):
                blob.drop()
                return
            blob.properties["entries"] = str(len(directory))
            blob.properties["directory"] = str(len(self._directories))
            self._directories += directory.build().to_bytes()

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


class SpooledBundle:
    """What will be in a bundle, collected file by file before there is a file to write it to.

    `SPOOLED_BYTES` of payloads are in memory, more in a temporary file. A build of very many files
    publishes a bundle whenever `payload_bytes` has grown large, and begins another.
    """

    def __init__(self) -> None:
        """Begin without any file."""
        self._files: list[FileEntry] = []
        self._spool = Spool()
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
        self._spool.add(kind, row, content)
        self.payload_bytes += len(content)

    def write(self, file: Writable) -> None:
        """Write the bundle; nothing can be added afterwards."""
        self.write_to(Assembly(file))

    def write_to(self, assembly: Assembly) -> None:
        """Write what was collected, and end the bundle."""
        files = FileTable.of(self._files)
        for kind in self._spool.kinds:
            with assembly.payloads(kind, self._spool.directory(kind)) as blob:
                for blocks in self._spool.read(kind):
                    blob.write(blocks)
        assembly.finish(files)

    def close(self) -> None:
        """Remove the temporary file."""
        self._spool.close()


class BundleWriter(SpooledBundle):
    """A bundle that is being written; it is complete when its `with` block ends.

    >>> import io
    >>> file = io.BytesIO()
    >>> with BundleWriter(file) as writer:
    ...     row = writer.add_file(FileEntry("a.parquet", size=900, version="1", rows=3))
    ...     writer.add(row, PayloadKind.index("id", "bloom-filter"), bytes.fromhex("00000001 ff"))
    """

    def __init__(
        self,
        file: Writable,
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
        super().__init__()
        self._assembly = Assembly(
            file,
            field_ids=field_ids,
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            replaces=replaces,
        )

    def add_blob(self, blob: Blob, content: bytes) -> None:
        """Write a blob that readers of bundles skip; offset and length of `blob` do not matter."""
        self._assembly.add_blob(blob, content)

    def finish(self) -> None:
        """Write the bundle."""
        try:
            self.write_to(self._assembly)
        finally:
            self.close()

    def __enter__(self) -> BundleWriter:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        """Write the bundle, unless there was an exception."""
        if kind is None:
            self.finish()
        else:
            self.close()


@dataclass(frozen=True, slots=True)
class Amendment:
    """What is to be written in place of a Puffin file: some of its blobs, and others.

    It says all of the footer that has to be known, so that whoever writes it need not open the
    file; and it pickles.
    """

    properties: Mapping[str, str]
    copied: tuple[Blob, ...]
    """The blobs to copy, by their places in the file."""
    added: tuple[tuple[Blob, bytes], ...]
    """Blobs with their content, to be compressed as they say; their offsets do not count."""
    closing: Blob | None = None
    """What closes the bundle, if the file is one."""

    @classmethod
    def of(
        cls,
        source: Source | None,
        *,
        keep: Callable[[Blob], bool],
        add: Iterable[tuple[Blob, bytes]],
    ) -> Amendment:
        """Read the footer of a file, and say what to do; see `amend`."""
        reader = None if source is None else PuffinReader(source)
        properties = ({} if reader is None else reader.properties) | {"created-by": created_by()}
        blobs = () if reader is None else reader.blobs
        closing = None
        if reader is not None and source is not None and VERSION_PROPERTY in reader.properties:
            check_version(reader.properties[VERSION_PROPERTY], reader.name)
            end = source.size - reader.footer_size
            closing = check_footer(blobs, reader.properties, file=reader.name, offset=end)
            blobs = blobs[:-1]
        # The files and directories of a bundle stay at the end.
        kept = tuple(blob for blob in blobs if blob.type.startswith(OWN_TYPES) or keep(blob))
        return cls(properties, kept, tuple(add), closing)

    @property
    def size(self) -> int:
        """The bytes of all blobs."""
        return sum(blob.length for blob in self.copied) + sum(len(data) for _, data in self.added)

    def write(self, file: Writable, source: Source | None) -> None:
        """Write all of it; blobs that stand together in `source` are copied together."""
        with create(file, properties=self.properties) as writer:
            for blob, content in self.added:
                add_other(writer, blob, content)
            for blobs in _neighbours(self.copied):
                assert source is not None
                writer.copy_stored(blobs, source)
            if self.closing is not None:
                last = replace(self.closing, offset=_end(writer), length=0)
                properties = closing_properties(writer.blobs, last, self.properties)
                writer.add_stored(replace(last, properties=properties), b"")


def amend(
    source: Source | None,
    file: Writable,
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
    Amendment.of(source, keep=keep, add=add).write(file, source)


def _neighbours(blobs: Sequence[Blob]) -> Iterator[list[Blob]]:
    """Runs of blobs of which each begins where the one before ends."""
    run: list[Blob] = []
    for blob in blobs:
        if run and run[-1].offset + run[-1].length != blob.offset:
            yield run
            run = []
        run.append(blob)
    if run:
        yield run


def _end(writer: PuffinWriter) -> int:
    """Where the next blob begins: a bundle has blobs before its last one."""
    last = writer.blobs[-1]
    return last.offset + last.length
