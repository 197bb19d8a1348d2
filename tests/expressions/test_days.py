"""Days compared with instants, where a zone skips a day or midnight, or repeats an hour.

The expected rows were observed in Spark 4.1.4.
"""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from alcid import DataType, FileIndex, config
from alcid.errors import LiteralError
from alcid.expressions import (
    In,
    KeyRange,
    Predicate,
    SessionTimestamp,
    key_range,
    matching,
    normalize,
    parse,
    probe_for,
)
from tests.expressions.probes import holds

DATE = DataType("DATE")
OTHER = "TIMESTAMP '2000-01-01 00:00:00'"
# The zone has no 2011-12-30: its midnight is that of the 31st.
APIA = ("Pacific/Apia", datetime.date(2011, 12, 29), 4)
# The zone has no 2018-11-04 00:00: the day begins at 01:00.
SAO_PAULO = ("America/Sao_Paulo", datetime.date(2018, 11, 3), 3)
# The zone put its clock back at 00:01 of 2010-11-07, so that the day began twice.
ST_JOHNS = ("America/St_Johns", datetime.date(2010, 11, 6), 3)
# The zone has no 1993-08-21.
KWAJALEIN = ("Pacific/Kwajalein", datetime.date(1993, 8, 20), 3)


def check(
    column: tuple[str, datetime.date, int], predicate: str | Predicate, rows: list[int]
) -> None:
    _, first, count = column
    days = [first + datetime.timedelta(day) for day in range(count)]
    assert np.flatnonzero(matching(predicate, pa.table({"c": days}))).tolist() == rows
    probe = probe_for(normalize(parse(predicate)), "c", DATE)
    keys = [(day - datetime.date(1970, 1, 1)).days for day in days]
    kept = [row for row, key in enumerate(keys) if holds(probe, key)]
    assert kept == rows if getattr(probe, "exact", True) else set(kept) >= set(rows)


@pytest.mark.parametrize(
    ("column", "predicate", "rows"),
    [
        (APIA, "c = TIMESTAMP '2011-12-31 00:00:00'", [2]),
        (APIA, "c = TIMESTAMP '2011-12-30 00:00:00'", [2]),
        (APIA, "c <=> TIMESTAMP '2011-12-31 00:00:00'", [2]),
        (APIA, "c <> TIMESTAMP '2011-12-31 00:00:00'", [0, 1, 3]),
        (APIA, "c < TIMESTAMP '2011-12-31 00:00:00'", [0, 1]),
        (APIA, "c <= TIMESTAMP '2011-12-31 00:00:00'", [0, 1, 2]),
        (APIA, "c > TIMESTAMP '2011-12-31 00:00:00'", [3]),
        (APIA, "c >= TIMESTAMP '2011-12-31 00:00:00'", [2, 3]),
        (APIA, "c < TIMESTAMP '2011-12-31 00:00:01'", [0, 1, 2]),
        (APIA, "c >= TIMESTAMP '2011-12-31 00:00:01'", [3]),
        (APIA, "c < TIMESTAMP '2011-12-29 23:00:00'", [0]),
        (APIA, "c > TIMESTAMP '2011-12-29 23:00:00'", [1, 2, 3]),
        (
            APIA,
            "c BETWEEN TIMESTAMP '2011-12-31 00:00:00' AND TIMESTAMP '2012-01-01 00:00:00'",
            [2, 3],
        ),
        (APIA, "c = '2011-12-30'", [1]),
        (ST_JOHNS, "c = TIMESTAMP '2010-11-07 02:30:00Z'", [1]),
        (ST_JOHNS, "c < TIMESTAMP '2010-11-07 02:30:00Z'", [0]),
        (ST_JOHNS, "c > TIMESTAMP '2010-11-07 02:30:00Z'", [2]),
        (ST_JOHNS, "c = TIMESTAMP '2010-11-07 03:00:00Z'", []),
        (ST_JOHNS, "c < TIMESTAMP '2010-11-07 03:00:00Z'", [0]),
        (ST_JOHNS, "c <= TIMESTAMP '2010-11-07 03:00:00Z'", [0]),
        (ST_JOHNS, "c > TIMESTAMP '2010-11-07 03:00:00Z'", [1, 2]),
        (ST_JOHNS, "c >= TIMESTAMP '2010-11-07 03:00:00Z'", [1, 2]),
        (ST_JOHNS, "c < TIMESTAMP '2010-11-07 03:30:00Z'", [0, 1]),
        (ST_JOHNS, "c > TIMESTAMP '2010-11-07 03:30:00Z'", [2]),
        (SAO_PAULO, "c = TIMESTAMP_NTZ '2018-11-04 01:00:00'", []),
    ],
)
def test_a_lone_instant_is_made_a_day(
    column: tuple[str, datetime.date, int],
    predicate: str,
    rows: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "timezone", column[0])
    check(column, predicate, rows)


@pytest.mark.parametrize(
    ("column", "predicate", "rows"),
    [
        (APIA, f"c IN (DATE '2011-12-30', {OTHER})", [1, 2]),
        (APIA, f"c IN (DATE '2011-12-31', {OTHER})", [1, 2]),
        (APIA, f"c NOT IN (DATE '2011-12-31', {OTHER})", [0, 3]),
        (APIA, f"c IN ('2011-12-30', {OTHER})", [1, 2]),
        (APIA, f"c IN ('2011-12-31 00:00:00', {OTHER})", [1, 2]),
        (APIA, f"c IN ('2011-12-31 00:00:00+14:00', {OTHER})", [1, 2]),
        (APIA, f"c IN ('2011-12-30', '2011-12-29 00:00:00-10:00', {OTHER})", [0, 1, 2]),
        (APIA, f"c IN (TIMESTAMP_NTZ '2011-12-30 00:00:00', {OTHER})", [1, 2]),
        (APIA, f"c IN (TIMESTAMP_NTZ '2011-12-30 05:00:00', {OTHER})", []),
        (
            APIA,
            "c IN (TIMESTAMP '2011-12-31 00:00:00', TIMESTAMP '2012-01-01 00:00:00')",
            [1, 2, 3],
        ),
        (
            APIA,
            "c NOT IN (TIMESTAMP '2011-12-31 00:00:00', TIMESTAMP '2012-01-01 12:00:00')",
            [0, 3],
        ),
        # Only a single instant is left of these lists.
        (APIA, "c IN (TIMESTAMP '2011-12-30 00:00:00')", [2]),
        (APIA, "c IN (TIMESTAMP '2011-12-31 00:00:00', DATE '2011-12-30')", [2]),
        (APIA, "c NOT IN (TIMESTAMP '2011-12-31 00:00:00', DATE '2011-12-30')", [0, 1, 3]),
        # These contain no instant.
        (APIA, "c IN (DATE '2011-12-30')", [1]),
        (APIA, "c IN ('2011-12-30', DATE '2011-12-31')", [1, 2]),
        (APIA, "c IN (DATE '2011-12-30', TIMESTAMP_NTZ '2000-01-01 00:00:00')", [1]),
        (APIA, "c IN (TIMESTAMP_NTZ '2011-12-30 00:00:00', DATE '2011-12-31')", [1, 2]),
        (SAO_PAULO, f"c IN (TIMESTAMP_NTZ '2018-11-04 01:00:00', {OTHER})", [1]),
        (SAO_PAULO, f"c IN (TIMESTAMP_NTZ '2018-11-04 00:30:00', {OTHER})", []),
        (SAO_PAULO, f"c IN (TIMESTAMP_NTZ '2018-11-04 00:00:00', {OTHER})", [1]),
        (SAO_PAULO, f"c IN ('2018-11-04 01:00:00', {OTHER})", [1]),
        (SAO_PAULO, f"c IN ('2018-11-03 20:00:00-07:00', {OTHER})", [1]),
        (SAO_PAULO, f"c IN ('2018-11-02 20:00:00-07:00', {OTHER})", [0]),
        (SAO_PAULO, "c IN (TIMESTAMP '2018-11-04 01:00:00', '2018-11-03 13:00')", [1]),
        (
            SAO_PAULO,
            "c IN ('2018-11-04 01:00:00', TIMESTAMP_NTZ '2000-01-01 00:00:00')",
            [],
        ),
        (
            SAO_PAULO,
            "c IN ('2018-11-03 00:00:00-07:00', TIMESTAMP_NTZ '2000-01-01 00:00:00')",
            [0],
        ),
        (ST_JOHNS, f"c IN (TIMESTAMP '2010-11-07 02:30:00Z', {OTHER})", [1]),
        (ST_JOHNS, f"c IN (TIMESTAMP '2010-11-07 03:30:00Z', {OTHER})", []),
        (
            KWAJALEIN,
            "c NOT IN (TIMESTAMP_NTZ '1993-08-22 00:00:00', TIMESTAMP '1993-08-22 00:00:00+14:00')",
            [0],
        ),
    ],
)
def test_next_to_an_instant_all_days_of_a_list_are_instants(
    column: tuple[str, datetime.date, int],
    predicate: str,
    rows: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "timezone", column[0])
    check(column, predicate, rows)


def test_an_index_finds_the_day_that_a_zone_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "timezone", "Pacific/Apia")
    days = pa.table({"c": [datetime.date(2011, 12, 30)]})
    for kind in ("bloom-filter", "bitmap", "range-bitmap", "bsi"):
        index = FileIndex.build(days, {f"file-index.{kind}.columns": "c"})
        assert not index.evaluate(f"c IN (DATE '2011-12-31', {OTHER})").skip
        assert not index.evaluate("c < TIMESTAMP '2011-12-31 00:00:00'").skip


def test_place_of_a_day_that_a_zone_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "timezone", "Pacific/Apia")
    skipped, either = 15338, KeyRange(15338, 15340, exact=False)
    for day in (30, 31):
        literal = datetime.date(2011, 12, day)
        assert key_range(literal, "c", DATE) == KeyRange(skipped + day - 30, skipped + day - 29)
        assert key_range(literal, "c", DATE, mixed=True) == either
        assert key_range(str(literal), "c", DATE, mixed=True) == either
    assert key_range(SessionTimestamp("2011-12-31 00:00:00"), "c", DATE) == either
    assert key_range(datetime.date(2012, 1, 1), "c", DATE, mixed=True) == KeyRange(15340, 15341)


def test_text_that_is_not_a_timestamp_next_to_an_instant() -> None:
    listed = In("c", ("2018-11-04 noon", SessionTimestamp("2000-01-01")))
    with pytest.raises(LiteralError, match="DATE does not take '2018-11-04 noon': it is no time"):
        matching(listed, pa.table({"c": [datetime.date(2018, 11, 4)]}))
    assert key_range("2018-11-04 noon", "c", DATE, mixed=True) == KeyRange(
        17839, 17840, exact=False
    )
