"""The Paimon tables that are asked and changed: alcid makes them once, and they are kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

import alcid
from benchmarks.queries.data import make_files

__all__ = ["INDEXES", "Tables", "copy_table", "index_options", "make_tables"]

INDEXES = frozenset(
    {
        ("id", "bloom-filter"),
        ("class_id", "bitmap"),
        ("score", "range-bitmap"),
        ("user_id", "range-bitmap"),
    }
)
"""What `index_options` ask for."""
_VECTORS = {"deletion-vectors.enabled": "true"}


@dataclass(frozen=True, slots=True)
class Tables:
    """Where rows and tables are."""

    base: Path

    @property
    def rows(self) -> Path:
        """The rows as Parquet files, which other benchmarks have too."""
        return self.base / "parquet"

    @property
    def sources(self) -> list[Path]:
        """The files whose rows are appended: a quarter of all, two at least."""
        found = sorted(self.rows.glob("*.parquet"))
        return found[: max(2, len(found) // 4)]

    @property
    def warehouse(self) -> Path:
        """The folder of the tables."""
        return self.base / "paimon"

    @property
    def work(self) -> Path:
        """Where copies of tables are changed."""
        return self.base / "paimon-work"

    @property
    def indexed(self) -> Path:
        """All rows, a data file and a commit for each of the files, with indexes."""
        return self._table("indexed")

    @property
    def unindexed(self) -> Path:
        """The same without indexes, although the options name them."""
        return self._table("unindexed")

    @property
    def empty(self) -> Path:
        """No rows; the options name the indexes."""
        return self._table("empty")

    @property
    def bare(self) -> Path:
        """No rows, and no indexes asked for."""
        return self._table("bare")

    def _table(self, name: str) -> Path:
        return self.warehouse / "bench.db" / name


def index_options(rows: int) -> dict[str, str]:
    """Options of indexes, for data files of so many rows: others do not size bloom filters."""
    return {
        "file-index.bloom-filter.columns": "id",
        "file-index.bloom-filter.id.items": str(rows),
        "file-index.bloom-filter.id.fpp": "0.01",
        "file-index.bitmap.columns": "class_id",
        "file-index.range-bitmap.columns": "score,user_id",
    }


def make_tables(base: Path, rows: int, files: int) -> Tables:
    """Write rows and tables, unless they are there."""
    tables = Tables(base)
    base.mkdir(parents=True, exist_ok=True)
    make_files(tables.rows, rows, files)
    if tables.warehouse.exists():
        return tables
    making = Tables(base / "paimon.making")
    shutil.rmtree(making.base, ignore_errors=True)
    options = _VECTORS | index_options(rows // files)
    _load(making.indexed, tables.rows, options, None)
    _load(making.unindexed, tables.rows, options, {})
    schema = pq.read_schema(tables.sources[0])
    alcid.create_table(making.empty, schema, options=options)
    alcid.create_table(making.bare, schema, options=_VECTORS)
    making.warehouse.rename(tables.warehouse)
    making.base.rmdir()
    return tables


def _load(
    table: Path, rows: Path, options: Mapping[str, str], indexes: Mapping[str, str] | None
) -> None:
    """Append file after file, with the indexes of the table or with others."""
    paths = sorted(rows.glob("*.parquet"))
    made = alcid.create_table(table, pq.read_schema(paths[0]), options=options)
    for path in paths:
        made.append(pq.read_table(path), indexes)


def copy_table(table: Path, target: Path) -> None:
    """Copy a table, in place of what is there; its data files, which do not change, are shared."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(table, target, copy_function=_share)


def _share(source: str, target: str) -> None:
    if Path(source).parent.name.startswith("bucket-"):
        os.link(source, target)
    else:
        shutil.copyfile(source, target)
