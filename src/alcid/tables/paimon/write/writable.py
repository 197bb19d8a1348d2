"""Whether rows can be written to a Paimon table, and how its files are encoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from alcid.errors import OptionError, UnsupportedError
from alcid.formats.buckets import BucketOptions
from alcid.tables.paimon.data_files import has_nanoseconds
from alcid.tables.paimon.metadata.manifest import ManifestEntry
from alcid.tables.paimon.metadata.option_keys import VERBS
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.parquet_writer import Encoding

__all__ = ["WriteOperation", "encoding_of", "require_rows_writable", "writing_options"]

WriteOperation: TypeAlias = Literal["append", "upsert", "delete", "compact"]
"""What writes data files."""

_COMPRESSIONS: Final = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4",
    "none": "none",
    "uncompressed": "none",
}
_TEXTS: Final = ("CHAR", "VARCHAR")


def require_rows_writable(
    schema: TableSchema, options: TableOptions, operation: WriteOperation
) -> None:
    """Raise, before anything is written, if an operation would not do what the table asks for.

    Raises:
        UnsupportedError: The table has no primary key and the operation needs one, or the other
            way round; or something that the operation cannot follow.
        OptionError: Options that no table can have.
    """
    if operation == "append" and schema.primary_keys:
        raise UnsupportedError("append: the table has a primary key, which takes an upsert")
    if operation in ("upsert", "compact") and not schema.primary_keys:
        hint = "; append rows to it" if operation == "upsert" else ""
        raise UnsupportedError(f"{operation}: the table has no primary key{hint}")
    options.require_writable(operation)
    if operation == "delete":  # rows that delete are files as others are
        options.require_writable("compact")
    cannot = f"cannot {VERBS[operation]}"
    if options.file_format != "parquet":
        raise UnsupportedError(
            f"file.format={options.file_format}: {cannot}: only parquet is written; after Paimon's "
            "ALTER TABLE ... SET ('file.format' = 'parquet') new files are, and old ones stay"
        )
    if operation in ("append", "upsert"):
        for one in schema.fields:
            if one.default_value is not None:
                raise UnsupportedError(
                    f"column {one.name}: {cannot}: its default value is not filled in"
                )
    if schema.primary_keys:
        _check_keys(schema, options, operation)
    elif options.bucket > 0 and not options.bucket_key:
        raise OptionError(f"bucket={options.bucket}: {cannot}: there is no bucket-key")
    for key, names in (
        ("bucket-key", options.bucket_key),
        ("sequence.field", options.sequence_field if schema.primary_keys else ()),
    ):
        for name in names:
            if name not in schema.names:
                raise OptionError(f"{key}={name}: {cannot}: there is no such column")


def _check_keys(schema: TableSchema, options: TableOptions, operation: WriteOperation) -> None:
    keys, cannot = ", ".join(schema.primary_keys), f"cannot {VERBS[operation]}"
    for name in schema.partition_keys:
        if name not in schema.primary_keys:
            raise UnsupportedError(
                f"{operation}: the primary key ({keys}) does not contain the partition key {name}: "
                "rows would move between partitions, which is not supported"
            )
    if options.bucket < 0:
        BucketOptions.parse(options.given)
    for name in options.bucket_key:
        if name not in schema.primary_keys:
            raise OptionError(f"bucket-key={name}: {cannot}: it is not in the primary key ({keys})")
    kind = options.rowkind_field
    if operation == "upsert" and kind is not None:
        if kind not in schema.names:
            raise OptionError(f"rowkind.field={kind}: {cannot}: there is no such column")
        if schema.types[kind].root not in _TEXTS:
            raise OptionError(
                f"rowkind.field={kind}: {cannot}: found {schema.types[kind]}, expected STRING"
            )


def writing_options(
    options: TableOptions, entries: Iterable[ManifestEntry], schemas: Mapping[int, TableSchema]
) -> TableOptions:
    """The options that new files are written by, with statistics laid out like those there are.

    Statistics are dense unless the table says otherwise: columns of nested types have none, and are
    left out. Paimon before 0.9.1 does not see that they are, and takes the bounds of one column for
    those of another. Where all files are of such a writer, new ones have all columns as well.

    Args:
        options: Of the table.
        entries: Its files.
        schemas: Those of the files, by their ids.
    """
    if "metadata.stats-dense-store" in options.given:
        return options
    nested = {
        number: len(schema.names)
        for number, schema in schemas.items()
        if any(one.children for one in schema.types.values())
    }
    has_all = False
    for file in (one.file for one in entries if one.file.schema_id in nested):
        arity = int.from_bytes(file.value_stats.minimum[:4], "big")
        if file.stats_columns is not None or arity != nested[file.schema_id]:
            return options
        has_all = True
    return replace(options, stats_dense_store=False) if has_all else options


def encoding_of(schema: TableSchema, options: TableOptions, operation: WriteOperation) -> Encoding:
    """How new files are encoded.

    Raises:
        UnsupportedError: A compression that is not written.
    """
    found = _COMPRESSIONS.get(options.file_compression)
    if found is None:
        raise UnsupportedError(
            f"file.compression={options.file_compression}: cannot {VERBS[operation]}: "
            f"expected {', '.join(_COMPRESSIONS)}"
        )
    level = options.zstd_level if found == "zstd" else None
    return Encoding(found, level, int96=has_nanoseconds(schema))
