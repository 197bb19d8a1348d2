"""Every decoder against some mutants, the same in every run; `python -m tests.fuzz` goes on."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import zlib
from itertools import islice
from pathlib import Path

import pytest

from alcid import DeletionVector, FormatError
from alcid.errors import AlcidError
from alcid.formats.source import BytesSource
from alcid.index.bundle import Bundle
from tests.fuzz import guided, repair
from tests.fuzz.loop import Finding, bounded_memory, mutants, try_input
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

SEED = 1
# As many as about a second allows.
INPUTS = {"binary-rows": 250, "bloom-filter": 900, "bundle": 200, "container": 500}
COMMAND_INPUTS, OTHER_INPUTS = 150, 2500


def inputs_of(name: str) -> int:
    return COMMAND_INPUTS if name in ("inspect", "probe") else INPUTS.get(name, OTHER_INPUTS)


@pytest.mark.parametrize("name", TARGETS)
def test_an_input_is_answered_or_refused(name: str) -> None:
    target, count = TARGETS[name], inputs_of(name)
    for data in target.seeds()[:1]:  # what the first one imports and caches does not count
        try_input(target, data)
    with bounded_memory():
        for data in islice(mutants(target, SEED), count):
            try_input(target, data)


@pytest.mark.parametrize("name", TARGETS)
def test_most_seeds_are_answered(name: str) -> None:
    target = TARGETS[name]
    seeds = target.seeds()
    assert 2 * sum(try_input(target, data) for data in seeds) >= len(seeds) > 0


def broken(data: bytes) -> None:
    if b"boom" in data:
        raise KeyError("boom")
    raise FormatError("refused")


def test_another_error_is_a_finding() -> None:
    target = Target("broken", broken, lambda: [b"boom"])
    assert not try_input(target, b"")
    with pytest.raises(Finding, match=r"^broken: KeyError\('boom'\): 4 bytes 626f6f6d$"):
        try_input(target, b"boom")


def test_memory_without_end_is_a_finding() -> None:
    # Far more than other threads may release once the limit is set.
    target = Target("large", lambda data: bytearray(len(data) << 34).clear(), lambda: [b""])
    before = resource.getrlimit(resource.RLIMIT_AS)
    with bounded_memory(), pytest.raises(Finding, match="MemoryError"):
        try_input(target, b"!")
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_mutants_are_the_same_in_every_run_and_differ_from_their_seeds() -> None:
    seeds = [bytes(40), bytes(range(40))]
    first, second = ([mutate(seeds[1], seeds, random.Random(n)) for n in range(300)] for _ in "ab")
    assert first == second
    assert len(set(first)) > 250


def test_repaired_vectors_are_refused_for_their_content_only() -> None:
    data = bytearray(DeletionVector([1, 70_000]).to_bytes())
    data[20] ^= 1
    repaired = repair.vector(bytes(data))
    assert repaired[-4:] == zlib.crc32(repaired[4:-4]).to_bytes(4, "big")
    assert repair.vector(DeletionVector([3]).to_bytes()) == DeletionVector([3]).to_bytes()


def test_repaired_bundles_are_read_with_what_was_changed() -> None:
    (data,) = (seed for seed in TARGETS["bundle"].seeds()[:2] if len(seed) > 1000)
    assert repair.bundle(data) == data
    bundle = Bundle.open(BytesSource(data))
    kind = bundle.kinds[0]
    series = bundle.series(kind)
    assert series is not None
    position = series.stored(0).offset + 10
    changed = data[:position] + bytes((data[position] ^ 1,)) + data[position + 1 :]
    row = int(series.directory.rows[0])
    with pytest.raises(AlcidError, match="damaged block"):
        Bundle.open(BytesSource(changed)).read(kind, row)
    before, after = (
        Bundle.open(BytesSource(content)).read(kind, row)
        for content in (data, repair.bundle(changed))
    )
    assert before is not None
    assert after == before[:10] + bytes((before[10] ^ 1,)) + before[11:]


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "guided"])
def test_the_command_fuzzes_a_target(plain: bool, tmp_path: Path) -> None:
    if not plain and not guided.is_installed():
        pytest.skip("atheris is not installed")
    command = [sys.executable, "-m", "tests.fuzz", "--target", "hash-index", "--seconds", "1"]
    options = ["--findings", str(tmp_path), *(["--plain"] if plain else [])]
    ended = subprocess.run([*command, *options], check=True, capture_output=True, text=True)
    said = "hash-index: " if plain else "stat::number_of_executed_units: "
    assert said in ended.stdout + ended.stderr
