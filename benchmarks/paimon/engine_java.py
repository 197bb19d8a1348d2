"""Paimon's Java on the table, in a JVM that Python only tells what to do.

Paimon's connectors are made for Spark 4.0 and older; this is the core that they call, on all cores,
without an engine around it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from benchmarks.paimon.engine import TableEngine
from benchmarks.queries.engine import Answer
from benchmarks.queries.question import LIMIT, Question
from tests.golden.jvm import fetch_jar, find_java, spark_jars
from tests.golden.paimon_jvm import BUNDLE, VERSION

__all__ = ["JavaTable", "find_javac"]

_CLASS = "PaimonTables"


class JavaTable(TableEngine):
    """Every question and every change is one call; the JVM has its default settings."""

    package = "paimon-bundle"
    version = VERSION

    def __init__(self, data: Path, own: Path) -> None:
        """Compile the class, and start a JVM that has it; it ends with this process."""
        super().__init__(data, own)
        own.mkdir(parents=True, exist_ok=True)
        source, bundle = Path(__file__).with_name(f"{_CLASS}.java"), fetch_jar(BUNDLE)
        compiled = ("-nowarn", "-d", str(own), "-cp", str(bundle), str(source))
        subprocess.run([find_javac(), *compiled], check=True, stderr=subprocess.DEVNULL)
        port, token = launch_gateway(
            classpath=os.pathsep.join(map(str, (bundle, own, spark_jars()))),
            java_path=find_java(),
            die_on_exit=True,
            enable_auth=True,
        )
        given = GatewayParameters(port=port, auth_token=token, auto_convert=True)
        self._gateway = JavaGateway(gateway_parameters=given)
        self._tables: Any = getattr(self._gateway.jvm, _CLASS)(str(own))

    def open(self) -> None:
        """Read the schema; every question reads the manifests."""
        self._tables.open(str(self.data))

    def ask(self, question: Question) -> Answer:
        """Answer with a number, or with what is compared of rows of six columns."""
        match question.ask:
            case "count":
                return int(self._tables.count(_where(question)))
            case "top":
                ids = np.array(list(self._tables.top("score", LIMIT)))
                sums = [int(ids.sum()), int((ids * np.arange(1, len(ids) + 1)).sum())]
                return {"rows": len(ids), "columns": 6, "sum": sums}
            case _:
                rows, total = self._tables.rows(_where(question))
                return {"rows": rows, "columns": 6, "sum": [total]}

    def delete(self, table: Path, question: Question) -> None:
        """Delete by vectors."""
        self._tables.open(str(table))
        self._tables.delete(_where(question))

    def build(self, table: Path) -> None:
        """Do what the procedure rewrite_file_index does."""
        self._tables.open(str(table))
        self._tables.buildIndexes()

    def append(self, table: Path, sources: list[Path]) -> None:
        """Let a writer for each file write, and commit once."""
        self._tables.open(str(table))
        self._tables.append([str(source) for source in sources])


def find_javac() -> str:
    """The compiler beside java.

    Raises:
        FileNotFoundError: There is none: it is a Java that only runs programs.
    """
    javac = Path(find_java()).resolve().with_name("javac")
    if not javac.exists():
        raise FileNotFoundError(f"no javac beside {javac.with_name('java')}")
    return str(javac)


def _where(question: Question) -> list[Any]:
    """Nothing but lists, as py4j hands no tuples over."""
    return [[list(leaf) for leaf in leaves] for leaves in question.where]
