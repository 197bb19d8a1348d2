"""The driver of a Spark is killed together with its JVM while two operations are running.

It is killed at a random moment, or kills itself at a random call to its files: most of the time
is spent in Spark's jobs, and the critical calls are a few at the end. Another driver continues.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tests.faults.spark_kills import SparkKills
from tests.spark.cluster import Driver, DriverEndedError
from tests.spark.processes import in_session, is_running, kill, wait_for

__all__ = ["DriverKills", "cut_off"]

AT_ONCE = 2
"""How many operations a driver has running when it is killed."""
MOST_CALLS = 25
TRIES = 6
"""How often all operations may be finished before anything is killed."""


class DriverKills(SparkKills):
    """The driver of a local Spark, with its JVM."""

    def _run(self, source: random.Random, log: list[str]) -> None:
        for _ in range(TRIES):
            if self._try(source, log):
                return

    def _try(self, source: random.Random, log: list[str]) -> bool:
        """Begin two operations and check the tables; returns whether one of them was cut off."""
        names = source.sample(self._names, AT_ONCE)
        chosen = {name: self._table(name).choose(source, reads=False) for name in names}
        asked = [self._series[name].asked(operation) for name, operation in chosen.items()]
        log += [f"{operation} of {name}" for name, operation in chosen.items()]
        if source.random() < 0.5:
            delay = self._delay(source, self._series[names[0]], chosen[names[0]])
            log.append(f"killed after {delay:.2f} s")
            ended = cut_off(self.driver(), asked, after=delay)
        else:
            at, within = source.randrange(MOST_CALLS), source.random() < 0.5
            log.append(f"killed {'within a write from' if within else 'before'} call {at}")
            ended = cut_off(self.driver(), asked, at_call=at, within=within)
        is_killed = len(ended) < len(asked)
        if is_killed:
            self.killed += 1
            self.counts["operations cut off"] += len(asked) - len(ended)
            self.close()
        for name, operation in chosen.items():
            series = self._series[name]
            self._check(series, operation, is_done=series.location in ended)
        return is_killed


def cut_off(
    victim: Driver,
    asked: Sequence[dict[str, Any]],
    *,
    after: float | None = None,
    at_call: int = 0,
    within: bool = False,
) -> set[str]:
    """Kill a driver and all below it. Returns the tables whose operation was done by then.

    If all were, it goes on.

    Args:
        victim: The driver.
        asked: The operations that it begins.
        after: The seconds until then; without, it kills itself.
        at_call: When: before this call to its files.
        within: Rather in the next write.
    """
    leader = victim.process.pid
    ended: set[str] = set()
    with suppress(DriverEndedError, BrokenPipeError):
        if after is None:
            victim.ask("die_at", number=at_call, within=within)
        for answer in asked:
            victim.ask("begin", **answer)
        if after is not None:
            time.sleep(after)
            ended = set(victim.ask("ended"))
            if len(ended) < len(asked):
                kill(in_session(leader))
        for answer in asked:
            end_of_operation = victim.ask("end", location=answer["location"])
            assert end_of_operation["problem"] is None, end_of_operation["problem"]
            ended.add(answer["location"])
        return ended
    kill(in_session(leader))
    victim.process.wait()
    # What Java has started ends with it: what is not written by then is never written.
    wait_for(lambda: not any(map(is_running, in_session(leader))), "the end of the session")
    return ended
