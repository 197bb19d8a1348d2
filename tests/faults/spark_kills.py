"""Spark is killed while it works on tables: what all such runs share."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median
from typing import Self

from tests.faults.spark_tables import ICEBERG, LIFE, Series, make_in_folder
from tests.faults.subjects import SUBJECTS
from tests.iceberg.lake import LAKE, lake_settings
from tests.spark.cluster import JAVA_OPTIONS, Driver, driver

__all__ = ["SparkKills", "local_settings"]

FIRST_SECONDS = 1.0


class SparkKills:
    """Runs of one seed; each chooses tables, operations and a moment."""

    def __init__(
        self, folder: Path, seed: int, settings: Mapping[str, str], python: str | None = None
    ) -> None:
        """Work in a folder, with drivers of these settings."""
        self.killed = 0
        """How many processes were killed while an operation was running."""
        self.counts: Counter[str] = Counter()
        """Counts for the last line of the output."""
        self._folder, self._seed = folder, seed
        self._settings, self._python = settings, {} if python is None else {"python": python}
        self._series: dict[str, Series] = {}
        self._seconds: dict[tuple[str, str], float] = {}
        self._numbers = count()
        self._stack = ExitStack()
        self._names = [
            name for name in SUBJECTS if name != ICEBERG or f"spark.sql.catalog.{LAKE}" in settings
        ]
        self._driver: Driver | None = None

    def run(self, number: int) -> None:
        """Let something be killed; an error says what."""
        source, log = random.Random(f"{self._seed} {number}"), list[str]()
        try:
            self._run(source, log)
        except BaseException as error:
            self.close()  # the state of tables and driver is unknown
            self._series.clear()
            error.add_note(f"run {number} of seed {self._seed}: {', '.join(log)}")
            raise

    def close(self) -> None:
        """End the driver."""
        self._driver = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, source: random.Random, log: list[str]) -> None:
        raise NotImplementedError

    def driver(self) -> Driver:
        """The current driver, or a new one."""
        if self._driver is None:
            folder = self._folder / f"driver-{next(self._numbers)}"
            made = driver(folder, self._settings, **self._python)
            self._driver = self._stack.enter_context(made)
        return self._driver

    def _table(self, name: str) -> Series:
        """The table of a kind; a new one once it has gone through many operations."""
        series = self._series.get(name)
        if series is None or series.step >= LIFE:
            number = next(self._numbers)
            if name == ICEBERG:
                location = f"{LAKE}.db.t{number}"
                rows = self.driver().ask("make_iceberg", location=location)
                series = Series(name, location, tuple((key, text) for key, text in rows))
            else:
                series = make_in_folder(name, self._folder / f"{name}-{number}")
            self._series[name] = series
        return series

    def _delay(self, source: random.Random, series: Series, operation: str) -> float:
        """How long after its begin an operation is hit."""
        usual = median(self._seconds.values()) if self._seconds else FIRST_SECONDS
        longest = self._seconds.get((series.name, operation), usual)
        return source.uniform(0.0, longest)

    def _check(self, series: Series, operation: str, *, is_done: bool) -> None:
        """Check what the operation has left; the table goes on from there."""
        asked = series.asked(operation)
        seconds = self.driver().ask("check", is_done=is_done, **asked)
        if seconds is not None:  # if all was done, nothing needs to be done again
            key = series.name, operation
            self._seconds[key] = max(seconds, self._seconds.get(key, 0.0))
        self._series[series.name] = series.after(operation)


def local_settings(warehouse: Path) -> dict[str, str]:
    """For a driver that runs its executors itself, with Iceberg if it is available."""
    return {
        "spark.master": "local[2]",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.driver.memory": "1g",
        **lake_settings(warehouse),
    }
