"""Advice on the indexes of a table: a few files are read, once.

Files of the sample are read column by column, here or on Spark, and every index that takes a
column is built of it. What comes back is what was built: the rest is planning on the sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from alcid._arrays import Int64Array
from alcid.advise.choosing import NOT_COMPARED, choose
from alcid.advise.estimate import SamplePlans, Skipping, possible_files
from alcid.advise.file_bounds import FileBounds
from alcid.advise.queries import (
    QueryInput,
    ResolvedQuery,
    canonical_name,
    resolve_queries,
    resolve_query,
)
from alcid.advise.report import Advice, ColumnAdvice
from alcid.advise.sample import (
    ColumnFacts,
    ColumnSample,
    choose_files,
    gather_facts,
    sample_column,
    spread,
    typical_queries,
)
from alcid.advise.sampled_files import MemoryIndexes, SampledFiles
from alcid.datafiles.parquet import FileLayout, read_layout
from alcid.datafiles.parquet.decoding import int96_as
from alcid.errors import LiteralError, OptionError, UnsupportedError, require
from alcid.options import BitmapOptions, IndexSpec
from alcid.scan import DataFiles, TableFiles
from alcid.storage.threads import in_order
from alcid.tables.engine import Engine, Task
from alcid.tables.open_files import DescribedScan, OpenFiles
from alcid.tables.progress import Progress, ReportProgress, track_progress
from alcid.types import DataType, indexes_for


class SamplePages:
    """Where pages are; of files that no bundle knows yet, by the names that they have."""

    def __init__(self, files: TableFiles) -> None:
        """Look into files of a table when they are asked for."""
        self._files = files
        self._names: dict[int, Mapping[str, str]] = {}

    def has(self, file: int) -> bool:
        """Whether rows of a file can be read by its pages."""
        return self._files.has_pages(file) or bool(self._named(file))

    def layout(self, file: int, columns: Sequence[str]) -> FileLayout:
        """Where the pages of some columns are."""
        files = self._files
        if files.has_pages(file):
            (layout,) = files.layouts([file], [columns])
            return layout
        names = self._named(file)
        layout = read_layout(
            files.source(file), [names[name] for name in columns], read_ranges=files.read_ranges
        )
        renamed = (
            replace(column, field=replace(column.field, name=name))
            for name in columns
            for column in (layout.column(names[name]),)
        )
        return FileLayout(layout.starts, tuple(renamed), layout.file)

    def _named(self, file: int) -> Mapping[str, str]:
        """The columns of the table as an Iceberg file calls them, if it has all as they are."""
        if file not in self._names:
            (scan,) = self._files.open([file])
            table = self._files.columns
            inside = [name for name in table.columns if name not in table.partitions]
            described = scan.described(inside) if isinstance(scan, DescribedScan) else {}
            names = {name: column.name for name, column in described.items()}
            self._names[file] = names if len(names) == len(inside) else {}
        return self._names[file]


@dataclass(frozen=True, slots=True, eq=False)
class FilesToSample:
    """Files of the sample."""

    files: DataFiles
    positions: Int64Array
    """Of each of these files in the table."""

    def part(self, positions: Int64Array) -> FilesToSample:
        """Some of the files."""
        return FilesToSample(self.files.part(positions), self.positions[positions])


@dataclass(frozen=True, slots=True, eq=False)
class SampleWork:
    """Samples the columns of files, for `Engine.map`."""

    columns: tuple[str, ...]

    def __call__(self, task: Task[FilesToSample]) -> list[ColumnSample]:
        """Read the files of a task."""
        samples: list[ColumnSample] = []
        rows = task.items.files.rows
        sample = partial(self._sample, task.items)
        with closing(in_order(sample, range(len(rows)), task.threads)) as results:
            for file, of_file in enumerate(results):
                samples += of_file
                task.report(1, int(rows[file]))
        return samples

    def _sample(self, items: FilesToSample, file: int) -> list[ColumnSample]:
        """Read a file column by column, so that one is in memory at a time."""
        files, samples = items.files, []
        (scan,) = files.open([file])
        for column in self.columns:
            group = next(group for group in files.columns.groups(column) if group.files[file])
            if group.name is None or group.data_type is None or group.problem:
                continue
            spec = IndexSpec(group.name, "bitmap", BitmapOptions())
            own = files.columns.file_name(file, files.columns.find(column))
            with int96_as(files.int96_unit):
                values = scan.read(None, [own or ""], read_ranges=files.read_ranges).column(0)
            samples.append(
                sample_column(
                    values,
                    group.data_type,
                    file=int(items.positions[file]),
                    column=column,
                    own_name=group.name,
                    map_key=None if group.name == own else spec.map_key,
                )
            )
        return samples


_FOOTERS = 256  # that are looked at, at most: as many as a table holds
_VALUES = 8_000_000  # of the sample, whose indexes are in memory at a time: some hundred MB


def advise(
    files: TableFiles,
    engine: Engine,
    queries: Iterable[QueryInput] = (),
    *,
    columns: Collection[str] | None = None,
    sample: int = 16,
    progress: Progress | bool | None = False,
) -> Advice:
    """Say which indexes pay; see `Table.advise` for the arguments and what is raised."""
    began = time.perf_counter()
    if require(sample, int, "sample") < 1:
        raise OptionError(f"sample: found {sample!r}, expected a number of files, 1 or more")
    if isinstance(files, OpenFiles) and files.delegated_reason:
        raise UnsupportedError(f"{files.location}: {files.delegated_reason}: they get no index")
    resolved = resolve_queries(queries, files, engine)
    wanted = _wanted(files, resolved, columns)
    bounds, pages = FileBounds(files, _spread_files(files)), SamplePages(files)
    filled = np.flatnonzero(files.rows > 0)
    unindexed = MemoryIndexes(len(files.sizes), {}, {})
    whole = SampledFiles(files, filled, unindexed, bounds, pages)
    possible = [possible_files(whole, query) for query in resolved]
    chosen = choose_files(files.sizes, files.rows, possible, sample)
    work = _SampledTable(files, engine, resolved, chosen, bounds, pages)
    # Typical queries are of one column each, so that few have to be in memory together.
    batches = [list(wanted)] if resolved else _batches(list(wanted), int(files.rows[chosen].sum()))
    with track_progress(progress, "sampling", len(chosen) * len(batches)) as report:
        parts = [work.evaluate(batch, report) for batch in batches]
    parts.append(work.explain_unread(wanted))
    advice = {column.column: column for part in parts for column in part.columns}
    return Advice(
        tuple(advice[name] for name in sorted(advice, key=_order(files.columns.columns))),
        tuple(map(str, resolved)),
        len(files.sizes),
        int(files.rows.sum()),
        tuple(files.paths[file].as_py() for file in chosen.tolist()),
        parts[0].skip,
        parts[0].skip_before,
        time.perf_counter() - began,
    )


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """Advice on some columns, and what all queries skip; None if there are none."""

    columns: tuple[ColumnAdvice, ...]
    skip: float | None = None
    skip_before: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _SampledTable:
    """A sample of a table, to evaluate indexes of its columns on."""

    files: TableFiles
    engine: Engine
    queries: Sequence[ResolvedQuery]
    chosen: Int64Array
    bounds: FileBounds
    pages: SamplePages

    def evaluate(self, names: Sequence[str], report: ReportProgress) -> _Evaluated:
        """Read columns of the sample, and say which of their indexes pay."""
        files, requested = self.files, self.queries
        samples: list[ColumnSample] = []
        if names and len(self.chosen):
            items = FilesToSample(files.part(self.chosen), self.chosen)
            sizes = files.sizes[self.chosen]
            for part in self.engine.map(SampleWork(tuple(names)), items, sizes, report):
                samples += part
        self.bounds.take(samples)
        facts = []
        for name in names:
            own = [sample for sample in samples if sample.column == name]
            facts.append(gather_facts(name, files.columns.type_of(name), own, files.rows))
        queries = requested or _typical(files, self.engine, facts, samples)
        distinct = {fact.column: fact.distinct for fact in facts if fact.distinct is not None}
        plans = SamplePlans(files, self.chosen, samples, self.bounds, self.pages)
        skipping = Skipping(plans, distinct)
        choice = choose(
            facts,
            queries,
            skipping,
            rows=int(files.rows.sum()),
            data_bytes=int(files.sizes.sum()),
            is_typical=not requested,
        )
        if not requested:
            return _Evaluated(choice.columns)
        before, after = (
            sum(skipping.skip(query, indexes) for query in requested) / len(requested)
            for indexes in ((), choice.indexes)
        )
        return _Evaluated(choice.columns, after, before)

    def explain_unread(self, read: Collection[str]) -> _Evaluated:
        """Say of all other columns of the table why they were not looked at."""
        table = self.files.columns
        advice = []
        for name in table.columns:
            if name not in read:
                data_type = table.type_of(name)
                is_compared = not self.queries or any(
                    name in query.columns for query in self.queries
                )
                reason = _problem(self.files, name, data_type) if is_compared else NOT_COMPARED
                advice.append(ColumnAdvice.against(name, data_type, reason))
        return _Evaluated(tuple(advice))


def _batches(names: Sequence[str], rows: int) -> list[list[str]]:
    """Columns whose indexes of the sample are in memory at the same time."""
    count = max(_VALUES // max(rows, 1), 1)
    return [list(names[start : start + count]) for start in range(0, len(names), count)]


def _spread_files(files: TableFiles) -> Int64Array:
    """The files whose footers are looked at, where nothing else knows their bounds."""
    filled = np.flatnonzero(files.rows > 0)
    spread_out: Int64Array = filled[spread(len(filled), _FOOTERS)]
    return spread_out


def _wanted(
    files: TableFiles, queries: Sequence[ResolvedQuery], columns: Collection[str] | None
) -> dict[str, DataType]:
    """The columns, and keys of maps, to look at: those that an index takes and a query names."""
    if isinstance(columns, str):
        raise OptionError("columns: found text, expected a list of names")
    table = files.columns
    named = set().union(*(query.columns for query in queries)) if queries else set(table.columns)
    if columns is not None:
        chosen = {canonical_name(name, table) for name in columns}
        named = named & chosen if queries else chosen
    wanted: dict[str, DataType] = {}
    for name in sorted(named, key=_order(table.columns)):
        data_type = table.type_of(name)
        inside = table.find(name) not in table.partitions
        if inside and data_type is not None and indexes_for(data_type):
            wanted[name] = data_type
    return wanted


def _order(columns: Mapping[str, object]) -> Callable[[str], tuple[int, str]]:
    positions = {name: position for position, name in enumerate(columns)}
    return lambda name: (positions.get(name, positions.get(name.partition("[")[0], 0)), name)


def _problem(files: TableFiles, name: str, data_type: DataType | None) -> str:
    """Why a column is not looked at."""
    if name in files.columns.partitions:
        return "a partition column: paths and manifests have its values"
    if data_type is None:
        return files.columns.columns[name].problem or "no index takes its type"
    if data_type.root == "MAP":
        return f"no index takes a map; one of its keys can have one: {name}[key]"
    if not indexes_for(data_type):
        return f"no index takes {data_type}"
    return "not among the columns that advice is asked for"


def _typical(
    files: TableFiles, engine: Engine, facts: Sequence[ColumnFacts], samples: Sequence[ColumnSample]
) -> list[ResolvedQuery]:
    queries = []
    for column in facts:
        values = [s.values for s in samples if s.column == column.column and s.values is not None]
        if column.data_type is None or not values:
            continue
        for where in typical_queries(column.column, column.data_type, values, column.distinct):
            try:
                queries.append(resolve_query(where, files, engine))
            except LiteralError:  # of a value that has no literal
                continue
    return queries
