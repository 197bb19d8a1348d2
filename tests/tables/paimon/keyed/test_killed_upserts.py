"""A killed upsert: none of it is seen, or all of it, once somebody compacts."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import alcid
from tests.tables.paimon.keyed.killed_upserts import STEPS, change, rows_of
from tests.tables.paimon.metadata.racing import ROOT

OLD = dict.fromkeys(range(10), "old")
NEW = {**dict.fromkeys(range(1, 5), "old"), **dict.fromkeys(range(5, 15), "new")}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    program = "tests.tables.paimon.keyed.killed_upserts"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", program, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[:-1] == [f"{name} {-signal.SIGKILL}" for name in STEPS]
    return folder


def _rows(table: alcid.PaimonTable) -> dict[int, str]:
    rows = table.scan().to_arrow()
    assert len(rows) == len(set(rows["id"].to_pylist()))
    return dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))


def _is_appended(step: str) -> bool:
    return step.startswith("compact")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.filterwarnings("ignore:.*not yet compacted:alcid.errors.AlcidWarning")
def test_before_the_next_write_batch_reads_see_nothing_and_merging_reads_all_of_it(
    killed: Path, step: str
) -> None:
    assert _rows(alcid.paimon(killed / step)) == OLD
    newest = _rows(alcid.paimon(killed / step, merge_on_read=True))
    assert newest == (NEW if _is_appended(step) else OLD)


FINISHERS: dict[str, Callable[[alcid.PaimonTable], Any]] = {
    "upsert": lambda table: table.upsert(rows_of(range(1, 2), "old").drop(["kind"])),  # one bucket
    "same": change,
    "compact": lambda table: table.compact(),
    "delete": lambda table: table.delete("id = 77"),
}


@pytest.mark.parametrize("finisher", FINISHERS)
@pytest.mark.parametrize("step", STEPS)
def test_the_next_change_makes_up_for_it(
    killed: Path, tmp_path: Path, step: str, finisher: str
) -> None:
    subprocess.run(["cp", "-r", str(killed / step), str(tmp_path / "t")], check=True)
    table = alcid.paimon(tmp_path / "t")
    FINISHERS[finisher](table)
    expected = NEW if _is_appended(step) or finisher == "same" else OLD
    assert _rows(table) == expected
    table.clean(timedelta(0))
    report = table.verify(progress=False)
    assert report.ok, str(report)
    assert not report.leftovers
    assert _rows(alcid.paimon(tmp_path / "t")) == expected
