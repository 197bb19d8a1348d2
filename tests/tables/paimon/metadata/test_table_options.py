"""The options of a Paimon table: what they mean, and that none is ignored silently."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from alcid import tables
from alcid.errors import OptionError, UnsupportedError
from alcid.tables.paimon.metadata.option_keys import (
    ALIASES,
    HARMLESS,
    REFUSALS,
    is_harmless,
    refusal_of,
    resolve_aliases,
)
from alcid.tables.paimon.metadata.options import (
    HONOURED,
    TableOptions,
    check_new_options,
    file_index_options,
    is_known,
    size,
)

Write = Literal["build", "append", "delete", "upsert", "compact"]
WRITES: tuple[Write, ...] = ("build", "append", "delete", "upsert", "compact")
PASSED_OVER = [key for keys in HARMLESS.values() for key in keys.split()]


def parse(options: dict[str, str], *, keyed: bool = False) -> TableOptions:
    return TableOptions.parse(options, has_primary_key=keyed)


def allowed_writes(options: TableOptions) -> list[str]:
    allowed: list[str] = []
    for operation in WRITES:
        try:
            options.require_writable(operation)
        except UnsupportedError:
            continue
        allowed.append(operation)
    return allowed


# --- values


@pytest.mark.parametrize(
    ("key", "text", "attribute", "value"),
    [
        ("bucket", "16", "bucket", 16),
        ("bucket-key", "a, b", "bucket_key", ("a", "b")),
        ("file.format", "ORC", "file_format", "orc"),
        ("file.compression", "lz4", "file_compression", "lz4"),
        ("file.compression.zstd-level", "9", "zstd_level", 9),
        ("target-file-size", "64 mb", "target_file_size", 64 * 2**20),
        ("data-file.prefix", "part-", "data_file_prefix", "part-"),
        ("data-file.path-directory", "data", "data_file_path_directory", "data"),
        ("data-file.thin-mode", "true", "data_file_thin_mode", True),
        ("index-file-in-data-file-dir", "true", "index_file_in_data_file_dir", True),
        ("orc.timestamp-ltz.legacy.type", "false", "orc_timestamp_ltz_legacy", False),
        ("deletion-vectors.enabled", "True", "deletion_vectors", True),
        ("deletion-vectors.bitmap64", "true", "bitmap64", True),
        ("deletion-vectors.merge-on-read", "true", "merge_on_read", True),
        ("deletion-vector.index-file.target-size", "1b", "dv_target_size", 1),
        ("merge-engine", "Deduplicate", "merge_engine", "deduplicate"),
        ("sequence.field", "day,hour", "sequence_field", ("day", "hour")),
        ("sequence.field.sort-order", "DESCENDING", "sequence_descending", True),
        ("sequence.field.sort-order", "ascending", "sequence_descending", False),
        ("ignore-delete", "true", "ignore_delete", True),
        ("ignore-update-before", "true", "ignore_update_before", True),
        ("rowkind.field", "kind", "rowkind_field", "kind"),
        ("write-only", "true", "write_only", True),
        ("num-sorted-run.compaction-trigger", "3", "num_levels", 4),
        ("num-sorted-run.compaction-trigger", str(2**31 - 1), "num_levels", 2**31 - 1),
        ("num-levels", "2", "num_levels", 2),
        ("partition.default-name", "none", "partition_default_name", "none"),
        ("partition.legacy-name", "false", "partition_legacy_name", False),
        ("file-index.in-manifest-threshold", "0", "file_index_in_manifest_threshold", 0),
        ("file-index.read.enabled", "false", "file_index_read_enabled", False),
        ("metadata.stats-mode", "TRUNCATE(8)", "stats_mode", "truncate(8)"),
        ("metadata.stats-keep-first-n-columns", "0", "stats_keep_first_columns", 0),
        ("metadata.stats-dense-store", "false", "stats_dense_store", False),
        ("manifest.compression", "snappy", "manifest_compression", "snappy"),
        ("manifest.target-file-size", "1 g", "manifest_target_file_size", 2**30),
        ("manifest.merge-min-count", "+3", "manifest_merge_min_count", 3),
        ("commit.user-prefix", "etl", "commit_user_prefix", "etl"),
    ],
)
def test_every_option_that_is_honoured_is_read(
    key: str, text: str, attribute: str, value: object
) -> None:
    assert getattr(parse({key: text}), attribute) == value


def test_some_code_reads_every_option_that_is_honoured() -> None:
    attributes = {attribute for attribute, _ in HONOURED.values()}
    assert attributes - set(_read_attributes()) == set()


def _read_attributes() -> Iterator[str]:
    """The attributes of options that the code of Paimon tables reads."""
    package = Path(tables.__file__).parent
    for path in (*package.glob("paimon/**/*.py"), *package.glob("maintenance/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Attribute(
                    value=ast.Name(id="options" | "parsed")
                    | ast.Attribute(attr="options" | "_options")
                ):
                    yield node.attr
                case ast.Attribute(value=ast.Name(id="self")) if path.name == "options.py":
                    yield node.attr


def test_a_table_without_options_has_the_defaults() -> None:
    assert parse({}) == TableOptions()
    assert parse({}).target_file_size == 256 * 2**20
    keyed = parse({}, keyed=True)
    assert keyed == TableOptions(target_file_size=128 * 2**20, has_primary_key=True)


def test_options_are_values() -> None:
    options = parse({"bucket": "4", "my-own": "1"})
    assert pickle.loads(pickle.dumps(options)) == options
    assert len({options, parse({"my-own": "1", "bucket": "4"})}) == 1
    assert options != parse({"bucket": "5", "my-own": "1"})


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("bucket", " 4", "a whole number from -2 to 2147483647"),
        ("bucket", "4.0", "a whole number from -2 to 2147483647"),
        ("bucket", "-3", "a whole number from -2 to 2147483647"),
        ("bucket", "0", "-1, or 1 and more"),
        ("num-levels", "2147483648", "a whole number from 1 to 2147483647"),
        ("deletion-vectors.enabled", "yes", "true or false"),
        ("deletion-vectors.enabled", " true", "true or false"),
        (
            "merge-engine",
            "partial_update",
            "deduplicate, partial-update, aggregation or first-row",
        ),
        ("sequence.field.sort-order", "down", "ascending or descending"),
        ("sequence.field", "a,,b", "names of columns with commas between"),
        (
            "target-file-size",
            "1.5 mb",
            f"a whole number of bytes from 0 to {2**63 - 1}, as 500, 16kb or 1 mb",
        ),
        ("metadata.stats-mode", "truncate(0)", "none, counts, full or truncate(n)"),
    ],
)
def test_a_bad_value_is_named_with_what_was_expected(key: str, text: str, expected: str) -> None:
    with pytest.raises(OptionError) as error:
        parse({key: text})
    assert str(error.value) == f"{key}: found {text!r}, expected {expected}"


@pytest.mark.parametrize(("text", "bytes_"), [("2 MB", 2**21), ("1b", 1), (" 5 Bytes", 5)])
def test_sizes_are_read_as_paimon_does(text: str, bytes_: int) -> None:
    assert size(text) == bytes_


# --- older names


def test_an_older_name_counts_where_that_of_today_is_not_given() -> None:
    assert parse({"write.compaction-skip": "true"}).write_only
    assert not parse({"write.compaction-skip": "true", "write-only": "false"}).write_only
    assert parse({"deduplicate.ignore-delete": "true"}).ignore_delete


def test_of_three_older_names_the_first_counts_whatever_the_order() -> None:
    older = {"partial-update.ignore-delete": "false", "first-row.ignore-delete": "true"}
    assert resolve_aliases(older) == {"ignore-delete": "true"}
    assert resolve_aliases(dict(reversed(older.items()))) == {"ignore-delete": "true"}


def test_an_older_name_of_a_refused_option_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"^scan\.mode=from-snapshot: cannot read"):
        parse({"log.scan": "from-snapshot"})


# --- the classes of keys


def test_no_key_is_both_passed_over_and_refused_or_honoured() -> None:
    listed = set(PASSED_OVER)
    assert len(listed) == len(PASSED_OVER)
    assert not listed & HONOURED.keys()
    assert not listed & REFUSALS.keys()
    assert not listed & ALIASES.keys()


def test_every_older_name_leads_to_a_key_of_today() -> None:
    assert [key for key in ALIASES.values() if not is_known(key) or key in ALIASES] == []


def test_keys_that_are_passed_over_and_a_users_own_leave_a_table_writable() -> None:
    options = parse(dict.fromkeys([*PASSED_OVER, "my-own"], "?"), keyed=True)
    assert allowed_writes(options) == list(WRITES)
    assert options == TableOptions(
        target_file_size=128 * 2**20, has_primary_key=True, raw=options.raw
    )


@pytest.mark.parametrize("key", sorted(REFUSALS))
def test_a_refused_option_is_named_and_its_default_is_not_refused(key: str) -> None:
    refusal = REFUSALS[key]
    option = key.replace("<column>", "tags")
    bad = {
        "changelog-producer": "lookup",
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "bucket-function.type": "hive",
    }.get(key, "something")
    others = {"deletion-vectors.enabled": "true"} if key == "merge-engine" else {}
    for value in refusal.allowed:
        for text in (value, value.upper()):
            assert allowed_writes(parse({option: text}, keyed=True)) == list(WRITES)
    if "read" in refusal.operations:
        with pytest.raises(UnsupportedError) as error:
            parse({option: bad}, keyed=True)
        assert str(error.value) == f"{option}={bad}: cannot read the table: {refusal.why}"
        return
    options = parse({option: bad} | others, keyed=refusal.keyed is not False)
    assert allowed_writes(options) == [name for name in WRITES if name not in refusal.operations]
    for operation in WRITES:
        if operation in refusal.operations:
            with pytest.raises(UnsupportedError) as error:
                options.require_writable(operation)
            verb = {"build": "build its indexes", "compact": "compact the table"}.get(
                operation, f"{operation} rows"
            )
            assert str(error.value) == f"{option}={bad}: cannot {verb}: {refusal.why}"


def test_which_options_stop_which_writes() -> None:
    stopped: dict[str, set[str]] = {name: set() for name in ("read", *WRITES)}
    for key, refusal in REFUSALS.items():
        first = next(name for name in stopped if name in refusal.operations)
        stopped[first].add(key)
    assert {"type", "branch", "scan.tag-name", "data-evolution.enabled"} <= stopped["read"]
    assert stopped["build"] == {
        "manifest.format",
        "metadata.iceberg.storage",
        "commit.callbacks",
        "commit.strict-mode.last-safe-snapshot",
        "pk-bitmap.index.columns",
        "pk-btree.index.columns",
        "pk-full-text.index.columns",
        "pk-multivalue.index.columns",
        "pk-vector.index.columns",
    }
    assert stopped["delete"] == {
        "delete.force-produce-changelog",
        "ignore-delete",
        "write.sequence-number-init-mode",
    }
    assert not stopped["upsert"] | stopped["compact"]


def test_what_an_upsert_follows_of_rows_and_what_only_a_compaction_may_pass_over() -> None:
    upsert = {key for key, refusal in REFUSALS.items() if "upsert" in refusal.operations}
    compact = {key for key, refusal in REFUSALS.items() if "compact" in refusal.operations}
    append = {key for key, refusal in REFUSALS.items() if "append" in refusal.operations}
    assert append - upsert == {"upsert-key"}
    assert compact < upsert
    assert upsert - compact == {
        "bucket-function.type",
        "metastore.partitioned-table",
        "metastore.tag-to-partition.preview",
        "partition.end-input-to-done",
        "partition.timestamp-format.strict",
        "tag.automatic-creation",
        "visibility-callback.enabled",
        "write.sequence-number-init-mode",
    }
    for honoured in ("ignore-delete", "ignore-update-before", "rowkind.field", "write-only"):
        assert honoured in HONOURED
        assert honoured not in upsert | compact


@pytest.mark.parametrize("key", [key for key in REFUSALS if REFUSALS[key].keyed])
def test_options_of_primary_keys_do_not_stop_a_table_without_one(key: str) -> None:
    value = {"changelog-producer": "input", "merge-engine": "first-row"}.get(key, "true")
    assert allowed_writes(parse({key: value})) == list(WRITES)


def test_a_delete_by_rows_that_delete_is_a_changelog() -> None:
    options = {"delete.force-produce-changelog": "true"}
    assert allowed_writes(parse(options, keyed=True)) == list(WRITES)
    assert allowed_writes(parse(options)) == [name for name in WRITES if name != "delete"]


VECTORS = {"deletion-vectors.enabled": "true"}
MERGED_LATE = VECTORS | {"deletion-vectors.merge-on-read": "true"}


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_another_merge_engine_is_read_only_where_rows_are_merged_already(engine: str) -> None:
    options = {"merge-engine": engine}
    assert allowed_writes(parse(options | VECTORS, keyed=True)) == ["build"]
    for unmerged in (options, options | MERGED_LATE):
        with pytest.raises(UnsupportedError, match=f"^merge-engine={engine}: cannot read"):
            parse(unmerged, keyed=True)


def test_first_rows_are_read_without_vectors() -> None:
    assert allowed_writes(parse({"merge-engine": "first-row"}, keyed=True)) == ["build"]


@pytest.mark.parametrize(
    ("options", "skipped"),
    [
        ({}, False),
        (VECTORS, True),
        (MERGED_LATE, False),
        ({"deletion-vectors.merge-on-read": "true"}, False),
        ({"merge-engine": "first-row"}, True),
    ],
    ids=str,
)
def test_level_0_is_left_out_where_readers_do_not_merge(
    options: dict[str, str], skipped: bool
) -> None:
    assert parse(options, keyed=True).skips_level_0 is skipped
    assert parse(options).skips_level_0 is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bucket": "-2"}, "bucket=-2: cannot read the table: rows without a bucket"),
        (
            {"file.format": "lance"},
            "file.format=lance: cannot read the table: only parquet, orc and avro",
        ),
    ],
)
def test_tables_that_cannot_be_read_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        parse(options, keyed=True)
    assert str(error.value) == message


def test_a_column_within_a_key_is_found() -> None:
    refusal = refusal_of("fields.a.b.map.storage-layout")
    assert refusal is REFUSALS["fields.<column>.map.storage-layout"]
    assert is_harmless("fields.a.b.sequence-group")
    assert not is_harmless("fields.a.b.map.storage-layout")


# --- statistics


@pytest.mark.parametrize(
    ("options", "modes"),
    [
        ({}, ("truncate(16)", "truncate(16)", "truncate(16)")),
        ({"metadata.stats-mode": "none"}, ("none", "none", "none")),
        ({"fields.b.stats-mode": "FULL"}, ("truncate(16)", "full", "truncate(16)")),
        ({"metadata.stats-keep-first-n-columns": "0"}, ("none", "none", "none")),
        (
            {"metadata.stats-keep-first-n-columns": "1", "fields.c.stats-mode": "counts"},
            ("truncate(16)", "none", "counts"),
        ),
    ],
)
def test_the_mode_of_a_column_is_its_own_or_that_of_the_table(
    options: dict[str, str], modes: tuple[str, ...]
) -> None:
    assert parse(options).stats_modes(["a", "b", "c"]) == modes


def test_a_bad_mode_of_a_column_is_named() -> None:
    with pytest.raises(OptionError, match=r"^fields\.b\.stats-mode: found 'all', expected none"):
        parse({"fields.b.stats-mode": "all"}).stats_modes(["a", "b"])


# --- new tables, indexes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"buckets": "4"}, "buckets: no such option of Paimon; did you mean bucket?"),
        (
            {"bucket": "4", "snapshot.retained": "1 d"},
            "snapshot.retained: no such option of Paimon; did you mean snapshot.time-retained?",
        ),
        ({"zzz": "1"}, "zzz: no such option of Paimon"),
        (
            {"primary-key": "id"},
            "primary-key: name the keys of a new table as keys, not as an option",
        ),
        (
            {"file-index.bitmap.version": "1"},
            "file-index.bitmap.version: use file-index.bitmap.<column>.version",
        ),
    ],
)
def test_a_new_table_takes_no_option_that_paimon_does_not_have(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError) as error:
        check_new_options(options)
    assert str(error.value) == message


def test_a_new_table_takes_what_paimon_has() -> None:
    check_new_options(
        {
            "bucket": "4",
            "write.compaction-skip": "true",
            "dynamic-bucket.target-row-num": "5",
            "sink.parallelism": "2",
            "fields.a.stats-mode": "none",
            "parquet.enable.dictionary": "false",
            "file-index.bitmap.columns": "a",
            "file-index.bitmap.a.version": "1",
            "file-index.in-manifest-threshold": "1 kb",
        }
    )


def test_index_options_are_independent_of_mistakes_in_others() -> None:
    options: dict[str, Any] = {
        "bucket": "4",
        "file-index.bloom-filter.a.items": "100",
        "file-index.bloom-filter.a.fpp": "2",
        "file-index.bitmap.version": "1",
        "file-index.bitmap.b.version": "1",
        "file-index.bloom-filter.columns": "a",
        "file-index.bitmaps.columns": "a",
        "file-index.read.enabled": "false",
    }
    usable, problems = file_index_options(options)
    assert usable == {
        "file-index.bloom-filter.columns": "a",
        "file-index.bloom-filter.a.items": "100",
    }
    assert problems == [
        "file-index.bitmaps.columns: no such option; did you mean file-index.bitmap.columns?",
        "file-index.bitmap.b.version: the column is not in file-index.bitmap.columns",
        "file-index.bitmap.version: use file-index.bitmap.<column>.version",
        "file-index.bloom-filter.a.fpp: found '2', expected a number above 0 and below 1",
    ]


def test_a_table_without_index_options_asks_for_nothing() -> None:
    assert file_index_options({"bucket": "4", "file-index.read.enabled": "true"}) == ({}, [])
