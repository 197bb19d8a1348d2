"""The page of the demo: the results and times of queries, each plan, and all steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alcid._text import size_text
from alcid.inspect.page import Markup, element, escape, section, style, table

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
_KEY = {"with": "with indexes", "without": "without indexes and statistics", "spark": "plain Spark"}
_MEASURED = (
    "Bytes are those of indexes, footers and data when a query runs for the first time. Times are "
    "the best of three, or fewer if they take two seconds: the table is open with its indexes "
    "cached, and files are in the page cache."
)
_LIMITS = (
    "Plain Spark reads the Parquet folder, also in place of the Paimon table, which has the same "
    "rows; it reads the Iceberg table by Iceberg's own scan. The last queries match rows in nearly "
    "all pages, where no index helps."
)


def demo_parts(data: Mapping[str, Any], plans: Sequence[Sequence[Markup]]) -> list[Markup]:
    """The parts of the page.

    Args:
        data: `DemoReport.to_dict()`.
        plans: The HTML of the plan of each query, in the same order.
    """
    return [
        style("demo.css", "alcid_demo"),
        element("p", f"{data['seconds']:,.0f} s on {data['machine']}", class_="subtitle"),
        _summary(data),
        section("Queries", *_queries(data["queries"])),
        section("Plans", *_plans(data["queries"], plans)),
        section("All steps", *(part for step in data["steps"] for part in _step(step))),
        section("What to try next", *_next(data["folder"])),
    ]


def _summary(data: Mapping[str, Any]) -> Markup:
    checks = [check["is_met"] for step in data["steps"] for check in step["checks"]]
    same = [result["same"] for result in data["queries"]]
    text = f"{sum(same)} of {len(same)} answers are the same rows with indexes, without, and on"
    text += f" plain Spark; {sum(checks)} of {len(checks)} checks are met."
    return element("p", text, class_="good" if data["ok"] else "bad")


def _queries(results: Sequence[Mapping[str, Any]]) -> list[Markup]:
    key = (element("li", element("i", class_=f"demo-{name}"), text) for name, text in _KEY.items())
    parts = [element("ul", *key, class_="demo-key")]
    for name in dict.fromkeys(result["table"] for result in results):
        rows = [_row(result) for result in results if result["table"] == name]
        parts += [element("h3", name), table(_HEAD, rows, numbers=range(1, 7))]
    return [*parts, *(element("p", note, class_="note") for note in (_MEASURED, _LIMITS))]


def _row(result: Mapping[str, Any]) -> list[object]:
    longest = max(result[seconds] for _, seconds in _TIMES)
    bars = (
        element("i", class_=f"demo-{name}", style=f"width:{result[seconds] / longest:.1%}")
        for name, seconds in _TIMES
    )
    return [
        element("code", result["query"]),
        result["rows"],
        f"{result['files_read']} of {result['files']}",
        f"{size_text(result['bytes_read'])} of {size_text(result['bytes'])}",
        *(f"{result[seconds] * 1000:,.0f}" for _, seconds in _TIMES),
        element("div", *bars, class_="demo-times", aria_hidden="true"),
        _word(result["same"]),
    ]


def _plans(results: Sequence[Mapping[str, Any]], plans: Sequence[Sequence[Markup]]) -> list[Markup]:
    return [
        element(
            "details",
            element(
                "summary",
                element("code", result["query"]),
                element("span", result["table"], class_="note"),
            ),
            *parts,
            class_="demo-plan",
            open=not number,
        )
        for number, (result, parts) in enumerate(zip(results, plans, strict=True))
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
    text = "The tables remain. On the command line, in the folder where the demo was run:"
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
        element("p", escape("To remove them, delete the folder "), element("code", folder), "."),
    ]


def _word(is_so: bool) -> Markup:
    return element("span", "yes" if is_so else "NO", class_="good" if is_so else "bad")
