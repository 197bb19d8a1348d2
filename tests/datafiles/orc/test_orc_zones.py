"""Timestamps of ORC files whose writer was not in UTC."""

from __future__ import annotations

import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from alcid.datafiles.orc.timestamps import find_writer_zone
from alcid.errors import UnsupportedError
from tests.datafiles.orc.other_writers import in_zone, lists_as_maps, scan_of, written

SECOND = 10**9
UTC_EPOCH = 1_420_070_400
FRACTIONS = [0, 1, 999_999, 1_000_000, 500_000_000, 999_999_999]


def java_bytes(clocks: list[int], zone: str, offsets: list[int], kind: Any = None) -> bytes:
    """The file that Java writes in a zone, for clock times with their offsets from UTC.

    Java writes the seconds of the instant, cut towards 1970, from the midnight of the zone's 2015.
    pyarrow writes seconds in the same way from 2015 in UTC.
    """
    begin = datetime.datetime(2015, 1, 1, tzinfo=ZoneInfo(zone))
    moved = UTC_EPOCH - int(begin.timestamp())
    ticks = []
    for clock, offset in zip(clocks, offsets, strict=True):
        seconds, nanos = divmod(clock - offset * SECOND, SECOND)
        if seconds < 0 and nanos > 999_999:
            seconds += 1
        seconds += moved
        if seconds < 0 and nanos > 999_999:
            seconds -= 1
        ticks.append(seconds * SECOND + nanos)
    return in_zone(written(pa.table({"t": pa.array(ticks, kind or pa.timestamp("ns"))})), zone)


@pytest.mark.parametrize(
    ("zone", "second", "offset"),
    [
        # Near 1970 there and in UTC.
        ("Asia/Shanghai", 28_798, 28_800),
        ("Asia/Shanghai", 28_700, 28_800),
        ("Asia/Shanghai", 28_801, 28_800),
        ("Asia/Shanghai", 0, 28_800),
        ("Asia/Shanghai", -1, 28_800),
        ("America/New_York", -18_002, -18_000),
        ("America/New_York", -17_999, -18_000),
        ("America/New_York", -1, -18_000),
        ("America/New_York", 1, -18_000),
        # Local mean time until 1900, then that of today.
        ("Asia/Kolkata", -2_100_000_000, 19_270),
        ("Asia/Kolkata", -3_000_000_000, 19_800),
        ("Asia/Shanghai", -2_200_000_000, 29_143),
        ("Asia/Shanghai", -2_300_000_000, 28_800),
        # Summer and winter, and long after the last rule.
        ("Europe/Warsaw", 1_720_000_000, 7_200),
        ("Europe/Warsaw", 1_730_000_000, 3_600),
        ("Europe/Warsaw", 8_000_000_000, 7_200),
        ("Europe/Warsaw", 8_010_000_000, 3_600),
        # Within the hour that clocks showed twice, and around the change.
        ("America/New_York", 1_730_597_400, -18_000),
        ("America/New_York", 1_730_593_799, -14_400),
        ("America/New_York", 1_710_054_000, -14_400),
        ("America/New_York", 1_710_035_999, -18_000),
    ],
)
def test_timestamps_are_what_the_clock_of_the_writer_showed(
    zone: str, second: int, offset: int
) -> None:
    clocks = [second * SECOND + fraction for fraction in FRACTIONS]
    data = java_bytes(clocks, zone, [offset] * len(clocks))
    assert scan_of(data).read().column("t").cast(pa.int64()).to_pylist() == clocks


def test_the_last_second_before_1970_was_lost_by_the_writer() -> None:
    """As Java reads it."""
    zone, offset = "Asia/Shanghai", 28_800
    clocks = [(offset - 1) * SECOND + fraction for fraction in FRACTIONS]
    table = scan_of(java_bytes(clocks, zone, [offset] * 6)).read()
    expected = [*clocks[:3], *(clock + SECOND for clock in clocks[3:])]
    assert table.column("t").cast(pa.int64()).to_pylist() == expected


def test_timestamps_within_other_values_are_converted() -> None:
    offset, clock = 28_800, 1_000_000_000_000_000_000
    at = clock - offset * SECOND + offset * SECOND  # 2015 began that much earlier than it is read
    moment = pa.timestamp("ns")
    entry = pa.struct([("key", pa.string()), ("value", moment)])
    kind = pa.struct([("a", pa.list_(moment)), ("m", pa.list_(entry)), ("n", pa.int64())])
    rows = [
        None,
        {"a": [at, None], "m": [{"key": "x", "value": at}], "n": 1},
        {"a": None, "m": None, "n": None},
        {"a": [], "m": [], "n": 2},
        {"a": [at], "m": [{"key": "y", "value": None}, {"key": "z", "value": at}], "n": 3},
    ]
    table = pa.table({"s": pa.array(rows, kind), "id": range(5)})
    # 1 s, 2 a, 3, 4 m, 5 its entry
    converted = scan_of(in_zone(lists_as_maps(written(table), [4]), "Asia/Shanghai")).read()
    converted.validate(full=True)
    inside = converted.column("s").combine_chunks()
    assert converted.column("id").to_pylist() == list(range(5))
    assert inside.is_valid().to_pylist() == [False, True, True, True, True]
    lists, maps = inside.field("a"), inside.field("m")
    assert inside.field("n").to_pylist() == [None, 1, None, 2, 3]
    assert lists.cast(pa.list_(pa.int64())).to_pylist() == [None, [clock, None], None, [], [clock]]
    assert maps.is_valid().to_pylist() == [False, True, False, True, True]
    assert maps.keys.to_pylist() == ["x", "y", "z"]
    assert maps.items.cast(pa.int64()).to_pylist() == [clock, None, clock]


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "UTC", "GMT"])
def test_instants_are_instants_unless_they_are_local(zone: str) -> None:
    instants = [0, -1_500_000_000, 1_700_000_000 * SECOND + 1, None]
    table = pa.table({"t": pa.array(instants, pa.timestamp("ns", "UTC"))})
    data = in_zone(written(table), zone)
    assert scan_of(data).read().column("t").cast(pa.int64()).to_pylist() == instants
    instants_read = scan_of(data, has_local_instants=True).read().column("t")
    assert instants_read.type == pa.timestamp("ns", "UTC")
    moved = 28_800 * SECOND if zone == "Asia/Shanghai" else 0
    expected = [instant if instant is None else instant + moved for instant in instants]
    assert instants_read.cast(pa.int64()).to_pylist() == expected


def test_a_writer_that_did_not_say_where_it_was_is_refused() -> None:
    kinds = {"t": pa.timestamp("us"), "l": pa.timestamp("us", "UTC"), "id": pa.int64()}
    table = pa.table({name: pa.array([0, None], kind) for name, kind in kinds.items()})
    data = in_zone(written(table), None)
    with pytest.raises(UnsupportedError, match=r"^a\.orc: column t: timestamps in the time zone"):
        scan_of(data).read()
    assert scan_of(data).read(None, ["l", "id"]).column("id").to_pylist() == [0, None]
    with pytest.raises(UnsupportedError, match=r"column l: .*orc\.timestamp-ltz\.legacy\.type"):
        scan_of(data, has_local_instants=True).read(None, ["l"])


@pytest.mark.parametrize("zone", ["Mars/Phobos", "CTT", "../../etc/passwd", "GMT+25:00", "Łódź"])
def test_a_zone_that_is_not_known_is_refused(zone: str) -> None:
    data = in_zone(written(pa.table({"t": pa.array([0], pa.timestamp("us"))})), zone)
    with pytest.raises(UnsupportedError, match=r"^a\.orc: .* which the time zone database"):
        scan_of(data).read()


@pytest.mark.parametrize(
    ("zone", "offset"),
    [("GMT+08:00", 28_800), ("GMT-03:30", -12_600), ("Etc/GMT-8", 28_800), ("Etc/UTC", 0)],
)
def test_zones_of_a_fixed_offset(zone: str, offset: int) -> None:
    seconds = np.array([-3_000_000_000, 0, 3_000_000_000])
    writer_zone = find_writer_zone(zone, "a.orc")
    assert writer_zone.offsets(seconds, "a.orc").tolist() == [offset] * 3
    assert writer_zone.orc_epoch == UTC_EPOCH - offset


@pytest.mark.parametrize(
    ("zone", "year", "refused"),
    [
        ("Europe/Amsterdam", 1969, True),
        ("Europe/Amsterdam", 1970, False),
        ("Europe/Berlin", 1950, False),
        ("WET", 1996, True),
        ("WET", 1997, False),
        ("Africa/Windhoek", 2030, True),
        ("Africa/Windhoek", 2029, False),
    ],
)
def test_what_databases_of_time_zones_do_not_agree_on_is_refused(
    zone: str, year: int, refused: bool
) -> None:
    moment = datetime.datetime(year, 6, 1, tzinfo=datetime.UTC)
    seconds = np.array([int(moment.timestamp())])
    writer_zone = find_writer_zone(zone, "a.orc")
    if not refused:
        expected = moment.astimezone(ZoneInfo(zone)).utcoffset()
        assert expected is not None
        assert writer_zone.offsets(seconds, "a.orc").tolist() == [expected.total_seconds()]
        return
    with pytest.raises(UnsupportedError, match=rf"a\.orc: .*{year} that was written .*{zone}"):
        writer_zone.offsets(seconds, "a.orc")


def test_only_some_of_several_stripes_are_read() -> None:
    rows = pa.table({"id": range(30_000), "t": pa.array(range(30_000), pa.timestamp("s"))})
    data = written(rows, stripe_size=20_000, batch_size=1024)
    plain = scan_of(data)
    assert len(plain.group_rows) > 2
    starts = np.cumsum([0, *plain.group_rows]).tolist()
    scan = scan_of(data)
    for streams in scan._streams:
        object.__setattr__(streams, "zone", "Asia/Shanghai")
    table = scan.read([2, 0], ["t", "id"])
    expected = [*range(starts[2], starts[3]), *range(starts[1])]
    assert table.column("id").to_pylist() == expected
    # What counted from 2015 in UTC is unchanged: the clock of Shanghai is that far ahead.
    seconds = table.column("t").cast(pa.int64()).to_numpy() // SECOND
    assert seconds.tolist() == expected
