"""Many readers of a table that a writer appends to, deletes from, and builds indexes for.

Rows are added and removed in batches of the same size, whose values add up to zero. So a reader
that saw parts of two snapshots would see an incomplete batch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

import alcid

ROWS = 100  # of a batch
LIVE = 20  # batches at most
_OPTIONS = (
    {"file-index.bitmap.columns": "batch"},
    {"file-index.bitmap.columns": "batch", "file-index.range-bitmap.columns": "value"},
)


@dataclass
class Load:
    """What was done, and the resources it took."""

    commits: int = 0
    reads: int = 0
    memory: list[int] = field(default_factory=list)
    """The bytes of the process, each second."""

    @property
    def growth(self) -> float:
        """The median memory of the last quarter, compared with that of the second quarter."""
        quarter = len(self.memory) // 4
        second, last = self.memory[quarter : 2 * quarter], self.memory[-quarter:]
        return float(np.median(last) / np.median(second))

    def __str__(self) -> str:
        most, last = max(self.memory) / 1e6, self.memory[-1] / 1e6
        return (
            f"{self.commits:,} commits, {self.reads:,} reads; memory {last:.0f} MB at the end,"
            f" {most:.0f} MB at most, {self.growth:.2f} times that of the second quarter"
        )


class Loaded:
    """A table under load."""

    def __init__(self, folder: Path) -> None:
        """Make it."""
        schema = pa.schema([("batch", pa.int64()), ("value", pa.int64())])
        self._folder = folder
        self._table = alcid.create_table(folder, schema, options={"deletion-vectors.enabled": True})
        self._batches: dict[int | None, frozenset[int]] = {None: frozenset()}
        """The rows of each snapshot."""
        self._known = threading.Condition()
        self._until = 0.0
        self.load = Load()

    def run(self, readers: int, seconds: float) -> Load:
        """Let readers read for this long while one writes; raise what any of them has raised."""
        self._until = time.monotonic() + seconds
        jobs: list[Callable[[], None]] = [self._write, self._measure, *[self._read] * readers]
        with ThreadPoolExecutor(len(jobs)) as pool:
            for done in [pool.submit(job) for job in jobs]:
                done.result()
        return self.load

    def _goes_on(self) -> bool:
        return time.monotonic() < self._until

    def _write(self) -> None:
        live: list[int] = []
        number = 0
        while self._goes_on():
            number += 1
            if number % 7 == 0:
                options = _OPTIONS[number // 7 % 2]
                made = self._table.build_indexes(options, progress=False).snapshot_id
            elif len(live) == LIVE or number % 3 == 0:
                gone = live.pop(number % len(live))
                report = self._table.delete(f"batch = {gone}")
                made = report.snapshot_id
                assert report.rows == ROWS
            else:
                values = np.arange(ROWS) - (ROWS - 1) / 2
                rows = {"batch": np.full(ROWS, number), "value": (values * 2 * number).astype(int)}
                made = self._table.append(pa.table(rows)).snapshot_id
                live.append(number)
            with self._known:
                self._batches[made] = frozenset(live)
                self._known.notify_all()
            self.load.commits += 1

    def _expected(self, snapshot: int | None) -> frozenset[int]:
        """The batches of a snapshot, which may exist before its writer says so."""
        with self._known:
            assert self._known.wait_for(lambda: snapshot in self._batches, timeout=60), snapshot
            return self._batches[snapshot]

    def _read(self) -> None:
        table = alcid.paimon(self._folder)
        while self._goes_on():
            table.refresh()
            now = table.snapshot.state.snapshot
            batches = self._expected(None if now is None else now.id)
            for _ in range(2):  # others commit meanwhile; it sees the same rows
                assert _sums(table) == dict.fromkeys(batches, (ROWS, 0))
            for batch in sorted(batches)[:2]:
                assert table.count(f"batch = {batch}") == ROWS
                assert table.scan(f"batch = {batch} AND value > 0").to_arrow().num_rows == ROWS // 2
            self.load.reads += 1

    def _measure(self) -> None:
        while self._goes_on():
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.load.memory.append(pages * 4096)
            time.sleep(min(1.0, max(self._until - time.monotonic(), 0.0)))


def _sums(table: alcid.PaimonTable) -> dict[int, tuple[int, int]]:
    """How many rows each batch has, and the sum of their values."""
    rows = table.scan().to_arrow()
    sums = rows.group_by("batch").aggregate([("value", "count"), ("value", "sum")])
    return {
        each_sum["batch"]: (each_sum["value_count"], each_sum["value_sum"])
        for each_sum in sums.to_pylist()
    }
