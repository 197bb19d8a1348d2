"""What a hash index holds: hashes, and no more."""

from __future__ import annotations

from alcid.byte_map.kinds import Kind
from alcid.cli.inspect.listing import Facts, Listing
from alcid.formats.hash_index import HashIndex
from alcid.formats.source import Source

__all__ = ["inspect_hash_index"]


def inspect_hash_index(source: Source, limit: int | None) -> Listing:  # noqa: ARG001  # lists nothing
    """Count the hashes of a bucket."""
    index = HashIndex.from_bytes(source.read(0, source.size), name=source.name)
    facts: Facts = {
        "told_by": "its size only",  # nothing in the file says so
        "hashes": len(index),
        "duplicates": index.duplicates,
        "least": int(index.hashes[0]),
        "greatest": int(index.hashes[-1]),
    }
    return Listing(source.name, Kind.HASH_INDEX, source.size, facts)
