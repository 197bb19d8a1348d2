"""Who takes part, and what each can do to a table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from alcid.errors import UnsupportedError
from alcid.spark.session import ensure_java
from benchmarks.environment import PeerError, peer_python
from benchmarks.paimon.engine_java import find_javac
from benchmarks.paimon.tables import Tables
from benchmarks.peer import PeerProcess
from tests.golden.jvm import fetch_jar
from tests.golden.paimon_jvm import BUNDLE
from tests.interop.peers import pypaimon_python

__all__ = ["CONTENDERS", "WRITES", "TableContender", "present"]

WRITES = {
    "delete": "delete 1 % of the rows by predicate, from a table with indexes",
    "build": "build the indexes of all data files, which have none",
    "append": "append a quarter of the rows, with indexes",
    "append-bare": "the same without indexes",
}


def _here() -> Path:
    return Path(sys.executable)


def _with_java() -> Path:
    ensure_java()
    return _here()


def _with_bundle() -> Path:
    fetch_jar(BUNDLE)
    find_javac()
    return _with_java()


@dataclass(frozen=True, slots=True)
class TableContender:
    """A process that knows the table."""

    name: str
    meaning: str
    python: Callable[[], Path]
    """The interpreter that has its packages, which are installed where that has not been done."""
    writes: tuple[str, ...] = ()

    def start(self, base: Path) -> PeerProcess:
        """Start its process."""
        tables = Tables(base)
        serve = ("-m", "benchmarks.paimon.serve", self.name)
        own = tables.work / f"{self.name}-own"
        return PeerProcess(self.name, self.python(), *serve, tables.indexed, own)


CONTENDERS = {
    contender.name: contender
    for contender in (
        TableContender("alcid", "alcid.paimon, in this process", _here, tuple(WRITES)),
        TableContender(
            "alcid-spark", "table.read, for counts table.count", _with_java, tuple(WRITES)
        ),
        TableContender("paimon-java", "the released core, in a JVM", _with_bundle, tuple(WRITES)),
        TableContender("pypaimon", "without file indexes", pypaimon_python, ("append-bare",)),
        TableContender(
            "pypaimon-rust", "SQL, with file indexes", peer_python, ("append", "append-bare")
        ),
        TableContender("pyarrow", "a dataset of the data files", _here),
        TableContender("duckdb", "read_parquet of the data files", peer_python),
        TableContender(
            "spark", "spark.read.parquet of the data files", _with_java, ("append-bare",)
        ),
    )
}


def present(names: Sequence[str]) -> tuple[list[TableContender], dict[str, str]]:
    """Those that can take part, and why others cannot."""
    found: list[TableContender] = []
    left_out: dict[str, str] = {}
    for name in names:
        contender = CONTENDERS[name]
        try:
            contender.python()
        except (PeerError, UnsupportedError, OSError, subprocess.CalledProcessError) as error:
            left_out[name] = str(error)
        else:
            found.append(contender)
    return found, left_out
