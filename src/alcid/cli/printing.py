"""What commands print on stdout: lines for people, or one JSON document for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from alcid.byte_map.values import decimal_text, not_finite
from alcid.printable import printable

__all__ = [
    "Picture",
    "Report",
    "plain",
    "print_json",
    "print_lines",
    "print_picture",
    "print_report",
]


class Report(Protocol):
    """What a table gives back for work that was done; `str` is a text to read."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""


class Picture(Report, Protocol):
    """A report that can show itself as a page."""

    def save_html(self, path: str) -> None:
        """Write the page."""


def print_report(report: Report, *, as_json: bool) -> None:
    """Print a report, as a text or as JSON."""
    if as_json:
        print_json(report.to_dict())
    else:
        print_lines(str(report))


def print_picture(report: Picture, html: str | None, *, as_json: bool) -> None:
    """Write the page of a report, if a file is named for it, or else print it; JSON in any case."""
    if html is not None:
        report.save_html(html)
    if html is None or as_json:
        print_report(report, as_json=as_json)
    else:
        print_lines(f"written to {html}")


def print_lines(text: str, *, to_stderr: bool = False) -> None:
    """Print lines; what a terminal would take for a command, or cannot show, as escapes."""
    stream = sys.stderr if to_stderr else sys.stdout
    encoding = stream.encoding or "utf-8"  # text in memory has none
    lines = "".join(f"{printable(line)}\n" for line in text.split("\n"))
    stream.write(lines.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()  # here, where a closed pipe is seen to


def print_json(document: Any) -> None:
    """Print one document on one line, in ASCII, so that it passes through any pipe."""
    sys.stdout.write(json.dumps(plain(document), allow_nan=False) + "\n")
    sys.stdout.flush()


def plain(value: Any) -> Any:
    r"""What JSON can hold: decimals, NaN, the infinities and times are text, bytes hexadecimal.

    >>> plain({"at": datetime(2025, 8, 1, 12), "share": float("nan"), "hash": b"\x01"})
    {'at': '2025-08-01T12:00:00', 'share': 'NaN', 'hash': '01'}
    """
    match value:
        case Mapping():
            return {_key(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case float() if not math.isfinite(value):
            return not_finite(value)
        case Decimal():
            return decimal_text(value)
        case bytes():
            return value.hex()
        case date() | datetime() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
        case _:
            return value


def _key(key: Any) -> str:
    found = plain(key)
    return found if isinstance(found, str) else json.dumps(found)
