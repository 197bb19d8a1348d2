"""Processes that are killed at a random call to their files, and what they leave.

    python -m tests.faults.kills [--runs N] [--seed S] [--run R] [--folder F]
        [--spark driver|executor|worker]

In each run a table goes through a few operations. Each is done by a process of its own, which kills
itself before some call, or within a write: when a file is on the disk, but does not have its name
yet. Then the table is checked, and the operation is repeated. `--run` repeats a single run.

With `--spark` there is one operation in a run, or two at a time, which Spark does: see
`driver_kills.py` and `executor_kills.py`. A repeated run makes the same choices, but its
timing differs.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from alcid.errors import AlcidWarning
from alcid.testing.faults import Decide
from tests.faults.driver_kills import DriverKills
from tests.faults.executor_kills import ExecutorKills, WorkerKills
from tests.faults.killing import die, killing
from tests.faults.operations import Operation, Rows, operations
from tests.faults.spark_kills import SparkKills, local_settings
from tests.faults.subjects import SUBJECTS, Subject
from tests.faults.sweep import check_after
from tests.iceberg.lake import lake_settings
from tests.spark.cluster import cluster

__all__ = ["Kills"]

STEPS = 3
SUBJECT_NAMES = [name for name in SUBJECTS if name != "iceberg"]  # whose catalog is in this process


class Kills:
    """Runs of one seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._seed = seed
        self._subjects = {name: SUBJECTS[name](folder / name) for name in SUBJECT_NAMES}
        self.killed = 0
        """How many processes were killed; the others finished."""
        self.counts: Counter[str] = Counter()

    def run(self, number: int) -> None:
        """Put a table through a few operations; an error says which."""
        source = random.Random(f"{self._seed} {number}")
        name = source.choice(SUBJECT_NAMES)
        subject, log = self._subjects[name], [name]
        subject.restore()
        rows = subject.before
        try:
            with subject.patched():
                for step in range(STEPS):
                    rows = self._step(subject, rows, step, source, log)
        except Exception as error:
            error.add_note(f"run {number} of seed {self._seed}: {', '.join(log)}")
            raise

    def _step(
        self, subject: Subject, rows: Rows, step: int, source: random.Random, log: list[str]
    ) -> Rows:
        """Let a process be killed; returns what the table holds once all is done nevertheless."""
        every = operations(rows, subject.kind, is_keyed=subject.is_keyed, step=step)
        chosen = source.choice([entry for entry in every if not every[entry].only_reads])
        at, within = source.randrange(90), source.random() < 0.5
        log.append(f"{chosen} killed {'within a write from' if within else 'before'} call {at}")
        is_killed = self._attempt(subject, every[chosen], killing(at, die, within=within))
        check_after(subject, every[chosen], rows, is_done=not is_killed)
        return every[chosen].after

    def _attempt(self, subject: Subject, operation: Operation, decide: Decide) -> bool:
        """Do it in another process; returns whether that was killed."""
        process = os.fork()
        if process == 0:
            status = 1
            try:
                subject.faults.plan(decide)
                operation.run(subject.open())
                status = 0
            finally:
                if status:
                    traceback.print_exc()
                os._exit(status)
        ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        assert ended in (0, -signal.SIGKILL), f"ended with {ended}"
        self.killed += ended != 0
        return ended != 0


@contextmanager
def _opened(what: str | None, folder: Path, seed: int) -> Iterator[Kills | SparkKills]:
    """Runs that kill a part of a Spark, or processes without one."""
    warehouse = folder / "lake"
    match what:
        case None:
            yield Kills(folder, seed)
        case "driver":
            with DriverKills(folder, seed, local_settings(warehouse)) as kills:
                yield kills
        case "worker":
            with WorkerKills(folder, seed, local_settings(warehouse)) as kills:
                yield kills
        case _:
            with (
                cluster(folder / "cluster") as machines,
                ExecutorKills(
                    folder, seed, machines, machines.settings() | lake_settings(warehouse)
                ) as kills,
            ):
                yield kills


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=int)
    parser.add_argument("--spark", choices=["driver", "executor", "worker"])
    parser.add_argument("--folder", type=Path, help="a new one, which is kept")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", AlcidWarning)
    numbers = range(arguments.runs) if arguments.run is None else [arguments.run]
    begin, failed = time.monotonic(), 0
    with ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kills = stack.enter_context(_opened(arguments.spark, folder.resolve(), arguments.seed))
        for number in numbers:
            try:
                kills.run(number)
            except Exception:  # noqa: BLE001 - any error is reported
                failed += 1
                traceback.print_exc()
    seconds = time.monotonic() - begin
    counts = "".join(f"; {count} {what}" for what, count in sorted(kills.counts.items()))
    print(f"{len(numbers)} runs, {kills.killed} kills, {failed} failed, in {seconds:.0f} s{counts}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
