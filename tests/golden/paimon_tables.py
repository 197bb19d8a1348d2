"""The golden tables of Paimon, for the tests."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from tests.golden.paimon_jvm import VERSION

TABLES = Path(__file__).resolve().parent / "paimon-tables"


def writer_folder(version: str = VERSION) -> Path:
    """The folder of the tables that a version of Paimon wrote."""
    return TABLES / f"paimon-java-{version}"


def table_names(version: str = VERSION) -> list[str]:
    """The names of its tables."""
    return sorted(path.stem for path in writer_folder(version).glob("*.json"))


def unpack_table(name: str, folder: Path, version: str = VERSION) -> Path:
    """Put a golden table into a folder; returns its path."""
    with tarfile.open(writer_folder(version) / f"{name}.tar.xz") as archive:
        archive.extractall(folder / name, filter="data")
    return folder / name


def expected(name: str, version: str = VERSION) -> Any:
    """What Paimon read from a golden table."""
    return json.loads((writer_folder(version) / f"{name}.json").read_text(encoding="utf-8"))
