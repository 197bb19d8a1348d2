"""A program: one of several that upsert to a table with a key and delete from it concurrently.

    python -m tests.load.keyed_race <worker> <rounds> <location>

Every other round deletes by value, so others change the rows that it finds before it commits. The
program prints a line of JSON for each: the snapshot of the delete, or None for a round that gave
up because others were always faster. Then nothing of it is committed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator

import alcid
from alcid.errors import ConflictError
from alcid.tables.paimon.keyed.commit import CommitIdentity
from alcid.tables.paimon.keyed.upsert import UpsertPlan, upsert
from tests.tables.paimon.keyed.racing_upserts import KEYS, rows_of_round
from tests.tables.paimon.metadata.racing import ROOT

WORKERS = 4
Rows = dict[int, str]


def race(location: str, rounds: int) -> Rows:
    """Start workers together; returns the rows as if the commits had come one after the other."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    commands = [
        [sys.executable, "-m", __name__, str(worker), str(rounds), location]
        for worker in range(WORKERS)
    ]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
        for command in commands
    ]
    outputs = [process.communicate(timeout=3600)[0] for process in running]
    assert [process.returncode for process in running] == [0] * WORKERS
    ended = [json.loads(line) for text in outputs for line in text.splitlines()]
    deletes = {line["snapshot"]: line["round"] for line in ended if line["snapshot"] is not None}
    assert len(ended) - len(deletes) <= WORKERS * rounds // 10  # giving up is rare
    return _replayed(location, deletes)


def _replayed(location: str, deletes: dict[int, str]) -> Rows:
    """The rows after all commits in order; a delete has a commit for its rows, then one more."""
    snapshots = alcid.paimon(location).folder.snapshots
    every = [snapshots.get(number) for number in snapshots.numbers()]
    users = {entry.commit_user: deletes[entry.id] for entry in every if entry.id in deletes}
    assert len(users) == len(deletes)
    rows: Rows = {}
    for entry in every:
        if entry.commit_kind != "APPEND":
            continue
        if entry.commit_user in users:
            start, least = _range(users[entry.commit_user])
            rows = {k: v for k, v in rows.items() if not (v.startswith(start) and k >= least)}
        else:
            _upsert(rows, entry.commit_user)
    return rows


def _upsert(rows: Rows, name: str) -> None:
    for row in rows_of_round(name).to_pylist():
        if row["kind"] == "-D":
            rows.pop(row["id"], None)
        else:
            rows[row["id"]] = row["name"]


def _range(name: str) -> tuple[str, int]:
    """The names that a round deletes, and from which key on."""
    source = random.Random(name)
    return f"{source.randrange(WORKERS)}-", source.randrange(KEYS)


def _work(worker: str, rounds: int, location: str) -> Iterator[dict[str, object]]:
    table = alcid.paimon(location)
    for number in range(rounds):
        name = f"{worker}-{number}"
        start, least = _range(name)
        try:
            if not number % 2:
                plan = UpsertPlan(row_kind="kind", commit=CommitIdentity(name))
                upsert(table, rows_of_round(name), plan)
                continue
            made = table.delete(f"name LIKE '{start}%' AND id >= {least}").snapshot_id
        except ConflictError:
            yield {"snapshot": None, "round": name}
        else:
            if made is not None:
                yield {"snapshot": made, "round": name}


def main() -> None:
    worker, rounds, location = sys.argv[1:]
    for line in _work(worker, int(rounds), location):
        print(json.dumps(line))


if __name__ == "__main__":
    main()
