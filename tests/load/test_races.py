"""Writers that upsert and delete at once: as if one had come after the other.

`make soak` lets them do a hundred rounds; ALCID_ROUNDS says how many each of the four does.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import alcid
from tests.load.keyed_race import race
from tests.tables.paimon.small_tables import create

ROUNDS = int(os.environ.get("ALCID_ROUNDS", "4"))


@pytest.mark.parametrize(
    "options",
    [{"bucket": "-1", "dynamic-bucket.target-row-num": "20"}, {"bucket": "2"}],
    ids=["dynamic", "fixed"],
)
def test_upserts_and_deletes_of_four_processes(tmp_path: Path, options: dict[str, str]) -> None:
    create(
        tmp_path / "t",
        {"part": "INT", "id": "BIGINT", "name": "STRING"},
        partition_keys=["part"],
        primary_keys=["part", "id"],
        options={"deletion-vectors.enabled": "true", **options},
    )
    rows = race(str(tmp_path / "t"), ROUNDS)
    table = alcid.paimon(tmp_path / "t")
    table.compact()
    table_rows = table.scan(columns=["id", "name"]).to_arrow().to_pydict()
    assert sorted(zip(table_rows["id"], table_rows["name"], strict=True)) == sorted(rows.items())
    report = table.verify(progress=False)
    assert report.ok, str(report)
