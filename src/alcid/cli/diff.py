"""Two index files of one kind: what only one has, and the first difference of what both have.

Contents are compared, not bytes: the order in which a writer put bitmaps or hashes, a version of a
format, the bits of a vector and compression make no difference.

What two files have that is not the same.

The first byte in which two sources differ, and the region that it lies in.

Which rows have another value, by two indexes of the same column.

Two file indexes: the same columns, the same rows for each value?

Two files of deletion vectors, hashes or sketches: the same positions, the same hashes?

Two Puffin files: the same blobs, with the same content?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from alcid._text import count_text
from alcid.cli.columns import IndexedColumns
from alcid.errors import FormatError, OptionError
from alcid.formats import puffin
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.deletion_vector.file import vector_places
from alcid.formats.file_index import READERS
from alcid.formats.file_index.bloom_filter import BloomFilterReader
from alcid.formats.file_index.container import Entry
from alcid.formats.file_index.keys import KeyType
from alcid.formats.file_index.reader import Selection
from alcid.formats.hash_index import HashIndex
from alcid.formats.puffin import Blob, PuffinReader
from alcid.formats.source import BytesSource, Section, Source
from alcid.formats.theta.sketch import ThetaSketch
from alcid.index.file_index import FileIndex
from alcid.inspect.byte_map import Region, draw_index, map_bytes
from alcid.inspect.byte_map.bundle import blob_drawer
from alcid.inspect.byte_map.kinds import Kind, opened
from alcid.inspect.byte_map.regions import key_text, value_text
from alcid.types import DataType

__all__ = [
    "ByteDifference",
    "DiffReport",
    "Difference",
    "Found",
    "RowValues",
    "compare_file_indexes",
    "compare_hash_indexes",
    "compare_positions",
    "compare_puffin_files",
    "compare_rows",
    "compare_sketches",
    "compare_theta_files",
    "compare_vector_files",
    "compare_vectors",
    "compared",
    "diff_files",
    "first_byte",
    "locate",
]

Found: TypeAlias = Literal["only in A", "only in B", "differs"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in both."""

    entry: str
    """The index, vector, blob or property, as `city, bitmap`."""
    found: Found
    detail: str = ""
    """Of what differs the first value and position."""

    def __str__(self) -> str:
        """As it is printed."""
        told = self.detail if self.found == "differs" and self.detail else self.found
        more = f", {self.detail}" if self.detail and self.found != "differs" else ""
        return f"{self.entry}: {told}{more}"


@dataclass(frozen=True, slots=True)
class ByteDifference:
    """The first byte that is not the same."""

    offset: int
    regions: tuple[str, ...]
    """Where it lies in A, from the largest region to the smallest, as far as that is known."""

    def __str__(self) -> str:
        """As it is printed."""
        place = f" ({' > '.join(self.regions)})" if self.regions else ""
        return f"bytes differ first at offset {self.offset}{place}"


@dataclass(frozen=True, slots=True)
class DiffReport:
    """Two files of one kind, compared."""

    a: str
    b: str
    kind: Kind
    sizes: tuple[int, int]
    differences: tuple[Difference, ...]
    first_byte: ByteDifference | None
    """None if all bytes are the same."""

    @property
    def is_same(self) -> bool:
        """True when both hold the same, in whatever bytes."""
        return not self.differences

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        first = self.first_byte
        return {
            "a": self.a,
            "b": self.b,
            "kind": str(self.kind),
            "sizes": list(self.sizes),
            "same": self.is_same,
            "identical": first is None,
            "differences": [
                {"entry": one.entry, "found": one.found, "detail": one.detail}
                for one in self.differences
            ],
            "first_byte": None
            if first is None
            else {"offset": first.offset, "regions": list(first.regions)},
        }

    def __str__(self) -> str:
        """Lines to read."""
        files = zip("AB", (self.a, self.b), self.sizes, strict=True)
        lines = [f"{letter}: {name}, {self.kind}, {size} bytes" for letter, name, size in files]
        lines.extend(map(str, self.differences))
        if self.first_byte is None:
            lines.append("the same, byte for byte")
        elif self.is_same:
            lines.append(f"same content; {self.first_byte}")
        else:
            lines.append(str(self.first_byte))
        return "\n".join(lines)


def compared(entry: str, name: str, a: object, b: object) -> list[Difference]:
    """The difference of a fact, if it is not the same in both.

    >>> [str(one) for one in compared("city, bitmap", "rows", 5, 6)]
    ['city, bitmap: rows 5 in A, 6 in B']
    """
    return [] if a == b else [Difference(entry, "differs", f"{name} {a} in A, {b} in B")]


_STEP = 1 << 20


def first_byte(a: Section, b: Section) -> int | None:
    """The offset of the first byte that is not the same, or where the shorter one ends.

    >>> from alcid.formats.source import BytesSource
    >>> first_byte(Section(BytesSource(b"abc")), Section(BytesSource(b"abd")))
    2
    """
    both = min(a.length, b.length)
    for start in range(0, both, _STEP):
        size = min(_STEP, both - start)
        left, right = (np.frombuffer(one.read(start, size), np.uint8) for one in (a, b))
        different = np.flatnonzero(left != right)
        if len(different):
            return start + int(different[0])
    return None if a.length == b.length else both


def locate(a: Section, b: Section, draw: Callable[[], Region]) -> ByteDifference | None:
    """The first byte that differs, with its place in what `draw` draws of A."""
    offset = first_byte(a, b)
    if offset is None:
        return None
    try:
        found = draw().at(a.start + offset)
    except FormatError:  # the comparison of contents says more
        found = ()
    return ByteDifference(a.start + offset, tuple(region.name for region in found[1:]))


class RowValues(Protocol):
    """An index that tells the value of every row."""

    row_count: int

    def contents(self) -> tuple[npt.NDArray[np.uint32], Any]:
        """Every row that has a key, and the keys."""

    def is_null(self) -> Selection:
        """Rows without a value."""


def compare_rows(entry: str, a: RowValues, b: RowValues, data_type: DataType) -> list[Difference]:
    """The first value whose rows are not the same, and the first of these rows."""
    found = compared(entry, "rows", a.row_count, b.row_count)
    count = max(a.row_count, b.row_count)
    left, right = (_by_row(index, count) for index in (a, b))
    only_one = pc.xor(pc.is_valid(left), pc.is_valid(right))
    unequal = pc.or_(only_one, pc.fill_null(pc.not_equal(left, right), False))
    rows = np.flatnonzero(unequal.to_numpy(zero_copy_only=False))
    sides = (("A", left), ("B", right))
    pairs = [
        (key, row, side)
        for side, values in sides
        for key, row in zip(values.take(pa.array(rows)).to_pylist(), rows.tolist(), strict=True)
        if key is not None
    ]
    if pairs:
        key, row, side = min(pairs)
        shown = key_text(key, data_type)
        more = f"; {len(rows)} rows differ" if len(rows) > 1 else ""
        found.append(Difference(entry, "differs", f"value {shown}: row {row} only in {side}{more}"))
    nulls = (index.is_null().rows for index in (a, b))
    return found or compare_positions(entry, "null: row", *nulls)


def _by_row(index: RowValues, count: int) -> Any:
    """The key of each row, null without one."""
    rows, keys = index.contents()
    places = np.full(count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    array = keys if isinstance(keys, pa.Array) else pa.array(keys)
    return array.take(pa.array(places, mask=places < 0))


def compare_positions(
    entry: str, what: str, a: BitMap | None, b: BitMap | None
) -> list[Difference]:
    """The first of the rows that only one of two sets has."""
    left, right = a or BitMap(), b or BitMap()
    different = left ^ right
    if not different:
        return []
    first = different[0]
    side = "A" if first in left else "B"
    more = f"; {len(different)} differ" if len(different) > 1 else ""
    return [Difference(entry, "differs", f"{what} {first} only in {side}{more}")]


_TYPE_OF_BSI = DataType.parse("BIGINT")  # its keys are integers, whatever the type
_ANY_KEYS = KeyType(8)


def compare_file_indexes(a: Source, b: Source, types: Mapping[str, DataType]) -> list[Difference]:
    """What is indexed in one only, and the first value of each index that differs."""
    left, right = (FileIndex.open(source, types, strict=True) for source in (a, b))
    mine, others = (_by_name(index) for index in (left, right))
    known = IndexedColumns.match((*left.entries, *right.entries), types).types
    found = compared("head", "redundant bytes", left.container.redundant, right.container.redundant)
    for name in dict.fromkeys((*mine, *others)):
        entry = ", ".join(name)
        if name not in others:
            found.append(Difference(entry, "only in A"))
        elif name not in mine:
            found.append(Difference(entry, "only in B"))
        else:
            one, other = (left, mine[name]), (right, others[name])
            found.extend(_compare_indexes(entry, one, other, known[mine[name]]))
    return found


def _by_name(index: FileIndex) -> dict[tuple[str, str], Entry]:
    return {(entry.column, entry.index_type): entry for entry in index.entries}


def _compare_indexes(
    name: str,
    a: tuple[FileIndex, Entry],
    b: tuple[FileIndex, Entry],
    data_type: DataType | None,
) -> list[Difference]:
    (left, mine), (right, other) = a, b
    if mine.is_empty or other.is_empty:
        return compared(name, "written", not mine.is_empty, not other.is_empty)
    sections = left.container.section(mine), right.container.section(other)
    if first_byte(*sections) is None:
        return []
    index_type = mine.index_type
    if index_type == "bloom-filter":
        readers = [BloomFilterReader(section, _ANY_KEYS) for section in sections]
        return _compare_filters(name, readers[0], readers[1])
    if index_type == "bsi" and data_type is None:
        data_type = _TYPE_OF_BSI
        opened = [READERS["bsi"](section, _ANY_KEYS) for section in sections]
    elif index_type in READERS and data_type is not None:
        opened = [left.reader(mine), right.reader(other)]
    else:
        first = locate(*sections, lambda: draw_index(index_type, sections[0], name, None))
        hint = f"; --type {mine.column}=TYPE compares values" if index_type in READERS else ""
        return [Difference(name, "differs", f"{first}{hint}")]
    one, another = (cast("RowValues", reader) for reader in opened)
    return compare_rows(name, one, another, data_type)


def _compare_filters(name: str, a: BloomFilterReader, b: BloomFilterReader) -> list[Difference]:
    found = compared(name, "hash functions", a.functions, b.functions)
    found += compared(name, "bits", a.bits, b.bits)
    if found:
        return found
    different = np.flatnonzero(np.unpackbits(a.filter ^ b.filter, bitorder="little"))
    bit = int(different[0])
    side = "A" if a.filter[bit >> 3] >> (bit & 7) & 1 else "B"
    more = f"; {len(different)} bits differ" if len(different) > 1 else ""
    return [Difference(name, "differs", f"bit {bit} set only in {side}{more}")]


def compare_vector_files(a: Source, b: Source, start: int) -> list[Difference]:
    """Vectors in the order of the files, which do not say whose they are."""
    found: list[Difference] = []
    pairs = zip_longest(_vectors(a, start), _vectors(b, start))
    for number, (left, right) in enumerate(pairs):
        entry = f"vector {number}"
        if left is None:
            found.append(Difference(entry, "only in B", count_text(len(right), "position")))
        elif right is None:
            found.append(Difference(entry, "only in A", count_text(len(left), "position")))
        else:
            found += compare_vectors(entry, left, right)
    return found


def _vectors(source: Source, start: int) -> list[DeletionVector]:
    whole = Section(source)
    return [DeletionVector.read(whole.section(*place)) for place in vector_places(whole, start)]


def compare_vectors(entry: str, a: DeletionVector, b: DeletionVector) -> list[Difference]:
    """The first position that only one has; 32 or 64 bits do not matter."""
    return [] if a == b else _first_of(entry, "position", a.to_numpy(), b.to_numpy())


def compare_hash_indexes(a: Source, b: Source) -> list[Difference]:
    """The first hash that only one has; their order does not matter."""
    left, right = (
        HashIndex.from_bytes(source.read(0, source.size), name=source.name) for source in (a, b)
    )
    return _first_of("hashes", "hash", left.hashes, right.hashes)


def compare_theta_files(a: Source, b: Source) -> list[Difference]:
    """Sketches in files of their own."""
    left, right = (
        ThetaSketch.from_bytes(source.read(0, source.size), name=source.name) for source in (a, b)
    )
    return compare_sketches("sketch", left, right)


def compare_sketches(entry: str, a: ThetaSketch, b: ThetaSketch) -> list[Difference]:
    """Theta, and the first hash that only one keeps."""
    if a == b:
        return []
    found = compared(entry, "theta", a.theta, b.theta)
    return found + _first_of(entry, "hash", a.hashes, b.hashes)


def _first_of(
    entry: str, what: str, a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]
) -> list[Difference]:
    different = np.setxor1d(a, b, assume_unique=True)
    if not len(different):
        return []
    first = different[0]
    side = "A" if np.isin(first, a) else "B"
    more = f"; {len(different)} differ" if len(different) > 1 else ""
    return [Difference(entry, "differs", f"{what} {first} only in {side}{more}")]


_NAMING = ("referenced-data-file", "column", "index-type")
"""Properties that say what a blob belongs to, beside its type and fields."""
_OF_THE_WRITER = ("created-by",)


def compare_puffin_files(a: Source, b: Source) -> list[Difference]:
    """Blobs by type, fields and what they belong to; places and compression do not matter."""
    with puffin.open(a) as left, puffin.open(b) as right:
        found = _compare_properties("file", left.properties, right.properties)
        mine, others = _blobs_by_name(left), _blobs_by_name(right)
        for name in dict.fromkeys((*mine, *others)):
            if name not in others:
                found.append(Difference(name, "only in A"))
            elif name not in mine:
                found.append(Difference(name, "only in B"))
            else:
                found += _compare_blobs(name, (left, mine[name]), (right, others[name]))
    return found


def _blobs_by_name(reader: PuffinReader) -> dict[str, Blob]:
    """The blobs by a name; a second one of the same name has a number."""
    named: dict[str, Blob] = {}
    seen: Counter[str] = Counter()
    for blob in reader.blobs:
        fields = f" of fields {', '.join(map(str, blob.fields))}" if blob.fields else ""
        owner = [blob.properties[name] for name in _NAMING if name in blob.properties]
        name = ", ".join((f"{blob.type}{fields}", *owner))
        seen[name] += 1
        named[name if seen[name] == 1 else f"{name}, number {seen[name]}"] = blob
    return named


def _compare_blobs(
    name: str, a: tuple[PuffinReader, Blob], b: tuple[PuffinReader, Blob]
) -> list[Difference]:
    (left, mine), (right, other) = a, b
    found = compared(name, "snapshot", mine.snapshot_id, other.snapshot_id)
    found += compared(name, "sequence number", mine.sequence_number, other.sequence_number)
    if mine.type == puffin.DELETION_VECTOR:
        vectors = left.read_deletion_vector(mine), right.read_deletion_vector(other)
        content = compare_vectors(name, *vectors)
    elif mine.type == puffin.THETA_SKETCH:
        content = compare_sketches(
            name, left.read_theta_sketch(mine), right.read_theta_sketch(other)
        )
    else:
        content = _compare_bytes(name, left.read(mine), right.read(other))
    return found + content + _compare_properties(name, mine.properties, other.properties)


def _compare_bytes(name: str, a: bytes, b: bytes) -> list[Difference]:
    """Content that is not looked into."""
    first = first_byte(Section(BytesSource(a)), Section(BytesSource(b)))
    if first is None or first == min(len(a), len(b)):
        return compared(name, "bytes", len(a), len(b))
    detail = f"byte {first} is {a[first]:02x} in A, {b[first]:02x} in B"
    return [Difference(name, "differs", detail)]


def _compare_properties(entry: str, a: dict[str, str], b: dict[str, str]) -> list[Difference]:
    found: list[Difference] = []
    for name in dict.fromkeys((*a, *b)):
        if name not in _OF_THE_WRITER:
            pair = (value_text(each.get(name)) for each in (a, b))
            found += compared(entry, f"property {name}", *pair)
    return found


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
