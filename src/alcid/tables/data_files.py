"""Which files of a folder are its data: Parquet files by their names.

`.parquet`, `.parq` and `.pq` in any case, and names without a dot, as Hive and Trino write them.
All else that lies about (`.crc`, `.json`, `.csv`) is left alone, and so is what Spark hides. A name
without a dot on a file without bytes is a marker of a folder in an object store, and no data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.storage import Listing, Storage

__all__ = ["list_data_files", "take_files"]

_SUFFIX = r"\.(parquet|parq|pq)$"
_NO_DOT = r"(^|/)[^/.]+$"


def list_data_files(storage: Storage) -> Listing:
    """The data files of a folder, sorted by path.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> storage = Storage.open(folder.name)
    >>> for name in ("dt=1/b.parquet", "dt=1/.b.parquet.crc", "000000_0", "_SUCCESS", "notes.txt"):
    ...     storage.put(name, b"any bytes")
    >>> list_data_files(storage).paths.to_pylist()
    ['000000_0', 'dt=1/b.parquet']
    >>> folder.cleanup()
    """
    listing = storage.list()
    named = pc.match_substring_regex(listing.paths, _SUFFIX, ignore_case=True)
    bare = pc.match_substring_regex(listing.paths, _NO_DOT)
    chosen = pc.or_(named, pc.and_(bare, pa.array(listing.sizes > 0)))
    return take_files(listing, np.flatnonzero(chosen.to_numpy(zero_copy_only=False)))


def take_files(listing: Listing, places: npt.NDArray[Any]) -> Listing:
    """Some of the files, by their places."""
    taken = pa.array(places)
    return Listing(listing.paths.take(taken), listing.sizes[places], listing.versions.take(taken))
