from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import alcid as library
from tests.cli.samples import Alcid
from tests.cli.writing import parquet_folder, state, text_of, without_seconds


def test_the_advice_is_that_of_the_table_and_nothing_is_written(
    alcid: Alcid, tmp_path: Path
) -> None:
    folder = parquet_folder(tmp_path / "events")
    before = state(folder)
    queries = ["name = 'n3'", "id > 250"]
    options = [text for query in queries for text in ("--where", query)]
    advice = library.parquet(folder).advise(queries, progress=False)
    run = alcid("advise", folder, *options)
    assert advice.options == {}
    assert text_of(run) == without_seconds(f"{advice}\n")
    few = alcid("advise", folder, *options, "--column", "name", "--sample", "1", "--json")
    advised = library.parquet(folder).advise(queries, columns=["name"], sample=1, progress=False)
    seconds = {"seconds": few.json["seconds"]}
    assert few.json == json.loads(json.dumps(advised.to_dict() | seconds))
    assert state(folder) == before


def test_the_last_line_builds_what_pays(alcid: Alcid, tmp_path: Path) -> None:
    folder, indexes = tmp_path / "my events", tmp_path / "their indexes"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for number in range(4):
        rows = {"id": rng.integers(0, 10**9, 20_000), "user id": rng.integers(0, 10**9, 20_000)}
        pq.write_table(pa.table(rows), folder / f"{number}.parquet")
    run = alcid("advise", folder, "--index-path", indexes)
    build = ["alcid", "build", str(folder), "--index-path", str(indexes)]
    build += ["--bloom-filter", "id,user id"]
    last = run.out.splitlines()[-1]
    assert last == shlex.join(build)
    assert alcid(*shlex.split(last)[1:]).status == 0
    built = library.parquet(folder, index_path=indexes).indexes()
    assert [(index.column, index.index_type) for index in built] == [
        ("id", "bloom-filter"),
        ("user id", "bloom-filter"),
    ]


def test_secrets_are_not_in_the_last_line() -> None:
    from alcid.cli.commands.indexes import _build_line
    from alcid.cli.tables import Opening

    how = Opening(True, ["spark.a=secret"], ["key=secret"])
    line = _build_line(
        "s3://b/t", how, {"file-index.bsi.columns": "a", "file-index.bitmap.columns": "b,c"}
    )
    assert (
        line == "alcid build s3://b/t --spark --conf ... --storage-option ... --bsi a --bitmap b,c"
    )


def test_a_query_may_have_an_order_and_a_limit_or_only_count(alcid: Alcid, tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path / "events")
    run = alcid(
        *("advise", folder, "--json", "--query", "id > 5 ORDER BY score DESC LIMIT 3"),
        *("--where", "ORDER BY id LIMIT 2", "--count", "name = 'n3'"),
    )
    advice = library.parquet(folder).advise(
        [
            {"where": "id > 5", "order_by": "score DESC", "limit": 3},
            {"order_by": "id", "limit": 2},
            {"where": "name = 'n3'", "count": True},
        ],
        progress=False,
    )
    assert run.json["queries"] == [
        "id > 5 ORDER BY score DESC NULLS LAST LIMIT 3",
        "TRUE ORDER BY id ASC NULLS FIRST LIMIT 2",
        "count name = 'n3'",
    ]
    seconds = {"seconds": run.json["seconds"]}
    assert run.json == json.loads(json.dumps(advice.to_dict() | seconds))


def test_a_mistyped_column_names_the_nearest(alcid: Alcid, tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path / "events", files=1)
    for option, text in (
        ("--where", "nane = 'x'"),
        ("--query", "ORDER BY nane LIMIT 5"),
        ("--count", "nane = 'x'"),
        ("--column", "nane"),
    ):
        run = alcid("advise", folder, option, text)
        assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
        assert "did you mean name?" in run.err
