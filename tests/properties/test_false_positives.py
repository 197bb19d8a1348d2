"""How often a bloom filter keeps a file that does not have the value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from alcid import FileIndex, col
from alcid.formats.file_index.bloom_filter import BloomFilterReader

KEYS = 100_000


def open_reader(table: pa.Table, options: dict[str, str | int | float]) -> BloomFilterReader:
    named = {f"file-index.bloom-filter.c.{key}": value for key, value in options.items()}
    index = FileIndex.build(table, {"file-index.bloom-filter.columns": "c", **named})
    reader = index.reader(index.entries[0])
    assert isinstance(reader, BloomFilterReader)
    return reader


def count_kept(reader: BloomFilterReader, keys: list[int] | list[bytes]) -> int:
    return sum(not reader.is_in([key]).skip for key in keys)


@pytest.mark.parametrize(
    ("options", "asked_for"),
    [
        pytest.param({}, 0.01, id="default"),
        pytest.param({"fpp": 0.1}, 0.1, id="fpp"),
        pytest.param({"items": KEYS, "fpp": 0.02}, 0.02, id="as Paimon"),
        pytest.param({"items": KEYS}, 0.1, id="as Paimon, default"),
    ],
)
@pytest.mark.parametrize("text", [False, True], ids=["BIGINT", "STRING"])
def test_share_of_false_positives_is_what_was_asked_for(
    options: dict[str, str | int | float], asked_for: float, text: bool
) -> None:
    numbers = np.random.default_rng(7).permutation(4 * KEYS)[: KEYS + 20_000].tolist()
    present, absent = numbers[:KEYS], numbers[KEYS:]
    if text:
        table = pa.table({"c": [f"key-{number}" for number in present]})
        reader = open_reader(table, options)
        observed = count_kept(reader, [f"key-{number}".encode() for number in absent])
    else:
        reader = open_reader(pa.table({"c": pa.array(present, pa.int64())}), options)
        observed = count_kept(reader, absent)
    # The keys are fixed, so this is a single number; within four deviations of the requested share.
    spread = 4 * (asked_for / len(absent)) ** 0.5
    assert asked_for * 0.8 - spread < observed / len(absent) < asked_for * 1.1 + spread


def test_no_key_that_is_there_is_skipped() -> None:
    numbers = np.random.default_rng(8).integers(-(2**63), 2**63 - 1, KEYS)
    reader = open_reader(pa.table({"c": numbers}), {})
    assert count_kept(reader, numbers[:20_000].tolist()) == 20_000
    index = FileIndex.build(pa.table({"c": numbers}), {"file-index.bloom-filter.columns": "c"})
    assert index.evaluate(col("c").isin(numbers[:5].tolist())).rows is None
