"""What is in a folder of other people's files: Parquet files, tables, index files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

import alcid
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.paimon_table import PaimonTable
from alcid.tables.parquet_table import ParquetTable
from tests.corpus.iceberg_copies import copy_table, open_copy, rows_by_iceberg

__all__ = ["KINDS", "Kind", "Subject", "find_subjects"]

Kind: TypeAlias = Literal["parquet", "paimon", "iceberg", "index"]

KINDS: tuple[Kind, ...] = ("parquet", "paimon", "iceberg", "index")
_INDEX_SUFFIXES = (".puffin", ".stats", ".bin", ".index")
_PARQUET_MAGIC = (b"PAR1", b"PARE")


@dataclass(frozen=True)
class Subject:
    """A Parquet file, a table folder, or an index file."""

    kind: Kind
    path: Path

    def copy_to(self, folder: Path) -> Path:
        """A copy that may be changed; a single file lies in a folder of its own."""
        if self.kind == "iceberg":
            return copy_table(self.path)
        target = folder / self.path.name
        if self.kind == "parquet" and target.suffix != ".parquet":
            target = target.with_name(
                f"{target.name}.parquet"
            )  # as data files of a folder are named
        if self.path.is_dir():
            shutil.copytree(self.path, target)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.path, target)
        return target

    def open(self, copy: Path) -> ParquetTable | PaimonTable | IcebergTable:
        """The copy as a table of Alcid."""
        if self.kind == "iceberg":
            return open_copy(copy)
        if self.kind == "paimon":
            return alcid.paimon(copy, merge_on_read=True)
        return alcid.parquet(copy.parent)

    def rows(self, copy: Path) -> pa.Table | None:
        """All rows, as another reader gives them: Arrow, or Iceberg's own, in any order.

        None for a Paimon table, whose rows are taken as Alcid scans them.
        """
        if self.kind == "paimon":
            return None
        if self.kind == "iceberg":
            return rows_by_iceberg(copy)
        file = pq.ParquetFile(self.path, coerce_int96_timestamp_unit="us")
        return file.read().replace_schema_metadata()


def find_subjects(folder: Path) -> Iterator[Subject]:
    """Everything below a folder that Alcid could be asked about, sorted by path.

    A table is one subject: its data files are not subjects of their own.
    """
    for root, folders, files in os.walk(folder):
        here = Path(root)
        if any(here.glob("schema/schema-*")):
            folders.clear()
            yield Subject("paimon", here)
            continue
        if any(here.glob("metadata/*.metadata.json*")):
            folders.clear()
            yield Subject("iceberg", here)
            continue
        folders.sort()
        for name in sorted(files):
            path = here / name
            if path.suffix == ".parquet" or _magic(path) in _PARQUET_MAGIC:
                yield Subject("parquet", path)
            elif path.suffix in _INDEX_SUFFIXES:
                yield Subject("index", path)


def _magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)
