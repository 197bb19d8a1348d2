"""Iceberg's Puffin files: blobs of any kind, and a footer that says what they are.

    "PFA1" | blob | blob | ... | footer

Blobs stand back to back; the footer is described in `alcid.formats.puffin.footer`. The format has
no checksum: a blob is as safe as its own format makes it, or its zstd frame.

>>> import io
>>> file = io.BytesIO()
>>> with create(file) as writer:
...     blob = writer.add("greeting", b"hello", fields=[1], codec="zstd")
>>> with open(file) as reader:
...     [(blob.type, blob.fields, reader.read(blob)) for blob in reader.blobs]
[('greeting', (1,), b'hello')]
"""

from __future__ import annotations

from alcid.formats.puffin.footer import Blob
from alcid.formats.puffin.reader import PuffinReader, open  # noqa: A004  # used as puffin.open
from alcid.formats.puffin.writer import (
    DELETION_VECTOR,
    THETA_SKETCH,
    BlobStream,
    PuffinWriter,
    create,
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
