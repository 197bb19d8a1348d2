"""The number of distinct values of columns, by theta sketches.

A sketch is made of each column of each file, and sketches are united. The result depends neither on
who read which files nor on the order in which sketches are united. So where files were only added
since the last time, the table's sketches are united with those of the new files, and no other file
is read.

The sketches of a folder are kept in a file beside its bundles:

    _alcid/statistics-20250801T093000.123456Z-5f1e0c7ab2d4.puffin

It is a Puffin file with a theta sketch for each column; properties of a blob are `column`, `type`,
`ndv` and `nulls`. Those of the file identify the state of the table:

    alcid.files     how many data files
    alcid.rows      their rows
    alcid.listing   SHA-256 of path, size and version of each, in the order of paths, each followed
                    by a zero byte; of a Paimon table the version says where its deleted rows stand
    alcid.hashes    the first six bytes of the SHA-256 of each alone, in Base64

The last tells which files were added since; the SHA-256 of the others, that they are unchanged.
"""

from __future__ import annotations

import hashlib
import io
import logging
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array, plain
from alcid.datafiles.parquet.decoding import int96_as
from alcid.errors import FileGoneError, FormatError, LimitError, OptionError, UnsupportedError
from alcid.expressions import Constant
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.puffin import THETA_SKETCH, PuffinReader, create
from alcid.formats.puffin.writer import DISTINCT_VALUES, created_by
from alcid.formats.theta import ThetaSketch
from alcid.scan import Column, DataFiles, ReadPlan, TableFiles
from alcid.scan.candidates import Candidates
from alcid.scan.deletes import PendingDeletes
from alcid.storage import Listing
from alcid.storage.threads import in_order
from alcid.tables.bundle_folder import STATISTICS_PREFIX, BundleFolder, new_name, written_at
from alcid.tables.engine import Engine, Task
from alcid.tables.progress import Progress, track_progress
from alcid.types import DataType


@dataclass(frozen=True, slots=True)
class ColumnCount:
    """What was counted of a column."""

    column: str
    type: str
    sketch: ThetaSketch
    nulls: int
    field: int | None = None
    """The id of the column, where there are such."""


@dataclass(frozen=True, slots=True, eq=False)
class PreviousCounts:
    """What was counted of some files of a table, which are as they were."""

    is_new: BoolArray
    """For each file of the table, whether it has come since."""
    counts: Mapping[str, ColumnCount]
    """By column."""

    def has(self, columns: Mapping[str, DataType]) -> bool:
        """Whether all of some columns were counted, as what they are now, and files have come."""
        counts = self.counts
        return bool(self.is_new.any()) and all(
            name in counts and counts[name].type == str(columns[name]) for name in columns
        )


_FILES, _ROWS, _DIGEST = "alcid.files", "alcid.rows", "alcid.listing"
_HASHES, _HASH = "alcid.hashes", 6
_COLUMN, _TYPE, _NULLS = "column", "type", "nulls"
_DAMAGE = FileGoneError, FormatError, LimitError, UnsupportedError, KeyError, ValueError
_SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("type", pa.string()),
        ("ndv", pa.int64()),
        ("rows", pa.int64()),
        ("nulls", pa.int64()),
    ]
)


def counts_table(rows: int, counts: Iterable[ColumnCount]) -> pa.Table:
    """What was counted, as a user sees it."""
    return _table(
        [(count.column, count.type, count.sketch.ndv, rows, count.nulls) for count in counts]
    )


def write_stats(
    folder: BundleFolder,
    listing: Listing,
    rows: int,
    counts: Iterable[ColumnCount],
    *,
    snapshot_id: int = -1,
) -> None:
    """Keep what was counted of the files of a listing, which are those of a snapshot, if any."""
    properties = {
        "created-by": created_by(),
        _FILES: str(len(listing)),
        _ROWS: str(rows),
        _DIGEST: _digest(listing),
        _HASHES: b64encode(b"".join(_hashes(listing))).decode(),
    }
    data = io.BytesIO()
    with create(data, properties=properties) as writer:
        for count in counts:
            of_blob = {_COLUMN: count.column, DISTINCT_VALUES: str(count.sketch.ndv)}
            of_blob |= {_TYPE: count.type, _NULLS: str(count.nulls)}
            writer.add(
                THETA_SKETCH,
                count.sketch.to_bytes(),
                fields=() if count.field is None else (count.field,),
                snapshot_id=snapshot_id,
                properties=of_blob,
            )
    folder.write(STATISTICS_PREFIX + new_name(), data.getvalue())


def read_stats(folder: BundleFolder, listing: Listing) -> pa.Table | None:
    """What was counted last, if it is of the files that there are now; else None."""
    try:
        reader = _newest(folder)
        if reader is None or reader.properties.get(_DIGEST) != _digest(listing):
            return None
        rows = int(reader.properties[_ROWS])
        stored = [blob.properties for blob in reader.blobs if blob.type == THETA_SKETCH]
        return _table(
            [
                (blob[_COLUMN], blob[_TYPE], int(blob[DISTINCT_VALUES]), rows, int(blob[_NULLS]))
                for blob in stored
            ]
        )
    except _DAMAGE:  # as if it were not there
        return None


def previous_counts(folder: BundleFolder, listing: Listing) -> PreviousCounts | None:
    """What was counted last, if all the files that it is of are there as they were; else None."""
    if listing.versions.null_count:  # a file may have changed unnoticed
        return None
    try:
        reader = _newest(folder)
        if reader is None:
            return None
        hashes = b64decode(reader.properties[_HASHES])
        before = {hashes[at : at + _HASH] for at in range(0, len(hashes), _HASH)}
        is_new = np.array([file_hash not in before for file_hash in _hashes(listing)], bool)
        if _digest(listing.part(np.flatnonzero(~is_new))) != reader.properties[_DIGEST]:
            return None
        counts = [
            ColumnCount(
                blob.properties[_COLUMN],
                blob.properties[_TYPE],
                ThetaSketch.from_bytes(reader.read(blob)),
                int(blob.properties[_NULLS]),
                blob.fields[0] if blob.fields else None,
            )
            for blob in reader.blobs
            if blob.type == THETA_SKETCH
        ]
    except _DAMAGE:
        return None
    return PreviousCounts(is_new, {count.column: count for count in counts})


def _newest(folder: BundleFolder) -> PuffinReader | None:
    """The newest file, if there is any."""
    listing = folder.storage.list(folder.under, suffix=".puffin")
    sizes = dict(zip(listing.paths.to_pylist(), listing.sizes.tolist(), strict=True))
    names = sorted(
        name
        for name in (path.rpartition("/")[2] for path in sizes)
        if name.startswith(STATISTICS_PREFIX) and folder.path(name) in sizes
        if written_at(name.removeprefix(STATISTICS_PREFIX)) is not None
    )
    if not names:
        return None
    path = folder.path(names[-1])
    return PuffinReader(folder.storage.source(path, sizes[path]))


def _digest(listing: Listing) -> str:
    """What is the same for the same files."""
    digest = hashlib.sha256()
    for file in _described(listing):
        digest.update(file)
    return digest.hexdigest()


def _hashes(listing: Listing) -> list[bytes]:
    """What tells the files apart, but for an unlikely chance."""
    return [hashlib.sha256(file).digest()[:_HASH] for file in _described(listing)]


def _described(listing: Listing) -> Iterator[bytes]:
    """Path, size and version of each file."""
    columns = listing.paths.to_pylist(), listing.sizes.tolist(), listing.versions.to_pylist()
    for path, size, version in zip(*columns, strict=True):
        yield f"{path}\0{size}\0{version}\0".encode()


def _table(rows: Sequence[tuple[str, str, int, int, int]]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(_SCHEMA.names, row, strict=True)) for row in rows], schema=_SCHEMA
    )


_log = logging.getLogger("alcid")


@dataclass(slots=True)
class _Counted:
    """What was counted of a column."""

    sketch: ThetaSketch = field(default_factory=ThetaSketch)
    nulls: int = 0
    problem: str = ""
    """Why it cannot be counted; empty if it can."""

    def add(self, other: _Counted) -> None:
        """Take what was counted elsewhere."""
        self.sketch = self.sketch.union(other.sketch)
        self.nulls += other.nulls
        self.problem = self.problem or other.problem


_Counts = dict[str, _Counted]


class ListedFiles(TableFiles, Protocol):
    """Files that were listed, as those of a folder are."""

    listing: Listing


def compute_stats(
    files: ListedFiles,
    folder: BundleFolder,
    engine: Engine,
    columns: Collection[str] | None = None,
    *,
    progress: Progress | bool | None = False,
) -> pa.Table:
    """Count the distinct values of columns, and keep the sketches beside the indexes.

    Up to 4096 values a count is exact; beyond, it is within some percent. Nulls are not counted,
    nor are empty strings and binaries; 0.0 and -0.0 are two values. By default all columns are
    counted but nested and collated ones, which cannot be. If files were only added since the last
    time, and the columns are the same, only those are read; asked for the same files again, it
    counts all anew.

    Returns name, type, distinct values, rows and nulls of each column.

    Raises:
        UnsupportedError: A column of those given cannot be counted; or rows of the table are
            deleted, as what is kept is of its files, not of what someone has deleted from them.
        FileGoneError: A file was changed or removed meanwhile.
    """
    if files.deletions:
        raise UnsupportedError("statistics of a table with deletions: they are of its files")
    previous = previous_counts(folder, files.listing)
    rows, counts = count_columns(files, engine, columns, previous=previous, progress=progress)
    write_stats(folder, files.listing, rows, counts)
    return counts_table(rows, counts)


def count_columns(
    files: TableFiles,
    engine: Engine,
    columns: Collection[str] | None = None,
    *,
    previous: PreviousCounts | None = None,
    progress: Progress | bool | None = False,
) -> tuple[int, list[ColumnCount]]:
    """How many rows there are, and for each column what was counted; without deleted rows.

    What was counted previously is used if it has all of the columns, and files are new. Other
    arguments, and errors, are those of `compute_stats`.
    """
    if isinstance(columns, str):
        raise OptionError("columns: found text, expected a list of names")
    chosen = countable(files, columns)
    counts = {name: _Counted() for name in chosen}
    partitions = files.columns.partitions
    inside = {name: kind for name, kind in chosen.items() if name not in partitions}
    read = np.arange(len(files.sizes))
    pending = None if engine.delete_bytes is None else files.pending_deletes(read)
    if pending is not None and int(pending.sizes.sum()) > (engine.delete_bytes or 0):
        rows = _count_live_rows(files, engine, pending, inside, counts, progress)
    else:
        rows = _count_files(files, engine, previous, inside, counts, progress)
    for name in chosen.keys() - inside.keys():
        counts[name] = _count_partition(files.partitions.column(name), rows)
    for name, counted in list(counts.items()):
        if counted.problem and columns is not None:
            raise UnsupportedError(f"column {name}: {counted.problem}")
        if counted.problem:
            del counts[name]
    return int(rows.sum()), [
        ColumnCount(name, str(chosen[name]), counted.sketch, counted.nulls)
        for name, counted in counts.items()
    ]


def _count_files(
    files: TableFiles,
    engine: Engine,
    previous: PreviousCounts | None,
    inside: Mapping[str, DataType],
    counts: _Counts,
    progress: Progress | bool | None,
) -> Int64Array:
    """Count the values of columns file by file; the live rows of each file."""
    read = np.arange(len(files.sizes))
    files.load_deletions(read)
    deletions = dict(files.deletions)
    rows = files.rows.copy()
    for file, deleted in deletions.items():
        rows[file] -= deleted.cardinality
    if previous is not None and previous.has(inside):
        read = np.flatnonzero(previous.is_new)
        for name in inside:
            counts[name] = _Counted(previous.counts[name].sketch, previous.counts[name].nulls)
    _log.info("statistics: %d of %d files are read", len(read) if inside else 0, len(rows))
    if inside and len(read):
        vectors = tuple(map(deletions.get, read.tolist()))
        with track_progress(progress, "counting", len(read)) as report:
            for part in engine.map(
                StatisticsWork(tuple(inside)),
                CountedFiles(files.part(read), vectors),
                files.sizes[read],
                report,
            ):
                for name, counted in part.items():
                    counts[name].add(counted)
    return rows


def _count_live_rows(
    files: TableFiles,
    engine: Engine,
    pending: PendingDeletes,
    inside: Mapping[str, DataType],
    counts: _Counts,
    progress: Progress | bool | None,
) -> Int64Array:
    """The same, by tasks that find deleted rows first."""
    every = Candidates.whole(np.flatnonzero(files.rows))
    plan = ReadPlan(files, Constant(True), (), [*inside], every, True, files.deletions, pending)
    rows = np.zeros(len(files.sizes), np.int64)
    with track_progress(progress if len(plan) else False, "counting", len(plan)) as report:
        parts = engine.map(count_live, plan, plan.sizes, report) if len(plan) else []
    for of_files, of_columns in parts:
        for file, count in of_files.items():
            rows[file] += count
        for name, counted in of_columns.items():
            counts[name].add(counted)
    return rows


def count_live(task: Task[ReadPlan]) -> tuple[dict[int, int], _Counts]:
    """The live rows of each file, and the values of the columns in them; for `Engine.map`."""
    plan = task.items
    rows: dict[int, int] = {}
    counts = {name: _Counted() for name in plan.columns}
    for items, parts in plan.read_items():
        for part in parts:
            for file, count in zip(*np.unique(part.rows.files, return_counts=True), strict=True):
                number = int(file if plan.numbers is None else plan.numbers[file])
                rows[number] = rows.get(number, 0) + int(count)
            for name in plan.columns:
                counts[name].add(_count_values(part.table.column(name)))
        task.report(items, 0)
    return rows, counts


def countable(files: TableFiles, columns: Collection[str] | None) -> dict[str, DataType]:
    """The columns to count, in the order of the table, and their types."""
    table = files.columns
    wanted = set(table.columns if columns is None else map(table.find_whole, columns))
    chosen = {}
    for name, column in table.columns.items():
        if name in wanted:
            problem = _problem(files, column)
            if not problem and column.data_type is not None:
                chosen[name] = column.data_type
            elif columns is not None:
                raise UnsupportedError(f"column {name}: {problem}")
    return chosen


def _problem(files: TableFiles, column: Column) -> str:
    """Why a column cannot be counted, or an empty text."""
    if column.data_type is None:
        return column.problem or f"a type that cannot be counted: {column.arrow_type}"
    if column.data_type.children:
        return f"distinct values of {column.data_type} cannot be counted"
    if column.name in files.columns.partitions:
        return ""
    groups = zip(files.columns.groups(column.name), files.columns.schemas, strict=True)
    own = (schema[group.name].problem for group, schema in groups if group.name is not None)
    return next(filter(None, own), "")


@dataclass(frozen=True, slots=True, eq=False)
class CountedFiles:
    """Files whose values are counted, and the rows of each that do not count."""

    files: DataFiles
    deletions: tuple[DeletionVector | None, ...]

    def part(self, positions: Int64Array) -> CountedFiles:
        """Some of the files."""
        deletions = tuple(self.deletions[position] for position in positions.tolist())
        return CountedFiles(self.files.part(positions), deletions)

    def live_rows(self, file: int) -> BoolArray | None:
        """Which rows count; None: all."""
        deleted = self.deletions[file]
        return None if not deleted else ~deleted.contains(np.arange(self.files.rows[file]))


@dataclass(frozen=True, slots=True, eq=False)
class StatisticsWork:
    """Counts the distinct values of columns, for `Engine.map`."""

    columns: tuple[str, ...]

    def __call__(self, task: Task[CountedFiles]) -> _Counts:
        """Count the values of the files of a task."""
        total = {name: _Counted() for name in self.columns}
        rows = task.items.files.rows
        count = partial(self._count, task.items)
        with closing(in_order(count, range(len(rows)), task.threads)) as results:
            for file, counts in enumerate(results):
                for name, counted in counts.items():
                    total[name].add(counted)
                task.report(1, int(rows[file]))
        return total

    def _count(self, items: CountedFiles, file: int) -> _Counts:
        """Count the values of a file, column by column, so that one is in memory at a time."""
        files, counts = items.files, {}
        (scan,) = files.open([file])
        live = items.live_rows(file)
        for name in self.columns:
            own = files.columns.file_name(file, name)
            if own is None:
                rows = int(files.rows[file]) if live is None else int(live.sum())
                counts[name] = _Counted(nulls=rows)
                continue
            with int96_as(files.int96_unit):
                values = scan.read(None, [own], read_ranges=files.read_ranges).column(0)
            if live is not None:
                values = values.filter(pa.array(live))
            try:
                counts[name] = _count_values(values.cast(files.columns.columns[name].arrow_type))
            except (pa.ArrowException, UnsupportedError) as error:
                problem = f"{files.paths[file].as_py()}: {str(error).splitlines()[0]}"
                counts[name] = _Counted(problem=problem)
        return counts


def _count_values(values: pa.ChunkedArray) -> _Counted:
    return _Counted(ThetaSketch.of(values), plain(values).null_count)


def _count_partition(values: pa.ChunkedArray, rows: Int64Array) -> _Counted:
    """What the paths say, of files with rows."""
    values = values.filter(pa.array(rows > 0))
    nulls = int(rows[rows > 0][pc.is_null(values).to_numpy()].sum())
    return _Counted(ThetaSketch.of(values.unique()), nulls)
