"""Drawings of bytes: a file as a bar of its regions with a list of them, and histograms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from alcid.inspect.byte_map.regions import Region
from alcid.inspect.page import Markup, element, style

_MAX_BOXES = 120
_MAX_LINES = 4000
_MAX_DEPTH = 12
_KINDS = {
    "mark": "magic, version, flags",
    "number": "counts and places",
    "text": "text",
    "key": "values",
    "rows": "rows",
    "check": "checksums",
    "data": "other data",
    "unused": "unused",
    "damaged": "damaged",
}
"""The names of region kinds in the legend."""


def byte_strip(region: Region, *, anchor: str = "byte") -> Markup:
    """A file as a bar with nested regions below each other, and a list of all regions.

    The width of a box is proportional to its bytes, with a minimum. It shows its description when
    it is hovered or focused, and links to its line in the list. Each strip on a page needs its own
    `anchor`, with which the ids of lines begin.
    """
    depth = _depth(region, _MAX_BOXES)
    listed = _depth(region, _MAX_LINES)
    bar = element("div", _column(region, depth, anchor, 0), class_="bytes-bar")
    hint = element("p", "Point at a box, or go to it with the tab key.", class_="bytes-hint note")
    figure = element(
        "figure", element("div", bar, class_="wide"), hint, class_="bytes", aria_label="the bytes"
    )
    heads = (
        element("span", head, class_="number" if head in ("offset", "bytes") else None)
        for head in ("offset", "bytes", "what", "value")
    )
    top = element("div", *heads, class_="bytes-line bytes-head")
    lines = element("div", top, _line(region, listed, anchor, 0), class_="bytes-list")
    return Markup(style("bytes.css") + figure + _legend(region) + lines)


def _depth(region: Region, limit: int) -> int:
    """The number of levels below a region with at most `limit` regions in total."""
    total, level = 1, [region]
    for depth in range(_MAX_DEPTH):
        level = [part for parent in level for part in parent.parts]
        total += len(level)
        if not level or total > limit:
            return depth
    return _MAX_DEPTH


def _about(region: Region) -> str:
    """The description of a region."""
    size = "1 byte" if region.length == 1 else f"{region.length:,} bytes"
    note = f": {region.note}" if region.note else ""
    return f"{region.name}, {size} from {region.offset:,}{note}"


def _column(region: Region, depth: int, anchor: str, level: int) -> Markup:
    """The box of a region, and below it those of its parts."""
    kind = region.kind if depth else _main_kind(region)
    box = element(
        "a",
        element("span", region.name),
        class_=f"bytes-box bytes-{kind}",
        href=f"#{_name(region, anchor, level)}",
        aria_label=_about(region),
    )
    grow = f"flex-grow:{region.length}"
    if not depth or not region.parts:
        return element("div", box, class_="bytes-column", style=grow)
    columns = (_column(part, depth - 1, anchor, level + 1) for part in region.parts)
    row = element("div", *columns, class_="bytes-row")
    return element("div", box, row, class_="bytes-column", style=grow)


def _name(region: Region, anchor: str, level: int) -> str:
    """The id of a line; the level distinguishes a region from its first part."""
    return f"{anchor}-{level}-{region.offset}"


def _line(region: Region, depth: int, anchor: str, level: int) -> Markup:
    """The line of a region in the list, which opens to those of its parts."""
    cells = (
        element("span", f"{region.offset:,}", class_="number"),
        element("span", f"{region.length:,}", class_="number"),
        element(
            "span",
            element("i", class_=f"bytes-swatch bytes-{region.kind}"),
            region.name,
            class_="bytes-name",
        ),
        element("span", region.note, class_="note"),
    )
    name = _name(region, anchor, level)
    indent = f"--level:{level}"
    if not depth or not region.parts:
        return element("div", *cells, class_="bytes-line", id=name, style=indent)
    return element(
        "details",
        element("summary", *cells, class_="bytes-line", style=indent),
        *(_line(part, depth - 1, anchor, level + 1) for part in region.parts),
        id=name,
        open=level == 0,
    )


def _main_kind(region: Region) -> str:
    """The kind of the largest leaf of a region."""
    while region.parts:
        region = max(region.parts, key=lambda part: part.length)
    return region.kind


def _legend(region: Region) -> Markup:
    """The colours that occur."""
    kinds = set(_kinds(region))
    items = (
        element("span", element("i", class_=f"bytes-swatch bytes-{kind}"), text)
        for kind, text in _KINDS.items()
        if kind in kinds
    )
    return element("p", *items, class_="bytes-legend note")


def _kinds(region: Region) -> Iterator[str]:
    if not region.parts:
        yield region.kind
    for part in region.parts:
        yield from _kinds(part)


def histogram(values: Sequence[object], counts: Sequence[int], *, what: str = "rows") -> Markup:
    """A bar for each value, with the value and its count.

    All values are drawn; group them first if there are many.

    >>> "Graz" in histogram(["Graz", "Linz"], [3, 1])
    True
    """
    largest = max(counts, default=0) or 1
    lines = (
        element(
            "tr",
            element("th", value, scope="row"),
            element(
                "td", element("div", style=f"width:{100 * count / largest:.4g}%"), class_="bar"
            ),
            element("td", f"{count:,}", class_="number"),
        )
        for value, count in zip(values, counts, strict=True)
    )
    head = element(
        "thead",
        element(
            "tr",
            element("th", "value", scope="col"),
            element("th", ""),
            element("th", what, scope="col", class_="number"),
        ),
    )
    table = element("table", head, element("tbody", *lines), class_="bytes-bars")
    return Markup(style("bytes.css") + element("div", table, class_="wide"))


def distribution(
    numbers: npt.NDArray[Any], minimum: int, maximum: int, *, what: str = "rows", bins: int = 16
) -> Markup:
    """A histogram of integers in ranges of equal width, from the minimum on.

    >>> "0 to 4" in distribution(np.array([1, 2, 7]), 0, 9, bins=2)
    True
    """
    width = -(-(maximum - minimum + 1) // bins)
    starts = range(minimum, maximum + 1, width)
    positions = (numbers.astype(np.float64) - minimum) // width  # precise enough beyond 2^53
    counts = np.bincount(
        np.clip(positions, 0, len(starts) - 1).astype(np.int64), minlength=len(starts)
    )
    labels = [f"{start:,} to {min(start + width - 1, maximum):,}" for start in starts]
    return histogram(labels, counts.tolist(), what=what)
