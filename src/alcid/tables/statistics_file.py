"""The statistics of a table, as a file beside its bundles.

    _alcid/statistics-20250801T093000.123456Z-5f1e0c7ab2d4.puffin

It is a Puffin file with a theta sketch for each column; properties of a blob are `column`, `type`,
`ndv` and `nulls`. Those of the file say which state of the table it is of:

    alcid.files     how many data files
    alcid.rows      their rows
    alcid.listing   SHA-256 of path, size and version of each, in the order of paths, each followed
                    by a zero byte; of a Paimon table the version says where its deleted rows stand
    alcid.hashes    the first six bytes of the SHA-256 of each alone, in Base64

By the last it is found which files have come since; that no other change was made, the SHA-256 of
the others shows.
"""

from __future__ import annotations

import hashlib
import io
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from alcid.errors import FileGoneError, FormatError, LimitError, UnsupportedError
from alcid.formats.puffin import THETA_SKETCH, PuffinReader, create
from alcid.formats.puffin.writer import DISTINCT_VALUES, created_by
from alcid.formats.theta import ThetaSketch
from alcid.storage import Listing
from alcid.tables.bundle_folder import BundleFolder, new_name, written_at
from alcid.tables.column_counts import ColumnCount, KnownCounts
from alcid.tables.data_files import take_files
from alcid.tables.leftovers import STATISTICS_PREFIX

__all__ = ["counts_table", "known_counts", "read_stats", "write_stats"]

_FILES, _ROWS, _DIGEST = "alcid.files", "alcid.rows", "alcid.listing"
_HASHES, _HASH = "alcid.hashes", 6
_COLUMN, _TYPE, _NULLS = "column", "type", "nulls"
_DAMAGE = FileGoneError, FormatError, LimitError, UnsupportedError, KeyError, ValueError
_SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("type", pa.string()),
        ("ndv", pa.int64()),
        ("rows", pa.int64()),
        ("nulls", pa.int64()),
    ]
)


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
        _HASHES: b64encode(b"".join(_hashes(listing))).decode(),
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
    folder.write(STATISTICS_PREFIX + new_name(), data.getvalue())


def read_stats(folder: BundleFolder, listing: Listing) -> pa.Table | None:
    """What was counted last, if it is of the files that there are now; else None."""
    try:
        reader = _newest(folder)
        if reader is None or reader.properties.get(_DIGEST) != _digest(listing):
            return None
        rows = int(reader.properties[_ROWS])
        counted = [blob.properties for blob in reader.blobs if blob.type == THETA_SKETCH]
        return _table(
            [
                (one[_COLUMN], one[_TYPE], int(one[DISTINCT_VALUES]), rows, int(one[_NULLS]))
                for one in counted
            ]
        )
    except _DAMAGE:  # as if it were not there
        return None


def known_counts(folder: BundleFolder, listing: Listing) -> KnownCounts | None:
    """What was counted last, if all the files that it is of are there as they were; else None."""
    if listing.versions.null_count:  # a file may have changed without anyone being told
        return None
    try:
        reader = _newest(folder)
        if reader is None:
            return None
        told = b64decode(reader.properties[_HASHES])
        before = {told[at : at + _HASH] for at in range(0, len(told), _HASH)}
        is_new = np.array([one not in before for one in _hashes(listing)], bool)
        if _digest(take_files(listing, np.flatnonzero(~is_new))) != reader.properties[_DIGEST]:
            return None
        counts = [
            ColumnCount(
                blob.properties[_COLUMN],
                blob.properties[_TYPE],
                ThetaSketch.from_bytes(reader.read(blob)),
                int(blob.properties[_NULLS]),
                blob.fields[0] if blob.fields else None,
            )
            for blob in reader.blobs
            if blob.type == THETA_SKETCH
        ]
    except _DAMAGE:
        return None
    return KnownCounts(is_new, {one.column: one for one in counts})


def _newest(folder: BundleFolder) -> PuffinReader | None:
    """The newest file, if there is any."""
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
    return PuffinReader(folder.storage.source(path, sizes[path]))


def _digest(listing: Listing) -> str:
    """What is the same for the same files."""
    digest = hashlib.sha256()
    for file in _described(listing):
        digest.update(file)
    return digest.hexdigest()


def _hashes(listing: Listing) -> list[bytes]:
    """What tells the files apart, but for an unlikely chance."""
    return [hashlib.sha256(file).digest()[:_HASH] for file in _described(listing)]


def _described(listing: Listing) -> Iterator[bytes]:
    """Path, size and version of each file."""
    columns = listing.paths.to_pylist(), listing.sizes.tolist(), listing.versions.to_pylist()
    for path, size, version in zip(*columns, strict=True):
        yield f"{path}\0{size}\0{version}\0".encode()


def _table(rows: Sequence[tuple[str, str, int, int, int]]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(_SCHEMA.names, row, strict=True)) for row in rows], schema=_SCHEMA
    )
