"""Where a storage is, and the full names of the files under it.

Names are taken as they stand: nothing is unquoted, so `%20`, `#`, `?` and `=` are parts of a name,
in `file://` and `s3://` as well as in a plain path. That is how Spark's and fsspec's paths work.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from alcid.errors import OptionError, StorageError

__all__ = ["Location"]

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
        given = os.fspath(location)
        if local := _FILE_URI.fullmatch(given):
            return cls("file", _trimmed(local[1]))
        uri = _URI.fullmatch(given)
        if uri is None:
            return cls("file", _trimmed(str(Path(given).absolute())))
        scheme, rest = uri[1].lower(), uri[2].rstrip("/")
        authority = rest.partition("/")[0]
        if ":" in authority.rpartition("@")[0]:
            raise OptionError(f"{scheme}:// location with a password: use storage_options for it")
        if scheme == "file":
            raise OptionError(f"{given}: files of another host are not read, expected file:///...")
        scheme = "s3" if scheme in _S3 else scheme
        if scheme == "s3" and not authority:
            raise OptionError(f"{given}: no bucket, expected s3://bucket/...")
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
