"""The tables of many files, of every kind; they are made once and kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from alcid.tables.base import Table
from benchmarks.scale.files import ManyFiles
from benchmarks.scale.folder import make_folder, open_folder
from benchmarks.scale.iceberg import make_iceberg, open_iceberg
from benchmarks.scale.paimon import make_paimon, open_paimon
from benchmarks.scale.questions import expected_files

__all__ = ["KINDS", "expected_of", "make_tables", "open_table"]

_PATTERNS, _EXPECTED = "patterns", "expected.json"
_IN_MANIFESTS = {"file-index.in-manifest-threshold": "1 mb"}
_MAKE: dict[str, Callable[[ManyFiles, Path], None]] = {
    "folder": make_folder,
    "iceberg": make_iceberg,
    "paimon, in manifests": partial(make_paimon, options=_IN_MANIFESTS),
    "paimon, beside files": partial(make_paimon, options={}),
}
_OPEN: dict[str, Callable[[Path], Table[Any]]] = {
    "folder": open_folder,
    "iceberg": open_iceberg,
    "paimon, in manifests": open_paimon,
    "paimon, beside files": open_paimon,
}
KINDS = tuple(_MAKE)
"""Of Paimon two: what is larger than 500 bytes lies beside its file, unless an option says so."""


def make_tables(base: Path, count: int) -> None:
    """Make tables of so many files below a folder, if they are not there."""
    if (base / _EXPECTED).exists():
        return
    shutil.rmtree(base, ignore_errors=True)
    files = ManyFiles.make(base / _PATTERNS, count)
    for kind, make in _MAKE.items():
        make(files, base / _name(kind))
    (base / _EXPECTED).write_text(json.dumps(expected_files(files)))


def open_table(base: Path, kind: str) -> Table[Any]:
    """Open one of the tables."""
    return _OPEN[kind](base / _name(kind))


def expected_of(base: Path) -> Mapping[str, list[int]]:
    """The files that are left for each question."""
    found: dict[str, list[int]] = json.loads((base / _EXPECTED).read_text())
    return found


def _name(kind: str) -> str:
    return kind.replace(", ", "-").replace(" ", "-")
