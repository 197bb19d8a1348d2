"""Alcid: the index layer for lake tables.

It reads and writes, byte for byte, Paimon's file indexes (bloom-filter, bitmap, range-bitmap, bsi)
and answers predicates and top-n from them; Paimon's table indexes (deletion vectors, the hash index
of dynamic buckets); and Iceberg's Puffin files with theta sketches and deletion vectors.
"""

from __future__ import annotations

import logging as _logging
from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version

from alcid import config, errors, inspect, options, puffin
from alcid.errors import (
    AlcidError,
    AlcidWarning,
    ChecksumError,
    ColumnError,
    ConflictError,
    DamagedIndexWarning,
    EvaluationError,
    FileGoneError,
    FormatError,
    LimitError,
    LiteralError,
    NameTakenError,
    OptionError,
    PredicateError,
    SparkNeededError,
    StorageError,
    UnsupportedError,
)
from alcid.expressions import Column, Predicate, col
from alcid.formats.binary_row import binary_rows, hash_rows
from alcid.formats.buckets import (
    BucketAssigner,
    BucketOptions,
    Routing,
    fixed_bucket,
)
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile, DeletionVectorRange
from alcid.formats.file_index.reader import Selection
from alcid.formats.hash_index import HashIndex
from alcid.formats.theta import ThetaSketch
from alcid.index.file_index import FileIndex
from alcid.opening import (
    create_table,
    iceberg,
    paimon,
    parquet,
    table,
)
from alcid.spark.session import register, session
from alcid.spark.sql import explain_sql, sql
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.paimon.keyed.sink import upsert_sink
from alcid.tables.paimon_table import PaimonTable
from alcid.tables.parquet_table import ParquetTable
from alcid.types import DataType

try:
    __version__ = _version("alcid")
except _PackageNotFoundError:  # an archive of the package alone, as it is shipped to executors
    __version__ = "unknown"
_logging.getLogger("alcid").addHandler(_logging.NullHandler())
inspect.register_with_ipython()

__all__ = [
    "AlcidError",
    "AlcidWarning",
    "BucketAssigner",
    "BucketOptions",
    "ChecksumError",
    "Column",
    "ColumnError",
    "ConflictError",
    "DamagedIndexWarning",
    "DataType",
    "DeletionVector",
    "DeletionVectorFile",
    "DeletionVectorRange",
    "EvaluationError",
    "FileGoneError",
    "FileIndex",
    "FormatError",
    "HashIndex",
    "IcebergTable",
    "LimitError",
    "LiteralError",
    "NameTakenError",
    "OptionError",
    "PaimonTable",
    "ParquetTable",
    "Predicate",
    "PredicateError",
    "Routing",
    "Selection",
    "SparkNeededError",
    "StorageError",
    "ThetaSketch",
    "UnsupportedError",
    "binary_rows",
    "col",
    "config",
    "create_table",
    "errors",
    "explain_sql",
    "fixed_bucket",
    "hash_rows",
    "iceberg",
    "inspect",
    "options",
    "paimon",
    "parquet",
    "puffin",
    "register",
    "session",
    "sql",
    "table",
    "upsert_sink",
]
