"""Figures as text: numbers, and tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

__all__ = ["NONE", "number", "table"]

NONE = "-"
"""The cell of a figure that there is not."""


def number(value: float) -> str:
    """A positive number with three digits, or all that it has before its point."""
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose columns are as wide as their longest cell."""
    lines = [head, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    texts = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    return "\n".join(
        [texts[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *texts[1:]]
    )
