"""The backend for files on a disk."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from alcid.errors import AlcidError, UnsupportedError
from alcid.storage.backend import (
    Entry,
    FileHead,
    FileStat,
    Location,
    Request,
    check_unchanged,
    is_hidden,
)
from alcid.storage.threads import run_in_threads
from alcid.storage.traffic import TrafficCounter

_Identity = tuple[int, int]
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}
_NO_COPIES = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EBADF}
_NO_EXCLUSIVE_RENAME = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
_AT_FDCWD, _RENAME_NOREPLACE, _RENAME_EXCL = -100, 1, 4  # of Linux, and the last of macOS


class _Folder(NamedTuple):
    """A folder that is listed."""

    name: str
    prefix: str
    """The path of its files below the root, up to their names."""
    above: tuple[_Identity, ...]
    """Itself and the folders that it is in."""


class LocalFiles:
    """The files below a folder, through the calls of the operating system.

    A file is opened for each round of reads and closed again: that costs some microseconds, and in
    return nothing stays open and every round sees whether the file was replaced.
    """

    gap = 0  # a call is cheaper than to copy the bytes between
    largest = 1 << 30  # one call gives 2 GiB at most
    remote = False
    exclusive = True

    def __init__(self, location: Location, traffic: TrafficCounter) -> None:
        self._location, self._traffic = location, traffic

    def entries(self, under: str, *, hidden: bool) -> list[Entry]:
        """All files below a folder; links are followed, and one to a folder above it is not.

        Folders of the same depth are listed in parallel: on a network each file takes a request.
        """
        folders = [top] if (top := self._folder(under)) else []
        entries: list[Entry] = []
        while folders:
            listed = run_in_threads(
                lambda folder: self._listed(folder, hidden=hidden), folders, waiting=True
            )
            folders = []
            for files, inner in listed:
                entries += files
                folders += inner
        return entries

    def folder(self, under: str) -> tuple[list[Entry], list[str]]:
        """The files of a folder itself, and the folders in it, but not links to those above it."""
        top = self._folder(under)
        if top is None:
            return [], []
        entries, folders = self._listed(top, hidden=True)
        return entries, [folder.prefix.rstrip("/") for folder in folders]

    def _folder(self, under: str) -> _Folder | None:
        """A folder that is to be listed, if it is there."""
        parts = under.split("/") if under else []
        names = [self._location.name("/".join(parts[:depth])) for depth in range(len(parts) + 1)]
        try:
            above = tuple(_identity(os.stat(name)) for name in names)  # noqa: PTH116
        except FileNotFoundError:
            return None
        return _Folder(names[-1], f"{under}/" if under else "", above)

    def _listed(self, folder: _Folder, *, hidden: bool) -> tuple[list[Entry], list[_Folder]]:
        """The files and the folders in a folder."""
        entries: list[Entry] = []
        folders: list[_Folder] = []
        self._traffic.add(lists=1)
        try:
            iterator = os.scandir(folder.name)
        except FileNotFoundError:  # removed since
            return entries, folders
        with iterator:
            for entry in iterator:
                if not hidden and is_hidden(entry.name):
                    continue
                try:
                    status = entry.stat()
                except FileNotFoundError:  # removed since, or a link to nowhere
                    continue
                path = folder.prefix + entry.name
                if stat.S_ISDIR(status.st_mode):
                    identity = _identity(status)
                    if identity not in folder.above:
                        folders.append(_Folder(entry.path, f"{path}/", (*folder.above, identity)))
                elif stat.S_ISREG(status.st_mode):
                    entries.append((path, status.st_size, str(status.st_mtime_ns)))
        return entries, folders

    def stat(self, path: str) -> FileStat:
        """Size and version of a file."""
        self._traffic.add(stats=1)
        name = self._location.name(path)
        return _stat(os.stat(name), name)  # noqa: PTH116 - a Path costs more than the call

    def read(self, path: str, pieces: Sequence[tuple[int, int]], expected: FileStat) -> list[bytes]:
        """The bytes of each (offset, length), all from the same file."""
        name = self._location.name(path)
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for ever
        try:
            check_unchanged(name, expected, _stat(os.fstat(descriptor), name))
            self._traffic.add(reads=len(pieces))
            return [_pread(descriptor, offset, length) for offset, length in pieces]
        finally:
            os.close(descriptor)

    def read_heads(self, paths: Sequence[str], most: int) -> list[FileHead | None]:
        """The sizes and the first bytes of files, each opened once; None if that fails.

        A missing file and any other failure is left to the calls that say what is wrong.
        """
        heads = [_head(self._location.name(path), most) for path in paths]
        self._traffic.add(reads=len(heads) - heads.count(None))
        return heads

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write to a name that listings pass over, then link it to its own, if that is free.

        What is on the disk under its own name is whole, even after a loss of power.
        """
        with self._temporary(path, data) as (temporary, final):
            _link_or_rename(temporary, final, exclusive=exclusive)

    def replace(self, path: str, data: bytes) -> None:
        """Write to a name that listings pass over, then rename it, over what there is."""
        with self._temporary(path, data) as (temporary, final):
            temporary.replace(final)

    def draft(self, path: str, request: Request) -> LocalDraft:
        """Begin a file under a name that listings pass over."""
        self._traffic.add(puts=1)
        return request(lambda: LocalDraft(self._location, path, request))  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def _temporary(self, path: str, data: bytes) -> Iterator[tuple[Path, Path]]:
        """A whole file beside the one that it is to become, and the name of that one."""
        final = Path(self._location.name(path))
        _make_folder(final.parent)
        temporary = final.parent / f".{uuid.uuid4().hex}.tmp"
        self._traffic.add(puts=1)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield temporary, final
        finally:
            temporary.unlink(missing_ok=True)

    def link(self, path: str, target: str) -> None:
        """Link a file to a name that is free; it keeps its time of change, and so its version."""
        first, final = Path(self._location.name(path)), Path(self._location.name(target))
        _stat(first.stat(), str(first))
        _make_folder(final.parent)
        self._traffic.add(puts=1)
        try:
            final.hardlink_to(first)
        except FileExistsError:
            if not final.samefile(first):  # else an earlier move was cut off between its two steps
                raise
        except OSError as error:
            if error.errno == errno.EXDEV:  # a folder of the table is a link to another disk
                self.put(target, first.read_bytes())
            elif error.errno in _NO_LINKS:
                _rename(first, final)
            else:
                raise

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if it is not there."""
        self._traffic.add(deletes=1)
        Path(self._location.name(path)).unlink(missing_ok=True)

    def remove_folder(self, path: str) -> None:
        """Remove a folder, with the empty ones in it."""
        folder = self._location.name(path)
        for inner, _, _ in os.walk(folder, topdown=False):
            with contextlib.suppress(FileNotFoundError):
                Path(inner).rmdir()


class LocalDraft:
    """A file beside its place, under a name that listings pass over."""

    copies = hasattr(os, "copy_file_range")
    least_part = 0

    def __init__(self, location: Location, path: str, request: Request) -> None:
        """Create it."""
        self._location, self._request = location, request
        self._final = Path(location.name(path))
        _make_folder(self._final.parent)
        self._temporary = self._final.parent / f".{uuid.uuid4().hex}.tmp"
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        self._descriptor: int | None = os.open(self._temporary, flags, 0o666)
        self._position = 0

    def write(self, data: bytes, /) -> None:
        """Append a part."""
        descriptor, position = self._open(), self._position

        def write() -> None:  # by position, so that it can be done again
            view = memoryview(data)
            while view:
                count = os.pwrite(descriptor, view, position + len(data) - len(view))
                view = view[count:]

        self._request(write)
        self._position += len(data)

    def copy(self, path: str, offset: int, length: int, /) -> bool:
        """Let the kernel copy a range of another file; some disks then share its blocks."""
        descriptor, position = self._open(), self._position
        source = os.open(self._location.name(path), os.O_RDONLY | os.O_NONBLOCK)
        try:
            done = 0
            while done < length:
                count = os.copy_file_range(
                    source, descriptor, length - done, offset + done, position + done
                )
                if not count:  # it is shorter, which a read says
                    return False
                done += count
        except OSError as error:
            if error.errno not in _NO_COPIES:
                raise
            return False
        finally:
            os.close(source)
        self._position += length
        return True

    def publish(self) -> None:
        """Link it to its name, if that is free, once its bytes are on the disk."""

        def publish() -> None:
            os.fsync(self._open())
            _link_or_rename(self._temporary, self._final, exclusive=False)

        self._request(publish)
        self.discard()

    def discard(self) -> None:
        """Remove it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
            self._temporary.unlink(missing_ok=True)

    def _open(self) -> int:
        if self._descriptor is None:
            raise AlcidError(f"{self._final}: the file is closed")
        return self._descriptor


def _link_or_rename(temporary: Path, final: Path, *, exclusive: bool) -> None:
    """Give a file its name, if that is free."""
    try:
        final.hardlink_to(temporary)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename(temporary, final, exclusive=exclusive)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(folder)) from None


def _rename(temporary: Path, final: Path, *, exclusive: bool = False) -> None:
    """Rename a file to a name that is free, on a disk without hard links.

    Raises:
        UnsupportedError: Others may try to take the name, and the disk cannot give it to one only.
    """
    if _rename_if_free(temporary, final):
        return
    if exclusive:
        raise UnsupportedError(
            f"{final}: its disk has neither hard links nor renames that fail if a name is taken: "
            "of two commits at the same time both could win; keep the table on another disk"
        )
    # A name that nobody else has thought of: nobody comes between these two calls.
    if final.exists():
        raise FileExistsError(errno.EEXIST, "exists", str(final))
    temporary.rename(final)


def _rename_if_free(temporary: Path, final: Path) -> bool:
    """Rename a file in one step that fails if the name is taken; False: that cannot be done here.

    Raises:
        FileExistsError: The name is taken.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(temporary), os.fsencode(final)
    if hasattr(libc, "renameat2"):  # Linux
        failed = libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_NOREPLACE)
    elif hasattr(libc, "renamex_np"):  # macOS
        failed = libc.renamex_np(*names, _RENAME_EXCL)
    else:
        return False
    code = ctypes.get_errno()
    if not failed:
        return True
    if code in _NO_EXCLUSIVE_RENAME:
        return False
    raise OSError(code, os.strerror(code), str(final))


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino


def _stat(status: os.stat_result, name: str) -> FileStat:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EISDIR, "not a file of bytes", name)
    return FileStat(status.st_size, str(status.st_mtime_ns))


def _head(name: str, most: int) -> FileHead | None:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        size = status.st_size
        length = min(size, most)
        data = os.pread(descriptor, length, 0)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return FileHead(size, data) if len(data) == length else None


def _pread(descriptor: int, offset: int, length: int) -> bytes:
    data = os.pread(descriptor, length, offset)
    while len(data) < length:  # a network file system may return less than requested
        more = os.pread(descriptor, length - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data
