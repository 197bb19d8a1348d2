from __future__ import annotations

import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import alcid
from alcid import (
    DeletionVector,
    FileIndex,
    HashIndex,
    ThetaSketch,
)
from alcid.inspect import to_html
from alcid.inspect.byte_bar import byte_strip, distribution, histogram
from alcid.inspect.byte_map import Region
from alcid.inspect.display import fragment_of
from alcid.tables.base import Table
from alcid.tables.reports import BuildReport, Report
from tests.inspect.byte_map.make_diagrams import byte_diagram

HEAD = Region(
    "head",
    0,
    5,
    "group",
    parts=(Region("version", 0, 1, "mark", "1"), Region("<rows>", 1, 4, "number", "7 & more")),
)
FILE = Region("a file", 0, 9, "group", parts=(HEAD, Region("CRC-32", 5, 4, "check", "cafe")))


class Tags(HTMLParser):
    """The elements of a page: opening tags and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append((tag, dict(attrs)))


def test_every_region_has_a_box_that_says_what_it_is_and_leads_to_its_line() -> None:
    tags = Tags(byte_strip(FILE, anchor="f")).opened
    boxes = [attributes for tag, attributes in tags if tag == "a"]
    assert [box["aria-label"] for box in boxes] == [
        "a file, 9 bytes from 0",
        "head, 5 bytes from 0",
        "version, 1 byte from 0: 1",
        "<rows>, 4 bytes from 1: 7 & more",
        "CRC-32, 4 bytes from 5: cafe",
    ]
    lines = [attributes["id"] for _, attributes in tags if attributes.get("id")]
    assert [box["href"] for box in boxes] == [f"#{line}" for line in lines]
    assert len(set(lines)) == 5


def test_boxes_are_as_wide_as_their_bytes() -> None:
    tags = Tags(byte_strip(FILE)).opened
    columns = [a["style"] for _, a in tags if a.get("class") == "bytes-column"]
    assert columns == [f"flex-grow:{size}" for size in (9, 5, 1, 4, 4)]


def test_the_legend_names_the_kinds_that_occur() -> None:
    (legend,) = re.findall(r'<p class="bytes-legend note">(.*?)</p>', byte_strip(FILE))
    assert re.findall(r"</i>([^<]*)", legend) == [
        "magic, version, flags",
        "counts and places",
        "checksums",
    ]


def _nested(depth: int, width: int, offset: int = 0) -> Region:
    if not depth:
        return Region("leaf", offset, 1, "rows")
    size = width ** (depth - 1)
    parts = tuple(_nested(depth - 1, width, offset + size * n) for n in range(width))
    return Region("level", offset, size * width, "group", parts=parts)


def test_a_bar_has_only_as_many_levels_as_can_be_distinguished() -> None:
    tags = Tags(byte_strip(_nested(4, 10))).opened
    boxes = [attributes["class"] for tag, attributes in tags if tag == "a"]
    assert len(boxes) == 1 + 10 + 100
    assert boxes[-1] == "bytes-box bytes-rows"  # by the purpose of its bytes
    assert sum("id" in attributes for _, attributes in tags) == 1 + 10 + 100 + 1000


def test_a_diagram_has_a_line_for_each_field() -> None:
    data = bytes.fromhex("01 00000007 0000cafe")
    svg = ElementTree.fromstring(byte_diagram(FILE, data))
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == [
        *("offset", "bytes", "field", "value"),
        *("0", "5 bytes", "head"),
        *("0", "01", "version", "1"),
        *("1", "00 00 00 07", "<rows>", "7 & more"),
        *("5", "00 00 ca fe", "CRC-32", "cafe"),
    ]


def test_a_diagram_cuts_what_has_no_room() -> None:
    long = Region("n" * 60, 0, 20, "data", "v" * 60)
    svg = byte_diagram(Region("a file", 0, 20, "group", parts=(long,)), bytes(20))
    assert "00 00 00 00 00 00 00 00 ...<" in svg
    (name,) = re.findall("n{9,}[.]{3}", svg)
    (value,) = re.findall("v{9,}[.]{3}", svg)
    assert (len(name), len(value)) == (36, 38)


def test_bars_are_as_long_as_counts() -> None:
    drawn = histogram(["'a<b'", "'c'"], [30, 1200], what="rows").partition("</style>")[2]
    assert re.findall(r"width:([^%]*)%", drawn) == ["2.5", "100"]
    assert "&#x27;a&lt;b&#x27;" in drawn
    assert re.findall(r'<td class="number">([^<]*)', drawn) == ["30", "1,200"]


def test_no_bars_are_no_error() -> None:
    assert "<tbody></tbody>" in histogram([], [])


@pytest.mark.parametrize(
    ("least", "greatest", "numbers", "labels", "counts"),
    [
        (0, 9, [0, 4, 5, 9], ["0 to 4", "5 to 9"], ["2", "2"]),
        (0, 0, [0], ["0 to 0"], ["1"]),
        (-(1 << 31), (1 << 31) - 1, [-1, 5, 6], ["-2,147,483,648 to -1", "0 to"], ["1", "2"]),
        (0, 1 << 62, [1 << 62], ["0 to", "2,305,843,009,213,693,953 to"], ["0", "1"]),
    ],
    ids=["even", "one", "negative", "beyond-floats"],
)
def test_numbers_are_counted_in_ranges_of_one_width(
    least: int, greatest: int, numbers: list[int], labels: list[str], counts: list[str]
) -> None:
    drawn = distribution(np.array(numbers), least, greatest, bins=2)
    labelled = re.findall(r'<th scope="row">([^<]*)', drawn)
    assert [label.startswith(said) for label, said in zip(labelled, labels, strict=True)] == [
        True for _ in labels
    ]
    assert re.findall(r'<td class="number">([^<]*)', drawn) == counts


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (DeletionVector([3, 9]), "Deletion vector of 32 bits: 2 rows from 3 to 9."),
        (DeletionVector(), "Deletion vector of 32 bits: no row is deleted."),
        (HashIndex([1, 2]), "Hash index of 2 keys"),
        (HashIndex(), "Hash index of 0 keys"),
        (ThetaSketch().update(pa.array(["a", "b"])), "Theta sketch of 2 distinct values"),
        (ThetaSketch(), "Theta sketch of 0 distinct values"),
        (
            FileIndex.build(pa.table({"n": [1, 2]}), {"file-index.bsi.columns": "n"}),
            "Indexes of &lt;built&gt;",
        ),
    ],
    ids=["vector", "no-vector", "hashes", "no-hash", "sketch", "no-sketch", "index"],
)
def test_notebooks_show_what_it_is(value: object, said: str) -> None:
    shown = fragment_of(value)
    assert said in shown
    assert shown.startswith('<div class="alcid">')
    assert f"{said}" in to_html(value)


def test_an_index_whose_file_was_closed_shows_what_is_known(tmp_path: Path) -> None:
    file = tmp_path / "a.index"
    built = FileIndex.build(pa.table({"n": [1, 2]}), {"file-index.bsi.columns": "n"})
    file.write_bytes(built.to_bytes())
    with FileIndex.open(file, {"n": "BIGINT"}) as index:
        assert "bytes-bar" in fragment_of(index)
    shown = fragment_of(index)
    assert "<td>BIGINT</td>" in shown
    assert "bytes-bar" not in shown


class FakeFormatter:
    """IPython's formatter for HTML, as far as types are registered there."""

    def __init__(self) -> None:
        self.functions: dict[type, Callable[[object], str]] = {}

    def for_type(self, shown_type: type, function: Callable[[object], str]) -> None:
        self.functions[shown_type] = function


def test_importing_in_a_notebook_registers_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    formatter = FakeFormatter()
    display = SimpleNamespace(formatters={"text/html": formatter})
    shell = SimpleNamespace(display_formatter=display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    alcid.inspect.register_with_ipython()
    assert formatter.functions.keys() >= {DeletionVector, FileIndex, Table, Report}
    assert issubclass(BuildReport, Report)  # IPython looks for base classes, too
    assert object not in formatter.functions
    vector = DeletionVector([3])
    assert formatter.functions[DeletionVector](vector) == fragment_of(vector)


def test_importing_outside_a_notebook_registers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    alcid.inspect.register_with_ipython()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    alcid.inspect.register_with_ipython()
