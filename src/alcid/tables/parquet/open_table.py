"""A folder of Parquet files that is open as a table, without a catalog.

`alcid.ParquetTable` adds what users do with a table. The steps behind that take the table as it is
here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from alcid._text import count_text
from alcid.errors import AlcidWarning, OptionError, StorageError, UnsupportedError, require
from alcid.expressions.columns import ColumnTypes
from alcid.formats.deletion_vector import DeletionVector
from alcid.options import did_you_mean
from alcid.storage import Listing, Storage
from alcid.storage.backend import is_hidden
from alcid.tables.base import Table
from alcid.tables.bundle_folder import BundleFolder
from alcid.tables.engine import Engine
from alcid.tables.open_files import list_data_files
from alcid.tables.parquet.files import FolderFiles
from alcid.tables.parquet.indexes import FolderIndexes
from alcid.tables.parquet.partitions import Partitions
from alcid.tables.reports import IndexInfo

_ICEBERG_DATA = "data"
_DEEPEST_PARTITION = 8  # folders of partitions within each other
_OTHER_DATA = r"\.(csv|tsv|json|jsonl|ndjson|orc|avro|arrow|feather|xml)(\.\w+)?$"
_PAIMON_SCHEMA = "schema/schema-0"
_MOST_NAMED = 5


class OpenParquetTable(Table[FolderFiles]):
    """A folder of Parquet files.

    It sees the files that there were when it was opened, or at the last `refresh`.
    """

    def __init__(
        self,
        storage: Storage,
        index_storage: Storage | None = None,
        *,
        strict: bool = False,
        partition_types: ColumnTypes | None = None,
        create: bool = False,
        engine: Engine | None = None,
    ) -> None:
        """List the files; `alcid.parquet` is the usual way to one."""
        super().__init__(storage, strict=strict, engine=engine)
        self._index_storage = index_storage
        self.partition_types, self._create = partition_types, create
        self._indexes = FolderIndexes(
            storage, index_storage=index_storage, strict=strict, engine=self.engine
        )
        self._deletions: Mapping[str, DeletionVector] = {}
        self.refresh()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, Any] | None = None,
        index_path: str | os.PathLike[str] | None = None,
        strict: bool = False,
        partition_types: ColumnTypes | None = None,
        create: bool = False,
        engine: Engine | None = None,
    ) -> Self:
        """Open a folder; see `alcid.parquet`."""
        storage = Storage.open(path, storage_options)
        index_storage = None if index_path is None else Storage.open(index_path, storage_options)
        if index_storage is not None and _is_data_folder(index_storage.location, storage.location):
            raise OptionError(
                f"index_path: {index_storage.location} is a folder of the data, where other "
                "readers would take indexes for data; without index_path they lie in _alcid"
            )
        return cls(
            storage,
            index_storage,
            strict=strict,
            partition_types=partition_types,
            create=create,
            engine=engine,
        )

    @property
    def bundle_folder(self) -> BundleFolder:
        """Where its indexes are."""
        return self._indexes.folder

    def tidy(self) -> None:
        """Merge bundles if there are many, as a build does at its end."""
        self._indexes.tidy()

    def indexes(self) -> list[IndexInfo]:
        """What indexes there are, and of how many files each is fresh."""
        with self.engine.settings():
            return self._indexes.indexes()

    def with_deletions(self, deletions: Mapping[str, DeletionVector]) -> Self:
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
        table = copy(self)
        table._deletions, table._distrusted = every, set(self._distrusted)
        table.refresh()
        return table

    def _open(self, before: FolderFiles | None = None) -> FolderFiles:
        """The files that are listed; or those that were."""
        local = None if self.storage.remote else Path(self.location)
        if local is not None and local.is_file():
            raise UnsupportedError(f"{self.location}: a file; a table is a folder: {local.parent}")
        listing = list_data_files(self.storage) if before is None else before.listing
        if not (len(listing) or self._create or _is_there(self.storage)):
            raise StorageError(f"no such folder{_near(local)}", file=self.location)
        if local is not None and (local / _PAIMON_SCHEMA).is_file():
            raise UnsupportedError(f"{self.location}: a Paimon table, which alcid.paimon opens")
        if tables := _paimon_tables(listing):
            raise UnsupportedError(
                f"{self.location}: a folder of Paimon tables, open one of them: {tables}"
            )
        if local is not None and next((local / "metadata").glob("*.metadata.json"), None):
            raise UnsupportedError(
                f"{self.location}: an Iceberg table, which alcid.iceberg opens by its name"
            )
        if local is not None and (problem := _inside_table(local)):
            raise UnsupportedError(f"{self.location}: {problem}")
        if local is not None and (local / "_delta_log").is_dir():
            warnings.warn(
                f"{self.location}: a Delta table, taken for a folder of Parquet files: files that "
                "the table has removed are read too",
                AlcidWarning,
                stacklevel=5,
            )
        if before is None and not len(listing) and not self._create:
            _refuse_others(self.storage)
        partitions = Partitions.of(listing.paths, self.partition_types)
        bundles = self._indexes.open(_without_versions(listing, self._distrusted))
        index_storage = self.storage if self._index_storage is None else self._index_storage
        return FolderFiles(
            self.storage,
            index_storage,
            listing,
            bundles,
            partitions,
            self._deletions,
            self._distrusted,
        )


def _without_versions(listing: Listing, distrusted: Collection[str]) -> Listing:
    """The listing with no version for some files, so that no index of theirs is taken for fresh."""
    if not distrusted:
        return listing
    unknown = pc.is_in(listing.paths, value_set=pa.array(sorted(distrusted), pa.string()))
    versions = pc.if_else(unknown, pa.scalar(None, pa.string()), listing.versions)
    return Listing(listing.paths, listing.sizes, versions)


def _paimon_tables(listing: Listing) -> str:
    """The Paimon tables that lie below; names without a dot are listed, as data may have such."""
    schemas = listing.paths.filter(pc.ends_with(listing.paths, f"/{_PAIMON_SCHEMA}"))
    tables = [path.removesuffix(f"/{_PAIMON_SCHEMA}") for path in schemas.to_pylist()]
    return ", ".join(tables[:_MOST_NAMED]) + (", ..." if len(tables) > _MOST_NAMED else "")


def _refuse_others(storage: Storage) -> None:
    """See that a folder without Parquet files has no data in other formats.

    Raises:
        UnsupportedError: It has, and would be taken for a table without rows.
    """
    paths = storage.list().paths
    others = paths.filter(pc.match_substring_regex(paths, _OTHER_DATA, ignore_case=True))
    if len(others):
        raise UnsupportedError(
            f"{storage.location}: no Parquet file below it; found"
            f" {count_text(len(others), 'file')} of another format, as {others[0].as_py()}"
        )


def _inside_table(local: Path) -> str:
    """What table a folder is a part of, and what opens that; empty if it is none.

    Its files alone are not rows of the table: some were deleted, rewritten, or never committed.
    """
    if (local / ".hoodie").is_dir():
        return "a Hudi table, which is not read: its files have old versions of rows, too"
    inner: list[str] = []
    for folder in (local, *local.parents)[:_DEEPEST_PARTITION]:
        inner, root = [folder.name, *inner], folder.parent
        if inner[0] == _ICEBERG_DATA and next((root / "metadata").glob("*.metadata.json"), None):
            return f"data files of the Iceberg table {root}, which alcid.iceberg opens by its name"
        if (root / _PAIMON_SCHEMA).is_file() and all(map(_is_partition, inner)):
            return f"data files of a Paimon table: alcid.paimon({str(root)!r}) opens it"
        if (root / "_delta_log").is_dir() and all(map(_is_partition, inner)):
            return f"data files of the Delta table {root}: a part of it is not read"
        if (root / ".hoodie").is_dir():
            return f"data files of the Hudi table {root}, which is not read"
    return ""


def _is_partition(name: str) -> bool:
    return "=" in name or name.startswith("bucket-")


def _is_data_folder(indexes: str, data: str) -> bool:
    """Whether a folder is that of the data, or one within that readers look into."""
    inside = f"{indexes.rstrip('/')}/".removeprefix(f"{data.rstrip('/')}/")
    if inside == f"{indexes.rstrip('/')}/":
        return False
    return not any(map(is_hidden, inside.split("/")[:-1]))


def _near(local: Path | None) -> str:
    """A hint at folders beside the one that was asked for, with names like its own."""
    if local is None or not local.parent.is_dir():
        return ""
    try:
        return did_you_mean(
            local.name, [one.name for one in local.parent.iterdir() if one.is_dir()]
        )
    except OSError:  # one that may not be listed
        return ""


def _is_there(storage: Storage) -> bool:
    """Whether a folder without data exists; in an object store, something must lie in it."""
    if storage.remote:
        return len(storage.list(hidden=True)) > 0
    return Path(storage.location).is_dir()
