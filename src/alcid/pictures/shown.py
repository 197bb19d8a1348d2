"""What shows itself: as a page, in a file, in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alcid.pictures.page import Markup

__all__ = ["Shown"]


class Shown:
    """A thing that has a picture; whoever inherits may say what its parts are."""

    __slots__ = ()

    def to_html(self) -> str:
        """A page that stands alone: it asks nothing of a network, and works from a file."""
        from alcid.pictures.page import page

        title, parts = self.picture()
        return page(title, *parts)

    def save_html(self, path: str | PathLike[str]) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        """How notebooks show it."""
        from alcid.pictures.page import element, fragment

        title, parts = self.picture()
        return fragment(element("h3", title), *parts)

    def picture(self) -> tuple[str, Sequence[Markup]]:
        """A title, and parts for a page of one's own; by default, the text of it."""
        from alcid.pictures.page import element

        return type(self).__name__, [element("pre", str(self))]
