"""HTML representations of public objects: looked up in `alcid.inspect` when they are asked for.

Whatever notebooks show inherits `Displayed`. How it looks is registered in `alcid.inspect.display`,
which stands above all that it shows; so it is found by its name, and nothing here imports it.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

__all__ = ["Displayed"]


class Displayed:
    """An object with an HTML representation, for notebooks and for pages that stand alone."""

    __slots__ = ()

    def to_html(self) -> str:
        """A page that stands alone: it loads nothing over the network, and opens from a file."""
        return str(_display().page_of(self))

    def save_html(self, path: str | PathLike[str]) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        """The representation that notebooks show."""
        return str(_display().fragment_of(self))


def _display() -> Any:
    return import_module("alcid.inspect.display")
