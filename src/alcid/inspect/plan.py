"""A plan as parts of a page: what was read, a map of the files, tables of stages and reasons.

The files of a plan, by the stage that left them out: sums, a drawing, data for a script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from alcid._text import count_text, size_text
from alcid.inspect.page import (
    Markup,
    data,
    element,
    script,
    section,
    style,
    table,
)

__all__ = ["READ", "PlanFiles", "StageSum", "plan_parts", "plan_sentence", "stage_colour"]

READ = "read"
# The order of the stages; what comes later got further, and is what a cell of several files shows.
_COLOURS = {
    "partitions": 1,
    "statistics": 2,
    "file index": 3,
    "deletion vectors": 5,
    "count": 6,
    "limit": 6,
    "cut-off": 6,
    "row groups": 4,
    READ: 8,
}
_OTHER = 7
_LONGEST = 70  # characters that a name shares with the one before, at either end
_FIRST = 48  # the character that stands for none
_CELLS, _LINE = 2000, 100  # of the drawing


@dataclass(frozen=True, slots=True)
class StageSum:
    """The files that one stage left out, or that are read."""

    stage: str
    files: int
    rows: int
    size: int

    @property
    def colour(self) -> int:
        """The number of its colour in `page.css`."""
        return stage_colour(self.stage)


def stage_colour(stage: str) -> int:
    """The number of a stage's colour in `page.css`."""
    return _COLOURS.get(stage, _OTHER)


class PlanFiles:
    """The `outcomes` of an explanation, in columns that are sorted by path."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        """Sum them up by stage; `columns` are those of `FileOutcomes.columns`."""
        self._columns = columns
        reasons: Sequence[tuple[str, str]] = columns["reasons"]
        sums = [[0, 0, 0] for _ in reasons]
        for code, rows, size in zip(
            columns["codes"], columns["rows"], columns["sizes"], strict=True
        ):
            one = sums[code]
            one[0], one[1], one[2] = one[0] + 1, one[1] + rows, one[2] + size
        every = [(StageSum(stage, *sums[code]), why) for code, (stage, why) in enumerate(reasons)]
        named = {one.stage for one, _ in every}
        order = [*sorted(named - _COLOURS.keys()), *(stage for stage in _COLOURS if stage in named)]
        self._places = {stage: place for place, stage in enumerate(order)}
        self.reasons = sorted(
            ((one, why) for one, why in every if one.files),
            key=lambda found: self._places[found[0].stage],
        )
        """Files by stage and reason, those first that got least far."""
        self.stages = [_sum(stage, [one for one, _ in every]) for stage in order]
        """By how far files got; some have row groups only."""

    def __len__(self) -> int:
        return len(self._columns["paths"])

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(one.size for one in self.stages)

    @property
    def read(self) -> StageSum:
        """The files that are read."""
        return next((one for one in self.stages if one.stage == READ), StageSum(READ, 0, 0, 0))

    def to_data(self) -> dict[str, Any]:
        """What the script draws from: names share their ends, what repeats is counted."""
        columns = self._columns
        split = [path.rpartition("/") for path in columns["paths"]]
        folders = [(folder, len(list(same))) for folder, same in groupby(one[0] for one in split)]
        return {
            "stages": [one.stage for one in self.stages],
            "colours": [one.colour for one in self.stages],
            "reasons": [[self._places[stage], reason] for stage, reason in columns["reasons"]],
            "folders": folders,
            "names": list(_shared_ends([one[2] for one in split])),
            "sizes": columns["sizes"],
            "rows": columns["rows"],
            "codes": [
                n for code, same in groupby(columns["codes"]) for n in (code, len(list(same)))
            ],
            "groups": self._groups(),
        }

    def _groups(self) -> list[list[int]]:
        """For each file that was opened its number, then runs of row groups that are alike."""
        columns = self._columns["groups"]
        names = ("file", "rows", "codes", "looked_at", "pages", "all_pages")
        every = zip(*(columns[name] for name in names), strict=True)
        found = []
        for file, groups in groupby(sorted(every, key=lambda one: one[0]), lambda one: one[0]):
            runs = [file]
            for alike, same in groupby(groups):
                runs += (len(list(same)), *alike[1:])
            found.append(runs)
        return found

    def cells(self, width: float) -> tuple[float, list[Markup]]:
        """All files in order, as cells in lines of a width: the height, and a path for each stage.

        A cell that stands for several files shows which got furthest.
        """
        stages = [
            self._places[self._columns["reasons"][code][0]] for code in self._columns["codes"]
        ]
        cells = list(_cells(stages, _CELLS))
        across = min(len(cells), _LINE) or 1
        step = width / across
        line = min(max(step, 8), 22)
        wide = f"{step - min(1.5, step / 5):.1f}"
        paths: list[list[str]] = [[] for _ in self.stages]
        for number, stage in enumerate(cells):
            x, y = number % across * step, number // across * (line + 2)
            paths[stage].append(f"M{x:.1f} {y:.1f}h{wide}v{line:.1f}h-{wide}z")
        drawn = [
            element("path", d="".join(path), class_=f"c{stage.colour}")
            for stage, path in zip(self.stages, paths, strict=True)
            if path
        ]
        return -(-len(cells) // across) * (line + 2), drawn

    def drawing(self, label: str) -> list[Markup]:
        """The cells as a picture, and what they stand for."""
        height, cells = self.cells(1000)
        box = f"0 0 1000 {height:.0f}"
        svg = "http://www.w3.org/2000/svg"
        drawn = element("svg", *cells, viewBox=box, xmlns=svg, role="img", aria_label=label)
        if len(self) <= _CELLS:
            return [drawn]
        each = -(-len(self) // _CELLS)
        note = f"A cell stands for {each} files, and shows which of them got furthest."
        return [drawn, element("p", note, class_="note")]

    def legend(self) -> list[tuple[StageSum, str]]:
        """Each stage that something of the picture has the colour of, and how much that is."""
        groups = {
            self._columns["reasons"][code][0] for code in set(self._columns["groups"]["codes"])
        }
        return [
            (one, count_text(one.files, "file") if one.files else "row groups only")
            for one in self.stages
            if one.files or one.stage in groups
        ]


def _sum(stage: str, every: Sequence[StageSum]) -> StageSum:
    some = [one for one in every if one.stage == stage]
    return StageSum(
        stage,
        sum(one.files for one in some),
        sum(one.rows for one in some),
        sum(one.size for one in some),
    )


def _cells(stages: Sequence[int], most: int) -> Iterator[int]:
    """At most so many cells for files in order, each with the last stage of its files."""
    count = min(len(stages), most)
    for cell in range(count):
        yield max(stages[cell * len(stages) // count : (cell + 1) * len(stages) // count])


def _shared_ends(names: Sequence[str]) -> Iterator[str]:
    """Names without what they share with the one before, whose lengths two characters say."""
    before = ""
    for name in names:
        head = tail = 0
        if name.isascii() and before.isascii():  # a script counts other characters otherwise
            head = _alike(before, name)
            tail = _alike(before[head:][::-1], name[head:][::-1])
        yield chr(_FIRST + head) + chr(_FIRST + tail) + name[head : len(name) - tail]
        before = name


def _alike(one: str, other: str) -> int:
    """How many characters two names begin with alike."""
    most = min(len(one), len(other), _LONGEST)
    return next((at for at in range(most) if one[at] != other[at]), most)


def plan_parts(plan: Mapping[str, Any]) -> list[Markup]:
    """The parts of a page about a plan.

    Args:
        plan: What `Explanation.to_dict` gives, and with it `question`, a text, and `outcomes`, what
            became of each file in columns, or None.
    """
    files = None if plan["outcomes"] is None else PlanFiles(plan["outcomes"])
    sentence = plan_sentence(plan, files)
    parts = [style("plan.css"), element("p", sentence, class_="result")]
    parts += (element("p", note, class_="note") for note in plan["notes"])
    if files is not None and len(files):
        parts += [_bars(plan, files), _map(files, sentence)]
    if plan["stages"]:
        parts.append(section("Stages", *_stages(plan["stages"])))
    if files is not None and len(files):
        parts.append(section("Files, by what became of them", _reasons(files)))
    if plan["indexes"]:
        parts.append(section("Indexes", _indexes(plan["indexes"])))
    return parts


def plan_sentence(plan: Mapping[str, Any], files: PlanFiles | None) -> str:
    """What was read of how much, in one sentence."""
    stages = plan["stages"]
    if files is None or not len(files):
        return "No file was looked for." if files is None else "The table has no files."
    if not stages:
        return f"All {count_text(len(files), 'file')}, {size_text(files.size)}, are read elsewhere."
    found, counted = stages[-1]["after"]["rows"], any(one["name"] == "count" for one in stages)
    verb = "Would read" if found is None else "Read"
    size = f"{size_text(_bytes(stages))} of {size_text(files.size)}"
    told = f"{verb} {files.read.files:,} of {count_text(len(files), 'file')} and {size}"
    beside = sum(one["bytes_read"] for one in stages if one["name"] not in ("rows", "fetch"))
    told += f", and {size_text(beside)} of indexes and footers" if beside else ""
    rows = "" if found is None or counted else f": {count_text(found, 'row')}"
    return f"{told}{rows}."


def _bytes(stages: Sequence[Mapping[str, Any]]) -> int:
    """What was read of the data; of a plan that did not run, what would be."""
    if stages[-1]["after"]["rows"] is None:
        return int(stages[-1]["after"]["bytes"] or 0)
    return sum(one["bytes_read"] for one in stages if one["name"] in ("rows", "fetch"))


def _bars(plan: Mapping[str, Any], files: PlanFiles) -> Markup:
    """Files and bytes, each as a bar of what the stages left out."""
    by_files = [(one.colour, one.stage, one.files) for one in files.stages]
    by_size = [(one.colour, one.stage, one.size) for one in files.stages if one.stage != READ]
    taken = min(_bytes(plan["stages"]) if plan["stages"] else files.size, files.read.size)
    colour = files.read.colour
    rest = f"{colour} pale", "not needed of the files that are read", files.read.size - taken
    shares = [
        _bar("files", f"{len(files):,}", by_files, lambda n: count_text(n, "file")),
        _bar("bytes", size_text(files.size), [*by_size, rest, (colour, READ, taken)], size_text),
    ]
    return element("div", *shares, class_="bars")


def _bar(label: str, total: str, shares: Sequence[tuple[object, str, int]], show: Any) -> Markup:
    told = ", ".join(f"{what} {show(count)}" for _, what, count in shares if count)
    return element(
        "div",
        element("span", label, class_="label"),
        element(
            "span",
            *(
                element(
                    "i",
                    class_=f"c{colour}",
                    style=f"flex-grow:{count}",
                    title=f"{what}: {show(count)}",
                )
                for colour, what, count in shares
                if count
            ),
            class_="bar",
            role="img",
            aria_label=f"{label}: {told}",
        ),
        element("span", total, class_="total"),
        class_="line",
    )


def _map(files: PlanFiles, sentence: str) -> Markup:
    """The legend, and the files; a script makes of them what can be opened."""
    keys = (
        element(
            "button",
            element("i", class_=f"c{one.colour}"),
            f"{one.stage} ",
            element("span", count, class_="note"),
            type="button",
            class_="key",
            data_stage=one.stage,
            aria_pressed="false",
            disabled=not one.files,
        )
        for one, count in files.legend()
    )
    return element(
        "section",
        element("h2", "Files"),
        element("div", *keys, class_="keys", role="group", aria_label="Show only one stage"),
        element("div", *files.drawing(sentence), class_="map"),
        data(files.to_data()),
        script("plan.js"),
        class_="plan",
    )


def _stages(stages: Sequence[Mapping[str, Any]]) -> Iterator[Markup]:
    head = ("stage", "files", "row groups", "pages", "rows", "bytes to read")
    yield table(
        [*head, "requests", "bytes read", "ms"],
        [
            [
                one["name"],
                *(_change(one, name) for name in ("files", "row_groups", "pages", "rows")),
                _change(one, "bytes"),
                one["requests"] or None,
                size_text(one["bytes_read"]) if one["requests"] else None,
                f"{one['seconds'] * 1000:.1f}",
            ]
            for one in stages
        ],
        numbers=range(1, 9),
    )
    yield element(
        "p",
        "Bytes to read: what is left of the files, and from the row groups on of the columns that "
        "are needed. Bytes read: what a stage took from the storage.",
        class_="note",
    )


def _change(stage: Mapping[str, Any], name: str) -> Markup | None:
    show = size_text if name == "bytes" else "{:,}".format
    before, after = stage["before"][name], stage["after"][name]
    left = "" if after is None else show(after)
    if before is None or show(before) == left:
        return element("span", left)
    was = element("span", f"{show(before)} \N{RIGHTWARDS ARROW} ", class_="note")
    return element("span", was, element("b", left or "?"))


def _reasons(files: PlanFiles) -> Markup:
    rows = [
        [
            element("span", element("i", class_=f"c{one.colour} dot"), one.stage, class_="stage"),
            *(why, one.files, one.rows, size_text(one.size)),
        ]
        for one, why in files.reasons
    ]
    return table(["stage", "why, or how", "files", "rows", "bytes"], rows, numbers=(2, 3, 4))


def _indexes(uses: Sequence[Mapping[str, Any]]) -> Markup:
    rows = [
        [element("code", use["predicate"]), use["index"] or "none", use["outcome"], use["files"]]
        for use in uses
    ]
    return table(["predicate", "index", "what became of it", "files"], rows, numbers=(3,))
