"""Opens a hostile file according to its extension, with every question its format allows."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from alcid import (
    DeletionVector,
    DeletionVectorFile,
    FileIndex,
    ThetaSketch,
    col,
    puffin,
)
from alcid.cli import main
from alcid.formats.file_index.container import write_container
from alcid.formats.source import BytesSource
from alcid.index.bundle import Bundle, FileTable
from alcid.tables.iceberg.metadata.table_metadata import TableMetadata
from alcid.tables.paimon.metadata.manifest import read_manifest, read_manifest_list
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.snapshot import Snapshot
from alcid.tables.paimon.metadata.table_state import read_index_manifest

__all__ = ["OPENERS", "ending"]

NAME = "bad"
"""What errors call the content."""
_KEYS = list(range(0, 1999, 2))


def ending(name: str) -> str:
    """Chooses the function that opens a file."""
    return name.rpartition(".")[2]


def _ask_index(index_type: str, data: bytes) -> None:
    container = write_container({("c", index_type): data})
    _ask_container(container)


def _ask_container(data: bytes) -> None:
    index = FileIndex.from_bytes(data, {"c": "INT"}, strict=True, name=NAME)
    column = col("c")
    for question in (column == 7, column.isin(_KEYS), column > 7, column.is_null()):
        index.evaluate(question)
    index.top_n("c", 3)


def _read_puffin(data: bytes) -> None:
    with puffin.open(io.BytesIO(data)) as reader:
        for blob in reader.blobs:
            reader.read(blob)


def _read_bundle(data: bytes) -> None:
    bundle = Bundle.open(BytesSource(data, NAME))
    for row in range(len(bundle.files)):
        for kind in bundle.kinds:
            bundle.read(kind, row)


def _read_vectors(data: bytes) -> None:
    list(DeletionVectorFile.from_bytes(data, name=NAME).scan())


def _inspect_page(data: bytes) -> None:
    """Draw a page of a file index, as `alcid inspect --html` does."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        path = Path(folder, "bad.index")
        path.write_bytes(data)
        page = f"{folder}/page.html"
        assert main(["inspect", str(path), "--type", "c=INT", "--html", page]) == 0


OPENERS: dict[str, Callable[[bytes], Any]] = {
    **{
        kind: partial(_ask_index, kind)
        for kind in ("bitmap", "bloom-filter", "bsi", "range-bitmap")
    },
    "index": _ask_container,
    "page": _inspect_page,
    "puffin": _read_puffin,
    "bundle": _read_bundle,
    "files": partial(FileTable.from_bytes, name=NAME),
    "vector": partial(DeletionVector.from_bytes, name=NAME),
    "vectors": _read_vectors,
    "theta": partial(ThetaSketch.from_bytes, name=NAME),
    "manifest": partial(read_manifest, file=NAME),
    "manifests": partial(read_manifest_list, file=NAME),
    "indexes": partial(read_index_manifest, file=NAME),
    "schema": partial(TableSchema.parse, file=NAME),
    "snapshot": partial(Snapshot.parse, file=NAME),
    "metadata": partial(TableMetadata.from_json, name=NAME),
}
"""By ending: of a `page` the page is drawn, `files` is the table of files of a bundle, `manifests`
a manifest list, `indexes` an index manifest, `metadata` an Iceberg table's."""
