"""An opened page, and what is measured on it."""

from __future__ import annotations

import base64
import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal, cast

from playwright.sync_api import Browser, Page

# For every visible text: its colour against the first opaque background behind it.
_CONTRASTS = """() => {
  const parse = (text) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const context = canvas.getContext("2d");
    context.fillStyle = text;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b]
    .map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes]
      .filter((node) => node.nodeType === Node.TEXT_NODE)
      .map((node) => node.data.trim())
      .join("");
    if (!text || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName)) continue;
    const svg = element instanceof SVGElement;
    const style = getComputedStyle(element);
    const ink = parse(svg ? style.fill : style.color);
    let behind = element;
    let paper = [255, 255, 255, 255];
    for (; behind; behind = behind.parentElement) {
      const colour = parse(getComputedStyle(behind).backgroundColor);
      if (colour[3] === 255) { paper = colour; break; }
    }
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
    found.push([text.slice(0, 40), (a + 0.05) / (b + 0.05)]);
  }
  return found;
}"""

# The colours of a picture; it is drawn by the browser itself, which need not be asked for pixels.
_COLOURS = """async (given) => {
  const bytes = Uint8Array.from(atob(given), (one) => one.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const counts = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const key = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].map(([key, count]) => [[key >> 16, (key >> 8) & 255, key & 255], count]);
}"""


class Opened:
    """One page; it records what went wrong."""

    def __init__(
        self, browser: Browser, path: Path, width: int, height: int, scheme: str, *, scripts: bool
    ) -> None:
        chosen = cast("Literal['light', 'dark']", scheme)
        self._context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=chosen,
            java_script_enabled=scripts,
        )
        self.page = self._context.new_page()
        self._url = path.resolve().as_uri()
        self._requests: list[str] = []
        self._problems: list[str] = []
        self.page.on("request", lambda request: self._requests.append(request.url))
        self.page.on("pageerror", lambda error: self._problems.append(str(error)))
        self.page.on("console", lambda message: self._said(message.type, message.text))
        self.page.goto(self._url)

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self._problems.append(text)

    def check(self) -> None:
        """Nothing went wrong, and nothing was asked for but the page."""
        assert self._problems == []
        assert set(self._requests) <= {self._url}

    def close(self) -> None:
        self._context.close()


def contrasts(page: Page) -> dict[str, float]:
    """The contrast of each visible text with its background, as WCAG defines it."""
    texts: list[list[Any]] = page.evaluate(_CONTRASTS)
    assert texts
    least: dict[str, float] = {}
    for text, ratio in texts:
        least[text] = min(ratio, least.get(text, ratio))
    return least


def colour_counts(page: Page, element: str) -> Counter[tuple[int, int, int]]:
    """How many pixels of an element have each colour."""
    picture = page.locator(element).first.screenshot()
    encoded = base64.b64encode(picture).decode()
    return Counter({tuple(colour): count for colour, count in page.evaluate(_COLOURS, encoded)})


def colour_of(page: Page, element: str) -> tuple[int, int, int]:
    """The background of an element."""
    style = "(found) => getComputedStyle(found).backgroundColor"
    css = page.locator(element).first.evaluate(style)
    red, green, blue = map(int, re.findall(r"\d+", css)[:3])
    return red, green, blue
