"""Timestamps of ORC files as their writer meant them, wherever it was.

A TIMESTAMP is what a clock showed: seconds from the beginning of 2015 in the time zone of the
writer, and nanoseconds. Before 1970 *in that zone*, the seconds of one with a fraction were cut
towards 1970. Arrow reads them as if they were cut before 1970 in UTC, and by other rules of zones
before 1900 than Java's: therefore it is made to take them for those of a writer in UTC.

A TIMESTAMP_INSTANT is an instant. By Paimon's `orc.timestamp-ltz.legacy.type`, which is its
default, it is another: the one at which the writer's clock showed the TIMESTAMP_LTZ as it is in
UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.orc_file.schema import INSTANT, MAP, STRUCT, TIMESTAMP, OrcType
from alcid.orc_file.writer_zone import WriterZone

__all__ = ["IN_UTC", "has_kind", "local_instants", "map_kind", "shown_by_clock"]

Integers = npt.NDArray[np.int64]
Convert: TypeAlias = Callable[[Integers], Integers]

IN_UTC = frozenset(("GMT", "UTC"))
"""Zones with which Arrow reads what was written."""
_SECOND = 10**9
_CUT = 999_999  # a fraction up to so many nanoseconds was not cut
_UTC_EPOCH = 1_420_070_400


def shown_by_clock(read: Integers, zone: WriterZone, file: str) -> Integers:
    """What the writer's clock showed, in nanoseconds, by what Arrow reads as if it were in UTC.

    >>> from alcid.orc_file.writer_zone import find_writer_zone
    >>> zone = find_writer_zone("Asia/Shanghai", "a.orc")
    >>> shown_by_clock(np.array([28_799_500_000_000]), zone, "a.orc").tolist()
    [28798500000000]
    """
    seconds, nanos = np.divmod(read, _SECOND)
    is_cut = nanos > _CUT
    seconds = seconds + (is_cut & (seconds < 0)) + (zone.orc_epoch - _UTC_EPOCH)
    seconds -= is_cut & (seconds < 0)
    return (seconds + zone.offsets(seconds, file)) * _SECOND + nanos


def local_instants(read: Integers, zone: WriterZone, file: str) -> Integers:
    """What the writer's clock showed at instants, all in nanoseconds."""
    return read + zone.offsets(read // _SECOND, file) * _SECOND


def has_kind(column: OrcType, kind: int) -> bool:
    """Whether a column is of a kind, or one below it is."""
    return any(one.kind == kind for one in column.walk())


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
        found = np.zeros(len(values), np.int64)
        found[~is_null] = convert(known)
        return pa.array(found, mask=is_null).cast(values.type)
    count = 1 if column.kind == STRUCT else 2  # the nulls, and where lists begin
    own = values.buffers()[:count]
    if column.kind == STRUCT:
        children = [values.field(place) for place in range(len(column.children))]
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
