"""The files of a storage, as columns: ten thousand files are three arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from alcid.errors import StorageError

__all__ = ["Entry", "Listing", "is_hidden", "listing_of"]

Entry = tuple[str, int, str | None]
"""Path, size and version of one file."""


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """Files under a folder, sorted by path."""

    paths: Any
    """A string array; relative to the storage, not to the folder that was listed."""
    sizes: NDArray[np.int64]
    versions: Any
    """A string array. A file whose size and version are the same has not changed.

    It is text, because an ETag is: the ETag in its quotes where the file system lists one, else the
    time of the last change in nanoseconds, as digits; the quotes keep the two apart. Null where a
    file system gives neither, and then nothing may be taken for unchanged.
    """

    def __len__(self) -> int:
        return len(self.sizes)


def listing_of(entries: Iterable[Entry], *, suffix: str | None, location: str) -> Listing:
    """The entries whose path ends with `suffix`, as columns."""
    rows = sorted(one for one in entries if suffix is None or one[0].endswith(suffix))
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
