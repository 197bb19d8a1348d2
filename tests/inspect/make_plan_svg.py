"""Makes `docs/images/plan.svg`, the plan of a scan over a folder that it makes for that.

python -m tests.inspect.make_plan_svg
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import alcid
from alcid.inspect.plan_svg import plan_svg

TARGET = Path(__file__).resolve().parents[2] / "docs" / "images" / "plan.svg"
QUESTION = "day >= '2025-08-11' AND hour < 12 AND user_id = 4711"


def make_table(folder: Path, *, days: int, hours: int, rows: int) -> alcid.ParquetTable:
    """Events of some days, a file for each hour, with an index on the users."""
    rng = np.random.default_rng(9)
    for day in range(days):
        part = folder / f"day=2025-08-{day + 1:02}"
        part.mkdir()
        for hour in range(hours):
            table = pa.table(
                {
                    "hour": pa.array(np.full(rows, hour), pa.int32()),
                    "user_id": rng.integers(0, 16 * rows, rows),
                    "score": rng.random(rows),
                    "url": [f"/item/{number}" for number in rng.integers(0, 10**6, rows).tolist()],
                }
            )
            path = part / f"hour-{hour:02}.parquet"
            pq.write_table(
                table, path, row_group_size=rows // 4, data_page_size=2000, write_page_index=True
            )
    events = alcid.parquet(folder)
    events.build_indexes(
        {
            "file-index.bloom-filter.columns": "user_id",
            "file-index.bitmap.columns": "user_id",
        }
    )
    return events


def picture(events: alcid.ParquetTable) -> str:
    """The plan of a look-up, after it ran."""
    scan = events.scan(QUESTION)
    scan.to_arrow()
    told = scan.explain()
    assert told.outcomes is not None
    question = f"where {told.predicate}"
    return plan_svg({**told.to_dict(), "question": question, "outcomes": told.outcomes.columns()})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = make_table(Path(folder), days=25, hours=24, rows=8000)
        TARGET.write_text(picture(events), encoding="utf-8")
    print(TARGET)


if __name__ == "__main__":
    main()
