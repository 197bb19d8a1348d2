"""The schema of a new Paimon table: what could never work is refused before there is a table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

from alcid.errors import ColumnError, OptionError, UnsupportedError
from alcid.formats.buckets import BucketOptions
from alcid.options import fold_name
from alcid.paimon_metadata.option_checks import check_new_options
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_options import TableOptions
from alcid.tables.paimon.asked_indexes import table_specs
from alcid.tables.paimon.data_files import table_paths
from alcid.types import DataType

__all__ = ["new_schema"]

_OWN_NAMES = ("_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "_ROW_ID", "rowkind")
_KEY_PREFIX = "_KEY_"


def new_schema(
    columns: Sequence[tuple[str, DataType, bool]],
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    options: Mapping[str, str],
) -> TableSchema:
    """The first schema of a table.

    Args:
        columns: Names, types, and whether null is allowed.
        primary_key: The columns that tell rows apart.
        partition_by: The columns whose values stand in the paths.
        options: Paimon's table options.

    Raises:
        OptionError: No such option, or a value that it cannot have.
        ColumnError: A key or an index of what is no column, or a name that cannot be.
        UnsupportedError: A type or an option that is not supported.
    """
    check_new_options(options)
    parsed = TableOptions.parse(options, has_primary_key=bool(primary_key))
    if parsed.file_format == "avro":
        raise UnsupportedError("file.format=avro: not written, expected parquet or orc")
    _check_names([name for name, _, _ in columns])
    for what, names in (("primary_key", primary_key), ("partition_by", partition_by)):
        if len(set(names)) < len(names):
            raise ColumnError(f"{what}: a column twice: {', '.join(names)}")
    made = TableSchema.of(
        [(name, data_type) for name, data_type, _ in columns],
        primary_key,
        partition_by,
        options,
        not_null=[name for name, _, nullable in columns if not nullable],
        time_millis=int(time.time() * 1000),
    )
    if primary_key and not made.key_columns:
        raise ColumnError("primary_key: all of it stands in the paths, which tell no rows apart")
    _check_buckets(made, parsed)
    if primary_key:
        _check_fields(made, parsed)
    table_paths(made, parsed)  # raises if a column cannot stand in paths
    specs, problems = table_specs(made)
    for problem in problems:
        raise OptionError(problem)
    for spec in specs:
        spec.resolve(made.types)
    return made


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise ColumnError("a table without columns")
    for name in names:
        if not name or name in _OWN_NAMES or name.startswith(_KEY_PREFIX):
            raise ColumnError(f"column {name!r}: is a name that Paimon keeps for itself")
    folded = Counter(map(fold_name, names))
    same = [name for name in names if folded[fold_name(name)] > 1]
    if same:
        raise ColumnError(f"columns {', '.join(same)}: names that are the same")


def _check_fields(schema: TableSchema, options: TableOptions) -> None:
    """See that upserts find the columns that options name."""
    if options.bucket < 0:
        BucketOptions.parse(options.given)
    kinds = [] if options.rowkind_field is None else [options.rowkind_field]
    for key, names in (("sequence.field", options.sequence_field), ("rowkind.field", kinds)):
        for name in names:
            if name not in schema.names:
                raise ColumnError(f"{key}: no column {name}, found {', '.join(schema.names)}")


def _check_buckets(schema: TableSchema, options: TableOptions) -> None:
    keys = options.bucket_key
    if options.bucket > 0 and not keys and not schema.primary_keys:
        raise OptionError(f"bucket={options.bucket}: needs the option bucket-key, or a primary key")
    for name in keys:
        if name not in schema.names:
            raise ColumnError(f"bucket-key: no column {name}, found {', '.join(schema.names)}")
        if name in schema.partition_keys:
            raise OptionError(
                f"bucket-key={name}: stands in the paths, so that no bucket depends on it"
            )
        if schema.primary_keys and name not in schema.primary_keys:
            raise OptionError(
                f"bucket-key={name}: is not in the primary key ({', '.join(schema.primary_keys)}): "
                "rows of the same key would come into several buckets"
            )
    if schema.primary_keys and options.bucket > 0:
        for name in schema.partition_keys:
            if name not in schema.primary_keys:
                raise ColumnError(
                    f"primary_key: does not contain the partition column {name}, as it must where "
                    "the number of buckets is fixed"
                )
