"""A folder of Parquet files with one bundle of indexes."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import alcid
from alcid.index.bundle import BundleWriter
from alcid.tables.bundle_folder import FOLDER, new_name
from alcid.tables.parquet_table import ParquetTable
from benchmarks.scale.files import ManyFiles

__all__ = ["make_folder", "open_folder"]

_TOGETHER = 1000  # files of a day


def make_folder(files: ManyFiles, folder: Path) -> None:
    """Link the files into partitions, and write the bundle of all."""
    data = io.BytesIO()
    with BundleWriter(data) as writer:
        for number, found in enumerate(files.indexed()):
            path = f"day={number // _TOGETHER}/part-{number:06}.parquet"
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            files.link(number, folder / path)
            replace(found, entry=replace(found.entry, path=path)).add_to(writer)
    (folder / FOLDER).mkdir()
    (folder / FOLDER / new_name()).write_bytes(data.getvalue())


def open_folder(folder: Path) -> ParquetTable:
    """Open the table, which lists the files."""
    return alcid.parquet(folder)
