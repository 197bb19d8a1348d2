"""Files on a disk, in S3, or in whatever fsspec knows.

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

from alcid.storage.backend import FileHead, Listing
from alcid.storage.new_file import NewFile
from alcid.storage.retries import Retry, retry
from alcid.storage.storage import Storage, StorageSource
from alcid.storage.traffic import Meter, Traffic

__all__ = [
    "FileHead",
    "Listing",
    "Meter",
    "NewFile",
    "Retry",
    "Storage",
    "StorageSource",
    "Traffic",
    "retry",
]
