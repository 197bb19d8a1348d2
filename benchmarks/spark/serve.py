"""A process with a Spark: it reads one request a line, as JSON, and answers each with one line.

It is started with `python -m benchmarks.spark.serve`, then the number of cores, which it keeps to,
and the folder of all. Requests and answers:

    {"do": "prepare", "ways": [...], "files": number of files, "rows": of a file}
        -> {"sizes": {folder: bytes}} of what these ways need
    {"do": "ask", "way": ..., "question": {...}, "fresh": with a table opened anew}
        -> as `benchmarks.queries.serve`; "cpu" is that of Java and Python workers too
    {"do": "summary", "way": ...} -> {"rows": ..., "columns": ..., "sum": [of the ids]}
    {"do": "build", "base": ..., "indexes": name of a set}
        -> {"cost": {...}, "files": ..., "rows": ..., "skipped": [...], "size": bytes}
    {"do": "append", "base": ..., "how": ...}
        -> {"cost": {...}, "files": ..., "rows": ..., "sum": of the ids, "size", "index_size"}
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

import alcid
from benchmarks.queries.engine import size_of
from benchmarks.queries.indexes import index_options
from benchmarks.queries.serve import Server
from benchmarks.spark.indexes import ASKED, INDEX_SETS
from benchmarks.spark.process_tree import tree_cost_of
from benchmarks.spark.ways import WAYS, Folders, SparkWay

_BLOOM_COLUMNS = ("id", "user_id")


class SparkServer:
    """Answers the requests to one Spark."""

    def __init__(self, spark: Any, folders: Folders) -> None:
        self.spark, self.folders = spark, folders
        self.ways: dict[str, SparkWay] = {}
        self.servers: dict[str, Server] = {}

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write files of plain Spark unless they are there, and build indexes anew."""
        folders, files, per_file = self.folders, request["files"], request["rows"]
        rows = self.spark.read.parquet(str(folders.rows))
        make: dict[str, Callable[[], Any]] = {
            "rows": lambda: None,
            "bloom": lambda: _write(rows.repartition(files), folders.bloom, _blooms(per_file)),
            # Ranges of ids, each a file, so that all files are in order and not only each within.
            "sorted": lambda: _write(
                rows.repartitionByRange(files, "id").sortWithinPartitions("id"), folders.sorted, {}
            ),
            "indexes": lambda: _build(self.spark, folders.rows, folders.indexes, ASKED.options),
            "more_indexes": lambda: _build(
                self.spark, folders.rows, folders.more_indexes, index_options(per_file)
            ),
        }
        ways = [WAYS[name] for name in request["ways"]]
        sizes = {}
        for name in sorted({name for way in ways for name in (way.files, way.indexes) if name}):
            make[name]()
            # Beside each file, Hadoop keeps a hidden one with its checksums.
            sizes[name] = size_of(getattr(folders, name), "[!.]*")
        return {"sizes": sizes}

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a question."""
        name = request["way"]
        if name not in self.ways:
            self.ways[name] = WAYS[name].start(self.folders)
            self.servers[name] = Server(self.ways[name])
        cost, answer = tree_cost_of(lambda: self.servers[name].ask(request))
        return answer | {"cpu": cost.cpu}

    def summary(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the last answer of a way would hold."""
        return self.ways[request["way"]].summary()

    def build(self, request: dict[str, Any]) -> dict[str, Any]:
        """Build indexes where there are none."""
        folders = Folders(Path(request["base"]))
        target = folders.own / "build"
        options = INDEX_SETS[request["indexes"]].options
        cost, report = tree_cost_of(lambda: _build(self.spark, folders.rows, target, options))
        size = size_of(target)
        shutil.rmtree(target)
        return {
            "cost": asdict(cost),
            "files": report.indexed,
            "rows": report.rows,
            "skipped": list(map(str, report.skipped)),
            "size": size,
        }

    def append(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write the rows of a folder into another."""
        folders = Folders(Path(request["base"]))
        target = folders.own / "append"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        write: Callable[[Any], Any] = {
            "plain": lambda rows: rows.write.mode("append").parquet(str(target)),
            "append": lambda rows: alcid.parquet(target, self.spark).append(rows, ASKED.options),
            "append-bare": lambda rows: alcid.parquet(target, self.spark).append(rows, {}),
        }[request["how"]]
        cost, _ = tree_cost_of(lambda: write(self.spark.read.parquet(str(folders.rows))))
        written = sorted(target.glob("*.parquet"))
        ids = pq.read_table(written, columns=["id"])["id"]
        answer = {
            "cost": asdict(cost),
            "files": len(written),
            "rows": len(ids),
            "sum": pc.sum(ids).as_py(),
            "size": sum(path.stat().st_size for path in written),
            "index_size": size_of(target / "_alcid"),
        }
        shutil.rmtree(target)
        return answer


def _blooms(rows: int) -> dict[str, str]:
    """Options for bloom filters of so many values."""
    settings = {"enabled": "true", "expected.ndv": str(rows)}
    return {
        f"parquet.bloom.filter.{key}#{name}": value
        for key, value in settings.items()
        for name in _BLOOM_COLUMNS
    }


def _write(rows: Any, folder: Path, options: dict[str, str]) -> None:
    """Write rows by Spark alone, unless they are there."""
    if folder.exists():
        return
    making = folder.with_name(f"{folder.name}.making")
    rows.write.options(**options).mode("overwrite").parquet(str(making))
    making.rename(folder)


def _build(spark: Any, rows: Path, indexes: Path, options: Any) -> Any:
    shutil.rmtree(indexes, ignore_errors=True)
    indexes.mkdir(parents=True)
    return alcid.parquet(rows, spark, index_path=indexes).build_indexes(options, progress=False)


def _keep_to(cores: int) -> None:
    """Let this process and all that it starts run on so many cores; Linux only."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def main() -> None:
    """Serve until the input ends."""
    cores, base = int(sys.argv[1]), Path(sys.argv[2])
    # What Java prints must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _keep_to(cores)
    spark = alcid.session(master=f"local[{cores}]", app_name="benchmarks")
    server = SparkServer(spark, Folders(base))
    handlers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "prepare": server.prepare,
        "ask": server.ask,
        "summary": server.summary,
        "build": server.build,
        "append": server.append,
    }
    print(json.dumps({"version": spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(handlers[request["do"]](request)), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
