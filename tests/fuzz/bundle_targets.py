"""Bundles: the whole file, and its parts behind their own compression."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa

from alcid.datafiles.parquet import read_layout
from alcid.datafiles.parquet.columns import FileColumn
from alcid.errors import AlcidWarning
from alcid.formats.file_index import READERS
from alcid.formats.file_index.keys import key_type
from alcid.formats.puffin.compression import compress, decompress
from alcid.formats.source import BytesSource
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    FileTable,
    open_bundles,
    probe,
)
from alcid.index.bundle.columns import (
    VERSION,
    join_columns,
    pack_pages,
    schema_bytes,
    schema_columns,
    unpack_column,
)
from alcid.types import DataType
from tests.datafiles.parquet.kit import PAGED, written
from tests.fuzz import repair
from tests.fuzz.target import Target
from tests.golden.bundle_cases import table_of
from tests.golden_files import golden_files
from tests.index.bundle.bundles import BIGINT

_LARGEST = 1 << 20


def bundle_targets() -> list[Target]:
    """The targets of this module."""
    return [
        Target("bundle", _read_bundle, _bundle_seeds, repair.bundle),
        Target("bundle-files", _read_file_table, _file_table_seeds),
        Target("bundle-pages", _read_pages, _pages_seeds),
        Target("bundle-schema", _read_schema, _schema_seeds),
    ]


def _read_bundle(data: bytes) -> None:
    """As a table does, with warnings, and by itself, with errors."""
    source = BytesSource(data, "x.bundle")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bundle_set = BundleSet(
            open_bundles([source]), ["dt=2025-08-00/part-0.parquet"], [4000], ["v"]
        )
        for kind in bundle_set.kinds:
            if kind.index_type == "bloom-filter":
                probe(bundle_set.coverage(kind), np.arange(1), [7], key_type(BIGINT))
    assert all(issubclass(warning.category, AlcidWarning) for warning in caught)
    bundle = Bundle.open(source)
    for kind in bundle.kinds:
        series = bundle.series(kind)
        if series is not None and kind.index_type in READERS and len(series.directory):
            series.index(0, key_type(BIGINT)).is_in([7])
    for row in range(len(bundle.files)):
        for kind in bundle.kinds:
            bundle.read(kind, row)
    for blob in bundle.others:
        bundle.read_blob(blob)


def _bundle_seeds() -> list[bytes]:
    return [golden.data for golden in golden_files("bundle")]


def _read_file_table(data: bytes) -> None:
    table = FileTable.from_bytes(data)
    again = FileTable.from_bytes(table.to_bytes())
    assert again.paths == table.paths
    assert len(again.statistics) == len(table.statistics)


def _file_table_seeds() -> list[bytes]:
    return [Bundle.open(BytesSource(data)).files.to_bytes() for data in _bundle_seeds()]


def _read_pages(data: bytes) -> None:
    """The content of a zstd frame: the input without it, so that it can be changed."""
    packed = bytes((VERSION,)) + compress("zstd", data)
    join_columns({"id": unpack_column("id", packed, file="a.parquet")}, file="a.parquet")


def _pages_seeds() -> list[bytes]:
    seeds = []
    for options in (PAGED, {}):
        layout = read_layout(BytesSource(written(table_of(1), **options), "a.parquet"))
        packed = pack_pages(layout, layout.columns[0])
        seeds.append(decompress("zstd", packed[1:], _LARGEST))
    return seeds


def _read_schema(data: bytes) -> None:
    schema_columns(data, file="a.parquet")


def _schema_seeds() -> list[bytes]:
    nested = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.map_(pa.string(), pa.binary()))]))
    columns = [
        FileColumn("id", 0, pa.int64(), BIGINT, field_id=7),
        FileColumn("price", 1, pa.decimal128(10, 2), DataType.parse("DECIMAL(10, 2)")),
        FileColumn("at", 2, pa.timestamp("us", "UTC"), DataType.parse("TIMESTAMP_LTZ(6)")),
        FileColumn("tags", 3, nested, None, problem="nested"),
    ]
    return [schema_bytes(columns[:count]) for count in range(len(columns) + 1)]
