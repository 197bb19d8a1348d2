"""Draw the formats for the documents: a small file of each, made by the library.

python -m tests.inspect.byte_map.make_diagrams
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from alcid.inspect.byte_map import Region, draw_index, map_bytes
from alcid.inspect.byte_map.bundle import blob_drawer
from alcid.inspect.page import escape
from alcid.types import DataType

FOLDER = Path(__file__).parents[3] / "docs" / "images"
CITIES = pa.table({"city": ["Graz", "Linz", "Graz", None, "Wien", "Graz"]})
LEVELS = pa.table({"level": pa.array([3, 1, None, -2, 3], pa.int32())})

_WIDTH, _LINE = 800, 22
_OFFSET, _BYTES, _NAME, _VALUE = 44, 56, 258, 520
_BYTES_SHOWN = 8
_LETTER, _INDENT = 7.0, 14  # the width of a letter, and of a level
_STYLE = """
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1b1f23; }
.soft { fill: #57606a; } .group { font-weight: 600; } .paper { fill: #ffffff; }
.line { stroke: #d8dde2; } .box { fill-opacity: .32; }
.mark { fill: #d55e00; } .number { fill: #56b4e9; } .text { fill: #cc79a7; }
.key { fill: #009e73; } .rows { fill: #0072b2; } .check { fill: #e69f00; }
.data { fill: #f0e442; } .unused { fill: #aab2ba; } .damaged { fill: #a8290b; }
@media (prefers-color-scheme: dark) {
  text { fill: #e7eaed; } .soft { fill: #a3adb8; } .paper { fill: #14171a; }
  .line { stroke: #353c43; }
}"""


@dataclass(frozen=True, slots=True)
class _Line:
    region: Region
    level: int


def _payload(table: pa.Table, index_type: str, **options: str) -> bytes:
    """The index of the only column of a table, without its container."""
    (column,) = table.column_names
    prefix = f"file-index.{index_type}"
    settings = {f"{prefix}.{column}.{name}": value for name, value in options.items()}
    index = FileIndex.build(table, {f"{prefix}.columns": column, **settings})
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
"""What is drawn, by the name of the picture."""


def diagram(name: str) -> str:
    """The picture of a format."""
    return byte_diagram(*SAMPLES[name]())


def byte_diagram(region: Region, data: bytes) -> str:
    """An SVG with a line for each field: offset, bytes, name and value.

    Args:
        region: The file, small enough that each of its fields may have a line.
        data: Its bytes.
    """
    lines = [line for part in region.parts for line in _lines(part, 0)]
    height = _LINE * (len(lines) + 1) + 8
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(region.name)}: {len(data):,} bytes</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
        *_head(),
    ]
    for number, line in enumerate(lines, 1):
        drawn.extend(_draw(line, _LINE * number, data))
    return "\n".join((*drawn, "</svg>\n"))


def _lines(region: Region, level: int) -> Iterator[_Line]:
    yield _Line(region, level)
    for part in region.parts:
        yield from _lines(part, level + 1)


def _head() -> Iterator[str]:
    parts = ((_OFFSET, "offset", "end"), (_BYTES, "bytes", "start"))
    for x, text, anchor in (*parts, (_NAME, "field", "start"), (_VALUE, "value", "start")):
        yield f'<text class="soft" x="{x}" y="15" text-anchor="{anchor}">{text}</text>'


def _draw(line: _Line, top: int, data: bytes) -> Iterator[str]:
    region, baseline = line.region, top + 15
    name_at = _NAME + _INDENT * line.level
    yield f'<line class="line" x1="0" x2="{_WIDTH}" y1="{top}" y2="{top}"/>'
    attributes = f'x="{_OFFSET}" y="{baseline}" text-anchor="end"'
    yield f'<text class="soft" {attributes}>{region.offset}</text>'
    group = ""
    if region.parts:
        group = ' class="group"'
        size = "1 byte" if region.length == 1 else f"{region.length:,} bytes"
        yield f'<text class="soft" x="{_BYTES}" y="{baseline}">{size}</text>'
    else:
        shown = _hexadecimal(data[region.offset : region.offset + region.length])
        width = round(_LETTER * len(shown)) + 10
        yield (
            f'<rect class="box {region.kind}" x="{_BYTES - 4}" y="{top + 3}" '
            f'width="{width}" height="{_LINE - 5}" rx="2"/>'
        )
        yield f'<text x="{_BYTES}" y="{baseline}">{shown}</text>'
    name = _cut(region.name, _VALUE - name_at - 8)
    yield f'<text{group} x="{name_at}" y="{baseline}">{escape(name)}</text>'
    if region.note:
        value = _cut(region.note, _WIDTH - _VALUE - 8)
        yield f'<text class="soft" x="{_VALUE}" y="{baseline}">{escape(value)}</text>'


def _hexadecimal(data: bytes) -> str:
    shown = data[:_BYTES_SHOWN].hex(" ")
    return shown if len(data) <= _BYTES_SHOWN else f"{shown} ..."


def _cut(text: str, width: float) -> str:
    """As much of a text as fits."""
    letters = int(width / _LETTER)
    return text if len(text) <= letters else f"{text[: letters - 3]}..."


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in SAMPLES:
        (FOLDER / f"{name}.svg").write_text(diagram(name), encoding="utf-8")
