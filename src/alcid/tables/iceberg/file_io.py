"""Storages for the files of an Iceberg table, whose metadata has absolute paths to anywhere.

Access keys, endpoint and region of S3 come from the configuration of the catalog:

| here                | `S3FileIO`             | Hadoop's s3a, also `fs.s3a.bucket.<bucket>.*` |
|---------------------|------------------------|-----------------------------------------------|
| `access_key`        | `s3.access-key-id`     | `fs.s3a.access.key`                           |
| `secret_key`        | `s3.secret-access-key` | `fs.s3a.secret.key`                           |
| `session_token`     | `s3.session-token`     | `fs.s3a.session.token`                        |
| `endpoint_override` | `s3.endpoint`          | `fs.s3a.endpoint`                             |
| `region`            | `client.region`        | `fs.s3a.endpoint.region`                      |

Everything else is left to the default chain of AWS: environment, profile, role of the machine.
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

_WHOLE_FILE = 1 << 40
_ABSOLUTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*:|/)")
_ROOT = re.compile(r"(?:[a-z][a-z0-9+.-]*://[^/]*)?/", re.IGNORECASE)


class FileIO:
    """Opens storages for absolute paths, each once; only the options are pickled.

    >>> file_io = FileIO()
    >>> storage, paths = file_io.below("file:/lake/db/t", pa.array(["/lake/db/t/data/a.parquet"]))
    >>> storage.location, paths.to_pylist()
    ('/lake/db/t', ['data/a.parquet'])
    >>> storage, paths = file_io.below("/lake/db/t", pa.array(["file:///elsewhere/a.parquet"]))
    >>> storage.location, paths.to_pylist()
    ('/', ['elsewhere/a.parquet'])
    >>> file_io = FileIO(working_folder="file:/home/ada")
    >>> storage, paths = file_io.below("lake/./t", pa.array(["lake/t/data/a.parquet"]))
    >>> storage.location, paths.to_pylist()
    ('/home/ada/lake/t', ['data/a.parquet'])
    """

    def __init__(
        self, storage_options: Mapping[str, Any] | None = None, working_folder: str | None = None
    ) -> None:
        """Open nothing yet.

        Args:
            storage_options: The options for all files; see `alcid.storage.Storage.open`.
            working_folder: The folder of relative paths, which a catalog with a relative warehouse
                has.
        """
        self._options, self._base = storage_options, working_folder
        self._folders: dict[str, Storage] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return FileIO, (self._options, self._base)

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells it from others: the same path means the same file if this is equal."""
        options = self._options or {}
        return tuple(sorted((name, repr(value)) for name, value in options.items())), self._base

    def absolute(self, path: str) -> str:
        """A path as an absolute path.

        Raises:
            UnsupportedError: It is relative, and there is no working folder.
        """
        if is_absolute(path):
            return path
        if self._base is None:
            raise UnsupportedError(
                f"{path}: found a relative path, expected an absolute path in the metadata"
            )
        scheme, mark, folder = self._base.rpartition(":")  # as Hadoop joins them
        return f"{scheme}{mark}{posixpath.normpath(posixpath.join(folder, path))}"

    def folder(self, location: str) -> Storage:
        """The storage of a folder."""
        text = Location.parse(self.absolute(location)).text
        if text not in self._folders:
            self._folders[text] = Storage.open(text, self._options)
        return self._folders[text]

    def find(self, path: str) -> tuple[Storage, str]:
        """The storage of the file system or bucket of a file, and its path there."""
        text = Location.parse(self.absolute(path)).text
        root = _root(text)
        return self.folder(root), text[len(root) :]

    def below(self, location: str, paths: pa.Array) -> tuple[Storage, pa.Array]:
        """A storage for files, and their paths in it: the location, if all of them are below it.

        Raises:
            UnsupportedError: The files are in several file systems or buckets.
        """
        if self._base is not None:
            paths = pa.array([self.absolute(path) for path in paths.to_pylist()], pa.string())
        texts = pc.replace_substring_regex(paths, r"^file:(//(localhost)?)?/", "/")
        texts = pc.replace_substring_regex(texts, r"^s3[an]://", "s3://")
        folder = Location.parse(self.absolute(location)).text.rstrip("/") + "/"
        if not pc.all(pc.starts_with(texts, folder), min_count=0).as_py():
            folder = _root(texts[0].as_py())
            outside = texts.filter(pc.invert(pc.starts_with(texts, folder)))
            if len(outside):
                raise UnsupportedError(f"{outside[0]}: found a file outside of {folder}")
        return self.folder(folder), pc.utf8_slice_codeunits(texts, len(folder))

    def source(self, path: str, size: int | None = None) -> StorageSource:
        """A file as a source of byte ranges."""
        storage, name = self.find(path)
        return storage.source(name, size)

    def read_ranges(self, ranges: Sequence[Range]) -> Sequence[bytes]:
        """Read ranges of such sources in one round; it is a `ReadMany`."""
        if not ranges:
            return []
        storage, _ = self.find(ranges[0].source.name)
        return storage.read_ranges(ranges)

    def read_files(self, paths: Sequence[str]) -> list[bytes]:
        """Read whole files of a file system or bucket in one round.

        Raises:
            FileGoneError: A file is missing.
        """
        if not paths:
            return []
        folder, names = self.below("/", pa.array(paths, pa.string()))
        heads = folder.read_heads(names.to_pylist(), _WHOLE_FILE, {})
        for path, head in zip(paths, heads, strict=True):
            if head is None:
                raise FileGoneError("not there", file=path)
        return [head.data for head in heads if head is not None]

    def put(self, path: str, data: bytes) -> None:
        """Write a new file."""
        storage, name = self.find(path)
        storage.put(name, data)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files; missing ones are ignored."""
        for path in paths:
            storage, name = self.find(path)
            storage.delete([name])


def is_absolute(path: str) -> bool:
    """Whether a path is absolute, or has a scheme.

    >>> (
    ...     is_absolute("s3://lake/t"),
    ...     is_absolute("/lake/t"),
    ...     is_absolute("file:/lake"),
    ...     is_absolute("lake/t"),
    ... )
    (True, True, True, False)
    """
    return _ABSOLUTE.match(path) is not None


def _root(text: str) -> str:
    """The root of a file system or bucket, with which all its paths begin."""
    match = _ROOT.match(text)
    if match is None:
        raise UnsupportedError(
            f"{text}: found a relative path, expected an absolute path in the metadata"
        )
    return match[0]


_EXAMPLE: Final = '{"access_key": ..., "secret_key": ..., "endpoint_override": ..., "region": ...}'
_FILE_IO_OPTIONS: Final = {
    "s3.access-key-id": "access_key",
    "s3.secret-access-key": "secret_key",
    "s3.session-token": "session_token",
    "s3.endpoint": "endpoint_override",
    "client.region": "region",
}
_HADOOP_OPTIONS: Final = {
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
        location: A location in S3.
        settings: Properties of the `FileIO`, and Hadoop's `fs.s3a.*`.
        credentials: Properties of the catalog by prefix; the last that matches wins.

    >>> s3_options("s3://b/t", {"s3.endpoint": "http://store:9000", "client.region": "eu-west-1"})
    {'endpoint_override': 'http://store:9000', 'region': 'eu-west-1'}
    """
    options = _hadoop_options(settings, urlsplit(location).netloc)
    for prefix, properties in (("", settings), *credentials):
        own_options = {
            name: properties[key] for key, name in _FILE_IO_OPTIONS.items() if properties.get(key)
        }
        if location.startswith(prefix) and own_options:
            if "access_key" in own_options:  # keys belong together: keep no token of other keys
                options = {name: value for name, value in options.items() if name not in _KEYS}
            options |= own_options
    return options


def advice(options: Iterable[str]) -> str:
    """Advice for an error about files that could not be read with the catalog's options.

    >>> advice(["access_key", "region"])[:66]
    'read with access_key, region of the catalog: give storage_options '
    """
    names = ", ".join(options)
    if names:
        return f"read with {names} of the catalog: give storage_options for others, as {_EXAMPLE}"
    problem = "neither the catalog nor Hadoop's settings have keys or an endpoint"
    return f"{problem}: give storage_options, as {_EXAMPLE}"


def _hadoop_options(settings: Mapping[str, str], bucket: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for prefix in (_HADOOP, f"{_HADOOP}bucket.{bucket}."):  # those of the bucket win
        names = {prefix + key: key for key in (*_HADOOP_OPTIONS, _SSL)}
        values |= {key: settings[name] for name, key in names.items() if settings.get(name)}
    options = {name: values[key] for key, name in _HADOOP_OPTIONS.items() if key in values}
    endpoint = options.pop("endpoint_override", _USUAL_ENDPOINT)
    if endpoint != _USUAL_ENDPOINT:
        scheme = "http" if values.get(_SSL, "true").lower() == "false" else "https"
        options["endpoint_override"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    return options
