"""Which manifests of a snapshot a predicate needs, by the partition summaries in its manifest list.

A summary has the bounds of one partition field over all files of a manifest, and whether one of
them is null. With the transform of the field they become bounds of a column, and manifests are
pruned as files are (`ManifestRanges`). Delete manifests are never pruned: their files may apply to
data files of any manifest.

A summary counts as unknown, and its manifest is kept, where

- there is none, its spec is unknown, or it has another number of fields,
- a bound cannot be decoded, or is none that the transform can make,
- it has no bounds: all values are null, or NaN,
- the lower bound is above the upper one,
- the column is a float: partitions distinguish zeros and NaN differently than rows do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array
from alcid.index.bundle import Statistics
from alcid.scan import Bounds
from alcid.storage import Listing, Storage
from alcid.tables.iceberg.bounds import BucketedBounds, Buckets
from alcid.tables.iceberg.field_ids import SchemaGroups
from alcid.tables.iceberg.metadata.entries import decoded_bounds
from alcid.tables.iceberg.metadata.manifests import ManifestFile, PartitionSummary
from alcid.tables.iceberg.metadata.schema import VOID, PartitionField, PartitionSpec, Schema
from alcid.tables.iceberg.metadata.transforms import (
    UNITS,
    bucket_count,
    has_buckets,
    transform_bounds,
)
from alcid.tables.manifest_bounds import checked_bounds
from alcid.tables.open_files import OpenFiles
from alcid.types import FLOAT_TYPES, DataType

_NUMBER: Final = DataType("INT")
"""The type of years to hours, and of buckets."""


class ManifestRanges(OpenFiles):
    """Data manifests as if each were a file, with what their summaries say as its statistics."""

    def __init__(
        self,
        storage: Storage,
        manifests: Sequence[ManifestFile],
        specs: Mapping[int, PartitionSpec],
        schema: Schema,
    ) -> None:
        """Take the manifests; none is read.

        Args:
            storage: The folder of the table.
            manifests: Manifests of data files.
            specs: The partition specs of the table.
            schema: The columns that are read.
        """
        count = len(manifests)
        paths = pa.array([manifest.path for manifest in manifests], pa.string())
        groups = SchemaGroups(schema)
        unknown = np.full(count, -1, np.int64)
        super().__init__(
            storage,
            Listing(paths, np.zeros(count, np.int64), pa.nulls(count, pa.string())),
            unknown,
            groups.columns({}, np.zeros(count, np.int64)),
            groups.files,
            pa.table({}),
            pa.nulls(count, pa.uint32()),
        )
        self._ids = groups.ids[0]
        self._fields = [_summaries(manifest, specs) for manifest in manifests]

    def bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """The bounds of a column in each manifest; None if nothing is known of it."""
        number = self._ids.get(column)
        if number is None or data_type.root in FLOAT_TYPES or data_type.children:
            return None
        known: list[pa.StructArray] = []
        buckets: list[Buckets] = []
        for transform in self._transforms(number):
            summaries = [fields.get((number, transform)) for fields in self._fields]
            if bucket_count(transform) is None:
                statistics = _statistics(transform, summaries, data_type)
                if statistics is not None:
                    known.append(statistics)
            elif has_buckets(data_type):
                buckets.append(_buckets(transform, summaries))
        if not known and not buckets:
            return None
        values = _nothing_known(data_type, len(self._fields)) if not known else known[0]
        for other in known[1:]:  # specs that have evolved: a manifest has one of them
            values = pc.if_else(values.is_valid(), values, other)
        statistics_of = Statistics(column, data_type, values)
        if buckets:
            return BucketedBounds(statistics_of, self.rows, buckets)
        return Bounds(statistics_of, self.rows)

    def _transforms(self, number: int) -> list[str]:
        """The transforms of a column, those of the narrowest partitions first."""
        own = {
            transform for fields in self._fields for source, transform in fields if source == number
        }
        order = ["identity", *reversed(UNITS)]
        return sorted(own, key=lambda one: (order.index(one) if one in order else len(order), one))


_Summaries = Mapping[tuple[int, str], PartitionSummary]
"""By the field id of the column and the transform."""


def _summaries(manifest: ManifestFile, specs: Mapping[int, PartitionSpec]) -> _Summaries:
    """The summaries of a manifest that can be used."""
    spec = specs.get(manifest.spec_id)
    summaries = manifest.summaries
    if spec is None or summaries is None or len(summaries) != len(spec.fields):
        return {}
    by_field: dict[tuple[int, str], PartitionSummary] = {}
    for field, summary in zip(spec.fields, summaries, strict=True):
        if summary is not None and _has_bounds(field, summary):
            by_field.setdefault((field.source_id, field.transform), summary)
    return by_field


def _has_bounds(field: PartitionField, summary: PartitionSummary) -> bool:
    return field.transform != VOID and summary.lower is not None and summary.upper is not None


def _statistics(
    transform: str, summaries: Sequence[PartitionSummary | None], data_type: DataType
) -> pa.StructArray | None:
    """Statistics of a column from the summaries of a field; None if the transform has no bounds."""
    stored = _NUMBER if transform in UNITS else data_type
    refused = np.array([summary is None for summary in summaries], bool)
    lower, upper = (
        _decoded([None if s is None else bound(s) for s in summaries], stored)
        for bound in (attrgetter("lower"), attrgetter("upper"))
    )
    least, most = (transform_bounds(transform, values, data_type) for values in (lower, upper))
    if least is None or most is None:
        return None
    refused |= _mask(pc.or_(pc.is_null(least.lower), pc.is_null(most.upper)))
    has_null = np.array([s is None or s.contains_null for s in summaries], bool)
    if transform.startswith("truncate") and data_type.root == "DECIMAL":
        refused |= has_null  # a number whose truncated value does not fit is null, too
    return checked_bounds(
        data_type,
        least.lower,
        most.upper,
        np.where(has_null, -1, 0),
        np.full(len(summaries), np.iinfo(np.int64).max),
        refused=refused,
    )


def _decoded(bounds: Sequence[bytes | None], data_type: DataType) -> pa.Array:
    """Bounds as values; null where they are none, and all of them if text is not UTF-8."""
    values = decoded_bounds(pa.array(bounds, pa.binary()), data_type)
    if data_type.root != "VARCHAR":
        return values
    try:
        return values.cast(pa.string())
    except pa.ArrowException:
        return pa.nulls(len(values), pa.string())


def _buckets(transform: str, summaries: Sequence[PartitionSummary | None]) -> Buckets:
    """The bucket of those manifests whose files are all of one bucket."""
    lower, upper = (
        _decoded([None if s is None else bound(s) for s in summaries], _NUMBER)
        for bound in (attrgetter("lower"), attrgetter("upper"))
    )
    is_single = _mask(pc.fill_null(pc.equal(lower, upper), False))
    numbers: Int64Array = lower.cast(pa.int64()).fill_null(-1).to_numpy()
    return Buckets(bucket_count(transform) or 0, is_single, numbers)


def _nothing_known(data_type: DataType, count: int) -> pa.StructArray:
    kind = pa.binary() if data_type.root in ("VARCHAR", "VARBINARY") else data_type.to_arrow()
    unknown = pa.nulls(count, kind)
    none = np.full(count, -1, np.int64)
    return checked_bounds(data_type, unknown, unknown, none, none, refused=np.ones(count, bool))


def _mask(array: pa.BooleanArray) -> BoolArray:
    mask: BoolArray = array.to_numpy(zero_copy_only=False)
    return mask
