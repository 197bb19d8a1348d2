"""Damage in single fields, made by hand, which must be noticed and named."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

from alcid import (
    DamagedIndexWarning,
    FileIndex,
    FormatError,
    col,
)
from alcid.formats.file_index.container import write_container

# Rows:      0   1   2   3   4   5     6
NUMBERS = [10, 10, 20, 20, 30, None, None]
TYPES = {"c": "INT"}


def payload_of(index_type: str, values: list[Any] = NUMBERS, **options: str | int) -> bytes:
    """The payload of one index of an INT column, or a STRING column if the values are text."""
    is_text = any(isinstance(value, str) for value in values)
    table = pa.table({"c": pa.array(values, pa.string() if is_text else pa.int32())})
    settings = {f"file-index.{index_type}.c.{k.replace('_', '-')}": v for k, v in options.items()}
    index = FileIndex.build(table, {f"file-index.{index_type}.columns": "c", **settings})
    (entry,) = index.entries
    return index.to_bytes()[entry.start :]


def put(data: bytes, offset: int, layout: str, *values: int) -> bytes:
    """Bytes with big-endian numbers written over those at `offset`."""
    new = struct.pack(f">{layout}", *values)
    assert data[offset : offset + len(new)] != new, "no damage"
    return data[:offset] + new + data[offset + len(new) :]


def ask(index: FileIndex) -> None:
    is_text = DATA_TYPES.get(index.container.source.name) == "STRING"
    column = col("c")
    literals: list[Any] = ["a", "b", "c"] if is_text else [10, 20, 30]
    index.evaluate(column.is_null())
    for literal in literals:
        index.evaluate(column == literal)
    index.evaluate(column > literals[0])
    index.evaluate(column.between(*literals[:2]))


DATA_TYPES = {"text": "STRING", "numbers": "INT"}

# u8 version, i32 rows, i32 distinct, u8 has null, i32 null offset, 3 x (i32 key, i32 offset)
V1 = payload_of("bitmap", version=1)
# the same up to the null offset, i32 null length @14, i32 blocks @18, 2 x (key, offset) @22,
# i32 length of all blocks @38, block @42: i32 entries, 2 x (key, offset, length); block @70; @86
V2 = payload_of("bitmap", index_block_size=28)
# i32 head, u8 version, i32 rows @5, i32 cardinality @9, min @13, max @17, i32 dictionary @21,
# dictionary @25, heads @50 and @75, keys @100, slices @104: table @118, existing rows @134
RANGE = payload_of("range-bitmap", chunk_size=4)
# u8 version, i32 rows @1, u8 has values >= 0 @5, part @6: min @7, max @15, rows @23, slices @38
BSI = payload_of("bsi")
BLOOM = payload_of("bloom-filter")
V1_TEXT = payload_of("bitmap", ["a", "b", "b", "c"], version=1)
V2_TEXT = payload_of("bitmap", ["a", "b", "b", "c"])
RANGE_TEXT = payload_of("range-bitmap", ["a", "b", "b", "c"])

PAYLOADS = [
    ("bitmap", put(V1, 0, "B", 0), "unknown bitmap version at offset 47: found 0, expected 1 or 2"),
    ("bitmap", put(V1, 0, "B", 3), "unknown bitmap version"),
    ("bitmap", put(V1, 1, "i", -1), "bad row count"),
    ("bitmap", put(V1, 1, "i", 6), "row outside of the file"),
    ("bitmap", put(V1, 5, "i", 8), "bad distinct count"),
    ("bitmap", put(V1, 5, "i", 7), "bad roaring bitmap"),
    ("bitmap", put(V1, 9, "B", 2), "bad null flag"),
    ("bitmap", put(V1, 10, "i", -8), "bad single row"),
    ("bitmap", put(V1, 10, "i", 4), "bad roaring bitmap"),
    ("bitmap", put(V1, 18, "i", 2**31 - 1), "bad roaring bitmap"),
    ("bitmap", put(V1, 22, "i", 10), "repeated key in the dictionary"),
    ("bitmap", put(V1, 38, "I", 0), "bad roaring bitmap"),
    ("bitmap", put(V2, 14, "i", 19), "bad roaring bitmap"),
    ("bitmap", put(V2, 14, "i", -1), "truncated"),
    ("bitmap", put(V2, 18, "i", 4), "bad block count"),
    ("bitmap", put(V2, 18, "i", 0), "bad block count"),
    ("bitmap", put(V2, 22, "i", 40), "directory of blocks not in order"),
    ("bitmap", put(V2, 22, "i", 9), "block that the directory contradicts"),
    ("bitmap", put(V2, 26, "i", 1), "directory of blocks not in order"),
    ("bitmap", put(V2, 34, "i", 16), "bad entry count"),
    ("bitmap", put(V2, 38, "i", 2**30), "bad length of all blocks"),
    ("bitmap", put(V2, 38, "i", 28), "directory of blocks not in order"),
    ("bitmap", put(V2, 42, "i", 3), "block of another length"),
    ("bitmap", put(V2, 42, "i", -1), "bad entry count"),
    ("bitmap", put(V2, 58, "i", 10), "keys of a block not in order"),
    ("bitmap", put(V2, 58, "i", 31), "block that the directory contradicts"),
    ("bitmap", put(V2, 50, "i", -20), "bad single row"),
    ("bitmap", put(V2, 54, "i", 2**20), "truncated"),
    ("bitmap", put(V2, 78, "i", -8), "bad single row"),
    ("range-bitmap", put(RANGE, 0, "i", 22), "bad dictionary length"),
    ("range-bitmap", put(RANGE, 4, "B", 2), "unknown range-bitmap version"),
    ("range-bitmap", put(RANGE, 5, "i", -1), "bad row count"),
    ("range-bitmap", put(RANGE, 9, "i", 8), "bad cardinality"),
    ("range-bitmap", put(RANGE, 9, "i", 1), "minimum and maximum not in order"),
    ("range-bitmap", put(RANGE, 13, "i", 31), "minimum and maximum not in order"),
    ("range-bitmap", put(RANGE, 21, "i", -1), "bad dictionary length"),
    ("range-bitmap", put(RANGE, 25, "i", 14), "bad dictionary head"),
    ("range-bitmap", put(RANGE, 29, "B", 2), "unknown dictionary version"),
    ("range-bitmap", put(RANGE, 30, "i", 4), "bad chunk count"),
    ("range-bitmap", put(RANGE, 34, "i", 4), "bad offsets length"),
    ("range-bitmap", put(RANGE, 38, "i", 49), "chunk head out of place"),
    ("range-bitmap", put(RANGE, 46, "i", 24), "chunk head out of place"),
    ("range-bitmap", put(RANGE, 50, "B", 0), "chunk head of another version or length"),
    ("range-bitmap", put(RANGE, 80, "i", 1), "chunks do not follow each other"),
    ("range-bitmap", put(RANGE, 63, "i", 2), "bad lengths in a chunk head"),
    ("range-bitmap", put(RANGE, 76, "i", 5), "chunks of the dictionary not in order"),
    ("range-bitmap", put(RANGE, 100, "i", 10), "keys of a chunk not in order"),
    ("range-bitmap", put(RANGE, 100, "i", 30), "keys of a chunk not in order"),
    ("range-bitmap", put(RANGE, 104, "i", 25), "bad lengths of head and table"),
    ("range-bitmap", put(RANGE, 108, "B", 2), "unknown slices version"),
    ("range-bitmap", put(RANGE, 109, "B", 3), "bad slice count"),
    ("range-bitmap", put(RANGE, 110, "i", 3), "slices of another length"),
    ("range-bitmap", put(RANGE, 122, "i", 2**30), "slice out of place"),
    ("range-bitmap", put(RANGE, 134, "H", 0), "bad roaring bitmap"),
    ("bsi", put(BSI, 0, "B", 2), "unknown bsi version"),
    ("bsi", put(BSI, 1, "i", -1), "bad row count"),
    ("bsi", put(BSI, 1, "i", 4), "row outside of the file"),
    ("bsi", put(BSI, 5, "B", 2), "bad positive part flag"),
    ("bsi", put(BSI, 5, "B", 0), "unknown bsi part version"),
    ("bsi", put(BSI, 6, "B", 9), "unknown bsi part version"),
    ("bsi", put(BSI, 7, "q", 31), "minimum and maximum not in order"),
    ("bsi", put(BSI, 15, "q", 32), "bad slice count"),
    ("bsi", put(BSI, 23, "H", 0), "bad roaring bitmap"),
    ("bsi", put(BSI, 38, "i", 2**30), "bad slice count"),
    ("bsi", BSI + b"\0", "bytes behind the index"),
    ("bloom-filter", put(BLOOM, 0, "i", 0), "bad hash function count"),
    ("bloom-filter", put(BLOOM, 0, "i", -1), "bad hash function count"),
    ("bloom-filter", put(BLOOM, 0, "i", 2**31 - 1), "bad hash function count"),
    ("bloom-filter", BLOOM[:4], "truncated bloom filter"),
]
TEXT_PAYLOADS = [
    ("bitmap", put(V1_TEXT, 10, "i", -1), "bad key length"),
    ("bitmap", put(V1_TEXT, 10, "i", 2**31 - 1), "truncated"),
    ("bitmap", put(V2_TEXT, 31, "i", -1), "keys of a block not in order"),
    ("bitmap", put(V2_TEXT, 31, "i", 2**31 - 1), "truncated block"),
    ("range-bitmap", put(RANGE_TEXT, 13, "i", -1), "bad key length"),
    ("range-bitmap", put(RANGE_TEXT, 13, "i", 2**31 - 1), "truncated"),
]
HEAD = write_container({("c", "bitmap"): V1})
# i64 magic, i32 version @8, i32 head length @12, i32 columns @16, name @20, i32 indexes @23,
# type @27, i32 start @35, i32 length @39, i32 redundant @43
CONTAINERS = [
    (put(HEAD, 0, "q", 1), "bad magic at offset 0: found 1, expected 1493475289347502"),
    (put(HEAD, 8, "i", 2), "unknown container version at offset 8: found 2, expected 1"),
    (put(HEAD, 12, "i", -1), "bad head length"),
    (put(HEAD, 12, "i", 2**31 - 1), "bad head length"),
    (put(HEAD, 12, "i", 40), "truncated"),
    (put(HEAD, 16, "i", -1), "bad column count"),
    (put(HEAD, 16, "i", 2**31 - 1), "bad column count"),
    (put(HEAD, 20, "H", 0xFFFF), "truncated"),
    (put(HEAD, 22, "B", 0xFF), "bad modified UTF-8"),
    (put(HEAD, 23, "i", 2**31 - 1), "bad index count"),
    (put(HEAD, 35, "i", -2), "out of place"),
    (put(HEAD, 35, "i", 48), "out of place"),
    (put(HEAD, 39, "i", len(V1) + 1), "do not fill the file"),
    (put(HEAD, 39, "i", len(V1) - 1), "do not fill the file"),
    (put(HEAD, 39, "i", -1), "out of place"),
    (HEAD[:15], "truncated"),
    (b"", "truncated"),
]


def cases(damages: list[tuple[str, bytes, str]]) -> list[Any]:
    return [
        pytest.param(index_type, payload, message, id=f"{index_type}-{number}-{message}")
        for number, (index_type, payload, message) in enumerate(damages)
    ]


def assert_seen(index_type: str, payload: bytes, message: str, kind: str) -> None:
    data = write_container({("c", index_type): payload})
    types = {"c": DATA_TYPES[kind]}
    with pytest.raises(FormatError) as caught:
        ask(FileIndex.from_bytes(data, types, strict=True, name=kind))
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{kind}: ")
    assert "\n" not in str(caught.value)
    with pytest.warns(DamagedIndexWarning, match=f"^{index_type} of 'c', .*, not used: {kind}: "):
        ask(FileIndex.from_bytes(data, types, name=kind))


@pytest.mark.parametrize(("index_type", "payload", "message"), cases(PAYLOADS))
def test_damage_of_a_payload_is_seen_and_named(
    index_type: str, payload: bytes, message: str
) -> None:
    assert_seen(index_type, payload, message, "numbers")


@pytest.mark.parametrize(("index_type", "payload", "message"), cases(TEXT_PAYLOADS))
def test_damage_of_a_payload_of_text_is_seen_and_named(
    index_type: str, payload: bytes, message: str
) -> None:
    assert_seen(index_type, payload, message, "text")


@pytest.mark.parametrize(("data", "message"), CONTAINERS, ids=range(len(CONTAINERS)))
def test_damage_of_a_container_is_seen_and_named(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        FileIndex.from_bytes(data, TYPES, name="a.index")
    assert message in str(caught.value)
    assert str(caught.value).startswith("a.index: ")


def test_a_row_that_is_both_positive_and_negative_is_seen() -> None:
    payload = payload_of("bsi", [1, -1])
    # u8, i32, flag @5, part of 1: @6 u8, i64, i64 @15, rows @23 ... part of -1 has the same bytes
    positive = payload[23:41]
    negative_at = payload.rindex(bytes.fromhex("3a30000001000000")[:8], 60, len(payload) - 18)
    broken = payload[:negative_at] + positive + payload[negative_at + 18 :]
    with pytest.raises(FormatError, match="both positive and negative"):
        ask(FileIndex.from_bytes(write_container({("c", "bsi"): broken}), TYPES, strict=True))
