"""Files of other writers: all of them can be inspected and show what their JSON says."""

from __future__ import annotations

from pathlib import Path

import pytest

from alcid.formats.file_index.container import write_container
from tests.cli.samples import Alcid
from tests.golden_files import Golden, golden_files, golden_id

CONTAINERS = golden_files("container")
PAYLOADS = golden_files("payload")


@pytest.mark.parametrize("golden", CONTAINERS, ids=golden_id)
def test_container(alcid: Alcid, golden: Golden) -> None:
    path = golden.path.with_suffix(".bin")
    plain = alcid("inspect", path, "--json")
    fields = golden.json["fields"]
    types = [word for field in fields for word in ("--type", f"{field['name']}={field['type']}")]
    typed = alcid("inspect", path, *types, "--json")
    head = golden.json["head"]
    for run in (plain, typed):
        document = run.json
        assert (run.status, document["size"]) == (0, golden.json["size"])
        assert (document["version"], document["head_length"]) == (
            head["version"],
            head["head_length"],
        )
        assert document["redundant_bytes"] == head["redundant_length"]
        entries = [
            (each["column"], each["index_type"], -1 if each["offset"] is None else each["offset"])
            for each in document["indexes"]
        ]
        assert sorted(entries) == sorted(
            (entry["column"], entry["index_type"], entry["start"]) for entry in head["entries"]
        )
        assert {each["state"] for each in document["indexes"]} <= {"ok", "empty"}
        rows = {each["rows"] for each in document["indexes"] if "rows" in each}
        assert rows <= {golden.rows}
    for before, after in zip(plain.json["indexes"], typed.json["indexes"], strict=True):
        names = {name for name, value in before.items() if value is not None}
        assert {name: after[name] for name in names - {"at_least", "at_most"}} == {
            name: before[name] for name in names - {"at_least", "at_most"}
        }


@pytest.mark.parametrize("golden", PAYLOADS, ids=golden_id)
def test_payload(alcid: Alcid, golden: Golden, tmp_path: Path) -> None:
    path = tmp_path / "payload.index"
    path.write_bytes(write_container({("c", golden.json["index_type"]): golden.data}))
    types = ("--type", f"c={golden.json['data_type']}")
    run = alcid("inspect", path, *types, "--column", "c", "--limit", 1_000_000, "--json")
    (described,) = run.json["indexes"]
    assert (run.status, described["state"]) == (0, "ok")
    if golden.json["index_type"] == "bloom-filter":
        return
    nulls = sum(value is None for value in golden.values)
    assert (described["rows"], described["nulls"]) == (golden.rows, nulls)
    if golden.json["index_type"] != "bsi":
        positions = [row for listed in described["values"] for row in listed["positions"]]
        assert sorted(positions) == list(range(golden.rows))
