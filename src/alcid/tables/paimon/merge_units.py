"""Merging on read in units: which files are merged together, and how their keys are read.

A section (`plan_sections`) is the work of one unit, or of several where it is large: it is cut by
key, at the minimum keys of its files, so that each unit has about `UNIT_BYTES` of data files.

    level 0     [ a                          ]        units: keys < k, k <= keys
    level 5     [ b         ][ c             ]        the second has a and c
                             k

A unit reads the keys of its files in sorted streams, `STREAM_ROWS` rows of each file at a time, and
compares the rows below the least last key of all streams; these leave memory before more are read.
So it holds so many keys for each sorted run, whatever the size of the section, besides a bitmap of
deleted positions for each file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from alcid._arrays import BoolArray, Int64Array, plain
from alcid.datafiles.parquet import ParquetScan
from alcid.datafiles.parquet.columns import file_columns
from alcid.errors import UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.scan.deletes import DecidedRows
from alcid.storage import Storage
from alcid.tables.key_order import Column, join_columns, rank_rows
from alcid.tables.open_files import footer_bounds
from alcid.tables.paimon.data_files import DataScan, PlacedFile, open_data, read_present
from alcid.tables.paimon.key_ranges import UnsortedKeysError, key_ranges
from alcid.tables.paimon.merge_on_read import (
    KeyRows,
    is_raw,
    key_name,
    plan_sections,
    read_key_rows,
    superseded_rows,
)
from alcid.tables.paimon.metadata.manifest import BucketId
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import NO_STATS, unpack_rows

UNIT_BYTES: Final = 256 << 20
"""Bytes of data files that a unit merges, as far as the keys of their manifests let it be cut."""
STREAM_ROWS: Final = 1 << 19
"""Rows of a file whose keys are read together, or one row group if that is larger."""


@dataclass(frozen=True, slots=True, eq=False)
class MergeTable:
    """A table, as merging needs it; it pickles."""

    storage: Storage
    schema: TableSchema
    schemas: Mapping[int, TableSchema]
    """The schemas of files, by id."""
    options: TableOptions

    def unpack_keys(self, packed: Sequence[bytes]) -> list[pa.Array]:
        """The columns of keys, as manifests have them."""
        types = [self.schema.types[name] for name in self.schema.key_columns]
        return unpack_rows(packed, types, file="keys of a manifest")


@dataclass(frozen=True, slots=True, eq=False)
class MergeUnit:
    """Files that are merged together, and the keys that are compared."""

    files: Int64Array
    """Their numbers in the table, ascending, which is the order of the manifests."""
    low: bytes | None = None
    """The least key, packed; None: there is no lower bound."""
    high: bytes | None = None
    """The key above the greatest; None: there is no upper bound."""
    size: int = 0
    """Roughly the bytes of the key columns."""


def plan_units(
    table: MergeTable, files: Sequence[PlacedFile], *, compacted: bool, unit_bytes: int = UNIT_BYTES
) -> list[MergeUnit]:
    """The units of the files that must be merged.

    Args:
        table: The table.
        files: All files that a read sees.
        compacted: Level 0 is skipped, so that only buckets with rows that delete are merged.
        unit_bytes: Sections of more bytes are cut.

    Raises:
        FormatError: The minimum key of a file is above its maximum.
        UnsupportedError: The merge engine is not `deduplicate`, or a key has no order.
    """
    levels = np.array([file.file.level for file in files], np.int64)
    counts = (file.file.delete_rows for file in files)
    deletes = np.array([-1 if count is None else count for count in counts], np.int64)
    numbers: dict[BucketId, int] = {}
    buckets = np.array(
        [numbers.setdefault(file.entry.bucket_id, len(numbers)) for file in files], np.int64
    )
    chosen = np.arange(len(files))
    if compacted:
        chosen = np.flatnonzero(np.isin(buckets, buckets[deletes != 0]))
    if not len(chosen):
        return []
    if compacted and table.options.merge_engine != "deduplicate":
        name = files[int(chosen[0])].path
        raise UnsupportedError(
            f"{name}: has rows that delete, and merge-engine={table.options.merge_engine}, "
            "of which only compacted files without such rows are read"
        )
    minimum = table.unpack_keys([files[file].file.min_key for file in chosen.tolist()])
    maximum = table.unpack_keys([files[file].file.max_key for file in chosen.tolist()])
    sections = plan_sections(buckets[chosen], minimum, maximum)
    fraction = _key_fraction(table)
    units: list[MergeUnit] = []
    for section in sections:
        if is_raw(chosen[section], levels, deletes):
            continue
        sizes = np.array([files[file].file.size for file in chosen[section].tolist()], np.int64)
        if int(sizes.sum()) <= unit_bytes:
            size = int(sizes.sum() * fraction)
            units.append(MergeUnit(chosen[section], size=size))
            continue
        ends = [[column.take(pa.array(section)) for column in keys] for keys in (minimum, maximum)]
        for cut in _cut(sizes, ends, unit_bytes):
            low, high = (
                None if row is None else files[int(chosen[section[row]])].file.min_key
                for row in (cut.low, cut.high)
            )
            size = int(cut.size * fraction)
            units.append(MergeUnit(chosen[section[cut.rows]], low, high, size))
    return units


def _key_fraction(table: MergeTable) -> float:
    """Roughly the part of a file that its key columns are, with sequence numbers and kinds."""
    schema, options = table.schema, table.options
    keys = len(schema.key_columns)
    read = keys + 2 + len(options.sequence_field)
    return min(read / (len(schema.fields) + keys + 2), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Cut:
    """Files of a section that have keys of a range; bounds are the minimum keys of files."""

    rows: Int64Array
    low: int | None
    high: int | None
    size: int


def _cut(sizes: Int64Array, ends: Sequence[Sequence[pa.Array]], unit_bytes: int) -> Iterator[_Cut]:
    """Cut a section into ranges of keys, between which files of about `unit_bytes` lie.

    The bytes of a file are taken to be spread evenly over the minimum keys that it spans.
    """
    count = len(sizes)
    ranks = rank_rows(join_columns(ends), 2 * count)
    slots, first = np.unique(ranks[:count], return_index=True)  # where a range may begin
    begin = np.searchsorted(slots, ranks[:count])
    end = np.searchsorted(slots, ranks[count:], "right")
    density = np.zeros(len(slots) + 1)
    np.add.at(density, begin, sizes / (end - begin))
    np.add.at(density, end, -sizes / (end - begin))
    weights = np.cumsum(density)[:-1]
    unit_of_slot = ((np.cumsum(weights) - weights) // unit_bytes).astype(np.int64)
    starts = np.flatnonzero(np.diff(unit_of_slot, prepend=-1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(slots)], strict=True):
        yield _Cut(
            np.flatnonzero((begin < stop) & (end > start)),
            int(first[start]) if start else None,
            int(first[stop]) if stop < len(slots) else None,
            int(weights[start:stop].sum()),
        )


def without_statistics(placed: PlacedFile) -> PlacedFile:
    """A file without what only planning needs, which would be most of what is sent to tasks."""
    slim = replace(
        placed.entry.file,
        key_stats=NO_STATS,
        value_stats=NO_STATS,
        extra_files=(),
        embedded_index=None,
        stats_columns=None,
        unknown=(),
    )
    return replace(placed, entry=replace(placed.entry, file=slim, unknown=()))


def merge_unit(
    table: MergeTable,
    unit: MergeUnit,
    files: Mapping[int, PlacedFile],
    deleted: Mapping[int, DeletionVector],
) -> dict[int, DecidedRows]:
    """The rows of a unit that are not live, by the number of the file.

    Args:
        table: The table.
        unit: The files and keys.
        files: Its files, by number.
        deleted: Their deletion vectors: rows that are ignored, as if they were not there.

    Raises:
        FormatError: A file is damaged.
        UnsupportedError: A value cannot be converted to the type that the table has now.
    """
    key_range = _KeyRange.of(table, unit)
    scanned = [
        _ScannedFile(table, files[number], deleted.get(number), key_range)
        for number in unit.files.tolist()
    ]
    minimum = table.unpack_keys([file.placed.file.min_key for file in scanned])
    minimum_keys = [[column[row : row + 1] for column in minimum] for row in range(len(scanned))]
    try:
        for parts in key_ranges([file.parts() for file in scanned], minimum_keys):
            _compare(parts, scanned, table.options)
    except UnsortedKeysError:  # Paimon's writers sort; of other files all keys are compared at once
        for file in scanned:
            file.forget()
        whole = [[part for part, _ in file.parts()] for file in scanned]
        _compare(whole, scanned, table.options)
    return {
        number: file.decided() for number, file in zip(unit.files.tolist(), scanned, strict=True)
    }


def _compare(
    parts: Sequence[Sequence[_Rows]], files: Sequence[_ScannedFile], options: TableOptions
) -> None:
    """Compare rows with all others of their keys, and record those that are not live."""
    owners = [file for file, of_file in zip(files, parts, strict=True) for _ in of_file]
    every = [part for of_file in parts for part in of_file]
    vectors = superseded_rows(
        [part.key_rows(file) for part, file in zip(every, owners, strict=True)],
        descending=options.sequence_descending,
        ignore_delete=options.ignore_delete,
    )
    for file, part, vector in zip(owners, every, vectors, strict=True):
        file.record(part.positions, vector)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Keys of some rows of a file, with all that merging compares."""

    keys: Sequence[pa.Array]
    sequence_numbers: pa.Array
    kinds: pa.Array
    sequence: Sequence[pa.Array]
    positions: Int64Array
    name: str | None
    """The path of the file."""

    @classmethod
    def of(cls, rows: KeyRows, first: int, name: str) -> _Rows:
        """All rows of consecutive row groups, the first of which begin at a position."""
        positions = np.arange(first, first + len(rows))
        numbers, kinds = (plain(_array(values)) for values in (rows.sequence_numbers, rows.kinds))
        keys, sequence = (list(map(plain, columns)) for columns in (rows.keys, rows.sequence))
        return cls(keys, numbers, kinds, sequence, positions, name)

    @property
    def first(self) -> int:
        """The position of the first row."""
        return int(self.positions[0])

    def __len__(self) -> int:
        return len(self.positions)

    def slice(self, start: int, stop: int) -> _Rows:
        """Some of the rows, which are not copied."""
        return self._each(lambda array: array[start:stop], self.positions[start:stop])

    def filter(self, mask: BoolArray) -> _Rows:
        """The rows where a mask is true."""
        chosen = pa.array(mask)
        return self._each(lambda array: array.filter(chosen), self.positions[mask])

    def key_rows(self, file: _ScannedFile) -> KeyRows:
        """The rows for a comparison; those that were deleted before are ignored."""
        gone = None
        if file.deleted:
            gone = DeletionVector(np.flatnonzero(file.deleted.contains(self.positions)))
        return KeyRows(
            self.keys,
            self.sequence_numbers,
            self.kinds,
            file.placed.file.level,
            self.sequence,
            gone,
            self.name,
        )

    def _each(self, change: Callable[[pa.Array], pa.Array], positions: Int64Array) -> _Rows:
        return _Rows(
            [change(column) for column in self.keys],
            change(self.sequence_numbers),
            change(self.kinds),
            [change(column) for column in self.sequence],
            positions,
            self.name,
        )


def _array(values: npt.NDArray[np.int64] | Column) -> Column:
    return pa.array(values) if isinstance(values, np.ndarray) else values


@dataclass(frozen=True, slots=True, eq=False)
class _KeyRange:
    """The keys of a unit that is a part of a section."""

    low: Sequence[pa.Array] | None
    high: Sequence[pa.Array] | None

    @classmethod
    def of(cls, table: MergeTable, unit: MergeUnit) -> _KeyRange | None:
        """None for a whole section."""
        if unit.low is None and unit.high is None:
            return None
        low, high = (
            None if packed is None else table.unpack_keys([packed])
            for packed in (unit.low, unit.high)
        )
        return cls(low, high)

    def inside(self, keys: Sequence[pa.Array]) -> BoolArray:
        """Which of some keys are in the range."""
        count = len(keys[0])
        bounds = [bound for bound in (self.low, self.high) if bound is not None]
        ranks = rank_rows(join_columns([keys, *bounds]), count + len(bounds))
        within: BoolArray = np.ones(count, bool)
        if self.low is not None:
            within &= ranks[:count] >= ranks[count]
        if self.high is not None:
            within &= ranks[:count] < ranks[-1]
        return within


class _ScannedFile:
    """A file whose keys are read, and what was found out about its rows."""

    def __init__(
        self,
        table: MergeTable,
        placed: PlacedFile,
        deleted: DeletionVector | None,
        key_range: _KeyRange | None,
    ) -> None:
        """Prepare; the file is opened when its keys are needed."""
        self.placed, self.deleted = placed, deleted
        self._table, self._range = table, key_range
        self._gone, self._decided = BitMap(), BitMap()

    def forget(self) -> None:
        """Forget what was recorded."""
        self._gone, self._decided = BitMap(), BitMap()

    def record(self, positions: Int64Array, deleted: DeletionVector) -> None:
        """Note which of some rows are not live."""
        self._gone |= _bitmap(positions[deleted.to_numpy()])
        if self._range is not None:
            self._decided |= _bitmap(positions)

    def decided(self) -> DecidedRows:
        """What was recorded, when all rows were compared."""
        rows = None if self._range is None else self._decided
        return DecidedRows(DeletionVector(np.asarray(self._gone.to_array()).astype(np.int64)), rows)

    def parts(self) -> Iterator[tuple[_Rows, bool]]:
        """The keys that are in the range, `STREAM_ROWS` at a time, and whether no more follow."""
        scan = open_data(self._table.storage, self.placed, self._table.options)
        left = self._needed_groups(scan)
        while left:
            groups = [left.pop(0)]
            room = STREAM_ROWS - scan.group_rows[groups[0]]
            while left and left[0] == groups[-1] + 1 and scan.group_rows[left[0]] <= room:
                groups.append(left.pop(0))
                room -= scan.group_rows[groups[-1]]
            yield self._read(scan, groups), not left

    def _read(self, scan: DataScan, groups: Sequence[int]) -> _Rows:
        """The keys of consecutive row groups that are in the range."""
        table = self._table
        rows = read_key_rows(
            self.placed,
            None,
            schema=table.schema,
            schemas=table.schemas,
            options=table.options,
            read=lambda columns: read_present(scan, columns, table.storage, groups),
        )
        read = _Rows.of(rows, sum(scan.group_rows[: groups[0]]), self.placed.path)
        if self._range is None:
            return read
        inside = self._range.inside(read.keys)
        return read if inside.all() else read.filter(inside)

    def _needed_groups(self, scan: DataScan) -> list[int]:
        """The row groups that may have a key of the range, by bounds of the first key column."""
        groups = [group for group, rows in enumerate(scan.group_rows) if rows]
        if self._range is None or not isinstance(scan, ParquetScan):
            return groups
        schema = self._table.schema
        wanted = schema.field(schema.key_columns[0])
        own = self._table.schemas[self.placed.file.schema_id].by_id[wanted.id]
        if own.data_type != wanted.data_type:
            return groups
        name = key_name(own.name) if key_name(own.name) in scan.names else own.name
        described = {
            column.name: column
            for column in file_columns(scan.metadata, scan.source.name)
            if column.name == name
        }
        bounds = footer_bounds(scan, described).get(name)
        if bounds is None:
            return groups
        outside = np.zeros(len(scan.group_rows), bool)
        for bound, key, is_low in (
            (bounds.statistics.values.field("max"), self._range.low, True),
            (bounds.statistics.values.field("min"), self._range.high, False),
        ):
            if key is None:
                continue
            known = np.flatnonzero(plain(bound).is_valid().to_numpy(zero_copy_only=False))
            values = plain(bound).take(pa.array(known)).cast(key[0].type)
            ranks = rank_rows(join_columns([[values], [key[0]]]), len(known) + 1)
            beyond = ranks[:-1] < ranks[-1] if is_low else ranks[:-1] > ranks[-1]
            outside[known[beyond]] = True
        return [group for group in groups if not outside[group]]


def _bitmap(positions: Int64Array) -> BitMap:
    return BitMap(positions.astype(np.uint32))
