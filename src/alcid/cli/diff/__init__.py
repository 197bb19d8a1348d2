"""Two index files of one kind: what only one has, and the first difference of what both have.

Contents are compared, not bytes: the order in which a writer put bitmaps or hashes, a version of a
format, the bits of a vector and compression make no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from alcid.bundle.byte_regions import blob_drawer
from alcid.byte_map import map_bytes
from alcid.byte_map.kinds import Kind, opened
from alcid.cli.diff.file_index import compare_file_indexes
from alcid.cli.diff.first_byte import locate
from alcid.cli.diff.puffin import compare_puffin_files
from alcid.cli.diff.report import Difference, DiffReport
from alcid.cli.diff.sets import compare_hash_indexes, compare_theta_files, compare_vector_files
from alcid.errors import OptionError
from alcid.formats.source import Section, Source
from alcid.types import DataType

__all__ = ["DiffReport", "diff_files"]


def diff_files(a: str, b: str, types: Mapping[str, DataType]) -> DiffReport:
    """Compare two files.

    Args:
        a: The one.
        b: The other.
        types: Types of columns, as far as they are known: without, some indexes are compared as
            bytes.

    Raises:
        OptionError: They are of two kinds.
        FormatError: One is damaged.
    """
    with opened(a) as (left, kind), opened(b) as (right, other):
        if kind is not other:
            raise OptionError(f"{a} is a {kind}, {b} a {other}: expected two of one kind")
        draw_blob = blob_drawer(left) if kind is Kind.PUFFIN else None
        draw = partial(map_bytes, left, types, kind=kind, draw_blob=draw_blob)
        first = locate(Section(left), Section(right), draw)
        differences = _compare(kind, left, right, types)
        return DiffReport(a, b, kind, (left.size, right.size), tuple(differences), first)


def _compare(kind: Kind, a: Source, b: Source, types: Mapping[str, DataType]) -> list[Difference]:
    match kind:
        case Kind.FILE_INDEX:
            return compare_file_indexes(a, b, types)
        case Kind.PUFFIN:
            return compare_puffin_files(a, b)
        case Kind.HASH_INDEX:
            return compare_hash_indexes(a, b)
        case Kind.THETA_SKETCH:
            return compare_theta_files(a, b)
        case Kind.DELETION_VECTOR:
            return compare_vector_files(a, b, 0)
        case Kind.DELETION_VECTOR_FILE | Kind.DELTA_VECTOR_FILE:
            return compare_vector_files(a, b, 1)
