"""The bytes of a small file as a drawing for documents: a line for each field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from alcid.inspect.byte_bar import Drawn
from alcid.inspect.page import escape

__all__ = ["byte_diagram"]

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
    region: Drawn
    level: int


def byte_diagram(region: Drawn, data: bytes) -> str:
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


def _lines(region: Drawn, level: int) -> Iterator[_Line]:
    yield _Line(region, level)
    for part in region.parts:
        yield from _lines(part, level + 1)


def _head() -> Iterator[str]:
    places = ((_OFFSET, "offset", "end"), (_BYTES, "bytes", "start"))
    for x, text, anchor in (*places, (_NAME, "field", "start"), (_VALUE, "value", "start")):
        yield f'<text class="soft" x="{x}" y="15" text-anchor="{anchor}">{text}</text>'


def _draw(line: _Line, top: int, data: bytes) -> Iterator[str]:
    region, baseline = line.region, top + 15
    name_at = _NAME + _INDENT * line.level
    yield f'<line class="line" x1="0" x2="{_WIDTH}" y1="{top}" y2="{top}"/>'
    place = f'x="{_OFFSET}" y="{baseline}" text-anchor="end"'
    yield f'<text class="soft" {place}>{region.offset}</text>'
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
    """As much of a text as has room."""
    letters = int(width / _LETTER)
    return text if len(text) <= letters else f"{text[: letters - 3]}..."
