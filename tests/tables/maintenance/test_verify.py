"""Verify: sound tables pass, and each kind of damage is found and counted."""

from __future__ import annotations

import io
import json
import os
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from alcid import OptionError, StorageError
from alcid.config import Settings, using
from alcid.datafiles.parquet.columns import FileColumn
from alcid.formats.file_index import BUILDERS, distinct
from alcid.formats.file_index.bloom_filter import fill, hash_column
from alcid.formats.file_index.keys import read_column
from alcid.formats.puffin.compression import compress, decompress
from alcid.index.build import IndexedFile, index_file
from alcid.index.bundle import PayloadKind
from alcid.index.bundle.columns import schema_bytes
from alcid.storage import Storage
from alcid.tables.bundle_folder import BundleFolder
from alcid.tables.engine import Threads
from alcid.tables.maintenance import bundle_check
from alcid.tables.maintenance.findings import Example, IndexCheck
from alcid.tables.maintenance.parquet import verify
from alcid.tables.parquet.indexes import FolderIndexes
from alcid.types import INDEX_TYPES, DataType, indexes_for
from tests.index.bundle.test_bundle import with_version
from tests.tables import folders
from tests.tables.folders import (
    OPTIONS,
    bundle_names,
    path_of,
    put_table,
    rows_of,
)
from tests.tables.maintenance.kit import (
    Files,
    Workers,
    checks,
    folder_of,
    forge,
    problems,
    verified,
    with_entry,
    with_payload,
    with_statistics,
)

EVERY = OPTIONS | {
    "file-index.range-bitmap.columns": "score,name",
    "file-index.range-bitmap.name.chunk-size": 64,
    "file-index.bsi.columns": "id",
}
NAMES = [
    "bitmap of 'class_id'",
    "bloom-filter of 'id'",
    "bsi of 'id'",
    "range-bitmap of 'name'",
    "range-bitmap of 'score'",
    "bitmap of 'tags[color]'",
]
FIRST, SECOND = path_of(0), path_of(1)


@pytest.fixture
def local(tmp_path: Path) -> Storage:
    return Storage.open(tmp_path / "table")


def indexes_only(report: Any) -> dict[str, IndexCheck]:
    return {
        name: check
        for name, check in checks(report).items()
        if not name.startswith(("pages", "stat"))
    }


def every_type(seed: int) -> pa.Table:
    """Columns of every type that an index allows, with nulls."""
    rng = np.random.default_rng(seed)
    numbers = [None if number % 11 == 0 else int(number) for number in rng.integers(0, 100, 300)]

    def column(make: Any, kind: Any) -> pa.Array:
        return pa.array([None if number is None else make(number) for number in numbers], kind)

    moment = datetime(2025, 8, 1, tzinfo=UTC)
    return pa.table(
        {
            "flag": column(lambda n: n % 2 == 0, pa.bool_()),
            "tiny": column(lambda n: n - 50, pa.int8()),
            "small": column(lambda n: n * 300, pa.int16()),
            "plain": column(lambda n: n * 10**7, pa.int32()),
            "big": column(lambda n: (n - 50) * 10**17, pa.int64()),
            "single": column(lambda n: n / 7 if n % 5 else float("nan"), pa.float32()),
            "double": column(lambda n: -0.0 if n % 3 else n / 7, pa.float64()),
            "money": column(lambda n: Decimal(n).scaleb(-2), pa.decimal128(12, 2)),
            "day": column(lambda n: date(1970, 1, 1 + n % 28), pa.date32()),
            "local": column(
                lambda n: moment.replace(microsecond=n, tzinfo=None), pa.timestamp("us")
            ),
            "instant": column(lambda n: moment.replace(second=n % 60), pa.timestamp("ms", "UTC")),
            "text": column(lambda n: "é" * (n % 80), pa.string()),
            "bytes": column(lambda n: bytes([n]) * n, pa.binary()),
        }
    )


def test_a_table_of_all_types_is_sound(local: Storage) -> None:
    schema = every_type(0).schema
    taken = [
        (index_type, field.name)
        for index_type in INDEX_TYPES
        for field in schema
        if index_type in indexes_for(DataType.from_arrow(field.type))
    ]
    options = {
        f"file-index.{index_type}.columns": ",".join(n for kind, n in taken if kind == index_type)
        for index_type in INDEX_TYPES
    }
    for number in range(3):
        put_table(local, f"part-{number}.parquet", every_type(number))
    put_table(local, "empty.parquet", every_type(0).slice(0, 0))
    built = FolderIndexes(local).build(
        options
        | {
            "file-index.bloom-filter.text.items": 5000,
            "file-index.bitmap.text.version": 1,
            "file-index.bitmap.big.index-block-size": 200,
            "file-index.range-bitmap.big.chunk-size": 0,
        }
    )
    assert built.skipped == ()
    report = verified(local)
    assert (report.ok, report.problems, report.files, report.checked) == (True, (), 4, 4)
    assert (report.rows, report.unindexed, report.gone, report.leftovers) == (900, 0, 0, ())
    assert all(
        index == IndexCheck(index.column, index.index_type, 4, 4) for index in report.indexes
    )
    others = [(kind, name) for kind in ("pages", "statistics") for name in schema.names]
    assert {(index.index_type, index.column) for index in report.indexes} == {*taken, *others}


def test_the_same_is_found_everywhere_and_by_any_number_of_workers(storage: Storage) -> None:
    folders.fill(storage, 4)
    FolderIndexes(storage).build(EVERY)
    report = verified(storage)
    assert (report.ok, report.checked, list(indexes_only(report))) == (True, 4, NAMES)

    def swap(files: Files) -> None:
        first, second = files[FIRST], files[SECOND]
        kind = PayloadKind.index("class_id", "bitmap")
        files[FIRST] = with_payload(first, kind, second.payloads[kind])

    forge(storage, EVERY, swap)
    reports = [
        replace(verify(storage, folder_of(storage), engine), seconds=0.0)
        for engine in (Threads(), Workers(1), Workers(3), Workers(4))
    ]
    assert problems(reports[0]) == [(FIRST, "bitmap of 'class_id'")]
    assert [report == reports[0] for report in reports] == [True] * 4


def test_it_reports_its_progress(local: Storage) -> None:
    folders.fill(local, 3)
    FolderIndexes(local).build(OPTIONS)
    progress: list[tuple[int, int, int]] = []
    verified(local, progress=lambda *state: progress.append(state))
    assert progress == [(1, 3, 60), (2, 3, 120), (3, 3, 180)]


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "bloom" not in name and "tags" not in name]
)
def test_a_payload_of_another_file_is_wrong_about_rows(local: Storage, name: str) -> None:
    tables = folders.fill(local, 3)
    index_type, _, column = name.replace("'", "").partition(" of ")
    kind = PayloadKind.index(column, index_type)

    def swap(files: Files) -> None:
        first, second = files[FIRST].payloads[kind], files[SECOND].payloads[kind]
        files[FIRST] = with_payload(files[FIRST], kind, second)
        files[SECOND] = with_payload(files[SECOND], kind, first)

    forge(local, EVERY, swap)
    first, second = (tables[path][column].to_pylist() for path in (FIRST, SECOND))
    wrong = [row for row, pair in enumerate(zip(first, second, strict=True)) if not same(*pair)]
    report = verified(local)
    assert wrong
    assert problems(report) == [(FIRST, name), (SECOND, name)]
    example = Example(FIRST, wrong[0], repr(first[wrong[0]]))
    expected = IndexCheck(
        column,
        index_type,
        checked=3,
        sound=1,
        differing=2,
        false_negatives=2 * len(wrong),
        false_positives=2 * len(wrong),
        example=example,
    )
    assert checks(report)[name] == expected
    assert not report.ok
    count = len(wrong)
    problem = f"{count} rows missing, {count} rows too many, the first is row {wrong[0]}"
    assert report.problems[0].problem == problem


def same(first: Any, second: Any) -> bool:
    return repr(first) == repr(second)


def test_values_that_a_bloom_filter_hides_are_counted(local: Storage) -> None:
    tables = folders.fill(local, 2)
    kind = PayloadKind.index("id", "bloom-filter")
    ids = tables[FIRST]["id"]
    part = read_column(ids.slice(0, 57), DataType.parse("BIGINT"))

    def forget(files: Files) -> None:
        files[FIRST] = with_payload(files[FIRST], kind, fill(hash_column(part), 7, 1 << 20))

    forge(local, OPTIONS, forget)
    report = verified(local)
    assert problems(report) == [(FIRST, "bloom-filter of 'id'")]
    assert checks(report)["bloom-filter of 'id'"] == IndexCheck(
        "id",
        "bloom-filter",
        checked=2,
        sound=1,
        differing=1,
        false_negatives=3,
        example=Example(FIRST, 57, repr(ids[57].as_py())),
    )


def test_a_bloom_filter_with_more_bits_hides_nothing(local: Storage) -> None:
    folders.fill(local, 2)

    def add_bits(files: Files) -> None:
        kind = PayloadKind.index("id", "bloom-filter")
        payload = files[FIRST].payloads[kind] or b""
        files[FIRST] = with_payload(files[FIRST], kind, payload[:4] + b"\xff" * (len(payload) - 4))

    forge(local, OPTIONS, add_bits)
    report = verified(local)
    assert (report.ok, report.problems) == (True, ())
    check = checks(report)["bloom-filter of 'id'"]
    assert check == IndexCheck("id", "bloom-filter", checked=2, sound=1, differing=1)


def test_a_payload_that_cannot_be_read_is_damaged(local: Storage) -> None:
    folders.fill(local, 2)
    kinds = [
        PayloadKind.index("class_id", "bitmap"),
        PayloadKind.index("id", "bloom-filter"),
        PayloadKind.pages("name"),
    ]

    def spoil(files: Files) -> None:
        for kind in kinds:
            files[SECOND] = with_payload(files[SECOND], kind, b"\x02\xff\xff")

    forge(local, OPTIONS, spoil)
    report = verified(local)
    assert problems(report) == [(SECOND, str(kind)) for kind in sorted(kinds)]
    for kind in kinds:
        check = checks(report)[str(kind)]
        assert (check.checked, check.sound, check.damaged, check.differing) == (2, 1, 1, 0)


def test_an_index_that_a_column_cannot_have_is_wrong(local: Storage) -> None:
    folders.fill(local, 1)
    payload = BUILDERS["bsi"](read_column(pa.array(range(60)), DataType.parse("BIGINT")))

    def add(files: Files) -> None:
        for kind in (PayloadKind.index("name", "bsi"), PayloadKind.index("nowhere", "bsi")):
            files[FIRST] = with_payload(files[FIRST], kind, payload)
        files[FIRST] = with_payload(files[FIRST], PayloadKind.pages("nowhere"), b"\1")

    forge(local, OPTIONS, add)
    report = verified(local)
    expected = ["bsi of 'name'", "bsi of 'nowhere'", "pages of 'nowhere'"]
    assert problems(report) == [(FIRST, what) for what in expected]
    assert "cannot be of this file" in report.problems[0].problem


@pytest.mark.parametrize(
    ("column", "change", "problem"),
    [
        ("id", {"minimum": 10**6}, ""),
        ("id", {"minimum": -1}, "min: found -1, expected "),
        ("id", {"maximum": 10**7}, "max: found 10000000, expected "),
        ("id", {"maximum": None}, None),
        ("id", {"minimum": -1, "minimum_exact": False}, None),
        ("id", {"nulls": 1}, "nulls: found 1, expected 0"),
        ("id", {"nulls": None}, None),
        ("score", {"has_nan": False}, "has_nan: found False, expected True"),
        ("score", {"maximum": 0.5, "maximum_exact": False}, "max: found 0.5, expected 0.9"),
        ("name", {"minimum": b"name 5", "minimum_exact": False}, "min: found b'name 5', expected"),
        ("name", {"minimum": b"n", "minimum_exact": False}, None),
        ("class_id", {"data_type": DataType.parse("BIGINT")}, "statistics of BIGINT, which is not"),
    ],
    ids=str,
)
def test_statistics_that_are_not_true_are_found(
    local: Storage, column: str, change: dict[str, Any], problem: str | None
) -> None:
    """Of indexed columns, and of those of which only the footer was read."""
    folders.fill(local, 2)

    def lie(files: Files) -> None:
        files[SECOND] = with_statistics(files[SECOND], column, **change)

    if problem == "":  # which no bundle can store
        with pytest.raises(TypeError, match="a least value above the greatest"):
            forge(local, OPTIONS, lie)
        return
    forge(local, OPTIONS, lie)
    report = verified(local)
    wrong = problem is not None
    assert problems(report) == [(SECOND, f"statistics of {column!r}")] * wrong
    check = checks(report)[f"statistics of {column!r}"]
    assert check == IndexCheck(
        column, "statistics", checked=2, sound=2 - wrong, differing=int(wrong)
    )
    assert not wrong or str(report.problems[0].problem).startswith(problem or "")


def test_an_index_of_more_text_than_would_be_built_now_is_compared(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_table(local, "a.parquet", pa.table({"text": [f"{row:0100}" for row in range(300)]}))
    options = {f"file-index.{kind}.columns": "text" for kind in ("bitmap", "range-bitmap")}
    FolderIndexes(local).build(options)
    monkeypatch.setattr(distinct, "MOST_KEY_BYTES", 1000)
    report = verified(local)
    assert (report.ok, [index.sound for index in report.indexes]) == (True, [1, 1, 1, 1])

    def lie(files: Files) -> None:
        (path,) = files
        others = read_column(pa.array(["x"] * 300), DataType.parse("STRING"))
        for kind in ("bitmap", "range-bitmap"):
            payload = BUILDERS[kind](others)
            files[path] = with_payload(files[path], PayloadKind.index("text", kind), payload)

    forge(local, options, lie)
    expected = [("a.parquet", "bitmap of 'text'"), ("a.parquet", "range-bitmap of 'text'")]
    assert problems(verified(local)) == expected


def test_bounds_in_nanoseconds_are_compared_which_python_has_not(local: Storage) -> None:
    values = pa.array([-7, 5, 1_700_000_000_123_456_789], pa.timestamp("ns"))
    put_table(local, "a.parquet", pa.table({"at": values}))
    options = {"file-index.bloom-filter.columns": "at"}

    def cut(files: Files) -> None:
        lower = {"minimum": pa.scalar(-8, values.type), "minimum_exact": False}
        files["a.parquet"] = with_statistics(files["a.parquet"], "at", **lower)

    forge(local, options, cut)
    assert verified(local).ok

    def lie(files: Files) -> None:
        lower = {"minimum": pa.scalar(-6, values.type), "minimum_exact": False}
        files["a.parquet"] = with_statistics(files["a.parquet"], "at", **lower)
        others = read_column(values[1:], DataType.parse("TIMESTAMP(9)"))
        bloom = BUILDERS["bloom-filter"](others, items=100, fpp=0.001)
        kind = PayloadKind.index("at", "bloom-filter")
        files["a.parquet"] = with_payload(files["a.parquet"], kind, bloom)

    forge(local, options, lie)
    report = verified(local)
    assert {(problem.what, str(problem.problem)) for problem in report.problems} == {
        ("statistics of 'at'", "min: found -6, expected -7"),
        ("bloom-filter of 'at'", "1 row missing, the first is row 0"),
    }
    (example,) = (index.example for index in report.indexes if index.example is not None)
    assert example == Example("a.parquet", 0, "1969-12-31 23:59:59.999999993")


def test_long_text_has_bounds_that_are_true_though_they_are_no_values(local: Storage) -> None:
    values = ["a" * 100 + "x", "b", "\U0010ffff" * 40]
    put_table(local, "a.parquet", pa.table({"text": values, "high": [b"\xff" * 70] * 3}))
    options = {"file-index.bitmap.columns": "text"}
    FolderIndexes(local).build(options)
    assert verified(local).ok

    def cut(files: Files) -> None:
        (path,) = files
        lower = {"minimum": b"a" * 20, "minimum_exact": False, "maximum": None}
        files[path] = with_statistics(files[path], "text", **lower)

    forge(local, options, cut)
    assert verified(local).ok

    def lie(files: Files) -> None:
        (path,) = files
        lower = {"minimum": b"a" * 63 + b"b", "minimum_exact": False}
        files[path] = with_statistics(files[path], "text", **lower)
        upper = {"minimum": None, "maximum": b"\xff" * 64, "maximum_exact": False}
        files[path] = with_statistics(files[path], "high", **upper)

    forge(local, options, lie)
    expected = [("a.parquet", "statistics of 'high'"), ("a.parquet", "statistics of 'text'")]
    assert problems(verified(local)) == expected


def test_statistics_of_an_index_that_was_dropped_are_compared_with_the_values(
    local: Storage,
) -> None:
    folders.fill(local, 2)
    indexes = FolderIndexes(local)
    indexes.build(EVERY)
    indexes.drop(["score"])
    report = verified(local)
    assert report.ok
    assert checks(report)["statistics of 'score'"].sound == 2


def test_wrong_page_places_are_found(local: Storage) -> None:
    tables = folders.fill(local, 1)
    put_table(local, SECOND, rows_of(1, count=61))
    assert tables[FIRST].num_rows == 60
    data = io.BytesIO()
    pq.write_table(tables[FIRST], data, row_group_size=20)
    local.put("dt=2025-08-01/split.parquet", data.getvalue())
    split = "dt=2025-08-01/split.parquet"
    kind, other = PayloadKind.pages("id"), PayloadKind.pages("score")

    def swap(files: Files) -> None:
        first, second = files[FIRST].payloads[kind], files[SECOND].payloads[kind]
        files[FIRST] = with_payload(files[FIRST], kind, second)
        files[SECOND] = with_payload(files[SECOND], kind, first)
        files[split] = with_payload(files[split], other, files[split].payloads[kind])

    forge(local, OPTIONS, swap)
    report = verified(local)
    assert problems(report) == [(FIRST, str(kind)), (SECOND, str(kind)), (split, str(other))]
    check = checks(report)["pages of 'id'"]
    assert (check.checked, check.sound, check.differing, check.damaged) == (3, 1, 2, 0)
    check = checks(report)["pages of 'score'"]
    assert (check.checked, check.sound, check.differing, check.damaged) == (3, 2, 0, 1)


def test_page_places_in_other_bytes_are_the_same(local: Storage) -> None:
    folders.fill(local, 1)
    kind = PayloadKind.pages("id")

    def pack_twice(files: Files) -> None:
        payload = files[FIRST].payloads[kind] or b""
        content = decompress("zstd", payload[1:], 1 << 20, file="x", offset=0)
        packed = zstandard.ZstdCompressor(level=19, write_checksum=True).compress(content)
        assert packed != payload[1:] == compress("zstd", content)
        files[FIRST] = with_payload(files[FIRST], kind, payload[:1] + packed)

    forge(local, OPTIONS, pack_twice)
    assert checks(verified(local))["pages of 'id'"].sound == 1


def test_wrong_rows_footer_and_schema_are_found(local: Storage) -> None:
    folders.fill(local, 3)
    third = path_of(2)
    columns = (FileColumn("id", 0, pa.int32(), DataType.parse("INT")),)

    def lie(files: Files) -> None:
        files[FIRST] = with_entry(files[FIRST], rows=61)
        files[SECOND] = with_entry(files[SECOND], footer_crc=1)
        files[third] = with_entry(files[third], schema=schema_bytes(columns))

    forge(local, {"file-index.bitmap.columns": "class_id"}, lie)
    report = verified(local)
    assert problems(report) == [(FIRST, "rows"), (SECOND, "footer"), (third, "schema")]
    assert report.problems[0].problem == "found 61, expected 60"
    # Without a schema options are unknown, and indexes are compared by their answers.
    assert checks(report)["bitmap of 'class_id'"].sound == 3


def test_an_entry_without_schema_and_footer_is_no_problem(local: Storage) -> None:
    folders.fill(local, 1)

    def forget(files: Files) -> None:
        files[FIRST] = with_entry(files[FIRST], schema=None, footer_crc=None, statistics={})

    forge(local, EVERY | {"file-index.bitmap.class_id.version": 1}, forget)
    report = verified(local)
    assert report.ok
    assert {name: check.sound for name, check in indexes_only(report).items()} == dict.fromkeys(
        NAMES, 1
    )


def damage(storage: Storage, name: str, offset: int) -> None:
    path = Path(storage.location) / "_alcid" / name
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_a_damaged_block_is_found(local: Storage) -> None:
    folders.fill(local, 2)
    FolderIndexes(local).build(OPTIONS)
    (name,) = bundle_names(local)
    damage(local, name, 10)
    report = verified(local)
    assert problems(report) == [(FIRST, "bitmap of 'class_id'")]
    assert "damaged block of bitmap of 'class_id', file 0 at offset 4" in str(report.problems[0])
    check = checks(report)["bitmap of 'class_id'"]
    assert (check.checked, check.sound, check.damaged) == (2, 1, 1)


def test_a_damaged_directory_and_a_damaged_bundle_are_found(local: Storage) -> None:
    folders.fill(local, 2)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    (name,) = bundle_names(local)
    shutil.copy(
        Path(local.location) / "_alcid" / name,
        Path(local.location) / "_alcid" / "20200101T000000.000000Z-0123456789ab.puffin",
    )
    damage(local, "20200101T000000.000000Z-0123456789ab.puffin", -1)
    (bundle,) = folder_of(local).load(on_damage=lambda _: None).bundles
    directories = next(b for b in bundle._reader.blobs if b.type == "alcid-directory-v1")
    damage(local, name, directories.offset)  # of the first index
    report = verified(local)
    assert problems(report) == [
        ("20200101T000000.000000Z-0123456789ab.puffin", "bundle"),
        (name, "bitmap of 'class_id'"),
    ]
    assert checks(report)["bitmap of 'class_id'"] == IndexCheck("class_id", "bitmap", damaged=2)
    assert checks(report)["bloom-filter of 'id'"].sound == 2
    (left,) = report.leftovers
    assert (left.path, left.reason) == (
        "_alcid/20200101T000000.000000Z-0123456789ab.puffin",
        "damaged",
    )


def test_a_damaged_table_of_files_is_found(local: Storage) -> None:
    folders.fill(local, 2)
    FolderIndexes(local).build(OPTIONS)
    (name,) = bundle_names(local)
    (bundle,) = folder_of(local).load().bundles
    files = next(b for b in bundle._reader.blobs if b.type == "alcid-files-v1")
    damage(local, name, files.offset + files.length - 1)
    report = verified(local)
    assert problems(report) == [(name, "files")]
    assert (report.checked, report.unindexed) == (0, 2)


def test_what_is_missing_stale_or_gone_is_counted_and_no_problem(local: Storage) -> None:
    folders.fill(local, 4)
    FolderIndexes(local).build(OPTIONS)
    local.delete([path_of(0)])
    put_table(local, path_of(1), rows_of(50))
    put_table(local, path_of(7), rows_of(7))
    put_table(local, path_of(8), rows_of(8).select(["score", "name"]))
    report = verified(local)
    assert (report.ok, report.files, report.checked, report.unindexed) == (True, 5, 2, 3)
    assert (report.gone, report.gone_example) == (1, path_of(0))
    for check in indexes_only(report).values():
        # It is not known that the last file has no such column: nothing was indexed for it.
        assert (check.sound, check.stale, check.missing) == (2, 1, 2)
    FolderIndexes(local).build({"file-index.bitmap.columns": "class_id"})
    check = checks(verified(local))["bitmap of 'class_id'"]
    assert (check.checked, check.sound, check.stale, check.missing) == (4, 4, 0, 0)
    check = checks(verified(local))["bloom-filter of 'id'"]
    assert (check.checked, check.sound, check.stale, check.missing) == (2, 2, 1, 1)


def test_a_missing_bundle_leaves_its_files_without_an_index(local: Storage) -> None:
    folders.fill(local, 1)
    FolderIndexes(local).build(OPTIONS)
    names = bundle_names(local)
    folders.fill(local, 1, first=1)
    FolderIndexes(local).build(OPTIONS)
    folder_of(local).remove(names)
    report = verified(local)
    assert (report.ok, report.checked, report.unindexed) == (True, 1, 1)
    assert [check.missing for check in indexes_only(report).values()] == [1, 1, 1]
    folder_of(local).remove(bundle_names(local))
    report = verified(local)
    assert (report.ok, report.checked, report.unindexed, report.indexes) == (True, 0, 2, ())


def test_leftovers_are_listed(local: Storage) -> None:
    folders.fill(local, 1)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    (old,) = bundle_names(local)
    folder_of(local).replace([old])
    job = "20250801T093000.123456Z-5f1e0c7ab2d4"
    local.put(f"_alcid/staging/{job}/a.parquet", b"12345")
    local.put(f"_alcid/staging/{job}/b.puffin", b"123")
    report = verified(local)
    leftovers = [(leftover.path, leftover.reason) for leftover in report.leftovers]
    assert leftovers == [(f"_alcid/{old}", "replaced"), (f"_alcid/staging/{job}", "staged")]
    assert report.leftovers[1].bytes == 8
    assert report.ok


def test_a_bundle_of_a_later_version_is_reported(local: Storage) -> None:
    folders.fill(local, 1)
    name = folder_of(local).put(with_version("2.0"))
    report = verified(local)
    assert (report.ok, report.later, report.leftovers) == (True, (name,), ())


def test_a_damaged_data_file_is_found(local: Storage) -> None:
    folders.fill(local, 2)
    FolderIndexes(local).build(OPTIONS)
    path = Path(local.location) / FIRST
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[4:100] = bytes(96)
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    report = verified(local)
    assert (problems(report), report.checked) == ([(FIRST, "")], 2)


def test_a_file_that_changes_meanwhile_is_not_judged(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders.fill(local, 2)
    FolderIndexes(local).build(OPTIONS)

    def slow(*arguments: Any, **named: Any) -> IndexedFile:
        indexed = index_file(*arguments, **named)
        if named["path"] == FIRST:
            put_table(local, FIRST, rows_of(99, count=10))
        return indexed

    monkeypatch.setattr(bundle_check, "index_file", slow)
    report = verified(local)
    assert (report.ok, report.checked, report.changed, report.rows) == (True, 1, 1, 60)


def test_a_storage_that_fails_is_an_error(local: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    folders.fill(local, 1)
    FolderIndexes(local).build(OPTIONS)

    def fail(*_: Any, **__: Any) -> IndexedFile:
        raise StorageError("no route to it", file=FIRST)

    monkeypatch.setattr(bundle_check, "index_file", fail)
    with pytest.raises(StorageError, match="no route to it"):
        verified(local)


def test_a_sample_is_the_same_in_every_run_and_grows(local: Storage) -> None:
    folders.fill(local, 10)
    FolderIndexes(local).build({"file-index.bitmap.columns": "class_id"})

    def lie(files: Files) -> None:
        for path in files:
            files[path] = with_entry(files[path], rows=61)

    forge(local, {"file-index.bitmap.columns": "class_id"}, lie)

    def chosen(**options: Any) -> set[str]:
        report = verified(local, **options)
        assert report.checked == report.problem_count
        return {problem.file for problem in report.problems}

    few, more = chosen(sample=0.3), chosen(sample=0.6)
    assert (len(few), len(more), few < more, few == chosen(sample=0.3)) == (3, 6, True, True)
    assert len(chosen(sample=0.001)) == 1
    others = {frozenset(chosen(sample=0.3, seed=seed)) for seed in range(5)}
    assert len(others) == 5


@pytest.mark.parametrize("sample", [0, -1.0, 1.01, float("nan")])
def test_a_share_that_cannot_be_is_an_error(local: Storage, sample: float) -> None:
    with pytest.raises(OptionError, match="sample: found"):
        verified(local, sample=sample)


def test_columns_whose_names_differ_in_case_are_distinguished(local: Storage) -> None:
    data = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "ID": ["x", "y"]}), data)
    local.put("a.parquet", data.getvalue())
    with using(Settings("UTC", case_sensitive=True)):
        FolderIndexes(local).build({"file-index.bitmap.columns": "id,ID"})
    report = verified(local)
    assert report.ok
    assert [check.sound for check in indexes_only(report).values()] == [1, 1]


def test_indexes_in_a_folder_of_their_own_are_verified(local: Storage, tmp_path: Path) -> None:
    folders.fill(local, 2)
    beside = Storage.open(tmp_path / "indexes")
    FolderIndexes(local, index_storage=beside).build(OPTIONS)
    report = verify(local, BundleFolder(beside), Threads())
    assert (report.ok, report.checked) == (True, 2)
    assert [check.sound for check in indexes_only(report).values()] == [2, 2, 2]


def test_a_report_is_text_and_plain_values(local: Storage) -> None:
    folders.fill(local, 3)
    FolderIndexes(local).build(OPTIONS)
    text = str(verified(local)).splitlines()
    assert text[0].startswith("checked 3 of 3 files (180 rows) in ")
    assert text[0].endswith(" s: ok")
    assert text[1:] == [
        "bitmap of 'class_id': 3 of 3 files sound",
        "bloom-filter of 'id': 3 of 3 files sound",
        "bitmap of 'tags[color]': 3 of 3 files sound",
    ]

    def lie(files: Files) -> None:
        files[FIRST] = with_entry(files[FIRST], rows=61)
        files[FIRST] = with_statistics(files[FIRST], "id", nulls=1)
        kind = PayloadKind.index("class_id", "bitmap")
        files[FIRST] = with_payload(files[FIRST], kind, b"\2")

    forge(local, OPTIONS, lie)
    local.put("_alcid/staging/job/a.parquet", b"1")
    local.delete([path_of(2)])
    report = verified(local)
    text = str(report).splitlines()
    assert text[0].endswith(" s: 3 problems")
    assert text[1:5] == [
        "bitmap of 'class_id': 1 of 2 files sound, 1 damaged",
        "bloom-filter of 'id': 2 of 2 files sound",
        "statistics of 'id': 1 of 2 files sound, 1 differ",
        "bitmap of 'tags[color]': 2 of 2 files sound",
    ]
    assert text[5].startswith(f"wrong: {FIRST}: rows: found 61, expected 60")
    assert text[8:] == [f"1 file gone, as {path_of(2)}", "left over: 1 staged"]
    as_json = json.loads(json.dumps(report.to_dict()))
    assert (as_json["ok"], as_json["problem_count"], as_json["checked"]) == (False, 3, 2)
    assert as_json["problems"][0] == {
        "file": FIRST,
        "what": "rows",
        "problem": "found 61, expected 60",
    }
    assert as_json["leftovers"][0]["path"] == "_alcid/staging/job"
