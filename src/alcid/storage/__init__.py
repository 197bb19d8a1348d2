"""Files wherever they lie: on a disk, in S3, in whatever fsspec knows.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> storage = Storage.open(folder.name)
>>> storage.put("dt=1/a.bin", b"0123456789")
>>> storage.list().paths.to_pylist()
['dt=1/a.bin']
>>> storage.source("dt=1/a.bin").read_ranges([(8, 2), (0, 3)])
[b'89', b'012']
>>> folder.cleanup()
"""

from __future__ import annotations

from alcid.storage.backend import Listing, Start
from alcid.storage.ranges import Traffic, metered
from alcid.storage.retry import Retry
from alcid.storage.storage import Storage, StorageSource

__all__ = ["Listing", "Retry", "Start", "Storage", "StorageSource", "Traffic", "metered"]
