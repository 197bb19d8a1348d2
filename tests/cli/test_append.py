from __future__ import annotations

import gzip
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import alcid as library
from tests.cli.samples import Alcid
from tests.cli.writing import ids_of, paimon_table, rows_of, same_numbers, state, text_of
from tests.datafiles.parquet.kit import int96, int96_written, java_int96


def test_a_dry_run_says_what_then_is_appended(alcid: Alcid, tmp_path: Path) -> None:
    folder, file = tmp_path / "t", tmp_path / "rows.parquet"
    paimon_table(folder, options={"file-index.bitmap.columns": "name"})
    pq.write_table(rows_of(0, 50).drop_columns("score"), file)
    before = state(folder)
    shown = text_of(alcid("append", folder, file, "--dry-run")).splitlines()
    assert shown[0].startswith("would have appended 50 rows in 1 file, ")
    assert shown[1:] == ["columns: id, name", "not given: score"]
    dry = alcid("append", folder, file, "--dry-run", "--json")
    assert state(folder) == before
    assert (dry.json["columns"], dry.json["not_given"]) == (["id", "name"], ["score"])
    same = same_numbers(dry, alcid("append", folder, file, "--json"))
    assert set(same) == {
        *("files", "rows", "bytes_written", "index_bytes", "bundles", "skipped", "snapshot_id")
    }
    assert (same["rows"], same["files"], same["snapshot_id"]) == (50, 1, 1)
    assert same["index_bytes"] > 0
    assert ids_of(folder) == list(range(50))


def test_files_of_every_kind_are_appended_in_one_snapshot(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    paimon_table(folder)
    files = [tmp_path / f"rows.{kind}" for kind in ("parquet", "orc", "arrow", "csv", "jsonl")]
    for number, file in enumerate(files):
        rows = rows_of(number * 10, number * 10 + 10)
        match file.suffix:
            case ".parquet":
                pq.write_table(rows, file)
            case ".orc":
                pa.orc.write_table(rows, file)
            case ".arrow":
                pa.feather.write_feather(rows, file, compression="uncompressed")
            case ".csv":
                lines = (f"{row['id']},{row['name']},{row['score']}" for row in rows.to_pylist())
                file.write_text("\n".join(["ID,name,score", *lines]))
            case ".jsonl":
                file.write_text("".join(f"{json.dumps(row)}\n" for row in rows.to_pylist()))
    run = alcid("append", folder, *files[:3], "--json")
    assert (run.json["rows"], run.json["snapshot_id"]) == (30, 1)
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(files[4].read_bytes()))
    assert alcid("append", folder, files[3], "--json").json["rows"] == 10
    assert alcid("append", folder, packed, "--json").json["rows"] == 10
    table = library.paimon(folder).scan(order_by="id").to_arrow()
    assert table.to_pylist() == rows_of(0, 50).to_pylist()


def test_int96_is_appended_exactly(alcid: Alcid, tmp_path: Path) -> None:
    """Arrow alone reads the first of these as a moment in 1816."""
    folder, file = tmp_path / "t", tmp_path / "rows.parquet"
    alcid("create", folder, "--schema", "coarse TIMESTAMP(6)")
    values = pa.array([int96(2_932_896, 0), java_int96(-1744877000), None], pa.binary(12))
    file.write_bytes(int96_written(pa.table({"coarse": values})))
    assert alcid("append", folder, file).status == 0
    assert library.paimon(folder).scan().to_arrow()["coarse"].to_pylist() == [
        datetime(9999, 12, 31),
        datetime(1969, 12, 31, 23, 59, 58, 255123),
        None,
    ]
    fine = tmp_path / "fine"
    alcid("create", fine, "--schema", "coarse TIMESTAMP(9)")
    run = alcid("append", fine, file)
    assert (run.status, "would result in out of bounds timestamp" in run.err) == (1, True)
    file.write_bytes(int96_written(pa.table({"coarse": values[1:]})))
    assert alcid("append", fine, file).status == 0
    column = library.paimon(fine).scan().to_arrow()["coarse"]
    assert column.cast(pa.int64()).to_pylist() == [-1744877000, None]


def test_csv_and_json_have_the_types_of_the_table(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    columns = "code STRING, price DECIMAL(9, 2), day DATE, at TIMESTAMP(3), ok BOOLEAN, n TINYINT"
    alcid("create", folder, "--schema", columns)
    csv, lines = tmp_path / "a.csv", tmp_path / "b.ndjson"
    csv.write_text(
        "code,price,day,at,ok,n\n"
        '007,1.5,2025-08-01,2025-08-01 12:30:00.123,true,-3\n"",,,,,\n,,,,,\nNA,,,,,\n'
    )
    first = {"code": "008", "price": "2.25", "at": "2025-08-01 00:00:00", "ok": None, "n": 7}
    lines.write_text(json.dumps(first) + "\n")
    assert alcid("append", folder, csv).status == 0
    assert alcid("append", folder, lines).status == 0
    rows = library.paimon(folder).scan().to_arrow().to_pylist()
    rows.sort(key=lambda row: (row["code"] is None, row["code"]))
    assert [row["code"] for row in rows] == ["", "007", "008", "NA", None]
    assert (rows[1]["price"], rows[1]["day"], rows[1]["ok"], rows[1]["n"]) == (
        Decimal("1.50"),
        date(2025, 8, 1),
        True,
        -3,
    )
    assert str(rows[1]["at"]) == "2025-08-01 12:30:00.123000"
    assert (rows[2]["price"], rows[2]["day"], rows[2]["n"]) == (Decimal("2.25"), None, 7)


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["real", "dry"])
@pytest.mark.parametrize(
    ("name", "content", "status", "problem"),
    [
        ("a.csv", "id,nmae\n1,x\n", 2, "nmae"),
        ("a.csv", "name\nx\n", 2, "column id: NOT NULL in the table, and not given"),
        ("a.csv", "id\nx\n", 1, "a.csv: In CSV column #0: CSV conversion error to int64"),
        ("a.csv", "id,name\n,x\n", 1, "column id: found null, expected NOT NULL"),
        ("a.csv", "", 1, "a.csv: Empty CSV file"),
        ("a.jsonl", '{"id": "x"}\n', 1, "a.jsonl: JSON parse error"),
        ("a.parquet", "PAR1 or not", 1, "a.parquet: "),
        ("a.txt", "id\n1\n", 2, "a.txt: expected a file that ends with one of"),
        ("a.parquet.gz", "", 2, "a.parquet.gz: expected a file that ends with one of"),
    ],
)
def test_what_does_not_fit_is_the_same_error_for_a_dry_run(
    alcid: Alcid,
    tmp_path: Path,
    name: str,
    content: str,
    status: int,
    problem: str,
    dry: tuple[str, ...],
) -> None:
    folder, file = tmp_path / "t", tmp_path / name
    paimon_table(folder)
    file.write_text(content)
    before = state(folder)
    run = alcid("append", folder, file, *dry)
    assert (run.status, run.out, run.err.count("\n")) == (status, "", 1)
    assert problem in run.err
    assert state(folder) == before


def test_a_file_that_is_not_there(alcid: Alcid, tmp_path: Path) -> None:
    paimon_table(tmp_path / "t")
    run = alcid("append", tmp_path / "t", tmp_path / "none.csv")
    assert (run.status, run.out) == (1, "")
    assert run.err == f"alcid: {tmp_path}/none.csv: could not be read: no such file or folder\n"


def test_a_table_with_a_key_takes_upserts_only(alcid: Alcid, tmp_path: Path) -> None:
    paimon_table(tmp_path / "t", keyed=True)
    (tmp_path / "a.csv").write_text("id\n1\n")
    run = alcid("append", tmp_path / "t", tmp_path / "a.csv")
    assert (run.status, run.out) == (1, "")
    assert run.err == "alcid: append: the table has a primary key, which takes an upsert\n"
