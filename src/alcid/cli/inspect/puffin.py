"""What a Puffin file holds: its blobs, and for the known types what they say."""

from __future__ import annotations

from alcid.byte_map.kinds import Kind
from alcid.cli.inspect.bundle import BlobFacts, inspect_bundle
from alcid.cli.inspect.deletion_vectors import vector_facts
from alcid.cli.inspect.listing import Facts, Item, Listing, problem_of
from alcid.cli.inspect.theta import theta_facts
from alcid.errors import FormatError, LimitError
from alcid.formats import puffin
from alcid.formats.puffin import Blob, PuffinReader
from alcid.formats.source import Source

__all__ = ["inspect_puffin"]


def inspect_puffin(source: Source, limit: int | None) -> Listing:
    """List the blobs in the order of the footer."""
    with puffin.open(source) as reader:
        head: Facts = {"footer_bytes": reader.footer_size}
        bundle = inspect_bundle(source, reader)
        blobs = (_inspect(reader, blob, bundle) for blob in reader.blobs)
        return Listing.of(source, Kind.PUFFIN, head, "blobs", blobs, limit, reader.properties)


def _inspect(reader: PuffinReader, blob: Blob, bundle: BlobFacts) -> Item:
    columns: Facts = {
        "type": blob.type,
        "fields": blob.fields,
        "snapshot_id": blob.snapshot_id,
        "sequence_number": blob.sequence_number,
        "offset": blob.offset,
        "bytes": blob.length,
        "codec": blob.codec,
    }
    try:
        match blob.type:
            case puffin.DELETION_VECTOR:
                facts = vector_facts(reader.read_deletion_vector(blob))
            case puffin.THETA_SKETCH:
                facts = theta_facts(reader.read_theta_sketch(blob))
            case _:
                found = bundle(blob)
                if found is None:
                    return Item(columns, properties=blob.properties, known=False)
                facts = found
    except (FormatError, LimitError) as error:
        problem = problem_of(error, reader.name)
        return Item(columns, properties=blob.properties, problem=problem)
    return Item(columns, facts, blob.properties)
