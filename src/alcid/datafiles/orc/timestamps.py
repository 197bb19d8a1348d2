"""Timestamps of ORC files as their writer meant them, whatever its time zone was.

A TIMESTAMP is what a clock showed: seconds from the beginning of 2015 in the time zone of the
writer, and nanoseconds. Before 1970 *in that zone*, the seconds of one with a fraction were cut
towards 1970. Arrow reads them as if they were cut before 1970 in UTC, and by other rules of zones
before 1900 than Java's: therefore it is made to take them for those of a writer in UTC.

A TIMESTAMP_INSTANT is an instant. By Paimon's `orc.timestamp-ltz.legacy.type`, which is its
default, it is another: the one at which the writer's clock showed the TIMESTAMP_LTZ as it is in
UTC.

A stripe names the time zone of its writer as Java's `java.util.TimeZone` calls it, and its
timestamps count from the midnight with which 2015 began there. The rules of the zone come from the
time zone database of this machine, as those of a reader in Java come from its own. Java differs
from the database before 1900: there it takes the standard time of today. Where releases and builds
of the database are known to differ in the history of a zone, timestamps of that time are refused.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.datafiles.orc.footer import (
    INSTANT,
    MAP,
    STRUCT,
    TIMESTAMP,
    OrcType,
)
from alcid.errors import UnsupportedError

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DAY = 86_400
_FIXED = re.compile(r"GMT([+-])(\d{1,2}):?(\d\d)")
_KEY = re.compile(r"[A-Z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")


def _seconds(year: int) -> int:
    return int((datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) - _EPOCH).total_seconds())


_FIRST_RULES = _seconds(1900)
_ORC_EPOCH = _seconds(2015)

_MERGED = """
    Africa/Accra Africa/Addis_Ababa Africa/Asmara Africa/Asmera Africa/Bamako Africa/Bangui
    Africa/Banjul Africa/Blantyre Africa/Brazzaville Africa/Bujumbura Africa/Conakry Africa/Dakar
    Africa/Dar_es_Salaam Africa/Djibouti Africa/Douala Africa/Freetown Africa/Gaborone
    Africa/Harare Africa/Kampala Africa/Kigali Africa/Kinshasa Africa/Libreville Africa/Lome
    Africa/Luanda Africa/Lubumbashi Africa/Lusaka Africa/Malabo Africa/Maseru Africa/Mbabane
    Africa/Mogadishu Africa/Niamey Africa/Nouakchott Africa/Ouagadougou Africa/Porto-Novo
    Africa/Timbuktu Africa/Windhoek America/Anguilla America/Antigua America/Araguaina
    America/Aruba America/Atikokan America/Bahia America/Belem America/Blanc-Sablon
    America/Boa_Vista America/Campo_Grande America/Cayman America/Coral_Harbour America/Creston
    America/Cuiaba America/Curacao America/Dominica America/Eirunepe America/Fortaleza
    America/Grenada America/Guadeloupe America/Kralendijk America/Lower_Princes America/Maceio
    America/Manaus America/Marigot America/Montserrat America/Nassau America/Noronha
    America/Port_of_Spain America/Porto_Acre America/Porto_Velho America/Recife America/Rio_Branco
    America/Santarem America/Sao_Paulo America/St_Barthelemy America/St_Kitts America/St_Lucia
    America/St_Thomas America/St_Vincent America/Tortola America/Virgin Antarctica/DumontDUrville
    Antarctica/McMurdo Antarctica/South_Pole Antarctica/Syowa Arctic/Longyearbyen Asia/Aden
    Asia/Bahrain Asia/Brunei Asia/Kuala_Lumpur Asia/Kuwait Asia/Muscat Asia/Phnom_Penh
    Asia/Vientiane Atlantic/Jan_Mayen Atlantic/Reykjavik Atlantic/St_Helena Brazil/Acre
    Brazil/DeNoronha Brazil/East Brazil/West CST6CDT EST EST5EDT Eire Europe/Amsterdam
    Europe/Copenhagen Europe/Dublin Europe/Guernsey Europe/Isle_of_Man Europe/Jersey
    Europe/Ljubljana Europe/Luxembourg Europe/Monaco Europe/Oslo Europe/Sarajevo Europe/Skopje
    Europe/Stockholm Europe/Zagreb HST Iceland Indian/Antananarivo Indian/Christmas Indian/Cocos
    Indian/Comoro Indian/Kerguelen Indian/Mahe Indian/Mayotte Indian/Reunion MST MST7MDT PST8PDT
    Pacific/Chuuk Pacific/Funafuti Pacific/Majuro Pacific/Midway Pacific/Pohnpei Pacific/Ponape
    Pacific/Saipan Pacific/Truk Pacific/Wake Pacific/Wallis Pacific/Yap
"""
_UNSURE_BEFORE_1970 = frozenset(_MERGED.split())
"""Zones that some builds of the database have merged with a neighbour, or corrected since."""
_CORRECTED = """
    America/Bogota America/Ensenada America/Santa_Isabel America/Tijuana Asia/Tehran CET EET Iran
    MET Mexico/BajaNorte WET
"""
_UNSURE_BEFORE_1997 = frozenset(_CORRECTED.split())
_UNSURE_AFTER_2030 = frozenset(
    ("Africa/Casablanca", "Africa/El_Aaiun", "Africa/Windhoek", "Asia/Gaza", "Asia/Hebron")
)
"""Zones whose rules for the far future Java and the database do not share."""


class WriterZone:
    """A zone, and how far its clock is ahead of UTC.

    >>> zone = find_writer_zone("Asia/Kolkata", "a.orc")
    >>> zone.offsets(np.array([0, -2_000_000_000, -3_000_000_000]), "a.orc").tolist()
    [19800, 19800, 19800]
    """

    def __init__(self, name: str, zone: datetime.tzinfo, first: int, last: int) -> None:
        """For `find_writer_zone`."""
        self.name, self._zone, self._first, self._last = name, zone, first, last
        self._raw = min(self._offset(_seconds(2032) + 30 * _DAY * part) for part in range(12))
        self.orc_epoch = _ORC_EPOCH - self._offset(_ORC_EPOCH - self._offset(_ORC_EPOCH))
        """The seconds that its timestamps count from."""

    def offsets(self, instants: Int64Array, file: str) -> Int64Array:
        """How many seconds its clock was ahead of UTC at each instant, in seconds.

        Raises:
            UnsupportedError: The rules of the zone are not sure at one of them.
        """
        if not len(instants):
            return instants
        least, greatest = int(instants.min()), int(instants.max())
        if least < self._first or greatest >= self._last:
            outside = least if least < self._first else greatest
            raise UnsupportedError(
                f"{file}: an ORC timestamp of {_EPOCH + datetime.timedelta(seconds=outside):%Y} "
                f"that was written in the time zone {self.name}, of which the rules are not sure "
                f"before {_name_year(self._first)} and from {_name_year(self._last)} on; "
                "write the rows again as Parquet"
            )
        days = instants // _DAY
        first = int(days.min())
        is_present = np.zeros(int(days.max()) - first + 1, np.bool_)
        is_present[days - first] = True
        begins, changes, ends = np.zeros((3, len(is_present)), np.int64)
        for number in np.flatnonzero(is_present).tolist():
            begins[number], changes[number], ends[number] = _day_rules(self, first + number)
        numbers = days - first
        offsets = np.where(instants < changes[numbers], begins[numbers], ends[numbers])
        return np.where(instants < _FIRST_RULES, self._raw, offsets)

    def _offset(self, instant: int) -> int:
        local = (_EPOCH + datetime.timedelta(seconds=instant)).astimezone(self._zone)
        return int((local.utcoffset() or datetime.timedelta()).total_seconds())


@lru_cache(maxsize=1 << 16)
def _day_rules(zone: WriterZone, day: int) -> tuple[int, int, int]:
    """The offset with which a day of UTC begins, the instant of its change, and the one after."""
    low, high = day * _DAY, (day + 1) * _DAY
    begin, end = zone._offset(low), zone._offset(high)
    while begin != end and high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if zone._offset(middle) == begin else (low, middle)
    return begin, high, end


def _name_year(seconds: int) -> str:
    return str((_EPOCH + datetime.timedelta(seconds=seconds)).year)


def find_writer_zone(name: str, file: str) -> WriterZone:
    """The zone that Java calls by a name.

    Raises:
        UnsupportedError: There is no such zone here.
    """
    zone = _find(name)
    if zone is None:
        raise UnsupportedError(
            f"{file}: ORC timestamps that were written in the time zone {name!r}, "
            "which the time zone database of this machine does not have"
        )
    return zone


@lru_cache(maxsize=64)
def _find(name: str) -> WriterZone | None:
    first, last = _seconds(1600), _seconds(2300)
    if match := _FIXED.fullmatch(name):
        seconds = int(match[2]) * 3600 + int(match[3]) * 60
        if seconds < _DAY:
            delta = datetime.timedelta(seconds=-seconds if match[1] == "-" else seconds)
            return WriterZone(name, datetime.timezone(delta), first, last)
    if not _KEY.fullmatch(name):
        return None
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    if name in _UNSURE_BEFORE_1970:
        first = 0
    if name in _UNSURE_BEFORE_1997:
        first = _seconds(1997)
    if name in _UNSURE_AFTER_2030:
        last = _seconds(2030)
    return WriterZone(name, zone, first, last)


Convert: TypeAlias = Callable[[Int64Array], Int64Array]

IN_UTC = frozenset(("GMT", "UTC"))
"""Zones with which Arrow reads what was written."""
_SECOND = 10**9
_CUT = 999_999  # a fraction up to so many nanoseconds was not cut
_UTC_EPOCH = 1_420_070_400


def shown_by_clock(read: Int64Array, zone: WriterZone, file: str) -> Int64Array:
    """What the writer's clock showed, in nanoseconds, by what Arrow reads as if it were in UTC.

    >>> from alcid.datafiles.orc.timestamps import find_writer_zone
    >>> zone = find_writer_zone("Asia/Shanghai", "a.orc")
    >>> shown_by_clock(np.array([28_799_500_000_000]), zone, "a.orc").tolist()
    [28798500000000]
    """
    seconds, nanos = np.divmod(read, _SECOND)
    is_cut = nanos > _CUT
    seconds = seconds + (is_cut & (seconds < 0)) + (zone.orc_epoch - _UTC_EPOCH)
    seconds -= is_cut & (seconds < 0)
    return (seconds + zone.offsets(seconds, file)) * _SECOND + nanos


def local_instants(read: Int64Array, zone: WriterZone, file: str) -> Int64Array:
    """What the writer's clock showed at instants, all in nanoseconds."""
    return read + zone.offsets(read // _SECOND, file) * _SECOND


def has_kind(column: OrcType, kind: int) -> bool:
    """Whether a column is of a kind, or one below it is."""
    return any(inner.kind == kind for inner in column.walk())


def map_kind(values: Any, column: OrcType, kind: int, convert: Convert) -> Any:
    """An array with all timestamps of a kind in it converted, however deep they are.

    Args:
        values: As Arrow reads a stripe: it is no slice.
        column: Its type in the file.
        kind: TIMESTAMP or TIMESTAMP_INSTANT.
        convert: What is done to nanoseconds.
    """
    if not has_kind(column, kind):
        return values
    if column.kind in (TIMESTAMP, INSTANT):
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        known = values.cast(pa.int64()).drop_null().to_numpy()
        mapped = np.zeros(len(values), np.int64)
        mapped[~is_null] = convert(known)
        return pa.array(mapped, mask=is_null).cast(values.type)
    count = 1 if column.kind == STRUCT else 2  # the nulls, and where lists begin
    own = values.buffers()[:count]
    if column.kind == STRUCT:
        children = [values.field(number) for number in range(len(column.children))]
    elif column.kind == MAP:
        children = [values.keys, values.items]
    else:
        children = [values.values]
    children = [
        map_kind(child, below, kind, convert)
        for child, below in zip(children, column.children, strict=True)
    ]
    if column.kind == MAP:
        entry = [values.type.key_field, values.type.item_field]
        children = [pa.StructArray.from_arrays(children, fields=entry)]
    return pa.Array.from_buffers(values.type, len(values), own, children=children)
