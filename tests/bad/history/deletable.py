"""Tables with the same rows, one for each kind of deletion vector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from alcid import PaimonTable
from alcid.tables.iceberg_table import IcebergTable
from tests.tables.iceberg.vector_catalog import VectorCatalog
from tests.tables.paimon.small_tables import VECTORS, append, create, rows_of

__all__ = ["KINDS", "Deletable", "make_table"]

Deletable: TypeAlias = PaimonTable | IcebergTable

KINDS = ("paimon-32", "paimon-64", "iceberg")
"""By the kind of their vectors; those of Iceberg have 64 bits."""


def make_table(kind: str, folder: Path, *files: Sequence[int]) -> Deletable:
    """A table with a file for each list of ids, and the names of `rows_of`."""
    if kind == "iceberg":
        catalog = VectorCatalog(folder / "table")
        catalog.add(
            {f"{part}.parquet": rows_of(some).to_pydict() for part, some in enumerate(files)}
        )
        return catalog.open()
    options = VECTORS | {"deletion-vectors.bitmap64": str(kind == "paimon-64").lower()}
    table = create(folder / "table", options=options)
    for some in files:
        append(table, some)
    return table
