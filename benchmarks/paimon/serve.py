"""An engine's process: it reads one request a line, as JSON, and answers each with one line.

It is started with `python -m benchmarks.paimon.serve`, then the engine's name, the folder of the
table and one of its own. Requests and answers:

    {"do": "ask", ...}, {"do": "peak"} -> as `benchmarks.queries.serve`
    {"do": "write", "what": "delete", "table": ..., "sources": [...], "question": {...}}
        -> {"wall": seconds, "cpu": seconds}; what else may be done: build, append, append-bare
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.paimon.engine import TableEngine
from benchmarks.queries.engine import Engine
from benchmarks.queries.question import Question
from benchmarks.queries.serve import Server
from benchmarks.spark.process_tree import tree_cost_of

ENGINES = {
    "alcid": ("engine_alcid", "AlcidTable"),
    "alcid-spark": ("engine_spark", "AlcidSpark"),
    "duckdb": ("engine_duckdb", "DuckDBFiles"),
    "paimon-java": ("engine_java", "JavaTable"),
    "pyarrow": ("engine_files", "PyArrowFiles"),
    "pypaimon": ("engine_pypaimon", "PyPaimonTable"),
    "pypaimon-rust": ("engine_rust", "RustTable"),
    "spark": ("engine_spark", "PlainSpark"),
}


class TableServer(Server):
    """Counts also what Java and other processes take."""

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a question."""
        cost, answer = tree_cost_of(lambda: super(TableServer, self).ask(request))
        return answer | {"cpu": max(cost.cpu, answer["cpu"])}  # the first is in steps of 10 ms

    def write(self, request: dict[str, Any]) -> dict[str, Any]:
        """Change a table; what it takes to open it counts."""
        engine, table = self.engine, Path(request["table"])
        if not isinstance(engine, TableEngine):
            raise TypeError(f"{type(engine).__name__} changes nothing")
        question, sources = Question.from_json(request["question"]), request["sources"]
        run: Callable[[], None] = {
            "delete": lambda: engine.delete(table, question),
            "build": lambda: engine.build(table),
            "append": lambda: engine.append(table, [Path(source) for source in sources]),
        }[request["what"].removesuffix("-bare")]
        return asdict(tree_cost_of(run)[0])


def start(name: str, data: Path, own: Path) -> Engine:
    """An engine by its name."""
    module, kind = ENGINES[name]
    found = getattr(importlib.import_module(f"benchmarks.paimon.{module}"), kind)
    made: Engine = found(data, own)
    return made


def main() -> None:
    """Serve until the input ends."""
    name, data, own = sys.argv[1:]
    # What Java prints must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    engine = start(name, Path(data), Path(own))
    server = TableServer(engine)
    handlers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "ask": server.ask,
        "peak": server.peak,
        "write": server.write,
    }
    version = getattr(engine, "version", None) or importlib.metadata.version(engine.package)
    ready = {"package": engine.package, "version": version}
    print(json.dumps(ready), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(handlers[request["do"]](request)), file=answers, flush=True)


if __name__ == "__main__":
    main()
