"""Some of the runs of `python -m tests.faults.kills --spark executor`, without Iceberg."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.executor_kills import ExecutorKills
from tests.spark.cluster import Cluster, Driver
from tests.spark.processes import wait_for

KILLS, RUNS = 2, 20  # an operation may finish before anything of it is killed


@pytest.mark.soak
def test_what_executors_were_killed_in_is_done_all_the_same(
    machines: Cluster, remote: Driver, tmp_path: Path
) -> None:
    kills = ExecutorKills(tmp_path, 7, machines, machines.settings())
    kills.use(remote)
    for number in range(RUNS):
        kills.run(number)
        if kills.killed == KILLS:
            break
    assert kills.killed == KILLS
    # Other tests count on both.
    wait_for(lambda: len(machines.executors()) == len(machines.workers), "all executors")
