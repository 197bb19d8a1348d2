"""A plan as parts of a page: what was read, a map of the files, tables of stages and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from alcid.pictures.page import Markup, data, element, script, section, style, table
from alcid.pictures.plan_files import READ, PlanFiles
from alcid.pictures.units import count_text, size_text

__all__ = ["plan_parts", "plan_sentence"]


def plan_parts(plan: Mapping[str, Any]) -> list[Markup]:
    """The parts of a page about a plan.

    Args:
        plan: What `Explanation.to_dict` gives, and with it `question`, a text, and `fates`, what
            became of each file in columns, or None.
    """
    files = None if plan["fates"] is None else PlanFiles(plan["fates"])
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
