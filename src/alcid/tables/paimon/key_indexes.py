"""Paimon's own indexes of tables with a primary key, which its writers make as they compact.

    pk-btree.index.columns   pk-bitmap.index.columns   ...   the columns that are to have one
    index/index-<uuid>-0     values of all files of a level in a bucket, named by the index manifest

An entry names the data files that it is of, with their rows:

    int 1 | int level | int files | for each file: its name as Java's writeUTF | long rows

Java uses it only while these are the files of the level. Here they are neither read nor written.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from alcid.paimon_metadata.index_manifest import IndexEntry
from alcid.paimon_metadata.manifest import ManifestEntry
from alcid.tables.build_report import IndexInfo

if TYPE_CHECKING:
    from alcid.tables.paimon.files import PaimonFiles

__all__ = ["key_indexes"]

_OPTION: Final = re.compile(r"pk-(.+)\.index\.columns")
_VERSION: Final = 1
_HEAD, _NAME, _ROWS = struct.Struct(">iii"), struct.Struct(">H"), struct.Struct(">q")


class _Source(NamedTuple):
    """The data files that an index is of."""

    level: int
    files: tuple[tuple[str, int], ...]
    """Name and rows of each."""


def key_indexes(files: PaimonFiles) -> list[IndexInfo]:
    """The indexes that the options of a table ask for, and those that there are."""
    levels = _levels(files.state.entries)
    names = {one.id: one.name for one in files.schema.fields}
    found: dict[tuple[str, str], list[IndexEntry]] = {
        asked: [] for asked in _asked(files.options.given, files.schema.names)
    }
    for entry in files.state.indexes:
        number = (entry.global_index or {}).get("_INDEX_FIELD_ID")
        if number in names and (entry.global_index or {}).get("_SOURCE_META") is not None:
            found.setdefault((names[number], f"pk-{entry.index_type}"), []).append(entry)
    every = len(files.state.entries)
    return [_info(*kind, entries, levels, every) for kind, entries in sorted(found.items())]


def _asked(options: Mapping[str, str], columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    for key, value in options.items():
        if found := _OPTION.fullmatch(key):
            names = (name.strip() for name in value.split(","))
            yield from ((name, f"pk-{found[1]}") for name in names if name in columns)


def _levels(entries: Iterable[ManifestEntry]) -> dict[tuple[bytes, int, int], dict[str, int]]:
    """The files of each level of a bucket, with their rows."""
    levels: dict[tuple[bytes, int, int], dict[str, int]] = {}
    for one in entries:
        place = one.partition, one.bucket, one.file.level
        levels.setdefault(place, {})[one.file.name] = one.file.rows
    return levels


def _info(
    column: str,
    index_type: str,
    entries: Iterable[IndexEntry],
    levels: Mapping[tuple[bytes, int, int], Mapping[str, int]],
    every: int,
) -> IndexInfo:
    fresh = stale = damaged = size = rows = 0
    for entry in entries:
        source = _source((entry.global_index or {})["_SOURCE_META"])
        if source is None:
            damaged += 1
            continue
        live = levels.get((entry.partition, entry.bucket, source.level), {})
        if dict(source.files) == live:
            fresh, size, rows = fresh + len(live), size + entry.size, rows + sum(live.values())
        else:
            stale += sum(name in live for name, _ in source.files)
    absent = max(every - fresh - stale, 0)
    return IndexInfo(column, index_type, fresh, stale, absent, damaged, size, rows)


def _source(data: bytes) -> _Source | None:
    """What an entry says of its data files; None if that cannot be read."""
    try:
        version, level, count = _HEAD.unpack_from(data)
        if version != _VERSION or not 0 <= count <= len(data):
            return None
        files, at = [], _HEAD.size
        for _ in range(count):
            (length,) = _NAME.unpack_from(data, at)
            at += _NAME.size
            name = data[at : at + length].decode()
            (rows,) = _ROWS.unpack_from(data, at + length)
            files.append((name, rows))
            at += length + _ROWS.size
    except (struct.error, UnicodeDecodeError):
        return None
    return _Source(level, tuple(files)) if at == len(data) else None
