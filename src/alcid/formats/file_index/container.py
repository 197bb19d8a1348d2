"""Paimon's file index container: the indexes of one data file.

    i64 magic 1493475289347502 | i32 version 1 | i32 head length | i32 columns
      column: utf name | i32 indexes
        index: utf type | i32 start | i32 length      start from the first byte; -1: nothing written
    i32 redundant length | redundant bytes
    the indexes, back to back, in the order of the head

The container has no checksum. What breaks its structure is seen; a flipped bit inside an index is
seen only if it breaks that index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from alcid.errors import LimitError
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.source import Section, Source

__all__ = ["MAGIC", "Container", "Entry", "read_head", "write_container"]

MAGIC = 1493475289347502
VERSION = 1
_FIXED = 16
_NOT_WRITTEN = -1
_LARGEST = (1 << 31) - 1
_REDUNDANT_LENGTH = 4
_LEAST_COLUMN = 6  # bytes of an empty name and a count
_LEAST_INDEX = 10  # bytes of an empty type, start and length


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an index lies in its container."""

    column: str
    index_type: str
    start: int
    length: int

    @property
    def is_empty(self) -> bool:
        """True when nothing was written: the index of a map key in a file without rows."""
        return self.start == _NOT_WRITTEN


@dataclass(frozen=True, slots=True)
class Container:
    """The head of a container. Opening it reads the head and nothing else."""

    source: Source
    head_length: int
    entries: tuple[Entry, ...]
    """In the order of the head. A type that a column repeats is there once, as it came last."""
    redundant: int
    """Bytes of the head that this version has no use for."""

    @classmethod
    def open(cls, source: Source) -> Container:
        """Read and check the head."""
        head_length, every, end = read_head(source)
        last = {(entry.column, entry.index_type): entry for _, entry in every}
        redundant = max(head_length - end - _REDUNDANT_LENGTH, 0)
        return cls(source, head_length, tuple(last.values()), redundant)

    def section(self, entry: Entry) -> Section:
        """The payload of an entry that is not empty."""
        return Section(self.source, entry.start, entry.length)


def read_head(source: Source) -> tuple[int, list[tuple[int, Entry]], int]:
    """The length of the head, its entries with the places of their numbers, and where they end.

    Raises:
        FormatError: It is damaged.
    """
    whole = Section(source)
    cursor = Cursor(whole, window=_FIXED)
    if (magic := cursor.i64()) != MAGIC:
        raise whole.error("not a file index: bad magic", 0, found=magic, expected=MAGIC)
    if (version := cursor.i32()) != VERSION:
        raise whole.error("unknown container version", 8, found=version, expected=VERSION)
    head_length = cursor.count("head length", source.size)
    cursor = Cursor(whole.section(0, head_length), _FIXED, window=head_length)
    every: list[tuple[int, Entry]] = []
    for _ in range(cursor.count("column count", head_length // _LEAST_COLUMN)):
        column = cursor.utf()
        for _ in range(cursor.count("index count", head_length // _LEAST_INDEX)):
            index_type, at = cursor.utf(), cursor.position
            every.append((at, Entry(column, index_type, cursor.i32(), cursor.i32())))
    _check(whole, head_length, every)
    return head_length, every, cursor.position


def _check(whole: Section, head_length: int, entries: list[tuple[int, Entry]]) -> None:
    """Indexes must fill the file behind the head without gaps, in whatever order.

    Writers keep to it, and a wrong length would let a bloom filter lose rows unseen.
    """
    end = head_length
    for at, entry in sorted(entries, key=lambda pair: (pair[1].start, pair[1].length)):
        in_place = entry.length == 0 if entry.is_empty else entry.start == end
        if not in_place or entry.length < 0:
            raise whole.error(
                f"index {entry.index_type} of {entry.column!r} out of place",
                at,
                found=f"{entry.length} bytes from {entry.start}",
                expected=f"from {end}",
            )
        end += entry.length
    if end != whole.length:
        raise whole.error("indexes do not fill the file", end, found=whole.length, expected=end)


def write_container(payloads: Mapping[tuple[str, str], bytes | None]) -> bytes:
    """Write the payloads by (column, index type), sorted; None is written as an empty entry.

    >>> write_container({}).hex(" ", -4)
    '00054e4e d01a35ae 00000001 00000018 00000000 00000000'
    """
    columns: dict[str, list[tuple[str, bytes | None]]] = {}
    for (column, index_type), payload in sorted(payloads.items(), key=lambda item: item[0]):
        columns.setdefault(column, []).append((index_type, payload))
    head_length = _head(columns, 0).length
    head = _head(columns, head_length)
    body = [payload for indexes in columns.values() for _, payload in indexes if payload]
    return b"".join((head.to_bytes(), *body))


def _head(columns: Mapping[str, list[tuple[str, bytes | None]]], head_length: int) -> Writer:
    writer = Writer().i64(MAGIC).i32(VERSION, head_length, len(columns))
    start = head_length
    for column, indexes in columns.items():
        writer.utf(column).i32(len(indexes))
        for index_type, payload in indexes:
            length = len(payload or b"")
            if start + length > _LARGEST:
                raise LimitError(
                    f"a file index holds at most {_LARGEST} bytes: "
                    f"{index_type} of {column!r} does not fit"
                )
            writer.utf(index_type).i32(_NOT_WRITTEN if payload is None else start, length)
            start += length
    return writer.i32(0)
