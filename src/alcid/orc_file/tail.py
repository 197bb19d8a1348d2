"""The ends of ORC files, read in one round: what `alcid.parquet_file.tail` does for Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alcid.errors import FormatError
from alcid.formats.source import Range, ReadMany, Source
from alcid.orc_file.compression import decompress_chunks
from alcid.orc_file.footer import MAGIC, PostScript
from alcid.orc_file.protobuf import Message
from alcid.parquet_file import ReadReport
from alcid.parquet_file.requests import read_counted

__all__ = ["Tail", "read_tails"]

_READ = 64 << 10
_KEPT = 16 << 10  # Arrow reads so many bytes at the end of a file, to find the footer


@dataclass(frozen=True, slots=True)
class Tail:
    """The last bytes of a file, with its footer."""

    data: bytes
    start: int
    """Where they begin in the file."""
    postscript: PostScript

    @property
    def footer(self) -> bytes:
        """The footer, as it was compressed."""
        end = len(self.data) - self.postscript.length
        return self.data[end - self.postscript.footer_length : end]

    def footer_message(self, file: str) -> Message:
        """The fields of the footer."""
        how = self.postscript.codec, self.postscript.block_size
        return Message(decompress_chunks(self.footer, *how, file), file)

    def find(self, offset: int, length: int) -> bytes | None:
        """Bytes of the file, if they are among these."""
        begin = offset - self.start
        return self.data[begin : begin + length] if begin >= 0 else None

    def kept(self) -> Tail:
        """What Arrow reads of it."""
        needed = max(_KEPT, self.postscript.length + self.postscript.footer_length)
        cut = max(0, len(self.data) - needed)
        return Tail(self.data[cut:], self.start + cut, self.postscript)


def read_tails(sources: Sequence[Source], report: ReadReport, read_ranges: ReadMany) -> list[Tail]:
    """The end of each file, in one round; a second one for footers longer than 64 KiB.

    Raises:
        FormatError: It is not the end of an ORC file.
    """
    for source in sources:
        if source.size <= len(MAGIC):
            raise FormatError("no ORC file", file=source.name, found=f"{source.size} bytes")
    ends = read_counted([_end(source, _READ) for source in sources], report, read_ranges)
    tails = [_tail(source, end) for source, end in zip(sources, ends, strict=True)]
    needed = [tail.postscript.length + tail.postscript.footer_length for tail in tails]
    long = [place for place, tail in enumerate(tails) if needed[place] > len(tail.data)]
    again = [_end(sources[place], needed[place]) for place in long]
    for place, end in zip(long, read_counted(again, report, read_ranges), strict=True):
        tails[place] = _tail(sources[place], end)
    return tails


def _end(source: Source, length: int) -> Range:
    length = min(length, source.size)
    return Range(source, source.size - length, length)


def _tail(source: Source, data: bytes) -> Tail:
    return Tail(data, source.size - len(data), PostScript.parse(data, source))
