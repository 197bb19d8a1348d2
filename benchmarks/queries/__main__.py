"""Measure whole queries over Parquet files: alcid with indexes and without, and other engines.

    python -m benchmarks.queries [--rows 1000000 --files 4] [--repeats 3] [--peers alcid duckdb]

The rows and what peers make of them are kept in .bench-data, and used again by the next run; our
own indexes are built in every run. The exit code is 1 if indexes make alcid slower anywhere.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.environment import ROOT, PeerError, peer_python
from benchmarks.measure import machine_facts
from benchmarks.queries.contest import CONTENDERS, Contender, contest, prepare
from benchmarks.queries.data import load_rows, make_files
from benchmarks.queries.engine import size_of
from benchmarks.queries.report import QueryReport
from benchmarks.queries.truth import Questions

_DATA = ROOT / ".bench-data"
_OUTPUT = ROOT / "benchmarks" / "results" / "queries.json"


def main() -> int:
    """Run all of it, print the tables and write them beside the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queries")
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of all files")
    parser.add_argument("--files", type=int, default=40, help="number of files")
    parser.add_argument("--repeats", type=int, default=5, help="repetitions that count")
    parser.add_argument(
        "--peers", nargs="+", choices=CONTENDERS, default=[*CONTENDERS], help="who takes part"
    )
    parser.add_argument("--keep", action="store_true", help="use our indexes of the last run")
    parser.add_argument("--data", type=Path, default=_DATA, help="where rows are kept")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the JSON file")
    arguments = parser.parse_args()
    chosen, left_out = _present([CONTENDERS[name] for name in arguments.peers])
    base = arguments.data.resolve() / f"{arguments.rows}-rows-{arguments.files}-files"
    base.mkdir(parents=True, exist_ok=True)
    (arguments.data / ".gitignore").write_text("*\n")
    make_files(base / "parquet", arguments.rows, arguments.files)
    steps = {}
    for contender in chosen:
        _say(f"preparing {contender.name}")
        per_file = arguments.rows // arguments.files
        steps[contender.name] = prepare(contender, base, per_file, keep=arguments.keep)
    load = os.getloadavg()[0]
    questions = Questions(load_rows(base / "parquet"))
    samples, facts = contest(chosen, base, questions, arguments.repeats)
    report = QueryReport(
        machine_facts() | {"load at the start": f"{load:.1f}"},
        arguments.rows,
        arguments.files,
        arguments.repeats,
        size_of(base / "parquet"),
        left_out,
        facts,
        steps,
        samples,
    )
    print(report.to_text())
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(report.to_json())
    arguments.output.with_suffix(".md").write_text(report.to_text() + "\n")
    _say(f"written to {arguments.output}")
    slower = [verdict for verdict in report.verdicts() if verdict.fails]
    for each in slower:
        _say(f"slower with indexes: {each.phase} {each.question}, {each.contender}")
    return bool(slower)


def _present(contenders: list[Contender]) -> tuple[list[Contender], str]:
    """Those that can take part, and why others cannot."""
    if all(contender.ours for contender in contenders):
        return contenders, ""
    try:
        peer_python()
    except PeerError as error:
        _say(f"without peers: {error}")
        return [contender for contender in contenders if contender.ours], str(error)
    return contenders, ""


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
