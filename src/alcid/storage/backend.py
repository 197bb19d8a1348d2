"""The interface between a storage and a file system, with locations and listings.

A `Backend` knows one file system; retries, counts of bytes and threads are the storage's. A
`Listing` has the files as columns: ten thousand of them are three arrays.

A `Location` takes names as they stand: nothing is unquoted, so `%20`, `#`, `?` and `=` are parts of
a name, in `file://` and `s3://` as well as in a plain path, as in Spark and fsspec.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.errors import FileGoneError, OptionError, StorageError

Entry = tuple[str, int, str | None]
"""Path, size and version of one file."""


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """Files under a folder, sorted by path."""

    paths: Any
    """A string array; relative to the storage, not to the folder that was listed."""
    sizes: Int64Array
    versions: Any
    """A string array. A file whose size and version are the same has not changed.

    It is text, because an ETag is: the ETag in its quotes where the file system lists one, else the
    time of the last change in nanoseconds, as digits; the quotes keep the two apart. Null where a
    file system gives neither, and then nothing may be taken for unchanged.
    """

    def __len__(self) -> int:
        return len(self.sizes)

    def part(self, positions: Int64Array) -> Listing:
        """Some of the files."""
        taken = pa.array(positions)
        return Listing(self.paths.take(taken), self.sizes[positions], self.versions.take(taken))


def listing_of(entries: Iterable[Entry], *, suffix: str | None, location: str) -> Listing:
    """The entries whose path ends with `suffix`, as columns."""
    rows = sorted(entry for entry in entries if suffix is None or entry[0].endswith(suffix))
    try:
        paths = pa.array([path for path, _, _ in rows], pa.string())
    except UnicodeEncodeError as error:
        problem = f"a file name that is not UTF-8: {error.object!r}"
        raise StorageError(problem, file=location) from None
    sizes = np.fromiter((size for _, size, _ in rows), np.int64, len(rows))
    return Listing(paths, sizes, pa.array([version for _, _, version in rows], pa.string()))


def is_hidden(name: str) -> bool:
    """Whether Spark passes over a file or folder of that name.

    A folder such as `_day=1` is one of a partition column `_day`: Spark reads it, and so do we;
    Arrow, by default, does not.

    >>> [is_hidden(name) for name in ("_alcid", ".part.crc", "a.parquet._COPYING_", "_day=1", "b")]
    [True, True, True, False, False]
    """
    first = name[:1]
    return first == "." or (first == "_" and "=" not in name) or name.endswith("._COPYING_")


class FileStat(NamedTuple):
    """Size and version of a file as far as they are known, usually from a listing."""

    size: int | None = None
    version: str | None = None


class FileHead(NamedTuple):
    """The first bytes of a file, and how many it has."""

    size: int
    data: bytes


Request: TypeAlias = Callable[[Callable[[], Any]], Any]
"""Makes a request, again after errors that are transient, and returns what it returns."""


class Draft(Protocol):
    """A file that is being written in parts; nobody sees it before it is published."""

    copies: bool
    """Whether `copy` can work at all."""
    least_part: int
    """Bytes that every part but the last has at least."""

    def write(self, data: bytes, /) -> None:
        """Append a part."""

    def copy(self, path: str, offset: int, length: int, /) -> bool:
        """Append a range of another file of the backend, without its bytes coming here.

        False, and nothing was appended, if that is not possible.
        """

    def publish(self) -> None:
        """Let the file appear under its name; FileExistsError if that is taken."""

    def discard(self) -> None:
        """Let nothing remain of it; after `publish` nothing happens."""


class Backend(Protocol):
    """A file system below one root. Paths are relative to the root, an empty one is the root.

    Errors are those of the file system; a missing file is a FileNotFoundError as far as possible.
    Each call counts its requests in the traffic of its storage.
    """

    gap: int
    """Bytes between two ranges that are cheaper to read along than a second request."""
    largest: int
    """Bytes of the longest read; longer ones are done in pieces, in parallel."""
    remote: bool
    """Whether reads wait for a network, so that many should run in parallel."""
    exclusive: bool
    """Whether, of several that `put` the same name, all but one fail."""

    def entries(self, under: str, *, hidden: bool) -> list[Entry]:
        """All files below a folder; none if it does not exist."""

    def folder(self, under: str) -> tuple[list[Entry], list[str]]:
        """The files in a folder itself, and the paths of the folders in it; all of them."""

    def stat(self, path: str) -> FileStat:
        """Size and version of a file."""

    def read(
        self, path: str, pieces: Sequence[tuple[int, int]], expected: FileStat, /
    ) -> list[bytes]:
        """The bytes of each (offset, length); fewer where the file or the answer ends early."""

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a whole file under a new name; FileExistsError if it is taken.

        With `exclusive` others may try to take the name at the same time: all but one fail.
        UnsupportedError if that cannot be ensured, although the backend is `exclusive`.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Write a whole file, whether there is one of that name or not."""

    def draft(self, path: str, request: Request) -> Draft:
        """Begin a file of a new name that is too large for memory.

        `request` makes each request of it, from several threads at a time.
        """

    def link(self, path: str, target: str) -> None:
        """Give a file a second name; on a disk FileExistsError if it is taken.

        Elsewhere it is copied by the server, over what has that name. The first name may be gone.
        """

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if it is not there."""

    def remove_folder(self, path: str) -> None:
        """Remove a folder whose files were removed, where there are folders."""


def below(entries: Iterable[Entry], root: str, folder: str, *, hidden: bool) -> Iterator[Entry]:
    """Entries with full names, as those below `folder`, with paths relative to `root`."""
    prefix, start = f"{folder}/", len(root) + 1
    for name, size, version in entries:
        if name.startswith(prefix) and name[-1] != "/":
            inner = name[len(prefix) :]
            if hidden or not any(map(is_hidden, inner.split("/"))):
                yield name[start:], size, version


def is_unchanged(expected: FileStat, actual: FileStat) -> bool:
    """Whether size and version are the same as far as both are known."""
    pairs = zip(expected, actual, strict=True)
    return all(old is None or new is None or old == new for old, new in pairs)


def check_unchanged(name: str, expected: FileStat, actual: FileStat) -> None:
    """Raise FileGoneError if a file is not the one that was listed."""
    if not is_unchanged(expected, actual):
        problem = "replaced since it was listed: size {}, version {}; expected {}, {}"
        raise FileGoneError(problem.format(*actual, *expected), file=name)


_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_FILE_URI = re.compile(r"file:(?://(?:localhost)?)?(/(?:[^/].*)?)", re.DOTALL)
_S3 = {"s3", "s3a", "s3n"}
_LEADING_ELSEWHERE = frozenset(("", ".", ".."))


@dataclass(frozen=True, slots=True)
class Location:
    """The root of a storage.

    >>> Location.parse("s3a://lake/events/")
    Location(scheme='s3', text='s3://lake/events')
    >>> Location.parse("file:///data/a b%20").text
    '/data/a b%20'
    """

    scheme: str
    text: str
    """A path for files on a disk, else with its scheme; it has no `/` at its end."""

    @classmethod
    def parse(cls, location: str | os.PathLike[str]) -> Location:
        """Read a path or a URI.

        Raises:
            OptionError: It holds a password, which belongs in the storage options, or no bucket.
        """
        text = os.fspath(location)
        if local := _FILE_URI.fullmatch(text):
            return cls("file", _trimmed(local[1]))
        uri = _URI.fullmatch(text)
        if uri is None:
            return cls("file", _trimmed(str(Path(text).absolute())))
        scheme, rest = uri[1].lower(), uri[2].rstrip("/")
        authority = rest.partition("/")[0]
        if ":" in authority.rpartition("@")[0]:
            raise OptionError(f"{scheme}:// location with a password: use storage_options for it")
        if scheme == "file":
            raise OptionError(f"{text}: files of another host are not read, expected file:///...")
        scheme = "s3" if scheme in _S3 else scheme
        if scheme == "s3" and not authority:
            raise OptionError(f"{text}: no bucket, expected s3://bucket/...")
        return cls(scheme, f"{scheme}://{rest}")

    @property
    def root(self) -> str:
        """The beginning that all files of its file system or bucket have, with a `/` at its end.

        >>> Location.parse("s3://lake/events").root, Location.parse("file:/data/events").root
        ('s3://lake/', '/')
        """
        if "://" not in self.text:
            return "/"
        scheme, _, rest = self.text.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}/"

    def name(self, path: str) -> str:
        """The full name of the file at `path` below the root, as errors show it.

        Raises:
            StorageError: `path` could lead out of the storage.
        """
        return join(self.text, path)


def join(root: str, path: str) -> str:
    """`path` below `root`; an empty path is the root itself."""
    if not path:
        return root
    if path[0] == "/" or "\0" in path or not _LEADING_ELSEWHERE.isdisjoint(path.split("/")):
        raise StorageError(f"not a path below its storage: {path!r}", file=root)
    return root + path if root.endswith("/") else f"{root}/{path}"


def _trimmed(path: str) -> str:
    return path.rstrip("/") or "/"
