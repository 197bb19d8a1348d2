"""Bundles are written in bounded memory, with the bytes that they have when all is in memory."""

from __future__ import annotations

import hashlib
import io
import pickle
import random
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import DamagedIndexWarning
from alcid.formats.source import BytesSource, Range, Source, read_each
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    BundleWriter,
    FileEntry,
    MergeCandidate,
    PayloadKind,
    choose_bundles,
    merge,
    merging,
    open_bundles,
    plan_merge,
    spool,
)
from alcid.index.bundle.merging import LARGEST_MERGED
from tests.index.bundle.bundles import File, write
from tests.index.bundle.test_bundle_set import Listing, bundles_of_files, listings, opened

MB = 1 << 20
A, B = PayloadKind.index("a", "bitmap"), PayloadKind.index("b", "bloom-filter")


class Sink:
    """Takes bytes, and keeps only what they are."""

    def __init__(self) -> None:
        self.size, self.largest, self._digest = 0, 0, hashlib.sha256()

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        self._digest.update(data)
        self.size += len(data)
        self.largest = max(self.largest, len(data))
        return len(data)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


class Copier(Sink):
    """A sink that takes ranges of sources as well, as a storage does."""

    def __init__(self) -> None:
        super().__init__()
        self.copied: list[tuple[str, int, int]] = []

    def copy_from(self, source: Source, offset: int, length: int) -> bool:
        self.copied.append((source.name, offset, length))
        self.write(source.read(offset, length))
        return True


def files_with(sizes: Sequence[int], kinds: Sequence[PayloadKind] = (A, B)) -> list[File]:
    """Files with random payloads of these sizes."""
    dice = random.Random(1)
    return [
        File(FileEntry(f"p{n:03}", 1, "1", 1), {kind: dice.randbytes(size) for kind in kinds})
        for n, size in enumerate(sizes)
    ]


def set_of(parts: Sequence[Sequence[File]]) -> BundleSet:
    files = sorted((file for part in parts for file in part), key=lambda file: file.entry.path)
    return opened([list(part) for part in parts], {file.entry.path: (1, "1") for file in files})


def peak_of(call: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@given(bundles_of_files, st.integers(1, 300))
def test_a_spooled_bundle_has_the_bytes_of_one_in_memory(
    parts: list[list[File]], spooled: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for files in parts:
            expected = write(files)
            patch.setattr(spool, "SPOOLED_BYTES", spooled)
            patch.setattr(spool, "PIECE_BYTES", 7)
            assert write(files) == expected
            patch.undo()


@given(bundles_of_files, listings, st.integers(1, 4000), st.booleans())
def test_a_merge_in_rounds_of_any_size_has_the_same_bytes(
    parts: list[list[File]], listing: Listing, round_bytes: int, unchecked: bool
) -> None:
    bundles = opened(parts, listing)
    expected = io.BytesIO()
    merge(bundles, expected)
    plan = pickle.loads(pickle.dumps(plan_merge(bundles)))
    sources = [bundles.bundles[number].source for number in plan.numbers]
    file = Copier() if unchecked else Sink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "ROUND_BYTES", max(round_bytes, 2048))
        patch.setattr(merging, "COPIED_TOGETHER", 1)
        plan.write(file, sources, unchecked=unchecked)
    assert file.digest == hashlib.sha256(expected.getvalue()).hexdigest()
    if isinstance(file, Copier):
        assert sum(length for _, _, length in file.copied) == plan.size


@pytest.mark.parametrize("round_bytes", [2048, 4096, 1 << 20])
def test_a_damaged_payload_is_left_out_whatever_the_rounds(
    round_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_with([2500, 10, 5000, 300], [A])
    data = bytearray(write(files))
    (bundle,) = open_bundles([BytesSource(bytes(data))])
    series = bundle.series(A)
    assert series is not None
    data[series.stored(2).offset + 4500] ^= 1
    bundles = BundleSet(
        open_bundles([BytesSource(bytes(data), "bad")]),
        [file.entry.path for file in files],
        [1] * 4,
        ["1"] * 4,
    )
    monkeypatch.setattr(merging, "ROUND_BYTES", round_bytes)
    merged = io.BytesIO()
    with pytest.warns(DamagedIndexWarning, match=r"bad: .*block of bitmap of 'a', file 2"):
        merge(bundles, merged)
    after = Bundle.open(BytesSource(merged.getvalue()))
    assert [after.read(A, row) for row in range(4)] == [
        None if row == 2 else file.payloads[A] for row, file in enumerate(files)
    ]


def test_a_damaged_block_that_a_storage_copied_is_found_by_readers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = files_with([2500, 2500], [A])
    data = bytearray(write(files))
    data[100] ^= 1
    bundles = BundleSet(open_bundles([BytesSource(bytes(data))]), ["p000", "p001"], [1, 1], "11")
    monkeypatch.setattr(merging, "COPIED_TOGETHER", 1)

    class Kept(io.BytesIO):
        def copy_from(self, source: Source, offset: int, length: int) -> bool:
            return self.write(source.read(offset, length)) == length

    merged = Kept()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan_merge(bundles).write(merged, [bundles.bundles[0].source], unchecked=True)
    after = Bundle.open(BytesSource(merged.getvalue()))
    with pytest.raises(Exception, match="damaged block"):
        after.read(A, 0)
    assert after.read(A, 1) == files[1].payloads[A]


def test_what_follows_in_staged_parts_is_copied_in_one_range_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = files_with([3000] * 12)
    bundles = set_of([files[:5], files[5:]])
    monkeypatch.setattr(merging, "COPIED_TOGETHER", 10_000)
    plan, copier = plan_merge(bundles), Copier()
    plan.write(copier, [bundle.source for bundle in bundles.bundles], unchecked=True)
    assert [length for _, _, length in copier.copied] == [5 * 3012, 7 * 3012] * 2
    assert copier.digest == hashlib.sha256(write(files)).hexdigest()


def test_a_build_holds_a_bounded_part_of_its_payloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "SPOOLED_BYTES", 4 * MB)
    monkeypatch.setattr(spool, "PIECE_BYTES", MB)
    payload, count, sink = bytes(MB), 24, Sink()

    def build() -> None:
        with BundleWriter(sink) as writer:
            for number in range(count):
                row = writer.add_file(FileEntry(str(number), 1, "1", 1))
                for kind in (A, B):
                    writer.add(row, kind, payload)

    peak = peak_of(build)
    assert sink.size > 2 * count * MB
    assert peak < 2 * 4 * MB + 3 * MB


def test_a_merge_holds_a_bounded_part_of_its_payloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "ROUND_BYTES", 4 * MB)
    files = files_with([MB] * 12 + [9 * MB])
    bundles, sink = set_of([files[::2], files[1::2]]), Sink()
    read: list[int] = []

    def read_many(ranges: Sequence[Range]) -> list[bytes]:
        read.append(sum(length for _, _, length in ranges))
        return read_each(ranges)

    plan = plan_merge(bundles)
    sources = [bundle.source for bundle in bundles.bundles]
    peak = peak_of(lambda: plan.write(sink, sources, read_many=read_many))
    assert sink.size > 42 * MB
    assert max(read) <= 4 * MB
    assert peak < 4 * MB + 2 * MB
    assert len(pickle.dumps(plan)) < 10_000  # places of payloads, and no payload


def test_an_unfinished_merge_leaves_no_more_than_a_file_without_an_end() -> None:
    files = files_with([3000] * 4)
    bundles, sink = set_of([files]), io.BytesIO()

    def fail(_ranges: Sequence[Range]) -> list[bytes]:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        merge(bundles, sink, read_many=fail)
    assert sink.getvalue() == b"PFA1"


def test_bundles_above_a_size_are_never_rewritten_unless_they_have_to_be() -> None:
    huge, small = LARGEST_MERGED + 1, 1000
    cases = {
        (huge, 10, 1, False): False,  # most of it is dead
        (huge, 10, 0, False): True,  # all of it: nothing is copied
        (huge, 10, 10, True): True,  # damaged
        (LARGEST_MERGED, 10, 1, False): True,
        (LARGEST_MERGED, 10, 10, False): False,
    }
    others = [MergeCandidate(small, 1, 1)] * 20
    for case, is_chosen in cases.items():
        for thorough in (False, True):
            candidates = [MergeCandidate(*case), *others]
            chosen = choose_bundles(candidates, full=256 * MB, most=16, thorough=thorough)
            assert (0 in chosen) == is_chosen, (case, thorough)
    # However large bundles are filled up to.
    (small_first, *_) = (MergeCandidate(huge, 1, 1), *others)
    assert 0 not in choose_bundles([small_first, *others], full=8 * huge, most=1)
