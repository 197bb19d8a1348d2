"""Sample a table: choose files, build the indexes of their columns, and conclude for all files.

A few whole files are read, spread over the listing. What they say of distinct values, nulls and the
sizes of indexes is extrapolated to the table.

Where there are no queries, typical ones are made of the sample: three values of its rows are looked
up, so that frequent values come up more often, and where values have an order a range of about one
row of a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Float64Array, Int64Array, plain
from alcid.errors import LimitError, UnsupportedError
from alcid.expressions import Predicate, col
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.keys import map_key_column, read_column
from alcid.formats.theta import ThetaSketch
from alcid.index.bundle import ColumnStatistics
from alcid.index.bundle.statistics import statistics_array
from alcid.options import default_options
from alcid.types import FLOAT_TYPES, INDEX_TYPES, DataType, indexes_for

_UNEQUAL = 1.25  # files that differ by less say nothing of how bytes grow
_STEEPEST = 1.5


def all_bytes(rows: Int64Array, chosen: Int64Array, sizes: Int64Array) -> int:
    """The bytes of an index of all files, by those of the chosen files.

    Every file has an index of its own. Bytes go with a power of the rows: the dictionary of a
    bitmap grows more slowly than its rows where values come again, and a bit slice as they do.

    >>> all_bytes(np.array([100, 200, 400]), np.array([0, 2]), np.array([50, 100]))
    220
    """
    own = rows[chosen].astype(np.float64)
    power = 1.0
    if len(own) > 1 and own.min() > 0 and own.max() >= _UNEQUAL * own.min():
        power = float(np.polyfit(np.log(own), np.log(np.maximum(sizes, 1)), 1)[0])
        power = min(max(power, 0.0), _STEEPEST)
    others = np.ones(len(rows), bool)
    others[chosen] = False
    others &= rows > 0
    scale = float(sizes.sum()) / max(float((own**power).sum()), 1.0)
    return int(sizes.sum() + scale * (rows[others].astype(np.float64) ** power).sum())


def all_distinct(each: Float64Array, together: float, share: float) -> float:
    """How many distinct values all files have.

    `each` has those of each file of the sample, `together` is the number in all of these, and
    `share` the part of the table's rows that they have.

    >>> all_distinct(np.array([10.0, 10.0]), 20.0, 0.25)  # no value is in two files
    80.0
    >>> all_distinct(np.array([10.0, 10.0]), 10.0, 0.25)
    10.0
    """
    if len(each) < 2 or not together or not each.mean() or not share:
        return together if share >= 1 or not share else together / share
    power = np.log(max(together / each.mean(), 1.0)) / np.log(len(each))
    return float(together * (1.0 / share) ** min(power, 1.0))


_LEAST = 2
_MOST_BYTES = 256 << 20
_MOST_ROWS = 2_000_000
_MOST_MORE = 8  # files for queries that would find nothing in the sample


def spread(count: int, wanted: int) -> Int64Array:
    """Positions of a sample of `count` items, one from each stretch; always the same.

    >>> spread(10, 3).tolist()
    [1, 5, 8]
    """
    wanted = min(count, wanted)
    positions: Int64Array = ((np.arange(wanted) + 0.5) * count / max(wanted, 1)).astype(np.int64)
    return positions


def choose_files(
    sizes: Int64Array, rows: Int64Array, possible: Sequence[BoolArray], most: int
) -> Int64Array:
    """The files to read, ascending: at most `most`, and some more for queries.

    Files are taken whole: how large an index is depends on all values of its file. Two are taken
    though they are large; further ones as long as all have about 256 MB and two million rows. A
    file is added for each query that would look at none of these, out of its `possible` files.
    """
    filled = np.flatnonzero(rows > 0)
    if not len(filled):
        return filled
    fitting = min(_MOST_BYTES / sizes[filled].mean(), _MOST_ROWS / rows[filled].mean())
    wanted = max(min(most, int(fitting)), _LEAST)
    chosen = set(filled[spread(len(filled), wanted)].tolist())
    more = 0
    for mask in possible:
        matching = filled[mask[filled]]
        if len(matching) and more < _MOST_MORE and not chosen.intersection(matching.tolist()):
            chosen.add(int(matching[len(matching) // 2]))
            more += 1
    return np.array(sorted(chosen), np.int64)


_VALUES = 256  # of a file, to make typical queries of


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSample:
    """A column, or a key of a map, in one file; it pickles."""

    file: int
    """Its position in the table."""
    column: str
    """As the table spells it."""
    own_name: str
    """As the file spells it."""
    rows: int
    nulls: int
    sketch: ThetaSketch | None
    """None if values of the type are not counted."""
    statistics: ColumnStatistics | None
    """As exact as a build makes them; None if there are none."""
    payloads: Mapping[str, bytes] = field(default_factory=dict)
    """By index type."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """Why an index cannot be built, by index type."""
    values: pa.Array | None = None
    """Some of its values, none of them null, in the order of rows."""


def sample_column(
    values: pa.ChunkedArray,
    data_type: DataType,
    *,
    file: int,
    column: str,
    own_name: str,
    map_key: str | None = None,
) -> ColumnSample:
    """Look at all values of a column of a file, and build every index that takes them.

    For a key of a map, `values` is the map, and `data_type` that of the map's values.

    >>> sample = sample_column(
    ...     pa.chunked_array([[3, 1, None]]), DataType("BIGINT"), file=0, column="id", own_name="id"
    ... )
    >>> sorted(sample.payloads), sample.nulls, sample.sketch
    (['bitmap', 'bloom-filter', 'bsi', 'range-bitmap'], 1, <ThetaSketch: 2 distinct values, ...>)
    """
    if map_key is not None:
        values = map_key_column(values, map_key)
    payloads, problems = _build(values, data_type, indexes_for(data_type))
    return ColumnSample(
        file,
        column,
        own_name,
        len(values),
        plain(values).null_count,
        _sketch(values),
        None if map_key is not None else _statistics(values, column, data_type),
        payloads,
        problems,
        _some(values),
    )


def _build(
    values: pa.ChunkedArray, data_type: DataType, index_types: Sequence[str]
) -> tuple[dict[str, bytes], dict[str, str]]:
    payloads: dict[str, bytes] = {}
    problems: dict[str, str] = {}
    if not index_types:
        return payloads, problems
    try:
        keys = read_column(values, data_type)
    except (UnsupportedError, LimitError) as error:
        return payloads, dict.fromkeys(index_types, str(error))
    for index_type in index_types:
        try:
            options = asdict(default_options(index_type))
            payloads[index_type] = BUILDERS[index_type](keys, **options)
        except (UnsupportedError, LimitError) as error:
            problems[index_type] = str(error)
    return payloads, problems


def _sketch(values: pa.ChunkedArray) -> ThetaSketch | None:
    try:
        return ThetaSketch.of(values)
    except UnsupportedError:
        return None


def _statistics(
    values: pa.ChunkedArray, column: str, data_type: DataType
) -> ColumnStatistics | None:
    try:
        statistics = ColumnStatistics.of(values, data_type)
        statistics_array(column, data_type, [statistics])
    except UnsupportedError:
        return None
    return statistics


def _some(values: pa.ChunkedArray) -> pa.Array:
    taken = values.take(pa.array(spread(len(values), _VALUES)))
    sampled = plain(taken)
    sampled = sampled.filter(pc.is_valid(sampled))
    if pa.types.is_floating(sampled.type):
        sampled = sampled.filter(pc.invert(pc.is_nan(sampled)))
    return sampled.combine_chunks() if isinstance(sampled, pa.ChunkedArray) else sampled


@dataclass(frozen=True, slots=True, eq=False)
class ColumnFacts:
    """A column that was sampled."""

    column: str
    data_type: DataType | None
    distinct: float | None = None
    """About how many distinct values the table has; None if they are not counted."""
    null_share: float | None = None
    """How many of the rows are null, from 0 to 1."""
    index_bytes: Mapping[str, int] = field(default_factory=dict)
    """About how many bytes the indexes of all files take, by index type."""
    problem: str = ""
    """Why there is no index; empty if there are some."""


def gather_facts(
    column: str, data_type: DataType | None, samples: Sequence[ColumnSample], rows: Int64Array
) -> ColumnFacts:
    """Conclude from what was sampled of a column; `rows` are those of all files of the table."""
    sampled = sum(sample.rows for sample in samples)
    if not sampled:
        return ColumnFacts(column, data_type, problem="no file of the sample has it")
    sketches = [sample.sketch for sample in samples if sample.sketch is not None]
    distinct: float | None = None
    if len(sketches) == len(samples):
        union = reduce(ThetaSketch.union, sketches)
        each = np.array([sample.estimate for sample in sketches], np.float64)
        distinct = all_distinct(each, union.estimate, sampled / max(int(rows.sum()), 1))
    sizes: dict[str, int] = {}
    for index_type in INDEX_TYPES:
        made = [sample for sample in samples if index_type in sample.payloads]
        if made:
            chosen = np.array([sample.file for sample in made], np.int64)
            lengths = np.array([len(sample.payloads[index_type]) for sample in made], np.int64)
            sizes[index_type] = all_bytes(rows, chosen, lengths)
    why = next((text for sample in samples for text in sample.problems.values()), "")
    return ColumnFacts(
        column,
        data_type,
        distinct,
        sum(sample.nulls for sample in samples) / sampled,
        sizes,
        "" if sizes else why or f"no index takes {data_type}",
    )


_LOOK_UPS = 3
_RANGE = 0.001  # of the rows
_UNORDERED = ("BOOLEAN", "BINARY", "VARBINARY")


def typical_queries(
    column: str, data_type: DataType, values: Sequence[pa.Array], distinct: float | None
) -> Iterator[Predicate]:
    """Predicates on a column, made of some of its values."""
    filled = [array for array in values if len(array)]
    if not filled:
        return
    pooled = _literals(pa.concat_arrays(filled))
    if data_type.root not in FLOAT_TYPES:
        looked_up = [_literal(pooled[int(position)]) for position in spread(len(pooled), _LOOK_UPS)]
        for value in dict.fromkeys(looked_up):
            if value is not None:
                yield col(column) == value
    if data_type.root not in _UNORDERED and (distinct is None or distinct * _RANGE >= 1):
        ordered = pooled.take(pc.array_sort_indices(pooled))
        middle = len(ordered) // 2
        last = min(middle + int(len(ordered) * _RANGE), len(ordered) - 1)
        begin, end = _literal(ordered[middle]), _literal(ordered[last])
        if begin is not None and end is not None:
            yield col(column).between(begin, end)


def _literals(values: pa.Array) -> pa.Array:
    """Values that Python has: its times end at microseconds."""
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return values.cast(pa.timestamp("us", kind.tz), safe=False)
    return values.cast(pa.time64("us"), safe=False) if kind == pa.time64("ns") else values


def _literal(value: pa.Scalar) -> Any:
    """The value in Python; None for text that is no UTF-8, and for years that Python has not."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return None
