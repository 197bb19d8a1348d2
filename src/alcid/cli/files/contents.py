"""Contents of index files other than file indexes, for `alcid inspect`.

A `Listing` has facts about the file and about each item in it: the vectors of a deletion vector
file, or the blobs of a Puffin file, of which sketches, vectors and Alcid's own bundles are decoded.
Hash indexes and single theta sketches have no items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeAlias

import numpy as np

from alcid.errors import AlcidError, FormatError, LimitError, UnsupportedError
from alcid.formats import puffin
from alcid.formats.cursor import Cursor
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.deletion_vector.file import VERSION, range_length, vector_places
from alcid.formats.deletion_vector.vector import AROUND, MAGICS
from alcid.formats.hash_index import HashIndex
from alcid.formats.puffin import Blob, PuffinReader
from alcid.formats.source import Section, Source
from alcid.formats.theta.sketch import ThetaSketch
from alcid.index.bundle import Bundle, PayloadKind
from alcid.index.bundle.format import BUNDLE, DIRECTORY, FILES, VERSION_PROPERTY
from alcid.index.bundle.payloads import check_blocks
from alcid.inspect.byte_map.kinds import Kind, identify
from alcid.inspect.byte_map.regions import Value

Facts: TypeAlias = dict[str, Value]
State: TypeAlias = Literal["ok", "empty", "unknown", "damaged"]
"""empty: nothing was written, for a file without rows. unknown: a type of another writer."""


@dataclass(frozen=True, slots=True)
class Item:
    """A vector or blob in a file."""

    columns: Facts
    """Facts that every item has, shown as columns."""
    facts: Facts = field(default_factory=dict)
    """Other facts about this item."""
    properties: dict[str, str] = field(default_factory=dict)
    """Properties that its writer set."""
    problem: str | None = None
    is_known: bool = True
    """False for a type of another writer, which is not decoded."""

    @property
    def state(self) -> State:
        """Whether it was decoded."""
        if self.problem is not None:
            return "damaged"
        return "ok" if self.is_known else "unknown"


@dataclass(frozen=True, slots=True)
class Listing:
    """A file and the items in it."""

    file: str
    kind: Kind
    size: int
    head: Facts
    properties: dict[str, str] = field(default_factory=dict)
    things: str | None = None
    """What the items are, in the plural; None for a file without items."""
    items: tuple[Item, ...] = ()
    count: int = 0
    """All items, of which `items` may have only the first."""
    damaged: int = 0
    """Damaged items, shown or not."""

    @classmethod
    def of(
        cls,
        source: Source,
        kind: Kind,
        head: Facts,
        things: str,
        items: Iterable[Item],
        limit: int | None,
        properties: dict[str, str] | None = None,
    ) -> Listing:
        """Collect the first items and only count the others."""
        remaining = iter(items)
        shown = tuple(islice(remaining, limit))
        count, damaged = len(shown), sum(item.state == "damaged" for item in shown)
        for item in remaining:
            count += 1
            damaged += item.state == "damaged"
        return cls(
            source.name, kind, source.size, head, properties or {}, things, shown, count, damaged
        )

    @property
    def truncated(self) -> bool:
        """True when `items` has not all of them."""
        return self.count > len(self.items)

    @property
    def is_damaged(self) -> bool:
        """True when any item is."""
        return self.damaged > 0


def problem_of(error: AlcidError, file: str | None = None) -> str:
    """The message of an error without the file, which the report names already."""
    file = getattr(error, "file", None) if file is None else file
    return str(error).removeprefix(f"{file}: ").removeprefix(f"{file}, ")


BlobFacts: TypeAlias = Callable[[Blob], "Facts | None"]
"""Facts about a blob; None if it is not a blob of a bundle. Raises for a damaged one."""


def inspect_bundle(source: Source, reader: PuffinReader) -> BlobFacts:
    """A function that gives facts about the blobs of a bundle, after checking their checksums."""
    if VERSION_PROPERTY not in reader.properties:
        return lambda _: None
    try:
        bundle = Bundle.open(source)
    except UnsupportedError:  # of a later version
        return lambda _: None
    except FormatError as error:
        problem = error
        return lambda blob: _refuse(blob, problem)

    def facts(blob: Blob) -> Facts | None:
        match blob.type:
            case type_ if type_ == FILES:
                return {"files": len(bundle.files), "rows": int(np.sum(bundle.files.rows))}
            case type_ if type_ == DIRECTORY:
                return {"kinds": sum(bundle.series(kind) is not None for kind in bundle.kinds)}
            case type_ if type_ == BUNDLE:
                return {"bundle_version": bundle.version}
        kind = PayloadKind.of_blob(blob.type, blob.properties)
        return None if kind is None else _payload_facts(bundle, kind)

    return facts


def _refuse(blob: Blob, problem: FormatError) -> Facts | None:
    """Report the damage on the footer of a bundle; the other blobs have no facts without it."""
    if blob.type == BUNDLE:
        raise problem
    return None


def _payload_facts(bundle: Bundle, kind: PayloadKind) -> Facts | None:
    series = bundle.series(kind)
    if series is None:
        return None
    for entry in range(len(series.directory)):
        stored = series.stored(entry)
        if stored.length:
            check_blocks(
                stored.source.read(stored.offset, stored.length), stored, series.name(entry)
            )
    return {"payload_bytes": int(np.sum(series.directory.lengths))}


_MOST_LISTED = 8


def inspect_deletion_vectors(source: Source, limit: int | None) -> Listing:
    """An index file of Paimon, or a file of Delta's: a version, then vectors back to back."""
    section = Section(source)
    Cursor(section).version("deletion vector file", VERSION)
    vectors = _vectors(section, 1)
    head = Facts(version=VERSION)
    return Listing.of(source, identify(source), head, "vectors", vectors, limit)


def inspect_deletion_vector(source: Source, limit: int | None) -> Listing:
    """A single vector, as in an index file or a Puffin blob."""
    vectors = _vectors(Section(source), 0)
    return Listing.of(source, Kind.DELETION_VECTOR, Facts(), "vectors", vectors, limit)


def vector_facts(vector: DeletionVector) -> Facts:
    """How many rows are deleted, and where."""
    few = vector.cardinality <= _MOST_LISTED
    return {
        "cardinality": vector.cardinality,
        "first": vector.first,
        "last": vector.last,
        "positions": tuple(vector) if few else None,
    }


def _vectors(section: Section, offset: int) -> Iterator[Item]:
    """The vectors one after the other, as far as their lengths can be followed."""
    try:
        for extent in vector_places(section, offset):
            yield _inspect_vectors(section.section(*extent), extent[0])
            offset = sum(extent)
    except FormatError as error:  # the start of the next one is unknown
        yield Item(_columns(offset, section.length - offset), problem=problem_of(error))


def _inspect_vectors(section: Section, offset: int) -> Item:
    bits = MAGICS.get(section.read(4, 4))
    columns = _columns(offset, section.length)
    columns["crc"] = section.read(section.length - 4, 4).hex()
    if bits is not None:
        columns["kind"] = f"{bits}-bit"
        columns["length"] = range_length(bits, section.length - AROUND)
    try:
        vector = DeletionVector.read(section)
    except FormatError as error:
        return Item(columns, problem=problem_of(error))
    return Item(columns, vector_facts(vector))


def _columns(offset: int, size: int) -> Facts:
    """The bytes of a vector; `length` is that of the manifest, which leaves out a part of them."""
    return {"offset": offset, "bytes": size, "length": None, "kind": None, "crc": None}


def inspect_hash_index(source: Source, limit: int | None) -> Listing:  # noqa: ARG001  # lists nothing
    """Count the hashes of a bucket."""
    index = HashIndex.from_bytes(source.read(0, source.size), name=source.name)
    facts: Facts = {
        "identified_by": "its size only",  # it has no magic number
        "hashes": len(index),
        "duplicates": index.duplicates,
        "min": int(index.hashes[0]),
        "max": int(index.hashes[-1]),
    }
    return Listing(source.name, Kind.HASH_INDEX, source.size, facts)


def inspect_theta(source: Source, limit: int | None) -> Listing:  # noqa: ARG001  # lists nothing
    """A compact sketch in a file of its own."""
    sketch = ThetaSketch.from_bytes(source.read(0, source.size), name=source.name)
    return Listing(source.name, Kind.THETA_SKETCH, source.size, theta_facts(sketch))


def theta_facts(sketch: ThetaSketch) -> Facts:
    """The estimate, theta and the number of hashes."""
    return {
        "estimate": sketch.estimate,
        "ndv": sketch.ndv,
        "theta": sketch.theta,
        "hashes": len(sketch),
    }


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
                bundle_facts = bundle(blob)
                if bundle_facts is None:
                    return Item(columns, properties=blob.properties, is_known=False)
                facts = bundle_facts
    except (FormatError, LimitError) as error:
        problem = problem_of(error, reader.name)
        return Item(columns, properties=blob.properties, problem=problem)
    return Item(columns, facts, blob.properties)
