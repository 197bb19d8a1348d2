"""Random upserts, deletes and compactions of a table, and of the rows that it should have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.errors import UnsupportedError
from alcid.tables.paimon.data_files import PlacedFile, place_files, table_paths
from alcid.tables.paimon.keyed import commit
from alcid.tables.reports import UpsertReport
from tests.golden.paimon_writing import RowKind
from tests.tables.paimon.keyed.upsert_model import Key
from tests.tables.paimon.keyed.upsert_table import UpsertTable
from tests.tables.paimon.known_rows import Rows
from tests.tables.paimon.machine import NOTHING
from tests.tables.paimon.machine_table import MachineTable
from tests.tables.paimon.random_predicates import Row

__all__ = ["Outcome", "UpsertMachine"]

MANY_FILES = 12  # each of them slows down every scan
ROW_KINDS: tuple[RowKind, ...] = ("+I", "+U", "-U", "-D")


class Outcome(Enum):
    """The outcome of the rows of an upsert."""

    COMPACTED = "compacted"
    LEFT = "left on level 0"
    KILLED = "killed"


class _KilledError(BaseException):
    """The process ends here."""


class UpsertMachine(UpsertTable):
    """The possible steps on a table with a primary key."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.newest_of: dict[int, Rows] = {}
        """The rows of each snapshot if level 0 is merged."""
        self._keys_of: dict[str, tuple[set[Key], set[Key]]] = {}
        self._touched: set[Key] = set()
        self._killed: set[Key] = set()
        self._outcome = Outcome.COMPACTED

    def steps(self) -> dict[Callable[[], str], int]:
        return {
            self.upsert: 24,
            self.kill: 2,
            self.delete: 6,
            self.compact: 3 if self.table.files < MANY_FILES else 20,
            self.build: 3,
            self.drop: 2,
            self.change_columns: 2,
            self.change_options: 1,
            self.compute_stats: 1,
            self.clean: 2,
            self.expire: 1,
            self.tag: 1,
            self.travel: 2,
            self.reopen: 2,
            self.verify: 1,
        }

    # -- steps ---------------------------------------------------------------------------------

    def upsert(self) -> str:
        return self._upsert(write_only=self.source.random() < 0.2)

    def kill(self) -> str:
        """Kill an upsert between its two snapshots, if it makes two."""

        def killed(*_: object) -> None:
            raise _KilledError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(commit, "commit_compact", killed)
            return self._upsert(write_only=False)

    def _upsert(self, *, write_only: bool) -> str:
        rows = self.draw_rows()
        row_kind = "op" if "op" in self.now.columns else None
        if row_kind is None and self.source.random() < 0.3:
            row_kind = "change"
        kinds = self.draw_kinds(len(rows)) if row_kind else ["+I"] * len(rows)
        if row_kind == "op":
            rows = [{**row, "op": kind} for row, kind in zip(rows, kinds, strict=True)]
        options = None
        if self.source.random() < 0.2:
            options = {} if self.source.random() < 0.3 else self._index_options(self.now.columns)
        names = rows[0].keys() if rows else self.now.columns.keys()
        upserted = self.arrow(rows, names)
        if row_kind == "change":
            upserted = upserted.append_column(row_kind, pa.array(kinds, pa.string()))
        before = set(self.model.compacted) if not self.model.waiting else None
        try:
            report = self.table.upsert(
                self.as_input(upserted),
                row_kind=row_kind if row_kind == "change" else None,
                write_only=write_only,
                options=options,
            )
            self.take(kinds, rows, Outcome.LEFT if write_only else Outcome.COMPACTED)
            self.check_report(report, before)
        except _KilledError:
            self.take(kinds, rows, Outcome.KILLED)
        some = [(kind, *row.values()) for kind, row in zip(kinds, rows, strict=True)]
        return f"{list(names)} {some}, {row_kind=}, {write_only=}, {options=}, {self._outcome}"

    def check_report(self, report: UpsertReport, before: set[Key] | None) -> None:
        """An upsert tells how many rows it put, deleted and replaced.

        Args:
            report: What it tells.
            before: The keys that there were, if no row was on level 0.
        """
        if self.is_lazy or self._outcome is Outcome.LEFT:
            assert report.rows + report.deletes == len(self._touched)
        elif report.replaced is not None and before is not None:
            live = self.model.merged()
            new = {key for key in self._touched if key in live and self.model.is_changed(key)}
            gone = (before - live.keys()) & self._touched
            assert report.replaced == len(new & before) + len(gone)
            # Where a bucket was not searched, outdated rows and deletes of nothing count too.
            assert len(new) <= report.rows <= len(self._touched) - report.deletes
            assert len(gone) <= report.deletes

    def draw_kinds(self, count: int) -> list[RowKind]:
        """The kinds of rows: mostly inserts, or mostly deletes."""
        weights = self.source.choice([(1, 0, 0, 0), (4, 4, 1, 1), (1, 1, 4, 4), (0, 0, 0, 1)])
        return self.source.choices(ROW_KINDS, weights, k=count)

    def take(self, kinds: Sequence[str], rows: Sequence[Row], outcome: Outcome) -> None:
        """Apply the changes of an upsert to the model."""
        numbers = {field.name: field.id for field in self.now.schema.fields}
        stored = [
            {numbers[name]: value for name, value in row.items() if name in numbers} for row in rows
        ]
        self._touched = self.model.take(zip(kinds, stored, strict=True))
        self._outcome = outcome

    def delete(self) -> str:
        gone = self.draw_deletion()
        if "ignore-delete" in self.now.schema.options:
            with pytest.raises(UnsupportedError, match="ignore-delete"):
                self.table.delete(gone.sql)
            return NOTHING
        rows = gone.among(self._newest().named())
        report = self.table.delete(gone.sql)
        assert report.rows == len(rows), gone.sql
        self.take(["-D"] * len(rows), rows, Outcome.COMPACTED)
        return f"{[list(row.values()) for row in rows]}: {gone.sql}"

    def compact(self) -> str:
        partition = None
        if self.now.schema.partition_keys and self.source.random() < 0.5:
            values = self.partition_values[self.now.columns["dt"]]
            partition = {"dt": self.source.choice(values)}
        self.table.compact(partition)
        self.table.refresh()
        waiting, _ = self._levels()
        for key in waiting:
            assert partition is not None
            assert key[0] != partition["dt"]
        return str(partition)

    def reopen(self) -> str:
        self.table = self._open()
        return ""

    def verify(self) -> str:
        self.table.refresh()
        # What compactions of Java leave: index files without a vector, and vectors of files that
        # are gone, which a repair removes.
        empty = sum(index.ranges == () for index in self.table.snapshot.state.indexes)
        if self.source.random() < 0.3:
            repaired = self.table.repair(progress=False)
            assert repaired.ok, str(repaired)
            assert len(repaired.repaired) >= empty
            assert all(repair.done.endswith("dropped") for repair in repaired.repaired), str(
                repaired
            )
        report = self.table.verify(progress=False)
        assert report.ok, str(report)
        self.check_buckets()
        return ""

    def finish(self) -> None:
        self.check_buckets()
        super().finish()

    # -- what is to be seen --------------------------------------------------------------------

    def remember(self) -> None:
        """Find out what is on level 0, and remember what new snapshots should have."""
        before, merged = self.now, self._newest()
        waiting, _ = self._levels()
        self._check_level_0(waiting)
        assert waiting <= self.model.waiting.keys(), "rows went back to level 0"
        self.model.compact(waiting)
        self.now = self._newest()
        if not self.merges:
            self.now = replace(self.now, rows=list(self.model.compacted.values()))
        last = self.table.snapshot_id or 0
        for number in range(max(self.newest_of, default=0) + 1, last):
            # An upsert makes two snapshots; in the first the new rows are on level 0.
            self.past[number] = merged if self.merges else before
            self.newest_of[number] = merged
        if last and last not in self.newest_of:
            self.past[last], self.newest_of[last] = self.now, merged

    def _check_level_0(self, waiting: set[Key]) -> None:
        """Check what an upsert has left on level 0."""
        snapshot = self.table.snapshot.state.snapshot
        if self._outcome is Outcome.LEFT:
            assert waiting >= self._touched, "an upsert that only writes compacted"
        elif self._outcome is Outcome.KILLED:
            self._killed |= self._touched
        elif self._touched and not self.is_lazy:
            assert not waiting & self._touched, "an upsert left rows on level 0"
            if snapshot is not None and snapshot.commit_kind == "COMPACT":
                assert not waiting & self._killed, "an upsert did not finish one that was killed"
        self._killed &= waiting
        self._touched, self._outcome = set(), Outcome.COMPACTED

    def _newest(self) -> Rows:
        return replace(self.now, rows=list(self.model.merged().values()))

    def _levels(self) -> tuple[set[Key], dict[Key, set[int]]]:
        """Keys of rows that wait for a compaction, and the buckets of each key."""
        waiting: set[Key] = set()
        buckets: dict[Key, set[int]] = {}
        for placed in self._live_files():
            name = placed.file.name
            if name not in self._keys_of:
                self._keys_of[name] = self._read_keys(placed)
            keys, deleting = self._keys_of[name]
            waiting |= deleting if placed.file.level else keys
            for key in keys:
                buckets.setdefault(key, set()).add(placed.entry.bucket)
        return waiting, buckets

    def _live_files(self) -> list[PlacedFile]:
        snapshot = self.table.snapshot
        return place_files(snapshot.state.entries, table_paths(snapshot.schema, snapshot.options))

    def _read_keys(self, placed: PlacedFile) -> tuple[set[Key], set[Key]]:
        """The keys in a file, and those of its delete records."""
        names = self.now.schema.primary_keys
        with pq.ParquetFile(self.path / placed.path) as file:
            rows = file.read(columns=[*names, "_VALUE_KIND"]).to_pylist()
        pairs = [(tuple(row[name] for name in names), row["_VALUE_KIND"]) for row in rows]
        return {key for key, _ in pairs}, {key for key, kind in pairs if kind in (1, 3)}

    # -- checks --------------------------------------------------------------------------------

    def check(self) -> None:
        """Check the rows; in most machines after every other step, to save time."""
        if not self.is_thorough and self.source.random() < 0.5:
            return
        super().check()
        if self.model.waiting and not self.merges:
            with self._merged():
                MachineTable.check(self)

    def check_index_names(self, options: Mapping[str, str]) -> None:
        with self._merged():  # files of level 0 have indexes too
            super().check_index_names(options)

    @contextmanager
    def _merged(self) -> Iterator[None]:
        """Check level 0 too."""
        usual = self.table, self.now
        self.table, self.now = self._open(merge_on_read=True), self._newest()
        yield
        self.table, self.now = usual

    def check_past(self) -> None:
        super().check_past()
        self.newest_of = {number: self.newest_of[number] for number in self.past}
        if self.past:
            number = self.source.choice(list(self.past))
            then = self._open(snapshot_id=number, merge_on_read=True)
            self.check_rows(then, self.newest_of[number])

    def check_buckets(self) -> None:
        """Each key is in one bucket, and no bucket has more keys than allowed."""
        self.table.refresh()
        _, buckets = self._levels()
        assert {key: numbers for key, numbers in buckets.items() if len(numbers) > 1} == {}
