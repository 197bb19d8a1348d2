"""An engine's process: it reads one request a line, as JSON, and answers each with one line.

It is started with `python -m benchmarks.upsert.serve`, then the engine's name and a folder of its
own. Requests and answers, each of which has what it took, as "cpu", "wall" and "peak":

    {"do": "upsert", "table": ..., "sources": [...]} -> {}
    {"do": "look-up", "table": ..., "keys": [...]} -> {"rows": ..., "sum": of the ids}
    {"do": "compact", "table": ...} -> {}
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

from benchmarks.queries.question import Question
from benchmarks.queries.serve import summary
from benchmarks.spark.process_tree import tree_cost_of
from benchmarks.upsert.engine import KeyedEngine
from benchmarks.upsert.memory import watch_memory

ENGINES = {
    "alcid": ("engine_alcid", "AlcidKeyed"),
    "alcid-spark": ("engine_alcid", "AlcidKeyedSpark"),
    "paimon-java": ("engine_java", "JavaKeyed"),
    "pypaimon": ("engine_pypaimon", "PyPaimonKeyed"),
    "pypaimon-rust": ("engine_rust", "RustKeyed"),
}


def upsert(engine: KeyedEngine, request: dict[str, Any]) -> dict[str, Any]:
    """Upsert rows; what it takes to open the table counts."""
    engine.upsert(Path(request["table"]), [Path(source) for source in request["sources"]])
    return {}


def look_up(engine: KeyedEngine, request: dict[str, Any]) -> dict[str, Any]:
    """Open a table, and ask for one key after the other."""
    engine.data = Path(request["table"])
    engine.open()
    questions = (Question("look-up", "rows", ((("id", "=", key),),)) for key in request["keys"])
    found = [summary(engine.ask(question)) for question in questions]
    return {
        "rows": sum(each["rows"] for each in found),
        "sum": sum(each["sum"][0] for each in found),
    }


def compact(engine: KeyedEngine, request: dict[str, Any]) -> dict[str, Any]:
    """Compact a table."""
    engine.compact(Path(request["table"]))
    return {}


HANDLERS: dict[str, Callable[[KeyedEngine, dict[str, Any]], dict[str, Any]]] = {
    "upsert": upsert,
    "look-up": look_up,
    "compact": compact,
}


def answer(engine: KeyedEngine, request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked, and say what it took."""
    handler = HANDLERS[request["do"]]
    with watch_memory() as peak:
        cost, found = tree_cost_of(lambda: handler(engine, request))
    return found | asdict(cost) | {"peak": peak.bytes}


def main() -> None:
    """Serve until the input ends."""
    name, own = sys.argv[1:]
    # What Java prints must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    module, kind = ENGINES[name]
    made = getattr(importlib.import_module(f"benchmarks.upsert.{module}"), kind)
    engine: KeyedEngine = made(Path(own), Path(own))
    version = getattr(engine, "version", None) or importlib.metadata.version(engine.package)
    ready = {"package": engine.package, "version": version}
    print(json.dumps(ready), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(engine, json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
