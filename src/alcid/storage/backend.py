"""What a storage asks of a file system; retries, counts of bytes and threads are not its matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from alcid.errors import FileGoneError
from alcid.storage.listing import Entry, is_hidden

__all__ = ["Backend", "Known", "Start", "below", "check_unchanged", "is_unchanged"]


class Known(NamedTuple):
    """What is known of a file, from a listing as a rule."""

    size: int | None = None
    version: str | None = None


class Start(NamedTuple):
    """The first bytes of a file, and how many it has."""

    size: int
    data: bytes


class Backend(Protocol):
    """A file system below one root. Paths are relative to the root, an empty one is the root.

    Errors are those of the file system; a missing file is a FileNotFoundError as far as possible.
    Each call counts its requests in the traffic of its storage.
    """

    gap: int
    """Bytes between two ranges that are cheaper to read than to ask again."""
    largest: int
    """Bytes of the longest read; longer ones are done in pieces, side by side."""
    remote: bool
    """Whether reads wait for a network, so that many should run at a time."""
    exclusive: bool
    """Whether it can see to it that of several that `put` the same name all but one fail."""

    def entries(self, under: str, *, hidden: bool) -> list[Entry]:
        """All files below a folder; none if it does not exist."""

    def stat(self, path: str) -> Known:
        """Size and version of a file."""

    def read(self, path: str, pieces: Sequence[tuple[int, int]], known: Known, /) -> list[bytes]:
        """The bytes of each (offset, length); fewer where the file or the answer ends early."""

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a whole file under a new name; FileExistsError if it is taken.

        With `exclusive` others may try to take the name at the same time: all but one fail.
        UnsupportedError if that cannot be seen to, though `exclusive` was said of the backend.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Write a whole file, whether there is one of that name or not."""

    def link(self, path: str, target: str) -> None:
        """Give a file a second name; on a disk FileExistsError if it is taken.

        Elsewhere it is copied by the server, over what has that name. The first name may be gone.
        """

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if it is not there."""

    def remove_folder(self, path: str) -> None:
        """Remove a folder whose files were removed, where folders are things of their own."""


def below(entries: Iterable[Entry], root: str, folder: str, *, hidden: bool) -> Iterator[Entry]:
    """Entries with full names, as those below `folder`, with paths relative to `root`."""
    prefix, start = f"{folder}/", len(root) + 1
    for name, size, version in entries:
        if name.startswith(prefix) and name[-1] != "/":
            inner = name[len(prefix) :]
            if hidden or not any(map(is_hidden, inner.split("/"))):
                yield name[start:], size, version


def is_unchanged(known: Known, found: Known) -> bool:
    """Whether what is found agrees with all that is known."""
    pairs = zip(known, found, strict=True)
    return all(one is None or other is None or one == other for one, other in pairs)


def check_unchanged(name: str, known: Known, found: Known) -> None:
    """Raise FileGoneError if a file is not the one that was listed."""
    if not is_unchanged(known, found):
        problem = "replaced since it was listed: size {}, version {}; expected {}, {}"
        raise FileGoneError(problem.format(*found, *known), file=name)
