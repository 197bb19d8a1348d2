"""Measure tables with a primary key: alcid beside others, each with tables of its own.

    python -m benchmarks.upsert [--rows 200000 --files 20] [--repeats 1] [--kinds vectors]

The rows are kept in .bench-data, and used again by the next run; tables are not.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.environment import ROOT
from benchmarks.measure import machine_facts
from benchmarks.paimon.contenders import present
from benchmarks.peer import PeerProcess
from benchmarks.upsert.contenders import KINDS, MEANINGS, start
from benchmarks.upsert.data import Source, make_source
from benchmarks.upsert.lives import Life, Taken
from benchmarks.upsert.report import UpsertReport

_DATA = ROOT / ".bench-data"
_OUTPUT = ROOT / "benchmarks" / "results" / "upsert.json"
_SHARES = (10, 50, 100)  # percent of the rows: the sizes of tables
_SMALL = ("spread", "recent")
_ALL = ("large", *_SMALL, "look-up", "compact")
_LEVEL_ZERO = ("large", "spread")


def main() -> None:
    """Run all of it, print the tables and write them beside the JSON file."""
    arguments = _arguments()
    chosen, left_out = present(arguments.peers)
    data: Path = arguments.data.resolve()
    base = data / f"{arguments.rows}-rows-{arguments.files}-files"
    source = make_source(base, arguments.rows, arguments.files)
    (data / ".gitignore").write_text("*\n")
    load = os.getloadavg()[0]
    taken: list[Taken] = []
    with ExitStack() as stack:
        running = {
            each.name: stack.enter_context(start(each.name, base / f"upsert-{each.name}"))
            for each in chosen
        }
        for number, life in enumerate(_lives(source, arguments.kinds)):
            found = list(_run(life, running, arguments.repeats if number else 0))
            taken += found if number else []  # the first is not counted
        facts = {name: process.ready for name, process in running.items()}
    report = UpsertReport(
        machine_facts() | {"load at the start": f"{load:.1f}"},
        arguments.repeats,
        left_out,
        facts,
        taken,
    )
    print(report.to_text())
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(report.to_json())
    arguments.output.with_suffix(".md").write_text(report.to_text() + "\n")
    print(f"written to {arguments.output}", file=sys.stderr)


def _lives(source: Source, kinds: list[str]) -> Iterator[Life]:
    """All of them, the smallest table first and once more, as Java is slow when it is new."""
    sizes = [source.rows * share // 100 for share in _SHARES]
    yield Life(source, kinds[0], sizes[0], _SMALL)
    for kind in kinds:
        if kind == "vectors":
            for size in sizes:
                yield Life(source, kind, size, _ALL if size == source.rows else _SMALL)
        else:
            yield Life(source, kind, sizes[0], _LEVEL_ZERO)  # of more rows, some take minutes


def _run(life: Life, running: dict[str, PeerProcess], repeats: int) -> Iterator[Taken]:
    """Let everyone load once, and then change what it has loaded, in turns."""
    names = [name for name in running if name in KINDS[life.kind]]
    for name in names:
        yield life.load(name, running[name])
    for repetition in range(max(1, repeats)):
        first = repetition % len(names) if names else 0
        for name in (*names[first:], *names[:first]):
            yield from life.change(name, running[name])
    life.end()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.upsert")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the largest table")
    parser.add_argument("--files", type=int, default=20, help="files that they come from")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions of changes")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS], help="of tables")
    parser.add_argument(
        "--peers", nargs="+", choices=MEANINGS, default=[*MEANINGS], help="who takes part"
    )
    parser.add_argument("--data", type=Path, default=_DATA, help="where rows are kept")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the JSON file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
