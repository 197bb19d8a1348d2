"""Advice on the indexes of a table: a few files are read, once.

Files of the sample are read column by column, here or on Spark, and every index that takes a
column is built of it. What comes back is what was built: the rest is planning on the sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.advice.asked import AskedQuery, GivenQuery, ask_queries, canonical_name, make_query
from alcid.advice.choosing import choose
from alcid.advice.column_sample import ColumnSample
from alcid.advice.facts import ColumnFacts, gather_facts
from alcid.advice.file_bounds import FileBounds
from alcid.advice.memory_indexes import MemoryIndexes
from alcid.advice.reasons import NOT_ASKED
from alcid.advice.report import Advice, ColumnAdvice
from alcid.advice.sample_plans import SamplePlans, possible_files
from alcid.advice.sampled_files import SampledFiles
from alcid.advice.sampling import choose_files, spread
from alcid.advice.skipping import Skipping
from alcid.advice.typical import typical_queries
from alcid.errors import LiteralError, OptionError, UnsupportedError, require
from alcid.plan import TableFiles
from alcid.tables.engine import Engine, Tell
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.progress import Progress, telling
from alcid.tables.sample_pages import SamplePages
from alcid.tables.sample_work import SampleWork
from alcid.types import DataType, indexes_for

__all__ = ["advise"]

Integers = npt.NDArray[np.int64]

_FOOTERS = 256  # that are looked at, at most: as many as a table holds
_VALUES = 8_000_000  # of the sample, whose indexes are held together: some hundred MB


def advise(
    files: TableFiles,
    engine: Engine,
    queries: Iterable[GivenQuery] = (),
    *,
    columns: Collection[str] | None = None,
    sample: int = 16,
    progress: Progress | bool | None = False,
) -> Advice:
    """Say which indexes pay; see `Table.advise` for the arguments and what is raised."""
    began = time.perf_counter()
    if require(sample, int, "sample") < 1:
        raise OptionError(f"sample: found {sample!r}, expected a number of files, 1 or more")
    if isinstance(files, IcebergFiles) and files.handed_reason:
        raise UnsupportedError(f"{files.location}: {files.handed_reason}: they get no index")
    asked = ask_queries(queries, files, engine)
    wanted = _wanted(files, asked, columns)
    bounds, pages = FileBounds(files, _spread_files(files)), SamplePages(files)
    every = np.flatnonzero(files.rows > 0)
    unindexed = MemoryIndexes(len(files.sizes), {}, {})
    whole = SampledFiles(files, every, unindexed, bounds, pages)
    possible = [possible_files(whole, query) for query in asked]
    chosen = choose_files(files.sizes, files.rows, possible, sample)
    work = _Advising(files, engine, asked, chosen, bounds, pages)
    # Typical queries are of one column each, so that few have to be in memory together.
    batches = [list(wanted)] if asked else _batches(list(wanted), int(files.rows[chosen].sum()))
    with telling(progress, "sampling", len(chosen) * len(batches)) as tell:
        judged = [work.judge(batch, tell) for batch in batches]
    judged.append(work.judge_unread(wanted))
    found = {one.column: one for some in judged for one in some.columns}
    return Advice(
        tuple(found[name] for name in sorted(found, key=_order(files.columns.columns))),
        tuple(map(str, asked)),
        len(files.sizes),
        int(files.rows.sum()),
        tuple(files.paths[file].as_py() for file in chosen.tolist()),
        judged[0].skip,
        judged[0].skip_before,
        time.perf_counter() - began,
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """Advice on some columns, and what all queries skip; None if there are none."""

    columns: tuple[ColumnAdvice, ...]
    skip: float | None = None
    skip_before: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Advising:
    """A sample of a table, to judge columns by."""

    files: TableFiles
    engine: Engine
    asked: Sequence[AskedQuery]
    chosen: Integers
    bounds: FileBounds
    pages: SamplePages

    def judge(self, names: Sequence[str], tell: Tell) -> _Judged:
        """Read columns of the sample, and say which of their indexes pay."""
        files, asked = self.files, self.asked
        samples: list[ColumnSample] = []
        if names and len(self.chosen):
            work = SampleWork(files.part(self.chosen), self.chosen, tuple(names))
            for part in self.engine.map(work, files.sizes[self.chosen], tell):
                samples += part
        self.bounds.take(samples)
        facts = []
        for name in names:
            own = [one for one in samples if one.column == name]
            facts.append(gather_facts(name, files.columns.type_of(name), own, files.rows))
        queries = asked or _typical(files, self.engine, facts, samples)
        distinct = {one.column: one.distinct for one in facts if one.distinct is not None}
        plans = SamplePlans(files, self.chosen, samples, self.bounds, self.pages)
        skipping = Skipping(plans, distinct)
        found = choose(
            facts,
            queries,
            skipping,
            rows=int(files.rows.sum()),
            data_bytes=int(files.sizes.sum()),
            is_typical=not asked,
        )
        if not asked:
            return _Judged(found.columns)
        before, after = (
            sum(skipping.skip(query, indexes) for query in asked) / len(asked)
            for indexes in ((), found.indexes)
        )
        return _Judged(found.columns, after, before)

    def judge_unread(self, read: Collection[str]) -> _Judged:
        """Say of all other columns of the table why they were not looked at."""
        table = self.files.columns
        found = []
        for name in table.columns:
            if name not in read:
                data_type = table.type_of(name)
                is_asked = not self.asked or any(name in query.columns for query in self.asked)
                reason = _problem(self.files, name, data_type) if is_asked else NOT_ASKED
                found.append(ColumnAdvice.against(name, data_type, reason))
        return _Judged(tuple(found))


def _batches(names: Sequence[str], rows: int) -> list[list[str]]:
    """Columns whose indexes of the sample are held in memory together."""
    count = max(_VALUES // max(rows, 1), 1)
    return [list(names[start : start + count]) for start in range(0, len(names), count)]


def _spread_files(files: TableFiles) -> Integers:
    """The files whose footers are looked at, where nothing else knows their bounds."""
    every = np.flatnonzero(files.rows > 0)
    found: Integers = every[spread(len(every), _FOOTERS)]
    return found


def _wanted(
    files: TableFiles, asked: Sequence[AskedQuery], columns: Collection[str] | None
) -> dict[str, DataType]:
    """The columns, and keys of maps, to look at: those that an index takes and a query names."""
    if isinstance(columns, str):
        raise OptionError("columns: found text, expected a list of names")
    table = files.columns
    named = set().union(*(query.columns for query in asked)) if asked else set(table.columns)
    if columns is not None:
        chosen = {canonical_name(name, table) for name in columns}
        named = named & chosen if asked else chosen
    found: dict[str, DataType] = {}
    for name in sorted(named, key=_order(table.columns)):
        data_type = table.type_of(name)
        inside = table.find(name) not in table.partitions
        if inside and data_type is not None and indexes_for(data_type):
            found[name] = data_type
    return found


def _order(columns: Mapping[str, object]) -> Callable[[str], tuple[int, str]]:
    places = {name: place for place, name in enumerate(columns)}
    return lambda name: (places.get(name, places.get(name.partition("[")[0], 0)), name)


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
    files: TableFiles,
    engine: Engine,
    facts: Sequence[ColumnFacts],
    samples: Sequence[ColumnSample],
) -> list[AskedQuery]:
    found = []
    for one in facts:
        values = [s.values for s in samples if s.column == one.column and s.values is not None]
        if one.data_type is None or not values:
            continue
        for where in typical_queries(one.column, one.data_type, values, one.distinct):
            try:
                found.append(make_query(where, files, engine))
            except LiteralError:  # of a value that has no literal
                continue
    return found
