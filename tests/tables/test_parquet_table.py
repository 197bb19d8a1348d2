"""A folder as a table, and changes of its files while it is in use."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid import (
    DamagedIndexWarning,
    FileGoneError,
    StorageError,
    UnsupportedError,
)
from tests.datafiles.parquet.kit import int96_written, java_int96

ROWS = 20_000
MAP = pa.map_(pa.string(), pa.int64())
OPTIONS = {"file-index.bitmap.columns": "id", "file-index.range-bitmap.columns": "score"}


def write(path: Path, ids: range, *, score: float = 1.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"id": pa.array(ids, pa.int64()), "score": [score * i for i in ids]})
    pq.write_table(
        table,
        path,
        row_group_size=5000,
        write_page_index=True,
        compression="none",
        use_dictionary=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part in range(3):
        write(tmp_path / "t" / f"part-{part}.parquet", range(part * ROWS, (part + 1) * ROWS))
    return tmp_path / "t"


def ids(table: alcid.ParquetTable, where: str) -> list[int]:
    keys: list[int] = table.scan(where, columns=["id"]).to_arrow()["id"].to_pylist()
    return keys


def test_a_new_file_is_seen_after_refresh(folder: Path) -> None:
    table = alcid.parquet(folder)
    write(folder / "part-9.parquet", range(90_000, 90_010))
    assert table.count() == 3 * ROWS
    table.refresh()
    assert (table.count(), table.files) == (3 * ROWS + 10, 4)


def test_a_file_that_is_replaced_is_read_as_it_is_now(folder: Path) -> None:
    table = alcid.parquet(folder)
    table.build_indexes(OPTIONS)
    assert ids(table, "id = 25000") == [25_000]
    write(folder / "part-1.parquet", range(80_000, 80_003))
    assert ids(table, "id >= 25000 AND id < 26000 OR id = 80001") == [80_001]
    assert [(index.fresh, index.stale) for index in table.indexes()] == [(2, 1), (2, 1)]


def test_a_file_that_is_gone_is_left_out_after_one_more_plan(folder: Path) -> None:
    table = alcid.parquet(folder)
    table.build_indexes(OPTIONS)
    (folder / "part-1.parquet").unlink()
    assert ids(table, "id IN (999, 25000, 45000)") == [999, 45_000]


def test_a_file_that_is_gone_again_and_again_is_an_error(folder: Path) -> None:
    table = alcid.parquet(folder)
    scan = table.scan("score > -1")
    victims = iter(("part-0.parquet", "part-1.parquet"))
    (folder / next(victims)).unlink()
    reopen = scan._reopen

    def reopen_and_lose() -> alcid.scan.TableFiles:
        files = reopen()
        (folder / next(victims)).unlink()
        return files

    scan._reopen = reopen_and_lose
    with pytest.raises(FileGoneError, match=r"part-1\.parquet"):
        scan.to_arrow()


def test_a_file_of_the_same_size_and_time_but_another_footer_is_not_trusted(folder: Path) -> None:
    path = folder / "part-1.parquet"
    table = alcid.parquet(folder)
    table.build_indexes(OPTIONS)
    size, times = path.stat().st_size, path.stat()
    write(path, range(ROWS, 2 * ROWS), score=-1.0)
    assert path.stat().st_size == size
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    fresh = alcid.parquet(folder)
    # That its bounds are wrong cannot be known before the file is opened.
    assert fresh.scan("score < 0").count() == 0
    scan = fresh.scan("id >= 0", columns=["score"], use_indexes=False)
    with pytest.warns(DamagedIndexWarning, match=r"part-1\.parquet: another footer"):
        assert scan.to_arrow().num_rows == 3 * ROWS
    assert fresh.scan("score < 0").count() == ROWS


def test_a_damaged_index_is_passed_over_with_a_warning_or_raises(folder: Path) -> None:
    table = alcid.parquet(folder)
    table.build_indexes(OPTIONS)
    (bundle,) = (folder / "_alcid").iterdir()
    data = bytearray(bundle.read_bytes())
    for offset in range(4, len(data) // 2, 700):  # payloads come first
        data[offset] ^= 1
    bundle.write_bytes(data)
    with pytest.warns(DamagedIndexWarning, match="not used"):
        assert ids(alcid.parquet(folder), "id = 25000") == [25_000]
    with pytest.raises(alcid.FormatError, match="bitmap of 'id'"):
        alcid.parquet(folder, strict=True).scan("id = 25000").to_arrow()


def test_indexes_may_be_elsewhere(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "indexes"
    table = alcid.parquet(folder, index_path=elsewhere)
    table.build_indexes(OPTIONS)
    assert not (folder / "_alcid").exists()
    scan = alcid.parquet(folder, index_path=elsewhere).scan("id = 7")
    assert scan.to_arrow()["id"].to_pylist() == [7]
    explanation = scan.explain()
    assert [(use.index, use.outcome) for use in explanation.indexes] == [("bitmap", "answered")]
    assert next(s for s in explanation.stages if s.name == "file index").bytes_read > 0


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no-such-folder"):
        alcid.parquet(tmp_path / "no-such-folder")


def test_columns_order_and_limit_are_checked_before_anything_is_read(folder: Path) -> None:
    table = alcid.parquet(folder)
    with pytest.raises(alcid.ColumnError, match="did you mean score"):
        table.scan(columns=["scor"])
    with pytest.raises(alcid.ColumnError, match="scor"):
        table.scan("scor > 1")
    with pytest.raises(alcid.ColumnError, match="nothing"):
        table.scan(order_by="nothing")
    with pytest.raises(alcid.PredicateError, match="limit"):
        table.scan(limit=-1)
    with pytest.raises(alcid.LiteralError, match="id"):
        table.scan("id = 'x'")


def test_arguments_of_a_wrong_kind_are_named(folder: Path) -> None:
    table = alcid.parquet(folder)
    with pytest.raises(alcid.ColumnError, match="columns: found the text 'id'"):
        table.scan(columns="id")
    for limit in ("3", 1.5):
        with pytest.raises(alcid.PredicateError, match="limit"):
            table.scan(limit=limit)  # type: ignore[arg-type]
    with pytest.raises(alcid.UnsupportedError, match="order_by"):
        table.scan(order_by=[("id", "DESC")])  # type: ignore[list-item]
    with pytest.raises(alcid.OptionError, match="options"):
        table.build_indexes(None)  # type: ignore[arg-type]
    with pytest.raises(alcid.OptionError, match="columns"):
        table.drop_indexes(columns="id")
    with pytest.raises(alcid.UnsupportedError, match=r"a file; a table is a folder: "):
        alcid.parquet(folder / "part-0.parquet")


def test_an_index_of_a_column_that_no_file_has_is_an_error(folder: Path) -> None:
    write(folder / "day=1" / "a.parquet", range(5))
    for part in range(3):
        (folder / f"part-{part}.parquet").unlink()
    table = alcid.parquet(folder)
    with pytest.raises(alcid.ColumnError, match="did you mean score"):
        table.build_indexes({"file-index.bitmap.columns": "scor"})
    with pytest.raises(alcid.ColumnError, match="day: stands in the paths"):
        table.build_indexes({"file-index.bitmap.columns": "day"})


@pytest.mark.parametrize("where", ["", "indexes", "a/b"])
def test_indexes_do_not_go_among_the_data(folder: Path, where: str) -> None:
    with pytest.raises(alcid.OptionError, match="index_path"):
        alcid.parquet(folder, index_path=folder / where)
    alcid.parquet(folder, index_path=folder / "_indexes")
    alcid.parquet(folder, index_path=f"{folder}-indexes")


def test_a_damaged_bundle_is_gone_after_the_next_build(folder: Path) -> None:
    table = alcid.parquet(folder)
    table.build_indexes(OPTIONS)
    (bundle,) = (folder / "_alcid").iterdir()
    data = bytearray(bundle.read_bytes())
    data[-20] ^= 1
    bundle.write_bytes(data)
    with pytest.warns(DamagedIndexWarning):
        table = alcid.parquet(folder)
    with pytest.warns(DamagedIndexWarning):
        table.build_indexes(OPTIONS)
    assert alcid.parquet(folder, strict=True).count("id = 25000") == 1


def test_a_delta_table_is_warned_of(folder: Path) -> None:
    (folder / "_delta_log").mkdir()
    with pytest.warns(alcid.AlcidWarning, match="Delta"):
        alcid.parquet(folder)


def test_keys_of_maps_are_asked_with_and_without_an_index(tmp_path: Path) -> None:
    maps = pa.array([[("x", i % 5)] if i % 7 else None for i in range(9000)], MAP)
    table = pa.table({"id": range(9000), "m": maps})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1000)
    expected = [i for i in range(9000) if i % 5 == 2 and i % 7]
    for options in (None, {"file-index.bitmap.columns": "m[x]"}):
        parquet_table = alcid.parquet(tmp_path)
        if options:
            parquet_table.build_indexes(options)
        assert ids(parquet_table, "m['x'] = 2") == expected
        assert parquet_table.count("m['x'] = 2") == len(expected)


def test_int96_is_an_instant_next_to_other_instants(tmp_path: Path) -> None:
    moments = pa.array([0, 86_400_000_000], pa.timestamp("us"))
    pq.write_table(
        pa.table({"at": moments}), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True
    )
    pq.write_table(
        pa.table({"at": moments.cast(pa.timestamp("us", "UTC"))}), tmp_path / "b.parquet"
    )
    table = alcid.parquet(tmp_path)
    assert table.schema.field("at").type == pa.timestamp("us", "UTC")
    assert table.count("at = TIMESTAMP'1970-01-02 00:00:00Z'") == 2
    pq.write_table(pa.table({"at": moments}), tmp_path / "c.parquet")
    with pytest.raises(alcid.UnsupportedError, match=r"c\.parquet: column at"):
        alcid.parquet(tmp_path)


def test_extension_columns_are_read_as_their_storage(tmp_path: Path) -> None:
    """JSON, UUID and nested columns: every predicate on other columns works, and on these too."""
    text = [f'{{"a": {row}}}' if row % 7 else None for row in range(90)]
    raw = pa.array([row.to_bytes(16, "big") for row in range(90)], pa.binary(16))
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(text))
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), raw)
    both = pa.StructArray.from_arrays([json, uuid], ["json", "uuid"])
    rows = pa.table({"id": range(90), "json": json, "uuid": uuid, "both": both})
    pages = {"write_page_index": True, "write_batch_size": 10, "data_page_size": 1}
    pq.write_table(rows.slice(0, 45), tmp_path / "a.parquet", **pages)
    pq.write_table(rows.slice(45), tmp_path / "b.parquet", store_schema=False, **pages)
    table = alcid.parquet(tmp_path)
    plain = [
        pa.int64(),
        pa.string(),
        pa.binary(16),
        pa.struct({"json": pa.string(), "uuid": raw.type}),
    ]
    assert table.schema.types == plain
    for step in range(2):
        assert ids(table, "id < 1") == [0]
        assert ids(table, "json = '{\"a\": 50}'") == [50]
        assert ids(table, "json IS NULL AND id < 20") == [0, 7, 14]
        assert ids(table, f"uuid = X'{bytes(raw[77].as_py()).hex()}'") == [77]
        assert ids(table, "both IS NULL") == []
        first = table.scan("id > 3", order_by="json DESC NULLS LAST", limit=1).to_arrow()
        assert first["id"].to_pylist() == [9]
        assert first.schema.types == plain
        assert table.scan("id = 60").to_arrow().to_pylist() == rows_as_storage(rows)[60:61]
        if not step:
            table.build_indexes(
                {
                    "file-index.bitmap.columns": "id,json",
                    "file-index.bloom-filter.columns": "json,uuid",
                    "file-index.range-bitmap.columns": "json",
                }
            )
    assert table.verify().ok
    assert {column.column for column in table.advise(["json = 'x'"]).columns} >= {"json"}


def rows_as_storage(rows: pa.Table) -> list[dict[str, object]]:
    return [
        {
            "id": row["id"],
            "json": row["json"],
            "uuid": row["uuid"].bytes,
            "both": {"json": row["both"]["json"], "uuid": row["both"]["uuid"].bytes},
        }
        for row in rows.to_pylist()
    ]


def test_a_column_whose_decimals_are_too_long_is_refused_and_others_are_indexed(
    tmp_path: Path,
) -> None:
    right = pa.array([1, 12345], pa.decimal128(38, 0))
    wrong = pa.Array.from_buffers(pa.decimal128(4, 0), 2, right.buffers())
    pq.write_table(pa.table({"id": [1, 2], "price": wrong}), tmp_path / "a.parquet")
    table = alcid.parquet(tmp_path)
    report = table.build_indexes({"file-index.bsi.columns": "id,price"})
    problem = r"a\.parquet: column price: Decimal value 12345 does not fit in precision"
    (skipped,) = report.skipped
    assert (report.indexed, report.failed, skipped.what) == (1, 0, "bsi of 'price'")
    assert re.search(problem, skipped.reason)
    for where in ("price > 5000", "price IS NULL"):
        with pytest.raises(alcid.UnsupportedError, match=problem):
            table.scan(where, use_indexes=False).to_arrow()
    assert table.scan("id = 2", columns=["id"]).to_arrow()["id"].to_pylist() == [2]


def test_advice_on_text_that_is_no_utf_8(tmp_path: Path) -> None:
    raw = pa.array([b"\xc3", b"ok", b"\xff\xfe"] * 50, pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    pq.write_table(pa.table({"text": text}), tmp_path / "a.parquet", write_statistics=False)
    report = alcid.parquet(tmp_path).advise()
    assert [column.column for column in report.columns] == ["text"]


def test_int96_before_1970_is_indexed_as_spark_reads_it(tmp_path: Path) -> None:
    """Arrow alone reads a negative time of day, which Paimon's Java writes, as the year 2554."""
    nanos = [-1744877000, -86_400 * 10**9, 0, 1_500_000]
    data = int96_written(
        pa.table({"id": range(4), "at": pa.array(map(java_int96, nanos), pa.binary(12))})
    )
    (tmp_path / "a.parquet").write_bytes(data)
    table = alcid.parquet(tmp_path)
    kinds = ("bitmap", "bloom-filter", "bsi", "range-bitmap")
    for options in ({}, {f"file-index.{kind}.columns": "at" for kind in kinds}):
        if options:
            table.build_indexes(options)
        for row, nano in enumerate(nanos):
            text = np.datetime64(nano // 1000, "us")
            assert ids(table, f"at = TIMESTAMP'{text}Z'") == [row]
        assert ids(table, "at < TIMESTAMP'1970-01-01 00:00:00Z'") == [0, 1]
    assert table.verify().ok


def test_vectors_add_up_and_need_their_files(folder: Path) -> None:
    table = alcid.parquet(folder)
    once = table.with_deletions({"part-0.parquet": alcid.DeletionVector([1, 2])})
    twice = once.with_deletions(
        {
            "part-0.parquet": alcid.DeletionVector([2, 3]),
            "part-1.parquet": alcid.DeletionVector([0]),
        }
    )
    assert (once.count(), twice.count()) == (3 * ROWS - 2, 3 * ROWS - 4)
    assert ids(twice, "id < 5") == [0, 4]
    with pytest.raises(FileGoneError, match="other"):
        table.with_deletions({"other.parquet": alcid.DeletionVector([1])})
    with pytest.raises(alcid.UnsupportedError, match="list"):
        table.with_deletions({"part-0.parquet": [1]})  # type: ignore[dict-item]


def test_views_of_text_are_read_as_text(tmp_path: Path) -> None:
    table = pa.table({"id": range(9), "s": pa.array(list("abcdefghi"), pa.string_view())})
    try:
        pq.write_table(table, tmp_path / "a.parquet", write_page_index=True)
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow does not write views")
    parquet_table = alcid.parquet(tmp_path)
    assert parquet_table.schema.field("s").type == pa.string()
    assert parquet_table.scan("id > 6 OR s = 'b'").to_arrow()["s"].to_pylist() == ["b", "h", "i"]
    assert parquet_table.scan(order_by="s DESC", limit=2).to_arrow()["id"].to_pylist() == [8, 7]


def test_a_small_file_that_is_replaced_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", range(10))
    table = alcid.parquet(tmp_path)
    assert ids(table, "score >= 0") == list(range(10))
    write(tmp_path / "a.parquet", range(20, 25))
    assert ids(table, "score >= 0") == list(range(20, 25))


def test_a_column_may_be_asked_for_twice_and_a_key_of_no_map_is_refused(folder: Path) -> None:
    table = alcid.parquet(folder)
    rows = table.scan(columns=["id", "id"], order_by="score DESC", limit=2).to_arrow()
    assert rows.schema.names == ["id", "id"]
    assert rows.column(1).to_pylist() == [3 * ROWS - 1, 3 * ROWS - 2]
    with pytest.raises(alcid.ColumnError, match=r"id\[x\]"):
        table.scan(columns=["id[x]"])


def test_the_best_rows_of_files_of_two_schemas_are_found_by_bounds(folder: Path) -> None:
    path = folder / "part-9.parquet"
    pq.write_table(pa.table({"id": [99], "score": [0.25], "more": ["x"]}), path)
    table = alcid.parquet(folder)
    table.build_indexes({"file-index.range-bitmap.columns": "score"})
    scan = table.scan(order_by="score DESC", limit=2)
    assert scan.to_arrow()["id"].to_pylist() == [3 * ROWS - 1, 3 * ROWS - 2]
    cut = next(stage for stage in scan.explain().stages if stage.name == "cut-off")
    assert (cut.before.files, cut.after.files) == (4, 1)


def test_threads_may_share_a_table(folder: Path) -> None:
    table = alcid.parquet(folder)
    table.build_indexes(OPTIONS)
    table = alcid.parquet(folder)

    def ask(number: int) -> bool:
        key = number * 997 % (3 * ROWS)
        return ids(table, f"id = {key} OR score > {3 * ROWS - 2.5}") == sorted(
            {key, 3 * ROWS - 2, 3 * ROWS - 1}
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(200)))


def test_a_limit_reads_no_more_files_than_it_needs(folder: Path) -> None:
    scan = alcid.parquet(folder).scan(limit=5)
    assert scan.to_arrow()["id"].to_pylist() == [0, 1, 2, 3, 4]
    stages = {stage.name: stage for stage in scan.explain().stages}
    assert (stages["limit"].before.files, stages["limit"].after.files) == (3, 1)
    assert stages["limit"].dropped == {"enough rows": 2}


def test_the_best_rows_of_sorted_files_come_from_one_of_them(folder: Path) -> None:
    table = alcid.parquet(folder)
    table.build_indexes({"file-index.bitmap.columns": "id"})  # bounds of every column, no order
    scan = table.scan(order_by="score DESC", limit=2)
    assert scan.to_arrow()["id"].to_pylist() == [3 * ROWS - 1, 3 * ROWS - 2]


@pytest.mark.parametrize(
    ("mark", "inner", "problem"),
    [
        (
            "metadata/v1.metadata.json",
            "data",
            "data files of the Iceberg table {root}, which alcid.iceberg opens by its name",
        ),
        (
            "metadata/00001-a.metadata.json",
            "data/day=1/b=2",
            "data files of the Iceberg table {root}, which alcid.iceberg opens by its name",
        ),
        (
            "schema/schema-0",
            "dt=1/bucket-0",
            "data files of a Paimon table: alcid.paimon('{root}') opens it",
        ),
        (
            "_delta_log/0.json",
            "dt=1",
            "data files of the Delta table {root}: a part of it is not read",
        ),
        (".hoodie/hoodie.properties", "2024/05", "data files of the Hudi table {root}, which is"),
        (".hoodie/hoodie.properties", "", "a Hudi table, which is not read: its files have old"),
    ],
)
def test_a_part_of_another_table_is_refused(
    tmp_path: Path, mark: str, inner: str, problem: str
) -> None:
    """Its files are not the rows of the table: some were deleted, rewritten or never committed."""
    root = tmp_path / "t"
    (root / mark).parent.mkdir(parents=True)
    (root / mark).write_text("{}")
    folder = root / inner
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    with pytest.raises(UnsupportedError, match=re.escape(problem.format(root=root))):
        alcid.parquet(folder).count()


def test_folders_next_to_a_table_do_not_belong_to_it(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text("{}")
    for name in ("other", "metadata/data"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
        assert alcid.parquet(folder).count() == 1
