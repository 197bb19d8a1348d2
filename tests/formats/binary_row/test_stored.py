from __future__ import annotations

import numpy as np
import pyarrow as pa

from alcid.formats.binary_row.reader import StoredRows


def contents(rows: StoredRows) -> list[bytes | None]:
    slices = zip(rows.starts.tolist(), rows.lengths.tolist(), rows.present.tolist(), strict=True)
    return [
        rows.data[start : start + length].tobytes() if present else None
        for start, length, present in slices
    ]


def test_rows_are_found_at_their_positions() -> None:
    listed = [b"one", None, b"", b"three"]
    assert contents(StoredRows.of(listed)) == listed
    assert contents(StoredRows.of(pa.array(listed, pa.binary()))) == listed
    assert contents(StoredRows.of(pa.chunked_array([listed[:1], listed[1:]]))) == listed
    assert contents(StoredRows.of(pa.array(listed, pa.binary())[2:])) == listed[2:]
    assert contents(StoredRows.of([None])) == [None]
    assert len(StoredRows.of([])) == 0
    assert len(StoredRows.of(listed)) == 4


def test_a_head_is_cut_off_and_refused_rows_are_gone() -> None:
    rows = StoredRows.of([b"12345678", None, b"12", b"1234abc", b"1234"])
    left = rows.without_head(4, np.array([False, False, True, False, False]))
    assert contents(left) == [b"5678", None, None, b"abc", b""]
    assert left.starts.tolist() == [4, 0, 0, 14, 21]
    assert left.lengths.tolist() == [4, 0, 0, 3, 0]
    assert left.data is rows.data
