"""Bounds of columns in data files: from the metrics in manifests and from partition values.

Metrics are hints that many programs write. What cannot be decoded or contradicts itself counts as
unknown, and the file is read. Strings are cut to 16 characters unless the table says otherwise, so
their bounds are never exact; those of numbers are.

The partition spec may have changed: each file has the values of the spec it was written with, and
the struct of partition values has the fields of all specs under their newest names.
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

_IDENTITY = "identity"


@dataclass(frozen=True, slots=True, eq=False)
class _PartitionValues:
    """The values of a partition field in the files that have it."""

    transform: str
    files: BoolArray
    """The files whose spec has the field."""
    values: pa.Array
    """A value for each file, of which only those of `files` count."""


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """The buckets of a column, by file."""

    count: int
    files: BoolArray
    """The files that are partitioned by bucket."""
    numbers: Int64Array
    """The bucket of each file; -1 if all its rows are null."""

    def among(self, files: BoolArray) -> Buckets:
        """The buckets of some of the files."""
        return Buckets(self.count, self.files & files, self.numbers)


class FilePartitions:
    """The partition values of data files."""

    def __init__(self, specs: Mapping[int, PartitionSpec], data: pa.Table) -> None:
        """Use the entries of data files and all specs of the table."""
        self._specs, self._names = specs, partition_names(specs)
        self._spec_of = data["spec_id"].to_numpy()
        self._values: pa.StructArray = data["partition"].combine_chunks()

    @cached_property
    def identities(self) -> dict[int, pa.StructArray]:
        """Identity partition values by field id: structs of `value`, null where a file has none."""
        sources = {
            field.source_id
            for spec in self._live
            for field in spec.fields
            if field.transform == _IDENTITY
        }
        identities = {source: self._identity(source) for source in sorted(sources)}
        return {source: values for source, values in identities.items() if values is not None}

    def _identity(self, source: int) -> pa.StructArray | None:
        parts = [part for part in self._partition_values(source) if part.transform == _IDENTITY]
        if not parts:  # a dropped column has no values
            return None
        values, has_value = parts[0].values, parts[0].files
        for part in parts[1:]:
            values = pc.if_else(pa.array(part.files), part.values.cast(values.type), values)
            has_value = has_value | part.files
        return pa.StructArray.from_arrays([values], ["value"], mask=pa.array(~has_value))

    def columns(self, types: Mapping[int, DataType]) -> dict[int, pa.Array]:
        """The columns whose values are partition values in all files, by field id.

        Args:
            types: The types of columns by field id.
        """
        columns = {}
        for source, identity in self.identities.items():
            data_type = types.get(source)
            # Partitions distinguish zeros and NaN of floats differently than rows do.
            if identity.null_count or data_type is None or data_type.root in FLOAT_TYPES:
                continue
            try:
                columns[source] = identity.field("value").cast(data_type.to_arrow())
            except pa.ArrowException:
                continue
        return columns

    def narrow(self, source: int, metrics: Statistics, rows: Int64Array) -> Statistics:
        """The statistics of a column, narrowed by partition values.

        Args:
            source: The field id of the column.
            metrics: The metrics of manifests.
            rows: The row count of each file.
        """
        values = metrics.values
        for part in self._partition_values(source):
            if metrics.data_type.root in FLOAT_TYPES:
                continue
            chosen = pa.array(np.flatnonzero(part.files))
            bounds = transform_bounds(part.transform, part.values.take(chosen), metrics.data_type)
            if bounds is not None:
                values = _narrowed(values, bounds, part.files, metrics.data_type, rows)
        return Statistics(metrics.column, metrics.data_type, values)

    def buckets(self, source: int) -> list[Buckets]:
        """The buckets of a column."""
        buckets = []
        for part in self._partition_values(source):
            count = bucket_count(part.transform)
            if count is not None:
                numbers = part.values.cast(pa.int64()).fill_null(-1).to_numpy()
                buckets.append(Buckets(count, part.files, numbers))
        return buckets

    @cached_property
    def _live(self) -> list[PartitionSpec]:
        """The specs of the files, newest first."""
        numbers = np.unique(self._spec_of).tolist()
        return [self._specs[number] for number in reversed(numbers) if number in self._specs]

    def _partition_values(self, source: int) -> Iterator[_PartitionValues]:
        kinds: dict[tuple[str, str], list[int]] = {}
        for spec in self._live:
            for field in spec.fields:
                if field.source_id == source:
                    name = self._names[spec.id, field.field_id]
                    kinds.setdefault((name, field.transform), []).append(spec.id)
        for (name, transform), specs in kinds.items():
            position = self._values.type.get_field_index(name)
            if position >= 0:
                files = np.isin(self._spec_of, specs)
                yield _PartitionValues(transform, files, self._values.field(position))


def _narrowed(
    metrics: pa.StructArray,
    bounds: TransformBounds,
    files: BoolArray,
    data_type: DataType,
    rows: Int64Array,
) -> pa.StructArray:
    """Statistics narrowed by the bounds of some files; contradictory bounds are dropped."""
    positions = np.full(len(metrics), -1, np.int64)
    positions[files] = np.arange(int(files.sum()))
    taken = pa.array(positions, mask=~files)
    lower, upper = (bound.take(taken) for bound in (bounds.lower, bounds.upper))
    all_null = np.zeros(len(metrics), bool)
    all_null[files] = bounds.all_null
    fields = {field.name: metrics.field(field.name) for field in statistics_type(data_type)}
    is_known = metrics.is_valid()
    old_lower, old_upper, nulls = (
        pc.if_else(is_known, fields[name], None) for name in ("min", "max", "nulls")
    )
    is_above = pc.coalesce(pc.greater(lower, old_lower), pc.is_valid(lower))
    is_below = pc.coalesce(pc.less(upper, old_upper), pc.is_valid(upper))
    new_lower, new_upper = (
        pc.if_else(is_above, lower, old_lower),
        pc.if_else(is_below, upper, old_upper),
    )
    crossed = pc.fill_null(pc.greater(new_lower, new_upper), False)
    has_bounds = pc.or_(pc.or_(pc.is_valid(lower), pc.is_valid(upper)), pa.array(all_null))
    children = [
        pc.if_else(crossed, None, new_lower),
        pc.if_else(crossed, None, new_upper),
        pc.and_(fields["min_exact"].fill_null(False), pc.invert(is_above)),
        pc.and_(fields["max_exact"].fill_null(False), pc.invert(is_below)),
        pc.if_else(pa.array(all_null), pa.array(rows), nulls),
        pc.fill_null(fields["has_nan"], False),
    ]
    names = list(statistics_type(data_type))
    unknown = pc.invert(pc.or_(is_known, has_bounds))
    return pa.StructArray.from_arrays(children, fields=names, mask=unknown)


class BucketedBounds(Bounds):
    """Bounds of a column, some of whose files contain only one bucket of its values."""

    def __init__(self, statistics: Statistics, rows: Int64Array, buckets: list[Buckets]) -> None:
        """Combine the statistics and the buckets of files."""
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
    keys: list[int | bytes] = []
    for interval in intervals:
        some = points(interval)
        if some is None:
            return None
        keys += some
    return keys


def _values(keys: list[int | bytes], data_type: DataType) -> pa.Array:
    """The values of a column for keys."""
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
    """The metrics of a column in manifests, as `statistics_type` structs.

    Args:
        data: The entries of data files.
        field: A top-level column.
        data_type: Its current type; older files may have a narrower one.
    """
    row_counts = data["record_count"].chunk(0).to_numpy()
    lower, upper = (
        decoded_bounds(value_of(data[name].chunk(0), field.id), data_type)
        for name in ("lower_bounds", "upper_bounds")
    )
    nans = _counts(data, "nan_value_counts", field.id)
    return checked_bounds(
        data_type,
        lower,
        upper,
        null_counts(data, field.id),
        row_counts,
        refused=np.zeros(len(data), bool),
        has_nan=pa.array(nans > 0, mask=nans < 0),
    )


def null_counts(data: pa.Table, field_id: int) -> IntArray:
    """The null count of a column in each data file; -1 where unknown."""
    nulls = _counts(data, "null_value_counts", field_id)
    values, rows = _counts(data, "value_counts", field_id), data["record_count"].chunk(0).to_numpy()
    return np.where(values == rows, nulls, -1)  # otherwise they were counted differently


def _counts(data: pa.Table, name: str, field_id: int) -> IntArray:
    """A count for each file; -1 where it is missing."""
    counts: IntArray = value_of(data[name].chunk(0), field_id).fill_null(-1).to_numpy()
    return np.maximum(counts, -1)
