"""How commands tell how far they are: on stderr, a bar on a terminal, lines in a log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alcid.tables.progress import Progress

__all__ = ["choose_progress"]


def choose_progress(*, quiet: bool) -> Progress | bool:
    """What to give to a table as `progress`.

    >>> choose_progress(quiet=True)
    False
    """
    if quiet or sys.stderr.isatty():
        return not quiet
    from alcid.tables.progress import ProgressLines

    return ProgressLines()
