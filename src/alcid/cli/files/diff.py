"""Compare two index files of the same kind, for `alcid diff`.

Reports what only one file contains, the first difference in what both contain, and the first byte
that differs with the region around it. Contents are compared, not bytes: the order of bitmaps or
hashes, the format version, the width of a vector and compression make no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from alcid._arrays import UInt32Array
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
from alcid.tables.reports import Report
from alcid.types import DataType

Status: TypeAlias = Literal["only in A", "only in B", "differs"]


@dataclass(frozen=True, slots=True)
class Difference:
    """An index, vector, blob or property that differs."""

    entry: str
    """Its name, such as `city, bitmap`."""
    status: Status
    detail: str = ""
    """The first value and position that differ."""

    def __str__(self) -> str:
        """As it is printed."""
        if self.status == "differs":
            return f"{self.entry}: {self.detail or self.status}"
        return f"{self.entry}: {self.status}" + (f", {self.detail}" if self.detail else "")


@dataclass(frozen=True, slots=True)
class ByteDifference:
    """The first byte that differs."""

    offset: int
    regions: tuple[str, ...]
    """The regions around it in A, from the largest to the smallest, as far as they are known."""

    def __str__(self) -> str:
        """As it is printed."""
        regions = f" ({' > '.join(self.regions)})" if self.regions else ""
        return f"bytes differ first at offset {self.offset}{regions}"


@dataclass(frozen=True, slots=True)
class DiffReport(Report):
    """The differences of two files of the same kind."""

    a: str
    b: str
    kind: Kind
    sizes: tuple[int, int]
    differences: tuple[Difference, ...]
    first_byte: ByteDifference | None
    """None if all bytes are the same."""

    @property
    def is_same(self) -> bool:
        """Whether the contents are equal, even if the bytes differ."""
        return not self.differences

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        flags = {"same": self.is_same, "identical": self.first_byte is None}
        return {**Report.to_dict(self), "kind": str(self.kind), **flags}

    def lines(self) -> Iterator[str]:
        """The files, and their differences."""
        for letter, name, size in zip("AB", (self.a, self.b), self.sizes, strict=True):
            yield f"{letter}: {name}, {self.kind}, {size} bytes"
        yield from map(str, self.differences)
        if self.first_byte is None:
            yield "the same, byte for byte"
        else:
            yield f"same content; {self.first_byte}" if self.is_same else str(self.first_byte)


def compared(entry: str, name: str, a: object, b: object) -> list[Difference]:
    """The difference of a fact, if there is one.

    >>> [str(difference) for difference in compared("city, bitmap", "rows", 5, 6)]
    ['city, bitmap: rows 5 in A, 6 in B']
    """
    return [] if a == b else [Difference(entry, "differs", f"{name} {a} in A, {b} in B")]


_STEP = 1 << 20


def first_byte(a: Section, b: Section) -> int | None:
    """The offset of the first byte that differs, or the end of the shorter section.

    >>> from alcid.formats.source import BytesSource
    >>> first_byte(Section(BytesSource(b"abc")), Section(BytesSource(b"abd")))
    2
    """
    both = min(a.length, b.length)
    for start in range(0, both, _STEP):
        size = min(_STEP, both - start)
        left, right = (np.frombuffer(section.read(start, size), np.uint8) for section in (a, b))
        different = np.flatnonzero(left != right)
        if len(different):
            return start + int(different[0])
    return None if a.length == b.length else both


def locate(a: Section, b: Section, draw: Callable[[], Region]) -> ByteDifference | None:
    """The first byte that differs, with the regions around it in what `draw` draws of A."""
    offset = first_byte(a, b)
    if offset is None:
        return None
    try:
        regions = draw().at(a.start + offset)
    except FormatError:  # the comparison of contents says more
        regions = ()
    return ByteDifference(a.start + offset, tuple(region.name for region in regions[1:]))


class RowValues(Protocol):
    """An index with the value of every row."""

    row_count: int

    def contents(self) -> tuple[UInt32Array, Any]:
        """Every row that has a key, and the keys."""

    def is_null(self) -> Selection:
        """Rows without a value."""


def compare_rows(entry: str, a: RowValues, b: RowValues, data_type: DataType) -> list[Difference]:
    """The first value whose rows differ, and the first of these rows."""
    differences = compared(entry, "rows", a.row_count, b.row_count)
    count = max(a.row_count, b.row_count)
    left, right = (_by_row(index, count) for index in (a, b))
    one_sided = pc.xor(pc.is_valid(left), pc.is_valid(right))
    unequal = pc.or_(one_sided, pc.fill_null(pc.not_equal(left, right), False))
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
        differences.append(
            Difference(entry, "differs", f"value {shown}: row {row} only in {side}{more}")
        )
    nulls = (index.is_null().rows for index in (a, b))
    return differences or compare_positions(entry, "null: row", *nulls)


def _by_row(index: RowValues, count: int) -> Any:
    """The key of each row, null without one."""
    rows, keys = index.contents()
    positions = np.full(count, -1, np.int64)
    positions[rows] = np.arange(len(rows))
    array = keys if isinstance(keys, pa.Array) else pa.array(keys)
    return array.take(pa.array(positions, mask=positions < 0))


def compare_positions(
    entry: str, what: str, a: BitMap | None, b: BitMap | None
) -> list[Difference]:
    """The first row that is in only one of two sets."""
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
    """Indexes that only one file has, and the first value that differs of each other."""
    left, right = (FileIndex.open(source, types, strict=True) for source in (a, b))
    left_entries, right_entries = (_by_name(index) for index in (left, right))
    column_types = IndexedColumns.match((*left.entries, *right.entries), types).types
    differences = compared(
        "head", "redundant bytes", left.container.redundant, right.container.redundant
    )
    for name in dict.fromkeys((*left_entries, *right_entries)):
        entry = ", ".join(name)
        if name not in right_entries:
            differences.append(Difference(entry, "only in A"))
        elif name not in left_entries:
            differences.append(Difference(entry, "only in B"))
        else:
            left_index, right_index = (left, left_entries[name]), (right, right_entries[name])
            differences.extend(
                _compare_indexes(entry, left_index, right_index, column_types[left_entries[name]])
            )
    return differences


def _by_name(index: FileIndex) -> dict[tuple[str, str], Entry]:
    return {(entry.column, entry.index_type): entry for entry in index.entries}


def _compare_indexes(
    name: str, a: tuple[FileIndex, Entry], b: tuple[FileIndex, Entry], data_type: DataType | None
) -> list[Difference]:
    (left, left_entry), (right, right_entry) = a, b
    if left_entry.is_empty or right_entry.is_empty:
        return compared(name, "written", not left_entry.is_empty, not right_entry.is_empty)
    sections = left.container.section(left_entry), right.container.section(right_entry)
    if first_byte(*sections) is None:
        return []
    index_type = left_entry.index_type
    if index_type == "bloom-filter":
        readers = [BloomFilterReader(section, _ANY_KEYS) for section in sections]
        return _compare_filters(name, readers[0], readers[1])
    if index_type == "bsi" and data_type is None:
        data_type = _TYPE_OF_BSI
        opened = [READERS["bsi"](section, _ANY_KEYS) for section in sections]
    elif index_type in READERS and data_type is not None:
        opened = [left.reader(left_entry), right.reader(right_entry)]
    else:
        first = locate(*sections, lambda: draw_index(index_type, sections[0], name, None))
        hint = f"; --type {left_entry.column}=TYPE compares values" if index_type in READERS else ""
        return [Difference(name, "differs", f"{first}{hint}")]
    left_values, right_values = (cast("RowValues", reader) for reader in opened)
    return compare_rows(name, left_values, right_values, data_type)


def _compare_filters(name: str, a: BloomFilterReader, b: BloomFilterReader) -> list[Difference]:
    differences = compared(name, "hash functions", a.functions, b.functions)
    differences += compared(name, "bits", a.bits, b.bits)
    if differences:
        return differences
    different = np.flatnonzero(np.unpackbits(a.filter ^ b.filter, bitorder="little"))
    bit = int(different[0])
    side = "A" if a.filter[bit >> 3] >> (bit & 7) & 1 else "B"
    more = f"; {len(different)} bits differ" if len(different) > 1 else ""
    return [Difference(name, "differs", f"bit {bit} set only in {side}{more}")]


def compare_vector_files(a: Source, b: Source, start: int) -> list[Difference]:
    """Vectors in file order, since the files do not say which data file each belongs to."""
    differences: list[Difference] = []
    pairs = zip_longest(_vectors(a, start), _vectors(b, start))
    for number, (left, right) in enumerate(pairs):
        entry = f"vector {number}"
        if left is None:
            differences.append(Difference(entry, "only in B", count_text(len(right), "position")))
        elif right is None:
            differences.append(Difference(entry, "only in A", count_text(len(left), "position")))
        else:
            differences += compare_vectors(entry, left, right)
    return differences


def _vectors(source: Source, start: int) -> list[DeletionVector]:
    whole = Section(source)
    return [DeletionVector.read(whole.section(*extent)) for extent in vector_places(whole, start)]


def compare_vectors(entry: str, a: DeletionVector, b: DeletionVector) -> list[Difference]:
    """The first position that only one vector has; their width does not matter."""
    return [] if a == b else _first_of(entry, "position", a.to_numpy(), b.to_numpy())


def compare_hash_indexes(a: Source, b: Source) -> list[Difference]:
    """The first hash that only one index has; their order does not matter."""
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
    """Theta, and the first hash that only one sketch has."""
    if a == b:
        return []
    differences = compared(entry, "theta", a.theta, b.theta)
    return differences + _first_of(entry, "hash", a.hashes, b.hashes)


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
"""Properties that identify a blob, besides its type and fields."""
_WRITER_PROPERTIES = ("created-by",)


def compare_puffin_files(a: Source, b: Source) -> list[Difference]:
    """Blobs by type, fields and properties; offsets and compression do not matter."""
    with puffin.open(a) as left, puffin.open(b) as right:
        differences = _compare_properties("file", left.properties, right.properties)
        left_blobs, right_blobs = _blobs_by_name(left), _blobs_by_name(right)
        for name in dict.fromkeys((*left_blobs, *right_blobs)):
            if name not in right_blobs:
                differences.append(Difference(name, "only in A"))
            elif name not in left_blobs:
                differences.append(Difference(name, "only in B"))
            else:
                differences += _compare_blobs(
                    name, (left, left_blobs[name]), (right, right_blobs[name])
                )
    return differences


def _blobs_by_name(reader: PuffinReader) -> dict[str, Blob]:
    """The blobs by name; further ones of the same name get a number."""
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
    (left, left_blob), (right, right_blob) = a, b
    differences = compared(name, "snapshot", left_blob.snapshot_id, right_blob.snapshot_id)
    differences += compared(
        name, "sequence number", left_blob.sequence_number, right_blob.sequence_number
    )
    if left_blob.type == puffin.DELETION_VECTOR:
        vectors = left.read_deletion_vector(left_blob), right.read_deletion_vector(right_blob)
        content = compare_vectors(name, *vectors)
    elif left_blob.type == puffin.THETA_SKETCH:
        content = compare_sketches(
            name, left.read_theta_sketch(left_blob), right.read_theta_sketch(right_blob)
        )
    else:
        content = _compare_bytes(name, left.read(left_blob), right.read(right_blob))
    return (
        differences
        + content
        + _compare_properties(name, left_blob.properties, right_blob.properties)
    )


def _compare_bytes(name: str, a: bytes, b: bytes) -> list[Difference]:
    """Blobs of an unknown type."""
    first = first_byte(Section(BytesSource(a)), Section(BytesSource(b)))
    if first is None or first == min(len(a), len(b)):
        return compared(name, "bytes", len(a), len(b))
    detail = f"byte {first} is {a[first]:02x} in A, {b[first]:02x} in B"
    return [Difference(name, "differs", detail)]


def _compare_properties(entry: str, a: dict[str, str], b: dict[str, str]) -> list[Difference]:
    differences: list[Difference] = []
    for name in dict.fromkeys((*a, *b)):
        if name not in _WRITER_PROPERTIES:
            pair = (value_text(each.get(name)) for each in (a, b))
            differences += compared(entry, f"property {name}", *pair)
    return differences


def diff_files(a: str, b: str, types: Mapping[str, DataType]) -> DiffReport:
    """Compare two files.

    Some indexes of columns without a type in `types` are compared as bytes.

    Raises:
        OptionError: The files are of different kinds.
        FormatError: A file is damaged.
    """
    with opened(a) as (left, kind), opened(b) as (right, other):
        if kind is not other:
            raise OptionError(f"{a} is a {kind}, {b} a {other}: expected two of the same kind")
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
