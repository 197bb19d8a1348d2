"""A table as of a moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from alcid.tables.iceberg_table import IcebergTable
from tests.tables.iceberg.memory_catalog import MemoryCatalog

ROWS: dict[str, list[Any]] = {"id": [1, 2, 3], "name": ["a", "b", "b"]}


def test_the_millisecond_of_a_snapshot_is_that_snapshot(tmp_path: Path) -> None:
    """As a float, this moment times 1000 is a little less than its milliseconds."""
    millis = 1_074_270_141_218
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)
    assert int(moment.timestamp() * 1000) == millis - 1
    catalog = MemoryCatalog(tmp_path / "t")
    catalog.add({"a.parquet": ROWS})
    second = catalog.add({"b.parquet": ROWS})
    catalog.metadata["snapshot-log"] = [
        {"timestamp-ms": millis - 1, "snapshot-id": second - 1},
        {"timestamp-ms": millis, "snapshot-id": second},
    ]
    assert IcebergTable(catalog, as_of=moment).snapshot_id == second
    before = moment - timedelta(microseconds=1)
    assert IcebergTable(catalog, as_of=before).snapshot_id == second - 1
