"""The names of the fields of small files, and their displayed values."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from alcid import DeletionVector, FileIndex, ThetaSketch
from alcid.errors import FormatError
from alcid.formats.source import BytesSource
from alcid.inspect.byte_map import Region, map_bytes
from alcid.testing.faults import Damage, flips, truncations
from alcid.types import DataType
from tests.inspect.byte_map.make_diagrams import FOLDER, SAMPLES, diagram

CITIES = pa.table({"city": ["Graz", "Linz", "Graz", None]})
STRING = {"city": DataType.parse("STRING")}


def lines(region: Region, level: int = 0) -> Iterator[str]:
    for part in region.parts:
        yield f"{' ' * level}{part.offset}+{part.length} {part.name}: {part.note}"
        yield from lines(part, level + 1)


def test_a_bitmap_index_is_drawn_field_by_field() -> None:
    options = {"file-index.bitmap.columns": "city", "file-index.bitmap.city.version": "1"}
    data = FileIndex.build(CITIES, options).to_bytes()
    drawn = map_bytes(BytesSource(data, "a.index"), STRING)
    assert list(lines(drawn)) == [
        "0+50 head: 1 column",
        " 0+8 magic: 1493475289347502",
        " 8+4 version: 1",
        " 12+4 head length: 50",
        " 16+4 columns: 1",
        " 20+26 city: column 0",
        "  20+6 column: city",
        "  26+4 indexes: 1",
        "  30+16 bitmap: ",
        "   30+8 index type: bitmap",
        "   38+4 start: 50",
        "   42+4 length: 58",
        " 46+4 redundant bytes: 0",
        "50+58 bitmap of city: version 1, 4 rows, 2 values",
        " 50+14 head: ",
        "  50+1 version: 1",
        "  51+4 rows: 4",
        "  55+4 distinct values: 2",
        "  59+1 has nulls: 1",
        "  60+4 null rows: row 3",
        " 64+24 dictionary: 2 values",
        "  64+12 'Graz': bitmap at 0",
        "   64+8 key: 'Graz'",
        "   72+4 rows: bitmap at 0",
        "  76+12 'Linz': row 1",
        "   76+8 key: 'Linz'",
        "   84+4 rows: row 1",
        " 88+20 bitmaps: 1 bitmap",
        "  88+20 'Graz': 2 rows: 0, 2",
        "   88+4 cookie: 12346",
        "   92+4 containers: 1",
        "   96+4 upper halves and counts - 1: 1 pair",
        "   100+4 offsets of containers: 1 offset",
        "   104+4 array, upper half 0: 2 rows: 0, 2",
    ]


def test_without_the_type_of_a_column_its_keys_are_one_region() -> None:
    data = FileIndex.build(CITIES, {"file-index.bitmap.columns": "city"}).to_bytes()
    (bitmap,) = map_bytes(BytesSource(data)).parts[1:]
    assert [part.name for part in bitmap.parts] == ["head", "dictionary and bitmaps"]


def test_a_vector_with_runs_and_a_far_position() -> None:
    data = DeletionVector([*range(100), 1 << 32], bits=64).to_bytes()
    drawn = map_bytes(BytesSource(data, "a vector"))
    assert drawn.note == "64 bits, 101 positions"
    leaves = {leaf.name: leaf.note for leaf in drawn.leaves()}
    assert leaves["runs, upper half 0"] == "100 positions: 0 to 99"
    assert leaves["array, upper half 0"] == "1 position: 0"
    assert leaves["CRC-32"] == data[-4:].hex()
    assert [part.name for part in drawn.parts][3:5] == [
        "positions from 0",
        "positions from 4,294,967,296",
    ]


def test_a_sketch_with_theta() -> None:
    data = ThetaSketch().update(pa.array(range(10_000))).to_bytes()
    drawn = map_bytes(BytesSource(data, "a sketch"))
    leaves = {leaf.name: leaf.note for leaf in drawn.leaves()}
    kept = int(leaves["hashes"])
    assert leaves["words before hashes or count"] == "3"
    assert drawn.note == f"{kept:,} hashes"
    assert f"... {kept - 12:,} more hashes" in leaves


def damages(name: str) -> Iterator[Damage]:
    _, data = SAMPLES[name]()
    yield from flips(data)
    yield from truncations(data)


@pytest.mark.parametrize(
    "name", ["file-index", "deletion-vector", "theta-sketch", "puffin", "bundle"]
)
def test_damage_is_drawn_or_refused(name: str) -> None:
    """The only possible error: a region whose parts do not fit is a ValueError."""
    from alcid.inspect.byte_map.bundle import blob_drawer

    drawn = 0
    for damage in damages(name):
        source = BytesSource(damage.data, damage.what)
        try:
            is_puffin = damage.data[:4] == b"PFA1"
            region = map_bytes(source, STRING, draw_blob=blob_drawer(source) if is_puffin else None)
        except FormatError:
            continue
        drawn += 1
        assert sum(leaf.length for leaf in region.leaves()) == source.size
    assert drawn


@pytest.mark.parametrize("name", SAMPLES)
def test_the_pictures_of_the_documents_are_those_of_this_code(name: str) -> None:
    stored = (FOLDER / f"{name}.svg").read_text("utf-8")
    assert stored == diagram(name), "run: python -m tests.inspect.byte_map.make_diagrams"
