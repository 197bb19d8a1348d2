"""A program: one of several that upsert to a table concurrently, as threads share too much.

    python -m tests.tables.paimon.keyed.racing_upserts <worker> <rounds> <location>

Every round has a name, which is that of its commits. `rows_of_round` says what it upserted.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pyarrow as pa

from alcid import PaimonTable
from alcid.storage import Storage
from alcid.tables.paimon.keyed.commit import CommitIdentity
from alcid.tables.paimon.keyed.upsert import UpsertPlan, upsert
from tests.tables.paimon.metadata.racing import ROOT

KEYS = 60
PARTITIONS = 2
EVERY = 7  # rounds after which a worker compacts


def rows_of_round(name: str) -> pa.Table:
    """The rows that a round upserts: others know each key, and some are deleted."""
    source = random.Random(name)
    keys = source.sample(range(KEYS), 12)
    return pa.table(
        {
            "part": pa.array([key % PARTITIONS for key in keys], pa.int32()),
            "id": pa.array(keys, pa.int64()),
            "name": [f"{name} {key}" for key in keys],
            "kind": [source.choice(["+I", "+U", "-D"]) for _ in keys],
        }
    )


def race_upserts(location: str, *, workers: int, rounds: int) -> None:
    """Let workers upsert at the same time."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(worker), str(rounds), location],
            cwd=ROOT,
            env=environment,
        )
        for worker in range(workers)
    ]
    assert [process.wait(timeout=300) for process in running] == [0] * workers


def main() -> None:
    worker, rounds, location = sys.argv[1:]
    table = PaimonTable(Storage.open(location))
    for number in range(int(rounds)):
        name = f"{worker}-{number}"
        plan = UpsertPlan(row_kind="kind", commit=CommitIdentity(name), write_only=number % 5 == 4)
        upsert(table, rows_of_round(name), plan)
        if number % EVERY == EVERY - 1:
            table.compact()


if __name__ == "__main__":
    main()
