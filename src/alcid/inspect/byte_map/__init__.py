"""The byte map of an index file: a tree of named regions that says what each byte means.

| module       |                                                                        |
|--------------|------------------------------------------------------------------------|
| `regions`    | regions, and fields that are named while a cursor reads over them      |
| `kinds`      | the kind of a file, by its first bytes                                 |
| `file_index` | Paimon's file index                                                    |
| `blobs`      | Puffin files, deletion vectors, hash indexes, theta sketches           |
| `bundle`     | Alcid's own blobs in Puffin files                                      |

Offsets and lengths come from the readers of `alcid.formats`, which check them: whatever a reader
refuses is drawn as one damaged region.
"""

from __future__ import annotations

from collections.abc import Mapping

from alcid.formats.source import Section, Source
from alcid.inspect.byte_map.blobs import (
    DrawBlob,
    draw_hash_index,
    draw_puffin,
    draw_theta,
    draw_vector,
    draw_vector_file,
)
from alcid.inspect.byte_map.file_index import draw_file_index, draw_index
from alcid.inspect.byte_map.kinds import Kind, identify
from alcid.inspect.byte_map.regions import Region
from alcid.types import DataType

__all__ = ["Kind", "Region", "draw_index", "identify", "map_bytes"]


def map_bytes(
    source: Source,
    types: Mapping[str, DataType] | None = None,
    *,
    kind: Kind | None = None,
    draw_blob: DrawBlob | None = None,
) -> Region:
    """The regions of a whole index file.

    Without the type of a column some indexes are only drawn as a whole. `draw_blob` draws blobs of
    a Puffin file whose type is not one of `alcid.formats`.

    Raises:
        FormatError: The file is of an unknown kind, or its header is damaged.

    >>> from alcid.formats.source import BytesSource
    >>> region = map_bytes(BytesSource(bytes.fromhex("01030300001e0000"), "empty.theta"))
    >>> [(part.name, part.note) for part in region.parts][1:3]
    [('version', '3'), ('family', '3')]
    """
    match identify(source) if kind is None else kind:
        case Kind.FILE_INDEX:
            return draw_file_index(source, types or {})
        case Kind.DELETION_VECTOR_FILE | Kind.DELTA_VECTOR_FILE:
            return draw_vector_file(source)
        case Kind.HASH_INDEX:
            return draw_hash_index(source)
        case Kind.PUFFIN:
            return draw_puffin(source, draw_blob)
        case Kind.DELETION_VECTOR:
            return draw_vector(Section(source), source.name)
        case Kind.THETA_SKETCH:
            return draw_theta(Section(source), source.name)
