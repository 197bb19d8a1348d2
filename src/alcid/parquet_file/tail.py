"""The end of a Parquet file, where its footer is.

    pages ... | column indexes | offset indexes | footer: FileMetaData | u32 its length | PAR1

It is read with what lies before the footer: the offset indexes as a rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import Range, ReadMany, Source
from alcid.parquet_file.report import ReadReport
from alcid.parquet_file.requests import read_counted

__all__ = ["END", "MAGIC", "footer_length", "read_tails"]

MAGIC = b"PAR1"
END = 4 + len(MAGIC)
"""Bytes after the footer: its length, and the magic."""
_ENCRYPTED = b"PARE"
_SMALLEST = len(MAGIC) + END
_TAIL = 64 << 10


def read_tails(sources: Sequence[Source], report: ReadReport, read_ranges: ReadMany) -> list[bytes]:
    """The last bytes of each file, with its footer.

    One round of reads, or a second one for the footers that are longer than 64 KiB.

    Raises:
        FormatError: It is not the end of a Parquet file.
        UnsupportedError: The footer is encrypted.
    """
    for source in sources:
        if source.size < _SMALLEST:
            raise FormatError(
                "no Parquet file",
                file=source.name,
                found=f"{source.size} bytes",
                expected="12 at least",
            )
    tails = read_counted([_end(source, _TAIL) for source in sources], report, read_ranges)
    needed = [
        _checked_length(source, tail) + END for source, tail in zip(sources, tails, strict=True)
    ]
    long = [place for place, tail in enumerate(tails) if needed[place] > len(tail)]
    again = [_end(sources[place], needed[place]) for place in long]
    for place, tail in zip(long, read_counted(again, report, read_ranges), strict=True):
        tails[place] = tail
    return tails


def footer_length(tail: bytes) -> int:
    """The bytes of the footer, as the end of a file gives them.

    >>> footer_length(bytes.fromhex("0a 00 00 00") + b"PAR1")
    10
    """
    return int.from_bytes(tail[-END : -len(MAGIC)], "little")


def _end(source: Source, length: int) -> Range:
    length = min(length, source.size)
    return Range(source, source.size - length, length)


def _checked_length(source: Source, tail: bytes) -> int:
    size, name = source.size, source.name
    magic = tail[-len(MAGIC) :]
    if magic == _ENCRYPTED:
        raise UnsupportedError(f"{name}: its footer is encrypted")
    if magic != MAGIC:
        raise FormatError("no Parquet file", file=name, offset=size - len(MAGIC), found=magic)
    length = footer_length(tail)
    if length > size - _SMALLEST:
        raise FormatError(
            "footer longer than the file",
            file=name,
            offset=size - END,
            found=length,
            expected=f"up to {size - _SMALLEST}",
        )
    return length
