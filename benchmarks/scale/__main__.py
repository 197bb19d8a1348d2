"""Measure tables of very many files: how long it takes to open and to plan, and what memory.

    python -m benchmarks.scale [--files 100000] [--kinds folder iceberg]
    python -m benchmarks.scale --metadata [--files 1000000]

Tables are made once, and kept in .bench-data; no row of them is read. With `--metadata` there are
no files, only what a table says of them: that of a million is made in some minutes.
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
from benchmarks.scale.metadata import METADATA_KINDS
from benchmarks.scale.tables import KINDS, make_tables

_DATA = ROOT / ".bench-data"
_OUTPUT = ROOT / "benchmarks" / "results" / "scale.json"


def main() -> None:
    """Run all of it, print the table and write it beside the JSON file."""
    arguments = _arguments()
    data: Path = arguments.data.resolve()
    if arguments.metadata:
        _measure_metadata(arguments, data)
        return
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


def _measure_metadata(arguments: argparse.Namespace, data: Path) -> None:
    """Measure metadata without files, each step in a process of its own."""
    base = data / f"{arguments.files}-metadata"
    base.mkdir(parents=True, exist_ok=True)
    (data / ".gitignore").write_text("*\n")
    found = []
    kinds = METADATA_KINDS if arguments.kinds == KINDS else arguments.kinds
    for kind in kinds:
        command = [sys.executable, "-m", "benchmarks.scale.metadata"]
        what = [str(base), kind, str(arguments.files)]
        subprocess.run([*command, "make", *what], cwd=ROOT, check=True)
        ended = subprocess.run(
            [*command, "ask", *what], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        )
        found.append(json.loads(ended.stdout))
    times = {"open": "open", "plan": "plan", "build": "plan a build", "day": "open and plan a day"}
    head = ["kind", "files", *(f"{name} ms" for name in times.values()), "files of a day"]
    rows = [
        [
            one["kind"],
            f"{one['files']:,}",
            *(_times(one[name]) for name in times),
            f"{one['day_files']:,}",
            f"{one['bytes_per_file']:,.0f}",
            f"{one['task_bytes']:,.0f}",
            f"{one['peak_bytes'] / 1e6:,.0f}",
        ]
        for one in found
    ]
    text = table([*head, "driver B/file", "task B/file", "peak MB"], rows)
    print(text)
    output: Path = arguments.output.with_stem(f"{arguments.output.stem}-metadata")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"machine": machine_facts(), "tables": found}, indent=2))
    output.with_suffix(".md").write_text(text + "\n")
    print(f"written to {output}", file=sys.stderr)


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
    parser.add_argument(
        "--kinds", nargs="+", choices=(*KINDS, "paimon"), default=KINDS, help="which tables"
    )
    parser.add_argument("--metadata", action="store_true", help="metadata only, without files")
    parser.add_argument("--data", type=Path, default=_DATA, help="where tables are kept")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the JSON file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
