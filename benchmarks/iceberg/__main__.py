"""Measure Iceberg tables: alcid beside Iceberg's own scan, action and delete, on one Spark.

    python -m benchmarks.iceberg [--rows 500000 --files 8] [--repeats 3] [--parts count questions]

Rows are those of `benchmarks.queries`, and are kept in .bench-data; tables are made anew.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.environment import ROOT, PeerError
from benchmarks.iceberg.contest import Changed, ask_all, build, change_all, count_all
from benchmarks.iceberg.lake import BLOOM, PLAIN, Lake, start
from benchmarks.iceberg.report import IcebergReport
from benchmarks.iceberg.ways import WAYS
from benchmarks.measure import machine_facts
from benchmarks.queries.data import load_rows, make_files
from benchmarks.spark.contest import Sample

_DATA = ROOT / ".bench-data"
_OUTPUT = ROOT / "benchmarks" / "results" / "iceberg.json"
PARTS = ("count", "questions", "delete")
_CORES = 2


def main() -> None:
    """Run all of it, print the tables and write them beside the JSON file."""
    arguments = _arguments()
    data: Path = arguments.data.resolve()
    base = data / f"{arguments.rows}-rows-{arguments.files}-files"
    base.mkdir(parents=True, exist_ok=True)
    (data / ".gitignore").write_text("*\n")
    make_files(base / "parquet", arguments.rows, arguments.files)
    lake = start(base / "iceberg", _CORES)
    report = measure(lake, base / "parquet", arguments.parts, arguments.ways, arguments.repeats)
    lake.end()
    print(report.to_text())
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(report.to_json())
    arguments.output.with_suffix(".md").write_text(report.to_text() + "\n")
    print(f"written to {arguments.output}", file=sys.stderr)


def measure(
    lake: Lake, source: Path, parts: Sequence[str], ways: Sequence[str], repeats: int
) -> IcebergReport:
    """Make tables of the rows of Parquet files, and measure what is wanted.

    Raises:
        WrongAnswerError: Something that is measured is wrong.
    """
    rows, load = load_rows(source), os.getloadavg()[0]
    count, files = len(rows.ids), len(rows.starts) - 1
    lake.make(source, files, count // files)
    sizes = {name: lake.data_size(name) for name in (PLAIN, BLOOM)}
    samples: list[Sample] = []
    changes: list[Changed] = []
    if "count" in parts:  # before there are indexes: Iceberg's action would replace them
        changes += count_all(lake, rows, repeats)
    if "questions" in parts or "delete" in parts:
        changes.append(build(lake))
        sizes["indexes"] = lake.statistics_size(PLAIN)
    if "questions" in parts:
        samples += ask_all(ways, rows, repeats)
    if "delete" in parts:
        changes += change_all(lake, rows, repeats)
    facts = machine_facts() | {"Spark": lake.spark.version, "load at the start": f"{load:.1f}"}
    return IcebergReport(facts, count, files, repeats, sizes, samples, changes)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.iceberg")
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of the table")
    parser.add_argument("--files", type=int, default=32, help="number of files")
    parser.add_argument("--repeats", type=int, default=5, help="repetitions that count")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to do")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[*WAYS], help="who is asked")
    parser.add_argument("--data", type=Path, default=_DATA, help="where rows are kept")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the JSON file")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except PeerError as error:  # no Java, for one
        sys.exit(str(error))
