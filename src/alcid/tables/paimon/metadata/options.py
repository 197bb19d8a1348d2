"""The options of a Paimon table as typed values, and the checks before a table is read or written.

`TableOptions.parse` reads them strictly, as Paimon does, and refuses by name what a read cannot
follow; `require_rows_writable` does the same before rows are written. Keys that have no value here
are listed in `option_keys`. `file-index.*` options that say what to build are parsed by
`alcid.options`, those of dynamic buckets by `alcid.BucketOptions`.

A parser takes the text of an option and raises ValueError with what it expected. Paimon does not
strip blanks from numbers and flags: ` true` is an error there, and here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, TypeAlias

from alcid.errors import OptionError, UnsupportedError
from alcid.formats.buckets import BucketOptions
from alcid.options import did_you_mean, memory_size, parse_options
from alcid.tables.paimon.metadata.option_keys import (
    ALIASES,
    HARMLESS,
    REFUSALS,
    VERBS,
    Operation,
    is_harmless,
    refusal_of,
    refuse,
    resolve_aliases,
)
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.types import CHARACTER_TYPES

MAX_INT: Final = 2**31 - 1
Parser: TypeAlias = Callable[[str], Any]
WriteOperation: TypeAlias = Literal["append", "upsert", "delete", "compact"]
"""The operations that write data files."""


def parse_value(key: str, text: str, parser: Parser) -> Any:
    """The value of an option.

    >>> parse_value("bucket", "4", integer(-2))
    4
    >>> parse_value("bucket", "four", integer(-2))
    Traceback (most recent call last):
    alcid.errors.OptionError: bucket: found 'four', expected a whole number from -2 to 2147483647
    """
    try:
        return parser(text)
    except ValueError as error:
        raise OptionError(f"{key}: found {text!r}, expected {error}") from None


def integer(minimum: int, maximum: int = MAX_INT) -> Parser:
    """A parser of whole numbers."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or not minimum <= int(text) <= maximum:
            raise ValueError(f"a whole number from {minimum} to {maximum}")
        return int(text)

    return parse


def boolean(text: str) -> bool:
    """True or false, in any case.

    >>> boolean("TRUE")
    True
    """
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def choice(*words: str) -> Parser:
    """A parser of one of some words, in any case; it returns the word as listed."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"{', '.join(words[:-1])} or {words[-1]}")
        return text.lower()

    return parse


def column_names(text: str) -> tuple[str, ...]:
    """Names of columns, separated by commas.

    >>> column_names("day, hour")
    ('day', 'hour')
    """
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) and text.strip():
        raise ValueError("names of columns with commas between")
    return names if text.strip() else ()


def size(text: str) -> int:
    """Bytes of a memory size.

    >>> size("128 mb")
    134217728
    """
    try:
        return memory_size(text)
    except OptionError as error:
        raise ValueError(str(error).partition("expected ")[2]) from None


_MIB: Final = 2**20


def _stats_mode(text: str) -> str:
    if not re.fullmatch(r"none|counts|full|truncate\([1-9][0-9]{0,8}\)", text.lower()):
        raise ValueError("none, counts, full or truncate(n)")
    return text.lower()


def _descending(text: str) -> bool:
    return bool(choice("ascending", "descending")(text) == "descending")


def _option(key: str, parser: Parser, default: Any) -> Any:
    return field(default=default, metadata={"key": key, "parser": parser})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The options that change what is read, or what a commit writes.

    >>> options = TableOptions.parse(
    ...     {"bucket": "4", "target-file-size": "64 mb"}, has_primary_key=True
    ... )
    >>> options.bucket, options.target_file_size, options.merge_engine
    (4, 67108864, 'deduplicate')
    """

    bucket: int = _option("bucket", integer(-2), -1)
    """Number of buckets; -1: dynamic, or in a table without a primary key, no buckets."""
    bucket_key: tuple[str, ...] = _option("bucket-key", column_names, ())
    """The columns that are hashed to find the bucket of a row; empty: the primary key."""
    file_format: str = _option("file.format", str.lower, "parquet")
    """Format of new files: parquet, orc or avro. Existing ones are told by their names."""
    file_compression: str = _option("file.compression", str.lower, "zstd")
    zstd_level: int = _option("file.compression.zstd-level", integer(-MAX_INT), 1)
    target_file_size: int = _option("target-file-size", size, 256 * _MIB)
    """By default half of it in a table with a primary key."""
    data_file_prefix: str = _option("data-file.prefix", str, "data-")
    data_file_path_directory: str | None = _option("data-file.path-directory", str, None)
    """The folder of the table that contains those of partitions and buckets."""
    external_paths: tuple[str, ...] = _option("data-file.external-paths", column_names, ())
    """Folders outside of the table that may have data files, as absolute paths."""
    data_file_thin_mode: bool = _option("data-file.thin-mode", boolean, False)
    """Whether new files omit the `_KEY_` columns; a table may have files of both kinds."""
    index_file_in_data_file_dir: bool = _option("index-file-in-data-file-dir", boolean, False)
    orc_timestamp_ltz_legacy: bool = _option("orc.timestamp-ltz.legacy.type", boolean, True)
    """Whether ORC files store TIMESTAMP_LTZ as wall clock time in the zone of their writer."""
    deletion_vectors: bool = _option("deletion-vectors.enabled", boolean, False)
    bitmap64: bool = _option("deletion-vectors.bitmap64", boolean, False)
    merge_on_read: bool = _option("deletion-vectors.merge-on-read", boolean, False)
    """Whether reads see level 0 although there are deletion vectors; without, they always do."""
    dv_target_size: int = _option("deletion-vector.index-file.target-size", size, 2 * _MIB)
    merge_engine: str = _option(
        "merge-engine",
        choice("deduplicate", "partial-update", "aggregation", "first-row"),
        "deduplicate",
    )
    sequence_field: tuple[str, ...] = _option("sequence.field", column_names, ())
    sequence_descending: bool = _option("sequence.field.sort-order", _descending, False)
    ignore_delete: bool = _option("ignore-delete", boolean, False)
    """Whether upserts and merges ignore rows of the kinds -U and -D."""
    ignore_update_before: bool = _option("ignore-update-before", boolean, False)
    """Whether upserts ignore rows of the kind -U."""
    rowkind_field: str | None = _option("rowkind.field", str, None)
    """The column with the kind of each upserted row: +I, +U, -U or -D."""
    write_only: bool = _option("write-only", boolean, False)
    """Whether another job compacts, so that upserts leave their rows on level 0."""
    compaction_trigger: int = _option("num-sorted-run.compaction-trigger", integer(1), 5)
    num_levels: int = _option("num-levels", integer(1), 6)
    """By default `compaction_trigger` + 1; levels count from 0."""
    partition_default_name: str = _option("partition.default-name", str, "__DEFAULT_PARTITION__")
    partition_legacy_name: bool = _option("partition.legacy-name", boolean, True)
    """Whether paths spell a DATE as its number of days instead of its text."""
    file_index_in_manifest_threshold: int = _option("file-index.in-manifest-threshold", size, 500)
    """A larger index gets a file of its own."""
    file_index_read_enabled: bool = _option("file-index.read.enabled", boolean, True)
    stats_mode: str = _option("metadata.stats-mode", _stats_mode, "truncate(16)")
    stats_keep_first_columns: int = _option("metadata.stats-keep-first-n-columns", integer(-1), -1)
    stats_dense_store: bool = _option("metadata.stats-dense-store", boolean, True)
    """Whether statistics omit columns that have none; older readers need all columns."""
    manifest_compression: str = _option("manifest.compression", str.lower, "zstd")
    manifest_target_file_size: int = _option("manifest.target-file-size", size, 8 * _MIB)
    manifest_merge_min_count: int = _option("manifest.merge-min-count", integer(0), 30)
    commit_user_prefix: str | None = _option("commit.user-prefix", str, None)
    """Prefix of commit users, before an underscore."""
    has_primary_key: bool = False
    raw: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """All options of the table as text, under their current names."""

    @classmethod
    def parse(cls, options: Mapping[str, str], *, has_primary_key: bool) -> TableOptions:
        """Parse the options of a table, and check that it can be read.

        Raises:
            OptionError: A value that Paimon does not accept either.
            UnsupportedError: An option that is not supported, so that rows would be wrong.
        """
        raw = resolve_aliases(options)
        refuse(raw, "read", keyed=has_primary_key)
        values = {
            name: parse_value(key, raw[key], parser)
            for key, (name, parser) in HONOURED.items()
            if key in raw
        }
        if has_primary_key:
            values.setdefault("target_file_size", 128 * _MIB)
        parsed = cls(**values, has_primary_key=has_primary_key, raw=raw)
        if "num_levels" not in values:
            parsed = replace(parsed, num_levels=min(parsed.compaction_trigger + 1, MAX_INT))
        parsed._require_readable()
        return parsed

    def _require_readable(self) -> None:
        if self.bucket == -2:
            raise UnsupportedError("bucket=-2: cannot read the table: rows without a bucket")
        if self.bucket == 0:
            raise OptionError("bucket: found '0', expected -1, or 1 and more")
        if self.file_format not in ("parquet", "orc", "avro"):
            raise UnsupportedError(
                f"file.format={self.file_format}: cannot read the table: only parquet, orc and avro"
            )
        merges = self.has_primary_key and not self.skips_level_0
        if merges and self.merge_engine != "deduplicate":
            raise UnsupportedError(
                f"merge-engine={self.merge_engine}: cannot read the table: rows of a key can "
                "only replace each other, unless compactions with deletion vectors merged them"
            )

    @property
    def skips_level_0(self) -> bool:
        """Whether batch reads skip level 0 and do not merge the other levels.

        Each key then has one live row in the compacted files, and its older rows are deleted by
        deletion vectors.
        """
        compacted = self.merge_engine == "first-row"
        if self.deletion_vectors:
            compacted = not self.merge_on_read
        return self.has_primary_key and compacted

    def require_writable(self, operation: Operation) -> None:
        """Raise if there is an option that an operation cannot follow.

        Raises:
            UnsupportedError: There is one.

        >>> options = TableOptions.parse({"changelog-producer": "input"}, has_primary_key=True)
        >>> options.require_writable("build")
        >>> options.require_writable("delete")
        Traceback (most recent call last):
        alcid.errors.UnsupportedError: changelog-producer=input: cannot delete rows: no changelog
        would be written; write with Paimon's Java
        """
        refuse(self.raw, operation, keyed=self.has_primary_key)

    def stats_modes(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The statistics mode of each column: its own, or that of the table.

        Args:
            columns: The columns of the table, in order, as `stats_keep_first_columns` counts them.

        >>> TableOptions.parse({"fields.b.stats-mode": "full"}, has_primary_key=False).stats_modes(
        ...     ["a", "b"]
        ... )
        ('truncate(16)', 'full')
        """
        most = self.stats_keep_first_columns
        modes = []
        for position, column in enumerate(columns):
            key = f"fields.{column}.stats-mode"
            if key in self.raw:
                modes.append(parse_value(key, self.raw[key], _stats_mode))
            else:
                modes.append("none" if 0 <= most <= position else self.stats_mode)
        return tuple(modes)

    def dynamic_buckets(self) -> BucketOptions:
        """The options of a table with dynamic buckets.

        Raises:
            OptionError: A bad value, or the number of buckets is fixed.
        """
        return BucketOptions.parse(self.raw)


HONOURED: Final[dict[str, tuple[str, Parser]]] = {
    option.metadata["key"]: (option.name, option.metadata["parser"])
    for option in fields(TableOptions)
    if option.metadata
}
"""The field of each option that is parsed, and its parser. Some code reads each of them."""


def require_rows_writable(
    schema: TableSchema, options: TableOptions, operation: WriteOperation
) -> None:
    """Raise, before anything is written, if an operation cannot follow schema or options.

    Raises:
        UnsupportedError: The operation needs a primary key that the table does not have, or the
            other way round; or there is an option that the operation cannot follow.
        OptionError: Options that no table can have.
    """
    if operation == "append" and schema.primary_keys:
        raise UnsupportedError("append: the table has a primary key, which takes an upsert")
    if operation in ("upsert", "compact") and not schema.primary_keys:
        hint = "; append rows to it" if operation == "upsert" else ""
        raise UnsupportedError(f"{operation}: the table has no primary key{hint}")
    options.require_writable(operation)
    if operation == "delete":  # it writes data files, too
        options.require_writable("compact")
    cannot = f"cannot {VERBS[operation]}"
    if options.file_format != "parquet":
        raise UnsupportedError(
            f"file.format={options.file_format}: {cannot}: only parquet is written; after Paimon's "
            "ALTER TABLE ... SET ('file.format' = 'parquet') new files are, and old ones stay"
        )
    if operation in ("append", "upsert"):
        for column in schema.fields:
            if column.default_value is not None:
                raise UnsupportedError(
                    f"column {column.name}: {cannot}: its default value is not filled in"
                )
    if schema.primary_keys:
        _check_primary_key(schema, options, operation)
    elif options.bucket > 0 and not options.bucket_key:
        raise OptionError(f"bucket={options.bucket}: {cannot}: there is no bucket-key")
    for key, names in (
        ("bucket-key", options.bucket_key),
        ("sequence.field", options.sequence_field if schema.primary_keys else ()),
    ):
        for name in names:
            if name not in schema.names:
                raise OptionError(f"{key}={name}: {cannot}: there is no such column")


def _check_primary_key(
    schema: TableSchema, options: TableOptions, operation: WriteOperation
) -> None:
    keys, cannot = ", ".join(schema.primary_keys), f"cannot {VERBS[operation]}"
    for name in schema.partition_keys:
        if name not in schema.primary_keys:
            raise UnsupportedError(
                f"{operation}: the primary key ({keys}) does not contain the partition key {name}: "
                "rows would move between partitions, which is not supported"
            )
    if options.bucket < 0:
        options.dynamic_buckets()
    for name in options.bucket_key:
        if name not in schema.primary_keys:
            raise OptionError(f"bucket-key={name}: {cannot}: it is not in the primary key ({keys})")
    row_kind = options.rowkind_field
    if operation == "upsert" and row_kind is not None:
        if row_kind not in schema.names:
            raise OptionError(f"rowkind.field={row_kind}: {cannot}: there is no such column")
        if (data_type := schema.types[row_kind]).root not in CHARACTER_TYPES:
            raise OptionError(
                f"rowkind.field={row_kind}: {cannot}: found {data_type}, expected STRING"
            )


_DYNAMIC_BUCKETS: Final = (
    "dynamic-bucket.assigner-parallelism",
    "dynamic-bucket.initial-buckets",
    "dynamic-bucket.max-buckets",
    "dynamic-bucket.target-row-num",
)
_COLUMN_STATS: Final = re.compile(r"fields\..+\.stats-mode")
_INDEX_TABLE_KEYS: Final = ("file-index.in-manifest-threshold", "file-index.read.enabled")


def check_new_options(options: Mapping[str, str]) -> None:
    """Raise for an option of a new table whose key Paimon does not have, most likely misspelt.

    Raises:
        OptionError: An unknown key, or invalid `file-index.*` options.

    >>> check_new_options({"deletion-vector.enabled": "true"})
    Traceback (most recent call last):
    alcid.errors.OptionError: deletion-vector.enabled: no such option of Paimon; did you mean
    deletion-vectors.enabled?
    """
    for key in options:
        if key in ("primary-key", "partition"):
            raise OptionError(f"{key}: name the keys of a new table as keys, not as an option")
        if not key.startswith("file-index.") and not is_known(key):
            hint = did_you_mean(key, _all_keys())
            raise OptionError(f"{key}: no such option of Paimon{hint}")
    problems = file_index_options(options)[1]
    if problems:
        raise OptionError(problems[0])


def is_known(key: str) -> bool:
    """Whether Paimon has an option of this key, `file-index.*` aside.

    >>> is_known("bucket"), is_known("fields.price.stats-mode"), is_known("buckets")
    (True, True, False)
    """
    return (
        key in HONOURED
        or key in _DYNAMIC_BUCKETS
        or key in ALIASES
        or is_harmless(key)
        or refusal_of(key) is not None
        or _COLUMN_STATS.fullmatch(key) is not None
    )


def _all_keys() -> list[str]:
    ignored = [key for keys in HARMLESS.values() for key in keys.split()]
    return [*HONOURED, *REFUSALS, *_DYNAMIC_BUCKETS, *ignored]


def file_index_options(options: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The `file-index.*` options that say what to build, and the problems with all others.

    Paimon ignores keys that it does not know, so a table may have some: report them to the user,
    and build the rest.

    >>> file_index_options({"file-index.bitmap.columns": "a", "file-index.bitmap.version": "1"})
    ({'file-index.bitmap.columns': 'a'},
     ['file-index.bitmap.version: use file-index.bitmap.<column>.version'])
    """
    keys = [key for key in options if key.startswith("file-index.")]
    usable: dict[str, str] = {}
    problems = []
    # The lists of columns first: the options of a column depend on them.
    for key in sorted(keys, key=lambda key: (not key.endswith(".columns"), key)):
        if key in _INDEX_TABLE_KEYS:
            continue
        try:
            parse_options(usable | {key: options[key]})
        except OptionError as error:
            problems.append(str(error))
        else:
            usable[key] = options[key]
    return usable, problems
