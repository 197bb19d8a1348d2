"""A folder of Parquet files as a table, without a catalog: what a user holds."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from alcid.columns import ColumnTypes
from alcid.errors import (
    AlcidWarning,
    ColumnError,
    OptionError,
    StorageError,
    UnsupportedError,
    require,
)
from alcid.formats.deletion_vector import DeletionVector
from alcid.options import OptionValue, parse_options
from alcid.plan import Explanation, Query, Scan, table_schema
from alcid.predicate import Predicate
from alcid.storage import Listing, Storage
from alcid.storage.listing import is_hidden
from alcid.tables.build_report import BuildReport, IndexInfo
from alcid.tables.data_files import list_data_files
from alcid.tables.engine import Engine, Threads
from alcid.tables.folder_files import FolderFiles
from alcid.tables.folder_indexes import FolderIndexes
from alcid.tables.partitions import Partitions
from alcid.tables.progress import Progress

__all__ = ["ParquetTable"]


class ParquetTable:
    """A folder of Parquet files; `alcid.parquet` opens one.

    It sees the files that there were when it was opened, or at the last `refresh`.
    """

    def __init__(
        self,
        storage: Storage,
        index_storage: Storage | None = None,
        *,
        strict: bool = False,
        partition_types: ColumnTypes | None = None,
        engine: Engine | None = None,
    ) -> None:
        """List the files; `alcid.parquet` is the usual way to one."""
        self._storage, self._index_storage, self._strict = storage, index_storage, strict
        self._partition_types = partition_types
        self.engine = engine or Threads()
        """What does the work on many files: this process, or Spark."""
        self._indexes = FolderIndexes(
            storage, index_storage=index_storage, strict=strict, engine=self.engine
        )
        self._deletions: Mapping[str, DeletionVector] = {}
        self._distrusted: set[str] = set()
        self._files = self._open()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, Any] | None = None,
        index_path: str | os.PathLike[str] | None = None,
        strict: bool = False,
        partition_types: ColumnTypes | None = None,
        engine: Engine | None = None,
    ) -> ParquetTable:
        """Open a folder; see `alcid.parquet`."""
        storage = Storage.open(path, storage_options)
        index_storage = None if index_path is None else Storage.open(index_path, storage_options)
        if index_storage is not None and _is_data_folder(index_storage.location, storage.location):
            raise OptionError(
                f"index_path: {index_storage.location} is a folder of the data, where other "
                "readers would take indexes for data; without index_path they lie in _alcid"
            )
        return cls(
            storage, index_storage, strict=strict, partition_types=partition_types, engine=engine
        )

    @property
    def location(self) -> str:
        """Where it is."""
        return self._storage.location

    @property
    def schema(self) -> pa.Schema:
        """The columns of all files, then those in the paths; every column may be null."""
        return table_schema(self._files, list(self._files.columns.columns))

    @property
    def files(self) -> int:
        """How many data files there are."""
        return len(self._files.sizes)

    def refresh(self) -> None:
        """List files and indexes again."""
        self._files = self._open()

    def build_indexes(
        self,
        options: Mapping[str, OptionValue],
        *,
        rebuild: bool = False,
        progress: Progress | bool | None = None,
    ) -> BuildReport:
        """Build the indexes that files lack; see `alcid.options` for what can be asked for.

        What a killed build has published is used, and the next build goes on from there.

        Args:
            options: Paimon's options, as `{"file-index.bloom-filter.columns": "id"}`.
            rebuild: Build all anew, fresh or not.
            progress: Is called after each file with files done, files to do, and rows. True shows a
                bar, False nothing; by default there is a bar if standard error is a terminal.

        Raises:
            OptionError: An option that cannot be.
            ColumnError: No file has a column, or it stands in the paths.
        """
        self.refresh()
        columns = self._files.columns
        for spec in parse_options(options):
            if not columns.columns:
                break
            if columns.find(spec.top_level) in columns.partitions:
                raise ColumnError(f"column {spec.column}: stands in the paths, and needs no index")
        report = self._indexes.build(options, rebuild=rebuild, progress=progress)
        if rebuild:
            self._distrusted.clear()
        self.refresh()
        return report

    def indexes(self) -> list[IndexInfo]:
        """What indexes there are, and of how many files each is fresh."""
        return self._indexes.indexes()

    def drop_indexes(
        self, columns: Collection[str] | None = None, types: Collection[str] | None = None
    ) -> int:
        """Remove indexes of these columns and types; by default all.

        Returns:
            How many files had one of them.
        """
        for what, given in (("columns", columns), ("types", types)):
            if isinstance(given, str):
                raise OptionError(f"{what}: found text, expected a list of names")
        dropped = self._indexes.drop(columns, types)
        self.refresh()
        return dropped

    def scan(
        self,
        where: str | Predicate | None = None,
        *,
        columns: Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        limit: int | None = None,
        use_indexes: bool = True,
    ) -> Scan:
        """Ask for rows: nothing is read before `to_arrow`, `count` or `explain`.

        Args:
            where: SQL text, or a predicate made with `alcid.col`; by default every row.
            columns: The columns to give, in this order; by default all.
            order_by: As `"score DESC NULLS LAST, id"`; without, rows come by path and position.
            limit: How many rows at most.
            use_indexes: False to read without indexes and statistics, for comparison.
        """
        query = Query(where, columns, order_by, limit, use_indexes)
        return Scan(query, self._files, self._reopen, self.engine, strict=self._strict)

    def read(self, where: str | Predicate | None = None, **query: Any) -> Any:
        """The rows as a DataFrame of Spark; the arguments are those of `scan`.

        Raises:
            UnsupportedError: The table was not opened with a session.
        """
        return self.scan(where, **query).to_spark()

    def count(self, where: str | Predicate | None = None) -> int:
        """How many rows match."""
        return self.scan(where).count()

    def explain(self, where: str | Predicate | None = None, **query: Any) -> Explanation:
        """What a scan would read, and why; the arguments are those of `scan`."""
        return self.scan(where, **query).explain()

    def with_deletions(self, deletions: Mapping[str, DeletionVector]) -> ParquetTable:
        """The same files with rows that are not to be seen, by the path of their file.

        A folder has no commit, so nothing is written: whoever keeps the vectors gives them. Rows
        that are deleted already stay so.

        Raises:
            FileGoneError: There is no such file.
        """
        every = dict(self._deletions)
        for path, vector in deletions.items():
            require(vector, DeletionVector, f"deletions of {path}")
            every[path] = every[path] | vector if path in every else vector
        table = ParquetTable(
            self._storage,
            self._index_storage,
            strict=self._strict,
            partition_types=self._partition_types,
            engine=self.engine,
        )
        table._deletions, table._distrusted = every, set(self._distrusted)
        table.refresh()
        return table

    def _reopen(self) -> FolderFiles:
        self.refresh()
        return self._files

    def _open(self) -> FolderFiles:
        local = None if self._storage.remote else Path(self.location)
        if local is not None and local.is_file():
            raise UnsupportedError(f"{self.location}: found a file, expected its folder")
        listing = list_data_files(self._storage)
        if not len(listing) and not _is_there(self._storage):
            raise StorageError("no such folder", file=self.location)
        if local is not None and (local / "_delta_log").is_dir():
            warnings.warn(
                f"{self.location}: a Delta table, taken for a folder of Parquet files: files that "
                "the table has removed are read too",
                AlcidWarning,
                stacklevel=4,
            )
        partitions = Partitions.of(listing.paths, self._partition_types)
        bundles = self._indexes.open(_without_versions(listing, self._distrusted))
        index_storage = self._storage if self._index_storage is None else self._index_storage
        return FolderFiles(
            self._storage,
            index_storage,
            listing,
            bundles,
            partitions,
            self._deletions,
            self._distrusted,
        )

    def __repr__(self) -> str:
        return f"<ParquetTable {self.location}>"


def _without_versions(listing: Listing, distrusted: Collection[str]) -> Listing:
    """The listing with no version for some files, so that no index of theirs is taken for fresh."""
    if not distrusted:
        return listing
    unknown = pc.is_in(listing.paths, value_set=pa.array(sorted(distrusted), pa.string()))
    versions = pc.if_else(unknown, pa.scalar(None, pa.string()), listing.versions)
    return Listing(listing.paths, listing.sizes, versions)


def _is_data_folder(indexes: str, data: str) -> bool:
    """Whether a folder is that of the data, or one within that readers look into."""
    inside = f"{indexes.rstrip('/')}/".removeprefix(f"{data.rstrip('/')}/")
    if inside == f"{indexes.rstrip('/')}/":
        return False
    return not any(map(is_hidden, inside.split("/")[:-1]))


def _is_there(storage: Storage) -> bool:
    """Whether a folder without data exists; in an object store, something must lie in it."""
    if storage.remote:
        return len(storage.list(hidden=True)) > 0
    return Path(storage.location).is_dir()
