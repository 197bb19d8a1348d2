"""Files that are written in parts, with bounded memory; they appear whole, or not at all.

| file system                 | until it is published, the file is                                 |
|-----------------------------|--------------------------------------------------------------------|
| a disk                      | beside its place, under a name that listings pass over             |
| S3, where s3fs is installed | an upload in parts, of which nothing shows before its last request |
| any other                   | a temporary file of this machine, uploaded when it is whole        |

A small file is written in one request, as `Storage.put` does. An upload that is killed leaves parts
that no listing shows; S3 removes them by a lifecycle rule (`AbortIncompleteMultipartUpload`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

from alcid.formats.source import Source
from alcid.storage.backend import Draft, Request

if TYPE_CHECKING:
    from alcid.storage.storage import Storage

PART_BYTES = 16 << 20
"""Bytes of a part; smaller files are written in one request."""
COPY_LEAST = 8 << 20
"""Bytes from which a range is copied by the file system; fewer are read and written here."""
SPOOL_READ = 8 << 20
"""Bytes of a temporary file in memory while it is uploaded."""


class NewFile:
    """A file that is being written; it appears when its `with` block ends without an exception.

    No more than three parts are in memory, and what the client of S3 holds of those on their way:
    three times `alcid.storage.s3_upload.IN_FLIGHT` parts.
    """

    def __init__(self, storage: Storage, path: str, begin: Callable[[], Draft]) -> None:
        """For `Storage.new_file`; `begin` begins the draft if the file becomes large."""
        self.path = path
        self.size = 0
        """Bytes so far."""
        self.copied = 0
        """Those of them that the file system copied, and that did not come here."""
        self._storage, self._begin = storage, begin
        self._draft: Draft | None = None
        self._buffer = bytearray()

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        """Append bytes."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), PART_BYTES):
            self._buffer += view[start : start + PART_BYTES]
            while len(self._buffer) >= PART_BYTES:
                self._send(PART_BYTES)
        self.size += len(view)
        return len(view)

    def copy_from(self, source: Source, offset: int, length: int) -> bool:
        """Append a range of a file of the same storage, without its bytes coming here.

        Where parts have a least size, as on S3, up to that is read here.

        Returns:
            Whether that was possible; if not, nothing was appended.
        """
        path = self._storage.path_of(source)
        if path is None or length < COPY_LEAST:
            return False
        if self._draft is None:
            self._draft = self._begin()
        missing = max(self._draft.least_part - len(self._buffer), 0) if self._buffer else 0
        rest = length - missing
        if not self._draft.copies or rest < max(self._draft.least_part, 1):
            return False
        read = source.read(offset, missing) if missing else b""
        if self._buffer:
            if missing:
                self._buffer += read
            self._send(len(self._buffer))
        self.size += missing
        if not self._draft.copy(path, offset + missing, rest):
            self._stream(source, offset + missing, rest)
            return True
        self.size += rest
        self.copied += rest
        return True

    def publish(self) -> None:
        """Let the file appear.

        Raises:
            NameTakenError: There is another file of its name.
            StorageError: It could not be written; nothing appears.
        """
        if self._draft is None:
            self._storage.put(self.path, bytes(self._buffer))
            return
        if self._buffer:
            self._send(len(self._buffer))
        self._draft.publish()

    def discard(self) -> None:
        """Let nothing remain of it."""
        self._buffer.clear()
        if self._draft is not None:
            self._draft.discard()

    def __enter__(self) -> NewFile:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        """Publish the file, or discard it if there was an exception."""
        try:
            if kind is None:
                self.publish()
        finally:
            self.discard()

    def _stream(self, source: Source, offset: int, length: int) -> None:
        end = offset + length
        for start in range(offset, end, PART_BYTES):
            self.write(source.read(start, min(PART_BYTES, end - start)))

    def _send(self, length: int) -> None:
        """Append the first bytes of the buffer to the draft."""
        if self._draft is None:
            self._draft = self._begin()
        part = bytes(memoryview(self._buffer)[:length])
        del self._buffer[:length]
        self._draft.write(part)
        self._storage.count_written(len(part))


class SpooledDraft:
    """A temporary file of this machine, which is uploaded when it is whole.

    For file systems that cannot be written in parts so that nobody sees them.
    """

    copies = False
    least_part = 0

    def __init__(self, upload: Callable[[BinaryIO], None], request: Request) -> None:
        """Begin an empty one; `upload` writes the whole file under its name, or nothing."""
        self._upload, self._request = upload, request
        self._file = tempfile.NamedTemporaryFile(prefix="alcid-")  # noqa: SIM115 - see `discard`

    def write(self, data: bytes, /) -> None:
        """Append a part."""
        self._file.write(data)

    def copy(self, _path: str, _offset: int, _length: int, /) -> bool:
        """Nothing is copied."""
        return False

    def publish(self) -> None:
        """Upload it."""

        def upload() -> None:
            self._file.seek(0)
            self._upload(self._file)  # type: ignore[arg-type]  # it wraps such a file

        self._file.flush()
        self._request(upload)

    def discard(self) -> None:
        """Remove the temporary file."""
        self._file.close()
