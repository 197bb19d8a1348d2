"""The storages of tests/storage, for the tests of folders."""

from __future__ import annotations

from tests.storage.conftest import bucket, moto_port, storage

__all__ = ["bucket", "moto_port", "storage"]
