"""Readers see one snapshot each, and the process keeps nothing of them.

Its memory rises while they read: the table has more files with every batch, and allocators of many
threads keep what was freed. So the memory of Python objects is compared after all of them have
ended, with that after a first, short run.

`make soak` has 50 of them for ten minutes: ALCID_READERS, ALCID_SECONDS.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

import alcid
from tests.load.readers import Loaded

READERS = int(os.environ.get("ALCID_READERS", "8"))
SECONDS = float(os.environ.get("ALCID_SECONDS", "4"))
LONG, SHORT = 120, 20  # seconds, after which memory is compared, and with what
MOST_KEPT = 20_000  # memory blocks of Python, out of some 330,000


def test_readers_see_one_snapshot_while_another_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if SECONDS >= LONG:
        Loaded(tmp_path / "first").run(READERS, SHORT)
    before = _live_blocks()
    load = Loaded(tmp_path / "t").run(READERS, SECONDS)
    kept = _live_blocks() - before
    with capsys.disabled():
        print(f"\n{READERS} readers for {SECONDS:.0f} s: {load}; {kept:,} blocks kept")
    assert load.commits > 10
    assert load.reads > READERS
    assert SECONDS < LONG or kept < MOST_KEPT
    report = alcid.paimon(tmp_path / "t").verify(progress=False)
    assert report.ok, str(report)


def _live_blocks() -> int:
    """How many blocks of memory Python's objects have."""
    gc.collect()
    return sys.getallocatedblocks()
