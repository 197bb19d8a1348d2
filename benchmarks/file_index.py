"""Measure the file indexes: what they cost to build and to keep, and how fast they answer.

    python -m benchmarks.file_index [--rows 500000] [--only range-bitmap] [--no-peer]

Ours and the peer take turns, so that a busy moment of the machine hits both, and of three runs the
best counts. The peer cannot build an index alone: what it needs for writing the column with the
index, less what it needs without, counts as its cost.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from alcid import FileIndex, col
from benchmarks.build import build_index
from benchmarks.cases import Case, cases_of
from benchmarks.columns import NAMES, Column, make_column
from benchmarks.environment import PeerError
from benchmarks.measure import fastest, machine_facts
from benchmarks.peer import PEER, Peer
from benchmarks.questions import ask_all
from benchmarks.report import Report, Result
from benchmarks.scan import Scan, scan_column

_OUTPUT = Path(__file__).resolve().parent / "results" / "file-index.json"
_ROWS = [500_000, 5_000_000]


def main() -> None:
    """Run all cases, print the tables and write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.file_index")
    parser.add_argument("--rows", type=int, nargs="+", default=_ROWS, help="rows of a column")
    parser.add_argument("--only", default="", help="cases whose index and column contain this")
    parser.add_argument("--no-peer", action="store_true", help=f"leave {PEER} out")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the JSON file")
    arguments = parser.parse_args()
    without_peer = "left out" if arguments.no_peer else ""
    with ExitStack() as stack:
        peer = None
        if not arguments.no_peer:
            try:
                peer = stack.enter_context(Peer())
            except PeerError as error:
                without_peer = str(error)
                _say(f"without the peer: {error}")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        results: list[Result] = []
        scans: list[Scan] = []
        for column in (make_column(name, rows) for rows in arguments.rows for name in NAMES):
            chosen = _chosen(column, arguments.only)
            if chosen:
                results += _measure_column(column, chosen, peer, folder)
                scans.append(scan_column(column, folder / "c.parquet"))
    report = Report(machine_facts(), without_peer, _sql_cost(), results, scans)
    print(report.to_text())
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(report.to_json())
    _say(f"written to {arguments.output}")


def _chosen(column: Column, only: str) -> list[Case]:
    return [case for case in cases_of(column) if only in f"{case.label} {column.name}"]


def _measure_column(
    column: Column, cases: Iterable[Case], peer: Peer | None, folder: Path
) -> Iterator[Result]:
    arrow, path = folder / "column.arrow", folder / "c.index"
    batch = pa.record_batch([column.array], names=["c"])
    with pa.ipc.new_file(str(arrow), batch.schema) as writer:
        writer.write_batch(batch)
    for case in cases:
        build, container = build_index(column, case, peer if case.with_peer else None, arrow)
        path.write_bytes(container)
        speeds = ask_all(path, column, case)
        result = Result(column.name, case.label, column.rows, build, speeds)
        _say(
            f"{column.rows:>9,} rows  {column.name:<21}  {case.label:<26}  "
            f"{result.rate:5.1f} M rows/s/core"
        )
        yield result


def _sql_cost() -> float:
    """Microseconds that reading a predicate from SQL text adds to an answer."""
    index = FileIndex.build(pa.table({"c": [1, 2]}), {"file-index.bitmap.columns": "c"})
    text, _ = fastest(lambda: index.evaluate("c = 1 AND c < 60"), 50)
    tree, _ = fastest(lambda: index.evaluate((col("c") == 1) & (col("c") < 60)), 50)
    return text - tree


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
