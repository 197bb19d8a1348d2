"""Erase people from a table, as the GDPR asks (article 17), and prove it.

Orders lie in a Paimon table: a partition for each day, thousands of customers, readers at any time.
Some customers ask to be forgotten. Their rows have to be found in every partition, without reading
all of it; they have to be gone for every reader at once; and in the end their bytes, too.

1. find     the bloom filters of `customer` say which files can have them
2. delete   marks the rows in deletion vectors: no reader of the new snapshot sees them
3. prove    nothing is left, and `verify` builds every index and vector again
4. compact  files are written again without the rows, as bytes of deleted rows stay in them before
5. expire   older snapshots still read older files: they go when Paimon expires these, in Flink or
            Spark by `CALL sys.expire_snapshots(table => 'shop.orders', retain_max => 1)`

An Iceberg table takes the same calls for 1 to 3: `alcid.iceberg("lake.shop.orders", spark)`, then
`scan`, `delete` and `verify`; for 4 and 5 it has `rewrite_data_files` and `expire_snapshots`.

python examples/erase_users.py
"""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

import alcid

DAYS, ORDERS, CUSTOMERS = 6, 40_000, 5_000
TO_ERASE = ("customer-0017", "customer-4711", "customer-4999")
SCHEMA = pa.schema(
    [("day", pa.date32()), ("id", pa.int64()), ("customer", pa.string()), ("amount", pa.float64())]
)
OPTIONS = {
    "deletion-vectors.enabled": True,
    "file-index.bloom-filter.columns": "customer",
    "dynamic-bucket.target-row-num": 5_000,
    "file.compression": "none",  # so that the end of this script can look for names in the bytes
}


def make_orders(path: Path) -> alcid.PaimonTable:
    """A table with some days of orders; a customer buys on few of them."""
    table = alcid.create_table(
        path, SCHEMA, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS
    )
    random = np.random.default_rng(1)
    for number in range(DAYS):
        customers = random.choice(CUSTOMERS, 800, replace=False)
        if number % 2:
            customers[:3] = 17, 4711, 4999
        day = {
            "day": pa.repeat(pa.scalar(date(2025, 8, 1) + timedelta(number)), ORDERS),
            "id": np.arange(ORDERS) + number * ORDERS,
            "customer": [
                f"customer-{customer:04}" for customer in random.choice(customers, ORDERS)
            ],
            "amount": np.round(random.gamma(2, 20, ORDERS), 2),
        }
        table.upsert(pa.table(day, SCHEMA))
    return table


def files_with(path: Path, table: alcid.PaimonTable, names: tuple[str, ...]) -> tuple[int, int]:
    """How many data files of the latest snapshot have one of the names in their bytes, of all."""
    outcomes = table.explain().outcomes
    assert outcomes is not None
    texts = [(path / outcome.path).read_bytes() for outcome in outcomes]
    return sum(any(name.encode() in text for name in names) for text in texts), len(texts)


def main() -> None:
    """Do it, and check each step."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders"
        table = make_orders(path)
        reader = alcid.paimon(path)  # somebody else, who has the table open
        before, total = table.snapshot_id, table.count()
        wanted = f"customer IN ({', '.join(map(repr, TO_ERASE))})"

        scan = table.scan(wanted, columns=["day", "customer"])
        rows = scan.to_arrow().to_pylist()
        stages = scan.explain().stages
        size = sum(stage.bytes_read for stage in stages)
        print(f"{total:,} orders in {table.files} files; {wanted}")
        print(f"found {len(rows):,} rows: read {size:,} of {stages[0].before.bytes:,} bytes")
        erased = Counter((row["day"], row["customer"]) for row in rows)
        for (day, customer), count in sorted(erased.items()):
            print(f"  {day}  {customer} {count:3} orders")

        report = table.delete(wanted)
        print(report)
        assert report.rows == len(rows)

        reader.refresh()
        assert table.count(wanted) == reader.count(wanted) == 0
        assert reader.count() == total - len(rows), "nobody else may be gone"
        verified = table.verify()
        print(f"rows left: {reader.count(wanted)}; {str(verified).splitlines()[0]}")
        assert verified.ok

        marked, _ = files_with(path, table, TO_ERASE)
        print(f"their names are still in the bytes of {marked} files, until these are compacted")
        print(table.compact())
        left, files = files_with(path, table, TO_ERASE)
        print(f"their names are in {left} of {files} files of snapshot {table.snapshot_id}")
        assert marked > 0
        assert left == 0
        assert table.count() == total - len(rows)

        past = alcid.paimon(path, snapshot_id=before).count(wanted)
        print(f"snapshot {before} still shows {past:,} rows: let Paimon expire it to be done")
        assert past == len(rows)


if __name__ == "__main__":
    main()
