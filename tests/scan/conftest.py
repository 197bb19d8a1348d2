"""The storages of tests/storage, for scans."""

from __future__ import annotations

from tests.storage.conftest import bucket, moto_port, open_s3, proxy, s3

__all__ = ["bucket", "moto_port", "open_s3", "proxy", "s3"]
