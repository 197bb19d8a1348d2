"""Reports on single index files: their contents, as text or a page, differences, and probes."""

from __future__ import annotations

from collections.abc import Mapping

from alcid.cli.files.contents import (
    Listing,
    inspect_deletion_vector,
    inspect_deletion_vectors,
    inspect_hash_index,
    inspect_puffin,
    inspect_theta,
)
from alcid.cli.files.file_index import FileIndexReport, inspect_file_index
from alcid.errors import OptionError
from alcid.inspect.byte_map.kinds import Kind, opened
from alcid.types import DataType

__all__ = ["FileIndexReport", "Listing", "inspect_file"]

_LISTERS = {
    Kind.DELETION_VECTOR: inspect_deletion_vector,
    Kind.DELETION_VECTOR_FILE: inspect_deletion_vectors,
    Kind.DELTA_VECTOR_FILE: inspect_deletion_vectors,
    Kind.HASH_INDEX: inspect_hash_index,
    Kind.PUFFIN: inspect_puffin,
    Kind.THETA_SKETCH: inspect_theta,
}


def inspect_file(
    path: str, types: Mapping[str, DataType], column: str | None, limit: int | None
) -> FileIndexReport | Listing:
    """Inspect a file, whose kind its first bytes tell.

    With `column`, only this column of a file index, and its values. `limit` is that of values,
    positions, vectors and blobs; None for all.
    """
    with opened(path) as (source, kind):
        if kind is Kind.FILE_INDEX:
            return inspect_file_index(source, types, column, limit)
        if column is not None:
            raise OptionError(f"--column: {path} is a {kind}, which has no columns")
        return _LISTERS[kind](source, limit)
