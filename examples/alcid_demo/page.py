"""The report of the demo: what was asked and how long it took, each plan, all that was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alcid._text import size_text
from alcid.inspect.page import (
    Markup,
    element,
    escape,
    section,
    style,
    table,
)

__all__ = ["demo_parts"]

_HEAD = (
    "query",
    "rows",
    "files read",
    "bytes read",
    "with, ms",
    "without",
    "Spark",
    "times",
    "same rows",
)
_TIMES = (("with", "seconds"), ("without", "seconds_without"), ("spark", "seconds_spark"))
_KEY = {
    "with": "with indexes",
    "without": "without indexes and statistics",
    "spark": "plain Spark",
}
_MEASURED = (
    "Bytes are those of indexes, footers and data together, when a question is asked for the first "
    "time. Times are the best of three, or fewer if they take two seconds: the table is open and "
    "keeps what it has read of indexes, and files are in the page cache."
)
_LIMITS = (
    "Plain Spark reads the Parquet folder, also where the Paimon table is asked, which has the "
    "same rows; an Iceberg table is read by Iceberg's own scan. The last questions ask for rows in "
    "nearly all pages: there no index helps."
)


def demo_parts(data: Mapping[str, Any], plans: Sequence[Sequence[Markup]]) -> list[Markup]:
    """The parts of the page.

    Args:
        data: `to_dict` of a report of the demo.
        plans: The parts of the picture of the plan of each question, in the same order.
    """
    return [
        style("demo.css", "alcid_demo"),
        element("p", f"{data['seconds']:,.0f} s on {data['machine']}", class_="subtitle"),
        _verdict(data),
        section("Questions", *_questions(data["questions"])),
        section("Plans", *_plans(data["questions"], plans)),
        section("All that was done", *(part for step in data["steps"] for part in _step(step))),
        section("How to go on", *_next(data["folder"])),
    ]


def _verdict(data: Mapping[str, Any]) -> Markup:
    checks = [check["is_met"] for step in data["steps"] for check in step["checks"]]
    same = [one["same"] for one in data["questions"]]
    told = f"{sum(same)} of {len(same)} answers are the same rows with indexes, without, and on"
    told += f" plain Spark; {sum(checks)} of {len(checks)} checks are met."
    return element("p", told, class_="good" if data["ok"] else "bad")


def _questions(asked: Sequence[Mapping[str, Any]]) -> list[Markup]:
    key = (element("li", element("i", class_=f"demo-{name}"), text) for name, text in _KEY.items())
    parts = [element("ul", *key, class_="demo-key")]
    for name in dict.fromkeys(one["table"] for one in asked):
        rows = [_row(one) for one in asked if one["table"] == name]
        parts += [element("h3", name), table(_HEAD, rows, numbers=range(1, 7))]
    return [*parts, *(element("p", note, class_="note") for note in (_MEASURED, _LIMITS))]


def _row(one: Mapping[str, Any]) -> list[object]:
    longest = max(one[seconds] for _, seconds in _TIMES)
    bars = (
        element("i", class_=f"demo-{name}", style=f"width:{one[seconds] / longest:.1%}")
        for name, seconds in _TIMES
    )
    return [
        element("code", one["query"]),
        one["rows"],
        f"{one['files_read']} of {one['files']}",
        f"{size_text(one['bytes_read'])} of {size_text(one['bytes'])}",
        *(f"{one[seconds] * 1000:,.0f}" for _, seconds in _TIMES),
        element("div", *bars, class_="demo-times", aria_hidden="true"),
        _word(one["same"]),
    ]


def _plans(asked: Sequence[Mapping[str, Any]], plans: Sequence[Sequence[Markup]]) -> list[Markup]:
    return [
        element(
            "details",
            element(
                "summary",
                element("code", one["query"]),
                element("span", one["table"], class_="note"),
            ),
            *parts,
            class_="demo-plan",
            open=not number,
        )
        for number, (one, parts) in enumerate(zip(asked, plans, strict=True))
    ]


def _step(step: Mapping[str, Any]) -> list[Markup]:
    parts = [element("h3", step["title"])]
    parts += (element("p", note, class_="note") for note in step["notes"])
    for call in step["calls"]:
        parts.append(element("pre", element("code", call["code"])))
        parts.append(element("div", call["result"], class_="demo-result"))
    if step["checks"]:
        rows = [[check["text"], _word(check["is_met"])] for check in step["checks"]]
        parts.append(table(("checked", "met"), rows))
    return parts


def _next(folder: str) -> list[Markup]:
    lines = (
        f'alcid query {folder}/events --where "class_id = 1 AND score > 95" --limit 5',
        f'alcid explain {folder}/events --where "score = 100" --html plan.html',
        f"alcid list {folder}/warehouse/demo.db/events",
        f"alcid advise {folder}/events --where \"url = 'https://school.example/lesson/7'\"",
        f"alcid verify {folder}/warehouse/demo.db/users",
    )
    text = "The tables stay where they are. On the command line, where the demo was run:"
    activate = element("code", ". .venv/bin/activate")
    after_make = (
        "After ",
        element("code", "make demo"),
        ", first ",
        activate,
        ", so that the shell finds alcid.",
    )
    return [
        element("p", text),
        element("pre", element("code", "\n".join(lines))),
        element("p", *after_make, class_="note"),
        element("p", escape("To be rid of them, remove the folder "), element("code", folder), "."),
    ]


def _word(is_so: bool) -> Markup:
    return element("span", "yes" if is_so else "NO", class_="good" if is_so else "bad")
