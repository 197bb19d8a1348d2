"""One data file, read again, against all that bundles keep of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from alcid.bundle import BundleSet, Kind, prefetch
from alcid.bundle.kinds import INDEX, PAGES
from alcid.bundle.statistics import ColumnStatistics
from alcid.errors import (
    AlcidError,
    ColumnError,
    FileGoneError,
    FormatError,
    LimitError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.keys import KeyType, key_type
from alcid.formats.source import ReadMany, Source
from alcid.options import BsiOptions, IndexSpec
from alcid.parquet_file import read_rows
from alcid.storage import Listing, Storage
from alcid.tables import verify_report
from alcid.tables.checked import Checked
from alcid.tables.entry_check import compare_entry, compare_pages, compare_statistics
from alcid.tables.file_columns import FileColumn
from alcid.tables.file_statistics import value_statistics
from alcid.tables.index_file import IndexedFile, index_file, resolve_spec
from alcid.tables.schema_bytes import schema_columns
from alcid.tables.stored_options import stored_options
from alcid.tables.verify_report import STATISTICS
from alcid.types import DataType

__all__ = ["FileChecker"]

_Column = tuple[FileColumn, IndexSpec, DataType]


class FileChecker:
    """Compares files with the bundles that know them; many threads may call it."""

    def __init__(self, bundles: BundleSet, read_many: ReadMany) -> None:
        """Take what is known of all files; `read_many` reads from bundles."""
        self._read_many = read_many
        known = (k for k in bundles.kinds if k.type == PAGES or k.index_type in BUILDERS)
        self._coverages = [bundles.coverage(kind) for kind in known if kind.column]
        self._statistics = [one for name in bundles.columns for one in bundles.statistics(name)]
        self._paths, self._rows, self._crcs = bundles.paths, bundles.rows, bundles.footer_crcs
        self._schemas = bundles.schemas

    def check(self, file: int, storage: Storage, listing: Listing) -> Checked:
        """Read a file that was listed and may be changed by now, and compare.

        Raises:
            StorageError: It cannot be read, and that is not because it changed.
        """
        path, size = listing.paths[file].as_py(), int(listing.sizes[file])
        version = listing.versions[file].as_py()
        found = Checked(checked=1, rows=self._rows[file].as_py() or 0)
        problem: AlcidError | None = None
        try:
            self.compare(file, storage.source(path, size, version), version, found)
        except (FormatError, LimitError, StorageError, UnsupportedError) as error:
            problem = error
        is_same = storage.is_same(path, size, version)
        if not is_same or isinstance(problem, FileGoneError):
            return Checked(changed=1)
        if isinstance(problem, StorageError):
            raise problem
        if problem is not None:
            found.findings.add(path, "", problem)
        return found

    def compare(self, file: int, source: Source, version: str, found: Checked) -> None:
        """Compare a file with what bundles have of it, if one has.

        Args:
            file: Its place among the files of the bundles.
            source: What it holds.
            version: As its bundle has it.
            found: Is told what is right, and what is wrong.

        Raises:
            FormatError: It is damaged.
            LimitError: It is too large to be read.
            StorageError: It cannot be read, or has another size than its source.
            UnsupportedError: It is of a kind that is not read.
        """
        if not self._rows[file].is_valid:  # no bundle, or it has gone since the file was chosen
            return
        path = self._paths[file].as_py()
        payloads = dict(self._payloads(file))
        columns: tuple[FileColumn, ...] = ()
        if (schema := self._schemas[file].as_py()) is not None:
            with suppress(FormatError):  # which is told below
                columns = schema_columns(schema, file=path)
        specs = [
            IndexSpec(
                kind.column,
                kind.index_type,
                stored_options(kind.index_type, payload, _key_type(kind, columns)),
            )
            for kind, payload in payloads.items()
            if kind.type == INDEX and isinstance(payload, bytes)
        ]
        again = index_file(source, specs, path=path, size=source.size, version=version)
        data = _Data(source, again)
        rows, crc = self._rows[file].as_py(), self._crcs[file].as_py()
        for what, problem in compare_entry(rows, crc, schema, again.entry):
            found.findings.add(path, what, problem)
        stored = {
            (one.column, one.data_type): one.values[file]
            for one in self._statistics
            if one.values[file].is_valid
        }
        for column, problem in compare_statistics(stored, again.entry, data.statistics):
            found.count(path, column, STATISTICS, problem)
        for kind, payload in payloads.items():
            if isinstance(payload, FormatError):
                found.count_damaged(path, kind.column, _type(kind), payload)
            elif kind.type == PAGES:
                self._compare_pages(kind, payload, again, found)
            else:
                _compare_index(kind, payload, data, found)

    def _payloads(self, file: int) -> Iterator[tuple[Kind, bytes | FormatError]]:
        """What is kept of a file, read in one round; an error for what is damaged."""
        sources = [(one.kind, one.payload(file)) for one in self._coverages]
        present = [(kind, payload) for kind, payload in sources if payload is not None]
        prefetch(((payload, [(0, payload.size)]) for _, payload in present), self._read_many)
        for kind, payload in present:
            try:
                yield kind, payload.read(0, payload.size)
            except FormatError as error:
                yield kind, error

    @staticmethod
    def _compare_pages(kind: Kind, payload: bytes, again: IndexedFile, found: Checked) -> None:
        path, expected = again.entry.path, again.payloads.get(kind)
        if expected is None:
            problem = again.skipped.get(kind, "no such column")
        else:
            try:
                problem = compare_pages(kind.column, payload, expected, file=path)
            except (FormatError, UnsupportedError) as error:
                found.count_damaged(path, kind.column, _type(kind), error)
                return
        found.count(path, kind.column, _type(kind), problem)


class _Data:
    """A file that was read again."""

    def __init__(self, source: Source, again: IndexedFile) -> None:
        self._source, self.again = source, again
        self.columns = schema_columns(again.entry.schema or b"", file=again.entry.path)

    def values(self, name: str) -> pa.ChunkedArray:
        return read_rows(self._source, None, [name]).column(0)

    def statistics(self, name: str) -> ColumnStatistics | None:
        """Those of all values of a column."""
        if name in self.again.read:
            return self.again.entry.statistics.get(name)
        (column,) = (one for one in self.columns if one.name == name)
        return value_statistics(column, self.values(name))


def _key_type(kind: Kind, columns: tuple[FileColumn, ...]) -> KeyType | None:
    """The type of the keys of an index, as far as its bundle knows the columns."""
    try:
        return key_type(_resolve(kind, columns)[2])
    except (ColumnError, UnsupportedError):
        return None


def _resolve(kind: Kind, columns: tuple[FileColumn, ...]) -> _Column:
    return resolve_spec(IndexSpec(kind.column, kind.index_type, BsiOptions()), columns)


def _compare_index(kind: Kind, payload: bytes, data: _Data, found: Checked) -> None:
    path, payloads = data.again.entry.path, data.again.payloads

    def read() -> tuple[pa.ChunkedArray, DataType]:
        column, _, data_type = _resolve(kind, data.columns)
        return data.values(column.name), data_type

    spec = IndexSpec(kind.column, kind.index_type, BsiOptions())
    rebuilt = payloads[kind] or b"" if kind in payloads else None
    found.compare(path, kind.column, spec, payload, rebuilt, read)


def _type(kind: Kind) -> str:
    """The type of an index; what the report calls the pages."""
    return kind.index_type or verify_report.PAGES
