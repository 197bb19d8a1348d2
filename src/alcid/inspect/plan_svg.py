"""A plan as one picture for documents: all files as cells, then those that are read, cut up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from alcid._text import count_text
from alcid.inspect.page import Markup, element
from alcid.inspect.plan import READ, FileCut, PlanFiles, plan_sentence

__all__ = ["plan_svg"]

_WIDTH, _LEFT = 1000, 24
_INNER = _WIDTH - 2 * _LEFT
_LABEL = 360  # where the bars of single files begin
_SHOWN = 8  # files that are read
# The colours of `page.css`: a picture in a document does not see the style of the page around it.
_STYLE = """
.paper{fill:#fff}.ink{fill:#1b1f23}.soft{fill:#57606a}
.c1{fill:#aab2ba}.c2{fill:#56b4e9}.c3{fill:#0072b2}.c4{fill:#009e73}.c5{fill:#cc79a7}
.c6{fill:#d9c824}.c7{fill:#e69f00}.c8{fill:#d55e00}.pale{opacity:.28}
text{font:15px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.question{font:600 18px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
@media (prefers-color-scheme:dark){
.paper{fill:#14171a}.ink{fill:#e7eaed}.soft{fill:#a3adb8}
.c1{fill:#5d6771}.c2{fill:#7cc8f2}.c3{fill:#1c7cbd}.c4{fill:#14a87f}.c5{fill:#d68cb5}
.c6{fill:#e3d63a}.c7{fill:#e69f00}.c8{fill:#f0722a}}
"""


def plan_svg(plan: Mapping[str, Any]) -> str:
    """A whole SVG file, for light and dark; `plan` is what `plan_parts` takes."""
    files = PlanFiles(plan["outcomes"])
    sentence = plan_sentence(plan, files)
    height, cells = files.cells(_INNER)
    parts = [
        _text(_LEFT, 44, plan["question"], "question ink"),
        _text(_LEFT, 74, sentence, "ink"),
        *_legend(files, 106),
        element("g", *cells, transform=f"translate({_LEFT} 126)"),
    ]
    y = 126 + round(height) + 22
    read = files.cut_files(READ, _SHOWN)
    if read:
        parts.append(_text(_LEFT, y + 12, _read_title(files), "soft"))
        largest = max(file.size for file in read)
        for place, file in enumerate(read):
            parts += _file(file, y + 26 + 26 * place, largest)
        y += 26 + 26 * len(read)
    tall = y + 14
    paper = element("rect", width=_WIDTH, height=tall, rx=10, class_="paper")
    drawn = element(
        "svg",
        element("title", f"{plan['question']}: {sentence}"),
        element("style", Markup(_STYLE)),
        paper,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {tall}",
        width=_WIDTH,
        height=tall,
    )
    return f"{drawn}\n"


def _read_title(files: PlanFiles) -> str:
    count = files.read.files
    shown = f"{_SHOWN} of the {count:,} files" if count > _SHOWN else count_text(count, "file")
    return f"{shown} that {'is' if count == 1 else 'are'} read, cut into row groups:"


def _text(x: float, y: float, text: str, kind: str, anchor: str | None = None) -> Markup:
    return element("text", text, x=x, y=y, class_=kind, text_anchor=anchor)


def _legend(files: PlanFiles, y: int) -> Iterator[Markup]:
    x = float(_LEFT)
    for one, count in files.legend():
        colour, stage = one.colour, one.stage
        yield element(
            "rect", x=f"{x:.0f}", y=y - 11, width=12, height=12, rx=2, class_=f"c{colour}"
        )
        named = element("tspan", f"{stage} ", class_="ink")
        yield element("text", named, element("tspan", count, class_="soft"), x=f"{x + 18:.0f}", y=y)
        x += 44 + 7.3 * len(f"{stage} {count}")


def _file(file: FileCut, y: int, largest: int) -> Iterator[Markup]:
    """Its name, and a bar as long as it is large, cut into row groups."""
    yield _text(_LEFT, y + 12, _shortened(file.path, 44), "ink")
    whole = (_WIDTH - _LEFT - _LABEL) * file.size / largest
    x, rows = float(_LABEL), max(sum(group.rows for group in file.groups), 1)
    for group in file.groups:
        width = max(whole * group.rows / rows - 1.5, 1)
        colour = f"c{group.colour}"
        if group.share < 1:
            yield _rect(x, y, width, f"{colour} pale")
            yield _rect(x, y, max(width * group.share, 3), colour)
        else:
            yield _rect(x, y, width, colour)
        x += width + 1.5


def _rect(x: float, y: float, width: float, kind: str) -> Markup:
    return element("rect", x=f"{x:.1f}", y=y, width=f"{width:.1f}", height=16, class_=kind)


def _shortened(path: str, most: int) -> str:
    return path if len(path) <= most else f"{path[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
