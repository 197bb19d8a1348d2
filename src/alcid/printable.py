"""Text that is safe to show, whoever wrote it."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""Text on one line that moves no cursor and changes no colour: the rest as escapes.

    >>> print(printable("größe\n\x1b[31m"))
    größe\n\x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
