"""Iceberg's Puffin files, read and written: see `alcid.formats.puffin`."""

from __future__ import annotations

from alcid.formats.puffin import (
    DELETION_VECTOR,
    THETA_SKETCH,
    Blob,
    BlobStream,
    PuffinReader,
    PuffinWriter,
    create,
    open,  # noqa: A004  # used as puffin.open
)

__all__ = [
    "DELETION_VECTOR",
    "THETA_SKETCH",
    "Blob",
    "BlobStream",
    "PuffinReader",
    "PuffinWriter",
    "create",
    "open",
]
