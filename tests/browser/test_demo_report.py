"""The report of the demo in Chromium, with content that is made here without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from alcid.inspect import to_html
from alcid.opening import parquet
from alcid_demo import DemoReport
from alcid_demo.queries import Query, QueryResult
from alcid_demo.report import DemoLog
from tests.browser.opened import contrasts

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> DemoReport:
    folder = tmp_path_factory.mktemp("demo")
    for part in range(6):
        path = folder / "events" / f"dt=2025080{part // 2}" / f"{part}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        ids = np.random.default_rng(part).permutation(20_000) * 6 + part
        pq.write_table(pa.table({"id": ids, "score": ids % 101}), path, row_group_size=5_000)
    table = parquet(folder / "events")
    log = DemoLog(lambda _: None)
    log.step("Indexes on existing files")
    options = {"file-index.bloom-filter.columns": "id"}
    log.call("events.build_indexes(indexes)", lambda: table.build_indexes(options))
    log.check("a < b & 'c'", True)
    results = []
    for name in ("Parquet folder", "Paimon table"):
        for where in ("id = 7", "dt = 20250801 AND score > 60"):
            scan = table.scan(where)
            rows, explanation = scan.to_arrow().num_rows, scan.explain()
            times = 0.004, 0.2, 1.5
            results.append(
                QueryResult(
                    name, Query(where), rows, 1, 6, 12_000, 900_000, *times, True, explanation
                )
            )
    steps = tuple(log.steps)
    return DemoReport(
        "alcid-demo", "report.html", 120_000, 65.4, "Spark 4.1.4", steps, tuple(results)
    )


def test_page_shows_every_query_and_its_plan(report: DemoReport, open_page: OpenPage) -> None:
    page = open_page(to_html(report))
    expect(page.locator("h1")).to_have_text("Alcid demo: 120,000 events")
    expect(page.locator(".good").first).to_contain_text("4 of 4 answers are the same rows")
    expect(page.get_by_role("heading", level=2).filter(visible=True).first).to_have_text("Queries")
    tables = page.locator("section", has=page.locator(".demo-key")).locator("tbody")
    assert [tables.nth(number).locator("tr").count() for number in range(2)] == [2, 2]
    assert tables.first.locator("tr").first.locator("td").all_inner_texts() == [
        "id = 7",
        "1",
        "1 of 6",
        "12 kB of 900 kB",
        "4",
        "200",
        "1,500",
        "",
        "yes",
    ]
    plans = page.locator(".demo-plan")
    expect(plans).to_have_count(4)
    expect(plans.nth(0).locator(".map .row")).to_have_count(6)
    expect(page.locator("td", has_text="a < b & 'c'")).to_be_visible()


def test_plan_opens_by_keys_and_answers_clicks(report: DemoReport, open_page: OpenPage) -> None:
    page = open_page(to_html(report))
    second = page.locator(".demo-plan").nth(1)
    expect(second.locator(".result")).to_be_hidden()
    second.locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(second.locator(".result")).to_contain_text("Read 2 of 6 files")
    expect(second.locator(".map .row")).to_have_count(6)
    second.locator('.key[data-stage="read"]').click()
    expect(second.locator(".map .row")).to_have_count(2)
    expect(page.locator(".demo-plan").first.locator(".map .row")).to_have_count(6)


def test_bars_are_as_long_as_the_times(report: DemoReport, open_page: OpenPage) -> None:
    page = open_page(to_html(report))
    bars = page.locator(".demo-times").first.locator("i")
    widths = [box["width"] for bar in bars.all() if (box := bar.bounding_box()) is not None]
    assert len(widths) == 3
    assert widths[1] / widths[2] == pytest.approx(0.2 / 1.5, abs=0.01)
    assert 1 <= widths[0] < widths[1]


def test_answer_that_differs_is_seen(report: DemoReport, open_page: OpenPage) -> None:
    first, *others = report.results
    wrong = replace(report, results=(replace(first, is_same=False), *others))
    page = open_page(to_html(wrong))
    expect(page.locator("p.bad")).to_contain_text("3 of 4 answers are the same rows")
    expect(page.locator("td .bad")).to_have_text("NO")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_page_is_legible(report: DemoReport, open_page: OpenPage, scheme: str, width: int) -> None:
    page = open_page(to_html(report), scheme=scheme, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    faint = {text: ratio for text, ratio in contrasts(page).items() if ratio < 4.5}
    assert faint == {}
