"""The site of the documents: built strictly, the same each time, and usable from a disk."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

ROOT = Path(__file__).parents[2]


def build(folder: Path) -> Path:
    """The site in a folder, with its cache next to it."""
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    ended = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


def test_site_has_a_page_for_every_document(site: Path) -> None:
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")} - {"404.html"}
    documents = {
        str(path.relative_to(ROOT / "docs").with_suffix(".html"))
        for path in (ROOT / "docs").rglob("*.md")
    }
    assert pages == documents


def test_site_is_the_same_each_time(site: Path, tmp_path: Path) -> None:
    again = build(tmp_path)
    files = sorted(path.relative_to(site) for path in site.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    for path in files:
        assert (site / path).read_bytes() == (again / path).read_bytes(), path


def test_search_finds_pages_from_a_disk_and_asks_no_server(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((site / "indexes" / "bitmap.html").as_uri())
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type("bloom filter", delay=50)
    expect(page.get_by_text(re.compile(r"^\d+ results$"))).to_be_visible()
    page.close()
    assert [url for url in requests if not url.startswith(("file:", "about:", "data:"))] == []
