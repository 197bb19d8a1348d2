"""Sources of bytes, read by range: an index is probed without being loaded."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Sequence
from functools import partial
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from alcid.errors import AlcidError, FormatError, UnsupportedError

T = TypeVar("T")


class Source(Protocol):
    """Anything that can be read by range; it has a name for errors and a known size."""

    @property
    def name(self) -> str:
        """What errors call it, a path as a rule."""

    @property
    def size(self) -> int:
        """Its length in bytes."""

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`; the caller has checked the bounds."""


class Writable(Protocol):
    """Anything that bytes can be written to: a binary file, or a file of a storage."""

    def write(self, data: bytes | bytearray | memoryview, /) -> int | None:
        """Write bytes, and return how many were taken; None: all of them."""


@runtime_checkable
class CopyTarget(Protocol):
    """A file that may take ranges of other files without their bytes passing through here."""

    def copy_from(self, source: Source, offset: int, length: int) -> bool:
        """Append a range of another file; False, and nothing was done, if that is not possible."""


class Range(NamedTuple):
    """Bytes to read."""

    source: Source
    offset: int
    length: int


ReadMany: TypeAlias = Callable[[Sequence[Range]], Sequence[bytes]]
"""Reads ranges in one round, at the same time where that is faster, each with its exact length.

`read_each` does for memory and opened files; for files of a storage, `Storage.read_ranges`.
"""


def read_each(ranges: Sequence[Range]) -> list[bytes]:
    """Read one range after the other: right for memory and local disks."""
    return [source.read(offset, length) for source, offset, length in ranges]


class BytesSource:
    """Bytes in memory."""

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "<bytes>") -> None:
        """Serve `data`, called `name` in errors."""
        try:
            self.data = data if isinstance(data, bytes) else bytes(memoryview(data))
        except TypeError:
            raise UnsupportedError(f"expected bytes, found {type(data).__name__}") from None
        self.name = name
        self.size = len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        return self.data[offset : offset + length]


class FileSource:
    """A local file, read by position; it stays open until `close`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open `path` for reading."""
        self.name = os.fspath(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for ever
        status = os.fstat(descriptor)
        self._descriptor: int | None = descriptor
        self.size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            self.close()
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
            raise FormatError("cannot be read", file=self.name, found=kind, expected="a file")

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`, or an error if the file shrank meanwhile."""
        if self._descriptor is None:  # its number may be that of another file by now
            raise AlcidError(f"{self.name}: the file is closed")
        return _read_whole(partial(os.pread, self._descriptor), self.name, offset, length)

    def close(self) -> None:
        """Close the file; a second time nothing happens."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> FileSource:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self.close()


def _read_whole(read: Callable[[int, int], bytes], name: str, offset: int, length: int) -> bytes:
    """Read as often as it takes: one call gives 2 GiB at most, and a network or a raw file less."""
    parts: list[bytes] = []
    count = 0
    while count < length:
        part = read(length - count, offset + count)
        if not part:
            raise FormatError("short read", file=name, offset=offset, found=count, expected=length)
        parts.append(part)
        count += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class FileObjectSource:
    """A binary file object that can seek: Python's own, `BytesIO`, Arrow's or fsspec's files.

    It belongs to the caller, who closes it; reading moves its position, so two threads must not
    share it.

    >>> import io
    >>> FileObjectSource(io.BytesIO(b"abcdef")).read(2, 3)
    b'cde'
    """

    def __init__(self, file: BinaryIO) -> None:
        """Serve `file`, from its first byte to its last."""
        name = getattr(file, "name", None)
        self.name = name if isinstance(name, str) else f"<{type(file).__name__}>"
        if isinstance(file, io.TextIOBase):
            raise UnsupportedError(f"{self.name}: opened as text, expected a binary file")
        if not getattr(file, "seekable", lambda: True)():  # mmap can, and does not say so
            raise UnsupportedError(f"{self.name}: a file that cannot seek is not read by range")
        self._file = file
        file.seek(0, os.SEEK_END)
        self.size = file.tell()

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`, or an error if the file shrank meanwhile."""
        return _read_whole(self._read, self.name, offset, length)

    def _read(self, length: int, offset: int) -> bytes:
        self._file.seek(offset)
        return bytes(self._file.read(length) or b"")


File: TypeAlias = "str | os.PathLike[str] | BinaryIO | Source"
"""A local path, a binary file object that can seek, or anything that can be read by range."""


def open_with(file: File, make: Callable[[Source], T]) -> tuple[T, FileSource | None]:
    """What `make` makes of a file, and the file if it was opened here, and is to be closed.

    If `make` fails, it is closed already.
    """
    if not isinstance(file, str | os.PathLike):
        return make(_as_source(file)), None
    opened = FileSource(file)
    try:
        return make(opened), opened
    except BaseException:
        opened.close()
        raise


def _as_source(file: BinaryIO | Source) -> Source:
    if hasattr(file, "seek"):
        return FileObjectSource(cast("BinaryIO", file))
    if hasattr(file, "size") and hasattr(file, "read"):
        return file
    hint = ": io.BytesIO makes a file of bytes" if isinstance(file, bytes) else ""
    kind = type(file).__name__
    raise UnsupportedError(f"expected a path, a binary file or a Source, found {kind}{hint}")


class Section:
    """A bounded part of a source; every read is checked against its end.

    Offsets are relative to the section; errors give them from the start of the source.
    """

    __slots__ = ("length", "source", "start")

    def __init__(self, source: Source, start: int = 0, length: int | None = None) -> None:
        """Take `length` bytes of `source` from `start`; by default all that follows."""
        length = source.size - start if length is None else length
        if start < 0 or length < 0 or start + length > source.size:
            raise FormatError(
                "section outside of the file",
                file=source.name,
                offset=start,
                found=f"{length} bytes",
                expected=f"at most {max(source.size - start, 0)}",
            )
        self.source, self.start, self.length = source, start, length

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset` of this section."""
        if offset < 0 or length < 0 or offset + length > self.length:
            raise self.error(
                "truncated", offset, found=f"{max(self.length - offset, 0)} bytes", expected=length
            )
        return self.source.read(self.start + offset, length) if length else b""

    def section(self, offset: int, length: int | None = None) -> Section:
        """A part of this section."""
        length = self.length - offset if length is None else length
        if offset < 0 or length < 0 or offset + length > self.length:
            raise self.error(
                "part outside of its section",
                offset,
                found=f"{length} bytes",
                expected=f"at most {max(self.length - offset, 0)}",
            )
        return Section(self.source, self.start + offset, length)

    def error(
        self, problem: str, offset: int, found: object = None, expected: object = None
    ) -> FormatError:
        """A format error at `offset` of this section."""
        return FormatError(
            problem,
            file=self.source.name,
            offset=self.start + offset,
            found=found,
            expected=expected,
        )
