"""Paimon's Java on tables with a primary key, in a JVM that Python only tells what to do."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from benchmarks.paimon.engine_java import JavaTable, find_javac
from benchmarks.upsert.engine import KeyedEngine
from tests.golden.jvm import fetch_jar
from tests.golden.paimon_jvm import BUNDLE

__all__ = ["JavaKeyed"]

_CLASS = "KeyedTables"


class JavaKeyed(JavaTable, KeyedEngine):
    """Every change is one call; as many channels as cores, see the class in Java."""

    def __init__(self, data: Path, own: Path) -> None:
        """Compile one more class into the folder from which the JVM loads classes."""
        super().__init__(data, own)
        source = Path(__file__).with_name(f"{_CLASS}.java")
        compiled = ("-nowarn", "-d", str(own), "-cp", str(fetch_jar(BUNDLE)), str(source))
        subprocess.run([find_javac(), *compiled], check=True, stderr=subprocess.DEVNULL)
        self._keyed: Any = getattr(self._gateway.jvm, _CLASS)(str(own))

    def upsert(self, table: Path, sources: list[Path]) -> None:
        """Let readers and writers of all channels run, and commit once."""
        self._keyed.upsert(str(table), [str(source) for source in sources])

    def compact(self, table: Path) -> None:
        """Compact bucket after bucket, as many at a time as there are cores."""
        self._keyed.compact(str(table))
