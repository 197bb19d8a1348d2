"""Writing bundles, file by file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from alcid.bundle.assembly import Assembly
from alcid.bundle.directory import Payloads
from alcid.bundle.files import FileEntry, FileTable
from alcid.bundle.kinds import Kind
from alcid.errors import UnsupportedError
from alcid.formats.puffin import Blob

__all__ = ["BundleWriter"]


class BundleWriter:
    """A bundle that is being written; it is complete when its `with` block ends.

    The payloads are held until then. A build of very many files publishes a bundle whenever
    `payload_bytes` has grown large, and begins another.

    >>> import io
    >>> file = io.BytesIO()
    >>> with BundleWriter(file) as writer:
    ...     row = writer.add_file(FileEntry("a.parquet", size=900, version="1", rows=3))
    ...     writer.add(row, Kind.index("id", "bloom-filter"), bytes.fromhex("00000001 ff"))
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
        self._payloads: dict[Kind, Payloads] = defaultdict(Payloads)
        self.payload_bytes = 0
        """The bytes of all payloads so far."""

    def add_file(self, entry: FileEntry) -> int:
        """Add a data file, and return its row, which its payloads are added with."""
        self._files.append(entry)
        return len(self._files) - 1

    def add(self, row: int, kind: Kind, payload: bytes | memoryview | None) -> None:
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
