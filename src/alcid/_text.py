"""Text that is safe to show, whoever wrote it.

Numbers for the eye.
"""

from __future__ import annotations

__all__ = ["count_text", "printable", "size_text"]


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


_UNITS = ("B", "kB", "MB", "GB", "TB")


def count_text(count: int, what: str) -> str:
    """So many of something.

    >>> count_text(1, "file"), count_text(2000, "row"), count_text(2, "index")
    ('1 file', '2,000 rows', '2 indexes')
    """
    ending = "" if count == 1 else "es" if what.endswith(("sh", "x")) else "s"
    return f"{count:,} {what}{ending}"


def size_text(count: int) -> str:
    """Bytes in units of 1000, with two digits at least.

    >>> size_text(999), size_text(1200), size_text(61_400), size_text(3_210_000_000)
    ('999 B', '1.2 kB', '61 kB', '3.2 GB')
    """
    size, unit = float(count), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit and size < 9.95 else f"{size:.0f} {_UNITS[unit]}"
