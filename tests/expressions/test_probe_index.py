from __future__ import annotations

import pyarrow as pa
import pytest

from alcid.expressions.probes import InIntervals, Interval, NotInIntervals, probe_index
from alcid.formats.file_index.bsi import BsiReader, build
from alcid.formats.file_index.keys import read_column
from alcid.formats.source import BytesSource, Section
from alcid.types import DataType

VALUES = [-9000, -1, 0, None, 5, 9000]


@pytest.fixture(scope="module")
def reader() -> BsiReader:
    column = read_column(pa.array(VALUES, pa.int32()), DataType("INT"))
    return BsiReader(Section(BytesSource(build(column))), column.key_type)


@pytest.mark.parametrize(
    "intervals",
    [
        (),
        ((0, 1),),
        ((None, 0),),
        ((0, None),),
        ((-5000, 5000),),
        ((None, -1), (5, None)),
        ((-9000, -8999), (0, 6), (8000, 9500)),
    ],
    ids=str,
)
def test_rows_within_and_outside_of_intervals(
    reader: BsiReader, intervals: tuple[Interval, ...]
) -> None:
    def is_inside(value: int) -> bool:
        return any(
            (begin is None or begin <= value) and (end is None or value < end)  # type: ignore[operator]
            for begin, end in intervals
        )

    rows = [row for row, value in enumerate(VALUES) if value is not None and is_inside(value)]
    others = [row for row, value in enumerate(VALUES) if value is not None and row not in rows]
    assert list(probe_index(reader, InIntervals(intervals)).rows or ()) == rows
    if intervals:
        assert list(probe_index(reader, NotInIntervals(intervals)).rows or ()) == others
