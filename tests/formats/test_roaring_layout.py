from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from alcid.formats.roaring import RoaringContainer, RoaringLayout

CHUNK = 1 << 16
SPANS = st.tuples(st.integers(0, 6 * CHUNK), st.integers(1, 9000), st.sampled_from([1, 2, 3, 17]))


@given(st.lists(SPANS, max_size=8), st.booleans())
def test_containers_fill_the_bitmap_and_hold_its_rows(
    spans: list[tuple[int, int, int]], optimized: bool
) -> None:
    bitmap = BitMap()
    for start, count, step in spans:
        bitmap |= BitMap(range(start, start + count * step, step))
    if optimized:
        bitmap.run_optimize()
    data = bitmap.serialize()
    layout = RoaringLayout.of(data)
    counts = {key: len(bitmap & BitMap(range(key * CHUNK, (key + 1) * CHUNK))) for key in range(9)}
    cardinalities = {container.key: container.cardinality for container in layout.containers}
    assert cardinalities == {key: count for key, count in counts.items() if count}
    ends = [container.offset + container.length for container in layout.containers]
    starts = [container.offset for container in layout.containers]
    assert starts[1:] == ends[:-1]
    assert not ends or ends[-1] == len(data)


@pytest.mark.parametrize(
    ("rows", "container"),
    [
        (range(0, 8192, 2), RoaringContainer(0, 4096, "array", 16, 8192)),
        (range(0, 8194, 2), RoaringContainer(0, 4097, "bitset", 16, 8192)),
        (range(70_000, 80_000), RoaringContainer(1, 10_000, "runs", 9, 6)),
    ],
    ids=["array", "bitset", "runs"],
)
def test_the_kinds_of_containers(rows: range, container: RoaringContainer) -> None:
    bitmap = BitMap(rows)
    bitmap.run_optimize()
    layout = RoaringLayout.of(bitmap.serialize())
    assert layout.containers == (container,)
    has_runs = container.kind == "runs"
    assert (layout.has_runs, layout.flags_at) == (has_runs, 4)
    assert (layout.keys_at, layout.offsets_at) == ((5, None) if has_runs else (8, 12))


def test_offsets_are_left_out_with_runs_in_few_containers() -> None:
    few, many = (
        BitMap([row for chunk in range(count) for row in range(chunk * CHUNK, chunk * CHUNK + 9)])
        for count in (3, 4)
    )
    few.run_optimize()
    many.run_optimize()
    assert RoaringLayout.of(few.serialize()).offsets_at is None
    assert RoaringLayout.of(many.serialize()).offsets_at == 4 + 1 + 4 * 4
