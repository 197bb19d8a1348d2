"""The statistics of a table, as a file beside its bundles.

    _alcid/statistics-20250801T093000.123456Z-5f1e0c7ab2d4.puffin

It is a Puffin file with a theta sketch for each column; properties of a blob are `column`, `type`,
`ndv` and `nulls`. Those of the file say which state of the table it is of:

    alcid.files     how many data files
    alcid.rows      their rows
    alcid.listing   SHA-256 of path, size and version of each, in the order of paths, each followed
                    by a zero byte; of a Paimon table the version says where its deleted rows stand
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from alcid.errors import FormatError, LimitError
from alcid.formats.puffin import THETA_SKETCH, PuffinReader, create
from alcid.formats.puffin.writer import DISTINCT_VALUES, created_by
from alcid.formats.theta import ThetaSketch
from alcid.storage import Listing
from alcid.tables.bundle_folder import BundleFolder, new_name, written_at
from alcid.tables.leftovers import STATISTICS_PREFIX

__all__ = ["ColumnCount", "counts_table", "read_stats", "write_stats"]

_FILES, _ROWS, _DIGEST = "alcid.files", "alcid.rows", "alcid.listing"
_COLUMN, _TYPE, _NULLS = "column", "type", "nulls"
_SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("type", pa.string()),
        ("ndv", pa.int64()),
        ("rows", pa.int64()),
        ("nulls", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class ColumnCount:
    """What was counted of a column."""

    column: str
    type: str
    sketch: ThetaSketch
    nulls: int
    field: int | None = None
    """The id of the column, where there are such."""


def counts_table(rows: int, counts: Iterable[ColumnCount]) -> pa.Table:
    """What was counted, as a user sees it."""
    return _table([(one.column, one.type, one.sketch.ndv, rows, one.nulls) for one in counts])


def write_stats(
    folder: BundleFolder,
    listing: Listing,
    rows: int,
    counts: Iterable[ColumnCount],
    *,
    snapshot_id: int = -1,
) -> None:
    """Keep what was counted of the files of a listing, which are those of a snapshot, if any."""
    properties = {
        "created-by": created_by(),
        _FILES: str(len(listing)),
        _ROWS: str(rows),
        _DIGEST: _digest(listing),
    }
    data = io.BytesIO()
    with create(data, properties=properties) as writer:
        for one in counts:
            told = {_COLUMN: one.column, DISTINCT_VALUES: str(one.sketch.ndv)}
            told |= {_TYPE: one.type, _NULLS: str(one.nulls)}
            writer.add(
                THETA_SKETCH,
                one.sketch.to_bytes(),
                fields=() if one.field is None else (one.field,),
                snapshot_id=snapshot_id,
                properties=told,
            )
    folder.storage.put(folder.path(STATISTICS_PREFIX + new_name()), data.getvalue())


def read_stats(folder: BundleFolder, listing: Listing) -> pa.Table | None:
    """What was counted last, if it is of the files that there are now; else None."""
    found = folder.storage.list(folder.under, suffix=".puffin")
    sizes = dict(zip(found.paths.to_pylist(), found.sizes.tolist(), strict=True))
    names = sorted(
        name
        for name in (path.rpartition("/")[2] for path in sizes)
        if name.startswith(STATISTICS_PREFIX) and folder.path(name) in sizes
        if written_at(name.removeprefix(STATISTICS_PREFIX)) is not None
    )
    if not names:
        return None
    path = folder.path(names[-1])
    try:
        reader = PuffinReader(folder.storage.source(path, sizes[path]))
        if reader.properties.get(_DIGEST) != _digest(listing):
            return None
        rows = int(reader.properties[_ROWS])
        counted = [blob.properties for blob in reader.blobs if blob.type == THETA_SKETCH]
        return _table(
            [
                (one[_COLUMN], one[_TYPE], int(one[DISTINCT_VALUES]), rows, int(one[_NULLS]))
                for one in counted
            ]
        )
    except (FormatError, LimitError, KeyError, ValueError):  # damaged: as if it were not there
        return None


def _digest(listing: Listing) -> str:
    """What is the same for the same files."""
    columns = listing.paths.to_pylist(), listing.sizes.tolist(), listing.versions.to_pylist()
    digest = hashlib.sha256()
    for path, size, version in zip(*columns, strict=True):
        digest.update(f"{path}\0{size}\0{version}\0".encode())
    return digest.hexdigest()


def _table(rows: Sequence[tuple[str, str, int, int, int]]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(_SCHEMA.names, row, strict=True)) for row in rows], schema=_SCHEMA
    )
