"""Some of the runs of `python -m tests.faults.kills`: the same ones every time."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.tables.paimon.metadata.racing import ROOT


def test_what_killed_processes_leave_is_whole_and_the_next_one_finishes_it() -> None:
    command = [sys.executable, "-m", "tests.faults.kills", "--runs", "5", "--seed", "7"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    match = re.fullmatch(r"5 runs, (\d+) kills, 0 failed, in \d+ s\n", ended.stdout)
    assert match
    assert int(match[1]) > 5
