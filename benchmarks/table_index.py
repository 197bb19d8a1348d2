"""Measure the table indexes, Puffin files and theta sketches, beside what else there is in Python.

    python -m benchmarks.table_index [--scale 0.1] [--only "Deletion vectors"] [--no-peer]

Every answer is checked once. Then ours and the peers take turns, so that a busy moment of the
machine hits all, and of three runs the one with the least CPU time counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.environment import PeerError
from benchmarks.measure import machine_facts
from benchmarks.table_buckets import bucket_cases
from benchmarks.table_keys import key_cases
from benchmarks.table_peers import PyPaimon
from benchmarks.table_puffin import puffin_cases
from benchmarks.table_report import TableReport
from benchmarks.table_run import Case, measure
from benchmarks.table_sketches import sketch_cases
from benchmarks.table_vectors import vector_cases

_OUTPUT = Path(__file__).resolve().parent / "results" / "table-index.json"


def main() -> None:
    """Run all cases, print the tables and write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table_index")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows of a full run")
    parser.add_argument("--only", default="", help="cases whose line on stderr contains this")
    parser.add_argument("--no-peer", action="store_true", help="leave the peers out")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the JSON file")
    arguments = parser.parse_args()
    without_peer = "left out" if arguments.no_peer else ""
    outcomes = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        peer = None
        if not arguments.no_peer:
            try:
                peer = stack.enter_context(PyPaimon(folder))
            except PeerError as error:
                without_peer = str(error)
                _say(f"without a peer: {error}")
        for case in _cases(arguments.scale, folder, peer):
            if arguments.only in case.label:
                outcomes.append(measure(case, with_peers=not arguments.no_peer))
                _say(f"{outcomes[-1].figures[0].rate:10.3f} M/s/core  {case.label}")
    machine = machine_facts("datasketches", "pyiceberg")
    report = TableReport(machine, arguments.scale, without_peer, outcomes)
    print(report.to_text())
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(report.to_json())
    _say(f"written to {arguments.output}")


def _cases(scale: float, folder: Path, peer: PyPaimon | None) -> Iterator[Case]:
    yield from key_cases(scale, peer)
    yield from bucket_cases(scale, peer)
    yield from vector_cases(scale)
    yield from puffin_cases(scale, folder)
    yield from sketch_cases(scale)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
