"""Damaged files: an answer or an error of Alcid's own for any damage, in little memory."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Iterator
from itertools import chain, islice

import pytest
from hypothesis import settings

from alcid import (
    AlcidError,
    DamagedIndexWarning,
    DataType,
    FileIndex,
    FormatError,
    Predicate,
    col,
)
from alcid.formats.file_index.bitmap import BitmapReader
from alcid.formats.file_index.bloom_filter import BloomFilterReader
from alcid.formats.file_index.container import write_container
from alcid.formats.file_index.range_bitmap import RangeBitmapReader
from alcid.testing import Damage, flips, truncations
from tests.golden_files import Golden, golden_files, golden_id, literal

LARGEST = 20_000
ENOUGH = 150  # damages of a file that are tried in every run
IS_FUZZ = settings.get_current_profile_name() == "fuzz"
LARGEST_MEASURED = 700  # size of the files whose memory is measured for each damage
MEGABYTE = 1 << 20
SUBJECTS = [
    golden
    for golden in golden_files("payload", "container")
    if "file" in golden.json and golden.json["size"] < LARGEST
]
PAYLOADS = [golden for golden in SUBJECTS if golden.json["kind"] == "payload"]


def types_of(golden: Golden) -> dict[str, DataType]:
    if golden.json["kind"] == "payload":
        return {"c": DataType.parse(golden.json["data_type"])}
    return {
        field["name"]: DataType.parse(field["type"])
        for field in golden.json["fields"]
        if DataType.parse(field["type"]).root != "MAP"
    }


def container_of(golden: Golden, data: bytes) -> bytes:
    if golden.json["kind"] == "container":
        return data
    return write_container({("c", golden.json["index_type"]): data})


def questions_of(golden: Golden) -> list[Predicate]:
    """Some of every kind, so that everything in an index is read."""
    questions = []
    for name, data_type in types_of(golden).items():
        column = col(name)
        questions += [column.is_null(), column.is_not_null()]
        if golden.json["kind"] == "payload":
            values = golden.values
        else:
            values = [row[list(types_of(golden)).index(name)] for row in golden.json["rows"][:50]]
        literals = [literal(value, data_type) for value in values if value is not None]
        if literals:
            middle = literals[len(literals) // 2]
            questions += [
                column.isin([literals[0], middle]),
                column != literals[-1],
                column < middle,
            ]
    return questions


def ask(index: FileIndex, questions: list[Predicate]) -> None:
    for question in questions:
        index.evaluate(question)
    for column in dict.fromkeys(column for question in questions for column in question.columns()):
        index.top_n(column, 2)


def damages_of(golden: Golden) -> Iterator[Damage]:
    """Every damage of a small file, and some of a large one; `make fuzz` tries all.

    The step is odd, because each byte is flipped in two ways.
    """
    step = 1 if IS_FUZZ else 3 * len(golden.data) // ENOUGH | 1
    return islice(chain(flips(golden.data), truncations(golden.data)), None, None, step)


@pytest.mark.fuzz
@pytest.mark.parametrize("golden", SUBJECTS, ids=golden_id)
def test_damage_gives_an_answer_or_an_alcid_error(golden: Golden) -> None:
    types, questions = types_of(golden), questions_of(golden)
    ask(FileIndex.from_bytes(container_of(golden, golden.data), types, strict=True), questions)
    for damage in damages_of(golden):
        try:
            data = container_of(golden, damage.data)
            index = FileIndex.from_bytes(data, types, strict=True)
        except FormatError:
            continue
        try:
            ask(index, questions)
        except AlcidError:
            lenient = FileIndex.from_bytes(data, types)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                ask(lenient, questions)
            assert {warning.category for warning in caught} == {DamagedIndexWarning}, damage.what
        except Exception as error:
            error.add_note(damage.what)
            raise


@pytest.mark.parametrize("golden", PAYLOADS, ids=golden_id)
def test_a_truncated_payload_is_seen(golden: Golden) -> None:
    types, enough = types_of(golden), enough_of(golden)
    for damage in truncations(golden.data):
        data = container_of(golden, damage.data)
        if len(damage.data) >= enough:
            read_whole(FileIndex.from_bytes(data, types, strict=True))
        else:
            with pytest.raises(FormatError):
                read_whole(FileIndex.from_bytes(data, types, strict=True))


def enough_of(golden: Golden) -> int:
    """How many bytes are an index, or all that is read of one without values."""
    if golden.json["index_type"] == "bloom-filter":
        return 5  # the rest is a smaller filter, as nothing states its size
    if golden.json["index_type"] == "range-bitmap" and not any(
        value is not None for value in golden.values
    ):
        return 34  # head and dictionary
    return len(golden.data)


def read_whole(index: FileIndex) -> None:
    """Ask for everything in a payload."""
    column = col("c")
    (entry,) = index.entries
    index.evaluate(column.is_null())
    index.evaluate(column.is_not_null())
    reader = index.reader(entry)
    if isinstance(reader, BitmapReader | RangeBitmapReader):
        for _ in reader.items():
            pass
    elif isinstance(reader, BloomFilterReader):
        assert reader.functions
        assert len(reader.filter)


# The largest such file of each index type.
HEAVIEST = {
    golden.json["index_type"]: golden
    for golden in sorted(PAYLOADS, key=lambda golden: int(golden.json["size"]))
    if golden.json["size"] <= LARGEST_MEASURED
}


def ask_damaged(golden: Golden, damage: Damage) -> None:
    try:
        data = container_of(golden, damage.data)
        ask(FileIndex.from_bytes(data, types_of(golden), strict=True), questions_of(golden))
    except AlcidError:
        pass


@pytest.mark.parametrize("index_type", HEAVIEST)
def test_damage_does_not_take_more_of_pythons_memory_than_the_file_allows(index_type: str) -> None:
    golden = HEAVIEST[index_type]
    tracemalloc.start()
    try:
        for damage in islice(damages_of(golden), 0, None, 9):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            ask_damaged(golden, damage)
            _, peak = tracemalloc.get_traced_memory()
            allowed = 10 * len(damage.data) + 16 * MEGABYTE
            assert peak - before < allowed, damage.what
    finally:
        tracemalloc.stop()


PROCESS = """
import resource
import sys
from alcid.testing import Damage
from tests.test_corruption import HEAVIEST, ask_damaged, damages_of

golden = HEAVIEST[sys.argv[1]]
ask_damaged(golden, Damage("none", golden.data))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for damage in damages_of(golden):
    ask_damaged(golden, damage)
unit = 1 if sys.platform == "darwin" else 1024
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit)
"""


@pytest.mark.parametrize("index_type", HEAVIEST)
def test_damage_does_not_take_more_memory_than_the_file_allows(index_type: str) -> None:
    # In a separate process: tracemalloc does not see the memory of roaring bitmaps.
    command = [sys.executable, "-c", PROCESS, index_type]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(ended.stdout) < 10 * HEAVIEST[index_type].json["size"] + 16 * MEGABYTE
