"""Readers see one snapshot each, and the process does not grow.

`make soak` has 50 of them for ten minutes: ALCID_READERS, ALCID_SECONDS.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import alcid
from tests.load.readers import Loaded

READERS = int(os.environ.get("ALCID_READERS", "8"))
SECONDS = float(os.environ.get("ALCID_SECONDS", "6"))
LONG = 120  # seconds, after which memory is compared


def test_readers_see_one_snapshot_while_another_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = Loaded(tmp_path / "t").run(READERS, SECONDS)
    with capsys.disabled():
        print(f"\n{READERS} readers for {SECONDS:.0f} s: {load}")
    assert load.commits > 10
    assert load.reads > READERS
    assert SECONDS < LONG or load.growth < 1.25
    report = alcid.paimon(tmp_path / "t").verify(progress=False)
    assert report.ok, str(report)
