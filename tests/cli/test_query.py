"""`alcid query`: the rows, in each format, of Parquet folders and Paimon tables."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import alcid as library
from tests.cli.examples import EVENTS, ORDERS
from tests.cli.samples import Alcid

ODD = pa.table(
    {
        "n": pa.array([1, -22], pa.int8()),
        "name": ['a\nb,"c"', ""],
        "at": pa.array([datetime(2025, 8, 1, 12, 0, 0, 500_000), None], pa.timestamp("us", "UTC")),
        "cost": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "ratio": [float("nan"), 0.25],
        "narrow": pa.array([0.1, None], pa.float32()),
        "raw": [b"\x00\xff", None],
        "tags": pa.array([[("k", [1, None])], None], pa.map_(pa.string(), pa.list_(pa.int32()))),
        "ok": [True, None],
    }
)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    folder = tmp_path / "events"
    folder.mkdir()
    pq.write_table(EVENTS, folder / "a.parquet")
    return folder


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    folder = tmp_path / "odd"
    folder.mkdir()
    pq.write_table(ODD, folder / "a.parquet")
    return folder


def test_table_shows_twenty_rows_and_says_that_there_are_more(alcid: Alcid, events: Path) -> None:
    run = alcid("query", events, "--select", "id, user")
    lines = run.out.splitlines()
    assert (run.status, run.err, len(lines)) == (0, "", 22)
    assert lines[:3] == ["id  user", " 0  u0", " 1  u1"]
    assert lines[-2:] == ["19  u9", "(20 rows, and there are more: --limit 0 for all)"]


@pytest.mark.parametrize(("limit", "shown"), [("2", 2), ("25", 25), ("0", 1000)])
def test_limit_of_a_table(alcid: Alcid, events: Path, limit: str, shown: int) -> None:
    run = alcid("query", events, "--limit", limit)
    assert len(run.out.splitlines()) == shown + 2
    assert run.out.endswith(f"\n({shown:,} rows)\n")


def test_twenty_rows_are_all_of_twenty(alcid: Alcid, events: Path) -> None:
    assert alcid("query", events, "--where", "id < 20").out.endswith("\n(20 rows)\n")
    assert alcid("query", events, "--where", "id = 5").out.endswith("\n(1 row)\n")


def test_rows_are_chosen_and_ordered(alcid: Alcid, events: Path) -> None:
    where = "user = 'u7' AND score > 0.9"
    order = ("--order-by", "score DESC, id", "--limit", "3")
    document = alcid(
        "query", events, "--where", where, "--select", "score,id", *order, "--json"
    ).json
    expected = EVENTS.filter((pc.field("user") == "u7") & (pc.field("score") > 0.9))
    expected = expected.sort_by([("score", "descending")]).select(["score", "id"]).slice(0, 3)
    assert document == {"rows": expected.to_pylist(), "count": 3}


def test_select_may_be_given_twice_and_quotes_odd_names(alcid: Alcid, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a, b": [1], "c": [2], "d": [3]}), tmp_path / "a.parquet")
    run = alcid("query", tmp_path, "--select", "d,`a, b`", "--select", "c", "--format", "jsonl")
    assert run.out == '{"d": 3, "a, b": 1, "c": 2}\n'


def test_count(alcid: Alcid, events: Path) -> None:
    where = ("--where", "day = DATE '2025-08-02'")
    assert alcid("query", events, *where, "--count").out == "250\n"
    assert alcid("query", events, *where, "--count", "--json").json == {"count": 250}
    assert alcid("query", events, *where, "--count", "--limit", "7").out == "7\n"


def test_table_of_odd_values(alcid: Alcid, odd: Path) -> None:
    assert alcid("query", odd).out.splitlines() == [
        "  n  name      at                      cost  ratio  narrow  raw   tags              ok",
        '  1  a\\nb,"c"  2025-08-01 12:00:00.5Z  1.50    NaN     0.1  00ff  {"k": [1, null]}  true',
        "-22            NULL                    NULL   0.25    NULL  NULL  NULL              NULL",
        "(2 rows)",
    ]


def test_json_of_odd_values(alcid: Alcid, odd: Path) -> None:
    first = {
        "n": 1,
        "name": 'a\nb,"c"',
        "at": "2025-08-01 12:00:00.5Z",
        "cost": "1.50",
        "ratio": "NaN",
        "narrow": 0.1,
        "raw": "00ff",
        "tags": {"k": [1, None]},
        "ok": True,
    }
    second = dict.fromkeys(first) | {"n": -22, "name": "", "ratio": 0.25}
    assert alcid("query", odd, "--json").json == {"rows": [first, second], "count": 2}
    lines = alcid("query", odd, "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == [first, second]


def test_csv_of_odd_values(alcid: Alcid, odd: Path) -> None:
    assert alcid("query", odd, "--format", "csv").out == (
        '"n","name","at","cost","ratio","narrow","raw","tags","ok"\n'
        '1,"a\nb,""c""",2025-08-01 12:00:00.500000Z,1.50,nan,0.1,"00ff",'
        '"{""k"": [1, null]}",true\n'
        '-22,"",,,0.25,,,,\n'
    )


@pytest.mark.parametrize("form", [(), ("--format", "parquet")])
def test_parquet_file_has_the_same_rows(alcid: Alcid, odd: Path, form: tuple[str, ...]) -> None:
    output = odd.parent / "found.parquet"
    run = alcid("query", odd, "--output", output, *form)
    assert (run.status, run.out, run.err) == (0, "", "")
    table = pq.read_table(output)
    assert table.drop_columns(["ratio"]).equals(ODD.drop_columns(["ratio"]))
    assert str(table["ratio"].to_pylist()) == "[nan, 0.25]"


def test_format_goes_by_the_name_of_the_file(alcid: Alcid, events: Path) -> None:
    for ending in ("csv", "jsonl", "json", "txt"):
        alcid("query", events, "--limit", "1", "--select", "id", "--output", f"{events}.{ending}")
    read = {ending: Path(f"{events}.{ending}").read_text() for ending in ("csv", "jsonl", "json")}
    assert read == {
        "csv": '"id"\n0\n',
        "jsonl": '{"id": 0}\n',
        "json": '{"rows": [{"id": 0}], "count": 1}\n',
    }
    assert Path(f"{events}.txt").read_text() == "id\n 0\n(1 row)\n"


def test_csv_of_many_rows_has_one_head(alcid: Alcid, tmp_path: Path) -> None:
    numbers = list(range(20_001))
    rows = pa.table({"id": numbers, "tags": [[number] for number in numbers]})
    pq.write_table(rows, tmp_path / "a.parquet")
    lines = alcid("query", tmp_path, "--format", "csv").out.splitlines()
    assert lines == ['"id","tags"', *(f'{number},"[{number}]"' for number in numbers)]


def test_folder_without_files_has_neither_columns_nor_rows(alcid: Alcid, tmp_path: Path) -> None:
    run = alcid("query", tmp_path)
    warning = f"alcid: warning: {tmp_path}: no Parquet files in it\n"
    assert (run.status, run.out.strip(), run.err) == (0, "(0 rows)", warning)
    run = alcid("query", tmp_path, "--json")
    assert (json.loads(run.out), run.err) == ({"rows": [], "count": 0}, warning)


def test_without_rows_there_are_columns(alcid: Alcid, events: Path) -> None:
    none = ("--where", "id < 0", "--select", "id,user")
    assert alcid("query", events, *none).out == "id  user\n(0 rows)\n"
    assert alcid("query", events, *none, "--json").json == {"rows": [], "count": 0}
    assert alcid("query", events, *none, "--format", "csv").out == '"id","user"\n'
    assert alcid("query", events, *none, "--format", "jsonl").out == ""


def test_indexes_can_be_left_out(alcid: Alcid, events: Path) -> None:
    library.parquet(events).build_indexes({"file-index.bitmap.columns": "user"}, progress=False)
    where = ("--where", "user = 'u55'", "--explain", "--json")
    runs = [alcid("query", events, *where, *more) for more in ((), ("--no-indexes",))]
    assert [run.out for run in runs] == ['{"rows": [], "count": 0}\n'] * 2
    assert ["`user` = 'u55': bitmap: " in run.err for run in runs] == [True, False]


def test_paimon_table_of_the_past(alcid: Alcid, tmp_path: Path) -> None:
    options = {"deletion-vectors.enabled": True}
    table = library.create_table(tmp_path / "orders", ORDERS.schema, options=options)
    table.append(ORDERS)
    table.delete("id > 1")
    folder = tmp_path / "orders"
    assert alcid("query", folder, "--count").out == "1\n"
    assert alcid("query", folder, "--count", "--snapshot", "1").out == "5\n"
    run = alcid("query", folder, "--count", "--tag", "none")
    assert (run.status, run.err.count("\n"), "none" in run.err) == (1, 1, True)


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["--where", "scroe > 1"], 2, "column scroe: not in the table; did you mean score?"),
        (["--select", "iid"], 2, "column iid: not in the table; did you mean id?"),
        (["--order-by", "dya"], 2, "column dya: not in the table; did you mean day?"),
        (["--select", "id,"], 2, "--select: found 'id,', expected names, separated by commas"),
        (["--snapshot", "1"], 2, "a folder of Parquet files, which has neither snapshots nor tags"),
        (
            ["--json", "--format", "csv"],
            2,
            "--json and --format csv: found both, expected one of them",
        ),
        (
            ["--storage-option", "secret"],
            2,
            "--storage-option: found something else, expected KEY=VALUE",
        ),
        (["--conf", "=secret"], 2, "--conf: found something else, expected KEY=VALUE"),
        *(
            (
                ["--count", *arguments],
                2,
                "--count: prints only a number, so it cannot be combined with --format or --output",
            )
            for arguments in (["--output", "rows.json"], ["--format", "csv"])
        ),
        (
            ["--where", "soundex(user) = 'U100'"],
            2,
            (
                "only Spark can evaluate soundex(user); a table opened with a session can (spark=,"
                " --spark)"
            ),
        ),
        (["--output", "none/rows.csv"], 1, "none: no such folder, for --output none/rows.csv"),
        (
            ["--output", "rows.xlsx"],
            2,
            (
                "--output: found a name that ends in .xlsx, expected .txt, .json, .jsonl, .csv,"
                " .parquet; or give --format"
            ),
        ),
        (
            ["--order-by", "score, id DOWN"],
            2,
            (
                "--order-by: found 'id DOWN', expected a column (in backticks if it has a space or"
                " a comma), ASC or DESC, NULLS FIRST or NULLS LAST"
            ),
        ),
    ],
)
def test_errors_are_one_line(
    alcid: Alcid, events: Path, arguments: list[str], status: int, problem: str
) -> None:
    run = alcid("query", events, *arguments)
    assert (run.status, run.out) == (status, "")
    assert run.err.removeprefix("alcid: ").removeprefix(f"{events}: ") == f"{problem}\n"


@pytest.mark.parametrize(
    "refused_option",
    [("query", "none", "--output"), ("explain", "none", "--html"), ("sql", "x", "--html")],
)
def test_place_of_a_file_is_looked_at_before_the_table(
    alcid: Alcid, tmp_path: Path, refused_option: tuple[str, str, str]
) -> None:
    *command, option = refused_option
    more = ["--explain"] if refused_option[0] == "sql" else []
    run = alcid(*command, *more, option, f"{tmp_path}/no/it.csv")
    problem = f"alcid: {tmp_path}/no: no such folder, for {option} {tmp_path}/no/it.csv\n"
    assert (run.status, run.out, run.err) == (1, "", problem)
    folder = alcid(*command, *more, option, tmp_path / "..")
    assert folder.err == f"alcid: {tmp_path}/..: a folder, expected a file for {option}\n"


def test_file_is_no_table(alcid: Alcid, events: Path) -> None:
    file = min(events.glob("*.parquet"))
    run = alcid("query", file)
    problem = f"alcid: {file}: a file; a table is a folder: {events}\n"
    assert (run.status, run.out, run.err) == (1, "", problem)


def test_mistyped_folder_names_the_nearest_one(alcid: Alcid, events: Path) -> None:
    run = alcid("query", f"{events.parent}/evnets")
    problem = f"alcid: {events.parent}/evnets: no such folder; did you mean events?\n"
    assert (run.status, run.out, run.err) == (1, "", problem)


def test_json_refuses_two_columns_of_a_name(alcid: Alcid, events: Path) -> None:
    run = alcid("query", events, "--select", "id,id", "--json")
    problem = "alcid: column id: occurs 2 times, but a JSON object has each name once\n"
    assert (run.status, run.out, run.err) == (2, "", problem)


def test_damaged_index_is_a_warning_on_one_line(alcid: Alcid, events: Path) -> None:
    library.parquet(events).build_indexes({"file-index.bitmap.columns": "user"}, progress=False)
    (bundle,) = (events / "_alcid").rglob("*.puffin")
    bundle.write_bytes(bundle.read_bytes()[:-7])
    count = ("query", events, "--where", "user = 'u1'", "--count")
    run = alcid(*count)
    assert (run.status, run.out) == (0, "100\n")
    lines = run.err.splitlines()
    assert lines
    assert all(line.startswith("alcid: warning: ") for line in lines)
    strict = alcid(*count, "--strict")
    assert (strict.status, strict.out, strict.err.count("\n")) == (1, "", 1)


def test_a_folder_without_a_parquet_file_is_refused(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "rides"
    (folder / "2025").mkdir(parents=True)
    for name in ("a.csv", "b.csv"):
        (folder / "2025" / name).write_text("id,fare\n1,2.5\n")
    problem = f"{folder}: no Parquet file below it; found 2 files of another format, as 2025/a.csv"
    for arguments in (("query", folder, "--count"), ("explain", folder), ("list", folder)):
        run = alcid(*arguments)
        assert (run.status, run.out, run.err) == (1, "", f"alcid: {problem}\n")
    pq.write_table(EVENTS, folder / "2025" / "c.parquet")
    assert alcid("query", folder, "--count").out == "1000\n"
