"""Makes `docs/images/plan.svg`, the plan of a scan over a folder that it makes for that.

python -m tests.inspect.make_plan_svg
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import alcid
from alcid._text import count_text
from alcid.inspect.page import Markup, element
from alcid.inspect.plan import READ, PlanFiles, plan_sentence, stage_colour

TARGET = Path(__file__).resolve().parents[2] / "docs" / "images" / "plan.svg"
QUESTION = "day >= '2025-08-11' AND hour < 12 AND user_id = 4711"

_WIDTH, _LEFT = 1000, 24
_INNER = _WIDTH - 2 * _LEFT
_LABEL = 360  # where the bars of single files begin
_SHOWN = 8  # files that are read
# The colours of `page.css`: a picture in a document cannot see the style of its page.
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


@dataclass(frozen=True, slots=True)
class GroupCut:
    """A row group as a piece of a bar."""

    rows: int
    colour: int
    share: float
    """The share of its pages that is read."""


@dataclass(frozen=True, slots=True)
class FileCut:
    """A file as a bar that is divided into row groups."""

    path: str
    size: int
    groups: Sequence[GroupCut]


def make_table(folder: Path, *, days: int, hours: int, rows: int) -> alcid.ParquetTable:
    """Events of some days, a file for each hour, with an index on the users."""
    rng = np.random.default_rng(9)
    for day in range(days):
        part = folder / f"day=2025-08-{day + 1:02}"
        part.mkdir()
        for hour in range(hours):
            table = pa.table(
                {
                    "hour": pa.array(np.full(rows, hour), pa.int32()),
                    "user_id": rng.integers(0, 16 * rows, rows),
                    "score": rng.random(rows),
                    "url": [f"/item/{number}" for number in rng.integers(0, 10**6, rows).tolist()],
                }
            )
            path = part / f"hour-{hour:02}.parquet"
            pq.write_table(
                table, path, row_group_size=rows // 4, data_page_size=2000, write_page_index=True
            )
    events = alcid.parquet(folder)
    events.build_indexes(
        {
            "file-index.bloom-filter.columns": "user_id",
            "file-index.bitmap.columns": "user_id",
        }
    )
    return events


def picture(events: alcid.ParquetTable) -> str:
    """The plan of a look-up, after it ran."""
    scan = events.scan(QUESTION)
    scan.to_arrow()
    explanation = scan.explain()
    assert explanation.outcomes is not None
    question = f"where {explanation.predicate}"
    return plan_svg(
        {**explanation.to_dict(), "question": question, "outcomes": explanation.outcomes.columns()}
    )


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
    read = _cut_files(plan["outcomes"], READ, _SHOWN)
    if read:
        parts.append(_text(_LEFT, y + 12, _read_title(files), "soft"))
        largest = max(file.size for file in read)
        for number, file in enumerate(read):
            parts += _file(file, y + 26 + 26 * number, largest)
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
    for group, count in files.legend():
        colour, stage = group.colour, group.stage
        yield element(
            "rect", x=f"{x:.0f}", y=y - 11, width=12, height=12, rx=2, class_=f"c{colour}"
        )
        named = element("tspan", f"{stage} ", class_="ink")
        yield element("text", named, element("tspan", count, class_="soft"), x=f"{x + 18:.0f}", y=y)
        x += 44 + 7.3 * len(f"{stage} {count}")


def _file(file: FileCut, y: int, largest: int) -> Iterator[Markup]:
    """Its name, and a bar of a length for its size, divided into row groups."""
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


def _cut_files(columns: Mapping[str, Any], stage: str, limit: int) -> list[FileCut]:
    """The first files of a stage, with their row groups if they were opened."""
    codes = [code for code, (name, _) in enumerate(columns["reasons"]) if name == stage]
    files = [file for file, code in enumerate(columns["codes"]) if code in codes][:limit]
    groups = columns["groups"]
    names = ("file", "rows", "codes", "pages", "all_pages")
    cuts: dict[int, list[GroupCut]] = {file: [] for file in files}
    for file, rows, code, pages, all_pages in zip(*(groups[name] for name in names), strict=True):
        if file in cuts:
            name = columns["reasons"][code][0]
            share = pages / max(all_pages, 1) if name == READ and pages >= 0 else 1.0
            cuts[file].append(GroupCut(rows, stage_colour(name), share))
    whole = [GroupCut(1, stage_colour(stage), 1.0)]
    return [
        FileCut(columns["paths"][file], columns["sizes"][file], cuts[file] or whole)
        for file in files
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = make_table(Path(folder), days=25, hours=24, rows=8000)
        TARGET.write_text(picture(events), encoding="utf-8")
    print(TARGET)


if __name__ == "__main__":
    main()
