"""The page of `alcid inspect --html` as a user sees it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Page, expect

from alcid import FileIndex
from alcid.cli import main
from tests.browser.opened import contrasts

ROWS = 20_000
COLUMNS = {"city": "STRING", "id": "BIGINT", "score": "DOUBLE", "level": "INT"}
OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page for an index file with all index types; the last index is damaged."""
    folder = tmp_path_factory.mktemp("inspect")
    number = np.arange(ROWS)
    table = pa.table(
        {
            "city": pa.array(["Graz", "Linz", "Wien"]).take(pa.array(number % 3)),
            "id": number,
            "level": pa.array(number % 60 - 20, pa.int32()),
            "score": number % 600 / 10,
        }
    )
    options = {
        "file-index.bitmap.columns": "city",
        "file-index.bloom-filter.columns": "id",
        "file-index.bsi.columns": "level",
        "file-index.range-bitmap.columns": "score",
    }
    index = FileIndex.build(table, options)
    data = bytearray(index.to_bytes())
    data[index.entries[-1].start + 4] = 9  # its version
    (folder / "a.index").write_bytes(data)
    types = [word for column, text in COLUMNS.items() for word in ("--type", f"{column}={text}")]
    page = folder / "page.html"
    assert main(["inspect", str(folder / "a.index"), *types, "--html", str(page)]) == 1
    return page


def shown_text(page: Page) -> str:
    """The text shown for the box under the pointer, or for the focused one."""
    script = """() => {
      const box = document.querySelector(".bytes-box:hover, .bytes-box:focus-visible");
      return box ? getComputedStyle(box, "::after").content : "";
    }"""
    return str(page.evaluate(script)).strip('"')


def test_a_box_says_what_it_is_when_pointed_at(open_page: OpenPage, written: Path) -> None:
    page = open_page(written)
    expect(page.locator("h1")).to_have_text(str(written.with_name("a.index")))
    page.locator("a[aria-label^='filter, ']").hover()
    assert shown_text(page).startswith("filter, 24,623 bytes from ")


def test_boxes_are_reached_by_keyboard_and_lead_to_their_line(
    open_page: OpenPage, written: Path
) -> None:
    page = open_page(written)
    line = page.locator(".bytes-line", has_text="magic").first
    expect(line).to_be_hidden()
    names = []
    for _ in range(3):
        page.keyboard.press("Tab")
        names.append(shown_text(page).partition(",")[0])
    assert names[1:] == ["head", "magic"]
    page.keyboard.press("Enter")
    expect(line).to_be_visible()
    expect(line).to_contain_text("1493475289347502")


def test_the_list_opens_step_by_step(open_page: OpenPage, written: Path) -> None:
    page = open_page(written)
    summary = page.locator("summary", has_text="bitmap of city")
    parts = page.locator("details > .bytes-line", has_text="dictionary")
    expect(parts.first).to_be_hidden()
    summary.click()
    expect(page.locator("summary", has_text="dictionary").first).to_be_visible()


def test_damage_has_a_colour_of_its_own_and_says_what_it_is(
    open_page: OpenPage, written: Path
) -> None:
    page = open_page(written)
    damaged = page.locator("a.bytes-damaged")
    expect(damaged).to_have_count(1)
    label = damaged.get_attribute("aria-label")
    assert label is not None
    assert "unknown range-bitmap version" in label
    expect(page.locator(".bytes-legend")).to_contain_text("damaged")


def test_boxes_show_the_share_of_their_bytes(open_page: OpenPage, written: Path) -> None:
    page = open_page(written)
    widths = page.evaluate(
        """() => [...document.querySelectorAll(".bytes-bar > div > .bytes-row > .bytes-column")]
          .map((column) => [+column.style.flexGrow, column.getBoundingClientRect().width])"""
    )
    large = [(size, width) for size, width in widths if size > 20_000]
    first, second = large[0], large[-1]
    assert first[0] != second[0]
    assert first[1] / second[1] == pytest.approx(first[0] / second[0], rel=0.25)
    assert min(width for _, width in widths) >= 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_it_is_legible_and_fits(
    open_page: OpenPage, written: Path, tmp_path: Path, scheme: str, width: int
) -> None:
    page = open_page(written, width=width, scheme=scheme)
    poor = {text: ratio for text, ratio in contrasts(page).items() if ratio < 4.5}
    assert poor == {}
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.screenshot(path=tmp_path / f"inspect-{scheme}-{width}.png", full_page=True)
