"""Merging: which bundles are chosen, what that costs over many builds, and equal answers."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.formats.puffin import Blob
from alcid.formats.source import BytesSource
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    BundleWriter,
    FileEntry,
    MergeCandidate,
    choose_bundles,
    merge,
    open_bundles,
)
from tests.index.bundle.bundles import KINDS, File
from tests.index.bundle.test_bundle_set import Listing, bundles_of_files, listings, opened

FULL, MOST = 1 << 28, 16
candidates = st.builds(
    lambda size, live, dead, required: MergeCandidate(size, live + dead, live, required),
    st.integers(1, FULL) | st.integers(1, 100),
    st.integers(0, 9),
    st.integers(0, 9),
    st.sampled_from([False] * 9 + [True]),
)


def test_small_bundles_are_merged_without_a_large_one() -> None:
    """39 builds of one file on a table of 200 files rewrote all bundles again and again."""
    bundles: list[int] = [200]
    merges: list[list[int]] = []
    for _ in range(39):
        bundles.append(1)
        chosen = choose_bundles([MergeCandidate(s, s, s) for s in bundles], full=FULL, most=MOST)
        if chosen:
            merges.append([bundles[number] for number in chosen])
            total = sum(merges[-1])
            bundles = [s for number, s in enumerate(bundles) if number not in chosen] + [total]
    assert merges == [[1] * 16, [1] * 15]
    assert bundles == [200, 16, 15, *[1] * 8]


@pytest.mark.parametrize("step", [1, 7, 4096])
def test_bytes_rewritten_over_many_builds_grow_with_a_logarithm(step: int) -> None:
    builds, rewritten = 5000, 0
    bundles: list[int] = []
    for _ in range(builds):
        bundles.append(step)
        chosen = choose_bundles([MergeCandidate(s, 1, 1) for s in bundles], full=FULL, most=MOST)
        total = sum(bundles[number] for number in chosen)
        rewritten += total
        if chosen:
            bundles = [s for number, s in enumerate(bundles) if number not in chosen] + [total]
        assert len(bundles) <= MOST
    assert sum(bundles) == builds * step
    assert rewritten <= builds * step * math.log2(builds)
    everything = sum(range(MOST, builds, MOST)) * step  # as merging all of them would rewrite
    assert 25 * rewritten < everything


@given(st.lists(candidates, max_size=40), st.integers(0, 5), st.none() | st.integers(0, 500))
def test_choices_leave_few_small_bundles_and_large_ones_alone(
    bundles: list[MergeCandidate], most: int, cheap: int | None
) -> None:
    chosen = choose_bundles(bundles, full=FULL, most=most, cheap=cheap)
    assert chosen == sorted(set(chosen))
    first = [
        number
        for number, bundle in enumerate(bundles)
        if bundle.required
        or (bundle.dead >= 0.5 and (2 * bundle.size >= FULL or cheap is not None))
    ]
    small = [p for p, bundle in enumerate(bundles) if p not in first and 2 * bundle.size < FULL]
    assert {*first} <= {*chosen} <= {*first, *small}
    left = [bundles[number].size for number in small if number not in chosen]
    sizes = [bundles[number].size for number in small]
    assert len(left) - sum(sizes) // FULL <= most
    taken = sorted(bundles[number].size for number in small if number in chosen)
    assert max(taken, default=0) <= min(left, default=FULL)  # the smallest ones
    if len(small) - sum(sizes) // FULL <= most:
        is_cheap = sum(taken) <= (cheap or 0)
        doubles = taken[-1:] <= [sum(bundles[p].size for p in first) + sum(taken[:-1])]
        assert not taken or is_cheap or (first and doubles)
    every = choose_bundles(bundles, full=FULL, most=most, thorough=True)
    if len(every) > 1:
        assert {number for number in chosen if bundles[number].files and number in small} <= {
            *every
        }


@given(bundles_of_files, listings, st.sets(st.integers(0, 3)))
def test_merging_any_of_the_bundles_changes_no_answer(
    files: list[list[File]], listing: Listing, numbers: set[int]
) -> None:
    before = opened(files, listing)
    chosen = [bundle for number, bundle in enumerate(before.bundles) if number in numbers]
    data = io.BytesIO()
    merge(before, data, chosen=chosen)
    merged = Bundle.open(BytesSource(data.getvalue()))
    others = [bundle for bundle in before.bundles if bundle not in chosen]
    sizes, versions = [size for size, _ in listing.values()], [v for _, v in listing.values()]
    after = BundleSet([*others, merged], list(listing), sizes, versions)
    for kind in KINDS:
        for number in range(len(listing)):
            old, new = (bundle_set.coverage(kind).payload(number) for bundle_set in (before, after))
            assert (old and old.read(0, old.size)) == (new and new.read(0, new.size))
    assert after.rows.equals(before.rows)
    assert after.footer_crcs.equals(before.footer_crcs)
    assert after.schemas.to_pylist() == before.schemas.to_pylist()
    assert after.columns == before.columns or {*before.columns} > {*after.columns}
    for column in before.columns:
        assert [
            (statistics.data_type, statistics.values.to_pylist())
            for statistics in after.statistics(column)
        ] == [
            (statistics.data_type, statistics.values.to_pylist())
            for statistics in before.statistics(column)
        ]


def test_blobs_of_others_are_carried_over_where_no_newer_one_stays() -> None:
    sources = []
    for number, column in enumerate("aab"):
        data = io.BytesIO()
        with BundleWriter(data) as writer:
            writer.add_file(FileEntry(f"p{number}", 1, "1", 5))
            blob = Blob("theta", (), -1, -1, 0, 0, "zstd", {"column": column})
            writer.add_blob(blob, b"sketch %d" % number)
        sources.append(BytesSource(data.getvalue()))
    bundles = BundleSet(open_bundles(sources), ["p0", "p2"], [1, 1], ["1", "1"])
    merged = io.BytesIO()
    assert merge(bundles, merged, chosen=[bundles.bundles[0], bundles.bundles[2]]) == 2
    bundle = Bundle.open(BytesSource(merged.getvalue()))
    assert [bundle.read_blob(blob) for blob in bundle.others] == [b"sketch 2"]
