"""Which snapshots of a table stay: the options `snapshot.*`, and arguments in their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from alcid.errors import OptionError, UnsupportedError, require
from alcid.tables.paimon.metadata.options import (
    MAX_INT,
    TableOptions,
    boolean,
    integer,
    parse_value,
)

_DURATION = re.compile(r"\s*(\d{1,18})\s*([a-zµ]*)\s*")
_UNITS: Final = {
    unit: length
    for units, length in {
        "d day days": timedelta(days=1),
        "h hour hours": timedelta(hours=1),
        "m min minute minutes": timedelta(minutes=1),
        "s sec secs second seconds": timedelta(seconds=1),
        "ms milli millis millisecond milliseconds": timedelta(milliseconds=1),
        "µs micro micros microsecond microseconds": timedelta(microseconds=1),
    }.items()
    for unit in units.split()
} | {"": timedelta(milliseconds=1)}


def duration(text: str) -> timedelta:
    """The duration that an option gives, in milliseconds where it has no unit.

    >>> duration("36 h"), duration("500")
    (datetime.timedelta(days=1, seconds=43200), datetime.timedelta(microseconds=500000))
    """
    match = _DURATION.fullmatch(text.lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError("a number and a unit, as 1 h")
    try:
        return int(match[1]) * _UNITS[match[2]]
    except OverflowError:
        return timedelta.max


@dataclass(frozen=True, slots=True)
class Retention:
    """Which snapshots stay; by default as the options of the table say."""

    least: int = 10
    """So many of the latest stay, however old."""
    most: int = MAX_INT
    """All but so many of the latest expire, however young."""
    age: timedelta = timedelta(hours=1)
    """Of the others those stay that were the latest less than so long ago."""
    limit: int = 50
    """How many expire at once."""
    heeds_consumers: bool = True
    """Whether a consumer keeps its next snapshot, and all after it."""

    @classmethod
    def of(
        cls, options: TableOptions, older_than: timedelta | None, retain_last: int | None
    ) -> Retention:
        """The retention of a table, with arguments in place of its options.

        Raises:
            OptionError: An invalid value.
            UnsupportedError: The table keeps changelogs longer than snapshots.
        """
        least = _option(options, "snapshot.num-retained.min", integer(1), cls().least)
        most = _option(options, "snapshot.num-retained.max", integer(1), cls().most)
        if most < least:
            raise OptionError(
                f"snapshot.num-retained.max: found {most}, expected {least} or more, which is "
                "snapshot.num-retained.min"
            )
        age = _option(options, "snapshot.time-retained", duration, cls().age)
        limit = _option(options, "snapshot.expire.limit", integer(1), cls().limit)
        if older_than is not None:
            require(older_than, timedelta, "older_than")
            if older_than < timedelta(0):
                raise OptionError(f"older_than: found {older_than}, expected 0 or more")
            age = older_than
        if retain_last is not None:
            require(retain_last, int, "retain_last")
            if retain_last < 1:
                raise OptionError(f"retain_last: found {retain_last}, expected 1 or more")
            least, most = retain_last, max(most, retain_last)
        if older_than is not None or retain_last is not None:
            limit = MAX_INT  # it is for expiry within a commit, which must not take long
        changelog_only = _option(options, "consumer.changelog-only", boolean, False)
        retention = cls(least, most, age, limit, heeds_consumers=not changelog_only)
        retention._refuse_longer_changelogs(options)
        return retention

    def _refuse_longer_changelogs(self, options: TableOptions) -> None:
        parsers = {
            "changelog.num-retained.min": (integer(1), self.least),
            "changelog.num-retained.max": (integer(1), self.most),
            "changelog.time-retained": (duration, self.age),
        }
        for key, (parser, shorter) in parsers.items():
            if _option(options, key, parser, shorter) > shorter:
                raise UnsupportedError(
                    f"{key}={options.raw[key]}: cannot expire snapshots: changelogs, which stay "
                    "longer than these, would be lost; expire them with Paimon's Java"
                )

    def first_kept(self, times: Mapping[int, int], consumers: Iterable[int], now: int) -> int:
        """The oldest snapshot that stays.

        Args:
            times: When snapshots were committed, in milliseconds, by their numbers.
            consumers: The next snapshot of each consumer.
            now: The time, in milliseconds.

        >>> times = {number: 1_000 * number for number in range(1, 8)}
        >>> Retention(least=2, age=timedelta(seconds=2)).first_kept(times, [], now=8_000)
        5
        """
        numbers = sorted(times)
        earliest, latest = numbers[0], numbers[-1]
        first_by_age = max(latest - self.most + 1, earliest)
        end = min(latest - self.least + 1, earliest + self.limit)
        if self.heeds_consumers:
            end = min([end, *consumers])
        before = now - self.age // timedelta(milliseconds=1)
        following = numbers[1:]
        for number, after in zip(numbers, following, strict=False):
            # It was the latest until the one after it came: readers may be at work on it.
            if first_by_age <= number < end and times[after] >= before:
                end = number
                break
        return next((number for number in numbers if number >= end), latest)


def _option(options: TableOptions, key: str, parser: Callable[[str], Any], default: Any) -> Any:
    return parse_value(key, options.raw[key], parser) if key in options.raw else default
