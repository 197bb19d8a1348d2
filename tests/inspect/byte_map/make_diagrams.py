"""Draw the formats for the documents: a small file of each, made by the library.

python -m tests.inspect.byte_map.make_diagrams
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from alcid import (
    DeletionVector,
    DeletionVectorFile,
    FileIndex,
    HashIndex,
    ThetaSketch,
    puffin,
)
from alcid.formats.source import BytesSource, Section
from alcid.index.bundle import BundleWriter, FileEntry, PayloadKind
from alcid.inspect.byte_diagram import byte_diagram
from alcid.inspect.byte_map import Region, draw_index, map_bytes
from alcid.inspect.byte_map.bundle import blob_drawer
from alcid.types import DataType

FOLDER = Path(__file__).parents[3] / "docs" / "images"
CITIES = pa.table({"city": ["Graz", "Linz", "Graz", None, "Wien", "Graz"]})
LEVELS = pa.table({"level": pa.array([3, 1, None, -2, 3], pa.int32())})


def _payload(table: pa.Table, index_type: str, **options: str) -> bytes:
    """The index of the only column of a table, without its container."""
    (column,) = table.column_names
    prefix = f"file-index.{index_type}"
    given = {f"{prefix}.{column}.{name}": value for name, value in options.items()}
    index = FileIndex.build(table, {f"{prefix}.columns": column, **given})
    return index.container.section(index.entries[0]).read(0, index.entries[0].length)


def _index(table: pa.Table, index_type: str, **options: str) -> tuple[Region, bytes]:
    data = _payload(table, index_type, **options)
    data_type = DataType.from_arrow(table.schema.field(0).type)
    section = Section(BytesSource(data))
    return draw_index(index_type, section, f"{index_type} index", data_type), data


def _file(data: bytes, name: str, types: dict[str, DataType] | None = None) -> tuple[Region, bytes]:
    return map_bytes(BytesSource(data, name), types), data


def _file_index() -> tuple[Region, bytes]:
    prefix = "file-index.bloom-filter"
    options = {f"{prefix}.columns": "city", f"{prefix}.city.items": "10"}
    data = FileIndex.build(CITIES, options).to_bytes()
    return _file(data, "file index", {"city": DataType.parse("STRING")})


def _puffin() -> tuple[Region, bytes]:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        writer.add_deletion_vector(DeletionVector([2, 3], bits=64), "data-1.parquet")
    return _file(file.getvalue(), "Puffin file")


def _bundle() -> tuple[Region, bytes]:
    file = io.BytesIO()
    payload = _payload(CITIES, "bloom-filter", items="10")
    with BundleWriter(file) as writer:
        for name in ("a.parquet", "b.parquet"):
            row = writer.add_file(FileEntry(name, size=900, version="1", rows=6))
            writer.add(row, PayloadKind.index("city", "bloom-filter"), payload)
    source = BytesSource(file.getvalue(), "bundle")
    return map_bytes(source, draw_blob=blob_drawer(source)), source.data


SAMPLES: dict[str, Callable[[], tuple[Region, bytes]]] = {
    "file-index": _file_index,
    "bloom-filter": lambda: _index(CITIES, "bloom-filter", items="10"),
    "bitmap": lambda: _index(CITIES, "bitmap"),
    "range-bitmap": lambda: _index(CITIES, "range-bitmap"),
    "bsi": lambda: _index(LEVELS, "bsi"),
    "deletion-vector": lambda: _file(
        DeletionVectorFile.write(
            {"data-1.parquet": DeletionVector([2, 3, 9]), "data-2.parquet": DeletionVector([7])}
        ).data,
        "file of deletion vectors",
    ),
    "hash-index": lambda: _file(HashIndex([7, -1, 40, 3]).to_bytes(), "index-hashes"),
    "theta-sketch": lambda: _file(ThetaSketch().update(CITIES["city"]).to_bytes(), "theta sketch"),
    "puffin": _puffin,
    "bundle": _bundle,
}
"""What is drawn, by the name of its picture."""


def diagram(name: str) -> str:
    """The picture of a format."""
    return byte_diagram(*SAMPLES[name]())


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in SAMPLES:
        (FOLDER / f"{name}.svg").write_text(diagram(name), encoding="utf-8")
