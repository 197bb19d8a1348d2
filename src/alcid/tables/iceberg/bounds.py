"""What the partitions of data files say about columns.

A spec may have been changed: each file has the values of the spec that it was written with, and the
struct of partition values has the fields of all specs, by the name that the newest one gives them.

What manifests say of a column in the data files of a table: bounds, nulls, NaN.

It is a hint, and written by many programs. What cannot be read, or contradicts itself, counts as
not known: the file is read then. Text is cut to 16 characters unless the table says otherwise, so
its bounds are never exact; those of numbers are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array, IntArray
from alcid.expressions import InIntervals, Probe
from alcid.expressions.probes import Interval, points
from alcid.index.bundle import Statistics
from alcid.index.bundle.statistics import statistics_type
from alcid.scan import Bounds
from alcid.scan.bounds import PruningResult
from alcid.tables.iceberg.metadata.entries import decoded_bounds, value_of
from alcid.tables.iceberg.metadata.schema import PartitionSpec, partition_names
from alcid.tables.iceberg.metadata.transforms import (
    TransformBounds,
    bucket_count,
    bucket_of,
    transform_bounds,
)
from alcid.tables.manifest_bounds import checked_bounds
from alcid.types import FLOAT_TYPES, DataType

__all__ = ["BucketedBounds", "Buckets", "FilePartitions", "column_metrics", "null_counts"]

_IDENTITY = "identity"


@dataclass(frozen=True, slots=True, eq=False)
class _Parted:
    """A column as some files are parted by it."""

    transform: str
    files: BoolArray
    """Those whose spec has it."""
    values: pa.Array
    """One for each file; they count for these files only."""


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """The buckets of a column that files hold."""

    count: int
    files: BoolArray
    """Those that are parted by them."""
    numbers: Int64Array
    """Of each file; -1: all rows are null."""

    def among(self, files: BoolArray) -> Buckets:
        """The same for some of the files."""
        return Buckets(self.count, self.files & files, self.numbers)


class FilePartitions:
    """The partition values of data files."""

    def __init__(self, specs: Mapping[int, PartitionSpec], data: pa.Table) -> None:
        """Take the entries of data files, and all specs of the table."""
        self._specs, self._names = specs, partition_names(specs)
        self._spec_of = data["spec_id"].to_numpy()
        self._values: pa.StructArray = data["partition"].combine_chunks()

    @cached_property
    def identities(self) -> dict[int, pa.StructArray]:
        """Partition values that are columns, by field id: `value`, null where a file has none."""
        sources = {
            one.source_id
            for spec in self._live
            for one in spec.fields
            if one.transform == _IDENTITY
        }
        found = {source: self._identity(source) for source in sorted(sources)}
        return {source: values for source, values in found.items() if values is not None}

    def _identity(self, source: int) -> pa.StructArray | None:
        parts = [one for one in self._parted(source) if one.transform == _IDENTITY]
        if not parts:  # nobody tells the values of a column that was dropped
            return None
        values, has = parts[0].values, parts[0].files
        for one in parts[1:]:
            values = pc.if_else(pa.array(one.files), one.values.cast(values.type), values)
            has = has | one.files
        return pa.StructArray.from_arrays([values], ["value"], mask=pa.array(~has))

    def columns(self, types: Mapping[int, DataType]) -> dict[int, pa.Array]:
        """The columns that stand in the partitions of all files, by field id.

        Args:
            types: Those of the columns of the table.
        """
        found = {}
        for source, known in self.identities.items():
            data_type = types.get(source)
            # Zeros and NaN of floats are not told apart by partitions as they are by rows.
            if known.null_count or data_type is None or data_type.root in FLOAT_TYPES:
                continue
            try:
                found[source] = known.field("value").cast(data_type.to_arrow())
            except pa.ArrowException:
                continue
        return found

    def narrow(self, source: int, known: Statistics, rows: Int64Array) -> Statistics:
        """The statistics of a column, with what partitions say of it.

        Args:
            source: The field id of the column.
            known: What manifests say.
            rows: How many rows each file has.
        """
        values = known.values
        for one in self._parted(source):
            if known.data_type.root in FLOAT_TYPES:
                continue
            chosen = pa.array(np.flatnonzero(one.files))
            bounds = transform_bounds(one.transform, one.values.take(chosen), known.data_type)
            if bounds is not None:
                values = _narrowed(values, bounds, one.files, known.data_type, rows)
        return Statistics(known.column, known.data_type, values)

    def buckets(self, source: int) -> list[Buckets]:
        """The buckets that files hold of a column."""
        found = []
        for one in self._parted(source):
            count = bucket_count(one.transform)
            if count is not None:
                numbers = one.values.cast(pa.int64()).fill_null(-1).to_numpy()
                found.append(Buckets(count, one.files, numbers))
        return found

    @cached_property
    def _live(self) -> list[PartitionSpec]:
        """The specs that files have, the newest first."""
        numbers = np.unique(self._spec_of).tolist()
        return [self._specs[number] for number in reversed(numbers) if number in self._specs]

    def _parted(self, source: int) -> Iterator[_Parted]:
        kinds: dict[tuple[str, str], list[int]] = {}
        for spec in self._live:
            for one in spec.fields:
                if one.source_id == source:
                    name = self._names[spec.id, one.field_id]
                    kinds.setdefault((name, one.transform), []).append(spec.id)
        for (name, transform), specs in kinds.items():
            place = self._values.type.get_field_index(name)
            if place >= 0:
                files = np.isin(self._spec_of, specs)
                yield _Parted(transform, files, self._values.field(place))


def _narrowed(
    known: pa.StructArray,
    bounds: TransformBounds,
    files: BoolArray,
    data_type: DataType,
    rows: Int64Array,
) -> pa.StructArray:
    """Statistics of all files, with bounds of some of them; a contradiction says nothing."""
    places = np.full(len(known), -1, np.int64)
    places[files] = np.arange(int(files.sum()))
    taken = pa.array(places, mask=~files)
    least, most = (one.take(taken) for one in (bounds.least, bounds.most))
    all_null = np.zeros(len(known), bool)
    all_null[files] = bounds.all_null
    fields = {field.name: known.field(field.name) for field in statistics_type(data_type)}
    is_known = known.is_valid()
    old_least, old_most, nulls = (
        pc.if_else(is_known, fields[name], None) for name in ("min", "max", "nulls")
    )
    is_above = pc.coalesce(pc.greater(least, old_least), pc.is_valid(least))
    is_below = pc.coalesce(pc.less(most, old_most), pc.is_valid(most))
    new_least, new_most = (
        pc.if_else(is_above, least, old_least),
        pc.if_else(is_below, most, old_most),
    )
    crossed = pc.fill_null(pc.greater(new_least, new_most), False)
    tells = pc.or_(pc.or_(pc.is_valid(least), pc.is_valid(most)), pa.array(all_null))
    children = [
        pc.if_else(crossed, None, new_least),
        pc.if_else(crossed, None, new_most),
        pc.and_(fields["min_exact"].fill_null(False), pc.invert(is_above)),
        pc.and_(fields["max_exact"].fill_null(False), pc.invert(is_below)),
        pc.if_else(pa.array(all_null), pa.array(rows), nulls),
        pc.fill_null(fields["has_nan"], False),
    ]
    names = list(statistics_type(data_type))
    unknown = pc.invert(pc.or_(is_known, tells))
    return pa.StructArray.from_arrays(children, fields=names, mask=unknown)


class BucketedBounds(Bounds):
    """Bounds of a column whose files hold certain buckets of its values."""

    def __init__(self, statistics: Statistics, rows: Int64Array, buckets: list[Buckets]) -> None:
        """Take the statistics of files, and their buckets."""
        super().__init__(statistics, rows)
        self._data_type, self._buckets = statistics.data_type, buckets

    def evaluate(self, probe: Probe) -> PruningResult:
        """Whether rows may be there: none are where the buckets of all values are others."""
        result = super().evaluate(probe)
        keys = _keys(probe.intervals) if isinstance(probe, InIntervals) else None
        if keys is None:
            return result
        values = _values(keys, self._data_type)
        may_match = result.may_match.copy()
        for one in self._buckets:
            here = np.isin(one.numbers, bucket_of(values, self._data_type, one.count))
            may_match &= here | ~one.files
        return PruningResult(may_match, result.all_match & may_match)


def _keys(intervals: tuple[Interval, ...]) -> list[int | bytes] | None:
    """The single keys that intervals are; None if they are more than can be listed."""
    found: list[int | bytes] = []
    for interval in intervals:
        some = points(interval)
        if some is None:
            return None
        found += some
    return found


def _values(keys: list[int | bytes], data_type: DataType) -> pa.Array:
    """The values of a column that keys stand for."""
    kind = data_type.to_arrow()
    if data_type.root in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        return pa.array(keys, pa.binary())
    if data_type.root == "DECIMAL":
        # Not `scaleb`, which rounds to the digits of a context.
        return pa.array([Decimal(f"{key!r}E-{data_type.scale}") for key in keys], kind)
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(keys, width).cast(kind)


class _HasId(Protocol):
    @property
    def id(self) -> int: ...


def column_metrics(data: pa.Table, field: _HasId, data_type: DataType) -> pa.StructArray:
    """The statistics of a column of the table, of the type `statistics_type` gives.

    Args:
        data: The data files, as `Entries` has them.
        field: The column; not one within a struct, list or map.
        data_type: Its type as it is now; older files may have a narrower one.
    """
    row_counts = data["record_count"].chunk(0).to_numpy()
    least, most = (
        decoded_bounds(value_of(data[name].chunk(0), field.id), data_type)
        for name in ("lower_bounds", "upper_bounds")
    )
    nans = _counts(data, "nan_value_counts", field.id)
    return checked_bounds(
        data_type,
        least,
        most,
        null_counts(data, field.id),
        row_counts,
        refused=np.zeros(len(data), bool),
        has_nan=pa.array(nans > 0, mask=nans < 0),
    )


def null_counts(data: pa.Table, field_id: int) -> IntArray:
    """How many rows of each data file are null in a column; -1 where that is not known."""
    nulls = _counts(data, "null_value_counts", field_id)
    values, rows = _counts(data, "value_counts", field_id), data["record_count"].chunk(0).to_numpy()
    return np.where(values == rows, nulls, -1)  # counted in another way, they say nothing


def _counts(data: pa.Table, name: str, field_id: int) -> IntArray:
    """A count of each file; -1 where there is none."""
    counts: IntArray = value_of(data[name].chunk(0), field_id).fill_null(-1).to_numpy()
    return np.maximum(counts, -1)
