"""An engine's process: it reads one request a line, as JSON, and answers each with one line.

It is started with `python -m benchmarks.queries.serve`, then the engine's name, the folder of the
Parquet files and the engine's own. Requests and answers:

    {"do": "prepare", "rows": of a file} -> {"steps": [...]}
    {"do": "ask", "question": {...}, "fresh": in a new session}
        -> {"seconds": ..., "cpu": ..., "read": bytes, "said": {...}} with "value", or with
           "rows", "columns" and "sum": [of the ids, of each id times its place]
    {"do": "peak"} -> {"peak": bytes of memory}
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.queries.engine import Answer, Engine
from benchmarks.queries.question import Question

ENGINES = {
    "alcid": ("engine_alcid", "Alcid"),
    "alcid-light": ("engine_alcid", "AlcidLight"),
    "alcid-scan": ("engine_alcid", "AlcidScan"),
    "datafusion": ("engine_datafusion", "DataFusion"),
    "duckdb": ("engine_duckdb", "DuckDB"),
    "lance": ("engine_lance", "Lance"),
    "paimon-rust": ("engine_paimon", "PaimonRust"),
    "polars": ("engine_polars", "Polars"),
    "pyarrow": ("engine_pyarrow", "PyArrow"),
}


class Server:
    """Answers the requests of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.opened = False

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Load rows and build indexes."""
        return {"steps": [asdict(step) for step in self.engine.prepare(request["rows"])]}

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a question; the clock runs from the call until the answer is an Arrow table."""
        question = Question.from_json(request["question"])
        if not (self.opened or request["fresh"]):
            self.engine.open()
            self.opened = True
        read = _process_figure("io", "rchar")
        cpu, start = time.process_time(), time.perf_counter()
        if request["fresh"]:
            self.engine.open()
        answer = self.engine.ask(question)
        seconds = time.perf_counter() - start
        return {
            "seconds": seconds,
            "cpu": time.process_time() - cpu,
            "read": _process_figure("io", "rchar") - read,
            "said": self.engine.read_by_last(),
            **summary(answer),
        }

    def peak(self, _: dict[str, Any]) -> dict[str, Any]:
        """The most memory that the process held; of this program alone, unlike getrusage's."""
        return {"peak": 1024 * _process_figure("status", "VmHWM")}


def summary(answer: Answer) -> dict[str, Any]:
    """What is compared; sums wrap."""
    if isinstance(answer, dict):
        return answer
    if isinstance(answer, pa.Table):
        ids = answer["id"].to_numpy().astype(np.uint64)
        plain, placed = (
            int(ids.sum()),
            int((ids * np.arange(1, len(ids) + 1, dtype=np.uint64)).sum()),
        )
        return {"rows": len(answer), "columns": answer.num_columns, "sum": [plain, placed]}
    return {"value": answer}


def _process_figure(file: str, name: str) -> int:
    """A figure that Linux keeps of this process; 0 on other systems."""
    path = Path("/proc/self") / file
    if not path.exists():
        return 0
    lines = path.read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def main() -> None:
    """Serve until the input ends."""
    name, data, own = sys.argv[1:]
    module, kind = ENGINES[name]
    made: Engine = getattr(importlib.import_module(f"benchmarks.queries.{module}"), kind)(
        Path(data), Path(own)
    )
    server = Server(made)
    handlers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "prepare": server.prepare,
        "ask": server.ask,
        "peak": server.peak,
    }
    version = importlib.metadata.version(made.package)
    print(json.dumps({"package": made.package, "version": version}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(handlers[request["do"]](request)), flush=True)


if __name__ == "__main__":
    main()
