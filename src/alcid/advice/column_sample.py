"""What a column of one sampled file is like: distinct values, nulls, and its indexes, built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from alcid.advice.sampling import spread
from alcid.bundle import ColumnStatistics
from alcid.bundle.statistics import statistics_array
from alcid.errors import LimitError, UnsupportedError
from alcid.formats.arrays import plain
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.column import map_key_column, read_column
from alcid.formats.theta import ThetaSketch
from alcid.options import default_options
from alcid.types import DataType, indexes_for

__all__ = ["ColumnSample", "sample_column"]

_VALUES = 256  # that are kept of a file, to make typical queries of


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSample:
    """A column, or a key of a map, in one file; it pickles."""

    file: int
    """Its place in the table."""
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

    Args:
        values: The column; for a key of a map the map.
        data_type: The type that it has in the file; for a key of a map that of its values.
        file: The place of the file in the table.
        column: The name in the table.
        own_name: The name in the file.
        map_key: The key, if it is one.

    >>> found = sample_column(
    ...     pa.chunked_array([[3, 1, None]]), DataType("BIGINT"), file=0, column="id", own_name="id"
    ... )
    >>> sorted(found.payloads), found.nulls, found.sketch
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
        found = ColumnStatistics.of(values, data_type)
        statistics_array(column, data_type, [found])
    except UnsupportedError:
        return None
    return found


def _some(values: pa.ChunkedArray) -> pa.Array:
    taken = values.take(pa.array(spread(len(values), _VALUES)))
    found = plain(taken)
    found = found.filter(pc.is_valid(found))
    if pa.types.is_floating(found.type):
        found = found.filter(pc.invert(pc.is_nan(found)))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
