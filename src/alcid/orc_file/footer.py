"""What the end of an ORC file says: its stripes, and which of its columns are where.

    ORC | stripes ... | stripe statistics | footer | postscript | u8 its length

    stripe: index streams | data streams | stripe footer

The postscript is not compressed.
"""

from __future__ import annotations

from dataclasses import dataclass

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import Source
from alcid.orc_file.compression import decompress_chunks
from alcid.orc_file.protobuf import Message
from alcid.orc_file.schema import OrcColumn, parse_columns

__all__ = ["MAGIC", "Footer", "PostScript", "Stripe", "parse_footer"]

MAGIC = b"ORC"
_MOST_BLOCK = 1 << 23  # bytes: the header of a chunk counts no more


@dataclass(frozen=True, slots=True)
class PostScript:
    """How to read the footer."""

    footer_length: int
    codec: int
    block_size: int
    length: int
    """Its own, with the last byte of the file."""

    @classmethod
    def parse(cls, tail: bytes, source: Source) -> PostScript:
        """Read it from the last bytes of a file, of which there are 256, or all.

        Raises:
            FormatError: They are not the end of an ORC file.
        """
        name, length = source.name, tail[-1]
        if length >= len(tail):
            raise FormatError("no ORC file", file=name, offset=source.size - 1, found=length)
        message = Message(tail[-1 - length : -1], name)
        if message.parts(8000) != [MAGIC]:
            raise FormatError(
                "no ORC file", file=name, offset=source.size - 1 - length, found=tail[-1 - length :]
            )
        found = cls(message.number(1), message.number(2), message.number(3), length + 1)
        if found.footer_length > source.size - found.length - len(MAGIC):
            raise FormatError("footer longer than the file", file=name, found=found.footer_length)
        if found.codec and not 0 < found.block_size <= _MOST_BLOCK:
            raise FormatError("bad compression block size", file=name, found=found.block_size)
        return found


@dataclass(frozen=True, slots=True)
class Stripe:
    """A part of the rows, with all columns."""

    offset: int
    index_length: int
    data_length: int
    footer_length: int
    rows: int

    @property
    def footer_offset(self) -> int:
        """Where the stripe footer begins."""
        return self.offset + self.index_length + self.data_length


@dataclass(frozen=True, slots=True)
class Footer:
    """What is used of it."""

    columns: tuple[OrcColumn, ...]
    stripes: tuple[Stripe, ...]


def parse_footer(data: bytes, postscript: PostScript, source: Source) -> Footer:
    """Read the footer, which has the length that the postscript gives.

    Raises:
        FormatError: It is damaged.
        UnsupportedError: The file is encrypted, or its rows are no structs.
    """
    content = decompress_chunks(data, postscript.codec, postscript.block_size, source.name)
    message = Message(content, source.name)
    if message.has(10):
        raise UnsupportedError(f"{source.name}: an encrypted ORC file")
    end = source.size - postscript.length - postscript.footer_length
    stripes = tuple(_stripe(one, end, source.name) for one in message.messages(3))
    rows = message.number(6)
    if sum(stripe.rows for stripe in stripes) != rows:
        found = sum(stripe.rows for stripe in stripes)
        raise FormatError("bad number of rows", file=source.name, found=found, expected=rows)
    return Footer(parse_columns(message, source.name), stripes)


def _stripe(message: Message, end: int, file: str) -> Stripe:
    stripe = Stripe(*map(message.number, range(1, 6)))
    if stripe.offset < len(MAGIC) or stripe.footer_offset + stripe.footer_length > end:
        raise FormatError(
            "stripe outside of the file",
            file=file,
            offset=stripe.offset,
            found=f"to {stripe.footer_offset + stripe.footer_length}",
            expected=f"{len(MAGIC)} to {end}",
        )
    return stripe
