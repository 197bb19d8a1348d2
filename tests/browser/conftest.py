"""A Chromium that opens pages from files, and lets no request out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.opened import Opened
from tests.interop.peers import unavailable

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser of this machine; tests are skipped, or fail in CI, where there is none."""
    executable = next(filter(None, map(shutil.which, _NAMES)), None)
    if executable is None:
        unavailable("pages are opened in Chromium: install it, on Debian `apt install chromium`")
    # A container runs as root, for which there is no sandbox, and its /dev/shm is small.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=[*arguments, "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens HTML text, or a file, as a user would; at the end, nothing may have gone wrong.

    `open_page(html, width=400, scheme="dark")` gives a page of Playwright. Errors on the
    console, and every request except for the one for the file, fail the test.
    """
    with ExitStack() as stack:
        opened: list[Opened] = []

        def open_one(
            shown: str | Path,
            *,
            width: int = 1200,
            height: int = 900,
            scheme: str = "light",
            scripts: bool = True,
        ) -> Page:
            path = shown if isinstance(shown, Path) else tmp_path / f"page-{len(opened)}.html"
            if not isinstance(shown, Path):
                path.write_text(shown, encoding="utf-8")
            window = Opened(browser, path, width, height, scheme, scripts=scripts)
            stack.callback(window.close)
            opened.append(window)
            return window.page

        yield open_one
        for window in opened:
            window.check()
