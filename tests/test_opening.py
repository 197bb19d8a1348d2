"""`alcid.table` opens what a text names; the functions for single kinds are tested elsewhere."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.errors import OptionError, StorageError, UnsupportedError
from alcid.opening import is_name

SCHEMA = pa.schema([("id", pa.int64())])
ROWS = pa.table({"id": [1, 2, 3]}, SCHEMA)


def test_the_folder_determines_the_kind(tmp_path: Path) -> None:
    made = alcid.create_table(tmp_path / "paimon", SCHEMA)
    made.append(ROWS)
    (tmp_path / "schema").mkdir()  # a name that a folder of Parquet files may have, too
    pq.write_table(ROWS, tmp_path / "schema" / "schema-1.parquet")
    assert type(alcid.table(tmp_path / "paimon")) is alcid.PaimonTable
    assert type(alcid.table(f"{tmp_path}/schema")) is alcid.ParquetTable
    assert alcid.table((tmp_path / "schema").as_uri()).count() == 3


def test_folder_with_a_schema_folder_of_data_is_one_of_parquet_files(tmp_path: Path) -> None:
    (tmp_path / "schema").mkdir()
    pq.write_table(ROWS, tmp_path / "schema" / "a.parquet")
    assert alcid.table(tmp_path).count("id > 1") == 2


def test_options_go_to_the_table(tmp_path: Path) -> None:
    made = alcid.create_table(tmp_path / "t", SCHEMA)
    made.append(ROWS)
    made.append(ROWS)
    assert alcid.table(tmp_path / "t", snapshot_id=1).count() == 3
    assert alcid.table(tmp_path / "t").count() == 6
    with pytest.raises(StorageError, match="none"):
        alcid.table(tmp_path / "t", ref="none")
    (tmp_path / "p").mkdir()
    pq.write_table(ROWS, tmp_path / "p" / "a.parquet")
    indexed = alcid.table(tmp_path / "p", index_path=tmp_path / "i")
    assert isinstance(indexed, alcid.ParquetTable)
    indexed.build_indexes({"file-index.bsi.columns": "id"}, progress=False)
    assert (len(indexed.indexes()), alcid.table(tmp_path / "p").indexes()) == (1, [])


@pytest.mark.parametrize("past", [{"snapshot_id": 1}, {"ref": "a"}])
def test_folder_of_parquet_files_has_no_past(tmp_path: Path, past: dict[str, str | int]) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    with pytest.raises(OptionError, match="a folder of Parquet files, which has neither snapshots"):
        alcid.table(tmp_path, **past)  # type: ignore[arg-type]


def test_only_paimon_tables_have_what_is_not_compacted(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    with pytest.raises(OptionError, match=r"^merge_on_read: .* is no Paimon table"):
        alcid.table(tmp_path, merge_on_read=True)


def test_file_is_refused_with_its_folder(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    for opened in (alcid.table, alcid.parquet):
        with pytest.raises(UnsupportedError) as raised:
            opened(tmp_path / "a.parquet")
        assert str(raised.value) == f"{tmp_path}/a.parquet: a file; a table is a folder: {tmp_path}"


def test_folder_of_paimon_tables_names_them(tmp_path: Path) -> None:
    for name in ("orders", "users"):
        alcid.create_table(tmp_path / "shop.db" / name, ROWS.schema)
    with pytest.raises(UnsupportedError) as raised:
        alcid.table(tmp_path)
    problem = "a folder of Paimon tables, open one of them: shop.db/orders, shop.db/users"
    assert str(raised.value) == f"{tmp_path}: {problem}"


def test_index_path_is_for_folders_of_parquet_files(tmp_path: Path) -> None:
    alcid.create_table(tmp_path / "t", SCHEMA)
    with pytest.raises(OptionError, match=r"^index_path: .*t keeps its indexes itself"):
        alcid.table(tmp_path / "t", index_path=tmp_path / "i")


def test_name_of_an_iceberg_table_needs_a_session() -> None:
    with pytest.raises(UnsupportedError, match=r"^a\.b\.c: no such folder, and as the name of"):
        alcid.table("a.b.c")


def test_missing_folder_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    with pytest.raises(StorageError, match=r"evnts: no such folder; did you mean events\?$"):
        alcid.table(tmp_path / "evnts")
    with pytest.raises(StorageError, match=r"nothing/at/all: no such folder$"):
        alcid.table(tmp_path / "nothing" / "at" / "all")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lake.shop.orders", True),
        ("lake.`odd db`.`a.b`", True),
        ("lake.a.b.orders", True),
        ("orders", False),
        ("shop.orders", False),
        ("./lake.shop.orders", False),
        ("s3://lake/a.b.c", False),
        ("C:\\a.b.c", False),
        ("a..b", False),
        ("..", False),
    ],
)
def test_names_are_distinguished_from_paths(text: str, expected: bool) -> None:
    assert is_name(text) is expected


def test_folder_that_looks_like_a_name_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.b.c").mkdir()
    pq.write_table(ROWS, "a.b.c/part.parquet")
    assert alcid.table("a.b.c").count() == 3
    assert not is_name(Path("x.y.z"))
