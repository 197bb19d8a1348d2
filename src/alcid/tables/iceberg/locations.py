"""Where the files of an Iceberg table are: metadata name them by whole paths, anywhere.

Keys, endpoint and region of S3, from what an Iceberg catalog has set up its own reads with.

| here                | `S3FileIO`             | Hadoop's s3a, also `fs.s3a.bucket.<bucket>.*` |
|---------------------|------------------------|-----------------------------------------------|
| `access_key`        | `s3.access-key-id`     | `fs.s3a.access.key`                           |
| `secret_key`        | `s3.secret-access-key` | `fs.s3a.secret.key`                           |
| `session_token`     | `s3.session-token`     | `fs.s3a.session.token`                        |
| `endpoint_override` | `s3.endpoint`          | `fs.s3a.endpoint`                             |
| `region`            | `client.region`        | `fs.s3a.endpoint.region`                      |

What neither has, the usual chain of AWS finds, as it does for the catalog: environment, profile,
role of the machine.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import FileGoneError, UnsupportedError
from alcid.formats.source import Range
from alcid.storage import Storage
from alcid.storage.backend import Location
from alcid.storage.storage import StorageSource

__all__ = ["Places", "advice", "is_whole", "s3_options"]

_WHOLE = 1 << 40
_WHOLE_PATH = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*:|/)")
_ROOT = re.compile(r"(?:[a-z][a-z0-9+.-]*://[^/]*)?/", re.IGNORECASE)


class Places:
    """Opens storages for whole paths, each once; it pickles with its options, not with these.

    >>> places = Places()
    >>> storage, paths = places.below("file:/lake/db/t", pa.array(["/lake/db/t/data/a.parquet"]))
    >>> storage.location, paths.to_pylist()
    ('/lake/db/t', ['data/a.parquet'])
    >>> storage, paths = places.below("/lake/db/t", pa.array(["file:///elsewhere/a.parquet"]))
    >>> storage.location, paths.to_pylist()
    ('/', ['elsewhere/a.parquet'])
    >>> places = Places(working_folder="file:/home/ada")
    >>> storage, paths = places.below("lake/./t", pa.array(["lake/t/data/a.parquet"]))
    >>> storage.location, paths.to_pylist()
    ('/home/ada/lake/t', ['data/a.parquet'])
    """

    def __init__(
        self, storage_options: Mapping[str, Any] | None = None, working_folder: str | None = None
    ) -> None:
        """Open nothing yet.

        Args:
            storage_options: What all files are read with; see `alcid.storage.Storage.open`.
            working_folder: What paths without a root are below, as those of a catalog whose
                warehouse was given so.
        """
        self._options, self._base = storage_options, working_folder
        self._folders: dict[str, Storage] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return Places, (self._options, self._base)

    def whole(self, path: str) -> str:
        """A path with its root.

        Raises:
            UnsupportedError: It has none, and nothing says what it is below.
        """
        if is_whole(path):
            return path
        if self._base is None:
            raise UnsupportedError(f"{path}: found no whole path, expected one as metadata have it")
        scheme, mark, folder = self._base.rpartition(":")  # as Hadoop joins them
        return f"{scheme}{mark}{posixpath.normpath(posixpath.join(folder, path))}"

    def folder(self, location: str) -> Storage:
        """The storage of a folder."""
        text = Location.parse(self.whole(location)).text
        if text not in self._folders:
            self._folders[text] = Storage.open(text, self._options)
        return self._folders[text]

    def find(self, path: str) -> tuple[Storage, str]:
        """The storage of the whole file system or bucket that a file is in, and its path there."""
        text = Location.parse(self.whole(path)).text
        root = _root(text)
        return self.folder(root), text[len(root) :]

    def below(self, location: str, paths: pa.Array) -> tuple[Storage, pa.Array]:
        """One storage for files, and their paths in it: a folder, if all of them lie below it.

        Raises:
            UnsupportedError: They are in several file systems or buckets.
        """
        if self._base is not None:
            paths = pa.array([self.whole(path) for path in paths.to_pylist()], pa.string())
        texts = pc.replace_substring_regex(paths, r"^file:(//(localhost)?)?/", "/")
        texts = pc.replace_substring_regex(texts, r"^s3[an]://", "s3://")
        folder = Location.parse(self.whole(location)).text.rstrip("/") + "/"
        if not pc.all(pc.starts_with(texts, folder), min_count=0).as_py():
            folder = _root(texts[0].as_py())
            strange = texts.filter(pc.invert(pc.starts_with(texts, folder)))
            if len(strange):
                raise UnsupportedError(f"{strange[0]}: found files elsewhere than in {folder}")
        return self.folder(folder), pc.utf8_slice_codeunits(texts, len(folder))

    def source(self, path: str, size: int | None = None) -> StorageSource:
        """A file, to be read by range."""
        storage, name = self.find(path)
        return storage.source(name, size)

    def read_ranges(self, ranges: Sequence[Range]) -> Sequence[bytes]:
        """One round of reads of such files; it is a `ReadMany`."""
        if not ranges:
            return []
        storage, _ = self.find(ranges[0].source.name)
        return storage.read_ranges(ranges)

    def read_files(self, paths: Sequence[str]) -> list[bytes]:
        """Files of one file system or bucket as a whole, in one round of reads.

        Raises:
            FileGoneError: One is not there.
        """
        if not paths:
            return []
        folder, names = self.below("/", pa.array(paths, pa.string()))
        starts = folder.read_heads(names.to_pylist(), _WHOLE, {})
        for path, one in zip(paths, starts, strict=True):
            if one is None:
                raise FileGoneError("not there", file=path)
        return [one.data for one in starts if one is not None]

    def put(self, path: str, data: bytes) -> None:
        """Write a file under a new name."""
        storage, name = self.find(path)
        storage.put(name, data)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files; those that are not there are passed over."""
        for path in paths:
            storage, name = self.find(path)
            storage.delete([name])


def is_whole(path: str) -> bool:
    """Whether a path has a root, or a scheme.

    >>> is_whole("s3://lake/t"), is_whole("/lake/t"), is_whole("file:/lake"), is_whole("lake/t")
    (True, True, True, False)
    """
    return _WHOLE_PATH.match(path) is not None


def _root(text: str) -> str:
    """The beginning of a path that every file of its file system or bucket has."""
    found = _ROOT.match(text)
    if found is None:
        raise UnsupportedError(f"{text}: found no whole path, expected one as metadata have it")
    return found[0]


_EXAMPLE: Final = '{"access_key": ..., "secret_key": ..., "endpoint_override": ..., "region": ...}'
_OF_FILE_IO: Final = {
    "s3.access-key-id": "access_key",
    "s3.secret-access-key": "secret_key",
    "s3.session-token": "session_token",
    "s3.endpoint": "endpoint_override",
    "client.region": "region",
}
_OF_HADOOP: Final = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint": "endpoint_override",
    "endpoint.region": "region",
}
_KEYS: Final = ("access_key", "secret_key", "session_token")
_HADOOP: Final = "fs.s3a."
_SSL: Final = "connection.ssl.enabled"
_USUAL_ENDPOINT: Final = "s3.amazonaws.com"


def s3_options(
    location: str,
    settings: Mapping[str, str],
    credentials: Iterable[tuple[str, Mapping[str, str]]] = (),
) -> dict[str, str]:
    """Storage options for files below a location.

    Args:
        location: In S3.
        settings: Properties of the `FileIO`, and Hadoop's `fs.s3a.*`.
        credentials: Properties that the catalog has given for prefixes; the last that fits wins.

    >>> s3_options("s3://b/t", {"s3.endpoint": "http://store:9000", "client.region": "eu-west-1"})
    {'endpoint_override': 'http://store:9000', 'region': 'eu-west-1'}
    """
    found = _of_hadoop(settings, urlsplit(location).netloc)
    for prefix, given in (("", settings), *credentials):
        own = {name: given[key] for key, name in _OF_FILE_IO.items() if given.get(key)}
        if location.startswith(prefix) and own:
            if "access_key" in own:  # keys are of one kind: no token of others beside them
                found = {name: value for name, value in found.items() if name not in _KEYS}
            found |= own
    return found


def advice(options: Iterable[str]) -> str:
    """What to do where files cannot be read with the options that were found.

    >>> advice(["access_key", "region"])[:66]
    'read with access_key, region of the catalog: give storage_options '
    """
    names = ", ".join(options)
    if names:
        return f"read with {names} of the catalog: give storage_options for others, as {_EXAMPLE}"
    found = "neither the catalog nor Hadoop's settings have keys or an endpoint"
    return f"{found}: give storage_options, as {_EXAMPLE}"


def _of_hadoop(settings: Mapping[str, str], bucket: str) -> dict[str, str]:
    known: dict[str, str] = {}
    for prefix in (_HADOOP, f"{_HADOOP}bucket.{bucket}."):  # of a bucket, they win
        names = {prefix + key: key for key in (*_OF_HADOOP, _SSL)}
        known |= {key: settings[name] for name, key in names.items() if settings.get(name)}
    found = {name: known[key] for key, name in _OF_HADOOP.items() if key in known}
    endpoint = found.pop("endpoint_override", _USUAL_ENDPOINT)
    if endpoint != _USUAL_ENDPOINT:
        scheme = "http" if known.get(_SSL, "true").lower() == "false" else "https"
        found["endpoint_override"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    return found
