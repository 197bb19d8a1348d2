"""Measure whole Paimon tables: questions and changes, alcid beside others on the same files.

    python -m benchmarks.paimon [--rows 500000 --files 4] [--repeats 3] [--parts read write]

Rows and tables are kept in .bench-data, and used again by the next run: remove the folder `paimon`
there to have the tables written anew. Changes are made to copies.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT
from benchmarks.measure import machine_facts
from benchmarks.paimon.contenders import CONTENDERS, present
from benchmarks.paimon.questions import TableQuestions
from benchmarks.paimon.report import PaimonReport
from benchmarks.paimon.tables import make_tables
from benchmarks.paimon.writing import Change, Changes, write_all
from benchmarks.queries.contest import Sample, contest
from benchmarks.queries.data import load_rows
from benchmarks.queries.engine import size_of

_DATA = ROOT / ".bench-data"
_OUTPUT = ROOT / "benchmarks" / "results" / "paimon.json"
_PARTS = ("read", "write")
_CHANGES = 3  # repetitions at most: some of them take others half a minute


def main() -> None:
    """Run all of it, print the tables and write them beside the JSON file."""
    arguments = _arguments()
    chosen, left_out = present(arguments.peers)
    data: Path = arguments.data.resolve()
    tables = make_tables(
        data / f"{arguments.rows}-rows-{arguments.files}-files", arguments.rows, arguments.files
    )
    (data / ".gitignore").write_text("*\n")
    rows = load_rows(tables.rows)
    load = os.getloadavg()[0]
    samples: list[Sample] = []
    changes: list[Change] = []
    facts: dict[str, dict[str, Any]] = {}
    if "read" in arguments.parts:
        samples, facts = contest(chosen, tables.base, TableQuestions(rows), arguments.repeats)
    if "write" in arguments.parts:
        times = min(arguments.repeats, _CHANGES)
        changes, writers = write_all(chosen, Changes(tables, rows), times)
        facts |= writers
    report = PaimonReport(
        machine_facts() | {"load at the start": f"{load:.1f}"},
        arguments.rows,
        arguments.files,
        arguments.repeats,
        {
            "data": size_of(tables.indexed, "*.parquet"),
            "indexes": size_of(tables.indexed, "*.index"),
        },
        left_out,
        {name: facts[name] for name in CONTENDERS if name in facts},
        samples,
        changes,
    )
    print(report.to_text())
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(report.to_json())
    arguments.output.with_suffix(".md").write_text(report.to_text() + "\n")
    print(f"written to {arguments.output}", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paimon")
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of the table")
    parser.add_argument("--files", type=int, default=16, help="number of its data files")
    parser.add_argument("--repeats", type=int, default=5, help="repetitions that count")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS, help="what to do")
    parser.add_argument(
        "--peers", nargs="+", choices=CONTENDERS, default=[*CONTENDERS], help="who takes part"
    )
    parser.add_argument("--data", type=Path, default=_DATA, help="where tables are kept")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the JSON file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
