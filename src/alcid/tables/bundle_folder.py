"""The bundles of a table, as files in a folder.

    _alcid/20250801T093000.123456Z-5f1e0c7ab2d4.puffin

A name says when the bundle was written, so that names sort by age, and has a random end, so that no
two writers choose the same. A bundle never changes, and appears whole or not at all: writers need
no lock, and whoever removes a bundle, or all of them, only makes queries slower.
"""

from __future__ import annotations

import errno
import io
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from alcid.errors import (
    AlcidError,
    FileGoneError,
    FormatError,
    StorageError,
)
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    BundleWriter,
    open_bundles,
)
from alcid.storage import Listing, Storage

__all__ = [
    "FOLDER",
    "STATISTICS_PREFIX",
    "BundleFolder",
    "FolderBundles",
    "bundle_name",
    "new_name",
    "written_at",
]

FOLDER = "_alcid"
"""Where bundles lie in the folder of a table; Spark passes over such names."""

_TIME = "%Y%m%dT%H%M%S.%fZ"
_NAME = re.compile(r"(\d{8}T\d{6}\.\d{6}Z)-[0-9a-f]{12}\.puffin")
_TRIES = 3
_FORBIDDEN = errno.EACCES, errno.EPERM, errno.EROFS
_ELSEWHERE = (
    "where nothing may be written beside the data, indexes go into another folder: open the table"
    " with index_path=..., or --index-path"
)


def new_name() -> str:
    """A name for a bundle that is written now."""
    return f"{datetime.now(UTC).strftime(_TIME)}-{uuid.uuid4().hex[:12]}.puffin"


def written_at(name: str) -> datetime | None:
    """When the bundle of that name was written; None if it is no name of a bundle.

    >>> written_at("20250801T093000.123456Z-5f1e0c7ab2d4.puffin").isoformat()
    '2025-08-01T09:30:00.123456+00:00'
    """
    found = _NAME.fullmatch(name)
    try:
        return datetime.strptime(found[1], _TIME).replace(tzinfo=UTC) if found else None
    except ValueError:  # a month 13
        return None


@dataclass(frozen=True, slots=True, eq=False)
class FolderBundles:
    """What a folder holds, the oldest first."""

    names: tuple[str, ...]
    """All bundles."""
    bundles: tuple[Bundle, ...]
    """Those that can be read."""

    @property
    def readable(self) -> tuple[str, ...]:
        """The names of those that can be read."""
        return tuple(map(bundle_name, self.bundles))

    @property
    def current(self) -> tuple[Bundle, ...]:
        """Those that no other replaces."""
        replaced = self.replaced()
        return tuple(one for one in self.bundles if bundle_name(one) not in replaced)

    def against(
        self,
        listing: Listing,
        *,
        strict: bool = False,
        on_damage: Callable[[AlcidError], None] | None = None,
    ) -> BundleSet:
        """Those in use, held against the files of a table."""
        return BundleSet(
            self.current,
            listing.paths,
            listing.sizes,
            listing.versions,
            strict=strict,
            on_damage=on_damage,
        )

    def replaced(self, before: datetime | None = None) -> set[str]:
        """The bundles that others replace, which were written `before` some time."""
        return {
            name
            for bundle in self.bundles
            if before is None or _is_older(bundle_name(bundle), before)
            for name in bundle.replaces
        } & set(self.names)

    def unreadable(self) -> list[str]:
        """The bundles that cannot be read."""
        readable = set(self.readable)
        return [name for name in self.names if name not in readable]


def _is_forbidden(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and (
        error.errno in _FORBIDDEN
        or isinstance(error, PermissionError)
        or "ACCESS_DENIED" in str(error)
    )


def bundle_name(bundle: Bundle) -> str:
    """The name of a bundle in its folder."""
    return bundle.name.rpartition("/")[2]


def _is_older(name: str, moment: datetime) -> bool:
    at = written_at(name)
    return at is not None and at < moment


class BundleFolder:
    """Where the bundles of a table are kept."""

    def __init__(self, storage: Storage, under: str = "") -> None:
        """The folder `under` of a storage, which need not exist."""
        self.storage, self.under = storage, under

    def load(
        self, *, strict: bool = False, on_damage: Callable[[AlcidError], None] | None = None
    ) -> FolderBundles:
        """List and open the bundles; one that vanishes meanwhile was replaced, so: once more.

        Args:
            strict: Raise where one is damaged, in place of a warning.
            on_damage: Is called in place of the warning.

        Raises:
            FileGoneError: Bundles vanish again and again.
        """
        for tries in range(1, _TRIES + 1):
            listing = self.storage.list(self.under, suffix=".puffin")
            found = {
                name: self.storage.source(path, size)
                for path, size in zip(
                    listing.paths.to_pylist(), listing.sizes.tolist(), strict=True
                )
                if written_at(name := path.rpartition("/")[2]) and path == self.path(name)
            }
            try:
                opened = open_bundles(
                    found.values(),
                    strict=strict,
                    read_many=self.storage.read_ranges,
                    on_damage=on_damage,
                )
            except FileGoneError:
                if tries == _TRIES:
                    raise
            else:
                return FolderBundles(tuple(found), tuple(opened))
        raise AssertionError("the last try returns or raises")

    def is_damaged(self, name: str) -> bool:
        """Whether a bundle cannot be read, and that is not because it is of a later version."""
        try:
            Bundle.open(self.storage.source(self.path(name)))
        except FormatError:
            return True
        except (AlcidError, OSError):
            return False
        return False

    def put(self, data: bytes) -> str:
        """Write a bundle under a new name, and return that."""
        name = new_name()
        self.write(name, data)
        return name

    def write(self, name: str, data: bytes) -> None:
        """Write a file that has this name in the folder.

        Raises:
            StorageError: It cannot be written; where it may not, beside the data, there is a hint.
        """
        try:
            self.storage.put(self.path(name), data)
        except StorageError as error:
            if not (self.under and _is_forbidden(error.__cause__)):
                raise
            problem = f"{error.problem}; {_ELSEWHERE}"
            raise StorageError(problem, file=error.file, tries=error.tries) from error.__cause__

    def replace(self, names: Sequence[str]) -> None:
        """Say that bundles are not to be used any more, by a bundle that replaces them."""
        if names:
            data = io.BytesIO()
            BundleWriter(data, replaces=names).finish()
            self.put(data.getvalue())

    def remove(self, names: Iterable[str]) -> None:
        """Remove bundles; those that are not there are passed over."""
        self.storage.delete([self.path(name) for name in names])

    def path(self, name: str) -> str:
        """The path of a file of that name in the storage."""
        return f"{self.under}/{name}" if self.under else name


STATISTICS_PREFIX = "statistics-"
"""How the names of files of statistics begin; the rest is like the name of a bundle."""
