"""Small tables of every kind, whose files fail on demand."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

import alcid
from alcid import IcebergTable, PaimonTable, ParquetTable
from alcid.storage import Retry, Storage
from alcid.storage.backend import Location
from alcid.tables.iceberg.file_io import FileIO
from alcid.testing.faults import Faults
from tests.faults.operations import AnyTable, Operation, Rows, arrow_of, operations, rows_of
from tests.tables.iceberg.vector_catalog import VectorCatalog

__all__ = ["SUBJECTS", "Subject"]

UNIQUE = "00000000-0000-0000-0000-000000000007"
RETRY = Retry(tries=3, wait=0.0)
INDEXES = {"file-index.bloom-filter.columns": "id"}
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


class Subject:
    """A table that is the same before each run."""

    kind: str
    is_keyed = False

    def __init__(self, folder: Path, *, remote: bool = False) -> None:
        """Make the table, and keep a copy of it."""
        self.faults = Faults(remote=remote)
        self._folder, self._kept = folder / "table", folder / "kept"
        with self.patched():
            self.before = self._make()
        self.operations: Mapping[str, Operation] = operations(
            self.before, self.kind, is_keyed=self.is_keyed
        )
        shutil.copytree(self._folder, self._kept)
        self._changes = list(self.faults.changes)

    def restore(self) -> None:
        """Restore the table from the copy."""
        shutil.rmtree(self._folder)
        shutil.copytree(self._kept, self._folder)
        self.faults.plan(None)
        self.faults.changes[:] = self._changes

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Make calls in one order, in one thread, and do not wait for disks."""
        with mock.patch.object(os, "cpu_count", return_value=1), mock.patch.object(os, "fsync"):
            yield

    def storage(self, location: str | Path | None = None) -> Storage:
        """Files that fail."""
        path = self._folder if location is None else location
        opened = Storage.open(path, retry=RETRY)
        return opened.through(lambda files: self.faults.around(files, opened.location))

    def open(self) -> AnyTable:
        """The table, with files that fail."""
        raise NotImplementedError

    def _make(self) -> Rows:
        """Make the table; returns its rows."""
        raise NotImplementedError

    def _leave(self, *names: str) -> None:
        """Leave files behind, as killed work does."""
        for name in names:
            self.storage().put(name.format(UNIQUE), b"left")


class ParquetFolder(Subject):
    """Three files, two of them indexed."""

    kind = "parquet"

    def open(self) -> ParquetTable:
        return ParquetTable(self.storage())

    def _make(self) -> Rows:
        for number in range(3):
            data = io.BytesIO()
            pq.write_table(arrow_of(rows_of(range(number * 8, number * 8 + 8))), data)
            self.storage().put(f"{number}.parquet", data.getvalue())
            if number:
                self.open().build_indexes(INDEXES, progress=False)
        return rows_of(range(24))


class PaimonAppend(Subject):
    """Two files of a table without a key, with index files and a deletion vector."""

    kind = "paimon"

    def open(self) -> PaimonTable:
        return PaimonTable(self.storage())

    def _make(self) -> Rows:
        options = {
            **INDEXES,
            "deletion-vectors.enabled": "true",
            "file-index.in-manifest-threshold": "1 B",
        }
        alcid.create_table(self._folder, SCHEMA, options=options)
        table = self.open()
        for first in (0, 10):
            table.append(arrow_of(rows_of(range(first, first + 10))))
        self._leave("bucket-0/data-{}-0.parquet", "manifest/manifest-{}-0")
        table.delete("id = 3", progress=False)
        return rows_of(number for number in range(20) if number != 3)


class PaimonKeyed(Subject):
    """A table with a primary key, after two upserts."""

    kind = "paimon"
    is_keyed = True
    options: Mapping[str, str] = {"dynamic-bucket.target-row-num": "9"}

    def open(self) -> PaimonTable:
        return PaimonTable(self.storage())

    def _make(self) -> Rows:
        options = {**INDEXES, "deletion-vectors.enabled": "true", **self.options}
        alcid.create_table(self._folder, SCHEMA, primary_key=["id"], options=options)
        table = self.open()
        table.upsert(arrow_of(rows_of(range(10), "o")))
        self._leave("bucket-0/data-{}-0.parquet", "index/index-{}-0")
        table.upsert(arrow_of(rows_of(range(5, 15))))
        return tuple(sorted((*rows_of(range(5), "o"), *rows_of(range(5, 15)))))


class PaimonFixed(PaimonKeyed):
    """The same with a fixed number of buckets."""

    options: Mapping[str, str] = {"bucket": "2"}


class Iceberg(Subject):
    """Three files of an Iceberg table, two of them indexed, and a deletion vector."""

    kind = "iceberg"

    def __init__(self, folder: Path, *, remote: bool = False) -> None:
        self._catalog = VectorCatalog(folder / "table")
        super().__init__(folder, remote=remote)
        self._kept_catalog = deepcopy(self._catalog)

    def restore(self) -> None:
        super().restore()
        self._catalog = deepcopy(self._kept_catalog)

    def open(self) -> IcebergTable:
        return IcebergTable(self._catalog)

    @contextmanager
    def patched(self) -> Iterator[None]:
        def folder(file_io: FileIO, location: str) -> Storage:
            text = Location.parse(location).text
            return file_io._folders.setdefault(text, self.storage(text))

        with super().patched(), mock.patch.object(FileIO, "folder", folder):
            yield

    def _make(self) -> Rows:
        for number in range(3):
            if number == 2:
                self.open().build_indexes(INDEXES, progress=False)
            rows = rows_of(range(number * 8, number * 8 + 8))
            self._catalog.add({f"{number}.parquet": arrow_of(rows).to_pydict()})
        self._leave(f"metadata/.{7:032x}.tmp")
        self.open().delete("id = 3", progress=False)
        return rows_of(key for key in range(24) if key != 3)


SUBJECTS: Mapping[str, type[Subject]] = {
    "parquet": ParquetFolder,
    "paimon": PaimonAppend,
    "paimon-dynamic": PaimonKeyed,
    "paimon-fixed": PaimonFixed,
    "iceberg": Iceberg,
}
