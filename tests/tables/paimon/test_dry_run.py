"""Dry runs: they report exactly what is then done, and change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alcid
from alcid import PaimonTable
from alcid.errors import UnsupportedError

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.string()), ("name", pa.string())])
OPTIONS = {"deletion-vectors.enabled": "true", "file-index.bitmap.columns": "name"}
_UNKNOWN = ("files_after", "rows", "bytes_written", "snapshot_id")  # for a compaction

Step = tuple[str, Any]
numbers = st.integers(0, 30)
changes = st.lists(st.tuples(numbers, st.sampled_from(["a", "b"])), max_size=12)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), changes),
        st.tuples(st.just("delete"), st.tuples(numbers, numbers)),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(st.just("drop"), st.none()),
        st.tuples(st.just("build"), st.sampled_from(["name", "name,id", "id"])),
    ),
    min_size=1,
    max_size=6,
)


def made_table(folder: Path, *, bucket: str | None) -> PaimonTable:
    """A table with a primary key, or without, if it has no buckets."""
    options = OPTIONS if bucket is None else {**OPTIONS, "bucket": bucket}
    key = [] if bucket is None else ["day", "id"]
    return alcid.create_table(
        folder, COLUMNS, primary_key=key, partition_by=["day"], options=options
    )


def rows_of(rows: list[tuple[int, str]]) -> pa.Table:
    ids, days = [number for number, _ in rows], [day for _, day in rows]
    return pa.table({"id": ids, "day": days, "name": [f"n{key % 3}" for key in ids]}, COLUMNS)


def work(table: PaimonTable, step: Step) -> Callable[[bool], Any] | None:
    """The report of a step, as a dry run or not; None if the table does not support it."""
    name, what = step
    is_keyed = bool(table.snapshot.schema.primary_keys)
    match name:
        case "write" if is_keyed:
            return lambda dry: table.upsert(rows_of(what), dry_run=dry)
        case "write":
            return lambda dry: table.append(rows_of(what), dry_run=dry)
        case "delete":
            where = f"id >= {min(what)} AND id <= {max(what)}"
            return lambda dry: table.delete(where, dry_run=dry, progress=False)
        case "compact":
            return (lambda dry: table.compact(dry_run=dry, progress=False)) if is_keyed else None
        case "drop":
            return lambda dry: table.drop_indexes(["name"], dry_run=dry)
    options = {"file-index.bitmap.columns": what}
    return lambda dry: table.build_indexes(options, dry_run=dry, progress=False)


def state(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def check(dry: Any, real: Any) -> None:
    """Check that everything in a dry run's report was then done."""
    if isinstance(real, int):
        assert dry == real
        return
    names = {field.name for field in fields(real)} - {"seconds", "dry_run"}
    if hasattr(real, "files_after"):
        names -= set(_UNKNOWN)
    if hasattr(real, "missing"):
        names -= {"missing", "dropped", "data_bytes", "bytes_written", "snapshot_id"}
    assert (dry.dry_run, real.dry_run) == (True, False)
    assert {name: getattr(dry, name) for name in names} == {
        name: getattr(real, name) for name in names
    }


@pytest.mark.parametrize("bucket", [None, "2", "-1"])
@settings(max_examples=8)
@given(todo=steps)
def test_dry_runs_say_what_is_then_done(bucket: str | None, todo: list[Step]) -> None:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "t"
        table = made_table(folder, bucket=bucket)
        for step in todo:
            run = work(table, step)
            if run is not None:
                before = state(folder)
                dry = run(True)
                assert state(folder) == before
                check(dry, run(False))
        assert table.verify(progress=False).ok


def test_changes_of_a_changed_can_be_read_there(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t", bucket="2")
    table.upsert(rows_of([(1, "a"), (2, "a")]))
    changed = table.dry_run()
    changed.upsert(rows_of([(2, "a"), (3, "b")]))
    changed.delete("id = 1", progress=False)
    changed.compact(progress=False)
    assert sorted(changed.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [2, 3]
    table.refresh()
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_dry_run_takes_arrow_only(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t", bucket=None)
    for rows in ([1], object()):
        with pytest.raises(UnsupportedError, match="expected an Arrow table for a dry run"):
            table.append(rows, dry_run=True)


def test_a_table_of_the_past_is_not_changed_by_dry_runs_either(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t", bucket=None)
    table.append(rows_of([(1, "a")]))
    past = alcid.paimon(tmp_path / "t", snapshot_id=1)
    for run in (
        lambda: past.append(rows_of([(2, "a")]), dry_run=True),
        lambda: past.delete("id = 1", dry_run=True),
        lambda: past.build_indexes(dry_run=True),
        lambda: past.drop_indexes(dry_run=True),
    ):
        with pytest.raises(UnsupportedError, match="of the past"):
            run()


def test_the_report_of_a_dry_run_differs_in_that_only(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t", bucket=None)
    dry = table.append(rows_of([(1, "a")]), dry_run=True)
    real = table.append(rows_of([(1, "a")]))
    assert replace(dry, dry_run=False, seconds=real.seconds) == real
    assert str(dry).startswith("would have appended 1 row in 1 file")
