"""The live rows of files whose keys overlap, in the order of their keys.

The keys of all files are held, and say in which order the rows come. The rows themselves are read
as they are needed, a row group of each file at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.key_order import join_columns, rank_rows
from alcid.tables.paimon.keyed.key_files import KeyRun, join_runs
from alcid.tables.paimon.keyed.key_reading import KeyReader

__all__ = ["merge_rows"]

_Integers = npt.NDArray[np.int64]

_CHUNK_ROWS = 1 << 18


def merge_rows(
    reader: KeyReader,
    files: Sequence[PlacedFile],
    dead: Mapping[str, DeletionVector],
    *,
    chunk_rows: int = _CHUNK_ROWS,
) -> Iterator[KeyRun]:
    """Rows in the order of their keys, some at a time.

    Args:
        reader: Reads the files.
        files: Files of a bucket.
        dead: The rows that are left out, by the name of the file. Of those that are not, no two
            have the same key.
        chunk_rows: How many rows are given at a time.

    Raises:
        FormatError: The keys of a file are not in order.
    """
    ends = np.cumsum([one.file.rows for one in files])
    order = _order(reader, files, dead, ends)
    feeds = [_Feed(reader.runs(one)) for one in files]
    for start in range(0, len(order), chunk_rows):
        chunk = order[start : start + chunk_rows]
        by_file = np.argsort(chunk, kind="stable")
        parts = np.split(chunk[by_file], np.searchsorted(chunk[by_file], ends[:-1]))
        run = join_runs(
            feeds[number].take(part - (ends[number] - one.file.rows))
            for number, (one, part) in enumerate(zip(files, parts, strict=True))
            if len(part)
        )
        places = np.empty(len(by_file), np.int64)
        places[by_file] = np.arange(len(by_file))
        yield run if len(files) == 1 else run.take(places)


def _order(
    reader: KeyReader,
    files: Sequence[PlacedFile],
    dead: Mapping[str, DeletionVector],
    ends: _Integers,
) -> _Integers:
    """The live rows by key, counted through all files."""
    keys = [reader.keys(one).keys for one in files]
    ranks = rank_rows(join_columns(keys), int(ends[-1]))
    live = np.ones(len(ranks), bool)
    for one, own, kept in zip(
        files, np.split(ranks, ends[:-1]), np.split(live, ends[:-1]), strict=True
    ):
        wrong = np.flatnonzero(np.diff(own) < 0)
        if len(wrong):
            row = int(wrong[0]) + 1
            raise FormatError(f"key of row {row} is below the one before", file=one.path)
        if one.file.name in dead:
            kept[dead[one.file.name].to_numpy()] = False
    order = np.flatnonzero(live)
    return order[np.argsort(ranks[order], kind="stable")]


class _Feed:
    """The rows of a file, which are asked for from the first to the last."""

    def __init__(self, runs: Iterator[KeyRun]) -> None:
        self._runs, self._end = runs, 0
        self._held: list[tuple[int, KeyRun]] = []

    def take(self, rows: _Integers) -> KeyRun:
        """Some rows by their places, ascending, all behind those that were taken before."""
        first, last = int(rows[0]), int(rows[-1])
        while self._end <= last:
            self._hold(first)
            run = next(self._runs)
            self._held.append((self._end, run))
            self._end += len(run)
        self._hold(first)
        parts = []
        for begin, run in self._held:
            inside = rows[(rows >= begin) & (rows < begin + len(run))] - begin
            if len(inside):
                parts.append(run.take(inside))
        return join_runs(parts)

    def _hold(self, first: int) -> None:
        """Forget what lies before a row."""
        self._held = [(begin, run) for begin, run in self._held if begin + len(run) > first]
