"""Sorted rows of buckets that do not fit into memory, in files on a local disk.

Rows are spilled each time the buffer is full, as one Arrow IPC file, compressed with LZ4. In it the
rows of a bucket follow each other, in the order of their keys and cut into batches:

    spill-0.arrow   | bucket 0: 1 4 7 | 9 12 | bucket 1: 2 3 |
    spill-1.arrow   | bucket 0: 2 4 | bucket 2: 5 6 |
                                    '- a batch: the least that is read

Each is a sorted run of a bucket, which has every key once. When the bucket is written, its runs are
merged with a batch of each in memory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.errors import StorageError
from alcid.tables.key_order import Column
from alcid.tables.paimon.key_ranges import key_ranges
from alcid.tables.paimon.keyed.key_files import SortedRun
from alcid.tables.paimon.keyed.memory import MemoryBounds
from alcid.tables.paimon.metadata.manifest import BucketId

_SYSTEM = ("number", "kind", "arrival")
"""Columns behind those of the table, which may have the same names."""
_LOCAL_DIRS = "SPARK_LOCAL_DIRS"


def new_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for spilled rows, removed with its context: where Spark has room, or in /tmp."""
    folders = [folder for folder in os.environ.get(_LOCAL_DIRS, "").split(",") if folder]
    present = [folder for folder in folders if Path(folder).is_dir()]
    # Tasks of an executor take different disks.
    chosen = present[os.getpid() % len(present)] if present else None
    return tempfile.TemporaryDirectory(prefix="alcid-spill-", dir=chosen)


@dataclass(frozen=True, slots=True, eq=False)
class SpilledRows:
    """Rows as they are spilled: a part of a stream of `key_ranges`."""

    run: SortedRun
    arrival: Int64Array
    """Numbers that ascend with the arrival of the rows."""
    key_columns: Sequence[str]
    first: int = 0
    name: str | None = None

    @property
    def keys(self) -> Sequence[Column]:
        """The key columns."""
        columns: Sequence[Column] = self.run.rows.select(list(self.key_columns)).columns
        return columns

    def __len__(self) -> int:
        return len(self.run)

    def slice(self, start: int, stop: int) -> SpilledRows:
        """Some of the rows, which are not copied."""
        run = SortedRun(
            self.run.rows.slice(start, stop - start),
            self.run.numbers[start:stop],
            self.run.kinds[start:stop],
        )
        return SpilledRows(
            run, self.arrival[start:stop], self.key_columns, self.first + start, self.name
        )


Newest: TypeAlias = Callable[[Sequence[SpilledRows]], SpilledRows]


@dataclass(frozen=True, slots=True)
class _Place:
    """The batches of a run in a file."""

    path: Path
    start: int
    stop: int


class Spill:
    """The spilled runs of the buckets of a task."""

    def __init__(self, folder: str, key_columns: Sequence[str], memory: MemoryBounds) -> None:
        """Take an empty folder, which the caller removes."""
        self._folder, self._key_columns, self._memory = Path(folder), key_columns, memory
        self._runs: dict[BucketId, list[_Place]] = {}
        self._bytes: dict[BucketId, int] = {}
        self._numbers = count()

    @property
    def buckets(self) -> list[BucketId]:
        """The buckets that have rows."""
        return list(self._runs)

    @property
    def largest_bytes(self) -> int:
        """The rows of the largest bucket, as they were in memory."""
        return max(self._bytes.values(), default=0)

    def write(self, runs: Iterable[tuple[BucketId, SpilledRows]]) -> None:
        """Spill runs of buckets as one file.

        Raises:
            StorageError: The disk has no room, or another problem.
        """
        with self._new_file() as file:
            for bucket, rows in runs:
                self._runs.setdefault(bucket, []).append(file.write([rows]))
                self._bytes[bucket] = self._bytes.get(bucket, 0) + rows.run.rows.nbytes

    def merge(self, bucket: BucketId, newest: Newest) -> Iterator[SpilledRows]:
        """The rows of a bucket in the order of their keys, each key once.

        Args:
            bucket: The bucket.
            newest: Merges parts of runs: the newest row of each key.
        """
        places, most = self._runs[bucket], max(self._memory.most_merged, 2)
        while len(places) > most:
            places = [
                self._merge_to_file(places[start : start + most], newest)
                for start in range(0, len(places), most)
            ]
        yield from self._merge(places, newest)

    def read(self, bucket: BucketId) -> Iterator[SpilledRows]:
        """The rows of a bucket as they were spilled, one run after the other."""
        for place in self._runs[bucket]:
            yield from (part for part, _ in self._read(place))

    def _merge(self, places: Sequence[_Place], newest: Newest) -> Iterator[SpilledRows]:
        with ExitStack() as stack:
            runs = [stack.enter_context(closing(self._read(place))) for place in places]
            if len(runs) == 1:
                yield from (part for part, _ in runs[0])
                return
            for parts in key_ranges(runs):
                yield newest([part for of_run in parts for part in of_run])

    def _merge_to_file(self, places: Sequence[_Place], newest: Newest) -> _Place:
        if len(places) == 1:
            return places[0]
        with self._new_file() as file:
            return file.write(self._merge(places, newest))

    @contextmanager
    def _new_file(self) -> Iterator[_SpillFile]:
        path = self._folder / f"spill-{next(self._numbers)}.arrow"
        try:
            with closing(_SpillFile(path, self._memory.batch_bytes)) as file:
                yield file
        except OSError as error:
            raise StorageError(
                f"{path}: rows are not spilled: {error}; the rows of a bucket need room there, or "
                f"in other folders that {_LOCAL_DIRS} names"
            ) from error

    def _read(self, place: _Place) -> Generator[tuple[SpilledRows, bool], None, None]:
        """The batches of a run, and whether each is the last one."""
        first = 0
        with pa.OSFile(str(place.path)) as source, pa.ipc.open_file(source) as file:
            for number in range(place.start, place.stop):
                rows = pa.Table.from_batches([file.get_batch(number)])
                numbers, kinds, arrival = (
                    rows.column(position).to_numpy() for position in range(-len(_SYSTEM), 0)
                )
                own = rows.select(list(range(rows.num_columns - len(_SYSTEM))))
                run = SortedRun(own, numbers, kinds)
                part = SpilledRows(run, arrival, self._key_columns, first, str(place.path))
                first += len(part)
                yield part, number == place.stop - 1


class _SpillFile:
    """A file that is being written."""

    def __init__(self, path: Path, batch_bytes: int) -> None:
        self._path, self._batch_bytes = path, batch_bytes
        self._sink = pa.OSFile(str(path), "wb")
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self._batches = 0

    def write(self, parts: Iterable[SpilledRows]) -> _Place:
        """Write consecutive parts of one run."""
        start = self._batches
        for part in parts:
            rows = part.run.rows
            for name, values in zip(
                _SYSTEM, (part.run.numbers, part.run.kinds, part.arrival), strict=True
            ):
                rows = rows.append_column(name, pa.array(values))
            step = max(len(rows) * self._batch_bytes // max(rows.nbytes, 1), 1)
            for first in range(0, len(rows), step):
                # In one piece: a batch has one chunk of each column.
                (batch,) = rows.slice(first, step).combine_chunks().to_batches()
                self._write(batch)
        return _Place(self._path, start, self._batches)

    def _write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_file(self._sink, batch.schema, options=options)
        self._writer.write_batch(batch)
        self._batches += 1

    def close(self) -> None:
        """End the file."""
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            self._sink.close()
