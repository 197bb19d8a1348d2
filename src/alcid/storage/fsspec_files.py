"""The backend for what fsspec knows: `memory://`, `gs://`, `abfs://`, `hdfs://`, S3 by s3fs ..."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from threading import Lock
from typing import Any, BinaryIO

from alcid.errors import OptionError, UnsupportedError
from alcid.storage.backend import Draft, Entry, FileStat, Location, Request, below, join
from alcid.storage.new_file import SpooledDraft
from alcid.storage.options import s3fs_options
from alcid.storage.retries import Lister
from alcid.storage.s3_upload import S3Upload
from alcid.storage.traffic import TrafficCounter

_PAGE = 1000
_PAGE_TRIES = 5
_ETAGS = ("ETag", "etag", "e_tag")
_EXCLUSIVE = ("abfs", "abfss", "az", "gcs", "gs", "memory", "s3")
"""Schemes whose file systems take a name that is free, and fail if it is not, in one step."""
_MEMORY = Lock()  # for `memory`, which is not exclusive among threads
_TIMES = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")


class FsspecFiles:
    """The files below a root of a file system that fsspec knows."""

    gap = 128 << 10
    largest = 8 << 20
    remote = True

    def __init__(
        self, location: Location, options: Mapping[str, Any], traffic: TrafficCounter
    ) -> None:
        self._traffic, scheme = traffic, location.scheme
        self._scheme = scheme
        kind = _file_system_class(scheme)
        self.exclusive = scheme in _EXCLUSIVE and _has_mode(kind)
        self._is_memory = scheme == "memory"
        self._root = str(kind._strip_protocol(location.text)).rstrip("/")
        parts = kind._get_kwargs_from_urls(location.text)

        def connect(tries: int) -> Any:
            settings = s3fs_options(options, tries) if scheme == "s3" else options
            # What others write must be seen at once, so no listing is cached.
            caches = {"use_listings_cache": False, "skip_instance_cache": True}
            try:
                files = kind(**{**parts, **settings, **caches})
            except (TypeError, ValueError) as error:
                # Without the cause: it may quote a value.
                problem = f"{type(error).__name__} for the options {', '.join(sorted(options))}"
                raise OptionError(f"{location.text}: {problem}") from None
            if scheme == "s3":
                files.retries = 1  # s3fs has a loop of its own around that of botocore
            return files

        # As for Arrow: one layer of retries, but not a whole listing again for one of its pages.
        self._files = connect(1)
        lister = connect(_PAGE_TRIES) if scheme == "s3" else self._files
        bucket = self._root.partition("/")[0]
        self._lister = Lister(self._files, lister, lambda files: files.info(bucket))

    def entries(self, under: str, *, hidden: bool) -> list[Entry]:
        """All files below a folder."""
        folder = join(self._root, under)
        try:
            infos = self._lister.run(lambda files: files.find(folder, detail=True))
        except FileNotFoundError:
            infos = {}
        self._traffic.add(lists=max(1, -(-len(infos) // _PAGE)))
        files = (
            (name, stat.size, stat.version)
            for name, info in infos.items()
            if info["type"] == "file" and (stat := _stat(info)).size is not None
        )
        return list(below(files, self._root, folder, hidden=hidden))

    def folder(self, under: str) -> tuple[list[Entry], list[str]]:
        """The files of a folder itself, and the folders in it."""
        folder = join(self._root, under)
        try:
            infos = self._lister.run(lambda files: files.ls(folder, detail=True))
        except FileNotFoundError:
            infos = []
        self._traffic.add(lists=max(1, -(-len(infos) // _PAGE)))
        files = (
            (info["name"], stat.size, stat.version)
            for info in infos
            if info["type"] == "file" and (stat := _stat(info)).size is not None
        )
        start = len(self._root) + 1
        folders = [
            info["name"].rstrip("/")[start:] for info in infos if info["type"] == "directory"
        ]
        inner = [path for path in folders if path != under]  # an object that stands for itself
        return list(below(files, self._root, folder, hidden=True)), inner

    def stat(self, path: str) -> FileStat:
        """Size and version of a file."""
        self._traffic.add(stats=1)
        info = self._files.info(join(self._root, path))
        if info["type"] != "file":
            raise IsADirectoryError(info["name"])
        return _stat(info)

    def read(
        self, path: str, pieces: Sequence[tuple[int, int]], _expected: FileStat
    ) -> list[bytes]:
        """The bytes of each (offset, length); a file replaced by another is not noticed here."""
        name = join(self._root, path)
        self._traffic.add(reads=len(pieces))
        return [
            self._files.cat_file(name, start=offset, end=offset + length)
            for offset, length in pieces
        ]

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a file that does not exist; on S3 and the like it is the server who sees to that.

        Elsewhere fsspec looks for the name, and then writes: that is not exclusive.
        """
        in_memory = exclusive and self._is_memory
        with _MEMORY if in_memory else contextlib.nullcontext():
            self._pipe(path, data, "create")

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, over what there is."""
        self._pipe(path, data, "overwrite")

    def _pipe(self, path: str, data: bytes, mode: str) -> None:
        name = join(self._root, path)
        self._traffic.add(puts=1)
        try:
            self._files.pipe_file(name, data, mode=mode)
        except FileNotFoundError:  # where folders are real, they are made first
            self._files.makedirs(name.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(name, data, mode=mode)

    def draft(self, path: str, request: Request) -> Draft:
        """Begin an upload in parts; of other file systems than S3, a temporary file."""
        name = join(self._root, path)
        if self._scheme == "s3":
            return S3Upload(self._files, name, self._root, request, self._traffic)
        return SpooledDraft(lambda file: self._upload(file, path), request)

    def _upload(self, file: BinaryIO, path: str) -> None:
        """Write a whole file, so that nobody sees a part of it."""
        name = join(self._root, path)
        self._traffic.add(puts=1)
        if self._files.exists(name):
            raise FileExistsError(name)
        if self._is_memory:
            self.put(path, file.read())
        elif self._scheme in _EXCLUSIVE:  # an object appears when it is whole
            self._files.put_file(file.name, name)
        else:
            folder, _, last = name.rpartition("/")
            temporary = f"{folder}/.{uuid.uuid4().hex}.tmp"
            self._files.makedirs(folder, exist_ok=True)
            try:
                self._files.put_file(file.name, temporary)
                self._files.mv(temporary, f"{folder}/{last}")
            finally:
                with contextlib.suppress(OSError):
                    self._files.rm_file(temporary)

    def link(self, path: str, target: str) -> None:
        """Copy a file; S3 and the like do so without its bytes coming here."""
        first, second = join(self._root, path), join(self._root, target)
        self._traffic.add(puts=1)
        try:
            self._files.cp_file(first, second)
        except FileNotFoundError:  # where folders are real, they are made first
            self._files.info(first)
            self._files.makedirs(second.rpartition("/")[0], exist_ok=True)
            self._files.cp_file(first, second)

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if it is not there."""
        self._traffic.add(deletes=1)
        try:
            self._files.rm_file(join(self._root, path))
        except FileNotFoundError:
            return

    def remove_folder(self, path: str) -> None:
        """Remove a folder where there is such a thing; on S3 there is not."""
        with contextlib.suppress(OSError, NotImplementedError):
            self._files.rmdir(join(self._root, path))


def _file_system_class(scheme: str) -> Any:
    try:
        fsspec: Any = importlib.import_module("fsspec")
    except ImportError:
        raise UnsupportedError(
            f"{scheme}:// needs fsspec, and the package for {scheme} that it names"
        ) from None
    try:
        return fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise UnsupportedError(f"{scheme}:// is not known to fsspec") from None
    except ImportError as error:  # it says what to install
        raise UnsupportedError(f"{scheme}://: {error}") from None


def _has_mode(kind: Any) -> bool:
    """Whether a file system heeds the mode of a write: older ones always overwrite."""
    pipe = getattr(kind, "_pipe_file", kind.pipe_file)
    return "mode" in inspect.signature(pipe).parameters


def _stat(info: Mapping[str, Any]) -> FileStat:
    """Size and version out of what the file systems call them."""
    for key in _ETAGS:
        if etag := info.get(key):
            return FileStat(info["size"], f'"{str(etag).strip(chr(34))}"')
    for key in _TIMES:
        if (changed := info.get(key)) is not None:
            return FileStat(info["size"], _nanoseconds(changed))
    return FileStat(info["size"])


def _nanoseconds(changed: Any) -> str | None:
    if isinstance(changed, str):
        try:
            changed = datetime.fromisoformat(changed)
        except ValueError:
            return None
    if isinstance(changed, datetime):
        aware = changed if changed.tzinfo else changed.replace(tzinfo=UTC)
        since = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return str(((since.days * 86_400 + since.seconds) * 10**6 + since.microseconds) * 1000)
    # Seconds, as a float of which the microseconds are exact.
    return f"{round(changed * 1e6)}000" if isinstance(changed, int | float) else None
