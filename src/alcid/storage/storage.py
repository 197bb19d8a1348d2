"""The files below a folder or prefix: listed, read by range, put under new names.

The same on a disk and on a network. What is special about a file system is in its backend.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from alcid.errors import (
    FileGoneError,
    FormatError,
    NameTakenError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.source import Range, Source
from alcid.storage.arrow_s3 import ArrowS3Files
from alcid.storage.backend import (
    Backend,
    Draft,
    FileHead,
    FileStat,
    Listing,
    Location,
    listing_of,
)
from alcid.storage.dry_run import DryRunFiles
from alcid.storage.fsspec_files import FsspecFiles
from alcid.storage.local import LocalFiles
from alcid.storage.new_file import NewFile
from alcid.storage.options import SecretOptions
from alcid.storage.ranges import Coalescing, File, FileRange, Job, ReadRound
from alcid.storage.retries import Retry, ShortReadError, retry_request
from alcid.storage.threads import run_all
from alcid.storage.traffic import Traffic, TrafficCounter

_Result = TypeVar("_Result")
_LIBRARIES = ("arrow", "fsspec")
_LONGEST = 1 << 60  # no file has so many bytes
_Folders = list[str]
_Parts = list[bytes]  # within the class, `list` is its method
_Heads = list[FileHead | None]


class Storage:
    """The files below a folder or prefix; many threads may use it at a time.

    It pickles as its location and options, and is opened anew on the other side; its options are
    never shown.
    """

    def __init__(
        self,
        location: Location,
        options: SecretOptions,
        retry: Retry,
        backend: Backend,
        traffic: TrafficCounter,
    ) -> None:
        """For `open`."""
        self._location, self._options, self._retry = location, options, retry
        self._backend, self._traffic = backend, traffic
        self._exclusive: Storage | None = None  # the same files through another library
        self._is_wrapped = False
        self._has_answered = False  # whether the server has answered any request

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str],
        storage_options: Mapping[str, Any] | None = None,
        *,
        retry: Retry | None = None,
    ) -> Storage:
        """Open a folder: a path, or a URI of `file`, `s3` or what fsspec knows.

        Args:
            location: Need not exist; a file of its own is the path `""` in it.
            storage_options: Keys, endpoint and such, in the spelling of Arrow, s3fs or pyiceberg;
                for other schemes they go to fsspec as they are. `library` chooses between `arrow`
                (the default) and `fsspec` for S3.
            retry: How often and how long failed requests are retried.

        Raises:
            OptionError: A location or an option that cannot be.
            UnsupportedError: A scheme that no installed package knows.
        """
        parsed = Location.parse(location)
        secrets = SecretOptions(storage_options or {})
        options, traffic = dict(secrets.options), TrafficCounter()
        library = options.pop("library", "arrow")
        if library not in _LIBRARIES:
            raise OptionError(f"storage option library: expected one of {', '.join(_LIBRARIES)}")
        backend: Backend
        if parsed.scheme == "file":
            backend = LocalFiles(parsed, traffic)
        elif parsed.scheme == "s3" and library == "arrow":
            backend = ArrowS3Files(parsed, options, traffic)
        else:
            backend = FsspecFiles(parsed, options, traffic)
        return cls(parsed, secrets, retry or Retry(), backend, traffic)

    def dry_run(self) -> Storage:
        """The same files, to try changes on: these stay in memory, and nobody else sees them."""
        return self.through(DryRunFiles)

    def whole(self) -> tuple[Storage, str]:
        """The whole file system or bucket, and the folder of this storage in it, `/` at its end."""
        location, root = self._location.text, self._location.root
        folder = f"{location}/"[len(root) :] if location != root else ""
        return Storage.open(root, self._options.options, retry=self._retry), folder

    def through(self, around: Callable[[Backend], Backend]) -> Storage:
        """The same files, through a backend that is put around its own."""
        backend = around(self._backend)
        wrapped = Storage(self._location, self._options, self._retry, backend, self._traffic)
        wrapped._is_wrapped = True
        return wrapped

    @property
    def location(self) -> str:
        """Where it is: an absolute path, or a URI."""
        return self._location.text

    @property
    def has_options(self) -> bool:
        """Whether it was opened with options, such as keys."""
        return bool(self._options.options)

    @property
    def remote(self) -> bool:
        """Whether each read is a request over a network."""
        return self._backend.remote

    @property
    def gap(self) -> int:
        """Bytes between two ranges of a file that are cheaper to read along than to leave out.

        For whoever plans many ranges, such as those of pages: 16 KiB on a disk, 1 MiB over a
        network, where requests cost time and money. A round of reads by itself merges less.
        """
        return 1 << 20 if self.remote else 16 << 10

    @property
    def traffic(self) -> Traffic:
        """All requests since it was opened; subtract an earlier count to see what a step cost."""
        return self._traffic.snapshot()

    def list(self, under: str = "", *, suffix: str | None = None, hidden: bool = False) -> Listing:
        """All files below the folder `under`, with their sizes and versions.

        Names that Spark passes over, those that begin with `_` or `.`, are left out, but not those
        of `under` itself; `hidden` gives all. A folder that does not exist has no files.
        """
        entries = self._request(
            lambda: self._backend.entries(under, hidden=hidden), "could not be listed", under
        )
        return listing_of(entries, suffix=suffix, location=self._location.name(under))

    def folder(self, under: str = "") -> tuple[Listing, _Folders]:
        """The files of a folder itself, and the paths of the folders in it.

        Hidden ones are there, too. A dry run gives all files below, and no folders.
        """
        entries, folders = self._request(
            lambda: self._backend.folder(under), "could not be listed", under
        )
        listing = listing_of(entries, suffix=None, location=self._location.name(under))
        return listing, sorted(folders)

    def source(
        self, path: str, size: int | None = None, version: str | None = None
    ) -> StorageSource:
        """A file, to be read by range; no request is made before the first read.

        Args:
            path: Below the location.
            size: As listed; if it is not given, it is requested when it is needed.
            version: As listed. Where it costs nothing (on a disk, on S3 through Arrow) a file that
                was replaced since then is a FileGoneError.
        """
        return StorageSource(self, File(path, FileStat(size, version)))

    def read_many(self, requests: Iterable[tuple[str, int, int]]) -> _Parts:
        """One round of reads, each a path, an offset and a length, over any number of files.

        Ranges of a file that are near each other are read together; over a network all reads of the
        round run in parallel.

        Raises:
            FileGoneError: A file does not exist.
            StorageError: Any other failure, and a file that ends before a range does.
        """
        numbers: dict[File, int] = {}
        file_ranges = [
            (numbers.setdefault(File(path, FileStat()), len(numbers)), offset, length)
            for path, offset, length in requests
        ]
        return self._read([*numbers], file_ranges)

    def read_ranges(self, ranges: Sequence[Range]) -> _Parts:
        """One round of reads, of sources of this storage; others are read one by one.

        It is a `ReadMany`, for whatever reads ranges of many sources.

        Raises:
            FileGoneError: A file does not exist, or is not the one that was listed.
            FormatError: A range is outside of its file.
            StorageError: Any other failure.
        """
        numbers: dict[File, int] = {}
        file_ranges: list[FileRange] = []
        others: list[int] = []
        for position, (source, offset, length) in enumerate(ranges):
            if isinstance(source, StorageSource) and source._storage is self:
                number = numbers.setdefault(source._file, len(numbers))
                file_ranges.append((number, offset, length))
            else:
                others.append(position)
        parts = self._read([*numbers], file_ranges)
        for position in others:
            source, offset, length = ranges[position]
            parts.insert(position, source.read(offset, length))
        return parts

    def read_heads(
        self, paths: Sequence[str], most: int, sizes: Mapping[str, int]
    ) -> Sequence[FileHead | None]:
        """The first bytes of files and their sizes, in one round of reads.

        On a disk a file is opened once for both.

        Args:
            paths: The files.
            most: Bytes of each, at most.
            sizes: Known sizes by path; the others are requested.

        Returns:
            The head of each file; None where there is no such file.

        Raises:
            FileGoneError: A file was removed while it was read.
            StorageError: Any other failure.
        """
        heads: _Heads = [None] * len(paths)
        if isinstance(self._backend, LocalFiles) and not self._backend.remote:
            heads = self._backend.read_heads(paths, most)
            self._traffic.add(bytes_read=sum(len(head.data) for head in heads if head is not None))
        missing = [number for number, head in enumerate(heads) if head is None]

        def size_of(number: int) -> int | None:
            try:
                return self.source(paths[number], sizes.get(paths[number])).size
            except FileGoneError:
                return None

        run = run_all if self._backend.remote else map
        existing = [
            (number, size)
            for number, size in zip(missing, run(size_of, missing), strict=True)
            if size is not None
        ]
        files = [File(paths[number], FileStat(size)) for number, size in existing]
        ranges = [(file, 0, min(size, most)) for file, (_, size) in enumerate(existing)]
        for (number, size), data in zip(existing, self._read(files, ranges), strict=True):
            heads[number] = FileHead(size, data)
        return heads

    def _read(self, files: Sequence[File], ranges: Sequence[FileRange]) -> _Parts:
        backend = self._backend
        for number, offset, length in ranges:
            size = files[number].expected.size
            if offset < 0 or length < 0 or offset + length > (_LONGEST if size is None else size):
                raise FormatError(
                    "range outside of the file",
                    file=self._location.name(files[number].path),
                    offset=offset,
                    found=f"{length} bytes",
                    expected=None if size is None else f"at most {max(size - offset, 0)}",
                )
        if len(ranges) == 1 and 0 < length <= backend.largest:  # most reads need no plan
            return self._fetch(Job(*files[0], [(offset, length)]))
        how = Coalescing(backend.gap, backend.largest)
        plan = ReadRound(files, ranges, how, parallel=backend.remote)
        run = run_all if backend.remote else map
        return plan.results(run(self._fetch, plan.jobs))

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file under a name that is not taken; others see all of it, or nothing.

        An answer may get lost on its way, so a file of that name with the same bytes is a success.

        Raises:
            NameTakenError: There is a file of that name, with other bytes.
        """
        self._put_once(path, data, exclusive=False)

    def new_file(self, path: str) -> NewFile:
        """Begin a file under a name that is not taken, to be written in parts.

        Others see all of it when its `with` block has ended, or nothing. On S3 its parts are sent,
        or copied from other objects, through s3fs where that is installed; else, and on file
        systems that cannot do such a thing, it is a temporary file here until it is whole.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> storage = Storage.open(folder.name)
        >>> with storage.new_file("a.bin") as file:
        ...     _ = file.write(b"0123")
        ...     _ = file.write(b"456789")
        >>> storage.source("a.bin").read(2, 4)
        b'2345'
        >>> folder.cleanup()
        """
        return NewFile(self, path, lambda: self._draft(path))

    def _draft(self, path: str) -> Draft:
        backend = self._backend
        if isinstance(backend, ArrowS3Files):
            with suppress(UnsupportedError):  # without s3fs
                options = {**self._options.options}
                options.pop("library", None)
                backend = FsspecFiles(self._location, options, self._traffic)

        def request(call: Callable[[], _Result]) -> _Result:
            def attempt() -> _Result:
                try:
                    return call()
                except FileExistsError:
                    name = self._location.name(path)
                    raise NameTakenError("exists already", file=name) from None

            return self._request(attempt, "could not be written", path)

        return backend.draft(path, request)

    def count_written(self, count: int) -> None:
        """Count bytes of a draft in the traffic, for `NewFile`."""
        self._traffic.add(bytes_written=count)

    def path_of(self, source: Source) -> str | None:
        """The path of a file of this location, if that is what a source is."""
        if isinstance(source, StorageSource) and source._storage.location == self.location:
            return source._file.path
        return None

    def _put_once(self, path: str, data: bytes, *, exclusive: bool) -> None:
        try:
            self._request(lambda: self._put(path, data, exclusive), "could not be written", path)
        except NameTakenError:
            source = self.source(path)
            if source.size != len(data) or source.read(0, len(data)) != data:
                raise
        self._traffic.add(bytes_written=len(data))

    def create(self, path: str, data: bytes) -> None:
        """Write a whole file under a name that several may try to take: one of them gets it.

        It is `put` where that is safe. Arrow cannot request that of S3, so s3fs does, with the
        header `If-None-Match`.

        Raises:
            NameTakenError: Another has got the name.
            UnsupportedError: It takes s3fs, which is not installed; or the file system cannot do
                it.
        """
        if self._backend.exclusive:
            self._put_once(path, data, exclusive=True)
            return
        if self._location.scheme != "s3" or isinstance(self._backend, FsspecFiles):
            raise UnsupportedError(
                f"{self._location.name(path)}: {self._location.scheme}:// cannot give a name to "
                "one of several: of two commits at the same time both could win; keep the table "
                "on a disk, S3, GCS or Azure, or commit with Paimon's Java"
            )
        if self._exclusive is None:
            options = {**self._options.options, "library": "fsspec"}
            self._exclusive = Storage.open(self.location, options, retry=self._retry)
        self._exclusive.create(path, data)
        self._traffic.add(puts=1, bytes_written=len(data))

    def replace(self, path: str, data: bytes) -> None:
        """Write a whole file, over what has that name; only for hints that readers do without."""
        self._request(lambda: self._backend.replace(path, data), "could not be written", path)
        self._traffic.add(bytes_written=len(data))

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files; those that are not there are passed over."""

        def remove(path: str) -> None:
            self._request(lambda: self._backend.delete(path), "could not be removed", path)

        if self._backend.remote:
            run_all(remove, list(paths))
        else:
            for path in paths:
                remove(path)

    def move(self, path: str, target: str) -> None:
        """Give a file another name, which is not taken; its bytes do not come here.

        On a disk it stays the same file, with its version. S3 has no such thing: the object is
        copied there and then removed, and its copy may have another version.

        Raises:
            FileGoneError: There is no such file.
            NameTakenError: There is a file of the new name.
        """
        if self._backend.remote and self.exists(target):
            # Asked once: a copy may be made though the answer is lost, and is then made again.
            raise NameTakenError("exists already", file=self._location.name(target))
        self._request(lambda: self._link(path, target), "could not be moved", path)
        self._request(lambda: self._backend.delete(path), "could not be removed", path)

    def copy(self, path: str, target: str) -> None:
        """Let the server of an object store copy a file, over what has the new name.

        Its bytes do not come here. On a disk it is the same file under two names.

        Raises:
            FileGoneError: There is no such file.
            NameTakenError: On a disk, there is a file of the new name.
        """
        self._request(lambda: self._link(path, target), "could not be copied", path)

    def remove_folder(self, path: str) -> None:
        """Remove a folder and all that is in it; nothing happens if it is not there."""
        if not path:
            raise OptionError(f"{self.location}: the folder of a storage is not removed")
        self.delete(self.list(path, hidden=True).paths.to_pylist())
        with suppress(FileGoneError):
            self._request(lambda: self._backend.remove_folder(path), "could not be removed", path)

    def exists(self, path: str) -> bool:
        """Whether there is a file of that name."""
        try:
            self.stat(path)
        except FileGoneError:
            return False
        return True

    def stat(self, path: str) -> FileStat:
        """Size and version of a file.

        Raises:
            FileGoneError: It does not exist.
        """
        return self._request(lambda: self._backend.stat(path), "could not be read", path)

    def is_same(self, path: str, size: int, version: str | None) -> bool:
        """Whether a file is still the one that was listed."""
        try:
            return self.stat(path) == (size, version)
        except FileGoneError:
            return False

    def _put(self, path: str, data: bytes, exclusive: bool) -> None:
        try:
            self._backend.put(path, data, exclusive=exclusive)
        except FileExistsError:
            raise NameTakenError("exists already", file=self._location.name(path)) from None

    def _link(self, path: str, target: str) -> None:
        try:
            self._backend.link(path, target)
        except FileExistsError:
            raise NameTakenError("exists already", file=self._location.name(target)) from None

    def _fetch(self, job: Job) -> _Parts:
        def read() -> _Parts:
            parts = self._backend.read(job.path, job.pieces, job.expected)
            self._traffic.add(bytes_read=sum(map(len, parts)))
            for (offset, length), part in zip(job.pieces, parts, strict=True):
                if len(part) != length:
                    problem = f"{len(part)} bytes at offset {offset}, expected {length}"
                    if self._backend.remote:
                        raise ShortReadError(problem)
                    raise StorageError(f"short read: {problem}", file=self._location.name(job.path))
            return parts

        return self._request(read, "could not be read", job.path)

    def _request(self, call: Callable[[], _Result], problem: str, path: str) -> _Result:
        try:
            result = retry_request(
                call,
                problem=problem,
                file=self._location.name(path),
                policy=self._retry if self._has_answered else self._retry.at_first(),
                redact=self._options.redact,
                on_retry=lambda: self._traffic.add(retries=1),
            )
        except FileGoneError:
            self._has_answered = True
            raise
        self._has_answered = True
        return result

    def __reduce__(self) -> tuple[object, ...]:
        if self._is_wrapped:  # in another process it would change the files themselves
            problem = "a dry run stays in its process, as does all that is put around files"
            raise UnsupportedError(f"{self.location}: {problem}")
        return _open, (self.location, self._options.options, self._retry)

    def __repr__(self) -> str:
        return f"Storage({self.location!r})"


def _open(location: str, options: dict[str, Any], retry: Retry) -> Storage:
    return Storage.open(location, options, retry=retry)


class StorageSource:
    """A file of a storage, as formats read it; nothing stays open, so there is nothing to close."""

    __slots__ = ("_file", "_storage", "name")

    def __init__(self, storage: Storage, file: File) -> None:
        """For `Storage.source`."""
        self._storage, self._file = storage, file
        self.name = storage._location.name(file.path)

    @property
    def size(self) -> int:
        """Its length in bytes; requested once if it was not given."""
        path, (size, version) = self._file
        if size is None:
            size = self._storage.stat(path).size
            self._file = File(path, FileStat(size, version))
        if size is None:
            raise StorageError("its file system does not know its size", file=self.name)
        return size

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """The bytes of each (offset, length), in one round of reads."""
        return self._storage._read([self._file], [(0, offset, length) for offset, length in ranges])

    def __repr__(self) -> str:
        return f"StorageSource({self.name!r})"
