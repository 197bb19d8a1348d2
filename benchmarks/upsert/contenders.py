"""Who takes part, and the kinds of tables that each can finish a change of."""

from __future__ import annotations

from pathlib import Path

from benchmarks.paimon.contenders import CONTENDERS
from benchmarks.peer import PeerProcess

__all__ = ["KINDS", "MEANINGS", "OPTIONS", "start"]

_ALCID, _SPARK, _JAVA = "alcid", "alcid-spark", "paimon-java"
MEANINGS = {
    _ALCID: "table.upsert of an Arrow table, in this process",
    _SPARK: "table.upsert of a DataFrame of Parquet files",
    _JAVA: "the released core, in a JVM, as many channels as cores",
    "pypaimon": "write_arrow, to level 0",
    "pypaimon-rust": "write_arrow, to level 0",
}
KINDS = {
    "vectors": (_ALCID, _SPARK, _JAVA),
    # The others write to level 0 only, which nobody reads where there are deletion vectors.
    "level-0": tuple(MEANINGS),
}
OPTIONS = {
    "vectors": {"bucket": "-1", "deletion-vectors.enabled": "true"},
    "level-0": {"bucket": "-1", "write-only": "true"},
}
"""Of each kind of table; all else is as Paimon has it where nothing is said."""


def start(name: str, own: Path) -> PeerProcess:
    """Start a contender's process, which keeps what it needs in a folder of its own."""
    serve = ("-m", "benchmarks.upsert.serve", name)
    return PeerProcess(name, CONTENDERS[name].python(), *serve, own)
