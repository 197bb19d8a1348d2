"""Why a file was kept or an index not used, and consistent numbers."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.formats.source import Range
from alcid.scan import Explanation, Outcome
from alcid.storage import Storage
from tests.scan.outcome_checks import check_outcomes

ROWS = 30_000
INDEXES = {
    "file-index.bloom-filter.columns": "id",
    "file-index.bitmap.columns": "id, class_id",
    "file-index.range-bitmap.columns": "score",
}


def write(path: Path, part: int, *, id_type: str = "int64") -> None:
    rng = np.random.default_rng(part)
    table = pa.table(
        {
            "id": pa.array(rng.permutation(ROWS) * 4 + part).cast(id_type),
            "class_id": rng.integers(0, 50, ROWS),
            "score": rng.random(ROWS),
            "name": [f"{number:020}" for number in rng.integers(0, 10**9, ROWS)],
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=10_000, data_page_size=1000, write_page_index=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part in range(4):
        write(tmp_path / f"day={part // 2}" / f"{part}.parquet", part)
    alcid.parquet(tmp_path).build_indexes(INDEXES)
    return tmp_path


def outcomes(explanation: Explanation) -> list[tuple[str, str, int]]:
    return [(use.index, use.outcome, use.files) for use in explanation.indexes]


def check(explanation: Explanation) -> None:
    """Check that the numbers of an explanation are consistent."""
    for earlier, later in pairwise(explanation.stages):
        left, begun = earlier.after, later.before
        for name in ("files", "row_groups", "pages", "rows", "bytes"):
            before, after = getattr(left, name), getattr(begun, name)
            assert before is None or after is None or before == after, (earlier, later, name)
    for stage in explanation.stages:
        assert sum(stage.dropped.values()) == stage.before.files - stage.after.files
    assert json.loads(explanation.to_json())["predicate"] == explanation.predicate
    check_outcomes(explanation)


def test_each_stage_says_what_it_left(folder: Path) -> None:
    scan = alcid.parquet(folder).scan("day = 1 AND id = 7 AND score >= 0")
    assert scan.to_arrow().num_rows == 1
    explanation = scan.explain()
    check(explanation)
    files = {stage.name: (stage.before.files, stage.after.files) for stage in explanation.stages}
    assert files["partitions"] == (4, 2)
    assert files["file index"] == (2, 1)
    assert outcomes(explanation) == [
        ("bloom-filter", "ruled out", 1),
        ("bloom-filter", "may contain it", 1),
        ("bitmap", "answered", 1),
    ]
    stages = {stage.name: stage for stage in explanation.stages}
    assert stages["partitions"].dropped == {"other partitions": 2}
    assert stages["file index"].dropped == {"bloom filter": 1}
    assert stages["row groups"].before.row_groups == 3
    assert stages["row groups"].after.row_groups == 1
    pages, rows = stages["pages"], stages["rows"]
    assert pages.after.pages is not None
    assert pages.before.pages is not None
    assert pages.after.pages == 4 < pages.before.pages
    assert pages.after.bytes is not None
    assert pages.after.bytes <= rows.bytes_read < 2 * pages.after.bytes + 64 * 1024
    assert rows.after.rows == 1


def test_each_file_and_row_group_says_what_became_of_it(folder: Path) -> None:
    scan = alcid.parquet(folder).scan("day = 1 AND id = 7")
    assert scan.to_arrow().num_rows == 1
    outcomes = scan.explain().outcomes
    assert outcomes is not None
    partitions = Outcome("partitions", "other partitions")
    assert [(outcome.path, outcome.outcome) for outcome in outcomes] == [
        ("day=0/0.parquet", partitions),
        ("day=0/1.parquet", partitions),
        ("day=1/2.parquet", Outcome("file index", "bloom filter")),
        ("day=1/3.parquet", Outcome("read", "by pages")),
    ]
    assert [len(outcome.row_groups) for outcome in outcomes] == [0, 0, 0, 3]
    position = (np.random.default_rng(3).permutation(ROWS) * 4 + 3).tolist().index(7)
    for number, group in enumerate(outcomes[3].row_groups):
        is_read = number == position // 10_000
        without = Outcome("file index", "no row in the index")
        assert group.outcome == (Outcome("read", "by pages") if is_read else without)
        assert (group.rows, group.rows_looked_at, group.pages) == (
            (10_000, 1, 4) if is_read else (10_000, 0, 0)
        )
    assert outcomes[-1:] == [outcomes[3]]


def test_row_groups_are_left_out_by_their_footer(tmp_path: Path) -> None:
    ids = pa.array(np.arange(40_000))
    pq.write_table(pa.table({"id": ids}), tmp_path / "a.parquet", row_group_size=10_000)
    explanation = alcid.parquet(tmp_path).explain("id BETWEEN 12000 AND 12010")
    assert explanation.outcomes is not None
    (file,) = explanation.outcomes
    assert [group.outcome.reason for group in file.row_groups] == [
        "ruled out by min/max or null counts",
        "by whole row groups: its indexes are absent",
        "ruled out by min/max or null counts",
        "ruled out by min/max or null counts",
    ]
    assert "rows: 1 file read by whole row groups: its indexes are absent" in str(explanation)
    assert "pages" not in str(explanation)
    check(explanation)


def test_row_groups_of_deleted_rows_say_so(folder: Path) -> None:
    deleted = alcid.DeletionVector(np.arange(5_000, 20_000))
    every = alcid.DeletionVector(np.arange(ROWS))
    vectors = {"day=0/0.parquet": deleted, "day=0/1.parquet": every}
    scan = alcid.parquet(folder).with_deletions(vectors).scan("day = 0 AND class_id = 3")
    rows = scan.to_arrow().num_rows
    explanation = scan.explain()
    assert explanation.outcomes is not None
    first, other = explanation.outcomes[:2]
    assert other.outcome == Outcome("deletion vectors", "all rows deleted")
    assert [group.outcome.stage for group in first.row_groups] == [
        "read",
        "deletion vectors",
        "read",
    ]
    assert sum(group.rows_looked_at for group in first.row_groups) == rows
    check(explanation)


def test_json_lists_files_only_when_it_is_asked_to(folder: Path) -> None:
    explanation = alcid.parquet(folder).explain("day = 1 AND id = 7")
    assert "files" not in explanation.to_dict()
    assert "outcomes" not in explanation.to_dict()
    files = json.loads(explanation.to_json(files=True))["files"]
    assert [file["stage"] for file in files] == ["partitions", "partitions", "file index", "read"]
    assert files[0] == {
        "path": "day=0/0.parquet",
        "bytes": (folder / "day=0" / "0.parquet").stat().st_size,
        "rows": ROWS,
        "stage": "partitions",
        "reason": "other partitions",
        "row_groups": [],
        "indexes": [],
    }
    assert files[2]["indexes"] == [
        {"predicate": "id = 7", "index": "bloom-filter", "outcome": "ruled out"}
    ]
    assert [group["pages"] for group in files[3]["row_groups"]].count(0) == 2


@pytest.mark.parametrize(
    ("query", "stage", "files"),
    [
        ({"order_by": "score DESC", "limit": 2}, "cut-off", 2),
        ({"where": "class_id = 3", "limit": 3}, "limit", 3),
    ],
)
def test_files_that_need_not_be_read_say_why(
    folder: Path, query: dict[str, Any], stage: str, files: int
) -> None:
    scan = alcid.parquet(folder).scan(**query)
    scan.to_arrow()
    explanation = scan.explain()
    assert explanation.outcomes is not None
    assert [outcome.outcome.stage for outcome in explanation.outcomes].count(stage) == files
    check(explanation)


def test_an_index_that_is_not_there_is_said_to_be_absent(folder: Path) -> None:
    explanation = alcid.parquet(folder).explain(f"name = '{500_000_000:020}'")
    assert outcomes(explanation) == [("", "absent", 4)]
    check(explanation)


def test_an_index_of_a_changed_file_is_stale(folder: Path) -> None:
    write(folder / "day=0" / "1.parquet", 9)
    scan = alcid.parquet(folder).scan("class_id = 7")
    scan.to_arrow()
    explanation = scan.explain()
    assert outcomes(explanation) == [("bitmap", "stale", 1), ("bitmap", "answered", 3)]
    check(explanation)


def test_an_index_that_cannot_answer_says_so(folder: Path) -> None:
    explanation = alcid.parquet(folder).explain("id > 5")
    assert outcomes(explanation) == [
        ("bloom-filter", "unsupported predicate", 4),
        ("bitmap", "unsupported predicate", 4),
    ]


def test_an_index_that_costs_more_than_it_spares_is_not_read(folder: Path) -> None:
    table = alcid.parquet(folder)
    scan = table.scan("score > 0.001", columns=["class_id"])
    rows = scan.to_arrow()
    explanation = scan.explain()
    assert outcomes(explanation) == [("range-bitmap", "not worth it", 4)]
    index = next(stage for stage in explanation.stages if stage.name == "file index")
    assert index.bytes_read == 0
    assert rows.num_rows == table.scan("score > 0.001", use_indexes=False).count()
    check(explanation)


def test_a_file_of_another_type_goes_without_its_index(folder: Path) -> None:
    write(folder / "day=1" / "9.parquet", 9, id_type="int32")
    table = alcid.parquet(folder)
    table.build_indexes(INDEXES)
    scan = table.scan("id = 9 OR id = 40")  # narrower integers are asked nevertheless
    scan.to_arrow()
    assert {(index, outcome) for index, outcome, _ in outcomes(scan.explain())} == {
        ("bloom-filter", "ruled out"),
        ("bloom-filter", "may contain it"),
        ("bitmap", "answered"),
    }
    path = folder / "day=1" / "text.parquet"
    pq.write_table(pa.table({"score": pa.array([0.5], pa.float32())}), path)
    table.refresh()
    assert table.count("score = 0.5") == 1


def test_an_index_next_to_a_missing_one_says_so(folder: Path) -> None:
    explanation = alcid.parquet(folder).explain(f"class_id = 7 OR name = '{500_000_000:020}'")
    uses = {(use.predicate, use.index): (use.outcome, use.files) for use in explanation.indexes}
    assert uses["class_id = 7", "bitmap"] == (
        "another part of the OR has no index that gives rows",
        4,
    )
    assert explanation.outcomes is not None
    assert {outcome.outcome.reason for outcome in explanation.outcomes} == {
        "by whole row groups: its indexes are absent, a part of the OR has no index"
    }


def reasons(explanation: Explanation) -> list[str]:
    return [outcome.outcome.reason for outcome in explanation.outcomes or ()]


def test_each_file_says_which_index_it_lacks(folder: Path) -> None:
    alcid.parquet(folder).drop_indexes()
    alcid.parquet(folder / "day=0").build_indexes(INDEXES)
    write(folder / "day=0" / "8.parquet", 8)
    explanation = alcid.parquet(folder / "day=0").explain("class_id = 7")
    files = explanation.to_dict(files=True)["files"]
    uses = {"predicate": "class_id = 7", "index": "bitmap"}
    assert [file["indexes"] for file in files] == [
        [{**uses, "outcome": "answered"}],
        [{**uses, "outcome": "answered"}],
        [{**uses, "outcome": "absent"}],
    ]
    assert reasons(explanation)[2] == "by whole row groups: its indexes are absent"
    check(explanation)


def test_a_file_that_a_bloom_filter_let_pass_says_so(tmp_path: Path) -> None:
    for part in range(2):
        write(tmp_path / f"{part}.parquet", part)
    table = alcid.parquet(tmp_path)
    table.build_indexes({"file-index.bloom-filter.columns": "id"})
    explanation = table.explain("id = 401")
    assert outcomes(explanation) == [
        ("bloom-filter", "ruled out", 1),
        ("bloom-filter", "may contain it", 1),
    ]
    passed = "by whole row groups: the bloom filter let it pass"
    assert reasons(explanation) == ["bloom filter", passed]
    assert f"rows: 1 file read {passed}" in str(explanation)
    assert (
        reasons(table.explain("id > 401"))
        == ["by whole row groups: no index can answer this predicate"] * 2
    )
    assert (
        reasons(table.scan("id = 401", use_indexes=False).explain())
        == ["by whole row groups: use_indexes is false"] * 2
    )


def test_an_expression_that_no_index_answers_has_a_line(folder: Path) -> None:
    explanation = alcid.parquet(folder).explain("id + 1 = 4712 AND day = 1")
    (use,) = explanation.indexes
    assert (use.index, use.outcome, use.files) == (
        "",
        "no index or statistics can answer this expression",
        2,
    )
    assert f"{use.predicate}: {use.outcome} (2 files)" in str(explanation).splitlines()
    assert (
        reasons(explanation)[2:] == ["by whole row groups: no index can answer this predicate"] * 2
    )
    check(explanation)


def test_parts_of_an_or_say_why_they_are_not_probed(folder: Path) -> None:
    explanation = alcid.parquet(folder).explain("id = 7 OR id + 1 = 4712")
    assert {
        (use.predicate, use.index): (use.outcome, use.files) for use in explanation.indexes
    } == {
        ("id = 7", "bloom-filter"): ("another part of the OR has no bloom filter to probe", 4),
        ("id = 7", "bitmap"): ("another part of the OR has no index that gives rows", 4),
        ("(id + 1 = 4712)", ""): (
            "no index or statistics can answer this expression",
            4,
        ),
    }
    check(explanation)


def test_a_bloom_filter_behind_one_that_let_a_file_pass_is_not_needed(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", 0)
    table = alcid.parquet(tmp_path)
    table.build_indexes({"file-index.bloom-filter.columns": "id, class_id"})
    explanation = table.explain("id = 400 OR class_id = 7")
    assert outcomes(explanation) == [
        ("bloom-filter", "may contain it", 1),
        ("bloom-filter", "not needed", 1),
    ]


def test_files_without_statistics_are_counted(folder: Path) -> None:
    table = alcid.parquet(folder)
    assert not any(stage.without_statistics for stage in table.explain("id = 7").stages)
    write(folder / "day=1" / "9.parquet", 9)
    table.refresh()
    explanation = table.explain("day = 1 AND id = 7")
    stages = {stage.name: stage.without_statistics for stage in explanation.stages}
    assert stages["statistics"] == {"id = 7": 1}
    line = "statistics: 1 file without usable min/max or null counts for id = 7"
    assert line in str(explanation).splitlines()
    check(explanation)


def test_a_count_says_that_no_data_was_read(folder: Path) -> None:
    scan = alcid.parquet(folder).scan("class_id IN (1, 2)")
    counted = scan.count()
    explanation = scan.explain()
    assert explanation.notes == (
        f"{counted:,} rows counted from indexes and statistics: no data was read",
    )
    stages = {stage.name: stage for stage in explanation.stages}
    assert stages["count"].dropped == {"counted without reading": 4}
    assert stages["rows"].bytes_read == 0
    check(explanation)


def test_rows_that_others_counted_are_said_to_be_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = alcid.parquet(folder)
    monkeypatch.setattr(type(table.engine), "count", lambda *_: 17)
    scan = table.scan(f"name > '{500_000_000:020}' AND day = 1")
    assert scan.count() == 17
    explanation = scan.explain()
    assert explanation.outcomes is not None
    assert [outcome.outcome for outcome in explanation.outcomes] == [
        *[Outcome("partitions", "other partitions")] * 2,
        *[Outcome("read", "and counted by Spark")] * 2,
    ]
    assert explanation.stages[-1].after.rows == 17
    assert "rows: 2 files read and counted by Spark" in str(explanation)
    check(explanation)


def test_before_it_runs_an_explanation_leaves_the_rows_open(folder: Path) -> None:
    explanation = alcid.parquet(folder).explain("id = 7", columns=["score"])
    assert explanation.stages[-1].after.rows is None
    assert (
        next(line for line in str(explanation).splitlines() if line.startswith("rows")).count("?")
        == 1
    )
    check(explanation)


def test_requests_of_other_readers_are_not_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent() -> list[tuple[str, int, int]]:
        scan = alcid.parquet(folder).scan("score > 0.9999 AND name > '0'")
        scan.to_arrow()
        return [(stage.name, stage.requests, stage.bytes_read) for stage in scan.explain().stages]

    alone = spent()
    assert sum(size for _, _, size in alone) > 0
    read = Storage.read_ranges

    def read_beside_another(storage: Storage, ranges: Sequence[Range]) -> Sequence[bytes]:
        if threading.current_thread() is not threading.main_thread():
            return read(storage, ranges)
        with ThreadPoolExecutor(1) as other:  # of the same table, in between
            other.submit(read, storage, ranges).result()
        return read(storage, ranges)

    monkeypatch.setattr(Storage, "read_ranges", read_beside_another)
    assert spent() == alone


def test_an_index_is_asked_where_rows_that_are_left_cost_more(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    amounts = rng.integers(0, 8000, 200_000)
    amounts[5] = 20_000  # so that bounds do not help
    kinds = rng.integers(0, 20_000, 200_000)
    kinds[9] = 30_000
    columns = {f"c{number}": rng.random(200_000) for number in range(8)}
    rows = {"kind": kinds, "amount": amounts, **columns}
    pq.write_table(pa.table(rows), tmp_path / "0.parquet", write_page_index=True)
    table = alcid.parquet(tmp_path)
    table.build_indexes({"file-index.bsi.columns": "amount", "file-index.bitmap.columns": "kind"})
    scan = table.scan("kind = 7 AND amount > 9000")
    assert scan.to_arrow().num_rows == 0
    explanation = scan.explain()
    assert outcomes(explanation) == [("bitmap", "answered", 1), ("bsi", "answered", 1)]
    assert sum(stage.bytes_read for stage in explanation.stages) < 1_000_000  # a page is as large
    few = table.scan("kind = 30000 AND amount > 9000", columns=["kind"])  # of one row
    assert few.to_arrow().num_rows == 0
    assert outcomes(few.explain()) == [("bitmap", "answered", 1), ("bsi", "not worth it", 1)]


def test_scans_that_share_a_table_count_their_own_requests_only(folder: Path) -> None:
    table = alcid.parquet(folder)
    predicates = ("day = 1 AND id = 7", "class_id = 7", "name >= '0000000000010'", "score > 0.999")

    def explained(where: str) -> tuple[Any, ...]:
        scan = table.scan(where)
        rows = scan.to_arrow().num_rows
        explanation = scan.explain()
        check(explanation)
        stages = [replace(stage, seconds=0.0) for stage in explanation.stages]
        return rows, stages, explanation.indexes, list(explanation.outcomes or ())

    alone = {where: explained(where) and explained(where) for where in predicates}  # warm
    for where in predicates:
        before = table.snapshot.traffic
        rows, stages, *_ = explained(where)
        spent = table.snapshot.traffic - before
        assert rows > 0
        # Reads by its threads count for it, too.
        assert sum(stage.requests for stage in stages) == spent.requests > 0
        assert sum(stage.bytes_read for stage in stages) == spent.bytes_read
    readers = 2 * len(predicates)
    barrier = threading.Barrier(readers)

    def read(reader: int) -> None:
        where = predicates[reader % len(predicates)]
        for _ in range(5):
            barrier.wait(60)
            assert explained(where) == alone[where]

    with ThreadPoolExecutor(readers) as pool:
        assert list(pool.map(read, range(readers))) == [None] * readers


def test_indexes_that_an_option_disables_say_so(tmp_path: Path) -> None:
    options = {"file-index.bitmap.columns": "id", "file-index.read.enabled": "false"}
    table = alcid.create_table(tmp_path / "t", pa.schema({"id": pa.int64()}), options=options)
    table.append(pa.table({"id": [1, 3, 5]}))
    explanation = table.explain("id = 3")
    assert outcomes(explanation) == [("", "disabled by file-index.read.enabled", 1)]
    assert "id = 3: disabled by file-index.read.enabled (1 file)" in str(explanation).splitlines()
    assert reasons(explanation) == ["by whole row groups: its indexes are disabled"]
    check(explanation)
