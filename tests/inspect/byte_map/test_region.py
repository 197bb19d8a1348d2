from __future__ import annotations

import pytest

from alcid.errors import FormatError
from alcid.formats.cursor import Cursor
from alcid.formats.source import BytesSource, Section
from alcid.inspect.byte_map import Region
from alcid.inspect.byte_map.regions import (
    SHOWN,
    Fields,
    or_damaged,
    short,
)


def leaf(offset: int, length: int) -> Region:
    return Region(f"at {offset}", offset, length, "number")


def section(size: int) -> Section:
    return Section(BytesSource(bytes(size), "a file"))


@pytest.mark.parametrize(
    "parts",
    [(leaf(0, 4), leaf(5, 5)), (leaf(0, 6), leaf(5, 5)), (leaf(0, 4),), (leaf(0, 11),)],
    ids=["gap", "overlap", "too-short", "too-long"],
)
def test_parts_that_do_not_fill_a_region_are_refused(parts: tuple[Region, ...]) -> None:
    with pytest.raises(ValueError, match="expected at"):
        Region("whole", 0, 10, "group", parts=parts)


def test_a_byte_leads_to_the_regions_around_it() -> None:
    inner = Region("inner", 4, 6, "group", parts=(leaf(4, 2), leaf(6, 4)))
    whole = Region("whole", 0, 10, "group", parts=(leaf(0, 4), inner))
    assert [region.name for region in whole.at(6)] == ["whole", "inner", "at 6"]
    assert [region.name for region in whole.at(3)] == ["whole", "at 0"]
    assert whole.at(10) == ()
    assert [region.offset for region in whole.leaves()] == [0, 4, 6]


def test_a_long_list_is_folded_behind_its_first_items() -> None:
    fields = Fields(section(4000))

    def draw(_: int, __: int) -> None:
        fields.read("hash", "data", Cursor.i32)

    fields.each("hashes", range(1000), draw, 4000)
    assert len(fields.parts) == SHOWN + 1
    assert fields.parts[-1].name == f"... {1000 - SHOWN} more hashes"
    assert fields.region("all").length == 4000


def test_a_list_with_one_more_than_is_shown_is_not_folded() -> None:
    count = SHOWN + 1
    fields = Fields(section(4 * count))

    def draw(_: int, __: int) -> None:
        fields.read("hash", "data", Cursor.i32)

    fields.each("hashes", range(count), draw, 4 * count)
    assert [part.name for part in fields.parts] == ["hash"] * count


def test_bytes_between_two_regions_are_unused() -> None:
    fields = Fields(section(10))
    fields.add(leaf(0, 2))
    fields.add(leaf(5, 5))
    assert [(part.name, part.offset, part.length) for part in fields.parts] == [
        ("at 0", 0, 2),
        ("unused", 2, 3),
        ("at 5", 5, 5),
    ]


def test_a_region_within_another_is_damage() -> None:
    fields = Fields(section(10))
    fields.add(leaf(0, 6))
    with pytest.raises(FormatError, match="at 5 out of place"):
        fields.add(leaf(5, 5))


def test_damage_is_one_region_that_says_so() -> None:
    part = section(10).section(4, 6)

    def draw() -> Region:
        raise part.error("bad magic", 0)

    region = or_damaged("vector", part, draw)
    assert (region.offset, region.length, region.kind) == (4, 6, "damaged")
    assert region.note == "bad magic at offset 4"


def test_notes_are_cut() -> None:
    assert short("x" * 120) == "x" * 120
    assert short("x" * 121) == "x" * 117 + "..."
