"""Scans of some hundred files: rows equal those of a plain filter; damage is reported."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import alcid
from alcid import DamagedIndexWarning, FileIndex
from alcid.errors import FormatError
from alcid.scan import positions
from alcid.storage.local import LocalFiles
from alcid.tables.base import Table
from alcid.tables.paimon import indexes
from alcid.tables.paimon.metadata.commit import Change
from tests.tables.paimon import small_tables

FILES, ROWS = 80, 120
OPTIONS = {
    "file-index.bitmap.columns": "kind,word",
    "file-index.bloom-filter.columns": "word",
    "file-index.range-bitmap.columns": "score",
}


@pytest.fixture(autouse=True)
def every_index_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also indexes of files so small that reading the files would take less."""

    def worth(cost: Any, *_: Any, **__: Any) -> Any:
        return np.ones(len(cost), bool)

    monkeypatch.setattr(positions, "is_worth_it", worth)


def rows_of(number: int) -> pa.Table:
    """Rows of a file: the kinds are far apart, so bounds do not help; some are null."""
    rng = np.random.default_rng(number)
    kinds = rng.choice(np.append(rng.integers(1, 60, 3), [0, 99]), ROWS)
    score = rng.normal(0, 1 + number % 7, ROWS)
    return pa.table(
        {
            "id": pa.array(np.arange(ROWS) + number * ROWS),
            "kind": pa.array(kinds, pa.int32(), mask=rng.random(ROWS) < 0.1),
            "word": pa.array([f"word {kind}" for kind in kinds * 3]),
            "score": pa.array(score),
        }
    )


def folder(path: Path) -> Table[Any]:
    path.mkdir()
    for number in range(FILES):
        pq.write_table(rows_of(number), path / f"{number:03}.parquet")
    table = alcid.parquet(path)
    assert table.build_indexes(OPTIONS).indexed == FILES
    return table


def paimon(path: Path) -> Table[Any]:
    columns = {"id": "BIGINT", "kind": "INT", "word": "STRING", "score": "DOUBLE"}
    table = small_tables.create(path, columns, options={})
    entries = [small_tables.write_file(table, rows_of(number)) for number in range(FILES)]
    small_tables.commit(table, Change(kind="APPEND", added=entries))
    assert table.build_indexes(OPTIONS).indexed == FILES
    return table


@pytest.fixture(scope="module", params=[folder, paimon])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table[Any]:
    make: Callable[[Path], Table[Any]] = request.param
    return make(tmp_path_factory.mktemp("many") / "t")


EVERY = pa.concat_tables([rows_of(number) for number in range(FILES)])
KIND, WORD, SCORE = (pc.field(name) for name in ("kind", "word", "score"))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("kind = 17", KIND == 17),
        ("kind IN (17, 18, 200)", KIND.isin([17, 18, 200])),
        ("kind = 70", KIND == 70),
        ("word = 'word 51'", WORD == "word 51"),
        ("kind = 17 AND word = 'word 51'", (KIND == 17) & (WORD == "word 51")),
        ("kind = 17 AND kind = 18", (KIND == 17) & (KIND == 18)),
        ("kind = 17 OR kind = 23", (KIND == 17) | (KIND == 23)),
        ("kind = 17 OR score > 20", (KIND == 17) | (SCORE > 20)),
        ("(kind = 17 OR kind = 23) AND score > 5", ((KIND == 17) | (KIND == 23)) & (SCORE > 5)),
        ("kind <> 17 AND kind <> 0 AND kind <> 99", ~KIND.isin([17, 0, 99, None])),
        ("kind = 17 OR kind IS NULL AND score > 18", (KIND == 17) | KIND.is_null() & (SCORE > 18)),
    ],
)
def test_rows_are_those_of_a_filter(table: Table[Any], where: str, expected: Any) -> None:
    table_rows = table.scan(where).to_arrow().sort_by("id")
    assert table_rows["id"].to_pylist() == EVERY.filter(expected)["id"].to_pylist()
    without = table.scan(where, use_indexes=False).to_arrow().sort_by("id")
    assert without.equals(table_rows)


def test_the_explanation_says_the_same_as_of_few_files(table: Table[Any]) -> None:
    explanation = table.scan("kind = 17").explain()
    having = sum(17 in rows_of(number)["kind"].to_pylist() for number in range(FILES))
    assert 0 < having < FILES
    index = explanation.stages[2]
    assert (index.before.files, index.after.files) == (FILES, having)
    assert index.dropped == {"no row in the index": FILES - having}
    assert [(index.index, index.outcome, index.files) for index in explanation.indexes] == [
        ("bitmap", "answered", FILES)
    ]


@pytest.mark.parametrize("limit", [1, 10, 2000])
@pytest.mark.parametrize("descending", [False, True])
def test_the_best_rows_are_those_of_a_sort(table: Table[Any], limit: int, descending: bool) -> None:
    way = "descending" if descending else "ascending"
    expected = EVERY.sort_by([("score", way)])["id"].slice(0, limit)
    order = f"score {'DESC' if descending else 'ASC'}"
    assert table.scan(order_by=order, limit=limit).to_arrow()["id"].equals(expected)


def test_a_plan_of_the_best_rows_reads_no_file_that_has_none(table: Table[Any]) -> None:
    scan = table.scan(order_by="score DESC", limit=5)
    planned = scan.explain()
    best = EVERY.sort_by([("score", "descending")]).slice(0, 5)
    files = sorted({row_id // ROWS for row_id in best["id"].to_pylist()})
    assert planned.outcomes is not None
    left = [
        number for number, outcome in enumerate(planned.outcomes) if outcome.outcome.stage == "read"
    ]
    assert len(left) == len(files)
    assert planned.stages[3].name == "cut-off"
    assert planned.stages[-1].after.rows is None
    assert planned.stages[-1].before.rows == 5
    assert scan.to_arrow()["id"].to_pylist() == best["id"].to_pylist()


def test_a_damaged_bitmap_of_a_folder_is_said_and_its_file_kept(tmp_path: Path) -> None:
    table = folder(tmp_path / "t")
    assert table.scan("kind = 70").explain().stages[2].after.files == 0
    (bundle,) = (tmp_path / "t" / "_alcid").glob("*.puffin")
    data = bytearray(bundle.read_bytes())
    index = FileIndex.build(rows_of(40), {"file-index.bitmap.columns": "kind"})
    payload = index.container.section(index.container.entries[0])
    data[data.index(payload.read(0, payload.length)) + 20] ^= 1
    bundle.write_bytes(data)
    table.refresh()
    with pytest.warns(DamagedIndexWarning, match="damaged block of"):
        explanation = table.scan("kind = 70").explain()
    assert explanation.stages[2].after.files == 1
    assert explanation.outcomes is not None
    assert explanation.outcomes[40].outcome.stage == "read"


def test_a_damaged_bitmap_of_a_paimon_table_is_said_and_its_file_kept(tmp_path: Path) -> None:
    """It has no checksum; damage of its structure is noticed, even if the key is missing."""
    table = paimon(tmp_path / "t")
    damaged = sorted((tmp_path / "t" / "bucket-0").glob("*.index"))[7]
    good = damaged.read_bytes()
    types = {"kind": "INT", "word": "STRING", "score": "DOUBLE"}
    index = FileIndex.from_bytes(good, types)
    entry = next(entry for entry in index.entries if entry.column == "kind")
    for position in (0, 5, 9, 21, 25):  # version, distinct, whether there are nulls, blocks, a key
        data = bytearray(good)
        data[entry.start + position] ^= 0x40
        damaged.write_bytes(data)
        table.refresh()
        with pytest.warns(DamagedIndexWarning, match=re.escape(damaged.name)):
            explanation = table.scan("kind = 70").explain()
        assert explanation.stages[2].after.files == 1, position


def test_over_a_network_sizes_of_index_files_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = paimon(tmp_path / "t")
    monkeypatch.setattr(LocalFiles, "remote", True)
    monkeypatch.setattr(indexes, "_MANY", 20)
    files = alcid.paimon(made.location).snapshot
    (tmp_path / "t" / "bucket-0" / files.placed[40].file.index_files[0]).unlink()
    before = files.traffic
    files.indexes.load(np.arange(19))  # too few
    assert (files.traffic - before).lists == 0
    before = files.traffic
    with pytest.warns(DamagedIndexWarning, match="its index file is not there") as warned:
        files.indexes.load(np.arange(FILES))
    spent = files.traffic - before
    assert len(warned) == 1
    assert (spent.lists, spent.stats, spent.reads) == (1, 1, FILES - 19 - 1)
    assert int(files.indexes.fresh("kind", "bitmap").sum()) == FILES - 1


def test_damaged_index_files_among_many_are_said_and_their_files_kept(tmp_path: Path) -> None:
    """Most heads are alike and read together; these are read alone, and say what is wrong."""
    table = paimon(tmp_path / "t")
    beside = [f"bucket-0/{placed.file.index_files[0]}" for placed in table.snapshot.placed]
    good = (tmp_path / "t" / beside[0]).read_bytes()
    damage = {0: b"", 3: good[:9], 30: b"\xff" + good[1:], 50: good[:-1], 79: good + b"x"}
    for path, data in damage.items():
        (tmp_path / "t" / beside[path]).write_bytes(data)
    (tmp_path / "t" / beside[60]).unlink()
    table.refresh()
    with pytest.warns(DamagedIndexWarning, match="index not used") as warned:
        explanation = table.scan("kind = 70").explain()
    wrong = sorted({*damage, 60})
    assert explanation.outcomes is not None
    left = [
        number
        for number, outcome in enumerate(explanation.outcomes)
        if outcome.outcome.stage == "read"
    ]
    assert left == wrong
    messages = [str(warning.message) for warning in warned]
    assert len(messages) == len(wrong)
    for path, text in zip(wrong, messages, strict=True):
        assert Path(beside[path]).name in text
    with pytest.raises(FormatError, match=re.escape(Path(beside[0]).name)):
        alcid.paimon(tmp_path / "t", strict=True).scan("kind = 70").explain()


@pytest.mark.parametrize(("head", "room"), [(400, 1 << 20), (16 << 10, 9_000), (64, 0)])
def test_index_files_that_are_not_cached_whole_give_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: int, room: int
) -> None:
    made = paimon(tmp_path / "t")
    queries = ("kind = 17", "word = 'word 51'", "kind = 17 OR score > 5")
    expected = [made.scan(where).explain() for where in queries]
    monkeypatch.setattr(indexes, "_HEAD", head)
    monkeypatch.setattr(indexes, "_MAX_CACHED", room)
    table = alcid.paimon(tmp_path / "t")
    for where, expectation in zip(queries, expected, strict=True):
        explanation = table.scan(where).explain()
        stages = [(stage.name, stage.after, stage.dropped) for stage in explanation.stages]
        assert stages == [(stage.name, stage.after, stage.dropped) for stage in expectation.stages]


def test_files_of_other_heads_are_read_with_those_that_are_alike(tmp_path: Path) -> None:
    """Some files have indexes on other columns, in their manifests, or none."""
    table = paimon(tmp_path / "t")
    types = {"kind": "INT", "word": "STRING", "score": "DOUBLE"}
    for number in range(0, FILES, 7):
        options = {"file-index.bitmap.columns": "kind", "file-index.bsi.columns": "kind"}
        path = tmp_path / "t" / "bucket-0" / table.snapshot.placed[number].file.index_files[0]
        path.write_bytes(FileIndex.build(rows_of(number), options).to_bytes())
    table.refresh()
    files = table.snapshot
    files.indexes.load(np.arange(FILES))
    for number, placed in enumerate(files.placed):
        path = tmp_path / "t" / "bucket-0" / placed.file.index_files[0]
        index = FileIndex.from_bytes(path.read_bytes(), types)
        lengths = {(entry.column, entry.index_type): entry.length for entry in index.entries}
        for column in types:
            for index_type in ("bloom-filter", "bitmap", "range-bitmap", "bsi"):
                length = lengths.get((column, index_type))
                assert files.indexes.fresh(column, index_type)[number] == (length is not None)
                assert files.indexes.lengths(column, index_type)[number] == (length or 0)
