"""The deletion vectors of a bucket, and the hashes of its keys: one index file of each kind."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile
from alcid.formats.hash_index import HashIndex
from alcid.paimon_metadata.index_manifest import DELETION_VECTORS, HASH, IndexEntry
from alcid.tables.paimon.keyed.bucket import Bucket
from alcid.tables.paimon.keyed.changes import KeyedTable

__all__ = ["index_file_path", "read_hashes", "read_vectors", "write_hashes", "write_vectors"]


def index_file_path(keyed: KeyedTable, bucket: Bucket, entry: IndexEntry) -> str:
    """Where an index file of a bucket lies, below the folder of the table."""
    return bucket.index_path(entry, beside_data=keyed.options.index_file_in_data_file_dir)


def read_vectors(keyed: KeyedTable, bucket: Bucket) -> dict[str, DeletionVector]:
    """The vectors of live files, by the names of these.

    Raises:
        FormatError: One is damaged, or of rows that its file does not have, or a file has two.
    """
    rows = {one.file.name: one.file.rows for one in bucket.files}
    found: dict[str, DeletionVector] = {}
    for entry in bucket.vectors:
        ranges = [one for one in entry.ranges or () if one.data_file in rows]
        if not ranges:
            continue
        path = index_file_path(keyed, bucket, entry)
        with DeletionVectorFile.open(keyed.storage.source(path, entry.size)) as opened:
            vectors = opened.read_all(ranges)
        for name, vector in vectors.items():
            if name in found:
                raise FormatError(f"two deletion vectors of {name}", file=path)
            if vector.last is not None and vector.last >= rows[name]:
                raise FormatError(
                    f"deleted row of {name}",
                    file=path,
                    found=vector.last,
                    expected=f"below {rows[name]}",
                )
            found[name] = vector
    return found


def write_vectors(
    keyed: KeyedTable, bucket: Bucket, vectors: Mapping[str, DeletionVector]
) -> IndexEntry | None:
    """Write all vectors of a bucket as one file; None if there is none: no file is written then."""
    wide = DeletionVector(bits=64 if keyed.options.bitmap64 else None)
    kept = {name: vector | wide for name, vector in vectors.items() if vector}
    if not kept:
        return None
    written = DeletionVectorFile.write(kept)
    entry = IndexEntry(
        *bucket.place,
        DELETION_VECTORS,
        _new_name(),
        len(written.data),
        len(kept),
        written.ranges,
    )
    keyed.storage.put(index_file_path(keyed, bucket, entry), written.data)
    return entry


def read_hashes(keyed: KeyedTable, bucket: Bucket) -> HashIndex:
    """The hashes of all keys of a bucket."""
    known = HashIndex()
    for entry in bucket.hashes:
        source = keyed.storage.source(index_file_path(keyed, bucket, entry), entry.size)
        known |= HashIndex.from_bytes(source.read(0, source.size), name=source.name)
    return known


def write_hashes(keyed: KeyedTable, bucket: Bucket, hashes: HashIndex) -> IndexEntry:
    """Write the hashes of all keys of a bucket."""
    data = hashes.to_bytes()
    entry = IndexEntry(*bucket.place, HASH, _new_name(), len(data), len(hashes))
    keyed.storage.put(index_file_path(keyed, bucket, entry), data)
    return entry


def _new_name() -> str:
    return f"index-{uuid.uuid4()}-0"
