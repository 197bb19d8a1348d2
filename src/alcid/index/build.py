"""Index one data file: from its rows to the payloads of its indexes, statistics and page layout.

The footer is read once. Of the rows only the columns to index are read, one after the other, so
that no more than one of them is in memory.

Statistics come from the values where a column is read, else from the footer as far as
`datafiles.parquet.statistics` trusts it. A text bound of a footer may have been cut by the writer,
so it is never taken for a value; where a footer cannot be trusted there is no bound.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from itertools import accumulate, groupby
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from alcid.datafiles.parquet import FileLayout, read_layout, read_rows
from alcid.datafiles.parquet.columns import FileColumn, file_columns, stored_type
from alcid.datafiles.parquet.footer import parse_footer
from alcid.datafiles.parquet.statistics import ChunkStatistics, FooterStatistics
from alcid.errors import (
    AlcidError,
    ColumnError,
    FileGoneError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.keys import KeyColumn, map_key_column, read_column
from alcid.formats.source import Source
from alcid.index.bundle import ColumnStatistics, FileEntry, PayloadKind, SpooledBundle, Statistics
from alcid.index.bundle.columns import pack_pages, schema_bytes
from alcid.index.bundle.format import INDEX
from alcid.index.bundle.statistics import statistics_array
from alcid.options import ColumnNames, IndexSpec
from alcid.storage.ranges import CachedSource
from alcid.types import BYTE_STRING_TYPES, DataType

IndexName: TypeAlias = tuple[str, str]
"""The column, which may be a key of a map (`tags[color]`), and the type of an index."""


@dataclass(frozen=True, slots=True)
class BuiltIndexes:
    """What was built of a file, and what was not."""

    built: dict[IndexName, bytes | None] = field(default_factory=dict)
    """None where there is nothing to write: for a key of a map in a file without rows."""
    skipped: dict[IndexName, str] = field(default_factory=dict)
    """Why an index was not built."""
    for_java: bool = False
    """Whether Paimon's Java reads them. Then a column without a value gets no range-bitmap: Java
    (1.4.2, 2.0.0) would find only its first and last row for IS NULL."""

    def build(self, values: pa.ChunkedArray, wanted: Iterable[tuple[IndexSpec, DataType]]) -> None:
        """Build indexes of one column, or of keys of the map that it is.

        Args:
            values: The column.
            wanted: Indexes in the spelling of the file, and the types of their values; those of a
                key of a map one after the other.
        """
        for column, same in groupby(wanted, key=lambda index: index[0].column):
            self._build_same(column, values, list(same))

    def _build_same(
        self, column: str, values: pa.ChunkedArray, wanted: Sequence[tuple[IndexSpec, DataType]]
    ) -> None:
        keys: KeyColumn | None = None
        for spec, data_type in wanted:
            name = column, spec.index_type
            if spec.map_key is not None and not len(values):
                self.built[name] = None
                continue
            try:
                if keys is None:
                    key = spec.map_key
                    array = values if key is None else map_key_column(values, key)
                    keys = read_column(array, data_type)
                if self.for_java and spec.index_type == "range-bitmap" and not len(keys.keys):
                    self.skipped[name] = "there is no value, and Paimon would not find all nulls"
                    continue
                self.built[name] = BUILDERS[spec.index_type](keys, **asdict(spec.options))
            except (UnsupportedError, LimitError) as error:  # of a value, or of too many
                self.skipped[name] = str(error)


def build_payloads(
    read: Callable[[str], pa.ChunkedArray],
    types: Mapping[str, DataType],
    specs: Iterable[IndexSpec],
) -> BuiltIndexes:
    """Build the indexes of a file of a Paimon table; of its columns one at a time is in memory.

    Args:
        read: Gives all values of a column.
        types: The columns of the file.
        specs: The indexes to build; see `alcid.options.parse_options`.

    >>> from alcid.options import parse_options
    >>> rows = pa.table({"id": [3, 1, 2]})
    >>> specs = parse_options({"file-index.bsi.columns": "id", "file-index.bitmap.columns": "no"})
    >>> made = build_payloads(rows.column, {"id": DataType("BIGINT")}, specs)
    >>> list(made.built), list(made.skipped)
    ([('id', 'bsi')], [('no', 'bitmap')])
    """
    made = BuiltIndexes(for_java=True)
    names = ColumnNames(types)
    resolved: list[tuple[IndexSpec, DataType]] = []
    for spec in specs:
        try:
            resolved.append(spec.resolve(types, names))
        except (ColumnError, UnsupportedError) as error:
            made.skipped[spec.column, spec.index_type] = str(error)
    resolved.sort(key=lambda index: (index[0].top_level, index[0].column, index[0].index_type))
    for name, wanted in groupby(resolved, key=lambda index: index[0].top_level):
        made.build(read(name), wanted)
    return made


def value_statistics(
    column: FileColumn, values: pa.Array | pa.ChunkedArray
) -> ColumnStatistics | None:
    """The exact statistics of a column that was read; None if it has none."""
    if not column.has_bounds:
        return None
    try:
        statistics = ColumnStatistics.of(values, column.data_type)
        statistics_array(column.name, statistics.data_type, [statistics])
    except UnsupportedError:
        return None
    return statistics


def footer_statistics(column: FileColumn, footer: FooterStatistics) -> ColumnStatistics | None:
    """What the footer says of a column; None if it gets no statistics at all.

    Where the footer cannot be trusted, only the type is known.
    """
    if not column.has_bounds or column.data_type is None:
        return None
    return _of_chunks(column, column.data_type, footer.of_leaf(column.leaf))


def group_statistics(column: FileColumn, footer: FooterStatistics) -> Statistics | None:
    """What the footer says of a column in each row group; as `footer_statistics` otherwise."""
    data_type = column.data_type
    if not column.has_bounds or data_type is None:
        return None
    statistics = [_of_chunks(column, data_type, [chunk]) for chunk in footer.of_leaf(column.leaf)]
    return Statistics(column.name, data_type, statistics_array(column.name, data_type, statistics))


def _of_chunks(
    column: FileColumn, data_type: DataType, chunks: Sequence[ChunkStatistics]
) -> ColumnStatistics:
    chunks = [chunk for chunk in chunks if chunk.rows]
    nulls, nans = (_sum([getattr(chunk, name) for chunk in chunks]) for name in ("nulls", "nans"))
    has_nan = None if nans is None else nans > 0
    bounded = [chunk for chunk in chunks if not chunk.is_empty]
    if not bounded or any(chunk.minimum is None for chunk in bounded):
        return ColumnStatistics(data_type, nulls=nulls, has_nan=has_nan)
    lowest = min(bounded, key=lambda chunk: chunk.minimum)
    highest = max(bounded, key=lambda chunk: chunk.maximum)
    is_text = data_type.root in BYTE_STRING_TYPES
    try:
        statistics = ColumnStatistics(
            data_type,
            _scalar(lowest.minimum, column),
            _scalar(highest.maximum, column),
            nulls,
            has_nan,
            not is_text and all(chunk.minimum_exact for chunk in bounded),
            not is_text and all(chunk.maximum_exact for chunk in bounded),
        )
        statistics_array(column.name, data_type, [statistics])  # refuses what cannot be
    except (UnsupportedError, pa.ArrowException, ValueError, TypeError, OverflowError):
        return ColumnStatistics(data_type, nulls=nulls, has_nan=has_nan)
    return statistics


def _sum(counts: Sequence[int | None]) -> int | None:
    """The count over all row groups, if it is known of each."""
    stated = [count for count in counts if count is not None]
    return sum(stated) if len(stated) == len(counts) else None


def _scalar(bound: Any, column: FileColumn) -> Any:
    """A bound as `ColumnStatistics` takes it."""
    kind = stored_type(column.arrow_type)
    if types.is_unsigned_integer(kind) and not 0 <= bound < 1 << kind.bit_width:
        raise UnsupportedError(f"a bound of {bound} in a column of {kind}")
    if types.is_decimal(kind):
        return _decimal(bound, kind.scale)
    if types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.scalar(bound, width).cast(kind)
    return bound


def _decimal(unscaled: int, scale: int) -> Decimal:
    """Exact, whatever the precision of the decimal context is."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


_TAIL = 64 << 10  # what is read first: the footer as a rule, and the offset indexes before it
_END = 8  # the length of the footer, and the magic
_SMALLEST = 12


ResolvedIndex: TypeAlias = tuple[FileColumn, IndexSpec, DataType]
"""The column of a file, the index in that file's spelling, and the type of its values."""
Resolve: TypeAlias = Callable[[Sequence[FileColumn]], Callable[[IndexSpec], ResolvedIndex]]
"""How the columns of indexes are found in a file: `resolve_by_name`, or by Iceberg's field ids."""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """What a bundle keeps of a data file."""

    entry: FileEntry
    """The file, and the statistics of its columns."""
    payloads: Mapping[PayloadKind, bytes | None]
    """Indexes, and the pages of every column that can be read; None as in `SpooledBundle.add`."""
    types: Mapping[str, DataType]
    """The types of its columns, without those that have none here."""
    skipped: Mapping[PayloadKind, str]
    """What was not made, and why."""
    read: frozenset[str] = frozenset()
    """The columns of which all values were read."""

    def only_indexes(self) -> IndexedFile:
        """The indexes, and the statistics of the columns that were read for them.

        It is what to add where an older bundle has the rest. Statistics of other columns come from
        the footer, and older ones may say more.
        """
        statistics = {
            name: column for name, column in self.entry.statistics.items() if name in self.read
        }
        payloads = {kind: payload for kind, payload in self.payloads.items() if kind.type == INDEX}
        return replace(self, entry=replace(self.entry, statistics=statistics), payloads=payloads)

    def add_to(self, writer: SpooledBundle) -> int:
        """Add all of it to a bundle, and return the row of the file there."""
        row = writer.add_file(self.entry)
        for kind, payload in self.payloads.items():
            writer.add(row, kind, payload)
        return row


def index_file(
    source: Source,
    specs: Iterable[IndexSpec],
    *,
    path: str,
    size: int,
    version: str,
    rows: pa.Table | None = None,
    resolve: Resolve | None = None,
) -> IndexedFile:
    """Read a file, and make what is kept of it.

    Args:
        source: The file.
        specs: The indexes to build; see `alcid.options.parse_options`.
        path: What the bundle calls the file.
        size: Its size, as the listing says.
        version: Its version, as the listing says.
        rows: All that is in it, where whoever wrote it still has that: then nothing is decoded.
        resolve: How the columns of `specs` are found in it; by default by their names.

    Raises:
        FormatError: The file is damaged.
        FileGoneError: It is not of the size that the listing says.
        UnsupportedError: Its footer is encrypted.

    >>> import io
    >>> from alcid.formats.source import BytesSource
    >>> from alcid.options import parse_options
    >>> file = io.BytesIO()
    >>> pq.write_table(pa.table({"id": [3, 1, 2]}), file)
    >>> source, specs = (
    ...     BytesSource(file.getvalue()),
    ...     parse_options({"file-index.bsi.columns": "id"}),
    ... )
    >>> indexed = index_file(source, specs, path="a.parquet", size=source.size, version="1")
    >>> list(map(str, indexed.payloads)), indexed.entry.statistics["id"].maximum.as_py()
    (["bsi of 'id'", "pages of 'id'"], 3)
    """
    if size != source.size:
        problem = f"not as it was listed: found {source.size} bytes, expected {size}"
        raise FileGoneError(problem, file=source.name)
    cached = CachedSource(source)
    footer = _load_footer(cached)
    layout = read_layout(cached)  # first, as it says what is encrypted
    metadata = _metadata(footer, source.name)
    columns = file_columns(metadata, source.name, _encrypted(layout))
    work = _Work(cached, layout, columns, rows)
    work.build(specs, (resolve or resolve_by_name)(columns))
    statistics = FooterStatistics(parse_footer(cached, footer), source.name)
    for column in columns:
        if column.name not in work.statistics and work.is_single(column):
            column_statistics = footer_statistics(column, statistics)
            if column_statistics is not None:
                work.statistics[column.name] = column_statistics
    work.pack()
    entry = FileEntry(
        path,
        size,
        version,
        layout.rows,
        zlib.crc32(footer),
        work.statistics,
        schema_bytes(columns),
    )
    types = {column.name: column.data_type for column in columns if column.data_type is not None}
    return IndexedFile(entry, work.payloads, types, work.skipped, frozenset(work.read))


def resolve_by_name(columns: Sequence[FileColumn]) -> Callable[[IndexSpec], ResolvedIndex]:
    """A function that finds the columns of indexes among those of a file, by their names.

    It raises `ColumnError` where there is no such column, or more than one, and `UnsupportedError`
    where the index does not take it, or it gets none.
    """
    names = ColumnNames(column.name for column in columns)
    by_name: dict[str, FileColumn] = {}
    for column in columns:
        by_name.setdefault(column.name, column)

    def resolve(spec: IndexSpec) -> ResolvedIndex:
        name = names.find(spec.top_level)
        column = by_name[name]
        if column.problem or column.data_type is None:
            raise UnsupportedError(f"column {name}: {column.problem}")
        return column, *spec.resolve({name: column.data_type})

    return resolve


def footer_crc(source: Source) -> int:
    """CRC-32 of a file's footer: the metadata, its length and the magic, up to the last byte.

    Raises:
        FormatError: It has no footer.
    """
    return zlib.crc32(_load_footer(CachedSource(source)))


def _load_footer(cached: CachedSource) -> bytes:
    """The footer to the end of the file: one read, or a second one if it is long."""
    size = cached.size
    if size < _SMALLEST:
        raise FormatError("no Parquet file", file=cached.name, found=f"{size} bytes")
    tail = min(_TAIL, size)
    cached.load(size - tail, tail)
    end = cached.read(size - _END, _END)
    length = int.from_bytes(end[:4], "little") + _END
    if length > size - 4:
        raise FormatError(
            "footer longer than the file",
            file=cached.name,
            offset=size - _END,
            found=length - _END,
            expected=f"up to {size - _SMALLEST}",
        )
    cached.load(size - length, length)
    return cached.read(size - length, length)


def _encrypted(layout: FileLayout) -> set[int]:
    """The first leaves of the columns that cannot be read."""
    leaves = [len(column.field.leaves) for column in layout.columns]
    firsts = accumulate(leaves, initial=0)
    return {leaf for leaf, column in zip(firsts, layout.columns, strict=False) if not column.leaves}


def _metadata(footer: bytes, file: str) -> pq.FileMetaData:
    """What Arrow reads from a footer; that the file before it is missing does not matter."""
    try:
        return pq.read_metadata(pa.BufferReader(b"PAR1" + footer))
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = str(error).splitlines()[0]
        raise FormatError(f"damaged footer: {problem}", file=file) from None


class _Work:
    """The columns of a file, and what was made of them so far."""

    def __init__(
        self,
        source: Source,
        layout: FileLayout,
        columns: Sequence[FileColumn],
        rows: pa.Table | None,
    ) -> None:
        self._source, self._layout, self._columns, self._rows = source, layout, columns, rows
        self._counts = Counter(column.name for column in columns)
        self.payloads: dict[PayloadKind, bytes | None] = {}
        self.statistics: dict[str, ColumnStatistics] = {}
        self.skipped: dict[PayloadKind, str] = {}
        self.read: list[str] = []

    def is_single(self, column: FileColumn) -> bool:
        """Whether no other column has the same name."""
        return self._counts[column.name] == 1

    def build(
        self, specs: Iterable[IndexSpec], resolve: Callable[[IndexSpec], ResolvedIndex]
    ) -> None:
        """Build the indexes, column by column."""
        resolved: list[ResolvedIndex] = []
        for spec in specs:
            try:
                resolved.append(resolve(spec))
            except (ColumnError, UnsupportedError) as error:
                self.skipped[PayloadKind.index(spec.column, spec.index_type)] = str(error)
        resolved.sort(key=lambda index: (index[0].leaf, index[1].column, index[1].index_type))
        for column, group in groupby(resolved, key=lambda index: index[0]):
            self._index(column, [index[1:] for index in group])

    def _index(self, column: FileColumn, wanted: Sequence[tuple[IndexSpec, DataType]]) -> None:
        """Read a column, and build its indexes or those of keys of the map that it is."""
        try:
            values = self._values(column)
        except UnsupportedError as error:  # of a value
            for spec, _ in wanted:
                self.skipped[PayloadKind.index(spec.column, spec.index_type)] = str(error)
            return
        self.read.append(column.name)
        statistics = value_statistics(column, values)
        if statistics is not None:
            self.statistics[column.name] = statistics
        made = BuiltIndexes()
        made.build(values, wanted)
        self.payloads |= {PayloadKind.index(*name): payload for name, payload in made.built.items()}
        self.skipped |= {PayloadKind.index(*name): why for name, why in made.skipped.items()}

    def _values(self, column: FileColumn) -> pa.ChunkedArray:
        """All values of a column: those that are at hand, if they are what would be read."""
        if self._rows is not None:
            values = self._rows.column(self._columns.index(column))
            if values.type == column.arrow_type:
                return values
        return read_rows(self._source, None, [column.name], layout=self._layout).column(0)

    def pack(self) -> None:
        """Pack the pages of every column."""
        for column, described in zip(self._layout.columns, self._columns, strict=True):
            kind = PayloadKind.pages(described.name)
            try:
                if not self.is_single(described):
                    raise ColumnError(f"column {described.name}: fits more than one column")
                self.payloads[kind] = pack_pages(self._layout, column)
            except AlcidError as error:
                self.skipped[kind] = str(error)
