"""Texts in columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.cells import cell_len

__all__ = ["aligned"]


def aligned(columns: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> list[str]:
    r"""The lines of columns, as long as they need be; those at these places stand to the right.

    >>> print(*aligned([("INDEX", "bitmap", "bsi"), ("FILES", "7", "12")], {1}), sep="\n")
    INDEX   FILES
    bitmap      7
    bsi        12
    """
    padded = []
    for place, column in enumerate(columns):
        lengths = [cell_len(cell) for cell in column]
        widest = max(lengths, default=0)
        spaces = [" " * (widest - length) for length in lengths]
        pairs = zip(column, spaces, strict=True)
        right = place in numbers
        padded.append([space + cell if right else cell + space for cell, space in pairs])
    return ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]
