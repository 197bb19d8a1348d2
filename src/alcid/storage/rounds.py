"""A round of reads: ranges of many files become jobs, and their answers become ranges again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from alcid.formats.ranges import base_addresses, coalesce
from alcid.storage.backend import Known

__all__ = ["File", "Job", "Place", "Round"]


class File(NamedTuple):
    """A file, and what is known of it."""

    path: str
    known: Known


Place = tuple[int, int, int]
"""The number of a file, an offset and a length."""


class Job(NamedTuple):
    """What one thread reads: pieces (offset, length) of one file."""

    path: str
    known: Known
    pieces: list[tuple[int, int]]


class Round:
    """Ranges that are read together.

    >>> places = [(0, 90, 10), (0, 0, 4)]
    >>> plan = Round([File("a", Known())], places, gap=8, largest=5, apart=True)
    >>> [job.pieces for job in plan.jobs]
    [[(0, 4)], [(90, 5)], [(95, 5)]]
    >>> plan.results([[b"0123"], [b"abcde"], [b"fghij"]])
    [b'abcdefghij', b'0123']
    """

    def __init__(
        self,
        files: Sequence[File],
        places: Sequence[Place],
        *,
        gap: int,
        largest: int,
        apart: bool,
    ) -> None:
        """Plan the jobs: one for each piece if they are to run `apart`, else for each file.

        Raises:
            OverflowError: A range ends where no file does.
        """
        numbers, offsets, self._lengths = np.array(places, np.int64).reshape(-1, 3).T
        sizes = np.zeros(len(files), np.int64)
        np.maximum.at(sizes, numbers, offsets + self._lengths)
        bases = base_addresses(sizes.tolist(), gap)
        self._starts = bases[numbers] + offsets
        filled = self._lengths > 0
        self._begins, ends = coalesce(self._starts[filled], self._lengths[filled], gap, largest)
        run_files = np.searchsorted(bases, self._begins, side="right") - 1
        self._counts: list[int] = []
        self.jobs: list[Job] = []
        by_file: dict[int, list[tuple[int, int]]] = {}
        runs = run_files, self._begins - bases[run_files], ends - self._begins
        for number, offset, length in zip(*(column.tolist() for column in runs), strict=True):
            pieces = [(offset, length)] if length <= largest else _split(offset, length, largest)
            self._counts.append(len(pieces))
            if apart:
                path, known = files[number]
                self.jobs += [Job(path, known, [piece]) for piece in pieces]
            else:
                by_file.setdefault(number, []).extend(pieces)
        self.jobs += [Job(*files[number], pieces) for number, pieces in by_file.items()]

    def results(self, answers: Iterable[list[bytes]]) -> list[bytes]:
        """The bytes of each range, from those of the jobs."""
        parts = [part for answer in answers for part in answer]
        if len(parts) > len(self._counts):
            ends = accumulate(self._counts)
            parts = [
                b"".join(parts[end - count : end])
                for end, count in zip(ends, self._counts, strict=True)
            ]
        if not parts:
            return [b""] * len(self._starts)
        runs = np.searchsorted(self._begins, self._starts, side="right") - 1
        begins = self._starts - self._begins[runs]
        ends_within = begins + self._lengths
        return [
            parts[run][begin:end]
            for run, begin, end in zip(
                runs.tolist(), begins.tolist(), ends_within.tolist(), strict=True
            )
        ]


def _split(offset: int, length: int, largest: int) -> list[tuple[int, int]]:
    """Offsets and lengths of requests of one size, each up to `largest` bytes long.

    >>> _split(10, 20, 8)
    [(10, 7), (17, 7), (24, 6)]
    """
    step = -(-length // -(-length // largest))
    end = offset + length
    return [(begin, min(step, end - begin)) for begin in range(offset, end, step)]
