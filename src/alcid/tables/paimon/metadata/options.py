"""What the options of a Paimon table mean here: each is honoured, harmless or refused by name.

How Paimon reads the text of an option: whole numbers, flags, names, sizes and durations.

A reader takes the text and raises ValueError with what it expected. Paimon does not strip blanks
from numbers and flags, so that ` true` is an error there, and here.

Options that users write: those of a new table, and what `file-index.*` asks to build.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Final, TypeAlias

from alcid.errors import OptionError, UnsupportedError
from alcid.options import did_you_mean, memory_size, parse_options
from alcid.tables.paimon.metadata.option_keys import (
    ALIASES,
    HARMLESS,
    REFUSALS,
    Operation,
    harmless,
    in_full,
    refusal_of,
    refuse,
)

__all__ = [
    "HONOURED",
    "MAX_INT",
    "Reader",
    "TableOptions",
    "check_new_options",
    "choice",
    "duration",
    "file_index_options",
    "flag",
    "is_known",
    "names",
    "read",
    "size",
    "whole",
]

MAX_INT: Final = 2**31 - 1
Reader: TypeAlias = Callable[[str], Any]


def read(key: str, text: str, reader: Reader) -> Any:
    """The value of an option.

    >>> read("bucket", "4", whole(-2))
    4
    >>> read("bucket", "four", whole(-2))
    Traceback (most recent call last):
    alcid.errors.OptionError: bucket: found 'four', expected a whole number from -2 to 2147483647
    """
    try:
        return reader(text)
    except ValueError as error:
        raise OptionError(f"{key}: found {text!r}, expected {error}") from None


def whole(least: int, most: int = MAX_INT) -> Reader:
    """A reader of whole numbers."""

    def convert(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return convert


def flag(text: str) -> bool:
    """True or false, in any case.

    >>> flag("TRUE")
    True
    """
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def choice(*known: str) -> Reader:
    """A reader of one of some words, in any case; the word comes out as it is listed."""

    def convert(text: str) -> str:
        if text.lower() not in known:
            raise ValueError(f"{', '.join(known[:-1])} or {known[-1]}")
        return text.lower()

    return convert


def names(text: str) -> tuple[str, ...]:
    """Names of columns with commas between.

    >>> names("day, hour")
    ('day', 'hour')
    """
    found = tuple(name.strip() for name in text.split(","))
    if not all(found) and text.strip():
        raise ValueError("names of columns with commas between")
    return found if text.strip() else ()


def size(text: str) -> int:
    """Bytes of a memory size.

    >>> size("128 mb")
    134217728
    """
    try:
        return memory_size(text)
    except OptionError as error:
        raise ValueError(str(error).partition("expected ")[2]) from None


_SECONDS: Final = {
    unit: seconds
    for units, seconds in (
        ("d day days", 86_400.0),
        ("h hour hours", 3_600.0),
        ("min m minute minutes", 60.0),
        ("s sec secs second seconds", 1.0),
        ("ms milli millis millisecond milliseconds", 1e-3),
        ("µs micro micros microsecond microseconds", 1e-6),
        ("ns nano nanos nanosecond nanoseconds", 1e-9),
    )
    for unit in units.split()
}


def duration(text: str) -> timedelta:
    """A span of time; without a unit, milliseconds. Nanoseconds are rounded to microseconds.

    >>> duration("1 h") == duration("3600000") == duration("60min")
    True
    """
    found = re.fullmatch(r"\s*([0-9]{1,19})\s*([a-zµ]*)\s*", text.lower())
    seconds = _SECONDS.get(found[2] or "ms") if found else None
    if not found or not seconds or int(found[1]) * seconds > timedelta.max.total_seconds() - 1:
        raise ValueError("a duration, as 1 h, 30 min, 10s or 500 ms")
    return timedelta(seconds=int(found[1]) * seconds)


_MIB: Final = 2**20


def _stats_mode(text: str) -> str:
    if not re.fullmatch(r"none|counts|full|truncate\([1-9][0-9]{0,8}\)", text.lower()):
        raise ValueError("none, counts, full or truncate(n)")
    return text.lower()


def _descending(text: str) -> bool:
    return bool(choice("ascending", "descending")(text) == "descending")


def _option(key: str, reader: Reader, default: Any) -> Any:
    return field(default=default, metadata={"key": key, "reader": reader})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The options that change what is read, or what a commit writes, as values.

    The options of dynamic buckets are read by `alcid.BucketOptions`, those of indexes by
    `option_checks.file_index_options`.

    >>> options = TableOptions.parse(
    ...     {"bucket": "4", "target-file-size": "64 mb"}, has_primary_key=True
    ... )
    >>> options.bucket, options.target_file_size, options.merge_engine
    (4, 67108864, 'deduplicate')
    """

    bucket: int = _option("bucket", whole(-2), -1)
    """How many buckets there are; -1 for buckets as needed, or none in a table without a key."""
    bucket_key: tuple[str, ...] = _option("bucket-key", names, ())
    """What rows are put into buckets by; empty for the primary key."""
    bucket_function_type: str = _option(
        "bucket-function.type", choice("default", "mod", "hive"), "default"
    )
    """Buckets tell about keys only if this is default: else read all of them."""
    file_format: str = _option("file.format", str.lower, "parquet")
    """Of new files: parquet, orc or avro. The name of a file says what that file is."""
    file_compression: str = _option("file.compression", str.lower, "zstd")
    zstd_level: int = _option("file.compression.zstd-level", whole(-MAX_INT), 1)
    target_file_size: int = _option("target-file-size", size, 256 * _MIB)
    """Half as much, by default, in a table with a primary key."""
    data_file_prefix: str = _option("data-file.prefix", str, "data-")
    data_file_path_directory: str | None = _option("data-file.path-directory", str, None)
    """The folder in the table that holds the folders of partitions and buckets."""
    external_paths: tuple[str, ...] = _option("data-file.external-paths", names, ())
    """Folders outside of the table that data files may lie in, as whole paths."""
    data_file_thin_mode: bool = _option("data-file.thin-mode", flag, False)
    """Whether new files leave out the `_KEY_` columns; a table may have files of both kinds."""
    index_file_in_data_file_dir: bool = _option("index-file-in-data-file-dir", flag, False)
    orc_timestamp_ltz_legacy: bool = _option("orc.timestamp-ltz.legacy.type", flag, True)
    """Whether ORC files hold TIMESTAMP_LTZ as the wall clock of the zone of their writer."""
    deletion_vectors: bool = _option("deletion-vectors.enabled", flag, False)
    bitmap64: bool = _option("deletion-vectors.bitmap64", flag, False)
    merge_on_read: bool = _option("deletion-vectors.merge-on-read", flag, False)
    """With vectors: whether files of level 0 are seen. Without, they always are."""
    dv_target_size: int = _option("deletion-vector.index-file.target-size", size, 2 * _MIB)
    merge_engine: str = _option(
        "merge-engine",
        choice("deduplicate", "partial-update", "aggregation", "first-row"),
        "deduplicate",
    )
    sequence_field: tuple[str, ...] = _option("sequence.field", names, ())
    sequence_descending: bool = _option("sequence.field.sort-order", _descending, False)
    ignore_delete: bool = _option("ignore-delete", flag, False)
    """Whether rows of the kinds -U and -D take no part, neither in an upsert nor in a merge."""
    ignore_update_before: bool = _option("ignore-update-before", flag, False)
    """Whether an upsert passes over rows of the kind -U."""
    rowkind_field: str | None = _option("rowkind.field", str, None)
    """The column that tells an upsert the kind of each row: +I, +U, -U or -D."""
    changelog_producer: str = _option(
        "changelog-producer", choice("none", "input", "full-compaction", "lookup"), "none"
    )
    write_only: bool = _option("write-only", flag, False)
    """Whether another job compacts: then a write stops at level 0."""
    compaction_trigger: int = _option("num-sorted-run.compaction-trigger", whole(1), 5)
    num_levels: int = _option("num-levels", whole(1), 6)
    """By default one more than runs that trigger a compaction; the top level is one less."""
    partition_default_name: str = _option("partition.default-name", str, "__DEFAULT_PARTITION__")
    partition_legacy_name: bool = _option("partition.legacy-name", flag, True)
    """Whether paths spell a DATE as its number of days, not as its text."""
    file_index_in_manifest_threshold: int = _option("file-index.in-manifest-threshold", size, 500)
    """An index of more bytes has a file of its own."""
    file_index_read_enabled: bool = _option("file-index.read.enabled", flag, True)
    stats_mode: str = _option("metadata.stats-mode", _stats_mode, "truncate(16)")
    stats_keep_first_columns: int = _option("metadata.stats-keep-first-n-columns", whole(-1), -1)
    stats_dense_store: bool = _option("metadata.stats-dense-store", flag, True)
    """Whether columns without statistics are left out of them; older readers need all columns."""
    manifest_compression: str = _option("manifest.compression", str.lower, "zstd")
    manifest_target_file_size: int = _option("manifest.target-file-size", size, 8 * _MIB)
    manifest_merge_min_count: int = _option("manifest.merge-min-count", whole(0), 30)
    snapshot_num_retained_min: int = _option("snapshot.num-retained.min", whole(1), 10)
    snapshot_num_retained_max: int = _option("snapshot.num-retained.max", whole(1), MAX_INT)
    snapshot_time_retained: timedelta = field(
        default=timedelta(hours=1), metadata={"key": "snapshot.time-retained", "reader": duration}
    )
    commit_user_prefix: str | None = _option("commit.user-prefix", str, None)
    """What a commit user starts with, an underscore behind it."""
    has_primary_key: bool = False
    given: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """The options as the table has them, older names replaced."""

    @classmethod
    def parse(cls, options: Mapping[str, str], *, has_primary_key: bool) -> TableOptions:
        """Read the options of a table that is to be read.

        Raises:
            OptionError: A value that Paimon does not take either.
            UnsupportedError: An option without which the rows would be wrong.
        """
        given = in_full(options)
        refuse(given, "read", keyed=has_primary_key)
        values: dict[str, Any] = {}
        for key, (name, reader) in HONOURED.items():
            if key in given:
                values[name] = read(key, given[key], reader)
        if has_primary_key:
            values.setdefault("target_file_size", 128 * _MIB)
        if "compaction_trigger" in values:
            values.setdefault("num_levels", min(values["compaction_trigger"] + 1, MAX_INT))
        found = cls(**values, has_primary_key=has_primary_key, given=given)
        found._require_readable()
        return found

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
        """Whether a batch read sees only what was compacted, where a key has one row, unmarked.

        Files of level 0 are then left out, and the others are not merged.
        """
        compacted = self.merge_engine == "first-row"
        if self.deletion_vectors:
            compacted = not self.merge_on_read
        return self.has_primary_key and compacted

    def require_writable(self, operation: Operation) -> None:
        """Raise if an operation would write what breaks a promise that the options make.

        Raises:
            UnsupportedError: There is an option that the operation cannot follow.

        >>> options = TableOptions.parse({"changelog-producer": "input"}, has_primary_key=True)
        >>> options.require_writable("build")
        >>> options.require_writable("delete")
        Traceback (most recent call last):
        alcid.errors.UnsupportedError: changelog-producer=input: cannot delete rows: no changelog
        would be written; write with Paimon's Java
        """
        refuse(self.given, operation, keyed=self.has_primary_key)

    def stats_modes(self, columns: Sequence[str]) -> tuple[str, ...]:
        """What statistics each column of a file gets: its own mode, else that of the table.

        Args:
            columns: The columns of the table, in order: `stats_keep_first_columns` counts them.

        >>> TableOptions.parse({"fields.b.stats-mode": "full"}, has_primary_key=False).stats_modes(
        ...     ["a", "b"]
        ... )
        ('truncate(16)', 'full')
        """
        most = self.stats_keep_first_columns
        modes = []
        for position, column in enumerate(columns):
            key = f"fields.{column}.stats-mode"
            if key in self.given:
                modes.append(read(key, self.given[key], _stats_mode))
            else:
                modes.append("none" if 0 <= most <= position else self.stats_mode)
        return tuple(modes)


HONOURED: Final[dict[str, tuple[str, Reader]]] = {
    option.metadata["key"]: (option.name, option.metadata["reader"])
    for option in fields(TableOptions)
    if option.metadata
}
"""The attribute of an option, and what reads its text."""


_BUCKETS: Final = (
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
        OptionError: An unknown key, or `file-index.*` options that are not in order.

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
        or key in _BUCKETS
        or key in ALIASES
        or harmless(key)
        or refusal_of(key) is not None
        or _COLUMN_STATS.fullmatch(key) is not None
    )


def _all_keys() -> list[str]:
    passed_over = [key for keys in HARMLESS.values() for key in keys.split()]
    return [*HONOURED, *REFUSALS, *_BUCKETS, *passed_over]


def file_index_options(options: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The `file-index.*` options that say what to build, and what is wrong with the others.

    Paimon passes over keys that it does not know, so that a table may have some: they are to be
    told to the user, and are no reason to build nothing.

    >>> file_index_options({"file-index.bitmap.columns": "a", "file-index.bitmap.version": "1"})
    ({'file-index.bitmap.columns': 'a'},
     ['file-index.bitmap.version: use file-index.bitmap.<column>.version'])
    """
    asked = [key for key in options if key.startswith("file-index.")]
    usable: dict[str, str] = {}
    problems = []
    # Options of columns are right or wrong by the lists of columns: these first.
    for key in sorted(asked, key=lambda key: (not key.endswith(".columns"), key)):
        if key in _INDEX_TABLE_KEYS:
            continue
        try:
            parse_options(usable | {key: options[key]})
        except OptionError as error:
            problems.append(str(error))
        else:
            usable[key] = options[key]
    return usable, problems
