"""An executor of a cluster, or a Python worker, is killed while an operation is running.

On a cluster, Spark repeats the tasks, and nobody notices; a local Spark gives up at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from pathlib import Path

from tests.faults.spark_kills import SparkKills
from tests.spark.cluster import Cluster, Driver
from tests.spark.processes import below, command_of, in_session, is_running, kill

__all__ = ["ExecutorKills", "WorkerKills"]

_WORKER = "pyspark.worker"  # in the command of Python workers, and of their parent


class ExecutorKills(SparkKills):
    """Kills one executor of a cluster, or one of its Python workers; all work must go on."""

    retries = True

    def __init__(
        self, folder: Path, seed: int, machines: Cluster, settings: Mapping[str, str]
    ) -> None:
        """Kill a process on the machines."""
        super().__init__(folder, seed, settings, machines.python)
        self._machines = machines

    def use(self, driver: Driver) -> None:
        """Use an existing driver."""
        self._driver = driver

    def _run(self, source: random.Random, log: list[str]) -> None:
        name = source.choice(self._names)
        series = self._table(name)
        operation = series.choose(source, reads=True)
        delay = self._delay(source, series, operation)
        log.append(f"{operation} of {name}, after {delay:.2f} s")
        before = self.driver().ask("failed_tasks")
        self.driver().ask("begin", **series.asked(operation))
        time.sleep(delay)
        while series.location not in self.driver().ask("ended"):
            victim, what = self._victim(source)
            if victim is not None:
                kill([victim])
                log.append(f"{what} killed")
                self.killed += 1
                self.counts[f"{what} killed"] += 1
                break
        ended = self.driver().ask("end", location=series.location)
        is_done = ended["problem"] is None
        assert is_done or not self.retries, ended["problem"]
        if is_done:
            self._seconds[name, operation] = ended["seconds"]
        self.counts["tasks lost"] += self.driver().ask("failed_tasks") - before
        self.counts["errors"] += not is_done
        if not self.retries:
            self.driver().ask("wait_for_workers")
        self._check(series, operation, is_done=is_done)

    def _victim(self, source: random.Random) -> tuple[int | None, str]:
        """A process, if there is one, and what it is."""
        executors = self._machines.executors()
        workers = [
            process for executor in executors for process in below(executor) if _is_worker(process)
        ]
        if workers and source.random() < 0.5:
            return source.choice(workers), "worker"
        # There may be none: both may have been killed a moment ago.
        return (source.choice(executors) if executors else None), "executor"


class WorkerKills(ExecutorKills):
    """A Python worker of a local Spark; its operation fails, or continues if it needs no worker."""

    retries = False

    def __init__(self, folder: Path, seed: int, settings: Mapping[str, str]) -> None:
        """Work in a folder."""
        SparkKills.__init__(self, folder, seed, settings)

    def _victim(self, source: random.Random) -> tuple[int | None, str]:
        # Not those below it: if their parent was killed, they continue alone.
        workers = [
            process for process in in_session(self.driver().process.pid) if _is_worker(process)
        ]
        return (source.choice(workers) if workers else None), "worker"


def _is_worker(process: int) -> bool:
    return _WORKER in command_of(process) and is_running(process)
