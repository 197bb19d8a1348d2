"""A folder of Parquet files as a table, without a catalog: what a user holds."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from alcid._text import count_text
from alcid.errors import (
    AlcidWarning,
    ColumnError,
    FileGoneError,
    OptionError,
    StorageError,
    UnsupportedError,
    require,
)
from alcid.expressions.columns import ColumnTypes
from alcid.formats.deletion_vector import DeletionVector
from alcid.options import OptionValue, did_you_mean, parse_options
from alcid.storage import Listing, Storage
from alcid.storage.backend import is_hidden
from alcid.tables.base import Table
from alcid.tables.bundle_folder import BundleFolder
from alcid.tables.engine import Engine, Progress
from alcid.tables.maintenance.clean import CleanReport, clean
from alcid.tables.maintenance.findings import RepairReport, VerifyReport
from alcid.tables.maintenance.parquet import repair, verify
from alcid.tables.open_files import list_data_files
from alcid.tables.parquet.files import FolderFiles
from alcid.tables.parquet.indexes import FolderIndexes
from alcid.tables.parquet.partitions import Partitions
from alcid.tables.reports import AppendReport, BuildReport, IndexInfo
from alcid.tables.statistics import compute_stats

__all__ = ["ParquetTable"]

_ICEBERG_DATA = "data"
_DEEPEST_PARTITION = 8  # folders of partitions within each other
_OTHER_DATA = r"\.(csv|tsv|json|jsonl|ndjson|orc|avro|arrow|feather|xml)(\.\w+)?$"
_PAIMON_SCHEMA = "schema/schema-0"
_MOST_NAMED = 5


class ParquetTable(Table[FolderFiles]):
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

    def build_indexes(
        self,
        options: Mapping[str, OptionValue],
        *,
        rebuild: bool = False,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> BuildReport:
        """Build the indexes that files lack; see `alcid.options` for what can be asked for.

        What a killed build has published is used, and the next build goes on from there.

        Args:
            options: Paimon's options, as `{"file-index.bloom-filter.columns": "id"}`.
            rebuild: Build all anew, fresh or not.
            dry_run: Only say what files lack; nothing is read of their data.
            progress: Is called after each file with files done, files to do, and rows. True shows a
                bar, False nothing; by default there is a bar if standard error is a terminal.

        Raises:
            OptionError: An option that cannot be.
            ColumnError: No file has a column, or it stands in the paths.
        """
        self.refresh()
        columns = self.snapshot.columns
        with self.engine.settings():
            for spec in parse_options(options):
                if not columns.columns:
                    break
                if columns.find(spec.top_level) in columns.partitions:
                    raise ColumnError(
                        f"column {spec.column}: stands in the paths, and needs no index"
                    )
            if dry_run:
                return self._indexes.preview(options, self.snapshot, rebuild=rebuild)
            report = self._indexes.build(options, rebuild=rebuild, progress=progress)
        if rebuild:
            self._distrusted.clear()
        self.refresh()
        return report

    def indexes(self) -> list[IndexInfo]:
        """What indexes there are, and of how many files each is fresh."""
        with self.engine.settings():
            return self._indexes.indexes()

    def drop_indexes(
        self,
        columns: Collection[str] | None = None,
        types: Collection[str] | None = None,
        *,
        dry_run: bool = False,
    ) -> int:
        """Remove indexes of these columns and types; by default all.

        Args:
            columns: Those of these columns.
            types: Those of these types, as `bitmap`.
            dry_run: Only count.

        Returns:
            How many files had one of them.
        """
        for what, given in (("columns", columns), ("types", types)):
            if isinstance(given, str):
                raise OptionError(f"{what}: found text, expected a list of names")
        with self.engine.settings():
            dropped = self._indexes.drop(columns, types, dry_run=dry_run)
        self.refresh()
        return dropped

    def append(
        self,
        rows: Any,
        options: Mapping[str, OptionValue] | None = None,
        *,
        partition_by: Sequence[str] | None = None,
        target_file_bytes: int = 128 << 20,
        dry_run: bool = False,
    ) -> AppendReport:
        """Write the rows of a DataFrame as new files, with pages of 2,000 rows and their indexes.

        A task that is tried twice doubles nothing. The files appear one after the other when all
        are written: a folder has no commit.

        Args:
            rows: A DataFrame of Spark. Its columns go by name, narrower types are widened, columns
                that it does not have are null.
            options: The indexes to build, see `alcid.options`; by default those that the table has.
                `{}` for none.
            partition_by: The columns to stand in the paths, for the first rows of a table.
            target_file_bytes: A file is closed when it is about so long.
            dry_run: Only see whether the columns fit, and count the rows.

        Raises:
            ColumnError: A column that the table does not have.
            UnsupportedError: The table was not opened with a session, or a type does not fit.
        """
        return self.engine.append(
            self,
            rows,
            options=options,
            partition_by=partition_by,
            target_file_bytes=target_file_bytes,
            dry_run=dry_run,
        )

    def compute_stats(
        self, columns: Collection[str] | None = None, *, progress: Progress | bool | None = None
    ) -> pa.Table:
        """Count the distinct values of columns by theta sketches, and keep these in a Puffin file.

        Args:
            columns: By default all that can be counted.
            progress: As for `build_indexes`.

        Returns:
            A row for each column, with `ndv`, how many distinct values it has: exact up to 4,096,
            and within some percent beyond.

        Raises:
            ColumnError: There is no such column.
            UnsupportedError: Values of a column cannot be counted, or rows are deleted.
        """
        with self.engine.settings():
            for is_last in (False, True):
                self.refresh()
                try:
                    return compute_stats(
                        self.snapshot, self.bundle_folder, self.engine, columns, progress=progress
                    )
                except FileGoneError:  # or replaced, since it was listed
                    if is_last:
                        raise
        raise AssertionError("the last try returns or raises")

    def verify(
        self, sample: float = 1.0, *, progress: Progress | bool | None = None
    ) -> VerifyReport:
        """Build every index again from its data, and compare.

        Args:
            sample: The share of files to look at; each run takes the same ones.
            progress: As for `build_indexes`.
        """
        with self.engine.settings():
            report = verify(
                self.storage, self.bundle_folder, self.engine, sample=sample, progress=progress
            )
        return report.shortened()

    def repair(
        self,
        older_than: timedelta = timedelta(days=1),
        *,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> RepairReport:
        """Mend what `verify` finds wrong, as far as nothing is lost by it.

        Indexes are built again of the files in which they are wrong. Bundles that are damaged are
        dropped, with what else `clean` removes. All of the table is read for it, and once more to
        see what is left.

        Args:
            older_than: As for `clean`, which is done at the end.
            dry_run: Only say what would be done.
            progress: As for `build_indexes`.
        """
        report = repair(self, self._indexes, older_than, dry_run=dry_run, progress=progress)
        if not dry_run:
            self._distrusted.clear()
            self.refresh()
        return report

    def clean(
        self, older_than: timedelta = timedelta(days=1), *, dry_run: bool = False
    ) -> CleanReport:
        """Merge bundles, and remove what is left of work that was killed.

        Args:
            older_than: What is younger is left alone: somebody may be writing or reading it.
            dry_run: Only say what would be done.
        """
        report = clean(self.storage, self.bundle_folder, older_than=older_than, dry_run=dry_run)
        if not dry_run:
            self.refresh()
        return report

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
