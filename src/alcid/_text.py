"""Text for people: printable characters, counts and human-readable sizes."""

from __future__ import annotations


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
    """A count and its noun, in the plural where it is not 1.

    >>> count_text(1, "file"), count_text(2000, "row"), count_text(2, "index")
    ('1 file', '2,000 rows', '2 indexes')
    """
    ending = "" if count == 1 else "es" if what.endswith(("sh", "x")) else "s"
    return f"{count:,} {what}{ending}"


def size_text(count: int, *, precise: bool = False) -> str:
    """A human-readable size in units of 1000 bytes: with two digits at least, or one decimal.

    >>> size_text(999), size_text(1200), size_text(61_400), size_text(3_210_000_000)
    ('999 B', '1.2 kB', '61 kB', '3.2 GB')
    >>> size_text(999, precise=True), size_text(61_400, precise=True)
    ('999 B', '61.4 kB')
    """
    size, unit = float(count), 0
    while size >= (999.95 if precise else 999.5) and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    decimals = int(unit > 0 and (precise or size < 9.95))
    return f"{size:.{decimals}f} {_UNITS[unit]}"
