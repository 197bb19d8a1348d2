"""CHAR(n): Spark pads the column and the literal with spaces before it compares them.

Spark itself stores padded values; other writers need not, and then `ab` is stored where Spark reads
`ab   `. So a literal equals every key that differs from it in spaces at the end only.
"""

from __future__ import annotations

from alcid.predicate.numbers import Place

__all__ = ["padded_keys", "padded_place"]

_MOST_KEYS = 64


def padded_place(text: bytes, length: int) -> Place:
    r"""The place of a literal among values that are stored with or without their padding.

    >>> padded_place(b"ab ", 4)
    Place(begin=b'ab', end=b'ab    \x00', certain=False)
    """
    bare = text.rstrip(b" ")
    # Padding goes above a control character: "a" is below "a<tab>", and padded above it.
    control = next((at for at, byte in enumerate(bare) if byte < ord(" ")), len(bare))
    spaces = b" " * max(length, len(text) - len(bare))
    return Place(bare[:control].rstrip(b" "), bare + spaces + b"\0", certain=False)


def padded_keys(text: bytes, length: int) -> list[bytes] | None:
    """The keys that equal a literal, one for each number of spaces; None when they are many.

    >>> padded_keys(b"ab", 4)
    [b'ab', b'ab ', b'ab  ']
    """
    bare = text.rstrip(b" ")
    missing = length - len(bare.decode())
    if missing >= _MOST_KEYS:
        return None
    return [bare + b" " * spaces for spaces in range(max(missing, 0) + 1)]
