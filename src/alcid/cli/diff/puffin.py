"""Two Puffin files: the same blobs, with the same content?"""

from __future__ import annotations

from collections import Counter

from alcid.byte_map.values import value_text
from alcid.cli.diff.first_byte import first_byte
from alcid.cli.diff.report import Difference, compared
from alcid.cli.diff.sets import compare_sketches, compare_vectors
from alcid.formats import puffin
from alcid.formats.puffin import Blob, PuffinReader
from alcid.formats.source import BytesSource, Section, Source

__all__ = ["compare_puffin_files"]

_NAMING = ("referenced-data-file", "column", "index-type")
"""Properties that say what a blob belongs to, beside its type and fields."""
_OF_THE_WRITER = ("created-by",)


def compare_puffin_files(a: Source, b: Source) -> list[Difference]:
    """Blobs by type, fields and what they belong to; places and compression do not matter."""
    with puffin.open(a) as left, puffin.open(b) as right:
        found = _compare_properties("file", left.properties, right.properties)
        mine, others = _by_name(left), _by_name(right)
        for name in dict.fromkeys((*mine, *others)):
            if name not in others:
                found.append(Difference(name, "only in A"))
            elif name not in mine:
                found.append(Difference(name, "only in B"))
            else:
                found += _compare(name, (left, mine[name]), (right, others[name]))
    return found


def _by_name(reader: PuffinReader) -> dict[str, Blob]:
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


def _compare(
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
