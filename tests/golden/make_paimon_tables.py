"""Make the golden tables, written by released jars of Paimon.

    python -m tests.golden.make_paimon_tables

Needs Java, Maven, PySpark and the network. Takes half a minute. Names of files, users and
times are new in every run, so that all tables change with it.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from operator import itemgetter
from pathlib import Path

from tests.golden.arrow_values import json_rows
from tests.golden.paimon_jvm import BUNDLE, VERSION
from tests.golden.paimon_table_cases import CASES
from tests.golden.paimon_tables import writer_folder
from tests.golden.paimon_tables_jvm import NEWEST, NEWEST_VERSION, JavaPaimon, java_paimon
from tests.golden.values import Json, save

WRITER: dict[str, Json] = {"kind": "paimon_table", "writer": "paimon-java"}
WITHOUT_INDEX = {"file-index.read.enabled": "false"}


def state(java: JavaPaimon, table: Path, options: Mapping[str, str]) -> dict[str, Json]:
    """The rows of a snapshot, and their columns."""
    rows = java.read(table, options=options)
    return {"columns": rows.column_names, "rows": json_rows(rows)}


def answer(java: JavaPaimon, table: Path, rows: list[Json], question: Json) -> dict[str, Json]:
    """The numbers of the rows that match; with indexes or without them."""
    answers = json_rows(java.read(table, question))
    assert answers == json_rows(java.read(table, question, options=WITHOUT_INDEX)), question
    texts = set(map(json.dumps, answers))
    numbers = [number for number, row in enumerate(rows) if json.dumps(row) in texts]
    assert len(numbers) == len(answers), question
    return {"predicate": question, "rows": numbers}


def describe(java: JavaPaimon, table: Path, questions: list[Json]) -> dict[str, Json]:
    """What Paimon reads from a table."""
    latest = state(java, table, {})
    snapshots: list[Json] = []
    stored = [json.loads(path.read_text()) for path in table.glob("snapshot/snapshot-*")]
    for snapshot in sorted(stored, key=itemgetter("id")):
        facts = {
            "id": snapshot["id"],
            "kind": snapshot["commitKind"],
            "schema_id": snapshot["schemaId"],
        }
        options = {"scan.snapshot-id": str(snapshot["id"])}
        snapshots.append(facts | state(java, table, options))
    tags: list[Json] = [
        {"tag": name, **state(java, table, {"scan.tag-name": name})}
        for name in sorted(path.name.removeprefix("tag-") for path in table.glob("tag/*"))
    ]
    return {
        **latest,
        "snapshots": snapshots,
        "tags": tags,
        "predicates": [answer(java, table, latest["rows"], question) for question in questions],
    }


def pack(table: Path, archive: Path) -> None:
    """The files of a table in one; what the heads of Avro files repeat then takes no space."""
    with tarfile.open(archive, "w:xz", preset=9) as file:
        for path in sorted(table.rglob("*")):
            if path.is_file() and not path.name.endswith(".crc"):
                entry = tarfile.TarInfo(path.relative_to(table).as_posix())
                entry.size = path.stat().st_size
                with path.open("rb") as source:
                    file.addfile(entry, source)


def make(artifact: str, version: str, names: Iterable[str]) -> None:
    """The tables that a release writes."""
    folder = writer_folder(version)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as warehouse, java_paimon(artifact) as java:
        for name in names:
            table = Path(warehouse, name)
            CASES[name].make(java, table)
            facts = describe(java, table, CASES[name].questions)
            save(folder, name, WRITER | {"version": version} | facts)
            pack(table, folder / f"{name}.tar.xz")


def main() -> None:
    """Make all tables again."""
    make(BUNDLE, VERSION, CASES)
    make(NEWEST, NEWEST_VERSION, ("append", "key_dynamic", "sidecars", "types", "vectors_32"))


if __name__ == "__main__":
    main()
