"""A first index: build it, keep it beside a Parquet file, then read only the rows that match.

python examples/first_index.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import alcid

ROWS, ROWS_IN_GROUP = 200_000, 5_000
OPTIONS = {  # named as in Paimon's documents
    "file-index.bloom-filter.columns": "trip",
    "file-index.bitmap.columns": "city",
    "file-index.range-bitmap.columns": "fare",
}


def make_trips() -> pa.Table:
    """Taxi trips, in no order that a minimum and maximum of a row group could use."""
    random = np.random.default_rng(1)
    cities = np.array(["Graz", "Linz", "Wien", "Salzburg", "Innsbruck", "Villach", "Wels", "Steyr"])
    return pa.table(
        {
            "trip": random.integers(0, 10**12, ROWS),
            "city": random.choice(cities, ROWS, p=[0.01, 0.09, 0.5, 0.2, 0.1, 0.05, 0.03, 0.02]),
            "fare": np.round(random.gamma(3, 5, ROWS), 2),
        }
    )


def read_rows(data: pq.ParquetFile, rows: alcid.Selection) -> tuple[pa.Table, int]:
    """The rows at these positions, and how many row groups had to be read for them."""
    assert rows.rows is not None
    positions = np.array(rows.rows, np.int64)
    groups, places = np.divmod(positions, ROWS_IN_GROUP)
    parts = [
        data.read_row_group(int(group)).take(places[groups == group]) for group in np.unique(groups)
    ]
    return pa.concat_tables([data.schema_arrow.empty_table(), *parts]), len(parts)


def main() -> None:
    """Show it all."""
    trips = make_trips()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trips.parquet"
        pq.write_table(trips, path, row_group_size=ROWS_IN_GROUP)

        index_path = path.with_name(path.name + ".index")  # where Paimon keeps it, too
        index_path.write_bytes(alcid.FileIndex.build(trips, OPTIONS).to_bytes())
        print(f"{path.name}: {ROWS:,} rows, {path.stat().st_size:,} bytes")
        print(f"{index_path.name}: {index_path.stat().st_size:,} bytes")

        data = pq.ParquetFile(path)
        index = alcid.FileIndex.from_bytes(index_path.read_bytes(), data.schema_arrow)

        known = trips["trip"][123_456].as_py()
        ask(data, index, f"trip = {known}", pc.field("trip") == known)
        ask(data, index, f"trip = {known + 1}", pc.field("trip") == known + 1)
        ask(
            data,
            index,
            "city = 'Graz' AND fare > 50",
            (pc.field("city") == "Graz") & (pc.field("fare") > 50),
        )
        ask(
            data,
            index,
            (alcid.col("fare") < 0.3) | alcid.col("fare").between(75, 80),
            (pc.field("fare") < 0.3) | (pc.field("fare") >= 75) & (pc.field("fare") <= 80),
        )
        highest_fares(data, index)
        data.close()

        print(f"\n$ alcid inspect {index_path.name}", flush=True)
        alcid_command = Path(sys.executable).with_name("alcid")
        subprocess.run([alcid_command, "inspect", index_path.name], cwd=folder, check=True)


def ask(
    data: pq.ParquetFile,
    index: alcid.FileIndex,
    predicate: str | alcid.Predicate,
    condition: pc.Expression,
) -> None:
    """Answer a predicate with the index, and check it against the filter of all rows."""
    print(f"\n{predicate}")
    expected = data.read().filter(condition)
    hit = index.evaluate(predicate)
    if hit.skip:
        print("  no row can match: the data file is not opened")
        assert expected.num_rows == 0
        return
    if hit.rows is None:
        print("  the index says: maybe, in any row; the whole file is read")
        assert expected.num_rows > 0
        return
    candidates, groups = read_rows(data, hit)
    found = candidates.filter(condition)  # always: an index may give a row too many
    assert found == expected
    print(f"  {found.num_rows} rows, from {groups} of {data.num_row_groups} row groups")


def highest_fares(data: pq.ParquetFile, index: alcid.FileIndex) -> None:
    """The three highest fares of one city: a predicate and an order, answered together."""
    print("\ncity = 'Graz' ORDER BY fare DESC LIMIT 3")
    among = index.evaluate("city = 'Graz'")
    top = index.top_n("fare", 3, descending=True, among=among)
    candidates, groups = read_rows(data, top)
    found = candidates.sort_by([("fare", "descending")])
    everything = data.read().filter(pc.field("city") == "Graz")
    assert found["fare"].to_pylist() == sorted(everything["fare"].to_pylist())[:-4:-1]
    print(f"  {found.num_rows} rows, from {groups} of {data.num_row_groups} row groups")
    for row in found.to_pylist():
        print(f"  {row['trip']:>12}  {row['city']}  {row['fare']:.2f}")


if __name__ == "__main__":
    main()
