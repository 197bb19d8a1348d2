"""Pages need no other files, and show their content as text."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser

from alcid._text import size_text
from alcid.inspect.page import (
    Markup,
    data,
    element,
    escape,
    fragment,
    page,
    script,
    section,
    style,
    table,
)


class Balanced(HTMLParser):
    """Fails if an element is not closed by its own name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, _: object) -> None:
        if tag != "meta":  # the only element here without an end
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_text_is_escaped_once() -> None:
    hostile = '<b onclick="x()">\'&amp;'
    assert escape(hostile) == "&lt;b onclick=&quot;x()&quot;&gt;&#x27;&amp;amp;"
    assert escape(escape(hostile)) == escape(hostile)
    shown = page(hostile, section(hostile, table([hostile], [[hostile]])), subtitle=hostile)
    assert "<b " not in shown
    document = Balanced(shown)
    assert document.texts.count(hostile) == 6  # title, heading, subtitle, section, head and cell


def test_attributes_are_escaped_and_left_out() -> None:
    assert element("i", title='"', hidden=True, id=None) == '<i title="&quot;" hidden></i>'
    assert element("meta", http_equiv="x") == '<meta http-equiv="x">'


def test_what_a_page_cannot_hold_is_shown_as_escapes() -> None:
    odd = "a\x00\x1b[31m\x9b\udcffü\n"
    shown = page(odd, element("i", odd, title=odd), data([odd]))
    assert shown.encode().count(b"a\\x00\\x1b[31m\\x9b\\udcff\xc3\xbc\n") == 4
    assert not set(shown) & set("\x00\x1b\udcff")
    inside = shown.partition('json">')[2].partition("</script>")[0]
    assert json.loads(inside) == [odd]


def test_cells_are_numbers_or_text() -> None:
    shown = table(["a", "b"], [[1_234_567, Markup("<b>x</b>")], [None, True]], numbers=[0])
    assert '<td class="number">1,234,567</td><td><b>x</b></td>' in shown
    assert '<td class="number"></td><td>True</td>' in shown


def test_data_does_not_end_its_script() -> None:
    content = {"</script>": ["<!--", "\u2028", "ü", 1.5, None]}
    shown = data(content)
    inside = re.fullmatch(r'<script type="application/json">(.*)</script>', shown, re.DOTALL)
    assert inside is not None
    assert "<" not in inside[1]
    assert json.loads(inside[1]) == content


def test_nothing_is_asked_of_a_network() -> None:
    shown = page("x", style("plan.css"), script("plan.js"))
    assert "default-src 'none'" in unescape(shown)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", shown))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, which nothing requests
    assert not re.search(r"\b(src|href)=|@import|url\(", shown)


def test_styles_and_scripts_are_small_and_keep_to_themselves() -> None:
    names = ("page.css", "plan.css", "plan.js")
    assert sum(len(style(name).encode()) for name in names) < 40_000
    for name in ("page.css", "plan.css"):
        rules = re.findall(r"([^{}]+)\{", re.sub(r"/\*.*?\*/", "", style(name), flags=re.DOTALL))
        for rule in rules:
            for selector in rule.replace("<style>", "").split(","):
                assert ".alcid" in selector or selector.strip().startswith("@media"), selector


def test_a_fragment_brings_its_style() -> None:
    shown = fragment(escape("x"))
    assert shown.startswith('<div class="alcid"><style>')
    Balanced(shown)


def test_sizes_have_two_digits() -> None:
    shown = {0: "0 B", 999: "999 B", 1000: "1.0 kB", 9949: "9.9 kB", 9951: "10 kB"}
    shown |= {999_499: "999 kB", 999_500: "1.0 MB", 5 * 10**15: "5000 TB"}
    assert {size: size_text(size) for size in shown} == shown
