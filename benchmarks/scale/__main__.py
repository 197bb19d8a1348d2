"""Measure tables of very many files: how long it takes to open and to plan, and what memory.

    python -m benchmarks.scale [--files 100000] [--kinds folder iceberg]

Tables are made once, and kept in .bench-data; no row of them is read.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT
from benchmarks.markdown import number, table
from benchmarks.measure import machine_facts
from benchmarks.scale.tables import KINDS, make_tables

_DATA = ROOT / ".bench-data"
_OUTPUT = ROOT / "benchmarks" / "results" / "scale.json"


def main() -> None:
    """Run all of it, print the table and write it beside the JSON file."""
    arguments = _arguments()
    data: Path = arguments.data.resolve()
    base = data / f"{arguments.files}-files"
    base.mkdir(parents=True, exist_ok=True)
    (data / ".gitignore").write_text("*\n")
    make_tables(base, arguments.files)
    load = f"{os.getloadavg()[0]:.1f}"
    found = [_ask(base, kind, arguments.files) for kind in arguments.kinds]
    report = {"machine": machine_facts() | {"load at the start": load}, "tables": found}
    text = _text(found)
    print(text)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=2))
    arguments.output.with_suffix(".md").write_text(text + "\n")
    print(f"written to {arguments.output}", file=sys.stderr)


def _ask(base: Path, kind: str, files: int) -> dict[str, Any]:
    """Ask a table in a new process, whose memory is that table's."""
    command = [sys.executable, "-m", "benchmarks.scale.ask", str(base), kind, str(files)]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def _text(found: list[dict[str, Any]]) -> str:
    """A table of milliseconds, those of the processor in brackets."""
    names = list(found[0]["plans"])
    head = ["kind", "files", "open ms", *(f"{name} ms" for name in names), "peak MB", "growth MB"]
    rows = [
        [
            one["kind"],
            f"{one['files']:,}",
            _times(one["open"]),
            *(_times(one["plans"][name]) for name in names),
            f"{one['peak_bytes'] / 1e6:,.0f}",
            f"{one['growth_bytes'] / 1e6:,.1f}",
        ]
        for one in found
    ]
    return table(head, rows)


def _times(times: list[float]) -> str:
    wall, cpu = times
    return f"{number(wall)} ({number(cpu)})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--files", type=int, default=100_000, help="files of each table")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="which tables")
    parser.add_argument("--data", type=Path, default=_DATA, help="where tables are kept")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the JSON file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
