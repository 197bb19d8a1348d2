"""Measure the pipeline on Spark beside plain Spark: questions, builds of indexes, appends.

    python -m benchmarks.spark [--rows 1000000 --files 4] [--repeats 3] [--parts questions build]

Rows are those of `benchmarks.queries`. They and what Spark makes of them are kept in .bench-data,
and used again by the next run; indexes, apart from those of other benchmarks, are built anew.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.environment import ROOT, PeerError
from benchmarks.measure import machine_facts
from benchmarks.queries.data import load_rows, make_files
from benchmarks.spark.contest import (
    Appended,
    Built,
    Dataset,
    Sample,
    append_all,
    ask_all,
    build_all,
    start,
)
from benchmarks.spark.report import SparkReport
from benchmarks.spark.ways import WAYS

_DATA = ROOT / ".bench-data"
_OUTPUT = ROOT / "benchmarks" / "results" / "spark.json"
_PARTS = ("questions", "build", "append")
_CORES = 2
_FEWER = 10  # times as few rows, in as few files, for what is measured at two sizes


def main() -> None:
    """Run all of it, print the tables and write them beside the JSON file."""
    arguments = _arguments()
    repeats: int = arguments.repeats
    datasets = [
        make_dataset(
            arguments.data.resolve(), arguments.rows // few, max(1, arguments.files // few)
        )
        for few in (_FEWER, 1)
    ]
    whole = datasets[-1]
    load = os.getloadavg()[0]
    samples: list[Sample] = []
    builds: list[Built] = []
    appends: list[Appended] = []
    sizes: dict[str, int] = {}
    if "build" in arguments.parts:
        for cores in range(1, _CORES):
            with start(cores, whole.base) as process:
                builds += build_all(process, cores, datasets, repeats)
    with start(_CORES, whole.base) as process:
        version = process.ready["version"]
        if "build" in arguments.parts:
            builds += build_all(process, _CORES, datasets, repeats)
        if "questions" in arguments.parts:
            per_file = whole.rows // whole.files
            asked = {"ways": arguments.ways, "files": whole.files, "rows": per_file}
            sizes = process.ask({"do": "prepare"} | asked)["sizes"]
            rows = load_rows(whole.folders.rows)
            samples += ask_all(process, arguments.ways, rows, repeats)
        if "append" in arguments.parts:
            appends += append_all(process, datasets, repeats)
    report = SparkReport(
        machine_facts() | {"Spark": version, "load at the start": f"{load:.1f}"},
        whole.rows,
        whole.files,
        repeats,
        sizes,
        samples,
        builds,
        appends,
    )
    print(report.to_text())
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(report.to_json())
    arguments.json.with_suffix(".md").write_text(report.to_text() + "\n")
    print(f"written to {arguments.json}", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark")
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of all files")
    parser.add_argument("--files", type=int, default=40, help="number of files")
    parser.add_argument("--repeats", type=int, default=5, help="repetitions that count")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS, help="what to do")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[*WAYS], help="who is asked")
    parser.add_argument("--data", type=Path, default=_DATA, help="where rows are kept")
    parser.add_argument("--json", type=Path, default=_OUTPUT, help="the file of all figures")
    return parser.parse_args()


def make_dataset(data: Path, rows: int, files: int) -> Dataset:
    """The rows, made unless they are there."""
    base = data / f"{rows}-rows-{files}-files"
    base.mkdir(parents=True, exist_ok=True)
    (data / ".gitignore").write_text("*\n")
    make_files(base / "parquet", rows, files)
    ids = pq.read_table(base / "parquet", columns=["id"])["id"]
    return Dataset(base, rows, files, pc.sum(ids).as_py())


if __name__ == "__main__":
    try:
        main()
    except PeerError as error:  # no Java, for one
        sys.exit(str(error))
