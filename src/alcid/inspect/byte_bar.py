"""Bytes drawn: a file as a bar cut into its regions, and the list of these; bars of counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from alcid.inspect.byte_map.regions import Region
from alcid.inspect.page import Markup, element, style

__all__ = ["byte_strip", "distribution", "histogram"]

_MOST_BOXES = 120
_MOST_LINES = 4000
_DEEPEST = 12
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
"""What the legend calls the kinds of regions that a colour stands for."""


def byte_strip(region: Region, *, anchor: str = "byte") -> Markup:
    """A file as a bar, its regions below each other as they contain each other, and a list of all.

    A box is as wide as its share of the bytes, and never too small to be met. It says what it is
    when it is pointed at or has the focus, and leads to its line in the list.

    Args:
        region: The whole file.
        anchor: How the names of the lines begin; two strips on one page need two of them.
    """
    depth = _depth(region, _MOST_BOXES)
    listed = _depth(region, _MOST_LINES)
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


def _depth(region: Region, most: int) -> int:
    """How many levels below a region have no more regions together than `most`."""
    total, level = 1, [region]
    for depth in range(_DEEPEST):
        level = [part for one in level for part in one.parts]
        total += len(level)
        if not level or total > most:
            return depth
    return _DEEPEST


def _about(region: Region) -> str:
    """What is told of a region at its box."""
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
    """The name of a line; a region and its first part begin at the same byte."""
    return f"{anchor}-{level}-{region.offset}"


def _line(region: Region, depth: int, anchor: str, level: int) -> Markup:
    """The line of a region in the list, and if it is opened those of its parts."""
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
    """What most bytes of a region are for."""
    while region.parts:
        region = max(region.parts, key=lambda part: part.length)
    return region.kind


def _legend(region: Region) -> Markup:
    """The colours that occur."""
    found = set(_kinds(region))
    items = (
        element("span", element("i", class_=f"bytes-swatch bytes-{kind}"), text)
        for kind, text in _KINDS.items()
        if kind in found
    )
    return element("p", *items, class_="bytes-legend note")


def _kinds(region: Region) -> Iterator[str]:
    if not region.parts:
        yield region.kind
    for part in region.parts:
        yield from _kinds(part)


def histogram(values: Sequence[object], counts: Sequence[int], *, what: str = "rows") -> Markup:
    """A bar for each value, as long as its count; both stand beside it.

    It draws all that it is given: what are many values is put together before.

    >>> "Graz" in histogram(["Graz", "Linz"], [3, 1])
    True
    """
    most = max(counts, default=0) or 1
    lines = (
        element(
            "tr",
            element("th", value, scope="row"),
            element("td", element("div", style=f"width:{100 * count / most:.4g}%"), class_="bar"),
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
    numbers: npt.NDArray[Any], least: int, greatest: int, *, what: str = "rows", bins: int = 16
) -> Markup:
    """How many of some integers lie in each of a few ranges of the same width, from the least on.

    >>> "0 to 4" in distribution(np.array([1, 2, 7]), 0, 9, bins=2)
    True
    """
    width = -(-(greatest - least + 1) // bins)
    starts = range(least, greatest + 1, width)
    places = (numbers.astype(np.float64) - least) // width  # beyond 2^53 near enough
    counts = np.bincount(
        np.clip(places, 0, len(starts) - 1).astype(np.int64), minlength=len(starts)
    )
    labels = [f"{start:,} to {min(start + width - 1, greatest):,}" for start in starts]
    return histogram(labels, counts.tolist(), what=what)
