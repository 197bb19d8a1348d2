"""Self-contained HTML: a page for a file, a fragment for a notebook.

Style sheets and scripts are files of this package that are copied into the HTML, so that nothing is
loaded over the network:

```text
page      <!doctype html> ... <style> ... <main class="alcid"> parts </main>
fragment  <div class="alcid"> <style> ... </style> parts </div>
```
"""

from __future__ import annotations

import html
import json
from collections.abc import Collection, Sequence
from functools import cache
from importlib import resources

# Nothing may be loaded, whatever a name or a value contains.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"
}
_VOID = frozenset({"br", "col", "hr", "img", "input", "meta"})


class Markup(str):
    """Text that is already HTML; any other text is escaped in a page."""

    __slots__ = ()


def escape(text: object) -> Markup:
    """Escape text for HTML; markup is returned unchanged.

    >>> escape("a < b"), escape(escape("a < b"))
    ('a &lt; b', 'a &lt; b')
    """
    return text if isinstance(text, Markup) else Markup(html.escape(_legible(str(text))))


def _legible(text: str) -> str:
    r"""Text with control characters and lone surrogates escaped.

    >>> _legible("a\x00\udcff")
    'a\\x00\\udcff'
    """
    if text.isprintable():
        return text
    return text.translate(_CONTROLS).encode("utf-8", "backslashreplace").decode()


def element(tag: str, *parts: object, **attributes: object) -> Markup:
    """An element; parts that are not markup are escaped.

    A trailing `_` of an attribute is dropped, other `_` become `-`; None and False leave it out,
    True gives it no value.

    >>> element("p", "1 < 2", class_="note", aria_label="so", hidden=False)
    '<p class="note" aria-label="so">1 &lt; 2</p>'
    """
    pairs = (
        (name.rstrip("_").replace("_", "-"), value)
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    attributes_text = "".join(
        f" {name}" if value is True else f' {name}="{html.escape(_legible(str(value)))}"'
        for name, value in pairs
    )
    if tag in _VOID:
        return Markup(f"<{tag}{attributes_text}>")
    return Markup(f"<{tag}{attributes_text}>{''.join(map(escape, parts))}</{tag}>")


def section(heading: str, *parts: Markup) -> Markup:
    """Parts below a heading.

    >>> section("Files", escape("none"))
    '<section><h2>Files</h2>none</section>'
    """
    return element("section", element("h2", heading), *parts)


def table(
    head: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: Collection[int] = ()
) -> Markup:
    """A table; the columns in `numbers` are aligned to the right, in tabular digits.

    Integers get thousands separators, and None is an empty cell.

    >>> table(["name", "rows"], [["a", 1200]], numbers=[1])
    '<div class="wide"><table><thead><tr><th scope="col">name</th><th scope="col" class="number">...
    """

    def line(cells: Sequence[object], tag: str, scope: str | None = None) -> Markup:
        return element(
            "tr",
            *(
                element(tag, _cell(cell), scope=scope, class_="number" if at in numbers else None)
                for at, cell in enumerate(cells)
            ),
        )

    body = element("tbody", *(line(row, "td") for row in rows))
    whole = element("table", element("thead", line(head, "th", "col")), body)
    return element("div", whole, class_="wide")


def _cell(value: object) -> object:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value


def data(value: object) -> Markup:
    r"""Plain data for a script, as JSON that cannot break out of its element.

    >>> data({"name": "</script>"})
    '<script type="application/json">{"name":"\\u003c/script>"}</script>'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c").encode("utf-8", "backslashreplace").decode()
    return element("script", Markup(text), type="application/json")


def style(name: str, package: str = "alcid.inspect") -> Markup:
    """A style sheet, of this package or of another."""
    return element("style", Markup(_asset(name, package)))


def script(name: str) -> Markup:
    """A script of this package; it goes after the elements that it works on."""
    return element("script", Markup(_asset(name)))


@cache
def _asset(name: str, package: str = "alcid.inspect") -> str:
    return resources.files(package).joinpath(name).read_text("utf-8").strip()


def page(title: str, *parts: Markup, subtitle: str = "") -> str:
    """A whole document."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", title),
        style("page.css"),
    )
    below = [element("p", subtitle, class_="subtitle")] if subtitle else []
    top = element("header", element("h1", title), *below)
    body = element("body", element("main", top, *parts, class_="alcid"))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def fragment(*parts: Markup) -> str:
    """Parts with their style, for the output of a notebook."""
    return element("div", style("page.css"), *parts, class_="alcid")
