"""Find needles in an archive of logs: a request by its trace id, and all that an address did.

The archive is a folder of Parquet files, a folder for each day and a file for each server, as a log
shipper writes them. Nobody sorted them by trace id or by address, so that least and
greatest values rule out nothing, and every search reads every file. Here bloom filters are built
beside the files, which stay as they are. A search then reads the filters, and the few files that
can have what is looked for. A new day is indexed alone, in a moment.

Bloom filters name files. What stands in nearly all of them (`status = 500`) is not worth one: there
the day is all that helps.

python examples/search_log_archive.py
"""

from __future__ import annotations

import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import alcid

DAYS, FILES_OF_DAY, ROWS = 50, 4, 3_000
OPTIONS: dict[str, str | float] = {
    "file-index.bloom-filter.columns": "trace_id,address",
    "file-index.bloom-filter.trace_id.fpp": 0.001,  # one file in a thousand is read in vain
}
FIRST = date(2025, 6, 1)
INTRUDER = "203.0.113.77"


def write_day(archive: Path, day: date, random: np.random.Generator) -> list[str]:
    """Write the files of a day, and give some of its trace ids."""
    folder = archive / f"day={day}"
    folder.mkdir(parents=True)
    kept = []
    for number in range(FILES_OF_DAY):
        traces = [random.bytes(16).hex() for _ in range(ROWS)]
        hosts = random.integers(0, 30_000, ROWS)
        addresses = [f"10.{host >> 8}.{host & 255}.{host % 7}" for host in hosts]
        if day.day == 13 and number == 2:  # he came twice
            addresses[1234:1240] = [INTRUDER] * 6
        rows = {
            "trace_id": traces,
            "address": addresses,
            "status": random.choice([200, 200, 200, 200, 304, 404, 500], ROWS),
            "path": [f"/articles/{page}" for page in random.integers(0, 100_000, ROWS)],
        }
        pq.write_table(pa.table(rows), folder / f"server-{number}.parquet")
        kept.append(traces[ROWS // 2])
    return kept


def search(table: alcid.ParquetTable, where: str) -> pa.Table:
    """The rows, with what it took to find them; they have to be those of a search without."""
    answers, costs = [], []
    for use_indexes in (True, False):
        scan = table.scan(where, use_indexes=use_indexes)
        began = time.perf_counter()
        answers.append(scan.to_arrow())
        seconds = time.perf_counter() - began
        stages = scan.explain().stages
        size = sum(stage.bytes_read for stage in stages)
        costs.append(f"{stages[-1].after.files:>3} files, {size / 1e6:6.2f} MB, {seconds:.3f} s")
    print(f"{where}\n  rows: {answers[0].num_rows}\n  with    {costs[0]}\n  without {costs[1]}")
    assert answers[0].equals(answers[1]), "an index never changes an answer"
    return answers[0]


def main() -> None:
    """Make an archive, index it, search it, and let it grow."""
    random = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "logs"
        traces = [
            trace
            for number in range(DAYS)
            for trace in write_day(archive, FIRST + timedelta(number), random)
        ]
        table = alcid.parquet(archive)
        print(table.build_indexes(OPTIONS))
        print(*table.indexes(), sep="\n")

        request = search(table, f"trace_id = '{traces[100]}'")
        assert request["trace_id"].to_pylist() == [traces[100]]
        wanted = [traces[7], traces[-9], "0" * 32]  # the last one is in no log
        some = search(table, f"trace_id IN ({', '.join(map(repr, wanted))})")
        assert sorted(some["trace_id"].to_pylist()) == sorted(wanted[:2])
        visits = search(table, f"address = '{INTRUDER}'")
        assert [str(day) for day in visits["day"].unique()] == ["2025-06-13", "2025-07-13"]
        assert visits.num_rows == 12
        search(table, "status = 500 AND day = DATE'2025-07-01'")  # the day helps, no index does

        (late,) = write_day(archive, FIRST + timedelta(DAYS), random)[-1:]
        table.refresh()
        report = table.build_indexes(OPTIONS)
        print(f"a new day: {report}")
        assert (report.indexed, report.fresh) == (FILES_OF_DAY, DAYS * FILES_OF_DAY)
        assert search(table, f"trace_id = '{late}'").num_rows == 1
        assert table.verify(sample=0.1).ok


if __name__ == "__main__":
    main()
