"""Data files that are open for reading, with their footers and the layouts of their pages cached.

Layouts come from bundles where these have them, else from the files.

The data files of a folder are found by their names: `.parquet`, `.parq` and `.pq` in any case, and
names without a dot, as Hive and Trino write them. Other files (`.crc`, `.json`, `.csv`) are left
alone, and so is what Spark hides. An empty file whose name has no dot marks a folder in an object
store, and is no data.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.datafiles.avro import AvroScan, open_avro_scans
from alcid.datafiles.orc import OrcScan, open_orc_scans
from alcid.datafiles.parquet import (
    Coalescing,
    ColumnLayout,
    FileLayout,
    ParquetScan,
    open_scans,
    read_layout,
)
from alcid.datafiles.parquet.columns import FileColumn, file_columns
from alcid.datafiles.parquet.decoding import Int96Unit
from alcid.errors import (
    AlcidError,
    DamagedIndexWarning,
    FileGoneError,
    FormatError,
    UnsupportedError,
)
from alcid.formats.source import BytesSource, Range, ReadMany, Source
from alcid.index.build import group_statistics
from alcid.index.bundle import BundleSet, PayloadKind, prefetch
from alcid.index.bundle.columns import join_columns, unpack_column
from alcid.scan import Bounds, FileScan, TableColumns
from alcid.storage import Listing, Storage, Traffic
from alcid.types import DataType

_SUFFIX = r"\.(parquet|parq|pq)$"
_NO_DOT = r"(^|/)[^/.]+$"


def list_data_files(storage: Storage) -> Listing:
    """The data files of a folder, sorted by path.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> storage = Storage.open(folder.name)
    >>> for name in ("dt=1/b.parquet", "dt=1/.b.parquet.crc", "000000_0", "_SUCCESS", "notes.txt"):
    ...     storage.put(name, b"any bytes")
    >>> list_data_files(storage).paths.to_pylist()
    ['000000_0', 'dt=1/b.parquet']
    >>> folder.cleanup()
    """
    listing = storage.list()
    named = pc.match_substring_regex(listing.paths, _SUFFIX, ignore_case=True)
    bare = pc.match_substring_regex(listing.paths, _NO_DOT)
    chosen = pc.or_(named, pc.and_(bare, pa.array(listing.sizes > 0)))
    return listing.part(np.flatnonzero(chosen.to_numpy(zero_copy_only=False)))


_DataScan = ParquetScan | OrcScan | AvroScan

_MadeOf = tuple[
    Storage,
    Listing,
    Int64Array,
    TableColumns,
    Sequence[tuple[FileColumn, ...]],
    pa.Table,
    pa.Array,
]

PlacedColumn = tuple[Int64Array, ColumnLayout]
"""The row groups of a file, and one column."""

_MOST_FOOTERS = 256
_SMALL = 64 << 10  # bytes of a file, no more than are read to find its footer
_MOST_JOINS = 1024
_MOST_LAYOUTS = 64 << 20  # bytes of page places
_MOST_NAMED = 3  # files in warnings


@runtime_checkable
class DescribedScan(Protocol):
    """A scan of a file that calls columns as the table does, whatever their names in the file."""

    def described(self, columns: Collection[str]) -> dict[str, FileColumn]:
        """Those of the columns that have the table's type in the file."""


class OpenFiles:
    """Files of a table, of which nothing is known but what they say themselves; it pickles."""

    delegated_reason = ""
    """Why the table format's own reader has to read them; empty if they are read here."""
    remarks: Sequence[str] = ()
    """What explanations say of every scan."""
    strict = False
    """Whether to raise where an index is not used instead of a warning."""

    def __init__(
        self,
        storage: Storage,
        listing: Listing,
        rows: Int64Array,
        columns: TableColumns,
        schemas: Sequence[tuple[FileColumn, ...]],
        partitions: pa.Table,
        footer_crcs: pa.Array,
        int96_unit: Int96Unit = "us",
        has_local_instants: bool = False,
    ) -> None:
        """Take what is known of files.

        Args:
            storage: Where they are.
            listing: The files.
            rows: How many rows each has.
            columns: Of the table, and of the files.
            schemas: The different schemas of files, as `columns` numbers them; none if only
                their footers tell what they hold.
            partitions: The values that stand in the paths, a row for each file.
            footer_crcs: The checksums of their footers when they were indexed; null if not known.
            int96_unit: What INT96 is read as.
            has_local_instants: See `open_orc_scans`.
        """
        self._storage, self.listing, self._schemas = storage, listing, schemas
        self._footer_crcs, self.int96_unit = footer_crcs, int96_unit
        self._has_local_instants = has_local_instants
        self.paths, self.sizes, self.rows = listing.paths, listing.sizes, rows
        self.columns, self.partitions = columns, partitions
        self.gap, self.remote = storage.gap, storage.remote
        self._lock = Lock()
        self._scans: OrderedDict[int, _DataScan] = OrderedDict()
        self._layouts: OrderedDict[tuple[int, str], PlacedColumn] = OrderedDict()
        self._layout_bytes = 0
        self._joins: dict[tuple[int, tuple[str, ...]], FileLayout] = {}
        self.replaced: set[int] = set()
        self._distrusted: set[str] = set()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what it was made of."""
        made_of = *self._made_of(), self.int96_unit, self._has_local_instants
        return OpenFiles, made_of, {"strict": self.strict}

    def part(self, files: Int64Array) -> OpenFiles:
        """Some of the files, to be read elsewhere."""
        part = OpenFiles(*self._made_of(files), self.int96_unit, self._has_local_instants)
        part.strict, part._distrusted = self.strict, self._distrusted
        return part

    def _made_of(self, files: Int64Array | None = None) -> _MadeOf:
        """What it was made of, up to the checksums; of some of the files, if they are given."""
        if files is None:
            whole = self._storage, self.listing, self.rows, self.columns, self._schemas
            return *whole, self.partitions, self._footer_crcs
        taken = pa.array(files)
        return (
            self._storage,
            self.listing.part(files),
            self.rows[files],
            self.columns.part(files),
            self._schemas,
            take_values(self.partitions, taken),
            self._footer_crcs.take(taken),
        )

    @property
    def traffic(self) -> Traffic:
        """What was read."""
        return self._storage.traffic

    def bounds(self, _column: str, _data_type: DataType) -> Bounds | None:
        """None: footers are only read when a file is opened."""
        return None

    def group_bounds(
        self, file: int, scan: FileScan, columns: Collection[str]
    ) -> Mapping[str, Bounds]:
        """What the footer of a Parquet file says of its row groups; nothing of keys of maps."""
        if not isinstance(scan, ParquetScan):
            return {}
        described = {
            column.name: column for column in self._described(file, scan) if column.name in columns
        }
        return footer_bounds(scan, described)

    def _described(self, file: int, scan: ParquetScan) -> Iterable[FileColumn]:
        """The columns of a file whose statistics are of the type that it is known to have."""
        number = int(self.columns.schema_of[file])
        if self._schemas:
            return self._schemas[number]
        columns = self.columns.schemas[number]
        return (
            column
            for column in file_columns(scan.metadata, scan.source.name)
            if column.name in columns and _is_same(column.data_type, columns[column.name].data_type)
        )

    def source(self, file: int) -> Source:
        """A file; that it is replaced is noticed where the storage can tell."""
        return self._storage.source(
            self.paths[file].as_py(), int(self.sizes[file]), self.listing.versions[file].as_py()
        )

    def read_ranges(self, ranges: Sequence[Range]) -> Sequence[bytes]:
        """One round of reads of data files."""
        return self._storage.read_ranges(ranges)

    def has_pages(self, file: int) -> bool:
        """Whether it is a Parquet file: ORC files are read by stripes, Avro files whole."""
        return self._format(file) not in ("orc", "avro")

    def _format(self, file: int) -> str:
        return str(self.paths[file]).rpartition(".")[2]

    def open(self, files: Sequence[int]) -> Sequence[FileScan]:
        """The footers of files; those read last are kept."""
        return self._open(files)

    def _open(self, files: Sequence[int]) -> list[_DataScan]:
        with self._lock:
            scans_by_file = {file: self._scans[file] for file in files if file in self._scans}
        missing = [file for file in files if file not in scans_by_file]
        if missing:
            read = dict(zip(missing, self._read_footers(missing), strict=True))
            self._check_footers({file: scan.footer_crc for file, scan in read.items()})
            scans_by_file |= read
            with self._lock:
                # Small files were read whole; they are read again, so that a change is noticed.
                for file, scan in read.items():
                    if not isinstance(scan.source, BytesSource):
                        self._scans[file] = scan
                while len(self._scans) > _MOST_FOOTERS:
                    self._scans.popitem(last=False)
        return [scans_by_file[file] for file in files]

    def _read_footers(self, files: Sequence[int]) -> list[_DataScan]:
        sources = dict(
            zip(files, self._at_hand([self.source(file) for file in files]), strict=True)
        )
        striped = [file for file in sources if self._format(file) == "orc"]
        avro = [file for file in sources if self._format(file) == "avro"]
        paged = [file for file in sources if self._format(file) not in ("orc", "avro")]
        scans_by_file: dict[int, _DataScan] = {}
        if avro:
            chosen = [sources[file] for file in avro]
            opened = open_avro_scans(chosen, self.rows[avro].tolist(), read_ranges=self.read_ranges)
            scans_by_file.update(zip(avro, opened, strict=True))
        open_striped = partial(open_orc_scans, has_local_instants=self._has_local_instants)
        for some, open_some in (paged, open_scans), (striped, open_striped):
            if some:
                scans = open_some([sources[file] for file in some], read_ranges=self.read_ranges)
                scans_by_file.update(zip(some, scans, strict=True))
        return [scans_by_file[file] for file in files]

    def _at_hand(self, sources: Sequence[Source]) -> list[Source]:
        """The same, with small files read whole: nothing more is read of them."""
        small = [source for source in sources if source.size <= _SMALL]
        parts = self.read_ranges([Range(source, 0, source.size) for source in small])
        in_memory = {
            id(source): BytesSource(data, source.name)
            for source, data in zip(small, parts, strict=True)
        }
        return [in_memory.get(id(source), source) for source in sources]

    def _check_footers(self, crcs: Mapping[int, int]) -> None:
        """Check that files were not replaced by others of the same size and version.

        Raises:
            FileGoneError: One was, so what was planned with its indexes does not hold.
        """
        others = []
        for file, crc in crcs.items():
            expected = None if file in self.replaced else self._footer_crcs[file].as_py()
            if expected is not None and crc != expected:
                others.append(file)
        if others:
            problem = "another footer than when it was indexed, with the same size and version"
            self.distrust(others, problem)
            raise FileGoneError(problem, file=self.source(others[0]).name)

    def check_again(self, files: Sequence[int]) -> None:
        """Compare the footers of files with those that were indexed, as far as these are known."""
        with self._lock:
            for file in files:
                self._scans.pop(file, None)
        self._open(files)

    def is_compared(self, _file: int) -> bool:
        """False: what manifests say of a file is not tied to its footer."""
        return False

    def distrust(self, files: Iterable[int], problem: str) -> None:
        """Note that files were replaced after they were indexed, and warn.

        Neither their indexes nor their bounds are used from now on.

        Raises:
            FormatError: The table is strict.
        """
        paths: dict[int, str] = {file: self.paths[file].as_py() for file in files}
        if self.strict:
            first = next(iter(paths))
            raise FormatError(f"indexes of another file: {problem}", file=self.source(first).name)
        with self._lock:
            paths = {file: path for file, path in paths.items() if file not in self.replaced}
            self.replaced.update(paths)
            self._distrusted.update(paths.values())
            for file in paths:
                self._scans.pop(file, None)
            for known in [one for one in self._layouts if one[0] in paths]:
                self._layout_bytes -= _size(self._layouts.pop(known)[1])
            for joined in [one for one in self._joins if one[0] in paths]:
                del self._joins[joined]
        if paths:
            named = ", ".join(list(paths.values())[:_MOST_NAMED])
            more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
            warnings.warn(
                f"not used: the indexes of {named}{more}: {problem}; repair builds them again",
                DamagedIndexWarning,
                stacklevel=2,
            )

    def layouts(self, files: Sequence[int], columns: Sequence[Sequence[str]]) -> list[FileLayout]:
        """Where pages are."""
        with self._lock:
            known = {
                (file, name): self._layouts[file, name]
                for file, names in zip(files, columns, strict=True)
                for name in names
                if (file, name) in self._layouts
            }
        wanted = [
            (file, name)
            for file, names in zip(files, columns, strict=True)
            for name in names
            if (file, name) not in known
        ]
        known |= self._known_layouts(wanted)
        layouts = []
        for file, names in zip(files, columns, strict=True):
            missing = [name for name in names if (file, name) not in known]
            if missing:
                known |= self._from_file(file, missing)
            layouts.append(self._joined(file, tuple(names), known))
        return layouts

    def _known_layouts(
        self, _wanted: Sequence[tuple[int, str]]
    ) -> dict[tuple[int, str], PlacedColumn]:
        """What is known without a look at the files."""
        return {}

    def _joined(
        self,
        file: int,
        names: tuple[str, ...],
        known: Mapping[tuple[int, str], PlacedColumn],
    ) -> FileLayout:
        """The layout of some columns; it is kept, as making it checks all its numbers."""
        layout = self._joins.get((file, names))
        if layout is None:
            path = self.paths[file].as_py()
            try:
                layout = join_columns({name: known[file, name] for name in names}, file=path)
            except FormatError as error:
                self._warn(error)
                columns = self._from_file(file, names)
                layout = join_columns({name: columns[file, name] for name in names}, file=path)
            with self._lock:
                if len(self._joins) >= _MOST_JOINS:
                    self._joins.clear()
                self._joins[file, names] = layout
        return layout

    def _warn(self, error: FormatError | UnsupportedError) -> None:
        """Say that what was known is damaged; here, nothing was."""
        raise error

    def _from_file(self, file: int, names: Sequence[str]) -> dict[tuple[int, str], PlacedColumn]:
        layout = read_layout(
            self.source(file),
            names,
            coalescing=Coalescing(gap=self.gap),
            read_ranges=self.read_ranges,
        )
        if layout.footer_crc is not None:
            self._check_footers({file: layout.footer_crc})
        columns = {(file, name): (layout.starts, layout.column(name)) for name in names}
        self._keep(columns)
        return columns

    def _keep(self, columns: Mapping[tuple[int, str], PlacedColumn]) -> None:
        with self._lock:
            for key, (starts, column) in columns.items():
                if key not in self._layouts:
                    self._layouts[key] = starts, column
                    self._layout_bytes += _size(column)
            while self._layout_bytes > _MOST_LAYOUTS and self._layouts:
                _, (_, column) = self._layouts.popitem(last=False)
                self._layout_bytes -= _size(column)


_group_bounds: WeakKeyDictionary[ParquetScan, dict[FileColumn, Bounds | None]] = WeakKeyDictionary()


def footer_bounds(scan: ParquetScan, columns: Mapping[str, FileColumn]) -> Mapping[str, Bounds]:
    """The bounds of each row group, as far as the footer is trusted, by the names in `columns`.

    They are cached as long as the footer is.
    """
    cached = _group_bounds.setdefault(scan, {})
    result: dict[str, Bounds] = {}
    for name, column in columns.items():
        if column not in cached:
            cached[column] = _read_group_bounds(scan, column)
        bounds = cached[column]
        if bounds is not None:
            result[name] = bounds
    return result


def _read_group_bounds(scan: ParquetScan, column: FileColumn) -> Bounds | None:
    try:
        # Arrow must not be asked for a column that is encrypted; empty row groups it may.
        scan.check(range(len(scan.group_rows)), [column.leaf])
        statistics = group_statistics(column, scan.statistics)
    except UnsupportedError:
        return None
    rows = np.array(scan.group_rows, np.int64)
    return None if statistics is None else Bounds(statistics, rows)


def places_of(some: Collection[str], paths: pa.Array) -> set[int]:
    """The places of some paths among all; those that are not there are passed over."""
    if not some:
        return set()
    is_one = pc.is_in(paths, value_set=pa.array(sorted(some), pa.string()))
    return set(np.flatnonzero(is_one.to_numpy(zero_copy_only=False)).tolist())


def take_values(table: pa.Table, rows: pa.Array) -> pa.Table:
    """Some rows; of a table without columns, the same."""
    return table.take(rows) if table.num_columns else table


def _is_same(stored: DataType | None, expected: DataType | None) -> bool:
    """Whether values of a file compare as the table has it; Parquet knows no longest text."""
    if stored is None or expected is None:
        return False
    return stored == expected or stored.root == expected.root == "VARCHAR"


def _size(column: ColumnLayout) -> int:
    return sum(leaf.pieces.nbytes + leaf.groups.nbytes for leaf in column.leaves)


def known_layouts(
    bundles: BundleSet,
    wanted: Sequence[tuple[int, str]],
    read_ranges: ReadMany,
    on_damage: Callable[[AlcidError], None],
) -> dict[tuple[int, str], PlacedColumn]:
    """The layouts that bundles have of columns of files, read in one round.

    Args:
        bundles: The bundles.
        wanted: Files and columns, as the files spell them.
        read_ranges: How to read a round of ranges.
        on_damage: Is called with what is damaged, and so left out.
    """
    payloads = {
        (file, name): payload
        for file, name in wanted
        if (payload := bundles.coverage(PayloadKind.pages(name)).payload(file)) is not None
    }
    prefetch(((payload, [(0, payload.size)]) for payload in payloads.values()), read_ranges)
    layouts = {}
    for (file, name), payload in payloads.items():
        try:
            data = payload.read(0, payload.size)
            layouts[file, name] = unpack_column(name, data, file=bundles.paths[file].as_py())
        except (FormatError, UnsupportedError) as error:
            on_damage(error)
    return layouts
