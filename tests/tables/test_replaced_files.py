"""Data files replaced by others with the same size and time, so that indexes are wrong.

A file with the same rows in another order has the same footer, so only its rows differ.
"""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid import (
    DamagedIndexWarning,
    DeletionVector,
    FormatError,
    PaimonTable,
)
from alcid.tables.iceberg_table import IcebergTable
from tests.tables.iceberg.memory_catalog import MemoryCatalog
from tests.tables.paimon import small_tables

ROWS = 20_000
GROUP = 10_000
OPTIONS = {"file-index.bitmap.columns": "id", "file-index.range-bitmap.columns": "score"}
plain_write = partial(pq.write_table, compression="none", use_dictionary=False)


def rows_from(first: int, count: int = ROWS) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "score": pa.array([float(key) for key in ids]),
            "name": [f"n{key % 10}" for key in ids],
        }
    )


def write(path: Path, rows: pa.Table) -> None:
    plain_write(rows, path, row_group_size=GROUP, write_page_index=True)


def turned(rows: pa.Table) -> pa.Table:
    """The rows of each row group in reverse: its footer stays the same."""
    groups = [rows.slice(start, GROUP) for start in range(0, rows.num_rows, GROUP)]
    return pa.concat_tables([group.take(list(range(group.num_rows))[::-1]) for group in groups])


def replace(path: Path, change: Callable[[pa.Table], pa.Table] = turned) -> None:
    """Overwrite a file with other rows, and restore its modification time."""
    before = path.stat()
    write(path, change(pq.read_table(path)))
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files with indexes; the first was replaced afterwards."""
    for part in range(2):
        write(tmp_path / f"part-{part}.parquet", rows_from(part * ROWS))
    alcid.parquet(tmp_path).build_indexes(OPTIONS, progress=False)
    replace(tmp_path / "part-0.parquet")
    return tmp_path


def noticed() -> pytest.WarningsRecorder:
    """Expects one warning that names the file."""
    return pytest.warns(DamagedIndexWarning, match=r"not used: the indexes of .*part-0\.parquet: ")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 7", [7]),
        ("id IN (7, 8, 25000)", [8, 7, 25000]),
        ("id = 7 OR id = 19000", [7, 19000]),
        ("id = 7 AND name LIKE 'n%'", [7]),  # the index gives a part of it
        ("id = 7 AND name LIKE '%x'", []),
        ("score >= 10 AND score < 12", [11, 10]),
    ],
)
def test_rows_that_an_index_names_are_compared_with_the_predicate(
    folder: Path, where: str, expected: list[int]
) -> None:
    for columns in (["id"], ["name", "id"]):
        table = alcid.parquet(folder)
        with noticed():
            assert table.scan(where, columns=columns).to_arrow()["id"].to_pylist() == expected
        states = {(index.column, index.fresh) for index in table.indexes()}
        assert states == {("id", 2), ("score", 2)}  # nobody can tell, but this table knows:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert table.scan(where).count() == len(expected)
            assert table.scan(where, columns=columns).to_arrow()["id"].to_pylist() == expected


def test_columns_that_are_not_asked_for_are_compared_too(folder: Path) -> None:
    with noticed():
        rows = alcid.parquet(folder).scan("id = 7", columns=["name"]).to_arrow()
    assert rows["name"].to_pylist() == ["n7"]
    with noticed():
        assert alcid.parquet(folder).scan("id = 7", columns=[]).to_arrow().num_rows == 1


@pytest.mark.parametrize("limit", [1, 3, 1500])
def test_the_best_rows_are_compared_with_the_index_that_names_them(
    folder: Path, limit: int
) -> None:
    expected = [*range(limit)]
    with noticed():
        rows = alcid.parquet(folder).scan(order_by="score", limit=limit).to_arrow()
    assert rows["id"].to_pylist() == expected
    with noticed():
        scan = alcid.parquet(folder).scan("id >= 0", columns=["name"], order_by="score", limit=3)
        assert scan.to_arrow()["name"].to_pylist() == ["n0", "n1", "n2"]
    with noticed():  # rows that an index names, and the best of these by another one
        scan = alcid.parquet(folder).scan("id IN (7, 70, 700)", order_by="score DESC", limit=2)
        assert scan.to_arrow()["id"].to_pylist() == [700, 70]


def test_a_limit_and_an_order_are_kept(folder: Path) -> None:
    with noticed():
        rows = alcid.parquet(folder).scan("id IN (7, 8, 9)", limit=2).to_arrow()
    assert rows["id"].to_pylist() == [9, 8]
    with noticed():
        rows = alcid.parquet(folder).scan("id IN (7, 8, 9)", order_by="id").to_arrow()
    assert rows["id"].to_pylist() == [7, 8, 9]


def test_a_strict_table_raises(folder: Path) -> None:
    with pytest.raises(
        FormatError, match=r"part-0\.parquet: indexes of another file: its rows are not what"
    ):
        alcid.parquet(folder, strict=True).scan("id = 7").to_arrow()


def test_many_files_are_noticed_at_once(tmp_path: Path) -> None:
    for part in range(6):
        write(tmp_path / f"part-{part}.parquet", rows_from(part * GROUP, GROUP))
    alcid.parquet(tmp_path).build_indexes(OPTIONS, progress=False)
    for part in range(5):
        replace(tmp_path / f"part-{part}.parquet")
    table = alcid.parquet(tmp_path)
    keys = [part * GROUP + 7 for part in range(6)]
    scan = table.scan(f"id IN ({', '.join(map(str, keys))})")
    with pytest.warns(DamagedIndexWarning, match=r"part-0.*part-1.*part-2.* and 2 more: "):
        assert scan.to_arrow()["id"].to_pylist() == keys


def test_moved_pages_are_not_mistaken_for_the_indexed_ones(
    tmp_path: Path,
) -> None:
    def longer(rows: pa.Table) -> pa.Table:
        names = rows["name"].to_pylist()
        first, last = "long" * 100 + names[0], names[-1][400:]
        return rows.set_column(2, "name", pa.array([first, *names[1:-1], last]))

    rows = rows_from(0).set_column(2, "name", pa.array(["n"] * (ROWS - 1) + ["m" * 401]))
    write(tmp_path / "part-0.parquet", rows)
    alcid.parquet(tmp_path).build_indexes(
        {**OPTIONS, "file-index.bloom-filter.columns": "name"}, progress=False
    )
    replace(tmp_path / "part-0.parquet", longer)
    table = alcid.parquet(tmp_path)
    with noticed():
        pairs = table.scan("id = 9", columns=["id", "name"]).to_arrow().to_pylist()
        table.scan("id > 5").to_arrow()  # where its footer is read at the latest
    assert pairs == [{"id": 9, "name": "n"}]


def test_the_footer_is_compared_when_pages_are_looked_up_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "part-0.parquet", rows_from(0))
    alcid.parquet(tmp_path).build_indexes({"file-index.bitmap.columns": "id"}, progress=False)
    replace(tmp_path / "part-0.parquet", lambda rows: rows.take(list(range(ROWS))[::-1]))
    table = alcid.parquet(tmp_path)
    monkeypatch.setattr(table.snapshot, "_known_layouts", lambda _wanted: {})
    with pytest.warns(DamagedIndexWarning, match="another footer than when it was indexed"):
        assert table.scan("id = 7").to_arrow()["id"].to_pylist() == [7]


def test_deleted_rows_stay_deleted(folder: Path) -> None:
    deleted = {"part-0.parquet": DeletionVector([GROUP - 1 - 8])}  # with id 8, in its current state
    with noticed():
        rows = alcid.parquet(folder).with_deletions(deleted).scan("id IN (7, 8)").to_arrow()
    assert rows["id"].to_pylist() == [7]


@pytest.mark.parametrize("where", ["id IN (7, 8)", "id IN (7, 8) AND name LIKE 'n%'"])
def test_a_task_reads_the_file_without_indexes(folder: Path, where: str) -> None:
    vectors = {"part-0.parquet": DeletionVector([GROUP - 1 - 8])}
    for deletions, expected in (({}, [8, 7]), (vectors, [7])):
        table = alcid.parquet(folder).with_deletions(deletions)
        plan, is_whole = table.scan(where, columns=["name", "id"]).plan()
        assert is_whole
        part = pickle.loads(pickle.dumps(plan.read_plan()))
        with noticed():
            (rows,) = part.read()
        assert rows.table["id"].to_pylist() == expected
        with noticed():
            assert plan.to_arrow()["id"].to_pylist() == expected


def test_a_task_notices_another_footer(tmp_path: Path) -> None:
    write(tmp_path / "part-0.parquet", rows_from(0))
    alcid.parquet(tmp_path).build_indexes(OPTIONS, progress=False)
    replace(tmp_path / "part-0.parquet", lambda rows: rows.take(list(range(ROWS))[::-1]))
    plan, _ = alcid.parquet(tmp_path).scan("score > 5 AND score < 19000").plan()
    part = pickle.loads(pickle.dumps(plan.read_plan()))
    with noticed():
        rows = list(part.read())
    assert sum(map(len, rows)) == 18_994


# Tables whose metadata list their files.


@pytest.fixture
def plain_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files whose size does not depend on the order of their rows."""
    monkeypatch.setattr(pq, "write_table", plain_write)


def paimon_table(path: Path) -> PaimonTable:
    table = small_tables.create(path)
    small_tables.append(table, range(ROWS))
    small_tables.append(table, range(ROWS, 2 * ROWS))
    table.build_indexes({"file-index.bitmap.columns": "id"}, progress=False)
    first = path / table.snapshot.paths[0].as_py()
    first.write_bytes(_turned(first))
    return alcid.paimon(path)


def iceberg_table(path: Path) -> IcebergTable:
    catalog = MemoryCatalog(path)
    for number, name in enumerate("ab"):
        ids = range(number * ROWS, (number + 1) * ROWS)
        catalog.add({f"{name}.parquet": {"id": ids, "name": [f"n{key % 5}" for key in ids]}})
    IcebergTable(catalog).build_indexes({"file-index.bitmap.columns": "id"}, progress=False)
    first = path / "data" / "a.parquet"
    first.write_bytes(_turned(first))
    return IcebergTable(catalog)


def _turned(path: Path) -> bytes:
    """A file with its rows in reverse, and the same size."""
    rows, sink = pq.read_table(path), pa.BufferOutputStream()
    groups = pq.ParquetFile(path).metadata.row_group(0).num_rows
    pq.write_table(rows.take(list(range(rows.num_rows))[::-1]), sink, row_group_size=groups)
    data: bytes = sink.getvalue().to_pybytes()
    assert len(data) == path.stat().st_size
    return data


@pytest.mark.usefixtures("plain_files")
@pytest.mark.parametrize("make", [paimon_table, iceberg_table])
def test_tables_with_metadata_notice_it_too(
    tmp_path: Path, make: Callable[[Path], PaimonTable | IcebergTable]
) -> None:
    table = make(tmp_path / "t")
    with pytest.warns(DamagedIndexWarning, match="not used: the indexes of "):
        assert table.scan("id = 7", columns=["name"]).to_arrow()["name"].to_pylist() == ["n2"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.count("id IN (7, 8, 25000)") == 3
        assert table.scan("id > 5 AND id < 8").to_arrow()["id"].to_pylist() == [7, 6]
        table.build_indexes({"file-index.bitmap.columns": "id"}, rebuild=True, progress=False)
        scan = table.scan("id = 7")
        assert scan.to_arrow()["name"].to_pylist() == ["n2"]
    assert ("bitmap", "answered", 1) in [
        (index.index, index.outcome, index.files) for index in scan.explain().indexes
    ]


@pytest.mark.usefixtures("plain_files")
def test_rows_are_deleted_where_they_are(tmp_path: Path) -> None:
    table = paimon_table(tmp_path / "t")
    with pytest.warns(DamagedIndexWarning, match="not used: the indexes of "):
        assert table.delete("id IN (7, 8, 25000)").rows == 3
    left = alcid.paimon(tmp_path / "t").scan(columns=["id"], use_indexes=False).to_arrow()
    assert sorted(left["id"].to_pylist()) == sorted({*range(2 * ROWS)} - {7, 8, 25_000})


def test_bounds_of_row_groups_are_cached_as_long_as_their_footer(tmp_path: Path) -> None:
    write(tmp_path / "part-0.parquet", rows_from(0))
    files = alcid.parquet(tmp_path).snapshot
    (scan,) = files.open([0])
    bounds = files.group_bounds(0, scan, ["id"])["id"]
    assert bounds.minima.to_pylist() == [0, GROUP]
    assert files.group_bounds(0, files.open([0])[0], ["id", "name"])["id"] is bounds
    files.check_again([0])
    fresh = files.group_bounds(0, files.open([0])[0], ["id"])["id"]
    assert fresh is not bounds
    assert fresh.minima == bounds.minima
