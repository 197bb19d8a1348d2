"""Fault injection: a file system that fails on demand, damaged copies, and counted reads.

>>> import tempfile
>>> from alcid.storage import Retry, Storage
>>> folder = tempfile.TemporaryDirectory()
>>> faults = Faults()
>>> storage = Storage.open(folder.name, retry=Retry(tries=2, wait=0)).through(faults.around)
>>> storage.put("a", b"0123456789")
>>> faults.plan(once(0, Fault.REFUSED))
>>> storage.source("a", 10).read(0, 4)
Traceback (most recent call last):
alcid.errors.StorageError: ...could not be read: OSError: [Errno 5] Input/output error...
>>> faults.plan(once(0, Fault.TIMEOUT))
>>> storage.source("a", 10).read(0, 4), faults.calls
(b'0123', [Call(number=0, kind='read', path='a'), Call(number=1, kind='read', path='a')])
>>> folder.cleanup()
"""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from threading import Lock
from typing import NamedTuple, TypeAlias

from alcid.formats.source import Source
from alcid.storage.backend import Backend, Draft, Entry, FileStat, Request, below

_SLOW = 0.002  # seconds


class Fault(Enum):
    """What happens to a call in place of a proper answer."""

    TIMEOUT = "an error that passes, before anything is done"
    REFUSED = "an error for good, before anything is done"
    LOST_TIMEOUT = "all is done, then an error that passes: the answer is lost"
    LOST_REFUSED = "all is done, then an error for good"
    HALF_TIMEOUT = "half of a file is written under its name, then an error that passes"
    HALF_REFUSED = "half of a file is written under its name, then an error for good"
    SHORT = "half of the bytes that were asked for"
    STALE = "a listing as of before the last changes"
    SLOW = "the proper answer, later"

    def fits(self, kind: str) -> bool:
        """Whether it can happen to a call of a kind, which is the name of a method."""
        match self:
            case Fault.HALF_TIMEOUT | Fault.HALF_REFUSED:
                return kind in {"put", "replace"}
            case Fault.LOST_TIMEOUT | Fault.LOST_REFUSED:
                return kind in {"put", "replace", "link", "delete", "remove_folder"}
            case Fault.SHORT:
                return kind == "read"
            case Fault.STALE:
                return kind == "entries"
        return True


class Call(NamedTuple):
    """A call of a backend."""

    number: int
    """Of the calls since the faults were planned, from 0 on."""
    kind: str
    path: str


Decide: TypeAlias = Callable[[Call], Fault | None]
"""What happens to a call; None: it is done properly."""


def once(number: int, fault: Fault) -> Decide:
    """One call goes wrong."""
    return lambda call: fault if call.number == number else None


def since(number: int, fault: Fault) -> Decide:
    """All calls go wrong from one on, as when a network is gone."""
    return lambda call: fault if call.number >= number else None


def often(share: float, faults: Sequence[Fault], seed: int) -> Decide:
    """A share of all calls goes wrong, each in one of several ways; the same ones for a seed."""

    def decide(call: Call) -> Fault | None:
        source = random.Random(f"{seed} {call.number}")
        fitting = [fault for fault in faults if fault.fits(call.kind)]
        return source.choice(fitting) if fitting and source.random() < share else None

    return decide


class Faults:
    """When files fail; one for all backends of a table. Many threads may use it at a time."""

    def __init__(self, *, stale_changes: int = 3, remote: bool = False) -> None:
        """Let nothing fail.

        Args:
            stale_changes: How many changes a stale listing does not know yet.
            remote: Let all be as over a network: reads run side by side, short ones are repeated.
        """
        self.remote = remote
        self.calls: list[Call] = []
        """All since the faults were planned."""
        self.changes: list[tuple[str, Entry | None]] = []
        """The names of files that were changed, and what was there before."""
        self._decide: Decide | None = None
        self._stale_changes = stale_changes
        self._lock = Lock()

    def plan(self, decide: Decide | None) -> None:
        """Let calls go wrong from now on; None: no more."""
        with self._lock:
            self._decide, self.calls = decide, []

    def around(self, files: Backend, root: str = "") -> FaultyFiles:
        """The files of a backend, with these faults; for `Storage.through`.

        Args:
            files: The backend.
            root: Where it lies, if several that lie within each other have the same faults.
        """
        return FaultyFiles(files, self, root)

    def next(self, kind: str, path: str) -> Fault | None:
        """What happens to a call that is made now."""
        with self._lock:
            call = Call(len(self.calls), kind, path)
            self.calls.append(call)
        fault = None if self._decide is None else self._decide(call)
        return fault if fault is not None and fault.fits(kind) else None

    def note(self, name: str, before: Entry | None) -> None:
        """Keep what there was before a change."""
        with self._lock:
            self.changes.append((name, before))

    def unknown(self) -> dict[str, Entry | None]:
        """What the last changes have replaced, by name; None where nothing was."""
        with self._lock:
            return dict(reversed(self.changes[-self._stale_changes :]))


class FaultyFiles:
    """The files of another backend, of which calls go wrong."""

    def __init__(self, files: Backend, faults: Faults, root: str = "") -> None:
        """For `Faults.around`."""
        self._files, self._faults, self._root = files, faults, root.rstrip("/")
        self.gap, self.largest, self.remote = (
            files.gap,
            files.largest,
            faults.remote or files.remote,
        )
        self.exclusive = files.exclusive

    def entries(self, under: str, *, hidden: bool) -> list[Entry]:
        """All files below a folder, or those that there were."""
        fault = self._begin("entries", under)
        entries = self._files.entries(under, hidden=hidden)
        if fault is not Fault.STALE:
            return entries
        listed: dict[str, Entry | None] = {self._name(entry[0]): entry for entry in entries}
        listed |= self._faults.unknown()
        names = [(name, *entry[1:]) for name, entry in listed.items() if entry is not None]
        folder = self._name(under) if under else self._root
        return list(below(names, self._root, folder, hidden=hidden))

    def folder(self, under: str) -> tuple[list[Entry], list[str]]:
        """All files below a folder, and no folders in it: what may fail is the same."""
        return self.entries(under, hidden=True), []

    def stat(self, path: str) -> FileStat:
        """Size and version of a file."""
        self._begin("stat", path)
        return self._files.stat(path)

    def read(self, path: str, pieces: Sequence[tuple[int, int]], known: FileStat) -> list[bytes]:
        """The bytes of each (offset, length), or half of each."""
        fault = self._begin("read", path)
        parts = self._files.read(path, pieces, known)
        return [part[: len(part) // 2] for part in parts] if fault is Fault.SHORT else parts

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a file under a new name, or half of it."""
        self._write("put", path, data, partial(self._files.put, exclusive=exclusive))

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, or half of it."""
        self._write("replace", path, data, self._files.replace)

    def draft(self, path: str, request: Request) -> _FaultyDraft:
        """Begin a large file."""
        return _FaultyDraft(self, path, request)

    def link(self, path: str, target: str) -> None:
        """Give a file a second name."""
        fault = self._begin("link", target)
        self._change(target, lambda: self._files.link(path, target))
        _lose_answer(fault, target)

    def delete(self, path: str) -> None:
        """Remove a file."""
        fault = self._begin("delete", path)
        self._change(path, lambda: self._files.delete(path))
        _lose_answer(fault, path)

    def remove_folder(self, path: str) -> None:
        """Remove a folder."""
        fault = self._begin("remove_folder", path)
        self._files.remove_folder(path)
        _lose_answer(fault, path)

    def _begin(self, kind: str, path: str) -> Fault | None:
        """Fail at once, or say what is to happen later."""
        fault = self._faults.next(kind, path)
        if fault in {Fault.TIMEOUT, Fault.REFUSED}:
            raise _error(fault, path)
        if fault is Fault.SLOW:
            time.sleep(_SLOW)
        return fault

    def _write(
        self, kind: str, path: str, data: bytes, write: Callable[[str, bytes], None]
    ) -> None:
        fault = self._begin(kind, path)
        is_half = fault in {Fault.HALF_TIMEOUT, Fault.HALF_REFUSED}
        written = data[: len(data) // 2] if is_half else data
        self._change(path, lambda: write(path, written))
        _lose_answer(fault, path)

    def _change(self, path: str, change: Callable[[], None]) -> None:
        try:
            before: Entry | None = (self._name(path), *_sized(self._files.stat(path)))
        except OSError:
            before = None
        change()
        self._faults.note(self._name(path), before)

    def _name(self, path: str) -> str:
        return f"{self._root}/{path}"


class _FaultyDraft:
    """A large file, of which parts or the last call go wrong."""

    def __init__(self, files: FaultyFiles, path: str, request: Request) -> None:
        self._files, self._path, self._request = files, path, request
        request(lambda: files._begin("draft", path))
        self._draft: Draft = files._files.draft(path, request)
        self.copies, self.least_part = self._draft.copies, self._draft.least_part

    def write(self, data: bytes, /) -> None:
        self._request(lambda: self._files._begin("write", self._path))
        self._draft.write(data)

    def copy(self, path: str, offset: int, length: int, /) -> bool:
        self._request(lambda: self._files._begin("copy", self._path))
        return self._draft.copy(path, offset, length)

    def publish(self) -> None:
        self._request(lambda: self._files._begin("publish", self._path))
        self._files._change(self._path, self._draft.publish)

    def discard(self) -> None:
        self._draft.discard()


def _sized(stat: FileStat) -> tuple[int, str | None]:
    return stat.size or 0, stat.version


def _lose_answer(fault: Fault | None, path: str) -> None:
    """Fail after all was done."""
    if fault is not None and fault not in {Fault.SLOW, Fault.SHORT, Fault.STALE}:
        raise _error(fault, path)


def _error(fault: Fault, path: str) -> OSError:
    passes = fault in {Fault.TIMEOUT, Fault.LOST_TIMEOUT, Fault.HALF_TIMEOUT}
    number = errno.ETIMEDOUT if passes else errno.EIO
    return OSError(number, os.strerror(number), path)


class Damage(NamedTuple):
    """Damaged bytes, and what was done to them."""

    what: str
    data: bytes


def flips(data: bytes) -> Iterator[Damage]:
    """Each byte with all of its bits turned over, and with its lowest bit turned over.

    All bits make a number negative or huge; the lowest one makes it wrong by one.

    >>> [(damage.what, damage.data.hex()) for damage in flips(bytes.fromhex("00ff"))]
    [('byte 0 ^ 0xff', 'ffff'), ('byte 0 ^ 0x01', '01ff'),
     ('byte 1 ^ 0xff', '0000'), ('byte 1 ^ 0x01', '00fe')]
    """
    for position, byte in enumerate(data):
        for mask in (0xFF, 0x01):
            damaged = data[:position] + bytes((byte ^ mask,)) + data[position + 1 :]
            yield Damage(f"byte {position} ^ {mask:#04x}", damaged)


def truncations(data: bytes) -> Iterator[Damage]:
    """Every proper prefix, the empty one too.

    >>> [damage.data for damage in truncations(b"abc")]
    [b'', b'a', b'ab']
    """
    for length in range(len(data)):
        yield Damage(f"cut to {length} bytes", data[:length])


class CountingSource:
    """Passes reads on to another source, and keeps them in `reads`.

    >>> from alcid.formats.source import BytesSource
    >>> source = CountingSource(BytesSource(b"abcdef"))
    >>> source.read(2, 3)
    b'cde'
    >>> source.reads, source.bytes_read
    ([(2, 3)], 3)
    """

    def __init__(self, source: Source) -> None:
        """Count what is read of `source`."""
        self.name, self.size = source.name, source.size
        self.reads: list[tuple[int, int]] = []
        self._source = source

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        self.reads.append((offset, length))
        return self._source.read(offset, length)

    @property
    def bytes_read(self) -> int:
        """The bytes of all reads; those read twice count twice."""
        return sum(length for _, length in self.reads)

    def take(self) -> list[tuple[int, int]]:
        """The reads since the last time, which are then forgotten.

        >>> from alcid.formats.source import BytesSource
        >>> source = CountingSource(BytesSource(b"abcdef"))
        >>> _ = source.read(0, 1)
        >>> source.take(), source.take()
        ([(0, 1)], [])
        """
        reads, self.reads = self.reads, []
        return reads
