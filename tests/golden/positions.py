"""Positions of deleted rows: how a golden file lists them, and the sets for every writer."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from tests.golden.values import Json


def positions_of(spec: Json) -> list[int]:
    """The positions of a golden file, ascending.

    An item is a position, or the arguments of `range`, or `{"scatter": [count, multiplier, modulo,
    offset]}`: offset + n * multiplier % modulo for n in 0..count-1.

    >>> positions_of([9, [0, 3], [20, 30, 5], {"scatter": [3, 7, 10, 100]}])
    [0, 1, 2, 9, 20, 25, 100, 104, 107]
    """
    positions: set[int] = set()
    for item in spec:
        if isinstance(item, dict):
            count, multiplier, modulo, offset = item["scatter"]
            positions.update(offset + number * multiplier % modulo for number in range(count))
        elif isinstance(item, list):
            positions.update(range(*item))
        else:
            positions.add(item)
    return sorted(positions)


def spec_of(positions: Sequence[int]) -> Json:
    """Ascending positions as a golden file names them, with ranges where they are beside.

    >>> spec_of([0, 1, 2, 9])
    [[0, 3], 9]
    """
    spec: list[list[int]] = []
    for position in positions:
        if spec and spec[-1][1] == position:
            spec[-1][1] += 1
        else:
            spec.append([position, position + 1])
    return [first if end == first + 1 else [first, end] for first, end in spec]


def give_positions(gateway: Any, method: Any, positions: Sequence[int]) -> None:
    """Call a bound method handle with each position in turn; all cross to the JVM in one piece."""
    java = gateway.jvm.java
    array = gateway.new_array(gateway.jvm.long, len(positions))
    data = bytearray(struct.pack(f">{len(positions)}q", *positions))
    java.nio.ByteBuffer.wrap(data).asLongBuffer().get(array)
    consumer = java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
        java.lang.Class.forName("java.util.function.LongConsumer"), method
    )
    java.util.Arrays.stream(array).forEach(consumer)


def _every_other(count: int, first: int = 0) -> list[int]:
    """Arguments of a range with this many positions, none next to another."""
    return [first, first + 2 * count, 2]


# Containers hold 65,536 positions each: below, at and above the limits between their kinds.
SETS: dict[str, Json] = {
    "empty": [],
    "zero": [0],
    "one": [65_535],
    "few": [[0, 3], 50],
    "two_beside": [[7, 9]],
    "three_beside": [[7, 10]],  # an array and a run of six bytes
    "four_beside": [[7, 11]],
    "two_runs_tied": [[0, 3], [10, 12]],  # an array and two runs of ten bytes
    "run": [[10, 40]],
    "whole_container": [[0, 65_536]],
    "run_over_two": [[60_000, 70_000]],
    "mixed_containers": [[1, 4], 1000, 70_000, [131_072, 140_000], [200_000, 209_000, 2]],
    "array_4096": [_every_other(4096)],
    "bitset_4097": [_every_other(4097)],
    "three_containers_of_runs": [[n << 16, (n << 16) + 9] for n in range(3)],
    "four_containers_of_runs": [[n << 16, (n << 16) + 9] for n in range(4)],
    "nine_containers": [[n << 16, (n << 16) + 9] for n in range(8)] + [8 << 16],
    "scattered": [{"scatter": [3000, 7919, 1_000_003, 0]}],
    "high": [2**31 - 65_537, [2**31 - 4, 2**31]],  # the last rows that 32 bits allow
}
WIDE_SETS: dict[str, Json] = {
    "first_beyond_32_bits": [5, 2**32 + 7],
    "gap_of_one": [2**32 + 7],
    "unsigned_low": [2**31, 2**32 - 1],
    "three_keys": [5, [2**32 + 7, 2**32 + 100], 2 * 2**32 + 9],
    "gaps": [1, 7 * 2**32 + 3, 40 * 2**32 + 70_000],
    "wide_mixed": [[0, 100], _every_other(4097, 2**32), {"scatter": [500, 7919, 100_003, 2**33]}],
}
