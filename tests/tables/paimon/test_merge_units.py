"""Units of merging, cut by key and streamed, decide what comparing all rows at once decides."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid import PaimonTable
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon import key_ranges, merge_units
from alcid.tables.paimon.data_files import PlacedFile, stored_schema, table_paths
from alcid.tables.paimon.keyed import key_files
from alcid.tables.paimon.keyed.bucket import buckets_of
from alcid.tables.paimon.keyed.key_files import KeyReader, SortedRun, write_sorted_run
from alcid.tables.paimon.keyed.upsert import keyed_table
from alcid.tables.paimon.merge_on_read import superseded_rows
from alcid.tables.paimon.merge_units import MergeTable, merge_unit, plan_units
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.statistics import EMPTY
from tests.tables.paimon.small_tables import commit, create
from tests.tables.task_engine import TaskEngine

COLUMNS = {"a": "STRING", "b": "INT", "v": "STRING", "at": "INT"}
NAMES = ["", "a", "b", "bb"]
GROUP = 4


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("parquet_writer", "paimon.keyed.key_files"):
        monkeypatch.setattr(f"alcid.tables.{module}.GROUP_ROWS", GROUP)
    monkeypatch.setattr(merge_units, "STREAM_ROWS", GROUP)


class Merged:
    """A table of random files that share keys, and its rows as a dictionary."""

    def __init__(self, folder: Path, seed: int, options: Mapping[str, str] | None = None) -> None:
        self.source = random.Random(seed)
        self.table = create(
            folder / "t",
            COLUMNS,
            primary_keys=["a", "b"],
            options={"bucket": "1", **(options or {})},
        )
        self.newest: dict[tuple[str, int], tuple[tuple[int, int], dict[str, Any] | None]] = {}
        self._number = 0
        for level in self.source.choices([0, 0, 3, 4, 5], k=self.source.randint(1, 6)):
            self._add(level)
        self.table.refresh()

    def _add(self, level: int) -> None:
        keys = [(name, number) for name in NAMES for number in range(10)]
        first = self.source.randrange(len(keys))
        last = self.source.randint(first, len(keys))
        inside = keys[first : last + 1]
        keys = sorted(self.source.sample(inside, self.source.randint(1, len(inside))))
        numbers = self.source.sample(range(self._number, self._number + 100), len(keys))
        self._number += 60
        kinds = [self.source.choice([0, 0, 2, 3]) for _ in keys]
        rows = [
            {"a": a, "b": b, "v": f"v{self._number} {b}", "at": self.source.randrange(5)}
            for a, b in keys
        ]
        for key, number, kind, row in zip(keys, numbers, kinds, rows, strict=True):
            age = number, -level
            if key not in self.newest or self.newest[key][0] < age:
                self.newest[key] = age, None if kind == 3 else row
        self.write(rows, numbers, kinds, level)

    def write(
        self, rows: list[dict[str, Any]], numbers: list[int], kinds: list[int], level: int
    ) -> PlacedFile:
        """Commit a file."""
        self.table.refresh()
        keyed, files = keyed_table(self.table, "compact"), self.table.snapshot
        bucket = buckets_of(files.state, table_paths(files.schema, files.options))[EMPTY, 0]
        run = SortedRun(
            pa.Table.from_pylist(rows, stored_schema(keyed.schema)),
            np.array(numbers),
            np.array(kinds, np.int8),
        )
        (written,) = write_sorted_run(keyed, bucket, [run], level=level, source=0)
        commit(self.table, Change(kind="APPEND", added=[written.entry]))
        self.table.refresh()
        return written.placed

    @property
    def files(self) -> list[PlacedFile]:
        """All files, in the order of the manifests."""
        return list(self.table.snapshot.placed)

    @property
    def merge_table(self) -> MergeTable:
        """The table for `plan_units`."""
        files = self.table.snapshot
        return MergeTable(self.table.storage, files.schema, files.schemas, files.options)

    def superseded(self) -> dict[int, set[int]]:
        """What comparing all rows of all files at once decides."""
        reader = KeyReader(keyed_table(self.table, "compact"))
        vectors = superseded_rows([reader.keys(file) for file in self.files])
        return {number: set(vector) for number, vector in enumerate(vectors)}

    def decided(self, unit_bytes: int) -> tuple[dict[int, set[int]], int]:
        """What units decide, and how many are parts of a section; each row is decided once."""
        table, files = self.merge_table, self.files
        units = plan_units(table, files, compacted=False, unit_bytes=unit_bytes)
        placed = dict(enumerate(files))
        deleted: dict[int, set[int]] = {}
        rows: Counter[tuple[int, int]] = Counter()
        for unit in units:
            for file, part in merge_unit(table, unit, placed, {}).items():
                own = range(files[file].file.rows) if part.rows is None else part.rows
                rows.update((file, row) for row in own)
                deleted.setdefault(file, set()).update(part.deleted)
        assert set(rows.values()) <= {1}
        for file in deleted:
            decided = {row for number, row in rows if number == file}
            assert decided == set(range(files[file].file.rows))
        return deleted, sum(unit.low is not None or unit.high is not None for unit in units)

    def rows(self) -> list[dict[str, Any]]:
        """The live rows, by key."""
        return [row for _, (_, row) in sorted(self.newest.items()) if row is not None]


def read(table: PaimonTable, where: str | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.scan(where).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["a"], row["b"]))


@pytest.mark.parametrize("options", [{}, {"sequence.field": "at"}], ids=["plain", "sequence.field"])
@pytest.mark.parametrize("unit_bytes", [1, 3_000, 1 << 30])
def test_units_decide_what_comparing_all_rows_decides(
    tmp_path: Path, unit_bytes: int, options: Mapping[str, str]
) -> None:
    counts = []
    for seed in range(8):
        merged = Merged(tmp_path / str(seed), seed, options)
        expected = merged.superseded()
        decided, count = merged.decided(unit_bytes)
        assert {file: decided.get(file, set()) for file in expected} == expected, seed
        counts.append(count)
    assert (max(counts) > 2) == (unit_bytes < 1 << 30)


def test_deletion_vectors_hide_rows_from_the_merge(tmp_path: Path) -> None:
    for seed in range(10):
        merged = Merged(tmp_path / str(seed), seed)
        reader = KeyReader(keyed_table(merged.table, "compact"))
        gone = {
            number: DeletionVector(merged.source.sample(range(file.file.rows), file.file.rows // 2))
            for number, file in enumerate(merged.files)
        }
        expected = superseded_rows(
            [reader.keys(file, gone[number]) for number, file in enumerate(merged.files)]
        )
        table, placed = merged.merge_table, dict(enumerate(merged.files))
        decided: dict[int, set[int]] = {}
        for unit in plan_units(table, merged.files, compacted=False, unit_bytes=1):
            for file, part in merge_unit(table, unit, placed, gone).items():
                decided.setdefault(file, set()).update(part.deleted)
        for file, rows in decided.items():
            assert rows == set(expected[file]), seed


def test_files_that_are_not_sorted_are_compared_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_files, "_check_rising", lambda *_: None)
    merged = Merged(tmp_path, 3)
    shuffled = [{"a": "a", "b": number, "v": "new", "at": 0} for number in (0, 7, 1, 8, 3, 2, 5, 9)]
    merged.write(shuffled, list(range(10_000, 10_008)), [0] * 8, 0)
    for unit_bytes in (1, 1 << 30):
        assert merged.decided(unit_bytes)[0].items() <= merged.superseded().items()


def test_a_minimum_key_that_is_too_great_hides_nothing(tmp_path: Path) -> None:
    merged = Merged(tmp_path, 5)
    keys = [{"a": "a", "b": number, "v": "new", "at": 0} for number in range(8)]
    merged.write(keys, list(range(10_000, 10_008)), [0] * 8, 0)
    files, table = merged.files, merged.merge_table
    (unit,) = plan_units(table, files, compacted=False)
    streams = dict(enumerate(files))
    last = files[-1]
    wrong = last.entry.with_file(replace(last.file, min_key=last.file.max_key))
    streams[len(files) - 1] = replace(last, entry=wrong)
    decided = merge_unit(table, unit, streams, {})
    expected = merged.superseded()
    assert {file: set(part.deleted) for file, part in decided.items()} == {
        file: expected[file] for file in decided
    }


def test_no_more_than_a_few_row_groups_of_each_run_are_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = Merged(tmp_path, 0)
    for file in range(20):  # a run of many files, and one file over all of them
        keys = [{"a": "z", "b": file * 100 + row, "v": "old", "at": 0} for row in range(40)]
        merged.write(keys, list(range(40)), [0] * 40, 5)
    every = [{"a": "z", "b": file * 100, "v": "new", "at": 0} for file in range(20)]
    merged.write(every, list(range(100, 120)), [0] * 20, 0)
    sizes: list[int] = []
    feeds: list[Any] = []
    pull, create_feed = key_ranges._Feed.pull, key_ranges._Feed.__init__

    def note(self: Any) -> None:
        pull(self)
        sizes.append(sum(feed.rows for feed in feeds))

    def collect(self: Any, *arguments: Any) -> None:
        feeds.append(self)
        create_feed(self, *arguments)

    monkeypatch.setattr(key_ranges._Feed, "pull", note)
    monkeypatch.setattr(key_ranges._Feed, "__init__", collect)
    assert merged.decided(1 << 40)[0].items() <= merged.superseded().items()
    assert sum(file.file.rows for file in merged.files) > 820
    assert max(sizes) <= 4 * GROUP  # of two runs, the row group in work and the next


@pytest.fixture(params=[1, 2_000, 1 << 30], ids=["many units", "some units", "whole sections"])
def unit_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*arguments: Any, **named: Any) -> Any:
        return plan_units(*arguments, **{**named, "unit_bytes": request.param})

    monkeypatch.setattr("alcid.tables.paimon.files.plan_units", cut)


@pytest.mark.usefixtures("unit_bytes")
def test_tasks_and_this_process_read_the_same_rows(tmp_path: Path) -> None:
    for seed in range(4):
        merged = Merged(tmp_path / str(seed), seed)
        table = merged.table
        in_tasks = PaimonTable(table.storage, engine=TaskEngine())
        assert read(table) == merged.rows()
        assert read(in_tasks) == merged.rows()
        assert in_tasks.count() == table.count() == len(merged.rows())
        for where in ("a = 'a'", "b > 4 AND v LIKE '%7'", "b IN (1, 2) OR at IS NULL", "at = 3"):
            expected = read(table, where)
            assert read(in_tasks, where) == expected
            assert in_tasks.count(where) == len(expected)


@pytest.mark.usefixtures("unit_bytes")
def test_what_one_read_finds_is_not_taken_for_all_of_a_file(tmp_path: Path) -> None:
    merged = Merged(tmp_path, 11)
    rows = merged.rows()
    for number in range(10):
        found = read(merged.table, f"b = {number}")
        assert found == [row for row in rows if row["b"] == number]
