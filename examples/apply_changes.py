"""Keep a table up to date with a database: its changes, batch by batch, each exactly once.

A database tells its changes as rows of four kinds: `+I` a new row, `-U` and `+U` the old and the
new state of a row that changed, `-D` a row that is gone. They come in batches, some of them late,
and after a crash a batch comes again. A Paimon table with a primary key takes them in: dynamic
buckets grow with the keys, `sequence.field` says which state of a row is the newest, whatever came
first, and the sink writes a batch once, however often it is given.

After each batch the table is compared with a dict that went through the same changes. A deleted key
is forgotten, as in Paimon: a change that comes later than that would bring it back, so a source
has to keep the changes of one key in order around its deletion (as logs of databases do).

The batches here are Arrow tables, written by this process. With `--spark` they are DataFrames and a
Spark job writes them; of a stream, `stream.writeStream.foreachBatch(sink)` gives them to the sink.

python examples/apply_changes.py [--spark]
"""

from __future__ import annotations

import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import alcid

BATCHES, CHANGES = 8, 4_000
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("city", pa.string()),
        ("balance", pa.int64()),
        ("version", pa.int64()),
    ]
)
OPTIONS = {
    "bucket": -1,  # dynamic: a key stays in the bucket that it came to first
    "dynamic-bucket.target-row-num": 3_000,
    "deletion-vectors.enabled": True,  # readers need not merge
    "sequence.field": "version",
    "file-index.bloom-filter.columns": "city",
}
CITIES = ("Graz", "Linz", "Wien", "Wels", "Steyr")


@dataclass
class Source:
    """A database that changes, and its log."""

    random: random.Random
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    late: list[dict[str, Any]] = field(default_factory=list)
    version: int = 0

    def batch(self) -> pa.Table:
        """The next changes; some updates are held back for the next batch."""
        log = self.late
        held: list[dict[str, Any]] = []
        for _ in range(CHANGES):
            self.version += 1
            kind = self.random.choices("IUD", (3, 5, 1))[0] if len(self.rows) > 100 else "I"
            if kind == "I":
                log.append(self._put(self.version, "+I"))
                continue
            key = next(filter(self.rows.__contains__, iter(self._any_key, None)))
            if kind == "D":
                log.append(self.rows.pop(key) | {"version": self.version, "op": "-D"})
                held = [row for row in held if row["id"] != key]
                continue
            log.append(self.rows[key] | {"op": "-U"})
            new = self._put(key, "+U")
            (held if self.random.random() < 0.05 else log).append(new)
        self.late = held
        return pa.Table.from_pylist(log, SCHEMA.append(pa.field("op", pa.string())))

    def _any_key(self) -> int:
        return self.random.randrange(self.version)

    def _put(self, key: int, kind: str) -> dict[str, Any]:
        self.rows[key] = {
            "id": key,
            "city": self.random.choice(CITIES),
            "balance": self.random.randrange(10_000),
            "version": self.version,
        }
        return self.rows[key] | {"op": kind}


def apply(model: dict[int, dict[str, Any]], batch: pa.Table) -> None:
    """What a batch means: of all states of a key the one with the greatest version."""
    latest: dict[int, tuple[int, dict[str, Any] | None]]
    latest = {key: (row["version"], row) for key, row in model.items()}
    for change in batch.to_pylist():
        kind, key = change.pop("op"), change["id"]
        if key not in latest or change["version"] >= latest[key][0]:
            latest[key] = change["version"], change if kind in ("+I", "+U") else None
    model.clear()
    model.update((key, row) for key, (_, row) in latest.items() if row is not None)


def main() -> None:
    """Run the batches through, one of them twice."""
    spark = alcid.session() if "--spark" in sys.argv[1:] else None
    source, model = Source(random.Random(7)), dict[int, dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db" / "accounts"
        table = alcid.create_table(path, SCHEMA, spark, primary_key=["id"], options=OPTIONS)
        sink = alcid.upsert_sink(table, "from-the-shop", row_kind="op")
        for number in range(BATCHES):
            batch = source.batch()
            rows = batch if spark is None else spark.createDataFrame(batch)
            print(f"batch {number}: {sink(rows, number)}")
            if number == 3:  # as after a crash: a new process does not know what was written
                sink = alcid.upsert_sink(alcid.paimon(path, spark), "from-the-shop", row_kind="op")
                assert sink(rows, number) is None, "a batch is written once"
                print(f"batch {number} again: it is in the table")
            apply(model, batch)
            table.refresh()
            stored = table.scan(order_by="id").to_arrow().to_pylist()
            assert stored == [model[key] for key in sorted(model)], f"batch {number}"

        files = table.files
        print(table.compact())
        in_graz = table.count("city = 'Graz'")
        print(f"{table.count():,} accounts, {in_graz:,} of them in Graz")
        assert table.count() == len(model)
        assert table.files <= files
        verified = table.verify()
        print(str(verified).splitlines()[0])
        assert verified.ok


if __name__ == "__main__":
    main()
