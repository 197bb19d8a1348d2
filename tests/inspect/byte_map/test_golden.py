"""Every byte of every golden file belongs to exactly one field with a name."""

from __future__ import annotations

import pytest

from alcid.formats.source import BytesSource, Section
from alcid.inspect.byte_map import (
    Kind,
    Region,
    draw_index,
    map_bytes,
)
from alcid.inspect.byte_map.bundle import blob_drawer
from alcid.types import DataType
from tests.golden_files import Golden, golden_files, golden_id

FILES = golden_files(
    "bundle", "container", "deletion_vector", "deletion_vector_file", "puffin", "theta"
)
PAYLOADS = golden_files("payload")
HASHES = golden_files("hash_index")


def check(region: Region, size: int) -> None:
    """Regions refuse parts with gaps when they are made; this checks that they are complete."""
    assert (region.offset, region.length) == (0, size)
    leaves = list(region.leaves())
    assert sum(leaf.length for leaf in leaves) == size
    assert all(leaf.length and leaf.name for leaf in leaves) or not size
    assert {leaf.kind for leaf in leaves}.isdisjoint({"damaged"})
    unused = {leaf.name for leaf in leaves if leaf.kind == "unused"}
    assert unused <= {"not used", "share looked at"}  # of theta sketches


@pytest.mark.parametrize("golden", FILES, ids=golden_id)
def test_files_are_named_to_the_last_byte(golden: Golden) -> None:
    source = BytesSource(golden.data, golden.path.stem)
    types = {name: DataType.parse(text) for name, text in _types(golden).items()}
    is_puffin = golden.json["kind"] in ("bundle", "puffin")
    draw_blob = blob_drawer(source) if is_puffin else None
    check(map_bytes(source, types, draw_blob=draw_blob), source.size)


def _types(golden: Golden) -> dict[str, str]:
    fields = golden.json.get("fields", ()) if golden.json["kind"] == "container" else ()
    return {field["name"]: field["type"] for field in fields}


@pytest.mark.parametrize("golden", PAYLOADS, ids=golden_id)
def test_indexes_are_named_with_the_type_of_their_column_and_without(golden: Golden) -> None:
    section = Section(BytesSource(golden.data, golden.path.stem))
    for data_type in (DataType.parse(golden.json["data_type"]), None):
        region = draw_index(golden.json["index_type"], section, "index", data_type)
        check(region, section.length)


@pytest.mark.parametrize("golden", HASHES, ids=golden_id)
def test_hashes_are_named(golden: Golden) -> None:
    source = BytesSource(golden.data, golden.path.stem)
    check(map_bytes(source, kind=Kind.HASH_INDEX), source.size)


def _leaves(region: Region, name: str) -> list[str]:
    return [leaf.note for leaf in region.leaves() if leaf.name == name]


@pytest.mark.parametrize(
    "golden",
    [golden for golden in PAYLOADS if golden.json["index_type"] != "bloom-filter"],
    ids=golden_id,
)
def test_the_rows_that_are_drawn_are_those_of_the_column(golden: Golden) -> None:
    section = Section(BytesSource(golden.data, golden.path.stem))
    data_type = DataType.parse(golden.json["data_type"])
    region = draw_index(golden.json["index_type"], section, "index", data_type)
    assert str(golden.rows) in _leaves(region, "rows")
