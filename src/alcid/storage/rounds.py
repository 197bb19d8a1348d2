"""A round of reads: ranges of many files become jobs, and their answers become ranges again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from alcid.storage.backend import Known
from alcid.storage.ranges import Run, merge

__all__ = ["Job", "Request", "Round"]


class Request(NamedTuple):
    """A range of a file."""

    path: str
    known: Known
    offset: int
    length: int


class Job(NamedTuple):
    """What one thread reads: pieces (offset, length) of one file."""

    path: str
    known: Known
    pieces: list[tuple[int, int]]


class Round:
    """Requests that are answered together.

    >>> requests = [Request("a", Known(), 90, 10), Request("a", Known(), 0, 4)]
    >>> plan = Round(requests, gap=8, largest=5, apart=True)
    >>> [job.pieces for job in plan.jobs]
    [[(0, 4)], [(90, 5)], [(95, 5)]]
    >>> plan.results([[b"0123"], [b"abcde"], [b"fghij"]])
    [b'abcdefghij', b'0123']
    """

    def __init__(self, requests: Iterable[Request], *, gap: int, largest: int, apart: bool) -> None:
        """Plan the jobs: one for each piece if they are to run `apart`, else for each file."""
        by_file: dict[tuple[str, Known], list[tuple[int, int, int]]] = {}
        position = -1
        for position, (path, known, offset, length) in enumerate(requests):
            if length:
                by_file.setdefault((path, known), []).append((offset, length, position))
        self._count = position + 1
        self._runs: list[tuple[Run, int]] = []
        self.jobs: list[Job] = []
        for (path, known), ranges in by_file.items():
            all_pieces: list[tuple[int, int]] = []
            for run in merge(ranges, gap):
                pieces = run.pieces(largest)
                self._runs.append((run, len(pieces)))
                all_pieces += pieces
            if apart:
                self.jobs += [Job(path, known, [piece]) for piece in all_pieces]
            else:
                self.jobs.append(Job(path, known, all_pieces))

    def results(self, answers: Iterable[list[bytes]]) -> list[bytes]:
        """The bytes of each request, from those of the jobs."""
        parts = [part for answer in answers for part in answer]
        results = [b""] * self._count
        first = 0
        for run, count in self._runs:
            data = parts[first] if count == 1 else b"".join(parts[first : first + count])
            first += count
            for offset, length, position in run.members:
                begin = offset - run.begin
                results[position] = data[begin : begin + length]
        return results
