"""Comparison of a data file, read again, with all that bundles have of it.

That is the entry of the file (rows, footer, schema), the statistics of its columns, the offsets of
its pages, and its indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.datafiles.parquet import read_rows
from alcid.datafiles.parquet.columns import FileColumn
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
from alcid.index.build import IndexedFile, index_file, resolve_by_name, value_statistics
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    Extents,
    FileEntry,
    PayloadKind,
    Statistics,
    prefetch,
    use_few_sources,
)
from alcid.index.bundle.columns import join_columns, schema_columns, unpack_column
from alcid.index.bundle.files import FileTable
from alcid.index.bundle.format import INDEX, PAGES
from alcid.index.bundle.statistics import ColumnStatistics, statistics_array
from alcid.options import BsiOptions, IndexSpec
from alcid.storage import Listing, Storage
from alcid.tables.maintenance import findings
from alcid.tables.maintenance.findings import STATISTICS, Checked, FindingKind, Findings
from alcid.tables.maintenance.index_check import compare_payload, stored_options
from alcid.types import DataType

StoredStatistics = Mapping[tuple[str, DataType], pa.StructScalar]
"""The statistics that a bundle has of a file, by column and type."""


def check_bundle(bundle: Bundle, name: str, findings: Findings) -> None:
    """Find what is damaged of the files and the directories of a bundle, which is called `name`."""
    try:
        _ = bundle.files
    except FormatError as error:
        findings.add(FindingKind.BUNDLE_FILES, name, error)
        return
    for kind in bundle.kinds:
        try:
            bundle.series(kind)
        except FormatError as error:
            findings.add(FindingKind.BUNDLE_DIRECTORY, name, error, column=str(kind))


def compare_entry(
    rows: int, footer_crc: int | None, schema: bytes | None, entry: FileEntry
) -> Iterator[tuple[FindingKind, str]]:
    """What a bundle says of a file that is not so, and why.

    Args:
        rows: Its rows, as the bundle says.
        footer_crc: The checksum of its footer; None if it is not known.
        schema: Its columns; None if they are not known.
        entry: The same, of the file as it is.
    """
    if footer_crc is not None and footer_crc != entry.footer_crc:
        yield (
            FindingKind.ENTRY_FOOTER,
            "another than when it was indexed, with the same size and version",
        )
    if rows != entry.rows:
        yield FindingKind.ENTRY_ROWS, f"found {rows:,}, expected {entry.rows:,}"
    if schema is not None and schema != entry.schema:
        try:
            stored = _described(schema, entry.path)
        except FormatError as error:
            yield FindingKind.ENTRY_SCHEMA, str(error)
        else:
            expected = _described(entry.schema or b"", entry.path)
            wrong = sorted(name for name, _ in stored.items() ^ expected.items())
            if wrong:
                yield FindingKind.ENTRY_SCHEMA, f"column {wrong[0]!r} is not as in the file"


def _described(schema: bytes, file: str) -> dict[str, Any]:
    """The columns without the words of a problem, which may be those of an earlier version."""
    columns = schema_columns(schema, file=file)
    return {
        column.name: replace(column, problem="any" if column.problem else "") for column in columns
    }


def compare_statistics(
    stored: StoredStatistics,
    entry: FileEntry,
    read: Callable[[str], ColumnStatistics | None],
) -> Iterator[tuple[str, str]]:
    """For each column of which there are statistics: its name, and a problem or an empty text.

    Those of a footer and those of the values may both be stored, and both are true. So where they
    are not the same as those of the entry, the values decide.

    Args:
        stored: What the bundle has of the file.
        entry: The file as it is.
        read: Gives the statistics of all values of a column.
    """
    actual = {
        (statistics.column, statistics.data_type): statistics.values[0]
        for statistics in FileTable.of([entry]).statistics
    }
    for (column, data_type), values in stored.items():
        if (column, data_type) not in actual:
            yield column, f"statistics of {data_type}, which is not its type"
        elif values.equals(actual[column, data_type]):
            yield column, ""
        else:
            exact = read(column)
            if exact is None:
                yield column, "statistics of a column that has none"
            else:
                array = statistics_array(column, data_type, [exact])
                yield column, untrue(_comparable_fields(values), _comparable_fields(array[0]))


def untrue(stored: Mapping[str, Any], exact: Mapping[str, Any]) -> str:
    """What of statistics is not true, or an empty text; what is not known is never untrue.

    A bound that is not exact is true if no value lies beyond it. Of text it may be truncated: then
    the other is truncated at the same length, or not at all.
    """
    for name in ("nulls", "has_nan"):
        if stored[name] is not None and stored[name] != exact[name]:
            return f"{name}: found {stored[name]}, expected {exact[name]}"
    for name in ("min", "max"):
        bound, expected = stored[name], exact[name]
        if bound is None:
            continue
        if stored[f"{name}_exact"]:
            true = bound == expected and exact[f"{name}_exact"]
        elif expected is None:  # there is no value, or one above all text that is stored
            true = exact[f"{name}_exact"]
        else:
            true = bound <= expected if name == "min" else bound >= expected
        if not true:
            return f"{name}: found {bound!r}, expected {expected!r}"
    return ""


def untrue_of(stored: pa.StructScalar, values: pa.ChunkedArray, data_type: DataType) -> str:
    """What of statistics is not true of all values of a column, or an empty text; see `untrue`."""
    exact = ColumnStatistics.of(values, data_type)
    expected = {
        "min": _comparable(exact.minimum),
        "max": _comparable(exact.maximum),
        "min_exact": True,
        "max_exact": True,
        "nulls": exact.nulls,
        "has_nan": exact.has_nan,
    }
    return untrue({field: _comparable(stored[field]) for field in expected}, expected)


def _comparable_fields(statistics: pa.StructScalar) -> dict[str, Any]:
    return {name: _comparable(statistics[name]) for name in statistics}


def _comparable(value: Any) -> Any:
    """A bound as what compares alike; timestamps as numbers, since Python has no nanoseconds."""
    if not isinstance(value, pa.Scalar):
        return value
    return value.value if pa.types.is_temporal(value.type) and value.is_valid else value.as_py()


def compare_pages(column: str, stored: bytes, expected: bytes, *, file: str) -> str:
    """Why the page offsets of a column are wrong, or an empty text.

    Equal offsets may be packed to other bytes by another version of a compressor.

    Raises:
        FormatError: What is stored is damaged.
    """
    if stored == expected:
        return ""
    starts, pages = unpack_column(column, stored, file=file)
    join_columns({column: (starts, pages)}, file=file)
    other_starts, other = unpack_column(column, expected, file=file)
    if not np.array_equal(starts, other_starts):
        return "other row groups"
    if replace(pages.field, arrow=b"") != replace(other.field, arrow=b""):
        return "another schema of the column"
    if _arrow(pages.field.arrow) != _arrow(other.field.arrow):
        return "another Arrow type"
    same = bool(pages.whole) == bool(other.whole) and all(
        np.array_equal(one.groups, two.groups) and np.array_equal(one.pieces, two.pieces)
        for one, two in zip(pages.leaves, other.leaves, strict=True)
    )
    return "" if same else "other page offsets"


def _arrow(schema: bytes) -> pa.Schema | None:
    return pa.ipc.read_schema(pa.py_buffer(schema)) if schema else None


_Column = tuple[FileColumn, IndexSpec, DataType]


@dataclass(frozen=True, slots=True, eq=False)
class StoredFiles:
    """What bundles have of some files, and where: what a task needs to check them.

    No bundle has to be opened for it. It is `Splittable`, and pickles.
    """

    bundles: tuple[tuple[str, int], ...]
    """The names and sizes of bundles with payloads of these files."""
    paths: pa.StringArray
    rows: pa.Int64Array
    """Null where no bundle has the file."""
    footer_crcs: pa.UInt32Array
    schemas: pa.Array
    statistics: tuple[Statistics, ...]
    extents: tuple[Extents, ...]
    """The payloads to check, by kind; their sources are places in `bundles`."""

    @classmethod
    def of(cls, bundles: BundleSet, names: Sequence[str], files: Int64Array) -> StoredFiles:
        """What bundles have of some of the listed files, by their positions, ascending.

        Args:
            bundles: The bundles of a table.
            names: What each of `bundles.bundles` is called, for `FileChecker`.
            files: The files.
        """
        taken = pa.array(files)
        extents = [
            bundles.coverage(kind).extents(files)
            for kind in bundles.kinds
            if kind.column and (kind.type == PAGES or kind.index_type in BUILDERS)
        ]
        statistics = (group for name in bundles.columns for group in bundles.statistics(name))
        every = cls(
            tuple(
                (name, bundle.source.size)
                for name, bundle in zip(names, bundles.bundles, strict=True)
            ),
            bundles.paths.take(taken),
            bundles.rows.take(taken),
            bundles.footer_crcs.take(taken),
            _take_values(bundles.schemas, taken),
            tuple(replace(group, values=group.values.take(taken)) for group in statistics),
            tuple(extents),
        )
        return every._with_few_bundles()

    def __len__(self) -> int:
        return len(self.paths)

    def part(self, positions: Int64Array) -> StoredFiles:
        """What there is of some of the files, given by their positions, ascending."""
        taken = pa.array(positions)
        return StoredFiles(
            self.bundles,
            self.paths.take(taken),
            self.rows.take(taken),
            self.footer_crcs.take(taken),
            _take_values(self.schemas, taken),
            tuple(replace(group, values=group.values.take(taken)) for group in self.statistics),
            tuple(extents.part(positions) for extents in self.extents),
        )._with_few_bundles()

    def _with_few_bundles(self) -> StoredFiles:
        used, extents = use_few_sources(self.extents)
        bundles = tuple(self.bundles[number] for number in used.tolist())
        return replace(self, bundles=bundles, extents=extents)


def _take_values(schemas: pa.DictionaryArray, positions: pa.Array) -> pa.DictionaryArray:
    """Some values, with no more of the dictionary than they need."""
    return schemas.take(positions).cast(schemas.type.value_type).dictionary_encode()


class FileChecker:
    """Compares files with what bundles have of them; many threads may call it."""

    def __init__(
        self, stored: StoredFiles, open_bundle: Callable[[str, int], Source], read_many: ReadMany
    ) -> None:
        """Take what is stored of the files of a task.

        Args:
            stored: What bundles have of them.
            open_bundle: A bundle as a source, by its name and size.
            read_many: Reads from such sources.
        """
        self._stored, self._read_many = stored, read_many
        self._sources = [open_bundle(*bundle) for bundle in stored.bundles]

    def check(self, file: int, storage: Storage, listing: Listing) -> Checked:
        """Read a file that was listed and may be changed by now, and compare.

        Raises:
            FileGoneError: A bundle was removed meanwhile.
            StorageError: The file cannot be read, and that is not because it changed.
        """
        path, size = listing.paths[file].as_py(), int(listing.sizes[file])
        version = listing.versions[file].as_py()
        checked = Checked(files=1, checked=1, rows=self._stored.rows[file].as_py() or 0)
        problem: AlcidError | None = None
        source = storage.source(path, size, version)
        try:
            self.compare(file, source, version, checked)
        except (FormatError, LimitError, StorageError, UnsupportedError) as error:
            problem = error
        if isinstance(problem, FileGoneError) and problem.file != source.name:
            raise problem  # a bundle that was replaced just now
        if isinstance(problem, FileGoneError) or not storage.is_same(path, size, version):
            return Checked(files=1, changed=1)
        if isinstance(problem, StorageError):
            raise problem
        if problem is not None:
            checked.findings.add(FindingKind.DATA_FILE, path, problem)
        return checked

    def compare(self, file: int, source: Source, version: str, checked: Checked) -> None:
        """Compare a file with what bundles have of it, if one has.

        Args:
            file: Its number among the files of the bundles.
            source: Its bytes.
            version: As its bundle has it.
            checked: Where the result is counted.

        Raises:
            FormatError: It is damaged.
            LimitError: It is too large to be read.
            StorageError: It cannot be read, or has another size than its source.
            UnsupportedError: It is of a kind that is not read.
        """
        if not self._stored.rows[file].is_valid:  # no bundle has it
            return
        path = self._stored.paths[file].as_py()
        payloads = dict(self._payloads(file))
        columns: tuple[FileColumn, ...] = ()
        if (schema := self._stored.schemas[file].as_py()) is not None:
            with suppress(FormatError):  # which is reported below
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
        rows, crc = self._stored.rows[file].as_py(), self._stored.footer_crcs[file].as_py()
        for finding_kind, problem in compare_entry(rows, crc, schema, again.entry):
            checked.findings.add(finding_kind, path, problem)
        stored = {
            (statistics.column, statistics.data_type): statistics.values[file]
            for statistics in self._stored.statistics
            if statistics.values[file].is_valid
        }
        for column, problem in compare_statistics(stored, again.entry, data.statistics):
            checked.count(path, column, STATISTICS, problem)
        for kind, payload in payloads.items():
            if isinstance(payload, FormatError):
                checked.count_damaged(path, kind.column, _type(kind), payload)
            elif kind.type == PAGES:
                self._compare_pages(kind, payload, again, checked)
            else:
                _compare_index(kind, payload, data, checked)

    def _payloads(self, file: int) -> Iterator[tuple[PayloadKind, bytes | FormatError]]:
        """The payloads of a file, read in one round; an error for what is damaged."""
        entries = ((extents, extents.find(file)) for extents in self._stored.extents)
        present = [
            (extents.kind, extents.payload(entry, self._sources))
            for extents, entry in entries
            if entry is not None
        ]
        prefetch(((payload, [(0, payload.size)]) for _, payload in present), self._read_many)
        for kind, payload in present:
            try:
                yield kind, payload.read(0, payload.size)
            except FormatError as error:
                yield kind, error

    @staticmethod
    def _compare_pages(
        kind: PayloadKind, payload: bytes, again: IndexedFile, checked: Checked
    ) -> None:
        path, expected = again.entry.path, again.payloads.get(kind)
        if expected is None:
            problem = again.skipped.get(kind, "no such column")
        else:
            try:
                problem = compare_pages(kind.column, payload, expected, file=path)
            except (FormatError, UnsupportedError) as error:
                checked.count_damaged(path, kind.column, _type(kind), error)
                return
        checked.count(path, kind.column, _type(kind), problem)


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
        (column,) = (column for column in self.columns if column.name == name)
        return value_statistics(column, self.values(name))


def _key_type(kind: PayloadKind, columns: tuple[FileColumn, ...]) -> KeyType | None:
    """The type of the keys of an index, as far as its bundle knows the columns."""
    try:
        return key_type(_resolve(kind, columns)[2])
    except (ColumnError, UnsupportedError):
        return None


def _resolve(kind: PayloadKind, columns: tuple[FileColumn, ...]) -> _Column:
    # For the column alone: any options do.
    return resolve_by_name(columns)(IndexSpec(kind.column, kind.index_type, BsiOptions()))


def _compare_index(kind: PayloadKind, payload: bytes, data: _Data, checked: Checked) -> None:
    path, payloads = data.again.entry.path, data.again.payloads

    def read() -> tuple[pa.ChunkedArray, DataType]:
        column, _, data_type = _resolve(kind, data.columns)
        return data.values(column.name), data_type

    # It was built again by now: any options do.
    spec = IndexSpec(kind.column, kind.index_type, BsiOptions())
    rebuilt = payloads[kind] or b"" if kind in payloads else None
    compare_payload(checked, path, kind.column, spec, payload, rebuilt, read)


def _type(kind: PayloadKind) -> str:
    """The type of an index; what the report calls the pages."""
    return kind.index_type or findings.PAGES
