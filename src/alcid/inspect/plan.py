"""The HTML of a scan plan: what was read, a map of the files, and tables of stages and reasons.

`PlanFiles` sums the files up by the stage that left them out, draws them, and prepares the data for
the script of the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from alcid._text import count_text, size_text
from alcid.inspect.page import Markup, data, element, script, section, style, table

READ = "read"
# In the order of the stages; a cell of several files shows the last stage that one of them reached.
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
_MAX_SHARED = 70  # characters that a name shares with the previous one, at either end
_FIRST = 48  # the character code for zero shared characters
_CELLS, _LINE = 2000, 100  # of the drawing


@dataclass(frozen=True, slots=True)
class StageSum:
    """The files that a stage left out, or that are read."""

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
            total = sums[code]
            total[0], total[1], total[2] = total[0] + 1, total[1] + rows, total[2] + size
        totals = [(StageSum(stage, *sums[code]), why) for code, (stage, why) in enumerate(reasons)]
        named = {total.stage for total, _ in totals}
        order = [*sorted(named - _COLOURS.keys()), *(stage for stage in _COLOURS if stage in named)]
        self._positions = {stage: position for position, stage in enumerate(order)}
        self.reasons = sorted(
            ((total, why) for total, why in totals if total.files),
            key=lambda pair: self._positions[pair[0].stage],
        )
        """Files by stage and reason, in the order of the stages."""
        self.stages = [_sum(stage, [total for total, _ in totals]) for stage in order]
        """Files by stage, in order; some stages have only row groups."""

    def __len__(self) -> int:
        return len(self._columns["paths"])

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(total.size for total in self.stages)

    @property
    def read(self) -> StageSum:
        """The files that are read."""
        return next(
            (total for total in self.stages if total.stage == READ), StageSum(READ, 0, 0, 0)
        )

    def to_data(self) -> dict[str, Any]:
        """The data for the script: names without shared ends, and run-length encoded codes."""
        columns = self._columns
        split = [path.rpartition("/") for path in columns["paths"]]
        folders = [(folder, len(list(same))) for folder, same in groupby(path[0] for path in split)]
        return {
            "stages": [total.stage for total in self.stages],
            "colours": [total.colour for total in self.stages],
            "reasons": [[self._positions[stage], reason] for stage, reason in columns["reasons"]],
            "folders": folders,
            "names": list(_shared_ends([path[2] for path in split])),
            "sizes": columns["sizes"],
            "rows": columns["rows"],
            "codes": [
                n for code, same in groupby(columns["codes"]) for n in (code, len(list(same)))
            ],
            "groups": self._groups(),
        }

    def _groups(self) -> list[list[int]]:
        """For each opened file its number, then runs of equal row groups."""
        columns = self._columns["groups"]
        names = ("file", "rows", "codes", "looked_at", "pages", "all_pages")
        row_groups = zip(*(columns[name] for name in names), strict=True)
        encoded = []
        for file, groups in groupby(sorted(row_groups, key=itemgetter(0)), itemgetter(0)):
            runs = [file]
            for alike, same in groupby(groups):
                runs += (len(list(same)), *alike[1:])
            encoded.append(runs)
        return encoded

    def cells(self, width: float) -> tuple[float, list[Markup]]:
        """All files in order, as cells in rows of a width: the height, and a path for each stage.

        A cell of several files shows the last stage that one of them reached.
        """
        stages = [
            self._positions[self._columns["reasons"][code][0]] for code in self._columns["codes"]
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
        """The cells as an SVG, and what they represent."""
        height, cells = self.cells(1000)
        box = f"0 0 1000 {height:.0f}"
        svg = "http://www.w3.org/2000/svg"
        drawn = element("svg", *cells, viewBox=box, xmlns=svg, role="img", aria_label=label)
        if len(self) <= _CELLS:
            return [drawn]
        each = -(-len(self) // _CELLS)
        note = f"A cell represents {each} files, and shows the one that got furthest."
        return [drawn, element("p", note, class_="note")]

    def legend(self) -> list[tuple[StageSum, str]]:
        """Each stage with a colour in the drawing, and its number of files."""
        groups = {
            self._columns["reasons"][code][0] for code in set(self._columns["groups"]["codes"])
        }
        return [
            (total, count_text(total.files, "file") if total.files else "row groups only")
            for total in self.stages
            if total.files or total.stage in groups
        ]


def _sum(stage: str, totals: Sequence[StageSum]) -> StageSum:
    parts = [part for part in totals if part.stage == stage]
    return StageSum(
        stage,
        sum(part.files for part in parts),
        sum(part.rows for part in parts),
        sum(part.size for part in parts),
    )


def _cells(stages: Sequence[int], limit: int) -> Iterator[int]:
    """At most `limit` cells for files in order, each with the last stage of its files."""
    count = min(len(stages), limit)
    for cell in range(count):
        yield max(stages[cell * len(stages) // count : (cell + 1) * len(stages) // count])


def _shared_ends(names: Sequence[str]) -> Iterator[str]:
    """Names without the ends shared with the previous one, whose lengths two characters give."""
    before = ""
    for name in names:
        head = tail = 0
        if name.isascii() and before.isascii():  # scripts count other characters differently
            head = _shared_length(before, name)
            tail = _shared_length(before[head:][::-1], name[head:][::-1])
        yield chr(_FIRST + head) + chr(_FIRST + tail) + name[head : len(name) - tail]
        before = name


def _shared_length(name: str, other: str) -> int:
    """The length of the common prefix of two names."""
    limit = min(len(name), len(other), _MAX_SHARED)
    return next((at for at in range(limit) if name[at] != other[at]), limit)


def plan_parts(plan: Mapping[str, Any]) -> list[Markup]:
    """The HTML of a plan.

    It is what `Explanation.to_dict` gives, with a text `question`, and in `outcomes` what became of
    each file, in columns, or None.
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
        parts.append(section("Files by outcome", _reasons(files)))
    if plan["indexes"]:
        parts.append(section("Indexes", _indexes(plan["indexes"])))
    return parts


def plan_sentence(plan: Mapping[str, Any], files: PlanFiles | None) -> str:
    """A sentence about how much was read."""
    stages = plan["stages"]
    if files is None or not len(files):
        return "No file was planned." if files is None else "The table has no files."
    if not stages:
        return f"All {count_text(len(files), 'file')}, {size_text(files.size)}, are read elsewhere."
    rows_read, counted = (
        stages[-1]["after"]["rows"],
        any(stage["name"] == "count" for stage in stages),
    )
    verb = "Would read" if rows_read is None else "Read"
    size = f"{size_text(_bytes(stages))} of {size_text(files.size)}"
    sentence = f"{verb} {files.read.files:,} of {count_text(len(files), 'file')} and {size}"
    index_bytes = sum(
        stage["bytes_read"] for stage in stages if stage["name"] not in ("rows", "fetch")
    )
    sentence += f", and {size_text(index_bytes)} of indexes and footers" if index_bytes else ""
    rows = "" if rows_read is None or counted else f": {count_text(rows_read, 'row')}"
    return f"{sentence}{rows}."


def _bytes(stages: Sequence[Mapping[str, Any]]) -> int:
    """The bytes of data that were read, or would be if the plan did not run."""
    if stages[-1]["after"]["rows"] is None:
        return int(stages[-1]["after"]["bytes"] or 0)
    return sum(stage["bytes_read"] for stage in stages if stage["name"] in ("rows", "fetch"))


def _bars(plan: Mapping[str, Any], files: PlanFiles) -> Markup:
    """Files and bytes, each as a bar of what each stage left out."""
    by_files = [(total.colour, total.stage, total.files) for total in files.stages]
    by_size = [
        (total.colour, total.stage, total.size) for total in files.stages if total.stage != READ
    ]
    bytes_read = min(_bytes(plan["stages"]) if plan["stages"] else files.size, files.read.size)
    colour = files.read.colour
    rest = f"{colour} pale", "not needed of the files that are read", files.read.size - bytes_read
    bars = [
        _bar("files", f"{len(files):,}", by_files, lambda n: count_text(n, "file")),
        _bar(
            "bytes", size_text(files.size), [*by_size, rest, (colour, READ, bytes_read)], size_text
        ),
    ]
    return element("div", *bars, class_="bars")


def _bar(label: str, total: str, segments: Sequence[tuple[object, str, int]], show: Any) -> Markup:
    summary = ", ".join(f"{what} {show(count)}" for _, what, count in segments if count)
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
                for colour, what, count in segments
                if count
            ),
            class_="bar",
            role="img",
            aria_label=f"{label}: {summary}",
        ),
        element("span", total, class_="total"),
        class_="line",
    )


def _map(files: PlanFiles, sentence: str) -> Markup:
    """The legend and the files, which a script makes interactive."""
    keys = (
        element(
            "button",
            element("i", class_=f"c{total.colour}"),
            f"{total.stage} ",
            element("span", count, class_="note"),
            type="button",
            class_="key",
            data_stage=total.stage,
            aria_pressed="false",
            disabled=not total.files,
        )
        for total, count in files.legend()
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
                stage["name"],
                *(_change(stage, name) for name in ("files", "row_groups", "pages", "rows")),
                _change(stage, "bytes"),
                stage["requests"] or None,
                size_text(stage["bytes_read"]) if stage["requests"] else None,
                f"{stage['seconds'] * 1000:.1f}",
            ]
            for stage in stages
        ],
        numbers=range(1, 9),
    )
    for stage in stages:
        for predicate, files in stage["without_statistics"].items():
            text = f"{count_text(files, 'file')} without usable min/max or null counts for "
            yield element("p", text, element("code", predicate), class_="note")
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
            element(
                "span", element("i", class_=f"c{total.colour} dot"), total.stage, class_="stage"
            ),
            *(why, total.files, total.rows, size_text(total.size)),
        ]
        for total, why in files.reasons
    ]
    return table(["stage", "why, or how", "files", "rows", "bytes"], rows, numbers=(2, 3, 4))


def _indexes(uses: Sequence[Mapping[str, Any]]) -> Markup:
    rows = [
        [
            element("code", use["predicate"]),
            use["index"] or ("none" if use["outcome"] == "absent" else ""),
            *(use["outcome"], use["files"]),
        ]
        for use in uses
    ]
    return table(["predicate", "index", "outcome", "files"], rows, numbers=(3,))
