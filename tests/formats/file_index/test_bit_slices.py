from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from pyroaring import BitMap

from alcid.formats.file_index import bit_slices as module
from alcid.formats.file_index.bit_slices import BitSlices, serialize_presence, serialize_slices

#        rows: 0  1  2  4  5  6  9; rows 3, 7 and 8 have no code
CODES = {0: 5, 1: 0, 2: 7, 4: 5, 5: 2, 6: 6, 9: 1}


def slices_of(codes: dict[int, int], count: int = 3, beyond: Sequence[int] = ()) -> BitSlices:
    """Slices of codes; rows `beyond` are in all slices and have no code."""
    loaded: list[int] = []

    def load(index: int) -> BitMap:
        assert index not in loaded, "a slice is loaded once"
        loaded.append(index)
        return BitMap(row for row, code in codes.items() if code >> index & 1) | BitMap(beyond)

    return BitSlices(count, lambda: BitMap(codes), load)


def test_codes_are_read_row_by_row() -> None:
    rows, codes = slices_of(CODES, beyond=[3, 8]).codes()
    assert dict(zip(rows.tolist(), codes.tolist(), strict=True)) == CODES
    assert rows.tolist() == sorted(CODES)
    rows, codes = slices_of({}).codes()
    assert (rows.tolist(), codes.tolist()) == ([], [])


@pytest.mark.parametrize("code", range(-2, 11))
def test_rows_of_a_code_and_above_it(code: int) -> None:
    slices = slices_of(CODES, beyond=[3, 8])
    assert list(slices.equal(code)) == [row for row in sorted(CODES) if CODES[row] == code]
    assert list(slices.at_least(code)) == [row for row in sorted(CODES) if CODES[row] >= code]


@pytest.mark.parametrize("begin", range(-1, 10))
@pytest.mark.parametrize("end", [*range(-1, 10), None])
def test_rows_between_two_codes(begin: int, end: int | None) -> None:
    expected = [
        row for row in sorted(CODES) if begin <= CODES[row] and (end is None or CODES[row] < end)
    ]
    assert list(slices_of(CODES).between(begin, end)) == expected


def test_rows_of_any_set_of_codes() -> None:
    for chosen in range(256):
        codes = [code for code in range(8) if chosen >> code & 1]
        expected = [row for row in sorted(CODES) if CODES[row] in codes]
        assert list(slices_of(CODES, beyond=[3, 8]).one_of([-1, *codes, 8, 9])) == expected


@pytest.mark.parametrize("k", range(9))
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("among", [None, [0, 2, 3, 4, 6]])
def test_the_best_rows(k: int, descending: bool, among: list[int] | None) -> None:
    rows = sorted(
        (row for row in CODES if among is None or row in among),
        key=lambda row: (-CODES[row] if descending else CODES[row], -row),
    )
    candidates = None if among is None else BitMap(among)
    slices = slices_of(CODES)
    exact = slices.best(k, descending=descending, among=candidates, ties=False)
    assert list(exact) == sorted(rows[:k])
    last = {CODES[row] for row in rows[:k][-1:]}
    with_ties = slices.best(k, descending=descending, among=candidates, ties=True)
    if k:
        tied = {row for row in rows if CODES[row] in last}
        assert list(with_ties) == sorted({*rows[:k], *tied})
    assert list(slices.existing) == sorted(CODES), "what is kept must not change"


@pytest.mark.parametrize("rows", [0, 5, 4096, 4097, 70_000])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_slices_are_the_bits_of_codes(rows: int, width: int) -> None:
    count = 8 * width - 3
    source = np.random.default_rng(rows + width)
    codes = source.integers(0, 1 << count, rows, dtype=np.uint64).astype(f"u{width}")
    slices = serialize_slices(codes, count)
    assert len(slices) == count
    for bit in {0, 1, 7, 8, count - 1} & set(range(count)):
        bitmap = BitMap(np.flatnonzero(codes >> np.array(bit, codes.dtype) & 1).astype(np.uint32))
        bitmap.run_optimize()
        assert slices[bit] == bitmap.serialize()
    present = codes % 3 == 1
    expected = BitMap(np.flatnonzero(present).astype(np.uint32))
    expected.run_optimize()
    assert serialize_presence(present) == expected.serialize()


def test_slices_of_many_rows_are_made_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(3).integers(0, 1 << 20, 5_000, dtype=np.uint32)
    at_once = serialize_slices(codes, 20)
    for slices in (1, 3, 20):
        monkeypatch.setattr(module, "_BATCH_BYTES", slices * 8192)
        assert serialize_slices(codes, 20) == at_once
