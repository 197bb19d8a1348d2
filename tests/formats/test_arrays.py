"""Arrow arrays without their encoding, also if they are too large for 32 bits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from alcid import _arrays
from alcid._arrays import (
    byte_offsets,
    changes,
    least_bytes,
    plain,
    replace_leaves,
    split_by,
    storage_type,
    without_extensions,
)


@pytest.mark.parametrize(
    ("arrow_type", "large"),
    [
        (pa.string(), pa.large_string()),
        (pa.binary(), pa.large_binary()),
        (pa.binary(2), pa.binary(2)),
    ],
)
def test_chunks_beyond_offsets_of_32_bits_become_large(
    monkeypatch: pytest.MonkeyPatch, arrow_type: pa.DataType, large: pa.DataType
) -> None:
    chunks = pa.chunked_array([["ab", None], [], ["cd"]], arrow_type)
    assert plain(chunks).type == arrow_type
    monkeypatch.setattr(_arrays, "_MOST_BYTES", chunks.nbytes)
    assert plain(chunks).type == arrow_type
    monkeypatch.setattr(_arrays, "_MOST_BYTES", chunks.nbytes - 1)
    assert plain(chunks).equals(pa.array(["ab", None, "cd"], large))


@pytest.mark.parametrize(
    ("arrow_type", "large"),
    [
        (pa.string(), pa.large_string()),
        (pa.binary(), pa.large_binary()),
        (pa.int8(), pa.int8()),
    ],
)
def test_a_dictionary_whose_values_overflow_when_repeated_becomes_large(
    arrow_type: pa.DataType, large: pa.DataType
) -> None:
    values: list[Any] = [7, 5] if arrow_type == pa.int8() else ["ab", "cd"]

    class Overflowing:
        """Values of 2 GiB in total, which would take a second to repeat."""

        type = arrow_type

        def take(self, indices: pa.Array) -> pa.Array:
            raise pa.ArrowInvalid(f"Take operation overflowed at {indices}")

        def cast(self, arrow_type: pa.DataType) -> pa.Array:
            return pa.array(values, arrow_type)

    array = SimpleNamespace(dictionary=Overflowing(), indices=pa.array([1, None, 0, 1]))
    decoded = _arrays._decoded(cast("pa.DictionaryArray", array))
    assert decoded.equals(pa.array([values[1], None, values[0], values[1]], large))


def test_wrapping_is_taken_off() -> None:
    texts = ["a", None, "a"]
    expected = pa.array(texts)
    encoded = expected.dictionary_encode()
    assert plain(encoded).equals(expected)
    assert plain(pa.chunked_array([encoded, encoded[:1]])).equals(pa.array([*texts, "a"]))
    assert plain(pa.chunked_array([], encoded.type)).equals(pa.array([], pa.string()))
    assert plain(pa.chunked_array([], pa.int8())).equals(pa.array([], pa.int8()))
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([5, None]))
    assert plain(runs).equals(pa.array([5, 5, None]))
    views = plain(pa.array(texts, pa.string_view())), plain(pa.array(texts, pa.binary_view()))
    assert all(view.equals(pa.array(texts, pa.large_binary())) for view in views)
    wrapped = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16], pa.binary(16)))
    assert plain(wrapped).equals(pa.array([b"x" * 16], pa.binary(16)))


def test_extensions_within_lists_of_any_kind_are_their_storage() -> None:
    stored = pa.array([bytes([number]) * 16 for number in range(6)], pa.binary(16))
    ids = pa.ExtensionArray.from_storage(pa.uuid(), stored)
    pairs = pa.FixedSizeListArray.from_arrays(ids, 2)
    assert storage_type(pairs.type) == pa.list_(pa.binary(16), 2)
    rows = without_extensions(pa.table({"pair": pairs.slice(1)}))
    assert rows["pair"].to_pylist() == [stored[2:4].to_pylist(), stored[4:].to_pylist()]


def test_leaves_of_another_type_need_a_conversion() -> None:
    with pytest.raises(TypeError, match="found int32, expected int64"):
        replace_leaves(pa.array([1], pa.int32()), pa.int64())


def test_offsets_of_a_slice_are_its_own() -> None:
    keys = pa.array([b"ab", b"", b"cde", b"f"], pa.large_binary())
    assert byte_offsets(keys).tolist() == [0, 2, 2, 5, 6]
    assert byte_offsets(keys[1:3]).tolist() == [2, 2, 5]
    assert byte_offsets(keys[:0]).tolist() == [0]


def test_changes_and_parts() -> None:
    numbers = np.array([3, 3, 1, 1, 3])
    assert changes(numbers).tolist() == [True, False, True, False, True]
    assert changes(numbers[:0]).tolist() == []
    parts = split_by(np.arange(5) * 10, numbers)
    assert [part.tolist() for part in parts] == [[0, 10], [20, 30], [40]]


@pytest.mark.parametrize("bits", [7, 8, 15, 63, 64, 71, 119, 126])
def test_the_least_bytes_of_a_number_are_those_of_python(bits: int) -> None:
    values = [sign * (1 << bits) + step for sign in (1, -1) for step in (-1, 0, 1)]
    words = np.array([divmod(value % (1 << 128), 1 << 64) for value in values], np.uint64)
    lengths = least_bytes(words[:, 1].copy(), words[:, 0].copy())
    signed = [value if value >= 0 else ~value for value in values]
    assert lengths.tolist() == [value.bit_length() // 8 + 1 for value in signed]
